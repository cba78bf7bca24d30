#include "worker/programs/othello/proof.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- the set of claims ---- */

static bool is_same(const struct proof_claim *a, const struct proof_claim *b)
{
    return a->board.own == b->board.own && a->board.other == b->board.other &&
           a->value == b->value && a->is_lower == b->is_lower;
}

/* Where the claim is, or the empty place for it. */
static struct proof_claim *place_of(const struct proof_set *set, const struct proof_claim *claim)
{
    const size_t last = set->room - 1;
    size_t i = (size_t)(othello_hash(claim->board) + claim->is_lower) & last;
    while (set->at[i].is_made && !is_same(&set->at[i], claim)) {
        i = (i + 1) & last;
    }
    return &set->at[i];
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

static enum proof_end prove(struct proof_walk *walk, const struct proof_claim *claim);

/* The claim of the other side, after a move (PROOF_PASS: after a pass). */
static enum proof_end prove_next(struct proof_walk *walk, const struct proof_claim *claim,
                                 unsigned square)
{
    const struct othello_board b = claim->board;
    const struct proof_claim next = {
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

static bool is_true_at_the_end(const struct proof_claim *claim)
{
    const int value = othello_final_score(claim->board);
    return claim->is_lower ? value >= claim->value : value <= claim->value;
}

static enum proof_end prove(struct proof_walk *walk, const struct proof_claim *claim)
{
    const struct othello_board b = claim->board;
    if (walk->set.count >= walk->set.room / 2) {
        walk->err = grow(&walk->set, walk->memory_max);
        if (walk->err != ERR_OK) {
            return PROOF_STOPPED;
        }
    }
    struct proof_claim *place = place_of(&walk->set, claim);
    if (place->is_made) {
        return PROOF_VALID;
    }
    *place = walk->claim = *claim;
    place->is_made = true;
    walk->set.count++;
    walk->claims++;
    if (othello_count(othello_empties(b)) <= walk->leaf) {
        walk->leaves++;
        return walk->solve == NULL || walk->solve(walk->self, claim) ? PROOF_VALID : PROOF_STOPPED;
    }
    uint64_t moves = othello_moves(b.own, b.other);
    if (moves == 0 && othello_moves(b.other, b.own) == 0) {
        return is_true_at_the_end(claim) ? PROOF_VALID : PROOF_FALSE;
    }
    if (moves == 0) {
        return prove_next(walk, claim, PROOF_PASS);
    }
    if (claim->is_lower) {
        unsigned square;
        if (!walk->choose(walk->self, walk, &square)) {
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
    struct proof_claim claim = {
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

static struct othello_claim claim_of(const struct proof_claim *claim)
{
    return (struct othello_claim){claim->board, claim->value, claim->is_lower, claim->is_black};
}

void proof_claim_text(const struct proof_claim *claim, char text[PROOF_CLAIM_TEXT_MAX])
{
    const struct othello_claim c = claim_of(claim);
    othello_claim_format(&c, text);
}

bool proof_solve(const struct proof_claim *claim, uint64_t *nodes)
{
    const struct othello_claim c = claim_of(claim);
    bool is_true;
    CHECK(othello_claim_solve(&c, NULL, nodes, &is_true));
    return is_true;
}
