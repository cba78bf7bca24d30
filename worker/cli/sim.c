#include "worker/cli/chaos.h"
#include "worker/cli/cli.h"
#include "worker/cli/json.h"
#include "worker/cli/plot.h"
#include "worker/cli/score.h"
#include "worker/lab/lab.h"

#include "common/clock.h"
#include "common/config.h"
#include "common/log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char program[] = "abdada sim";

enum {
    COUNTS_MAX = 64,
    DEFAULT_SHARDS_PER = 16,
    SMALL_TRIPS = 5, /* round trips for each worker's share */
};

struct sim {
    /* command line */
    struct cli_search search;
    const char *faults, *csv, *svg, *seeds, *plant;
    uint32_t depth, shards, jobs, share;
    double rtt_us, jitter_us, node_us, service_us, message_us, loss;
    uint64_t seed, hash_mib, local_kib;
    bool json, wait, constant, loose;
    uint32_t count[COUNTS_MAX];
    unsigned counts;
    /* made of it */
    struct job job;
};

struct sim_row {
    unsigned workers;
    struct lab_result result;
    double seconds, speedup, efficiency, search, communication, synchronization, wall;
};

static enum err parse_counts(const char *text, void *value)
{
    struct sim *s = value;
    char copy[512], *rest = copy;
    unsigned n = 0;
    if (strlen(text) >= sizeof copy) {
        return ERR_SYNTAX;
    }
    strcpy(copy, text);
    for (char *word; (word = strtok_r(rest, ",", &rest)) != NULL; n++) {
        uint64_t number;
        enum err err =
            n == COUNTS_MAX ? ERR_FULL : options_unsigned(word, 1, LAB_WORKERS_MAX, &number);
        if (err != ERR_OK) {
            return err;
        }
        s->count[n] = (uint32_t)number;
    }
    s->counts = n;
    return n > 0 ? ERR_OK : ERR_SYNTAX;
}

static int read_options(struct sim *s, int argc, char *argv[])
{
    const struct options_row table[] = {
        {.kind = OPTION_HEADING, .help = "What is searched:"},
        {"game", "NAME|tree:SPEC", "chess (default), or a synthetic tree: tree:b=20,d=8,seed=1",
         &s->search.game, OPTION_TEXT, 'g'},
        {"depth", "N", "of the search (required)", &s->depth, OPTION_U32, 'd', 1, SEARCH_DEPTH_MAX},
        {"algorithm", "NAME", "abdada, abdada-paper, shared-table or sequential",
         &s->search.algorithm, OPTION_TEXT, 'a'},
        {"loose", NULL, "not strict: deeper entries answer, repetitions are draws", &s->loose,
         OPTION_FLAG},
        {.kind = OPTION_HEADING, .help = "On what:"},
        {"workers", "N,N,...",
         "that search, the front-end included; one run each (default 1,2,4,8,16)", s, OPTION_CUSTOM,
         'w', .parse = parse_counts},
        {"shards", "N", "of the table (default: one for 16 workers)", &s->shards, OPTION_U32, 0, 1,
         LAB_SHARDS_MAX},
        {"node-us", "X", "time of a node (default: tree 1, chess 0.2)", &s->node_us, OPTION_REAL},
        {"rtt-us", "X", "network round trip (default 100)", &s->rtt_us, OPTION_REAL},
        {"jitter-us", "X", "added to each way, uniform in 0..X", &s->jitter_us, OPTION_REAL},
        {"service-us", "X", "of a shard per message and per operation (default 0.2)",
         &s->service_us, OPTION_REAL},
        {"message-us", "X", "of a worker per message sent (default 1)", &s->message_us,
         OPTION_REAL},
        {"loss", "PERCENT", "of messages lost", &s->loss, OPTION_REAL},
        {"remote-depth", "auto|N", "ask the shards from this remaining depth up",
         &s->search.remote_depth, OPTION_TEXT},
        {"wait", NULL, "wait for each answer instead of searching on meanwhile", &s->wait,
         OPTION_FLAG},
        {"hash", "MIB", "of the shards together, per 16 workers unless --constant (default 64)",
         &s->hash_mib, OPTION_U64, 0, 1, 1 << 16},
        {"constant", NULL, "the shards' memory does not grow with the workers", &s->constant,
         OPTION_FLAG},
        {"share", "N", "broadcast results of this depth and more", &s->share, OPTION_U32, 0, 1,
         SEARCH_DEPTH_MAX},
        {"local", "KIB", "table of each worker (default 1024)", &s->local_kib, OPTION_U64, 0, 1,
         1 << 22},
        {.kind = OPTION_HEADING, .help = "Seeds, faults and output:"},
        {"seed", "N", "of everything random (default 1)", &s->seed, OPTION_U64},
        {"faults", "random[:N]",
         "kills, stalls, cuts, delays, losses; front-ends, jobs and cluster, too, unless given",
         &s->faults, OPTION_TEXT},
        {"seeds", "A..B", "with --faults, one run a seed; failures name their command", &s->seeds,
         OPTION_TEXT},
        {"jobs", "N", "runs with faults at a time (default 1)", &s->jobs, OPTION_U32, 'j', 1, 64},
        {"plant", "KIND",
         "a fault of the program, to see it caught: skip-release[:PPM], never-expire-sessions, "
         "never-expire, skip-stop, lose-reports, stale-index",
         &s->plant, OPTION_TEXT},
        {"csv", "FILE", "rows as CSV", &s->csv, OPTION_TEXT},
        {"svg", "FILE", "speedup and overheads against workers as a picture", &s->svg, OPTION_TEXT},
        {"json", NULL, "one JSON object a run on stdout", &s->json, OPTION_FLAG},
        {0},
    };
    const struct options options = {
        .program = program,
        .usage = "--depth N [OPTION]... [POSITION]",
        .summary =
            "Searches on a cluster under a virtual clock: one core runs thousands of workers.",
        .version = PROGRAM_VERSION,
        .table = table,
        .operands_max = 1,
    };
    int status = config_parse(&options, argc, argv, &s->search.position, NULL);
    if (status >= 0) {
        return status;
    }
    if (s->faults == NULL && (s->seeds != NULL || s->plant != NULL)) {
        return options_wrong(program, "--seeds and --plant go with --faults");
    }
    if (s->faults == NULL && s->depth == 0) {
        return options_wrong(program, "--depth N is required");
    }
    return -1;
}

