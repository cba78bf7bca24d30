/* Who watches a search may take its time, and what waits for it is bounded. */
#include "tests/support/test_search.h"

#include "common/clock.h"
#include "worker/engine/engine_state.h"

#include <unistd.h>

struct sleeper {
    struct engine *engine;
    unsigned calls, last_depth;
    bool has_searched_on, is_in_order;
};

static struct engine *open_engine(void)
{
    struct engine_options options = {.threads = 1, .hash_bytes = 4 << 20};
    struct engine *engine = NULL;
    char why[ENGINE_WHY_MAX];
    assert_int_equal(engine_open(&engine, &options, why), ERR_OK);
    return engine;
}

static uint64_t nodes_of(const struct engine *engine)
{
    return searcher_figures(engine_searcher(engine, 0)).now.nodes;
}

/* Returns the first time when the search has gone on, or after far too long. */
static void sleep_in_iteration(void *self, unsigned line, const struct search_result *result,
                               const struct engine_status *status)
{
    struct sleeper *s = self;
    uint64_t before = nodes_of(s->engine), end_us = clock_us() + 150000000;
    (void)line;
    (void)status;
    while (s->calls == 0 && !s->has_searched_on && clock_us() < end_us) {
        usleep(1000);
        s->has_searched_on = nodes_of(s->engine) > before;
    }
    s->calls++;
    s->is_in_order = s->is_in_order && (result->depth > s->last_depth ||
                                        result->bound != TT_EXACT || result->unfinished > 0);
    s->last_depth = result->bound == TT_EXACT ? result->depth : s->last_depth;
    if (s->calls >= 8) {
        engine_stop(s->engine);
    }
}

static void an_observer_that_sleeps_stops_no_search(void **state)
{
    (void)state;
    struct engine *engine = open_engine();
    struct job job = {.algorithm = algorithm_by_name("abdada"),
                      .depth = SEARCH_DEPTH_MAX,
                      .remote_depth = PROTO_REMOTE_DEPTH_AUTO};
    char why[ENGINE_WHY_MAX];
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

enum { ITERATIONS = 400 };

struct reader {
    unsigned lines, next; /* of an iteration; the one that is to come */
    unsigned depth, whole;
};

/* False: nothing waits. Lines of two iterations would be taken for those of one. */
static bool read_line(struct reader *t, struct engine_lines *lines)
{
    struct engine_line line;
    if (!engine_lines_take(lines, &line)) {
        return false;
    }
    assert_int_equal(line.number, t->next);
    assert_true(line.number > 0 ? line.result.depth == t->depth : line.result.depth > t->depth);
    assert_int_equal(line.status.depth, line.result.depth);
    t->depth = line.result.depth;
    t->next = line.number + 1 < t->lines ? line.number + 1 : 0;
    t->whole += t->next == 0;
    return true;
}

static void put_iteration(struct engine_lines *lines, unsigned depth, unsigned count)
{
    const struct search_result result = {.depth = depth, .bound = TT_EXACT};
    const struct engine_status status = {.depth = depth};
    for (unsigned line = 0; line < count; line++) {
        engine_lines_put(lines, line, &result, &status);
    }
}

static void the_lines_of_an_iteration_are_left_out_together(void **state)
{
    (void)state;
    static const unsigned counts[] = {1, 2, 3, 100, 191, 192, SEARCH_LINES_MAX};
    static struct engine_lines lines;
    for (unsigned i = 0; i < sizeof counts / sizeof *counts; i++) {
        struct reader t = {.lines = counts[i]};
        memset(&lines, 0, sizeof lines);
        put_iteration(&lines, 1, t.lines);
        read_line(&t, &lines); /* is being told while the others come */
        for (unsigned depth = 2; depth <= ITERATIONS; depth++) {
            put_iteration(&lines, depth, t.lines);
        }
        assert_in_range(lines.count, t.lines, ENGINE_LINES_MAX);
        while (read_line(&t, &lines)) {
        }
        assert_int_equal(t.depth, ITERATIONS); /* the newest, */
        assert_int_equal(t.next, 0); /* to its end */
        assert_in_range(t.whole, 2, ITERATIONS - 1);
    }
}

static void bounds_leave_out_no_line(void **state)
{
    (void)state;
    static struct engine_lines lines;
    struct reader t = {.lines = SEARCH_LINES_MAX};
    const struct search_result bound = {.depth = 2, .bound = TT_LOWER};
    const struct engine_status status = {.depth = 2};
    memset(&lines, 0, sizeof lines);
    put_iteration(&lines, 1, t.lines);
    for (unsigned i = 0; i < 2 * ENGINE_LINES_MAX; i++) {
        engine_lines_put(&lines, 0, &bound, &status);
    }
    for (unsigned i = 0; i < SEARCH_LINES_MAX; i++) {
        assert_true(read_line(&t, &lines));
    }
    put_iteration(&lines, 3, t.lines);
    while (lines.count > SEARCH_LINES_MAX) {
        struct engine_line line;
        assert_true(engine_lines_take(&lines, &line) && line.result.bound == TT_LOWER);
    }
    while (read_line(&t, &lines)) {
    }
    assert_int_equal(t.whole, 2);
}

/* ---- shards that refuse the job ---- */

struct refusals {
    unsigned count, shard;
    char why[FRONT_WHY_MAX];
};

static void keep_refusal(void *self, unsigned shard, const char *why,
                         const struct engine_status *status)
{
    struct refusals *r = self;
    (void)status;
    r->count++;
    r->shard = shard;
    snprintf(r->why, sizeof r->why, "%s", why != NULL ? why : "(taken)");
}

static void refuse(struct engine *engine, const char *words)
{
    const struct proto_text why = proto_text_of(words);
    const struct client_event no = {CLIENT_JOB_REFUSED, 3, .refused = {7, &why}};
    front_core_event(&engine->front, &no, clock_us());
}

static struct refusals refusals_of(struct engine *engine)
{
    struct refusals r = {.count = 0};
    pthread_mutex_lock(&engine->lock);
    while (engine_has_refusal(engine)) {
        engine_report_refusal(engine, keep_refusal, &r);
    }
    pthread_mutex_unlock(&engine->lock);
    return r;
}

static void of_a_shard_the_newest_word_is_reported(void **state)
{
    (void)state;
    struct engine *engine = open_engine();
    struct job job = {.id = 7};
    const struct proto_job_report report = {.job = 7};
    const struct client_event taken = {CLIENT_JOB_REPORT, 3, .job_report = &report};
    engine_begin(engine, &job, 1, false);
    assert_int_equal(refusals_of(engine).count, 0);
    refuse(engine, "no");
    refuse(engine, "still no");
    struct refusals r = refusals_of(engine);
    assert_true(r.count == 1 && r.shard == 3);
    assert_string_equal(r.why, "still no");
    refuse(engine, "still no");
    assert_int_equal(refusals_of(engine).count, 0);
    front_core_event(&engine->front, &taken, clock_us());
    r = refusals_of(engine);
    assert_true(r.count == 1 && r.shard == 3);
    assert_string_equal(r.why, "(taken)");
    engine_end(engine);
    engine_close(&engine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_observer_that_sleeps_stops_no_search),
        cmocka_unit_test(the_lines_of_an_iteration_are_left_out_together),
        cmocka_unit_test(bounds_leave_out_no_line),
        cmocka_unit_test(of_a_shard_the_newest_word_is_reported),
    };
    return cmocka_run_group_tests_name("observer", tests, NULL, NULL);
}
