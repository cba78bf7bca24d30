#include "tests/chaos/lab_watcher.h"

#include "common/rng.h"
#include "proto/alias.h"
#include "proto/lane/lane.h"

#include <stdlib.h>
#include <string.h>

enum {
    OWN_MAX = 32, /* results of its own that it remembers */
    LIST_MAX = 12, /* operations in one list */
    PAGES_MAX = 4096,
    PAUSE_US = 3000, /* between two things, on average; at most twice as much */
    FIGURES = 4, /* of a shard that it compares */
    OWN_DEPTH = 100, /* and more: deeper than what searches store, so it stays longer */
    LETTER_BYTES_MAX = 256,
    LETTERS_AT_ONCE = 3,
};

/* One result of its own. */
struct own {
    struct tt_store store;
    unsigned shard; /* that it was sent to; CLIENT_NOWHERE: none, or it was flushed there */
    uint64_t boot; /* of that shard then */
    unsigned session; /* with that shard, as `ups` counts */
};

struct lab_watcher {
    /* fixed after open */
    struct lab_worker *w;
    struct lane lane;
    uint64_t alias;
    /* state */
    uint64_t random;
    struct own own[OWN_MAX];
    unsigned ups[LAB_SHARDS_MAX]; /* sessions that it had with each */
    unsigned stored; /* counts all */
    uint64_t figure[LAB_SHARDS_MAX][FIGURES], boot[LAB_SHARDS_MAX]; /* as last told; of which run */
    uint64_t job; /* whose letters it takes part in; 0: none */
    uint32_t letters; /* written, counts up */
    /* of the question under way: */
    enum client_event_kind awaited;
    unsigned shard;
    bool is_answered;
    uint64_t next; /* page */
    unsigned self; /* times that it found itself */
    uint64_t chosen; /* of the jobs seen */
    bool was_forgotten[OWN_MAX]; /* set when that result must be gone, as long as the shard runs: */
    uint64_t flushed_boot; /* one that starts again has what it kept on its disk */
};

static uint64_t any(struct lab_watcher *v)
{
    return rng_next(&v->random);
}

static unsigned below(struct lab_watcher *v, unsigned bound)
{
    return rng_below(&v->random, bound);
}

static struct client *client_of(const struct lab_watcher *v)
{
    return v->lane.client;
}

static void complain(struct lab_watcher *v, bool is_wrong)
{
    chaos_of(v->w->lab)->result.mistold += is_wrong;
}

/* ---- what it is told ---- */

static void take_stats(struct lab_watcher *v, const struct proto_figures *list)
{
    static const char *const names[FIGURES] = {"messages", "asks", "stores", "job_reports"};
    const uint64_t boot = client_shard(client_of(v), v->shard).boot;
    const bool is_same = v->boot[v->shard] == boot;
    for (unsigned n = 0; n < FIGURES; n++) {
        unsigned found = 0;
        for (uint32_t i = 0; i < list->count; i++) {
            const struct proto_figure *f = &list->at[i];
            if (f->name.length == strlen(names[n]) &&
                memcmp(f->name.at, names[n], f->name.length) == 0) {
                complain(v, is_same && f->value < v->figure[v->shard][n]);
                v->figure[v->shard][n] = f->value;
                found++;
            }
        }
        complain(v, found != 1);
    }
    v->boot[v->shard] = boot;
}

static void take_members(struct lab_watcher *v, const struct proto_member_rows *list)
{
    for (uint32_t i = 0; i < list->count; i++) {
        v->self += list->at[i].instance_id == (uint32_t)v->alias;
    }
}

/* Watchers that see the same jobs choose the same. */
static void take_jobs(struct lab_watcher *v, const struct proto_job_rows *list)
{
    for (uint32_t i = 0; i < list->count; i++) {
        const uint64_t job = list->at[i].job;
        if (v->chosen == 0 || rng_mix(job) < rng_mix(v->chosen)) {
            v->chosen = job;
        }
    }
}

