/* Whatever bytes a peer sends, in whatever pieces, the ZMTP machine keeps its promises (peer_step
 * of tests/support/test_zmtp.h checks them with every call).
 *
 * Input: a byte that says how (see enum how), a byte for the pieces' size, then what is sent. With
 * CURVE sealed, a client that is let in does the handshake, and each record [flags: 1 byte][length:
 * 1 byte] of the rest is sealed, so that what is behind the seal is reached too. libFuzzer: see
 * tests/fuzz/long.py; with any other compiler add -DFUZZ_MAIN: a program that makes its own inputs
 * from a seed, `fuzz_zmtp [RUNS [SEED]]`, valid conversations with some of their bytes changed. */
#include "tests/fuzz/fuzz_own.h"
#include "tests/support/test_zmtp.h"

enum how { CLEAR, CLEAR_READY, CURVE, CURVE_WELCOMED, CURVE_INITIATED, CURVE_SEALED, WAYS };

static struct peer peer;
static struct curve_client client;

/* CURVE costs the time of a thousand others: one server's keys for all. */
static void open_peer(bool curve)
{
    static struct peer with, without;
    if (with.server.user_of == NULL) {
        peer_open(&with, true);
        peer_open(&without, false);
        client_open(&client, with.server.public_key);
    }
    memcpy(&peer.server, curve ? &with.server : &without.server, sizeof peer.server);
    peer.server.self = &peer;
    memcpy(peer.known, client.public_key, sizeof peer.known);
    peer_connect(&peer);
}

static void say_sealed(const uint8_t *bytes, size_t length, size_t piece)
{
    static uint8_t frame[PEER_ROOM];
    while (length >= 2 && !peer.ended) {
        size_t n = bytes[1] < length - 2 ? bytes[1] : length - 2;
        size_t m = client_message(&client, bytes[0] % 8, bytes + 2, n, frame);
        peer_say(&peer, frame, m, piece);
        peer.frames = 0;
        peer.got_length = peer.out_length = 0;
        bytes += 2 + n;
        length -= 2 + n;
    }
}

/* An INITIATE that opens, with the fuzzer's metadata. */
static void say_initiate(const uint8_t *metadata, size_t length, size_t piece)
{
    uint8_t frame[1500];
    length = length < 900 ? length : 900;
    peer_say(&peer, frame, client_initiate(&client, client.cn_public, metadata, length, frame),
             piece);
}

static bool go_to_welcome(size_t piece)
{
    uint8_t frame[300];
    client.nonce = 1;
    client.server_nonce = 0;
    peer_say(&peer, frame, greeting_put(frame, "CURVE"), piece);
    peer.out_length = 0;
    peer_say(&peer, frame, client_hello(&client, frame), piece);
    return client_take_welcome(&client, peer.out, peer.out_length);
}

