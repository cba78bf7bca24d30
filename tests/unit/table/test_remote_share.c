/* Result broadcast: peers with one table need none, peers with other tables do; a host is one peer.
 */
#include "tests/support/test_remote.h"
#include "tests/support/test_tt.h"

#include "common/clock.h"
#include "common/rng.h"
#include "worker/table/claims.h"
#include "worker/table/remote_depth.h"

enum { SHARE_DEPTH = 3 };

/* Peers a and b use one table, c has its own; or each its own. False: the host gives no memory. */
static bool open_peers(struct world *world, bool one_table)
{
    uint64_t group = one_table ? clock_unique() | 1 : 0;
    for (unsigned i = 0; i < PEERS; i++) {
        peer_open(world, i, SHARE_DEPTH, i < 2 ? group : 0);
    }
    return !one_table || embedded_is_on_host(world->peer[0].table);
}

/* A result of the search that runs there, below its remote depth limit. */
static void finds(struct peer *peer, uint64_t key, uint8_t depth)
{
    struct table_port port = remote_table_port(peer->remote);
    struct table_ticket ticket = {0};
    struct tt_store store = tt_result(key, depth, TT_EXACT, 7, 1);
    port.store(port.self, &ticket, &store);
}

static bool knows(const struct peer *peer, uint64_t key, uint8_t depth)
{
    struct tt_ask ask = {.key = key, .alpha = -1, .beta = 1, .depth = depth};
    struct tt_answer answer;
    return embedded_find(peer->local.table, &ask, &answer) && answer.score == 7;
}

/* All search for a while and find something each millisecond: how many results of peer i peer k
 * knows soon enough. */
struct exchange {
    unsigned known[PEERS][PEERS];
};

enum { TURNS = 40 };

static struct exchange search_all(struct world *world)
{
    static uint64_t key = 1;
    struct exchange exchange = {0};
    uint64_t found[PEERS];
    for (unsigned turn = 0; turn < TURNS; turn++) {
        for (unsigned s = 0; s < PEERS; s++) {
            found[s] = key += UINT64_C(0x9e3779b97f4a7c15);
            finds(&world->peer[s], found[s], SHARE_DEPTH);
        }
        for (unsigned n = 0; n < 2 * PEERS; n++) {
            serve(&world->peer[n % PEERS], 1);
        }
        for (unsigned s = 0; s < PEERS; s++) {
            for (unsigned to = 0; to < PEERS; to++) {
                exchange.known[s][to] += knows(&world->peer[to], found[s], SHARE_DEPTH);
            }
        }
    }
    return exchange;
}

/* When a search begins others are supposed to begin, too: a first broadcast is tried. */
static void begin_all(struct world *world)
{
    for (unsigned i = 0; i < PEERS; i++) {
        peer_begin(&world->peer[i]);
        poll_once(&world->peer[i]);
    }
}

static void peers_with_other_tables_get_the_results(void **state)
{
    (void)state;
    struct world *world = world_open();
    assert_true(open_peers(world, false));
    begin_all(world);
    search_all(world); /* each finds out about the others */
    struct exchange e = search_all(world);
    for (unsigned s = 0; s < PEERS; s++) {
        for (unsigned to = 0; to < PEERS; to++) {
            assert_in_range(e.known[s][to], TURNS - 5, TURNS);
        }
    }
    world_close(world);
}

static void nothing_is_broadcast_without_peers(void **state)
{
    (void)state;
    struct world *world = world_open();
    peer_open(world, 0, SHARE_DEPTH, 0);
    struct peer *a = &world->peer[0];
    for (unsigned i = 0; i < 100; i++) {
        finds(a, i, SHARE_DEPTH);
        serve(a, 1);
    }
    assert_int_equal(figures(world).shared, 0);
    world_close(world);
}

