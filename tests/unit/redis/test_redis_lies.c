/* What a Redis can say that is wrong: answers of other types, too long, too deep, too many, cut
 * off, not asked for, and nodes of a cluster that are nowhere. The link lives, every call is
 * answered once, and with a server that is honest again all is well. The server is a part of the
 * test; time is virtual. SEED=N repeats one run. */
#include "common/redis/redis_reader.h"
#include "common/rng.h"
#include "tests/support/test_redis_link.h"

#include <hiredis/hiredis.h>
#include <sys/resource.h>

enum { PEERS = 16, STEP_US = 20000, STEPS = 300, RUNS = 25, STEPS_MAX = 100000 };

static const char *const scripts[] = {"return 1", "return 2"};

struct liar {
    int listener;
    unsigned port;
    bool is_cluster, is_honest;
    uint64_t rng;
    const char *bounce; /* an honest one's answer to the next call of a script */
    char done[16]; /* the first letters of keys of the calls that were carried out */
    struct {
        int fd;
        struct redis_reader *reader;
    } peer[PEERS];
};

static void liar_open(struct liar *l, uint64_t seed, bool is_cluster)
{
    *l = (struct liar){.rng = seed, .is_cluster = is_cluster, .port = redis_free_port()};
    int one = 1;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)l->port)};
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    l->listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    setsockopt(l->listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    assert_int_equal(bind(l->listener, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(l->listener, 64), 0);
    for (unsigned i = 0; i < PEERS; i++) {
        l->peer[i].fd = -1;
    }
}

static void liar_drop(struct liar *l, unsigned i)
{
    close(l->peer[i].fd);
    redis_reader_close(&l->peer[i].reader);
    l->peer[i].fd = -1;
}

static void liar_close(struct liar *l)
{
    for (unsigned i = 0; i < PEERS; i++) {
        if (l->peer[i].fd >= 0) {
            liar_drop(l, i);
        }
    }
    close(l->listener);
}

static void put(struct liar *l, unsigned i, const char *bytes, size_t length)
{
    if (l->peer[i].fd >= 0) {
        send(l->peer[i].fd, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
}

/* The map that is true of it, in two ranges. */
static size_t true_map(const struct liar *l, char *out, size_t size)
{
    return (size_t)snprintf(out, size,
                            "*2\r\n*3\r\n:0\r\n:8000\r\n*2\r\n$9\r\n127.0.0.1\r\n:%u\r\n"
                            "*3\r\n:8001\r\n:16383\r\n*3\r\n$0\r\n\r\n:%u\r\n$2\r\nid\r\n",
                            l->port, l->port);
}

static void answer_honestly(struct liar *l, unsigned i, const redisReply *command)
{
    static const char hash[] = "$40\r\n0123456789012345678901234567890123456789\r\n";
    static const char subscribed[] = "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n";
    char text[512];
    const char *word = command->element[0]->str;
    if (strcmp(word, "SCRIPT") == 0) {
        put(l, i, hash, sizeof hash - 1);
    } else if (strcmp(word, "PING") == 0) {
        put(l, i, "+PONG\r\n", 7);
    } else if (strcmp(word, "CLUSTER") == 0) {
        put(l, i, text, true_map(l, text, sizeof text));
    } else if (strcmp(word, "SUBSCRIBE") == 0) {
        put(l, i, subscribed, sizeof subscribed - 1);
    } else if (strcmp(word, "EVALSHA") == 0 && l->bounce != NULL) {
        put(l, i, l->bounce, strlen(l->bounce));
        l->bounce = NULL;
    } else {
        size_t n = strlen(l->done);
        if (strcmp(word, "EVALSHA") == 0 && command->elements > 3 && n + 1 < sizeof l->done) {
            l->done[n] = command->element[3]->str[0];
        }
        put(l, i, "+OK\r\n", 5);
    }
}

static void lie(struct liar *l, unsigned i)
{
    static const char *const lies[] = {
        "-MOVED 1 127.0.0.1:1\r\n",
        "-MOVED 99999 127.0.0.1:1\r\n",
        "-MOVED 5 127.0.0.1:70000\r\n",
        "-MOVED 5 :\r\n",
        "-MOVED\r\n",
        "-MOVED 4294967297 127.0.0.1:1 b c d\r\n",
        "-MOVED 7 ::1:1 b c d\r\n",
        "-ASK 1 127.0.0.1:1\r\n",
        "-ASK x y\r\n",
        "-NOSCRIPT No matching script\r\n",
        "-LOADING\r\n",
        "-READONLY\r\n",
        "-CLUSTERDOWN The cluster is down\r\n",
        "-TRYAGAIN\r\n",
        "-NOAUTH\r\n",
        "-\r\n",
        "-ERR \x01\x1b[2J\xff\r\n",
        "*0\r\n",
        "*-1\r\n",
        "$-1\r\n",
        "$0\r\n\r\n",
        ":9223372036854775807\r\n",
        ":x\r\n",
        "*1000000000\r\n",
        "*131072\r\n",
        "*9223372036854775807\r\n",
        "$9223372036854775807\r\n",
        "$2000000000\r\nabc",
        "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n",
        "*3\r\n$7\r\nmessage\r\n:1\r\n*0\r\n",
        "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$-1\r\n",
        "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nx\r\n",
        "*1\r\n*3\r\n:0\r\n:16384\r\n*2\r\n$3\r\n::1\r\n:1\r\n",
        "*1\r\n*3\r\n:-1\r\n:5\r\n*2\r\n$3\r\n::1\r\n:1\r\n",
        "*1\r\n*3\r\n:9\r\n:5\r\n*2\r\n$3\r\n::1\r\n:1\r\n",
        "*1\r\n*3\r\n:0\r\n:5\r\n*2\r\n*0\r\n:1\r\n",
        "*1\r\n*3\r\n:0\r\n:5\r\n*2\r\n$9\r\n127.0.0.1\r\n:-1\r\n",
        "*1\r\n*4\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:1\r\n:7\r\n",
        "*2\r\n:1\r\n$1\r\nx\r\n",
        "hello\r\n",
        "%1\r\n+a\r\n+b\r\n",
        "\r\n\r\n",
    };
    enum { LIES = sizeof lies / sizeof lies[0] };
    char text[1024];
    switch (rng_below(&l->rng, 8)) {
    case 0:
        liar_drop(l, i);
        break;
    case 1: /* nothing at all */
        break;
    case 2: { /* noise */
        size_t n = rng_below(&l->rng, 64);
        for (size_t k = 0; k < n; k++) {
            text[k] = "*$:+-0123456789\r\n\0ab"[rng_below(&l->rng, 20)];
        }
        put(l, i, text, n);
        break;
    }
    case 3: { /* a map of nodes that are nowhere, more of them than there is room for */
        size_t n = (size_t)snprintf(text, sizeof text, "*16\r\n");
        for (unsigned k = 0; k < 16; k++) {
            n += (size_t)snprintf(text + n, sizeof text - n,
                                  "*3\r\n:%u\r\n:%u\r\n*2\r\n$9\r\n127.0.0.1\r\n:%u\r\n", k * 1024,
                                  k * 1024 + 1023, 1 + rng_below(&l->rng, 1000));
        }
        put(l, i, text, n);
        break;
    }
    default: {
        const char *one = lies[rng_below(&l->rng, LIES)];
        size_t n = strlen(one);
        put(l, i, one, rng_below(&l->rng, 8) == 0 ? rng_below(&l->rng, (uint32_t)n + 1) : n);
        break;
    }
    }
}

static void liar_step(struct liar *l)
{
    int fd = accept4(l->listener, NULL, NULL, SOCK_NONBLOCK);
    for (unsigned i = 0; i < PEERS && fd >= 0; i++) {
        if (l->peer[i].fd < 0) {
            l->peer[i].fd = fd;
            l->peer[i].reader = redis_reader_open();
            fd = -1;
        }
    }
    if (fd >= 0) {
        close(fd);
    }
    for (unsigned i = 0; i < PEERS; i++) {
        char bytes[4096];
        ssize_t n = l->peer[i].fd < 0 ? -1 : recv(l->peer[i].fd, bytes, sizeof bytes, MSG_DONTWAIT);
        struct redisReply *command = NULL;
        if (n == 0) {
            liar_drop(l, i);
        }
        if (n <= 0) {
            continue;
        }
        assert_int_equal(redis_reader_feed(l->peer[i].reader, bytes, (size_t)n), ERR_OK);
        while (l->peer[i].fd >= 0 && redis_reader_next(l->peer[i].reader, &command) == ERR_OK &&
               command != NULL) {
            if (l->is_honest || rng_below(&l->rng, 6) != 0) {
                answer_honestly(l, i, command);
            } else {
                lie(l, i);
            }
            freeReplyObject(command);
            command = NULL;
        }
    }
}

/* One call to any slot; true if the link took it. */
static bool call(struct liar *l, struct user *u, uint64_t now_us)
{
    const char *const argv[] = {"key", "value"};
    const size_t length[] = {3, 5};
    unsigned slot = rng_below(&l->rng, REDIS_SLOTS);
    return redis_link_call(u->link, slot, rng_below(&l->rng, 2), 1, 2, argv, length, 0, now_us);
}

static void step(struct liar *l, struct user *u, uint64_t *now_us)
{
    struct pollfd fd[REDIS_LINK_FDS_MAX];
    liar_step(l);
    poll(fd, redis_link_fds(u->link, fd), 0);
    *now_us += STEP_US;
    redis_link_drain(u->link, *now_us);
    redis_link_tick(u->link, *now_us);
}

static void run(uint64_t seed, bool is_cluster)
{
    struct liar l;
    struct user u;
    char url[64];
    uint64_t now_us = 1000000;
    unsigned sent = 0;
    liar_open(&l, seed, is_cluster);
    snprintf(url, sizeof url, "%s://:hunter2@127.0.0.1:%u", is_cluster ? "redis+cluster" : "redis",
             l.port);
    user_open(&u, url, scripts, 2);
    assert_true(redis_link_subscribe(u.link, "c"));
    for (unsigned i = 0; i < STEPS; i++) {
        for (unsigned k = rng_below(&l.rng, 4); k > 0; k--) {
            sent += call(&l, &u, now_us) ? 1 : 0;
        }
        step(&l, &u, &now_us);
        assert_true(u.answers <= sent);
        assert_null(strstr(u.why, "hunter2"));
        for (const char *c = u.why; *c != '\0'; c++) {
            assert_true(*c >= ' ' && *c <= '~');
        }
    }
    l.is_honest = true;
    unsigned steps = 0;
    while (!user_all(&u, true) || u.answers < sent) {
        step(&l, &u, &now_us);
        usleep(100);
        assert_true(steps++ < STEPS_MAX);
    }
    assert_int_equal(u.answers, sent);
    /* A connection that still owes an answer gives each call that of the one before. */
    while (strcmp(u.last, "OK") != 0) {
        sent += call(&l, &u, now_us) ? 1 : 0;
        while (u.answers < sent) {
            step(&l, &u, &now_us);
            usleep(100);
            assert_true(steps++ < STEPS_MAX);
        }
        step(&l, &u, &now_us);
        assert_true(steps++ < STEPS_MAX);
    }
    assert_int_equal(u.answers, sent);
    user_close(&u);
    liar_close(&l);
}

static void runs(bool is_cluster)
{
    const char *only = getenv("SEED");
    struct rusage use;
    if (only != NULL) {
        run(strtoull(only, NULL, 10), is_cluster);
        return;
    }
    for (uint64_t seed = 1; seed <= RUNS; seed++) {
        print_message("# SEED=%u\n", (unsigned)seed);
        run(seed, is_cluster);
    }
    getrusage(RUSAGE_SELF, &use);
    assert_true(use.ru_maxrss < 2 << 20); /* KiB, with a sanitizer's */
}

static void open_up(struct liar *l, struct user *u, bool is_cluster, uint64_t *now_us)
{
    char url[64];
    liar_open(l, 1, is_cluster);
    l->is_honest = true;
    snprintf(url, sizeof url, "%s://127.0.0.1:%u", is_cluster ? "redis+cluster" : "redis", l->port);
    user_open(u, url, scripts, 2);
    for (unsigned steps = 0; !user_all(u, true); steps++) {
        step(l, u, now_us);
        usleep(100);
        assert_true(steps < STEPS_MAX);
    }
}

enum { SLOT = 5, OTHER = 6 };

static void call_key(struct user *u, const char *key, uint64_t now_us, unsigned slot)
{
    assert_true(redis_link_call(u->link, slot, 0, 1, 1, &key, (size_t[]){1}, 0, now_us));
}

/* The time stays: what waits goes on waiting. */
static void until_answered(struct liar *l, struct user *u, uint64_t now_us, unsigned answers)
{
    for (unsigned steps = 0; u->answers < answers; steps++) {
        liar_step(l);
        redis_link_drain(u->link, now_us);
        usleep(100);
        assert_true(steps < STEPS_MAX);
    }
}

/* One that has to be sent again is not carried out after a later one: that waits behind it, or was
 * there already, and then the first is lost. */
static void calls_of_a_slot_keep_their_order(void **state)
{
    static const char *const bounces[] = {"-CLUSTERDOWN it votes\r\n", "-TRYAGAIN\r\n",
                                          "-LOADING\r\n", "-NOSCRIPT No matching script\r\n"};
    (void)state;
    for (size_t i = 0; i < sizeof bounces / sizeof *bounces; i++) {
        struct liar l;
        struct user u;
        uint64_t now_us = 1000000;
        open_up(&l, &u, true, &now_us);
        l.bounce = bounces[i];
        call_key(&u, "a", now_us, SLOT);
        call_key(&u, "b", now_us, SLOT);
        until_answered(&l, &u, now_us, 2);
        assert_string_equal(l.done, "b");
        assert_int_equal(u.lost, 1);
        l.bounce = bounces[i];
        call_key(&u, "c", now_us, SLOT);
        call_key(&u, "x", now_us, OTHER);
        until_answered(&l, &u, now_us, 3);
        call_key(&u, "d", now_us, SLOT);
        call_key(&u, "e", now_us, SLOT);
        now_us += STEP_US;
        until_answered(&l, &u, now_us, 6);
        assert_string_equal(l.done, "bxcde");
        assert_int_equal(u.lost, 1);
        user_close(&u);
        liar_close(&l);
    }
}

/* After a second: the script is loaded for those that follow. */
static void a_late_call_without_its_script_is_lost(void **state)
{
    struct liar l;
    struct user u;
    uint64_t now_us = 1000000;
    (void)state;
    open_up(&l, &u, false, &now_us);
    l.bounce = "-NOSCRIPT No matching script\r\n";
    call_key(&u, "a", now_us, SLOT);
    now_us += REDIS_LINK_AGAIN_US;
    until_answered(&l, &u, now_us, 1);
    assert_int_equal(u.lost, 1);
    assert_int_equal(u.errors, 0);
    call_key(&u, "b", now_us, SLOT);
    until_answered(&l, &u, now_us, 2);
    assert_string_equal(l.done, "b");
    assert_int_equal(u.lost, 1);
    user_close(&u);
    liar_close(&l);
}

/* A server that does not read answers calls of which the socket took a part, or nothing. */
static void an_answer_to_a_call_that_was_not_sent_is_a_lie(void **state)
{
    enum { CALLS = 7, EACH = 4 << 20 };
    struct liar l;
    struct user u;
    uint64_t now_us = 1000000;
    char *text = malloc(EACH);
    const char *const argv[] = {"key", text};
    const int small = 4096;
    (void)state;
    memset(text, 'x', EACH);
    open_up(&l, &u, false, &now_us);
    for (unsigned i = 0; i < PEERS; i++) {
        setsockopt(l.peer[i].fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    }
    for (unsigned i = 0; i < CALLS; i++) {
        assert_true(redis_link_call(u.link, SLOT, 0, 1, 2, argv, (size_t[]){3, EACH}, i, now_us));
    }
    for (unsigned i = 0; i < PEERS * CALLS; i++) {
        put(&l, i / CALLS, "+OK\r\n", 5);
    }
    for (unsigned steps = 0; u.answers < CALLS; steps++) {
        redis_link_drain(u.link, now_us);
        usleep(100);
        assert_true(steps < STEPS_MAX);
    }
    assert_true(u.lost > 0);
    assert_non_null(strstr(u.why, "it answers what was not asked"));
    user_close(&u);
    liar_close(&l);
    free(text);
}

static void link_survives_lies_of_a_server(void **state)
{
    (void)state;
    runs(false);
}

static void link_survives_lies_of_a_cluster(void **state)
{
    (void)state;
    runs(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_of_a_slot_keep_their_order),
        cmocka_unit_test(a_late_call_without_its_script_is_lost),
        cmocka_unit_test(an_answer_to_a_call_that_was_not_sent_is_a_lie),
        cmocka_unit_test(link_survives_lies_of_a_server),
        cmocka_unit_test(link_survives_lies_of_a_cluster),
    };
    return cmocka_run_group_tests_name("redis lies", tests, NULL, NULL);
}
