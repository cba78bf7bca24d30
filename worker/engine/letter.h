/* letter: a message between searchers (worker/search/handover/peers.h) as the body of a MAIL, for
 * searchers of other processes. Numbers begin with the low byte; job and sender are the MAIL's own.
 *
 * A body comes from anybody who takes part in the job. letter_read takes none that could make a
 * search leave its memory: a kind that is one, counts that fit, windows and depths that a search
 * has. Whether moves are legal and whether a value is true is not its business.
 * Threads: any. Memory: never allocates. Pure. */
#ifndef WORKER_ENGINE_LETTER_H
#define WORKER_ENGINE_LETTER_H

#include "proto/codec.h"
#include "worker/search/handover/peers.h"

enum {
    LETTER_KIND = 3, /* bytes of the kind and of the number of moves */
    LETTER_HEAD = 42, /* bytes before the moves; those that a kind does not need are zeroes */
};

/* Returns the length of the body. */
size_t letter_write(const struct peer_message *message, uint8_t body[PROTO_BODY_MAX]);
/* False: it is none. Leaves job and from 0. */
bool letter_read(const uint8_t *body, size_t length, struct peer_message *out);

#endif
