/* One score whatever is stolen by whom: threads with mailboxes over one table, and virtual workers.
 * Lazy SMP beside it, and the algorithms with a master's tree. Each case has two of the algorithms
 * in turn; with STEAL_ALL in the environment all of them. */
#include "tests/support/test_lab.h"
#include "tests/support/test_search.h"
#include "worker/engine/letter.h"
#include "worker/engine/mailbox.h"

#include <inttypes.h>

static const char *const algorithms[] = {"ybwc",   "jamboree",     "pvs",
                                         "epvs",   "dts",          "lazy",
                                         "aphid",  "minimal-tree", "minimal-tree-static",
                                         "uidpabs"};
enum { ALGORITHMS = sizeof algorithms / sizeof algorithms[0] };

static bool is_in_turn(unsigned a, unsigned number)
{
    return getenv("STEAL_ALL") != NULL || a % (ALGORITHMS / 2) == number % (ALGORITHMS / 2);
}

/* Most cases run in release: sanitizers see as much of a few. */
#ifdef __SANITIZE_THREAD__
enum { SLOWER = 8 };
#elif defined(__SANITIZE_ADDRESS__)
enum { SLOWER = 4 };
#else
enum { SLOWER = 1 };
#endif

/* ---- threads ---- */

/* The helpers end when the first searcher has ended. */
static bool poll_helper(void *self, struct search *search)
{
    struct rig_searcher *d = self;
    (void)search;
    return atomic_load(&d->rig->stop);
}

struct thieves {
    struct rig *rig;
    struct mailboxes *mailboxes;
    uint64_t stolen, jobs;
    bool lies; /* the last thread searches nothing */
};

static int a_bound(uint64_t *random)
{
    static const int bounds[] = {-GAME_INFINITE, -GAME_MATE, -300, 0, 20, GAME_MATE, GAME_INFINITE};
    return bounds[rng_below(random, 7)];
}

static uint16_t a_move(uint16_t move, uint64_t *random)
{
    return (uint16_t)(rng_below(random, 2) ? move : rng_next(random));
}

/* Now and then into another kind, whose fields are then what the bytes happen to say. */
static void change(struct peer_message *m, uint64_t *random)
{
    m->kind = rng_below(random, 3) ? m->kind : rng_below(random, TASK_RESULT + 1);
    m->length = (uint16_t)(rng_below(random, 2) ? m->length : rng_below(random, 6));
    m->moves[rng_below(random, 4)] = (uint16_t)rng_next(random);
    const bool is_of_child = m->kind >= STEAL_WORK && m->kind < TASK_WORK;
    if (is_of_child) {
        m->child.at = rng_below(random, 2) ? m->child.at : rng_below(random, GAME_MOVES_MAX);
    }
    const int depth = (int)rng_below(random, 7), iteration = (int)rng_below(random, 7);
    switch ((enum peer_kind)m->kind) {
    case STEAL_REQUEST:
    case STEAL_NO_WORK:
        m->request.number += rng_below(random, 2);
        break;
    case STEAL_WORK:
        m->work.request += rng_below(random, 2);
        m->work.move.move = a_move(m->work.move.move, random);
        m->work.alpha = m->work.alpha_now = a_bound(random);
        m->work.beta = a_bound(random);
        m->work.best = a_bound(random);
        m->work.depth = depth;
        m->work.cut_node = rng_below(random, 2);
        m->work.iteration = iteration;
        break;
    case STEAL_RESULT:
        m->length = (uint16_t)rng_below(random, 3);
        m->result.best = a_bound(random);
        m->result.has_value = rng_below(random, 2);
        m->result.lacks_value = rng_below(random, 2);
        m->result.counts = rng_below(random, 2);
        break;
    case STEAL_NARROW:
        m->narrow.alpha = a_bound(random);
        m->narrow.beta = a_bound(random);
        break;
    case STEAL_ABORT:
        break;
    case STEAL_SIGN:
        m->sign.is_answer = rng_below(random, 2);
        break;
    case TASK_WORK:
        m->offer.request += rng_below(random, 2);
        m->offer.asks = rng_below(random, 2);
        m->offer.cut_node = rng_below(random, 2);
        m->offer.alpha = a_bound(random);
        m->offer.beta = a_bound(random);
        m->offer.depth = depth;
        m->offer.iteration = iteration;
        break;
    case TASK_DROP:
        m->drop.request += rng_below(random, 2);
        break;
    case TASK_RESULT:
        m->known.request += rng_below(random, 2);
        m->known.move = a_move(m->known.move, random);
        m->known.alpha = a_bound(random);
        m->known.beta = a_bound(random);
        m->known.best = a_bound(random);
        m->known.depth = depth;
        break;
    }
}

