/* test_search: a rig of searchers (threads) over one embedded table, each watched, and an oracle
 * that searches alone. Chess is the game. Run from the root of the repository. */
#ifndef TESTS_SUPPORT_TEST_SEARCH_H
#define TESTS_SUPPORT_TEST_SEARCH_H

#include "tests/support/test_search_watch.h"
#include "tests/support/test_tt.h"
#include "worker/games/games.h"
#include "worker/programs/suite.h"
#include "worker/search/handover/algorithms.h"
#include "worker/search/node.h"
#include "worker/table/embedded.h"

#include <pthread.h>
#include <stdatomic.h>

#define TEST_BRATKO_KOPEC "tests/data/chess/bratko-kopec.epd"

enum { RIG_MAX = 4, RIG_BYTES = 8 << 20, RIG_NEVER = 1 << 30 };

struct rig;

struct rig_searcher {
    struct rig *rig;
    struct embedded_port slot;
    struct watch watch;
    struct search *search;
    struct search_options options;
    struct env_port env;
    unsigned polls, stop_after; /* this searcher's own stop */
    /* May be NULL; called at every poll while the search goes on. */
    void (*meddle)(struct rig_searcher *searcher);
    void *context;
    struct search_result result;
    struct counters counters;
};

struct rig {
    struct embedded *table;
    void *position;
    unsigned searchers;
    struct rig_searcher searcher[RIG_MAX];
    atomic_bool stop; /* everybody's */
    uint64_t jobs; /* begun */
};

static inline const struct game *test_game(void)
{
    return games_by_name("chess");
}

static inline void test_parse(void *position, const char *text)
{
    char why[128] = "as before";
    if (test_game()->parse(position, text, why, sizeof why) != ERR_OK || why[0] != '\0') {
        fail_msg("%s: %s", text, why);
    }
}

static inline bool rig_poll(void *self, struct search *search)
{
    struct rig_searcher *d = self;
    (void)search;
    d->polls++;
    if (d->polls > d->stop_after) {
        atomic_store(&d->rig->stop, true);
    }
    if (atomic_load(&d->rig->stop)) {
        watch_stopped(&d->watch);
        return true;
    }
    watch_deliver(&d->watch);
    if (d->meddle != NULL) {
        d->meddle(d);
    }
    return false;
}

/* What the threads of an engine do at every poll. */
static inline void rig_serve(struct rig_searcher *d)
{
    embedded_serve(&d->slot, d->search);
}

static inline bool step_to(void *position, uint64_t key)
{
    const struct game *game = test_game();
    struct game_move list[GAME_MOVES_MAX];
    unsigned n = game->generate(position, list);
    for (unsigned i = 0; i < n; i++) {
        game->make(position, list[i].move);
        if (game->key(position) == key) {
            return true;
        }
        game->unmake(position, list[i].move);
    }
    return false;
}

/* The position of that open node, from the first open node's. */
static inline void watched_position(const struct watch *w, unsigned at, const void *first,
                                    void *position)
{
    memcpy(position, first, test_game()->position_size);
    for (unsigned k = 1; k <= at; k++) {
        assert_true(step_to(position, w->node[k].ask.key));
    }
}

/* `counted`: the in-flight depth. Searcher 0 has the plain order. */
static inline struct rig *rig_open(const char *algorithm, unsigned searchers, unsigned counted,
                                   size_t bytes)
{
    struct rig *rig = calloc(1, sizeof *rig);
    assert_true(rig != NULL && searchers >= 1 && searchers <= RIG_MAX);
    rig->searchers = searchers;
    rig->position = calloc(1, test_game()->position_size);
    assert_non_null(rig->position);
    assert_int_equal(embedded_open(&rig->table, bytes, searchers + 1), ERR_OK);
    for (unsigned i = 0; i < searchers; i++) {
        struct rig_searcher *d = &rig->searcher[i];
        d->rig = rig;
        d->stop_after = RIG_NEVER;
        d->slot = (struct embedded_port){
            .table = rig->table, .slot = (uint16_t)i, .inflight_depth_max = (uint8_t)counted};
        d->watch.inner = embedded_table_port(&d->slot);
        d->watch.game = test_game();
        d->watch.random = rng_mix(i + 1);
        d->env = (struct env_port){.self = d, .poll = rig_poll};
        d->options = (struct search_options){
            .game = test_game(),
            .algorithm = algorithm_by_name(algorithm),
            .strict = true,
            .slot = (uint16_t)i,
            .seed = i == 0 ? 0 : rng_mix(i),
            .depth_limit = 1,
        };
        assert_non_null(d->options.algorithm);
        struct table_port port = watch_port(&d->watch);
        assert_int_equal(search_open(&d->search, &d->options, &port, &d->env), ERR_OK);
    }
    return rig;
}

/* From now on peeks are answered at once, as those of an embedded table are. */
static inline void rig_peek_directly(struct rig *rig)
{
    for (unsigned i = 0; i < rig->searchers; i++) {
        struct table_port *table = &rig->searcher[i].search->table;
        table->peek_ahead = NULL;
        table->peek_take = NULL;
    }
}

