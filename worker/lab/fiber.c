#include "worker/lab/fiber.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#if !defined(FIBER_UCONTEXT) && !defined(__x86_64__) && !defined(__aarch64__)
#define FIBER_UCONTEXT
#endif
#ifdef FIBER_UCONTEXT
#include <ucontext.h>
#endif

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FIBER_ASAN
#endif
#if __has_feature(thread_sanitizer)
#define FIBER_TSAN
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#define FIBER_ASAN
#endif
#ifdef __SANITIZE_THREAD__
#define FIBER_TSAN
#endif

#ifdef FIBER_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#include <sanitizer/lsan_interface.h>
#endif
#ifdef FIBER_TSAN
#include <sanitizer/tsan_interface.h>
#endif

#ifdef FIBER_UCONTEXT
typedef ucontext_t fiber_registers;
#else
typedef void *fiber_registers; /* the stack pointer; the others lie above it on the stack */
#endif

/* One side of a switch, as the sanitizers know it. */
struct side {
    fiber_registers registers;
#ifdef FIBER_ASAN
    void *fake_stack;
    const void *bottom;
    size_t size;
#endif
#ifdef FIBER_TSAN
    void *tsan;
#endif
};

struct fiber {
    /* fixed after open */
    void (*run)(void *);
    void *arg;
    unsigned char *mapping; /* the guard page, then the stack */
    size_t mapping_bytes, guard_bytes;
    /* state */
    struct side own, caller; /* caller: where it was resumed last */
    struct fiber *resumer; /* the fiber that resumed it; NULL: the thread's own stack */
    bool done;
};

static _Thread_local struct fiber *running;

/* ---- registers ---- */

/* The sanitizers must see no function entered or left between being told of a switch and the
 * switch itself. */
#define SWITCH static inline __attribute__((always_inline))

static void begin(void);

#ifdef FIBER_UCONTEXT

SWITCH void switch_registers(fiber_registers *from, fiber_registers *to)
{
    CHECK(swapcontext(from, to) == 0);
}

static void prepare(struct fiber *f)
{
    CHECK(getcontext(&f->own.registers) == 0);
    f->own.registers.uc_link = NULL;
    f->own.registers.uc_stack.ss_sp = f->mapping + f->guard_bytes;
    f->own.registers.uc_stack.ss_size = f->mapping_bytes - f->guard_bytes;
    makecontext(&f->own.registers, begin, 0);
}

#else

/* Saves what a callee must keep on the old stack, its pointer in *from; takes the new one's. Global
 * only because link-time optimisation may part the assembly from its caller. */
void fiber_switch_stack(void **from, void *to);

#ifdef __x86_64__
enum { FRAME_WORDS = 8, BEGIN_WORD = 6 };
__asm__(".text\n"
        ".globl fiber_switch_stack\n"
        ".hidden fiber_switch_stack\n"
        ".type fiber_switch_stack, @function\n"
        ".p2align 4\n"
        "fiber_switch_stack:\n"
        "    pushq %rbp\n"
        "    pushq %rbx\n"
        "    pushq %r12\n"
        "    pushq %r13\n"
        "    pushq %r14\n"
        "    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    popq %r15\n"
        "    popq %r14\n"
        "    popq %r13\n"
        "    popq %r12\n"
        "    popq %rbx\n"
        "    popq %rbp\n"
        "    popq %rcx\n" /* not ret: its predictor expects the other stack */
        "    jmpq *%rcx\n"
        ".size fiber_switch_stack, .-fiber_switch_stack\n"
        ".previous\n");
#else
enum { FRAME_WORDS = 20, BEGIN_WORD = 11 };
__asm__(".text\n"
        ".globl fiber_switch_stack\n"
        ".hidden fiber_switch_stack\n"
        ".type fiber_switch_stack, %function\n"
        ".p2align 4\n"
        "fiber_switch_stack:\n"
        "    sub sp, sp, #160\n"
        "    stp x19, x20, [sp, #0]\n"
        "    stp x21, x22, [sp, #16]\n"
        "    stp x23, x24, [sp, #32]\n"
        "    stp x25, x26, [sp, #48]\n"
        "    stp x27, x28, [sp, #64]\n"
        "    stp x29, x30, [sp, #80]\n"
        "    stp d8, d9, [sp, #96]\n"
        "    stp d10, d11, [sp, #112]\n"
        "    stp d12, d13, [sp, #128]\n"
        "    stp d14, d15, [sp, #144]\n"
        "    mov x9, sp\n"
        "    str x9, [x0]\n"
        "    mov sp, x1\n"
        "    ldp x19, x20, [sp, #0]\n"
        "    ldp x21, x22, [sp, #16]\n"
        "    ldp x23, x24, [sp, #32]\n"
        "    ldp x25, x26, [sp, #48]\n"
        "    ldp x27, x28, [sp, #64]\n"
        "    ldp x29, x30, [sp, #80]\n"
        "    ldp d8, d9, [sp, #96]\n"
        "    ldp d10, d11, [sp, #112]\n"
        "    ldp d12, d13, [sp, #128]\n"
        "    ldp d14, d15, [sp, #144]\n"
        "    add sp, sp, #160\n"
        "    ret\n"
        ".size fiber_switch_stack, .-fiber_switch_stack\n"
        ".previous\n");
