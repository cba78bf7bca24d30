#include "worker/table/inside.h"

#include "common/memory.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

enum {
    PLACES = 5, /* of a line */
    LINES = 64, /* a thread: they hardly ever meet in one */
    SPARE_LINES = 8, /* a thread */
};

/* The first `used` places are taken, in no order. Only the last line of a chain is not full. */
struct inside_line {
    _Alignas(MEMORY_LINE) uint64_t key[PLACES];
    atomic_uint locked; /* of a chain: its first line's */
    uint32_t next; /* spare line, from 1; 0: none */
    uint16_t slot[PLACES];
    uint8_t depth[PLACES];
    uint8_t used;
};

#ifdef __x86_64__
_Static_assert(sizeof(struct inside_line) == MEMORY_LINE, "one line");
#endif

struct inside {
    /* fixed after open */
    struct inside_line *line, *spare; /* spare[0] is "none" */
    unsigned shift; /* a hash >> shift is below the number of lines */
    /* state, of who has `lock` */
    _Alignas(MEMORY_LINE) pthread_mutex_t lock;
    uint32_t first_free; /* of the spare ones, by `next` */
};

enum err inside_open(struct inside **out, unsigned slots)
{
    if (slots < 1 || slots > INSIDE_SLOTS_MAX) {
        return ERR_RANGE;
    }
    struct inside *t = memory_lines(sizeof *t);
    if (t == NULL) {
        return ERR_NOMEM;
    }
    unsigned bits = 0, spares = slots * SPARE_LINES;
    while (1u << bits < slots * LINES) {
        bits++;
    }
    t->shift = 64 - bits;
    pthread_mutex_init(&t->lock, NULL);
    t->line = memory_lines(sizeof *t->line << bits);
    t->spare = memory_lines(sizeof *t->spare * (spares + 1));
    if (t->line == NULL || t->spare == NULL) {
        inside_close(&t);
        return ERR_NOMEM;
    }
    for (uint32_t i = 1; i < spares; i++) {
        t->spare[i].next = i + 1;
    }
    t->first_free = 1;
    *out = t;
    return ERR_OK;
}

void inside_close(struct inside **inside)
{
    struct inside *t = *inside;
    if (t != NULL) {
        pthread_mutex_destroy(&t->lock);
        free(t->line);
        free(t->spare);
        free(t);
        *inside = NULL;
    }
}

/* Keys are well mixed by the games; one multiplication spreads depths, and keys that are not. */
static struct inside_line *line_of(const struct inside *t, struct inside_node node)
{
    return &t->line[(node.key + node.depth) * UINT64_C(0xbf58476d1ce4e5b9) >> t->shift];
}

void inside_prefetch(const struct inside *t, struct inside_node node)
{
    __builtin_prefetch(line_of(t, node), 1);
}

static struct inside_line *lock(struct inside_line *line)
{
    while (atomic_exchange_explicit(&line->locked, 1, memory_order_acquire) != 0) {
        sched_yield(); /* where there are more threads than processors, to who has it */
    }
    return line;
}

struct inside_line *inside_lock(struct inside *t, struct inside_node node)
{
    return lock(line_of(t, node));
}

void inside_unlock(struct inside_line *line)
{
    atomic_store_explicit(&line->locked, 0, memory_order_release);
}

static const struct inside_line *next_line(const struct inside *t, const struct inside_line *line)
{
    return line->next != 0 ? &t->spare[line->next] : NULL;
}

static bool is_of(const struct inside_line *line, unsigned i, struct inside_node node)
{
    return line->key[i] == node.key && line->depth[i] == node.depth;
}

unsigned inside_count(const struct inside *t, const struct inside_line *line,
                      struct inside_node node)
{
    unsigned count = 0;
    for (; line != NULL; line = next_line(t, line)) {
        for (unsigned i = 0; i < line->used; i++) {
            count += is_of(line, i, node);
        }
    }
    return count;
}

unsigned inside_slots(const struct inside *t, const struct inside_line *line,
                      struct inside_node node, uint16_t *out, unsigned room)
{
    unsigned copied = 0;
    for (; line != NULL; line = next_line(t, line)) {
        for (unsigned i = 0; i < line->used && copied < room; i++) {
            if (is_of(line, i, node)) {
                out[copied++] = line->slot[i];
            }
        }
    }
    return copied;
}

static struct inside_line *take_spare(struct inside *t, struct inside_line *last)
{
    pthread_mutex_lock(&t->lock);
    uint32_t taken = t->first_free;
    t->first_free = t->spare[taken].next; /* 0 of 0 */
    pthread_mutex_unlock(&t->lock);
    if (taken == 0) {
        return NULL;
    }
    t->spare[taken].next = 0;
    last->next = taken;
    return &t->spare[taken];
}

static void give_back(struct inside *t, struct inside_line *before)
{
    uint32_t given = before->next;
    before->next = 0;
    pthread_mutex_lock(&t->lock);
    t->spare[given].next = t->first_free;
    t->first_free = given;
    pthread_mutex_unlock(&t->lock);
}

unsigned inside_visit(struct inside *t, struct inside_line *line, struct inside_node node,
                      uint16_t slot, bool exclusive, bool *is_busy)
{
    unsigned count = 0;
    bool is_holder = false;
    for (;; line = &t->spare[line->next]) {
        for (unsigned i = 0; i < line->used; i++) {
            if (is_of(line, i, node)) {
                count++;
                is_holder |= line->slot[i] == slot;
            }
        }
        if (line->next == 0) {
            break;
        }
    }
    *is_busy = exclusive && count > is_holder;
    if (*is_busy || is_holder) {
        return count;
    }
    if (line->used == PLACES && (line = take_spare(t, line)) == NULL) {
        return count;
    }
    line->key[line->used] = node.key;
    line->depth[line->used] = node.depth;
    line->slot[line->used++] = slot;
    return count + 1;
}

/* The last place of all comes to where the hole is. */
static void fill(struct inside *t, struct inside_line *hole, unsigned at, struct inside_line *last,
                 struct inside_line *before)
{
    unsigned from = --last->used;
    hole->key[at] = last->key[from];
    hole->depth[at] = last->depth[from];
    hole->slot[at] = last->slot[from];
    if (from == 0 && before != NULL) {
        give_back(t, before);
    }
}

unsigned inside_leave(struct inside *t, struct inside_line *line, struct inside_node node,
                      uint16_t slot)
{
    struct inside_line *hole = NULL, *before = NULL;
    unsigned count = 0, at = 0;
    for (;; before = line, line = &t->spare[line->next]) {
        for (unsigned i = 0; i < line->used; i++) {
            if (is_of(line, i, node) && line->slot[i] == slot) {
                hole = line;
                at = i;
            } else {
                count += is_of(line, i, node);
            }
        }
        if (line->next == 0) {
            break;
        }
    }
    if (hole != NULL) {
        fill(t, hole, at, line, before);
    }
    return count;
}

unsigned inside_places(struct inside *t)
{
    unsigned places = 0;
    for (size_t i = 0; i < (size_t)1 << (64 - t->shift); i++) {
        struct inside_line *first = lock(&t->line[i]);
        for (const struct inside_line *line = first; line != NULL; line = next_line(t, line)) {
            places += line->used;
        }
        inside_unlock(first);
    }
    return places;
}
