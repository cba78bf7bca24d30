/* test_remote: several remotes before one shard's core, in virtual time, without a network. Their
 * searches never run: the tests write what they would add or find. */
#ifndef TESTS_SUPPORT_TEST_REMOTE_H
#define TESTS_SUPPORT_TEST_REMOTE_H

#include "tests/support/test_ttcore.h"
#include "worker/games/games.h"
#include "worker/search/handover/algorithms.h"
#include "worker/search/node.h"
#include "worker/table/remote.h"
#include "worker/table/remote_depth.h"

enum { PEERS = 3, INBOX = 64, LETTER = 16384, TABLE_BYTES = 1 << 20 };

struct letter {
    size_t length;
    uint8_t bytes[LETTER];
};

struct world;

struct peer {
    struct world *world;
    char route[2];
    struct remote *remote;
    struct embedded *table; /* of the first thread of a host; the others borrow it */
    struct embedded_port local;
    struct search *search;
    struct letter inbox[INBOX];
    unsigned letters, read;
    bool is_cut_off; /* what it sends is lost */
};

struct world {
    struct bed *bed;
    struct peer peer[PEERS];
};

static inline uint64_t shell_now(void *self)
{
    return ((struct peer *)self)->world->bed->now_us;
}

static inline bool shell_send(void *self, unsigned shard, const uint8_t *bytes, size_t length)
{
    struct peer *peer = self;
    struct bed *bed = peer->world->bed;
    (void)shard;
    if (peer->is_cut_off) {
        return true;
    }
    bed_bytes(bed, peer->route, bytes, length);
    for (uint32_t i = 0; i < bed->actions.messages; i++) {
        const struct ttcore_message *m = &bed->actions.message[i];
        for (unsigned s = 0; s < PEERS; s++) {
            struct peer *to = &peer->world->peer[s];
            if (to->remote != NULL && bed_is_for(bed, m, to->route)) {
                assert_true(to->letters < INBOX && m->length <= LETTER);
                struct letter *letter = &to->inbox[to->letters++];
                letter->length = m->length;
                memcpy(letter->bytes, m->bytes, m->length);
            }
        }
    }
    return true;
}

static inline bool shell_receive(void *self, struct client *client)
{
    struct peer *peer = self;
    if (peer->read == peer->letters) {
        peer->read = peer->letters = 0;
        return false;
    }
    const struct letter *letter = &peer->inbox[peer->read++];
    client_receive(client, 0, letter->bytes, letter->length, shell_now(self));
    return true;
}

static inline void shell_sleep(void *self, uint64_t until_us)
{
    struct bed *bed = ((struct peer *)self)->world->bed;
    bed->now_us =
        until_us > bed->now_us && until_us < bed->now_us + 1000 ? until_us : bed->now_us + 1000;
}

static inline bool never(void *self, struct search *search)
{
    (void)self, (void)search;
    return false;
}

static inline void peer_begin(struct peer *peer)
{
    const struct game *game = games_by_name("chess");
    void *position = calloc(1, game->position_size);
    char why[128];
    assert_non_null(position);
    assert_int_equal(game->parse(position, "startpos", why, sizeof why), ERR_OK);
    search_set_position(peer->search, position);
    remote_begin(peer->remote, 2, true, false);
    free(position);
}

