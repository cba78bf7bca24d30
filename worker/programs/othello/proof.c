#include "worker/programs/othello/proof.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the set of claims ---- */

/* Where the claim is, or the empty place for it. */
static struct othello_claim *place_of(const struct proof_set *set,
                                      const struct othello_claim *claim)
{
    const size_t last = set->room - 1;
    size_t i = (size_t)(othello_hash(claim->board) + claim->is_lower) & last;
    for (;; i = (i + 1) & last) {
        struct othello_claim *at = &set->at[i];
        if (!at->is_made ||
            (at->board.own == claim->board.own && at->board.other == claim->board.other &&
             at->value == claim->value && at->is_lower == claim->is_lower)) {
            return at;
        }
    }
}

/* While the claims move there are two sets. */
static enum err grow(struct proof_set *set, uint64_t memory_max)
{
    struct proof_set more = {.count = set->count, .room = set->room > 0 ? 2 * set->room : 1024};
    if (memory_max > 0 && (set->room + more.room) * sizeof *more.at > memory_max) {
        return ERR_FULL;
    }
    more.at = calloc(more.room, sizeof *more.at);
    if (more.at == NULL) {
        return ERR_NOMEM;
    }
    for (size_t i = 0; i < set->room; i++) {
        if (set->at[i].is_made) {
            *place_of(&more, &set->at[i]) = set->at[i];
        }
    }
    free(set->at);
    *set = more;
    return ERR_OK;
}

void proof_close(struct proof_walk *walk)
{
    free(walk->set.at);
    walk->set = (struct proof_set){0};
}

/* ---- the walk ---- */

static enum proof_end prove(struct proof_walk *walk, const struct othello_claim *claim);

/* The claim of the other side, after a move (PROOF_PASS: after a pass). */
static enum proof_end prove_next(struct proof_walk *walk, const struct othello_claim *claim,
                                 unsigned square)
{
    const struct othello_board b = claim->board;
    const struct othello_claim next = {
        .board = square == PROOF_PASS
                     ? othello_pass(b)
                     : othello_play(b, square, othello_flips(b.own, b.other, square)),
        .value = (int8_t)-claim->value,
        .is_lower = !claim->is_lower,
        .is_black = !claim->is_black,
    };
    walk->path[walk->length++] = (unsigned char)square;
    const enum proof_end end = prove(walk, &next);
    walk->length--;
    return end;
}

static enum proof_end prove(struct proof_walk *walk, const struct othello_claim *claim)
{
    const struct othello_board b = claim->board;
    if (walk->set.count >= walk->set.room / 2) {
        walk->err = grow(&walk->set, walk->memory_max);
        if (walk->err != ERR_OK) {
            return PROOF_STOPPED;
        }
    }
    struct othello_claim *place = place_of(&walk->set, claim);
    if (place->is_made) {
        return PROOF_VALID;
    }
    *place = walk->claim = *claim;
    place->is_made = true;
    walk->set.count++;
    walk->claims++;
    if (othello_count(othello_empties(b)) <= walk->leaf) {
        walk->leaves++;
        walk->err = walk->solve == NULL ? ERR_OK : walk->solve(walk->self, walk);
        return walk->err == ERR_OK ? PROOF_VALID : PROOF_STOPPED;
    }
    uint64_t moves = othello_moves(b.own, b.other);
    if (moves == 0 && othello_moves(b.other, b.own) == 0) {
        const int value = othello_final_score(b);
        return (claim->is_lower ? value >= claim->value : value <= claim->value) ? PROOF_VALID
                                                                                 : PROOF_FALSE;
    }
    if (moves == 0) {
        return prove_next(walk, claim, PROOF_PASS);
    }
    if (claim->is_lower) {
        unsigned square;
        walk->err = walk->choose(walk->self, walk, &square);
        if (walk->err != ERR_OK) {
            return PROOF_STOPPED;
        }
        return square < OTHELLO_SQUARES && (moves & othello_bit(square)) != 0
                   ? prove_next(walk, claim, square)
                   : PROOF_FALSE;
    }
    enum proof_end end = PROOF_VALID;
    for (; moves != 0 && end == PROOF_VALID; moves &= moves - 1) {
        end = prove_next(walk, claim, othello_first(moves));
    }
    return end;
}

enum proof_end proof_walk(struct proof_walk *walk, struct othello_board board, bool is_black,
                          int score)
{
    struct othello_claim claim = {
        .board = board, .value = (int8_t)score, .is_lower = true, .is_black = is_black};
    CHECK(abs(score) <= OTHELLO_SCORE_MAX);
    walk->length = 0;
    /* No board is worth less than -64 or more than 64. */
    enum proof_end end = score > -OTHELLO_SCORE_MAX ? prove(walk, &claim) : PROOF_VALID;
    if (end == PROOF_VALID && score < OTHELLO_SCORE_MAX) {
        claim.is_lower = false;
        end = prove(walk, &claim);
    }
    return end;
}