static bool is_as_stored(const struct tt_store *s, const struct tt_scanned *e)
{
    const int lower = s->bound & TT_LOWER ? s->score : TT_SCORE_MIN;
    const int upper = s->bound & TT_UPPER ? s->score : TT_SCORE_MAX;
    return e->depth == s->depth && e->lower == lower && e->upper == upper &&
           (e->move == s->move || e->move == 0);
}

static void take_scanned(struct lab_watcher *v, const struct proto_scanneds *list)
{
    const bool is_same = client_shard(client_of(v), v->shard).boot == v->flushed_boot;
    for (uint32_t i = 0; i < list->count; i++) {
        for (unsigned m = 0; m < OWN_MAX; m++) {
            const struct tt_store *s = &v->own[m].store;
            if (s->key == list->at[i].key && s->key != 0) {
                complain(v, (v->was_forgotten[m] && is_same) || !is_as_stored(s, &list->at[i]));
            }
        }
    }
}

/* ---- letters ---- */

struct letter {
    uint64_t from, to, job;
    uint32_t number, length; /* of what follows, which the number says */
};

static uint8_t filler(uint32_t number, uint32_t i)
{
    return (uint8_t)rng_mix((uint64_t)number << 32 | i);
}

static void write_letters(struct lab_watcher *v, const struct proto_correspondents *list)
{
    uint8_t body[LETTER_BYTES_MAX];
    for (uint32_t i = 0; i < list->count; i++) {
        for (unsigned n = 1 + below(v, LETTERS_AT_ONCE); n > 0; n--) {
            struct letter l = {.from = v->alias, .to = list->at[i].alias, .job = v->job};
            l.number = ++v->letters;
            l.length = below(v, LETTER_BYTES_MAX - sizeof l);
            memcpy(body, &l, sizeof l);
            for (uint32_t k = 0; k < l.length; k++) {
                body[sizeof l + k] = filler(l.number, k);
            }
            client_mail(client_of(v), v->job, l.to, body, sizeof l + l.length, lane_now(&v->lane));
        }
    }
}

static void take_letter(struct lab_watcher *v, const struct proto_mail *mail)
{
    struct letter l;
    bool ok = mail->body.length >= sizeof l && mail->to == v->alias;
    if (ok) {
        memcpy(&l, mail->body.at, sizeof l);
        ok = l.to == v->alias && l.from == mail->from && l.job == mail->job &&
             sizeof l + l.length == mail->body.length;
        for (uint32_t k = 0; ok && k < l.length; k++) {
            ok = mail->body.at[sizeof l + k] == filler(l.number, k);
        }
    }
    complain(v, !ok);
    chaos_of(v->w->lab)->result.letters++;
}

static void take_event(struct lab_watcher *v, const struct client_event *e)
{
    if (e->kind == CLIENT_MAIL) {
        take_letter(v, e->mail);
        return;
    }
    if (e->kind == CLIENT_SHARD_UP) {
        v->ups[e->shard]++;
    }
    if (e->kind != v->awaited || (e->shard != v->shard && e->kind != CLIENT_CORRESPONDENTS)) {
        return;
    }
    v->is_answered = true;
    switch (e->kind) {
    case CLIENT_STATS:
        take_stats(v, &e->stats->list);
        break;
    case CLIENT_MEMBERS:
        v->next = e->members->next;
        take_members(v, &e->members->list);
        break;
    case CLIENT_JOBS:
        v->next = e->jobs->next;
        take_jobs(v, &e->jobs->list);
        break;
    case CLIENT_SCANNED:
        v->next = e->scanned->next;
        take_scanned(v, &e->scanned->list);
        break;
    case CLIENT_FLUSHED:
        v->is_answered = e->refused.why == NULL;
        break;
    case CLIENT_CORRESPONDENTS:
        write_letters(v, &e->correspondents->list);
        break;
    default:
        break;
    }
}

/* ---- waiting ---- */

static bool is_over(const struct lab_watcher *v)
{
    return v->w->lab->ended;
}

static void serve(struct lab_watcher *v)
{
    struct client_event e;
    while (lane_next(&v->lane, &e)) {
        take_event(v, &e);
    }
}

