/* MAIL_JOIN, MAIL: letters between the searchers of an open job. */
#include "ttserver/core/core_state.h"

/* The positions of a bag come from the job's owner, and answers go to it: a worker that could write
 * to another would give it work that nobody posted. */
static bool may_write(const struct ttcore *core, const struct ttcore_job *job,
                      const struct ttcore_session *one, const struct ttcore_session *other)
{
    return !job->has_bag || ttcore_owns_job(core, job, one) || ttcore_owns_job(core, job, other);
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
    uint32_t count = 0;

    /* 1. May it? A worker may join every job; others those of their user alone: else anybody could
     * give a user's searchers work, or take theirs. Where users are not known, as on a loopback
     * without keys, anybody may. Nobody takes the alias, and so the letters, of another user's
     * session, except the job's user, who gets back what a worker took: that needs the instance,
     * which nobody is told. */
    const struct ttcore_job *job = join->job != 0 ? ttcore_jobs_find(&core->jobs, join->job) : NULL;
    const struct ttcore_session *owner =
        job != NULL ? ttcore_sessions_by_id(&core->sessions, job->owner) : NULL;
    const struct ttcore_session *namesake =
        ttcore_sessions_find_mail(&core->sessions, join->job, self->alias);
    if (owner == NULL ||
        (namesake != NULL && namesake->user != self->user && self->user != owner->user) ||
        (self->role != PROTO_WORKER && self->user != owner->user && call->peer.user != 0)) {
        job = NULL;
    }

    /* 2. It joins that job, or none; one that asks too often stays where it is, and is told of
     * nobody. */
    if (may_send(call, TTCORE_JOIN_COST)) {
        ttcore_sessions_set_mail(&core->sessions, self, job != NULL ? join->job : 0);
    } else {
        job = NULL;
    }

    /* 3. MAIL_LIST: to whom it may write. */
    const struct ttcore_session *s;
    for (s = job != NULL ? TAILQ_FIRST(&core->sessions.by_silence) : NULL;
         s != NULL && count < PROTO_BATCH_MAX; s = TAILQ_NEXT(s, link)) {
        if (s != self && s->mail_job == join->job && may_write(core, job, self, s)) {
            out[count++].alias = s->alias;
        }
    }
    struct proto_message answer = {.type = PROTO_MAIL_LIST};
    answer.mail_list =
        (struct proto_mail_list){.request = join->request, .job = join->job, .list = {count, out}};
    ttcore_reply(call, &answer);
}

/* Kept nowhere: who is not there, or does not read, does not get it. */
void ttcore_on_mail(struct ttcore_call *call)
{
    struct ttcore *core = call->core;
    struct proto_message letter = *call->message;
    const uint64_t id = letter.mail.job;
    const struct ttcore_job *job =
        call->session->mail_job == id && id != 0 ? ttcore_jobs_find(&core->jobs, id) : NULL;
    const struct ttcore_session *to =
        job != NULL ? ttcore_sessions_find_mail(&core->sessions, id, letter.mail.to) : NULL;
    if (!may_send(call, 1)) {
        return;
    }
    if (to == NULL || !may_write(core, job, call->session, to)) {
        core->count.letters_lost++;
        return;
    }
    core->count.letters++;
    letter.mail.from = call->session->alias; /* whatever it says */
    const uint32_t messages = call->actions->messages;
    ttcore_send(call->actions, to, &letter);
    if (call->actions->messages > messages) {
        call->actions->message[messages].may_drop = true; /* answers to its asks come first */
    }
}
