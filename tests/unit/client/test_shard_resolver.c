/* By which addresses lanes reach shards. */
#include "tests/support/test_tt.h"

#include "proto/lane/shard_resolver.h"

static void an_address_in_numbers_is_there_at_once(void **state)
{
    (void)state;
    static const struct options_host_port server[] = {{"127.0.0.1", 7400}, {"::1", 7401}};
    struct shard_resolver *addresses = NULL;
    char endpoint[SHARD_ADDRESS_ENDPOINT_MAX] = "";
    assert_int_equal(shard_resolver_open(&addresses, server, 2, NULL), ERR_OK);
    assert_int_equal(shard_resolver_get(addresses, 0, 0, false, endpoint), 1);
    assert_string_equal(endpoint, "tcp://127.0.0.1:7400");
    assert_int_equal(shard_resolver_get(addresses, 1, 0, false, endpoint), 1);
    assert_string_equal(endpoint, "tcp://[::1]:7401");
    shard_resolver_close(&addresses);
    assert_null(addresses);
}

static void a_known_address_stays_while_nobody_answers_there(void **state)
{
    (void)state;
    static const struct options_host_port server = {"127.0.0.1", 7400};
    struct shard_resolver *addresses = NULL;
    char endpoint[SHARD_ADDRESS_ENDPOINT_MAX] = "as it was";
    assert_int_equal(shard_resolver_open(&addresses, &server, 1, NULL), ERR_OK);
    assert_int_equal(shard_resolver_get(addresses, 0, 1, true, endpoint), 1);
    shard_resolver_met_itself(addresses, 0); /* its port is held from the next call on */
    assert_int_equal(shard_resolver_get(addresses, 0, 1, true, endpoint), 1);
    assert_string_equal(endpoint, "as it was");
    shard_resolver_close(&addresses);
    shard_resolver_close(&addresses);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_address_in_numbers_is_there_at_once),
        cmocka_unit_test(a_known_address_stays_while_nobody_answers_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
