/* endings_board: positions of chess with two kings and up to two other men, and their moves, for
 * endings.c: slow, short, and made of nothing that the program has. Pure. */
#ifndef TESTS_ENDINGS_BOARD_H
#define TESTS_ENDINGS_BOARD_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

enum { PAWN, KNIGHT, BISHOP, ROOK, QUEEN, KING, TYPES };
enum { WHITE, BLACK };
enum { PIECES_MAX = 4, MOVES_MAX = 128 };

/* Squares: file + 8 * rank. Piece 0 is White's king, piece 1 Black's. `passed`: the square that a
 * pawn has just passed by two steps, if a pawn stands so that it may take it there; else 0. */
struct position {
    unsigned count, side, passed;
    uint8_t type[PIECES_MAX], color[PIECES_MAX], square[PIECES_MAX];
};

struct move {
    uint8_t piece, to, promoted; /* promoted: PAWN for none */
};

static int piece_on(const struct position *p, int square)
{
    for (unsigned i = 0; i < p->count; i++) {
        if (p->square[i] == square) {
            return (int)i;
        }
    }
    return -1;
}

static uint64_t occupied(const struct position *p)
{
    uint64_t squares = 0;
    for (unsigned i = 0; i < p->count; i++) {
        squares |= UINT64_C(1) << p->square[i];
    }
    return squares;
}

static const int steps[TYPES][8][2] = {
    [KNIGHT] = {{1, 2}, {2, 1}, {2, -1}, {1, -2}, {-1, -2}, {-2, -1}, {-2, 1}, {-1, 2}},
    [BISHOP] = {{1, 1}, {1, -1}, {-1, -1}, {-1, 1}},
    [ROOK] = {{1, 0}, {0, -1}, {-1, 0}, {0, 1}},
    [QUEEN] = {{1, 1}, {1, -1}, {-1, -1}, {-1, 1}, {1, 0}, {0, -1}, {-1, 0}, {0, 1}},
    [KING] = {{1, 1}, {1, -1}, {-1, -1}, {-1, 1}, {1, 0}, {0, -1}, {-1, 0}, {0, 1}},
};

/* The squares that a piece other than a pawn reaches from where it is, those of other pieces too.
 */
static unsigned reach(const struct position *p, unsigned piece, uint8_t *to)
{
    const unsigned type = p->type[piece];
    const bool slides = type == BISHOP || type == ROOK || type == QUEEN;
    const uint64_t others = occupied(p);
    unsigned found = 0;
    for (unsigned d = 0; d < 8 && (steps[type][d][0] != 0 || steps[type][d][1] != 0); d++) {
        int file = p->square[piece] % 8, rank = p->square[piece] / 8;
        do {
            file += steps[type][d][0];
            rank += steps[type][d][1];
            if (file < 0 || file > 7 || rank < 0 || rank > 7) {
                break;
            }
            to[found++] = (uint8_t)(file + 8 * rank);
        } while (slides && !(others >> (file + 8 * rank) & 1));
    }
    return found;
}

static bool attacks(const struct position *p, unsigned piece, int square)
{
    const unsigned type = p->type[piece];
    const int files = square % 8 - p->square[piece] % 8, ranks = square / 8 - p->square[piece] / 8;
    const int x = abs(files), y = abs(ranks), distance = x > y ? x : y;
    switch (type) {
    case PAWN:
        return ranks == (p->color[piece] == WHITE ? 1 : -1) && x == 1;
    case KNIGHT:
        return x * y == 2;
    case KING:
        return distance == 1;
    default:
        if (distance == 0 || !((type != ROOK && x == y) || (type != BISHOP && x * y == 0))) {
            return false;
        }
    }
    const int step = files / distance + 8 * (ranks / distance);
    int at = p->square[piece] + step;
    while (at != square && piece_on(p, at) < 0) {
        at += step;
    }
    return at == square;
}

static bool in_check(const struct position *p, unsigned side)
{
    for (unsigned i = 0; i < p->count; i++) {
        if (p->color[i] != side && attacks(p, i, p->square[side])) {
            return true;
        }
    }
    return false;
}

