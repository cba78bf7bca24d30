/* Messages of searchers as letters: what honest searches say is read as it was said. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "worker/engine/letter.h"

#define SAME(field) assert_true(out.field == m->field)
#define SAME_CHILD()   \
    SAME(child.split); \
    SAME(child.at)
#define SAME_MOVE(of) \
    SAME(of.move);    \
    SAME(of.flags);   \
    SAME(of.order)

/* False: not read; what is read is as it was said. A kind that is missing here does not compile. */
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
    case STEAL_REQUEST:
    case STEAL_NO_WORK:
        SAME(request.number);
        break;
    case STEAL_WORK:
        SAME_CHILD();
        SAME(work.request);
        SAME_MOVE(work.eldest);
        SAME_MOVE(work.move);
        SAME(work.alpha);
        SAME(work.alpha_now);
        SAME(work.beta);
        SAME(work.best);
        SAME(work.depth);
        SAME(work.iteration);
        SAME(work.cut_node);
        break;
    case STEAL_RESULT:
        SAME_CHILD();
        SAME(result.has_value);
        SAME(result.lacks_value);
        SAME(result.counts);
        SAME(result.repeats);
        SAME(result.best);
        SAME(result.path_scout);
        SAME(result.path_again);
        break;
    case STEAL_NARROW:
        SAME_CHILD();
        SAME(narrow.alpha);
        SAME(narrow.beta);
        break;
    case STEAL_ABORT:
        SAME_CHILD();
        break;
    case STEAL_SIGN:
        SAME_CHILD();
        SAME(sign.is_answer);
        break;
    case TASK_WORK:
        SAME(offer.key);
        SAME(offer.signature);
        SAME(offer.request);
        SAME(offer.alpha);
        SAME(offer.beta);
        SAME(offer.depth);
        SAME(offer.iteration);
        SAME(offer.cut_node);
        SAME(offer.asks);
        break;
    case TASK_DROP:
        SAME(drop.key);
        SAME(drop.request);
        break;
    case TASK_RESULT:
        SAME(known.key);
        SAME(known.request);
        SAME(known.depth);
        SAME(known.best);
        SAME(known.alpha);
        SAME(known.beta);
        SAME(known.move);
        break;
    }
    assert_int_equal(out.length, m->length);
    assert_memory_equal(out.moves, m->moves, m->length * sizeof m->moves[0]);
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

/* Each number is another, and needs all bytes that it has on the wire. */
static void all_kinds_are_read_as_they_were_said(void **state)
{
    (void)state;
    const struct peer_child child = {UINT64_C(0xfedcba9876543210), GAME_MOVES_MAX - 1};
    const struct game_move eldest = {.move = 0xa1b2, .flags = 0xc3d4, .order = 1 << 28};
    const struct game_move move = {.move = 0xb2a1, .flags = 0xd4c3, .order = -(1 << 26)};
    const struct peer_message said[] = {
        {.kind = STEAL_REQUEST, .request = {UINT32_C(0xf1e2d3c4)}},
        {.kind = STEAL_NO_WORK, .request = {UINT32_C(0xe2f1c4d3)}},
        {.kind = STEAL_WORK,
         .work = {child, UINT32_C(0xd3c4b5a6), eldest, move, -1003, -1002, 1001, -1000, 61, 62,
                  true}},
        {.kind = STEAL_RESULT,
         .result = {child, true, false, true, NO_REPEAT, -1004, UINT64_C(0xa1a2a3a4a5a6a7a8),
                    UINT64_C(0xb1b2b3b4b5b6b7b8)}},
        {.kind = STEAL_RESULT, .result = {child, false, true, false, -1, 1004, 1, 2}},
        {.kind = STEAL_NARROW, .narrow = {child, -1006, 1005}},
        {.kind = STEAL_ABORT, .child = child},
        {.kind = STEAL_SIGN, .sign = {child, true}},
        {.kind = TASK_WORK,
         .offer = {.key = UINT64_C(0xc1c2c3c4c5c6c7c8),
                   .signature = UINT64_C(0xd1d2d3d4d5d6d7d8),
                   .request = UINT32_C(0xc4d3e2f1),
                   .alpha = -1008,
                   .beta = 1007,
                   .depth = 58,
                   .iteration = 59,
                   .cut_node = true}},
        {.kind = TASK_WORK,
         .offer = {.alpha = 0, .beta = 1, .depth = 1, .iteration = 1, .asks = true}},
        {.kind = TASK_DROP, .drop = {UINT64_C(0xe1e2e3e4e5e6e7e8), UINT32_C(0xb5a6d3c4)}},
        {.kind = TASK_RESULT,
         .known = {.key = UINT64_C(0xf1f2f3f4f5f6f7f8),
                   .request = UINT32_C(0xa6b5c4d3),
                   .depth = 57,
                   .best = -1009,
                   .alpha = -1009,
                   .beta = GAME_INFINITE,
                   .move = 0xfede}},
    };
    for (unsigned i = 0; i < sizeof said / sizeof said[0]; i++) {
        for (unsigned length = 0; length <= SEARCH_PV_MAX; length += SEARCH_PV_MAX) {
            struct peer_message m = said[i];
            m.length = (uint16_t)length;
            for (unsigned k = 0; k < length; k++) {
                m.moves[k] = (uint16_t)(0xfedc - 257 * k);
            }
            assert_true(is_read(&m));
        }
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
        cmocka_unit_test(all_kinds_are_read_as_they_were_said),
        cmocka_unit_test(what_no_search_can_use_is_not),
        cmocka_unit_test(a_line_is_no_longer_than_a_search_keeps),
    };
    return cmocka_run_group_tests_name("letter", tests, NULL, NULL);
}
