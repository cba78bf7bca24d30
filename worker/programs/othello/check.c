/* abdada check: whether a proof of solve holds. The rules (worker/games/othello/board.h), the walk
 * through the claims (proof.c) and the reader (proof_file.c) are those of the program that wrote
 * the proof; the solver of the leaves (claim.c) is another. A checker that shares nothing at
 * all is examples/check_proof.py.
 *
 * The file is read twice: first all but the leaves is checked and they are counted; then each
 * position's leaves, or a sample of all, are kept and solved before the next position.
 *
 * With --servers workers solve leaves, too, those of the whole file as one bag (engine_bag.h). Each
 * claim is solved by one searcher alone, without a table: no result of others answers it. What a
 * worker calls false is solved again at once by the thread that gets the answers; of what it calls
 * true one in AGAIN_EVERY, by as many threads as there are that search: they wait for such leaves,
 * and have their share of the CPUs then. "The proof holds" is said only if this process solved all
 * leaves itself. */
#include "worker/engine/engine_bag.h"
#include "worker/games/games.h"
#include "worker/programs/cli.h"
#include "worker/programs/json.h"
#include "worker/programs/othello/proof.h"

#include "common/clock.h"
#include "common/config.h"
#include "common/log.h"
#include "common/placement.h"
#include "common/rng.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static const char program[] = "abdada check";

enum {
    THREADS_MAX = 256,
    PROGRESS_EVERY_US = 5000000,
    SCORE_TEXT_MAX = 80,
    LEAF_MAX = 20,
    BAG_MAX = 1 << 30, /* leaves that are handed out together */
    LIES_SAID_MAX = 8, /* lines */
    AGAIN_EVERY = 64, /* one in so many leaves that workers have solved is solved here as well */
    AGAIN_MAX = 1024, /* such leaves that wait for it; then who gets the answers waits, too */
};

/* A leaf that a worker called true. */
struct again {
    size_t leaf;
    char host[CLIENT_NAME_MAX + 1];
};

struct check {
    const char *path;
    double percent; /* of the leaves */
    uint64_t seed;
    bool json;
    uint32_t threads, leaf_max;
    uint64_t memory;
    struct proof_reader reader;
    struct proof_contents contents; /* all but the leaves */
    /* while leaves are solved */
    uint64_t begin_us;
    uint64_t progress_us; /* time of the next line of it */
    struct proof_contents part; /* has the leaves of a position */
    uint64_t wanted, chosen; /* leaves of the sample; those of them that were found */
    uint64_t seen, rng; /* leaves that were chosen from */
    uint64_t rng_again; /* chooses which are solved again */
    atomic_size_t next; /* the next to be solved */
    atomic_size_t first_false; /* of those found; SIZE_MAX: none */
    _Atomic uint64_t solved, nodes, false_claims;
    struct placement placement;
    atomic_uint started;
    /* over a cluster */
    struct cli_resources resources;
    struct engine *engine; /* NULL: this process alone */
    size_t first_of_bag; /* the leaf that is its first */
    uint64_t by_workers; /* leaves solved by them ... */
    _Atomic uint64_t solved_again, lies; /* ... of these here as well, and otherwise */
    bool has_failed;
    struct again again[AGAIN_MAX]; /* a ring: from `first_again`, `agains` of them, under ... */
    unsigned first_again, agains;
    bool is_all; /* no more will come */
    unsigned solvers; /* threads that wait for them */
    pthread_mutex_t lock;
    pthread_cond_t changed;
};

/* ---- leaves ---- */

/* Whether the next leaf is in the sample; every set of so many is as likely. None is while they are
 * counted. */
static bool keeps_sample(void *self)
{
    struct check *c = self;
    const bool is_chosen =
        c->chosen < c->wanted &&
        rng_next(&c->rng) % (c->contents.leaves - c->seen) < c->wanted - c->chosen;
    c->seen++;
    c->chosen += is_chosen;
    return is_chosen;
}

static void say_progress(const struct check *c, uint64_t *next_us)
{
    const uint64_t now = clock_us();
    if (now >= *next_us) {
        *next_us = now + PROGRESS_EVERY_US;
        fprintf(stderr, "%" PRIu64 " of %" PRIu64 " leaves, %.0f s\n", atomic_load(&c->solved),
                c->wanted, (double)(now - c->begin_us) / 1e6);
    }
}

static void note_false(struct check *c, size_t leaf)
{
    size_t first = atomic_load(&c->first_false);
    atomic_fetch_add(&c->false_claims, 1);
    while (leaf < first && !atomic_compare_exchange_weak(&c->first_false, &first, leaf)) {
    }
}

