/* Sessions come, stay and end: HELLO, HEARTBEAT, worker indexes, BYE, silence. */
#include "proto/alias.h"
#include "ttserver/core/call.h"

#include <string.h>

enum { PUSHES_PER_HEARTBEAT = 4 /* of a session, at most */ };

#define TEXT_OF(number) TEXT_OF_(number)
#define TEXT_OF_(number) #number

/* Its own version says what is spoken here: it can be read whatever it is. */
void ttcore_refuse_version(struct ttcore_call *call, uint32_t request)
{
    call->core->count.versions_refused++;
    call->actions->target[0].version = call->core->options.version;
    ttcore_error(call, PROTO_ERR_VERSION, request,
                 call->core->options.version > PROTO_LOWEST
                     ? "this shard speaks protocol versions " TEXT_OF(PROTO_LOWEST) " to " TEXT_OF(
                           PROTO_VERSION)
                     : "this shard speaks protocol version " TEXT_OF(PROTO_LOWEST));
}

static unsigned drop_inflight(struct ttcore *core, struct ttcore_session *session)
{
    unsigned entries = tt_inflight_drop_session(&core->inflight, session->id);
    CHECK_THAT(session->user->inflight >= entries, "a user has in flight what its sessions have");
    session->user->inflight -= entries;
    return entries;
}

static void note_change(struct ttcore_changed *changed, const struct ttcore_session *session)
{
    if (changed->count < TTCORE_CHANGED_NAMES) {
        memcpy(changed->name[changed->count], session->name, sizeof session->name);
    }
    changed->count++;
}

struct ttcore_changes ttcore_take_changes(struct ttcore *core)
{
    struct ttcore_changes changes = core->changes;
    changes.workers = core->sessions.of_role[PROTO_WORKER];
    core->changes = (struct ttcore_changes){.workers = 0};
    return changes;
}

/* The caller drops the orphaned jobs when all sessions that end in this step have ended. Returns
 * how many in-flight entries it had. */
static unsigned end_session(struct ttcore *core, struct ttcore_session *session)
{
    unsigned entries = drop_inflight(core, session);
    ttcore_orphan_jobs(core, session);
    CHECK_THAT(session->jobs == 0, "a session that ends owns no job");
    if (session->role == PROTO_WORKER) {
        note_change(&core->changes.went, session);
    }
    ttcore_sessions_remove(&core->sessions, session);
    ttcore_users_leave(&core->users, session->user);
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
        send_worker_index(core, s,
                          ttcore_actions_target(actions, s->route, s->route_length, s->version),
                          actions);
        core->next_worker_index++;
    }
}

/* All open jobs are much for a short HELLO: a peer that repeats it waits for them. */
static bool may_push(struct ttcore *core, struct ttcore_session *session)
{
    if (core->now_us < session->push_after_us ||
        !ttcore_budget_take(&session->user->pushes_us, core->now_us, TTCORE_PUSHES_BURST,
                            ttcore_heartbeat_us(core) / TTCORE_PUSHES, 1)) {
        core->count.pushes_put_off++;
        return false;
    }
    return true;
}

static void note_pushed(const struct ttcore *core, struct ttcore_session *session)
{
    session->push_after_us = core->now_us + ttcore_heartbeat_us(core) / PUSHES_PER_HEARTBEAT;
    session->push_owed = false;
}

void ttcore_push_owed(struct ttcore *core, struct ttcore_actions *actions)
{
    uint32_t first = actions->targets, workers = core->sessions.of_role[PROTO_WORKER];
    bool owed = false;
    for (uint32_t i = 0; core->pushes_owed && i < workers; i++) {
        core->next_owed = core->next_owed < workers ? core->next_owed : 0;
        struct ttcore_session *s = ttcore_sessions_worker_at(&core->sessions, core->next_owed);
        bool is_due = s->push_owed && core->now_us >= s->push_after_us;
        if (is_due && actions->targets - first == TTCORE_OWED_PER_TICK) {
            owed = true;
            break; /* its turn is the first of the next tick */
        }
        owed = owed || (s->push_owed && !is_due);
        if (is_due) {
            note_pushed(core, s);
            ttcore_actions_target(actions, s->route, s->route_length, s->version);
        }
        core->next_owed++;
    }
    core->pushes_owed = owed;
    ttcore_push_jobs(core, actions, first, actions->targets - first);
}

