#include "worker/games/tree/tree.h"

#include "common/rng.h"
#include "worker/games/tree/position.h"

#include <namespaces.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Odd multipliers that take independent draws from one hash: the high half of each product. */
#define DRAW_WIDTH UINT64_C(0xd1342543de82ef95)
#define DRAW_BEST UINT64_C(0xda942042e4dd58b5)
#define DRAW_BEST_REPLY UINT64_C(0x2127599bf4325c37)
#define DRAW_ORDER UINT64_C(0xa0761d6478bd642f)
#define DRAW_AHEAD UINT64_C(0xe7037ed1a0b428db)
#define DRAW_SURPLUS UINT64_C(0x8ebc6af09c88c6e3)
#define DRAW_END UINT64_C(0x589965cc75374cc3)
#define DRAW_CHECK UINT64_C(0x1d8e4e27c47d124f)
#define EDGE_STEP UINT64_C(0x9e3779b97f4a7c15)

enum { ORDER_TOP = 1000, ORDER_MIDDLE = 500, ORDER_LEAST = 2, ORDER_FINE = 498 };

/* Uniform in 0..n-1. */
static unsigned draw(uint64_t hash, uint64_t multiplier, unsigned n)
{
    return (unsigned)((((hash * multiplier) >> 32) * n) >> 32);
}

/* A value in -range..range from 64 random bits. */
static int edge_draw(uint64_t bits, enum tree_edges kind, unsigned range)
{
    if (kind == TREE_BELL) {
        uint64_t four =
            (bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) + (bits >> 48);
        return (int)((four * (2 * range + 1)) >> 18) - (int)range;
    }
    if (kind == TREE_TAILED) {
        int64_t x = (int16_t)(bits >> 48);
        return (int)(x * x * x * (int64_t)range / ((int64_t)1 << 45));
    }
    return (int)(((bits >> 32) * (2 * range + 1)) >> 32) - (int)range;
}

static uint64_t edge_hash(uint64_t base, unsigned side, unsigned move)
{
    return rng_mix(base + (2 * move + side) * EDGE_STEP);
}

/* What goes with the move itself, from its mover; what edges=sharp takes besides, left out. */
static int edge_value(const struct tree_position *p, const struct tree_node *n, unsigned move,
                      uint64_t edge)
{
    unsigned range = (unsigned)p->params.range;
    if (p->params.edges >= TREE_LOSSES) {
        uint64_t multiplier = p->ply & 1 ? DRAW_BEST_REPLY : DRAW_BEST;
        bool best = move == 1 + draw(p->path[n->block].hash, multiplier, n->width);
        return best ? 0 : -1 - (int)(((edge >> 32) * range) >> 32);
    }
    return edge_draw(edge, (enum tree_edges)p->params.edges, p->by_node ? range / 2 : range);
}

/* What goes with the node reached, from the side to move there. */
static int node_value(const struct tree_position *p, uint64_t hash)
{
    return p->by_node ? edge_draw(rng_mix(hash ^ DRAW_SURPLUS), (enum tree_edges)p->params.edges,
                                  (unsigned)p->params.range / 2)
                      : 0;
}

static unsigned width_of(const struct tree_position *p, unsigned ply, const struct tree_node *n)
{
    unsigned mean = p->mean[ply & 1];
    if (ply == p->params.d || (ply > 0 && draw(n->hash, DRAW_END, 100) < p->params.ends)) {
        return 0;
    }
    switch ((enum tree_shape)p->params.shape) {
    case TREE_RANKED:
        return 1 + (2 * mean - 1) * (2 * n->place - 1u) / (2 * n->siblings);
    case TREE_VARIED:
        return 1 + draw(n->hash, DRAW_WIDTH, 2 * mean - 1);
    case TREE_UNIFORM:
        break;
    }
    return mean;
}

static void set_root(struct tree_position *p, const struct tree_params *params)
{
    memset(p, 0, sizeof *p); /* equal texts give equal bytes */
    p->params = *params;
    p->key_mask = tree_params_hash(params);
    p->block_plies = (uint8_t)(params->t == 1 ? 1 : 2 * params->t);
    p->order_shift = params->range > ORDER_FINE;
    p->mean[0] = (uint8_t)params->b;
    p->mean[1] = (uint8_t)params->replies;
    p->by_node = params->t > 1 && params->edges != TREE_LOSSES;
    struct tree_node *root = &p->path[0];
    root->hash = root->sum = rng_mix(params->seed + EDGE_STEP);
    root->place = root->siblings = 1;
    root->width = (uint8_t)width_of(p, 0, root);
}

