/* A history table filled together: sums, what is read of them, halving, and its bounds. */
#include "tests/support/test_tt.h"
#include "tests/support/test_ttcore.h"
#include "ttserver/core/history_tables.h"

/* What a searcher knows of a root_key, and what came last. */
struct known {
    uint32_t epoch, cursor;
};

static const struct proto_history_answer *say(struct bed *bed, const char *who, uint64_t root_key,
                                              struct known known, struct tt_weight *weight,
                                              uint32_t count)
{
    struct proto_message m = {.type = PROTO_HISTORY};
    m.history = (struct proto_history){.request = 9,
                                       .root_key = root_key,
                                       .epoch = known.epoch,
                                       .cursor = known.cursor,
                                       .list = {count, weight}};
    bed_say(bed, who, m);
    const struct proto_message *answer = bed_seen(bed, who, PROTO_HISTORY_ANSWER);
    assert_int_equal(answer->history_answer.request, 9);
    assert_int_equal(answer->history_answer.root_key, root_key);
    return &answer->history_answer;
}

/* After the pause that every searcher is asked to make. */
static const struct proto_history_answer *publish(struct bed *bed, const char *who,
                                                  uint64_t root_key, struct known known,
                                                  struct tt_weight *weight, uint32_t count)
{
    bed->now_us += TTCORE_HISTORY_ALONE_MS * 1000;
    return say(bed, who, root_key, known, weight, count);
}

static struct known after(const struct proto_history_answer *answer)
{
    return (struct known){answer->epoch, answer->now};
}

static const struct known nothing;

static uint32_t sum_of(const struct proto_history_answer *answer, uint16_t index)
{
    for (uint32_t i = 0; i < answer->list.count; i++) {
        if (answer->list.at[i].index == index) {
            return answer->list.at[i].weight;
        }
    }
    return 0;
}

static void what_searchers_give_is_summed(void **state)
{
    struct bed *bed = *state;
    struct tt_weight a[] = {{1, 10}, {2, 20}}, b[] = {{2, 5}, {TT_WEIGHTS - 1, 7}};
    bed_hello(bed, "a", PROTO_WORKER);
    bed_hello(bed, "b", PROTO_CLIENT);
    const struct proto_history_answer *answer = publish(bed, "a", 77, nothing, a, 2);
    assert_int_equal(answer->list.count, 2);
    answer = publish(bed, "b", 77, nothing, b, 2);
    assert_int_equal(answer->list.count, 3);
    assert_int_equal(sum_of(answer, 1), 10);
    assert_int_equal(sum_of(answer, 2), 25);
    assert_int_equal(sum_of(answer, TT_WEIGHTS - 1), 7);
    assert_int_equal(answer->halvings, 0);
}

static void only_what_changed_is_sent_again(void **state)
{
    struct bed *bed = *state;
    struct tt_weight a[] = {{1, 10}, {2, 20}}, b[] = {{2, 5}};
    bed_hello(bed, "a", PROTO_WORKER);
    bed_hello(bed, "b", PROTO_WORKER);
    struct known known = after(publish(bed, "a", 77, nothing, a, 2));
    assert_int_equal(publish(bed, "a", 77, known, NULL, 0)->list.count, 0);
    publish(bed, "b", 77, nothing, b, 1);
    const struct proto_history_answer *answer = publish(bed, "a", 77, known, NULL, 0);
    assert_int_equal(answer->list.count, 1);
    assert_int_equal(answer->cursor, known.cursor);
    assert_int_equal(sum_of(answer, 2), 25);
    known = after(answer);
    known.cursor += 1000; /* not ours */
    assert_int_equal(publish(bed, "a", 77, known, NULL, 0)->list.count, 2);
}