static void shallow_results_are_not_broadcast(void **state)
{
    (void)state;
    struct world *world = world_open();
    assert_true(open_peers(world, false));
    begin_all(world);
    finds(&world->peer[0], 99, SHARE_DEPTH - 1);
    finds(&world->peer[0], 98, SHARE_DEPTH);
    serve(&world->peer[0], 5);
    serve(&world->peer[1], 5);
    assert_true(knows(&world->peer[0], 99, SHARE_DEPTH - 1));
    assert_false(knows(&world->peer[1], 99, SHARE_DEPTH - 1));
    assert_true(knows(&world->peer[1], 98, SHARE_DEPTH));
    world_close(world);
}

static void peers_with_one_table_broadcast_next_to_nothing(void **state)
{
    (void)state;
    struct world *world = world_open();
    if (!open_peers(world, true)) {
        world_close(world);
        skip();
    }
    struct peer *a = &world->peer[0], *b = &world->peer[1];
    remote_close(&world->peer[2].remote); /* the peer with another table is not there */
    for (unsigned round = 0; round < 10; round++) {
        peer_begin(a);
        peer_begin(b);
        for (unsigned i = 0; i < 100; i++) { /* 100 ms, others are supposed for the first 10 */
            finds(a, round * 1000 + i, SHARE_DEPTH);
            assert_true(knows(b, round * 1000 + i, SHARE_DEPTH));
            serve(a, 1);
            poll_once(b);
        }
    }
    assert_in_range(counters(a)->shared, 1, 10 * 3); /* a try or two each time */
    assert_int_equal(figures(world).shared, 0);
    assert_int_equal(embedded_other_table_until_us(a->table), 0);
    world_close(world);
}

static void a_peer_with_another_table_gets_the_results_of_all(void **state)
{
    (void)state;
    struct world *world = world_open();
    if (!open_peers(world, true)) {
        world_close(world);
        skip();
    }
    begin_all(world);
    search_all(world); /* they find out about each other */
    struct exchange e = search_all(world);
    assert_int_equal(e.known[0][1], TURNS);
    assert_int_equal(e.known[1][0], TURNS);
    for (unsigned s = 0; s < 2; s++) {
        assert_in_range(e.known[s][2], TURNS - 5, TURNS);
        assert_in_range(e.known[2][s], TURNS - 5, TURNS);
    }
    assert_true(embedded_other_table_until_us(world->peer[1].table) > 0);
    world_close(world);
}

/* ---- hosts ---- */

/* All of them know of each other, and what was found then has left. */
static struct world *world_of_hosts(void)
{
    struct world *world = world_open();
    world_open_hosts(world, SHARE_DEPTH);
    begin_all(world);
    search_all(world);
    serve(&world->peer[0], 5);
    serve(&world->peer[1], 5);
    serve(&world->peer[2], 5);
    return world;
}

static void what_threads_of_a_host_find_leaves_as_one_message(void **state)
{
    (void)state;
    enum { EACH = 10, KEY = 1 << 20 };
    struct world *world = world_of_hosts();
    struct peer *a = &world->peer[0], *b = &world->peer[1], *c = &world->peer[2];
    for (unsigned round = 0; round < 2; round++) {
        struct peer *first = round == 0 ? a : b, *last = round == 0 ? b : a;
        uint64_t key = KEY * (round + 1);
        finds(first, rng_mix(key++), SHARE_DEPTH);
        serve(first, 5); /* a message has left just now */
        poll_once(c);
        uint64_t messages = counters(c)->shares_taken, results = counters(c)->shared_taken;
        assert_true(knows(c, rng_mix(key - 1), SHARE_DEPTH));
        finds(first, rng_mix(key++), SHARE_DEPTH);
        poll_once(first);
        for (unsigned i = 0; i < EACH; i++) {
            finds(i & 1 ? first : last, rng_mix(key++), SHARE_DEPTH);
        }
        poll_once(first);
        poll_once(last);
        world->bed->now_us += 2500;
        poll_once(last);
        poll_once(c);
        assert_in_range(counters(c)->shares_taken, messages + 1, messages + 2);
        assert_int_equal(counters(c)->shared_taken, results + 1 + EACH);
        for (unsigned i = 1; i <= EACH; i++) {
            assert_true(knows(c, rng_mix(key - i), SHARE_DEPTH));
        }
    }
    world_close(world);
}

