/* contract_model: the four operations against a naive model, on random operations.
 *
 * Every key has a true value that differs by depth; what is stored is always true of it, so that no
 * two results of one depth contradict. On a big table verdict, window, move and nproc must be the
 * model's; on a tiny one results may be gone, but what is answered must follow from what was
 * stored, and nproc stays exact. Included by contract.h only. */
#ifndef TESTS_SUPPORT_CONTRACT_MODEL_H
#define TESTS_SUPPORT_CONTRACT_MODEL_H

#include "tests/support/test_tt.h"

enum { MODEL_KEYS = 10, MODEL_DEPTHS = 4, MODEL_SCORES = 13, MODEL_STEPS = 12000 };

/* What a table may know of a (key, depth). */
struct model_bounds {
    int lower, upper;
};

struct contract_model {
    bool is_holder[MODEL_KEYS][MODEL_DEPTHS][CONTRACT_ASKERS];
    int truth[MODEL_KEYS][MODEL_DEPTHS];
    struct model_bounds stored[MODEL_KEYS][MODEL_DEPTHS]; /* the best ever stored */
    /* the one entry of each key: of the deepest result, as all is one generation */
    bool known[MODEL_KEYS];
    unsigned depth[MODEL_KEYS];
    struct model_bounds entry[MODEL_KEYS];
    uint16_t move[MODEL_KEYS];
};

static inline uint64_t model_key(unsigned k)
{
    return rng_mix(k + 1);
}

static inline void model_open(struct contract_model *m, uint64_t *random)
{
    memset(m, 0, sizeof *m);
    for (unsigned k = 0; k < MODEL_KEYS; k++) {
        for (unsigned d = 0; d < MODEL_DEPTHS; d++) {
            m->truth[k][d] = (int)rng_below(random, MODEL_SCORES);
            m->stored[k][d] = (struct model_bounds){TT_SCORE_MIN, TT_SCORE_MAX};
        }
    }
}

static inline unsigned model_nproc(const struct contract_model *m, unsigned k, unsigned d)
{
    unsigned n = 0;
    for (unsigned asker = 0; asker < CONTRACT_ASKERS; asker++) {
        n += m->is_holder[k][d][asker];
    }
    return n;
}

static inline unsigned model_is_within(const struct contract_model *m)
{
    unsigned n = 0;
    for (unsigned k = 0; k < MODEL_KEYS; k++) {
        for (unsigned d = 0; d < MODEL_DEPTHS; d++) {
            n += model_nproc(m, k, d);
        }
    }
    return n;
}

static inline void model_tighten(struct model_bounds *b, struct model_bounds by)
{
    b->lower = by.lower > b->lower ? by.lower : b->lower;
    b->upper = by.upper < b->upper ? by.upper : b->upper;
}

static inline void model_store(struct contract_model *m, unsigned k, const struct tt_store *store)
{
    struct model_bounds fresh = {
        store->bound & TT_LOWER ? store->score : TT_SCORE_MIN,
        store->bound & TT_UPPER ? store->score : TT_SCORE_MAX,
    };
    model_tighten(&m->stored[k][store->depth], fresh);
    if (m->known[k] && store->depth < m->depth[k]) {
        return;
    }
    bool merged = m->known[k] && m->depth[k] == store->depth;
    /* The move goes with the lower bound; a result that has none keeps the move for order. */
    int known = merged ? m->entry[k].lower : TT_SCORE_MIN;
    bool has_no_move = fresh.lower < known || (fresh.lower == known && store->move == 0);
    m->move[k] = m->known[k] && has_no_move ? m->move[k] : store->move;
    if (merged) {
        model_tighten(&m->entry[k], fresh);
    } else {
        m->entry[k] = fresh;
    }
    m->known[k] = true;
    m->depth[k] = store->depth;
}

/* ---- an answer ---- */

static inline bool closes_window(int score, const struct tt_ask *ask)
{
    return score <= ask->alpha || score >= ask->beta;
}

/* The model of a table that forgets nothing says the same. */
static inline void check_exact(const struct contract_model *m, unsigned k, const struct tt_ask *ask,
                               const struct tt_answer *answer)
{
    struct model_bounds b = {TT_SCORE_MIN, TT_SCORE_MAX};
    bool counts = m->known[k] &&
                  (ask->flags & TT_STRICT ? m->depth[k] == ask->depth : m->depth[k] >= ask->depth);
    if (counts) {
        b = m->entry[k];
    }
    bool cut = b.lower >= ask->beta || b.upper <= ask->alpha || b.lower == b.upper;
    assert_int_equal(answer->verdict == TT_CUT, cut);
    assert_int_equal(answer->move, m->move[k]);
    if (cut) {
        assert_int_equal(answer->score,
                         b.upper <= ask->alpha && b.lower != b.upper ? b.upper : b.lower);
    } else if (answer->verdict == TT_OPEN) {
        assert_int_equal(answer->alpha, b.lower > ask->alpha ? b.lower : ask->alpha);
        assert_int_equal(answer->beta, b.upper < ask->beta ? b.upper : ask->beta);
    }
}

