#include "ttserver/net/connections.h"

#include "common/rng.h"

#include <stdlib.h>
#include <string.h>

enum {
    TURN_NS = 100000, /* then new bytes and timers get their turn */
    SETTLE_NS = 50000, /* a push to all workers must not stop all else */
    HINT_WAITING_MAX = 32768, /* bytes: who has not read them gets no hints besides */
    SILENT = 3, /* heartbeats without a byte; then each tick checks whether the session has ended */
    PENDING_MIN = 64,
    ACCEPT_AT_A_TIME = 4, /* between turns of those who are connected */
};

static uint64_t time_ns(void *self)
{
    const struct shard_connections *p = self;
    return p->port->now_ns(p->port->self);
}

static struct connection *find(const struct shard_connections *p, const uint8_t *route)
{
    uint32_t slot;
    memcpy(&slot, route, sizeof slot);
    struct connection *c = p->connection[slot];
    return c != NULL && memcmp(c->route, route, sizeof c->route) == 0 ? c : NULL;
}

static const void *user_of(void *self, const uint8_t key[ZMTP_KEY_BYTES])
{
    const struct shard_connections *p = self;
    return keys_find(p->allowed->user, p->allowed->count, key);
}

/* ---- watching ---- */

static void watch_for(struct connection *c, unsigned events)
{
    if (events != c->watched && c->port->watch(c->socket, c, events)) {
        c->watched = events;
    }
}

/* A connection whose bytes are known to wait is not looked at again before it was served: a loop
 * over thousands of them would leave no time to serve. */
static void watch(struct connection *c)
{
    bool is_known = c->turn.waits && !(c->watched & SOCKET_READABLE);
    watch_for(c, (connection_is_paused(c) || is_known ? 0U : SOCKET_READABLE) |
                     (connection_waiting(c) > 0 ? SOCKET_WRITABLE : 0U));
}

static void set_dirty(struct shard_connections *p, struct connection *c)
{
    if (!c->is_dirty) {
        c->is_dirty = true;
        p->pushed++;
        TAILQ_INSERT_TAIL(&p->dirty, c, to_flush);
    }
}

static void set_clean(struct shard_connections *p, struct connection *c)
{
    if (c->is_dirty) {
        c->is_dirty = false;
        TAILQ_REMOVE(&p->dirty, c, to_flush);
    }
}

/* A peer that may be served on has bytes that were kept, or gets them from the kernel later. */
static void flush(struct shard_connections *p, struct connection *c)
{
    bool was_paused = connection_is_paused(c);
    connection_flush(c);
    if (c->is_broken) {
        set_dirty(p, c);
        return;
    }
    set_clean(p, c);
    watch(c);
    if (was_paused && !connection_is_paused(c) && c->in_used >= c->need) {
        turns_wait(&p->turns, &c->turn);
    }
}

void connections_ready(struct connection *c, unsigned events)
{
    struct shard_connections *p = c->owner;
    if (events & SOCKET_WRITABLE) {
        flush(p, c);
    }
    if (c->turn.waits) {
        watch_for(c, c->watched & ~(unsigned)SOCKET_READABLE);
    } else if ((events & SOCKET_READABLE) && !connection_is_paused(c) && !c->is_broken) {
        turns_wait(&p->turns, &c->turn);
    }
}

void connections_failed(struct connection *c)
{
    c->is_broken = true;
    set_dirty(c->owner, c);
}

/* ---- the core's steps ---- */

static void send_one(void *self, const uint8_t *route, const struct ttcore_message *message)
{
    struct shard_connections *p = self;
    struct connection *c = find(p, route);
    if (c == NULL || c->is_broken) {
        p->outside.unreachable++;
    } else if (message->may_drop && connection_waiting(c) > HINT_WAITING_MAX) {
        p->outside.hints_dropped++;
    } else if (connection_put(c, message->bytes, message->length)) {
        p->outside.sent++;
        set_dirty(p, c);
    } else {
        p->outside.queue_full++;
        if (c->is_broken) { /* no memory */
            set_dirty(p, c);
        }
    }
}

/* A peer that has gone pays no more. */
static void charge(void *self, const uint8_t *cause, uint64_t ns)
{
    struct connection *c = find(self, cause);
    if (c != NULL) {
        turns_charge(c->turn.user, ns);
    }
}

