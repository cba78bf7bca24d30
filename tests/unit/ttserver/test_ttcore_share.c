/* Results passed on from one host to all others of the namespace: to whom, collected, how many. */
#include "tests/support/test_ttcore.h"

#include "ttserver/core/share_relay.h"

#include <stdio.h>

enum { MANY = TTCORE_SHARE_FEW + 4, FULL = PROTO_BATCH_MAX * 3 / 4 };

static struct tt_store result[PROTO_BATCH_MAX];

static void enter(struct bed *bed, const char *who, uint64_t namespace_id, uint64_t table_id)
{
    bed_hello_as(bed, who,
                 (struct proto_hello){.role = PROTO_CLIENT,
                                      .instance = (uint64_t)who[0] << 8 | (uint8_t)who[1],
                                      .namespace_id = namespace_id,
                                      .flags = PROTO_WANTS_RESULTS,
                                      .table_id = table_id});
}

/* r0, r1, ...: hosts of their own, which want results and find none. */
static const char *receiver(unsigned i)
{
    static char name[16];
    snprintf(name, sizeof name, "r%u", i);
    return name;
}

static void enter_receivers(struct bed *bed, uint64_t namespace_id, unsigned from, unsigned to)
{
    for (unsigned i = from; i < to; i++) {
        enter(bed, receiver(i), namespace_id, 1000 + i);
    }
}

/* Says `count` results of which the first has the key `first`. */
static void share(struct bed *bed, const char *who, uint64_t table_id, uint32_t count,
                  uint64_t first)
{
    struct proto_message m = {.type = PROTO_SHARE};
    for (uint32_t i = 0; i < count; i++) {
        result[i] = (struct tt_store){
            .key = first + i, .score = -7, .bound = TT_EXACT, .depth = 8, .move = 2};
    }
    m.share.table_id = table_id;
    m.share.list = (struct proto_stores){count, result};
    bed_say(bed, who, m);
    assert_int_equal(bed->actions.dropped, 0);
}

/* The only SHARE that the last step sent to `who`; NULL: none. */
static const struct proto_share *got(struct bed *bed, const char *who)
{
    const struct proto_message *m = bed_nth(bed, who, 0);
    if (m == NULL) {
        return NULL;
    }
    return &bed_seen(bed, who, PROTO_SHARE)->share;
}

/* Of r0 ... */
static unsigned count_receivers(struct bed *bed, unsigned receivers)
{
    unsigned n = 0;
    for (unsigned i = 0; i < receivers; i++) {
        n += got(bed, receiver(i)) != NULL;
    }
    return n;
}

/* ---- who gets them ---- */

static void all_who_want_results_of_the_namespace_get_them(void **state)
{
    struct bed *bed = *state;
    enter(bed, "a", 1, 'a');
    enter(bed, "b", 1, 'b');
    enter(bed, "c", 1, 'c');
    enter(bed, "d", 1, 'd');
    enter(bed, "e", 2, 'e');
    bed_hello_as(bed, "f",
                 (struct proto_hello){.role = PROTO_CLIENT, .namespace_id = 1, .table_id = 'f'});
    share(bed, "a", 'a', 2, 5);
    assert_int_equal(bed->actions.messages, 1);
    assert_int_equal(bed->actions.message[0].targets, 3);
    for (unsigned i = 0; i < 3; i++) {
        const struct proto_share *message = got(bed, (const char *[]){"b", "c", "d"}[i]);
        assert_non_null(message);
        assert_int_equal(message->table_id, 'a');
        assert_int_equal(message->load, 0);
        assert_int_equal(message->list.count, 2);
        assert_int_equal(message->list.at[1].key, 6);
        assert_int_equal(message->list.at[1].score, -7);
        assert_int_equal(message->list.at[1].bound, TT_EXACT);
        assert_int_equal(message->list.at[1].depth, 8);
        assert_int_equal(message->list.at[1].move, 2);
    }
    assert_int_equal(bed_figures(bed).shared, 2);
    share(bed, "e", 'e', 2, 5); /* alone there */
    assert_int_equal(bed->actions.messages, 0);
    share(bed, "f", 'f', 1, 5); /* who wants none may tell some */
    assert_int_equal(bed->actions.message[0].targets, 4);
    assert_int_equal(bed_figures(bed).shared, 3);
    assert_int_equal(bed_figures(bed).shared_dropped, 0);
}

