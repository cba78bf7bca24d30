/* liar: valid sessions of all roles that lie in every field of every message.
 *
 *   liar --servers HOST:PORT,... [--keys DIR] [--seed N] [--messages N]
 *
 * N messages (100,000), and on until SIGTERM, of the types that each role may send, and now and
 * then of another, or malformed. Their fields are drawn from what others use (jobs, keys of the
 * job's nodes, namespaces), from the ends of each type's range, and from all of it. The one thing
 * it does not do is store results for nodes of somebody else's namespace, by STORE_HASH or SHARE:
 * their keys are random. `ready` when the sessions are open, `counted` after N; then one JSON line.
 * Repeatable from the seed as far as the shards answer alike. Threads: one, and ZeroMQ's. */
#include "tests/attacks/peer.h"
#include "worker/engine/letter.h"

enum {
    PEERS = 16,
    FAULT_EVERY = 1000, /* messages: one of the wrong kind, and one with a field out of range */
    TEXT_ROOM = 1100, /* more than a text may have */
    BYTES_ROOM = 1 << 17,
    DRAIN_EVERY = 16,
    AWAIT_EVERY = 1000,
    RENEW_EVERY = 5000, /* messages, then a peer leaves and comes back */
    SEND_WAIT_MS = 2000,
    WELCOME_MS = 5000,
    POOL = 64,
};

struct writer {
    struct side *side;
    uint8_t bytes[BYTES_ROOM];
    size_t n;
    uint8_t role; /* of who says it */
    bool is_faulty; /* some field is outside its range */
    bool stores; /* the keys in this message are results: random */
};

/* ---- msgpack ---- */

static void put_number(struct writer *w, uint8_t head, uint64_t value, unsigned bytes)
{
    w->bytes[w->n++] = head;
    while (bytes-- > 0) {
        w->bytes[w->n++] = (uint8_t)(value >> (8 * bytes));
    }
}

static void put_integer(struct writer *w, int64_t value)
{
    if (value >= 0 && value < 128) {
        w->bytes[w->n++] = (uint8_t)value;
    } else if (value < 0) {
        put_number(w, 0xd3, (uint64_t)value, 8);
    } else {
        put_number(w, 0xcf, (uint64_t)value, 8);
    }
}

static void put_unsigned(struct writer *w, uint64_t value)
{
    if (value < 128) {
        w->bytes[w->n++] = (uint8_t)value;
    } else {
        put_number(w, 0xcf, value, 8);
    }
}

static void put_array(struct writer *w, unsigned count)
{
    put_number(w, 0xdc, count, 2);
}

/* ---- what a field says ---- */

static uint64_t draw_edge(struct side *s, uint64_t max)
{
    switch (rng_below(&s->rng, 8)) {
    case 0:
        return max;
    case 1:
        return max - 1;
    case 2:
        return max / 2;
    case 3:
        return max / 2 + 1;
    case 4:
        return rng_next(&s->rng) & max;
    default:
        return rng_below(&s->rng, 4);
    }
}

static bool is(const char *name, const char *other)
{
    return strcmp(name, other) == 0;
}

static uint64_t draw_u64(struct writer *w, const char *name)
{
    struct side *s = w->side;
    const struct proto_job *job = &s->offer.wire;
    bool known = s->has_offer && rng_below(&s->rng, 2) == 0;
    if (is(name, "key") || is(name, "root_key")) {
        return w->stores                    ? rng_next(&s->rng)
               : known                      ? s->node_key[rng_below(&s->rng, s->nodes)]
               : rng_below(&s->rng, 2) == 0 ? rng_mix(rng_below(&s->rng, POOL))
                                            : rng_next(&s->rng);
    }
    if (is(name, "job")) {
        return known ? job->job : (uint64_t)OWN_JOB << 52 | rng_below(&s->rng, POOL);
    }
    if (is(name, "namespace_id") && known) {
        return job->namespace_id;
    }
    if (is(name, "evaluation") && known) {
        return job->evaluation;
    }
    if (is(name, "instance") && rng_below(&s->rng, 8) > 0) {
        return rng_below(&s->rng, POOL);
    }
    return draw_edge(s, UINT64_MAX);
}

