/* The HTTP server over real sockets. */
#include "common/clock.h"
#include "common/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { ROOM = 1 << 20, PATIENCE_MS = 30000, BIG = 300000 };

static const char token[] = "0123456789abcdef";

/* What a client has read so far. */
struct client {
    int fd;
    size_t used;
    bool is_closed;
    char text[ROOM];
};

static unsigned say_hello(void *self, FILE *out)
{
    fprintf(out, "hello %s\n", (const char *)self);
    return 200;
}

static unsigned say_much(void *self, FILE *out)
{
    (void)self;
    for (unsigned i = 0; i < BIG; i++) {
        fputc('x', out);
    }
    return 200;
}

static unsigned say_not_ready(void *self, FILE *out)
{
    (void)self;
    fputs("not ready\n", out);
    return 503;
}

static const struct http_route routes[] = {
    {"/", "text/html", say_hello, (void *)"page", "default-src 'none'; img-src data:", true},
    {"/metrics", "text/plain; version=0.0.4", say_hello, (void *)"figures"},
    {"/much", "text/plain", say_much},
    {"/health", "text/plain", say_not_ready, .is_open = true},
    {"/events"},
    {0},
};

static struct http *open_at(const char *host, const char *with_token)
{
    struct options_host_port at = {0};
    const struct http_options options = {&at, routes, with_token};
    struct http *h = NULL;
    char why[HTTP_WHY_MAX] = "";
    snprintf(at.host, sizeof at.host, "%s", host);
    if (http_open(&h, &options, why) != ERR_OK) {
        fail_msg("%s", why);
    }
    return h;
}

