#include "common/tt/results.h"

#include "common/memory.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

enum { POPULATE_FROM = 8 << 20 };

enum err tt_results_open(struct tt_results *results, size_t bytes,
                         const struct tt_generations *generations)
{
    size_t size = bytes < sizeof(struct tt_bucket) ? sizeof(struct tt_bucket) : bytes;
    if (size > MEMORY_LARGE_PAGE) {
        size -= size % MEMORY_LARGE_PAGE;
    }
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        return ERR_NOMEM;
    }
    (void)madvise(memory, size, MADV_HUGEPAGE); /* a wish: fewer TLB misses where granted */
    /* Now, not in the first searches: zeroing a huge page takes a while. */
    if (size >= POPULATE_FROM && madvise(memory, size, MADV_POPULATE_WRITE) != 0 &&
        errno == ENOMEM) {
        munmap(memory, size);
        return ERR_NOMEM;
    }
    tt_results_over(results, memory, size, generations);
    results->is_own = true;
    CHECK_THAT(results->buckets > 0, "results: there is a bucket");
    return ERR_OK;
}

void tt_results_over(struct tt_results *results, void *memory, size_t bytes,
                     const struct tt_generations *generations)
{
    *results = (struct tt_results){
        .bucket = memory,
        .buckets = bytes / sizeof(struct tt_bucket),
        .bytes = bytes,
        .generations = generations,
    };
}

void tt_results_close(struct tt_results *results)
{
    if (results->is_own) {
        munmap(results->bucket, results->bytes);
    }
    memset(results, 0, sizeof *results);
}

void tt_results_clear(struct tt_results *results)
{
    memset(results->bucket, 0, results->bytes);
}

void tt_results_clear_some(struct tt_results *results, uint64_t from, uint64_t buckets)
{
    uint64_t left = from < results->buckets ? results->buckets - from : 0;
    uint64_t end = from + (buckets < left ? buckets : left);
    for (uint64_t b = from; b < end; b++) {
        for (unsigned i = 0; i < TT_BUCKET_ENTRIES; i++) {
            struct tt_entry *entry = &results->bucket[b].slot[i];
            atomic_store_explicit(&entry->body, 0, memory_order_relaxed);
            atomic_store_explicit(&entry->check, 0, memory_order_relaxed);
        }
    }
}

struct tt_found tt_found_of(const struct tt_store *store)
{
    return (struct tt_found){
        .lower = store->bound & TT_LOWER ? store->score : TT_SCORE_MIN,
        .upper = store->bound & TT_UPPER ? store->score : TT_SCORE_MAX,
        .move = store->move,
        .depth = store->depth,
    };
}

static uint64_t pack(const struct tt_found *found)
{
    return (uint64_t)found->move | (uint64_t)(uint16_t)found->lower << 16 |
           (uint64_t)(uint16_t)found->upper << 32 | (uint64_t)found->depth << 48 |
           (uint64_t)found->generation << 56;
}

static struct tt_found unpack(uint64_t body)
{
    return (struct tt_found){
        .move = (uint16_t)body,
        .lower = (int16_t)(body >> 16),
        .upper = (int16_t)(body >> 32),
        .depth = (uint8_t)(body >> 48),
        .generation = (uint8_t)(body >> 56),
    };
}

/* The body of the entry if it is of this key; 0: it is not. A body is never 0 in use: no entry has
 * lower == upper == 0 with depth, move and generation 0, because generations are positive. */
static uint64_t body_if(const struct tt_entry *entry, uint64_t key)
{
    uint64_t check = atomic_load_explicit(&entry->check, memory_order_relaxed);
    uint64_t body = atomic_load_explicit(&entry->body, memory_order_relaxed);
    return (check ^ body) == key ? body : 0;
}

static uint8_t depth_of(uint64_t body)
{
    return (uint8_t)(body >> 48);
}

/* Where in the bucket a key is nobody can guess: no branches. */
bool tt_results_find(const struct tt_results *results, uint64_t key, unsigned depth,
                     struct tt_found *out)
{
    const struct tt_bucket *bucket = tt_results_bucket(results, key);
    uint64_t deepest = 0, equal = 0;
#pragma GCC unroll 4
    for (unsigned i = TT_BUCKET_ENTRIES; i-- > 0;) {
        uint64_t body = body_if(&bucket->slot[i], key);
        deepest = body != 0 && depth_of(body) >= depth_of(deepest) ? body : deepest;
        equal = body != 0 && depth_of(body) == depth ? body : equal;
    }
    if (deepest == 0) {
        return false;
    }
    *out = unpack(equal != 0 ? equal : deepest);
    return true;
}

bool tt_results_entry(const struct tt_results *results, uint64_t bucket, unsigned slot,
                      struct tt_scanned *out)
{
    const struct tt_entry *entry = &results->bucket[bucket].slot[slot];
    uint64_t check = atomic_load_explicit(&entry->check, memory_order_relaxed);
    uint64_t body = atomic_load_explicit(&entry->body, memory_order_relaxed);
    uint64_t key = check ^ body;
    struct tt_found found = unpack(body);
    /* A torn entry has some other key, most often one of another bucket. */
    if (body == 0 || tt_results_bucket(results, key) != &results->bucket[bucket] ||
        !tt_is_entry(found.lower, found.upper, found.depth)) {
        return false;
    }
    *out = (struct tt_scanned){key, found.lower, found.upper, found.move, found.depth};
    return true;
}

