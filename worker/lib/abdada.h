/* abdada: the table of an abdada cluster, and its workers, for programs in C and whatever calls C.
 *
 * The table (transposition table of a game-tree search) knows results and who searches what now.
 * For each node a searcher asks, and the verdict says what to do:
 *
 *     ABDADA_CUT    a result closes the window: use answer.score
 *     ABDADA_OPEN   search it in the window that came back; you are counted as being in it now.
 *                   When done, abdada_store the result, or abdada_release without one
 *     ABDADA_BUSY   another searcher is in it and you asked with ABDADA_EXCLUSIVE: do its siblings
 *                   first, then ask again without ABDADA_EXCLUSIVE
 *     ABDADA_ALONE  nobody answered: search it as if there were no table, and neither store nor
 *                   release is needed (a store is welcome)
 *
 * That is ABDADA (J.-C. Weill, 1996): the same program runs N times, each copy searches the whole
 * tree from the same root, and they divide the work by meeting in the table.
 *
 * Values. A key is 64 well-mixed bits that name a position. Scores are -32,767 .. 32,767 from the
 * view of the side to move; -32,767 as a lower and 32,767 as an upper bound say nothing. Depth is
 * 0 .. 250. A move is 16 bits that the table does not read; 0 is none. A slot tells apart several
 * searchers of one handle (fibers); 0 where there is one.
 *
 * Errors. Every function that returns int returns 0 (ABDADA_OK) or more, or a negative enum
 * abdada_error; abdada_error_text says it in words. A wrong argument or a wrong order of calls is
 * an error and does nothing; what a server sends, whatever it is, ends nothing here. The exceptions
 * that no library can see: a pointer that is neither NULL nor from here, and arrays shorter than
 * said.
 *
 * Threads. A handle is used by one thread at a time; different handles by different threads freely.
 * A call on a handle that another thread is in returns ABDADA_E_IN_USE, or waits for its turn where
 * the handle was opened with ABDADA_TURNS; from one of the handle's own callbacks it is
 * ABDADA_E_IN_USE. abdada_share alone may be called by any threads at any time, but abdada_close.
 * A call needs up to 80 KiB of stack. The library starts threads of its own (ZeroMQ's) and no
 * signal reaches them; it writes to no standard stream unless options.log_name is set. A handle
 * does not survive fork: in the child its calls return ABDADA_E_HANDLE; open another there.
 *
 * Time. Nothing happens behind your back: sessions are kept, queued stores sent and in-flight
 * entries renewed when you call. Any call does it; a search that does not ask for a while calls
 * abdada_serve (some nanoseconds when nothing is due), every few thousand nodes. After a few
 * seconds without any call servers take you for dead, which costs your in-flight entries and no
 * more.
 *
 * Losing servers. An ask at which no shard is up returns ABDADA_E_UNAVAILABLE at once; one whose
 * shard falls silent does after options.answer_ms. Go on alone; the library connects again by
 * itself.
 *
 * abdada's own programs use the same core (proto/client/client.h and worker/table's shells). */
#ifndef ABDADA_H
#define ABDADA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

#define ABDADA_VERSION "0.2.0"

/* Structs that begin with struct_size may grow; all others, which the library writes or which come
 * in arrays, stay as they are as long as the soname is libabdada.so.0. */

/* One client of the table. */
struct abdada;
struct abdada_store_op;