static void put_u64(struct writer *w, const char *name)
{
    put_unsigned(w, draw_u64(w, name));
}

static void put_u32(struct writer *w, const char *name)
{
    (void)name;
    put_unsigned(w, draw_edge(w->side, UINT32_MAX));
}

static void put_u16(struct writer *w, const char *name)
{
    struct side *s = w->side;
    bool is_index = is(name, "index") && !w->is_faulty;
    put_unsigned(w, is_index ? rng_below(&s->rng, 8192) : draw_edge(s, UINT16_MAX));
}

static void put_u8(struct writer *w, const char *name)
{
    struct side *s = w->side;
    unsigned range = is(name, "bound")                                ? 3
                     : is(name, "state")                              ? 3
                     : is(name, "flags")                              ? 4
                     : is(name, "depth") && rng_below(&s->rng, 8) > 0 ? 12
                                                                      : 251;
    unsigned value = rng_below(&s->rng, range) + is(name, "bound");
    value = is(name, "role") ? w->role : value;
    put_unsigned(w, w->is_faulty && rng_below(&s->rng, 2) == 0 ? draw_edge(s, UINT8_MAX) : value);
}

static void put_i16(struct writer *w, const char *name)
{
    struct side *s = w->side;
    int64_t value = (int64_t)rng_below(&s->rng, 65535) - 32767;
    if (is(name, "alpha") || is(name, "beta")) {
        value = is(name, "alpha") ? -(int64_t)rng_below(&s->rng, 32768)
                                  : 1 + (int64_t)rng_below(&s->rng, 32766);
    }
    put_integer(w, w->is_faulty && rng_below(&s->rng, 2) == 0 ? -32768 : value);
}

static void put_text(struct writer *w, const char *name)
{
    static char noise[TEXT_ROOM];
    struct side *s = w->side;
    const char *text = noise;
    unsigned n = rng_below(&s->rng, w->is_faulty                  ? TEXT_ROOM - 1
                                    : rng_below(&s->rng, 50) == 0 ? PROTO_TEXT_MAX
                                                                  : 20);
    for (unsigned i = 0; i < n; i++) {
        noise[i] = (char)(1 + rng_below(&s->rng, 255));
    }
    noise[n] = 0;
    if (rng_below(&s->rng, 4) > 0) {
        text = is(name, "game")        ? "chess"
               : is(name, "algorithm") ? (rng_below(&s->rng, 2) ? "abdada" : "shared-table")
               : is(name, "position")
                   ? (s->has_offer && rng_below(&s->rng, 2) ? s->offer.position : "startpos")
                   : noise;
    }
    size_t length = w->n < BYTES_ROOM / 2 ? strlen(text) : 0; /* room for the rest of a list */
    put_number(w, 0xda, length, 2);
    memcpy(w->bytes + w->n, text, length);
    w->n += length;
}

static unsigned draw_count(struct writer *w)
{
    struct side *s = w->side;
    return w->is_faulty                   ? rng_below(&s->rng, PROTO_BATCH_MAX + 2)
           : rng_below(&s->rng, 100) == 0 ? 1 + rng_below(&s->rng, PROTO_BATCH_MAX)
                                          : 1 + rng_below(&s->rng, 8);
}

#define PUT_u64(w, name) put_u64(w, name)
#define PUT_u32(w, name) put_u32(w, name)
#define PUT_u16(w, name) put_u16(w, name)
#define PUT_u8(w, name) put_u8(w, name)
#define PUT_i16(w, name) put_i16(w, name)
#define PUT_text(w, name) put_text(w, name)

/* One function for each list: its elements, as proto/messages.h has them. */
#define F(type, name) +1
#define OP(list, element, fields) static const unsigned fields_of_##list = 0 fields;
PROTO_OPS(OP)
#undef OP
#undef F

