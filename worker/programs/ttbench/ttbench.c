/* abdada ttbench: operations a second and round trips of shards under load.
 *
 * Each client is a thread with a client of the protocol (proto/client/client.h). Clients replay a
 * load in laps; in a lap all clients use the same keys, in the next lap other ones. */
#include "worker/programs/cli.h"
#include "worker/programs/json.h"
#include "worker/programs/ttbench/ttbench_load.h"

#include "common/clock.h"
#include "common/config.h"
#include "common/histogram.h"
#include "common/host_lookup.h"
#include "common/log.h"
#include "common/rng.h"
#include "common/signals.h"
#include "proto/lane/lane.h"
#include "proto/lane/zeromq.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

static const char program[] = "abdada ttbench";

enum {
    CLIENTS_MAX = 256,
    WINDOW_MAX = 256,
    WAIT_MS = 2000,
    MIX_MAX = 1000,
    STOP_SLICE_NS = 20000000,
    SLICE_US = 100000,
    SILENCE_US = 2000000, /* a message without an answer for so long is lost, ... */
    SILENCE_MAX_US = 60000000, /* ... or for a microsecond an ask under way, where that is more */
    TICKETS_MAX = 1024, /* of a client of the protocol */
};

/* Counters of a client, and of all together: what shards count, too; what is counted here; what the
 * client of the protocol counts, under the same names. */
#define ANSWERS(X) X(asks) X(cuts) X(busy) X(opens) X(stores) X(releases)
#define OWN(X) X(asks) X(cuts) X(busy) X(opens) X(lost) X(waited_ns)
#define OPERATIONS(X) X(stores) X(releases) X(refused) X(malformed) X(dropped)
#define TRAFFIC(X) X(messages_sent) X(messages_received) X(bytes_sent) X(bytes_received)
#define OF_EACH_KIND(X) X(ask_messages) X(ask_bytes) X(store_messages) X(store_bytes)
#define OF_CLIENT(X) OPERATIONS(X) TRAFFIC(X) OF_EACH_KIND(X)

struct ttbench_counters {
#define X(name) uint64_t name;
    OWN(X) OF_CLIENT(X)
#undef X
};

/* What shards counted between two calls of ask_figures. */
struct ttbench_answers {
#define X(name) uint64_t name;
    ANSWERS(X)
#undef X
};

struct bench {
    /* command line */
    struct options_servers servers;
    const char *keys_dir;
    uint32_t clients, batch, window;
    double seconds;
    struct mix {
        uint32_t asks, stores; /* asks == 0: as in the load */
    } mix;
    const char *pattern;
    uint64_t seed; /* names this run's namespace, too: results of others do not count */
    bool json;
    /* fixed before the clients are opened */
    struct ttbench_load load;
    struct options_servers at; /* the servers by their numeric addresses */
    const struct keys_client *keys; /* NULL: no encryption */
    struct zeromq *zeromq;
    /* state */
    struct bench_client *client[CLIENTS_MAX];
    pthread_t thread[CLIENTS_MAX];
    /* outcome */
    double took;
    struct ttbench_counters sum;
    struct ttbench_answers shards; /* all together */
    bool is_checked; /* the shards answered with their counters */
    struct histogram latency_ns;
};

/* An ask message. */
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

