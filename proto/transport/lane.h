/* lane: a client in its shell, and the loop of all who hold sessions: take events until there are
 * none, which reads what has arrived; poll tickets; tick; sleep until the next tick is due.
 *
 * Threads: that of the client. Memory: that of the client, in open. Blocking: sleep alone. */
#ifndef PROTO_TRANSPORT_LANE_H
#define PROTO_TRANSPORT_LANE_H

#include "common/options.h"
#include "proto/transport/shell.h"

struct client_lane {
    struct remote_shell shell;
    struct client *client;
};

/* The highest version of the protocol that this process is to speak: ABDADA_PROTOCOL, with which
 * tests mix versions (docs/testing.md), or 0: the newest. UINT32_MAX, of which client_open says
 * ERR_RANGE: it names no version that is spoken here. */
uint32_t lane_highest_version(void);
/* For main: OPTIONS_RUN, or OPTIONS_WRONG and a line on stderr: it names none. */
int lane_check_version(const char *program);

/* The shell is there. As client_open, with that version, and the release of this program. */
enum err lane_open(struct client_lane *lane, const struct client_options *options);
/* Says BYE. Accepts one that was not opened, and twice. */
void lane_close(struct client_lane *lane);

/* The shell's clock. */
static inline uint64_t lane_now(const struct client_lane *lane)
{
    return lane->shell.now(lane->shell.self);
}

/* For who acts on each answer before it reads on: gives the client one message that has arrived,
 * and then its events, which are all taken; false: none is left, and the next call begins another
 * round. */
bool lane_receive(struct client_lane *lane);
bool lane_event(struct client_lane *lane, struct client_event *out);
/* Both: the next event, of messages that have arrived, too; false: none is left, and the next call
 * begins another round. Borrowed until the next call. The shell is told what a shard refuses. */
bool lane_next(struct client_lane *lane, struct client_event *out);
/* Returns when it wants to be called again. */
uint64_t lane_tick(struct client_lane *lane);
/* Waits until something arrives or `until_us`. */
void lane_sleep(struct client_lane *lane, uint64_t until_us);

#endif