static void processes_of_a_host_take_turns(void **state)
{
    static const char *const name[] = {"b1", "b2", "b3"};
    struct bed *bed = *state;
    unsigned times[3] = {0};
    enter(bed, "a", 1, 'a');
    for (unsigned i = 0; i < 3; i++) {
        enter(bed, name[i], 1, 'b');
    }
    enter(bed, "c", 1, 'c');
    for (unsigned round = 1; round <= 6; round++) {
        share(bed, "a", 'a', 1, 5);
        assert_int_equal(bed->actions.message[0].targets, 2);
        assert_non_null(got(bed, "c"));
        for (unsigned i = 0; i < 3; i++) {
            times[i] += got(bed, name[i]) != NULL;
        }
        if (round % 3 == 0) {
            for (unsigned i = 0; i < 3; i++) {
                assert_int_equal(times[i], round / 3);
            }
        }
    }
    share(bed, "b2", 'b', 1, 5); /* and get none of their own host's */
    assert_int_equal(bed->actions.message[0].targets, 2);
    assert_non_null(got(bed, "a"));
    assert_non_null(got(bed, "c"));
}

static void a_session_has_the_table_of_its_last_word(void **state)
{
    struct bed *bed = *state;
    enter(bed, "a", 1, 'a');
    enter(bed, "b", 1, 'a');
    share(bed, "a", 'a', 1, 5);
    assert_null(got(bed, "b"));
    enter(bed, "b", 1, 'b');
    share(bed, "a", 'a', 1, 5);
    assert_non_null(got(bed, "b"));
    share(bed, "b", 'a', 1, 5); /* a has that, too */
    assert_int_equal(bed->actions.messages, 0);
    share(bed, "a", 'a', 1, 5);
    assert_null(got(bed, "b"));
    share(bed, "a", UINT64_C(1) << 63 | 'a', 1, 5);
    assert_non_null(got(bed, "b"));
}

static void who_does_not_say_which_table_he_has_gets_all(void **state)
{
    struct bed *bed = *state;
    enter(bed, "a", 1, 0);
    enter(bed, "b", 1, 0);
    enter(bed, "c", 1, 0);
    enter(bed, "d", 1, 'd');
    share(bed, "a", 0, 1, 5);
    assert_int_equal(bed->actions.message[0].targets, 3);
    assert_null(got(bed, "a"));
    share(bed, "d", 'd', 1, 5);
    assert_int_equal(bed->actions.message[0].targets, 3);
    assert_null(got(bed, "d"));
}

static void who_left_gets_nothing(void **state)
{
    struct bed *bed = *state;
    enter(bed, "a", 1, 'a');
    enter(bed, "b", 1, 'b');
    enter(bed, "c", 1, 'c');
    bed_bye(bed, "b");
    bed_hello_as(bed, "c",
                 (struct proto_hello){.role = PROTO_CLIENT, .namespace_id = 1, .table_id = 'c'});
    share(bed, "a", 'a', 1, 5);
    assert_int_equal(bed->actions.messages, 0);
    enter(bed, "c", 2, 'c');
    share(bed, "a", 'a', 1, 5);
    assert_int_equal(bed->actions.messages, 0);
    assert_int_equal(bed_figures(bed).shared, 0);
}

static void slow_readers_may_be_left_out(void **state)
{
    struct bed *bed = *state;
    bed_hello(bed, "w", PROTO_WORKER);
    assert_false(bed->actions.message[0].may_drop);
    enter(bed, "a", 1, 'a');
    enter(bed, "b", 1, 'b');
    share(bed, "a", 'a', 1, 5);
    assert_true(bed->actions.message[0].may_drop);
    bed_heartbeat(bed, "a");
    assert_false(bed->actions.message[0].may_drop);
}

