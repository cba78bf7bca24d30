/* Chaos: what is drawn, that it bites, and that planted faults are caught. */
#include "tests/chaos/lab_liar.h"
#include "tests/support/test_lab.h"

#include <string.h>

static struct chaos_outcome run_seed(uint64_t seed, const struct chaos_wish *wish)
{
    struct chaos_plan plan;
    struct chaos_outcome outcome;
    assert_int_equal(chaos_draw(seed, wish, &plan), ERR_OK);
    assert_int_equal(chaos_run(&plan, &outcome), ERR_OK);
    chaos_free(&plan);
    return outcome;
}

/* How many of the seeds break an invariant; with a `word`, whether one does in its way: 1 or 0. */
static unsigned count_broken(const struct chaos_wish *wish, unsigned seeds, const char *word)
{
    unsigned broken = 0;
    for (uint64_t seed = 1; seed <= seeds && (broken == 0 || word[0] == '\0'); seed++) {
        struct chaos_outcome o = run_seed(seed, wish);
        broken += strstr(o.broken, word) != NULL && o.broken[0] != '\0';
        if (word[0] == '\0' && o.broken[0] != '\0') {
            print_message("seed %u: %s\n", (unsigned)seed, o.broken);
        }
    }
    return broken;
}

static void nothing_breaks_when_nothing_is_planted(void **state)
{
    (void)state;
    assert_int_equal(count_broken(&(struct chaos_wish){0}, 10, ""), 0);
}

static void a_leave_skipped_once_in_a_thousand_is_caught(void **state)
{
    struct job job = lab_job("tree", "tree:b=12,d=6,seed=3,order=60", "abdada", 6);
    struct chaos_options options = lab_cluster(&job, 4, 2);
    (void)state;
    job.remote_depth = 1;
    struct chaos_result sound = lab_do(&options);
    assert_nothing_left(&sound);
    options.planted.skip_release_ppm = 1000;
    options.lab.inflight_age_max_ms = 2000; /* older than any entry here when it is checked */
    struct chaos_result r = lab_do(&options);
    assert_true(r.inflight_kept > 0);
    assert_true(r.inflight_stale > 0);
    assert_int_equal(r.inflight_left, 0); /* the age limit hides it in the end */
    job_free(&job);
    assert_true(
        count_broken(&(struct chaos_wish){.planted.skip_release_ppm = 1000}, 40, "good order") > 0);
}

/* Three workers are killed amid the search; their sessions stay. */
static void sessions_that_never_expire_are_caught(void **state)
{
    struct job job = lab_job("tree", "tree:b=12,d=6,seed=3,order=60", "abdada", 6);
    struct chaos_options options = lab_cluster(&job, 4, 2);
    struct lab_fault fault = {
        .kind = LAB_KILL, .worker = 1, .workers = 3, .lasts_ns = LAB_FOR_EVER};
    (void)state;
    fault.at_ns = lab_do(&options).lab.end_ns / 2;
    options.lab.inflight_age_max_ms = 2000;
    struct chaos_result sound = lab_faulted(options, fault);
    assert_nothing_left(&sound);
    options.planted.never_expire_sessions = true;
    struct chaos_result r = lab_faulted(options, fault);
    assert_true(r.inflight_stale > 0);
    assert_int_equal(r.sessions_stale, 3 * 2);
    job_free(&job);
    assert_true(count_broken(&(struct chaos_wish){.planted.never_expire_sessions = true}, 40,
                             "of the dead") > 0);
}

/* What lost messages leave behind, only age ends. */
static void inflight_entries_that_never_expire_are_caught(void **state)
{
    struct job job = lab_job("tree", "tree:b=12,d=6,seed=3,order=60", "abdada", 6);
    struct chaos_options options = lab_cluster(&job, 4, 2);
    (void)state;
    options.lab.loss_ppm = 20000;
    struct chaos_result sound = lab_do(&options);
    assert_nothing_left(&sound);
    options.planted.never_expire = true;
    struct chaos_result r = lab_do(&options);
    assert_int_equal(r.inflight_kept, 0);
    assert_true(r.inflight_left > 0);
    job_free(&job);
    assert_true(count_broken(&(struct chaos_wish){.planted.never_expire = true}, 40, "age limit") >
                0);
}

/* A liar whose scores could be of the game is believed: what it stores spoils strict scores. So one
 * whose scores could not be, in the runs above, would be noticed, were it believed. */
