/* contract_rows: what each operation answers and does, row by row of design.md section 2. Included
 * by contract.h only. */
#ifndef TESTS_SUPPORT_CONTRACT_ROWS_H
#define TESTS_SUPPORT_CONTRACT_ROWS_H

/* ---- OPEN ---- */

static void unknown_node_is_open_in_the_window_asked(void **state)
{
    struct contract *c = *state;
    struct tt_answer answer = contract_ask(c, 0, contract_window(1, 5, -3, 4));
    assert_int_equal(answer.verdict, TT_OPEN);
    assert_int_equal(answer.alpha, -3);
    assert_int_equal(answer.beta, 4);
    assert_int_equal(answer.move, 0);
    assert_int_equal(answer.nproc, 1);
}

static void everyone_who_enters_is_counted(void **state)
{
    struct contract *c = *state;
    for (unsigned asker = 0; asker < CONTRACT_ASKERS; asker++) {
        contract_enter(c, asker, 1, 5, asker + 1);
    }
    contract_expect_nproc(c, 1, 5, CONTRACT_ASKERS);
    for (unsigned asker = 0; asker < CONTRACT_ASKERS; asker++) {
        contract_release(c, asker, 1, 5);
        contract_expect_nproc(c, 1, 5, CONTRACT_ASKERS - 1 - asker);
    }
}

static void asking_again_counts_once(void **state)
{
    struct contract *c = *state;
    contract_enter(c, 0, 1, 5, 1);
    contract_enter(c, 0, 1, 5, 1);
    contract_enter(c, 1, 1, 5, 2);
    contract_enter(c, 0, 1, 5, 2);
    contract_release(c, 0, 1, 5);
    contract_expect_nproc(c, 1, 5, 1);
}

static void depths_of_one_key_are_different_nodes(void **state)
{
    struct contract *c = *state;
    contract_enter(c, 0, 1, 5, 1);
    contract_enter(c, 1, 1, 6, 1);
    assert_int_equal(contract_ask(c, 2, contract_wide(1, 7, TT_EXCLUSIVE)).verdict, TT_OPEN);
    contract_release(c, 0, 1, 6);
    contract_expect_nproc(c, 1, 5, 1);
    contract_expect_nproc(c, 1, 6, 1);
    contract_expect_nproc(c, 1, 7, 1);
}

static void the_deepest_and_shallowest_depths_are_nodes_too(void **state)
{
    struct contract *c = *state;
    contract_enter(c, 0, 1, 0, 1);
    contract_enter(c, 0, 1, TT_DEPTH_MAX, 1);
    contract_store(c, 0, tt_result(1, TT_DEPTH_MAX, TT_EXACT, 5, 2));
    contract_expect_cut(c, contract_wide(1, TT_DEPTH_MAX, TT_STRICT), 5);
    contract_expect_cut(c, contract_wide(1, 0, 0), 5);
    contract_expect_nproc(c, 1, 0, 1);
    contract_expect_nproc(c, 1, TT_DEPTH_MAX, 0);
}

/* ---- BUSY ---- */

static void exclusive_is_busy_only_if_another_asker_is_registered(void **state)
{
    struct contract *c = *state;
    struct tt_ask alone = contract_wide(1, 5, TT_EXCLUSIVE);
    assert_int_equal(contract_ask(c, 0, alone).verdict, TT_OPEN);
    assert_int_equal(contract_ask(c, 0, alone).verdict,
                     TT_OPEN); /* the holder itself does not count */
    struct tt_answer answer = contract_ask(c, 1, alone);
    assert_int_equal(answer.verdict, TT_BUSY);
    assert_int_equal(answer.nproc, 1);
    contract_enter(c, 1, 1, 5, 2);
    assert_int_equal(contract_ask(c, 0, alone).verdict, TT_BUSY); /* now there is another */
    contract_release(c, 1, 1, 5);
    assert_int_equal(contract_ask(c, 0, alone).verdict, TT_OPEN);
    contract_release(c, 0, 1, 5);
    assert_int_equal(contract_ask(c, 1, alone).verdict, TT_OPEN);
}

