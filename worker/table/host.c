#include "worker/table/host.h"

#include "common/clock.h"
#include "common/memory.h"
#include "common/rng.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

static const char folder[] = "/dev/shm";

/* Behind the results. */
struct shared {
    struct host_state state;
    struct lessons lessons;
};

enum {
    NAME_MAX_BYTES = 64,
    PAGE = 1 << 16, /* or a part of it, on all systems */
    AT_ONCE = 8 << 20, /* by one call, which ends at the first page there is no memory for */
    STATE_BYTES = (sizeof(struct shared) + PAGE - 1) / PAGE * PAGE,
    LEAST_BYTES = 1 << 20,
    PATIENCE_MS = 5000, /* for who makes a table */
    LOOK_EVERY_MS = 5,
    LAYOUT = 5, /* of the file: another gets another name, so that unlike builds never meet */
};

struct host {
    int file;
    void *memory;
    size_t bytes; /* of the file; its last pages are the state */
    char path[NAME_MAX_BYTES];
};

uint64_t host_group(const struct options_host_port *server, unsigned servers)
{
    uint64_t sum = 1;
    for (unsigned i = 0; i < servers; i++) {
        uint64_t mix = server[i].port;
        for (const char *c = server[i].host; *c != '\0'; c++) {
            mix = rng_mix(mix ^ (uint8_t)*c);
        }
        sum += rng_mix(mix);
    }
    return sum == 0 ? 1 : sum;
}

static void prefix(char *out, size_t size)
{
    snprintf(out, size, "abdada-%u-", (unsigned)geteuid());
}

/* A lock of the open file, not of the process: one that closes another descriptor keeps it. Never
 * waits. A read lock for a write lock, or the other way, is one step: nobody comes in between. */
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

/* Takes away the name of a file that nobody else has. Without a name it was somebody else's to
 * take, and the name may be of another file by now. */
static void remove_if_unused(const char *path, int file)
{
    struct stat found;
    if (lock(file, F_WRLCK) && fstat(file, &found) == 0 && found.st_nlink > 0) {
        unlink(path);
    }
}

