#include "tests/chaos/chaos_runs.h"

#include "common/clock.h"
#include "common/log.h"
#include "common/options.h"
#include "common/rng.h"
#include "worker/programs/json.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    LANES_MAX = 64,
    HANG_CPU_S = 120, /* of CPU time: no run takes a tenth of it */
    HANG_S = 3600, /* by the clock, on however busy a machine */
    PROGRESS_US = 5000000,
    COMMAND_MAX = 1024,
    DEFAULT_SKIP_PPM = 1000,
};

/* Fields of lab_result and chaos_result, added up. */
/* clang-format off */
#define LAB_FIGURES(X) X(lost) X(downs) X(timeouts)
#define CHAOS_FIGURES(X) X(unsent) X(lies) X(wants) X(starts_failed) X(letters) X(intrusions) X(storms) \
    X(expired_sessions) X(restarts) X(all_shards_dead) X(all_workers_dead) \
    X(kept) X(kept_failures) X(reloaded) X(refused_files) X(short_calls) X(full_disks) \
    X(disk_errors) X(power_losses) X(spoiled_files)
/* clang-format on */

/* What a child says of a run. */
struct report {
#define X(name) uint64_t name;
    LAB_FIGURES(X)
    CHAOS_FIGURES(X)
#undef X
#define X(TYPE, name) uint64_t taken_##name;
    LAB_LIES(X)
#undef X
    uint64_t nodes, trace; /* sums are the same in whatever order */
    uint64_t simulated_ns;
    unsigned faults[LAB_FAULT_KINDS];
    bool prolonged; /* it took longer than without faults */
    char broken[CHAOS_TEXT_MAX];
};
_Static_assert(sizeof(struct report) <= 4096, "a report is written at once");

/* A child process and the run it is at. Runs are numbered; lane i of n makes every n-th. */
struct lane {
    pid_t pid; /* 0: none */
    int pipe;
    uint64_t next;
    uint64_t report_us, report_cpu_us; /* the last report, or the start */
};

struct driver {
    const struct chaos_runs *chaos;
    struct chaos_wish wish;
    uint64_t first_seed, runs; /* seeds times worker counts */
    unsigned per_seed;
    unsigned lanes;
    struct lane lane[LANES_MAX];
    uint64_t done, failed, prolonged, begin_us, printed_us;
    uint64_t having[CHAOS_KINDS]; /* runs that have this kind of trouble */
    struct report sum;
};

/* ---- the command line ---- */

static bool read_number(const char *text, uint64_t most, uint64_t *out)
{
    return options_unsigned(text, 0, most, out) == ERR_OK;
}

static bool read_seeds(const char *text, uint64_t *first, uint64_t *last)
{
    char copy[64];
    if (strlen(text) >= sizeof copy) {
        return false;
    }
    strcpy(copy, text);
    char *dots = strstr(copy, "..");
    if (dots != NULL) {
        *dots = '\0';
    }
    const char *end = dots != NULL ? dots + 2 : copy;
    return read_number(copy, UINT64_MAX / 2, first) && read_number(end, UINT64_MAX / 2, last) &&
           *first <= *last;
}

static const struct {
    const char *name;
    size_t at; /* of a bool */
} plants[] = {
#define PLANT(name, field)                        \
    {                                             \
        name, offsetof(struct lab_planted, field) \
    }
    PLANT("never-expire-sessions", never_expire_sessions),
    PLANT("never-expire", never_expire),
    PLANT("skip-stop", skip_stop),
    PLANT("lose-reports", lose_reports),
    PLANT("stale-index", stale_index),
    PLANT("false-results", false_results),
    PLANT("half-made", half_made),
    PLANT("lose-flushes", lose_flushes),
    PLANT("stray-letters", stray_letters),
    PLANT("lose-rows", lose_rows),
    PLANT("lose-rest", lose_rest),
    PLANT("lose-budget", lose_budget),
    PLANT("keep-half-open", keep_half_open),
    PLANT("wall-clock", wall_clock),
    PLANT("compare-clocks", compare_clocks),
    PLANT("skip-sync", disk.skip_sync),
    PLANT("skip-folder-sync", disk.skip_folder_sync),
    PLANT("believe-sync", disk.believe_sync),
    PLANT("short-is-whole", disk.short_is_whole),
    PLANT("trust-sums", trust_sums),
#undef PLANT
};

