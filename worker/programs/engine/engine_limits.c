#include "worker/programs/engine/engine_limits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    OVERHEAD_MS = 50, /* of what the clock has, for an answer without the engine */
    LATE_US = 15000, /* an engine answers that late on a busy machine */
    TIME_MAX_MS = 1000000000, /* eleven days */
    DEPTH_MAX = 250,
    GRACE_US = 35000, /* from the stop to the answer without it */
};

/* A move that comes by itself within `most_us` is the engine's own business. */
static void set_times(struct engine_limits *l, uint64_t most_us)
{
    const uint64_t grace = most_us / 4 < GRACE_US ? most_us / 4 : GRACE_US;
    l->stop_us = l->begin_us + most_us - grace;
    l->answer_us = l->begin_us + most_us;
}

static void set_clock(struct engine_limits *l, bool is_black)
{
    const int64_t movetime = l->go.limit[UCI_MOVETIME];
    int64_t clock = l->go.limit[is_black ? UCI_BTIME : UCI_WTIME];
    l->has_clock = (movetime != UCI_NOT_GIVEN || clock != UCI_NOT_GIVEN) && !l->go.infinite;
    if (!l->has_clock || l->go.ponder) {
        return;
    }
    const uint32_t time_ms = uci_limits_of(&l->go, is_black, OVERHEAD_MS).time_ms;
    const uint32_t most = UINT32_MAX / 1000;
    l->think_us = (time_ms < most ? time_ms : most) * 1000;
    if (movetime != UCI_NOT_GIVEN) {
        const int64_t ms = movetime < 0 ? 0 : movetime < TIME_MAX_MS ? movetime : TIME_MAX_MS;
        set_times(l, (uint64_t)ms * 1000 + LATE_US + GRACE_US);
    } else {
        clock = clock < TIME_MAX_MS ? clock : TIME_MAX_MS;
        clock = clock > 0 ? clock : OVERHEAD_MS; /* who lets it run on gives some time still */
        const int64_t left = clock - clock / 10 - OVERHEAD_MS;
        set_times(l, (uint64_t)(left > clock / 2 ? left : clock / 2 + 1) * 1000);
    }
}

bool engine_limits_read(const char *words, bool is_black, uint64_t now_us,
                        struct engine_limits *out)
{
    struct engine_limits l = {.begin_us = now_us};
    bool fits = uci_go_read(words, &l.go);
    fits &= uci_go_text(&l.go, l.others, sizeof l.others);
    const int64_t depth = l.go.limit[UCI_DEPTH], nodes = l.go.limit[UCI_NODES];
    l.depth = depth <= 0 ? 0 : depth < DEPTH_MAX ? (unsigned)depth : DEPTH_MAX;
    l.nodes = nodes > 0 ? (uint64_t)nodes : 0;
    set_clock(&l, is_black);
    *out = l;
    return fits;
}

void engine_limits_hit(struct engine_limits *l, bool is_black, uint64_t now_us)
{
    l->go.ponder = false;
    l->begin_us = now_us;
    set_clock(l, is_black);
}

void engine_limits_rest(const struct engine_limits *l, const char *words, bool is_black,
                        uint64_t now_us, char *out, size_t size)
{
    const char *rest = words, *own = is_black ? "btime" : "wtime";
    char word[32], number[32];
    const int64_t passed_ms = l->go.ponder ? 0 : (int64_t)((now_us - l->begin_us) / 1000);
    size_t used = (size_t)snprintf(out, size, "go");
    while (used < size && uci_next_word(&rest, word, sizeof word)) {
        const bool is_clock = strcmp(word, own) == 0 || strcmp(word, "movetime") == 0;
        if (is_clock && uci_next_word(&rest, number, sizeof number)) {
            const int64_t value = strtoll(number, NULL, 10);
            used += (size_t)snprintf(out + used, size - used, " %s %lld", word,
                                     value > passed_ms + 1 ? (long long)(value - passed_ms) : 1);
        } else if (strcmp(word, "ponder") != 0 || l->go.ponder) {
            used += (size_t)snprintf(out + used, size - used, " %s", word);
        }
    }
}
