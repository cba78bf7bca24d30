#include "worker/programs/admin/tt_link.h"

#include "common/clock.h"
#include "common/log.h"
#include "proto/transport/lane.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    RTO_MAX_US = 1000000, /* longer than in a search: people wait */
    ASK_AGAIN_US = RTO_MAX_US + 200000, /* the one before is lost by then */
    STEP_US = 20000, /* between two looks at *stop */
    RESULT_BYTES = 16, /* a result takes so much at least, of the memory of a shard or Redis */
};

/* For one that does not say how much memory it has: a Redis may keep that to itself. */
static const uint64_t results_unsaid = UINT64_C(1) << 32;
static const uint64_t results_max = UINT64_C(1) << 36; /* a shard of 1 TiB */

struct tt_link {
    /* fixed after open */
    struct transport *transport;
    struct client_lane lane;
    const atomic_bool *stop;
    unsigned shards;
    uint64_t namespace_id; /* of the last HELLO */
};

static uint64_t now_us(const struct tt_link *l)
{
    return lane_now(&l->lane);
}

static bool is_stopped(const struct tt_link *l)
{
    return atomic_load(l->stop);
}

static enum err fail(const struct tt_link *l, unsigned shard, const char *what, char *why)
{
    char name[TRANSPORT_NAME_MAX];
    tt_link_name(l, shard, name);
    snprintf(why, TT_LINK_WHY_MAX, "%s %s", name, is_stopped(l) ? "was not waited for" : what);
    return ERR_IO;
}

static enum err no_shard(char *why)
{
    snprintf(why, TT_LINK_WHY_MAX, "no shard is up");
    return ERR_DOWN;
}

/* ---- what comes in ---- */

/* Until something comes, or `until_us`, or it is time to see whether to stop. */
static void sleep_until(struct tt_link *l, uint64_t until_us)
{
    uint64_t now = now_us(l), tick = client_tick(l->lane.client, now);
    until_us = until_us < now + STEP_US ? until_us : now + STEP_US;
    lane_sleep(&l->lane, tick < until_us ? tick : until_us);
}

/* Reads what is there; true if anything was. */
static bool read_all(struct tt_link *l)
{
    struct client_event e;
    const struct client_counters *counters = client_counters(l->lane.client);
    uint64_t before = counters->bytes_received;
    while (lane_next(&l->lane, &e)) {
    }
    return counters->bytes_received != before;
}

static void serve(struct tt_link *l, uint64_t until_us)
{
    if (read_all(l)) {
        (void)lane_tick(&l->lane); /* also if something arrives each time */
        return;
    }
    sleep_until(l, until_us);
    (void)read_all(l);
}

static bool find(struct tt_link *l, enum client_event_kind kind, unsigned shard,
                 struct client_event *out)
{
    while (lane_next(&l->lane, out)) {
        if (out->kind == kind && out->shard == shard) {
            return true;
        }
    }
    return false;
}

/* The next event of that kind and shard, for which a moment is waited; false: not yet. */
static bool await(struct tt_link *l, enum client_event_kind kind, unsigned shard,
                  struct client_event *out)
{
    if (find(l, kind, shard, out)) {
        return true;
    }
    sleep_until(l, UINT64_MAX);
    return find(l, kind, shard, out);
}

/* ---- life ---- */

enum err tt_link_open(struct tt_link **out, const struct transport_address *address,
                      const char *program, const atomic_bool *stop, char why[TRANSPORT_WHY_MAX])
{
    char name[32];
    struct tt_link *l = calloc(1, sizeof *l);
    if (l == NULL) {
        snprintf(why, TRANSPORT_WHY_MAX, "%s", err_text(ERR_NOMEM));
        return ERR_NOMEM;
    }
    l->stop = stop;
    enum err err = transport_open(&l->transport, address, 1, program, why);
    if (err == ERR_OK) {
        err = transport_lane(l->transport, address->keys, &l->lane.shell);
    }
    if (err == ERR_OK) {
        l->shards = transport_shards(l->transport);
        snprintf(name, sizeof name, "tt:%d", (int)getpid());
        struct client_options options = {
            .shards = l->shards,
            .role = PROTO_CLIENT,
            .instance = clock_unique(),
            .name = name,
            .rto_max_us = RTO_MAX_US,
            .queue = TT_LINK_QUEUE,
            .peek_max = TT_LINK_BATCH,
        };
        err = lane_open(&l->lane, &options);
    }
    if (err != ERR_OK) {
        if (why[0] == '\0') {
            snprintf(why, TRANSPORT_WHY_MAX, "%s", err_text(err));
        }
        tt_link_close(&l);
        return err;
    }
    *out = l;
    return ERR_OK;
}

void tt_link_close(struct tt_link **link)
{
    struct tt_link *l = *link;
    if (l == NULL) {
        return;
    }
    lane_close(&l->lane);
    transport_close(&l->transport);
    free(l);
    *link = NULL;
}

