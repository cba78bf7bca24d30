#include "worker/programs/engine/engine_front.h"

#include "common/clock.h"
#include "common/log.h"
#include "common/signals.h"
#include "worker/engine/front_core.h"
#include "worker/programs/engine/engine_job.h"
#include "worker/programs/engine/engine_limits.h"
#include "worker/programs/engine/engine_rules.h"
#include "worker/programs/engine/engine_vote.h"
#include "worker/programs/gui.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum {
    VOICES_MAX = 1024, /* the engine's own is the first */
    NAMED_MAX = 64, /* workers that are left out, named once */
    SEEN_MAX = 64, /* moves that the own engine named in a search */
    STOPPED_MS = 1000, /* from the GUI's stop to a bestmove without the engine */
    FAILURES_MAX = 3, /* of the engine in one search: then it is not started again for it */
    NOBODY_MS = 1000, /* without engine and workers: workers may still come ... */
    NO_MOVE_MS = 10000, /* ... and those that are there may have no move yet */
    QUIT_MS = 500, /* for the engine's last words after "quit" ... */
    SILENT_MS = 10000, /* ... and between them at the end of the input */
    GRACE_MIN_MS = 50, /* for others to search their nodes, too, where no clock runs ... */
    GRACE_MAX_MS = 1000, /* ... at most as long as the own engine took */
    OUTLIVE_MS = 1000, /* a job ends by itself so long after its answer was due */
    REPORT_EVERY_US = 250000,
    HELPERS_EVERY_US = 250000, /* a worker that comes and goes does not fill the GUI's log ... */
    HELPERS_BURST_US = 16 * HELPERS_EVERY_US, /* ... but many may join at once */
    REFUSED_EVERY_US = 10000000,
    WAIT_MS = 50,
};

enum phase { FRONT_IDLE, FRONT_SEARCHING, FRONT_CLOSING };

struct front {
    /* fixed */
    const char *program;
    struct cli_session session;
    bool has_session;
    uint64_t instance;
    char *greeting; /* of the engine's first process */
    /* the GUI */
    struct line_reader input;
    bool is_leaving; /* "quit" */
    bool is_at_end; /* the input's: a search that ends by itself is awaited */
    uint64_t end_us; /* nothing is left to do; 0: something is */
    uint32_t end_at; /* the engine has said everything when it answers this question */
    unsigned owes_ready; /* answers, when this question is answered: */
    uint32_t ready_at;
    struct engine_settings set;
    char *position; /* what follows the word */
    uint64_t new_game;
    /* the engine */
    struct uci_engine engine;
    bool is_greeted;
    /* the search */
    enum phase phase;
    char *go; /* what follows the word */
    struct engine_limits limits;
    struct engine_rules rules;
    bool is_foreign; /* its moves have shown that our rules are not those of its game */
    uint64_t begin_us;
    bool is_begun; /* "go" was said to this process of the engine */
    bool owes_hit; /* "ponderhit" */
    bool is_stopped; /* the GUI said "stop" */
    bool is_done; /* the engine's answer is: */
    char own[UCI_VALUE_MAX]; /* what follows "bestmove" */
    unsigned failures;
    char seen[SEEN_MAX][UCI_MOVE_MAX];
    unsigned seens;
    struct engine_voice voice[VOICES_MAX];
    unsigned voices;
    /* its job */
    struct engine_job job;
    uint64_t job_id; /* 0: none is posted */
    bool is_job_open; /* not stopped */
    uint64_t wait_us; /* others search on until then; 0: they are stopped */
    struct front_core core;
    uint64_t report_us, refused_us, helpers_us;
    unsigned said_workers, said_shards;
    bool said_down;
    uint64_t said_refused;
    struct {
        uint64_t instance;
        char why[FRONT_WHY_MAX];
    } named[NAMED_MAX];
    unsigned names;
};

static atomic_bool quitting;

static void replace(char **text, const char *with)
{
    char *copy = strdup(with);
    if (copy != NULL) {
        free(*text);
        *text = copy;
    }
}

/* For "stop" or "ponderhit". */
static bool answer_waits(const struct front *f)
{
    return f->limits.go.infinite || f->limits.go.ponder;
}

/* ---- options ---- */

static const char *value_of(const struct front *f, const char *name)
{
    const struct uci_option *option = uci_engine_option(&f->engine, name);
    const char *value = engine_settings_get(&f->set, name);
    return value != NULL ? value : option != NULL ? option->normal : "";
}

