#include "tests/chaos/lab_disk.h"

#include "common/err.h"
#include "common/rng.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

enum {
    STATES = 32, /* of the folder, at most, that may survive */
    FILES = LAB_DISK_NAMES * STATES,
    TORN_PERCENT = 20,
    UNREADABLE_PERCENT = 30, /* of files that are spoiled */
    NOWHERE = -1,
};

enum page { CLEAN, DIRTY, LOST /* a sync that failed was to keep it */ };

struct file {
    uint64_t number; /* 0: there is none here */
    uint8_t *now, *kept; /* [room]: as programs see it; as it survives */
    uint8_t *page; /* [room / LAB_DISK_PAGE] */
    size_t length, kept_length, room;
    int locked_by; /* a handle; NOWHERE: nobody has */
    bool is_spoiled;
    long unreadable; /* a page; NOWHERE: all can be read */
};

struct handle {
    struct file *file; /* NULL: it is closed */
    size_t at;
};

/* Which file each name has. */
struct folder {
    struct file *file[LAB_DISK_NAMES];
};

struct lab_disk {
    struct disk_port port;
    struct lab_disk_faults faults;
    struct lab_disk_planted planted;
    uint64_t random;
    uint64_t calls_left; /* of a process that dies at a call */
    bool is_dead;
    uint64_t files; /* made so far */
    char name[LAB_DISK_NAMES][LAB_DISK_NAME_MAX];
    struct folder folder[STATES]; /* that which survives, then one for each change of names */
    unsigned states;
    struct file file[FILES];
    struct handle handle[LAB_DISK_HANDLES];
    struct lab_disk_figures figures;
};

/* ---- chance ---- */

static bool happens(struct lab_disk *d, uint32_t ppm)
{
    return ppm > 0 && rng_below(&d->random, 1000000) < ppm;
}

static bool percent(struct lab_disk *d, unsigned chance)
{
    return rng_below(&d->random, 100) < chance;
}

/* True: the call has failed. */
static bool fails(struct lab_disk *d)
{
    d->is_dead = d->is_dead || d->calls_left == 0;
    d->calls_left -= !d->is_dead && d->calls_left != UINT64_MAX;
    d->figures.calls += !d->is_dead;
    const bool is_error = !d->is_dead && happens(d, d->faults.error_ppm);
    d->figures.errors += is_error;
    if (d->is_dead || is_error) {
        errno = EIO;
        return true;
    }
    return false;
}

static bool is_full(struct lab_disk *d)
{
    const bool is = happens(d, d->faults.full_ppm);
    d->figures.fulls += is;
    errno = is ? ENOSPC : errno;
    return is;
}

static size_t shorten(struct lab_disk *d, size_t length)
{
    if (length < 2 || !happens(d, d->faults.short_ppm)) {
        return length;
    }
    d->figures.shorts++;
    return 1 + rng_below(&d->random, (uint32_t)length - 1);
}

/* ---- files ---- */

static void free_file(struct file *f)
{
    free(f->now);
    free(f->kept);
    free(f->page);
    *f = (struct file){.number = 0};
}

/* Frees files that no name and no handle has. */
static void free_unused(struct lab_disk *d)
{
    bool used[FILES] = {false};
    for (unsigned s = 0; s < d->states; s++) {
        for (unsigned n = 0; n < LAB_DISK_NAMES; n++) {
            const struct file *f = d->folder[s].file[n];
            if (f != NULL) {
                used[f - d->file] = true;
            }
        }
    }
    for (unsigned h = 0; h < LAB_DISK_HANDLES; h++) {
        if (d->handle[h].file != NULL) {
            used[d->handle[h].file - d->file] = true;
        }
    }
    for (unsigned i = 0; i < FILES; i++) {
        if (!used[i] && d->file[i].number != 0) {
            free_file(&d->file[i]);
        }
    }
}

static struct file *make_file(struct lab_disk *d)
{
    for (unsigned i = 0; i < FILES; i++) {
        if (d->file[i].number == 0) {
            d->file[i] =
                (struct file){.number = ++d->files, .locked_by = NOWHERE, .unreadable = NOWHERE};
            return &d->file[i];
        }
    }
    CHECK_THAT(false, "a disk has a place for every file that a name has");
    return NULL;
}

static void reserve(struct file *f, size_t length)
{
    if (length <= f->room) {
        return;
    }
    size_t room = f->room == 0 ? LAB_DISK_PAGE : f->room;
    while (room < length) {
        room *= 2;
    }
    f->now = realloc(f->now, room);
    f->kept = realloc(f->kept, room);
    f->page = realloc(f->page, room / LAB_DISK_PAGE);
    CHECK(f->now != NULL && f->kept != NULL && f->page != NULL);
    memset(f->now + f->room, 0, room - f->room);
    memset(f->kept + f->room, 0, room - f->room);
    memset(f->page + f->room / LAB_DISK_PAGE, CLEAN, (room - f->room) / LAB_DISK_PAGE);
    f->room = room;
}