static void one_thread_takes_for_all_of_the_host(void **state)
{
    (void)state;
    struct world *world = world_of_hosts();
    struct peer *a = &world->peer[0], *b = &world->peer[1], *c = &world->peer[2];
    uint64_t results = counters(a)->shared_taken;
    assert_true(results > 0);
    finds(c, 1 << 20, SHARE_DEPTH);
    serve(c, 5);
    poll_once(b);
    assert_false(knows(b, 1 << 20, SHARE_DEPTH));
    poll_once(a);
    assert_true(knows(b, 1 << 20, SHARE_DEPTH));
    assert_int_equal(counters(a)->shared_taken, results + 1);
    assert_int_equal(counters(b)->shared_taken, 0);
    world_close(world);
}

/* A thread is in a node that another host finishes and nobody asked the shard for. */
static void what_is_published_ends_the_visits_of_all_threads(void **state)
{
    (void)state;
    struct world *world = world_of_hosts();
    struct peer *a = &world->peer[0], *b = &world->peer[1], *c = &world->peer[2];
    struct table_port port = remote_table_port(b->remote);
    struct node *at = &b->search->node[0];
    struct tt_answer answer;
    remote_begin(b->remote, SHARE_DEPTH + 1, true, true); /* not asked for so deep */
    *at = (struct node){.in_flight = true, .alpha = -1, .beta = 1};
    at->ask = (struct tt_ask){.key = 99,
                              .alpha = -1,
                              .beta = 1,
                              .depth = SHARE_DEPTH,
                              .flags = TT_STRICT,
                              .slot = b->local.slot};
    b->local.inflight_depth = EMBEDDED_INFLIGHT_DEPTH;
    tt_pose(&port, &at->ask, &at->ticket, &answer);
    assert_int_equal(answer.verdict, TT_OPEN);
    b->search->unwind = SEARCH_PLY_MAX;
    finds(c, 99, SHARE_DEPTH);
    serve(c, 5);
    poll_once(a);
    poll_once(b);
    assert_int_equal(b->search->unwind, 0);
    assert_int_equal(at->resolved_score, 7);
    struct tt_release release = {99, SHARE_DEPTH, b->local.slot};
    at->in_flight = false;
    port.release(port.self, &at->ticket, &release);
    assert_int_equal(embedded_inflight(a->table), 0);
    world_close(world);
}

/* ---- foreign claims ---- */

enum { FOREIGN_KEY = 1 << 21, FOREIGN = CLAIMS_FOREIGN_DEPTH };

/* Hosts that know of each other, and ask no shard. */
static struct world *world_of_large_hosts(void)
{
    struct world *world = world_open();
    world_open_large_hosts(world, SHARE_DEPTH);
    begin_all(world);
    search_all(world);
    for (unsigned i = 0; i < PEERS; i++) {
        remote_begin(world->peer[i].remote, 20, true, false);
    }
    for (unsigned i = 0; i < 2 * PEERS; i++) {
        serve(&world->peer[i % PEERS], 3);
    }
    return world;
}

static struct tt_answer enters(struct peer *peer, uint64_t key, uint8_t depth, bool alone,
                               struct table_ticket *ticket)
{
    struct table_port port = remote_table_port(peer->remote);
    struct tt_ask ask = {.key = key,
                         .alpha = -1,
                         .beta = 1,
                         .depth = depth,
                         .flags = TT_STRICT | (alone ? TT_EXCLUSIVE : 0),
                         .slot = peer->local.slot};
    struct tt_answer answer;
    *ticket = (struct table_ticket){0};
    tt_pose(&port, &ask, ticket, &answer);
    return answer;
}

static void leaves(struct peer *peer, uint64_t key, uint8_t depth,
                   const struct table_ticket *ticket)
{
    struct table_port port = remote_table_port(peer->remote);
    struct tt_release release = {key, depth, peer->local.slot};
    port.release(port.self, ticket, &release);
}

