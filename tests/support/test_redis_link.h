/* A user of a redis_link, for tests: counts answers, keeps the last one as text, and waits for
 * conditions. Threads: one. */
#ifndef TESTS_SUPPORT_TEST_REDIS_LINK_H
#define TESTS_SUPPORT_TEST_REDIS_LINK_H

#include "common/redis/redis_link.h"
#include "tests/support/test_redis.h"

#include <hiredis/hiredis.h>

struct user {
    struct redis_link *link;
    unsigned
        slowness; /* of its clock: where nothing may be given up, however slow the machine is */
    unsigned answers, lost, errors;
    bool expects_order;
    uint64_t last_tag;
    char last[512]; /* the last answer */
    unsigned ups, downs;
    bool is_up[REDIS_SLOTS];
    char why[REDIS_WHY_MAX], denied[REDIS_WHY_MAX];
    char channel[64], message[64]; /* the last one */
};

static inline size_t user_print(const redisReply *reply, char *out, size_t size)
{
    size_t n = 0;
    switch (reply->type) {
    case REDIS_REPLY_INTEGER:
        return (size_t)snprintf(out, size, "%lld", reply->integer);
    case REDIS_REPLY_NIL:
        return (size_t)snprintf(out, size, "nil");
    case REDIS_REPLY_ARRAY:
        out[n++] = '[';
        for (size_t i = 0; i < reply->elements && n + 64 < size; i++) {
            n += user_print(reply->element[i], out + n, size - n - 2);
            out[n++] = ',';
        }
        out[n > 1 ? n - 1 : n++] = ']';
        out[n] = '\0';
        return n;
    default:
        for (; n < reply->len && n + 1 < size; n++) {
            out[n] = reply->str[n] >= ' ' && reply->str[n] <= '~' ? reply->str[n] : '?';
        }
        out[n] = '\0';
        return n;
    }
}

static inline uint64_t user_now(const struct user *u)
{
    return clock_us() / (u->slowness > 0 ? u->slowness : 1);
}

static inline void user_answered(void *self, uint64_t tag, const struct redisReply *reply)
{
    struct user *u = self;
    if (u->expects_order && u->answers > 0) {
        assert_int_equal(tag, u->last_tag + 1);
    }
    u->answers++;
    u->last_tag = tag;
    u->last[0] = '\0';
    if (reply == NULL) {
        u->lost++;
        return;
    }
    u->errors += reply->type == REDIS_REPLY_ERROR ? 1 : 0;
    user_print(reply, u->last, sizeof u->last);
}

static inline void user_message(void *self, const char *channel, const char *bytes, size_t length)
{
    struct user *u = self;
    snprintf(u->channel, sizeof u->channel, "%s", channel);
    snprintf(u->message, sizeof u->message, "%.*s", (int)length, bytes);
}

static inline void user_changed(void *self, unsigned first_slot, unsigned last_slot, bool up,
                                const char *why)
{
    struct user *u = self;
    assert_true(first_slot <= last_slot && last_slot < REDIS_SLOTS);
    u->ups += up ? 1 : 0;
    u->downs += up ? 0 : 1;
    assert_true(up == (why == NULL));
    snprintf(u->why, sizeof u->why, "%s", up ? "" : why);
    for (unsigned i = first_slot; i <= last_slot; i++) {
        u->is_up[i] = up;
    }
}

static inline void user_denied(void *self, const char *channel, const char *why)
{
    struct user *u = self;
    assert_non_null(channel);
    snprintf(u->denied, sizeof u->denied, "%s", why);
}

static inline void user_open(struct user *u, const char *url, const char *const *scripts,
                             unsigned count)
{
    struct redis_address address;
    char why[REDIS_WHY_MAX];
    memset(u, 0, sizeof *u);
    assert_int_equal(redis_address_parse(&address, url, why), ERR_OK);
    assert_int_equal(redis_address_environment(&address, why), ERR_OK);
    const struct redis_link_options o = {
        .address = &address,
        .script = scripts,
        .scripts = count,
        .self = u,
        .answered = user_answered,
        .message = user_message,
        .changed = user_changed,
        .denied = user_denied,
    };
    assert_int_equal(redis_link_open(&u->link, &o), ERR_OK);
    memset(&address, 'x', sizeof address); /* it was copied */
}

static inline void user_close(struct user *u)
{
    redis_link_close(&u->link);
    assert_null(u->link);
}

/* Waits up to 20 ms for the sockets, and serves them. */
static inline void user_serve(struct user *u)
{
    struct pollfd fd[REDIS_LINK_FDS_MAX];
    poll(fd, redis_link_fds(u->link, fd), 20);
    redis_link_drain(u->link, user_now(u));
    redis_link_tick(u->link, user_now(u));
}

#define USER_WAIT(u, condition)                                                               \
    do {                                                                                      \
        uint64_t wait_end_us = clock_us() + REDIS_PATIENCE_S * UINT64_C(1000000);             \
        while (!(condition)) {                                                                \
            user_serve(u);                                                                    \
            if (clock_us() > wait_end_us) {                                                   \
                fail_msg("not in time: " #condition "; %u answers, %u lost, last %s, why %s", \
                         (u)->answers, (u)->lost, (u)->last, (u)->why);                       \
            }                                                                                 \
        }                                                                                     \
    } while (0)

static inline bool user_all(const struct user *u, bool up)
{
    for (unsigned i = 0; i < REDIS_SLOTS; i++) {
        if (u->is_up[i] != up || redis_link_is_up(u->link, i) != up) {
            return false;
        }
    }
    return true;
}

static inline void user_wait_up(struct user *u, bool up)
{
    USER_WAIT(u, user_all(u, up));
}

static inline void user_wait_answers(struct user *u, unsigned count)
{
    USER_WAIT(u, u->answers >= count);
    assert_int_equal(u->answers, count);
}

static inline void user_wait_why(struct user *u, const char *text)
{
    USER_WAIT(u, strstr(u->why, text) != NULL);
}

static inline void user_wait_denied(struct user *u, const char *text)
{
    USER_WAIT(u, strstr(u->denied, text) != NULL);
}

/* Publishes until it comes: what is published before the subscription is lost. */
static inline void user_wait_published(struct user *u, unsigned port, const char *channel)
{
    char line[128], answer[64];
    snprintf(line, sizeof line, "PUBLISH %s hello", channel);
    u->channel[0] = u->message[0] = '\0';
    USER_WAIT(u, strcmp(u->channel, channel) == 0 ||
                     (redis_ask(port, line, answer, sizeof answer) && false));
    assert_string_equal(u->message, "hello");
}

/* sum += 1 */
static inline bool user_add(struct user *u, unsigned script, uint64_t tag)
{
    const char *const argv[] = {"sum", "1"};
    return redis_link_call(u->link, redis_link_slot("sum", 3), script, 1, 2, argv, (size_t[]){3, 1},
                           tag, user_now(u));
}

#endif
