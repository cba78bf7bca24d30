#include "worker/games/chess/bitboard.h"

struct bitboard_tables bitboard_tables;

/* Sum over the squares of 2^(squares whose occupation matters). */
static uint64_t rook_sets[102400];
static uint64_t bishop_sets[5248];

static const int rook_steps[4][2] = {{1, 0}, {-1, 0}, {0, 1}, {0, -1}};
static const int bishop_steps[4][2] = {{1, 1}, {1, -1}, {-1, 1}, {-1, -1}};

/* Found by trying sparse splitmix64 numbers (seed 2024); each fills 2^bits entries at most. */
static const uint64_t rook_magics[64] = {
    0x0080008020104000, 0x0240004020001004, 0x0480100081200008, 0x0480100080080004,
    0x0280080180040016, 0x0080040002008001, 0x0400044800900712, 0x0100020020804100,
    0x0088800040008820, 0x0822401000200046, 0x4000802000801000, 0x0000808010000800,
    0x1801000700100800, 0x1026800400800200, 0x0005000402000100, 0xc98200220104408c,
    0x8280004000200040, 0x0002020021004880, 0x0000220040120080, 0x1012420008102200,
    0x404081800c000800, 0x0000080140200410, 0x1000010100020004, 0x0080820000940051,
    0x2204400980008220, 0x2850004040002000, 0x0010200080801000, 0x2408080080100080,
    0x0905008500100800, 0x0004000480020080, 0x4184284400106102, 0x0080110600008864,
    0x4400804000800028, 0x1200402002401000, 0x0002802004801000, 0x0118080080801000,
    0x4048000400800882, 0x4018800200800400, 0x0001000411004200, 0x0006048442002409,
    0x8020400080008020, 0x1010002000504002, 0x0020001000808020, 0x0048080010008080,
    0x3184080004008080, 0x0000040002008080, 0x0004020004010100, 0x040c840040820001,
    0x2258410282063200, 0x0000210040088500, 0x0a38408012002200, 0x0e80082210030100,
    0x4941008040201002, 0x2040040080020080, 0x8000800200010080, 0x0000404100841200,
    0x0809a04292010282, 0x0021002200408012, 0x4040420020800812, 0x0011001000610449,
    0x0482000408201002, 0x0282000401081016, 0x00020024010800c2, 0x0829000820820451,
};

static const uint64_t bishop_magics[64] = {
    0x0404101000408080, 0x4038084800404460, 0x9112180200208020, 0x12482a00e008a396,
    0x0001104020200000, 0x0401282840040000, 0x0200640404405010, 0x000a120801143020,
    0x8098415101150900, 0x2900200491020021, 0x0800040460820109, 0x0180244101203000,
    0x0042411040d04400, 0x8040233010100000, 0x08000201010841a8, 0x000000208410a800,
    0x4090000420420412, 0x201000604420cc80, 0x0010010214004008, 0x00880080820440c0,
    0x5004125202020008, 0x0100421200422000, 0x0012204402013410, 0x0022041082208200,
    0x0110101009206105, 0x5282200230910223, 0x0024020850202040, 0x002018020300c018,
    0x0001011003004010, 0x004a020000881100, 0x0008020204530c42, 0x4006104022004240,
    0x0404200a045d1022, 0x0014012000048400, 0x2124060801d10043, 0x30020080220e0200,
    0x0008020400181010, 0x1180900080b10082, 0x00080a00b0040080, 0x4028008080083200,
    0x904a023004004228, 0x0911009004411014, 0x0003820801085201, 0x00c1004010480202,
    0xc800080101041011, 0x5160200081092080, 0x1902046800800200, 0x4130820881008020,
    0x0802011108422088, 0x5001011110224002, 0x0000011041100400, 0x0000000020882808,
    0x8080001102020000, 0x0a00423022088010, 0x0c08190908060022, 0x212002c200410000,
    0x10c8402088084000, 0x0080010124902c00, 0x0810080084008800, 0x0080200112420210,
    0x0004022032020601, 0x004000e0a0028080, 0x00008408083808a0, 0x9204043404082200,
};

