#include "worker/search/lazy_smp.h"

/* Pattern i searches `size` iterations and leaves out as many, from `phase` on (Stockfish 7 to 9,
 * SkipSize and SkipPhase). */
static const struct {
    unsigned char size, phase;
} patterns[] = {
    {1, 0}, {1, 1}, {2, 0}, {2, 1}, {2, 2}, {2, 3}, {3, 0}, {3, 1}, {3, 2}, {3, 3},
    {3, 4}, {3, 5}, {4, 0}, {4, 1}, {4, 2}, {4, 3}, {4, 4}, {4, 5}, {4, 6}, {4, 7},
};

static bool skips(unsigned number, unsigned depth)
{
    if (number == 0) {
        return false;
    }
    unsigned i = (number - 1) % (sizeof patterns / sizeof patterns[0]);
    return (depth + patterns[i].phase) / patterns[i].size % 2 != 0;
}

bool lazy_smp_skips(const struct search_options *options, unsigned depth)
{
    return skips(options->number, depth);
}

bool lazy_smp_half_skips(const struct search_options *options, unsigned depth)
{
    return options->number >= SEARCH_AWAY && options->game->depth_left == NULL &&
           options->number % 2 != 0 && skips((options->number + 1) / 2, depth);
}
