/* tables: per piece and square, the Zobrist key and the value; per castling right and file, keys.
 *
 * Values are a middlegame and an endgame number packed in 32 bits, which add as one (the
 * endgame half borrows; CHESS_MG and CHESS_EG undo that). Both halves stay within 16 bits.
 * Threads: any; filled once before main() and only read afterwards. */
#ifndef WORKER_GAMES_CHESS_TABLES_H
#define WORKER_GAMES_CHESS_TABLES_H

#include <stdint.h>

#define CHESS_SCORE(mg, eg) ((int32_t)((eg)*65536 + (mg)))
#define CHESS_MG(score) ((int)(int16_t)(uint16_t)(uint32_t)(score))
#define CHESS_EG(score) ((int)(int16_t)(uint16_t)(((uint32_t)(score) + 0x8000u) >> 16))

struct chess_tables {
    struct {
        uint64_t key;
        int32_t score; /* from white's side: black's are negative */
    } square[16][64];
    uint64_t castling[16]; /* linear: castling[a] ^ castling[b] == castling[a ^ b] */
    uint64_t ep[8];
    uint64_t black;
};

extern struct chess_tables chess_tables;

#endif
