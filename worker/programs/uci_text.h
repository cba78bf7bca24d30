/* uci_text: what an engine and a GUI say to each other, read: lines of a search, limits, options.
 * An engine may print anything: numbers are clamped, and what is not understood is passed over.
 *
 * Threads: any. Memory: never allocates. Pure. Source: the UCI protocol, April 2006. */
#ifndef WORKER_PROGRAMS_UCI_TEXT_H
#define WORKER_PROGRAMS_UCI_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    UCI_MOVE_MAX = 8, /* of a move's text, with its end */
    UCI_NAME_MAX = 64,
    UCI_VALUE_MAX = 512,
    UCI_VARS_MAX = 4096,
    UCI_MOVES_MAX = 2048, /* of all searchmoves, more than a position can have */
    UCI_WORDS_MAX = 64, /* words of a command */
};

/* Whether the line begins with that word; *rest: what follows it, without blanks before. */
bool uci_begins(const char *line, const char *word, const char **rest);
/* The next word, cut to fit; false: there is none. */
bool uci_next_word(const char **rest, char *word, size_t size);
/* Whether it looks like a move of some game: letters, digits, '@', '+', '=' and '-'. */
bool uci_is_move(const char *word);

/* What an `info` line says. */
struct uci_info {
    unsigned depth; /* 0: not said */
    bool has_score; /* an exact one ... */
    int score; /* ... as in JOB_REPORT (PROTOCOL.md section 8): centipawns, or a mate */
    unsigned multipv; /* 1: the best line, or not said */
    bool has_nodes;
    uint64_t nodes, nps;
    const char *line; /* the moves after `pv`, to the end; "": none */
};

/* False: it is no `info` line, or is one for people (`string`). */
bool uci_info_read(const char *text, struct uci_info *out);
/* Copies an `info` line with other numbers of nodes and nodes a second, where it has some. */
void uci_info_total(const char *text, uint64_t nodes, double nps, char *out, size_t size);
/* "cp 31", "mate -2" */
void uci_score_text(int score, char *out, size_t size);

/* The numbers of a "go" command. Others get those from UCI_DEPTH to UCI_MATE. */
enum uci_limit {
    UCI_WTIME,
    UCI_BTIME,
    UCI_WINC,
    UCI_BINC,
    UCI_MOVESTOGO,
    UCI_MOVETIME,
    UCI_DEPTH,
    UCI_NODES,
    UCI_MATE,
    UCI_LIMITS,
};

#define UCI_NOT_GIVEN INT64_MIN

struct uci_go {
    bool infinite; /* the answer waits for "stop" ... */
    bool ponder; /* ... or for "ponderhit" */
    int64_t limit[UCI_LIMITS]; /* UCI_NOT_GIVEN; eight times one does not overflow */
    char moves[UCI_MOVES_MAX]; /* searchmoves, each between blanks; "": all */
};

/* `words` is what follows "go". Unknown words are skipped, as UCI demands; behind "searchmoves"
 * they are moves. False: there are more of these than fit. */
bool uci_go_read(const char *words, struct uci_go *out);
/* The command for searchers that are stopped in time: depth, nodes, mate, or infinite, and moves.
 * False: it does not fit. */
bool uci_go_text(const struct uci_go *go, char *out, size_t size);

struct uci_limits {
    unsigned depth; /* 1..SEARCH_DEPTH_MAX */
    unsigned mate; /* a mate in so many moves is looked for, and nothing else; 0: none */
    uint32_t time_ms; /* 0: no limit */
    uint32_t spare_us; /* the search ends so much earlier: its answer takes time as well */
    uint64_t nodes; /* 0: no limit */
};

/* `overhead_ms`: what a move takes beside the search, by the opponent's clock. */
struct uci_limits uci_limits_of(const struct uci_go *go, bool black, uint32_t overhead_ms);

enum uci_option_kind { UCI_CHECK, UCI_SPIN, UCI_COMBO, UCI_BUTTON, UCI_STRING };

struct uci_option {
    char name[UCI_NAME_MAX];
    enum uci_option_kind kind; /* one that is unknown counts as a string */
    char normal[UCI_VALUE_MAX]; /* its default */
    long long min, max; /* of a spin */
    char vars[UCI_VARS_MAX]; /* of a combo, each between line ends */
};

/* Reads an `option` line of an engine. */
bool uci_option_read(const char *text, struct uci_option *out);
/* Whether a check, spin or combo has that value; the others have every one. */
bool uci_option_takes(const struct uci_option *option, const char *value);
/* The last name of a path; "" for an empty value, which may be written "<empty>". */
const char *uci_last_name(const char *value);
/* Whether two values have the same last name: hosts keep a file in different folders. */
bool uci_values_agree(const char *one, const char *other);

/* Cuts "name NAME... [value VALUE]", which is changed: names have single blanks between their
 * words, and values none around them. *value is NULL where there is none. False: there is no name.
 */
bool uci_cut_option(char *words, char **name, char **value);

/* Cuts a command into words, as a shell does: blanks end them, quotes and backslashes do not. The
 * shell's other characters are letters. `words` gets copies in `room`, and ends with NULL. False: a
 * quote is open, there is no word, or no room. */
bool uci_cut_command(const char *command, char *room, size_t size, char *words[UCI_WORDS_MAX]);

#endif
