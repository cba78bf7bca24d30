#include "worker/programs/engine/engine_job.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char between[] = "; ", new_game_name[] = "ucinewgame";

/* ---- settings ---- */

const char *engine_settings_get(const struct engine_settings *s, const char *name)
{
    for (unsigned i = 0; i < s->count; i++) {
        if (strcasecmp(s->at[i].name, name) == 0) {
            return s->at[i].value;
        }
    }
    return NULL;
}

bool engine_settings_put(struct engine_settings *s, const char *name, const char *value)
{
    unsigned i = 0;
    while (i < s->count && strcasecmp(s->at[i].name, name) != 0) {
        i++;
    }
    if (i == ENGINE_SETTINGS_MAX || strlen(name) >= UCI_NAME_MAX ||
        strlen(value) >= ENGINE_VALUE_MAX) {
        return false;
    }
    s->count += i == s->count;
    snprintf(s->at[i].name, sizeof s->at[i].name, "%s", name);
    snprintf(s->at[i].value, sizeof s->at[i].value, "%s", value);
    return true;
}

static bool is_listed(const char *const *list, const char *name)
{
    while (*list != NULL && strcasecmp(*list, name) != 0) {
        list++;
    }
    return *list != NULL;
}

/* Resources, times, and what is for people: they change no move's value, and each host has its own.
 */
static bool is_own(const char *name)
{
    static const char *const own[] = {"Threads",         "Hash",
                                      "Ponder",          "MultiPV",
                                      "Move Overhead",   "Minimum Thinking Time",
                                      "Slow Mover",      "nodestime",
                                      "NumaPolicy",      "Debug Log File",
                                      "Log File",        "UCI_Opponent",
                                      "UCI_EngineAbout", NULL};
    return is_listed(own, name);
}

/* Texts that name no file and no command. */
static bool is_harmless(const struct uci_option *option)
{
    static const char *const harmless[] = {"UCI_Variant", NULL};
    return option->kind != UCI_STRING || is_listed(harmless, option->name);
}

/* ---- for the front-end ---- */

void engine_job_game(const char *name, char game[ENGINE_GAME_MAX])
{
    snprintf(game, ENGINE_GAME_MAX, "%s%s", JOB_ENGINE_PREFIX, name);
}