static void a_liar_that_is_believed_is_caught(void **state)
{
    struct job job = lab_job("tree", "tree:b=12,d=6,seed=3,order=60", "abdada", 6);
    struct chaos_options options = lab_cluster(&job, 4, 2);
    (void)state;
    job.remote_depth = 1;
    options.lie_ns = TEST_MS / 10;
    struct chaos_result sound = lab_do(&options);
    assert_nothing_left(&sound);
    assert_true(sound.lies > 100 && sound.taken_posts > 0 && sound.taken_stores > 0);
    assert_true(sound.taken_hellos > 0);
    const int expected = lab_sequential(&job);
    assert_int_equal(sound.lab.answer[0].search.score, expected);
    bool is_spoiled = false;
    options.planted.false_results = true;
    for (options.lab.seed = 1; options.lab.seed <= 10 && !is_spoiled; options.lab.seed++) {
        is_spoiled = lab_do(&options).lab.answer[0].search.score != expected;
    }
    assert_true(is_spoiled);
    job_free(&job);
}

/* A garbled byte can turn an absurd score into one of the game, which would spoil strict scores. */
static void a_liar_that_garbles_says_nothing_possible(void **state)
{
    struct lab *lab = calloc(1, sizeof *lab);
    struct chaos_world *world = calloc(1, sizeof *world);
    struct proto_decoder *decoder = calloc(1, sizeof *decoder);
    struct tt_store results[24];
    struct proto_message m = {.type = PROTO_STORE_HASH, .store_hash.list = {24, results}}, said;
    uint8_t bytes[PROTO_JOB_BYTES], garbled[PROTO_JOB_BYTES];
    unsigned others = 0, decoded = 0;
    (void)state;
    assert_non_null(lab);
    assert_non_null(world);
    assert_non_null(decoder);
    lab->decoder = decoder;
    lab->options.context = world;
    world->liar.random = 1;
    for (unsigned i = 0; i < 24; i++) {
        int score = TT_SCORE_MAX - (int)i;
        results[i] = (struct tt_store){.key = i, .depth = 3, .bound = 3};
        results[i].score = (int16_t)(i % 2 == 0 ? score : -score);
    }
    size_t length = proto_encode(&m, bytes, sizeof bytes);
    assert_true(length > 0);
    for (unsigned n = 0; n < 20000; n++) {
        memcpy(garbled, bytes, length);
        lab_liar_garble(lab, garbled, length);
        others += memcmp(garbled, bytes, length) != 0;
        if (proto_decode(decoder, garbled, length, &said) == ERR_OK &&
            said.type == PROTO_STORE_HASH) {
            decoded++;
            for (uint32_t i = 0; i < said.store_hash.list.count; i++) {
                int score = said.store_hash.list.at[i].score;
                assert_true(score < -GAME_MATE || score > GAME_MATE);
            }
        }
    }
    assert_true(others > 15000);
    assert_true(decoded > 5000);
    free(decoder);
    free(world);
    free(lab);
    struct chaos_outcome o = run_seed(20223, &(struct chaos_wish){0}); /* it did once */
    assert_string_equal(o.broken, "");
}

/* A job that only its stop ends, posted beside others. */
static struct chaos_result run_jobs(struct chaos_options options, struct job *answered,
                                    struct job *endless)
{
    struct lab_post post[] = {
        {.job = answered, .front = 0},
        {.job = endless, .front = 1, .stop_ns = 20 * TEST_MS},
        {.job = endless, .front = 2, .at_ns = 5 * TEST_MS, .stop_ns = 20 * TEST_MS},
    };
    options.lab.post = post;
    options.lab.posts = 3;
    options.lab.fronts = 3;
    return lab_do(&options);
}

static void planted_faults_of_jobs_are_caught(void **state)
{
    struct job job = lab_job("tree", "tree:b=12,d=6,seed=3,order=60", "abdada", 6);
    struct job endless = lab_job("tree", "tree:b=9,d=100,seed=2", "abdada", 100);
    struct chaos_options options = lab_cluster(&job, 5, 2);
    (void)state;
    struct chaos_result sound = run_jobs(options, &job, &endless);
    assert_nothing_left(&sound);
    assert_true(sound.lab.answer[0].answered);
    assert_int_equal(sound.lab.answer[0].search.score, lab_sequential(&job));
    assert_false(sound.lab.answer[1].answered);
    options.planted.skip_stop = true;
    assert_true(run_jobs(options, &job, &endless).still_searching > 0);
    options.planted.skip_stop = false;
    options.planted.lose_reports = true;
    assert_true(run_jobs(options, &job, &endless).reports_missing > 0);
    job_free(&job);
    job_free(&endless);
    assert_true(count_broken(&(struct chaos_wish){.planted.skip_stop = true}, 20, "leave a job") >
                0);
    assert_true(
        count_broken(&(struct chaos_wish){.planted.lose_reports = true}, 20, "last reports") > 0);
}

