/* contract: what every table must do (design.md section 2), as one suite over a driver.
 *
 * A program includes this header once, fills a struct contract_driver for its table and calls
 * contract_run. Askers are numbered 0..CONTRACT_ASKERS-1; the driver makes of each a session and a
 * slot of its own. The rows of the specification are in contract_rows.h, the comparison with a
 * model in contract_model.h. */
#ifndef TESTS_SUPPORT_CONTRACT_H
#define TESTS_SUPPORT_CONTRACT_H

#include "tests/support/test_tt.h"

enum {
    CONTRACT_ASKERS = 8,
    CONTRACT_BIG = 1 << 20, /* bytes: nothing is ever evicted */
    CONTRACT_TINY = 64, /* one bucket */
    CONTRACT_ROOM = 64 * CONTRACT_ASKERS, /* visits of various nodes that every table registers */
    CONTRACT_ENTRIES = 2048, /* of a table that is opened for that many */
    CONTRACT_TRIED =
        8 * CONTRACT_ENTRIES, /* more than any table has: every part of it is full then */
    CONTRACT_LOW = -1000,
    CONTRACT_HIGH = 1000,
};

struct contract_driver {
    const char *name;
    void *(*open)(size_t result_bytes); /* room for CONTRACT_ROOM visits */
    void (*close)(void *table);
    void (*ask)(void *table, unsigned asker, const struct tt_ask *ask, struct tt_answer *answer);
    void (*store)(void *table, unsigned asker, const struct tt_store *store);
    void (*release)(void *table, unsigned asker, const struct tt_release *release);
    void (*peek)(void *table, unsigned asker, const struct tt_peek *peek, struct tt_peeked *out);
    unsigned (*entries)(void *table);
    unsigned most; /* visits that it registers, exactly; 0: CONTRACT_ROOM at least */
    bool is_unbounded; /* registers every visit: it has a server's memory */
};

struct contract {
    const struct contract_driver *driver;
    void *table;
};

/* ---- short ways to say it ---- */

static inline struct tt_answer contract_ask(struct contract *c, unsigned asker, struct tt_ask ask)
{
    struct tt_answer answer;
    c->driver->ask(c->table, asker, &ask, &answer);
    if (answer.verdict == TT_OPEN) {
        assert_true(ask.alpha <= answer.alpha && answer.alpha < answer.beta &&
                    answer.beta <= ask.beta);
    }
    return answer;
}

static inline struct tt_ask contract_wide(uint64_t key, uint8_t depth, uint8_t flags)
{
    return (struct tt_ask){
        .key = key, .depth = depth, .alpha = CONTRACT_LOW, .beta = CONTRACT_HIGH, .flags = flags};
}

static inline struct tt_ask contract_window(uint64_t key, uint8_t depth, int alpha, int beta)
{
    return (struct tt_ask){
        .key = key, .depth = depth, .alpha = (int16_t)alpha, .beta = (int16_t)beta};
}

/* Asks and expects to be registered, as the `nproc`th. */
static inline void contract_enter(struct contract *c, unsigned asker, uint64_t key, uint8_t depth,
                                  unsigned nproc)
{
    struct tt_answer answer = contract_ask(c, asker, contract_wide(key, depth, 0));
    assert_int_equal(answer.verdict, TT_OPEN);
    assert_int_equal(answer.nproc, nproc);
}

static inline void contract_store(struct contract *c, unsigned asker, struct tt_store store)
{
    c->driver->store(c->table, asker, &store);
}

static inline void contract_release(struct contract *c, unsigned asker, uint64_t key, uint8_t depth)
{
    struct tt_release release = {.key = key, .depth = depth};
    c->driver->release(c->table, asker, &release);
}

static inline struct tt_peeked contract_peek(struct contract *c, uint64_t key, uint8_t depth)
{
    struct tt_peek peek = {key, depth};
    struct tt_peeked peeked;
    c->driver->peek(c->table, 0, &peek, &peeked);
    return peeked;
}

