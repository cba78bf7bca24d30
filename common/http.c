#include "common/http.h"
#include "common/listen.h"
#include "common/visitors.h"

#include <errno.h>
#include <microhttpd.h>
#include <pthread.h>
#include <signal.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static const char loads_nothing[] = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; "
                                    "form-action 'none'";

enum {
    BLOCK = 4096, /* of the stream, for clients of HTTP/1.0 */
    PORT_DIGITS = 5,
};

/* Shared by the clients that are sent it. */
struct event {
    unsigned references;
    size_t length;
    char bytes[];
};

/* A client that follows the stream. */
struct stream {
    /* fixed */
    struct http *server;
    struct MHD_Connection *connection;
    /* state, of the server's lock */
    struct stream *next, **link;
    struct event *event; /* it is in the middle of; NULL: none */
    size_t sent; /* of it */
    uint64_t seen; /* number of the last event that it began */
    bool is_suspended;
};

struct http {
    /* fixed after open */
    struct MHD_Daemon *daemon;
    const struct http_route *route;
    const char *token;
    struct listen_address at;
    struct visitors *visitors;
    char address[OPTIONS_HOST_MAX + 16];
    char not_found[128]; /* a line */
    /* state */
    pthread_mutex_t lock;
    struct stream *streams;
    unsigned followers;
    struct event *newest; /* NULL while nobody follows */
    uint64_t published; /* number of the newest */
    bool is_closing;
};

/* ---- the stream ---- */

static void event_release(struct event **event)
{
    if (*event != NULL && --(*event)->references == 0) {
        free(*event);
    }
    *event = NULL;
}

/* With the lock. */
static void wake_all(struct http *h)
{
    for (struct stream *s = h->streams; s != NULL; s = s->next) {
        if (s->is_suspended) {
            s->is_suspended = false;
            MHD_resume_connection(s->connection);
        }
    }
}

static ssize_t stream_read(void *self, uint64_t position, char *out, size_t max)
{
    struct stream *s = self;
    struct http *h = s->server;
    ssize_t count = 0;
    (void)position;
    pthread_mutex_lock(&h->lock);
    if (s->event != NULL && s->sent == s->event->length) {
        event_release(&s->event);
    }
    if (s->event == NULL && h->newest != NULL && s->seen != h->published) {
        s->event = h->newest;
        s->event->references++;
        s->sent = 0;
        s->seen = h->published;
    }
    if (h->is_closing) {
        count = MHD_CONTENT_READER_END_OF_STREAM;
    } else if (s->event != NULL) {
        size_t left = s->event->length - s->sent;
        count = (ssize_t)(left < max ? left : max);
        memcpy(out, s->event->bytes + s->sent, (size_t)count);
        s->sent += (size_t)count;
    } else {
        s->is_suspended = true; /* by which the next http_publish knows whom to resume */
        MHD_suspend_connection(s->connection);
    }
    pthread_mutex_unlock(&h->lock);
    return count;
}

static void stream_end(void *self)
{
    struct stream *s = self;
    struct http *h = s->server;
    pthread_mutex_lock(&h->lock);
    event_release(&s->event);
    *s->link = s->next;
    if (s->next != NULL) {
        s->next->link = s->link;
    }
    if (--h->followers == 0) {
        event_release(&h->newest); /* who comes later would take it for the present */
    }
    pthread_mutex_unlock(&h->lock);
    free(s);
}

/* NULL: too many follow, or no memory. */
static struct MHD_Response *stream_begin(struct http *h, struct MHD_Connection *connection)
{
    struct stream *s = calloc(1, sizeof *s);
    if (s == NULL) {
        return NULL;
    }
    *s = (struct stream){.server = h, .connection = connection};
    pthread_mutex_lock(&h->lock);
    bool is_full = h->followers >= HTTP_STREAMS_MAX;
    if (!is_full) {
        h->followers++;
        s->next = h->streams;
        s->link = &h->streams;
        if (s->next != NULL) {
            s->next->link = &s->next;
        }
        h->streams = s;
    }
    pthread_mutex_unlock(&h->lock);
    if (is_full) {
        free(s);
        return NULL;
    }
    struct MHD_Response *response =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK, stream_read, s, stream_end);
    if (response == NULL) {
        stream_end(s);
    }
    return response;
}

