/* Nodes in flight for longer than a shard keeps an entry that is not renewed. */
#include "tests/support/test_remote.h"
#include "tests/support/test_tt.h"

enum { INFLIGHT_AGE_MAX_MS = 1000, WAITS = 2 };

struct open_node {
    struct tt_ask ask;
};

static struct ttcore_options short_ages(void)
{
    struct ttcore_options options = bed_options();
    options.inflight_age_max_ms = INFLIGHT_AGE_MAX_MS;
    return options;
}

static struct world *world_of_short_ages(void)
{
    struct ttcore_options options = short_ages();
    return world_open_with(&options);
}

/* Makes the search look as if it were in that node, at ply 0. */
static void enters_as(struct peer *peer, struct open_node *node, uint64_t key, bool waits,
                      uint8_t flags)
{
    struct table_port port = remote_table_port(peer->remote);
    struct tt_answer answer;
    struct node *at = &peer->search->node[0];
    node->ask = (struct tt_ask){.key = key, .alpha = -1, .beta = 1, .depth = 5, .flags = flags};
    *at = (struct node){.in_flight = true, .alpha = -1, .beta = 1, .ask = node->ask};
    remote_begin(peer->remote, 2, true, waits);
    tt_pose(&port, &at->ask, &at->ticket, &answer);
    assert_int_equal(answer.verdict, TT_OPEN);
    peer->search->unwind = SEARCH_PLY_MAX;
}

static void enters(struct peer *peer, struct open_node *node, uint64_t key, bool waits)
{
    enters_as(peer, node, key, waits, TT_STRICT | TT_EXCLUSIVE);
}

/* Peer 0 is in a node, alone. */
static struct world *world_with_one_in_flight(struct open_node *node, bool waits)
{
    struct world *world = world_of_short_ages();
    peer_open(world, 0, 0, 0);
    enters(&world->peer[0], node, 1234, waits);
    return world;
}

/* It searches on below, and the shard checks at its clock. */
static void goes_on(struct peer *peer, unsigned ms)
{
    for (unsigned i = 0; i < ms; i += 50) {
        serve(peer, 50);
        bed_event(peer->world->bed, TTCORE_TICK);
    }
}

static void leaves(struct peer *peer, const struct open_node *node)
{
    struct table_port port = remote_table_port(peer->remote);
    struct tt_release release = {.key = node->ask.key, .depth = node->ask.depth};
    peer->search->node[0].in_flight = false;
    port.release(port.self, &peer->search->node[0].ticket, &release);
}

static void finishes(struct peer *peer, const struct open_node *node, int score)
{
    struct table_port port = remote_table_port(peer->remote);
    struct tt_store store = tt_result(node->ask.key, node->ask.depth, TT_EXACT, score, 99);
    peer->search->node[0].in_flight = false;
    port.store(port.self, &peer->search->node[0].ticket, &store);
}

/* Of the last holder. */
static void leaves_nothing(struct peer *peer, const struct open_node *node)
{
    leaves(peer, node);
    goes_on(peer, 10);
    assert_int_equal(figures(peer->world).inflight_entries, 0);
}

static void an_entry_in_use_is_renewed(void **state)
{
    (void)state;
    for (unsigned waits = 0; waits < WAITS; waits++) {
        struct open_node node;
        struct world *world = world_with_one_in_flight(&node, waits);
        struct peer *a = &world->peer[0];
        for (unsigned i = 0; i < 50; i++) {
            goes_on(a, INFLIGHT_AGE_MAX_MS / 10);
            assert_int_equal(figures(world).inflight_entries, 1);
        }
        leaves_nothing(a, &node);
        assert_int_equal(figures(world).inflight_expired, 0);
        world_close(world);
    }
}

