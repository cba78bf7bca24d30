#include "common/keys/key_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zmq.h>

enum {
    FILE_BYTES_MAX = 4096,
    Z85_CHARS = KEYS_BYTES / 4 * 5,
};

enum err key_file_fail_errno(char *why, const char *path)
{
    enum err err = errno == ENOENT || errno == ENOTDIR ? ERR_ABSENT
                   : errno == EEXIST                   ? ERR_EXIST
                   : errno == ENOMEM                   ? ERR_NOMEM
                                                       : ERR_IO;
    return KEYS_FAIL(err, why, "%s: %s", path,
                     err == ERR_EXIST ? "already there; nothing is overwritten" : strerror(errno));
}

/* ---- what is in it ---- */

static const char *const role_text[KEYS_ROLES] = {[KEYS_WORKER] = "worker",
                                                  [KEYS_FRONT] = "front-end",
                                                  [KEYS_MONITOR] = "monitor",
                                                  [KEYS_ADMINISTRATOR] = "administrator"};

const char *keys_role_text(enum keys_role role)
{
    return (unsigned)role < KEYS_ROLES ? role_text[role] : "?";
}

enum err keys_read_role(const char *text, enum keys_role *out)
{
    for (unsigned i = 0; i < KEYS_ROLES; i++) {
        if (strcmp(text, role_text[i]) == 0) {
            *out = (enum keys_role)i;
            return ERR_OK;
        }
    }
    return ERR_SYNTAX;
}

void keys_wipe(void *secret, size_t size)
{
    explicit_bzero(secret, size);
}

/* ---- a file ---- */

enum err key_file_join(char path[PATH_MAX], const char *dir, const char *name, const char *end,
                       char *why)
{
    int n = snprintf(path, PATH_MAX, "%s/%s%s", dir, name, end);
    return n > 0 && n < PATH_MAX ? ERR_OK : KEYS_FAIL(ERR_RANGE, why, "%.200s...: too long", dir);
}

/* In a namespace where root has no number, "/" and what is root's belong to one that means nobody.
 */
static bool is_roots_folder(const struct stat *at)
{
    struct stat root;
    return S_ISDIR(at->st_mode) && lstat("/", &root) == 0 && at->st_uid == root.st_uid;
}

static enum err check_owner(const struct stat *at, const char *path, char *why)
{
    return at->st_uid == 0 || at->st_uid == geteuid() || is_roots_folder(at)
               ? ERR_OK
               : KEYS_FAIL(ERR_RANGE, why,
                           "%s: belongs to another user (%u), not to root or to who runs this "
                           "(%u): chown",
                           path, (unsigned)at->st_uid, (unsigned)geteuid());
}

/* Whether others may change it. */
static enum err check_writers(const struct stat *at, const char *path, char *why)
{
    return (at->st_mode & (S_IWGRP | S_IWOTH)) == 0
               ? ERR_OK
               : KEYS_FAIL(ERR_RANGE, why, "%.200s is writable by others; run chmod go-w %.200s",
                           path, path);
}

/* The same file without links on the way, so that what is opened lies at the end of the way that
 * was checked: anyone who may write a folder can replace what is in it, except in one with the
 * sticky bit, like /tmp, where each owner alone can. */
static enum err resolve(const char *path, char real[PATH_MAX], char *why)
{
    enum err err = ERR_OK;
    if (realpath(path, real) == NULL) {
        return key_file_fail_errno(why, path);
    }
    for (char *end = real; err == ERR_OK && (end = strchr(end, '/')) != NULL; end++) {
        struct stat at;
        *end = '\0';
        const char *folder = end == real ? "/" : real;
        err = lstat(folder, &at) != 0 ? key_file_fail_errno(why, folder)
                                      : check_owner(&at, folder, why);
        if (err == ERR_OK && !(at.st_mode & S_ISVTX)) {
            err = check_writers(&at, folder, why);
        }
        *end = '/';
    }
    return err;
}

