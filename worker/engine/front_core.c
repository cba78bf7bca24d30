#include "worker/engine/front_core.h"

#include <stdlib.h>
#include <string.h>

enum { WAIT_STEP_MS = 5 };

enum err front_core_open(struct front_core *c, uint32_t alive_ms)
{
    memset(c, 0, sizeof *c);
    c->alive_ms = alive_ms != 0 ? alive_ms : FRONT_ALIVE_MS;
    c->report = calloc(FRONT_WORKERS_MAX, sizeof *c->report);
    c->thread = calloc(FRONT_WORKERS_MAX, sizeof *c->thread);
    return c->report != NULL && c->thread != NULL ? ERR_OK : ERR_NOMEM;
}

void front_core_close(struct front_core *c)
{
    free(c->report);
    free(c->thread);
    c->report = NULL;
    c->thread = NULL;
}

void front_core_begin(struct front_core *c, uint64_t job)
{
    c->job = job;
    c->reports = 0;
    c->wait_until_us = c->missing_us = 0;
    c->refused = 0;
}

static unsigned silent_longest(const struct front_core *c)
{
    unsigned found = 0;
    for (unsigned i = 1; i < c->reports; i++) {
        found = c->report[i].received_us < c->report[found].received_us ? i : found;
    }
    return found;
}

/* Lines of words are printed with it: one word, never none. */
static void keep_name(struct proto_text name, char *out, size_t size)
{
    proto_text_printable(name.length > 0 ? name : proto_text_of("?"), out, size);
    for (char *at = out; *at != '\0'; at++) {
        *at = *at == ' ' ? '_' : *at;
    }
}

void front_core_event(struct front_core *c, const struct client_event *e, uint64_t now_us)
{
    CHECK_THAT(e->shard < CLIENT_SHARDS_MAX, "each source has a bit");
    if (e->kind == CLIENT_JOB_REFUSED && e->refused.job == c->job && c->job != 0) {
        c->refused |= UINT64_C(1) << e->shard;
        proto_text_printable(*e->refused.why, c->why[e->shard], FRONT_WHY_MAX);
    }
    if (e->kind != CLIENT_JOB_REPORT || c->job == 0 || e->job_report->job != c->job ||
        proto_report_fault(e->job_report) != NULL) {
        return;
    }
    c->refused &= ~(UINT64_C(1) << e->shard); /* who passes on reports has the job by now */
    unsigned i = 0;
    while (i < c->reports && c->report[i].last.instance != e->job_report->instance) {
        i++;
    }
    bool is_known = i < c->reports;
    if (i == FRONT_WORKERS_MAX) {
        i = silent_longest(c);
        c->reports--;
    }
    c->reports += !is_known;
    CHECK_THAT(c->reports <= FRONT_WORKERS_MAX && i < c->reports, "a report has a place");
    struct front_report *r = &c->report[i];
    if (!is_known) {
        r->searched_us = 0;
    } else if (r->last.state == PROTO_JOB_SEARCHING) {
        r->searched_us += now_us - r->received_us;
    }
    r->received_us = now_us;
    if (!is_known || proto_report_is_newer(e->job_report, &r->last)) {
        r->last = *e->job_report;
        r->last.line = r->last.name = r->last.why = proto_text_of("");
        keep_name(e->job_report->name, r->name, sizeof r->name);
    }
}

static bool is_alive(const struct front_core *c, const struct front_report *report, uint64_t now_us)
{
    return now_us < report->received_us + c->alive_ms * UINT64_C(1000);
}

void front_core_sum(const struct front_core *c, uint64_t now_us, struct front_sum *out)
{
    struct front_sum sum = {.workers = 0};
    for (unsigned i = 0; i < c->reports; i++) {
        const struct front_report *r = &c->report[i];
        bool has_refused = r->last.state == PROTO_JOB_REFUSED;
        sum.workers += is_alive(c, r, now_us) && !has_refused;
        sum.refused += is_alive(c, r, now_us) && has_refused;
        const struct counters reported = job_report_counters(&r->last);
        sum.searched_us += r->searched_us;
        counters_add(&sum.counters, &reported);
    }
    CHECK_THAT(sum.workers + sum.refused <= c->reports, "each worker reports, and is counted once");
    *out = sum;
}

