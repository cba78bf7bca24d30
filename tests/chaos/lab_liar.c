#include "tests/chaos/lab_liar.h"

#include "common/rng.h"
#include "tests/chaos/lab_service.h"
#include "ttserver/core/core_state.h"

#include <string.h>

enum {
    LIES_MAX = 20000, /* of a run: more would only take longer */
    LIES_AT_ONCE = 4,
    LIST_MAX = 24,
    WELL_KNOWN_PERCENT = 80, /* of what names something: it exists */
    JOBS_FEW = 3, /* of each session that posts; in some runs */
    JOBS_MANY = 24, /* ... so many that workers have no room for all */
};

static uint32_t below(struct lab *lab, uint32_t n)
{
    return rng_below(&chaos_of(lab)->liar.random, n);
}

static bool percent(struct lab *lab, unsigned chance)
{
    return below(lab, 100) < chance;
}

static uint64_t any(struct lab *lab)
{
    static const uint64_t edges[] = {0, 1, 2, 255, 32767, UINT32_MAX, UINT64_MAX - 1, UINT64_MAX};
    return percent(lab, 50) ? rng_next(&chaos_of(lab)->liar.random) : edges[below(lab, 8)];
}

/* ---- what it knows ---- */

/* A job that a front-end has posted; NULL: none. */
static const struct job *a_job(struct lab *lab)
{
    const struct lab_worker *w = &lab->worker[below(lab, lab->options.fronts)];
    return w->alive && w->front.searching ? &w->front.job : NULL;
}

/* A node that was asked for lately, or a root. */
static struct tt_ask a_node(struct lab *lab)
{
    struct lab_liar *l = &chaos_of(lab)->liar;
    const struct lab_worker *w = &lab->worker[below(lab, lab->machines)];
    unsigned received = l->received < LAB_LIAR_NODES ? l->received : LAB_LIAR_NODES;
    struct tt_ask node = {.key = any(lab), .depth = (uint8_t)below(lab, TT_DEPTH_MAX + 1)};
    if (percent(lab, 20) && w->alive && w->searcher->search != NULL) {
        node.key = search_root(w->searcher->search);
        node.depth = (uint8_t)(1 + below(lab, 10));
    } else if (received > 0 && percent(lab, WELL_KNOWN_PERCENT)) {
        node = l->node[below(lab, received)];
    }
    return node;
}

static uint64_t a_job_id(struct lab *lab)
{
    const struct job *job = a_job(lab);
    return job != NULL && percent(lab, WELL_KNOWN_PERCENT) ? job->id : any(lab);
}

static uint64_t a_namespace(struct lab *lab)
{
    const struct job *job = a_job(lab);
    return job != NULL && percent(lab, WELL_KNOWN_PERCENT) ? job->namespace_id : any(lab);
}

static struct proto_text a_text(struct lab *lab)
{
    static const char *const texts[] = {"",
                                        "chess",
                                        "tree",
                                        "startpos",
                                        "tree:b=64,d=100,checks=90",
                                        "abdada",
                                        "shared-table",
                                        "liar\n\033[2J",
                                        "8/8/8/8/8/8/8/8 w - - 0 1"};
    return proto_text_of(texts[below(lab, sizeof texts / sizeof texts[0])]);
}

/* A score that no game here has; planted: one that all have. */
static int16_t a_score(struct lab *lab)
{
    int beyond = GAME_MATE + 1 + (int)below(lab, TT_SCORE_MAX - GAME_MATE);
    int score = chaos_of(lab)->options.planted.false_results ? (int)below(lab, 200) : beyond;
    return (int16_t)(percent(lab, 50) ? score : -score);
}

/* ---- what it says ---- */

static struct proto_stores some_results(struct lab *lab)
{
    struct proto_stores list = {.at = chaos_of(lab)->liar.list.stores,
                                .count = 1 + below(lab, LIST_MAX)};
    for (uint32_t i = 0; i < list.count; i++) {
        struct tt_ask node = a_node(lab);
        list.at[i] = (struct tt_store){.key = node.key,
                                       .depth = node.depth,
                                       .score = a_score(lab),
                                       .bound = (uint8_t)(1 + below(lab, 3)),
                                       .move = (uint16_t)any(lab),
                                       .slot = (uint16_t)any(lab)};
    }
    return list;
}

