/* Hosts of the virtual cluster: their threads share a table, their messages a card, and they die
 * together. */
#include "tests/support/test_lab.h"

#include "worker/table/embedded.h"

static const char tree[] = "tree:b=8,d=6,seed=3,order=80", wide[] = "tree:b=12,d=6,seed=3,order=60";

static struct chaos_options hosts_of(const struct job *job, unsigned hosts, unsigned threads)
{
    struct chaos_options options = lab_cluster(job, hosts * threads, 2);
    options.lab.threads = threads;
    return options;
}

static void hosts_give_the_sequential_score(void **state)
{
    static const struct {
        unsigned hosts, threads;
    } cluster[] = {{1, 2}, {2, 2}, {1, 8}, {4, 3}, {3, 16}};
    static const struct {
        const char *game, *text;
        unsigned depth;
    } question[] = {
        {"tree", tree, 6},
        {"tree", "tree:b=4,d=8,seed=5,t=3,edges=bell", 8},
        {"chess", "1k1r4/pp1b1R2/3q2pp/4p3/2B5/4Q3/PPP2B2/2K5 b - -", 3},
    };
    static const char *const algorithm[] = {"abdada", "abdada-paper", "shared-table"};
    (void)state;
    for (unsigned q = 0; q < 3; q++) {
        struct job job = lab_job(question[q].game, question[q].text, "abdada", question[q].depth);
        int expected = lab_sequential(&job);
        for (unsigned i = 0; i < 5 * 3; i++) {
            job.algorithm = algorithm_by_name(algorithm[i % 3]);
            job.waits = i / 2 % 2 == 0;
            job.remote_depth = i % 2 == 0 ? 2 : 4;
            struct chaos_options options =
                hosts_of(&job, cluster[i % 5].hosts, cluster[i % 5].threads);
            options.lab.share_depth = i % 4 == 0 ? 3 : 0;
            struct chaos_result r = lab_do(&options);
            assert_true(r.lab.answer[0].answered);
            assert_int_equal(r.lab.answer[0].search.score, expected);
            assert_nothing_left(&r);
        }
        job_free(&job);
    }
}

/* All but the threads is the same. The last host may have fewer. */
static void an_incomplete_host_searches_too(void **state)
{
    struct job job = lab_job("tree", wide, "abdada", 6);
    struct chaos_options options = lab_cluster(&job, 7, 2);
    (void)state;
    options.lab.threads = 3;
    options.lab.fronts = 2;
    struct counters host[4] = {0}; /* three of the workers, and the second front-end's */
    struct counters sum = {0};
    options.lab.contribution = host;
    struct chaos_result r = lab_do(&options);
    assert_int_equal(r.lab.answer[0].search.score, lab_sequential(&job));
    assert_nothing_left(&r);
    for (unsigned i = 0; i < 4; i++) {
        assert_true(host[i].nodes > 0 && host[i].talked_us >= host[i].waited_us);
        assert_true(host[i].bytes_sent > 0 && host[i].bytes_received > 0);
        counters_add(&sum, &host[i]);
    }
    assert_int_equal(sum.nodes, r.lab.sum.nodes);
    assert_int_equal(sum.asks, r.lab.sum.asks);
    assert_int_equal(sum.waited_us, r.lab.sum.waited_us);
    job_free(&job);
}

/* Below the remote depth limit a host apart sees nothing of others. */
static void threads_of_a_host_share_a_table(void **state)
{
    struct job job = lab_job("tree", wide, "abdada", 6);
    (void)state;
    job.remote_depth = 4;
    job.waits = false;
    struct chaos_options apart = hosts_of(&job, 8, 1), together = hosts_of(&job, 1, 8);
    struct chaos_result a = lab_do(&apart), t = lab_do(&together);
    print_message("%llu nodes apart, %llu together\n", (unsigned long long)a.lab.sum.nodes,
                  (unsigned long long)t.lab.sum.nodes);
    assert_true(t.lab.sum.nodes * 10 < a.lab.sum.nodes * 9);
    assert_true(t.lab.asks < a.lab.asks);
    assert_int_equal(a.lab.answer[0].search.score, t.lab.answer[0].search.score);
    job_free(&job);
}

static void a_host_gets_once_what_others_find(void **state)
{
    struct job job = lab_job("tree", wide, "abdada", 8); /* longer than a probe */
    (void)state;
    job.waits = false;
    job.remote_depth = 4;
    struct chaos_options silent = hosts_of(&job, 4, 4), publishes = silent;
    publishes.lab.share_depth = 3;
    struct chaos_result s = lab_do(&silent), t = lab_do(&publishes);
    assert_int_equal(s.lab.shared, 0);
    assert_int_equal(s.lab.shared_taken, 0);
    assert_true(t.lab.shared > 100);
    /* Each by all hosts at most, as what a shard collected comes back to its sender. */
    assert_in_range(t.lab.shared_taken, t.lab.shared, 4 * t.lab.shared);
    assert_int_equal(t.lab.answer[0].search.score, s.lab.answer[0].search.score);
    job_free(&job);
}

