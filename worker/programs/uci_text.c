#include "worker/programs/uci_text.h"

#include "worker/games/chess/chess.h"
#include "worker/programs/score.h"
#include "worker/search/search.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    MOVES_LEFT = 28,
    STALL_MS = 200, /* a busy machine may let a program wait for so long, now and then */
    ANSWER_US = 600,
};

static const char blanks[] = " \t";

bool uci_begins(const char *line, const char *word, const char **rest)
{
    const size_t length = strlen(word);
    line += strspn(line, blanks);
    if (strncmp(line, word, length) != 0 ||
        (line[length] != '\0' && strchr(blanks, line[length]) == NULL)) {
        return false;
    }
    *rest = line + length + strspn(line + length, blanks);
    return true;
}

bool uci_next_word(const char **rest, char *word, size_t size)
{
    const char *at = *rest + strspn(*rest, blanks);
    const size_t length = strcspn(at, blanks);
    *rest = at + length + strspn(at + length, blanks);
    snprintf(word, size, "%.*s", (int)length, at);
    return length > 0;
}

bool uci_is_move(const char *word)
{
    const size_t length = strlen(word);
    for (const char *at = word; *at != '\0'; at++) {
        if (!isalnum((unsigned char)*at) && strchr("@+=-", *at) == NULL) {
            return false;
        }
    }
    return length >= 3 && length < UCI_MOVE_MAX;
}

/* ---- lines of a search ---- */

static int clamp(long long value, int most)
{
    return value > most ? most : value < -most ? -most : (int)value;
}

static uint64_t natural(const char *word)
{
    const long long value = strtoll(word, NULL, 10);
    return value < 0 ? 0 : value >> 46 != 0 ? UINT64_C(1) << 46 : (uint64_t)value;
}

/* The score of a mate in so many moves; in 0 the side to move is mated. */
static int mate_score(long long moves)
{
    const int most = (GAME_MATE - GAME_MATE_MIN - 1) / 2, n = clamp(moves, most);
    return n > 0 ? GAME_MATE - (2 * n - 1) : -GAME_MATE - 2 * n;
}

static void read_score(const char **rest, struct uci_info *info)
{
    char kind[16] = "", number[32] = "", after[16];
    const char *next;
    (void)uci_next_word(rest, kind, sizeof kind);
    const bool is_mate = strcmp(kind, "mate") == 0;
    if ((!is_mate && strcmp(kind, "cp") != 0) || !uci_next_word(rest, number, sizeof number)) {
        return;
    }
    next = *rest;
    const long long value = strtoll(number, NULL, 10);
    const bool is_bound = uci_next_word(&next, after, sizeof after) &&
                          (strcmp(after, "lowerbound") == 0 || strcmp(after, "upperbound") == 0);
    info->has_score = !is_bound;
    info->score = is_mate ? mate_score(value) : clamp(value, GAME_MATE_MIN - 1);
}

bool uci_info_read(const char *text, struct uci_info *out)
{
    struct uci_info info = {.multipv = 1, .line = ""};
    const char *rest;
    char word[32], number[32];
    if (!uci_begins(text, "info", &rest)) {
        return false;
    }
    while (uci_next_word(&rest, word, sizeof word)) {
        if (strcmp(word, "string") == 0) {
            return false;
        }
        if (strcmp(word, "pv") == 0) {
            info.line = rest;
            break;
        }
        if (strcmp(word, "score") == 0) {
            read_score(&rest, &info);
            continue;
        }
        const bool is_depth = strcmp(word, "depth") == 0, is_nodes = strcmp(word, "nodes") == 0;
        const bool is_nps = strcmp(word, "nps") == 0, is_number = strcmp(word, "multipv") == 0;
        if ((is_depth || is_nodes || is_nps || is_number) &&
            uci_next_word(&rest, number, sizeof number)) {
            const uint64_t value = natural(number);
            info.depth = is_depth ? (unsigned)(value < 250 ? value : 250) : info.depth;
            info.multipv = is_number ? (unsigned)(value < 1000 ? value : 1000) : info.multipv;
            info.nodes = is_nodes ? value : info.nodes;
            info.has_nodes |= is_nodes;
            info.nps = is_nps ? value : info.nps;
        }
    }
    *out = info;
    return true;
}

