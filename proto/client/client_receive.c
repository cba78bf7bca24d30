#include "proto/client/client_state.h"

/* Ends the request of client_shard_query that a message answers; all these have it as their first
 * field. False: it was not outstanding. */
static bool answers(struct client *c, unsigned shard, enum part_kind kind,
                    const struct proto_message *m)
{
    struct part *part = client_shard_answered(c, shard, kind, m->heartbeat.request);
    if (part) {
        client_part_close(c, part);
    }
    return part != NULL;
}

/* A value out of its range is counted and makes no event: it must not reach the search. */
static void put_if(struct client *c, bool is_in_range, struct client_event event)
{
    c->counters.malformed += !is_in_range;
    if (is_in_range) {
        event_put(c, event);
    }
}

/* A message that is an event; one that is so if it answers a request. */
#define EVENT(TYPE, KIND, field, from, is_in_range)                                             \
    case PROTO_##TYPE:                                                                          \
        put_if(c, is_in_range, (struct client_event){CLIENT_##KIND, shard, .field = &m->from}); \
        break;
#define ANSWER(TYPE, PART, KIND, field, from, is_in_range)                          \
    case PROTO_##TYPE:                                                              \
        if (answers(c, shard, PART_##PART, m)) {                                    \
            put_if(c, is_in_range,                                                  \
                   (struct client_event){CLIENT_##KIND, shard, .field = &m->from}); \
        }                                                                           \
        break;

void client_receive(struct client *c, unsigned shard, const uint8_t *bytes, size_t length,
                    uint64_t now_us)
{
    struct proto_message *m = &c->message;
    CHECK(shard < c->options.shards);
    CHECK_THAT(!c->has_event, "client: events are taken before the next message");
    client_advance(c, now_us);
    c->counters.messages_received++;
    c->counters.bytes_received += length;

    /* 1. Is it a message? A shard that does not speak our version says so in one of its own. */
    bool is_read = proto_decode(c->decoder, bytes, length, m) == ERR_OK;
    bool refuses_version = is_read && m->type == PROTO_ERROR && m->error.code == PROTO_ERR_VERSION;
    if (!is_read || (m->version != PROTO_VERSION && !refuses_version)) {
        c->counters.malformed++;
        return;
    }

    /* 2. Does it come in a session, or begin or end one? */
    const struct shard *s = &c->shards[shard];
    bool begins = m->type == PROTO_WELCOME || m->type == PROTO_ERROR || m->type == PROTO_BYE;
    if (s->state == CLIENT_ABSENT || s->state == CLIENT_LEFT || (!s->known && !begins)) {
        c->counters.unexpected++;
        return;
    }

    /* 3. What is it about? */
    switch (m->type) {
        ANSWER(STATS_ANSWER, STATS, STATS, stats, stats_answer, true)
        ANSWER(MEMBERS_ANSWER, MEMBERS, MEMBERS, members, members_answer, true)
        ANSWER(JOBS_ANSWER, JOBS, JOBS, jobs, jobs_answer, true)
        ANSWER(MAIL_LIST, MAIL, CORRESPONDENTS, correspondents, mail_list, true)
        ANSWER(SCANNED, SCAN, SCANNED, scanned, scanned, proto_entries_in_range(&m->scanned.list))
        EVENT(MAIL, MAIL, mail, mail, true)
        EVENT(JOB, JOB, job, job, true)
        EVENT(JOB_STOP, JOB_STOP, job_stop, job_stop, true)
        EVENT(JOB_REPORT, JOB_REPORT, job_report, job_report,
              proto_report_fault(&m->job_report) == NULL)
        EVENT(WORKER_INDEX, WORKER_INDEX, worker_index, worker_index, true)
        EVENT(NODE_DONE, NODE_DONE, node_done, node_done,
              proto_results_in_range(&m->node_done.list, false))
    case PROTO_SHARE: {
        if (s->is_elsewhere) {
            break;
        }
        bool ok = proto_results_in_range(&m->share.list, true);
        c->counters.shares_taken += ok;
        c->counters.shared_taken += ok ? m->share.list.count : 0;
        put_if(c, ok, (struct client_event){CLIENT_SHARED, shard, .shared = &m->share});
        break;
    }
    case PROTO_WELCOME:
        client_shard_on_welcome(c, shard, &m->welcome);
        break;
    case PROTO_RETRIEVE_ANSWER:
        client_table_on_answer(c, shard, &m->retrieve_answer);
        break;
    case PROTO_PEEK_ANSWER:
        client_table_on_peek_answer(c, shard, &m->peek_answer);
        break;
    case PROTO_HEARTBEAT:
        (void)answers(c, shard, PART_HEARTBEAT, m);
        break;
    case PROTO_FLUSHED:
        (void)client_shard_on_flushed(c, shard, m->flushed.request, NULL);
        break;
    case PROTO_ERROR:
        client_shard_on_error(c, shard, &m->error);
        break;
    case PROTO_BYE:
        /* The shard's successor may have our last asks already, so queued releases stay. */
        client_shard_fall(c, shard, CLIENT_DOWN);
        c->shards[shard].hello_due_us = c->now_us + c->options.probe_us;
        break;
    default:
        c->counters.unexpected++;
        break;
    }
}
#undef EVENT
#undef ANSWER

bool client_next(struct client *c, struct client_event *out)
{
    /* A fall that was not said before the shard rose again comes first. */
    uint64_t falls = c->said_up & c->fell, rises = c->up & ~c->said_up;
    if ((falls | rises) != 0) {
        *out =
            (struct client_event){.kind = falls != 0 ? CLIENT_SHARD_DOWN : CLIENT_SHARD_UP,
                                  .shard = (unsigned)__builtin_ctzll(falls != 0 ? falls : rises)};
        c->said_up ^= UINT64_C(1) << out->shard;
        c->fell &= ~(UINT64_C(1) << out->shard);
        return true;
    }
    bool any = c->has_event;
    if (any) {
        *out = c->event;
        c->has_event = false;
    }
    return any;
}

/* ---- time ---- */

uint64_t client_tick(struct client *c, uint64_t now_us)
{
    uint64_t next = UINT64_MAX;
    client_advance(c, now_us);
    client_part_expire(c);
    for (unsigned s = 0; s < c->options.shards; s++) {
        uint64_t due = client_shard_tick(c, s);
        next = due < next ? due : next;
    }
    return next < c->next_expiry_us ? next : c->next_expiry_us;
}
