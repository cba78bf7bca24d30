/* zmtp_storm: connections to a shard that break ZMTP, or keep to it and use it badly.
 *
 *   zmtp_storm --at HOST:PORT [--connections N] [--seed N] [--many N] [--server-key Z85] [--kind
 * NAME]
 *
 * N connections (100,000), `many` (1,000) of them at a time: when there is no room for the next the
 * oldest is closed, whatever it was about to say. What each says follows from the seed (1) alone.
 * With --until-signal 1 it prints `counted` after N, and goes on until SIGTERM.
 * Kinds: see KINDS; those of CURVE that need the server's key only with --server-key. Without
 * --kind all in turn. One JSON line; exit 1 when the server cannot be reached any more. One
 * thread. */
#include "common/rng.h"
#include "tests/support/test_zmtp_client.h"
#include "tests/system/until_signal.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zmq.h>

enum {
    SCRIPT = 8192, /* bytes of what a connection says, at most; the end of it may be repeated */
    MANY_MAX = 20000,
    IDENTITIES = 64, /* how far ahead routing ids are taken */
    ROUTERS = 4, /* whose ids are tried: as many shards may be in a process */
    IDLE_MS = 200, /* nothing happens for so long: the rest is closed */
    CONNECT_TRIES = 100,
    EVENTS = 256,
    LISTEN_SOME_MS = 10, /* room for the other side when ports run out */
};

/* NAME, needs the server's key. */
#define KINDS(X)                                                       \
    X(random, false) /* bytes */                                       \
    X(greeting, false) /* one, cut off */                              \
    X(mechanism, false) /* unknown ones, versions, roles */            \
    X(half, false) /* good until it stops somewhere */                 \
    X(slow, false) /* good, a byte at a time */                        \
    X(identity, false) /* takes the ids that libzmq gives away next */ \
    X(metadata, false) /* of all lengths, true and not */              \
    X(ping, false) /* thousands, with contexts */                      \
    X(giant, false) /* frames of up to 2^64 bytes */                   \
    X(parts, false) /* messages without an end */                      \
    X(empty, false) /* messages without a byte */                      \
    X(changed, false) /* good, with some bits changed */               \
    X(curve_random, false)                                             \
    X(curve_hello, true) /* a true HELLO, then silence */              \
    X(curve_replay, true) /* the same HELLO every time */              \
    X(curve_nobody, true) /* a whole handshake with a key that nobody knows */

enum kind {
#define KIND_ID(name, needs_key) KIND_##name,
    KINDS(KIND_ID)
#undef KIND_ID
        KIND_COUNT
};

static const struct {
    const char *name;
    bool needs_key;
} kinds[] = {
#define KIND_ROW(name, needs_key) {#name, needs_key},
    KINDS(KIND_ROW)
#undef KIND_ROW
};

struct connection {
    int fd; /* -1: free */
    enum kind kind;
    bool is_slow;
    uint32_t repeats; /* times that script[again..length] is still to be said */
    size_t again, length, at;
    size_t in_length;
    struct curve_client client;
    uint8_t script[SCRIPT], in[512];
};

struct storm {
    /* options */
    uint64_t connections, seed, many;
    bool until_signal;
    const char *at, *server_key_text, *kind;
    /* state */
    struct sockaddr_storage address;
    socklen_t address_length;
    uint8_t server_key[32], replay[300];
    size_t replay_length;
    uint32_t first_id[ROUTERS];
    struct connection *all;
    uint64_t oldest, next; /* numbers; connection n is all[n % many] */
    int epoll;
    /* figures */
    uint64_t sent, received, refused, left, errors, of_kind[KIND_COUNT];
};

/* libsodium's random numbers, from the seed; and how many came without a routing id. */
static uint64_t rng, unnamed;

static uint32_t seeded_u32(void)
{
    return (uint32_t)rng_next(&rng);
}

static void seeded_bytes(void *const out, const size_t length)
{
    for (size_t i = 0; i < length; i++) {
        ((uint8_t *)out)[i] = (uint8_t)rng_next(&rng);
    }
}

static const char *seeded_name(void)
{
    return "seeded";
}

/* ---- what is said ---- */

static size_t put_metadata(uint8_t *out, const uint8_t *identity, size_t length)
{
    memcpy(out, "\13Socket-Type\0\0\0\6DEALER\10Identity\0\0\0", 34);
    out[34] = (uint8_t)length;
    memcpy(out + 35, identity, length);
    return 35 + length;
}

