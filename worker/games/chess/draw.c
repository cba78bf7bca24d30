#include "worker/games/chess/draw.h"

#include "worker/games/chess/movegen.h"

static bool insufficient(const struct chess_position *position)
{
    uint64_t kings =
        chess_set(position, CHESS_WHITE, CHESS_KING) | chess_set(position, CHESS_BLACK, CHESS_KING);
    uint64_t minors = chess_set(position, CHESS_WHITE, CHESS_KNIGHT) |
                      chess_set(position, CHESS_BLACK, CHESS_KNIGHT) |
                      chess_set(position, CHESS_WHITE, CHESS_BISHOP) |
                      chess_set(position, CHESS_BLACK, CHESS_BISHOP);
    uint64_t occupied = chess_occupied(position);
    return bitboard_count(occupied) <= 3 && (kings | minors) == occupied;
}

bool chess_drawn(const struct chess_position *position)
{
    for (unsigned back = 4; back <= position->reversible; back += 2) {
        if (position->undo[position->ply - back].key == position->key) {
            return true;
        }
    }
    if (position->halfmoves >= 100 &&
        (!chess_position_check(position) || chess_movegen_count(position) > 0)) {
        return true;
    }
    return insufficient(position);
}
