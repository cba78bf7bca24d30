#include "worker/table/host_table.h"

#include "common/clock.h"
#include "common/memory.h"
#include "common/rng.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

static const char folder[] = "/dev/shm";

enum {
    NAME_MAX_BYTES = 64,
    PAGE = 1 << 16, /* or a part of it, on all systems */
    AT_ONCE = 8 << 20, /* by one call, which ends at the first page there is no memory for */
    STATE_BYTES = (sizeof(struct host_state) + PAGE - 1) / PAGE * PAGE,
    LEAST_BYTES = 1 << 20,
    STILL_MS = 5000, /* with a process that makes a table and gets no further */
    RETRY_EVERY_MS = 5,
    LAYOUT = 12, /* of the file, part of its name: builds that differ in it never share one */
};

struct host_table {
    int file;
    void *memory;
    size_t bytes; /* of the file; its last pages are the state */
    char path[NAME_MAX_BYTES];
    /* while another process makes it */
    uint64_t filled;
    long maker;
};

/* A lock of the open file, not of the process: closing another descriptor keeps it. Never waits. A
 * change from read lock to write lock, or back, is one step: no other process comes in between. */
static bool lock(int file, short kind)
{
    struct flock whole = {.l_type = kind, .l_whence = SEEK_SET};
    return fcntl(file, F_OFD_SETLK, &whole) == 0;
}

/* Ours, a plain file, and no other user's to read or write. */
static bool is_ours(const struct stat *file)
{
    return S_ISREG(file->st_mode) && file->st_uid == geteuid() && (file->st_mode & 077) == 0;
}

/* O_NONBLOCK: a lease that another user holds could keep an open waiting. */
static int open_file(const char *path, int flags)
{
    return open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | flags, 0600);
}

/* Removes the name of a file that no other process has. If the file has no name any more, another
 * process removed it, and the name may belong to a new file by now. */
static void remove_if_unused(const char *path, int file)
{
    struct stat found;
    if (lock(file, F_WRLCK) && fstat(file, &found) == 0 && found.st_nlink > 0) {
        unlink(path);
    }
}

/* Removes what killed processes left, of names that begin so. A new table is locked before it has a
 * size. */
static void remove_unused(const char *start)
{
    char path[sizeof folder + sizeof(((struct dirent *)0)->d_name)];
    DIR *all = opendir(folder);
    for (struct dirent *one; all != NULL && (one = readdir(all)) != NULL;) {
        struct stat found;
        if (strncmp(one->d_name, start, strlen(start)) != 0 ||
            fstatat(dirfd(all), one->d_name, &found, AT_SYMLINK_NOFOLLOW) != 0 ||
            !is_ours(&found) || found.st_size == 0) {
            continue;
        }
        snprintf(path, sizeof path, "%s/%s", folder, one->d_name);
        int file = open_file(path, 0);
        if (file >= 0) {
            if (fstat(file, &found) == 0 && is_ours(&found)) {
                remove_if_unused(path, file);
            }
            close(file);
        }
    }
    if (all != NULL) {
        closedir(all);
    }
}

/* Whether the folder is memory and has enough of it. */
static bool has_room(size_t bytes)
{
    struct statfs found;
    if (statfs(folder, &found) != 0) {
        return false;
    }
    if (found.f_type != TMPFS_MAGIC) { /* on a disk it would be written back all the time */
        errno = ENODEV;
        return false;
    }
    if (bytes > (size_t)INT64_MAX ||
        (found.f_blocks > 0 && bytes / (size_t)found.f_bsize > found.f_bavail)) {
        errno = ENOSPC;
        return false;
    }
    return true;
}

/* At an address at which large pages are possible. */
static bool map(struct host_table *h)
{
    char *all =
        mmap(NULL, h->bytes + MEMORY_LARGE_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED) {
        return false;
    }
    size_t before = -(uintptr_t)all % MEMORY_LARGE_PAGE;
    if (before > 0) {
        munmap(all, before);
    }
    munmap(all + before + h->bytes, MEMORY_LARGE_PAGE - before);
    h->memory = all + before; /* given back by leave */
    if (mmap(h->memory, h->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, h->file, 0) ==
        MAP_FAILED) {
        return false;
    }
    (void)madvise(h->memory, h->bytes, MADV_HUGEPAGE); /* a hint, before there are pages */
    return true;
}

