/* SHARE: results passed on to sessions of the same namespace that want them and have another table.
 */
#include "ttserver/core/core_state.h"

#include "common/rng.h"

#include <string.h>

/* In turns, so that where there are too many all get some, and the processes of a host share the
 * work. Returns how many. */
static uint32_t choose_receivers(struct ttcore *core, struct ttcore_actions *actions,
                                 const struct ttcore_session *sender)
{
    enum { PLACES = 2 * TTCORE_SHARE_TO };
    struct ttcore_share_relay *relay = &core->share_relay;
    struct {
        uint64_t id; /* 0: the place is free */
        uint32_t target;
        struct ttcore_session *session; /* who gets it */
    } table[PLACES] = {0}; /* the tables that get the message, hashed by id */
    const struct ttcore_session *begin = NULL;
    const uint32_t first = actions->targets;
    for (unsigned n = 0; n < TTCORE_SHARE_TRIES && actions->targets - first < TTCORE_SHARE_TO;
         n++) {
        struct ttcore_session *s =
            ttcore_sessions_next_wanting(&core->sessions, relay->namespace_id);
        if (s == NULL || s == begin) {
            break; /* all had their turn */
        }
        begin = begin != NULL ? begin : s;
        if (s == sender || s->namespace_id != relay->namespace_id) {
            continue;
        }
        if (s->table_id == 0) { /* it does not say which table it has, and gets all */
            (void)ttcore_target(actions, s);
            continue;
        }
        if (s->table_id == relay->table_id) {
            continue;
        }
        /* The processes of a host share a table: one of them is enough, the one that has had no
         * message for longest. */
        uint32_t at = (uint32_t)rng_mix(s->table_id ^ core->options.secret) & (PLACES - 1);
        while (table[at].id != 0 && table[at].id != s->table_id) {
            at = (at + 1) & (PLACES - 1);
        }
        if (table[at].id == 0) {
            table[at].id = s->table_id;
            table[at].target = ttcore_target(actions, s);
            table[at].session = s;
        } else if (s->relayed < table[at].session->relayed && table[at].target < actions->targets) {
            actions->target[table[at].target] = (struct ttcore_target){s->route, s->route_length};
            table[at].session = s;
        }
    }
    relay->messages++;
    for (uint32_t i = 0; i < PLACES; i++) {
        if (table[i].id != 0) {
            table[i].session->relayed = relay->messages;
        }
    }
    return actions->targets - first;
}

/* How much of what may leave at once has left, in hundredths. */
static uint32_t load_of(const struct ttcore *core, uint64_t paid_ns)
{
    uint64_t now_ns = core->now_us * 1000;
    uint64_t load = paid_ns > now_ns ? (paid_ns - now_ns) / (TTCORE_SHARE_BURST_US * 10) : 0;
    return load < 100 ? (uint32_t)load : 100;
}

static void pay(const struct ttcore *core, uint64_t *paid_ns, uint64_t results, uint64_t rate)
{
    uint64_t now_ns = core->now_us * 1000;
    *paid_ns = (*paid_ns > now_ns ? *paid_ns : now_ns) + results * 1000000000 / rate;
}

/* The user of these results pays for them when they leave. False: there is no room for another. */
static bool add_payer(struct ttcore_share_relay *relay, struct ttcore_user *user, uint32_t results)
{
    uint32_t i = 0;
    while (i < relay->payers && relay->payer[i].id != user->id) {
        i++;
    }
    if (i == TTCORE_SHARE_PAYERS) {
        return false;
    }
    if (i == relay->payers) {
        relay->payer[relay->payers++] = (struct ttcore_share_payer){.user = user, .id = user->id};
    }
    relay->payer[i].results += results;
    return true;
}

