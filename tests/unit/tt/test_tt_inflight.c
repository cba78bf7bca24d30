#include "tests/support/test_tt.h"

#include "common/tt/inflight.h"

enum { HOLDERS_MAX = 256, TEST_SECRET = 1 };

static const struct tt_holder ann = {1, 0}, ann_too = {1, 1}, bob = {2, 0};

static bool is_holder(const struct tt_inflight *t, uint64_t key, uint8_t depth,
                      struct tt_holder holder)
{
    struct tt_holder all[HOLDERS_MAX];
    unsigned n = tt_inflight_holders(t, key, depth, all, HOLDERS_MAX);
    bool found = false;
    assert_true(n < HOLDERS_MAX);
    assert_int_equal(n, tt_inflight_count(t, key, depth));
    for (unsigned i = 0; i < n; i++) {
        found = found || (all[i].session == holder.session && all[i].slot == holder.slot);
    }
    return found;
}

/* Visits, not exclusively: how many holders then, 0 when refused. */
static unsigned join(struct tt_inflight *t, uint64_t key, uint8_t depth, struct tt_holder holder,
                     uint64_t now_us)
{
    bool is_busy;
    tt_inflight_visit(t, key, depth, holder, false, now_us, &is_busy);
    return is_holder(t, key, depth, holder) ? tt_inflight_count(t, key, depth) : 0;
}

static struct tt_inflight open_inflight_with(uint32_t capacity, uint32_t quota, unsigned bits)
{
    struct tt_inflight t = {0};
    assert_int_equal(tt_inflight_open(&t, capacity, quota, bits, TEST_SECRET), ERR_OK);
    return t;
}

static struct tt_inflight open_inflight(uint32_t capacity)
{
    return open_inflight_with(capacity, 0, 6);
}

static unsigned leave(struct tt_inflight *t, uint64_t key, uint8_t depth, struct tt_holder holder,
                      bool expected)
{
    assert_int_equal(is_holder(t, key, depth, holder), expected);
    unsigned left = tt_inflight_leave(t, key, depth, holder);
    assert_false(is_holder(t, key, depth, holder));
    return left;
}

static void joining_twice_counts_once(void **state)
{
    (void)state;
    struct tt_inflight t = open_inflight(8);
    assert_int_equal(join(&t, 5, 3, ann, 0), 1);
    assert_int_equal(join(&t, 5, 3, ann, 1), 1);
    assert_int_equal(join(&t, 5, 3, ann_too, 1), 2);
    assert_int_equal(join(&t, 5, 3, bob, 1), 3);
    assert_int_equal(tt_inflight_count(&t, 5, 3), 3);
    assert_int_equal(t.entries, 3);
    assert_int_equal(tt_inflight_nodes(&t), 1);
    tt_inflight_close(&t);
}

static void leaving_what_one_is_not_in_changes_nothing(void **state)
{
    (void)state;
    struct tt_inflight t = open_inflight(8);
    assert_int_equal(leave(&t, 5, 3, ann, false), 0);
    join(&t, 5, 3, ann, 0);
    assert_int_equal(leave(&t, 5, 3, bob, false), 1);
    assert_int_equal(leave(&t, 5, 4, ann, false), 0);
    assert_int_equal(leave(&t, 6, 3, ann, false), 0);
    assert_int_equal(tt_inflight_count(&t, 5, 3), 1);
    assert_int_equal(leave(&t, 5, 3, ann, true), 0);
    assert_int_equal(leave(&t, 5, 3, ann, false), 0);
    assert_int_equal(t.entries, 0);
    assert_int_equal(tt_inflight_nodes(&t), 0);
    tt_inflight_close(&t);
}

