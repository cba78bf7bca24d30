/* What a Redis can answer that is wrong, to the shell: other types, other lengths, other numbers
 * than a script's. The shell and its client live, and what reaches the client is in its range.
 * TEST_SEED=N repeats a run. */
#include "tests/support/test_tt.h"

#include "tests/support/test_redis.h"
#include "worker/redis/redis_shell.h"
#include "worker/redis/redis_shell_state.h"

#include <hiredis/hiredis.h>

enum {
    RUNS = 60000,
    DEEP = 3,
    WIDE = 10,
    LONG = 600,
    NODES = 4096,
    WINDOW = 100,
};

struct liar {
    uint64_t random;
    redisReply node[NODES];
    redisReply *list[NODES][WIDE];
    char text[NODES][LONG + 1];
    unsigned nodes;
    struct redis_shell *shell;
    struct client *client;
    unsigned jobs, shares, dones;
    uint32_t request; /* of the client's HELLO */
};

/* Lengths that something in it has, and others. */
static size_t a_length(struct liar *l)
{
    static const size_t likely[] = {
        0,  1,  4,  REDIS_BOOT_BYTES,    6, 12, 18, REDIS_ANSWER_BYTES, REDIS_PEEKED_BYTES, 17,
        34, 35, 24, REDIS_SESSION_BYTES, 40};
    return tt_chance(&l->random, 70) ? likely[rng_below(&l->random, sizeof likely / sizeof *likely)]
                                     : rng_below(&l->random, LONG);
}

static void fill(struct liar *l, char *text, size_t length)
{
    bool is_number = tt_chance(&l->random, 20);
    for (size_t i = 0; i < length; i++) {
        text[i] = is_number ? (char)('0' + rng_below(&l->random, 10))
                            : (char)rng_below(&l->random, tt_chance(&l->random, 50) ? 8 : 256);
    }
    text[length] = '\0';
}

/* The bytes of a message, sometimes bent. */
static size_t fill_message(struct liar *l, char *text)
{
    struct tt_store result = {.key = 5, .depth = 4, .bound = TT_EXACT, .score = 3};
    struct proto_message m = {.type = PROTO_JOB};
    m.job.job = rng_below(&l->random, 100);
    m.job.game = m.job.position = m.job.algorithm = proto_text_of("text");
    if (tt_chance(&l->random, 30)) {
        m = (struct proto_message){.type = PROTO_SHARE};
        m.share.list = (struct proto_stores){1, &result};
    }
    size_t length = proto_encode(&m, (uint8_t *)text, LONG);
    if (tt_chance(&l->random, 50)) {
        text[rng_below(&l->random, (uint32_t)length)] ^= (char)(1 + rng_below(&l->random, 255));
    }
    return length;
}

static redisReply *a_reply(struct liar *l, unsigned depth)
{
    static const int types[] = {REDIS_REPLY_STRING, REDIS_REPLY_INTEGER, REDIS_REPLY_NIL,
                                REDIS_REPLY_STATUS, REDIS_REPLY_STRING,  REDIS_REPLY_ARRAY,
                                REDIS_REPLY_ARRAY};
    unsigned i = l->nodes++;
    redisReply *r = &l->node[i];
    memset(r, 0, sizeof *r);
    r->type = types[rng_below(&l->random, sizeof types / sizeof *types)];
    if (depth == 0) {
        r->type = REDIS_REPLY_ARRAY;
    } else if (depth == DEEP || l->nodes > NODES - 2 * WIDE) {
        r->type = REDIS_REPLY_STRING;
    }
    if (r->type == REDIS_REPLY_ARRAY) {
        r->elements = rng_below(&l->random, WIDE + 1);
        r->element = l->list[i];
        for (size_t n = 0; n < r->elements; n++) {
            r->element[n] = a_reply(l, depth + 1);
        }
    } else if (r->type == REDIS_REPLY_INTEGER) {
        r->integer = tt_chance(&l->random, 50) ? (long long)rng_below(&l->random, 5)
                                               : (long long)rng_next(&l->random);
    } else {
        r->str = l->text[i];
        if (tt_chance(&l->random, 20)) {
            r->len = fill_message(l, r->str);
        } else {
            r->len = a_length(l);
            fill(l, r->str, r->len);
        }
    }
    return r;
}

/* The answer to a HELLO, true as far as that jobs are read from it. */
static redisReply *a_session(struct liar *l)
{
    redisReply *r = a_reply(l, 0);
    while (r->elements < WIDE) {
        r->element[r->elements++] = a_reply(l, DEEP);
    }
    r->element[0] = a_reply(l, DEEP);
    r->element[0]->len = REDIS_BOOT_BYTES;
    r->element[4] = a_reply(l, DEEP);
    *r->element[5] = (redisReply){.type = REDIS_REPLY_INTEGER, .integer = 1};
    r->element[6] = a_reply(l, 0);
    return r;
}

/* ---- what reaches the client ---- */

