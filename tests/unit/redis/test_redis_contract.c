/* The contract of the table, on a real Redis: four clients, each with a session of its own. */
#include "tests/support/contract.h"

#include "tests/support/test_redis_shell.h"

enum { FORGETS_EVERY = 3 /* stores, of a tiny table */ };

struct table {
    struct redis_bed *bed;
    bool forgets;
    unsigned stores;
};

static struct redis_bed bed;

/* Neighbours share a session, so that both must tell them apart. */
static uint16_t slot_of(unsigned asker)
{
    return (uint16_t)(asker % 2);
}

static void *table_open(size_t bytes)
{
    struct table *t = calloc(1, sizeof *t);
    assert_non_null(t);
    if (bed.server.pid == 0) {
        bed_start(&bed);
    }
    redis_expect(bed.server.port, "FLUSHALL", "OK");
    t->bed = &bed;
    t->forgets = bytes == CONTRACT_TINY;
    for (unsigned i = 0; i < BENCH_PEERS; i++) {
        peer_open(&bed, i, PROTO_CLIENT);
    }
    return t;
}

static void table_close(void *table)
{
    for (unsigned i = 0; i < BENCH_PEERS; i++) {
        peer_close(&bed, i);
    }
    free(table);
}

static void table_ask(void *table, unsigned asker, const struct tt_ask *op,
                      struct tt_answer *answer)
{
    struct table *t = table;
    struct tt_ask ask = *op;
    ask.slot = slot_of(asker);
    *answer = peer_ask(t->bed, asker / 2, ask);
}

/* A Redis that evicts takes results one by one, and so does this, without waiting for a full
 * memory. */
static void table_store(void *table, unsigned asker, const struct tt_store *op)
{
    struct table *t = table;
    struct tt_store store = *op;
    store.slot = slot_of(asker);
    peer_store(t->bed, asker / 2, store);
    if (t->forgets && ++t->stores % FORGETS_EVERY == 0) {
        (void)bed_eval(t->bed, "for _, k in ipairs(redis.call('KEYS', 'abdada:*:r:*')) do "
                               "redis.call('DEL', k) end return 0");
    }
}

static void table_release(void *table, unsigned asker, const struct tt_release *op)
{
    struct table *t = table;
    struct tt_release release = *op;
    release.slot = slot_of(asker);
    peer_release(t->bed, asker / 2, release);
}

static void table_peek(void *table, unsigned asker, const struct tt_peek *op, struct tt_peeked *out)
{
    *out = peer_peek(((struct table *)table)->bed, asker / 2, op->key, op->depth);
}

static unsigned table_entries(void *table)
{
    return (unsigned)bed_entries(((struct table *)table)->bed);
}

static const struct contract_driver driver = {
    .name = "contract: a Redis",
    .open = table_open,
    .close = table_close,
    .ask = table_ask,
    .store = table_store,
    .release = table_release,
    .peek = table_peek,
    .entries = table_entries,
    .is_unbounded = true,
};

int main(void)
{
    if (bed_why_not() != NULL) {
        printf("1..0 # skipped: %s\n", bed_why_not());
        return 0;
    }
    int failed = contract_run(&driver);
    if (bed.server.pid != 0) {
        bed_end(&bed);
    }
    return failed;
}
