#include "worker/table/embedded.h"

#include "common/clock.h"
#include "common/memory.h"
#include "common/rng.h"
#include "common/tt/ops.h"
#include "worker/table/claims.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum {
    STRIPE_BITS = 6,
    STRIPES = 1 << STRIPE_BITS, /* of several threads; one thread alone has one */
    STRIPE_ENTRIES = 32, /* of each stripe, and some for each thread */
    STRIPE_ENTRIES_PER_SLOT = 8,
    ALONE_ENTRIES = 256, /* a thread holds one node for each ply */
    SESSION = 1, /* a process is one session; its threads are slots */
    NOTIFIED_MAX = 64, /* holders of a node that get a completion notice */
    SOLVER_STATE_BYTES = 1 << 20, /* more than a host table has beside its memory */
    SOLVER_STILL_MS = 200, /* a search waits */
};

/* The in-flight entries of a fraction of the keys. What hardly ever changes is in one cache line;
 * the lock and what a visit writes are in another, which travels between the threads. */
struct stripe {
    _Alignas(MEMORY_LINE) struct tt_inflight inflight;
    pthread_mutex_t lock;
};

#ifdef __x86_64__
_Static_assert(offsetof(struct tt_inflight, first_free) == MEMORY_LINE &&
                   sizeof(struct stripe) == 2 * MEMORY_LINE,
               "two lines");
#endif

/* What the searchers have in common for their game's solver. */
struct solver {
    pthread_mutex_t lock;
    struct host_table *host; /* NULL: this process's alone, in `block` */
    void *block, *bytes; /* NULL: none yet */
    size_t size;
    uint64_t layout;
};

struct embedded {
    /* fixed after open */
    struct tt_results results;
    struct host_table *host; /* NULL: the results are this process's alone */
    struct host_state *state; /* the host's, or `own` */
    uint64_t group; /* of the host's */
    int private_reason;
    unsigned slots, stripes;
    /* state */
    struct stripe *stripe;
    struct notices *notices; /* of each slot */
    struct host_state own;
    struct share_queue share;
    struct solver solver;
};

static uint8_t generation(const struct embedded_port *port)
{
    return tt_generations_of(&port->table->state->generations, port->namespace_index,
                             port->namespace_id);
}

static enum err open_results(struct embedded *t, size_t bytes, uint64_t group,
                             const struct host_table_wait *wait)
{
    if (group != 0 && host_table_open(&t->host, group, bytes, wait) == ERR_OK) {
        t->state = host_table_state(t->host);
        tt_results_over(&t->results, host_table_memory(t->host), host_table_bytes(t->host),
                        &t->state->generations);
        return ERR_OK;
    }
    t->private_reason = group != 0 ? errno : 0;
    if (t->private_reason == ECANCELED) {
        return ERR_IO;
    }
    return tt_results_open(&t->results, bytes, &t->state->generations);
}

static enum err open_stripes(struct embedded *t)
{
    uint32_t entries =
        t->slots == 1 ? ALONE_ENTRIES : STRIPE_ENTRIES + STRIPE_ENTRIES_PER_SLOT * t->slots;
    enum err err = ERR_OK;
    t->stripes = t->slots == 1 ? 1 : STRIPES;
    t->stripe = memory_lines(t->stripes * sizeof *t->stripe);
    for (unsigned i = 0; i < t->stripes && t->stripe != NULL && err == ERR_OK; i++) {
        pthread_mutex_init(&t->stripe[i].lock, NULL);
        err = tt_inflight_open(&t->stripe[i].inflight, entries, 0, 0, 0); /* of one session */
    }
    return t->stripe == NULL ? ERR_NOMEM : err;
}

enum err embedded_open(struct embedded **out, size_t bytes, unsigned slots)
{
    return embedded_open_on_host(out, bytes, slots, 0, NULL);
}

