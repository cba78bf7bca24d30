#include "ttserver/keep/backing_redis.h"

#include "common/clock.h"
#include "common/lookup.h"
#include "common/redis/redis_reader.h"
#include "common/tt/snapshot.h"

#include <ctype.h>
#include <errno.h>
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum {
    KEY_MAX = 64, /* of a slice */
    PIPELINE = 256, /* slices asked for at a time */
    FORGET_AT_A_TIME = 1000,
    VALUE_MAX = TT_BUCKET_ENTRIES * SNAPSHOT_ENTRY_BYTES,
    READ_AT_A_TIME = 16 << 10,
    LOOKUP_SLICE_MS = 20,
    LOOKUP_END_US = 500000, /* that a name may take after the end was asked for */
};

struct backing_link {
    redisContext *redis; /* writes; its own reader has no bounds */
    struct redis_reader *reader;
    const _Atomic uint64_t *end_by_us;
    unsigned queued; /* commands whose replies are not read */
};

/* ---- failures ---- */

static enum err fail(char *why, const char *text)
{
    redis_reader_printable(text, strlen(text), why);
    return ERR_IO;
}

/* An error of the server, and which rights it wants if it wants some. */
static void fail_reply(char *why, const char *text)
{
    char words[REDIS_WHY_MAX];
    bool is_of_rights = strncmp(text, "NOPERM ", strlen("NOPERM ")) == 0;
    redis_reader_printable(text, strlen(text), words);
    snprintf(why, REDIS_WHY_MAX, "%.160s%s", words,
             is_of_rights ? ": our user needs PING, SELECT, HMGET, HGETALL, HSET and UNLINK on "
                            "abdada:backing:*"
                          : "");
}

static enum err fail_link(const struct backing_link *link, char *why)
{
    bool is_late = link->redis->err == REDIS_ERR_IO && (errno == EAGAIN || errno == ETIMEDOUT);
    return fail(why, is_late                       ? "it does not answer"
                     : link->redis->errstr[0] != 0 ? link->redis->errstr
                                                   : "the connection broke");
}

static enum err send_all(struct backing_link *link, char *why)
{
    int done = 0;
    errno = 0;
    while (!done) {
        if (redisBufferWrite(link->redis, &done) != REDIS_OK) {
            return fail_link(link, why);
        }
    }
    return ERR_OK;
}

/* More bytes for the reader, until then. */
static enum err receive(struct backing_link *link, uint64_t until_us, char *why)
{
    char bytes[READ_AT_A_TIME];
    uint64_t now_us = clock_us(), end_by_us = atomic_load(link->end_by_us);
    if (end_by_us != 0 && now_us >= end_by_us) {
        fail(why, "the time for the end is over");
        return ERR_FULL;
    }
    until_us = end_by_us != 0 && end_by_us < until_us ? end_by_us : until_us;
    struct pollfd fd = {.fd = link->redis->fd, .events = POLLIN};
    int ready = now_us < until_us ? poll(&fd, 1, (int)((until_us - now_us) / 1000) + 1) : 0;
    if (ready == 0) {
        return now_us < until_us ? ERR_OK /* time is looked at again */
                                 : fail(why, "it does not answer");
    }
    ssize_t n = ready > 0 ? recv(link->redis->fd, bytes, sizeof bytes, MSG_DONTWAIT) : -1;
    if (n > 0) {
        return redis_reader_feed(link->reader, bytes, (size_t)n) == ERR_OK
                   ? ERR_OK
                   : fail(why, err_text(ERR_NOMEM));
    }
    return n < 0 && (errno == EINTR || errno == EAGAIN)
               ? ERR_OK
               : fail(why, n < 0 ? strerror(errno) : "the connection broke");
}

/* The next reply; one that is an error is a failure. */
static enum err next_reply(struct backing_link *link, redisReply **out, char *why)
{
    uint64_t until_us = clock_us() + BACKING_ANSWER_MS * UINT64_C(1000);
    redisReply *r = NULL;
    enum err err = send_all(link, why);
    while (err == ERR_OK) {
        err = redis_reader_next(link->reader, &r);
        if (err != ERR_OK) {
            return fail(why, err == ERR_FULL ? "its reply is too large"
                                             : "it does not speak Redis' protocol");
        }
        if (r != NULL) {
            break;
        }
        err = receive(link, until_us, why);
    }
    if (err == ERR_OK && r->type == REDIS_REPLY_ERROR) {
        fail_reply(why, r->str);
        err = strncmp(r->str, "LOADING", 7) == 0 ? ERR_ABSENT : ERR_IO;
        redis_reader_free(r);
        return err;
    }
    *out = err == ERR_OK ? r : NULL;
    return err;
}

static void append(struct backing_link *link, int words, const char **word, const size_t *length)
{
    redisAppendCommandArgv(link->redis, words, word, length); /* no memory: the reply says so */
    link->queued++;
}

static enum err call(struct backing_link *link, int words, const char **word, redisReply **out,
                     char *why)
{
    redisReply *reply = NULL;
    append(link, words, word, NULL);
    link->queued = 0;
    enum err err = next_reply(link, &reply, why);
    if (err == ERR_OK && out != NULL) {
        *out = reply;
    } else if (err == ERR_OK) {
        redis_reader_free(reply);
    }
    return err;
}

