/* bombard: bad peers of a shard, and a good one beside them.
 *
 *   bombard attack [--messages N] [--seed N] [--rate N] [--until-signal 1] [--keys DIR]
 *     HOST:PORT
 *   bombard witness [--milliseconds N] [--every-us N] [--keys DIR] HOST:PORT
 *
 * attack: N messages (100,000) from a seed, at most --rate a second (0: as many as go): random
 * bytes, truncated and bit-flipped messages, wrong types, huge counts, several frames, too large
 * ones, valid ones without a session, other people's nodes, jobs and instances; a peer that never
 * reads; and between them 1,000 bare connections that break off somewhere in the handshake. With
 * --until-signal it prints `counted` then, and goes on until SIGTERM. One JSON line.
 *
 * witness: a well-behaved client that asks, stores and peeks, one request at a time, and measures,
 * until time is over or SIGTERM. `ready` when it has a session, then one JSON line; exit 1 if an
 * answer was wrong or did not come within WITNESS_WAIT_MS. Threads: one, and ZeroMQ's. */
#include "common/clock.h"
#include "common/keys/keys.h"
#include "proto/lane/handshake.h"
#include "tests/system/bad_messages.h"
#include "tests/system/until_signal.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zmq.h>

enum {
    PEERS = 16, /* the first never reads */
    CONNECTIONS = 1000, /* broken off in the handshake */
    HALF_OPEN_MAX = 64, /* of them at a time */
    RENEW_EVERY = 2000, /* messages, then some peer vanishes and comes back */
    DRAIN_EVERY = 32,
    SEND_WAIT_MS = 2000,
    SAMPLES_MAX = 1 << 20,
    WITNESS_WAIT_MS = 30000,
    RENEW_HELD_US = 10000000,
};

struct options {
    uint64_t messages, seed, rate, milliseconds, every_us, until_signal;
    bool has_keys;
    struct keys_client keys;
    char endpoint[300], host[256], port[8];
};

/* ---- command line ---- */

static void usage(void)
{
    fputs("usage: bombard attack|witness [--messages N] [--seed N] [--rate N] [--milliseconds N] "
          "[--every-us N] [--until-signal 1] [--keys DIR] HOST:PORT\n",
          stderr);
    exit(2);
}

static void read_arguments(int argc, char **argv, struct options *o)
{
    struct {
        const char *name;
        uint64_t *value;
    } table[] = {{"--messages", &o->messages}, {"--seed", &o->seed},
                 {"--rate", &o->rate},         {"--milliseconds", &o->milliseconds},
                 {"--every-us", &o->every_us}, {"--until-signal", &o->until_signal}};
    const size_t rows = sizeof table / sizeof table[0];
    char why[KEYS_WHY_MAX];
    int i = 2;
    for (; i + 1 < argc; i += 2) {
        size_t row = 0;
        char *end;
        if (strcmp(argv[i], "--keys") == 0) {
            o->has_keys = true;
            if (keys_load_client(argv[i + 1], KEYS_WORKER, &o->keys, why) != ERR_OK) {
                fprintf(stderr, "bombard: %s\n", why);
                exit(1);
            }
            continue;
        }
        while (row < rows && strcmp(argv[i], table[row].name) != 0) {
            row++;
        }
        if (row == rows) {
            usage();
        }
        *table[row].value = strtoull(argv[i + 1], &end, 10);
        if (*end != 0 || argv[i + 1][0] == 0) {
            usage();
        }
    }
    const char *colon = i < argc ? strrchr(argv[i], ':') : NULL;
    if (colon == NULL || (size_t)(colon - argv[i]) >= sizeof o->host || strlen(colon) > 6) {
        usage();
    }
    memcpy(o->host, argv[i], (size_t)(colon - argv[i]));
    strcpy(o->port, colon + 1);
    snprintf(o->endpoint, sizeof o->endpoint, "tcp://%s", argv[i]);
}

