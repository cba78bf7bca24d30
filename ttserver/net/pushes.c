#include "ttserver/net/pushes.h"

#include <stdlib.h>
#include <string.h>

struct push {
    TAILQ_ENTRY(push) link;
    uint8_t cause[CONNECTION_ROUTE];
    bool has_cause;
    struct ttcore_message message; /* its bytes are in `data`, behind the routes */
    uint32_t at; /* the next of its targets */
    uint8_t data[];
};

static size_t bytes_of(const struct ttcore_message *message)
{
    return sizeof(struct push) + (size_t)message->targets * CONNECTION_ROUTE + message->length;
}

static void drop_first(struct push_queue *queue)
{
    struct push *push = TAILQ_FIRST(&queue->list);
    CHECK_THAT(queue->held >= bytes_of(&push->message), "pushes: what waits is counted");
    queue->held -= bytes_of(&push->message);
    TAILQ_REMOVE(&queue->list, push, link);
    free(push);
    CHECK_THAT((queue->held == 0) == TAILQ_EMPTY(&queue->list), "pushes: an empty queue has none");
}

void pushes_init(struct pushes *p, uint32_t sessions_max)
{
    p->must.held_max = PUSHES_HELD + (size_t)sessions_max * PUSHES_HELD_EACH;
    p->hints.held_max = PUSHES_HINTS_HELD;
    TAILQ_INIT(&p->must.list);
    TAILQ_INIT(&p->hints.list);
    TAILQ_INIT(&p->held_back);
}

void pushes_close(struct pushes *p)
{
    while (p->must.held > 0) {
        drop_first(&p->must);
    }
    while (p->hints.held > 0) {
        drop_first(&p->hints);
    }
}

/* ---- in ---- */

/* False: there is no memory. */
static bool add(struct push_queue *queue, const struct ttcore_message *message,
                const struct ttcore_target *target, const uint8_t *cause)
{
    size_t size = bytes_of(message);
    struct push *push = malloc(size);
    if (push == NULL) {
        return false;
    }
    *push = (struct push){.message = *message, .has_cause = cause != NULL};
    if (cause != NULL) {
        memcpy(push->cause, cause, sizeof push->cause);
    }
    uint8_t *at = push->data;
    for (uint32_t i = 0; i < message->targets; i++, at += CONNECTION_ROUTE) {
        memcpy(at, target[message->first + i].route, CONNECTION_ROUTE);
    }
    memcpy(at, message->bytes, message->length);
    push->message.bytes = at;
    queue->held += size;
    TAILQ_INSERT_TAIL(&queue->list, push, link);
    return true;
}

/* ---- out ---- */

/* The first of the queue, until that time. */
static void send_first(struct pushes *p, struct push_queue *queue, uint64_t until_ns)
{
    struct push *push = TAILQ_FIRST(&queue->list);
    const struct ttcore_message *message = &push->message;
    uint64_t begin_ns = p->now_ns(p->self), now_ns = begin_ns;
    uint32_t from = push->at;
    while (now_ns < until_ns && push->at < message->targets) {
        p->send(p->self, push->data + (size_t)push->at++ * CONNECTION_ROUTE, message);
        now_ns = p->now_ns(p->self);
    }
    if (push->has_cause) {
        uint64_t ns = now_ns - begin_ns,
                 most_ns = 2 * PUSHES_SLICE_NS; /* not for what others ran */
        ns = (ns < most_ns ? ns : most_ns) + (uint64_t)(push->at - from) * PUSHES_FLUSH_NS;
        p->charge(p->self, push->cause, ns * message->paid / message->targets);
    }
    CHECK_THAT(push->at <= message->targets, "pushes: none goes beyond its targets");
    if (push->at == message->targets) {
        drop_first(queue);
    }
}

static void send_until(struct pushes *p, struct push_queue *queue, uint64_t until_ns)
{
    while (!TAILQ_EMPTY(&queue->list) && p->now_ns(p->self) < until_ns) {
        send_first(p, queue, until_ns);
    }
}

bool pushes_take(struct pushes *p, const struct ttcore_message *message,
                 const struct ttcore_target *target, const uint8_t *cause)
{
    struct push_queue *queue = message->may_drop ? &p->hints : &p->must;
    if (message->targets <= p->at_once && (!message->in_order || TAILQ_EMPTY(&queue->list))) {
        return false;
    }
    const size_t size = bytes_of(message);
    if (message->may_drop) {
        bool is_kept = queue->held + size <= queue->held_max && add(queue, message, target, cause);
        *p->hints_dropped += is_kept ? 0 : message->targets;
        return true;
    }
    while (queue->held > 0 && queue->held + size > queue->held_max) {
        send_first(p, queue, UINT64_MAX);
    }
    if (add(queue, message, target, cause)) {
        return true;
    }
    pushes_all(p); /* first come, first served */
    return false;
}

void pushes_some(struct pushes *p)
{
    send_until(p, &p->must, p->now_ns(p->self) + PUSHES_SLICE_NS);
    send_until(p, &p->hints, p->now_ns(p->self) + PUSHES_SLICE_NS);
}

void pushes_all(struct pushes *p)
{
    send_until(p, &p->must, UINT64_MAX);
}

bool pushes_wait(const struct pushes *p)
{
    return !TAILQ_EMPTY(&p->must.list) || !TAILQ_EMPTY(&p->hints.list);
}

/* ---- who waits until less does ---- */

static bool is_much(const struct pushes *p)
{
    return p->must.held > p->must.held_max / 2;
}

void pushes_keep_back(struct pushes *p, struct connection *c)
{
    if (is_much(p) && !c->is_held_back) {
        c->is_held_back = true;
        TAILQ_INSERT_TAIL(&p->held_back, c, to_release);
    }
}

struct connection *pushes_let_go(struct pushes *p)
{
    struct connection *c = TAILQ_FIRST(&p->held_back);
    if (c == NULL || is_much(p)) {
        return NULL;
    }
    pushes_forget(p, c);
    return c;
}

void pushes_forget(struct pushes *p, struct connection *c)
{
    if (c != NULL && c->is_held_back) {
        c->is_held_back = false;
        TAILQ_REMOVE(&p->held_back, c, to_release);
    }
}