/* An exclusive holder stays registered when helpers come. */
static void helpers_do_not_end_an_entry(void **state)
{
    (void)state;
    struct open_node node, same;
    struct world *world = world_with_one_in_flight(&node, true);
    struct peer *a = &world->peer[0], *b = &world->peer[1];
    peer_open(world, 1, 0, 0);
    enters_as(b, &same, 1234, true, TT_STRICT);
    for (unsigned i = 0; i < 2 * INFLIGHT_AGE_MAX_MS; i += 50) {
        goes_on(a, 50);
        goes_on(b, 50);
        assert_int_equal(figures(world).inflight_entries, 2);
    }
    assert_int_equal(a->search->unwind, SEARCH_PLY_MAX);
    assert_true(a->search->node[0].contended);
    leaves(a, &node);
    goes_on(a, 10);
    leaves_nothing(b, &same);
    world_close(world);
}

/* It is left between the renewal and the answer. */
static void leaving_ends_a_renewal(void **state)
{
    (void)state;
    struct open_node node;
    struct world *world = world_with_one_in_flight(&node, true);
    struct peer *a = &world->peer[0];
    struct client *client = remote_client(a->remote);
    uint64_t asks = client_counters(client)->asks;
    for (unsigned i = 0; client_counters(client)->asks == asks; i++) {
        assert_true(i < INFLIGHT_AGE_MAX_MS);
        serve(a, 1);
    }
    leaves(a, &node);
    goes_on(a, 2 * INFLIGHT_AGE_MAX_MS);
    assert_int_equal(client_counters(client)->asks, asks + 1);
    assert_int_equal(client_outstanding(client), 0);
    assert_int_equal(figures(world).inflight_entries, 0);
    assert_int_equal(figures(world).inflight_expired, 0);
    world_close(world);
}

/* The release got lost: the entry is not renewed and expires. */
static void an_entry_not_in_use_expires(void **state)
{
    (void)state;
    struct open_node node;
    struct world *world = world_with_one_in_flight(&node, true);
    struct peer *a = &world->peer[0];
    a->search->node[0].in_flight = false;
    goes_on(a, 2 * INFLIGHT_AGE_MAX_MS);
    assert_int_equal(figures(world).inflight_entries, 0);
    assert_int_equal(figures(world).inflight_expired, 1);
    world_close(world);
}

/* NODE_DONE got lost: the renewal is answered by the result. */
static void a_lost_completion_notice_is_made_up_for(void **state)
{
    (void)state;
    for (unsigned waits = 0; waits < WAITS; waits++) {
        struct open_node node, same;
        struct world *world = world_with_one_in_flight(&node, waits);
        struct peer *a = &world->peer[0], *b = &world->peer[1];
        peer_open(world, 1, 0, 0);
        goes_on(a, 10);
        enters_as(b, &same, 1234, true, TT_STRICT);
        finishes(b, &same, 7);
        serve(b, 5);
        a->letters = 0;
        goes_on(a, 10);
        assert_int_equal(a->search->unwind, SEARCH_PLY_MAX);
        goes_on(a, INFLIGHT_AGE_MAX_MS);
        assert_int_equal(a->search->unwind, 0);
        assert_int_equal(a->search->node[0].resolved, RESOLVED_CUT);
        assert_int_equal(a->search->node[0].resolved_score, 7);
        leaves_nothing(a, &node);
        world_close(world);
    }
}

/* The shard is started anew: renewals register the holders again. */
static void a_new_shard_registers_the_holders(void **state)
{
    (void)state;
    struct ttcore_options options = short_ages();
    struct open_node node;
    struct world *world = world_with_one_in_flight(&node, true);
    struct peer *a = &world->peer[0];
    goes_on(a, 100);
    ttcore_close(&world->bed->core);
    options.boot++;
    assert_int_equal(ttcore_open(&world->bed->core, &options), ERR_OK);
    goes_on(a, 2 * INFLIGHT_AGE_MAX_MS);
    assert_int_equal(figures(world).inflight_entries, 1);
    leaves_nothing(a, &node);
    world_close(world);
}