static void take_event(struct liar *l, const struct client_event *e)
{
    if (e->kind == CLIENT_JOB) {
        l->jobs++;
    } else if (e->kind == CLIENT_NODE_DONE) {
        assert_true(proto_results_in_range(&e->node_done->list, false));
        l->dones += e->node_done->list.count;
    } else if (e->kind == CLIENT_SHARED) {
        assert_true(proto_results_in_range(&e->shared->list, true));
        l->shares += e->shared->list.count;
    }
}

static bool take_hello(void *self, unsigned shard, const uint8_t *bytes, size_t length)
{
    struct liar *l = self;
    struct proto_message m;
    (void)shard;
    assert_int_equal(proto_decode(&l->shell->decoder, bytes, length, &m), ERR_OK);
    assert_int_equal(m.type, PROTO_HELLO);
    l->request = m.hello.request;
    return true;
}

static void hand_over(struct liar *l)
{
    struct client_event e;
    while (redis_shell_hand_over(l->shell, l->client)) {
        while (client_next(l->client, &e)) {
            take_event(l, &e);
        }
    }
}

/* The client is in a session, which an honest server has begun. */
static void open_shell(struct liar *l)
{
    struct redis_address address;
    char why[REDIS_WHY_MAX];
    assert_int_equal(redis_address_parse(&address, "redis://127.0.0.1:1", why), ERR_OK);
    assert_int_equal(redis_shell_open(&l->shell, &address, NULL, NULL), ERR_OK);
    struct client_options options = {.shards = 1, .role = PROTO_WORKER, .instance = 1};
    struct proto_message welcome = {.type = PROTO_WELCOME};
    assert_int_equal(client_open(&options, take_hello, l, &l->client), ERR_OK);
    (void)client_tick(l->client, clock_us());
    l->shell->role = PROTO_WORKER;
    welcome.welcome = (struct proto_welcome){
        .request = l->request, .session = 1, .boot = 1, .heartbeat_ms = 60000, .batch_max = 1};
    redis_shell_give(l->shell, 0, &welcome);
    hand_over(l);
    assert_int_equal(client_shards_up(l->client), 1);
}

static void any_answer_is_survived(void **state)
{
    (void)state;
    static void (*const answer[])(struct redis_shell *, const struct redis_pending *,
                                  const struct redisReply *) = {
        redis_asked,    redis_stored,     redis_peeked,       redis_greeted,   redis_posted,
        redis_reported, redis_stats_read, redis_members_read, redis_jobs_read, redis_scanned,
    };
    struct liar *l = calloc(1, sizeof *l);
    assert_non_null(l);
    l->random = tt_seed();
    open_shell(l);
    for (unsigned run = 0; run < RUNS; run++) {
        struct redis_pending p = {
            .script = (enum redis_script)rng_below(&l->random, REDIS_SCRIPT_COUNT),
            .is_hello = tt_chance(&l->random, 50),
            .count = (uint16_t)(1 + rng_below(&l->random, 3)),
            .session = rng_below(&l->random, 2),
            .fresh_session = 7,
            .ask = {.key = 1, .depth = 4, .alpha = -WINDOW, .beta = WINDOW},
        };
        struct tt_ask asks[3] = {p.ask, p.ask, p.ask};
        p.asks = p.count > 1 ? asks : NULL;
        l->nodes = 0;
        answer[rng_below(&l->random, sizeof answer / sizeof *answer)](
            l->shell, &p, tt_chance(&l->random, 20) ? a_session(l) : a_reply(l, 0));
        hand_over(l);
    }
    assert_int_equal(client_outstanding(l->client), 0); /* nothing was asked */
    assert_true(l->jobs > 0); /* some lies are true enough */
    client_free(&l->client);
    redis_shell_close(&l->shell);
    free(l);
}

static void anything_published_is_survived(void **state)
{
    (void)state;
    struct liar *l = calloc(1, sizeof *l);
    char bytes[LONG + 64];
    assert_non_null(l);
    l->random = tt_seed();
    open_shell(l);
    l->shell->shard[0].session = 1;
    for (unsigned run = 0; run < RUNS; run++) {
        static const char kinds[] = "jsnrhx";
        size_t length = REDIS_HEADER_BYTES + 1;
        memset(bytes, 0, length);
        bytes[REDIS_HEADER_BYTES] = kinds[rng_below(&l->random, sizeof kinds - 1)];
        if (tt_chance(&l->random, 50)) {
            length += fill_message(l, bytes + length);
        } else {
            size_t more = rng_below(&l->random, 64);
            fill(l, bytes + length, more);
            length += more;
        }
        if (tt_chance(&l->random, 10)) {
            length = rng_below(&l->random, (uint32_t)length);
        }
        redis_published(l->shell, tt_chance(&l->random, 50), bytes, length);
        hand_over(l);
    }
    assert_true(l->jobs > 0 && l->shares > 0);
    client_free(&l->client);
    redis_shell_close(&l->shell);
    free(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_answer_is_survived),
        cmocka_unit_test(anything_published_is_survived),
    };
    return cmocka_run_group_tests_name("redis shell, lies", tests, NULL, NULL);
}
