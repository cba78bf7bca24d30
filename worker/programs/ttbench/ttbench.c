/* abdada ttbench: operations a second and round trips of shards under load. */
#include "worker/programs/cli.h"
#include "worker/programs/json.h"
#include "worker/programs/ttbench/ttbench_client.h"

#include "common/clock.h"
#include "common/config.h"
#include "common/log.h"
#include "common/lookup.h"
#include "common/rng.h"
#include "common/signals.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

static const char program[] = "abdada ttbench";

enum { CLIENTS_MAX = 256, WAIT_MS = 2000, MIX_MAX = 1000, STOP_SLICE_MS = 20 };

struct bench {
    /* command line */
    struct options_servers servers;
    const char *keys_dir;
    uint32_t clients, batch, window;
    double seconds;
    struct ttbench_mix mix;
    const char *pattern;
    uint64_t seed;
    bool json;
    /* state */
    struct ttbench_load load;
    struct ttbench_client *client[CLIENTS_MAX];
    pthread_t thread[CLIENTS_MAX];
    /* outcome */
    double took;
    struct ttbench_counters sum;
    struct ttbench_answers shards; /* all together */
    bool is_checked; /* the shards answered with their counters */
    struct histogram latency_ns;
};

static atomic_bool stopping;

static enum err parse_mix(const char *text, void *value)
{
    struct ttbench_mix *mix = value;
    uint64_t asks = 0, stores = 0;
    char word[16];
    size_t length = strcspn(text, ":");
    if (text[length] == '\0' || length >= sizeof word) {
        return ERR_SYNTAX;
    }
    snprintf(word, sizeof word, "%.*s", (int)length, text);
    enum err err = options_unsigned(word, 1, MIX_MAX, &asks);
    if (err == ERR_OK) {
        err = options_unsigned(text + length + 1, 0, MIX_MAX, &stores);
    }
    if (err == ERR_OK) {
        *mix = (struct ttbench_mix){(uint32_t)asks, (uint32_t)stores};
    }
    return err;
}

static uint64_t errors_of(const struct bench *b)
{
    return b->sum.lost + b->sum.refused + b->sum.malformed + b->sum.unsent;
}

/* ---- the run ---- */

static bool open_clients(struct bench *b, const struct ttbench_plan *plan)
{
    for (uint32_t i = 0; i < b->clients; i++) {
        char address[OPTIONS_HOST_MAX + 16];
        const char *why = NULL;
        unsigned shard = 0;
        enum err err =
            ttbench_client_open(&b->client[i], plan, b->client[0], i, WAIT_MS, &shard, &why);
        const struct options_host_port *at = &b->servers.server[shard];
        options_host_port_text(at->host, at->port, address, sizeof address);
        if (why != NULL) {
            log_fail(program, "shard %s %s", address, why);
        } else if (err == ERR_DOWN) {
            log_fail(program, "no answer from %s within %d s: is a ttserver there?", address,
                     WAIT_MS / 1000);
        } else if (err != ERR_OK) {
            log_fail(program, "%s: %s", address,
                     err == ERR_IO ? zmq_strerror(errno) : err_text(err));
        }
        if (err != ERR_OK) {
            return false;
        }
    }
    return true;
}

static void wait_for_end(const struct bench *b)
{
    uint64_t end_ns = clock_ns() + (uint64_t)(b->seconds * 1e9);
    while (!atomic_load(&stopping) && clock_ns() < end_ns) {
        uint64_t left_ns = end_ns - clock_ns();
        struct timespec slice = {.tv_nsec = STOP_SLICE_MS * 1000000};
        if (left_ns < (uint64_t)slice.tv_nsec) {
            slice.tv_nsec = (long)left_ns;
        }
        nanosleep(&slice, NULL);
    }
    atomic_store(&stopping, true);
}

