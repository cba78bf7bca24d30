/* ttworker: stateless helpers of a cluster. */
#include "common/clock.h"
#include "common/config.h"
#include "common/log.h"
#include "common/signals.h"
#include "common/streams.h"
#include "proto/transport/lane.h"
#include "worker/engine/process.h"
#include "worker/engine/worker.h"
#include "worker/programs/cli.h"
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
    uint32_t threads, share;
    uint64_t hash_mib;
    bool is_private;
    const char *name, *log;
    struct cli_table place;
    struct embedded *table;
    struct transport *transport;
    struct options_host_port metrics_at; /* host "": no metrics */
    struct searching_metrics *metrics;
    struct worker *worker[EMBEDDED_SLOTS_MAX];
    pthread_t thread[EMBEDDED_SLOTS_MAX];
    unsigned started;
    sem_t tried; /* posted by each thread once it has tried every shard */
    atomic_uint up; /* shards reached, by the thread that reached most */
};

struct member {
    struct crew *crew;
    unsigned index;
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
    unsigned up = worker_connect(c->worker[m->index], WORKER_CONNECT_MS);
    unsigned seen = atomic_load(&c->up);
    while (up > seen && !atomic_compare_exchange_weak(&c->up, &seen, up)) {
    }
    sem_post(&c->tried);
    worker_run(c->worker[m->index]);
    return NULL;
}

/* NAME, or HOST:PID; with several threads, the number of the thread after it. */
static void name_member(const struct crew *c, unsigned index, char *out, size_t size)
{
    char own[PROCESS_NAME_MAX];
    process_default_name(own);
    const int used = snprintf(out, size, "%s", c->name != NULL ? c->name : own);
    if (c->threads > 1 && used > 0 && (size_t)used < size) {
        snprintf(out + used, size - (size_t)used, ".%u", index);
    }
}

/* One line, however many there are. */
static void say_shards(void *self, uint64_t changed, uint64_t up)
{
    const struct crew *c = self;
    char text[2][512] = {"", ""};
    for (unsigned i = 0; i < transport_shards(c->transport); i++) {
        char name[TRANSPORT_NAME_MAX];
        char *out = text[up >> i & 1];
        size_t used = strlen(out);
        if (changed >> i & 1) {
            transport_shard_name(c->transport, i, name);
            snprintf(out + used, sizeof text[0] - used, " %s", name);
        }
    }
    log_line(program, "%s%s%s%s; %d of %u shards up", *text[1] ? "back:" : "", text[1],
             *text[0] ? *text[1] ? "; lost:" : "lost:" : "", text[0], __builtin_popcountll(up),
             transport_shards(c->transport));
}

static enum err open_crew(struct crew *c, const struct keys_client *keys,
                          char why[TRANSPORT_WHY_MAX])
{
    const struct transport_address address = cli_table_address(&c->place, keys);
    uint64_t group = c->is_private ? 0 : transport_group(&address);
    struct cli_wait wait = {.program = program, .stop = &stopping};
    const struct host_table_wait host_wait = {.self = &wait, .waiting = cli_say_waiting};
    enum err err = cli_check_hash(c->hash_mib, why, TRANSPORT_WHY_MAX);
    err = err ? err : transport_open(&c->transport, &address, c->threads, program, why);
    if (err == ERR_OK) {
        err = embedded_open_on_host(&c->table, c->hash_mib << 20, c->threads, group, &host_wait);
    }
    for (unsigned i = 0; i < c->threads && err == ERR_OK; i++) {
        char name[CLIENT_NAME_MAX + 1];
        name_member(c, i, name, sizeof name);
        struct remote_shell shell;
        err = transport_lane(c->transport, keys, &shell);
        if (err != ERR_OK) {
            return err;
        }
        struct worker_options options = {
            .searcher = {.table = c->table,
                         .index = i,
                         .neighbours = c->threads,
                         .shell = &shell,
                         .client = {.shards = transport_shards(c->transport),
                                    .instance = clock_unique(),
                                    .name = name}, /* copied */
                         .share_depth = (uint8_t)c->share},
            .seed = (uint64_t)getpid() << 16 | i,
            .stop = &stopping,
            .has_letters = c->place.url == NULL,
            /* One speaks for all; a Redis' connection speaks for itself. */
            .sources_changed = i == 0 && c->place.url == NULL ? say_shards : NULL,
            .sources_self = c,
        };
        err = worker_open(&c->worker[i], &options);
    }
    return err;
}

static const struct searcher *searcher_of(void *crew, unsigned i)
{
    return worker_searcher(((struct crew *)crew)->worker[i]);
}