struct bench_client {
    /* fixed after open */
    struct bench *bench;
    unsigned shards, tickets;
    struct lane lane;
    struct line line[OPTIONS_SERVERS_MAX];
    struct flight *flight; /* of all lines, whose asks are in the next three */
    uint32_t *visit;
    struct tt_ask *ask;
    uint8_t *where;
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

static atomic_bool stopping; /* no new asks from now on */

static enum err parse_mix(const char *text, void *value)
{
    struct mix *mix = value;
    uint64_t asks = 0, stores = 0;
    char word[16];
    size_t length = strcspn(text, ":");
    if (text[length] == '\0' || length >= sizeof word) {
        return ERR_SYNTAX;
    }
    snprintf(word, sizeof word, "%.*s", (int)length, text);
    enum err err = options_unsigned(word, 1, MIX_MAX, &asks);
    err = err ? err : options_unsigned(text + length + 1, 0, MIX_MAX, &stores);
    if (err == ERR_OK) {
        *mix = (struct mix){(uint32_t)asks, (uint32_t)stores};
    }
    return err;
}

/* ---- what to ask ---- */

static struct flight *flight_at(const struct bench_client *c, const struct line *line, uint32_t n)
{
    uint32_t at = line->oldest + n, ring = c->bench->window + 1;
    return &line->flight[at < ring ? at : at - ring];
}

/* False: the lane does not take it now. */
static bool send_asks(struct bench_client *c, struct line *line, struct flight *flight)
{
    flight->sent_ns = clock_ns();
    flight->ticket = client_ask(c->lane.client, flight->ask, flight->count, flight->sent_ns / 1000,
                                flight->where);
    line->out += flight->ticket != 0;
    c->out += flight->ticket != 0;
    return flight->ticket != 0;
}

/* Asks for the next visit. False: the window of its shard is full, or no shard is up. */
static bool ask_next(struct bench_client *c)
{
    const struct ttbench_load *load = &c->bench->load;
    const struct ttbench_visit *visit = &load->visit[c->next];
    uint64_t key = visit->ask.key ^ c->lap_key;
    unsigned shard = client_owner(c->lane.client, key);
    if (shard == CLIENT_NOWHERE || c->out == c->tickets || c->line[shard].out == c->bench->window) {
        return false;
    }
    struct line *line = &c->line[shard];
    struct flight *flight = flight_at(c, line, line->out);
    if (flight->count == c->bench->batch) {
        return send_asks(c, line, flight);
    }
    struct tt_ask *ask = &flight->ask[flight->count];
    *ask = visit->ask;
    ask->key = key;
    ask->slot = (uint16_t)(flight - line->flight);
    flight->visit[flight->count++] = c->next;
    if (++c->next == load->count) {
        c->next = 0;
        c->lap_key = rng_mix(c->bench->seed) ^ rng_mix(++c->lap);
    }
    return flight->count < c->bench->batch || send_asks(c, line, flight);
}

/* ---- what was answered ---- */

/* Ends a visit: each OPEN needs a store or a release. */
static void end_visit(struct bench_client *c, unsigned where, const struct tt_ask *ask,
                      const struct ttbench_visit *visit, bool is_open)
{
    const struct mix *mix = &c->bench->mix;
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

static void end_visits(struct bench_client *c, const struct flight *flight)
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
        end_visit(c, flight->where[i], &flight->ask[i], &c->bench->load.visit[flight->visit[i]],
                  verdict == TT_OPEN);
    }
}

/* Ends flights that were answered, or are lost. A shard that lost one is out, and will be asked to
 * release all. */
static void end_flights(struct bench_client *c, struct line *line, uint64_t now_ns)
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
            end_visits(c, flight);
        } else {
            c->count.lost += flight->count;
        }
        flight->count = 0;
        line->oldest = line->oldest < c->bench->window ? line->oldest + 1 : 0;
    }
}

static void add_figures(struct bench_client *c, const struct proto_figures *list)
{
    char name[32];
    for (uint32_t i = 0; i < list->count; i++) {
        const uint64_t figure = (uint64_t)c->sign * list->at[i].value;
        (void)proto_text_copy(list->at[i].name, name, sizeof name);
#define X(field) c->bench->shards.field += strcmp(name, #field) == 0 ? figure : 0;
        ANSWERS(X)
#undef X
    }
}

/* Takes a message, or waits for one, SLICE_US at most. What it answers is followed by new asks
 * before another one is looked for: at that time the shard has work. */
