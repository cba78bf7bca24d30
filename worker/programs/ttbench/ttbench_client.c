#include "worker/programs/ttbench/ttbench_client.h"

#include "common/clock.h"
#include "common/rng.h"
#include "proto/transport/lane.h"

#include <stdlib.h>
#include <string.h>

enum {
    SLICE_US = 100000,
    SILENCE_US = 2000000, /* a message without an answer for so long is lost, ... */
    SILENCE_MAX_US = 60000000, /* ... or for a microsecond an ask under way, where that is more */
    TICKETS_MAX = 1024, /* of a client of the protocol */
};

/* One ask message. */
struct flight {
    uint32_t ticket, count;
    uint64_t sent_ns;
    uint32_t *visit;
    struct tt_ask *ask;
    uint8_t *where;
};

/* What is under way at one shard, which answers in order: flights from `oldest` on, `out` of them.
 */
struct line {
    struct flight *flight; /* a ring of window + 1 */
    uint32_t oldest, out; /* the one after these is not sent yet */
};

struct ttbench_client {
    /* fixed after open */
    struct ttbench_plan plan;
    unsigned shards, tickets;
    struct zeromq *zeromq;
    struct client_lane lane;
    struct line line[OPTIONS_SERVERS_MAX];
    struct tt_answer *answer; /* batch */
    struct client_counters before; /* of the client when all shards were up */
    /* state */
    uint32_t out; /* flights at all shards */
    uint32_t next; /* visit */
    uint64_t lap_key, lap; /* lap_key: XORed into every key of the lap */
    uint64_t credit; /* stores due by the mix */
    unsigned figures_due; /* shards that owe their figures */
    int sign; /* of these */
    /* statistics */
    struct ttbench_counters count;
    struct histogram latency_ns;
};

/* ---- what to ask ---- */

static struct flight *flight_at(const struct ttbench_client *c, const struct line *line, uint32_t n)
{
    uint32_t at = line->oldest + n, ring = c->plan.window + 1;
    return &line->flight[at < ring ? at : at - ring];
}

/* False: the transport does not take it now. */
static bool send_asks(struct ttbench_client *c, struct line *line, struct flight *flight)
{
    flight->sent_ns = clock_ns();
    flight->ticket = client_ask(c->lane.client, flight->ask, flight->count, flight->sent_ns / 1000,
                                flight->where);
    line->out += flight->ticket != 0;
    c->out += flight->ticket != 0;
    return flight->ticket != 0;
}

/* Asks for the next visit. False: the window of its shard is full, or no shard is up. */
static bool ask_next(struct ttbench_client *c)
{
    const struct ttbench_load *load = c->plan.load;
    const struct ttbench_visit *visit = &load->visit[c->next];
    uint64_t key = visit->ask.key ^ c->lap_key;
    unsigned shard = client_owner(c->lane.client, key);
    if (shard == CLIENT_NOWHERE || c->out == c->tickets || c->line[shard].out == c->plan.window) {
        return false;
    }
    struct line *line = &c->line[shard];
    struct flight *flight = flight_at(c, line, line->out);
    if (flight->count == c->plan.batch) {
        return send_asks(c, line, flight);
    }
    struct tt_ask *ask = &flight->ask[flight->count];
    *ask = visit->ask;
    ask->key = key;
    ask->slot = (uint16_t)(flight - line->flight);
    flight->visit[flight->count++] = c->next;
    if (++c->next == load->count) {
        c->next = 0;
        c->lap_key = rng_mix(c->plan.namespace_id) ^ rng_mix(++c->lap);
    }
    return flight->count < c->plan.batch || send_asks(c, line, flight);
}

/* ---- what was answered ---- */

/* Ends a visit: each OPEN needs a store or a release. */
static void end_visit(struct ttbench_client *c, unsigned where, const struct tt_ask *ask,
                      const struct ttbench_visit *visit, bool is_open)
{
    const struct ttbench_mix *mix = &c->plan.mix;
    uint32_t stores = is_open && visit->is_stored;
    if (mix->asks != 0) {
        c->credit += mix->stores;
        stores = (uint32_t)(c->credit / mix->asks);
        c->credit %= mix->asks;
    }
    if (stores == 0 && is_open) {
        struct tt_release release = {ask->key, ask->depth, ask->slot};
        client_release(c->lane.client, where, &release);
    }
    struct tt_store store = {
        .key = ask->key,
        .depth = ask->depth,
        .score = visit->score,
        .bound = visit->bound,
        .move = visit->move,
        .slot = ask->slot,
    };
    for (; stores > 0; stores--) {
        client_store(c->lane.client, where, &store);
    }
}

