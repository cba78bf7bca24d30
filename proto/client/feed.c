#include "proto/client/feed.h"

enum { WINDOW_US = 10000 /* between two steps of the least depth */ };

void feed_begin(struct feed *f, const struct feed_limits *limits)
{
    unsigned least = atomic_load_explicit(&f->least, memory_order_relaxed);
    if (least < limits->lowest || least > limits->highest) {
        atomic_store_explicit(&f->least, limits->first, memory_order_relaxed);
    }
}

bool feed_wants(const struct feed *f, uint64_t key, unsigned depth)
{
    return depth <= PROTO_RESULT_DEPTH_MAX &&
           depth * FEED_STEPS + (unsigned)(key >> 61) >=
               atomic_load_explicit(&f->least, memory_order_relaxed);
}

/* ---- the queue ---- */

static uint64_t empty_turn(uint64_t n)
{
    return n / FEED_MAX * 2;
}

bool feed_put(struct feed *f, const struct tt_store *result)
{
    uint64_t n = atomic_load_explicit(&f->tail, memory_order_relaxed);
    for (;;) {
        struct feed_place *place = &f->place[n % FEED_MAX];
        uint64_t turn = atomic_load_explicit(&place->turn, memory_order_acquire);
        if (turn < empty_turn(n)) {
            return false; /* the result of the time before is still there */
        }
        if (turn > empty_turn(n)) { /* another thread was faster */
            n = atomic_load_explicit(&f->tail, memory_order_relaxed);
        } else if (atomic_compare_exchange_weak_explicit(&f->tail, &n, n + 1, memory_order_relaxed,
                                                         memory_order_relaxed)) {
            place->result = *result;
            atomic_store_explicit(&place->turn, turn + 1, memory_order_release);
            return true;
        }
    }
}

/* `out` may be NULL. */
static unsigned take(struct feed *f, struct tt_store *out)
{
    uint64_t n = atomic_load_explicit(&f->head, memory_order_relaxed);
    unsigned count = 0;
    for (; count < FEED_MAX; count++, n++) {
        struct feed_place *place = &f->place[n % FEED_MAX];
        if (atomic_load_explicit(&place->turn, memory_order_acquire) != empty_turn(n) + 1) {
            break;
        }
        if (out != NULL) {
            out[count] = place->result;
        }
        atomic_store_explicit(&place->turn, empty_turn(n) + 2, memory_order_release);
    }
    atomic_store_explicit(&f->head, n, memory_order_release); /* never seen ahead of `tail` */
    return count;
}

unsigned feed_waiting(const struct feed *f)
{
    uint64_t head = atomic_load_explicit(&f->head, memory_order_acquire);
    return (unsigned)(atomic_load_explicit(&f->tail, memory_order_relaxed) - head);
}

bool feed_is_due(const struct feed *f, uint64_t now_us)
{
    return now_us >= atomic_load_explicit(&f->due_us, memory_order_relaxed);
}

unsigned feed_take_due(struct feed *f, uint64_t now_us, uint32_t pause_us,
                       struct tt_store out[FEED_MAX])
{
    unsigned count = feed_waiting(f);
    if (count < FEED_MAX && (count == 0 || !feed_is_due(f, now_us))) {
        return 0;
    }
    atomic_store_explicit(&f->due_us, now_us + pause_us, memory_order_relaxed);
    return take(f, out);
}

void feed_clear(struct feed *f)
{
    (void)take(f, NULL);
}

/* ---- the least depth ---- */

void feed_received(struct feed *f, const struct feed_limits *limits, unsigned count, unsigned load,
                   uint64_t now_us)
{
    uint64_t elapsed_us = now_us - f->window_us;
    f->window_received += count;
    f->window_load = load > f->window_load ? (uint8_t)load : f->window_load;
    if (elapsed_us < WINDOW_US) {
        return;
    }
    uint64_t rate = f->window_received * 1000000 / elapsed_us;
    unsigned least = atomic_load_explicit(&f->least, memory_order_relaxed);
    if (rate > limits->rate_max || f->window_load >= PROTO_LOAD_BUSY) {
        least += least < limits->highest;
    } else if (rate * 4 < limits->rate_max * 3 && f->window_load < PROTO_LOAD_BUSY / 2) {
        least -= least > limits->lowest;
    }
    atomic_store_explicit(&f->least, least, memory_order_relaxed);
    f->window_us = now_us;
    f->window_received = 0;
    f->window_load = 0;
}
