/* The history table that searchers of a root share: two remotes before one shard's core, in virtual
 * time, without a network. The searches never run: what they learnt is written into them. */
#include "tests/unit/test_ttcore.h"
#include "ttserver/core/history.h"
#include "worker/games/games.h"
#include "worker/search/node.h"
#include "worker/table/remote.h"

enum { SEATS = 2, INBOX = 64, LETTER = 16384 };

struct letter {
    size_t length;
    uint8_t bytes[LETTER];
};

struct world;

struct seat {
    struct world *world;
    char route[2];
    struct remote *remote;
    struct embedded *table;
    struct embedded_port local;
    struct search *search;
    struct letter inbox[INBOX];
    unsigned letters;
};

struct world {
    struct bed *bed;
    struct seat seat[SEATS];
};

static uint64_t shell_now(void *self)
{
    return ((struct seat *)self)->world->bed->now_us;
}

static bool shell_send(void *self, unsigned shard, const uint8_t *bytes, size_t length)
{
    struct seat *seat = self;
    struct bed *bed = seat->world->bed;
    (void)shard;
    bed_bytes(bed, seat->route, bytes, length);
    for (uint32_t i = 0; i < bed->actions.messages; i++) {
        const struct ttcore_message *m = &bed->actions.message[i];
        for (unsigned s = 0; s < SEATS; s++) {
            struct seat *to = &seat->world->seat[s];
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

static bool shell_drain(void *self, struct client *client)
{
    struct seat *seat = self;
    bool any = seat->letters > 0;
    for (unsigned i = 0; i < seat->letters; i++) {
        client_receive(client, 0, seat->inbox[i].bytes, seat->inbox[i].length, shell_now(self));
    }
    seat->letters = 0;
    return any;
}

static void shell_sleep(void *self, uint64_t until_us)
{
    struct bed *bed = ((struct seat *)self)->world->bed;
    bed->now_us =
        until_us > bed->now_us && until_us < bed->now_us + 1000 ? until_us : bed->now_us + 1000;
}

static bool never(void *self, struct search *search)
{
    (void)self, (void)search;
    return false;
}

static void seat_begin(struct seat *seat)
{
    const struct game *game = games_by_name("chess");
    void *position = calloc(1, game->position_size);
    char why[128];
    assert_non_null(position);
    assert_int_equal(game->parse(position, "startpos", why, sizeof why), ERR_OK);
    search_set_position(seat->search, position);
    remote_begin(seat->remote, 2, true, false);
    free(position);
}

static void seat_open(struct world *world, unsigned index)
{
    struct seat *seat = &world->seat[index];
    const struct algorithm *algorithm = algorithm_by_name("abdada");
    struct env_port env = {seat, never};
    seat->world = world;
    seat->route[0] = (char)('a' + index);
    assert_int_equal(embedded_open(&seat->table, 4096, 1), ERR_OK);
    seat->local = (struct embedded_port){.table = seat->table, .counted_depth = EMBEDDED_NEVER};
    struct remote_options options = {
        .shell = {.self = seat,
                  .now = shell_now,
                  .send = shell_send,
                  .drain = shell_drain,
                  .sleep = shell_sleep},
        .client = {.shards = 1, .role = PROTO_CLIENT, .instance = index + 1, .name = seat->route},
        .local = &seat->local,
    };
    assert_int_equal(remote_open(&seat->remote, &options), ERR_OK);
    struct search_options plan = {
        .game = games_by_name("chess"), .algorithm = algorithm, .strict = true, .depth_limit = 1};
    struct table_port port = remote_table_port(seat->remote);
    assert_int_equal(search_open(&seat->search, &plan, &port, &env), ERR_OK);
    assert_int_equal(remote_connect(seat->remote, 100), 1);
    seat_begin(seat);
}

static int setup(void **state)
{
    struct world *world = calloc(1, sizeof *world);
    struct ttcore_options options = bed_options();
    assert_non_null(world);
    world->bed = bed_open(&options);
    for (unsigned i = 0; i < SEATS; i++) {
        seat_open(world, i);
    }
    *state = world;
    return 0;
}

static int teardown(void **state)
{
    struct world *world = *state;
    for (unsigned i = 0; i < SEATS; i++) {
        remote_close(&world->seat[i].remote);
        search_free(&world->seat[i].search);
        embedded_close(&world->seat[i].table);
    }
    bed_close(world->bed);
    free(world);
    return 0;
}

/* As a search polls, for so long. */
static void serve(struct seat *seat, unsigned ms)
{
    struct bed *bed = seat->world->bed;
    for (unsigned i = 0; i < 2 * ms; i++) {
        bed->now_us += 500;
        remote_poll(seat->remote);
        remote_settle(seat->remote, seat->search);
    }
}

static void learnt(struct seat *seat, unsigned index, uint32_t weight)
{
    seat->search->fresh[index] += weight;
    seat->search->history[index / SEARCH_HISTORY][index % SEARCH_HISTORY] += (int32_t)weight;
}

static int32_t knows(const struct seat *seat, unsigned index)
{
    return seat->search->history[index / SEARCH_HISTORY][index % SEARCH_HISTORY];
}

static struct ttcore_figures figures(const struct world *world)
{
    struct ttcore_figures f;
    ttcore_figures(world->bed->core, &f);
    return f;
}

static void one_learns_from_the_other(void **state)
{
    struct world *world = *state;
    struct seat *a = &world->seat[0], *b = &world->seat[1];
    learnt(a, 3, 5);
    learnt(a, 8191, 7);
    serve(a, 20);
    assert_int_equal(figures(world).history_gifts, 2);
    learnt(b, 3, 2);
    serve(b, 40);
    assert_int_equal(knows(b, 3), 7);
    assert_int_equal(knows(b, 8191), 7);
    serve(a, 40);
    assert_int_equal(knows(a, 3), 7);
    assert_int_equal(figures(world).history_gifts, 3); /* nothing twice */
    assert_int_equal(figures(world).history_refused, 0);
}

static void what_is_not_given_yet_counts_besides(void **state)
{
    struct world *world = *state;
    struct seat *a = &world->seat[0], *b = &world->seat[1];
    learnt(a, 3, 5);
    serve(a, 20);
    serve(b, 2); /* asked; the answer lies there */
    remote_poll(b->remote);
    learnt(b, 3, 4);
    remote_settle(b->remote, b->search);
    assert_int_equal(knows(b, 3), 9);
}

static void halving_reaches_everybody_once(void **state)
{
    struct world *world = *state;
    struct seat *a = &world->seat[0], *b = &world->seat[1];
    learnt(a, 3, 100);
    serve(a, 20);
    serve(b, 40);
    assert_int_equal(knows(b, 3), 100);
    learnt(a, 9, TT_HISTORY_LIMIT - 1);
    serve(a, 40);
    learnt(b, 9, 1);
    serve(b, 40); /* now the sum is at the limit */
    serve(a, 40);
    for (unsigned i = 0; i < SEATS; i++) {
        assert_int_equal(knows(&world->seat[i], 3), 50);
        assert_int_equal(knows(&world->seat[i], 9), TT_HISTORY_LIMIT / 2);
    }
}

static void a_new_search_of_the_root_is_told_all_again(void **state)
{
    struct world *world = *state;
    struct seat *a = &world->seat[0];
    learnt(a, 3, 800);
    learnt(a, 9, TT_HISTORY_LIMIT); /* halved once, there */
    serve(a, 40);
    int32_t before = knows(a, 3);
    assert_int_equal(before, 400);
    for (unsigned i = 0; i < 4; i++) { /* soon too early for the shard, which then tells nothing */
        seat_begin(a); /* ages its own */
        serve(a, 3);
    }
    assert_true(knows(a, 3) < before);
    serve(a, 400);
    assert_int_equal(knows(a, 3), before);
    assert_true(figures(world).history_refused > 0);
}

static void a_topic_begun_anew_takes_nothing_away(void **state)
{
    struct world *world = *state;
    struct seat *a = &world->seat[0];
    learnt(a, 3, 800);
    learnt(a, 9, TT_HISTORY_LIMIT);
    serve(a, 40);
    bed_hello(world->bed, "other", PROTO_CLIENT);
    for (uint64_t topic = 1; topic <= HISTORIES; topic++) {
        struct proto_message m = {.type = PROTO_HISTORY, .history = {.request = 1, .topic = topic}};
        world->bed->now_us += TTCORE_HISTORY_KEEP_US;
        bed_say(world->bed, "other", m);
    }
    world->bed->now_us += TTCORE_HISTORY_KEEP_US;
    learnt(a, 4, 6);
    serve(a, 400);
    assert_int_equal(knows(a, 3), 400); /* of the old sum, not halved again */
    assert_int_equal(knows(a, 4), 6);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(one_learns_from_the_other),
        T(what_is_not_given_yet_counts_besides),
        T(halving_reaches_everybody_once),
        T(a_new_search_of_the_root_is_told_all_again),
        T(a_topic_begun_anew_takes_nothing_away),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
