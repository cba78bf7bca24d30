#include "worker/table/remote.h"

#include "common/tt/ops.h"
#include "worker/table/broadcast.h"
#include "worker/table/history_exchange.h"
#include "worker/table/remote_depth.h"

#include <stdlib.h>

enum {
    DEFERRED_MAX = 32,
    PEEKS_AHEAD_MAX = 12,
    PEEK_AGE_ROUND_TRIPS = 6, /* an older peek is out of date */
    CONNECT_REST_US = 100000, /* for the others once one shard is up: they may join later */
    OTHERS_FIRST_US = 10000, /* at the begin of a search others are supposed to be there */
    OTHERS_US = 50000, /* how long a sign of other searchers counts */
    LONG_WAIT_US = 1000, /* the search polls soon after it: a time limit counts no nodes */
    RENEWALS = 4, /* in the time that a shard keeps an in-flight entry */
    RENEW_EVERY_MS = 15000, /* at most: this also makes up for a NODE_DONE that got lost */
    RENEW_PAUSE_MIN_US = 5000,
    CLAIMS_PAUSE_MIN_US = 100, /* a host's messages with foreign claims ... */
    CLAIMS_PAUSE_MAX_US = 500, /* (where that takes longer they would come too late: asks stay) */
    CLAIMS_COST = 50, /* ... cost at most one part in so many of its searchers' time */
};

enum ticket_state {
    TICKET_LOCAL, /* below the remote depth limit */
    TICKET_KNOWN, /* the host's table resolved it: not entered */
    TICKET_REMOTE, /* registered in the host's table, and at a shard */
    TICKET_LOST, /* in the host's table alone; others are to get the result all the same */
};

/* An ask whose answer the search does not wait for. */
struct deferred {
    struct tt_ask ask;
    uint32_t request; /* the client's ticket */
};

struct remote {
    /* fixed after open */
    struct client_lane lane;
    struct remote_events events;
    enum proto_role role;
    unsigned servers;
    struct embedded_port *local;
    /* fixed while a search runs */
    struct table_port local_port;
    bool uses_shards, waits;
    uint64_t alone_until_us; /* no shard is used until then; 0: that is over */
    struct remote_limit limit;
    uint64_t namespace_id; /* of the last HELLO */
    /* state */
    struct remote_depth remote_depth;
    uint64_t others_until_us; /* signs of other searchers count until then */
    uint64_t rest_until_us; /* nothing is read until then */
    uint64_t renew_due_us;
    struct tt_answer known; /* of the host's table, to the ask that was sent last */
    struct deferred deferred[DEFERRED_MAX];
    unsigned deferred_count;
    unsigned peeks_ahead; /* sent and not ended */
    struct history_exchange history;
    struct share share;
    /* statistics */
    uint64_t waited_us; /* for answers, in this search */
    uint64_t talked_us; /* the same, and for all else that has to do with shards */
};

/* ---- the client and its shell ---- */

static uint64_t now_us(const struct remote *r)
{
    return lane_now(&r->lane);
}

/* From that time on this searcher did nothing but talk with shards. Never from inside another. */
static void count_talk(struct remote *r, uint64_t begin_us)
{
    r->talked_us += now_us(r) - begin_us;
}

static void take_done(struct remote *r, const struct proto_node_done *done)
{
    for (uint32_t i = 0; i < done->list.count; i++) {
        embedded_take(r->local, &done->list.at[i], 1, now_us(r));
        notices_put(embedded_notices(r->local), &done->list.at[i]);
    }
}

static void take_history(struct remote *r, unsigned shard,
                         const struct proto_history_answer *answer)
{
    history_exchange_take(&r->history, client_shard_boot(r->lane.client, shard), answer, now_us(r));
}

static void take_shared(struct remote *r, const struct proto_share *message)
{
    if (message->list.count > 0 && message->table_id != embedded_table_id(r->local->table)) {
        uint64_t now = now_us(r);
        r->others_until_us = now + OTHERS_US;
        share_take(&r->share, message, now, r->others_until_us);
    }
}

static void take_event(struct remote *r, const struct client_event *e)
{
    if (e->kind == CLIENT_NODE_DONE) {
        take_done(r, e->node_done);
    } else if (e->kind == CLIENT_HISTORY) {
        take_history(r, e->shard, e->history);
    } else if (e->kind == CLIENT_SHARED) {
        take_shared(r, e->shared);
    } else if (r->events.take != NULL) {
        r->events.take(r->events.self, e);
    }
}