static void fail(const char *what)
{
    fprintf(stderr, "bombard: %s: %s\n", what, zmq_strerror(errno));
    exit(1);
}

static void *open_dealer(void *context, const struct options *o, int receive_limit)
{
    int linger = 0, limit = 1000;
    void *socket = zmq_socket(context, ZMQ_DEALER);
    if (socket == NULL) {
        fail("socket");
    }
    zmq_setsockopt(socket, ZMQ_LINGER, &linger, sizeof linger);
    zmq_setsockopt(socket, ZMQ_SNDHWM, &limit, sizeof limit);
    zmq_setsockopt(socket, ZMQ_RCVHWM, &receive_limit, sizeof receive_limit);
    if (o->has_keys && handshake_keys(socket, &o->keys) != ERR_OK) {
        fail("keys");
    }
    if (zmq_connect(socket, o->endpoint) != 0) {
        fail(o->endpoint);
    }
    return socket;
}

/* ---- the attack ---- */

struct attack {
    const struct options *options;
    void *context, *peer[PEERS];
    int half_open[HALF_OPEN_MAX];
    unsigned next_half_open;
    uint64_t rng, sent, count[KINDS], connections, unsent, answers;
    uint8_t bytes[ROOM];
};

static void open_peer(struct attack *a, unsigned i)
{
    a->peer[i] = open_dealer(a->context, a->options, i == 0 ? 1 : 1000);
}

static void drain_peers(struct attack *a)
{
    for (unsigned i = 1; i < PEERS; i++) {
        while (zmq_recv(a->peer[i], a->bytes, sizeof a->bytes, ZMQ_DONTWAIT) >= 0) {
            a->answers++;
        }
    }
}

static bool send_from(struct attack *a, unsigned i, size_t n, int flags)
{
    if (zmq_send(a->peer[i], a->bytes, n, ZMQ_DONTWAIT | flags) >= 0) {
        return true;
    }
    zmq_pollitem_t item = {.socket = a->peer[i], .events = ZMQ_POLLOUT};
    drain_peers(a);
    /* Whoever does not read is not waited for for ever, neither by the server nor by us. */
    return i != 0 && zmq_poll(&item, 1, SEND_WAIT_MS) > 0 &&
           zmq_send(a->peer[i], a->bytes, n, ZMQ_DONTWAIT | flags) >= 0;
}

static void send_one(struct attack *a)
{
    unsigned total = 0, kind = 0, i = rng_below(&a->rng, PEERS);
    for (unsigned k = 0; k < KINDS; k++) {
        total += kinds[k].weight;
    }
    for (unsigned at = rng_below(&a->rng, total); at >= kinds[kind].weight; kind++) {
        at -= kinds[kind].weight;
    }
    i |= kinds[kind].make == make_too_large;
    size_t n = kinds[kind].make(&a->rng, a->bytes);
    /* Not both from one peer: libzmq 4.3 aborts the sender of a message of several frames when the
     * connection breaks between them, and too large a message breaks it. */
    bool frames = i % 2 == 0 && rng_below(&a->rng, 25) == 0;
    bool ok = send_from(a, i, n, frames ? ZMQ_SNDMORE : 0);
    if (ok && frames) {
        ok = send_from(a, i, n / 2, 0);
    }
    a->sent += ok;
    a->unsent += !ok;
    a->count[kind] += ok;
    if (!ok) { /* the deaf peer is stuck: as a new one it may go on */
        zmq_close(a->peer[i]);
        open_peer(a, i);
    }
}

/* A bare connection: nothing, noise, or a part of the ZMTP greeting and what follows it. Some stay
 * open for a while. */
