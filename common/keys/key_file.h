/* key_file: files with keys, and directories of them, read with suspicion (common/keys/keys.h says
 * what they hold and what is refused). What common/keys/keys.c is made of; others include it for
 * key_file_open alone.
 *
 * All that fail write one line for people to why[KEYS_WHY_MAX]. Threads: any. */
#ifndef COMMON_KEYS_KEY_FILE_H
#define COMMON_KEYS_KEY_FILE_H

#include "common/err.h"

#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KEYS_BYTES = 32, KEYS_NAME_MAX = 32, KEYS_WHY_MAX = 512, KEYS_USERS_MAX = 4096 };

enum keys_role { KEYS_WORKER, KEYS_FRONT, KEYS_MONITOR, KEYS_ADMINISTRATOR, KEYS_ROLES };

struct keys_pair {
    uint8_t public_key[KEYS_BYTES], secret_key[KEYS_BYTES];
};

/* "worker", "front-end", "monitor", "administrator". */
const char *keys_role_text(enum keys_role role);
/* The other way: ERR_SYNTAX. */
enum err keys_read_role(const char *text, enum keys_role *out);

/* Overwrites secrets so that the compiler does not leave it out. */
void keys_wipe(void *secret, size_t size);

enum { KEY_FILE_NAME_MAX = 256 /* NAME_MAX of Linux, with its end */ };

enum key_file_field { KEY_FILE_ROLE = 1, KEY_FILE_PUBLIC = 2, KEY_FILE_SECRET = 4 };

struct key_file {
    unsigned fields; /* set of the fields that the file has */
    enum keys_role role;
    struct keys_pair pair;
};

/* Writes the line; returns `err`. */
#define KEYS_FAIL(err, why, ...) err_say(err, why, KEYS_WHY_MAX, __VA_ARGS__)
/* The same, about what errno says of `path`. */
enum err key_file_fail_errno(char *why, const char *path);

/* path = dir/NAME with that ending. */
enum err key_file_join(char path[PATH_MAX], const char *dir, const char *name, const char *end,
                       char *why);

/* Opens a plain file to read, whether keys or another secret are in it: ERR_RANGE when its owner,
 * or that of a folder on the way, is neither root nor the effective user, when others may write a
 * folder on the way that has no sticky bit, or have rights to the file that they should not have.
 * The caller closes *out. */
enum err key_file_open(const char *path, bool is_secret, int *out, char *why);

/* Reads that file, which must have the fields `wanted` and no others. */
enum err key_file_load(const char *dir, const char *name, const char *end, unsigned wanted,
                       struct key_file *out, char *why);

enum err key_file_open_dir(const char *path, DIR **out, char *why);
enum err key_file_check_dir(const char *path, char *why);

/* The next file with this ending, without it; false at the end, with errno 0, or on an error. */
bool key_file_next(DIR *dir, const char *end, char name[KEY_FILE_NAME_MAX]);

#endif
