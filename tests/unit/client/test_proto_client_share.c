/* The client and the result broadcast: shards in turns, tables, what others tell. */
#include "tests/support/test_proto_fake.h"

static struct tt_store given[2] = {{5, 30, 1, TT_LOWER, 9, 0}, {6, -7, 2, TT_EXACT, 8, 0}};

/* The shard that a message with results went to. */
static unsigned share(struct fake *f, unsigned count)
{
    assert_int_equal(client_share(f->client, given, count, 0, f->now), count);
    const struct proto_share *sent = &fake_expect(f, PROTO_SHARE)->share;
    assert_int_equal(sent->list.count, count);
    assert_int_equal(sent->list.at[count - 1].score, given[count - 1].score);
    assert_int_equal(sent->load, 0);
    assert_null(fake_next(f));
    return f->message_shard;
}

static void results_go_through_the_shards_in_turns(void **state)
{
    enum { SHARDS = 3, ROUNDS = 4 };
    struct fake *f = fake_open(SHARDS);
    unsigned times[SHARDS] = {0}, order[SHARDS];
    (void)state;
    for (unsigned i = 0; i < SHARDS * ROUNDS; i++) {
        unsigned shard = share(f, 2);
        times[shard]++;
        if (i < SHARDS) {
            order[i] = shard;
        }
        assert_int_equal(shard, order[i % SHARDS]);
    }
    for (unsigned s = 0; s < SHARDS; s++) {
        assert_int_equal(times[s], ROUNDS);
    }
    assert_int_equal(client_counters(f->client)->shared, 2 * SHARDS * ROUNDS);
    assert_int_equal(client_outstanding(f->client), 0); /* nothing is confirmed */
    fake_close(f);
}

static void few_relays_are_the_first_that_are_up(void **state)
{
    struct fake *f = fake_open(4);
    struct proto_message bye = {.type = PROTO_BYE};
    unsigned times[4] = {0};
    (void)state;
    fake_say(f, 1, &bye);
    fake_forget(f);
    for (unsigned i = 0; i < 8; i++) {
        assert_int_equal(1, client_share(f->client, given, 1, 2, f->now));
        fake_expect(f, PROTO_SHARE);
        times[f->message_shard]++;
    }
    assert_int_equal(times[0], 4);
    assert_int_equal(times[2], 4);
    for (unsigned i = 0; i < 9; i++) { /* more than there are */
        assert_int_equal(1, client_share(f->client, given, 1, 5, f->now));
        fake_expect(f, PROTO_SHARE);
        times[f->message_shard]++;
    }
    assert_int_equal(times[0] + times[2] + times[3], 17);
    assert_int_equal(times[3], 3);
    fake_close(f);
}

/* A foreign claim is no result, and has one of two scores. */
static void claims_of_others_are_taken_in_a_share_only(void **state)
{
    struct fake *f = fake_open(1);
    struct tt_store claim = {6, TT_CLAIM_BEGINS, 4, TT_CLAIM, 9, 0};
    struct proto_message m = {.type = PROTO_SHARE, .share = {7, {1, &claim}, 0}};
    (void)state;
    for (int score = TT_CLAIM_BEGINS; score <= TT_CLAIM_ENDS; score++) {
        claim.score = (int16_t)score;
        fake_say(f, 0, &m);
        assert_int_equal(f->shared, score + 1);
        assert_int_equal(f->last_done.bound, TT_CLAIM);
        assert_int_equal(f->last_done.score, score);
    }
    claim.score = 2;
    fake_say(f, 0, &m);
    assert_int_equal(f->shared, 2);
    assert_int_equal(client_counters(f->client)->malformed, 1);
    claim.score = TT_CLAIM_BEGINS;
    m = (struct proto_message){.type = PROTO_NODE_DONE, .node_done = {{1, &claim}}};
    fake_say(f, 0, &m);
    assert_int_equal(f->dones, 0);
    assert_int_equal(client_counters(f->client)->malformed, 2);
    fake_close(f);
}

static void results_go_through_no_shard_that_is_down(void **state)
{
    struct fake *f = fake_open(3);
    struct proto_message bye = {.type = PROTO_BYE};
    unsigned times[3] = {0};
    (void)state;
    fake_say(f, 1, &bye);
    assert_int_equal(client_shards_up(f->client), 2);
    fake_forget(f);
    for (unsigned i = 0; i < 8; i++) {
        times[share(f, 1)]++;
    }
    assert_int_equal(times[0], 4);
    assert_int_equal(times[2], 4);
    fake_say(f, 0, &bye);
    fake_say(f, 2, &bye);
    fake_forget(f);
    assert_int_equal(client_share(f->client, given, 1, 0, f->now), 0);
    assert_null(fake_next(f));
    assert_int_equal(client_counters(f->client)->shared, 8);
    fake_close(f);
}

static void results_that_no_connection_takes_are_not_counted(void **state)
{
    struct fake *f = fake_open(1);
    (void)state;
    f->refusing[0] = true;
    assert_int_equal(client_share(f->client, given, 2, 0, f->now), 0);
    assert_int_equal(client_counters(f->client)->shared, 0);
    assert_int_equal(client_outstanding(f->client), 0);
    fake_close(f);
}

