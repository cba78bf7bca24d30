/* ttserver: shards of the transposition table, served over ZMTP. */
#include "common/clock.h"
#include "common/config.h"
#include "common/host_lookup.h"
#include "common/log.h"
#include "common/memory.h"
#include "common/signals.h"
#include "proto/lane/lane.h"
#include "proto/lane/zeromq.h"
#include "ttserver/server.h"

#include <zmq.h>

enum {
    DEFAULT_PORT = 7400,
    SHARD_MEMORY_MIN = 1 << 20,
    SHARD_BYTES = 4 << 20, /* that a shard takes beside --memory, and for a session */
    SESSION_BYTES = 1 << 10,
    INFLIGHT_SHARE = 16, /* a sixteenth of a shard's memory is for in-flight entries */
    INFLIGHT_MIN = 4096,
    INFLIGHT_MAX = 1 << 22,
    /* One client may have an eighth of them. A searcher has one a ply, some dozens; a worker has
     * some dozens of searchers. */
    SESSION_SHARE = 8,
    SESSION_MIN = 2048,
    LONGEST_MS = 24 * 3600 * 1000,
};

static const char program[] = "ttserver";

struct arguments {
    struct server_options server;
    struct options_host_port check, metrics;
    uint64_t memory;
    const char *backing_url;
    struct redis_address backing;
    bool is_insecure;
};

static int read_arguments(int argc, char **argv, struct arguments *a)
{
    struct ttcore_options *core = &a->server.core;
    const struct options_row table[] = {
        OPTIONS_ROW(HOST_PORT, "listen", "HOST:PORT", &a->server.listen, 0, 0,
                    "address of the first shard (127.0.0.1:7400); port 0: any free"),
        OPTIONS_ROW(U32, "shards", "N", &a->server.shards, 1, SERVER_SHARDS_MAX,
                    "shards, on consecutive ports, a thread each (1)"),
        OPTIONS_ROW(SIZE, "memory", "SIZE", &a->memory, SHARD_MEMORY_MIN, 0,
                    "memory of all shards together (256M)"),
        OPTIONS_ROW(U32, "heartbeat", "MS", &core->heartbeat_ms, 10, LONGEST_MS,
                    "a session ends after 3.5 of these in silence (1000)"),
        OPTIONS_ROW(U32, "inflight-age-max", "MS", &core->inflight_age_max_ms, 10, LONGEST_MS,
                    "in-flight entries of this age expire (60000)"),
        OPTIONS_ROW(U32, "share-rate", "N", &core->share_rate_max, 1, UINT32_MAX,
                    "results passed on to other hosts a second, counted for each (16000000)"),
        OPTIONS_ROW(U32, "sessions", "N", &core->sessions_max, 1, TTCORE_SESSIONS_MAX,
                    "largest number of clients of a shard (4096)"),
        OPTIONS_ROW(U32, "jobs", "N", &core->jobs_max, 1, TTCORE_JOBS_MAX,
                    "largest number of open jobs (64)"),
        OPTIONS_ROW(TEXT, "keys", "DIR", &a->server.keys_dir, 0, 0,
                    "keys made by `abdada keygen` (ABDADA_KEYS)"),
        OPTIONS_ROW(FLAG, "insecure", NULL, &a->is_insecure, 0, 0,
                    "serve an address that other machines can reach, without keys"),
        OPTIONS_ROW(HOST_PORT, "check", "HOST:PORT", &a->check, 0, 0,
                    "serve nothing; exit status 0 if the shard there serves, else 1"),
        OPTIONS_ROW(TEXT, "snapshot", "FILE", &a->server.keep.snapshot, 0, 0,
                    "keep results in FILE (other shards: FILE.1, FILE.2, ...), read them at start"),
        OPTIONS_ROW(U32, "snapshot-every", "S", &a->server.keep.snapshot_every_s, 1,
                    LONGEST_MS / 1000, "seconds between snapshots (60); SIGUSR1: at once"),
        OPTIONS_ROW(TEXT, "backing", "URL", &a->backing_url, 0, 0,
                    "keep results in the Redis redis://HOST[:PORT][/DB], read them at start"),
        OPTIONS_ROW(U32, "backing-depth", "N", &a->server.keep.backing_depth, 0, TT_DEPTH_MAX,
                    "keep results of at least this depth there (4)"),
        OPTIONS_ROW(TEXT, "log", "FILE", &a->server.log, 0, 0,
                    "log into FILE once ready; SIGHUP reopens it (default: stderr)"),
        OPTIONS_ROW(HOST_PORT, "metrics", "HOST:PORT", &a->metrics, 0, 0,
                    "figures for Prometheus at http://HOST:PORT/metrics, and /healthz"),
        {0},
    };
    const struct options options = {
        .program = program,
        .usage = "[OPTION]...",
        .summary = "Serves a transposition table that knows who searches each position.",
        .example = {"ttserver --listen 127.0.0.1:7400 --memory 4G",
                    "ttserver --listen 0.0.0.0:7400 --keys keys --snapshot results"},
        .table = table,
    };
    return config_parse(&options, argc, argv, NULL, NULL);
}

