/* The nodes that ttbench asks a shard for. */
#include "tests/support/test_tt.h"

#include "worker/programs/ttbench/ttbench_load.h"

static struct ttbench_load load, other;

/* Each visit is one that a shard takes. */
static void expect_a_load(const struct ttbench_load *l)
{
    assert_int_equal(l->count, TTBENCH_VISITS);
    for (unsigned i = 0; i < l->count; i++) {
        const struct ttbench_visit *v = &l->visit[i];
        assert_true(v->ask.alpha < v->ask.beta && v->ask.depth <= TT_DEPTH_MAX);
        assert_in_range(v->bound, TT_LOWER, TT_EXACT);
        assert_true(v->score >= TT_SCORE_MIN);
    }
}

static void a_seed_repeats_a_random_load(void **state)
{
    (void)state;
    load.count = other.count = 0;
    ttbench_load_random(&load, 7);
    ttbench_load_random(&other, 7);
    expect_a_load(&load);
    assert_memory_equal(load.visit, other.visit, sizeof load.visit);
}

static void a_recorded_load_has_results_and_nodes_without(void **state)
{
    (void)state;
    unsigned stored = 0, exclusive = 0;
    load.count = 0;
    assert_int_equal(ttbench_load_record(&load), ERR_OK);
    expect_a_load(&load);
    for (unsigned i = 0; i < load.count; i++) {
        stored += load.visit[i].is_stored;
        exclusive += (load.visit[i].ask.flags & TT_EXCLUSIVE) != 0;
    }
    assert_in_range(stored, TTBENCH_VISITS / 10, TTBENCH_VISITS - 1);
    assert_in_range(exclusive, 1, TTBENCH_VISITS - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_seed_repeats_a_random_load),
        cmocka_unit_test(a_recorded_load_has_results_and_nodes_without),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
