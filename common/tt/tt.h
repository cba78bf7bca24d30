/* tt: the operations on a transposition table that knows which nodes are in flight, and their
 * fields.
 *
 * The four operations (RetrieveAsk, StoreHash, Release, Peek) have the same meaning on every
 * table: embedded, sharded, simulated. Source: Weill 1996, figures 1 and 2, with three differences
 * (see proto/PROTOCOL.md): CUT is tried before BUSY, a deeper ask does not wipe a shallower result,
 * and nproc lives beside the entries. Pure types; no I/O, no clock. */
#ifndef COMMON_TT_TT_H
#define COMMON_TT_TT_H

#include <stdbool.h>
#include <stdint.h>

enum {
    TT_SCORE_MAX = 32767, /* an upper bound that says nothing */
    TT_SCORE_MIN = -32767, /* a lower bound that says nothing */
    TT_DEPTH_MAX = 250,
};

/* A verdict is never a score: the two are separate fields of an answer. */
enum tt_verdict {
    TT_OPEN = 0, /* search it, in the window that came back; you are a holder now */
    TT_CUT = 1, /* the score closes the window; this ask did not make you a holder */
    TT_BUSY = 2, /* the node has another holder and you asked to be the only one; nothing changed */
};

/* Bits, so that an exact score is both. */
enum tt_bound {
    TT_LOWER = 1,
    TT_UPPER = 2,
    TT_EXACT = 3,
    /* Beside one of these, in a store: the result stays beside those of other depths of its key, as
     * strict asks need. In one entry a key they would replace each other, and where check
     * extensions lead to a position at two depths, a child that is finished would look unknown to
     * others. */
    TT_BESIDE = 4,
};

/* In place of a bound, in a message to other hosts and in a notice: no result, but a foreign claim
 * (worker/table/share.h). The score says which, the move names the host. */
enum tt_claim { TT_CLAIM = 0, TT_CLAIM_BEGINS = 0, TT_CLAIM_ENDS = 1 };

enum tt_ask_flag {
    TT_EXCLUSIVE = 1, /* BUSY if (key, depth) has another holder */
    TT_STRICT = 2, /* only an entry of the very depth asked may answer */
};

/* A searcher that has a node in flight: a session and one of its slots (one per fiber or thread).
 */
struct tt_holder {
    uint32_t session;
    uint16_t slot;
};

struct tt_ask {
    uint64_t key;
    int16_t alpha, beta; /* alpha < beta */
    uint8_t depth;
    uint8_t flags; /* enum tt_ask_flag */
    uint16_t slot;
};

struct tt_answer {
    enum tt_verdict verdict;
    int16_t score; /* CUT only */
    int16_t alpha, beta; /* OPEN: the window narrowed by what is known; alpha < beta */
    uint16_t move; /* proof of the lower bound, where there is one; else for order; 0: none */
    uint16_t nproc; /* holders of (key, depth): with the asker when OPEN registered it */
};

struct tt_store {
    uint64_t key;
    int16_t score;
    uint8_t depth;
    uint8_t bound; /* enum tt_bound */
    uint16_t move;
    uint16_t slot;
};

struct tt_release {
    uint64_t key;
    uint8_t depth;
    uint16_t slot;
};

struct tt_peek {
    uint64_t key;
    uint8_t depth;
};

struct tt_peeked {
    int16_t lower, upper; /* TT_SCORE_MIN, TT_SCORE_MAX: unknown */
    uint8_t depth; /* depth of the entry; 0, with unknown bounds, where there is no entry */
    uint16_t move;
    uint16_t nproc; /* holders of (key, asked depth) */
    uint16_t foreign; /* of them, on other hosts; from a table of this host alone, else 0 */
};

/* An entry of the table as it lies there. */
struct tt_scanned {
    uint64_t key;
    int16_t lower, upper; /* TT_SCORE_MIN, TT_SCORE_MAX: unknown */
    uint16_t move;
    uint8_t depth;
};

/* Whether a table may have such an entry; TT_SCORE_MAX is the most that `upper` can be. */
static inline bool tt_is_entry(int16_t lower, int16_t upper, unsigned depth)
{
    return depth <= TT_DEPTH_MAX && lower >= TT_SCORE_MIN && lower <= upper;
}

#endif