enum err embedded_open_on_host(struct embedded **out, size_t bytes, unsigned slots, uint64_t group,
                               const struct host_table_wait *wait)
{
    if (slots < 1 || slots > EMBEDDED_SLOTS_MAX) {
        return ERR_RANGE;
    }
    struct embedded *t = aligned_alloc(MEMORY_LINE, sizeof *t);
    if (t == NULL) {
        return ERR_NOMEM;
    }
    *t = (struct embedded){.slots = slots, .group = group, .own = {.table_id = clock_unique()}};
    tt_generations_init(&t->own.generations);
    pthread_mutex_init(&t->solver.lock, NULL);
    pthread_mutex_init(&t->share.lock, NULL);
    t->state = &t->own;
    t->notices = memory_lines(slots * sizeof *t->notices);
    for (unsigned i = 0; i < slots && t->notices != NULL; i++) {
        atomic_init(&t->notices[i].until_poll, 1);
        pthread_mutex_init(&t->notices[i].lock, NULL);
    }
    enum err err = t->notices == NULL ? ERR_NOMEM : open_results(t, bytes, group, wait);
    err = err == ERR_OK ? open_stripes(t) : err;
    if (err != ERR_OK) {
        embedded_close(&t);
        return err;
    }
    *out = t;
    return ERR_OK;
}

void embedded_close(struct embedded **table)
{
    struct embedded *t = *table;
    if (t == NULL) {
        return;
    }
    for (unsigned i = 0; i < t->stripes && t->stripe != NULL; i++) {
        tt_inflight_close(&t->stripe[i].inflight);
        pthread_mutex_destroy(&t->stripe[i].lock);
    }
    for (unsigned i = 0; i < t->slots && t->notices != NULL; i++) {
        pthread_mutex_destroy(&t->notices[i].lock);
    }
    pthread_mutex_destroy(&t->share.lock);
    pthread_mutex_destroy(&t->solver.lock);
    host_table_close(&t->solver.host);
    free(t->solver.block);
    free(t->stripe);
    free(t->notices);
    tt_results_close(&t->results);
    host_table_close(&t->host);
    free(t);
    *table = NULL;
}

static void *solver_on_host(struct embedded *t)
{
    const struct host_table_wait wait = {.still_ms = SOLVER_STILL_MS};
    struct solver *s = &t->solver;
    if (host_table_open(&s->host, rng_mix(t->group ^ rng_mix(s->layout)),
                        s->size + SOLVER_STATE_BYTES, &wait) != ERR_OK) {
        return NULL;
    }
    CHECK(host_table_bytes(s->host) >= s->size);
    return host_table_memory(s->host);
}

void *embedded_solver_memory(struct embedded *t, size_t bytes, uint64_t layout)
{
    struct solver *s = &t->solver;
    pthread_mutex_lock(&s->lock);
    if (s->bytes == NULL) {
        s->size = bytes;
        s->layout = layout;
        s->bytes = t->host != NULL ? solver_on_host(t) : NULL;
        s->bytes = s->bytes != NULL ? s->bytes : memory_lines_untouched(bytes, &s->block);
    }
    pthread_mutex_unlock(&s->lock);
    return s->size == bytes && s->layout == layout ? s->bytes : NULL;
}

int embedded_private_reason(const struct embedded *t)
{
    return t->private_reason;
}

bool embedded_is_on_host(const struct embedded *t)
{
    return t->host != NULL;
}

void embedded_clear(struct embedded *t)
{
    if (t->host == NULL) {
        tt_results_clear(&t->results);
    } else {
        (void)host_table_clear(t->host);
    }
    if (t->solver.host != NULL) {
        (void)host_table_clear(t->solver.host);
    } else if (t->solver.bytes != NULL) {
        memset(t->solver.bytes, 0, t->solver.size);
    }
}

void embedded_begin(struct embedded_port *port, uint64_t job, uint64_t namespace_id)
{
    struct host_state *state = port->table->state;
    bool is_begun = job != 0 && (port->job == job ||
                                 atomic_exchange(&state->job[job % HOST_TABLE_JOBS], job) == job);
    if (!is_begun) {
        claims_clear_foreign(state);
    }
    port->job = job;
    port->namespace_id = namespace_id;
    port->namespace_index =
        (uint8_t)(is_begun ? tt_generations_use(&state->generations, namespace_id)
                           : tt_generations_advance(&state->generations, namespace_id));
}

static struct stripe *stripe_of(const struct embedded *t, uint64_t key)
{
    uint64_t hash = key * UINT64_C(0x9e3779b97f4a7c15);
    return t->slots == 1 ? t->stripe : &t->stripe[hash >> (64 - STRIPE_BITS)];
}

