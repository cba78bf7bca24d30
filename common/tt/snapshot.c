#include "common/tt/snapshot.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAGIC_BYTES = 8,
    ID_BYTES = crypto_shorthash_KEYBYTES,
    SUM_BYTES = crypto_shorthash_BYTES,
    /* offsets in the header */
    AT_VERSION = MAGIC_BYTES,
    AT_ENTRY_BYTES = AT_VERSION + 4,
    AT_PLACE = AT_ENTRY_BYTES + 4,
    AT_ID = AT_PLACE + 8,
    AT_SUM = AT_ID + ID_BYTES,
    HEADER_BYTES = AT_SUM + SUM_BYTES,
    BLOCK_HEAD_BYTES = 8,
    ENTRY_BYTES = SNAPSHOT_ENTRY_BYTES,
    TOTAL_BYTES = 8,
    END_BYTES = BLOCK_HEAD_BYTES + TOTAL_BYTES,
    BLOCK_BYTES = BLOCK_HEAD_BYTES + SNAPSHOT_BLOCK_ENTRIES * ENTRY_BYTES + SUM_BYTES,
    NEW_PATH_MAX = SNAPSHOT_PATH_MAX + 8, /* with ".new", ".bad" or ".lock" */
    CREATE_TRIES = 100,
};
_Static_assert(crypto_shorthash_BYTES == 8 && crypto_shorthash_KEYBYTES == 16, "SipHash-2-4");

static const char magic[MAGIC_BYTES + 1] = "ABDADATT";

struct snapshot_writer {
    const struct disk_port *disk;
    int fd;
    uint32_t count, number; /* entries in the block; the block's number */
    uint64_t total; /* entries of earlier blocks */
    char path[SNAPSHOT_PATH_MAX], new_path[NEW_PATH_MAX];
    uint8_t id[ID_BYTES];
    uint8_t block[BLOCK_BYTES];
};

struct snapshot_reader {
    const struct disk_port *disk;
    int fd;
    uint32_t count, given, number; /* entries of the block, of these given; the block's number */
    uint64_t total; /* entries of the blocks read */
    uint64_t place, entries;
    bool at_end;
    char path[SNAPSHOT_PATH_MAX];
    uint8_t id[ID_BYTES];
    uint8_t block[BLOCK_BYTES];
};

#define FAIL(err, why, ...) err_say(err, why, SNAPSHOT_WHY_MAX, __VA_ARGS__)

static enum err fail_errno(char *why, const char *path)
{
    return FAIL(ERR_IO, why, "%s: %s", path, strerror(errno));
}

static enum err torn(char *why, const char *path)
{
    return FAIL(ERR_PROTO, why, "%s: torn or changed after it was written", path);
}

/* ---- bytes ---- */

static void put(uint8_t *at, uint64_t value, unsigned bytes)
{
    value = htole64(value);
    memcpy(at, &value, bytes);
}

static uint64_t get(const uint8_t *at, unsigned bytes)
{
    uint64_t value = 0;
    memcpy(&value, at, bytes);
    return le64toh(value);
}

static bool sum_is_right(const uint8_t *from, size_t length, const uint8_t *id)
{
    uint8_t sum[SUM_BYTES];
    crypto_shorthash(sum, from, length, id);
    return memcmp(sum, from + length, SUM_BYTES) == 0;
}

void snapshot_pack(uint8_t at[SNAPSHOT_ENTRY_BYTES], const struct tt_scanned *entry)
{
    put(at, entry->key, 8);
    put(at + 8, entry->depth, 1);
    put(at + 9, (uint16_t)entry->lower, 2);
    put(at + 11, (uint16_t)entry->upper, 2);
    put(at + 13, entry->move, 2);
}

enum err snapshot_unpack(const uint8_t at[SNAPSHOT_ENTRY_BYTES], struct tt_scanned *out)
{
    struct tt_scanned entry = {
        .key = get(at, 8),
        .depth = (uint8_t)get(at + 8, 1),
        .lower = (int16_t)get(at + 9, 2),
        .upper = (int16_t)get(at + 11, 2),
        .move = (uint16_t)get(at + 13, 2),
    };
    if (!tt_is_entry(entry.lower, entry.upper, entry.depth)) {
        return ERR_RANGE;
    }
    *out = entry;
    return ERR_OK;
}

