/* game: the port through which a search plays a game. One constant table of functions per game.
 *
 * A position is a block of `position_size` bytes owned by the caller, with its own undo stack
 * inside; copying the bytes copies the position. Nothing here allocates, reads a clock or knows of
 * threads: two threads may use two positions freely. All functions are deterministic. */
#ifndef WORKER_GAMES_GAME_H
#define WORKER_GAMES_GAME_H

#include "common/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    GAME_INFINITE = 32000, /* wider than every score */
    GAME_MATE = 31000, /* -GAME_MATE: the side to move has lost here and now */
    GAME_PROVED_MIN = 20000, /* |score| above: endgame tables or a mate; evaluations stay inside */
    GAME_MATE_MIN = 30000, /* |score| above: a forced mate; evaluations stay strictly inside */
    GAME_MOVES_MAX = 256,
    GAME_UNDO_MAX = 1024, /* moves that may be made on one position, game history included */
    GAME_TEXT_MAX = 128, /* a position's text */
    GAME_MOVE_TEXT_MAX = 8,
    GAME_CLASSES = 1024,
};

enum game_move_flag {
    GAME_NOISY = 1, /* capture or promotion: searched in quiescence */
};

enum {
    GAME_DRAWN_BY_COUNT = GAME_UNDO_MAX + 1, /* draw by the count of moves that change nothing */
    GAME_DRAWN_HERE, /* draw by the position alone */
};

struct game_move {
    uint16_t move; /* never 0; the low 12 bits index the search's history tables */
    uint16_t flags;
    int32_t order; /* noisy moves: higher first among themselves, in 1..1000; quiet moves: 0 */
};

enum game_score_kind { GAME_CENTIPAWNS, GAME_DISCS };

/* What a search takes from its game, because scores are centipawns in one and discs in another.
 * Depths are remaining plies. */
struct game_search {
    unsigned first_iteration, iteration_step; /* depths searched: first, first + step, ... */
    unsigned aspiration_depth; /* the first iteration in a window around the last score */
    int aspiration_width; /* width of that window, to each side */
    /* Selection full only: each rule holds up to (null move and reductions: from) its depth. */
    int reverse_depth, reverse_margin; /* margin for each ply */
    int razor_depth, razor_margin; /* margin for each ply */
    int null_depth, null_margin; /* the evaluation's lead that is worth another ply of reduction */
    int futility_depth, futility_margin; /* margin for each ply */
    int late_depth;
    int exchange_depth, exchange_margin; /* depth and margin a ply for captures */
    int quiet_exchange_margin; /* margin of other moves, for each ply squared */
    int reduce_depth;
    unsigned reduce_from; /* moves searched at full depth first */
    int singular_depth;
    int internal_depth; /* a node without a move from the table is searched a ply less */
    int quiescence_margin; /* a capture that brings less than alpha lacks, and this, is left out */
    unsigned continuations; /* moves back with which a quiet move has a history; 0 to 2 */
    int correction_max; /* of the evaluation, by what searches of the same structure gave; 0 to 127
                         */
    /* ProbCut: deviation[i] is the standard deviation between the values of a search of
     * probcut_depth + i plies and of one of select_forecast_depth, in hundredths of a score; the
     * last holds for all deeper ones. NULL: the game has no ProbCut. The margin is the deviation
     * times probcut_tenths / 10. */
    const short *deviation;
    unsigned deviations;
    int probcut_depth, probcut_tenths;
    /* Games with depth_left and rate: */
    unsigned exact_gap; /* from so many plies before the end the next iteration is the exact one */
    bool prepares; /* but for one of a ply less, whose endings are solved selectively: it is to
                      fill the tables with moves, and its value is likely the exact one */
    int children_depth; /* from it on, a result of a child that refutes the node is taken first */
};

/* What `tests/instruments/tune/search_rules.py` changes here, for a build beside the one it is
 * compared with.
 */
#ifndef GAME_SEARCH_CHANGES
#define GAME_SEARCH_CHANGES
#endif

/* For games whose scores are centipawns. */
#define GAME_SEARCH_CENTIPAWNS                                                                     \
    {                                                                                              \
        .first_iteration = 1, .iteration_step = 1, .aspiration_depth = 4, .aspiration_width = 25,  \
        .reverse_depth = 8, .reverse_margin = 75, .razor_depth = 3, .razor_margin = 220,           \
        .null_depth = 3, .null_margin = 200, .futility_depth = 7, .futility_margin = 90,           \
        .late_depth = 8, .exchange_depth = 6, .exchange_margin = 180, .quiet_exchange_margin = 20, \
        .reduce_depth = 3, .reduce_from = 2, .singular_depth = 8, .internal_depth = 4,             \
        .quiescence_margin = 180, .continuations = 2, .correction_max = 64, GAME_SEARCH_CHANGES    \
    }

/* Which searchers get a position that the game may solve itself. */
enum game_piece {
    GAME_PIECE_KEPT, /* one searcher, and the tables are to know the nodes above small endings */
    GAME_PIECE, /* one searcher of several that do not all share a memory of the solver */
    GAME_PIECE_TOGETHER, /* all searchers of the tree, with one memory */
    GAME_PIECE_SELECTIVE, /* anybody, for a value that is likely the exact one */
};

/* What a game's own solver calls. */
struct game_solver {
    void *self;
    void *memory; /* solver_size() bytes, aligned to a cache line, zero at first; other searchers
                     may use them at the same time */
    bool is_selective; /* a value that is likely the exact one is enough */
    unsigned searcher, searchers; /* its number among those with this memory; how many there are */
    bool divides; /* set if others with this memory search the same tree */
    unsigned count_nodes; /* between two calls of count, or a few more; 0: as the game likes */
    /* Counts nodes since the last call. False: stop, without a value. */
    bool (*count)(void *self, unsigned nodes);
};

