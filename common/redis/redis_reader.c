#include "common/redis/redis_reader.h"

#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

/* hiredis 1.0 counts in size_t what 0.14 counts in int. */
#if HIREDIS_MAJOR >= 1
typedef size_t element_count;
#else
typedef int element_count;
#endif

/* hiredis' reader with one function put in front of another: an array is allocated at its whole
 * length as soon as the server has said how long it is. */
struct redis_reader {
    redisReader *hiredis;
    size_t pending, elements; /* of the reply that is not complete */
    redisReplyObjectFunctions functions;
    void *(*create_array)(const redisReadTask *task, element_count elements);
};

static void *create_array(const redisReadTask *task, element_count elements)
{
    struct redis_reader *r = task->privdata;
    if (elements > REDIS_READER_ELEMENTS_MAX - (element_count)r->elements) {
        return NULL;
    }
    r->elements += (size_t)elements;
    CHECK_THAT(r->elements <= REDIS_READER_ELEMENTS_MAX, "reader: a reply is bounded");
    return r->create_array(task, elements);
}

struct redis_reader *redis_reader_open(void)
{
    struct redis_reader *r = calloc(1, sizeof *r);
    if (r == NULL || (r->hiredis = redisReaderCreate()) == NULL) {
        free(r);
        return NULL;
    }
    r->functions = *r->hiredis->fn;
    r->create_array = r->functions.createArray;
    r->functions.createArray = create_array;
    r->hiredis->fn = &r->functions;
    r->hiredis->privdata = r;
    return r;
}

void redis_reader_close(struct redis_reader **r)
{
    if (*r != NULL) {
        redisReaderFree((*r)->hiredis);
        free(*r);
        *r = NULL;
    }
}

enum err redis_reader_feed(struct redis_reader *reader, const char *bytes, size_t length)
{
    reader->pending += length;
    return redisReaderFeed(reader->hiredis, bytes, length) == REDIS_OK ? ERR_OK : ERR_NOMEM;
}

enum err redis_reader_next(struct redis_reader *reader, struct redisReply **out)
{
    void *reply = NULL;
    if (redisReaderGetReply(reader->hiredis, &reply) != REDIS_OK) {
        return ERR_PROTO;
    }
    if (reply == NULL) {
        return reader->pending > REDIS_READER_BYTES_MAX ? ERR_FULL : ERR_OK;
    }
    reader->pending = reader->elements = 0;
    *out = reply;
    return ERR_OK;
}

bool redis_reader_is(const struct redisReply *reply, const char *word)
{
    return reply->type == REDIS_REPLY_STRING && reply->len == strlen(word) &&
           memcmp(reply->str, word, reply->len) == 0;
}

void redis_reader_printable(const char *bytes, size_t length, char out[REDIS_WHY_MAX])
{
    enum { LONGEST = 160 };
    size_t n = 0;
    for (; n < length && n < LONGEST; n++) {
        out[n] = bytes[n] >= ' ' && bytes[n] <= '~' ? bytes[n] : '?';
    }
    out[n] = '\0';
}