static void receive(struct bench_client *c)
{
    struct client_event e;
    bool any = lane_receive(&c->lane);
    uint64_t now_ns = clock_ns();
    while (lane_event(&c->lane, &e)) {
        if (e.kind == CLIENT_STATS && c->figures_due > 0) {
            add_figures(c, &e.stats->list);
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

/* The thread: asks and stores until it is stopped, then waits until each message was answered or is
 * lost. */
static void *run_client(void *client)
{
    struct bench_client *c = client;
    bool stops = false;
    while (!stops || c->out > 0) {
        while (!stops && ask_next(c)) {
            stops = atomic_load_explicit(&stopping, memory_order_relaxed);
        }
        receive(c);
        stops = stops || atomic_load_explicit(&stopping, memory_order_relaxed);
    }
    client_flush(c->lane.client, lane_now(&c->lane));
    return NULL;
}

/* ---- life ---- */

static bool open_arrays(struct bench_client *c)
{
    const size_t ring = c->bench->window + 1, flights = c->shards * ring, batch = c->bench->batch;
    c->flight = calloc(flights, sizeof *c->flight);
    c->visit = calloc(flights * batch, sizeof *c->visit);
    c->ask = calloc(flights * batch, sizeof *c->ask);
    c->where = calloc(flights * batch, sizeof *c->where);
    c->answer = calloc(batch, sizeof *c->answer);
    if (c->flight == NULL || c->visit == NULL || c->ask == NULL || c->where == NULL ||
        c->answer == NULL) {
        return false;
    }
    for (size_t f = 0; f < flights; f++) {
        c->flight[f].visit = c->visit + f * batch;
        c->flight[f].ask = c->ask + f * batch;
        c->flight[f].where = c->where + f * batch;
        c->line[f / ring].flight = c->flight + f / ring * ring;
    }
    return true;
}

static enum err open_lane(struct bench_client *c, unsigned index)
{
    const struct bench *b = c->bench;
    uint64_t silence_us = SILENCE_US + (uint64_t)b->clients * b->window * b->batch;
    uint32_t rto_us = silence_us < SILENCE_MAX_US ? (uint32_t)silence_us : SILENCE_MAX_US;
    struct client_options options = {
        .shards = c->shards,
        .role = PROTO_CLIENT,
        .hello_flags = PROTO_RELEASE_ALL,
        .namespace_id = b->seed,
        .instance = b->seed + index + 1,
        .name = "ttbench",
        .rto_min_us = rto_us,
        .rto_max_us = rto_us,
        .timeouts_in_row = 1,
        .keeps_slow = true,
        .linger_us = SILENCE_US, /* stores of an answer go with the next ask */
        .tickets = c->tickets,
        .ask_max = b->batch,
        .peek_max = 1,
        .queue = b->batch,
    };
    enum err err = zeromq_lane(b->zeromq, b->keys, &c->lane);
    return err == ERR_OK ? lane_open(&c->lane, &options) : err;
}

/* ERR_DOWN: *shard did not answer, and *why says that it refused our keys, or is NULL. */
static enum err await_welcomes(struct bench_client *c, unsigned *shard, const char **why)
{
    uint64_t end_us = clock_us() + WAIT_MS * UINT64_C(1000);
    bool is_final;
    for (*shard = 0; *shard < c->shards; ++*shard) {
        while (client_shard(c->lane.client, *shard).state != CLIENT_UP) {
            *why = zeromq_refusal(c->bench->zeromq, *shard, &is_final);
            if (*why != NULL || clock_us() >= end_us) {
                return ERR_DOWN;
            }
            receive(c);
        }
    }
    return ERR_OK;
}

/* Says HELLO to every shard, and waits for all. False after a message. */
static bool open_client(struct bench *b, unsigned index)
{
    struct bench_client *c = b->client[index] = calloc(1, sizeof *c);
    char address[OPTIONS_HOST_MAX + 16];
    const char *why = NULL;
    unsigned shard = 0;
    enum err err = ERR_NOMEM;
    if (c != NULL) {
        c->bench = b;
        c->shards = b->at.count;
        c->tickets = b->window * c->shards;
        c->tickets = c->tickets < TICKETS_MAX ? c->tickets : TICKETS_MAX;
        c->lap_key = rng_mix(b->seed);
        /* All begin in the same lap, near each other: results stored by one are found by the
         * others. */
        c->next = index * 997 % b->load.count;
        err = open_arrays(c) ? open_lane(c, index) : ERR_NOMEM;
    }
    err = err ? err : await_welcomes(c, &shard, &why);
    const struct options_host_port *at = &b->servers.server[shard];
    options_host_port_text(at->host, at->port, address, sizeof address);
    if (err == ERR_OK) {
        c->before = *client_counters(c->lane.client);
        c->count = (struct ttbench_counters){0};
    } else if (why != NULL) {
        log_fail(program, "shard %s %s", address, why);
    } else if (err == ERR_DOWN) {
        log_fail(program, "no answer from %s within %d s: is a ttserver there?", address,
                 WAIT_MS / 1000);
    } else {
        log_fail(program, "%s: %s", address, err == ERR_IO ? zmq_strerror(errno) : err_text(err));
    }
    return err == ERR_OK;
}

static void close_client(struct bench_client **client)
{
    struct bench_client *c = *client;
    if (c == NULL) {
        return;
    }
    lane_close(&c->lane);
    free(c->flight);
    free(c->visit);
    free(c->ask);
    free(c->where);
    free(c->answer);
    free(c);
    *client = NULL;
}

/* Adds the client's counters and latencies to those of all. */
static void read_client(const struct bench_client *c)
{
    struct ttbench_counters *sum = &c->bench->sum;
    const struct client_counters *now = client_counters(c->lane.client);
#define X(name) sum->name += c->count.name;
    OWN(X)
#undef X
#define X(name) sum->name += now->name - c->before.name;
    OF_CLIENT(X)
#undef X
    histogram_merge(&c->bench->latency_ns, &c->latency_ns);
}

/* Asks the shards for their counters and adds `sign` times these to those of all. ERR_DOWN. */
static enum err ask_figures(struct bench_client *c, int sign)
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

/* ---- the run ---- */

static void wait_for_end(const struct bench *b)
{
    uint64_t end_ns = clock_ns() + (uint64_t)(b->seconds * 1e9);
    for (uint64_t now; !atomic_load(&stopping) && (now = clock_ns()) < end_ns;) {
        const long left_ns = end_ns - now < STOP_SLICE_NS ? (long)(end_ns - now) : STOP_SLICE_NS;
        nanosleep(&(struct timespec){.tv_nsec = left_ns}, NULL);
    }
    atomic_store(&stopping, true);
}

static bool run_clients(struct bench *b)
{
    uint32_t started = 0;
    bool is_first = ask_figures(b->client[0], -1) == ERR_OK;
    uint64_t begin_ns = clock_ns();
    while (started < b->clients &&
           pthread_create(&b->thread[started], NULL, run_client, b->client[started]) == 0) {
        started++;
    }
    if (started == b->clients) {
        wait_for_end(b);
    }
    atomic_store(&stopping, true);
    for (uint32_t i = 0; i < started; i++) {
        pthread_join(b->thread[i], NULL);
        read_client(b->client[i]);
    }
    b->took = (double)(clock_ns() - begin_ns) / 1e9;
    if (started < b->clients) {
        log_fail(program, "cannot start thread %u of %u: fewer --clients?", started + 1,
                 b->clients);
        return false;
    }
    /* Every client asks: a shard serves a client in order, so its last stores are done by then. */
    for (uint32_t i = 1; i < b->clients; i++) {
        (void)ask_figures(b->client[i], 0);
    }
    b->is_checked = is_first && ask_figures(b->client[0], 1) == ERR_OK;
    return true;
}

/* The addresses, once for all clients: libzmq would do it for each, and wait for it at the end. */
static bool resolve(struct bench *b)
{
    uint64_t until_us = clock_us() + WAIT_MS * UINT64_C(1000);
    for (b->at.count = 0; b->at.count < b->servers.count; b->at.count++) {
        const struct options_host_port *at = &b->servers.server[b->at.count];
        const char *why;
        if (host_lookup_reach(at, until_us, &stopping, &b->at.server[b->at.count], &why) !=
            ERR_OK) {
            log_fail(program, "shard %s:%u: %s", at->host, (unsigned)at->port, why);
            return false;
        }
    }
    return true;
}

static bool run(struct bench *b)
{
    char why[ZEROMQ_WHY_MAX];
    if (!resolve(b)) {
        return false;
    }
    if (zeromq_open(&b->zeromq, b->at.server, b->at.count, b->clients, NULL,
                    ZEROMQ_WATCHES | ZEROMQ_UNLIMITED, why) != ERR_OK) {
        log_fail(program, "%s", why);
        return false;
    }
    enum err err = ERR_OK;
    if (strcmp(b->pattern, "random") == 0) {
        ttbench_load_random(&b->load, b->seed);
    } else {
        err = ttbench_load_record(&b->load);
    }
    bool ok = err == ERR_OK;
    if (!ok) {
        log_fail(program, "%s", err_text(err));
    }
    for (uint32_t i = 0; i < b->clients && ok; i++) {
        ok = open_client(b, i);
    }
    ok = ok && run_clients(b);
    for (uint32_t i = 0; i < b->clients; i++) {
        close_client(&b->client[i]);
    }
    zeromq_close(&b->zeromq);
    return ok;
}

/* ---- the report ---- */

static uint64_t errors_of(const struct bench *b)
{
    return b->sum.lost + b->sum.refused + b->sum.malformed + b->sum.dropped;
}

static double per_second(const struct bench *b, uint64_t count)
{
    return b->took > 0 ? (double)count / b->took : 0;
}

static double quantile_us(const struct bench *b, double share)
{
    return histogram_quantile(&b->latency_ns, share) / 1e3;
}

/* The share of the clients' time, in percent. */
static double waiting(const struct bench *b)
{
    return b->took > 0 ? (double)b->sum.waited_ns / (b->took * 1e7 * b->clients) : 0;
}

static double ratio(uint64_t part, uint64_t whole)
{
    return whole > 0 ? (double)part / (double)whole : 0;
}

static void print_json(const struct bench *b)
{
    const struct ttbench_counters *sum = &b->sum;
    struct json j;
    json_begin(&j, stdout);
    json_real(&j, "ops_per_s", per_second(b, sum->asks + sum->stores));
    json_real(&j, "asks_per_s", per_second(b, sum->asks));
    json_real(&j, "stores_per_s", per_second(b, sum->stores));
    json_real(&j, "releases_per_s", per_second(b, sum->releases));
    json_real(&j, "p50_us", quantile_us(b, 0.5));
    json_real(&j, "p90_us", quantile_us(b, 0.9));
    json_real(&j, "p99_us", quantile_us(b, 0.99));
    json_real(&j, "max_us", (double)b->latency_ns.max / 1e3);
    json_number(&j, "errors", (int64_t)errors_of(b));
    json_real(&j, "messages_per_s", per_second(b, sum->messages_sent + sum->messages_received));
    json_real(&j, "bytes_per_s", per_second(b, sum->bytes_sent + sum->bytes_received));
    json_real(&j, "waiting_percent", waiting(b));
#define X(name) json_number(&j, #name, (int64_t)sum->name);
    ANSWERS(X)
    X(lost)
#undef X
    json_number(&j, "refused", (int64_t)sum->refused);
    json_number(&j, "malformed", (int64_t)sum->malformed);
    json_number(&j, "unsent", (int64_t)sum->dropped);
    if (b->is_checked) {
        json_number(&j, "shard_asks", (int64_t)b->shards.asks);
        json_number(&j, "shard_stores", (int64_t)b->shards.stores);
        json_number(&j, "shard_releases", (int64_t)b->shards.releases);
        json_number(&j, "shard_busy", (int64_t)b->shards.busy);
    }
    json_text(&j, "pattern", b->pattern);
    json_number(&j, "servers", b->servers.count);
    json_number(&j, "clients", b->clients);
    json_number(&j, "batch", b->batch);
    json_number(&j, "window", b->window);
    json_number(&j, "messages_timed", (int64_t)b->latency_ns.count);
    json_real(&j, "bytes_per_ask_message", ratio(sum->ask_bytes, sum->ask_messages));
    json_real(&j, "bytes_per_store_message", ratio(sum->store_bytes, sum->store_messages));
    json_real(&j, "bytes_per_message_out", ratio(sum->bytes_sent, sum->messages_sent));
    json_real(&j, "bytes_per_message_in", ratio(sum->bytes_received, sum->messages_received));
    json_real(&j, "seconds", b->took);
    json_end(&j);
}

static void print_text(const struct bench *b)
{
    const struct ttbench_counters *sum = &b->sum;
    printf("%u shard%s, %u client%s, %u asks a message, %u messages on the way, %s keys, %.2f s\n",
           b->servers.count, b->servers.count == 1 ? "" : "s", b->clients,
           b->clients == 1 ? "" : "s", b->batch, b->window, b->pattern, b->took);
    printf("operations   %12.0f a second: RetrieveAsk %.0f, StoreHash %.0f (and Release %.0f)\n",
           per_second(b, sum->asks + sum->stores), per_second(b, sum->asks),
           per_second(b, sum->stores), per_second(b, sum->releases));
    printf("answers      %11.1f%% OPEN, %.1f%% CUT, %.1f%% BUSY\n",
           100 * ratio(sum->opens, sum->asks), 100 * ratio(sum->cuts, sum->asks),
           100 * ratio(sum->busy, sum->asks));
    printf("traffic      %12.0f messages/s, %.1f MB/s, both ways\n",
           per_second(b, sum->messages_sent + sum->messages_received),
           per_second(b, sum->bytes_sent + sum->bytes_received) / 1e6);
    printf("round trip   p50 %.1f us, p90 %.1f us, p99 %.1f us, longest %.1f us, of %" PRIu64
           " ask messages\n",
           quantile_us(b, 0.5), quantile_us(b, 0.9), quantile_us(b, 0.99),
           (double)b->latency_ns.max / 1e3, b->latency_ns.count);
    printf("waiting      %11.1f%% of the clients' time\n", waiting(b));
    printf("errors       %12" PRIu64 "", errors_of(b));
    if (errors_of(b) > 0) {
        printf(": asks without an answer %" PRIu64 ", ERROR messages %" PRIu64
               ", unreadable %" PRIu64 ", not sent %" PRIu64,
               sum->lost, sum->refused, sum->malformed, sum->dropped);
    }
    if (b->is_checked) {
        printf("\nthe shards   counted %" PRIu64 " asks, %" PRIu64
               " stores; sent from here: %" PRIu64 ", %" PRIu64 "\n",
               b->shards.asks, b->shards.stores, sum->asks, sum->stores);
    } else {
        printf("\nthe shards   did not answer with their counters\n");
    }
}

/* ---- the command ---- */

static int check_options(const struct bench *b)
{
    if (!(b->seconds > 0 && b->seconds <= 86400)) {
        return options_wrong(program, "--seconds: more than 0, at most 86400");
    }
    if (strcmp(b->pattern, "chess") != 0 && strcmp(b->pattern, "random") != 0) {
        return options_wrong(program, "--pattern '%.50s': chess or random", b->pattern);
    }
    return OPTIONS_RUN;
}

static int run_and_report(struct bench *b)
{
    struct keys_client room;
    const struct keys_client *keys = NULL;
    char why[KEYS_WHY_MAX];
    if (cli_load_keys(b->keys_dir, KEYS_FRONT, &room, &keys, why) != ERR_OK) {
        return log_fail(program, "%s", why);
    }
    signals_end_by(&stopping);
    b->keys = keys;
    bool ok = run(b);
    keys_wipe(&room, sizeof room);
    if (ok && b->json) {
        print_json(b);
    } else if (ok) {
        print_text(b);
    }
    return ok && errors_of(b) == 0 ? 0 : 1;
}

int cli_ttbench(int argc, char *argv[])
{
    static struct bench b = {
        .clients = 1, .batch = 256, .window = 16, .seconds = 5, .pattern = "chess"};
    const struct options_row table[] = {
        {"servers", "HOST:PORT,...", "the shards (required)", &b.servers, OPTION_SERVERS, 's'},
        CLI_KEYS_ROW(&b.keys_dir),
        OPTIONS_ROW(U32, "clients", "N", &b.clients, 1, CLIENTS_MAX,
                    "threads, each with a session at every shard (default 1)"),
        OPTIONS_ROW(U32, "batch", "N", &b.batch, 1, PROTO_BATCH_MAX,
                    "asks in a message (default 256)"),
        OPTIONS_ROW(U32, "window", "N", &b.window, 1, WINDOW_MAX,
                    "unanswered ask messages of a client at a shard (default 16; at all 1024)"),
        {"seconds", "S", "duration (default 5)", &b.seconds, OPTION_REAL},
        {"mix", "ASK:STORE", "ratio, such as 1:1 (default: as recorded; random keys 1:1)", &b.mix,
         OPTION_CUSTOM, .parse = parse_mix},
        {"pattern", "chess|random", "replay a recorded search (default), or random keys",
         &b.pattern, OPTION_TEXT},
        OPTIONS_ROW(U64, "seed", "N", &b.seed, 0, 0,
                    "seed of random keys and of the namespace (default: new each time)"),
        {"json", NULL, "one JSON object on stdout", &b.json, OPTION_FLAG},
        {0},
    };
    const struct options options = {
        .program = program,
        .usage = "--servers HOST:PORT,... [OPTION]...",
        .summary =
            "Loads shards with RetrieveAsk and StoreHash; prints rates, round trips and errors.\n"
            "Exit status 1 when there were errors.",
        .example = {"abdada ttbench --servers 127.0.0.1:7400",
                    "abdada ttbench --servers 127.0.0.1:7400 --clients 4 --pattern random"},
        .table = table,
    };
    b.seed = clock_unique();
    int status = config_parse(&options, argc, argv, NULL, NULL);
    status = status < 0 ? cli_environment(program, &b.servers, &b.keys_dir, true) : status;
    status = status < 0 ? check_options(&b) : status;
    return status < 0 ? run_and_report(&b) : status;
}
