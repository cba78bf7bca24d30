#include "ttserver/server.h"

#include "common/clock.h"
#include "common/log.h"
#include "common/signals.h"
#include "ttserver/keep/backing.h"
#include "ttserver/keep/keep_files.h"
#include "ttserver/net/who.h"
#include "ttserver/shard.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
    /* Bytes that wait in all connections of the process, besides some for each. */
    HELD_MAX = 16 << 20,
    DESCRIPTORS_SPARE = 32, /* keys that are read, the log, ... */
    DESCRIPTORS_EACH_SHARD = 9, /* listener, loop, lock of its snapshots */
    CONNECTIONS_MIN = 8,
    PORT_TRIES = 100, /* for N free ports in a row, when any will do */
};

/* What outlives a shard. */
struct kept {
    uint64_t place; /* drawn, or that of the results that there are */
    struct ttcore_ledger ledger;
};

struct server {
    /* fixed after start */
    const struct server_options *options;
    struct who access;
    struct kept *kept; /* [shards]; NULL: nothing survives */
    struct keep_files files; /* where, if options.keep.snapshot says so ... */
    struct backing backing; /* ... or else here */
    struct server_metrics metrics;
    uint32_t connections_max;
    struct shard *shard;
    pthread_t *thread;
    /* the main thread's */
    uv_loop_t loop;
    uv_signal_t interrupt, terminate, hangup, write_now;
    uv_async_t ended;
    unsigned opened, running;
    bool is_stopping;
};

/* ---- the main thread's loop ---- */

static void stop_shards(const struct server *server)
{
    for (unsigned i = 0; i < server->running; i++) {
        shard_stop(&server->shard[i]);
    }
}

static void on_signal(uv_signal_t *handle, int number)
{
    struct server *server = handle->data;
    if (server->is_stopping) {
        _exit(128 + number);
    }
    server->is_stopping = true;
    stop_shards(server);
}

static void on_hangup(uv_signal_t *handle, int number)
{
    struct server *server = handle->data;
    char why[KEYS_WHY_MAX];
    unsigned skipped = 0;
    (void)number;
    if (!log_reopen()) {
        log_fail(server->options->program, "SIGHUP: cannot reopen the log: %s", strerror(errno));
    }
    if (server->access.dir == NULL) {
        log_line(server->options->program, "SIGHUP: there are no keys to read again");
    } else if (who_reread(&server->access, &skipped, why) != ERR_OK) {
        log_fail(server->options->program, "SIGHUP: %s; the list of users is unchanged", why);
    } else {
        if (skipped > 0) {
            log_fail(server->options->program, "SIGHUP: %u skipped: %s", skipped, why);
        }
        log_line(server->options->program, "SIGHUP: %zu users may connect",
                 server->access.now->count);
        for (unsigned i = 0; i < server->running; i++) {
            shard_reread(&server->shard[i]);
        }
    }
}

static void on_write_now(uv_signal_t *handle, int number)
{
    struct server *server = handle->data;
    (void)number;
    keep_files_write_now(&server->files);
}

/* A shard ended: asked to, or because its socket failed; then the others end too. Several sends may
 * wake this once, so it only starts the joining: join waits for each thread in turn. */
static void on_ended(uv_async_t *handle)
{
    struct server *server = handle->data;
    stop_shards(server);
    uv_stop(&server->loop);
}

static bool open_main_loop(struct server *server)
{
    uv_loop_t *loop = &server->loop;
    if (uv_loop_init(loop) != 0 || uv_signal_init(loop, &server->interrupt) != 0 ||
        uv_signal_init(loop, &server->terminate) != 0 ||
        uv_signal_init(loop, &server->hangup) != 0 ||
        uv_signal_init(loop, &server->write_now) != 0 ||
        uv_async_init(loop, &server->ended, on_ended) != 0) {
        return false;
    }
    server->interrupt.data = server->terminate.data = server->hangup.data = server->write_now.data =
        server->ended.data = server;
    /* One turn before there are signals to take. Under ThreadSanitizer a signal that comes while a
     * thread makes its first blocking call is lost (its record of pending signals is allocated
     * then, and again by the handler): 1 end in 100 that followed "ready" at once. */
    (void)uv_run(loop, UV_RUN_NOWAIT);
    return (server->options->keep.snapshot == NULL ||
            uv_signal_start(&server->write_now, on_write_now, SIGUSR1) == 0) &&
           uv_signal_start(&server->hangup, on_hangup, SIGHUP) == 0;
}