static bool is_chess(const struct front *f)
{
    const char *variant = value_of(f, "UCI_Variant");
    return variant[0] == '\0' || strcasecmp(variant, "chess") == 0 ||
           strcasecmp(variant, "standard") == 0;
}

static bool is_chess960(const struct front *f)
{
    return strcasecmp(value_of(f, "UCI_Chess960"), "true") == 0;
}

/* An engine that is to play weakly needs no help. */
static bool is_weakened(const struct front *f)
{
    const struct uci_option *skill = uci_engine_option(&f->engine, "Skill Level");
    return strcasecmp(value_of(f, "UCI_LimitStrength"), "true") == 0 ||
           (skill != NULL && strtoll(value_of(f, "Skill Level"), NULL, 10) < skill->max);
}

static void set_option(struct front *f, const char *words)
{
    char *name, *value, *copy = strdup(words);
    const bool has_value = copy != NULL && uci_cut_option(copy, &name, &value) && value != NULL;
    if (has_value && !engine_settings_put(&f->set, name, value)) {
        printf("info string error: option %.40s... is too long, and left as it is\n", name);
    } else {
        uci_engine_send(&f->engine, "setoption %s", words);
        f->is_foreign &= !has_value || strcasecmp(name, "UCI_Variant") != 0;
    }
    free(copy);
}

/* To a new process of the engine what the old one was told. */
static void repeat_all(struct front *f)
{
    for (unsigned i = 0; i < f->set.count; i++) {
        uci_engine_send(&f->engine, "setoption name %s value %s", f->set.at[i].name,
                        f->set.at[i].value);
    }
    uci_engine_send(&f->engine, "position %s", f->position);
}

/* ---- what others report ---- */

/* Once for each reason. */
static void name_left_out(struct front *f, const struct proto_job_report *report)
{
    char why[FRONT_WHY_MAX], name[CLIENT_NAME_MAX + 1];
    unsigned i = 0;
    proto_text_printable(report->why, why, sizeof why);
    proto_text_printable(report->name, name, sizeof name);
    while (i < f->names && f->named[i].instance != report->instance) {
        i++;
    }
    if (i == NAMED_MAX || (i < f->names && strcmp(f->named[i].why, why) == 0)) {
        return;
    }
    f->names += i == f->names;
    f->named[i].instance = report->instance;
    snprintf(f->named[i].why, sizeof f->named[i].why, "%s", why);
    printf("info string worker %s is left out: %s\n", name, why);
}

static void take_report(struct front *f, const struct proto_job_report *report, uint64_t now)
{
    unsigned i = 1;
    if (f->job_id == 0 || report->job != f->job_id || proto_report_fault(report) != NULL) {
        return;
    }
    if (report->state == PROTO_JOB_REFUSED) {
        name_left_out(f, report);
        return;
    }
    while (i < f->voices && f->voice[i].instance != report->instance) {
        i++;
    }
    if (i == VOICES_MAX) {
        return;
    }
    struct engine_voice *v = &f->voice[i];
    const struct proto_job_report last = {.state = v->state, .nodes = v->nodes};
    const bool is_new = i == f->voices;
    if (is_new) {
        *v = (struct engine_voice){.instance = report->instance};
        f->voices++;
    }
    v->received_us = now;
    if (!is_new && !proto_report_is_newer(report, &last)) {
        return;
    }
    v->state = report->state;
    v->nodes = report->nodes;
    v->depth = report->depth;
    v->score = report->score;
    proto_text_printable(report->name, v->name, sizeof v->name);
    proto_text_printable(report->line, v->line, sizeof v->line);
    const char *rest = v->line;
    (void)uci_next_word(&rest, v->move, sizeof v->move);
}

static void serve_shards(struct front *f, uint64_t now)
{
    struct client_event event;
    while (f->has_session && lane_next(&f->session.lane, &event)) {
        front_core_event(&f->core, &event, now);
        if (event.kind == CLIENT_JOB_REPORT) {
            take_report(f, event.job_report, now);
        }
    }
    const uint64_t fresh = f->core.refused & ~f->said_refused;
    if (f->job_id != 0 && fresh != 0 && now >= f->refused_us) {
        const unsigned shard = (unsigned)__builtin_ctzll(fresh);
        char name[LANES_NAME_MAX];
        lanes_shard_name(f->session.lanes, shard, name);
        printf("info string shard %s refused the job: %s\n", name, f->core.why[shard]);
        f->said_refused |= fresh;
        f->refused_us = now + REFUSED_EVERY_US;
    }
}

