#include "worker/table/claims.h"

#include "common/rng.h"

/* The hash of a node. In the place of a claim of this host: 48 bits of it, and the thread's name.
 * In that of a foreign one: 32 bits, the host's name, and 16 bits of the time until which it
 * counts, in units. */
static uint64_t node_of(uint64_t key, uint8_t depth)
{
    return rng_mix(key + depth) & ~UINT64_C(0xffff);
}

/* ---- of this host ---- */

static _Atomic uint64_t *place_of(struct host_state *state, uint64_t node)
{
    return &state->claim[node >> 32 & (HOST_TABLE_CLAIMS - 1)];
}

/* Whether what stands there is of that node, and another thread's. */
static bool is_others(uint64_t found, uint64_t node, uint16_t name)
{
    return (found & ~UINT64_C(0xffff)) == node && found != (node | name);
}

/* An old claim ends when a thread that visits the node beside others takes it over. */
bool claims_enter(struct host_state *state, const struct tt_ask *ask, uint16_t name)
{
    const uint64_t node = node_of(ask->key, ask->depth);
    _Atomic uint64_t *at = place_of(state, node);
    const bool is_taken = is_others(atomic_load_explicit(at, memory_order_relaxed), node, name);
    if (!is_taken || (ask->flags & TT_EXCLUSIVE) == 0) {
        atomic_store_explicit(at, node | name, memory_order_relaxed);
    }
    return is_taken;
}

void claims_leave(struct host_state *state, uint64_t key, uint8_t depth, uint16_t name)
{
    const uint64_t node = node_of(key, depth);
    _Atomic uint64_t *at = place_of(state, node);
    if (atomic_load_explicit(at, memory_order_relaxed) == (node | name)) {
        atomic_store_explicit(at, 0, memory_order_relaxed);
    }
}

bool claims_others(struct host_state *state, uint64_t key, uint8_t depth, uint16_t name)
{
    const uint64_t node = node_of(key, depth);
    return is_others(atomic_load_explicit(place_of(state, node), memory_order_relaxed), node, name);
}

/* ---- foreign ones ---- */

enum { UNIT_US = 1024, HOST_SHIFT = 16, NODE_SHIFT = 32 };

static _Atomic uint64_t *foreign_place_of(struct host_state *state, uint64_t node)
{
    return &state->foreign_claim[node >> 16 & (HOST_TABLE_FOREIGN_CLAIMS - 1)];
}

/* Time that a claim counts, in units, the one of its begin included. */
static unsigned units_of(uint8_t depth)
{
    unsigned ms = CLAIMS_FOREIGN_LEAST_MS;
    for (unsigned d = CLAIMS_FOREIGN_DEPTH; d < depth && ms < CLAIMS_FOREIGN_MOST_MS; d++) {
        ms *= CLAIMS_FOREIGN_PLY;
    }
    ms = ms < CLAIMS_FOREIGN_MOST_MS ? ms : CLAIMS_FOREIGN_MOST_MS;
    return (ms * 1000 + UNIT_US - 1) / UNIT_US;
}

/* Whether what stands in a claim's place is a claim of that node that counts. A claim that nothing
 * replaced counts again after 2^16 units, for as long as it lasts: a hint. */
static bool counts(uint64_t found, uint64_t node, uint8_t depth, uint64_t now_us)
{
    uint16_t left = (uint16_t)(found - now_us / UNIT_US);
    return (found ^ node) >> NODE_SHIFT == 0 && left > 0 &&
           left <= units_of(depth) + 1; /* the clock of the port stands between polls */
}

bool claims_foreign(struct host_state *state, uint64_t key, uint8_t depth, uint64_t now_us)
{
    const uint64_t node = node_of(key, depth);
    return depth >= CLAIMS_FOREIGN_DEPTH &&
           counts(atomic_load_explicit(foreign_place_of(state, node), memory_order_relaxed), node,
                  depth, now_us);
}

void claims_end_foreign(struct host_state *state, uint64_t key, uint8_t depth)
{
    const uint64_t node = node_of(key, depth);
    _Atomic uint64_t *at = foreign_place_of(state, node);
    if (depth >= CLAIMS_FOREIGN_DEPTH &&
        (atomic_load_explicit(at, memory_order_relaxed) ^ node) >> NODE_SHIFT == 0) {
        atomic_store_explicit(at, 0, memory_order_relaxed);
    }
}

static uint64_t rank_of(uint64_t key, uint16_t host)
{
    return rng_mix(key ^ rng_mix(host + UINT64_C(1)));
}

bool claims_goes_first(uint64_t key, uint16_t host, uint16_t other)
{
    return rank_of(key, host) > rank_of(key, other);
}

bool claims_take_foreign(struct host_state *state, const struct tt_store *claim, uint64_t now_us)
{
    const uint64_t node = node_of(claim->key, claim->depth), now = now_us / UNIT_US;
    _Atomic uint64_t *at = foreign_place_of(state, node);
    const uint64_t found = atomic_load_explicit(at, memory_order_relaxed);
    const bool is_there = counts(found, node, claim->depth, now_us),
               ends = claim->score == TT_CLAIM_ENDS;
    const uint16_t host = claim->move, other = (uint16_t)(found >> HOST_SHIFT);
    const uint16_t left = (uint16_t)(found - now), lasts = (uint16_t)units_of(claim->depth);
    if ((is_there && other != host && (ends || claims_goes_first(claim->key, other, host))) ||
        (ends && !is_there)) {
        return false;
    }
    const bool is_kept = !is_there && found != 0 && left > lasts &&
                         left <= CLAIMS_FOREIGN_MOST_MS * 1000 / UNIT_US + 1;
    if (!is_kept) {
        const uint64_t until = (now + lasts) & 0xffff;
        const uint64_t fresh =
            node >> NODE_SHIFT << NODE_SHIFT | (uint64_t)host << HOST_SHIFT | until;
        atomic_store_explicit(at, ends ? 0 : fresh, memory_order_relaxed);
    }
    return !ends && !(is_there && other == host);
}

void claims_clear_foreign(struct host_state *state)
{
    for (unsigned i = 0; i < HOST_TABLE_FOREIGN_CLAIMS; i++) {
        atomic_store_explicit(&state->foreign_claim[i], 0, memory_order_relaxed);
    }
}