static struct tt_peeked sees(struct peer *peer, uint64_t key, uint8_t depth)
{
    struct table_port port = remote_table_port(peer->remote);
    struct tt_peek peek = {key, depth};
    struct tt_peeked seen;
    port.peek(port.self, &peek, 1, false, &seen);
    return seen;
}

/* What one has to say reaches the other: the shard sends it on when the next message comes. */
static void report(struct peer *from, struct peer *to)
{
    static uint64_t key = 1 << 22;
    for (unsigned i = 0; i < 2; i++) {
        finds(from, key++, SHARE_DEPTH);
        serve(from, 3);
    }
    poll_once(to);
}

static bool is_busy(struct peer *peer, uint64_t key, uint8_t depth)
{
    struct table_ticket ticket;
    struct tt_answer answer = enters(peer, key, depth, true, &ticket);
    if (answer.verdict == TT_OPEN) {
        leaves(peer, key, depth, &ticket);
    }
    return answer.verdict == TT_BUSY;
}

static void nodes_of_another_host_are_busy_until_it_leaves_them(void **state)
{
    (void)state;
    enum { DEEP = FOREIGN + 6 }; /* that does not expire meanwhile */
    struct world *world = world_of_large_hosts();
    struct peer *a = &world->peer[0], *c = &world->peer[2];
    for (unsigned round = 0; round < 2; round++) {
        struct table_ticket ticket, other;
        assert_false(is_busy(c, FOREIGN_KEY, DEEP));
        uint64_t asks = counters(a)->asks + counters(c)->asks;
        assert_int_equal(enters(a, FOREIGN_KEY, DEEP, true, &ticket).verdict, TT_OPEN);
        assert_true(ticket.claimed);
        report(a, c);
        assert_true(is_busy(c, FOREIGN_KEY, DEEP));
        assert_false(is_busy(c, FOREIGN_KEY, DEEP + 1));
        assert_false(is_busy(c, FOREIGN_KEY + 1, DEEP));
        assert_int_equal(sees(c, FOREIGN_KEY, DEEP).nproc, 1);
        assert_int_equal(sees(c, FOREIGN_KEY, DEEP).foreign, 1);
        struct tt_answer answer = enters(c, FOREIGN_KEY, DEEP, false, &other);
        assert_int_equal(answer.verdict, TT_OPEN);
        assert_int_equal(answer.nproc, 2);
        report(c, a);
        assert_int_equal(sees(a, FOREIGN_KEY, DEEP).foreign, 0); /* one claim is enough */
        leaves(c, FOREIGN_KEY, DEEP, &other);
        assert_int_equal(counters(a)->asks + counters(c)->asks, asks);
        if (round == 0) {
            leaves(a, FOREIGN_KEY, DEEP, &ticket);
        } else {
            struct table_port port = remote_table_port(a->remote);
            struct tt_store store = tt_result(FOREIGN_KEY, DEEP, TT_UPPER, 7, 0);
            port.store(port.self, &ticket, &store); /* says nothing in the window of c */
        }
        report(a, c);
        assert_false(is_busy(c, FOREIGN_KEY, DEEP));
        assert_int_equal(sees(c, FOREIGN_KEY, DEEP).nproc, 0);
    }
    world_close(world);
}

static void claims_expire(void **state)
{
    (void)state;
    struct world *world = world_of_large_hosts();
    struct peer *c = &world->peer[2];
    for (unsigned depth = FOREIGN; depth < FOREIGN + 9; depth++) {
        uint64_t ms = CLAIMS_FOREIGN_LEAST_MS;
        for (unsigned d = FOREIGN; d < depth; d++) {
            ms *= CLAIMS_FOREIGN_PLY;
        }
        ms = ms < CLAIMS_FOREIGN_MOST_MS ? ms : CLAIMS_FOREIGN_MOST_MS;
        struct tt_store claim = {.key = 9,
                                 .depth = (uint8_t)depth,
                                 .bound = TT_CLAIM,
                                 .move = embedded_host_name(world->peer[0].table)};
        embedded_take(&c->local, &claim, 1, c->local.now_us);
        assert_true(is_busy(c, 9, (uint8_t)depth));
        c->local.now_us += ms * 1000 - 2100; /* to a unit */
        assert_true(is_busy(c, 9, (uint8_t)depth));
        c->local.now_us += 2100 + 1024;
        assert_false(is_busy(c, 9, (uint8_t)depth));
    }
    struct tt_store shallow = {.key = 9,
                               .depth = FOREIGN - 1,
                               .bound = TT_CLAIM,
                               .move = embedded_host_name(world->peer[0].table)};
    embedded_take(&c->local, &shallow, 1, c->local.now_us);
    assert_false(is_busy(c, 9, FOREIGN - 1));
    struct tt_store own = {.key = 9,
                           .depth = FOREIGN,
                           .bound = TT_CLAIM,
                           .move = embedded_host_name(c->table)}; /* that came back */
    embedded_take(&c->local, &own, 1, c->local.now_us);
    assert_false(is_busy(c, 9, FOREIGN));
    world_close(world);
}

