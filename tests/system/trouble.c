/* trouble: a library to preload (LD_PRELOAD), for the soak: a wall clock that somebody sets, and a
 * disk that is full or fails, while a program runs.
 *
 *   TROUBLE=FILE  has two numbers of 64 bits, which may change at any time: how many nanoseconds
 *                 the wall clock is ahead, and the errno of what is written to disk (0: it is)
 *
 * Who waits until a time of the wall clock waits as long as it meant to: what the kernel does when
 * the clock jumps meanwhile is not here. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { SECOND_NS = 1000000000, LONG_AGO_S = 1000000000 /* no machine runs so long */ };

static struct {
    _Atomic int64_t ahead_ns, disk_errno;
} none, *trouble = &none;

#define NEXT(name) ((__typeof__(name) *)dlsym(RTLD_NEXT, #name))

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("TROUBLE");
    const int file =
        path == NULL ? -1 : (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    void *at = file < 0 ? MAP_FAILED : mmap(NULL, sizeof *trouble, PROT_READ, MAP_SHARED, file, 0);
    if (file >= 0) {
        close(file);
    }
    if (at == MAP_FAILED) {
        fprintf(stderr, "trouble: no file TROUBLE\n");
        _exit(3);
    }
    trouble = at;
}

/* ---- the wall clock ---- */

static void add(struct timespec *at, int64_t ns)
{
    ns += at->tv_nsec;
    at->tv_sec += ns / SECOND_NS;
    at->tv_nsec = ns % SECOND_NS;
    if (at->tv_nsec < 0) {
        at->tv_nsec += SECOND_NS;
        at->tv_sec--;
    }
}

int clock_gettime(clockid_t id, struct timespec *out)
{
    const int status = (int)syscall(SYS_clock_gettime, id, out);
    if (status == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) {
        add(out, atomic_load(&trouble->ahead_ns));
    }
    return status;
}

int gettimeofday(struct timeval *restrict out, void *restrict zone)
{
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    *out = (struct timeval){now.tv_sec, now.tv_nsec / 1000};
    return 0;
}

time_t time(time_t *out)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out != NULL) {
        *out = now.tv_sec;
    }
    return now.tv_sec;
}

int pthread_cond_timedwait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex,
                           const struct timespec *restrict until)
{
    struct timespec real = *until;
    if (until->tv_sec > LONG_AGO_S) { /* of the wall clock */
        add(&real, -atomic_load(&trouble->ahead_ns));
    }
    return NEXT(pthread_cond_timedwait)(cond, mutex, &real);
}

/* ---- the disk ---- */

static bool fails(void)
{
    const int64_t why = atomic_load(&trouble->disk_errno);
    errno = why != 0 ? (int)why : errno;
    return why != 0;
}

static bool is_file(int file)
{
    struct stat status;
    return fstat(file, &status) == 0 && S_ISREG(status.st_mode);
}

ssize_t write(int file, const void *bytes, size_t size)
{
    return is_file(file) && fails() ? -1 : syscall(SYS_write, file, bytes, size);
}

int fsync(int file)
{
    return fails() ? -1 : (int)syscall(SYS_fsync, file);
}

int rename(const char *from, const char *to)
{
    return fails() ? -1 : (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int open(const char *path, int flags, ...)
{
    va_list list;
    va_start(list, flags);
    const int mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(list, int) : 0;
    va_end(list);
    const bool is_new = flags & O_CREAT && syscall(SYS_access, path, F_OK) != 0;
    return is_new && fails() ? -1 : (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}
