/* Turns: a lone request is served before a flood, and time is shared by user. */
#include "common/rng.h"
#include "ttserver/net/turns.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { USERS = 5, MEMBERS = 4, MEMBER_NS = 10000 };

struct crowd {
    struct turns turns;
    struct turns_user user[USERS];
    struct turns_member member[USERS][MEMBERS];
};

static void make_crowd(struct crowd *c)
{
    turns_init(&c->turns);
    for (int u = 0; u < USERS; u++) {
        turns_user_init(&c->user[u]);
        for (int m = 0; m < MEMBERS; m++) {
            c->member[u][m] = (struct turns_member){.user = &c->user[u]};
        }
    }
}

static int user_number(const struct crowd *c, const struct turns_member *member)
{
    return (int)(member->user - c->user);
}

static void test_nobody_waits(void **state)
{
    (void)state;
    struct crowd c;
    make_crowd(&c);
    assert_null(turns_next(&c.turns));
    turns_wait(&c.turns, &c.member[0][0]);
    turns_wait(&c.turns, &c.member[0][0]);
    assert_ptr_equal(turns_next(&c.turns), &c.member[0][0]);
    turns_served(&c.turns, &c.member[0][0], false);
    turns_charge(&c.user[0], 1);
    assert_null(turns_next(&c.turns));
}

/* User u has u + 1 members that always wait, and those of odd users cost three times as much: all
 * get the same time. */
static void test_time_is_shared_by_user(void **state)
{
    (void)state;
    struct crowd c;
    uint64_t spent[USERS] = {0}, of_member[USERS][MEMBERS] = {{0}}, total = 0;
    make_crowd(&c);
    for (int u = 0; u < USERS; u++) {
        for (int m = 0; m <= u % MEMBERS; m++) {
            turns_wait(&c.turns, &c.member[u][m]);
        }
    }
    while (total < UINT64_C(1000) * USERS * TURNS_QUANTUM_NS) {
        struct turns_member *member = turns_next(&c.turns);
        assert_non_null(member);
        int u = user_number(&c, member);
        uint64_t ns = u % 2 ? 3 * MEMBER_NS : MEMBER_NS;
        spent[u] += ns;
        of_member[u][member - c.member[u]] += ns;
        total += ns;
        turns_served(&c.turns, member, true);
        turns_charge(member->user, ns);
    }
    for (int u = 0; u < USERS; u++) {
        assert_in_range(spent[u], total / USERS * 98 / 100, total / USERS * 102 / 100);
        for (int m = 0; m <= u % MEMBERS; m++) { /* and so do its members, of its part */
            uint64_t part = spent[u] / (uint64_t)(u % MEMBERS + 1);
            assert_in_range(of_member[u][m], part * 95 / 100, part * 105 / 100);
        }
    }
}

/* However long the others' queues are, who comes anew is next. */
static void test_a_lone_request_comes_first(void **state)
{
    (void)state;
    struct crowd c;
    make_crowd(&c);
    for (int u = 1; u < USERS; u++) {
        for (int m = 0; m < MEMBERS; m++) {
            turns_wait(&c.turns, &c.member[u][m]);
        }
    }
    for (int round = 0; round < 1000; round++) {
        for (int i = 0; i < 20; i++) {
            struct turns_member *member = turns_next(&c.turns);
            turns_served(&c.turns, member, true);
            turns_charge(member->user, 2 * TURNS_QUANTUM_NS);
        }
        turns_wait(&c.turns, &c.member[0][0]);
        assert_ptr_equal(turns_next(&c.turns), &c.member[0][0]);
        turns_served(&c.turns, &c.member[0][0], false);
        turns_charge(&c.user[0], 100);
    }
}

/* A user that was served for very long waits for the others, but not for ever; alone, it does not
 * wait. */
static void test_a_debt_is_bounded(void **state)
{
    (void)state;
    struct crowd c;
    make_crowd(&c);
    turns_wait(&c.turns, &c.member[0][0]);
    turns_wait(&c.turns, &c.member[1][0]);
    turns_served(&c.turns, &c.member[0][0], true);
    turns_charge(&c.user[0], UINT64_C(1) << 62);
    uint64_t others = 0;
    struct turns_member *member;
    while ((member = turns_next(&c.turns)) == &c.member[1][0]) {
        others += MEMBER_NS;
        assert_true(others < 2 * TURNS_DEBT_NS + 2 * TURNS_QUANTUM_NS);
        turns_served(&c.turns, member, true);
        turns_charge(member->user, MEMBER_NS);
    }
    assert_true(others >= TURNS_DEBT_NS - TURNS_QUANTUM_NS);
    turns_leave(&c.member[1][0]);
    turns_served(&c.turns, member, true);
    turns_charge(member->user, UINT64_C(1) << 62);
    assert_ptr_equal(turns_next(&c.turns), &c.member[0][0]);
}

/* Anything in any order: nobody who waits is forgotten, nobody who does not is served. */
static void test_random(void **state)
{
    (void)state;
    uint64_t seed = 18;
    struct crowd c;
    const char *given = getenv("TEST_SEED");
    seed = given != NULL ? strtoull(given, NULL, 10) : seed;
    printf("# TEST_SEED=%llu\n", (unsigned long long)seed);
    make_crowd(&c);
    unsigned waiting = 0;
    for (int i = 0; i < 200000; i++) {
        struct turns_member *m = &c.member[rng_below(&seed, USERS)][rng_below(&seed, MEMBERS)];
        switch (rng_below(&seed, 4)) {
        case 0:
            waiting += !m->waits;
            turns_wait(&c.turns, m);
            break;
        case 1:
            waiting -= m->waits;
            turns_leave(m);
            break;
        default:
            m = turns_next(&c.turns);
            assert_int_equal(m != NULL, waiting > 0);
            if (m != NULL) {
                bool again = rng_below(&seed, 2) == 0;
                assert_true(m->waits);
                turns_served(&c.turns, m, again);
                turns_charge(m->user, rng_below(&seed, 4 * TURNS_QUANTUM_NS));
                waiting -= !again;
            }
        }
    }
    for (int u = 0; u < USERS; u++) {
        for (int m = 0; m < MEMBERS; m++) {
            turns_leave(&c.member[u][m]);
        }
        turns_user_close(&c.turns, &c.user[u]);
    }
    assert_null(turns_next(&c.turns));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nobody_waits),
        cmocka_unit_test(test_time_is_shared_by_user),
        cmocka_unit_test(test_a_lone_request_comes_first),
        cmocka_unit_test(test_a_debt_is_bounded),
        cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
