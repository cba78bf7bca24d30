/* ttworker: stateless helpers of a cluster. */
#include "common/clock.h"
#include "common/log.h"
#include "common/signals.h"
#include "worker/cli/cli.h"
#include "worker/engine/worker.h"
#include "worker/table/host_table.h"
#include "worker/table/wire.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zmq.h>

static const char program[] = "ttworker";

static atomic_bool stopping;

struct crew {
    uint32_t threads, share;
    uint64_t hash_mib;
    bool is_private;
    const char *name;
    struct options_servers servers;
    struct embedded *table;
    void *context;
    struct wire *wire[EMBEDDED_SLOTS_MAX];
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

static void on_signal(int number)
{
    if (atomic_exchange(&stopping, true)) {
        _exit(128 + number);
    }
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
    char host[64] = "";
    int used;
    gethostname(host, sizeof host - 1);
    if (c->name != NULL) {
        used = snprintf(out, size, "%s", c->name);
    } else {
        used = snprintf(out, size, "%.20s:%d", host, (int)getpid());
    }
    if (c->threads > 1 && used > 0 && (size_t)used < size) {
        snprintf(out + used, size - (size_t)used, ".%u", index);
    }
}

static enum err open_crew(struct crew *c)
{
    uint64_t group = c->is_private ? 0 : host_table_group(c->servers.server, c->servers.count);
    enum err err = embedded_open_on_host(&c->table, c->hash_mib << 20, c->threads, group);
    c->context = zmq_ctx_new();
    if (c->context == NULL) {
        return ERR_NOMEM;
    }
    for (unsigned i = 0; i < c->threads && err == ERR_OK; i++) {
        char name[CLIENT_NAME_MAX + 1];
        name_member(c, i, name, sizeof name);
        err = wire_open(&c->wire[i], c->context, c->servers.server, c->servers.count);
        if (err != ERR_OK) {
            return err;
        }
        struct remote_shell shell = wire_shell(c->wire[i]);
        struct worker_options options = {
            .searcher = {.table = c->table,
                         .index = i,
                         .neighbours = c->threads,
                         .shell = &shell,
                         .client = {.shards = c->servers.count,
                                    .instance = clock_unique(),
                                    .name = name}, /* copied */
                         .share_depth = (uint8_t)c->share},
            .seed = (uint64_t)getpid() << 16 | i,
            .stop = &stopping,
        };
        err = worker_open(&c->worker[i], &options);
    }
    return err;
}

static void close_crew(struct crew *c)
{
    for (unsigned i = 0; i < c->started; i++) {
        pthread_join(c->thread[i], NULL);
    }
    for (unsigned i = 0; i < c->threads; i++) {
        worker_close(&c->worker[i]);
        wire_close(&c->wire[i]);
    }
    if (c->context != NULL) {
        zmq_ctx_term(c->context);
    }
    embedded_close(&c->table);
}

/* Scripts wait for this line: a failure to write it ends the program. */
static bool announce(const struct crew *c)
{
    printf("ready\n");
    if (fflush(stdout) != 0) {
        log_fail(program, "standard output: %s", strerror(errno));
        return false;
    }
    bool is_shared = embedded_is_on_host(c->table);
    int reason = embedded_private_reason(c->table);
    log_line(program, "%u threads, %u of %u shards up, %s of %" PRIu64 " MiB%s%s", c->threads,
             atomic_load(&c->up), c->servers.count, is_shared ? "the host's table" : "a table",
             c->hash_mib, reason != 0 ? ", shared with nobody: " : "",
             reason != 0 ? strerror(reason) : "");
    return true;
}

static int serve(struct crew *c)
{
    static struct member member[EMBEDDED_SLOTS_MAX];
    bool ok = false;
    signals_catch(on_signal);
    sem_init(&c->tried, 0, 0);
    enum err err = open_crew(c);
    for (unsigned i = 0; i < c->threads && err == ERR_OK; i++) {
        member[i] = (struct member){c, i};
        if (pthread_create(&c->thread[i], NULL, run_member, &member[i]) != 0) {
            err = ERR_NOMEM;
        } else {
            c->started++;
        }
    }
    for (unsigned i = 0; i < c->started && err == ERR_OK; i++) {
        while (sem_wait(&c->tried) != 0 && errno == EINTR) {
        }
    }
    if (err != ERR_OK) {
        log_fail(program, "%s", err_text(err));
    } else {
        ok = announce(c);
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
        {"servers", "HOST:PORT,...", "the shards (required)", &crew.servers, OPTION_SERVERS, 's'},
        {"threads", "N", "searching threads (default 1)", &crew.threads, OPTION_U32, 'j', 1,
         EMBEDDED_SLOTS_MAX},
        {"hash", "MIB", "table shared by the processes of this host (default 64)", &crew.hash_mib,
         OPTION_U64, 0, 1, 1 << 20},
        {"private", NULL, "share no table with other processes of this host", &crew.is_private,
         OPTION_FLAG},
        {"share", "N", "send results of depth N and more to other tables (default 2; 0: off)",
         &crew.share, OPTION_U32, 0, 0, SEARCH_DEPTH_MAX},
        {"name", "NAME", "name shown by `abdada top` (default HOST:PID)", &crew.name, OPTION_TEXT},
        {"keys", "DIR", "CURVE keys are not built yet", NULL, OPTION_UNSUPPORTED},
        {0},
    };
    const struct options options = {
        .program = program,
        .usage = "--servers HOST:PORT,... [OPTION]...",
        .summary = "Helps the searches whose jobs are posted at the shards. Stateless: may be "
                   "killed at any time.",
        .version = CLI_VERSION,
        .table = table,
    };
    int status = options_parse(&options, argc, argv, NULL, NULL);
    if (status >= 0) {
        return status;
    }
    if (crew.servers.count == 0) {
        return options_wrong(program, "--servers HOST:PORT,... is required");
    }
    return serve(&crew);
}