/* ---- life ---- */

static struct timeval timeval_of_ms(unsigned ms)
{
    return (struct timeval){.tv_sec = ms / 1000, .tv_usec = (ms % 1000) * 1000};
}

static enum err log_in(struct backing_link *link, const struct redis_address *address, char *why)
{
    char db[16];
    enum err err = ERR_OK;
    if (address->user[0] != '\0') {
        err = call(link, 3, (const char *[]){"AUTH", address->user, address->password}, NULL, why);
    } else if (address->password[0] != '\0') {
        err = call(link, 2, (const char *[]){"AUTH", address->password}, NULL, why);
    }
    if (err == ERR_OK && address->db != 0) {
        snprintf(db, sizeof db, "%u", address->db);
        err = call(link, 2, (const char *[]){"SELECT", db}, NULL, why);
    }
    return err ? err : backing_link_ping(link, why);
}

/* Until the system's resolver has answered, however long that takes, or it is too late. */
static bool wait_for_name(struct lookup *lookup, const _Atomic uint64_t *end_by_us)
{
    uint64_t ending_us = 0;
    while (!lookup_wait(lookup, LOOKUP_SLICE_MS)) {
        uint64_t now_us = clock_us();
        if (atomic_load(end_by_us) != 0 && ending_us == 0) {
            ending_us = now_us;
        }
        if (ending_us != 0 && now_us - ending_us >= LOOKUP_END_US) {
            return false;
        }
    }
    return true;
}

/* An address of the host in numbers: of several one that is reached. */
static enum err find_host(const struct options_host_port *at, const _Atomic uint64_t *end_by_us,
                          char out[LOOKUP_NUMBER_MAX], char *why)
{
    struct addrinfo *found = NULL;
    int error = 0;
    if (!lookup_number(at, &found)) {
        struct lookup *lookup = lookup_begin(at, true);
        if (lookup == NULL) {
            return fail(why, err_text(ERR_NOMEM));
        }
        if (!wait_for_name(lookup, end_by_us)) {
            lookup_leave(&lookup);
            return fail(why, "its name is still being resolved");
        }
        error = lookup_take(&lookup, &found);
    }
    bool is_text = error == 0 && lookup_text(found, out);
    if (found != NULL) {
        freeaddrinfo(found);
    }
    return is_text ? ERR_OK : fail(why, gai_strerror(error != 0 ? error : EAI_FAMILY));
}

