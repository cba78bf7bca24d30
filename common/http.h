/* http: a small HTTP server for figures and pages: GET and HEAD of a table of paths, and a stream
 * of server-sent events that gives each client the newest one. Over libmicrohttpd.
 *
 * Bounded: HTTP_CONNECTIONS_MAX connections or as many as the options say, of which
 * HTTP_STREAMS_MAX follow the stream (more get status 503); HTTP_REQUEST_MAX bytes of a request's
 * head, and no body (405, 413, 431); a connection without any progress ends after HTTP_IDLE_S, one
 * that does not finish a head, or with the answer, after HTTP_REQUEST_S, HTTP_ANSWER_S. One more
 * than there may be costs the slowest of the address that has most its place (common/visitors.h). A
 * client of the stream that reads slowly misses events; there is no queue, and events in memory are
 * as many as clients that are in the middle of different ones.
 *
 * Every answer forbids to keep it, to guess its type, and to load anything that the route's policy
 * does not name. A server on a loopback address answers only who calls it by that address or as
 * "localhost" (421), whatever the port, so that no page of a foreign name can read from it (DNS
 * rebinding) and a forwarded port works. Without TLS: for loopback, or a network that one trusts.
 *
 * Threads: one of its own, on which handlers run, and that of its visitors; they take no signals.
 * The functions here may be called from any other. Memory: allocates for connections, answers and
 * events; options are borrowed until http_close, `address` is not. Blocks: http_open on the
 * resolver, http_close until a handler that runs has returned. */
#ifndef COMMON_HTTP_H
#define COMMON_HTTP_H

#include "common/err.h"
#include "common/options.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>

enum {
    HTTP_CONNECTIONS_MAX = 256,
    HTTP_STREAMS_MAX = 200,
    HTTP_REQUEST_MAX = 16384,
    HTTP_IDLE_S = 15,
    HTTP_REQUEST_S = 10,
    HTTP_ANSWER_S = 60,
    HTTP_ENDING = 4, /* connections that must end, and have not been closed yet */
    HTTP_DESCRIPTORS = 8 + HTTP_ENDING, /* descriptors of a server, besides its connections */
    HTTP_WHY_MAX = 512,
};

/* One row; the table ends with a row whose path is NULL. */
struct http_route {
    const char *path; /* "/metrics"; what follows a '?' is ignored; status 404 names all of them */
    const char *content_type; /* not for the stream */
    /* Writes the answer to `out`, a buffer in memory, and returns the status: 200 or 503. Any
     * number of bytes. NULL: the stream; one at most in a table. */
    unsigned (*answer)(void *self, FILE *out);
    void *self;
    const char *policy; /* Content-Security-Policy; NULL: one that loads nothing */
    bool is_open; /* answered without the token */
};

struct http_options {
    const struct options_host_port *address; /* port 0: any free one; host "*": all of IPv4 */
    const struct http_route *route;
    const char *token; /* asked for as "Authorization: Bearer TOKEN" (else 401); NULL: none */
    unsigned connections_max; /* 0: HTTP_CONNECTIONS_MAX */
    const atomic_bool *stop; /* set: the resolver is not waited for any more; NULL: it is */
};

struct http;

/* Serves when it returns. On failure a line for people, without a program's name, is in `why`:
 * ERR_ABSENT (unknown host), ERR_EXIST (the port is taken), ERR_IO, ERR_NOMEM. */
enum err http_open(struct http **out, const struct http_options *options, char why[HTTP_WHY_MAX]);
/* Ends all connections; accepts a NULL inside; nulls. */
void http_close(struct http **server);

/* "127.0.0.1:8080", with the numeric address and the port that was taken. */
const char *http_address(const struct http *server);
/* Whether other machines cannot reach that address. */
bool http_is_loopback(const struct http *server);

/* Gives `text` (copied, one line) to all who follow the stream, now or as soon as they have read
 * the event that they are at, and to who comes later, as long as somebody follows. Clients that
 * went away are noticed by this alone, so call it now and then as long as http_followers is not 0.
 * Does nothing when nobody follows. Without memory the event is left out. */
void http_publish(struct http *server, const char *text, size_t length);
unsigned http_followers(struct http *server);

#endif
