/* Clients on a real Redis Cluster: which shard has what, and a master that dies while they work. */
#include "tests/support/test_tt.h"

#include "tests/support/test_redis_cluster.h"
#include "tests/support/test_redis_shell.h"
#include "worker/redis/redis_script.h"

enum { KEYS = 200, DEPTH = 5, NAMESPACE_ID = 7, JOB = 42, JOB_SHARDS = 3 };

static struct redis_cluster cluster;
static struct redis_bed bed;

static int start(void **state)
{
    (void)state;
    char url[128], why[REDIS_WHY_MAX];
    redis_cluster_start(&cluster);
    snprintf(url, sizeof url, "redis+cluster://127.0.0.1:%u,127.0.0.1:%u", cluster.node[0].port,
             cluster.node[1].port);
    assert_int_equal(redis_address_parse(&bed.address, url, why), ERR_OK);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    redis_cluster_stop(&cluster);
    return 0;
}

static int closed(void **state)
{
    (void)state;
    for (unsigned i = 0; i < BENCH_PEERS; i++) {
        peer_close(&bed, i);
    }
    return 0;
}

static void all_shards_own_keys_and_all_agree_which(void **state)
{
    (void)state;
    unsigned owned[REDIS_SHELL_SHARDS] = {0};
    peer_open(&bed, 0, PROTO_CLIENT);
    peer_open(&bed, 1, PROTO_CLIENT);
    for (uint64_t i = 1; i <= KEYS; i++) {
        uint64_t key = rng_mix(i);
        struct tt_ask ask = {.key = key, .depth = DEPTH, .alpha = -1, .beta = 1};
        unsigned owner = client_owner(bed.peer[0].client, key);
        assert_int_equal(owner, client_owner(bed.peer[1].client, key));
        owned[owner]++;
        assert_int_equal(peer_ask(&bed, 0, ask).nproc, 1);
        ask.flags = TT_EXCLUSIVE;
        assert_int_equal(peer_ask(&bed, 1, ask).verdict, TT_BUSY);
        peer_store(&bed, 0, tt_result(key, DEPTH, TT_EXACT, 7, 3));
        assert_int_equal(peer_ask(&bed, 1, ask).verdict, TT_CUT);
    }
    for (unsigned i = 0; i < REDIS_SHELL_SHARDS; i++) {
        assert_int_not_equal(owned[i], 0);
    }
}

static void report(void)
{
    struct proto_job_report r = {.job = JOB, .depth = 5, .nodes = 1000};
    client_job_report(bed.peer[0].client, &r, clock_us());
}

static void post(void)
{
    struct proto_job job = {
        .job = JOB,
        .game = proto_text_of("chess"),
        .position = proto_text_of("startpos"),
        .namespace_id = NAMESPACE_ID,
        .algorithm = proto_text_of("abdada"),
        .depth = 9,
    };
    assert_int_equal(client_job_post(bed.peer[1].client, &job, clock_us()), ERR_OK);
}

/* The next report arrives, however often it takes. */
static void report_arrives(void)
{
    unsigned before = bed.peer[1].reports;
    uint64_t sent_us = 0, end_us = clock_us() + REDIS_PATIENCE_S * UINT64_C(1000000);
    while (bed.peer[1].reports == before) {
        assert_true(clock_us() < end_us);
        if (clock_us() - sent_us > 200000) {
            sent_us = clock_us();
            report();
        }
        bed_serve(&bed, &bed.peer[bed_next(&bed, 1)]);
    }
}

/* Until the replica has all that its master has. It says so once a second. */
static void await_replica(unsigned port)
{
    static char text[8192];
    unsigned long long written = 0, copied = 1;
    uint64_t end_us = clock_us() + REDIS_PATIENCE_S * UINT64_C(1000000);
    while (written != copied) {
        assert_true(clock_us() < end_us && redis_ask(port, "INFO replication", text, sizeof text));
        const char *of_replica = strstr(text, ",offset="),
                   *own = strstr(text, "master_repl_offset:");
        if (of_replica != NULL && own != NULL) {
            copied = strtoull(strchr(of_replica, '=') + 1, NULL, 10);
            written = strtoull(strchr(own, ':') + 1, NULL, 10);
        }
    }
}

static void killed_master_costs_no_job_and_few_results(void **state)
{
    (void)state;
    unsigned found = 0, shards = REDIS_SHELL_SHARDS;
    struct peer *worker = &bed.peer[0], *front = &bed.peer[1];
    peer_open_as(&bed, 0, PROTO_WORKER, NAMESPACE_ID, 0);
    peer_open_as(&bed, 1, PROTO_FRONT, NAMESPACE_ID, 0);
    post();
    BED_UNTIL(&bed, worker->jobs >= JOB_SHARDS && worker->job == JOB);
    report_arrives();
    await_replica(cluster.node[0].port);
    redis_cluster_begin_failovers(&cluster);
    redis_kill(&cluster.node[0]);
    report_arrives(); /* through the masters that are left */
    BED_UNTIL(&bed, client_shards_up(worker->client) < shards);
    BED_UNTIL(&bed, client_shards_up(worker->client) == shards &&
                        client_shards_up(front->client) == shards);
    report_arrives();
    assert_int_equal(worker->job, JOB);
    for (uint64_t i = 1; i <= KEYS; i++) { /* the keys of the test before: the replica has them */
        found += peer_peek_well(&bed, 0, rng_mix(i), DEPTH).move == 3;
    }
    assert_in_range(found, KEYS * 9 / 10, KEYS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(all_shards_own_keys_and_all_agree_which, closed),
        cmocka_unit_test_teardown(killed_master_costs_no_job_and_few_results, closed),
    };
    if (bed_why_not() != NULL || redis_is_missing("redis-cli")) {
        printf("1..0 # skipped: %s\n", bed_why_not() != NULL ? bed_why_not() : "no redis-cli here");
        return 0;
    }
    return cmocka_run_group_tests_name("redis shell, cluster", tests, start, stop);
}
