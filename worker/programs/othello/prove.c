#include "worker/programs/othello/prove.h"

#include "worker/games/othello/othello.h"
#include "worker/programs/othello/proof.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert((int)OTHELLO_PASS == (int)PROOF_PASS + 1, "a move is a square and one");

struct prove {
    unsigned leaf;
    struct proof_writer *writer;
    struct proof_reader reader; /* of what an earlier process has written ... */
    bool is_read; /* ... to its end */
    /* of the position under way */
    struct engine *engine;
    enum err err;
    char *why;
};

/* ---- what is in the file already is compared, the rest is written ---- */

static enum err is_another(const struct prove *p, const char *wanted, char *why)
{
    snprintf(why, PROVE_WHY_MAX, "it has another proof: line %u is '%s', not %s", p->reader.number,
             p->reader.line, wanted);
    return ERR_EXIST;
}

static enum err put_line(struct prove *p, const char *line, char *why)
{
    if (!p->is_read && !proof_reader_is_after_moves(&p->reader)) {
        return is_another(p, "to have so many moves", why);
    }
    const enum err err = p->is_read ? ERR_ABSENT : proof_reader_line(&p->reader, why);
    if (err == ERR_OK) {
        return strcmp(line, p->reader.line) == 0 ? ERR_OK : is_another(p, line, why);
    }
    p->is_read = true;
    return err == ERR_ABSENT ? proof_writer_line(p->writer, line, why) : err;
}

/* The checksum of all lines so far. */
static uint32_t crc_of(struct prove *p)
{
    return p->is_read ? proof_writer_crc(p->writer) : p->reader.crc;
}

