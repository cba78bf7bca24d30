/* Who searches which of many positions: nothing is lost, nothing is answered twice, nobody is idle.
 */
#include "common/rng.h"
#include "worker/engine/bag_core.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { MS = 1000 };

static struct bag_core core;
static uint64_t now;

static void begin(uint32_t items, unsigned locals)
{
    now = 1000 * MS;
    assert_int_equal(bag_core_open(&core, items, locals), ERR_OK);
}

static int finish(void **state)
{
    (void)state;
    bag_core_close(&core);
    bag_core_close(&core);
    return 0;
}

static unsigned worker(uint64_t address)
{
    (void)bag_core_present(&core, address, now);
    return bag_core_receive(&core, address, now);
}

static bool done(unsigned searcher, uint32_t item)
{
    uint64_t nodes;
    return bag_core_done(&core, searcher, item, now, &nodes);
}

static bool has(unsigned searcher, uint32_t item)
{
    unsigned i = 0;
    while (i < core.searcher[searcher].count && core.searcher[searcher].assigned[i].item != item) {
        i++;
    }
    return i < core.searcher[searcher].count;
}

/* It is to get word of what it has, and the item is not among that. */
static bool is_dropped(unsigned searcher, uint32_t item)
{
    unsigned one;
    bool has_word = false;
    while ((one = bag_core_next_surplus(&core)) != BAG_NONE) {
        has_word = has_word || one == searcher;
    }
    return has_word && !has(searcher, item);
}

static void each_searcher_gets_its_own(void **state)
{
    (void)state;
    begin(40, 2);
    const unsigned w = worker(77);
    assert_int_equal(bag_core_take(&core, 0, now), 0);
    assert_int_equal(bag_core_take(&core, 1, now), 1);
    assert_int_equal(bag_core_take(&core, 0, now), BAG_NONE); /* a thread has one at a time */
    for (unsigned i = 0; i < 6; i++) { /* 38 are left for three: six ahead */
        assert_int_equal(bag_core_take(&core, w, now), 2 + i);
    }
    assert_int_equal(core.figures.most_at_once, 3);
    assert_true(done(0, 0));
    assert_int_equal(bag_core_take(&core, 0, now), 8);
    assert_int_equal(core.figures.joined, 0);
}

static void who_never_answered_gets_one(void **state)
{
    (void)state;
    begin(100, 1);
    const unsigned w = bag_core_present(&core, 77, now);
    assert_int_equal(bag_core_take(&core, w, now), 0);
    assert_int_equal(bag_core_take(&core, w, now), BAG_NONE);
    assert_int_equal(bag_core_receive(&core, 77, now), w);
    assert_int_equal(bag_core_take(&core, w, now), 1);
}

static void an_idle_one_takes_what_waits_and_then_joins(void **state)
{
    (void)state;
    begin(6, 1);
    const unsigned w = worker(77);
    while (bag_core_take(&core, w, now) != BAG_NONE) {
    }
    assert_int_equal(core.searcher[w].count, 2); /* one ahead of six */
    uint32_t item;
    while ((item = bag_core_take(&core, 0, now)) >= 2) {
        assert_true(done(0, item));
    }
    assert_int_equal(item, 1); /* waited there */
    assert_true(is_dropped(w, 1));
    assert_true(done(0, 1));
    assert_int_equal(bag_core_take(&core, 0, now), 0); /* together with the worker */
    assert_int_equal(core.item[0].sharers, 2);
    assert_int_equal(core.figures.joined, 1);
    assert_true(done(w, 0));
    assert_true(is_dropped(0, 0));
    assert_false(done(0, 0));
    assert_true(core.done == core.items);
    assert_int_equal(bag_core_take(&core, 0, now), BAG_NONE);
}

