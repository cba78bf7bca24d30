/* fiber: a function with a stack of its own that runs until it yields and goes on from there.
 *
 * Threads: fiber_resume runs the fiber in the calling thread until it yields or its function
 * returns; only the thread that resumed a fiber first may resume it again. A fiber may resume
 * others (they yield to it), but neither itself nor a fiber that waits for it.
 *
 * The registers are switched by hand on x86-64 and aarch64, by ucontext elsewhere or with
 * -DFIBER_UCONTEXT. A resume and the yield that ends it, on the 2-core x86-64 machine this was
 * written on, both cores busy:
 *     by hand  9-15 ns (15-80 ns turn by turn among 4,096 fibers; 18 ns when leaving by `ret`)
 *     ucontext 460-550 ns (650-820 ns among 4,096): every swap asks the kernel for the signal mask
 * So the signal mask, the rounding mode and the x87 control word belong to the thread, not to the
 * fiber. Sanitizer builds switch the same way and announce each switch to the sanitizer.
 *
 * Memory: fiber_open maps the stack (unreserved: only touched pages cost) with an unreadable page
 * below it, so that an overflow ends the process instead of writing on. */
#ifndef WORKER_LAB_FIBER_H
#define WORKER_LAB_FIBER_H

#include "common/err.h"

#include <stdbool.h>
#include <stddef.h>

enum {
    FIBER_STACK_MIN = 16 << 10, /* bytes */
    FIBER_STACK_MAX = 1 << 30,
};

struct fiber;

/* Ready to run `run(arg)`; nothing runs yet. `stack_bytes` is rounded up to whole pages. ERR_NOMEM,
 * ERR_RANGE. */
enum err fiber_open(struct fiber **out, size_t stack_bytes, void (*run)(void *arg), void *arg);

/* Runs the fiber until its next yield or its end. Not to be called when it is done. */
void fiber_resume(struct fiber *fiber);

/* Called by the running fiber: returns to its fiber_resume. */
void fiber_yield(void);

/* True when its function has returned. */
bool fiber_done(const struct fiber *fiber);

/* Accepts NULL; nulls. A fiber that has not ended may be freed: what its frames own is leaked. Not
 * to be called by the fiber itself. */
void fiber_free(struct fiber **fiber);

#endif
