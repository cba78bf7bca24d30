/* Handles: small structs that are never freed, so that a closed one can be told from an open one.
 */
#include "worker/lib/lib.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { RETIRED_MIN = 64 /* closed handles that no open reuses */ };

struct abdada {
    pthread_mutex_t turn; /* of the call that is under way; errors where its own thread has it */
    atomic_uint process; /* forks.count when it was opened */
    atomic_bool waits; /* ABDADA_TURNS */
    struct lib *_Atomic lib; /* NULL: closed. Used by who has `turn` */
    atomic_bool has_feed;
    struct lib_feed *feed; /* NULL: it never had one */
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
    if (t != NULL || !forks.is_watched) {
        return t;
    }
    t = calloc(1, sizeof *t);
    pthread_mutexattr_t attributes;
    if (t != NULL && pthread_mutexattr_init(&attributes) == 0) {
        pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
        pthread_mutex_init(&t->turn, &attributes);
        pthread_mutexattr_destroy(&attributes);
    }
    return t;
}

struct lib_feed *lib_handle_feed(struct abdada *t)
{
    t->feed = t->feed != NULL ? t->feed : calloc(1, sizeof *t->feed);
    return t->feed;
}

void lib_handle_open(struct abdada *t, struct lib *l)
{
    atomic_store(&t->lib, l);
    atomic_store(&t->waits, (l->flags & ABDADA_TURNS) != 0);
    atomic_store(&t->has_feed, l->feed != NULL);
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

static bool is_ours(const struct abdada *t)
{
    return t != NULL && atomic_load(&t->process) == atomic_load(&forks.count);
}

static int take(struct abdada *t, struct lib **out)
{
    if (!is_ours(t)) {
        return ABDADA_E_HANDLE;
    }
    if ((atomic_load(&t->waits) ? pthread_mutex_lock(&t->turn) : pthread_mutex_trylock(&t->turn)) !=
        0) {
        return ABDADA_E_IN_USE;
    }
    *out = atomic_load(&t->lib);
    if (*out == NULL) {
        pthread_mutex_unlock(&t->turn);
        return ABDADA_E_HANDLE;
    }
    return ABDADA_OK;
}

int lib_feed_of(struct abdada *t, struct lib_feed **out)
{
    if (!is_ours(t) || atomic_load_explicit(&t->lib, memory_order_relaxed) == NULL) {
        return ABDADA_E_HANDLE;
    }
    *out = atomic_load_explicit(&t->has_feed, memory_order_relaxed) ? t->feed : NULL;
    return *out != NULL ? ABDADA_OK : ABDADA_E_ROLE;
}

int lib_wrong(const struct abdada *t)
{
    return t == NULL ? ABDADA_E_HANDLE : ABDADA_E_ARGUMENT;
}

int lib_enter(struct abdada *t, bool is_right, struct lib **out)
{
    int result = is_right ? take(t, out) : lib_wrong(t);
    if (result == ABDADA_OK) {
        lib_serve_when_due(*out);
    }
    return result;
}

int lib_leave(struct abdada *t, int result)
{
    lib_update_fd(atomic_load(&t->lib));
    pthread_mutex_unlock(&t->turn);
    return result;
}

int lib_handle_close(struct abdada *t, struct lib **out)
{
    int result = take(t, out);
    if (result == ABDADA_OK) {
        atomic_store(&t->lib, NULL);
        pthread_mutex_unlock(&t->turn);
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
