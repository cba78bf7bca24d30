#include "common/redis/redis_address.h"

#include "common/keys/key_file.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
    const char *text;
    bool is_tls, is_cluster;
} schemes[] = {
    {"redis://", false, false},
    {"rediss://", true, false},
    {"redis+cluster://", false, true},
    {"rediss+cluster://", true, true},
};

enum { SCHEMES = sizeof schemes / sizeof schemes[0], DB_MAX = 65535 };

/* No message repeats a part of the URL: with a blank or a slash at the wrong place any part of it
 * may be one of the password. */
#define FAIL(err, why, ...) err_say(err, why, REDIS_WHY_MAX, __VA_ARGS__)

/* ---- the URL ---- */

/* "%41" is A. False: not so encoded, too long, or a NUL. */
static bool decode(const char *text, size_t length, char out[REDIS_LOGIN_MAX])
{
    size_t n = 0;
    for (size_t i = 0; i < length; i++, n++) {
        unsigned char c = (unsigned char)text[i];
        if (c == '%') {
            char digits[3] = {0};
            if (length - i < 3 || !isxdigit((unsigned char)text[i + 1]) ||
                !isxdigit((unsigned char)text[i + 2])) {
                return false;
            }
            memcpy(digits, text + i + 1, 2);
            c = (unsigned char)strtoul(digits, NULL, 16);
            i += 2;
        }
        if (c == '\0' || n + 1 >= REDIS_LOGIN_MAX) {
            return false;
        }
        out[n] = (char)c;
    }
    out[n] = '\0';
    return true;
}

static enum err read_login(const char *text, size_t length, struct redis_address *out, char *why)
{
    const char *colon = memchr(text, ':', length);
    size_t user = colon != NULL ? (size_t)(colon - text) : length;
    if (!decode(text, user, out->user) ||
        (colon != NULL && !decode(colon + 1, length - user - 1, out->password))) {
        return FAIL(ERR_RANGE, why,
                    "Redis address: user and password have up to %d characters; %% begins the two "
                    "hexadecimal digits of one",
                    REDIS_LOGIN_MAX - 1);
    }
    return ERR_OK;
}

/* HOST, HOST:PORT, [V6] or [V6]:PORT; blanks around it are passed over. */
static bool read_node(const char *text, size_t length, struct options_host_port *out)
{
    char whole[OPTIONS_HOST_MAX + 16];
    for (; length > 0 && *text == ' '; text++, length--) {
    }
    while (length > 0 && text[length - 1] == ' ') {
        length--;
    }
    bool in_brackets = length > 0 && text[0] == '[';
    for (size_t i = 0; i < length; i++) {
        if (!isgraph((unsigned char)text[i]) || strchr("\"'<>\\{}|^`@?#", text[i]) != NULL ||
            (text[i] == '%' && !in_brackets)) {
            return false;
        }
    }
    const char *end = in_brackets ? memchr(text, ']', length) : text;
    bool has_port = end != NULL && memchr(end, ':', length - (size_t)(end - text)) != NULL;
    int n = has_port ? snprintf(whole, sizeof whole, "%.*s", (int)length, text)
                     : snprintf(whole, sizeof whole, "%.*s:%d", (int)length, text, REDIS_PORT);
    return n > 0 && (size_t)n < sizeof whole && options_host_port(whole, out) == ERR_OK &&
           out->port != 0 && strpbrk(out->host, "[]") == NULL;
}

static enum err read_nodes(const char *text, size_t length, struct redis_address *out, char *why)
{
    const char *end = text + length;
    if (length == 0) {
        return FAIL(ERR_RANGE, why, "Redis address: it has no host");
    }
    for (;;) {
        const char *comma = memchr(text, ',', (size_t)(end - text));
        size_t n = (size_t)((comma != NULL ? comma : end) - text);
        if (out->nodes >= REDIS_NODES_MAX) {
            return FAIL(ERR_RANGE, why,
                        "Redis address: more than %d nodes; a few of them are enough",
                        REDIS_NODES_MAX);
        }
        if (!read_node(text, n, &out->node[out->nodes])) {
            return FAIL(ERR_RANGE, why,
                        "Redis address: node %u is not HOST, HOST:PORT or [IPV6]:PORT",
                        out->nodes + 1);
        }
        out->nodes++;
        if (comma == NULL) {
            break;
        }
        text = comma + 1;
    }
    if (!out->is_cluster && out->nodes > 1) {
        return FAIL(ERR_RANGE, why,
                    "Redis address: several nodes are those of a cluster: redis+cluster://");
    }
    return ERR_OK;
}

static enum err read_db(const char *text, struct redis_address *out, char *why)
{
    uint64_t db = 0;
    if (*text != '\0' && options_unsigned(text, 0, DB_MAX, &db) != ERR_OK) {
        return FAIL(ERR_RANGE, why, "Redis address: after the / stands the number of a database");
    }
    if (out->is_cluster && db != 0) {
        return FAIL(ERR_RANGE, why, "Redis address: a cluster has database 0 alone");
    }
    out->db = (unsigned)db;
    return ERR_OK;
}

