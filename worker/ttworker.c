/* ttworker: stateless helpers of a cluster. */
#include "common/clock.h"
#include "common/config.h"
#include "common/log.h"
#include "common/signals.h"
#include "worker/engine/process_name.h"
#include "worker/engine/searching_metrics.h"
#include "worker/engine/worker.h"
#include "worker/programs/cli.h"
#include "worker/programs/engine/engine_worker.h"
#include "worker/table/host_table.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char program[] = "ttworker";

enum { WHY_MAX = KEYS_WHY_MAX + HTTP_WHY_MAX };

static atomic_bool stopping;

struct crew {
    struct cli_resources resources;
    const char *name, *log;
    struct embedded *table;
    struct lanes *lanes;
    struct searching_metrics *metrics;
    struct member {
        struct crew *crew;
        struct worker *worker;
        pthread_t thread;
    } member[EMBEDDED_SLOTS_MAX];
    unsigned started;
    sem_t tried; /* posted by each thread once it has tried every shard */
    atomic_uint up; /* shards reached, by the thread that reached most */
};

static void on_hangup(int number)
{
    (void)number;
    (void)log_reopen();
}

static void *run_member(void *context)
{
    struct member *m = context;
    struct crew *c = m->crew;
    unsigned up = worker_connect(m->worker, WORKER_CONNECT_MS);
    unsigned seen = atomic_load(&c->up);
    while (up > seen && !atomic_compare_exchange_weak(&c->up, &seen, up)) {
    }
    sem_post(&c->tried);
    worker_run(m->worker);
    return NULL;
}

/* Says in one line which came and went, however many there are. */
static void say_shards(void *self, uint64_t changed, uint64_t up)
{
    const struct crew *c = self;
    char text[2][512] = {"", ""};
    for (unsigned i = 0; i < lanes_shards(c->lanes); i++) {
        char name[LANES_NAME_MAX];
        char *out = text[up >> i & 1];
        size_t used = strlen(out);
        if (changed >> i & 1) {
            lanes_shard_name(c->lanes, i, name);
            snprintf(out + used, sizeof text[0] - used, " %s", name);
        }
    }
    log_line(program, "%s%s%s%s; %d of %u shards up", *text[1] ? "connected to" : "", text[1],
             *text[0] ? *text[1] ? "; lost" : "lost" : "", text[0], __builtin_popcountll(up),
             lanes_shards(c->lanes));
}

static enum err open_crew(struct crew *c, const struct keys_client *keys, char why[LANES_WHY_MAX])
{
    const struct cli_resources *r = &c->resources;
    const struct lanes_address address = cli_table_address(&r->table, keys);
    uint64_t group = r->is_private ? 0 : lanes_group(&address);
    char own[PROCESS_NAME_MAX];
    process_name_default(own);
    struct cli_wait wait = {.program = program, .stop = &stopping};
    const struct host_table_wait host_wait = {.self = &wait, .waiting = cli_say_waiting};
    enum err err = cli_check_memory(r->hash_mib, NULL, r->threads, why, LANES_WHY_MAX);
    err = err ? err : lanes_open(&c->lanes, &address, r->threads, program, why);
    err = err ? err
              : embedded_open_on_host(&c->table, r->hash_mib << 20, r->threads, group, &host_wait);
    for (unsigned i = 0; i < r->threads && err == ERR_OK; i++) {
        char name[CLIENT_NAME_MAX + 1]; /* with several threads, the thread's number after it */
        snprintf(name, sizeof name, r->threads > 1 ? "%s.%u" : "%s",
                 c->name != NULL ? c->name : own, i);
        struct lane lane;
        err = lanes_add(c->lanes, keys, &lane);
        if (err != ERR_OK) {
            return err;
        }
        struct worker_options options = {
            .searcher = {.table = c->table,
                         .index = i,
                         .neighbours = r->threads,
                         .lane = &lane,
                         .client = {.shards = lanes_shards(c->lanes),
                                    .instance = clock_unique(),
                                    .name = name}, /* copied */
                         .share_depth = (uint8_t)r->share},
            .seed = (uint64_t)getpid() << 16 | i,
            .stop = &stopping,
            .has_letters = r->table.url == NULL,
            /* The first speaks for all; a Redis' connection speaks for itself. */
            .sources_changed = i == 0 && r->table.url == NULL ? say_shards : NULL,
            .sources_self = c,
        };
        c->member[i].crew = c;
        err = worker_open(&c->member[i].worker, &options);
    }
    return err;
}

static const struct searcher *searcher_of(void *crew, unsigned i)
{
    return worker_searcher(((struct crew *)crew)->member[i].worker);
}

static enum err serve_metrics(struct crew *c, char why[WHY_MAX])
{
    const struct searching_metrics_options options = {
        .program = program,
        .says = program,
        .threads = c->resources.threads,
        .shards = lanes_shards(c->lanes),
        .searcher = searcher_of,
        .self = c,
        .stop = &stopping,
    };
    char reason[HTTP_WHY_MAX];
    enum err err = searching_metrics_open(&c->metrics, &c->resources.metrics, &options, reason);
    if (err != ERR_OK) {
        snprintf(why, WHY_MAX, "--metrics: %s", reason);
    }
    return err;
}

static void close_crew(struct crew *c)
{
    for (unsigned i = 0; i < c->started; i++) { /* until the end: they run on */
        pthread_join(c->member[i].thread, NULL);
    }
    searching_metrics_close(&c->metrics);
    for (unsigned i = 0; i < c->resources.threads; i++) {
        worker_close(&c->member[i].worker);
    }
    lanes_close(&c->lanes);
    embedded_close(&c->table);
}

