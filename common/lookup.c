#include "common/lookup.h"

#include "common/clock.h"
#include "common/signals.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    TRIED_MAX = 16, /* addresses of a name */
    /* After one address took a connection, those before it may need as long again, and this. */
    GRACE_US = 20000,
    WAIT_MS = 20, /* between looks at who would have it stop */
};

struct lookup {
    /* fixed after begin */
    struct options_host_port at;
    bool tries;
    /* under the lock, which the thread and the owner both let go of: the second one frees it */
    pthread_mutex_t lock;
    pthread_cond_t done;
    bool is_done, is_left;
    struct addrinfo *found;
    int error;
};

static atomic_uint under_way; /* of the process */

static int resolve(const struct options_host_port *at, int flags, struct addrinfo **out)
{
    struct addrinfo hints = {.ai_flags = flags, .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    char port[8];
    snprintf(port, sizeof port, "%u", at->port);
    *out = NULL;
    return getaddrinfo(at->host, port, &hints, out);
}

bool lookup_number(const struct options_host_port *at, struct addrinfo **found)
{
    return resolve(at, AI_NUMERICHOST, found) == 0;
}

bool lookup_text(const struct addrinfo *address, char out[LOOKUP_NUMBER_MAX])
{
    return getnameinfo(address->ai_addr, address->ai_addrlen, out, LOOKUP_NUMBER_MAX, NULL, 0,
                       NI_NUMERICHOST) == 0;
}

/* ---- which address is reached ---- */

struct attempt {
    struct addrinfo *address;
    int fd; /* -1: it is not reached */
    bool is_reached;
};

static int begin_attempt(const struct addrinfo *to, bool *is_reached)
{
    int fd = socket(to->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    *is_reached = fd >= 0 && connect(fd, to->ai_addr, to->ai_addrlen) == 0;
    if (fd >= 0 && !*is_reached && errno != EINPROGRESS) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* What poll() said of it. */
static void take_attempt(struct attempt *a, short events)
{
    int error = 0;
    socklen_t size = sizeof error;
    if (events == 0) {
        return;
    }
    a->is_reached = getsockopt(a->fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
    if (!a->is_reached) {
        close(a->fd);
        a->fd = -1;
    }
}

/* The first that is reached, all of them being tried at once; `count`: none is. When one is, those
 * before it in the list have some time more, so that the same is chosen the next time. */
static unsigned reach(struct attempt *attempt, unsigned count)
{
    uint64_t begin_us = clock_us(), end_us = begin_us + LOOKUP_REACH_MS * UINT64_C(1000);
    bool has_grace = false;
    for (;;) {
        struct pollfd fd[TRIED_MAX];
        unsigned first = 0, open = 0;
        for (; first < count && !attempt[first].is_reached; first++) {
            fd[first] = (struct pollfd){.fd = attempt[first].fd, .events = POLLOUT};
            open += attempt[first].fd >= 0;
        }
        uint64_t now_us = clock_us();
        if (first < count && !has_grace) {
            uint64_t grace_us = now_us + (now_us - begin_us) + GRACE_US;
            end_us = grace_us < end_us ? grace_us : end_us;
            has_grace = true;
        }
        if (open == 0 || now_us >= end_us) {
            return first;
        }
        if (poll(fd, first, (int)((end_us - now_us) / 1000) + 1) <= 0) {
            continue;
        }
        for (unsigned i = 0; i < first; i++) {
            if (attempt[i].fd >= 0) {
                take_attempt(&attempt[i], fd[i].revents);
            }
        }
    }
}

/* Puts it first. */
static void prefer(struct addrinfo **list, struct addrinfo *address)
{
    struct addrinfo **at = list;
    while (*at != address) {
        at = &(*at)->ai_next;
    }
    *at = address->ai_next;
    address->ai_next = *list;
    *list = address;
}

static void try_all(struct addrinfo **list)
{
    struct attempt attempt[TRIED_MAX];
    unsigned count = 0;
    for (struct addrinfo *a = *list; a != NULL && count < TRIED_MAX; a = a->ai_next) {
        attempt[count].address = a;
        attempt[count].fd = begin_attempt(a, &attempt[count].is_reached);
        count++;
    }
    unsigned first = reach(attempt, count);
    for (unsigned i = 0; i < count; i++) {
        if (attempt[i].fd >= 0) {
            close(attempt[i].fd);
        }
    }
    if (first < count) {
        prefer(list, attempt[first].address);
    }
}

/* ---- the thread ---- */

static void free_lookup(struct lookup *l)
{
    if (l->found != NULL) {
        freeaddrinfo(l->found);
    }
    pthread_cond_destroy(&l->done);
    pthread_mutex_destroy(&l->lock);
    free(l);
}

static void *run(void *context)
{
    struct lookup *l = context;
    struct addrinfo *found;
    int error = resolve(&l->at, 0, &found);
    if (error == 0 && l->tries && found->ai_next != NULL) {
        try_all(&found);
    }
    atomic_fetch_sub(&under_way, 1);
    pthread_mutex_lock(&l->lock);
    l->found = error == 0 ? found : NULL;
    l->error = error;
    l->is_done = true;
    bool is_left = l->is_left;
    pthread_cond_signal(&l->done);
    pthread_mutex_unlock(&l->lock);
    if (is_left) {
        free_lookup(l);
    }
    return NULL;
}

struct lookup *lookup_begin(const struct options_host_port *at, bool tries)
{
    struct lookup *l = calloc(1, sizeof *l);
    pthread_t thread;
    if (l == NULL) {
        return NULL;
    }
    l->at = *at;
    l->tries = tries;
    clock_open_condition(&l->done);
    pthread_mutex_init(&l->lock, NULL);
    if (atomic_fetch_add(&under_way, 1) >= LOOKUPS_MAX || !signals_create_thread(&thread, run, l)) {
        atomic_fetch_sub(&under_way, 1);
        free_lookup(l);
        return NULL;
    }
    pthread_detach(thread);
    return l;
}

bool lookup_wait(struct lookup *l, unsigned wait_ms)
{
    uint64_t at_us = clock_us() + wait_ms * UINT64_C(1000);
    pthread_mutex_lock(&l->lock);
    while (!l->is_done && wait_ms > 0 && clock_wait(&l->done, &l->lock, at_us)) {
    }
    bool is_done = l->is_done;
    pthread_mutex_unlock(&l->lock);
    return is_done;
}

int lookup_take(struct lookup **lookup, struct addrinfo **found)
{
    struct lookup *l = *lookup;
    int error = l->error;
    *found = l->found;
    l->found = NULL;
    lookup_leave(lookup);
    return error;
}

void lookup_leave(struct lookup **lookup)
{
    struct lookup *l = *lookup;
    if (l == NULL) {
        return;
    }
    pthread_mutex_lock(&l->lock);
    bool is_done = l->is_done;
    l->is_left = true;
    pthread_mutex_unlock(&l->lock);
    if (is_done) {
        free_lookup(l);
    }
    *lookup = NULL;
}

static int resolve_until(const struct options_host_port *at, uint64_t until_us,
                         const atomic_bool *stop, struct addrinfo **found)
{
    struct lookup *l = lookup_begin(at, true);
    if (l == NULL) {
        return EAI_MEMORY;
    }
    while (!lookup_wait(l, WAIT_MS)) {
        if (clock_us() >= until_us || (stop != NULL && atomic_load(stop))) {
            lookup_leave(&l);
            return EAI_INPROGRESS;
        }
    }
    return lookup_take(&l, found);
}

enum err lookup_reach(const struct options_host_port *at, uint64_t until_us,
                      const atomic_bool *stop, struct options_host_port *out, const char **why)
{
    char number[LOOKUP_NUMBER_MAX];
    struct addrinfo *found = NULL;
    int error = lookup_number(at, &found) ? 0 : resolve_until(at, until_us, stop, &found);
    if (error == 0 && !lookup_text(found, number)) {
        error = EAI_FAMILY;
    }
    if (found != NULL) {
        freeaddrinfo(found);
    }
    if (error != 0) {
        *why = error == EAI_INPROGRESS ? "its name is still being resolved" : gai_strerror(error);
        return ERR_ABSENT;
    }
    snprintf(out->host, sizeof out->host, "%s", number);
    out->port = at->port;
    return ERR_OK;
}
