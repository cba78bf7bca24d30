#include "worker/engine/engine_bag.h"
#include "worker/games/games.h"
#include "worker/programs/analyse/analyse_options.h"
#include "worker/programs/json.h"
#include "worker/programs/othello/prove.h"
#include "worker/programs/othello/scored.h"
#include "worker/programs/score.h"

#include "common/clock.h"
#include "common/log.h"
#include "common/signals.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static struct engine *_Atomic running; /* stopped by a signal; NULL: none */
static atomic_bool interrupted;

static void on_signal(int number)
{
    struct engine *e = atomic_load(&running);
    if (atomic_exchange(&interrupted, true)) {
        _exit(128 + number);
    }
    if (e != NULL) {
        engine_stop(e);
    }
}

/* ---- what is printed ---- */

/* Once: it is so for every position. */
static void say_refused(struct analyse *a, const struct engine_status *s)
{
    if (s->workers_refused > 0 && !a->said_refused) {
        a->said_refused = true;
        log_fail(a->program, "%u worker%s refused the job, probably of another build; %s",
                 s->workers_refused, s->workers_refused == 1 ? "" : "s",
                 s->workers > 0 ? "the search continues with the others" : "searching alone");
    }
}

static double share(uint64_t part, uint64_t whole)
{
    return whole == 0 ? 0 : (double)part / (double)whole;
}

/* The share of the time that was spent waiting. A report counts a wait that its searching time does
 * not yet contain. */
static double waiting_share(uint64_t waited_us, uint64_t us)
{
    return fmin(share(waited_us, us), 1);
}

static void sum_up(const struct analyse *a, const struct engine_status *s, struct analyse_sum *sum)
{
    bool has_threads = a->resources.threads > 1 && a->job.algorithm->uses_searchers;
    counters_add(&sum->counters, &s->sum);
    sum->time_us += s->time_us;
    sum->all_us += s->all_us;
    sum->is_shared = sum->is_shared || has_threads || s->workers > 0 || s->sum.nodes > s->own.nodes;
}

/* What several searchers cost; `all`: also what is zero. Without shards nobody waits for them. */
static void print_cost(const struct analyse *a, const struct analyse_sum *sum, bool all, FILE *out)
{
    const struct counters *c = &sum->counters;
    const struct {
        const char *name, *unit;
        double value;
    } cost[] = {
        {"overhead >=", "%", 100 * counters_overhead(c->nodes, c->duplicated, c->abandoned)},
        {"duplicated ", "%", 100 * share(c->duplicated, c->nodes)},
        {"waiting ", "%", 100 * waiting_share(c->waited_us, sum->all_us)},
        {"", " kB/s", 1e3 * share(c->bytes_sent + c->bytes_received, sum->time_us)},
    };
    const unsigned costs = cli_table_is_given(&a->resources.table) ? 4 : 2;
    for (unsigned i = 0; i < costs; i++) {
        if (all || cost[i].value >= 0.05) {
            fprintf(out, "  %s%.1f%s", cost[i].name, cost[i].value, cost[i].unit);
        }
    }
}

/* How far a search is that takes long. */
static void show_speed(const struct engine_status *s)
{
    const double seconds = (double)s->time_us / 1e6, mega = (double)s->sum.nodes / 1e6;
    fprintf(stderr, "  %.1f s  %.2f Mnodes  %.2f Mnodes/s", seconds, mega,
            mega / (seconds > 0 ? seconds : 1));
}

static void show_help(const struct engine_status *s)
{
    if (s->shards > 0) {
        fprintf(stderr, "  workers %u  shards %u/%u", s->workers, s->shards_up, s->shards);
    }
}

