/* SHARE: results passed on to sessions of the same namespace that want them and have another table.
 */
#include "ttserver/core/call.h"

#include "common/rng.h"

#include <string.h>

/* The tables that get a message: processes of one host share one, and one of them is enough. */
struct table {
    uint64_t id; /* 0: free */
    uint32_t target;
    uint32_t session; /* slot: who gets it */
};

struct tables {
    uint64_t seed;
    struct table at[2 * TTCORE_SHARE_TO];
};

/* Its place, or a free one. */
static struct table *find_table(struct tables *tables, uint64_t id)
{
    uint32_t mask = 2 * TTCORE_SHARE_TO - 1;
    uint32_t at = (uint32_t)rng_mix(id ^ tables->seed) & mask;
    while (tables->at[at].id != 0 && tables->at[at].id != id) {
        at = (at + 1) & mask;
    }
    return &tables->at[at];
}

/* Of the sessions with one table, the one that has had no message for longest. A session that does
 * not say which table it has gets all. */
static void choose(struct ttcore *core, struct ttcore_actions *actions, struct tables *tables,
                   const struct ttcore_session *s)
{
    struct table *table = s->table_id != 0 ? find_table(tables, s->table_id) : NULL;
    uint32_t slot = ttcore_sessions_slot(&core->sessions, s);
    if (table == NULL) {
        ttcore_actions_target(actions, s->route, s->route_length, s->version);
    } else if (table->id == 0) {
        uint32_t target = ttcore_actions_target(actions, s->route, s->route_length, s->version);
        *table = (struct table){s->table_id, target, slot};
    } else if (s->relayed < core->sessions.slot[table->session].relayed &&
               table->target < actions->targets) {
        actions->target[table->target] =
            (struct ttcore_target){s->route, s->route_length, s->version};
        table->session = slot;
    }
}

/* In turns, so that where there are too many all get some, and the processes of a host share the
 * work. Returns how many. */
