/* attacker: one bad peer of a cluster, of the kind named, at full speed until SIGTERM.
 *
 *   attacker KIND --servers HOST:PORT,... [--keys DIR] [--seed N] [--count N]
 *
 * Until SIGTERM and for at least N steps, after which it prints `counted`.
 * Prints `ready` when the attack is under way, and at the end one JSON line of what it sent and
 * got. tests/attacks/attacks.py says what each kind must not achieve. Threads: one, and ZeroMQ's.
 */
#include "tests/attacks/peer.h"

enum {
    REST_US = 500, /* when nothing could be sent */
    SAY_MAX = 16, /* messages between two looks at the answers */
    DEAF_PEERS = 40,
    SILENT_MS = 600, /* between heartbeats of sessions that say nothing else */
    IDENTITY_BASES = 8,
    IDENTITIES = 100, /* of each base, at each shard */
    JOBS = 64,
    NAMESPACE_JOBS = 8, /* open at a time */
    WELCOME_MS = 5000,
    INTRUDERS = 128, /* at a time */
    ROUND_MS = 100, /* for all of them to try; attacks.py looks whether they did */
    KEYS_TEXT_BYTES = 40,
};

struct attack {
    struct side side;
    struct peer worker[SHARDS_MAX], front[SHARDS_MAX], *many;
    unsigned peers; /* of many */
    uint64_t step, posted, seen_offers, seen_welcomes, next_beat_us;
    struct tt_ask ask[PROTO_BATCH_MAX];
    struct tt_peek peek[PROTO_BATCH_MAX];
    uint8_t question[2][PROTO_MESSAGE_MAX];
    size_t question_bytes[2];
    struct tt_store store[PROTO_BATCH_MAX];
};

static void open_at_each(struct attack *a, struct peer *peers, uint8_t role, uint8_t flags)
{
    uint64_t instance = rng_next(&a->side.rng);
    for (unsigned i = 0; i < a->side.shards; i++) {
        peer_open(&peers[i], &a->side, i, role, flags, instance);
    }
}

static void make_many(struct attack *a, unsigned peers)
{
    a->peers = peers;
    a->many = calloc(peers, sizeof *a->many);
    if (a->many == NULL) {
        peer_fail("memory");
    }
}

static uint64_t own_job(struct attack *a)
{
    return (uint64_t)OWN_JOB << 52 | rng_next(&a->side.rng) >> 12;
}

/* A job that workers take: a real position, searched for ever. */
static struct proto_message post_of(struct attack *a, uint64_t id)
{
    struct proto_message m = {.type = PROTO_JOB_POST};
    if (a->side.has_offer) {
        m.job = job_to_wire(&a->side.job);
    } else {
        m.job.game = proto_text_of("chess");
        m.job.position = proto_text_of("startpos");
        m.job.algorithm = proto_text_of("abdada");
    }
    m.job.job = id;
    m.job.depth = PROTO_NO_LIMIT;
    m.job.time_ms = 0;
    m.job.nodes = 0;
    return m;
}

#include "tests/attacks/crowds.h"

/* ---- identity: the ids that libzmq is about to give away ----
 *
 * 4.3.4 numbers peers 00 | u32, from a rand() that nobody has seeded: a ROUTER of our own tells
 * what the one of a server counts from. */

static uint32_t first_identity(struct side *s, unsigned number)
{
    char endpoint[64];
    uint8_t id[16] = {0};
    void *router = zmq_socket(s->context, ZMQ_ROUTER), *dealer = zmq_socket(s->context, ZMQ_DEALER);
    snprintf(endpoint, sizeof endpoint, "inproc://identity-%u", number);
    if (router == NULL || dealer == NULL || zmq_bind(router, endpoint) != 0 ||
        zmq_connect(dealer, endpoint) != 0 || zmq_send(dealer, "", 0, 0) < 0 ||
        zmq_recv(router, id, sizeof id, 0) < 0) {
        peer_fail("identity");
    }
    zmq_close(dealer);
    zmq_close(router);
    return (uint32_t)id[1] << 24 | (uint32_t)id[2] << 16 | (uint32_t)id[3] << 8 | id[4];
}