struct game {
    const char *name;
    uint64_t namespace_id; /* names rules, keys and evaluation: NAMESPACE_... of <namespaces.h>,
                              which the build makes of the sources */
    size_t position_size;
    enum game_score_kind score_kind;
    int score_max; /* no position is worth more, to either side; at most GAME_MATE */
    const struct game_search *search;

    /* Reads a position. On failure ERR_SYNTAX or ERR_ILLEGAL, one line (no newline) in `why`; else
     * `why` is empty, or says what was left out. */
    enum err (*parse)(void *position, const char *text, char *why, size_t why_size);
    /* Writes the text that parse reads, GAME_TEXT_MAX bytes at most with the end. */
    void (*format)(const void *position, char *text);

    /* All legal moves; 0 when the game is over here. `list` has room for GAME_MOVES_MAX. */
    unsigned (*generate)(const void *position, struct game_move *list);
    /* The legal noisy moves; when in check, all evasions. NULL: the game has no quiescence. */
    unsigned (*generate_noisy)(const void *position, struct game_move *list);
    /* `move` is legal here. The two nest like brackets. */
    void (*make)(void *position, uint16_t move);
    void (*unmake)(void *position, uint16_t move);
    /* Gives the turn away; never when in check. NULL: the game has no null move. */
    void (*make_null)(void *position);
    void (*unmake_null)(void *position);

    uint64_t (*key)(const void *position);
    int (*evaluate)(const void *position); /* from the side to move, |score| < GAME_MATE_MIN */
    /* All three or none: the evaluation of selection full, where it is another one. It keeps what
     * it computes from one position to the next in `evaluator_size` bytes of the caller, which
     * belong to no position; the value is a function of the position alone. */
    size_t evaluator_size;
    void (*evaluator_open)(void *evaluator);
    int (*evaluate_full)(const void *position, void *evaluator);
    int (*finished)(const void *position); /* score where generate gave no move */
    bool (*check)(const void *position); /* extends the search by a ply; false in most games */
    /* The last move was a pass, which costs no depth. NULL: the game has no passes that are moves.
     */
    bool (*passed)(const void *position);
    /* The most moves that cost depth until the game is over: so deep a search is exact, and none is
     * deeper. NULL: not known. */
    unsigned (*depth_left)(const void *position);
    /* Sets the `order` of each move, higher first, below 2^24 either way, for a node of remaining
     * `depth`. NULL: moves are ordered by what they did elsewhere. */
    void (*rate)(const void *position, int depth, struct game_move *list, unsigned count);
    /* A draw by a rule that generate knows nothing of, `ply` moves below the root of a search: 0
     * for no; so many moves ago, when the position was the same, for the second time if that was
     * before the root; GAME_DRAWN_BY_COUNT; GAME_DRAWN_HERE. NULL: the game has no such rule. */
    unsigned (*drawn)(const void *position, unsigned ply);
    /* The game is over here by such a rule, for players and not only for a search: the position is
     * there for the third time, the moves are counted out, or nobody can win. NULL: the game has no
     * such rule. */
    bool (*ended)(const void *position);
    /* The key where draws count: as `key` while a draw by count is far, else unlike for every
     * count. NULL: as `key`. */
    uint64_t (*counted_key)(const void *position);
    /* Names the positions that were there twice and that a move from here can repeat; 0: there are
     * none. NULL: always. */
    uint64_t (*repeatable)(const void *position);
    bool (*losing)(const void *position, uint16_t move); /* static exchange < 0, noisy moves only */
    /* The next five serve selection full; NULL: it goes without. */
    bool (*exchange)(const void *position, uint16_t move, int least); /* static exchange >= least */
    /* What moves where, below GAME_CLASSES: what a move is to the moves after it. */
    unsigned (*move_class)(const void *position, uint16_t move);
    /* Names what positions have in common whose evaluations err alike; 0: nothing. */
    uint64_t (*structure)(const void *position);
    bool (*gives_check)(const void *position,
                        uint16_t move); /* of most moves: as a help to choose */
    /* What tables of endings say, if there are any: the value is a win, 0 or a loss. */
    bool (*tablebase)(const void *position, int *value);
    bool (*zugzwang)(const void *position); /* null move unsound here */
    bool (*cramped)(const void *position); /* ... and here to be verified */

    /* Both or none (NULL). Endings that the game searches itself: whether it does at this remaining
     * depth (a function of these alone), and the value in the window alpha < beta, fail-soft, a
     * function of the position alone, with a best move (0: the game is over, or no move is better
     * than alpha), unless the solver says is_selective. solve leaves the position as it was and
     * returns false if the solver said stop. */
    bool (*solves)(const void *position, int depth, enum game_piece piece);
    bool (*solve)(void *position, int alpha, int beta, const struct game_solver *solver, int *value,
                  uint16_t *move);
    size_t (*solver_size)(void); /* bytes of its memory; NULL: it needs none */
    uint64_t solver_layout; /* what it keeps there, and how: two that differ share no memory */

    /* Moves as text (UCI form in chess). parse_move: ERR_SYNTAX, or ERR_ILLEGAL here. */
    void (*format_move)(const void *position, uint16_t move, char *text);
    enum err (*parse_move)(const void *position, const char *text, uint16_t *move);
};

/* Whether a move that others say is one of the position. */
static inline bool game_is_legal(const struct game *game, const void *position, uint16_t move)
{
    struct game_move list[GAME_MOVES_MAX];
    unsigned n = game->generate(position, list);
    for (unsigned i = 0; i < n; i++) {
        if (list[i].move == move) {
            return true;
        }
    }
    return false;
}

#endif
