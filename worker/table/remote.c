#include "worker/table/remote.h"

#include "worker/table/history.h"
#include "worker/table/remote_depth.h"
#include "worker/table/share.h"

#include <stdlib.h>
#include <string.h>

enum {
    PEEKS_AHEAD_MAX = 12,
    PEEK_AGE_ROUND_TRIPS = 6, /* a look older than this is not gone by */
    CONNECT_REST_US = 100000, /* for the others once one shard is up: they may join later */
    OTHERS_FIRST_US = 10000, /* of a search: others may begin it, too */
    OTHERS_US = 50000, /* how long a sign of others counts */
    PENDING_MAX = 32, /* asks answered later; beyond, an ask is waited for */
    RENEWALS = 4, /* in the time a shard lets a hold live */
    RENEW_EVERY_MS = 15000, /* at most: a NODE_DONE that got lost is found out, too */
    RENEW_PAUSE_MIN_US = 5000,
};

enum ticket_state { TICKET_LOCAL, TICKET_CACHED, TICKET_REMOTE, TICKET_LOST };

/* An ask whose answer the search does not wait for. */
struct pending {
    struct tt_ask ask;
    uint32_t request;
};

struct remote {
    /* fixed after open */
    struct client *client;
    struct remote_shell shell;
    unsigned servers;
    struct embedded_port *local;
    struct table_port local_port;
    /* state */
    struct remote_depth remote_depth;
    bool counted, waits;
    uint64_t others_until_us;
    uint64_t rest_until_us; /* nothing is to be read */
    uint64_t renew_due_us;
    struct pending pending[PENDING_MAX];
    unsigned pending_count;
    unsigned peeks_ahead; /* peeks sent ahead and not ended */
    struct tt_store notice[REMOTE_NOTICES_MAX];
    unsigned notice_count;
    struct shared_history history;
    struct share_queue share;
    /* statistics */
    struct remote_times times;
};

/* ---- the shell around the client ---- */

static void take_news(void *self, const struct tt_store *result)
{
    struct remote *r = self;
    if (r->notice_count < REMOTE_NOTICES_MAX) {
        r->notice[r->notice_count++] = *result;
    }
}

static uint64_t now_us(const struct remote *r)
{
    return r->shell.now(r->shell.self);
}

static void take_history(void *self, unsigned shard, const struct proto_history_answer *answer)
{
    struct remote *r = self;
    history_take(&r->history, client_shard_boot(r->client, shard), answer, now_us(r));
}

static void take_shared(void *self, const struct tt_store *results, uint32_t count)
{
    struct remote *r = self;
    if (count == 0 || results[0].slot == embedded_table_id(r->local->table)) {
        return; /* of a process that uses our table: it is there already */
    }
    r->others_until_us = now_us(r) + OTHERS_US;
    embedded_saw_other_table(r->local->table, r->others_until_us);
    for (uint32_t i = 0; i < count; i++) {
        embedded_put(r->local->table, &results[i]);
    }
}

static bool drain_all(struct remote *r)
{
    return r->shell.drain(r->shell.self, r->client);
}

enum err remote_open(struct remote **out, const struct remote_options *options)
{
    struct remote *r = calloc(1, sizeof *r);
    if (r == NULL) {
        return ERR_NOMEM;
    }
    r->local = options->local;
    r->local_port = embedded_table_port(r->local);
    r->shell = options->shell;
    r->servers = options->client.shards;
    r->remote_depth.depth = REMOTE_DEPTH_FIRST;
    struct client_options client = options->client;
    client.hello_flags = PROTO_WANTS_NODE_DONE;
    if (options->share_depth > 0 && r->local->slot == 0) { /* one for all of the process */
        client.hello_flags |= PROTO_WANTS_RESULTS;
    }
    struct client_port port = {r->shell.self, r->shell.send};
    struct client_sink sink = options->sink;
    sink.node_self = r;
    sink.node_done = take_news;
    sink.history = take_history;
    sink.shared = take_shared;
    enum err err = client_open(&client, &port, &sink, &r->client);
    if (err != ERR_OK) {
        remote_close(&r);
        return err;
    }
    share_open(&r->share, r->client, r->local->table, options->share_depth);
    *out = r;
    return ERR_OK;
}

