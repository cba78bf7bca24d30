/* What the searchers of a table, and of a host, have in common for their game's solver. */
#include "tests/support/test_host_table.h"

enum { SOLVER_BYTES = 3 << 20 };

static bool is_zero(const char *memory)
{
    return memory[0] == 0 && memcmp(memory, memory + 1, SOLVER_BYTES - 1) == 0;
}

static bool are_one(char *const memory[2])
{
    memory[0][0] = 1;
    const bool are_one = memory[1][0] == 1;
    memory[0][0] = 0;
    return are_one;
}

static void it_is_shared_as_the_results_are(void **state)
{
    (void)state;
    const uint64_t group = clock_unique() | 1;
    struct embedded *table[3] = {0};
    char *memory[3];
    unsigned waits = 0;
    do { /* a table on the host may have a memory of its own where there is no room for more */
        for (unsigned i = 0; i < 2; i++) {
            embedded_close(&table[i]);
            assert_int_equal(open_embedded_when_room(&table[i], 1 << 20, 2, group), ERR_OK);
            memory[i] = embedded_solver_memory(table[i], SOLVER_BYTES, 1);
        }
    } while (embedded_is_on_host(table[0]) && !are_one(memory) && wait_for_room(&waits));
    assert_int_equal(embedded_open(&table[2], 1 << 20, 2), ERR_OK);
    for (unsigned i = 0; i < 3; i++) {
        memory[i] = embedded_solver_memory(table[i], SOLVER_BYTES, 1);
        assert_non_null(memory[i]);
        assert_ptr_equal(memory[i], embedded_solver_memory(table[i], SOLVER_BYTES, 1));
        assert_int_equal((uintptr_t)memory[i] % 64, 0);
        assert_true(is_zero(memory[i]));
    }
    assert_null(embedded_solver_memory(table[0], SOLVER_BYTES, 2));
    assert_null(embedded_solver_memory(table[0], SOLVER_BYTES / 2, 1));
    memory[0][SOLVER_BYTES - 1] = 7;
    assert_int_equal(memory[1][SOLVER_BYTES - 1], embedded_is_on_host(table[0]) ? 7 : 0);
    assert_int_equal(memory[2][SOLVER_BYTES - 1], 0);
    embedded_clear(table[0]); /* on a host, table 1 has it, too */
    assert_int_equal(memory[1][SOLVER_BYTES - 1], embedded_is_on_host(table[0]) ? 7 : 0);
    for (unsigned i = 0; i < 3; i++) {
        embedded_close(&table[i]);
    }
    /* The memory went with the last table that had it. */
    assert_int_equal(open_embedded_when_room(&table[0], 1 << 20, 2, group), ERR_OK);
    assert_true(is_zero(embedded_solver_memory(table[0], SOLVER_BYTES, 1)));
    embedded_close(&table[0]);
}

static void it_is_empty_again_when_the_table_is(void **state)
{
    (void)state;
    struct embedded *table[2] = {0};
    assert_int_equal(embedded_open(&table[0], 1 << 20, 1), ERR_OK);
    assert_int_equal(open_embedded_when_room(&table[1], 1 << 20, 1, clock_unique() | 1), ERR_OK);
    for (unsigned i = 0; i < 2; i++) {
        char *memory = embedded_solver_memory(table[i], SOLVER_BYTES, 1);
        memset(memory, 1, SOLVER_BYTES);
        embedded_clear(table[i]);
        assert_true(is_zero(memory));
        embedded_close(&table[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_shared_as_the_results_are),
        cmocka_unit_test(it_is_empty_again_when_the_table_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
