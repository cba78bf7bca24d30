/* abdada top: the shards, jobs and sessions of a cluster, as a live view, as JSON or as a page. */
#include "ttserver/core/figures.h"
#include "worker/games/games.h"
#include "worker/programs/admin/top_json.h"
#include "worker/programs/admin/top_web.h"
#include "worker/programs/admin/watch.h"
#include "worker/programs/cli.h"
#include "worker/programs/score.h"

#include "common/config.h"
#include "common/log.h"
#include "common/signals.h"

#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

static const char program[] = "abdada top";

enum {
    ROOM = 1 << 18,
    RATE_MS = 500,
    SLICE_MS = 50,
    LINE_ROOM = 1024,
    WIDE = 132, /* columns; fewer have tables of 80, without what matters least */
    NARROW_ADDRESS = 22,
    INTERVAL_MS = 1000,
    WEB_INTERVAL_MS = 250, /* the least; more than the most and pages take it for dead */
    WEB_INTERVAL_MAX_MS = 5000,
};

static const char *const faults[] = {
#define NONE(name, help)
#define FAULT(name, help) #name,
    TTCORE_COUNTERS(NONE, FAULT) TTCORE_OUTSIDE(NONE, FAULT) TTCORE_PARTS(NONE, FAULT)
#undef FAULT
#undef NONE
};

/* The text of one view: lines cut to the width of the terminal, as many as it has rows. */
struct page {
    char *text;
    size_t used;
    unsigned columns, rows, row; /* 0 rows: no limit */
    bool live, narrow;
};

struct top {
    /* command line */
    struct cli_table table;
    uint32_t interval_ms, wait_ms;
    struct options_host_port web_at; /* no host: no page */
    bool once, json, is_insecure;
    /* state */
    struct watch *watch;
    struct top_web *web;
    struct page page;
};

static atomic_bool stopping;
static struct termios before;
static atomic_bool is_raw, is_screen;

/* ---- the terminal ---- */

static void restore_terminal(void)
{
    if (atomic_exchange(&is_raw, false)) {
        tcsetattr(STDIN_FILENO, TCSANOW, &before);
    }
    if (atomic_exchange(&is_screen, false)) {
        static const char leave[] = "\x1b[?25h\x1b[?1049l";
        ssize_t ignored = write(STDOUT_FILENO, leave, sizeof leave - 1);
        (void)ignored;
    }
}

static void on_signal(int number)
{
    if (atomic_exchange(&stopping, true)) {
        restore_terminal();
        _exit(128 + number);
    }
}

static void prepare_terminal(void)
{
    struct termios raw;
    if (isatty(STDIN_FILENO) && tcgetattr(STDIN_FILENO, &before) == 0) {
        raw = before;
        raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
        atomic_store(&is_raw, tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0);
    }
    if (isatty(STDOUT_FILENO)) {
        atomic_store(&is_screen, true);
        fputs("\x1b[?1049h\x1b[?25l", stdout);
    }
}

/* True when q was typed. */
static bool is_quit_typed(void)
{
    struct pollfd fd = {.fd = STDIN_FILENO, .events = POLLIN};
    char c;
    while (atomic_load(&is_raw) && poll(&fd, 1, 0) > 0) {
        if (read(STDIN_FILENO, &c, 1) != 1) {
            return false;
        }
        if (c == 'q' || c == 'Q' || c == 3 || c == 4) {
            return true;
        }
    }
    return false;
}

/* ---- lines ---- */

static void page_begin(struct page *p)
{
    struct winsize size;
    p->used = p->row = 0;
    p->live = atomic_load(&is_screen);
    p->columns = LINE_ROOM - 1;
    p->rows = 0;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
        p->columns = size.ws_col < LINE_ROOM ? size.ws_col : LINE_ROOM - 1;
        p->rows = p->live ? size.ws_row : 0;
    }
    p->narrow = p->columns < WIDE;
}

