/* uci_engine: a UCI engine of somebody else as a process of ours. It may die, hang, answer late or
 * twice, and print rubbish: every exchange has a time-out, after which it is killed, and a bestmove
 * counts for the last "go" alone, as a "readyok" is awaited before each.
 *
 *     dead ──start──> starting ──uciok──> idle ──go──> preparing ──readyok──> searching
 *      ^                                   ^                                      │ stop
 *      └──(it ended, or a time-out)        └────────────bestmove──── stopping <───┘
 *
 * The engine dies with the thread that started it, and leads a process group of its own.
 *
 * Threads: one, which may not end before the engine. Memory: open, and buffers that grow to the
 * longest line, and to what the engine has not read yet. Blocking: close, until the process has
 * ended: a second at most, and then until it has given its memory back. */
#ifndef WORKER_PROGRAMS_ENGINE_UCI_ENGINE_H
#define WORKER_PROGRAMS_ENGINE_UCI_ENGINE_H

#include "common/err.h"
#include "proto/lane/lane.h"
#include "worker/programs/line_reader.h"
#include "worker/programs/uci_text.h"

#include <sys/types.h>

enum {
    UCI_ENGINE_OPTIONS_MAX = 256,
    UCI_ENGINE_LINE_MAX = 65536, /* longer ones are left out */
    UCI_ENGINE_GREETING_MAX = 65536,
    UCI_ENGINE_START_MS = 10000, /* until uciok */
    UCI_ENGINE_READY_MS = 60000, /* until readyok, while nothing is searched: memory is cleared */
    UCI_ENGINE_CLEAR_MS = 20000, /* the same after stop, if it may be clearing its memory */
    UCI_ENGINE_STOP_MS = 1000, /* from stop to bestmove ... */
    UCI_ENGINE_HURRY_MS = 300, /* ... and when nobody waits for it any more */
    /* An engine that has answered a question during a search before is asked when it was silent for
     * so long, and has so long to answer. */
    UCI_ENGINE_SILENT_MS = 2000,
    UCI_ENGINE_ALIVE_MS = 5000,
    UCI_ENGINE_WHY_MAX = 256,
};

enum uci_engine_state {
    UCI_ENGINE_DEAD,
    UCI_ENGINE_STARTING,
    UCI_ENGINE_IDLE,
    UCI_ENGINE_PREPARING,
    UCI_ENGINE_SEARCHING,
    UCI_ENGINE_STOPPING,
};

enum uci_said {
    UCI_NOTHING, /* more */
    UCI_STARTED, /* name, greeting and options are known; its options have their defaults */
    UCI_BANNER, /* a line before its answer to "uci" */
    UCI_LINE, /* any other line; of a search, or an answer to something that was sent */
    UCI_BESTMOVE, /* of the last "go" */
    UCI_READY, /* `done` has grown */
    UCI_DIED, /* `why` says how */
};

/* An engine's answer to "uci". */
struct uci_greeting {
    char name[UCI_NAME_MAX]; /* id name */
    char text[UCI_ENGINE_GREETING_MAX]; /* all its lines but the last */
    struct uci_option option[UCI_ENGINE_OPTIONS_MAX];
    unsigned options;
};

struct uci_engine {
    /* fixed after open */
    char *word[UCI_WORDS_MAX], *room;
    struct uci_greeting *is; /* the last, which a dead engine keeps */
    struct uci_greeting *becomes; /* the one under way */
    /* state */
    enum uci_engine_state state;
    uint32_t asked, done; /* questions "isready", and those that were answered */
    unsigned deaths; /* in a row, without a bestmove between */
    char why[UCI_ENGINE_WHY_MAX];
    /* private */
    pid_t process; /* 0: none, nor one that still has to be collected */
    int in, out; /* of ours: what it reads, what it prints */
    uint64_t due_us; /* when it is given up; 0: never */
    uint64_t active_us, start_us; /* its last line; not started again before */
    uint32_t barrier, probe; /* questions that "go", and a sign of life, wait for; 0: none */
    bool lost; /* questions were open at the last bestmove: the engine may answer them later, or
                  never ... */
    uint64_t settle_us; /* ... they count as answered then; 0: no answer has come yet */
    bool stops; /* right after the "go" that waits */
    uint32_t cleared; /* the question after the last command that clears its memory */
    bool answers; /* it has answered a question during a search */
    char *go; /* the command that waits for the barrier */
    struct line_reader printed;
    bool has_ended;
    bool is_missing; /* it could not be started, which the next call says */
    unsigned fills; /* of `printed`, since the caller was last told to go on with other things */
    char *unsent; /* what it has not read */
    size_t unsent_size, unsent_used;
};

/* Cuts the command; starts nothing. ERR_SYNTAX, ERR_NOMEM. */
enum err uci_engine_open(struct uci_engine *engine, const char *command);
/* Says "quit", and kills it where it does not end soon. Accepts a zeroed struct, and twice. */
void uci_engine_close(struct uci_engine *engine);

/* Starts it if it is dead, and not too often: after a death at once, after more in a row ever
 * later. */
void uci_engine_start(struct uci_engine *engine, uint64_t now_us);
void uci_engine_kill(struct uci_engine *engine, const char *why);

/* Reads what it has printed; *line, without its end, is valid until the next call and may be
 * changed. To be called until it says UCI_NOTHING, which it also does now and then while an engine
 * prints without end. */
enum uci_said uci_engine_next(struct uci_engine *engine, uint64_t now_us, char **line);

/* A command, without its end. Nothing where it is dead, or starts. */
void uci_engine_send(struct uci_engine *engine, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Asks "isready", if it has started; returns the question's number. */
uint32_t uci_engine_ask(struct uci_engine *engine, uint64_t now_us);
/* A "go" command. The engine is idle. */
void uci_engine_go(struct uci_engine *engine, const char *go, uint64_t now_us);
void uci_engine_stop(struct uci_engine *engine, uint64_t now_us);
/* The same where it is late already. */
void uci_engine_hurry(struct uci_engine *engine, uint64_t now_us);

static inline bool uci_engine_is_busy(const struct uci_engine *engine)
{
    return engine->state >= UCI_ENGINE_PREPARING;
}

/* The option of that name, in any case; NULL: there is none. */
const struct uci_option *uci_engine_option(const struct uci_engine *engine, const char *name);

/* Waits until the engine, the lane (NULL: none) or the descriptor `input` (-1: none) has something,
 * a signal comes, or it is `until_us`, but not longer than a tenth of a second. True: `input` has.
 */
bool uci_engine_wait(struct uci_engine *engine, const struct lane *lane, int input,
                     uint64_t until_us);

#endif
