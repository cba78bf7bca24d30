/* lab_want: memory that is refused by chance to programs of the virtual cluster, when they start
 * and when a worker begins a job: those are the only times that they ask for any.
 *
 * The linker puts functions of lab_want.c in the place of malloc and its like in `abdada-chaos`
 * (--wrap, see tests/tests.mk); in other programs nothing is refused. Threads: one of the process
 * at a time, as what is refused is a state of the process; while none was set it is never written
 * to. */
#ifndef TESTS_CHAOS_LAB_WANT_H
#define TESTS_CHAOS_LAB_WANT_H

#include <stdint.h>

struct lab_want {
    uint64_t random; /* state of the draws */
    uint32_t ppm; /* of the calls are refused, in a million */
    uint64_t refused; /* so many were */
};

/* From now on calls for memory are those of a program under `want`, which is borrowed; NULL: of the
 * cluster itself, which gets what it asks for. Returns what was set before. */
struct lab_want *lab_want_set(struct lab_want *want);

#endif