static void begin_identity(struct attack *a)
{
    struct side *s = &a->side;
    make_many(a, s->shards * IDENTITY_BASES * IDENTITIES);
    unsigned at = 0;
    for (unsigned base = 0; base < IDENTITY_BASES; base++) {
        uint32_t first = first_identity(s, base);
        for (uint32_t id = first; id < first + IDENTITIES; id++) {
            uint8_t identity[] = {0, (uint8_t)(id >> 24), (uint8_t)(id >> 16), (uint8_t)(id >> 8),
                                  (uint8_t)id};
            for (unsigned shard = 0; shard < s->shards; shard++) {
                a->many[at] = (struct peer){.side = s, .shard = shard, .role = PROTO_CLIENT};
                peer_connect(&a->many[at], RECEIVE_LIMIT, identity, sizeof identity);
                peer_hello(&a->many[at++]);
            }
        }
    }
}

/* They stay; honest connections come and go, and are given the next id each. */
static bool step_identity(struct attack *a)
{
    struct peer *p = &a->front[0];
    bool waits = a->side.of_type[PROTO_WELCOME] == a->seen_welcomes &&
                 clock_us() - p->greeted_us < HELLO_AGAIN_MS * 1000;
    if (p->socket != NULL && waits) {
        return false;
    }
    a->seen_welcomes = a->side.of_type[PROTO_WELCOME];
    if (p->socket != NULL) {
        peer_drain(p);
        zmq_close(p->socket);
    }
    peer_open(p, &a->side, (unsigned)(a->step % a->side.shards), PROTO_CLIENT, 0, a->step + 1);
    return false;
}

/* ---- root: scores that the game cannot mean, for the root and below ---- */

static void begin_root(struct attack *a)
{
    open_at_each(a, a->worker, PROTO_WORKER, 0);
    open_at_each(a, a->front, PROTO_CLIENT, PROTO_WANTS_RESULTS);
}

static bool step_root(struct attack *a)
{
    static const int16_t score[] = {32767, -32767, 32766, 32000, -32000, 31999, 31001, -31001};
    struct side *s = &a->side;
    if (!s->has_offer) {
        return false;
    }
    struct proto_message m = {.type = a->step % 2 == 0 ? PROTO_STORE_HASH : PROTO_SHARE};
    uint32_t count = 256, at = 0;
    for (; at < count; at++) {
        /* Every other one is the root; of the rest the children come twice as often. */
        unsigned node = at % 2 == 0   ? 0
                        : at % 4 == 1 ? rng_below(&s->rng, s->nodes < 40 ? s->nodes : 40)
                                      : rng_below(&s->rng, s->nodes);
        a->store[at] = (struct tt_store){.key = s->node_key[node],
                                         .depth = (uint8_t)rng_below(&s->rng, 12),
                                         .score = score[rng_below(&s->rng, 8)],
                                         .bound = (uint8_t)(1 + rng_below(&s->rng, 3)),
                                         .move = (uint16_t)rng_next(&s->rng),
                                         .slot = (uint16_t)rng_below(&s->rng, 3)};
    }
    if (m.type == PROTO_SHARE) {
        m.share.table_id = rng_next(&s->rng) | 1;
        m.share.list = (struct proto_stores){count, a->store};
    } else {
        m.store_hash.list = (struct proto_stores){count, a->store};
    }
    bool sent = false;
    for (unsigned i = 0; i < s->shards; i++) {
        if (a->front[i].namespace_id != s->offer.wire.namespace_id) {
            a->front[i].namespace_id = s->offer.wire.namespace_id;
            peer_hello(&a->front[i]);
        }
        sent |= peer_say(&a->front[i], &m);
    }
    return sent;
}

/* ---- bucket: keys of one bucket of the in-flight table ---- */

static const uint64_t bucket_factor = UINT64_C(0xbf58476d1ce4e5b9); /* of the unseeded hash */

static uint64_t inverse(uint64_t odd)
{
    uint64_t x = odd;
    for (unsigned i = 0; i < 6; i++) { /* Newton: each step doubles the bits that are right */
        x *= 2 - odd * x;
    }
    return x;
}

static void begin_bucket(struct attack *a)
{
    open_at_each(a, a->front, PROTO_CLIENT, 0);
}

