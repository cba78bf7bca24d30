#include "worker/table/embedded.h"

#include "common/clock.h"
#include "common/memory.h"
#include "common/tt/ops.h"
#include "worker/table/host.h"
#include "worker/table/inside.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { MAILBOX = 32, TOLD_MAX = 64 };

/* Nodes finished by others while this slot was inside them. A full box drops: the news only saves
 * work. */
struct mailbox {
    /* Counted down by the one whose mailbox it is; 1 when there is news. */
    _Alignas(MEMORY_LINE) atomic_uint until_poll;
    atomic_uint waiting;
    pthread_mutex_t lock;
    struct tt_store result[MAILBOX];
};

struct embedded {
    /* fixed after open */
    struct tt_results results;
    struct host *host; /* NULL: the results are this process's */
    struct host_state *shared; /* the host's, or `own` */
    struct lessons *lessons; /* the host's, or own ones; NULL: nobody else can be here */
    int private_reason;
    unsigned slots;
    /* state: a mailbox belongs to who holds its lock */
    struct inside *inside;
    struct mailbox *mailbox;
    struct host_state own;
    atomic_uint namespace_index; /* of the job this process began last, in shared->generations */
};

static uint8_t generation(const struct embedded *t)
{
    return tt_generations_at(&t->shared->generations,
                             atomic_load_explicit(&t->namespace_index, memory_order_relaxed));
}

static enum err open_results(struct embedded *t, size_t bytes, uint64_t group)
{
    if (group != 0 && host_open(&t->host, group, bytes) == ERR_OK) {
        t->shared = host_state(t->host);
        t->lessons = host_lessons(t->host);
        tt_results_over(&t->results, host_memory(t->host), host_memory_bytes(t->host),
                        &t->shared->generations);
        return ERR_OK;
    }
    t->private_reason = group != 0 ? errno : 0;
    if (t->slots > 1 && (t->lessons = memory_lines(sizeof *t->lessons)) == NULL) {
        return ERR_NOMEM;
    }
    return tt_results_open(&t->results, bytes, &t->shared->generations);
}

enum err embedded_open(struct embedded **out, size_t bytes, unsigned slots)
{
    return embedded_open_shared(out, bytes, slots, 0);
}

enum err embedded_open_shared(struct embedded **out, size_t bytes, unsigned slots, uint64_t group)
{
    if (slots < 1 || slots > EMBEDDED_SLOTS_MAX) {
        return ERR_RANGE;
    }
    struct embedded *t = aligned_alloc(MEMORY_LINE, sizeof *t);
    if (t == NULL) {
        return ERR_NOMEM;
    }
    *t = (struct embedded){
        .slots = slots, .own = {.table_id = clock_unique()}, .namespace_index = TT_NAMESPACES};
    tt_generations_init(&t->own.generations);
    t->shared = &t->own;
    t->mailbox = memory_lines(slots * sizeof *t->mailbox);
    enum err err = t->mailbox == NULL ? ERR_NOMEM : open_results(t, bytes, group);
    for (unsigned i = 0; i < slots && t->mailbox != NULL; i++) {
        atomic_init(&t->mailbox[i].until_poll, 1);
        atomic_init(&t->mailbox[i].waiting, 0);
        pthread_mutex_init(&t->mailbox[i].lock, NULL);
    }
    err = err == ERR_OK ? inside_open(&t->inside, slots) : err;
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
    inside_close(&t->inside);
    for (unsigned i = 0; i < t->slots && t->mailbox != NULL; i++) {
        pthread_mutex_destroy(&t->mailbox[i].lock);
    }
    free(t->mailbox);
    tt_results_close(&t->results);
    if (t->host == NULL) {
        free(t->lessons);
    }
    host_close(&t->host);
    free(t);
    *table = NULL;
}

int embedded_private_reason(const struct embedded *t)
{
    return t->private_reason;
}

bool embedded_is_shared(const struct embedded *t)
{
    return t->host != NULL;
}

void embedded_clear(struct embedded *t)
{
    if (t->host == NULL) {
        tt_results_clear(&t->results);
    } else {
        (void)host_clear(t->host);
    }
}

void embedded_advance(struct embedded *t, uint64_t job, uint64_t namespace_id)
{
    struct tt_generations *generations = &t->shared->generations;
    unsigned index = TT_NAMESPACES;
    if (job != 0 && atomic_exchange(&t->shared->job[job % HOST_JOBS], job) == job) {
        index =
            tt_generations_use(generations, namespace_id); /* begun by another thread, process */
    }
    index = index < TT_NAMESPACES ? index : tt_generations_advance(generations, namespace_id);
    atomic_store_explicit(&t->namespace_index, index, memory_order_relaxed);
}

