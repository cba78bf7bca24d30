#include "common/http.h"
#include "common/clock.h"
#include "common/listen.h"

#include <errno.h>
#include <inttypes.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char loads_nothing[] = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; "
                                    "form-action 'none'";

enum { PORT_DIGITS = 5, TAG_ROOM = 24, US_PER_S = 1000000 };

/* A connection. */
struct visitor {
    uint64_t number; /* in the order of arrival, from 1; 0: the place is free */
    int fd;
    bool is_live; /* we have not ended it; else the server reads its end, and closes it */
    uint8_t address[16];
};

struct http {
    /* fixed after open */
    struct MHD_Daemon *daemon;
    struct http_options o;
    const struct http_route *published; /* row whose answer is what was published last */
    struct listen_address at;
    unsigned visitors_max;
    char address[OPTIONS_HOST_MAX + 16];
    char not_found[128]; /* a line */
    /* state, of the daemon's thread */
    struct visitor
        visitor[HTTP_CONNECTIONS_MAX + HTTP_ENDING]; /* visitors_max + HTTP_ENDING places */
    uint64_t visitors; /* that have come */
    /* state, of the lock */
    pthread_mutex_t lock;
    struct MHD_Response *newest; /* NULL: none */
    uint64_t number; /* of it: another at each start of a server */
    uint64_t asked_us; /* when somebody asked for it last; 0: nobody did */
};

/* ---- visitors: who makes room ---- */

/* As IPv6; of an IPv6 network of 64 bits a machine may take any address. */
static void take_address(struct visitor *visitor, const struct sockaddr *from)
{
    if (from != NULL && from->sa_family == AF_INET6) {
        const struct in6_addr *at = &((const struct sockaddr_in6 *)(const void *)from)->sin6_addr;
        memcpy(visitor->address, at, IN6_IS_ADDR_V4MAPPED(at) || IN6_IS_ADDR_LOOPBACK(at) ? 16 : 8);
    } else if (from != NULL && from->sa_family == AF_INET) {
        const struct in_addr *at = &((const struct sockaddr_in *)(const void *)from)->sin_addr;
        visitor->address[10] = visitor->address[11] = 0xff;
        memcpy(visitor->address + 12, at, 4);
    }
}

/* If it is full, ends the oldest visitor of the address that has most. */
static void make_room(struct http *h)
{
    struct visitor *const end = h->visitor + h->visitors_max + HTTP_ENDING, *oldest = NULL;
    unsigned live = 0, most = 0;
    for (const struct visitor *v = h->visitor; v < end; v++) {
        live += v->is_live;
    }
    for (struct visitor *v = h->visitor; v < end && live >= h->visitors_max; v++) {
        unsigned same = 0; /* live ones of its address, it too */
        for (const struct visitor *other = h->visitor; other < end && v->is_live; other++) {
            same += other->is_live && memcmp(other->address, v->address, sizeof v->address) == 0;
        }
        if (same > most || (same > 0 && same == most && v->number < oldest->number)) {
            oldest = v;
            most = same;
        }
    }
    if (oldest != NULL) {
        oldest->is_live = false;
        shutdown(oldest->fd, SHUT_RDWR);
    }
}

static void on_connection(void *self, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode code)
{
    struct http *h = self;
    struct visitor *v = *context, *const end = h->visitor + h->visitors_max + HTTP_ENDING;
    int fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    if (code != MHD_CONNECTION_NOTIFY_STARTED) {
        if (v != NULL) {
            *v = (struct visitor){.number = 0};
        }
        return;
    }
    make_room(h);
    for (v = h->visitor; v < end && v->number != 0;) {
        v++;
    }
    *context = v < end ? v : NULL;
    if (v == end) {
        shutdown(fd, SHUT_RDWR);
        return;
    }
    *v = (struct visitor){.number = ++h->visitors, .fd = fd, .is_live = true};
    take_address(
        v, MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS)->client_addr);
}

/* ---- requests ---- */

