/* Sessions and operations of the shard's core. Jobs: test_ttcore_jobs.c; bad input and random
 * streams: test_ttcore_abuse.c. */
#include "tests/support/test_ttcore.h"

#include "common/rng.h"

/* ---- sessions ---- */

static void hello_is_answered_by_welcome(void **state)
{
    struct bed *bed = *state;
    bed_hello_as(bed, "a", (struct proto_hello){.request = 31, .role = PROTO_CLIENT});
    const struct proto_welcome welcome = bed_seen(bed, "a", PROTO_WELCOME)->welcome;
    assert_int_not_equal(welcome.session, 0);
    assert_int_equal(welcome.request, 31);
    assert_int_equal(welcome.boot, 77);
    assert_int_equal(welcome.heartbeat_ms, 1000);
    assert_int_equal(welcome.batch_max, PROTO_BATCH_MAX);
    assert_int_equal(welcome.jobs, 0);
    assert_int_equal(bed_figures(bed).sessions, 1);
}

static void hello_again_keeps_the_session(void **state)
{
    struct bed *bed = *state;
    uint32_t id = bed_hello(bed, "a", PROTO_CLIENT);
    bed_ask(bed, "a", bed_wide(1, 4, 0, 0));
    assert_int_equal(bed_hello(bed, "a", PROTO_WORKER), id);
    assert_int_equal(bed_figures(bed).sessions, 1);
    assert_int_equal(bed_figures(bed).workers, 1);
    assert_int_equal(bed_figures(bed).inflight_entries, 1);
}

static void hello_of_another_instance_drops_in_flight_entries(void **state)
{
    struct bed *bed = *state;
    uint32_t id = bed_hello(bed, "a", PROTO_CLIENT);
    bed_ask(bed, "a", bed_wide(1, 4, 0, 0));
    bed_hello_as(bed, "a", (struct proto_hello){.role = PROTO_CLIENT, .instance = 999});
    assert_int_equal(bed_seen(bed, "a", PROTO_WELCOME)->welcome.session, id);
    assert_int_equal(bed_figures(bed).inflight_entries, 0);
}

static void hello_of_another_namespace_drops_nothing(void **state)
{
    struct bed *bed = *state;
    bed_hello(bed, "a", PROTO_CLIENT);
    bed_ask(bed, "a", bed_wide(1, 4, 0, 0));
    bed_hello_as(bed, "a",
                 (struct proto_hello){.role = PROTO_CLIENT, .instance = 'a', .namespace_id = 5});
    assert_int_equal(bed_figures(bed).inflight_entries, 1);
}

static void unknown_route_must_say_hello(void **state)
{
    struct bed *bed = *state;
    bed_say(bed, "a", (struct proto_message){.type = PROTO_HEARTBEAT, .heartbeat = {4711}});
    bed_expect_error(bed, "a", PROTO_ERR_SESSION);
    assert_int_equal(bed->seen.error.request, 4711);
    bed_post(bed, "a", 1);
    bed_expect_error(bed, "a", PROTO_ERR_SESSION);
    bed_bye(bed, "a");
    bed_expect_error(bed, "a", PROTO_ERR_SESSION);
    assert_int_equal(bed_figures(bed).no_session, 3);
    assert_int_equal(bed_figures(bed).sessions, 0);
}

static void heartbeat_is_echoed(void **state)
{
    struct bed *bed = *state;
    bed_hello(bed, "a", PROTO_CLIENT);
    bed_say(bed, "a", (struct proto_message){.type = PROTO_HEARTBEAT, .heartbeat = {4711}});
    assert_int_equal(bed_seen(bed, "a", PROTO_HEARTBEAT)->heartbeat.request, 4711);
}

