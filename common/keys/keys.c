#include "common/keys/keys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zmq.h>

enum {
    Z85_CHARS = KEYS_BYTES / 4 * 5,
    OF_SERVER = KEY_FILE_PUBLIC | KEY_FILE_SECRET, /* fields of secrets */
    OF_USER = KEY_FILE_ROLE | OF_SERVER,
};

static const char secret_end[] = ".secret", public_end[] = ".public";

enum err keys_load_server(const char *dir, struct keys_pair *out, char *why)
{
    struct key_file file;
    enum err err = key_file_check_dir(dir, why);
    err = err ? err : key_file_load(dir, "server", secret_end, OF_SERVER, &file, why);
    if (err == ERR_OK) {
        *out = file.pair;
        keys_wipe(&file, sizeof file);
    }
    return err;
}

/* The only secret of this role. ERR_ABSENT: there is none, with nothing said. */
static enum err find_secret(const char *path, enum keys_role role, struct key_file *out, char *why)
{
    char name[KEY_FILE_NAME_MAX], found[KEY_FILE_NAME_MAX] = "";
    struct key_file file = {0};
    DIR *dir = NULL;
    enum err err = key_file_open_dir(path, &dir, why);
    if (err != ERR_OK) {
        return err;
    }
    while (err == ERR_OK && key_file_next(dir, secret_end, name)) {
        if (strcmp(name, "server") == 0) {
            continue;
        }
        err = key_file_load(path, name, secret_end, OF_USER, &file, why);
        if (err == ERR_ABSENT) {
            err = ERR_OK; /* removed meanwhile */
            continue;
        }
        if (err != ERR_OK || file.role != role) {
            continue;
        }
        if (found[0] != '\0') {
            err = KEYS_FAIL(
                ERR_RANGE, why,
                "%s: has two keys of the role %s, %s%s and %s%s: keep one, or call it %s%s", path,
                keys_role_text(role), found, secret_end, name, secret_end, keys_role_text(role),
                secret_end);
        } else {
            strcpy(found, name);
            *out = file;
        }
    }
    if (err == ERR_OK && errno != 0) {
        err = key_file_fail_errno(why, path);
    }
    closedir(dir);
    keys_wipe(&file, sizeof file);
    return err != ERR_OK ? err : found[0] == '\0' ? ERR_ABSENT : ERR_OK;
}

/* ROLE.secret, which the caller wipes in any case. ERR_ABSENT: there is none. */
static enum err named_secret(const char *dir, enum keys_role role, struct key_file *out, char *why)
{
    enum err err = key_file_load(dir, keys_role_text(role), secret_end, OF_USER, out, why);
    return err != ERR_OK || out->role == role
               ? err
               : KEYS_FAIL(ERR_RANGE, why, "%s/%s%s: its role is %s", dir, keys_role_text(role),
                           secret_end, keys_role_text(out->role));
}

enum err keys_load_client(const char *dir, enum keys_role role, struct keys_client *out, char *why)
{
    static const enum keys_role others[] = {KEYS_FRONT, KEYS_WORKER, KEYS_ADMINISTRATOR};
    struct key_file server, own = {0};
    enum err err = key_file_check_dir(dir, why);
    err = err ? err : key_file_load(dir, "server", public_end, KEY_FILE_PUBLIC, &server, why);
    if (err != ERR_OK) {
        return err;
    }
    err = named_secret(dir, role, &own, why);
    if (err == ERR_ABSENT) {
        err = find_secret(dir, role, &own, why);
    }
    for (unsigned i = role == KEYS_MONITOR ? 0 : 2; i < 3 && err == ERR_ABSENT; i++) {
        err = find_secret(dir, others[i], &own, why);
    }
    if (err == ERR_ABSENT) {
        KEYS_FAIL(err, why, "%s: has no key of the role %s: make one with abdada keygen", dir,
                  keys_role_text(role));
    }
    if (err == ERR_OK) {
        out->own = own.pair;
        memcpy(out->server_key, server.pair.public_key, KEYS_BYTES);
    }
    keys_wipe(&own, sizeof own);
    return err;
}

/* ---- who is allowed ---- */

static int compare(const void *a, const void *b)
{
    const struct keys_user *left = a, *right = b;
    return memcmp(left->public_key, right->public_key, KEYS_BYTES);
}

/* A file that is removed while we read is none. With `skipped` a wrong one counts there, so that it
 * does not keep the others, or those removed, in or out. */
