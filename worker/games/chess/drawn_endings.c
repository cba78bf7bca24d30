#include "worker/games/chess/drawn_endings.h"

/* In 1/64. Likelier draws get smaller factors. None is 0, so the search can still order moves. */
enum { WHOLE = 64, LITTLE = 12, LESS = 8, NEXT_TO_NOTHING = 2 };

static const uint64_t light = UINT64_C(0x55aa55aa55aa55aa);

/* For each white pawn (files a to d) and white king: the black king squares that lose, by side to
 * move. The pawn's index is rank * 4 + file. */
static uint64_t won[2][32][64];

/* Adds the wins that one more move of king or pawn reaches. Returns false when nothing changed. */
static bool add_wins(unsigned pawn, unsigned king)
{
    const unsigned square = pawn / 4 * 8 + pawn % 4, stop = square + 8;
    const uint64_t taken = bitboard_of(square) | bitboard_of(king);
    const uint64_t near = bitboard_kings(bitboard_of(king));
    const uint64_t checked = bitboard_pawns(bitboard_of(square), CHESS_WHITE);
    uint64_t wins = 0, from = near & ~taken;
    while (from) {
        wins |= won[CHESS_BLACK][pawn][bitboard_pop(&from)];
    }
    if (stop != king && stop >= 56) { /* not taken; if a queen stalemates, the king's move wins */
        wins |= (near & bitboard_of(stop))
                    ? ~bitboard_of(stop)
                    : ~(bitboard_kings(bitboard_of(stop)) | bitboard_of(stop));
    } else if (stop != king) {
        wins |= won[CHESS_BLACK][pawn + 4][king];
        if (square < 16 && stop + 8 != king) {
            wins |= won[CHESS_BLACK][pawn + 8][king] & ~bitboard_of(stop);
        }
    }
    wins &= ~(taken | near | checked);
    const uint64_t free = ~(near | checked | bitboard_of(king));
    const uint64_t losses =
        ~(taken | near) & ~bitboard_kings(free & ~wins) & (bitboard_kings(free) | checked);
    const bool is_new =
        wins != won[CHESS_WHITE][pawn][king] || losses != won[CHESS_BLACK][pawn][king];
    won[CHESS_WHITE][pawn][king] = wins;
    won[CHESS_BLACK][pawn][king] = losses;
    return is_new;
}

/* Before main, so before there are threads, and perhaps before there are bitboard_tables. */
__attribute__((constructor)) static void fill_won(void)
{
    for (unsigned pawn = 27; pawn >= 4; pawn--) {
        bool is_new = true;
        while (is_new) {
            is_new = false;
            for (unsigned king = 0; king < 64; king++) {
                is_new = add_wins(pawn, king) || is_new;
            }
        }
    }
}

/* King and pawn against king, whatever else there is. */
static bool is_won(const struct chess_position *position, unsigned strong)
{
    unsigned pawn = bitboard_first(chess_set(position, strong, CHESS_PAWN));
    unsigned turned = (strong == CHESS_BLACK ? 56 : 0) ^ ((pawn & 4) ? 7 : 0);
    pawn ^= turned;
    return won[position->side != strong][(pawn >> 3) * 4 + (pawn & 7)]
              [chess_king(position, strong) ^ turned] >>
               (chess_king(position, strong ^ 1) ^ turned) &
           1;
}

/* The corner where all pawns of that colour promote, which their bishops, all on squares of the
 * other colour, do not attack; CHESS_NO_SQUARE where there are other pieces or pawns, or the other
 * king is not alone. */
static unsigned safe_corner(const struct chess_position *position, unsigned strong)
{
    const uint64_t *set = &position->set[strong << 3];
    const uint64_t pawns = set[CHESS_PAWN], weak = chess_set(position, strong ^ 1, CHESS_ALL);
    if (!pawns || (weak & (weak - 1)) || (set[CHESS_KNIGHT] | set[CHESS_ROOK] | set[CHESS_QUEEN]) ||
        ((pawns & ~BITBOARD_FILE_A) && (pawns & ~BITBOARD_FILE_H))) {
        return CHESS_NO_SQUARE;
    }
    const unsigned corner = ((pawns & BITBOARD_FILE_A) ? 0 : 7) + (strong == CHESS_WHITE ? 56 : 0);
    const uint64_t colour = (bitboard_of(corner) & light) ? light : ~light;
    return (set[CHESS_BISHOP] & colour) ? CHESS_NO_SQUARE : corner;
}

/* The other king is likely there before the strong one and the first of the pawns. */
static bool reaches(const struct chess_position *position, unsigned strong, unsigned corner)
{
    const uint64_t pawns = chess_set(position, strong, CHESS_PAWN);
    const unsigned first =
        strong == CHESS_WHITE ? 63 - (unsigned)__builtin_clzll(pawns) : bitboard_first(pawns);
    const bool is_blocked =
        bitboard_forward(bitboard_of(first), strong) & chess_set(position, strong, CHESS_BISHOP);
    const int moves =
        bitboard_distance(chess_king(position, strong ^ 1), corner) - (position->side != strong);
    return moves < bitboard_distance(chess_king(position, strong), corner) &&
           moves <= bitboard_distance(first, corner) + is_blocked;
}

bool chess_draws_dead(const struct chess_position *position)
{
    const uint64_t bishops = chess_both(position, CHESS_BISHOP);
    const uint64_t others = chess_occupied(position) & ~chess_both(position, CHESS_KING);
    return (others == bishops && (!(bishops & light) || !(bishops & ~light))) ||
           (others == chess_both(position, CHESS_KNIGHT) && !(others & (others - 1)));
}

