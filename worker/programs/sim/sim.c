#include "worker/lab/lab.h"
#include "worker/programs/cli.h"
#include "worker/programs/json.h"
#include "worker/programs/score.h"
#include "worker/programs/sim/sim_engine.h"
#include "worker/programs/uci/uci.h"

#include "common/clock.h"
#include "common/log.h"
#include "common/memory.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static const char program[] = "abdada sim";

enum {
    COUNTS_MAX = 64,
    DEFAULT_SHARDS_PER = 16,
    SMALL_TRIPS = 5, /* round trips for each worker's share */
    BANDWIDTH_LEAST = 1, /* Mb/s */
    BANDWIDTH_MOST = 1000000,
    POLL_MOST_US = 1000,
    LOCAL_KIB = 1024,
    LOCAL_KIB_OF_GAMES = 16384,
};

#define NO_BOUND INFINITY

struct sim {
    /* command line */
    struct cli_search search;
    const char *csv, *svg;
    uint32_t depth, time_ms, threads, shards, share;
    double rtt_us, jitter_us, node_us, service_us, service_operation_us, message_us, operation_us;
    double poll_us, bandwidth, loss;
    uint64_t seed, hash_mib, local_kib;
    bool json, wait, constant, loose, is_alone, solve, uci;
    struct counts {
        uint32_t at[COUNTS_MAX];
        unsigned count;
    } workers, hosts; /* either; a worker is a host of one thread */
    bool is_by_host;
    /* made of it */
    struct job job;
    struct counters contribution[LAB_WORKERS_MAX]; /* of the hosts of the last run */
};

struct sim_row {
    unsigned hosts, shards, workers;
    struct lab_result result;
    double seconds, speedup, efficiency, search, communication, synchronization, wall;
};

static enum err parse_counts(const char *text, void *value)
{
    struct counts *counts = value;
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
        counts->at[n] = (uint32_t)number;
    }
    counts->count = n;
    return n > 0 ? ERR_OK : ERR_SYNTAX;
}

static int check_hosts(struct sim *s)
{
    s->is_by_host = s->hosts.count > 0;
    if (s->is_by_host && s->workers.count > 0) {
        return options_wrong(program, "give --hosts or --workers, not both");
    }
    if (s->uci && (s->hosts.count > 1 || s->workers.count > 1)) {
        return options_wrong(program, "--uci plays with one number of --hosts or --workers");
    }
    if (s->uci && s->hosts.count + s->workers.count == 0) {
        s->hosts = (struct counts){{1}, 1};
        s->is_by_host = true;
    }
    if (!s->is_by_host) {
        s->hosts = s->workers.count > 0 ? s->workers : (struct counts){{1, 2, 4, 8, 16}, 5};
    }
    if (s->threads > 1 && !s->is_by_host) {
        return options_wrong(program, "--threads needs --hosts");
    }
    for (unsigned i = 0; i < s->hosts.count; i++) {
        if ((uint64_t)s->hosts.at[i] * s->threads > LAB_WORKERS_MAX) {
            return options_wrong(program, "%u hosts of %u threads: at most %d workers",
                                 s->hosts.at[i], s->threads, LAB_WORKERS_MAX);
        }
    }
    if (s->bandwidth != NO_BOUND &&
        !(s->bandwidth >= BANDWIDTH_LEAST && s->bandwidth <= BANDWIDTH_MOST)) {
        return options_wrong(program, "--bandwidth %g: not in %d..%d Mb/s", s->bandwidth,
                             BANDWIDTH_LEAST, BANDWIDTH_MOST);
    }
    if (s->poll_us > POLL_MOST_US) {
        return options_wrong(program, "--poll-us %g: at most %d", s->poll_us, POLL_MOST_US);
    }
    return -1;
}

