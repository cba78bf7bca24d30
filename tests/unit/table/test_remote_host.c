/* Threads of one host over a shard: they sort themselves out in their table, and to others they are
 * one searcher, who asks once and whose results all of them get. */
#include "tests/support/test_remote.h"
#include "tests/support/test_tt.h"

enum { DEPTH = 5, HELPS = TT_STRICT, ALONE = TT_STRICT | TT_EXCLUSIVE };

static struct world *world_of_hosts(void)
{
    struct world *world = world_open();
    world_open_hosts(world, 0);
    return world;
}

static struct tt_ask ask_of(const struct peer *peer, uint64_t key, uint8_t flags)
{
    return (struct tt_ask){.key = key,
                           .alpha = -1,
                           .beta = 1,
                           .depth = DEPTH,
                           .flags = flags,
                           .slot = peer->local.slot};
}

/* Asks for that node, and if it is open is in it: at ply 0. */
static struct tt_answer enters(struct peer *peer, uint64_t key, uint8_t flags)
{
    struct table_port port = remote_table_port(peer->remote);
    struct tt_answer answer;
    struct node *at = &peer->search->node[0];
    *at = (struct node){.alpha = -1, .beta = 1, .ask = ask_of(peer, key, flags)};
    tt_pose(&port, &at->ask, &at->ticket, &answer);
    at->in_flight = answer.verdict == TT_OPEN;
    peer->search->unwind = SEARCH_PLY_MAX;
    return answer;
}

static void expect_open(struct peer *peer, uint64_t key, uint8_t flags, unsigned nproc)
{
    struct tt_answer answer = enters(peer, key, flags);
    assert_int_equal(answer.verdict, TT_OPEN);
    assert_int_equal(answer.nproc, nproc);
}

static void leaves(struct peer *peer)
{
    struct table_port port = remote_table_port(peer->remote);
    struct node *at = &peer->search->node[0];
    struct tt_release release = {at->ask.key, at->ask.depth, at->ask.slot};
    at->in_flight = false;
    port.release(port.self, &at->ticket, &release);
}

static void finishes(struct peer *peer, int score)
{
    struct table_port port = remote_table_port(peer->remote);
    struct node *at = &peer->search->node[0];
    struct tt_store store = tt_result(at->ask.key, DEPTH, TT_EXACT, score, 99);
    store.slot = at->ask.slot;
    at->in_flight = false;
    port.store(port.self, &at->ticket, &store);
}

static void serve_all(struct world *world)
{
    for (unsigned i = 0; i < 3 * PEERS; i++) {
        serve(&world->peer[i % PEERS], 1);
    }
}

/* By the answer, or by a completion notice. */
static void expect_resolved(const struct peer *peer, int score)
{
    enum resolved how = peer->search->node[0].resolved;
    assert_int_equal(peer->search->unwind, 0);
    assert_true(how == RESOLVED_CUT || how == RESOLVED_DONE);
    assert_int_equal(peer->search->node[0].resolved_score, score);
}

static void expect_nobody_in_flight(struct world *world)
{
    serve_all(world);
    assert_int_equal(embedded_inflight(world->peer[0].table), 0);
    assert_int_equal(figures(world).inflight_entries, 0);
}

static void set_waits(struct world *world, bool waits)
{
    for (unsigned i = 0; i < PEERS; i++) {
        remote_begin(world->peer[i].remote, 2, true, waits);
    }
}

/* ---- one searcher to others ---- */

static void a_second_thread_is_refused_without_a_message(void **state)
{
    (void)state;
    for (unsigned waits = 0; waits < 2; waits++) {
        struct world *world = world_of_hosts();
        struct peer *a = &world->peer[0], *b = &world->peer[1];
        set_waits(world, waits);
        expect_open(a, 1234, ALONE, 1);
        assert_int_equal(counters(a)->asks, 1);
        uint64_t sent = counters(b)->bytes_sent;
        struct tt_answer answer = enters(b, 1234, ALONE);
        assert_int_equal(answer.verdict, TT_BUSY);
        assert_int_equal(counters(b)->bytes_sent, sent);
        assert_int_equal(embedded_inflight(a->table), 1);
        leaves(a);
        expect_nobody_in_flight(world);
        world_close(world);
    }
}