static void line(struct page *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void line(struct page *p, const char *format, ...)
{
    char text[LINE_ROOM];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    if ((p->rows != 0 && p->row >= p->rows) || p->used + LINE_ROOM + 16 > ROOM) {
        return;
    }
    bool last = p->rows != 0 && p->row + 1 == p->rows; /* a newline there would scroll */
    p->row++;
    p->used += (size_t)snprintf(p->text + p->used, ROOM - p->used, "%.*s%s%s", (int)p->columns,
                                text, p->live ? "\x1b[K" : "", last ? "" : "\n");
}

static void page_end(struct page *p)
{
    if (p->live) {
        fputs("\x1b[H", stdout);
    }
    fwrite(p->text, 1, p->used, stdout);
    if (p->live) {
        fputs("\x1b[J", stdout);
    }
    fflush(stdout);
}

static unsigned count_bits(uint64_t set)
{
    return (unsigned)__builtin_popcountll(set);
}

/* ---- text ---- */

/* 12345678 becomes 12.3M. */
static const char *short_number(double value, char text[16])
{
    static const char unit[] = " kMGTP";
    unsigned u = 0;
    while (value >= 10000 && u + 2 < sizeof unit) {
        value /= 1000;
        u++;
    }
    if (u == 0) {
        snprintf(text, 16, "%.0f", value);
    } else {
        snprintf(text, 16, value < 100 ? "%.1f%c" : "%.0f%c", value, unit[u]);
    }
    return text;
}

static const char *short_time(uint64_t ms, char text[16])
{
    unsigned seconds = (unsigned)(ms / 1000);
    if (seconds < 60) {
        snprintf(text, 16, "%u.%us", seconds, (unsigned)(ms % 1000 / 100));
    } else if (seconds < 3600) {
        snprintf(text, 16, "%um%02us", seconds / 60, seconds % 60);
    } else {
        snprintf(text, 16, "%uh%02um", seconds / 3600, seconds % 3600 / 60);
    }
    return text;
}

/* A long one without its middle: where the port is stays. */
static const char *short_address(const char *address, char text[NARROW_ADDRESS + 1])
{
    size_t length = strlen(address);
    const char *port = strrchr(address, ':');
    size_t end = port != NULL ? strlen(port) : 0;
    if (length <= NARROW_ADDRESS || end >= NARROW_ADDRESS / 2) {
        snprintf(text, NARROW_ADDRESS + 1, "%s", address);
    } else {
        snprintf(text, NARROW_ADDRESS + 1, "%.*s~%s", (int)(NARROW_ADDRESS - 1 - end), address,
                 port != NULL ? port : "");
    }
    return text;
}

static void show_shards_narrow(struct page *p, const struct watch_view *v)
{
    char age[16], rate[16], asks[16], address[NARROW_ADDRESS + 1];
    line(p, "%-22s %6s %4s %4s %6s %8s %8s %5s %5s", "SHARD", "AGE", "WORK", "JOBS", "FILL",
         "OPS/s", "ASKS/s", "CUT%", "BUSY%");
    for (const struct watch_shard *s = v->shard; s < v->shard + v->shards; s++) {
        uint64_t all = watch_figure(s, "asks");
        double per_cent = all > 0 ? 100.0 / (double)all : 0;
        if (!s->up) {
            line(p, "%-22s   down", short_address(s->address, address));
            continue;
        }
        line(p, "%-22s %6s %4" PRIu64 " %4" PRIu64 " %5.1f%% %8s %8s %5.1f %5.1f",
             short_address(s->address, address), short_time(watch_figure(s, "uptime_ms"), age),
             watch_figure(s, "workers"), watch_figure(s, "jobs"),
             (double)watch_figure(s, "results_permille") / 10, short_number(s->ops_per_s, rate),
             short_number(s->asks_per_s, asks), (double)watch_figure(s, "cuts") * per_cent,
             (double)watch_figure(s, "busy") * per_cent);
    }
}

static void show_shard(struct page *p, const struct watch_shard *s)
{
    char age[16], rate[16], memory[16], inflight[16], asks[16];
    if (!s->up) {
        line(p, "%-24s down", s->address);
        return;
    }
    uint64_t all = watch_figure(s, "asks");
    double per_cent = all > 0 ? 100.0 / (double)all : 0;
    line(p,
         "%-24s up   %7s %7.1f %4" PRIu64 " %4" PRIu64 " %5" PRIu64 " %4" PRIu64
         " %8s %5.1f%% %7s %8s %8s %5.1f %5.1f",
         s->address, short_time(watch_figure(s, "uptime_ms"), age), s->rtt_us / 1e3,
         watch_figure(s, "workers"), watch_figure(s, "fronts"), watch_figure(s, "sessions"),
         watch_figure(s, "jobs"),
         short_number((double)watch_figure(s, "inflight_entries"), inflight),
         (double)watch_figure(s, "results_permille") / 10,
         short_number((double)watch_figure(s, "memory_bytes"), memory),
         short_number(s->ops_per_s, rate), short_number(s->asks_per_s, asks),
         (double)watch_figure(s, "cuts") * per_cent, (double)watch_figure(s, "busy") * per_cent);
}

static void show_faults(struct page *p, const struct watch_shard *s)
{
    char text[LINE_ROOM] = "", one[64];
    size_t used = 0, room = p->columns > 24 ? p->columns - 24 : 0;
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        uint64_t n = s->up ? watch_figure(s, faults[i]) : 0;
        if (n == 0) {
            continue;
        }
        size_t length = (size_t)snprintf(one, sizeof one, "  %s %" PRIu64, faults[i], n);
        if (used > 0 && used + length > room) {
            line(p, "%-24s%s", s->address, text);
            used = 0;
        }
        used += (size_t)snprintf(text + used, sizeof text - used, "%s", one);
    }
    if (used > 0) {
        line(p, "%-24s%s", s->address, text);
    }
}