static void take_answers(struct ttbench_client *c, const struct flight *flight)
{
    for (uint32_t i = 0; i < flight->count; i++) {
        unsigned verdict = c->answer[i].verdict;
        if (verdict == CLIENT_UNANSWERED) {
            c->count.lost++;
            continue;
        }
        c->count.asks++;
        c->count.opens += verdict == TT_OPEN;
        c->count.cuts += verdict == TT_CUT;
        c->count.busy += verdict == TT_BUSY;
        end_visit(c, flight->where[i], &flight->ask[i], &c->plan.load->visit[flight->visit[i]],
                  verdict == TT_OPEN);
    }
}

/* Ends flights that were answered, or are lost. A shard that lost one is out, and will be asked to
 * release all. */
static void end_flights(struct ttbench_client *c, struct line *line, uint64_t now_ns)
{
    for (; line->out > 0; line->out--, c->out--) {
        struct flight *flight = flight_at(c, line, 0);
        enum client_result result =
            client_answer(c->lane.client, flight->ticket, now_ns / 1000, c->answer);
        if (result == CLIENT_WAITING) {
            return;
        }
        if (result == CLIENT_READY) {
            histogram_add(&c->latency_ns, now_ns - flight->sent_ns);
            take_answers(c, flight);
        } else {
            c->count.lost += flight->count;
        }
        flight->count = 0;
        line->oldest = line->oldest < c->plan.window ? line->oldest + 1 : 0;
    }
}

static bool is_named(const struct proto_text *text, const char *name)
{
    return strlen(name) == text->length && memcmp(name, text->at, text->length) == 0;
}

static void add_figures(const struct proto_figures *list, struct ttbench_answers *sum, int sign)
{
    for (uint32_t i = 0; i < list->count; i++) {
        const struct proto_figure *figure = &list->at[i];
#define X(field) sum->field += is_named(&figure->name, #field) ? (uint64_t)sign * figure->value : 0;
        TTBENCH_ANSWERS(X)
#undef X
    }
}

/* Takes a message, or waits for one, SLICE_US at most. What it answers is followed by new asks
 * before another one is looked for: at that time the shard has work. */
static void receive(struct ttbench_client *c)
{
    struct client_event e;
    bool any = lane_receive(&c->lane);
    uint64_t now_ns = clock_ns();
    while (lane_event(&c->lane, &e)) {
        if (e.kind == CLIENT_STATS && c->figures_due > 0) {
            add_figures(&e.stats->list, c->plan.shards, c->sign);
            c->figures_due--;
        }
    }
    if (!any) {
        uint64_t tick_us = lane_tick(&c->lane), slice_us = now_ns / 1000 + SLICE_US;
        lane_sleep(&c->lane, tick_us < slice_us ? tick_us : slice_us);
        c->count.waited_ns += clock_ns() - now_ns;
    }
    for (unsigned i = 0; i < c->shards; i++) {
        end_flights(c, &c->line[i], now_ns);
    }
}

void *ttbench_client_run(void *client)
{
    struct ttbench_client *c = client;
    bool stops = false;
    while (!stops || c->out > 0) {
        while (!stops && ask_next(c)) {
            stops = atomic_load_explicit(c->plan.stop, memory_order_relaxed);
        }
        receive(c);
        stops = stops || atomic_load_explicit(c->plan.stop, memory_order_relaxed);
    }
    client_flush(c->lane.client, lane_now(&c->lane));
    return NULL;
}

/* ---- life ---- */

static bool open_arrays(struct ttbench_client *c)
{
    bool ok = (c->answer = calloc(c->plan.batch, sizeof *c->answer)) != NULL;
    for (unsigned i = 0; i < c->shards && ok; i++) {
        struct line *line = &c->line[i];
        ok = (line->flight = calloc(c->plan.window + 1, sizeof *line->flight)) != NULL;
        for (uint32_t f = 0; f <= c->plan.window && ok; f++) {
            struct flight *flight = &line->flight[f];
            flight->visit = calloc(c->plan.batch, sizeof *flight->visit);
            flight->ask = calloc(c->plan.batch, sizeof *flight->ask);
            flight->where = calloc(c->plan.batch, sizeof *flight->where);
            ok = flight->visit != NULL && flight->ask != NULL && flight->where != NULL;
        }
    }
    return ok;
}

