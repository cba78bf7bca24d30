/* CURVE against a small client written beside it: the round trip, every bit of the handshake, what
 * is said twice, and who is let in. */
#include "tests/support/test_zmtp.h"
#include "ttserver/net/curve.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define METADATA DEALER_METADATA, sizeof DEALER_METADATA - 1

static struct peer peer;
static struct curve_client client;

static void meet(size_t piece)
{
    peer_open(&peer, true);
    client_open(&client, peer.server.public_key);
    memcpy(peer.known, client.public_key, 32);
    assert_true(peer_handshake(&peer, &client, piece));
}

/* Up to the WELCOME. */
static void meet_half(void)
{
    uint8_t bytes[300];
    peer_open(&peer, true);
    client_open(&client, peer.server.public_key);
    memcpy(peer.known, client.public_key, 32);
    peer_say(&peer, bytes, greeting_put(bytes, "CURVE"), 100);
    peer.out_length = 0;
    peer_say(&peer, bytes, client_hello(&client, bytes), 300);
    assert_true(client_take_welcome(&client, peer.out, peer.out_length));
}

static void say(uint8_t flags, const void *message, size_t length)
{
    static uint8_t bytes[PEER_ROOM];
    peer_say(&peer, bytes, client_message(&client, flags, message, length, bytes), PEER_ROOM);
}

static void check_ended(const char *why)
{
    assert_int_equal(peer.ended, 1);
    if (!strstr(peer.why, why)) {
        fail_msg("%s, not: %s", peer.why, why);
    }
}

static void messages_of_all_lengths_go_both_ways_in_any_pieces(void **state)
{
    static uint8_t message[PEER_MESSAGE_MAX], bytes[PEER_ROOM], plain[PEER_ROOM];
    (void)state;
    for (size_t piece = 1; piece < 400; piece = piece * 3 / 2 + 1) {
        meet(piece);
        assert_ptr_equal(peer.user, peer.known);
        for (size_t length = 0; length <= PEER_MESSAGE_MAX; length = length * 3 + 1) {
            size_t n, used;
            randombytes_buf(message, length);
            peer.frames = 0;
            peer.got_length = 0;
            n = client_message(&client, CURVE_MORE, message, length, bytes);
            peer_say(&peer, bytes, n, piece);
            assert_int_equal(peer.frames, 1);
            assert_true(peer.frame_more[0] && peer.got_length == length);
            assert_memory_equal(peer.got, message, length);
            n = zmtp_put(&peer.z, false, message, length, bytes);
            assert_true(n <= length + ZMTP_OVERHEAD);
            used = client_take(&client, "\7MESSAGE", "CurveZMQMESSAGES", bytes, n, plain, &n);
            assert_true(used > 0 && n == length + 1 && plain[0] == 0);
            assert_memory_equal(plain + 1, message, length);
        }
    }
}

static void a_sealed_ping_is_answered_sealed(void **state)
{
    uint8_t plain[600];
    size_t n;
    (void)state;
    meet(1000);
    say(CURVE_COMMAND, "\4PING\0\0context", 14);
    assert_int_equal(
        client_take(&client, "\7MESSAGE", "CurveZMQMESSAGES", peer.out, peer.out_length, plain, &n),
        peer.out_length);
    assert_int_equal(n, 13);
    assert_memory_equal(plain, "\2\4PONGcontext", 13);
    say(CURVE_COMMAND, "\4PING\0\0seventeen bytes!!", 24);
    check_ended("PING");
}