static void results_are_divided_by_the_batch_of_the_shard(void **state)
{
    static const struct tt_store many[5] = {
        {.key = 1}, {.key = 2}, {.key = 3}, {.key = 4}, {.key = 5}};
    struct fake *f = fake_open_with((struct client_options){.shards = 1});
    (void)state;
    client_tick(f->client, f->now);
    struct proto_message m = fake_welcome_of(f, 0, fake_boot(0), fake_boot(0), 7);
    m.welcome.batch_max = 2;
    fake_say(f, 0, &m);
    fake_forget(f);
    assert_int_equal(client_share(f->client, many, 5, 0, f->now), 5);
    for (unsigned from = 0; from < 5; from += 2) {
        const struct proto_share *sent = &fake_expect(f, PROTO_SHARE)->share;
        assert_int_equal(sent->list.count, from < 4 ? 2 : 1);
        assert_int_equal(sent->list.at[0].key, many[from].key);
    }
    assert_null(fake_next(f));
    assert_int_equal(client_counters(f->client)->shared, 5);
    fake_close(f);
}

static void a_client_says_which_table_it_has(void **state)
{
    struct client_options options = {.shards = 1, .table_id = 0x7ab1e};
    struct fake *f = fake_open_with(options);
    (void)state;
    client_tick(f->client, f->now);
    assert_int_equal(fake_expect(f, PROTO_HELLO)->hello.table_id, 0x7ab1e);
    fake_welcome(f, 0);
    assert_true(client_share(f->client, given, 2, 0, f->now));
    assert_int_equal(fake_expect(f, PROTO_SHARE)->share.table_id, 0x7ab1e);
    fake_close(f);
}

static void results_of_others_are_handed_on_if_all_are_in_range(void **state)
{
    struct fake *f = fake_open(2);
    struct proto_message m = {.type = PROTO_SHARE};
    (void)state;
    m.share = (struct proto_share){UINT64_MAX, {2, given}, 70};
    fake_say(f, 1, &m);
    assert_int_equal(f->shared, 2);
    assert_true(f->last_table_id == UINT64_MAX);
    assert_int_equal(f->last_load, 70);
    assert_int_equal(f->last_done.score, -7);
    m.share.list.count = 1;
    m.share.load = 255; /* whatever it says */
    fake_say(f, 0, &m);
    assert_int_equal(f->last_load, 255);
    const struct client_counters *counters = client_counters(f->client);
    assert_int_equal(counters->shared_taken, 3);
    assert_int_equal(counters->shares_taken, 2);
    struct tt_store bad[2] = {given[0], given[1]};
    m.share.list = (struct proto_stores){2, bad};
    bad[1].bound = 0; /* none of them is believed */
    fake_say(f, 0, &m);
    bad[1].bound = TT_EXACT;
    bad[1].score = -32768;
    fake_say(f, 0, &m);
    assert_int_equal(f->shared, 3);
    assert_int_equal(counters->malformed, 2);
    assert_int_equal(counters->shared_taken, 3);
    assert_int_equal(counters->shares_taken, 2);
    fake_close(f);
}

/* A poll between two answers: what it says is what client_answer would. */
static void who_waits_can_see_it_without_asking(void **state)
{
    struct fake *f = fake_open(1);
    struct tt_answer answer;
    uint32_t ticket, lost;
    (void)state;
    uint32_t request = fake_ask(f, 5, &ticket);
    assert_true(client_is_waiting(f->client, ticket, f->now));
    fake_answer(f, 0, request, (struct tt_answer){.verdict = TT_OPEN, .alpha = -10, .beta = 10});
    assert_false(client_is_waiting(f->client, ticket, f->now));
    assert_int_equal(client_answer(f->client, ticket, f->now, &answer), CLIENT_READY);
    (void)fake_ask(f, 6, &lost);
    assert_true(client_is_waiting(f->client, lost, f->now));
    f->now += 60 * 1000 * 1000; /* past any time-out, without a tick */
    assert_false(client_is_waiting(f->client, lost, f->now));
    assert_int_equal(client_answer(f->client, lost, f->now, &answer), CLIENT_LOST);
    fake_close(f);
}

static void results_of_the_namespace_before_are_dropped(void **state)
{
    struct fake *f = fake_open(2);
    struct proto_message m = {.type = PROTO_SHARE, .share = {7, {2, given}, 0}};
    (void)state;
    fake_say(f, 0, &m);
    assert_int_equal(f->shared, 2);
    client_hello(f->client, PROTO_CLIENT, 0, f->now); /* the same one */
    fake_say(f, 0, &m);
    assert_int_equal(f->shared, 4);
    client_hello(f->client, PROTO_CLIENT, 77, f->now);
    fake_say(f, 0, &m);
    assert_int_equal(f->shared, 4);
    fake_welcome(f, 0);
    fake_say(f, 1, &m); /* that shard has not answered yet */
    assert_int_equal(f->shared, 4);
    fake_say(f, 0, &m);
    assert_int_equal(f->shared, 6);
    assert_int_equal(client_counters(f->client)->malformed, 0);
    fake_close(f);
}

#define T(name) cmocka_unit_test(name)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(results_go_through_the_shards_in_turns),
        T(results_go_through_no_shard_that_is_down),
        T(few_relays_are_the_first_that_are_up),
        T(claims_of_others_are_taken_in_a_share_only),
        T(results_that_no_connection_takes_are_not_counted),
        T(results_are_divided_by_the_batch_of_the_shard),
        T(a_client_says_which_table_it_has),
        T(results_of_others_are_handed_on_if_all_are_in_range),
        T(results_of_the_namespace_before_are_dropped),
        T(who_waits_can_see_it_without_asking),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
