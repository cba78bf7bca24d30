/* analyse_options: the command lines of `abdada analyse` and `abdada solve`, and what the two have
 * in common. Threads: the main thread. Memory: texts are borrowed from the command line, but for
 * the suite's. */
#ifndef WORKER_PROGRAMS_ANALYSE_ANALYSE_OPTIONS_H
#define WORKER_PROGRAMS_ANALYSE_ANALYSE_OPTIONS_H

#include "worker/programs/cli.h"
#include "worker/programs/suite.h"

struct analyse {
    const char *program;
    /* command line */
    const char *epd, *obf, *games;
    uint32_t empties; /* of each of the games; SUITE_LAST: where it ends */
    const char *file; /* name of one file, for messages */
    struct cli_search search;
    struct cli_resources resources;
    uint32_t depth;
    bool json, fresh, verbose;
    bool solves; /* `abdada solve`: only an exact score counts as an answer */
    bool all, wld, resume; /* solve: all best moves; win, draw or loss; with old results */
    const char *proof; /* solve: file of the proof; NULL: none is wanted */
    uint32_t proof_leaf; /* empty squares of its leaves */
    const char *scored; /* solve: file for boards with their scores; NULL: none */
    const char *positions; /* auto, together or apart: `is_apart`, after analyse_resolve */
    struct job job; /* without a position: what all positions have in common */
    /* state */
    struct suite suite; /* without lines that are no position ... */
    unsigned wrong_lines; /* ... of which there were so many: the exit status is 1 */
    unsigned empties_most; /* solve: empty squares of the position that has most */
    bool is_apart; /* each searcher searches positions of its own (engine_bag.h) */
    struct scored *out; /* NULL: no file of scores is wanted */
    bool has_failed; /* set when an answer could not be written */
    unsigned unwritten; /* answers that `out` lacks, as they are not exact: the exit status is 1 */
    unsigned done; /* positions that have their answers */
    struct engine *engine;
    struct searching_metrics *metrics;
    struct prove *prove; /* NULL: no proof is written */
    bool said_full; /* set when it was said that the proof's disk is full */
    const struct job *running; /* job with the position */
    /* sums over the positions */
    struct analyse_sum {
        struct counters counters;
        uint64_t time_us, all_us;
        bool is_shared; /* more than one searcher took part */
    } total;
    unsigned solved, asked;
    bool said_refused; /* set when it was said that workers refuse the job */
    bool is_alone; /* no shard was up at the end of the last position */
    struct search_result *line; /* lines of the last iteration; NULL: only the best is wanted */
    unsigned lines;
    struct {
        unsigned depth; /* depth of the iteration; 0: nothing is known */
        int lower, upper; /* GAME_INFINITE and its negative: neither is known */
    } bound; /* bound of the value of the iteration under way */
};

/* Each reads a command line. They return -1 to go on, or the exit status after a message. */
typedef int analyse_read(struct analyse *a, int argc, char *argv[]);
analyse_read analyse_read_options, analyse_read_solve_options;
/* Resolves the names given as options, reads files, and refuses bad positions: a line of a file
 * that is none is named on stderr, and the others stay. As above. */
int analyse_resolve(struct analyse *a);

#endif