/* Reads what has come. */
static void take_events(struct remote *r)
{
    struct client_event e;
    while (lane_next(&r->lane, &e)) {
        take_event(r, &e);
    }
}

/* Shards that fell without a word: the next look at jobs is to show it. */
static void take_changes(struct remote *r)
{
    struct client_event e;
    while (client_next(r->lane.client, &e)) {
        take_event(r, &e);
    }
}

enum err remote_open(struct remote **out, const struct remote_options *options)
{
    struct remote *r = calloc(1, sizeof *r);
    if (r == NULL) {
        return ERR_NOMEM;
    }
    r->local = options->local;
    r->local_port = embedded_table_port(r->local);
    r->lane.shell = options->shell;
    r->events = options->events;
    r->servers = options->client.shards;
    r->role = options->client.role;
    r->namespace_id = options->client.namespace_id;
    r->remote_depth.depth = r->remote_depth.now = REMOTE_DEPTH_FIRST;
    struct client_options client = options->client;
    client.table_id = embedded_table_id(r->local->table);
    client.hello_flags = PROTO_WANTS_NODE_DONE;
    if (options->share_depth > 0 &&
        r->local->slot == 0) { /* one searcher takes them for all of the process */
        client.hello_flags |= PROTO_WANTS_RESULTS;
    }
    enum err err = lane_open(&r->lane, &client);
    if (err != ERR_OK) {
        remote_close(&r);
        return err;
    }
    r->share =
        (struct share){.client = r->lane.client, .local = r->local, .depth = options->share_depth};
    *out = r;
    return ERR_OK;
}

void remote_close(struct remote **remote)
{
    struct remote *r = *remote;
    if (r == NULL) {
        return;
    }
    lane_close(&r->lane);
    free(r);
    *remote = NULL;
}

/* Returns when the client wants to be served again. */
static uint64_t serve_sockets(struct remote *r)
{
    take_events(r);
    uint64_t due = lane_tick(&r->lane);
    take_changes(r);
    return due;
}

void remote_wait(struct remote *r, unsigned wait_ms)
{
    uint64_t until = now_us(r) + wait_ms * UINT64_C(1000);
    uint64_t tick = serve_sockets(r);
    lane_sleep(&r->lane, tick < until ? tick : until);
    (void)serve_sockets(r);
}

unsigned remote_connect(struct remote *r, unsigned wait_ms)
{
    uint64_t until = now_us(r) + wait_ms * UINT64_C(1000);
    bool any = false;
    do {
        remote_wait(r, 10);
        uint64_t rest = now_us(r) + CONNECT_REST_US;
        until = !any && client_shards_up(r->lane.client) > 0 && rest < until ? rest : until;
        any = client_shards_up(r->lane.client) > 0;
    } while (client_shards_up(r->lane.client) < r->servers && now_us(r) < until);
    return client_shards_up(r->lane.client);
}

/* ---- deferred asks ---- */

static void defer(struct remote *r, const struct tt_ask *ask, uint32_t request)
{
    r->deferred[r->deferred_count++] = (struct deferred){*ask, request};
}

/* Where the ask of that ticket is; NULL: not deferred, or answered. */
static struct deferred *find_deferred(struct remote *r, const struct table_ticket *ticket)
{
    for (unsigned i = 0; ticket->later && i < r->deferred_count; i++) {
        if (r->deferred[i].request == ticket->request) {
            return &r->deferred[i];
        }
    }
    return NULL;
}

/* The node of that ticket is left: an answer is of no use any more. */
static void forget_deferred(struct remote *r, const struct table_ticket *ticket)
{
    struct deferred *found = find_deferred(r, ticket);
    if (found != NULL) {
        client_forget(r->lane.client, ticket->request);
        *found = r->deferred[--r->deferred_count];
    }
}

/* ---- foreign claims ---- */

/* Hosts of several searchers, of a job whose algorithm looks at who is where. At selection full the
 * remote depth limit is as good. One who waits for answers wants those of the shards. */