const char *chaos_plants(char text[CHAOS_PLANTS_MAX])
{
    int used = snprintf(text, CHAOS_PLANTS_MAX, "skip-release[:PPM]");
    for (size_t i = 0; i < sizeof plants / sizeof plants[0]; i++) {
        used += snprintf(text + used, CHAOS_PLANTS_MAX - (size_t)used, ", %s", plants[i].name);
    }
    return text;
}

static bool read_plant(const char *text, struct lab_planted *planted)
{
    uint64_t ppm = DEFAULT_SKIP_PPM;
    if (strncmp(text, "skip-release", 12) == 0) {
        bool ok = text[12] == '\0' || (text[12] == ':' && read_number(text + 13, 1000000, &ppm));
        planted->skip_release_ppm = (uint32_t)ppm;
        return ok;
    }
    for (size_t i = 0; i < sizeof plants / sizeof plants[0]; i++) {
        if (strcmp(text, plants[i].name) == 0) {
            *(bool *)((char *)planted + plants[i].at) = true;
            return true;
        }
    }
    return false;
}

static int read_wish(struct driver *d)
{
    const struct chaos_runs *c = d->chaos;
    uint64_t first, last;
    if (!read_seeds(c->seeds, &first, &last)) {
        return options_wrong(c->program, "--seeds is A..B with A <= B, not '%s'", c->seeds);
    }
    if (c->plant != NULL && !read_plant(c->plant, &d->wish.planted)) {
        char names[CHAOS_PLANTS_MAX];
        return options_wrong(c->program, "unknown --plant '%s' (there are: %s)", c->plant,
                             chaos_plants(names));
    }
    if (c->algorithm != NULL) {
        d->wish.algorithm = algorithm_by_name(c->algorithm);
        if (d->wish.algorithm == NULL) {
            return options_wrong(c->program, "unknown algorithm '%s' (there are: %s)", c->algorithm,
                                 algorithm_names((char[ALGORITHM_NAMES_MAX]){0}));
        }
    }
    d->wish.job = c->job;
    d->wish.faults = c->faults;
    d->wish.game = c->game;
    d->wish.shards = c->shards;
    d->per_seed = c->counts > 0 ? c->counts : 1;
    d->first_seed = first;
    d->runs = (last - first + 1) * d->per_seed;
    return -1;
}

/* ---- a run ---- */

static uint64_t seed_of(const struct driver *d, uint64_t run)
{
    return d->first_seed + run / d->per_seed;
}

static struct chaos_wish wish_of(const struct driver *d, uint64_t run)
{
    struct chaos_wish wish = d->wish;
    wish.workers = d->chaos->counts > 0 ? d->chaos->workers[run % d->per_seed] : 0;
    return wish;
}

/* A single run is described. */
static void print_run(const struct chaos_plan *plan, const struct chaos_outcome *o)
{
    char text[4 * CHAOS_TEXT_MAX];
    chaos_describe(plan, text, sizeof text);
    fprintf(stderr, "%s\n", text);
    for (unsigned i = 0; i < o->faults; i++) {
        chaos_describe_fault(&o->fault[i], text, sizeof text);
        fprintf(stderr, "  %s\n", text);
    }
    fprintf(stderr,
            "all posts ended after %.3f ms; %.3f ms without faults, %.3f ms sequentially; trace "
            "%016" PRIx64 "\n",
            (double)o->faulty.lab.end_ns / 1e6, (double)o->faultless.lab.end_ns / 1e6,
            (double)o->sequential_ns / 1e6, o->faulty.lab.trace);
}

static void make_run(const struct driver *d, uint64_t run, struct report *out)
{
    struct chaos_wish wish = wish_of(d, run);
    struct chaos_plan plan;
    struct chaos_outcome outcome;
    enum err err = chaos_draw(seed_of(d, run), &wish, &plan);
    memset(out, 0, sizeof *out);
    if (err == ERR_OK) {
        err = chaos_run(&plan, &outcome);
        if (err == ERR_OK && d->runs == 1) {
            print_run(&plan, &outcome);
        }
        chaos_free(&plan);
    }
    if (err != ERR_OK) {
        snprintf(out->broken, sizeof out->broken, "%s", err_text(err));
        return;
    }
    const struct chaos_result *r = &outcome.faulty;
    out->nodes = outcome.sequential_nodes + outcome.faultless.lab.sum.nodes + r->lab.sum.nodes;
    out->simulated_ns = outcome.sequential_ns + outcome.faultless.simulated_ns + r->simulated_ns;
    out->trace = rng_mix(outcome.faultless.lab.trace) + rng_mix(r->lab.trace ^ plan.seed);
#define X(name) out->name = r->lab.name;
    LAB_FIGURES(X)
#undef X
#define X(name) out->name = r->name;
    CHAOS_FIGURES(X)
#undef X
#define X(TYPE, name) out->taken_##name = r->taken_##name;
    LAB_LIES(X)
#undef X
    memcpy(out->faults, r->faults, sizeof out->faults);
    out->prolonged = r->lab.end_ns > outcome.faultless.lab.end_ns;
    memcpy(out->broken, outcome.broken, sizeof out->broken);
}