enum abdada_error {
    ABDADA_OK = 0,
    ABDADA_WAITING = 1, /* no error: not there yet */
    ABDADA_E_NOMEM = -1, /* out of memory */
    ABDADA_E_HANDLE = -2, /* NULL, closed, or another process's before fork */
    ABDADA_E_ARGUMENT = -3, /* NULL, or a value outside its range */
    ABDADA_E_TICKET = -4, /* no such ticket, or it has ended */
    ABDADA_E_FULL = -5, /* no ticket is free: take answers first; too many jobs; too many servers
                           for this process's limits */
    ABDADA_E_UNAVAILABLE = -6, /* no shard is up, or its answer did not come in time */
    ABDADA_E_ROLE = -7, /* the handle was opened with another role, or without a share_depth */
    ABDADA_E_IN_USE = -8, /* a call on this handle is under way */
    ABDADA_E_ADDRESS = -9, /* `servers` is not understood */
    ABDADA_E_KEYS = -10, /* the keys cannot be read, or none suits */
    ABDADA_E_SYSTEM = -11, /* the system refused a socket, a descriptor ... */
    ABDADA_E_UNSUPPORTED = -12, /* the library was built without Redis, or without TLS to it */
    ABDADA_E_UNKNOWN = -13 /* no such job or shard */
};

/* For people; never NULL, "unknown error" for other numbers. */
const char *abdada_error_text(int error);
/* The library's version, which may be newer than ABDADA_VERSION of the header. */
const char *abdada_version(void);
/* 64 well-mixed bits of a text, to make a namespace: "connect4 6x5, exact, 1". */
uint64_t abdada_hash(const char *text);
/* 64 well-mixed bits of any 64 (a bitboard), to make a key. Different bits stay different. */
uint64_t abdada_mix(uint64_t bits);

/* ---- open and close ---- */

enum abdada_role {
    ABDADA_TABLE = 0, /* ask, store, release, peek */
    ABDADA_FRONT_END = 1 /* these, and jobs */
};

enum abdada_open_flag {
    /* Keys are used as they are. Without it a key is XORed with a mix of the namespace
     * (PROTOCOL.md section 2), so that programs of different namespaces never meet. */
    ABDADA_RAW_KEYS = 1,
    /* Several threads use the handle: a call waits until the other threads' calls have ended. Give
     * each thread a slot of its own to ask with (abdada_ask_many). A handle for each is faster. */
    ABDADA_TURNS = 2
};

/* Zeroed, then struct_size = sizeof (struct abdada_options) and what differs from the defaults. */
struct abdada_options {
    size_t struct_size;
    /* "HOST:PORT,HOST:PORT,..." of all shards (ttserver prints them), or a Redis: "redis://...",
     * "rediss://...", "redis+cluster://...", "rediss+cluster://..."; its password comes from
     * ABDADA_REDIS_PASSWORD or from the file that ABDADA_REDIS_PASSWORD_FILE names. */
    const char *servers;
    const char *keys; /* directory made by `abdada keygen`; NULL: servers without keys */
    uint64_t namespace_id; /* a hash of all that makes scores comparable: game, rules, evaluation,
                              version, kind of search; abdada_hash makes one */
    uint32_t role; /* enum abdada_role */
    uint32_t flags; /* enum abdada_open_flag */
    const char *name; /* for people who list sessions; NULL: "libabdada" */
    uint32_t answer_ms; /* how long an ask waits for its answer, 5 .. 10,000; 0: goes by the round
                           trips so far, 25 .. 250 */
    uint32_t tickets; /* of abdada_ask_send, under way at most, 1 .. 128; 0: 64. With so many, all
                         calls that ask are FULL until one ends */
    /* Another searcher finished a node that you are in; the bound has no ABDADA_BESIDE. A hint: it
     * may be missing or late. You are still counted; store or release as ever. Called from within
     * calls on this handle; calls on it from there return ABDADA_E_IN_USE. NULL: not sent. */
    void (*node_done)(void *self, const struct abdada_store_op *result);
    void *self;
    /* Begins each line on stderr about who refuses this client; NULL: nothing is written, and a
     * server that does not know our keys looks like one that is not there. */
    const char *log_name;
    /* Room for one line for people about why abdada_open failed; NULL: none. Left as it is where
     * `out` is NULL or the options cannot be read. */
    char *why;
    size_t why_size;
    /* The feed (abdada_share). Shallower results are never sent: 1 .. 63; 0: no feed. */
    uint32_t share_depth;
    /* Results a second from others above which less is sent; 0: 1,000,000. Choose the rate at which
     * taking them costs a twentieth of your time. */
    uint32_t share_rate;
};

