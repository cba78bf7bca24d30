/* ttserver: shards of the transposition table, served over ZeroMQ. */
#include "common/log.h"
#include "ttserver/io/check.h"
#include "ttserver/io/server.h"

#include <unistd.h>

enum {
    DEFAULT_PORT = 7400,
    SHARD_MEMORY_MIN = 1 << 20,
    INFLIGHT_SHARE = 16, /* one sixteenth of a shard's memory holds who is inside */
    INFLIGHT_MIN = 4096,
    INFLIGHT_MAX = 1 << 22,
    /* One client may have an eighth of it. A processor is inside a node a ply, some dozens; a
     * worker has some dozens of processors. */
    SESSION_SHARE = 8,
    SESSION_MIN = 2048,
    LONGEST_MS = 24 * 3600 * 1000,
};

static const char program[] = "ttserver";

struct arguments {
    struct options_host_port listen, check;
    uint32_t shards;
    uint64_t memory;
    uint32_t heartbeat_ms, inflight_age_max_ms, sessions, jobs;
    bool is_insecure;
};

static enum options_outcome read_arguments(int argc, char **argv, struct arguments *a)
{
    const struct options_row table[] = {
        OPTIONS_ROW(HOST_PORT, "listen", "HOST:PORT", &a->listen, 0, 0,
                    "address of the first shard (127.0.0.1:7400); port 0: any free"),
        OPTIONS_ROW(U32, "shards", "N", &a->shards, 1, SERVER_SHARDS_MAX,
                    "shards, on consecutive ports, a thread each (1)"),
        OPTIONS_ROW(SIZE, "memory", "SIZE", &a->memory, SHARD_MEMORY_MIN, 0,
                    "memory of all shards together (256M)"),
        OPTIONS_ROW(U32, "heartbeat", "MS", &a->heartbeat_ms, 10, LONGEST_MS,
                    "a session ends after 3.5 of these in silence (1000)"),
        OPTIONS_ROW(U32, "inflight-age-max", "MS", &a->inflight_age_max_ms, 10, LONGEST_MS,
                    "longest stay inside a position (60000)"),
        OPTIONS_ROW(U32, "sessions", "N", &a->sessions, 1, TTCORE_SESSIONS_MAX,
                    "most clients of a shard (4096)"),
        OPTIONS_ROW(U32, "jobs", "N", &a->jobs, 1, TTCORE_JOBS_MAX, "most jobs open at once (64)"),
        OPTIONS_ROW(FLAG, "insecure", NULL, &a->is_insecure, 0, 0,
                    "serve an address that other machines can reach, without keys"),
        OPTIONS_ROW(HOST_PORT, "check", "HOST:PORT", &a->check, 0, 0,
                    "serve nothing; exit status 0 if the shard there serves, else 1"),
        OPTIONS_ROW(UNSUPPORTED, "keys", "DIR", NULL, 0, 0,
                    "this build has no CURVE encryption yet"),
        OPTIONS_ROW(UNSUPPORTED, "metrics", "HOST:PORT", NULL, 0, 0,
                    "this build has no metrics endpoint yet"),
        OPTIONS_END,
    };
    const struct options options = {
        .program = program,
        .usage = "[OPTION]...",
        .summary = "Serves a transposition table that knows who searches each position.",
        .version = "0.1",
        .table = table,
    };
    return options_parse(&options, argc, argv, NULL, NULL);
}

/* 0, or the exit code after one line on stderr. */
static int check_arguments(const struct arguments *a, struct listen_address *address)
{
    if (a->memory / a->shards < SHARD_MEMORY_MIN) {
        return options_wrong(program, "--memory: a shard needs 1M at least");
    }
    uint64_t physical = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    if (a->memory > physical) {
        return options_wrong(program, "--memory: more than the %u MiB of this machine",
                             (unsigned)(physical >> 20));
    }
    if (a->listen.port != 0 && a->listen.port + a->shards - 1 > UINT16_MAX) {
        return options_wrong(program, "--shards: ports go up to 65535 only");
    }
    if (listen_resolve(&a->listen, address) != ERR_OK) {
        log_fail(program, "--listen: host '%s' is not known", a->listen.host);
        return 1;
    }
    if (!address->is_loopback && !a->is_insecure) {
        return options_wrong(program,
                             "--listen %s can be reached from other machines: say --insecure if "
                             "their users may be trusted",
                             a->listen.host);
    }
    return 0;
}

/* For health checks: silent when all is well. */
static int check_other(const struct options_host_port *at)
{
    enum err err = check_shard(at);
    if (err == ERR_OK) {
        return 0;
    }
    log_fail(program, "--check %s:%u: %s", at->host, (unsigned)at->port,
             err == ERR_ABSENT ? "no shard answers there" : err_text(err));
    return 1;
}

static uint32_t session_share(uint32_t holds)
{
    uint32_t share = holds / SESSION_SHARE;
    return share < SESSION_MIN ? SESSION_MIN : share;
}

int main(int argc, char **argv)
{
    const struct ttcore_options defaults = ttcore_defaults();
    struct arguments a = {
        .listen = {"127.0.0.1", DEFAULT_PORT},
        .shards = 1,
        .memory = UINT64_C(256) << 20,
        .heartbeat_ms = defaults.heartbeat_ms,
        .inflight_age_max_ms = defaults.inflight_age_max_ms,
        .sessions = defaults.sessions_max,
        .jobs = defaults.jobs_max,
    };
    struct server_options server = {.program = program, .core = defaults};
    int status = options_status(read_arguments(argc, argv, &a));
    if (status >= 0) {
        return status;
    }
    if (a.check.host[0] != '\0') {
        return check_other(&a.check);
    }
    int code = check_arguments(&a, &server.address);
    if (code != 0) {
        return code;
    }
    uint64_t share = a.memory / a.shards;
    uint64_t holds = share / INFLIGHT_SHARE / TTCORE_INFLIGHT_ENTRY_BYTES;
    holds = holds < INFLIGHT_MIN ? INFLIGHT_MIN : holds > INFLIGHT_MAX ? INFLIGHT_MAX : holds;
    server.listen = a.listen;
    server.shards = a.shards;
    server.core.results_bytes = share - holds * TTCORE_INFLIGHT_ENTRY_BYTES;
    server.core.inflight_max = (uint32_t)holds;
    server.core.session_inflight_max = session_share((uint32_t)holds);
    server.core.heartbeat_ms = a.heartbeat_ms;
    server.core.inflight_age_max_ms = a.inflight_age_max_ms;
    server.core.sessions_max = a.sessions;
    server.core.jobs_max = a.jobs;
    return server_run(&server);
}
