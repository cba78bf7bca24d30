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

enum { ROOM = 1 << 20, PATIENCE_MS = 150000, BIG = 300000 };

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
    {"/view", "application/json"},
    {0},
};

static struct http *open_with(const char *host, struct http_options options)
{
    struct options_host_port at = {0};
    struct http *h = NULL;
    char why[HTTP_WHY_MAX] = "";
    snprintf(at.host, sizeof at.host, "%s", host);
    options.address = &at;
    options.route = routes;
    if (http_open(&h, &options, why) != ERR_OK) {
        fail_msg("%s", why);
    }
    return h;
}

static struct http *open_at(const char *host, const char *with_token)
{
    return open_with(host, (struct http_options){.token = with_token});
}

/* From that address of this machine; NULL: any. */
static struct client *call_from(const struct http *h, const char *from, int receive_buffer)
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
    if (from != NULL) {
        struct sockaddr_in own = {.sin_family = AF_INET};
        assert_int_equal(inet_pton(AF_INET, from, &own.sin_addr), 1);
        assert_int_equal(bind(c->fd, (struct sockaddr *)&own, sizeof own), 0);
    }
    assert_int_equal(is_v6 ? connect(c->fd, (struct sockaddr *)&v6, sizeof v6)
                           : connect(c->fd, (struct sockaddr *)&v4, sizeof v4),
                     0);
    return c;
}

static struct client *call(const struct http *h)
{
    return call_from(h, NULL, 0);
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

#define WAIT_UNTIL(condition)                                          \
    do {                                                               \
        uint64_t limit_us = clock_us() + UINT64_C(1000) * PATIENCE_MS; \
        while (!(condition)) {                                         \
            poll(NULL, 0, 1);                                          \
            if (clock_us() > limit_us) {                               \
                fail_msg("not in time: " #condition);                  \
            }                                                          \
        }                                                              \
    } while (0)

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
    struct client *c = call(h);
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

static const char *body_of(const struct client *c)
{
    return strstr(c->text, "\r\n\r\n") + 4;
}

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
    assert_string_equal(body_of(c), "hello figures\n");
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
    static const char *const paths[] = {"/metrics", "/view"};
    struct http *h = open_at("127.0.0.1", NULL);
    char text[256];
    (void)state;
    http_publish(h, "{}", 2);
    assert_int_equal(ask(h, GET("/view") "\r\n", NULL), 204); /* it was for nobody */
    http_publish(h, "{}", 2);
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        struct client *c;
        snprintf(text, sizeof text,
                 "HEAD %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", paths[i]);
        assert_int_equal(ask(h, text, &c), 200);
        RECEIVE_UNTIL(c, c->is_closed);
        assert_string_equal(body_of(c), "");
        hang_up(&c);
    }
    http_close(&h);
}

static void an_oversized_or_malformed_request_is_refused(void **state)
{
    struct http *h = open_at("127.0.0.1", NULL);
    struct client *c = call(h);
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
    c = call(h);
    say(c, GET("/metrics") "X: ");
    ignored = send(c->fd, text, 4 * HTTP_REQUEST_MAX - 1, MSG_NOSIGNAL);
    RECEIVE_UNTIL(c, c->is_closed);
    assert_null(strstr(c->text, " 200 "));
    hang_up(&c);
    c = call(h);
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
    assert_int_equal(ask(h, GET("/view") "\r\n", NULL), 401);
    assert_false(http_is_watched(h)); /* by who has no token */
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

static void names_that_are_allowed_are_its_own(void **state)
{
    static const char *const no_names[] = {"", "a:80", "http://a", "a b", "a/b", "[::1]"};
    struct http_names names = {0};
    char name[OPTIONS_HOST_MAX + 8];
    (void)state;
    for (size_t i = 0; i < sizeof no_names / sizeof no_names[0]; i++) {
        assert_int_equal(http_name(no_names[i], &names), ERR_SYNTAX);
    }
    memset(name, 'a', sizeof name);
    name[OPTIONS_HOST_MAX] = '\0';
    assert_int_equal(http_name(name, &names), ERR_SYNTAX);
    assert_int_equal(http_name("board.example.com", &names), ERR_OK);
    assert_int_equal(http_name("other", &names), ERR_OK);
    static const struct {
        const char *host;
        unsigned status;
    } row[] = {{"Board.Example.com", 200},
               {"board.example.com:443", 200},
               {"other", 200},
               {"localhost:1", 200},
               {"example.com", 421},
               {"board.example.com.evil", 421}};
    for (unsigned is_open = 0; is_open < 2; is_open++) {
        struct http *h =
            open_with(is_open ? "*" : "127.0.0.1", (struct http_options){.names = &names});
        for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
            char text[256];
            snprintf(text, sizeof text, "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", row[i].host);
            assert_int_equal(ask(h, text, NULL), row[i].status);
        }
        http_close(&h);
    }
    while (names.count < HTTP_NAMES_MAX) {
        assert_int_equal(http_name("x", &names), ERR_OK);
    }
    assert_int_equal(http_name("x", &names), ERR_RANGE);
}

