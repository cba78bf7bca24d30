/* The contract of the table, on each table there is. */
#include "tests/support/contract.h"

#include "common/tt/ops.h"
#include "tests/support/test_ttcore.h"
#include "worker/table/embedded.h"

/* An asker's session and slot: neighbours share a session, so that both must tell them apart. */
static uint32_t session_of(unsigned asker)
{
    return 1 + asker / 2;
}

static uint16_t slot_of(unsigned asker)
{
    return (uint16_t)(asker % 2);
}

/* ---- tt_ops itself ---- */

struct bare {
    struct tt_generations generations;
    struct tt_results results;
    struct tt_inflight inflight;
    uint64_t now_us;
};

static void *bare_open(size_t bytes)
{
    struct bare *t = calloc(1, sizeof *t);
    assert_non_null(t);
    tt_generations_init(&t->generations);
    assert_int_equal(tt_results_open(&t->results, bytes, &t->generations), ERR_OK);
    assert_int_equal(tt_inflight_open(&t->inflight, CONTRACT_ENTRIES, 0, 6, 1), ERR_OK);
    return t;
}

static void bare_close(void *table)
{
    struct bare *t = table;
    tt_results_close(&t->results);
    tt_inflight_close(&t->inflight);
    free(t);
}

static void bare_ask(void *table, unsigned asker, const struct tt_ask *op, struct tt_answer *answer)
{
    struct bare *t = table;
    struct tt_ask ask = *op;
    ask.slot = slot_of(asker);
    tt_ops_ask(&t->results, &t->inflight, &ask, session_of(asker), t->now_us++, answer);
}

static void bare_store(void *table, unsigned asker, const struct tt_store *op)
{
    struct bare *t = table;
    struct tt_store store = *op;
    struct tt_holder holder[CONTRACT_ENTRIES];
    unsigned expected = 0;
    store.slot = slot_of(asker);
    unsigned count =
        tt_inflight_holders(&t->inflight, op->key, op->depth, holder, CONTRACT_ENTRIES);
    for (unsigned i = 0; i < count; i++) {
        expected += holder[i].session != session_of(asker) || holder[i].slot != store.slot;
    }
    unsigned others = tt_ops_store(&t->results, &t->inflight, &store, session_of(asker), 1);
    assert_int_equal(others, expected);
}

static void bare_release(void *table, unsigned asker, const struct tt_release *op)
{
    struct bare *t = table;
    struct tt_release release = *op;
    release.slot = slot_of(asker);
    tt_ops_release(&t->inflight, &release, session_of(asker));
}

static void bare_peek(void *table, unsigned asker, const struct tt_peek *op, struct tt_peeked *out)
{
    struct bare *t = table;
    (void)asker;
    tt_ops_peek(&t->results, &t->inflight, op, out);
}

static unsigned bare_entries(void *table)
{
    return ((struct bare *)table)->inflight.entries;
}

static const struct contract_driver bare_driver = {
    "contract: tt_ops", bare_open, bare_close,   bare_ask,         bare_store,
    bare_release,       bare_peek, bare_entries, CONTRACT_ENTRIES,
};

/* ---- the embedded table, where one process is one session ---- */

struct near {
    struct embedded *table;
    struct embedded_port slot[CONTRACT_ASKERS];
    struct table_port port[CONTRACT_ASKERS];
};

static void *own_open(size_t bytes)
{
    struct near *t = calloc(1, sizeof *t);
    assert_non_null(t);
    assert_int_equal(embedded_open(&t->table, bytes, CONTRACT_ASKERS), ERR_OK);
    for (unsigned i = 0; i < CONTRACT_ASKERS; i++) {
        t->slot[i] = (struct embedded_port){t->table, (uint16_t)i, 0};
        t->port[i] = embedded_table_port(&t->slot[i]);
    }
    return t;
}

static void own_close(void *table)
{
    struct near *t = table;
    embedded_close(&t->table);
    free(t);
}

static void own_ask(void *table, unsigned asker, const struct tt_ask *op, struct tt_answer *answer)
{
    struct table_port *port = &((struct near *)table)->port[asker];
    struct table_ticket ticket = {0};
    struct tt_ask ask = *op;
    ask.slot = (uint16_t)asker;
    tt_pose(port, &ask, &ticket, answer);
    assert_false(ticket.later); /* an answer here does not travel */
}

static void own_store(void *table, unsigned asker, const struct tt_store *op)
{
    struct table_port *port = &((struct near *)table)->port[asker];
    struct table_ticket ticket = {0};
    struct tt_store store = *op;
    store.slot = (uint16_t)asker;
    port->store(port->self, &ticket, &store);
}

static void own_release(void *table, unsigned asker, const struct tt_release *op)
{
    struct table_port *port = &((struct near *)table)->port[asker];
    struct table_ticket ticket = {0};
    struct tt_release release = *op;
    release.slot = (uint16_t)asker;
    port->release(port->self, &ticket, &release);
}

static void own_peek(void *table, unsigned asker, const struct tt_peek *op, struct tt_peeked *out)
{
    struct table_port *port = &((struct near *)table)->port[asker];
    port->peek(port->self, op, 1, false, out);
}

static unsigned own_entries(void *table)
{
    return embedded_inflight(((struct near *)table)->table);
}

static const struct contract_driver own_driver = {
    "contract: embedded", own_open, own_close,   own_ask, own_store,
    own_release,          own_peek, own_entries, 0,
};

/* ---- a live core, spoken to in messages ---- */

static const char *const peer[] = {"ann", "bob", "cid", "dee"};

static void *core_open(size_t bytes)
{
    struct ttcore_options options = bed_options();
    options.results_bytes = bytes;
    options.inflight_max = CONTRACT_ENTRIES;
    struct bed *bed = bed_open(&options);
    for (unsigned i = 0; i < sizeof peer / sizeof peer[0]; i++) {
        bed_hello(bed, peer[i], PROTO_CLIENT);
    }
    return bed;
}

static void core_close(void *table)
{
    struct ttcore_figures figures = bed_figures(table);
    assert_int_equal(figures.refused + figures.malformed + figures.dropped, 0);
    bed_close(table);
}

static void core_ask(void *table, unsigned asker, const struct tt_ask *op, struct tt_answer *answer)
{
    struct tt_ask ask = *op;
    ask.slot = slot_of(asker);
    *answer = bed_ask(table, peer[asker / 2], ask);
}

static void core_store(void *table, unsigned asker, const struct tt_store *op)
{
    struct tt_store store = *op;
    store.slot = slot_of(asker);
    bed_store(table, peer[asker / 2], store);
}

static void core_release(void *table, unsigned asker, const struct tt_release *op)
{
    struct tt_release release = *op;
    release.slot = slot_of(asker);
    bed_release(table, peer[asker / 2], release);
}

static void core_peek(void *table, unsigned asker, const struct tt_peek *op, struct tt_peeked *out)
{
    *out = bed_peek(table, peer[asker / 2], op->key, op->depth);
}

static unsigned core_entries(void *table)
{
    return (unsigned)bed_figures(table).inflight_entries;
}

static const struct contract_driver core_driver = {
    "contract: a shard's core",
    core_open,
    core_close,
    core_ask,
    core_store,
    core_release,
    core_peek,
    core_entries,
    CONTRACT_ENTRIES,
};

int main(void)
{
    return contract_run(&bare_driver) + contract_run(&own_driver) + contract_run(&core_driver);
}