/* ---- start ---- */

/* A connection is a descriptor; the usual soft limit of 1,024 is less than a cluster. Returns how
 * many connections each shard may have. */
static uint32_t share_descriptors(const struct server_options *o)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        return UINT32_MAX;
    }
    if (limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    rlim_t own = DESCRIPTORS_SPARE +
                 (rlim_t)o->shards * (DESCRIPTORS_EACH_SHARD + o->addresses - 1) +
                 (o->metrics != NULL ? SERVER_METRICS_CONNECTIONS + HTTP_DESCRIPTORS : 0);
    rlim_t each = limit.rlim_max > own ? (limit.rlim_max - own) / o->shards : 0;
    each = each > CONNECTIONS_MIN ? each : CONNECTIONS_MIN;
    if (each < o->core.sessions_max) {
        log_line(
            o->program,
            "the limit of %llu open files leaves %llu connections for each shard, not the %u of "
            "--sessions: raise it (ulimit -Hn)",
            (unsigned long long)limit.rlim_max, (unsigned long long)each, o->core.sessions_max);
    }
    return each < UINT32_MAX ? (uint32_t)each : UINT32_MAX;
}

/* Writes random numbers. False: said. */
static bool draw(const struct server *server, void *out, size_t size)
{
    bool ok = getrandom(out, size, 0) == (ssize_t)size;
    if (!ok) {
        log_fail(server->options->program, "no random numbers from the system");
    }
    return ok;
}

/* Finds what survived, in files or in a Redis; changes nothing of it, as the start may fail yet.
 * False: said. */
static bool open_kept(struct server *server)
{
    const struct server_options *o = server->options;
    const struct server_keep *keep = &o->keep;
    if (keep->snapshot == NULL && keep->backing == NULL) {
        return true;
    }
    server->kept = calloc(o->shards, sizeof *server->kept);
    enum err err = server->kept == NULL ? ERR_NOMEM : ERR_OK;
    if (err == ERR_OK && keep->snapshot != NULL) {
        (void)signal(SIGXFSZ, SIG_IGN); /* a limit of size is an error like a full disk */
        err = keep_files_open(&server->files,
                              &(struct keep_files_options){.program = o->program,
                                                           .path = keep->snapshot,
                                                           .shards = o->shards,
                                                           .every_s = keep->snapshot_every_s});
    } else if (err == ERR_OK) {
        err = backing_open(&server->backing,
                           &(struct backing_options){.program = o->program,
                                                     .address = keep->backing,
                                                     .host = o->listen.host,
                                                     .port = o->listen.port,
                                                     .shards = o->shards,
                                                     .depth_min = (uint8_t)keep->backing_depth});
    }
    if (err == ERR_NOMEM) {
        log_fail(o->program, "%s", err_text(err));
    }
    for (unsigned i = 0; err == ERR_OK && i < o->shards; i++) {
        uint64_t *place = &server->kept[i].place;
        *place = keep->snapshot != NULL ? keep_file_place(&server->files.file[i])
                                        : server->backing.shard[i].own.place;
        while (*place == 0) { /* which says: the boot id */
            if (!draw(server, place, sizeof *place)) {
                return false;
            }
        }
    }
    return err == ERR_OK;
}