static void show_progress(void *self, const struct search_result *best,
                          const struct engine_status *s)
{
    const struct analyse *a = self;
    struct analyse_sum sum = {.time_us = 0};
    char score[16], left[CLI_TIME_LEFT_MAX];
    say_refused(self, s);
    if (best->depth > 0) { /* which is not that of the iteration under way */
        score_text(a->running->game, best->score, score, sizeof score);
        fprintf(stderr, "  score %s  pv", score);
        score_line(a->running, &best->pv, false, score_print_word, stderr);
    }
    fprintf(stderr, "  depth %u", s->depth);
    show_speed(s);
    fprintf(stderr, "%s", cli_time_left(s->left_s, left));
    sum_up(a, s, &sum);
    if (sum.is_shared) {
        print_cost(a, &sum, a->verbose, stderr);
    }
    show_help(s);
    const int bound[] = {a->bound.lower, a->bound.upper};
    for (unsigned i = 0; i < 2 && a->bound.depth == s->depth; i++) {
        if (abs(bound[i]) < GAME_INFINITE) {
            score_text(a->running->game, bound[i], score, sizeof score);
            fprintf(stderr, "  depth %u is %s or %s", s->depth, score, i == 0 ? "more" : "less");
        }
    }
    fprintf(stderr, "\n");
}

static void show_refusal(void *self, unsigned shard, const char *why, const struct engine_status *s)
{
    const struct analyse *a = self;
    char text[CLI_REFUSAL_MAX];
    cli_refusal_text(a->engine, shard, why, s, text);
    log_fail(a->program, "%s", text);
}

/* Searched to the end of the game. */
static bool is_exact(const struct job *job, const struct search_result *r)
{
    const struct game *game = job->game;
    return game->depth_left != NULL && r->depth > 0 && r->depth >= game->depth_left(job->position);
}

/* A score without a move, as OBF may have it, can be compared with an exact one alone. */
static bool is_judged(const struct suite_case *c, const struct job *job,
                      const struct search_result *r)
{
    const bool is_score_alone = c->has_score && c->best[0] == '\0' && !c->is_best_cut;
    return is_score_alone ? is_exact(job, r) : score_is_judged(c, job, r->move);
}

/* In Othello only the exact score can be compared; until then `analyse` compares the move. */
static bool is_solved(const struct analyse *a, const struct suite_case *c, const struct job *job,
                      const struct search_result *r)
{
    if (!is_exact(job, r)) {
        return !a->solves && score_solved(c, job, r->move, c->score);
    }
    if (job->game->score_max == 1 && c->has_score) { /* win, draw or loss alone */
        return r->score == (c->score > 0) - (c->score < 0);
    }
    return score_solved(c, job, r->move, r->score);
}

/* What is proved of the iteration under way, and the lines of the last finished one. */
static void take_result(void *self, unsigned number, const struct search_result *best,
                        const struct engine_status *s)
{
    struct analyse *a = self;
    (void)s;
    if (best->bound != TT_EXACT) {
        if (best->depth != a->bound.depth) {
            a->bound.depth = best->depth;
            a->bound.lower = -GAME_INFINITE;
            a->bound.upper = GAME_INFINITE;
        }
        if (best->bound == TT_LOWER) { /* several threads may have proved something */
            a->bound.lower = best->score > a->bound.lower ? best->score : a->bound.lower;
        } else {
            a->bound.upper = best->score < a->bound.upper ? best->score : a->bound.upper;
        }
    } else if (a->line != NULL && number < SEARCH_LINES_MAX) {
        a->line[number] = *best;
        a->lines = number + 1;
    }
}

/* The moves of the lines that are as good as the best. Returns how many. */
static unsigned best_moves(const struct analyse *a, const struct engine_result *r,
                           uint16_t move[SEARCH_LINES_MAX])
{
    unsigned moves = 0;
    for (unsigned i = 0; a->line != NULL && i < a->lines; i++) {
        if (a->line[i].depth == r->search.depth && a->line[i].score == r->search.score) {
            move[moves++] = a->line[i].move;
        }
    }
    return moves;
}

static void add_word(void *json, const char *move)
{
    json_element(json, move);
}

static uint64_t per_second(uint64_t count, uint64_t us)
{
    return us > 0 ? (uint64_t)((double)count * 1e6 / (double)us) : 0;
}