/* Whether it is of an owner who may be believed, and others have no rights that they should not
 * have. */
static enum err check_rights(const struct stat *at, bool is_secret, const char *path, char *why)
{
    enum err err = check_owner(at, path, why);
    if (err != ERR_OK) {
        return err;
    }
    if (is_secret && (at->st_mode & 077) != 0) {
        return KEYS_FAIL(ERR_RANGE, why, "%s: others than its owner may read it: chmod 600", path);
    }
    return check_writers(at, path, why);
}

/* Opened without waiting: a pipe would hold up the program. */
enum err key_file_open(const char *path, bool is_secret, int *out, char *why)
{
    struct stat at;
    char real[PATH_MAX];
    enum err err = resolve(path, real, why);
    if (err != ERR_OK) {
        return err;
    }
    int fd = open(real, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    if (fd < 0 || fstat(fd, &at) != 0) {
        err = key_file_fail_errno(why, path);
    } else if (!S_ISREG(at.st_mode)) {
        err = KEYS_FAIL(ERR_RANGE, why, "%s: not a file", path);
    } else {
        err = check_rights(&at, is_secret, path, why);
    }
    if (err == ERR_OK) {
        *out = fd;
    } else if (fd >= 0) {
        close(fd);
    }
    return err;
}

static enum err read_text(const char *path, bool is_secret, char text[FILE_BYTES_MAX + 1],
                          char *why)
{
    int fd;
    enum err err = key_file_open(path, is_secret, &fd, why);
    if (err != ERR_OK) {
        return err;
    }
    size_t length = 0;
    while (err == ERR_OK && length <= FILE_BYTES_MAX) {
        ssize_t n = read(fd, text + length, FILE_BYTES_MAX + 1 - length);
        if (n == 0) {
            break;
        }
        if (n < 0 && errno != EINTR) {
            err = key_file_fail_errno(why, path);
        }
        length += n > 0 ? (size_t)n : 0;
    }
    close(fd);
    if (err == ERR_OK && (length > FILE_BYTES_MAX || memchr(text, '\0', length) != NULL)) {
        err = KEYS_FAIL(ERR_RANGE, why, "%s: not a file of keys", path);
    }
    if (err == ERR_OK) {
        text[length] = '\0';
    }
    return err;
}

/* One line, without its end. A value is never repeated in the message: it may be a secret. */
static enum err read_line(struct key_file *file, char *line, unsigned number, const char *path,
                          char *why)
{
    static const char blanks[] = " \t\r";
    char *next = NULL;
    const char *name = strtok_r(line, blanks, &next);
    if (name == NULL || name[0] == '#') {
        return ERR_OK;
    }
    const char *value = strtok_r(NULL, blanks, &next);
    unsigned field = strcmp(name, "role") == 0     ? KEY_FILE_ROLE
                     : strcmp(name, "public") == 0 ? KEY_FILE_PUBLIC
                     : strcmp(name, "secret") == 0 ? KEY_FILE_SECRET
                                                   : 0;
    if (field == 0 || value == NULL || strtok_r(NULL, blanks, &next) != NULL) {
        return KEYS_FAIL(ERR_RANGE, why, "%s:%u: not role, public or secret and a value", path,
                         number);
    }
    if (file->fields & field) {
        return KEYS_FAIL(ERR_RANGE, why, "%s:%u: the field is there twice", path, number);
    }
    file->fields |= field;
    if (field == KEY_FILE_ROLE) {
        return keys_read_role(value, &file->role) == ERR_OK
                   ? ERR_OK
                   : KEYS_FAIL(ERR_RANGE, why,
                               "%s:%u: a role is worker, front-end, monitor or administrator", path,
                               number);
    }
    uint8_t *key = field == KEY_FILE_PUBLIC ? file->pair.public_key : file->pair.secret_key;
    return strlen(value) == Z85_CHARS && zmq_z85_decode(key, value) != NULL
               ? ERR_OK
               : KEYS_FAIL(ERR_RANGE, why, "%s:%u: not a key: %d characters of Z85", path, number,
                           Z85_CHARS);
}

static bool is_pair(const struct keys_pair *pair)
{
    char secret[Z85_CHARS + 1], public[Z85_CHARS + 1], given[Z85_CHARS + 1];
    zmq_z85_encode(secret, pair->secret_key, KEYS_BYTES);
    zmq_z85_encode(given, pair->public_key, KEYS_BYTES);
    bool is = zmq_curve_public(public, secret) == 0 && strcmp(public, given) == 0;
    keys_wipe(secret, sizeof secret);
    return is;
}

/* The file must have the fields `wanted` and no others. On failure *out has no secret. */
static enum err read_file(const char *path, unsigned wanted, struct key_file *out, char *why)
{
    char text[FILE_BYTES_MAX + 1], *next = NULL;
    struct key_file file = {0};
    unsigned number = 0;
    enum err err = read_text(path, wanted & KEY_FILE_SECRET, text, why);
    for (char *line = text; err == ERR_OK && line != NULL; line = next) {
        next = strchr(line, '\n');
        if (next != NULL) {
            *next++ = '\0';
        }
        err = read_line(&file, line, ++number, path, why);
    }
    if (err == ERR_OK && file.fields & KEY_FILE_SECRET & ~wanted) {
        err = KEYS_FAIL(ERR_RANGE, why, "%s: has a secret, and is a file for public keys", path);
    } else if (err == ERR_OK && file.fields != wanted) {
        err = KEYS_FAIL(ERR_RANGE, why, "%s: should have the lines%s public%s, and no others", path,
                        wanted & KEY_FILE_ROLE ? " role," : "",
                        wanted & KEY_FILE_SECRET ? ", secret" : "");
    } else if (err == ERR_OK && wanted & KEY_FILE_SECRET && !is_pair(&file.pair)) {
        err = KEYS_FAIL(ERR_RANGE, why, "%s: the public key is not that of the secret one", path);
    }
    if (err == ERR_OK) {
        *out = file;
    }
    keys_wipe(text, sizeof text);
    keys_wipe(&file, sizeof file);
    return err;
}

enum err key_file_load(const char *dir, const char *name, const char *end, unsigned wanted,
                       struct key_file *out, char *why)
{
    char path[PATH_MAX];
    enum err err = key_file_join(path, dir, name, end, why);
    return err == ERR_OK ? read_file(path, wanted, out, why) : err;
}

/* ---- directories ---- */

enum err key_file_open_dir(const char *path, DIR **out, char *why)
{
    struct stat at;
    char real[PATH_MAX];
    enum err err = resolve(path, real, why);
    if (err != ERR_OK) {
        return err;
    }
    DIR *dir = opendir(real);
    if (dir == NULL) {
        return key_file_fail_errno(why, path);
    }
    err = fstat(dirfd(dir), &at) != 0 ? key_file_fail_errno(why, path)
                                      : check_rights(&at, false, path, why);
    if (err != ERR_OK) {
        closedir(dir);
        return err;
    }
    *out = dir;
    return ERR_OK;
}

enum err key_file_check_dir(const char *path, char *why)
{
    DIR *dir = NULL;
    enum err err = key_file_open_dir(path, &dir, why);
    if (err == ERR_OK) {
        closedir(dir);
    }
    return err;
}

/* The next file with this ending, without it; false at the end, with errno 0, or on an error. */
bool key_file_next(DIR *dir, const char *end, char name[KEY_FILE_NAME_MAX])
{
    const struct dirent *entry;
    while (errno = 0, (entry = readdir(dir)) != NULL) {
        size_t length = strlen(entry->d_name), tail = strlen(end);
        if (entry->d_name[0] != '.' && length > tail && length < KEY_FILE_NAME_MAX &&
            strcmp(entry->d_name + length - tail, end) == 0) {
            memcpy(name, entry->d_name, length - tail);
            name[length - tail] = '\0';
            return true;
        }
    }
    return false;
}