static void silent_session_expires_and_leaves_its_nodes(void **state)
{
    struct bed *bed = *state;
    bed_hello(bed, "a", PROTO_CLIENT);
    bed_hello(bed, "b", PROTO_CLIENT);
    bed_ask(bed, "a", bed_wide(1, 4, 0, 0));
    bed_ask(bed, "a", bed_wide(2, 4, 0, 1));
    bed_ask(bed, "b", bed_wide(1, 4, 0, 0));
    bed_wait(bed, EXPIRY_US - 100000);
    assert_int_equal(bed_figures(bed).sessions, 2);
    bed_heartbeat(bed, "b");
    bed_wait(bed, 100000);
    assert_int_equal(bed_figures(bed).sessions, 1);
    assert_int_equal(bed_figures(bed).sessions_expired, 1);
    assert_int_equal(bed_figures(bed).inflight_expired, 2);
    assert_int_equal(bed_figures(bed).inflight_entries, 1);
    assert_int_equal(bed_peek(bed, "b", 1, 4).nproc, 1);
    bed_heartbeat(bed, "a");
    bed_expect_error(bed, "a", PROTO_ERR_SESSION);
}

static void every_message_renews_a_session(void **state)
{
    struct bed *bed = *state;
    bed_hello(bed, "a", PROTO_CLIENT);
    for (unsigned i = 0; i < 20; i++) {
        bed_wait(bed, HEARTBEAT_US);
        bed_release(bed, "a", (struct tt_release){i, 4, 0});
    }
    assert_int_equal(bed_figures(bed).sessions, 1);
}

static void a_shard_that_slept_gives_time_to_catch_up(void **state)
{
    struct bed *bed = *state;
    bed_hello(bed, "a", PROTO_CLIENT);
    bed->now_us += 60 * HEARTBEAT_US;
    bed_event(bed, TTCORE_TICK);
    assert_int_equal(bed_figures(bed).sessions, 1);
    bed_heartbeat(bed, "a"); /* it had waited in the queue */
    bed_seen(bed, "a", PROTO_HEARTBEAT);
    bed_wait(bed, EXPIRY_US);
    assert_int_equal(bed_figures(bed).sessions, 0);
}

static void time_that_steps_back_is_no_time(void **state)
{
    struct bed *bed = *state;
    bed->now_us = 10 * HEARTBEAT_US;
    bed_hello(bed, "a", PROTO_CLIENT);
    bed->now_us = HEARTBEAT_US;
    bed_ask(bed, "a", bed_wide(1, 4, 0, 0));
    bed_event(bed, TTCORE_TICK);
    assert_int_equal(bed_figures(bed).sessions, 1);
    assert_int_equal(bed_figures(bed).inflight_entries, 1);
}

static void bye_ends_a_session_at_once(void **state)
{
    struct bed *bed = *state;
    bed_hello(bed, "a", PROTO_CLIENT);
    bed_ask(bed, "a", bed_wide(1, 4, 0, 0));
    bed_bye(bed, "a");
    assert_int_equal(bed->actions.messages, 0);
    assert_int_equal(bed_figures(bed).sessions, 0);
    assert_int_equal(bed_figures(bed).inflight_entries, 0);
    assert_int_equal(bed_figures(bed).inflight_expired, 0);
}

static void session_ids_are_not_reused(void **state)
{
    struct bed *bed = *state;
    uint32_t last = 0;
    for (unsigned i = 0; i < 100; i++) {
        uint32_t id = bed_hello(bed, "a", PROTO_CLIENT);
        assert_int_not_equal(id, 0);
        assert_int_not_equal(id, last);
        last = id;
        bed_bye(bed, "a");
    }
}

static void stop_says_bye_to_all(void **state)
{
    struct bed *bed = *state;
    bed_hello(bed, "a", PROTO_CLIENT);
    bed_hello(bed, "front", PROTO_FRONT);
    bed_post(bed, "front", 1);
    bed_event(bed, TTCORE_STOP);
    bed_seen(bed, "a", PROTO_BYE);
    bed_seen(bed, "front", PROTO_BYE);
    assert_int_equal(bed_figures(bed).sessions, 0);
    assert_int_equal(bed_figures(bed).jobs, 0);
    bed_heartbeat(bed, "a");
    bed_expect_error(bed, "a", PROTO_ERR_SESSION);
}