static size_t put_ready(uint8_t *out, const uint8_t *metadata, size_t length)
{
    uint8_t body[600] = "\5READY";
    memcpy(body + 6, metadata, length);
    return frame_put(out, 4, body, 6 + length);
}

/* Greeting and READY. */
static size_t put_handshake(uint8_t *out, const uint8_t *identity, size_t length)
{
    uint8_t metadata[300];
    size_t n = greeting_put(out, "NULL");
    unnamed += length == 0;
    return n + put_ready(out + n, metadata, put_metadata(metadata, identity, length));
}

static size_t put_random(uint8_t *out, size_t max)
{
    size_t n = 1 + rng_below(&rng, (uint32_t)max);
    seeded_bytes(out, n);
    return n;
}

static void say_mechanism(struct connection *c)
{
    static const char *const names[] = {"PLAIN", "GSSAPI", "CURVE", "null", "NULLNULLNULLNULLNULL",
                                        "",      "NUL"};
    c->length = greeting_put(c->script, names[rng_below(&rng, 7)]);
    c->script[10] = (uint8_t)(rng_below(&rng, 2) ? 3 : rng_next(&rng));
    c->script[11] = (uint8_t)rng_next(&rng);
    c->script[32] = (uint8_t)rng_below(&rng, 2);
    c->length += put_random(c->script + c->length, 300);
}

/* libzmq 4.3.4 numbers peers without an id from an unseeded rand(): 0 and four bytes that count.
 * Here ids are taken that are a little ahead; one in four comes without, as honest clients do. */
static void say_identity(const struct storm *s, struct connection *c)
{
    uint32_t id =
        s->first_id[rng_below(&rng, ROUTERS)] + (uint32_t)unnamed + rng_below(&rng, IDENTITIES);
    uint8_t identity[5] = {0, (uint8_t)(id >> 24), (uint8_t)(id >> 16), (uint8_t)(id >> 8),
                           (uint8_t)id};
    c->length = put_handshake(c->script, identity, rng_below(&rng, 4) ? sizeof identity : 0);
}

static void say_metadata(struct connection *c)
{
    uint8_t metadata[500], identity[256];
    seeded_bytes(identity, sizeof identity);
    size_t n = put_metadata(metadata, identity, rng_below(&rng, sizeof identity));
    c->length = greeting_put(c->script, "NULL");
    if (rng_below(&rng, 2)) {
        n = put_random(metadata, sizeof metadata);
    }
    metadata[rng_below(&rng, (uint32_t)n)] = (uint8_t)rng_next(&rng);
    c->length += put_ready(c->script + c->length, metadata, n);
}

static void say_pings(struct connection *c)
{
    uint8_t ping[64] = "\4PING";
    seeded_bytes(ping + 5, sizeof ping - 5);
    c->length = c->again = put_handshake(c->script, ping, 5);
    for (unsigned i = 0; i < 100; i++) {
        uint32_t context = rng_below(&rng, 1000) ? rng_below(&rng, 17) : rng_below(&rng, 57);
        c->length += frame_put(c->script + c->length, 4, ping, 7 + context);
    }
    c->repeats = rng_below(&rng, 25);
}

static void say_giant(struct connection *c)
{
    c->length = put_handshake(c->script, (const uint8_t *)"", 0);
    uint8_t *header = c->script + c->length;
    header[0] = (uint8_t)(2 | (rng_below(&rng, 2) ? 1 : rng_below(&rng, 2) << 2));
    uint64_t size = rng_next(&rng) >> rng_below(&rng, 60);
    for (unsigned i = 8; i > 0; i--, size >>= 8) {
        header[i] = (uint8_t)size;
    }
    c->length += 9;
    c->again = c->length;
    c->length += put_random(c->script + c->length, 4000);
    c->repeats = rng_below(&rng, 25);
}

static void say_frames(struct connection *c, uint8_t flags, uint32_t max)
{
    uint8_t body[256];
    seeded_bytes(body, sizeof body);
    c->length = c->again = put_handshake(c->script, (const uint8_t *)"", 0);
    for (unsigned i = 0; i < 20; i++) {
        c->length += frame_put(c->script + c->length, flags, body, rng_below(&rng, max));
    }
    c->repeats = rng_below(&rng, 25);
}