static void busy_joins_nothing(void **state)
{
    struct contract *c = *state;
    contract_enter(c, 0, 1, 5, 1);
    for (unsigned i = 0; i < 5; i++) {
        assert_int_equal(contract_ask(c, 1, contract_wide(1, 5, TT_EXCLUSIVE)).verdict, TT_BUSY);
    }
    contract_expect_nproc(c, 1, 5, 1);
    contract_release(c, 0, 1, 5);
    contract_expect_nproc(c, 1, 5, 0);
}

static void asking_without_exclusive_is_never_busy(void **state)
{
    struct contract *c = *state;
    contract_enter(c, 0, 1, 5, 1);
    contract_enter(c, 1, 1, 5, 2);
    contract_enter(c, 2, 1, 5, 3);
}

static void cut_is_tried_before_busy(void **state)
{
    struct contract *c = *state;
    contract_enter(c, 0, 1, 5, 1);
    contract_enter(c, 1, 1, 5, 2);
    contract_store(c, 0, tt_result(1, 5, TT_EXACT, 12, 3));
    contract_expect_cut(c, contract_wide(1, 5, TT_EXCLUSIVE), 12);
    contract_expect_nproc(c, 1, 5, 1);
    contract_store(c, 0, tt_result(1, 6, TT_LOWER, 12, 3));
    assert_int_equal(contract_ask(c, 2, contract_wide(1, 5, TT_EXCLUSIVE)).verdict, TT_BUSY);
}

/* ---- CUT and the window ---- */

static void lower_bound_cuts_at_beta_and_narrows_alpha_below_it(void **state)
{
    struct contract *c = *state;
    contract_store(c, 0, tt_result(1, 5, TT_LOWER, 50, 3));
    contract_expect_cut(c, contract_window(1, 5, 0, 50), 50);
    contract_expect_cut(c, contract_window(1, 5, 0, 20), 50);
    contract_expect_open(c, contract_window(1, 5, 0, 51), 50, 51);
    contract_expect_open(c, contract_window(1, 5, 50, 80), 50, 80);
    contract_expect_open(c, contract_window(1, 5, 60, 80), 60, 80);
}

static void upper_bound_cuts_at_alpha_and_narrows_beta_above_it(void **state)
{
    struct contract *c = *state;
    contract_store(c, 0, tt_result(1, 5, TT_UPPER, 50, 0));
    contract_expect_cut(c, contract_window(1, 5, 50, 80), 50);
    contract_expect_cut(c, contract_window(1, 5, 60, 80), 50);
    contract_expect_open(c, contract_window(1, 5, 49, 80), 49, 50);
    contract_expect_open(c, contract_window(1, 5, 10, 50), 10, 50);
    contract_expect_open(c, contract_window(1, 5, 10, 40), 10, 40);
}

static void two_bounds_narrow_both_sides(void **state)
{
    struct contract *c = *state;
    contract_store(c, 0, tt_result(1, 5, TT_LOWER, -10, 3));
    contract_store(c, 0, tt_result(1, 5, TT_UPPER, 10, 0));
    contract_expect_open(c, contract_wide(1, 5, 0), -10, 10);
    contract_expect_open(c, contract_window(1, 5, -5, 5), -5, 5);
    contract_expect_cut(c, contract_window(1, 5, 10, 11), 10);
    contract_expect_cut(c, contract_window(1, 5, -11, -10), -10);
    contract_store(c, 0, tt_result(1, 5, TT_UPPER, -10, 0));
    contract_expect_cut(c, contract_wide(1, 5, 0), -10);
}

static void exact_cuts_every_window(void **state)
{
    struct contract *c = *state;
    contract_store(c, 0, tt_result(1, 5, TT_EXACT, 7, 3));
    contract_expect_cut(c, contract_wide(1, 5, 0), 7);
    contract_expect_cut(c, contract_window(1, 5, 100, 101), 7);
    contract_expect_cut(c, contract_window(1, 5, -101, -100), 7);
    contract_expect_cut(c, contract_window(1, 5, TT_SCORE_MIN, TT_SCORE_MAX), 7);
}

