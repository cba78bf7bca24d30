#include "worker/games/othello/board.h"

#include "common/rng.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

struct othello_rays othello_rays[OTHELLO_SQUARES];

/* The squares in a line from that one. */
static uint64_t ray(int column, int row, int right, int down)
{
    uint64_t set = 0;
    for (column += right, row += down; column >= 0 && column < 8 && row >= 0 && row < 8;
         column += right, row += down) {
        set |= othello_bit((unsigned)(8 * row + column));
    }
    return set;
}

__attribute__((constructor)) static void fill_rays(void)
{
    static const int right[4] = {1, 0, 1, -1}, down[4] = {0, 1, 1, 1};
    for (int s = 0; s < OTHELLO_SQUARES; s++) {
        for (unsigned i = 0; i < 4; i++) {
            othello_rays[s].up[i] = ray(s % 8, s / 8, right[i], down[i]);
            othello_rays[s].down[i] = ray(s % 8, s / 8, -right[i], -down[i]);
        }
    }
}

uint64_t othello_hash(struct othello_board b)
{
    return rng_mix(b.own + rng_mix(b.other));
}

/* ---- stable discs ---- */

static const uint64_t left = UINT64_C(0x0101010101010101), right = UINT64_C(0x8080808080808080);
static const uint64_t top = UINT64_C(0xff), bottom = UINT64_C(0xff00000000000000);

/* A diagonal is full at a square when it is full on both sides of it: by steps of 1, 2 and 4, where
 * what lies outside of the board counts as full. */
static inline uint64_t full_diagonals(uint64_t discs, unsigned step, const uint64_t outside_up[3],
                                      const uint64_t outside_down[3])
{
    uint64_t up = discs, down = discs;
#pragma GCC unroll 3
    for (unsigned i = 0; i < 3; i++) {
        up &= outside_up[i] | up << (step << i);
        down &= outside_down[i] | down >> (step << i);
    }
    return up & down;
}

static const uint64_t falling_up[3] = {0x01010101010101ff, 0x030303030303ffff, 0x0f0f0f0fffffffff};
static const uint64_t falling_down[3] = {0xff80808080808080, 0xffffc0c0c0c0c0c0,
                                         0xfffffffff0f0f0f0};
static const uint64_t rising_up[3] = {0x80808080808080ff, 0xc0c0c0c0c0c0ffff, 0xf0f0f0f0ffffffff};
static const uint64_t rising_down[3] = {0xff01010101010101, 0xffff030303030303, 0xffffffff0f0f0f0f};

uint64_t othello_stable(uint64_t own, uint64_t other)
{
    const uint64_t discs = own | other, border = left | right | top | bottom;
    uint64_t rows = discs & discs >> 4, columns = discs & (discs >> 32 | discs << 32);
    rows &= rows >> 2;
    rows &= rows >> 1;
    rows = (rows & left) * 0xff | left | right;
    columns &= columns >> 16 | columns << 48;
    columns = (columns & (columns >> 8 | columns << 56)) | top | bottom;
    const uint64_t falling = full_diagonals(discs, 9, falling_up, falling_down) | border;
    const uint64_t rising = full_diagonals(discs, 7, rising_up, rising_down) | border;
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

/* ---- text ---- */

static int disc_of(char c)
{
    return c != '\0' && strchr("Xx*bB", c) != NULL   ? 1
           : c != '\0' && strchr("Oow0W", c) != NULL ? 2
           : c != '\0' && strchr("-._", c) != NULL   ? 0
                                                     : -1;
}

static bool is_end(char c)
{
    return c == '\0' || c == ';' || c == '\n' || c == '\r';
}

static const char *skip_blanks(const char *text)
{
    return text + strspn(text, " \t");
}

bool othello_parse(const char *text, struct othello_board *board, bool *is_black,
                   char why[OTHELLO_WHY_MAX])
{
    uint64_t set[3] = {0};
    unsigned squares = 0;
    for (text = skip_blanks(text); squares < OTHELLO_SQUARES; text = skip_blanks(text + 1)) {
        if (is_end(*text)) {
            snprintf(why, OTHELLO_WHY_MAX, "the board has %u squares instead of 64", squares);
            return false;
        }
        if (disc_of(*text) < 0) {
            snprintf(why, OTHELLO_WHY_MAX, "square %u is X, O or -, not a byte of code %u",
                     squares + 1, (unsigned)(unsigned char)*text);
            return false;
        }
        set[disc_of(*text)] |= othello_bit(squares++);
    }
    const int side = is_end(*text) ? -1 : disc_of(*text);
    if (side != 1 && side != 2) {
        snprintf(why, OTHELLO_WHY_MAX, "%s",
                 is_end(*text) ? "63 squares instead of 64, or no side to move, X or O"
                               : "after 64 squares the side to move is wanted, X or O");
        return false;
    }
    text = skip_blanks(text + 1);
    if (!is_end(*text)) {
        snprintf(why, OTHELLO_WHY_MAX, "more than 64 squares and the side to move, before a ';'");
        return false;
    }
    *is_black = side == 1;
    *board =
        *is_black ? (struct othello_board){set[1], set[2]} : (struct othello_board){set[2], set[1]};
    return true;
}

int othello_read_move(const char **text)
{
    static const char *const passes[] = {"pass", "pa", "ps", "--"};
    const char *at = *text;
    const int column = at[0] | 0x20; /* capital letters, too */
    for (unsigned i = 0; i < sizeof passes / sizeof *passes; i++) {
        const size_t size = strlen(passes[i]);
        if (strncasecmp(at, passes[i], size) == 0) {
            *text += size;
            return OTHELLO_PASSED;
        }
    }
    if (column < 'a' || column > 'h' || at[1] < '1' || at[1] > '8') {
        return -1;
    }
    *text += 2;
    return (at[1] - '1') * 8 + column - 'a';
}

void othello_format(struct othello_board board, bool is_black, char text[67])
{
    for (unsigned i = 0; i < OTHELLO_SQUARES; i++) {
        text[i] = (board.own >> i & 1) != 0     ? (is_black ? 'X' : 'O')
                  : (board.other >> i & 1) != 0 ? (is_black ? 'O' : 'X')
                                                : '-';
    }
    snprintf(&text[64], 3, " %c", is_black ? 'X' : 'O');
}