static bool run_clients(struct bench *b)
{
    uint32_t started = 0;
    bool is_first = ttbench_client_stats(b->client[0], -1) == ERR_OK;
    uint64_t begin_ns = clock_ns();
    while (started < b->clients &&
           pthread_create(&b->thread[started], NULL, ttbench_client_run, b->client[started]) == 0) {
        started++;
    }
    if (started == b->clients) {
        wait_for_end(b);
    }
    atomic_store(&stopping, true);
    for (uint32_t i = 0; i < started; i++) {
        pthread_join(b->thread[i], NULL);
        ttbench_client_read(b->client[i], &b->sum, &b->latency_ns);
    }
    b->took = (double)(clock_ns() - begin_ns) / 1e9;
    if (started < b->clients) {
        log_fail(program, "cannot start thread %u of %u: fewer --clients?", started + 1,
                 b->clients);
        return false;
    }
    /* Every client asks: a shard serves a client in order, so its last stores are done by then. */
    for (uint32_t i = 1; i < b->clients; i++) {
        (void)ttbench_client_stats(b->client[i], 0);
    }
    b->is_checked = is_first && ttbench_client_stats(b->client[0], 1) == ERR_OK;
    return true;
}

/* Once for all clients: libzmq would do it for each, and wait for it at the end. */
static bool resolve(const struct bench *b, struct options_servers *out)
{
    uint64_t until_us = clock_us() + WAIT_MS * UINT64_C(1000);
    out->count = b->servers.count;
    for (unsigned i = 0; i < out->count; i++) {
        const struct options_host_port *at = &b->servers.server[i];
        const char *why;
        if (lookup_reach(at, until_us, &stopping, &out->server[i], &why) != ERR_OK) {
            log_fail(program, "shard %s:%u: %s", at->host, (unsigned)at->port, why);
            return false;
        }
    }
    return true;
}

static bool run(struct bench *b, const struct keys_client *keys)
{
    char why[ZEROMQ_WHY_MAX];
    void *context = NULL;
    struct options_servers servers;
    if (!resolve(b, &servers)) {
        return false;
    }
    if (zeromq_context(&context, b->servers.count, b->clients, false, why) != ERR_OK) {
        log_fail(program, "%s", why);
        return false;
    }
    enum err err = strcmp(b->pattern, "chess") == 0 ? ttbench_load_record(&b->load)
                                                    : ttbench_load_random(&b->load, b->seed);
    if (err != ERR_OK) {
        zmq_ctx_term(context);
        log_fail(program, "%s", err_text(err));
        return false;
    }
    struct ttbench_plan plan = {
        .load = &b->load,
        .servers = &servers,
        .keys = keys,
        .shards = &b->shards,
        .clients = b->clients,
        .batch = b->batch,
        .window = b->window,
        .mix = b->mix,
        .namespace_id = b->seed,
        .context = context,
        .stop = &stopping,
    };
    bool ok = open_clients(b, &plan) && run_clients(b);
    for (uint32_t i = b->clients; i-- > 0;) {
        ttbench_client_close(&b->client[i]);
    }
    zmq_ctx_term(context);
    return ok;
}

/* ---- the report ---- */

static double per_second(const struct bench *b, uint64_t count)
{
    return b->took > 0 ? (double)count / b->took : 0;
}

static double quantile_us(const struct bench *b, double share)
{
    return histogram_quantile(&b->latency_ns, share) / 1e3;
}

/* Of the clients' time, in percent. */
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
    json_real(&j, "messages_per_s", per_second(b, sum->messages_out + sum->messages_in));
    json_real(&j, "bytes_per_s", per_second(b, sum->bytes_out + sum->bytes_in));
    json_real(&j, "waiting_percent", waiting(b));
#define X(name) json_number(&j, #name, (int64_t)sum->name);
    TTBENCH_ANSWERS(X)
    TTBENCH_ERRORS(X)
