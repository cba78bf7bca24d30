/* The history table that searchers of a root share: two remotes before one shard's core. What their
 * searches learnt is written into them. */
#include "tests/unit/test_remote.h"

static int setup(void **state)
{
    struct world *world = world_open();
    for (unsigned i = 0; i < 2; i++) {
        seat_open(world, i, 0, 0);
    }
    *state = world;
    return 0;
}

static int teardown(void **state)
{
    world_close(*state);
    return 0;
}

static void learnt(struct worker_index *worker_index, unsigned index, uint32_t weight)
{
    worker_index->search->fresh[index] += weight;
    worker_index->search->history[index] += (int32_t)weight;
}

static int32_t knows(const struct worker_index *worker_index, unsigned index)
{
    return worker_index->search->history[index];
}

static void one_learns_from_the_other(void **state)
{
    struct world *world = *state;
    struct worker_index *a = &world->worker_index[0], *b = &world->worker_index[1];
    learnt(a, 3, 5);
    learnt(a, 8191, 7);
    serve(a, 20);
    assert_int_equal(figures(world).history_published, 2);
    learnt(b, 3, 2);
    serve(b, 40);
    assert_int_equal(knows(b, 3), 7);
    assert_int_equal(knows(b, 8191), 7);
    serve(a, 40);
    assert_int_equal(knows(a, 3), 7);
    assert_int_equal(figures(world).history_published, 3); /* nothing twice */
    assert_int_equal(figures(world).history_refused, 0);
}

static void what_is_not_given_yet_counts_besides(void **state)
{
    struct world *world = *state;
    struct worker_index *a = &world->worker_index[0], *b = &world->worker_index[1];
    learnt(a, 3, 5);
    serve(a, 20);
    serve(b, 2); /* asked; the answer lies there */
    remote_wait(b->remote, 0);
    learnt(b, 3, 4);
    poll_once(b);
    assert_int_equal(knows(b, 3), 9);
}

static void halving_reaches_everybody_once(void **state)
{
    struct world *world = *state;
    struct worker_index *a = &world->worker_index[0], *b = &world->worker_index[1];
    learnt(a, 3, 100);
    serve(a, 20);
    serve(b, 40);
    assert_int_equal(knows(b, 3), 100);
    learnt(a, 9, TT_HISTORY_LIMIT - 1);
    serve(a, 40);
    learnt(b, 9, 1);
    serve(b, 40); /* now the sum is at the limit */
    serve(a, 40);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(knows(&world->worker_index[i], 3), 50);
        assert_int_equal(knows(&world->worker_index[i], 9), TT_HISTORY_LIMIT / 2);
    }
}

static void a_new_search_of_the_root_is_told_all_again(void **state)
{
    struct world *world = *state;
    struct worker_index *a = &world->worker_index[0];
    learnt(a, 3, 800);
    learnt(a, 9, TT_HISTORY_LIMIT); /* halved once, there */
    serve(a, 40);
    int32_t before = knows(a, 3);
    assert_int_equal(before, 400);
    for (unsigned i = 0; i < 4; i++) { /* soon too early for the shard, which then tells nothing */
        seat_begin(a); /* ages its own */
        serve(a, 3);
    }
    assert_true(knows(a, 3) < before);
    serve(a, 400);
    assert_int_equal(knows(a, 3), before);
    assert_true(figures(world).history_refused > 0);
}

static void a_topic_begun_anew_takes_nothing_away(void **state)
{
    struct world *world = *state;
    struct worker_index *a = &world->worker_index[0];
    learnt(a, 3, 800);
    learnt(a, 9, TT_HISTORY_LIMIT);
    serve(a, 40);
    bed_hello(world->bed, "other", PROTO_CLIENT);
    for (uint64_t root_key = 1; root_key <= HISTORIES; root_key++) {
        struct proto_message m = {.type = PROTO_HISTORY,
                                  .history = {.request = 1, .root_key = root_key}};
        world->bed->now_us += TTCORE_HISTORY_KEEP_US;
        bed_say(world->bed, "other", m);
    }
    world->bed->now_us += TTCORE_HISTORY_KEEP_US;
    learnt(a, 4, 6);
    serve(a, 400);
    assert_int_equal(knows(a, 3), 400); /* of the old sum, not halved again */
    assert_int_equal(knows(a, 4), 6);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
/* Nobody was there to add to it, and it would outweigh what all others learnt meanwhile. */
static void what_is_learnt_while_no_shard_is_up_is_not_told_later(void **state)
{
    struct world *world = *state;
    struct worker_index *a = &world->worker_index[0], *b = &world->worker_index[1];
    learnt(a, 9, 1);
    serve(a, 20);
    a->is_cut_off = true;
    serve(a, 20000);
    assert_int_equal(client_shards_up(remote_client(a->remote)), 0);
    learnt(a, 3, TT_HISTORY_LIMIT - 1);
    serve(a, 20000);
    a->is_cut_off = false;
    serve(a, 20000);
    assert_int_equal(client_shards_up(remote_client(a->remote)), 1);
    learnt(a, 4, 5);
    serve(a, 40);
    serve(b, 40);
    assert_int_equal(knows(b, 4), 5);
    assert_int_equal(knows(b, 3), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(one_learns_from_the_other),
        T(what_is_not_given_yet_counts_besides),
        T(halving_reaches_everybody_once),
        T(a_new_search_of_the_root_is_told_all_again),
        T(a_topic_begun_anew_takes_nothing_away),
        T(what_is_learnt_while_no_shard_is_up_is_not_told_later),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
