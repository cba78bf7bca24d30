/* The addresses of a host: numbers at once, names by a thread, and nobody who waits for one. */
#include "common/clock.h"
#include "common/lookup.h"
#include "common/redis/redis_host.h"

#include <netdb.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct options_host_port at(const char *name)
{
    struct options_host_port to = {.port = 7400};
    snprintf(to.host, sizeof to.host, "%s", name);
    return to;
}

static void number_is_known_at_once(void **state)
{
    (void)state;
    const char *const names[] = {"127.0.0.1", "::1"};
    for (unsigned i = 0; i < 2; i++) {
        struct redis_host host = {.found = NULL};
        struct options_host_port to = at(names[i]);
        const char *why = "nothing";
        const struct addrinfo *address = redis_host_next(&host, &to, 1, &why);
        assert_non_null(address);
        assert_null(host.lookup);
        while (redis_host_next(&host, &to, 1, &why) != address) { /* the first again */
        }
        redis_host_forget(&host);
    }
}

static void name_is_resolved_meanwhile(void **state)
{
    (void)state;
    struct redis_host host = {.found = NULL};
    struct options_host_port to = at("localhost");
    const char *why = "nothing";
    uint64_t end_us = clock_us() + 30000000;
    assert_null(redis_host_next(&host, &to, clock_us(), &why));
    assert_null(why);
    const struct addrinfo *address = NULL;
    while (address == NULL) {
        assert_true(clock_us() < end_us);
        usleep(1000);
        address = redis_host_next(&host, &to, clock_us(), &why);
        assert_true(address != NULL || why == NULL || strstr(why, "still") != NULL);
    }
    /* Once more when all have been tried; those that are known are tried meanwhile. */
    uint64_t later_us = clock_us() + REDIS_HOST_LOOKUP_US;
    redis_host_rewind(&host);
    assert_non_null(redis_host_next(&host, &to, later_us, &why));
    assert_non_null(host.lookup);
    redis_host_forget(&host);
    assert_null(host.found);
}

static void slow_lookup_is_said(void **state)
{
    (void)state;
    struct redis_host host = {.found = NULL};
    struct options_host_port to = at("name.invalid");
    const char *why = "nothing";
    assert_null(redis_host_next(&host, &to, 1, &why));
    assert_null(why);
    if (redis_host_next(&host, &to, 2 + REDIS_HOST_SLOW_US, &why) == NULL) {
        assert_non_null(why); /* or that there is no such host */
    }
    redis_host_forget(&host); /* it may be under way */
}

static void few_lookups_are_under_way(void **state)
{
    (void)state;
    enum { HOSTS = 3 * LOOKUPS_MAX };
    struct redis_host host[HOSTS] = {{.found = NULL}};
    struct options_host_port to = at("localhost");
    const char *why = NULL;
    unsigned known = 0;
    uint64_t end_us = clock_us() + 30000000;
    while (known < HOSTS) { /* each gets its turn */
        assert_true(clock_us() < end_us);
        known = 0;
        for (unsigned i = 0; i < HOSTS; i++) {
            bool is_known =
                host[i].found != NULL || redis_host_next(&host[i], &to, clock_us(), &why) != NULL;
            known += is_known;
        }
        usleep(1000);
    }
    for (unsigned i = 0; i < HOSTS; i++) {
        redis_host_forget(&host[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(number_is_known_at_once),
        cmocka_unit_test(name_is_resolved_meanwhile),
        cmocka_unit_test(slow_lookup_is_said),
        cmocka_unit_test(few_lookups_are_under_way),
    };
    return cmocka_run_group_tests_name("redis host", tests, NULL, NULL);
}