void embedded_begin(struct embedded *t, uint64_t job, uint64_t namespace_id)
{
    embedded_advance(t, job, namespace_id);
    for (unsigned i = 0; i < t->slots; i++) {
        atomic_store(&t->mailbox[i].waiting, 0);
    }
}

unsigned embedded_inflight(struct embedded *t)
{
    return inside_places(t->inside);
}

unsigned embedded_permille(struct embedded *t)
{
    return tt_results_permille(&t->results, generation(t));
}

bool embedded_find(struct embedded *t, const struct tt_ask *ask, struct tt_answer *answer)
{
    tt_ops_ask(&t->results, NULL, ask, 0, 0, answer);
    return answer->verdict == TT_CUT;
}

void embedded_put(struct embedded *t, const struct tt_store *store)
{
    tt_results_store(&t->results, store, generation(t));
}

uint64_t embedded_table_id(const struct embedded *t)
{
    return t->shared->table_id;
}

void embedded_set_table_id(struct embedded *t, uint64_t table_id)
{
    t->own.table_id = table_id;
}

void embedded_saw_other_table(struct embedded *t, uint64_t until_us)
{
    atomic_store_explicit(&t->shared->other_table_us, until_us, memory_order_relaxed);
}

uint64_t embedded_other_table_until_us(const struct embedded *t)
{
    return atomic_load_explicit(&t->shared->other_table_us, memory_order_relaxed);
}

/* ---- the port ---- */

static void prefetch(void *self, uint64_t key)
{
    const struct embedded_port *port = self;
    tt_results_prefetch(&port->table->results, key);
}

static bool ask(void *self, const struct tt_ask *op, struct table_ticket *ticket)
{
    const struct embedded_port *port = self;
    (void)ticket;
    prefetch(self, op->key); /* again, or of a node that no move was made to */
    if (op->depth >= port->inflight_depth) {
        inside_prefetch(port->table->inside, (struct inside_node){op->key, op->depth});
    }
    return true;
}

static void await(void *self, const struct tt_ask *op, struct table_ticket *ticket,
                  struct tt_answer *answer)
{
    const struct embedded_port *port = self;
    struct embedded *t = port->table;
    struct inside_node node = {op->key, op->depth};
    bool is_busy = false;
    (void)ticket;
    if (op->depth < port->inflight_depth) {
        tt_ops_ask(&t->results, NULL, op, 0, 0, answer);
        return;
    }
    struct inside_line *line = inside_lock(t->inside, node);
    tt_ops_ask(&t->results, NULL, op, 0, 0, answer);
    if (answer->verdict == TT_CUT) {
        answer->nproc = (uint16_t)inside_count(t->inside, line, node);
    } else {
        bool exclusive = op->flags & TT_EXCLUSIVE;
        answer->nproc =
            (uint16_t)inside_visit(t->inside, line, node, op->slot, exclusive, &is_busy);
        answer->verdict = is_busy ? TT_BUSY : TT_OPEN;
    }
    inside_unlock(line);
}

static void tell(struct embedded *t, unsigned slot, const struct tt_store *result)
{
    struct mailbox *box = &t->mailbox[slot];
    pthread_mutex_lock(&box->lock);
    unsigned n = atomic_load_explicit(&box->waiting, memory_order_relaxed);
    if (n < MAILBOX) {
        box->result[n] = *result;
        atomic_store_explicit(&box->waiting, n + 1, memory_order_relaxed);
        /* Who polls for this sees the result. */
        atomic_store_explicit(&box->until_poll, 1, memory_order_release);
    }
    pthread_mutex_unlock(&box->lock);
}

static void store(void *self, const struct table_ticket *ticket, const struct tt_store *op)
{
    const struct embedded_port *port = self;
    struct embedded *t = port->table;
    struct inside_node node = {op->key, op->depth};
    uint16_t slot[TOLD_MAX];
    unsigned told = 0;
    (void)ticket;
    if (op->depth < port->inflight_depth) {
        tt_results_store(&t->results, op, generation(t));
        return;
    }
    struct inside_line *line = inside_lock(t->inside, node);
    tt_results_store(&t->results, op, generation(t));
    if (inside_leave(t->inside, line, node, op->slot) > 0) {
        told = inside_slots(t->inside, line, node, slot, TOLD_MAX);
    }
    inside_unlock(line);
    for (unsigned i = 0; i < told; i++) {
        tell(t, slot[i], op);
    }
}