/* Begins to connect and returns at once, whether a server is there or not. Copies all that it is
 * given but `self`. FULL where the process has too few free descriptors (about 10 for each server,
 * and 8 more); its limits are left as they are. Other errors: ARGUMENT, ADDRESS, KEYS, NOMEM,
 * SYSTEM, UNSUPPORTED; *out is NULL then (if `out` is not). */
int abdada_open(struct abdada **out, const struct abdada_options *options);

/* Sends what is queued, says goodbye, and frees the handle: up to 200 ms. What it was in becomes
 * free for others, its jobs stop. Later calls with it return ABDADA_E_HANDLE (until 64 other
 * handles were closed, or for ever: do not rely on it). */
int abdada_close(struct abdada *t);

/* Begins a new search in that namespace, the same or another one: leaves all nodes, ends all
 * tickets, and empties the feed both ways. Sessions and jobs stay. Never waits. For a moment
 * results of the old namespace may still come: with ABDADA_RAW_KEYS as they are, else under keys of
 * no position. Results that other threads share meanwhile go to one of the namespaces, or arrive
 * under a key of no position. */
int abdada_new_search(struct abdada *t, uint64_t namespace_id);

/* How many shards there are, and how many are up now. */
int abdada_shards(struct abdada *t);
int abdada_connected(struct abdada *t);
/* Waits until all are up, 100 ms have passed after the first, or `timeout_ms` are over. Returns how
 * many are up, at least 1; UNAVAILABLE: none. */
int abdada_wait_connected(struct abdada *t, int timeout_ms);
/* "HOST:PORT" of a shard (0 .. abdada_shards - 1), cut to `size`, ended by a zero byte. */
int abdada_shard_name(struct abdada *t, int shard, char *out, size_t size);
/* In its own words why a shard does not take us (no room, wrong role); the last that refused. Empty
 * when none has. */
int abdada_refusal(struct abdada *t, char *out, size_t size);

/* ---- the table, simple: each call waits for its answer ---- */

enum abdada_verdict { ABDADA_OPEN = 0, ABDADA_CUT = 1, ABDADA_BUSY = 2, ABDADA_ALONE = 3 };

/* Two bits, so that an exact score is both. ABDADA_BESIDE added: the result stays beside those of
 * other depths of its key, which strict asks need; else it takes the place of its key's. */
enum abdada_bound { ABDADA_LOWER = 1, ABDADA_UPPER = 2, ABDADA_EXACT = 3, ABDADA_BESIDE = 4 };

enum abdada_ask_flag {
    ABDADA_EXCLUSIVE = 1, /* BUSY if another searcher is in the node */
    ABDADA_STRICT = 2 /* a result of the very depth alone may answer; else of that or deeper */
};

/* Nodes are told apart by key and depth. To be alone at a key whatever the depth (the depths of
 * searches with reductions differ), ask with this depth and ABDADA_EXCLUSIVE, which no result of
 * less depth answers, store with the true depth, and release with this one. */
enum { ABDADA_ANY_DEPTH = 250 };

struct abdada_answer {
    int16_t score; /* CUT */
    int16_t alpha, beta; /* OPEN: the window narrowed by what is known; ALONE: as asked (below) */
    uint16_t move; /* the best known, 0 none; of a result of any depth */
    uint16_t nproc; /* searchers in the node; with you if it is OPEN */
    uint8_t verdict; /* enum abdada_verdict */
    uint8_t bound; /* CUT: enum abdada_bound of the score, which is of the depth asked, or deeper */
};

/* A result, for abdada_peek. */
struct abdada_peeked {
    int16_t lower, upper; /* -32,767, 32,767: unknown */
    uint16_t move;
    uint16_t nproc; /* searchers in (key, depth asked) */
    uint8_t depth; /* depth of the result; 0 with unknown bounds: none */
    uint8_t reserved[3];
};