void http_publish(struct http *h, const char *text, size_t length)
{
    static const char begin[] = "data: ", end[] = "\n\n";
    CHECK(memchr(text, '\n', length) == NULL);
    if (http_followers(h) == 0) {
        return;
    }
    size_t size = sizeof begin - 1 + length + sizeof end - 1;
    struct event *event = malloc(sizeof *event + size);
    if (event == NULL) {
        return;
    }
    *event = (struct event){.references = 1, .length = size};
    memcpy(event->bytes, begin, sizeof begin - 1);
    memcpy(event->bytes + sizeof begin - 1, text, length);
    memcpy(event->bytes + sizeof begin - 1 + length, end, sizeof end - 1);
    pthread_mutex_lock(&h->lock);
    event_release(&h->newest);
    if (h->followers > 0) {
        h->newest = event;
        h->published++;
        wake_all(h);
    } else {
        event_release(&event);
    }
    pthread_mutex_unlock(&h->lock);
}

unsigned http_followers(struct http *h)
{
    pthread_mutex_lock(&h->lock);
    unsigned followers = h->followers;
    pthread_mutex_unlock(&h->lock);
    return followers;
}

/* ---- requests ---- */

/* Takes the response. */
static enum MHD_Result reply(struct MHD_Connection *connection, unsigned status,
                             const char *content_type, const char *policy,
                             struct MHD_Response *response)
{
    const char *const header[][2] = {
        {"Content-Type", content_type},
        {"Content-Security-Policy", policy != NULL ? policy : loads_nothing},
        {"X-Content-Type-Options", "nosniff"},
        {"Cache-Control", "no-store"},
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

/* ":" and digits (RFC 3986 lets them be missing), or nothing. */
static bool is_port_or_none(const char *text)
{
    return text[0] == '\0' ||
           (text[0] == ':' && strspn(text + 1, "0123456789") == strlen(text + 1) &&
            strlen(text + 1) <= PORT_DIGITS);
}

/* By what name it is called says whether a page of a foreign name asks. */
static bool is_called_right(const struct http *h, const char *host)
{
    char own[sizeof h->at.numeric + 2];
    if (!h->at.is_loopback) {
        return true;
    }
    if (host == NULL) {
        return false;
    }
    size_t length = host[0] == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":");
    if (length > strlen(host) || !is_port_or_none(host + length)) {
        return false;
    }
    snprintf(own, sizeof own, h->at.is_v6 ? "[%s]" : "%s", h->at.numeric);
    const char *const names[] = {"localhost", "127.0.0.1", "[::1]", own};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strlen(names[i]) == length && strncasecmp(host, names[i], length) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_token_right(const struct http *h, const char *authorization)
{
    static const char scheme[] = "Bearer ";
    size_t length = strlen(h->token);
    return authorization != NULL && strncasecmp(authorization, scheme, sizeof scheme - 1) == 0 &&
           strlen(authorization) == sizeof scheme - 1 + length &&
           sodium_memcmp(authorization + sizeof scheme - 1, h->token, length) == 0;
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

static struct visitor *visitor_of(struct MHD_Connection *connection)
{
    return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

static void on_connection(void *self, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode code)
{
    struct http *h = self;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        int fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
        *context = visitors_come(
            h->visitors, fd,
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS)->client_addr);
    } else {
        visitors_leave(h->visitors, *context);
        *context = NULL;
    }
}

static void on_completed(void *self, struct MHD_Connection *connection, void **state,
                         enum MHD_RequestTerminationCode code)
{
    struct http *h = self;
    (void)state;
    if (code == MHD_REQUEST_TERMINATED_COMPLETED_OK) {
        visitors_answered(h->visitors, visitor_of(connection));
    }
}

static enum MHD_Result on_request(void *self, struct MHD_Connection *connection, const char *path,
                                  const char *method, const char *version, const char *body,
                                  size_t *body_size, void **state)
{
    struct http *h = self;
    (void)version;
    (void)body;
    (void)body_size;
    (void)state;
    const struct http_route *route = h->route;
    visitors_asked(h->visitors, visitor_of(connection));
    while (route->path != NULL && strcmp(route->path, path) != 0) {
        route++;
    }
    const char *length = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Content-Length");
    bool is_head = strcmp(method, "HEAD") == 0;
    if (!is_called_right(h, MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Host"))) {
        return refuse(connection, MHD_HTTP_MISDIRECTED_REQUEST,
                      "not the name of this server: say localhost\n");
    }
    if (!is_head && strcmp(method, "GET") != 0) {
        return refuse(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "GET and HEAD only\n");
    }
    if ((length != NULL && strcmp(length, "0") != 0) ||
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Transfer-Encoding") != NULL) {
        return refuse(connection, MHD_HTTP_CONTENT_TOO_LARGE, "a request has no body here\n");
    }
    if (h->token != NULL && (route->path == NULL || !route->is_open) &&
        !is_token_right(
            h, MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Authorization"))) {
        return refuse(connection, MHD_HTTP_UNAUTHORIZED, "the token is missing or wrong\n");
    }
    if (route->path == NULL) {
        return refuse(connection, MHD_HTTP_NOT_FOUND, h->not_found);
    }
    if (route->answer != NULL) {
        return answer(connection, route);
    }
    struct MHD_Response *response =
        is_head ? MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT)
                : stream_begin(h, connection);
    if (response == NULL) {
        return refuse(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "too many follow already\n");
    }
    if (!is_head) {
        visitors_followed(h->visitors, visitor_of(connection));
    }
    return reply(connection, MHD_HTTP_OK, "text/event-stream", NULL, response);
}

/* ---- opening, closing ---- */

/* For who asks for something else: a person who tries the port. */
static void name_paths(struct http *h)
{
    size_t size = sizeof h->not_found - 1, used;
    used = (size_t)snprintf(h->not_found, size, "not found; there is");
    for (const struct http_route *r = h->route; r->path != NULL && used < size; r++) {
        used += (size_t)snprintf(h->not_found + used, size - used, "%s %s",
                                 r == h->route ? "" : ",", r->path);
    }
    strcat(h->not_found, "\n");
}

enum err http_open(struct http **out, const struct http_options *options, char why[HTTP_WHY_MAX])
{
    const struct options_host_port *at = options->address;
    struct http *h = calloc(1, sizeof *h);
    char name[OPTIONS_HOST_MAX + 16];
    sigset_t all, before;
    unsigned streams = 0;
    for (const struct http_route *r = options->route; r->path != NULL; r++) {
        streams += r->answer == NULL;
    }
    CHECK(streams <= 1);
    if (h == NULL) {
        snprintf(why, HTTP_WHY_MAX, "%s", err_text(ERR_NOMEM));
        return ERR_NOMEM;
    }
    h->route = options->route;
    h->token = options->token;
    name_paths(h);
    options_host_port_text(at->host, at->port, name, sizeof name);
    if (listen_resolve(at, options->stop, &h->at) != ERR_OK) {
        snprintf(why, HTTP_WHY_MAX, "%s: unknown host", name);
        free(h);
        return ERR_ABSENT;
    }
    int fd[LISTEN_ADDRESSES_MAX];
    unsigned fds;
    uint16_t port;
    enum err err = listen_bind(&h->at, 1, at->port, SOMAXCONN, fd, &fds, &port);
    if (err != ERR_OK) {
        snprintf(why, HTTP_WHY_MAX, "%s: cannot listen: %s", name, strerror(errno));
        free(h);
        return err;
    }
    options_host_port_text(h->at.numeric, port, h->address, sizeof h->address);
    pthread_mutex_init(&h->lock, NULL);
    sigfillset(&all); /* signals are for the program's threads: this one inherits the mask */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const struct visitors_limits limits = {
        .max = options->connections_max > 0 ? options->connections_max : HTTP_CONNECTIONS_MAX,
        .request_s = HTTP_REQUEST_S,
        .answer_s = HTTP_ANSWER_S,
    };
    if (visitors_open(&h->visitors, &limits) == ERR_OK) {
        h->daemon = MHD_start_daemon(
            MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_EPOLL | MHD_USE_SUSPEND_RESUME, 0, NULL, NULL,
            on_request, h, MHD_OPTION_LISTEN_SOCKET, fd[0], MHD_OPTION_CONNECTION_LIMIT,
            limits.max + (unsigned)HTTP_ENDING, MHD_OPTION_CONNECTION_TIMEOUT,
            (unsigned)HTTP_IDLE_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HTTP_REQUEST_MAX,
            MHD_OPTION_NOTIFY_CONNECTION, on_connection, h, MHD_OPTION_NOTIFY_COMPLETED,
            on_completed, h, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_END);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (h->daemon == NULL) { /* the listener was its own */
        if (h->visitors == NULL) {
            close(fd[0]);
        }
        visitors_close(&h->visitors);
        snprintf(why, HTTP_WHY_MAX, "%s: the HTTP server does not start: %s", name,
                 strerror(errno));
        pthread_mutex_destroy(&h->lock);
        free(h);
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
    pthread_mutex_lock(&h->lock);
    h->is_closing = true; /* none is suspended from now on, as libmicrohttpd asks for */
    wake_all(h);
    pthread_mutex_unlock(&h->lock);
    MHD_stop_daemon(h->daemon);
    visitors_close(&h->visitors);
    event_release(&h->newest);
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