static void every_bit_of_the_hello_counts(void **state)
{
    uint8_t hello[300], bytes[300];
    (void)state;
    for (unsigned bit = 0; bit < 202 * 8; bit++) {
        peer_open(&peer, true);
        client_open(&client, peer.server.public_key);
        peer_say(&peer, bytes, greeting_put(bytes, "CURVE"), 100);
        peer.out_length = 0;
        client_hello(&client, hello);
        hello[bit / 8] ^= (uint8_t)(1 << bit % 8);
        /* The padding is nothing; the highest bit of a key has no meaning; a longer frame may come.
         */
        bool is_padding = bit / 8 >= 10 && bit / 8 < 82;
        bool has_no_meaning = bit == (82 + 31) * 8 + 7;
        peer_say(&peer, hello, 202, 300);
        bool welcomed = client_take_welcome(&client, peer.out, peer.out_length);
        assert_int_equal(welcomed, is_padding || has_no_meaning);
        assert_true(peer.ready == 0 && peer.frames == 0);
    }
}

static void every_bit_of_the_initiate_counts(void **state)
{
    uint8_t bytes[1000];
    (void)state;
    for (unsigned at = 0;; at++) {
        meet_half();
        size_t n = client_initiate(&client, client.cn_public, METADATA, bytes);
        if (at == n) {
            break;
        }
        bytes[at] ^= (uint8_t)(1 << at % 8);
        peer_say(&peer, bytes, n, 1000);
        bool is_cookie = at >= 9 + 9 && at < 9 + 9 + 96; /* what we sent and do not need again */
        assert_int_equal(peer.ready, is_cookie);
        assert_int_equal(peer.asked, is_cookie);
    }
}

static void every_bit_of_a_message_counts(void **state)
{
    uint8_t bytes[100];
    (void)state;
    for (unsigned bit = 0; bit < 8 * (2 + 33 + 5); bit++) {
        meet(1000);
        size_t n = client_message(&client, 0, "hello", 5, bytes);
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        peer_say(&peer, bytes, n, 1000);
        assert_int_equal(peer.frames, bit == 2); /* COMMAND outside: as the RFC has it */
    }
}

static void an_initiate_cut_short_anywhere_is_none(void **state)
{
    uint8_t bytes[1000], body[1000];
    (void)state;
    meet_half();
    size_t n = client_initiate(&client, client.cn_public, METADATA, bytes) - 9;
    memcpy(body, bytes + 9, n);
    for (size_t cut = 0; cut < n; cut++) {
        meet_half();
        peer_say(&peer, bytes, frame_put(bytes, 4, body, cut), 1000);
        assert_true(peer.ended == 1 && peer.asked == 0);
    }
}

/* Who keeps to the seals may still put too little under them. */
static void what_is_sealed_may_be_too_short(void **state)
{
    uint8_t bytes[1000], body[1000], nonce[24], zeros[200] = {0};
    (void)state;
    for (size_t length = 0; length < 128; length++) {
        meet_half();
        client_initiate(&client, client.cn_public, METADATA, bytes);
        memcpy(body, bytes + 9, 113);
        client_nonce(nonce, "CurveZMQINITIATE", client.nonce - 1);
        assert_int_equal(
            crypto_box_easy(body + 113, zeros, length, nonce, client.cn_server, client.cn_secret),
            0);
        peer_say(&peer, bytes, frame_put(bytes, 4, body, 113 + 16 + length), 1000);
        check_ended("no INITIATE");
    }
    meet(1000);
    client_nonce(nonce, "CurveZMQMESSAGEC", client.nonce);
    memcpy(body, "\7MESSAGE", 8);
    memcpy(body + 8, nonce + 16, 8);
    assert_int_equal(
        crypto_box_easy(body + 16, zeros, 0, nonce, client.cn_server, client.cn_secret), 0);
    peer_say(&peer, bytes, frame_put(bytes, 0, body, 32), 1000);
    check_ended("no MESSAGE");
}