static bool add_headers(struct MHD_Response *response, unsigned status, const char *content_type,
                        const char *policy)
{
    const char *const header[][2] = {
        {"Content-Type", content_type},
        {"Content-Security-Policy", policy != NULL ? policy : loads_nothing},
        {"X-Content-Type-Options", "nosniff"},
        {"Cache-Control", "no-store"},
        {"Connection", "close"}, /* a visitor is one request: nobody idle holds a place */
        {"Referrer-Policy", "no-referrer"},
        {"Cross-Origin-Resource-Policy", "same-origin"},
        {status == MHD_HTTP_METHOD_NOT_ALLOWED ? "Allow" : NULL, "GET, HEAD"},
        {status == MHD_HTTP_UNAUTHORIZED ? "WWW-Authenticate" : NULL, "Bearer"},
    };
    bool is_whole = response != NULL;
    for (size_t i = 0; is_whole && i < sizeof header / sizeof header[0]; i++) {
        is_whole = header[i][0] == NULL ||
                   MHD_add_response_header(response, header[i][0], header[i][1]) == MHD_YES;
    }
    return is_whole;
}

/* Takes the response. */
static enum MHD_Result reply(struct MHD_Connection *connection, unsigned status,
                             const char *content_type, const char *policy,
                             struct MHD_Response *response)
{
    bool is_whole = add_headers(response, status, content_type, policy);
    enum MHD_Result result = is_whole ? MHD_queue_response(connection, status, response) : MHD_NO;
    if (response != NULL) {
        MHD_destroy_response(response);
    }
    return result;
}

static enum MHD_Result refuse(struct MHD_Connection *connection, unsigned status, const char *text)
{
    return reply(connection, status, "text/plain; charset=utf-8", NULL,
                 MHD_create_response_from_buffer(strlen(text), (void *)(uintptr_t)text,
                                                 MHD_RESPMEM_PERSISTENT));
}

enum err http_name(const char *text, void *out)
{
    struct http_names *names = out;
    size_t length = strlen(text);
    if (length == 0 || length >= OPTIONS_HOST_MAX ||
        strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_") !=
            length) {
        return ERR_SYNTAX;
    }
    if (names->count == HTTP_NAMES_MAX) {
        return ERR_RANGE;
    }
    memcpy(names->name[names->count++], text, length + 1);
    return ERR_OK;
}

static bool is_same(const char *host, size_t length, const char *name)
{
    return strlen(name) == length && strncasecmp(host, name, length) == 0;
}

/* By what name it is called says whether a page of a foreign name asks. */
static bool is_called_right(const struct http *h, const char *host)
{
    const struct http_names *names = h->o.names;
    char own[sizeof h->at.numeric + 2];
    if (!h->at.is_loopback && (names == NULL || names->count == 0)) {
        return true;
    }
    if (host == NULL) {
        return false;
    }
    size_t length = host[0] == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":");
    if (length > strlen(host)) {
        return false;
    }
    const char *port = host + length; /* ":" and digits (RFC 3986 lets them be missing) */
    size_t digits = strspn(port + (*port == ':'), "0123456789");
    if (*port != '\0' && (*port != ':' || digits > PORT_DIGITS || port[1 + digits] != '\0')) {
        return false;
    }
    snprintf(own, sizeof own, h->at.is_v6 ? "[%s]" : "%s", h->at.numeric);
    bool is_right = is_same(host, length, "localhost") || is_same(host, length, "127.0.0.1") ||
                    is_same(host, length, "[::1]") || is_same(host, length, own);
    for (unsigned i = 0; names != NULL && i < names->count && !is_right; i++) {
        is_right = is_same(host, length, names->name[i]);
    }
    return is_right;
}

static bool is_token_right(const struct http *h, const char *authorization)
{
    static const char scheme[] = "Bearer ";
    size_t length = strlen(h->o.token);
    return authorization != NULL && strncasecmp(authorization, scheme, sizeof scheme - 1) == 0 &&
           strlen(authorization) == sizeof scheme - 1 + length &&
           sodium_memcmp(authorization + sizeof scheme - 1, h->o.token, length) == 0;
}

