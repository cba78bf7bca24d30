/* redis_host: the addresses of a host, one after another. A name is resolved by a thread of its
 * own (common/lookup.h): at first, and again where none of its addresses answers.
 *
 * Threads: one for each struct. Memory: the system's, until redis_host_forget. Blocking: none. */
#ifndef COMMON_REDIS_REDIS_HOST_H
#define COMMON_REDIS_REDIS_HOST_H

#include "common/options.h"

enum {
    REDIS_HOST_LOOKUP_US = 5000000, /* time between the begins of two look-ups */
    REDIS_HOST_SLOW_US = 1500000,
};

struct addrinfo;
struct lookup;

/* Zeroed: nothing is known yet. */
struct redis_host {
    struct addrinfo *found, *next;
    struct lookup *lookup; /* under way */
    uint64_t lookup_us; /* when it began, or the last one; 0: none did */
    int error; /* what the last look-up failed with */
};

/* The next address, after the last one the first again. NULL: there is none, `*why` says why; or
 * it is being resolved, `*why` is NULL, or says so after REDIS_HOST_SLOW_US. */
const struct addrinfo *redis_host_next(struct redis_host *host, const struct options_host_port *at,
                                       uint64_t now_us, const char **why);
/* The next one is the first again. */
void redis_host_rewind(struct redis_host *host);
void redis_host_forget(struct redis_host *host);

#endif
