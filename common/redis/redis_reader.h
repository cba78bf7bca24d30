/* redis_reader: hiredis' parser with bounds: what a server says may not take all memory.
 *
 * Threads: one. Memory: allocates, for a reply at most a few times its bytes and some 150 bytes for
 * each element. */
#ifndef COMMON_REDIS_REDIS_READER_H
#define COMMON_REDIS_REDIS_READER_H

#include "common/redis/redis_address.h"

#include <stdbool.h>
#include <stddef.h>

struct redis_reader;
struct redisReply; /* hiredis */

enum {
    REDIS_READER_BYTES_MAX = 16 << 20, /* bytes of one reply */
    REDIS_READER_ELEMENTS_MAX = 1 << 17, /* elements of all arrays in a reply */
};

/* NULL: no memory. */
struct redis_reader *redis_reader_open(void);
/* Accepts NULL; nulls. */
void redis_reader_close(struct redis_reader **reader);

/* ERR_NOMEM. */
enum err redis_reader_feed(struct redis_reader *reader, const char *bytes, size_t length);
/* The next reply that is complete, for hiredis' freeReplyObject; none: *out stays. ERR_PROTO: not
 * the protocol, or too many elements; ERR_FULL: too many bytes. */
enum err redis_reader_next(struct redis_reader *reader, struct redisReply **out);

/* Whether it is a text, and that one. */
bool redis_reader_is(const struct redisReply *reply, const char *word);

/* What a server says, for people: printable and short. */
void redis_reader_printable(const char *bytes, size_t length, char out[REDIS_WHY_MAX]);

#endif