unsigned tt_link_connect(struct tt_link *l, unsigned wait_ms)
{
    uint64_t end = now_us(l) + wait_ms * UINT64_C(1000);
    while (client_shards_up(l->lane.client) < l->shards && now_us(l) < end && !is_stopped(l)) {
        serve(l, end);
    }
    return client_shards_up(l->lane.client);
}

unsigned tt_link_shards(const struct tt_link *l)
{
    return l->shards;
}

bool tt_link_is_up(const struct tt_link *l, unsigned shard)
{
    return client_shard_state(l->lane.client, shard) == CLIENT_UP;
}

void tt_link_name(const struct tt_link *l, unsigned shard, char out[TRANSPORT_NAME_MAX])
{
    transport_shard_name(l->transport, shard, out);
}

uint64_t tt_link_place(const struct tt_link *l, unsigned shard)
{
    return client_shard_place(l->lane.client, shard);
}

void tt_link_set_namespace(struct tt_link *l, uint64_t namespace_id)
{
    if (namespace_id != l->namespace_id) {
        l->namespace_id = namespace_id;
        client_hello(l->lane.client, PROTO_CLIENT, namespace_id, now_us(l));
    }
}

void tt_link_idle(struct tt_link *l, unsigned ms)
{
    uint64_t end = now_us(l) + ms * UINT64_C(1000);
    do {
        serve(l, end);
    } while (now_us(l) < end && !is_stopped(l));
}

/* ---- a key ---- */

enum err tt_link_ask(struct tt_link *l, const struct tt_ask *ask, struct tt_answer *out,
                     char why[TT_LINK_WHY_MAX])
{
    const struct tt_release leave = {ask->key, ask->depth, ask->slot};
    uint64_t end = now_us(l) + TT_LINK_ANSWER_MS * UINT64_C(1000);
    unsigned owner = client_owner(l->lane.client, ask->key), lost_at = CLIENT_NOWHERE;
    do {
        uint8_t where;
        if (lost_at != CLIENT_NOWHERE && lost_at != owner) {
            client_release(l->lane.client, lost_at, &leave); /* it may have counted us */
            lost_at = CLIENT_NOWHERE;
        }
        uint32_t ticket = client_ask(l->lane.client, ask, 1, now_us(l), &where);
        enum client_result result = ticket != 0 ? CLIENT_WAITING : CLIENT_LOST;
        while (result == CLIENT_WAITING) {
            serve(l, client_deadline(l->lane.client, ticket));
            result = client_answer(l->lane.client, ticket, now_us(l), out);
        }
        if (result == CLIENT_READY) {
            return ERR_OK;
        }
        lost_at = where != CLIENT_NOWHERE ? where : lost_at;
        serve(l, now_us(l) + STEP_US);
        owner = client_owner(l->lane.client, ask->key);
    } while (now_us(l) < end && !is_stopped(l));
    if (lost_at != CLIENT_NOWHERE) {
        client_release(l->lane.client, lost_at, &leave);
    }
    return owner == CLIENT_NOWHERE ? no_shard(why) : fail(l, owner, "does not answer", why);
}

/* client_peeked gives what it knows when some of several shards answered. */
static bool is_whole(const struct tt_link *l, uint64_t timeouts, uint64_t downs)
{
    const struct client_counters *c = client_counters(l->lane.client);
    return c->timeouts == timeouts && c->downs == downs;
}

enum err tt_link_peek(struct tt_link *l, const struct tt_peek *peeks, unsigned count,
                      struct tt_peeked *out, char why[TT_LINK_WHY_MAX])
{
    uint64_t end = now_us(l) + TT_LINK_ANSWER_MS * UINT64_C(1000);
    unsigned owner;
    do {
        const struct client_counters before = *client_counters(l->lane.client);
        uint32_t ticket = client_peek(l->lane.client, peeks, count, now_us(l));
        enum client_result result = ticket != 0 ? CLIENT_WAITING : CLIENT_LOST;
        while (result == CLIENT_WAITING) {
            serve(l, client_deadline(l->lane.client, ticket));
            result = client_peeked(l->lane.client, ticket, now_us(l), out);
        }
        bool all_sent = client_counters(l->lane.client)->peeks - before.peeks == count;
        if (result == CLIENT_READY && all_sent && is_whole(l, before.timeouts, before.downs)) {
            return ERR_OK;
        }
        owner = client_owner(l->lane.client, peeks[0].key);
        serve(l, now_us(l) + STEP_US);
    } while (now_us(l) < end && !is_stopped(l));
    return owner == CLIENT_NOWHERE ? no_shard(why) : fail(l, owner, "does not answer", why);
}

void tt_link_store(struct tt_link *l, const struct tt_store *store)
{
    client_store(l->lane.client, client_owner(l->lane.client, store->key), store);
}

void tt_link_release(struct tt_link *l, const struct tt_release *release)
{
    client_release(l->lane.client, client_owner(l->lane.client, release->key), release);
}

uint64_t tt_link_dropped(const struct tt_link *l)
{
    return client_counters(l->lane.client)->dropped;
}

