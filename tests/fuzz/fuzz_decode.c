/* Whatever the bytes, the decoder stays within them; what it accepts, the encoder repeats. */
#include "fuzz_driver.h"
#include "proto/codec.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    static struct proto_decoder decoder, again;
    static uint8_t first[PROTO_MESSAGE_MAX], second[PROTO_MESSAGE_MAX];
    struct proto_message m;

    if (proto_decode(&decoder, bytes, length, &m) != ERR_OK) {
        return 0;
    }
    /* The shortest form is never longer than what came in. */
    size_t n = proto_encode(&m, first, length);
    CHECK(n > 0);
    CHECK(proto_decode(&again, first, n, &m) == ERR_OK);
    CHECK(proto_encode(&m, second, sizeof second) == n && memcmp(first, second, n) == 0);
    return 0;
}