static int read_options(struct sim *s, int argc, char *argv[])
{
    const struct options_row table[] = {
        {.kind = OPTION_HEADING, .help = "What is searched:"},
        {"game", "NAME|tree:SPEC",
         "chess (default), othello, or a synthetic tree: tree:b=20,d=8,seed=1", &s->search.game,
         OPTION_TEXT, 'g'},
        {"depth", "N", "depth of the search (this, --time, --solve or --uci is required)",
         &s->depth, OPTION_U32, 'd', 1, SEARCH_DEPTH_MAX},
        {"solve", NULL, "solve exactly: othello, near the end of a game", &s->solve, OPTION_FLAG},
        {"time", "MS", "virtual time; the depth reached is the result", &s->time_ms, OPTION_U32,
         't', 1, 3600000},
        {"uci", NULL, "be a UCI engine that searches on the cluster, by its virtual clock", &s->uci,
         OPTION_FLAG},
        {"select", "plain|full",
         "fixed depth with check extension (default), or pruning (default with --uci)",
         &s->search.select, OPTION_TEXT},
        {"algorithm", "NAME", ALGORITHM_NAMES " (default abdada)", &s->search.algorithm,
         OPTION_TEXT, 'a'},
        {"loose", NULL, "not strict: deeper entries answer, repetitions are draws", &s->loose,
         OPTION_FLAG},
        {.kind = OPTION_HEADING, .help = "The cluster:"},
        {"workers", "N,N,...", "workers, the front-end included; one run each (default 1,2,4,8,16)",
         &s->workers, OPTION_CUSTOM, 'w', .parse = parse_counts},
        {"no-reference", NULL, "no run with one worker first: speedups are against the first row",
         &s->is_alone, OPTION_FLAG},
        {"hosts", "N,N,...", "hosts with --threads workers each, instead of --workers", &s->hosts,
         OPTION_CUSTOM, 'H', .parse = parse_counts},
        {"threads", "N", "workers of a host, which share its table (default 1)", &s->threads,
         OPTION_U32, 0, 1, EMBEDDED_SLOTS_MAX},
        {"shards", "N",
         "shards (default: one for 16 workers); the first is on the first host, and so on",
         &s->shards, OPTION_U32, 0, 1, LAB_SHARDS_MAX},
        {"node-us", "X",
         "time of a node (default: tree and --select full 1, chess 0.2, othello 0.3, solved 0.04)",
         &s->node_us, OPTION_REAL},
        {"rtt-us", "X", "network round trip (default 100)", &s->rtt_us, OPTION_REAL},
        {"jitter-us", "X", "added to each way, uniform in 0..X", &s->jitter_us, OPTION_REAL},
        {"bandwidth", "MBITS", "Mb/s of a host's network card, each way (default: no bound)",
         &s->bandwidth, OPTION_REAL},
        {"service-us", "X", "a shard's time for a message (default 0.2)", &s->service_us,
         OPTION_REAL},
        {"service-operation-us", "X", "a shard's time for an operation (default: as --service-us)",
         &s->service_operation_us, OPTION_REAL},
        {"message-us", "X", "a worker's time for a message (default 1)", &s->message_us,
         OPTION_REAL},
        {"operation-us", "X", "a worker's time for an operation (default 0)", &s->operation_us,
         OPTION_REAL},
        {"poll-us", "X", "search time between two polls (default 50)", &s->poll_us, OPTION_REAL},
        {"loss", "PERCENT", "share of messages that are lost", &s->loss, OPTION_REAL},
        {"remote-depth", "auto|N", "ask the shards from this remaining depth up",
         &s->search.remote_depth, OPTION_TEXT},
        {"wait", NULL, "wait for each answer instead of searching on meanwhile", &s->wait,
         OPTION_FLAG},
        {"hash", "MIB", "memory of all shards, per 16 workers unless --constant (default 64)",
         &s->hash_mib, OPTION_U64, 0, 1, 1 << 16},
        {"constant", NULL, "the shards' memory does not grow with the workers", &s->constant,
         OPTION_FLAG},
        {"share", "N", "broadcast results of this depth and more (default with --uci: 2)",
         &s->share, OPTION_U32, 0, 1, SEARCH_DEPTH_MAX},
        {"local", "KIB",
         "table of each host, which is a worker without --threads (default 1024, --uci 16384)",
         &s->local_kib, OPTION_U64, 0, 1, 1 << 22},
        {.kind = OPTION_HEADING, .help = "Seed and output:"},
        {"seed", "N", "seed of everything random (default 1)", &s->seed, OPTION_U64},
        {"csv", "FILE", "rows as CSV", &s->csv, OPTION_TEXT},
        {"svg", "FILE", "speedup and overheads against workers as a picture", &s->svg, OPTION_TEXT},
        {"json", NULL, "one JSON object a run on stdout", &s->json, OPTION_FLAG},
        {0},
    };
    const struct options options = {
        .program = program,
        .usage = "--depth N | --time MS | --solve | --uci [OPTION]... [POSITION]",
        .summary =
            "Searches on a cluster under a virtual clock: one core runs thousands of workers.",
        .example = {"abdada sim --depth 9 --workers 1,16,128",
                    "abdada sim --game tree:b=20,d=8,seed=1 --depth 8 --hosts 1,4,16 --threads 4"},
        .table = table,
    };
    int status = cli_parse(options, argc, argv, &s->search.position);
    if (status >= 0) {
        return status;
    }
    const int limits = (s->depth != 0) + (s->time_ms != 0) + s->solve + s->uci;
    if (limits != 1) {
        return options_wrong(program, "%s",
                             limits > 1 ? "only one of --depth, --time, --solve and --uci"
                                        : "--depth N, --time MS, --solve or --uci is required");
    }
    s->share = s->share != 0 || !s->uci ? s->share : REMOTE_SHARE_DEPTH;
    s->local_kib = s->local_kib != 0 ? s->local_kib : s->uci ? LOCAL_KIB_OF_GAMES : LOCAL_KIB;
    return check_hosts(s);
}