/* Node after node, as many as the session may have, and then again: each is at the end of a list
 * that long. */
static bool step_bucket(struct attack *a)
{
    uint64_t back = inverse(bucket_factor);
    struct proto_message m = {.type = PROTO_RETRIEVE_ASK};
    for (uint64_t i = 0; i < PROTO_BATCH_MAX; i++) {
        uint64_t number = (a->step * PROTO_BATCH_MAX + i) % (26 * PROTO_BATCH_MAX);
        a->ask[i] = (struct tt_ask){.key = (UINT64_C(0x123456) << 40 | number) * back - 3,
                                    .depth = 3,
                                    .alpha = -5,
                                    .beta = 5};
    }
    m.retrieve_ask.request = 1;
    m.retrieve_ask.list = (struct proto_asks){PROTO_BATCH_MAX, a->ask};
    bool sent = false;
    for (unsigned i = 0; i < a->side.shards; i++) {
        if (a->step % 64 == 0) {
            peer_hello(&a->front[i]);
        }
        sent |= peer_say(&a->front[i], &m);
    }
    return sent;
}

/* ---- deaf: large questions, and nobody who reads the answers ---- */

static void begin_deaf(struct attack *a)
{
    make_many(a, DEAF_PEERS * a->side.shards);
    for (unsigned i = 0; i < a->peers; i++) {
        struct peer *p = &a->many[i];
        *p = (struct peer){.side = &a->side,
                           .shard = i % a->side.shards,
                           .role = PROTO_CLIENT,
                           .instance = rng_next(&a->side.rng)};
        peer_connect(p, 1, NULL, 0);
        peer_hello(p);
    }
    struct proto_message ask = {.type = PROTO_RETRIEVE_ASK}, peek = {.type = PROTO_PEEK};
    for (unsigned i = 0; i < PROTO_BATCH_MAX; i++) {
        a->ask[i] = (struct tt_ask){.key = i, .depth = 3, .alpha = -30000, .beta = 30000};
        a->peek[i] = (struct tt_peek){.key = i % 128, .depth = 3};
    }
    ask.retrieve_ask.request = peek.peek.request = 1;
    ask.retrieve_ask.list = (struct proto_asks){PROTO_BATCH_MAX, a->ask};
    peek.peek.list = (struct proto_peeks){PROTO_BATCH_MAX, a->peek};
    a->question_bytes[0] = proto_encode(&ask, a->question[0], sizeof a->question[0]);
    a->question_bytes[1] = proto_encode(&peek, a->question[1], sizeof a->question[1]);
}

/* A PEEK is answered with three times its bytes. */
static bool step_deaf(struct attack *a)
{
    bool sent = false;
    for (unsigned i = 0; i < a->peers; i++) {
        unsigned which = a->step % 4 != 0;
        if (a->step % 16 == 15) { /* it may have been closed */
            peer_hello(&a->many[i]);
        }
        sent |= peer_say_bytes(&a->many[i], a->question[which], a->question_bytes[which]);
    }
    return sent;
}

/* ---- jobs: one client's jobs ---- */

static void begin_jobs(struct attack *a)
{
    open_at_each(a, a->worker, PROTO_WORKER, 0);
    open_at_each(a, a->front, PROTO_FRONT, 0);
}

/* As an honest one, or the workers would not take them: after the first of those was seen. */
static bool step_jobs(struct attack *a)
{
    bool sent = false;
    if (!a->side.has_offer) {
        return false;
    }
    struct proto_message m =
        post_of(a, a->posted < JOBS ? (uint64_t)OWN_JOB << 52 | (a->posted + 1) : own_job(a));
    a->posted++;
    for (unsigned i = 0; i < a->side.shards; i++) {
        sent |= peer_say(&a->front[i], &m);
    }
    return sent;
}

/* ---- hello: a worker's HELLO, answered by all jobs; pairs: jobs that begin and end ---- */

static void begin_hello(struct attack *a)
{
    begin_jobs(a);
}

