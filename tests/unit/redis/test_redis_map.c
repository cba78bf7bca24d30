/* The map of a Redis Cluster: from the answer to CLUSTER SLOTS to who serves which slot. Nothing is
 * connected. */
#include "common/redis/redis_map.h"
#include "common/redis/redis_reader.h"
#include "tests/support/test_redis.h"

#include <hiredis/hiredis.h>

enum { MASTERS = 64, EACH = REDIS_SLOTS / MASTERS, PORT = 7000, TEXT = 1 << 16 };

struct bench {
    struct redis_node_setup setup;
    struct redis_map map;
    char why[REDIS_WHY_MAX];
    unsigned said;
};

static void bench_open(struct bench *b, const char *url)
{
    struct redis_address address;
    char why[REDIS_WHY_MAX];
    memset(b, 0, sizeof *b);
    assert_int_equal(redis_address_parse(&address, url, why), ERR_OK);
    assert_int_equal(redis_map_open(&b->map, &b->setup, &address), ERR_OK);
}

static void take(struct bench *b, const char *text, size_t length)
{
    struct redis_reader *reader = redis_reader_open();
    struct redisReply *reply = NULL;
    assert_non_null(reader);
    assert_int_equal(redis_reader_feed(reader, text, length), ERR_OK);
    assert_int_equal(redis_reader_next(reader, &reply), ERR_OK);
    assert_non_null(reply);
    redis_map_take(&b->map, &b->map.node[0], reply);
    freeReplyObject(reply);
    redis_reader_close(&reader);
}

/* Masters of ports from `first`, and one replica of each. */
static void take_cluster(struct bench *b, unsigned first)
{
    char *text = malloc(TEXT);
    assert_non_null(text);
    size_t n = (size_t)snprintf(text, TEXT, "*%u\r\n", MASTERS);
    for (unsigned i = 0; i < MASTERS; i++) {
        n += (size_t)snprintf(text + n, TEXT - n,
                              "*4\r\n:%u\r\n:%u\r\n*2\r\n$9\r\n127.0.0.1\r\n:%u\r\n"
                              "*2\r\n$9\r\n127.0.0.1\r\n:%u\r\n",
                              i * EACH, i * EACH + EACH - 1, first + 2 * i, first + 2 * i + 1);
    }
    assert_true(n < TEXT);
    take(b, text, n);
    free(text);
}

static void check_cluster(const struct bench *b, unsigned first)
{
    for (unsigned slot = 0; slot < REDIS_SLOTS; slot++) {
        const struct redis_node *node = redis_map_owner(&b->map, slot);
        assert_non_null(node);
        assert_true(node->is_wanted);
        assert_int_equal(node->at.port, first + 2 * (slot / EACH));
    }
}

/* With the node of the address there are more nodes than places. */
static void masters_keep_their_place_among_many_nodes(void **state)
{
    struct bench b;
    (void)state;
    bench_open(&b, "redis+cluster://127.0.0.1:6000");
    take_cluster(&b, PORT);
    check_cluster(&b, PORT);
    take_cluster(&b, PORT);
    check_cluster(&b, PORT);
    redis_map_close(&b.map);
}

static void said(void *self, unsigned first_slot, unsigned last_slot, bool up, const char *why)
{
    struct bench *b = self;
    (void)first_slot, (void)last_slot;
    assert_false(up);
    b->said++;
    snprintf(b->why, sizeof b->why, "%s", why);
}

static void cluster_without_slots_is_said(void **state)
{
    struct bench b;
    (void)state;
    bench_open(&b, "redis+cluster://127.0.0.1:6000,127.0.0.1:6001");
    take(&b, "*0\r\n", 4);
    redis_map_say(&b.map, &b, said);
    assert_string_equal(b.why, "127.0.0.1:6000: no slot has a node: redis-cli --cluster create");
    assert_int_equal(b.said, 1);
    take(&b, "*0\r\n", 4);
    redis_map_say(&b.map, &b, said);
    assert_int_equal(b.said, 1);
    take_cluster(&b, PORT);
    check_cluster(&b, PORT);
    redis_map_close(&b.map);
}

/* A Redis may say anything: names go into the log and to the terminal. */
static void names_that_are_not_printable_are_no_nodes(void **state)
{
    static const char *const name[] = {"a\x1b[2Jc", "a b", "b\n", "caf\xc3\xa9", "d\x7f"};
    struct bench b;
    (void)state;
    for (unsigned i = 0; i < sizeof name / sizeof name[0]; i++) {
        char text[96];
        bench_open(&b, "redis+cluster://127.0.0.1:6000");
        int n =
            snprintf(text, sizeof text, "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$%zu\r\n%s\r\n:7000\r\n",
                     strlen(name[i]), name[i]);
        take(&b, text, (size_t)n);
        assert_null(redis_map_owner(&b.map, 0));
        n = snprintf(text, sizeof text, "MOVED 5 %s:7000", name[i]);
        struct redisReply moved = {.type = REDIS_REPLY_ERROR, .str = text, .len = (size_t)n};
        unsigned slot;
        assert_null(redis_map_target(&b.map, &b.map.node[0], &moved, &slot));
        assert_int_equal(b.map.nodes, 1);
        redis_map_close(&b.map);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(masters_keep_their_place_among_many_nodes),
        cmocka_unit_test(cluster_without_slots_is_said),
        cmocka_unit_test(names_that_are_not_printable_are_no_nodes),
    };
    return cmocka_run_group_tests_name("redis map", tests, NULL, NULL);
}
