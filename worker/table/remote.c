#include "worker/table/remote.h"

#include "common/tt/ops.h"
#include "worker/table/notices.h"
#include "worker/table/remote_depth.h"
#include "worker/table/share.h"

#include <stdlib.h>

enum {
    DEFERRED_MAX = 32,
    PEEKS_AHEAD_MAX = 12,
    PEEK_AGE_ROUND_TRIPS = 6, /* an older peek is out of date */
    CONNECT_REST_US = 100000, /* for the others once one shard is up: they may join later */
    OTHERS_FIRST_US = 10000, /* at the begin of a search others are supposed to be there */
    OTHERS_US = 50000, /* how long a sign of other searchers counts */
    LIMIT_STOP_US = 5000, /* how often one who waits sees whether it is to stop */
    LONG_WAIT_US = 1000, /* the search polls soon after it: a time limit counts no nodes */
    RENEW_PAUSE_MIN_US = 5000, /* whatever a shard says */
    CLAIMS_PAUSE_MIN_US = 100, /* a host's messages with foreign claims ... */
    CLAIMS_PAUSE_MAX_US = 500, /* (where that takes longer they would come too late: asks stay) */
    CLAIMS_COST = 50, /* ... cost at most one part in so many of its searchers' time */
};

enum ticket_state {
    TICKET_LOCAL, /* below the remote depth limit */
    TICKET_KNOWN, /* the host's table resolved it: not entered */
    TICKET_REMOTE, /* registered in the host's table, and at a shard */
    TICKET_HOST, /* registered in the host's table alone: no ask was sent, or its answer is lost */
};

struct remote {
    /* fixed after open */
    struct lane lane;
    struct remote_events events;
    enum proto_role role;
    unsigned servers;
    struct embedded_port *local;
    /* fixed while a search runs */
    bool uses_shards, waits;
    uint64_t alone_until_us; /* no shard is used until then; 0: that is over */
    struct remote_limit limit;
    uint64_t namespace_id; /* of the last HELLO */
    /* state */
    struct remote_depth remote_depth;
    uint64_t others_until_us; /* signs of other searchers count until then */
    uint64_t rest_until_us; /* nothing is read until then */
    uint64_t renew_due_us;
    unsigned peeks_ahead; /* sent and not ended */
    struct share share;
    /* statistics */
    uint64_t waited_us; /* for answers, in this search */
    uint64_t talked_us; /* the same, and for all else that has to do with shards */
};

/* ---- the client and its lane ---- */

uint64_t remote_now_us(const struct remote *r)
{
    return lane_now(&r->lane);
}

/* From that time on this searcher did nothing but talk with shards. Never from inside another. */
static void count_talk(struct remote *r, uint64_t begin_us)
{
    r->talked_us += lane_now(&r->lane) - begin_us;
}

static void on_event(struct remote *r, const struct client_event *e)
{
    if (e->kind == CLIENT_NODE_DONE) {
        for (uint32_t i = 0; i < e->node_done->list.count; i++) {
            const struct tt_store *result = &e->node_done->list.at[i];
            embedded_take(r->local, result, 1, lane_now(&r->lane));
            notices_put(embedded_notices(r->local), result);
        }
    } else if (e->kind == CLIENT_SHARED) {
        if (e->shared->list.count > 0 &&
            e->shared->table_id != embedded_table_id(r->local->table)) {
            const uint64_t now = lane_now(&r->lane);
            r->others_until_us = now + OTHERS_US;
            share_take(&r->share, e->shared, now, r->others_until_us);
        }
    } else if (r->events.take != NULL) {
        r->events.take(r->events.self, e);
    }
}

/* Takes what has come; if not `reads`, only what the client says by itself: shards that fell
 * without a word, as the next look at jobs is to show it. */
static void read_events(struct remote *r, bool reads)
{
    struct client_event e;
    while (reads ? lane_next(&r->lane, &e) : lane_event(&r->lane, &e)) {
        on_event(r, &e);
    }
}

enum err remote_open(struct remote **out, const struct remote_options *options)
{
    struct remote *r = calloc(1, sizeof *r);
    if (r == NULL) {
        return ERR_NOMEM;
    }
    r->local = options->local;
    (void)embedded_table_port(r->local); /* begun anew */
    r->lane = options->lane;
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
    if (*remote != NULL) {
        lane_close(&(*remote)->lane);
        free(*remote);
        *remote = NULL;
    }
}