/* 0, or the exit code after one line on stderr. */
static int check_backing(struct arguments *a)
{
    char why[REDIS_WHY_MAX];
    struct redis_address *address = &a->backing;
    if (a->backing_url == NULL) {
        return 0;
    }
    if (a->server.keep.snapshot != NULL) {
        return options_wrong(program, "--backing and --snapshot exclude each other");
    }
    if (redis_address_parse_option(address, a->backing_url, why) != ERR_OK) {
        return options_wrong(program, "--backing: %s", why);
    }
    if (redis_address_environment(address, why) != ERR_OK) {
        log_fail(program, "--backing: %s", why);
        return 1;
    }
    if (address->is_cluster || address->is_tls) {
        return options_wrong(program, "--backing takes one Redis without TLS: redis://HOST:PORT");
    }
    if (a->server.listen.port == 0) {
        return options_wrong(program, "--backing: give --listen a port, which is the name of the "
                                      "stored results");
    }
    a->server.keep.backing = address;
    return 0;
}

/* 0, or the exit code after one line on stderr. */
static int check_arguments(struct arguments *a)
{
    struct server_options *o = &a->server;
    if (a->memory / o->shards < SHARD_MEMORY_MIN) {
        return options_wrong(program, "--memory is too small: each shard needs 1M");
    }
    char why[128], size[MEMORY_TEXT_MAX];
    const uint64_t shard_bytes =
        SHARD_BYTES + (uint64_t)SESSION_BYTES * a->server.core.sessions_max;
    if (!memory_has_room(a->memory, o->shards * shard_bytes, o->shards, why, sizeof why)) {
        log_fail(program, "--memory %s %s", memory_text(a->memory, size), why);
        return 1;
    }
    if (o->keep.snapshot != NULL && o->keep.snapshot[0] == '\0') {
        return options_wrong(program, "--snapshot needs the name of a file");
    }
    if (o->listen.port != 0 && o->listen.port + o->shards - 1 > UINT16_MAX) {
        return options_wrong(program, "--shards: the last port would exceed 65535");
    }
    o->addresses = listen_resolve_all(&o->listen, NULL, o->address);
    if (o->addresses == 0) {
        log_fail(program, "--listen: unknown host '%s'", o->listen.host);
        return 1;
    }
    if (!listen_are_loopback(o->address, o->addresses) && o->keys_dir == NULL && !a->is_insecure) {
        return options_wrong(program,
                             "--listen %s can be reached from other machines: make keys "
                             "(abdada keygen DIR) and add --keys DIR, or add --insecure if you "
                             "trust everybody there",
                             o->listen.host);
    }
    return 0;
}

/* ---- --check ---- */

enum {
    LOOKUP_US = 900000, /* for the name */
    CHECK_US = 4500000, /* for the name and a WELCOME */
    ANSWER_US = 900000, /* for an answer; HELLO is repeated meanwhile */
};

/* ERR_ABSENT: no WELCOME in time: not there, stalled, or full; or, with *refusal, the words for it,
 * the shard will not have us. A shard that is full closes connections, with what was said on them,
 * and those in the handshake without a reason: only a refusal that the shard has said ends this. */
static enum err await_welcome(struct lane *lane, struct zeromq *zeromq, uint64_t until_us,
                              const char **refusal)
{
    struct client_event e;
    bool is_final = false;
    while (!is_final && lane_now(lane) < until_us) {
        while (lane_next(lane, &e)) {
            if (e.kind == CLIENT_SHARD_UP || e.kind == CLIENT_HELLO_REFUSED) {
                return e.kind == CLIENT_SHARD_UP ? ERR_OK : ERR_ABSENT;
            }
        }
        uint64_t tick_us = lane_tick(lane);
        *refusal = zeromq_refusal(zeromq, 0, &is_final);
        lane_sleep(lane, tick_us < until_us ? tick_us : until_us);
    }
    return ERR_ABSENT;
}

