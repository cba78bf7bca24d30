/* engine_limits: a "go" command: what it says to other searchers, when the answer is due, and how
 * it is said again to an engine that starts late.
 *
 * Threads: any. Memory: none. Pure: time comes with every call. */
#ifndef WORKER_PROGRAMS_ENGINE_ENGINE_LIMITS_H
#define WORKER_PROGRAMS_ENGINE_ENGINE_LIMITS_H

#include "proto/codec.h"
#include "worker/programs/uci_text.h"

struct engine_limits {
    struct uci_go go;
    uint64_t begin_us; /* time from which on its clock runs */
    bool has_clock; /* a time is given */
    unsigned depth; /* 0: none */
    uint64_t nodes; /* 0: none */
    uint32_t think_us; /* about so long a move may take, by what is given; 0: no limit */
    uint64_t stop_us, answer_us; /* time by which the engine is told to stop, and by which a move is
                                    said without it; 0: never */
    char others[PROTO_TEXT_MAX + 1]; /* the command for others: they are stopped in time */
};

/* `words` is what follows "go". False: there are more searchmoves than others can be told. */
bool engine_limits_read(const char *words, bool is_black, uint64_t now_us,
                        struct engine_limits *out);
/* After "ponderhit": the clock runs from now on. */
void engine_limits_hit(struct engine_limits *limits, bool is_black, uint64_t now_us);
/* The whole command for an engine that begins now: what has passed is taken off its clock. */
void engine_limits_rest(const struct engine_limits *limits, const char *words, bool is_black,
                        uint64_t now_us, char *out, size_t size);

#endif