/* What another process may say: messages that were caught, with some of their fields changed, as
 * far as a letter can say them. Not for ever: who gives signs is waited for. */
static void *lie(void *context)
{
    struct rig_searcher *d = context;
    const struct peer_port *port = d->env.peers;
    uint64_t random = tt_seed() + d->options.number;
    static struct peer_message caught[16];
    uint8_t body[PROTO_BODY_MAX];
    unsigned count = 0;
    for (unsigned said = 0; said < 30000 / SLOWER && !atomic_load(&d->rig->stop); said++) {
        struct peer_message m;
        while (port->receive(port->self, &m)) {
            caught[count++ % 16] = m;
        }
        m = caught[rng_below(&random, 16)];
        change(&m, &random);
        if (letter_read(body, letter_write(&m, body), &m)) {
            m.job = port->job;
            m.from = port->index;
            port->send(port->self, rng_below(&random, port->index), &m);
        }
    }
    return NULL;
}

static struct thieves thieves_open(const char *algorithm, unsigned searchers, unsigned counted)
{
    struct thieves t = {.rig = rig_open(algorithm, searchers, counted, RIG_BYTES)};
    assert_int_equal(mailboxes_open(&t.mailboxes, searchers, true), ERR_OK);
    for (unsigned i = 0; i < searchers; i++) {
        struct rig_searcher *d = &t.rig->searcher[i];
        d->slot.results_only = true;
        d->env = (struct env_port){
            .self = d, .poll = poll_helper, .until_poll = embedded_until_poll(&d->slot)};
        d->env.peers = mailboxes_port(t.mailboxes, i, d->env.until_poll);
        d->options.number = i;
        d->options.poll_nodes = 16;
    }
    return t;
}

static void thieves_close(struct thieves *t)
{
    mailboxes_close(&t->mailboxes);
    rig_close(t->rig);
}

static int thieves_run(struct thieves *t, const struct game *game, const void *position,
                       unsigned depth)
{
    struct rig *rig = t->rig;
    pthread_t thread[RIG_MAX];
    atomic_store(&rig->stop, false);
    assert_int_equal(mailboxes_begin(t->mailboxes, ++t->jobs, true), ERR_OK);
    for (unsigned i = 0; i < rig->searchers; i++) {
        struct rig_searcher *d = &rig->searcher[i];
        struct table_port port = embedded_table_port(&d->slot);
        embedded_begin(&d->slot, t->jobs, 0);
        d->options.depth_limit = depth;
        if (d->options.game != game) {
            search_free(&d->search);
            d->options.game = game;
        }
        if (d->search == NULL || d->search->table.self != port.self) {
            search_free(&d->search);
            assert_int_equal(search_open(&d->search, &d->options, &port, &d->env), ERR_OK);
        }
        search_set_limits(d->search, &d->options, &d->env);
        search_set_position(d->search, position);
    }
    for (unsigned i = 1; i < rig->searchers; i++) {
        void *(*life)(void *) = t->lies && i + 1 == rig->searchers ? lie : rig_slot;
        assert_int_equal(pthread_create(&thread[i], NULL, life, &rig->searcher[i]), 0);
    }
    rig_slot(&rig->searcher[0]);
    atomic_store(&rig->stop, true);
    mailboxes_wake(t->mailboxes);
    for (unsigned i = 1; i < rig->searchers; i++) {
        pthread_join(thread[i], NULL);
        t->stolen += rig->searcher[i].counters.steals;
    }
    assert_int_equal(embedded_inflight(rig->table), 0);
    assert_int_equal(rig->searcher[0].result.depth, depth);
    return rig->searcher[0].result.score;
}

