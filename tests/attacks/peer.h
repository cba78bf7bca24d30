/* peer: sessions of a bad peer at the shards of a cluster, over libzmq's DEALER, and what it learns
 * there. Includes functions. Threads: one, and ZeroMQ's. Memory: static. */
#ifndef TESTS_ATTACKS_PEER_H
#define TESTS_ATTACKS_PEER_H

#include "common/clock.h"
#include "common/keys/keys.h"
#include "common/rng.h"
#include "proto/codec.h"
#include "proto/lane/handshake.h"
#include "worker/engine/job.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <zmq.h>

enum {
    SHARDS_MAX = 16,
    ENDPOINT_MAX = 300,
    RECEIVE_LIMIT = 1000,
    OWN_JOB = 1, /* the upper 12 bits of a job's id: ours, and before nearly all others */
    NODES_MAX = 1500,
    HELLO_AGAIN_MS = 200,
    PEER_TYPES = 64, /* the numbers of message types are below this */
    TAKEN = 0x7e77e1, /* a request: all before it has been taken */
};

struct side {
    void *context;
    char endpoint[SHARDS_MAX][ENDPOINT_MAX];
    unsigned shards;
    bool has_keys;
    struct keys_client keys[PROTO_MONITOR + 1]; /* by role in HELLO */
    uint64_t rng;
    /* Of a job of somebody else's, as the shard told our workers: its root and what is below. */
    bool has_offer;
    struct job_offer offer;
    struct job job;
    uint64_t node_key[NODES_MAX]; /* as its searchers write them, the root's first */
    unsigned nodes;
    uint64_t offers;
    uint64_t boot, own_user; /* the smallest of the shards'; ours, as a JOB of ours says */
    /* statistics */
    uint64_t sent, unsent, received, welcomes, refused, shared;
    uint64_t welcomes_at[SHARDS_MAX], offers_at[SHARDS_MAX];
    uint64_t of_type[PEER_TYPES]; /* received */
};

struct peer {
    struct side *side;
    void *socket;
    unsigned shard;
    uint8_t role, flags;
    uint64_t namespace_id, instance;
    uint64_t greeted_us;
    uint32_t index; /* of a worker, as its shard said last */
    bool has_left; /* said BYE */
    bool lost; /* the shard knows no session of it */
    bool taken; /* HEARTBEAT with the request TAKEN was answered */
};

static struct proto_decoder peer_decoder;
static uint8_t peer_bytes[PROTO_MESSAGE_MAX];
static atomic_bool peer_enough;

static void peer_fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, zmq_strerror(errno));
    exit(1);
}

static void peer_on_signal(int number)
{
    (void)number;
    atomic_store(&peer_enough, true);
}

/* "HOST:PORT,HOST:PORT"; keys: a directory of keys, or NULL. False: too many or too long. */
static bool side_open(struct side *s, const char *servers, const char *keys, uint64_t seed)
{
    static const enum keys_role role[] = {
        [PROTO_WORKER] = KEYS_WORKER,
        [PROTO_FRONT] = KEYS_FRONT,
        [PROTO_CLIENT] = KEYS_WORKER,
        [PROTO_MONITOR] = KEYS_MONITOR,
    };
    char why[KEYS_WHY_MAX];
    char text[SHARDS_MAX * ENDPOINT_MAX], *rest = text;
    struct rlimit limit;
    memset(s, 0, sizeof *s);
    s->rng = seed;
    if (!proto_text_copy(proto_text_of(servers), text, sizeof text)) {
        return false;
    }
    for (char *at; (at = strsep(&rest, ",")) != NULL; s->shards++) {
        if (s->shards == SHARDS_MAX || strlen(at) + 7 > ENDPOINT_MAX) {
            return false;
        }
        snprintf(s->endpoint[s->shards], ENDPOINT_MAX, "tcp://%.280s", at);
    }
    s->has_keys = keys != NULL;
    for (unsigned i = 0; keys != NULL && i <= PROTO_MONITOR; i++) {
        if (keys_load_client(keys, role[i], &s->keys[i], why) != ERR_OK) {
            fprintf(stderr, "%s\n", why);
            return false;
        }
    }
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    signal(SIGTERM, peer_on_signal);
    s->context = zmq_ctx_new();
    zmq_ctx_set(s->context, ZMQ_MAX_SOCKETS, 4000);
    return s->context != NULL;
}

static void peer_connect(struct peer *p, int receive_limit, const void *identity, size_t length)
{
    int linger = 0, limit = RECEIVE_LIMIT, small = 4096;
    p->socket = zmq_socket(p->side->context, ZMQ_DEALER);
    if (p->socket == NULL) {
        peer_fail("socket");
    }
    zmq_setsockopt(p->socket, ZMQ_LINGER, &linger, sizeof linger);
    zmq_setsockopt(p->socket, ZMQ_SNDHWM, &limit, sizeof limit);
    zmq_setsockopt(p->socket, ZMQ_RCVHWM, &receive_limit, sizeof receive_limit);
    if (receive_limit == 1) { /* who does not read has no room, either */
        zmq_setsockopt(p->socket, ZMQ_RCVBUF, &small, sizeof small);
    }
    if (length > 0) {
        zmq_setsockopt(p->socket, ZMQ_ROUTING_ID, identity, length);
    }
    if (p->side->has_keys &&
        handshake_keys(p->socket, &p->side->keys[p->role & PROTO_MONITOR]) != ERR_OK) {
        peer_fail("keys");
    }
    if (zmq_connect(p->socket, p->side->endpoint[p->shard]) != 0) {
        peer_fail(p->side->endpoint[p->shard]);
    }
}

