#include "proto/client/client_state.h"

#include <stdlib.h>

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
    bool ok = o->shards >= 1 && o->shards <= CLIENT_SHARDS_MAX && o->rto_min_us <= o->rto_max_us &&
              o->rto_max_us <= 60000000 && o->tickets <= 1024 && o->ask_max <= PROTO_BATCH_MAX &&
              o->peek_max <= PROTO_BATCH_MAX && o->lists <= o->tickets &&
              o->queue <= PROTO_BATCH_MAX && o->jobs <= 64;
    return ok ? ERR_OK : ERR_RANGE;
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

static bool allocate(struct client *c)
{
    const struct client_options *o = &c->options;
    unsigned shards_per_ticket = o->shards < 8 ? o->shards : 8;
    unsigned tickets = power_of_two(o->tickets);
    c->part_limit = o->tickets * shards_per_ticket + o->shards * (HELLOS_MAX + OTHERS_MAX);
    unsigned parts = power_of_two(2 * c->part_limit);

    c->ticket_mask = tickets - 1;
    c->part_mask = parts - 1;
    /* The longest message that we can be made to write. */
    enum { STORE = 24, ASK = 24, PEEK = 12, HEAD = 64 };
    const size_t sizes[] = {o->queue * STORE, o->ask_max * ASK, o->peek_max * PEEK,
                            CLIENT_SHARE_MAX * STORE, PROTO_JOB_BYTES};
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        c->scratch_size = HEAD + sizes[i] > c->scratch_size ? HEAD + sizes[i] : c->scratch_size;
    }
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
    }
    return ok;
}

enum err client_open(const struct client_options *options,
                     bool (*send)(void *self, unsigned shard, const uint8_t *bytes, size_t length),
                     void *self, struct client **out)
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
    c->send = send;
    c->self = self;
    if (options->name) {
        (void)proto_text_copy(proto_text_of(options->name), c->name, sizeof c->name);
    }
    c->options.name = c->name;
    TAILQ_INIT(&c->outstanding);
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
    free(c->rows.asks);
    free(c->rows.answers);
    free(c->rows.peeked);
    free(c->rows.owner);
    free(c->rows.free);
    free(c->gathered);
    free(c->gathered_asks);
    free(c->jobs);
    free(c->scratch);
    free(c);
    *client = NULL;
}

/* ---- what it knows ---- */

unsigned client_shards_up(const struct client *c)
{
    return c->up_count;
}

struct client_shard client_shard(const struct client *c, unsigned shard)
{
    CHECK(shard < c->options.shards);
    const struct shard *s = &c->shards[shard];
    return (struct client_shard){s->state, s->boot, s->place, s->inflight_age_max_ms,
                                 rtt_smoothed_us(&s->rtt)};
}

uint64_t client_renewal_us(const struct client *c)
{
    enum { RENEWALS = 4 /* in the time that a shard keeps an entry */, RENEWAL_MAX_US = 15000000 };
    uint64_t least = RENEWAL_MAX_US;
    for (unsigned i = 0; i < c->options.shards; i++) {
        uint64_t us = c->shards[i].inflight_age_max_ms * UINT64_C(1000) / RENEWALS;
        least = us > 0 && us < least ? us : least;
    }
    return least;
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
    const struct part *part;
    TAILQ_FOREACH(part, &c->outstanding, in_order)
    {
        n += part->deadline_us + c->options.rto_max_us < now_us;
    }
    return n;
}

const struct client_counters *client_counters(const struct client *c)
{
    return &c->counters;
}