/* A single thread needs no lock. */
static struct stripe *lock(const struct embedded *t, struct stripe *stripe)
{
    if (t->slots > 1) {
        pthread_mutex_lock(&stripe->lock);
    }
    return stripe;
}

static void unlock(const struct embedded *t, struct stripe *stripe)
{
    if (t->slots > 1) {
        pthread_mutex_unlock(&stripe->lock);
    }
}

unsigned embedded_inflight(struct embedded *t)
{
    unsigned entries = 0;
    for (unsigned i = 0; i < t->stripes; i++) {
        entries += lock(t, &t->stripe[i])->inflight.entries;
        unlock(t, &t->stripe[i]);
    }
    return entries;
}

unsigned embedded_permille(const struct embedded *t, uint64_t namespace_id)
{
    uint8_t generation = TT_GENERATION_NONE;
    for (unsigned i = 0; i < TT_NAMESPACES && generation == TT_GENERATION_NONE; i++) {
        generation = tt_generations_of(&t->state->generations, i, namespace_id);
    }
    return tt_results_permille(&t->results, generation);
}

bool embedded_find(struct embedded *t, const struct tt_ask *ask, struct tt_answer *answer)
{
    tt_ops_ask(&t->results, NULL, ask, SESSION, 0, answer);
    return answer->verdict == TT_CUT;
}

void embedded_put(const struct embedded_port *port, const struct tt_store *store)
{
    int most = port->score_max != 0 ? port->score_max : TT_SCORE_MAX;
    struct tt_store own = *store;
    own.bound |= port->is_strict ? TT_BESIDE : 0; /* a broadcast result does not say it */
    if (store->score >= -most && store->score <= most) {
        tt_results_store(&port->table->results, &own, generation(port));
    }
}

unsigned embedded_slots(const struct embedded *table)
{
    return table->slots;
}

struct share_queue *embedded_share_queue(struct embedded *table)
{
    return &table->share;
}

uint64_t embedded_table_id(const struct embedded *t)
{
    return t->state->table_id;
}

uint16_t embedded_host_name(const struct embedded *t)
{
    return (uint16_t)embedded_table_id(t);
}

void embedded_set_table_id(struct embedded *t, uint64_t table_id)
{
    t->own.table_id = table_id;
}

void embedded_saw_other_table(struct embedded *t, uint64_t until_us)
{
    atomic_store_explicit(&t->state->other_table_us, until_us, memory_order_relaxed);
}

uint64_t embedded_other_table_until_us(const struct embedded *t)
{
    return atomic_load_explicit(&t->state->other_table_us, memory_order_relaxed);
}

/* ---- the port ---- */

void embedded_prefetch(void *self, uint64_t key)
{
    const struct embedded_port *port = self;
    tt_results_prefetch(&port->table->results, key);
}

static bool registers(const struct embedded_port *port, unsigned depth)
{
    return depth >= port->inflight_depth && !port->results_only;
}

/* Counts another process of this host, too, if its results are the host's. */
bool embedded_is_in_flight(const struct embedded_port *port, uint64_t key, uint8_t depth)
{
    struct embedded *t = port->table;
    struct stripe *stripe = lock(t, stripe_of(t, key));
    unsigned count = tt_inflight_count(&stripe->inflight, key, depth);
    unlock(t, stripe);
    return count > 0 || (t->host != NULL && claims_others(t->state, key, depth, port->place.name));
}

static bool is_foreign(const struct embedded_port *port, uint64_t key, uint8_t depth)
{
    return port->counts_foreign && claims_foreign(port->table->state, key, depth, port->now_us);
}

bool embedded_ask(void *self, const struct tt_ask *op, struct table_ticket *ticket,
                  struct tt_answer *answer)
{
    const struct embedded_port *port = self;
    (void)ticket, (void)answer;
    embedded_prefetch(self, op->key); /* again, or of a node that no move was made to */
    if (registers(port, op->depth)) {
        /* Most of what a visit writes: another thread may have written it last. */
        const struct tt_inflight *inflight = &stripe_of(port->table, op->key)->inflight;
        __builtin_prefetch(&inflight->first_free, 1);
        __builtin_prefetch(inflight->session, 1);
        tt_inflight_prefetch(inflight, op->key, op->depth);
    }
    return false;
}

