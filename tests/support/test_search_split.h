/* test_search_split: searches that begin at a split point. */
#ifndef TESTS_SUPPORT_TEST_SEARCH_SPLIT_H
#define TESTS_SUPPORT_TEST_SEARCH_SPLIT_H

#include "tests/support/test_search.h"

enum { ID = 77, PATH = 2, DEPTH = 4 };

static const char *const algorithms[] = {"sequential", "abdada", "abdada-paper", "shared-table"};

/* A node two moves below a position. */
struct place {
    uint16_t path[PATH];
    void *position;
    uint64_t key;
};

static inline struct place place_below(const char *text, uint64_t *random)
{
    const struct game *game = test_game();
    struct game_move list[GAME_MOVES_MAX];
    struct place place = {.position = calloc(1, game->position_size)};
    assert_non_null(place.position);
    test_parse(place.position, text);
    for (unsigned i = 0; i < PATH; i++) {
        unsigned n = game->generate(place.position, list);
        assert_true(n > 0);
        place.path[i] = list[rng_below(random, n)].move;
        game->make(place.position, place.path[i]);
    }
    place.key = game->key(place.position);
    return place;
}

/* Searches the place from the position above it, with searcher 0 of the rig. Afterwards nobody is
 * in any node. */
static inline enum search_status run_split_again(struct rig *rig, const char *text,
                                                 const struct place *place, int alpha, int beta,
                                                 int *value)
{
    struct rig_searcher *d = &rig->searcher[0];
    const struct search_split split = {.id = ID,
                                       .path = place->path,
                                       .length = PATH,
                                       .depth = DEPTH,
                                       .iteration = DEPTH + PATH,
                                       .alpha = alpha,
                                       .beta = beta};
    test_parse(rig->position, text);
    atomic_store(&rig->stop, false);
    embedded_begin(&d->slot, 0, 0);
    d->polls = 0;
    search_set_limits(d->search, &d->options, &d->env);
    search_set_position(d->search, rig->position);
    watch_begin(&d->watch, d->search);
    enum search_status status = search_subtree(d->search, &split, &d->result);
    *value = status == SEARCH_VALUE ? d->result.score : *value;
    d->counters = *search_counters(d->search);
    watch_end(&d->watch);
    assert_int_equal(embedded_inflight(rig->table), 0);
    assert_int_equal(test_game()->key(search_position(d->search)), test_game()->key(rig->position));
    return status;
}

static inline enum search_status run_split(struct rig *rig, const char *text,
                                           const struct place *place, int alpha, int beta,
                                           int *value)
{
    embedded_clear(rig->table);
    return run_split_again(rig, text, place, alpha, beta, value);
}

static inline struct tt_peeked known_of(struct rig *rig, const struct place *place)
{
    struct table_port port = embedded_table_port(&rig->searcher[0].slot);
    struct tt_peek peek = {place->key, DEPTH};
    struct tt_peeked seen;
    port.peek(port.self, &peek, 1, false, &seen);
    return seen;
}

#endif