static void put_hosts(struct json *j, const struct engine_result *r)
{
    json_array_begin(j, "hosts");
    for (const struct front_host *h = r->host; h < r->host + r->hosts; h++) {
        const double talking = front_host_talking(h);
        json_object_begin(j, NULL);
        json_text(j, "name", h->name);
        json_flag(j, "self", h->is_own);
        json_flag(j, "gone", h->is_gone);
        json_number(j, "searchers", h->searchers);
        json_number(j, "nodes", (int64_t)h->sum.nodes);
        json_number(j, "nps", (int64_t)per_second(h->sum.nodes, r->status.time_us));
        if (talking >= 0) {
            json_real(j, "talking", talking);
            json_real(j, "waiting", fmin(share(h->sum.waited_us, h->searched_us), talking));
        }
        json_number(j, "asks", (int64_t)h->sum.asks);
        json_number(j, "bytes_sent", (int64_t)h->sum.bytes_sent);
        json_number(j, "bytes_received", (int64_t)h->sum.bytes_received);
        json_number(j, "silent_ms", (int64_t)(h->silent_us / 1000));
        json_object_end(j);
    }
    json_array_end(j);
}

static void print_json(const struct analyse *a, const struct suite_case *c, const struct job *job,
                       const struct engine_result *r)
{
    const struct engine_status *s = &r->status;
    const struct counters *n = &s->sum;
    struct json j;
    char text[GAME_MOVE_TEXT_MAX];
    uint16_t best[SEARCH_LINES_MAX];
    const unsigned moves = best_moves(a, r, best);
    int64_t value;
    const char *kind = score_kind(job->game, r->search.score, &value);

    json_begin(&j, stdout);
    json_text(&j, "id", c->id);
    json_text(&j, "position", job->text);
    json_number(&j, "depth", r->search.depth);
    json_number(&j, "score", value);
    json_text(&j, "score_kind", kind);
    json_text(&j, "bestmove", score_move(job, r->search.move, text));
    json_array_begin(&j, "pv");
    score_line(job, &r->search.pv, false, add_word, &j);
    json_array_end(&j);
    if (score_has_san(job->game)) {
        json_array_begin(&j, "pv_san");
        score_line(job, &r->search.pv, true, add_word, &j);
        json_array_end(&j);
    }
    for (unsigned i = 0; i < COUNTERS_OF_SEARCH; i++) {
        json_number(&j, COUNTER_NAME[i].json, (int64_t)n->at[i]);
    }
    json_number(&j, "own_nodes", (int64_t)s->own.nodes);
    json_real(&j, "time_ms", (double)s->time_us / 1e3);
    json_number(&j, "nps", (int64_t)per_second(n->nodes, s->time_us));
    json_number(&j, "workers", s->workers);
    json_number(&j, "shards_up", s->shards_up);
    json_number(&j, "shards", s->shards);
    json_number(&j, "refused", s->refused);
    json_number(&j, "workers_refused", s->workers_refused);
    json_number(&j, "threads", a->resources.threads);
    json_text(&j, "algorithm", a->job.algorithm->name);
    json_flag(&j, "strict", a->job.strict);
    json_real(&j, "duplicated", share(n->duplicated, n->nodes));
    json_number(&j, "remote_depth", s->remote_depth);
    json_real(&j, "waited", waiting_share(s->own.waited_us, s->time_us * a->resources.threads));
    json_real(&j, "waiting", waiting_share(n->waited_us, s->all_us));
    json_real(&j, "overhead_estimate", counters_overhead(n->nodes, n->duplicated, n->abandoned));
    json_number(&j, "bytes", (int64_t)(n->bytes_sent + n->bytes_received));
    put_hosts(&j, r);
    json_flag(&j, "stopped", r->stopped);
    if (job->game->depth_left != NULL) {
        json_number(&j, "empties", job->game->depth_left(job->position));
    }
    if (a->line != NULL) {
        json_array_begin(&j, "best");
        for (unsigned i = 0; i < moves; i++) {
            json_element(&j, score_move(job, best[i], text));
        }
        json_array_end(&j);
    }
    if (is_judged(c, job, &r->search)) {
        json_flag(&j, "solved", is_solved(a, c, job, &r->search));
    }
    json_end(&j);
}