/* ERR_ABSENT: it is not in the file. */
static enum err read_move(struct prove *p, unsigned *square, char *why)
{
    enum err err = p->is_read ? ERR_ABSENT : proof_reader_move(&p->reader, square, why);
    if (err == ERR_ABSENT && !p->is_read) {
        err = proof_reader_line(&p->reader, why);
        if (err == ERR_OK) {
            return is_another(p, "moves", why);
        }
        p->is_read = true;
    }
    return err;
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

static enum err is_not_true(const struct proof_claim *claim, char *why)
{
    char text[PROOF_CLAIM_TEXT_MAX];
    proof_claim_text(claim, text);
    snprintf(why, PROVE_WHY_MAX, "%s is not true: the tables were wrong somewhere", text);
    return ERR_RANGE;
}

static enum err find_move(const struct prove *p, const struct proof_walk *walk, uint16_t *move,
                          char *why)
{
    const struct proof_claim *claim = &walk->claim;
    uint16_t path[PROOF_PATH_MAX + 1];
    int value;
    for (unsigned i = 0; i < walk->length; i++) {
        path[i] = (uint16_t)(walk->path[i] + 1);
    }
    enum err err = ERR_ABSENT;
    if (search_node(p, path, walk->length, othello_count(othello_empties(claim->board)),
                    claim->value, &value, move)) {
        err = value < claim->value ? ERR_RANGE
              : *move != 0         ? ERR_OK
                           : search_moves(p, path, walk->length, claim->board, -claim->value, move);
    }
    if (err == ERR_RANGE) {
        return is_not_true(claim, why);
    }
    if (err == ERR_ABSENT) {
        snprintf(why, PROVE_WHY_MAX, "the proof is not complete: it was stopped");
    }
    return err;
}

static bool choose(void *self, const struct proof_walk *walk, unsigned *square)
{
    struct prove *p = self;
    uint16_t move;
    p->err = read_move(p, square, p->why);
    if (p->err == ERR_ABSENT) {
        p->err = find_move(p, walk, &move, p->why);
        if (p->err == ERR_OK) {
            *square = move - 1u;
            p->err = proof_writer_move(p->writer, *square, p->why);
        }
    }
    return p->err == ERR_OK;
}

/* ---- the file ---- */

/* Reads what is whole of the file. */
static enum err resume(struct prove *p, const struct proof_head *head, size_t *keep, uint32_t *crc,
                       char *why)
{
    char line[PROOF_LINE_MAX];
    enum err err = proof_writer_read(p->writer, &p->reader, PROOF_MEMORY);
    if (err != ERR_OK) {
        snprintf(why, PROVE_WHY_MAX, "%s", err == ERR_IO ? strerror(errno) : err_text(err));
        return err;
    }
    const size_t size = p->reader.size;
    err = proof_reader_cut(&p->reader, crc, why);
    if (err != ERR_OK) {
        return err;
    }
    proof_head_line(head, line);
    if (size > 0 && p->reader.size == 0 &&
        !proof_writer_began(p->writer, line, p->reader.bytes, size)) {
        snprintf(why, PROVE_WHY_MAX, "it is there, and no proof");
        return ERR_EXIST;
    }
    *keep = p->reader.size;
    p->is_read = *keep == 0;
    return p->is_read ? ERR_OK : put_line(p, line, why);
}

enum err prove_open(struct prove **out, const struct disk_port *disk, const char *path,
                    const struct proof_head *head, bool resumes, char *why)
{
    char line[PROOF_LINE_MAX];
    size_t keep = 0;
    uint32_t crc = 0;
    if (head->positions > PROOF_POSITIONS_MAX) {
        snprintf(why, PROVE_WHY_MAX, "a proof has at most %d positions", PROOF_POSITIONS_MAX);
        return ERR_RANGE;
    }
    struct prove *p = calloc(1, sizeof *p);
    if (p == NULL) {
        snprintf(why, PROVE_WHY_MAX, "%s", err_text(ERR_NOMEM));
        return ERR_NOMEM;
    }
    p->leaf = head->leaf;
    p->is_read = true;
    enum err err = proof_writer_open(&p->writer, disk, path, why);
    if (err == ERR_OK && resumes) {
        err = resume(p, head, &keep, &crc, why);
    }
    if (err == ERR_OK) {
        err = proof_writer_begin(p->writer, p->reader.bytes, keep, crc, why);
    }
    if (err == ERR_OK && keep == 0) {
        proof_head_line(head, line);
        err = proof_writer_line(p->writer, line, why);
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
    struct proof_walk walk = {.leaf = p->leaf, .self = p, .choose = choose};
    char line[PROOF_LINE_MAX];
    p->err = ERR_NOMEM; /* unless a callback ends it */
    p->why = why;
    const enum proof_end end = proof_walk(&walk, position->board, position->is_black, score);
    proof_close(&walk);
    if (end == PROOF_FALSE && p->is_read) {
        return is_not_true(&walk.claim, why);
    }
    if (end == PROOF_FALSE) {
        return is_another(p, "of such moves", why);
    }
    if (end == PROOF_STOPPED) {
        if (walk.err != ERR_OK) {
            snprintf(why, PROVE_WHY_MAX, "%s", err_text(walk.err));
        }
        return walk.err != ERR_OK ? walk.err : p->err;
    }
    proof_end_line(walk.claims, walk.leaves, crc_of(p), line);
    return put_line(p, line, why);
}

enum err prove_position(struct prove *p, struct engine *e, const struct job *job, int score,
                        char *why)
{
    char line[PROOF_LINE_MAX];
    struct job beside = *job; /* by one searcher: beside others it needs no algorithm of theirs */
    beside.algorithm = algorithm_by_name("shared-table");
    proof_position_line(job->text, line);
    enum err err = put_line(p, line, why);
    if (err == ERR_OK) {
        proof_score_line(score, line);
        err = put_line(p, line, why);
    }
    if (err != ERR_OK) {
        return err;
    }
    p->engine = e;
    err = engine_subtrees_begin(e, &beside);
    if (err != ERR_OK) {
        snprintf(why, PROVE_WHY_MAX, "%s", err_text(err));
        return err;
    }
    err = walk_position(p, job, score, why);
    engine_subtrees_end(e);
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
