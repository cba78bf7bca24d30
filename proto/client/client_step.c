#include "proto/client/client_core.h"

#include <stdlib.h>
#include <string.h>

/* ---- opening ---- */

static unsigned or_default(unsigned value, unsigned fallback)
{
    return value != 0 ? value : fallback;
}

static unsigned power_of_two(unsigned at_least)
{
    unsigned n = 1;
    while (n < at_least) {
        n *= 2;
    }
    return n;
}

static enum err complete(struct client_options *o)
{
    o->rto_min_us = or_default(o->rto_min_us, 2000);
    o->rto_max_us = or_default(o->rto_max_us, 250000);
    o->timeouts_in_row = or_default(o->timeouts_in_row, 3);
    o->probe_us = or_default(o->probe_us, 100000);
    o->linger_us = or_default(o->linger_us, 1000);
    o->tickets = or_default(o->tickets, 64);
    o->ask_max = or_default(o->ask_max, 1);
    o->peek_max = or_default(o->peek_max, 256);
    o->lists = or_default(o->lists, o->tickets);
    o->queue = or_default(o->queue, 64);
    o->jobs = or_default(o->jobs, 2);
    o->version = or_default(o->version, PROTO_VERSION);
    bool ok = o->shards >= 1 && o->shards <= CLIENT_SHARDS_MAX && o->rto_min_us <= o->rto_max_us &&
              o->rto_max_us <= 60000000 && o->tickets <= 1024 && o->ask_max <= PROTO_BATCH_MAX &&
              o->peek_max <= PROTO_BATCH_MAX && o->lists <= o->tickets &&
              o->queue <= PROTO_BATCH_MAX && o->jobs <= 64 && o->version >= PROTO_LOWEST &&
              o->version <= PROTO_VERSION;
    return ok ? ERR_OK : ERR_RANGE;
}

/* The longest message we can be made to write, but JOB_POST. */
static size_t scratch_size(const struct client_options *o)
{
    enum { STORE = 24, ASK = 24, PEEK = 12, WEIGHT = 9, HEAD = 64 };
    const size_t sizes[] = {o->queue * STORE, o->ask_max * ASK, o->peek_max * PEEK,
                            CLIENT_WEIGHTS_MAX * WEIGHT, CLIENT_SHARE_MAX * STORE};
    size_t most = 0;
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        most = sizes[i] > most ? sizes[i] : most;
    }
    return HEAD + most;
}

static bool rows_open(struct rows *rows, const struct client_options *o)
{
    rows->size = o->ask_max > o->peek_max ? o->ask_max : o->peek_max;
    size_t size = (size_t)o->lists * rows->size;
    rows->peeked = calloc(size, sizeof *rows->peeked);
    rows->owner = calloc(size, sizeof *rows->owner);
    rows->free = calloc(o->lists, sizeof *rows->free);
    bool ok = rows->peeked && rows->owner && rows->free;
    if (o->ask_max > 1) {
        rows->asks = calloc(size, sizeof *rows->asks);
        rows->answers = calloc(size, sizeof *rows->answers);
        ok = ok && rows->asks && rows->answers;
    }
    while (ok && rows->free_count < o->lists) {
        rows->free[rows->free_count] = (uint16_t)rows->free_count;
        rows->free_count++;
    }
    return ok;
}

static void rows_free(struct rows *rows)
{
    free(rows->asks);
    free(rows->answers);
    free(rows->peeked);
    free(rows->owner);
    free(rows->free);
}

static bool allocate(struct client *c)
{
    const struct client_options *o = &c->options;
    unsigned shards_per_ticket = o->shards < 8 ? o->shards : 8;
    unsigned tickets = power_of_two(o->tickets);
    c->part_limit = o->tickets * shards_per_ticket + o->shards * (HELLOS_MAX + OTHERS_MAX);
    unsigned parts = power_of_two(2 * c->part_limit);
    CHECK(parts < PART_NONE);

    c->ticket_mask = tickets - 1;
    c->part_mask = parts - 1;
    c->scratch_size = scratch_size(o);
    c->shards = calloc(o->shards, sizeof *c->shards);
    c->parts = calloc(parts, sizeof *c->parts);
    c->tickets = calloc(tickets, sizeof *c->tickets);
    c->gathered = calloc(o->peek_max, sizeof *c->gathered);
    c->gathered_asks = calloc(o->ask_max, sizeof *c->gathered_asks);
    c->jobs = calloc(o->jobs, sizeof *c->jobs);
    c->scratch = malloc(c->scratch_size);
    c->decoder = o->decoder ? o->decoder : malloc(sizeof *c->decoder);
    bool ok = c->shards && c->parts && c->tickets && rows_open(&c->rows, o) && c->gathered &&
              c->gathered_asks && c->jobs && c->scratch && c->decoder;
    for (unsigned s = 0; ok && s < o->shards; s++) {
        struct queue *q = &c->shards[s].queue;
        q->stores = calloc(o->queue, sizeof *q->stores);
        q->releases = calloc(o->queue, sizeof *q->releases);
        ok = q->stores && q->releases;
        rtt_reset(&c->shards[s].rtt, o->rto_min_us, o->rto_max_us);
        c->shards[s].version = o->version;
    }
    return ok;
}