/* ---- operations ---- */

static void two_sessions_see_each_other(void **state)
{
    struct bed *bed = *state;
    bed_hello(bed, "a", PROTO_CLIENT);
    bed_hello(bed, "b", PROTO_CLIENT);
    struct tt_answer open = bed_ask(bed, "a", bed_wide(1, 4, TT_EXCLUSIVE, 0));
    assert_int_equal(open.verdict, TT_OPEN);
    assert_int_equal(open.nproc, 1);
    assert_int_equal(bed_ask(bed, "b", bed_wide(1, 4, TT_EXCLUSIVE, 0)).verdict, TT_BUSY);
    open = bed_ask(bed, "b", bed_wide(1, 4, 0, 0));
    assert_int_equal(open.verdict, TT_OPEN);
    assert_int_equal(open.nproc, 2);
    assert_int_equal(bed_ask(bed, "b", bed_wide(1, 5, TT_EXCLUSIVE, 0)).verdict, TT_OPEN);
    assert_int_equal(bed_figures(bed).busy, 1);
    assert_int_equal(bed_figures(bed).opens, 3);
}

static void slots_of_one_session_count_apart(void **state)
{
    struct bed *bed = *state;
    bed_hello(bed, "a", PROTO_CLIENT);
    bed_ask(bed, "a", bed_wide(1, 4, TT_EXCLUSIVE, 0));
    assert_int_equal(bed_ask(bed, "a", bed_wide(1, 4, TT_EXCLUSIVE, 1)).verdict, TT_BUSY);
    assert_int_equal(bed_ask(bed, "a", bed_wide(1, 4, 0, 1)).nproc, 2);
}

static void repeated_operations_change_nothing(void **state)
{
    struct bed *bed = *state;
    bed_hello(bed, "a", PROTO_CLIENT);
    bed_hello(bed, "b", PROTO_CLIENT);
    bed_ask(bed, "b", bed_wide(1, 4, 0, 0));
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(bed_ask(bed, "a", bed_wide(1, 4, 0, 0)).nproc, 2);
    }
    for (unsigned i = 0; i < 3; i++) {
        bed_release(bed, "a", (struct tt_release){1, 4, 0});
        assert_int_equal(bed_peek(bed, "a", 1, 4).nproc, 1);
    }
    for (unsigned i = 0; i < 3; i++) {
        bed_store(bed, "b", (struct tt_store){1, 33, 4, TT_EXACT, 12, 0});
        assert_int_equal(bed_peek(bed, "a", 1, 4).nproc, 0);
    }
    bed_release(bed, "a", (struct tt_release){99, 4, 0});
    assert_int_equal(bed_figures(bed).inflight_entries, 0);
}

static void stored_result_cuts(void **state)
{
    struct bed *bed = *state;
    bed_hello(bed, "a", PROTO_CLIENT);
    bed_hello(bed, "b", PROTO_CLIENT);
    bed_store(bed, "a", (struct tt_store){1, -33, 4, TT_EXACT, 12, 0});
    struct tt_answer cut = bed_ask(bed, "b", bed_wide(1, 4, TT_EXCLUSIVE, 0));
    assert_int_equal(cut.verdict, TT_CUT);
    assert_int_equal(cut.score, -33);
    assert_int_equal(cut.move, 12);
    struct tt_peeked peeked = bed_peek(bed, "b", 1, 4);
    assert_int_equal(peeked.lower, -33);
    assert_int_equal(peeked.upper, -33);
    assert_int_equal(peeked.depth, 4);
    assert_int_equal(bed_figures(bed).cuts, 1);
}