/* It was entered while no shard was up: the first one that comes gets it. */
static void a_node_entered_without_a_shard_is_registered_later(void **state)
{
    (void)state;
    struct world *world = world_of_short_ages();
    struct peer *a = &world->peer[0];
    struct open_node node;
    peer_open(world, 0, 0, 0);
    a->is_cut_off = true;
    while (client_shards_up(remote_client(a->remote)) > 0) {
        serve(a, 50);
    }
    enters(a, &node, 1234, true);
    a->is_cut_off = false;
    goes_on(a, 40 * INFLIGHT_AGE_MAX_MS);
    assert_int_equal(client_shards_up(remote_client(a->remote)), 1);
    assert_int_equal(figures(world).inflight_entries, 1);
    leaves_nothing(a, &node);
    assert_int_equal(embedded_inflight(a->table), 0);
    world_close(world);
}

/* A search that awaits slow answers polls by time, not by nodes: it has a time limit. */
static void after_a_long_wait_the_search_polls(void **state)
{
    (void)state;
    struct open_node node;
    struct world *world = world_with_one_in_flight(&node, true);
    struct peer *peer = &world->peer[0];
    atomic_uint *until_poll = embedded_until_poll(&peer->local);
    leaves(peer, &node);
    atomic_store(until_poll, 200);
    enters(peer, &node, 77, true);
    assert_int_equal(atomic_load(until_poll), 200); /* answered at once */
    leaves(peer, &node);
    peer->is_cut_off = true;
    enters(peer, &node, 78, true);
    assert_int_equal(atomic_load(until_poll), 1);
    world_close(world);
}

/* Peer 0 of a world whose shard has died enters a node in a search with that limit, and waits for
 * the answer: microseconds that it took. */
static uint64_t waited_us(uint64_t limit_us, const atomic_bool *stop)
{
    struct world *world = world_of_short_ages();
    struct peer *peer = &world->peer[0];
    struct tt_ask ask = {.key = 78, .alpha = -1, .beta = 1, .depth = 5, .flags = TT_STRICT};
    struct table_ticket ticket;
    struct tt_answer answer;
    peer_open(world, 0, 0, 0);
    struct table_port port = remote_table_port(peer->remote);
    peer->is_cut_off = true;
    remote_begin(peer->remote, 2, true, true);
    uint64_t begin = world->bed->now_us;
    struct remote_limit limit = {.until_us = limit_us != 0 ? begin + limit_us : 0, .stop = stop};
    remote_set_limit(peer->remote, &limit);
    tt_pose(&port, &ask, &ticket, &answer);
    uint64_t took = world->bed->now_us - begin;
    assert_int_equal(answer.verdict, TT_OPEN); /* it goes on alone */
    assert_int_equal(atomic_load(embedded_until_poll(&peer->local)), 1);
    struct tt_release release = {.key = ask.key, .depth = ask.depth};
    port.release(port.self, &ticket, &release);
    assert_int_equal(embedded_inflight(peer->table), 0);
    assert_int_equal(client_outstanding(remote_client(peer->remote)), 0);
    world_close(world);
    return took;
}

static void no_answer_is_waited_for_when_the_search_is_over(void **state)
{
    (void)state;
    atomic_bool goes_on_for_now = false, is_stopped = true;
    uint64_t time_out = waited_us(0, NULL);
    assert_true(time_out > 1500);
    assert_int_equal(waited_us(1500, NULL), 1500);
    assert_int_equal(waited_us(1500, &goes_on_for_now), 1500);
    assert_int_equal(waited_us(0, &is_stopped), 0);
    assert_int_equal(waited_us(0, &goes_on_for_now), time_out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_entry_in_use_is_renewed),
        cmocka_unit_test(helpers_do_not_end_an_entry),
        cmocka_unit_test(leaving_ends_a_renewal),
        cmocka_unit_test(an_entry_not_in_use_expires),
        cmocka_unit_test(a_lost_completion_notice_is_made_up_for),
        cmocka_unit_test(a_new_shard_registers_the_holders),
        cmocka_unit_test(a_node_entered_without_a_shard_is_registered_later),
        cmocka_unit_test(after_a_long_wait_the_search_polls),
        cmocka_unit_test(no_answer_is_waited_for_when_the_search_is_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