static void the_silent_are_given_up_and_their_late_results_count(void **state)
{
    (void)state;
    begin(12, 1);
    const unsigned w = worker(77);
    while (bag_core_take(&core, w, now) != BAG_NONE) {
    }
    const unsigned had = core.searcher[w].count;
    assert_int_equal(had, 3);
    now += (BAG_SILENT_MS - 1) * MS;
    bag_core_tick(&core, now);
    assert_int_equal(core.figures.taken_back, 0);
    now += MS;
    bag_core_tick(&core, now);
    assert_int_equal(core.figures.taken_back, had);
    assert_int_equal(core.open, 12);
    assert_int_equal(bag_core_take(&core, w, now), BAG_NONE);
    assert_int_equal(bag_core_take(&core, 0, now), 0);
    (void)bag_core_receive(&core, 77, now); /* it was stopped, and goes on */
    const uint32_t said[] = {1, 0, 2};
    bag_core_has(&core, w, said, 3, 10, now);
    assert_true(is_dropped(w, 0)); /* which another has by now */
    assert_int_equal(core.searcher[w].assigned[0].item, 1);
    assert_true(done(w, 0)); /* it was faster all the same */
    assert_true(is_dropped(0, 0));
}

static void what_a_worker_does_not_name_got_lost(void **state)
{
    (void)state;
    begin(12, 1);
    const unsigned w = worker(77);
    while (bag_core_take(&core, w, now) != BAG_NONE) {
    }
    const uint32_t said[] = {2};
    bag_core_has(&core, w, said, 1, 10, now); /* the others may be on their way */
    assert_int_equal(core.searcher[w].count, 3);
    assert_int_equal(core.searcher[w].assigned[0].item, 2);
    now += BAG_LOST_MS * MS;
    (void)bag_core_receive(&core, 77, now);
    bag_core_has(&core, w, said, 1, 10, now);
    assert_int_equal(core.searcher[w].count, 1);
    assert_int_equal(core.open, 11);
    assert_int_equal(bag_core_take(&core, 0, now), 0);
}

static void who_lies_gets_nothing_any_more(void **state)
{
    (void)state;
    begin(12, 1);
    const unsigned w = worker(77);
    while (bag_core_take(&core, w, now) != BAG_NONE) {
    }
    bag_core_bar(&core, w, now);
    assert_int_equal(core.open, 12);
    const uint32_t said[] = {0};
    now += 3 * BAG_SILENT_MS * MS;
    assert_int_equal(worker(77), w);
    bag_core_has(&core, w, said, 1, 0, now);
    assert_int_equal(bag_core_take(&core, w, now), BAG_NONE);
    assert_false(done(w, 0));
    assert_int_equal(core.open, 12);
}

static void nobody_answers_for_what_he_was_not_given(void **state)
{
    (void)state;
    begin(3, 1);
    const unsigned w = worker(77);
    const uint32_t said[] = {7, BAG_NONE, 2};
    bag_core_has(&core, w, said, 3, 0, now);
    assert_int_equal(core.searcher[w].count, 0);
    assert_int_equal(core.open, 3);
    assert_false(done(w, 2));
    assert_false(done(w, 3));
    assert_false(done(w, BAG_NONE));
}

static void what_is_searched_after_a_silence_is_kept_though_it_waits_elsewhere(void **state)
{
    (void)state;
    begin(12, 1);
    const unsigned w = worker(77), other = worker(78);
    while (bag_core_take(&core, w, now) != BAG_NONE) {
    }
    const uint32_t searched = core.searcher[w].assigned[0].item;
    now += 2 * BAG_SILENT_MS * MS;
    (void)bag_core_receive(&core, 78, now);
    bag_core_tick(&core, now);
    while (bag_core_take(&core, other, now) != BAG_NONE) {
    }
    const uint32_t said[] = {core.searcher[other].assigned[1].item, searched};
    assert_int_equal(core.searcher[other].assigned[0].item, searched);
    bag_core_has(&core, other, said, 2, 0, now); /* it begins with its second */
    assert_int_equal(core.item[searched].firsts, 0);
    (void)bag_core_receive(&core, 77, now);
    bag_core_has(&core, w, &searched, 1, 10, now);
    assert_int_equal(core.searcher[w].assigned[0].item, searched);
    assert_int_equal(core.item[searched].sharers, 2);
    assert_true(done(w, searched));
    assert_true(is_dropped(other, searched));
}

