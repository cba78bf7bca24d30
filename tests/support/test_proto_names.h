/* The names of message types, for what tests print. */
#ifndef TESTS_SUPPORT_TEST_PROTO_NAMES_H
#define TESTS_SUPPORT_TEST_PROTO_NAMES_H

#include "proto/codec.h"

/* "RETRIEVE_ASK", or "?" for a number that is not a type. */
static inline const char *proto_type_name(unsigned type)
{
    switch (type) {
#define MSG(NAME, name, id, fields) \
    case id:                        \
        return #NAME;
        PROTO_MESSAGES(MSG)
#undef MSG
    default:
        return "?";
    }
}

#endif
