/* proof: what a proof of an Othello score claims, and the order in which it claims it.
 *
 * A claim says of a board that its value is at least v, or at most v. "At least" follows from "at
 * most" of one move, which the proof names; "at most" follows from "at least" of every move. A
 * board without a move passes; where neither side has one the discs decide. A board with `leaf`
 * empty squares or fewer is a leaf: its claim is not divided, but to be solved. A claim that was
 * made before, of the same board from the same side, is not made again. So a proof of a score is
 * its board, its leaf, and the moves of the claims "at least" one after the other
 * (docs/proof.md). `solve`, which writes a proof, and `check` take this same walk.
 *
 * Threads: any, each with its own walk. Memory: a set of the claims, which grows; freed by close.
 */
#ifndef WORKER_PROGRAMS_OTHELLO_PROOF_H
#define WORKER_PROGRAMS_OTHELLO_PROOF_H

#include "worker/games/othello/claim.h"

#include "common/err.h"

#include <stddef.h>

enum {
    PROOF_LEAF = 16, /* empty squares of a leaf, unless the user says otherwise */
    PROOF_LEAF_MAX = 24,
    PROOF_PATH_MAX = 2 * OTHELLO_SQUARES, /* moves from the root, passes included */
    PROOF_PASS = OTHELLO_SQUARES,
    PROOF_CLAIM_TEXT_MAX = OTHELLO_CLAIM_TEXT_MAX,
};

struct proof_claim {
    struct othello_board board;
    int8_t value;
    bool is_lower; /* at least `value`; else at most */
    bool is_black; /* side to move, for texts */
    bool is_made; /* set in the set of claims, where its place is not empty */
};

enum proof_end {
    PROOF_VALID, /* every claim follows from others, or is a leaf's */
    PROOF_FALSE, /* walk.claim is false: the game is over there with another value, or the move that
                    is to show it is not legal */
    PROOF_STOPPED, /* a callback said so */
};

struct proof_set {
    struct proof_claim *at;
    size_t count, room; /* a power of two, or 0 */
};

struct proof_walk {
    unsigned leaf;
    void *self;
    /* The move that shows the walk's claim, which is "at least". False: stop. */
    bool (*choose)(void *self, const struct proof_walk *walk, unsigned *square);
    uint64_t memory_max; /* bytes that the set of claims may have; 0: no bound */
    /* A claim to be solved. NULL: nobody wants to know. False: stop. */
    bool (*solve)(void *self, const struct proof_claim *claim);
    /* state */
    struct proof_claim claim; /* the one under way, or where the walk ended */
    unsigned char path[PROOF_PATH_MAX]; /* squares or PROOF_PASS: the moves that lead there */
    unsigned length;
    uint64_t claims, leaves; /* of all walks; leaves are claims, too */
    struct proof_set set;
    enum err err; /* why it was stopped, if no callback did: ERR_NOMEM, ERR_FULL (memory_max) */
};

/* Proves that the board is worth `score`, -64 to 64: at least that, then at most that. */
enum proof_end proof_walk(struct proof_walk *walk, struct othello_board board, bool is_black,
                          int score);
/* Accepts a zeroed struct, and twice. */
void proof_close(struct proof_walk *walk);

/* "BOARD SIDE >= +2" */
void proof_claim_text(const struct proof_claim *claim, char text[PROOF_CLAIM_TEXT_MAX]);

/* Whether the claim is true, by the plain solver (claim.h). */
bool proof_solve(const struct proof_claim *claim, uint64_t *nodes);

#endif