static void touch(struct file *f, size_t from, size_t to)
{
    for (size_t p = from / LAB_DISK_PAGE; p * LAB_DISK_PAGE < to; p++) {
        f->page[p] = DIRTY;
        f->unreadable = f->unreadable == (long)p ? NOWHERE : f->unreadable;
    }
}

static void set_length(struct file *f, size_t length)
{
    if (length < f->length) {
        memset(f->now + length, 0, f->length - length);
        touch(f, length, f->length);
    }
    reserve(f, length);
    f->length = length;
    f->is_spoiled = f->is_spoiled && length > 0;
}

static void keep(struct file *f, bool is_kept)
{
    for (size_t p = 0; p < f->room / LAB_DISK_PAGE; p++) {
        if (f->page[p] == DIRTY && is_kept) {
            memcpy(f->kept + p * LAB_DISK_PAGE, f->now + p * LAB_DISK_PAGE, LAB_DISK_PAGE);
        }
        if (f->page[p] == DIRTY) {
            f->page[p] = is_kept ? CLEAN : LOST;
        }
    }
    f->kept_length = is_kept ? f->length : f->kept_length;
}

/* What a loss of power leaves of it. */
static void lose_power(struct lab_disk *d, struct file *f)
{
    const size_t half = LAB_DISK_PAGE / 2;
    for (size_t p = 0; p < f->room / LAB_DISK_PAGE; p++) {
        uint8_t *kept = f->kept + p * LAB_DISK_PAGE, *now = f->now + p * LAB_DISK_PAGE;
        if (f->page[p] == DIRTY) {
            const bool is_torn = percent(d, TORN_PERCENT), is_kept = percent(d, 50);
            memcpy(kept, now, is_torn ? half : is_kept ? (size_t)LAB_DISK_PAGE : 0);
        }
        f->page[p] = CLEAN;
    }
    if (f->kept_length != f->length && percent(d, 50)) {
        f->kept_length = f->length;
    }
    if (f->room > 0) {
        memset(f->kept + f->kept_length, 0, f->room - f->kept_length);
        memcpy(f->now, f->kept, f->room);
    }
    f->length = f->kept_length;
}

/* ---- names ---- */

static struct folder *names(struct lab_disk *d)
{
    return &d->folder[d->states - 1];
}

/* Index of a path, which may be new. */
static int name_of(struct lab_disk *d, const char *path)
{
    if (strlen(path) >= LAB_DISK_NAME_MAX) {
        errno = ENAMETOOLONG;
        return NOWHERE;
    }
    for (int n = 0; n < LAB_DISK_NAMES; n++) {
        if (d->name[n][0] == '\0') {
            memcpy(d->name[n], path, strlen(path) + 1);
        }
        if (strcmp(d->name[n], path) == 0) {
            return n;
        }
    }
    errno = ENOSPC;
    return NOWHERE;
}

static struct file *find(struct lab_disk *d, const char *path)
{
    const int n = name_of(d, path);
    struct file *f = n < 0 ? NULL : names(d)->file[n];
    errno = n >= 0 && f == NULL ? ENOENT : errno;
    return f;
}

/* Before a change of names. When many did not survive yet, the first does. */
static void change_names(struct lab_disk *d)
{
    if (d->states == STATES) {
        memmove(&d->folder[0], &d->folder[1], (STATES - 1) * sizeof d->folder[0]);
        d->states--;
    }
    d->folder[d->states] = d->folder[d->states - 1];
    d->states++;
    free_unused(d);
}

static void keep_names(struct lab_disk *d, unsigned state)
{
    d->folder[0] = d->folder[state];
    d->states = 1;
    free_unused(d);
}

/* ---- the port ---- */

static struct handle *handle_of(struct lab_disk *d, int file)
{
    CHECK_THAT(file >= 0 && file < LAB_DISK_HANDLES && d->handle[file].file != NULL,
               "what is used is open");
    return &d->handle[file];
}

static int port_open(void *self, const char *path, int flags, mode_t mode)
{
    struct lab_disk *d = self;
    int h = 0;
    (void)mode;
    if (fails(d)) {
        return -1;
    }
    while (h < LAB_DISK_HANDLES && d->handle[h].file != NULL) {
        h++;
    }
    CHECK_THAT(h < LAB_DISK_HANDLES, "a process has few files open");
    struct file *f = find(d, path);
    if (f == NULL && (errno != ENOENT || (flags & O_CREAT) == 0 || is_full(d))) {
        return -1;
    }
    if (f == NULL) {
        change_names(d);
        f = make_file(d);
        names(d)->file[name_of(d, path)] = f;
    }
    d->handle[h] = (struct handle){.file = f};
    return h;
}