/* Until all are solved, or one is false: then those before it are solved to their end, so that it
 * is known which is the first. */
static void solve_leaves(struct check *c, uint64_t *next_us)
{
    for (size_t i; atomic_load(&c->first_false) == SIZE_MAX &&
                   (i = atomic_fetch_add(&c->next, 1)) < c->part.kept;) {
        uint64_t nodes = 0;
        if (!proof_solve(&c->part.leaf[i], &nodes)) {
            note_false(c, i);
        }
        atomic_fetch_add(&c->solved, 1);
        atomic_fetch_add(&c->nodes, nodes);
        if (next_us != NULL) {
            say_progress(c, next_us);
        }
    }
}

static void *start(void *context)
{
    struct check *c = context;
    struct placement_slot place = {.name = (uint16_t)(1 + atomic_fetch_add(&c->started, 1))};
    (void)placement_begin(&c->placement, &place, clock_us());
    solve_leaves(c, NULL);
    return NULL;
}

/* ---- over a cluster ---- */

static void leaf_text(void *self, unsigned i, char text[GAME_TEXT_MAX])
{
    const struct check *c = self;
    othello_claim_format(&c->part.leaf[c->first_of_bag + i], text);
}

/* A leaf that a worker has solved. Whether its claim is true. */
static bool solve_again(struct check *c, size_t leaf, bool is_said_true, const char *host)
{
    char text[OTHELLO_CLAIM_TEXT_MAX];
    uint64_t nodes = 0;
    const bool is_true = proof_solve(&c->part.leaf[leaf], &nodes);
    atomic_fetch_add(&c->solved_again, 1);
    atomic_fetch_add(&c->nodes, nodes);
    if (is_true != is_said_true && atomic_fetch_add(&c->lies, 1) < LIES_SAID_MAX) {
        othello_claim_format(&c->part.leaf[leaf], text);
        log_fail(program, "%s says that the claim %s is %s, and it is not: check without it", host,
                 text, is_said_true ? "true" : "false");
    }
    return is_true;
}