enum err backing_link_open(struct backing_link **out, const struct redis_address *address,
                           const _Atomic uint64_t *end_by_us, char why[REDIS_WHY_MAX])
{
    struct backing_link *link = calloc(1, sizeof *link);
    if (link == NULL) {
        return fail(why, err_text(ERR_NOMEM));
    }
    link->end_by_us = end_by_us;
    char number[LOOKUP_NUMBER_MAX];
    enum err err = find_host(&address->node[0], end_by_us, number, why);
    if (err != ERR_OK) {
        backing_link_close(&link);
        return err;
    }
    link->reader = redis_reader_open();
    link->redis =
        redisConnectWithTimeout(number, address->node[0].port, timeval_of_ms(BACKING_CONNECT_MS));
    if (link->redis == NULL || link->reader == NULL) {
        err = fail(why, err_text(ERR_NOMEM));
    } else if (link->redis->err != 0) {
        err = fail(why, link->redis->errstr);
    } else if (redisSetTimeout(link->redis, timeval_of_ms(BACKING_ANSWER_MS)) != REDIS_OK) {
        err = fail_link(link, why);
    }
    err = err ? err : log_in(link, address, why);
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
        if ((*link)->redis != NULL) {
            redisFree((*link)->redis);
        }
        redis_reader_close(&(*link)->reader);
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

enum err backing_link_record(struct backing_link *link, const char *name,
                             struct backing_record *out, char why[REDIS_WHY_MAX])
{
    char key[BACKING_NAME_MAX + 32];
    redisReply *reply = NULL;
    struct backing_record record = {0};
    record_key(name, key);
    enum err err = call(link, 4, (const char *[]){"HMGET", key, "place", "buckets"}, &reply, why);
    if (err != ERR_OK) {
        return err;
    }
    bool is_one = reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 &&
                  number_of(reply->element[0], 16, &record.place) &&
                  number_of(reply->element[1], 10, &record.buckets) &&
                  record.buckets <= BACKING_BUCKETS_MAX;
    redis_reader_free(reply);
    *out = is_one ? record : (struct backing_record){0};
    return ERR_OK;
}

enum err backing_link_set_record(struct backing_link *link, const char *name,
                                 const struct backing_record *record, char why[REDIS_WHY_MAX])
{
    char key[BACKING_NAME_MAX + 32], place[32], buckets[32];
    record_key(name, key);
    snprintf(place, sizeof place, "%016" PRIx64, record->place);
    snprintf(buckets, sizeof buckets, "%" PRIu64, record->buckets);
    return call(link, 6, (const char *[]){"HSET", key, "place", place, "buckets", buckets}, NULL,
                why);
}

/* ---- slices ---- */

static void slice_key(uint64_t place, uint64_t slice, char out[KEY_MAX])
{
    snprintf(out, KEY_MAX, "abdada:backing:%016" PRIx64 ":%" PRIx64, place, slice);
}

/* Field, value, field, value, ... */
static uint64_t restore(const redisReply *reply, struct tt_results *results)
{
    uint64_t entries = 0;
    for (size_t i = 1; reply->type == REDIS_REPLY_ARRAY && i < reply->elements; i += 2) {
        const redisReply *value = reply->element[i];
        size_t count = value->type == REDIS_REPLY_STRING ? value->len / SNAPSHOT_ENTRY_BYTES : 0;
        for (size_t k = 0; k < count; k++) {
            struct tt_scanned entry;
            const uint8_t *at = (const uint8_t *)value->str + k * SNAPSHOT_ENTRY_BYTES;
            if (snapshot_unpack(at, &entry) == ERR_OK) {
                tt_results_restore(results, &entry);
                entries++;
            }
        }
    }
    return entries;
}

enum err backing_link_read(struct backing_link *link, const struct backing_record *record,
                           struct tt_results *results, const _Atomic uint64_t *flushed,
                           uint64_t *entries, char why[REDIS_WHY_MAX])
{
    uint64_t slices = backing_slices(record->buckets);
    uint64_t before = flushed != NULL ? atomic_load(flushed) : 0;
    for (uint64_t asked = 0, got = 0; got < slices; got++) {
        for (; asked < slices && asked < got + PIPELINE; asked++) {
            char key[KEY_MAX];
            slice_key(record->place, asked, key);
            append(link, 2, (const char *[]){"HGETALL", key}, NULL);
        }
        redisReply *reply = NULL;
        enum err err = next_reply(link, &reply, why);
        if (err != ERR_OK) {
            return err;
        }
        if (flushed != NULL && atomic_load(flushed) != before) {
            redis_reader_free(reply);
            return ERR_EXIST;
        }
        *entries += restore(reply, results);
        redis_reader_free(reply);
    }
    link->queued = 0;
    return ERR_OK;
}

/* The entries of a bucket that are kept; returns how many. */
static unsigned pack_bucket(const struct tt_results *results, uint64_t bucket, uint8_t depth_min,
                            uint8_t value[VALUE_MAX])
{
    unsigned count = 0;
    for (unsigned slot = 0; slot < TT_BUCKET_ENTRIES; slot++) {
        struct tt_scanned entry;
        if (tt_results_entry(results, bucket, slot, &entry) && entry.depth >= depth_min) {
            snapshot_pack(value + (size_t)count * SNAPSHOT_ENTRY_BYTES, &entry);
            count++;
        }
    }
    return count;
}

unsigned backing_link_put(struct backing_link *link, uint64_t place, uint64_t slice,
                          const uint64_t bits[BACKING_SLICE / 64], const struct tt_results *results,
                          uint8_t depth_min)
{
    enum { WORDS_MAX = 2 + 2 * BACKING_SLICE, FIELD_MAX = 4 };
    const char *word[WORDS_MAX];
    size_t length[WORDS_MAX];
    char key[KEY_MAX], field[BACKING_SLICE][FIELD_MAX];
    uint8_t value[BACKING_SLICE][VALUE_MAX];
    int words = 2;
    unsigned entries = 0;
    slice_key(place, slice, key);
    word[0] = "HSET";
    word[1] = key;
    length[0] = 4;
    length[1] = strlen(key);
    for (unsigned i = 0; i < BACKING_SLICE; i++) {
        uint64_t bucket = slice * BACKING_SLICE + i;
        if ((bits[i / 64] >> i % 64 & 1) == 0 || bucket >= results->buckets) {
            continue;
        }
        unsigned count = pack_bucket(results, bucket, depth_min, value[i]);
        if (count > 0) {
            word[words] = field[i];
            length[words++] = (size_t)snprintf(field[i], FIELD_MAX, "%u", i & (BACKING_SLICE - 1));
            word[words] = (const char *)value[i];
            length[words++] = (size_t)count * SNAPSHOT_ENTRY_BYTES;
            entries += count;
        }
    }
    if (entries > 0) {
        append(link, words, word, length);
    }
    return entries;
}

enum err backing_link_flush(struct backing_link *link, char why[REDIS_WHY_MAX])
{
    for (; link->queued > 0; link->queued--) {
        redisReply *reply = NULL;
        enum err err = next_reply(link, &reply, why);
        if (err != ERR_OK) {
            return err;
        }
        redis_reader_free(reply);
    }
    return ERR_OK;
}

enum err backing_link_ping(struct backing_link *link, char why[REDIS_WHY_MAX])
{
    return call(link, 1, (const char *[]){"PING"}, NULL, why);
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
            append(link, 2, (const char *[]){"UNLINK", key}, NULL);
        }
        err = backing_link_flush(link, why);
    }
    return err;
}
