/* othello_player: what the protocols of Othello have in common: the command line, the game so far,
 * the search of its position.
 *
 * Threads: the main thread; `iteration` and `progress` are called as observers are (engine.h):
 * one at a time, by a thread that does not search, while the record does not change. Memory: the
 * engine's tables, the record and the buffer of lines, from the start to the end of
 * othello_player_main. */
#ifndef WORKER_PROGRAMS_OTHELLO_OTHELLO_PLAYER_H
#define WORKER_PROGRAMS_OTHELLO_OTHELLO_PLAYER_H

#include "worker/programs/cli.h"
#include "worker/programs/gui.h"
#include "worker/programs/othello/othello_game.h"

/* ---- the record: the game so far ---- */

enum { OTHELLO_RECORD_MAX = 512, OTHELLO_RECORD_WHY_MAX = 256 };

/* Where it began, its moves, and the position that they lead to, as a job that can be searched.
 * Moves can be taken back and made again; while the job is searched nobody changes it. */
struct othello_record {
    struct job job; /* position and text are those after `at` moves */
    unsigned moves, at;
    uint16_t move[OTHELLO_RECORD_MAX]; /* 0: a pass after the end, which changes nothing */
    bool is_implied[OTHELLO_RECORD_MAX]; /* set for a pass that the next move implies */
};

/* The first position again. ERR_NOMEM: the record is as it was. */
enum err othello_record_clear(struct othello_record *record);
/* All of a game. On failure the record is as it was. */
enum err othello_record_set(struct othello_record *record, const struct othello_game *game,
                            char why[OTHELLO_RECORD_WHY_MAX]);

/* Whether it is Black's turn; where the game is over, whether it would be. */
bool othello_record_black_moves(const struct othello_record *record);
bool othello_record_is_over(const struct othello_record *record);
unsigned othello_record_empties(const struct othello_record *record);
/* The only legal move, or 0. */
uint16_t othello_record_forced(const struct othello_record *record);
/* When the game is over: discs for Black, empty squares counted for the winner. */
int othello_record_score(const struct othello_record *record);

/* Makes a move: a square or OTHELLO_PASSED. Where it is the other side's turn and that has no legal
 * move, its pass is made first. After the end of the game either side may pass, which changes
 * nothing. ERR_ILLEGAL; ERR_FULL. On failure nothing has changed. */
enum err othello_record_play(struct othello_record *record, bool by_black, int move);
/* Makes that pass alone, if this side is not on turn. ERR_ILLEGAL: the other side has moves;
 * ERR_FULL. */
enum err othello_record_turn_to(struct othello_record *record, bool black);
/* Takes back one move, and the pass that it implied. False: there is none. */
bool othello_record_undo(struct othello_record *record);
/* Takes back all but the first so many moves. */
void othello_record_forget(struct othello_record *record, unsigned moves);
/* Goes back, or forth again, to where so many moves were made. */
void othello_record_go_to(struct othello_record *record, unsigned at);

/* ---- the player ---- */

struct othello_player {
    /* fixed by the protocol */
    struct gui gui; /* whose `self` is the protocol's */
    const char *program, *summary, *example[2];
    bool has_game; /* takes --game, because the protocol is not Othello's alone */
    /* As in engine_observer; NULL: nothing is said. */
    void (*iteration)(void *self, const struct search_result *result,
                      const struct engine_status *status);
    void (*progress)(void *self, const struct engine_status *status);
    /* command line; the protocol sets what is so without it */
    const char *game, *select;
    struct cli_resources resources;
    uint32_t depth; /* plies; endings are solved from further on */
    uint32_t time_ms; /* for a move where no clock says more; 0: no limit */
    /* state */
    struct othello_record record;
    struct searching_metrics *metrics;
    unsigned said_workers, said_shards_up; /* to people who read stderr */
};

/* The whole program: returns its exit status. */
int othello_player_main(struct othello_player *player, int argc, char *argv[]);

/* Begins to search the record's position, which is not the end of a game, for that time (0: no
 * limit) and so many lines, at least 1; the answer follows. `depth` of the player is for the middle
 * game: to the number of empty squares, which solves it, if that is hardly more; but less than that
 * where the time is hardly enough, since an exact search that does not end is of no use. */
void othello_player_search(struct othello_player *player, uint32_t time_ms, unsigned lines);
/* Whether the value of this depth is that of perfect play. */
bool othello_player_is_solved(const struct othello_player *player,
                              const struct search_result *result);

enum { OTHELLO_HELP_MAX = 80 };
/* What other machines bring: "2 workers search 61% of the nodes; 1 of 1 shards up". False: nobody
 * was asked for help. */
bool othello_player_help(const struct engine_status *status, char text[OTHELLO_HELP_MAX]);

#endif
