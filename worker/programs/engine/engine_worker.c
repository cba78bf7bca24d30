#include "worker/programs/engine/engine_worker.h"

#include "common/clock.h"
#include "common/log.h"
#include "common/memory.h"
#include "worker/engine/process_name.h"
#include "worker/engine/worker.h"
#include "worker/engine/worker_core.h"
#include "worker/programs/engine/uci_engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    REPORT_MS = 100,
    WAIT_MS = 50,
    OFFERS_MAX = 2 * WORKER_JOBS_MAX, /* whose texts are kept */
    SAY_EVERY_US = 1000000,
};

/* Texts of a job that worker_core has no room for. */
struct offer {
    struct worker_job_name name;
    uint64_t received; /* the smaller the earlier */
    char position[PROTO_TEXT_MAX + 1], search[PROTO_TEXT_MAX + 1];
};

struct engine_worker {
    /* fixed */
    const struct engine_worker_options *options;
    struct cli_session session;
    char game[ENGINE_GAME_MAX];
    /* state */
    struct uci_engine engine;
    struct engine_settings has, wanted; /* options of the engine's process that were set; that the
                                           job wants */
    struct worker_core core;
    struct offer offer[OFFERS_MAX];
    uint64_t received;
    const struct offer *running; /* NULL: none */
    bool has_begun; /* its "go" was said to this process of the engine */
    bool was_said; /* "ready", with the engine's name */
    uint64_t said_us, said_up;
    uint64_t new_game;
    struct search_result result;
    struct counters counters; /* of the job; earlier processes of the engine: */
    uint64_t nodes_before;
    struct counters past; /* of the jobs before */
    char line[WORKER_LINE_BYTES];
    struct searching_metrics *metrics;
    struct searcher figures; /* what others may read of it, and nothing else */
};

enum err engine_worker_parse_option(const char *text, void *settings)
{
    const char *equals = strchr(text, '=');
    char name[UCI_NAME_MAX];
    if (equals == NULL || equals == text || equals - text >= UCI_NAME_MAX) {
        return ERR_SYNTAX;
    }
    snprintf(name, sizeof name, "%.*s", (int)(equals - text), text);
    return engine_settings_put(settings, name, equals + 1) ? ERR_OK : ERR_FULL;
}

/* ---- the engine ---- */

static void set_option(struct engine_worker *w, const char *name, const char *value)
{
    uci_engine_send(&w->engine, "setoption name %s value %s", name, value);
}

static void set_number(struct engine_worker *w, const char *name, uint64_t value)
{
    const struct uci_option *option = uci_engine_option(&w->engine, name);
    const struct engine_settings *owners = w->options->owners;
    char text[32];
    if (option != NULL && option->kind == UCI_SPIN && engine_settings_get(owners, name) == NULL) {
        const uint64_t most = option->max < 1 ? 1 : (uint64_t)option->max;
        snprintf(text, sizeof text, "%llu", (unsigned long long)(value < most ? value : most));
        set_option(w, option->name, text);
    }
}

/* Sets what the owner wants; false: the engine has no such option or value, which `why` says. */
static bool set_owners(struct engine_worker *w, char why[LANES_WHY_MAX])
{
    const struct engine_settings *owners = w->options->owners;
    w->has.count = 0;
    w->new_game = 0;
    set_number(w, "Threads", w->options->threads);
    set_number(w, "Hash", w->options->hash_mib);
    for (unsigned i = 0; i < owners->count; i++) {
        const struct engine_setting *own = &owners->at[i];
        const struct uci_option *option = uci_engine_option(&w->engine, own->name);
        if (option == NULL || !uci_option_takes(option, own->value)) {
            snprintf(why, LANES_WHY_MAX, "--engine-option: %s has %s '%.100s'", w->engine.is->name,
                     option == NULL ? "no option" : "an option of that name, but not the value",
                     option == NULL ? own->name : own->value);
            return false;
        }
        set_option(w, option->name, own->value);
    }
    return true;
}

/* Sets what differs; options that no job named have their defaults. */
static void set_wanted(struct engine_worker *w)
{
    for (unsigned i = 0; i < w->wanted.count; i++) {
        const struct engine_setting *s = &w->wanted.at[i];
        const struct uci_option *option = uci_engine_option(&w->engine, s->name);
        const char *has = engine_settings_get(&w->has, s->name);
        if (option != NULL && strcmp(has != NULL ? has : option->normal, s->value) != 0) {
            set_option(w, s->name, s->value);
            (void)engine_settings_put(&w->has, s->name, s->value);
        }
    }
}