/* ---- children ---- */

static void child_main(const struct driver *d, uint64_t from, int out)
{
    for (uint64_t run = from; run < d->runs; run += d->lanes) {
        struct report report;
        make_run(d, run, &report);
        if (write(out, &report, sizeof report) != (ssize_t)sizeof report) {
            exit(1);
        }
    }
    exit(0);
}

/* CPU time of its process. */
static uint64_t lane_cpu_us(const struct lane *lane)
{
    clockid_t clock;
    struct timespec t = {0};
    if (clock_getcpuclockid(lane->pid, &clock) == 0) {
        (void)clock_gettime(clock, &t);
    }
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static bool hangs(const struct lane *lane)
{
    return lane_cpu_us(lane) > lane->report_cpu_us + HANG_CPU_S * UINT64_C(1000000) ||
           clock_us() > lane->report_us + HANG_S * UINT64_C(1000000);
}

static enum err lane_start(struct driver *d, struct lane *lane)
{
    int ends[2];
    fflush(NULL); /* what is buffered here is not the child's to write */
    if (pipe(ends) != 0) {
        return ERR_IO;
    }
    lane->pid = fork();
    if (lane->pid == 0) {
        close(ends[0]);
        child_main(d, lane->next, ends[1]);
    }
    close(ends[1]);
    if (lane->pid < 0) {
        close(ends[0]);
        lane->pid = 0;
        return ERR_IO;
    }
    lane->pipe = ends[0];
    lane->report_us = clock_us();
    lane->report_cpu_us = 0;
    return ERR_OK;
}

static int lane_end(struct lane *lane)
{
    int status = 0;
    pid_t ended;
    close(lane->pipe);
    while ((ended = waitpid(lane->pid, &status, 0)) < 0 && errno == EINTR) {
    }
    lane->pid = 0;
    return ended < 0 ? -1 : status;
}

/* ---- output ---- */

static void command_of(const struct driver *d, uint64_t run, char *text)
{
    const struct chaos_runs *c = d->chaos;
    int used = snprintf(text, COMMAND_MAX, "abdada-chaos --seeds %" PRIu64 "..%" PRIu64,
                        seed_of(d, run), seed_of(d, run));
#define ADD(...) used += snprintf(text + used, COMMAND_MAX - (size_t)used, __VA_ARGS__)
    if (c->faults > 0) {
        ADD(" --faults %" PRIu32, c->faults);
    }
    if (c->counts > 0) {
        ADD(" --workers %" PRIu32, c->workers[run % d->per_seed]);
    }
    if (c->shards > 0) {
        ADD(" --shards %u", c->shards);
    }
    if (c->algorithm != NULL) {
        ADD(" --algorithm %s", c->algorithm);
    }
    if (c->plant != NULL) {
        ADD(" --plant %s", c->plant);
    }
    if (c->job != NULL) {
        ADD(" --game %s --depth %u '%s'", c->job->game->name, c->job->depth, c->job->text);
    } else if (c->game != NULL) {
        ADD(" --game %s", c->game->name);
    }
#undef ADD
}

/* Where the tests find it. */
static void keep_failure(const struct driver *d, const char *command, const char *broken)
{
    if (d->chaos->failures != NULL) {
        FILE *out = fopen(d->chaos->failures, "a");
        if (out == NULL) {
            log_fail(d->chaos->program, "%s: %s", d->chaos->failures, strerror(errno));
            return;
        }
        const char *commit = options_about != NULL ? options_about : "";
        fprintf(out, "%s   # %.*s: %s\n", command, (int)strcspn(commit, "\n"), commit, broken);
        (void)log_close(d->chaos->program, out, d->chaos->failures);
    }
}

static void print_failure(struct driver *d, uint64_t run, const char *broken)
{
    char command[COMMAND_MAX];
    command_of(d, run, command);
    keep_failure(d, command, broken);
    d->failed++;
    if (!d->chaos->json) {
        printf("FAILED %s   # %s\n", command, broken);
        fflush(stdout);
        return;
    }
    struct json j;
    json_begin(&j, stdout);
    json_number(&j, "seed", (int64_t)seed_of(d, run));
    json_text(&j, "command", command);
    json_text(&j, "broken", broken);
    json_end(&j);
}

static void print_progress(struct driver *d)
{
    uint64_t now = clock_us();
    if (now - d->printed_us >= PROGRESS_US) {
        double seconds = (double)(now - d->begin_us) / 1e6, speed = (double)d->done / seconds;
        d->printed_us = now;
        log_line(d->chaos->program,
                 "%" PRIu64 " of %" PRIu64 " runs, %" PRIu64 " failed, %.0f a second, %.0f s left",
                 d->done, d->runs, d->failed, speed, (double)(d->runs - d->done) / speed);
    }
}

static void add_up(struct driver *d, uint64_t run, const struct report *r)
{
    struct report *sum = &d->sum;
    sum->simulated_ns += r->simulated_ns;
    for (unsigned i = 0; i < CHAOS_KINDS; i++) {
        d->having[i] += chaos_has(seed_of(d, run), i);
    }
    sum->nodes += r->nodes;
    sum->trace += r->trace;
#define X(name) sum->name += r->name;
    LAB_FIGURES(X)
    CHAOS_FIGURES(X)
#undef X
#define X(TYPE, name) sum->taken_##name += r->taken_##name;
    LAB_LIES(X)
#undef X
    d->prolonged += r->prolonged;
    for (unsigned i = 0; i < LAB_FAULT_KINDS; i++) {
        sum->faults[i] += r->faults[i];
    }
}

/* CPU time of the runs that have ended. */
static double cpu_seconds(void)
{
    struct rusage used;
    if (getrusage(RUSAGE_CHILDREN, &used) != 0) {
        return 0;
    }
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

static void print_sum(const struct driver *d)
{
    const struct report *r = &d->sum;
    const struct {
        const char *name;
        uint64_t value;
    } row[] = {
        {"runs", d->done},
        {"failures", d->failed},
        {"kills", r->faults[LAB_KILL]},
        {"restarts", r->restarts},
        {"stalls", r->faults[LAB_STALL]},
        {"cuts", r->faults[LAB_CUT]},
        {"delays", r->faults[LAB_DELAY]},
        {"lossy_links", r->faults[LAB_LOSS]},
        {"upgrades", r->faults[LAB_UPGRADE]},
        {"suspends", r->faults[LAB_SUSPEND]},
        {"clock_jumps", r->faults[LAB_JUMP]},
        {"resets", r->faults[LAB_RESET]},
        {"half_open", r->faults[LAB_HALF_OPEN]},
        {"deaf", r->faults[LAB_DEAF]},
        {"messages_lost", r->lost},
        {"messages_unsent", r->unsent},
        {"memory_refused", r->wants},
        {"starts_failed", r->starts_failed},
        {"letters", r->letters},
        {"lies", r->lies},
        {"intrusions", r->intrusions},
        {"connection_storms", r->storms},
#define X(TYPE, name) {"lies_taken_" #name, r->taken_##name},
        LAB_LIES(X)
#undef X
            {"sessions_expired", r->expired_sessions},
        {"shards_down", r->downs},
        {"timeouts", r->timeouts},
        {"all_shards_dead", r->all_shards_dead},
        {"all_workers_dead", r->all_workers_dead},
        {"snapshots", r->kept},
        {"snapshot_failures", r->kept_failures},
        {"files_read", r->reloaded},
        {"files_refused", r->refused_files},
        {"short_calls", r->short_calls},
        {"full_disks", r->full_disks},
        {"disk_errors", r->disk_errors},
        {"power_losses", r->power_losses},
        {"files_spoiled", r->spoiled_files},
        {"prolonged", d->prolonged},
        {"nodes", r->nodes},
    };
    const double seconds = (double)(clock_us() - d->begin_us) / 1e6, cpu_s = cpu_seconds();
    const double hours = (double)r->simulated_ns / 3.6e12;
    char trace[17];
    snprintf(trace, sizeof trace, "%016" PRIx64, r->trace);
    if (!d->chaos->json) {
        for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
            printf("%s%" PRIu64 " %s", i > 0 ? ", " : "", row[i].value, row[i].name);
        }
        printf("\nruns with each kind of trouble:");
        for (unsigned i = 0; i < CHAOS_KINDS; i++) {
            printf("%s %" PRIu64 " %s", i > 0 ? "," : "", d->having[i], chaos_kind_name(i));
        }
        printf("\n%.3g simulated hours, %.3g hours of CPU time; trace %s; %.1f s\n", hours,
               cpu_s / 3600, trace, seconds);
        return;
    }
    struct json j;
    json_begin(&j, stdout);
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        json_number(&j, row[i].name, (int64_t)row[i].value);
    }
    json_object_begin(&j, "runs_with");
    for (unsigned i = 0; i < CHAOS_KINDS; i++) {
        json_number(&j, chaos_kind_name(i), (int64_t)d->having[i]);
    }
    json_object_end(&j);
    json_real(&j, "simulated_hours", hours);
    json_real(&j, "cpu_seconds", cpu_s);
    json_text(&j, "trace", trace);
    json_real(&j, "seconds", seconds);
    json_end(&j);
}

