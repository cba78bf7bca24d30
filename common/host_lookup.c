#include "common/host_lookup.h"

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
    PAUSE_NS = 1000000, /* between looks whether a name is found */
};

enum { RUNS, DONE, LEFT };

struct host_lookup {
    /* fixed after begin */
    struct options_host_port at;
    bool tries;
    /* the thread's until it is done */
    struct addrinfo *found;
    int error;
    atomic_int state; /* DONE by the thread, LEFT by the owner: the second of them frees it */
};

static atomic_uint under_way; /* of the process */
static const char still_resolved[] = "its name is still being resolved";

/* On an error *out is NULL. */
static int resolve(const struct options_host_port *at, int flags, struct addrinfo **out)
{
    struct addrinfo hints = {.ai_flags = flags, .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    char port[8];
    snprintf(port, sizeof port, "%u", at->port);
    int error = getaddrinfo(at->host, port, &hints, out);
    *out = error == 0 ? *out : NULL;
    return error;
}

bool host_lookup_text(const struct addrinfo *address, char out[HOST_LOOKUP_NUMBER_MAX])
{
    return getnameinfo(address->ai_addr, address->ai_addrlen, out, HOST_LOOKUP_NUMBER_MAX, NULL, 0,
                       NI_NUMERICHOST) == 0;
}

/* ---- which address is reached ---- */

bool host_lookup_drop_if_itself(int fd)
{
    struct sockaddr_storage own = {0}, peer = {0};
    socklen_t own_size = sizeof own, peer_size = sizeof peer;
    const struct linger reset = {.l_onoff = 1};
    return getsockname(fd, (struct sockaddr *)&own, &own_size) == 0 &&
           getpeername(fd, (struct sockaddr *)&peer, &peer_size) == 0 && own_size == peer_size &&
           memcmp(&own, &peer, own_size) == 0 &&
           setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset) == 0;
}

struct attempt {
    struct addrinfo *address;
    int fd; /* -1: it is not reached */
    bool is_reached;
};

/* -1: it cannot be reached. */
static int begin_attempt(const struct addrinfo *to)
{
    int fd = socket(to->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, to->ai_addr, to->ai_addrlen) != 0 && errno != EINPROGRESS) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* poll() has said something of it. */
static void take_attempt(struct attempt *a)
{
    int error = 0;
    socklen_t size = sizeof error;
    a->is_reached = getsockopt(a->fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0 &&
                    !host_lookup_drop_if_itself(a->fd);
    if (!a->is_reached) {
        close(a->fd);
        a->fd = -1;
    }
}

/* The first that is reached, all of them being tried at once; `count`: none is. When one is, those
 * before it in the list have some time more, so that the same is chosen the next time. */
static unsigned reach(struct attempt *attempt, unsigned count)
{
    uint64_t begin_us = clock_us(), end_us = begin_us + HOST_LOOKUP_REACH_MS * UINT64_C(1000);
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
            if (fd[i].revents != 0) {
                take_attempt(&attempt[i]);
            }
        }
    }
}

static void try_all(struct addrinfo **list)
{
    struct attempt attempt[TRIED_MAX];
    unsigned count = 0;
    for (struct addrinfo *a = *list; a != NULL && count < TRIED_MAX; a = a->ai_next) {
        attempt[count++] = (struct attempt){.address = a, .fd = begin_attempt(a)};
    }
    unsigned first = reach(attempt, count);
    for (unsigned i = 0; i < count; i++) {
        if (attempt[i].fd >= 0) {
            close(attempt[i].fd);
        }
    }
    if (first < count) { /* it is put first */
        struct addrinfo **at = list, *address = attempt[first].address;
        while (*at != address) {
            at = &(*at)->ai_next;
        }
        *at = address->ai_next;
        address->ai_next = *list;
        *list = address;
    }
}

/* ---- the thread ---- */

static void free_lookup(struct host_lookup *l)
{
    if (l->found != NULL) {
        freeaddrinfo(l->found);
    }
    free(l);
}

static void *run(void *context)
{
    struct host_lookup *l = context;
    l->error = resolve(&l->at, 0, &l->found);
    if (l->error == 0 && l->tries && l->found->ai_next != NULL) {
        try_all(&l->found);
    }
    atomic_fetch_sub(&under_way, 1);
    if (atomic_exchange(&l->state, DONE) == LEFT) {
        free_lookup(l);
    }
    return NULL;
}