/* Some result that may answer this ask proved value >= lower and value <= upper. */
static inline bool is_proved(const struct contract_model *m, unsigned k, const struct tt_ask *ask,
                             int lower, int upper)
{
    unsigned last = ask->flags & TT_STRICT ? ask->depth : MODEL_DEPTHS - 1;
    for (unsigned d = ask->depth; d <= last; d++) {
        if (m->stored[k][d].lower >= lower && m->stored[k][d].upper <= upper) {
            return true;
        }
    }
    return false;
}

static inline void check_sound(const struct contract_model *m, unsigned k, const struct tt_ask *ask,
                               const struct tt_answer *answer)
{
    if (answer->verdict == TT_CUT) {
        int lower = answer->score <= ask->alpha ? TT_SCORE_MIN : answer->score;
        int upper = answer->score >= ask->beta ? TT_SCORE_MAX : answer->score;
        assert_true(is_proved(m, k, ask, lower, upper));
    } else if (answer->verdict == TT_OPEN) {
        int lower = answer->alpha > ask->alpha ? answer->alpha : TT_SCORE_MIN;
        int upper = answer->beta < ask->beta ? answer->beta : TT_SCORE_MAX;
        assert_true(is_proved(m, k, ask, lower, upper));
    }
}

/* ---- the operations ---- */

static inline void model_step_ask(struct contract *c, struct contract_model *m, uint64_t *random,
                                  unsigned k, unsigned d, unsigned asker, bool forgets)
{
    int alpha = (int)rng_below(random, MODEL_SCORES) - 1;
    struct tt_ask ask =
        contract_window(model_key(k), (uint8_t)d, alpha, alpha + 1 + (int)rng_below(random, 5));
    ask.flags = (uint8_t)rng_below(random, 4);
    struct tt_answer answer = contract_ask(c, asker, ask);
    unsigned others = model_nproc(m, k, d) - m->is_holder[k][d][asker];
    bool busy = ask.flags & TT_EXCLUSIVE && others > 0;
    if (forgets) {
        check_sound(m, k, &ask, &answer);
    } else {
        check_exact(m, k, &ask, &answer);
    }
    if (answer.verdict != TT_CUT) {
        assert_int_equal(answer.verdict, busy ? TT_BUSY : TT_OPEN);
    }
    if (answer.verdict == TT_OPEN) {
        m->is_holder[k][d][asker] = true;
    }
    assert_int_equal(answer.nproc, model_nproc(m, k, d));
}

static inline void model_step_store(struct contract *c, struct contract_model *m, uint64_t *random,
                                    unsigned k, unsigned d, unsigned asker)
{
    enum tt_bound bound = (enum tt_bound)(1 + rng_below(random, 3));
    int off = bound == TT_EXACT ? 0 : (int)rng_below(random, 5);
    int score = m->truth[k][d] + (bound == TT_LOWER ? -off : off);
    bool has_move = bound != TT_UPPER && rng_below(random, 4) > 0; /* not after a null move */
    uint16_t move = has_move ? (uint16_t)(1 + rng_below(random, 30)) : 0;
    struct tt_store store = tt_result(model_key(k), (uint8_t)d, bound, score, move);
    contract_store(c, asker, store);
    model_store(m, k, &store);
    m->is_holder[k][d][asker] = false;
}

static inline void model_step(struct contract *c, struct contract_model *m, uint64_t *random,
                              bool forgets)
{
    unsigned k = rng_below(random, MODEL_KEYS), d = rng_below(random, MODEL_DEPTHS);
    unsigned asker = rng_below(random, CONTRACT_ASKERS), dice = rng_below(random, 100);
    if (dice < 50) {
        model_step_ask(c, m, random, k, d, asker, forgets);
    } else if (dice < 75) {
        contract_release(c, asker, model_key(k), (uint8_t)d);
        m->is_holder[k][d][asker] = false;
    } else if (dice < 85) {
        model_step_store(c, m, random, k, d, asker);
    } else {
        struct tt_peeked seen = contract_peek(c, model_key(k), (uint8_t)d);
        assert_int_equal(seen.nproc, model_nproc(m, k, d));
        if (!forgets && m->known[k]) {
            assert_int_equal(seen.depth, m->depth[k]);
            assert_int_equal(seen.lower, m->entry[k].lower);
            assert_int_equal(seen.upper, m->entry[k].upper);
            assert_int_equal(seen.move, m->move[k]);
        }
    }
}

static inline void compare_with_model(struct contract *c, bool forgets)
{
    uint64_t random = tt_seed();
    struct contract_model *m = calloc(1, sizeof *m);
    assert_non_null(m);
    model_open(m, &random);
    for (unsigned step = 0; step < MODEL_STEPS; step++) {
        model_step(c, m, &random, forgets);
        if (step % 64 == 0) {
            assert_int_equal(c->driver->entries(c->table), model_is_within(m));
        }
    }
    for (unsigned i = 0; i < MODEL_KEYS * MODEL_DEPTHS * CONTRACT_ASKERS; i++) {
        unsigned k = i % MODEL_KEYS, d = i / MODEL_KEYS % MODEL_DEPTHS;
        contract_release(c, i / (MODEL_KEYS * MODEL_DEPTHS), model_key(k), (uint8_t)d);
    }
    assert_int_equal(c->driver->entries(c->table), 0);
    free(m);
}

static void a_big_table_behaves_as_its_model(void **state)
{
    compare_with_model(*state, false);
}

static void a_tiny_table_forgets_but_never_invents(void **state)
{
    compare_with_model(*state, true);
}

#endif