static void a_host_asks_once_for_all_its_threads(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 20; i++) {
        struct world *world = world_of_hosts();
        struct peer *first = &world->peer[i & 1], *second = &world->peer[!(i & 1)];
        struct peer *c = &world->peer[2];
        set_waits(world, i & 2);
        expect_open(first, 100 + i, HELPS, 1);
        serve(first, 1);
        expect_open(second, 100 + i, HELPS, 2);
        assert_int_equal(counters(first)->asks + counters(second)->asks, 1);
        assert_int_equal(figures(world).inflight_entries, 1);
        assert_int_equal(embedded_inflight(world->peer[0].table), 2);
        remote_begin(c->remote, 2, true, true);
        assert_int_equal(enters(c, 100 + i, ALONE).verdict, TT_BUSY);
        leaves(first);
        leaves(second);
        expect_nobody_in_flight(world);
        world_close(world);
    }
}

static void what_is_known_on_the_host_is_not_asked_for(void **state)
{
    (void)state;
    struct world *world = world_of_hosts();
    struct peer *a = &world->peer[0], *b = &world->peer[1];
    for (unsigned i = 0; i < 10; i++) {
        set_waits(world, i & 1);
        expect_open(a, 500 + i, ALONE, 1);
        finishes(a, 7);
        uint64_t asks = counters(b)->asks;
        struct tt_answer answer = enters(b, 500 + i, ALONE);
        assert_int_equal(answer.verdict, TT_CUT);
        assert_int_equal(answer.score, 7);
        assert_int_equal(counters(b)->asks, asks);
        expect_nobody_in_flight(world);
    }
    world_close(world);
}

static void peeks_near_count_the_threads_of_this_host(void **state)
{
    (void)state;
    struct world *world = world_of_hosts();
    struct peer *a = &world->peer[0], *b = &world->peer[1], *c = &world->peer[2];
    struct table_port port = remote_table_port(b->remote);
    struct tt_peek peek = {1234, DEPTH};
    struct tt_peeked seen;
    set_waits(world, true);
    expect_open(c, 1234, HELPS, 1);
    port.peek(port.self, &peek, 1, true, &seen);
    assert_int_equal(seen.nproc, 0);
    expect_open(a, 1234, HELPS, 2); /* by the shard's count */
    uint64_t peeks = counters(b)->peeks;
    port.peek(port.self, &peek, 1, true, &seen);
    assert_int_equal(seen.nproc, 1);
    finishes(a, 7);
    port.peek(port.self, &peek, 1, true, &seen);
    assert_int_equal(seen.nproc, 0);
    assert_int_equal(seen.depth, DEPTH);
    assert_int_equal(seen.lower, 7);
    assert_int_equal(counters(b)->peeks, peeks);
    leaves(c);
    expect_nobody_in_flight(world);
    world_close(world);
}

/* ---- all threads of the host get it ---- */

static void a_completion_notice_is_for_all_threads_of_the_host(void **state)
{
    (void)state;
    for (unsigned waits = 0; waits < 2; waits++) {
        struct world *world = world_of_hosts();
        struct peer *a = &world->peer[0], *b = &world->peer[1], *c = &world->peer[2];
        set_waits(world, waits);
        expect_open(a, 1234, HELPS, 1);
        expect_open(b, 1234, HELPS, 2);
        serve_all(world);
        expect_open(c, 1234, HELPS, waits ? 2 : 0); /* it is alone on its host */
        finishes(c, 7);
        serve(c, 5); /* the store leaves */
        serve(a, 1); /* the notice is for the one who asked */
        poll_once(b);
        expect_resolved(a, 7);
        expect_resolved(b, 7);
        leaves(a);
        leaves(b);
        expect_nobody_in_flight(world);
        world_close(world);
    }
}