static void keys_of_two_namespaces_never_meet(void **state)
{
    struct bed *bed = *state;
    bed_hello_as(bed, "a", (struct proto_hello){.role = PROTO_CLIENT, .namespace_id = 1});
    bed_hello_as(bed, "b", (struct proto_hello){.role = PROTO_CLIENT, .namespace_id = 2});
    bed_hello_as(bed, "c", (struct proto_hello){.role = PROTO_CLIENT, .namespace_id = 1});
    uint64_t one[] = {1 ^ rng_mix(1), 7 ^ rng_mix(1)}, two[] = {1 ^ rng_mix(2), 7 ^ rng_mix(2)};
    bed_store(bed, "a", (struct tt_store){one[0], 33, 4, TT_EXACT, 12, 0});
    bed_ask(bed, "a", bed_wide(one[1], 4, 0, 0));
    assert_int_equal(bed_ask(bed, "b", bed_wide(two[0], 4, 0, 0)).verdict, TT_OPEN);
    assert_int_equal(bed_ask(bed, "b", bed_wide(two[1], 4, TT_EXCLUSIVE, 0)).nproc, 1);
    assert_int_equal(bed_ask(bed, "c", bed_wide(one[0], 4, 0, 0)).verdict, TT_CUT);
    assert_int_equal(bed_ask(bed, "c", bed_wide(one[1], 4, TT_EXCLUSIVE, 0)).verdict, TT_BUSY);
    assert_int_equal(bed_ask(bed, "b", bed_wide(one[0], 4, 0, 0)).verdict, TT_CUT); /* as sent */
}

static void batch_is_answered_in_order(void **state)
{
    enum { N = PROTO_BATCH_MAX };
    struct bed *bed = *state;
    static struct tt_ask ask[N];
    bed_hello(bed, "a", PROTO_CLIENT);
    bed_hello(bed, "b", PROTO_CLIENT);
    for (unsigned i = 0; i < N; i++) {
        ask[i] = bed_wide(rng_mix(i + 1), 200, TT_EXCLUSIVE, (uint16_t)(UINT16_MAX - i));
        if (i % 3 == 0) {
            bed_store(
                bed, "a",
                (struct tt_store){ask[i].key, (int16_t)(-20000 - i), 200, TT_UPPER, UINT16_MAX, 0});
        } else if (i % 3 == 1) {
            bed_ask(bed, "b", ask[i]);
        }
    }
    struct proto_message m = {.type = PROTO_RETRIEVE_ASK};
    m.retrieve_ask.request = UINT32_MAX;
    m.retrieve_ask.list = (struct proto_asks){N, ask};
    bed_say(bed, "a", m);
    const struct proto_message *answer = bed_seen(bed, "a", PROTO_RETRIEVE_ANSWER);
    assert_int_equal(answer->retrieve_answer.request, UINT32_MAX);
    assert_int_equal(answer->retrieve_answer.list.count, N);
    for (unsigned i = 0; i < N; i++) {
        static const enum tt_verdict expected[] = {TT_CUT, TT_BUSY, TT_OPEN};
        const struct tt_answer *one = &answer->retrieve_answer.list.at[i];
        assert_int_equal(one->verdict, expected[i % 3]);
        if (i % 3 == 0) {
            assert_int_equal(one->score, (int16_t)(-20000 - i));
        }
    }
    assert_int_equal(bed->actions.dropped, 0);
}

static void empty_batch_is_answered(void **state)
{
    struct bed *bed = *state;
    bed_hello(bed, "a", PROTO_CLIENT);
    bed_say(bed, "a", (struct proto_message){.type = PROTO_RETRIEVE_ASK});
    assert_int_equal(bed_seen(bed, "a", PROTO_RETRIEVE_ANSWER)->retrieve_answer.list.count, 0);
    bed_say(bed, "a", (struct proto_message){.type = PROTO_STORE_HASH});
    assert_int_equal(bed->actions.messages, 0);
}