static void another_depth_is_another_node(void **state)
{
    (void)state;
    struct tt_inflight t = open_inflight(8);
    join(&t, 5, 3, ann, 0);
    join(&t, 5, 4, bob, 0);
    assert_int_equal(tt_inflight_count(&t, 5, 3), 1);
    assert_int_equal(tt_inflight_count(&t, 5, 4), 1);
    assert_true(is_holder(&t, 5, 3, ann) && !is_holder(&t, 5, 4, ann));
    assert_int_equal(tt_inflight_nodes(&t), 2);
    tt_inflight_close(&t);
}

static void a_full_table_refuses_counts_and_recovers(void **state)
{
    (void)state;
    struct tt_inflight t = open_inflight(3);
    join(&t, 1, 1, ann, 0);
    join(&t, 2, 1, ann, 0);
    join(&t, 1, 1, bob, 0);
    assert_int_equal(join(&t, 3, 1, ann, 0), 0);
    assert_int_equal(join(&t, 1, 1, ann_too, 0), 0);
    assert_int_equal(t.refused, 2);
    assert_int_equal(t.entries, 3);
    assert_int_equal(tt_inflight_count(&t, 1, 1), 2);
    assert_int_equal(join(&t, 1, 1, bob, 5), 2); /* a holder may repeat it */
    assert_int_equal(t.refused, 2);
    leave(&t, 2, 1, ann, true);
    assert_int_equal(join(&t, 3, 1, ann, 0), 1);
    assert_int_equal(join(&t, 4, 1, ann, 0), 0);
    tt_inflight_close(&t);
}

static void a_session_has_no_more_entries_than_its_quota(void **state)
{
    (void)state;
    struct tt_inflight t = open_inflight_with(8, 2, 2);
    assert_int_equal(join(&t, 1, 1, ann, 0), 1);
    assert_int_equal(join(&t, 1, 1, ann_too, 0), 2);
    assert_int_equal(join(&t, 2, 1, ann, 0), 0);
    assert_int_equal(join(&t, 1, 1, ann, 5), 2); /* a holder may repeat it */
    assert_int_equal(join(&t, 1, 1, bob, 5), 3);
    assert_int_equal(join(&t, 2, 1, bob, 5), 1);
    assert_int_equal(t.over_quota, 1);
    assert_int_equal(t.refused, 0);
    leave(&t, 1, 1, ann, true);
    leave(&t, 1, 1, ann, false);
    assert_int_equal(join(&t, 2, 1, ann, 6), 2);
    assert_int_equal(join(&t, 3, 1, ann, 6), 0);
    tt_inflight_expire(&t, 0); /* ann_too's */
    assert_int_equal(join(&t, 3, 1, ann, 6), 1);
    tt_inflight_drop_session(&t, ann.session);
    assert_int_equal(join(&t, 4, 1, ann, 7), 1);
    assert_int_equal(join(&t, 5, 1, ann, 7), 1);
    assert_int_equal(join(&t, 6, 1, ann, 7), 0);
    tt_inflight_close(&t);
}

static void drop_session_takes_only_that_sessions_entries(void **state)
{
    (void)state;
    struct tt_inflight t = open_inflight(64);
    for (uint64_t key = 0; key < 10; key++) {
        join(&t, key, 1, ann, 0);
        join(&t, key, 1, ann_too, 0);
        join(&t, key, 1, bob, 0);
    }
    assert_int_equal(tt_inflight_drop_session(&t, 77), 0);
    assert_int_equal(tt_inflight_drop_session(&t, 1), 20);
    assert_int_equal(tt_inflight_drop_session(&t, 1), 0);
    assert_int_equal(t.entries, 10);
    assert_int_equal(tt_inflight_nodes(&t), 10);
    for (uint64_t key = 0; key < 10; key++) {
        assert_int_equal(tt_inflight_count(&t, key, 1), 1);
        assert_true(is_holder(&t, key, 1, bob));
    }
    assert_int_equal(tt_inflight_drop_session(&t, 2), 10);
    assert_int_equal(tt_inflight_nodes(&t), 0);
    tt_inflight_close(&t);
}

