/* want: a library to preload (LD_PRELOAD). It counts the calls by which a program, or a library
 * named below, takes memory, a descriptor or a thread from the system, and lets one of them fail.
 *
 *   WANT_AT=N      the call number N, from 1, fails (0 or absent: none)
 *   WANT_SAYS=FILE gets a line: of the call that failed, its name and the place in the file of the
 *                  program (for addr2line); when the program ends, "calls N"
 *
 * It counts in abdada, ttserver and ttworker, not in what they start. Calls of the C library are
 * not counted, nor those of libzmq and libuv, which abort where they get
 * nothing. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { RANGES = 16 };

/* Where code lies whose calls count. */
static struct range {
    uintptr_t begin, end, base;
    const char *name;
} range[RANGES];
static unsigned ranges;
static unsigned long fail_at;
static atomic_ulong calls;
static const char *says, *disk;

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t line, size_t size);

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *format, ...)
{
    char line[128];
    va_list list;
    va_start(list, format);
    const int length = vsnprintf(line, sizeof line, format, list);
    va_end(list);
    const int file = (int)syscall(SYS_openat, AT_FDCWD, says, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (file >= 0) {
        (void)!write(file, line, (size_t)length);
        close(file);
    }
}

static int take_ranges(struct dl_phdr_info *info, size_t size, void *context)
{
    static const char *const counted[] = {"libsodium", "libmicrohttpd"};
    bool counts = info->dlpi_name[0] == '\0'; /* the program */
    (void)size;
    (void)context;
    for (unsigned i = 0; i < sizeof counted / sizeof counted[0]; i++) {
        counts |= strstr(info->dlpi_name, counted[i]) != NULL;
    }
    for (unsigned i = 0; counts && i < info->dlpi_phnum && ranges < RANGES; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type == PT_LOAD && part->p_flags & PF_X) {
            const uintptr_t begin = info->dlpi_addr + part->p_vaddr;
            range[ranges++] =
                (struct range){begin, begin + part->p_memsz, info->dlpi_addr,
                               info->dlpi_name[0] == '\0' ? "program" : info->dlpi_name};
        }
    }
    return 0;
}

__attribute__((constructor)) static void begin(void)
{
    const char *at = getenv("WANT_AT");
    says = getenv("WANT_SAYS");
    disk = getenv("WANT_DISK");
    fail_at = at == NULL ? 0 : strtoul(at, NULL, 10);
    const bool is_ours = strcmp(program_invocation_short_name, "abdada") == 0 ||
                         strncmp(program_invocation_short_name, "tt", 2) == 0;
    if (says != NULL && is_ours) {
        dl_iterate_phdr(take_ranges, NULL);
    }
}

__attribute__((destructor)) static void end(void)
{
    if (says != NULL) {
        say("calls %lu\n", atomic_load(&calls));
    }
}

/* This program ends, too, without its destructors. */
int execvp(const char *file, char *const words[])
{
    end();
    return ((__typeof__(execvp) *)dlsym(RTLD_NEXT, "execvp"))(file, words);
}

/* Counts a call. Whether it is the one that fails, which is said. */
static bool is_the_one(const char *what, void *caller)
{
    const uintptr_t place = (uintptr_t)caller;
    for (unsigned i = 0; i < ranges; i++) {
        if (place >= range[i].begin && place < range[i].end) {
            if (atomic_fetch_add(&calls, 1) + 1 != fail_at) {
                return false;
            }
            say("%s %s %#lx\n", what, range[i].name, (unsigned long)(place - range[i].base - 1));
            return true;
        }
    }
    return false;
}

static bool fails(const char *what, void *caller, int why)
{
    if (disk != NULL || !is_the_one(what, caller)) {
        return false;
    }
    errno = why;
    return true;
}

static bool is_how(const char *name)
{
    return strcmp(disk, name) == 0;
}

static void die(void)
{
    kill(getpid(), SIGKILL);
}

/* The same of a disk. False: the call is made as it is; `half`: of half of its bytes. */
static bool disk_fails(const char *what, void *caller, bool *half)
{
    *half = false;
    if (disk == NULL || !is_the_one(what, caller)) {
        return false;
    }
    if (is_how("before")) {
        die();
    }
    *half = is_how("half") || is_how("after");
    errno = is_how("ENOSPC") ? ENOSPC : EIO;
    return !*half;
}

static bool is_file(int file)
{
    struct stat status;
    return disk != NULL && fstat(file, &status) == 0 && S_ISREG(status.st_mode);
}

