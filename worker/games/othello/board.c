#include "worker/games/othello/board.h"

#include "common/rng.h"

#include <stdio.h>
#include <string.h>

/* ---- the rays, as constant expressions ---- */

#define COLUMN(s) ((s) % 8)
#define COLUMNS UINT64_C(0x0101010101010101)
#define RIGHT_OF(s) (COLUMNS * (UINT64_C(0xfe) << COLUMN(s) & 0xff))
#define LEFT_OF(s) (COLUMNS * ((UINT64_C(1) << COLUMN(s)) - 1))
#define ROW_OF(s) (UINT64_C(0xff) << ((s) / 8 * 8))
#define SHIFT_UP(line, s) ((line) << (s))
#define SHIFT_DOWN(line, s) ((line) >> (63 - (s)))
#define RAYS(s)                                                                       \
    {                                                                                 \
        .up = {ROW_OF(s) & RIGHT_OF(s), SHIFT_UP(UINT64_C(0x0101010101010100), s),    \
               SHIFT_UP(UINT64_C(0x8040201008040200), s) & RIGHT_OF(s),               \
               SHIFT_UP(UINT64_C(0x0002040810204080), s) & LEFT_OF(s)},               \
        .down = {ROW_OF(s) & LEFT_OF(s), SHIFT_DOWN(UINT64_C(0x0080808080808080), s), \
                 SHIFT_DOWN(UINT64_C(0x0040201008040201), s) & LEFT_OF(s),            \
                 SHIFT_DOWN(UINT64_C(0x0102040810204000), s) & RIGHT_OF(s)},          \
    }
#define RAYS_ROW(r)                                                                            \
    RAYS(8 * (r)), RAYS(8 * (r) + 1), RAYS(8 * (r) + 2), RAYS(8 * (r) + 3), RAYS(8 * (r) + 4), \
        RAYS(8 * (r) + 5), RAYS(8 * (r) + 6), RAYS(8 * (r) + 7)

const struct othello_rays othello_rays[OTHELLO_SQUARES] = {
    RAYS_ROW(0), RAYS_ROW(1), RAYS_ROW(2), RAYS_ROW(3),
    RAYS_ROW(4), RAYS_ROW(5), RAYS_ROW(6), RAYS_ROW(7),
};

uint64_t othello_hash(struct othello_board b)
{
    return rng_mix(b.own + rng_mix(b.other));
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

void othello_format(struct othello_board board, bool is_black, char text[67])
{
    for (unsigned i = 0; i < OTHELLO_SQUARES; i++) {
        text[i] = (board.own >> i & 1) != 0     ? (is_black ? 'X' : 'O')
                  : (board.other >> i & 1) != 0 ? (is_black ? 'O' : 'X')
                                                : '-';
    }
    snprintf(&text[64], 3, " %c", is_black ? 'X' : 'O');
}
