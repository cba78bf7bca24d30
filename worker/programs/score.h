/* score: the result of a search as text: scores, moves, lines, and whether the expected move was
 * found. Threads: any. Memory: none. */
#ifndef WORKER_PROGRAMS_SCORE_H
#define WORKER_PROGRAMS_SCORE_H

#include "worker/engine/job.h"
#include "worker/programs/suite.h"
#include "worker/search/search.h"

/* "cp", "mate" or "discs"; a mate is counted in moves of the mating side, negative when mated. */
const char *score_kind(const struct game *game, int score, int64_t *value);
/* "+0.25", "#3", "#-2" */
void score_text(const struct game *game, int score, char *text, size_t size);

/* The move's text, or "none". `text` has GAME_MOVE_TEXT_MAX bytes. */
const char *score_move(const struct job *job, uint16_t move, char *text);

typedef void score_line_word(void *context, const char *move);
/* Whether players of the game write moves in standard algebraic notation. */
bool score_has_san(const struct game *game);
/* Calls `word` for each move of the line, in the game's text or in that notation. */
void score_line(const struct job *job, const struct search_line *line, bool is_san,
                score_line_word *word, void *context);
/* The notation of texts that others wrote: `line` has moves in the game's text with blanks between,
 * from `position`. Writes those of its beginning that are legal, with blanks between, as many as
 * fit;
 * "" where the position is none, or players of the game write no such notation. */
void score_text_san(const struct game *game, const char *position, const char *line, char *text,
                    size_t size);
/* Prints " MOVE" on a FILE. */
void score_print_word(void *out, const char *move);

/* Leaves in `moves` (SUITE_MOVES_MAX bytes, of a case) those that can be read and are legal,
 * without numbers before them (1. 1...). True: there were others; the first is in `unread`. */
bool score_drop_unread(char *moves, const struct job *job, char *unread, size_t size);
/* Whether the case says if `move` is right: it does not if it names none, or if a name that was
 * left out may be the move's. */
bool score_is_judged(const struct suite_case *c, const struct job *job, uint16_t move);
/* Whether `move` is among the case's best moves, if it has any, and not among those to avoid, and
 * `score` what the case says, if it does. */
bool score_solved(const struct suite_case *c, const struct job *job, uint16_t move, int score);

#endif
