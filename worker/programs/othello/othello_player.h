/* othello_player: what the protocols of Othello have in common: the command line, lines of input, a
 * search in a thread of its own, the game so far.
 *
 * Threads: the main thread; `iteration` and `progress` of a protocol are called as observers are
 * (observer.h): one at a time, by a thread that does not search, while the record does not change.
 * A signal ends the search under way and then the program. Memory: the engine's tables and one
 * buffer of lines, from the start to the end of othello_player_main. It ends as well when nobody
 * reads its answers any more. */
#ifndef WORKER_PROGRAMS_OTHELLO_OTHELLO_PLAYER_H
#define WORKER_PROGRAMS_OTHELLO_OTHELLO_PLAYER_H

#include "worker/programs/background.h"
#include "worker/programs/cli.h"
#include "worker/programs/commands.h"
#include "worker/programs/othello/othello_record.h"

struct othello_player;

struct othello_protocol {
    const char *program, *summary;
    bool has_game; /* takes --game, because the protocol is not Othello's alone */
    bool is_ordered; /* a line that comes during a search waits for its end */
    /* A line without its end; changed. False: the program ends. */
    bool (*obey)(struct othello_player *player, char *line);
    /* The search has ended; `is_stopped`: by us, so that nothing is to follow it. */
    void (*answer)(struct othello_player *player, bool is_stopped);
    /* A line that nobody can obey. */
    void (*refuse)(struct othello_player *player, const char *why);
    /* Of engine_observer; NULL: nothing is said. */
    void (*iteration)(struct othello_player *player, unsigned line,
                      const struct search_result *result, const struct engine_status *status);
    void (*progress)(struct othello_player *player, const struct engine_status *status);
};

struct othello_player {
    const struct othello_protocol *protocol;
    void *self; /* the protocol's */
    /* command line; the protocol sets what is so without it */
    const char *game, *select;
    struct cli_resources resources;
    uint32_t depth; /* plies; endings are solved from further on: othello_player_depth */
    uint32_t time_ms; /* for a move where no clock says more; 0: no limit */
    /* state */
    struct othello_record record;
    struct engine *engine;
    struct searching_metrics *metrics;
    struct commands input;
    struct background search; /* search, with the result of the last one */
    unsigned said_workers, said_shards_up; /* to people who read stderr */
};

struct othello_limits {
    unsigned depth; /* at least 1 */
    uint32_t time_ms; /* 0: no limit */
    unsigned lines; /* at least 1 */
};

/* The whole program: returns its exit status. */
int othello_player_main(struct othello_player *player, int argc, char *argv[]);

/* Begins to search the record's position, which is not the end of a game; `answer` follows. */
void othello_player_search(struct othello_player *player, const struct othello_limits *limits);
/* Ends the search under way, if there is one, with its answer. */
void othello_player_stop(struct othello_player *player);
/* The depth to search the record's position to in this time (0: no limit), where `depth` is for the
 * middle game: the number of empty squares, which solves it, if that is hardly more; but less than
 * that where the time is hardly enough, since an exact search that does not end is of no use. */
unsigned othello_player_depth(const struct othello_player *player, unsigned depth,
                              uint32_t time_ms);
/* Whether the value of this depth is that of perfect play. */
bool othello_player_is_solved(const struct othello_player *player,
                              const struct search_result *result);

enum { OTHELLO_HELP_MAX = 80 };
/* What other machines bring: "2 workers search 61% of the nodes; 1 of 1 shards up". False: nobody
 * was asked for help. */
bool othello_player_help(const struct engine_status *status, char text[OTHELLO_HELP_MAX]);

/* Text for one line of output: what cannot be printed becomes '?'. */
void othello_player_clean(char *text);

#endif