/* Helpers that come and go, and for those who watch the cluster what the GUI sees. */
static void publish(struct front *f, uint64_t now)
{
    struct front_sum sum;
    if (f->job_id == 0 || !f->is_job_open) {
        return;
    }
    front_core_sum(&f->core, now, &sum);
    const struct lane *lane = &f->session.lane;
    const unsigned up = client_shards_up(lane->client);
    if ((sum.workers != f->said_workers || up != f->said_shards) &&
        f->helpers_us < now + HELPERS_BURST_US) {
        f->helpers_us = (f->helpers_us > now ? f->helpers_us : now) + HELPERS_EVERY_US;
        f->said_workers = sum.workers;
        f->said_shards = up;
        printf("info string workers %u shards %u/%u\n", sum.workers, up, f->session.shards);
    }
    if (now >= f->report_us) {
        const struct engine_voice *own = &f->voice[0];
        struct proto_job_report report = {.job = f->job_id, .instance = f->instance};
        f->report_us = now + REPORT_EVERY_US;
        job_report_set(&report, &(struct counters){.nodes = own->nodes});
        client_job_report(lane->client, &report, now);
        report.instance = 0;
        job_report_set(&report, &(struct counters){.nodes = own->nodes + sum.counters.nodes});
        report.depth = (uint8_t)own->depth;
        report.score = (int16_t)own->score;
        report.line = proto_text_of(own->line);
        client_job_report(lane->client, &report, now);
    }
}

/* ---- the job ---- */

static void post_job(struct front *f, bool fits, uint64_t now)
{
    const uint64_t wanted_us = f->limits.answer_us;
    f->job_id = 0;
    f->is_job_open = false;
    if (!f->has_session || is_weakened(f)) {
        return;
    }
    if (!fits || !engine_job_write(&f->job, &f->engine, &f->set, f->limits.others, f->new_game) ||
        !engine_rules_shorten(f->position, is_chess(f), is_chess960(f), f->job.position)) {
        printf("info string this search does not fit into a job: only this host searches it\n");
        return;
    }
    const struct proto_job post = {
        .job = clock_unique(),
        .game = proto_text_of(f->job.game),
        .position = proto_text_of(f->job.position),
        .algorithm = proto_text_of(f->job.search),
        .depth = (uint8_t)f->limits.depth,
        .remote_depth = PROTO_REMOTE_DEPTH_AUTO,
        .time_ms = wanted_us == 0
                       ? 0
                       : (uint32_t)((wanted_us > now ? wanted_us - now : 0) / 1000 + OUTLIVE_MS),
        .nodes = f->limits.nodes,
    };
    if (client_job_post(f->session.lane.client, &post, now) == ERR_OK) {
        f->job_id = post.job;
        f->is_job_open = true;
        f->said_refused = 0;
        front_core_begin(&f->core, post.job);
    }
    const bool is_down = client_shards_up(f->session.lane.client) == 0;
    if (is_down && !f->said_down) {
        char what[LANES_NONE_UP_MAX];
        lanes_none_up(f->session.lanes, what);
        printf("info string %s; searching on this machine until one does\n", what);
    }
    f->said_down = is_down;
}

static void stop_job(struct front *f, uint64_t now)
{
    if (f->is_job_open) {
        client_job_stop(f->session.lane.client, f->job_id, now);
        front_core_stop(&f->core, f->limits.has_clock ? FRONT_WAIT_TIMED_MS : FRONT_WAIT_MS, now);
        f->is_job_open = false;
    }
    f->wait_us = 0;
}

/* ---- the answer ---- */

static bool is_seen(const struct front *f, const char *move)
{
    unsigned i = 0;
    while (i < f->seens && strcmp(f->seen[i], move) != 0) {
        i++;
    }
    return i < f->seens;
}

static void see(struct front *f, const char *move)
{
    if (f->seens < SEEN_MAX && uci_is_move(move) && !is_seen(f, move)) {
        snprintf(f->seen[f->seens++], UCI_MOVE_MAX, "%s", move);
    }
}

