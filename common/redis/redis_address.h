/* redis_address: where a Redis or a Redis Cluster is, and how to log in there.
 *
 *     redis://[USER[:PASSWORD]@]HOST[:PORT][/DB]      rediss://...  the same with TLS
 *     redis+cluster://[USER[:PASSWORD]@]HOST[:PORT][,HOST[:PORT]...]      rediss+cluster://...
 *
 * A password is not given on a command line, where everybody on the host can read it: it comes from
 * ABDADA_REDIS_PASSWORD, or from the first line of the file that ABDADA_REDIS_PASSWORD_FILE names,
 * which its owner alone may read. ABDADA_REDIS_CA names a file of certificates to trust, in place
 * of the system's.
 *
 * Pure but for redis_address_environment. Memory: all in the struct; wipe it with
 * redis_address_wipe. */
#ifndef COMMON_REDIS_REDIS_ADDRESS_H
#define COMMON_REDIS_REDIS_ADDRESS_H

#include "common/err.h"
#include "common/options.h"

enum {
    REDIS_NODES_MAX = 16, /* nodes that an address names; a cluster names the others itself */
    REDIS_LOGIN_MAX = 256,
    REDIS_WHY_MAX = 256,
    REDIS_PORT = 6379,
    REDIS_SLOTS = 16384, /* slots of a cluster */
    REDIS_SCRIPTS_MAX = 16, /* scripts that are loaded by a connection */
    REDIS_TEXT_MAX = 1024,
};

struct redis_address {
    struct options_host_port node[REDIS_NODES_MAX];
    unsigned nodes;
    unsigned db;
    bool is_tls, is_cluster;
    char user[REDIS_LOGIN_MAX]; /* empty: the default user */
    char password[REDIS_LOGIN_MAX]; /* empty: none */
    char ca_file[REDIS_TEXT_MAX]; /* empty: the system's certificates */
};

/* One line for people in `why` on failure; it never has the password in it. ERR_RANGE. */
enum err redis_address_parse(struct redis_address *out, const char *url, char why[REDIS_WHY_MAX]);
/* The same for the URL of an option: a URL with a password is refused. */
enum err redis_address_parse_option(struct redis_address *out, const char *url,
                                    char why[REDIS_WHY_MAX]);
/* Adds what the environment says and the address does not. ERR_IO: a file cannot be read, or others
 * may read it, too. */
enum err redis_address_environment(struct redis_address *address, char why[REDIS_WHY_MAX]);
/* For logs: without user and password. */
void redis_address_text(const struct redis_address *address, char out[REDIS_TEXT_MAX]);
void redis_address_wipe(struct redis_address *address);

#endif