/* Until the answer is there; false: it is lost. */
static bool await(struct lab_watcher *v)
{
    const uint64_t until_us = lane_now(&v->lane) + 2 * v->w->lab->options.rto_max_us;
    for (;;) {
        serve(v);
        const uint64_t due_us = lane_tick(&v->lane);
        if (v->is_answered || lane_now(&v->lane) >= until_us || is_over(v)) {
            v->awaited = CLIENT_SHARD_UP; /* a late one is not taken */
            return v->is_answered;
        }
        lane_sleep(&v->lane, due_us < until_us ? due_us : until_us);
    }
}

static void pause_for(struct lab_watcher *v, uint64_t us)
{
    const uint64_t until_us = lane_now(&v->lane) + us;
    while (lane_now(&v->lane) < until_us && !is_over(v)) {
        serve(v);
        const uint64_t due_us = lane_tick(&v->lane);
        lane_sleep(&v->lane, due_us < until_us ? due_us : until_us);
    }
}

/* ---- what it does ---- */

/* All pages. False: lost on the way, or the session was another's in between. */
static bool walk(struct lab_watcher *v, enum client_event_kind kind)
{
    struct client *c = client_of(v);
    const uint64_t ups = client_counters(c)->ups, boot = client_shard(c, v->shard).boot;
    unsigned pages = 0;
    v->next = 0;
    do {
        const uint64_t now_us = lane_now(&v->lane);
        v->awaited = kind;
        v->is_answered = false;
        bool is_sent = kind == CLIENT_STATS ? client_stats(c, v->shard, now_us)
                       : kind == CLIENT_MEMBERS
                           ? client_members(c, v->shard, (uint32_t)v->next, now_us)
                       : kind == CLIENT_JOBS ? client_jobs(c, v->shard, (uint32_t)v->next, now_us)
                       : kind == CLIENT_SCANNED ? client_scan(c, v->shard, v->next, 0, now_us)
                                                : client_flush_table(c, v->shard, now_us);
        if (!is_sent || !await(v)) {
            return false;
        }
    } while (v->next != 0 && ++pages < PAGES_MAX);
    complain(v, v->next != 0);
    return client_counters(c)->ups == ups && client_shard(c, v->shard).boot == boot;
}

/* Once; a connection that broke without the shard's knowledge keeps its session until that expires.
 */
static void find_itself(struct lab_watcher *v)
{
    v->self = 0;
    if (walk(v, CLIENT_MEMBERS)) {
        complain(v, v->self == 0 ||
                        v->self > (lab_net_of(v->w->lab) != NULL ? 1 + v->ups[v->shard] : 1));
    }
}

static void store_own(struct lab_watcher *v, uint64_t key)
{
    struct client *c = client_of(v);
    const unsigned at = v->stored++ % OWN_MAX, shard = client_owner(c, key);
    struct own *m = &v->own[at];
    m->store = (struct tt_store){.key = key,
                                 .depth = (uint8_t)(OWN_DEPTH + below(v, 50)),
                                 .score = (int16_t)(GAME_MATE + 1 + (int)below(v, 100)),
                                 .bound = (uint8_t)(1 + below(v, 3)),
                                 .move = (uint16_t)(1 + below(v, 1000))};
    m->shard = shard;
    m->boot = shard != CLIENT_NOWHERE ? client_shard(c, shard).boot : 0;
    m->session = shard != CLIENT_NOWHERE ? v->ups[shard] : 0;
    v->was_forgotten[at] = false;
    client_store(c, CLIENT_NOWHERE, &m->store);
}