#define LEADS_NOWHERE "%s: a symbolic link that leads to no file"

static enum err check_path(const char *path, char *why)
{
    return path[0] != '\0' && strlen(path) < SNAPSHOT_PATH_MAX
               ? ERR_OK
               : FAIL(ERR_RANGE, why, "a snapshot's path has 1 to %d characters",
                      SNAPSHOT_PATH_MAX - 1);
}

/* ---- writing ---- */

static enum err write_all(struct snapshot_writer *w, size_t length, char *why)
{
    for (size_t done = 0; done < length;) {
        ssize_t n = w->disk->write(w->disk->self, w->fd, w->block + done, length - done);
        if (n < 0 && errno != EINTR) {
            return fail_errno(why, w->new_path);
        }
        done += n > 0 ? (size_t)n : 0;
    }
    return ERR_OK;
}

static enum err write_block(struct snapshot_writer *w, char *why)
{
    size_t length = BLOCK_HEAD_BYTES + (size_t)w->count * ENTRY_BYTES;
    put(w->block, w->count, 4);
    put(w->block + 4, w->number, 4);
    crypto_shorthash(w->block + length, w->block, length, w->id);
    w->total += w->count;
    w->count = 0;
    w->number++;
    return write_all(w, length + SUM_BYTES, why);
}

/* Where the file goes: its new name takes the place of whatever has that name. */
static enum err find_place(char out[SNAPSHOT_PATH_MAX], const struct disk_port *disk,
                           const char *path, char *why)
{
    struct stat at;
    if (check_path(path, why) != ERR_OK) {
        return ERR_RANGE;
    }
    bool is_there = disk->lstat(disk->self, path, &at) == 0;
    snprintf(out, SNAPSHOT_PATH_MAX, "%s", path);
    if (is_there && S_ISLNK(at.st_mode)) {
        char *target = realpath(path, NULL);
        if (target == NULL || disk->lstat(disk->self, target, &at) != 0 ||
            check_path(target, why) != ERR_OK) {
            free(target);
            return FAIL(ERR_IO, why, LEADS_NOWHERE, path);
        }
        snprintf(out, SNAPSHOT_PATH_MAX, "%s", target);
        free(target);
    }
    return !is_there || S_ISREG(at.st_mode) ? ERR_OK : FAIL(ERR_IO, why, "%s: not a file", path);
}

/* The lock says that a process writes there; it ends with the process, the file does not. The file
 * may have got its final name between open and lock: then its old name is another file's, or
 * nobody's, and it is tried again. */
static enum err open_new(struct snapshot_writer *w, char *why)
{
    const struct disk_port *disk = w->disk;
    for (unsigned i = 0; i < CREATE_TRIES; i++) {
        struct stat here, there;
        w->fd = disk->open(disk->self, w->new_path,
                           O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0644);
        if (w->fd < 0 || disk->fstat(disk->self, w->fd, &here) != 0) {
            return fail_errno(why, w->new_path);
        }
        if (!S_ISREG(here.st_mode)) {
            return FAIL(ERR_IO, why, "%s: not a file", w->new_path);
        }
        if (disk->lock(disk->self, w->fd) != 0) {
            return FAIL(ERR_EXIST, why, "%s: another process writes it", w->new_path);
        }
        if (disk->lstat(disk->self, w->new_path, &there) == 0 && there.st_ino == here.st_ino &&
            there.st_dev == here.st_dev) {
            return disk->truncate(disk->self, w->fd, 0) == 0 ? ERR_OK
                                                             : fail_errno(why, w->new_path);
        }
        disk->close(disk->self, w->fd);
        w->fd = -1;
    }
    return FAIL(ERR_EXIST, why, "%s: other processes write it", w->new_path);
}

static void free_writer(struct snapshot_writer **writer)
{
    if ((*writer)->fd >= 0) {
        (*writer)->disk->close((*writer)->disk->self, (*writer)->fd);
    }
    free(*writer);
    *writer = NULL;
}

