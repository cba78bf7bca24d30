/* A call of a Redis: what its script is called with, and what waits for the answer. */
#include "worker/redis/redis_shell_state.h"

#include "common/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { DIGITS_MAX = 24 };

enum how {
    KEY, /* of the shard: prefix, name, number; as an argument the beginning of such keys */
    DIGITS,
    BINARY, /* a number in `length` bytes */
    BYTES,
    TEXT,
    NAMED_NUMBERS, /* figures, as many as there are: the last of a row */
};

/* clang-format off */

/* All that is a key or an argument of a script: what it is called in a row, how it is written, and
 * its value in the call `p` at the shard `of`. */
#define WORDS(X)                                                                              \
    X(BOOT_KEY, KEY, .at = "boot")                                                            \
    X(MEMBERS_KEY, KEY, .at = "m")                                                            \
    X(WORKERS_KEY, KEY, .at = "w")                                                            \
    X(JOBS_KEY, KEY, .at = "jobs")                                                            \
    X(VERSION_KEY, KEY, .at = "jv")                                                           \
    X(FIGURES_KEY, KEY, .at = "f")                                                            \
    X(SESSION_KEY, KEY, .at = "s:", .number = session, .length = 4)                           \
    X(FRESH_KEY, KEY, .at = "s:", .number = p->fresh_session, .length = 4)                    \
    X(JOB_KEY, KEY, .at = "j:", .number = p->id, .length = 8)                                 \
    X(PROGRESS_KEY, KEY, .at = "p:", .number = p->id, .length = 8)                            \
    X(GENERATION_KEY, KEY, .at = "g:", .number = p->namespace_id, .length = 8)                \
    X(WANTED_KEY, KEY, .at = "n:", .number = p->namespace_id, .length = 8)                    \
    X(LEFT_KEY, KEY, .at = "n:", .number = of->last_namespace, .length = 8)                   \
    X(SESSION_KEYS, KEY, .at = "s:")                                                          \
    X(JOB_KEYS, KEY, .at = "j:")                                                              \
    X(PROGRESS_KEYS, KEY, .at = "p:")                                                         \
    X(RESULT_KEYS, KEY, .at = "r:*")                                                          \
    X(AGE_S, DIGITS, .number = REDIS_AGE_S)                                                   \
    X(RESULT_S, DIGITS, .number = REDIS_RESULT_S)                                             \
    X(SESSION_MS, DIGITS, .number = REDIS_SESSION_MS)                                         \
    X(JOBS_MAX, DIGITS, .number = REDIS_JOBS_MAX)                                             \
    X(FROM, DIGITS, .number = p->id)                                                          \
    X(TO, DIGITS, .number = p->id + p->count - 1)                                             \
    X(CURSOR, DIGITS, .number = p->id & REDIS_CURSOR_MAX)                                     \
    X(DEPTH, DIGITS, .number = p->count)                                                      \
    X(STATE, DIGITS, .number = p->state)                                                      \
    X(OFFERS_JOBS, DIGITS, .number = of->has_jobs)                                            \
    X(IS_HELLO, DIGITS, .number = p->is_hello)                                                \
    X(IS_FLUSH, DIGITS, .number = p->is_flush)                                                \
    X(WANTS_RESULTS, DIGITS, .number = (s->flags & PROTO_WANTS_RESULTS) != 0)                 \
    X(BOOT, BINARY, .number = p->is_hello ? p->id : of->boot, .length = REDIS_BOOT_BYTES)     \
    X(SESSION, BINARY, .number = session, .length = 4)                                        \
    X(FRESH, BINARY, .number = p->fresh_session, .length = 4)                                 \
    X(JOB, BINARY, .number = p->id, .length = 8)                                              \
    X(INSTANCE, BINARY, .number = s->instance, .length = 8)                                   \
    X(OWNER, BINARY, .number = s->instance, .length = s->role == PROTO_FRONT ? 8 : 0)         \
    X(TABLE, BINARY, .number = s->table_id, .length = 8)                                      \
    X(HEADER, BYTES, .at = header, .length = sizeof header)                                   \
    X(BODY, BYTES, .at = s->body, .length = s->body_length)                                   \
    X(TOKEN, TEXT, .at = s->token)                                                            \
    X(NAME, TEXT, .at = s->client_name)                                                       \
    X(ROLE, TEXT, .at = s->role == PROTO_WORKER ? "w" : "-")                                  \
    X(JOBS_KNOWN, TEXT, .at = p->is_hello ? "" : of->jobs_version)                            \
    X(FIGURES, NAMED_NUMBERS, .at = NULL)