/* 64 lists, unless limited otherwise: 1 and 65 are on one. */
static void sessions_on_one_list_are_kept_apart(void **state)
{
    (void)state;
    static const struct tt_holder neighbour = {65, 0};
    struct tt_inflight t = open_inflight(64);
    for (uint64_t key = 0; key < 10; key++) {
        join(&t, key, 1, ann, 0);
        join(&t, key + 5, 1, neighbour, 0);
    }
    assert_int_equal(tt_inflight_of_session(&t, 1), 10);
    assert_int_equal(tt_inflight_of_session(&t, 65), 10);
    assert_int_equal(tt_inflight_listed(&t, 1), 20);
    assert_int_equal(tt_inflight_listed(&t, 65), 20);
    assert_int_equal(tt_inflight_listed(&t, 2), 0);
    assert_int_equal(tt_inflight_drop_session(&t, 1), 10);
    assert_int_equal(tt_inflight_of_session(&t, 1), 0);
    assert_int_equal(tt_inflight_of_session(&t, 65), 10);
    for (uint64_t key = 5; key < 15; key++) {
        assert_int_equal(tt_inflight_count(&t, key, 1), 1);
        assert_true(is_holder(&t, key, 1, neighbour));
    }
    assert_int_equal(tt_inflight_drop_session(&t, 65), 10);
    assert_int_equal(t.entries, 0);
    tt_inflight_close(&t);
}

static void entries_expire_by_age_and_a_repeated_join_renews(void **state)
{
    (void)state;
    struct tt_inflight t = open_inflight(8);
    join(&t, 1, 1, ann, 10);
    join(&t, 1, 1, bob, 20);
    join(&t, 2, 1, ann, 30);
    assert_int_equal(tt_inflight_expire(&t, 9), 0);
    join(&t, 1, 1, ann, 40);
    assert_int_equal(tt_inflight_expire(&t, 30), 2);
    assert_true(is_holder(&t, 1, 1, ann));
    assert_false(is_holder(&t, 1, 1, bob));
    assert_int_equal(tt_inflight_nodes(&t), 1);
    assert_int_equal(tt_inflight_expire(&t, 39), 0);
    assert_int_equal(tt_inflight_expire(&t, UINT64_MAX), 1);
    assert_int_equal(t.entries, 0);
    tt_inflight_close(&t);
}

static void holders_lists_as_many_as_there_is_room_for(void **state)
{
    (void)state;
    struct tt_inflight t = open_inflight(300);
    struct tt_holder out[300];
    bool seen[200] = {false};
    assert_int_equal(tt_inflight_holders(&t, 1, 1, out, 300), 0);
    for (uint16_t slot = 0; slot < 200; slot++) {
        join(&t, 1, 1, (struct tt_holder){7, slot}, 0);
    }
    assert_int_equal(tt_inflight_holders(&t, 1, 1, out, 0), 0);
    assert_int_equal(tt_inflight_holders(&t, 1, 1, out, 64), 64);
    assert_int_equal(tt_inflight_holders(&t, 1, 1, out, 300), 200);
    for (unsigned i = 0; i < 200; i++) {
        assert_int_equal(out[i].session, 7);
        assert_in_range(out[i].slot, 0, 199);
        assert_false(seen[out[i].slot]);
        seen[out[i].slot] = true;
    }
    tt_inflight_close(&t);
}

static void one_entry_is_a_table_too(void **state)
{
    (void)state;
    struct tt_inflight t = open_inflight(1);
    for (uint64_t key = 0; key < 50; key++) {
        assert_int_equal(join(&t, key, 1, ann, key), 1);
        assert_int_equal(join(&t, key, 1, bob, key), 0);
        assert_int_equal(key % 2 ? tt_inflight_drop_session(&t, 1) : tt_inflight_expire(&t, key),
                         1);
    }
    assert_int_equal(t.refused, 50);
    tt_inflight_close(&t);
}