/* Where there are too many for one message the next begins with those that had none. */
static void more_than_a_message_reaches_take_turns(void **state)
{
    enum { ALL = TTCORE_SHARE_TO + 100 };
    struct ttcore_options options = bed_options();
    bool had[ALL] = {false};
    unsigned reached = 0;
    options.sessions_max = 1024;
    bed_close(*state);
    struct bed *bed = *state = bed_open(&options);
    enter_receivers(bed, 1, 0, ALL);
    bed_hello_as(bed, "a", (struct proto_hello){.role = PROTO_CLIENT, .namespace_id = 1});
    for (unsigned round = 0; round < 2; round++) {
        bed->now_us += 1000000;
        share(bed, "a", 'a', 1, 5);
        bed->now_us += TTCORE_SHARE_LATE_US;
        if (bed->actions.messages == 0) {
            bed_event(bed, TTCORE_TICK);
        }
        assert_int_equal(bed->actions.messages, 1);
        assert_int_equal(bed->actions.message[0].targets, TTCORE_SHARE_TO);
        for (unsigned i = 0; i < ALL; i++) {
            bool has = bed_is_for(bed, &bed->actions.message[0], receiver(i));
            reached += has && !had[i];
            had[i] = had[i] || has;
        }
    }
    assert_int_equal(reached, ALL);
}

/* ---- collected ---- */

/* A bed in which a (table a) and b (table b) tell many, and have just told them one. */
static struct bed *crowd(void **state)
{
    struct bed *bed = *state;
    bed->now_us = 1000000;
    enter_receivers(bed, 1, 0, MANY);
    enter(bed, "a", 1, 'a');
    enter(bed, "b", 1, 'b');
    share(bed, "a", 'a', 1, 5);
    assert_int_equal(bed->actions.message[0].targets, MANY + 1);
    return bed;
}

static void few_receivers_get_each_message_at_once(void **state)
{
    struct bed *bed = *state;
    enter_receivers(bed, 1, 0, TTCORE_SHARE_FEW);
    bed_hello_as(bed, "a",
                 (struct proto_hello){.role = PROTO_CLIENT, .namespace_id = 1, .table_id = 'a'});
    for (unsigned i = 0; i < 3; i++) {
        share(bed, "a", 'a', 1, 5);
        assert_int_equal(bed->actions.messages, 1);
        assert_int_equal(bed->actions.message[0].targets, TTCORE_SHARE_FEW);
    }
    enter_receivers(bed, 1, TTCORE_SHARE_FEW, TTCORE_SHARE_FEW + 1);
    share(bed, "a", 'a', 1, 5); /* finds that there is one more */
    assert_int_equal(bed->actions.messages, 1);
    share(bed, "a", 'a', 1, 5);
    assert_int_equal(bed->actions.messages, 0);
}

static void what_was_collected_leaves_when_there_is_much(void **state)
{
    struct bed *bed = crowd(state);
    share(bed, "a", 'a', FULL / 2, 100);
    assert_int_equal(bed->actions.messages, 0);
    share(bed, "b", 'b', FULL / 2, 2000);
    assert_int_equal(bed->actions.messages, 0);
    share(bed, "a", 'a', 1, 5000);
    assert_int_equal(bed->actions.messages, 1);
    const struct proto_share *message = got(bed, receiver(MANY - 1));
    assert_int_equal(message->list.count, FULL + 1);
    assert_int_equal(message->list.at[0].key, 100);
    assert_int_equal(message->list.at[FULL / 2].key, 2000);
    assert_int_equal(message->list.at[FULL].key, 5000);
    assert_int_equal(bed_figures(bed).shared, 1 + FULL + 1);
    bed->now_us += TTCORE_SHARE_LATE_US; /* once */
    bed_event(bed, TTCORE_TICK);
    assert_int_equal(bed->actions.messages, 0);
}