/* Scripts wait for this line: a failure to write it ends the program. */
static bool announce(const struct crew *c)
{
    if (!log_to_file(program, c->log)) { /* what kept it from starting was said before */
        return false;
    }
    printf("ready\n");
    if (!log_flush(program, stdout, "standard output")) {
        return false;
    }
    int reason = embedded_private_reason(c->table);
    log_line(program, "%u thread%s, %u of %u shards up, %s of %" PRIu64 " MiB",
             c->resources.threads, c->resources.threads == 1 ? "" : "s", atomic_load(&c->up),
             lanes_shards(c->lanes), embedded_is_on_host(c->table) ? "the host's table" : "a table",
             c->resources.hash_mib);
    if (reason != 0) {
        cli_say_private(program, c->resources.hash_mib, host_table_reason(reason));
    }
    return true;
}

static int serve(struct crew *c)
{
    struct keys_client room;
    const struct keys_client *keys = NULL;
    char why[WHY_MAX] = "";
    bool ok = false;
    if (cli_load_keys(c->resources.table.keys_dir, KEYS_WORKER, &room, &keys, why) != ERR_OK) {
        return log_fail(program, "%s", why);
    }
    /* Also without a log: when its terminal closes a worker goes on, as ttserver does. */
    struct sigaction action = {.sa_handler = on_hangup, .sa_flags = SA_RESTART};
    sigaction(SIGHUP, &action, NULL);
    signals_end_by(&stopping);
    sem_init(&c->tried, 0, 0);
    enum err err = open_crew(c, keys, why);
    keys_wipe(&room, sizeof room);
    err = err ? err : serve_metrics(c, why);
    for (unsigned i = 0; i < c->resources.threads && err == ERR_OK; i++) {
        int error = pthread_create(&c->member[i].thread, NULL, run_member, &c->member[i]);
        if (error != 0) {
            snprintf(why, sizeof why, "only %u of %u threads could be started: %s", i,
                     c->resources.threads, strerror(error));
            err = ERR_FULL;
        } else {
            c->started++;
        }
    }
    for (unsigned i = 0; i < c->started && err == ERR_OK; i++) {
        while (sem_wait(&c->tried) != 0 && errno == EINTR) {
        }
    }
    if (err == ERR_OK) {
        ok = announce(c);
    } else if (atomic_load(&stopping)) { /* by a signal, while it waited for the table */
        ok = true;
    } else {
        log_fail(program, "%s", why[0] != '\0' ? why : err_text(err));
    }
    if (!ok) {
        atomic_store(&stopping, true);
    }
    close_crew(c);
    sem_destroy(&c->tried);
    return ok ? 0 : 1;
}

static int serve_engine(const struct crew *c, const char *command,
                        const struct engine_settings *owners)
{
    const struct engine_worker_options options = {.program = program,
                                                  .command = command,
                                                  .owners = owners,
                                                  .table = &c->resources.table,
                                                  .name = c->name,
                                                  .log = c->log,
                                                  .metrics = &c->resources.metrics,
                                                  .threads = c->resources.threads,
                                                  .hash_mib = c->resources.hash_mib,
                                                  .stop = &stopping};
    struct sigaction action = {.sa_handler = on_hangup, .sa_flags = SA_RESTART};
    sigaction(SIGHUP, &action, NULL);
    signals_end_by(&stopping);
    return engine_worker_serve(&options);
}

int main(int argc, char *argv[])
{
    static struct crew crew = {
        .resources = {.threads = 1, .hash_mib = 64, .share = REMOTE_SHARE_DEPTH}};
    static struct engine_settings owners;
    const char *engine = NULL;
    const struct options_row table[] = {
        CLI_TABLE_ROWS(crew.resources.table),
        {"threads", "N", "searching threads (default 1)", &crew.resources.threads, OPTION_U32, 'j',
         1, EMBEDDED_SLOTS_MAX},
        CLI_HASH_ROW(crew.resources),
        CLI_PRIVATE_ROW(crew.resources),
        CLI_SHARE_ROW(crew.resources),
        CLI_METRICS_ROW(crew.resources),
        {"log", "FILE", "log into FILE once ready; SIGHUP reopens it (default: stderr)", &crew.log,
         OPTION_TEXT},
        OPTIONS_ROW(TEXT, "engine", "COMMAND", &engine, 0, 0,
                    "help the searches of this UCI engine (abdada uci --engine) in place of ours"),
        {"engine-option", "NAME=VALUE", "an option of the engine, which no job changes", &owners,
         OPTION_CUSTOM, .parse = engine_worker_parse_option},
        {"name", "NAME", "name shown by `abdada top` (default HOST:PID)", &crew.name, OPTION_TEXT},
        {0},
    };
    const struct options options = {
        .program = program,
        .usage = "--servers HOST:PORT,... | --table URL [OPTION]...",
        .summary = "Helps the searches whose jobs are posted at the shards. Stateless: may be "
                   "killed at any time.",
        .example = {"ttworker --servers 127.0.0.1:7400 --threads 4",
                    "ttworker --servers ws1:7400,ws2:7400 --keys keys --hash 1024"},
        .table = table,
    };
    log_begin();
    signals_default();
    options_about = build_about;
    int status = config_parse(&options, argc, argv, NULL, NULL);
    status = status < 0 ? cli_table_environment(program, &crew.resources.table, true) : status;
    if (status < 0 && engine == NULL && owners.count > 0) {
        status = options_wrong(program, "--engine-option is for --engine");
    }
    if (status < 0 && engine != NULL &&
        (crew.resources.is_private || crew.resources.share != REMOTE_SHARE_DEPTH)) {
        status = options_wrong(program, "--private and --share are for our own search");
    }
    if (status < 0 && engine != NULL) {
        return log_end(program, serve_engine(&crew, engine, &owners));
    }
    return log_end(program, status < 0 ? serve(&crew) : status);
}
