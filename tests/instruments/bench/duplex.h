/* duplex: a blocking client's end of a TCP stream that writes and reads at once, so that two full
 * socket buffers never wait for each other. For the drivers of tests/bench. Threads: one owner. */
#ifndef TESTS_INSTRUMENTS_BENCH_DUPLEX_H
#define TESTS_INSTRUMENTS_BENCH_DUPLEX_H

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { DUPLEX_ROOM = 8 << 20 };

struct duplex {
    int fd;
    uint8_t *out, *in;
    size_t out_from, out_to; /* not written yet */
    size_t in_from, in_to; /* not taken yet */
    uint64_t written, read;
};

static inline _Noreturn void duplex_fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    exit(1);
}

static inline void duplex_open(struct duplex *d, int fd)
{
    int one = 1;
    *d = (struct duplex){.fd = fd, .out = malloc(DUPLEX_ROOM), .in = malloc(DUPLEX_ROOM)};
    if (d->out == NULL || d->in == NULL) {
        duplex_fail("memory");
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

static inline void duplex_connect(struct duplex *d, unsigned port)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof at) != 0) {
        duplex_fail("connect");
    }
    duplex_open(d, fd);
}

static inline void duplex_close(struct duplex *d)
{
    close(d->fd);
    free(d->out);
    free(d->in);
}

/* Room for `bytes` more to be written. */
static inline uint8_t *duplex_room(struct duplex *d, size_t bytes)
{
    if (d->out_from == d->out_to) {
        d->out_from = d->out_to = 0;
    }
    if (DUPLEX_ROOM - d->out_to < bytes) {
        memmove(d->out, d->out + d->out_from, d->out_to - d->out_from);
        d->out_to -= d->out_from;
        d->out_from = 0;
    }
    if (DUPLEX_ROOM - d->out_to < bytes) {
        errno = ENOBUFS;
        duplex_fail("output");
    }
    return d->out + d->out_to;
}

/* Moves what can be moved; waits until something can. False: the peer closed. */
static inline bool duplex_move(struct duplex *d)
{
    bool moved = false;
    if (d->out_from < d->out_to) {
        ssize_t n =
            send(d->fd, d->out + d->out_from, d->out_to - d->out_from, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n > 0) {
            d->out_from += (size_t)n;
            d->written += (uint64_t)n;
            moved = true;
        }
    }
    if (d->in_from > DUPLEX_ROOM / 2 || d->in_from == d->in_to) {
        memmove(d->in, d->in + d->in_from, d->in_to - d->in_from);
        d->in_to -= d->in_from;
        d->in_from = 0;
    }
    /* With nothing left to write, to wait in the read itself saves a call. */
    int flags = moved || d->out_from < d->out_to ? MSG_DONTWAIT : 0;
    ssize_t n = recv(d->fd, d->in + d->in_to, DUPLEX_ROOM - d->in_to, flags);
    if (n > 0) {
        d->in_to += (size_t)n;
        d->read += (uint64_t)n;
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        return false;
    } else if (!moved) {
        struct pollfd p = {d->fd, POLLIN | (d->out_from < d->out_to ? POLLOUT : 0), 0};
        poll(&p, 1, 1000);
    }
    return true;
}

/* Until `bytes` lie there to be taken. */
static inline bool duplex_await(struct duplex *d, size_t bytes)
{
    while (d->in_to - d->in_from < bytes) {
        if (!duplex_move(d)) {
            return false;
        }
    }
    return true;
}

#endif
