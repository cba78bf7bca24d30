#include "common/redis/redis_call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t decimal_length(size_t n)
{
    size_t digits = 1;
    for (; n >= 10; n /= 10) {
        digits++;
    }
    return digits;
}

/* One argument as the protocol has it; returns its end. */
static char *put_word(char *at, const char *word, size_t length)
{
    at += sprintf(at, "$%zu\r\n", length);
    memcpy(at, word, length);
    memcpy(at + length, "\r\n", 2);
    return at + length + 2;
}

static size_t word_length(size_t length)
{
    return 1 + decimal_length(length) + 2 + length + 2;
}

struct redis_call *redis_call_make(enum redis_call_kind kind, int script, unsigned keys,
                                   unsigned argc, const char *const *argv, const size_t *length)
{
    static const char command[] = "EVALSHA", hash[REDIS_CALL_HASH];
    char count[16];
    unsigned words = argc;
    size_t count_length = (size_t)snprintf(count, sizeof count, "%u", keys), whole = 0;
    if (script >= 0) {
        words += 3;
        whole = word_length(sizeof command - 1) + word_length(REDIS_CALL_HASH) +
                word_length(count_length);
    }
    whole += 1 + decimal_length(words) + 2;
    for (unsigned i = 0; i < argc; i++) {
        if (length[i] > REDIS_CALL_BYTES_MAX || whole > REDIS_CALL_BYTES_MAX) {
            return NULL;
        }
        whole += word_length(length[i]);
    }
    struct redis_call *call = malloc(sizeof *call + whole + 1);
    if (call == NULL) {
        return NULL;
    }
    *call = (struct redis_call){.kind = kind, .length = whole};
    char *at = call->bytes + sprintf(call->bytes, "*%u\r\n", words);
    if (script >= 0) {
        at = put_word(at, command, sizeof command - 1);
        at = put_word(at, hash, REDIS_CALL_HASH);
        call->script = (uint8_t)script;
        call->hash_at = (size_t)(at - call->bytes) - 2 - REDIS_CALL_HASH;
        at = put_word(at, count, count_length);
    }
    for (unsigned i = 0; i < argc; i++) {
        at = put_word(at, argv[i], length[i]);
    }
    return call;
}

void redis_call_free(struct redis_call *call)
{
    if (call != NULL && call->kind == REDIS_CALL_AUTH) {
        explicit_bzero(call->bytes, call->length);
    }
    free(call);
}

struct redis_call *redis_call_make_words(enum redis_call_kind kind, unsigned argc,
                                         const char *const *argv)
{
    size_t length[6];
    for (unsigned i = 0; i < argc; i++) {
        length[i] = strlen(argv[i]);
    }
    return redis_call_make(kind, -1, 0, argc, argv, length);
}