bool chess_draws_known(const struct chess_position *position)
{
    if (chess_both(position, CHESS_ROOK) | chess_both(position, CHESS_QUEEN)) {
        return false;
    }
    const uint64_t pawns = chess_both(position, CHESS_PAWN);
    const unsigned strong =
        (pawns & chess_set(position, CHESS_WHITE, CHESS_PAWN)) ? CHESS_WHITE : CHESS_BLACK;
    if (!pawns) {
        return chess_draws_dead(position);
    }
    if (pawns == (chess_occupied(position) & ~chess_both(position, CHESS_KING)) &&
        !(pawns & (pawns - 1))) {
        return !is_won(position, strong);
    }
    const unsigned corner = safe_corner(position, strong);
    return corner != CHESS_NO_SQUARE &&
           bitboard_distance(chess_king(position, strong ^ 1), corner) <= 1;
}

/* In pawns, those left out. */
static unsigned pieces_value(const uint64_t *set)
{
    return 3 * bitboard_count(set[CHESS_KNIGHT] | set[CHESS_BISHOP]) +
           5 * bitboard_count(set[CHESS_ROOK]) + 9 * bitboard_count(set[CHESS_QUEEN]);
}

/* King and one other. */
static bool has_one(const struct chess_position *position, unsigned colour, unsigned kind)
{
    const uint64_t others =
        chess_set(position, colour, CHESS_ALL) ^ chess_set(position, colour, CHESS_KING);
    return others == chess_set(position, colour, kind) && others && !(others & (others - 1));
}

/* A rook, a queen or a pawn against a pawn. */
static int scale_against_pawn(const struct chess_position *position, unsigned strong)
{
    const unsigned weak = strong ^ 1, pawn = bitboard_first(chess_set(position, weak, CHESS_PAWN));
    const unsigned king = chess_king(position, weak), other = chess_king(position, strong);
    const int to_go = weak == CHESS_WHITE ? 7 - (int)(pawn >> 3) : (int)(pawn >> 3);
    if (has_one(position, strong, CHESS_PAWN)) { /* who promotes, which a search sees */
        return is_won(position, strong) ? LITTLE : NEXT_TO_NOTHING;
    }
    if (has_one(position, strong, CHESS_ROOK)) { /* the pawn goes on, helped by its king */
        const unsigned stop = weak == CHESS_WHITE ? pawn + 8 : pawn - 8;
        const int theirs = bitboard_distance(other, stop) + (position->side == weak);
        return theirs + 1 >= bitboard_distance(king, stop) + to_go ? LESS : WHOLE;
    }
    /* Stalemate saves a pawn on these files before its last move. */
    return has_one(position, strong, CHESS_QUEEN) && to_go == 1 && (0xa5u >> (pawn & 7) & 1) &&
                   bitboard_distance(king, pawn) <= 2 && bitboard_distance(other, pawn) >= 2
               ? NEXT_TO_NOTHING
               : WHOLE;
}

int chess_draws_scale_64(const struct chess_position *position, unsigned strong)
{
    const uint64_t *set = &position->set[strong << 3];
    if (chess_draws_known(position)) {
        return 0;
    }
    const unsigned corner = safe_corner(position, strong);
    if (corner != CHESS_NO_SQUARE && reaches(position, strong, corner)) {
        return NEXT_TO_NOTHING;
    }
    if (corner != CHESS_NO_SQUARE && set[CHESS_BISHOP]) {
        return LESS; /* a search sees who promotes */
    }
    if (has_one(position, strong ^ 1, CHESS_PAWN)) {
        const int scale = scale_against_pawn(position, strong);
        if (scale < WHOLE) {
            return scale;
        }
    }
    if (!set[CHESS_PAWN] && !set[CHESS_ROOK] && !set[CHESS_QUEEN]) {
        unsigned minors = bitboard_count(set[CHESS_KNIGHT] | set[CHESS_BISHOP]);
        if (minors <= 1 || (minors == 2 && !set[CHESS_BISHOP])) {
            return 0; /* cannot force mate */
        }
    }
    if (!set[CHESS_PAWN]) { /* a minor piece more rarely wins without pawns */
        return pieces_value(set) <= pieces_value(&position->set[(strong ^ 1) << 3]) + 3 ? LITTLE
                                                                                        : WHOLE;
    }
    uint64_t white = position->set[CHESS_BISHOP], black = position->set[8 | CHESS_BISHOP];
    if (bitboard_count(white) == 1 && bitboard_count(black) == 1 &&
        !(white & light) != !(black & light)) {
        const uint64_t others = chess_both(position, CHESS_KNIGHT) |
                                chess_both(position, CHESS_ROOK) |
                                chess_both(position, CHESS_QUEEN);
        return others == 0 ? 32 : 52;
    }
    return WHOLE;
}

bool chess_draws_likely(const struct chess_position *position)
{
    enum { FEW = 5 };
    const int advantage = CHESS_EG(position->score); /* White's; where it is 0, nobody may win */
    return bitboard_count(chess_occupied(position)) <= FEW &&
           (advantage < 0 || chess_draws_scale_64(position, CHESS_WHITE) <= LITTLE) &&
           (advantage > 0 || chess_draws_scale_64(position, CHESS_BLACK) <= LITTLE);
}
