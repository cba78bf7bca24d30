/* The history table that the searchers of a root share: two remotes before one shard's core. The
 * tests write into it what a search would add. */
#include "tests/support/test_remote.h"

static int setup(void **state)
{
    struct world *world = world_open();
    for (unsigned i = 0; i < 2; i++) {
        peer_open(world, i, 0, 0);
    }
    *state = world;
    return 0;
}

static int teardown(void **state)
{
    world_close(*state);
    return 0;
}

static void adds(struct peer *peer, unsigned index, uint32_t weight)
{
    peer->search->fresh[index] += weight;
    peer->search->history[index] += (int32_t)weight;
}

static int32_t knows(const struct peer *peer, unsigned index)
{
    return peer->search->history[index];
}

static void an_update_reaches_the_other_searcher(void **state)
{
    struct world *world = *state;
    struct peer *a = &world->peer[0], *b = &world->peer[1];
    adds(a, 3, 5);
    adds(a, 8191, 7);
    serve(a, 20);
    assert_int_equal(figures(world).history_published, 2);
    adds(b, 3, 2);
    serve(b, 40);
    assert_int_equal(knows(b, 3), 7);
    assert_int_equal(knows(b, 8191), 7);
    serve(a, 40);
    assert_int_equal(knows(a, 3), 7);
    assert_int_equal(figures(world).history_published, 3); /* nothing twice */
    assert_int_equal(figures(world).history_refused, 0);
}

static void what_is_not_published_yet_counts_on_top(void **state)
{
    struct world *world = *state;
    struct peer *a = &world->peer[0], *b = &world->peer[1];
    adds(a, 3, 5);
    serve(a, 20);
    serve(b, 2); /* asked; the answer lies there */
    remote_wait(b->remote, 0);
    adds(b, 3, 4);
    poll_once(b);
    assert_int_equal(knows(b, 3), 9);
}

static void halving_reaches_every_searcher_once(void **state)
{
    struct world *world = *state;
    struct peer *a = &world->peer[0], *b = &world->peer[1];
    adds(a, 3, 100);
    serve(a, 20);
    serve(b, 40);
    assert_int_equal(knows(b, 3), 100);
    adds(a, 9, TT_HISTORY_LIMIT - 1);
    serve(a, 40);
    adds(b, 9, 1);
    serve(b, 40); /* now the sum is at the limit */
    serve(a, 40);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(knows(&world->peer[i], 3), 50);
        assert_int_equal(knows(&world->peer[i], 9), TT_HISTORY_LIMIT / 2);
    }
}

static void a_new_search_of_the_root_gets_all_sums_again(void **state)
{
    struct world *world = *state;
    struct peer *a = &world->peer[0];
    adds(a, 3, 800);
    adds(a, 9, TT_HISTORY_LIMIT); /* halved once, there */
    serve(a, 40);
    int32_t before = knows(a, 3);
    assert_int_equal(before, 400);
    for (unsigned i = 0; i < 4; i++) { /* soon too early for the shard, which then refuses */
        peer_begin(a); /* ages its own */
        serve(a, 3);
    }
    assert_true(knows(a, 3) < before);
    serve(a, 400);
    assert_int_equal(knows(a, 3), before);
    assert_true(figures(world).history_refused > 0);
}

static void a_root_key_begun_anew_takes_nothing_away(void **state)
{
    struct world *world = *state;
    struct peer *a = &world->peer[0];
    adds(a, 3, 800);
    adds(a, 9, TT_HISTORY_LIMIT);
    serve(a, 40);
    bed_hello(world->bed, "other", PROTO_CLIENT);
    for (uint64_t root_key = 1; root_key <= HISTORIES; root_key++) {
        struct proto_message m = {.type = PROTO_HISTORY,
                                  .history = {.request = 1, .root_key = root_key}};
        world->bed->now_us += TTCORE_HISTORY_KEEP_US;
        bed_say(world->bed, "other", m);
    }
    world->bed->now_us += TTCORE_HISTORY_KEEP_US;
    adds(a, 4, 6);
    serve(a, 400);
    assert_int_equal(knows(a, 3), 400); /* of the old sum, not halved again */
    assert_int_equal(knows(a, 4), 6);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
/* Nobody was there to add to it, and it would outweigh what all others adds meanwhile. */
static void what_is_added_while_no_shard_is_up_is_not_published_later(void **state)
{
    struct world *world = *state;
    struct peer *a = &world->peer[0], *b = &world->peer[1];
    adds(a, 9, 1);
    serve(a, 20);
    a->is_cut_off = true;
    serve(a, 20000);
    assert_int_equal(client_shards_up(remote_client(a->remote)), 0);
    adds(a, 3, TT_HISTORY_LIMIT - 1);
    serve(a, 20000);
    a->is_cut_off = false;
    serve(a, 20000);
    assert_int_equal(client_shards_up(remote_client(a->remote)), 1);
    adds(a, 4, 5);
    serve(a, 40);
    serve(b, 40);
    assert_int_equal(knows(b, 4), 5);
    assert_int_equal(knows(b, 3), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(an_update_reaches_the_other_searcher),
        T(what_is_not_published_yet_counts_on_top),
        T(halving_reaches_every_searcher_once),
        T(a_new_search_of_the_root_gets_all_sums_again),
        T(a_root_key_begun_anew_takes_nothing_away),
        T(what_is_added_while_no_shard_is_up_is_not_published_later),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
