/* Who is inside which node, among threads: a set, whatever the order, the lines and the spare
 * lines it takes. */
#include "tests/unit/test_tt.h"

#include "worker/table/inside.h"

#include <pthread.h>
#include <stdatomic.h>

enum {
    SLOTS = 48, /* in one node: ten lines */
    KEYS = 5,
    DEPTHS = 2,
    STEPS = 200000,
    PLACES_OF_ONE = 5 + 8 * 5, /* of one node, among one thread's lines */
    TENS = 24,
    THREADS = 4,
    CROWD = 12, /* threads in one node: three lines */
    VISITS = 50000,
};

static struct inside *open_inside(unsigned slots)
{
    struct inside *t = NULL;
    assert_int_equal(inside_open(&t, slots), ERR_OK);
    return t;
}

static unsigned visit(struct inside *t, struct inside_node node, uint16_t slot, bool exclusive,
                      bool *is_busy)
{
    struct inside_line *line = inside_lock(t, node);
    unsigned count = inside_visit(t, line, node, slot, exclusive, is_busy);
    inside_unlock(line);
    return count;
}

static unsigned join(struct inside *t, struct inside_node node, uint16_t slot)
{
    bool is_busy;
    unsigned count = visit(t, node, slot, false, &is_busy);
    assert_false(is_busy);
    return count;
}

static unsigned leave(struct inside *t, struct inside_node node, uint16_t slot)
{
    struct inside_line *line = inside_lock(t, node);
    unsigned left = inside_leave(t, line, node, slot);
    inside_unlock(line);
    return left;
}

static unsigned count(struct inside *t, struct inside_node node)
{
    struct inside_line *line = inside_lock(t, node);
    unsigned n = inside_count(t, line, node);
    inside_unlock(line);
    return n;
}

/* ---- against a model ---- */

struct model {
    bool inside[KEYS][DEPTHS][SLOTS];
};

static unsigned model_count(const struct model *m, unsigned k, unsigned d)
{
    unsigned n = 0;
    for (unsigned i = 0; i < SLOTS; i++) {
        n += m->inside[k][d][i];
    }
    return n;
}

static void check_slots(struct inside *t, const struct model *m, unsigned k, unsigned d)
{
    struct inside_node node = {k, (uint8_t)d};
    uint16_t slot[SLOTS + 1];
    bool seen[SLOTS] = {false};
    struct inside_line *line = inside_lock(t, node);
    unsigned n = inside_slots(t, line, node, slot, SLOTS + 1);
    unsigned some = inside_slots(t, line, node, slot, 3);
    inside_unlock(line);
    assert_int_equal(n, model_count(m, k, d));
    assert_int_equal(some, n < 3 ? n : 3);
    for (unsigned i = 0; i < n; i++) {
        assert_true(slot[i] < SLOTS && m->inside[k][d][slot[i]] && !seen[slot[i]]);
        seen[slot[i]] = true;
    }
}

static void a_set_of_slots_for_every_node(void **state)
{
    (void)state;
    uint64_t random = tt_seed();
    static struct model m;
    memset(&m, 0, sizeof m);
    struct inside *t = open_inside(SLOTS);
    for (unsigned step = 0; step < STEPS; step++) {
        unsigned k = rng_below(&random, KEYS), d = rng_below(&random, DEPTHS);
        uint16_t slot = (uint16_t)rng_below(&random, SLOTS);
        /* Tides, so that nodes get crowded and empty. */
        bool comes = tt_chance(&random, step / 500 % 2 ? 90 : 10), is_busy = false;
        struct inside_node node = {k, (uint8_t)d};
        bool *is_holder = &m.inside[k][d][slot];
        if (comes) {
            bool exclusive = tt_chance(&random, 30);
            unsigned others = model_count(&m, k, d) - *is_holder;
            unsigned n = visit(t, node, slot, exclusive, &is_busy);
            assert_true(is_busy == (exclusive && others > 0));
            *is_holder |= !is_busy;
            assert_int_equal(n, model_count(&m, k, d));
        } else {
            *is_holder = false;
            assert_int_equal(leave(t, node, slot), model_count(&m, k, d));
        }
        assert_int_equal(count(t, node), model_count(&m, k, d));
        check_slots(t, &m, k, d);
    }
    unsigned all = 0;
    for (unsigned k = 0; k < KEYS; k++) {
        for (unsigned d = 0; d < DEPTHS; d++) {
            all += model_count(&m, k, d);
        }
    }
    assert_int_equal(inside_places(t), all);
    inside_close(&t);
}

/* ---- room ---- */