enum err snapshot_create(struct snapshot_writer **out, const struct disk_port *disk,
                         const char *path, uint64_t place, char why[SNAPSHOT_WHY_MAX])
{
    struct snapshot_writer *w = sodium_init() < 0 ? NULL : calloc(1, sizeof *w);
    if (w == NULL) {
        return FAIL(ERR_NOMEM, why, "%s: %s", path, err_text(ERR_NOMEM));
    }
    w->disk = disk;
    w->fd = -1;
    randombytes_buf(w->id, sizeof w->id);
    enum err err = find_place(w->path, disk, path, why);
    if (err == ERR_OK) {
        snprintf(w->new_path, sizeof w->new_path, "%s.new", w->path);
        err = open_new(w, why);
    }
    if (err != ERR_OK) {
        free_writer(&w);
        return err;
    }
    memcpy(w->block, magic, MAGIC_BYTES);
    put(w->block + AT_VERSION, SNAPSHOT_VERSION, 4);
    put(w->block + AT_ENTRY_BYTES, ENTRY_BYTES, 4);
    put(w->block + AT_PLACE, place, 8);
    memcpy(w->block + AT_ID, w->id, ID_BYTES);
    crypto_shorthash(w->block + AT_SUM, w->block, AT_SUM, w->id);
    err = write_all(w, HEADER_BYTES, why);
    if (err != ERR_OK) {
        snapshot_abort(&w);
        return err;
    }
    *out = w;
    return ERR_OK;
}

enum err snapshot_add(struct snapshot_writer *w, const struct tt_scanned *entry,
                      char why[SNAPSHOT_WHY_MAX])
{
    if (!tt_is_entry(entry->lower, entry->upper, entry->depth)) {
        return FAIL(ERR_RANGE, why, "%s: an entry's bounds or depth are outside their limits",
                    w->path);
    }
    snapshot_pack(w->block + BLOCK_HEAD_BYTES + (size_t)w->count * ENTRY_BYTES, entry);
    w->count++;
    return w->count < SNAPSHOT_BLOCK_ENTRIES ? ERR_OK : write_block(w, why);
}

enum err snapshot_commit(struct snapshot_writer **writer, char why[SNAPSHOT_WHY_MAX])
{
    struct snapshot_writer *w = *writer;
    enum err err = w->count > 0 ? write_block(w, why) : ERR_OK;
    if (err == ERR_OK) {
        put(w->block, 0, 4);
        put(w->block + 4, w->number, 4);
        put(w->block + BLOCK_HEAD_BYTES, w->total, TOTAL_BYTES);
        crypto_shorthash(w->block + END_BYTES, w->block, END_BYTES, w->id);
        err = write_all(w, END_BYTES + SUM_BYTES, why);
    }
    if (err == ERR_OK && w->disk->sync(w->disk->self, w->fd) != 0) {
        err = fail_errno(why, w->new_path);
    }
    if (err == ERR_OK && w->disk->move(w->disk->self, w->new_path, w->path) != 0) {
        err = fail_errno(why, w->path);
    }
    if (err != ERR_OK) {
        snapshot_abort(writer);
        return err;
    }
    if (disk_sync_folder_of(w->disk, w->path) != 0) {
        err = fail_errno(why, w->path);
    }
    free_writer(writer);
    return err;
}

void snapshot_abort(struct snapshot_writer **writer)
{
    if (*writer != NULL) {
        (*writer)->disk->remove((*writer)->disk->self, (*writer)->new_path);
        free_writer(writer);
    }
}

/* ---- reading ---- */

/* Fewer bytes than asked for only at the end of the file. */
static enum err read_some(struct snapshot_reader *r, uint8_t *to, size_t length, size_t *got,
                          char *why)
{
    size_t done = 0;
    while (done < length) {
        ssize_t n = r->disk->read(r->disk->self, r->fd, to + done, length - done);
        if (n == 0) {
            break;
        }
        if (n < 0 && errno != EINTR) {
            const bool is_damaged = errno == EIO; /* the disk has lost what was there */
            fail_errno(why, r->path);
            return is_damaged ? ERR_PROTO : ERR_IO;
        }
        done += n > 0 ? (size_t)n : 0;
    }
    *got = done;
    return ERR_OK;
}

static enum err read_exactly(struct snapshot_reader *r, uint8_t *to, size_t length, char *why)
{
    size_t got = 0;
    enum err err = read_some(r, to, length, &got, why);
    if (err == ERR_OK && got < length) {
        return FAIL(ERR_PROTO, why, "%s: cut short", r->path);
    }
    return err;
}