/* False: the one that waits for it wants it no longer. */
static bool goes_on(const struct host_table *h, const struct host_table_wait *wait, long maker,
                    uint64_t filled)
{
    bool is_wanted = wait->waiting == NULL || wait->waiting(wait->self, maker, filled, h->bytes);
    errno = is_wanted ? errno : ECANCELED;
    return is_wanted;
}

/* Touches every page now, not in the first search. False: see goes_on. */
static bool fill(struct host_table *h, const struct host_table_wait *wait)
{
    char *memory = h->memory;
    for (size_t from = 0; from < h->bytes; from += AT_ONCE) {
        size_t length = h->bytes - from > AT_ONCE ? AT_ONCE : h->bytes - from;
        (void)madvise(memory + from, length, MADV_POPULATE_WRITE);
        if (!goes_on(h, wait, getpid(), from + length)) {
            return false;
        }
    }
    return true;
}

/* MADV_HUGEPAGE does nothing where /dev/shm is mounted as usual (huge=never). From Linux 6.1 on
 * MADV_COLLAPSE makes large pages there all the same, unless the system forbids it (shmem_enabled:
 * deny), of ranges that have one page at least. Where it fails, pages stay small. False: see
 * goes_on. */
static bool enlarge_pages(struct host_table *h, const struct host_table_wait *wait)
{
    char *memory = h->memory;
    size_t whole = h->bytes - h->bytes % MEMORY_LARGE_PAGE;
    for (size_t from = 0, to; from < whole; from = to) {
        to = whole - from > AT_ONCE ? from + AT_ONCE : whole;
        for (size_t at = from; at < to; at += MEMORY_LARGE_PAGE) {
            if (madvise(memory + at, 1, MADV_POPULATE_WRITE) != 0) {
                return true; /* no memory, or Linux before 5.14 */
            }
        }
        if (madvise(memory + from, to - from, MADV_COLLAPSE) != 0 && from == 0 && errno == EINVAL) {
            return true; /* before 6.1, or forbidden */
        }
        if (!goes_on(h, wait, getpid(), to)) {
            return false;
        }
    }
    return true;
}

/* Memory and file are given back; errno stays. */
static void leave(struct host_table *h)
{
    int error = errno;
    if (h->memory != NULL) {
        munmap(h->memory, h->bytes);
        h->memory = NULL;
    }
    close(h->file);
    errno = error;
}

/* Gives the file its pages from byte `from` on. One that the system did not have later would end
 * the process by SIGBUS. */
static bool reserve(const struct host_table *h, size_t from)
{
    errno = posix_fallocate(h->file, (off_t)from, (off_t)(h->bytes - from));
    return errno == 0;
}

/* The write lock is held, and the file is empty. Waiters read the maker, and how far it is. */
static bool make(struct host_table *h, const struct host_table_wait *wait)
{
    if (!has_room(h->bytes) || ftruncate(h->file, (off_t)h->bytes) != 0 || !map(h) ||
        !reserve(h, h->bytes - STATE_BYTES)) {
        return false;
    }
    host_table_state(h)->maker = (int64_t)getpid();
    if (!enlarge_pages(h, wait) || !fill(h, wait) || !reserve(h, 0)) {
        return false;
    }
    struct host_state *state = host_table_state(h);
    state->table_id = clock_unique();
    tt_generations_init(&state->generations);
    return lock(h->file, F_RDLCK);
}

/* The pages that the file has are its maker's progress: no mark of the maker's own can lag behind,
 * or go on without it. A lock says nothing of its holder. */
static void see_maker(struct host_table *h, const struct stat *found)
{
    int64_t maker = 0;
    off_t at = (off_t)(h->bytes - STATE_BYTES + offsetof(struct host_state, maker));
    h->filled = (uint64_t)found->st_blocks * 512; /* stat's unit on all systems */
    h->maker = pread(h->file, &maker, sizeof maker, at) == sizeof maker ? (long)maker : 0;
}

enum step { JOINED, AGAIN, BUSY, FAILED };