/* The square that a pawn of that colour, which now stands on `at`, has passed by two steps, or 0 if
 * no pawn could take it there. */
static unsigned passed_at(const struct position *p, int at, unsigned color)
{
    for (unsigned i = 2; i < p->count; i++) {
        if (p->color[i] != color && p->type[i] == PAWN && p->square[i] / 8 == at / 8 &&
            abs(p->square[i] - at) == 1) {
            return (unsigned)(color == WHITE ? at - 8 : at + 8);
        }
    }
    return 0;
}

/* The position after a move; false: the mover's king is in check then. */
static bool play(const struct position *p, struct move m, struct position *after)
{
    const int from = p->square[m.piece], back = p->side == WHITE ? -8 : 8;
    const bool is_pawn = p->type[m.piece] == PAWN;
    int taken = piece_on(p, m.to);
    if (is_pawn && taken < 0 && from % 8 != m.to % 8) {
        taken = piece_on(p, m.to + back);
    }
    *after = *p;
    after->square[m.piece] = m.to;
    after->passed = is_pawn && m.to - from == -2 * back ? passed_at(p, m.to, p->side) : 0;
    if (m.promoted != PAWN) {
        after->type[m.piece] = m.promoted;
    }
    if (taken >= 0) {
        after->count--;
        for (unsigned i = (unsigned)taken; i < after->count; i++) {
            after->type[i] = after->type[i + 1];
            after->color[i] = after->color[i + 1];
            after->square[i] = after->square[i + 1];
        }
    }
    after->side = !p->side;
    return !in_check(after, p->side);
}

static unsigned add_pawn_move(struct move *list, unsigned count, unsigned piece, int to)
{
    if (to / 8 != 0 && to / 8 != 7) {
        list[count++] = (struct move){(uint8_t)piece, (uint8_t)to, PAWN};
        return count;
    }
    for (uint8_t type = KNIGHT; type <= QUEEN; type++) {
        list[count++] = (struct move){(uint8_t)piece, (uint8_t)to, type};
    }
    return count;
}

/* Moves that leave no piece of one's own taken; the king may be in check after them. */
static unsigned generate(const struct position *p, struct move *list)
{
    unsigned count = 0;
    for (unsigned i = 0; i < p->count; i++) {
        uint8_t to[32];
        const int at = p->square[i];
        if (p->color[i] != p->side) {
            continue;
        }
        if (p->type[i] != PAWN) {
            const unsigned reached = reach(p, i, to);
            for (unsigned k = 0; k < reached; k++) {
                const int on = piece_on(p, to[k]);
                if (on < 0 || (p->color[on] != p->side && p->type[on] != KING)) {
                    list[count++] = (struct move){(uint8_t)i, to[k], PAWN};
                }
            }
            continue;
        }
        const int ahead = p->side == WHITE ? 8 : -8;
        if (piece_on(p, at + ahead) < 0) {
            count = add_pawn_move(list, count, i, at + ahead);
            if (at / 8 == (p->side == WHITE ? 1 : 6) && piece_on(p, at + 2 * ahead) < 0) {
                list[count++] = (struct move){(uint8_t)i, (uint8_t)(at + 2 * ahead), PAWN};
            }
        }
        for (int side = -1; side <= 1; side += 2) {
            const int on = piece_on(p, at + ahead + side);
            const bool takes = on >= 0 && p->color[on] != p->side && p->type[on] != KING;
            if (at % 8 + side >= 0 && at % 8 + side <= 7 &&
                (takes || (p->passed != 0 && at + ahead + side == (int)p->passed))) {
                count = add_pawn_move(list, count, i, at + ahead + side);
            }
        }
    }
    return count;
}

static bool is_legal(const struct position *p)
{
    for (unsigned i = 0; i < p->count; i++) {
        const int rank = p->square[i] / 8;
        if (piece_on(p, p->square[i]) != (int)i ||
            (p->type[i] == PAWN && (rank == 0 || rank == 7))) {
            return false;
        }
    }
    return !in_check(p, !p->side);
}

#endif
