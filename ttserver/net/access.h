/* access: who may connect: the server's key pair and its list of users, for all shards of a
 * process.
 *
 * The list is replaced as a whole when it is read again; each shard takes the new one when it is
 * told to. Threads: access_open, access_reread and access_close belong to the main thread;
 * access_get and access_put may be called from any. Memory: a list is freed when nobody has it any
 * more. */
#ifndef TTSERVER_NET_ACCESS_H
#define TTSERVER_NET_ACCESS_H

#include "common/keys/keys.h"

#include <pthread.h>
#include <stdbool.h>

struct access_list {
    unsigned holders; /* under the lock */
    size_t count;
    struct keys_user *user; /* sorted by key */
};

struct access {
    const char *dir; /* NULL: everybody may connect */
    struct keys_pair server;
    pthread_mutex_t lock;
    struct access_list *now; /* under the lock */
};

/* Reads the keys; with dir NULL there are none. The errors of keys_load_server, with why. */
enum err access_open(struct access *access, const char *dir, char why[KEYS_WHY_MAX]);
/* Accepts a zeroed struct. No shard runs. */
void access_close(struct access *access);

/* Reads the list again, without the files that are wrong: `skipped` of them, the last in why. When
 * the directory cannot be read the old list stays. */
enum err access_reread(struct access *access, unsigned *skipped, char why[KEYS_WHY_MAX]);

/* The present list, to be given back; NULL without keys. */
struct access_list *access_get(struct access *access);
/* Accepts a null. */
void access_put(struct access *access, struct access_list *list);

#endif