static void who_lives_keeps_its_place(void **state)
{
    (void)state;
    begin(3, 1);
    for (uint64_t i = 1; i <= BAG_WORKERS_MAX; i++) {
        assert_int_equal(worker(rng_mix(i)), i);
    }
    assert_int_equal(worker(rng_mix(BAG_WORKERS_MAX + 1)), BAG_NONE);
    assert_int_equal(worker(rng_mix(5)), 5);
}

static void who_is_silent_longest_makes_room(void **state)
{
    (void)state;
    begin(40, 1);
    for (uint64_t i = 1; i <= BAG_WORKERS_MAX; i++) {
        now += i == 4 || i == 8 ? MS : 0; /* the first three come before the others ... */
        (void)worker(rng_mix(i));
    }
    assert_int_equal(bag_core_take(&core, 1, now), 0);
    const uint32_t had = bag_core_take(&core, 3, now);
    bag_core_bar(&core, 1, now); /* of whom one is barred ... */
    now += BAG_SILENT_MS * MS - MS;
    bag_core_tick(&core, now);
    assert_int_equal(core.silent, 7); /* ... and four more fall silent a little later */
    assert_int_equal(worker(rng_mix(2)), 2);
    assert_true(done(3, had)); /* a late result counts, as long as nobody has its place */
    assert_int_equal(worker(rng_mix(10001)), 3);
    assert_false(done(3, 0)); /* another worker, which had nothing */
    assert_int_equal(worker(rng_mix(3)), 4); /* who returns is new */
    assert_int_equal(worker(rng_mix(10002)), 5);
    assert_int_equal(worker(rng_mix(10003)), 6);
    assert_int_equal(worker(rng_mix(10004)), 7);
    assert_int_equal(worker(rng_mix(10005)), 1); /* the barred one's is the last */
    assert_int_equal(worker(rng_mix(10006)), BAG_NONE);
    assert_int_equal(core.silent, 0);
    assert_true(bag_core_take(&core, 1, now) != BAG_NONE);
}

static void who_comes_after_many_others_is_found_again(void **state)
{
    (void)state;
    static uint64_t address[1 + BAG_WORKERS_MAX];
    const char *given = getenv("SEED");
    const uint64_t first = given != NULL ? strtoull(given, NULL, 10) : 1;
    uint64_t random = rng_mix(first);
    print_message("SEED=%llu\n", (unsigned long long)first);
    begin(3, 1);
    for (unsigned i = 0; i < 5 * BAG_WORKERS_MAX; i++) {
        const uint64_t one = (rng_next(&random) << 20) + 8000 + rng_below(&random, 600);
        const unsigned number = worker(one);
        if (number == BAG_NONE) { /* all live: a part of them falls silent */
            now += BAG_SILENT_MS * MS;
            for (unsigned k = 1; k <= BAG_WORKERS_MAX; k++) {
                if (rng_below(&random, 3) > 0) {
                    assert_int_equal(bag_core_receive(&core, address[k], now), k);
                }
            }
            bag_core_tick(&core, now);
        } else {
            address[number] = one;
        }
    }
    for (unsigned k = 1; k <= BAG_WORKERS_MAX; k++) {
        assert_int_equal(bag_core_receive(&core, address[k], now), k);
    }
}

static void the_dead_are_not_counted_when_positions_are_given_ahead(void **state)
{
    (void)state;
    begin(100, 1);
    for (uint64_t i = 1; i < 50; i++) {
        (void)worker(rng_mix(i));
    }
    now += BAG_SILENT_MS * MS;
    const unsigned w = worker(rng_mix(50));
    bag_core_tick(&core, now);
    assert_int_equal(core.silent, 49);
    unsigned got = 0;
    while (bag_core_take(&core, w, now) != BAG_NONE) {
        got++;
    }
    assert_int_equal(got, 21); /* one, and a quarter of the 80 that were left then */
}

