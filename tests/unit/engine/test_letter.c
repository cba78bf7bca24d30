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
    switch ((enum peer_kind)m->kind) {
    case STEAL_WORK:
        assert_true(out.child.split == m->child.split);
        assert_int_equal(out.child.at, m->child.at);
        assert_int_equal(out.work.alpha, m->work.alpha);
        assert_int_equal(out.work.alpha_now, m->work.alpha_now);
        assert_int_equal(out.work.beta, m->work.beta);
        assert_int_equal(out.work.best, m->work.best);
        break;
    case STEAL_NARROW:
        assert_true(out.child.split == m->child.split);
        assert_int_equal(out.child.at, m->child.at);
        assert_int_equal(out.narrow.alpha, m->narrow.alpha);
        assert_int_equal(out.narrow.beta, m->narrow.beta);
        break;
    case TASK_WORK:
        assert_true(out.offer.key == m->offer.key && out.offer.signature == m->offer.signature);
        assert_int_equal(out.offer.alpha, m->offer.alpha);
        assert_int_equal(out.offer.beta, m->offer.beta);
        break;
    case TASK_RESULT:
        assert_int_equal(out.known.alpha, m->known.alpha);
        assert_int_equal(out.known.beta, m->known.beta);
        assert_int_equal(out.known.best, m->known.best);
        break;
    default:
        fail();
    }
    assert_int_equal(out.length, m->length);
    assert_int_equal(out.moves[0], m->moves[0]);
    assert_false(letter_read(body, length - 1, &out));
    return true;
}

static struct peer_message work(int alpha, int beta)
{
    return (struct peer_message){
        .kind = STEAL_WORK,
        .work = {.child = {UINT64_C(0x0123456789abcd00), 255},
                 .alpha = alpha,
                 .alpha_now = alpha,
                 .beta = beta,
                 .best = -GAME_INFINITE,
                 .depth = 5,
                 .iteration = 9},
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
        m.offer = (struct task_offer){.key = UINT64_C(0x0123456789abcd01),
                                      .signature = UINT64_MAX - 1,
                                      .alpha = windows[i][0],
                                      .beta = windows[i][1],
                                      .depth = 5,
                                      .iteration = 9};
        assert_true(is_read(&m));
        m.kind = STEAL_NARROW;
        m.narrow = (struct steal_narrow){
            {UINT64_C(0x0123456789abcd00), 255}, windows[i][0], windows[i][1]};
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
    m.work.depth = 0;
    assert_false(is_read(&m));
    m = work(-5, 5);
    m.child.at = GAME_MOVES_MAX;
    assert_false(is_read(&m));
    m = work(-5, 5);
    m.work.best = 5;
    assert_false(is_read(&m));
    m = (struct peer_message){.kind = TASK_RESULT,
                              .known = {.depth = 4, .best = 10, .alpha = 10, .beta = 11}};
    assert_false(is_read(&m));
    m.known.beta = GAME_INFINITE;
    assert_true(is_read(&m));
    m.kind = TASK_RESULT + 1;
    assert_false(is_read(&m));
}

static void a_line_is_no_longer_than_a_search_keeps(void **state)
{
    (void)state;
    struct peer_message m = {.kind = STEAL_RESULT, .length = SEARCH_PV_MAX + 1};
    uint8_t body[PROTO_BODY_MAX];
    assert_false(letter_read(body, letter_write(&m, body), &m));
    m = (struct peer_message){.kind = STEAL_RESULT, .length = SEARCH_PV_MAX};
    assert_true(letter_read(body, letter_write(&m, body), &m));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_of_searches_are_read),
        cmocka_unit_test(what_no_search_can_use_is_not),
        cmocka_unit_test(a_line_is_no_longer_than_a_search_keeps),
    };
    return cmocka_run_group_tests_name("letter", tests, NULL, NULL);
}