/* A game that this build does not know has plain numbers. */
static void show_line(struct page *p, const struct watch_job *j)
{
    char score[16], san[WATCH_LINE_MAX] = "";
    const struct game *game = games_by_name(j->game);
    if (game != NULL) {
        score_text(game, j->score, score, sizeof score);
        score_text_san(game, j->position, j->line, san, sizeof san);
    } else {
        snprintf(score, sizeof score, "%d", j->score);
    }
    line(p, "  depth %u  score %s  %s", j->reached, score, j->line);
    if (san[0] != '\0') {
        line(p, "  san %s", san);
    }
}

/* What several searchers cost, in the words of analyse. */
static void show_cost(struct page *p, const char *whose, const struct watch_work *w)
{
    char rate[16];
    line(p, "%s  overhead >=%.1f%%  duplicated %.1f%%  waiting %.1f%%  %s bytes/s", whose,
         100 * counters_overhead(w->nodes, w->duplicated, w->abandoned),
         w->nodes > 0 ? 100 * (double)w->duplicated / (double)w->nodes : 0, 100 * w->waiting,
         short_number(w->bytes_per_s, rate));
}

static void show_jobs(struct page *p, const struct watch_view *v)
{
    char age[16], nodes[16], rate[16];
    if (v->jobs > 0 && p->narrow) {
        line(p, "%s", "");
        line(p, "%-16s %-16s %6s %7s %7s %8s %s", "JOB", "OWNER", "AGE", "WORKERS", "DEPTH",
             "NODES/s", "ALGORITHM");
    } else if (v->jobs > 0) {
        line(p, "%s", "");
        line(p, "%-16s %-16s %-12s %7s %7s %7s %6s %8s %8s %s", "JOB", "OWNER", "USER", "AGE",
             "WORKERS", "DEPTH", "SHARDS", "NODES", "NODES/s", "ALGORITHM");
    }
    for (const struct watch_job *j = v->job; j < v->job + v->jobs; j++) {
        if (p->narrow) {
            line(p, "%016" PRIx64 " %-16.16s %6s %7u %3u/%-3u %8s %.12s", j->job, j->owner,
                 short_time(j->age_ms, age), j->workers, j->reached, j->depth,
                 short_number(j->work.nodes_per_s, rate), j->algorithm);
        } else {
            line(p, "%016" PRIx64 " %-16.16s %-12.12s %7s %7u %3u/%-3u %6u %8s %8s %s", j->job,
                 j->owner, j->user, short_time(j->age_ms, age), j->workers, j->reached, j->depth,
                 count_bits(j->shards), short_number((double)j->work.nodes, nodes),
                 short_number(j->work.nodes_per_s, rate), j->algorithm);
        }
        line(p, "  %s %s", j->game, j->position);
        show_cost(p, "", &j->work);
        if (j->reached > 0) {
            show_line(p, j);
        }
    }
}

static void show_hosts(struct page *p, const struct watch_view *v)
{
    char nodes[16], rate[16], asks[16], sent[16], received[16];
    const int width = p->narrow ? 22 : 31;
    if (v->hosts > 0) {
        line(p, "%s", "");
        line(p, "%-*s %4s %8s %8s %5s %8s %8s %8s", width, "HOST", "SESS", "NODES", "NODES/s",
             "TALK%", "ASKS", "SENT B", "RECV B");
    }
    for (const struct watch_host *h = v->host; h < v->host + v->hosts; h++) {
        line(p, "%-*.*s %4u %8s %8s %5.1f %8s %8s %8s", width, width, h->name, h->sessions,
             short_number((double)h->work.nodes, nodes), short_number(h->work.nodes_per_s, rate),
             100 * h->talk.talking, short_number((double)h->talk.asks, asks),
             short_number((double)h->talk.bytes_sent, sent),
             short_number((double)h->talk.bytes_received, received));
    }
}

