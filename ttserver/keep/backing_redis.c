#include "ttserver/keep/backing_redis.h"

#include "common/clock.h"
#include "common/redis/redis_node.h"
#include "common/redis/redis_reader.h"
#include "common/tt/snapshot.h"

#include <ctype.h>
#include <errno.h>
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    KEY_MAX = 64, /* of a slice */
    PIPELINE = 256, /* slices asked for at a time */
    FORGET_AT_A_TIME = 1000,
    WAIT_MS = 20,
    LOOKUP_END_US = 500000, /* that a name may take after the end was asked for */
};

struct backing_link {
    /* fixed after open */
    struct redis_node_setup setup;
    struct redis_node node;
    const _Atomic uint64_t *end_by_us;
    /* state */
    unsigned due; /* answers */
    void (*take)(void *context, const redisReply *reply); /* one that is no error; NULL: nothing */
    void *context;
    enum err err; /* the first failure */
    char why[REDIS_WHY_MAX];
};

/* Adds to an error of the server which rights it wants, if it wants some. */
static void fail(struct backing_link *link, enum err err, const char *text)
{
    bool is_of_rights = strncmp(text, "NOPERM ", strlen("NOPERM ")) == 0;
    if (link->err == ERR_OK) {
        link->err = strncmp(text, "LOADING", strlen("LOADING")) == 0 ? ERR_ABSENT : err;
        snprintf(link->why, sizeof link->why, "%.160s%s", text,
                 is_of_rights ? ": our user needs PING, SELECT, HMGET, HGETALL, HSET and UNLINK on "
                                "abdada:backing:*"
                              : "");
    }
}

/* ---- what the node calls ---- */

static void replied(void *self, struct redis_node *node, struct redis_call *call,
                    const redisReply *reply)
{
    struct backing_link *link = self;
    (void)node;
    link->due--;
    redis_call_free(call);
    if (reply->type == REDIS_REPLY_ERROR) {
        char text[REDIS_WHY_MAX];
        redis_reader_printable(reply->str, reply->len, text);
        fail(link, ERR_IO, text);
    } else if (link->take != NULL) {
        link->take(link->context, reply);
    }
}

static void lost(void *self, struct redis_call *call)
{
    struct backing_link *link = self;
    link->due--;
    redis_call_free(call);
}

/* What the node says begins with its address, which is known here. As long as a name is being
 * resolved the node tries again, however long that takes. */
static void changed(void *self, struct redis_node *node)
{
    const char *reason = strstr(node->why, ": ");
    if (!redis_node_is_up(node) && node->name.lookup == NULL) {
        fail(self, ERR_IO, reason != NULL ? reason + 2 : "the connection broke");
    }
}

/* ---- calls ---- */

/* Takes the call; NULL: there was no memory for it. */
static void send_call(struct backing_link *link, struct redis_call *call)
{
    if (call != NULL && redis_node_call(&link->node, call, clock_us())) {
        link->due++;
    } else {
        if (call != NULL) {
            redis_node_tick(&link->node, clock_us()); /* it says why */
        }
        fail(link, ERR_IO, call != NULL ? "the connection broke" : err_text(ERR_NOMEM));
        redis_call_free(call);
    }
}

static void send_words(struct backing_link *link, unsigned words, const char *const *word)
{
    send_call(link, redis_call_make_words(REDIS_CALL_USER, words, word));
}

/* Until it is connected and not more than `most` answers are due. */
static enum err await(struct backing_link *link, unsigned most, char *why)
{
    uint64_t ending_us = 0;
    for (;;) {
        uint64_t now_us = clock_us(), end_by_us = atomic_load(link->end_by_us);
        redis_node_tick(&link->node, now_us);
        if (link->err != ERR_OK || (redis_node_is_up(&link->node) && link->due <= most)) {
            break;
        }
        ending_us = ending_us == 0 && end_by_us != 0 ? now_us : ending_us;
        if (end_by_us != 0 && (now_us >= end_by_us || (link->node.name.lookup != NULL &&
                                                       now_us - ending_us >= LOOKUP_END_US))) {
            fail(link, ERR_FULL, "the time for the end is over");
            break;
        }
        struct pollfd fd;
        (void)poll(&fd, redis_node_poll(&link->node, &fd), WAIT_MS);
    }
    snprintf(why, REDIS_WHY_MAX, "%s", link->why);
    return link->err;
}

/* What the answers are for that come from now on. */
static void expect(struct backing_link *link, void (*take)(void *context, const redisReply *reply),
                   void *context)
{
    link->take = take;
    link->context = context;
}