#define F(type, name) PUT_##type(w, #name);
#define OP(list, element, fields)            \
    static void put_##list(struct writer *w) \
    {                                        \
        unsigned n = draw_count(w);          \
        put_array(w, n);                     \
        while (n-- > 0) {                    \
            put_array(w, fields_of_##list);  \
            fields                           \
        }                                    \
    }
PROTO_OPS(OP)
#undef OP

/* Packed, little end first. */
static void put_raw(struct writer *w, uint64_t value, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++) {
        w->bytes[w->n++] = (uint8_t)(value >> 8 * i);
    }
}

static void put_results(struct writer *w)
{
    struct side *s = w->side;
    unsigned n = draw_count(w);
    bool is_cut = w->is_faulty && n > 0 && rng_below(&s->rng, 4) == 0;
    put_number(w, 0xc5, (uint64_t)PROTO_RESULT_BYTES * n - is_cut, 2);
    while (n-- > 0) {
        put_raw(w, draw_u64(w, "key"), 8);
        put_raw(w, w->is_faulty ? rng_next(&s->rng) : rng_below(&s->rng, 32768), 2);
        put_raw(w, rng_next(&s->rng), 2);
        put_raw(w, rng_below(&s->rng, 64) << 2 | (rng_below(&s->rng, 3) + !w->is_faulty), 1);
    }
}

static void put_bytes(struct writer *w)
{
    struct side *s = w->side;
    struct peer_message m = {.kind = rng_below(&s->rng, TASK_RESULT + 1)};
    uint8_t body[PROTO_BODY_MAX] = {0};
    size_t n = letter_write(&m, body); /* what a searcher may take (worker/engine/letter.h) */
    for (size_t i = offsetof(struct peer_message, child); i < offsetof(struct peer_message, length);
         i++) {
        body[i] = (uint8_t)rng_below(&s->rng, 2);
    }
    n = w->is_faulty ? rng_below(&s->rng, 2 * PROTO_BODY_MAX) : n;
    put_number(w, 0xc5, n, 2);
    for (size_t i = 0; i < n; i++) {
        put_raw(w, i < PROTO_BODY_MAX ? body[i] : 0, 1);
    }
}

#define PUT_bytes(w, name) put_bytes(w)
#define PUT_correspondents(w, name) put_correspondents(w)
#define PUT_asks(w, name) put_asks(w)
#define PUT_answers(w, name) put_answers(w)
#define PUT_stores(w, name) put_stores(w)
#define PUT_releases(w, name) put_releases(w)
#define PUT_peeks(w, name) put_peeks(w)
#define PUT_peekeds(w, name) put_peekeds(w)
#define PUT_scanneds(w, name) put_scanneds(w)
#define PUT_figures(w, name) put_figures(w)
#define PUT_member_rows(w, name) put_member_rows(w)
#define PUT_job_rows(w, name) put_job_rows(w)
#define PUT_results(w, name) put_results(w)

#define MSG(NAME, name, id, fields)          \
    static void say_##name(struct writer *w) \
    {                                        \
        fields                               \
    }
PROTO_MESSAGES(MSG)
#undef MSG
#undef F

#define F(type, name) +1
static const struct kind {
    const char *name;
    unsigned id, fields;
    void (*say)(struct writer *w);
} kinds[] = {
#define MSG(NAME, name, id, fields) {#NAME, id, 0 fields, say_##name},
    PROTO_MESSAGES(MSG)
#undef MSG
};
#undef F
enum { KINDS = sizeof kinds / sizeof kinds[0] };

/* ---- the sessions ---- */

struct liar {
    struct side side;
    struct peer peer[PEERS];
    struct writer writer;
    uint64_t count[KINDS], untaken;
};