static void show_members(struct page *p, const struct watch_view *v)
{
    char silent[16], rate[16], asks[16], sent[16], received[16], job[24];
    if (v->members > 0 && p->narrow) {
        line(p, "%s", "");
        line(p, "%-7s %-28s %7s %8s %5s %s", "ROLE", "NAME", "SILENT", "NODES/s", "WAIT%", "JOB");
    } else if (v->members > 0) {
        line(p, "%s", "");
        line(p, "%-7s %-31s %-12s %6s %7s %8s %5s %5s %8s %8s %8s %s", "ROLE", "NAME", "USER",
             "SHARDS", "SILENT", "NODES/s", "WAIT%", "TALK%", "ASKS/s", "SENT B/s", "RECV B/s",
             "JOB");
    }
    for (const struct watch_member *m = v->member; m < v->member + v->members; m++) {
        snprintf(job, sizeof job, m->job != 0 ? "%016" PRIx64 : "-", m->job);
        short_time(m->silent_ms, silent);
        short_number(m->work.nodes_per_s, rate);
        if (p->narrow) {
            line(p, "%-7s %-28.28s %7s %8s %5.1f %s", watch_role(m->role), m->name, silent, rate,
                 100 * m->work.waiting, job);
        } else {
            line(p, "%-7s %-31s %-12.12s %6u %7s %8s %5.1f %5.1f %8s %8s %8s %s",
                 watch_role(m->role), m->name, m->user, count_bits(m->shards), silent, rate,
                 100 * m->work.waiting, 100 * m->talk.talking,
                 short_number(m->talk.asks_per_s, asks), short_number(m->talk.sent_per_s, sent),
                 short_number(m->talk.received_per_s, received), job);
        }
    }
}

/* ---- versions that differ, and jobs that are refused ---- */

enum { VERSIONS_MAX = 16, NAMES_ROOM = 512 };

struct version_row {
    unsigned protocol, count;
    const char *release;
    char names[NAMES_ROOM];
};

static void add_name(char *names, const char *name)
{
    size_t used = strlen(names);
    snprintf(names + used, NAMES_ROOM - used, "%s%s", used > 0 ? ", " : "", name);
}

static unsigned add_version(struct version_row *row, unsigned rows, unsigned protocol,
                            const char *release, const char *name)
{
    unsigned i = 0;
    while (i < rows && (row[i].protocol != protocol || strcmp(row[i].release, release) != 0)) {
        i++;
    }
    if (i == VERSIONS_MAX) {
        return rows;
    }
    if (i == rows) {
        row[i] = (struct version_row){.protocol = protocol, .release = release};
    }
    row[i].count++;
    add_name(row[i].names, name);
    return i == rows ? rows + 1 : rows;
}

/* Of shards and of sessions, where not all are of one: while a cluster is upgraded. */
static void show_versions(struct page *p, const struct watch_view *v)
{
    struct version_row row[VERSIONS_MAX];
    unsigned shards = 0, rows = 0;
    for (const struct watch_shard *s = v->shard; s < v->shard + v->shards; s++) {
        shards = s->up ? add_version(row, shards, watch_protocol(s), "", s->address) : shards;
    }
    rows = shards;
    for (const struct watch_member *m = v->member; m < v->member + v->members; m++) {
        unsigned more = m->protocol == 0 ? 0
                                         : add_version(row + shards, rows - shards, m->protocol,
                                                       m->release, m->name);
        rows = more > 0 ? shards + more : rows;
    }
    bool differ = shards > 1 || rows - shards > 1;
    for (unsigned i = 1; i < rows; i++) {
        differ = differ || row[i].protocol != row[0].protocol;
    }
    if (!differ) {
        return;
    }
    line(p, "%s", "");
    line(p, "%-9s %-24s %5s %s", "VERSION", "", "COUNT", "WHO");
    for (unsigned i = 0; i < rows; i++) {
        char what[32];
        snprintf(what, sizeof what, "protocol %u%s", row[i].protocol,
                 i < shards ? ", shards" : ", sessions");
        line(p, "%-9.9s %-24s %5u %s", row[i].release, what, row[i].count, row[i].names);
    }
}