void remote_close(struct remote **remote)
{
    struct remote *r = *remote;
    if (r == NULL) {
        return;
    }
    if (r->client != NULL) {
        client_bye(r->client, now_us(r));
        client_free(&r->client);
    }
    free(r);
    *remote = NULL;
}

static void give(struct remote *r, const struct tt_store *store)
{
    if (share_add(&r->share, store)) {
        share_send(&r->share, r->history.root_key, now_us(r));
    }
}

static void serve(struct remote *r)
{
    drain_all(r);
    client_tick(r->client, now_us(r));
}

void remote_poll(struct remote *r)
{
    bool is_timed = r->shell.rest_us > 0 || r->share.depth > 0;
    uint64_t now = is_timed ? now_us(r) : 0;
    if (r->counted) {
        share_poll(&r->share, r->history.root_key, now < r->others_until_us, now);
    }
    if (r->shell.rest_us == 0 || now >= r->rest_until_us || client_outstanding(r->client) > 0) {
        r->rest_until_us = now + r->shell.rest_us;
        serve(r);
    }
}

void remote_wait(struct remote *r, unsigned wait_ms)
{
    uint64_t until = now_us(r) + wait_ms * UINT64_C(1000);
    drain_all(r);
    uint64_t tick = client_tick(r->client, now_us(r));
    r->shell.sleep(r->shell.self, tick < until ? tick : until);
    serve(r);
}

unsigned remote_connect(struct remote *r, unsigned wait_ms)
{
    uint64_t until = now_us(r) + wait_ms * UINT64_C(1000);
    bool any = false;
    do {
        remote_wait(r, 10);
        uint64_t rest = now_us(r) + CONNECT_REST_US;
        until = !any && client_shards_up(r->client) > 0 && rest < until ? rest : until;
        any = client_shards_up(r->client) > 0;
    } while (client_shards_up(r->client) < r->servers && now_us(r) < until);
    return client_shards_up(r->client);
}

/* ---- the table port ---- */

static bool is_remote(const struct remote *r, unsigned depth)
{
    return depth >= r->remote_depth.depth && r->counted && client_shards_up(r->client) > 0;
}

/* What only others can have said or stored: it is worth while to ask. */
static void take_signs(struct remote *r, const struct tt_answer *answer)
{
    if (answer->verdict != TT_OPEN || answer->nproc > 1) {
        r->others_until_us = now_us(r) + OTHERS_US;
    }
}

/* Keeps what a shard told, so that the next visit needs no round trip. */
static void remember(struct remote *r, const struct tt_ask *ask, const struct tt_answer *answer)
{
    enum tt_bound bound = answer->score >= ask->beta    ? TT_LOWER
                          : answer->score <= ask->alpha ? TT_UPPER
                                                        : TT_EXACT;
    struct tt_store store = {
        .key = ask->key,
        .depth = ask->depth,
        .score = answer->score,
        .bound = (uint8_t)bound,
        .move = answer->move,
    };
    embedded_put(r->local->table, &store);
}

static bool port_ask(void *self, const struct tt_ask *ask, struct table_ticket *ticket)
{
    struct remote *r = self;
    struct tt_answer known;
    ticket->state = TICKET_LOCAL;
    ticket->where = CLIENT_NOWHERE;
    bool far = is_remote(r, ask->depth);
    if (far && embedded_find(r->local->table, ask, &known)) {
        ticket->state = TICKET_CACHED;
        return false;
    }
    ticket->request = far ? client_ask(r->client, ask, now_us(r), &ticket->where) : 0;
    if (ticket->request == 0) {
        return r->local_port.ask(r->local_port.self, ask, ticket);
    }
    ticket->state = TICKET_REMOTE;
    if (!r->waits && r->pending_count < PENDING_MAX) {
        ticket->later = true;
        r->pending[r->pending_count++] = (struct pending){*ask, ticket->request};
    }
    return !ticket->later;
}