static void threads_that_steal_give_the_sequential_score(void **state)
{
    (void)state;
    struct suite suite = test_positions();
    struct rig *oracle = oracle_open();
    uint64_t stolen = 0;
    for (unsigned i = 0; i < 24u / SLOWER; i++) {
        rig_run_text(oracle, suite.at[i].position, 5);
        for (unsigned a = 0; a < ALGORITHMS; a++) {
            if (!is_in_turn(a, i)) {
                continue;
            }
            struct thieves t = thieves_open(algorithms[a], 2 + i % 2 * 2, 2);
            test_parse(oracle->position, suite.at[i].position);
            int score = thieves_run(&t, test_game(), oracle->position, 5);
            assert_int_equal(score, oracle->searcher[0].result.score);
            stolen += t.stolen; /* of one: it may end before a helper has begun */
            thieves_close(&t);
        }
    }
    assert_true(stolen > 0);
    rig_close(oracle);
    suite_close(&suite);
}

/* A liar spoils scores, as in the table; but no search crashes, and each comes to its end. */
static void searches_with_a_liar_end(void **state)
{
    (void)state;
    struct suite suite = test_positions();
    void *position = calloc(1, test_game()->position_size);
    assert_non_null(position);
    for (unsigned a = 0; a < ALGORITHMS; a++) {
        struct thieves t = thieves_open(algorithms[a], 3, 2);
        t.lies = strcmp(algorithms[a], "lazy") != 0;
        test_parse(position, suite.at[a].position);
        (void)thieves_run(&t, test_game(), position, 5);
        thieves_close(&t);
    }
    free(position);
    suite_close(&suite);
}

/* ---- random trees ---- */

static void draw_tree(uint64_t *random, char *text, unsigned *depth)
{
    static const char *const more[] = {"",
                                       ",edges=bell",
                                       ",edges=tailed,range=900",
                                       ",t=2",
                                       ",edges=losses",
                                       ",t=3,edges=bell",
                                       ",shape=ranked"};
    unsigned b = 2 + rng_below(random, 7), d = b < 4 ? 8 : b < 6 ? 6 : 5;
    snprintf(text, GAME_TEXT_MAX, "tree:b=%u,d=%u,seed=%u,order=%u%s", b, d,
             rng_below(random, 100000), rng_below(random, 101),
             more[rng_below(random, sizeof more / sizeof more[0])]);
    *depth = d;
}

static void threads_give_the_score_of_random_trees(void **state)
{
    (void)state;
    uint64_t random = tt_seed(), stolen = 0;
    const struct game *game = games_by_name("tree");
    void *position = calloc(1, game->position_size);
    assert_non_null(position);
    for (unsigned i = 0; i < 100u / SLOWER; i++) {
        char text[GAME_TEXT_MAX], why[128];
        unsigned depth;
        draw_tree(&random, text, &depth);
        assert_int_equal(game->parse(position, text, why, sizeof why), ERR_OK);
        struct thieves one = thieves_open("sequential", 1, EMBEDDED_NEVER);
        int expected = thieves_run(&one, game, position, depth);
        thieves_close(&one);
        for (unsigned a = 0; a < ALGORITHMS; a++) {
            if (!is_in_turn(a, i / 6)) {
                continue;
            }
            struct thieves t = thieves_open(algorithms[a], 2 + i % 3, 1 + i % 2);
            int score = thieves_run(&t, game, position, depth);
            if (score != expected) {
                fail_msg("%s with %s: %d, not %d", text, algorithms[a], score, expected);
            }
            stolen += t.stolen;
            thieves_close(&t);
        }
    }
    assert_true(stolen > 0);
    free(position);
}