static void old_entries_expire(void **state)
{
    struct bed *bed = *state;
    bed_hello(bed, "a", PROTO_CLIENT);
    bed_ask(bed, "a", bed_wide(1, 4, 0, 0));
    for (unsigned i = 0; i < 30; i++) {
        bed_wait(bed, 2 * HEARTBEAT_US);
        bed_heartbeat(bed, "a");
        if (i == 14) {
            bed_ask(bed, "a", bed_wide(2, 4, 0, 0));
        }
        assert_int_equal(bed_figures(bed).inflight_entries, i < 14 ? 1 : i < 29 ? 2 : 1);
    }
    assert_int_equal(bed_figures(bed).inflight_expired, 1);
    assert_int_equal(bed_figures(bed).sessions, 1);
}

static void full_inflight_table_still_opens(void **state)
{
    struct ttcore_options options = bed_options();
    (void)state;
    options.inflight_max = 2;
    struct bed *bed = bed_open(&options);
    bed_hello(bed, "a", PROTO_CLIENT);
    bed_hello(bed, "b", PROTO_CLIENT); /* half is for a user */
    bed_hello(bed, "c", PROTO_CLIENT);
    for (uint64_t key = 0; key < 5; key++) {
        const char *who = key == 0 ? "a" : key == 1 ? "b" : "c";
        assert_int_equal(bed_ask(bed, who, bed_wide(key, 4, 0, 0)).verdict, TT_OPEN);
    }
    assert_int_equal(bed_figures(bed).inflight_entries, 2);
    assert_int_equal(bed_figures(bed).inflight_refused, 3);
    bed_close(bed);
}

static void a_session_with_its_quota_is_served_uncounted(void **state)
{
    struct ttcore_options options = bed_options();
    (void)state;
    options.session_inflight_max = 3;
    struct bed *bed = bed_open(&options);
    bed_hello(bed, "greedy", PROTO_CLIENT);
    bed_hello(bed, "good", PROTO_CLIENT);
    for (uint64_t key = 0; key < 9; key++) {
        struct tt_answer answer = bed_ask(bed, "greedy", bed_wide(key, 4, TT_EXCLUSIVE, 0));
        assert_int_equal(answer.verdict, TT_OPEN);
        assert_int_equal(answer.nproc, key < 3);
    }
    assert_int_equal(bed_figures(bed).inflight_over_quota, 6);
    assert_int_equal(bed_figures(bed).inflight_refused, 0);
    assert_int_equal(bed_figures(bed).session_inflight_max, 3);
    assert_int_equal(bed_ask(bed, "good", bed_wide(0, 4, TT_EXCLUSIVE, 0)).verdict, TT_BUSY);
    assert_int_equal(bed_ask(bed, "good", bed_wide(8, 4, TT_EXCLUSIVE, 0)).nproc, 1);
    assert_int_equal(bed_ask(bed, "greedy", bed_wide(8, 4, TT_EXCLUSIVE, 0)).verdict, TT_BUSY);
    bed_store(bed, "greedy",
              (struct tt_store){7, 5, 4, TT_EXACT, 0, 0}); /* uncounted, not unheard */
    assert_int_equal(bed_ask(bed, "good", bed_wide(7, 4, 0, 0)).verdict, TT_CUT);
    bed_release(bed, "greedy", (struct tt_release){1, 4, 0});
    assert_int_equal(bed_ask(bed, "greedy", bed_wide(6, 4, 0, 0)).nproc, 1);
    bed_bye(bed, "greedy");
    bed_hello(bed, "greedy", PROTO_CLIENT);
    assert_int_equal(bed_ask(bed, "greedy", bed_wide(5, 4, 0, 0)).nproc, 1);
    bed_close(bed);
}

/* ---- NODE_DONE ---- */