void embedded_await(void *self, const struct tt_ask *op, struct table_ticket *ticket,
                    struct tt_answer *answer)
{
    const struct embedded_port *port = self;
    struct embedded *t = port->table;
    (void)ticket;
    if (!registers(port, op->depth)) {
        tt_ops_ask(&t->results, NULL, op, SESSION, 0, answer);
        return;
    }
    struct stripe *stripe = lock(t, stripe_of(t, op->key));
    tt_ops_ask(&t->results, &stripe->inflight, op, SESSION, 0, answer);
    if (answer->verdict == TT_OPEN) {
        const bool has_foreign = is_foreign(port, op->key, op->depth),
                   alone = op->flags & TT_EXCLUSIVE;
        if ((has_foreign && alone) ||
            (t->host != NULL && claims_enter(t->state, op, port->place.name))) {
            if (alone) {
                const struct tt_release leave = {
                    .key = op->key, .depth = op->depth, .slot = op->slot};
                tt_ops_release(&stripe->inflight, &leave, SESSION);
                answer->verdict = TT_BUSY; /* its nproc, 1, is the other one's now */
            } else if (answer->nproc == 1) { /* threads of this process are counted already */
                answer->nproc = 2;
            }
        }
        answer->nproc += has_foreign && !alone;
    }
    unlock(t, stripe);
}

void embedded_store(void *self, const struct table_ticket *ticket, const struct tt_store *op)
{
    const struct embedded_port *port = self;
    struct embedded *t = port->table;
    struct tt_holder holder[NOTIFIED_MAX];
    unsigned holders = 0;
    (void)ticket;
    if (!registers(port, op->depth)) {
        tt_results_store(&t->results, op, generation(port));
        return;
    }
    struct stripe *stripe = lock(t, stripe_of(t, op->key));
    if (tt_ops_store(&t->results, &stripe->inflight, op, SESSION, generation(port)) > 0) {
        holders = tt_inflight_holders(&stripe->inflight, op->key, op->depth, holder, NOTIFIED_MAX);
    }
    unlock(t, stripe);
    if (t->host != NULL) {
        claims_leave(t->state, op->key, op->depth, port->place.name);
    }
    for (unsigned i = 0; i < holders; i++) {
        notices_put(&t->notices[holder[i].slot], op);
    }
}

void embedded_release(void *self, const struct table_ticket *ticket, const struct tt_release *op)
{
    const struct embedded_port *port = self;
    struct embedded *t = port->table;
    (void)ticket;
    if (!registers(port, op->depth)) {
        return;
    }
    struct stripe *stripe = lock(t, stripe_of(t, op->key));
    tt_ops_release(&stripe->inflight, op, SESSION);
    unlock(t, stripe);
    if (t->host != NULL) {
        claims_leave(t->state, op->key, op->depth, port->place.name);
    }
}

void embedded_peek(void *self, const struct tt_peek *op, unsigned count, bool near,
                   struct tt_peeked *out)
{
    const struct embedded_port *port = self;
    struct embedded *t = port->table;
    (void)near;
    for (unsigned i = 0; i < count; i++) {
        struct stripe *stripe = stripe_of(t, op[i].key);
        tt_results_prefetch(&t->results, op[i].key);
        tt_inflight_prefetch(&stripe->inflight, op[i].key, op[i].depth);
    }
    for (unsigned i = 0; i < count; i++) {
        struct stripe *stripe = lock(t, stripe_of(t, op[i].key));
        tt_ops_peek(&t->results, &stripe->inflight, &op[i], &out[i]);
        unlock(t, stripe);
        out[i].foreign = is_foreign(port, op[i].key, op[i].depth);
        out[i].nproc += out[i].foreign;
    }
}

/* Changes between iterations only: a node registered on entry must be released on leaving. */
unsigned embedded_inflight_depth(void *self, unsigned iteration, bool *sees_foreign)
{
    struct embedded_port *port = self;
    *sees_foreign = false;
    if (port->inflight_by_size && port->inflight_depth_max != EMBEDDED_NEVER) {
        unsigned least =
            iteration > EMBEDDED_INFLIGHT_PLIES ? iteration - EMBEDDED_INFLIGHT_PLIES : 1;
        port->inflight_depth =
            least < port->inflight_depth_max ? (uint8_t)least : port->inflight_depth_max;
    }
    return port->inflight_depth;
}

