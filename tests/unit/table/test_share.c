/* What a host tells the others: one queue, and a least depth that follows what comes and what the
 * shards say of their load. Without a shard: what would be sent is not. */
#include "tests/support/test_tt.h"

#include "worker/table/embedded.h"
#include "worker/table/share.h"

#include <string.h>

enum {
    FLOOR = 2, /* the depth of the option */
    FIRST = 3 * FEED_STEPS,
    MOST = 6 * FEED_STEPS,
    WINDOW_US = 10000,
    EACH_MAX = 1000000, /* results a second and thread that are taken without a step */
    ALL_MAX = 5700000,
    SLOTS_MAX = 8,
};

struct host {
    unsigned slots;
    struct embedded *table;
    struct embedded_port local[SLOTS_MAX];
    struct client *client;
    struct share share[SLOTS_MAX];
    uint64_t now_us;
};

static bool send_nothing(void *self, unsigned shard, const uint8_t *bytes, size_t length)
{
    (void)self, (void)shard, (void)bytes, (void)length;
    return true;
}

static struct feed *feed_of(struct host *h)
{
    return &embedded_share_queue(h->table)->feed;
}

/* What waits, which leaves the queue. */
static unsigned take_all(struct host *h, struct tt_store out[FEED_MAX])
{
    atomic_store(&feed_of(h)->due_us, 0);
    return feed_take_due(feed_of(h), h->now_us, 0, out);
}

static struct host *host_open(unsigned slots)
{
    struct host *h = calloc(1, sizeof *h);
    assert_non_null(h);
    struct client_options options = {.shards = 1, .instance = 1, .name = "test"};
    assert_int_equal(embedded_open(&h->table, 1 << 16, slots), ERR_OK);
    assert_int_equal(client_open(&options, send_nothing, h, &h->client), ERR_OK);
    for (unsigned i = 0; i < slots; i++) {
        h->local[i] = (struct embedded_port){.table = h->table, .slot = (uint16_t)i};
        h->share[i] = (struct share){.client = h->client, .local = &h->local[i], .depth = FLOOR};
    }
    h->slots = slots;
    for (unsigned i = 0; i < slots; i++) {
        share_begin(&h->share[i]);
        h->share[i].wanted = true;
    }
    feed_of(h)->window_us = h->now_us = 1000000;
    return h;
}

static void host_close(struct host *h)
{
    client_free(&h->client);
    embedded_close(&h->table);
    free(h);
}

static struct share_queue *queue_of(struct host *h)
{
    return embedded_share_queue(h->table);
}

static unsigned least(struct host *h)
{
    return atomic_load(&feed_of(h)->least);
}

/* A key whose results come `eighth` eighths of a ply later than the first of their depth. */
static uint64_t key_of(unsigned eighth, unsigned n)
{
    return (uint64_t)eighth << 61 | (n + 1);
}

static bool is_published(struct host *h, unsigned depth, unsigned eighth)
{
    struct tt_store result = tt_result(key_of(eighth, 0), (uint8_t)depth, TT_EXACT, 7, 1);
    unsigned before = h->share[0].count;
    assert_false(share_add(&h->share[0], &result));
    bool message = h->share[0].count > before;
    h->share[0].count = before;
    return message;
}

/* A message with so many results, and then the time of a window goes by. */
static void is_published_by_others(struct host *h, unsigned results, unsigned load)
{
    static struct tt_store list[CLIENT_SHARE_MAX];
    struct proto_share message = {.table_id = 1, .list = {0, list}, .load = (uint8_t)load};
    h->now_us += WINDOW_US;
    do {
        message.list.count = results < CLIENT_SHARE_MAX ? results : CLIENT_SHARE_MAX;
        share_take(&h->share[0], &message,
                   h->now_us - (results > CLIENT_SHARE_MAX ? WINDOW_US / 2 : 0), h->now_us + 1);
        results -= message.list.count;
    } while (results > 0);
}

/* So much again and again, until it is due to be looked at. */
static void windows(struct host *h, unsigned n, unsigned results, unsigned load)
{
    for (unsigned i = 0; i < n; i++) {
        is_published_by_others(h, results, load);
    }
}

static const unsigned too_many = EACH_MAX / 100 * 11 / 10; /* in a window, of one thread */

