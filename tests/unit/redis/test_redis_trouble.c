/* A Redis that forgets, is full, is written to by others: clients go on as with a shard that was
 * restarted, or without what it cannot do. */
#include "tests/support/test_redis_bed.h"

static void flushall_is_another_shard(void **state)
{
    (void)state;
    peer_open(&bed, 0, PROTO_WORKER);
    peer_open(&bed, 1, PROTO_FRONT);
    uint64_t boot = client_shard(bed.peer[0].client, 0).boot;
    post(1, 42, "startpos");
    BED_UNTIL(&bed, bed.peer[0].jobs > 0);
    assert_int_equal(peer_ask(&bed, 0, wide(3, 5, 0)).nproc, 1);
    unsigned offered = bed.peer[0].jobs;
    redis_expect(bed.server.port, "FLUSHALL", "OK");
    BED_UNTIL(&bed, client_shards_up(bed.peer[0].client) == 1 &&
                        client_shard(bed.peer[0].client, 0).boot != boot);
    BED_UNTIL(&bed, client_shards_up(bed.peer[1].client) == 1 &&
                        client_shard(bed.peer[1].client, 0).boot ==
                            client_shard(bed.peer[0].client, 0).boot);
    BED_UNTIL(&bed, bed.peer[0].jobs > offered); /* posted again by itself */
    assert_int_equal(peer_ask(&bed, 1, wide(3, 5, TT_EXCLUSIVE)).verdict, TT_OPEN);
}

static void serve(const struct lane *port, struct client *client)
{
    struct client_event event;
    while (port->receive(port->self, client)) {
        while (client_next(client, &event)) {
        }
    }
}

/* HELLOs that are said again while a server is silent are one session, all together. */
static void repeated_hello_is_one_session(void **state)
{
    (void)state;
    enum { HELLOS = 4 };
    struct redis_shell *shell;
    struct lane port;
    struct client *client; /* says nothing, and hears nothing */
    struct proto_message hello = {.type = PROTO_HELLO};
    uint8_t bytes[256];
    char name[8];
    unsigned sent = 0;
    long names = 0;
    uint64_t end_us = clock_us() + REDIS_PATIENCE_S * UINT64_C(1000000);
    assert_int_equal(redis_shell_open(&shell, &bed.address, NULL, NULL), ERR_OK);
    port = redis_shell_lane(shell);
    struct client_options options = {.shards = 1};
    assert_int_equal(client_open(&options, NULL, NULL, &client), ERR_OK);
    redis_expect(bed.server.port, "CLIENT PAUSE 100000 WRITE", "OK");
    while (sent < HELLOS) { /* the first as soon as there is a connection */
        assert_true(clock_us() < end_us);
        snprintf(name, sizeof name, "again%u", sent);
        hello.hello = (struct proto_hello){.request = sent + 1, .role = PROTO_WORKER};
        hello.hello.name = proto_text_of(name);
        size_t length = proto_encode(&hello, bytes, sizeof bytes);
        sent += port.send(port.self, 0, bytes, length);
        serve(&port, client);
    }
    redis_expect(bed.server.port, "CLIENT UNPAUSE", "OK");
    while (names == 0) { /* until the last one was done: a record has its name */
        assert_true(clock_us() < end_us);
        serve(&port, client);
        names = bed_eval(&bed, "local n = 0 for _, k in ipairs(redis.call('KEYS', 'abdada:*:s:*')) "
                               "do if redis.call('GET', k):find('again3', 1, true) then n = n + 1 "
                               "end end return n");
    }
    assert_int_equal(bed_eval(&bed, "return tonumber(redis.call('HGET', redis.call('KEYS', "
                                    "'abdada:*:f')[1], 'sessions_opened'))"),
                     1);
    client_free(&client);
    redis_shell_close(&shell);
}

static void restarted_server_is_another_shard(void **state)
{
    (void)state;
    peer_open_as(&bed, 0, PROTO_CLIENT, NAMES_A, 0); /* with the time-outs of a searcher */
    uint64_t boot = client_shard(bed.peer[0].client, 0).boot;
    redis_kill(&bed.server);
    BED_UNTIL(&bed, client_shards_up(bed.peer[0].client) == 0);
    redis_run(&bed.server);
    BED_UNTIL(&bed, client_shards_up(bed.peer[0].client) == 1 &&
                        client_shard(bed.peer[0].client, 0).boot != boot);
    peer_open(&bed, 1, PROTO_CLIENT);
    assert_int_equal(peer_ask(&bed, 1, wide(3, 5, 0)).nproc, 1);
}