static void an_answer_of_any_size_comes_whole(void **state)
{
    struct http *h = open_at("127.0.0.1", NULL);
    struct client *c;
    (void)state;
    assert_int_equal(ask(h, GET("/much") "\r\n", &c), 200);
    RECEIVE_UNTIL(c, c->is_closed);
    assert_int_equal(strlen(body_of(c)), BIG);
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

/* ---- what is published ---- */

static void publish(struct http *h, const char *text)
{
    http_publish(h, text, strlen(text));
}

static void get(struct client *c, const char *path, const char *header)
{
    char text[512];
    snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: localhost\r\n%s\r\n", path, header);
    say(c, text);
}

/* The status of a request for what is published, on a connection of its own; what came is in the
 * text of `c`, which is another one then. */
static unsigned poll_view(const struct http *h, const char *header, struct client **c)
{
    unsigned status = 0;
    if (*c != NULL) {
        hang_up(c);
    }
    *c = call(h);
    get(*c, "/view", header);
    RECEIVE_UNTIL(*c, (*c)->is_closed);
    assert_int_equal(sscanf((*c)->text, "HTTP/1.1 %u", &status), 1);
    return status;
}

static void the_newest_is_polled_and_sent_once(void **state)
{
    struct http *h = open_at("127.0.0.1", NULL);
    struct client *c = NULL;
    char tag[80] = "If-None-Match: ", again[88];
    (void)state;
    publish(h, "nobody watches yet");
    assert_false(http_is_watched(h));
    assert_int_equal(poll_view(h, "", &c), 204);
    assert_true(http_is_watched(h));
    publish(h, "{\"n\":1}");
    assert_int_equal(poll_view(h, "", &c), 200);
    assert_string_equal(body_of(c), "{\"n\":1}");
    assert_non_null(strstr(c->text, "Content-Type: application/json\r\n"));
    assert_non_null(strstr(c->text, "Cache-Control: no-store\r\n"));
    assert_int_equal(sscanf(strstr(c->text, "ETag: "), "ETag: %60[^\r]", tag + strlen(tag)), 1);
    strcat(tag, "\r\n");
    static const char *const around[][2] = {
        {"", ""}, {"W/", ""}, {"\"a\", W/\"b\" ,", ""}, {"", ", \"a\""}};
    static const char *const others[] = {"\"another\"", "\"\"", "\"*\"", "W/\"a\", \"b\""};
    const int length = (int)strcspn(tag + 15, "\r");
    char header[128];
    snprintf(again, sizeof again, "ETag: %.*s\r\n", length, tag + 15);
    for (size_t i = 0; i < sizeof around / sizeof around[0]; i++) {
        snprintf(header, sizeof header, "If-None-Match: %s%.*s%s\r\n", around[i][0], length,
                 tag + 15, around[i][1]);
        assert_int_equal(poll_view(h, header, &c), 304);
        assert_string_equal(body_of(c), "");
        assert_non_null(strstr(c->text, again));
    }
    assert_int_equal(poll_view(h, "If-None-Match: *\r\n", &c), 304);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        snprintf(header, sizeof header, "If-None-Match: %s\r\n", others[i]);
        assert_int_equal(poll_view(h, header, &c), 200);
    }
    publish(h, "{\"n\":2}");
    publish(h, "{\"n\":3}");
    assert_int_equal(poll_view(h, tag, &c), 200);
    assert_string_equal(body_of(c), "{\"n\":3}");
    WAIT_UNTIL(!http_is_watched(h));
    publish(h, "for nobody");
    assert_int_equal(poll_view(h, tag, &c), 204);
    http_close(&h);
    h = open_at("127.0.0.1", NULL); /* whose views are others, whatever their number */
    assert_int_equal(poll_view(h, tag, &c), 204);
    publish(h, "{\"n\":1}");
    assert_int_equal(poll_view(h, tag, &c), 200);
    snprintf(again, sizeof again, "%.*s", (int)strcspn(tag + 15, "\r"), tag + 15);
    assert_null(strstr(c->text, again));
    hang_up(&c);
    http_close(&h);
}