/* A handshake, messages, PINGs. */
static void say_good(struct connection *c)
{
    uint8_t body[600];
    seeded_bytes(body, sizeof body);
    c->length = put_handshake(c->script, body, rng_below(&rng, 20));
    for (unsigned i = rng_below(&rng, 5); i > 0; i--) {
        c->length += frame_put(c->script + c->length, 0, body, rng_below(&rng, sizeof body));
        c->length += frame_put(c->script + c->length, 4, "\4PING\0\1", 7);
    }
}

static void say_curve(struct storm *s, struct connection *c)
{
    c->length = greeting_put(c->script, "CURVE");
    client_open(&c->client, s->server_key);
    if (c->kind == KIND_curve_replay) {
        memcpy(c->script + c->length, s->replay, s->replay_length);
        c->length += s->replay_length;
        c->length += put_random(c->script + c->length, 600);
    } else {
        c->length += client_hello(&c->client, c->script + c->length);
    }
}

static void say_curve_random(struct connection *c)
{
    uint8_t body[260] = "\5HELLO\1\0";
    seeded_bytes(body + 8, sizeof body - 8);
    c->length = greeting_put(c->script, "CURVE");
    c->length += frame_put(c->script + c->length, 4, body,
                           rng_below(&rng, 2) ? 200 : rng_below(&rng, sizeof body));
}

static void write_script(struct storm *s, struct connection *c)
{
    switch (c->kind) {
    case KIND_random:
        c->length = put_random(c->script, 4096);
        c->script[0] = rng_below(&rng, 2) ? 0xff : c->script[0];
        break;
    case KIND_greeting:
        greeting_put(c->script, "NULL");
        c->length = rng_below(&rng, GREETING_BYTES);
        break;
    case KIND_mechanism:
        say_mechanism(c);
        break;
    case KIND_half:
        say_good(c);
        c->length = 1 + rng_below(&rng, (uint32_t)c->length);
        break;
    case KIND_slow:
        say_good(c);
        c->is_slow = true;
        break;
    case KIND_identity:
        say_identity(s, c);
        break;
    case KIND_metadata:
        say_metadata(c);
        break;
    case KIND_ping:
        say_pings(c);
        break;
    case KIND_giant:
        say_giant(c);
        break;
    case KIND_parts:
        say_frames(c, 1, 256);
        break;
    case KIND_empty:
        say_frames(c, 0, 1);
        break;
    case KIND_changed:
        say_good(c);
        for (unsigned k = 1 + rng_below(&rng, 4); k > 0; k--) {
            c->script[rng_below(&rng, (uint32_t)c->length)] ^= (uint8_t)(1u << rng_below(&rng, 8));
        }
        break;
    case KIND_curve_random:
        say_curve_random(c);
        break;
    default:
        say_curve(s, c);
        break;
    }
    CHECK(c->length <= SCRIPT);
}

/* ---- connections ---- */

static void let_go(struct storm *s, struct connection *c)
{
    close(c->fd);
    c->fd = -1;
    while (s->oldest < s->next && s->all[s->oldest % s->many].fd < 0) {
        s->oldest++;
    }
}

/* A reset keeps no port busy; one in eight ends as honest clients do. */
static void leave(struct storm *s, struct connection *c, bool politely)
{
    struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    if (!politely) {
        setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    }
    s->left++;
    let_go(s, c);
}

static enum kind kind_of(const struct storm *s, uint64_t number)
{
    enum kind kind = (enum kind)(number % KIND_COUNT);
    for (enum kind k = 0; s->kind && k < KIND_COUNT; k++) {
        kind = strcmp(kinds[k].name, s->kind) == 0 ? k : kind;
    }
    return kinds[kind].needs_key && !s->server_key_text ? KIND_random : kind;
}

static bool open_next(struct storm *s)
{
    struct connection *c = &s->all[s->next % s->many];
    int one = 1, tries = 0;
    c->fd = socket(s->address.ss_family, SOCK_STREAM, 0);
    /* It waits until the server's kernel takes it: no more than its queue are on their way. */
    while (c->fd >= 0 && connect(c->fd, (struct sockaddr *)&s->address, s->address_length) != 0) {
        if (errno != EADDRNOTAVAIL || ++tries == CONNECT_TRIES) {
            fprintf(stderr, "zmtp_storm: %s: %s\n", s->at, strerror(errno));
            close(c->fd);
            c->fd = -1;
            break;
        }
        poll(NULL, 0, LISTEN_SOME_MS);
    }
    if (c->fd < 0) {
        s->errors++;
        return false;
    }
    fcntl(c->fd, F_SETFL, O_NONBLOCK);
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    rng = rng_mix(s->seed + s->next);
    c->kind = kind_of(s, s->next);
    c->is_slow = rng_below(&rng, 16) == 0;
    c->again = c->at = c->in_length = c->repeats = 0;
    write_script(s, c);
    s->of_kind[c->kind]++;
    struct epoll_event event = {EPOLLIN | EPOLLOUT, {.ptr = c}};
    CHECK(epoll_ctl(s->epoll, EPOLL_CTL_ADD, c->fd, &event) == 0);
    s->next++;
    return true;
}