static void metadata_is_judged_under_curve_too(void **state)
{
    uint8_t bytes[1500], big[900] = {0};
    (void)state;
    meet_half();
    peer_say(&peer, bytes, client_initiate(&client, client.cn_public, "", 0, bytes), 1000);
    check_ended("what socket");
    meet_half();
    peer_say(&peer, bytes,
             client_initiate(&client, client.cn_public, "\13Socket-Type\0\0\0\6ROUTER", 22, bytes),
             1000);
    check_ended("no DEALER");
    assert_int_equal(peer.asked, 0);
    meet_half();
    peer_say(&peer, bytes, client_initiate(&client, client.cn_public, big, sizeof big, bytes), 9);
    check_ended("too long");
}

static void who_does_not_have_the_key_that_he_names_is_refused(void **state)
{
    uint8_t bytes[1000], other[32];
    (void)state;
    randombytes_buf(other, sizeof other);
    meet_half(); /* the vouch is for another key of the connection */
    peer_say(&peer, bytes, client_initiate(&client, other, METADATA, bytes), 1000);
    check_ended("does not have the key");
    meet_half(); /* it is not sealed by the key that is named */
    crypto_box_keypair(other, client.secret_key);
    peer_say(&peer, bytes, client_initiate(&client, client.cn_public, METADATA, bytes), 1000);
    check_ended("does not have the key");
    meet_half(); /* a vouch for another server */
    client.server_key[0] ^= 1;
    peer_say(&peer, bytes, client_initiate(&client, client.cn_public, METADATA, bytes), 1000);
    check_ended("does not have the key");
    assert_int_equal(peer.asked, 0);
}

static void a_key_that_is_not_allowed_gets_an_error(void **state)
{
    uint8_t bytes[1000];
    (void)state;
    meet_half();
    memset(peer.known, 0, sizeof peer.known);
    peer.out_length = 0;
    peer_say(&peer, bytes, client_initiate(&client, client.cn_public, METADATA, bytes), 1000);
    check_ended("not allowed");
    assert_int_equal(peer.asked, 1);
    static const char error[] = "\4\012\5ERROR\003400"; /* a command of ten bytes (RFC 23, 27) */
    assert_int_equal(peer.out_length, sizeof error - 1);
    assert_memory_equal(peer.out, error, sizeof error - 1);
}

/* A HELLO can be recorded by anyone and said again: it gets a WELCOME that only its first speaker
 * can open. An INITIATE said again does not open: each connection has a key of its own. */
static void what_was_recorded_lets_nobody_in(void **state)
{
    uint8_t hello[300], initiate[1000], message[100], bytes[100];
    (void)state;
    peer_open(&peer, true);
    client_open(&client, peer.server.public_key);
    memcpy(peer.known, client.public_key, 32);
    peer_say(&peer, bytes, greeting_put(bytes, "CURVE"), 100);
    size_t hello_length = client_hello(&client, hello);
    peer.out_length = 0;
    peer_say(&peer, hello, hello_length, 300);
    assert_true(client_take_welcome(&client, peer.out, peer.out_length));
    size_t n = client_initiate(&client, client.cn_public, METADATA, initiate);
    peer_say(&peer, initiate, n, 1000);
    assert_int_equal(peer.ready, 1);
    size_t message_length = client_message(&client, 0, "x", 1, message);
    peer_say(&peer, message, message_length, 100);
    assert_int_equal(peer.frames, 1);
    peer_say(&peer, message, message_length, 100);
    check_ended("used before");

    peer_connect(&peer);
    peer_say(&peer, bytes, greeting_put(bytes, "CURVE"), 100);
    peer_say(&peer, hello, hello_length, 300);
    assert_int_equal(peer.ended, 0);
    peer_say(&peer, initiate, n, 1000);
    check_ended("INITIATE does not open");
}

static void nonces_only_grow(void **state)
{
    uint8_t bytes[1000];
    (void)state;
    meet(1000);
    client.nonce += 1000; /* gaps are allowed */
    say(0, "x", 1);
    assert_int_equal(peer.frames, 1);
    client.nonce -= 2;
    say(0, "x", 1);
    check_ended("used before");
    meet_half();
    client.nonce--;
    peer_say(&peer, bytes, client_initiate(&client, client.cn_public, METADATA, bytes), 1000);
    check_ended("used before");
}

