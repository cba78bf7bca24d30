#include "worker/games/othello/stable.h"

static const uint64_t left = UINT64_C(0x0101010101010101), right = UINT64_C(0x8080808080808080);
static const uint64_t top = UINT64_C(0xff), bottom = UINT64_C(0xff00000000000000);

static uint64_t full_rows(uint64_t discs)
{
    discs &= discs >> 4;
    discs &= discs >> 2;
    discs &= discs >> 1;
    return (discs & left) * 0xff;
}

static uint64_t full_columns(uint64_t discs)
{
    discs &= discs >> 32 | discs << 32;
    discs &= discs >> 16 | discs << 48;
    return discs & (discs >> 8 | discs << 56);
}

/* A diagonal is full at a square when it is full on both sides of it: by steps of 1, 2 and 4, where
 * what lies outside of the board counts as full. */
static uint64_t full_falling(uint64_t discs)
{
    uint64_t up = discs, down = discs;
    up &= UINT64_C(0x01010101010101ff) | up << 9;
    up &= UINT64_C(0x030303030303ffff) | up << 18;
    up &= UINT64_C(0x0f0f0f0fffffffff) | up << 36;
    down &= UINT64_C(0xff80808080808080) | down >> 9;
    down &= UINT64_C(0xffffc0c0c0c0c0c0) | down >> 18;
    down &= UINT64_C(0xfffffffff0f0f0f0) | down >> 36;
    return up & down;
}

static uint64_t full_rising(uint64_t discs)
{
    uint64_t up = discs, down = discs;
    up &= UINT64_C(0x80808080808080ff) | up << 7;
    up &= UINT64_C(0xc0c0c0c0c0c0ffff) | up << 14;
    up &= UINT64_C(0xf0f0f0f0ffffffff) | up << 28;
    down &= UINT64_C(0xff01010101010101) | down >> 7;
    down &= UINT64_C(0xffff030303030303) | down >> 14;
    down &= UINT64_C(0xffffffff0f0f0f0f) | down >> 28;
    return up & down;
}

uint64_t othello_stable(uint64_t own, uint64_t other)
{
    const uint64_t discs = own | other;
    const uint64_t rows = full_rows(discs) | left | right,
                   columns = full_columns(discs) | top | bottom;
    const uint64_t border = left | right | top | bottom;
    const uint64_t falling = full_falling(discs) | border, rising = full_rising(discs) | border;
    uint64_t stable = own & rows & columns & falling & rising, before;
    if (stable == 0) {
        return 0;
    }
    do {
        before = stable;
        /* Wrapped shifts only reach squares of the border, which need no support that way. */
        stable |= own & (rows | before << 1 | before >> 1) & (columns | before << 8 | before >> 8) &
                  (falling | before << 9 | before >> 9) & (rising | before << 7 | before >> 7);
    } while (stable != before);
    return stable;
}