void embedded_serve(struct embedded_port *port, struct search *search)
{
    struct tt_store done[NOTICES_MAX];
    unsigned count = notices_take(embedded_notices(port), done, NOTICES_MAX);
    /* In a long job others may have begun so many that its namespace would be forgotten. */
    port->namespace_index =
        (uint8_t)tt_generations_use(&port->table->state->generations, port->namespace_id);
    for (unsigned i = 0; i < count; i++) {
        if (done[i].bound == TT_CLAIM) {
            search_node_claimed(search, done[i].key, done[i].depth);
        } else {
            search_node_done(search, &done[i]);
        }
    }
}

static void notify_holders(struct embedded *t, const struct tt_store *result)
{
    struct tt_holder holder[NOTIFIED_MAX];
    struct stripe *stripe = lock(t, stripe_of(t, result->key));
    unsigned holders =
        tt_inflight_holders(&stripe->inflight, result->key, result->depth, holder, NOTIFIED_MAX);
    unlock(t, stripe);
    for (unsigned i = 0; i < holders; i++) {
        notices_put(&t->notices[holder[i].slot], result);
    }
}

void embedded_expect_claims(struct embedded *t, uint64_t now_us)
{
    atomic_store_explicit(&t->state->foreign_received_us, now_us, memory_order_relaxed);
}

static void take_claim(const struct embedded_port *port, const struct tt_store *claim,
                       uint64_t now_us)
{
    struct embedded *t = port->table;
    const uint16_t own = embedded_host_name(t);
    if (claim->depth < CLAIMS_FOREIGN_DEPTH || claim->move == own) {
        return; /* its own: collected by a shard */
    }
    if (claim->score == TT_CLAIM_BEGINS) {
        embedded_expect_claims(t, now_us);
    }
    if (claims_take_foreign(t->state, claim, now_us) && port->counts_foreign &&
        claims_goes_first(claim->key, claim->move, own)) {
        notify_holders(t, claim);
    }
}

bool embedded_receives_claims(const struct embedded *t, uint64_t now_us)
{
    uint64_t received_us =
        atomic_load_explicit(&t->state->foreign_received_us, memory_order_relaxed);
    return received_us > 0 && now_us < received_us + EMBEDDED_FOREIGN_RECENT_MS * 1000;
}

void embedded_take(const struct embedded_port *port, const struct tt_store *results, unsigned count,
                   uint64_t now_us)
{
    enum { AHEAD = 8 }; /* memory is slow: so many are on their way */
    struct embedded *t = port->table;
    for (unsigned i = 0; i < count + AHEAD; i++) {
        if (i < count) {
            tt_results_prefetch(&t->results, results[i].key);
        }
        const struct tt_store *result = i >= AHEAD ? &results[i - AHEAD] : NULL;
        if (result != NULL && result->bound == TT_CLAIM) {
            take_claim(port, result, now_us);
        } else if (result != NULL) {
            embedded_put(port, result);
            claims_end_foreign(t->state, result->key, result->depth);
            if (t->slots > 1 && result->depth >= EMBEDDED_INFLIGHT_DEPTH) {
                notify_holders(t, result);
            }
        }
    }
}

struct notices *embedded_notices(const struct embedded_port *port)
{
    return &port->table->notices[port->slot];
}

atomic_uint *embedded_until_poll(const struct embedded_port *port)
{
    return &embedded_notices(port)->until_poll;
}

void embedded_update_placement(struct embedded_port *port, uint64_t now_us)
{
    struct placement *placement = &port->table->state->placement;
    if (port->is_placed) {
        placement_update(placement, &port->place, now_us);
    } else {
        (void)placement_begin(placement, &port->place, now_us);
        port->is_placed = true;
    }
}

void embedded_end_placement(struct embedded_port *port)
{
    placement_end(&port->table->state->placement, &port->place);
    port->is_placed = false;
}

struct table_port embedded_table_port(struct embedded_port *port)
{
    struct tt_store none;
    port->inflight_depth = port->inflight_depth_max;
    (void)notices_take(embedded_notices(port), &none, 0);
    return (struct table_port){
        .self = port,
        .prefetch = embedded_prefetch,
        .ask = embedded_ask,
        .await = embedded_await,
        .store = embedded_store,
        .release = embedded_release,
        .peek = embedded_peek,
        .inflight_depth = embedded_inflight_depth,
    };
}