/* Of that ticket; pending_count when there is none. */
static unsigned find_pending(const struct remote *r, const struct table_ticket *ticket)
{
    unsigned i = 0;
    while (i < r->pending_count && r->pending[i].request != ticket->request) {
        i++;
    }
    return ticket->later ? i : r->pending_count;
}

/* A node is left before its answer came: nobody awaits it any more. The caller leaves the node at
 * the shard too. */
static void forget_pending(struct remote *r, const struct table_ticket *ticket)
{
    unsigned i = find_pending(r, ticket);
    if (i < r->pending_count) {
        client_forget(r->client, ticket->request);
        r->pending[i] = r->pending[--r->pending_count];
    }
}

/* Shards forget old holds. Renewed so seldom that it costs nothing, whatever a shard says. */
static void renew_when_due(struct remote *r, struct search *search, uint64_t now)
{
    uint32_t limit_ms = RENEWALS * RENEW_EVERY_MS;
    if (now < r->renew_due_us) {
        return;
    }
    for (unsigned i = 0; i < r->servers; i++) {
        uint32_t ms = client_inflight_age_max_ms(r->client, i);
        limit_ms = ms > 0 && ms < limit_ms ? ms : limit_ms;
    }
    uint64_t pause = limit_ms * UINT64_C(1000) / RENEWALS;
    r->renew_due_us = now + (pause > RENEW_PAUSE_MIN_US ? pause : RENEW_PAUSE_MIN_US);
    search_renew(search);
}

static uint64_t longest_rtt_us(const struct remote *r)
{
    uint32_t longest = 1;
    for (unsigned i = 0; i < r->servers; i++) {
        uint32_t rtt = client_rtt_us(r->client, i);
        if (client_shard_state(r->client, i) == CLIENT_UP && rtt > longest) {
            longest = rtt;
        }
    }
    return longest;
}

void remote_settle(struct remote *r, struct search *search)
{
    if (r->counted) {
        uint64_t now = now_us(r);
        history_exchange(&r->history, r->client, search, now, longest_rtt_us(r));
        renew_when_due(r, search, now);
    }
    for (unsigned i = r->pending_count; i > 0; i--) {
        struct pending p = r->pending[i - 1];
        struct tt_answer answer;
        enum client_result result = client_answer(r->client, p.request, now_us(r), &answer);
        if (result == CLIENT_WAITING) {
            continue;
        }
        r->pending[i - 1] = r->pending[--r->pending_count];
        if (result == CLIENT_READY) {
            take_signs(r, &answer);
            if (answer.verdict == TT_CUT) {
                remember(r, &p.ask, &answer);
            }
            search_answered(search, &p.ask, &answer);
        }
    }
}

/* Serves the sockets until `done` says so. Adds the time to what was waited. */
static void serve_until(struct remote *r, bool (*done)(struct remote *, void *), void *context,
                        uint32_t ticket)
{
    uint64_t begin = now_us(r);
    drain_all(r);
    while (!done(r, context)) {
        r->shell.sleep(r->shell.self, client_deadline(r->client, ticket));
        drain_all(r);
    }
    r->times.waited_us += now_us(r) - begin;
}

struct awaited {
    uint32_t ticket;
    enum client_result result;
    void *out;
};

static bool answered(struct remote *r, void *context)
{
    struct awaited *w = context;
    w->result = client_answer(r->client, w->ticket, now_us(r), w->out);
    return w->result != CLIENT_WAITING;
}

static bool peeked(struct remote *r, void *context)
{
    struct awaited *w = context;
    w->result = client_peeked(r->client, w->ticket, now_us(r), w->out);
    return w->result != CLIENT_WAITING;
}

