/* The link to a real Redis Cluster: the map of slots, slots on their way, a master killed. */
#include "tests/support/test_redis_cluster.h"
#include "tests/support/test_redis_link.h"

static const char *const scripts[] = {"return redis.call('incrby', KEYS[1], ARGV[1])"};

enum { KEYS = 48, ROUNDS = 40 };

/* Lives through all tests; not started where there is no Redis. */
static struct redis_cluster cluster;

static void open_link(struct user *u, const char *format, unsigned a, unsigned b)
{
    char url[256];
    snprintf(url, sizeof url, format, a, b);
    user_open(u, url, scripts, 1);
}

static bool add(struct user *u, const char *key, uint64_t tag)
{
    const char *const argv[] = {key, "1"};
    const size_t length[] = {strlen(key), 1};
    return redis_link_call(u->link, redis_link_slot(key, strlen(key)), 0, 1, 2, argv, length, tag,
                           user_now(u));
}

/* One call for each of many keys, which are in slots of all nodes; all are answered. */
static void add_all(struct user *u)
{
    unsigned before = u->answers, sent = 0;
    char key[16];
    for (unsigned i = 0; i < KEYS; i++) {
        snprintf(key, sizeof key, "{%u}", i * 7919);
        sent += add(u, key, i) ? 1 : 0;
    }
    user_wait_answers(u, before + sent);
}

/* The same until all goes well: after a failure the nodes take their time to agree. */
static void add_all_well(struct user *u)
{
    uint64_t end = clock_us() + REDIS_PATIENCE_S * UINT64_C(1000000);
    unsigned before;
    do {
        before = u->answers;
        u->errors = u->lost = 0;
        add_all(u);
    } while ((u->errors + u->lost > 0 || u->answers < before + KEYS) && clock_us() < end);
    assert_int_equal(u->errors + u->lost, 0);
    assert_int_equal(u->answers, before + KEYS);
}

static void every_slot_is_served(void **state)
{
    struct user u;
    (void)state;
    redis_needed();
    /* Nobody is at the second address, and a replica knows the map, too. */
    open_link(&u, "redis+cluster://127.0.0.1:%u,127.0.0.1:%u", cluster.node[4].port,
              redis_free_port());
    user_wait_up(&u, true);
    add_all_well(&u);
    assert_true(redis_link_subscribe(u.link, "c"));
    user_wait_published(&u, cluster.node[0].port, "c");
    user_wait_published(&u, cluster.node[2].port, "c");
    user_close(&u);
}

static void wrong_kind_of_address_is_said(void **state)
{
    struct redis_server s;
    struct user u;
    (void)state;
    redis_begin(&s);
    open_link(&u, "redis+cluster://127.0.0.1:%u", s.port, 0);
    user_wait_why(&u, "it is not part of a Redis Cluster: redis://");
    user_close(&u);
    redis_end(&s);
    open_link(&u, "redis://127.0.0.1:%u", cluster.node[0].port, 0);
    user_wait_up(&u, true);
    add_all(&u);
    user_wait_why(&u, "it is part of a Redis Cluster: redis+cluster://");
    user_close(&u);
}

/* Sets a slot's state at a master. */
static void set_slot(const struct redis_server *at, unsigned slot, const char *what, const char *id)
{
    char line[128];
    snprintf(line, sizeof line, "CLUSTER SETSLOT %u %s %s", slot, what, id);
    redis_expect(at->port, line, "+OK");
}