/* A row for each job and reason. */
static void show_refusals(struct page *p, const struct watch_view *v)
{
    bool any = false;
    for (unsigned i = 0; i < v->members; i++) {
        const struct watch_member *m = &v->member[i];
        char names[NAMES_ROOM] = "";
        unsigned count = 0;
        for (unsigned k = 0; k < v->members && m->refuses != 0; k++) {
            const struct watch_member *other = &v->member[k];
            if (other->refuses == m->refuses && strcmp(other->why, m->why) == 0) {
                if (k < i) {
                    count = 0; /* it has a row */
                    break;
                }
                count++;
                add_name(names, other->name);
            }
        }
        if (count == 0) {
            continue;
        }
        if (!any) {
            any = true;
            line(p, "%s", "");
            line(p, "%-16s %5s %s", "REFUSES", "COUNT", "WHY, AND WHO");
        }
        line(p, "%016" PRIx64 " %5u %s: %s", m->refuses, count,
             m->why[0] != '\0' ? m->why : "(a program of an earlier version does not say)", names);
    }
}

/* The first line, and the tables of shards. */
static void show_service(struct page *p, const struct watch_view *v, const char *clock)
{
    char rate[16], nodes[16];
    short_number(v->total.ops_per_s, rate);
    short_number(v->total.work.nodes_per_s, nodes);
    if (p->narrow) {
        line(p, "top  %s  shards %u/%u  workers %u  jobs %u  %s nodes/s  %s ops/s%s", clock,
             v->total.up, v->shards, v->total.members[PROTO_WORKER], v->jobs, nodes, rate,
             p->live ? "  q: quit" : "");
    } else {
        line(p,
             "abdada top  %s  shards %u/%u  workers %u  front-ends %u  jobs %u  in flight %" PRIu64
             "  %s operations/s  %s nodes/s%s",
             clock, v->total.up, v->shards, v->total.members[PROTO_WORKER],
             v->total.members[PROTO_FRONT], v->jobs, v->total.entries, rate, nodes,
             p->live ? "  (q: quit)" : "");
    }
    if (v->jobs > 1) {
        show_cost(p, "all jobs:", &v->total.work);
    }
    line(p, "%s", "");
    if (p->narrow) {
        show_shards_narrow(p, v);
        return;
    }
    line(p, "%-24s %-4s %7s %7s %4s %4s %5s %4s %8s %6s %7s %8s %8s %5s %5s", "SHARD", "", "AGE",
         "RTT ms", "WORK", "FRNT", "SESS", "JOBS", "INFLIGHT", "FILL", "MEM B", "OPS/s", "ASKS/s",
         "CUT%", "BUSY%");
    for (unsigned i = 0; i < v->shards; i++) {
        show_shard(p, &v->shard[i]);
    }
}

static void show_text(struct page *p, const struct watch_view *v)
{
    char clock[16];
    time_t now = time(NULL);
    struct tm local;
    strftime(clock, sizeof clock, "%H:%M:%S", localtime_r(&now, &local));
    page_begin(p);
    show_service(p, v, clock);
    for (unsigned i = 0; i < v->shards; i++) {
        show_faults(p, &v->shard[i]);
    }
    show_jobs(p, v);
    show_hosts(p, v);
    show_versions(p, v);
    show_refusals(p, v);
    show_members(p, v);
    page_end(p);
}

/* ---- the loop ---- */

static void show(struct top *t)
{
    if (t->json) {
        top_json_lines(watch_view(t->watch), stdout);
    } else {
        show_text(&t->page, watch_view(t->watch));
    }
}

/* 0 when all shards are up. */
static int show_once(struct top *t)
{
    const struct watch_view *v = watch_view(t->watch);
    watch_round(t->watch, t->wait_ms, false, &stopping);
    if (v->total.up > 0 && !atomic_load(&stopping)) { /* a rate needs two values */
        watch_idle(t->watch, RATE_MS);
        watch_round(t->watch, 0, false, &stopping);
    }
    show(t);
    return v->total.up == v->shards ? 0 : 1;
}

static int show_live(struct top *t)
{
    const uint32_t interval_ms = t->interval_ms > 0 ? t->interval_ms : INTERVAL_MS;
    uint32_t wait_ms = t->wait_ms;
    prepare_terminal();
    while (!atomic_load(&stopping)) {
        watch_round(t->watch, wait_ms, false, &stopping);
        wait_ms = 0; /* later rounds do not wait for shards that are down */
        if (!atomic_load(&stopping)) {
            show(t);
        }
        if (ferror(stdout)) {
            break;
        }
        for (uint32_t slept = 0; slept < interval_ms && !atomic_load(&stopping);
             slept += SLICE_MS) {
            watch_idle(t->watch, SLICE_MS);
            if (is_quit_typed()) {
                atomic_store(&stopping, true);
            }
        }
    }
    restore_terminal();
    return 0;
}