/* The shard knew the node; the first thread did not wait for it to say so. */
static void a_late_cut_is_for_all_threads_of_the_host(void **state)
{
    (void)state;
    struct world *world = world_of_hosts();
    struct peer *a = &world->peer[0], *b = &world->peer[1], *c = &world->peer[2];
    set_waits(world, false);
    expect_open(c, 1234, ALONE, 0);
    finishes(c, 7);
    serve(c, 5);
    expect_open(a, 1234, ALONE, 1);
    assert_true(a->search->node[0].ticket.later);
    expect_open(b, 1234, HELPS, 2);
    poll_once(a);
    poll_once(b);
    expect_resolved(a, 7);
    expect_resolved(b, 7);
    leaves(a);
    leaves(b);
    expect_nobody_in_flight(world);
    world_close(world);
}

static void what_a_helper_finds_reaches_the_shard_and_its_host(void **state)
{
    (void)state;
    for (unsigned waits = 0; waits < 2; waits++) {
        struct world *world = world_of_hosts();
        struct peer *a = &world->peer[0], *b = &world->peer[1], *c = &world->peer[2];
        set_waits(world, waits);
        expect_open(a, 1234, ALONE, 1);
        expect_open(b, 1234, HELPS, 2);
        finishes(b, 7);
        poll_once(a);
        expect_resolved(a, 7);
        leaves(a);
        serve(b, 5);
        remote_begin(c->remote, 2, true, true);
        struct tt_answer answer = enters(c, 1234, ALONE);
        assert_int_equal(answer.verdict, TT_CUT);
        assert_int_equal(answer.score, 7);
        expect_nobody_in_flight(world);
        world_close(world);
    }
}

/* ---- who is not let in, or leaves, is in neither table ---- */

static void who_is_refused_by_the_shard_leaves_the_host_table(void **state)
{
    (void)state;
    struct world *world = world_of_hosts();
    struct peer *a = &world->peer[0], *c = &world->peer[2];
    set_waits(world, true);
    expect_open(c, 1234, ALONE, 1);
    assert_int_equal(enters(a, 1234, ALONE).verdict, TT_BUSY);
    assert_int_equal(embedded_inflight(a->table), 0);
    finishes(c, 7);
    serve(c, 5);
    assert_int_equal(enters(a, 1234, ALONE).verdict, TT_CUT);
    expect_nobody_in_flight(world);
    assert_int_equal(enters(&world->peer[1], 1234, ALONE).verdict, TT_CUT); /* kept for all */
    assert_int_equal(counters(&world->peer[1])->asks, 0);
    world_close(world);
}

static void an_ask_that_gets_no_answer_is_of_the_host_alone(void **state)
{
    (void)state;
    struct world *world = world_of_hosts();
    struct peer *a = &world->peer[0], *b = &world->peer[1];
    set_waits(world, true);
    a->is_cut_off = true;
    expect_open(a, 1234, ALONE, 1);
    assert_int_equal(figures(world).inflight_entries, 0);
    assert_int_equal(enters(b, 1234, ALONE).verdict, TT_BUSY);
    leaves(a);
    assert_int_equal(embedded_inflight(a->table), 0);
    a->is_cut_off = false;
    expect_open(b, 1234, ALONE, 1);
    assert_int_equal(figures(world).inflight_entries, 1);
    finishes(b, 7);
    expect_nobody_in_flight(world);
    world_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_second_thread_is_refused_without_a_message),
        cmocka_unit_test(a_host_asks_once_for_all_its_threads),
        cmocka_unit_test(what_is_known_on_the_host_is_not_asked_for),
        cmocka_unit_test(peeks_near_count_the_threads_of_this_host),
        cmocka_unit_test(a_completion_notice_is_for_all_threads_of_the_host),
        cmocka_unit_test(a_late_cut_is_for_all_threads_of_the_host),
        cmocka_unit_test(what_a_helper_finds_reaches_the_shard_and_its_host),
        cmocka_unit_test(who_is_refused_by_the_shard_leaves_the_host_table),
        cmocka_unit_test(an_ask_that_gets_no_answer_is_of_the_host_alone),
    };
    return cmocka_run_group_tests_name("remote host", tests, NULL, NULL);
}
