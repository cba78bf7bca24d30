/* Sessions come, stay and end: HELLO, HEARTBEAT, worker indexes, BYE, silence. */
#include "proto/alias.h"
#include "ttserver/core/core_state.h"

#include <string.h>

enum { PUSHES_PER_HEARTBEAT = 4 /* of a session, at most */ };

#define TEXT_OF(number) TEXT_OF_(number)
#define TEXT_OF_(number) #number

void ttcore_refuse_version(struct ttcore_call *call, uint32_t request)
{
    call->core->count.versions_refused++;
    ttcore_error(call, PROTO_ERR_VERSION, request,
                 "this shard speaks protocol version " TEXT_OF(PROTO_VERSION));
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
        send_worker_index(core, s, ttcore_target(actions, s), actions);
        core->next_worker_index++;
    }
}

/* Pushes jobs to these workers, which all have got those before slot `from`. */
static void push(struct ttcore *core, struct ttcore_actions *actions, uint32_t from,
                 struct ttcore_session *const *worker, uint32_t first, uint32_t workers)
{
    const uint32_t next = ttcore_push_jobs(core, actions, from, first, workers);
    for (uint32_t i = 0; i < workers; i++) {
        if (from == 0) {
            worker[i]->push_after_us =
                core->now_us + ttcore_heartbeat_us(core) / PUSHES_PER_HEARTBEAT;
        }
        worker[i]->push_from = next;
        worker[i]->push_owed = next != 0;
        core->pushes_owed = core->pushes_owed || next != 0;
    }
}

/* One tick pushes one part of the jobs, to all for whom it is the next. The first who is left out
 * is the first of the next tick. */
void ttcore_push_owed(struct ttcore *core, struct ttcore_actions *actions)
{
    struct ttcore_session *worker[TTCORE_OWED_PER_TICK];
    const uint32_t first = actions->targets, workers = core->sessions.of_role[PROTO_WORKER];
    uint32_t count = 0, next = workers;
    bool owed = false;
    for (uint32_t i = 0; core->pushes_owed && i < workers; i++) {
        const uint32_t index = (core->next_owed + i) % workers;
        struct ttcore_session *s = ttcore_sessions_worker_at(&core->sessions, index);
        const bool is_due = s->push_owed && (s->push_from > 0 || core->now_us >= s->push_after_us);
        if (is_due && count < TTCORE_OWED_PER_TICK &&
            (count == 0 || s->push_from == worker[0]->push_from)) {
            worker[count++] = s;
            (void)ttcore_target(actions, s);
        } else {
            next = is_due && next == workers ? index : next;
            owed = owed || s->push_owed;
        }
    }
    core->next_owed = next;
    core->pushes_owed = owed;
    if (count > 0) {
        push(core, actions, worker[0]->push_from, worker, first, count);
    }
}

