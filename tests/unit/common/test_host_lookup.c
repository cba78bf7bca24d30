/* Names of hosts: found by a thread that nobody has to wait for, and listened on at every address.
 */
#include "common/clock.h"
#include "common/host_lookup.h"
#include "common/listen.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { LONG_US = 30000000, AGAIN_US = 5000000 };

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
        assert_int_equal(host_lookup_reach(&to, 0, NULL, &out, &why), ERR_OK);
        assert_string_equal(out.host, numbers[i]);
        assert_int_equal(out.port, 7400);
    }
}

static void number_is_known_at_once(void **state)
{
    (void)state;
    const char *const names[] = {"127.0.0.1", "::1"};
    for (unsigned i = 0; i < 2; i++) {
        struct host_lookup_name name = {.next = NULL};
        struct options_host_port to = at(names[i], 7400);
        const char *why = "nothing";
        const struct addrinfo *address = host_lookup_name_next(&name, &to, AGAIN_US, 1, &why);
        assert_non_null(address);
        assert_null(name.lookup);
        while (host_lookup_name_next(&name, &to, AGAIN_US, 1, &why) !=
               address) { /* the first again */
        }
        host_lookup_name_forget(&name);
    }
}

static void name_is_resolved_meanwhile(void **state)
{
    (void)state;
    struct host_lookup_name name = {.next = NULL};
    struct options_host_port to = at("localhost", 7400);
    const char *why = "nothing";
    uint64_t end_us = clock_us() + 150000000;
    assert_null(host_lookup_name_next(&name, &to, AGAIN_US, clock_us(), &why));
    assert_null(why);
    const struct addrinfo *address = NULL;
    while (address == NULL) {
        assert_true(clock_us() < end_us);
        usleep(1000);
        address = host_lookup_name_next(&name, &to, AGAIN_US, clock_us(), &why);
        assert_true(address != NULL || why == NULL || strstr(why, "still") != NULL);
    }
    /* Once more when all have been tried; those that are known are tried meanwhile. */
    uint64_t later_us = clock_us() + AGAIN_US;
    name.next = NULL;
    assert_non_null(host_lookup_name_next(&name, &to, AGAIN_US, later_us, &why));
    assert_non_null(name.lookup);
    host_lookup_name_forget(&name);
    assert_null(name.found);
}

static void slow_lookup_is_said(void **state)
{
    (void)state;
    struct host_lookup_name name = {.next = NULL};
    struct options_host_port to = at("name.invalid", 7400);
    const char *why = "nothing";
    assert_null(host_lookup_name_next(&name, &to, AGAIN_US, 1, &why));
    assert_null(why);
    if (host_lookup_name_next(&name, &to, AGAIN_US, 2 + HOST_LOOKUP_SLOW_US, &why) == NULL) {
        assert_non_null(why); /* or that there is no such name */
    }
    host_lookup_name_forget(&name); /* it may be under way */
}

static void few_lookups_are_under_way(void **state)
{
    (void)state;
    enum { HOSTS = 3 * HOST_LOOKUPS_MAX };
    struct host_lookup_name name[HOSTS] = {{.next = NULL}};
    struct options_host_port to = at("localhost", 7400);
    const char *why = NULL;
    unsigned known = 0;
    uint64_t end_us = clock_us() + 150000000;
    while (known < HOSTS) { /* each gets its turn */
        assert_true(clock_us() < end_us);
        known = 0;
        for (unsigned i = 0; i < HOSTS; i++) {
            bool is_known =
                name[i].found != NULL ||
                host_lookup_name_next(&name[i], &to, AGAIN_US, clock_us(), &why) != NULL;
            known += is_known;
        }
        usleep(1000);
    }
    for (unsigned i = 0; i < HOSTS; i++) {
        host_lookup_name_forget(&name[i]);
    }
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
        assert_int_equal(host_lookup_reach(&name, clock_us() + LONG_US, NULL, &out, &why), ERR_OK);
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
        struct sockaddr_in6 bound; /* its port is where that of a sockaddr_in is */
        socklen_t size = sizeof bound;
        assert_int_equal(getsockname(fd[i], (struct sockaddr *)&bound, &size), 0);
        assert_int_equal(ntohs(bound.sin6_port), port);
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
    assert_int_equal(host_lookup_reach(&name, clock_us() + LONG_US, &stop, &out, &why), ERR_ABSENT);
    assert_non_null(why);
    assert_int_equal(out.port, 1);
    struct host_lookup_name known = {.found = NULL};
    assert_false(host_lookup_name_step(&known, &name, true, AGAIN_US, clock_us()));
    assert_non_null(known.lookup);
    host_lookup_name_forget(&known);
    assert_null(known.lookup);
    host_lookup_name_forget(&known);
    struct listen_address all[LISTEN_ADDRESSES_MAX];
    assert_int_equal(listen_resolve_all(&name, &stop, all), 0);
}

static int connect_to_itself(uint16_t port, struct sockaddr_in *own)
{
    socklen_t size = sizeof *own;
    *own = (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)own, size), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)own, &size), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)own, size), 0); /* by both ends at once */
    return fd;
}

static void a_connection_that_met_itself_is_known_and_leaves_its_port_free(void **state)
{
    (void)state;
    struct sockaddr_in own, other;
    int fd = connect_to_itself(0, &own);
    assert_true(host_lookup_drop_if_itself(fd));
    assert_int_equal(close(fd), 0);
    fd = connect_to_itself(ntohs(own.sin_port), &own); /* the same port, at once */
    assert_true(host_lookup_drop_if_itself(fd));
    close(fd);
    /* One that met another is none. */
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    socklen_t size = sizeof other;
    other = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(bind(listener, (struct sockaddr *)&other, size), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&other, &size), 0);
    fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_false(host_lookup_drop_if_itself(fd));
    assert_int_equal(connect(fd, (struct sockaddr *)&other, size), 0);
    assert_false(host_lookup_drop_if_itself(fd));
    close(fd);
    close(listener);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_number_needs_no_thread),
        cmocka_unit_test(number_is_known_at_once),
        cmocka_unit_test(name_is_resolved_meanwhile),
        cmocka_unit_test(slow_lookup_is_said),
        cmocka_unit_test(few_lookups_are_under_way),
        cmocka_unit_test(the_address_that_listens_is_reached),
        cmocka_unit_test(a_name_listens_at_one_port),
        cmocka_unit_test(an_address_of_others_is_left_out),
        cmocka_unit_test(nobody_waits_for_a_name),
        cmocka_unit_test(a_connection_that_met_itself_is_known_and_leaves_its_port_free),
    };
    return cmocka_run_group_tests_name("host_lookup", tests, NULL, NULL);
}