/* Bytes in frames' worth, so that no room of the harness is ever full. */
static void say_raw(const uint8_t *bytes, size_t length, size_t piece)
{
    while (length > 0 && !peer.ended) {
        size_t n = length < 16 ? length : 16;
        peer_say(&peer, bytes, n, piece);
        peer.frames = 0;
        peer.got_length = peer.out_length = 0;
        bytes += n;
        length -= n;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    if (length < 2) {
        return 0;
    }
    enum how how = bytes[0] % WAYS;
    size_t piece = bytes[1] + 1;
    uint8_t greeting[ZMTP_GREETING_BYTES];
    bytes += 2;
    length -= 2;
    open_peer(how >= CURVE);
    switch (how) {
    case CLEAR_READY:
        peer_say(&peer, greeting, greeting_put(greeting, "NULL"), piece);
        break;
    case CURVE_WELCOMED:
    case CURVE_INITIATED:
        CHECK(go_to_welcome(piece));
        break;
    case CURVE_SEALED:
        client.nonce = 1;
        client.server_nonce = 0;
        CHECK(peer_handshake(&peer, &client, piece));
        break;
    default:
        break;
    }
    if (how == CURVE_SEALED) {
        say_sealed(bytes, length, piece);
    } else if (how == CURVE_INITIATED) {
        say_initiate(bytes, length, piece);
    } else {
        say_raw(bytes, length, piece);
    }
    /* Behind a seal it takes the client's key to get in; in the clear anyone who says READY. */
    CHECK(!peer.ready || how != CURVE_WELCOMED);
    CHECK(!peer.ready || how != CURVE);
    zmtp_close(&peer.z);
    return 0;
}

#ifdef FUZZ_MAIN
static size_t put_valid(uint64_t *rng, uint8_t *out)
{
    static const uint8_t ready[] = "\4\56\5READY" DEALER_METADATA;
    static const char *const commands[] = {"\4PING\0\12", "\4PING\0\0context", "\4PONG",
                                           "\5ERROR\0", "\11SUBSCRIBE"};
    static const uint8_t lengths[] = {7, 14, 5, 7, 10};
    uint8_t body[600] = {0};
    enum how how = (enum how)(rng_below(rng, 16) ? rng_below(rng, CURVE) : rng_below(rng, WAYS));
    size_t n = 2;
    out[0] = (uint8_t)how;
    out[1] = (uint8_t)rng_next(rng);
    if (how == CLEAR || how == CURVE) {
        n += greeting_put(out + n, how == CLEAR ? "NULL" : "CURVE");
    }
    if (how <= CLEAR_READY) {
        memcpy(out + n, ready, sizeof ready - 1);
        n += sizeof ready - 1;
    } else if (how == CURVE) {
        memcpy(body, "\5HELLO\1\0", 8);
        n += frame_put(out + n, 4, body, 200);
    } else if (how == CURVE_WELCOMED) {
        memcpy(body, "\10INITIATE", 9);
        n += frame_put(out + n, 4, body, 257 + sizeof DEALER_METADATA - 1);
    } else if (how == CURVE_INITIATED) {
        memcpy(out + n, DEALER_METADATA, sizeof DEALER_METADATA - 1);
        return n + sizeof DEALER_METADATA - 1;
    }
    for (unsigned k = rng_below(rng, 5); k > 0; k--) {
        unsigned c = rng_below(rng, sizeof lengths);
        bool is_command = rng_below(rng, 2);
        size_t length = is_command ? lengths[c] : rng_below(rng, sizeof body);
        const void *what = is_command ? (const void *)commands[c] : body;
        if (how == CURVE_SEALED) {
            length = length < 256 ? length : 255;
            out[n] = is_command ? CURVE_COMMAND : (uint8_t)rng_below(rng, 2);
            out[n + 1] = (uint8_t)length;
            memcpy(out + n + 2, what, length);
            n += 2 + length;
        } else {
            n += frame_put(out + n, is_command ? 4 : (uint8_t)rng_below(rng, 2), what, length);
        }
    }
    return n;
}

static unsigned long long ways[WAYS][2]; /* connections; those that got in */

static size_t make(uint64_t *rng, uint8_t *bytes)
{
    size_t n = put_valid(rng, bytes);
    for (unsigned k = rng_below(rng, 4); k > 0; k--) {
        size_t at = 1 + rng_below(rng, (uint32_t)n - 1);
        switch (rng_below(rng, 4)) {
        case 0:
            bytes[at] ^= (uint8_t)(1u << rng_below(rng, 8));
            break;
        case 1:
            bytes[at] = (uint8_t)rng_next(rng);
            break;
        case 2:
            n = at < 2 ? 2 : at;
            break;
        default:
            memmove(bytes + at + 1, bytes + at, n - at);
            n++;
            break;
        }
    }
    return n;
}

static void count(const uint8_t *bytes)
{
    ways[bytes[0]][0]++;
    ways[bytes[0]][1] += peer.ready;
}

int main(int argc, char **argv)
{
    fuzz_own(argc, argv, make, count);
    for (unsigned how = 0; how < WAYS; how++) {
        printf("way %u: %llu connections, %llu got in\n", how, ways[how][0], ways[how][1]);
    }
    return 0;
}
#endif
