/* Serving the sockets: by the clock, or when the descriptor says so. */
#include "worker/lib/lib.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum {
    DESCRIPTORS_MAX = 256,
};

_Static_assert((int)DESCRIPTORS_MAX >= (int)CLIENT_SHARDS_MAX, "one for each shard, at least");

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* When the client, a renewal or the feed wants to be served. */
static uint64_t due(const struct lib *l)
{
    return earlier(earlier(l->tick_us, lib_renew_due(l)), lib_feed_due(l));
}

void lib_receive(struct lib *l)
{
    struct client_event e;
    while (lane_next(&l->lane, &e)) {
        l->take(l, &e);
    }
}

void lib_serve(struct lib *l)
{
    lib_receive(l);
    uint64_t now = lib_now(l);
    l->rest_until_us = now + (l->feed != NULL ? LIB_FEED_REST_US : l->lane.rest_us);
    lib_renew(l, now);
    lib_feed_serve(l, now);
    l->tick_us = client_tick(l->lane.client, now);
}

void lib_serve_when_due(struct lib *l)
{
    uint64_t now = lib_now(l);
    if (now >= l->rest_until_us || now >= due(l) || client_outstanding(l->lane.client) > 0) {
        lib_serve(l);
    }
}

void lib_wait(struct lib *l, uint64_t until_us)
{
    lane_sleep(&l->lane, earlier(due(l), until_us));
    lib_serve(l);
}

uint64_t lib_due(struct lib *l)
{
    uint64_t shell_due;
    l->tick_us = client_tick(l->lane.client, lib_now(l)); /* stores that were queued wait for it */
    (void)l->lane.descriptors(l->lane.self, NULL, 0, &shell_due);
    return earlier(due(l), shell_due);
}

/* ---- the descriptor ---- */

/* A timer that is set too early costs the caller a wake, which sets it anew; so it is left alone.
 */
static void set_timer(struct lib *l, uint64_t at_us)
{
    struct itimerspec at = {
        .it_value = {(time_t)(at_us / 1000000), (long)(at_us % 1000000) * 1000}};
    if (at_us == 0) {
        at.it_value = (struct timespec){0, 1}; /* long ago; zero would disarm it */
    }
    if (at_us < l->armed_us) {
        l->armed_us = at_us;
        (void)timerfd_settime(l->timer, TFD_TIMER_ABSTIME, &at, NULL);
    }
}

static void watch(const struct lib *l, const struct pollfd *polled)
{
    struct epoll_event event = {
        .events =
            (polled->events & POLLIN ? EPOLLIN : 0u) | (polled->events & POLLOUT ? EPOLLOUT : 0u),
    };
    if (epoll_ctl(l->epoll, EPOLL_CTL_MOD, polled->fd, &event) != 0) {
        (void)epoll_ctl(l->epoll, EPOLL_CTL_ADD, polled->fd, &event);
    }
}

/* Descriptors of a Redis change with its connections. Closed ones leave the set by themselves, and
 * a new one may have an old one's number, so all are added again. Those of ttservers stay. */
static uint64_t watch_sockets(struct lib *l)
{
    struct pollfd polled[DESCRIPTORS_MAX];
    uint64_t due_us;
    bool are_watched = l->is_watching && l->lane.are_descriptors_fixed;
    unsigned room = are_watched ? 0 : DESCRIPTORS_MAX;
    unsigned n = l->lane.descriptors(l->lane.self, polled, room, &due_us);
    for (unsigned i = 0; i < n; i++) {
        watch(l, &polled[i]);
    }
    l->is_watching = true;
    return due_us;
}

void lib_update_fd(struct lib *l)
{
    if (l->epoll < 0) {
        return;
    }
    l->tick_us = client_tick(l->lane.client, lib_now(l)); /* stores that were queued wait for it */
    set_timer(l, earlier(watch_sockets(l), due(l)));
}

void lib_close_fd(struct lib *l)
{
    if (l->epoll >= 0) {
        close(l->epoll);
        close(l->timer);
    }
}

bool lib_open_fd(struct lib *l)
{
    struct epoll_event event = {.events = EPOLLIN};
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    event.data.fd = timer;
    if (epoll < 0 || timer < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, timer, &event) != 0) {
        if (epoll >= 0) {
            close(epoll);
        }
        if (timer >= 0) {
            close(timer);
        }
        return false;
    }
    l->epoll = epoll;
    l->timer = timer;
    return true;
}

bool lib_take_fd(struct lib *l)
{
    struct epoll_event event;
    uint64_t fired;
    if (epoll_wait(l->epoll, &event, 1, 0) == 0) {
        return false;
    }
    if (lib_now(l) >= l->armed_us && read(l->timer, &fired, sizeof fired) > 0) {
        l->armed_us = UINT64_MAX;
    }
    return true;
}