static void make_message(struct liar *l, const struct kind *kind)
{
    struct writer *w = &l->writer;
    w->n = 0;
    w->stores =
        kind->id == PROTO_STORE_HASH || kind->id == PROTO_SHARE || kind->id == PROTO_NODE_DONE;
    put_array(w, kind->fields + 2);
    put_unsigned(w, PROTO_VERSION);
    put_unsigned(w, kind->id);
    kind->say(w);
}

/* Which roles may send what, as PROTOCOL.md has it: bit by number of the role. */
enum { ALL = 15, SEARCHERS = 7 };
static const uint8_t roles_of[PEER_TYPES] = {
    [PROTO_HELLO] = ALL,
    [PROTO_HEARTBEAT] = ALL,
    [PROTO_BYE] = ALL,
    [PROTO_STATS] = ALL,
    [PROTO_MEMBERS] = ALL,
    [PROTO_JOBS] = ALL,
    [PROTO_RETRIEVE_ASK] = SEARCHERS,
    [PROTO_STORE_HASH] = SEARCHERS,
    [PROTO_RELEASE] = SEARCHERS,
    [PROTO_PEEK] = SEARCHERS,
    [PROTO_SHARE] = SEARCHERS,
    [PROTO_SCAN] = SEARCHERS,
    [PROTO_MAIL_JOIN] = SEARCHERS,
    [PROTO_MAIL] = SEARCHERS,
    [PROTO_FLUSH] = 1 << PROTO_FRONT | 1 << PROTO_CLIENT, /* without keys */
    [PROTO_JOB_POST] = 1 << PROTO_FRONT,
    [PROTO_JOB_STOP] = 1 << PROTO_FRONT,
    [PROTO_JOB_REPORT] = 1 << PROTO_WORKER | 1 << PROTO_FRONT,
};

/* What only shards send, and what is malformed, is no lie: after 32 in a second the shard reads no
 * more of the peer. So one of those in so many. */
static unsigned draw_kind(struct liar *l, uint8_t role)
{
    unsigned kind = rng_below(&l->side.rng, KINDS);
    bool is_faulty = rng_below(&l->side.rng, FAULT_EVERY) == 0;
    unsigned one_in = kinds[kind].id == PROTO_BYE ? 50 : kinds[kind].id == PROTO_FLUSH ? 10 : 1;
    bool is_seldom = rng_below(&l->side.rng, one_in) > 0;
    bool is_sent = is_faulty || (roles_of[kinds[kind].id] >> role & 1) != 0;
    return is_sent && !is_seldom ? kind : draw_kind(l, role);
}

static void renew(struct liar *l, unsigned i)
{
    struct side *s = &l->side;
    if (l->peer[i].socket != NULL) {
        zmq_close(l->peer[i].socket);
    }
    peer_open(&l->peer[i], s, i / 4 % s->shards, (uint8_t)(i % 4),
              (uint8_t)(i % 4 == PROTO_MONITOR ? 0 : PROTO_WANTS_RESULTS), i + 1);
}

static void drain(struct liar *l)
{
    for (unsigned i = 0; i < PEERS; i++) {
        peer_drain(&l->peer[i]);
        if (l->peer[i].lost) {
            renew(l, i);
        }
    }
}

static void send_one(struct liar *l)
{
    unsigned i = rng_below(&l->side.rng, PEERS), kind = draw_kind(l, (uint8_t)(i % 4));
    uint64_t end = clock_us() + SEND_WAIT_MS * 1000;
    l->writer.role = l->peer[i].role;
    l->writer.is_faulty = rng_below(&l->side.rng, FAULT_EVERY) == 0;
    make_message(l, &kinds[kind]);
    while (!peer_say_bytes(&l->peer[i], l->writer.bytes, l->writer.n)) {
        zmq_pollitem_t item = {.socket = l->peer[i].socket, .events = ZMQ_POLLOUT};
        zmq_poll(&item, 1, 10);
        drain(l);
        if (clock_us() > end) {
            renew(l, i);
            return;
        }
    }
    l->count[kind]++;
    if (kinds[kind].id == PROTO_BYE || (kinds[kind].id == PROTO_HELLO && l->writer.is_faulty)) {
        peer_hello(&l->peer[i]); /* with its role, or the rest would be refused */
    }
}

