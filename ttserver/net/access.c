#include "ttserver/net/access.h"

#include <stdlib.h>
#include <string.h>

static enum err read_list(const char *dir, struct access_list **out, unsigned *skipped,
                          char why[KEYS_WHY_MAX])
{
    struct access_list *list = calloc(1, sizeof *list);
    if (list == NULL) {
        memcpy(why, "out of memory", sizeof "out of memory");
        return ERR_NOMEM;
    }
    enum err err = keys_load_allowed(dir, &list->user, &list->count, skipped, why);
    if (err != ERR_OK) {
        free(list);
        return err;
    }
    list->holders = 1;
    *out = list;
    return ERR_OK;
}

enum err access_open(struct access *access, const char *dir, char why[KEYS_WHY_MAX])
{
    memset(access, 0, sizeof *access);
    pthread_mutex_init(&access->lock, NULL);
    if (dir == NULL) {
        return ERR_OK;
    }
    enum err err = keys_load_server(dir, &access->server, why);
    err = err ? err : read_list(dir, &access->now, NULL, why);
    access->dir = err == ERR_OK ? dir : NULL;
    return err;
}

void access_close(struct access *access)
{
    access_put(access, access->now);
    access->now = NULL;
    access->dir = NULL;
    keys_wipe(&access->server, sizeof access->server);
}

enum err access_reread(struct access *access, unsigned *skipped, char why[KEYS_WHY_MAX])
{
    struct access_list *fresh, *old;
    enum err err = read_list(access->dir, &fresh, skipped, why);
    if (err == ERR_OK) {
        pthread_mutex_lock(&access->lock);
        old = access->now;
        access->now = fresh;
        pthread_mutex_unlock(&access->lock);
        access_put(access, old);
    }
    return err;
}

struct access_list *access_get(struct access *access)
{
    pthread_mutex_lock(&access->lock);
    struct access_list *list = access->now;
    if (list != NULL) {
        list->holders++;
    }
    pthread_mutex_unlock(&access->lock);
    return list;
}

void access_put(struct access *access, struct access_list *list)
{
    if (list == NULL) {
        return;
    }
    pthread_mutex_lock(&access->lock);
    bool is_last = --list->holders == 0;
    pthread_mutex_unlock(&access->lock);
    if (is_last) {
        free(list->user);
        free(list);
    }
}
