/* lab_dealer: the client's side of a connection in the virtual cluster: what libzmq's DEALER does
 * with a shard's address, as proto/transport/zeromq.c sets it up. It connects, shakes hands, sends
 * and takes messages of one frame, answers PINGs, gives a connection up whose bytes are not
 * confirmed, and connects anew. Nothing is queued for a shard that is not there.
 *
 * It also checks the shard: whatever the network does, what the shard sends is ZMTP 3.1 to the
 * letter. Threads: one at a time. Memory: freed with its worker. No memory is a CHECK. */
#ifndef WORKER_LAB_LAB_DEALER_H
#define WORKER_LAB_LAB_DEALER_H

#include "worker/lab/lab_stream.h"

enum lab_dealer_state { LAB_IDLE, LAB_CONNECTING, LAB_GREETING, LAB_HANDSHAKE, LAB_READY };

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

/* ---- ZMTP as a client speaks it ---- */

enum { LAB_GREETING_BYTES = 64, LAB_FRAME_OVERHEAD = 9 };

enum { LAB_FRAME_MORE = 1, LAB_FRAME_LONG = 2, LAB_FRAME_COMMAND = 4 };

/* Greeting and READY of a DEALER without keys; out has LAB_HELLO_BYTES; returns how many. */
enum { LAB_HELLO_BYTES = 128 };
size_t lab_zmtp_hello(uint8_t *out);
/* The header of a frame of so many bytes; returns its length. */
size_t lab_zmtp_header(uint8_t out[LAB_FRAME_OVERHEAD], uint8_t flags, size_t length);

struct lab_frame {
    uint8_t flags;
    const uint8_t *body;
    size_t length, used; /* bytes of the body; of the frame */
};

/* Takes the frame at the front: 1; not all of it is here: 0; it is none: -1. */
int lab_zmtp_frame(const uint8_t *in, size_t length, struct lab_frame *out);

#endif