static void welcome(struct ttcore_call *call)
{
    struct ttcore *core = call->core;
    struct proto_message answer = {.type = PROTO_WELCOME};
    answer.welcome = (struct proto_welcome){
        .request = call->message->hello.request,
        .session = call->session->id,
        .boot = core->options.boot,
        .heartbeat_ms = core->options.heartbeat_ms,
        .batch_max = core->options.batch_max,
        .jobs = core->jobs.open,
        .inflight_age_max_ms = core->options.inflight_age_max_ms,
        .place = core->options.place,
    };
    ttcore_reply(call, &answer);
    if (call->session->role == PROTO_WORKER) {
        if (may_push(core, call->session)) {
            note_pushed(core, call->session);
            ttcore_push_jobs(core, call->actions, 0, 1);
        } else {
            call->session->push_owed = core->pushes_owed = true;
        }
        send_worker_index(core, call->session, 0, call->actions);
    }
}

/* A HELLO of another instance on a live session comes from a peer that was started again: it knows
 * nothing of the in-flight entries and jobs of its predecessor. */
static void renew_session(struct ttcore_call *call, const struct proto_hello *hello,
                          const struct ttcore_user *user)
{
    struct ttcore_session *session = call->session;
    bool is_other = session->instance != hello->instance || session->user != user;
    if (is_other || (hello->flags & PROTO_RELEASE_ALL) != 0 || hello->role == PROTO_MONITOR) {
        drop_inflight(call->core, session);
    }
    if (is_other) {
        session->table_id = 0;
    }
    if (is_other || hello->role != PROTO_FRONT) {
        ttcore_orphan_jobs(call->core, session);
        ttcore_drop_orphans(call->core, call->actions);
    }
}

/* NULL: the HELLO may be granted; its user has no more sessions than it may. */
static const char *hello_fault(struct ttcore_call *call, const struct proto_hello *hello,
                               enum proto_error_code *code)
{
    unsigned known = PROTO_WANTS_NODE_DONE | PROTO_RELEASE_ALL | PROTO_WANTS_RESULTS;
    *code = PROTO_ERR_RANGE;
    if (hello->role > PROTO_MONITOR || (hello->flags & ~known) != 0) {
        return hello->role > PROTO_MONITOR ? "HELLO: unknown role" : "HELLO: unknown flag";
    }
    if (!(call->peer.may >> hello->role & 1)) {
        call->core->count.role_refused++;
        *code = PROTO_ERR_ROLE;
        return "HELLO: this key does not allow that role";
    }
    return NULL;
}

/* The session of this HELLO, of `user` from now on. NULL: refused. */
static struct ttcore_session *session_for(struct ttcore_call *call, struct ttcore_user *user)
{
    struct ttcore *core = call->core;
    struct ttcore_session *session = call->session;
    uint32_t max = core->sessions.max, user_max = max - max / 4;
    const char *fault = NULL;
    if (session == NULL && core->sessions.live == max) {
        core->count.sessions_refused++;
        fault = "HELLO: this shard has as many sessions as it may (--sessions)";
    } else if (user->sessions >= user_max && (session == NULL || session->user != user)) {
        core->count.sessions_over_quota++;
        fault = "HELLO: this user has three quarters of all sessions of this shard (--sessions) "
                "and may have no more";
    }
    if (fault != NULL) {
        ttcore_refuse(call, PROTO_ERR_LIMIT, call->message->hello.request, fault);
        return NULL;
    }
    if (session == NULL) {
        session = ttcore_sessions_add(&core->sessions, call->event->route,
                                      call->event->route_length, core->now_us);
        CHECK_THAT(session != NULL, "there is a slot for a session while not all are live");
        core->count.sessions_opened++;
    } else {
        renew_session(call, &call->message->hello, user);
    }
    if (session->user != user) {
        if (session->user != NULL) {
            ttcore_users_leave(&core->users, session->user); /* first: it leaves its debts */
        }
        ttcore_users_join(&core->users, user);
        ttcore_sessions_set_user(&core->sessions, session, user);
    }
    return session;
}