static enum err read_header(struct snapshot_reader *r, char *why)
{
    size_t got = 0;
    enum err err = read_some(r, r->block, HEADER_BYTES, &got, why);
    if (err != ERR_OK) {
        return err;
    }
    if (got < MAGIC_BYTES || memcmp(r->block, magic, MAGIC_BYTES) != 0) {
        return FAIL(ERR_PROTO, why, "%s: not a snapshot", r->path);
    }
    if (got < HEADER_BYTES) {
        return FAIL(ERR_PROTO, why, "%s: cut short", r->path);
    }
    uint32_t version = (uint32_t)get(r->block + AT_VERSION, 4);
    if (version > SNAPSHOT_VERSION) {
        return FAIL(ERR_VERSION, why, "%s: of format %" PRIu32 ", and this program reads up to %d",
                    r->path, version, SNAPSHOT_VERSION);
    }
    memcpy(r->id, r->block + AT_ID, ID_BYTES);
    if (version != SNAPSHOT_VERSION || get(r->block + AT_ENTRY_BYTES, 4) != ENTRY_BYTES ||
        !sum_is_right(r->block, AT_SUM, r->id)) {
        return torn(why, r->path);
    }
    r->place = get(r->block + AT_PLACE, 8);
    return ERR_OK;
}

static enum err read_end(struct snapshot_reader *r, char *why)
{
    size_t got = 0;
    uint8_t more;
    enum err err = read_exactly(r, r->block + BLOCK_HEAD_BYTES, TOTAL_BYTES + SUM_BYTES, why);
    if (err == ERR_OK && (!sum_is_right(r->block, END_BYTES, r->id) ||
                          get(r->block + BLOCK_HEAD_BYTES, TOTAL_BYTES) != r->total)) {
        err = torn(why, r->path);
    }
    err = err ? err : read_some(r, &more, 1, &got, why);
    if (err == ERR_OK && got > 0) {
        err = FAIL(ERR_PROTO, why, "%s: goes on after its end", r->path);
    }
    r->at_end = err == ERR_OK;
    return err;
}

/* The next block and its entries, or the end. */
static enum err read_block(struct snapshot_reader *r, char *why)
{
    enum err err = read_exactly(r, r->block, BLOCK_HEAD_BYTES, why);
    if (err != ERR_OK) {
        return err;
    }
    uint32_t count = (uint32_t)get(r->block, 4), number = (uint32_t)get(r->block + 4, 4);
    if (count > SNAPSHOT_BLOCK_ENTRIES || number != r->number) {
        return torn(why, r->path);
    }
    if (count == 0) {
        return read_end(r, why);
    }
    size_t entries = (size_t)count * ENTRY_BYTES;
    err = read_exactly(r, r->block + BLOCK_HEAD_BYTES, entries + SUM_BYTES, why);
    if (err == ERR_OK && !sum_is_right(r->block, BLOCK_HEAD_BYTES + entries, r->id)) {
        err = torn(why, r->path);
    }
    for (uint32_t i = 0; err == ERR_OK && i < count; i++) {
        struct tt_scanned entry;
        const uint8_t *at = r->block + BLOCK_HEAD_BYTES + (size_t)i * ENTRY_BYTES;
        err = snapshot_unpack(at, &entry) == ERR_OK ? ERR_OK : torn(why, r->path);
    }
    if (err == ERR_OK) {
        r->count = count;
        r->given = 0;
        r->number++;
        r->total += count;
    }
    return err;
}

static enum err open_file(struct snapshot_reader *r, char *why)
{
    const struct disk_port *disk = r->disk;
    struct stat at;
    const int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK; /* a pipe would keep it waiting */
    r->fd = disk->open(disk->self, r->path, flags, 0);
    if (r->fd < 0 || disk->fstat(disk->self, r->fd, &at) != 0) {
        bool is_absent = errno == ENOENT;
        fail_errno(why, r->path);
        if (is_absent && disk->lstat(disk->self, r->path, &at) == 0) {
            return FAIL(ERR_IO, why, LEADS_NOWHERE, r->path); /* none could be written, either */
        }
        return is_absent ? ERR_ABSENT : ERR_IO;
    }
    return S_ISREG(at.st_mode) ? ERR_OK : FAIL(ERR_IO, why, "%s: not a file", r->path);
}

