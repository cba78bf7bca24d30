/* proof_contents: all that a proof's file claims (docs/proof.md), checked but for its leaves.
 *
 * Threads: any, each with its own reader. Memory: the leaves that are kept, and the claims of a
 * position while it is read, within a bound; freed by close. Nothing blocks but the reader. */
#ifndef WORKER_PROGRAMS_OTHELLO_PROOF_CONTENTS_H
#define WORKER_PROGRAMS_OTHELLO_PROOF_CONTENTS_H

#include "worker/programs/othello/proof.h"
#include "worker/programs/othello/proof_file.h"

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
    /* After each position. Its kept leaves go afterwards. False: stop. NULL: they stay. */
    bool (*solve)(void *self);
    /* what was read */
    struct proof_head head;
    struct proof_score *score; /* of each position that was read */
    unsigned scores;
    uint64_t claims; /* leaves included */
    uint64_t leaves;
    struct proof_claim *leaf; /* those that are kept, in the order of the file */
    size_t kept, room;
    struct proof_claim false_claim; /* with ERR_ILLEGAL */
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