static bool peer_say_bytes(struct peer *p, const uint8_t *bytes, size_t n)
{
    bool ok = n > 0 && zmq_send(p->socket, bytes, n, ZMQ_DONTWAIT) >= 0;
    p->side->sent += ok;
    p->side->unsent += !ok;
    return ok;
}

static bool peer_say(struct peer *p, const struct proto_message *m)
{
    return peer_say_bytes(p, peer_bytes, proto_encode(m, peer_bytes, sizeof peer_bytes));
}

static bool peer_hello(struct peer *p)
{
    struct proto_message m = {.type = PROTO_HELLO};
    m.hello.request = 1;
    m.hello.role = p->role;
    m.hello.flags = p->flags;
    m.hello.namespace_id = p->namespace_id;
    m.hello.instance = p->instance;
    m.hello.name = proto_text_of("mallory");
    p->greeted_us = clock_us();
    return peer_say(p, &m);
}

static void peer_open(struct peer *p, struct side *s, unsigned shard, uint8_t role, uint8_t flags,
                      uint64_t instance)
{
    *p = (struct peer){
        .side = s, .shard = shard, .role = role, .flags = flags, .instance = instance};
    peer_connect(p, RECEIVE_LIMIT, NULL, 0);
    peer_hello(p);
}

/* ---- what it learns ---- */

static void side_note_node(struct side *s, const void *position)
{
    uint64_t key = s->job.game->key(position) ^ s->offer.wire.namespace_id;
    if (s->nodes < NODES_MAX) {
        s->node_key[s->nodes++] = key;
    }
}

/* The root, its children and as many grandchildren as there is room for. */
static void side_walk(struct side *s)
{
    static struct game_move moves[GAME_MOVES_MAX], replies[GAME_MOVES_MAX];
    const struct game *game = s->job.game;
    void *position = s->job.position;
    unsigned count = game->generate(position, moves);
    s->nodes = 0;
    side_note_node(s, position);
    for (unsigned below = 0; below < 2; below++) {
        for (unsigned i = 0; i < count; i++) {
            game->make(position, moves[i].move);
            if (below == 0) {
                side_note_node(s, position);
            } else {
                unsigned n = game->generate(position, replies);
                for (unsigned k = 0; k < n; k++) {
                    game->make(position, replies[k].move);
                    side_note_node(s, position);
                    game->unmake(position, replies[k].move);
                }
            }
            game->unmake(position, moves[i].move);
        }
    }
}

static void side_on_job(struct side *s, const struct proto_job *wire)
{
    char why[256];
    struct job job;
    struct job_offer offer;
    if (wire->job >> 52 == OWN_JOB || (s->has_offer && s->offer.wire.job == wire->job) ||
        !job_offer_set(&offer, wire) || job_from_offer(&offer, &job, why, sizeof why) != ERR_OK) {
        return;
    }
    if (s->has_offer) {
        job_free(&s->job);
    }
    s->job = job;
    s->offer = offer;
    s->has_offer = true;
    s->offers++;
    side_walk(s);
}

static void print_each(const char *name, const uint64_t *each, unsigned n)
{
    printf("\"%s\":[", name);
    for (unsigned i = 0; i < n; i++) {
        printf("%s%llu", i > 0 ? "," : "", (unsigned long long)each[i]);
    }
    printf("],");
}

/* The members of a JSON object that all attackers print, with a comma at the end. */
static void side_print(const struct side *s)
{
    printf("\"sent\":%llu,\"unsent\":%llu,\"received\":%llu,\"welcomes\":%llu,\"refused\":%llu,"
           "\"shared\":%llu,\"offers\":%llu,",
           (unsigned long long)s->sent, (unsigned long long)s->unsent,
           (unsigned long long)s->received, (unsigned long long)s->welcomes,
           (unsigned long long)s->refused, (unsigned long long)s->shared,
           (unsigned long long)s->offers);
    print_each("welcomes_at", s->welcomes_at, s->shards);
    print_each("offers_at", s->offers_at, s->shards);
}

/* Reads what is there; who has no session says HELLO again, now and then. */
static void peer_drain(struct peer *p)
{
    static uint8_t bytes[PROTO_MESSAGE_MAX];
    struct proto_message m;
    int n;
    for (unsigned i = 0; i < RECEIVE_LIMIT; i++) {
        if ((n = zmq_recv(p->socket, bytes, sizeof bytes, ZMQ_DONTWAIT)) < 0) {
            break;
        }
        p->side->received++;
        if ((size_t)n > sizeof bytes ||
            proto_decode(&peer_decoder, bytes, (size_t)n, &m) != ERR_OK) {
            continue;
        }
        p->side->of_type[m.type]++;
        p->side->welcomes += m.type == PROTO_WELCOME;
        p->side->welcomes_at[p->shard] += m.type == PROTO_WELCOME;
        p->side->refused += m.type == PROTO_ERROR;
        p->side->shared += m.type == PROTO_SHARE;
        p->taken |= m.type == PROTO_HEARTBEAT && m.heartbeat.request == TAKEN;
        if (m.type == PROTO_WELCOME && m.welcome.boot - 1 < p->side->boot - 1) {
            p->side->boot = m.welcome.boot;
        }
        p->index = m.type == PROTO_WORKER_INDEX ? m.worker_index.index : p->index;
        if (m.type == PROTO_JOB) {
            p->side->own_user = m.job.job >> 52 == OWN_JOB ? m.job.user : p->side->own_user;
            p->side->offers_at[p->shard] += m.job.job >> 52 != OWN_JOB;
            side_on_job(p->side, &m.job);
        } else if (m.type == PROTO_ERROR && m.error.code == PROTO_ERR_SESSION) {
            p->lost = true;
            if (clock_us() - p->greeted_us > HELLO_AGAIN_MS * 1000) {
                peer_hello(p);
            }
        }
    }
}

#endif
