#include "worker/engine/engine_bag.h"
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
#include <string.h>
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
        log_fail(a->program, "%u worker%s refused the job, most likely of another build; %s",
                 s->workers_refused, s->workers_refused == 1 ? "" : "s",
                 s->workers > 0 ? "the search goes on with the others" : "searching alone");
    }
}

static double share(uint64_t part, uint64_t whole)
{
    return whole == 0 ? 0 : (double)part / (double)whole;
}

static void sum_up(const struct analyse *a, const struct engine_status *s, struct analyse_sum *sum)
{
    bool has_threads = a->resources.threads > 1 && a->job.algorithm->uses_searchers;
    sum->nodes += s->nodes;
    sum->time_us += s->time_us;
    sum->duplicated += s->duplicated;
    sum->abandoned += s->abandoned;
    sum->all_waited_us += s->all_waited_us;
    sum->all_us += s->all_us;
    sum->bytes += s->bytes;
    sum->is_shared = sum->is_shared || has_threads || s->workers > 0 || s->nodes > s->own_nodes;
}

/* What several searchers cost. Without shards nobody waits for them. */
static void print_cost(const struct analyse *a, const struct analyse_sum *sum, FILE *out)
{
    fprintf(out, "overhead >=%.1f%%  duplicated %.1f%%",
            100 * counters_overhead(sum->nodes, sum->duplicated, sum->abandoned),
            100 * share(sum->duplicated, sum->nodes));
    if (cli_table_is_given(&a->resources.table)) {
        fprintf(out, "  waiting %.1f%%  %.1f kB/s", 100 * share(sum->all_waited_us, sum->all_us),
                1e3 * share(sum->bytes, sum->time_us));
    }
}

static void add_word_after_blank(void *out, const char *move)
{
    fprintf(out, " %s", move);
}

static void show_bound(const struct analyse *a, int bound, const char *which)
{
    char score[16];
    score_text(a->running->game, bound, score, sizeof score);
    fprintf(stderr, "  depth %u is %s or %s", a->bound.depth, score, which);
}