static enum err call(struct backing_link *link, unsigned words, const char *const *word,
                     void (*take)(void *context, const redisReply *reply), void *context, char *why)
{
    expect(link, take, context);
    send_words(link, words, word);
    enum err err = await(link, 0, why);
    expect(link, NULL, NULL);
    return err;
}

/* ---- life ---- */

enum err backing_link_open(struct backing_link **out, const struct redis_address *address,
                           const _Atomic uint64_t *end_by_us, char why[REDIS_WHY_MAX])
{
    struct backing_link *link = calloc(1, sizeof *link);
    if (link == NULL) {
        return err_say(ERR_IO, why, REDIS_WHY_MAX, "%s", err_text(ERR_NOMEM));
    }
    link->end_by_us = end_by_us;
    link->setup = (struct redis_node_setup){
        .user = address->user,
        .password = address->password,
        .db = address->db,
        .silence_us = BACKING_ANSWER_MS * UINT64_C(1000),
        .self = link,
        .replied = replied,
        .lost = lost,
        .changed = changed,
    };
    redis_node_open(&link->node, &link->setup, address->node[0].host, address->node[0].port, false);
    link->node.is_wanted = true;
    enum err err = await(link, 0, why);
    if (err != ERR_OK) {
        backing_link_close(&link);
        return err;
    }
    *out = link;
    return ERR_OK;
}

void backing_link_close(struct backing_link **link)
{
    if (*link != NULL) {
        redis_node_close(&(*link)->node);
        free(*link);
        *link = NULL;
    }
}

/* ---- records ---- */

static void record_key(const char *name, char out[BACKING_NAME_MAX + 32])
{
    snprintf(out, BACKING_NAME_MAX + 32, "abdada:backing:%s", name);
}

static bool number_of(const redisReply *reply, int base, uint64_t *out)
{
    char *end = NULL;
    if (reply->type != REDIS_REPLY_STRING || reply->len == 0 ||
        !isxdigit((unsigned char)reply->str[0])) {
        return false;
    }
    errno = 0;
    *out = strtoull(reply->str, &end, base);
    return errno == 0 && *end == '\0';
}

static void take_record(void *context, const redisReply *reply)
{
    struct backing_record record = {0}, *out = context;
    bool is_one = reply->type == REDIS_REPLY_ARRAY && reply->elements == 3 &&
                  number_of(reply->element[0], 16, &record.place) &&
                  number_of(reply->element[1], 10, &record.buckets) &&
                  record.buckets <= BACKING_BUCKETS_MAX &&
                  (number_of(reply->element[2], 16, &record.stamp) || record.stamp == 0);
    *out = is_one ? record : (struct backing_record){0};
}

enum err backing_link_record(struct backing_link *link, const char *name,
                             struct backing_record *out, char why[REDIS_WHY_MAX])
{
    char key[BACKING_NAME_MAX + 32];
    record_key(name, key);
    return call(link, 5, (const char *[]){"HMGET", key, "place", "buckets", "stamp"}, take_record,
                out, why);
}

enum err backing_link_set_record(struct backing_link *link, const char *name,
                                 const struct backing_record *record, char why[REDIS_WHY_MAX])
{
    char key[BACKING_NAME_MAX + 32], place[32], buckets[32], stamp[32];
    record_key(name, key);
    snprintf(place, sizeof place, "%016" PRIx64, record->place);
    snprintf(buckets, sizeof buckets, "%" PRIu64, record->buckets);
    snprintf(stamp, sizeof stamp, "%016" PRIx64, record->stamp);
    const char *word[] = {"HSET", key, "place", place, "buckets", buckets, "stamp", stamp};
    return call(link, sizeof word / sizeof *word, word, NULL, NULL, why);
}

/* ---- slices ---- */

static void slice_key(uint64_t place, uint64_t slice, char out[KEY_MAX])
{
    snprintf(out, KEY_MAX, "abdada:backing:%016" PRIx64 ":%" PRIx64, place, slice);
}

struct reading {
    struct tt_results *results;
    const _Atomic uint64_t *flushed; /* NULL: nobody flushes */
    uint64_t before; /* what it was */
    uint64_t *entries;
};

static bool was_flushed(const struct reading *r)
{
    return r->flushed != NULL && atomic_load(r->flushed) != r->before;
}