static void say(struct storm *s, struct connection *c)
{
    if (c->at == c->length && c->repeats > 0) {
        c->repeats--;
        c->at = c->again;
    }
    if (c->at == c->length) { /* it stays, silent, until it is the oldest */
        struct epoll_event event = {EPOLLIN, {.ptr = c}};
        epoll_ctl(s->epoll, EPOLL_CTL_MOD, c->fd, &event);
        return;
    }
    ssize_t n = send(c->fd, c->script + c->at, c->is_slow ? 1 : c->length - c->at, MSG_NOSIGNAL);
    if (n > 0) {
        c->at += (size_t)n;
        s->sent += (uint64_t)n;
    }
}

/* The second half of a CURVE handshake, once greeting and WELCOME are there. */
static void answer(struct storm *s, struct connection *c)
{
    if (c->kind == KIND_curve_nobody && c->in_length == 64 + 170 && c->at == c->length &&
        client_take_welcome(&c->client, c->in + 64, 170)) {
        uint8_t metadata[300];
        size_t n = put_metadata(metadata, c->in, 0);
        c->length = client_initiate(&c->client, c->client.cn_public, metadata, n, c->script);
        c->at = 0;
        struct epoll_event event = {EPOLLIN | EPOLLOUT, {.ptr = c}};
        epoll_ctl(s->epoll, EPOLL_CTL_MOD, c->fd, &event);
    }
}

/* Half of those that flood do not read what they get for it. */
static bool is_deaf(const struct connection *c)
{
    return c->kind == KIND_ping && c->fd % 2;
}

static void attend(struct storm *s, struct connection *c, uint32_t events)
{
    uint8_t rest[4096];
    if (events & EPOLLIN && !is_deaf(c)) {
        bool has_room = c->in_length < sizeof c->in;
        ssize_t n = recv(c->fd, has_room ? c->in + c->in_length : rest,
                         has_room ? sizeof c->in - c->in_length : sizeof rest, 0);
        if (n == 0 || (n < 0 && errno != EAGAIN)) {
            s->refused++;
            let_go(s, c);
            return;
        }
        s->received += n > 0 ? (uint64_t)n : 0;
        c->in_length += has_room && n > 0 ? (size_t)n : 0;
        answer(s, c);
    } else if (events & (EPOLLHUP | EPOLLERR)) {
        s->refused++;
        let_go(s, c);
        return;
    }
    if (events & EPOLLOUT) {
        say(s, c);
    }
}

/* The number of those to which something happened. */
static int turn(struct storm *s, int wait_ms)
{
    struct epoll_event events[EVENTS];
    int n = epoll_wait(s->epoll, events, EVENTS, wait_ms);
    for (int i = 0; i < n; i++) {
        attend(s, events[i].data.ptr, events[i].events);
    }
    return n;
}

static void run(struct storm *s)
{
    while (goes_on(s->next, s->connections, s->until_signal) && s->errors == 0) {
        if (s->next - s->oldest == s->many) {
            leave(s, &s->all[s->oldest % s->many], s->oldest % 8 == 0);
        }
        open_next(s);
        turn(s, 0);
    }
    /* Those that read nothing would always have something to read. */
    for (uint64_t turns = 0; s->oldest < s->next && turns < 10 * s->many; turns++) {
        if (turn(s, IDLE_MS) == 0) {
            break;
        }
    }
    for (uint64_t i = 0; i < s->many; i++) {
        if (s->all[i].fd >= 0) {
            leave(s, &s->all[i], i % 8 == 0);
        }
    }
}

/* ---- command line ---- */

static void usage(void)
{
    fputs("usage: zmtp_storm --at HOST:PORT [--connections N] [--seed N] [--many N] "
          "[--until-signal 1] [--server-key Z85] [--kind NAME]\nkinds:",
          stderr);
    for (enum kind k = 0; k < KIND_COUNT; k++) {
        fprintf(stderr, " %s", kinds[k].name);
    }
    fputs("\n", stderr);
    exit(2);
}

