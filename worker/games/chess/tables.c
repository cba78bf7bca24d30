#include "worker/games/chess/tables.h"

#include "common/rng.h"
#include "worker/games/chess/position.h"

struct chess_tables chess_tables;

static const struct {
    int mg, eg;
} material[6] = {{85, 108}, {325, 305}, {340, 325}, {470, 545}, {985, 1000}, {0, 0}};

/* Half boards, files a to d, as the board is seen in a diagram: the eighth rank comes first, and
 * the other wing mirrors. What passed pawns, shelter and mobility are worth is in eval.c. */
static const int8_t middlegame[6][8][4] = {
    [CHESS_PAWN] = {{0, 0, 0, 0},
                    {35, 40, 45, 50},
                    {8, 15, 20, 25},
                    {-2, 2, 6, 16},
                    {-8, -4, 5, 18},
                    {-7, -3, 0, 5},
                    {-7, 2, -2, -14},
                    {0, 0, 0, 0}},
    [CHESS_KNIGHT] = {{-85, -40, -25, -20},
                      {-30, -15, 12, 15},
                      {-10, 12, 25, 32},
                      {-5, 10, 22, 28},
                      {-10, 4, 16, 22},
                      {-18, 0, 11, 15},
                      {-28, -18, -4, 0},
                      {-60, -24, -22, -16}},
    [CHESS_BISHOP] = {{-25, -12, -16, -18},
                      {-14, -4, -2, -4},
                      {-4, 6, 8, 8},
                      {-4, 4, 8, 16},
                      {-2, 4, 8, 15},
                      {0, 10, 8, 7},
                      {2, 12, 6, 2},
                      {-14, -6, -12, -10}},
    [CHESS_ROOK] = {{4, 6, 8, 10},
                    {8, 10, 16, 18},
                    {-4, 2, 4, 6},
                    {-8, -3, 0, 3},
                    {-12, -5, -3, 0},
                    {-14, -6, -3, 0},
                    {-16, -8, -2, 2},
                    {-10, -6, 2, 9}},
    [CHESS_QUEEN] = {{-4, 2, 6, 8},
                     {-6, -12, 2, 2},
                     {-2, 0, 4, 6},
                     {-6, -4, -2, 0},
                     {-4, -2, -1, -2},
                     {-6, 0, -1, -1},
                     {-8, -2, 3, 2},
                     {-12, -10, -6, 4}},
    [CHESS_KING] = {{-40, -35, -45, -60},
                    {-35, -30, -40, -55},
                    {-35, -30, -45, -60},
                    {-40, -35, -50, -65},
                    {-35, -30, -45, -60},
                    {-15, -10, -30, -40},
                    {12, 10, -14, -26},
                    {22, 36, 8, -8}},
};

static const int8_t endgame[6][8][4] = {
    [CHESS_PAWN] = {{0, 0, 0, 0},
                    {45, 42, 36, 32},
                    {22, 20, 14, 10},
                    {8, 5, 0, -4},
                    {0, 0, -5, -6},
                    {-4, -2, -3, 0},
                    {-2, 0, 3, 5},
                    {0, 0, 0, 0}},
    [CHESS_KNIGHT] = {{-50, -30, -16, -14},
                      {-24, -10, -6, 2},
                      {-14, -4, 10, 12},
                      {-8, 4, 16, 20},
                      {-8, 2, 14, 20},
                      {-14, -2, 4, 14},
                      {-26, -12, -6, 2},
                      {-40, -28, -16, -12}},
    [CHESS_BISHOP] = {{-14, -10, -8, -6},
                      {-8, -3, 0, -2},
                      {-2, 0, 3, 3},
                      {-2, 3, 6, 9},
                      {-4, 1, 6, 8},
                      {-6, -1, 4, 6},
                      {-10, -8, -3, 0},
                      {-16, -9, -10, -4}},
    [CHESS_ROOK] = {{8, 8, 10, 9},
                    {8, 9, 8, 6},
                    {6, 5, 5, 4},
                    {5, 4, 6, 3},
                    {2, 3, 3, 1},
                    {-3, 0, -3, -2},
                    {-5, -4, -1, -1},
                    {-6, -2, 0, -2}},
    [CHESS_QUEEN] = {{-8, 6, 10, 12},
                     {-8, 8, 14, 20},
                     {-8, 4, 10, 24},
                     {0, 12, 14, 26},
                     {-6, 12, 10, 24},
                     {-12, -6, 8, 6},
                     {-18, -16, -14, -8},
                     {-24, -22, -18, -20}},
    [CHESS_KING] = {{-50, -22, -12, -10},
                    {-16, 8, 12, 12},
                    {0, 18, 24, 24},
                    {-6, 18, 26, 30},
                    {-14, 8, 22, 28},
                    {-18, 2, 14, 20},
                    {-26, -8, 4, 10},
                    {-50, -32, -20, -22}},
};

static int32_t white_score(unsigned kind, unsigned square)
{
    unsigned row = 7 - (square >> 3), file = square & 7;
    unsigned column = file < 4 ? file : 7 - file;
    return CHESS_SCORE(material[kind].mg + middlegame[kind][row][column],
                       material[kind].eg + endgame[kind][row][column]);
}

/* Before main, so before there are threads: the games know nothing of locks. */
__attribute__((constructor)) static void fill_tables(void)
{
    uint64_t seed = rng_hash_text("chess keys/1");
    for (unsigned kind = CHESS_PAWN; kind <= CHESS_KING; kind++) {
        for (unsigned square = 0; square < 64; square++) {
            int32_t score = white_score(kind, square);
            chess_tables.square[kind][square].key = rng_next(&seed);
            chess_tables.square[kind][square].score = score;
            chess_tables.square[8 | kind][square ^ 56].key = rng_next(&seed);
            chess_tables.square[8 | kind][square ^ 56].score = -score;
        }
    }
    for (unsigned rights = 1; rights < 16; rights++) {
        unsigned rest = rights & (rights - 1);
        chess_tables.castling[rights] =
            rest ? chess_tables.castling[rest] ^ chess_tables.castling[rights ^ rest]
                 : rng_next(&seed);
    }
    for (unsigned file = 0; file < 8; file++) {
        chess_tables.ep[file] = rng_next(&seed);
    }
    chess_tables.black = rng_next(&seed);
}
