#include "worker/search/search.h"

#include "common/memory.h"
#include "worker/search/node.h"

#include <stdlib.h>
#include <string.h>

enum { ASPIRATION_DEPTH = 4, ASPIRATION_WIDTH = 25 };

static void set_env(struct search *s, const struct env_port *env)
{
    s->env = *env;
    if (s->env.until_poll == NULL) {
        s->env.until_poll = &s->until_poll;
    }
}

enum err search_open(struct search **out, const struct search_options *options,
                     const struct table_port *table, const struct env_port *env)
{
    struct search *s = calloc(1, sizeof *s);
    if (s == NULL) {
        return ERR_NOMEM;
    }
    s->position = memory_lines(options->game->position_size);
    if (s->position == NULL) {
        free(s);
        return ERR_NOMEM;
    }
    s->table = *table;
    set_env(s, env);
    s->options = *options;
    s->unwind = NOBODY_UNWINDS;
    order_seed(s);
    *out = s;
    return ERR_OK;
}

void search_free(struct search **search)
{
    if (*search != NULL) {
        free((*search)->position);
        free(*search);
        *search = NULL;
    }
}

void search_set_position(struct search *s, const void *position)
{
    memcpy(s->position, position, s->options.game->position_size);
    s->root_key = node_key(s);
    order_age(s);
}

uint64_t search_root(const struct search *s)
{
    return s->root_key;
}

const struct search_counters *search_counters(const struct search *s)
{
    return &s->counters;
}

unsigned search_iteration(const struct search *s)
{
    return s->iteration;
}

const void *search_position(const struct search *s)
{
    return s->position;
}

/* Widens around the last score until the value falls inside. False: stopped. */
static bool aspirate(struct search *s, unsigned depth, int guess, int *value)
{
    int width = ASPIRATION_WIDTH;
    int alpha = depth >= ASPIRATION_DEPTH ? guess - width : -GAME_INFINITE;
    int beta = depth >= ASPIRATION_DEPTH ? guess + width : GAME_INFINITE;
    for (;;) {
        alpha = alpha < -GAME_MATE_MIN ? -GAME_INFINITE : alpha;
        beta = beta > GAME_MATE_MIN ? GAME_INFINITE : beta;
        if (node_visit(s, 0, (int)depth, alpha, beta, false, value) != VISIT_VALUE) {
            return false;
        }
        s->counters.critical += s->path;
        width *= 4;
        if (*value <= alpha && alpha > -GAME_INFINITE) {
            alpha = *value - width;
        } else if (*value >= beta && beta < GAME_INFINITE) {
            beta = *value + width;
        } else {
            return true;
        }
    }
}

static bool is_legal(struct search *s, uint16_t move)
{
    struct game_move list[GAME_MOVES_MAX];
    unsigned n = s->options.game->generate(s->position, list);
    for (unsigned i = 0; i < n; i++) {
        if (list[i].move == move) {
            return true;
        }
    }
    return false;
}

/* A line cut short by the table goes on with the moves the table knows, while they are legal. */
static void complete_line(struct search *s, struct search_line *line, unsigned depth)
{
    const struct game *game = s->options.game;
    unsigned want = depth < SEARCH_PV_MAX ? depth : SEARCH_PV_MAX, made = 0;

    while (made < line->length && is_legal(s, line->move[made])) {
        game->make(s->position, line->move[made++]);
    }
    line->length = (uint16_t)made;
    while (made < want) {
        struct tt_peek peek = {node_key(s), (uint8_t)(depth - made)};
        struct tt_peeked seen;
        s->table.peek(s->table.self, &peek, 1, &seen);
        if (seen.move == 0 || !is_legal(s, seen.move)) {
            break;
        }
        line->move[made++] = seen.move;
        line->length = (uint16_t)made;
        game->make(s->position, seen.move);
    }
    while (made > 0) {
        game->unmake(s->position, line->move[--made]);
    }
}

static void accept_iteration(struct search *s, unsigned depth, int value, bool complete,
                             struct search_result *result)
{
    struct search_line line = s->frame[0].pv;
    if (complete) {
        complete_line(s, &line, depth);
    }
    if (line.length > 0) {
        result->pv = line;
        result->move = line.move[0];
    }
    result->score = value;
    result->depth = depth;
}

void search_run(struct search *s, search_report *report, void *context,
                struct search_result *result)
{
    const struct game *game = s->options.game;
    struct game_move list[GAME_MOVES_MAX];

    memset(result, 0, sizeof *result);
    memset(&s->counters, 0, sizeof s->counters);
    s->stopped = false;
    s->unwind = NOBODY_UNWINDS;
    s->moves_used = s->children_used = 0;
    atomic_store_explicit(s->env.until_poll, 1, memory_order_relaxed);
    if (game->generate(s->position, list) == 0) {
        result->score = game->finished(s->position);
        result->depth = s->options.depth_limit;
        return;
    }
    result->move = list[0].move;
    for (unsigned depth = 1; depth <= s->options.depth_limit; depth++) {
        int value = 0;
        s->iteration = depth;
        node_update_inflight_depth(s);
        if (!aspirate(s, depth, result->score, &value)) {
            return;
        }
        accept_iteration(s, depth, value, report != NULL || depth == s->options.depth_limit,
                         result);
        if (report != NULL) {
            report(context, result, &s->counters);
        }
    }
}

void search_set_limits(struct search *s, const struct search_options *options,
                       const struct env_port *env)
{
    s->options = *options;
    set_env(s, env);
    memset(&s->counters, 0, sizeof s->counters); /* nobody is to see those of the last search */
    order_seed(s);
}
