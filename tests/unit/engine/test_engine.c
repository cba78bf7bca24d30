/* The engine with no servers: threads, limits, stop; and jobs to the wire and back. */
#include "tests/support/test_search.h"

#include "common/clock.h"
#include "worker/engine/engine.h"
#include "worker/engine/searcher.h"
#include "worker/search/children.h"

#include <dlfcn.h>
#include <errno.h>

static const char *const position = "3r1k2/4npp1/1ppr3p/p6P/P2PPPP1/1NR5/5K2/2R5 w - - 0 1";

static struct engine *open_engine(unsigned threads)
{
    struct engine_options options = {.threads = threads, .hash_bytes = 4 << 20};
    struct engine *engine = NULL;
    char why[ENGINE_WHY_MAX];
    assert_int_equal(engine_open(&engine, &options, why), ERR_OK);
    return engine;
}

static struct job make_job(const char *text, const char *algorithm, unsigned depth)
{
    char why[128] = "";
    struct job job = {
        .algorithm = algorithm_by_name(algorithm),
        .strict = true,
        .depth = (uint8_t)depth,
        .remote_depth = PROTO_REMOTE_DEPTH_AUTO,
    };
    if (job_set_position(&job, test_game(), text, why, sizeof why) != ERR_OK) {
        fail_msg("%s: %s", text, why);
    }
    job_set_namespace(&job, 0);
    return job;
}

static struct engine_result run(struct engine *engine, struct job *job,
                                const struct engine_observer *observer)
{
    struct engine_result result;
    engine_arm(engine);
    assert_int_equal(engine_run(engine, job, observer, &result), ERR_OK);
    return result;
}

static void threads_agree_on_a_strict_score(void **state)
{
    (void)state;
    static const char *const algorithms[] = {"sequential", "abdada", "abdada-paper",
                                             "shared-table"};
    int score = 0;
    for (unsigned a = 0; a < 4; a++) {
        struct engine *engine = open_engine(4);
        struct job job = make_job(position, algorithms[a], 6);
        struct engine_result result = run(engine, &job, NULL);
        score = a == 0 ? result.search.score : score;
        assert_int_equal(result.search.score, score);
        assert_int_equal(result.search.depth, 6);
        assert_true(result.search.pv.move[0] == result.search.move && result.search.move != 0);
        assert_false(result.stopped);
        assert_true(result.status.own.nodes > 0);
        job_free(&job);
        engine_close(&engine);
    }
}

static bool serve_one(void *self, struct search *search)
{
    searcher_serve(self, search, clock_us());
    return false;
}

/* One of `neighbours` on that table, which is borrowed. */
static struct searcher *open_searchers(struct embedded *table, unsigned neighbours)
{
    struct searcher *p = memory_lines(sizeof *p);
    struct searcher_options options = {.table = table, .neighbours = neighbours};
    assert_non_null(p);
    assert_int_equal(searcher_open(p, &options), ERR_OK);
    return p;
}

static void close_searchers(struct searcher *p)
{
    searcher_close(p);
    free(p);
}

/* Each search begins by choosing its place; polls keep the entry fresh; its end removes it. */
static void searchers_publish_their_place(void **state)
{
    (void)state;
    struct embedded *table = NULL;
    assert_int_equal(embedded_open(&table, 4 << 20, 1), ERR_OK);
    struct searcher *p = open_searchers(table, 1);
    struct job job = make_job(position, "abdada", 1);
    struct env_port env = {.self = p, .poll = serve_one};
    int cpu = sched_getcpu();
    bool is_known = cpu >= 0 && cpu < CPU_SETSIZE;
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(searcher_begin(p, &job, &env, 0), ERR_OK);
        assert_false(p->local.is_placed);
        uint64_t now = clock_us();
        searcher_serve(p, p->search, now);
        assert_true(p->local.is_placed);
        assert_int_equal(p->local.place.recorded > 0, is_known);
        assert_true(p->local.place.due_us == now + PLACEMENT_EVERY_US);
        searcher_serve(p, p->search, now + PLACEMENT_EVERY_US);
        assert_true(p->local.place.due_us == now + 2 * PLACEMENT_EVERY_US);
        assert_int_equal(p->local.place.recorded > 0, is_known);
        searcher_end(p);
        assert_int_equal(p->local.place.recorded, 0);
    }
    job_free(&job);
    close_searchers(p);
    embedded_close(&table);
}