/* Waits for the answer, at most options.answer_ms. On an error *answer is ALONE with the window as
 * asked, cut to -32,767 .. 32,767, if `answer` is not NULL, so a search with alpha < beta in that
 * range need not check the code; a wider one is an ARGUMENT. An ask for a node that this slot is in
 * already renews it. */
int abdada_ask(struct abdada *t, uint64_t key, unsigned depth, int alpha, int beta, unsigned flags,
               struct abdada_answer *answer);
/* The result of a node; ends your being in it, if `depth` is that of the ask: with another one the
 * result is kept, but you stay in the node for which you asked, and others find it BUSY. So extend
 * before you ask. Queued: it leaves with the next ask to the same shard, after 1 ms at any later
 * call, or at abdada_flush. UNAVAILABLE: it was dropped. */
int abdada_store(struct abdada *t, uint64_t key, unsigned depth, int score, unsigned bound,
                 unsigned move);
/* Ends your being in a node without a result (the search was stopped); `depth` is that of the ask.
 * Queued likewise. Of a node that you are not in: harmless. */
int abdada_release(struct abdada *t, uint64_t key, unsigned depth);
/* Reads a result, and how many are in (key, depth), without joining them. Waits like abdada_ask. On
 * UNAVAILABLE *peeked is unknown. */
int abdada_peek(struct abdada *t, uint64_t key, unsigned depth, struct abdada_peeked *peeked);

/* ---- batches: one wait for all ---- */

struct abdada_ask_op {
    uint64_t key;
    int16_t alpha, beta;
    uint8_t depth;
    uint8_t flags; /* enum abdada_ask_flag */
    uint16_t slot;
};

struct abdada_store_op {
    uint64_t key;
    int16_t score;
    uint16_t move;
    uint16_t slot;
    uint8_t depth;
    uint8_t bound; /* enum abdada_bound, perhaps with ABDADA_BESIDE added */
};

struct abdada_release_op {
    uint64_t key;
    uint16_t slot;
    uint8_t depth;
    uint8_t reserved[5]; /* not read */
};

struct abdada_peek_op {
    uint64_t key;
    uint8_t depth;
    uint8_t reserved[7]; /* not read */
};

/* `count` of each, any number; 0 does nothing. All are checked before anything is done. A call is
 * one message of up to 1,024 operations to each shard that owns any of the keys: a hundred cost
 * little more than one. Stores and releases are queued as those of single calls are, but a call
 * with 64 or more of them sends all that is queued at its end. Answers come in the order of the
 * operations; single ones that are lost are ALONE (unknown). UNAVAILABLE: all of them are (stores,
 * releases: no shard was up). */
int abdada_ask_many(struct abdada *t, const struct abdada_ask_op *op, size_t count,
                    struct abdada_answer *answer);
int abdada_store_many(struct abdada *t, const struct abdada_store_op *op, size_t count);
int abdada_release_many(struct abdada *t, const struct abdada_release_op *op, size_t count);
int abdada_peek_many(struct abdada *t, const struct abdada_peek_op *op, size_t count,
                     struct abdada_peeked *peeked);
/* Sends queued stores and releases now. */
int abdada_flush(struct abdada *t);

/* ---- the feed: results of others, unasked ---- */

/* An ask waits for its answer, which pays only for nodes that take some milliseconds. Share the
 * results of shorter nodes instead, and take what others share into a table of your own.
 *
 * When results leave: in one message every 2 ms, until no results of others have come for 2 s. Then
 * a few leave every 10 ms, to find others, and the rest is dropped as not wanted. A handle that
 * only takes does not show itself: where one other shares, it gets those few. They leave by calls
 * on the handle, also while one waits. Which leave: those of a least depth, which begins at
 * options.share_depth and adjusts itself in eighths of a ply. It rises while more than
 * options.share_rate results a second come from others or the shards are busy, and falls again.
 *
 * Depth: a result deeper than 63 arrives as one of 63, and with ABDADA_BESIDE added not at all: a
 * strict search wants the very depth.
 *
 * Memory: 1,024 results that wait to be sent and 4,096 that wait to be taken; abdada_open
 * allocates it. Losses: what has no room is dropped and counted ("share_lost" of abdada_stats).
 * Shards and networks may lose results, too: the feed keeps nothing and confirms nothing. Where
 * several handles fill one table of yours, give one of them a feed. */

