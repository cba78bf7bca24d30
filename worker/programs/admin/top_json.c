#include "worker/programs/admin/top_json.h"
#include "worker/games/games.h"
#include "worker/programs/json.h"
#include "worker/programs/score.h"

#include <inttypes.h>
#include <time.h>

static void put_id(struct json *j, const char *name, uint64_t id)
{
    char text[24];
    snprintf(text, sizeof text, id != 0 ? "%016" PRIx64 : "", id);
    json_text(j, name, text);
}

static void put_work(struct json *j, const struct watch_work *w)
{
    json_number(j, "nodes", (int64_t)w->nodes);
    json_real(j, "nodes_per_s", w->nodes_per_s);
    json_number(j, "duplicated_nodes", (int64_t)w->duplicated);
    json_number(j, "abandoned_nodes", (int64_t)w->abandoned);
    json_real(j, "overhead_estimate", counters_overhead(w->nodes, w->duplicated, w->abandoned));
    json_real(j, "duplicated", w->nodes > 0 ? (double)w->duplicated / (double)w->nodes : 0);
    json_real(j, "waiting", w->waiting);
    json_number(j, "bytes", (int64_t)w->bytes);
    json_real(j, "bytes_per_s", w->bytes_per_s);
}

static void put_talk(struct json *j, const struct watch_talk *t)
{
    json_real(j, "talking", t->talking);
    json_number(j, "asks", (int64_t)t->asks);
    json_real(j, "asks_per_s", t->asks_per_s);
    json_number(j, "bytes_sent", (int64_t)t->bytes_sent);
    json_number(j, "bytes_received", (int64_t)t->bytes_received);
}

static void put_shard(struct json *j, const struct watch_shard *s)
{
    json_text(j, "kind", "shard");
    json_text(j, "address", s->address);
    json_text(j, "state", s->up ? "up" : "down");
    if (s->up) {
        put_id(j, "boot", s->boot);
        json_number(j, "rtt_us", s->rtt_us);
        json_real(j, "ops_per_s", s->ops_per_s);
        json_real(j, "asks_per_s", s->asks_per_s);
        json_real(j, "messages_per_s", s->messages_per_s);
        for (unsigned i = 0; i < s->figures; i++) {
            json_number(j, s->figure[i].name, (int64_t)s->figure[i].value);
        }
    }
}

static void put_job(struct json *j, const struct watch_job *job)
{
    json_text(j, "kind", "job");
    put_id(j, "job", job->job);
    json_text(j, "owner", job->owner);
    json_text(j, "user", job->user);
    json_number(j, "workers", job->workers);
    json_number(j, "age_ms", job->age_ms);
    json_number(j, "depth", job->depth);
    json_number(j, "reached", job->reached);
    json_text(j, "game", job->game);
    json_text(j, "algorithm", job->algorithm);
    json_text(j, "position", job->position);
    json_number(j, "shards", __builtin_popcountll(job->shards));
    put_work(j, &job->work);
    if (job->reached > 0) {
        const struct game *game = games_by_name(job->game);
        int64_t value = job->score;
        json_text(j, "score_kind", game != NULL ? score_kind(game, job->score, &value) : "");
        json_number(j, "score", value);
        json_text(j, "line", job->line);
        if (game != NULL) {
            char san[WATCH_LINE_MAX];
            score_text_san(game, job->position, job->line, san, sizeof san);
            json_text(j, "line_san", san);
        }
    }
}

static void put_member(struct json *j, const struct watch_member *m)
{
    char instance_id[12];
    snprintf(instance_id, sizeof instance_id, "%08" PRIx32, m->instance_id);
    json_text(j, "kind", watch_role(m->role));
    json_text(j, "name", m->name);
    json_text(j, "user", m->user);
    json_text(j, "instance_id", instance_id);
    put_id(j, "job", m->job);
    json_number(j, "silent_ms", m->silent_ms);
    json_text(j, "release", m->release);
    json_number(j, "protocol", m->protocol);
    put_id(j, "refuses", m->refuses);
    json_text(j, "why", m->why);
    put_work(j, &m->work);
    put_talk(j, &m->talk);
    json_number(j, "shards", __builtin_popcountll(m->shards));
}

static void put_host(struct json *j, const struct watch_host *h)
{
    json_text(j, "kind", "host");
    json_text(j, "name", h->name);
    json_text(j, "role", watch_role(h->role));
    json_number(j, "sessions", h->sessions);
    put_work(j, &h->work);
    put_talk(j, &h->talk);
}

static void put_total(struct json *j, const struct watch_view *v)
{
    json_text(j, "kind", "total");
    json_number(j, "shards", v->shards);
    json_number(j, "shards_up", v->total.up);
    json_number(j, "workers", v->total.members[PROTO_WORKER]);
    json_number(j, "fronts", v->total.members[PROTO_FRONT]);
    json_number(j, "jobs", v->jobs);
    json_number(j, "inflight_nodes", (int64_t)v->total.nodes);
    json_number(j, "inflight_entries", (int64_t)v->total.entries);
    json_real(j, "ops_per_s", v->total.ops_per_s);
    put_work(j, &v->total.work);
}

void top_json_lines(const struct watch_view *v, FILE *out)
{
    struct json j;
    for (unsigned i = 0; i < v->shards; i++) {
        json_begin(&j, out);
        put_shard(&j, &v->shard[i]);
        json_end(&j);
    }
    for (unsigned i = 0; i < v->jobs; i++) {
        json_begin(&j, out);
        put_job(&j, &v->job[i]);
        json_end(&j);
    }
    for (unsigned i = 0; i < v->hosts; i++) {
        json_begin(&j, out);
        put_host(&j, &v->host[i]);
        json_end(&j);
    }
    for (unsigned i = 0; i < v->members; i++) {
        json_begin(&j, out);
        put_member(&j, &v->member[i]);
        json_end(&j);
    }
    json_begin(&j, out);
    put_total(&j, v);
    json_end(&j);
}

void top_json_view(const struct watch_view *v, FILE *out)
{
    struct json j;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    json_begin(&j, out);
    json_number(&j, "time_ms", (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000);
    json_array_begin(&j, "shards");
    for (unsigned i = 0; i < v->shards; i++) {
        json_object_begin(&j, NULL);
        put_shard(&j, &v->shard[i]);
        json_object_end(&j);
    }
    json_array_end(&j);
    json_array_begin(&j, "jobs");
    for (unsigned i = 0; i < v->jobs; i++) {
        json_object_begin(&j, NULL);
        put_job(&j, &v->job[i]);
        json_object_end(&j);
    }
    json_array_end(&j);
    json_array_begin(&j, "members");
    for (unsigned i = 0; i < v->members; i++) {
        json_object_begin(&j, NULL);
        put_member(&j, &v->member[i]);
        json_object_end(&j);
    }
    json_array_end(&j);
    json_object_begin(&j, "total");
    put_total(&j, v);
    json_object_end(&j);
    json_end(&j);
}