enum err client_open(const struct client_options *options, const struct client_port *port,
                     struct client **out)
{
    struct client_options completed = *options;
    enum err error = complete(&completed);
    if (error) {
        return error;
    }
    struct client *c = calloc(1, sizeof *c);
    if (!c) {
        return ERR_NOMEM;
    }
    c->options = completed;
    c->port = *port;
    if (options->name) {
        (void)proto_text_copy(proto_text_of(options->name), c->name, sizeof c->name);
    }
    c->options.name = c->name;
    c->oldest = c->newest = PART_NONE;
    c->next_expiry_us = UINT64_MAX;
    c->next_request = c->next_ticket = 1;
    if (!allocate(c)) {
        client_free(&c);
        return ERR_NOMEM;
    }
    *out = c;
    return ERR_OK;
}

void client_free(struct client **client)
{
    struct client *c = *client;
    if (!c) {
        return;
    }
    for (unsigned s = 0; c->shards && s < c->options.shards; s++) {
        free(c->shards[s].queue.stores);
        free(c->shards[s].queue.releases);
    }
    if (!c->options.decoder) {
        free(c->decoder);
    }
    free(c->shards);
    free(c->parts);
    free(c->tickets);
    rows_free(&c->rows);
    free(c->gathered);
    free(c->gathered_asks);
    free(c->jobs);
    free(c->scratch);
    free(c);
    *client = NULL;
}

/* ---- in ---- */

/* Ends the request of shard_query that a message answers; all these have it as their first field.
 * False: it was not outstanding. */
static bool answers(struct client *c, unsigned shard, enum part_kind kind,
                    const struct proto_message *m)
{
    struct part *part = shard_answered(c, shard, kind, m->heartbeat.request);
    if (part) {
        part_close(c, part);
    }
    return part != NULL;
}

static void on_bye(struct client *c, unsigned shard)
{
    struct shard *s = &c->shards[shard];
    shard_fall(c, shard, CLIENT_DOWN);
    queue_drop_releases(c, shard);
    s->hello_due_us = c->now_us + c->options.probe_us;
}

/* What is out of its range must not reach the search: it is counted, and is no event. */
static void put_if(struct client *c, bool is_in_range, struct client_event event)
{
    c->counters.malformed += !is_in_range;
    if (is_in_range) {
        event_put(c, event);
    }
}

static void on_share(struct client *c, unsigned shard, const struct proto_share *m)
{
    bool ok = proto_shared_in_range(&m->list);
    c->counters.shares_taken += ok;
    c->counters.shared_taken += ok ? m->list.count : 0;
    put_if(c, ok, (struct client_event){CLIENT_SHARED, shard, .shared = m});
}

static void apply(struct client *c, unsigned shard, const struct proto_message *m)
{
#define EVENT(kind, field, from) ((struct client_event){CLIENT_##kind, shard, .field = &m->from})
    switch (m->type) {
    case PROTO_WELCOME:
        shard_on_welcome(c, shard, m);
        break;
    case PROTO_RETRIEVE_ANSWER:
        table_on_answer(c, shard, &m->retrieve_answer);
        break;
    case PROTO_PEEK_ANSWER:
        table_on_peek_answer(c, shard, &m->peek_answer);
        break;
    case PROTO_HEARTBEAT:
        (void)answers(c, shard, PART_HEARTBEAT, m);
        break;
    case PROTO_STATS_ANSWER:
        if (answers(c, shard, PART_STATS, m)) {
            event_put(c, EVENT(STATS, stats, stats_answer));
        }
        break;
    case PROTO_MEMBERS_ANSWER:
        if (answers(c, shard, PART_MEMBERS, m)) {
            event_put(c, EVENT(MEMBERS, members, members_answer));
        }
        break;
    case PROTO_JOBS_ANSWER:
        if (answers(c, shard, PART_JOBS, m)) {
            event_put(c, EVENT(JOBS, jobs, jobs_answer));
        }
        break;
    case PROTO_HISTORY_ANSWER:
        if (answers(c, shard, PART_HISTORY, m)) {
            put_if(c, proto_weights_in_range(&m->history_answer.list),
                   EVENT(HISTORY, history, history_answer));
        }
        break;
    case PROTO_SCANNED:
        if (answers(c, shard, PART_SCAN, m)) {
            put_if(c, proto_entries_in_range(&m->scanned.list), EVENT(SCANNED, scanned, scanned));
        }
        break;
    case PROTO_MAIL_LIST:
        if (answers(c, shard, PART_MAIL, m)) {
            event_put(c, EVENT(CORRESPONDENTS, correspondents, mail_list));
        }
        break;
    case PROTO_MAIL:
        event_put(c, EVENT(MAIL, mail, mail));
        break;
    case PROTO_FLUSHED:
        (void)shard_on_flushed(c, shard, m->flushed.request, NULL);
        break;
    case PROTO_ERROR:
        shard_on_error(c, shard, m);
        break;
    case PROTO_BYE:
        on_bye(c, shard);
        break;
    case PROTO_JOB:
        event_put(c, EVENT(JOB, job, job));
        break;
    case PROTO_JOB_STOP:
        event_put(c, EVENT(JOB_STOP, job_stop, job_stop));
        break;
    case PROTO_JOB_REPORT:
        put_if(c, proto_report_fault(&m->job_report) == NULL,
               EVENT(JOB_REPORT, job_report, job_report));
        break;
    case PROTO_WORKER_INDEX:
        event_put(c, EVENT(WORKER_INDEX, worker_index, worker_index));
        break;
    case PROTO_NODE_DONE:
        put_if(c, proto_results_in_range(&m->node_done.list),
               EVENT(NODE_DONE, node_done, node_done));
        break;
    case PROTO_SHARE:
        on_share(c, shard, &m->share);
        break;
    default:
        c->counters.unexpected++;
        break;
    }
#undef EVENT
}

