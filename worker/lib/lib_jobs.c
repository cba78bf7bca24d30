/* Jobs: what a front-end posts, and the reports on it, of each worker the newest. */
#include "worker/lib/lib.h"

#include "common/clock.h"

#include <stdlib.h>
#include <string.h>

enum {
    JOB_DEPTH_MAX = 100, /* workers refuse more, but for an engine of others */
    KNOWN_MAX = 256, /* workers, and shards that bar a job, of whom the last event is kept */
};

/* Posted here; of a stopped one reports may come. */
struct posted {
    uint64_t id; /* 0: free */
    bool is_open;
};

/* What a worker (or shard) said last of a job; kept when it was taken, so that the same by another
 * way is no event. */
struct known {
    struct abdada_job_event event;
    uint64_t untaken; /* its number if nobody has taken it, else 0 */
    uint64_t numbered; /* the number of the last report */
};

struct lib_jobs {
    struct posted posted[2 * LIB_JOBS_MAX];
    unsigned next; /* place for the next one */
    struct known known[KNOWN_MAX]; /* event.job 0: free */
    uint64_t numbers; /* drawn so far */
};

_Static_assert((int)ABDADA_JOB_STRICT == PROTO_JOB_STRICT &&
                   (int)ABDADA_JOB_FULL == PROTO_JOB_FULL &&
                   (int)ABDADA_JOB_WAITS == PROTO_JOB_WAITS &&
                   (int)ABDADA_TEXT_MAX == PROTO_TEXT_MAX &&
                   (int)ABDADA_JOB_ENDED == PROTO_JOB_ENDED &&
                   (int)ABDADA_JOB_REFUSED == PROTO_JOB_REFUSED,
               "the header's numbers are those of messages");

bool lib_jobs_open(struct lib *l)
{
    l->jobs = calloc(1, sizeof *l->jobs);
    return l->jobs != NULL;
}

void lib_jobs_close(struct lib *l)
{
    free(l->jobs);
    l->jobs = NULL;
}

static struct posted *find_posted(struct lib_jobs *jobs, uint64_t id)
{
    for (unsigned i = 0; i < 2 * LIB_JOBS_MAX; i++) {
        if (id != 0 && jobs->posted[i].id == id) {
            return &jobs->posted[i];
        }
    }
    return NULL;
}

/* ---- events ---- */

/* The oldest event that nobody has taken; NULL: none. */
static struct known *first_untaken(struct lib_jobs *jobs)
{
    struct known *first = NULL;
    for (unsigned i = 0; i < KNOWN_MAX; i++) {
        struct known *k = &jobs->known[i];
        if (k->untaken != 0 && (first == NULL || k->untaken < first->untaken)) {
            first = k;
        }
    }
    return first;
}

/* What has been taken gives way first, then what was not reported on for longest. */
static bool is_better_room(const struct known *a, const struct known *b)
{
    bool is_taken = a->untaken == 0;
    return is_taken != (b->untaken == 0) ? is_taken : a->numbered < b->numbered;
}

/* Where what that worker (or shard) says goes; one whose event.job is 0 is new. */
static struct known *known_for(struct lib_jobs *jobs, uint64_t job, uint64_t instance,
                               unsigned shard)
{
    struct known *room = &jobs->known[0];
    for (unsigned i = 0; i < KNOWN_MAX; i++) {
        struct known *k = &jobs->known[i];
        if (k->event.job == job && k->event.instance == instance &&
            (instance != 0 || k->event.shard == (int32_t)shard)) {
            return k;
        }
        room = is_better_room(k, room) ? k : room;
    }
    *room = (struct known){.untaken = 0};
    return room;
}

static void set_untaken(struct lib_jobs *jobs, struct known *k)
{
    k->numbered = ++jobs->numbers;
    k->untaken = k->untaken != 0 ? k->untaken : k->numbered;
}

/* Whether it says more than the last: workers repeat themselves, and every shard passes all on. */
static bool says_more(const struct proto_job_report *r, const char *line,
                      const struct abdada_job_event *last)
{
    struct proto_job_report before = {.nodes = last->nodes, .state = last->state};
    bool is_same = r->nodes == last->nodes && r->state == last->state && r->depth == last->depth;
    if (is_same) {
        return strlen(line) > strlen(last->text); /* the one with the line came by a longer way */
    }
    return proto_report_is_newer(r, &before) &&
           (r->nodes != last->nodes || r->state != PROTO_JOB_SEARCHING || r->depth > last->depth);
}

void lib_jobs_on_report(struct lib *l, const struct proto_job_report *report, unsigned shard)
{
    if (l->jobs == NULL || report->instance == 0 || find_posted(l->jobs, report->job) == NULL) {
        return;
    }
    struct known *k = known_for(l->jobs, report->job, report->instance, shard);
    struct abdada_job_event *e = &k->event;
    char line[sizeof e->text];
    proto_text_printable(report->line, line, sizeof line);
    if (e->job != 0 && !says_more(report, line, e)) {
        if (report->depth == e->depth && e->text[0] == '\0') {
            memcpy(e->text, line, sizeof line); /* the shard of the newer one missed this one */
        }
        return;
    }
    if (e->job != 0 && e->depth == report->depth && strlen(line) < strlen(e->text)) {
        memcpy(line, e->text, sizeof line); /* other makers' workers may leave it out */
    }
    *e = (struct abdada_job_event){
        .job = report->job,
        .instance = report->instance,
        .nodes = report->nodes,
        .asks = report->asks,
        .busy = report->busy,
        .deferred = report->deferred,
        .duplicated = report->duplicated,
        .score = report->score,
        .move = report->move,
        .state = report->state,
        .depth = report->depth,
        .shard = (int32_t)shard,
    };
    memcpy(e->text, line, sizeof line);
    set_untaken(l->jobs, k);
}

