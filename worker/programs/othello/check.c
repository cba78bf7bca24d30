/* abdada check: whether a proof of solve holds. The rules (worker/games/othello/board.h), the walk
 * through the claims (proof.c) and the reader (proof_file.c) are those of the program that wrote
 * the proof; the solver of the leaves (proof_solve.c) is another. A checker that shares nothing at
 * all is examples/check_proof.py.
 *
 * The file is read twice: first all but the leaves is checked and they are counted; then each
 * position's leaves, or a sample of all, are kept and solved before the next position. */
#include "worker/programs/cli.h"
#include "worker/programs/json.h"
#include "worker/programs/othello/proof_contents.h"

#include "common/clock.h"
#include "common/config.h"
#include "common/log.h"
#include "common/placement.h"
#include "common/rng.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static const char program[] = "abdada check";

enum { THREADS_MAX = 256, PROGRESS_EVERY_US = 5000000, SCORE_TEXT_MAX = 80, LEAF_MAX = 20 };

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
    atomic_size_t next; /* the next to be solved */
    atomic_size_t first_false; /* of those found; SIZE_MAX: none */
    struct proof_claim false_claim; /* that one's */
    _Atomic uint64_t solved, nodes, false_claims;
    struct placement placement;
    atomic_uint started;
};

/* ---- leaves ---- */

static bool keeps_none(void *self)
{
    (void)self;
    return false;
}

/* Whether the next leaf is in the sample; every set of so many is as likely. */
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

/* Until all are solved, or one is false: then those before it are solved to their end, so that it
 * is known which is the first. */
static void solve_leaves(struct check *c, uint64_t *next_us)
{
    for (size_t i; atomic_load(&c->first_false) == SIZE_MAX &&
                   (i = atomic_fetch_add(&c->next, 1)) < c->part.kept;) {
        uint64_t nodes = 0;
        if (!proof_solve(&c->part.leaf[i], &nodes)) {
            size_t first = atomic_load(&c->first_false);
            atomic_fetch_add(&c->false_claims, 1);
            while (i < first && !atomic_compare_exchange_weak(&c->first_false, &first, i)) {
            }
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

/* Those of a position. */
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
    const size_t first = atomic_load(&c->first_false);
    if (first == SIZE_MAX) {
        return true;
    }
    c->false_claim = c->part.leaf[first];
    return false;
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
    printf("\n%s\n", !is_valid   ? "the proof does not hold"
                     : is_sample ? "no claim was found false"
                                 : "the proof holds");
}

/* Returns the exit status. */
static int report(struct check *c)
{
    const double ms = (double)(clock_us() - c->begin_us) / 1e3;
    const size_t first = atomic_load(&c->first_false);
    char text[PROOF_CLAIM_TEXT_MAX] = "";
    if (first != SIZE_MAX) {
        proof_claim_text(&c->false_claim, text);
        log_fail(program, "%s: the claim %s does not hold: it is a leaf's, which was solved",
                 c->path, text);
    }
    if (c->json) {
        print_json(c, text, ms);
    } else {
        print(c, first == SIZE_MAX, ms);
    }
    return first != SIZE_MAX;
}

/* What the file claims. Returns -1 to go on, or the exit status. */
static int read_proof(struct check *c, struct proof_contents *contents)
{
    char why[PROOF_WHY_MAX], text[PROOF_CLAIM_TEXT_MAX];
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
        proof_claim_text(&contents->false_claim, text);
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
    c->rng = c->seed;
    c->begin_us = clock_us();
    c->progress_us = c->begin_us + PROGRESS_EVERY_US;
    (void)placement_begin(&c->placement, &place, clock_us());
    proof_reader_rewind(&c->reader);
    c->part.keeps = keeps_sample;
    c->part.solve = solve_position;
    const int status = read_proof(c, &c->part);
    return status < 0 ? report(c) : status;
}

static int check_file(struct check *c)
{
    const enum err err = proof_reader_open(&c->reader, c->path, c->memory);
    if (err != ERR_OK) {
        log_fail(program, "%s: %s", c->path,
                 err == ERR_IO     ? strerror(errno)
                 : err == ERR_FULL ? "it needs more memory than --memory allows"
                                   : err_text(err));
        return OPTIONS_WRONG;
    }
    c->contents.keeps = keeps_none;
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
                          .memory = PROOF_MEMORY};
    const struct options_row table[] = {
        {"sample", "PERCENT", "solve so many of the leaves, at random (default 100%)",
         &check.percent, OPTION_CUSTOM, .parse = parse_percent},
        {"seed", "N", "of the sample (default: another each time)", &check.seed, OPTION_U64, 0, 0,
         UINT32_MAX},
        {"threads", "N", "solving threads (default 1)", &check.threads, OPTION_U32, 'j', 1,
         THREADS_MAX},
        {"max-leaf", "N", "refuse leaves of more empty squares (default 20)", &check.leaf_max,
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
        .version = PROGRAM_VERSION,
        .table = table,
        .operands_max = 1,
    };
    unsigned operands;
    int status = config_parse(&options, argc, argv, &check.path, &operands);
    if (status >= 0) {
        return status;
    }
    if (operands == 0) {
        return options_wrong(program, "a proof is wanted");
    }
    status = check_file(&check);
    proof_reader_close(&check.reader);
    proof_contents_close(&check.contents);
    proof_contents_close(&check.part);
    return status;
}
