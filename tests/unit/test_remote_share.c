/* Results that searchers tell each other: those who use one table need not, others must. */
#include "tests/unit/test_remote.h"
#include "tests/unit/test_tt.h"

#include "common/clock.h"
#include "worker/table/remote_depth.h"

enum { SHARE_DEPTH = 2 };

/* Seats a and b use one table, c has its own; or each its own. False: the host gives no memory. */
static bool seats(struct world *world, bool one_table)
{
    uint64_t group = one_table ? clock_unique() | 1 : 0;
    for (unsigned i = 0; i < SEATS; i++) {
        seat_open(world, i, SHARE_DEPTH, i < 2 ? group : 0);
    }
    return !one_table || embedded_is_on_host(world->worker_index[0].table);
}

/* A result of the search that runs there, below its remote_depth. */
static void finds(struct worker_index *worker_index, uint64_t key, uint8_t depth)
{
    struct table_port port = remote_table_port(worker_index->remote);
    struct table_ticket ticket = {0};
    struct tt_store store = tt_result(key, depth, TT_EXACT, 7, 1);
    port.store(port.self, &ticket, &store);
}

static bool knows(const struct worker_index *worker_index, uint64_t key, uint8_t depth)
{
    struct tt_ask ask = {.key = key, .alpha = -1, .beta = 1, .depth = depth};
    struct tt_answer answer;
    return embedded_find(worker_index->table, &ask, &answer) && answer.score == 7;
}

/* All search for a while, and find something each millisecond: how many of what worker_index i
 * found worker_index k was told of, soon enough. */
struct exchange {
    unsigned told[SEATS][SEATS];
};

enum { TURNS = 40 };

static struct exchange search_all(struct world *world)
{
    static uint64_t key = 1;
    struct exchange exchange = {0};
    uint64_t found[SEATS];
    for (unsigned turn = 0; turn < TURNS; turn++) {
        for (unsigned s = 0; s < SEATS; s++) {
            found[s] = key += UINT64_C(0x9e3779b97f4a7c15);
            finds(&world->worker_index[s], found[s], SHARE_DEPTH);
        }
        for (unsigned n = 0; n < 2 * SEATS; n++) {
            serve(&world->worker_index[n % SEATS], 1);
        }
        for (unsigned s = 0; s < SEATS; s++) {
            for (unsigned to = 0; to < SEATS; to++) {
                exchange.told[s][to] += knows(&world->worker_index[to], found[s], SHARE_DEPTH);
            }
        }
    }
    return exchange;
}

/* Others may begin, too, when a search begins: that is company enough to try. */
static void begin_all(struct world *world)
{
    for (unsigned i = 0; i < SEATS; i++) {
        seat_begin(&world->worker_index[i]);
        poll_once(&world->worker_index[i]);
    }
}

static void who_has_another_table_is_told(void **state)
{
    (void)state;
    struct world *world = world_open();
    assert_true(seats(world, false));
    begin_all(world);
    search_all(world); /* each hears of the others */
    struct exchange e = search_all(world);
    for (unsigned s = 0; s < SEATS; s++) {
        for (unsigned to = 0; to < SEATS; to++) {
            assert_in_range(e.told[s][to], TURNS - 5, TURNS);
        }
    }
    world_close(world);
}

static void nobody_is_told_when_nobody_is_there(void **state)
{
    (void)state;
    struct world *world = world_open();
    seat_open(world, 0, SHARE_DEPTH, 0);
    struct worker_index *a = &world->worker_index[0];
    for (unsigned i = 0; i < 100; i++) {
        finds(a, i, SHARE_DEPTH);
        serve(a, 1);
    }
    assert_int_equal(figures(world).shared, 0);
    world_close(world);
}

static void what_is_too_shallow_is_kept(void **state)
{
    (void)state;
    struct world *world = world_open();
    assert_true(seats(world, false));
    begin_all(world);
    finds(&world->worker_index[0], 99, SHARE_DEPTH - 1);
    finds(&world->worker_index[0], 98, SHARE_DEPTH);
    serve(&world->worker_index[0], 5);
    serve(&world->worker_index[1], 5);
    assert_true(knows(&world->worker_index[0], 99, SHARE_DEPTH - 1));
    assert_false(knows(&world->worker_index[1], 99, SHARE_DEPTH - 1));
    assert_true(knows(&world->worker_index[1], 98, SHARE_DEPTH));
    world_close(world);
}

static void who_uses_one_table_tells_next_to_nothing(void **state)
{
    (void)state;
    struct world *world = world_open();
    if (!seats(world, true)) {
        world_close(world);
        skip();
    }
    struct worker_index *a = &world->worker_index[0], *b = &world->worker_index[1];
    remote_close(&world->worker_index[2].remote); /* the stranger is not there */
    for (unsigned round = 0; round < 10; round++) {
        seat_begin(a);
        seat_begin(b);
        for (unsigned i = 0; i < 100; i++) { /* 100 ms, company for the first 10 */
            finds(a, round * 1000 + i, SHARE_DEPTH);
            assert_true(knows(b, round * 1000 + i, SHARE_DEPTH));
            serve(a, 1);
            poll_once(b);
        }
    }
    assert_in_range(figures(world).shared, 1, 10 * 3); /* a look or two each time */
    assert_int_equal(embedded_other_table_until_us(a->table), 0);
    world_close(world);
}