static struct proto_asks some_asks(struct lab *lab)
{
    struct proto_asks list = {.at = chaos_of(lab)->liar.list.asks,
                              .count = 1 + below(lab, LIST_MAX)};
    for (uint32_t i = 0; i < list.count; i++) {
        struct tt_ask node = a_node(lab);
        int a = (int)below(lab, 65535) - 32767, b = (int)below(lab, 65535) - 32767;
        node.alpha = (int16_t)(a < b ? a : b);
        node.beta = (int16_t)(a < b ? b : a);
        node.flags = (uint8_t)below(lab, 4);
        node.slot = (uint16_t)any(lab);
        list.at[i] = node;
    }
    return list;
}

/* Id of a job of its own, from the low end: such ids come before those of others in every order. */
static uint64_t own_job_id(struct lab *lab, unsigned who)
{
    bool many = lab->options.seed % 4 == 0;
    return 1 + who * (uint64_t)JOBS_MANY + below(lab, many ? JOBS_MANY : JOBS_FEW);
}

/* Half of them differ from an honest job in what kind of search it is, and in nothing else. */
static struct proto_job a_post(struct lab *lab, unsigned who)
{
    const struct job *job = a_job(lab);
    struct proto_job m = {0};
    bool is_subtle = percent(lab, 50);
    if (job != NULL && (is_subtle || percent(lab, WELL_KNOWN_PERCENT))) {
        m = job_to_wire(job);
        m.flags ^= (uint8_t)below(lab, 8);
    } else {
        m.game = a_text(lab);
        m.position = a_text(lab);
        m.algorithm = a_text(lab);
        m.evaluation = any(lab);
        m.namespace_id = a_namespace(lab);
    }
    m.job = percent(lab, 90) ? own_job_id(lab, who) : a_job_id(lab);
    m.user = any(lab);
    if (!is_subtle) {
        m.depth = percent(lab, 50) ? m.depth : (uint8_t)any(lab);
        m.flags = percent(lab, 50) ? m.flags : (uint8_t)any(lab);
        m.remote_depth = percent(lab, 50) ? m.remote_depth : (uint8_t)any(lab);
        m.time_ms = percent(lab, 50) ? 0 : (uint32_t)any(lab);
        m.nodes = percent(lab, 50) ? 0 : any(lab);
    }
    return m;
}

static struct proto_job_report a_report(struct lab *lab)
{
    struct proto_job_report m = {.job = a_job_id(lab),
                                 .instance = any(lab),
                                 .state = (uint8_t)below(lab, 4),
                                 .depth = (uint8_t)any(lab),
                                 .score = (int16_t)any(lab),
                                 .move = (uint16_t)any(lab),
                                 .line = a_text(lab)};
    unsigned shift =
        percent(lab, 75) ? 64 - PROTO_COUNTER_BITS : 0; /* what is refused, now and then */
#define X(name, json, help) m.name = any(lab) >> shift;
    COUNTERS_REPORTED(X)
#undef X
    m.waited_us = any(lab) >> shift;
    m.talked_us = m.bytes_sent = m.bytes_received = any(lab) >> shift;
    return m;
}

/* Nine in ten are granted. */
static struct proto_hello a_hello(struct lab *lab, unsigned who)
{
    struct proto_hello m = {
        .role = (uint8_t)lab_liar_role(who),
        .flags = percent(lab, 50) ? PROTO_WANTS_NODE_DONE : 0,
        .namespace_id = a_namespace(lab),
        .instance = rng_mix(who + 1),
        .name = a_text(lab),
        .table_id = percent(lab, 50) ? any(lab) : 0,
    };
    m.flags |= percent(lab, 50) ? PROTO_WANTS_RESULTS : 0;
    m.flags |= percent(lab, 20) ? PROTO_RELEASE_ALL : 0;
    if (percent(lab, 10)) {
        m.role = percent(lab, 50) ? m.role : (uint8_t)(PROTO_MONITOR + 1 + below(lab, 252));
        m.flags = (uint8_t)any(lab);
    } else if (lab_liar_role(who) != PROTO_FRONT && percent(lab, 10)) {
        m.role = (uint8_t)below(lab, PROTO_MONITOR + 1);
        m.instance = any(lab);
    }
    return m;
}

