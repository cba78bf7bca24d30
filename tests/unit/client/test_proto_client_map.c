/* Which shard owns a key. */
#include "tests/support/test_proto_fake.h"

/* PROTOCOL.md section 5 prints these. */
static void the_map_agrees_with_the_specification(void **state)
{
    static const uint64_t places[] = {1, 2, UINT64_C(0xb007000000000001), 0};
    static const struct {
        uint64_t key;
        unsigned shard;
    } vectors[] = {{UINT64_C(0x0), 0},
                   {UINT64_C(0x1), 0},
                   {UINT64_C(0x2), 1},
                   {UINT64_C(0x3), 0},
                   {UINT64_C(0x123456789abcdef), 2},
                   {UINT64_C(0xffffffffffffffff), 0},
                   {UINT64_C(0x8000000000000000), 2},
                   {UINT64_C(0x2a), 0}};
    struct fake *f = fake_open_with((struct client_options){.shards = 4});
    (void)state;
    client_tick(f->client, f->now);
    for (unsigned s = 0; s < 4; s++) {
        fake_welcome_at(f, s, 99 - s, places[s], 1);
    }
    assert_true(rng_mix(1) == UINT64_C(0x5692161d100b05e5));
    for (unsigned i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        assert_int_equal(client_owner(f->client, vectors[i].key), vectors[i].shard);
    }
    fake_close(f);
}

static void owners(const struct fake *f, unsigned owner[200])
{
    for (unsigned k = 0; k < 200; k++) {
        owner[k] = client_owner(f->client, rng_mix(k));
    }
}

/* Two that were filled from copies of one file: all clients agree, in whatever order they have
 * them, the one of the greater boot id has the place, and the other one is of use, too. */
static void of_two_shards_of_one_place_both_own_keys(void **state)
{
    (void)state;
    for (unsigned greater = 0; greater < 2; greater++) {
        unsigned alone[200], both[200], apart[200];
        struct proto_message bye = {.type = PROTO_BYE};
        struct fake *f = fake_open_with((struct client_options){.shards = 3});
        client_tick(f->client, f->now);
        fake_welcome_at(f, 1 - greater, 6, 5, 1);
        fake_welcome_at(f, 2, 8, 9, 1);
        owners(f, alone);
        assert_int_equal(client_twin(f->client, 1 - greater), CLIENT_NOWHERE);
        fake_welcome_at(f, greater, 7, 5, 1);
        owners(f, both);
        assert_int_equal(client_twin(f->client, greater), 1 - greater);
        assert_int_equal(client_twin(f->client, 1 - greater), greater);
        assert_int_equal(client_twin(f->client, 2), CLIENT_NOWHERE);
        /* Without the greater one the other has its place again. */
        fake_say(f, greater, &bye);
        owners(f, apart);
        assert_memory_equal(apart, alone, sizeof alone);
        fake_close(f);
        /* As if the other one had begun empty. */
        f = fake_open_with((struct client_options){.shards = 3});
        client_tick(f->client, f->now);
        fake_welcome_at(f, greater, 7, 5, 1);
        fake_welcome_at(f, 1 - greater, 6, 6, 1);
        fake_welcome_at(f, 2, 8, 9, 1);
        owners(f, apart);
        assert_memory_equal(apart, both, sizeof both);
        unsigned of[3] = {0};
        for (unsigned k = 0; k < 200; k++) {
            of[both[k]]++;
        }
        assert_true(of[0] > 30 && of[1] > 30 && of[2] > 30);
        fake_close(f);
    }
}

/* Boot ids change with each start; what it owns does not, when it kept its results. */
static void a_shard_that_kept_its_place_owns_its_keys_after_a_restart(void **state)
{
    struct fake *f = fake_open_with((struct client_options){.shards = 3});
    unsigned before[200];
    (void)state;
    client_tick(f->client, f->now);
    for (unsigned s = 0; s < 3; s++) {
        fake_welcome_at(f, s, 10 + s, 20 + s, 1);
    }
    for (unsigned k = 0; k < 200; k++) {
        before[k] = client_owner(f->client, rng_mix(k));
    }
    unsigned downs = f->downs;
    client_hello(f->client, PROTO_CLIENT, 0, f->now);
    fake_welcome_at(f, 1, 99, 21, 1);
    assert_int_equal(f->downs, downs + 1); /* nothing is registered there any more */
    assert_true(client_shard(f->client, 1).boot == 99 && client_shard(f->client, 1).place == 21);
    for (unsigned k = 0; k < 200; k++) {
        assert_int_equal(client_owner(f->client, rng_mix(k)), before[k]);
    }
    fake_close(f);
}

static void one_shard_under_two_names_owns_through_the_first(void **state)
{
    struct fake *f = fake_open_with((struct client_options){.shards = 2});
    (void)state;
    client_tick(f->client, f->now);
    fake_welcome_as(f, 1, 5, 1);
    fake_welcome_as(f, 0, 5, 2);
    assert_int_equal(client_twin(f->client, 0), 1);
    assert_true(client_shard(f->client, 0).boot == client_shard(f->client, 1).boot);
    for (unsigned k = 0; k < 100; k++) {
        assert_int_equal(client_owner(f->client, k), 0);
    }
    fake_close(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_map_agrees_with_the_specification),
        cmocka_unit_test(of_two_shards_of_one_place_both_own_keys),
        cmocka_unit_test(a_shard_that_kept_its_place_owns_its_keys_after_a_restart),
        cmocka_unit_test(one_shard_under_two_names_owns_through_the_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