static struct client *call(const struct http *h, int receive_buffer)
{
    struct options_host_port at;
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
    struct client *c = calloc(1, sizeof *c);
    assert_non_null(c);
    assert_int_equal(options_host_port(http_address(h), &at), ERR_OK);
    bool is_v6 = strchr(at.host, ':') != NULL;
    v4.sin_port = v6.sin6_port = htons(at.port);
    assert_int_equal(is_v6 ? inet_pton(AF_INET6, at.host, &v6.sin6_addr)
                           : inet_pton(AF_INET, at.host, &v4.sin_addr),
                     1);
    c->fd = socket(is_v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(c->fd >= 0);
    if (receive_buffer > 0) {
        setsockopt(c->fd, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    }
    assert_int_equal(is_v6 ? connect(c->fd, (struct sockaddr *)&v6, sizeof v6)
                           : connect(c->fd, (struct sockaddr *)&v4, sizeof v4),
                     0);
    return c;
}

static void hang_up(struct client **c)
{
    close((*c)->fd);
    free(*c);
    *c = NULL;
}

static void say(struct client *c, const char *text)
{
    size_t length = strlen(text);
    assert_int_equal(send(c->fd, text, length, MSG_NOSIGNAL), length);
}

/* Reads what there is within `wait_ms`. */
static void receive(struct client *c, int wait_ms)
{
    struct pollfd fd = {.fd = c->fd, .events = POLLIN};
    if (c->is_closed || poll(&fd, 1, wait_ms) <= 0) {
        return;
    }
    assert_true(c->used < ROOM - 1);
    ssize_t got = recv(c->fd, c->text + c->used, ROOM - 1 - c->used, 0);
    c->is_closed = got <= 0;
    c->used += got > 0 ? (size_t)got : 0;
    c->text[c->used] = '\0';
}

#define RECEIVE_UNTIL(client, condition)                               \
    do {                                                               \
        uint64_t limit_us = clock_us() + UINT64_C(1000) * PATIENCE_MS; \
        while (!(condition)) {                                         \
            receive(client, 10);                                       \
            if (clock_us() > limit_us) {                               \
                fail_msg("not in time: " #condition);                  \
            }                                                          \
        }                                                              \
    } while (0)

/* The status of a request on a connection of its own; all that comes stays in *out. */
static unsigned ask(const struct http *h, const char *text, struct client **out)
{
    struct client *c = call(h, 0);
    unsigned status = 0;
    say(c, text);
    RECEIVE_UNTIL(c, c->is_closed || strstr(c->text, "\r\n\r\n") != NULL);
    assert_int_equal(sscanf(c->text, "HTTP/1.1 %u", &status), 1);
    if (out != NULL) {
        *out = c;
    } else {
        hang_up(&c);
    }
    return status;
}

#define GET(path) "GET " path " HTTP/1.1\r\nHost: localhost:80\r\nConnection: close\r\n"

/* ---- requests ---- */

static void a_path_answers_with_its_type_and_headers(void **state)
{
    static const char *const headers[] = {
        "Content-Type: text/plain; version=0.0.4\r\n",
        "X-Content-Type-Options: nosniff\r\n",
        "Cache-Control: no-store\r\n",
        "Referrer-Policy: no-referrer\r\n",
        "Content-Security-Policy: default-src 'none'; frame-ancestors 'none'; base-uri 'none'; "
        "form-action 'none'\r\n",
    };
    struct http *h = open_at("127.0.0.1", NULL);
    struct client *c;
    (void)state;
    assert_int_equal(ask(h, GET("/metrics?x=1") "\r\n", &c), 200);
    RECEIVE_UNTIL(c, c->is_closed);
    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++) {
        assert_non_null(strstr(c->text, headers[i]));
    }
    assert_string_equal(strstr(c->text, "\r\n\r\n") + 4, "hello figures\n");
    hang_up(&c);
    assert_int_equal(ask(h, GET("/") "\r\n", &c), 200);
    assert_non_null(
        strstr(c->text, "Content-Security-Policy: default-src 'none'; img-src data:\r\n"));
    hang_up(&c);
    assert_int_equal(ask(h, GET("/health") "\r\n", NULL), 503);
    http_close(&h);
    assert_null(h);
    http_close(&h);
}

static void other_paths_and_methods_are_refused(void **state)
{
    static const char *const others[] = {"POST", "PUT", "DELETE", "OPTIONS", "TRACE", "BREW"};
    struct http *h = open_at("127.0.0.1", NULL);
    struct client *c;
    char text[256];
    (void)state;
    assert_int_equal(ask(h, GET("/nothing") "\r\n", NULL), 404);
    assert_int_equal(ask(h, GET("/metrics/") "\r\n", NULL), 404);
    assert_int_equal(ask(h, GET("/%2e%2e/etc/passwd") "\r\n", NULL), 404);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        snprintf(text, sizeof text,
                 "%s /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello",
                 others[i]);
        assert_int_equal(ask(h, text, &c), 405);
        assert_non_null(strstr(c->text, "Allow: GET, HEAD\r\n"));
        hang_up(&c);
    }
    assert_int_equal(ask(h, GET("/metrics") "Content-Length: 5\r\n\r\nhello", NULL), 413);
    assert_int_equal(
        ask(h, GET("/metrics") "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", NULL),
        413);
    http_close(&h);
}

static void head_has_no_body(void **state)
{
    static const char *const paths[] = {"/metrics", "/events"};
    struct http *h = open_at("127.0.0.1", NULL);
    char text[256];
    (void)state;
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        struct client *c;
        snprintf(text, sizeof text,
                 "HEAD %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", paths[i]);
        assert_int_equal(ask(h, text, &c), 200);
        RECEIVE_UNTIL(c, c->is_closed);
        assert_string_equal(strstr(c->text, "\r\n\r\n"), "\r\n\r\n");
        hang_up(&c);
    }
    assert_int_equal(http_followers(h), 0);
    http_close(&h);
}

static void an_oversized_or_malformed_request_is_refused(void **state)
{
    struct http *h = open_at("127.0.0.1", NULL);
    struct client *c = call(h, 0);
    char *text = malloc(4 * HTTP_REQUEST_MAX);
    (void)state;
    assert_non_null(text);
    memset(text, 'a', 4 * HTTP_REQUEST_MAX - 1);
    text[4 * HTTP_REQUEST_MAX - 1] = '\0';
    say(c, "GET /");
    ssize_t ignored = send(c->fd, text, 4 * HTTP_REQUEST_MAX - 1, MSG_NOSIGNAL);
    (void)ignored;
    RECEIVE_UNTIL(c, c->is_closed);
    assert_null(strstr(c->text, " 200 "));
    hang_up(&c);
    c = call(h, 0);
    say(c, GET("/metrics") "X: ");
    ignored = send(c->fd, text, 4 * HTTP_REQUEST_MAX - 1, MSG_NOSIGNAL);
    RECEIVE_UNTIL(c, c->is_closed);
    assert_null(strstr(c->text, " 200 "));
    hang_up(&c);
    c = call(h, 0);
    say(c, "\x16\x03\x01 no HTTP at all\r\n\r\n");
    RECEIVE_UNTIL(c, c->is_closed);
    hang_up(&c);
    free(text);
    assert_int_equal(ask(h, GET("/metrics") "\r\n", NULL), 200);
    http_close(&h);
}