/* What one searcher of ours takes on a CPU of today (measurements.md). A game's own solver
 * is much faster than the search above it, and has nearly all nodes of what it solves. */
static double node_us_of(const struct job *job, bool is_timed)
{
    const struct game *game = job->game;
    bool is_solved =
        !is_timed && game->depth_left != NULL && job->depth >= game->depth_left(job->position);
    return strcmp(game->name, "tree") == 0 ? 1.0
           : job->full                     ? 1.0
           : is_solved                     ? 0.04
           : game->depth_left != NULL      ? 0.3
                                           : 0.2;
}

/* Names to things. Returns -1 to go on, or the exit status. */
static int resolve(struct sim *s)
{
    struct game_move list[GAME_MOVES_MAX];
    char why[256];
    s->search.algorithm = s->search.algorithm != NULL ? s->search.algorithm : "abdada";
    s->search.game = s->search.game != NULL ? s->search.game : "chess";
    s->search.select = s->search.select != NULL ? s->search.select : s->uci ? "full" : "plain";
    if (s->uci && (s->search.position != NULL || strcmp(s->search.game, "chess") != 0)) {
        return options_wrong(program, "--uci plays chess, from the positions that it is given");
    }
    int status = cli_resolve(program, &s->search, &s->job);
    if (status >= 0) {
        return status;
    }
    const enum err err =
        job_set_position(&s->job, s->job.game, s->search.position, why, sizeof why);
    if (err != ERR_OK) {
        return cli_no_position(program, err, why);
    }
    cli_left_out(program, NULL, 0, why);
    if (s->solve && s->job.game->depth_left == NULL) {
        return options_wrong(program, "--solve: a game of %s has no known length; use --depth N",
                             s->job.game->name);
    }
    if (s->job.game->generate(s->job.position, list) == 0) {
        return options_wrong(program, "the game is over in this position: nothing to search");
    }
    s->job.depth = s->depth != 0 ? (uint8_t)s->depth : SEARCH_DEPTH_MAX;
    s->job.depth = (uint8_t)job_last_iteration(&s->job);
    s->job.strict = !s->loose && !s->job.full;
    s->job.waits = s->wait;
    job_set_repeatable_namespace(&s->job, 0);
    s->node_us = s->node_us != 0 ? s->node_us : node_us_of(&s->job, s->time_ms != 0);
    return -1;
}

static uint64_t ns_of(double us)
{
    return (uint64_t)(us * 1000 + 0.5);
}