static bool append(char *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool append(char *out, const char *format, ...)
{
    const size_t used = strlen(out), room = PROTO_TEXT_MAX + 1 - used;
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(out + used, room, format, arguments);
    va_end(arguments);
    return length >= 0 && (size_t)length < room;
}

bool engine_job_write(struct engine_job *job, const struct uci_engine *engine,
                      const struct engine_settings *set, const char *go, uint64_t new_game)
{
    engine_job_game(engine->is->name, job->game);
    job->search[0] = '\0';
    bool ok = append(job->search, "%s", go);
    for (unsigned i = 0; i < set->count && ok; i++) {
        const struct engine_setting *s = &set->at[i];
        const struct uci_option *option = uci_engine_option(engine, s->name);
        if (option != NULL && option->kind != UCI_BUTTON && !is_own(option->name) &&
            !uci_values_agree(s->value, option->normal)) {
            ok = strstr(s->value, between) == NULL &&
                 append(job->search, "%s%s=%s", between, option->name,
                        option->kind == UCI_STRING ? uci_last_name(s->value) : s->value);
        }
    }
    return ok && append(job->search, "%s%s=%" PRIx64, between, new_game_name, new_game);
}

/* ---- for a worker ---- */

/* The next piece; false: there is none. */
static bool next_piece(const char **rest, char piece[PROTO_TEXT_MAX + 1])
{
    const char *end = strstr(*rest, between);
    const size_t length = end != NULL ? (size_t)(end - *rest) : strlen(*rest);
    snprintf(piece, PROTO_TEXT_MAX + 1, "%.*s", (int)length, *rest);
    *rest += length + (end != NULL ? strlen(between) : 0);
    return length > 0;
}

/* The value of a name; false: it is not there. */
static bool find_value(const char *search, const char *name, char value[PROTO_TEXT_MAX + 1])
{
    char piece[PROTO_TEXT_MAX + 1];
    for (const char *rest = search; next_piece(&rest, piece);) {
        char *equals = strchr(piece, '=');
        if (equals != NULL && (*equals = '\0', strcasecmp(piece, name) == 0)) {
            snprintf(value, PROTO_TEXT_MAX + 1, "%s", equals + 1);
            return true;
        }
    }
    return false;
}

bool engine_job_go(const char *search, char go[PROTO_TEXT_MAX + 1], char why[ENGINE_WHY_TEXT_MAX])
{
    char piece[PROTO_TEXT_MAX + 1] = "", word[UCI_VALUE_MAX];
    const char *rest = search;
    struct uci_go asked;
    (void)next_piece(&rest, piece);
    bool ok = uci_begins(piece, "go", &rest) && uci_go_read(rest, &asked) &&
              uci_go_text(&asked, go, PROTO_TEXT_MAX + 1) && strcmp(go, piece) == 0;
    for (rest = asked.moves; ok && uci_next_word(&rest, word, sizeof word);) {
        ok = uci_is_move(word);
    }
    if (!ok) {
        snprintf(why, ENGINE_WHY_TEXT_MAX, "unknown limits");
    }
    return ok;
}

uint64_t engine_job_new_game(const char *search)
{
    char value[PROTO_TEXT_MAX + 1] = "0";
    (void)find_value(search, new_game_name, value);
    return strtoull(value, NULL, 16);
}

static bool has_name(const char *search, const struct uci_engine *engine,
                     char why[ENGINE_WHY_TEXT_MAX])
{
    char piece[PROTO_TEXT_MAX + 1];
    const char *rest = search;
    (void)next_piece(&rest, piece);
    while (next_piece(&rest, piece)) {
        piece[strcspn(piece, "=")] = '\0';
        if (strcmp(piece, new_game_name) != 0 && uci_engine_option(engine, piece) == NULL) {
            snprintf(why, ENGINE_WHY_TEXT_MAX, "its engine has no option '%.64s'", piece);
            return false;
        }
    }
    return true;
}

bool engine_job_settings(const char *search, const struct uci_engine *engine,
                         const struct engine_settings *owners, struct engine_settings *out,
                         char why[ENGINE_WHY_TEXT_MAX])
{
    out->count = 0;
    for (unsigned i = 0; i < engine->is->options; i++) {
        const struct uci_option *option = &engine->is->option[i];
        const char *own = engine_settings_get(owners, option->name);
        char wanted[PROTO_TEXT_MAX + 1];
        if (option->kind == UCI_BUTTON || is_own(option->name)) {
            continue;
        }
        if (!find_value(search, option->name, wanted)) {
            snprintf(wanted, sizeof wanted, "%s", option->normal);
        }
        const char *has = own != NULL ? own : option->normal;
        const bool is_ours = own != NULL || !is_harmless(option);
        if (is_ours ? !uci_values_agree(wanted, has) : !uci_option_takes(option, wanted)) {
            snprintf(why, ENGINE_WHY_TEXT_MAX, "its option %s is '%.60s', not '%.60s'",
                     option->name, is_ours ? has : "none of these", wanted);
            return false;
        }
        if (!is_ours && !engine_settings_put(out, option->name, wanted)) {
            snprintf(why, ENGINE_WHY_TEXT_MAX, "too many options");
            return false;
        }
    }
    return has_name(search, engine, why);
}

static bool is_printable(const char *text)
{
    while (*text >= ' ' && *text <= '~') {
        text++;
    }
    return *text == '\0';
}

bool engine_job_is_clean(const char *position, const char *search)
{
    const char *rest;
    return is_printable(position) && is_printable(search) &&
           (uci_begins(position, "startpos", &rest) || uci_begins(position, "fen", &rest));
}
