#include "common/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

/* One call of the system, as the port has it. */
#define CALL(type, name, parameters, call) \
    static type disk_##name parameters     \
    {                                      \
        (void)self;                        \
        return call;                       \
    }
CALL(int, open, (void *self, const char *path, int flags, mode_t mode), open(path, flags, mode))
CALL(int, close, (void *self, int file), close(file))
CALL(ssize_t, read, (void *self, int file, void *to, size_t length), read(file, to, length))
CALL(ssize_t, write, (void *self, int file, const void *from, size_t length),
     write(file, from, length))
CALL(off_t, seek, (void *self, int file, off_t offset, int from), lseek(file, offset, from))
CALL(int, truncate, (void *self, int file, off_t length), ftruncate(file, length))
CALL(int, sync, (void *self, int file), fsync(file))
CALL(int, lock, (void *self, int file), flock(file, LOCK_EX | LOCK_NB))
CALL(int, fstat, (void *self, int file, struct stat *out), fstat(file, out))
CALL(int, lstat, (void *self, const char *path, struct stat *out), lstat(path, out))
CALL(int, move, (void *self, const char *from, const char *to), rename(from, to))
CALL(int, remove, (void *self, const char *path), unlink(path))
#undef CALL

static int disk_sync_folder(void *self, const char *folder)
{
    (void)self;
    const int file = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const int done = file < 0 ? -1 : fsync(file);
    const int why = errno;
    if (file >= 0) {
        close(file);
    }
    errno = why; /* some file systems cannot, and some folders may be written to but not read */
    return done == 0 || why == (file < 0 ? EACCES : EINVAL) ? 0 : -1;
}

const struct disk_port *disk_of_system(void)
{
    static const struct disk_port system = {
        .open = disk_open,
        .close = disk_close,
        .read = disk_read,
        .write = disk_write,
        .seek = disk_seek,
        .truncate = disk_truncate,
        .sync = disk_sync,
        .lock = disk_lock,
        .fstat = disk_fstat,
        .lstat = disk_lstat,
        .move = disk_move,
        .remove = disk_remove,
        .sync_folder = disk_sync_folder,
    };
    return &system;
}

int disk_sync_folder_of(const struct disk_port *disk, const char *path)
{
    char folder[DISK_PATH_MAX];
    const char *slash = strrchr(path, '/');
    snprintf(folder, sizeof folder, "%.*s", slash == NULL ? 1 : (int)(slash - path) + 1,
             slash == NULL ? "." : path);
    return disk->sync_folder(disk->self, folder);
}
