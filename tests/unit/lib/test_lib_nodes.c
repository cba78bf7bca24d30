/* The nodes in flight of a handle, against a plain list: whatever is added and removed is found. */
#include "worker/lib/lib_nodes.h"

#include "common/rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { KEYS = 700, DEPTHS = 3, SLOTS = 2, STEPS = 60000 };

static struct lib_nodes nodes;
static uint32_t is_in[KEYS][DEPTHS][SLOTS]; /* ticket; 0: no */

static void check_all(unsigned count)
{
    unsigned found = 0;
    for (unsigned k = 0; k < KEYS; k++) {
        for (unsigned d = 0; d < DEPTHS; d++) {
            for (unsigned s = 0; s < SLOTS; s++) {
                const struct lib_node *node = lib_nodes_find(&nodes, k, (uint8_t)d, (uint16_t)s);
                assert_int_equal(node != NULL ? node->ticket : 0, is_in[k][d][s]);
                found += node != NULL;
            }
        }
    }
    assert_int_equal(found, count);
    assert_int_equal(nodes.count, count);
}

/* Keys that are not mixed, as callers with raw keys may have. */
static void what_was_added_is_found_until_it_is_removed(void **state)
{
    uint64_t rng = 1;
    unsigned count = 0;
    (void)state;
    assert_true(lib_nodes_open(&nodes));
    for (unsigned i = 1; i <= STEPS; i++) {
        unsigned k = rng_below(&rng, KEYS), d = rng_below(&rng, DEPTHS), s = rng_below(&rng, SLOTS);
        if (is_in[k][d][s] == 0) {
            struct lib_node node = {
                .key = k, .ticket = i, .depth = (uint8_t)d, .slot = (uint16_t)s};
            lib_nodes_add(&nodes, &node);
            is_in[k][d][s] = i;
            count++;
        } else {
            lib_nodes_remove(&nodes, lib_nodes_find(&nodes, k, (uint8_t)d, (uint16_t)s));
            is_in[k][d][s] = 0;
            count--;
        }
        if (i % (STEPS / 20) == 0) {
            check_all(count);
        }
    }
    lib_nodes_free(&nodes);
    lib_nodes_free(&nodes);
}

static void a_full_list_drops_what_comes(void **state)
{
    (void)state;
    assert_true(lib_nodes_open(&nodes));
    for (unsigned i = 0; i <= LIB_NODES_MAX; i++) {
        lib_nodes_add(&nodes, &(struct lib_node){.key = rng_mix(i), .depth = 1});
    }
    assert_int_equal(nodes.count, LIB_NODES_MAX);
    assert_null(lib_nodes_find(&nodes, rng_mix(LIB_NODES_MAX), 1, 0));
    for (unsigned i = 0; i < LIB_NODES_MAX; i++) {
        struct lib_node *node = lib_nodes_find(&nodes, rng_mix(i), 1, 0);
        assert_non_null(node);
        lib_nodes_remove(&nodes, node);
    }
    assert_int_equal(nodes.count, 0);
    lib_nodes_free(&nodes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_added_is_found_until_it_is_removed),
        cmocka_unit_test(a_full_list_drops_what_comes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