/* Deaf ones: more than sockets take is on its way to each. */
static void who_reads_nothing_keeps_nobody_waiting(void **state)
{
    enum { DEAF = HTTP_CONNECTIONS_MAX + 10, SIZE = ROOM / 2, VIEWS = 20 };
    struct http *h = open_at("127.0.0.1", NULL);
    struct client *deaf[DEAF], *good = NULL;
    char *text = malloc(SIZE), begin[32];
    (void)state;
    assert_non_null(text);
    memset(text, ' ', SIZE);
    assert_int_equal(poll_view(h, "", &good), 204);
    for (unsigned i = 0; i < DEAF; i++) {
        deaf[i] = call_from(h, NULL, 4096);
        get(deaf[i], "/view", "");
    }
    for (unsigned i = 1; i <= VIEWS; i++) {
        int used = snprintf(begin, sizeof begin, "%u.", i);
        memcpy(text, begin, (size_t)used);
        http_publish(h, text, SIZE);
        assert_int_equal(poll_view(h, "", &good), 200);
        assert_memory_equal(body_of(good), begin, used);
    }
    for (unsigned i = 0; i < DEAF; i++) {
        hang_up(&deaf[i]);
    }
    free(text);
    hang_up(&good);
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
        snprintf(text, sizeof text, "view %u", i);
        publish(p->server, text);
        poll(NULL, 0, 1);
    }
    return NULL;
}

static void visitors_come_and_go_while_views_are_published(void **state)
{
    struct publisher p = {.server = open_at("127.0.0.1", NULL)};
    pthread_t thread;
    unsigned views = 0;
    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, publish_on, &p), 0);
    for (unsigned i = 0; i < 200 || (views <= 50 && i < 20000); i++) { /* it may begin late */
        struct client *c = NULL;
        if (i % 2 == 0) {
            unsigned status = poll_view(p.server, "", &c);
            assert_true(status == 200 || (status == 204 && views == 0));
            views += status == 200;
        } else {
            c = call(p.server);
            get(c, "/view", "");
        }
        hang_up(&c);
    }
    assert_true(views > 50);
    atomic_store(&p.stop, true);
    pthread_join(thread, NULL);
    http_close(&p.server);
}

/* ---- who makes room ---- */