static enum err read_allowed(DIR *dir, const char *path, struct keys_user *user, size_t *count,
                             unsigned *skipped, char *why)
{
    char name[KEY_FILE_NAME_MAX];
    struct key_file file;
    while (key_file_next(dir, public_end, name)) {
        enum err err =
            key_file_load(path, name, public_end, KEY_FILE_ROLE | KEY_FILE_PUBLIC, &file, why);
        if (err == ERR_ABSENT) {
            continue;
        }
        if (err != ERR_OK && skipped != NULL) {
            ++*skipped;
            continue;
        }
        if (err == ERR_OK && *count == KEYS_USERS_MAX) {
            err = KEYS_FAIL(ERR_RANGE, why, "%s: more than %d users", path, KEYS_USERS_MAX);
        }
        if (err != ERR_OK) {
            return err;
        }
        struct keys_user *u = &user[(*count)++];
        memcpy(u->public_key, file.pair.public_key, KEYS_BYTES);
        u->role = file.role;
        snprintf(u->name, sizeof u->name, "%.*s", KEYS_NAME_MAX - 1, name);
        for (char *c = u->name; *c != '\0'; c++) { /* names are shown on terminals */
            *c = *c > ' ' && *c < 127 ? *c : '?';
        }
    }
    return errno == 0 ? ERR_OK : key_file_fail_errno(why, path);
}

/* Which role a key has that is there twice would depend on the order. */
static enum err refuse_twins(const char *path, struct keys_user *user, size_t *count,
                             unsigned *skipped, char *why)
{
    size_t kept = 0;
    for (size_t i = 0, end; i < *count; i = end) {
        for (end = i + 1; end < *count && compare(&user[i], &user[end]) == 0; end++) {
        }
        if (end == i + 1) {
            user[kept++] = user[i];
            continue;
        }
        enum err err = KEYS_FAIL(ERR_RANGE, why, "%s: %s and %s have the same key", path,
                                 user[i].name, user[i + 1].name);
        if (skipped == NULL) {
            return err;
        }
        ++*skipped;
    }
    *count = kept;
    return ERR_OK;
}

enum err keys_load_allowed(const char *dir, struct keys_user **out, size_t *count,
                           unsigned *skipped, char *why)
{
    char path[PATH_MAX];
    DIR *listing = NULL;
    size_t found = 0;
    enum err err = key_file_check_dir(dir, why);
    err = err ? err : key_file_join(path, dir, "allowed", "", why);
    err = err ? err : key_file_open_dir(path, &listing, why);
    if (err != ERR_OK) {
        return err;
    }
    struct keys_user *user = calloc(KEYS_USERS_MAX, sizeof *user);
    err = user == NULL ? KEYS_FAIL(ERR_NOMEM, why, "%s: %s", path, err_text(ERR_NOMEM))
                       : read_allowed(listing, path, user, &found, skipped, why);
    closedir(listing);
    if (err == ERR_OK) {
        qsort(user, found, sizeof *user, compare);
    }
    err = err ? err : refuse_twins(path, user, &found, skipped, why);
    if (err != ERR_OK) {
        free(user);
        return err;
    }
    *out = user;
    *count = found;
    return ERR_OK;
}

enum err keys_choose_dir(const char **dir)
{
    if (*dir != NULL) {
        return (*dir)[0] != '\0' ? ERR_OK : ERR_RANGE;
    }
    const char *named = getenv("ABDADA_KEYS");
    *dir = named != NULL && named[0] != '\0' ? named : NULL;
    return ERR_OK;
}

const struct keys_user *keys_find(const struct keys_user *users, size_t count,
                                  const uint8_t public_key[KEYS_BYTES])
{
    struct keys_user wanted;
    memcpy(wanted.public_key, public_key, KEYS_BYTES);
    return count == 0 ? NULL : bsearch(&wanted, users, count, sizeof *users, compare);
}

/* ---- making them ---- */

/* Never through a link, never over a file. On failure no file is left. */
static enum err write_file(const char *path, const char *text, mode_t mode, char *why)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd < 0) {
        return key_file_fail_errno(why, path);
    }
    size_t length = strlen(text), done = 0;
    ssize_t n = 0;
    while (done < length && (n >= 0 || errno == EINTR)) {
        n = write(fd, text + done, length - done);
        done += n > 0 ? (size_t)n : 0;
    }
    enum err err = done < length || fsync(fd) != 0 ? key_file_fail_errno(why, path) : ERR_OK;
    close(fd);
    if (err != ERR_OK) {
        unlink(path);
    }
    return err;
}

/* A new key pair: DIR/NAME.secret, and NAME.public in `public_dir`. role KEYS_ROLES: the server's.
 */
static enum err make_pair(const char *dir, const char *public_dir, const char *name,
                          enum keys_role role, char *why)
{
    char public[Z85_CHARS + 1], secret[Z85_CHARS + 1], line[64] = "", text[512];
    char secret_path[PATH_MAX], public_path[PATH_MAX];
    if (zmq_curve_keypair(public, secret) != 0) {
        return KEYS_FAIL(ERR_IO, why, "this machine's libzmq has no CURVE encryption");
    }
    if (role < KEYS_ROLES) {
        snprintf(line, sizeof line, "role %s\n", keys_role_text(role));
    }
    enum err err = key_file_join(secret_path, dir, name, secret_end, why);
    err = err ? err : key_file_join(public_path, public_dir, name, public_end, why);
    if (err == ERR_OK) {
        snprintf(text, sizeof text, "# abdada: for %s alone\n%spublic %s\nsecret %s\n", name, line,
                 public, secret);
        err = write_file(secret_path, text, 0600, why);
    }
    if (err == ERR_OK) {
        snprintf(text, sizeof text, "# abdada: for everybody\n%spublic %s\n", line, public);
        err = write_file(public_path, text, 0644, why);
        if (err != ERR_OK) {
            unlink(secret_path);
        }
    }
    keys_wipe(secret, sizeof secret);
    keys_wipe(text, sizeof text);
    return err;
}