static void begin_claims(struct remote *r)
{
    const unsigned slots = embedded_slots(r->local->table);
    const uint32_t pause_us = r->lane.shell.ask_cost_us * CLAIMS_COST / slots;
    r->local->counts_foreign = r->lane.shell.shares_reach_all && r->share.depth > 0 &&
                               r->uses_shards && !r->waits && !r->local->is_full &&
                               !r->local->results_only && slots > 1;
    r->local->now_us = now_us(r);
    embedded_expect_claims(r->local->table, r->local->now_us);
    r->share.claims_pause_us = pause_us > CLAIMS_PAUSE_MAX_US   ? 0
                               : pause_us > CLAIMS_PAUSE_MIN_US ? pause_us
                                                                : CLAIMS_PAUSE_MIN_US;
}

static void send_shared(struct remote *r)
{
    const uint64_t begin = now_us(r);
    share_send(&r->share, begin);
    count_talk(r, begin);
}

static void say(struct remote *r, uint64_t key, uint8_t depth, enum tt_claim what)
{
    if (share_claim(&r->share, key, depth, what)) {
        send_shared(r);
    }
}

/* The first searcher of this host in a node claims it for all of them, and the last ends that. */
static void claim(struct remote *r, const struct tt_ask *ask, struct table_ticket *ticket,
                  const struct tt_answer *answer)
{
    if (r->share.claims && answer->verdict == TT_OPEN && ask->depth >= EMBEDDED_FOREIGN_DEPTH) {
        ticket->claimed = true;
        if (answer->nproc <= 1) {
            say(r, ask->key, ask->depth, TT_CLAIM_BEGINS);
        }
    }
}

/* Of a node that it has left. */
static void unclaim(struct remote *r, const struct table_ticket *ticket, uint64_t key,
                    uint8_t depth)
{
    if (ticket->claimed && !embedded_is_in_flight(r->local, key, depth)) {
        say(r, key, depth, TT_CLAIM_ENDS);
    }
}

static bool port_sees_foreign(void *self)
{
    const struct remote *r = self;
    return r->share.relies;
}

/* ---- asks ---- */

static bool is_remote(const struct remote *r, unsigned depth)
{
    return depth >= r->remote_depth.now && r->uses_shards && client_shards_up(r->lane.client) > 0;
}

static void port_prefetch(void *self, uint64_t key)
{
    struct remote *r = self;
    r->local_port.prefetch(r->local_port.self, key);
}

/* The table of the host first: its threads sort themselves out there, and to others they are one
 * searcher. The first of them in a node asks its shard, for all. */
static bool port_ask(void *self, const struct tt_ask *ask, struct table_ticket *ticket)
{
    struct remote *r = self;
    ticket->state = TICKET_LOCAL;
    ticket->where = CLIENT_NOWHERE;
    if (!is_remote(r, ask->depth)) {
        return r->local_port.ask(r->local_port.self, ask, ticket);
    }
    ticket->state = TICKET_KNOWN;
    r->local_port.await(r->local_port.self, ask, ticket, &r->known);
    if (r->known.verdict != TT_OPEN) {
        return false;
    }
    ticket->state = TICKET_LOST;
    if (r->known.nproc > 1) {
        return false;
    }
    const uint64_t begin = now_us(r);
    ticket->request = client_ask(r->lane.client, ask, 1, begin, &ticket->where);
    count_talk(r, begin);
    if (ticket->request == 0) {
        return false;
    }
    ticket->state = TICKET_REMOTE;
    if (!r->waits && r->deferred_count < DEFERRED_MAX) {
        ticket->later = true;
        defer(r, ask, ticket->request);
    }
    return !ticket->later;
}

/* Remembers that there are others, who alone can have caused such an answer, and keeps a result, so
 * that the next visit needs no round trip. */
static void take_answer(struct remote *r, const struct tt_ask *ask, const struct tt_answer *answer)
{
    if (answer->verdict != TT_OPEN || answer->nproc > 1) {
        r->others_until_us = now_us(r) + OTHERS_US;
    }
    if (answer->verdict == TT_CUT) {
        struct tt_store store = {
            .key = ask->key,
            .depth = ask->depth,
            .score = answer->score,
            .bound = (uint8_t)tt_bound_of(answer->score, ask->alpha, ask->beta),
            .move = answer->move,
        };
        embedded_take(r->local, &store, 1, now_us(r));
    }
}

/* Serves the sockets until that ask is answered (then `answer`), or that peek (then `peeked`), or
 * given up: by its time-out, or as the search is over. The time counts as waited. */
