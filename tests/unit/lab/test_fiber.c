#include "worker/lab/fiber.h"

#include "common/rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#if defined(__SANITIZE_THREAD__)
enum { CROWD = 512 }; /* TSan keeps a history for each */
#else
enum { CROWD = 4096 };
#endif
enum { STACK = 64 << 10 };

/* The sanitizer then gives each fiber a second stack, as it does by default with gcc 13. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer) && !defined(__SANITIZE_ADDRESS__)
#define __SANITIZE_ADDRESS__
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "detect_stack_use_after_return=1";
}
#endif

static unsigned long mapped_mib(void)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%lu", &pages), 1);
    fclose(file);
    return pages * (unsigned long)sysconf(_SC_PAGESIZE) >> 20;
}

static struct fiber *open_fiber(void (*run)(void *), void *arg)
{
    struct fiber *f = NULL;
    assert_int_equal(fiber_open(&f, STACK, run, arg), ERR_OK);
    assert_non_null(f);
    return f;
}

/* ---- one fiber ---- */

struct counter {
    unsigned count, until;
};

static void count(void *arg)
{
    struct counter *c = arg;
    while (c->count < c->until) {
        c->count++;
        fiber_yield();
    }
}

static void every_resume_runs_to_the_next_yield(void **state)
{
    (void)state;
    struct counter c = {.until = 100000};
    struct fiber *f = open_fiber(count, &c);
    assert_int_equal(c.count, 0);
    for (unsigned i = 1; i <= c.until; i++) {
        fiber_resume(f);
        assert_int_equal(c.count, i);
        assert_false(fiber_done(f));
    }
    fiber_resume(f);
    assert_true(fiber_done(f));
    assert_int_equal(c.count, c.until);
    fiber_free(&f);
    assert_null(f);
    fiber_free(&f);
}

static void bad_stack_sizes_are_refused(void **state)
{
    (void)state;
    struct fiber *f = NULL;
    assert_int_equal(fiber_open(&f, FIBER_STACK_MIN - 1, count, NULL), ERR_RANGE);
    assert_int_equal(fiber_open(&f, (size_t)FIBER_STACK_MAX + 1, count, NULL), ERR_RANGE);
    assert_int_equal(fiber_open(&f, SIZE_MAX, count, NULL), ERR_RANGE);
    assert_null(f);
}

/* What the compiler keeps in registers across a yield must be there after it. */
static void keep_values(void *arg)
{
    uint64_t seed = *(uint64_t *)arg, a = rng_next(&seed), b = rng_next(&seed);
    uint64_t c = rng_next(&seed), d = rng_next(&seed), e = rng_next(&seed), g = rng_next(&seed);
    double x = (double)a, y = (double)b;
    for (unsigned i = 0; i < 100; i++) {
        fiber_yield();
        a += b ^ i;
        b += c;
        c ^= d;
        d += e;
        e += g;
        g += a;
        x = x / 2 + 1;
        y = y / 3 + x;
    }
    *(uint64_t *)arg = a ^ b ^ c ^ d ^ e ^ g ^ (uint64_t)x ^ (uint64_t)y;
}

static void registers_survive_a_yield(void **state)
{
    (void)state;
    uint64_t alone = 5, among[3] = {6, 5, 7};
    struct fiber *f = open_fiber(keep_values, &alone), *g[3];
    while (!fiber_done(f)) {
        fiber_resume(f);
    }
    fiber_free(&f);
    for (unsigned i = 0; i < 3; i++) {
        g[i] = open_fiber(keep_values, &among[i]);
    }
    for (unsigned round = 0; round < 101; round++) {
        for (unsigned i = 0; i < 3; i++) {
            fiber_resume(g[i]);
        }
    }
    for (unsigned i = 0; i < 3; i++) {
        assert_true(fiber_done(g[i]));
        fiber_free(&g[i]);
    }
    assert_true(among[1] == alone);
    assert_true(among[0] != alone && among[2] != alone);
}

/* ---- deep stacks ---- */

__attribute__((noinline)) static unsigned descend(unsigned levels)
{
    volatile unsigned char frame[100];
    frame[0] = (unsigned char)levels;
    if (levels == 0) {
        fiber_yield();
        return 0;
    }
    unsigned below = descend(levels - 1);
    return below + 1 + (frame[0] != (unsigned char)levels);
}

static void dive(void *arg)
{
    unsigned *levels = arg;
    *levels = descend(*levels);
}

static void a_fiber_yields_from_deep_recursion(void **state)
{
    (void)state;
    unsigned levels = 5000;
    struct fiber *f = NULL;
    assert_int_equal(fiber_open(&f, 4 << 20, dive, &levels), ERR_OK);
    fiber_resume(f);
    assert_false(fiber_done(f));
    fiber_resume(f);
    assert_true(fiber_done(f));
    assert_int_equal(levels, 5000);
    fiber_free(&f);
}