static void without_the_token_only_open_routes_answer(void **state)
{
    struct http *h = open_at("127.0.0.1", token);
    struct client *c;
    (void)state;
    assert_int_equal(ask(h, GET("/metrics") "\r\n", &c), 401);
    assert_non_null(strstr(c->text, "WWW-Authenticate: Bearer\r\n"));
    assert_null(strstr(c->text, "hello"));
    hang_up(&c);
    assert_int_equal(ask(h, GET("/events") "\r\n", NULL), 401);
    assert_int_equal(ask(h, GET("/nothing") "\r\n", NULL), 401);
    assert_int_equal(ask(h, GET("/metrics") "Authorization: Bearer 0123456789abcdee\r\n\r\n", NULL),
                     401);
    assert_int_equal(ask(h, GET("/metrics") "Authorization: Bearer 0123\r\n\r\n", NULL), 401);
    assert_int_equal(ask(h, GET("/metrics") "Authorization: Bearer \r\n\r\n", NULL), 401);
    assert_int_equal(ask(h, GET("/metrics") "Authorization: 0123456789abcdef\r\n\r\n", NULL), 401);
    assert_int_equal(ask(h, GET("/metrics") "Authorization: Bearer 0123456789abcdef\r\n\r\n", NULL),
                     200);
    assert_int_equal(ask(h, GET("/") "\r\n", NULL), 200);
    assert_int_equal(ask(h, GET("/health") "\r\n", NULL), 503);
    http_close(&h);
}

static void on_loopback_foreign_names_are_refused(void **state)
{
    /* 127.0.0.3 is where it listens; RFC 3986 lets the number of a port be missing. */
    static const char own[] = "localhost LOCALHOST:8080 127.0.0.1:1 [::1]:8080 127.0.0.3:8080 "
                              "localhost: [::1]";
    static const char foreign[] = "127.0.0.2 example.com example.com:8080 localhost.example.com "
                                  "[::1 [ :80 10.0.0.1 [::1]evil.example [::1].evil.example:80 "
                                  "[::1]:80x localhost:evil localhost:80.evil localhost:80:90 "
                                  "localhost:-1 localhost:123456 127.0.0.1:0x50";
    struct http *h = open_at("127.0.0.3", NULL);
    char text[256], names[512], *rest;
    (void)state;
    for (unsigned is_own = 0; is_own < 2; is_own++) {
        strcpy(names, is_own ? own : foreign);
        rest = names;
        for (const char *host; (host = strtok_r(rest, " ", &rest)) != NULL;) {
            snprintf(text, sizeof text, "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", host);
            if (ask(h, text, NULL) != (is_own ? 200u : 421u)) {
                fail_msg("Host: %s is taken for %s", host, is_own ? "foreign" : "its own");
            }
        }
    }
    assert_int_equal(ask(h, "GET / HTTP/1.0\r\n\r\n", NULL), 421);
    assert_true(http_is_loopback(h));
    http_close(&h);
    h = open_at("*", NULL);
    assert_int_equal(ask(h, "GET / HTTP/1.1\r\nHost: example.com\r\n\r\n", NULL), 200);
    assert_false(http_is_loopback(h));
    http_close(&h);
}

static void an_answer_of_any_size_comes_whole(void **state)
{
    struct http *h = open_at("127.0.0.1", NULL);
    struct client *c;
    (void)state;
    assert_int_equal(ask(h, GET("/much") "\r\n", &c), 200);
    RECEIVE_UNTIL(c, c->is_closed);
    assert_int_equal(strlen(strstr(c->text, "\r\n\r\n") + 4), BIG);
    hang_up(&c);
    http_close(&h);
}

static void addresses_are_ipv6_as_well_and_faults_are_said(void **state)
{
    struct options_host_port at;
    struct http_options options = {&at, routes, NULL};
    struct http *other = NULL;
    char why[HTTP_WHY_MAX] = "";
    (void)state;
    int v6 = socket(AF_INET6, SOCK_STREAM, 0);
    const struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback};
    bool has_v6 = v6 >= 0 && bind(v6, (const struct sockaddr *)&any, sizeof any) == 0;
    if (v6 >= 0) {
        close(v6);
    }
    struct http *h = open_at(has_v6 ? "::1" : "127.0.0.1", NULL);
    assert_int_equal(ask(h, GET("/metrics") "\r\n", NULL), 200);
    assert_int_equal(options_host_port(http_address(h), &at), ERR_OK);
    assert_int_equal(http_open(&other, &options, why), ERR_EXIST);
    assert_non_null(strstr(why, "cannot listen: Address already in use"));
    assert_int_equal(options_host_port("no-such-host.invalid:80", &at), ERR_OK);
    assert_int_equal(http_open(&other, &options, why), ERR_ABSENT);
    assert_string_equal(why, "no-such-host.invalid:80: unknown host");
    assert_null(other);
    http_close(&h);
}