#ifndef __SANITIZE_THREAD__ /* one thread, and slow there */

static void virtual_workers_give_the_score_of_random_trees(void **state)
{
    (void)state;
    static const unsigned hosts[] = {8, 1, 4, 32, 16}, threads[] = {1, 8, 4, 1, 8};
    uint64_t random = tt_seed(), stolen[ALGORITHMS] = {0};
    for (unsigned i = 0; i < 100u / SLOWER; i++) {
        char text[GAME_TEXT_MAX];
        unsigned depth, kind = i % 5;
        draw_tree(&random, text, &depth);
        struct job job = lab_job("tree", text, "sequential", depth);
        int expected = lab_sequential(&job);
        job.remote_depth = (uint8_t)(1 + i % 3);
        job.waits = i % 2 == 0;
        for (unsigned a = 0; a < ALGORITHMS; a++) {
            if (!is_in_turn(a, i / 5)) {
                continue;
            }
            job.algorithm = algorithm_by_name(algorithms[a]);
            struct chaos_options options = lab_cluster(&job, hosts[kind] * threads[kind], 2);
            options.lab.threads = threads[kind];
            options.lab.seed = rng_next(&random);
            options.lab.rtt_ns = i % 4 == 0 ? 0 : options.lab.rtt_ns;
            options.lab.poll_ns = i % 3 == 0 ? 1 : 0;
            options.drain = false;
            struct chaos_result r = lab_do(&options);
            if (!r.lab.answer[0].answered || r.lab.answer[0].search.score != expected) {
                fail_msg("%s with %s, %u hosts of %u threads: %d, not %d", text, algorithms[a],
                         hosts[kind], threads[kind], r.lab.answer[0].search.score, expected);
            }
            stolen[a] += r.lab.sum.steals;
        }
        job_free(&job);
    }
    for (unsigned a = 0; a < ALGORITHMS; a++) {
        assert_int_equal(stolen[a] > 0, strcmp(algorithms[a], "lazy") != 0);
    }
}

static struct lab_result eight_by(const char *algorithm)
{
    struct job job = lab_job("tree", "tree:b=8,d=8,seed=3,order=80", algorithm, 8);
    job.remote_depth = 1;
    struct chaos_options options = lab_cluster(&job, 8, 2);
    options.lab.rtt_ns = 0;
    options.drain = false;
    struct chaos_result r = lab_do(&options);
    assert_true(r.lab.answer[0].answered);
    job_free(&job);
    return r.lab;
}

/* Three of eight workers may die, one of them for ever: what they had is given to others. In each
 * fifth case all die, and the searcher with the root goes on alone. One message in a hundred gets
 * lost in each third case. */
