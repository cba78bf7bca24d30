#include "common/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

static int disk_open(void *self, const char *path, int flags, mode_t mode)
{
    (void)self;
    return open(path, flags, mode);
}

static int disk_close(void *self, int file)
{
    (void)self;
    return close(file);
}

static ssize_t disk_read(void *self, int file, void *bytes, size_t length)
{
    (void)self;
    return read(file, bytes, length);
}

static ssize_t disk_write(void *self, int file, const void *bytes, size_t length)
{
    (void)self;
    return write(file, bytes, length);
}

static off_t disk_seek(void *self, int file, off_t offset, int from)
{
    (void)self;
    return lseek(file, offset, from);
}

static int disk_truncate(void *self, int file, off_t length)
{
    (void)self;
    return ftruncate(file, length);
}

static int disk_sync(void *self, int file)
{
    (void)self;
    return fsync(file);
}

static int disk_lock(void *self, int file)
{
    (void)self;
    return flock(file, LOCK_EX | LOCK_NB);
}

static int disk_fstat(void *self, int file, struct stat *out)
{
    (void)self;
    return fstat(file, out);
}

static int disk_lstat(void *self, const char *path, struct stat *out)
{
    (void)self;
    return lstat(path, out);
}

static int disk_move(void *self, const char *from, const char *to)
{
    (void)self;
    return rename(from, to);
}

static int disk_remove(void *self, const char *path)
{
    (void)self;
    return unlink(path);
}

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