/* It searches, as far as is known, and should have reported by now. */
static bool is_missed(const struct front_core *c, const struct front_report *r, uint64_t now_us)
{
    return r->last.state == PROTO_JOB_SEARCHING &&
           (now_us >= r->received_us + FRONT_SILENT_MS * UINT64_C(1000) ||
            (c->missing_us != 0 && now_us >= c->missing_us));
}

static int by_nodes(const void *a, const void *b)
{
    const struct front_host *x = a, *y = b;
    const uint64_t nodes = x->sum.nodes, other = y->sum.nodes;
    return nodes != other ? (nodes < other) - (nodes > other) : strcmp(x->name, y->name);
}

unsigned front_core_hosts(const struct front_core *c, uint64_t now_us, struct front_host *out)
{
    unsigned threads = 0;
    for (unsigned i = 0; i < c->reports; i++) {
        if (c->report[i].last.state != PROTO_JOB_REFUSED) {
            c->thread[threads++] = (struct process_thread){.name = c->report[i].name, .index = i};
        }
    }
    const unsigned hosts = process_name_group(c->thread, threads);
    CHECK_THAT(hosts <= threads && threads <= c->reports, "a host has threads, each with a report");
    for (unsigned i = 0; i < threads; i++) {
        const struct process_thread *t = &c->thread[i];
        struct front_host *host = &out[t->process];
        if (i == 0 || t->process != t[-1].process) {
            *host = (struct front_host){.is_gone = true};
            memcpy(host->name, t->name, t->length);
        }
        const struct front_report *r = &c->report[t->index];
        const uint64_t silent_us = now_us - r->received_us;
        const struct counters reported = job_report_counters(&r->last);
        host->is_gone &= is_missed(c, r, now_us) || !is_alive(c, r, now_us);
        host->silent_us =
            host->searchers == 0 || silent_us < host->silent_us ? silent_us : host->silent_us;
        host->searchers++;
        host->searched_us += r->searched_us;
        counters_add(&host->sum, &reported);
    }
    if (hosts > 0) {
        qsort(out, hosts, sizeof *out, by_nodes);
    }
    return hosts;
}

double front_host_talking(const struct front_host *host)
{
    return host->searched_us == 0 ? -1
           : host->sum.talked_us > host->searched_us
               ? 1 /* its clock is not ours */
               : (double)host->sum.talked_us / (double)host->searched_us;
}

void front_core_stop(struct front_core *c, uint32_t wait_ms, uint64_t now_us)
{
    c->missing_us = wait_ms >= FRONT_WAIT_MS ? now_us + wait_ms * UINT64_C(1000) : 0;
    c->wait_until_us = now_us + wait_ms * UINT64_C(1000);
}

bool front_core_waits(const struct front_core *c, unsigned shards_up, uint64_t now_us)
{
    bool is_missing = false;
    for (unsigned i = 0; i < c->reports && !is_missing; i++) {
        const struct front_report *r = &c->report[i];
        is_missing = r->last.state == PROTO_JOB_SEARCHING && is_alive(c, r, now_us);
    }
    return is_missing && shards_up > 0 && now_us < c->wait_until_us;
}

void front_core_await(struct front_core *c, struct searcher *searcher, uint32_t wait_ms)
{
    front_core_stop(c, wait_ms, remote_now_us(searcher->remote));
    while (front_core_waits(c, client_shards_up(remote_client(searcher->remote)),
                            remote_now_us(searcher->remote))) {
        remote_wait(searcher->remote, WAIT_STEP_MS);
    }
}
