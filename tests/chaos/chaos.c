#include "tests/chaos/chaos.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Virtual time without faults: a job without an answer by then never gets one. */
#define LIMIT_NS (UINT64_C(3600) * 1000000000)

/* The front-end can always do it alone; faults hold it up while they last, time-outs longer. In
 * 2,500 runs the worst took seven times as long as both runs without faults and all faults
 * together. */
static uint64_t limit_ns(const struct chaos_outcome *o)
{
    uint64_t limit = UINT64_C(5000000000) + 30 * (o->sequential_ns + o->faultless.lab.end_ns);
    for (unsigned i = 0; i < o->faults; i++) {
        limit += o->fault[i].lasts_ns < LAB_FOR_EVER ? 4 * o->fault[i].lasts_ns : 0;
    }
    return limit;
}

static enum err run_sequential(const struct chaos_plan *plan, unsigned post,
                               struct chaos_outcome *out)
{
    struct job job = plan->job[post];
    struct lab_result result;
    struct lab_options lab = {
        .job = &job,
        .workers = 1,
        .shards = 1,
        .seed = plan->seed,
        .node_ns = plan->options.lab.node_ns,
        .results_bytes = 64,
        .local_bytes = 1 << 20,
        .limit_ns = LIMIT_NS,
    };
    job.algorithm = algorithm_by_name("sequential");
    enum err err = lab_run(&lab, &result);
    if (err == ERR_OK) {
        out->score[post] = result.answer[0].search.score;
        out->sequential_ns += result.end_ns;
        out->sequential_nodes += result.sum.nodes;
    }
    return err;
}

static void complain(char *broken, const char *what, uint64_t got)
{
    size_t used = strlen(broken);
    snprintf(broken + used, CHAOS_TEXT_MAX - used, "%s%s: %" PRIu64, used > 0 ? "; " : "", what,
             got);
}

static void check(const struct chaos_plan *plan, const struct chaos_outcome *o,
                  const struct chaos_result *r, char *broken)
{
    for (unsigned i = 0; i < plan->posts; i++) {
        const struct lab_answer *a = &r->lab.answer[i];
        if (a->answered && plan->job[i].strict && plan->post[i].stop_ns == 0 &&
            a->search.score != o->score[i]) {
            size_t used = strlen(broken);
            snprintf(broken + used, CHAOS_TEXT_MAX - used, "post %u: score %d, sequentially %d; ",
                     i, a->search.score, o->score[i]);
        }
    }
    if (!r->lab.answer[0].answered) {
        complain(broken, "no answer; depth reached", r->lab.answer[0].search.depth);
    }
    const struct {
        unsigned got;
        const char *what;
    } zeros[] = {
        {r->unanswered, "posts without an answer"},
        {r->inflight_kept, "in-flight entries of sessions in good order"},
        {r->inflight_stale, "in-flight entries of sessions that should have expired"},
        {r->inflight_left, "in-flight entries past their age limit"},
        {r->sessions_stale, "sessions of the dead"},
        {r->unconnected, "pairs without a session"},
        {r->still_searching, "workers that did not leave a job"},
        {r->uneven, "workers unevenly on jobs"},
        {r->miscounted, "workers miscounted"},
        {r->reports_missing, "last reports missing"},
        {r->requests_left, "requests overdue"},
        {r->foreign_files, "files read that were never written"},
        {r->lost_files, "snapshots lost"},
        {r->unsaid, "files refused without a word"},
        {r->not_started, "shards not started"},
        {r->half_made, "half-made tables of hosts"},
        {r->mistold, "things that watchers were told wrong"},
        {r->grown, "shards grown"},
        {r->broken_streams, "streams that are no ZMTP"},
        {r->over_budget, "budgets of connections exceeded or miscounted"},
        {r->connections_left, "connections left"},
    };
    for (size_t i = 0; i < sizeof zeros / sizeof zeros[0]; i++) {
        if (zeros[i].got != 0) {
            complain(broken, zeros[i].what, zeros[i].got);
        }
    }
}

enum err chaos_run(const struct chaos_plan *plan, struct chaos_outcome *out)
{
    struct chaos_options options = plan->options;
    struct lab_post post[LAB_POSTS_MAX];
    char faultless[CHAOS_TEXT_MAX] = "";
    enum err err = ERR_OK;

    memset(out, 0, sizeof *out);
    for (unsigned i = 0; i < plan->posts && err == ERR_OK; i++) {
        post[i] = plan->post[i];
        post[i].job = &plan->job[i];
        err = post[i].stop_ns == 0 ? run_sequential(plan, i, out) : ERR_OK;
    }
    options.lab.post = post;
    options.lab.posts = plan->posts;
    options.lab.limit_ns = LIMIT_NS;
    options.drain = true;
    if (err == ERR_OK) {
        err = chaos_lab_run(&options, &out->faultless);
    }
    if (err == ERR_OK) {
        out->faults = chaos_draw_faults(plan, out->faultless.lab.end_ns, out->fault);
        options.fault = out->fault;
        options.faults = out->faults;
        options.lie_ns = plan->lie_ns;
        options.disk = plan->disk;
        options.want_ppm = plan->want_ppm;
        options.lab.limit_ns = limit_ns(out);
        err = chaos_lab_run(&options, &out->faulty);
    }
    if (err != ERR_OK) {
        return err;
    }
    check(plan, out, &out->faultless, faultless);
    check(plan, out, &out->faulty, out->broken);
    if (faultless[0] != '\0') {
        snprintf(out->broken, sizeof out->broken, "without faults: %.400s", faultless);
    }
    return ERR_OK;
}

void chaos_free(struct chaos_plan *plan)
{
    for (unsigned i = 0; i < plan->posts; i++) {
        job_free(&plan->job[i]);
    }
}