/* Returns when the client wants to be served again. */
static uint64_t serve_sockets(struct remote *r)
{
    read_events(r, true);
    uint64_t due = lane_tick(&r->lane);
    read_events(r, false);
    return due;
}

void remote_wait(struct remote *r, unsigned wait_ms)
{
    uint64_t until = lane_now(&r->lane) + wait_ms * UINT64_C(1000);
    uint64_t tick = serve_sockets(r);
    lane_sleep(&r->lane, tick < until ? tick : until);
    (void)serve_sockets(r);
}

unsigned remote_connect(struct remote *r, unsigned wait_ms)
{
    uint64_t until = lane_now(&r->lane) + wait_ms * UINT64_C(1000);
    bool any = false;
    do {
        remote_wait(r, 10);
        uint64_t rest = lane_now(&r->lane) + CONNECT_REST_US;
        until = !any && client_shards_up(r->lane.client) > 0 && rest < until ? rest : until;
        any = client_shards_up(r->lane.client) > 0;
    } while (client_shards_up(r->lane.client) < r->servers && lane_now(&r->lane) < until);
    return client_shards_up(r->lane.client);
}

/* ---- waiting ---- */

/* Serves the sockets until that ask is answered (then `answer`), or that peek (then `peeked`), or
 * given up: by its time-out, or as the search is over. The time counts as waited. */
static enum client_result wait_for(struct remote *r, uint32_t ticket, struct tt_answer *answer,
                                   struct tt_peeked *peeked)
{
    const struct remote_limit *limit = &r->limit;
    const uint64_t begin = lane_now(&r->lane);
    enum client_result result;
    read_events(r, true);
    for (;;) {
        const uint64_t now = lane_now(&r->lane);
        result = answer != NULL ? client_answer(r->lane.client, ticket, now, answer)
                                : client_peeked(r->lane.client, ticket, now, peeked);
        if (result != CLIENT_WAITING) {
            break;
        }
        if ((limit->until_us != 0 && now >= limit->until_us) ||
            (limit->stop != NULL && atomic_load_explicit(limit->stop, memory_order_relaxed))) {
            client_forget(r->lane.client, ticket);
            result = CLIENT_LOST;
            break;
        }
        uint64_t until = client_deadline(r->lane.client, ticket);
        until = limit->stop != NULL && now + LIMIT_STOP_US < until ? now + LIMIT_STOP_US : until;
        until = limit->until_us != 0 && limit->until_us < until ? limit->until_us : until;
        lane_sleep(&r->lane, until);
        read_events(r, true);
    }
    const uint64_t waited = lane_now(&r->lane) - begin;
    r->waited_us += waited;
    r->talked_us += waited;
    if (waited >= LONG_WAIT_US) {
        atomic_store_explicit(embedded_until_poll(r->local), 1, memory_order_relaxed);
    }
    return result;
}

/* ---- foreign claims ---- */

/* Hosts of several searchers, of a job whose algorithm looks at who is where. At selection full the
 * remote depth limit is as good. A search that waits for answers wants those of the shards. */
static void begin_claims(struct remote *r)
{
    const unsigned slots = embedded_slots(r->local->table);
    const uint32_t pause_us = r->lane.ask_cost_us * CLAIMS_COST / slots;
    r->local->counts_foreign = r->lane.shares_reach_all && r->share.depth > 0 && r->uses_shards &&
                               !r->waits && !r->local->is_full && !r->local->results_only &&
                               slots > 1;
    r->local->now_us = lane_now(&r->lane);
    embedded_expect_claims(r->local->table, r->local->now_us);
    r->share.claims_pause_us = pause_us > CLAIMS_PAUSE_MAX_US   ? 0
                               : pause_us > CLAIMS_PAUSE_MIN_US ? pause_us
                                                                : CLAIMS_PAUSE_MIN_US;
}

static void send_shared(struct remote *r)
{
    const uint64_t begin = lane_now(&r->lane);
    share_send(&r->share, begin);
    count_talk(r, begin);
}

/* The last searcher of this host in a node ends the claim that the first made for all of them. */
static void leave_here(struct remote *r, const struct table_ticket *ticket,
                       const struct tt_release *release)
{
    embedded_release(r->local, ticket, release);
    if (ticket->claimed && !embedded_is_in_flight(r->local, release->key, release->depth) &&
        share_claim(&r->share, release->key, release->depth, TT_CLAIM_ENDS)) {
        send_shared(r);
    }
}

