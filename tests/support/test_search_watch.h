/* test_search_watch: a table port that checks what a search does, and may give it false answers.
 *
 * It forwards to an inner port and checks that every OPEN is ended by exactly one store or release
 * of the same key, depth and slot, nested as the tree is; that bounds agree with the window that
 * was given; that nothing of a stopped search is stored; that refusals are bounded. Asked to, it
 * answers BUSY to exclusive asks and reports searchers that are not there, at random. Threads: the
 * searching one's; `broken` is read after it has ended (an assertion outside the test's own thread
 * would jump into the wrong stack). */
#ifndef TESTS_SUPPORT_TEST_SEARCH_WATCH_H
#define TESTS_SUPPORT_TEST_SEARCH_WATCH_H

#include "tests/support/test_tt.h"
#include "worker/search/search.h"

enum { WATCH_SAMPLES = 24, WATCH_FIRST_ASKS = 256, WATCH_VIEWS = 32, WATCH_BATCH = 4 };

struct watched_node {
    struct tt_ask ask;
    struct tt_answer answer;
    unsigned moves; /* legal ones */
    bool later; /* not yet asked of the inner table */
    unsigned refusals, all_refusals; /* BUSY for children, since the last value and ever */
};

/* A peek sent ahead: what was true then. */
struct watch_view {
    uint32_t count;
    bool was_under_way; /* when it was last looked for */
    struct tt_peeked seen[GAME_MOVES_MAX];
};

/* A result as stored, with the position it speaks of. */
struct watch_sample {
    struct tt_store store;
    void *position;
};

struct watch {
    /* fixed after open */
    struct table_port inner;
    const struct game *game;
    unsigned busy_percent, contended_percent, later_percent;
    unsigned ahead_percent; /* peeks sent ahead are accepted; half of them come back */
    unsigned under_way_percent; /* ... and are found under way still */
    bool has_near; /* peeks near tell something */
    bool is_near; /* so what is known here is not asked for */
    bool goes_on; /* a search that does not wait: it peeks at few */
    bool narrows; /* a window may become smaller than the one that was answered */
    bool prunes; /* selection full: a node may have a value without a move, and quiescence asks */
    unsigned sample_every; /* stores; 0: none */
    uint8_t sample_depth_max;
    void (*on_open)(struct watch *watch, void *context); /* may be NULL */
    void *context;
    /* state */
    struct search *search;
    uint64_t random;
    struct watched_node node[SEARCH_PLY_MAX + 2];
    unsigned open;
    bool pending;
    struct tt_ask asked;
    struct watch_view peek_ticket[WATCH_VIEWS]; /* nested as the tree is */
    unsigned peeks_ahead;
    bool stopped, may_unwind;
    unsigned open_at_stop, valued_after_stop;
    struct watch_sample sample[WATCH_SAMPLES];
    unsigned samples, until_sample;
    struct tt_store last_store;
    const char *broken; /* the first rule broken */
    /* statistics */
    uint64_t opens, stores, releases, busy;
    uint64_t late, late_refused; /* answers given late; of these CUT or BUSY */
    uint64_t ahead; /* peeks sent ahead that were taken */
    uint64_t waited; /* peeks that were waited for: sent to be, or taken while under way */
    uint64_t near; /* peeks at what is known here */
    struct tt_answer first_answer[WATCH_FIRST_ASKS]; /* at ply 1 of the iteration of that depth */
    uint64_t first_key[WATCH_FIRST_ASKS];
    unsigned first, first_depth;
};

static inline void watch_expect(struct watch *w, bool is_kept, const char *rule)
{
    if (!is_kept && w->broken == NULL) {
        w->broken = rule;
    }
}

#define WATCH_EXPECT(w, condition) watch_expect(w, condition, #condition)

static inline struct watched_node *watch_top(struct watch *w)
{
    return w->open == 0 ? NULL : &w->node[w->open - 1];
}

