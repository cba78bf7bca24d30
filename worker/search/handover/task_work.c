#include "worker/search/handover/task_work.h"

#include "worker/search/handover/tasks.h"
#include "worker/search/node.h"

#include <stdlib.h>
#include <string.h>

enum {
    TASKS_MAX = 4096,
    STEP = 2, /* plies from one iteration of a task to the next */
};

struct task {
    uint64_t key, signature;
    uint32_t request;
    int alpha, beta;
    uint8_t depth, done, iteration;
    bool cut_node;
    uint16_t from, length;
    uint16_t path[TASK_PLIES];
};

struct task_work {
    struct task *task;
    unsigned count, room;
    uint64_t serial;
    struct task running;
    bool is_running, is_wanted; /* `running` is searched now; its result is still wanted */
    bool is_illegal; /* the path of the last one */
};

static struct task_work *task_work_of(const struct search *s)
{
    return s->env.peers->peers->work;
}

struct task_work *task_work_open(void)
{
    return calloc(1, sizeof(struct task_work));
}

void task_work_free(struct task_work **work)
{
    if (*work != NULL) {
        free((*work)->task);
        free(*work);
        *work = NULL;
    }
}

static struct task *task_of(struct task_work *t, uint64_t key)
{
    for (unsigned i = 0; i < t->count; i++) {
        if (t->task[i].key == key) {
            return &t->task[i];
        }
    }
    return NULL;
}

static bool is_first(const struct task *a, const struct task *b)
{
    return a->done != b->done             ? a->done < b->done
           : a->signature != b->signature ? a->signature < b->signature
                                          : a->beta - a->alpha < b->beta - b->alpha;
}

/* NULL: there is none. */
static struct task *first_task(struct task_work *t)
{
    struct task *first = NULL;
    for (unsigned i = 0; i < t->count; i++) {
        if (first == NULL || is_first(&t->task[i], first)) {
            first = &t->task[i];
        }
    }
    return first;
}

static void stop_running(struct search *s)
{
    task_work_of(s)->is_wanted = false;
    search_abort(s, task_work_of(s)->serial);
}

static bool has_room(struct task_work *t)
{
    if (t->count < t->room) {
        return true;
    }
    const unsigned room = t->room == 0 ? 64 : 2 * t->room;
    struct task *task = room <= TASKS_MAX ? realloc(t->task, room * sizeof *task) : NULL;
    if (task == NULL) {
        return false;
    }
    t->task = task;
    t->room = room;
    return true;
}

/* Takes a task, or another window or depth of a known task. A task for which there is no room is
 * lost, and the master finds out by its silence. */
static void on_work(struct search *s, const struct peer_message *m)
{
    const struct task_offer *o = &m->offer;
    struct task_work *t = task_work_of(s);
    struct task *task = task_of(t, o->key);
    const bool is_valid = m->length <= TASK_PLIES && o->depth >= 1 &&
                          o->depth <= SEARCH_DEPTH_MAX && o->alpha < o->beta;
    if (!is_valid || (task == NULL && !has_room(t))) {
        return;
    }
    if (o->asks) { /* for a sign that the task is here */
        struct peer_message sign;
        peer_message(s, &sign, TASK_RESULT);
        sign.known.key = o->key;
        sign.known.request = o->request;
        peers_send(s, m->from, &sign);
    }
    if (task != NULL && (int32_t)(o->request - task->request) <= 0) {
        return; /* this task is known, or a later message about it came first */
    }
    const bool is_running = t->is_running && t->running.key == o->key &&
                            (o->alpha < t->running.alpha || o->beta > t->running.beta);
    uint8_t done = task == NULL ? 0 : task->done;
    if (task == NULL) {
        task = &t->task[t->count++];
    }
    done = done >= o->depth ? (uint8_t)(o->depth - 1) : done; /* once more, in the new window */
    *task = (struct task){.key = o->key,
                          .signature = o->signature,
                          .request = o->request,
                          .alpha = o->alpha,
                          .beta = o->beta,
                          .depth = (uint8_t)o->depth,
                          .done = done,
                          .iteration = (uint8_t)o->iteration,
                          .cut_node = o->cut_node,
                          .from = (uint16_t)m->from,
                          .length = m->length};
    memcpy(task->path, m->moves, m->length * sizeof task->path[0]);
    if (is_running || (t->is_running && s->options.algorithm->handover->tasks->preempts &&
                       is_first(task, &t->running))) {
        stop_running(s);
    }
}