static void print_hosts(const struct engine_result *r)
{
    printf("%-31s %9s %12s %8s %6s %10s %10s %11s\n", "host", "searchers", "nodes", "Mn/s", "talk",
           "asks", "sent kB", "received kB");
    for (const struct front_host *h = r->host; h < r->host + r->hosts; h++) {
        const double talking = front_host_talking(h);
        char talk[16] = "-";
        if (talking >= 0) {
            snprintf(talk, sizeof talk, "%.1f%%", 100 * talking);
        }
        printf("%-31s %9u %12" PRIu64 " %8.2f %6s %10" PRIu64 " %10.1f %11.1f%s\n", h->name,
               h->searchers, h->sum.nodes, share(h->sum.nodes, r->status.time_us), talk,
               h->sum.asks, (double)h->sum.bytes_sent / 1e3, (double)h->sum.bytes_received / 1e3,
               h->is_own    ? "  this process"
               : h->is_gone ? "  gone"
                            : "");
    }
}

static void print_row(const struct analyse *a, const struct suite_case *c, const struct job *job,
                      const struct engine_result *r)
{
    const struct engine_status *s = &r->status;
    char move[GAME_MOVE_TEXT_MAX], score[16], expected[2 * SUITE_MOVES_MAX + 24] = "",
                                                                             value[8] = "";
    double seconds = (double)s->time_us / 1e6;
    score_text(job->game, r->search.score, score, sizeof score);
    if (c->has_score) {
        snprintf(value, sizeof value, "%s%+d", c->best[0] != '\0' ? ":" : "", c->score);
    }
    if (c->best[0] != '\0' || c->avoid[0] != '\0' || c->has_score) {
        snprintf(expected, sizeof expected, "%s%s%s%s%s %s", c->best,
                 c->best[0] && c->avoid[0] ? " " : "", c->avoid[0] ? "not " : "", c->avoid, value,
                 !is_judged(c, job, &r->search)     ? "?"
                 : is_solved(a, c, job, &r->search) ? "ok"
                                                    : "-");
    }
    printf("%-12s %5u %9s %-8s %-12s %12" PRIu64 " %8.3f %8.2f", c->id, r->search.depth, score,
           score_move(job, r->search.move, move), expected, s->sum.nodes, seconds,
           share(s->sum.nodes, s->time_us));
    if (cli_table_is_given(&a->resources.table)) {
        printf(" %7u %3u/%-2u %7" PRIu64, s->workers, s->shards_up, s->shards, s->sum.busy);
    }
    printf("\n");
    if (a->line != NULL) {
        uint16_t best[SEARCH_LINES_MAX];
        const unsigned moves = best_moves(a, r, best);
        printf("best");
        for (unsigned i = 0; i < moves; i++) {
            printf(" %s", score_move(job, best[i], move));
        }
        printf("\n");
    }
    if (a->suite.count == 1) {
        printf("pv");
        score_line(job, &r->search.pv, false, score_print_word, stdout);
        printf("\n");
        if (score_has_san(job->game)) {
            printf("san");
            score_line(job, &r->search.pv, true, score_print_word, stdout);
            printf("\n");
        }
        if (r->hosts > 1) {
            print_hosts(r);
        }
    }
    fflush(stdout);
}

static void print_total(const struct analyse *a)
{
    const struct analyse_sum *sum = &a->total;
    if (a->json) {
        return;
    }
    if (a->suite.count > 1) {
        printf("%u positions, %" PRIu64 " nodes, %.3f s, %.2f Mnodes/s", a->suite.count,
               sum->counters.nodes, (double)sum->time_us / 1e6,
               share(sum->counters.nodes, sum->time_us));
        if (a->asked > 0) {
            printf(", %u of %u expected moves found", a->solved, a->asked);
        }
        printf("\n");
    }
    if (sum->is_shared) {
        printf("all searchers: %.2f Mnodes/s", share(sum->counters.nodes, sum->time_us));
        print_cost(a, sum, true, stdout);
        printf("\n");
    }
}

