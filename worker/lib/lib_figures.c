/* Statistics: this client's, and a shard's. */
#include "worker/lib/lib.h"

#include <stdio.h>

static void put(struct abdada_figure *out, size_t capacity, int *count, const char *name,
                uint64_t value)
{
    if ((size_t)*count < capacity) {
        struct abdada_figure *f = &out[*count];
        snprintf(f->name, sizeof f->name, "%s", name);
        f->value = value;
    }
    ++*count;
}

int abdada_stats(struct abdada *t, struct abdada_figure *out, size_t capacity)
{
    int count = 0;
    LIB_ENTER_OR_RETURN(t, out != NULL || capacity == 0, l);
    const struct client_counters *c = client_counters(l->lane.client);
#define PUT(name, value) put(out, capacity, &count, name, value)
    PUT("asks", c->asks);
    PUT("peeks", c->peeks);
    PUT("stores", c->stores);
    PUT("timeouts", c->timeouts);
    PUT("late", c->late);
    PUT("ups", c->ups);
    PUT("downs", c->downs);
    PUT("refused", c->refused);
    PUT("malformed", c->malformed);
    PUT("unexpected", c->unexpected);
    PUT("dropped", c->dropped);
    PUT("leaks", c->leaks);
    PUT("exhausted", c->exhausted);
    PUT("shared", c->shared);
    PUT("shared_taken", c->shared_taken);
    if (l->feed != NULL) {
        PUT("share_lost", atomic_load(&l->feed->lost));
        PUT("share_depth", atomic_load(&l->feed->feed.least) / FEED_STEPS);
    }
    PUT("shards_up", client_shards_up(l->lane.client));
    PUT("tickets", l->tickets);
    PUT("in_flight", l->nodes.count);
#undef PUT
    return lib_leave(t, count);
}

void lib_figures_on_stats(struct lib *l, unsigned shard, const struct proto_stats_answer *answer)
{
    if (l->figures == NULL || shard != l->figures_shard) {
        return;
    }
    l->figures_count = 0;
    for (uint32_t i = 0; i < answer->list.count; i++) {
        const struct proto_figure *f = &answer->list.at[i];
        char name[sizeof l->figures->name];
        proto_text_printable(f->name, name, sizeof name);
        put(l->figures, l->figures_room, &l->figures_count, name, f->value);
    }
}

int abdada_shard_stats(struct abdada *t, int shard, struct abdada_figure *out, size_t capacity)
{
    struct abdada_figure none;
    LIB_ENTER_OR_RETURN(t, out != NULL || capacity == 0, l);
    if (shard < 0 || (unsigned)shard >= l->shards) {
        return lib_leave(t, ABDADA_E_UNKNOWN);
    }
    l->figures = out != NULL ? out : &none;
    l->figures_room = capacity;
    l->figures_shard = (unsigned)shard;
    l->figures_count = -1;
    uint64_t until = lib_now(l) + l->answer_us;
    bool is_sent = client_stats(l->lane.client, (unsigned)shard, lib_now(l));
    while (is_sent && l->figures_count < 0 && lib_now(l) < until) {
        lib_wait(l, until);
    }
    l->figures = NULL;
    return lib_leave(t, l->figures_count >= 0 ? l->figures_count : ABDADA_E_UNAVAILABLE);
}