/* ---- asks ---- */

static bool is_remote(const struct remote *r, unsigned depth)
{
    return depth >= r->remote_depth.now && r->uses_shards && client_shards_up(r->lane.client) > 0;
}

static void port_prefetch(void *self, uint64_t key)
{
    embedded_prefetch(((struct remote *)self)->local, key);
}

/* The first searcher of this host in a node of at least CLAIMS_FOREIGN_DEPTH claims it, for all of
 * them. */
static void claim(struct remote *r, const struct tt_ask *ask, struct table_ticket *ticket,
                  const struct tt_answer *answer)
{
    if (r->share.claims && answer->verdict == TT_OPEN && ask->depth >= CLAIMS_FOREIGN_DEPTH) {
        ticket->claimed = true;
        if (answer->nproc <= 1 && share_claim(&r->share, ask->key, ask->depth, TT_CLAIM_BEGINS)) {
            send_shared(r);
        }
    }
}

static bool port_ask(void *self, const struct tt_ask *ask, struct table_ticket *ticket,
                     struct tt_answer *answer)
{
    struct remote *r = self;
    struct client *client = r->lane.client;

    /* 1. A node below the remote depth limit is the host's own affair. */
    ticket->where = CLIENT_NOWHERE;
    ticket->state = TICKET_LOCAL;
    if (!is_remote(r, ask->depth)) {
        return embedded_ask(r->local, ask, ticket, answer);
    }

    /* 2. The table of the host first: its threads sort themselves out there, and to others they are
     * one searcher. */
    embedded_await(r->local, ask, ticket, answer);
    ticket->state = answer->verdict == TT_OPEN ? TICKET_HOST : TICKET_KNOWN;

    /* 3. The first of them in a node asks its shard, for all. It searches on meanwhile, unless the
     * job or the number of such nodes wants it to wait. */
    if (answer->verdict == TT_OPEN && answer->nproc <= 1) {
        const uint64_t begin = lane_now(&r->lane);
        ticket->request = client_ask(client, ask, 1, begin, &ticket->where);
        count_talk(r, begin);
        if (ticket->request != 0) {
            ticket->state = TICKET_REMOTE;
            if (r->waits || client_deferred(client) == DEFERRED_MAX) {
                return false;
            }
            ticket->later = true;
            client_defer(client, ticket->request);
        }
    }
    claim(r, ask, ticket, answer);
    return true;
}

/* Remembers that there are others, who alone can have caused such an answer, and keeps a result, so
 * that the next visit needs no round trip. */
static void on_answer(struct remote *r, const struct tt_ask *ask, const struct tt_answer *answer)
{
    if (answer->verdict != TT_OPEN || answer->nproc > 1) {
        r->others_until_us = lane_now(&r->lane) + OTHERS_US;
    }
    if (answer->verdict == TT_CUT) {
        struct tt_store store = {
            .key = ask->key,
            .depth = ask->depth,
            .score = answer->score,
            .bound = (uint8_t)tt_bound_of(answer->score, ask->alpha, ask->beta),
            .move = answer->move,
        };
        embedded_take(r->local, &store, 1, lane_now(&r->lane));
    }
}

static void port_await(void *self, const struct tt_ask *ask, struct table_ticket *ticket,
                       struct tt_answer *answer)
{
    struct remote *r = self;
    if (ticket->state == TICKET_LOCAL) {
        embedded_await(r->local, ask, ticket, answer);
    }
    claim(r, ask, ticket, answer);
    if (ticket->state == TICKET_LOCAL) {
        return;
    }
    struct tt_answer remote_answer;
    if (wait_for(r, ticket->request, &remote_answer, NULL) != CLIENT_READY) {
        ticket->state = TICKET_HOST;
        return;
    }
    on_answer(r, ask, &remote_answer);
    *answer = remote_answer;
    if (answer->verdict != TT_OPEN) { /* the node is not entered */
        leave_here(r, ticket, &(struct tt_release){ask->key, ask->depth, ask->slot});
    }
}

/* The node of that ticket is left: an answer is of no use any more. */
static void forget_answer(struct remote *r, const struct table_ticket *ticket)
{
    if (ticket->later && client_is_deferred(r->lane.client, ticket->request)) {
        client_forget(r->lane.client, ticket->request);
    }
}