/* ---- an algorithm that registers nothing ---- */

static atomic_uint divided;

static enum search_visit children_noted(struct search *s, struct node *n)
{
    atomic_fetch_add(&divided, 1);
    return children_in_order(s, n);
}

static bool expect_none_in_flight(void *self, struct search *search)
{
    struct searcher *p = self;
    assert_int_equal(embedded_inflight(p->local.table), 0);
    return serve_one(self, search);
}

static void an_algorithm_that_counts_nothing_divides_nodes(void **state)
{
    (void)state;
    static const struct algorithm row = {"noted", children_noted, false, true, true, false};
    struct embedded *table = NULL;
    assert_int_equal(embedded_open(&table, 4 << 20, 1), ERR_OK);
    struct searcher *p = open_searchers(table, 2);
    struct job job = make_job(position, "abdada", 5);
    struct env_port env = {.self = p, .poll = expect_none_in_flight};
    struct search_result result;
    job.algorithm = &row;
    assert_int_equal(searcher_begin(p, &job, &env, 0), ERR_OK);
    search_run(p->search, NULL, NULL, &result);
    searcher_end(p);
    assert_true(result.depth == 5 && atomic_exchange(&divided, 0) > 0);
    close_searchers(p);
    embedded_close(&table);

    struct engine *engine = open_engine(2);
    assert_int_equal(run(engine, &job, NULL).search.score, result.score);
    assert_true(atomic_load(&divided) > 0);
    engine_close(&engine);
    job_free(&job);
}

static void a_second_run_over_the_same_table_agrees(void **state)
{
    (void)state;
    struct engine *engine = open_engine(2);
    struct job job = make_job(position, "abdada", 5);
    struct engine_result first = run(engine, &job, NULL);
    struct engine_result again = run(engine, &job, NULL);
    assert_int_equal(first.search.score, again.search.score);
    assert_true(again.status.own.nodes < first.status.own.nodes);
    engine_clear(engine);
    struct engine_result fresh = run(engine, &job, NULL);
    assert_int_equal(first.search.score, fresh.search.score);
    job_free(&job);
    engine_close(&engine);
}

/* The table alone is not all: histories order the moves, and correct evaluations. */
static void a_search_after_forgetting_is_the_first_again(void **state)
{
    (void)state;
    struct engine *engine = open_engine(1);
    struct job job = make_job(position, "abdada", 8);
    job.strict = false;
    job.full = true;
    job_set_repeatable_namespace(&job, 0);
    const uint64_t first = run(engine, &job, NULL).status.own.nodes;
    engine_clear(engine);
    assert_true(run(engine, &job, NULL).status.own.nodes != first);
    engine_forget(engine);
    assert_true(run(engine, &job, NULL).status.own.nodes == first);
    job_free(&job);
    engine_close(&engine);
}

static void the_node_limit_is_kept_to_a_poll_per_thread(void **state)
{
    (void)state;
    for (unsigned threads = 1; threads <= 4; threads *= 2) {
        struct engine *engine = open_engine(threads);
        struct job job = make_job(position, "abdada", SEARCH_DEPTH_MAX);
        job.nodes = 20000;
        struct engine_result result = run(engine, &job, NULL);
        assert_in_range(result.search.depth, 1, SEARCH_DEPTH_MAX - 1);
        assert_in_range(result.status.own.nodes, job.nodes,
                        job.nodes + (threads + 1) * SEARCH_POLL_NODES * 2);
        job_free(&job);
        engine_close(&engine);
    }
}

