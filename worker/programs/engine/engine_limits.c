#include "worker/programs/engine/engine_limits.h"

#include "worker/programs/engine/uci_text.h"
#include "worker/programs/uci/uci_search.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    OVERHEAD_MS = 50, /* of what the clock has, for an answer without the engine */
    LATE_US = 15000, /* an engine answers that late on a busy machine */
    NUMBER_MAX = 1000000000, /* milliseconds: eleven days; of nodes it is enough, too */
    GRACE_US = 35000, /* from the stop to the answer without it */
};

static bool is_limit(const char *word)
{
    static const char *const name[] = {"ponder",    "infinite", "wtime", "btime", "winc",    "binc",
                                       "movestogo", "depth",    "nodes", "mate",  "movetime"};
    unsigned i = 0;
    while (i < sizeof name / sizeof name[0] && strcmp(word, name[i]) != 0) {
        i++;
    }
    return i < sizeof name / sizeof name[0];
}

static bool is_number_of(const char *word, const char *name, const char **rest, int64_t *value)
{
    char number[32];
    if (strcmp(word, name) != 0 || !uci_next_word(rest, number, sizeof number)) {
        return false;
    }
    *value = strtoll(number, NULL, 10);
    *value = *value > NUMBER_MAX ? NUMBER_MAX : *value < -NUMBER_MAX ? -NUMBER_MAX : *value;
    return true;
}

/* A move that comes by itself within `most_us` is the engine's own business. */
static void set_times(struct engine_limits *l, uint64_t most_us)
{
    const uint64_t grace = most_us / 4 < GRACE_US ? most_us / 4 : GRACE_US;
    l->stop_us = l->begin_us + most_us - grace;
    l->answer_us = l->begin_us + most_us;
}

static void read_clock(const char *words, bool is_black, struct engine_limits *out)
{
    int64_t clock = -1, movetime = -1, other;
    char word[32];
    const char *rest = words;
    while (uci_next_word(&rest, word, sizeof word)) {
        if (!is_number_of(word, is_black ? "btime" : "wtime", &rest, &clock) &&
            !is_number_of(word, is_black ? "wtime" : "btime", &rest, &other)) {
            (void)is_number_of(word, "movetime", &rest, &movetime);
        }
    }
    out->has_clock = (movetime >= 0 || clock >= 0) && !out->infinite;
    if (!out->has_clock || out->ponder) {
        return;
    }
    char *copy = strdup(words);
    struct uci_limits limits = {.time_ms = 1};
    if (copy != NULL) {
        uci_read_limits(copy, is_black, OVERHEAD_MS, &limits);
    }
    free(copy);
    const uint64_t most = UINT32_MAX / 1000;
    out->think_us = (uint32_t)((limits.time_ms < most ? limits.time_ms : most) * 1000);
    if (movetime >= 0) {
        set_times(out, (uint64_t)movetime * 1000 + LATE_US + GRACE_US);
    } else {
        const int64_t left = clock - clock / 10 - OVERHEAD_MS;
        set_times(out, (uint64_t)(left > clock / 2 ? left : clock / 2 + 1) * 1000);
    }
}

bool engine_limits_read(const char *words, bool is_black, uint64_t now_us,
                        struct engine_limits *out)
{
    struct engine_limits l = {.begin_us = now_us, .others = "go"};
    char word[32];
    int64_t depth = 0, nodes = 0, mate = 0;
    bool are_moves = false, fits = true;
    size_t used;
    for (const char *rest = words; uci_next_word(&rest, word, sizeof word);) {
        const bool is_begin = strcmp(word, "searchmoves") == 0;
        are_moves = is_begin || (are_moves && !is_limit(word));
        if (are_moves && !is_begin) {
            used = strlen(l.moves);
            fits &= used + strlen(word) + 3 < sizeof l.moves;
            snprintf(l.moves + used, sizeof l.moves - used, "%s%s ", used == 0 ? " " : "", word);
        }
        l.infinite |= strcmp(word, "infinite") == 0;
        l.ponder |= strcmp(word, "ponder") == 0;
        if (!is_number_of(word, "depth", &rest, &depth) &&
            !is_number_of(word, "nodes", &rest, &nodes)) {
            (void)is_number_of(word, "mate", &rest, &mate);
        }
    }
    l.depth = depth > 0 ? (unsigned)(depth < 250 ? depth : 250) : 0;
    l.nodes = nodes > 0 ? (uint64_t)nodes : 0;
    l.has_nodes = nodes > 0;
    read_clock(words, is_black, &l);
    static const char *const name[] = {" depth", " nodes", " mate"};
    const int64_t value[] = {depth, nodes, mate};
    for (unsigned i = 0; i < sizeof value / sizeof value[0]; i++) {
        used = strlen(l.others);
        if (value[i] > 0) {
            snprintf(l.others + used, sizeof l.others - used, "%s %lld", name[i],
                     (long long)value[i]);
        }
    }
    used = strlen(l.others);
    if (depth <= 0 && nodes <= 0 && mate <= 0) {
        used += (size_t)snprintf(l.others + used, sizeof l.others - used, " infinite");
    }
    if (l.moves[0] != '\0') {
        fits &= strlen(" searchmoves") + strlen(l.moves) + used < sizeof l.others;
        snprintf(l.others + used, sizeof l.others - used, " searchmoves%.*s",
                 (int)strlen(l.moves) - 1, l.moves);
    }
    *out = l;
    return fits;
}

void engine_limits_hit(struct engine_limits *l, const char *words, bool is_black, uint64_t now_us)
{
    l->ponder = false;
    l->begin_us = now_us;
    read_clock(words, is_black, l);
}

void engine_limits_rest(const struct engine_limits *l, const char *words, bool is_black,
                        uint64_t now_us, char *out, size_t size)
{
    const char *rest = words, *own = is_black ? "btime" : "wtime";
    char word[32];
    const int64_t passed_ms = l->ponder ? 0 : (int64_t)((now_us - l->begin_us) / 1000);
    int64_t value;
    size_t used = (size_t)snprintf(out, size, "go");
    while (used < size && uci_next_word(&rest, word, sizeof word)) {
        if (is_number_of(word, own, &rest, &value) ||
            is_number_of(word, "movetime", &rest, &value)) {
            value = value - passed_ms > 1 ? value - passed_ms : 1;
            used += (size_t)snprintf(out + used, size - used, " %s %lld", word, (long long)value);
        } else if (strcmp(word, "ponder") != 0 || l->ponder) {
            used += (size_t)snprintf(out + used, size - used, " %s", word);
        }
    }
}
