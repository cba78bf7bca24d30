/* redis_reply: reads the replies of a Redis, and believes nothing of them: what is not there, or of
 * another type, is NULL, false or 0.
 *
 * Pure. Threads: any. Without hiredis there are no replies and this says so of each. */
#ifndef WORKER_REDIS_REDIS_REPLY_H
#define WORKER_REDIS_REDIS_REPLY_H

#include "proto/codec.h"

struct redisReply;

/* The server's words if it is an error. */
bool redis_reply_error(const struct redisReply *reply, struct proto_text *out);
bool redis_reply_text(const struct redisReply *reply, struct proto_text *out);
/* An integer, or a text of digits. */
bool redis_reply_number(const struct redisReply *reply, uint64_t *out);
/* Of an array. */
size_t redis_reply_count(const struct redisReply *reply);
const struct redisReply *redis_reply_at(const struct redisReply *reply, size_t i);

/* Element i of an array: its number, not above `max`; else 0. */
uint64_t redis_reply_number_at(const struct redisReply *reply, size_t i, uint64_t max);

#endif