static void work_of_the_dead_is_given_to_others(void **state)
{
    (void)state;
    static const char *const names[] = {"aphid",    "ybwc",    "minimal-tree",
                                        "jamboree", "dts",     "pvs",
                                        "epvs",     "uidpabs", "minimal-tree-static"};
    enum { NAMES = sizeof names / sizeof names[0] };
    uint64_t random = tt_seed(), kills = 0, lost = 0;
    for (unsigned i = 0; i < 180u / SLOWER; i++) {
        char text[GAME_TEXT_MAX];
        unsigned depth;
        draw_tree(&random, text, &depth);
        struct job job = lab_job("tree", text, "sequential", depth);
        int expected = lab_sequential(&job);
        job.algorithm = algorithm_by_name(names[i % NAMES]);
        job.remote_depth = 1;
        struct chaos_options options = lab_cluster(&job, 8, 2);
        options.lab.seed = rng_next(&random);
        options.lab.loss_ppm = i % 3 == 0 ? 10000 : 0;
        const uint64_t end_ns = lab_do(&options).lab.end_ns;
        const bool all = i % 5 == 4;
        const struct lab_fault faults[] = {
            {LAB_KILL, .worker = 1, .workers = all ? 7 : 2, .at_ns = rng_next(&random) % end_ns,
             .lasts_ns = all ? LAB_FOR_EVER : end_ns / 4 + 1},
            {LAB_KILL, .worker = 7, .workers = 1, .at_ns = rng_next(&random) % end_ns,
             .lasts_ns = LAB_FOR_EVER}};
        options.fault = faults;
        options.faults = all ? 1 : 2;
        struct chaos_result r = lab_do(&options);
        if (!r.lab.answer[0].answered || r.lab.answer[0].search.score != expected) {
            fail_msg("%s with %s, killed at %" PRIu64 " ns: %d, not %d", text, names[i % NAMES],
                     faults[0].at_ns, r.lab.answer[0].search.score, expected);
        }
        kills += r.faults[LAB_KILL];
        lost += r.lab.lost;
        job_free(&job);
    }
    assert_true(kills > 400 / SLOWER && lost > 100 / SLOWER);
}

/* PVS divides few nodes, and EPVS more of them. The moves of the root are few tasks; who reports no
 * shallower results sends less. */
static void each_divides_by_its_rules(void **state)
{
    (void)state;
    const uint64_t pvs = eight_by("pvs").sum.steals, epvs = eight_by("epvs").sum.steals;
    assert_true(pvs > 0);
    assert_true(epvs > pvs);
    assert_true(eight_by("ybwc").sum.steals > pvs);
    assert_true(eight_by("jamboree").sum.steals > pvs);
    assert_true(eight_by("dts").sum.steals > pvs);
    const struct lab_result dynamic = eight_by("minimal-tree"), uidpabs = eight_by("uidpabs");
    assert_true(uidpabs.sum.steals > 0);
    assert_true(eight_by("aphid").sum.steals > uidpabs.sum.steals);
    assert_true(dynamic.messages > eight_by("minimal-tree-static").messages);
}

enum { STRIDE = SLOWER > 1 ? 12 : 4 };

static void virtual_workers_give_the_score_of_chess(void **state)
{
    (void)state;
    struct suite suite = test_positions();
    for (unsigned i = 0; i < 24; i += STRIDE) {
        struct job job = lab_job("chess", suite.at[i].position, "sequential", 4);
        int expected = lab_sequential(&job);
        for (unsigned a = 0; a < ALGORITHMS; a++) {
            if (!is_in_turn(a, i / 4)) {
                continue;
            }
            job.algorithm = algorithm_by_name(algorithms[a]);
            struct chaos_options options = lab_cluster(&job, i % 8 == 0 ? 32 : 128, 2);
            options.lab.threads = i % 8 == 0 ? 8 : 1;
            options.drain = false;
            struct chaos_result r = lab_do(&options), again = lab_do(&options);
            assert_true(r.lab.answer[0].answered);
            assert_int_equal(r.lab.answer[0].search.score, expected);
            assert_true(r.lab.trace == again.lab.trace); /* to the event */
        }
        job_free(&job);
    }
    suite_close(&suite);
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_that_steal_give_the_sequential_score),
        cmocka_unit_test(threads_give_the_score_of_random_trees),
        cmocka_unit_test(searches_with_a_liar_end),
#ifndef __SANITIZE_THREAD__
        cmocka_unit_test(virtual_workers_give_the_score_of_random_trees),
        cmocka_unit_test(work_of_the_dead_is_given_to_others),
        cmocka_unit_test(each_divides_by_its_rules),
        cmocka_unit_test(virtual_workers_give_the_score_of_chess),
#endif
    };
    return cmocka_run_group_tests_name("search_steal", tests, NULL, NULL);
}