static enum err open_lane(struct ttbench_client *c, const struct ttbench_client *first,
                          unsigned index)
{
    const struct ttbench_plan *plan = &c->plan;
    uint64_t silence_us = SILENCE_US + (uint64_t)plan->clients * plan->window * plan->batch;
    uint32_t rto_us = silence_us < SILENCE_MAX_US ? (uint32_t)silence_us : SILENCE_MAX_US;
    struct client_options options = {
        .shards = c->shards,
        .role = PROTO_CLIENT,
        .hello_flags = PROTO_RELEASE_ALL,
        .namespace_id = plan->namespace_id,
        .instance = plan->namespace_id + index + 1,
        .name = "ttbench",
        .rto_min_us = rto_us,
        .rto_max_us = rto_us,
        .timeouts_in_row = 1,
        .keeps_slow = true,
        .linger_us = SILENCE_US, /* stores of an answer go with the next ask */
        .tickets = c->tickets,
        .ask_max = plan->batch,
        .peek_max = 1,
        .queue = plan->batch,
    };
    enum err err =
        zeromq_open(&c->zeromq, plan->context, plan->servers->server, c->shards, plan->keys, NULL,
                    first != NULL ? first->zeromq : NULL, ZEROMQ_WATCHES | ZEROMQ_UNLIMITED);
    if (err == ERR_OK) {
        c->lane.shell = zeromq_shell(c->zeromq);
        err = lane_open(&c->lane, &options);
    }
    return err;
}

static enum err await_welcomes(struct ttbench_client *c, unsigned wait_ms, unsigned *shard,
                               const char **why)
{
    uint64_t end_us = clock_us() + wait_ms * UINT64_C(1000);
    bool is_final;
    for (*shard = 0; *shard < c->shards; ++*shard) {
        while (client_shard_state(c->lane.client, *shard) != CLIENT_UP) {
            *why = zeromq_refusal(c->zeromq, *shard, &is_final);
            if (*why != NULL || clock_us() >= end_us) {
                return ERR_DOWN;
            }
            receive(c);
        }
    }
    return ERR_OK;
}

enum err ttbench_client_open(struct ttbench_client **out, const struct ttbench_plan *plan,
                             const struct ttbench_client *first, unsigned index, unsigned wait_ms,
                             unsigned *shard, const char **why)
{
    struct ttbench_client *c = calloc(1, sizeof *c);
    enum err err = ERR_NOMEM;
    *shard = 0;
    *why = NULL;
    if (c != NULL) {
        c->plan = *plan;
        c->shards = plan->servers->count;
        c->tickets = plan->window * c->shards;
        c->tickets = c->tickets < TICKETS_MAX ? c->tickets : TICKETS_MAX;
        c->lap_key = rng_mix(plan->namespace_id);
        /* All begin in the same lap, near each other: results stored by one are found by the
         * others. */
        c->next = index * 997 % plan->load->count;
        err = open_arrays(c) ? open_lane(c, first, index) : ERR_NOMEM;
    }
    if (err == ERR_OK) {
        err = await_welcomes(c, wait_ms, shard, why);
    }
    if (err != ERR_OK) {
        ttbench_client_close(&c);
        return err;
    }
    c->before = *client_counters(c->lane.client);
    c->count = (struct ttbench_counters){0};
    *out = c;
    return ERR_OK;
}

void ttbench_client_close(struct ttbench_client **client)
{
    struct ttbench_client *c = *client;
    if (c == NULL) {
        return;
    }
    lane_close(&c->lane);
    zeromq_close(&c->zeromq);
    for (unsigned i = 0; i < c->shards; i++) {
        struct flight *flight = c->line[i].flight;
        for (uint32_t f = 0; flight != NULL && f <= c->plan.window; f++) {
            free(flight[f].visit);
            free(flight[f].ask);
            free(flight[f].where);
        }
        free(flight);
    }
    free(c->answer);
    free(c);
    *client = NULL;
}

void ttbench_client_read(const struct ttbench_client *c, struct ttbench_counters *sum,
                         struct histogram *latency_ns)
{
    const struct client_counters *now = client_counters(c->lane.client);
#define X(name) sum->name += c->count.name;
    TTBENCH_OWN(X)
#undef X
#define X(name, counted) sum->name += now->counted - c->before.counted;
    TTBENCH_OF_CLIENT(X)
#undef X
    histogram_merge(latency_ns, &c->latency_ns);
}

enum err ttbench_client_stats(struct ttbench_client *c, int sign)
{
    uint64_t end_us = clock_us() + SILENCE_US;
    c->sign = sign;
    c->figures_due = c->shards;
    for (unsigned i = 0; i < c->shards; i++) {
        if (!client_stats(c->lane.client, i, lane_now(&c->lane))) {
            return ERR_DOWN;
        }
    }
    while (c->figures_due > 0 && clock_us() < end_us &&
           client_shards_up(c->lane.client) == c->shards) {
        receive(c);
    }
    return c->figures_due == 0 ? ERR_OK : ERR_DOWN;
}
