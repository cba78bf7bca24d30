/* proof_contents: all that a proof's file claims (docs/proof.md), checked but for its leaves.
 *
 * Threads: any, each with its own reader. Memory: the leaves; freed by close. Nothing blocks but
 * the reader. */
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
    struct proof_head head;
    struct proof_score *score; /* of each position that was read */
    unsigned scores;
    uint64_t claims; /* leaves included */
    struct proof_claim *leaf; /* of all positions, in the order of the file */
    size_t leaves, room;
    struct proof_claim false_claim; /* with ERR_ILLEGAL */
};

/* Reads the whole file into `contents`, which is zero before. If every leaf's claim is true, so is
 * every score (proof_solve). ERR_ILLEGAL: a claim does not follow; ERR_PROTO, ERR_VERSION: this is
 * no whole proof; ERR_NOMEM. One line for people is then in why[PROOF_WHY_MAX]. To be closed in any
 * case. */
enum err proof_contents_read(struct proof_contents *contents, struct proof_reader *reader,
                             char *why);
void proof_contents_close(struct proof_contents *contents);

#endif