static void what_does_not_fit_waits_for_the_next(void **state)
{
    struct bed *bed = crowd(state);
    share(bed, "a", 'a', FULL, 100);
    assert_int_equal(bed->actions.messages, 0);
    share(bed, "b", 'b', PROTO_BATCH_MAX - FULL + 1, 2000);
    assert_int_equal(bed->actions.messages, 1);
    assert_int_equal(got(bed, receiver(0))->list.count, FULL);
    assert_int_equal(got(bed, receiver(0))->table_id, 'a');
    bed->now_us += TTCORE_SHARE_LATE_US;
    bed_event(bed, TTCORE_TICK);
    assert_int_equal(got(bed, receiver(0))->list.count, PROTO_BATCH_MAX - FULL + 1);
    assert_int_equal(got(bed, receiver(0))->table_id, 'b');
    /* Both at once: what waits, and a full one. */
    share(bed, "a", 'a', 1, 100);
    share(bed, "b", 'b', PROTO_BATCH_MAX, 2000);
    assert_int_equal(bed->actions.messages, 2);
    assert_int_equal(bed_nth(bed, receiver(0), 0)->share.list.count, 1);
    assert_int_equal(bed_nth(bed, receiver(0), 1)->share.list.count, PROTO_BATCH_MAX);
}

static void what_was_collected_leaves_when_it_is_old(void **state)
{
    struct bed *bed = crowd(state);
    share(bed, "a", 'a', 1, 100);
    bed->now_us += TTCORE_SHARE_LATE_US - 1;
    share(bed, "b", 'b', 1, 200);
    assert_int_equal(bed->actions.messages, 0);
    bed_event(bed, TTCORE_TICK);
    assert_int_equal(bed->actions.messages, 0);
    bed->now_us += 1;
    share(bed, "b", 'b', 1, 300);
    assert_int_equal(got(bed, receiver(0))->list.count, 3);
    share(bed, "a", 'a', 2, 100); /* is new again */
    assert_int_equal(bed->actions.messages, 0);
    bed->now_us += TTCORE_SHARE_LATE_US - 1;
    bed_event(bed, TTCORE_TICK);
    assert_int_equal(bed->actions.messages, 0);
    bed->now_us += 1;
    bed_event(bed, TTCORE_TICK);
    assert_int_equal(got(bed, receiver(0))->list.count, 2);
    assert_int_equal(count_receivers(bed, MANY), MANY);
}

static void claim(struct bed *bed, const char *who, uint64_t table_id, uint64_t key)
{
    struct proto_message m = {.type = PROTO_SHARE};
    result[0] =
        (struct tt_store){.key = key, .score = TT_CLAIM_BEGINS, .bound = TT_CLAIM, .depth = 4};
    m.share.table_id = table_id;
    m.share.list = (struct proto_stores){1, result};
    bed_say(bed, who, m);
}

/* They come often, and are of no use when they are late. A few receivers get them at once. */
static void claims_are_collected_for_some_receivers_too_but_not_for_long(void **state)
{
    struct bed *bed = *state;
    enter_receivers(bed, 1, 0, TTCORE_SHARE_CLAIMS_FEW + 1);
    enter(bed, "a", 1, 'a');
    bed->now_us = 1000000;
    claim(bed, "a", 'a', 99); /* at once: how many receivers there are is not known yet */
    assert_int_equal(bed->actions.messages, 1);
    claim(bed, "a", 'a', 100);
    share(bed, "a", 'a', 1, 200); /* a result beside one waits as long */
    bed->now_us += TTCORE_SHARE_CLAIMS_LATE_US - 1;
    bed_event(bed, TTCORE_TICK);
    claim(bed, "a", 'a', 101);
    assert_int_equal(bed->actions.messages, 0);
    bed->now_us += 1;
    claim(bed, "a", 'a', 102);
    assert_int_equal(bed->actions.messages, 1);
    const struct proto_share *message = got(bed, receiver(0));
    assert_int_equal(message->list.count, 4);
    assert_int_equal(message->list.at[3].key, 102);
    assert_int_equal(message->list.at[3].bound, TT_CLAIM);
    assert_int_equal(message->list.at[3].score, TT_CLAIM_BEGINS);
    claim(bed, "a", 'a', 103);
    assert_int_equal(bed->actions.messages, 0);
    bed->now_us += TTCORE_SHARE_CLAIMS_LATE_US;
    bed_event(bed, TTCORE_TICK);
    assert_int_equal(got(bed, receiver(0))->list.count, 1);
    share(bed, "a", 'a', 1, 300); /* none of them waits any more */
    assert_int_equal(bed->actions.messages, 1);
}

