#include "worker/search/handover/peers.h"

#include "worker/search/node.h"

#include <string.h>

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

bool peers_help(struct search *s, bool (*work)(struct search *s))
{
    if (!peers_helps(s)) {
        return false;
    }
    s->iteration = 0; /* that of the last search says nothing of this one */
    for (;;) {
        s->start_ply = s->poll_ply = 0;
        s->unwind = NO_UNWIND;
        s->window_changed = false;
        s->stopped = s->env.poll(s->env.self, s) || s->stopped;
        if (s->stopped) {
            return true;
        }
        s->options.algorithm->handover->serve(s);
        if (!work(s)) {
            s->env.peers->wait(s->env.peers->self);
        }
    }
}

void peers_begin_work(struct search *s, unsigned ply, unsigned iteration)
{
    CHECK_THAT(ply <= SEARCH_PLY_MAX && iteration <= SEARCH_DEPTH_MAX, "work is in a tree");
    s->start_ply = s->poll_ply = ply;
    s->iteration = iteration;
    s->moves_used = s->children_used = 0;
    node_update_inflight_depth(s);
}

bool peers_receive(struct search *s, struct peer_message *out)
{
    const struct peer_port *port = s->env.peers;
    while (port->receive(port->self, out)) {
        CHECK_THAT(out->from < port->count, "who sent a message is known here");
        if (out->job == port->job) {
            return true;
        }
    }
    s->counters.mailbox_lost = port->lost;
    return false;
}
