/* ZMTP's greeting, NULL, frames and commands: the bytes as the RFCs want them, in pieces of any
 * size, cut off anywhere, and every way to break the protocol. */
#include "tests/support/test_zmtp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define BYTES(text) text, sizeof text - 1

/* RFC 23: the greeting of a NULL client, and its READY. */
#define SIGNATURE "\xff\0\0\0\0\0\0\0\1\x7f"
#define ZEROS_16 "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
#define GREETING SIGNATURE "\3\1NULL" ZEROS_16 "\0" ZEROS_16 "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
#define READY "\4\56\5READY" DEALER_METADATA
#define OUR_GREETING \
    "\xff\0\0\0\0\0\0\0\0\x7f\3\1NULL" ZEROS_16 "\0" ZEROS_16 "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
#define OUR_READY "\4\51\5READY\13Socket-Type\0\0\0\6ROUTER\10Identity\0\0\0\0"

static struct peer peer, other;

static void a_null_handshake_is_byte_for_byte_that_of_the_rfc(void **state)
{
    (void)state;
    peer_open(&peer, false);
    peer_say(&peer, BYTES(SIGNATURE), 100);
    assert_int_equal(peer.out_length, ZMTP_GREETING_BYTES);
    assert_memory_equal(peer.out, OUR_GREETING, ZMTP_GREETING_BYTES);
    peer_say(&peer, GREETING + 10, 54, 100);
    assert_int_equal(peer.out_length, 64 + sizeof OUR_READY - 1);
    assert_memory_equal(peer.out + 64, OUR_READY, sizeof OUR_READY - 1);
    assert_int_equal(peer.ready, 0);
    peer_say(&peer, BYTES(READY), 100);
    assert_int_equal(peer.ready, 1);
    assert_null(peer.user);
    assert_int_equal(peer.asked, 0);
}

static void who_says_nothing_gets_nothing(void **state)
{
    (void)state;
    peer_open(&peer, false);
    assert_int_equal(peer_step(&peer), ZMTP_WAIT);
    for (unsigned i = 0; i < 9; i++) {
        peer_say(&peer, &SIGNATURE[i], 1, 1);
        assert_int_equal(peer.out_length, 0);
    }
}

/* A conversation with everything in it that is allowed. */
static size_t put_conversation(uint8_t *out, const char *greeting)
{
    uint8_t long_one[1500];
    size_t n = 0;
    memset(long_one, 'x', sizeof long_one);
    memcpy(out, greeting, 64);
    n += 64;
    memcpy(out + n, BYTES(READY));
    n += sizeof READY - 1;
    n += frame_put(out + n, 0, BYTES("one"));
    n += frame_put(out + n, 1, BYTES("in "));
    n += frame_put(out + n, 4, BYTES("\4PING\0\12")); /* between the parts of a message */
    n += frame_put(out + n, 1, BYTES(""));
    n += frame_put(out + n, 0, BYTES("parts"));
    n += frame_put(out + n, 4, BYTES("\4PING\0\0context of 16 b."));
    n += frame_put(out + n, 4, BYTES("\4PONGany"));
    n += frame_put(out + n, 4, BYTES("\11SUBSCRIBEtopic"));
    n += frame_put(out + n, 4, BYTES("\7UNKNOWN"));
    n += frame_put(out + n, 0, long_one, 255);
    n += frame_put(out + n, 0, long_one, 256);
    n += frame_put(out + n, 0, long_one, sizeof long_one);
    memcpy(out + n, BYTES("\2\0\0\0\0\0\0\0\3abc")); /* a short one in the long form */
    n += 12;
    n += frame_put(out + n, 0, BYTES(""));
    return n;
}

static void pieces_of_any_size_give_the_same(void **state)
{
    static uint8_t bytes[PEER_ROOM];
    size_t n = put_conversation(bytes, GREETING);
    (void)state;
    peer_open(&peer, false);
    peer_say(&peer, bytes, n, n);
    assert_int_equal(peer.frames, 9);
    assert_int_equal(peer.ended, 0);
    assert_memory_equal(peer.got, "onein parts", 11);
    assert_true(peer.frame_more[1] && peer.frame_more[2] && !peer.frame_more[3]);
    assert_int_equal(peer.frame_length[4], 255);
    assert_int_equal(peer.frame_length[6], 1500);
    const char pongs[] = "\4\5\4PONG\4\25\4PONGcontext of 16 b.";
    assert_int_equal(peer.out_length, 64 + sizeof OUR_READY - 1 + sizeof pongs - 1);
    assert_memory_equal(peer.out + 64 + sizeof OUR_READY - 1, pongs, sizeof pongs - 1);
    for (size_t piece = 1; piece < 300; piece++) {
        peer_open(&other, false);
        peer_say(&other, bytes, n, piece);
        assert_int_equal(other.frames, peer.frames);
        assert_int_equal(other.commands, peer.commands);
        assert_int_equal(other.got_length, peer.got_length);
        assert_memory_equal(other.got, peer.got, peer.got_length);
        assert_int_equal(other.out_length, peer.out_length);
        assert_memory_equal(other.out, peer.out, peer.out_length);
        assert_memory_equal(other.frame_more, peer.frame_more, sizeof peer.frame_more);
    }
}