static bool may_play(const struct front *f, const char *move, bool is_own)
{
    char between[UCI_MOVE_MAX + 2];
    snprintf(between, sizeof between, " %s ", move);
    if (f->limits.go.moves[0] != '\0' && strstr(f->limits.go.moves, between) == NULL) {
        return false;
    }
    return f->rules.are_known ? engine_rules_allow(&f->rules, move, !is_own) : is_seen(f, move);
}

/* Another's line, which no line of our engine has shown. */
static void say_line(struct front *f, struct engine_voice *v, uint64_t now)
{
    struct front_sum sum;
    char score[32];
    front_core_sum(&f->core, now, &sum);
    const uint64_t nodes = f->voice[0].nodes + sum.counters.nodes;
    const uint64_t us = now > f->begin_us ? now - f->begin_us : 1;
    uci_score_text(v->score, score, sizeof score);
    engine_rules_cut(&f->rules, v->line);
    printf("info depth %u score %s nodes %" PRIu64 " nps %.0f time %" PRIu64 " pv %s\n", v->depth,
           score, nodes, 1e6 * (double)nodes / (double)us, us / 1000, v->line);
}

static void say_move(struct front *f, const struct engine_voice *v)
{
    char ponder[UCI_MOVE_MAX] = "";
    const char *rest = v->line;
    (void)uci_next_word(&rest, ponder, sizeof ponder);
    if (strcmp(ponder, v->move) != 0 || !f->rules.are_known ||
        !uci_next_word(&rest, ponder, sizeof ponder)) {
        ponder[0] = '\0';
    }
    printf("bestmove %s%s%s\n", v->move, ponder[0] != '\0' ? " ponder " : "", ponder);
}

static void answer(struct front *f, uint64_t now)
{
    struct engine_voice *own = &f->voice[0];
    char move[GAME_MOVE_TEXT_MAX] = "", first[UCI_MOVE_MAX] = "";
    const char *rest = f->own;
    (void)uci_next_word(&rest, move, sizeof move);
    rest = own->line;
    (void)uci_next_word(&rest, first, sizeof first);
    /* A startpos shows which game it is, if neither option nor position says it. */
    bool is_foreign =
        is_seen(f, first) && uci_begins(f->position, "startpos", &rest) && *rest == '\0';
    for (unsigned i = 0; i < f->seens; i++) {
        is_foreign &= !engine_rules_allow(&f->rules, f->seen[i], false);
    }
    f->is_foreign |= is_foreign && f->rules.are_known;
    f->rules.are_known &= !is_foreign;
    const bool is_own = f->is_done && may_play(f, move, true);
    snprintf(own->move, sizeof own->move, "%s",
             is_own                     ? move
             : may_play(f, first, true) ? first
                                        : "");
    for (unsigned i = 1; i < f->voices; i++) {
        struct engine_voice *v = &f->voice[i];
        v->move[0] = v->depth > 0 && may_play(f, v->move, false) ? v->move[0] : '\0';
    }
    /* An engine that does not play what its last line says has a reason: a book, or a rule. */
    const unsigned best = is_own && strcmp(move, first) != 0 ? 0 : engine_vote(f->voice, f->voices);
    struct engine_voice *v = &f->voice[best];
    if (best == 0 && is_own) {
        printf("bestmove %s\n", f->own);
    } else if (v->move[0] != '\0') {
        if (best != 0) {
            say_line(f, v, now);
        }
        engine_rules_cut(&f->rules, v->line);
        say_move(f, v);
    } else if (engine_rules_any(&f->rules, move)) {
        const char *only = f->limits.go.moves;
        if (uci_next_word(&only, first, sizeof first) &&
            engine_rules_allow(&f->rules, first, false)) {
            snprintf(move, sizeof move, "%s", first);
        }
        printf("bestmove %s\n", move);
    } else {
        const bool is_said = f->is_done && !f->rules.are_known && f->own[0] != '\0';
        printf("bestmove %s\n", is_said ? f->own : "(none)");
    }
    f->phase = FRONT_IDLE;
    f->job_id = 0;
    if (f->is_begun && !f->is_done) { /* if it does not hear, it is killed */
        uci_engine_hurry(&f->engine, now);
    }
}