/* Shares a result. Any thread may call it at any time, but not during abdada_close. It never waits,
 * takes no lock, and costs some nanoseconds where the result is not wanted: too shallow, or nobody
 * is there, which is ABDADA_OK as well. FULL: dropped. ROLE: the handle has no feed. */
int abdada_share(struct abdada *t, uint64_t key, unsigned depth, int score, unsigned bound,
                 unsigned move);
/* The same for `count` results, which are all checked first; slots are not read. FULL: those that
 * had no room were dropped. */
int abdada_share_many(struct abdada *t, const struct abdada_store_op *op, size_t count);
/* Moves up to `capacity` results of others into `out` and returns how many; if that is `capacity`,
 * more may be there. Waits for its turn alone (ABDADA_TURNS; without it ABDADA_E_IN_USE says that
 * another thread is in the handle; any one may call). Call it every few hundred microseconds: like
 * any call on the handle it sends what is due. A result has slot 0, a bound without ABDADA_BESIDE,
 * and all in the ranges above. With more than 16 others some are your own. Check that its move is
 * legal: anybody may send anything. */
int abdada_take_shared(struct abdada *t, struct abdada_store_op *out, size_t capacity);

/* ---- split: send now, search on, take the answer later ---- */

/* A request under way; never 0. It keeps its place until you end it: poll until ABDADA_OK or
 * ABDADA_E_UNAVAILABLE, or abdada_cancel. With options.tickets of them all asks are FULL. */
typedef uint32_t abdada_ticket;

/* Never waits. UNAVAILABLE: no shard is up, nothing was sent; FULL. */
int abdada_ask_send(struct abdada *t, const struct abdada_ask_op *op, abdada_ticket *ticket);
/* Has it come? Never waits. OK: *answer is written and the ticket has ended. WAITING. UNAVAILABLE:
 * it was lost, *answer is ALONE, and the ticket has ended. On other errors *answer is ALONE too,
 * without a window. */
int abdada_ask_poll(struct abdada *t, abdada_ticket ticket, struct abdada_answer *answer);
/* The same, waiting up to `timeout_ms`; negative: until it ends, at most options.answer_ms. */
int abdada_ask_await(struct abdada *t, abdada_ticket ticket, int timeout_ms,
                     struct abdada_answer *answer);
/* Ends a ticket that nobody wants any more; the node is released unless this slot was in
 * it before. */
int abdada_cancel(struct abdada *t, abdada_ticket ticket);

/* ---- in an event loop ---- */

/* Sends and takes what there is, keeps sessions, renews. Never waits. */
int abdada_serve(struct abdada *t);
/* One descriptor for poll, epoll, select (POLLIN alone), open as long as the handle: readable when
 * abdada_serve has something to do, by what came or by the clock. When it is readable call
 * abdada_serve. Before you poll it, try your tickets (abdada_ask_poll) and job events: any call may
 * have taken in what they wait for. Do not read it or close it. */
int abdada_fd(struct abdada *t);
/* Without the descriptor: milliseconds after which abdada_serve wants to be called at the latest.
 */
int abdada_deadline_ms(struct abdada *t);

/* ---- statistics ---- */

struct abdada_figure {
    char name[32]; /* ended by a zero byte */
    uint64_t value;
};

/* This client's counters: asks, peeks, stores, timeouts, late, ups, downs, refused, malformed ...
 * Writes at most `capacity` and returns how many there are. Take them by name; the order and the
 * set may change. */
int abdada_stats(struct abdada *t, struct abdada_figure *out, size_t capacity);
/* A shard's (PROTOCOL.md, STATS_ANSWER); waits for its answer. UNKNOWN: no such shard. UNAVAILABLE.
 */