static bool step_hello(struct attack *a)
{
    bool sent = false;
    if (a->step < JOBS) { /* what the answers are made of */
        struct proto_message m = post_of(a, own_job(a));
        for (unsigned i = 0; i < a->side.shards; i++) {
            peer_say(&a->front[i], &m);
        }
    } else if (a->step % 200 == 0) { /* or the jobs end */
        struct proto_message m = {.type = PROTO_HEARTBEAT};
        for (unsigned i = 0; i < a->side.shards; i++) {
            peer_say(&a->front[i], &m);
        }
    }
    for (unsigned i = 0; i < a->side.shards; i++) {
        sent |= peer_hello(&a->worker[i]);
    }
    return sent;
}

static bool step_pairs(struct attack *a)
{
    struct proto_message post = post_of(a, own_job(a)), stop = {.type = PROTO_JOB_STOP};
    bool sent = false;
    stop.job_stop.job = post.job.job;
    for (unsigned i = 0; i < a->side.shards; i++) {
        sent |= peer_say(&a->front[i], &post) && peer_say(&a->front[i], &stop);
    }
    return sent;
}

/* ---- namespace: jobs of another selection in the namespace of an honest one ---- */

static bool step_namespace(struct attack *a)
{
    struct side *s = &a->side;
    static uint64_t open[NAMESPACE_JOBS];
    if (!s->has_offer || (a->seen_offers == s->offers && a->step % 1000 != 0)) {
        return false;
    }
    a->seen_offers = s->offers;
    for (unsigned k = 0; k < NAMESPACE_JOBS; k++) {
        struct proto_message stop = {.type = PROTO_JOB_STOP}, m;
        stop.job_stop.job = open[k];
        open[k] = own_job(a);
        m = post_of(a, open[k]);
        m.job.namespace_id = s->offer.wire.namespace_id;
        m.job.flags = k % 4 == 3 ? 0 : PROTO_JOB_FULL;
        m.job.remote_depth = 2;
        m.job.depth = k % 2 == 0 ? s->offer.wire.depth : PROTO_NO_LIMIT;
        for (unsigned i = 0; i < s->shards; i++) {
            peer_say(&a->front[i], &stop);
            peer_say(&a->front[i], &m);
        }
    }
    return true;
}

/* ---- intruder: without a key that is let in ---- */

static void begin_intruder(struct attack *a)
{
    make_many(a, INTRUDERS);
}

/* In clear, with a wrong key of the server, with a key of our own that nobody allowed. */
static bool step_intruder(struct attack *a)
{
    char text_public[KEYS_TEXT_BYTES + 1], text_secret[KEYS_TEXT_BYTES + 1];
    struct side *s = &a->side;
    struct peer *p = &a->many[a->step % INTRUDERS];
    struct keys_client server = s->keys[PROTO_CLIENT];
    if (p->socket != NULL) {
        peer_drain(p);
        zmq_close(p->socket);
    }
    *p = (struct peer){.side = s,
                       .shard = (unsigned)rng_below(&s->rng, s->shards),
                       .role = (uint8_t)rng_below(&s->rng, PROTO_MONITOR + 1),
                       .instance = a->step + 1};
    unsigned how = rng_below(&s->rng, 3);
    s->has_keys = how > 0;
    if (zmq_curve_keypair(text_public, text_secret) != 0) {
        peer_fail("keys");
    }
    zmq_z85_decode(s->keys[p->role].own.public_key, text_public);
    zmq_z85_decode(s->keys[p->role].own.secret_key, text_secret);
    memcpy(s->keys[p->role].server_key, server.server_key, KEYS_BYTES);
    s->keys[p->role].server_key[0] ^= how == 1;
    peer_connect(p, RECEIVE_LIMIT, NULL, 0);
    memcpy(s->keys[p->role].server_key, server.server_key, KEYS_BYTES);
    peer_hello(p);
    if (a->step % INTRUDERS == INTRUDERS - 1) {
        usleep(ROUND_MS * 1000); /* or the next round would close them before they were refused */
    }
    return true;
}

/* ---- all together ---- */