static enum client_result wait_for(struct remote *r, uint32_t ticket, struct tt_answer *answer,
                                   struct tt_peeked *peeked)
{
    uint64_t begin = now_us(r);
    take_events(r);
    for (;;) {
        uint64_t now = now_us(r);
        enum client_result result = answer != NULL
                                        ? client_answer(r->lane.client, ticket, now, answer)
                                        : client_peeked(r->lane.client, ticket, now, peeked);
        if (result == CLIENT_WAITING && remote_limit_is_over(&r->limit, now)) {
            client_forget(r->lane.client, ticket);
            result = CLIENT_LOST;
        }
        if (result != CLIENT_WAITING) {
            uint64_t waited = now_us(r) - begin;
            r->waited_us += waited;
            r->talked_us += waited;
            if (waited >= LONG_WAIT_US) {
                atomic_store_explicit(embedded_until_poll(r->local), 1, memory_order_relaxed);
            }
            return result;
        }
        uint64_t until = client_deadline(r->lane.client, ticket);
        lane_sleep(&r->lane, remote_limit_wake_us(&r->limit, until, now));
        take_events(r);
    }
}

static void port_release(void *self, const struct table_ticket *ticket,
                         const struct tt_release *release)
{
    struct remote *r = self;
    r->local_port.release(r->local_port.self, ticket, release);
    unclaim(r, ticket, release->key, release->depth);
    if (ticket->state != TICKET_LOCAL) {
        forget_deferred(r, ticket);
        client_release(r->lane.client, ticket->where, release);
    }
}

static void leave_here(struct remote *r, const struct tt_ask *ask,
                       const struct table_ticket *ticket)
{
    struct tt_release release = {.key = ask->key, .depth = ask->depth, .slot = ask->slot};
    r->local_port.release(r->local_port.self, ticket, &release);
    unclaim(r, ticket, ask->key, ask->depth);
}

/* Another shard may own the node by now: then the former owner gets a release. */
static void port_renew(void *self, const struct tt_ask *ask, struct table_ticket *ticket)
{
    struct remote *r = self;
    uint8_t where = CLIENT_NOWHERE;
    if (!is_remote(r, ask->depth) || r->deferred_count == DEFERRED_MAX ||
        find_deferred(r, ticket) != NULL) {
        return;
    }
    uint32_t request = client_ask(r->lane.client, ask, 1, now_us(r), &where);
    if (request == 0) {
        return;
    }
    if (where != ticket->where) {
        struct tt_release release = {.key = ask->key, .depth = ask->depth, .slot = ask->slot};
        client_release(r->lane.client, ticket->where, &release);
    }
    *ticket = (struct table_ticket){.request = request,
                                    .where = where,
                                    .state = TICKET_REMOTE,
                                    .claimed = ticket->claimed,
                                    .later = true};
    defer(r, ask, request);
}

static void port_await(void *self, const struct tt_ask *ask, struct table_ticket *ticket,
                       struct tt_answer *answer)
{
    struct remote *r = self;
    if (ticket->state == TICKET_LOCAL) {
        r->local_port.await(r->local_port.self, ask, ticket, answer);
        claim(r, ask, ticket, answer);
        return;
    }
    *answer = r->known;
    claim(r, ask, ticket, answer);
    if (ticket->state != TICKET_REMOTE || ticket->later) {
        return;
    }
    struct tt_answer remote_answer;
    if (wait_for(r, ticket->request, &remote_answer, NULL) != CLIENT_READY) {
        ticket->state = TICKET_LOST;
        return;
    }
    take_answer(r, ask, &remote_answer);
    *answer = remote_answer;
    if (answer->verdict != TT_OPEN) { /* the node is not entered */
        leave_here(r, ask, ticket);
    }
}

static void port_store(void *self, const struct table_ticket *ticket, const struct tt_store *store)
{
    struct remote *r = self;
    if (share_add(&r->share, store)) {
        send_shared(r);
    }
    r->local_port.store(r->local_port.self, ticket, store);
    if (ticket->state != TICKET_LOCAL) {
        const uint64_t begin = now_us(r);
        forget_deferred(r, ticket);
        client_store(r->lane.client, ticket->where, store);
        count_talk(r, begin);
    }
}

/* ---- peeks ---- */

/* Foreign claims tell it here, and of more nodes. */
static bool peeks_at_shards(const struct remote *r, unsigned depth)
{
    return !r->share.relies && is_remote(r, depth);
}

