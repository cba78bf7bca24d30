/* Sessions come, stay and end: HELLO, HEARTBEAT, worker indexes, BYE, silence. */
#include "ttserver/core/call.h"

/* The caller drops the orphaned jobs when all sessions that end in this step have ended. Returns
 * how many in-flight entries it had. */
static unsigned end_session(struct ttcore *core, struct ttcore_session *session)
{
    unsigned entries = tt_inflight_drop_session(&core->inflight, session->id);
    ttcore_orphan_jobs(core, session);
    ttcore_sessions_remove(&core->sessions, session);
    return entries;
}

static void send_worker_index(const struct ttcore *core, const struct ttcore_session *worker,
                              uint32_t target, struct ttcore_actions *actions)
{
    struct proto_message worker_index = {.type = PROTO_WORKER_INDEX};
    worker_index.worker_index =
        (struct proto_worker_index){worker->worker_index, core->sessions.of_role[PROTO_WORKER]};
    ttcore_actions_send(actions, &worker_index, target, 1);
}

void ttcore_send_worker_indexes(struct ttcore *core, struct ttcore_actions *actions)
{
    uint32_t workers = core->sessions.of_role[PROTO_WORKER];
    uint32_t turns = workers < TTCORE_INDEXES_PER_TICK ? workers : TTCORE_INDEXES_PER_TICK;
    for (uint32_t i = 0; i < turns; i++) {
        core->next_worker_index = core->next_worker_index < workers ? core->next_worker_index : 0;
        const struct ttcore_session *s =
            ttcore_sessions_worker_at(&core->sessions, core->next_worker_index);
        send_worker_index(core, s, ttcore_actions_target(actions, s->route, s->route_length),
                          actions);
        core->next_worker_index++;
    }
}

static void welcome(struct ttcore_call *call)
{
    const struct ttcore *core = call->core;
    struct proto_message answer = {.type = PROTO_WELCOME};
    answer.welcome = (struct proto_welcome){
        .request = call->message->hello.request,
        .session = call->session->id,
        .boot = core->options.boot,
        .heartbeat_ms = core->options.heartbeat_ms,
        .batch_max = core->options.batch_max,
        .jobs = core->jobs.open,
        .inflight_age_max_ms = core->options.inflight_age_max_ms,
    };
    ttcore_reply(call, &answer);
    if (call->session->role == PROTO_WORKER) {
        ttcore_push_jobs(call);
        send_worker_index(core, call->session, 0, call->actions);
    }
}

/* A HELLO of another instance on a live session comes from a peer that was started again: it knows
 * nothing of the in-flight entries and jobs of its predecessor. */
static void renew_session(struct ttcore_call *call, const struct proto_hello *hello)
{
    struct ttcore_session *session = call->session;
    bool is_other = session->instance != hello->instance;
    if (is_other || (hello->flags & PROTO_RELEASE_ALL) != 0) {
        tt_inflight_drop_session(&call->core->inflight, session->id);
    }
    if (is_other) {
        session->table_id = 0;
    }
    if (is_other || hello->role != PROTO_FRONT) {
        ttcore_orphan_jobs(call->core, session);
        ttcore_drop_orphans(call->core, call->actions);
    }
}

void ttcore_on_hello(struct ttcore_call *call)
{
    struct ttcore *core = call->core;
    const struct proto_hello *hello = &call->message->hello;
    if (hello->role > PROTO_CLIENT ||
        (hello->flags & ~(PROTO_WANTS_NODE_DONE | PROTO_RELEASE_ALL | PROTO_WANTS_RESULTS)) != 0) {
        ttcore_refuse(call, PROTO_ERR_RANGE, hello->request,
                      hello->role > PROTO_CLIENT ? "HELLO: unknown role" : "HELLO: unknown flag");
        return;
    }
    if (call->session != NULL) {
        renew_session(call, hello);
    } else {
        call->session = ttcore_sessions_add(&core->sessions, call->event->route,
                                            call->event->route_length, core->now_us);
        if (call->session == NULL) {
            core->count.sessions_refused++;
            ttcore_refuse(call, PROTO_ERR_LIMIT, hello->request,
                          "HELLO: this shard has as many sessions as it may (--sessions)");
            return;
        }
        core->count.sessions_opened++;
    }
    struct ttcore_session *session = call->session;
    ttcore_sessions_set_role(&core->sessions, session, hello->role);
    session->flags = hello->flags;
    session->namespace_id = hello->namespace_id;
    session->instance = hello->instance;
    session->searches = 0;
    proto_text_copy(hello->name, session->name, sizeof session->name);
    welcome(call);
}

void ttcore_on_bye(struct ttcore_call *call)
{
    end_session(call->core, call->session);
    ttcore_drop_orphans(call->core, call->actions);
}

void ttcore_on_heartbeat(struct ttcore_call *call)
{
    ttcore_reply(call, call->message);
}

void ttcore_lose_session(struct ttcore *core, struct ttcore_session *session,
                         struct ttcore_actions *actions)
{
    core->count.sessions_gone++;
    end_session(core, session);
    ttcore_drop_orphans(core, actions);
}

void ttcore_expire_sessions(struct ttcore *core, struct ttcore_actions *actions)
{
    struct ttcore_session *oldest;
    while ((oldest = ttcore_sessions_oldest(&core->sessions)) != NULL &&
           core->now_us - oldest->last_seen_us >= core->expiry_us) {
        core->count.inflight_expired += end_session(core, oldest);
        core->count.sessions_expired++;
    }
    ttcore_drop_orphans(core, actions);
}

void ttcore_dismiss_sessions(struct ttcore *core, struct ttcore_actions *actions)
{
    struct proto_message bye = {.type = PROTO_BYE};
    uint32_t first = actions->targets;
    struct ttcore_session *session;
    while ((session = ttcore_sessions_oldest(&core->sessions)) != NULL) {
        ttcore_actions_target(actions, session->route, session->route_length);
        end_session(core, session);
    }
    ttcore_actions_send(actions, &bye, first, actions->targets - first);
    ttcore_drop_orphans(core, actions);
}