static void what_is_cut_off_anywhere_waits_for_the_rest(void **state)
{
    static uint8_t bytes[PEER_ROOM];
    size_t n = put_conversation(bytes, GREETING);
    (void)state;
    for (size_t cut = 0; cut < n; cut++) {
        peer_open(&peer, false);
        peer_say(&peer, bytes, cut, cut + 1);
        assert_int_equal(peer.ended, 0);
        assert_int_equal(peer_step(&peer), ZMTP_WAIT);
        peer_say(&peer, bytes + cut, n - cut, n);
        assert_int_equal(peer.frames, 9);
    }
}

/* libzmq 4.0 and 4.1 say 3.0; a version to come must speak ours when it receives it. */
static void any_version_from_3_on_is_let_in(void **state)
{
    static uint8_t bytes[PEER_ROOM];
    (void)state;
    for (unsigned major = 0; major < 256; major++) {
        for (unsigned minor = 0; minor < 3; minor++) {
            size_t n = put_conversation(bytes, GREETING);
            bytes[10] = (uint8_t)major;
            bytes[11] = (uint8_t)minor;
            peer_open(&peer, false);
            peer_say(&peer, bytes, n, n);
            assert_int_equal(peer.ready, major >= 3);
            assert_int_equal(peer.ended, major < 3);
        }
    }
}

struct violation {
    const char *what, *bytes;
    size_t length;
    const char *why;
};

#define CASE(what, text, why)            \
    {                                    \
        what, text, sizeof text - 1, why \
    }
#define REST(bytes) SIGNATURE "\3\1" bytes

static const struct violation violations[] = {
    CASE("another protocol", "GET / HTTP/1.1\r\n", "no greeting"),
    CASE("one wrong byte", "\1", "no greeting"),
    CASE("ZMTP 1: a long frame", "\xff\0\0\0\0\0\0\0\1\0", "ZMTP 2 or later"),
    CASE("signature's last byte", "\xff\0\0\0\0\0\0\0\1\x7d", "ZMTP 2 or later"),
    CASE("ZMTP 2", SIGNATURE "\1\5", "ZMTP 2 or older"),
    CASE("ZMTP 2.1", SIGNATURE "\2", "ZMTP 2 or older"),
    CASE("CURVE",
         REST("CURVE\0\0\0"
              "\0\0\0\0\0\0\0\0\0\0\0\0"
              "\0" ZEROS_16 "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"),
         "here is none"),
    CASE("PLAIN",
         REST("PLAIN\0\0\0"
              "\0\0\0\0\0\0\0\0\0\0\0\0"
              "\0" ZEROS_16 "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"),
         "here is none"),
    CASE("a longer name",
         REST("NULL"
              "x\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
              "\0" ZEROS_16 "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"),
         "here is none"),
    CASE("server", REST("NULL" ZEROS_16 "\1" ZEROS_16 "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"),
         "wants to be the server"),
    CASE("a message at once", GREETING "\0\1x", "before the handshake's end"),
    CASE("a command of another name", GREETING "\4\6\5HELLO", "no READY"),
    CASE("an ERROR", GREETING "\4\7\5ERROR\0", "does not want"),
    CASE("no name", GREETING "\4\1\5", "no READY"),
    CASE("nothing", GREETING "\4\0", "no READY"),
    CASE("a READY without a socket", GREETING "\4\6\5READY", "what socket"),
    CASE("a ROUTER", GREETING "\4\34\5READY\13Socket-Type\0\0\0\6ROUTER", "no DEALER"),
    CASE("a REQ", GREETING "\4\31\5READY\13Socket-Type\0\0\0\3REQ", "no DEALER"),
    CASE("both", GREETING "\4\57\5READY\13socket-type\0\0\0\6DEALER\13Socket-Type\0\0\0\3REQ",
         "no DEALER"),
    CASE("a name beyond the end", GREETING "\4\7\5READY\1", "cut short"),
    CASE("no name in metadata", GREETING "\4\13\5READY\0\0\0\0\0", "cut short"),
    CASE("a length beyond the end", GREETING "\4\25\5READY\13Socket-Type\0\0\0", "cut short"),
    CASE("a value beyond the end", GREETING "\4\34\5READY\13Socket-Type\0\0\0\7DEALER",
         "cut short"),
    CASE("a value of 4 GiB",
         GREETING "\4\34\5READY\13Socket-Type\xff\xff\xff\xff"
                  "DEALER",
         "cut short"),
    CASE("a big READY", GREETING "\6\0\0\0\0\0\0\4\1", "too long"),
    CASE("an endless READY", GREETING "\6\xff\xff\xff\xff\xff\xff\xff\xff", "too long"),
    CASE("flags in the handshake", GREETING "\x0c\6", "flags"),
    CASE("a second READY is not known", GREETING READY READY "\10", "flags"),
    CASE("flags", GREETING READY "\10\1x", "flags"),
    CASE("all flags", GREETING READY "\xff", "flags"),
    CASE("a command in parts", GREETING READY "\5\5\4PING", "flags"),
    CASE("a long frame", GREETING READY "\2\0\0\0\0\0\0\7\321", "too long"),
    CASE("an endless frame", GREETING READY "\2\xff\xff\xff\xff\xff\xff\xff\xff", "too long"),
    CASE("a long command", GREETING READY "\6\0\0\0\0\0\0\4\1", "too long"),
    CASE("an empty command", GREETING READY "\4\0", "cut short"),
    CASE("a command without a name", GREETING READY "\4\2\0x", "cut short"),
    CASE("a name beyond the command", GREETING READY "\4\4\4PIN", "cut short"),
    CASE("a PING without time", GREETING READY "\4\6\4PING\0", "PING"),
    CASE("a PING with 17 bytes", GREETING READY "\4\30\4PING\0\0context of 17 by.", "PING"),
    CASE("an ERROR later", GREETING READY "\4\7\5ERROR\0", "does not want"),
};

