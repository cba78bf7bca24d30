/* Worker indexes: without gaps, each user's side by side, and sent in turns. */
#include "tests/support/test_ttcore.h"

#include "common/rng.h"

#include <stdio.h>

/* Every worker's worker_index as the ticks of one heartbeat send it; once at least to each.
 */
static void indexes_are(struct bed *bed, const char *const *who, unsigned workers)
{
    int worker_index[8];
    bool taken[8] = {false};
    for (unsigned i = 0; i < workers; i++) {
        worker_index[i] = -1;
    }
    bed->now_us += HEARTBEAT_US / 4;
    bed_event(bed, TTCORE_TICK);
    for (unsigned i = 0; i < workers; i++) {
        worker_index[i] = bed_worker_index(bed, who[i]);
        assert_in_range(worker_index[i], 0, workers - 1);
        assert_false(taken[worker_index[i]]);
        taken[worker_index[i]] = true;
        assert_int_equal(bed->seen.worker_index.workers, workers);
    }
}

static void workers_sit_without_gaps(void **state)
{
    struct bed *bed = *state;
    static const char *const who[] = {"a", "b", "c", "d"};
    for (unsigned i = 0; i < 4; i++) {
        bed_hello(bed, who[i], PROTO_WORKER);
        assert_int_equal(bed_worker_index(bed, who[i]), i);
    }
    bed_hello(bed, "front", PROTO_FRONT);
    assert_int_equal(bed_worker_index(bed, "front"), -1);
    indexes_are(bed, who, 4);
    bed_hello(bed, "b", PROTO_WORKER); /* again: it keeps its worker_index */
    assert_int_equal(bed_worker_index(bed, "b"), 1);
    bed_bye(bed, "b");
    static const char *const left[] = {"a", "c", "d"};
    indexes_are(bed, left, 3);
    bed_hello(bed, "c", PROTO_CLIENT);
    static const char *const two[] = {"a", "d"};
    indexes_are(bed, two, 2);
    bed_hello(bed, "c", PROTO_WORKER);
    indexes_are(bed, left, 3);
    bed_lose(bed, "a");
    static const char *const last[] = {"d", "c"};
    indexes_are(bed, last, 2);
}

static void works_for(struct bed *bed, const char *who, uint64_t user, uint64_t instance)
{
    const struct ttcore_peer peer = {user, 0xf, "x"};
    bed->peer = &peer;
    bed_hello_as(bed, who, (struct proto_hello){.role = PROTO_WORKER, .instance = instance});
    bed->peer = NULL;
}

/* A user's workers have consecutive indexes, as a tick tells them, whatever others do. */
static void each_users_workers_sit_side_by_side(void **state)
{
    enum { USERS = 5, EACH = 6, SHOWN = USERS * EACH };
    struct bed *bed = *state;
    bool here[USERS][EACH] = {{false}};
    const char *text = getenv("SEED");
    uint64_t rng = text != NULL ? strtoull(text, NULL, 10) : 19;
    printf("# SEED=%llu\n", (unsigned long long)rng);
    for (unsigned round = 0; round < 2000; round++) {
        unsigned u = (unsigned)rng_below(&rng, USERS), w = (unsigned)rng_below(&rng, EACH);
        unsigned least[USERS], most[USERS], count[USERS] = {0}, live = 0;
        bool taken[SHOWN] = {false};
        char name[16];
        snprintf(name, sizeof name, "w%u.%u", u, w);
        if (here[u][w] && rng_below(&rng, 2) == 0) {
            bed_bye(bed, name);
            here[u][w] = false;
        } else { /* once more, as another, or for the first time */
            works_for(bed, name, 100 + u, rng_below(&rng, 3));
            here[u][w] = true;
        }
        bed->now_us += 1000;
        bed_event(bed, TTCORE_TICK);
        for (unsigned i = 0; i < SHOWN; i++) {
            u = i / EACH;
            if (here[u][i % EACH]) {
                snprintf(name, sizeof name, "w%u.%u", u, i % EACH);
                unsigned index = (unsigned)bed_worker_index(bed, name);
                assert_in_range(index, 0, SHOWN - 1);
                assert_false(taken[index]);
                taken[index] = true;
                least[u] = count[u] == 0 || index < least[u] ? index : least[u];
                most[u] = count[u] == 0 || index > most[u] ? index : most[u];
                count[u]++;
                live++;
            }
        }
        for (u = 0; u < USERS; u++) {
            assert_true(count[u] == 0 || most[u] - least[u] == count[u] - 1);
        }
        for (unsigned i = 0; i < SHOWN; i++) {
            assert_true(taken[i] == (i < live));
        }
        for (u = 0; round % 100 == 99 && u < USERS; u++) { /* none is to be silent for too long */
            for (w = 0; w < EACH; w++) {
                snprintf(name, sizeof name, "w%u.%u", u, w);
                if (here[u][w]) {
                    bed_say(bed, name, (struct proto_message){.type = PROTO_HEARTBEAT});
                }
            }
        }
    }
}