#define X(name, ...) name,
enum word { END, WORDS(X) };
#undef X

/* KEYS, before those of a batch's nodes, and ARGV. */
static const struct {
    enum word keys[12], args[14];
} row[REDIS_SCRIPT_COUNT] = {
    [REDIS_ASK] = {{BOOT_KEY, SESSION_KEY}, {BOOT, SESSION, SESSION_KEYS, AGE_S, BODY}},
    [REDIS_STORE] = {{BOOT_KEY, SESSION_KEY, GENERATION_KEY},
                     {BOOT, SESSION, SESSION_KEYS, AGE_S, BODY, HEADER, RESULT_S}},
    [REDIS_RELEASE] = {{BOOT_KEY, SESSION_KEY}, {BOOT, SESSION, SESSION_KEYS, AGE_S, BODY}},
    [REDIS_PEEK] = {{BOOT_KEY, SESSION_KEY}, {BOOT, SESSION, SESSION_KEYS}},
    [REDIS_SESSION] = {{BOOT_KEY, SESSION_KEY, FRESH_KEY, MEMBERS_KEY, WORKERS_KEY, LEFT_KEY,
                        WANTED_KEY, JOBS_KEY, VERSION_KEY, FIGURES_KEY},
                       {BOOT, SESSION, FRESH, BODY, SESSION_MS, ROLE, JOBS_KNOWN, JOB_KEYS, HEADER,
                        IS_HELLO, WANTS_RESULTS, FIGURES}},
    [REDIS_BYE] = {{SESSION_KEY, MEMBERS_KEY, WORKERS_KEY, LEFT_KEY, FIGURES_KEY},
                   {SESSION, FIGURES}},
    [REDIS_POST] = {{BOOT_KEY, SESSION_KEY, JOB_KEY, JOBS_KEY, VERSION_KEY, GENERATION_KEY},
                    {BOOT, JOB, TOKEN, INSTANCE, NAME, BODY, SESSION_MS, OFFERS_JOBS, HEADER,
                     JOBS_MAX}},
    [REDIS_STOP] = {{BOOT_KEY, SESSION_KEY, JOB_KEY, JOBS_KEY, VERSION_KEY},
                    {BOOT, JOB, INSTANCE, HEADER, OFFERS_JOBS}},
    [REDIS_REPORT] = {{BOOT_KEY, SESSION_KEY, JOB_KEY, PROGRESS_KEY},
                      {BOOT, DEPTH, STATE, HEADER, BODY, OWNER}},
    [REDIS_SHARE] = {{BOOT_KEY, SESSION_KEY, WANTED_KEY},
                     {BOOT, SESSION, TABLE, SESSION_KEYS, HEADER, BODY}},
    [REDIS_MEMBERS] = {{MEMBERS_KEY}, {FROM, TO, SESSION_KEYS}},
    [REDIS_JOBS] = {{JOBS_KEY, WORKERS_KEY}, {FROM, TO, JOB_KEYS, SESSION_KEYS, PROGRESS_KEYS}},
    [REDIS_STATS] = {{FIGURES_KEY, MEMBERS_KEY, WORKERS_KEY, JOBS_KEY}, {SESSION_KEYS}},
    [REDIS_SCAN] = {{BOOT_KEY}, {BOOT, CURSOR, RESULT_KEYS, DEPTH, IS_FLUSH}},
};

/* clang-format on */

static void put(struct redis_shell *s, const void *bytes, size_t length)
{
    CHECK(s->args < REDIS_ARGS_MAX);
    char *copy = s->key_bytes[s->args];
    if (length > 0 && length <= REDIS_KEY_MAX) {
        memcpy(copy, bytes, length);
    }
    s->arg[s->args] = length <= REDIS_KEY_MAX ? copy : bytes;
    s->arg_length[s->args++] = length;
}

static void put_digits(struct redis_shell *s, uint64_t number)
{
    char digits[DIGITS_MAX];
    put(s, digits, (size_t)snprintf(digits, sizeof digits, "%" PRIu64, number));
}

static void put_key(struct redis_shell *s, const struct redis_shard *of, const char *kind,
                    const uint8_t *bytes, size_t length)
{
    char key[REDIS_KEY_MAX];
    size_t prefix = of->prefix_length, head = prefix + strlen(kind);
    CHECK(head + length <= sizeof key);
    memcpy(key, of->prefix, prefix);
    memcpy(key + prefix, kind, head - prefix);
    memcpy(key + head, bytes, length);
    put(s, key, head + length);
}