static void break_off(struct attack *a)
{
    static const uint8_t greeting[64] = {0xff, 0,    0, 0, 0,   0,   0,   0,
                                         1,    0x7f, 3, 0, 'N', 'U', 'L', 'L'};
    static const uint8_t ready[] = "\x04\x26\x05READY\x0bSocket-Type\0\0\0\6DEALER\x08Identity";
    uint8_t bytes[256];
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
    size_t n = 0;
    if (getaddrinfo(a->options->host, a->options->port, &hints, &found) != 0) {
        return;
    }
    int fd = socket(found->ai_family, SOCK_STREAM, 0);
    bool ok = fd >= 0 && connect(fd, found->ai_addr, found->ai_addrlen) == 0;
    freeaddrinfo(found);
    a->connections += ok;
    switch (rng_below(&a->rng, 4)) {
    case 0:
        break;
    case 1:
        n = make_noise(&a->rng, a->bytes) % sizeof bytes;
        memcpy(bytes, a->bytes, n);
        break;
    default:
        memcpy(bytes, greeting, sizeof greeting);
        memcpy(bytes + sizeof greeting, ready, sizeof ready);
        n = rng_below(&a->rng, sizeof greeting + sizeof ready);
    }
    if (ok && n > 0) {
        (void)!send(fd, bytes, n, MSG_NOSIGNAL);
    }
    int *place = &a->half_open[a->next_half_open++ % HALF_OPEN_MAX];
    if (*place > 0) {
        close(*place);
    }
    *place = fd;
}

static int attack(const struct options *o)
{
    static struct attack a;
    uint64_t begin = clock_us();
    a.options = o;
    a.rng = o->seed;
    a.context = zmq_ctx_new();
    for (unsigned i = 0; i < PEERS; i++) {
        open_peer(&a, i);
    }
    if (o->until_signal) {
        signal(SIGTERM, on_signal);
    }
    for (uint64_t i = 0; goes_on(i, o->messages, o->until_signal); i++) {
        send_one(&a);
        if (i % DRAIN_EVERY == 0) {
            drain_peers(&a);
        }
        if ((i + 1) * CONNECTIONS / o->messages > i * CONNECTIONS / o->messages) {
            break_off(&a);
        }
        if (i % RENEW_EVERY == RENEW_EVERY - 1) {
            unsigned peer = rng_below(&a.rng, PEERS);
            zmq_close(a.peer[peer]);
            open_peer(&a, peer);
        }
        uint64_t due = o->rate > 0 ? begin + i * 1000000 / o->rate : 0, now = clock_us();
        if (due > now + 500) {
            usleep((useconds_t)(due - now));
        }
    }
    double seconds = (double)(clock_us() - begin) / 1e6;
    printf("{\"messages\":%llu,\"unsent\":%llu,\"connections\":%llu,\"answers\":%llu,"
           "\"seconds\":%.3f,\"kinds\":{",
           (unsigned long long)a.sent, (unsigned long long)a.unsent,
           (unsigned long long)a.connections, (unsigned long long)a.answers, seconds);
    for (unsigned k = 0; k < KINDS; k++) {
        printf("%s\"%s\":%llu", k > 0 ? "," : "", kinds[k].name, (unsigned long long)a.count[k]);
    }
    puts("}}");
    /* All of it may still be queued here, where this process' I/O thread was not run yet. */
    int linger = SEND_WAIT_MS;
    for (unsigned i = 0; i < PEERS; i++) {
        if (i > 0) {
            zmq_setsockopt(a.peer[i], ZMQ_LINGER, &linger, sizeof linger);
        }
        zmq_close(a.peer[i]);
    }
    zmq_ctx_term(a.context);
    return 0;
}

/* ---- the witness ---- */

struct witness {
    void *socket;
    struct proto_decoder decoder;
    uint8_t bytes[PROTO_MESSAGE_MAX];
    uint32_t request;
    uint64_t rng, wrong, hits, renewed_us;
    bool counted[WITNESS_NODES]; /* counted: the table had room for us */
    uint32_t *sample;
    unsigned samples;
};

