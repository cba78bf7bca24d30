/* The tests of the slider tables, compiled once for each way of indexing them. */
#include "tests/support/test_chess.h"
#include "worker/games/chess/bitboard.h"

static void sliders_attack_what_a_step_by_step_walk_reaches(void **state)
{
    (void)state;
    uint64_t seed = test_seed();
    for (unsigned square = 0; square < 64; square++) {
        for (unsigned i = 0; i < 2000; i++) {
            uint64_t occupied = rng_next(&seed);
            occupied &= i & 1 ? rng_next(&seed) : ~UINT64_C(0);
            occupied &= i & 2 ? rng_next(&seed) : ~UINT64_C(0);
            assert_int_equal(bitboard_rook(square, occupied), bitboard_slow_rook(square, occupied));
            assert_int_equal(bitboard_bishop(square, occupied),
                             bitboard_slow_bishop(square, occupied));
        }
    }
}

/* All subsets of the relevant squares: no two with different attacks may share an entry. */
static void every_occupation_has_its_own_set(void **state)
{
    (void)state;
    for (unsigned square = 0; square < 64; square++) {
        uint64_t rook = bitboard_tables.rook[square].mask, occupied = 0;
        do {
            assert_true(bitboard_rook(square, occupied) == bitboard_slow_rook(square, occupied));
            occupied = (occupied - rook) & rook;
        } while (occupied);
        uint64_t bishop = bitboard_tables.bishop[square].mask;
        do {
            assert_true(bitboard_bishop(square, occupied) ==
                        bitboard_slow_bishop(square, occupied));
            occupied = (occupied - bishop) & bishop;
        } while (occupied);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sliders_attack_what_a_step_by_step_walk_reaches),
        cmocka_unit_test(every_occupation_has_its_own_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