static void an_overflow_ends_the_process(void **state)
{
    (void)state;
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        unsigned levels = 1000000;
        struct fiber *f = NULL;
        assert_true(freopen("/dev/null", "w", stderr) != NULL);
        if (fiber_open(&f, STACK, dive, &levels) == ERR_OK) {
            fiber_resume(f);
        }
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) != 0);
}

/* ---- many ---- */

struct member {
    struct fiber *fiber;
    unsigned id, turns;
    unsigned *trace, *length;
};

static void sign(void *arg)
{
    struct member *m = arg;
    for (unsigned i = 0; i < m->turns; i++) {
        m->trace[(*m->length)++] = m->id;
        fiber_yield();
    }
}

static void fibers_interleave_exactly_as_resumed(void **state)
{
    (void)state;
    enum { MEMBERS = 7, TURNS = 50 };
    unsigned trace[MEMBERS * TURNS], expected[MEMBERS * TURNS], length = 0, n = 0;
    struct member m[MEMBERS];
    unsigned left[MEMBERS];
    uint64_t seed = 3;

    for (unsigned i = 0; i < MEMBERS; i++) {
        m[i] = (struct member){.id = i, .turns = TURNS, .trace = trace, .length = &length};
        m[i].fiber = open_fiber(sign, &m[i]);
        left[i] = TURNS;
    }
    while (n < MEMBERS * TURNS) {
        unsigned i = rng_below(&seed, MEMBERS);
        if (left[i] > 0) {
            left[i]--;
            expected[n++] = i;
            fiber_resume(m[i].fiber);
        }
    }
    assert_int_equal(length, n);
    assert_memory_equal(trace, expected, sizeof expected);
    for (unsigned i = 0; i < MEMBERS; i++) {
        fiber_resume(m[i].fiber);
        assert_true(fiber_done(m[i].fiber));
        fiber_free(&m[i].fiber);
    }
}

static void thousands_of_fibers_live_together(void **state)
{
    (void)state;
    struct counter *c = calloc(CROWD, sizeof *c);
    struct fiber **f = calloc(CROWD, sizeof *f);
    assert_non_null(c);
    assert_non_null(f);
    for (unsigned i = 0; i < CROWD; i++) {
        c[i].until = 1 + i % 5;
        f[i] = open_fiber(count, &c[i]);
    }
    for (unsigned round = 0; round < 6; round++) {
        for (unsigned i = 0; i < CROWD; i++) {
            if (!fiber_done(f[i])) {
                fiber_resume(f[i]);
            }
        }
    }
    for (unsigned i = 0; i < CROWD; i++) {
        assert_true(fiber_done(f[i]));
        assert_int_equal(c[i].count, c[i].until);
        fiber_free(&f[i]);
    }
    free(f);
    free(c);
}

static void fibers_may_be_freed_before_their_end(void **state)
{
    (void)state;
    unsigned long before = 0;
    for (unsigned round = 0; round < 200; round++) {
        before = round == 10 ? mapped_mib() : before;
        struct counter c = {.until = 1000};
        unsigned levels = 200;
        struct fiber *fresh = open_fiber(count, &c);
        struct fiber *begun = open_fiber(count, &c);
        struct fiber *deep = open_fiber(dive, &levels);
        fiber_resume(begun);
        fiber_resume(deep);
        fiber_free(&deep);
        fiber_free(&begun);
        fiber_free(&fresh);
        assert_int_equal(c.count, 1);
    }
    assert_true(mapped_mib() < before + 64);
}

/* ---- fibers that run fibers ---- */

struct nest {
    unsigned depth;
    char *trace;
};

static void nested(void *arg)
{
    struct nest *n = arg;
    size_t at = strlen(n->trace);
    snprintf(n->trace + at, 64 - at, "(%u", n->depth);
    if (n->depth < 4) {
        struct nest below = {n->depth + 1, n->trace};
        struct fiber *f = open_fiber(nested, &below);
        while (!fiber_done(f)) {
            fiber_resume(f);
        }
        fiber_free(&f);
    }
    fiber_yield();
    strcat(n->trace, ")");
}

static void a_fiber_may_run_another(void **state)
{
    (void)state;
    char trace[64] = "";
    struct nest n = {1, trace};
    struct fiber *f = open_fiber(nested, &n);
    fiber_resume(f);
    assert_string_equal(trace, "(1(2(3(4)))");
    fiber_resume(f);
    assert_string_equal(trace, "(1(2(3(4))))");
    assert_true(fiber_done(f));
    fiber_free(&f);
}

#define T(name) cmocka_unit_test(name)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(every_resume_runs_to_the_next_yield),
        T(bad_stack_sizes_are_refused),
        T(registers_survive_a_yield),
        T(a_fiber_yields_from_deep_recursion),
        T(an_overflow_ends_the_process),
        T(fibers_interleave_exactly_as_resumed),
        T(thousands_of_fibers_live_together),
        T(fibers_may_be_freed_before_their_end),
        T(a_fiber_may_run_another),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
