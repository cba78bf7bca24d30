/* line: what a line of moves must be before people or other programs see it. A line ends where the
 * game does; and a line that comes with a mate ends in it, after as many plies as the score says.
 * Lines come out of the table in pieces, so neither is so by itself.
 *
 * Threads: any, with a job whose position nobody else uses meanwhile. Memory: some 100 KB of stack,
 * as much again for a long mate; 64 KiB while a mate is looked for, 1 MiB for the last. Nothing
 * blocks. */
#ifndef WORKER_ENGINE_LINE_H
#define WORKER_ENGINE_LINE_H

#include "worker/engine/job.h"
#include "worker/table/embedded.h"

#include <stdatomic.h>

/* Ends the line with the move after which the game is over, by the third occurrence of a position
 * or by counting, too. */
void line_cut(const struct job *job, struct search_line *line);

/* Whether the score is a mate, and the line the one to it. */
bool line_is_mate(const struct job *job, const struct search_result *result);

/* Node limits of the mate search, which visits about a million nodes a second. */
enum { LINE_NODES = 20000, LINE_NODES_LAST = 4000000 };

struct line_limit {
    unsigned nodes; /* of all calls: each takes what it visits */
    uint64_t until_us; /* clock_us; 0: no limit */
    const atomic_bool *stop; /* NULL: nobody stops it */
    void (*serve)(void *context); /* called every 50 ms or so; NULL: nothing waits */
    void *context;
};

/* Cuts the line. A mate without its line gets it, beginning with the result's move, by a search
 * that trusts the table in what it says of replies that are not part of the line. The score becomes
 * the mate of the line if that is nearer and no other reply lasts longer. Returns false when the
 * limit ends first: the score is no more than a win then, and a later call may find the line. A
 * strict score stays as it is. */
bool line_finish(const struct job *job, struct embedded *table, struct line_limit *limit,
                 struct search_result *result);

#endif