/* Opens a session and ends it. On failure *why is for people. */
static enum err visit(const struct options_host_port *name, const struct keys_client *keys,
                      char words[ZEROMQ_WHY_MAX], const char **why)
{
    const struct client_options options = {
        .shards = 1,
        .role = PROTO_MONITOR,
        .instance = clock_unique(),
        .name = "check",
        .rto_max_us = ANSWER_US,
    };
    struct options_host_port at;
    struct zeromq *zeromq = NULL;
    struct lane lane = {0};
    const char *refusal = NULL;
    uint64_t begin_us = clock_us();
    enum err err = host_lookup_reach(name, begin_us + LOOKUP_US, NULL, &at, why);
    if (err != ERR_OK) {
        return err;
    }
    err = zeromq_open(&zeromq, &at, 1, 1, NULL, ZEROMQ_WATCHES, words);
    if (err != ERR_OK) {
        *why = words;
        return err;
    }
    err = zeromq_lane(zeromq, keys, &lane);
    err = err ? err : lane_open(&lane, &options);
    err = err ? err : await_welcome(&lane, zeromq, begin_us + CHECK_US, &refusal);
    *why = refusal != NULL ? refusal : err == ERR_ABSENT ? "no shard answers there" : err_text(err);
    lane_close(&lane);
    zeromq_close(&zeromq);
    return err;
}

/* For health checks of supervisors: opens a session at a shard and ends it again, as any client
 * would; silent when all is well. Ends within 5 s, as probes wait 10 s. (An open port is not
 * enough: the system itself answers on it.) */
static int check_shard(const struct options_host_port *at, const char *keys_dir)
{
    struct keys_client keys;
    char words[ZEROMQ_WHY_MAX];
    const char *why = NULL;
    if (keys_dir != NULL && keys_load_client(keys_dir, KEYS_MONITOR, &keys, words) != ERR_OK) {
        log_fail(program, "%s", words);
        return 1;
    }
    enum err err = visit(at, keys_dir != NULL ? &keys : NULL, words, &why);
    keys_wipe(&keys, sizeof keys);
    if (err != ERR_OK) {
        log_fail(program, "--check %s:%u: %s", at->host, (unsigned)at->port, why);
    }
    return err == ERR_OK ? 0 : 1;
}

static uint64_t within(uint64_t value, uint64_t min, uint64_t max)
{
    return value < min ? min : value > max ? max : value;
}

static void divide_memory(struct ttcore_options *core, uint64_t bytes)
{
    uint64_t entries =
        within(bytes / INFLIGHT_SHARE / TTCORE_INFLIGHT_ENTRY_BYTES, INFLIGHT_MIN, INFLIGHT_MAX);
    core->results_bytes = bytes - entries * TTCORE_INFLIGHT_ENTRY_BYTES;
    core->inflight_max = (uint32_t)entries;
    core->session_inflight_max = (uint32_t)within(entries / SESSION_SHARE, SESSION_MIN, entries);
}

static int run(int argc, char **argv)
{
    struct arguments a = {
        .server = {.program = program,
                   .listen = {"127.0.0.1", DEFAULT_PORT},
                   .shards = 1,
                   .core = ttcore_defaults(),
                   .keep = {.snapshot_every_s = 60, .backing_depth = 4}},
        .memory = UINT64_C(256) << 20,
    };
    log_begin();
    signals_default();
    options_about = build_about;
    int code = read_arguments(argc, argv, &a);
    if (code >= 0) {
        return code;
    }
    if (a.server.keys_dir != NULL && a.is_insecure) {
        return options_wrong(program, "--keys and --insecure exclude each other");
    }
    if (!a.is_insecure && keys_choose_dir(&a.server.keys_dir) != ERR_OK) { /* of the environment */
        return options_wrong(program, "--keys needs the name of a directory");
    }
    if (a.check.host[0] != '\0') {
        return check_shard(&a.check, a.server.keys_dir);
    }
    code = check_arguments(&a);
    code = code != 0 ? code : check_backing(&a);
    if (code != 0) {
        return code;
    }
    if (a.metrics.host[0] != '\0') {
        a.server.metrics = &a.metrics;
    }
    divide_memory(&a.server.core, a.memory / a.server.shards);
    code = server_run(&a.server);
    redis_address_wipe(&a.backing);
    return code;
}

int main(int argc, char **argv)
{
    return log_end(program, run(argc, argv));
}