static void close_search(struct front *f, uint64_t now)
{
    const uint64_t us = now - f->begin_us, most = GRACE_MAX_MS * UINT64_C(1000);
    const uint64_t least = GRACE_MIN_MS * UINT64_C(1000);
    f->phase = FRONT_CLOSING;
    if (f->is_job_open && f->is_done && f->limits.nodes > 0 && !f->limits.has_clock &&
        !f->is_stopped) {
        f->wait_us = now + (us < least ? least : us < most ? us : most);
    } else {
        stop_job(f, now);
    }
}

static bool others_search(const struct front *f, uint64_t now)
{
    unsigned i = 1;
    while (i < f->voices && (f->voice[i].state != PROTO_JOB_SEARCHING ||
                             now >= clock_after_ms(f->voice[i].received_us, FRONT_ALIVE_MS))) {
        i++;
    }
    return i < f->voices;
}

static void request_stop(struct front *f, uint64_t now)
{
    f->is_stopped = true;
    f->limits.go.infinite = f->limits.go.ponder = false;
    if (f->phase != FRONT_SEARCHING) {
        stop_job(f, now);
        return;
    }
    if (f->is_begun && !f->is_done) {
        uci_engine_stop(&f->engine, now);
        const uint64_t due = clock_after_ms(now, STOPPED_MS);
        f->limits.answer_us =
            f->limits.answer_us != 0 && f->limits.answer_us < due ? f->limits.answer_us : due;
        f->limits.stop_us = 0;
    } else {
        close_search(f, now);
    }
}

/* ---- the search ---- */

static bool is_given_up(const struct front *f)
{
    return f->failures >= FAILURES_MAX;
}

/* Sends the engine the limits that are left, if it is idle and has not been told. */
static void pass_go(struct front *f, uint64_t now)
{
    const size_t size = strlen(f->go) + 128;
    char *command = NULL;
    if (f->is_begun || f->engine.state != UCI_ENGINE_IDLE || is_given_up(f) ||
        (command = malloc(size)) == NULL) {
        return;
    }
    engine_limits_rest(&f->limits, f->go, engine_rules_is_black(f->position), now, command, size);
    uci_engine_go(&f->engine, command, now);
    f->is_begun = true;
    free(command);
}

static void begin(struct front *f, const char *words, uint64_t now)
{
    const bool is_black = engine_rules_is_black(f->position);
    replace(&f->go, words);
    const bool fits = engine_limits_read(f->go, is_black, now, &f->limits);
    engine_rules_set(&f->rules, f->position, is_chess(f) && !f->is_foreign, is_chess960(f));
    f->begin_us = now;
    f->is_begun = f->owes_hit = f->is_stopped = f->is_done = false;
    f->own[0] = '\0';
    f->failures = f->seens = 0;
    f->wait_us = 0;
    f->voice[0] = (struct engine_voice){.instance = 0};
    f->voices = 1;
    f->phase = FRONT_SEARCHING;
    post_job(f, fits, now);
    pass_go(f, now); /* "stop" may be the next line */
}

static void hit(struct front *f, uint64_t now)
{
    if (f->phase == FRONT_IDLE || !f->limits.go.ponder) {
        return;
    }
    engine_limits_hit(&f->limits, engine_rules_is_black(f->position), now);
    if (f->is_begun && f->engine.state == UCI_ENGINE_SEARCHING) {
        uci_engine_send(&f->engine, "ponderhit");
    } else {
        f->owes_hit = f->is_begun && !f->is_done;
    }
    if (f->is_done) {
        close_search(f, now);
    }
}

/* Without the own engine: when the others' moves are to be enough. */
static bool is_enough(const struct front *f, uint64_t now)
{
    const uint64_t passed = now - f->limits.begin_us;
    const bool is_searched = others_search(f, now);
    unsigned deepest = 0;
    for (unsigned i = 1; i < f->voices; i++) {
        deepest = f->voice[i].depth > deepest ? f->voice[i].depth : deepest;
    }
    if (deepest > 0 && ((f->limits.depth > 0 && deepest >= f->limits.depth) ||
                        (f->limits.think_us > 0 && passed >= f->limits.think_us))) {
        return true;
    }
    return (deepest == 0 && passed >= NO_MOVE_MS * UINT64_C(1000)) ||
           (!is_searched && passed >= NOBODY_MS * UINT64_C(1000));
}

