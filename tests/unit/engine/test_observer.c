/* Who watches a search may take its time, and what waits for it is bounded. */
#include "tests/support/test_search.h"

#include "common/clock.h"
#include "worker/engine/engine.h"

#include <semaphore.h>
#include <unistd.h>

struct sleeper {
    const struct engine *engine;
    unsigned calls, last_depth;
    bool has_searched_on, is_in_order;
};

static uint64_t nodes_of(const struct engine *engine)
{
    return searcher_figures(engine_searcher(engine, 0)).sum.nodes;
}

/* Returns the first time when the search has gone on, or after far too long. */
static void sleep_in_iteration(void *self, unsigned line, const struct search_result *result,
                               const struct engine_status *status)
{
    struct sleeper *s = self;
    uint64_t before = nodes_of(s->engine), end_us = clock_us() + 30000000;
    (void)line;
    (void)status;
    while (s->calls == 0 && !s->has_searched_on && clock_us() < end_us) {
        usleep(1000);
        s->has_searched_on = nodes_of(s->engine) > before;
    }
    s->calls++;
    s->is_in_order = s->is_in_order && (result->depth > s->last_depth || result->bound != TT_EXACT);
    s->last_depth = result->bound == TT_EXACT ? result->depth : s->last_depth;
}

static void an_observer_that_sleeps_stops_no_search(void **state)
{
    (void)state;
    struct engine_options options = {.threads = 1, .hash_bytes = 4 << 20};
    struct job job = {.algorithm = algorithm_by_name("abdada"),
                      .depth = SEARCH_DEPTH_MAX,
                      .remote_depth = PROTO_REMOTE_DEPTH_AUTO,
                      .time_ms = 200};
    struct engine *engine = NULL;
    char why[ENGINE_WHY_MAX];
    assert_int_equal(engine_open(&engine, &options, why), ERR_OK);
    assert_int_equal(job_set_position(&job, test_game(), "startpos", why, sizeof why), ERR_OK);
    job_set_namespace(&job, 0);
    struct sleeper s = {.engine = engine, .is_in_order = true};
    struct engine_observer observer = {.self = &s, .iteration = sleep_in_iteration};
    struct engine_result result;
    engine_arm(engine);
    assert_int_equal(engine_run(engine, &job, &observer, &result), ERR_OK);
    assert_true(s.has_searched_on);
    assert_true(s.is_in_order);
    assert_int_equal(s.last_depth, result.search.depth); /* and nothing was lost */
    job_free(&job);
    engine_close(&engine);
}

enum { LINES = 2000, PROGRESS = 9 };

struct counter {
    sem_t *gate;
    unsigned last, lines, progress, refusals;
    bool is_right;
};

static void count_line(void *self, unsigned line, const struct search_result *result,
                       const struct engine_status *status)
{
    struct counter *c = self;
    (void)line;
    (void)status;
    if (c->lines++ == 0) {
        sem_wait(c->gate);
    }
    c->is_right = c->is_right && result->depth > c->last;
    c->last = result->depth;
}

static void count_progress(void *self, const struct search_result *best,
                           const struct engine_status *status)
{
    struct counter *c = self;
    (void)status;
    c->progress++;
    c->is_right = c->is_right && best->depth == PROGRESS;
}

static void count_refusal(void *self, unsigned shard, const char *why,
                          const struct engine_status *status)
{
    struct counter *c = self;
    (void)status;
    c->is_right = c->is_right && shard == 3 && strcmp(why, "no") == 0;
    c->refusals++;
}

static void what_waits_for_an_observer_is_bounded_and_the_newest_stays(void **state)
{
    (void)state;
    sem_t gate;
    struct observer *observer = NULL;
    struct counter c = {.gate = &gate, .is_right = true};
    struct engine_observer to = {
        .self = &c, .iteration = count_line, .progress = count_progress, .refused = count_refusal};
    struct engine_status status = {0};
    struct search_result result = {.depth = 0};
    sem_init(&gate, 0, 0);
    assert_int_equal(observer_open(&observer), ERR_OK);
    observer_begin(observer, &to);
    observer_note_refusal(observer, 3, "no", &status);
    for (result.depth = 1; result.depth <= LINES; result.depth++) {
        observer_note_line(observer, 0, &result, &status);
    }
    assert_false(observer_end(observer, 1));
    for (result.depth = 1; result.depth <= PROGRESS; result.depth++) {
        observer_note_progress(observer, &result, &status);
    }
    sem_post(&gate);
    while (!observer_end(observer, 1000)) {
    }
    assert_true(c.is_right);
    assert_int_equal(c.last, LINES);
    assert_in_range(c.lines, SEARCH_LINES_MAX, LINES - 1);
    assert_int_equal(c.progress, 1);
    assert_int_equal(c.refusals, 1);
    observer_begin(observer, NULL);
    observer_note_line(observer, 0, &result, &status);
    assert_true(observer_end(observer, 0));
    observer_close(&observer);
    sem_destroy(&gate);
}

struct reader {
    sem_t *gate;
    unsigned lines, next; /* of an iteration; the one that is to come */
    unsigned depth, whole, torn;
    bool has_waited, is_right;
};