static void a_stranger_to_a_table_is_told_by_all_who_use_it(void **state)
{
    (void)state;
    struct world *world = world_open();
    if (!seats(world, true)) {
        world_close(world);
        skip();
    }
    begin_all(world);
    search_all(world); /* it is found out, both ways */
    struct exchange e = search_all(world);
    assert_int_equal(e.told[0][1], TURNS);
    assert_int_equal(e.told[1][0], TURNS);
    for (unsigned s = 0; s < 2; s++) {
        assert_in_range(e.told[s][2], TURNS - 5, TURNS);
        assert_in_range(e.told[2][s], TURNS - 5, TURNS);
    }
    assert_true(embedded_other_table_until_us(world->worker_index[1].table) > 0);
    world_close(world);
}

/* Between an ask and the look at its answer somebody who uses the same table finishes the node: it
 * is not entered, and the shard must not go on counting us inside. */
static void what_is_finished_while_its_ask_travels_is_let_go(void **state)
{
    (void)state;
    struct world *world = world_open();
    seat_open(world, 0, SHARE_DEPTH, 0);
    struct worker_index *a = &world->worker_index[0];
    struct table_port port = remote_table_port(a->remote);
    for (unsigned i = 0; i < 20; i++) {
        bool waits = i & 1, finished = i & 2;
        struct table_ticket ticket = {0};
        struct tt_answer answer;
        struct tt_ask ask = {.key = 1000 + i, .alpha = -1, .beta = 1, .depth = 5};
        struct tt_store store = tt_result(ask.key, ask.depth, TT_EXACT, 7, 1);
        remote_begin(a->remote, 2, true, waits);
        port.ask(port.self, &ask, &ticket);
        assert_int_equal(figures(world).inflight_entries, 1);
        if (finished) {
            embedded_put(a->table, &store);
        }
        port.await(port.self, &ask, &ticket, &answer);
        /* Who waits is told by the shard, which does not know of it. */
        assert_int_equal(answer.verdict, finished && !waits ? TT_CUT : TT_OPEN);
        if (answer.verdict == TT_OPEN) {
            port.store(port.self, &ticket, &store);
        }
        serve(a, 2);
        assert_int_equal(figures(world).inflight_entries, 0);
    }
    world_close(world);
}

/* Asks so often, each time about another node, then lets the time of a look go by. */
static unsigned remote_depth_after(struct worker_index *worker_index, unsigned asks,
                                   unsigned iteration)
{
    static uint64_t key = 1000;
    struct table_port port = remote_table_port(worker_index->remote);
    for (unsigned i = 0; i < asks; i++) {
        struct tt_ask ask = {.key = key++, .alpha = -1, .beta = 1, .depth = REMOTE_DEPTH_MAX};
        struct tt_release release = {.key = ask.key, .depth = ask.depth};
        struct table_ticket ticket = {0};
        port.ask(port.self, &ask, &ticket);
        port.release(port.self, &ticket, &release);
    }
    worker_index->world->bed->now_us += REMOTE_DEPTH_EVERY_US;
    return port.inflight_depth(port.self, iteration);
}

/* The same asks are too many for who is alone, and not where others with other tables are. */
static void the_horizon_follows_what_asks_cost(void **state)
{
    (void)state;
    enum {
        ROOT = 20,
        ASKS = REMOTE_DEPTH_ALONE_PERMILLE * REMOTE_DEPTH_EVERY_US / 1000 / REMOTE_DEPTH_ASK_US + 1
    };
    struct world *world = world_open();
    seat_open(world, 0, SHARE_DEPTH, 0);
    struct worker_index *a = &world->worker_index[0];
    remote_begin(a->remote, PROTO_REMOTE_DEPTH_AUTO, true, false);
    assert_int_equal(remote_depth_after(a, 0, 1), REMOTE_DEPTH_FIRST);
    assert_int_equal(remote_depth_after(a, ASKS, REMOTE_DEPTH_FIRST), REMOTE_DEPTH_FIRST);
    assert_int_equal(remote_depth_after(a, ASKS, ROOT), REMOTE_DEPTH_FIRST + 1);
    assert_int_equal(remote_depth_now(a->remote), REMOTE_DEPTH_FIRST + 1);
    embedded_saw_other_table(a->table, UINT64_MAX);
    assert_int_equal(remote_depth_after(a, ASKS, ROOT), REMOTE_DEPTH_FIRST + 1);
    assert_int_equal(remote_depth_after(a, 0, ROOT), REMOTE_DEPTH_FIRST);
    embedded_saw_other_table(a->table, 0);
    for (unsigned i = 1; i < REMOTE_DEPTH_QUIET_LOOKS; i++) {
        assert_int_equal(remote_depth_after(a, 0, ROOT), REMOTE_DEPTH_FIRST);
    }
    assert_int_equal(remote_depth_after(a, 0, ROOT), REMOTE_DEPTH_FIRST - 1);
    remote_begin(a->remote, 9, true, false);
    assert_int_equal(remote_depth_after(a, ASKS, ROOT), 9);
    world_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_has_another_table_is_told),
        cmocka_unit_test(nobody_is_told_when_nobody_is_there),
        cmocka_unit_test(what_is_too_shallow_is_kept),
        cmocka_unit_test(who_uses_one_table_tells_next_to_nothing),
        cmocka_unit_test(what_is_finished_while_its_ask_travels_is_let_go),
        cmocka_unit_test(the_horizon_follows_what_asks_cost),
        cmocka_unit_test(a_stranger_to_a_table_is_told_by_all_who_use_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