/* Both are in it before they hear of each other: one of them unwinds, and the other goes on. */
static void of_two_hosts_in_a_node_one_goes_on(void **state)
{
    (void)state;
    struct world *world = world_of_large_hosts();
    struct peer *side[2] = {&world->peer[0], &world->peer[2]};
    unsigned before[2] = {0};
    for (unsigned key = 1; key <= 64; key++) {
        bool unwinds[2];
        for (unsigned i = 0; i < 2; i++) {
            struct peer *own = side[i], *other = side[1 - i];
            struct node *at = &own->search->node[0];
            *at = (struct node){.in_flight = true, .exclusive = true, .alpha = -1, .beta = 1};
            at->ask = (struct tt_ask){.key = key, .depth = FOREIGN, .slot = own->local.slot};
            assert_int_equal(enters(own, key, FOREIGN, true, &at->ticket).verdict, TT_OPEN);
            own->search->unwind = SEARCH_PLY_MAX;
            struct tt_store claim = {.key = key,
                                     .depth = FOREIGN,
                                     .bound = TT_CLAIM,
                                     .move = embedded_host_name(other->table)};
            embedded_take(&own->local, &claim, 1, own->local.now_us);
            poll_once(own);
            unwinds[i] = own->search->unwind == 0;
            before[i] += !unwinds[i];
            at->in_flight = false;
            leaves(own, key, FOREIGN, &at->ticket);
        }
        assert_true(unwinds[0] != unwinds[1]);
    }
    assert_in_range(before[0], 10, 54);
    world_close(world);
}

static void claim_of(struct peer *peer, uint16_t host, uint64_t key, enum tt_claim what)
{
    struct tt_store claim = {
        .key = key, .depth = FOREIGN, .bound = TT_CLAIM, .score = (int16_t)what, .move = host};
    embedded_take(&peer->local, &claim, 1, peer->local.now_us);
}

/* In whatever order a third host hears of the two, who goes away ends its own claim alone. */
static void who_goes_on_keeps_the_claim(void **state)
{
    (void)state;
    struct world *world = world_of_large_hosts();
    struct peer *c = &world->peer[2];
    unsigned kept[2] = {0};
    for (uint64_t key = 1; key <= 64; key++) {
        for (uint16_t order = 0; order < 2; order++) {
            const uint64_t at = key << 20 | order;
            claim_of(c, 100 + order, at, TT_CLAIM_BEGINS);
            claim_of(c, 101 - order, at, TT_CLAIM_BEGINS);
            claim_of(c, 101, at, TT_CLAIM_ENDS);
            const bool is_kept = is_busy(c, at, FOREIGN);
            kept[order] += is_kept;
            claim_of(c, 100, at, TT_CLAIM_ENDS);
            assert_false(is_busy(c, at, FOREIGN));
        }
    }
    assert_in_range(kept[0], 10, 54); /* the other's was the one that counted, and has ended */
    assert_in_range(kept[1], 10, 54);
    world_close(world);
}

/* Two hosts come into a node at the same time and leave it without a result: a third one, and both
 * themselves, forget both claims. */