enum err snapshot_open(struct snapshot_reader **out, const struct disk_port *disk, const char *path,
                       char why[SNAPSHOT_WHY_MAX])
{
    if (check_path(path, why) != ERR_OK) {
        return ERR_RANGE;
    }
    struct snapshot_reader *r = sodium_init() < 0 ? NULL : calloc(1, sizeof *r);
    if (r == NULL) {
        return FAIL(ERR_NOMEM, why, "%s: %s", path, err_text(ERR_NOMEM));
    }
    snprintf(r->path, sizeof r->path, "%s", path);
    r->disk = disk;
    r->fd = -1;
    enum err err = open_file(r, why);
    err = err ? err : read_header(r, why);
    while (err == ERR_OK && !r->at_end) {
        err = read_block(r, why);
    }
    r->entries = r->total;
    r->count = r->given = r->number = 0; /* from the first block on again */
    r->total = 0;
    r->at_end = false;
    if (err == ERR_OK && disk->seek(disk->self, r->fd, HEADER_BYTES, SEEK_SET) < 0) {
        err = fail_errno(why, r->path);
    }
    if (err != ERR_OK) {
        snapshot_close(&r);
        return err;
    }
    *out = r;
    return ERR_OK;
}

uint64_t snapshot_place(const struct snapshot_reader *r)
{
    return r->place;
}

uint64_t snapshot_entries(const struct snapshot_reader *r)
{
    return r->entries;
}

enum err snapshot_next(struct snapshot_reader *r, struct tt_scanned *entry, size_t max,
                       size_t *count, char why[SNAPSHOT_WHY_MAX])
{
    enum err err = ERR_OK;
    if (r->given == r->count && !r->at_end) {
        err = read_block(r, why);
    }
    if (err != ERR_OK) {
        return err;
    }
    size_t n = r->at_end ? 0 : r->count - r->given;
    n = n < max ? n : max;
    for (size_t i = 0; i < n; i++) {
        CHECK(snapshot_unpack(r->block + BLOCK_HEAD_BYTES + (size_t)r->given++ * ENTRY_BYTES,
                              &entry[i]) == ERR_OK);
    }
    *count = n;
    return ERR_OK;
}

void snapshot_close(struct snapshot_reader **reader)
{
    if (*reader != NULL) {
        if ((*reader)->fd >= 0) {
            (*reader)->disk->close((*reader)->disk->self, (*reader)->fd);
        }
        free(*reader);
        *reader = NULL;
    }
}

/* Not of the file itself: that is another one after each snapshot. */
enum err snapshot_lock(int *out, const struct disk_port *disk, char path[SNAPSHOT_PATH_MAX],
                       char why[SNAPSHOT_WHY_MAX])
{
    char place[SNAPSHOT_PATH_MAX], lock[NEW_PATH_MAX];
    struct stat at;
    enum err err = find_place(place, disk, path, why);
    if (err != ERR_OK) {
        return err;
    }
    snprintf(lock, sizeof lock, "%s.lock", place);
    const int flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    int fd = disk->open(disk->self, lock, flags, 0644);
    if (fd < 0 || disk->fstat(disk->self, fd, &at) != 0) {
        err = fail_errno(why, lock);
    } else if (!S_ISREG(at.st_mode)) {
        err = FAIL(ERR_IO, why, "%s: not a file", lock);
    } else if (disk->lock(disk->self, fd) != 0) {
        err = errno == EWOULDBLOCK
                  ? FAIL(ERR_EXIST, why, "%s: another process keeps its results there", path)
                  : fail_errno(why, lock);
    }
    if (err == ERR_OK) {
        *out = fd;
        snprintf(path, SNAPSHOT_PATH_MAX, "%s", place);
    } else if (fd >= 0) {
        disk->close(disk->self, fd);
    }
    return err;
}

enum err snapshot_set_aside(const struct disk_port *disk, const char *path,
                            char why[SNAPSHOT_WHY_MAX])
{
    char bad[NEW_PATH_MAX];
    snprintf(bad, sizeof bad, "%s.bad", path);
    return disk->move(disk->self, path, bad) == 0 ? ERR_OK : fail_errno(why, path);
}
