/* MAIL_JOIN, MAIL: letters between the searchers of an open job. */
#include "ttserver/core/call.h"

/* A worker is of every job; others of those of their user alone: else anybody could give a user's
 * searchers work, or take theirs. */
static bool may_join(struct ttcore *core, const struct ttcore_session *session, uint64_t id)
{
    const struct ttcore_job *job = id != 0 ? ttcore_jobs_find(&core->jobs, id) : NULL;
    const struct ttcore_session *owner =
        job != NULL ? ttcore_sessions_by_id(&core->sessions, job->owner) : NULL;
    return owner != NULL && (session->role == PROTO_WORKER || session->user == owner->user);
}

void ttcore_on_mail_join(struct ttcore_call *call)
{
    struct ttcore *core = call->core;
    struct ttcore_session *self = call->session;
    const struct proto_mail_join *join = &call->message->mail_join;
    struct proto_correspondent *out = call->actions->scratch->correspondent;
    struct proto_message answer = {.type = PROTO_MAIL_LIST};
    const uint64_t job = may_join(core, self, join->job) ? join->job : 0;
    uint32_t count = 0;
    ttcore_sessions_set_mail(&core->sessions, self, job);
    for (const struct ttcore_session *s = job != 0 ? ttcore_sessions_oldest(&core->sessions) : NULL;
         s != NULL && count < PROTO_BATCH_MAX; s = ttcore_sessions_next(&core->sessions, s)) {
        if (s != self && s->mail_job == job) {
            out[count++].instance = s->instance;
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
    if (to == NULL) {
        core->count.letters_lost++;
        return;
    }
    core->count.letters++;
    letter.mail.from = call->session->instance; /* whatever it says */
    ttcore_actions_send(call->actions, &letter,
                        ttcore_actions_target(call->actions, to->route, to->route_length), 1);
}