static void forgotten_scripts_are_loaded_again(void **state)
{
    (void)state;
    peer_open(&bed, 0, PROTO_CLIENT);
    for (uint64_t key = 1; key < 10; key++) {
        redis_expect(bed.server.port, "SCRIPT FLUSH SYNC", "OK");
        assert_int_equal(peer_ask(&bed, 0, wide(key, 5, 0)).nproc, 1);
        peer_store(&bed, 0, tt_result(key, 5, TT_EXACT, 7, 3));
        assert_int_equal(peer_ask(&bed, 0, wide(key, 5, 0)).verdict, TT_CUT);
    }
    assert_int_equal(client_counters(bed.peer[0].client)->downs, 0);
}

/* Every key that a Redis has, made a list by somebody else. */
static void keys_of_another_type_give_way(void **state)
{
    (void)state;
    peer_open(&bed, 0, PROTO_WORKER);
    peer_open(&bed, 1, PROTO_FRONT);
    post(1, 42, "startpos");
    BED_UNTIL(&bed, bed.peer[0].jobs >= 1);
    (void)peer_ask(&bed, 0, wide(3, 5, 0));
    peer_store(&bed, 0, tt_result(4, 5, TT_EXACT, 7, 3));
    unsigned offered = bed.peer[0].jobs;
    (void)bed_eval(&bed, "for _, k in ipairs(redis.call('KEYS', 'abdada:*')) do "
                         "redis.call('DEL', k) redis.call('RPUSH', k, 'x') end return 0");
    BED_UNTIL(&bed, bed.peer[0].jobs > offered && client_shards_up(bed.peer[0].client) == 1);
    assert_int_equal(peer_ask(&bed, 0, wide(3, 5, TT_EXCLUSIVE)).nproc, 1);
    assert_int_equal(peer_ask(&bed, 0, wide(4, 5, 0)).verdict, TT_OPEN);
    peer_store(&bed, 0, tt_result(4, 5, TT_EXACT, 7, 3));
    assert_int_equal(peer_ask(&bed, 0, wide(4, 5, 0)).verdict, TT_CUT);
}

/* Values that no result has, of the right length and of others, count as none; the rest of a batch
 * is answered, and a store writes over them. */
static void unsound_results_are_none(void **state)
{
    (void)state;
    static const char *const value[] = {
        "string.rep(string.char(255), 7) .. string.char(0, 0)", /* too deep */
        "string.char(5, 128, 0, 127, 255, 0, 1, 0, 0)", /* a bound that no score has */
        "string.char(5, 0, 2, 0, 1, 0, 1, 0, 0)", /* bounds that contradict */
        "'x'",
        "string.rep('x', 1000)",
        "string.rep(string.char(5, 0, 1, 0, 1, 0, 1, 0, 0), 5)", /* of more depths than are kept */
        "string.char(5, 0, 1, 0, 1, 0, 1, 0, 0) .. 'x'",
        "string.char(5, 0, 1, 0, 1, 0, 1, 0, 0, 251, 0, 1, 0, 1, 0, 1, 0, 0)",
    };
    enum { BAD = sizeof value / sizeof *value, DEPTH = 5, GOOD = 1 };
    struct client *client;
    char lua[256];
    peer_open(&bed, 0, PROTO_CLIENT);
    client = bed.peer[0].client;
    peer_store(&bed, 0, tt_result(GOOD, DEPTH, TT_EXACT, 7, 3));
    for (unsigned i = 0; i < BAD; i++) {
        peer_store(&bed, 0, tt_result(GOOD + 1 + i, DEPTH, TT_EXACT, 7, 3));
        snprintf(lua, sizeof lua,
                 "local k = redis.call('KEYS', 'abdada:*:r:*' .. string.char(%u))[1] "
                 "redis.call('SET', k, %s) return 1",
                 GOOD + 1 + i, value[i]);
        assert_int_equal(bed_eval(&bed, lua), 1);
    }
    for (unsigned round = 0; round < 2; round++) {
        uint32_t ticket[BAD + 1];
        uint8_t where;
        for (unsigned i = 0; i <= BAD; i++) { /* of one batch */
            struct tt_ask ask = wide(GOOD + i, DEPTH, 0);
            ticket[i] = client_ask(client, &ask, 1, clock_us(), &where);
        }
        for (unsigned i = 0; i <= BAD; i++) {
            struct tt_answer answer;
            enum client_result result;
            while ((result = client_answer(client, ticket[i], clock_us(), &answer)) !=
                   CLIENT_READY) {
                assert_int_not_equal(result, CLIENT_LOST);
                bed_serve(&bed, &bed.peer[0]);
            }
            assert_int_equal(answer.verdict, i == 0 || round == 1 ? TT_CUT : TT_OPEN);
        }
        bed.peer[0].next = 0;
        bed.peer[0].entries = 0;
        do {
            unsigned pages = bed.peer[0].pages;
            assert_true(client_scan(client, 0, bed.peer[0].next, 0, clock_us()));
            BED_UNTIL(&bed, bed.peer[0].pages > pages);
        } while (bed.peer[0].next != 0);
        assert_int_equal(bed.peer[0].entries, round == 1 ? BAD + 1 : 1);
        for (unsigned i = 1; i <= BAD; i++) {
            assert_int_equal(peer_peek(&bed, 0, GOOD + i, DEPTH).depth, round == 1 ? DEPTH : 0);
            struct tt_store store = tt_result(GOOD + i, DEPTH, TT_EXACT, 9, 4);
            store.bound |= i % 2 ? TT_BESIDE : 0;
            peer_store(&bed, 0, store);
        }
    }
}

