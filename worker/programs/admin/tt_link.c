#include "worker/programs/admin/tt_link.h"

#include "common/clock.h"
#include "common/log.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    ASK_AGAIN_US = (int)CLI_SESSION_RTO_US + 200000, /* the one before is lost by then */
    STEP_US = 20000, /* between two looks at *stop */
    RESULT_BYTES = 16, /* a result takes so much at least, of the memory of a shard or Redis */
};

/* For one that does not say how much memory it has: a Redis may keep that to itself. */
static const uint64_t results_unsaid = UINT64_C(1) << 32;
static const uint64_t results_max = UINT64_C(1) << 36; /* a shard of 1 TiB */

static uint64_t now_us(const struct tt_link *l)
{
    return lane_now(&l->session.lane);
}

static bool is_stopped(const struct tt_link *l)
{
    return atomic_load(l->stop);
}

static enum err fail(struct tt_link *l, unsigned shard, const char *what)
{
    char name[LANES_NAME_MAX];
    lanes_shard_name(l->session.lanes, shard, name);
    snprintf(l->why, sizeof l->why, "%s %s", name, is_stopped(l) ? "was not waited for" : what);
    return ERR_IO;
}

/* The owner of a key. */
static enum err fail_owner(struct tt_link *l, unsigned owner)
{
    if (owner == CLIENT_NOWHERE) {
        return err_say(ERR_DOWN, l->why, sizeof l->why, "no shard is up");
    }
    return fail(l, owner, "does not answer");
}

/* ---- what comes in ---- */

/* Reads what is there, or else waits for something, until `until_us` or until it is time to see
 * whether to stop. True, and reads no further: an event of that kind and shard. */
static bool await(struct tt_link *l, uint64_t until_us, enum client_event_kind kind, unsigned shard,
                  struct client_event *out)
{
    const struct client_counters *counters = client_counters(l->session.lane.client);
    const uint64_t before = counters->bytes_received, end = now_us(l) + STEP_US;
    for (bool has_slept = false;; has_slept = true) {
        while (lane_next(&l->session.lane, out)) {
            if (out->kind == kind && out->shard == shard) {
                return true;
            }
        }
        const uint64_t tick = lane_tick(&l->session.lane); /* also if something comes each time */
        if (has_slept || counters->bytes_received != before) {
            return false;
        }
        until_us = until_us < end ? until_us : end;
        lane_sleep(&l->session.lane, tick < until_us ? tick : until_us);
    }
}

static void serve(struct tt_link *l, uint64_t until_us)
{
    struct client_event e;
    (void)await(l, until_us, CLIENT_STATS, CLIENT_NOWHERE, &e);
}

/* ---- life ---- */

enum err tt_link_open(struct tt_link *l, const struct cli_table *table, enum keys_role role)
{
    const struct client_options options = {
        .role = PROTO_CLIENT,
        .instance = clock_unique(),
        .queue = TT_LINK_QUEUE,
        .peek_max = TT_LINK_BATCH,
    };
    return cli_session_open(&l->session, table, role, tt_program, "tt", options, l->why);
}

unsigned tt_link_connect(struct tt_link *l, unsigned wait_ms)
{
    uint64_t end = now_us(l) + wait_ms * UINT64_C(1000);
    while (client_shards_up(l->session.lane.client) < l->session.shards && now_us(l) < end &&
           !is_stopped(l)) {
        serve(l, end);
    }
    return client_shards_up(l->session.lane.client);
}

static bool is_up(const struct tt_link *l, unsigned shard)
{
    return client_shard(l->session.lane.client, shard).state == CLIENT_UP;
}

unsigned tt_link_say_missing(const struct tt_link *l, const char *follows)
{
    char name[LANES_NAME_MAX];
    unsigned missing = 0;
    for (unsigned i = 0; i < l->session.shards; i++) {
        if (!is_up(l, i)) {
            lanes_shard_name(l->session.lanes, i, name);
            log_fail(tt_program, "%s does not answer%s", name, follows);
            missing++;
        }
    }
    return missing;
}

void tt_link_idle(struct tt_link *l, unsigned ms)
{
    uint64_t end = now_us(l) + ms * UINT64_C(1000);
    do {
        serve(l, end);
    } while (now_us(l) < end && !is_stopped(l));
}

bool tt_link_await_input(struct tt_link *l)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    while (!is_stopped(l) && poll(&input, 1, 0) <= 0) {
        serve(l, UINT64_MAX);
    }
    return !is_stopped(l);
}

/* ---- a key ---- */

enum err tt_link_ask(struct tt_link *l, const struct tt_ask *ask, struct tt_answer *out)
{
    const struct tt_release leave = {ask->key, ask->depth, ask->slot};
    uint64_t end = now_us(l) + TT_LINK_ANSWER_MS * UINT64_C(1000);
    unsigned owner = client_owner(l->session.lane.client, ask->key), lost_at = CLIENT_NOWHERE;
    do {
        uint8_t where;
        if (lost_at != CLIENT_NOWHERE && lost_at != owner) {
            client_release(l->session.lane.client, lost_at, &leave); /* it may have counted us */
            lost_at = CLIENT_NOWHERE;
        }
        uint32_t ticket = client_ask(l->session.lane.client, ask, 1, now_us(l), &where);
        enum client_result result = ticket != 0 ? CLIENT_WAITING : CLIENT_LOST;
        while (result == CLIENT_WAITING) {
            serve(l, client_deadline(l->session.lane.client, ticket));
            result = client_answer(l->session.lane.client, ticket, now_us(l), out);
        }
        if (result == CLIENT_READY) {
            return ERR_OK;
        }
        lost_at = where != CLIENT_NOWHERE ? where : lost_at;
        serve(l, now_us(l) + STEP_US);
        owner = client_owner(l->session.lane.client, ask->key);
    } while (now_us(l) < end && !is_stopped(l));
    if (lost_at != CLIENT_NOWHERE) {
        client_release(l->session.lane.client, lost_at, &leave);
    }
    return fail_owner(l, owner);
}