/* Names to things. Returns -1 to go on, or the exit status. */
static int resolve(struct sim *s)
{
    char why[256];
    s->search.algorithm = s->search.algorithm != NULL ? s->search.algorithm : "abdada";
    int status = cli_resolve(program, &s->search, &s->job);
    if (status >= 0) {
        return status;
    }
    if (job_set_position(&s->job, s->job.game, s->search.position, why, sizeof why) != ERR_OK) {
        return options_wrong(program, "%s", why);
    }
    s->job.depth = (uint8_t)s->depth;
    s->job.strict = !s->loose;
    s->job.waits = s->wait;
    job_set_repeatable_namespace(&s->job, 0);
    if (s->node_us == 0) {
        s->node_us = strcmp(s->job.game->name, "tree") == 0 ? 1.0 : 0.2;
    }
    return -1;
}

static struct lab_options lab_for(const struct sim *s, unsigned workers)
{
    uint64_t scale = s->constant ? 1 : (workers + DEFAULT_SHARDS_PER - 1) / DEFAULT_SHARDS_PER;
    unsigned shards =
        s->shards != 0 ? s->shards : (workers + DEFAULT_SHARDS_PER - 1) / DEFAULT_SHARDS_PER;
    return (struct lab_options){
        .job = &s->job,
        .workers = workers,
        .shards = shards > LAB_SHARDS_MAX ? LAB_SHARDS_MAX : shards,
        .seed = s->seed,
        .node_ns = (uint64_t)(s->node_us * 1000 + 0.5),
        .rtt_ns = (uint64_t)(s->rtt_us * 1000 + 0.5),
        .jitter_ns = (uint64_t)(s->jitter_us * 1000 + 0.5),
        .service_ns = (uint64_t)(s->service_us * 1000 + 0.5),
        .message_ns = (uint64_t)(s->message_us * 1000 + 0.5),
        .loss_ppm = (uint32_t)(s->loss * 10000 + 0.5),
        .results_bytes = (s->hash_mib << 20) * scale,
        .local_bytes = s->local_kib << 10,
        .share_depth = (uint8_t)s->share,
        .limit_ns = UINT64_MAX / 4,
    };
}