static void exact_mate_scores_come_back_whole(void **state)
{
    struct contract *c = *state;
    contract_store(c, 0, tt_result(1, 5, TT_EXACT, 30999, 3));
    contract_store(c, 0, tt_result(2, 5, TT_EXACT, -30998, 3));
    contract_expect_cut(c, contract_window(1, 5, -32000, 32000), 30999);
    contract_expect_cut(c, contract_window(2, 5, -32000, 32000), -30998);
}

static void a_deeper_result_answers_unless_strict(void **state)
{
    struct contract *c = *state;
    contract_store(c, 0, tt_result(1, 6, TT_EXACT, 7, 3));
    contract_store(c, 0, tt_result(2, 6, TT_LOWER, 7, 3));
    contract_expect_cut(c, contract_wide(1, 6, TT_STRICT), 7);
    contract_expect_cut(c, contract_wide(1, 5, 0), 7);
    contract_expect_open(c, contract_wide(1, 5, TT_STRICT), CONTRACT_LOW, CONTRACT_HIGH);
    contract_expect_open(c, contract_wide(2, 5, 0), 7, CONTRACT_HIGH);
    contract_expect_open(c, contract_wide(2, 5, TT_STRICT), CONTRACT_LOW, CONTRACT_HIGH);
}

static void strict_results_of_two_depths_both_answer(void **state)
{
    struct contract *c = *state;
    struct tt_store deep = tt_result(1, 6, TT_EXACT, 7, 3),
                    shallow = tt_result(1, 5, TT_UPPER, -7, 0);
    deep.bound |= TT_BESIDE;
    shallow.bound |= TT_BESIDE;
    contract_store(c, 0, deep);
    contract_store(c, 0, shallow);
    contract_expect_cut(c, contract_wide(1, 6, TT_STRICT), 7);
    contract_expect_cut(c, contract_window(1, 5, -7, 0), 7);
    struct tt_ask ask = contract_window(1, 5, -7, 0);
    ask.flags = TT_STRICT;
    contract_expect_cut(c, ask, -7);
    assert_int_equal(contract_ask(c, 0, ask).move, 3);
    assert_int_equal(contract_peek(c, 1, 5).depth, 5);
    assert_int_equal(contract_peek(c, 1, 4).depth, 6);
    contract_store(c, 0, tt_result(1, 8, TT_EXACT, 9, 2)); /* for asks that are not strict */
    contract_expect_cut(c, contract_wide(1, 7, 0), 9);
}

static void a_shallower_result_gives_its_move_alone(void **state)
{
    struct contract *c = *state;
    contract_store(c, 0, tt_result(1, 5, TT_EXACT, 7, 3));
    for (unsigned strict = 0; strict < 2; strict++) {
        struct tt_ask ask = contract_wide(1, 6, strict ? TT_STRICT : 0);
        struct tt_answer answer = contract_ask(c, 0, ask);
        assert_int_equal(answer.verdict, TT_OPEN);
        assert_int_equal(answer.alpha, CONTRACT_LOW);
        assert_int_equal(answer.beta, CONTRACT_HIGH);
        assert_int_equal(answer.move, 3);
    }
}

static void the_move_known_comes_with_every_verdict(void **state)
{
    struct contract *c = *state;
    contract_store(c, 0, tt_result(1, 5, TT_LOWER, 7, 3));
    assert_int_equal(contract_ask(c, 0, contract_wide(1, 5, 0)).move, 3);
    assert_int_equal(contract_ask(c, 1, contract_wide(1, 5, TT_EXCLUSIVE)).move, 3);
    assert_int_equal(contract_ask(c, 1, contract_window(1, 5, 0, 1)).move, 3);
    assert_int_equal(contract_peek(c, 1, 5).move, 3);
}

static void a_deeper_ask_does_not_wipe_the_shallower_result(void **state)
{
    struct contract *c = *state;
    contract_store(c, 0, tt_result(1, 5, TT_EXACT, 7, 3));
    contract_enter(c, 0, 1, 9, 1);
    contract_expect_cut(c, contract_wide(1, 5, TT_STRICT), 7);
    contract_release(c, 0, 1, 9);
    contract_expect_cut(c, contract_wide(1, 5, TT_STRICT), 7);
}

/* ---- StoreHash and Release ---- */