static int port_close(void *self, int file)
{
    struct lab_disk *d = self;
    if (d->is_dead) {
        errno = EIO;
        return -1;
    }
    struct handle *h = handle_of(d, file);
    h->file->locked_by = h->file->locked_by == file ? NOWHERE : h->file->locked_by;
    h->file = NULL;
    free_unused(d);
    return 0;
}

static ssize_t port_read(void *self, int file, void *bytes, size_t length)
{
    struct lab_disk *d = self;
    if (fails(d)) {
        return -1;
    }
    struct handle *h = handle_of(d, file);
    const struct file *f = h->file;
    const size_t left = h->at < f->length ? f->length - h->at : 0;
    const size_t n = shorten(d, length < left ? length : left);
    const long first = (long)(h->at / LAB_DISK_PAGE);
    if (n > 0 && f->unreadable >= first &&
        f->unreadable <= (long)((h->at + n - 1) / LAB_DISK_PAGE)) {
        errno = EIO;
        return -1;
    }
    memcpy(bytes, n > 0 ? f->now + h->at : bytes, n);
    h->at += n;
    return (ssize_t)n;
}

static ssize_t port_write(void *self, int file, const void *bytes, size_t length)
{
    struct lab_disk *d = self;
    if (fails(d) || is_full(d)) {
        return -1;
    }
    struct handle *h = handle_of(d, file);
    struct file *f = h->file;
    const size_t n = shorten(d, length), end = h->at + n;
    if (end > f->length) {
        set_length(f, end);
    }
    memcpy(f->now + h->at, bytes, n);
    touch(f, h->at, end);
    h->at = end;
    return (ssize_t)(d->planted.short_is_whole ? length : n);
}

static off_t port_seek(void *self, int file, off_t offset, int from)
{
    struct lab_disk *d = self;
    if (fails(d)) {
        return -1;
    }
    struct handle *h = handle_of(d, file);
    const off_t base = from == SEEK_SET   ? 0
                       : from == SEEK_END ? (off_t)h->file->length
                                          : (off_t)h->at;
    h->at = (size_t)(base + offset);
    return base + offset;
}

static int port_truncate(void *self, int file, off_t length)
{
    struct lab_disk *d = self;
    if (fails(d)) {
        return -1;
    }
    set_length(handle_of(d, file)->file, (size_t)length);
    return 0;
}

static int port_sync(void *self, int file)
{
    struct lab_disk *d = self;
    if (fails(d)) {
        return -1;
    }
    struct file *f = handle_of(d, file)->file;
    const bool has_failed = happens(d, d->faults.sync_ppm);
    d->figures.syncs_failed += has_failed;
    if (!d->planted.skip_sync) {
        keep(f, !has_failed);
    }
    errno = EIO;
    return has_failed && !d->planted.believe_sync && !d->planted.skip_sync ? -1 : 0;
}

static int port_lock(void *self, int file)
{
    struct lab_disk *d = self;
    if (fails(d)) {
        return -1;
    }
    struct file *f = handle_of(d, file)->file;
    if (f->locked_by != NOWHERE && f->locked_by != file) {
        errno = EWOULDBLOCK;
        return -1;
    }
    f->locked_by = file;
    return 0;
}

static void describe(const struct file *f, struct stat *out)
{
    *out = (struct stat){.st_mode = S_IFREG | 0644,
                         .st_dev = 1,
                         .st_ino = (ino_t)f->number,
                         .st_nlink = 1,
                         .st_size = (off_t)f->length};
}

static int port_fstat(void *self, int file, struct stat *out)
{
    struct lab_disk *d = self;
    if (d->is_dead) {
        errno = EIO;
        return -1;
    }
    describe(handle_of(d, file)->file, out);
    return 0;
}

static int port_lstat(void *self, const char *path, struct stat *out)
{
    struct lab_disk *d = self;
    const struct file *f = d->is_dead ? NULL : find(d, path);
    if (f == NULL) {
        errno = d->is_dead ? EIO : errno;
        return -1;
    }
    describe(f, out);
    return 0;
}

static int port_move(void *self, const char *from, const char *to)
{
    struct lab_disk *d = self;
    if (fails(d)) {
        return -1;
    }
    struct file *f = find(d, from);
    const int n = name_of(d, from), m = name_of(d, to);
    if (f == NULL || m < 0) {
        errno = f == NULL ? ENOENT : errno;
        return -1;
    }
    change_names(d);
    names(d)->file[n] = NULL;
    names(d)->file[m] = f;
    return 0;
}