static enum err open_web(struct top *t, const struct keys_client *keys, char *why)
{
    char reason[HTTP_WHY_MAX];
    enum err err = top_web_open(&t->web, &t->web_at, keys, &stopping, reason);
    if (err != ERR_OK) {
        snprintf(why, KEYS_WHY_MAX, "--web %.400s", reason);
    } else if (!top_web_is_loopback(t->web) && keys == NULL && !t->is_insecure) {
        snprintf(why, KEYS_WHY_MAX,
                 "--web %.300s can be reached from other machines: use keys (--keys DIR), or say "
                 "--insecure if everybody there may see the cluster",
                 t->web_at.host);
        err = ERR_RANGE;
    }
    return err;
}

static enum err open_all(struct top *t, char *why)
{
    struct keys_client room;
    const struct keys_client *keys = NULL;
    enum err err = cli_load_keys(t->table.keys_dir, KEYS_MONITOR, &room, &keys, why);
    if (err != ERR_OK) {
        return err;
    }
    const struct transport_address address = cli_table_address(&t->table, keys);
    err = watch_open(&t->watch, &address, program, why);
    if (err == ERR_OK && t->web_at.host[0] != '\0') {
        err = open_web(t, keys, why);
    }
    keys_wipe(&room, sizeof room);
    return err;
}

static int show_web(struct top *t)
{
    uint32_t interval_ms = t->interval_ms > WEB_INTERVAL_MS ? t->interval_ms : WEB_INTERVAL_MS;
    interval_ms = interval_ms < WEB_INTERVAL_MAX_MS ? interval_ms : WEB_INTERVAL_MAX_MS;
    fprintf(stderr, "%s: the page is at %s\n", program, top_web_url(t->web));
    top_web_serve(t->web, t->watch, interval_ms, &stopping);
    return 0;
}

int cli_top(int argc, char *argv[])
{
    struct top t = {.wait_ms = 1000};
    const struct options_row table[] = {
        CLI_TABLE_ROWS(t.table),
        {"once", NULL, "print once and exit: 0 when all shards are up, else 1", &t.once,
         OPTION_FLAG},
        {"json", NULL, "a JSON object per line for each shard, job, session, and the total",
         &t.json, OPTION_FLAG},
        {"interval", "MS", "between two views (default 1000; with --web 250 to 5000, default 250)",
         &t.interval_ms, OPTION_U32, 0, 100, 3600000},
        {"wait", "MS", "for shards that do not answer (default 1000)", &t.wait_ms, OPTION_U32, 0, 1,
         60000},
        {.name = "web",
         .argument = "HOST:PORT",
         .help = "serve a page to watch the cluster there; PORT alone: on 127.0.0.1",
         .value = &t.web_at,
         .kind = OPTION_CUSTOM,
         .parse = top_web_address},
        {"insecure", NULL, "serve the page without keys where other machines can reach it",
         &t.is_insecure, OPTION_FLAG},
        {0},
    };
    const struct options options = {
        .program = program,
        .usage = "--servers HOST:PORT,... | --table URL [--once] [--json] [--web HOST:PORT]",
        .summary =
            "Shows the shards of a cluster, its jobs and its sessions, in the terminal or on "
            "a page. Ends\nwith q or Ctrl-C.",
        .version = PROGRAM_VERSION,
        .table = table,
    };
    int status = config_parse(&options, argc, argv, NULL, NULL);
    if (status < 0) {
        status = cli_table_environment(program, &t.table, true);
    }
    if (status < 0 && t.web_at.host[0] != '\0' && (t.once || t.json)) {
        status = options_wrong(program, "--web excludes --once and --json");
    }
    if (status >= 0) {
        return status;
    }
    signals_catch(on_signal);
    t.page.text = malloc(ROOM);
    char why[KEYS_WHY_MAX] = "out of memory";
    enum err err = t.page.text == NULL ? ERR_NOMEM : open_all(&t, why);
    if (err != ERR_OK) {
        log_fail(program, "%s", why);
        status = 1;
    } else {
        status = t.web != NULL ? show_web(&t) : t.once ? show_once(&t) : show_live(&t);
    }
    top_web_close(&t.web);
    watch_close(&t.watch);
    free(t.page.text);
    return status;
}