static void step(struct shard_connections *p, struct ttcore_event *event)
{
    const struct ttcore_actions *actions = &p->actions;
    event->now_us = time_ns(p) / 1000;
    ttcore_step(p->core, event, &p->actions);
    for (uint32_t m = 0; m < actions->messages; m++) {
        const struct ttcore_message *message = &actions->message[m];
        uint32_t now =
            pushes_take(&p->pushes, message, actions->target, event->route) ? 0 : message->targets;
        for (uint32_t t = 0; t < now; t++) {
            send_one(p, actions->target[message->first + t].route, message);
        }
    }
}

/* ---- connections without a session, and the end of any ---- */

static void make_pending(struct shard_connections *p, struct connection *c, uint64_t now_us)
{
    c->pending_us = now_us;
    c->pending_at = p->pending++;
    p->without_session[c->pending_at] = c;
    who_set_pending(&p->users, c, true);
    TAILQ_INSERT_TAIL(&p->by_age, c, by_silence);
}

static void end_pending(struct shard_connections *p, struct connection *c)
{
    struct connection *last = p->without_session[--p->pending];
    p->without_session[c->pending_at] = last;
    last->pending_at = c->pending_at;
    who_set_pending(&p->users, c, false);
    TAILQ_REMOVE(&p->by_age, c, by_silence);
}

static void disconnect(struct shard_connections *p, struct connection *c)
{
    uint8_t route[CONNECTION_ROUTE];
    struct ttcore_event gone = {.kind = TTCORE_GONE, .route = route, .route_length = sizeof route};
    memcpy(route, c->route, sizeof route);
    p->connection[c->slot] = NULL;
    p->free_slot[--p->open] = c->slot;
    if (c->is_pending) {
        end_pending(p, c);
    } else {
        TAILQ_REMOVE(&p->by_silence, c, by_silence);
    }
    set_clean(p, c);
    pushes_forget(&p->pushes, c);
    who_leave(&p->users, c);
    connection_close(c);
    free(c);
    step(p, &gone);
}

/* Sends what was queued for one connection, and for others until that time; closes those that are
 * broken, which may queue more. */
static void settle(struct shard_connections *p, uint64_t until_ns)
{
    struct connection *c;
    for (bool now = true; now && (c = TAILQ_FIRST(&p->dirty)); now = time_ns(p) < until_ns) {
        if (c->is_broken) {
            disconnect(p, c);
        } else {
            flush(p, c);
        }
    }
}

/* Over the budget for all, a slow reader goes, or who sends half a message. */
static void keep_budget(struct shard_connections *p)
{
    while (p->open > 0 &&
           p->held > p->options.held_max + (size_t)(p->open - p->pending) * CONNECTIONS_HELD_EACH) {
        p->outside.slow_closed++;
        disconnect(p, who_largest(p->connection, p->connections_max));
    }
}

/* A connection is pending while it has no session. */
static void check_session(struct shard_connections *p, struct connection *c, uint64_t now_us)
{
    bool is_known = ttcore_knows(p->core, c->route, sizeof c->route);
    if (c->is_pending && is_known) {
        end_pending(p, c);
        TAILQ_INSERT_TAIL(&p->by_silence, c, by_silence);
    } else if (!c->is_pending && !is_known) {
        TAILQ_REMOVE(&p->by_silence, c, by_silence);
        make_pending(p, c, now_us);
    }
}

static bool is_full(const struct shard_connections *p)
{
    return p->pending >= p->pending_max || p->open == p->connections_max;
}

/* Not the oldest: it would be the next to be served, and a flood would keep all others of its
 * address out. */
static void make_room(struct shard_connections *p)
{
    if (p->pending > 0) {
        p->outside.pending_closed++;
        disconnect(p, who_draw_pending(&p->users, p->without_session, p->pending, &p->rng));
    }
}