static void search_on(struct front *f, uint64_t now)
{
    const bool is_held = answer_waits(f);
    pass_go(f, now);
    if (f->limits.stop_us != 0 && now >= f->limits.stop_us && !is_held) {
        f->limits.stop_us = 0;
        if (f->is_begun && !f->is_done) {
            uci_engine_stop(&f->engine, now);
        }
    }
    if ((f->limits.answer_us != 0 && now >= f->limits.answer_us && !is_held) ||
        (is_given_up(f) && !is_held && is_enough(f, now))) {
        close_search(f, now);
    }
}

static void step(struct front *f, uint64_t now)
{
    if (f->phase == FRONT_SEARCHING) {
        search_on(f, now);
    }
    if (f->phase == FRONT_CLOSING && f->is_job_open &&
        (!others_search(f, now) || now >= f->wait_us)) {
        stop_job(f, now);
    }
    if (f->phase == FRONT_CLOSING && !f->is_job_open) {
        const unsigned up = f->has_session ? client_shards_up(f->session.lane.client) : 0;
        if (f->job_id == 0 || !front_core_waits(&f->core, up, now)) {
            answer(f, now);
        }
    }
}

/* ---- the own engine ---- */

static void say_info(struct front *f, const char *line, uint64_t now)
{
    struct uci_info info;
    struct front_sum sum = {.workers = 0};
    char first[UCI_MOVE_MAX] = "", text[UCI_ENGINE_LINE_MAX + 64];
    const bool is_info = uci_info_read(line, &info);
    if (!is_info || f->phase == FRONT_IDLE || !f->is_begun) {
        if (!is_info || !uci_engine_is_busy(&f->engine)) { /* not of a search that was answered */
            printf("%s\n", line);
        }
        return;
    }
    struct engine_voice *own = &f->voice[0];
    const char *rest = info.line;
    if (uci_next_word(&rest, first, sizeof first)) {
        see(f, first);
    }
    own->nodes = info.has_nodes ? info.nodes : own->nodes;
    if (info.has_score && info.multipv == 1 && first[0] != '\0') {
        own->depth = info.depth;
        own->score = info.score;
        snprintf(own->line, sizeof own->line, "%s", info.line);
    }
    if (f->job_id != 0) {
        front_core_sum(&f->core, now, &sum);
    }
    if (sum.counters.nodes == 0) {
        printf("%s\n", line);
        return;
    }
    const double us = now > f->begin_us ? (double)(now - f->begin_us) : 1;
    uci_info_total(line, info.nodes + sum.counters.nodes,
                   (double)info.nps + 1e6 * (double)sum.counters.nodes / us, text, sizeof text);
    printf("%s\n", text);
}

static void on_bestmove(struct front *f, const char *line, uint64_t now)
{
    const char *rest;
    char move[UCI_MOVE_MAX] = "";
    if (f->phase == FRONT_IDLE || !f->is_begun || !uci_begins(line, "bestmove", &rest)) {
        return;
    }
    snprintf(f->own, sizeof f->own, "%s", rest);
    (void)uci_next_word(&rest, move, sizeof move);
    see(f, move);
    f->is_done = true;
    if (f->phase == FRONT_SEARCHING && !answer_waits(f)) {
        close_search(f, now);
    }
}

static void on_started(struct front *f, uint64_t now)
{
    if (!f->is_greeted) {
        replace(&f->greeting, f->engine.is->text);
        f->is_greeted = true;
    } else {
        repeat_all(f);
    }
    if (f->owes_ready > 0) {
        f->ready_at = uci_engine_ask(&f->engine, now);
    }
}

static void on_death(struct front *f)
{
    if (f->is_greeted) {
        printf("info string the engine: %s%s\n", f->engine.why,
               f->engine.deaths > 1 ? "" : "; it is started again");
    }
    if (f->phase != FRONT_IDLE && !f->is_done) {
        f->failures++;
        f->is_begun = f->owes_hit = false;
    }
}