static void the_time_limit_ends_a_search(void **state)
{
    (void)state;
    struct engine *engine = open_engine(2);
    struct job job = make_job(position, "abdada", SEARCH_DEPTH_MAX);
    job.time_ms = 100;
    struct engine_result result = run(engine, &job, NULL);
    assert_in_range(result.search.depth, 1, SEARCH_DEPTH_MAX - 1);
    assert_true(result.status.time_us >= 100 * 1000);
    assert_false(result.stopped);
    job_free(&job);
    engine_close(&engine);
}

/* ---- the observer ---- */

struct witness {
    struct engine *engine;
    unsigned last_depth, stop_at, calls;
    bool ordered;
};

static void see_iteration(void *self, unsigned line, const struct search_result *result,
                          const struct engine_status *status)
{
    struct witness *w = self;
    (void)status;
    if (line > 0 || result->bound != TT_EXACT) {
        return;
    }
    w->ordered = w->ordered && result->depth > w->last_depth;
    w->last_depth = result->depth;
    w->calls++;
    if (result->depth == w->stop_at) {
        engine_stop(w->engine);
    }
}

static void iterations_are_reported_once_and_in_order(void **state)
{
    (void)state;
    struct engine *engine = open_engine(4);
    struct job job = make_job(position, "abdada", 5);
    struct witness w = {.engine = engine, .ordered = true};
    struct engine_observer observer = {.self = &w, .iteration = see_iteration};
    run(engine, &job, &observer);
    assert_true(w.ordered);
    assert_int_equal(w.last_depth, 5);
    assert_in_range(w.calls, 1, 5);
    job_free(&job);
    engine_close(&engine);
}