/* Until all have come. What comes after a false leaf says nothing any more. */
static void *solve_agains(void *context)
{
    struct check *c = context;
    pthread_mutex_lock(&c->lock);
    while (c->agains > 0 || !c->is_all) {
        if (c->agains == 0) {
            pthread_cond_wait(&c->changed, &c->lock);
            continue;
        }
        const struct again next = c->again[c->first_again];
        c->first_again = (c->first_again + 1) % AGAIN_MAX;
        c->agains--;
        pthread_cond_broadcast(&c->changed);
        pthread_mutex_unlock(&c->lock);
        if (next.leaf < atomic_load(&c->first_false) &&
            !solve_again(c, next.leaf, true, next.host)) {
            note_false(c, next.leaf);
            engine_stop(c->engine);
        }
        pthread_mutex_lock(&c->lock);
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

/* It waits while there is no room, and so does what comes after it. */
static void put_again(struct check *c, size_t leaf, const char *host)
{
    pthread_mutex_lock(&c->lock);
    while (c->agains == AGAIN_MAX) {
        pthread_cond_wait(&c->changed, &c->lock);
    }
    struct again *at = &c->again[(c->first_again + c->agains++) % AGAIN_MAX];
    at->leaf = leaf;
    snprintf(at->host, sizeof at->host, "%s", host);
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
}

/* In the order of the file. What is false is solved here, and some of what is true: the answer is
 * then ours. */
static void take_leaf(void *self, unsigned i, const struct job *job, const struct engine_result *r)
{
    struct check *c = self;
    const size_t leaf = c->first_of_bag + i;
    const bool is_ours = r->hosts < 2;
    bool is_true = r->search.score == 1;
    (void)job;
    if (leaf > atomic_load(&c->first_false)) {
        return;
    }
    c->by_workers += !is_ours;
    const bool is_again = !is_ours && (!is_true || rng_next(&c->rng_again) % AGAIN_EVERY == 0);
    if (is_again && (!is_true || c->solvers == 0)) {
        is_true = solve_again(c, leaf, is_true, r->host[1].name);
    } else if (is_again) {
        put_again(c, leaf, r->host[1].name);
    }
    atomic_fetch_add(&c->solved, 1);
    atomic_fetch_add(&c->nodes, r->status.sum.nodes);
    if (!is_true) {
        note_false(c, leaf);
        engine_stop(c->engine);
    }
}

static void show_barred(void *self, unsigned i, const char *host, const char *why)
{
    char text[GAME_TEXT_MAX];
    leaf_text(self, i, text);
    log_fail(program, "%s: worker %s %s, and is given no more leaves", text, host, why);
}

static void show_refusal(void *self, unsigned shard, const char *why, const struct engine_status *s)
{
    const struct check *c = self;
    char text[CLI_REFUSAL_MAX];
    cli_refusal_text(c->engine, shard, why, s, text);
    log_fail(program, "%s", text);
}

static void show_progress(void *self, const struct engine_bag_progress *p)
{
    struct check *c = self;
    (void)p;
    say_progress(c, &c->progress_us);
}

static void run_bags(struct check *c)
{
    struct job common = {.game = &game_othello_claim,
                         .algorithm = algorithm_by_name("sequential"), /* reads no table */
                         .depth = 1,
                         .remote_depth = PROTO_REMOTE_DEPTH_AUTO};
    job_set_namespace(&common, (uint32_t)clock_unique() | 1);
    for (; c->first_of_bag < c->part.kept && atomic_load(&c->first_false) == SIZE_MAX &&
           !c->has_failed;
         c->first_of_bag += BAG_MAX) {
        const size_t left = c->part.kept - c->first_of_bag;
        struct engine_bag_progress total;
        const struct engine_bag bag = {.self = c,
                                       .count = (unsigned)(left < BAG_MAX ? left : BAG_MAX),
                                       .common = &common,
                                       .position = leaf_text,
                                       .done = take_leaf,
                                       .progress = show_progress,
                                       .refused = show_refusal,
                                       .barred = show_barred};
        const enum err err = engine_run_bag(c->engine, &bag, &total);
        if (err != ERR_OK) {
            log_fail(program, "%s", err_text(err));
            c->has_failed = true;
        }
    }
}

/* All leaves that are kept. */
static void solve_over_cluster(struct check *c)
{
    pthread_t thread[THREADS_MAX];
    pthread_mutex_init(&c->lock, NULL);
    clock_open_condition(&c->changed);
    while (c->solvers < c->threads &&
           pthread_create(&thread[c->solvers], NULL, solve_agains, c) == 0) {
        c->solvers++;
    }
    run_bags(c);
    pthread_mutex_lock(&c->lock);
    c->is_all = true;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
    for (unsigned i = 0; i < c->solvers; i++) {
        pthread_join(thread[i], NULL);
    }
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->lock);
}

/* Nobody being there is no failure: then its threads do it alone. */
static bool open_cluster(struct check *c)
{
    char why[ENGINE_WHY_MAX];
    c->resources.threads = c->threads;
    c->resources.is_private = true;
    c->resources.game = &game_othello_claim;
    if (cli_engine_open(&c->engine, program, &c->resources, NULL, why) != ERR_OK) {
        log_fail(program, "%s", why);
        return false;
    }
    char what[LANES_NONE_UP_MAX];
    if (engine_none_up(c->engine, what)) {
        log_line(program, "%s; checking on this machine only", what);
    }
    return true;
}

/* Solves the leaves of a position. False: one is false, and they stay. */
static bool solve_position(void *self)
{
    struct check *c = self;
    struct placement_thread thread[THREADS_MAX];
    const size_t threads = c->part.kept < c->threads ? c->part.kept : c->threads;
    unsigned started = 1;
    atomic_store(&c->next, 0);
    atomic_store(&c->started, 0);
    while (started < threads && placement_create_thread(&thread[started], started, start, c)) {
        started++;
    }
    solve_leaves(c, &c->progress_us);
    for (unsigned i = 1; i < started; i++) {
        pthread_join(thread[i].thread, NULL);
    }
    return atomic_load(&c->first_false) == SIZE_MAX;
}

/* Whether a worker alone solved some of the leaves. */
static bool has_unseen(const struct check *c)
{
    return c->by_workers > atomic_load(&c->solved_again);
}

/* A worker that lied once may have lied about other leaves. */
static bool is_in_doubt(const struct check *c)
{
    return atomic_load(&c->lies) > 0 && has_unseen(c);
}

/* What is proved: "BOARD SIDE +6". */
static void score_text_of(const struct proof_score *score, char text[SCORE_TEXT_MAX])
{
    char board[67];
    othello_format(score->board, score->is_black, board);
    snprintf(text, SCORE_TEXT_MAX, "%s %+d", board, score->score);
}

static void print_json(const struct check *c, const char *first_false, double ms)
{
    const struct proof_contents *contents = &c->contents;
    const uint64_t solved = atomic_load(&c->solved);
    struct json j;
    char text[SCORE_TEXT_MAX];
    json_begin(&j, stdout);
    json_array_begin(&j, "scores");
    for (unsigned i = 0; i < contents->scores; i++) {
        score_text_of(&contents->score[i], text);
        json_element(&j, text);
    }
    json_array_end(&j);
    json_number(&j, "positions", contents->head.positions);
    json_number(&j, "leaf", contents->head.leaf);
    json_number(&j, "claims", (int64_t)contents->claims);
    json_number(&j, "checked", (int64_t)(contents->claims - contents->leaves + solved));
    json_number(&j, "leaves", (int64_t)contents->leaves);
    json_number(&j, "solved", (int64_t)solved);
    json_number(&j, "false", (int64_t)atomic_load(&c->false_claims));
    json_text(&j, "first_false", first_false);
    if (c->engine != NULL) {
        json_number(&j, "by_workers", (int64_t)c->by_workers);
        json_number(&j, "solved_again", (int64_t)atomic_load(&c->solved_again));
        json_number(&j, "lies", (int64_t)atomic_load(&c->lies));
    }
    json_number(&j, "seed", (int64_t)c->seed);
    json_number(&j, "nodes", (int64_t)atomic_load(&c->nodes));
    json_real(&j, "time_ms", ms);
    json_end(&j);
}

static void print(const struct check *c, bool is_valid, double ms)
{
    const struct proof_contents *contents = &c->contents;
    const bool is_sample = c->wanted < contents->leaves;
    char text[SCORE_TEXT_MAX];
    for (unsigned i = 0; i < contents->scores; i++) {
        score_text_of(&contents->score[i], text);
        printf("%s\n", text);
    }
    printf("%u position%s, %" PRIu64 " claims, %" PRIu64 " of them leaves of %u empty squares\n",
           contents->head.positions, contents->head.positions == 1 ? "" : "s", contents->claims,
           contents->leaves, contents->head.leaf);
    printf("%" PRIu64 " leaves solved, %" PRIu64 " nodes, %.3f s", atomic_load(&c->solved),
           atomic_load(&c->nodes), ms / 1e3);
    if (is_sample) {
        printf(", sample %g%%, seed %" PRIu64, c->percent, c->seed);
    }
    if (c->engine != NULL) {
        printf("\n%" PRIu64 " leaves solved by workers, %" PRIu64 " of them here as well",
               c->by_workers, atomic_load(&c->solved_again));
    }
    printf("\n%s\n", !is_valid                    ? "the proof does not hold"
                     : is_in_doubt(c)             ? "it is not known: workers lied"
                     : is_sample || has_unseen(c) ? "no claim was found false"
                                                  : "the proof holds");
}

/* Returns the exit status. */
static int report(struct check *c)
{
    const double ms = (double)(clock_us() - c->begin_us) / 1e3;
    const size_t first = atomic_load(&c->first_false);
    char text[OTHELLO_CLAIM_TEXT_MAX] = "";
    if (first != SIZE_MAX) {
        othello_claim_format(&c->part.leaf[first], text);
        log_fail(program, "%s: the claim %s does not hold: it is a leaf's, which was solved",
                 c->path, text);
    }
    if (c->json) {
        print_json(c, text, ms);
    } else {
        print(c, first == SIZE_MAX, ms);
    }
    if (first == SIZE_MAX && is_in_doubt(c)) {
        log_fail(program,
                 "%s: %" PRIu64
                 " answers of workers were lies, and others may be: check without them",
                 c->path, atomic_load(&c->lies));
    }
    return first != SIZE_MAX || is_in_doubt(c);
}

/* What the file claims. Returns -1 to go on, or the exit status. */
static int read_proof(struct check *c, struct proof_contents *contents)
{
    char why[PROOF_WHY_MAX], text[OTHELLO_CLAIM_TEXT_MAX];
    contents->memory_max = c->memory;
    contents->leaf_max = c->leaf_max;
    contents->self = c;
    const enum err err = proof_contents_read(contents, &c->reader, why);
    if (err == ERR_OK || err == ERR_ABSENT) {
        return -1;
    }
    log_fail(program, "%s: %s", c->path, why);
    if (err == ERR_ILLEGAL && c->json) {
        c->false_claims = 1;
        othello_claim_format(&contents->false_claim, text);
        print_json(c, text, 0);
    }
    return err == ERR_ILLEGAL || err == ERR_NOMEM ? 1 : OPTIONS_WRONG;
}

/* The leaves. Returns the exit status. */
static int solve_all(struct check *c)
{
    struct placement_slot place = {.name = 0};
    const double wanted = c->percent / 100 * (double)c->contents.leaves;
    c->wanted = (uint64_t)wanted + ((double)(uint64_t)wanted < wanted);
    c->seen = 0;
    c->rng = c->seed;
    c->rng_again = clock_unique(); /* no worker knows which */
    c->begin_us = clock_us();
    c->progress_us = c->begin_us + PROGRESS_EVERY_US;
    (void)placement_begin(&c->placement, &place, clock_us());
    proof_reader_rewind(&c->reader);
    c->part.keeps = keeps_sample;
    c->part.solve = c->engine == NULL ? solve_position : NULL;
    const int status = read_proof(c, &c->part);
    if (status < 0 && c->engine != NULL) {
        solve_over_cluster(c);
    }
    return c->has_failed ? 1 : status < 0 ? report(c) : status;
}

static int check_file(struct check *c)
{
    const enum err err = proof_reader_open(&c->reader, c->path, c->memory);
    if (err != ERR_OK) {
        log_fail(program, "%s: %s", c->path,
                 err == ERR_IO     ? strerror(errno)
                 : err == ERR_FULL ? PROOF_NO_ROOM
                                   : err_text(err));
        return OPTIONS_WRONG;
    }
    c->contents.keeps = keeps_sample;
    const int status = read_proof(c, &c->contents);
    return status < 0 ? solve_all(c) : status;
}

static enum err parse_percent(const char *text, void *value)
{
    char *end;
    const double percent = strtod(text, &end);
    if (end == text || strcmp(end, *end == '%' ? "%" : "") != 0) {
        return ERR_SYNTAX;
    }
    if (!(percent > 0 && percent <= 100)) {
        return ERR_RANGE;
    }
    *(double *)value = percent;
    return ERR_OK;
}

int cli_check(int argc, char *argv[])
{
    struct check check = {.percent = 100,
                          .seed = clock_unique() >> 32,
                          .first_false = SIZE_MAX,
                          .threads = 1,
                          .leaf_max = LEAF_MAX,
                          .memory = PROOF_MEMORY,
                          .resources = {.hash_mib = 1}};
    const struct options_row table[] = {
        {"sample", "PERCENT", "solve this share of the leaves, chosen at random (default 100%)",
         &check.percent, OPTION_CUSTOM, .parse = parse_percent},
        {"seed", "N", "seed of the sample (default: new each time)", &check.seed, OPTION_U64, 0, 0,
         UINT32_MAX},
        {"threads", "N", "solving threads (default 1)", &check.threads, OPTION_U32, 'j', 1,
         THREADS_MAX},
        {"servers", "HOST:PORT,...", "shards whose workers solve leaves, too, and are trusted",
         &check.resources.table.servers, OPTION_SERVERS, 's'},
        CLI_KEYS_ROW(&check.resources.table.keys_dir),
        {"max-leaf", "N", "refuse leaves with more empty squares (default 20)", &check.leaf_max,
         OPTION_U32, 0, 1, PROOF_LEAF_MAX},
        {"memory", "SIZE", "refuse a proof that needs more (default 4G)", &check.memory,
         OPTION_SIZE, 0, 1 << 20, UINT64_C(1) << 50},
        {"json", NULL, "one JSON object on stdout", &check.json, OPTION_FLAG},
        {0},
    };
    const struct options options = {
        .program = program,
        .usage = "[OPTION]... PROOF",
        .summary = "Checks a proof of `abdada solve --proof`, by a plain solver of its own.",
        .example = {"abdada check ending.proof --threads 4",
                    "abdada check ending.proof --sample 10"},
        .table = table,
        .operands_max = 1,
    };
    unsigned operands;
    int status = config_parse(&options, argc, argv, &check.path, &operands);
    if (status >= 0) {
        return status;
    }
    const uint64_t of_engine = /* opened below, before the proof is read */
        check.resources.table.servers.count == 0
            ? 0
            : (check.resources.hash_mib << 20) + games_solver_bytes(&game_othello_claim);
    const uint64_t room = cli_memory_besides(of_engine, check.threads);
    check.memory = check.memory < room ? check.memory : room;
    if (operands == 0) {
        return options_wrong(program, "give the file of a proof");
    }
    struct cli_table *table_outside = &check.resources.table; /* never by ABDADA_SERVERS alone */
    const bool is_alone = table_outside->servers.count == 0;
    if (is_alone && table_outside->keys_dir != NULL) {
        return options_wrong(program, "--keys needs --servers");
    }
    status = is_alone ? -1
                      : cli_environment(program, &table_outside->servers, &table_outside->keys_dir,
                                        true);
    if (status >= 0) {
        return status;
    }
    status = is_alone || open_cluster(&check) ? check_file(&check) : 1;
    engine_close(&check.engine);
    proof_reader_close(&check.reader);
    proof_contents_close(&check.contents);
    proof_contents_close(&check.part);
    return status;
}