static enum MHD_Result answer(struct MHD_Connection *connection, const struct http_route *route)
{
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    unsigned status = out != NULL ? route->answer(route->self, out) : 0;
    bool is_whole = out != NULL && !ferror(out);
    if (out == NULL || fclose(out) != 0 || !is_whole) {
        free(text);
        return refuse(connection, MHD_HTTP_INTERNAL_SERVER_ERROR, "out of memory\n");
    }
    struct MHD_Response *response =
        MHD_create_response_from_buffer(length, text, MHD_RESPMEM_MUST_FREE);
    if (response == NULL) {
        free(text);
    }
    return reply(connection, status, route->content_type, route->policy, response);
}

/* Answers with the newest publication: whole, "still the same" (304), or nothing yet (204). */
static enum MHD_Result answer_newest(struct http *h, struct MHD_Connection *connection)
{
    const char *known = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "If-None-Match");
    enum MHD_Result result;
    pthread_mutex_lock(&h->lock);
    uint64_t now_us = clock_us();
    if (h->newest != NULL && now_us - h->asked_us > HTTP_WATCHED_S * US_PER_S) {
        MHD_destroy_response(h->newest); /* who comes now would take it for the present */
        h->newest = NULL;
    }
    h->asked_us = now_us;
    const char *tag = h->newest != NULL ? MHD_get_response_header(h->newest, "ETag") : NULL;
    /* If-None-Match is "*" or has the tag, in a list or weak (W/, from a proxy that compresses). A
     * tag has its quotes, and no other tag can have them inside. */
    bool is_known =
        known != NULL && tag != NULL && (strcmp(known, "*") == 0 || strstr(known, tag) != NULL);
    if (tag != NULL) { /* of a 304 only the head is sent */
        result = MHD_queue_response(connection, is_known ? MHD_HTTP_NOT_MODIFIED : MHD_HTTP_OK,
                                    h->newest);
    } else {
        result = reply(connection, MHD_HTTP_NO_CONTENT, h->published->content_type, NULL,
                       MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT));
    }
    pthread_mutex_unlock(&h->lock);
    return result;
}

void http_publish(struct http *h, const char *text, size_t length)
{
    struct MHD_Response *before,
        *response =
            MHD_create_response_from_buffer(length, (void *)(uintptr_t)text, MHD_RESPMEM_MUST_COPY);
    char tag[TAG_ROOM];
    pthread_mutex_lock(&h->lock);
    snprintf(tag, sizeof tag, "\"%" PRIx64 "\"", ++h->number);
    before = h->newest;
    h->newest = response;
    if (!add_headers(response, MHD_HTTP_OK, h->published->content_type, NULL) ||
        MHD_add_response_header(response, "ETag", tag) != MHD_YES) {
        h->newest = before;
        before = response;
    }
    pthread_mutex_unlock(&h->lock);
    if (before != NULL) {
        MHD_destroy_response(before);
    }
}

bool http_is_watched(struct http *h)
{
    pthread_mutex_lock(&h->lock);
    bool is_watched = h->asked_us != 0 && clock_us() - h->asked_us <= HTTP_WATCHED_S * US_PER_S;
    pthread_mutex_unlock(&h->lock);
    return is_watched;
}