static void what_has_no_room_yet_is_given_later(void **state)
{
    (void)state;
    begin(5, 2);
    bag_core_set_until(&core, 2);
    assert_int_equal(bag_core_take(&core, 0, now), 0);
    assert_int_equal(bag_core_take(&core, 1, now), 1);
    assert_true(done(0, 0));
    assert_int_equal(bag_core_take(&core, 0, now), 1); /* it helps */
    assert_true(done(1, 1));
    assert_true(is_dropped(0, 1));
    assert_int_equal(bag_core_take(&core, 0, now), BAG_NONE);
    assert_true(core.done < core.items);
    bag_core_set_until(&core, 4);
    assert_int_equal(bag_core_take(&core, 0, now), 2);
    assert_int_equal(bag_core_take(&core, 1, now), 3);
    bag_core_set_until(&core, 99);
    assert_true(done(0, 2));
    assert_int_equal(bag_core_take(&core, 0, now), 4);
}

/* ---- a model: workers that die, fall silent, and lose letters ---- */

enum { LOCALS = 2, WORKERS = 5, ITEMS = 60 };

struct model {
    unsigned number; /* of the worker; BAG_NONE: not there yet */
    bool is_dead;
    uint64_t stopped_until, busy_until;
    unsigned count;
    uint32_t item[BAG_ASSIGNED_MAX];
};

static struct model model[WORKERS];
static unsigned answers[ITEMS];
static uint64_t rng;

static bool is_lost(void)
{
    return rng_below(&rng, 10) == 0;
}

static void answer(unsigned searcher, uint32_t item)
{
    answers[item] += done(searcher, item);
}

static void remove_first(struct model *m)
{
    m->count--;
    for (unsigned i = 0; i < m->count; i++) {
        m->item[i] = m->item[i + 1];
    }
}

static void keep_assigned(struct model *m)
{
    unsigned kept = 0;
    m->busy_until = m->count > 0 && has(m->number, m->item[0]) ? m->busy_until : 0;
    for (unsigned i = 0; i < m->count; i++) {
        if (has(m->number, m->item[i])) {
            m->item[kept++] = m->item[i];
        }
    }
    m->count = kept;
}

static void step_worker(struct model *m, unsigned i)
{
    uint32_t item;
    if (m->is_dead || now < m->stopped_until) {
        m->number = m->is_dead ? m->number : bag_core_present(&core, rng_mix(i + 1), now);
        return;
    }
    m->number = bag_core_present(&core, rng_mix(i + 1), now);
    while ((item = bag_core_take(&core, m->number, now)) != BAG_NONE) {
        if (!is_lost() && m->count < BAG_ASSIGNED_MAX) {
            m->item[m->count++] = item;
        }
    }
    if (m->count > 0 && m->busy_until == 0) {
        m->busy_until = now + (1 + rng_below(&rng, 300)) * MS;
    }
    if (m->count > 0 && now >= m->busy_until) {
        item = m->item[0];
        remove_first(m);
        m->busy_until = 0;
        if (!is_lost()) {
            (void)bag_core_receive(&core, rng_mix(i + 1), now);
            answer(m->number, item);
        }
    }
    if (rng_below(&rng, 4) == 0 && !is_lost()) {
        (void)bag_core_receive(&core, rng_mix(i + 1), now);
        bag_core_has(&core, m->number, m->item, m->count, 5, now);
    }
}

static void drop_surplus(void)
{
    unsigned searcher;
    while ((searcher = bag_core_next_surplus(&core)) != BAG_NONE) {
        for (unsigned i = 0; i < WORKERS; i++) {
            if (model[i].number == searcher && !is_lost()) {
                keep_assigned(&model[i]);
            }
        }
    }
}

