/* Nodes that are searched for long: asked again before the shards forget that we are in them. */
#include "worker/lib/lib.h"

enum {
    RENEW_CHECKS = 4, /* in the time between two renewals of a node */
    RENEW_CHECK_MIN_US = 2000,
    RENEW_CHECK_MAX_US = 100000, /* a shard that comes up may forget sooner than the others */
};

void lib_leave_node_at(struct lib *l, unsigned where, uint64_t key, uint8_t depth, uint16_t slot)
{
    struct tt_release release = {.key = key, .depth = depth, .slot = slot};
    client_release(l->lane.client, where, &release);
}

void lib_renew_now(struct lib *l, struct lib_node *node)
{
    node->asked_us = 0;
    l->renew_due_us = 0;
}

uint64_t lib_renew_due(const struct lib *l)
{
    /* Without room the next is due when an answer comes or is lost, which the client says. */
    return l->nodes.count == 0 || l->renewals == LIB_RENEWALS ? UINT64_MAX : l->renew_due_us;
}

static void end_renewals(struct lib *l, uint64_t now_us)
{
    struct tt_answer answer;
    for (unsigned i = l->renewals; i-- > 0;) {
        struct lib_renewal *r = &l->renewal[i];
        enum client_result result = client_answer(l->lane.client, r->ticket, now_us, &answer);
        if (result == CLIENT_WAITING) {
            continue;
        }
        struct lib_node *node = lib_nodes_find(&l->nodes, r->key, r->depth, r->slot);
        if (result == CLIENT_LOST && node != NULL) {
            lib_renew_now(l, node);
        }
        *r = l->renewal[--l->renewals];
    }
}

/* Asked as widely as can be: a result that is there already is rarely an answer to that. */
static void renew(struct lib *l, struct lib_node *node, uint64_t now_us)
{
    struct tt_ask ask = {node->key, TT_SCORE_MIN, TT_SCORE_MAX, node->depth, 0, node->slot};
    uint8_t where;
    uint32_t id = client_ask(l->lane.client, &ask, 1, now_us, &where);
    if (id != 0) {
        l->renewal[l->renewals++] = (struct lib_renewal){id, node->slot, node->depth, node->key};
        if (where != node->where) {
            lib_leave_node_at(l, node->where, node->key, node->depth, node->slot);
            node->where = where;
        }
        node->asked_us = now_us;
    }
}

void lib_renew(struct lib *l, uint64_t now_us)
{
    end_renewals(l, now_us);
    if (now_us < l->renew_due_us || l->renewals == LIB_RENEWALS) {
        return;
    }
    /* How long a node may go without an ask: shards drop old in-flight entries. */
    uint64_t after = client_renewal_us(l->lane.client), early = after / RENEW_CHECKS;
    uint64_t pause = early > RENEW_CHECK_MIN_US ? early : RENEW_CHECK_MIN_US;
    l->renew_due_us = now_us + (pause < RENEW_CHECK_MAX_US ? pause : RENEW_CHECK_MAX_US);
    for (unsigned i = 0; i < l->nodes.count; i++) {
        if (now_us - l->nodes.at[i].asked_us >= after - early) {
            if (l->renewals == LIB_RENEWALS) {
                l->renew_due_us = now_us; /* the others when these are answered */
                return;
            }
            renew(l, &l->nodes.at[i], now_us);
        }
    }
}