static void port_store(void *self, const struct table_ticket *ticket, const struct tt_store *store)
{
    struct remote *r = self;
    if (share_add(&r->share, store)) {
        send_shared(r);
    }
    embedded_store(r->local, ticket, store);
    if (ticket->state != TICKET_LOCAL) {
        const uint64_t begin = lane_now(&r->lane);
        forget_answer(r, ticket);
        client_store(r->lane.client, ticket->where, store);
        count_talk(r, begin);
    }
}

static void port_release(void *self, const struct table_ticket *ticket,
                         const struct tt_release *release)
{
    struct remote *r = self;
    leave_here(r, ticket, release);
    if (ticket->state != TICKET_LOCAL) {
        forget_answer(r, ticket);
        client_release(r->lane.client, ticket->where, release);
    }
}

/* Another shard may own the node by now: then the former owner gets a release. */
static void port_renew(void *self, const struct tt_ask *ask, struct table_ticket *ticket)
{
    struct remote *r = self;
    struct client *client = r->lane.client;
    uint8_t where = CLIENT_NOWHERE;
    if (!is_remote(r, ask->depth) || client_deferred(client) == DEFERRED_MAX ||
        (ticket->later && client_is_deferred(client, ticket->request))) {
        return;
    }
    uint32_t request = client_ask(client, ask, 1, lane_now(&r->lane), &where);
    if (request == 0) {
        return;
    }
    if (where != ticket->where) {
        struct tt_release release = {.key = ask->key, .depth = ask->depth, .slot = ask->slot};
        client_release(client, ticket->where, &release);
    }
    *ticket = (struct table_ticket){.request = request,
                                    .where = where,
                                    .state = TICKET_REMOTE,
                                    .claimed = ticket->claimed,
                                    .later = true};
    client_defer(client, request);
}

/* ---- peeks ---- */

/* Foreign claims tell it here, and of more nodes. */
static bool peeks_at_shards(const struct remote *r, unsigned depth)
{
    return !r->share.relies && is_remote(r, depth);
}

static void port_peek(void *self, const struct tt_peek *peek, unsigned count, bool near,
                      struct tt_peeked *out)
{
    struct remote *r = self;
    if (!near && peeks_at_shards(r, peek[0].depth)) {
        uint32_t ticket = client_peek(r->lane.client, peek, count, lane_now(&r->lane));
        if (ticket != 0 && wait_for(r, ticket, NULL, out) == CLIENT_READY) {
            return;
        }
    }
    embedded_peek(r->local, peek, count, near, out);
}

static bool port_peek_ahead(void *self, const struct tt_peek *peek, unsigned count,
                            struct table_ticket *ticket)
{
    struct remote *r = self;
    if (!peeks_at_shards(r, peek[0].depth) || r->peeks_ahead == PEEKS_AHEAD_MAX) {
        return false;
    }
    ticket->sent_us = lane_now(&r->lane);
    ticket->request = client_peek(r->lane.client, peek, count, ticket->sent_us);
    count_talk(r, ticket->sent_us);
    r->peeks_ahead += ticket->request != 0;
    return ticket->request != 0;
}

static enum table_taken port_peek_take(void *self, const struct table_ticket *ticket, bool waits,
                                       struct tt_peeked *out)
{
    struct remote *r = self;
    struct client *client = r->lane.client;
    if (out != NULL) {
        const uint64_t begin = lane_now(&r->lane);
        read_events(r, true);
        count_talk(r, begin);
    }
    const uint64_t now = lane_now(&r->lane);
    if (out != NULL && !waits && !r->waits && client_is_waiting(client, ticket->request, now)) {
        return TABLE_LATER;
    }
    CHECK_THAT(r->peeks_ahead > 0, "remote: peeks that are ended were sent ahead");
    r->peeks_ahead--;
    if (out == NULL ||
        now - ticket->sent_us > PEEK_AGE_ROUND_TRIPS * client_longest_rtt_us(client)) {
        client_cancel(client, ticket->request);
        return TABLE_LOST;
    }
    return wait_for(r, ticket->request, NULL, out) == CLIENT_READY ? TABLE_TAKEN : TABLE_LOST;
}

/* ---- from env.poll, and between searches ---- */