static void the_oldest_of_the_address_with_most_makes_room(void **state)
{
    enum { GUESTS = 7 };
    static const char *const from[GUESTS] = {"127.0.0.2", "127.0.0.3", "127.0.0.3", "127.0.0.4",
                                             "127.0.0.4", "127.0.0.4", "127.0.0.5"};
    static const unsigned in_turn[] = {3, 1, 4}; /* of two addresses with two the oldest visitor */
    struct http *h = open_with("127.0.0.1", (struct http_options){.connections_max = GUESTS});
    struct client *guest[GUESTS], *next[3];
    (void)state;
    for (unsigned i = 0; i < GUESTS; i++) {
        guest[i] = call_from(h, from[i], 0);
        say(guest[i], "GET /metr");
    }
    for (unsigned k = 0; k < 3; k++) {
        char name[16];
        snprintf(name, sizeof name, "127.0.1.%u", k + 1);
        next[k] = call_from(h, name, 0);
        RECEIVE_UNTIL(guest[in_turn[k]], guest[in_turn[k]]->is_closed);
    }
    for (unsigned i = 0; i < GUESTS; i++) {
        if (i != 1 && i != 3 && i != 4) {
            guest[i]->used = 0;
            say(guest[i], "ics HTTP/1.1\r\nHost: localhost\r\n\r\n");
            RECEIVE_UNTIL(guest[i], guest[i]->is_closed);
            assert_non_null(strstr(guest[i]->text, "hello figures\n"));
        }
        hang_up(&guest[i]);
    }
    for (unsigned k = 0; k < 3; k++) {
        get(next[k], "/metrics", "");
        RECEIVE_UNTIL(next[k], strstr(next[k]->text, "hello figures\n") != NULL);
        hang_up(&next[k]);
    }
    http_close(&h);
}

/* More of them than there is room for, of its own address, and they come again. */
static void slow_requests_keep_nobody_out(void **state)
{
    enum { MAX = 8, SLOW = 40 };
    struct http *h = open_with("127.0.0.1", (struct http_options){.connections_max = MAX});
    struct client *slow[SLOW];
    (void)state;
    for (unsigned i = 0; i < SLOW; i++) {
        slow[i] = call(h);
        say(slow[i], "GET / HTTP/1.1\r\nA: ");
    }
    for (unsigned i = 0; i < SLOW; i++) {
        assert_int_equal(ask(h, GET("/metrics") "\r\n", NULL), 200);
        hang_up(&slow[i]);
        slow[i] = call(h);
        say(slow[i], "GET / HTTP/1.1\r\nA: ");
    }
    for (unsigned i = 0; i < SLOW; i++) {
        hang_up(&slow[i]);
    }
    http_close(&h);
}

static void closing_ends_all_connections(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 20; i++) {
        struct http *h = open_at("127.0.0.1", NULL);
        struct client *busy = NULL, *slow = call_from(h, NULL, 4096), *idle = call(h),
                      *half = call(h);
        char *text = malloc(4 * BIG);
        assert_non_null(text);
        memset(text, 'y', 4 * BIG);
        assert_int_equal(poll_view(h, "", &busy), 204);
        http_publish(h, text, i % 2 == 0 ? 4 * BIG : 10);
        say(half, "GET /metr");
        get(slow, "/view", "");
        hang_up(&busy);
        busy = call(h);
        get(busy, "/view", "");
        RECEIVE_UNTIL(busy, strstr(busy->text, "yyy") != NULL);
        http_close(&h);
        do {
            busy->used = 0;
            receive(busy, PATIENCE_MS);
        } while (!busy->is_closed);
        RECEIVE_UNTIL(idle, idle->is_closed);
        RECEIVE_UNTIL(half, half->is_closed);
        free(text);
        hang_up(&busy);
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
        cmocka_unit_test(names_that_are_allowed_are_its_own),
        cmocka_unit_test(an_answer_of_any_size_comes_whole),
        cmocka_unit_test(addresses_are_ipv6_as_well_and_faults_are_said),
        cmocka_unit_test(the_newest_is_polled_and_sent_once),
        cmocka_unit_test(who_reads_nothing_keeps_nobody_waiting),
        cmocka_unit_test(visitors_come_and_go_while_views_are_published),
        cmocka_unit_test(the_oldest_of_the_address_with_most_makes_room),
        cmocka_unit_test(slow_requests_keep_nobody_out),
        cmocka_unit_test(closing_ends_all_connections),
        cmocka_unit_test(signals_reach_the_program_not_the_server),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