/* A root_key that made room and came back knows nothing of what was sent before. */
static void a_root_key_begun_anew_is_read_whole(void **state)
{
    struct bed *bed = *state;
    struct tt_weight a[] = {{1, 10}, {2, 20}}, b[] = {{3, 5}}, huge[] = {{9, UINT32_MAX}};
    bed_hello(bed, "a", PROTO_WORKER);
    publish(bed, "a", 77, nothing, huge, 1);
    struct known known = after(publish(bed, "a", 77, nothing, a, 2));
    for (uint64_t root_key = 0; root_key < HISTORIES; root_key++) {
        bed->now_us += TTCORE_HISTORY_KEEP_US;
        bed_say(bed, "a", (struct proto_message){.type = PROTO_HEARTBEAT});
        publish(bed, "a", root_key, nothing, a, 1);
    }
    bed->now_us += TTCORE_HISTORY_KEEP_US;
    for (unsigned i = 0; i < 5; i++) {
        publish(bed, "a", 77, known, b, 1); /* its `now` overtakes what was known */
    }
    const struct proto_history_answer *answer = publish(bed, "a", 77, known, NULL, 0);
    assert_int_not_equal(answer->epoch, known.epoch);
    assert_int_equal(answer->cursor, 0);
    assert_int_equal(answer->halvings, 0);
    assert_int_equal(answer->list.count, 1);
    assert_int_equal(sum_of(answer, 3), 25);
}

static void who_asks_too_often_gets_nothing(void **state)
{
    struct bed *bed = *state;
    struct tt_weight a[] = {{1, 10}};
    struct ttcore_figures figures;
    bed_hello(bed, "a", PROTO_WORKER);
    struct known known = after(publish(bed, "a", 77, nothing, a, 1));
    const struct proto_history_answer *answer = say(bed, "a", 77, nothing, a, 1);
    assert_int_equal(answer->list.count, 0);
    assert_int_equal(answer->now, 0);
    assert_int_equal(answer->wait_ms, TTCORE_HISTORY_ALONE_MS);
    ttcore_figures(bed->core, &figures);
    assert_int_equal(figures.history_refused, 1);
    assert_int_equal(figures.history_published, 1);
    assert_int_equal(publish(bed, "a", 77, known, NULL, 0)->list.count, 0);
}

static void sums_that_grow_too_large_are_halved(void **state)
{
    struct bed *bed = *state;
    struct tt_weight large[] = {{1, UINT32_MAX}, {2, 100}};
    bed_hello(bed, "a", PROTO_WORKER);
    const struct proto_history_answer *answer = publish(bed, "a", 77, nothing, large, 2);
    assert_int_equal(answer->halvings, 1);
    assert_int_equal(sum_of(answer, 1), TT_HISTORY_LIMIT / 2);
    assert_int_equal(sum_of(answer, 2), 50);
    struct tt_weight twice[] = {{1, UINT32_MAX}, {1, UINT32_MAX}, {2, 100}};
    answer = publish(bed, "a", 77, nothing, twice, 3);
    assert_int_equal(answer->halvings, 2);
    assert_int_equal(sum_of(answer, 1), TT_HISTORY_LIMIT / 2);
    assert_int_equal(sum_of(answer, 2), 75);
}

static void root_keys_are_apart(void **state)
{
    struct bed *bed = *state;
    struct tt_weight a[] = {{1, 10}};
    struct proto_message other = {.type = PROTO_HELLO};
    other.hello = (struct proto_hello){.request = 1, .role = PROTO_CLIENT, .namespace_id = 4711};
    bed_hello(bed, "a", PROTO_WORKER);
    bed_say(bed, "b", other);
    publish(bed, "a", 77, nothing, a, 1);
    assert_int_equal(publish(bed, "a", 78, nothing, NULL, 0)->list.count, 0);
    assert_int_equal(publish(bed, "b", 77 ^ 4711, nothing, NULL, 0)->list.count, 0);
    assert_int_equal(publish(bed, "a", 77, nothing, NULL, 0)->list.count, 1);
}

static void the_root_key_unused_for_longest_makes_room(void **state)
{
    struct bed *bed = *state;
    struct tt_weight a[] = {{1, 10}};
    static const char *const name[] = {"a", "b", "c", "d", "e"};
    for (unsigned i = 0; i < 5; i++) {
        bed_hello(bed, name[i], PROTO_WORKER);
    }
    for (uint64_t root_key = 0; root_key < HISTORIES; root_key++) {
        publish(bed, name[root_key % 4], root_key, nothing, a, 1);
    }
    assert_int_equal(publish(bed, "e", 1000, nothing, a, 1)->list.count, 0); /* all are in use */
    bed->now_us += TTCORE_HISTORY_KEEP_US - TTCORE_HISTORY_ALONE_MS * 1000;
    assert_int_equal(publish(bed, "a", 0, nothing, NULL, 0)->list.count, 1);
    assert_int_equal(publish(bed, "e", 1000, nothing, a, 1)->list.count,
                     1); /* in place of root_key 1 */
    assert_int_equal(publish(bed, "a", 0, nothing, NULL, 0)->list.count, 1);
    assert_int_equal(publish(bed, "a", 3, nothing, NULL, 0)->list.count, 1);
    assert_int_equal(publish(bed, "a", 1, nothing, NULL, 0)->list.count, 0);
}