/* Of a call that is done whole or not at all. */
#define DISK(what, call)                                            \
    do {                                                            \
        bool half;                                                  \
        if (disk_fails(what, __builtin_return_address(0), &half)) { \
            return -1;                                              \
        }                                                           \
        const int done = (int)(call);                               \
        if (half && is_how("after")) {                              \
            die();                                                  \
        }                                                           \
        return done;                                                \
    } while (0)

#define FAILS(what, why) fails(what, __builtin_return_address(0), why)
#define NEXT(name) ((__typeof__(name) *)dlsym(RTLD_NEXT, #name))

void *malloc(size_t size)
{
    return FAILS("malloc", ENOMEM) ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    return FAILS("calloc", ENOMEM) ? NULL : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
    return FAILS("realloc", ENOMEM) ? NULL : __libc_realloc(old, size);
}

void *aligned_alloc(size_t line, size_t size)
{
    return FAILS("aligned_alloc", ENOMEM) ? NULL : __libc_memalign(line, size);
}

int posix_memalign(void **out, size_t line, size_t size)
{
    if (FAILS("posix_memalign", ENOMEM)) {
        return ENOMEM;
    }
    *out = __libc_memalign(line, size);
    return *out == NULL ? ENOMEM : 0;
}

char *strdup(const char *text)
{
    const size_t size = strlen(text) + 1;
    char *copy = FAILS("strdup", ENOMEM) ? NULL : __libc_malloc(size);
    return copy == NULL ? NULL : memcpy(copy, text, size);
}

void *mmap(void *at, size_t size, int protection, int flags, int file, off_t offset)
{
    return FAILS("mmap", ENOMEM)
               ? MAP_FAILED
               : (void *)syscall(SYS_mmap, at, size, protection, flags, file, offset);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                   void *context)
{
    return FAILS("pthread_create", EAGAIN) ? EAGAIN
                                           : NEXT(pthread_create)(thread, attributes, run, context);
}

int socket(int domain, int type, int protocol)
{
    return FAILS("socket", EMFILE) ? -1 : NEXT(socket)(domain, type, protocol);
}

int open(const char *path, int flags, ...)
{
    va_list list;
    va_start(list, flags);
    const int mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(list, int) : 0;
    va_end(list);
    if (disk != NULL && flags & O_CREAT) {
        DISK("open", NEXT(open)(path, flags, mode));
    }
    return FAILS("open", EMFILE) ? -1 : NEXT(open)(path, flags, mode);
}

int memfd_create(const char *name, unsigned flags)
{
    return FAILS("memfd_create", EMFILE) ? -1 : (int)syscall(SYS_memfd_create, name, flags);
}

FILE *fopen(const char *path, const char *mode)
{
    return FAILS("fopen", EMFILE) ? NULL : NEXT(fopen)(path, mode);
}

int pipe2(int pair[2], int flags)
{
    return FAILS("pipe2", EMFILE) ? -1 : NEXT(pipe2)(pair, flags);
}

int pipe(int pair[2])
{
    return FAILS("pipe", EMFILE) ? -1 : NEXT(pipe)(pair);
}

int eventfd(unsigned initial, int flags)
{
    return FAILS("eventfd", EMFILE) ? -1 : (int)syscall(SYS_eventfd2, initial, flags);
}

int epoll_create1(int flags)
{
    return FAILS("epoll_create1", EMFILE) ? -1 : (int)syscall(SYS_epoll_create1, flags);
}

int shm_open(const char *name, int flags, mode_t mode)
{
    return FAILS("shm_open", EMFILE) ? -1 : NEXT(shm_open)(name, flags, mode);
}

int ftruncate(int file, off_t size)
{
    if (is_file(file)) {
        DISK("ftruncate", syscall(SYS_ftruncate, file, size));
    }
    return FAILS("ftruncate", ENOSPC) ? -1 : (int)syscall(SYS_ftruncate, file, size);
}

int fsync(int file)
{
    DISK("fsync", syscall(SYS_fsync, file));
}

int rename(const char *from, const char *to)
{
    DISK("renameat2", syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}

/* Reads or writes. */
static ssize_t transfer(long call, const char *what, void *caller, int file, void *bytes,
                        size_t size)
{
    bool half = false;
    if (is_file(file) && disk_fails(what, caller, &half)) {
        return -1;
    }
    const ssize_t done = syscall(call, file, bytes, half && size > 1 ? size / 2 : size);
    if (half && is_how("after")) {
        die();
    }
    return done;
}

ssize_t write(int file, const void *bytes, size_t size)
{
    return transfer(SYS_write, "write", __builtin_return_address(0), file, (void *)bytes, size);
}

ssize_t read(int file, void *bytes, size_t size)
{
    return transfer(SYS_read, "read", __builtin_return_address(0), file, bytes, size);
}