static void on_info(struct engine_worker *w, const char *text)
{
    struct uci_info info;
    if (w->running == NULL || !w->has_begun || w->engine.state != UCI_ENGINE_SEARCHING ||
        !uci_info_read(text, &info)) {
        return;
    }
    const uint64_t nodes = w->nodes_before + info.nodes;
    w->counters.nodes = nodes > w->counters.nodes ? nodes : w->counters.nodes;
    if (info.has_score && info.multipv == 1 && info.depth >= w->result.depth && info.depth > 0 &&
        info.line[0] != '\0') {
        w->result.depth = info.depth;
        w->result.score = info.score;
        snprintf(w->line, sizeof w->line, "%s", info.line);
        char *end = strlen(info.line) >= sizeof w->line ? strrchr(w->line, ' ') : NULL;
        if (end != NULL) {
            *end = '\0'; /* a move that was cut */
        }
    }
}

/* ---- the job ---- */

static struct worker_progress progress(const struct engine_worker *w)
{
    return (struct worker_progress){.counters = w->counters, .result = &w->result, .line = w->line};
}

static void report(struct engine_worker *w, const struct worker_actions *actions)
{
    const struct lane *lane = &w->session.lane;
    for (unsigned i = 0; i < actions->reports; i++) {
        client_job_report(lane->client, &actions->report[i], lane_now(lane));
    }
    if (actions->refresh) {
        client_hello(lane->client, PROTO_WORKER, 0, lane_now(lane));
    }
}

static void end_job(struct engine_worker *w, bool is_done)
{
    struct worker_actions actions;
    const struct worker_progress p = progress(w);
    worker_core_end(&w->core, &p, is_done, &actions);
    report(w, &actions);
    w->running = NULL;
    counters_add(&w->past, &w->counters);
    w->counters = (struct counters){.nodes = 0};
    atomic_fetch_add_explicit(&w->figures.searches, 1, memory_order_relaxed);
}

/* To a process of the engine that is idle. */
static void go(struct engine_worker *w)
{
    char command[PROTO_TEXT_MAX + 1], why[ENGINE_WHY_TEXT_MAX];
    const uint64_t new_game = engine_job_new_game(w->running->search);
    set_wanted(w);
    if (new_game != w->new_game) {
        uci_engine_send(&w->engine, "ucinewgame");
        w->new_game = new_game;
    }
    uci_engine_send(&w->engine, "position %s", w->running->position);
    if (engine_job_go(w->running->search, command, why)) {
        uci_engine_go(&w->engine, command, clock_us());
    }
    w->has_begun = true;
}

static void begin_job(struct engine_worker *w, const struct job_offer *job)
{
    const struct worker_job_name name = {job->wire.job, job->wire.user};
    char command[PROTO_TEXT_MAX + 1], why[ENGINE_WHY_TEXT_MAX] = "its texts are not known any more";
    struct worker_actions actions;
    const struct offer *offer = NULL;
    for (unsigned i = 0; i < OFFERS_MAX && offer == NULL; i++) {
        const struct offer *o = &w->offer[i];
        offer = o->name.job == name.job && o->name.user == name.user ? o : NULL;
    }
    bool ok = offer != NULL;
    if (ok && !engine_job_is_clean(offer->position, offer->search)) {
        snprintf(why, sizeof why, "its position is none");
        ok = false;
    }
    ok = ok && engine_job_go(offer->search, command, why) &&
         engine_job_settings(offer->search, &w->engine, w->options->owners, &w->wanted, why);
    if (!ok) {
        worker_core_refuse(&w->core, name, why, &actions);
        report(w, &actions);
        return;
    }
    w->running = offer;
    w->has_begun = false;
    w->result = (struct search_result){.depth = 0};
    w->counters = (struct counters){.nodes = 0};
    w->nodes_before = 0;
    w->line[0] = '\0';
    worker_core_begin(&w->core, name, job->wire.time_ms, lane_now(&w->session.lane));
    go(w);
}

/* ---- events ---- */

static bool is_open(const struct engine_worker *w, const struct worker_job_name *name)
{
    unsigned i = 0;
    while (i < w->core.jobs && (w->core.job[i].offer.wire.job != name->job ||
                                w->core.job[i].offer.wire.user != name->user)) {
        i++;
    }
    return i < w->core.jobs;
}