unsigned tt_link_owner(const struct tt_link *l, uint64_t key)
{
    return client_owner(l->lane.client, key);
}

uint32_t tt_link_age_max_ms(const struct tt_link *l, uint64_t key)
{
    unsigned owner = client_owner(l->lane.client, key);
    return owner == CLIENT_NOWHERE ? 0 : client_inflight_age_max_ms(l->lane.client, owner);
}

/* ---- all of a shard ---- */

enum err tt_link_flush(struct tt_link *l, unsigned shard, char why[TT_LINK_WHY_MAX])
{
    uint64_t end = now_us(l) + TT_LINK_FLUSH_MS * UINT64_C(1000);
    uint64_t seen_us = now_us(l), silence_us = TT_LINK_ANSWER_MS * UINT64_C(1000);
    struct client_event e;
    bool asked = false;
    while (now_us(l) < end && now_us(l) - seen_us < silence_us && !is_stopped(l)) {
        if (tt_link_is_up(l, shard)) {
            seen_us = now_us(l);
            asked = asked || client_flush_table(l->lane.client, shard, seen_us);
        } else {
            asked = false; /* what it was asked before it fell silent is lost */
        }
        if (await(l, CLIENT_FLUSHED, shard, &e)) {
            if (e.refused.why == NULL) {
                return ERR_OK;
            }
            proto_text_printable(*e.refused.why, why, TT_LINK_WHY_MAX);
            return ERR_ILLEGAL;
        }
    }
    return fail(l, shard, tt_link_is_up(l, shard) ? "does not end" : "does not answer", why);
}

/* So many results a shard can have at most, by its figures. */
static uint64_t limit_by(const struct proto_stats_answer *answer)
{
    static const char name[] = "memory_bytes";
    uint64_t bytes = 0; /* not said */
    for (uint32_t i = 0; i < answer->list.count; i++) {
        const struct proto_figure *figure = &answer->list.at[i];
        bool is_it = figure->name.length == sizeof name - 1 &&
                     memcmp(figure->name.at, name, sizeof name - 1) == 0;
        bytes = is_it ? figure->value : bytes;
    }
    uint64_t limit = bytes > 0 ? bytes / RESULT_BYTES : results_unsaid;
    return limit < results_max ? limit : results_max;
}

static bool limit_of(struct tt_link *l, unsigned shard, uint64_t *out)
{
    uint64_t asked_us = 0, end = now_us(l) + TT_LINK_ANSWER_MS * UINT64_C(1000);
    struct client_event e;
    while (now_us(l) < end && !is_stopped(l)) {
        uint64_t now = now_us(l);
        if (asked_us == 0 || now - asked_us > ASK_AGAIN_US) {
            client_stats(l->lane.client, shard, now);
            asked_us = now;
        }
        if (await(l, CLIENT_STATS, shard, &e)) {
            *out = limit_by(e.stats);
            return true;
        }
    }
    return false;
}

/* The page that begins at `cursor`; NULL: no answer. One that was asked for twice may come twice:
 * it is passed over. */
static const struct proto_scanned *page_at(struct tt_link *l, unsigned shard, uint64_t cursor,
                                           uint8_t depth)
{
    uint64_t asked_us = 0, end = now_us(l) + TT_LINK_ANSWER_MS * UINT64_C(1000);
    struct client_event e;
    while (now_us(l) < end && !is_stopped(l)) {
        uint64_t now = now_us(l);
        if (asked_us == 0 || now - asked_us > ASK_AGAIN_US) {
            bool is_sent = client_scan(l->lane.client, shard, cursor, depth, now);
            asked_us = is_sent ? now : asked_us;
        }
        bool is_here = await(l, CLIENT_SCANNED, shard, &e);
        if (is_here && (e.scanned->next == 0 || e.scanned->next > cursor)) {
            return e.scanned;
        }
    }
    return NULL;
}

enum err tt_link_scan(struct tt_link *l, unsigned shard, uint8_t depth,
                      const struct tt_link_reader *reader, char why[TT_LINK_WHY_MAX])
{
    uint64_t boot = client_shard_boot(l->lane.client, shard), cursor = 0;
    uint64_t left; /* pages and entries that it may give yet */
    if (!limit_of(l, shard, &left)) {
        return fail(l, shard, "does not answer", why);
    }
    do {
        const struct proto_scanned *page = page_at(l, shard, cursor, depth);
        if (page == NULL) {
            return fail(l, shard, "does not answer", why);
        }
        if (client_shard_boot(l->lane.client, shard) != boot) {
            return fail(l, shard, "was started again meanwhile", why);
        }
        uint64_t cost = UINT64_C(1) + page->list.count;
        if (cost > left) {
            return fail(l, shard, "gives more results than its memory can hold", why);
        }
        left -= cost;
        cursor = page->next;
        if (!reader->each(reader->self, page->list.at, page->list.count)) {
            return ERR_FULL;
        }
    } while (cursor != 0 && !is_stopped(l));
    return cursor != 0 ? fail(l, shard, "", why) : ERR_OK;
}