/* ---- the loop ---- */

static void lane_died(struct driver *d, struct lane *lane, const char *how)
{
    int status = lane_end(lane);
    char broken[128];
    if (lane->next >= d->runs && status == 0) {
        return;
    }
    snprintf(broken, sizeof broken, "%s (%s %d)", how,
             WIFSIGNALED(status) ? "signal" : "exit status",
             WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    if (lane->next >= d->runs) { /* a leak, perhaps: of some run */
        lane->next -= d->lanes;
    } else {
        d->done++;
    }
    print_failure(d, lane->next, broken);
    lane->next += d->lanes;
}

static void lane_read(struct driver *d, struct lane *lane)
{
    struct report report;
    ssize_t got = read(lane->pipe, &report, sizeof report);
    if (got < 0 && errno == EINTR) {
        return;
    }
    if (got != (ssize_t)sizeof report) {
        lane_died(d, lane, "it crashed");
        return;
    }
    if (report.broken[0] != '\0') {
        print_failure(d, lane->next, report.broken);
    }
    add_up(d, lane->next, &report);
    d->done++;
    lane->next += d->lanes;
    lane->report_us = clock_us();
    lane->report_cpu_us = lane_cpu_us(lane);
}

static enum err keep_lanes_going(struct driver *d, struct pollfd *wait)
{
    enum err err = ERR_OK;
    for (unsigned i = 0; i < d->lanes && err == ERR_OK; i++) {
        struct lane *lane = &d->lane[i];
        if (lane->pid != 0 && hangs(lane)) {
            kill(lane->pid, SIGKILL);
            lane_died(d, lane, "it hung");
        }
        if (lane->pid == 0 && lane->next < d->runs) {
            err = lane_start(d, lane);
        }
        wait[i] = (struct pollfd){.fd = lane->pid != 0 ? lane->pipe : -1, .events = POLLIN};
    }
    return err;
}

static bool lanes_run(const struct driver *d)
{
    for (unsigned i = 0; i < d->lanes; i++) {
        if (d->lane[i].pid != 0) {
            return true;
        }
    }
    return false;
}

static int drive(struct driver *d)
{
    struct pollfd wait[LANES_MAX];
    for (unsigned i = 0; i < d->lanes; i++) {
        d->lane[i].next = i;
    }
    for (;;) {
        if (keep_lanes_going(d, wait) != ERR_OK) {
            log_fail(d->chaos->program, "cannot start a process: %s", strerror(errno));
            return 1;
        }
        if (!lanes_run(d)) {
            break;
        }
        (void)poll(wait, d->lanes, 1000);
        for (unsigned i = 0; i < d->lanes; i++) {
            if (d->lane[i].pid != 0 && (wait[i].revents & (POLLIN | POLLHUP)) != 0) {
                lane_read(d, &d->lane[i]);
            }
        }
        print_progress(d);
    }
    print_sum(d);
    return d->failed > 0 ? 1 : 0;
}

int chaos_runs(const struct chaos_runs *options)
{
    struct driver driver = {.chaos = options, .begin_us = clock_us()};
    driver.printed_us = driver.begin_us;
    driver.lanes = options->jobs < 1 ? 1 : options->jobs > LANES_MAX ? LANES_MAX : options->jobs;
    int status = read_wish(&driver);
    return status < 0 ? drive(&driver) : status;
}