/* Workers 0 1 2 of two jobs; the second dies for ever, and the third has its index: 0 and 2 are
 * both on the first job unless they learn it. */
static void watchers_notice_what_is_not_so(void **state)
{
    (void)state;
    const struct chaos_wish flushes = {.planted.lose_flushes = true};
    assert_true(count_broken(&flushes, 60, "told wrong") > 0);
    for (unsigned is_wired = 0; is_wired < 2; is_wired++) {
        const struct chaos_wish letters = {.is_wired = is_wired, .planted.stray_letters = true};
        const struct chaos_wish rows = {.is_wired = is_wired, .planted.lose_rows = true};
        assert_true(count_broken(&letters, 60, "told wrong") > 0);
        assert_true(count_broken(&rows, 60, "told wrong") > 0);
    }
}

static void a_stale_worker_index_is_caught(void **state)
{
    struct job job = lab_job("tree", "tree:b=12,d=6,seed=3,order=60", "abdada", 6);
    struct chaos_options options = lab_cluster(&job, 4, 1);
    struct lab_fault fault = {
        .kind = LAB_KILL, .worker = 3, .workers = 1, .lasts_ns = LAB_FOR_EVER, .at_ns = TEST_MS};
    (void)state;
    options.lab.fronts = 2;
    struct chaos_result sound = lab_faulted(options, fault);
    assert_nothing_left(&sound);
    options.planted.stale_index = true;
    assert_true(lab_faulted(options, fault).uneven > 0);
    job_free(&job);
    assert_true(count_broken(&(struct chaos_wish){.planted.stale_index = true}, 60, "unevenly") >
                0);
}

/* The front-end of an endless job is killed: its workers leave it, in time. */
static void a_job_that_lost_its_front_end_is_left(void **state)
{
    struct job endless = lab_job("tree", "tree:b=9,d=100,seed=2", "abdada", 100);
    struct job job = lab_job("tree", "tree:b=12,d=6,seed=3,order=60", "abdada", 6);
    struct chaos_options options = lab_cluster(&job, 4, 2);
    struct lab_post post[] = {{.job = &job, .front = 0, .at_ns = 10 * TEST_MS},
                              {.job = &endless, .front = 1}};
    struct lab_fault fault = {.kind = LAB_KILL,
                              .worker = 1,
                              .workers = 1,
                              .lasts_ns = LAB_FOR_EVER,
                              .at_ns = 5 * TEST_MS};
    (void)state;
    options.lab.post = post;
    options.lab.posts = 2;
    options.lab.fronts = 2;
    struct chaos_result r = lab_faulted(options, fault);
    assert_nothing_left(&r);
    assert_true(r.lab.answer[0].answered);
    assert_int_equal(r.faults[LAB_KILL], 1);
    fault.kind = LAB_CUT; /* its stop, if any, is not heard either */
    fault.shards = 2;
    fault.ways = LAB_BOTH_WAYS;
    post[1].stop_ns = 8 * TEST_MS;
    r = lab_faulted(options, fault);
    assert_nothing_left(&r);
    job_free(&job);
    job_free(&endless);
}

static void the_same_seed_draws_the_same_run(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        struct chaos_outcome one = run_seed(seed, &(struct chaos_wish){0});
        struct chaos_outcome two = run_seed(seed, &(struct chaos_wish){0});
        assert_int_equal(one.faulty.lab.trace, two.faulty.lab.trace);
        assert_int_equal(one.faultless.lab.trace, two.faultless.lab.trace);
        assert_int_equal(one.faults, two.faults);
        assert_memory_equal(one.fault, two.fault, one.faults * sizeof one.fault[0]);
    }
}