static inline void contract_expect_nproc(struct contract *c, uint64_t key, uint8_t depth,
                                         unsigned nproc)
{
    assert_int_equal(contract_peek(c, key, depth).nproc, nproc);
}

static inline void contract_expect_cut(struct contract *c, struct tt_ask ask, int score)
{
    unsigned before = contract_peek(c, ask.key, ask.depth).nproc;
    struct tt_answer answer = contract_ask(c, 7, ask);
    assert_int_equal(answer.verdict, TT_CUT);
    assert_int_equal(answer.score, score);
    contract_expect_nproc(c, ask.key, ask.depth, before); /* a CUT joins nothing */
}

/* Expects OPEN in that window, and leaves again. */
static inline void contract_expect_open(struct contract *c, struct tt_ask ask, int alpha, int beta)
{
    struct tt_answer answer = contract_ask(c, 7, ask);
    assert_int_equal(answer.verdict, TT_OPEN);
    assert_int_equal(answer.alpha, alpha);
    assert_int_equal(answer.beta, beta);
    contract_release(c, 7, ask.key, ask.depth);
}

#include "tests/support/contract_model.h"
#include "tests/support/contract_rows.h"

/* ---- running it ---- */

static inline int contract_open(void **state, size_t bytes)
{
    struct contract *c = calloc(1, sizeof *c);
    assert_non_null(c);
    c->driver = *state;
    c->table = c->driver->open(bytes);
    *state = c;
    return 0;
}

static inline int contract_open_big(void **state)
{
    return contract_open(state, CONTRACT_BIG);
}

static inline int contract_open_tiny(void **state)
{
    return contract_open(state, CONTRACT_TINY);
}

static inline int contract_close(void **state)
{
    struct contract *c = *state;
    c->driver->close(c->table);
    free(c);
    return 0;
}

/* The whole suite on one table; returns how many tests failed. */
static inline int contract_run(const struct contract_driver *driver)
{
    void *s = (void *)(uintptr_t)driver;
#define BIG(test)                                         \
    {                                                     \
#test, test, contract_open_big, contract_close, s \
    }
#define TINY(test)                                         \
    {                                                      \
#test, test, contract_open_tiny, contract_close, s \
    }
    const struct CMUnitTest tests[] = {
        BIG(unknown_node_is_open_in_the_window_asked),
        BIG(everyone_who_enters_is_counted),
        BIG(asking_again_counts_once),
        BIG(depths_of_one_key_are_different_nodes),
        BIG(the_deepest_and_shallowest_depths_are_nodes_too),
        BIG(exclusive_is_busy_only_if_another_asker_is_registered),
        BIG(busy_joins_nothing),
        BIG(asking_without_exclusive_is_never_busy),
        BIG(cut_is_tried_before_busy),
        BIG(lower_bound_cuts_at_beta_and_narrows_alpha_below_it),
        BIG(upper_bound_cuts_at_alpha_and_narrows_beta_above_it),
        BIG(two_bounds_narrow_both_sides),
        BIG(exact_cuts_every_window),
        BIG(exact_mate_scores_come_back_whole),
        BIG(a_deeper_result_answers_unless_strict),
        BIG(strict_results_of_two_depths_both_answer),
        BIG(a_shallower_result_gives_its_move_alone),
        BIG(the_move_known_comes_with_every_verdict),
        BIG(a_deeper_ask_does_not_wipe_the_shallower_result),
        BIG(a_store_writes_and_leaves),
        BIG(a_release_leaves_and_writes_nothing),
        BIG(late_and_repeated_messages_change_nothing),
        BIG(leaving_is_by_key_and_depth_and_asker),
        BIG(who_left_may_come_back),
        BIG(a_peek_reports_and_joins_nothing),
        BIG(a_peek_of_the_unknown_says_so),
        TINY(evicting_a_result_leaves_nproc_exact),
        BIG(a_full_inflight_table_opens_without_counting),
        BIG(a_big_table_behaves_as_its_model),
        TINY(a_tiny_table_forgets_but_never_invents),
    };
#undef BIG
#undef TINY
    return cmocka_run_group_tests_name(driver->name, tests, NULL, NULL);
}

#endif