static void wants_done(struct bed *bed, const char *who, uint64_t namespace_id)
{
    bed_hello_as(bed, who,
                 (struct proto_hello){.role = PROTO_WORKER,
                                      .flags = PROTO_WANTS_NODE_DONE,
                                      .namespace_id = namespace_id,
                                      .instance = (uint8_t)*who});
}

static void other_holders_get_a_completion_notice(void **state)
{
    struct bed *bed = *state;
    wants_done(bed, "a", 3);
    wants_done(bed, "b", 3);
    bed_hello_as(bed, "quiet", (struct proto_hello){.role = PROTO_WORKER, .namespace_id = 3});
    wants_done(bed, "other", 3);
    bed_ask(bed, "a", bed_wide(42, 9, 0, 0));
    bed_ask(bed, "b", bed_wide(42, 9, 0, 0));
    bed_ask(bed, "b", bed_wide(42, 9, 0, 1));
    bed_ask(bed, "quiet", bed_wide(42, 9, 0, 0));
    bed_ask(bed, "other", bed_wide(42, 8, 0, 0));
    bed_ask(bed, "a", bed_wide(42, 9, 0, 7));
    bed_release(bed, "a", (struct tt_release){42, 9, 0});
    bed_store(bed, "a", (struct tt_store){42, -31, 9, TT_UPPER, 1804, 7});
    assert_int_equal(bed->actions.messages, 1);
    const struct proto_stores list = bed_seen(bed, "b", PROTO_NODE_DONE)->node_done.list;
    assert_int_equal(list.count, 1);
    assert_int_equal(list.at[0].key, 42);
    assert_int_equal(list.at[0].depth, 9);
    assert_int_equal(list.at[0].score, -31);
    assert_int_equal(list.at[0].bound, TT_UPPER);
    assert_int_equal(list.at[0].move, 1804);
    assert_int_equal(list.at[0].slot, 0); /* the holder concerns nobody */
    assert_int_equal(bed_figures(bed).node_dones, 1);
}

/* Where the table keeps the result is not what it proves: clients refuse a bound above EXACT. */
static void notice_of_a_strict_result_has_a_bound_alone(void **state)
{
    struct bed *bed = *state;
    wants_done(bed, "a", 0);
    wants_done(bed, "b", 0);
    bed_ask(bed, "a", bed_wide(42, 9, 0, 0));
    bed_ask(bed, "b", bed_wide(42, 9, 0, 0));
    bed_store(bed, "a", (struct tt_store){42, -31, 9, TT_LOWER | TT_BESIDE, 1804, 0});
    const struct proto_stores list = bed_seen(bed, "b", PROTO_NODE_DONE)->node_done.list;
    assert_int_equal(list.count, 1);
    assert_int_equal(list.at[0].bound, TT_LOWER);
    assert_true(proto_results_in_range(&list, false));
}

static void other_slots_of_the_storing_session_get_it_too(void **state)
{
    struct bed *bed = *state;
    wants_done(bed, "a", 0);
    bed_ask(bed, "a", bed_wide(42, 9, 0, 0));
    bed_ask(bed, "a", bed_wide(42, 9, 0, 1));
    bed_store(bed, "a", (struct tt_store){42, 1, 9, TT_EXACT, 0, 0});
    bed_seen(bed, "a", PROTO_NODE_DONE);
    bed_store(bed, "a", (struct tt_store){42, 1, 9, TT_EXACT, 0, 1});
    assert_int_equal(bed->actions.messages, 0);
}