/* Mostly what its role may send. */
static enum proto_type a_type(struct lab *lab, unsigned who)
{
    static const enum proto_type usual[] = {
        PROTO_RETRIEVE_ASK, PROTO_RETRIEVE_ASK, PROTO_RETRIEVE_ASK, PROTO_STORE_HASH,
        PROTO_STORE_HASH,   PROTO_STORE_HASH,   PROTO_SHARE,        PROTO_SHARE,
        PROTO_RELEASE,      PROTO_PEEK,         PROTO_HELLO,        PROTO_HEARTBEAT,
        PROTO_MEMBERS,      PROTO_JOBS,         PROTO_STATS,        PROTO_SCAN,
    };
    static const enum proto_type seldom[] = {PROTO_BYE, PROTO_JOB, PROTO_NODE_DONE,
                                             PROTO_WORKER_INDEX, PROTO_FLUSH};
    unsigned chance = below(lab, 1000);
    if (chance < 8) {
        return seldom[below(lab, sizeof seldom / sizeof seldom[0])];
    }
    if (chance < 24) { /* in whatever role */
        return chance % 2 == 0 ? PROTO_JOB_POST : PROTO_JOB_REPORT;
    }
    if (chance < 224 && lab_liar_role(who) == PROTO_FRONT) {
        return chance < 44 ? PROTO_JOB_STOP : PROTO_JOB_POST;
    }
    if (chance < 224 && lab_liar_role(who) == PROTO_WORKER) {
        return PROTO_JOB_REPORT;
    }
    return usual[below(lab, sizeof usual / sizeof usual[0])];
}

static void a_lie(struct lab *lab, unsigned who, struct proto_message *m)
{
    struct lab_liar *l = &chaos_of(lab)->liar;
    switch (m->type) {
    case PROTO_HELLO:
        m->hello = a_hello(lab, who);
        break;
    case PROTO_RETRIEVE_ASK:
        m->retrieve_ask.list = some_asks(lab);
        break;
    case PROTO_STORE_HASH:
        m->store_hash.list = some_results(lab);
        break;
    case PROTO_SHARE:
        m->share = (struct proto_share){any(lab), some_results(lab), (uint8_t)any(lab)};
        const bool are_claims = percent(lab, 50);
        for (uint32_t i = 0; i < m->share.list.count; i++) {
            struct tt_store *at = &m->share.list.at[i];
            at->depth &= PROTO_RESULT_DEPTH_MAX; /* deeper ones cannot be said */
            if (are_claims) {
                at->bound = TT_CLAIM;
                at->score = (int16_t)(percent(lab, 80) ? TT_CLAIM_BEGINS : TT_CLAIM_ENDS);
            }
        }
        break;
    case PROTO_NODE_DONE:
        m->node_done.list = some_results(lab);
        break;
    case PROTO_RELEASE:
        m->release.list = (struct proto_releases){1, l->list.releases};
        struct tt_ask left = a_node(lab);
        l->list.releases[0] = (struct tt_release){left.key, left.depth, (uint16_t)below(lab, 3)};
        break;
    case PROTO_PEEK:
        m->peek.list = (struct proto_peeks){1, l->list.peeks};
        struct tt_ask seen = a_node(lab);
        l->list.peeks[0] = (struct tt_peek){seen.key, seen.depth};
        break;
    case PROTO_JOB_POST:
        m->job = a_post(lab, who);
        break;
    case PROTO_JOB_STOP:
        m->job_stop = (struct proto_job_stop){
            percent(lab, 50) ? own_job_id(lab, who) : a_job_id(lab), (uint8_t)any(lab)};
        break;
    case PROTO_JOB_REPORT:
        m->job_report = a_report(lab);
        break;
    case PROTO_SCAN:
        m->scan.cursor = any(lab);
        m->scan.depth = (uint8_t)any(lab);
        break;
    case PROTO_MEMBERS:
    case PROTO_JOBS:
        m->members.from = (uint32_t)any(lab);
        break;
    case PROTO_WORKER_INDEX:
        m->worker_index = (struct proto_worker_index){(uint32_t)any(lab), (uint32_t)any(lab)};
        break;
    default:
        break;
    }
}