static inline bool watch_send(void *self, const struct tt_ask *ask, struct table_ticket *ticket,
                              struct tt_answer *answer)
{
    struct watch *w = self;
    WATCH_EXPECT(w, !w->pending);
    WATCH_EXPECT(w, !w->stopped);
    WATCH_EXPECT(w, ask->alpha < ask->beta);
    WATCH_EXPECT(w, ask->alpha >= -GAME_INFINITE && ask->beta <= GAME_INFINITE);
    WATCH_EXPECT(w, ask->depth >= 1 || w->prunes);
    w->pending = true;
    w->asked = *ask;
    return w->inner.ask(w->inner.self, ask, ticket, answer);
}

static inline void watch_refused(struct watch *w)
{
    struct watched_node *parent = watch_top(w);
    w->busy++;
    WATCH_EXPECT(w, parent != NULL);
    if (parent != NULL) {
        parent->refusals++;
        parent->all_refusals++;
        WATCH_EXPECT(w, parent->refusals <= parent->moves);
        WATCH_EXPECT(w, parent->all_refusals <= parent->moves * (parent->moves + 1) / 2);
    }
}

static inline void watch_opened(struct watch *w, const struct tt_ask *ask,
                                const struct tt_answer *answer)
{
    struct game_move list[GAME_MOVES_MAX];
    WATCH_EXPECT(w, answer->alpha >= ask->alpha && answer->alpha < answer->beta);
    WATCH_EXPECT(w, answer->beta <= ask->beta);
    WATCH_EXPECT(w, w->open < SEARCH_PLY_MAX + 2);
    if (w->broken == NULL) {
        w->node[w->open++] = (struct watched_node){
            .ask = *ask,
            .answer = *answer,
            .moves = w->game->generate(search_position(w->search), list),
        };
    }
    w->opens++;
    if (w->on_open != NULL && w->broken == NULL) {
        w->on_open(w, w->context);
    }
}

static inline void watch_first(struct watch *w, const struct tt_ask *ask,
                               const struct tt_answer *answer)
{
    if (w->open == 1 && search_iteration(w->search) == w->first_depth &&
        w->first < WATCH_FIRST_ASKS) {
        w->first_key[w->first] = ask->key;
        w->first_answer[w->first++] = *answer;
    }
}

static inline void watch_await(void *self, const struct tt_ask *ask, struct table_ticket *ticket,
                               struct tt_answer *answer)
{
    struct watch *w = self;
    WATCH_EXPECT(w, w->pending);
    WATCH_EXPECT(w, ask->key == w->asked.key && ask->depth == w->asked.depth);
    WATCH_EXPECT(w, ask->slot == w->asked.slot && ask->flags == w->asked.flags);
    w->pending = false;
    if (ask->flags & TT_EXCLUSIVE && tt_chance(&w->random, w->busy_percent)) {
        *answer = (struct tt_answer){.verdict = TT_BUSY, .nproc = 1};
    } else if (tt_chance(&w->random, w->later_percent)) {
        *answer = (struct tt_answer){.verdict = TT_OPEN, .alpha = ask->alpha, .beta = ask->beta};
        ticket->later = true;
    } else {
        w->inner.await(w->inner.self, ask, ticket, answer);
    }
    watch_first(w, ask, answer);
    if (answer->verdict == TT_BUSY) {
        WATCH_EXPECT(w, ask->flags & TT_EXCLUSIVE);
        watch_refused(w);
        return;
    }
    if (w->open > 0) {
        watch_top(w)->refusals = 0;
    }
    if (answer->verdict == TT_OPEN) {
        watch_opened(w, ask, answer);
        w->node[w->open - 1].later = ticket->later;
    }
}

/* From env.poll: some of the answers that were not waited for. Not that of the last node: it is not
 * begun yet. */
static inline void watch_deliver(struct watch *w)
{
    for (unsigned i = 0; i + 1 < w->open; i++) {
        struct watched_node *n = &w->node[i];
        struct table_ticket ticket = {0};
        struct tt_answer answer;
        if (n->later && tt_chance(&w->random, 50)) {
            n->later = false;
            tt_pose(&w->inner, &n->ask, &ticket, &answer);
            search_answered(w->search, &n->ask, &answer);
            w->late++;
            w->late_refused += answer.verdict != TT_OPEN;
        }
    }
}

