/* Foreign claims: which of two stays, who ends it, and how long it counts. */
#include "tests/support/test_tt.h"

#include "worker/table/claims.h"

enum { NODES = 64, NOW_US = 5000000, DEEP = CLAIMS_FOREIGN_DEPTH + 5 };

static int setup(void **state)
{
    *state = aligned_alloc(_Alignof(struct host_state), sizeof(struct host_state));
    assert_non_null(*state);
    memset(*state, 0, sizeof(struct host_state));
    return 0;
}

static int teardown(void **state)
{
    free(*state);
    return 0;
}

static bool take(struct host_state *state, uint64_t key, uint8_t depth, uint16_t host,
                 enum tt_claim what)
{
    const struct tt_store claim = {
        .key = key, .depth = depth, .score = (int16_t)what, .bound = TT_CLAIM, .move = host};
    return claims_take_foreign(state, &claim, NOW_US);
}

static bool is_claimed(struct host_state *state, uint64_t key, uint8_t depth)
{
    return claims_foreign(state, key, depth, NOW_US);
}

static void the_host_that_goes_first_keeps_its_claim(void **state)
{
    struct host_state *s = *state;
    unsigned firsts = 0;
    for (uint64_t key = 1; key <= NODES; key++) {
        const bool is_one_first = claims_goes_first(key, 1, 2);
        const uint16_t first = is_one_first ? 1 : 2, second = is_one_first ? 2 : 1;
        firsts += is_one_first;
        assert_true(claims_goes_first(key, 2, 1) == !is_one_first);
        assert_true(take(s, key, DEEP, second, TT_CLAIM_BEGINS));
        assert_false(take(s, key, DEEP, second, TT_CLAIM_BEGINS)); /* no news */
        assert_true(take(s, key, DEEP, first, TT_CLAIM_BEGINS));
        assert_false(take(s, key, DEEP, second, TT_CLAIM_BEGINS));
        assert_false(take(s, key, DEEP, second, TT_CLAIM_ENDS));
        assert_true(is_claimed(s, key, DEEP));
        assert_false(is_claimed(s, key, DEEP + 1));
        assert_false(take(s, key, DEEP, first, TT_CLAIM_ENDS));
        assert_false(is_claimed(s, key, DEEP));
    }
    assert_in_range(firsts, NODES / 4, NODES * 3 / 4); /* another one for each node */
}

static void its_host_alone_or_a_result_ends_a_claim(void **state)
{
    struct host_state *s = *state;
    for (uint64_t key = 1; key <= NODES; key++) {
        for (uint16_t host = 1; host <= 2; host++) {
            assert_false(take(s, key, DEEP, host, TT_CLAIM_ENDS)); /* of none */
            assert_true(take(s, key, DEEP, host, TT_CLAIM_BEGINS));
            assert_false(take(s, key, DEEP, 3 - host, TT_CLAIM_ENDS));
            claims_end_foreign(s, key, DEEP + 1);
            assert_true(is_claimed(s, key, DEEP));
            claims_end_foreign(s, key, DEEP);
            assert_false(is_claimed(s, key, DEEP));
        }
    }
}

static void in_one_place_the_longer_claim_stays(void **state)
{
    struct host_state *s = *state;
    enum { KEY = 1, OTHERS = 8 * HOST_TABLE_FOREIGN_CLAIMS };
    take(s, KEY, DEEP, 1, TT_CLAIM_BEGINS);
    for (uint64_t key = KEY + 1; key < OTHERS; key++) {
        take(s, key, DEEP - 1, 2, TT_CLAIM_BEGINS);
    }
    assert_true(is_claimed(s, KEY, DEEP));
    for (uint64_t key = KEY + 1; key < OTHERS; key++) {
        take(s, key, DEEP - 1, 2, TT_CLAIM_ENDS); /* of the other node */
    }
    assert_true(is_claimed(s, KEY, DEEP));
    for (uint64_t key = KEY + 1; key < OTHERS; key++) {
        take(s, key, DEEP + 1, 2, TT_CLAIM_BEGINS);
    }
    assert_false(is_claimed(s, KEY, DEEP));
    claims_clear_foreign(s);
    for (uint64_t key = KEY; key < OTHERS; key++) {
        assert_false(is_claimed(s, key, DEEP + 1));
    }
}

static void a_claim_that_nobody_ends_expires(void **state)
{
    struct host_state *s = *state;
    uint64_t us = CLAIMS_FOREIGN_LEAST_MS * 1000;
    for (uint8_t depth = CLAIMS_FOREIGN_DEPTH; depth <= DEEP; depth++) {
        take(s, depth, depth, 1, TT_CLAIM_BEGINS);
        assert_true(claims_foreign(s, depth, depth, NOW_US + us / 2));
        assert_false(claims_foreign(s, depth, depth, NOW_US + 2 * us));
        us *= CLAIMS_FOREIGN_PLY;
        us = us < CLAIMS_FOREIGN_MOST_MS * 1000 ? us : CLAIMS_FOREIGN_MOST_MS * 1000;
    }
    take(s, 1, TT_DEPTH_MAX, 1, TT_CLAIM_BEGINS);
    assert_true(claims_foreign(s, 1, TT_DEPTH_MAX, NOW_US + CLAIMS_FOREIGN_MOST_MS * 500));
    assert_false(claims_foreign(s, 1, TT_DEPTH_MAX, NOW_US + CLAIMS_FOREIGN_MOST_MS * 2000));
    take(s, 1, CLAIMS_FOREIGN_DEPTH - 1, 1, TT_CLAIM_BEGINS);
    assert_false(is_claimed(s, 1, CLAIMS_FOREIGN_DEPTH - 1));
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(the_host_that_goes_first_keeps_its_claim),
        T(its_host_alone_or_a_result_ends_a_claim),
        T(in_one_place_the_longer_claim_stays),
        T(a_claim_that_nobody_ends_expires),
    };
    return cmocka_run_group_tests_name("claims", tests, NULL, NULL);
}