static struct lab_options lab_for(const struct sim *s, unsigned hosts, unsigned threads,
                                  struct lab_post *post)
{
    const unsigned workers = hosts * threads;
    const unsigned wanted = (workers + DEFAULT_SHARDS_PER - 1) / DEFAULT_SHARDS_PER;
    const unsigned most = wanted < LAB_SHARDS_MAX ? wanted : LAB_SHARDS_MAX;
    *post = (struct lab_post){.job = &s->job, .stop_ns = s->time_ms * UINT64_C(1000000)};
    return (struct lab_options){
        .post = post,
        .posts = 1,
        .workers = workers,
        .threads = threads,
        .shards = s->shards != 0 ? s->shards : most,
        .seed = s->seed,
        .node_ns = ns_of(s->node_us),
        .rtt_ns = ns_of(s->rtt_us),
        .jitter_ns = ns_of(s->jitter_us),
        .service_ns = ns_of(s->service_us),
        .service_operation_ns =
            ns_of(s->service_operation_us >= 0 ? s->service_operation_us : s->service_us),
        .message_ns = ns_of(s->message_us),
        .operation_ns = ns_of(s->operation_us),
        .poll_ns = s->poll_us * 1000 > 1 ? (uint32_t)ns_of(s->poll_us) : 1,
        .bandwidth = s->bandwidth != NO_BOUND ? (uint64_t)(s->bandwidth * 1e6 / 8) : 0,
        .loss_ppm = (uint32_t)(s->loss * 10000 + 0.5),
        .results_bytes = (s->hash_mib << 20) * (s->constant ? 1 : wanted),
        .local_bytes = s->local_kib << 10,
        .share_depth = (uint8_t)s->share,
        .limit_ns = UINT64_MAX / 4,
    };
}

/* Whether there is memory for each run: checked before the first, which may take hours. Nothing is
 * counted for the solver of a host, which touches little of its memory. -1 to go on, or the exit
 * status after a message. */
static int check_memory(const struct sim *s)
{
    enum { WORKER_BYTES = 512 << 10, SHARD_BYTES = 2 << 20 }; /* beside their tables */
    char why[128], size[MEMORY_TEXT_MAX];
    for (unsigned i = 0; i < s->hosts.count; i++) {
        struct lab_post post;
        const struct lab_options o = lab_for(s, s->hosts.at[i], s->threads, &post);
        const uint64_t tables = o.results_bytes + s->hosts.at[i] * o.local_bytes;
        const uint64_t worker_bytes =
            WORKER_BYTES + (s->job.full ? cli_histories_bytes(s->job.game) : 0);
        const uint64_t besides = o.workers * worker_bytes + o.shards * (uint64_t)SHARD_BYTES;
        if (!memory_has_room(tables, besides, o.workers, why, sizeof why)) {
            return log_fail(program, "%u workers: a memory of %s for tables (--hash, --local) %s",
                            o.workers, memory_text(tables, size), why);
        }
    }
    return -1;
}

static int run_row(struct sim *s, unsigned hosts, unsigned threads, struct sim_row *row)
{
    struct lab_post post;
    struct lab_options options = lab_for(s, hosts, threads, &post);
    uint64_t begin = clock_us();
    memset(s->contribution, 0, sizeof s->contribution);
    options.contribution = s->contribution;
    enum err err = lab_run(&options, &row->result);
    if (err != ERR_OK) {
        return log_fail(program, "%u workers: %s", hosts * threads, err_text(err));
    }
    row->hosts = hosts;
    row->shards = options.shards;
    row->workers = hosts * threads;
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
    double waited = ((double)r->sum.waited_us - (double)one->result.sum.waited_us) / 1e6;
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
                 "round trips for each; use a greater --depth",
                 row->workers, one->seconds * 1e3, share_us / s->rtt_us);
    }
}

/* Bytes of its card, sent and received; the share of the time that shards work. */
static double host_rate(const struct sim_row *row)
{
    return (double)row->result.card_bytes / row->hosts / row->seconds;
}

static double shard_load(const struct sim_row *row)
{
    return (double)row->result.busy_ns / 1e9 / row->shards / row->seconds;
}

static double shard_load_most(const struct sim_row *row)
{
    return (double)row->result.busy_most_ns / 1e9 / row->seconds;
}

/* With a time in place of a depth the depth is the result, and there is no speedup. */
static void print_heading(const struct sim *s)
{
    if (s->is_by_host) {
        printf("%6s ", "hosts");
    }
    printf("%7s %9s ", "workers", "seconds");
    if (s->time_ms != 0) {
        printf("%6s %12s ", "depth", "nodes");
    } else {
        printf("%8s %7s %12s %9s %8s %8s ", "speedup", "effic.", "nodes", "search", "comm.",
               "synch.");
    }
    printf("%8s %8s ", "busy", "deferred");
    if (s->is_by_host) {
        printf("%9s %7s %7s ", "MB/s/host", "shards", "busiest");
    }
    printf("%8s %7s\n", "score", "wall s");
}

