#include "worker/engine/observer.h"

#include "common/clock.h"
#include "common/signals.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NOTES_MAX = SEARCH_LINES_MAX + 128 }; /* all lines of an iteration, and what else may be */

enum note_kind { NOTE_LINE, NOTE_ROOT_MOVE, NOTE_PROGRESS, NOTE_REFUSAL };

struct note {
    enum note_kind kind;
    unsigned number; /* of the line, the root's move, or the shard */
    uint16_t move;
    struct search_result result;
    bool is_taken; /* the job, by a shard that refused it before */
    char why[JOB_WHY_MAX];
    struct engine_status status;
};

struct observer {
    const struct engine_observer *to; /* of a run; NULL: nobody */
    bool has_thread;
    pthread_t thread;
    pthread_mutex_t lock; /* of the rest */
    pthread_cond_t changed;
    bool is_ending, has_ended;
    unsigned first, count;
    struct note ring[NOTES_MAX]; /* from `first` on, the oldest first */
};

static void report(const struct engine_observer *to, const struct note *n)
{
    switch (n->kind) {
    case NOTE_LINE:
        to->iteration(to->self, n->number, &n->result, &n->status);
        break;
    case NOTE_ROOT_MOVE:
        to->root_move(to->self, n->move, n->number, &n->status);
        break;
    case NOTE_PROGRESS:
        to->progress(to->self, &n->result, &n->status);
        break;
    case NOTE_REFUSAL:
        to->refused(to->self, n->number, n->is_taken ? NULL : n->why, &n->status);
        break;
    }
}

static bool is_wanted(const struct engine_observer *to, enum note_kind kind)
{
    return to != NULL && ((kind == NOTE_LINE && to->iteration != NULL) ||
                          (kind == NOTE_ROOT_MOVE && to->root_move != NULL) ||
                          (kind == NOTE_PROGRESS && to->progress != NULL) ||
                          (kind == NOTE_REFUSAL && to->refused != NULL));
}

/* ---- what waits; the caller holds the lock ---- */

static struct note *note_at(struct observer *o, unsigned i)
{
    return &o->ring[(o->first + i) % NOTES_MAX];
}

static void drop(struct observer *o, unsigned i)
{
    for (; i > 0; i--) {
        *note_at(o, i) = *note_at(o, i - 1);
    }
    o->first = (o->first + 1) % NOTES_MAX;
    o->count--;
}

/* The place in the list, from `i` on, of the first line of an iteration, or `count`. */
static unsigned next_iteration(struct observer *o, unsigned i)
{
    while (i < o->count && (note_at(o, i)->kind != NOTE_LINE || note_at(o, i)->number > 0)) {
        i++;
    }
    return i;
}

/* All lines of the oldest iteration that has not begun to be told and is not being noted; where
 * there is none, the rest of the one that has begun: the newest is never without some of its own.
 */
static void drop_iteration(struct observer *o, const struct note *next)
{
    unsigned begin = next_iteration(o, 0), end = next_iteration(o, begin + 1), kept = 0;
    if (begin == o->count || (end == o->count && (next->kind != NOTE_LINE || next->number > 0))) {
        end = begin;
        begin = 0;
    }
    for (unsigned i = o->count; i-- > 0;) { /* few stand before the oldest */
        if (i >= begin && i < end && note_at(o, i)->kind == NOTE_LINE) {
            continue;
        }
        kept++;
        if (o->count - kept > i) {
            *note_at(o, o->count - kept) = *note_at(o, i);
        }
    }
    o->first = (o->first + o->count - kept) % NOTES_MAX;
    o->count = kept;
}

/* Whether the new one says all that the old one did. */
static bool replaces(const struct note *next, const struct note *old)
{
    return next->kind == old->kind && next->kind != NOTE_LINE &&
           (next->kind != NOTE_REFUSAL || next->number == old->number);
}

/* At most one note a shard, and one each of progress and of the root's moves, are no lines: when
 * all places are taken, lines of more than one iteration are there. */
