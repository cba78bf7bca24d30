/* lookup: the addresses of a host's name, found by a thread of its own, as nobody knows how long
 * that takes: the system's resolver can be neither interrupted nor given a time. So whoever asks
 * need not wait, and a program ends while a name is still being resolved.
 *
 * Threads: each lookup belongs to one. Memory: allocates; a lookup that was left frees what is its
 * own when the resolver returns. Blocking: lookup_wait and lookup_reach, as long as they say. */
#ifndef COMMON_LOOKUP_H
#define COMMON_LOOKUP_H

#include "common/options.h"

#include <netdb.h>
#include <stdatomic.h>
#include <stdbool.h>

enum {
    LOOKUPS_MAX = 128, /* look-ups of the process at a time */
    LOOKUP_REACH_MS = 1000, /* time that addresses have to take a connection */
    LOOKUP_NUMBER_MAX = 64, /* bytes of an address in numbers */
};

struct lookup;

/* Without a thread, as nothing is asked for: true if `at` is an address in numbers. The list is the
 * system's: freeaddrinfo. */
bool lookup_number(const struct options_host_port *at, struct addrinfo **found);

/* Begins. `tries`: of several addresses, one that takes a TCP connection comes first. NULL: too
 * many are under way, or there is no thread or no memory: later. */
struct lookup *lookup_begin(const struct options_host_port *at, bool tries);
/* Whether it is done, after up to so long. */
bool lookup_wait(struct lookup *lookup, unsigned wait_ms);
/* Of one that is done: 0, or the error of getaddrinfo. `*found` is the caller's: freeaddrinfo;
 * NULL on an error. Nulls the lookup. */
int lookup_take(struct lookup **lookup, struct addrinfo **found);
/* Nobody waits for it any more, done or not. Accepts NULL; nulls. */
void lookup_leave(struct lookup **lookup);

/* The address in numbers, without brackets and port. False: it is none of IP. */
bool lookup_text(const struct addrinfo *address, char out[LOOKUP_NUMBER_MAX]);

/* For who connects once: writes to `out` the address in numbers that is reached at a name, or the
 * first one where none is. ERR_ABSENT: none by then (clock_us), or before `*stop` was set; `*why`
 * are words for people. `stop` may be NULL. */
enum err lookup_reach(const struct options_host_port *at, uint64_t until_us,
                      const atomic_bool *stop, struct options_host_port *out, const char **why);

#endif