static const struct kind {
    const char *name;
    void (*begin)(struct attack *a);
    bool (*step)(struct attack *a); /* false: rest */
    bool is_deaf;
} kinds[] = {
    {"identity", begin_identity, step_identity, false},
    {"root", begin_root, step_root, false},
    {"bucket", begin_bucket, step_bucket, false},
    {"deaf", begin_deaf, step_deaf, true},
    {"jobs", begin_jobs, step_jobs, false},
    {"hello", begin_hello, step_hello, false},
    {"pairs", begin_jobs, step_pairs, false},
    {"namespace", begin_jobs, step_namespace, false},
    {"silent", begin_silent, step_silent, false},
    {"shares", begin_shares, step_shares, false},
    {"idle", begin_idle, step_idle, false},
    {"intruder", begin_intruder, step_intruder, true},
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static void drain_all(struct attack *a)
{
    for (unsigned i = 0; i < a->side.shards; i++) {
        if (a->worker[i].socket != NULL) {
            peer_drain(&a->worker[i]);
        }
        if (a->front[i].socket != NULL) {
            peer_drain(&a->front[i]);
        }
    }
    for (unsigned i = 0; i < a->peers; i++) {
        peer_drain(&a->many[i]);
    }
}

/* Sessions end in silence: a session that has nothing to say says that it lives. */
static void beat(struct attack *a)
{
    struct proto_message m = {.type = PROTO_HEARTBEAT};
    static uint64_t next_us;
    if (clock_us() >= next_us) {
        next_us = clock_us() + SILENT_MS * 1000;
        for (unsigned i = 0; i < a->side.shards; i++) {
            if (a->worker[i].socket != NULL) {
                peer_say(&a->worker[i], &m);
            }
            if (a->front[i].socket != NULL) {
                peer_say(&a->front[i], &m);
            }
        }
    }
}

/* The attack is under way when its sessions are, or when it is clear that some never will be. */
static void await_welcomes(struct attack *a, const struct kind *kind)
{
    uint64_t end = clock_us() + WELCOME_MS * 1000;
    unsigned wanted = kind->is_deaf ? 0 : a->peers;
    for (unsigned i = 0; i < a->side.shards; i++) {
        wanted += a->worker[i].socket != NULL;
        wanted += a->front[i].socket != NULL;
    }
    while (a->side.welcomes < wanted && clock_us() < end && !atomic_load(&peer_enough)) {
        uint64_t before = a->side.welcomes;
        usleep(REST_US);
        drain_all(a);
        end = a->side.welcomes > before ? clock_us() + WELCOME_MS * 1000 : end;
    }
}

int main(int argc, char **argv)
{
    static struct attack a;
    const char *servers = NULL, *keys = NULL;
    const struct kind *kind = NULL;
    uint64_t seed = 1, count = 0;
    for (unsigned i = 0; argc > 1 && i < KINDS; i++) {
        kind = strcmp(argv[1], kinds[i].name) == 0 ? &kinds[i] : kind;
    }
    for (int i = 2; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--servers") == 0) {
            servers = argv[i + 1];
        } else if (strcmp(argv[i], "--seed") == 0) {
            seed = strtoull(argv[i + 1], NULL, 10);
        } else if (strcmp(argv[i], "--count") == 0) {
            count = strtoull(argv[i + 1], NULL, 10);
        } else if (strcmp(argv[i], "--keys") == 0) {
            keys = argv[i + 1];
        } else {
            kind = NULL;
        }
    }
    if (kind == NULL || servers == NULL || !side_open(&a.side, servers, keys, seed)) {
        fputs("usage: attacker KIND --servers HOST:PORT,... [--keys DIR] [--seed N] [--count N]\n",
              stderr);
        return 2;
    }
    kind->begin(&a);
    await_welcomes(&a, kind);
    puts("ready");
    fflush(stdout);
    for (; a.step < count || !atomic_load(&peer_enough); a.step++) {
        if (a.step == count) {
            puts("counted");
            fflush(stdout);
        }
        if (!kind->step(&a)) {
            usleep(REST_US);
        }
        if (!kind->is_deaf && a.step % SAY_MAX == 0) {
            drain_all(&a);
            beat(&a);
        }
    }
    printf("{\"kind\":\"%s\",", kind->name);
    side_print(&a.side);
    printf("\"steps\":%llu}\n", (unsigned long long)a.step);
    fflush(stdout);
    _exit(0); /* what is queued need not go out */
}
