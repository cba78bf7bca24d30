/* disk: the calls by which a program keeps what must outlive it, behind a port, so that a disk that
 * fails can stand in for that of the system (tests/chaos/lab_disk.h).
 *
 * Each is the call of POSIX, with its result and its errno: -1 is a failure. A read or
 * a write may move fewer bytes than it was asked to. Threads: those of the files behind it. Memory:
 * none. Blocking: on the disk. */
#ifndef COMMON_DISK_H
#define COMMON_DISK_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

struct disk_port {
    void *self; /* for each call */
    int (*open)(void *self, const char *path, int flags, mode_t mode);
    int (*close)(void *self, int file);
    ssize_t (*read)(void *self, int file, void *bytes, size_t length);
    ssize_t (*write)(void *self, int file, const void *bytes, size_t length);
    off_t (*seek)(void *self, int file, off_t offset, int from);
    int (*truncate)(void *self, int file, off_t length);
    int (*sync)(void *self, int file); /* what was written survives a loss of power */
    int (*lock)(void *self, int file); /* until close; EWOULDBLOCK: another has it locked */
    int (*fstat)(void *self, int file, struct stat *out);
    int (*lstat)(void *self, const char *path, struct stat *out); /* of a link: at the link */
    int (*move)(void *self, const char *from, const char *to);
    int (*remove)(void *self, const char *path);
    int (*sync_folder)(void *self, const char *folder); /* the names in it survive one */
};

/* The system's disk; static. */
const struct disk_port *disk_of_system(void);

enum { DISK_PATH_MAX = 4096 };

/* The names in the folder of this path, of less than DISK_PATH_MAX bytes, survive a loss of power:
 * that of a file that is new there, or was renamed. As sync_folder. */
int disk_sync_folder_of(const struct disk_port *disk, const char *path);

#endif