/* ---- cards ---- */

static void a_narrow_card_makes_it_slower(void **state)
{
    struct job job = lab_job("tree", wide, "abdada", 6);
    struct chaos_options options = hosts_of(&job, 2, 2);
    uint64_t before_ns = 0;
    (void)state;
    static const uint64_t bandwidth[] = {0, 10000000, 1000000};
    for (unsigned i = 0; i < 3; i++) {
        options.lab.bandwidth = bandwidth[i];
        options.drain = false;
        struct chaos_result r = lab_do(&options);
        double seconds = (double)r.lab.end_ns / 1e9;
        assert_true(r.lab.answer[0].time_ns > before_ns + before_ns / 50);
        before_ns = r.lab.answer[0].time_ns;
        assert_true(r.lab.card_bytes > 0 && r.lab.card_bytes_most < r.lab.card_bytes);
        /* Of one card no more than it lets pass, each way. */
        assert_true(i == 0 ||
                    (double)r.lab.card_bytes_most <= 2.1 * seconds * (double)bandwidth[i] + 1e5);
    }
    job_free(&job);
}

/* Each message passes two cards; there are more bytes on them than in the messages. */
static void what_passes_the_cards_is_counted(void **state)
{
    struct job job = lab_job("tree", tree, "abdada", 6);
    (void)state;
    for (unsigned hosts = 1; hosts <= 4; hosts++) {
        struct chaos_options options = hosts_of(&job, hosts, 1);
        options.lab.shards = hosts; /* one on each: of two of its messages one stays, of four ... */
        options.drain = false;
        struct chaos_result r = lab_do(&options);
        assert_true(r.lab.bytes > 0);
        if (hosts == 1) { /* all of it stays */
            assert_int_equal(r.lab.card_bytes, 0);
            continue;
        }
        assert_true(r.lab.card_bytes > 2 * r.lab.bytes * (hosts - 1) / hosts / 2);
        assert_true(r.lab.card_bytes < 2 * (r.lab.bytes + 90 * 2 * r.lab.messages));
        assert_true(r.lab.card_bytes_most >= r.lab.card_bytes / hosts &&
                    r.lab.card_bytes_most < r.lab.card_bytes);
    }
    job_free(&job);
}

static void operations_cost_time(void **state)
{
    struct job job = lab_job("tree", tree, "abdada", 6);
    struct chaos_options options = hosts_of(&job, 1, 1);
    (void)state;
    options.drain = false;
    job.waits = false;
    uint64_t free_ns = lab_do(&options).lab.answer[0].time_ns;
    options.lab.operation_ns = 10 * TEST_US;
    struct chaos_result r = lab_do(&options);
    uint64_t searched_ns = r.lab.sum.nodes * options.lab.node_ns;
    assert_true(r.lab.answer[0].time_ns > free_ns);
    /* What is sent last is charged after the answer. */
    assert_true(r.lab.answer[0].time_ns >= searched_ns + (r.lab.asks + r.lab.peeks) * 9 * TEST_US);
    job.waits = true;
    options.lab.operation_ns = 0;
    options.lab.service_operation_ns = 10 * TEST_US;
    r = lab_do(&options);
    assert_true(r.lab.sum.waited_us * 1000 >=
                (r.lab.asks + r.lab.peeks) * (options.lab.rtt_ns + 10 * TEST_US));
    assert_true(r.lab.busy_ns >= (r.lab.asks + r.lab.peeks) * 10 * TEST_US);
    assert_true(r.lab.busy_most_ns >= r.lab.busy_ns / 2 && r.lab.busy_most_ns <= r.lab.busy_ns);
    job_free(&job);
}

/* ---- faults ---- */

static void a_kill_takes_the_whole_host(void **state)
{
    struct job job = lab_job("tree", wide, "abdada", 6);
    struct chaos_options options = hosts_of(&job, 3, 3);
    (void)state;
    uint64_t half_ns = lab_do(&options).lab.end_ns / 2;
    for (unsigned worker = 0; worker < 9; worker++) {
        struct lab_fault fault = {.kind = LAB_KILL,
                                  .worker = worker,
                                  .workers = 1,
                                  .at_ns = half_ns,
                                  .lasts_ns = 2 * TEST_MS};
        struct chaos_result r = lab_faulted(options, fault);
        unsigned killed = worker < 3 ? 0 : 3; /* never the host of the front-end */
        assert_int_equal(r.faults[LAB_KILL], killed);
        assert_int_equal(r.restarts, killed);
        assert_int_equal(r.lab.answer[0].search.score, lab_sequential(&job));
        assert_nothing_left(&r);
    }
    job_free(&job);
}