/* ---- the work ---- */

/* Writes an exact score; there is none to be written of another. */
static void write_scored(struct analyse *a, const struct job *job, const struct engine_result *r)
{
    uint16_t move[SEARCH_LINES_MAX];
    unsigned moves = best_moves(a, r, move);
    char why[SCORED_WHY_MAX];
    if (a->out == NULL || a->has_failed) {
        return;
    }
    if (!is_exact(job, &r->search)) {
        a->unwritten++;
        return;
    }
    if (moves == 0 && r->search.move != 0) {
        move[moves++] = r->search.move;
    }
    if (scored_put(a->out, job, move, moves, r->search.score, why) != ERR_OK) {
        log_fail(a->program, "--obf-out %s: %s", a->scored, why);
        a->has_failed = true;
    }
}

/* What there is to say of a position when it has its answer. */
static void answer(struct analyse *a, const struct suite_case *c, const struct job *job,
                   const struct engine_result *result)
{
    say_refused(a, &result->status);
    bool alone = cli_table_is_given(&a->resources.table) && result->status.shards_up == 0;
    if (alone && !a->is_alone) {
        char what[LANES_NONE_UP_MAX];
        (void)engine_none_up(a->engine, what);
        log_fail(a->program,
                 result->status.workers > 0 ? "%s: lost all shards: %s"
                                            : "%s: %s; searched on this machine only",
                 c->id, what);
    }
    a->is_alone = alone;
    if (a->solves && !is_exact(job, &result->search)) {
        log_fail(a->program, "%s: stopped at depth %u of %u: the score is not exact", c->id,
                 result->search.depth, job_last_iteration(job));
    }
    if (a->json) {
        print_json(a, c, job, result);
    } else {
        print_row(a, c, job, result);
    }
    write_scored(a, job, result);
    if (is_judged(c, job, &result->search)) {
        a->asked++;
        a->solved += is_solved(a, c, job, &result->search);
    }
    a->done++;
}

static int analyse_case(struct analyse *a, const struct suite_case *c)
{
    char why[256];
    struct engine_result result;
    struct engine_observer observer = {
        .self = a, .iteration = take_result, .progress = show_progress, .refused = show_refusal};
    a->lines = 0;
    a->bound.depth = 0;
    struct job job = a->job;
    if (job_set_position(&job, a->job.game, c->position, why, sizeof why) != ERR_OK) {
        return log_fail(a->program, "%s", why);
    }
    job_set_namespace(&job, a->fresh ? (uint32_t)clock_unique() | 1 : 0);
    a->running = &job; /* until engine_run returns */
    enum err err = engine_run(a->engine, &job, &observer, &result);
    a->running = NULL;
    if (err != ERR_OK) {
        log_fail(a->program, "%s", err_text(err));
        job_free(&job);
        return 1;
    }
    answer(a, c, &job, &result);
    sum_up(a, &result.status, &a->total);
    int status = 0;
    char unproved[PROVE_WHY_MAX] = "there is no proof of that score";
    if (a->prove != NULL &&
        (!is_exact(&job, &result.search) ||
         prove_position(a->prove, a->engine, &job, result.search.score, unproved) != ERR_OK)) {
        status = log_fail(a->program, "%s: --proof %s: %s", c->id, a->proof, unproved);
    }
    job_free(&job);
    return status;
}

/* ---- positions of a file at once ---- */

static void position_of(void *self, unsigned i, char text[GAME_TEXT_MAX])
{
    const struct analyse *a = self;
    snprintf(text, GAME_TEXT_MAX, "%.*s", GAME_TEXT_MAX - 1, a->suite.at[i].position);
}

static void show_barred(void *self, unsigned i, const char *host, const char *why)
{
    const struct analyse *a = self;
    log_fail(a->program, "%s: worker %s %s, and is given no more positions", a->suite.at[i].id,
             host, why);
}

