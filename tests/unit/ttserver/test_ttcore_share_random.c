/* The result broadcast under anything: no result leaves twice or to the wrong ones, none gets lost
 * but those that are counted, and never more leave than may. */
#include "tests/support/test_tt.h"
#include "tests/support/test_ttcore.h"
#include "ttserver/core/share_relay.h"

#include "common/rng.h"

#include <stdio.h>

enum { PEERS = 60, HOSTS = 24, STEPS = 4000, RATE = 400000 };

struct peer {
    char name[8];
    uint64_t namespace_id, table_id; /* as it said last */
    bool wants;
};

struct world {
    struct bed *bed;
    uint64_t random, next_key;
    struct peer peer[PEERS];
    /* of each result */
    uint8_t *namespace_of;
    bool *is_relayed;
    uint64_t relayed, paid; /* results; results x receivers */
};

static void say_hello(struct world *w, struct peer *p)
{
    p->namespace_id = rng_below(&w->random, 8) > 0 ? 1 : 2;
    p->table_id = rng_below(&w->random, 8) == 0 ? 0 : 1 + rng_below(&w->random, HOSTS);
    p->wants = rng_below(&w->random, 6) > 0;
    bed_hello_as(w->bed, p->name,
                 (struct proto_hello){.role = PROTO_CLIENT,
                                      .instance = 1 + (uint64_t)(p - w->peer),
                                      .flags = p->wants ? PROTO_WANTS_RESULTS : 0,
                                      .namespace_id = p->namespace_id,
                                      .table_id = p->table_id});
}

static void say_results(struct world *w, struct peer *p)
{
    static struct tt_store list[PROTO_BATCH_MAX];
    struct proto_message m = {.type = PROTO_SHARE};
    uint32_t few = 1 + rng_below(&w->random, 20);
    uint32_t count = rng_below(&w->random, 10) > 0 ? few : rng_below(&w->random, 1025);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t key = w->next_key++;
        w->namespace_of[key] = (uint8_t)p->namespace_id;
        list[i] = (struct tt_store){
            .key = key, .score = (int16_t)(key % 99), .bound = TT_LOWER, .depth = key % 64};
    }
    if (count > 0 && rng_below(&w->random, 20) == 0) {
        p->table_id = 1 + rng_below(&w->random, HOSTS);
    }
    m.share = (struct proto_share){p->table_id, {count, list}, (uint8_t)rng_next(&w->random)};
    bed_say(w->bed, p->name, m);
}

static const struct peer *peer_of(const struct world *w, const struct ttcore_target *target)
{
    for (unsigned i = 0; i < PEERS; i++) {
        const struct peer *p = &w->peer[i];
        if (target->length == strlen(p->name) && !memcmp(target->route, p->name, target->length)) {
            return p;
        }
    }
    fail_msg("a target that nobody is");
    return NULL;
}

static void check_receivers(struct world *w, const struct ttcore_message *m,
                            const struct proto_share *share)
{
    bool has[HOSTS + 1] = {false}, got[PEERS] = {false};
    uint64_t namespace_id = w->namespace_of[share->list.at[0].key];
    for (uint32_t t = 0; t < m->targets; t++) {
        const struct peer *p = peer_of(w, &w->bed->actions.target[m->first + t]);
        assert_true(p->wants);
        assert_true(p->namespace_id == namespace_id);
        assert_true(p->table_id == 0 || p->table_id != share->table_id);
        assert_false(got[p - w->peer]);
        assert_false(p->table_id != 0 && has[p->table_id]);
        got[p - w->peer] = has[p->table_id] = true;
    }
    for (unsigned i = 0; i < PEERS; i++) { /* and all who should */
        const struct peer *p = &w->peer[i];
        bool own = p->table_id == share->table_id && p->table_id != 0;
        if (p->wants && p->namespace_id == namespace_id && p->table_id != 0 && !own) {
            assert_true(has[p->table_id]);
        }
    }
}

static void check_step(struct world *w)
{
    static struct proto_decoder decoder;
    struct proto_message message;
    assert_int_equal(w->bed->actions.dropped, 0);
    for (uint32_t i = 0; i < w->bed->actions.messages; i++) {
        const struct ttcore_message *m = &w->bed->actions.message[i];
        assert_int_equal(proto_decode(&decoder, m->bytes, m->length, &message), ERR_OK);
        if (message.type != PROTO_SHARE) {
            assert_int_equal(message.type, PROTO_WELCOME);
            continue;
        }
        const struct proto_share *share = &message.share;
        assert_true(m->may_drop && share->load < 100 && share->list.count > 0);
        for (uint32_t r = 0; r < share->list.count; r++) {
            const struct tt_store *s = &share->list.at[r];
            assert_true(s->key < w->next_key && !w->is_relayed[s->key]);
            assert_int_equal(s->score, s->key % 99);
            assert_int_equal(s->depth, s->key % 64);
            assert_true(r == 0 || s->key > share->list.at[r - 1].key);
            assert_int_equal(w->namespace_of[s->key], w->namespace_of[share->list.at[0].key]);
            w->is_relayed[s->key] = true;
        }
        check_receivers(w, m, share);
        w->relayed += share->list.count;
        w->paid += (uint64_t)share->list.count * m->targets;
    }
}

static void results_leave_once_and_for_the_right_ones(void **state)
{
    enum { MOST = STEPS * PROTO_BATCH_MAX };
    struct ttcore_options options = bed_options();
    (void)state;
    options.share_rate_max = RATE;
    struct world w = {.bed = bed_open(&options), .random = tt_seed()};
    w.namespace_of = calloc(MOST, 1);
    w.is_relayed = calloc(MOST, 1);
    assert_true(w.namespace_of && w.is_relayed);
    for (unsigned i = 0; i < PEERS; i++) {
        snprintf(w.peer[i].name, sizeof w.peer[i].name, "p%u", i);
        say_hello(&w, &w.peer[i]);
    }
    uint64_t begin_us = w.bed->now_us;
    for (unsigned i = 0; i < STEPS; i++) {
        unsigned chance = rng_below(&w.random, 100);
        struct peer *p = &w.peer[rng_below(&w.random, PEERS)];
        w.bed->now_us += rng_below(&w.random, rng_below(&w.random, 50) == 0 ? 30000 : 600);
        if (chance < 80) {
            say_results(&w, p);
        } else if (chance < 90) {
            bed_event(w.bed, TTCORE_TICK);
        } else {
            say_hello(&w, p);
        }
        check_step(&w);
    }
    uint64_t us = w.bed->now_us - begin_us;
    w.bed->now_us += TTCORE_SHARE_LATE_US;
    bed_event(w.bed, TTCORE_TICK);
    check_step(&w);
    struct ttcore_figures figures = bed_figures(w.bed);
    assert_int_equal(figures.shared, w.relayed);
    assert_int_equal(figures.shared + figures.shared_dropped, w.next_key);
    assert_true(figures.shared_dropped > 1000 && w.relayed > 1000); /* both were there */
    /* The last may be as large as a message can be. */
    uint64_t burst = (uint64_t)RATE * TTCORE_SHARE_BURST_US / 1000000;
    uint64_t largest = (uint64_t)PROTO_BATCH_MAX * PEERS;
    assert_true(w.paid <= RATE * us / 1000000 + burst + largest);
    free(w.namespace_of);
    free(w.is_relayed);
    bed_close(w.bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(results_leave_once_and_for_the_right_ones)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