static void print_text(const struct sim *s, const struct sim_row *row, const char *score)
{
    const struct lab_result *r = &row->result;
    if (s->is_by_host) {
        printf("%6u ", row->hosts);
    }
    printf("%7u %9.4f ", row->workers, row->seconds);
    if (s->time_ms != 0) {
        printf("%6u %12" PRIu64 " ", (unsigned)r->answer[0].search.depth, r->sum.nodes);
    } else {
        printf("%8.2f %6.1f%% %12" PRIu64 " %8.1f%% %7.1f%% %7.1f%% ", row->speedup,
               100 * row->efficiency, r->sum.nodes, 100 * row->search, 100 * row->communication,
               100 * row->synchronization);
    }
    printf("%8" PRIu64 " %8" PRIu64 " ", r->sum.busy, r->sum.deferred);
    if (s->is_by_host) {
        printf("%9.2f %6.1f%% %6.1f%% ", host_rate(row) / 1e6, 100 * shard_load(row),
               100 * shard_load_most(row));
    }
    printf("%8s %7.1f\n", score, row->wall);
    fflush(stdout);
}

/* When each was finished, and what it said. */
static void print_iterations(const struct sim *s, const struct lab_answer *answer, struct json *j)
{
    char move[GAME_MOVE_TEXT_MAX];
    json_array_begin(j, "iterations");
    for (unsigned depth = 1; depth <= answer->search.depth; depth++) {
        const struct lab_iteration *i = &answer->iteration[depth];
        int64_t score;
        if (i->time_ns != 0) {
            const char *kind = score_kind(s->job.game, i->score, &score);
            json_object_begin(j, NULL);
            json_number(j, "depth", depth);
            json_number(j, "score", score);
            json_text(j, "score_kind", kind);
            json_text(j, "bestmove", score_move(&s->job, i->move, move));
            json_real(j, "seconds", (double)i->time_ns / 1e9);
            json_object_end(j);
        }
    }
    json_array_end(j);
}

/* The front-end is on the first. */
static void print_hosts(const struct sim *s, const struct sim_row *row, struct json *j)
{
    const double host_us = row->seconds * 1e6 * (row->workers / row->hosts);
    json_array_begin(j, "by_host");
    for (unsigned i = 0; i < row->hosts; i++) {
        const struct counters *c = &s->contribution[i];
        json_object_begin(j, NULL);
        json_number(j, "host", i);
        json_flag(j, "self", i == 0);
        json_number(j, "searchers", row->workers / row->hosts);
        json_number(j, "nodes", (int64_t)c->nodes);
        json_real(j, "nps", host_us > 0 ? (double)c->nodes / row->seconds : 0);
        json_real(j, "talking", host_us > 0 ? (double)c->talked_us / host_us : 0);
        json_real(j, "waiting", host_us > 0 ? (double)c->waited_us / host_us : 0);
        json_number(j, "asks", (int64_t)c->asks);
        json_number(j, "bytes_sent", (int64_t)c->bytes_sent);
        json_number(j, "bytes_received", (int64_t)c->bytes_received);
        json_object_end(j);
    }
    json_array_end(j);
}