/* In place of the oldest of the jobs that are not open any more. */
static void keep_offer(struct engine_worker *w, const struct proto_job *job)
{
    struct offer *room = NULL;
    for (unsigned i = 0; i < OFFERS_MAX; i++) {
        struct offer *o = &w->offer[i];
        if (o->name.job == job->job && o->name.user == job->user) {
            o->received = ++w->received;
            return;
        }
        const bool is_older = room == NULL || o->received < room->received;
        room = is_older && o != w->running && !is_open(w, &o->name) ? o : room;
    }
    CHECK_THAT(room != NULL, "texts of more jobs are kept than are open");
    *room = (struct offer){.name = {job->job, job->user}, .received = ++w->received};
    if (!proto_text_copy(job->position, room->position, sizeof room->position) ||
        !proto_text_copy(job->algorithm, room->search, sizeof room->search)) {
        room->position[0] = '\0'; /* no position: it is refused */
    }
}

static void serve_shards(struct engine_worker *w)
{
    struct client_event event;
    struct proto_job job;
    const struct lane *lane = &w->session.lane;
    while (lane_next(&w->session.lane, &event)) {
        const uint64_t boot = client_shard(lane->client, event.shard).boot;
        char game[ENGINE_GAME_MAX];
        if (event.kind == CLIENT_JOB) {
            if (!proto_text_copy(event.job->game, game, sizeof game) ||
                strcmp(game, w->game) != 0) {
                continue; /* for others */
            }
            keep_offer(w, event.job);
            job = *event.job;
            job.game = job.position = job.algorithm = proto_text_of("");
            event.job = &job;
        }
        worker_core_event(&w->core, &event, boot, lane_now(lane));
    }
    (void)lane_tick(lane);
}

static void serve_engine(struct engine_worker *w)
{
    char *line, why[LANES_WHY_MAX];
    enum uci_said said;
    while ((said = uci_engine_next(&w->engine, clock_us(), &line)) != UCI_NOTHING) {
        if (said == UCI_LINE) {
            on_info(w, line);
        } else if (said == UCI_STARTED) {
            char game[ENGINE_GAME_MAX];
            engine_job_game(w->engine.is->name, game);
            if (w->was_said && strcmp(game, w->game) != 0) {
                uci_engine_kill(&w->engine, "it has another name now; start this worker again");
            } else if (w->was_said && !set_owners(w, why)) {
                uci_engine_kill(&w->engine, why);
            }
        } else if (said == UCI_BESTMOVE && w->running != NULL && w->has_begun) {
            end_job(w, true);
        } else if (said == UCI_DIED) {
            log_line(w->options->program, "the engine: %s", w->engine.why);
            w->nodes_before = w->counters.nodes;
            w->has_begun = false;
        }
    }
}

static void step(struct engine_worker *w)
{
    struct worker_actions actions;
    const uint64_t now = lane_now(&w->session.lane);
    if (w->running == NULL && w->engine.state == UCI_ENGINE_IDLE) {
        worker_core_idle(&w->core, now, &actions);
        report(w, &actions);
        if (actions.search != NULL) {
            begin_job(w, actions.search);
        }
    } else if (w->running != NULL) {
        const struct worker_progress p = progress(w);
        worker_core_poll(&w->core, &p, now, &actions);
        report(w, &actions);
        if (actions.leave) {
            end_job(w, false);
            uci_engine_stop(&w->engine, clock_us());
        } else if (!w->has_begun && w->engine.state == UCI_ENGINE_IDLE) {
            go(w); /* another process of it */
        }
    }
    uci_engine_start(&w->engine, clock_us());
}

static void say_shards(struct engine_worker *w)
{
    const unsigned up = client_shards_up(w->session.lane.client);
    if (up != w->said_up && clock_us() >= w->said_us) {
        w->said_up = up;
        w->said_us = clock_us() + SAY_EVERY_US;
        log_line(w->options->program, "%u of %u shards up", up, w->session.shards);
    }
}

/* ---- for those who watch ---- */

static void publish(struct engine_worker *w)
{
    struct searcher *out = &w->figures;
    const struct client *client = w->session.lane.client;
    const struct client_counters *counted = client_counters(client);
    struct counters all = w->past;
    counters_add(&all, &w->counters);
    all.bytes_sent = counted->bytes_sent;
    all.bytes_received = counted->bytes_received;
    counters_publish(&out->all, &all);
    atomic_store_explicit(&out->timeouts, counted->timeouts, memory_order_relaxed);
    atomic_store_explicit(&out->shards_up, client_shards_up(client), memory_order_relaxed);
    atomic_store_explicit(&out->is_busy, w->running != NULL, memory_order_relaxed);
}

static const struct searcher *figures_of(void *worker, unsigned i)
{
    (void)i;
    return &((struct engine_worker *)worker)->figures;
}