static inline void watch_take_sample(struct watch *w, const struct tt_store *store)
{
    if (w->sample_every == 0 || store->depth > w->sample_depth_max || w->samples == WATCH_SAMPLES ||
        w->until_sample-- > 0) {
        return;
    }
    w->until_sample = rng_below(&w->random, 2 * w->sample_every);
    void *copy = malloc(w->game->position_size);
    if (copy != NULL) {
        memcpy(copy, search_position(w->search), w->game->position_size);
        w->sample[w->samples++] = (struct watch_sample){*store, copy};
    }
}

/* The poll that stops may be that of a node where the game is over, or that is pruned by its
 * evaluation: its value is known, and with it perhaps its parent's, and so on upwards in a chain.
 */
static inline bool watch_may_store_stopped(struct watch *w, const struct watched_node *n)
{
    bool may = w->open == w->open_at_stop && (n->moves == 0 || w->prunes);
    may = may || w->open == w->valued_after_stop;
    w->valued_after_stop = w->open - 1;
    return may;
}

static inline void watch_store(void *self, const struct table_ticket *ticket,
                               const struct tt_store *store)
{
    struct watch *w = self;
    const struct watched_node *n = watch_top(w);
    unsigned bound = store->bound & ~(unsigned)TT_BESIDE;
    WATCH_EXPECT(w, !w->pending && n != NULL);
    if (n != NULL) {
        WATCH_EXPECT(w, store->key == n->ask.key && store->depth == n->ask.depth);
        WATCH_EXPECT(w, store->slot == n->ask.slot);
        WATCH_EXPECT(w, w->narrows || bound != TT_UPPER || store->score <= n->answer.alpha);
        WATCH_EXPECT(w, w->narrows || bound != TT_LOWER || store->score >= n->answer.beta);
        WATCH_EXPECT(w, store->score >= -GAME_MATE && store->score <= GAME_MATE);
        WATCH_EXPECT(w, bound == TT_UPPER || store->move != 0 || n->moves == 0 || w->prunes);
        WATCH_EXPECT(w, !w->stopped || watch_may_store_stopped(w, n));
        watch_take_sample(w, store);
        w->open--;
    }
    w->stores++;
    w->last_store = *store;
    w->last_store.bound = (uint8_t)bound;
    w->inner.store(w->inner.self, ticket, store);
}

static inline void watch_release(void *self, const struct table_ticket *ticket,
                                 const struct tt_release *release)
{
    struct watch *w = self;
    const struct watched_node *n = watch_top(w);
    WATCH_EXPECT(w, !w->pending && n != NULL);
    WATCH_EXPECT(w, w->stopped || w->may_unwind);
    if (n != NULL) {
        WATCH_EXPECT(w, release->key == n->ask.key && release->depth == n->ask.depth);
        WATCH_EXPECT(w, release->slot == n->ask.slot);
        w->open--;
    }
    w->releases++;
    w->inner.release(w->inner.self, ticket, release);
}

static inline void watch_note_peek(struct watch *w, const struct tt_peek *peek, unsigned count,
                                   struct tt_peeked *out)
{
    WATCH_EXPECT(w, !w->pending && count >= 1 && count <= GAME_MOVES_MAX);
    WATCH_EXPECT(w, !w->stopped);
    w->inner.peek(w->inner.self, peek, count, false, out);
    for (unsigned i = 0; i < count; i++) {
        if (tt_chance(&w->random, w->contended_percent)) {
            out[i].nproc = (uint16_t)rng_below(&w->random, 4);
        }
    }
}

/* A batch that leaves: each child once, few if the search goes on, and none that is known here. */
static inline void watch_batch(struct watch *w, const struct tt_peek *peek, unsigned count)
{
    struct tt_peeked seen;
    WATCH_EXPECT(w, !w->goes_on || count <= WATCH_BATCH);
    for (unsigned i = 0; w->is_near && i < count; i++) {
        w->inner.peek(w->inner.self, &peek[i], 1, true, &seen);
        WATCH_EXPECT(w, seen.depth != peek[i].depth || seen.lower != seen.upper);
    }
}