static enum MHD_Result on_request(void *self, struct MHD_Connection *connection, const char *path,
                                  const char *method, const char *version, const char *body,
                                  size_t *body_size, void **state)
{
    struct http *h = self;
    const struct http_route *route = h->o.route;
    (void)version, (void)body, (void)body_size, (void)state;
    while (route->path != NULL && strcmp(route->path, path) != 0) {
        route++;
    }
    const char *length = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Content-Length");
    if (!is_called_right(h, MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Host"))) {
        return refuse(connection, MHD_HTTP_MISDIRECTED_REQUEST,
                      "not a name of this server: call it localhost (a proxy too), or see "
                      "abdada top --web-host\n");
    }
    if (strcmp(method, "HEAD") != 0 && strcmp(method, "GET") != 0) {
        return refuse(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "GET and HEAD only\n");
    }
    if ((length != NULL && strcmp(length, "0") != 0) ||
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Transfer-Encoding") != NULL) {
        return refuse(connection, MHD_HTTP_CONTENT_TOO_LARGE, "a request has no body here\n");
    }
    if (h->o.token != NULL && (route->path == NULL || !route->is_open) &&
        !is_token_right(
            h, MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Authorization"))) {
        return refuse(connection, MHD_HTTP_UNAUTHORIZED, "the token is missing or wrong\n");
    }
    if (route->path == NULL) {
        return refuse(connection, MHD_HTTP_NOT_FOUND, h->not_found);
    }
    return route->answer != NULL ? answer(connection, route) : answer_newest(h, connection);
}

/* ---- opening, closing ---- */

/* For who asks for something else: a person who tries the port. */
static void name_paths(struct http *h)
{
    size_t size = sizeof h->not_found - 1, used;
    used = (size_t)snprintf(h->not_found, size, "not found; there is");
    for (const struct http_route *r = h->o.route; r->path != NULL && used < size; r++) {
        used += (size_t)snprintf(h->not_found + used, size - used, "%s %s",
                                 r == h->o.route ? "" : ",", r->path);
    }
    strcat(h->not_found, "\n");
}

enum err http_open(struct http **out, const struct http_options *options, char why[HTTP_WHY_MAX])
{
    const struct options_host_port *at = options->address;
    struct http *h = calloc(1, sizeof *h);
    char name[OPTIONS_HOST_MAX + 16];
    sigset_t all, before;
    if (h == NULL) {
        return err_say(ERR_NOMEM, why, HTTP_WHY_MAX, "%s", err_text(ERR_NOMEM));
    }
    h->o = *options;
    h->number = clock_unique();
    h->visitors_max =
        options->connections_max > 0 ? options->connections_max : HTTP_CONNECTIONS_MAX;
    CHECK(h->visitors_max <= HTTP_CONNECTIONS_MAX);
    pthread_mutex_init(&h->lock, NULL);
    for (const struct http_route *r = h->o.route; r->path != NULL; r++) {
        CHECK(r->answer != NULL || h->published == NULL);
        h->published = r->answer == NULL ? r : h->published;
    }
    name_paths(h);
    options_host_port_text(at->host, at->port, name, sizeof name);
    if (listen_resolve(at, options->stop, &h->at) != ERR_OK) {
        snprintf(why, HTTP_WHY_MAX, "%s: unknown host", name);
        http_close(&h);
        return ERR_ABSENT;
    }
    int fd[LISTEN_ADDRESSES_MAX];
    unsigned fds;
    uint16_t port;
    enum err err = listen_bind(&h->at, 1, at->port, SOMAXCONN, fd, &fds, &port);
    if (err != ERR_OK) {
        snprintf(why, HTTP_WHY_MAX, "%s: cannot listen: %s", name, strerror(errno));
        http_close(&h);
        return err;
    }
    options_host_port_text(h->at.numeric, port, h->address, sizeof h->address);
    sigfillset(&all); /* signals are for the program's threads: this one inherits the mask */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    h->daemon = MHD_start_daemon(
        MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_EPOLL | MHD_USE_ITC, 0, NULL, NULL, on_request, h,
        MHD_OPTION_LISTEN_SOCKET, fd[0], MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)(h->visitors_max + HTTP_ENDING), MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)HTTP_IDLE_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HTTP_REQUEST_MAX,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, h, MHD_OPTION_STRICT_FOR_CLIENT, 1,
        MHD_OPTION_END);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (h->daemon == NULL) { /* the listener was its own */
        snprintf(why, HTTP_WHY_MAX, "%s: the HTTP server does not start: %s", name,
                 strerror(errno));
        http_close(&h);
        return ERR_IO;
    }
    *out = h;
    return ERR_OK;
}

void http_close(struct http **server)
{
    struct http *h = *server;
    if (h == NULL) {
        return;
    }
    *server = NULL;
    if (h->daemon != NULL) {
        MHD_stop_daemon(h->daemon);
    }
    if (h->newest != NULL) {
        MHD_destroy_response(h->newest);
    }
    pthread_mutex_destroy(&h->lock);
    free(h);
}

const char *http_address(const struct http *h)
{
    return h->address;
}

bool http_is_loopback(const struct http *h)
{
    return h->at.is_loopback;
}
