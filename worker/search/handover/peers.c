#include "worker/search/handover/peers.h"

#include "worker/search/handover/steal.h"
#include "worker/search/handover/tasks.h"
#include "worker/search/node.h"

#include <stdlib.h>
#include <string.h>

enum err peers_open_work(struct peers *p)
{
    *p = (struct peers){steal_open(), tasks_open(), task_work_open()};
    if (p->steal == NULL || p->tasks == NULL || p->work == NULL) {
        peers_close_work(p);
        return ERR_NOMEM;
    }
    return ERR_OK;
}

void peers_close_work(struct peers *p)
{
    free(p->steal);
    p->steal = NULL;
    tasks_free(&p->tasks);
    task_work_free(&p->work);
}

size_t peer_message_size(const struct peer_message *m)
{
    return offsetof(struct peer_message, moves) + m->length * sizeof m->moves[0];
}

void peer_message(const struct search *s, struct peer_message *m, enum peer_kind kind)
{
    memset(m, 0, sizeof *m);
    m->job = s->env.peers->job;
    m->kind = kind;
    m->from = s->env.peers->index;
}

void peer_set_path(const struct search *s, struct peer_message *m, unsigned length)
{
    m->length = (uint16_t)length;
    for (unsigned ply = 0; ply < length; ply++) {
        m->moves[ply] = s->node[ply].move_now;
    }
}

uint32_t peers_now_ms(const struct search *s)
{
    return (uint32_t)(s->env.peers->now_us(s->env.peers->self) / 1000);
}

void peers_send(struct search *s, unsigned to, const struct peer_message *m)
{
    s->env.peers->send(s->env.peers->self, to, m);
}

bool peers_are_there(const struct search *s)
{
    return s->env.peers != NULL && !s->options.full && algorithm_needs_peers(s->options.algorithm);
}

bool peers_helps(const struct search *s)
{
    return peers_are_there(s) && !s->env.peers->owns_root;
}

static void help(struct search *s)
{
    const bool steals = s->options.algorithm->handover->steals != NULL;
    s->iteration = 0; /* that of the last search says nothing of this one */
    for (;;) {
        s->start_ply = s->poll_ply = 0;
        s->unwind = NO_UNWIND;
        s->window_changed = false;
        s->stopped = s->env.poll(s->env.self, s) || s->stopped;
        if (s->stopped) {
            return;
        }
        peers_serve(s);
        if (!(steals ? steal_work(s) : tasks_work(s))) {
            s->env.peers->wait(s->env.peers->self);
        }
    }
}

bool peers_run(struct search *s)
{
    if (!peers_are_there(s)) {
        return false;
    }
    if (s->options.algorithm->handover->steals != NULL) {
        steal_begin(s);
    } else {
        tasks_begin(s);
        task_work_begin(s);
    }
    if (!peers_helps(s)) {
        return false;
    }
    help(s);
    return true;
}

void peers_begin_work(struct search *s, unsigned ply, unsigned iteration)
{
    CHECK_THAT(ply <= SEARCH_PLY_MAX && iteration <= SEARCH_DEPTH_MAX, "work is in a tree");
    s->start_ply = s->poll_ply = ply;
    s->iteration = iteration;
    s->moves_used = s->children_used = 0;
    node_update_inflight_depth(s);
}

void peers_serve(struct search *s)
{
    const struct peer_port *port = s->env.peers;
    struct peer_message m;
    if (!peers_are_there(s)) {
        return;
    }
    const bool steals = s->options.algorithm->handover->steals != NULL;
    if (steals) {
        steal_refuse_parked(s);
    }
    while (port->receive(port->self, &m)) {
        CHECK_THAT(m.from < port->count, "who sent a message is known here");
        if (m.job == port->job) {
            steals ? steal_take(s, &m) : tasks_take(s, &m);
        }
    }
    s->counters.mailbox_lost = port->lost;
}