static void check_counts(void)
{
    unsigned sharers[ITEMS] = {0}, open = 0, ended = 0;
    for (unsigned s = 0; s < core.searchers; s++) {
        for (unsigned k = 0; k < core.searcher[s].count; k++) {
            sharers[core.searcher[s].assigned[k].item]++;
        }
    }
    for (unsigned i = 0; i < ITEMS; i++) {
        assert_int_equal(sharers[i], core.item[i].sharers);
        assert_true(answers[i] == (core.item[i].is_done ? 1u : 0u));
        open += sharers[i] == 0 && !core.item[i].is_done;
        ended += core.item[i].is_done;
    }
    assert_int_equal(open, core.open);
    assert_int_equal(ended, core.done);
}

static void run_model(uint64_t seed)
{
    uint64_t local_until[LOCALS] = {0};
    uint32_t local_item[LOCALS] = {BAG_NONE, BAG_NONE};
    rng = rng_mix(seed);
    begin(ITEMS, LOCALS);
    for (unsigned i = 0; i < WORKERS; i++) {
        model[i] = (struct model){.number = BAG_NONE};
    }
    for (unsigned i = 0; i < ITEMS; i++) {
        answers[i] = 0;
    }
    for (unsigned step = 0; core.done < core.items; step++) {
        assert_true(step < 100000);
        now += rng_below(&rng, 40) * MS;
        for (unsigned i = 0; i < WORKERS; i++) {
            if (rng_below(&rng, 200) == 0) {
                model[i].stopped_until = now + rng_below(&rng, 4000) * MS;
            }
            model[i].is_dead = model[i].is_dead || rng_below(&rng, 500) == 0;
            step_worker(&model[i], i);
        }
        for (unsigned i = 0; i < LOCALS; i++) {
            if (local_item[i] != BAG_NONE && now >= local_until[i]) {
                answer(i, local_item[i]);
                bag_core_return(&core, i, local_item[i], now);
                local_item[i] = BAG_NONE;
            }
            if (local_item[i] == BAG_NONE) {
                local_item[i] = bag_core_take(&core, i, now);
                local_until[i] = now + (1 + rng_below(&rng, 300)) * MS;
                assert_true(local_item[i] != BAG_NONE || core.done == core.items);
            }
        }
        drop_surplus();
        bag_core_tick(&core, now);
        check_counts();
    }
    bag_core_close(&core);
}

/* Each seed is another run; a failure repeats with SEED. */
static void every_position_is_answered_once(void **state)
{
    (void)state;
    const char *given = getenv("SEED");
    const uint64_t first = given != NULL ? strtoull(given, NULL, 10) : 1;
    for (uint64_t seed = first; seed < first + (given != NULL ? 1 : 200); seed++) {
        print_message("SEED=%llu\n", (unsigned long long)seed);
        run_model(seed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(each_searcher_gets_its_own, finish),
        cmocka_unit_test_teardown(who_never_answered_gets_one, finish),
        cmocka_unit_test_teardown(an_idle_one_takes_what_waits_and_then_joins, finish),
        cmocka_unit_test_teardown(the_silent_are_given_up_and_their_late_results_count, finish),
        cmocka_unit_test_teardown(what_a_worker_does_not_name_got_lost, finish),
        cmocka_unit_test_teardown(who_lies_gets_nothing_any_more, finish),
        cmocka_unit_test_teardown(nobody_answers_for_what_he_was_not_given, finish),
        cmocka_unit_test_teardown(
            what_is_searched_after_a_silence_is_kept_though_it_waits_elsewhere, finish),
        cmocka_unit_test_teardown(who_lives_keeps_its_place, finish),
        cmocka_unit_test_teardown(who_is_silent_longest_makes_room, finish),
        cmocka_unit_test_teardown(who_comes_after_many_others_is_found_again, finish),
        cmocka_unit_test_teardown(the_dead_are_not_counted_when_positions_are_given_ahead, finish),
        cmocka_unit_test_teardown(what_has_no_room_yet_is_given_later, finish),
        cmocka_unit_test_teardown(every_position_is_answered_once, finish),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