unsigned redis_shell_key(struct redis_shell *s, unsigned shard, const char *kind,
                         const uint8_t *bytes, size_t length)
{
    CHECK_THAT(s->args == s->keys, "the keys of a call come before its arguments");
    put_key(s, &s->shard[shard], kind, bytes, length);
    return s->keys = s->args;
}

/* Calls of this shard that the server has not summed up yet. */
static void put_figures(struct redis_shell *s, const struct redis_shard *of)
{
    static const char *const name[] = {
#define X(figure) #figure,
        REDIS_FIGURES(X)
#undef X
    };
    for (unsigned i = 0; i < REDIS_FIGURE_COUNT; i++) {
        if (of->figure[i] > 0) {
            put(s, name[i], strlen(name[i]));
            put_digits(s, of->figure[i]);
        }
    }
}

static void put_words(struct redis_shell *s, const struct redis_pending *p, const enum word *word)
{
    const struct redis_shard *of = &s->shard[p->shard];
    const uint32_t session = p->session != 0 ? p->session : p->fresh_session;
    uint8_t bytes[sizeof(uint64_t)], header[REDIS_HEADER_BYTES] = {p->shard};
    const struct {
        enum how how;
        uint64_t number;
        unsigned length;
        const void *at;
    } all[] = {
#define X(name, how_, ...) [name] = {.how = how_, __VA_ARGS__},
        WORDS(X)
#undef X
    };
    redis_put(header + 1, of->boot, REDIS_BOOT_BYTES);
    for (; *word != END; word++) {
        const char *at = all[*word].at;
        const unsigned length = all[*word].length;
        switch (all[*word].how) {
        case KEY:
            redis_put(bytes, all[*word].number, length);
            put_key(s, of, at, bytes, length);
            break;
        case DIGITS:
            put_digits(s, all[*word].number);
            break;
        case BINARY:
            redis_put(bytes, all[*word].number, length);
            put(s, bytes, length);
            break;
        case BYTES:
            put(s, at, length);
            break;
        case TEXT:
            put(s, at, strlen(at));
            break;
        case NAMED_NUMBERS:
            put_figures(s, of);
            break;
        }
    }
}

struct redis_pending redis_shell_pending(const struct redis_shell *s, unsigned shard,
                                         enum redis_script script, uint32_t request, uint64_t id)
{
    return (struct redis_pending){
        .script = script,
        .shard = (uint8_t)shard,
        .session = s->shard[shard].session,
        .namespace_id = s->namespace_id,
        .request = request,
        .id = id,
    };
}

void redis_shell_begin(struct redis_shell *s, const struct redis_pending *pending)
{
    s->keys = s->args = 0;
    s->is_hashed = false;
    put_words(s, pending, row[pending->script].keys);
    s->keys = s->args;
}

bool redis_shell_send(struct redis_shell *s, const struct redis_pending *pending)
{
    unsigned i = s->last_pending, tries = 0;
    do { /* the oldest calls are most likely answered */
        i = (i + 1) % REDIS_PENDING_MAX;
    } while (s->pending[i].is_used && ++tries < REDIS_PENDING_MAX);
    if (s->pending[i].is_used) {
        return false;
    }
    put_words(s, pending, row[pending->script].args);
    bool sent = redis_link_call(s->link, s->shard[pending->shard].slot, pending->script, s->keys,
                                s->args, s->arg, s->arg_length, i, clock_us());
    if (sent) {
        s->last_pending = i;
        s->pending[i] = *pending;
        s->pending[i].is_used = true;
        if (pending->script == REDIS_SESSION || pending->script == REDIS_BYE) {
            memset(s->shard[pending->shard].figure, 0,
                   sizeof s->shard->figure); /* they went, too */
        }
    }
    return sent;
}

bool redis_shell_call(struct redis_shell *s, const struct redis_pending *pending)
{
    redis_shell_begin(s, pending);
    return redis_shell_send(s, pending);
}

bool redis_shell_take_pending(struct redis_shell *s, uint64_t tag, struct redis_pending *out)
{
    if (tag >= REDIS_PENDING_MAX || !s->pending[tag].is_used) {
        return false;
    }
    *out = s->pending[tag];
    s->pending[tag] = (struct redis_pending){.is_used = false};
    return true;
}