int abdada_shard_stats(struct abdada *t, int shard, struct abdada_figure *out, size_t capacity);

/* ---- jobs: let the cluster's workers search (role ABDADA_FRONT_END) ---- */

enum abdada_job_flag {
    ABDADA_JOB_STRICT = 1, /* a value depends on position and depth alone */
    ABDADA_JOB_FULL = 2, /* forward pruning allowed; not with STRICT */
    ABDADA_JOB_WAITS = 4, /* workers wait for each answer of a shard */
    ABDADA_JOB_FRESH = 8 /* with results of its own: nothing of earlier jobs is used */
};

/* Zeroed, then struct_size and what differs from the defaults. */
struct abdada_job {
    size_t struct_size;
    const char *game; /* NULL: "chess" */
    const char *position; /* for chess a FEN or "startpos"; NULL: "startpos" */
    const char *algorithm; /* NULL: "abdada" */
    uint64_t evaluation; /* hash of rules and evaluation; 0: the worker's own */
    uint64_t namespace_id; /* of its results; with evaluation 0 the lower 32 bits are 0, and each
                              worker fills them in */
    uint64_t nodes; /* limit, 0 none */
    uint32_t time_ms; /* limit, 0 none */
    uint32_t flags; /* enum abdada_job_flag */
    uint8_t depth; /* the last iteration, 1 .. 100; 0: no limit; of engines ("uci:...") 1 .. 250 */
    uint8_t remote_depth; /* nodes of at least this depth ask the shards; 0: the worker's choice */
};

enum abdada_job_state {
    ABDADA_JOB_SEARCHING = 0,
    ABDADA_JOB_ENDED = 1, /* this worker has finished, or was stopped */
    ABDADA_JOB_REFUSED = 2, /* this worker cannot search it: unknown game or algorithm, bad
                               position, another build */
    ABDADA_JOB_BARRED = 3 /* a shard does not take the job: `text` says why; `instance` is 0 */
};

enum { ABDADA_TEXT_MAX = 1024 };

/* What one worker (or shard) says of one job. Each worker reports several times a second while it
 * searches, then now and then; totals are its own. A job is done when an event of its depth (100
 * without a limit) comes. A game with a known end, as Othello's, stops at its end if that is
 * nearer: the job is done when nobody searches and the worker with the greatest depth is ENDED. A
 * worker that leaves for another job is ENDED, too, and may come back. Any worker may say anything
 * here: check that moves are legal. */
struct abdada_job_event {
    uint64_t job;
    uint64_t instance; /* names the worker */
    uint64_t nodes, asks, busy, deferred, duplicated;
    int16_t score; /* of that iteration, from the side to move: for chess centipawns; 31,000 - p:
                      mate in p plies, -31,000 + p: mated */
    uint16_t move; /* its move, in the game's 16 bits; 0 none */
    uint8_t state; /* enum abdada_job_state */
    uint8_t depth; /* the last finished iteration; 0: none, then score and move say nothing */
    uint8_t reserved[2];
    int32_t shard; /* shard by which it came */
    /* The best line: moves separated by blanks, the first is the best. BARRED: why. */
    char text[ABDADA_TEXT_MAX + 1];
};

/* Posts a job to all shards, also to those that come up later, until abdada_job_stop or
 * abdada_close. Copies. *id names it. Up to 16 at once: FULL. ROLE; ARGUMENT. */
int abdada_job_post(struct abdada *t, const struct abdada_job *job, uint64_t *id);
/* The next event of any open job. Waits up to `timeout_ms` (negative: for ever): WAITING. Of one
 * worker older news is dropped when newer is here, so it is enough to come by now and then; and no
 * event comes twice or goes back, as long as not more than 256 workers report. */
int abdada_job_next(struct abdada *t, int timeout_ms, struct abdada_job_event *event);
/* Workers leave it. UNKNOWN: no such job, or stopped. Reports on it may come for a moment. */
int abdada_job_stop(struct abdada *t, uint64_t id);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
