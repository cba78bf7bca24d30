#include "worker/programs/othello/prove.h"

#include "worker/games/othello/othello.h"
#include "worker/programs/othello/proof.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert((int)OTHELLO_PASS == (int)PROOF_PASS + 1, "a move is a square and one");

enum { PLAIN = 6 }; /* leaves of no more empty squares need no tables */

#define NO_ROOM                                                      \
    "the proof needs more memory than this machine (container) has " \
    "besides --hash: use a smaller one, or a larger --proof-leaf"

struct prove {
    struct proof_head head;
    uint64_t memory_max; /* bytes of the reader's file and of the claims */
    unsigned positions; /* that were proved */
    struct proof_writer *writer;
    struct proof_reader reader; /* of what an earlier process has written ... */
    bool is_read; /* ... to its end: the writer goes on */
    /* of the position under way */
    struct engine *engine;
    bool has_moves; /* that the file had */
    char *why;
};

/* ---- what is in the file already is compared, the rest is written ---- */

static enum err is_another(const struct prove *p, const char *wanted, char *why)
{
    return err_say(ERR_EXIST, why, PROVE_WHY_MAX, "it has another proof: line %u is '%s', not %s",
                   p->reader.number, p->reader.line, wanted);
}

/* Goes on behind what an earlier process has written, if `err` says that all of that was read: a
 * member at its end that is torn was under way when it was killed. Then ERR_ABSENT. */
static enum err go_on(struct prove *p, enum err err, char *why)
{
    const struct proof_reader *r = &p->reader;
    const bool is_torn = err == ERR_PROTO && r->is_torn && r->next == r->length;
    if (r->number == 0 && err == ERR_ABSENT) {
        return err_say(ERR_PROTO, why, PROVE_WHY_MAX, "not a proof file");
    } else if (r->number == 0 || (err != ERR_ABSENT && !is_torn)) {
        return err;
    }
    err = proof_writer_begin(p->writer, r->bytes, r->whole, r->crc, why);
    p->is_read = err == ERR_OK;
    return err == ERR_OK ? ERR_ABSENT : err;
}

static enum err read_line(struct prove *p, char *why)
{
    return p->is_read ? ERR_ABSENT : go_on(p, proof_reader_line(&p->reader, why), why);
}

static enum err put_line(struct prove *p, const char *line, char *why)
{
    if (!p->is_read && !proof_reader_is_after_moves(&p->reader)) {
        return is_another(p, "to have so many moves", why);
    }
    const enum err err = read_line(p, why);
    if (err == ERR_OK) {
        return strcmp(line, p->reader.line) == 0 ? ERR_OK : is_another(p, line, why);
    }
    return err == ERR_ABSENT ? proof_writer_line(p->writer, line, why) : err;
}

/* ERR_ABSENT: it is not in the file. */
static enum err read_move(struct prove *p, unsigned *square, char *why)
{
    enum err err = p->is_read ? ERR_ABSENT : proof_reader_move(&p->reader, square, why);
    if (err == ERR_ABSENT) {
        err = read_line(p, why);
        return err == ERR_OK ? is_another(p, "moves", why) : err;
    }
    return go_on(p, err, why);
}

/* ---- the moves ---- */

/* The value of the board after these moves, in the null window of `least`; its move, if the value
 * is that or more, and if one is known. */
static bool search_node(const struct prove *p, const uint16_t *path, unsigned length,
                        unsigned empties, int least, int *value, uint16_t *move)
{
    struct search_result result;
    const struct search_split split = {
        .id = 1,
        .path = path,
        .length = length,
        .depth = empties,
        .iteration = empties,
        .alpha = least - 1,
        .beta = least,
        .cut_node = true,
    };
    if (engine_subtree(p->engine, &split, &result) != SEARCH_VALUE) {
        return false;
    }
    *value = result.score;
    *move = result.move;
    return true;
}

/* A move after which the other side gets no more than `most`. ERR_RANGE: there is none. */
static enum err search_moves(const struct prove *p, uint16_t *path, unsigned length,
                             struct othello_board board, int most, uint16_t *move)
{
    const unsigned empties = othello_count(othello_empties(board));
    uint64_t moves = othello_moves(board.own, board.other);
    for (; moves != 0; moves &= moves - 1) {
        int value;
        uint16_t reply;
        path[length] = (uint16_t)(othello_first(moves) + 1);
        if (!search_node(p, path, length + 1, empties - 1, most + 1, &value, &reply)) {
            return ERR_ABSENT;
        }
        if (value <= most) {
            *move = path[length];
            return ERR_OK;
        }
    }
    return ERR_RANGE;
}

