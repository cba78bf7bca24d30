/* keys: CURVE keys in files: who may connect to a server, and as what.
 *
 * A directory of keys (`abdada keygen DIR` makes one; --keys DIR or ABDADA_KEYS names it):
 *
 *   server.secret          the server's key pair: ttserver alone reads it
 *   server.public          the server's public key: every program that connects reads it
 *   NAME.secret            the key pair of the user NAME, with its role
 *   allowed/NAME.public    a user who is let in, with its role: ttserver alone reads these
 *
 * A file has lines "field value"; '#' begins a comment: role (worker, front-end, monitor,
 * administrator; not in the server's), public, secret: 40 characters of Z85 (ZeroMQ RFC 32). A
 * secret file that others than its owner may read is refused, and so is any file or folder here,
 * and any folder on the way there from the root (links are followed), that belongs to another than
 * root or the effective user, or that others may write (on the way: unless it has the sticky bit).
 * Threads: any. Memory: the caller's, unless said. Reads and writes files. */
#ifndef COMMON_KEYS_KEYS_H
#define COMMON_KEYS_KEYS_H

#include "common/keys/key_file.h"

struct keys_user {
    uint8_t public_key[KEYS_BYTES];
    enum keys_role role;
    char name[KEYS_NAME_MAX]; /* name of the file, shortened if need be */
};

/* What a program that connects needs. */
struct keys_client {
    struct keys_pair own;
    uint8_t server_key[KEYS_BYTES];
};

/* All that fail return ERR_ABSENT (a file is missing), ERR_RANGE (a file is wrong, of an owner who
 * is not to be believed, or too open: a secret that others than its owner may read, anything that
 * they may write), ERR_EXIST, ERR_IO or ERR_NOMEM, and write one line for people, without a
 * program's name or a secret, to why[KEYS_WHY_MAX]. */

enum err keys_load_server(const char *dir, struct keys_pair *out, char *why);

/* The key pair that suits: ROLE.secret if there is one, else the only *.secret with that role, else
 * the only one of an administrator; a monitor's may also be that of any other role, before the
 * administrator's. The caller wipes *out (keys_wipe) when done. */
enum err keys_load_client(const char *dir, enum keys_role role, struct keys_client *out, char *why);

/* All users of dir/allowed, sorted by public key: an array that the caller frees. A key that is
 * there twice is ERR_RANGE: its role would depend on the order. Files with other endings, and those
 * whose names begin with '.', are skipped. With `skipped` not NULL files that are wrong, and keys
 * that are there twice, are left out and counted, and `why` has a line about the last: so who is
 * removed is out whatever else is there. */
enum err keys_load_allowed(const char *dir, struct keys_user **out, size_t *count,
                           unsigned *skipped, char *why);

/* *dir is what --keys said, or NULL; then it becomes that of ABDADA_KEYS, if there is one.
 * ERR_RANGE when --keys named nothing. */
enum err keys_choose_dir(const char **dir);

/* NULL when the key is not among them. O(log count). */
const struct keys_user *keys_find(const struct keys_user *users, size_t count,
                                  const uint8_t public_key[KEYS_BYTES]);

/* Makes dir (mode 0700) if need be, and in it keys of a server and of one user of each role, named
 * by it, all of them allowed. What is there already is never overwritten: ERR_EXIST. On failure no
 * file of these is left. */
enum err keys_make_ring(const char *dir, char *why);
/* Whether all keys that keys_make_ring makes are there, each user allowed, and are of use.
 * ERR_ABSENT (not all are there) and ERR_EXIST (of other roles, or not of one pair) leave `why` as
 * it is. */
enum err keys_check_ring(const char *dir, char *why);

/* One more user: dir/NAME.secret, and NAME.public in dir/allowed if there is such a directory
 * (*is_allowed), else in dir, which is made if need be. A name has letters, digits and "-_.", is
 * shorter than KEYS_NAME_MAX, does not begin with '.' and is not "server" or another role:
 * ERR_SYNTAX. */
enum err keys_make_user(const char *dir, const char *name, enum keys_role role, bool *is_allowed,
                        char *why);
/* Checks in the same way the two files that keys_make_user makes. */
enum err keys_check_user(const char *dir, const char *name, enum keys_role role, char *why);

#endif