/* A fault over parts of two hosts takes both; one that overlaps it does not take them twice. */
static void hosts_are_killed_once(void **state)
{
    struct job job = lab_job("tree", wide, "abdada", 6);
    struct chaos_options options = hosts_of(&job, 3, 3);
    struct lab_fault fault[] = {
        {.kind = LAB_KILL, .worker = 5, .workers = 2, .at_ns = TEST_MS, .lasts_ns = 9 * TEST_MS},
        {.kind = LAB_KILL, .worker = 8, .workers = 1, .at_ns = 2 * TEST_MS, .lasts_ns = TEST_MS},
    };
    (void)state;
    options.fault = fault;
    options.faults = 2;
    struct chaos_result r = lab_do(&options);
    assert_int_equal(r.restarts, 6);
    assert_true(r.lab.answer[0].answered);
    assert_int_equal(r.lab.answer[0].search.score, lab_sequential(&job));
    assert_nothing_left(&r);
    job_free(&job);
}

static void other_front_ends_have_hosts_of_their_own(void **state)
{
    struct job job = lab_job("tree", wide, "abdada", 6);
    struct chaos_options options = hosts_of(&job, 2, 3);
    struct lab_fault fault = {
        .kind = LAB_KILL, .worker = 1, .workers = 1, .at_ns = TEST_MS, .lasts_ns = 2 * TEST_MS};
    (void)state;
    options.lab.fronts = 2;
    struct chaos_result r = lab_faulted(options, fault);
    assert_int_equal(r.restarts, 1);
    assert_nothing_left(&r);
    fault.worker = 4; /* the workers 2 and 3 are with the first front-end */
    r = lab_faulted(options, fault);
    assert_int_equal(r.restarts, 3);
    fault.worker = 2;
    r = lab_faulted(options, fault);
    assert_int_equal(r.restarts, 0);
    job_free(&job);
}

/* ---- always the same ---- */

static void the_same_seed_gives_the_same_trace(void **state)
{
    struct job job = lab_job("tree", wide, "abdada", 6);
    struct chaos_options options = hosts_of(&job, 3, 4);
    struct lab_fault fault = {
        .kind = LAB_KILL, .worker = 5, .workers = 1, .at_ns = TEST_MS, .lasts_ns = 2 * TEST_MS};
    (void)state;
    for (unsigned waits = 0; waits < 2; waits++) {
        job.waits = waits;
        options.lab.jitter_ns = 50 * TEST_US;
        options.lab.loss_ppm = 5000;
        options.lab.bandwidth = 20000000;
        options.lab.share_depth = 3;
        options.lab.message_ns = TEST_US;
        options.lab.operation_ns = 100;
        struct chaos_result one = lab_faulted(options, fault), two = lab_faulted(options, fault);
        assert_memory_equal(&one, &two, sizeof one);
        struct chaos_options other = options;
        other.lab.seed = 2;
        assert_true(lab_faulted(other, fault).lab.trace != one.lab.trace);
    }
    job_free(&job);
}

static void threads_out_of_range_are_refused(void **state)
{
    struct job job = lab_job("tree", tree, "abdada", 6);
    struct chaos_options options = lab_cluster(&job, 4, 1);
    struct chaos_result result;
    (void)state;
    options.lab.threads = EMBEDDED_SLOTS_MAX + 1;
    assert_int_equal(chaos_lab_run(&options, &result), ERR_RANGE);
    job_free(&job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hosts_give_the_sequential_score),
        cmocka_unit_test(an_incomplete_host_searches_too),
        cmocka_unit_test(threads_of_a_host_share_a_table),
        cmocka_unit_test(a_host_gets_once_what_others_find),
        cmocka_unit_test(a_narrow_card_makes_it_slower),
        cmocka_unit_test(what_passes_the_cards_is_counted),
        cmocka_unit_test(operations_cost_time),
        cmocka_unit_test(a_kill_takes_the_whole_host),
        cmocka_unit_test(hosts_are_killed_once),
        cmocka_unit_test(other_front_ends_have_hosts_of_their_own),
        cmocka_unit_test(the_same_seed_gives_the_same_trace),
        cmocka_unit_test(threads_out_of_range_are_refused),
    };
    return cmocka_run_group_tests_name("lab hosts", tests, NULL, NULL);
}
