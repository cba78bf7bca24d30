/* mailbox: where letters come in and go out (letter.h).
 *
 * `mailboxes` is the peer port (worker/search/handover/peers.h) of the threads of one process, and,
 * through the shards, of the searchers of other processes: for each thread a list of messages,
 * behind a lock.
 *
 * The threads have the numbers 0, 1, 2 ... everywhere in their process. A searcher of another
 * process has the next number of whom first heard of it: a thread that is connected takes part in
 * the letters of its job (proto/client/client.h), and asks every 10 ms who else does, or every
 * second if there are a thousand. It knows MAILBOX_PEERS_MAX at most, and hears no others.
 *
 * Threads: open, close, connect and begin while nobody searches; a port's functions by its own
 * thread; wake by any. Memory: open, and the first begin: the lists (4.8 MB a thread) are
 * for algorithms whose searchers send messages alone. What finds no room in a list is lost, as a
 * letter may be, and counted (`mailbox_lost`). Blocking: a port's wait, until a message or a wake
 * comes or 5 ms are over, 1 ms if the thread is connected and has neighbours; else a lock, held
 * while a message is copied. */
#ifndef WORKER_ENGINE_MAILBOX_H
#define WORKER_ENGINE_MAILBOX_H

#include "proto/client/client.h"
#include "worker/engine/letter.h"

#include <stdatomic.h>

enum {
    MAILBOX_PEERS_MAX = 4096,
    MAILBOX_ROOM = 8192, /* messages ... */
    MAILBOX_LETTERS_MAX = 4096, /* ... when there are so many, only the process's own are taken */
};

struct mailboxes;
struct remote;

/* `owns_root`: the first thread begins the searches; else it is in another process. ERR_NOMEM. */
enum err mailboxes_open(struct mailboxes **out, unsigned count, bool owns_root);
/* Accepts NULL; nulls. */
void mailboxes_close(struct mailboxes **mailboxes);

/* Takes an event of thread i's client, if it is about letters. */
void mailboxes_event(struct mailboxes *mailboxes, unsigned i, const struct client_event *event);
/* Thread i's letters go through this client, of that instance; borrowed until the close. */
void mailboxes_connect(struct mailboxes *mailboxes, unsigned i, struct remote *remote,
                       uint64_t instance);

/* Forgets what came and who is elsewhere, and waits for messages of that job. `is_alone`: of the
 * threads of this process alone. ERR_NOMEM, at the first. Before it ports are for searches that
 * send nothing. The port of thread i lives until the close; a message makes its
 * search poll at its next node (env_port). */
enum err mailboxes_begin(struct mailboxes *mailboxes, uint64_t job, bool is_alone);
/* Waits until the first thread knows of a searcher elsewhere, or has a message of one, 50 ms at
 * most. For the first thread to call. */
void mailboxes_await_first(struct mailboxes *mailboxes);
const struct peer_port *mailboxes_port(struct mailboxes *mailboxes, unsigned i,
                                       atomic_uint *until_poll);
/* The job is over: no more letters. By the threads that are connected, or while they do not run. */
void mailboxes_end(struct mailboxes *mailboxes);
/* Ends all waits. */
void mailboxes_wake(struct mailboxes *mailboxes);

/* ---- letters about a bag ---- */

/* A letter of the job, which fits into a MAIL, through that client. */
void mailbox_send(struct remote *remote, uint64_t job, uint64_t to,
                  const struct bag_letter *letter);
/* client_mail_join. */
void mailbox_join(struct remote *remote, uint64_t job, bool takes_part);

enum {
    MAIL_JOIN_FIRST_MS = 10, /* the job may not be open yet where letters go */
    MAIL_JOIN_AWAIT_MS = 100, /* without an answer */
    MAIL_JOIN_LONGEST_MS = 10000,
};

/* When a worker joins the letters of a bag. At once, and again after ever longer pauses, until the
 * front-end speaks to it. From then on there is a reason when a shard came or went (letters may go
 * by another one, or by one that has forgotten who takes part), when an answer does not come, and
 * after MAIL_JOIN_LONGEST_MS, for what is not foreseen: the shard looks at all its sessions each
 * time. Pure. */
struct mail_join {
    uint64_t due_us;
    uint32_t pause_ms; /* after the next join */
};

/* At first, and when a shard came or went. */
void mail_join_begin(struct mail_join *join);
/* The front-end spoke (MAIL_JOIN_LONGEST_MS), or is to speak soon (MAIL_JOIN_AWAIT_MS). */
void mail_join_after(struct mail_join *join, uint32_t pause_ms, uint64_t now_us);
bool mail_join_is_due(struct mail_join *join, uint64_t now_us);

#endif