static uint64_t slow_slide(unsigned square, uint64_t occupied, const int steps[4][2])
{
    uint64_t set = 0;
    for (int d = 0; d < 4; d++) {
        int file = (int)(square & 7) + steps[d][0];
        int rank = (int)(square >> 3) + steps[d][1];
        while (file >= 0 && file < 8 && rank >= 0 && rank < 8) {
            uint64_t bit = bitboard_of((unsigned)(rank * 8 + file));
            set |= bit;
            if (occupied & bit) {
                break;
            }
            file += steps[d][0];
            rank += steps[d][1];
        }
    }
    return set;
}

uint64_t bitboard_slow_rook(unsigned square, uint64_t occupied)
{
    return slow_slide(square, occupied, rook_steps);
}

uint64_t bitboard_slow_bishop(unsigned square, uint64_t occupied)
{
    return slow_slide(square, occupied, bishop_steps);
}

/* The last square of a line is attacked whether occupied or not, so it is left out of the mask. */
static uint64_t relevant(unsigned square, const int steps[4][2])
{
    uint64_t rank = BITBOARD_RANK_1 << (square & 56);
    uint64_t file = BITBOARD_FILE_A << (square & 7);
    uint64_t rim = ((BITBOARD_RANK_1 | BITBOARD_RANK_8) & ~rank) |
                   ((BITBOARD_FILE_A | BITBOARD_FILE_H) & ~file);
    return slow_slide(square, 0, steps) & ~rim;
}

/* Fills one square's part of the table and returns its size. */
static unsigned fill_slider(struct bitboard_slider *slider, uint64_t *sets, unsigned square,
                            const int steps[4][2], uint64_t magic)
{
    uint64_t mask = relevant(square, steps);
    slider->mask = mask;
    slider->sets = sets;
#if BITBOARD_PEXT
    (void)magic;
#else
    slider->magic = magic;
    slider->shift = 64 - bitboard_count(mask);
#endif
    uint64_t occupied = 0;
    do {
        sets[bitboard_index(slider, occupied)] = slow_slide(square, occupied, steps);
        occupied = (occupied - mask) & mask; /* the next subset of the mask */
    } while (occupied);
    return 1u << bitboard_count(mask);
}

/* Before main, so before there are threads: the games know nothing of locks. */
__attribute__((constructor)) static void fill_tables(void)
{
    struct bitboard_tables *t = &bitboard_tables;
    uint64_t *rook = rook_sets, *bishop = bishop_sets;
    for (unsigned a = 0; a < 64; a++) {
        rook += fill_slider(&t->rook[a], rook, a, rook_steps, rook_magics[a]);
        bishop += fill_slider(&t->bishop[a], bishop, a, bishop_steps, bishop_magics[a]);
        t->pawn[CHESS_WHITE][a] = bitboard_pawns(bitboard_of(a), CHESS_WHITE);
        t->pawn[CHESS_BLACK][a] = bitboard_pawns(bitboard_of(a), CHESS_BLACK);
        t->knight[a] = bitboard_knights(bitboard_of(a));
        t->king[a] = bitboard_kings(bitboard_of(a));
        for (unsigned b = 0; b < 64; b++) {
            const uint64_t ends = bitboard_of(a) | bitboard_of(b);
            if (a != b && (bitboard_slow_rook(a, 0) & bitboard_of(b))) {
                t->between[a][b] = bitboard_slow_rook(a, ends) & bitboard_slow_rook(b, ends);
            } else if (a != b && (bitboard_slow_bishop(a, 0) & bitboard_of(b))) {
                t->between[a][b] = bitboard_slow_bishop(a, ends) & bitboard_slow_bishop(b, ends);
            }
        }
    }
}