/* ---- the stream ---- */

static struct client *follow(struct http *h, int receive_buffer)
{
    struct client *c = call(h, receive_buffer);
    unsigned followers = http_followers(h);
    say(c, "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n");
    if (receive_buffer == 0) {
        RECEIVE_UNTIL(c, strstr(c->text, "\r\n\r\n") != NULL);
        assert_non_null(strstr(c->text, "Content-Type: text/event-stream\r\n"));
    } else { /* it leaves all in the socket */
        uint64_t until = clock_us() + UINT64_C(1000) * PATIENCE_MS;
        while (http_followers(h) == followers && clock_us() < until) {
            poll(NULL, 0, 1);
        }
    }
    return c;
}

static void publish(struct http *h, const char *text)
{
    http_publish(h, text, strlen(text));
}

static void everybody_who_follows_gets_the_newest_event(void **state)
{
    enum { CLIENTS = 100 };
    struct http *h = open_at("127.0.0.1", NULL);
    struct client *c[CLIENTS];
    (void)state;
    publish(h, "nobody follows yet");
    for (unsigned i = 0; i < CLIENTS; i++) {
        c[i] = follow(h, 0);
    }
    assert_int_equal(http_followers(h), CLIENTS);
    publish(h, "{\"n\":1}");
    for (unsigned i = 0; i < CLIENTS; i++) {
        RECEIVE_UNTIL(c[i], strstr(c[i]->text, "data: {\"n\":1}\n\n") != NULL);
        assert_null(strstr(c[i]->text, "nobody"));
    }
    struct client *late = follow(h, 0);
    RECEIVE_UNTIL(late, strstr(late->text, "data: {\"n\":1}\n\n") != NULL);
    publish(h, "{\"n\":2}");
    for (unsigned i = 0; i < CLIENTS; i++) {
        RECEIVE_UNTIL(c[i], strstr(c[i]->text, "data: {\"n\":2}\n\n") != NULL);
        hang_up(&c[i]);
    }
    hang_up(&late);
    /* They are missed with the events that do not reach them; what was the newest goes with the
     * last of them. */
    uint64_t until = clock_us() + UINT64_C(1000) * PATIENCE_MS;
    while (http_followers(h) > 0 && clock_us() < until) {
        publish(h, "is anybody there?");
        poll(NULL, 0, 10);
    }
    assert_int_equal(http_followers(h), 0);
    struct client *next = follow(h, 0);
    publish(h, "again");
    RECEIVE_UNTIL(next, strstr(next->text, "data: again\n\n") != NULL);
    assert_null(strstr(next->text, "anybody"));
    hang_up(&next);
    http_close(&h);
}

static unsigned count(const char *text, const char *word)
{
    unsigned n = 0;
    for (const char *at = strstr(text, word); at != NULL; at = strstr(at + 1, word)) {
        n++;
    }
    return n;
}

static void a_slow_client_misses_events_and_keeps_nobody_waiting(void **state)
{
    enum { EVENTS = 300, SIZE = 40000 };
    struct http *h = open_at("127.0.0.1", NULL);
    struct client *slow = follow(h, 4096), *fast = follow(h, 0);
    char *text = malloc(SIZE), end[32];
    (void)state;
    assert_non_null(text);
    for (unsigned i = 1; i <= EVENTS; i++) { /* 12 MB, more than sockets take */
        memset(text, ' ', SIZE);
        int used = snprintf(text, SIZE, "begin-%u-", i);
        text[used] = ' ';
        used = snprintf(end, sizeof end, "-end-%u.", i);
        memcpy(text + SIZE - used, end, (size_t)used);
        http_publish(h, text, SIZE);
        fast->used = 0;
        RECEIVE_UNTIL(fast, strstr(fast->text, end) != NULL);
    }
    snprintf(end, sizeof end, "-end-%u.", EVENTS);
    unsigned events = 0;
    uint64_t until = clock_us() + UINT64_C(1000) * PATIENCE_MS;
    do { /* room for many: what was read is counted and thrown away */
        slow->used = 0;
        slow->text[0] = '\0';
        receive(slow, 10);
        events += count(slow->text, "-end-");
    } while (strstr(slow->text, end) == NULL && clock_us() < until);
    assert_true(clock_us() < until); /* the newest is what it gets last */
    assert_true(events < EVENTS / 2);
    free(text);
    hang_up(&slow);
    hang_up(&fast);
    http_close(&h);
}