/* A list of asks; half of them about what it stored. */
static void use_table(struct lab_watcher *v)
{
    struct client *c = client_of(v);
    struct tt_ask ask[LIST_MAX];
    struct tt_answer answer[LIST_MAX];
    uint8_t where[LIST_MAX];
    const unsigned count = 1 + below(v, LIST_MAX);
    for (unsigned i = 0; i < count; i++) {
        const struct tt_store *known = &v->own[below(v, OWN_MAX)].store;
        const bool is_known = known->key != 0 && below(v, 2) == 0;
        ask[i] = (struct tt_ask){.key = is_known ? known->key : any(v) | 1,
                                 .depth = is_known ? known->depth : (uint8_t)below(v, 100),
                                 .alpha = TT_SCORE_MIN,
                                 .beta = TT_SCORE_MAX,
                                 .flags = below(v, 4) == 0 ? TT_EXCLUSIVE : 0};
    }
    const uint32_t ticket = client_ask(c, ask, count, lane_now(&v->lane), where);
    if (ticket == 0) {
        return;
    }
    enum client_result result = CLIENT_WAITING;
    const bool gives_up = below(v, 8) == 0;
    while (!gives_up && !is_over(v) &&
           (result = client_answer(c, ticket, lane_now(&v->lane), answer)) == CLIENT_WAITING) {
        const uint64_t due_us = lane_tick(&v->lane), end_us = client_deadline(c, ticket);
        serve(v);
        if (client_is_waiting(c, ticket, lane_now(&v->lane))) {
            lane_sleep(&v->lane, due_us < end_us ? due_us : end_us);
        }
        serve(v);
    }
    if (result == CLIENT_WAITING) {
        client_cancel(c, ticket); /* which leaves the nodes, too */
        return;
    }
    for (unsigned i = 0; i < count; i++) {
        for (unsigned m = 0; m < OWN_MAX && result == CLIENT_READY; m++) {
            const struct tt_store *s = &v->own[m].store;
            if (s->key == ask[i].key && answer[i].verdict == TT_CUT) {
                complain(v, s->bound != TT_EXACT || answer[i].score != s->score);
            }
        }
        if (where[i] != CLIENT_NOWHERE) {
            struct tt_release left = {ask[i].key, ask[i].depth, 0};
            client_release(c, where[i], &left);
        }
    }
}

static void peek(struct lab_watcher *v)
{
    struct client *c = client_of(v);
    struct tt_peek at[LIST_MAX];
    struct tt_peeked out[LIST_MAX];
    const unsigned count = 1 + below(v, LIST_MAX);
    for (unsigned i = 0; i < count; i++) {
        const struct tt_store *known = &v->own[below(v, OWN_MAX)].store;
        at[i] = (struct tt_peek){known->key != 0 ? known->key : any(v), known->depth};
    }
    const uint32_t ticket = client_peek(c, at, count, lane_now(&v->lane));
    while (ticket != 0 && !is_over(v)) {
        const enum client_result result = client_peeked(c, ticket, lane_now(&v->lane), out);
        if (result != CLIENT_WAITING) {
            for (unsigned i = 0; i < count && result == CLIENT_READY; i++) {
                for (unsigned m = 0; m < OWN_MAX; m++) {
                    const struct tt_store *s = &v->own[m].store;
                    bool is_it = s->key == at[i].key && s->key != 0 && out[i].move != 0;
                    complain(v, is_it && out[i].move != s->move);
                }
            }
            return;
        }
        const uint64_t due_us = lane_tick(&v->lane), end_us = client_deadline(c, ticket);
        lane_sleep(&v->lane, due_us < end_us ? due_us : end_us);
        serve(v);
    }
}

static void scan(struct lab_watcher *v)
{
    (void)walk(v, CLIENT_SCANNED);
}

/* What it stored there before must be gone, as long as that shard runs. */
static void flush(struct lab_watcher *v)
{
    struct client *c = client_of(v);
    const uint64_t boot = client_shard(c, v->shard).boot;
    client_flush(c, lane_now(&v->lane));
    const unsigned stored = v->stored;
    if (walk(v, CLIENT_FLUSHED)) {
        for (unsigned m = 0; m < OWN_MAX && stored == v->stored; m++) {
            const struct own *own = &v->own[m];
            v->was_forgotten[m] = own->shard == v->shard && own->boot == boot &&
                                  own->session == v->ups[v->shard]; /* else it may come later */
        }
        v->flushed_boot = boot;
        scan(v);
    }
    memset(v->was_forgotten, 0, sizeof v->was_forgotten); /* the shard may begin again meanwhile */
}