static enum err make_dir(const char *path, char *why)
{
    const bool is_made = mkdir(path, 0700) == 0;
    if (!is_made && errno != EEXIST) {
        return key_file_fail_errno(why, path);
    }
    enum err err = key_file_check_dir(path, why);
    if (err != ERR_OK && is_made) {
        rmdir(path);
    }
    return err;
}

enum err keys_make_ring(const char *dir, char *why)
{
    char allowed[PATH_MAX];
    unsigned made = 0; /* of the roles, then the server */
    enum err err = make_dir(dir, why);
    err = err ? err : key_file_join(allowed, dir, "allowed", "", why);
    err = err ? err : make_dir(allowed, why);
    while (err == ERR_OK && made < KEYS_ROLES) {
        err = make_pair(dir, allowed, keys_role_text(made), (enum keys_role)made, why);
        made += err == ERR_OK;
    }
    err = err ? err : make_pair(dir, dir, "server", KEYS_ROLES, why);
    for (unsigned i = 0; err != ERR_OK && i < made; i++) {
        char path[PATH_MAX], words[KEYS_WHY_MAX];
        if (key_file_join(path, dir, keys_role_text(i), secret_end, words) == ERR_OK) {
            unlink(path);
        }
        if (key_file_join(path, allowed, keys_role_text(i), public_end, words) == ERR_OK) {
            unlink(path);
        }
    }
    return err;
}

enum err keys_make_user(const char *dir, const char *name, enum keys_role role, bool *is_allowed,
                        char *why)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    char allowed[PATH_MAX];
    size_t length = strlen(name);
    enum keys_role named = role;
    keys_read_role(name, &named);
    if (length == 0 || length >= KEYS_NAME_MAX || name[0] == '.' ||
        strspn(name, letters) != length || strcmp(name, "server") == 0 || named != role) {
        return KEYS_FAIL(
            ERR_SYNTAX, why,
            "a user's name has letters, digits and -_. (fewer than %d), and is not server "
            "or another role",
            KEYS_NAME_MAX);
    }
    enum err err = make_dir(dir, why);
    err = err ? err : key_file_join(allowed, dir, "allowed", "", why);
    if (err != ERR_OK) {
        return err;
    }
    err = key_file_check_dir(allowed, why);
    bool has_allowed = err != ERR_ABSENT;
    if (err == ERR_OK || err == ERR_ABSENT) {
        err = make_pair(dir, has_allowed ? allowed : dir, name, role, why);
    }
    if (err == ERR_OK) {
        *is_allowed = has_allowed;
    }
    return err;
}

/* ---- whether they are made ---- */

/* role KEYS_ROLES: the server's. */
static enum err check_pair(const char *dir, const char *public_dir, const char *name,
                           enum keys_role role, char *why)
{
    char words[KEYS_WHY_MAX];
    struct key_file secret = {.role = role}, public = {.role = role};
    const unsigned wanted = KEY_FILE_PUBLIC | (role < KEYS_ROLES ? KEY_FILE_ROLE : 0);
    enum err err = key_file_load(dir, name, secret_end, wanted | KEY_FILE_SECRET, &secret, words);
    err = err ? err : key_file_load(public_dir, name, public_end, wanted, &public, words);
    if (err == ERR_OK && (memcmp(secret.pair.public_key, public.pair.public_key, KEYS_BYTES) != 0 ||
                          (role < KEYS_ROLES && (secret.role != role || public.role != role)))) {
        err = ERR_EXIST;
    } else if (err != ERR_OK && err != ERR_ABSENT) {
        memcpy(why, words, sizeof words);
    }
    keys_wipe(&secret, sizeof secret);
    return err;
}

enum err keys_check_user(const char *dir, const char *name, enum keys_role role, char *why)
{
    char allowed[PATH_MAX], words[KEYS_WHY_MAX];
    enum err err = key_file_join(allowed, dir, "allowed", "", why);
    if (err != ERR_OK) {
        return err;
    }
    bool has_allowed = key_file_check_dir(allowed, words) != ERR_ABSENT;
    return check_pair(dir, has_allowed ? allowed : dir, name, role, why);
}

enum err keys_check_ring(const char *dir, char *why)
{
    char allowed[PATH_MAX];
    enum err err = key_file_join(allowed, dir, "allowed", "", why);
    err = err ? err : check_pair(dir, dir, "server", KEYS_ROLES, why);
    for (unsigned role = 0; err == ERR_OK && role < KEYS_ROLES; role++) {
        err = check_pair(dir, allowed, keys_role_text(role), (enum keys_role)role, why);
    }
    return err;
}
