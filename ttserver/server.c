#include "ttserver/server.h"

#include "common/clock.h"
#include "common/log.h"
#include "common/signals.h"
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

struct server {
    /* fixed after start */
    const struct server_options *options;
    struct who access;
    struct keep keep;
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
        log_fail(server->options->program, "SIGHUP: the log cannot be opened anew: %s",
                 strerror(errno));
    }
    if (server->access.dir == NULL) {
        log_line(server->options->program, "SIGHUP: there are no keys to be read again");
    } else if (who_reread(&server->access, &skipped, why) != ERR_OK) {
        log_fail(server->options->program, "SIGHUP: %s; the list of users stays as it was", why);
    } else {
        if (skipped > 0) {
            log_fail(server->options->program, "SIGHUP: %u left out: %s", skipped, why);
        }
        log_line(server->options->program, "SIGHUP: %zu users are let in",
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
    keep_write_now(&server->keep);
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

/* Until then they end the process at once, as nobody is served yet: what survived may take long to
 * read. */
static bool take_signals(struct server *server)
{
    return uv_signal_start(&server->interrupt, on_signal, SIGINT) == 0 &&
           uv_signal_start(&server->terminate, on_signal, SIGTERM) == 0;
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
            "--sessions: allow more (ulimit -Hn)",
            (unsigned long long)limit.rlim_max, (unsigned long long)each, o->core.sessions_max);
    }
    return each < UINT32_MAX ? (uint32_t)each : UINT32_MAX;
}

static void *run_shard(void *shard)
{
    shard_run(shard);
    return NULL;
}

static void say_why(const struct server_options *o, enum err err, unsigned index, const char *name)
{
    if (err == ERR_EXIST) {
        log_fail(o->program, "%s: address already in use", name);
    } else if (err == ERR_IO) {
        log_fail(o->program, "%s: cannot listen: %s", name, strerror(errno));
    } else {
        log_fail(o->program, "shard %u: %s (--memory, --sessions)", index + 1, err_text(err));
    }
}

/* Port 0: any free one. ERR_EXIST is left to the caller where `may_exist`; the rest is said. */
static enum err open_shard(struct server *server, unsigned index, uint16_t port, bool may_exist)
{
    const struct server_options *o = server->options;
    char name[320];
    struct shard_options shard = {
        .program = o->program,
        .core = o->core,
        .address = o->address,
        .addresses = o->addresses,
        .port = port,
        .access = &server->access,
        .connections_max = server->connections_max,
        .held_max = HELD_MAX / o->shards,
        .ended = &server->ended,
        .metrics = o->metrics != NULL ? &server->metrics.shard[index] : NULL,
    };
    options_host_port_text(o->listen.host, port, name, sizeof name);
    shard.core.start_us = clock_us();
    uint64_t drawn[2];
    if (getrandom(drawn, sizeof drawn, 0) != sizeof drawn) {
        log_fail(o->program, "no random numbers from the system");
        return ERR_IO;
    }
    shard.core.boot = drawn[0];
    shard.core.secret = drawn[1];
    keep_core(&server->keep, index, &shard.core);
    enum err err = shard_open(&server->shard[index], &shard);
    if (err != ERR_OK && !(err == ERR_EXIST && may_exist)) {
        say_why(o, err, index, name);
    }
    return err;
}

static void close_shards(struct server *server)
{
    while (server->opened > 0) {
        shard_close(&server->shard[--server->opened]);
    }
}

/* On consecutive ports from the first's on. */
static enum err open_row(struct server *server, bool may_exist)
{
    unsigned first = server->options->listen.port;
    for (; server->opened < server->options->shards; server->opened++) {
        unsigned port = first == 0 ? 0 : first + server->opened;
        enum err err = port > UINT16_MAX
                           ? ERR_EXIST
                           : open_shard(server, server->opened, (uint16_t)port, may_exist);
        if (err != ERR_OK) {
            return err;
        }
        first = first == 0 ? server->shard[0].port : first;
    }
    return ERR_OK;
}

/* Any port: the system names the first, and its neighbours may be taken. */
static bool open_all(struct server *server)
{
    bool any_port = server->options->listen.port == 0;
    enum err err = open_row(server, any_port);
    for (unsigned i = 1; err == ERR_EXIST && any_port && i < PORT_TRIES; i++) {
        close_shards(server);
        err = open_row(server, true);
    }
    if (err == ERR_EXIST && any_port) {
        log_fail(server->options->program,
                 "no %u free ports in a row: name the first with --listen",
                 server->options->shards);
    }
    return err == ERR_OK;
}