static void without_spare_lines_a_visit_is_not_counted(void **state)
{
    (void)state;
    struct inside *t = open_inside(1);
    struct inside_node node = {1, 1}, other = {2, 7};
    bool is_busy;
    for (unsigned round = 0; round < 3; round++) { /* lines come back */
        for (uint16_t i = 0; i < PLACES_OF_ONE; i++) {
            assert_int_equal(join(t, node, i), i + 1);
        }
        assert_int_equal(join(t, node, PLACES_OF_ONE), PLACES_OF_ONE);
        assert_int_equal(visit(t, node, PLACES_OF_ONE, true, &is_busy), PLACES_OF_ONE);
        assert_true(is_busy);
        assert_int_equal(join(t, node, 3), PLACES_OF_ONE); /* who is counted stays so */
        assert_int_equal(join(t, other, 3), 1);
        assert_int_equal(leave(t, node, PLACES_OF_ONE), PLACES_OF_ONE);
        assert_int_equal(inside_places(t), PLACES_OF_ONE + 1);
        assert_int_equal(leave(t, other, 3), 0);
        for (uint16_t i = 0; i < PLACES_OF_ONE; i++) {
            assert_int_equal(leave(t, node, i), PLACES_OF_ONE - 1 - i);
        }
        assert_int_equal(inside_places(t), 0);
    }
    inside_close(&t);
    inside_close(&t);
}

static void as_many_threads_as_promised(void **state)
{
    (void)state;
    struct inside *t = NULL;
    assert_int_equal(inside_open(&t, 0), ERR_RANGE);
    assert_int_equal(inside_open(&t, INSIDE_SLOTS_MAX + 1), ERR_RANGE);
    assert_null(t);
    t = open_inside(INSIDE_SLOTS_MAX);
    for (uint64_t key = 0; key < TENS; key++) { /* all of them in the same nodes */
        for (uint16_t i = 0; i < INSIDE_SLOTS_MAX; i++) {
            assert_int_equal(join(t, (struct inside_node){key, 9}, i), i + 1);
        }
    }
    inside_close(&t);
}

/* ---- threads ---- */

struct visitor {
    struct inside *t;
    uint16_t slot;
    uint64_t random;
    atomic_uint *alone; /* by key: the one who is alone in there */
    bool broken;
    pthread_t thread;
};

static void run_visitors(struct visitor *v, unsigned count, void *(*body)(void *))
{
    for (unsigned i = 0; i < count; i++) {
        assert_int_equal(pthread_create(&v[i].thread, NULL, body, &v[i]), 0);
    }
    for (unsigned i = 0; i < count; i++) {
        pthread_join(v[i].thread, NULL);
    }
    for (unsigned i = 0; i < count; i++) {
        assert_false(v[i].broken);
    }
}

static void *visit_often(void *context)
{
    struct visitor *v = context;
    for (unsigned i = 0; i < VISITS; i++) {
        unsigned key = rng_below(&v->random, 3);
        struct inside_node node = {key, 4};
        bool is_busy;
        unsigned n = visit(v->t, node, v->slot, true, &is_busy);
        v->broken |= is_busy ? n < 1 : n != 1;
        if (is_busy) {
            continue;
        }
        v->broken |= atomic_exchange(&v->alone[key], v->slot + 1u) != 0;
        v->broken |= atomic_exchange(&v->alone[key], 0) != v->slot + 1u;
        v->broken |= leave(v->t, node, v->slot) != 0;
    }
    return NULL;
}

static void who_asks_to_be_alone_is_alone(void **state)
{
    (void)state;
    uint64_t random = tt_seed();
    struct visitor v[THREADS];
    atomic_uint alone[3] = {0, 0, 0};
    struct inside *t = open_inside(THREADS);
    for (unsigned i = 0; i < THREADS; i++) {
        v[i] = (struct visitor){
            .t = t, .slot = (uint16_t)i, .random = rng_next(&random), .alone = alone};
    }
    run_visitors(v, THREADS, visit_often);
    assert_int_equal(inside_places(t), 0);
    inside_close(&t);
}

static void *crowd_in(void *context)
{
    struct visitor *v = context;
    struct inside_node node = {1, 4};
    for (unsigned i = 0; i < VISITS / 10; i++) {
        uint16_t seen[CROWD + 1];
        join(v->t, node, v->slot);
        struct inside_line *line = inside_lock(v->t, node);
        unsigned n = inside_slots(v->t, line, node, seen, CROWD + 1), me = 0;
        v->broken |= n != inside_count(v->t, line, node) || n > CROWD;
        inside_unlock(line);
        for (unsigned k = 0; k < n; k++) {
            me += seen[k] == v->slot;
        }
        v->broken |= me != 1;
        v->broken |= leave(v->t, node, v->slot) >= CROWD;
    }
    return NULL;
}

static void a_crowd_comes_and_goes(void **state)
{
    (void)state;
    struct visitor v[CROWD];
    struct inside *t = open_inside(CROWD);
    for (unsigned i = 0; i < CROWD; i++) {
        v[i] = (struct visitor){.t = t, .slot = (uint16_t)i};
    }
    run_visitors(v, CROWD, crowd_in);
    assert_int_equal(inside_places(t), 0);
    inside_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_set_of_slots_for_every_node),
        cmocka_unit_test(without_spare_lines_a_visit_is_not_counted),
        cmocka_unit_test(as_many_threads_as_promised),
        cmocka_unit_test(who_asks_to_be_alone_is_alone),
        cmocka_unit_test(a_crowd_comes_and_goes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