enum err tt_link_peek(struct tt_link *l, const struct tt_peek *peeks, unsigned count,
                      struct tt_peeked *out)
{
    uint64_t end = now_us(l) + TT_LINK_ANSWER_MS * UINT64_C(1000);
    unsigned owner;
    do {
        const struct client_counters before = *client_counters(l->session.lane.client);
        uint32_t ticket = client_peek(l->session.lane.client, peeks, count, now_us(l));
        enum client_result result = ticket != 0 ? CLIENT_WAITING : CLIENT_LOST;
        while (result == CLIENT_WAITING) {
            serve(l, client_deadline(l->session.lane.client, ticket));
            result = client_peeked(l->session.lane.client, ticket, now_us(l), out);
        }
        const struct client_counters *now = client_counters(l->session.lane.client);
        /* client_peeked gives what it knows when some of several shards answered. */
        bool is_whole = now->peeks - before.peeks == count && now->timeouts == before.timeouts &&
                        now->downs == before.downs;
        if (result == CLIENT_READY && is_whole) {
            return ERR_OK;
        }
        owner = client_owner(l->session.lane.client, peeks[0].key);
        serve(l, now_us(l) + STEP_US);
    } while (now_us(l) < end && !is_stopped(l));
    return fail_owner(l, owner);
}

uint64_t tt_link_dropped(const struct tt_link *l)
{
    return client_counters(l->session.lane.client)->dropped;
}

/* ---- all of a shard ---- */

enum err tt_link_flush(struct tt_link *l, unsigned shard)
{
    uint64_t end = now_us(l) + TT_LINK_FLUSH_MS * UINT64_C(1000);
    uint64_t seen_us = now_us(l), silence_us = TT_LINK_ANSWER_MS * UINT64_C(1000);
    struct client_event e;
    bool asked = false;
    while (now_us(l) < end && now_us(l) - seen_us < silence_us && !is_stopped(l)) {
        if (is_up(l, shard)) {
            seen_us = now_us(l);
            asked = asked || client_flush_table(l->session.lane.client, shard, seen_us);
        } else {
            asked = false; /* what it was asked before it fell silent is lost */
        }
        if (await(l, end, CLIENT_FLUSHED, shard, &e)) {
            if (e.refused.why == NULL) {
                return ERR_OK;
            }
            proto_text_printable(*e.refused.why, l->why, sizeof l->why);
            return ERR_ILLEGAL;
        }
    }
    return fail(l, shard, is_up(l, shard) ? "does not end" : "does not answer");
}

/* So many results a shard can have at most, by its figures. */
static uint64_t limit_by(const struct proto_stats_answer *answer)
{
    uint64_t bytes = 0; /* not said */
    for (uint32_t i = 0; i < answer->list.count; i++) {
        char name[32];
        bool is_it = proto_text_copy(answer->list.at[i].name, name, sizeof name) &&
                     strcmp(name, "memory_bytes") == 0;
        bytes = is_it ? answer->list.at[i].value : bytes;
    }
    uint64_t limit = bytes > 0 ? bytes / RESULT_BYTES : results_unsaid;
    return limit < results_max ? limit : results_max;
}

/* Asks for figures, or else for the page of results that begins at `cursor`, until they come;
 * false: no answer. A page that was asked for twice may come twice: it is passed over. */
static bool request(struct tt_link *l, unsigned shard, enum client_event_kind kind, uint64_t cursor,
                    uint8_t depth, struct client_event *e)
{
    uint64_t asked_us = 0, end = now_us(l) + TT_LINK_ANSWER_MS * UINT64_C(1000);
    while (now_us(l) < end && !is_stopped(l)) {
        uint64_t now = now_us(l);
        if (asked_us == 0 || now - asked_us > ASK_AGAIN_US) {
            bool is_sent = kind == CLIENT_STATS
                               ? client_stats(l->session.lane.client, shard, now)
                               : client_scan(l->session.lane.client, shard, cursor, depth, now);
            asked_us = is_sent ? now : asked_us;
        }
        if (await(l, end, kind, shard, e) &&
            (kind == CLIENT_STATS || e->scanned->next == 0 || e->scanned->next > cursor)) {
            return true;
        }
    }
    return false;
}

enum err tt_link_scan(struct tt_link *l, unsigned shard, uint8_t depth,
                      bool (*each)(void *self, const struct proto_scanned *page), void *self)
{
    uint64_t boot = client_shard(l->session.lane.client, shard).boot, cursor = 0;
    struct client_event e;
    if (!request(l, shard, CLIENT_STATS, 0, 0, &e)) {
        return fail(l, shard, "does not answer");
    }
    uint64_t left = limit_by(e.stats); /* pages and entries that it may give yet */
    do {
        if (!request(l, shard, CLIENT_SCANNED, cursor, depth, &e)) {
            return fail(l, shard, "does not answer");
        }
        if (client_shard(l->session.lane.client, shard).boot != boot) {
            return fail(l, shard, "was started again meanwhile");
        }
        uint64_t cost = UINT64_C(1) + e.scanned->list.count;
        if (cost > left) {
            return fail(l, shard, "gives more results than its memory can hold");
        }
        left -= cost;
        cursor = e.scanned->next;
        if (!each(self, e.scanned)) {
            return ERR_FULL;
        }
    } while (cursor != 0 && !is_stopped(l));
    return cursor != 0 ? fail(l, shard, "") : ERR_OK;
}
