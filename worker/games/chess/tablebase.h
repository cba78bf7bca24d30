/* tablebase: what Syzygy tables know of positions with few pieces (de Man 2013), by libfathom,
 * which is loaded when a path is set: nothing is needed where none is.
 *
 * The library has one set of tables for the process, and Debian's has no locks: one thread probes
 * at a time. Threads: chess_tablebase_open and _root while nobody probes, by one thread; the others
 * by any. Memory: the library maps the files; the path is kept. */
#ifndef WORKER_GAMES_CHESS_TABLEBASE_H
#define WORKER_GAMES_CHESS_TABLEBASE_H

#include "worker/games/chess/position.h"

/* What a won position is worth: more than any evaluation, less than a mate. At the root a move away
 * is worth less by the plies until a capture or pawn move, below 4096. */
enum { CHESS_TABLEBASE_WIN = 21000, CHESS_TABLEBASE_ROOT_WIN = 29000 };

/* `path`: folders with colons between; NULL or empty: no tables any more. ERR_ABSENT: there is no
 * libfathom, or no table in the folders; ERR_NOMEM. On failure the tables are as before, and `why`
 * has a line. */
enum err chess_tablebase_open(const char *path, char *why, size_t why_size);

/* Pieces of the largest table; 0: there are none. */
unsigned chess_tablebase_pieces(void);

/* The value from the side to move, by the rule of fifty moves: a win, a draw or a loss. False:
 * nothing is known, as where a side may castle or the last move changed nothing. */
bool chess_tablebase_probe(const void *position, int *score);

/* The value of a move under the rule of fifty moves; a higher one is better. The rule spoils a
 * cursed win and saves a blessed loss. The tables round the plies until a capture, pawn move or
 * mate down by up to one: an unsure value decides the game with the hundredth ply, or is a draw. */
enum chess_tablebase_value {
    CHESS_TABLEBASE_LOST,
    CHESS_TABLEBASE_UNSURE_LOSS,
    CHESS_TABLEBASE_BLESSED_LOSS,
    CHESS_TABLEBASE_DRAW,
    CHESS_TABLEBASE_CURSED_WIN,
    CHESS_TABLEBASE_UNSURE_WIN,
    CHESS_TABLEBASE_WON,
};

struct chess_tablebase_move {
    uint16_t move;
    enum chess_tablebase_value value;
    int score; /* for the side to move; a win that makes way sooner is worth more, and so is a loss
                  that takes longer; 0 for all that is neither won nor lost for sure */
};

/* All legal moves (at most GAME_MOVES_MAX) with their values, the best first; their number, 0:
 * nothing is known. */
unsigned chess_tablebase_root(const struct chess_position *position,
                              struct chess_tablebase_move *moves);

#endif