static void make(void *position, uint16_t move)
{
    struct tree_position *p = position;
    const struct tree_node *n = &p->path[p->ply];
    struct tree_node *child = &p->path[p->ply + 1];
    unsigned ply = p->ply + 1u;
    bool no_choice = p->mean[p->ply & 1] == 1;
    uint64_t edge = edge_hash(p->path[n->block].hash, p->ply & 1, move);

    child->sum = n->sum + edge;
    child->hash = rng_mix(child->sum);
    child->surplus = (int16_t)node_value(p, child->hash);
    int value = edge_value(p, n, move, edge);
    if (p->params.edges == TREE_SHARP && value < 0 && n->score > 0) {
        value -= n->score;
    }
    child->score = child->surplus - (n->score - n->surplus) - value;
    child->block = n->block;
    if (ply == n->block + (unsigned)p->block_plies) {
        child->block = (uint8_t)ply;
        child->sum = child->hash;
        child->surplus = 0;
    }
    child->place = no_choice ? n->place : (uint8_t)move;
    child->siblings = no_choice ? n->siblings : n->width;
    child->width = (uint8_t)width_of(p, ply, child);
    p->ply = (uint8_t)ply;
}

/* The static value of the move up to what all moves here share. */
static int listed_value(const struct tree_position *p, const struct tree_node *n, unsigned move)
{
    uint64_t edge = edge_hash(p->path[n->block].hash, p->ply & 1, move);
    int value = edge_value(p, n, move, edge);
    return p->by_node ? value - node_value(p, rng_mix(n->sum + edge)) : value;
}

/* Puts the best of the list behind `ahead` others; those that tie with the last of them come before
 * it too. */
static void misplace(struct game_move *list, unsigned count, unsigned best, unsigned ahead)
{
    int32_t next = ORDER_TOP;
    list[best].order = 0;
    while (ahead > 0) {
        int32_t below = 0;
        unsigned equal = 0;
        for (unsigned i = 0; i < count; i++) {
            if (list[i].order < next && list[i].order > below) {
                below = list[i].order;
                equal = 0;
            }
            equal += list[i].order == below;
        }
        next = below;
        ahead -= equal < ahead ? equal : ahead;
    }
    list[best].order = next - 1;
}

static unsigned generate(const void *position, struct game_move *list)
{
    const struct tree_position *p = position;
    const struct tree_node *n = &p->path[p->ply];
    unsigned width = n->width, best = 0;
    int range = (int)p->params.range, highest = INT32_MIN;

    for (unsigned i = 0; i < width; i++) {
        list[i] = (struct game_move){(uint16_t)(i + 1), GAME_NOISY, ORDER_MIDDLE};
    }
    if (p->params.order == 0 || width < 2) {
        return width;
    }
    for (unsigned i = 0; i < width; i++) {
        int value = listed_value(p, n, i + 1);
        list[i].order = ORDER_LEAST + ((value + range) >> p->order_shift);
        if (value > highest) {
            highest = value;
            best = i;
        }
    }
    if (draw(n->hash, DRAW_ORDER, 100) < p->params.order) {
        list[best].order = ORDER_TOP;
    } else {
        unsigned u = draw(n->hash, DRAW_AHEAD, 1 << 16);
        u = u * u >> 16;
        misplace(list, width, best, 1 + ((width - 1) * (u * u >> 16) >> 16));
    }
    return width;
}

static bool check(const void *position)
{
    const struct tree_position *p = position;
    return p->params.checks > 0 && draw(p->path[p->ply].hash, DRAW_CHECK, 100) < p->params.checks;
}

static enum err parse(void *position, const char *text, char *why, size_t why_size)
{
    struct tree_params params;
    enum err err = tree_params_parse(&params, text, why, why_size);
    if (err == ERR_OK) {
        set_root(position, &params);
    }
    return err;
}

static void format(const void *position, char *text)
{
    tree_params_format(&((const struct tree_position *)position)->params, text);
}

static void unmake(void *position, uint16_t move)
{
    struct tree_position *p = position;
    (void)move;
    p->ply--;
}

static uint64_t key(const void *position)
{
    const struct tree_position *tree = position;
    return tree_position_node(tree)->hash ^ tree->key_mask;
}

static int evaluate(const void *position)
{
    return tree_position_node(position)->score;
}

static bool losing(const void *position, uint16_t move)
{
    (void)position;
    (void)move;
    return false;
}

static void format_move(const void *position, uint16_t move, char *text)
{
    (void)position;
    snprintf(text, GAME_MOVE_TEXT_MAX, "%u", move);
}

static enum err parse_move(const void *position, const char *text, uint16_t *move)
{
    size_t length = strlen(text);
    if (length == 0 || length > 3 || strspn(text, "0123456789") < length || text[0] == '0') {
        return ERR_SYNTAX;
    }
    unsigned n = (unsigned)strtoul(text, NULL, 10);
    if (n > tree_position_node(position)->width) {
        return ERR_ILLEGAL;
    }
    *move = (uint16_t)n;
    return ERR_OK;
}

static const struct game_search game_search = GAME_SEARCH_CENTIPAWNS;

const struct game game_tree = {
    .name = "tree",
    .namespace_id = NAMESPACE_tree,
    .position_size = sizeof(struct tree_position),
    .score_kind = GAME_CENTIPAWNS,
    .score_max = TREE_SCORE_MAX,
    .search = &game_search,
    .parse = parse,
    .format = format,
    .generate = generate,
    .make = make,
    .unmake = unmake,
    .key = key,
    .evaluate = evaluate,
    .finished = evaluate,
    .check = check,
    .losing = losing,
    .format_move = format_move,
    .parse_move = parse_move,
};