static void more_than_are_allowed_are_refused(void **state)
{
    struct http *h = open_at("127.0.0.1", NULL);
    struct client *c[HTTP_STREAMS_MAX];
    (void)state;
    for (unsigned i = 0; i < HTTP_STREAMS_MAX; i++) {
        c[i] = follow(h, 0);
    }
    assert_int_equal(ask(h, GET("/events") "\r\n", NULL), 503);
    assert_int_equal(ask(h, GET("/metrics") "\r\n", NULL), 200);
    for (unsigned i = 0; i < HTTP_STREAMS_MAX; i++) {
        hang_up(&c[i]);
    }
    http_close(&h);
}

struct publisher {
    struct http *server;
    atomic_bool stop;
};

static void *publish_on(void *self)
{
    struct publisher *p = self;
    for (unsigned i = 0; !atomic_load(&p->stop); i++) {
        char text[32];
        snprintf(text, sizeof text, "event %u", i);
        publish(p->server, text);
        poll(NULL, 0, 1);
    }
    return NULL;
}

static void clients_come_and_go_while_events_are_published(void **state)
{
    struct publisher p = {.server = open_at("127.0.0.1", NULL)};
    pthread_t thread;
    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, publish_on, &p), 0);
    for (unsigned i = 0; i < 200; i++) {
        struct client *c = follow(p.server, 0);
        if (i % 2 == 0) {
            RECEIVE_UNTIL(c, strstr(c->text, "data: event") != NULL);
        }
        hang_up(&c);
    }
    atomic_store(&p.stop, true);
    pthread_join(thread, NULL);
    http_close(&p.server);
}

static void closing_ends_all_connections(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 20; i++) {
        struct http *h = open_at("127.0.0.1", NULL);
        struct client *waiting = follow(h, 0), *slow = follow(h, 4096), *idle = call(h, 0),
                      *half = call(h, 0);
        char *text = calloc(1, 4 * BIG);
        assert_non_null(text);
        memset(text, 'y', 4 * BIG);
        say(half, "GET /metr");
        http_publish(h, text, i % 2 == 0 ? 4 * BIG : 10);
        RECEIVE_UNTIL(waiting, strstr(waiting->text, "data: yyy") != NULL);
        http_close(&h);
        waiting->used = 0;
        do {
            waiting->used = 0;
            receive(waiting, PATIENCE_MS);
        } while (!waiting->is_closed);
        RECEIVE_UNTIL(idle, idle->is_closed);
        RECEIVE_UNTIL(half, half->is_closed);
        free(text);
        hang_up(&waiting);
        hang_up(&slow);
        hang_up(&idle);
        hang_up(&half);
    }
}

static atomic_uint signals;

static void on_signal(int number)
{
    (void)number;
    atomic_fetch_add(&signals, 1);
}

/* The server's thread takes none: a signal interrupts who waits for it. */
static void signals_reach_the_program_not_the_server(void **state)
{
    const struct sigaction action = {.sa_handler = on_signal};
    struct sigaction before;
    (void)state;
    sigaction(SIGUSR1, &action, &before);
    struct http *h = open_at("127.0.0.1", NULL);
    sigset_t usr1, old;
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &usr1, &old);
    kill(getpid(), SIGUSR1);
    assert_int_equal(ask(h, GET("/metrics") "\r\n", NULL), 200);
    assert_int_equal(atomic_load(&signals), 0);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    assert_int_equal(atomic_load(&signals), 1);
    http_close(&h);
    sigaction(SIGUSR1, &before, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_path_answers_with_its_type_and_headers),
        cmocka_unit_test(other_paths_and_methods_are_refused),
        cmocka_unit_test(head_has_no_body),
        cmocka_unit_test(an_oversized_or_malformed_request_is_refused),
        cmocka_unit_test(without_the_token_only_open_routes_answer),
        cmocka_unit_test(on_loopback_foreign_names_are_refused),
        cmocka_unit_test(an_answer_of_any_size_comes_whole),
        cmocka_unit_test(addresses_are_ipv6_as_well_and_faults_are_said),
        cmocka_unit_test(everybody_who_follows_gets_the_newest_event),
        cmocka_unit_test(a_slow_client_misses_events_and_keeps_nobody_waiting),
        cmocka_unit_test(more_than_are_allowed_are_refused),
        cmocka_unit_test(clients_come_and_go_while_events_are_published),
        cmocka_unit_test(closing_ends_all_connections),
        cmocka_unit_test(signals_reach_the_program_not_the_server),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
