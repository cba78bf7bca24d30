/* Handles: small structs that are never freed, so that a closed one can be told from an open one.
 */
#include "worker/lib/lib.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { RETIRED_MIN = 64 /* closed handles that no open reuses */ };

struct abdada {
    atomic_bool is_busy;
    atomic_uint process; /* forks.count when it was opened */
    struct lib *lib; /* NULL: closed. Of who has is_busy */
    struct abdada *next; /* retired */
};

/* ---- handles that were closed, and forks ---- */

/* Handles are small and never freed: what a stale pointer names can be read. The oldest is used
 * again when there are many. */
static struct {
    pthread_mutex_t lock;
    struct abdada *oldest, *newest;
    unsigned count;
} retired = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Sockets and threads stay with the parent: a child's handles are of another process. */
static struct {
    pthread_once_t once;
    bool is_watched;
    atomic_uint count;
} forks = {.once = PTHREAD_ONCE_INIT};

static void before_fork(void)
{
    pthread_mutex_lock(&retired.lock);
}

static void after_fork_parent(void)
{
    pthread_mutex_unlock(&retired.lock);
}

static void after_fork_child(void)
{
    atomic_fetch_add(&forks.count, 1);
    pthread_mutex_unlock(&retired.lock);
}

static void watch_forks(void)
{
    forks.is_watched = pthread_atfork(before_fork, after_fork_parent, after_fork_child) == 0;
}

static struct abdada *take_retired(void)
{
    struct abdada *t = NULL;
    pthread_mutex_lock(&retired.lock);
    if (retired.count > RETIRED_MIN) {
        t = retired.oldest;
        retired.oldest = t->next;
        retired.count--;
    }
    pthread_mutex_unlock(&retired.lock);
    return t;
}

struct abdada *lib_handle_new(void)
{
    pthread_once(&forks.once, watch_forks);
    struct abdada *t = forks.is_watched ? take_retired() : NULL;
    return t != NULL || !forks.is_watched ? t : calloc(1, sizeof *t);
}

void lib_handle_open(struct abdada *t, struct lib *l)
{
    t->lib = l;
    atomic_store(&t->process, atomic_load(&forks.count));
}

void lib_handle_retire(struct abdada *t)
{
    t->next = NULL;
    pthread_mutex_lock(&retired.lock);
    if (retired.count++ == 0) {
        retired.oldest = t;
    } else {
        retired.newest->next = t;
    }
    retired.newest = t;
    pthread_mutex_unlock(&retired.lock);
}

static int take(struct abdada *t, struct lib **out)
{
    if (t == NULL || atomic_load(&t->process) != atomic_load(&forks.count)) {
        return ABDADA_E_HANDLE;
    }
    if (atomic_exchange_explicit(&t->is_busy, true, memory_order_acquire)) {
        return ABDADA_E_IN_USE;
    }
    if (t->lib == NULL) {
        atomic_store_explicit(&t->is_busy, false, memory_order_release);
        return ABDADA_E_HANDLE;
    }
    *out = t->lib;
    return ABDADA_OK;
}

int lib_enter(struct abdada *t, struct lib **out)
{
    int result = take(t, out);
    if (result == ABDADA_OK) {
        lib_serve_when_due(*out);
    }
    return result;
}

int lib_wrong(const struct abdada *t)
{
    return t == NULL ? ABDADA_E_HANDLE : ABDADA_E_ARGUMENT;
}

int lib_leave(struct abdada *t, int result)
{
    lib_update_fd(t->lib);
    atomic_store_explicit(&t->is_busy, false, memory_order_release);
    return result;
}

int lib_handle_close(struct abdada *t, struct lib **out)
{
    int result = take(t, out);
    if (result == ABDADA_OK) {
        t->lib = NULL;
        atomic_store_explicit(&t->is_busy, false, memory_order_release);
    }
    return result;
}

/* ---- what callers give ---- */

bool lib_copy_struct(void *out, size_t size, const void *given, size_t given_size, size_t size_0)
{
    const unsigned char *bytes = given;
    if (given_size < size_0 || given_size > 16 * size) {
        return false;
    }
    for (size_t i = size; i < given_size; i++) {
        if (bytes[i] != 0) {
            return false;
        }
    }
    memset(out, 0, size);
    memcpy(out, given, given_size < size ? given_size : size);
    return true;
}