static void capacity_has_limits_and_close_may_come_twice(void **state)
{
    (void)state;
    struct tt_inflight t = {0};
    assert_int_equal(tt_inflight_open(&t, 0, 0, 6, 0), ERR_RANGE);
    assert_int_equal(tt_inflight_open(&t, (1u << 24) + 1, 0, 6, 0), ERR_RANGE);
    assert_null(t.entry);
    tt_inflight_close(&t);
    t = open_inflight(5);
    tt_inflight_close(&t);
    tt_inflight_close(&t);
}

/* ---- keys chosen to share a bucket ---- */

enum { CHOSEN = 1000, CHOSEN_CAPACITY = 1024 };

static unsigned buckets_in_use(const struct tt_inflight *t, const uint32_t *bucket)
{
    unsigned n = 0;
    for (uint64_t i = 0; i < UINT64_C(1) << (64 - t->shift); i++) {
        n += bucket[i] != 0;
    }
    return n;
}

static uint64_t inverse_of(uint64_t odd)
{
    uint64_t x = odd; /* Newton: correct bits double from three */
    for (unsigned i = 0; i < 5; i++) {
        x *= 2 - odd * x;
    }
    return x;
}

static uint64_t unmix(uint64_t x)
{
    x ^= x >> 31 ^ x >> 62;
    x *= inverse_of(UINT64_C(0x94d049bb133111eb));
    x ^= x >> 27 ^ x >> 54;
    x *= inverse_of(UINT64_C(0xbf58476d1ce4e5b9));
    return x ^ x >> 30 ^ x >> 60;
}

/* By the hashes that had no secret: one multiplication for nodes, two mixings for holders. */
static void keys_chosen_by_the_public_mixing_do_not_share_a_bucket(void **state)
{
    (void)state;
    struct tt_inflight t = open_inflight(CHOSEN_CAPACITY);
    assert_int_equal(unmix(rng_mix(12345)), 12345);
    for (uint64_t i = 0; i < CHOSEN; i++) {
        assert_int_equal(join(&t, i * inverse_of(UINT64_C(0xbf58476d1ce4e5b9)), 0, ann, 0), 1);
    }
    assert_true(buckets_in_use(&t, t.node_bucket) > CHOSEN / 2);
    tt_inflight_close(&t);

    t = open_inflight(2 * CHOSEN_CAPACITY);
    uint64_t member = (uint64_t)ann.session << 32 | 1;
    for (uint64_t i = 0; i < CHOSEN; i++) {
        uint64_t key = unmix(i) - rng_mix(member);
        assert_int_equal(join(&t, key, 0, ann, 0), 1);
        assert_int_equal(join(&t, key, 0, bob, 0), 2);
    }
    assert_true(buckets_in_use(&t, t.holder_bucket) > CHOSEN);
    tt_inflight_close(&t);
}

static void keys_that_share_a_bucket_of_one_table_do_not_in_another(void **state)
{
    (void)state;
    enum { FOUND = 64 };
    struct tt_inflight a = open_inflight(CHOSEN_CAPACITY), b = {0};
    uint64_t random = tt_seed();
    assert_int_equal(tt_inflight_open(&b, CHOSEN_CAPACITY, 0, 6, TEST_SECRET + 1), ERR_OK);
    for (unsigned found = 0; found < FOUND;) {
        uint64_t key = rng_next(&random);
        join(&a, key, 3, ann, 0);
        if (a.node_bucket[7] != 0) {
            join(&b, key, 3, ann, 0);
            found++;
        }
        leave(&a, key, 3, ann, true);
    }
    assert_true(buckets_in_use(&b, b.node_bucket) > FOUND / 2);
    tt_inflight_close(&a);
    tt_inflight_close(&b);
}

/* ---- against a model that is a plain array ---- */

enum { KEYS = 12, DEPTHS = 3, SESSIONS = 5, SLOTS = 3, MODEL_MAX = 200 };

