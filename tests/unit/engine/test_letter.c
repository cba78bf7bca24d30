/* Messages of searchers as letters: what honest searches say is read as it was said. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "worker/engine/letter.h"

static bool is_read(const struct peer_message *m)
{
    uint8_t body[PROTO_BODY_MAX];
    struct peer_message out;
    size_t length = letter_write(m, body);
    if (!letter_read(body, length, &out)) {
        return false;
    }
    assert_int_equal(out.kind, m->kind);
    assert_true(out.split == m->split && out.signature == m->signature);
    assert_int_equal(out.at, m->at);
    assert_int_equal(out.alpha, m->alpha);
    assert_int_equal(out.alpha_now, m->alpha_now);
    assert_int_equal(out.beta, m->beta);
    assert_int_equal(out.best, m->best);
    assert_int_equal(out.length, m->length);
    assert_int_equal(out.moves[0], m->moves[0]);
    assert_false(letter_read(body, length - 1, &out));
    return true;
}

static struct peer_message work(int alpha, int beta)
{
    return (struct peer_message){
        .kind = STEAL_WORK,
        .split = UINT64_C(0x0123456789abcd00),
        .at = 255,
        .alpha = alpha,
        .alpha_now = alpha,
        .beta = beta,
        .best = -GAME_INFINITE,
        .depth = 5,
        .iteration = 9,
        .length = 2,
        .moves = {0xfedc, 7},
    };
}

/* Below a mate that is known windows go beyond all scores, a point for each ply. */
static void windows_of_searches_are_read(void **state)
{
    (void)state;
    static const int windows[][2] = {
        {-GAME_INFINITE, GAME_INFINITE},    {-1, 0},
        {GAME_MATE, GAME_MATE + 1},         {GAME_MATE + 1, GAME_MATE + 2},
        {-GAME_MATE - 12, -GAME_MATE - 11}, {GAME_MATE + 100, GAME_INFINITE}};
    for (unsigned i = 0; i < sizeof windows / sizeof windows[0]; i++) {
        struct peer_message m = work(windows[i][0], windows[i][1]);
        assert_true(is_read(&m));
        m.kind = TASK_WORK;
        assert_true(is_read(&m));
        m.kind = STEAL_NARROW;
        assert_true(is_read(&m));
    }
}

static void what_no_search_can_use_is_not(void **state)
{
    (void)state;
    struct peer_message m = work(0, 0);
    assert_false(is_read(&m));
    m = work(GAME_INFINITE - 1, GAME_INFINITE); /* no score between them, and none a ply below */
    assert_false(is_read(&m));
    m = work(-5, 5);
    m.depth = 0;
    assert_false(is_read(&m));
    m = work(-5, 5);
    m.at = GAME_MOVES_MAX;
    assert_false(is_read(&m));
    m = work(-5, 5);
    m.best = 5;
    assert_false(is_read(&m));
    m = (struct peer_message){.kind = TASK_RESULT, .depth = 4, .best = 10, .alpha = 10, .beta = 11};
    assert_false(is_read(&m));
    m.beta = GAME_INFINITE;
    assert_true(is_read(&m));
    m.kind = TASK_RESULT + 1;
    assert_false(is_read(&m));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_of_searches_are_read),
        cmocka_unit_test(what_no_search_can_use_is_not),
    };
    return cmocka_run_group_tests_name("letter", tests, NULL, NULL);
}