/* No game here has any of the scores in it; a foreign claim has none. */
static bool is_impossible(struct lab *lab, const uint8_t *bytes, size_t length)
{
    struct proto_message m;
    struct proto_stores list = {0};
    if (proto_decode(lab->decoder, bytes, length, &m) == ERR_OK) {
        list = m.type == PROTO_STORE_HASH ? m.store_hash.list
               : m.type == PROTO_SHARE    ? m.share.list
                                          : list;
    }
    bool ok = true;
    for (uint32_t i = 0; i < list.count; i++) {
        ok = ok && (list.at[i].bound == TT_CLAIM || list.at[i].score < -GAME_MATE ||
                    list.at[i].score > GAME_MATE);
    }
    return ok;
}

void lab_liar_garble(struct lab *lab, uint8_t *bytes, size_t length)
{
    uint8_t *at = &bytes[below(lab, (uint32_t)length)], was = *at;
    *at ^= (uint8_t)(1 + below(lab, 255));
    if (!chaos_of(lab)->options.planted.false_results && !is_impossible(lab, bytes, length)) {
        *at = was;
    }
}

/* ---- what it overhears ---- */

void lab_liar_overhear(struct lab *lab, uint32_t from, const uint8_t *bytes, size_t length)
{
    const bool is_watcher = from >= lab->machines && from < lab->programs;
    struct lab_liar *l = &chaos_of(lab)->liar;
    struct proto_message m;
    if (chaos_of(lab)->options.lie_ns == 0 || is_watcher || /* what these store is their own */
        proto_decode(lab->decoder, bytes, length, &m) != ERR_OK || m.type != PROTO_RETRIEVE_ASK) {
        return;
    }
    for (uint32_t i = 0; i < m.retrieve_ask.list.count; i++) {
        l->node[l->received++ % LAB_LIAR_NODES] = m.retrieve_ask.list.at[i];
    }
}

/* ---- its sessions ---- */

/* A liar that is refused a handshake tries again with the next lie. */
static struct lab_visit *meet_liar(struct lab *lab, unsigned index, unsigned who)
{
    struct lab_visit **visit = &chaos_of(lab)->liar.visit[index][who];
    struct in6_addr from = {.s6_addr = {[10] = 0xff, [11] = 0xff, [12] = 10, [13] = 9}};
    from.s6_addr[15] = (uint8_t)who;
    if (*visit != NULL && (*visit)->stream->half[LAB_CLIENT].is_ended) {
        lab_visit_end(visit);
    }
    if (*visit == NULL) {
        *visit = lab_visit_begin(lab, index, from,
                                 lab_net_of(lab)->has_keys ? lab_net_keys_of_liar(lab, who) : NULL);
    }
    return *visit;
}

void lab_liar_close(struct lab *lab, unsigned index, unsigned who)
{
    lab_visit_end(&chaos_of(lab)->liar.visit[index][who]);
}

/* Without the gauges, which take longer than a lie. */
static struct ttcore_figures counted(const struct lab *lab, unsigned index)
{
    const struct lab_shard *s = &lab->shard[index];
    return s->alive ? s->core->count : (struct ttcore_figures){0};
}

/* As a frame of its connection; it reads what it is sent, and heeds nothing. */
static bool say_lie(struct lab *lab, unsigned index, unsigned who, const uint8_t *bytes,
                    size_t length)
{
    struct lab_visit *visit = meet_liar(lab, index, who);
    if (visit == NULL) {
        return false;
    }
    struct ttcore_figures before = counted(lab, index);
    bool ok = lab_visit_say(visit, bytes, length);
    struct ttcore_figures after = counted(lab, index);
    bool is_ignored = after.ignored > before.ignored;
    if (is_ignored) {
        lab_liar_close(lab, index, who);
    }
    return ok && !is_ignored && after.malformed == before.malformed &&
           after.refused == before.refused;
}