/* PROTOCOL.md section 6 says what a HELLO does; docs/design.md section 3 what a session is. */
void ttcore_on_hello(struct ttcore_call *call)
{
    struct ttcore *core = call->core;
    const struct proto_hello *hello = &call->message->hello;
    const struct ttcore_peer *peer = &call->peer;
    const bool is_monitor = hello->role == PROTO_MONITOR, is_worker = hello->role == PROTO_WORKER;
    const uint32_t known = PROTO_WANTS_NODE_DONE | PROTO_RELEASE_ALL | PROTO_WANTS_RESULTS;
    struct ttcore_session *session = call->session; /* NULL: this connection has none yet */

    /* 1. Is it understood, and does the key allow the role? */
    if (!proto_speaks_ours(call->message)) {
        ttcore_refuse_version(call, hello->request);
        return;
    }
    const char *fault = hello->role > PROTO_MONITOR    ? "HELLO: unknown role"
                        : (hello->flags & ~known) != 0 ? "HELLO: unknown flag"
                        : hello->instance == 0         ? "HELLO: no instance"
                                                       : NULL;
    if (fault != NULL) {
        ttcore_refuse(call, PROTO_ERR_RANGE, hello->request, fault);
        return;
    }
    if (!(peer->may >> hello->role & 1)) {
        core->count.role_refused++;
        ttcore_refuse(call, PROTO_ERR_ROLE, hello->request,
                      "HELLO: this key does not allow that role");
        return;
    }

    /* 2. Is there room for a session, and for one of this user? */
    const uint64_t alias = proto_alias(hello->instance);
    struct ttcore_user *user =
        ttcore_users_of(&core->users, peer->user != 0 ? peer->user : alias, peer->user == 0);
    CHECK_THAT(user != NULL, "there are more users than sessions");
    const uint32_t max = core->sessions.max;
    if (session == NULL && core->sessions.live == max) {
        core->count.sessions_refused++;
        ttcore_refuse(call, PROTO_ERR_LIMIT, hello->request,
                      "HELLO: this shard has as many sessions as it may (--sessions)");
        return;
    }
    if (user->sessions >= max - max / 4 && (session == NULL || session->user != user)) {
        core->count.sessions_over_quota++;
        ttcore_refuse(call, PROTO_ERR_LIMIT, hello->request,
                      "HELLO: this user has three quarters of all sessions of this shard "
                      "(--sessions) and may have no more");
        return;
    }

    /* 3. A new session; or what was of the old one ends, of another instance all: it comes from a
     * peer that was started again, and knows nothing of in-flight entries and jobs. */
    if (session == NULL) {
        session = ttcore_sessions_add(&core->sessions, call->event->route,
                                      call->event->route_length, core->now_us);
        CHECK_THAT(session != NULL, "there is a slot for a session while not all are live");
        call->session = session;
        core->count.sessions_opened++;
    } else {
        bool is_other = session->instance != hello->instance || session->user != user;
        if (is_other || (hello->flags & PROTO_RELEASE_ALL) != 0 || is_monitor) {
            drop_inflight(core, session);
        }
        if (is_other) {
            session->table_id = 0;
        }
        if (is_other || hello->role != PROTO_FRONT) {
            ttcore_orphan_jobs(core, session);
            ttcore_drop_orphans(core, call->actions);
        }
    }

    /* 4. Whose it is. */
    if (session->user != user) {
        if (session->user != NULL) {
            ttcore_users_leave(&core->users, session->user); /* first: it leaves its debts */
        }
        ttcore_users_join(&core->users, user);
        ttcore_sessions_set_user(&core->sessions, session, user);
    }
    if (peer->name != NULL) {
        proto_text_copy(proto_text_of(peer->name), user->name, sizeof user->name);
    }

    /* 5. What it is from now on. Lists are left before what they go by changes. */
    bool was_worker = session->role == PROTO_WORKER;
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
    session->highest = hello->highest != 0 ? hello->highest : call->message->version;
    session->searches = session->refuses = 0;
    session->work = (struct ttcore_work){0};
    ttcore_sessions_want(&core->sessions, session, session->flags & PROTO_WANTS_RESULTS);
    proto_text_copy(hello->name, session->name, sizeof session->name);
    proto_text_copy(hello->release, session->release, sizeof session->release);
    if (is_worker && !was_worker) {
        note_change(&core->changes.came, session);
    }

    /* 6. WELCOME; to a worker the open jobs, which are much for a short HELLO: a peer that repeats
     * it waits for them. */
    struct proto_message answer = {.type = PROTO_WELCOME};
    answer.welcome = (struct proto_welcome){
        .request = hello->request,
        .session = session->id,
        .boot = core->options.boot,
        .heartbeat_ms = core->options.heartbeat_ms,
        .batch_max = core->options.batch_max,
        .jobs = core->jobs.open,
        .inflight_age_max_ms = core->options.inflight_age_max_ms,
        .place = core->options.place,
    };
    ttcore_reply(call, &answer);
    if (!is_worker) {
        return;
    }
    if (core->now_us >= session->push_after_us &&
        ttcore_budget_take(&user->pushes_us, core->now_us, TTCORE_PUSHES_BURST,
                           ttcore_heartbeat_us(core) / TTCORE_PUSHES, 1)) {
        push(core, call->actions, 0, &session, 0, 1);
    } else {
        core->count.pushes_put_off++;
        session->push_owed = core->pushes_owed = true;
        session->push_from = 0;
    }
    send_worker_index(core, session, 0, call->actions);
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
    while ((oldest = TAILQ_FIRST(&core->sessions.by_silence)) != NULL &&
           core->now_us - oldest->last_seen_us >= core->expiry_us) {
        core->count.inflight_expired += end_session(core, oldest);
        core->count.sessions_expired++;
    }
    ttcore_drop_orphans(core, actions);
}

void ttcore_expire_inflight(struct ttcore *core, uint64_t before_us)
{
    unsigned expired = tt_inflight_expire(&core->inflight, before_us);
    const struct ttcore_session *s;
    core->count.inflight_expired += expired;
    if (expired == 0) {
        return;
    }
    for (s = TAILQ_FIRST(&core->sessions.by_silence); s != NULL; s = TAILQ_NEXT(s, link)) {
        s->user->inflight = 0;
    }
    for (s = TAILQ_FIRST(&core->sessions.by_silence); s != NULL; s = TAILQ_NEXT(s, link)) {
        s->user->inflight += tt_inflight_listed(&core->inflight, s->id); /* a list of its own */
    }
}

void ttcore_dismiss_sessions(struct ttcore *core, struct ttcore_actions *actions)
{
    struct proto_message bye = {.type = PROTO_BYE};
    uint32_t first = actions->targets;
    struct ttcore_session *session;
    while ((session = TAILQ_FIRST(&core->sessions.by_silence)) != NULL) {
        (void)ttcore_target(actions, session);
        end_session(core, session);
    }
    ttcore_actions_send(actions, &bye, first, actions->targets - first);
    ttcore_drop_orphans(core, actions);
}