void lib_jobs_on_refused(struct lib *l, uint64_t job, struct proto_text why, unsigned shard)
{
    struct abdada_job_event e = {.job = job, .state = ABDADA_JOB_BARRED, .shard = (int32_t)shard};
    if (l->jobs == NULL || find_posted(l->jobs, job) == NULL) {
        return;
    }
    struct known *k = known_for(l->jobs, job, 0, shard);
    proto_text_printable(why, e.text, sizeof e.text);
    if (k->event.job == 0 || strcmp(k->event.text, e.text) != 0) {
        k->event = e;
        set_untaken(l->jobs, k);
    }
}

/* ---- calls ---- */

static int enter_front(struct abdada *t, bool is_right, struct lib **out)
{
    int result = lib_enter(t, is_right, out);
    if (result == ABDADA_OK && (*out)->role != ABDADA_FRONT_END) {
        return lib_leave(t, ABDADA_E_ROLE);
    }
    return result;
}

enum { JOB_SIZE_0 = offsetof(struct abdada_job, remote_depth) + sizeof(uint8_t) };

static bool copy_job(struct abdada_job *out, const struct abdada_job *given)
{
    const unsigned flags =
        ABDADA_JOB_STRICT | ABDADA_JOB_FULL | ABDADA_JOB_WAITS | ABDADA_JOB_FRESH;
    if (!lib_copy_struct(out, sizeof *out, given, given->struct_size, JOB_SIZE_0)) {
        return false;
    }
    out->game = out->game != NULL ? out->game : "chess";
    out->position = out->position != NULL ? out->position : "startpos";
    out->algorithm = out->algorithm != NULL ? out->algorithm : "abdada";
    bool is_both = (out->flags & ABDADA_JOB_STRICT) && (out->flags & ABDADA_JOB_FULL);
    int depth_max = strncmp(out->game, "uci:", 4) == 0 ? TT_DEPTH_MAX : JOB_DEPTH_MAX;
    bool is_whole = out->evaluation != 0 || (uint32_t)out->namespace_id == 0;
    return (out->flags & ~flags) == 0 && !is_both && is_whole && out->depth <= depth_max &&
           out->remote_depth <= TT_DEPTH_MAX && strlen(out->game) <= PROTO_TEXT_MAX &&
           strlen(out->position) <= PROTO_TEXT_MAX && strlen(out->algorithm) <= PROTO_TEXT_MAX;
}

static struct proto_job wire_of(const struct abdada_job *job, uint64_t id)
{
    uint64_t fresh = job->flags & ABDADA_JOB_FRESH ? clock_unique() << PROTO_FRESH_SHIFT : 0;
    return (struct proto_job){
        .job = id,
        .game = proto_text_of(job->game),
        .position = proto_text_of(job->position),
        .evaluation = job->evaluation,
        .namespace_id = job->namespace_id ^ fresh,
        .algorithm = proto_text_of(job->algorithm),
        .flags = (uint8_t)(job->flags & ~(uint32_t)ABDADA_JOB_FRESH),
        .depth = job->depth,
        .remote_depth = job->remote_depth != 0 ? job->remote_depth : PROTO_REMOTE_DEPTH_AUTO,
        .time_ms = job->time_ms,
        .nodes = job->nodes,
    };
}

int abdada_job_post(struct abdada *t, const struct abdada_job *job, uint64_t *id)
{
    struct lib *l;
    struct abdada_job copy;
    int result = enter_front(t, job != NULL && id != NULL && copy_job(&copy, job), &l);
    if (result != ABDADA_OK) {
        return result;
    }
    uint64_t unique = clock_unique();
    struct proto_job wire = wire_of(&copy, unique != 0 ? unique : 1);
    enum err err = client_job_post(l->lane.client, &wire, lib_now(l));
    if (err != ERR_OK) {
        return lib_leave(t, err == ERR_FULL ? ABDADA_E_FULL : ABDADA_E_ARGUMENT);
    }
    struct lib_jobs *jobs = l->jobs; /* half of the places: the client has LIB_JOBS_MAX jobs */
    while (jobs->posted[jobs->next % (2 * LIB_JOBS_MAX)].is_open) {
        jobs->next++; /* to the place of the job stopped longest ago */
    }
    jobs->posted[jobs->next++ % (2 * LIB_JOBS_MAX)] = (struct posted){wire.job, true};
    *id = wire.job;
    return lib_leave(t, ABDADA_OK);
}

int abdada_job_next(struct abdada *t, int timeout_ms, struct abdada_job_event *event)
{
    struct lib *l;
    int result = enter_front(t, event != NULL, &l);
    if (result != ABDADA_OK) {
        return result;
    }
    uint64_t until = timeout_ms < 0 ? UINT64_MAX : lib_now(l) + (uint64_t)timeout_ms * 1000;
    struct known *k;
    lib_serve(l);
    while ((k = first_untaken(l->jobs)) == NULL && lib_now(l) < until) {
        lib_wait(l, until);
    }
    if (k == NULL) {
        return lib_leave(t, ABDADA_WAITING);
    }
    *event = k->event;
    k->untaken = 0;
    return lib_leave(t, ABDADA_OK);
}

int abdada_job_stop(struct abdada *t, uint64_t id)
{
    struct lib *l;
    int result = enter_front(t, true, &l);
    if (result != ABDADA_OK) {
        return result;
    }
    struct posted *posted = find_posted(l->jobs, id);
    if (posted == NULL || !posted->is_open) {
        return lib_leave(t, ABDADA_E_UNKNOWN);
    }
    posted->is_open = false;
    client_job_stop(l->lane.client, id, lib_now(l));
    return lib_leave(t, ABDADA_OK);
}
