/* prove: writes the proofs of what `abdada solve` found into a file (proof_file.h).
 *
 * The engine's tables know from the solve which moves have proved the bounds of nearly all boards
 * that a proof consists of; the rest is searched again, in null windows.
 *
 * Threads: the main thread. Memory: a set of claims, within a bound, while a proof is written.
 * Blocking: on the disk and on searches. Lines for people are in why[PROVE_WHY_MAX]. */
#ifndef WORKER_PROGRAMS_OTHELLO_PROVE_H
#define WORKER_PROGRAMS_OTHELLO_PROVE_H

#include "worker/engine/engine.h"
#include "worker/programs/othello/proof_file.h"

enum { PROVE_WHY_MAX = (int)PROOF_WHY_MAX + 2 * (int)PROOF_LINE_MAX };

struct prove;

struct prove_options {
    const struct disk_port *disk; /* borrowed until close */
    const char *path;
    struct proof_head head;
    bool resumes;
    uint64_t memory_max; /* bytes of a position's claims and of a file that is resumed; 0:
                            PROOF_MEMORY */
    void *self; /* for await_room, which is proof_writer_set_await's; NULL: none */
    bool (*await_room)(void *self, const char *why);
};

/* Begins the file, or, if it resumes, goes on with the one that is there: what is whole of it
 * stays, if it is of the same positions and true. ERR_EXIST: it is another proof, or another
 * program writes it; ERR_PROTO: it is no proof, or damaged. It stays as it is then, also where
 * prove_position finds that, but not if it ended after a false move: that is found (ERR_RANGE) when
 * it has gone on. ERR_FULL: it needs more memory; ERR_RANGE: there are too many positions; ERR_IO,
 * ERR_NOMEM. */
enum err prove_open(struct prove **out, const struct prove_options *options, char *why);
/* The proof of the next position, which is the job's and was just solved by the engine's run: the
 * score is exact. ERR_ABSENT: engine_stop ended it; ERR_RANGE: it is not the score; as above. What
 * there is of the proof is in the file in any case. */
enum err prove_position(struct prove *prove, struct engine *engine, const struct job *job,
                        int score, char *why);
/* Frees and nulls; accepts a null. ERR_IO. */
enum err prove_close(struct prove **prove, char *why);

#endif
