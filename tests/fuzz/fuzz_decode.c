/* Whatever the bytes, the decoder stays within them; what it accepts, the encoder repeats. */
#include "fuzz_driver.h"
#include "tests/support/test_proto_fields.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    static struct proto_decoder decoder, again;
    static uint8_t first[PROTO_MESSAGE_MAX], second[PROTO_MESSAGE_MAX];
    struct proto_message m, repeated;

    if (proto_decode(&decoder, bytes, length, &m) != ERR_OK) {
        return 0;
    }
    size_t n = proto_encode(&m, first, sizeof first);
    if (n == 0) { /* fields that were missing make it too long */
        return 0;
    }
    CHECK(proto_decode(&again, first, n, &repeated) == ERR_OK);
    CHECK(repeated.version == PROTO_VERSION && same_message(&m, &repeated));
    CHECK(proto_encode(&repeated, second, sizeof second) == n && memcmp(first, second, n) == 0);
    return 0;
}