static void every_violation_ends_the_connection_and_says_why(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof violations / sizeof *violations; i++) {
        const struct violation *v = &violations[i];
        for (size_t piece = 1; piece <= v->length; piece += v->length - 1 ? v->length - 1 : 1) {
            peer_open(&peer, false);
            peer_say(&peer, v->bytes, v->length, piece);
            if (!peer.ended || !strstr(peer.why, v->why)) {
                fail_msg("%s: %s, not: %s", v->what, peer.ended ? peer.why : "goes on", v->why);
            }
            assert_int_equal(peer_step(&peer), ZMTP_ENDED); /* and it stays over */
            assert_int_equal(peer.frames, 0);
        }
    }
}

static void the_longest_frame_is_taken_and_one_byte_more_is_not(void **state)
{
    static uint8_t bytes[PEER_ROOM];
    (void)state;
    for (size_t more = 0; more < 2; more++) {
        uint8_t *at = bytes;
        peer_open(&peer, false);
        peer_say(&peer, BYTES(GREETING READY), 200);
        size_t n = frame_put(at, 0, bytes + 30000, PEER_MESSAGE_MAX + more);
        peer_say(&peer, bytes, n, 9); /* the header alone decides */
        assert_int_equal(peer.ended, more);
        assert_int_equal(peer.frames, !more);
        assert_true(more ? peer.in_length == 9 : peer.in_length == 0);
    }
}

/* A client that needs CURVE must not be served without, nor the other way round. */
static void a_server_with_keys_takes_no_peer_without(void **state)
{
    (void)state;
    peer_open(&peer, true);
    peer_say(&peer, BYTES(GREETING READY "\0\1x"), 1);
    assert_int_equal(peer.ended, 1);
    assert_non_null(strstr(peer.why, "CURVE"));
    assert_int_equal(peer.frames + peer.ready, 0);
    assert_memory_equal(peer.out + 12, "CURVE\0", 6);
    assert_int_equal(peer.out[32], 1); /* as server */
}

static void messages_go_out_as_the_rfc_wants(void **state)
{
    static uint8_t message[PEER_MESSAGE_MAX], out[PEER_MESSAGE_MAX + ZMTP_OVERHEAD];
    (void)state;
    peer_open(&peer, false);
    peer_say(&peer, BYTES(GREETING READY), 200);
    assert_int_equal(zmtp_put(&peer.z, false, (const uint8_t *)"abc", 3, out), 5);
    assert_memory_equal(out, "\0\3abc", 5);
    assert_int_equal(zmtp_put(&peer.z, false, NULL, 0, out), 2);
    assert_memory_equal(out, "\0\0", 2);
    assert_int_equal(zmtp_put(&peer.z, false, message, 255, out), 257);
    assert_memory_equal(out, "\0\xff", 2);
    assert_int_equal(zmtp_put(&peer.z, false, message, 256, out), 265);
    assert_memory_equal(out, "\2\0\0\0\0\0\0\1\0", 9);
    assert_int_equal(zmtp_put(&peer.z, false, message, 258, out), 267);
    assert_memory_equal(out, "\2\0\0\0\0\0\0\1\2", 9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_null_handshake_is_byte_for_byte_that_of_the_rfc),
        cmocka_unit_test(who_says_nothing_gets_nothing),
        cmocka_unit_test(pieces_of_any_size_give_the_same),
        cmocka_unit_test(what_is_cut_off_anywhere_waits_for_the_rest),
        cmocka_unit_test(any_version_from_3_on_is_let_in),
        cmocka_unit_test(every_violation_ends_the_connection_and_says_why),
        cmocka_unit_test(the_longest_frame_is_taken_and_one_byte_more_is_not),
        cmocka_unit_test(a_server_with_keys_takes_no_peer_without),
        cmocka_unit_test(messages_go_out_as_the_rfc_wants),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
