#include "worker/games/tree/tree.h"

#include "common/rng.h"

#include <errno.h>
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

static void set_root(struct tree_position *p, const union tree_params *params)
{
    memset(p, 0, sizeof *p); /* equal texts give equal bytes */
    p->params = *params;
    p->key_mask = rng_hash_text("tree parameters");
    for (unsigned i = 0; i < TREE_FIELD_COUNT; i++) {
        p->key_mask = rng_mix(p->key_mask + params->at[i]);
    }
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

/* ---- the text ---- */

static const char *const shapes[] = {
    [TREE_UNIFORM] = "uniform", [TREE_RANKED] = "ranked", [TREE_VARIED] = "varied", NULL};
static const char *const edges[] = {
    [TREE_EVEN] = "uniform",  [TREE_BELL] = "bell",   [TREE_TAILED] = "tailed",
    [TREE_LOSSES] = "losses", [TREE_SHARP] = "sharp", NULL};

static const struct field {
    const char *name;
    uint64_t least, most, usual;
} fields[TREE_FIELD_COUNT] = {
#define FIELD(name, least, most, usual) {#name, least, most, usual},
    TREE_FIELDS(FIELD)
#undef FIELD
};

#define NAME(name, least, most, usual) " " #name
static const char field_names[] = TREE_FIELDS(NAME);
#undef NAME

/* The values of fields that are words. */
static const char *const *const words_of[TREE_FIELD_COUNT] = {
    [TREE_shape] = shapes, [TREE_edges] = edges};

static bool spells(const char *text, size_t length, const char *word)
{
    return strlen(word) == length && memcmp(text, word, length) == 0;
}

static enum err read_value(uint64_t *out, unsigned field, const char *text, size_t length,
                           char *why, size_t size)
{
    const struct field *f = &fields[field];
    const char *const *words = words_of[field];
    if (words != NULL) {
        char list[64] = "";
        for (unsigned i = 0, at = 0; words[i] != NULL; i++) {
            if (spells(text, length, words[i])) {
                *out = i;
                return ERR_OK;
            }
            at += (unsigned)snprintf(list + at, sizeof list - at, " %s", words[i]);
        }
        return err_say(ERR_SYNTAX, why, size, "tree: %s is one of%s", f->name, list);
    }
    char *end = NULL;
    errno = 0;
    *out = strtoull(text, &end, 10);
    if (length == 0 || length > 20 || strspn(text, "0123456789") < length || errno != 0 ||
        end != text + length || *out < f->least || *out > f->most) {
        return err_say(ERR_SYNTAX, why, size, "tree: %s is a number from %llu to %llu", f->name,
                       (unsigned long long)f->least, (unsigned long long)f->most);
    }
    return ERR_OK;
}

static enum err read_fields(union tree_params *p, const char *text, char *why, size_t size)
{
    unsigned seen = 0;
    while (*text != '\0') {
        size_t length = strspn(text, "abcdefghijklmnopqrstuvwxyz");
        unsigned i = 0;
        while (i < TREE_FIELD_COUNT && !spells(text, length, fields[i].name)) {
            i++;
        }
        if (i == TREE_FIELD_COUNT || text[length] != '=') {
            return err_say(ERR_SYNTAX, why, size, "tree: '%.*s' is no field=value; fields:%s",
                           length < 16 ? (int)length : 16, text, field_names);
        }
        if (seen >> i & 1) {
            return err_say(ERR_SYNTAX, why, size, "tree: %s is given twice", fields[i].name);
        }
        seen |= 1u << i;
        text += length + 1;
        length = strcspn(text, ",");
        enum err err = read_value(&p->at[i], i, text, length, why, size);
        if (err != ERR_OK) {
            return err;
        }
        text += length + (text[length] == ',');
    }
    return ERR_OK;
}

static enum err parse(void *position, const char *text, char *why, size_t why_size)
{
    union tree_params p;
    for (unsigned i = 0; i < TREE_FIELD_COUNT; i++) {
        p.at[i] = fields[i].usual;
    }
    if (strncmp(text, "tree:", 5) == 0) {
        text += 5;
    } else if (strcmp(text, "tree") == 0 || strcmp(text, "startpos") == 0) {
        text = "";
    } else {
        return err_say(ERR_SYNTAX, why, why_size, "a tree is written tree:b=20,d=12,seed=1,...");
    }
    enum err err = read_fields(&p, text, why, why_size);
    if (err != ERR_OK) {
        return err;
    }
    if (p.range * p.d > TREE_SCORE_MAX) {
        return err_say(ERR_ILLEGAL, why, why_size, "tree: range is at most %u with d=%u",
                       TREE_SCORE_MAX / (unsigned)p.d, (unsigned)p.d);
    }
    if (p.t > 1 && p.shape != TREE_UNIFORM) {
        return err_say(ERR_ILLEGAL, why, why_size, "tree: t is 1 unless shape=uniform");
    }
    if (p.t > 1 && p.edges == TREE_SHARP) {
        return err_say(ERR_ILLEGAL, why, why_size, "tree: t is 1 with edges=sharp");
    }
    p.at[TREE_replies] = p.at[p.replies != 0 ? TREE_replies : TREE_b];
    snprintf(why, why_size, "%s", "");
    set_root(position, &p);
    return ERR_OK;
}

/* Writes b, d, seed and what differs from its default. */
static void format(const void *position, char *text)
{
    const union tree_params *p = &((const struct tree_position *)position)->params;
    size_t at = (size_t)snprintf(text, GAME_TEXT_MAX, "tree:");
    for (unsigned i = 0; i < TREE_FIELD_COUNT; i++) {
        const unsigned long long value = p->at[i];
        if (i > TREE_seed && value == (i == TREE_replies ? p->b : fields[i].usual)) {
            continue;
        }
        at += (size_t)snprintf(text + at, GAME_TEXT_MAX - at, "%s%s=", i > 0 ? "," : "",
                               fields[i].name);
        at += (size_t)(words_of[i] != NULL
                           ? snprintf(text + at, GAME_TEXT_MAX - at, "%s", words_of[i][value])
                           : snprintf(text + at, GAME_TEXT_MAX - at, "%llu", value));
        CHECK(at < GAME_TEXT_MAX);
    }
}

/* ---- moves ---- */

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
        /* The static value of the move up to what all moves here share. */
        const uint64_t edge = edge_hash(p->path[n->block].hash, p->ply & 1, i + 1);
        int value = edge_value(p, n, i + 1, edge) - node_value(p, rng_mix(n->sum + edge));
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