/* Where a result goes: the place of its key (and depth, if `beside`); else one to give up: an empty
 * one, that of the oldest generation, of the shallowest entry, the first. There are no branches,
 * since none of them could be predicted. An empty entry has generation 0, whose rank is below all
 * others. */
static unsigned choose_slot(const struct tt_results *results, const struct tt_bucket *bucket,
                            uint64_t key, uint8_t depth, bool beside)
{
    unsigned same = TT_BUCKET_ENTRIES;
    uint32_t worth[TT_BUCKET_ENTRIES];
#pragma GCC unroll 4
    for (unsigned i = TT_BUCKET_ENTRIES; i-- > 0;) {
        uint64_t check = atomic_load_explicit(&bucket->slot[i].check, memory_order_relaxed);
        uint64_t body = atomic_load_explicit(&bucket->slot[i].body, memory_order_relaxed);
        uint32_t offset =
            atomic_load_explicit(&results->generations->offset[body >> 56], memory_order_relaxed);
        worth[i] = (((offset << 8) + (uint32_t)(body >> 48)) * TT_BUCKET_ENTRIES) + i;
        bool is_same = ((check ^ key) == body) & (!beside | (depth_of(body) == depth));
        same = is_same ? i : same; /* an empty place will do for key 0 */
    }
    uint32_t a = worth[0] < worth[1] ? worth[0] : worth[1];
    uint32_t b = worth[2] < worth[3] ? worth[2] : worth[3];
    unsigned least = (a < b ? a : b) % TT_BUCKET_ENTRIES;
    return same < TT_BUCKET_ENTRIES ? same : least;
}

/* What the entry of the same key becomes; false: it stays as it is. */
static bool merge(struct tt_found *fresh, const struct tt_found *old)
{
    if (old->depth > fresh->depth && old->generation == fresh->generation) {
        return false;
    }
    /* The first, small iterations of a repeated search would wipe what it needs in the last one. */
    if (old->depth > fresh->depth && old->generation == TT_GENERATION_NONE) {
        uint8_t generation = fresh->generation;
        *fresh = *old;
        fresh->generation = generation;
        return true;
    }
    int16_t lower = old->lower > fresh->lower ? old->lower : fresh->lower;
    int16_t upper = old->upper < fresh->upper ? old->upper : fresh->upper;
    /* Outside strict mode two searches may disagree: believe the newer. */
    if (old->depth == fresh->depth && lower <= upper) {
        if (old->lower > fresh->lower || (old->lower == fresh->lower && fresh->move == 0)) {
            fresh->move = old->move; /* the move goes with the lower bound it proved */
        }
        fresh->lower = lower;
        fresh->upper = upper;
    } else if (fresh->move == 0 && fresh->lower == TT_SCORE_MIN) {
        fresh->move = old->move; /* a fail-low result knows no move; the old one still orders */
    }
    return true;
}

static void put(struct tt_results *results, uint64_t key, struct tt_found fresh, bool beside)
{
    struct tt_bucket *bucket = tt_results_bucket(results, key);
    unsigned slot = choose_slot(results, bucket, key, fresh.depth, beside);
    struct tt_entry *entry = &bucket->slot[slot];
    uint64_t known = body_if(entry, key);
    struct tt_found old;
    if (known != 0 && (!beside || depth_of(known) == fresh.depth)) {
        old = unpack(known);
        if (!merge(&fresh, &old)) {
            return;
        }
    }
    uint64_t body = pack(&fresh);
    CHECK_THAT(body != 0, "results: an entry in use is not an empty one");
    atomic_store_explicit(&entry->check, key ^ body, memory_order_relaxed);
    atomic_store_explicit(&entry->body, body, memory_order_relaxed);
}

void tt_results_store(struct tt_results *results, const struct tt_store *store, uint8_t generation)
{
    struct tt_found fresh = tt_found_of(store);
    fresh.generation = generation;
    CHECK_THAT(fresh.lower <= fresh.upper, "results: the bounds of one are in order");
    struct tt_found old;
    if (store->bound & TT_BESIDE && fresh.move == 0 && fresh.lower == TT_SCORE_MIN &&
        tt_results_find(results, store->key, fresh.depth, &old)) {
        fresh.move = old.move; /* as merge: for order */
    }
    put(results, store->key, fresh, store->bound & TT_BESIDE);
}

void tt_results_restore(struct tt_results *results, const struct tt_scanned *entry)
{
    struct tt_found known;
    if (tt_results_find(results, entry->key, entry->depth, &known) &&
        (known.depth == entry->depth ||
         (known.depth > entry->depth && known.generation != TT_GENERATION_NONE))) {
        return;
    }
    put(results, entry->key,
        (struct tt_found){.lower = entry->lower,
                          .upper = entry->upper,
                          .move = entry->move,
                          .depth = entry->depth,
                          .generation = TT_GENERATION_NONE},
        true);
}

unsigned tt_results_permille(const struct tt_results *results, uint8_t generation)
{
    enum { SAMPLE = 1000 };
    uint64_t buckets = results->buckets < SAMPLE ? results->buckets : SAMPLE;
    unsigned used = 0;
    for (uint64_t b = 0; b < buckets; b++) {
        for (unsigned i = 0; i < TT_BUCKET_ENTRIES; i++) {
            uint64_t body =
                atomic_load_explicit(&results->bucket[b].slot[i].body, memory_order_relaxed);
            used += body != 0 && unpack(body).generation == generation;
        }
    }
    return buckets == 0 ? 0 : (unsigned)(used * 1000 / (buckets * TT_BUCKET_ENTRIES));
}
