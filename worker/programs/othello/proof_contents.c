#include "worker/programs/othello/proof_contents.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of one position. */
struct walker {
    struct proof_contents *contents;
    struct proof_reader *reader;
    struct proof_walk *walk;
    enum err err; /* why the walk was stopped */
    char *why;
};

static bool keep_leaf(void *self, const struct proof_claim *claim)
{
    struct walker *w = self;
    struct proof_contents *c = w->contents;
    c->leaves++;
    if (c->keeps != NULL && !c->keeps(c->self)) {
        return true;
    }
    if (c->kept == c->room) {
        const size_t room = c->room > 0 ? 2 * c->room : 1024, bytes = room * sizeof *c->leaf;
        if (bytes + w->walk->set.room * sizeof *claim > w->walk->memory_max) {
            w->err = ERR_FULL;
            return false;
        }
        w->walk->memory_max -= bytes - c->room * sizeof *c->leaf;
        struct proof_claim *more = realloc(c->leaf, bytes);
        if (more == NULL) {
            w->err = ERR_NOMEM;
            return false;
        }
        c->leaf = more;
        c->room = room;
    }
    c->leaf[c->kept++] = *claim;
    return true;
}

static bool read_move(void *self, const struct proof_walk *walk, unsigned *square)
{
    struct walker *w = self;
    (void)walk;
    w->err = proof_reader_move(w->reader, square, w->why);
    return w->err == ERR_OK;
}

static enum err wrong(char *why, unsigned line, const char *what)
{
    snprintf(why, PROOF_WHY_MAX, "line %u %s", line, what);
    return ERR_PROTO;
}

static enum err incomplete(char *why)
{
    snprintf(why, PROOF_WHY_MAX, "the proof is not complete");
    return ERR_PROTO;
}

/* A line that there has to be. */
static enum err read_line(struct proof_reader *r, char *why)
{
    if (!proof_reader_is_after_moves(r)) {
        return wrong(why, r->number, "has more moves than there are claims");
    }
    const enum err err = proof_reader_line(r, why);
    return err == ERR_ABSENT ? incomplete(why) : err;
}

/* How many positions there are is what the file says, true or not: room grows as they are read. */
static enum err keep_score(struct proof_contents *c, const struct proof_score *score)
{
    if ((c->scores & (c->scores - 1)) == 0) {
        struct proof_score *more = realloc(c->score, (2 * (size_t)c->scores + 1) * sizeof *more);
        if (more == NULL) {
            return ERR_NOMEM;
        }
        c->score = more;
    }
    c->score[c->scores++] = *score;
    return ERR_OK;
}

static enum err read_board(struct proof_reader *r, struct othello_board *board, bool *is_black,
                           char *why)
{
    char again[PROOF_LINE_MAX], text[67], unused[OTHELLO_WHY_MAX];
    const enum err err = read_line(r, why);
    if (err != ERR_OK) {
        return err;
    }
    if (strncmp(r->line, "position ", 9) != 0 ||
        !othello_parse(r->line + 9, board, is_black, unused)) {
        return wrong(why, r->number, "is not a position");
    }
    othello_format(*board, *is_black, text);
    proof_position_line(text, again);
    return strcmp(again, r->line) == 0 ? ERR_OK : wrong(why, r->number, "is not a position");
}

static enum err read_score(struct proof_reader *r, int *score, char *why)
{
    char again[PROOF_LINE_MAX];
    const enum err err = read_line(r, why);
    if (err != ERR_OK) {
        return err;
    }
    if (sscanf(r->line, "score %3d", score) != 1 || abs(*score) > OTHELLO_SCORE_MAX) {
        return wrong(why, r->number, "is not a score");
    }
    proof_score_line(*score, again);
    return strcmp(again, r->line) == 0 ? ERR_OK : wrong(why, r->number, "is not a score");
}

static enum err is_false(struct proof_contents *c, const struct proof_walk *walk,
                         const char *reason, char *why)
{
    char text[PROOF_CLAIM_TEXT_MAX];
    c->false_claim = walk->claim;
    proof_claim_text(&walk->claim, text);
    snprintf(why, PROOF_WHY_MAX, "the claim %s does not hold: %s", text, reason);
    return ERR_ILLEGAL;
}

