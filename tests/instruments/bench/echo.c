/* echo: upper limits: bare ZeroMQ (DEALER to ROUTER) and bare TCP move the same bytes and do
 * nothing with them. A round is a message without an answer (stores), then one with an answer
 * (asks), with `window` rounds on the way. Server and client are two processes. One JSON line on
 * stdout.
 *
 *   echo --kind zmq|tcp [--ask BYTES] [--answer BYTES] [--store BYTES] [--window N]
 *        [--seconds S] */
#include "common/clock.h"
#include "common/histogram.h"
#include "common/options.h"
#include "tests/instruments/bench/duplex.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <zmq.h>

enum { BYTES_MAX = 1 << 20 };

struct echo {
    const char *kind;
    uint32_t ask, answer, store, window;
    double seconds;
    /* outcome */
    uint64_t rounds, messages, bytes;
    double took;
    struct histogram latency_ns;
};

static uint8_t bytes[BYTES_MAX];

/* ---- the client, whatever carries the bytes ---- */

struct carrier {
    void *line;
    void (*put)(void *line, uint32_t length, uint8_t first);
    bool (*take)(void *line); /* an answer; false: the server is gone */
};

/* The first byte of an ask is 1. */
static void run_window(struct echo *e, const struct carrier *c)
{
    uint64_t *sent_ns = calloc(e->window, sizeof *sent_ns), out = 0, begin = clock_ns(),
             now = begin;
    uint64_t end = begin + (uint64_t)(e->seconds * 1e9);
    while (now < end || e->rounds < out) {
        while (now < end && out - e->rounds < e->window) {
            if (e->store > 0) {
                c->put(c->line, e->store, 0);
                e->messages++;
            }
            sent_ns[out++ % e->window] = clock_ns();
            c->put(c->line, e->ask, 1);
            e->messages++;
        }
        if (!c->take(c->line)) {
            duplex_fail("echo client");
        }
        now = clock_ns();
        histogram_add(&e->latency_ns, now - sent_ns[e->rounds++ % e->window]);
        e->messages++;
    }
    e->took = (double)(now - begin) / 1e9;
    free(sent_ns);
}

/* ---- ZeroMQ ---- */

static void serve_zmq(const struct echo *e, int pipe_fd)
{
    char at[128];
    size_t size = sizeof at;
    void *context = zmq_ctx_new(), *socket = zmq_socket(context, ZMQ_ROUTER);
    zmq_msg_t route, body;
    if (zmq_bind(socket, "tcp://127.0.0.1:*") != 0 ||
        zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, at, &size) != 0 ||
        write(pipe_fd, at, sizeof at) != sizeof at) {
        duplex_fail("echo server");
    }
    zmq_msg_init(&route);
    zmq_msg_init(&body);
    while (zmq_msg_recv(&route, socket, 0) >= 0 && zmq_msg_recv(&body, socket, 0) >= 0) {
        if (*(uint8_t *)zmq_msg_data(&body) == 1) {
            zmq_send(socket, zmq_msg_data(&route), zmq_msg_size(&route), ZMQ_SNDMORE);
            zmq_send(socket, bytes, e->answer, 0);
        }
    }
}

struct zmq_line {
    void *socket;
    zmq_msg_t body;
};

static void zmq_put(void *line, uint32_t length, uint8_t first)
{
    bytes[0] = first;
    zmq_send(((struct zmq_line *)line)->socket, bytes, length, 0);
}

static bool zmq_take(void *line)
{
    struct zmq_line *l = line;
    return zmq_msg_recv(&l->body, l->socket, 0) >= 0;
}

static void run_zmq(struct echo *e, const char *endpoint)
{
    struct zmq_line line = {.socket = zmq_socket(zmq_ctx_new(), ZMQ_DEALER)};
    zmq_msg_init(&line.body);
    zmq_connect(line.socket, endpoint);
    run_window(e, &(struct carrier){&line, zmq_put, zmq_take});
}

/* ---- TCP: a length and that many bytes ---- */

static void put_frame(struct duplex *d, uint32_t length, uint8_t first)
{
    uint8_t *at = duplex_room(d, length + 4);
    memcpy(at, &length, 4);
    memcpy(at + 4, bytes, length);
    at[4] = first;
    d->out_to += length + 4;
}