/* Sends a request and waits for its answer; exits when there is none. Returns microseconds. */
static uint64_t call(struct witness *w, const struct proto_message *m, struct proto_message *answer)
{
    uint64_t begin = clock_us();
    size_t n = proto_encode(m, w->bytes, sizeof w->bytes);
    if (zmq_send(w->socket, w->bytes, n, 0) < 0) {
        fail("witness: send");
    }
    for (;;) {
        zmq_pollitem_t item = {.socket = w->socket, .events = ZMQ_POLLIN};
        int wait = WITNESS_WAIT_MS - (int)((clock_us() - begin) / 1000);
        if (wait > 0 && zmq_poll(&item, 1, wait) < 0 && errno == EINTR) {
            continue;
        }
        if (wait <= 0 || item.revents == 0) {
            printf("{\"lost\":1}\n");
            exit(1);
        }
        int length = zmq_recv(w->socket, w->bytes, sizeof w->bytes, 0);
        if (length < 0 || proto_decode(&w->decoder, w->bytes, (size_t)length, answer) != ERR_OK) {
            w->wrong++;
        } else if (answer->type == PROTO_ERROR) {
            fprintf(stderr, "bombard: witness refused: %u\n", answer->error.code);
            exit(1);
        } else if (answer->type == PROTO_WELCOME ||
                   (answer->type == PROTO_RETRIEVE_ANSWER &&
                    answer->retrieve_answer.request == w->request) ||
                   answer->type == PROTO_PEEK_ANSWER) {
            return clock_us() - begin;
        }
    }
}

static uint64_t ask(struct witness *w, uint64_t key, uint8_t depth, struct tt_answer *out)
{
    struct tt_ask a = {.key = key, .depth = depth, .alpha = -9, .beta = 9, .slot = 1};
    struct proto_message m = {.type = PROTO_RETRIEVE_ASK}, answer;
    m.retrieve_ask.request = ++w->request;
    m.retrieve_ask.list = (struct proto_asks){1, &a};
    uint64_t us = call(w, &m, &answer);
    *out = answer.retrieve_answer.list.at[0];
    return us;
}

/* Nobody else can release our entries: we stay the only holder of each of our nodes. */
static void check_held(struct witness *w)
{
    struct tt_peek peeks[WITNESS_NODES];
    struct proto_message m = {.type = PROTO_PEEK}, answer;
    for (unsigned i = 0; i < WITNESS_NODES; i++) {
        peeks[i] = (struct tt_peek){witness_key + i, WITNESS_DEPTH};
    }
    m.peek.request = ++w->request;
    m.peek.list = (struct proto_peeks){WITNESS_NODES, peeks};
    call(w, &m, &answer);
    for (unsigned i = 0; i < WITNESS_NODES; i++) {
        w->wrong += w->counted[i] && answer.peek_answer.list.at[i].nproc != 1;
    }
}

static int16_t score_of(uint64_t key)
{
    return (int16_t)(rng_mix(key) % 2000);
}

/* Asks for a node, stores its result, asks again: CUT with that score, or OPEN if it was replaced.
 */
static void work(struct witness *w)
{
    struct tt_answer answer;
    uint64_t key = rng_next(&w->rng);
    uint64_t us = ask(w, key, 5, &answer);
    w->wrong += answer.verdict != TT_OPEN;
    struct tt_store store = {
        .key = key, .depth = 5, .score = score_of(key), .bound = TT_EXACT, .slot = 1};
    struct proto_message m = {.type = PROTO_STORE_HASH};
    m.store_hash.list = (struct proto_stores){1, &store};
    zmq_send(w->socket, w->bytes, proto_encode(&m, w->bytes, sizeof w->bytes), 0);
    us = us > 0 ? us : 1;
    if (w->samples + 2 <= SAMPLES_MAX) {
        w->sample[w->samples++] = (uint32_t)us;
        w->sample[w->samples++] = (uint32_t)ask(w, key, 5, &answer);
    }
    w->hits += answer.verdict == TT_CUT;
    w->wrong += answer.verdict == TT_CUT && answer.score != score_of(key);
    if (answer.verdict == TT_OPEN) {
        struct tt_release release = {key, 5, 1};
        m = (struct proto_message){.type = PROTO_RELEASE};
        m.release.list = (struct proto_releases){1, &release};
        zmq_send(w->socket, w->bytes, proto_encode(&m, w->bytes, sizeof w->bytes), 0);
    }
}

