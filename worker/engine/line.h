/* line: what a line of moves must be before people or other programs see it. A line ends where the
 * game does; and a line that comes with a mate ends in it, after as many plies as the score says.
 * Lines come out of the table in pieces, so neither is so by itself.
 *
 * Threads: any, with a job whose position nobody else uses meanwhile. Memory: some 100 KB of stack,
 * and as much again for a long mate. Nothing blocks. */
#ifndef WORKER_ENGINE_LINE_H
#define WORKER_ENGINE_LINE_H

#include "worker/engine/job.h"
#include "worker/table/embedded.h"

/* Ends the line with the move after which the game is over, by the third occurrence of a position
 * or by counting, too. */
void line_cut(const struct job *job, struct search_line *line);

/* Whether the score is a mate, and the line the one to it. */
bool line_is_mate(const struct job *job, const struct search_result *result);

/* Makes it so, where it is not, beginning with the result's move: searches for a mate, and trusts
 * the table in what it says of replies that are not part of the line. The score becomes the mate of
 * the line, should that be nearer. False: no mate was found in LINE_NODES_MAX nodes, or before
 * `until_us` (clock_us; 0: no limit). Then nothing has changed. */
enum { LINE_NODES_MAX = 20000 };
bool line_complete(const struct job *job, struct embedded *table, uint64_t until_us,
                   struct search_result *result);

/* Both, on a line that is as long as it gets: what is told of it is true. A mate without the line
 * to it is no more than a win, unless the job is strict. */
void line_finish(const struct job *job, struct embedded *table, uint64_t until_us,
                 struct search_result *result);

#endif