/* More than fit: as many of the heaviest as do, against a plain sum kept beside. */
static void the_heaviest_are_sent_first(void **state)
{
    struct bed *bed = *state;
    uint64_t rng = tt_seed();
    uint32_t sum[TT_WEIGHTS] = {0};
    struct tt_weight update[512];
    bed_hello(bed, "a", PROTO_WORKER);
    for (unsigned round = 0; round < 40; round++) {
        for (unsigned i = 0; i < 512; i++) {
            update[i].index = (uint16_t)rng_below(&rng, TT_WEIGHTS);
            update[i].weight = 1 + rng_below(&rng, 1u << rng_below(&rng, 9));
            sum[update[i].index] += update[i].weight;
        }
        publish(bed, "a", 77, nothing, update, 512);
    }
    const struct proto_history_answer *answer = publish(bed, "a", 77, nothing, NULL, 0);
    uint32_t lightest = UINT32_MAX;
    bool has_come[TT_WEIGHTS] = {false};
    assert_int_equal(answer->list.count, TTCORE_HISTORY_SENT);
    for (uint32_t i = 0; i < answer->list.count; i++) {
        struct tt_weight w = answer->list.at[i];
        assert_int_equal(w.weight, sum[w.index]);
        assert_false(has_come[w.index]);
        has_come[w.index] = true;
        lightest = w.weight < lightest ? w.weight : lightest;
    }
    for (uint32_t i = 0; i < TT_WEIGHTS; i++) {
        assert_true(has_come[i] || sum[i] < 2 * lightest);
    }
}

static void bad_updates_change_nothing(void **state)
{
    struct bed *bed = *state;
    struct tt_weight bad[] = {{1, 10}, {TT_WEIGHTS, 1}};
    struct proto_message m = {.type = PROTO_HISTORY};
    m.history = (struct proto_history){.request = 5, .root_key = 77, .list = {2, bad}};
    bed_say(bed, "nobody", m);
    assert_int_equal(bed_seen(bed, "nobody", PROTO_ERROR)->error.code, PROTO_ERR_SESSION);
    bed_hello(bed, "a", PROTO_WORKER);
    bed_say(bed, "a", m);
    const struct proto_message *answer = bed_seen(bed, "a", PROTO_ERROR);
    assert_int_equal(answer->error.code, PROTO_ERR_RANGE);
    assert_int_equal(answer->error.request, 5);
    assert_int_equal(publish(bed, "a", 77, nothing, NULL, 0)->list.count, 0);
}

static void many_searchers_speak_less_often(void **state)
{
    struct bed *bed = *state;
    char name[] = "a";
    bed_hello(bed, name, PROTO_WORKER);
    assert_int_equal(publish(bed, "a", 77, nothing, NULL, 0)->wait_ms, TTCORE_HISTORY_ALONE_MS);
    for (name[0] = 'b'; name[0] <= 'd'; name[0]++) {
        bed_hello(bed, name, PROTO_WORKER);
        assert_int_equal(publish(bed, "a", 77, nothing, NULL, 0)->wait_ms, TTCORE_HISTORY_WAIT_MS);
    }
    for (name[0] = 'A'; name[0] < 'A' + 26; name[0]++) {
        bed_hello(bed, name, PROTO_WORKER);
    }
    assert_int_equal(publish(bed, "a", 77, nothing, NULL, 0)->wait_ms, (4 + 26) / 2);
}

#define T(name) cmocka_unit_test_setup_teardown(name, bed_setup, bed_teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(what_searchers_give_is_summed),
        T(only_what_changed_is_sent_again),
        T(a_root_key_begun_anew_is_read_whole),
        T(who_asks_too_often_gets_nothing),
        T(sums_that_grow_too_large_are_halved),
        T(root_keys_are_apart),
        T(the_root_key_unused_for_longest_makes_room),
        T(the_heaviest_are_sent_first),
        T(bad_updates_change_nothing),
        T(many_searchers_speak_less_often),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