/* Port 0: any free one. ERR_EXIST is left to the caller where `may_exist`; the rest is said. */
static enum err open_shard(struct server *server, unsigned index, uint16_t port, bool may_exist)
{
    const struct server_options *o = server->options;
    char name[320];
    uint64_t drawn[2];
    struct shard_options shard = {
        .peers = {.program = o->program,
                  .core = o->core,
                  .access = &server->access,
                  .connections_max = server->connections_max,
                  .held_max = HELD_MAX / o->shards},
        .address = o->address,
        .addresses = o->addresses,
        .port = port,
        .ended = &server->ended,
        .metrics = o->metrics != NULL ? &server->metrics.shard[index] : NULL,
    };
    if (!draw(server, drawn, sizeof drawn)) {
        return ERR_IO;
    }
    struct ttcore_options *core = &shard.peers.core;
    core->start_us = clock_us();
    core->boot = drawn[0];
    core->secret = drawn[1];
    if (server->kept != NULL) {
        core->place = server->kept[index].place;
        core->ledger = &server->kept[index].ledger;
    }
    options_host_port_text(o->listen.host, port, name, sizeof name);
    enum err err = shard_open(&server->shard[index], &shard);
    if (err == ERR_EXIST && !may_exist) {
        log_fail(o->program, "%s: address already in use", name);
    } else if (err == ERR_IO) {
        log_fail(o->program, "%s: cannot listen: %s", name, strerror(errno));
    } else if (err != ERR_OK && err != ERR_EXIST) {
        log_fail(o->program, "shard %u: %s (--memory, --sessions)", index + 1, err_text(err));
    }
    return err;
}

static void close_shards(struct server *server)
{
    while (server->opened > 0) {
        shard_close(&server->shard[--server->opened]);
    }
}

/* On consecutive ports. Any will do where the first is 0: the system names it, and its neighbours
 * may be taken. */
static bool open_shards(struct server *server)
{
    const struct server_options *o = server->options;
    const bool any_port = o->listen.port == 0;
    enum err err = ERR_EXIST;
    for (unsigned i = 0; err == ERR_EXIST && i < (any_port ? PORT_TRIES : 1); i++) {
        unsigned first = o->listen.port;
        close_shards(server);
        for (err = ERR_OK; err == ERR_OK && server->opened < o->shards;) {
            unsigned port = first == 0 ? 0 : first + server->opened;
            err = port > UINT16_MAX ? ERR_EXIST
                                    : open_shard(server, server->opened, (uint16_t)port, any_port);
            server->opened += err == ERR_OK;
            first = first == 0 && err == ERR_OK ? server->shard[0].port : first;
        }
    }
    if (err == ERR_EXIST && any_port) {
        log_fail(o->program, "no %u free ports in a row: name the first with --listen", o->shards);
    }
    return err == ERR_OK;
}

static bool serve_metrics(struct server *server)
{
    const struct server_options *o = server->options;
    const char *at = o->address[0].numeric;
    char why[HTTP_WHY_MAX], host[OPTIONS_HOST_MAX];
    if (o->metrics == NULL) {
        return true;
    }
    /* What names this host in the labels of its figures: an address of all interfaces would be the
     * same on every host. */
    snprintf(host, sizeof host, "%s", o->listen.host);
    if (strcmp(at, "0.0.0.0") == 0 || strcmp(at, "::") == 0) {
        gethostname(host, sizeof host - 1);
    }
    for (unsigned i = 0; i < server->opened; i++) {
        char *address = server->metrics.shard[i].address;
        options_host_port_text(host, server->shard[i].port, address,
                               sizeof server->metrics.shard[i].address);
    }
    if (server_metrics_serve(&server->metrics, o->metrics, why) != ERR_OK) {
        log_fail(o->program, "--metrics: %s", why);
        return false;
    }
    log_line(o->program, "metrics at http://%s/metrics", http_address(server->metrics.http));
    return true;
}

static void *run_shard(void *shard)
{
    shard_run(shard);
    return NULL;
}

