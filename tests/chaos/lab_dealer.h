/* lab_dealer: the client's side of a connection in the virtual cluster: what libzmq's DEALER does
 * with a shard's address, as proto/lane/zeromq.c sets it up. It connects, shakes hands, sends
 * and takes messages of one frame, gives a connection up whose bytes are not
 * confirmed, and connects anew. Nothing is queued for a shard that is not there.
 *
 * It also checks the shard: whatever the network does, what the shard sends is ZMTP 3.1 to the
 * letter. Threads: one at a time. Memory: freed with its worker. No memory is a CHECK. */
#ifndef TESTS_CHAOS_LAB_DEALER_H
#define TESTS_CHAOS_LAB_DEALER_H

#include "tests/chaos/lab_stream.h"
#include "tests/chaos/lab_zmtp.h"

enum lab_dealer_state {
    LAB_IDLE,
    LAB_CONNECTING,
    LAB_GREETING,
    LAB_WELCOME, /* with keys: it waits for WELCOME, ... */
    LAB_HANDSHAKE, /* ... for READY */
    LAB_READY,
};

/* Bytes in a row. */
struct lab_bytes {
    uint8_t *at;
    size_t begin, end, room;
};

struct lab_dealer {
    enum lab_dealer_state state;
    struct lab_stream *stream; /* NULL: idle */
    uint64_t due_ns; /* of its next LAB_DIAL; 0: none */
    uint64_t began_ns; /* when it began to connect */
    uint64_t retry_ns; /* until it connects anew, the next time */
    unsigned queued; /* messages not sent yet, about */
    struct lab_bytes in, out;
    struct lab_curve curve; /* with keys */
};

/* All of a worker, to all shards: they begin to connect. */
void lab_dealers_open(struct lab_worker *w);
/* The worker dies. */
void lab_dealers_close(struct lab_worker *w);
/* It stands still no longer, or reads again. */
void lab_dealers_go_on(struct lab_worker *w);

/* False: there is no connection, or its queue is full. */
bool lab_dealer_send(struct lab_worker *w, unsigned shard, uint64_t at_ns, const uint8_t *bytes,
                     size_t length);
/* Its end of the stream has something new: whole messages become events LAB_TO_WORKER. */
void lab_dealer_ready(struct lab *lab, struct lab_stream *s);
/* LAB_DIAL: the time of something that waits. */
void lab_dealer_dial(struct lab_worker *w, unsigned shard);

/* Whether it is connected and all that was given to it has arrived. */
bool lab_dealer_is_through(const struct lab_worker *w, unsigned shard);
/* Its connection at the shard; NULL: none that was accepted. */
const struct connection *lab_dealer_connection(const struct lab_worker *w, unsigned shard);

#endif