static void take_answer(void *self, unsigned i, const struct job *job,
                        const struct engine_result *result)
{
    struct analyse *a = self;
    answer(a, &a->suite.at[i], job, result);
    if (a->has_failed) {
        engine_stop(a->engine);
    }
}

static void show_bag(void *self, const struct engine_bag_progress *p)
{
    struct analyse *a = self;
    say_refused(a, &p->status);
    fprintf(stderr, "  %u of %u positions", p->done, p->count);
    show_speed(&p->status);
    show_help(&p->status);
    fprintf(stderr, "\n");
}

/* Each searcher has positions of its own. */
static int analyse_apart(struct analyse *a)
{
    struct engine_bag_progress total;
    struct job common = a->job;
    const struct engine_bag bag = {
        .self = a,
        .count = a->suite.count,
        .common = &common,
        .position = position_of,
        .done = take_answer,
        .progress = show_bag,
        .refused = show_refusal,
        .barred = show_barred,
    };
    job_set_namespace(&common, a->fresh ? (uint32_t)clock_unique() | 1 : 0);
    const enum err err = engine_run_bag(a->engine, &bag, &total);
    if (err != ERR_OK) {
        return log_fail(a->program, "%s", err_text(err));
    }
    say_refused(a, &total.status);
    sum_up(a, &total.status, &a->total);
    log_line(
        a->program,
        "%u of %u positions, up to %u at once; %u taken back from workers, %u joined by others",
        total.done, total.count, total.figures.most_at_once, total.figures.taken_back,
        total.figures.joined);
    return 0;
}

/* 0, or 1 after a message: to write the file would destroy the positions. */
static int check_output(const struct analyse *a, const char *option, const char *file)
{
    struct stat in, out;
    if (file != NULL && a->file != NULL &&
        (stat(a->file, &in) == 0 || fstat(STDIN_FILENO, &in) == 0) && stat(file, &out) == 0 &&
        in.st_dev == out.st_dev && in.st_ino == out.st_ino && S_ISREG(in.st_mode)) {
        return log_fail(a->program, "%s %s is also the file of the positions", option, file);
    }
    return 0;
}

/* Leaves out what the file of scores has. 0, or 1 after a message. */
static int open_scored(struct analyse *a)
{
    char why[SCORED_WHY_MAX];
    const unsigned all = a->suite.count;
    unsigned kept = 0;
    if (scored_open(&a->out, a->scored, a->resume, why) != ERR_OK) {
        return log_fail(a->program, "--obf-out %s: %s", a->scored, why);
    }
    for (unsigned i = 0; i < all; i++) {
        if (!scored_take(a->out, a->suite.at[i].position)) {
            a->suite.at[kept++] = a->suite.at[i];
        }
    }
    a->suite.count = kept;
    if (kept < all) {
        log_line(a->program, "%u of %u positions are in %s", all - kept, all, a->scored);
    }
    return 0;
}

static bool await_room(void *self, const char *why)
{
    struct analyse *a = self;
    if (!a->said_full) {
        a->said_full = true;
        log_line(a->program, "--proof %s: %s; waiting for room", a->proof, why);
    }
    (void)nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
    return !atomic_load(&interrupted);
}

static int open_all(struct analyse *a)
{
    char why[CLI_WHY_MAX + PROVE_WHY_MAX];
    if (check_output(a, "--proof", a->proof) != 0 || check_output(a, "--obf-out", a->scored) != 0) {
        return 1;
    }
    a->resources.game = a->job.game;
    const uint64_t tables = (a->resources.hash_mib << 20) + games_solver_bytes(a->job.game);
    const struct prove_options proof = {
        .disk = disk_of_system(),
        .path = a->proof,
        .head = {a->proof_leaf, a->suite.count},
        .resumes = a->resume,
        .memory_max = cli_memory_besides(tables, a->resources.threads),
        .self = a,
        .await_room = await_room,
    };
    if (cli_engine_open(&a->engine, a->program, &a->resources, &interrupted, why) != ERR_OK) {
        return log_fail(a->program, "%s", why);
    }
    if (cli_metrics_open(&a->metrics, a->program, &a->resources, a->engine, NULL, &interrupted,
                         why) != ERR_OK) {
        return log_fail(a->program, "--metrics: %s", why);
    }
    if (a->proof != NULL && prove_open(&a->prove, &proof, why) != ERR_OK) {
        return log_fail(a->program, "--proof %s: %s", a->proof, why);
    }
    return a->scored != NULL ? open_scored(a) : 0;
}