static enum step try_join(struct host_table *h, const struct host_table_wait *wait)
{
    struct stat found;
    if (fstat(h->file, &found) != 0) {
        return FAILED;
    }
    if (!is_ours(&found)) {
        errno = EPERM;
        return FAILED;
    }
    const bool is_alone = lock(h->file, F_WRLCK);
    const bool is_made = is_alone || lock(h->file, F_RDLCK); /* else a process makes it now */
    if ((!is_made && errno != EAGAIN && errno != EACCES) || fstat(h->file, &found) != 0) {
        return FAILED;
    }
    if (!is_made) {
        see_maker(h, &found);
        return BUSY;
    }
    if (found.st_nlink == 0) { /* its maker failed or left */
        return AGAIN;
    }
    if (is_alone && found.st_size != 0) { /* left by a killed process */
        unlink(h->path);
        return AGAIN;
    }
    if (is_alone && !make(h, wait)) {
        int error = errno;
        unlink(h->path);
        errno = error;
        return FAILED;
    }
    if (is_alone) {
        return JOINED;
    }
    if (found.st_size != (off_t)h->bytes) {
        return AGAIN;
    }
    return map(h) && fill(h, wait) ? JOINED : FAILED;
}

static enum step join(struct host_table *h, const struct host_table_wait *wait)
{
    h->file = open_file(h->path, O_CREAT);
    if (h->file < 0) {
        return errno == EAGAIN ? BUSY : FAILED;
    }
    enum step step = try_join(h, wait);
    if (step != JOINED) {
        leave(h);
    }
    return step;
}

/* As long as the maker goes on; one that dies gives up its lock, and the next try takes over. */
static enum step join_in_time(struct host_table *h, const struct host_table_wait *wait)
{
    uint32_t still_ms = wait->still_ms != 0 ? wait->still_ms : STILL_MS, still = 0;
    enum step step = join(h, wait);
    for (uint64_t seen = 0; (step == AGAIN || step == BUSY) && still < still_ms;
         step = join(h, wait)) {
        if (step == AGAIN) {
            still++;
            continue;
        }
        if (!goes_on(h, wait, h->maker, h->filled)) {
            return FAILED;
        }
        still = h->filled != seen ? 0 : still + RETRY_EVERY_MS;
        seen = h->filled;
        nanosleep(&(struct timespec){.tv_nsec = RETRY_EVERY_MS * 1000000}, NULL);
    }
    if (step != JOINED && step != FAILED) {
        errno = ETIMEDOUT;
    }
    return step;
}

const char *host_table_reason(int error)
{
    return error == ETIMEDOUT   ? "the process that makes the host's table stands still"
           : error == ECANCELED ? "interrupted"
           : error == ENOSPC    ? "no room in /dev/shm"
           : error == ENODEV    ? "/dev/shm is not memory"
                                : strerror(error);
}

enum err host_table_open(struct host_table **out, uint64_t group, size_t bytes,
                         const struct host_table_wait *wait)
{
    static const struct host_table_wait usual = {0};
    char start[NAME_MAX_BYTES / 2];
    if (bytes < LEAST_BYTES) {
        errno = EINVAL;
        return ERR_RANGE;
    }
    struct host_table *h = calloc(1, sizeof *h);
    if (h == NULL) {
        return ERR_NOMEM;
    }
    snprintf(start, sizeof start, "abdada-%u-", (unsigned)geteuid());
    h->bytes = bytes - bytes % PAGE;
    snprintf(h->path, sizeof h->path, "%s/%s%016" PRIx64, folder, start,
             rng_mix(rng_mix(group ^ LAYOUT) ^ h->bytes));
    remove_unused(start);
    if (join_in_time(h, wait != NULL ? wait : &usual) != JOINED) {
        int error = errno;
        free(h);
        errno = error;
        return ERR_IO;
    }
    *out = h;
    return ERR_OK;
}

void host_table_close(struct host_table **host)
{
    struct host_table *h = *host;
    if (h == NULL) {
        return;
    }
    /* The own lock goes first: of two that end together the later finds no lock. */
    (void)lock(h->file, F_UNLCK);
    remove_if_unused(h->path, h->file);
    leave(h);
    free(h);
    *host = NULL;
}

bool host_table_clear(struct host_table *h)
{
    if (!lock(h->file, F_WRLCK)) {
        return false;
    }
    memset(h->memory, 0, host_table_bytes(h));
    (void)lock(h->file, F_RDLCK);
    return true;
}

void *host_table_memory(const struct host_table *h)
{
    return h->memory;
}

size_t host_table_bytes(const struct host_table *h)
{
    return h->bytes - STATE_BYTES;
}

struct host_state *host_table_state(const struct host_table *h)
{
    return (struct host_state *)((char *)h->memory + host_table_bytes(h));
}
