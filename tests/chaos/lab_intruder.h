/* lab_intruder: a liar below the messages, where the connections of shards are simulated: many
 * connections to the shards that are no clients. They break off a handshake, send what is no ZMTP,
 * announce more than they send, send a byte now and then, ask for much and read nothing, come by
 * the hundred, and vanish without a word.
 *
 * It acts beside the liar of messages (lab_liar.h) and falls silent with it: what it leaves behind
 * is the shards' to end. Threads: one at a time. Memory: what a connection will say, until it is
 * closed. No memory is a CHECK. */
#ifndef TESTS_CHAOS_LAB_INTRUDER_H
#define TESTS_CHAOS_LAB_INTRUDER_H

#include "tests/chaos/lab_stream.h"

/* With LAB_LIE. */
void lab_intruder_act(struct lab *lab);
/* At the end of all, before the shards: closes what it has. */
void lab_intruder_close(struct lab *lab);

#endif