static void nothing_goes_beside_the_messages(void **state)
{
    uint8_t bytes[100];
    (void)state;
    meet(1000);
    peer_say(&peer, bytes, frame_put(bytes, 4, "\4PING\0\0", 7), 100);
    check_ended("no MESSAGE");
    meet(1000);
    peer_say(&peer, bytes, frame_put(bytes, 0, "in the clear", 12), 100);
    check_ended("no MESSAGE");
    meet(1000);
    say(CURVE_MORE | CURVE_COMMAND, "\4PING\0\0", 7);
    check_ended("flags");
    meet(1000);
    say(4, "x", 1);
    check_ended("flags");
    meet(1000);
    say(CURVE_COMMAND, "", 0);
    check_ended("cut short");
    assert_int_equal(peer.frames, 0);
}

static void the_longest_message_is_taken_and_one_byte_more_is_not(void **state)
{
    static uint8_t message[PEER_MESSAGE_MAX + 1];
    (void)state;
    meet(1000);
    say(0, message, PEER_MESSAGE_MAX);
    assert_int_equal(peer.frames, 1);
    say(0, message, PEER_MESSAGE_MAX + 1);
    check_ended("too long");
}

/* Keys of low order give a shared key that everybody knows. */
static void keys_of_low_order_are_refused(void **state)
{
    uint8_t hello[300], bytes[100], nonce[24], zeros[64] = {0}, shared[32];
    (void)state;
    peer_open(&peer, true);
    client_open(&client, peer.server.public_key);
    peer_say(&peer, bytes, greeting_put(bytes, "CURVE"), 100);
    client_hello(&client, hello);
    memset(hello + 2 + 80, 0, 32);
    crypto_core_hsalsa20(shared, zeros, zeros, NULL); /* what everybody knows */
    client_nonce(nonce, "CurveZMQHELLO---", 1);
    assert_int_equal(crypto_box_easy_afternm(hello + 2 + 120, zeros, 64, nonce, shared), 0);
    peer_say(&peer, hello, 202, 300);
    check_ended("HELLO");
}

static void secrets_are_gone_when_they_are_not_needed(void **state)
{
    (void)state;
    meet(1000);
    assert_true(sodium_is_zero(peer.z.curve.secret_key, 32));
    assert_false(sodium_is_zero(peer.z.curve.shared, 32));
    zmtp_close(&peer.z);
    assert_true(sodium_is_zero((uint8_t *)&peer.z.curve, sizeof peer.z.curve));
    assert_int_equal(peer_step(&peer), ZMTP_ENDED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_of_all_lengths_go_both_ways_in_any_pieces),
        cmocka_unit_test(a_sealed_ping_is_answered_sealed),
        cmocka_unit_test(every_bit_of_the_hello_counts),
        cmocka_unit_test(every_bit_of_the_initiate_counts),
        cmocka_unit_test(every_bit_of_a_message_counts),
        cmocka_unit_test(an_initiate_cut_short_anywhere_is_none),
        cmocka_unit_test(what_is_sealed_may_be_too_short),
        cmocka_unit_test(metadata_is_judged_under_curve_too),
        cmocka_unit_test(who_does_not_have_the_key_that_he_names_is_refused),
        cmocka_unit_test(a_key_that_is_not_allowed_gets_an_error),
        cmocka_unit_test(what_was_recorded_lets_nobody_in),
        cmocka_unit_test(nonces_only_grow),
        cmocka_unit_test(nothing_goes_beside_the_messages),
        cmocka_unit_test(the_longest_message_is_taken_and_one_byte_more_is_not),
        cmocka_unit_test(keys_of_low_order_are_refused),
        cmocka_unit_test(secrets_are_gone_when_they_are_not_needed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