static inline void watch_peek(void *self, const struct tt_peek *peek, unsigned count, bool near,
                              struct tt_peeked *out)
{
    struct watch *w = self;
    if (near && !w->has_near) {
        *out = (struct tt_peeked){.lower = TT_SCORE_MIN, .upper = TT_SCORE_MAX};
        return;
    }
    w->near += near;
    w->waited += !near;
    watch_note_peek(w, peek, count, out);
}

static inline bool watch_peek_ahead(void *self, const struct tt_peek *peek, unsigned count,
                                    struct table_ticket *ticket)
{
    struct watch *w = self;
    watch_batch(w, peek, count);
    if (w->peeks_ahead == WATCH_VIEWS || !tt_chance(&w->random, w->ahead_percent)) {
        return false;
    }
    struct watch_view *view = &w->peek_ticket[w->peeks_ahead];
    watch_note_peek(w, peek, count, view->seen);
    view->count = count;
    view->was_under_way = false;
    *ticket = (struct table_ticket){.request = ++w->peeks_ahead};
    return true;
}

static inline enum table_taken watch_peek_take(void *self, const struct table_ticket *ticket,
                                               bool waits, struct tt_peeked *out)
{
    struct watch *w = self;
    WATCH_EXPECT(w, w->peeks_ahead > 0 && ticket->request == w->peeks_ahead);
    struct watch_view *view = &w->peek_ticket[w->peeks_ahead - 1];
    if (out != NULL && !waits) {
        view->was_under_way = tt_chance(&w->random, w->under_way_percent);
        if (view->was_under_way) {
            return TABLE_LATER;
        }
    }
    w->peeks_ahead--;
    if (out == NULL) {
        return TABLE_LOST;
    }
    w->waited += view->was_under_way;
    if (!tt_chance(&w->random, 50)) {
        return TABLE_LOST;
    }
    memcpy(out, view->seen, view->count * sizeof *out);
    w->ahead++;
    return TABLE_TAKEN;
}

static inline unsigned watch_remote_depth(void *self, unsigned iteration, bool *sees_foreign)
{
    struct watch *w = self;
    return w->inner.inflight_depth(w->inner.self, iteration, sees_foreign);
}

/* Before a run of `search`. */
static inline void watch_begin(struct watch *w, struct search *search)
{
    w->search = search;
    w->open = 0;
    w->pending = w->stopped = false;
    w->valued_after_stop = SEARCH_PLY_MAX + 2;
    w->broken = NULL;
    w->opens = w->stores = w->releases = w->busy = 0;
    w->late = w->late_refused = w->ahead = w->waited = w->near = 0;
    w->peeks_ahead = 0;
    w->first = 0;
    w->until_sample = w->sample_every;
}

/* From env.poll, when it says stop. */
static inline void watch_stopped(struct watch *w)
{
    if (!w->stopped) {
        w->stopped = true;
        w->open_at_stop = w->open;
    }
}

/* After the run. */
static inline void watch_end(struct watch *w)
{
    WATCH_EXPECT(w, !w->pending);
    WATCH_EXPECT(w, w->open == 0 && w->peeks_ahead == 0);
    WATCH_EXPECT(w, w->opens == w->stores + w->releases);
    if (w->broken != NULL) {
        fail_msg("broken: %s", w->broken);
    }
}

static inline void watch_forget_samples(struct watch *w)
{
    while (w->samples > 0) {
        free(w->sample[--w->samples].position);
    }
}

static inline struct table_port watch_port(struct watch *w)
{
    return (struct table_port){
        .self = w,
        .ask = watch_send,
        .await = watch_await,
        .store = watch_store,
        .release = watch_release,
        .peek = watch_peek,
        .peek_ahead = watch_peek_ahead,
        .peek_take = watch_peek_take,
        .inflight_depth = watch_remote_depth,
    };
}

#endif
