/* err: the one list of things that can go wrong, and CHECK for things that cannot.
 *
 * Zero is success; on failure every output is untouched. A bug is a CHECK (kept in release builds),
 * a bad peer or bad input is an error code, no memory at start is ERR_NOMEM said once and exit 1.
 * Threads: any. Memory: none. */
#ifndef COMMON_ERR_H
#define COMMON_ERR_H

#include <stddef.h>

#define ERR_MAP(X)                                   \
    X(NOMEM, "out of memory")                        \
    X(RANGE, "value out of range")                   \
    X(SYNTAX, "text not understood")                 \
    X(ILLEGAL, "position or move against the rules") \
    X(FULL, "no room left")                          \
    X(PROTO, "malformed message")                    \
    X(VERSION, "unknown protocol version")           \
    X(TYPE, "unknown message type")                  \
    X(IO, "input or output failed")                  \
    X(DOWN, "no shard is up")                        \
    X(EXIST, "already there")                        \
    X(ABSENT, "not there")

enum err {
    ERR_OK = 0,
#define ERR_ID(name, text) ERR_##name,
    ERR_MAP(ERR_ID)
#undef ERR_ID
        ERR_COUNT
};

/* The text of an error, for people. Never NULL; "unknown error" for a number not in the list. */
const char *err_text(enum err code);

/* Writes to `why`, of `size` bytes, one line for people. Returns the code. */
enum err err_say(enum err code, char *why, size_t size, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Ends the process with the place and the condition: the program is wrong, not its input. */
_Noreturn void err_bug(const char *file, int line, const char *condition);

#define CHECK(condition) ((condition) ? (void)0 : err_bug(__FILE__, __LINE__, #condition))
/* The same of an invariant, which `text` says in words. */
#define CHECK_THAT(condition, text) \
    ((condition) ? (void)0 : err_bug(__FILE__, __LINE__, text ": " #condition))

#endif