static void release(void *self, const struct table_ticket *ticket, const struct tt_release *op)
{
    const struct embedded_port *port = self;
    struct embedded *t = port->table;
    struct inside_node node = {op->key, op->depth};
    (void)ticket;
    if (op->depth >= port->inflight_depth) {
        struct inside_line *line = inside_lock(t->inside, node);
        inside_leave(t->inside, line, node, op->slot);
        inside_unlock(line);
    }
}

static void peek(void *self, const struct tt_peek *op, unsigned count, struct tt_peeked *out)
{
    const struct embedded_port *port = self;
    struct embedded *t = port->table;
    for (unsigned i = 0; i < count; i++) {
        tt_results_prefetch(&t->results, op[i].key);
        inside_prefetch(t->inside, (struct inside_node){op[i].key, op[i].depth});
    }
    for (unsigned i = 0; i < count; i++) {
        struct inside_node node = {op[i].key, op[i].depth};
        struct inside_line *line = inside_lock(t->inside, node);
        tt_ops_peek(&t->results, NULL, &op[i], &out[i]);
        out[i].nproc = (uint16_t)inside_count(t->inside, line, node);
        inside_unlock(line);
    }
}

/* Changes between iterations only: who is counted inside a node is counted when leaving it. */
static unsigned inflight_depth(void *self, unsigned iteration)
{
    struct embedded_port *port = self;
    if (port->inflight_by_size && port->inflight_depth_max != EMBEDDED_NEVER) {
        unsigned least =
            iteration > EMBEDDED_INFLIGHT_PLIES ? iteration - EMBEDDED_INFLIGHT_PLIES : 1;
        port->inflight_depth =
            least < port->inflight_depth_max ? (uint8_t)least : port->inflight_depth_max;
    }
    return port->inflight_depth;
}

void embedded_update_placement(struct embedded_port *port, uint64_t now_us)
{
    struct placement *placement = &port->table->shared->placement;
    if (port->is_placed) {
        placement_update(placement, &port->place, now_us);
    } else {
        (void)placement_begin(placement, &port->place, now_us);
        port->is_placed = true;
    }
}

void embedded_placement_end(struct embedded_port *port)
{
    placement_end(&port->table->shared->placement, &port->place);
}

atomic_uint *embedded_until_poll(const struct embedded_port *port)
{
    return &port->table->mailbox[port->slot].until_poll;
}

unsigned embedded_node_done(struct embedded_port *port, struct tt_store *out, unsigned room)
{
    struct mailbox *box = &port->table->mailbox[port->slot];
    if (atomic_load_explicit(&box->waiting, memory_order_relaxed) == 0) {
        return 0;
    }
    pthread_mutex_lock(&box->lock);
    unsigned n = atomic_load_explicit(&box->waiting, memory_order_relaxed);
    n = n < room ? n : room;
    for (unsigned i = 0; i < n; i++) {
        out[i] = box->result[i];
    }
    atomic_store_explicit(&box->waiting, 0, memory_order_relaxed);
    pthread_mutex_unlock(&box->lock);
    return n;
}

void embedded_listen(struct embedded_port *port)
{
    const struct lessons *lessons = port->table->lessons;
    port->heard = lessons == NULL ? 0 : lessons_end(lessons);
    port->is_placed = false;
}

unsigned embedded_lessons(struct embedded_port *port, uint64_t root_key,
                          const struct tt_weight *given, unsigned count, struct tt_weight *out,
                          unsigned room)
{
    struct lessons *lessons = port->table->lessons;
    return lessons == NULL ? 0
                           : lessons_exchange(lessons, (uint32_t)(root_key >> 32), &port->heard,
                                              given, count, out, room);
}

void embedded_begin_inflight(struct embedded_port *port)
{
    port->inflight_depth = port->inflight_depth_max;
}

struct table_port embedded_table_port(struct embedded_port *port)
{
    embedded_begin_inflight(port);
    return (struct table_port){
        .self = port,
        .prefetch = prefetch,
        .ask = ask,
        .await = await,
        .store = store,
        .release = release,
        .peek = peek,
        .inflight_depth = inflight_depth,
    };
}
