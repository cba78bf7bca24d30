/* host_lookup: the addresses of a host's name, and which of them takes a TCP connection. A thread
 * of its own finds them, as nobody knows how long that takes: the system's resolver can be neither
 * interrupted nor given a time. A caller need not wait, and a program ends while a name is still
 * being resolved.
 *
 * Threads: each name belongs to one. Memory: allocates; a lookup that was left frees what is its
 * own when the resolver returns. Blocking: host_lookup_find and host_lookup_reach, as long as they
 * say. */
#ifndef COMMON_HOST_LOOKUP_H
#define COMMON_HOST_LOOKUP_H

#include "common/options.h"

#include <netdb.h>
#include <stdatomic.h>
#include <stdbool.h>

enum {
    HOST_LOOKUPS_MAX = 128, /* look-ups of the process at a time */
    HOST_LOOKUP_REACH_MS = 1000, /* time that addresses have to take a connection */
    HOST_LOOKUP_NUMBER_MAX = 64, /* bytes of an address in numbers */
    HOST_LOOKUP_SLOW_US =
        1500000, /* from then on host_lookup_name_trouble says that it takes long */
};

struct host_lookup;

/* The addresses of a name for as long as somebody needs them. Zeroed: nothing is known yet. */
struct host_lookup_name {
    struct addrinfo *found; /* last; they stay where nothing is found any more */
    const struct addrinfo *next; /* of host_lookup_name_next: one of them; NULL: the first again */
    struct host_lookup *lookup; /* under way */
    uint64_t lookup_us; /* when it began, or the last one; 0: none did */
    int error; /* what the last one failed with; 0: with nothing */
};

/* Takes what was found, or begins to look, `again_us` after the last time. An address in numbers
 * needs no thread and is found at once. `tries`: of several addresses, one that takes a TCP
 * connection comes first. True: `found` is new. Never waits. */
bool host_lookup_name_step(struct host_lookup_name *name, const struct options_host_port *at,
                           bool tries, uint64_t again_us, uint64_t now_us);
/* The addresses one after another: the next one, after the last one the first again, of those that
 * are known by then. NULL: there is none, `*why` says why; or it is being resolved, `*why` is NULL,
 * or says so after HOST_LOOKUP_SLOW_US. */
const struct addrinfo *host_lookup_name_next(struct host_lookup_name *name,
                                             const struct options_host_port *at, uint64_t again_us,
                                             uint64_t now_us, const char **why);
/* Why nothing is found, in words for people; NULL: it is, or is being looked for. */
const char *host_lookup_name_trouble(const struct host_lookup_name *name, uint64_t now_us);
/* Zeroes. */
void host_lookup_name_forget(struct host_lookup_name *name);

/* The address in numbers, without brackets and port. False: it is none of IP. */
bool host_lookup_text(const struct addrinfo *address, char out[HOST_LOOKUP_NUMBER_MAX]);

/* Whether the connection met itself: on this host a port where nobody listens may be chosen for it
 * (a simultaneous open of TCP). Then nobody answers there, and it is set so that the caller's
 * close() frees the port at once, for the program that will listen there. */
bool host_lookup_drop_if_itself(int fd);

/* For who has the time: waits for the addresses, until then (clock_us) or until `*stop` is set,
 * which may be NULL: EAI_INPROGRESS. Else 0, or the error of getaddrinfo. `*found` is the caller's.
 */
int host_lookup_find(const struct options_host_port *at, bool tries, uint64_t until_us,
                     const atomic_bool *stop, struct addrinfo **found);

/* For who connects once: writes to `out` the address in numbers that is reached at a name, or the
 * first one where none is. ERR_ABSENT: none by then (clock_us), or before `*stop` was set; `*why`
 * are words for people. `stop` may be NULL. */
enum err host_lookup_reach(const struct options_host_port *at, uint64_t until_us,
                           const atomic_bool *stop, struct options_host_port *out,
                           const char **why);

#endif