static void wishes_are_granted(void **state)
{
    struct job job = lab_job("tree", "tree:b=5,d=5,seed=3", "abdada", 4);
    struct chaos_wish wish = {
        .job = &job,
        .algorithm = algorithm_by_name("shared-table"),
        .workers = 3,
        .shards = 2,
        .faults = 20,
    };
    struct chaos_plan plan;
    struct lab_fault fault[LAB_FAULTS_MAX];
    (void)state;
    assert_int_equal(chaos_draw(1, &wish, &plan), ERR_OK);
    assert_string_equal(plan.job[0].text, job.text);
    assert_int_equal(plan.job[0].depth, 4);
    assert_ptr_equal(plan.job[0].algorithm, wish.algorithm);
    assert_int_equal(plan.options.lab.workers, 3);
    assert_int_equal(plan.options.lab.shards, 2);
    assert_int_equal(chaos_draw_faults(&plan, 1000, fault), 20);
    chaos_free(&plan);
    job_free(&job);
}

/* Of workers and shards there are, while jobs run or before there are sessions; the first front-end
 * is never killed. */
static void faults_come_within_the_search(void **state)
{
    struct lab_fault fault[LAB_FAULTS_MAX];
    unsigned kinds[LAB_FAULT_KINDS] = {0}, for_ever = 0, long_ones = 0;
    uint64_t within = 50 * TEST_MS;
    (void)state;
    for (uint64_t seed = 1; seed <= 500; seed++) {
        struct chaos_plan plan;
        assert_int_equal(chaos_draw(seed, &(struct chaos_wish){0}, &plan), ERR_OK);
        unsigned n = chaos_draw_faults(&plan, within, fault);
        unsigned drawn = 0;
        for (unsigned kind = 0; kind < LAB_FAULT_KINDS; kind++) {
            bool is_wired = kind == LAB_RESET || kind == LAB_HALF_OPEN || kind == LAB_DEAF;
            drawn += chaos_has(seed, kind) && (!is_wired || plan.options.is_wired);
        }
        assert_in_range(n, drawn > 0, drawn > 0 ? LAB_FAULTS_MAX : 0);
        for (unsigned i = 0; i < n; i++) {
            const struct lab_fault *f = &fault[i];
            bool of_connections =
                f->kind == LAB_RESET || f->kind == LAB_HALF_OPEN || f->kind == LAB_DEAF;
            bool of_links =
                f->kind == LAB_CUT || f->kind == LAB_DELAY || f->kind == LAB_LOSS || of_connections;
            assert_true(plan.options.is_wired || !of_connections);
            kinds[f->kind]++;
            assert_true(chaos_has(seed, f->kind));
            for_ever += f->lasts_ns == LAB_FOR_EVER;
            long_ones += f->lasts_ns > plan.options.lab.heartbeat_ms * UINT64_C(3500000);
            assert_true(f->at_ns <= within);
            assert_true(f->lasts_ns >= TEST_MS / 10);
            assert_true(f->worker + f->workers <= plan.options.lab.fronts - 1 +
                                                      plan.options.lab.workers +
                                                      (of_links ? plan.options.watchers : 0));
            assert_true(f->shard + f->shards <= plan.options.lab.shards);
            assert_true(of_links ? f->workers > 0 && f->shards > 0
                                 : f->workers > 0 || f->shards > 0);
            assert_false(f->kind == LAB_KILL && f->workers > 0 && f->worker == 0);
        }
        chaos_free(&plan);
    }
    for (unsigned k = 0; k < LAB_FAULT_KINDS; k++) {
        assert_true(kinds[k] > 100);
    }
    assert_true(for_ever > 100 && long_ones > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_breaks_when_nothing_is_planted),
        cmocka_unit_test(a_leave_skipped_once_in_a_thousand_is_caught),
        cmocka_unit_test(sessions_that_never_expire_are_caught),
        cmocka_unit_test(inflight_entries_that_never_expire_are_caught),
        cmocka_unit_test(a_liar_that_is_believed_is_caught),
        cmocka_unit_test(a_liar_that_garbles_says_nothing_possible),
        cmocka_unit_test(planted_faults_of_jobs_are_caught),
        cmocka_unit_test(watchers_notice_what_is_not_so),
        cmocka_unit_test(a_stale_worker_index_is_caught),
        cmocka_unit_test(a_job_that_lost_its_front_end_is_left),
        cmocka_unit_test(the_same_seed_draws_the_same_run),
        cmocka_unit_test(wishes_are_granted),
        cmocka_unit_test(faults_come_within_the_search),
    };
    return cmocka_run_group_tests_name("lab chaos", tests, NULL, NULL);
}