void uci_info_total(const char *text, uint64_t nodes, double nps, char *out, size_t size)
{
    size_t used = 0;
    out[0] = '\0';
    while (*text != '\0' && used < size) {
        const size_t gap = strspn(text, blanks), length = strcspn(text + gap, blanks);
        const char *word = text + gap, *rest = word;
        const bool is_nodes = uci_begins(word, "nodes", &rest);
        const bool is_other = is_nodes || uci_begins(word, "nps", &rest);
        if (uci_begins(word, "pv", &rest) || uci_begins(word, "string", &rest)) {
            snprintf(out + used, size - used, "%s", text);
            return;
        }
        if (is_other && isdigit((unsigned char)*rest)) {
            used += (size_t)snprintf(out + used, size - used, "%.*s %.0f", (int)(gap + length),
                                     text, is_nodes ? (double)nodes : nps);
            text = rest + strcspn(rest, blanks);
        } else {
            used += (size_t)snprintf(out + used, size - used, "%.*s", (int)(gap + length), text);
            text = word + length;
        }
    }
}

void uci_score_text(int score, char *out, size_t size)
{
    int64_t value;
    const char *kind = score_kind(&game_chess, score, &value);
    snprintf(out, size, "%s %" PRId64, kind, value);
}

/* ---- "go" ---- */

static const char *const limit_name[UCI_LIMITS] = {
    [UCI_WTIME] = "wtime",         [UCI_BTIME] = "btime",       [UCI_WINC] = "winc",
    [UCI_BINC] = "binc",           [UCI_DEPTH] = "depth",       [UCI_NODES] = "nodes",
    [UCI_MOVESTOGO] = "movestogo", [UCI_MOVETIME] = "movetime", [UCI_MATE] = "mate",
};

bool uci_go_read(const char *words, struct uci_go *out)
{
    static const int64_t most = INT64_MAX / 8;
    struct uci_go go = {.moves = ""};
    char word[UCI_VALUE_MAX];
    bool are_moves = false, fits = true;
    for (unsigned i = 0; i < UCI_LIMITS; i++) {
        go.limit[i] = UCI_NOT_GIVEN;
    }
    while (uci_next_word(&words, word, sizeof word)) {
        const bool is_infinite = strcmp(word, "infinite") == 0,
                   is_ponder = strcmp(word, "ponder") == 0;
        const bool is_begin = strcmp(word, "searchmoves") == 0;
        unsigned i = 0;
        while (i < UCI_LIMITS && strcmp(word, limit_name[i]) != 0) {
            i++;
        }
        go.infinite |= is_infinite;
        go.ponder |= is_ponder;
        are_moves = is_begin || (are_moves && i == UCI_LIMITS && !is_infinite && !is_ponder);
        if (i < UCI_LIMITS) {
            const int64_t value =
                uci_next_word(&words, word, sizeof word) ? strtoll(word, NULL, 10) : 0;
            go.limit[i] = value > most ? most : value < -most ? -most : value;
        } else if (are_moves && !is_begin) {
            const size_t used = strlen(go.moves);
            fits &= used + strlen(word) + 3 <= sizeof go.moves;
            snprintf(go.moves + used, fits ? sizeof go.moves - used : 0, "%s%s ",
                     used == 0 ? " " : "", word);
        }
    }
    *out = go;
    return fits;
}

bool uci_go_text(const struct uci_go *go, char *out, size_t size)
{
    const size_t bare = strlen("go"), length = strlen(go->moves);
    size_t used = (size_t)snprintf(out, size, "go");
    for (unsigned i = UCI_DEPTH; i <= UCI_MATE && used < size; i++) {
        if (go->limit[i] > 0) {
            used += (size_t)snprintf(out + used, size - used, " %s %" PRId64, limit_name[i],
                                     go->limit[i]);
        }
    }
    if (used >= size) {
        return false;
    }
    used += (size_t)snprintf(out + used, size - used, "%s%s%.*s", used == bare ? " infinite" : "",
                             length > 0 ? " searchmoves" : "", length > 0 ? (int)length - 1 : 0,
                             go->moves);
    return used < size;
}