static int analyse_all(struct analyse *a)
{
    atomic_store(&running, a->engine);
    if (atomic_load(&interrupted)) { /* before there was anything to stop */
        engine_stop(a->engine);
    }
    if (!a->json) {
        printf("%-12s %5s %9s %-8s %-12s %12s %8s %8s", "id", "depth", "score", "move", "expected",
               "nodes", "s", "Mn/s");
        printf(cli_table_is_given(&a->resources.table) ? " %7s %6s %7s\n" : "\n", "workers",
               "shards", "busy");
    }
    int status = a->is_apart && a->suite.count > 0 ? analyse_apart(a) : 0;
    for (unsigned i = 0; i < a->suite.count && !a->is_apart && status == 0 && !a->has_failed &&
                         !atomic_load(&interrupted);
         i++) {
        status = analyse_case(a, &a->suite.at[i]);
    }
    if (status == 0 && (a->has_failed || a->done < a->suite.count)) {
        if (!a->has_failed) {
            log_fail(a->program, "interrupted after %u of %u positions", a->done, a->suite.count);
        }
        status = 1;
    }
    const bool is_through = status == 0;
    if (is_through) {
        print_total(a);
    }
    if (is_through && a->unwritten > 0) {
        status = log_fail(a->program,
                          "%u board%s not in %s, as no exact score was found; --resume continues",
                          a->unwritten, a->unwritten == 1 ? " is" : "s are", a->scored);
    }
    if (is_through && a->wrong_lines > 0) {
        status =
            log_fail(a->program, "%u %s%s of %s left out: no position", a->wrong_lines,
                     a->games != NULL ? "game" : "line", a->wrong_lines == 1 ? "" : "s", a->file);
    }
    atomic_store(&running, NULL);
    return status;
}

static int run(const char *name, analyse_read *read, int argc, char *argv[])
{
    static struct search_result line[SEARCH_LINES_MAX];
    struct analyse a = {
        .program = name,
        .positions = "auto",
        .empties = SUITE_LAST,
        .search = {"chess", "abdada", "auto", "plain"},
        .resources = {.threads = 1, .share = REMOTE_SHARE_DEPTH, .hash_mib = 64},
    };
    int status = read(&a, argc, argv);
    status = status < 0 ? analyse_resolve(&a) : status;
    a.job.keeps_endings = a.proof != NULL;
    if (a.all) {
        a.line = line;
        a.job.lines = SEARCH_LINES_MAX;
        a.job.only_ties = true;
    }
    if (status < 0) {
        signals_catch(on_signal); /* a table may take long to make */
        status = open_all(&a);
        status = status == 0 ? analyse_all(&a) : status;
    }
    searching_metrics_close(&a.metrics);
    engine_close(&a.engine);
    char why[PROVE_WHY_MAX];
    if (prove_close(&a.prove, why) != ERR_OK && status == 0) {
        status = log_fail(name, "--proof %s: %s", a.proof, why);
    }
    if (scored_close(&a.out, why) != ERR_OK && !a.has_failed) {
        status = log_fail(name, "--obf-out %s: %s", a.scored, why);
    }
    suite_close(&a.suite);
    return status;
}

int cli_analyse(int argc, char *argv[])
{
    return run("abdada analyse", analyse_read_options, argc, argv);
}

int cli_solve(int argc, char *argv[])
{
    return run("abdada solve", analyse_read_solve_options, argc, argv);
}