bool proof_solve(const struct othello_claim *claim, uint64_t *nodes)
{
    bool is_true;
    CHECK(othello_claim_solve(claim, NULL, nodes, &is_true));
    return is_true;
}

/* ---- what a file claims ---- */

/* Reads one position. */
struct walker {
    struct proof_contents *contents;
    struct proof_reader *reader;
    struct proof_walk *walk;
    char *why;
};

static enum err keep_leaf(void *self, const struct proof_walk *walk)
{
    struct walker *w = self;
    struct proof_contents *c = w->contents;
    c->leaves++;
    if (c->keeps != NULL && !c->keeps(c->self)) {
        return ERR_OK;
    }
    if (c->kept == c->room) {
        const size_t room = c->room > 0 ? 2 * c->room : 1024, bytes = room * sizeof *c->leaf;
        if (bytes + w->walk->set.room * sizeof *c->leaf > w->walk->memory_max) {
            return ERR_FULL;
        }
        w->walk->memory_max -= bytes - c->room * sizeof *c->leaf;
        struct othello_claim *more = realloc(c->leaf, bytes);
        if (more == NULL) {
            return ERR_NOMEM;
        }
        c->leaf = more;
        c->room = room;
    }
    c->leaf[c->kept++] = walk->claim;
    return ERR_OK;
}

static enum err read_move(void *self, const struct proof_walk *walk, unsigned *square)
{
    struct walker *w = self;
    (void)walk;
    return proof_reader_move(w->reader, square, w->why);
}

static enum err wrong(char *why, unsigned line, const char *what)
{
    return err_say(ERR_PROTO, why, PROOF_WHY_MAX, "line %u %s", line, what);
}

static enum err incomplete(char *why)
{
    return err_say(ERR_PROTO, why, PROOF_WHY_MAX, "the proof is not complete");
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

static bool is_position(const char *line, struct proof_score *out)
{
    char again[PROOF_LINE_MAX], text[67], unused[OTHELLO_WHY_MAX];
    if (strncmp(line, "position ", 9) != 0 ||
        !othello_parse(line + 9, &out->board, &out->is_black, unused)) {
        return false;
    }
    othello_format(out->board, out->is_black, text);
    snprintf(again, sizeof again, PROOF_POSITION_LINE, text);
    return strcmp(again, line) == 0;
}

static bool is_score(const char *line, int *score)
{
    char again[PROOF_LINE_MAX];
    if (sscanf(line, "score %3d", score) != 1 || abs(*score) > OTHELLO_SCORE_MAX) {
        return false;
    }
    snprintf(again, sizeof again, PROOF_SCORE_LINE, *score);
    return strcmp(again, line) == 0;
}

static enum err is_false(struct proof_contents *c, const struct proof_walk *walk,
                         const char *reason, char *why)
{
    char text[OTHELLO_CLAIM_TEXT_MAX];
    c->false_claim = walk->claim;
    othello_claim_format(&walk->claim, text);
    return err_say(ERR_ILLEGAL, why, PROOF_WHY_MAX, "the claim %s does not hold: %s", text, reason);
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
    enum err err = read_line(r, why);
    if (err == ERR_OK && !is_position(r->line, &root)) {
        err = wrong(why, r->number, "is not a position");
    }
    err = err == ERR_OK ? read_line(r, why) : err;
    if (err == ERR_OK && !is_score(r->line, &root.score)) {
        err = wrong(why, r->number, "is not a score");
    }
    err = err == ERR_OK ? keep_score(c, &root) : err;
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
    if (end == PROOF_STOPPED && walk.err != ERR_ABSENT) {
        return walk.err;
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
    snprintf(again, sizeof again, PROOF_END_LINE, walk.claims, walk.leaves, crc);
    if (err == ERR_OK && strcmp(again, r->line) != 0) {
        err = wrong(why, r->number, "is not the end of these claims");
    }
    if (err == ERR_OK && c->solve != NULL) {
        if (!c->solve(c->self)) {
            return ERR_ABSENT;
        }
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
        snprintf(why, PROOF_WHY_MAX, "%s", PROOF_NO_ROOM);
    }
    return err;
}

void proof_contents_close(struct proof_contents *c)
{
    free(c->leaf);
    free(c->score);
    *c = (struct proof_contents){0};
}