static void a_store_writes_and_leaves(void **state)
{
    struct contract *c = *state;
    contract_enter(c, 0, 1, 5, 1);
    contract_enter(c, 1, 1, 5, 2);
    contract_store(c, 0, tt_result(1, 5, TT_LOWER, 9, 3));
    contract_expect_nproc(c, 1, 5, 1);
    contract_expect_open(c, contract_wide(1, 5, 0), 9, CONTRACT_HIGH);
    contract_store(c, 1, tt_result(1, 5, TT_UPPER, 9, 0));
    contract_expect_nproc(c, 1, 5, 0);
    contract_expect_cut(c, contract_wide(1, 5, 0), 9);
}

static void a_release_leaves_and_writes_nothing(void **state)
{
    struct contract *c = *state;
    contract_enter(c, 0, 1, 5, 1);
    contract_enter(c, 1, 1, 5, 2);
    contract_release(c, 0, 1, 5);
    struct tt_peeked peeked = contract_peek(c, 1, 5);
    assert_int_equal(peeked.nproc, 1);
    assert_int_equal(peeked.lower, TT_SCORE_MIN);
    assert_int_equal(peeked.upper, TT_SCORE_MAX);
    assert_int_equal(peeked.move, 0);
}

static void late_and_repeated_messages_change_nothing(void **state)
{
    struct contract *c = *state;
    contract_release(c, 0, 1, 5); /* never was registered */
    contract_store(c, 0, tt_result(2, 5, TT_EXACT, 4, 3));
    contract_expect_nproc(c, 1, 5, 0);
    contract_expect_nproc(c, 2, 5, 0);
    contract_enter(c, 0, 1, 5, 1);
    contract_enter(c, 1, 1, 5, 2);
    for (unsigned i = 0; i < 3; i++) {
        contract_release(c, 0, 1, 5);
        contract_expect_nproc(c, 1, 5, 1);
    }
    for (unsigned i = 0; i < 3; i++) {
        contract_store(c, 0, tt_result(1, 5, TT_LOWER, 4, 3));
        contract_expect_nproc(c, 1, 5, 1);
    }
    contract_store(c, 1, tt_result(1, 5, TT_LOWER, 4, 3));
    contract_expect_nproc(c, 1, 5, 0);
}

static void leaving_is_by_key_and_depth_and_asker(void **state)
{
    struct contract *c = *state;
    contract_enter(c, 0, 1, 5, 1);
    contract_release(c, 1, 1, 5);
    contract_release(c, 0, 2, 5);
    contract_release(c, 0, 1, 4);
    contract_store(c, 0, tt_result(1, 6, TT_LOWER, 0, 3));
    contract_store(c, 1, tt_result(1, 5, TT_LOWER, 0, 3));
    contract_expect_nproc(c, 1, 5, 1);
    contract_release(c, 0, 1, 5);
    contract_expect_nproc(c, 1, 5, 0);
}

static void who_left_may_come_back(void **state)
{
    struct contract *c = *state;
    for (unsigned i = 0; i < 10; i++) {
        contract_enter(c, 0, 1, 5, 1);
        assert_int_equal(contract_ask(c, 1, contract_wide(1, 5, TT_EXCLUSIVE)).verdict, TT_BUSY);
        contract_release(c, 0, 1, 5);
    }
    contract_expect_nproc(c, 1, 5, 0);
}

/* ---- Peek ---- */

static void a_peek_reports_and_joins_nothing(void **state)
{
    struct contract *c = *state;
    contract_store(c, 0, tt_result(1, 5, TT_LOWER, -4, 3));
    contract_store(c, 0, tt_result(1, 5, TT_UPPER, 6, 0));
    contract_enter(c, 0, 1, 5, 1);
    contract_enter(c, 1, 1, 8, 1);
    contract_enter(c, 2, 1, 8, 2);
    for (unsigned i = 0; i < 3; i++) {
        struct tt_peeked here = contract_peek(c, 1, 5), deeper = contract_peek(c, 1, 8);
        assert_int_equal(here.lower, -4);
        assert_int_equal(here.upper, 6);
        assert_int_equal(here.depth, 5);
        assert_int_equal(here.move, 3);
        assert_int_equal(here.nproc, 1);
        assert_int_equal(deeper.depth, 5); /* of the entry */
        assert_int_equal(deeper.nproc, 2); /* of the depth asked */
    }
    assert_int_equal(contract_ask(c, 0, contract_wide(1, 5, TT_EXCLUSIVE)).verdict, TT_OPEN);
}