#endif

/* Makes the stack look as if `begin` had just been called. All registers are 0, as the stack is. On
 * x86-64 there is a null return address besides: backtraces end there, and the stack pointer is one
 * word off 16 bytes, as the ABI wants it on entry. */
static void prepare(struct fiber *f)
{
    void **frame = (void **)(f->mapping + f->mapping_bytes) - FRAME_WORDS;
    frame[BEGIN_WORD] = (void *)(uintptr_t)begin;
    f->own.registers = frame;
}

SWITCH void switch_registers(fiber_registers *from, fiber_registers *to)
{
    fiber_switch_stack(from, *to);
}

#endif

/* ---- what the sanitizers want to know ---- */

static void name_stack(struct fiber *f)
{
#ifdef FIBER_ASAN
    f->own.bottom = f->mapping + f->guard_bytes;
    f->own.size = f->mapping_bytes - f->guard_bytes;
    __lsan_register_root_region(f->own.bottom, f->own.size);
#endif
#ifdef FIBER_TSAN
    f->own.tsan = __tsan_create_fiber(0);
#endif
    (void)f;
}

static void forget_stack(struct fiber *f)
{
#ifdef FIBER_ASAN
    /* The sanitizer keeps frames on a second stack of many MiB, which it frees only at the fiber's
     * last switch. A fiber that was left in the middle makes that switch here. */
    if (f->own.fake_stack != NULL && !f->done) {
        struct side here;
        __sanitizer_start_switch_fiber(&here.fake_stack, f->own.bottom, f->own.size);
        __sanitizer_finish_switch_fiber(f->own.fake_stack, &here.bottom, &here.size);
        __sanitizer_start_switch_fiber(NULL, here.bottom, here.size);
        __sanitizer_finish_switch_fiber(here.fake_stack, NULL, NULL);
    }
    /* The next mapping here must not find the red zones of frames that were never left. */
    __asan_unpoison_memory_region(f->own.bottom, f->own.size);
    __lsan_unregister_root_region(f->own.bottom, f->own.size);
#endif
#ifdef FIBER_TSAN
    __tsan_destroy_fiber(f->own.tsan);
#endif
    (void)f;
}

/* On the stack just entered, coming from `from`. */
static void arrived(struct side *here, struct side *from)
{
#ifdef FIBER_ASAN
    __sanitizer_finish_switch_fiber(here->fake_stack, &from->bottom, &from->size);
#endif
    (void)here;
    (void)from;
}

/* `last`: `from` will never be entered again. */
static void switch_side(struct side *from, struct side *to, bool last)
{
#ifdef FIBER_ASAN
    __sanitizer_start_switch_fiber(last ? NULL : &from->fake_stack, to->bottom, to->size);
#endif
#ifdef FIBER_TSAN
    __tsan_switch_to_fiber(to->tsan, 0);
#endif
    (void)last;
    switch_registers(&from->registers, &to->registers);
    arrived(from, to);
}

/* ---- the fiber ---- */

/* The first frame on a fiber's stack; never returns. */
static void begin(void)
{
    struct fiber *f = running;
    arrived(&f->own, &f->caller);
    f->run(f->arg);
    f->done = true;
    running = f->resumer;
    switch_side(&f->own, &f->caller, true);
    abort();
}

enum err fiber_open(struct fiber **out, size_t stack_bytes, void (*run)(void *), void *arg)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (stack_bytes < FIBER_STACK_MIN || stack_bytes > FIBER_STACK_MAX) {
        return ERR_RANGE;
    }
    struct fiber *f = calloc(1, sizeof *f);
    if (f == NULL) {
        return ERR_NOMEM;
    }
    f->guard_bytes = page;
    f->mapping_bytes = page + (stack_bytes + page - 1) / page * page;
    void *mapping = mmap(NULL, f->mapping_bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (mapping == MAP_FAILED) {
        free(f);
        return ERR_NOMEM;
    }
    if (mprotect(mapping, f->guard_bytes, PROT_NONE) != 0) {
        munmap(mapping, f->mapping_bytes);
        free(f);
        return ERR_NOMEM;
    }
    f->mapping = mapping;
    f->run = run;
    f->arg = arg;
    name_stack(f);
    prepare(f);
    *out = f;
    return ERR_OK;
}

void fiber_resume(struct fiber *f)
{
    CHECK(!f->done && f != running);
    f->resumer = running;
#ifdef FIBER_TSAN
    f->caller.tsan = __tsan_get_current_fiber();
#endif
    running = f;
    switch_side(&f->caller, &f->own, false);
}

void fiber_yield(void)
{
    struct fiber *f = running;
    CHECK(f != NULL);
    running = f->resumer;
    switch_side(&f->own, &f->caller, false);
}

bool fiber_done(const struct fiber *fiber)
{
    return fiber->done;
}

void fiber_free(struct fiber **fiber)
{
    struct fiber *f = *fiber;
    if (f == NULL) {
        return;
    }
    CHECK(f != running);
    forget_stack(f);
    munmap(f->mapping, f->mapping_bytes);
    free(f);
    *fiber = NULL;
}