static void show_progress(void *self, const struct search_result *best,
                          const struct engine_status *s)
{
    const struct analyse *a = self;
    struct analyse_sum sum = {.nodes = 0};
    char score[16];
    say_refused(self, s);
    double seconds = (double)s->time_us / 1e6;
    fprintf(stderr, "  depth %u  %.1f s  %.2f Mnodes  %.2f Mnodes/s", s->depth, seconds,
            (double)s->nodes / 1e6, (double)s->nodes / 1e6 / (seconds > 0 ? seconds : 1));
    sum_up(a, s, &sum);
    if (sum.is_shared) {
        fprintf(stderr, "  ");
        print_cost(a, &sum, stderr);
    }
    if (s->shards > 0) {
        fprintf(stderr, "  workers %u  shards %u/%u", s->workers, s->shards_up, s->shards);
    }
    if (best->depth > 0) { /* which is not that of the iteration under way */
        score_text(a->running->game, best->score, score, sizeof score);
        fprintf(stderr, "  score %s  pv", score);
        score_line(a->running, &best->pv, add_word_after_blank, stderr);
    }
    if (a->bound.depth == s->depth && a->bound.lower > -GAME_INFINITE) {
        show_bound(a, a->bound.lower, "more");
    }
    if (a->bound.depth == s->depth && a->bound.upper < GAME_INFINITE) {
        show_bound(a, a->bound.upper, "less");
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
    return job->game->depth_left != NULL && r->depth >= job_last_iteration(job);
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

static bool is_best(const struct analyse *a, const struct engine_result *r, unsigned i)
{
    return a->line[i].depth == r->search.depth && a->line[i].score == r->search.score;
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
        json_number(j, "nodes", (int64_t)h->nodes);
        json_number(j, "nps", (int64_t)per_second(h->nodes, r->status.time_us));
        if (talking >= 0) {
            json_real(j, "talking", talking);
            json_real(j, "waiting", fmin(share(h->waited_us, h->searched_us), talking));
        }
        json_number(j, "asks", (int64_t)h->asks);
        json_number(j, "bytes_sent", (int64_t)h->bytes_sent);
        json_number(j, "bytes_received", (int64_t)h->bytes_received);
        json_number(j, "silent_ms", (int64_t)(h->silent_us / 1000));
        json_object_end(j);
    }
    json_array_end(j);
}

static void print_json(const struct analyse *a, const struct suite_case *c, const struct job *job,
                       const struct engine_result *r)
{
    const struct engine_status *s = &r->status;
    struct json j;
    char text[GAME_MOVE_TEXT_MAX];
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
    score_line(job, &r->search.pv, add_word, &j);
    json_array_end(&j);
    if (score_has_san(job)) {
        json_array_begin(&j, "pv_san");
        score_line_san(job, &r->search.pv, add_word, &j);
        json_array_end(&j);
    }
#define X(name, json, help) json_number(&j, json, (int64_t)s->name);
    COUNTERS(X)
#undef X
    json_number(&j, "own_nodes", (int64_t)s->own_nodes);
    json_real(&j, "time_ms", (double)s->time_us / 1e3);
    json_number(&j, "nps", (int64_t)per_second(s->nodes, s->time_us));
    json_number(&j, "workers", s->workers);
    json_number(&j, "shards_up", s->shards_up);
    json_number(&j, "shards", s->shards);
    json_number(&j, "refused", s->refused);
    json_number(&j, "workers_refused", s->workers_refused);
    json_number(&j, "threads", a->resources.threads);
    json_text(&j, "algorithm", a->job.algorithm->name);
    json_flag(&j, "strict", a->job.strict);
    json_real(&j, "duplicated", share(s->duplicated, s->nodes));
    json_number(&j, "remote_depth", s->remote_depth);
    json_real(&j, "waited", share(s->waited_us, s->time_us * a->resources.threads));
    json_real(&j, "waiting", share(s->all_waited_us, s->all_us));
    json_real(&j, "overhead_estimate", counters_overhead(s->nodes, s->duplicated, s->abandoned));
    json_number(&j, "bytes", (int64_t)s->bytes);
    put_hosts(&j, r);
    json_flag(&j, "stopped", r->stopped);
    if (job->game->depth_left != NULL) {
        json_number(&j, "empties", job->game->depth_left(job->position));
    }
    if (a->line != NULL) {
        json_array_begin(&j, "best");
        for (unsigned i = 0; i < a->lines; i++) {
            if (is_best(a, r, i)) {
                json_element(&j, score_move(job, a->line[i].move, text));
            }
        }
        json_array_end(&j);
    }
    if (score_is_judged(c, job, r->search.move)) {
        json_flag(&j, "solved", is_solved(a, c, job, &r->search));
    }
    json_end(&j);
}

static void print_head(const struct analyse *a)
{
    printf("%-12s %5s %9s %-8s %-12s %12s %8s %8s", "id", "depth", "score", "move", "expected",
           "nodes", "s", "Mn/s");
    printf(cli_table_is_given(&a->resources.table) ? " %7s %6s %7s\n" : "\n", "workers", "shards",
           "busy");
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
               h->searchers, h->nodes, share(h->nodes, r->status.time_us), talk, h->asks,
               (double)h->bytes_sent / 1e3, (double)h->bytes_received / 1e3,
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
        snprintf(value, sizeof value, ":%+d", c->score);
    }
    if (c->best[0] != '\0' || c->avoid[0] != '\0') {
        snprintf(expected, sizeof expected, "%s%s%s%s%s %s", c->best,
                 c->best[0] && c->avoid[0] ? " " : "", c->avoid[0] ? "not " : "", c->avoid, value,
                 !score_is_judged(c, job, r->search.move) ? "?"
                 : is_solved(a, c, job, &r->search)       ? "ok"
                                                          : "-");
    }
    printf("%-12s %5u %9s %-8s %-12s %12" PRIu64 " %8.3f %8.2f", c->id, r->search.depth, score,
           score_move(job, r->search.move, move), expected, s->nodes, seconds,
           share(s->nodes, s->time_us));
    if (cli_table_is_given(&a->resources.table)) {
        printf(" %7u %3u/%-2u %7" PRIu64, s->workers, s->shards_up, s->shards, s->busy);
    }
    printf("\n");
    if (a->line != NULL) {
        printf("best");
        for (unsigned i = 0; i < a->lines; i++) {
            if (is_best(a, r, i)) {
                printf(" %s", score_move(job, a->line[i].move, move));
            }
        }
        printf("\n");
    }
    if (a->suite.count == 1) {
        printf("pv");
        score_line(job, &r->search.pv, score_print_word, NULL);
        printf("\n");
        if (score_has_san(job)) {
            printf("san");
            score_line_san(job, &r->search.pv, score_print_word, NULL);
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
        printf("%u positions, %" PRIu64 " nodes, %.3f s, %.2f Mnodes/s", a->suite.count, sum->nodes,
               (double)sum->time_us / 1e6, share(sum->nodes, sum->time_us));
        if (a->asked > 0) {
            printf(", %u of %u expected moves found", a->solved, a->asked);
        }
        printf("\n");
    }
    if (sum->is_shared) {
        printf("all searchers: %.2f Mnodes/s  ", share(sum->nodes, sum->time_us));
        print_cost(a, sum, stdout);
        printf("\n");
    }
}

/* ---- the work ---- */

static bool open_proof(struct analyse *a)
{
    char why[PROVE_WHY_MAX];
    const struct proof_head head = {a->proof_leaf, a->suite.count};
    const bool is_open =
        prove_open(&a->prove, disk_of_system(), a->proof, &head, a->resume, why) == ERR_OK;
    if (!is_open) {
        log_fail(a->program, "--proof %s: %s", a->proof, why);
    }
    return is_open;
}

/* False: it was not written; there is none of a score that is not exact. */
static bool write_proof(struct analyse *a, const struct suite_case *c, const struct job *job,
                        const struct search_result *r)
{
    char why[PROVE_WHY_MAX] = "there is no proof of that score";
    const bool is_written =
        is_exact(job, r) && prove_position(a->prove, a->engine, job, r->score, why) == ERR_OK;
    if (!is_written) {
        log_fail(a->program, "%s: --proof %s: %s", c->id, a->proof, why);
    }
    return is_written;
}

/* Of a score that is exact; else there is none to be written. */
static void write_scored(struct analyse *a, const struct job *job, const struct engine_result *r)
{
    uint16_t move[SEARCH_LINES_MAX];
    unsigned moves = 0;
    char why[SCORED_WHY_MAX];
    if (a->out == NULL || a->has_failed) {
        return;
    }
    if (!is_exact(job, &r->search)) {
        a->unwritten++;
        return;
    }
    for (unsigned i = 0; a->line != NULL && i < a->lines; i++) {
        if (is_best(a, r, i)) {
            move[moves++] = a->line[i].move;
        }
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
        char what[TRANSPORT_NONE_UP_MAX];
        engine_none_up(a->engine, what);
        log_fail(a->program,
                 result->status.workers > 0 ? "%s: the shards are lost: %s"
                                            : "%s: %s: searched alone",
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
    if (score_is_judged(c, job, result->search.move)) {
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
        log_fail(a->program, "%s", why);
        return 1;
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
    const bool is_done = a->prove == NULL || write_proof(a, c, &job, &result.search);
    job_free(&job);
    return is_done ? 0 : 1;
}

/* ---- positions of a file at once ---- */

/* As the game writes them: a file may have more blanks than a letter has room. */
static enum err write_positions(struct analyse *a)
{
    struct job job = {.id = 0};
    char why[256];
    enum err err = ERR_OK;
    for (unsigned i = 0; i < a->suite.count && err == ERR_OK; i++) {
        struct suite_case *c = &a->suite.at[i];
        err = job_set_position(&job, a->job.game, c->position, why, sizeof why);
        if (err == ERR_OK) {
            snprintf(c->position, sizeof c->position, "%s", job.text);
        }
    }
    job_free(&job);
    return err;
}

static void position_of(void *self, unsigned i, char text[GAME_TEXT_MAX])
{
    const char *position = ((const struct analyse *)self)->suite.at[i].position;
    snprintf(text, GAME_TEXT_MAX, "%.*s", GAME_TEXT_MAX - 1, position);
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
    const struct engine_status *s = &p->status;
    const double seconds = (double)s->time_us / 1e6;
    say_refused(a, s);
    fprintf(stderr, "  %u of %u positions  %.1f s  %.2f Mnodes  %.2f Mnodes/s", p->done, p->count,
            seconds, (double)s->nodes / 1e6, (double)s->nodes / 1e6 / (seconds > 0 ? seconds : 1));
    if (s->shards > 0) {
        fprintf(stderr, "  workers %u  shards %u/%u", s->workers, s->shards_up, s->shards);
    }
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
    enum err err = write_positions(a);
    if (err == ERR_OK) {
        err = engine_run_bag(a->engine, &bag, &total);
    }
    if (err != ERR_OK) {
        log_fail(a->program, "%s", err_text(err));
        return 1;
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

/* One after the other. */
static int analyse_together(struct analyse *a)
{
    int status = 0;
    for (unsigned i = 0;
         i < a->suite.count && status == 0 && !atomic_load(&interrupted) && !a->has_failed; i++) {
        status = analyse_case(a, &a->suite.at[i]);
    }
    return status;
}

/* Leaves out what the file of scores has. False: it cannot be used. */
static bool open_scored(struct analyse *a)
{
    char why[SCORED_WHY_MAX];
    struct job job = {.id = 0};
    const unsigned all = a->suite.count;
    unsigned kept = 0;
    struct stat in, out;
    if (a->file != NULL && stat(a->file, &in) == 0 && stat(a->scored, &out) == 0 &&
        in.st_dev == out.st_dev && in.st_ino == out.st_ino && S_ISREG(in.st_mode)) {
        log_fail(a->program, "--obf-out %s: it is the file of the positions", a->scored);
        return false;
    }
    if (scored_open(&a->out, a->scored, a->resume, why) != ERR_OK) {
        log_fail(a->program, "--obf-out %s: %s", a->scored, why);
        return false;
    }
    for (unsigned i = 0; i < all; i++) {
        if (job_set_position(&job, a->job.game, a->suite.at[i].position, why, sizeof why) !=
                ERR_OK ||
            !scored_take(a->out, job.text)) {
            a->suite.at[kept++] = a->suite.at[i];
        }
    }
    job_free(&job);
    a->suite.count = kept;
    if (kept < all) {
        log_line(a->program, "%u of %u positions are in %s", all - kept, all, a->scored);
    }
    return true;
}

static int analyse_all(struct analyse *a)
{
    char why[CLI_WHY_MAX];
    signals_catch(on_signal); /* a table may take long to make */
    if (cli_engine_open(&a->engine, a->program, &a->resources, &interrupted, why) != ERR_OK) {
        log_fail(a->program, "%s", why);
        return 1;
    }
    if (cli_metrics_open(&a->metrics, a->program, &a->resources, a->engine, &interrupted, why) !=
        ERR_OK) {
        log_fail(a->program, "--metrics: %s", why);
        engine_close(&a->engine);
        return 1;
    }
    if ((a->proof != NULL && !open_proof(a)) || (a->scored != NULL && !open_scored(a))) {
        searching_metrics_close(&a->metrics);
        engine_close(&a->engine);
        return 1;
    }
    atomic_store(&running, a->engine);
    if (atomic_load(&interrupted)) { /* before there was anything to stop */
        engine_stop(a->engine);
    }
    if (!a->json) {
        print_head(a);
    }
    int status = a->suite.count == 0 ? 0 : a->is_apart ? analyse_apart(a) : analyse_together(a);
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
        log_fail(a->program, "%u board%s not in %s, as no exact score was found; --resume goes on",
                 a->unwritten, a->unwritten == 1 ? " is" : "s are", a->scored);
        status = 1;
    }
    if (is_through && a->wrong_lines > 0) {
        log_fail(a->program, "%u line%s of %s left out: no position", a->wrong_lines,
                 a->wrong_lines == 1 ? "" : "s", a->file);
        status = 1;
    }
    atomic_store(&running, NULL);
    searching_metrics_close(&a->metrics);
    engine_close(&a->engine);
    return status;
}

static int run(const char *name, analyse_read *read, int argc, char *argv[])
{
    static struct search_result line[SEARCH_LINES_MAX];
    struct analyse a = {
        .program = name,
        .select = "plain",
        .positions = "auto",
        .search = {"chess", "abdada", "auto", NULL},
        .resources = {.threads = 1, .share = REMOTE_SHARE_DEPTH, .hash_mib = 64},
    };
    int status = read(&a, argc, argv);
    if (status < 0) {
        status = analyse_resolve(&a);
    }
    a.job.keeps_endings = a.proof != NULL;
    if (a.all) {
        a.line = line;
        a.job.lines = SEARCH_LINES_MAX;
    }
    if (status < 0) {
        status = analyse_all(&a);
    }
    char why[PROVE_WHY_MAX];
    if (prove_close(&a.prove, why) != ERR_OK && status == 0) {
        log_fail(name, "--proof %s: %s", a.proof, why);
        status = 1;
    }
    scored_close(&a.out);
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
