/* lab_disk: a disk that fails, behind the port of that of the system (common/disk.h). It has one
 * folder, and the files in it.
 *
 * What was written, made, renamed or removed is seen at once, and survives the end of a process.
 * A loss of power survives what was synced; of the rest any pages of 4 KiB of a file, whole, by
 * half or not, and of the changes of names those before a moment. A sync that fails does not keep
 * what was written before it, and no later sync does.
 *
 * Everything is drawn from the seed. Pure: no file of the system, no clock. Threads: one at a time.
 * Memory: twice that of the files; none is a CHECK. */
#ifndef TESTS_CHAOS_LAB_DISK_H
#define TESTS_CHAOS_LAB_DISK_H

#include "common/disk.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    LAB_DISK_PAGE = 4096,
    LAB_DISK_NAMES = 8,
    LAB_DISK_NAME_MAX = 64, /* bytes of a path, with its end */
    LAB_DISK_HANDLES = 8,
};

/* Chances in a million. */
struct lab_disk_faults {
    uint32_t short_ppm; /* of a read or write: it moves fewer bytes than it was asked to */
    uint32_t full_ppm; /* of a write, or of a file made: ENOSPC */
    uint32_t error_ppm; /* of each call but close and fstat: EIO, and nothing is done */
    uint32_t sync_ppm; /* of a sync: EIO; what it was to keep, no later one keeps */
    uint32_t power_ppm; /* of a kill: the power is lost, too (lab_disk_ends) */
    uint32_t damage_ppm; /* ... the disk spoils a file (lab_disk_ends) */
};

/* Faults of the program, to test the tests: as if it did not do, or look at, these. */
struct lab_disk_planted {
    bool skip_sync; /* sync of a file */
    bool skip_folder_sync; /* sync of the folder */
    bool believe_sync; /* the result of a sync */
    bool short_is_whole; /* how much was written */
};

struct lab_disk;

struct lab_disk *lab_disk_open(uint64_t seed, const struct lab_disk_planted *planted);
/* Accepts a null, nulls. */
void lab_disk_close(struct lab_disk **disk);
const struct disk_port *lab_disk_port(const struct lab_disk *disk);
/* From now on; NULL: none. */
void lab_disk_set_faults(struct lab_disk *disk, const struct lab_disk_faults *faults);

/* After so many more calls the process is dead: no further one has an effect (EIO). */
void lab_disk_dies_after(struct lab_disk *disk, uint64_t calls);
/* The process is dead: its calls have no effect until lab_disk_begins, with which another process
 * begins. What it had open is closed. Whether the power is lost is drawn, and whether a file is
 * spoiled: a bit of it is another, or a page of it cannot be read any more (EIO). */
void lab_disk_ends(struct lab_disk *disk);
void lab_disk_begins(struct lab_disk *disk);

/* The bytes that a program sees at this path, until the next call; NULL: there is none. `spoiled`:
 * the disk has changed them. */
const uint8_t *lab_disk_bytes(const struct lab_disk *disk, const char *path, size_t *length,
                              bool *spoiled);
/* It is spoiled by who wrote to it last: a planted fault. */
void lab_disk_spoil(struct lab_disk *disk, const char *path);

struct lab_disk_figures {
    uint64_t calls, shorts, fulls, errors, syncs_failed, power_losses, spoiled;
};
/* Since it was opened. */
struct lab_disk_figures lab_disk_figures(const struct lab_disk *disk);

#endif