/* Slot `slot` of that table. */
static inline void peer_open_at(struct world *world, unsigned index, uint8_t share_depth,
                                struct embedded *table, unsigned slot)
{
    struct peer *peer = &world->peer[index];
    const struct algorithm *algorithm = algorithm_by_name("abdada");
    struct env_port env = {.self = peer, .poll = never};
    bool is_alone = embedded_slots(table) == 1;
    peer->world = world;
    peer->route[0] = (char)('a' + index);
    peer->local = (struct embedded_port){.table = table,
                                         .slot = (uint16_t)slot,
                                         .inflight_depth_max =
                                             is_alone ? EMBEDDED_NEVER : EMBEDDED_INFLIGHT_DEPTH};
    struct remote_options options = {
        .lane = {.self = peer,
                 .now = shell_now,
                 .send = shell_send,
                 .receive = shell_receive,
                 .sleep = shell_sleep,
                 .shares_reach_all = true,
                 .ask_cost_us = LANE_ASK_US},
        .client = {.shards = 1, .role = PROTO_CLIENT, .instance = index + 1, .name = peer->route},
        .local = &peer->local,
        .share_depth = share_depth,
    };
    assert_int_equal(remote_open(&peer->remote, &options), ERR_OK);
    struct search_options plan = {
        .game = games_by_name("chess"), .algorithm = algorithm, .strict = true, .depth_limit = 1};
    struct table_port port = remote_table_port(peer->remote);
    assert_int_equal(search_open(&peer->search, &plan, &port, &env), ERR_OK);
    for (unsigned i = 0; i < GAME_MOVES_MAX; i++) { /* of a root that is never generated */
        peer->search->root_list[peer->search->root_list_count++] = (uint16_t)(i + 1);
    }
    assert_int_equal(remote_connect(peer->remote, 100), 1);
    peer_begin(peer);
}

/* `group`: of those whose results it shares; 0: its own. */
static inline void peer_open(struct world *world, unsigned index, uint8_t share_depth,
                             uint64_t group)
{
    struct peer *peer = &world->peer[index];
    assert_int_equal(embedded_open_on_host(&peer->table, TABLE_BYTES, 1, group, NULL), ERR_OK);
    peer_open_at(world, index, share_depth, peer->table, 0);
}

/* Peers 0 and 1 are threads of one host, 2 is another host. */
static inline void world_open_hosts(struct world *world, uint8_t share_depth)
{
    assert_int_equal(embedded_open(&world->peer[0].table, TABLE_BYTES, 16), ERR_OK);
    peer_open_at(world, 0, share_depth, world->peer[0].table, 0);
    peer_open_at(world, 1, share_depth, world->peer[0].table, 1);
    peer_open(world, 2, share_depth, 0);
}

/* The same, but of hosts of 16, which claim nodes; of that of 2 it is the only thread so far. */
static inline void world_open_large_hosts(struct world *world, uint8_t share_depth)
{
    assert_int_equal(embedded_open(&world->peer[0].table, TABLE_BYTES, 16), ERR_OK);
    assert_int_equal(embedded_open(&world->peer[2].table, TABLE_BYTES, 16), ERR_OK);
    peer_open_at(world, 0, share_depth, world->peer[0].table, 0);
    peer_open_at(world, 1, share_depth, world->peer[0].table, 1);
    peer_open_at(world, 2, share_depth, world->peer[2].table, 0);
}

static inline struct world *world_open_with(const struct ttcore_options *options)
{
    struct world *world = calloc(1, sizeof *world);
    assert_non_null(world);
    world->bed = bed_open(options);
    return world;
}

static inline struct world *world_open(void)
{
    struct ttcore_options options = bed_options();
    return world_open_with(&options);
}

static inline void world_close(struct world *world)
{
    for (unsigned i = 0; i < PEERS; i++) {
        remote_close(&world->peer[i].remote);
        search_free(&world->peer[i].search);
    }
    for (unsigned i = 0; i < PEERS; i++) {
        embedded_close(&world->peer[i].table);
    }
    bed_close(world->bed);
    free(world);
}

/* As a search polls. */
static inline void poll_once(struct peer *peer)
{
    remote_serve(peer->remote, peer->search, peer->world->bed->now_us);
}

/* The same, for so long. */
static inline void serve(struct peer *peer, unsigned ms)
{
    struct bed *bed = peer->world->bed;
    for (unsigned i = 0; i < 2 * ms; i++) {
        bed->now_us += 500;
        poll_once(peer);
    }
}

static inline const struct client_counters *counters(const struct peer *peer)
{
    return client_counters(remote_client(peer->remote));
}

static inline struct ttcore_figures figures(const struct world *world)
{
    struct ttcore_figures f;
    ttcore_figures(world->bed->core, &f);
    return f;
}

#endif