static void remove_task(struct task_work *t, struct task *task)
{
    CHECK_THAT(task >= t->task && task < t->task + t->count, "a task that is removed is here");
    *task = t->task[--t->count];
}

static void on_drop(struct search *s, const struct peer_message *m)
{
    struct task_work *t = task_work_of(s);
    struct task *task = task_of(t, m->drop.key);
    if (task == NULL || (int32_t)(m->drop.request - task->request) < 0) {
        return;
    }
    remove_task(t, task);
    if (t->is_running && t->running.key == m->drop.key) {
        stop_running(s);
    }
}

void task_work_serve(struct search *s)
{
    struct peer_message m;
    if (!peers_are_there(s)) {
        return;
    }
    if (!peers_helps(s)) {
        tasks_take_results(s);
        return;
    }
    while (peers_receive(s, &m)) {
        if (m.kind == TASK_WORK) {
            on_work(s, &m);
        } else if (m.kind == TASK_DROP) {
            on_drop(s, &m);
        }
    }
}

/* Searches the task's position to this depth, by its path from the root. Also VISIT_STOP: the path
 * is not legal, as another process may send anything. */
static enum search_visit search_task(struct search *s, const struct task *task, unsigned depth)
{
    struct node *n = &s->node[task->length];
    const struct game *game = s->options.game;
    unsigned made = 0;
    while (made < task->length && game_is_legal(game, s->position, task->path[made])) {
        s->node[made].in_flight = s->node[made].has_children = false;
        s->node[made].split_id = 0;
        s->node[made].move_now = task->path[made];
        game->make(s->position, task->path[made++]);
    }
    if (made < task->length) {
        while (made > 0) {
            game->unmake(s->position, task->path[--made]);
        }
        task_work_of(s)->is_illegal = true;
        return VISIT_STOP;
    }
    peers_begin_work(s, task->length, task->iteration);
    node_prepare(n, (int)depth, task->alpha, task->beta, task->cut_node);
    n->split_id = ++task_work_of(s)->serial;
    s->counters.steals++;
    enum search_visit visit = node_search(s, n);
    for (unsigned ply = task->length; ply > 0; ply--) {
        s->options.game->unmake(s->position, task->path[ply - 1]);
    }
    n->split_id = 0;
    return visit;
}

static void report(struct search *s, const struct task *task, uint32_t request, unsigned depth)
{
    const struct node *n = &s->node[task->length];
    struct peer_message m;
    peer_message(s, &m, TASK_RESULT);
    struct task_result *r = &m.known;
    r->key = task->key;
    r->request = request;
    r->depth = (int)depth;
    r->best = n->best;
    r->alpha = n->best > task->alpha ? n->best : -GAME_INFINITE;
    r->beta = n->best < task->beta ? n->best : GAME_INFINITE;
    r->move = n->best > task->alpha ? n->best_move : 0;
    peers_send(s, task->from, &m);
}

/* Searches the next iteration of the most important task. False: there is none. */
static bool search_next(struct search *s)
{
    struct task_work *t = task_work_of(s);
    struct task *first = first_task(t);
    if (first == NULL) {
        return false;
    }
    const struct task task = *first; /* the list may change meanwhile */
    unsigned depth = task.depth;
    while (depth > (unsigned)task.done + STEP) {
        depth -= STEP;
    }
    t->running = task;
    t->is_running = t->is_wanted = true;
    t->is_illegal = false;
    enum search_visit visit = search_task(s, &task, depth);
    t->is_running = false;
    if (t->is_illegal) {
        remove_task(t, first);
        return true;
    }
    if (visit != VISIT_VALUE || s->stopped || !t->is_wanted) {
        return true;
    }
    first = task_of(t, task.key); /* what is wanted now, in the same window or a part of it */
    CHECK_THAT(first != NULL, "a task that is wanted is here");
    if (depth == first->depth || s->options.algorithm->handover->tasks->reports) {
        report(s, &task, first->request, depth);
    }
    first->done = (uint8_t)depth;
    if (depth >= first->depth) {
        remove_task(t, first);
    }
    return true;
}

bool task_work_run(struct search *s)
{
    if (!peers_are_there(s)) {
        return false;
    }
    tasks_begin(s);
    task_work_of(s)->count = 0;
    task_work_of(s)->is_running = false;
    return peers_help(s, search_next);
}