void ttcore_on_hello(struct ttcore_call *call)
{
    struct ttcore *core = call->core;
    const struct proto_hello *hello = &call->message->hello;
    const struct ttcore_peer *peer = &call->peer;
    const uint32_t version =
        proto_common_version(call->message, PROTO_LOWEST, core->options.version);
    enum proto_error_code code;
    if (version == 0) {
        ttcore_refuse_version(call, hello->request);
        return;
    }
    call->actions->target[0].version = version; /* the sender */
    const char *fault = hello_fault(call, hello, &code);
    if (fault != NULL) {
        ttcore_refuse(call, code, hello->request, fault);
        return;
    }
    const uint64_t alias = proto_alias(hello->instance);
    struct ttcore_user *user =
        ttcore_users_of(&core->users, peer->user != 0 ? peer->user : alias, peer->user == 0);
    CHECK_THAT(user != NULL, "there are more users than sessions");
    struct ttcore_session *session = call->session = session_for(call, user);
    if (session == NULL) {
        return;
    }
    if (peer->name != NULL) {
        proto_text_copy(proto_text_of(peer->name), user->name, sizeof user->name);
    }
    bool is_monitor = hello->role == PROTO_MONITOR;
    bool was_worker = session->role == PROTO_WORKER;
    bool is_worker = hello->role == PROTO_WORKER;
    if (was_worker && (!is_worker || session->instance != hello->instance)) {
        note_change(&core->changes.went, session);
        was_worker = false;
    }
    ttcore_sessions_set_role(&core->sessions, session, hello->role);
    ttcore_sessions_want(&core->sessions, session, false);
    if (is_monitor || session->instance != hello->instance) {
        ttcore_sessions_set_mail(&core->sessions, session, 0);
    }
    session->flags = is_monitor ? 0 : hello->flags;
    session->namespace_id = hello->namespace_id;
    session->instance = hello->instance;
    session->alias = alias;
    session->table_id = hello->table_id;
    session->version = version;
    session->highest = hello->highest != 0 ? hello->highest : call->message->version;
    session->searches = session->refuses = 0;
    session->work = (struct ttcore_work){0};
    ttcore_sessions_want(&core->sessions, session, session->flags & PROTO_WANTS_RESULTS);
    proto_text_copy(hello->name, session->name, sizeof session->name);
    proto_text_copy(hello->release, session->release, sizeof session->release);
    if (is_worker && !was_worker) {
        note_change(&core->changes.came, session);
    }
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

void ttcore_expire_inflight(struct ttcore *core, uint64_t before_us)
{
    unsigned expired = tt_inflight_expire(&core->inflight, before_us);
    core->count.inflight_expired += expired;
    const struct ttcore_session *first =
        expired > 0 ? ttcore_sessions_oldest(&core->sessions) : NULL;
    for (const struct ttcore_session *s = first; s != NULL;
         s = ttcore_sessions_next(&core->sessions, s)) {
        s->user->inflight = 0;
    }
    for (const struct ttcore_session *s = first; s != NULL;
         s = ttcore_sessions_next(&core->sessions, s)) {
        s->user->inflight += tt_inflight_listed(&core->inflight, s->id); /* a list of its own */
    }
}

void ttcore_dismiss_sessions(struct ttcore *core, struct ttcore_actions *actions)
{
    struct proto_message bye = {.type = PROTO_BYE};
    uint32_t first = actions->targets;
    struct ttcore_session *session;
    while ((session = ttcore_sessions_oldest(&core->sessions)) != NULL) {
        ttcore_actions_target(actions, session->route, session->route_length, session->version);
        end_session(core, session);
    }
    ttcore_actions_send(actions, &bye, first, actions->targets - first);
    ttcore_drop_orphans(core, actions);
}