static void add_connection(struct shard_connections *p, void *socket, const struct in6_addr *from)
{
    if (is_full(p)) {
        make_room(p);
    }
    struct connection *c = p->open < p->connections_max ? calloc(1, sizeof *c) : NULL;
    if (c == NULL) {
        p->port->close(socket);
        return;
    }
    connection_init(c, p->port, socket, &p->zmtp, &p->held);
    c->owner = p;
    c->slot = p->free_slot[p->open++];
    p->serial++;
    memcpy(c->route, &c->slot, sizeof c->slot);
    memcpy(c->route + sizeof c->slot, &p->serial, sizeof p->serial);
    c->received_us = time_ns(p) / 1000;
    p->connection[c->slot] = c;
    make_pending(p, c, c->received_us);
    if (p->zmtp.needs_curve) {
        c->turn.user = &p->newcomers; /* on this machine; others have an address each */
    }
    who_join(&p->users, c, who_by_address(c, from));
    watch(c);
    if (c->is_broken || c->watched == 0) {
        connections_failed(c);
    }
}

bool connections_accept(struct shard_connections *p, void *listener)
{
    enum socket_accepted accepted = SOCKET_ACCEPTED;
    bool was_full = false;
    for (unsigned i = 0; i < ACCEPT_AT_A_TIME && accepted != SOCKET_NOBODY; i++) {
        void *socket;
        struct in6_addr from;
        was_full = was_full || is_full(p);
        accepted = p->port->accept(p->port->self, listener, &socket, &from);
        if (accepted == SOCKET_ACCEPTED) {
            add_connection(p, socket, &from);
        } else if (accepted == SOCKET_NO_ROOM) {
            make_room(p);
            was_full = true;
        }
    }
    return !was_full;
}

/* ---- serving ---- */

static void note_received(struct shard_connections *p, struct connection *c, uint64_t now_us)
{
    c->received_us = now_us;
    if (!c->is_pending) {
        TAILQ_REMOVE(&p->by_silence, c, by_silence);
        TAILQ_INSERT_TAIL(&p->by_silence, c, by_silence);
    }
}

/* Serves the connection until that time, or until its bytes are out, or it must wait for its peer
 * to read. Returns whether it has more to be served. */
static bool serve(struct shard_connections *p, struct connection *c, uint64_t until_ns)
{
    struct zmtp_taken taken;
    size_t left = c->in_used;
    uint8_t *at = c->in;
    enum zmtp_result result = ZMTP_GOING_ON;

    /* 1. Read, where what is here is no whole item. */
    if (left < c->need) {
        at = connection_read(c, p->scratch, &left);
        if (at == NULL) {
            return false;
        }
        note_received(p, c, time_ns(p) / 1000);
    }

    /* 2. Take item after item. A message is for the core, which sees an empty one, malformed, in
     * place of one that is too long or in several frames. */
    while (result != ZMTP_WAIT && !c->is_broken && !connection_is_paused(c) &&
           time_ns(p) < until_ns) {
        result = zmtp_take(&c->zmtp, at, left, &taken);
        at += taken.used;
        left -= taken.used;
        if (taken.reply_length > 0) {
            connection_put_raw(c, taken.reply, taken.reply_length);
        }
        if (result == ZMTP_FRAME && c->is_skipping) {
            c->is_skipping = taken.more;
        } else if (result == ZMTP_FRAME) {
            struct ttcore_event event = {.kind = TTCORE_MESSAGE,
                                         .route = c->route,
                                         .route_length = sizeof c->route,
                                         .peer = &c->peer};
            c->is_skipping = taken.more;
            p->received++;
            if (taken.more) {
                p->outside.multipart++;
            } else if (taken.frame_length > PROTO_MESSAGE_MAX) {
                p->outside.oversized++;
            } else {
                event.bytes = taken.frame;
                event.length = taken.frame_length;
            }
            step(p, &event);
        } else if (result == ZMTP_READY) {
            c->is_ready = true;
            if (taken.user != NULL) {
                who_join(&p->users, c, who_by_key(c, taken.user));
            }
        } else if (result == ZMTP_ENDED) {
            connection_flush(c);
            c->is_broken = true;
            if (!c->is_ready) {
                p->outside.handshakes_failed++;
                who_refused(&p->refusals, c, taken.why);
            }
        }
    }

    /* 3. Keep what is left, and send what was answered. */
    c->need = result == ZMTP_WAIT ? taken.need : 1;
    connection_keep(c, at, left);
    check_session(p, c, c->received_us);
    flush(p, c);
    return !c->is_broken && !connection_is_paused(c) && left >= c->need;
}

