/* crowds: what attacker.c's kinds of hundreds and thousands of sessions do: such as want the
 * results of others (silent), of which one sends them as well (shares), and workers that do not
 * work (idle). Includes functions; included once, by attacker.c, behind what they share. Threads:
 * one, and ZeroMQ's. Memory: the attack's. */
#ifndef TESTS_ATTACKS_CROWDS_H
#define TESTS_ATTACKS_CROWDS_H

enum {
    SILENT_PEERS = 70, /* at each shard; 64 were enough */
    SHARE_PEERS = 512, /* at each shard: as many as get one message */
    IDLE_PEERS = 1500, /* at each shard */
    AT_A_TIME = 64, /* that connect: more without a session would cost each other their places */
};

static const uint64_t silent_namespace = 4242; /* as attacks.py's */

static void beat_many(struct attack *a, unsigned peers)
{
    struct proto_message m = {.type = PROTO_HEARTBEAT};
    a->next_beat_us = clock_us() + SILENT_MS * 1000;
    for (unsigned i = 0; i < peers; i++) {
        if (!a->many[i].has_left) {
            peer_say(&a->many[i], &m);
        }
    }
}

/* Those from `from` on are let in, or it is clear that some never will be. */
static void await_more(struct attack *a, unsigned from, unsigned to, uint64_t welcomes)
{
    uint64_t end_us = clock_us() + WELCOME_MS * 1000;
    while (a->side.welcomes < welcomes + to - from && clock_us() < end_us &&
           !atomic_load(&peer_enough)) {
        uint64_t before = a->side.welcomes;
        usleep(REST_US);
        for (unsigned i = from; i < to; i++) {
            peer_drain(&a->many[i]);
        }
        end_us = a->side.welcomes > before ? clock_us() + WELCOME_MS * 1000 : end_us;
        if (clock_us() >= a->next_beat_us) {
            beat_many(a, from);
        }
    }
}

static void open_many(struct attack *a, unsigned at_each, uint8_t role)
{
    make_many(a, at_each * a->side.shards);
    for (unsigned from = 0, to; from < a->peers; from = to) {
        uint64_t welcomes = a->side.welcomes;
        to = from + AT_A_TIME < a->peers ? from + AT_A_TIME : a->peers;
        for (unsigned i = from; i < to; i++) {
            struct peer *p = &a->many[i];
            *p = (struct peer){.side = &a->side,
                               .shard = i % a->side.shards,
                               .role = role,
                               .flags = role == PROTO_CLIENT ? PROTO_WANTS_RESULTS : 0,
                               .namespace_id = silent_namespace,
                               .instance = rng_next(&a->side.rng)};
            peer_connect(p, RECEIVE_LIMIT, NULL, 0);
            peer_hello(p);
        }
        await_more(a, from, to, welcomes);
    }
}

static void begin_silent(struct attack *a)
{
    open_at_each(a, a->worker, PROTO_WORKER, 0);
    open_many(a, SILENT_PEERS, PROTO_CLIENT);
}

/* Half of them go where the search is. */
static bool step_silent(struct attack *a)
{
    struct proto_message m = {.type = PROTO_HEARTBEAT};
    if (clock_us() < a->next_beat_us) {
        return false;
    }
    a->next_beat_us = clock_us() + SILENT_MS * 1000;
    for (unsigned i = 0; i < a->peers; i++) {
        struct peer *p = &a->many[i];
        bool moves =
            a->side.has_offer && i % 4 < 2 && p->namespace_id != a->side.offer.wire.namespace_id;
        if (moves) {
            p->namespace_id = a->side.offer.wire.namespace_id;
            peer_hello(p);
        } else {
            peer_say(p, &m);
        }
    }
    return false;
}

/* One of them tells the others as much as it may. */
static void begin_shares(struct attack *a)
{
    open_at_each(a, a->front, PROTO_CLIENT, 0);
    for (unsigned i = 0; i < a->side.shards; i++) {
        a->front[i].namespace_id = silent_namespace;
        peer_hello(&a->front[i]);
    }
    open_many(a, SHARE_PEERS, PROTO_CLIENT);
    for (unsigned i = 0; i < PROTO_BATCH_MAX; i++) {
        a->store[i] = (struct tt_store){.key = rng_next(&a->side.rng), .depth = 5, .bound = 3};
    }
}

static bool step_shares(struct attack *a)
{
    struct proto_message m = {.type = PROTO_SHARE};
    m.share.table_id = 7;
    m.share.list = (struct proto_stores){PROTO_BATCH_MAX, a->store};
    if (clock_us() >= a->next_beat_us) {
        beat_many(a, a->peers);
    }
    for (unsigned i = 0; i < a->side.shards; i++) {
        peer_say(&a->front[i], &m);
    }
    return false;
}

static void begin_idle(struct attack *a)
{
    open_at_each(a, a->front, PROTO_FRONT, 0);
    open_many(a, IDLE_PEERS, PROTO_WORKER);
}

/* The residue of the worker indexes at which our job is served, of two users' (PROTOCOL.md section
 * 8). */
static uint32_t own_residue(const struct side *s)
{
    return rng_mix(s->own_user ^ s->boot) < rng_mix(s->offer.wire.user ^ s->boot) ? 0 : 1;
}

/* Those on the indexes of that residue leave, so that others fill the holes and serve our job, and
 * come again. */
static bool step_idle(struct attack *a)
{
    struct proto_message bye = {.type = PROTO_BYE};
    if (clock_us() < a->next_beat_us) {
        return false;
    }
    beat_many(a, a->peers);
    if (a->side.has_offer && a->seen_offers != a->side.offers) {
        struct proto_message post = post_of(a, own_job(a));
        a->seen_offers = a->side.offers;
        for (unsigned i = 0; i < a->side.shards; i++) {
            peer_say(&a->front[i], &post);
        }
    }
    uint64_t beat = a->posted++;
    for (unsigned i = 0; i < a->peers && beat % 4 == 0; i++) {
        struct peer *p = &a->many[i];
        p->has_left = a->side.own_user != 0 && p->index % 2 == own_residue(&a->side);
        if (p->has_left) {
            peer_say(p, &bye);
        }
    }
    for (unsigned i = 0; i < a->peers && beat % 4 == 3; i++) {
        if (a->many[i].has_left) {
            peer_hello(&a->many[i]);
        }
    }
    return false;
}

#endif
