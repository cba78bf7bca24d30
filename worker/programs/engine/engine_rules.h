/* engine_rules: the position of a "position" command under our own rules of chess, as far as these
 * are its rules: which moves may be played, and a shorter way to write it. About other games and
 * variants, and Chess960 without its option, nothing is known.
 *
 * Threads: one at a time. Memory: a position. */
#ifndef WORKER_PROGRAMS_ENGINE_ENGINE_RULES_H
#define WORKER_PROGRAMS_ENGINE_ENGINE_RULES_H

#include "proto/codec.h"
#include "worker/engine/job.h"

struct engine_rules {
    bool are_known;
    struct job job; /* its position */
};

/* Takes what follows the word "position". `is_chess`: by the engine's options. */
void engine_rules_set(struct engine_rules *rules, const char *position, bool is_chess,
                      bool is_chess960);
/* Accepts a zeroed struct, and twice. */
void engine_rules_free(struct engine_rules *rules);

/* What follows "position", in no more than PROTO_TEXT_MAX bytes: of a game that is too long as many
 * of its last moves as fit, behind the position before them. False: it is too long, and the
 * rules are not known. */
bool engine_rules_shorten(const char *position, bool is_chess, bool is_chess960,
                          char out[PROTO_TEXT_MAX + 1]);

/* Whether the rules are known, and the move is one; `is_exact`: as the protocol writes it. */
bool engine_rules_allow(const struct engine_rules *rules, const char *move, bool is_exact);
/* Some move; false: there is none, or the rules are not known. */
bool engine_rules_any(const struct engine_rules *rules, char move[GAME_MOVE_TEXT_MAX]);
/* Cuts a line, of moves with blanks between, where a move is illegal; to its first move where the
 * rules are not known. */
void engine_rules_cut(const struct engine_rules *rules, char *line);

/* Whether Black is to move, by the text alone. */
bool engine_rules_is_black(const char *position);

#endif