static void serve_engine(struct front *f, uint64_t now)
{
    char *line;
    enum uci_said said;
    while ((said = uci_engine_next(&f->engine, now, &line)) != UCI_NOTHING) {
        if (said == UCI_LINE) {
            say_info(f, line, now);
        } else if (said == UCI_BANNER && !f->is_greeted) {
            printf("%s\n", line);
        } else if (said == UCI_BESTMOVE) {
            on_bestmove(f, line, now);
        } else if (said == UCI_STARTED) {
            on_started(f, now);
        } else if (said == UCI_READY && f->owes_hit && f->engine.state == UCI_ENGINE_SEARCHING) {
            f->owes_hit = false;
            uci_engine_send(&f->engine, "ponderhit");
        } else if (said == UCI_DIED) {
            on_death(f);
        }
    }
    const bool is_dead = f->engine.state == UCI_ENGINE_DEAD;
    const bool is_ready = is_dead ? f->engine.deaths >= FAILURES_MAX
                                  : f->engine.state != UCI_ENGINE_STARTING &&
                                        (int32_t)(f->engine.done - f->ready_at) >= 0;
    for (; f->owes_ready > 0 && is_ready; f->owes_ready--) {
        printf("readyok\n");
    }
    uci_engine_start(&f->engine, now);
}

/* ---- the GUI ---- */

/* False: it waits for the end of the search, and is to be obeyed then. */
static bool obey(struct front *f, const char *line, uint64_t now)
{
    const char *rest = "", *number;
    const bool is_go = uci_begins(line, "go", &rest);
    const bool is_perft = is_go && uci_begins(rest, "perft", &number);
    const bool is_position = uci_begins(line, "position", &rest);
    const bool is_option = uci_begins(line, "setoption", &rest);
    const bool is_new = uci_begins(line, "ucinewgame", &rest);
    if (f->phase != FRONT_IDLE && (is_go || is_position || is_option || is_new)) {
        if (!f->is_stopped) {
            request_stop(f, now);
        }
        return false;
    }
    if (uci_begins(line, "quit", &rest)) {
        f->is_leaving = true;
    } else if (uci_begins(line, "stop", &rest)) {
        if (f->phase != FRONT_IDLE) {
            request_stop(f, now);
        }
    } else if (uci_begins(line, "ponderhit", &rest)) {
        hit(f, now);
    } else if (uci_begins(line, "uci", &rest)) {
        printf("%suciok\n", f->greeting);
    } else if (uci_begins(line, "isready", &rest)) {
        f->owes_ready++;
        f->ready_at = uci_engine_ask(&f->engine, now);
    } else if (is_option) {
        set_option(f, rest);
    } else if (is_go && f->position[0] == '\0') {
        printf("info string error: no position: the last one was refused\n%s",
               is_perft ? "" : "bestmove (none)\n");
    } else if (is_go && !is_perft) {
        begin(f, rest, now);
    } else if (line[strspn(line, " \t")] != '\0') { /* CR CR LF makes blank lines */
        if (is_position) {
            replace(&f->position, rest);
        } else if (is_new) {
            f->new_game = clock_unique();
        }
        uci_engine_send(&f->engine, "%s", line);
    }
    return true;
}

/* Lines of the GUI one by one; `held` waits for the search's end. */
static void serve_gui(struct front *f, const char **held)
{
    const uint64_t now = clock_us();
    while (f->is_greeted && !f->is_leaving && !f->is_at_end) {
        const char *line = *held != NULL ? *held : line_reader_next(&f->input), *rest;
        if (line == NULL) {
            f->is_at_end = f->input.has_ended;
            break;
        }
        if (*held == NULL && f->input.is_cut) {
            const bool is_position = uci_begins(line, "position", &rest);
            printf("info string error: a line is longer than %zu bytes%s\n", f->input.longest,
                   is_position ? "; there is no position until the next one" : "");
            if (!is_position) {
                continue;
            }
            line = "position";
        }
        *held = obey(f, line, now) ? NULL : line;
        if (*held != NULL) {
            break;
        }
    }
}

/* ---- begin and end ---- */

static enum err connect(struct front *f, const struct cli_table *table, char why[LANES_WHY_MAX])
{
    const struct client_options client = {.role = PROTO_FRONT, .instance = clock_unique()};
    f->instance = client.instance;
    if (!cli_table_is_given(table)) {
        return ERR_OK;
    }
    enum err err =
        cli_session_open(&f->session, table, KEYS_FRONT, f->program, "engine", client, why);
    f->has_session = err == ERR_OK;
    return err;
}