static uint32_t choose_receivers(struct ttcore *core, struct ttcore_actions *actions,
                                 const struct ttcore_session *sender)
{
    struct ttcore_share_relay *relay = &core->share_relay;
    struct tables tables = {.seed = core->options.secret};
    const struct ttcore_session *begin = NULL;
    uint32_t first = actions->targets;
    for (unsigned n = 0; n < TTCORE_SHARE_TRIES && actions->targets - first < TTCORE_SHARE_TO;
         n++) {
        const struct ttcore_session *s =
            ttcore_sessions_next_wanting(&core->sessions, relay->namespace_id);
        if (s == NULL || s == begin) {
            break; /* all had their turn */
        }
        begin = begin != NULL ? begin : s;
        if (s != sender && s->namespace_id == relay->namespace_id &&
            (s->table_id != relay->table_id || s->table_id == 0)) {
            choose(core, actions, &tables, s);
        }
    }
    relay->messages++;
    for (uint32_t i = 0; i < 2 * TTCORE_SHARE_TO; i++) {
        if (tables.at[i].id != 0) {
            core->sessions.slot[tables.at[i].session].relayed = relay->messages;
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

/* Half of the rate for a user, in all namespaces together, so that nobody keeps the results of all
 * others back. Who left meanwhile pays nothing. */
static void charge_payers(struct ttcore *core, uint32_t receivers)
{
    struct ttcore_share_relay *relay = &core->share_relay;
    for (uint32_t i = 0; i < relay->payers; i++) {
        struct ttcore_share_payer *payer = &relay->payer[i];
        if (payer->user->id == payer->id) {
            pay(core, &payer->user->shared_until_ns, (uint64_t)payer->results * receivers,
                (core->options.share_rate_max + 1) / 2);
        }
    }
}

/* Where most receivers have not read what was sent before, the network takes no more. Most: else a
 * few who do not read would keep the others' results back. */
static void check_readers(struct ttcore *core)
{
    struct ttcore_share_relay *relay = &core->share_relay;
    if (core->options.outside == NULL || core->now_us - relay->checked_us < TTCORE_SHARE_CHECK_US) {
        return;
    }
    uint64_t dropped = core->options.outside->hints_dropped;
    if ((dropped - relay->hints_dropped) * 2 > relay->hints) {
        relay->slow_until_us = core->now_us + TTCORE_SHARE_SLOW_US;
    }
    relay->checked_us = core->now_us;
    relay->hints = 0;
    relay->hints_dropped = dropped;
}

static void pass_on(struct ttcore *core, struct ttcore_actions *actions,
                    const struct ttcore_session *sender)
{
    struct ttcore_share_relay *relay = &core->share_relay;
    CHECK_THAT(relay->count <= PROTO_BATCH_MAX, "share: what waits is one message");
    uint32_t first = actions->targets, messages = actions->messages,
             load = load_of(core, relay->paid_until_ns);
    if (relay->count == 0) {
        return;
    }
    check_readers(core);
    if (core->now_us < relay->slow_until_us && load < PROTO_LOAD_BUSY) {
        load = PROTO_LOAD_BUSY;
    }
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
        core->count.shared += relay->count;
        charge_payers(core, relay->receivers);
        relay->hints += relay->receivers;
        pay(core, &relay->paid_until_ns, (uint64_t)relay->count * relay->receivers,
            core->options.share_rate_max);
        ttcore_actions_send(actions, &m, first, relay->receivers);
        for (; messages < actions->messages; messages++) {
            actions->message[messages].may_drop = true;
        }
    }
    relay->count = relay->payers = 0;
    relay->has_claims = false;
}

static bool has_claims(const struct proto_stores *list)
{
    for (uint32_t i = 0; i < list->count; i++) {
        if (list->at[i].bound == TT_CLAIM) {
            return true;
        }
    }
    return false;
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
    struct ttcore_share_relay *relay = &core->share_relay;
    const struct proto_stores *list = &call->message->share.list;
    if (list->count > core->options.batch_max) {
        core->count.batches_refused++;
        ttcore_refuse(call, PROTO_ERR_LIMIT, 0, "SHARE: more results than batch_max");
        return;
    }
    if (!proto_shared_in_range(list)) {
        ttcore_refuse(call, PROTO_ERR_RANGE, 0, "SHARE: a value outside its range");
        return;
    }
    if (list->count == 0) {
        return;
    }
    uint64_t table_id = call->session->table_id = call->message->share.table_id;
    if (load_of(core, call->session->user->shared_until_ns) == 100) {
        core->count.shared_dropped += list->count;
        return;
    }
    uint64_t namespace_id = call->session->namespace_id;
    if (relay->count + list->count > PROTO_BATCH_MAX || relay->namespace_id != namespace_id ||
        !add_payer(relay, call->session->user, list->count)) {
        pass_on(core, call->actions, NULL);
        (void)add_payer(relay, call->session->user, list->count); /* there is room now */
    }
    if (relay->count == 0) {
        relay->from_us = core->now_us;
        relay->table_id = table_id;
    }
    relay->receivers = relay->namespace_id == namespace_id ? relay->receivers : 0;
    relay->namespace_id = namespace_id;
    relay->table_id = relay->table_id == table_id ? table_id : 0;
    const bool is_first = relay->count == 0;
    CHECK_THAT(relay->count + list->count <= PROTO_BATCH_MAX, "share: what waits has room");
    memcpy(&relay->list[relay->count], list->at, list->count * sizeof *list->at);
    relay->count += list->count;
    relay->has_claims = relay->has_claims || has_claims(list);
    const bool are_few =
        relay->receivers <= (relay->has_claims ? TTCORE_SHARE_CLAIMS_FEW : TTCORE_SHARE_FEW);
    if (are_few || relay->count > PROTO_BATCH_MAX * 3 / 4 || is_late(core)) {
        pass_on(core, call->actions, relay->table_id != 0 || is_first ? call->session : NULL);
    }
}