static void print_row(const struct sim *s, const struct sim_row *row)
{
    const struct lab_result *r = &row->result;
    int64_t score;
    char text[16], move[GAME_MOVE_TEXT_MAX];
    const char *kind = score_kind(s->job.game, r->answer[0].search.score, &score);
    if (!s->json) {
        score_text(s->job.game, r->answer[0].search.score, text, sizeof text);
        print_text(s, row, text);
        return;
    }
    struct json j;
    json_begin(&j, stdout);
    json_number(&j, "workers", row->workers);
    json_real(&j, "speedup", row->speedup);
    json_real(&j, "efficiency", row->efficiency);
    for (unsigned i = 0; i < COUNTERS_OF_SEARCH; i++) {
        json_number(&j, COUNTER_NAME[i].json, (int64_t)r->sum.at[i]);
    }
    json_real(&j, "search_overhead", row->search);
    json_real(&j, "communication_overhead", row->communication);
    json_real(&j, "synchronization_overhead", row->synchronization);
    json_number(&j, "score", score);
    json_text(&j, "score_kind", kind);
    json_text(&j, "bestmove", score_move(&s->job, r->answer[0].search.move, move));
    json_real(&j, "seconds", row->seconds);
    json_number(&j, "hosts", row->hosts);
    json_number(&j, "depth", r->answer[0].search.depth);
    print_iterations(s, &r->answer[0], &j);
    json_number(&j, "stores", (int64_t)r->stores);
    json_number(&j, "shared", (int64_t)r->shared);
    json_number(&j, "shared_taken", (int64_t)r->shared_taken);
    print_hosts(s, row, &j);
    json_real(&j, "host_bytes_per_s", host_rate(row));
    json_real(&j, "host_bytes_per_s_most", (double)r->card_bytes_most / row->seconds);
    json_real(&j, "shard_load", shard_load(row));
    json_real(&j, "shard_load_most", shard_load_most(row));
    json_real(&j, "duplicated", (double)r->sum.duplicated / (double)(r->sum.nodes + 1));
    json_real(&j, "messages_per_node", (double)r->messages / (double)(r->sum.nodes + 1));
    json_real(&j, "bytes_per_node", (double)r->bytes / (double)(r->sum.nodes + 1));
    json_real(&j, "idle", (double)r->idle_ns / 1e9 / row->workers / row->seconds);
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
        return log_fail(program, "%s: %s", path, strerror(errno));
    }
    fprintf(out, "workers,seconds,speedup,efficiency,nodes,search_overhead,communication_overhead,"
                 "synchronization_overhead,score\n");
    for (unsigned i = 0; i < rows; i++) {
        fprintf(out, "%u,%.9f,%.4f,%.4f,%" PRIu64 ",%.4f,%.4f,%.4f,%d\n", row[i].workers,
                row[i].seconds, row[i].speedup, row[i].efficiency, row[i].result.sum.nodes,
                row[i].search, row[i].communication, row[i].synchronization,
                row[i].result.answer[0].search.score);
    }
    return log_close(program, out, path) ? 0 : 1;
}

/* ---- the picture, drawn by gnuplot ----
 *
 * Left: speedup against workers, both axes in powers of two, the ideal line dashed. Right: the
 * overheads stacked against workers (Weill 1996, figures 3 and 4). */

/* Colours of Okabe and Ito: told apart by colour-blind readers and in grey. */
static const char speedups[] =
    "set grid linecolor '#dddddd' linetype 1\n"
    "set key left top reverse Left\n"
    "set xlabel 'workers'\n"
    "set ylabel 'speedup'\n"
    "set logscale xy 2\n"
    "set yrange [*<1:2<*]\n"
    "plot x dashtype 2 linecolor '#333333' title 'ideal', $run using 1:2 with linespoints \\\n"
    "  pointtype 7 pointsize 0.6 linewidth 2 linecolor '#0072b2' title name\n";
static const char overheads[] =
    "unset logscale\n"
    "set autoscale\n"
    "set grid noxtics\n"
    "set ylabel 'overhead (100%: the work of one worker)'\n"
    "set format y '%.0f%%'\n"
    "set style histogram rowstacked\n"
    "set style fill solid\n"
    "set boxwidth 0.6\n"
    "set xzeroaxis linetype 1 linecolor '#333333'\n"
    "plot $run using (100*$3):xtic(1) with histograms linecolor '#0072b2' title 'search', \\\n"
    "  '' using (100*$4) with histograms linecolor '#e69f00' title 'communication', \\\n"
    "  '' using (100*$5) with histograms linecolor '#009e73' title 'synchronization'\n"
    "unset multiplot\n";

/* NAME = 'TEXT'. */
static void put_string(FILE *script, const char *name, const char *text)
{
    fprintf(script, "%s = '", name);
    for (; *text; text++) {
        fputs(*text == '\'' ? "''" : (char[]){*text, 0}, script);
    }
    fputs("'\n", script);
}

static void put_script(FILE *script, const struct sim *s, const struct sim_row *row, unsigned rows)
{
    char title[64], note[GAME_TEXT_MAX + 128];
    unsigned most = 2;
    snprintf(title, sizeof title, "%s, depth %u", s->job.game->name, s->job.depth);
    snprintf(note, sizeof note, "%s; %g us a node, %g us a round trip", s->job.text, s->node_us,
             s->rtt_us);
    fputs("set encoding utf8\n$run << END\n", script);
    for (const struct sim_row *r = row; r < row + rows; r++) {
        most = r->workers > most ? r->workers : most;
        fprintf(script, "%u %g %g %g %g\n", r->workers, r->speedup, r->search, r->communication,
                r->synchronization);
    }
    fputs("END\nset terminal svg noenhanced size 1160,486 background '#ffffff'\n", script);
    put_string(script, "title", title);
    put_string(script, "note", note);
    put_string(script, "name", s->search.algorithm);
    fputs("set multiplot layout 1,2 title title . \"\\n\" . note\n", script);
    fprintf(script, "set xrange [1:%u]\n%s%s", most, speedups, overheads);
}