struct model_entry {
    uint64_t key;
    uint8_t depth;
    struct tt_holder holder;
    uint64_t renewed_us;
};

struct model {
    struct model_entry entry[MODEL_MAX];
    unsigned entries, capacity;
    uint64_t refused;
};

static bool same_node(const struct model_entry *a, const struct model_entry *b)
{
    return a->key == b->key && a->depth == b->depth;
}

static bool same_entry(const struct model_entry *a, const struct model_entry *b)
{
    return same_node(a, b) && a->holder.session == b->holder.session &&
           a->holder.slot == b->holder.slot;
}

static unsigned model_count(const struct model *m, const struct model_entry *at)
{
    unsigned n = 0;
    for (unsigned i = 0; i < m->entries; i++) {
        n += same_node(&m->entry[i], at);
    }
    return n;
}

static struct model_entry *model_find(struct model *m, const struct model_entry *at)
{
    for (unsigned i = 0; i < m->entries; i++) {
        if (same_entry(&m->entry[i], at)) {
            return &m->entry[i];
        }
    }
    return NULL;
}

static unsigned model_nodes(const struct model *m)
{
    unsigned nodes = 0;
    for (unsigned i = 0; i < m->entries; i++) {
        bool first = true;
        for (unsigned j = 0; j < i; j++) {
            first = first && !same_node(&m->entry[i], &m->entry[j]);
        }
        nodes += first;
    }
    return nodes;
}

static unsigned model_join(struct model *m, const struct model_entry *at)
{
    struct model_entry *old = model_find(m, at);
    if (old != NULL) {
        old->renewed_us = at->renewed_us;
    } else if (m->entries == m->capacity) {
        m->refused++;
        return 0;
    } else {
        m->entry[m->entries++] = *at;
    }
    return model_count(m, at);
}

static void model_remove(struct model *m, unsigned i)
{
    m->entry[i] = m->entry[--m->entries];
}

static unsigned model_drop(struct model *m, uint32_t session, uint64_t before, bool by_age)
{
    unsigned dropped = 0;
    for (unsigned i = 0; i < m->entries;) {
        if (by_age ? m->entry[i].renewed_us <= before : m->entry[i].holder.session == session) {
            model_remove(m, i);
            dropped++;
        } else {
            i++;
        }
    }
    return dropped;
}

/* An exclusive visit is refused where others are; with a full table it counts the others. */
static void visit(struct tt_inflight *t, struct model *m, const struct model_entry *at,
                  bool exclusive)
{
    unsigned others = model_count(m, at) - (model_find(m, at) != NULL);
    bool is_busy, busy_expected = exclusive && others > 0;
    unsigned count =
        tt_inflight_visit(t, at->key, at->depth, at->holder, exclusive, at->renewed_us, &is_busy);
    assert_int_equal(is_busy, busy_expected);
    if (!busy_expected) {
        model_join(m, at);
    }
    assert_int_equal(count, model_count(m, at));
}

static void step(struct tt_inflight *t, struct model *m, uint64_t *random, uint64_t now)
{
    struct model_entry at = {
        .key = rng_below(random, KEYS),
        .depth = (uint8_t)rng_below(random, DEPTHS),
        .holder = {rng_below(random, SESSIONS) * 32, (uint16_t)rng_below(random, SLOTS)},
        .renewed_us = now,
    };
    unsigned dice = rng_below(random, 1000);
    if (dice < 280) {
        visit(t, m, &at, dice < 140);
    } else if (dice < 560) {
        assert_int_equal(join(t, at.key, at.depth, at.holder, now), model_join(m, &at));
    } else if (dice < 970) {
        struct model_entry *old = model_find(m, &at);
        unsigned left = leave(t, at.key, at.depth, at.holder, old != NULL);
        if (old != NULL) {
            model_remove(m, (unsigned)(old - m->entry));
        }
        assert_int_equal(left, model_count(m, &at));
    } else if (dice < 985) {
        assert_int_equal(tt_inflight_drop_session(t, at.holder.session),
                         model_drop(m, at.holder.session, 0, false));
    } else {
        uint64_t age = rng_below(random, 400), before = now > age ? now - age : 0;
        assert_int_equal(tt_inflight_expire(t, before), model_drop(m, 0, before, true));
    }
}

