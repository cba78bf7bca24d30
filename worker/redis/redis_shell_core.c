#include "worker/redis/redis_shell_core.h"

#include "common/clock.h"
#include "common/log.h"
#include "common/rng.h"

#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    NO_PENDING = 0xffff,
    WORDS_MAX = 256,
    NUMBER_MAX = 24,
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

uint64_t redis_reply_number_at(const struct redisReply *reply, size_t i, uint64_t max)
{
    uint64_t value = 0;
    bool ok = redis_reply_number(redis_reply_at(reply, i), &value);
    return ok && value <= max ? value : 0;
}

/* ---- calls ---- */

void redis_shell_arg(struct redis_shell *s, const void *bytes, size_t length)
{
    CHECK(s->args < REDIS_ARGS_MAX);
    char *copy = s->key_bytes[s->args];
    if (length > 0 && length <= REDIS_KEY_MAX) {
        memcpy(copy, bytes, length);
    }
    s->arg[s->args] = length <= REDIS_KEY_MAX ? copy : bytes;
    s->arg_length[s->args++] = length;
}

void redis_shell_text(struct redis_shell *s, const char *text)
{
    redis_shell_arg(s, text, strlen(text));
}

unsigned redis_shell_key(struct redis_shell *s, unsigned shard, const char *kind, const void *bytes,
                         size_t length)
{
    const struct redis_shard *of = &s->shard[shard];
    size_t kind_length = strlen(kind);
    CHECK(s->args == s->keys && s->keys < REDIS_ARGS_MAX &&
          of->prefix_length + kind_length + length <= REDIS_KEY_MAX);
    char *to = s->key_bytes[s->keys];
    memcpy(to, of->prefix, of->prefix_length);
    memcpy(to + of->prefix_length, kind, kind_length);
    memcpy(to + of->prefix_length + kind_length, bytes, length);
    s->arg[s->keys] = to;
    s->arg_length[s->keys] = of->prefix_length + kind_length + length;
    s->args = ++s->keys;
    return s->keys;
}

unsigned redis_shell_named_key(struct redis_shell *s, unsigned shard, const char *kind)
{
    return redis_shell_key(s, shard, kind, "", 0);
}

unsigned redis_shell_number_key(struct redis_shell *s, unsigned shard, const char *kind,
                                uint64_t number)
{
    uint8_t bytes[8];
    redis_put(bytes, number, sizeof bytes);
    return redis_shell_key(s, shard, kind, bytes, sizeof bytes);
}

void redis_shell_begin(struct redis_shell *s, unsigned shard)
{
    uint8_t id[4];
    s->keys = s->args = 0;
    s->is_hashed = false;
    redis_put(id, s->shard[shard].session, sizeof id);
    redis_shell_named_key(s, shard, "boot");
    redis_shell_key(s, shard, "s:", id, sizeof id);
}

void redis_shell_begin_args(struct redis_shell *s, unsigned shard)
{
    redis_shell_arg(s, s->shard[shard].boot, REDIS_BOOT_BYTES);
}

void redis_shell_prefix_arg(struct redis_shell *s, unsigned shard, const char *kind)
{
    char prefix[REDIS_KEY_MAX];
    snprintf(prefix, sizeof prefix, "%s%s", s->shard[shard].prefix, kind);
    redis_shell_text(s, prefix);
}

void redis_shell_number_arg(struct redis_shell *s, uint64_t value)
{
    char digits[NUMBER_MAX];
    snprintf(digits, sizeof digits, "%" PRIu64, value);
    redis_shell_text(s, digits);
}

void redis_shell_u64_arg(struct redis_shell *s, uint64_t value)
{
    uint8_t bytes[8];
    redis_put(bytes, value, sizeof bytes);
    redis_shell_arg(s, bytes, sizeof bytes);
}

void redis_shell_header_arg(struct redis_shell *s, unsigned shard)
{
    uint8_t header[REDIS_HEADER_BYTES];
    header[0] = (uint8_t)shard;
    memcpy(header + 1, s->shard[shard].boot, REDIS_BOOT_BYTES);
    redis_shell_arg(s, header, sizeof header);
}

void redis_shell_session_arg(struct redis_shell *s, uint32_t session)
{
    uint8_t id[4];
    redis_put(id, session, sizeof id);
    redis_shell_arg(s, id, sizeof id);
}

struct redis_pending redis_shell_pending(const struct redis_shell *s, unsigned shard,
                                         enum redis_script script, uint32_t request)
{
    return (struct redis_pending){
        .script = script,
        .shard = (uint8_t)shard,
        .session = s->shard[shard].session,
        .request = request,
    };
}

