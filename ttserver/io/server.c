#include "ttserver/io/server.h"

#include "common/log.h"
#include "common/signals.h"
#include "ttserver/io/shard.h"

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
#include <zmq.h>

enum {
    IO_THREADS_MAX = 8,
    DESCRIPTORS_SPARE = 64,
    PORT_TRIES = 100, /* for N free ports in a row, when any will do */
};

struct server {
    /* fixed after start */
    const struct server_options *options;
    void *context;
    unsigned io_threads;
    struct shard *shard;
    pthread_t *thread;
    /* the main thread's */
    uv_loop_t loop;
    uv_signal_t interrupt, terminate;
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
        uv_async_init(loop, &server->ended, on_ended) != 0) {
        return false;
    }
    server->interrupt.data = server->terminate.data = server->ended.data = server;
    /* One turn before there are signals to take. Under ThreadSanitizer a signal that comes while a
     * thread makes its first blocking call is lost (its record of pending signals is allocated
     * then, and again by the handler): 1 end in 100 that followed "ready" at once. */
    (void)uv_run(loop, UV_RUN_NOWAIT);
    return uv_signal_start(&server->interrupt, on_signal, SIGINT) == 0 &&
           uv_signal_start(&server->terminate, on_signal, SIGTERM) == 0;
}

/* ---- start ---- */

/* A connection is a descriptor; the usual soft limit of 1,024 is less than a cluster. */
static void raise_descriptor_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
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
        log_fail(o->program, "%s: cannot listen: %s", name, zmq_strerror(errno));
    } else {
        log_fail(o->program, "shard %u: %s (--memory, --sessions)", index + 1, err_text(err));
    }
}

/* Port 0: any free one. ERR_EXIST is left to the caller where `may_exist`; the rest is said. */
static enum err open_shard(struct server *server, unsigned index, uint16_t port, bool may_exist)
{
    const struct server_options *o = server->options;
    char digits[8] = "*", endpoint[128], name[320];
    struct shard_options shard = {
        .core = o->core,
        .endpoint = endpoint,
        .is_v6 = o->address.is_v6,
        .io_thread = index % server->io_threads,
        .ended = &server->ended,
    };
    if (port != 0) {
        snprintf(digits, sizeof digits, "%u", port);
    }
    snprintf(endpoint, sizeof endpoint, o->address.is_v6 ? "tcp://[%s]:%s" : "tcp://%s:%s",
             o->address.numeric, digits);
    options_host_port_text(o->listen.host, port, name, sizeof name);
    shard.core.start_us = uv_hrtime() / 1000;
    uint64_t drawn[2];
    if (getrandom(drawn, sizeof drawn, 0) != sizeof drawn) {
        log_fail(o->program, "no random numbers from the system");
        return ERR_IO;
    }
    shard.core.boot = drawn[0];
    shard.core.secret = drawn[1];
    enum err err = shard_open(&server->shard[index], server->context, &shard);
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
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    unsigned threads = o->shards < IO_THREADS_MAX ? o->shards : IO_THREADS_MAX;
    server->io_threads = cpus > 0 && threads > cpus ? (unsigned)cpus : threads;
    server->context = zmq_ctx_new();
    server->shard = calloc(o->shards, sizeof *server->shard);
    server->thread = calloc(o->shards, sizeof *server->thread);
    if (server->context == NULL || server->shard == NULL || server->thread == NULL) {
        log_fail(o->program, "%s", err_text(ERR_NOMEM));
        return false;
    }
    zmq_ctx_set(server->context, ZMQ_IO_THREADS, (int)server->io_threads);
    return open_all(server);
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
    ttcore_figures(server->shard[0].core, &first);
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
    if (fflush(stdout) != 0 || ferror(stdout)) {
        log_fail(server->options->program, "standard output: %s", strerror(errno));
        return false;
    }
    return true;
}

/* ---- end ---- */

static bool report(const struct server *server, unsigned index)
{
    const struct shard *shard = &server->shard[index];
    struct ttcore_figures f;
    ttcore_figures(shard->core, &f);
    log_line(server->options->program,
             "port %u: %" PRIu64 " messages in, %" PRIu64 " out; %" PRIu64 " asks (%" PRIu64
             " cut, %" PRIu64 " busy), %" PRIu64 " stores, %" PRIu64 " peeks; %" PRIu64
             " sessions expired, %" PRIu64 " malformed, %" PRIu64 " refused, %" PRIu64
             " unreachable, %" PRIu64 " full; up %" PRIu64 ".%03u s",
             shard->port, shard->received, f.sent, f.asks, f.cuts, f.busy, f.stores, f.peeks,
             f.sessions_expired, f.malformed, f.refused, f.unreachable, f.queue_full + f.dropped,
             f.uptime_ms / 1000, (unsigned)(f.uptime_ms % 1000));
    if (shard->outcome != ERR_OK) {
        log_fail(server->options->program, "port %u: %s", shard->port, err_text(shard->outcome));
    }
    return shard->outcome == ERR_OK;
}

static bool join_shards(struct server *server)
{
    bool ok = true;
    for (unsigned i = 0; i < server->running; i++) {
        pthread_join(server->thread[i], NULL);
        ok = report(server, i) && ok;
    }
    return ok;
}

static void free_server(struct server *server)
{
    close_shards(server);
    if (server->context != NULL) {
        zmq_ctx_term(server->context);
    }
    free(server->shard);
    free(server->thread);
}

int server_run(const struct server_options *options)
{
    struct server server = {.options = options};
    bool ok = true;
    raise_descriptor_limit();
    if (!open_main_loop(&server)) {
        log_fail(options->program, "cannot start an event loop");
        return 1;
    }
    ok = open_shards(&server);
    if (ok) {
        log_start(&server);
        ok = start_shards(&server) && announce(&server);
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
    ok = join_shards(&server) && ok;
    free_server(&server);
    shard_close_loop(&server.loop);
    return ok ? 0 : 1;
}