static void who_were_in_a_node_together_are_forgotten(void **state)
{
    (void)state;
    enum { DEEP = FOREIGN + 6 };
    struct world *world = world_of_large_hosts();
    struct peer *a = &world->peer[0], *c = &world->peer[2];
    for (uint64_t key = 100; key < 120; key++) {
        struct table_ticket ticket[2];
        enters(a, key, DEEP, true, &ticket[0]);
        enters(c, key, DEEP, true, &ticket[1]);
        report(a, c);
        report(c, a);
        leaves(key & 1 ? a : c, key, DEEP, &ticket[key & 1 ? 0 : 1]);
        report(a, c);
        report(c, a);
        leaves(key & 1 ? c : a, key, DEEP, &ticket[key & 1 ? 1 : 0]);
        report(a, c);
        report(c, a);
        assert_false(is_busy(a, key, DEEP));
        assert_false(is_busy(c, key, DEEP));
    }
    world_close(world);
}

static void the_last_of_a_host_ends_its_claim(void **state)
{
    (void)state;
    enum { DEEP = FOREIGN + 6 };
    struct world *world = world_of_large_hosts();
    struct peer *a = &world->peer[0], *c = &world->peer[2];
    struct table_ticket first, second;
    const uint16_t own = a->local.slot;
    enters(a, FOREIGN_KEY, DEEP, false, &first);
    a->local.slot = (uint16_t)(own + 1); /* as another thread of it */
    assert_int_equal(enters(a, FOREIGN_KEY, DEEP, false, &second).nproc, 2);
    a->local.slot = own;
    report(a, c);
    leaves(a, FOREIGN_KEY, DEEP, &first);
    report(a, c);
    assert_true(is_busy(c, FOREIGN_KEY, DEEP));
    a->local.slot = (uint16_t)(own + 1);
    leaves(a, FOREIGN_KEY, DEEP, &second);
    a->local.slot = own;
    report(a, c);
    assert_false(is_busy(c, FOREIGN_KEY, DEEP));
    world_close(world);
}

/* A search that is stopped leaves no claims behind. */
static void the_end_of_a_search_is_sent(void **state)
{
    (void)state;
    enum { DEEP = FOREIGN + 6 };
    struct world *world = world_of_large_hosts();
    struct peer *a = &world->peer[0], *c = &world->peer[2];
    struct table_ticket ticket;
    enters(a, FOREIGN_KEY, DEEP, true, &ticket);
    report(a, c);
    assert_true(is_busy(c, FOREIGN_KEY, DEEP));
    leaves(a, FOREIGN_KEY, DEEP, &ticket);
    remote_flush(a->remote);
    report(c, a); /* the shard sends on what waits */
    poll_once(c);
    assert_false(is_busy(c, FOREIGN_KEY, DEEP));
    world_close(world);
}

static void a_claim_said_again_lasts_longer(void **state)
{
    (void)state;
    struct world *world = world_of_large_hosts();
    struct peer *c = &world->peer[2];
    for (unsigned i = 0; i < 5; i++) {
        claim_of(c, 100, 5, TT_CLAIM_BEGINS);
        c->local.now_us += CLAIMS_FOREIGN_LEAST_MS * 1000 * 2 / 3;
        assert_true(is_busy(c, 5, FOREIGN));
    }
    world_close(world);
}

static bool sees_foreign(struct peer *peer)
{
    struct table_port port = remote_table_port(peer->remote);
    bool sees = false;
    (void)port.inflight_depth(port.self, 20, &sees);
    return sees;
}

/* A host with peers that claim nothing, any more or yet, meets them at the shards. */
static void shards_are_asked_where_nobody_claims(void **state)
{
    (void)state;
    struct world *world = world_of_large_hosts();
    struct peer *c = &world->peer[2];
    embedded_saw_other_table(c->table, UINT64_MAX);
    for (unsigned i = 0; i < 2; i++) {
        serve(c, 3);
        assert_true(sees_foreign(c)); /* at the begin of a search, too */
        world->bed->now_us += EMBEDDED_FOREIGN_RECENT_MS * 1000;
        serve(c, 3);
        assert_false(sees_foreign(c));
        claim_of(c, 100, 5, TT_CLAIM_BEGINS);
    }
    serve(c, 3);
    assert_true(sees_foreign(c));
    world->bed->now_us += EMBEDDED_FOREIGN_RECENT_MS * 1000;
    serve(c, 3);
    assert_false(sees_foreign(c));
    world_close(world);
}