/* How many threads the system still starts. */
static atomic_uint allowed = UINT_MAX;

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *),
                   void *context)
{
    static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    *(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
    if (atomic_load(&allowed) == 0) {
        return EAGAIN;
    }
    atomic_fetch_sub(&allowed, 1);
    return real(thread, attributes, start, context);
}

static void an_engine_does_with_the_threads_that_it_gets(void **state)
{
    (void)state;
    struct engine *engine = open_engine(4);
    struct job job = make_job(position, "abdada", 5);
    const int score = run(engine, &job, NULL).search.score;
    for (unsigned threads = 0; threads <= 4; threads++) {
        struct witness w = {.engine = engine, .ordered = true};
        struct engine_observer observer = {.self = &w, .iteration = see_iteration};
        engine_clear(engine);
        atomic_store(&allowed, threads);
        const struct engine_result result = run(engine, &job, &observer);
        assert_int_equal(atomic_exchange(&allowed, UINT_MAX), 0);
        assert_int_equal(result.search.score, score);
        assert_true(w.ordered && w.last_depth == 5);
        assert_false(result.stopped);
    }
    job_free(&job);
    engine_close(&engine);
}

static void stop_ends_all_threads_and_leaves_nothing_behind(void **state)
{
    (void)state;
    struct engine *engine = open_engine(4);
    struct job job = make_job(position, "abdada", SEARCH_DEPTH_MAX);
    for (unsigned depth = 1; depth <= 4; depth++) {
        struct witness w = {.engine = engine, .stop_at = depth, .ordered = true};
        struct engine_observer observer = {.self = &w, .iteration = see_iteration};
        struct engine_result result = run(engine, &job, &observer);
        assert_true(result.stopped);
        assert_true(result.search.depth >= depth);
    }
    job.depth = 5;
    struct engine_result after = run(engine, &job, NULL);
    engine_clear(engine);
    struct engine_result fresh = run(engine, &job, NULL);
    assert_int_equal(after.search.score, fresh.search.score);
    job_free(&job);
    engine_close(&engine);
}

static void a_stop_that_comes_before_the_run_is_not_lost(void **state)
{
    (void)state;
    struct engine *engine = open_engine(2);
    struct job job = make_job(position, "abdada", SEARCH_DEPTH_MAX);
    struct engine_result result;
    engine_arm(engine);
    engine_stop(engine);
    assert_int_equal(engine_run(engine, &job, NULL, &result), ERR_OK);
    assert_true(result.stopped);
    assert_true(result.search.move != 0);
    job_free(&job);
    engine_close(&engine);
}

static void a_finished_game_is_answered_at_once(void **state)
{
    (void)state;
    struct engine *engine = open_engine(3);
    struct job job = make_job("7k/5Q2/6K1/8/8/8/8/8 b - - 0 1", "abdada", 9);
    struct engine_result result = run(engine, &job, NULL);
    assert_int_equal(result.search.move, 0);
    assert_int_equal(result.search.score, 0);
    assert_int_equal(result.search.depth, 9);
    job_free(&job);
    engine_close(&engine);
}

/* ---- jobs ---- */

static void unlike_searches_have_unlike_namespaces(void **state)
{
    (void)state;
    uint64_t namespace_id[5];
    struct job job = make_job(position, "abdada", 5);
    for (unsigned i = 0; i < 5; i++) {
        job.strict = i & 1;
        job.full = i & 2;
        job_set_namespace(&job, i == 4 ? 77 : 0);
        namespace_id[i] = job.namespace_id;
        for (unsigned k = 0; k < i; k++) {
            assert_true(namespace_id[k] != namespace_id[i]);
        }
    }
    job_free(&job);
}

static enum err from_wire(const struct proto_job *wire, struct job *out, char *why, size_t size)
{
    struct job_offer offer;
    if (!job_offer_set(&offer, wire)) {
        snprintf(why, size, "a text that nobody knows here");
        return ERR_RANGE;
    }
    return job_from_offer(&offer, out, why, size);
}

static void a_job_survives_the_wire(void **state)
{
    (void)state;
    char why[128];
    struct job job = make_job(position, "abdada-paper", 17), back = {0};
    job.id = 99;
    job.full = true;
    job.strict = true; /* the two exclude each other */
    struct proto_job both = job_to_wire(&job);
    assert_int_equal(from_wire(&both, &back, why, sizeof why), ERR_RANGE);
    job.strict = false;
    job_set_namespace(&job, 0);
    job.remote_depth = 6;
    job.time_ms = 5000;
    job.nodes = UINT64_MAX;
    struct proto_job wire = job_to_wire(&job);
    assert_int_equal(from_wire(&wire, &back, why, sizeof why), ERR_OK);
    assert_true(back.id == job.id && back.game == job.game && back.algorithm == job.algorithm);
    assert_true(back.strict == job.strict && back.full == job.full && back.depth == job.depth);
    assert_true(back.remote_depth == job.remote_depth && back.time_ms == job.time_ms);
    assert_true(back.nodes == job.nodes && back.namespace_id == job.namespace_id);
    assert_string_equal(back.text, job.text);
    assert_true(test_game()->key(back.position) == test_game()->key(job.position));
    job_free(&back);
    job_free(&back);
    job_set_repeatable_namespace(&job, 0);
    wire.namespace_id = job.namespace_id;
    wire.depth = PROTO_NO_LIMIT;
    assert_int_equal(from_wire(&wire, &back, why, sizeof why), ERR_OK);
    assert_int_equal(back.depth, SEARCH_DEPTH_MAX);
    job_free(&job);
    job_free(&back);
}

static void a_job_that_makes_no_sense_is_refused(void **state)
{
    (void)state;
    struct job job = make_job(position, "abdada", 5);
    for (unsigned i = 0; i < 10; i++) {
        static const enum err errors[] = {ERR_ABSENT, ERR_ABSENT,  ERR_RANGE, ERR_RANGE, ERR_SYNTAX,
                                          ERR_RANGE,  ERR_ILLEGAL, ERR_RANGE, ERR_RANGE, ERR_RANGE};
        char why[128] = "", long_text[GAME_TEXT_MAX + 1];
        struct job back = {.depth = 123};
        struct proto_job wire = job_to_wire(&job);
        memset(long_text, 'x', sizeof long_text - 1);
        long_text[sizeof long_text - 1] = '\0';
        wire.game = i == 0 ? proto_text_of("checkers") : wire.game;
        wire.algorithm = i == 1 ? proto_text_of("abdad") : wire.algorithm;
        wire.evaluation ^= i == 6;
        wire.depth = i == 2 ? UINT8_MAX : i == 3 ? SEARCH_DEPTH_MAX + 1 : wire.depth;
        wire.position = i == 4   ? proto_text_of("not a position")
                        : i == 5 ? proto_text_of(long_text)
                                 : wire.position;
        struct proto_text *ends_early[] = {&wire.game, &wire.algorithm, &wire.position};
        char with_zero[GAME_TEXT_MAX];
        if (i >= 7) { /* a good one is before its zero byte */
            struct proto_text *text = ends_early[i - 7];
            memcpy(with_zero, text->at, text->length);
            memcpy(with_zero + text->length, "\0x", 2);
            *text = (struct proto_text){with_zero, text->length + 2};
        }
        assert_int_equal(from_wire(&wire, &back, why, sizeof why), errors[i]);
        assert_true(why[0] != '\0' && strchr(why, '\n') == NULL);
        assert_int_equal(back.depth, 123); /* untouched */
    }
    job_free(&job);
}

static void a_position_that_needs_a_correction_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {"r3k2r/8/8/8/8/8/4K3/R6R w KQkq - 0 1",
                                        "4k3/8/8/8/8/8/8/4K3 w - e3 0 1"};
    for (unsigned i = 0; i < 2; i++) {
        struct job job = {.algorithm = algorithm_by_name("abdada"), .depth = 5}, back = {0};
        char why[128];
        assert_int_equal(job_set_position(&job, games_by_name("chess"), texts[i], why, sizeof why),
                         ERR_OK);
        job_set_namespace(&job, 0);
        struct proto_job wire = job_to_wire(&job);
        wire.position = proto_text_of(texts[i]);
        assert_int_equal(from_wire(&wire, &back, why, sizeof why), ERR_ILLEGAL);
        assert_non_null(strstr(why, i == 0 ? "castling right 'K'" : "en-passant square e3"));
        assert_null(back.position);
        wire.position = proto_text_of(job.text); /* as a front-end posts it */
        assert_int_equal(from_wire(&wire, &back, why, sizeof why), ERR_OK);
        job_free(&back);
        job_free(&job);
    }
}