static int port_remove(void *self, const char *path)
{
    struct lab_disk *d = self;
    if (fails(d) || find(d, path) == NULL) {
        return -1;
    }
    change_names(d);
    names(d)->file[name_of(d, path)] = NULL;
    return 0;
}

static int port_sync_folder(void *self, const char *folder)
{
    struct lab_disk *d = self;
    (void)folder;
    if (fails(d)) {
        return -1;
    }
    const bool has_failed = happens(d, d->faults.sync_ppm);
    d->figures.syncs_failed += has_failed;
    if (d->planted.skip_folder_sync) {
        return 0;
    }
    if (!has_failed) {
        keep_names(d, d->states - 1);
    }
    errno = EIO;
    return has_failed && !d->planted.believe_sync ? -1 : 0;
}

/* ---- open and close ---- */

struct lab_disk *lab_disk_open(uint64_t seed, const struct lab_disk_planted *planted)
{
    struct lab_disk *d = calloc(1, sizeof *d);
    CHECK(d != NULL);
    d->planted = planted != NULL ? *planted : d->planted;
    d->random = rng_mix(seed ^ UINT64_C(0xd15c));
    d->calls_left = UINT64_MAX;
    d->states = 1;
    d->port = (struct disk_port){
        .self = d,
        .open = port_open,
        .close = port_close,
        .read = port_read,
        .write = port_write,
        .seek = port_seek,
        .truncate = port_truncate,
        .sync = port_sync,
        .lock = port_lock,
        .fstat = port_fstat,
        .lstat = port_lstat,
        .move = port_move,
        .remove = port_remove,
        .sync_folder = port_sync_folder,
    };
    return d;
}

void lab_disk_close(struct lab_disk **disk)
{
    struct lab_disk *d = *disk;
    for (unsigned i = 0; d != NULL && i < FILES; i++) {
        free_file(&d->file[i]);
    }
    free(d);
    *disk = NULL;
}

const struct disk_port *lab_disk_port(const struct lab_disk *d)
{
    return &d->port;
}

void lab_disk_set_faults(struct lab_disk *d, const struct lab_disk_faults *faults)
{
    d->faults = faults != NULL ? *faults : (struct lab_disk_faults){0};
}

/* ---- the end of a process ---- */

void lab_disk_dies_after(struct lab_disk *d, uint64_t calls)
{
    d->calls_left = calls;
}

/* A bit, or a page, of a file that has a name. */
static void spoil_one(struct lab_disk *d)
{
    struct file *f = names(d)->file[rng_below(&d->random, LAB_DISK_NAMES)];
    if (f == NULL || f->length == 0) {
        return;
    }
    const size_t at = rng_below(&d->random, (uint32_t)f->length);
    d->figures.spoiled++;
    f->is_spoiled = true;
    if (percent(d, UNREADABLE_PERCENT)) {
        f->unreadable = (long)(at / LAB_DISK_PAGE);
    } else {
        const uint8_t bit = (uint8_t)(1u << rng_below(&d->random, 8));
        f->now[at] ^= bit;
        f->kept[at] ^= bit;
    }
}

void lab_disk_ends(struct lab_disk *d)
{
    d->is_dead = true;
    for (unsigned h = 0; h < LAB_DISK_HANDLES; h++) {
        if (d->handle[h].file != NULL) {
            d->handle[h].file->locked_by = NOWHERE;
            d->handle[h].file = NULL;
        }
    }
    if (happens(d, d->faults.power_ppm)) {
        d->figures.power_losses++;
        keep_names(d, rng_below(&d->random, d->states));
        for (unsigned i = 0; i < FILES; i++) {
            lose_power(d, &d->file[i]);
        }
    }
    if (happens(d, d->faults.damage_ppm)) {
        spoil_one(d);
    }
    free_unused(d);
}

void lab_disk_begins(struct lab_disk *d)
{
    d->is_dead = false;
    d->calls_left = UINT64_MAX;
}

/* ---- looking into it ---- */

const uint8_t *lab_disk_bytes(const struct lab_disk *d, const char *path, size_t *length,
                              bool *spoiled)
{
    for (unsigned n = 0; n < LAB_DISK_NAMES; n++) {
        const struct file *f = d->folder[d->states - 1].file[n];
        if (f != NULL && strcmp(d->name[n], path) == 0) {
            *length = f->length;
            *spoiled = f->is_spoiled;
            return f->length > 0 ? f->now : (const uint8_t *)"";
        }
    }
    return NULL;
}

void lab_disk_spoil(struct lab_disk *d, const char *path)
{
    struct file *f = find(d, path);
    if (f != NULL) {
        keep(f, true);
        f->is_spoiled = true;
    }
    keep_names(d, d->states - 1);
}

struct lab_disk_figures lab_disk_figures(const struct lab_disk *d)
{
    return d->figures;
}