static void correspond(struct lab_watcher *v)
{
    v->chosen = 0;
    if (!walk(v, CLIENT_JOBS) || v->chosen == 0) {
        return;
    }
    v->job = v->chosen;
    v->awaited = CLIENT_CORRESPONDENTS;
    v->is_answered = false;
    const bool takes_part = below(v, 8) > 0;
    if (client_mail_join(client_of(v), v->job, takes_part, lane_now(&v->lane))) {
        (void)await(v);
    }
}

static void act(struct lab_watcher *v)
{
    const bool is_at_first = v->stored == 0;
    v->shard = below(v, v->w->lab->options.shards);
    switch (is_at_first ? 0 : below(v, 20)) {
    case 0:
    case 1:
    case 2:
    case 3:
        for (unsigned i = 1 + below(v, 4); i > 0; i--) {
            store_own(v, any(v) | 1);
        }
        break;
    case 4:
    case 5:
        (void)walk(v, CLIENT_STATS);
        break;
    case 6:
    case 7:
        find_itself(v);
        break;
    case 8:
    case 9:
    case 10:
        scan(v);
        break;
    case 11:
        flush(v);
        break;
    case 12:
    case 13:
        peek(v);
        break;
    case 14:
    case 15:
    case 16:
        use_table(v);
        break;
    default:
        correspond(v);
    }
}

/* ---- its life ---- */

enum err lab_watcher_open(struct lab_worker *w, const struct lane *lane)
{
    const struct lab_options *o = &w->lab->options;
    struct lab_watcher *v = calloc(1, sizeof *v);
    if (v == NULL) {
        return ERR_NOMEM;
    }
    program_of(w)->watcher = v;
    v->w = w;
    v->random = rng_mix(o->seed ^ UINT64_C(0x3a7c) ^ (uint64_t)w->index << 32);
    v->lane = *lane;
    const uint64_t instance = any(v) | 1;
    v->alias = proto_alias(instance);
    const struct client_options options = {
        .shards = o->shards,
        .role = PROTO_CLIENT,
        .instance = instance,
        .name = "watcher",
        .decoder = w->lab->decoder,
        .keeps_slow = true,
        .ask_max = LIST_MAX,
        .peek_max = LIST_MAX,
        .tickets = 4,
        .queue = 8,
        .rto_min_us = o->rto_min_us,
        .rto_max_us = o->rto_max_us,
        .probe_us = o->probe_us,
    };
    return lane_open(&v->lane, &options);
}

void lab_watcher_close(struct lab_worker *w)
{
    if (program_of(w)->watcher != NULL) {
        client_free(
            &program_of(w)->watcher->lane.client); /* without a BYE: its fiber has said it */
        free(program_of(w)->watcher);
        program_of(w)->watcher = NULL;
    }
}

void lab_watcher_run(struct lab_worker *w)
{
    struct lab_watcher *v = program_of(w)->watcher;
    while (!is_over(v)) {
        act(v);
        pause_for(v, below(v, 2 * PAUSE_US));
    }
    client_bye(v->lane.client, lane_now(&v->lane));
    for (;;) {
        lane_sleep(&v->lane, UINT64_MAX);
        serve(v);
    }
}

/* ---- planted faults ---- */

bool lab_watcher_spoil(struct lab *lab, const uint8_t *bytes, size_t bytes_length, uint32_t *who,
                       uint8_t *out, size_t *length)
{
    const struct lab_planted *planted = &chaos_of(lab)->options.planted;
    struct proto_message m;
    if (*who < lab->machines || (!planted->stray_letters && !planted->lose_rows) ||
        proto_decode(lab->decoder, bytes, bytes_length, &m) != ERR_OK) {
        return false;
    }
    if (planted->stray_letters && m.type == PROTO_MAIL) {
        *who = lab->machines + (*who - lab->machines + 1) % chaos_of(lab)->options.watchers;
    }
    if (!planted->lose_rows || m.type != PROTO_MEMBERS_ANSWER || m.members_answer.list.count == 0) {
        return false;
    }
    m.members_answer.list.count--;
    *length = proto_encode(&m, out, PROTO_MESSAGE_MAX);
    return *length > 0;
}
