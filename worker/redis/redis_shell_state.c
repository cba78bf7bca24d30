#include "worker/redis/redis_shell_state.h"

#include "common/clock.h"
#include "common/log.h"
#include "common/rng.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WORDS_MAX = 256,
    SAY_AGAIN_US = 600000000,
    INBOX_HEAD = 1 + sizeof(uint32_t),
    INBOX_KEPT = 256 << 10, /* bytes of room; more is given back when it is empty */
};

/* ---- bytes ---- */

uint8_t *redis_put(uint8_t *to, uint64_t value, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++) {
        to[i] = (uint8_t)(value >> 8 * (bytes - 1 - i));
    }
    return to + bytes;
}

uint64_t redis_get(const char *from, unsigned bytes)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < bytes; i++) {
        value = value << 8 | (uint8_t)from[i];
    }
    return value;
}

/* ---- replies ---- */

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

bool redis_reply_number(const struct redisReply *reply, uint64_t *out)
{
    struct proto_text text;
    if (reply != NULL && reply->type == REDIS_REPLY_INTEGER) {
        *out = reply->integer > 0 ? (uint64_t)reply->integer : 0;
        return true;
    }
    /* The reader ends texts by a zero. */
    return redis_reply_text(reply, &text) && options_unsigned(text.at, 0, 0, out) == ERR_OK;
}

size_t redis_reply_count(const struct redisReply *reply)
{
    return reply != NULL && reply->type == REDIS_REPLY_ARRAY ? reply->elements : 0;
}

const struct redisReply *redis_reply_at(const struct redisReply *reply, size_t i)
{
    return i < redis_reply_count(reply) ? reply->element[i] : NULL;
}

uint64_t redis_reply_number_at(const struct redisReply *reply, size_t i, uint64_t max)
{
    uint64_t value = 0;
    bool ok = redis_reply_number(redis_reply_at(reply, i), &value);
    return ok && value <= max ? value : 0;
}

/* ---- the client ---- */

void redis_shell_give_bytes(struct redis_shell *s, unsigned shard, const uint8_t *bytes,
                            size_t length)
{
    struct redis_inbox *in = &s->inbox;
    uint32_t size = (uint32_t)length;
    CHECK_THAT(!s->is_reading, "nothing arrives while a message is borrowed from the inbox");
    size_t want = in->length + INBOX_HEAD + length;
    if (want > in->room) {
        size_t room = want > 2 * in->room ? want : 2 * in->room;
        uint8_t *grown = realloc(in->bytes, room);
        if (grown == NULL) {
            return;
        }
        in->bytes = grown;
        in->room = room;
    }
    uint8_t *to = in->bytes + in->length;
    to[0] = (uint8_t)shard;
    memcpy(to + 1, &size, sizeof size);
    memcpy(to + INBOX_HEAD, bytes, length);
    in->length = want;
}

bool redis_shell_hand_over(struct redis_shell *s, struct client *client)
{
    struct redis_inbox *in = &s->inbox;
    uint32_t size;
    if (in->read == in->length) {
        if (in->room > INBOX_KEPT) {
            free(in->bytes);
            *in = (struct redis_inbox){0};
        }
        in->read = in->length = 0;
        return false;
    }
    const uint8_t *from = in->bytes + in->read;
    memcpy(&size, from + 1, sizeof size);
    in->read += INBOX_HEAD + size;
    client_receive(client, from[0], from + INBOX_HEAD, size, clock_us());
    return true;
}

void redis_shell_give(struct redis_shell *s, unsigned shard, const struct proto_message *message)
{
    size_t length = proto_encode(message, s->out, sizeof s->out);
    if (length > 0) {
        redis_shell_give_bytes(s, shard, s->out, length);
    }
}

void redis_shell_refuse(struct redis_shell *s, unsigned shard, enum proto_error_code code,
                        uint32_t request, const char *why)
{
    const struct proto_message m = {.type = PROTO_ERROR,
                                    .error = {(uint16_t)code, request, proto_text_of(why)}};
    redis_shell_give(s, shard, &m);
}

void redis_shell_drop_session(struct redis_shell *s, unsigned shard)
{
    struct redis_shard *of = &s->shard[shard];
    if (of->session != 0) {
        of->dropped_session = of->session;
        of->fresh_session = of->fresh_session == of->session ? 0 : of->fresh_session;
        of->session = 0;
    }
}

void redis_shell_end_session(struct redis_shell *s, unsigned shard)
{
    if (s->shard[shard].session != 0) {
        redis_shell_drop_session(s, shard);
        redis_shell_refuse(s, shard, PROTO_ERR_SESSION, 0, "say HELLO first");
    }
}

bool redis_shell_knows_job(const struct redis_shell *s, unsigned shard, uint64_t job)
{
    const struct redis_shard *of = &s->shard[shard];
    unsigned i = 0;
    while (i < of->jobs && of->job[i] != job) {
        i++;
    }
    return i < of->jobs;
}