static int run_row(const struct sim *s, unsigned workers, struct sim_row *row)
{
    struct lab_options options = lab_for(s, workers);
    uint64_t begin = clock_us();
    enum err err = lab_run(&options, &row->result);
    if (err != ERR_OK) {
        log_fail(program, "%u workers: %s", workers, err_text(err));
        return 1;
    }
    row->workers = workers;
    row->wall = (double)(clock_us() - begin) / 1e6;
    row->seconds = (double)row->result.answer[0].time_ns / 1e9;
    return 0;
}

/* Against one worker of the same algorithm: run anew unless it is the first row. */
static void measure(const struct sim_row *one, struct sim_row *row)
{
    const struct lab_result *r = &row->result;
    double n = row->workers;
    row->speedup = row->seconds > 0 ? one->seconds / row->seconds : 0;
    row->efficiency = row->speedup / n;
    row->search = (double)r->sum.nodes / (double)one->result.sum.nodes - 1;
    double busy = n * row->seconds;
    /* One worker may wait too, and that is in its time already. */
    double waited = ((double)r->waited_ns - (double)one->result.waited_ns) / 1e9;
    row->communication = waited / one->seconds;
    row->synchronization = busy / one->seconds - 1 - row->search - row->communication;
}

/* Then a row says what starting costs, and nothing about the algorithm. */
static void say_if_small(const struct sim *s, const struct sim_row *one, const struct sim_row *row)
{
    double share_us = one->seconds * 1e6 / row->workers;
    if (row->workers > 1 && share_us < SMALL_TRIPS * s->rtt_us) {
        log_fail(program,
                 "too small a search for %u workers: one alone takes %.4g ms, which is %.3g "
                 "round trips for each; a greater --depth tells more",
                 row->workers, one->seconds * 1e3, share_us / s->rtt_us);
    }
}

static void print_row(const struct sim *s, const struct sim_row *row)
{
    const struct lab_result *r = &row->result;
    int64_t score;
    char text[16];
    const char *kind = score_kind(s->job.game, r->answer[0].search.score, &score);
    if (!s->json) {
        score_text(s->job.game, r->answer[0].search.score, text, sizeof text);
        printf("%7u %9.4f %8.2f %6.1f%% %12" PRIu64 " %8.1f%% %7.1f%% %7.1f%% %8" PRIu64
               " %8" PRIu64 " %8s %7.1f\n",
               row->workers, row->seconds, row->speedup, 100 * row->efficiency, r->sum.nodes,
               100 * row->search, 100 * row->communication, 100 * row->synchronization, r->sum.busy,
               r->sum.deferred, text, row->wall);
        fflush(stdout);
        return;
    }
    struct json j;
    json_begin(&j, stdout);
    json_number(&j, "workers", row->workers);
    json_real(&j, "speedup", row->speedup);
    json_real(&j, "efficiency", row->efficiency);
#define X(name, json, help) json_number(&j, json, (int64_t)r->sum.name);
    COUNTERS(X)
#undef X
    json_real(&j, "search_overhead", row->search);
    json_real(&j, "communication_overhead", row->communication);
    json_real(&j, "synchronization_overhead", row->synchronization);
    json_number(&j, "score", score);
    json_text(&j, "score_kind", kind);
    json_real(&j, "seconds", row->seconds);
    json_number(&j, "stores", (int64_t)r->stores);
    json_real(&j, "duplicated", (double)r->sum.duplicated / (double)(r->sum.nodes + 1));
    json_real(&j, "messages_per_node", (double)r->messages / (double)(r->sum.nodes + 1));
    json_real(&j, "bytes_per_node", (double)r->bytes / (double)(r->sum.nodes + 1));
    json_flag(&j, "answered", r->answer[0].answered);
    snprintf(text, sizeof text, "%08" PRIx32, (uint32_t)r->trace);
    json_text(&j, "trace", text);
    json_number(&j, "events", (int64_t)r->events);
    json_real(&j, "wall_seconds", row->wall);
    json_end(&j);
}