/* A part of the clock, without a reserve for a stall, and half of the increment; at most three
 * fifths. Of the other half the clock of a long game is filled up again until 14 increments more
 * than the reserve are left. */
static uint32_t part_of_clock(int64_t clock, int64_t increment, int64_t moves, int64_t overhead)
{
    int64_t stall = clock / 2 < STALL_MS ? clock / 2 : STALL_MS;
    int64_t left = clock - overhead - stall;
    int64_t part = left / (moves > 0 ? moves + 1 : MOVES_LEFT) + increment / 2;
    int64_t most = left * 3 / 5;
    part = part < most ? part : most;
    return (uint32_t)(part < 1 ? 1 : part > UINT32_MAX ? UINT32_MAX : part);
}

static int64_t given(const struct uci_go *go, enum uci_limit limit)
{
    return go->limit[limit] != UCI_NOT_GIVEN ? go->limit[limit] : 0;
}

struct uci_limits uci_limits_of(const struct uci_go *go, bool black, uint32_t overhead_ms)
{
    const int64_t mate = given(go, UCI_MATE), depth = go->limit[UCI_DEPTH];
    const int64_t nodes = given(go, UCI_NODES), clock = go->limit[black ? UCI_BTIME : UCI_WTIME];
    int64_t movetime = go->limit[UCI_MOVETIME];
    struct uci_limits limits = {.depth = SEARCH_DEPTH_MAX};
    if (mate > 0) {
        limits.mate = mate < UINT32_MAX ? (unsigned)mate : UINT32_MAX;
        if (mate < SEARCH_DEPTH_MAX / 2) {
            limits.depth = 2 * limits.mate; /* plies of a mate in so many moves */
        }
    }
    if (depth != UCI_NOT_GIVEN && depth < SEARCH_DEPTH_MAX) {
        limits.depth = depth < 1 ? 1 : (unsigned)depth; /* a bad value counts as 1 */
    }
    limits.nodes = nodes > 0 ? (uint64_t)nodes : 0;
    if (movetime != UCI_NOT_GIVEN) {
        movetime = movetime < 1 ? 1 : movetime < UINT32_MAX ? movetime : UINT32_MAX;
        limits.time_ms = (uint32_t)movetime;
        int64_t spare = ANSWER_US + movetime * 50, most = overhead_ms * INT64_C(100);
        limits.spare_us = (uint32_t)(spare < most ? spare : most);
        if (limits.spare_us >= movetime * 1000) {
            limits.spare_us = 0;
        }
    } else if (clock != UCI_NOT_GIVEN && !go->infinite) { /* the clock may be negative */
        limits.time_ms = part_of_clock(clock, given(go, black ? UCI_BINC : UCI_WINC),
                                       given(go, UCI_MOVESTOGO), overhead_ms);
    }
    return limits;
}

/* ---- options ---- */

/* Where the next of these words stands in an option's line; its end if none does. */
static const char *find_field(const char *text)
{
    static const char *const field[] = {" type ", " default", " min ", " max ", " var "};
    const char *first = text + strlen(text);
    for (unsigned i = 0; i < sizeof field / sizeof field[0]; i++) {
        const char *at = strstr(text, field[i]);
        first = at != NULL && at < first ? at : first;
    }
    return first;
}

static void copy(char *out, size_t size, const char *from, const char *end)
{
    from += strspn(from, blanks);
    while (end > from && strchr(blanks, end[-1]) != NULL) {
        end--;
    }
    snprintf(out, size, "%.*s", (int)(end > from ? end - from : 0), from);
}

static enum uci_option_kind kind_of(const char *word)
{
    static const char *const name[] = {"check", "spin", "combo", "button"};
    unsigned i = 0;
    while (i < sizeof name / sizeof name[0] && strcmp(word, name[i]) != 0) {
        i++;
    }
    return (enum uci_option_kind)i;
}