static unsigned model_of_session(const struct model *m, uint32_t session)
{
    unsigned n = 0;
    for (unsigned i = 0; i < m->entries; i++) {
        n += m->entry[i].holder.session == session;
    }
    return n;
}

static void compare_node(const struct tt_inflight *t, struct model *m, uint64_t *random)
{
    struct tt_holder out[MODEL_MAX];
    struct model_entry at = {
        .key = rng_below(random, KEYS),
        .depth = (uint8_t)rng_below(random, DEPTHS),
        .holder = {rng_below(random, SESSIONS) * 32, (uint16_t)rng_below(random, SLOTS)},
    };
    unsigned n = tt_inflight_count(t, at.key, at.depth);
    assert_int_equal(n, model_count(m, &at));
    assert_int_equal(is_holder(t, at.key, at.depth, at.holder), model_find(m, &at) != NULL);
    assert_int_equal(tt_inflight_of_session(t, at.holder.session),
                     model_of_session(m, at.holder.session));
    assert_int_equal(tt_inflight_holders(t, at.key, at.depth, out, MODEL_MAX), n);
    for (unsigned i = 0; i < n; i++) {
        at.holder = out[i];
        assert_non_null(model_find(m, &at));
        for (unsigned j = 0; j < i; j++) {
            assert_true(out[i].session != out[j].session || out[i].slot != out[j].slot);
        }
    }
}

static void it_behaves_as_its_model(void **state)
{
    (void)state;
    static const unsigned capacities[] = {1, 2, 3, 7, 40, MODEL_MAX};
    uint64_t random = tt_seed();
    for (unsigned c = 0; c < sizeof capacities / sizeof capacities[0]; c++) {
        struct tt_inflight t = open_inflight(capacities[c]);
        struct model m = {.capacity = capacities[c]};
        uint64_t now = 0;
        for (unsigned i = 0; i < 20000; i++) {
            now += rng_below(&random, 4);
            step(&t, &m, &random, now);
            assert_int_equal(t.entries, m.entries);
            assert_int_equal(tt_inflight_nodes(&t), model_nodes(&m));
            assert_int_equal(t.refused, m.refused);
            compare_node(&t, &m, &random);
        }
        tt_inflight_expire(&t, UINT64_MAX);
        assert_int_equal(t.entries + tt_inflight_nodes(&t), 0);
        tt_inflight_close(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(joining_twice_counts_once),
        cmocka_unit_test(leaving_what_one_is_not_in_changes_nothing),
        cmocka_unit_test(another_depth_is_another_node),
        cmocka_unit_test(a_full_table_refuses_counts_and_recovers),
        cmocka_unit_test(a_session_has_no_more_entries_than_its_quota),
        cmocka_unit_test(drop_session_takes_only_that_sessions_entries),
        cmocka_unit_test(sessions_on_one_list_are_kept_apart),
        cmocka_unit_test(entries_expire_by_age_and_a_repeated_join_renews),
        cmocka_unit_test(holders_lists_as_many_as_there_is_room_for),
        cmocka_unit_test(one_entry_is_a_table_too),
        cmocka_unit_test(capacity_has_limits_and_close_may_come_twice),
        cmocka_unit_test(keys_chosen_by_the_public_mixing_do_not_share_a_bucket),
        cmocka_unit_test(keys_that_share_a_bucket_of_one_table_do_not_in_another),
        cmocka_unit_test(it_behaves_as_its_model),
    };
    return cmocka_run_group_tests_name("tt_inflight", tests, NULL, NULL);
}