static void what_was_collected_leaves_before_that_of_another_namespace(void **state)
{
    struct bed *bed = crowd(state);
    enter(bed, "x", 2, 'x');
    enter(bed, "y", 2, 'y');
    share(bed, "a", 'a', 1, 100);
    assert_int_equal(bed->actions.messages, 0);
    share(bed, "x", 'x', 2, 200);
    assert_int_equal(bed->actions.messages, 2);
    assert_int_equal(got(bed, receiver(0))->list.at[0].key, 100);
    assert_int_equal(got(bed, receiver(0))->list.count, 1);
    assert_int_equal(got(bed, "y")->list.at[0].key, 200);
    assert_int_equal(got(bed, "y")->list.count, 2);
    assert_null(got(bed, "x"));
    share(bed, "a", 'a', 1, 100); /* how many there are here is found out anew */
    assert_int_equal(bed->actions.messages, 1);
    assert_null(got(bed, "y"));
}

/* Of one host, they keep its table; of several, they have none. */
static void what_was_collected_of_several_tables_is_of_none(void **state)
{
    struct bed *bed = crowd(state);
    enter(bed, "a2", 1, 'a');
    share(bed, "a", 'a', 1, 100);
    bed->now_us += TTCORE_SHARE_LATE_US;
    share(bed, "a2", 'a', 1, 200);
    assert_int_equal(got(bed, receiver(0))->table_id, 'a');
    assert_int_equal(got(bed, "b")->list.count, 2);
    assert_null(got(bed, "a"));
    assert_null(got(bed, "a2"));
    share(bed, "a", 'a', 1, 100);
    bed->now_us += TTCORE_SHARE_LATE_US;
    share(bed, "b", 'b', 1, 200);
    assert_int_equal(bed->actions.message[0].targets, MANY + 2);
    assert_int_equal(got(bed, receiver(0))->table_id, 0);
    assert_int_equal(got(bed, receiver(0))->list.count, 2);
    assert_non_null(got(bed, "b")); /* a's are new to it */
    assert_true((got(bed, "a") != NULL) + (got(bed, "a2") != NULL) == 1);
}

/* ---- no more than so many ---- */

enum { RATE = 1000, BURST = RATE * (TTCORE_SHARE_BURST_US / 1000) / 1000 }; /* results */

static struct bed *bounded(void **state)
{
    struct ttcore_options options = bed_options();
    options.share_rate_max = RATE;
    bed_close(*state);
    struct bed *bed = *state = bed_open(&options);
    bed->now_us = 1000000;
    enter(bed, "a", 1, 'a');
    enter(bed, "a2", 1, 'a'); /* another user */
    enter(bed, "b", 1, 'b');
    return bed;
}

static void the_load_grows_until_results_are_dropped(void **state)
{
    struct bed *bed = bounded(state);
    unsigned passed = 0, load = 0;
    for (; passed < BURST; passed++) {
        share(bed, passed % 2 == 0 ? "a" : "a2", 'a', 1, passed);
        const struct proto_share *message = got(bed, "b");
        assert_non_null(message);
        assert_int_equal(message->load, passed * 100 / BURST);
        assert_true(message->load >= load);
        load = message->load;
    }
    assert_true(load >= PROTO_LOAD_BUSY);
    share(bed, "a", 'a', 3, 0);
    assert_int_equal(bed->actions.messages, 0);
    struct ttcore_figures figures = bed_figures(bed);
    assert_int_equal(figures.shared, BURST);
    assert_int_equal(figures.shared_dropped, 3);
    /* What was dropped is not sent later, and costs nothing. */
    bed->now_us += 1000000 / RATE;
    share(bed, "a", 'a', 1, 77);
    assert_int_equal(got(bed, "b")->list.count, 1);
    assert_int_equal(got(bed, "b")->list.at[0].key, 77);
    assert_int_equal(got(bed, "b")->load, 100 - 100 / BURST);
    bed->now_us += TTCORE_SHARE_BURST_US;
    share(bed, "a", 'a', 1, 78);
    assert_int_equal(got(bed, "b")->load, 0);
    bed->now_us += 60000000; /* idle time is not saved up */
    share(bed, "a", 'a', BURST, 0);
    share(bed, "a", 'a', 1, 0);
    assert_int_equal(bed->actions.messages, 0);
    assert_int_equal(bed_figures(bed).shared_dropped, 4);
}