/* What is pushed to others is sent later, but paid for now. */
static void take_turn(struct shard_connections *p, struct turns_member *member)
{
    struct connection *c =
        (struct connection *)(void *)((char *)member - offsetof(struct connection, turn));
    struct turns_user *user = member->user;
    struct who_user *shared = c->shared;
    uint64_t begin_ns = time_ns(p);
    if (shared != NULL) {
        shared->connections++; /* it lives until it was charged */
    }
    p->pushed = 0;
    size_t held = p->pushes.must.held;
    bool waits = serve(p, c, begin_ns + (uint64_t)user->credit_ns);
    if (p->pushes.must.held > held) {
        pushes_keep_back(&p->pushes, c);
        waits = waits && !c->is_held_back;
    }
    turns_served(&p->turns, member, waits);
    if (c->is_broken) {
        set_dirty(p, c);
    } else {
        watch(c);
    }
    /* A user pays for CPU time, not for the time in which others had the CPU. To ask for it is a
     * system call: only when a turn took too long. */
    uint64_t cost_ns = time_ns(p) - begin_ns;
    if (cost_ns > 2 * TURNS_QUANTUM_NS) {
        uint64_t cpu_ns = p->port->cpu_ns(p->port->self), spent_ns = cpu_ns - p->cpu_ns;
        p->cpu_ns = cpu_ns;
        cost_ns = cost_ns < spent_ns ? cost_ns : spent_ns;
    }
    turns_charge(user, cost_ns + (uint64_t)p->pushed * PUSHES_FLUSH_NS);
    keep_budget(p);
    who_release(&p->users, shared);
}

bool connections_turn(struct shard_connections *p)
{
    uint64_t begin_ns = time_ns(p);
    struct turns_member *member;
    p->cpu_ns = p->port->cpu_ns(p->port->self);
    do {
        settle(p, time_ns(p) + SETTLE_NS);
        member = turns_next(&p->turns);
        if (member != NULL) {
            take_turn(p, member);
        }
    } while (member != NULL && time_ns(p) - begin_ns < TURN_NS);
    if (ttcore_has_more(p->core)) {
        struct ttcore_event more = {.kind = TTCORE_MORE};
        step(p, &more);
    }
    pushes_some(&p->pushes);
    for (struct connection *c; (c = pushes_let_go(&p->pushes)) != NULL; watch(c)) {
        if (c->in_used >= c->need && !connection_is_paused(c)) {
            turns_wait(&p->turns, &c->turn);
        }
    }
    settle(p, time_ns(p) + SETTLE_NS);
    keep_budget(p);
    return turns_next(&p->turns) != NULL || !TAILQ_EMPTY(&p->dirty) || pushes_wait(&p->pushes) ||
           ttcore_has_more(p->core);
}

/* ---- time ---- */

/* Silence ends a session, and then its connection. No PING goes out: libzmq 4.3 aborts its process
 * when it reads one after the connection broke while its receive queue was full, as after a
 * suspend. */
void connections_tick(struct shard_connections *p)
{
    struct ttcore_event event = {.kind = TTCORE_TICK};
    struct connection *c, *next;
    uint64_t now_us = time_ns(p) / 1000;
    for (uint32_t i = 0; i < p->connections_max; i++) {
        c = p->connection[i];
        if (c != NULL && (c->turn.waits || c->is_held_back) && !c->is_pending) {
            ttcore_touch(p->core, c->route, sizeof c->route, now_us); /* it has spoken */
            note_received(p, c, now_us);
        }
    }
    step(p, &event);
    now_us = event.now_us;
    who_log_refusals(&p->refusals, p->options.program, p->outside.handshakes_failed, now_us);
    while ((c = TAILQ_FIRST(&p->by_age)) != NULL &&
           now_us - c->pending_us >= p->options.pending_ms * UINT64_C(1000)) {
        p->outside.pending_closed++;
        disconnect(p, c);
    }
    for (c = TAILQ_FIRST(&p->by_silence);
         c != NULL &&
         now_us - c->received_us >= SILENT * p->options.core.heartbeat_ms * UINT64_C(1000);
         c = next) {
        next = TAILQ_NEXT(c, by_silence);
        check_session(p, c, now_us);
    }
    settle(p, time_ns(p) + SETTLE_NS);
    keep_budget(p);
}