/* Strict results must not meet those of a selective search, whatever a poster says: neither in the
 * common table nor in that of a --fresh job. */
static void a_job_in_a_namespace_of_another_search_is_refused(void **state)
{
    (void)state;
    char why[128];
    struct job job[2] = {make_job(position, "abdada", 5), make_job(position, "abdada", 5)}, back;
    job[1].strict = false;
    job[1].full = true;
    for (unsigned i = 0; i < 4; i++) {
        uint64_t own[2];
        for (unsigned k = 0; k < 2; k++) {
            uint32_t fresh = i & 1 ? 77 : 0;
            if (i & 2) {
                job_set_repeatable_namespace(&job[k], fresh);
            } else {
                job_set_namespace(&job[k], fresh);
            }
            own[k] = job[k].namespace_id;
        }
        for (unsigned k = 0; k < 2; k++) {
            struct proto_job wire = job_to_wire(&job[k]);
            assert_int_equal(from_wire(&wire, &back, why, sizeof why), ERR_OK);
            job_free(&back);
            wire.namespace_id = own[1 - k];
            assert_int_equal(from_wire(&wire, &back, why, sizeof why), ERR_ILLEGAL);
            wire.namespace_id = own[k] ^ 1;
            assert_int_equal(from_wire(&wire, &back, why, sizeof why), ERR_ILLEGAL);
        }
    }
    job_free(&job[0]);
    job_free(&job[1]);
}

/* A front-end in another language knows neither our number nor the namespaces made of it: it gets
 * the table that ours would, of its kind of search and of its upper half. */
