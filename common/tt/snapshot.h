/* snapshot: results in a file, so that they survive the process that had them.
 *
 * A file is whole or refused: it is written beside its final name (PATH.new), synced and renamed,
 * and the reader checks all of it before it gives the first entry. All numbers are little-endian:
 *
 *     header    magic "ABDADATT", version u32, entry bytes u32 (15), place u64, id 16 bytes, sum
 *     block     count u32 (1..SNAPSHOT_BLOCK_ENTRIES), number u32 (0, 1, 2, ...), entries, sum
 *     end       0 u32, number u32, entries of all blocks u64, sum; nothing follows
 *     entry     key u64, depth u8, lower i16, upper i16, move u16
 *     sum       u64: SipHash-2-4 of all bytes from the beginning of its header, block or end, keyed
 *               by the id, which is drawn for each file: a block of another file is not taken for
 *               one of this
 *
 * Keys are those of the table: the namespace is in them (PROTOCOL.md section 5). `place` is that of
 * the shard whose results they are, 0 when they are of several shards. The order of entries means
 * nothing; the same key may come more than once.
 *
 * Threads: any; one at a time for a handle. Memory: 64 KiB for a handle, by malloc. Everything
 * blocks on the disk, which a handle borrows. A failure writes one line for people, with the path
 * in it, to `why`, and leaves every other output untouched. */
#ifndef COMMON_TT_SNAPSHOT_H
#define COMMON_TT_SNAPSHOT_H

#include "common/disk.h"
#include "common/err.h"
#include "common/tt/tt.h"

#include <stddef.h>
#include <stdint.h>

enum {
    SNAPSHOT_VERSION = 1,
    SNAPSHOT_BLOCK_ENTRIES = 4096,
    SNAPSHOT_ENTRY_BYTES = 15,
    SNAPSHOT_PATH_MAX = 4096,
    SNAPSHOT_WHY_MAX = SNAPSHOT_PATH_MAX + 256,
};

struct snapshot_writer;
struct snapshot_reader;

/* Begins PATH.new, or, where PATH is a symbolic link, that beside the file which it leads to; what
 * a writer that was killed left there is overwritten. ERR_EXIST: another process writes it now;
 * ERR_RANGE: the path is too long; ERR_IO: also when PATH is something else than a file, which it
 * would replace; ERR_NOMEM. */
enum err snapshot_create(struct snapshot_writer **out, const struct disk_port *disk,
                         const char *path, uint64_t place, char why[SNAPSHOT_WHY_MAX]);
/* Copies it. ERR_RANGE: the entry is outside its limits (tt_is_entry), and left out; ERR_IO: only
 * abort is left. */
enum err snapshot_add(struct snapshot_writer *writer, const struct tt_scanned *entry,
                      char why[SNAPSHOT_WHY_MAX]);
/* Ends the file, waits until it is on the disk, and puts it in the place of PATH. Frees and nulls
 * the writer in any case. On ERR_IO PATH.new is gone and the file at PATH is what it was, or whole
 * and new if only the folder could not be synced. */
enum err snapshot_commit(struct snapshot_writer **writer, char why[SNAPSHOT_WHY_MAX]);
/* Frees, nulls, removes PATH.new; accepts a null. */
void snapshot_abort(struct snapshot_writer **writer);

/* Reads the whole file once and checks it. ERR_ABSENT: there is none; ERR_PROTO: torn, cut, lost by
 * the disk (EIO) or not a snapshot; ERR_VERSION: of a newer format; ERR_IO: not a file, or it
 * cannot be opened; ERR_NOMEM. */
enum err snapshot_open(struct snapshot_reader **out, const struct disk_port *disk, const char *path,
                       char why[SNAPSHOT_WHY_MAX]);
uint64_t snapshot_place(const struct snapshot_reader *reader);
uint64_t snapshot_entries(const struct snapshot_reader *reader);
/* The next entries: *count of 1..max, 0 at the end. ERR_PROTO, ERR_IO: the file was changed after
 * it was opened. */
enum err snapshot_next(struct snapshot_reader *reader, struct tt_scanned *entry, size_t max,
                       size_t *count, char why[SNAPSHOT_WHY_MAX]);
/* Frees and nulls; accepts a null. */
void snapshot_close(struct snapshot_reader **reader);

/* An entry as it lies in the file. ERR_RANGE: outside its limits. */
void snapshot_pack(uint8_t at[SNAPSHOT_ENTRY_BYTES], const struct tt_scanned *entry);
enum err snapshot_unpack(const uint8_t at[SNAPSHOT_ENTRY_BYTES], struct tt_scanned *out);

/* For one that keeps its results at PATH: holds PATH.lock, an empty file that stays, until *fd is
 * closed or the process ends. A symbolic link is replaced in PATH by the file that it leads to.
 * ERR_EXIST: another process does; ERR_RANGE; ERR_IO. */
enum err snapshot_lock(int *fd, const struct disk_port *disk, char path[SNAPSHOT_PATH_MAX],
                       char why[SNAPSHOT_WHY_MAX]);

/* Renames PATH to PATH.bad, over an earlier one, so that a refused file is not overwritten. */
enum err snapshot_set_aside(const struct disk_port *disk, const char *path,
                            char why[SNAPSHOT_WHY_MAX]);

#endif
