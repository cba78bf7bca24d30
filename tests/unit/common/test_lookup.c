/* Names of hosts: found by a thread that nobody has to wait for, and listened on at every address.
 */
#include "common/clock.h"
#include "common/listen.h"
#include "common/lookup.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { LONG_US = 30000000 };

static struct options_host_port at(const char *name, uint16_t port)
{
    struct options_host_port to = {.port = port};
    snprintf(to.host, sizeof to.host, "%s", name);
    return to;
}

static void a_number_needs_no_thread(void **state)
{
    (void)state;
    const char *const numbers[] = {"127.0.0.1", "::1", "10.1.2.3"};
    for (unsigned i = 0; i < 3; i++) {
        struct options_host_port to = at(numbers[i], 7400), out;
        const char *why = NULL;
        assert_int_equal(lookup_reach(&to, 0, NULL, &out, &why), ERR_OK);
        assert_string_equal(out.host, numbers[i]);
        assert_int_equal(out.port, 7400);
    }
    struct addrinfo *found = NULL;
    struct options_host_port name = at("localhost", 7400);
    assert_false(lookup_number(&name, &found));
}

static void the_address_that_listens_is_reached(void **state)
{
    (void)state;
    struct options_host_port name = at("localhost", 0), out;
    struct listen_address all[LISTEN_ADDRESSES_MAX];
    unsigned count = listen_resolve_all(&name, NULL, all);
    assert_true(count > 0);
    assert_true(listen_are_loopback(all, count));
    for (unsigned i = 0; i < count; i++) {
        int fd[LISTEN_ADDRESSES_MAX];
        unsigned fds = 0;
        const char *why = NULL;
        if (listen_bind(&all[i], 1, 0, 8, fd, &fds, &name.port) != ERR_OK) {
            assert_int_equal(errno, EADDRNOTAVAIL); /* ::1 where there is no IPv6 */
            continue;
        }
        assert_int_equal(lookup_reach(&name, clock_us() + LONG_US, NULL, &out, &why), ERR_OK);
        assert_string_equal(out.host, all[i].numeric);
        close(fd[0]);
    }
}

static void a_name_listens_at_one_port(void **state)
{
    (void)state;
    struct options_host_port name = at("localhost", 0);
    struct listen_address all[LISTEN_ADDRESSES_MAX];
    int fd[LISTEN_ADDRESSES_MAX], more[LISTEN_ADDRESSES_MAX];
    unsigned fds = 0, none = 0;
    uint16_t port = 0, other = 0;
    unsigned count = listen_resolve_all(&name, NULL, all);
    assert_int_equal(listen_bind(all, count, 0, 8, fd, &fds, &port), ERR_OK);
    assert_true(fds > 0 && fds <= count && port > 0);
    for (unsigned i = 0; i < fds; i++) {
        struct sockaddr_storage bound;
        socklen_t size = sizeof bound;
        assert_int_equal(getsockname(fd[i], (struct sockaddr *)&bound, &size), 0);
        assert_int_equal(listen_port(&bound), port);
    }
    assert_int_equal(listen_bind(all, count, port, 8, more, &none, &other), ERR_EXIST);
    assert_int_equal(none, 0);
    for (unsigned i = 0; i < fds; i++) {
        close(fd[i]);
    }
}

static void an_address_of_others_is_left_out(void **state)
{
    (void)state;
    struct options_host_port own = at("127.0.0.1", 0), others = at("192.0.2.1", 0);
    struct listen_address address[LISTEN_ADDRESSES_MAX];
    int fd[LISTEN_ADDRESSES_MAX];
    unsigned fds = 0;
    uint16_t port = 0;
    assert_int_equal(listen_resolve_all(&others, NULL, address), 1);
    assert_false(listen_are_loopback(address, 1));
    assert_int_equal(listen_bind(address, 1, 0, 8, fd, &fds, &port), ERR_IO);
    assert_int_equal(listen_resolve(&own, NULL, &address[1]), ERR_OK);
    assert_false(listen_are_loopback(address, 2));
    assert_int_equal(listen_bind(address, 2, 0, 8, fd, &fds, &port), ERR_OK);
    assert_int_equal(fds, 1);
    close(fd[0]);
}

static void nobody_waits_for_a_name(void **state)
{
    (void)state;
    atomic_bool stop = true;
    struct options_host_port name = at("name.invalid", 7400), out = {.port = 1};
    const char *why = NULL;
    assert_int_equal(lookup_reach(&name, clock_us() + LONG_US, &stop, &out, &why), ERR_ABSENT);
    assert_non_null(why);
    assert_int_equal(out.port, 1);
    struct lookup *lookup = lookup_begin(&name, true);
    assert_non_null(lookup);
    lookup_leave(&lookup);
    assert_null(lookup);
    lookup_leave(&lookup);
    struct listen_address all[LISTEN_ADDRESSES_MAX];
    assert_int_equal(listen_resolve_all(&name, &stop, all), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_number_needs_no_thread),
        cmocka_unit_test(the_address_that_listens_is_reached),
        cmocka_unit_test(a_name_listens_at_one_port),
        cmocka_unit_test(an_address_of_others_is_left_out),
        cmocka_unit_test(nobody_waits_for_a_name),
    };
    return cmocka_run_group_tests_name("lookup", tests, NULL, NULL);
}