static int copy_drawn(int drawn, const char *path)
{
    char piece[4096];
    ssize_t n;
    FILE *out = fopen(path, "w");
    if (out == NULL) {
        return log_fail(program, "%s: %s", path, strerror(errno));
    }
    for (off_t at = 0; (n = pread(drawn, piece, sizeof piece, at)) > 0; at += n) {
        fwrite(piece, 1, (size_t)n, out);
    }
    return log_close(program, out, path) ? 0 : 1;
}

static int write_svg(const struct sim *s, const struct sim_row *row, unsigned rows)
{
    /* Into memory, which gnuplot inherits: it does not say when it could not write. */
    int drawn = memfd_create(program, 0), status = 1;
    char command[128];
    snprintf(command, sizeof command,
             "command -v gnuplot >/dev/null || exit 127\nexec gnuplot >/proc/self/fd/%d", drawn);
    FILE *script = drawn < 0 ? NULL : popen(command, "w");
    if (script == NULL) {
        log_fail(program, "%s: %s", s->svg, strerror(errno));
    } else {
        sighandler_t before = signal(SIGPIPE, SIG_IGN); /* gnuplot may end before it has read all */
        put_script(script, s, row, rows);
        status = pclose(script);
        (void)signal(SIGPIPE, before);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 127) {
            log_fail(program, "%s: gnuplot is missing; install gnuplot-nox", s->svg);
        } else if (status != 0) {
            log_fail(program, "%s: gnuplot could not draw it", s->svg);
        }
    }
    status = status == 0 ? copy_drawn(drawn, s->svg) : 1;
    close(drawn);
    return status;
}

static int run_speedups(struct sim *s)
{
    struct sim_row row[COUNTS_MAX], one = {0};
    bool has_one = s->hosts.at[0] == 1 && s->threads == 1;
    bool has_reference = s->time_ms == 0 && !s->is_alone;
    if (has_reference && !has_one && run_row(s, 1, 1, &one) != 0) {
        return 1;
    }
    if (!s->json) {
        print_heading(s);
    }
    for (unsigned i = 0; i < s->hosts.count; i++) {
        if (run_row(s, s->hosts.at[i], s->threads, &row[i]) != 0) {
            return 1;
        }
        if (i == 0 && (has_one || !has_reference)) {
            one = row[0];
        }
        measure(&one, &row[i]);
        print_row(s, &row[i]);
        if (has_reference) {
            say_if_small(s, &one, &row[i]);
        }
    }
    int status = s->csv != NULL ? write_csv(s->csv, row, s->hosts.count) : 0;
    return s->svg != NULL && status == 0 ? write_svg(s, row, s->hosts.count) : status;
}

static int play(struct sim *s)
{
    struct lab_post none;
    struct sim_engine *engine;
    const struct lab_options options = lab_for(s, s->hosts.at[0], s->threads, &none);
    const enum err err = sim_engine_open(&engine, &options);
    if (err != ERR_OK) {
        return log_fail(program, "%s", err_text(err));
    }
    const struct gui_stand_in stand_in = sim_engine_stand_in(engine);
    const int status = uci_stand_in(&stand_in, s->job.algorithm, s->job.full);
    sim_engine_close(&engine);
    return status;
}

int cli_sim(int argc, char *argv[])
{
    struct sim s = {
        .search = {.remote_depth = "auto"},
        .threads = 1,
        .rtt_us = 100,
        .service_operation_us = -1,
        .service_us = 0.2,
        .bandwidth = NO_BOUND,
        .message_us = 1,
        .poll_us = 50,
        .seed = 1,
        .hash_mib = 64,
    };
    (void)signal(SIGCHLD, SIG_DFL); /* it waits for gnuplot, also as process 1 */
    int status = read_options(&s, argc, argv);
    status = status < 0 ? resolve(&s) : status;
    status = status < 0 ? check_memory(&s) : status;
    status = status >= 0 ? status : s.uci ? play(&s) : run_speedups(&s);
    job_free(&s.job);
    return status;
}
