/* One JSON object a line for each shard, job and session, and the total. */
#include "worker/cli/json.h"
#include "worker/cli/watch.h"

#include <inttypes.h>

static void id_text(struct json *j, const char *name, uint64_t id)
{
    char text[24];
    snprintf(text, sizeof text, id != 0 ? "%016" PRIx64 : "", id);
    json_text(j, name, text);
}

static void print_shard(FILE *out, const struct watch_shard *s)
{
    struct json j;
    json_begin(&j, out);
    json_text(&j, "kind", "shard");
    json_text(&j, "address", s->address);
    json_text(&j, "state", s->up ? "up" : "down");
    if (s->up) {
        id_text(&j, "boot", s->boot);
        json_number(&j, "rtt_us", s->rtt_us);
        json_real(&j, "ops_per_s", s->ops_per_s);
        json_real(&j, "asks_per_s", s->asks_per_s);
        json_real(&j, "messages_per_s", s->messages_per_s);
        for (unsigned i = 0; i < s->figures; i++) {
            json_number(&j, s->figure[i].name, (int64_t)s->figure[i].value);
        }
    }
    json_end(&j);
}

static void print_job(FILE *out, const struct watch_job *job)
{
    struct json j;
    json_begin(&j, out);
    json_text(&j, "kind", "job");
    id_text(&j, "job", job->job);
    json_text(&j, "owner", job->owner);
    json_number(&j, "workers", job->workers);
    json_number(&j, "age_ms", job->age_ms);
    json_number(&j, "depth", job->depth);
    json_number(&j, "reached", job->reached);
    json_text(&j, "game", job->game);
    json_text(&j, "algorithm", job->algorithm);
    json_text(&j, "position", job->position);
    json_number(&j, "shards", watch_count(job->shards));
    json_end(&j);
}

static void print_member(FILE *out, const struct watch_member *m)
{
    struct json j;
    char instance_id[12];
    snprintf(instance_id, sizeof instance_id, "%08" PRIx32, m->instance_id);
    json_begin(&j, out);
    json_text(&j, "kind", watch_role(m->role));
    json_text(&j, "name", m->name);
    json_text(&j, "instance_id", instance_id);
    id_text(&j, "job", m->job);
    json_number(&j, "silent_ms", m->silent_ms);
    json_number(&j, "shards", watch_count(m->shards));
    json_end(&j);
}

void watch_print_json(const struct watch *w, FILE *out)
{
    struct watch_totals total = watch_sum(w);
    struct json j;
    unsigned count;
    for (unsigned i = 0; i < watch_shards(w); i++) {
        print_shard(out, watch_shard(w, i));
    }
    const struct watch_job *job = watch_jobs(w, &count);
    for (unsigned i = 0; i < count; i++) {
        print_job(out, &job[i]);
    }
    const struct watch_member *member = watch_members(w, &count);
    for (unsigned i = 0; i < count; i++) {
        print_member(out, &member[i]);
    }
    json_begin(&j, out);
    json_text(&j, "kind", "total");
    json_number(&j, "shards", watch_shards(w));
    json_number(&j, "shards_up", total.up);
    json_number(&j, "workers", total.members[PROTO_WORKER]);
    json_number(&j, "fronts", total.members[PROTO_FRONT]);
    json_number(&j, "jobs", total.jobs);
    json_number(&j, "inflight_nodes", (int64_t)total.nodes);
    json_number(&j, "inflight_entries", (int64_t)total.entries);
    json_real(&j, "ops_per_s", total.ops_per_s);
    json_end(&j);
}