static void one_message_has_all_nodes_of_a_session(void **state)
{
    enum { N = 300 };
    struct bed *bed = *state;
    static struct tt_store store[N];
    wants_done(bed, "a", 0);
    wants_done(bed, "b", 0);
    for (uint16_t i = 0; i < N; i++) {
        store[i] = (struct tt_store){1000 + i, 1, 9, TT_EXACT, 0, i};
        bed_ask(bed, "a", bed_wide(1000 + i, 9, 0, i));
        bed_ask(bed, "b", bed_wide(1000 + i, 9, 0, i));
    }
    struct proto_message m = {.type = PROTO_STORE_HASH};
    m.store_hash.list = (struct proto_stores){N, store};
    bed_say(bed, "a", m);
    const struct proto_stores list = bed_seen(bed, "b", PROTO_NODE_DONE)->node_done.list;
    assert_int_equal(list.count, N);
    for (unsigned i = 0; i < N; i++) {
        assert_int_equal(list.at[i].key, 1000 + i);
    }
}

static void repeated_results_of_a_node_come_once_the_last(void **state)
{
    struct bed *bed = *state;
    struct tt_store store[] = {
        {42, 10, 9, TT_LOWER, 1, 0}, {43, 5, 9, TT_EXACT, 4, 0},  {42, 11, 8, TT_LOWER, 2, 0},
        {42, 20, 9, TT_LOWER, 2, 1}, {42, 30, 9, TT_EXACT, 3, 2},
    };
    const char *const who[] = {"a", "b", "c"};
    for (unsigned i = 0; i < 3; i++) {
        wants_done(bed, who[i], 6);
        bed_ask(bed, who[i], bed_wide(42, 9, 0, 0));
        bed_ask(bed, who[i], bed_wide(43, 9, 0, 0));
    }
    struct proto_message m = {.type = PROTO_STORE_HASH};
    m.store_hash.list = (struct proto_stores){5, store};
    bed_say(bed, "a", m);
    assert_int_equal(bed->actions.messages, 2);
    for (unsigned i = 1; i < 3; i++) {
        const struct proto_stores list = bed_seen(bed, who[i], PROTO_NODE_DONE)->node_done.list;
        assert_int_equal(list.count, 2);
        assert_int_equal(list.at[0].key, 42);
        assert_int_equal(list.at[0].depth, 9);
        assert_int_equal(list.at[0].score, 30);
        assert_int_equal(list.at[0].bound, TT_EXACT);
        assert_int_equal(list.at[0].move, 3);
        assert_int_equal(list.at[1].key, 43);
        assert_int_equal(list.at[1].score, 5);
    }
    assert_int_equal(bed_figures(bed).node_dones, 4);
    bed_say(bed, "a", m); /* nothing of the last batch is left over */
    assert_int_equal(bed_seen(bed, "b", PROTO_NODE_DONE)->node_done.list.count, 2);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, bed_setup, bed_teardown)
    const struct CMUnitTest tests[] = {
        T(hello_is_answered_by_welcome),
        T(hello_again_keeps_the_session),
        T(hello_of_another_instance_drops_in_flight_entries),
        T(hello_of_another_namespace_drops_nothing),
        T(unknown_route_must_say_hello),
        T(heartbeat_is_echoed),
        T(silent_session_expires_and_leaves_its_nodes),
        T(every_message_renews_a_session),
        T(a_shard_that_slept_gives_time_to_catch_up),
        T(time_that_steps_back_is_no_time),
        T(bye_ends_a_session_at_once),
        T(session_ids_are_not_reused),
        T(stop_says_bye_to_all),
        T(two_sessions_see_each_other),
        T(slots_of_one_session_count_apart),
        T(repeated_operations_change_nothing),
        T(stored_result_cuts),
        T(keys_of_two_namespaces_never_meet),
        T(batch_is_answered_in_order),
        T(empty_batch_is_answered),
        T(old_entries_expire),
        T(full_inflight_table_still_opens),
        T(a_session_with_its_quota_is_served_uncounted),
        T(other_holders_get_a_completion_notice),
        T(notice_of_a_strict_result_has_a_bound_alone),
        T(other_slots_of_the_storing_session_get_it_too),
        T(one_message_has_all_nodes_of_a_session),
        T(repeated_results_of_a_node_come_once_the_last),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
