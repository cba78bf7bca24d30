/* Visitors of an HTTP server: who is slow ends, and not who is not. */
#include "common/clock.h"
#include "common/visitors.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

enum { MANY = 16, PATIENCE_MS = 30000 };

struct guest {
    int end[2]; /* ours, the visitor's */
    struct visitor *visitor;
};

static struct guest guest[MANY];

static void come(struct visitors *v, struct guest *g, const char *from)
{
    struct sockaddr_storage at = {0};
    struct sockaddr_in *v4 = (struct sockaddr_in *)(void *)&at;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)(void *)&at;
    if (inet_pton(AF_INET, from, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
    } else {
        assert_int_equal(inet_pton(AF_INET6, from, &v6->sin6_addr), 1);
        v6->sin6_family = AF_INET6;
    }
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, g->end), 0);
    g->visitor = visitors_come(v, g->end[1], (struct sockaddr *)(void *)&at);
    assert_non_null(g->visitor);
}

static bool has_ended(const struct guest *g, int wait_ms)
{
    struct pollfd fd = {.fd = g->end[0], .events = POLLIN};
    return poll(&fd, 1, wait_ms) > 0;
}

static void leave(struct visitors *v, struct guest *g)
{
    visitors_leave(v, g->visitor);
    close(g->end[0]);
    close(g->end[1]);
}

static struct visitors *open_for(unsigned max, unsigned request_s, unsigned answer_s)
{
    struct visitors *v = NULL;
    assert_int_equal(visitors_open(&v, &(struct visitors_limits){max, request_s, answer_s}),
                     ERR_OK);
    return v;
}

static void the_slowest_of_the_address_with_most_makes_room(void **state)
{
    static const char *const from[] = {"10.0.0.1",     "10.0.0.2",      "10.0.0.2", "2001:db8::1",
                                       "2001:db8::77", "2001:db8::178", "10.0.0.3"};
    struct visitors *v = open_for(6, 1000, 1000);
    (void)state;
    for (unsigned i = 0; i < 7; i++) {
        come(v, &guest[i], from[i]);
    }
    for (unsigned i = 0; i < 7; i++) { /* of the three of one network, the oldest */
        assert_int_equal(has_ended(&guest[i], 0), i == 3);
    }
    visitors_asked(v, guest[1].visitor);
    visitors_answered(v, guest[1].visitor); /* it is the younger of its address now */
    come(v, &guest[7], "10.0.0.9");
    assert_true(has_ended(&guest[2], 0) != has_ended(&guest[4], 0)); /* two have two each */
    assert_false(has_ended(&guest[1], 0) || has_ended(&guest[7], 0));
    for (unsigned i = 0; i < 8; i++) {
        leave(v, &guest[i]);
    }
    visitors_close(&v);
    visitors_close(&v);
}

static void who_follows_stays(void **state)
{
    struct visitors *v = open_for(3, 1000, 1000);
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        come(v, &guest[i], "10.0.0.1");
        visitors_asked(v, guest[i].visitor);
        visitors_followed(v, guest[i].visitor);
    }
    come(v, &guest[3], "10.0.0.2"); /* there is nobody else */
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(has_ended(&guest[i], 0), i == 3);
        leave(v, &guest[i]);
    }
    come(v, &guest[0], "10.0.0.1"); /* and those that left have made room */
    assert_false(has_ended(&guest[0], 0));
    leave(v, &guest[0]);
    visitors_close(&v);
}

static void a_request_has_its_time_however_it_goes_on(void **state)
{
    struct visitors *v = open_for(MANY, 1, 1000);
    uint64_t begin_us = clock_us();
    (void)state;
    come(v, &guest[0], "10.0.0.1");
    come(v, &guest[1], "10.0.0.1");
    visitors_asked(v, guest[1].visitor);
    come(v, &guest[2], "10.0.0.1");
    visitors_followed(v, guest[2].visitor);
    assert_true(has_ended(&guest[0], PATIENCE_MS));
    assert_true(clock_us() - begin_us >= 1000000);
    assert_false(has_ended(&guest[1], 0) || has_ended(&guest[2], 0));
    visitors_answered(v, guest[1].visitor); /* and the next request has its own */
    assert_true(has_ended(&guest[1], PATIENCE_MS));
    assert_false(has_ended(&guest[2], 0));
    for (unsigned i = 0; i < 3; i++) {
        leave(v, &guest[i]);
    }
    visitors_close(&v);
    v = open_for(MANY, 1, 1);
    come(v, &guest[0], "10.0.0.1");
    visitors_asked(v, guest[0].visitor);
    assert_true(has_ended(&guest[0], PATIENCE_MS)); /* so has an answer */
    leave(v, &guest[0]);
    visitors_close(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_slowest_of_the_address_with_most_makes_room),
        cmocka_unit_test(who_follows_stays),
        cmocka_unit_test(a_request_has_its_time_however_it_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