static enum err read_position(struct proof_reader *r, struct proof_contents *c, char *why)
{
    const uint64_t max = c->memory_max > 0 ? c->memory_max : PROOF_MEMORY;
    const uint64_t used = r->size + c->room * sizeof *c->leaf;
    struct walker walker = {.contents = c, .reader = r, .why = why};
    struct proof_walk walk = {.leaf = c->head.leaf,
                              .self = &walker,
                              .choose = read_move,
                              .memory_max = used < max ? max - used : 1,
                              .solve = keep_leaf};
    walker.walk = &walk;
    struct proof_score root = {.score = 0};
    char again[PROOF_LINE_MAX];
    enum err err = read_board(r, &root.board, &root.is_black, why);
    if (err == ERR_OK) {
        err = read_score(r, &root.score, why);
    }
    if (err == ERR_OK) {
        err = keep_score(c, &root);
    }
    if (err != ERR_OK) {
        return err;
    }
    const enum proof_end end = proof_walk(&walk, root.board, root.is_black, root.score);
    proof_close(&walk);
    c->claims += walk.claims;
    if (end == PROOF_FALSE) {
        const struct othello_board b = walk.claim.board;
        return is_false(c, &walk,
                        othello_moves(b.own, b.other) != 0 ? "the move for it is not legal"
                                                           : "the game is over with another value",
                        why);
    }
    if (end == PROOF_STOPPED && (walk.err != ERR_OK || walker.err != ERR_ABSENT)) {
        return walk.err != ERR_OK ? walk.err : walker.err;
    }
    if (end == PROOF_STOPPED) {
        err = proof_reader_line(r, why);
        if (err == ERR_OK) {
            return strncmp(r->line, "end ", 4) == 0
                       ? is_false(c, &walk, "there is no move for it", why)
                       : wrong(why, r->number, "is not of moves");
        }
        return err == ERR_ABSENT ? incomplete(why) : err;
    }
    const uint32_t crc = r->crc;
    err = read_line(r, why);
    proof_end_line(walk.claims, walk.leaves, crc, again);
    if (err == ERR_OK && strcmp(again, r->line) != 0) {
        err = wrong(why, r->number, "is not the end of these claims");
    }
    if (err == ERR_OK && c->solve != NULL) {
        err = c->solve(c->self) ? ERR_OK : ERR_ABSENT;
        c->kept = 0;
    }
    return err;
}

enum err proof_contents_read(struct proof_contents *c, struct proof_reader *r, char *why)
{
    enum err err = proof_reader_head(r, &c->head, why);
    if (err == ERR_OK && (c->head.leaf < 1 || c->head.leaf > PROOF_LEAF_MAX)) {
        err = wrong(why, 1, "has leaves that are too large, or empty");
    }
    if (err == ERR_OK && (c->head.positions < 1 || c->head.positions > PROOF_POSITIONS_MAX)) {
        err = wrong(why, 1, c->head.positions == 0 ? "has no position" : "has too many positions");
    }
    if (err == ERR_OK && c->leaf_max > 0 && c->head.leaf > c->leaf_max) {
        snprintf(why, PROOF_WHY_MAX, "leaves of %u empty squares take long: --max-leaf %u",
                 c->head.leaf, c->head.leaf);
        return ERR_RANGE;
    }
    for (unsigned i = 0; i < c->head.positions && err == ERR_OK; i++) {
        err = read_position(r, c, why);
    }
    if (err == ERR_OK) {
        err = proof_reader_line(r, why);
        err = err == ERR_ABSENT ? ERR_OK
              : err == ERR_OK   ? wrong(why, r->number, "comes after the end")
                                : err;
    }
    if (err == ERR_NOMEM) {
        snprintf(why, PROOF_WHY_MAX, "%s", err_text(err));
    } else if (err == ERR_FULL) {
        snprintf(why, PROOF_WHY_MAX, "it needs more memory than --memory allows");
    }
    return err;
}

void proof_contents_close(struct proof_contents *c)
{
    free(c->leaf);
    free(c->score);
    *c = (struct proof_contents){0};
}
