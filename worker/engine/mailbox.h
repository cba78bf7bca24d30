/* mailbox: the peer port (worker/search/peers.h) of the threads of one process: a list of messages
 * for each, behind a lock.
 *
 * Threads: open, close and begin while nobody searches; a port's functions by its own thread; wake
 * by any. Memory: open; a list that is full grows. Blocking: a port's wait, until a message or a
 * wake comes or 5 ms are over; else a lock, held while a message is copied. */
#ifndef WORKER_ENGINE_MAILBOX_H
#define WORKER_ENGINE_MAILBOX_H

#include "common/err.h"
#include "worker/search/peers.h"

#include <stdatomic.h>

struct mailboxes;

/* ERR_NOMEM. */
enum err mailboxes_open(struct mailboxes **out, unsigned count);
/* Accepts NULL; nulls. */
void mailboxes_close(struct mailboxes **mailboxes);
/* Forgets what came, and waits for messages of that job. The port of thread i lives until the
 * close; a message makes its search poll at its next node (env_port). */
void mailboxes_begin(struct mailboxes *mailboxes, uint64_t job);
const struct peer_port *mailboxes_port(struct mailboxes *mailboxes, unsigned i,
                                       atomic_uint *until_poll);
/* Ends all waits. */
void mailboxes_wake(struct mailboxes *mailboxes);

#endif
