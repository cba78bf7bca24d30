#include "worker/lab/chaos.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Of virtual time, without faults: whoever has no answer by then waits for ever. */
#define LIMIT_NS (UINT64_C(3600) * 1000000000)

/* The front-end can always do it alone; faults hold it up while they last, time-outs longer. In
 * 2,500 runs the worst took seven times as long as both calm runs and all faults together. */
static uint64_t limit_ns(const struct chaos_outcome *o)
{
    uint64_t limit = UINT64_C(5000000000) + 30 * (o->sequential.end_ns + o->calm.end_ns);
    for (unsigned i = 0; i < o->faults; i++) {
        limit += o->fault[i].lasts_ns < LAB_FOR_EVER ? 4 * o->fault[i].lasts_ns : 0;
    }
    return limit;
}

static enum err run_sequential(const struct chaos_plan *plan, struct lab_result *out)
{
    struct job job = plan->job;
    struct lab_options lab = {
        .job = &job,
        .workers = 1,
        .shards = 1,
        .seed = plan->seed,
        .node_ns = plan->lab.node_ns,
        .results_bytes = 64,
        .local_bytes = 1 << 20,
        .limit_ns = LIMIT_NS,
    };
    job.algorithm = algorithm_by_name("sequential");
    return lab_run(&lab, out);
}

static void complain(char *broken, const char *what, uint64_t got)
{
    size_t used = strlen(broken);
    snprintf(broken + used, CHAOS_TEXT_MAX - used, "%s%s: %" PRIu64, used > 0 ? "; " : "", what,
             got);
}

static void check(const struct lab_result *r, const int *score, char *broken)
{
    const struct {
        unsigned got;
        const char *what;
    } zeros[] = {
        {r->inflight_kept, "holds kept by sessions in good order"},
        {r->inflight_stale, "holds of sessions that should have lapsed"},
        {r->inflight_left, "holds left past their age limit"},
        {r->sessions_stale, "sessions of the dead"},
        {r->unconnected, "pairs without a session"},
        {r->still_searching, "processors that did not stop"},
        {r->requests_left, "requests overdue"},
        {r->grown, "shards grown"},
    };
    if (!r->answered) {
        complain(broken, "no answer; depth reached", r->search.depth);
    } else if (score != NULL && r->search.score != *score) {
        snprintf(broken, CHAOS_TEXT_MAX, "score %d, sequentially %d", r->search.score, *score);
    }
    for (size_t i = 0; i < sizeof zeros / sizeof zeros[0]; i++) {
        if (zeros[i].got != 0) {
            complain(broken, zeros[i].what, zeros[i].got);
        }
    }
}

enum err chaos_run(const struct chaos_plan *plan, struct chaos_outcome *out)
{
    struct lab_options lab = plan->lab;
    char calm[CHAOS_TEXT_MAX] = "";

    memset(out, 0, sizeof *out);
    lab.job = &plan->job;
    lab.limit_ns = LIMIT_NS;
    lab.drain = true;
    enum err err = run_sequential(plan, &out->sequential);
    if (err == ERR_OK) {
        out->score = out->sequential.search.score;
        err = lab_run(&lab, &out->calm);
    }
    if (err == ERR_OK) {
        out->faults = chaos_draw_faults(plan, out->calm.end_ns, out->fault);
        lab.fault = out->fault;
        lab.faults = out->faults;
        lab.limit_ns = limit_ns(out);
        err = lab_run(&lab, &out->faulty);
    }
    if (err != ERR_OK) {
        return err;
    }
    const int *score = plan->job.strict ? &out->score : NULL;
    check(&out->calm, score, calm);
    check(&out->faulty, score, out->broken);
    if (calm[0] != '\0') {
        snprintf(out->broken, sizeof out->broken, "without faults: %.400s", calm);
    }
    return ERR_OK;
}

void chaos_free(struct chaos_plan *plan)
{
    job_free(&plan->job);
}
