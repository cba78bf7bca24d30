/* SHARE: results passed on to sessions of the same namespace that want them and have another table.
 */
#include "ttserver/core/call.h"

enum {
    SHARE_TO = 2, /* targets of one message: what each receives does not grow with their number */
    SHARE_TRIES = 64, /* sessions considered */
};

void ttcore_on_share(struct ttcore_call *call)
{
    struct ttcore *core = call->core;
    const struct proto_stores *list = &call->message->share.list;
    if (list->count > core->options.batch_max) {
        core->count.batches_refused++;
        ttcore_refuse(call, PROTO_ERR_LIMIT, 0, "SHARE: more results than batch_max");
        return;
    }
    if (!proto_results_in_range(list)) {
        ttcore_refuse(call, PROTO_ERR_RANGE, 0, "SHARE: a value outside its range");
        return;
    }
    if (list->count == 0) {
        return;
    }
    uint64_t table_id = call->session->table_id = call->message->share.table_id;
    /* In turns; not those that use the same table. */
    uint64_t namespace_id = call->session->namespace_id;
    uint32_t first = call->actions->targets;
    const struct ttcore_session *begin = NULL;
    for (unsigned n = 0; n < SHARE_TRIES && call->actions->targets - first < SHARE_TO; n++) {
        const struct ttcore_session *s =
            ttcore_sessions_next_wanting(&core->sessions, namespace_id);
        if (s == NULL || s == begin) {
            break; /* all had their turn */
        }
        begin = begin != NULL ? begin : s;
        if (s != call->session && s->namespace_id == namespace_id &&
            (s->table_id != table_id || table_id == 0)) {
            ttcore_actions_target(call->actions, s->route, s->route_length);
        }
    }
    if (call->actions->targets > first) {
        core->count.shared += list->count;
        ttcore_actions_send_bytes(call->actions, call->event->bytes, (uint32_t)call->event->length,
                                  first, call->actions->targets - first);
    }
}