static int write_csv(const char *path, const struct sim_row *row, unsigned rows)
{
    FILE *out = fopen(path, "w");
    if (out == NULL) {
        log_fail(program, "%s: %s", path, strerror(errno));
        return 1;
    }
    fprintf(out, "workers,seconds,speedup,efficiency,nodes,search_overhead,communication_overhead,"
                 "synchronization_overhead,score\n");
    for (unsigned i = 0; i < rows; i++) {
        fprintf(out, "%u,%.9f,%.4f,%.4f,%" PRIu64 ",%.4f,%.4f,%.4f,%d\n", row[i].workers,
                row[i].seconds, row[i].speedup, row[i].efficiency, row[i].result.sum.nodes,
                row[i].search, row[i].communication, row[i].synchronization,
                row[i].result.answer[0].search.score);
    }
    if (fclose(out) != 0) {
        log_fail(program, "%s: %s", path, strerror(errno));
        return 1;
    }
    return 0;
}

static int write_svg(const struct sim *s, const struct sim_row *row, unsigned rows)
{
    struct plot_point point[COUNTS_MAX];
    char title[64], note[GAME_TEXT_MAX + 128];
    for (unsigned i = 0; i < rows; i++) {
        point[i] = (struct plot_point){row[i].workers, row[i].speedup, row[i].search,
                                       row[i].communication, row[i].synchronization};
    }
    struct plot plot = {title, note, s->search.algorithm, point, rows};
    snprintf(title, sizeof title, "%s, depth %u", s->job.game->name, s->depth);
    snprintf(note, sizeof note, "%s; %g us a node, %g us a round trip", s->job.text, s->node_us,
             s->rtt_us);
    return plot_write(&plot, program, s->svg);
}

static int run_speedups(const struct sim *s)
{
    struct sim_row row[COUNTS_MAX], one = {0};
    bool has_one = s->count[0] == 1;
    if (!has_one && run_row(s, 1, &one) != 0) {
        return 1;
    }
    if (!s->json) {
        printf("%7s %9s %8s %7s %12s %9s %8s %8s %8s %8s %8s %7s\n", "workers", "seconds",
               "speedup", "effic.", "nodes", "search", "comm.", "synch.", "busy", "deferred",
               "score", "wall s");
    }
    for (unsigned i = 0; i < s->counts; i++) {
        if (run_row(s, s->count[i], &row[i]) != 0) {
            return 1;
        }
        if (i == 0 && has_one) {
            one = row[0];
        }
        measure(&one, &row[i]);
        print_row(s, &row[i]);
        say_if_small(s, &one, &row[i]);
    }
    int status = s->csv != NULL ? write_csv(s->csv, row, s->counts) : 0;
    return s->svg != NULL && status == 0 ? write_svg(s, row, s->counts) : status;
}

/* Whatever was not given is drawn. */
static int run_chaos(struct sim *s)
{
    if (s->csv != NULL || s->svg != NULL) {
        return options_wrong(program,
                             "--csv and --svg draw speedups: they do not go with --faults");
    }
    struct cli_chaos chaos = {
        .program = program,
        .faults = s->faults,
        .seeds = s->seeds,
        .seed = s->seed,
        .plant = s->plant,
        .algorithm = s->search.algorithm,
        .workers = s->count,
        .counts = s->counts,
        .shards = s->shards,
        .job = s->depth != 0 ? &s->job : NULL,
        .jobs = s->jobs,
        .json = s->json,
    };
    int status = s->depth != 0 ? resolve(s) : -1;
    return status < 0 ? cli_chaos(&chaos) : status;
}

int cli_sim(int argc, char *argv[])
{
    struct sim s = {
        .search = {"chess", NULL, "auto", NULL},
        .rtt_us = 100,
        .service_us = 0.2,
        .message_us = 1,
        .seed = 1,
        .hash_mib = 64,
        .local_kib = 1024,
        .jobs = 1,
    };
    int status = read_options(&s, argc, argv);
    if (status < 0 && s.faults != NULL) {
        status = run_chaos(&s);
        job_free(&s.job);
        return status;
    }
    if (status < 0) {
        status = resolve(&s);
    }
    if (s.counts == 0) {
        (void)parse_counts("1,2,4,8,16", &s);
    }
    if (status < 0) {
        status = run_speedups(&s);
    }
    job_free(&s.job);
    return status;
}
