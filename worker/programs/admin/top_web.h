/* top_web: the page of `abdada top --web`: the view of a cluster over HTTP, as server-sent events.
 *
 *     /          the page (page.html), which loads nothing else
 *     /events    a view as JSON (top_json_view), a few times a second; asks for the token
 *     /healthz   "ok"
 *
 * The cluster is asked once for a view, however many pages are open, and not at all while none is.
 * Threads: one at a time, and the HTTP server's inside. Memory: allocates. Blocks in top_web_serve.
 */
#ifndef WORKER_PROGRAMS_ADMIN_TOP_WEB_H
#define WORKER_PROGRAMS_ADMIN_TOP_WEB_H

#include "common/http.h"
#include "common/keys/keys.h"
#include "worker/programs/admin/watch.h"

struct top_web;

/* "HOST:PORT"; of ":PORT" and "PORT" the host is 127.0.0.1. ERR_SYNTAX, ERR_RANGE. */
enum err top_web_address(const char *text, void *out /* struct options_host_port */);

/* Serves from now on. With `keys` pages need a token, drawn at random here: another at each start,
 * and nothing about the keys is in it. `stop` as in http.h. On failure a line for people is written
 * to `why`. */
enum err top_web_open(struct top_web **out, const struct options_host_port *at,
                      const struct keys_client *keys, const atomic_bool *stop,
                      char why[HTTP_WHY_MAX]);
void top_web_close(struct top_web **web);

/* Where a browser on this host finds it, with the token. */
const char *top_web_url(const struct top_web *web);
bool top_web_is_loopback(const struct top_web *web);

/* Until *stop. Views are at least `interval_ms` apart. */
void top_web_serve(struct top_web *web, struct watch *watch, unsigned interval_ms,
                   const atomic_bool *stop);

#endif
