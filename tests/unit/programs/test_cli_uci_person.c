/* Commands for people beside the UCI protocol: the position for the other side. */
#include "tests/support/test_tt.h"

#include "worker/games/games.h"
#include "worker/programs/uci/uci_person.h"

static const char *const positions[][2] = {
    {"rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
     "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR b KQkq - 0 1"},
    {"r3k3/8/8/3pP3/8/8/8/4K2R w Kq d6 0 3", "4k2r/8/8/8/3Pp3/8/8/R3K3 b Qk d3 0 3"},
    {"8/2p5/3k4/8/8/1R6/8/4K3 b - - 7 40", "4k3/8/1r6/8/8/3K4/2P5/8 w - - 7 40"},
};

static void a_flipped_position_is_the_same_for_the_other_side(void **state)
{
    (void)state;
    for (unsigned i = 0; i < sizeof positions / sizeof positions[0]; i++) {
        struct job job = {0};
        char why[128];
        assert_int_equal(
            job_set_position(&job, games_by_name("chess"), positions[i][0], why, sizeof why),
            ERR_OK);
        const int value = job.game->evaluate(job.position);
        assert_int_equal(uci_person_flip(&job), ERR_OK);
        assert_string_equal(job.text, positions[i][1]);
        assert_int_equal(job.game->evaluate(job.position), value);
        assert_int_equal(uci_person_flip(&job), ERR_OK);
        assert_string_equal(job.text, positions[i][0]);
        job_free(&job);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_flipped_position_is_the_same_for_the_other_side),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
