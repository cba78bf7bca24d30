/* MAIL_JOIN, MAIL: letters between the searchers of an open job. */
#include "ttserver/core/call.h"

/* A worker is of every job; others of those of their user alone: else anybody could give a user's
 * searchers work, or take theirs. Where users are not known, as on a loopback without keys, anybody
 * may. Nobody takes the alias, and so the letters, of another user's session, but for the job's
 * user, who gets back what a worker took: that needs the instance, which nobody is told. */
static bool may_join(const struct ttcore_call *call, uint64_t id)
{
    struct ttcore *core = call->core;
    const struct ttcore_session *self = call->session;
    const struct ttcore_job *job = id != 0 ? ttcore_jobs_find(&core->jobs, id) : NULL;
    const struct ttcore_session *owner =
        job != NULL ? ttcore_sessions_by_id(&core->sessions, job->owner) : NULL;
    const struct ttcore_session *namesake =
        ttcore_sessions_find_mail(&core->sessions, id, self->alias);
    return owner != NULL &&
           (namesake == NULL || namesake->user == self->user || self->user == owner->user) &&
           (self->role == PROTO_WORKER || self->user == owner->user || call->peer.user == 0);
}

static bool may_send(struct ttcore_call *call, uint32_t cost)
{
    struct ttcore *core = call->core;
    const bool may = ttcore_budget_take(&call->session->letters_us, core->now_us,
                                        TTCORE_LETTERS_BURST, 1000000 / TTCORE_LETTERS, cost);
    core->count.letters_too_fast += !may;
    return may;
}

void ttcore_on_mail_join(struct ttcore_call *call)
{
    struct ttcore *core = call->core;
    struct ttcore_session *self = call->session;
    const struct proto_mail_join *join = &call->message->mail_join;
    struct proto_correspondent *out = call->actions->scratch->correspondent;
    struct proto_message answer = {.type = PROTO_MAIL_LIST};
    uint32_t count = 0;
    uint64_t job = 0;
    if (may_send(call, TTCORE_JOIN_COST)) { /* else it stays where it is, and is told of nobody */
        job = may_join(call, join->job) ? join->job : 0;
        ttcore_sessions_set_mail(&core->sessions, self, job);
    }
    for (const struct ttcore_session *s = job != 0 ? ttcore_sessions_oldest(&core->sessions) : NULL;
         s != NULL && count < PROTO_BATCH_MAX; s = ttcore_sessions_next(&core->sessions, s)) {
        if (s != self && s->mail_job == job) {
            out[count++].alias = s->alias;
        }
    }
    answer.mail_list =
        (struct proto_mail_list){.request = join->request, .job = join->job, .list = {count, out}};
    ttcore_reply(call, &answer);
}

/* Kept nowhere: who is not there, or does not read, does not get it. */
void ttcore_on_mail(struct ttcore_call *call)
{
    struct ttcore *core = call->core;
    struct proto_message letter = *call->message;
    const uint64_t job = letter.mail.job;
    const struct ttcore_session *to =
        job != 0 && call->session->mail_job == job
            ? ttcore_sessions_find_mail(&core->sessions, job, letter.mail.to)
            : NULL;
    if (!may_send(call, 1)) {
        return;
    }
    if (to == NULL) {
        core->count.letters_lost++;
        return;
    }
    core->count.letters++;
    letter.mail.from = call->session->alias; /* whatever it says */
    const uint32_t messages = call->actions->messages;
    ttcore_actions_send(
        call->actions, &letter,
        ttcore_actions_target(call->actions, to->route, to->route_length, to->version), 1);
    if (call->actions->messages > messages) {
        call->actions->message[messages].may_drop = true; /* answers to its asks come first */
    }
}