/* Sends what waits, to all but the sender. */
static void pass_on(struct ttcore *core, struct ttcore_actions *actions,
                    const struct ttcore_session *sender)
{
    struct ttcore_share_relay *relay = &core->share_relay;
    const struct ttcore_outside *outside = core->options.outside;
    const uint32_t first = actions->targets, messages = actions->messages;
    const uint64_t rate = core->options.share_rate_max;
    CHECK_THAT(relay->count <= PROTO_BATCH_MAX, "share: what waits is one message");
    if (relay->count == 0) {
        return;
    }

    /* 1. How much is there room for? Where most receivers have not read what was sent before, the
     * network takes no more. Most: else a few who do not read would keep the others' results back.
     */
    uint32_t load = load_of(core, relay->paid_until_ns);
    if (outside != NULL && core->now_us - relay->checked_us >= TTCORE_SHARE_CHECK_US) {
        if ((outside->hints_dropped - relay->hints_dropped) * 2 > relay->hints) {
            relay->slow_until_us = core->now_us + TTCORE_SHARE_SLOW_US;
        }
        relay->checked_us = core->now_us;
        relay->hints = 0;
        relay->hints_dropped = outside->hints_dropped;
    }
    if (core->now_us < relay->slow_until_us && load < PROTO_LOAD_BUSY) {
        load = PROTO_LOAD_BUSY;
    }

    /* 2. One message, a hint, to who has had none for longest. */
    if (load == 100) {
        core->count.shared_dropped += relay->count;
    } else {
        relay->receivers = choose_receivers(core, actions, sender);
    }
    if (actions->targets > first) {
        struct proto_message m = {.type = PROTO_SHARE};
        m.share.table_id = relay->table_id;
        m.share.list = (struct proto_stores){relay->count, relay->list};
        m.share.load = (uint8_t)load;
        ttcore_actions_send(actions, &m, first, relay->receivers);
        for (uint32_t i = messages; i < actions->messages; i++) {
            actions->message[i].may_drop = true;
        }

        /* 3. It is paid for: half of the rate is for a user, in all namespaces together, so that
         * nobody keeps the results of all others back. Who left meanwhile pays nothing. */
        for (uint32_t i = 0; i < relay->payers; i++) {
            struct ttcore_share_payer *payer = &relay->payer[i];
            if (payer->user->id == payer->id) {
                pay(core, &payer->user->shared_until_ns,
                    (uint64_t)payer->results * relay->receivers, (rate + 1) / 2);
            }
        }
        pay(core, &relay->paid_until_ns, (uint64_t)relay->count * relay->receivers, rate);
        relay->hints += relay->receivers;
        core->count.shared += relay->count;
    }
    relay->count = relay->payers = 0;
    relay->has_claims = false;
}

/* Whether what waits has waited long enough. */
static bool is_late(const struct ttcore *core)
{
    const struct ttcore_share_relay *relay = &core->share_relay;
    const uint32_t parts = (relay->receivers + TTCORE_SHARE_FEW - 1) / TTCORE_SHARE_FEW,
                   claims_late_us = TTCORE_SHARE_CLAIMS_LATE_US * (parts > 0 ? parts : 1);
    return core->now_us - relay->from_us >=
           (relay->has_claims && claims_late_us < TTCORE_SHARE_LATE_US ? claims_late_us
                                                                       : TTCORE_SHARE_LATE_US);
}

void ttcore_share_tick(struct ttcore *core, struct ttcore_actions *actions)
{
    if (is_late(core)) {
        pass_on(core, actions, NULL);
    }
}

void ttcore_on_share(struct ttcore_call *call)
{
    struct ttcore *core = call->core;
    struct ttcore_session *session = call->session;
    struct ttcore_share_relay *relay = &core->share_relay;
    const struct proto_stores *list = &call->message->share.list;
    const uint64_t namespace_id = session->namespace_id;

    /* 1. Check it. */
    if (list->count > core->options.batch_max) {
        core->count.batches_refused++;
        ttcore_refuse(call, PROTO_ERR_LIMIT, 0, "SHARE: more results than batch_max");
        return;
    }
    if (!proto_results_in_range(list, true)) {
        ttcore_refuse(call, PROTO_ERR_RANGE, 0, "SHARE: a value outside its range");
        return;
    }
    if (list->count == 0) {
        return;
    }

    /* 2. Drop it if its user has sent more than half of the rate. */
    session->table_id = call->message->share.table_id;
    if (load_of(core, session->user->shared_until_ns) == 100) {
        core->count.shared_dropped += list->count;
        return;
    }

    /* 3. What waits leaves before it where both are no one message: they are too many, of two
     * namespaces, or of too many users. */
    if (relay->count + list->count > PROTO_BATCH_MAX || relay->namespace_id != namespace_id ||
        !add_payer(relay, session->user, list->count)) {
        pass_on(core, call->actions, NULL);
        (void)add_payer(relay, session->user, list->count); /* there is room now */
    }

    /* 4. It waits with the others. */
    const bool is_first = relay->count == 0;
    CHECK_THAT(relay->count + list->count <= PROTO_BATCH_MAX, "share: what waits has room");
    if (is_first) {
        relay->from_us = core->now_us;
        relay->table_id = session->table_id;
    }
    relay->receivers = relay->namespace_id == namespace_id ? relay->receivers : 0;
    relay->namespace_id = namespace_id;
    relay->table_id = relay->table_id == session->table_id ? session->table_id : 0;
    memcpy(&relay->list[relay->count], list->at, list->count * sizeof *list->at);
    relay->count += list->count;
    for (uint32_t i = 0; i < list->count && !relay->has_claims; i++) {
        relay->has_claims = list->at[i].bound == TT_CLAIM;
    }

    /* 5. All leave now where there are few receivers or many results, or the first waited for long
     * enough; not to the sender, unless results of others are with its own. */
    const bool are_few =
        relay->receivers <= (relay->has_claims ? TTCORE_SHARE_CLAIMS_FEW : TTCORE_SHARE_FEW);
    if (are_few || relay->count > PROTO_BATCH_MAX * 3 / 4 || is_late(core)) {
        pass_on(core, call->actions, relay->table_id != 0 || is_first ? session : NULL);
    }
}