static void port_release(void *self, const struct table_ticket *ticket,
                         const struct tt_release *release)
{
    struct remote *r = self;
    if (ticket->state == TICKET_LOCAL) {
        r->local_port.release(r->local_port.self, ticket, release);
        return;
    }
    forget_pending(r, ticket);
    client_release(r->client, ticket->where, release);
}

static void leave(struct remote *r, const struct tt_ask *ask, const struct table_ticket *ticket)
{
    struct tt_release release = {.key = ask->key, .depth = ask->depth, .slot = ask->slot};
    port_release(r, ticket, &release);
}

/* The ask is under way, or its answer lost: the shard may count us inside a node that we do not
 * enter, because somebody who uses our table has finished it meanwhile. */
static void take_back(struct remote *r, const struct tt_ask *ask, struct table_ticket *ticket)
{
    leave(r, ask, ticket);
    ticket->state = TICKET_CACHED;
    ticket->later = false;
}

/* The shard that owns the node may have become another, or there was none: the former is left. */
static void port_renew(void *self, const struct tt_ask *ask, struct table_ticket *ticket)
{
    struct remote *r = self;
    uint8_t where = CLIENT_NOWHERE;
    if (!is_remote(r, ask->depth) || r->pending_count == PENDING_MAX ||
        find_pending(r, ticket) < r->pending_count) {
        return;
    }
    uint32_t request = client_ask(r->client, ask, now_us(r), &where);
    if (request == 0) {
        return;
    }
    if (where != ticket->where) {
        leave(r, ask, ticket);
    }
    *ticket = (struct table_ticket){request, where, TICKET_REMOTE, true};
    r->pending[r->pending_count++] = (struct pending){*ask, request};
}

static void port_await(void *self, const struct tt_ask *ask, struct table_ticket *ticket,
                       struct tt_answer *answer)
{
    struct remote *r = self;
    if (ticket->state == TICKET_LOCAL) {
        r->local_port.await(r->local_port.self, ask, ticket, answer);
        return;
    }
    bool is_known = embedded_find(r->local->table, ask, answer);
    if (is_known && ticket->later) {
        take_back(r, ask, ticket);
    }
    if (ticket->later || (is_known && ticket->state == TICKET_CACHED)) {
        return;
    }
    if (ticket->state == TICKET_REMOTE) {
        struct tt_answer told;
        struct awaited w = {.ticket = ticket->request, .out = &told};
        serve_until(r, answered, &w, ticket->request);
        if (w.result == CLIENT_READY) {
            take_signs(r, &told);
            if (told.verdict == TT_CUT) {
                remember(r, ask, &told);
            }
            *answer = told;
            return;
        }
        if (is_known) {
            take_back(r, ask, ticket);
            return;
        }
    }
    ticket->state = TICKET_LOST;
}

static void port_store(void *self, const struct table_ticket *ticket, const struct tt_store *store)
{
    struct remote *r = self;
    if (ticket->state == TICKET_LOCAL) {
        r->local_port.store(r->local_port.self, ticket, store);
        give(r, store);
        return;
    }
    forget_pending(r, ticket);
    give(r, store);
    embedded_put(r->local->table, store);
    client_store(r->client, ticket->where, store);
}

static void port_peek(void *self, const struct tt_peek *peek, unsigned count, struct tt_peeked *out)
{
    struct remote *r = self;
    if (is_remote(r, peek[0].depth)) {
        uint32_t ticket = client_peek(r->client, peek, count, now_us(r));
        struct awaited w = {.ticket = ticket, .result = CLIENT_LOST, .out = out};
        if (ticket != 0) {
            serve_until(r, peeked, &w, ticket);
        }
        if (w.result == CLIENT_READY) {
            return;
        }
    }
    r->local_port.peek(r->local_port.self, peek, count, out);
}

