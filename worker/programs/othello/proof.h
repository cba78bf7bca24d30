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
 * Threads: any, each with its own walk and reader. Memory: a set of the claims, which grows, and
 * the leaves of a file that are kept, within a bound; freed by close. Nothing blocks but the
 * reader. */
#ifndef WORKER_PROGRAMS_OTHELLO_PROOF_H
#define WORKER_PROGRAMS_OTHELLO_PROOF_H

#include "worker/games/othello/claim.h"
#include "worker/programs/othello/proof_file.h"

enum {
    PROOF_LEAF = 16, /* empty squares of a leaf, unless the user says otherwise */
    PROOF_LEAF_MAX = 24,
    PROOF_PATH_MAX = 2 * OTHELLO_SQUARES, /* moves from the root, passes included */
    PROOF_PASS = OTHELLO_SQUARES,
};

enum proof_end {
    PROOF_VALID, /* every claim follows from others, or is a leaf's */
    PROOF_FALSE, /* walk.claim is false: the game is over there with another value, or the move that
                    is to show it is not legal */
    PROOF_STOPPED, /* walk.err says why */
};

struct proof_set {
    struct othello_claim *at;
    size_t count, room; /* a power of two, or 0 */
};

struct proof_walk {
    unsigned leaf;
    void *self;
    /* Finds the move that shows the walk's claim, which is "at least". An error stops the walk. */
    enum err (*choose)(void *self, const struct proof_walk *walk, unsigned *square);
    uint64_t memory_max; /* bytes that the set of claims may have; 0: no bound */
    /* Takes the walk's claim, which is a leaf's, to be solved. NULL: nobody wants to know. An error
     * stops the walk. */
    enum err (*solve)(void *self, const struct proof_walk *walk);
    /* state */
    struct othello_claim claim; /* the one under way, or where the walk ended */
    unsigned char path[PROOF_PATH_MAX]; /* squares or PROOF_PASS: the moves that lead there */
    unsigned length;
    uint64_t claims, leaves; /* of all walks; leaves are claims, too */
    struct proof_set set;
    enum err err; /* why it was stopped: a callback's; ERR_NOMEM, ERR_FULL (memory_max) */
};

/* Proves that the board is worth `score`, -64 to 64: at least that, then at most that. */
enum proof_end proof_walk(struct proof_walk *walk, struct othello_board board, bool is_black,
                          int score);
/* Accepts a zeroed struct, and twice. */
void proof_close(struct proof_walk *walk);

/* Whether the claim is true, by the plain solver (claim.h). */
bool proof_solve(const struct othello_claim *claim, uint64_t *nodes);

/* ---- what a file claims, checked but for its leaves ---- */

/* What is proved. */
struct proof_score {
    struct othello_board board;
    bool is_black;
    int score;
};

struct proof_contents {
    /* fixed before it is read */
    uint64_t memory_max; /* bytes of the file, the claims and the kept leaves; 0: PROOF_MEMORY */
    unsigned leaf_max; /* leaves of more empty squares are refused; 0: PROOF_LEAF_MAX */
    void *self;
    /* Whether the next leaf is kept. NULL: each is. */
    bool (*keeps)(void *self);
    /* After each position. Its kept leaves go afterwards. False: stop, and they stay. NULL: they
     * stay, too. */
    bool (*solve)(void *self);
    /* what was read */
    struct proof_head head;
    struct proof_score *score; /* of each position that was read */
    unsigned scores;
    uint64_t claims; /* leaves included */
    uint64_t leaves;
    struct othello_claim *leaf; /* those that are kept, in the order of the file */
    size_t kept, room;
    struct othello_claim false_claim; /* with ERR_ILLEGAL */
};

/* Reads the whole file into `contents`, which is zero before but for the fixed fields. If every
 * leaf's claim is true, so is every score (proof_solve). ERR_ILLEGAL: a claim does not follow;
 * ERR_PROTO, ERR_VERSION: this is no whole proof; ERR_FULL: memory_max is too little for it;
 * ERR_RANGE: its leaves are larger than leaf_max; ERR_NOMEM; one line for people is then in
 * why[PROOF_WHY_MAX]. ERR_ABSENT: `solve` ended it. To be closed in any case. */
enum err proof_contents_read(struct proof_contents *contents, struct proof_reader *reader,
                             char *why);
void proof_contents_close(struct proof_contents *contents);

#endif