/* Field, value, field, value, ... */
static void restore(void *context, const redisReply *reply)
{
    const struct reading *r = context;
    bool is_wanted = reply->type == REDIS_REPLY_ARRAY && !was_flushed(r);
    for (size_t i = 1; is_wanted && i < reply->elements; i += 2) {
        const redisReply *value = reply->element[i];
        size_t count = value->type == REDIS_REPLY_STRING ? value->len / SNAPSHOT_ENTRY_BYTES : 0;
        for (size_t k = 0; k < count && !was_flushed(r); k++) {
            struct tt_scanned entry;
            const uint8_t *at = (const uint8_t *)value->str + k * SNAPSHOT_ENTRY_BYTES;
            if (snapshot_unpack(at, &entry) == ERR_OK) {
                tt_results_restore(r->results, &entry);
                ++*r->entries;
            }
        }
    }
}

enum err backing_link_read(struct backing_link *link, const struct backing_record *record,
                           struct tt_results *results, const _Atomic uint64_t *flushed,
                           uint64_t *entries, char why[REDIS_WHY_MAX])
{
    uint64_t slices = backing_slices(record->buckets), asked = 0;
    struct reading reading = {results, flushed, flushed != NULL ? atomic_load(flushed) : 0,
                              entries};
    enum err err = ERR_OK;
    expect(link, restore, &reading);
    while (err == ERR_OK && (asked < slices || link->due > 0)) {
        for (; asked < slices && link->due < PIPELINE && link->err == ERR_OK; asked++) {
            char key[KEY_MAX];
            slice_key(record->place, asked, key);
            send_words(link, 2, (const char *[]){"HGETALL", key});
        }
        err = await(link, asked < slices ? PIPELINE / 2 : 0, why);
        err = err == ERR_OK && was_flushed(&reading) ? ERR_EXIST : err;
    }
    expect(link, NULL, NULL);
    return err;
}

unsigned backing_link_put(struct backing_link *link, uint64_t place, uint64_t slice,
                          const uint64_t bits[BACKING_SLICE / 64], const struct tt_results *results,
                          uint8_t depth_min)
{
    enum { WORDS_MAX = 2 + 2 * BACKING_SLICE, FIELD_MAX = 4 };
    char key[KEY_MAX], field[BACKING_SLICE][FIELD_MAX];
    uint8_t value[BACKING_SLICE][TT_BUCKET_ENTRIES * SNAPSHOT_ENTRY_BYTES];
    const char *word[WORDS_MAX] = {"HSET", key};
    size_t length[WORDS_MAX] = {4};
    unsigned words = 2, entries = 0;
    slice_key(place, slice, key);
    length[1] = strlen(key);
    for (unsigned i = 0; i < BACKING_SLICE; i++) {
        const uint64_t bucket = slice * BACKING_SLICE + i;
        const bool is_set = bits[i / 64] >> i % 64 & 1 && bucket < results->buckets;
        unsigned count = 0;
        for (unsigned slot = 0; is_set && slot < TT_BUCKET_ENTRIES; slot++) {
            struct tt_scanned entry;
            if (tt_results_entry(results, bucket, slot, &entry) && entry.depth >= depth_min) {
                snapshot_pack(value[i] + (size_t)count++ * SNAPSHOT_ENTRY_BYTES, &entry);
            }
        }
        if (count > 0) {
            word[words] = field[i];
            length[words++] = (size_t)snprintf(field[i], FIELD_MAX, "%u", i & (BACKING_SLICE - 1));
            word[words] = (const char *)value[i];
            length[words++] = (size_t)count * SNAPSHOT_ENTRY_BYTES;
            entries += count;
        }
    }
    if (entries > 0) {
        send_call(link, redis_call_make(REDIS_CALL_USER, -1, 0, words, word, length));
    }
    return entries;
}

enum err backing_link_flush(struct backing_link *link, char why[REDIS_WHY_MAX])
{
    return await(link, 0, why);
}

enum err backing_link_ping(struct backing_link *link, char why[REDIS_WHY_MAX])
{
    return call(link, 1, (const char *[]){"PING"}, NULL, NULL, why);
}

enum err backing_link_forget(struct backing_link *link, const struct backing_record *record,
                             char why[REDIS_WHY_MAX])
{
    uint64_t slices = backing_slices(record->buckets);
    enum err err = ERR_OK;
    for (uint64_t slice = 0; err == ERR_OK && slice < slices;) {
        for (unsigned i = 0; i < FORGET_AT_A_TIME && slice < slices; i++, slice++) {
            char key[KEY_MAX];
            slice_key(record->place, slice, key);
            send_words(link, 2, (const char *[]){"UNLINK", key});
        }
        err = backing_link_flush(link, why);
    }
    return err;
}