/* A shard that speaks no version of ours says so in its own. */
static bool is_spoken(const struct client *c, const struct proto_message *m)
{
    bool refuses_version = m->type == PROTO_ERROR && m->error.code == PROTO_ERR_VERSION;
    return refuses_version || (m->version >= PROTO_LOWEST && m->version <= c->options.version);
}

void client_receive(struct client *c, unsigned shard, const uint8_t *bytes, size_t length,
                    uint64_t now_us)
{
    struct proto_message *m = &c->message;
    CHECK(shard < c->options.shards);
    CHECK_THAT(!c->has_event, "client: events are taken before the next message");
    client_advance(c, now_us);
    c->counters.messages_received++;
    c->counters.bytes_received += length;
    if (proto_decode(c->decoder, bytes, length, m) != ERR_OK || !is_spoken(c, m)) {
        c->counters.malformed++;
        return;
    }
    const struct shard *s = &c->shards[shard];
    bool begins = m->type == PROTO_WELCOME || m->type == PROTO_ERROR || m->type == PROTO_BYE;
    if (s->state == CLIENT_ABSENT || s->state == CLIENT_LEFT || (!s->known && !begins)) {
        c->counters.unexpected++;
        return;
    }
    apply(c, shard, m);
}

/* ---- time ---- */

uint64_t client_tick(struct client *c, uint64_t now_us)
{
    uint64_t next = UINT64_MAX;
    client_advance(c, now_us);
    part_expire(c);
    for (unsigned s = 0; s < c->options.shards; s++) {
        uint64_t due = shard_tick(c, s);
        next = due < next ? due : next;
    }
    return next < c->next_expiry_us ? next : c->next_expiry_us;
}

/* ---- reading ---- */

unsigned client_shards_up(const struct client *c)
{
    return c->up_count;
}

enum client_state client_shard_state(const struct client *c, unsigned shard)
{
    CHECK(shard < c->options.shards);
    return c->shards[shard].state;
}

uint64_t client_shard_boot(const struct client *c, unsigned shard)
{
    CHECK(shard < c->options.shards);
    return c->shards[shard].boot;
}

uint64_t client_shard_place(const struct client *c, unsigned shard)
{
    CHECK(shard < c->options.shards);
    return c->shards[shard].place;
}

uint32_t client_inflight_age_max_ms(const struct client *c, unsigned shard)
{
    CHECK(shard < c->options.shards);
    return c->shards[shard].inflight_age_max_ms;
}

uint32_t client_shard_version(const struct client *c, unsigned shard)
{
    CHECK(shard < c->options.shards);
    return c->shards[shard].version;
}

uint32_t client_rtt_us(const struct client *c, unsigned shard)
{
    CHECK(shard < c->options.shards);
    return rtt_smoothed_us(&c->shards[shard].rtt);
}

uint32_t client_longest_rtt_us(const struct client *c)
{
    uint32_t longest = 1;
    for (unsigned i = 0; i < c->options.shards; i++) {
        uint32_t rtt = rtt_smoothed_us(&c->shards[i].rtt);
        longest = c->shards[i].state == CLIENT_UP && rtt > longest ? rtt : longest;
    }
    return longest;
}

unsigned client_outstanding(const struct client *c)
{
    return c->part_count;
}

unsigned client_overdue(const struct client *c, uint64_t now_us)
{
    unsigned n = 0;
    for (uint16_t i = c->oldest; i != PART_NONE; i = c->parts[i].next) {
        n += c->parts[i].deadline_us + c->options.rto_max_us < now_us;
    }
    return n;
}

const struct client_counters *client_counters(const struct client *c)
{
    return &c->counters;
}