/* From nothing to shards that serve. False: said in one line. */
static bool start(struct server *server)
{
    const struct server_options *o = server->options;
    char why[KEYS_WHY_MAX], name[320];
    struct ttcore_figures first;

    /* 1. Open what can fail: keys, what survived, ports. */
    server->shard = calloc(o->shards, sizeof *server->shard);
    server->thread = calloc(o->shards, sizeof *server->thread);
    if (server->shard == NULL || server->thread == NULL ||
        (o->metrics != NULL && server_metrics_open(&server->metrics, o->shards) != ERR_OK)) {
        log_fail(o->program, "%s", err_text(ERR_NOMEM));
        return false;
    }
    if (who_open(&server->access, o->keys_dir, why) != ERR_OK) {
        log_fail(o->program, "--keys: %s", why);
        return false;
    }
    if (!open_kept(server) || !open_shards(server) || !serve_metrics(server)) {
        return false;
    }
    ttcore_figures(server->shard[0].peers.core, &first); /* the threads' from their start on */
    options_host_port_text(o->listen.host, server->shard[0].port, name, sizeof name);
    log_line(o->program, "%u shard%s from %s, %" PRIu64 " MiB and %u in-flight entries each",
             o->shards, o->shards == 1 ? "" : "s", name, first.memory_bytes >> 20,
             o->core.inflight_max);

    /* 2. Read what survived, while nobody is served yet. It may take long: until now signals end
     * the process at once. */
    for (unsigned i = 0; server->kept != NULL && i < server->opened; i++) {
        struct kept *kept = &server->kept[i];
        struct tt_results *results = ttcore_results(server->shard[i].peers.core);
        if (o->keep.snapshot != NULL) {
            keep_files_fill(&server->files, i, results, &kept->ledger, kept->place);
        } else if (backing_attach(&server->backing, i, results, &kept->ledger, kept->place) !=
                   ERR_OK) {
            log_fail(o->program, "%s", err_text(ERR_NOMEM));
            return false;
        }
    }
    if (uv_signal_start(&server->interrupt, on_signal, SIGINT) != 0 ||
        uv_signal_start(&server->terminate, on_signal, SIGTERM) != 0) {
        return false;
    }

    /* 3. Start the threads, which take no signals: the main loop does. */
    bool ok = true;
    while (ok && server->running < server->opened) {
        struct shard *shard = &server->shard[server->running];
        ok = signals_create_thread(&server->thread[server->running], run_shard, shard);
        server->running += ok;
    }
    ok = ok && (server->kept == NULL       ? true
                : o->keep.snapshot != NULL ? keep_files_start(&server->files)
                                           : backing_start(&server->backing));
    if (!ok) {
        log_fail(o->program, "cannot start a thread");
        return false;
    }

    /* 4. Say so. Programs wait for these lines: they must not stay in a buffer. */
    if (!log_to_file(o->program, o->log)) {
        return false;
    }
    for (unsigned i = 0; i < server->opened; i++) {
        options_host_port_text(o->listen.host, server->shard[i].port, name, sizeof name);
        printf("ready %s\n", name);
    }
    return log_flush(o->program, stdout, "standard output");
}

/* ---- end ---- */

static void report(const struct server *server, unsigned index)
{
    const struct shard *shard = &server->shard[index];
    struct ttcore_figures f;
    ttcore_figures(shard->peers.core, &f);
    log_line(server->options->program,
             "port %u: %" PRIu64 " messages in, %" PRIu64 " out, %" PRIu64 " asks (%" PRIu64
             " cut, %" PRIu64 " busy), %" PRIu64 " stores, %" PRIu64 " peeks; %" PRIu64
             " sessions expired, %" PRIu64 " malformed, %" PRIu64 " refused, %" PRIu64
             " unreachable, %" PRIu64 " full, up %" PRIu64 ".%03u s",
             shard->port, shard->peers.received, f.sent, f.asks, f.cuts, f.busy, f.stores, f.peeks,
             f.sessions_expired, f.malformed, f.refused, f.unreachable, f.queue_full + f.dropped,
             f.uptime_ms / 1000, (unsigned)(f.uptime_ms % 1000));
}

int server_run(const struct server_options *options)
{
    struct server server = {.options = options, .connections_max = share_descriptors(options)};
    if (!open_main_loop(&server)) {
        log_fail(options->program, "cannot start an event loop");
        return 1;
    }
    bool ok = start(&server);
    if (ok) {
        uv_run(&server.loop, UV_RUN_DEFAULT);
    } else {
        stop_shards(&server);
    }
    /* While threads are joined a signal ends the process: it has its default effect again. The
     * loop itself stays until then, because the shards signal its `ended`. */
    uv_signal_stop(&server.interrupt);
    uv_signal_stop(&server.terminate);
    uv_signal_stop(&server.hangup);
    signals_default();
    for (unsigned i = 0; i < server.running; i++) {
        pthread_join(server.thread[i], NULL);
        report(&server, i);
    }
    keep_files_end(&server.files);
    backing_end(&server.backing);
    server_metrics_close(&server.metrics);
    close_shards(&server);
    who_close(&server.access);
    free(server.kept);
    free(server.shard);
    free(server.thread);
    shard_close_loop(&server.loop);
    return ok ? 0 : 1;
}
