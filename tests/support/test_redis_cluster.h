/* A real Redis Cluster of 3 masters and 3 replicas on this machine, for tests. Threads: one. */
#ifndef TESTS_SUPPORT_TEST_REDIS_CLUSTER_H
#define TESTS_SUPPORT_TEST_REDIS_CLUSTER_H

#include "tests/support/test_redis.h"

enum { REDIS_MASTERS = 3, REDIS_CLUSTER_NODES = 6, REDIS_ID_MAX = 48 };

struct redis_cluster {
    char dir[128];
    struct redis_server node[REDIS_CLUSTER_NODES]; /* the masters at first */
    char config[REDIS_CLUSTER_NODES][32];
};

/* ms of silence after which a replica takes the place of its master: in tests of that, and in all
 * others, where a busy machine is as silent. */
#define NODE_TIMEOUT "1000"
#define NO_FAILOVER "60000"

static inline void redis_cluster_fail_after(const struct redis_server *s, const char *ms)
{
    char line[64];
    snprintf(line, sizeof line, "CONFIG SET cluster-node-timeout %s", ms);
    redis_expect(s->port, line, "OK");
}

/* Starts it and waits until all nodes agree and all replicas follow. */
static inline void redis_cluster_start(struct redis_cluster *c)
{
    char line[1024] = "redis-cli --cluster create";
    redis_make_dir(c->dir);
    for (unsigned i = 0; i < REDIS_CLUSTER_NODES; i++) {
        snprintf(c->config[i], sizeof c->config[i], "nodes-%u.conf", i);
        const char *const option[] = {"--cluster-enabled",
                                      "yes",
                                      "--cluster-node-timeout",
                                      NODE_TIMEOUT,
                                      "--cluster-config-file",
                                      c->config[i],
                                      "--repl-diskless-sync-delay",
                                      "0",
                                      NULL};
        redis_start(&c->node[i], c->dir, option);
        redis_cluster_fail_after(&c->node[i], NO_FAILOVER);
        size_t n = strlen(line);
        snprintf(line + n, sizeof line - n, " 127.0.0.1:%u", c->node[i].port);
    }
    size_t n = strlen(line);
    snprintf(line + n, sizeof line - n, " --cluster-replicas 1 --cluster-yes >%s/create 2>&1",
             c->dir);
    if (system(line) != 0) { // NOLINT
        fail_msg("the cluster was not made: see %s/create", c->dir);
    }
    for (unsigned i = 0; i < REDIS_CLUSTER_NODES; i++) {
        redis_expect(c->node[i].port, "CLUSTER INFO", "cluster_state:ok");
        redis_expect(c->node[i].port, "CLUSTER INFO", "cluster_known_nodes:6");
        /* A master sends writes only to a replica that is online, which takes up to a second. */
        redis_expect(c->node[i].port, "INFO replication",
                     i >= REDIS_MASTERS ? "master_link_status:up" : "state=online");
    }
}

/* From now on a node that is silent for a second loses its place. */
static inline void redis_cluster_begin_failovers(const struct redis_cluster *c)
{
    for (unsigned i = 0; i < REDIS_CLUSTER_NODES; i++) {
        redis_cluster_fail_after(&c->node[i], NODE_TIMEOUT);
    }
}

static inline void redis_cluster_stop(struct redis_cluster *c)
{
    for (unsigned i = 0; i < REDIS_CLUSTER_NODES; i++) {
        redis_kill(&c->node[i]);
    }
    redis_remove_dir(c->dir);
}

/* The id by which the nodes of the cluster know this server. */
static inline void redis_cluster_id(const struct redis_server *s, char id[REDIS_ID_MAX])
{
    char answer[REDIS_REPLY_TEXT];
    assert_true(redis_ask(s->port, "CLUSTER MYID", answer, sizeof answer));
    assert_int_equal(sscanf(answer, "$40 %40s", id), 1);
}

#endif