static void make_room(struct observer *o, const struct note *next)
{
    unsigned i = 0;
    while (i < o->count && !replaces(next, note_at(o, i))) {
        i++;
    }
    if (i < o->count) {
        drop(o, i);
    } else if (o->count == NOTES_MAX) {
        drop_iteration(o, next);
    }
    CHECK(o->count < NOTES_MAX);
}

static void *run(void *context)
{
    struct observer *o = context;
    struct note now;
    pthread_mutex_lock(&o->lock);
    for (;;) {
        while (o->count == 0 && !o->is_ending) {
            pthread_cond_wait(&o->changed, &o->lock);
        }
        if (o->count == 0) {
            break;
        }
        now = *note_at(o, 0);
        drop(o, 0);
        pthread_mutex_unlock(&o->lock);
        report(o->to, &now);
        pthread_mutex_lock(&o->lock);
    }
    o->has_ended = true;
    pthread_cond_broadcast(&o->changed);
    pthread_mutex_unlock(&o->lock);
    return NULL;
}

/* ---- life ---- */

enum err observer_open(struct observer **out)
{
    struct observer *o = calloc(1, sizeof *o);
    if (o == NULL) {
        return ERR_NOMEM;
    }
    clock_open_condition(&o->changed);
    pthread_mutex_init(&o->lock, NULL);
    *out = o;
    return ERR_OK;
}

void observer_close(struct observer **observer)
{
    struct observer *o = *observer;
    if (o == NULL) {
        return;
    }
    pthread_cond_destroy(&o->changed);
    pthread_mutex_destroy(&o->lock);
    free(o);
    *observer = NULL;
}

void observer_begin(struct observer *o, const struct engine_observer *to)
{
    o->to = to;
    o->count = 0;
    o->is_ending = o->has_ended = false;
    o->has_thread = to != NULL && signals_create_thread(&o->thread, run, o);
}

bool observer_end(struct observer *o, unsigned wait_ms)
{
    uint64_t at_us = clock_us() + wait_ms * UINT64_C(1000);
    if (o->has_thread) {
        pthread_mutex_lock(&o->lock);
        o->is_ending = true;
        pthread_cond_broadcast(&o->changed);
        while (!o->has_ended && clock_wait(&o->changed, &o->lock, at_us)) {
        }
        bool has_ended = o->has_ended;
        pthread_mutex_unlock(&o->lock);
        if (!has_ended) {
            return false;
        }
        pthread_join(o->thread, NULL);
        o->has_thread = false;
    }
    o->to = NULL;
    return true;
}

/* ---- notes ---- */

static void take(struct observer *o, const struct note *n)
{
    if (!o->has_thread) {
        report(o->to, n);
        return;
    }
    pthread_mutex_lock(&o->lock);
    make_room(o, n);
    *note_at(o, o->count) = *n;
    o->count++;
    pthread_cond_broadcast(&o->changed);
    pthread_mutex_unlock(&o->lock);
}

void observer_note_line(struct observer *o, unsigned line, const struct search_result *result,
                        const struct engine_status *status)
{
    if (is_wanted(o->to, NOTE_LINE)) {
        take(o, &(struct note){
                    .kind = NOTE_LINE, .number = line, .result = *result, .status = *status});
    }
}

void observer_note_root_move(struct observer *o, uint16_t move, unsigned number,
                             const struct engine_status *status)
{
    if (is_wanted(o->to, NOTE_ROOT_MOVE)) {
        take(o, &(struct note){
                    .kind = NOTE_ROOT_MOVE, .number = number, .move = move, .status = *status});
    }
}

void observer_note_progress(struct observer *o, const struct search_result *best,
                            const struct engine_status *status)
{
    if (is_wanted(o->to, NOTE_PROGRESS)) {
        take(o, &(struct note){.kind = NOTE_PROGRESS, .result = *best, .status = *status});
    }
}

void observer_note_refusal(struct observer *o, unsigned shard, const char *why,
                           const struct engine_status *status)
{
    if (is_wanted(o->to, NOTE_REFUSAL)) {
        struct note n = {
            .kind = NOTE_REFUSAL, .number = shard, .is_taken = why == NULL, .status = *status};
        snprintf(n.why, sizeof n.why, "%s", why != NULL ? why : "");
        take(o, &n);
    }
}
