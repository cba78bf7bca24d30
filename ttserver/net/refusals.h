/* refusals: handshakes that failed, for the log: an operator wants to know whose key is wrong, and
 * an attacker must not fill the log.
 *
 * Threads: the shard's. Memory: none beyond the struct. Never blocks but to write a line. */
#ifndef TTSERVER_NET_REFUSALS_H
#define TTSERVER_NET_REFUSALS_H

#include "ttserver/net/identity.h"

#include <stdint.h>

struct refusals {
    uint64_t logged, logged_us;
    const char *why; /* reason of the last refusal */
    char from[IDENTITY_ADDRESS_MAX];
};

/* That of a connection, just now; `why` is a constant. */
void refusals_note(struct refusals *refusals, int fd, const char *why);

/* Says so, if there were more since the last line and that was long enough ago; `count`: so far. */
void refusals_log(struct refusals *refusals, const char *program, uint64_t count, uint64_t now_us);

#endif