/* Until the shards have taken all that was sent. Who gets no answer is ignored. */
static void await_taken(struct liar *l)
{
    struct proto_message m = {.type = PROTO_HEARTBEAT, .heartbeat = {TAKEN}};
    uint64_t end = clock_us() + SEND_WAIT_MS * 1000;
    void *asked[PEERS] = {NULL};
    unsigned taken = 0;
    while (taken < PEERS && clock_us() < end) {
        taken = 0;
        for (unsigned i = 0; i < PEERS; i++) {
            if (asked[i] != l->peer[i].socket) { /* for the first time, or it was renewed */
                l->peer[i].taken = false;
                asked[i] = peer_say(&l->peer[i], &m) ? l->peer[i].socket : NULL;
            }
            taken += asked[i] != NULL && l->peer[i].taken;
        }
        usleep(100);
        drain(l);
    }
    for (unsigned i = 0; i < PEERS; i++) {
        if (!l->peer[i].taken) {
            l->untaken++;
            renew(l, i);
        }
    }
}

static void usage(void)
{
    fputs("usage: liar --servers HOST:PORT,... [--keys DIR] [--seed N] [--messages N]\n", stderr);
    exit(2);
}

int main(int argc, char **argv)
{
    static struct liar l;
    const char *servers = NULL, *keys = NULL;
    uint64_t seed = 1, messages = 100000, begin = clock_us();
    for (int i = 1; i < argc; i += 2) {
        if (i + 1 == argc) {
            usage();
        } else if (is(argv[i], "--servers")) {
            servers = argv[i + 1];
        } else if (is(argv[i], "--keys")) {
            keys = argv[i + 1];
        } else if (is(argv[i], "--seed")) {
            seed = strtoull(argv[i + 1], NULL, 10);
        } else if (is(argv[i], "--messages")) {
            messages = strtoull(argv[i + 1], NULL, 10);
        } else {
            usage();
        }
    }
    if (servers == NULL || !side_open(&l.side, servers, keys, seed)) {
        usage();
    }
    l.writer.side = &l.side;
    for (unsigned i = 0; i < PEERS; i++) {
        renew(&l, i);
    }
    while (l.side.welcomes < PEERS && clock_us() < begin + WELCOME_MS * 1000) {
        usleep(500);
        drain(&l);
    }
    puts("ready");
    fflush(stdout);
    for (uint64_t i = 0; i < messages || !atomic_load(&peer_enough); i++) {
        send_one(&l);
        if (i % DRAIN_EVERY == 0) {
            drain(&l);
        }
        if (i % AWAIT_EVERY == AWAIT_EVERY - 1 || i == messages - 1) {
            await_taken(&l);
        }
        if (i == messages - 1) {
            puts("counted");
            fflush(stdout);
        }
        if (i % RENEW_EVERY == RENEW_EVERY - 1) {
            renew(&l, rng_below(&l.side.rng, PEERS));
        }
    }
    await_taken(&l);
    printf("{\"kind\":\"liar\",\"seed\":%llu,", (unsigned long long)seed);
    side_print(&l.side);
    printf("\"untaken\":%llu,\"seconds\":%.1f,\"answers\":{", (unsigned long long)l.untaken,
           (double)(clock_us() - begin) / 1e6);
    for (unsigned k = 0; k < KINDS; k++) {
        printf("%s\"%s\":%llu", k > 0 ? "," : "", kinds[k].name,
               (unsigned long long)l.side.of_type[kinds[k].id]);
    }
    printf("},\"kinds\":{");
    for (unsigned k = 0; k < KINDS; k++) {
        printf("%s\"%s\":%llu", k > 0 ? "," : "", kinds[k].name, (unsigned long long)l.count[k]);
    }
    puts("}}");
    fflush(stdout);
    return 0;
}