static bool open_shards(struct server *server)
{
    const struct server_options *o = server->options;
    char why[KEYS_WHY_MAX];
    server->shard = calloc(o->shards, sizeof *server->shard);
    server->thread = calloc(o->shards, sizeof *server->thread);
    if (server->shard == NULL || server->thread == NULL) {
        log_fail(o->program, "%s", err_text(ERR_NOMEM));
        return false;
    }
    if (o->metrics != NULL && server_metrics_open(&server->metrics, o->shards) != ERR_OK) {
        log_fail(o->program, "%s", err_text(ERR_NOMEM));
        return false;
    }
    if (who_open(&server->access, o->keys_dir, why) != ERR_OK) {
        log_fail(o->program, "--keys: %s", why);
        return false;
    }
    return keep_open(&server->keep, o->program, &o->keep, &o->listen, o->shards) &&
           open_all(server);
}

static bool serve_metrics(struct server *server)
{
    const struct server_options *o = server->options;
    char why[HTTP_WHY_MAX];
    if (o->metrics == NULL) {
        return true;
    }
    for (unsigned i = 0; i < server->opened; i++) {
        char *address = server->metrics.shard[i].address;
        options_host_port_text(o->listen.host, server->shard[i].port, address,
                               sizeof server->metrics.shard[i].address);
    }
    if (server_metrics_serve(&server->metrics, o->metrics, why) != ERR_OK) {
        log_fail(o->program, "--metrics: %s", why);
        return false;
    }
    log_line(o->program, "metrics at http://%s/metrics", http_address(server->metrics.http));
    return true;
}

/* Reads what survived, while nobody is served yet. */
static bool fill_shards(struct server *server)
{
    bool ok = true;
    for (unsigned i = 0; ok && i < server->opened; i++) {
        ok = keep_attach(&server->keep, server->options->program, i, server->shard[i].peers.core);
    }
    return ok;
}

/* The shards' threads take no signals: the main loop does. */
static bool start_shards(struct server *server)
{
    bool ok = true;
    while (ok && server->running < server->opened) {
        struct shard *shard = &server->shard[server->running];
        ok = signals_create_thread(&server->thread[server->running], run_shard, shard);
        server->running += ok;
    }
    ok = ok && keep_start(&server->keep);
    if (!ok) {
        log_fail(server->options->program, "cannot start a thread");
    }
    return ok;
}

/* Before the threads run: the figures are theirs from then on. */
static void log_start(const struct server *server)
{
    const struct server_options *o = server->options;
    struct ttcore_figures first;
    char name[320];
    ttcore_figures(server->shard[0].peers.core, &first);
    options_host_port_text(o->listen.host, server->shard[0].port, name, sizeof name);
    log_line(o->program, "%u shard%s from %s, %" PRIu64 " MiB and %u in-flight entries each",
             o->shards, o->shards == 1 ? "" : "s", name, first.memory_bytes >> 20,
             o->core.inflight_max);
}

/* Programs wait for these lines: they must not stay in a buffer. */
static bool announce(const struct server *server)
{
    char name[320];
    for (unsigned i = 0; i < server->opened; i++) {
        options_host_port_text(server->options->listen.host, server->shard[i].port, name,
                               sizeof name);
        printf("ready %s\n", name);
    }
    return log_flush(server->options->program, stdout, "standard output");
}

/* ---- end ---- */

static void report(const struct server *server, unsigned index)
{
    const struct shard *shard = &server->shard[index];
    struct ttcore_figures f;
    ttcore_figures(shard->peers.core, &f);
    log_line(server->options->program,
             "port %u: %" PRIu64 " messages in, %" PRIu64 " out; %" PRIu64 " asks (%" PRIu64
             " cut, %" PRIu64 " busy), %" PRIu64 " stores, %" PRIu64 " peeks; %" PRIu64
             " sessions expired, %" PRIu64 " malformed, %" PRIu64 " refused, %" PRIu64
             " unreachable, %" PRIu64 " full; up %" PRIu64 ".%03u s",
             shard->port, shard->peers.received, f.sent, f.asks, f.cuts, f.busy, f.stores, f.peeks,
             f.sessions_expired, f.malformed, f.refused, f.unreachable, f.queue_full + f.dropped,
             f.uptime_ms / 1000, (unsigned)(f.uptime_ms % 1000));
}

static void join_shards(struct server *server)
{
    for (unsigned i = 0; i < server->running; i++) {
        pthread_join(server->thread[i], NULL);
        report(server, i);
    }
}

static void free_server(struct server *server)
{
    keep_end(&server->keep);
    server_metrics_close(&server->metrics);
    close_shards(server);
    who_close(&server->access);
    free(server->shard);
    free(server->thread);
}

int server_run(const struct server_options *options)
{
    struct server server = {.options = options};
    bool ok = true;
    server.connections_max = share_descriptors(options);
    if (!open_main_loop(&server)) {
        log_fail(options->program, "cannot start an event loop");
        return 1;
    }
    ok = open_shards(&server) && serve_metrics(&server);
    if (ok) {
        log_start(&server);
        ok = fill_shards(&server) && take_signals(&server) && start_shards(&server) &&
             log_to_file(options->program, options->log) && announce(&server);
    }
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
    join_shards(&server);
    free_server(&server);
    shard_close_loop(&server.loop);
    return ok ? 0 : 1;
}