static enum err serve_metrics(struct engine_worker *w, char why[LANES_WHY_MAX])
{
    const struct searching_metrics_options options = {.program = w->options->program,
                                                      .says = w->options->program,
                                                      .threads = 1,
                                                      .shards = w->session.shards,
                                                      .searcher = figures_of,
                                                      .self = w,
                                                      .stop = w->options->stop};
    char reason[HTTP_WHY_MAX];
    enum err err = searching_metrics_open(&w->metrics, w->options->metrics, &options, reason);
    if (err != ERR_OK) {
        snprintf(why, LANES_WHY_MAX, "--metrics: %.400s", reason);
    }
    return err;
}

/* ---- begin and end ---- */

/* Starts the engine for the first time. False: `why`. */
static bool start(struct engine_worker *w, char why[LANES_WHY_MAX])
{
    char *line;
    enum uci_said said = UCI_NOTHING;
    uci_engine_start(&w->engine, clock_us());
    while (said != UCI_STARTED && said != UCI_DIED && !atomic_load(w->options->stop)) {
        uci_engine_wait(&w->engine, NULL, -1, UINT64_MAX);
        do {
            said = uci_engine_next(&w->engine, clock_us(), &line);
        } while (said != UCI_NOTHING && said != UCI_STARTED && said != UCI_DIED);
    }
    if (said == UCI_DIED) {
        snprintf(why, LANES_WHY_MAX, "the engine: %s", w->engine.why);
        return false;
    }
    engine_job_game(w->engine.is->name, w->game);
    return said == UCI_STARTED && set_owners(w, why);
}

static enum err connect(struct engine_worker *w, char why[LANES_WHY_MAX])
{
    const struct engine_worker_options *o = w->options;
    char own[PROCESS_NAME_MAX];
    struct keys_client room;
    const struct keys_client *keys = NULL;
    process_name_default(own);
    const struct client_options client = {
        .role = PROTO_WORKER, .instance = clock_unique(), .name = o->name != NULL ? o->name : own};
    enum err err = cli_load_keys(o->table->keys_dir, KEYS_WORKER, &room, &keys, why);
    if (err == ERR_OK) {
        const struct lanes_address address = cli_table_address(o->table, keys);
        err =
            lanes_open_one(&w->session.lanes, &w->session.lane, &address, o->program, &client, why);
        keys_wipe(&room, sizeof room);
    }
    if (err == ERR_OK) {
        w->session.shards = lanes_shards(w->session.lanes);
        worker_core_open(&w->core, client.instance,
                         &(struct worker_patience){.report_ms = REPORT_MS});
    }
    return err;
}

static bool announce(struct engine_worker *w)
{
    const uint64_t until = clock_us() + WORKER_CONNECT_MS * UINT64_C(1000);
    while (client_shards_up(w->session.lane.client) < w->session.shards && clock_us() < until &&
           !atomic_load(w->options->stop)) {
        serve_shards(w);
        uci_engine_wait(&w->engine, &w->session.lane, -1, until);
    }
    if (!log_to_file(w->options->program, w->options->log)) {
        return false;
    }
    printf("ready\n");
    if (!log_flush(w->options->program, stdout, "standard output")) {
        return false;
    }
    w->was_said = true;
    w->said_up = client_shards_up(w->session.lane.client);
    log_line(w->options->program, "%s, %u of %u shards up", w->engine.is->name,
             (unsigned)w->said_up, w->session.shards);
    return true;
}

int engine_worker_serve(const struct engine_worker_options *options)
{
    char why[LANES_WHY_MAX] = "";
    struct engine_worker *w = memory_lines(sizeof *w);
    enum err err = w == NULL ? ERR_NOMEM : uci_engine_open(&w->engine, options->command);
    if (err != ERR_OK) {
        free(w);
        return log_fail(options->program, "--engine: %s",
                        err == ERR_SYNTAX ? "this is no command" : err_text(err));
    }
    w->options = options;
    bool ok = start(w, why) && connect(w, why) == ERR_OK && serve_metrics(w, why) == ERR_OK;
    if (!ok && !atomic_load(options->stop)) {
        log_fail(options->program, "%s", why);
    }
    if (ok && announce(w)) {
        while (!atomic_load(options->stop)) {
            serve_shards(w);
            serve_engine(w);
            step(w);
            say_shards(w);
            publish(w);
            const uint64_t due = lane_tick(&w->session.lane), now = clock_us();
            const uint64_t latest = now + WAIT_MS * UINT64_C(1000);
            uci_engine_wait(&w->engine, &w->session.lane, -1, due < latest ? due : latest);
        }
    } else {
        ok = atomic_load(options->stop);
    }
    if (w->running != NULL) {
        end_job(w, false);
    }
    searching_metrics_close(&w->metrics);
    cli_session_close(&w->session);
    uci_engine_close(&w->engine);
    free(w);
    return ok ? 0 : 1;
}