static void a_job_of_any_evaluation_is_searched_in_our_namespace(void **state)
{
    (void)state;
    char why[128];
    struct job job[2] = {make_job(position, "abdada", 5), make_job(position, "abdada", 5)}, back;
    job[1].strict = false;
    job[1].full = true;
    for (unsigned i = 0; i < 4; i++) {
        struct job *own = &job[i & 1];
        uint32_t fresh = i & 2 ? 0xabcd1234 : 0;
        job_set_namespace(own, fresh);
        struct proto_job wire = job_to_wire(own);
        wire.evaluation = PROTO_ANY_EVALUATION;
        wire.namespace_id = (uint64_t)fresh << 32;
        assert_int_equal(from_wire(&wire, &back, why, sizeof why), ERR_OK);
        assert_true(back.namespace_id == own->namespace_id);
        job_free(&back);
        wire.algorithm = proto_text_of("ybwc"); /* without an owner of the root, and other builds */
        assert_int_equal(from_wire(&wire, &back, why, sizeof why), ERR_ILLEGAL);
        wire.algorithm = proto_text_of("abdada");
        wire.namespace_id |= 1; /* it knows better, and is wrong */
        assert_int_equal(from_wire(&wire, &back, why, sizeof why), ERR_ILLEGAL);
        wire.namespace_id = (uint64_t)fresh << 32;
        wire.evaluation = 12345;
        assert_int_equal(from_wire(&wire, &back, why, sizeof why), ERR_ILLEGAL);
    }
    job_free(&job[0]);
    job_free(&job[1]);
}

static void a_line_is_cut_after_the_last_move_that_fits(void **state)
{
    (void)state;
    static const char all[] = "e2e4 e7e5 g1f3 b8c6";
    char why[128], text[sizeof all];
    struct job job = {0};
    struct search_line line = {.length = 4};
    static const char *const moves[] = {"e2e4", "e7e5", "g1f3", "b8c6"};
    assert_int_equal(job_set_position(&job, games_by_name("chess"), "startpos", why, sizeof why),
                     ERR_OK);
    job_line_text(&job, &(struct search_line){0}, text, sizeof text);
    assert_string_equal(text, "");
    for (unsigned i = 0; i < line.length; i++) {
        assert_int_equal(job.game->parse_move(job.position, moves[i], &line.move[i]), ERR_OK);
        job.game->make(job.position, line.move[i]);
    }
    for (unsigned i = line.length; i > 0; i--) {
        job.game->unmake(job.position, line.move[i - 1]);
    }
    uint64_t key = job.game->key(job.position);
    for (size_t size = 1; size <= sizeof all; size++) {
        const size_t moves_in = size / 5; /* each takes four letters, and a blank or the end */
        job_line_text(&job, &line, text, size);
        assert_int_equal(strlen(text), moves_in > 0 ? 5 * moves_in - 1 : 0);
        assert_memory_equal(text, all, strlen(text));
    }
    assert_true(job.game->key(job.position) == key);
    job_free(&job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_agree_on_a_strict_score),
        cmocka_unit_test(searchers_publish_their_place),
        cmocka_unit_test(an_algorithm_that_counts_nothing_divides_nodes),
        cmocka_unit_test(a_second_run_over_the_same_table_agrees),
        cmocka_unit_test(a_search_after_forgetting_is_the_first_again),
        cmocka_unit_test(the_node_limit_is_kept_to_a_poll_per_thread),
        cmocka_unit_test(the_time_limit_ends_a_search),
        cmocka_unit_test(iterations_are_reported_once_and_in_order),
        cmocka_unit_test(an_engine_does_with_the_threads_that_it_gets),
        cmocka_unit_test(stop_ends_all_threads_and_leaves_nothing_behind),
        cmocka_unit_test(a_stop_that_comes_before_the_run_is_not_lost),
        cmocka_unit_test(a_finished_game_is_answered_at_once),
        cmocka_unit_test(unlike_searches_have_unlike_namespaces),
        cmocka_unit_test(a_job_survives_the_wire),
        cmocka_unit_test(a_job_that_makes_no_sense_is_refused),
        cmocka_unit_test(a_position_that_needs_a_correction_is_refused),
        cmocka_unit_test(a_job_in_a_namespace_of_another_search_is_refused),
        cmocka_unit_test(a_job_of_any_evaluation_is_searched_in_our_namespace),
        cmocka_unit_test(a_line_is_cut_after_the_last_move_that_fits),
    };
    return cmocka_run_group_tests_name("engine", tests, NULL, NULL);
}