static void too_many_results_raise_the_least_depth_by_eighths(void **state)
{
    (void)state;
    struct host *h = host_open(1);
    assert_int_equal(least(h), FIRST);
    unsigned begin = least(h);
    for (unsigned i = 1; i <= 3; i++) {
        windows(h, 1, too_many, 0);
        assert_int_equal(least(h), begin + i);
    }
    windows(h, 100, too_many, 0);
    assert_int_equal(least(h), MOST);
    host_close(h);
}

static void few_results_lower_it_to_the_option(void **state)
{
    (void)state;
    struct host *h = host_open(1);
    windows(h, 100, 1, 0);
    assert_int_equal(least(h), FLOOR * FEED_STEPS);
    assert_true(is_published(h, FLOOR, 0));
    assert_false(is_published(h, FLOOR - 1, 7));
    windows(h, 5, too_many, 0);
    windows(h, 100, 1, 0);
    assert_int_equal(least(h), FLOOR * FEED_STEPS);
    host_close(h);
}

/* Where a node of a depth takes a small part of the time, only deeper ones are published. */
static void at_selection_full_deeper_results_are_published(void **state)
{
    (void)state;
    struct host *h = host_open(1);
    h->local[0].is_full = true;
    share_begin(&h->share[0]);
    assert_int_equal(least(h), 8 * FEED_STEPS);
    windows(h, 1, 0, 0);
    assert_int_equal(least(h), 8 * FEED_STEPS);
    windows(h, 8 * FEED_STEPS, too_many, 0);
    assert_int_equal(least(h), 14 * FEED_STEPS);
    h->local[0].is_full = false;
    share_begin(&h->share[0]);
    assert_int_equal(least(h), FIRST);
    host_close(h);
}

static void between_few_and_too_many_it_stays(void **state)
{
    (void)state;
    struct host *h = host_open(1);
    windows(h, 2, too_many, 0);
    unsigned before = least(h);
    windows(h, 20, EACH_MAX / 100 * 9 / 10, 0);
    assert_int_equal(least(h), before);
    host_close(h);
}

static void a_busy_relay_raises_it_whatever_comes(void **state)
{
    (void)state;
    struct host *h = host_open(1);
    windows(h, 1, 1, 0);
    unsigned before = least(h);
    windows(h, 4, 1, PROTO_LOAD_BUSY);
    assert_int_equal(least(h), before + 4);
    windows(h, 20, 1, PROTO_LOAD_BUSY - 1); /* neither free ... */
    windows(h, 20, 1, PROTO_LOAD_BUSY / 2);
    assert_int_equal(least(h), before + 4);
    windows(h, 2, 1, PROTO_LOAD_BUSY / 2 - 1); /* ... nor busy */
    assert_int_equal(least(h), before + 2);
    host_close(h);
}

/* The highest load of a window counts, not the last one; nor does a window before count. */
static void the_highest_load_of_a_window_counts(void **state)
{
    (void)state;
    struct host *h = host_open(1);
    struct tt_store result = tt_result(1, 3, TT_EXACT, 7, 1);
    struct proto_share message = {.table_id = 1, .list = {1, &result}, .load = 100};
    windows(h, 1, 1, 0);
    unsigned before = least(h);
    share_take(&h->share[0], &message, h->now_us + 1, h->now_us + 1);
    assert_int_equal(least(h), before); /* it is not over */
    windows(h, 1, 1, 0);
    assert_int_equal(least(h), before + 1);
    windows(h, 1, 1, 0);
    assert_int_equal(least(h), before);
    host_close(h);
}

static void a_host_of_more_threads_takes_more_up_to_a_bound(void **state)
{
    (void)state;
    static const unsigned most[] = {EACH_MAX, 2 * EACH_MAX, 4 * EACH_MAX, ALL_MAX};
    for (unsigned i = 0; i < 4; i++) {
        struct host *h = host_open(1u << i);
        windows(h, 1, 1, 0);
        unsigned before = least(h);
        windows(h, 2, most[i] / 100 * 19 / 20, 0);
        assert_int_equal(least(h), before);
        windows(h, 2, most[i] / 100 * 21 / 20, 0);
        assert_int_equal(least(h), before + 2);
        host_close(h);
    }
}

static void of_the_least_ply_some_eighths_are_published_by_their_keys(void **state)
{
    (void)state;
    struct host *h = host_open(1);
    atomic_store(&feed_of(h)->least, 4 * FEED_STEPS + 3);
    for (unsigned eighth = 0; eighth < FEED_STEPS; eighth++) {
        assert_false(is_published(h, 3, eighth));
        assert_int_equal(is_published(h, 4, eighth), eighth >= 3);
        assert_true(is_published(h, 5, eighth));
    }
    host_close(h);
}