/* Its first byte; -1: the peer closed. */
static int take_frame(struct duplex *d)
{
    uint32_t length;
    if (!duplex_await(d, 4)) {
        return -1;
    }
    memcpy(&length, d->in + d->in_from, 4);
    if (!duplex_await(d, length + 4)) {
        return -1;
    }
    int first = d->in[d->in_from + 4];
    d->in_from += length + 4;
    return first;
}

static void serve_tcp(const struct echo *e, int pipe_fd)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    char text[128] = "";
    struct duplex d;
    int fd = socket(AF_INET, SOCK_STREAM, 0), first;
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, size) != 0 || listen(fd, 1) != 0 ||
        getsockname(fd, (struct sockaddr *)&at, &size) != 0) {
        duplex_fail("echo server");
    }
    snprintf(text, sizeof text, "%u", ntohs(at.sin_port));
    if (write(pipe_fd, text, sizeof text) != sizeof text) {
        duplex_fail("echo server");
    }
    duplex_open(&d, accept(fd, NULL, NULL));
    while ((first = take_frame(&d)) >= 0) {
        if (first == 1) {
            put_frame(&d, e->answer, 1);
        }
    }
}

static void tcp_put(void *line, uint32_t length, uint8_t first)
{
    put_frame(line, length, first);
}

static bool tcp_take(void *line)
{
    return take_frame(line) >= 0;
}

static void run_tcp(struct echo *e, const char *port)
{
    struct duplex d;
    duplex_connect(&d, (unsigned)atoi(port));
    run_window(e, &(struct carrier){&d, tcp_put, tcp_take});
}

/* ---- the command ---- */

static void run(struct echo *e)
{
    bool is_zmq = strcmp(e->kind, "zmq") == 0;
    int ends[2];
    char at[128];
    if (pipe(ends) != 0) {
        duplex_fail("pipe");
    }
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        (is_zmq ? serve_zmq : serve_tcp)(e, ends[1]);
        _exit(0);
    }
    if (child < 0 || read(ends[0], at, sizeof at) != sizeof at) {
        duplex_fail("fork");
    }
    (is_zmq ? run_zmq : run_tcp)(e, at);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    e->bytes = e->rounds * (e->ask + e->answer + e->store);
}

int main(int argc, char *argv[])
{
    static struct echo e = {
        .kind = "zmq", .ask = 28, .answer = 20, .store = 0, .window = 1, .seconds = 2};
    const struct options_row table[] = {
        {"kind", "zmq|tcp", "what carries the bytes (zmq)", &e.kind, OPTION_TEXT},
        OPTIONS_ROW(U32, "ask", "BYTES", &e.ask, 1, BYTES_MAX, "of a message that is answered"),
        OPTIONS_ROW(U32, "answer", "BYTES", &e.answer, 1, BYTES_MAX, "of its answer"),
        OPTIONS_ROW(U32, "store", "BYTES", &e.store, 0, BYTES_MAX, "of one before it; 0: none"),
        OPTIONS_ROW(U32, "window", "N", &e.window, 1, 1024, "rounds on the way (1)"),
        {"seconds", "S", "how long (2)", &e.seconds, OPTION_REAL},
        {0},
    };
    const struct options options = {.program = "echo",
                                    .usage = "[OPTION]...",
                                    .summary = "Bare messages there and back.",
                                    .table = table};
    int status = options_parse(&options, argc, argv, NULL, NULL);
    if (status >= 0) {
        return status;
    }
    run(&e);
    printf("{\"rounds_per_s\":%.1f,\"messages_per_s\":%.1f,\"bytes_per_s\":%.1f,\"p50_us\":%.2f,"
           "\"p90_us\":%.2f,\"p99_us\":%.2f,\"max_us\":%.1f}\n",
           (double)e.rounds / e.took, (double)e.messages / e.took, (double)e.bytes / e.took,
           histogram_quantile(&e.latency_ns, 0.5) / 1e3,
           histogram_quantile(&e.latency_ns, 0.9) / 1e3,
           histogram_quantile(&e.latency_ns, 0.99) / 1e3, (double)e.latency_ns.max / 1e3);
    return 0;
}