void remote_serve(struct remote *r, struct search *search, uint64_t now)
{
    struct client *client = r->lane.client;
    const uint64_t begin = now, sent = client_counters(client)->bytes_sent;
    struct tt_ask ask;
    struct tt_answer answer;

    /* Step 1. Set the clock by which foreign claims end, for all that follows. A searcher that was
     * alone until now uses the shards from this very poll on. */
    r->local->now_us = now;
    if (r->alone_until_us != 0 && now >= r->alone_until_us) {
        r->alone_until_us = 0;
        r->uses_shards = true;
    }

    /* Step 2. Send what this host found and claims. Before reading, which may take long: the others
     * search the same nodes meanwhile. */
    if (r->uses_shards) {
        share_serve(&r->share, now < r->others_until_us, now);
    }

    /* Step 3. Read: completion notices, results and claims go to the host's table and to the lists
     * of its searchers, answers to their tickets. Not at every poll, as long as nobody waits for an
     * answer: a look at the sockets costs more than it finds. */
    if (r->lane.rest_us == 0 || now >= r->rest_until_us || client_outstanding(client) > 0) {
        r->rest_until_us = now + r->lane.rest_us;
        read_events(r, true);
        (void)lane_tick(&r->lane);
        read_events(r, false);
        now = lane_now(&r->lane);
        r->talked_us += now - begin;
    } else if (client_counters(client)->bytes_sent != sent) {
        count_talk(r, begin);
    }

    /* Step 4. Renew what has been in flight for long, as shards drop old entries; so seldom that it
     * costs nothing. After reading, which may have brought another age limit, or another owner of
     * the key. */
    if (r->uses_shards && now >= r->renew_due_us) {
        uint64_t pause = client_renewal_us(client);
        pause = pause > RENEW_PAUSE_MIN_US ? pause : RENEW_PAUSE_MIN_US;
        r->renew_due_us = now + pause;
        search_renew(search);
    }

    /* Step 5. Hand over the answers that nobody waited for. After reading: only what did not lie
     * there unread is late. */
    while (client_next_deferred(client, now, &ask, &answer)) {
        on_answer(r, &ask, &answer);
        search_answered(search, &ask, &answer);
    }

    /* Step 6. Say which shards fell: steps 4 and 5 count time-outs. */
    read_events(r, false);

    /* Step 7. Hand over notices and claims. Last, because steps 3 and 5 add to them. */
    embedded_serve(r->local, search);
}

/* What the shards have cost this searcher so far: waiting, and the work of asking. */
static uint64_t spent_us(const struct remote *r)
{
    return r->waited_us + client_counters(r->lane.client)->asks * r->lane.ask_cost_us;
}

static unsigned port_inflight_depth(void *self, unsigned iteration, bool *sees_foreign)
{
    struct remote *r = self;
    unsigned local = embedded_inflight_depth(r->local, iteration, sees_foreign);
    *sees_foreign = r->share.relies;
    if (r->remote_depth.adaptive) {
        const uint64_t now = lane_now(&r->lane);
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
        .inflight_depth = port_inflight_depth,
    };
}

void remote_begin(struct remote *r, uint8_t remote_depth, bool uses_shards, bool waits)
{
    r->uses_shards = uses_shards;
    r->alone_until_us = 0;
    r->waits = waits;
    r->limit = (struct remote_limit){0};
    (void)embedded_table_port(r->local); /* begun anew */
    r->others_until_us = lane_now(&r->lane) + OTHERS_FIRST_US;
    share_begin(&r->share);
    r->waited_us = r->talked_us = 0;
    r->renew_due_us = 0;
    begin_claims(r);
    remote_depth_begin(&r->remote_depth, remote_depth, r->local->is_full, lane_now(&r->lane),
                       spent_us(r));
    CHECK_THAT(client_deferred(r->lane.client) == 0, "remote: no node is open between searches");
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
    return r->lane.pass != NULL && r->lane.pass(r->lane.self) &&
           notices_are_none(embedded_notices(r->local));
}

void remote_flush(struct remote *r)
{
    share_end(&r->share, lane_now(&r->lane));
    client_flush(r->lane.client, lane_now(&r->lane));
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

void remote_hello(struct remote *r, uint64_t namespace_id)
{
    r->namespace_id = namespace_id;
    remote_refresh(r);
}

void remote_refresh(struct remote *r)
{
    client_hello(r->lane.client, r->role, r->namespace_id, lane_now(&r->lane));
}
