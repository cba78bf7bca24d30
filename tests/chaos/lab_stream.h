/* lab_stream: the TCP of the virtual cluster, for runs in which the connections of shards
 * (ttserver/net) are simulated, too: connections of two ends, buffers that fill, writes and reads
 * of a part, retransmission, resets, ends that vanish without a word.
 *
 * What is lost on the way comes later; what is under way when a connection ends is gone. Everything
 * is drawn from the seed of the run. Threads: one at a time. Memory: a stream lives until both ends
 * have closed it. No memory is a CHECK. */
#ifndef TESTS_CHAOS_LAB_STREAM_H
#define TESTS_CHAOS_LAB_STREAM_H

#include "tests/chaos/chaos_world.h"
#include "tests/chaos/lab_zmtp.h"
#include "ttserver/net/connections.h"

enum lab_end { LAB_CLIENT, LAB_SERVER, LAB_ENDS };

enum { LAB_NOBODY = UINT32_MAX };

enum { LAB_SEGMENTS = 64 };

/* What goes to one end. */
struct lab_half {
    struct lab_queue arrived; /* not read yet */
    struct lab_queue held; /* come while the two were cut off */
    size_t offset; /* bytes of the first that were read */
    size_t unread; /* bytes that arrived and were not read */
    size_t under_way; /* bytes that were sent and not read */
    uint64_t last_ns; /* when the last arrives: none overtakes */
    uint64_t sent_ns[LAB_SEGMENTS]; /* times of the last segments, a ring */
    uint32_t sent, taken; /* segments: sent; of them arrived */
    bool is_open; /* the process at this end has the socket */
    bool is_ended; /* set when the other end's close, or a reset, has arrived */
    bool wants_room; /* the other end found the buffers full */
};

struct lab_stream {
    /* fixed after open */
    struct lab *lab;
    TAILQ_ENTRY(lab_stream) of_shard;
    uint32_t slot, serial; /* by which events name it */
    uint32_t worker; /* LAB_NOBODY: somebody who is near (lab_liar.h, lab_intruder.h) */
    uint32_t shard;
    struct in6_addr from;
    /* state */
    TAILQ_ENTRY(lab_stream) in_queue;
    struct lab_streams *queue; /* in which it stands; NULL: none */
    struct lab_half half[LAB_ENDS];
    bool is_connected; /* the shard's machine has answered */
    bool is_dead; /* nothing passes any more, and nobody is told */
    struct connection *connection; /* the shard's */
    unsigned watched; /* enum socket_events */
};

TAILQ_HEAD(lab_streams, lab_stream);

/* A shard's side. */
struct lab_service {
    /* fixed after open */
    struct lab *lab;
    unsigned shard;
    struct socket_port port;
    struct who access;
    /* state */
    struct shard_connections peers;
    struct lab_streams all;
    struct lab_streams backlog; /* not accepted yet */
    struct lab_streams ready; /* something that is watched has come */
    struct lab_streams notified; /* of them those that peers were told of in this turn */
    unsigned open, waiting; /* streams whose end here is open; of them those in the backlog */
    uint64_t turn_ns; /* of the next LAB_TURN; 0: none */
    uint64_t rest_ns; /* until then nobody is accepted */
    uint64_t shown_ns; /* the last time it was told: it never goes back */
    bool is_silent; /* set when its sockets vanish without a word */
};

enum { LAB_INTRUDERS = 48 };

/* State of a liar below the messages (lab_intruder.h). */
struct lab_intruder {
    uint64_t random;
    unsigned acts;
    struct lab_intruding {
        struct lab_stream *stream; /* NULL: none */
        uint8_t *script; /* what it will say */
        size_t length, at; /* bytes of it; of them said */
        bool reads;
    } list[LAB_INTRUDERS];
};

/* All streams of a cluster, and what was drawn for them. */
struct lab_net {
    uint64_t random;
    size_t buffer_bytes; /* of both ends, each way */
    size_t held_max; /* budget of a shard's connections */
    uint32_t pushed_at_once; /* as of struct connections_options; few, for few are the connections
                                here */
    unsigned piece_percent; /* of writes and reads that do a part */
    bool is_one_machine; /* all come from 127.0.0.1 */
    unsigned silent_percent; /* of kills after which nobody is told: the machine is gone */
    /* Times of clients, as those of proto/lane/zeromq.c, for the patience of this cluster. */
    uint64_t reconnect_ns, reconnect_max_ns, unconfirmed_ns;
    uint64_t pending_ns; /* of shards (CONNECTIONS_PENDING_MS) */
    struct lab_stream **stream; /* [slot]; NULL: free */
    uint32_t slots, open;
    uint32_t serial;
    struct lab_intruder intruder;
    /* Users that are let in, where connections have keys: a user for the workers of each host, one
     * for each front-end, one for each session of the liar. */
    bool has_keys;
    struct keys_pair server;
    struct keys_pair *pair; /* by user */
    struct who_list allowed;
};

enum err lab_net_open(struct lab *lab);
/* No stream is left. */
void lab_net_close(struct lab *lab);
uint32_t lab_net_below(struct lab *lab, uint32_t n);
/* The keys of a machine, and of a session of the liar. */
const struct keys_pair *lab_net_keys(const struct lab *lab, unsigned machine);
const struct keys_pair *lab_net_keys_of_liar(const struct lab *lab, unsigned who);

/* Opens the connection of a machine that begins to connect at `at_ns`. LAB_NOBODY is there at once,
 * and so is all that the two say to each other. */
struct lab_stream *lab_stream_open(struct lab *lab, uint32_t worker, unsigned shard,
                                   struct in6_addr from, uint64_t at_ns);
/* The end sends what there is room for, at `at_ns`, and returns how many bytes that was. */
size_t lab_stream_write(struct lab_stream *s, enum lab_end by, const uint8_t *bytes, size_t length,
                        uint64_t at_ns);
size_t lab_stream_read(struct lab_stream *s, enum lab_end by, uint8_t *to, size_t room);
/* The process at that end closes it, or dies; with `is_silent` the other end is not told. The
 * stream may be gone then. */
void lab_stream_close(struct lab_stream *s, enum lab_end by, bool is_silent);
/* Both ends are told at once; what was under way is gone. */
void lab_stream_reset(struct lab_stream *s);

/* When the oldest segment that has not arrived there was sent, later where there are many; false:
 * all have. With `has_more` the other end waits for room there, and asks for it again and again: of
 * an end that is gone no answer arrives, either. */
bool lab_stream_is_unconfirmed(const struct lab_stream *s, enum lab_end to, bool has_more,
                               uint64_t *sent_at_ns);

/* LAB_STREAM happens: the stream at whose end `at` something is new, or NULL. Takes the packet. */
struct lab_stream *lab_stream_arrive(struct lab *lab, const struct lab_event *e, enum lab_end *at);

/* ---- for the shard's side (lab_service.h) ---- */

/* What has come of that which is watched. */
unsigned lab_stream_events(const struct lab_stream *s);
/* Puts it among those that are ready when something has. */
void lab_stream_notice(struct lab_stream *s);
void lab_stream_enter_queue(struct lab_stream *s, struct lab_streams *queue);
void lab_stream_leave_queue(struct lab_stream *s);

#endif
