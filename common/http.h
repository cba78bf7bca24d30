/* http: a small HTTP server for figures and pages, over libmicrohttpd: GET and HEAD of a table of
 * paths. Most are written anew for each request; one may be published now and then, and polled.
 *
 * Bounded: HTTP_CONNECTIONS_MAX connections or as many as the options say; HTTP_REQUEST_MAX bytes
 * of a request's head, and no body (405, 413, 431). A connection without progress for HTTP_IDLE_S
 * ends. One connection too many ends the oldest one of the address that has most: a visitor that
 * holds connections, sends slowly or never reads cannot keep others out. Memory holds as many
 * publications as there are visitors in the middle of different ones.
 *
 * Every answer forbids to keep it, to guess its type, and to load anything that the route's policy
 * does not name. A server on a loopback address answers only if it is called by that address, as
 * "localhost", or by one of `names` (else 421), whatever the port, so that no page of a foreign
 * name can read from it (DNS rebinding) and a forwarded port works. A server on another address
 * checks the name only if there are `names`; otherwise it answers to any. Without TLS: for
 * loopback, a proxy there, or a network that one trusts.
 *
 * Threads: one of its own, on which handlers run and which takes no signals. The functions here may
 * be called from any other. Memory: allocates for connections, answers and publications; options
 * are borrowed until http_close, `address` is not. Blocks: http_open on the resolver, http_close
 * until a handler that runs has returned. */
#ifndef COMMON_HTTP_H
#define COMMON_HTTP_H

#include "common/err.h"
#include "common/options.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>

enum {
    HTTP_CONNECTIONS_MAX = 256,
    HTTP_REQUEST_MAX = 16384,
    HTTP_IDLE_S = 15,
    HTTP_WATCHED_S = 5,
    HTTP_NAMES_MAX = 16,
    HTTP_ENDING = 4, /* connections that must end, and have not been closed yet */
    HTTP_DESCRIPTORS = 8 + HTTP_ENDING, /* descriptors of a server, besides its connections */
    HTTP_WHY_MAX = 512,
};

/* One row; the table ends with a row whose path is NULL. */
struct http_route {
    const char *path; /* "/metrics"; what follows a '?' is ignored; status 404 names all of them */
    const char *content_type;
    /* Writes the answer to `out`, a buffer in memory, and returns the status: 200 or 503. Any
     * number of bytes. NULL: what http_publish was given last, with an ETag (so 304 where the
     * asker has it), or 204 while there is nothing; one such row at most. */
    unsigned (*answer)(void *self, FILE *out);
    void *self;
    const char *policy; /* Content-Security-Policy; NULL: one that loads nothing */
    bool is_open; /* answered without the token */
};

/* Names of hosts, without a port. */
struct http_names {
    unsigned count;
    char name[HTTP_NAMES_MAX][OPTIONS_HOST_MAX];
};

struct http_options {
    const struct options_host_port *address; /* port 0: any free one; host "*": all of IPv4 */
    const struct http_route *route;
    const char *token; /* asked for as "Authorization: Bearer TOKEN" (else 401); NULL: none */
    const struct http_names *names; /* it may be called by; NULL: none */
    unsigned connections_max; /* at most HTTP_CONNECTIONS_MAX; 0: that */
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

/* Makes `text` (copied) what is answered from now on. Nothing is kept for who asks when nobody has
 * asked for HTTP_WATCHED_S: the next publication is for them. Without memory the one before stays.
 */
void http_publish(struct http *server, const char *text, size_t length);
/* Whether somebody has asked for it within HTTP_WATCHED_S. */
bool http_is_watched(struct http *server);

/* Adds a name to a struct http_names: ERR_SYNTAX, ERR_RANGE (there are HTTP_NAMES_MAX). */
enum err http_name(const char *text, void *names);

#endif
