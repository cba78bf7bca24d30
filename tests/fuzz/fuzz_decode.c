/* Whatever the bytes, the decoder stays within them; what it accepts, the encoder repeats, in the
 * version of the message and in all others. */
#include "fuzz_driver.h"
#include "proto/codec.h"

#include <string.h>

/* The fields that both versions have are the same. */
static void check_other_version(const struct proto_message *m, uint32_t version)
{
    static struct proto_decoder room, again;
    static uint8_t as_other[PROTO_MESSAGE_MAX], first[PROTO_MESSAGE_MAX], second[PROTO_MESSAGE_MAX];
    struct proto_message other;
    size_t n = proto_encode_as(version, m, as_other, sizeof as_other);
    if (n == 0) { /* what is added makes it too long */
        return;
    }
    CHECK(proto_decode(&room, as_other, n, &other) == ERR_OK);
    CHECK(other.type == m->type && other.version == version);
    n = proto_encode_as(PROTO_LOWEST, m, first, sizeof first);
    CHECK(proto_encode_as(PROTO_LOWEST, &other, second, sizeof second) == n &&
          memcmp(first, second, n) == 0);
    CHECK(proto_decode(&again, first, n, &other) == ERR_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    static struct proto_decoder decoder, again;
    static uint8_t first[PROTO_MESSAGE_MAX], second[PROTO_MESSAGE_MAX];
    struct proto_message m;

    if (proto_decode(&decoder, bytes, length, &m) != ERR_OK) {
        return 0;
    }
    /* What is read of a version that is not spoken here may be shorter than it would be in one that
     * is. */
    bool is_spoken = m.version >= PROTO_LOWEST && m.version <= PROTO_VERSION;
    uint32_t version = is_spoken ? m.version : PROTO_VERSION;
    for (uint32_t other = PROTO_LOWEST; other <= PROTO_VERSION; other++) {
        check_other_version(&m, other);
    }
    /* The shortest form is never longer than what came in. */
    size_t n = proto_encode_as(version, &m, first, length);
    CHECK(n > 0);
    CHECK(proto_decode(&again, first, n, &m) == ERR_OK);
    CHECK(m.version == version);
    CHECK(proto_encode_as(version, &m, second, sizeof second) == n &&
          memcmp(first, second, n) == 0);
    return 0;
}