static void port_peek(void *self, const struct tt_peek *peek, unsigned count, struct tt_peeked *out)
{
    struct remote *r = self;
    if (peeks_at_shards(r, peek[0].depth)) {
        uint32_t ticket = client_peek(r->lane.client, peek, count, now_us(r));
        if (ticket != 0 && wait_for(r, ticket, NULL, out) == CLIENT_READY) {
            return;
        }
    }
    r->local_port.peek(r->local_port.self, peek, count, out);
}

static void port_peek_near(void *self, const struct tt_peek *peek, struct tt_peeked *out)
{
    struct remote *r = self;
    r->local_port.peek(r->local_port.self, peek, 1, out);
}

static bool port_peek_ahead(void *self, const struct tt_peek *peek, unsigned count,
                            struct table_peek_ticket *peek_ticket)
{
    struct remote *r = self;
    if (!peeks_at_shards(r, peek[0].depth) || r->peeks_ahead == PEEKS_AHEAD_MAX) {
        return false;
    }
    peek_ticket->sent_us = now_us(r);
    peek_ticket->request = client_peek(r->lane.client, peek, count, peek_ticket->sent_us);
    count_talk(r, peek_ticket->sent_us);
    r->peeks_ahead += peek_ticket->request != 0;
    return peek_ticket->request != 0;
}

static void port_peek_drop(void *self, struct table_peek_ticket *peek_ticket)
{
    struct remote *r = self;
    client_cancel(r->lane.client, peek_ticket->request);
    r->peeks_ahead--;
}

static bool port_peek_is_here(void *self, const struct table_peek_ticket *peek_ticket)
{
    struct remote *r = self;
    const uint64_t begin = now_us(r);
    take_events(r);
    count_talk(r, begin);
    return r->waits || !client_is_waiting(r->lane.client, peek_ticket->request, now_us(r));
}

static bool port_peek_take(void *self, struct table_peek_ticket *peek_ticket, struct tt_peeked *out)
{
    struct remote *r = self;
    const uint64_t begin = now_us(r);
    take_events(r);
    count_talk(r, begin);
    uint64_t age = now_us(r) - peek_ticket->sent_us;
    if (age > PEEK_AGE_ROUND_TRIPS * client_longest_rtt_us(r->lane.client)) {
        port_peek_drop(self, peek_ticket);
        return false;
    }
    r->peeks_ahead--;
    return wait_for(r, peek_ticket->request, NULL, out) == CLIENT_READY;
}

/* ---- from env.poll, and between searches ---- */

/* Shards drop old in-flight entries. Renewed so seldom that it costs nothing, whatever a shard
 * says. */
static void renew_when_due(struct remote *r, struct search *search, uint64_t now)
{
    uint32_t limit_ms = RENEWALS * RENEW_EVERY_MS;
    if (now < r->renew_due_us) {
        return;
    }
    for (unsigned i = 0; i < r->servers; i++) {
        uint32_t ms = client_inflight_age_max_ms(r->lane.client, i);
        limit_ms = ms > 0 && ms < limit_ms ? ms : limit_ms;
    }
    uint64_t pause = limit_ms * UINT64_C(1000) / RENEWALS;
    r->renew_due_us = now + (pause > RENEW_PAUSE_MIN_US ? pause : RENEW_PAUSE_MIN_US);
    search_renew(search);
}

/* Hands over what was answered; asks that got lost are dropped. */
static void serve_deferred(struct remote *r, struct search *search, uint64_t now)
{
    struct tt_answer answer;
    for (unsigned i = r->deferred_count; i > 0; i--) {
        struct deferred d = r->deferred[i - 1];
        enum client_result result = client_answer(r->lane.client, d.request, now, &answer);
        if (result != CLIENT_WAITING) {
            r->deferred[i - 1] = r->deferred[--r->deferred_count];
        }
        if (result == CLIENT_READY) {
            take_answer(r, &d.ask, &answer);
            search_answered(search, &d.ask, &answer);
        }
    }
}

static void port_serve(void *self, struct search *search, uint64_t now)
{
    struct remote *r = self;
    const uint64_t begin = now, sent = client_counters(r->lane.client)->bytes_sent;
    r->local->now_us = now;
    if (r->alone_until_us != 0 && now >= r->alone_until_us) {
        r->alone_until_us = 0;
        r->uses_shards = true;
    }
    if (r->uses_shards) {
        share_serve(&r->share, now < r->others_until_us, now);
    }
    if (r->lane.shell.rest_us == 0 || now >= r->rest_until_us ||
        client_outstanding(r->lane.client) > 0) {
        r->rest_until_us = now + r->lane.shell.rest_us;
        (void)serve_sockets(r);
        now = now_us(r);
        r->talked_us += now - begin;
    } else if (client_counters(r->lane.client)->bytes_sent != sent) {
        count_talk(r, begin);
    }
    if (r->uses_shards) {
        history_exchange_serve(&r->history, r->lane.client, search, now,
                               client_longest_rtt_us(r->lane.client));
        renew_when_due(r, search, now);
    }
    serve_deferred(r, search, now);
    take_changes(r);
    r->local_port.serve(r->local_port.self, search, now);
}

