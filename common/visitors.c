#include "common/visitors.h"

#include "common/clock.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

enum { EVERY_S = 1, US_PER_S = 1000000 };

enum doing { ASKS, IS_ANSWERED, FOLLOWS };

struct visitor {
    TAILQ_ENTRY(visitor) link;
    int fd;
    uint8_t address[16];
    enum doing doing;
    bool is_ended;
    uint64_t begin_us; /* the request under way */
};

struct visitors {
    /* fixed after open */
    struct visitors_limits limits;
    pthread_t thread;
    /* state, of the lock */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    TAILQ_HEAD(visitors_list, visitor) list;
    unsigned count; /* without those that are ended */
    bool is_closing;
};

/* ---- with the lock ---- */

static void end(struct visitors *v, struct visitor *visitor)
{
    visitor->is_ended = true;
    v->count--;
    shutdown(visitor->fd, SHUT_RDWR);
}

static bool may_end(const struct visitor *visitor)
{
    return !visitor->is_ended && visitor->doing != FOLLOWS;
}

static unsigned of_address(const struct visitors *v, const struct visitor *visitor)
{
    const struct visitor *other;
    unsigned count = 0;
    TAILQ_FOREACH(other, &v->list, link)
    {
        count += !other->is_ended &&
                 memcmp(other->address, visitor->address, sizeof other->address) == 0;
    }
    return count;
}

/* Any but the newest, if there is another. */
static void end_one(struct visitors *v, struct visitor *newest)
{
    struct visitor *visitor, *found = newest;
    unsigned most = 0;
    TAILQ_FOREACH(visitor, &v->list, link)
    {
        unsigned count = visitor != newest && may_end(visitor) ? of_address(v, visitor) : 0;
        if (count > most || (count > 0 && count == most && visitor->begin_us < found->begin_us)) {
            most = count;
            found = visitor;
        }
    }
    end(v, found);
}

static void end_late(struct visitors *v, uint64_t now_us)
{
    struct visitor *visitor;
    TAILQ_FOREACH(visitor, &v->list, link)
    {
        uint64_t limit_s = visitor->doing == ASKS ? v->limits.request_s : v->limits.answer_s;
        if (may_end(visitor) && now_us - visitor->begin_us > limit_s * US_PER_S) {
            end(v, visitor);
        }
    }
}

/* ---- */

static void *end_late_ones(void *self)
{
    struct visitors *v = self;
    pthread_mutex_lock(&v->lock);
    while (!v->is_closing) {
        if (TAILQ_EMPTY(&v->list)) {
            pthread_cond_wait(&v->changed, &v->lock);
            continue;
        }
        (void)clock_wait(&v->changed, &v->lock, clock_us() + EVERY_S * UINT64_C(1000000));
        end_late(v, clock_us());
    }
    pthread_mutex_unlock(&v->lock);
    return NULL;
}

/* As IPv6; of an IPv6 network of 64 bits a machine may take any address. */
static void take_address(struct visitor *visitor, const struct sockaddr *from)
{
    if (from != NULL && from->sa_family == AF_INET6) {
        const struct in6_addr *at = &((const struct sockaddr_in6 *)(const void *)from)->sin6_addr;
        memcpy(visitor->address, at, IN6_IS_ADDR_V4MAPPED(at) || IN6_IS_ADDR_LOOPBACK(at) ? 16 : 8);
    } else if (from != NULL && from->sa_family == AF_INET) {
        const struct in_addr *at = &((const struct sockaddr_in *)(const void *)from)->sin_addr;
        visitor->address[10] = visitor->address[11] = 0xff;
        memcpy(visitor->address + 12, at, 4);
    }
}

struct visitor *visitors_come(struct visitors *v, int fd, const struct sockaddr *from)
{
    struct visitor *visitor = calloc(1, sizeof *visitor);
    if (visitor == NULL) {
        shutdown(fd, SHUT_RDWR);
        return NULL;
    }
    visitor->fd = fd;
    visitor->begin_us = clock_us();
    take_address(visitor, from);
    pthread_mutex_lock(&v->lock);
    TAILQ_INSERT_TAIL(&v->list, visitor, link);
    if (++v->count > v->limits.max) {
        end_one(v, visitor);
    }
    pthread_cond_signal(&v->changed);
    pthread_mutex_unlock(&v->lock);
    return visitor;
}

static void goes_on(struct visitors *v, struct visitor *visitor, enum doing doing)
{
    if (visitor != NULL) {
        pthread_mutex_lock(&v->lock);
        visitor->doing = doing;
        visitor->begin_us = doing == ASKS ? clock_us() : visitor->begin_us;
        pthread_mutex_unlock(&v->lock);
    }
}

void visitors_asked(struct visitors *v, struct visitor *visitor)
{
    goes_on(v, visitor, IS_ANSWERED);
}

void visitors_followed(struct visitors *v, struct visitor *visitor)
{
    goes_on(v, visitor, FOLLOWS);
}

void visitors_answered(struct visitors *v, struct visitor *visitor)
{
    goes_on(v, visitor, ASKS);
}

void visitors_leave(struct visitors *v, struct visitor *visitor)
{
    if (visitor != NULL) {
        pthread_mutex_lock(&v->lock);
        TAILQ_REMOVE(&v->list, visitor, link);
        v->count -= !visitor->is_ended;
        pthread_mutex_unlock(&v->lock);
        free(visitor);
    }
}

enum err visitors_open(struct visitors **out, const struct visitors_limits *limits)
{
    struct visitors *v = calloc(1, sizeof *v);
    if (v == NULL) {
        return ERR_NOMEM;
    }
    v->limits = *limits;
    TAILQ_INIT(&v->list);
    pthread_mutex_init(&v->lock, NULL);
    clock_open_condition(&v->changed);
    if (pthread_create(&v->thread, NULL, end_late_ones, v) != 0) {
        pthread_cond_destroy(&v->changed);
        pthread_mutex_destroy(&v->lock);
        free(v);
        return ERR_NOMEM;
    }
    *out = v;
    return ERR_OK;
}

void visitors_close(struct visitors **visitors)
{
    struct visitors *v = *visitors;
    if (v == NULL) {
        return;
    }
    *visitors = NULL;
    pthread_mutex_lock(&v->lock);
    v->is_closing = true;
    pthread_cond_signal(&v->changed);
    pthread_mutex_unlock(&v->lock);
    pthread_join(v->thread, NULL);
    pthread_cond_destroy(&v->changed);
    pthread_mutex_destroy(&v->lock);
    free(v);
}
