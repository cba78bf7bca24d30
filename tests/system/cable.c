/* cable: a network cable with delay and loss, between two interfaces of one network namespace.
 *
 *   cable [--delay-us N] [--jitter-us N] [--loss-permille N] [--seed N] IF_A IF_B
 *
 * For machines whose kernel has no `tc netem`. Every frame that comes in at A leaves at B, delayed;
 * every frame that comes in at B leaves at A at once; both ways the share of --loss-permille is
 * lost. So the delay is that of a netem queue on the host behind A. Prints `ready`; runs until it
 * is killed. Frames carry their virtio header, so that checksums and segments left to do by the
 * sender's kernel are still done by the receiver's. Needs CAP_NET_RAW.
 * Threads: one. Memory: a bounded ring of frames each way; what does not fit is lost. */
#include "common/rng.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { RING = 8192, FRAME_MAX = 70000, SOCKET_BUFFER = 16 << 20 };

struct frame {
    uint64_t due_ns;
    size_t length;
    uint8_t *bytes;
};

struct way {
    int in, out;
    uint64_t delay_ns, jitter_ns;
    struct frame ring[RING];
    unsigned head, count;
};

struct shape {
    uint64_t delay_us, jitter_us, loss_permille, rng;
};

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void fail(const char *what)
{
    fprintf(stderr, "cable: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int open_interface(const char *name)
{
    int one = 1, buffer = SOCKET_BUFFER;
    int fd = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));
    struct sockaddr_ll address = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL)};
    struct packet_mreq all = {.mr_type = PACKET_MR_PROMISC};
    address.sll_ifindex = all.mr_ifindex = (int)if_nametoindex(name);
    if (fd < 0 || setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &one, sizeof one) != 0 ||
        bind(fd, (struct sockaddr *)&address, sizeof address) != 0 ||
        setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &all, sizeof all) != 0) {
        fail(name);
    }
    setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof buffer);
    setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &buffer, sizeof buffer);
    return fd;
}

static void put(struct way *way, const uint8_t *bytes, size_t length, uint64_t due_ns)
{
    struct frame *frame = &way->ring[(way->head + way->count) % RING];
    if (way->count == RING || (frame->bytes = malloc(length)) == NULL) {
        return;
    }
    memcpy(frame->bytes, bytes, length);
    frame->length = length;
    frame->due_ns = due_ns;
    way->count++;
}

/* Takes what has come in; jitter never reorders: a ring is first in, first out. */
static void take(struct way *way, struct shape *shape)
{
    static uint8_t bytes[FRAME_MAX];
    struct sockaddr_ll from;
    socklen_t size = sizeof from;
    ssize_t n;
    while ((n = recvfrom(way->in, bytes, sizeof bytes, MSG_DONTWAIT, (struct sockaddr *)&from,
                         &size)) > 0) {
        uint64_t late = way->jitter_ns > 0 ? rng_next(&shape->rng) % way->jitter_ns : 0;
        if (from.sll_pkttype != PACKET_OUTGOING &&
            rng_below(&shape->rng, 1000) >= shape->loss_permille) {
            put(way, bytes, (size_t)n, now_ns() + way->delay_ns + late);
        }
        size = sizeof from;
    }
}

/* Sends what is due; returns when the next is, UINT64_MAX for never. */
static uint64_t give(struct way *way)
{
    while (way->count > 0) {
        struct frame *frame = &way->ring[way->head];
        if (frame->due_ns > now_ns()) {
            return frame->due_ns;
        }
        /* An interface that is down takes nothing: lost, as on any cable. */
        (void)!send(way->out, frame->bytes, frame->length, 0);
        free(frame->bytes);
        way->head = (way->head + 1) % RING;
        way->count--;
    }
    return UINT64_MAX;
}

static uint64_t number(const char *text)
{
    char *end;
    uint64_t value = strtoull(text, &end, 10);
    if (*text == 0 || *end != 0) {
        fprintf(stderr, "cable: not a number: %s\n", text);
        exit(2);
    }
    return value;
}

static int read_arguments(int argc, char **argv, struct shape *shape)
{
    int i = 1;
    for (; i + 1 < argc && strncmp(argv[i], "--", 2) == 0; i += 2) {
        uint64_t value = number(argv[i + 1]);
        if (strcmp(argv[i], "--delay-us") == 0) {
            shape->delay_us = value;
        } else if (strcmp(argv[i], "--jitter-us") == 0) {
            shape->jitter_us = value;
        } else if (strcmp(argv[i], "--loss-permille") == 0) {
            shape->loss_permille = value;
        } else if (strcmp(argv[i], "--seed") == 0) {
            shape->rng = value;
        } else {
            fprintf(stderr, "cable: unknown option %s\n", argv[i]);
            exit(2);
        }
    }
    return i;
}

int main(int argc, char **argv)
{
    static struct way there, back;
    struct shape shape = {.rng = 1};
    int names = read_arguments(argc, argv, &shape);
    if (argc - names != 2) {
        fprintf(stderr, "cable: two interfaces are needed\n");
        return 2;
    }
    there.in = back.out = open_interface(argv[names]);
    there.out = back.in = open_interface(argv[names + 1]);
    there.delay_ns = shape.delay_us * 1000;
    there.jitter_ns = shape.jitter_us * 1000;
    prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL); /* ns; the default is as long as a short delay */
    puts("ready");
    fflush(stdout);
    for (;;) {
        uint64_t first = give(&there), second = give(&back), now = now_ns();
        uint64_t due = first < second ? first : second;
        uint64_t wait_ns = due > now ? due - now : 0;
        struct timespec wait = {(time_t)(wait_ns / 1000000000), (long)(wait_ns % 1000000000)};
        struct pollfd fds[] = {{there.in, POLLIN, 0}, {back.in, POLLIN, 0}};
        if (ppoll(fds, 2, due == UINT64_MAX ? NULL : &wait, NULL) < 0 && errno != EINTR) {
            fail("poll");
        }
        take(&there, &shape);
        take(&back, &shape);
    }
}