/* What the shards have cost this searcher so far: waiting, and the work of asking. */
static uint64_t spent_us(const struct remote *r)
{
    return r->waited_us + client_counters(r->lane.client)->asks * r->lane.shell.ask_cost_us;
}

static unsigned port_inflight_depth(void *self, unsigned iteration)
{
    struct remote *r = self;
    unsigned local = r->local_port.inflight_depth(r->local_port.self, iteration);
    if (r->remote_depth.adaptive) {
        uint64_t now = now_us(r);
        bool has_others =
            r->share.depth > 0 ? share_has_peers(&r->share, now) : now < r->others_until_us;
        if (r->share.relies) {
            remote_depth_adapt_to_claims(&r->remote_depth, iteration, now, spent_us(r));
        } else {
            remote_depth_adapt(&r->remote_depth, iteration, has_others, now, spent_us(r));
        }
    }
    return client_shards_up(r->lane.client) == 0 || local < r->remote_depth.now
               ? local
               : r->remote_depth.now;
}

void remote_begin(struct remote *r, uint8_t remote_depth, bool uses_shards, bool waits)
{
    r->uses_shards = uses_shards;
    r->alone_until_us = 0;
    r->waits = waits;
    r->limit = (struct remote_limit){0};
    r->local_port = embedded_table_port(r->local);
    r->others_until_us = now_us(r) + OTHERS_FIRST_US;
    share_begin(&r->share);
    history_exchange_begin(&r->history, now_us(r));
    r->waited_us = r->talked_us = 0;
    r->renew_due_us = 0;
    begin_claims(r);
    remote_depth_begin(&r->remote_depth, remote_depth, r->local->is_full, now_us(r), spent_us(r));
    while (r->deferred_count > 0) {
        client_cancel(r->lane.client, r->deferred[--r->deferred_count].request);
    }
}

void remote_keep_alone(struct remote *r, uint64_t until_us)
{
    r->alone_until_us = r->uses_shards ? until_us : 0;
    r->uses_shards = false;
}

void remote_set_limit(struct remote *r, const struct remote_limit *limit)
{
    r->limit = *limit;
}

bool remote_pass(struct remote *r)
{
    return r->lane.shell.pass != NULL && r->lane.shell.pass(r->lane.shell.self) &&
           notices_are_none(embedded_notices(r->local));
}

void remote_flush(struct remote *r)
{
    share_end(&r->share, now_us(r));
    client_flush(r->lane.client, now_us(r));
}

struct client *remote_client(struct remote *r)
{
    return r->lane.client;
}

unsigned remote_depth_now(const struct remote *r)
{
    return r->remote_depth.now;
}

uint64_t remote_waited_us(const struct remote *r)
{
    return r->waited_us;
}

uint64_t remote_talked_us(const struct remote *r)
{
    return r->talked_us;
}

struct table_port remote_table_port(struct remote *r)
{
    return (struct table_port){
        .self = r,
        .prefetch = port_prefetch,
        .ask = port_ask,
        .await = port_await,
        .store = port_store,
        .release = port_release,
        .renew = port_renew,
        .peek = port_peek,
        .peek_ahead = port_peek_ahead,
        .peek_take = port_peek_take,
        .peek_drop = port_peek_drop,
        .peek_is_here = port_peek_is_here,
        .peek_near = port_peek_near,
        .sees_foreign = port_sees_foreign,
        .inflight_depth = port_inflight_depth,
        .serve = port_serve,
    };
}

void remote_hello(struct remote *r, uint64_t namespace_id)
{
    r->namespace_id = namespace_id;
    remote_refresh(r);
}

void remote_refresh(struct remote *r)
{
    client_hello(r->lane.client, r->role, r->namespace_id, now_us(r));
}

uint64_t remote_now_us(const struct remote *r)
{
    return now_us(r);
}