/* No room for writes: what is there is answered, and nobody is registered. */
static void full_server_still_answers(void **state)
{
    (void)state;
    peer_open(&bed, 0, PROTO_CLIENT);
    peer_store(&bed, 0, tt_result(4, 5, TT_EXACT, 7, 3));
    struct tt_ask twice = wide(6, 5, 0);
    (void)peer_ask(&bed, 0, twice);
    twice.slot = 1;
    assert_int_equal(peer_ask(&bed, 0, twice).nproc, 2);
    redis_expect(bed.server.port, "CONFIG SET maxmemory 1", "OK");
    struct tt_release first = {6, 5, 0}, second = {6, 5, 1};
    peer_release(&bed, 0, first);
    peer_release(&bed, 0, second);
    assert_int_equal(bed_entries(&bed), 0);
    assert_int_equal(peer_ask(&bed, 0, wide(4, 5, 0)).verdict, TT_CUT);
    struct tt_answer answer = peer_ask(&bed, 0, wide(3, 5, TT_EXCLUSIVE));
    assert_int_equal(answer.verdict, TT_OPEN);
    assert_int_equal(answer.nproc, 0);
    peer_store(&bed, 0, tt_result(5, 5, TT_EXACT, 7, 3));
    assert_int_equal(peer_peek(&bed, 0, 5, 5).move, 0);
    bed_serve_for(&bed, 5000000); /* the session is renewed all the same */
    assert_int_equal(peer_ask(&bed, 0, wide(4, 5, 0)).verdict, TT_CUT);
    assert_int_equal(client_counters(bed.peer[0].client)->downs, 0);
    redis_expect(bed.server.port, "CONFIG SET maxmemory 0", "OK");
    assert_int_equal(peer_ask(&bed, 0, wide(3, 5, TT_EXCLUSIVE)).nproc, 1);
}

/* Who asks for a flush is told that it was not done. */
static void refused_flush_is_no_success(void **state)
{
    (void)state;
    struct redis_address everybody = bed.address;
    char url[96], why[REDIS_WHY_MAX];
    redis_expect(bed.server.port, "ACL SETUSER reader on >secret ~abdada:* &abdada:* +@all -unlink",
                 "+OK");
    snprintf(url, sizeof url, "redis://reader:secret@127.0.0.1:%u", bed.server.port);
    assert_int_equal(redis_address_parse(&bed.address, url, why), ERR_OK);
    peer_open(&bed, 0, PROTO_CLIENT);
    peer_store(&bed, 0, tt_result(4, 5, TT_EXACT, 7, 3));
    assert_true(client_flush_table(bed.peer[0].client, 0, clock_us()));
    BED_UNTIL(&bed, bed.peer[0].flushes_refused == 1);
    assert_int_equal(bed.peer[0].flushes, 0);
    assert_int_equal(peer_peek(&bed, 0, 4, 5).depth, 5);
    bed.address = everybody;
}

/* A Redis that cannot save takes no writes: what is there is answered, until the session ends,
 * which cannot be renewed either; and all is well again when it takes writes. */