static enum err serve_metrics(struct crew *c, char why[WHY_MAX])
{
    const struct searching_metrics_options options = {
        .program = program,
        .says = program,
        .threads = c->threads,
        .shards = transport_shards(c->transport),
        .searcher = searcher_of,
        .self = c,
        .stop = &stopping,
    };
    char reason[HTTP_WHY_MAX];
    enum err err = searching_metrics_open(&c->metrics, &c->metrics_at, &options, reason);
    if (err != ERR_OK) {
        snprintf(why, WHY_MAX, "--metrics: %s", reason);
    }
    return err;
}

static void close_crew(struct crew *c)
{
    for (unsigned i = 0; i < c->started; i++) { /* until the end: they run on */
        pthread_join(c->thread[i], NULL);
    }
    searching_metrics_close(&c->metrics);
    for (unsigned i = 0; i < c->threads; i++) {
        worker_close(&c->worker[i]);
    }
    transport_close(&c->transport);
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
    log_line(program, "%u thread%s, %u of %u shards up, %s of %" PRIu64 " MiB", c->threads,
             c->threads == 1 ? "" : "s", atomic_load(&c->up), transport_shards(c->transport),
             embedded_is_on_host(c->table) ? "the host's table" : "a table", c->hash_mib);
    if (reason != 0) {
        cli_say_private(program, c->hash_mib, host_table_reason(reason));
    }
    return true;
}

static int serve(struct crew *c)
{
    static struct member member[EMBEDDED_SLOTS_MAX];
    struct keys_client room;
    const struct keys_client *keys = NULL;
    char why[WHY_MAX] = "";
    bool ok = false;
    if (cli_load_keys(c->place.keys_dir, KEYS_WORKER, &room, &keys, why) != ERR_OK) {
        log_fail(program, "%s", why);
        return 1;
    }
    /* Also without a log: when its terminal closes a worker goes on, as ttserver does. */
    struct sigaction action = {.sa_handler = on_hangup, .sa_flags = SA_RESTART};
    sigaction(SIGHUP, &action, NULL);
    signals_end_by(&stopping);
    sem_init(&c->tried, 0, 0);
    enum err err = open_crew(c, keys, why);
    keys_wipe(&room, sizeof room);
    if (err == ERR_OK) {
        err = serve_metrics(c, why);
    }
    for (unsigned i = 0; i < c->threads && err == ERR_OK; i++) {
        member[i] = (struct member){c, i};
        int error = pthread_create(&c->thread[i], NULL, run_member, &member[i]);
        if (error != 0) {
            snprintf(why, sizeof why, "only %u of %u threads could be started: %s", i, c->threads,
                     strerror(error));
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

int main(int argc, char *argv[])
{
    static struct crew crew = {.threads = 1, .hash_mib = 64, .share = REMOTE_SHARE_DEPTH};
    const struct options_row table[] = {
        CLI_TABLE_ROWS(crew.place),
        {"threads", "N", "searching threads (default 1)", &crew.threads, OPTION_U32, 'j', 1,
         EMBEDDED_SLOTS_MAX},
        {"hash", "MIB", "table shared by the processes of this host (default 64)", &crew.hash_mib,
         OPTION_U64, 0, 1, 1 << 20},
        {"private", NULL, "share no table with other processes of this host", &crew.is_private,
         OPTION_FLAG},
        {"share", "N", "send results of depth N and more to other tables (default 2; 0: off)",
         &crew.share, OPTION_U32, 0, 0, SEARCH_DEPTH_MAX},
        CLI_METRICS_ROW(&crew.metrics_at),
        {"log", "FILE", "log into FILE once ready, which SIGHUP opens anew (default: stderr)",
         &crew.log, OPTION_TEXT},
        {"name", "NAME", "name shown by `abdada top` (default HOST:PID)", &crew.name, OPTION_TEXT},
        {0},
    };
    const struct options options = {
        .program = program,
        .usage = "--servers HOST:PORT,... | --table URL [OPTION]...",
        .summary = "Helps the searches whose jobs are posted at the shards. Stateless: may be "
                   "killed at any time.",
        .version = PROGRAM_VERSION,
        .table = table,
    };
    streams_open();
    options_about = build_about;
    int status = config_parse(&options, argc, argv, NULL, NULL);
    status = status < 0 ? lane_check_version(program) : status;
    if (status < 0) {
        status = cli_table_environment(program, &crew.place, true);
    }
    return log_end(program, status < 0 ? serve(&crew) : status);
}