static void some_hosts_claim_nothing(void **state)
{
    (void)state;
    struct world *world = world_of_hosts();
    struct peer *a = &world->peer[0], *c = &world->peer[2];
    struct table_ticket ticket;
    assert_true(a->local.counts_foreign);
    assert_false(c->local.counts_foreign); /* of one thread */
    enters(c, FOREIGN_KEY, FOREIGN, true, &ticket);
    assert_false(ticket.claimed);
    leaves(c, FOREIGN_KEY, FOREIGN, &ticket);
    struct tt_store claim = {.key = FOREIGN_KEY, .depth = FOREIGN, .bound = TT_CLAIM};
    embedded_take(&c->local, &claim, 1, c->local.now_us);
    assert_int_equal(sees(c, FOREIGN_KEY, FOREIGN).nproc, 0);
    a->local.is_full = true;
    remote_begin(a->remote, 20, true, false);
    assert_false(a->local.counts_foreign);
    a->local.is_full = false;
    a->local.results_only = true;
    remote_begin(a->remote, 20, true, false);
    assert_false(a->local.counts_foreign);
    a->local.results_only = false;
    remote_begin(a->remote, 20, true, true);
    assert_false(a->local.counts_foreign);
    remote_begin(a->remote, 20, true, false);
    assert_true(a->local.counts_foreign);
    world_close(world);
}

/* Before the answer to an ask is read, a peer with the same table finishes the node. */
static void a_node_finished_while_its_ask_travels_is_left(void **state)
{
    (void)state;
    struct world *world = world_open();
    peer_open(world, 0, SHARE_DEPTH, 0);
    struct peer *a = &world->peer[0];
    struct table_port port = remote_table_port(a->remote);
    for (unsigned i = 0; i < 20; i++) {
        bool waits = i & 1, finished = i & 2;
        struct table_ticket ticket = {0};
        struct tt_answer answer;
        struct tt_ask ask = {.key = 1000 + i, .alpha = -1, .beta = 1, .depth = 5};
        struct tt_store store = tt_result(ask.key, ask.depth, TT_EXACT, 7, 1);
        remote_begin(a->remote, 2, true, waits);
        const bool is_here = port.ask(port.self, &ask, &ticket, &answer);
        assert_int_equal(is_here, !waits);
        assert_int_equal(figures(world).inflight_entries, 1);
        if (finished) {
            embedded_put(&a->local, &store);
        }
        if (!is_here) {
            port.await(port.self, &ask, &ticket, &answer);
        }
        assert_int_equal(answer.verdict, TT_OPEN); /* the shard does not know of it */
        port.store(port.self, &ticket, &store);
        serve(a, 2);
        assert_int_equal(figures(world).inflight_entries, 0);
    }
    world_close(world);
}

/* Asks so often, each time about another node, then lets the time between two checks go by. */
static unsigned remote_depth_after(struct peer *peer, unsigned asks, unsigned iteration)
{
    static uint64_t key = 1000;
    struct table_port port = remote_table_port(peer->remote);
    for (unsigned i = 0; i < asks; i++) {
        struct tt_ask ask = {.key = key++, .alpha = -1, .beta = 1, .depth = REMOTE_DEPTH_MAX};
        struct tt_release release = {.key = ask.key, .depth = ask.depth};
        struct table_ticket ticket = {0};
        port.ask(port.self, &ask, &ticket, &(struct tt_answer){0});
        port.release(port.self, &ticket, &release);
    }
    peer->world->bed->now_us += REMOTE_DEPTH_EVERY_US;
    return port.inflight_depth(port.self, iteration, &(bool){false});
}