static void server_without_disk_is_left_and_comes_back(void **state)
{
    (void)state;
    char dir[128], line[200];
    peer_open(&bed, 0, PROTO_CLIENT);
    peer_store(&bed, 0, tt_result(4, 5, TT_EXACT, 7, 3));
    redis_make_dir(dir);
    snprintf(line, sizeof line, "CONFIG SET dir %s", dir);
    redis_expect(bed.server.port, line, "OK");
    redis_remove_dir(dir);
    redis_expect(bed.server.port, "CONFIG SET save \"3600 1\"", "OK");
    redis_expect(bed.server.port, "BGSAVE", "started");
    redis_expect(bed.server.port, "INFO persistence", "rdb_last_bgsave_status:err");
    struct tt_answer answer = peer_ask(&bed, 0, wide(3, 5, TT_EXCLUSIVE));
    assert_int_equal(answer.verdict, TT_OPEN);
    assert_int_equal(answer.nproc, 0);
    BED_UNTIL(&bed, client_shards_up(bed.peer[0].client) == 0);
    snprintf(line, sizeof line, "CONFIG SET dir %s", bed.dir);
    redis_expect(bed.server.port, line, "OK");
    redis_expect(bed.server.port, "CONFIG SET save \"\"", "OK");
    BED_UNTIL(&bed, client_shards_up(bed.peer[0].client) == 1);
    assert_int_equal(peer_peek_well(&bed, 0, 4, 5).move, 3);
}

/* What others publish on our channels is believed as little as possible. */
static void nonsense_on_channels_is_dropped(void **state)
{
    (void)state;
    peer_open(&bed, 0, PROTO_WORKER);
    static const char *const bytes[] = {
        "x",
        "''",
        "string.rep('x', 100000)",
        "string.char(0) .. string.rep('j', 60)",
        "string.char(0) .. redis.call('GET', b) .. k",
        "string.char(0) .. redis.call('GET', b) .. k .. "
        "string.rep('z', 14)",
        "string.char(200) .. string.rep('j', 60)",
    };
    for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++) {
        char lua[700];
        snprintf(lua, sizeof lua,
                 "local b = redis.call('KEYS', 'abdada:*:boot')[1] "
                 "for _, k in ipairs({'j', 's', 'n', 'r', 'h', 'q'}) do local x = k "
                 "for _, c in ipairs(redis.call('PUBSUB', 'CHANNELS', 'abdada:*')) do "
                 "redis.call('PUBLISH', c, %s) end end return 0",
                 bytes[i]);
        (void)bed_eval(&bed, lua);
    }
    assert_int_equal(peer_ask(&bed, 0, wide(3, 5, 0)).nproc, 1);
    assert_int_equal(bed.peer[0].jobs + bed.peer[0].stops + bed.peer[0].shares, 0);
}

/* A Redis that evicts may take any key, also that of a session, or of the life itself. */
static void evicting_server_goes_on(void **state)
{
    (void)state;
    enum { STORES = 20000 };
    struct client *client;
    peer_open(&bed, 0, PROTO_CLIENT);
    client = bed.peer[0].client;
    redis_expect(bed.server.port, "CONFIG SET maxmemory-policy allkeys-lru", "OK");
    char line[64];
    snprintf(line, sizeof line, "CONFIG SET maxmemory %ld",
             bed_eval(&bed, "return tonumber(redis.call('INFO', 'memory')"
                            ":match('used_memory:(%d+)')) + 1000000"));
    redis_expect(bed.server.port, line, "OK");
    for (unsigned i = 0; i < STORES; i++) {
        struct tt_store store = tt_result(rng_mix(i + 1), 9, TT_LOWER, -77, 5);
        client_store(client, 0, &store);
        if (i % 32 == 31) {
            peer_serve(&bed.peer[0]);
        }
    }
    (void)peer_peek_well(&bed, 0, 1, 5);
    assert_true(bed_eval(&bed, "return tonumber(redis.call('INFO', 'stats')"
                               ":match('evicted_keys:(%d+)'))") > 0);
    redis_expect(bed.server.port, "CONFIG SET maxmemory 0", "OK");
    redis_expect(bed.server.port, "CONFIG SET maxmemory-policy noeviction", "OK");
    peer_open(&bed, 1, PROTO_CLIENT);
    assert_int_equal(peer_ask(&bed, 1, wide(1, 5, TT_EXCLUSIVE)).verdict, TT_OPEN);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, fresh, closed)
    const struct CMUnitTest tests[] = {
        TEST(flushall_is_another_shard),
        TEST(repeated_hello_is_one_session),
        TEST(restarted_server_is_another_shard),
        TEST(forgotten_scripts_are_loaded_again),
        TEST(keys_of_another_type_give_way),
        TEST(unsound_results_are_none),
        TEST(full_server_still_answers),
        TEST(refused_flush_is_no_success),
        TEST(server_without_disk_is_left_and_comes_back),
        TEST(nonsense_on_channels_is_dropped),
        TEST(evicting_server_goes_on),
    };
#undef TEST
    if (bed_why_not() != NULL) {
        printf("1..0 # skipped: %s\n", bed_why_not());
        return 0;
    }
    return cmocka_run_group_tests_name("redis shell, troubles", tests, start_redis, stop_redis);
}