static void what_no_message_can_carry_is_not_published(void **state)
{
    (void)state;
    struct host *h = host_open(1);
    assert_true(is_published(h, PROTO_RESULT_DEPTH_MAX, 0));
    for (unsigned depth = PROTO_RESULT_DEPTH_MAX + 1; depth <= TT_DEPTH_MAX; depth++) {
        assert_false(is_published(h, depth, 7));
    }
    h->share[0].depth = 0;
    share_serve(&h->share[0], true, h->now_us);
    h->share[0].wanted = false; /* nobody is there */
    assert_false(is_published(h, 5, 0));
    host_close(h);
}

/* Results of all threads, none lost and none twice, whichever of them sends. */
static void the_queue_of_a_host_is_one(void **state)
{
    (void)state;
    enum { FULL = CLIENT_SHARE_MAX };
    struct host *h = host_open(4);
    struct share_queue *q = queue_of(h);
    unsigned found = 0;
    atomic_store(&q->feed.due_us, UINT64_MAX);
    for (; found < FULL - 10; found++) {
        struct share *s = &h->share[found % 4];
        struct tt_store result = tt_result(key_of(0, found), 9, TT_EXACT, 7, 1);
        if (share_add(s, &result)) {
            assert_int_equal(s->count, SHARE_OWN_MAX);
            share_send(s, h->now_us);
            assert_int_equal(s->count, 0);
        }
    }
    for (unsigned i = 0; i < 4; i++) {
        share_send(&h->share[i], h->now_us);
    }
    bool seen[FULL] = {false};
    struct tt_store list[FEED_MAX];
    assert_int_equal(take_all(h, list), found);
    for (unsigned i = 0; i < found; i++) {
        uint64_t n = list[i].key - 1;
        assert_true(n < FULL && !seen[n]);
        seen[n] = true;
        assert_true(feed_put(&q->feed, &list[i]));
    }
    atomic_store(&q->feed.due_us, UINT64_MAX);
    for (unsigned i = 0; i < 25; i++) { /* more than there is room for */
        struct tt_store result = tt_result(key_of(0, found + i), 9, TT_EXACT, 7, 1);
        assert_false(share_add(&h->share[2], &result));
    }
    share_send(&h->share[2], h->now_us);
    assert_int_equal(take_all(h, list), 15); /* the full one has left, before it was due */
    assert_int_equal(list[14].key, key_of(0, found + 24));
    assert_true(feed_put(&q->feed, &list[14]));
    atomic_store(&q->feed.due_us, h->now_us);
    share_serve(&h->share[3], false, h->now_us); /* any thread sends what is due */
    assert_int_equal(feed_waiting(&q->feed), 0);
    assert_true(atomic_load(&q->feed.due_us) > h->now_us);
    host_close(h);
}

/* A message is of its session's namespace. Whose queue it is not sends what it found itself, until
 * nobody is left to send what is in it. */
static void the_queue_is_of_one_namespace_at_a_time(void **state)
{
    (void)state;
    struct host *h = host_open(2);
    struct share_queue *q = queue_of(h);
    h->local[0].namespace_id = 1;
    h->local[1].namespace_id = 2;
    atomic_store(&q->feed.due_us, h->now_us + 5000);
    struct tt_store result = tt_result(key_of(0, 0), 9, TT_EXACT, 7, 1);
    assert_false(share_add(&h->share[0], &result));
    share_send(&h->share[0], h->now_us);
    assert_int_equal(feed_waiting(&q->feed), 1);
    result.key++;
    for (unsigned i = 0; i < 2; i++) { /* early, and when the other's is due */
        assert_false(share_add(&h->share[1], &result));
        share_send(&h->share[1], h->now_us + i * 5000);
        assert_int_equal(h->share[1].count, 0);
        assert_int_equal(feed_waiting(&q->feed), 1);
        assert_int_equal(q->namespace_id, 1);
    }
    assert_false(share_add(&h->share[1], &result)); /* long due */
    atomic_store(&q->feed.due_us, h->now_us);
    share_send(&h->share[1], h->now_us + 2001);
    assert_int_equal(q->namespace_id, 2);
    assert_int_equal(feed_waiting(&q->feed), 0);
    host_close(h);
}

/* ---- foreign claims ---- */