static int by_size(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void greet(struct witness *w)
{
    struct proto_message m = {.type = PROTO_HELLO}, answer;
    struct tt_answer asked;
    m.hello.request = ++w->request;
    m.hello.role = PROTO_CLIENT;
    m.hello.namespace_id = witness_namespace;
    m.hello.instance = witness_instance;
    m.hello.name = proto_text_of("witness");
    call(w, &m, &answer);
    for (unsigned i = 0; i < WITNESS_NODES; i++) {
        ask(w, witness_key + i, WITNESS_DEPTH, &asked);
        w->counted[i] = asked.nproc == 1;
    }
}

/* In-flight entries expire: as a searcher that is in its nodes for long. */
static void renew_held(struct witness *w, uint64_t now)
{
    struct tt_answer asked;
    if (now < w->renewed_us + RENEW_HELD_US) {
        return;
    }
    w->renewed_us = now;
    for (unsigned i = 0; i < WITNESS_NODES; i++) {
        if (w->counted[i]) {
            ask(w, witness_key + i, WITNESS_DEPTH, &asked);
        }
    }
}

static int witness(const struct options *o)
{
    static struct witness w;
    void *context = zmq_ctx_new();
    w.socket = open_dealer(context, o, 1000);
    w.rng = rng_mix(o->seed + clock_us()) | 1;
    w.sample = calloc(SAMPLES_MAX, sizeof *w.sample);
    if (w.sample == NULL) {
        return 1;
    }
    greet(&w);
    signal(SIGTERM, on_signal);
    puts("ready");
    fflush(stdout);
    uint64_t begin = clock_us(), end = begin + o->milliseconds * 1000;
    uint64_t now = begin;
    for (uint64_t i = 1; now < end && !atomic_load(&enough); i++, now = clock_us()) {
        work(&w);
        renew_held(&w, now);
        if (i % 16 == 0) {
            check_held(&w);
        }
        uint64_t due = begin + i * o->every_us;
        if (due > clock_us()) {
            usleep((useconds_t)(due - clock_us()));
        }
    }
    qsort(w.sample, w.samples, sizeof *w.sample, by_size);
    unsigned n = w.samples;
    unsigned counted = 0;
    for (unsigned i = 0; i < WITNESS_NODES; i++) {
        counted += w.counted[i];
    }
    printf("{\"requests\":%u,\"lost\":0,\"wrong\":%llu,\"entries\":%u,\"hits\":%llu,\"p50_us\":%u,"
           "\"p99_us\":%u,\"max_us\":%u}\n",
           n, (unsigned long long)w.wrong, counted, (unsigned long long)w.hits,
           n ? w.sample[n / 2] : 0, n ? w.sample[(uint64_t)n * 99 / 100] : 0,
           n ? w.sample[n - 1] : 0);
    free(w.sample);
    zmq_close(w.socket);
    zmq_ctx_term(context);
    return w.wrong > 0;
}

int main(int argc, char **argv)
{
    struct options o = {.messages = 100000, .seed = 1, .milliseconds = 3000, .every_us = 1000};
    if (argc < 3) {
        usage();
    }
    read_arguments(argc, argv, &o);
    if (strcmp(argv[1], "attack") == 0) {
        return attack(&o);
    }
    if (strcmp(argv[1], "witness") == 0) {
        return witness(&o);
    }
    usage();
}