void redis_shell_offer_job(struct redis_shell *s, unsigned shard, const uint8_t *bytes,
                           size_t length)
{
    struct redis_shard *of = &s->shard[shard];
    struct proto_message m;
    if (proto_decode(&s->decoder, bytes, length, &m) != ERR_OK || m.type != PROTO_JOB) {
        return;
    }
    if (!redis_shell_knows_job(s, shard, m.job.job)) {
        if (of->jobs == REDIS_JOBS_MAX) {
            return;
        }
        of->job[of->jobs++] = m.job.job;
    }
    redis_shell_give_bytes(s, shard, bytes, length);
}

void redis_shell_stop_job(struct redis_shell *s, unsigned shard, uint64_t job, uint8_t reason)
{
    struct redis_shard *of = &s->shard[shard];
    for (unsigned i = 0; i < of->jobs; i++) {
        if (of->job[i] == job) {
            of->job[i] = of->job[--of->jobs];
        }
    }
    const struct proto_message m = {.type = PROTO_JOB_STOP, .job_stop = {job, reason}};
    redis_shell_give(s, shard, &m);
}

/* ---- people ---- */

/* Kinds of trouble by a word of the server, or by what it says where a script meets them, and what
 * to do about it. */
static const struct {
    const char *word, *of_script, *advice;
} troubles[] = {
    {"OOM", NULL,
     "it takes no more results: raise its maxmemory, or let it evict (maxmemory-policy "
     "allkeys-lru)"},
    {"MISCONF", NULL,
     "it takes no writes as long as it cannot save: give its disk room, or set "
     "stop-writes-on-bgsave-error no"},
    {"NOPERM", "user executing the script can't",
     "its ACL forbids that to our user: docs/redis.md says what it needs"},
    {"NOAUTH", NULL, "it wants a password: ABDADA_REDIS_PASSWORD or ABDADA_REDIS_PASSWORD_FILE"},
    {"NOREPLICAS", NULL, "it takes no writes without its replicas"},
    {"BUSY", NULL, "a script of somebody else runs there for too long"},
};

/* NULL: nothing is known about it. The word may stand anywhere: after the server's address, or, in
 * a script's error, after a '-'. */
static const char *advice_on(const char *words)
{
    for (size_t i = 0; i < sizeof troubles / sizeof *troubles; i++) {
        const char *word = troubles[i].word, *at = strstr(words, word);
        char before = at == NULL || at == words ? ' ' : at[-1];
        bool is_word = at != NULL && (before == ' ' || before == '-') && at[strlen(word)] == ' ';
        if (is_word || (troubles[i].of_script && strstr(words, troubles[i].of_script) != NULL)) {
            return troubles[i].advice;
        }
    }
    return NULL;
}

/* False: said lately, by this shell or another of the process. */
static bool is_first_time(struct redis_shell *s, uint64_t kind)
{
    uint64_t now_us = clock_us(), from_us = atomic_load(&s->first->said_from_us);
    if (now_us - from_us >= SAY_AGAIN_US &&
        atomic_compare_exchange_strong(&s->first->said_from_us, &from_us, now_us)) {
        for (unsigned i = 0; i < REDIS_SAID_MAX; i++) {
            atomic_store(&s->first->said[i], 0);
        }
    }
    for (unsigned i = 0; i < REDIS_SAID_MAX; i++) {
        uint64_t none = 0;
        if (atomic_compare_exchange_strong(&s->first->said[i], &none, kind)) {
            return true;
        }
        if (none == kind) {
            return false;
        }
    }
    return false; /* that was enough */
}

void redis_shell_complain(struct redis_shell *s, const char *why, size_t length)
{
    char words[WORDS_MAX], kind[WORDS_MAX], line[REDIS_TEXT_MAX + WORDS_MAX + 2];
    proto_text_printable((struct proto_text){why, (uint32_t)length}, words, sizeof words);
    bool is_left =
        strncmp(words, "READONLY ", strlen("READONLY ")) == 0 && redis_link_leave_replica(s->link);
    if (is_left) {
        return;
    }
    snprintf(kind, sizeof kind, "%s", words);
    if (strncmp(kind, "ERR ", 4) != 0) { /* which says nothing */
        kind[strcspn(kind, " ")] = '\0';
    }
    char *from = strstr(words, " script: ");
    if (from != NULL) {
        *from = '\0'; /* which script says nothing to people */
        kind[from - words] = '\0';
    }
    snprintf(line, sizeof line, "%s: %s", s->name, words);
    redis_shell_say(s, kind, line);
}

void redis_shell_complain_of(struct redis_shell *s, const struct redisReply *r, size_t i)
{
    struct proto_text fault;
    if (redis_reply_text(redis_reply_at(r, i), &fault)) {
        redis_shell_complain(s, fault.at, fault.length);
    }
}

void redis_shell_say(struct redis_shell *s, const char *kind, const char *words)
{
    if (s->program != NULL && is_first_time(s, rng_hash_text(kind) | 1)) {
        const char *advice = advice_on(words);
        log_line(s->program, advice != NULL ? "%s: %s" : "%s", words, advice);
    }
}