static bool knows_liar(const struct lab *lab, unsigned index, unsigned who)
{
    const struct lab_shard *s = &lab->shard[index];
    const struct lab_liar *l = &chaos_of(lab)->liar;
    const struct lab_visit *visit = l->visit[index][who];
    uint8_t route[LAB_ROUTE_BYTES];
    if (lab_net_of(lab) == NULL) {
        lab_route(lab->programs + who, l->connection[index][who], route);
    } else if (visit != NULL && visit->stream->connection != NULL) {
        memcpy(route, visit->stream->connection->route, sizeof route);
    } else {
        return false;
    }
    return s->alive && ttcore_knows(s->core, route, sizeof route);
}

static bool take_lie(struct lab *lab, unsigned index, unsigned who, const uint8_t *bytes,
                     size_t length)
{
    if (lab_net_of(lab) != NULL) {
        return say_lie(lab, index, who, bytes, length);
    }
    struct lab_packet *packet = lab_packet_new(bytes, length);
    packet->from = lab->programs + who;
    packet->epoch = chaos_of(lab)->liar.connection[index][who];
    struct ttcore_figures before = counted(lab, index);
    chaos_of(lab)->liar.refused = false;
    lab_liar_overhear(lab, packet->from, bytes, length);
    lab_shard_serve(lab, index, packet);
    struct ttcore_figures after = counted(lab, index);
    bool is_ignored = after.ignored > before.ignored;
    chaos_of(lab)->liar.connection[index][who] += is_ignored;
    return !chaos_of(lab)->liar.refused && !is_ignored && after.malformed == before.malformed;
}

/* ---- its life ---- */

static void schedule(struct lab *lab, uint64_t after_ns)
{
    lab_heap_push(&lab->heap,
                  (struct lab_event){.time_ns = lab->now_ns + after_ns, .kind = LAB_LIE});
}

static void count_taken(struct chaos_result *r, enum proto_type type)
{
    switch (type) {
#define X(TYPE, name)      \
    case PROTO_##TYPE:     \
        r->taken_##name++; \
        break;
        LAB_LIES(X)
#undef X
    default:
        break;
    }
}

void lab_liar_start(struct lab *lab)
{
    chaos_of(lab)->liar.random = rng_mix(lab->options.seed ^ UINT64_C(0x11a2));
    if (chaos_of(lab)->options.lie_ns > 0) {
        schedule(lab, 1);
    }
}

void lab_liar_act(struct lab *lab)
{
    uint8_t bytes[PROTO_JOB_BYTES];
    if (lab->ended || chaos_of(lab)->result.lies >= LIES_MAX) {
        return;
    }
    for (unsigned i = 0; i < 1 + below(lab, LIES_AT_ONCE); i++) {
        unsigned who = below(lab, LAB_LIAR_SESSIONS);
        unsigned shard = below(lab, lab->options.shards);
        if (!lab->shard[shard].alive || chaos_of(lab)->shard[shard].faults.stalls > 0) {
            continue;
        }
        struct proto_message m = {.type = a_type(lab, who)};
        if (!knows_liar(lab, shard, who)) {
            m.type = PROTO_HELLO; /* nothing else is heard */
        }
        a_lie(lab, who, &m);
        size_t length = proto_encode(&m, bytes, sizeof bytes);
        bool is_garbled = length > 0 && percent(lab, 2);
        if (is_garbled) {
            lab_liar_garble(lab, bytes, length);
        }
        if (take_lie(lab, shard, who, bytes, length) && !is_garbled) {
            count_taken(&chaos_of(lab)->result, m.type);
        }
        chaos_of(lab)->result.lies++;
    }
    schedule(lab, 1 + rng_next(&chaos_of(lab)->liar.random) % (2 * chaos_of(lab)->options.lie_ns));
}