static enum err is_not_true(const struct prove *p, const struct othello_claim *claim, char *why)
{
    char text[OTHELLO_CLAIM_TEXT_MAX];
    othello_claim_format(claim, text);
    snprintf(why, PROVE_WHY_MAX, "%s is not true: %s", text,
             p->has_moves ? "the file has a false move, or the tables were wrong"
                          : "the tables were wrong somewhere");
    return ERR_RANGE;
}

/* The moves that lead to the walk's claim. Returns how many. */
static unsigned path_of(const struct proof_walk *walk, uint16_t path[PROOF_PATH_MAX + 1])
{
    for (unsigned i = 0; i < walk->length; i++) {
        path[i] = (uint16_t)(walk->path[i] + 1);
    }
    return walk->length;
}

static enum err is_stopped(char *why)
{
    return err_say(ERR_ABSENT, why, PROVE_WHY_MAX, "the proof is not complete: it was stopped");
}

static enum err find_move(const struct prove *p, const struct proof_walk *walk, uint16_t *move,
                          char *why)
{
    const struct othello_claim *claim = &walk->claim;
    uint16_t path[PROOF_PATH_MAX + 1];
    const unsigned length = path_of(walk, path);
    int value;
    enum err err = ERR_ABSENT;
    if (search_node(p, path, length, othello_count(othello_empties(claim->board)), claim->value,
                    &value, move)) {
        err = value < claim->value ? ERR_RANGE
              : *move != 0         ? ERR_OK
                           : search_moves(p, path, length, claim->board, -claim->value, move);
    }
    return err == ERR_RANGE    ? is_not_true(p, claim, why)
           : err == ERR_ABSENT ? is_stopped(why)
                               : err;
}

/* Moves of a file are anybody's: what follows from them is true if all leaves' claims are, most of
 * which the tables know. */
static enum err check_leaf(void *self, const struct proof_walk *walk)
{
    const struct prove *p = self;
    const struct othello_claim *claim = &walk->claim;
    const unsigned empties = othello_count(othello_empties(claim->board));
    const int least = claim->is_lower ? claim->value : claim->value + 1;
    uint16_t path[PROOF_PATH_MAX + 1], move;
    char text[OTHELLO_CLAIM_TEXT_MAX];
    uint64_t nodes = 0;
    int value;
    bool is_true;
    if (!p->has_moves) {
        return ERR_OK;
    } else if (empties <= PLAIN) {
        is_true = proof_solve(claim, &nodes);
    } else if (search_node(p, path, path_of(walk, path), empties, least, &value, &move)) {
        is_true = (value >= least) == claim->is_lower;
    } else {
        return is_stopped(p->why);
    }
    if (!is_true) {
        othello_claim_format(claim, text);
        snprintf(p->why, PROVE_WHY_MAX, "it has a false proof: %s is not true", text);
    }
    return is_true ? ERR_OK : ERR_EXIST;
}

static enum err choose(void *self, const struct proof_walk *walk, unsigned *square)
{
    struct prove *p = self;
    uint16_t move;
    enum err err = read_move(p, square, p->why);
    p->has_moves = p->has_moves || err == ERR_OK;
    if (err == ERR_ABSENT) {
        err = find_move(p, walk, &move, p->why);
        if (err == ERR_OK) {
            *square = move - 1u;
            err = proof_writer_move(p->writer, *square, p->why);
        }
    }
    return err;
}

/* ---- the file ---- */

/* Reads the file and its first line. */
static enum err resume(struct prove *p, const char *line, char *why)
{
    enum err err = proof_writer_read(p->writer, &p->reader, p->memory_max);
    const struct proof_reader *r = &p->reader;
    if (err != ERR_OK) {
        snprintf(why, PROVE_WHY_MAX, "%s",
                 err == ERR_IO     ? strerror(errno)
                 : err == ERR_FULL ? NO_ROOM
                                   : err_text(err));
        return err;
    }
    p->is_read = proof_writer_began(p->writer, line, r->bytes, r->size);
    return p->is_read ? ERR_OK : put_line(p, line, why);
}