static struct host *host_that_claims(void)
{
    struct host *h = host_open(1);
    h->local[0].counts_foreign = true;
    h->share[0].claims = true;
    return h;
}

static void a_claim_and_its_end_are_published(void **state)
{
    (void)state;
    struct host *h = host_that_claims();
    struct share *s = &h->share[0];
    embedded_set_table_id(h->table, 0x12345);
    assert_false(share_claim(s, 1, CLAIMS_FOREIGN_DEPTH, TT_CLAIM_BEGINS));
    assert_int_equal(s->count, 1);
    assert_int_equal(s->list[0].bound, TT_CLAIM);
    assert_int_equal(s->list[0].score, TT_CLAIM_BEGINS);
    assert_int_equal(s->list[0].move, 0x2345);
    share_send(s, h->now_us);
    assert_false(share_claim(s, 1, CLAIMS_FOREIGN_DEPTH, TT_CLAIM_ENDS));
    assert_int_equal(s->count, 1);
    assert_int_equal(s->list[0].score, TT_CLAIM_ENDS);
    host_close(h);
}

static void a_claim_that_has_not_left_is_taken_back(void **state)
{
    (void)state;
    struct host *h = host_that_claims();
    struct share *s = &h->share[0];
    struct tt_store result = tt_result(1, CLAIMS_FOREIGN_DEPTH, TT_EXACT, 7, 1);
    share_claim(s, 1, CLAIMS_FOREIGN_DEPTH, TT_CLAIM_BEGINS);
    share_claim(s, 2, CLAIMS_FOREIGN_DEPTH, TT_CLAIM_BEGINS);
    share_claim(s, 1, CLAIMS_FOREIGN_DEPTH + 1, TT_CLAIM_BEGINS);
    share_claim(s, 1, CLAIMS_FOREIGN_DEPTH, TT_CLAIM_ENDS); /* without a result */
    assert_int_equal(s->count, 2);
    share_claim(s, 1, CLAIMS_FOREIGN_DEPTH, TT_CLAIM_BEGINS);
    assert_false(share_add(s, &result));
    assert_int_equal(s->count, 3);
    for (unsigned i = 0; i < s->count; i++) {
        assert_true(s->list[i].bound != TT_CLAIM || s->list[i].key == 2 ||
                    s->list[i].depth > CLAIMS_FOREIGN_DEPTH);
    }
    host_close(h);
}

static void what_is_not_to_be_claimed_is_not(void **state)
{
    (void)state;
    struct host *h = host_that_claims();
    struct share *s = &h->share[0];
    share_claim(s, 1, CLAIMS_FOREIGN_DEPTH - 1, TT_CLAIM_BEGINS);
    share_claim(s, 1, PROTO_RESULT_DEPTH_MAX + 1, TT_CLAIM_BEGINS);
    atomic_store(&feed_of(h)->least, MOST); /* the shards are busy */
    share_claim(s, 1, 5, TT_CLAIM_BEGINS);
    s->claims = false; /* nobody is there */
    share_claim(s, 1, 9, TT_CLAIM_BEGINS);
    assert_int_equal(s->count, 0);
    host_close(h);
}

/* What waits for a message, though the least depth has risen meanwhile. */
static void a_claim_that_waits_is_taken_back_at_any_least_depth(void **state)
{
    (void)state;
    struct host *h = host_that_claims();
    struct share *s = &h->share[0];
    struct tt_store result = tt_result(2, 5, TT_EXACT, 7, 1);
    share_claim(s, 1, 5, TT_CLAIM_BEGINS);
    share_claim(s, 2, 5, TT_CLAIM_BEGINS);
    atomic_store(&feed_of(h)->least, MOST);
    share_claim(s, 1, 5, TT_CLAIM_ENDS);
    share_add(s, &result);
    assert_int_equal(s->count, 0);
    host_close(h);
}

static void a_host_that_gets_no_claims_sends_its_own_and_relies_on_none(void **state)
{
    (void)state;
    struct host *h = host_that_claims();
    struct share *s = &h->share[0];
    struct tt_store claim = {.key = 1,
                             .depth = 9,
                             .bound = TT_CLAIM,
                             .move = (uint16_t)(embedded_host_name(h->table) + 1)};
    struct proto_share message = {.table_id = 1, .list = {1, &claim}};
    h->local[0].counts_foreign = true;
    embedded_saw_other_table(h->table, UINT64_MAX);
    for (unsigned round = 0; round < 3; round++) {
        s->claims_pause_us = round < 2 ? 150 : 0; /* a host of few searchers: they are late */
        if (round > 0) {
            share_take(s, &message, h->now_us, UINT64_MAX);
        }
        share_serve(s, true, h->now_us);
        assert_true(s->claims);
        assert_int_equal(s->relies, round == 1);
    }
    host_close(h);
}