/* Else one could keep back what all others find, in a namespace of its own as well. */
static void half_of_the_rate_is_for_one_user(void **state)
{
    struct bed *bed = bounded(state);
    enter(bed, "x", 2, 'x');
    enter(bed, "y", 2, 'y'); /* x is heard in a namespace of its own */
    for (unsigned i = 0; i < BURST / 2; i++) {
        share(bed, "x", 'x', 1, i);
        assert_non_null(got(bed, "y"));
    }
    for (unsigned i = 0; i < 3; i++) {
        share(bed, "x", 'x', 1, i);
        assert_int_equal(bed->actions.messages, 0);
    }
    assert_int_equal(bed_figures(bed).shared_dropped, 3);
    share(bed, "a", 'a', 1, 0);
    assert_int_equal(got(bed, "b")->load, 50);
}

/* The network takes no more: senders hear of it. A few who do not read count for nothing. */
static void most_readers_being_slow_is_a_load(void **state)
{
    static struct ttcore_outside outside;
    static const struct {
        unsigned dropped, load;
    } cases[] = {{0, 0}, {10, 0}, {11, PROTO_LOAD_BUSY}, {20, PROTO_LOAD_BUSY}};
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ttcore_options options = bed_options();
        outside = (struct ttcore_outside){0};
        options.outside = &outside;
        bed_close(*state);
        struct bed *bed = *state = bed_open(&options);
        bed->now_us = 1000000;
        enter(bed, "a", 1, 'a');
        enter(bed, "b", 1, 'b');
        enter(bed, "c", 1, 'c');
        share(bed, "a", 'a', 1, 0);
        for (unsigned n = 1; n <= 10; n++) { /* to two each */
            share(bed, "a", 'a', 1, n);
        }
        outside.hints_dropped += cases[i].dropped + 1; /* of 22 */
        bed->now_us += TTCORE_SHARE_CHECK_US;
        share(bed, "a", 'a', 1, 11);
        assert_int_equal(got(bed, "b")->load, cases[i].load);
        bed->now_us += TTCORE_SHARE_SLOW_US - 1;
        share(bed, "a", 'a', 1, 12);
        assert_int_equal(got(bed, "b")->load, cases[i].load);
        bed->now_us += 1;
        share(bed, "a", 'a', 1, 13);
        assert_int_equal(got(bed, "b")->load, 0);
    }
}

static void each_receiver_counts(void **state)
{
    struct bed *bed = bounded(state);
    enter(bed, "c", 1, 'c');
    enter(bed, "c2", 1, 'c'); /* of the same host */
    share(bed, "a", 'a', 2, 0);
    share(bed, "a", 'a', 2, 0);
    assert_int_equal(got(bed, "b")->load, 2 * 2 * 100 / BURST);
    assert_int_equal(bed_figures(bed).shared, 4);
}

static void over_a_long_time_the_rate_is_kept(void **state)
{
    enum { SECONDS = 5, EVERY_US = 500, EACH = 3 };
    struct bed *bed = bounded(state);
    for (uint64_t us = 0; us < SECONDS * 1000000; us += EVERY_US) {
        share(bed, us / EVERY_US % 2 == 0 ? "a" : "a2", 'a', EACH, us);
        bed_heartbeat(bed, "b");
        bed->now_us += EVERY_US;
    }
    struct ttcore_figures figures = bed_figures(bed);
    assert_in_range(figures.shared, SECONDS * RATE - EACH, SECONDS * RATE + BURST + EACH);
    assert_int_equal(figures.shared + figures.shared_dropped, SECONDS * 1000000 / EVERY_US * EACH);
}

