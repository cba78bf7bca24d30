#include "worker/games/chess/see.h"

/* Knight and bishop alike: giving one for the other loses nothing. */
static const int value[8] = {
    [CHESS_PAWN] = 100,  [CHESS_KNIGHT] = 325, [CHESS_BISHOP] = 325, [CHESS_ROOK] = 500,
    [CHESS_QUEEN] = 950, [CHESS_KING] = 10000, [CHESS_ALL] = 0,      [CHESS_EMPTY] = 0};

/* The exchange on `to` after the first capture. `balance` is what the side that captured first has
 * over its threshold if the piece now on the square is lost; `occupied` lacks the first capturer.
 * Returns whether that side reaches its threshold. */
static bool exchange(const struct chess_position *position, unsigned to, uint64_t occupied,
                     int balance, unsigned first)
{
    uint64_t rooks = chess_both(position, CHESS_ROOK) | chess_both(position, CHESS_QUEEN);
    uint64_t bishops = chess_both(position, CHESS_BISHOP) | chess_both(position, CHESS_QUEEN);
    uint64_t attackers = chess_attackers(position, to, CHESS_WHITE, occupied) |
                         chess_attackers(position, to, CHESS_BLACK, occupied);
    unsigned side = first ^ 1;
    for (;;) {
        attackers &= occupied;
        uint64_t mine = attackers & chess_set(position, side, CHESS_ALL);
        if (!mine) {
            break;
        }
        unsigned kind = CHESS_PAWN;
        while (!(mine & chess_set(position, side, kind))) {
            kind++;
        }
        if (kind == CHESS_KING && (attackers & chess_set(position, side ^ 1, CHESS_ALL))) {
            break; /* a king does not capture what is defended */
        }
        side ^= 1;
        balance = -balance - 1 - value[kind];
        if (balance >= 0) {
            break; /* ahead even if that capturer is lost for nothing */
        }
        occupied ^= bitboard_of(bitboard_first(mine & chess_set(position, side ^ 1, kind)));
        attackers |=
            (bitboard_rook(to, occupied) & rooks) | (bitboard_bishop(to, occupied) & bishops);
    }
    return side != first; /* the side that must move and cannot gain has fallen short */
}

bool chess_see_at_least(const void *at, uint16_t move, int threshold)
{
    const struct chess_position *position = at;
    unsigned from = chess_move_from(move), to = chess_move_to(move), kind = chess_move_kind(move);
    if (kind == CHESS_SHORT || kind == CHESS_LONG) {
        return threshold <= 0;
    }
    uint64_t occupied = chess_occupied(position) ^ bitboard_of(from);
    int gain = value[position->board[to] & 7] - threshold;
    int at_stake = value[position->board[from] & 7];
    if (kind == CHESS_EN_PASSANT) {
        gain += value[CHESS_PAWN];
        occupied ^= bitboard_of(to ^ 8);
    } else if (kind & CHESS_PROMOTION) {
        at_stake = value[chess_move_promoted(move)];
        gain += at_stake - value[CHESS_PAWN];
    }
    if (gain < 0) {
        return false;
    }
    if (gain - at_stake >= 0) {
        return true;
    }
    return exchange(position, to, occupied, gain - at_stake, position->side);
}
