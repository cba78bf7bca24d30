#include "worker/games/tree/tree.h"

#include "worker/games/tree/position.h"

#include <namespaces.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum err parse(void *position, const char *text, char *why, size_t why_size)
{
    struct tree_params params;
    enum err err = tree_params_parse(&params, text, why, why_size);
    if (err == ERR_OK) {
        tree_position_set(position, &params);
    }
    return err;
}

static void format(const void *position, char *text)
{
    tree_params_format(&((const struct tree_position *)position)->params, text);
}

static unsigned generate(const void *position, struct game_move *list)
{
    return tree_position_generate(position, list);
}

static void make(void *position, uint16_t move)
{
    tree_position_make(position, move);
}

static void unmake(void *position, uint16_t move)
{
    (void)move;
    tree_position_unmake(position);
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

static bool check(const void *position)
{
    return tree_position_check(position);
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