enum err prove_open(struct prove **out, const struct prove_options *options, char *why)
{
    const struct proof_head *head = &options->head;
    char line[PROOF_LINE_MAX];
    if (head->positions > PROOF_POSITIONS_MAX) {
        snprintf(why, PROVE_WHY_MAX, "a proof has at most %d positions", PROOF_POSITIONS_MAX);
        return ERR_RANGE;
    }
    struct prove *p = calloc(1, sizeof *p);
    if (p == NULL) {
        return err_say(ERR_NOMEM, why, PROVE_WHY_MAX, "%s", err_text(ERR_NOMEM));
    }
    p->head = *head;
    p->memory_max = options->memory_max > 0 ? options->memory_max : PROOF_MEMORY;
    p->is_read = true;
    snprintf(line, sizeof line, PROOF_HEAD_LINE, PROOF_VERSION, head->leaf, head->positions);
    enum err err = proof_writer_open(&p->writer, options->disk, options->path, why);
    if (err == ERR_OK) {
        proof_writer_set_await(p->writer, options->await_room, options->self);
    }
    if (err == ERR_OK && options->resumes) {
        err = resume(p, line, why);
    }
    if (err == ERR_OK && p->is_read) {
        err = proof_writer_begin(p->writer, NULL, 0, 0, why);
        err = err == ERR_OK ? proof_writer_line(p->writer, line, why) : err;
        err = err == ERR_OK ? proof_writer_flush(p->writer, why) : err;
    }
    if (err != ERR_OK) {
        (void)prove_close(&p, NULL);
        return err;
    }
    *out = p;
    return ERR_OK;
}

static enum err walk_position(struct prove *p, const struct job *job, int score, char *why)
{
    const struct othello_position *position = job->position;
    const uint64_t file = p->reader.size;
    struct proof_walk walk = {.leaf = p->head.leaf,
                              .self = p,
                              .choose = choose,
                              .memory_max = file < p->memory_max ? p->memory_max - file : 1,
                              .solve = check_leaf};
    char line[PROOF_LINE_MAX];
    p->why = why;
    p->has_moves = false;
    const enum proof_end end = proof_walk(&walk, position->board, position->is_black, score);
    proof_close(&walk);
    if (end == PROOF_FALSE && p->is_read) {
        return is_not_true(p, &walk.claim, why);
    }
    if (end == PROOF_FALSE) {
        return is_another(p, "of such moves", why);
    }
    if (end == PROOF_STOPPED) {
        if (walk.err == ERR_NOMEM || walk.err == ERR_FULL) {
            snprintf(why, PROVE_WHY_MAX, "%s", walk.err == ERR_FULL ? NO_ROOM : err_text(walk.err));
        }
        return walk.err;
    }
    const uint32_t crc = p->is_read ? proof_writer_crc(p->writer) : p->reader.crc;
    snprintf(line, sizeof line, PROOF_END_LINE, walk.claims, walk.leaves, crc);
    return put_line(p, line, why);
}

enum err prove_position(struct prove *p, struct engine *e, const struct job *job, int score,
                        char *why)
{
    char line[PROOF_LINE_MAX];
    struct job beside = *job; /* by one searcher: beside others it needs no algorithm of theirs */
    beside.algorithm = algorithm_by_name("shared-table");
    snprintf(line, sizeof line, PROOF_POSITION_LINE, job->text);
    enum err err = put_line(p, line, why);
    if (err == ERR_OK) {
        snprintf(line, sizeof line, PROOF_SCORE_LINE, score);
        err = put_line(p, line, why);
    }
    if (err != ERR_OK) {
        return err;
    }
    p->engine = e;
    err = engine_subtrees_begin(e, &beside);
    if (err != ERR_OK) {
        return err_say(err, why, PROVE_WHY_MAX, "%s", err_text(err));
    }
    err = walk_position(p, job, score, why);
    engine_subtrees_end(e);
    if (err == ERR_OK && ++p->positions == p->head.positions) { /* nothing follows the last one */
        err = read_line(p, why);
        err = err == ERR_ABSENT ? ERR_OK : err == ERR_OK ? is_another(p, "the end", why) : err;
    }
    char unused[PROOF_WHY_MAX];
    const enum err flushed = proof_writer_flush(p->writer, err == ERR_OK ? why : unused);
    return err != ERR_OK ? err : flushed;
}

enum err prove_close(struct prove **prove, char *why)
{
    struct prove *p = *prove;
    char unused[PROOF_WHY_MAX];
    if (p == NULL) {
        return ERR_OK;
    }
    const enum err err = proof_writer_close(&p->writer, why != NULL ? why : unused);
    proof_reader_close(&p->reader);
    free(p);
    *prove = NULL;
    return err;
}