static bool port_peek_ahead(void *self, const struct tt_peek *peek, unsigned count,
                            struct table_peek_ticket *peek_ticket)
{
    struct remote *r = self;
    if (!is_remote(r, peek[0].depth) || r->peeks_ahead == PEEKS_AHEAD_MAX) {
        return false;
    }
    peek_ticket->sent_us = now_us(r);
    peek_ticket->count = count;
    peek_ticket->request = client_peek(r->client, peek, count, peek_ticket->sent_us);
    r->peeks_ahead += peek_ticket->request != 0;
    return peek_ticket->request != 0;
}

static bool port_peek_take(void *self, struct table_peek_ticket *peek_ticket, struct tt_peeked *out)
{
    struct remote *r = self;
    struct awaited w = {.ticket = peek_ticket->request, .out = out};
    drain_all(r);
    uint64_t age = now_us(r) - peek_ticket->sent_us;
    if (age > PEEK_AGE_ROUND_TRIPS * longest_rtt_us(r)) {
        client_cancel(r->client, peek_ticket->request);
        r->peeks_ahead--;
        return false;
    }
    serve_until(r, peeked, &w, peek_ticket->request);
    r->peeks_ahead--;
    return w.result == CLIENT_READY;
}

static void port_peek_drop(void *self, struct table_peek_ticket *peek_ticket)
{
    struct remote *r = self;
    client_cancel(r->client, peek_ticket->request);
    r->peeks_ahead--;
}

/* What the shards have cost this processor so far: waiting, and the work of asking. */
static uint64_t spent_us(const struct remote *r)
{
    return r->times.waited_us + client_counters(r->client)->asks * r->shell.ask_cost_us;
}

static unsigned port_inflight_depth(void *self, unsigned iteration)
{
    struct remote *r = self;
    unsigned local = r->local_port.inflight_depth(r->local_port.self, iteration);
    if (r->remote_depth.adaptive) {
        uint64_t now = now_us(r);
        bool has_others =
            r->share.depth > 0 ? share_sees_other_table(&r->share, now) : now < r->others_until_us;
        remote_depth_adapt(&r->remote_depth, iteration, has_others, now, spent_us(r));
    }
    return client_shards_up(r->client) == 0 || local < r->remote_depth.depth
               ? local
               : r->remote_depth.depth;
}

void remote_begin(struct remote *r, uint8_t remote_depth, bool counted, bool waits)
{
    r->counted = counted;
    r->waits = waits;
    r->notice_count = 0;
    r->others_until_us = now_us(r) + OTHERS_FIRST_US;
    share_begin(&r->share);
    history_begin(&r->history, now_us(r));
    r->times = (struct remote_times){.since_us = now_us(r)};
    r->renew_due_us = 0;
    remote_depth_begin(&r->remote_depth, remote_depth, r->times.since_us, spent_us(r));
    for (unsigned i = 0; i < r->pending_count; i++) {
        client_cancel(r->client, r->pending[i].request);
    }
    r->pending_count = 0;
}

unsigned remote_notices(struct remote *r, struct tt_store *out, unsigned room)
{
    unsigned n = r->notice_count < room ? r->notice_count : room;
    memcpy(out, r->notice, n * sizeof *out);
    r->notice_count = 0;
    return n;
}

void remote_flush(struct remote *r)
{
    client_flush(r->client, now_us(r));
}

struct client *remote_client(struct remote *r)
{
    return r->client;
}

unsigned remote_depth_now(const struct remote *r)
{
    return r->remote_depth.depth;
}

struct remote_times remote_times(const struct remote *r)
{
    return r->times;
}

static void port_prefetch(void *self, uint64_t key)
{
    struct remote *r = self;
    r->local_port.prefetch(r->local_port.self, key);
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
        .inflight_depth = port_inflight_depth,
    };
}

void remote_hello(struct remote *r, enum proto_role role, uint64_t namespace_id)
{
    client_hello(r->client, role, namespace_id, now_us(r));
}

uint64_t remote_now_us(const struct remote *r)
{
    return now_us(r);
}
