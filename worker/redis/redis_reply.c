#include "worker/redis/redis_reply.h"

#ifdef HAVE_HIREDIS

#include <hiredis/hiredis.h>

bool redis_reply_error(const struct redisReply *reply, struct proto_text *out)
{
    if (reply == NULL || reply->type != REDIS_REPLY_ERROR) {
        return false;
    }
    *out = (struct proto_text){reply->str, (uint32_t)reply->len};
    return true;
}

bool redis_reply_text(const struct redisReply *reply, struct proto_text *out)
{
    if (reply == NULL || (reply->type != REDIS_REPLY_STRING && reply->type != REDIS_REPLY_STATUS)) {
        return false;
    }
    *out = (struct proto_text){reply->str, (uint32_t)reply->len};
    return true;
}

static bool read_digits(struct proto_text text, uint64_t *out)
{
    uint64_t value = 0;
    for (uint32_t i = 0; i < text.length; i++) {
        if (text.at[i] < '0' || text.at[i] > '9' || value > UINT64_MAX / 10 - 1) {
            return false;
        }
        value = value * 10 + (uint64_t)(text.at[i] - '0');
    }
    *out = value;
    return text.length > 0;
}

bool redis_reply_number(const struct redisReply *reply, uint64_t *out)
{
    struct proto_text text;
    if (reply != NULL && reply->type == REDIS_REPLY_INTEGER) {
        *out = reply->integer > 0 ? (uint64_t)reply->integer : 0;
        return true;
    }
    return redis_reply_text(reply, &text) && read_digits(text, out);
}

size_t redis_reply_count(const struct redisReply *reply)
{
    return reply != NULL && reply->type == REDIS_REPLY_ARRAY ? reply->elements : 0;
}

const struct redisReply *redis_reply_at(const struct redisReply *reply, size_t i)
{
    return i < redis_reply_count(reply) ? reply->element[i] : NULL;
}

#else

bool redis_reply_error(const struct redisReply *reply, struct proto_text *out)
{
    (void)reply, (void)out;
    return false;
}

bool redis_reply_text(const struct redisReply *reply, struct proto_text *out)
{
    (void)reply, (void)out;
    return false;
}

bool redis_reply_number(const struct redisReply *reply, uint64_t *out)
{
    (void)reply, (void)out;
    return false;
}

size_t redis_reply_count(const struct redisReply *reply)
{
    (void)reply;
    return 0;
}

const struct redisReply *redis_reply_at(const struct redisReply *reply, size_t i)
{
    (void)reply, (void)i;
    return NULL;
}

#endif

uint64_t redis_reply_number_at(const struct redisReply *reply, size_t i, uint64_t max)
{
    uint64_t value = 0;
    bool ok = redis_reply_number(redis_reply_at(reply, i), &value);
    return ok && value <= max ? value : 0;
}
