/* lab_service: a shard's connections in the virtual cluster, where they are simulated: the real
 * ttserver/net over simulated sockets (lab_stream.h), in the shard's own time, which goes on as it
 * works. Threads: one at a time. */
#ifndef TESTS_CHAOS_LAB_SERVICE_H
#define TESTS_CHAOS_LAB_SERVICE_H

#include "tests/chaos/lab_stream.h"

/* The shard starts, and dies; between them it may start again. */
enum err lab_service_open(struct lab *lab, unsigned shard, const struct ttcore_options *core);
/* It says BYE to all before it ends; nothing if it stands still or is dead. */
void lab_service_dismiss(struct lab *lab, unsigned shard);
void lab_service_close(struct lab *lab, unsigned shard);
/* At the end of all. Accepts one that is not there. */
void lab_service_free(struct lab *lab, unsigned shard);

/* LAB_TURN, or something has come: it serves, or will when it has done what it is at. */
void lab_service_turn(struct lab *lab, unsigned shard);
void lab_service_tick(struct lab *lab, unsigned shard);

/* Somebody near (LAB_NOBODY) connects, says something: it is served at once, as far as its shard
 * serves it. NULL, or false: the shard does not want to. */
struct lab_stream *lab_service_meet(struct lab *lab, unsigned shard, struct in6_addr from);
bool lab_service_say(struct lab_stream *s, const uint8_t *bytes, size_t length);

/* The same for a client with good manners, who shakes hands and says messages. */
struct lab_visit {
    struct lab_stream *stream;
    struct lab_curve curve; /* with keys */
};

/* NULL: it came to nothing. To be ended with lab_visit_end. */
struct lab_visit *lab_visit_begin(struct lab *lab, unsigned shard, struct in6_addr from,
                                  const struct keys_pair *own);
bool lab_visit_say(struct lab_visit *visit, const uint8_t *message, size_t length);
/* Without a word; nulls, and accepts a null. */
void lab_visit_end(struct lab_visit **visit);

/* Connections, and parts of them, that nobody living is at the other end of. */
unsigned lab_service_left(struct lab *lab, unsigned shard);

#endif