enum err redis_address_parse(struct redis_address *out, const char *url, char why[REDIS_WHY_MAX])
{
    struct redis_address read = {.nodes = 0};
    const char *text = NULL;
    for (unsigned i = 0; i < SCHEMES && text == NULL; i++) {
        if (strncasecmp(url, schemes[i].text, strlen(schemes[i].text)) == 0) {
            text = url + strlen(schemes[i].text);
            read.is_tls = schemes[i].is_tls;
            read.is_cluster = schemes[i].is_cluster;
        }
    }
    if (text == NULL) {
        return FAIL(ERR_RANGE, why,
                    "Redis address: it begins with redis://, rediss://, redis+cluster:// or "
                    "rediss+cluster://");
    }
    enum err err = ERR_OK;
    size_t length = strcspn(text, "/");
    const char *at = memrchr(text, '@', length);
    const char *db = text[length] == '/' ? text + length + 1 : text + length;
    if (at != NULL) {
        err = read_login(text, (size_t)(at - text), &read, why);
        length -= (size_t)(at + 1 - text);
        text = at + 1;
    }
    err = err == ERR_OK ? read_nodes(text, length, &read, why) : err;
    err = err == ERR_OK ? read_db(db, &read, why) : err;
    if (err == ERR_OK) {
        *out = read;
    }
    redis_address_wipe(&read);
    return err;
}

/* ---- the environment ---- */

enum err redis_address_parse_option(struct redis_address *out, const char *url,
                                    char why[REDIS_WHY_MAX])
{
    enum err err = redis_address_parse(out, url, why);
    if (err == ERR_OK && out->password[0] != '\0') {
        redis_address_wipe(out);
        return FAIL(ERR_RANGE, why,
                    "everybody on this host can read a password on a command line: set "
                    "ABDADA_REDIS_PASSWORD or ABDADA_REDIS_PASSWORD_FILE");
    }
    return err;
}

/* The first line, of a file that is as safe as one of keys. */
static enum err read_password_file(const char *path, char out[REDIS_LOGIN_MAX], char *why)
{
    char line[REDIS_LOGIN_MAX + 2], said[KEYS_WHY_MAX];
    ssize_t n = -1;
    int fd = -1;
    enum err err = ERR_OK;
    if (key_file_open(path, true, &fd, said) != ERR_OK) {
        err = FAIL(ERR_IO, why, "%.190s", said);
    } else if ((n = read(fd, line, sizeof line - 1)) < 0) {
        err = FAIL(ERR_IO, why, "%.180s: %s", path, strerror(errno));
    }
    if (fd >= 0) {
        close(fd);
    }
    if (err == ERR_OK) {
        line[n] = '\0';
        size_t length = strcspn(line, "\r\n");
        if (length == 0 || length >= REDIS_LOGIN_MAX ||
            (line[length] == '\0' && length != (size_t)n)) {
            err = FAIL(ERR_RANGE, why,
                       "%.150s: its first line is not a password of 1 to %d characters", path,
                       REDIS_LOGIN_MAX - 1);
        } else {
            line[length] = '\0';
            memcpy(out, line, length + 1);
        }
    }
    explicit_bzero(line, sizeof line);
    return err;
}

enum err redis_address_environment(struct redis_address *address, char why[REDIS_WHY_MAX])
{
    const char *password = getenv("ABDADA_REDIS_PASSWORD");
    const char *file = getenv("ABDADA_REDIS_PASSWORD_FILE");
    const char *ca = getenv("ABDADA_REDIS_CA");
    struct redis_address read = *address;
    enum err err = ERR_OK;
    bool has_password = read.password[0] != '\0';
    if (!has_password && password != NULL && *password != '\0') {
        if (strlen(password) >= REDIS_LOGIN_MAX) {
            err = FAIL(ERR_RANGE, why, "ABDADA_REDIS_PASSWORD: more than %d characters",
                       REDIS_LOGIN_MAX - 1);
        } else {
            memcpy(read.password, password, strlen(password) + 1);
        }
    } else if (!has_password && file != NULL && *file != '\0') {
        err = read_password_file(file, read.password, why);
    }
    if (err == ERR_OK && read.is_tls && ca != NULL && *ca != '\0') {
        char said[KEYS_WHY_MAX];
        int fd;
        if (strlen(ca) >= sizeof read.ca_file) {
            err = FAIL(ERR_RANGE, why, "ABDADA_REDIS_CA: the file's name is too long");
        } else if (key_file_open(ca, false, &fd, said) != ERR_OK) {
            /* No secret, but anybody who may change it says which server is the right one. */
            err = FAIL(ERR_IO, why, "ABDADA_REDIS_CA: %.200s", said);
        } else {
            close(fd);
            memcpy(read.ca_file, ca, strlen(ca) + 1);
        }
    }
    if (err == ERR_OK) {
        *address = read;
    }
    redis_address_wipe(&read);
    return err;
}

/* ---- out ---- */

void redis_address_text(const struct redis_address *address, char out[REDIS_TEXT_MAX])
{
    size_t n = 0;
    for (unsigned i = 0; i < SCHEMES; i++) {
        if (schemes[i].is_tls == address->is_tls && schemes[i].is_cluster == address->is_cluster) {
            n = (size_t)snprintf(out, REDIS_TEXT_MAX, "%s", schemes[i].text);
        }
    }
    for (unsigned i = 0; i < address->nodes; i++) {
        char node[OPTIONS_HOST_MAX + 16];
        options_host_port_text(address->node[i].host, address->node[i].port, node, sizeof node);
        if (n + strlen(node) + sizeof ",..." > REDIS_TEXT_MAX) {
            snprintf(out + n, REDIS_TEXT_MAX - n, ",...");
            return;
        }
        n += (size_t)snprintf(out + n, REDIS_TEXT_MAX - n, "%s%s", i == 0 ? "" : ",", node);
    }
    if (address->db != 0) {
        snprintf(out + n, REDIS_TEXT_MAX - n, "/%u", address->db);
    }
}

void redis_address_wipe(struct redis_address *address)
{
    explicit_bzero(address, sizeof *address);
}