/* From now on what is known here, and who of here is where, is seen without a message. */
static inline void rig_peek_near(struct rig *rig)
{
    for (unsigned i = 0; i < rig->searchers; i++) {
        rig->searcher[i].watch.is_near = rig->searchers == 1; /* else it changes meanwhile */
        rig->searcher[i].watch.has_near = true;
    }
}

/* From now on they search on while a peek is under way. */
static inline void rig_go_on(struct rig *rig, unsigned under_way_percent)
{
    for (unsigned i = 0; i < rig->searchers; i++) {
        rig->searcher[i].options.random_order = true;
        rig->searcher[i].watch.goes_on = true;
        rig->searcher[i].watch.under_way_percent = under_way_percent;
    }
}

static inline void rig_close(struct rig *rig)
{
    for (unsigned i = 0; i < rig->searchers; i++) {
        search_free(&rig->searcher[i].search);
        watch_forget_samples(&rig->searcher[i].watch);
    }
    embedded_close(&rig->table);
    free(rig->position);
    free(rig);
}

static inline void *rig_slot(void *context)
{
    struct rig_searcher *d = context;
    search_run(d->search, NULL, NULL, &d->result);
    d->counters = *search_counters(d->search);
    return NULL;
}

/* Searches rig->position; afterwards no watch has found a fault, and nothing is in flight. */
static inline void rig_run(struct rig *rig, unsigned depth)
{
    pthread_t thread[RIG_MAX];
    atomic_store(&rig->stop, false);
    rig->jobs++;
    for (unsigned i = 0; i < rig->searchers; i++) {
        struct rig_searcher *d = &rig->searcher[i];
        embedded_begin(&d->slot, rig->jobs, 0);
        d->options.depth_limit = depth;
        d->polls = 0;
        search_set_limits(d->search, &d->options, &d->env);
        search_set_position(d->search, rig->position);
        watch_begin(&d->watch, d->search);
    }
    for (unsigned i = 1; i < rig->searchers; i++) {
        assert_int_equal(pthread_create(&thread[i], NULL, rig_slot, &rig->searcher[i]), 0);
    }
    rig_slot(&rig->searcher[0]);
    for (unsigned i = 1; i < rig->searchers; i++) {
        pthread_join(thread[i], NULL);
    }
    for (unsigned i = 0; i < rig->searchers; i++) {
        watch_end(&rig->searcher[i].watch);
    }
    assert_int_equal(embedded_inflight(rig->table), 0);
}

static inline void rig_run_text(struct rig *rig, const char *text, unsigned depth)
{
    test_parse(rig->position, text);
    rig_run(rig, depth);
}

/* All searchers finished, and agree. */
static inline void rig_expect_score(const struct rig *rig, unsigned depth, int score)
{
    for (unsigned i = 0; i < rig->searchers; i++) {
        assert_int_equal(rig->searcher[i].result.depth, depth);
        assert_int_equal(rig->searcher[i].result.score, score);
    }
}

/* ---- the oracle: the value of a position at a depth, by a sequential search of its own ---- */

static inline int oracle_value(struct rig *oracle, const void *position, unsigned depth)
{
    memcpy(oracle->position, position, test_game()->position_size);
    rig_run(oracle, depth);
    assert_int_equal(oracle->searcher[0].result.depth, depth);
    return oracle->searcher[0].result.score;
}

static inline struct rig *oracle_open(void)
{
    return rig_open("sequential", 1, EMBEDDED_NEVER, RIG_BYTES);
}

/* The best moves of all searchers do lead to the score, one ply less deep. */
static inline void rig_expect_best_moves(struct rig *rig, struct rig *oracle)
{
    const struct game *game = test_game();
    for (unsigned i = 0; i < rig->searchers; i++) {
        const struct search_result *r = &rig->searcher[i].result;
        assert_int_equal(r->pv.move[0], r->move);
        game->make(rig->position, r->move);
        unsigned below = r->depth - 1 + game->check(rig->position);
        int value = below == 0 ? -r->score : oracle_value(oracle, rig->position, below);
        game->unmake(rig->position, r->move);
        value = value < -GAME_MATE_MIN ? value + 1 : value > GAME_MATE_MIN ? value - 1 : value;
        assert_int_equal(-value, r->score);
    }
}

/* What the watches sampled of the stores is true. */
static inline unsigned rig_expect_true_samples(struct rig *rig, struct rig *oracle)
{
    unsigned seen = 0;
    for (unsigned i = 0; i < rig->searchers; i++) {
        struct watch *w = &rig->searcher[i].watch;
        for (unsigned k = 0; k < w->samples; k++, seen++) {
            const struct tt_store *s = &w->sample[k].store;
            int value = oracle_value(oracle, w->sample[k].position, s->depth);
            assert_true(!(s->bound & TT_LOWER) || value >= s->score);
            assert_true(!(s->bound & TT_UPPER) || value <= s->score);
        }
        watch_forget_samples(w);
    }
    return seen;
}

/* The 24 positions of Bratko and Kopec; close with suite_close. */
static inline struct suite test_positions(void)
{
    struct suite suite = {0};
    char why[256] = "";
    if (suite_read(&suite, TEST_BRATKO_KOPEC, SUITE_EPD, 0, why, sizeof why) != ERR_OK) {
        fail_msg("%s (run from the root of the repository)", why);
    }
    assert_int_equal(suite.count, 24);
    return suite;
}

#endif