static void a_peek_of_the_unknown_says_so(void **state)
{
    struct contract *c = *state;
    struct tt_peeked peeked = contract_peek(c, 1, 5);
    assert_int_equal(peeked.lower, TT_SCORE_MIN);
    assert_int_equal(peeked.upper, TT_SCORE_MAX);
    assert_int_equal(peeked.depth, 0);
    assert_int_equal(peeked.move, 0);
    assert_int_equal(peeked.nproc, 0);
}

/* ---- the two structures live apart ---- */

/* On a table of one bucket. */
static void evicting_a_result_leaves_nproc_exact(void **state)
{
    struct contract *c = *state;
    contract_store(c, 0, tt_result(64, 1, TT_EXACT, 7, 3));
    contract_enter(c, 0, 64, 9, 1);
    contract_enter(c, 1, 64, 9, 2);
    for (uint64_t key = 2; key < 40; key++) {
        contract_enter(c, 2, key * 64, 20, 1);
        contract_store(c, 2, tt_result(key * 64, 20, TT_EXACT, 7, 3));
    }
    assert_int_equal(contract_peek(c, 64, 1).move, 0); /* evicted */
    contract_expect_nproc(c, 64, 9, 2);
    assert_int_equal(contract_ask(c, 3, contract_wide(64, 9, TT_EXCLUSIVE)).verdict, TT_BUSY);
    contract_store(c, 0, tt_result(64, 9, TT_EXACT, 7, 3));
    contract_expect_nproc(c, 64, 9, 1);
    contract_release(c, 1, 64, 9);
    contract_expect_nproc(c, 64, 9, 0);
}

static void a_full_inflight_table_opens_without_counting(void **state)
{
    struct contract *c = *state;
    uint64_t beyond = UINT64_C(64) * CONTRACT_TRIED;
    if (c->driver->is_unbounded) {
        skip();
    }
    unsigned entries = 0, room = c->driver->most > 0 ? c->driver->most : CONTRACT_ROOM;
    for (uint64_t i = 0; i < CONTRACT_TRIED; i++) {
        unsigned asker = i % 4 == 1 || i % 4 == 2 ? 0 : 3; /* a shard lets none have all */
        struct tt_answer answer = contract_ask(c, asker, contract_wide(i * 64, 5, 0));
        assert_int_equal(answer.verdict, TT_OPEN);
        assert_true(answer.nproc == 1 || (answer.nproc == 0 && entries >= room));
        entries += answer.nproc;
    }
    contract_enter(c, 0, beyond, 5, 0);
    contract_enter(c, 1, 64, 5, 1); /* counts the other, not itself */
    contract_enter(c, 0, 64, 5, 1); /* a holder stays one */
    contract_expect_nproc(c, beyond, 5, 0);
    assert_int_equal(c->driver->entries(c->table), entries);
    assert_true(c->driver->most == 0 || entries == c->driver->most);
    assert_int_equal(contract_ask(c, 1, contract_wide(64, 5, TT_EXCLUSIVE)).verdict, TT_BUSY);
    contract_release(c, 0, beyond, 5);
    contract_store(c, 0, tt_result(beyond, 5, TT_EXACT, 7, 3));
    contract_expect_cut(c, contract_wide(beyond, 5, TT_STRICT), 7);
    contract_expect_nproc(c, 64, 5, 1);
    contract_release(c, 0, 128, 5);
    contract_enter(c, 1, 128, 5, 1); /* room again */
    contract_release(c, 1, 128, 5);
    for (uint64_t i = 0; i < CONTRACT_TRIED; i++) {
        contract_release(c, 0, i * 64, 5);
        contract_release(c, 3, i * 64, 5);
    }
    assert_int_equal(c->driver->entries(c->table), 0);
}

#endif