/* The same asks are too many without peers, and not too many with peers that have other tables. */
static void the_remote_depth_limit_follows_what_asks_cost(void **state)
{
    (void)state;
    enum {
        ROOT = 20,
        ASKS = REMOTE_DEPTH_ALONE_PERMILLE * REMOTE_DEPTH_EVERY_US / 1000 / LANE_ASK_US + 1
    };
    struct world *world = world_open();
    peer_open(world, 0, SHARE_DEPTH, 0);
    struct peer *a = &world->peer[0];
    remote_begin(a->remote, PROTO_REMOTE_DEPTH_AUTO, true, false);
    assert_int_equal(remote_depth_after(a, 0, 1), REMOTE_DEPTH_FIRST);
    assert_int_equal(remote_depth_after(a, ASKS, REMOTE_DEPTH_FIRST), REMOTE_DEPTH_FIRST);
    assert_int_equal(remote_depth_after(a, ASKS, ROOT), REMOTE_DEPTH_FIRST + 1);
    assert_int_equal(remote_depth_now(a->remote), REMOTE_DEPTH_FIRST + 1);
    embedded_saw_other_table(a->table, UINT64_MAX);
    assert_int_equal(remote_depth_after(a, ASKS, ROOT), REMOTE_DEPTH_FIRST + 1);
    assert_int_equal(remote_depth_after(a, 0, ROOT), REMOTE_DEPTH_FIRST);
    embedded_saw_other_table(a->table, 0);
    for (unsigned i = 1; i < REMOTE_DEPTH_QUIET_CHECKS; i++) {
        assert_int_equal(remote_depth_after(a, 0, ROOT), REMOTE_DEPTH_FIRST);
    }
    assert_int_equal(remote_depth_after(a, 0, ROOT), REMOTE_DEPTH_FIRST - 1);
    remote_begin(a->remote, 9, true, false);
    assert_int_equal(remote_depth_after(a, ASKS, ROOT), 9);
    world_close(world);
}

/* They would outlive true ones of the same depth. Peer 1's game has no score of 7. */
static void scores_beyond_the_game_are_not_kept(void **state)
{
    (void)state;
    struct world *world = world_open();
    assert_true(open_peers(world, false));
    world->peer[1].local.score_max = 6;
    begin_all(world);
    search_all(world);
    struct exchange e = search_all(world);
    assert_int_equal(e.known[0][1], 0);
    assert_in_range(e.known[0][2], TURNS - 5, TURNS);
    world->peer[1].local.score_max = 7;
    assert_in_range(search_all(world).known[0][1], TURNS - 5, TURNS);
    world_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(peers_with_other_tables_get_the_results),
        cmocka_unit_test(scores_beyond_the_game_are_not_kept),
        cmocka_unit_test(nothing_is_broadcast_without_peers),
        cmocka_unit_test(shallow_results_are_not_broadcast),
        cmocka_unit_test(peers_with_one_table_broadcast_next_to_nothing),
        cmocka_unit_test(what_threads_of_a_host_find_leaves_as_one_message),
        cmocka_unit_test(one_thread_takes_for_all_of_the_host),
        cmocka_unit_test(what_is_published_ends_the_visits_of_all_threads),
        cmocka_unit_test(nodes_of_another_host_are_busy_until_it_leaves_them),
        cmocka_unit_test(claims_expire),
        cmocka_unit_test(of_two_hosts_in_a_node_one_goes_on),
        cmocka_unit_test(who_goes_on_keeps_the_claim),
        cmocka_unit_test(who_were_in_a_node_together_are_forgotten),
        cmocka_unit_test(the_last_of_a_host_ends_its_claim),
        cmocka_unit_test(the_end_of_a_search_is_sent),
        cmocka_unit_test(a_claim_said_again_lasts_longer),
        cmocka_unit_test(shards_are_asked_where_nobody_claims),
        cmocka_unit_test(some_hosts_claim_nothing),
        cmocka_unit_test(a_node_finished_while_its_ask_travels_is_left),
        cmocka_unit_test(the_remote_depth_limit_follows_what_asks_cost),
        cmocka_unit_test(a_peer_with_another_table_gets_the_results_of_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