static void read_reported(void *self, unsigned line, const struct search_result *result,
                          const struct engine_status *status)
{
    struct reader *t = self;
    (void)status;
    if (!t->has_waited) {
        sem_wait(t->gate);
        t->has_waited = true;
    }
    if (line == 0) {
        t->torn += t->next > 0;
        t->next = 0;
        t->is_right = t->is_right && result->depth > t->depth;
        t->depth = result->depth;
    }
    t->is_right = t->is_right && line == t->next && result->depth == t->depth;
    t->next = line + 1 < t->lines ? line + 1 : 0;
    t->whole += t->next == 0;
}

enum { ITERATIONS = 400 };

static struct reader report_iterations(unsigned lines)
{
    sem_t gate;
    struct observer *observer = NULL;
    struct reader t = {.gate = &gate, .lines = lines, .is_right = true};
    struct engine_observer to = {.self = &t, .iteration = read_reported};
    struct engine_status status = {0};
    struct search_result result = {.depth = 0};
    sem_init(&gate, 0, 0);
    assert_int_equal(observer_open(&observer), ERR_OK);
    observer_begin(observer, &to);
    for (result.depth = 1; result.depth <= ITERATIONS; result.depth++) {
        for (unsigned line = 0; line < lines; line++) {
            observer_note_line(observer, line, &result, &status);
        }
    }
    sem_post(&gate);
    while (!observer_end(observer, 1000)) {
    }
    observer_close(&observer);
    sem_destroy(&gate);
    return t;
}

/* Lines of two iterations would be taken for those of one. */
static void the_lines_of_an_iteration_are_left_out_together(void **state)
{
    (void)state;
    static const unsigned lines[] = {2, 3, 100, 191, 192, SEARCH_LINES_MAX};
    for (unsigned i = 0; i < sizeof lines / sizeof *lines; i++) {
        const struct reader t = report_iterations(lines[i]);
        assert_true(t.is_right);
        assert_int_equal(t.depth, ITERATIONS); /* the newest, */
        assert_int_equal(t.next, 0); /* to its end */
        assert_in_range(t.whole, 1, ITERATIONS - 1);
        assert_in_range(t.torn, 0, 1); /* the one that was being reported */
        assert_true(lines[i] > 100 || t.torn == 0);
    }
}

enum { SHARDS = 64, ROUNDS = 500 }; /* more lines than there is room for */

struct shards {
    sem_t *gate, *there;
    unsigned reported[SHARDS], depth;
    char why[SHARDS][JOB_WHY_MAX];
};

static void wait_in_line(void *self, unsigned line, const struct search_result *result,
                         const struct engine_status *status)
{
    struct shards *s = self;
    (void)line;
    (void)status;
    if (s->depth == 0) {
        sem_post(s->there);
        sem_wait(s->gate);
    }
    s->depth = result->depth;
}

static void keep_refusal(void *self, unsigned shard, const char *why,
                         const struct engine_status *status)
{
    struct shards *s = self;
    (void)status;
    s->reported[shard]++;
    snprintf(s->why[shard], JOB_WHY_MAX, "%s", why != NULL ? why : "(taken)");
}

static void of_a_shard_the_newest_word_is_reported(void **state)
{
    (void)state;
    sem_t gate, there;
    struct observer *observer = NULL;
    struct shards s = {.gate = &gate, .there = &there};
    struct engine_observer to = {.self = &s, .iteration = wait_in_line, .refused = keep_refusal};
    struct engine_status status = {0};
    struct search_result result = {.depth = 1};
    sem_init(&gate, 0, 0);
    sem_init(&there, 0, 0);
    assert_int_equal(observer_open(&observer), ERR_OK);
    observer_begin(observer, &to);
    observer_note_line(observer, 0, &result,
                       &status); /* nothing behind it is reported before the gate */
    for (unsigned i = 0; i < ROUNDS; i++) {
        for (unsigned shard = 0; shard < SHARDS; shard++) {
            observer_note_refusal(observer, shard, "no", &status);
        }
        result.depth = 2 + i;
        observer_note_line(observer, 0, &result, &status);
    }
    observer_note_refusal(observer, 3, NULL, &status);
    observer_note_refusal(observer, 4, NULL, &status);
    observer_note_refusal(observer, 4, "still no", &status);
    sem_post(&gate);
    while (!observer_end(observer, 1000)) {
    }
    for (unsigned shard = 0; shard < SHARDS; shard++) {
        assert_int_equal(s.reported[shard], 1);
        assert_string_equal(s.why[shard], shard == 3 ? "(taken)" : shard == 4 ? "still no" : "no");
    }
    assert_int_equal(s.depth, ROUNDS + 1);
    observer_close(&observer);
    sem_destroy(&gate);
    sem_destroy(&there);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_observer_that_sleeps_stops_no_search),
        cmocka_unit_test(what_waits_for_an_observer_is_bounded_and_the_newest_stays),
        cmocka_unit_test(the_lines_of_an_iteration_are_left_out_together),
        cmocka_unit_test(of_a_shard_the_newest_word_is_reported),
    };
    return cmocka_run_group_tests_name("observer", tests, NULL, NULL);
}
