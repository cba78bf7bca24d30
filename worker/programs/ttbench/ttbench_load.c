#include "worker/programs/ttbench/ttbench_load.h"

#include "common/rng.h"
#include "worker/games/games.h"
#include "worker/search/handover/algorithms.h"
#include "worker/search/search.h"
#include "worker/table/embedded.h"

#include <stdlib.h>

enum {
    RECORD_BYTES = 16 << 20,
    RECORD_DEPTH = 3, /* remaining depth from which on nodes are recorded */
    OPEN_MAX = SEARCH_PLY_MAX + 2,
    LAST_DEPTH = 40,
};

/* Own positions; each fills its part of the load. */
static const char *const positions[] = {
    "r1bq1rk1/ppp2ppp/2np1n2/2b1p3/2B1P3/2PP1N2/PP3PPP/RNBQ1RK1 w - - 0 7",
    "2rq1rk1/pb1nbppp/1p2pn2/2pp4/3P1B2/2PBPN2/PP1N1PPP/R2QR1K1 w - - 2 12",
    "r1bqkbnr/pppp1ppp/2n5/1B2p3/4P3/5N2/PPPP1PPP/RNBQK2R b KQkq - 3 3",
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
};

enum { POSITIONS = sizeof positions / sizeof positions[0] };

struct recorder {
    struct embedded_port port; /* first: the embedded table's functions take a recorder for it */
    struct table_port table; /* what is recorded */
    struct ttbench_load *load;
    unsigned until; /* number of visits with which this position's part is full */
    uint32_t open[OPEN_MAX]; /* visits not yet ended, outermost first */
    unsigned opens;
};

static void record_await(void *self, const struct tt_ask *ask, struct table_ticket *ticket,
                         struct tt_answer *answer)
{
    struct recorder *r = self;
    r->table.await(r->table.self, ask, ticket, answer);
    if (ask->depth < RECORD_DEPTH || r->load->count == r->until) {
        return;
    }
    if (answer->verdict == TT_OPEN && r->opens < OPEN_MAX) {
        r->open[r->opens++] = r->load->count;
    }
    r->load->visit[r->load->count++] = (struct ttbench_visit){
        .ask = *ask,
        .score = answer->verdict == TT_CUT ? answer->score : ask->alpha,
        .move = answer->move,
        .bound = TT_UPPER,
    };
}

/* Ends the visit; NULL when it was not recorded. */
static struct ttbench_visit *leave(struct recorder *r, uint64_t key, uint8_t depth)
{
    for (unsigned i = r->opens; i > 0; i--) {
        struct ttbench_visit *visit = &r->load->visit[r->open[i - 1]];
        if (visit->ask.key == key && visit->ask.depth == depth) {
            r->opens = i - 1;
            return visit;
        }
    }
    return NULL;
}

static void record_store(void *self, const struct table_ticket *ticket,
                         const struct tt_store *store)
{
    struct recorder *r = self;
    struct ttbench_visit *visit = leave(r, store->key, store->depth);
    if (visit != NULL) {
        visit->score = store->score;
        visit->move = store->move;
        visit->bound = store->bound;
        visit->is_stored = true;
    }
    r->table.store(r->table.self, ticket, store);
}

static void record_release(void *self, const struct table_ticket *ticket,
                           const struct tt_release *release)
{
    struct recorder *r = self;
    leave(r, release->key, release->depth);
    r->table.release(r->table.self, ticket, release);
}

static bool is_full(void *self, struct search *search)
{
    struct recorder *r = self;
    (void)search;
    return r->load->count == r->until;
}

static enum err record_position(struct recorder *r, const char *text)
{
    const struct game *chess = games_by_name("chess");
    struct table_port table = r->table;
    table.await = record_await;
    table.store = record_store;
    table.release = record_release;
    const struct env_port env = {.self = r, .poll = is_full};
    const struct search_options options = {
        .game = chess,
        .algorithm = algorithm_by_name("abdada"),
        .depth_limit = LAST_DEPTH,
    };
    struct search *search = NULL;
    struct search_result result;
    char why[128];
    void *position = calloc(1, chess->position_size);
    enum err err = position == NULL ? ERR_NOMEM : chess->parse(position, text, why, sizeof why);
    err = err ? err : search_open(&search, &options, &table, &env);
    if (err == ERR_OK) {
        r->opens = 0;
        search_set_position(search, position);
        search_run(search, NULL, NULL, &result);
    }
    search_free(&search);
    free(position);
    return err;
}

enum err ttbench_load_record(struct ttbench_load *load)
{
    struct embedded *table = NULL;
    enum err err = embedded_open(&table, RECORD_BYTES, 1);
    struct recorder recorder = {
        .port = {.table = table, .inflight_depth_max = RECORD_DEPTH},
        .load = load,
    };
    recorder.table = embedded_table_port(&recorder.port);
    for (unsigned i = 0; i < POSITIONS && err == ERR_OK; i++) {
        recorder.until = TTBENCH_VISITS / POSITIONS * (i + 1);
        err = record_position(&recorder, positions[i]);
    }
    embedded_close(&table);
    return err;
}

void ttbench_load_random(struct ttbench_load *load, uint64_t seed)
{
    while (load->count < TTBENCH_VISITS) {
        int16_t alpha = (int16_t)(rng_below(&seed, 600) - 300u);
        load->visit[load->count++] = (struct ttbench_visit){
            .ask = {.key = rng_next(&seed),
                    .alpha = alpha,
                    .beta = (int16_t)(alpha + 1),
                    .depth = (uint8_t)(4 + rng_below(&seed, 9)),
                    .flags = (uint8_t)(rng_below(&seed, 4) != 0 ? TT_EXCLUSIVE : 0)},
            .score = (int16_t)(alpha + (int)rng_below(&seed, 2)),
            .move = (uint16_t)rng_below(&seed, 1 << 12),
            .bound = (uint8_t)(TT_LOWER + rng_below(&seed, 2)),
            .is_stored = true,
        };
    }
}