bool uci_option_read(const char *text, struct uci_option *out)
{
    const char *rest, *end;
    char word[UCI_VALUE_MAX], value[UCI_VALUE_MAX];
    if (!uci_begins(text, "option", &rest) || !uci_begins(rest, "name", &rest)) {
        return false;
    }
    *out = (struct uci_option){.kind = UCI_STRING, .vars = "\n"};
    end = find_field(rest);
    copy(out->name, sizeof out->name, rest, end);
    for (rest = end; uci_next_word(&rest, word, sizeof word); rest = end) {
        end = find_field(rest > text ? rest - 1 : rest);
        copy(value, sizeof value, rest, end > rest ? end : rest);
        if (strcmp(word, "type") == 0) {
            out->kind = kind_of(value);
        } else if (strcmp(word, "default") == 0) {
            snprintf(out->normal, sizeof out->normal, "%s", value);
        } else if (strcmp(word, "min") == 0) {
            out->min = strtoll(value, NULL, 10);
        } else if (strcmp(word, "max") == 0) {
            out->max = strtoll(value, NULL, 10);
        } else if (strcmp(word, "var") == 0) {
            const size_t used = strlen(out->vars);
            snprintf(out->vars + used, sizeof out->vars - used, "%s\n", value);
        }
    }
    return out->name[0] != '\0';
}

bool uci_option_takes(const struct uci_option *option, const char *value)
{
    char *end, var[UCI_VALUE_MAX + 2];
    if (option->kind == UCI_CHECK) {
        return strcmp(value, "true") == 0 || strcmp(value, "false") == 0;
    }
    if (option->kind == UCI_SPIN) {
        const long long number = strtoll(value, &end, 10);
        return end != value && *end == '\0' && number >= option->min && number <= option->max;
    }
    snprintf(var, sizeof var, "\n%s\n", value);
    return option->kind != UCI_COMBO || strstr(option->vars, var) != NULL;
}

const char *uci_last_name(const char *value)
{
    const char *at = value;
    for (const char *p = value; *p != '\0'; p++) {
        at = (*p == '/' || *p == '\\') && p[1] != '\0' ? p + 1 : at;
    }
    return strcmp(at, "<empty>") == 0 ? "" : at;
}

bool uci_values_agree(const char *one, const char *other)
{
    return strcmp(uci_last_name(one), uci_last_name(other)) == 0;
}

bool uci_cut_option(char *words, char **name, char **value)
{
    char *rest = words, *out, *word = strtok_r(words, blanks, &rest);
    *value = NULL;
    if (word == NULL || strcasecmp(word, "name") != 0) {
        return false;
    }
    *name = out = word;
    *out = '\0';
    while ((word = strtok_r(NULL, blanks, &rest)) != NULL && strcasecmp(word, "value") != 0) {
        if (out != *name) {
            *out++ = ' ';
        }
        const size_t length = strlen(word); /* it stands further on */
        memmove(out, word, length + 1);
        out += length;
    }
    if (word != NULL) {
        *value = rest + strspn(rest, blanks);
        for (size_t n = strlen(*value); n > 0 && isblank((unsigned char)(*value)[n - 1]); n--) {
            (*value)[n - 1] = '\0';
        }
    }
    return out != *name;
}

/* ---- commands ---- */

bool uci_cut_command(const char *command, char *room, size_t size, char *words[UCI_WORDS_MAX])
{
    unsigned count = 0;
    size_t used = 0;
    const char *at = command;
    for (at += strspn(at, " \t\n"); *at != '\0'; at += strspn(at, " \t\n")) {
        char quote = '\0';
        if (count + 1 == UCI_WORDS_MAX) {
            return false;
        }
        words[count++] = room + used;
        for (; *at != '\0' && (quote != '\0' || strchr(" \t\n", *at) == NULL); at++) {
            const bool is_quote = *at == '\'' || *at == '"';
            if (is_quote && (quote == '\0' || quote == *at)) {
                quote = quote == '\0' ? *at : '\0';
                continue;
            }
            /* Between double quotes a backslash is one, but before these. */
            if (*at == '\\' && quote != '\'' && at[1] != '\0' &&
                (quote == '\0' || strchr("\"\\$`", at[1]) != NULL)) {
                at++;
            }
            if (used + 1 >= size) {
                return false;
            }
            room[used++] = *at;
        }
        if (quote != '\0' || used + 1 >= size) {
            return false;
        }
        room[used++] = '\0';
    }
    words[count] = NULL;
    return count > 0;
}