/* What processes left that were killed. A new table is locked before it has a size. */
static void sweep(void)
{
    char start[NAME_MAX_BYTES], path[sizeof folder + sizeof(((struct dirent *)0)->d_name)];
    DIR *all = opendir(folder);
    prefix(start, sizeof start);
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

/* Memory, and enough of it. */
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

/* An address of that many bytes at which large pages are possible. */
static void *reserve(size_t bytes)
{
    char *all =
        mmap(NULL, bytes + MEMORY_LARGE_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED) {
        return MAP_FAILED;
    }
    size_t before = -(uintptr_t)all % MEMORY_LARGE_PAGE;
    if (before > 0) {
        munmap(all, before);
    }
    munmap(all + before + bytes, MEMORY_LARGE_PAGE - before);
    return all + before;
}

static bool map(struct host *h)
{
    void *memory = reserve(h->bytes);
    if (memory == MAP_FAILED) {
        return false;
    }
    if (mmap(memory, h->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, h->file, 0) ==
        MAP_FAILED) {
        int error = errno;
        munmap(memory, h->bytes);
        errno = error;
        return false;
    }
    (void)madvise(memory, h->bytes, MADV_HUGEPAGE); /* a wish, before there are pages */
    h->memory = memory;
    return true;
}

/* Now, not in the first search. */
static void fill(struct host *h)
{
    (void)madvise(h->memory, h->bytes, MADV_POPULATE_WRITE);
}

/* The wish is not heard where /dev/shm is mounted as usual (huge=never). Linux 6.1 makes large
 * pages there all the same for who asks at once, unless the system forbids it (shmem_enabled:
 * deny), of ranges that have one page at least. Where it fails, pages are as they come. */
static void enlarge_pages(struct host *h)
{
    char *memory = h->memory;
    size_t whole = h->bytes - h->bytes % MEMORY_LARGE_PAGE;
    for (size_t from = 0, to; from < whole; from = to) {
        to = whole - from > AT_ONCE ? from + AT_ONCE : whole;
        for (size_t at = from; at < to; at += MEMORY_LARGE_PAGE) {
            if (madvise(memory + at, 1, MADV_POPULATE_WRITE) != 0) {
                return; /* no memory, or Linux before 5.14 */
            }
        }
        if (madvise(memory + from, to - from, MADV_COLLAPSE) != 0 && from == 0 && errno == EINVAL) {
            return; /* before 6.1, or forbidden */
        }
    }
}

static void unmap(struct host *h)
{
    munmap(h->memory, h->bytes);
    h->memory = NULL;
}

/* The write lock is held, and the file is empty. */
static bool make(struct host *h)
{
    if (!has_room(h->bytes) || ftruncate(h->file, (off_t)h->bytes) != 0 || !map(h)) {
        return false;
    }
    enlarge_pages(h);
    fill(h);
    /* All of it is there from now on: a page that cannot be had later would be a signal. */
    int error = posix_fallocate(h->file, 0, (off_t)h->bytes);
    if (error == 0) {
        struct host_state *state = host_state(h);
        state->table_id = clock_unique();
        atomic_store(&state->generation, 1);
        error = lock(h->file, F_RDLCK) ? 0 : errno;
    }
    if (error != 0) {
        unmap(h);
        errno = error;
    }
    return error == 0;
}

enum step { JOINED, AGAIN, BUSY, FAILED };

/* Nobody has the file, and the write lock is held. */
static enum step begin(struct host *h, const struct stat *found)
{
    if (found->st_nlink == 0) {
        return AGAIN;
    }
    if (found->st_size != 0) { /* left by one that was killed */
        unlink(h->path);
        return AGAIN;
    }
    if (make(h)) {
        return JOINED;
    }
    int error = errno;
    unlink(h->path);
    errno = error;
    return FAILED;
}

static enum step try_join(struct host *h)
{
    struct stat found;
    if (fstat(h->file, &found) != 0) {
        return FAILED;
    }
    if (!is_ours(&found)) {
        errno = EPERM;
        return FAILED;
    }
    if (lock(h->file, F_WRLCK)) {
        return fstat(h->file, &found) == 0 ? begin(h, &found) : FAILED;
    }
    if (!lock(h->file, F_RDLCK)) { /* somebody makes it */
        return errno == EAGAIN || errno == EACCES ? BUSY : FAILED;
    }
    if (fstat(h->file, &found) != 0) {
        return FAILED;
    }
    if (found.st_nlink == 0 || found.st_size != (off_t)h->bytes) { /* who made it failed or left */
        return AGAIN;
    }
    if (!map(h)) {
        return FAILED;
    }
    fill(h);
    return JOINED;
}

static enum step join(struct host *h)
{
    h->file = open_file(h->path, O_CREAT);
    if (h->file < 0) {
        return errno == EAGAIN ? BUSY : FAILED;
    }
    enum step step = try_join(h);
    if (step != JOINED) {
        int error = errno;
        close(h->file);
        errno = error;
    }
    return step;
}

static enum step join_in_time(struct host *h)
{
    enum step step = join(h);
    for (unsigned waited = 0; (step == AGAIN || step == BUSY) && waited < PATIENCE_MS;) {
        if (step == BUSY) {
            nanosleep(&(struct timespec){.tv_nsec = LOOK_EVERY_MS * 1000000}, NULL);
        }
        waited += step == BUSY ? LOOK_EVERY_MS : 1;
        step = join(h);
    }
    if (step != JOINED && step != FAILED) {
        errno = ETIMEDOUT;
    }
    return step;
}

enum err host_open(struct host **out, uint64_t group, size_t bytes)
{
    char start[NAME_MAX_BYTES / 2];
    if (bytes < LEAST_BYTES) {
        errno = EINVAL;
        return ERR_RANGE;
    }
    struct host *h = calloc(1, sizeof *h);
    if (h == NULL) {
        return ERR_NOMEM;
    }
    prefix(start, sizeof start);
    h->bytes = bytes - bytes % PAGE;
    snprintf(h->path, sizeof h->path, "%s/%s%016" PRIx64, folder, start,
             rng_mix(rng_mix(group ^ LAYOUT) ^ h->bytes));
    sweep();
    if (join_in_time(h) != JOINED) {
        int error = errno;
        free(h);
        errno = error;
        return ERR_IO;
    }
    *out = h;
    return ERR_OK;
}

void host_close(struct host **host)
{
    struct host *h = *host;
    if (h == NULL) {
        return;
    }
    unmap(h);
    /* First its own lock: of two that end together the later finds nobody. */
    (void)lock(h->file, F_UNLCK);
    remove_if_unused(h->path, h->file);
    close(h->file);
    free(h);
    *host = NULL;
}

bool host_clear(struct host *h)
{
    if (!lock(h->file, F_WRLCK)) {
        return false;
    }
    memset(h->memory, 0, host_memory_bytes(h));
    (void)lock(h->file, F_RDLCK);
    return true;
}

void *host_memory(const struct host *h)
{
    return h->memory;
}

size_t host_memory_bytes(const struct host *h)
{
    return h->bytes - STATE_BYTES;
}

static struct shared *shared(const struct host *h)
{
    return (struct shared *)((char *)h->memory + host_memory_bytes(h));
}

struct host_state *host_state(const struct host *h)
{
    return &shared(h)->state;
}

struct lessons *host_lessons(const struct host *h)
{
    return &shared(h)->lessons;
}

const char *host_path(const struct host *h)
{
    return h->path;
}