static void slot_on_its_way_is_followed(void **state)
{
    struct user u;
    char from_id[REDIS_ID_MAX], to_id[REDIS_ID_MAX], answer[64];
    (void)state;
    redis_needed();
    open_link(&u, "redis+cluster://127.0.0.1:%u", cluster.node[1].port, 0);
    u.slowness = 10; /* no call is given up */
    user_wait_up(&u, true);
    const char *key = "{moving}";
    unsigned slot = redis_link_slot(key, strlen(key));
    unsigned from = 0, to;
    while (!redis_ask(cluster.node[from].port, "GET {moving}", answer, sizeof answer) ||
           strncmp(answer, "-MOVED", 6) == 0) {
        from = (from + 1) % REDIS_MASTERS;
    }
    to = (from + 1) % REDIS_MASTERS;
    redis_cluster_id(&cluster.node[from], from_id);
    redis_cluster_id(&cluster.node[to], to_id);
    set_slot(&cluster.node[to], slot, "IMPORTING", from_id);
    set_slot(&cluster.node[from], slot, "MIGRATING", to_id);
    for (unsigned i = 1; i <= 3; i++) { /* the key is not there: ASK */
        assert_true(add(&u, key, i));
        user_wait_answers(&u, i);
    }
    assert_string_equal(u.last, "3");
    set_slot(&cluster.node[to], slot, "NODE", to_id);
    set_slot(&cluster.node[from], slot, "NODE", to_id);
    for (unsigned i = 4; i <= 6; i++) { /* MOVED, once */
        assert_true(add(&u, key, i));
        user_wait_answers(&u, i);
    }
    assert_string_equal(u.last, "6");
    assert_int_equal(u.lost + u.errors, 0);
    user_wait_up(&u, true);
    user_close(&u);
}

static void killed_master_is_replaced_by_its_replica(void **state)
{
    struct user u;
    (void)state;
    redis_needed();
    /* By the address of a node that is about to die, and of no other. */
    open_link(&u, "redis+cluster://127.0.0.1:%u", cluster.node[0].port, 0);
    user_wait_up(&u, true);
    assert_true(redis_link_subscribe(u.link, "c"));
    user_wait_published(&u, cluster.node[1].port, "c");
    for (unsigned i = 0; i < ROUNDS; i++) {
        add_all(&u);
    }
    add_all_well(&u);
    unsigned answers = u.answers;
    redis_cluster_begin_failovers(&cluster);
    kill(cluster.node[0].pid, SIGSTOP); /* calls are on their way to it */
    char key[16];
    for (unsigned i = 0; i < KEYS; i++) {
        snprintf(key, sizeof key, "{%u}", i * 7919);
        answers += add(&u, key, i) ? 1 : 0;
    }
    redis_kill(&cluster.node[0]);
    USER_WAIT(&u, u.downs > 0);
    user_wait_answers(&u, answers); /* some are lost, none is forgotten */
    assert_true(u.lost > 0 && u.lost < KEYS);
    user_wait_up(&u, true); /* the replica's */
    add_all_well(&u);
    user_wait_published(&u, cluster.node[2].port, "c");
    /* The dead one comes back as a replica. */
    redis_run(&cluster.node[0]);
    redis_expect(cluster.node[0].port, "INFO replication", "master_link_status:up");
    add_all_well(&u);
    user_close(&u);
}

/* All of them, so that there is nobody to ask for the map. */
static void whole_cluster_comes_back(void **state)
{
    struct user u;
    (void)state;
    redis_needed();
    open_link(&u, "redis+cluster://127.0.0.1:%u,127.0.0.1:%u", cluster.node[1].port,
              cluster.node[2].port);
    user_wait_up(&u, true);
    for (unsigned i = 0; i < REDIS_CLUSTER_NODES; i++) {
        redis_kill(&cluster.node[i]);
    }
    user_wait_up(&u, false);
    for (unsigned i = 0; i < REDIS_CLUSTER_NODES; i++) {
        redis_run(&cluster.node[i]);
    }
    user_wait_up(&u, true);
    add_all_well(&u);
    user_close(&u);
}

static int start(void **state)
{
    (void)state;
    if (!redis_is_missing("redis-server") && !redis_is_missing("redis-cli")) {
        redis_cluster_start(&cluster);
    }
    return 0;
}

static int stop(void **state)
{
    (void)state;
    if (cluster.dir[0] != '\0') {
        redis_cluster_stop(&cluster);
    }
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_slot_is_served),
        cmocka_unit_test(wrong_kind_of_address_is_said),
        cmocka_unit_test(slot_on_its_way_is_followed),
        cmocka_unit_test(killed_master_is_replaced_by_its_replica),
        cmocka_unit_test(whole_cluster_comes_back),
    };
    return cmocka_run_group_tests_name("redis cluster", tests, start, stop);
}