/* A batch may name a node twice: then both operations are on one key, and the second finds what the
 * first has done. */
static unsigned node_key(struct redis_shell *s, unsigned shard, const char *kind,
                         const uint8_t *bytes, size_t length)
{
    unsigned at = (unsigned)rng_mix(redis_get((const char *)bytes, 8) + bytes[length - 1]);
    if (!s->is_hashed) {
        memset(s->place, 0, sizeof s->place);
        s->is_hashed = true;
    }
    for (;; at++) {
        uint16_t *place = &s->place[at % REDIS_PLACES];
        if (*place == 0) {
            *place = (uint16_t)redis_shell_key(s, shard, kind, bytes, length);
            return *place;
        }
        unsigned prefix = s->shard[shard].prefix_length;
        size_t kind_length = strlen(kind), whole = prefix + kind_length + length;
        const char *known = s->arg[*place - 1];
        if (s->arg_length[*place - 1] == whole && memcmp(known + prefix, kind, kind_length) == 0 &&
            memcmp(known + prefix + kind_length, bytes, length) == 0) {
            return *place;
        }
    }
}

unsigned redis_shell_result_key(struct redis_shell *s, unsigned shard, uint64_t key)
{
    uint8_t bytes[8];
    redis_put(bytes, key, sizeof bytes);
    return node_key(s, shard, "r:", bytes, sizeof bytes);
}

unsigned redis_shell_inflight_key(struct redis_shell *s, unsigned shard, uint64_t key,
                                  uint8_t depth)
{
    uint8_t bytes[9];
    redis_put(bytes, key, 8);
    bytes[8] = depth;
    return node_key(s, shard, "i:", bytes, sizeof bytes);
}

void redis_shell_open_pending(struct redis_shell *s)
{
    for (unsigned i = 0; i < REDIS_PENDING_MAX; i++) {
        s->pending[i].next = (uint16_t)(i + 1 < REDIS_PENDING_MAX ? i + 1 : NO_PENDING);
    }
}

bool redis_shell_call(struct redis_shell *s, const struct redis_pending *pending)
{
    unsigned i = s->free_pending;
    if (i == NO_PENDING) {
        return false;
    }
    bool sent = redis_link_call(s->link, s->shard[pending->shard].slot, pending->script, s->keys,
                                s->args, s->arg, s->arg_length, i, clock_us());
    if (sent) {
        s->free_pending = s->pending[i].next;
        s->pending[i] = *pending;
        s->pending[i].is_used = true;
    }
    return sent;
}

bool redis_shell_take_pending(struct redis_shell *s, uint64_t tag, struct redis_pending *out)
{
    if (tag >= REDIS_PENDING_MAX || !s->pending[tag].is_used) {
        return false;
    }
    *out = s->pending[tag];
    s->pending[tag] = (struct redis_pending){.next = s->free_pending};
    s->free_pending = (uint16_t)tag;
    return true;
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
    size_t length = proto_encode_as(REDIS_VERSION, message, s->out, sizeof s->out);
    if (length > 0) {
        redis_shell_give_bytes(s, shard, s->out, length);
    }
}

void redis_shell_refuse(struct redis_shell *s, unsigned shard, enum proto_error_code code,
                        uint32_t request, const char *why)
{
    struct proto_message m = {.type = PROTO_ERROR};
    m.error = (struct proto_error){(uint16_t)code, request, proto_text_of(why)};
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
    struct proto_message m = {.type = PROTO_JOB_STOP};
    m.job_stop = (struct proto_job_stop){job, reason};
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
    char words[WORDS_MAX], kind[WORDS_MAX];
    proto_text_printable((struct proto_text){why, (uint32_t)length}, words, sizeof words);
    bool is_left =
        strncmp(words, "READONLY ", strlen("READONLY ")) == 0 && redis_link_leave_replica(s->link);
    if (is_left || s->program == NULL) {
        return;
    }
    snprintf(kind, sizeof kind, "%s", words);
    if (strncmp(kind, "ERR ", 4) != 0) { /* which says nothing */
        kind[strcspn(kind, " ")] = '\0';
    }
    const char *advice = advice_on(words);
    char *from = strstr(words, " script: ");
    if (from != NULL) {
        *from = '\0'; /* which script says nothing to people */
        kind[from - words] = '\0';
    }
    if (is_first_time(s, rng_hash_text(kind) | 1)) {
        log_line(s->program, advice != NULL ? "%s: %s: %s" : "%s: %s", s->name, words, advice);
    }
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