#undef X
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
    json_real(&j, "bytes_per_message_out", ratio(sum->bytes_out, sum->messages_out));
    json_real(&j, "bytes_per_message_in", ratio(sum->bytes_in, sum->messages_in));
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
           per_second(b, sum->messages_out + sum->messages_in),
           per_second(b, sum->bytes_out + sum->bytes_in) / 1e6);
    printf("round trip   p50 %.1f us, p90 %.1f us, p99 %.1f us, longest %.1f us, of %" PRIu64
           " ask messages\n",
           quantile_us(b, 0.5), quantile_us(b, 0.9), quantile_us(b, 0.99),
           (double)b->latency_ns.max / 1e3, b->latency_ns.count);
    printf("waiting      %11.1f%% of the clients' time\n", waiting(b));
    printf("errors       %12" PRIu64 "", errors_of(b));
    if (errors_of(b) > 0) {
        printf(": asks without an answer %" PRIu64 ", ERROR messages %" PRIu64
               ", unreadable %" PRIu64 ", not sent %" PRIu64,
               sum->lost, sum->refused, sum->malformed, sum->unsent);
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
    return 0;
}

static int run_and_report(struct bench *b)
{
    struct keys_client room;
    const struct keys_client *keys = NULL;
    char why[KEYS_WHY_MAX];
    if (cli_load_keys(b->keys_dir, KEYS_FRONT, &room, &keys, why) != ERR_OK) {
        log_fail(program, "%s", why);
        return 1;
    }
    signals_end_by(&stopping);
    bool ok = run(b, keys);
    keys_wipe(&room, sizeof room);
    ttbench_load_free(&b->load);
    if (ok && b->json) {
        print_json(b);
    } else if (ok) {
        print_text(b);
    }
    return ok && errors_of(b) == 0 ? 0 : 1;
}

int cli_ttbench(int argc, char *argv[])
{
    struct bench *b = calloc(1, sizeof *b);
    if (b == NULL) {
        log_fail(program, "%s", err_text(ERR_NOMEM));
        return 1;
    }
    *b = (struct bench){.clients = 1, .batch = 256, .window = 16, .seconds = 5, .pattern = "chess"};
    const struct options_row table[] = {
        {"servers", "HOST:PORT,...", "the shards (required)", &b->servers, OPTION_SERVERS, 's'},
        CLI_KEYS_ROW(&b->keys_dir),
        OPTIONS_ROW(U32, "clients", "N", &b->clients, 1, CLIENTS_MAX,
                    "threads, each with a session at every shard (default 1)"),
        OPTIONS_ROW(U32, "batch", "N", &b->batch, 1, PROTO_BATCH_MAX,
                    "asks in a message (default 256)"),
        OPTIONS_ROW(U32, "window", "N", &b->window, 1, TTBENCH_WINDOW_MAX,
                    "unanswered ask messages of a client at a shard (default 16; at all 1024)"),
        {"seconds", "S", "duration (default 5)", &b->seconds, OPTION_REAL},
        {"mix", "ASK:STORE", "ratio, such as 1:1 (default: as recorded; random keys 1:1)", &b->mix,
         OPTION_CUSTOM, .parse = parse_mix},
        {"pattern", "chess|random", "replay a recorded search (default), or random keys",
         &b->pattern, OPTION_TEXT},
        OPTIONS_ROW(U64, "seed", "N", &b->seed, 0, 0,
                    "of random keys and of the namespace (default: new each time)"),
        {"json", NULL, "one JSON object on stdout", &b->json, OPTION_FLAG},
        {0},
    };
    const struct options options = {
        .program = program,
        .usage = "--servers HOST:PORT,... [OPTION]...",
        .summary =
            "Loads shards with RetrieveAsk and StoreHash; prints rates, round trips and errors.\n"
            "Exit status 1 when there were errors.",
        .version = PROGRAM_VERSION,
        .table = table,
    };
    b->seed = clock_unique();
    int status = config_parse(&options, argc, argv, NULL, NULL);
    if (status < 0) {
        status = cli_environment(program, &b->servers, &b->keys_dir, true);
    }
    if (status < 0) {
        status = check_options(b);
        status = status != 0 ? status : run_and_report(b);
    }
    free(b);
    return status;
}
