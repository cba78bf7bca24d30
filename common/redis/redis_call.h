/* redis_call: a command as it is sent to a Redis, and kept until its answer is there.
 *
 * Threads: one. Memory: one block for each call. */
#ifndef COMMON_REDIS_REDIS_CALL_H
#define COMMON_REDIS_REDIS_CALL_H

#include <stddef.h>
#include <stdint.h>

enum {
    REDIS_CALL_BYTES_MAX = 32 << 20,
    REDIS_CALL_HASH = 40, /* characters of a script's hash */
};

enum redis_call_kind {
    REDIS_CALL_USER, /* these three are the link's */
    REDIS_CALL_MAP,
    REDIS_CALL_SUBSCRIBE,
    REDIS_CALL_AUTH, /* these are the node's */
    REDIS_CALL_SELECT,
    REDIS_CALL_ROLE,
    REDIS_CALL_LOAD,
    REDIS_CALL_READY, /* the last one of a log-in */
    REDIS_CALL_PING,
    REDIS_CALL_ASKING,
};

struct redis_call {
    struct redis_call *next;
    uint64_t tag;
    uint64_t number; /* its number among the user's calls */
    uint64_t first_us, queued_us; /* when the user made it; when it came to this node */
    uint64_t due_us; /* for who keeps it aside */
    enum redis_call_kind kind;
    uint16_t slot;
    uint8_t script; /* number of the script, for EVALSHA and SCRIPT LOAD */
    uint8_t tries;
    size_t hash_at; /* where in `bytes` the script's hash belongs; 0: nowhere */
    size_t length;
    char bytes[];
};

/* A call made of argc arguments; ahead of them, where `script` is not negative, EVALSHA, room for
 * the hash of that script, and `keys`. NULL: no memory, or too large. */
struct redis_call *redis_call_make(enum redis_call_kind kind, int script, unsigned keys,
                                   unsigned argc, const char *const *argv, const size_t *length);
/* One with a password is wiped. Accepts NULL. */
void redis_call_free(struct redis_call *call);
/* A command of up to 6 plain words. */
struct redis_call *redis_call_make_words(enum redis_call_kind kind, unsigned argc,
                                         const char *const *argv);

#endif