/* Of those who have one worker each, only the last moves when another leaves. */
static void who_leaves_moves_no_more_than_the_last_of_each_user(void **state)
{
    struct bed *bed = *state;
    char name[16];
    for (unsigned u = 0; u < 8; u++) {
        snprintf(name, sizeof name, "w%u", u);
        works_for(bed, name, 100 + u, u);
    }
    bed_bye(bed, "w2");
    bed->now_us += HEARTBEAT_US / 4;
    bed_event(bed, TTCORE_TICK);
    for (unsigned u = 0; u < 8; u++) {
        snprintf(name, sizeof name, "w%u", u);
        assert_int_equal(bed_worker_index(bed, name), u == 2 ? -1 : u == 7 ? 2 : (int)u);
    }
}

/* A worker whose connection comes as another user sits with those from then on. */
static void a_worker_of_another_user_changes_its_place(void **state)
{
    struct bed *bed = *state;
    works_for(bed, "a", 7, 1);
    works_for(bed, "b", 8, 2);
    works_for(bed, "c", 7, 3);
    assert_int_equal(bed_worker_index(bed, "c"), 1);
    works_for(bed, "a", 8, 4);
    assert_int_equal(bed_worker_index(bed, "a"), 2);
    bed_bye(bed, "c");
    bed_bye(bed, "b");
    works_for(bed, "a", 8, 4);
    assert_int_equal(bed_worker_index(bed, "a"), 0);
}

static void many_worker_indexes_are_sent_in_turns(void **state)
{
    struct ttcore_options options = bed_options();
    options.sessions_max = 3 * TTCORE_INDEXES_PER_TICK;
    bed_close(*state);
    struct bed *bed = *state = bed_open(&options);
    char name[16];
    unsigned sent = 0;
    for (unsigned i = 0; i < 3 * TTCORE_INDEXES_PER_TICK; i++) {
        snprintf(name, sizeof name, "w%u", i);
        bed_hello_as(bed, name, (struct proto_hello){.role = PROTO_WORKER, .instance = i});
    }
    for (unsigned tick = 0; tick < 3; tick++) {
        bed->now_us += HEARTBEAT_US / 4;
        bed_event(bed, TTCORE_TICK);
        assert_int_equal(bed->actions.messages, TTCORE_INDEXES_PER_TICK);
        for (unsigned i = 0; i < 3 * TTCORE_INDEXES_PER_TICK; i++) {
            snprintf(name, sizeof name, "w%u", i);
            sent += bed_worker_index(bed, name) == (int)i;
        }
    }
    assert_int_equal(sent, 3 * TTCORE_INDEXES_PER_TICK);
    assert_int_equal(bed_figures(bed).dropped, 0);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, bed_setup, bed_teardown)
    const struct CMUnitTest tests[] = {
        T(workers_sit_without_gaps),
        T(each_users_workers_sit_side_by_side),
        T(who_leaves_moves_no_more_than_the_last_of_each_user),
        T(a_worker_of_another_user_changes_its_place),
        T(many_worker_indexes_are_sent_in_turns),
    };
    return cmocka_run_group_tests_name("ttcore_indexes", tests, NULL, NULL);
}
