#include "worker/table/host.h"

#include "common/clock.h"
#include "common/rng.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const char folder[] = "/dev/shm";

enum { NAME_MAX_BYTES = 64, TRIES = 100, STATE_BYTES = 4096 };

/* Another layout gets another name, so that builds that differ in it never meet. */
enum { LAYOUT = 1 };

struct host {
    int file;
    void *memory;
    size_t bytes; /* of results; the state comes after them */
    char path[NAME_MAX_BYTES];
};

_Static_assert(sizeof(struct host_state) <= STATE_BYTES, "a page behind the results");

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

/* A lock of the open file, not of the process: one that closes another descriptor keeps it. */
static bool lock(int file, short kind, bool waits)
{
    struct flock whole = {.l_type = kind, .l_whence = SEEK_SET};
    int done;
    do {
        done = fcntl(file, waits ? F_OFD_SETLKW : F_OFD_SETLK, &whole);
    } while (done != 0 && errno == EINTR && waits);
    return done == 0;
}

/* Ours, a plain file, and no other user's to read or write. */
static bool look(int file, struct stat *found)
{
    return fstat(file, found) == 0 && S_ISREG(found->st_mode) && found->st_uid == geteuid() &&
           (found->st_mode & 077) == 0;
}

static int open_file(const char *path, int flags)
{
    return open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC | flags, 0600);
}

/* Takes away the name of a file that nobody has. */
static bool remove_if_unused(const char *path, int file)
{
    struct stat found;
    /* Without a name it was somebody else's to remove, and the name may be of another by now. */
    return look(file, &found) && lock(file, F_WRLCK, false) && fstat(file, &found) == 0 &&
           found.st_nlink > 0 && unlink(path) == 0;
}

/* What processes left that were killed. A new table is locked before it has a size. */
static void sweep(void)
{
    char start[NAME_MAX_BYTES], path[sizeof folder + sizeof(((struct dirent *)0)->d_name)];
    DIR *all = opendir(folder);
    prefix(start, sizeof start);
    for (struct dirent *one; all != NULL && (one = readdir(all)) != NULL;) {
        struct stat found;
        if (strncmp(one->d_name, start, strlen(start)) != 0) {
            continue;
        }
        snprintf(path, sizeof path, "%s/%s", folder, one->d_name);
        int file = open_file(path, 0);
        if (file >= 0) {
            if (look(file, &found) && found.st_size > 0) {
                (void)remove_if_unused(path, file);
            }
            close(file);
        }
    }
    if (all != NULL) {
        closedir(all);
    }
}

static bool map(struct host *h)
{
    void *memory =
        mmap(NULL, h->bytes + STATE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, h->file, 0);
    if (memory == MAP_FAILED) {
        return false;
    }
    (void)madvise(memory, h->bytes, MADV_HUGEPAGE); /* a wish */
#ifdef MADV_POPULATE_WRITE
    (void)madvise(memory, h->bytes, MADV_POPULATE_WRITE); /* now, not in the first search */
#endif
    h->memory = memory;
    return true;
}

/* The write lock is held, and the file is empty. */
static bool make(struct host *h)
{
    /* All of it now: a page that cannot be had later would be a signal, not an error. */
    int error = posix_fallocate(h->file, 0, (off_t)(h->bytes + STATE_BYTES));
    if (error != 0 || !map(h)) {
        errno = error != 0 ? error : errno;
        return false;
    }
    struct host_state *state = host_state(h);
    state->mark = clock_unique();
    atomic_store(&state->generation, 1);
    return lock(h->file, F_RDLCK, false); /* in one step: nobody comes in between */
}

enum step { JOINED, AGAIN, FAILED };

static enum step join(struct host *h)
{
    struct stat found;
    h->file = open_file(h->path, O_CREAT);
    if (h->file < 0 || !look(h->file, &found)) {
        errno = h->file < 0 ? errno : EPERM;
        return FAILED;
    }
    if (lock(h->file, F_WRLCK, false)) { /* nobody has it */
        bool is_named = fstat(h->file, &found) == 0 && found.st_nlink > 0;
        if (is_named && found.st_size == 0) {
            if (make(h)) {
                return JOINED;
            }
            int error = errno;
            unlink(h->path);
            errno = error;
            return FAILED;
        }
        if (is_named) {
            unlink(h->path); /* left by one that was killed */
        }
        return AGAIN;
    }
    /* Waits for who fills it. Too small: that one failed, and has taken the name away. */
    if (!lock(h->file, F_RDLCK, true) || fstat(h->file, &found) != 0) {
        return FAILED;
    }
    if (found.st_nlink == 0 || found.st_size != (off_t)(h->bytes + STATE_BYTES)) {
        return AGAIN;
    }
    return map(h) ? JOINED : FAILED;
}

enum err host_open(struct host **out, uint64_t group, size_t bytes)
{
    char start[NAME_MAX_BYTES / 2];
    struct host *h = calloc(1, sizeof *h);
    if (h == NULL) {
        return ERR_NOMEM;
    }
    prefix(start, sizeof start);
    h->bytes = (bytes + STATE_BYTES - 1) / STATE_BYTES * STATE_BYTES;
    snprintf(h->path, sizeof h->path, "%s/%s%016" PRIx64, folder, start,
             rng_mix(rng_mix(group ^ LAYOUT) ^ h->bytes));
    sweep();
    enum step step = AGAIN;
    for (unsigned i = 0; i < TRIES && step == AGAIN; i++) {
        step = join(h);
        if (step != JOINED && h->file >= 0) {
            int error = errno;
            close(h->file);
            errno = error;
        }
    }
    if (step != JOINED) {
        free(h);
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
    munmap(h->memory, h->bytes + STATE_BYTES);
    (void)remove_if_unused(h->path, h->file);
    close(h->file);
    free(h);
    *host = NULL;
}

const char *host_path(const struct host *h)
{
    return h->path;
}

void *host_memory(const struct host *h)
{
    return h->memory;
}

struct host_state *host_state(const struct host *h)
{
    return (struct host_state *)((char *)h->memory + h->bytes);
}