static void nobody_there_costs_nothing(void **state)
{
    struct bed *bed = bounded(state);
    bed_bye(bed, "b");
    for (unsigned i = 0; i < 10 * BURST; i++) {
        share(bed, "a", 'a', 1, 0);
    }
    enter(bed, "b", 1, 'b');
    share(bed, "a", 'a', 1, 0);
    assert_int_equal(got(bed, "b")->load, 0);
    assert_int_equal(bed_figures(bed).shared_dropped, 0);
    struct ttcore_options options = bed_options();
    struct ttcore *core = NULL;
    options.share_rate_max = 0;
    assert_int_equal(ttcore_open(&core, &options), ERR_RANGE);
}

/* ---- refused ---- */

static void bad_results_go_nowhere(void **state)
{
    struct bed *bed = *state;
    struct proto_message m = {.type = PROTO_SHARE, .share = {'b', {2, result}, 0}};
    enter(bed, "a", 1, 'a');
    enter(bed, "b", 1, 'b');
    result[0] = result[1] = (struct tt_store){.key = 5, .depth = 3, .bound = TT_LOWER};
    result[1].bound = TT_CLAIM;
    result[1].score = 2;
    bed_say(bed, "a", m);
    bed_expect_error(bed, "a", PROTO_ERR_RANGE);
    result[1].bound = TT_LOWER;
    result[1].score = -32768;
    bed_say(bed, "a", m);
    bed_expect_error(bed, "a", PROTO_ERR_RANGE);
    m.share.list.count = 0;
    bed_say(bed, "a", m);
    assert_int_equal(bed->actions.messages, 0);
    share(bed, "a", 'a', 1, 5); /* nothing of them was left, nor is a's table theirs */
    assert_int_equal(got(bed, "b")->list.count, 1);
    assert_int_equal(bed_figures(bed).shared, 1);
}

static void more_than_batch_max_go_nowhere(void **state)
{
    struct ttcore_options options = bed_options();
    options.batch_max = 4;
    bed_close(*state);
    struct bed *bed = *state = bed_open(&options);
    enter(bed, "a", 1, 'a');
    enter(bed, "b", 1, 'b');
    share(bed, "a", 'a', 5, 5);
    bed_expect_error(bed, "a", PROTO_ERR_LIMIT);
    assert_int_equal(bed_figures(bed).batches_refused, 1);
    share(bed, "a", 'a', 4, 5);
    assert_int_equal(got(bed, "b")->list.count, 4);
}

#define T(name) cmocka_unit_test_setup_teardown(name, bed_setup, bed_teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(all_who_want_results_of_the_namespace_get_them),
        T(processes_of_a_host_take_turns),
        T(a_session_has_the_table_of_its_last_word),
        T(who_does_not_say_which_table_he_has_gets_all),
        T(who_left_gets_nothing),
        T(slow_readers_may_be_left_out),
        T(more_than_a_message_reaches_take_turns),
        T(few_receivers_get_each_message_at_once),
        T(what_was_collected_leaves_when_there_is_much),
        T(what_does_not_fit_waits_for_the_next),
        T(what_was_collected_leaves_when_it_is_old),
        T(claims_are_collected_for_some_receivers_too_but_not_for_long),
        T(what_was_collected_leaves_before_that_of_another_namespace),
        T(what_was_collected_of_several_tables_is_of_none),
        T(the_load_grows_until_results_are_dropped),
        T(half_of_the_rate_is_for_one_user),
        T(most_readers_being_slow_is_a_load),
        T(each_receiver_counts),
        T(over_a_long_time_the_rate_is_kept),
        T(nobody_there_costs_nothing),
        T(bad_results_go_nowhere),
        T(more_than_batch_max_go_nowhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
