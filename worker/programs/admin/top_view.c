#include "worker/programs/admin/top_view.h"

#include "ttserver/core/figures.h"
#include "worker/games/games.h"
#include "worker/programs/json.h"
#include "worker/programs/score.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

enum {
    LINE_ROOM = 1024,
    WIDE = 132, /* columns */
    NARROW_ADDRESS = 22,
    CELL_ROOM = 32,
    NAMES_ROOM = 512,
};

static const struct {
    const char *name, *help;
} faults[] = {
#define NONE(name, help)
#define FAULT(name, help) {#name, help},
    TTCORE_COUNTERS(NONE, FAULT) TTCORE_OUTSIDE(NONE, FAULT) TTCORE_PARTS(NONE, FAULT)
#undef FAULT
#undef NONE
};

struct page {
    struct top_page at;
    bool is_narrow;
    unsigned row;
    /* of the table under way */
    char heads[LINE_ROOM], cells[LINE_ROOM]; /* as far as the row goes */
    bool has_ended; /* the row has no more cells */
    char cell[CELL_ROOM]; /* the one under way */
};

static void line(struct page *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void line(struct page *p, const char *format, ...)
{
    char text[LINE_ROOM];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    if (p->at.rows == 0 || p->row < p->at.rows) {
        bool is_last = ++p->row == p->at.rows; /* a newline there would scroll */
        fprintf(p->at.out, "%.*s%s%s", (int)p->at.columns, text, p->at.is_live ? "\x1b[K" : "",
                is_last ? "" : "\n");
    }
}

/* ---- cells, each made where the one before it was ---- */

static const char *cell(struct page *p, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static const char *cell(struct page *p, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(p->cell, sizeof p->cell, format, list);
    va_end(list);
    return p->cell;
}

/* 12345678 becomes 12.3M. */
static const char *number(struct page *p, double value)
{
    static const char unit[] = " kMGTP";
    unsigned u = 0;
    while (value >= 10000 && u + 2 < sizeof unit) {
        value /= 1000;
        u++;
    }
    return u == 0        ? cell(p, "%.0f", value)
           : value < 100 ? cell(p, "%.1f%c", value, unit[u])
                         : cell(p, "%.0f%c", value, unit[u]);
}

static const char *time_span(struct page *p, uint64_t ms)
{
    unsigned seconds = (unsigned)(ms / 1000);
    return seconds < 60     ? cell(p, "%u.%us", seconds, (unsigned)(ms % 1000 / 100))
           : seconds < 3600 ? cell(p, "%um%02us", seconds / 60, seconds % 60)
                            : cell(p, "%uh%02um", seconds / 3600, seconds % 3600 / 60);
}

static const char *per_cent(struct page *p, double part)
{
    return cell(p, "%.1f", 100 * part);
}

static const char *bits(struct page *p, uint64_t set)
{
    return cell(p, "%d", __builtin_popcountll(set));
}

static const char *whole(struct page *p, uint64_t n)
{
    return cell(p, "%" PRIu64, n);
}

/* A long one on a narrow page without its middle: where the port is stays. */
static const char *address_of(struct page *p, const char *address)
{
    const char *port = strrchr(address, ':');
    const size_t end = port != NULL ? strlen(port) : 0;
    return p->is_narrow && strlen(address) > NARROW_ADDRESS && end < NARROW_ADDRESS / 2
               ? cell(p, "%.*s~%s", (int)(NARROW_ADDRESS - 1 - end), address,
                      port != NULL ? port : "")
               : address;
}

/* ---- tables ---- */

static void append(char text[LINE_ROOM], const char *format, const char *word)
{
    size_t used = strlen(text);
    if (used > 0 && used + 1 < LINE_ROOM) {
        text[used++] = ' ';
    }
    snprintf(text + used, LINE_ROOM - used, format, word);
}

/* The next column of a row: its head, how both are printed on wide and on narrow pages (NULL: as on
 * wide ones; "": not at all), and its cell (NULL: the row ends before it). */
static void column(struct page *p, const char *head, const char *wide, const char *narrow,
                   const char *text)
{
    const char *format = p->is_narrow && narrow != NULL ? narrow : wide;
    p->has_ended = p->has_ended || text == NULL;
    if (format[0] != '\0') {
        append(p->heads, format, head);
    }
    if (format[0] != '\0' && !p->has_ended) {
        append(p->cells, format, text);
    }
}

/* The first row of a table has the heads above it. */
static void end_row(struct page *p, bool is_first)
{
    if (is_first) {
        line(p, "%s", "");
        line(p, "%s", p->heads);
    }
    line(p, "%s", p->cells);
    p->heads[0] = p->cells[0] = '\0';
    p->has_ended = false;
}

/* "-" for what the shard does not report: a Redis knows no tables. */
static const char *figure(struct page *p, const struct monitor_shard *s, const char *name)
{
    return monitor_has(s, name) ? number(p, (double)monitor_figure(s, name)) : "-";
}

static const char *share_of_asks(struct page *p, const struct monitor_shard *s, const char *name)
{
    const double asks = (double)monitor_figure(s, "asks");
    return monitor_has(s, name) ? per_cent(p, asks > 0 ? (double)monitor_figure(s, name) / asks : 0)
                                : "-";
}

static void show_shards(struct page *p, const struct monitor_view *v)
{
    for (const struct monitor_shard *s = v->shard; s < v->shard + v->shards; s++) {
        column(p, "SHARD", "%-24s", "%-22.22s", address_of(p, s->address));
        column(p, "", "%-4s", "", s->up ? "up" : "down");
        column(p, "AGE", "%7s", "%6s",
               s->up          ? time_span(p, monitor_figure(s, "uptime_ms"))
               : p->is_narrow ? "down"
                              : NULL);
        column(p, "RTT ms", "%7s", "", s->up ? cell(p, "%.1f", s->rtt_us / 1e3) : NULL);
        column(p, "WORK", "%4s", NULL, whole(p, monitor_figure(s, "workers")));
        column(p, "FRNT", "%4s", "", whole(p, monitor_figure(s, "fronts")));
        column(p, "SESS", "%5s", "", whole(p, monitor_figure(s, "sessions")));
        column(p, "JOBS", "%4s", NULL, whole(p, monitor_figure(s, "jobs")));
        column(p, "INFLIGHT", "%8s", "", figure(p, s, "inflight_entries"));
        column(p, "FILL", "%6s", NULL,
               monitor_has(s, "results_permille")
                   ? cell(p, "%.1f%%", (double)monitor_figure(s, "results_permille") / 10)
                   : "-");
        column(p, "MEM B", "%7s", "", figure(p, s, "memory_bytes"));
        column(p, "OPS/s", "%8s", NULL, number(p, s->ops_per_s));
        column(p, "ASKS/s", "%8s", NULL, number(p, s->asks_per_s));
        column(p, "CUT%", "%5s", NULL, share_of_asks(p, s, "cuts"));
        column(p, "BUSY%", "%5s", NULL, share_of_asks(p, s, "busy"));
        end_row(p, s == v->shard);
    }
}

/* How many shards or sessions, and their names as far as there is room. */
struct named {
    char text[NAMES_ROOM];
    unsigned count;
};

static void add_name(struct named *n, const char *name)
{
    const size_t used = strlen(n->text);
    snprintf(n->text + used, NAMES_ROOM - used, "%s%s", n->count++ > 0 ? ", " : "", name);
}

/* A line above the tables for each kind of fault that needs an action. */
static void show_actions(struct page *p, const struct monitor_view *v)
{
    const struct monitor_shard *end = v->shard + v->shards;
    struct named down = {.count = 0};
    for (const struct monitor_shard *s = v->shard; s < end; s++) {
        const struct monitor_shard *twin = monitor_twin(v, s);
        if (!s->up) {
            add_name(&down, s->address);
        } else if (twin != NULL && twin < s) {
            line(p,
                 "! shards %s and %s have the same place in the ring; start one without snapshot",
                 s->address, twin->address);
        }
    }
    if (down.count > 0) {
        line(p, "! %u of %u shards down; start them, or leave them out of --servers: %s",
             down.count, v->shards, down.text);
    }
    if (v->jobs > 0 && v->total.members[PROTO_WORKER] == 0) {
        line(p, "! no worker for %u open jobs; start ttworker", v->jobs);
    }
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        struct named of = {.count = 0};
        uint64_t sum = 0;
        for (const struct monitor_shard *s = v->shard; s < end; s++) {
            const uint64_t n = s->up ? monitor_figure(s, faults[i].name) : 0;
            sum += n;
            if (n > 0) {
                add_name(&of, s->address);
            }
        }
        if (sum > 0) {
            line(p, "! %s %" PRIu64 ": %s (%s)", faults[i].name, sum, faults[i].help, of.text);
        }
    }
}

/* A game that this build does not know has plain numbers. */
static void show_line(struct page *p, const struct monitor_job *j)
{
    char score[16], san[MONITOR_LINE_MAX] = "";
    const struct game *game = games_by_name(j->game);
    if (game != NULL) {
        score_text(game, j->score, score, sizeof score);
        score_text_san(game, j->position, j->line, san, sizeof san);
    } else {
        snprintf(score, sizeof score, "%d", j->score);
    }
    char left[CLI_TIME_LEFT_MAX];
    line(p, "  depth %u  score %s  %s%s", j->reached, score, j->line,
         cli_time_left(j->left_s, left));
    if (san[0] != '\0') {
        line(p, "  san %s", san);
    }
}

static double bytes_per_s(const struct monitor_work *w)
{
    return w->per_s[COUNTER_bytes_sent] + w->per_s[COUNTER_bytes_received];
}

/* What several searchers cost, in the words of analyse. */
static void show_cost(struct page *p, const char *whose, const struct monitor_work *w)
{
    line(p, "%s  overhead >=%.1f%%  duplicated %.1f%%  waiting %.1f%%  %s bytes/s", whose,
         100 * counters_overhead(w->count.nodes, w->count.duplicated, w->count.abandoned),
         w->count.nodes > 0 ? 100 * (double)w->count.duplicated / (double)w->count.nodes : 0,
         100 * w->waiting, number(p, bytes_per_s(w)));
}

static void show_jobs(struct page *p, const struct monitor_view *v)
{
    for (const struct monitor_job *j = v->job; j < v->job + v->jobs; j++) {
        column(p, "JOB", "%-16s", NULL, cell(p, "%016" PRIx64, j->job));
        column(p, "OWNER", "%-16.16s", NULL, j->owner);
        column(p, "USER", "%-12.12s", "", j->user);
        column(p, "AGE", "%7s", "%6s", time_span(p, j->age_ms));
        column(p, "WORKERS", "%7s", NULL, whole(p, j->workers));
        column(p, "DEPTH", "%7s", NULL, cell(p, "%3u/%-3u", j->reached, j->depth));
        column(p, "SHARDS", "%6s", "", bits(p, j->shards));
        column(p, "NODES", "%8s", "", number(p, (double)j->work.count.nodes));
        column(p, "NODES/s", "%8s", NULL, number(p, j->work.per_s[COUNTER_nodes]));
        column(p, "ALGORITHM", "%s", "%.12s", j->algorithm);
        end_row(p, j == v->job);
        line(p, "  %s %s", j->game, j->position);
        show_cost(p, "", &j->work);
        if (j->reached > 0) {
            show_line(p, j);
        }
    }
}

static void show_hosts(struct page *p, const struct monitor_view *v)
{
    for (const struct monitor_host *h = v->host; h < v->host + v->hosts; h++) {
        column(p, "HOST", "%-31.31s", "%-22.22s", h->name);
        column(p, "SESS", "%4s", NULL, whole(p, h->sessions));
        column(p, "NODES", "%8s", NULL, number(p, (double)h->work.count.nodes));
        column(p, "NODES/s", "%8s", NULL, number(p, h->work.per_s[COUNTER_nodes]));
        column(p, "TALK%", "%5s", NULL, per_cent(p, h->work.talking));
        column(p, "ASKS", "%8s", NULL, number(p, (double)h->work.count.asks));
        column(p, "SENT B", "%8s", NULL, number(p, (double)h->work.count.bytes_sent));
        column(p, "RECV B", "%8s", NULL, number(p, (double)h->work.count.bytes_received));
        end_row(p, h == v->host);
    }
}

static void show_members(struct page *p, const struct monitor_view *v)
{
    for (const struct monitor_member *m = v->member; m < v->member + v->members; m++) {
        column(p, "ROLE", "%-7s", NULL, monitor_role(m->role));
        column(p, "NAME", "%-31s", "%-28.28s", m->name);
        column(p, "USER", "%-12.12s", "", m->user);
        column(p, "SHARDS", "%6s", "", bits(p, m->shards));
        column(p, "SILENT", "%7s", NULL, time_span(p, m->silent_ms));
        column(p, "NODES/s", "%8s", NULL, number(p, m->work.per_s[COUNTER_nodes]));
        column(p, "WAIT%", "%5s", NULL, per_cent(p, m->work.waiting));
        column(p, "TALK%", "%5s", "", per_cent(p, m->work.talking));
        column(p, "ASKS/s", "%8s", "", number(p, m->work.per_s[COUNTER_asks]));
        column(p, "SENT B/s", "%8s", "", number(p, m->work.per_s[COUNTER_bytes_sent]));
        column(p, "RECV B/s", "%8s", "", number(p, m->work.per_s[COUNTER_bytes_received]));
        column(p, "JOB", "%s", NULL, m->job != 0 ? cell(p, "%016" PRIx64, m->job) : "-");
        end_row(p, m == v->member);
    }
}

/* ---- versions that differ, and jobs that are refused ---- */

enum { GROUPS_MAX = 64 };

/* Sessions, or shards, of one version; or sessions that refuse a job for one reason. */
struct group {
    bool are_shards;
    unsigned protocol;
    uint64_t refuses;
    const char *text; /* release, or reason */
    struct named who;
};

struct groups {
    struct group at[GROUPS_MAX];
    unsigned count;
};

static void group_name(struct groups *all, const struct group *one, const char *name)
{
    struct group *g = all->at;
    while (g < all->at + all->count &&
           (g->are_shards != one->are_shards || g->protocol != one->protocol ||
            g->refuses != one->refuses || strcmp(g->text, one->text) != 0)) {
        g++;
    }
    if (g == all->at + GROUPS_MAX) {
        return;
    }
    if (g == all->at + all->count) {
        *g = *one;
        all->count++;
    }
    add_name(&g->who, name);
}

/* The versions of shards and of sessions, where they differ: while a cluster is upgraded. */
static void show_versions(struct page *p, const struct monitor_view *v)
{
    struct groups all = {.count = 0};
    for (const struct monitor_shard *s = v->shard; s < v->shard + v->shards; s++) {
        if (s->up) {
            const uint64_t said = monitor_figure(s, "protocol"); /* by a Redis: not */
            const struct group one = {.are_shards = true,
                                      .protocol = said != 0 ? (unsigned)said : PROTO_VERSION,
                                      .text = ""};
            group_name(&all, &one, s->address);
        }
    }
    for (const struct monitor_member *m = v->member; m < v->member + v->members; m++) {
        if (m->protocol != 0) {
            const struct group one = {.protocol = m->protocol, .text = m->release};
            group_name(&all, &one, m->name);
        }
    }
    const struct group *first = all.at, *second = all.at + 1;
    if (all.count < 2 || (all.count == 2 && first->are_shards != second->are_shards &&
                          first->protocol == second->protocol)) {
        return;
    }
    for (const struct group *g = all.at; g < all.at + all.count; g++) {
        column(p, "VERSION", "%-9.9s", NULL, g->text);
        column(p, "", "%-24s", NULL,
               cell(p, "protocol %u%s", g->protocol, g->are_shards ? ", shards" : ", sessions"));
        column(p, "COUNT", "%5s", NULL, whole(p, g->who.count));
        column(p, "WHO", "%s", NULL, g->who.text);
        end_row(p, g == all.at);
    }
}

/* A row for each job and reason. */
static void show_refusals(struct page *p, const struct monitor_view *v)
{
    struct groups all = {.count = 0};
    for (const struct monitor_member *m = v->member; m < v->member + v->members; m++) {
        if (m->refuses != 0) {
            const struct group one = {.refuses = m->refuses, .text = m->why};
            group_name(&all, &one, m->name);
        }
    }
    for (const struct group *g = all.at; g < all.at + all.count; g++) {
        char who[MONITOR_WHY_MAX + NAMES_ROOM + 4];
        snprintf(who, sizeof who, "%s: %s",
                 g->text[0] != '\0' ? g->text : "(a program of an earlier version does not say)",
                 g->who.text);
        column(p, "REFUSES", "%-16s", NULL, cell(p, "%016" PRIx64, g->refuses));
        column(p, "COUNT", "%5s", NULL, whole(p, g->who.count));
        column(p, "WHY, AND WHO", "%s", NULL, who);
        end_row(p, g == all.at);
    }
}

/* The first line. */
static void show_service(struct page *p, const struct monitor_view *v)
{
    char clock[16], rate[CELL_ROOM], entries[CELL_ROOM];
    time_t now = time(NULL);
    struct tm local;
    snprintf(rate, sizeof rate, "%s", number(p, v->total.ops_per_s));
    snprintf(entries, sizeof entries, "%s",
             v->total.has_entries ? whole(p, v->total.entries) : "-");
    const char *nodes = number(p, v->total.work.per_s[COUNTER_nodes]);
    strftime(clock, sizeof clock, "%H:%M:%S", localtime_r(&now, &local));
    if (p->is_narrow) {
        line(p, "top  %s  shards %u/%u  workers %u  jobs %u  %s nodes/s  %s ops/s%s", clock,
             v->total.up, v->shards, v->total.members[PROTO_WORKER], v->jobs, nodes, rate,
             p->at.is_live ? "  q: quit" : "");
    } else {
        line(p,
             "abdada top  %s  shards %u/%u  workers %u  front-ends %u  jobs %u  in flight %s"
             "  %s operations/s  %s nodes/s%s",
             clock, v->total.up, v->shards, v->total.members[PROTO_WORKER],
             v->total.members[PROTO_FRONT], v->jobs, entries, rate, nodes,
             p->at.is_live ? "  (q: quit)" : "");
    }
    if (v->jobs > 1) {
        show_cost(p, "all jobs:", &v->total.work);
    }
}

void top_view_text(const struct monitor_view *v, const struct top_page *page)
{
    struct page p = {.at = *page};
    p.at.columns = page->columns > 0 && page->columns < LINE_ROOM ? page->columns : LINE_ROOM - 1;
    p.is_narrow = p.at.columns < WIDE;
    fputs(page->is_live ? "\x1b[H" : "", page->out);
    show_service(&p, v);
    show_actions(&p, v);
    show_versions(&p, v);
    show_refusals(&p, v);
    show_shards(&p, v);
    show_jobs(&p, v);
    show_hosts(&p, v);
    show_members(&p, v);
    fputs(page->is_live ? "\x1b[J" : "", page->out);
    fflush(page->out);
}

/* ---- JSON ---- */

static void put_id(struct json *j, const char *name, uint64_t id)
{
    char text[24];
    snprintf(text, sizeof text, id != 0 ? "%016" PRIx64 : "", id);
    json_text(j, name, text);
}

static void put_work(struct json *j, const struct monitor_work *w)
{
    json_number(j, "nodes", (int64_t)w->count.nodes);
    json_real(j, "nodes_per_s", w->per_s[COUNTER_nodes]);
    json_number(j, "duplicated_nodes", (int64_t)w->count.duplicated);
    json_number(j, "abandoned_nodes", (int64_t)w->count.abandoned);
    json_real(j, "overhead_estimate",
              counters_overhead(w->count.nodes, w->count.duplicated, w->count.abandoned));
    json_real(j, "duplicated",
              w->count.nodes > 0 ? (double)w->count.duplicated / (double)w->count.nodes : 0);
    json_real(j, "waiting", w->waiting);
    json_number(j, "bytes", (int64_t)(w->count.bytes_sent + w->count.bytes_received));
    json_real(j, "bytes_per_s", bytes_per_s(w));
}

static void put_talk(struct json *j, const struct monitor_work *w)
{
    json_real(j, "talking", w->talking);
    json_number(j, "waited_us", (int64_t)w->count.waited_us);
    json_number(j, "asks", (int64_t)w->count.asks);
    json_real(j, "asks_per_s", w->per_s[COUNTER_asks]);
    json_number(j, "bytes_sent", (int64_t)w->count.bytes_sent);
    json_number(j, "bytes_received", (int64_t)w->count.bytes_received);
}

static void put_shard(struct json *j, const struct monitor_view *v, unsigned at)
{
    const struct monitor_shard *s = &v->shard[at];
    const struct monitor_shard *twin = monitor_twin(v, s);
    json_text(j, "kind", "shard");
    json_text(j, "address", s->address);
    json_text(j, "state", s->up ? "up" : "down");
    if (s->up) {
        put_id(j, "boot", s->boot);
        put_id(j, "place", s->place);
        json_text(j, "twin", twin != NULL ? twin->address : "");
        json_number(j, "rtt_us", s->rtt_us);
        json_real(j, "ops_per_s", s->ops_per_s);
        json_real(j, "asks_per_s", s->asks_per_s);
        json_real(j, "messages_per_s", s->messages_per_s);
        for (unsigned i = 0; i < s->figures; i++) {
            json_number(j, s->figure[i].name, (int64_t)s->figure[i].value);
        }
    }
}

static void put_job(struct json *j, const struct monitor_view *v, unsigned at)
{
    const struct monitor_job *job = &v->job[at];
    json_text(j, "kind", "job");
    put_id(j, "job", job->job);
    json_text(j, "owner", job->owner);
    json_text(j, "user", job->user);
    json_number(j, "workers", job->workers);
    json_number(j, "age_ms", job->age_ms);
    json_number(j, "left_s", job->left_s);
    json_number(j, "depth", job->depth);
    json_number(j, "reached", job->reached);
    json_text(j, "game", job->game);
    json_text(j, "algorithm", job->algorithm);
    json_text(j, "position", job->position);
    json_number(j, "shards", __builtin_popcountll(job->shards));
    put_work(j, &job->work);
    if (job->reached > 0) {
        const struct game *game = games_by_name(job->game);
        int64_t value = job->score;
        json_text(j, "score_kind", game != NULL ? score_kind(game, job->score, &value) : "");
        json_number(j, "score", value);
        json_text(j, "line", job->line);
        if (game != NULL) {
            char san[MONITOR_LINE_MAX];
            score_text_san(game, job->position, job->line, san, sizeof san);
            json_text(j, "line_san", san);
        }
    }
}

static void put_member(struct json *j, const struct monitor_view *v, unsigned at)
{
    const struct monitor_member *m = &v->member[at];
    char instance_id[12];
    snprintf(instance_id, sizeof instance_id, "%08" PRIx32, m->instance_id);
    json_text(j, "kind", monitor_role(m->role));
    json_text(j, "name", m->name);
    json_text(j, "user", m->user);
    json_text(j, "instance_id", instance_id);
    put_id(j, "job", m->job);
    json_number(j, "silent_ms", m->silent_ms);
    json_text(j, "release", m->release);
    json_number(j, "protocol", m->protocol);
    put_id(j, "refuses", m->refuses);
    json_text(j, "why", m->why);
    put_work(j, &m->work);
    put_talk(j, &m->work);
    json_number(j, "shards", __builtin_popcountll(m->shards));
}

static void put_host(struct json *j, const struct monitor_view *v, unsigned at)
{
    const struct monitor_host *h = &v->host[at];
    json_text(j, "kind", "host");
    json_text(j, "name", h->name);
    json_text(j, "role", monitor_role(h->role));
    json_number(j, "sessions", h->sessions);
    put_work(j, &h->work);
    put_talk(j, &h->work);
}

static void put_total(struct json *j, const struct monitor_view *v)
{
    json_text(j, "kind", "total");
    json_number(j, "shards", v->shards);
    json_number(j, "shards_up", v->total.up);
    json_number(j, "workers", v->total.members[PROTO_WORKER]);
    json_number(j, "fronts", v->total.members[PROTO_FRONT]);
    json_number(j, "jobs", v->jobs);
    json_number(j, "inflight_nodes", (int64_t)v->total.nodes);
    json_number(j, "inflight_entries", (int64_t)v->total.entries);
    json_real(j, "ops_per_s", v->total.ops_per_s);
    put_work(j, &v->total.work);
}

typedef void put_row(struct json *j, const struct monitor_view *v, unsigned at);

/* Each of `count` rows in a line, or, without `lines`, all in the array of that name. */
static void put_rows(struct json *j, FILE *lines, const char *name, const struct monitor_view *v,
                     unsigned count, put_row *put)
{
    if (lines == NULL) {
        json_array_begin(j, name);
    }
    for (unsigned i = 0; i < count; i++) {
        lines != NULL ? json_begin(j, lines) : json_object_begin(j, NULL);
        put(j, v, i);
        lines != NULL ? json_end(j) : json_object_end(j);
    }
    if (lines == NULL) {
        json_array_end(j);
    }
}

void top_view_json(const struct monitor_view *v, bool in_lines, FILE *out)
{
    FILE *lines = in_lines ? out : NULL;
    struct json j;
    struct timespec now;
    if (!in_lines) {
        clock_gettime(CLOCK_REALTIME, &now);
        json_begin(&j, out);
        json_number(&j, "time_ms", (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000);
    }
    put_rows(&j, lines, "shards", v, v->shards, put_shard);
    put_rows(&j, lines, "jobs", v, v->jobs, put_job);
    put_rows(&j, lines, "hosts", v, v->hosts, put_host);
    put_rows(&j, lines, "members", v, v->members, put_member);
    in_lines ? json_begin(&j, out) : json_object_begin(&j, "total");
    put_total(&j, v);
    if (!in_lines) {
        json_object_end(&j);
    }
    json_end(&j);
}