/* Whether everything was said after the last command. */
static bool has_ended(struct front *f, bool is_leaving, uint64_t now)
{
    if (f->phase != FRONT_IDLE || !(is_leaving || f->is_at_end)) {
        return false;
    }
    if (f->end_us == 0) {
        f->end_us = clock_after_ms(now, SILENT_MS);
        f->end_at = uci_engine_ask(&f->engine, now);
    }
    const uint64_t until =
        is_leaving ? clock_after_ms(now, QUIT_MS) : clock_after_ms(f->engine.active_us, SILENT_MS);
    const bool is_moved = is_leaving ? until < f->end_us : until > f->end_us;
    f->end_us = is_moved ? until : f->end_us;
    return now >= f->end_us || (f->owes_ready == 0 && (f->engine.state <= UCI_ENGINE_STARTING ||
                                                       (int32_t)(f->engine.done - f->end_at) >= 0));
}

/* Nobody reads what is printed any more. */
static bool is_output_gone(void)
{
    struct pollfd out = {.fd = STDOUT_FILENO};
    return ferror(stdout) || (poll(&out, 1, 0) > 0 && (out.revents & (POLLERR | POLLHUP)) != 0);
}

static void run(struct front *f)
{
    const char *held = NULL;
    bool reads = false;
    for (;;) {
        uint64_t now = clock_us(), due = now + WAIT_MS * UINT64_C(1000);
        if (reads) {
            (void)line_reader_fill(&f->input, STDIN_FILENO);
        }
        serve_shards(f, now);
        serve_engine(f, now);
        serve_gui(f, &held);
        now = clock_us(); /* a search may have begun */
        const bool is_leaving =
            f->is_leaving || atomic_load(&quitting) || (f->is_at_end && answer_waits(f));
        if (is_leaving && f->phase != FRONT_IDLE && !f->is_stopped) {
            request_stop(f, now);
        }
        step(f, now);
        publish(f, now);
        if (f->has_session) {
            const uint64_t tick = lane_tick(&f->session.lane);
            due = tick < due ? tick : due;
        }
        if (has_ended(f, is_leaving, now) || is_output_gone() ||
            (!f->is_greeted && f->engine.deaths >= 1)) {
            return;
        }
        const bool is_soon = f->phase == FRONT_CLOSING || (held != NULL && f->phase == FRONT_IDLE);
        const uint64_t soon = now + (is_soon ? 1000 : WAIT_MS * UINT64_C(1000));
        const uint64_t clock = f->limits.stop_us != 0 ? f->limits.stop_us : f->limits.answer_us;
        due = soon < due ? soon : due;
        due = f->phase == FRONT_SEARCHING && clock != 0 && !answer_waits(f) && clock < due ? clock
                                                                                           : due;
        const bool takes = held == NULL && !f->input.has_ended && !is_leaving && f->is_greeted;
        reads = uci_engine_wait(&f->engine, f->has_session ? &f->session.lane : NULL,
                                takes ? STDIN_FILENO : -1, due);
    }
}

int engine_front_serve(const char *program, const char *command, const struct cli_table *table)
{
    char why[LANES_WHY_MAX] = "";
    struct front *f = calloc(1, sizeof *f);
    enum err err = f == NULL ? ERR_NOMEM : uci_engine_open(&f->engine, command);
    if (err != ERR_OK) {
        free(f);
        return log_fail(program, "--engine: %s",
                        err == ERR_SYNTAX ? "this is no command" : err_text(err));
    }
    f->program = program;
    f->new_game = clock_unique();
    replace(&f->position, "startpos");
    replace(&f->greeting, "");
    replace(&f->go, "");
    err = !line_reader_open(&f->input, GUI_LINE_MAX) || f->position == NULL ||
                  f->greeting == NULL || f->go == NULL
              ? ERR_NOMEM
              : front_core_open(&f->core, 0);
    err = err != ERR_OK ? err : connect(f, table, why);
    if (err == ERR_OK) {
        signals_end_by(&quitting);
        setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
        uci_engine_start(&f->engine, clock_us());
        run(f);
        if (!f->is_greeted && !atomic_load(&quitting)) {
            snprintf(why, sizeof why, "the engine: %s", f->engine.why);
            err = ERR_ABSENT;
        }
    }
    if (err != ERR_OK) {
        log_fail(program, "%s", why[0] != '\0' ? why : err_text(err));
    }
    cli_session_close(&f->session);
    uci_engine_close(&f->engine);
    engine_rules_free(&f->rules);
    front_core_close(&f->core);
    line_reader_close(&f->input);
    free(f->position);
    free(f->greeting);
    free(f->go);
    free(f);
    return err == ERR_OK ? 0 : 1;
}