/* Of a namespace that does not have the queue of the process. */
static void a_namespace_without_the_queue_sends_no_message_a_poll(void **state)
{
    (void)state;
    struct host *h = host_open(2);
    struct share *own = &h->share[0], *other = &h->share[1];
    struct tt_store result = tt_result(1, 9, TT_EXACT, 7, 1);
    h->local[1].namespace_id = h->local[0].namespace_id + 1;
    own->wanted = other->wanted = true;
    atomic_store(&feed_of(h)->due_us, h->now_us + 1000);
    share_add(own, &result);
    share_send(own, h->now_us);
    for (unsigned i = 0; i < 3; i++) {
        share_add(other, &result);
        share_send(other, h->now_us);
        assert_int_equal(other->count, i);
    }
    host_close(h);
}

static void claims_make_messages_more_frequent(void **state)
{
    (void)state;
    struct host *h = host_that_claims();
    struct share *s = &h->share[0];
    s->claims_pause_us = 150;
    for (unsigned round = 0; round < 2; round++) {
        embedded_saw_other_table(h->table, round == 0 ? UINT64_MAX : 0);
        share_serve(s, true, h->now_us);
        assert_int_equal(s->claims, round == 0);
        struct tt_store result = tt_result(1, 9, TT_EXACT, 7, 1);
        atomic_store(&feed_of(h)->due_us, 0);
        s->wanted = true;
        share_add(s, &result);
        share_send(s, h->now_us);
        uint64_t pause_us = atomic_load(&feed_of(h)->due_us) - h->now_us;
        assert_int_equal(pause_us, round == 0 ? 150 : 10000);
    }
    host_close(h);
}

/* Else hosts that tell nothing would never hear that they may tell more. */
static void without_peers_the_least_depth_falls_to_the_first(void **state)
{
    (void)state;
    struct host *h = host_open(2);
    atomic_store(&feed_of(h)->least, MOST);
    for (unsigned i = 0; i < MOST; i++) {
        h->now_us += WINDOW_US;
        share_serve(&h->share[1], true, h->now_us); /* not who takes what others tell */
    }
    assert_int_equal(least(h), MOST);
    feed_of(h)->window_us = h->now_us;
    for (unsigned i = 1; i <= MOST; i++) {
        h->now_us += WINDOW_US;
        share_serve(&h->share[0], true, h->now_us);
        assert_int_equal(least(h), MOST - i > FIRST ? MOST - i : FIRST);
    }
    host_close(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(too_many_results_raise_the_least_depth_by_eighths),
        cmocka_unit_test(few_results_lower_it_to_the_option),
        cmocka_unit_test(at_selection_full_deeper_results_are_published),
        cmocka_unit_test(between_few_and_too_many_it_stays),
        cmocka_unit_test(a_busy_relay_raises_it_whatever_comes),
        cmocka_unit_test(the_highest_load_of_a_window_counts),
        cmocka_unit_test(a_host_of_more_threads_takes_more_up_to_a_bound),
        cmocka_unit_test(of_the_least_ply_some_eighths_are_published_by_their_keys),
        cmocka_unit_test(what_no_message_can_carry_is_not_published),
        cmocka_unit_test(the_queue_of_a_host_is_one),
        cmocka_unit_test(a_claim_and_its_end_are_published),
        cmocka_unit_test(a_claim_that_has_not_left_is_taken_back),
        cmocka_unit_test(what_is_not_to_be_claimed_is_not),
        cmocka_unit_test(a_claim_that_waits_is_taken_back_at_any_least_depth),
        cmocka_unit_test(a_host_that_gets_no_claims_sends_its_own_and_relies_on_none),
        cmocka_unit_test(a_namespace_without_the_queue_sends_no_message_a_poll),
        cmocka_unit_test(claims_make_messages_more_frequent),
        cmocka_unit_test(the_queue_is_of_one_namespace_at_a_time),
        cmocka_unit_test(without_peers_the_least_depth_falls_to_the_first),
    };
    return cmocka_run_group_tests_name("share", tests, NULL, NULL);
}