void connections_dismiss(struct shard_connections *p)
{
    struct ttcore_event event = {.kind = TTCORE_STOP};
    step(p, &event);
    pushes_all(&p->pushes);
    settle(p, UINT64_MAX);
}

/* ---- life ---- */

void connections_reread(struct shard_connections *p)
{
    who_put(p->options.access, p->allowed);
    p->allowed = who_get(p->options.access);
    for (uint32_t i = 0; i < p->connections_max; i++) {
        struct connection *c = p->connection[i];
        if (c != NULL && c->has_key) {
            const struct keys_user *user = keys_find(p->allowed->user, p->allowed->count, c->key);
            if (user == NULL || (int)user->role != c->key_role) {
                connections_failed(c);
            }
        }
    }
    settle(p, UINT64_MAX);
}

enum err connections_open(struct shard_connections *p, const struct connections_options *options)
{
    struct ttcore_options core = options->core;
    memset(p, 0, sizeof *p);
    p->options = *options;
    p->port = options->port;
    p->users.turns = &p->turns;
    p->users.seed = rng_mix(core.secret ^ core.boot);
    p->rng = rng_mix(p->users.seed);
    p->pending_max = core.sessions_max / 4 + PENDING_MIN;
    p->connections_max = core.sessions_max + p->pending_max;
    if (p->connections_max > options->connections_max) {
        p->connections_max = options->connections_max;
        p->pending_max =
            p->pending_max < p->connections_max / 4 ? p->pending_max : p->connections_max / 4 + 1;
        /* The quota of a user is a part of what there is room for. */
        const uint32_t room = p->connections_max - p->pending_max;
        core.sessions_max = core.sessions_max < room ? core.sessions_max : room;
    }
    TAILQ_INIT(&p->by_silence);
    TAILQ_INIT(&p->by_age);
    TAILQ_INIT(&p->dirty);
    p->pushes = (struct pushes){.send = send_one,
                                .charge = charge,
                                .now_ns = time_ns,
                                .self = p,
                                .hints_dropped = &p->outside.hints_dropped,
                                .at_once = options->pushed_at_once != 0 ? options->pushed_at_once
                                                                        : PUSHES_AT_ONCE};
    pushes_init(&p->pushes, core.sessions_max);
    turns_init(&p->turns);
    turns_user_init(&p->newcomers);
    p->zmtp = (struct zmtp_server){.needs_curve = p->options.access->dir != NULL,
                                   .user_of = user_of,
                                   .self = p,
                                   .message_max = CONNECTION_MESSAGE_MAX};
    memcpy(p->zmtp.public_key, p->options.access->server.public_key, sizeof p->zmtp.public_key);
    memcpy(p->zmtp.secret_key, p->options.access->server.secret_key, sizeof p->zmtp.secret_key);
    p->allowed = who_get(p->options.access);
    p->connection = calloc(p->connections_max, sizeof *p->connection);
    p->free_slot = calloc(p->connections_max, sizeof *p->free_slot);
    p->without_session = calloc(p->connections_max, sizeof(struct connection *));
    core.outside = &p->outside;
    enum err err = p->connection == NULL || p->free_slot == NULL || p->without_session == NULL
                       ? ERR_NOMEM
                       : ERR_OK;
    err = err ? err : ttcore_open(&p->core, &core);
    err = err ? err : ttcore_actions_open(&p->actions, core.sessions_max, core.jobs_max);
    for (uint32_t i = 0; err == ERR_OK && i < p->connections_max; i++) {
        p->free_slot[i] = i;
    }
    return err;
}

void connections_disconnect(struct shard_connections *p)
{
    for (uint32_t i = 0; p->connection != NULL && i < p->connections_max; i++) {
        if (p->connection[i] != NULL) {
            disconnect(p, p->connection[i]);
        }
    }
}

void connections_close(struct shard_connections *p)
{
    who_put(p->options.access, p->allowed);
    p->allowed = NULL;
    keys_wipe(&p->zmtp, sizeof p->zmtp);
    free(p->connection);
    free(p->free_slot);
    free(p->without_session);
    p->connection = p->without_session = NULL;
    p->free_slot = NULL;
    pushes_close(&p->pushes);
    ttcore_actions_close(&p->actions);
    ttcore_close(&p->core);
}