/* NULL: too many are under way, or there is no thread or no memory: later. */
static struct host_lookup *begin(const struct options_host_port *at, bool tries)
{
    struct host_lookup *l = calloc(1, sizeof *l);
    pthread_t thread;
    if (l == NULL) {
        return NULL;
    }
    l->at = *at;
    l->tries = tries;
    if (atomic_fetch_add(&under_way, 1) >= HOST_LOOKUPS_MAX ||
        !signals_create_thread(&thread, run, l)) {
        atomic_fetch_sub(&under_way, 1);
        free_lookup(l);
        return NULL;
    }
    pthread_detach(thread);
    return l;
}

/* Nobody waits for it any more, done or not. Accepts NULL; nulls. */
static void leave(struct host_lookup **lookup)
{
    if (*lookup != NULL && atomic_exchange(&(*lookup)->state, LEFT) == DONE) {
        free_lookup(*lookup);
    }
    *lookup = NULL;
}

/* ---- for who needs them ---- */

bool host_lookup_name_step(struct host_lookup_name *name, const struct options_host_port *at,
                           bool tries, uint64_t again_us, uint64_t now_us)
{
    struct addrinfo *found = NULL;
    struct host_lookup *l = name->lookup;
    if (l != NULL) {
        if (atomic_load(&l->state) != DONE) {
            return false;
        }
        name->error = l->error;
        found = l->found;
        l->found = NULL;
        leave(&name->lookup);
    } else if (name->lookup_us != 0 && now_us - name->lookup_us < again_us) {
        return false;
    } else if (resolve(at, AI_NUMERICHOST, &found) == 0) { /* nothing is asked for */
        name->error = 0;
        name->lookup_us = now_us;
    } else {
        name->lookup = begin(at, tries);
        name->lookup_us = name->lookup != NULL ? now_us : name->lookup_us;
    }
    if (found == NULL) {
        return false;
    }
    if (name->found != NULL) {
        freeaddrinfo(name->found);
    }
    name->found = found;
    return true;
}

const struct addrinfo *host_lookup_name_next(struct host_lookup_name *name,
                                             const struct options_host_port *at, uint64_t again_us,
                                             uint64_t now_us, const char **why)
{
    if (name->next == NULL) {
        (void)host_lookup_name_step(name, at, false, again_us, now_us);
        name->next = name->found;
    }
    const struct addrinfo *address = name->next;
    name->next = address != NULL ? address->ai_next : NULL;
    *why = address != NULL ? NULL : host_lookup_name_trouble(name, now_us);
    return address;
}

const char *host_lookup_name_trouble(const struct host_lookup_name *name, uint64_t now_us)
{
    if (name->lookup == NULL) {
        return name->error != 0 ? gai_strerror(name->error) : NULL;
    }
    return now_us - name->lookup_us > HOST_LOOKUP_SLOW_US ? still_resolved : NULL;
}

void host_lookup_name_forget(struct host_lookup_name *name)
{
    leave(&name->lookup);
    if (name->found != NULL) {
        freeaddrinfo(name->found);
    }
    *name = (struct host_lookup_name){.found = NULL};
}

int host_lookup_find(const struct options_host_port *at, bool tries, uint64_t until_us,
                     const atomic_bool *stop, struct addrinfo **found)
{
    struct host_lookup_name name = {.found = NULL};
    uint64_t now_us = clock_us();
    while (!host_lookup_name_step(&name, at, tries, UINT64_MAX, now_us)) {
        if (name.lookup == NULL) {
            return name.error != 0 ? name.error : EAI_MEMORY;
        }
        if (now_us >= until_us || (stop != NULL && atomic_load(stop))) {
            host_lookup_name_forget(&name);
            return EAI_INPROGRESS;
        }
        nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
        now_us = clock_us();
    }
    *found = name.found;
    return 0;
}

enum err host_lookup_reach(const struct options_host_port *at, uint64_t until_us,
                           const atomic_bool *stop, struct options_host_port *out, const char **why)
{
    char number[HOST_LOOKUP_NUMBER_MAX];
    struct addrinfo *found = NULL;
    int error = host_lookup_find(at, true, until_us, stop, &found);
    if (error == 0 && !host_lookup_text(found, number)) {
        error = EAI_FAMILY;
    }
    if (found != NULL) {
        freeaddrinfo(found);
    }
    if (error != 0) {
        *why = error == EAI_INPROGRESS ? still_resolved : gai_strerror(error);
        return ERR_ABSENT;
    }
    snprintf(out->host, sizeof out->host, "%s", number);
    out->port = at->port;
    return ERR_OK;
}