static void find_server(struct storm *s)
{
    char host[256];
    const char *colon = s->at ? strrchr(s->at, ':') : NULL;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
    if (!colon || (size_t)(colon - s->at) >= sizeof host) {
        usage();
    }
    memcpy(host, s->at, (size_t)(colon - s->at));
    host[colon - s->at] = '\0';
    if (getaddrinfo(host, colon + 1, &hints, &found) != 0) {
        fprintf(stderr, "zmtp_storm: %s: no such host\n", s->at);
        exit(1);
    }
    memcpy(&s->address, found->ai_addr, found->ai_addrlen);
    s->address_length = found->ai_addrlen;
    freeaddrinfo(found);
}

static void read_arguments(int argc, char **argv, struct storm *s)
{
    bool known = true;
    for (int i = 1; i < argc && known; i += 2) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        known = value != NULL;
        if (!known) {
            break;
        }
        if (strcmp(argv[i], "--at") == 0) {
            s->at = value;
        } else if (strcmp(argv[i], "--connections") == 0) {
            s->connections = strtoull(value, NULL, 10);
        } else if (strcmp(argv[i], "--seed") == 0) {
            s->seed = strtoull(value, NULL, 10);
        } else if (strcmp(argv[i], "--many") == 0) {
            s->many = strtoull(value, NULL, 10);
        } else if (strcmp(argv[i], "--until-signal") == 0) {
            s->until_signal = strcmp(value, "1") == 0;
        } else if (strcmp(argv[i], "--server-key") == 0) {
            s->server_key_text = value;
        } else if (strcmp(argv[i], "--kind") == 0) {
            s->kind = value;
        } else {
            known = false;
        }
    }
    bool is_kind = s->kind == NULL;
    for (enum kind k = 0; k < KIND_COUNT; k++) {
        is_kind = is_kind || (strcmp(s->kind, kinds[k].name) == 0 &&
                              (!kinds[k].needs_key || s->server_key_text));
    }
    if (!known || !is_kind || s->many == 0 || s->many > MANY_MAX ||
        (s->server_key_text && (strlen(s->server_key_text) != 40 ||
                                !zmq_z85_decode(s->server_key, s->server_key_text)))) {
        usage();
    }
    find_server(s);
}

int main(int argc, char **argv)
{
    static struct randombytes_implementation seeded = {
        .implementation_name = seeded_name, .random = seeded_u32, .buf = seeded_bytes};
    static struct storm s = {.connections = 100000, .seed = 1, .many = 1000};
    struct curve_client recorded;
    struct rlimit limit;
    read_arguments(argc, argv, &s);
    for (unsigned i = 0; i < ROUTERS; i++) { /* rand() unseeded, as libzmq draws */
        uint32_t low = (uint32_t)rand(), high = (uint32_t)rand();
        s.first_id[i] = low | high << 31;
    }
    randombytes_set_implementation(&seeded);
    CHECK(sodium_init() >= 0);
    rng = s.seed;
    client_open(&recorded, s.server_key);
    if (s.server_key_text) {
        s.replay_length = client_hello(&recorded, s.replay);
    }
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    s.many = s.many + 16 < limit.rlim_cur ? s.many : limit.rlim_cur - 16;
    s.all = calloc(s.many, sizeof *s.all);
    s.epoll = epoll_create1(0);
    CHECK(s.all != NULL && s.epoll >= 0);
    for (uint64_t i = 0; i < s.many; i++) {
        s.all[i].fd = -1;
    }
    signal(SIGTERM, s.until_signal ? on_signal : SIG_DFL);
    run(&s);
    printf("{\"connections\": %llu, \"seed\": %llu, \"bytes\": %llu, \"received\": %llu, "
           "\"refused\": %llu, \"left\": %llu, \"errors\": %llu",
           (unsigned long long)s.next, (unsigned long long)s.seed, (unsigned long long)s.sent,
           (unsigned long long)s.received, (unsigned long long)s.refused,
           (unsigned long long)s.left, (unsigned long long)s.errors);
    for (enum kind k = 0; k < KIND_COUNT; k++) {
        printf(", \"%s\": %llu", kinds[k].name, (unsigned long long)s.of_kind[k]);
    }
    printf("}\n");
    close(s.epoll);
    free(s.all);
    return s.errors ? 1 : 0;
}
