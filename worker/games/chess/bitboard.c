#include "worker/games/chess/bitboard.h"

#include <stdbool.h>

struct bitboard_tables bitboard_tables;

/* Sum over the squares of 2^(squares whose occupation matters). */
static uint64_t rook_sets[102400];
static uint64_t bishop_sets[5248];

static const int rook_steps[4][2] = {{1, 0}, {-1, 0}, {0, 1}, {0, -1}};
static const int bishop_steps[4][2] = {{1, 1}, {1, -1}, {-1, 1}, {-1, -1}};

#if !BITBOARD_PEXT
/* Found by trying sparse splitmix64 numbers (seed 2024); each fills 2^bits entries at most. */
static const uint64_t rook_magics[64] = {
    UINT64_C(0x0080008020104000), UINT64_C(0x0240004020001004), UINT64_C(0x0480100081200008),
    UINT64_C(0x0480100080080004), UINT64_C(0x0280080180040016), UINT64_C(0x0080040002008001),
    UINT64_C(0x0400044800900712), UINT64_C(0x0100020020804100), UINT64_C(0x0088800040008820),
    UINT64_C(0x0822401000200046), UINT64_C(0x4000802000801000), UINT64_C(0x0000808010000800),
    UINT64_C(0x1801000700100800), UINT64_C(0x1026800400800200), UINT64_C(0x0005000402000100),
    UINT64_C(0xc98200220104408c), UINT64_C(0x8280004000200040), UINT64_C(0x0002020021004880),
    UINT64_C(0x0000220040120080), UINT64_C(0x1012420008102200), UINT64_C(0x404081800c000800),
    UINT64_C(0x0000080140200410), UINT64_C(0x1000010100020004), UINT64_C(0x0080820000940051),
    UINT64_C(0x2204400980008220), UINT64_C(0x2850004040002000), UINT64_C(0x0010200080801000),
    UINT64_C(0x2408080080100080), UINT64_C(0x0905008500100800), UINT64_C(0x0004000480020080),
    UINT64_C(0x4184284400106102), UINT64_C(0x0080110600008864), UINT64_C(0x4400804000800028),
    UINT64_C(0x1200402002401000), UINT64_C(0x0002802004801000), UINT64_C(0x0118080080801000),
    UINT64_C(0x4048000400800882), UINT64_C(0x4018800200800400), UINT64_C(0x0001000411004200),
    UINT64_C(0x0006048442002409), UINT64_C(0x8020400080008020), UINT64_C(0x1010002000504002),
    UINT64_C(0x0020001000808020), UINT64_C(0x0048080010008080), UINT64_C(0x3184080004008080),
    UINT64_C(0x0000040002008080), UINT64_C(0x0004020004010100), UINT64_C(0x040c840040820001),
    UINT64_C(0x2258410282063200), UINT64_C(0x0000210040088500), UINT64_C(0x0a38408012002200),
    UINT64_C(0x0e80082210030100), UINT64_C(0x4941008040201002), UINT64_C(0x2040040080020080),
    UINT64_C(0x8000800200010080), UINT64_C(0x0000404100841200), UINT64_C(0x0809a04292010282),
    UINT64_C(0x0021002200408012), UINT64_C(0x4040420020800812), UINT64_C(0x0011001000610449),
    UINT64_C(0x0482000408201002), UINT64_C(0x0282000401081016), UINT64_C(0x00020024010800c2),
    UINT64_C(0x0829000820820451),
};

static const uint64_t bishop_magics[64] = {
    UINT64_C(0x0404101000408080), UINT64_C(0x4038084800404460), UINT64_C(0x9112180200208020),
    UINT64_C(0x12482a00e008a396), UINT64_C(0x0001104020200000), UINT64_C(0x0401282840040000),
    UINT64_C(0x0200640404405010), UINT64_C(0x000a120801143020), UINT64_C(0x8098415101150900),
    UINT64_C(0x2900200491020021), UINT64_C(0x0800040460820109), UINT64_C(0x0180244101203000),
    UINT64_C(0x0042411040d04400), UINT64_C(0x8040233010100000), UINT64_C(0x08000201010841a8),
    UINT64_C(0x000000208410a800), UINT64_C(0x4090000420420412), UINT64_C(0x201000604420cc80),
    UINT64_C(0x0010010214004008), UINT64_C(0x00880080820440c0), UINT64_C(0x5004125202020008),
    UINT64_C(0x0100421200422000), UINT64_C(0x0012204402013410), UINT64_C(0x0022041082208200),
    UINT64_C(0x0110101009206105), UINT64_C(0x5282200230910223), UINT64_C(0x0024020850202040),
    UINT64_C(0x002018020300c018), UINT64_C(0x0001011003004010), UINT64_C(0x004a020000881100),
    UINT64_C(0x0008020204530c42), UINT64_C(0x4006104022004240), UINT64_C(0x0404200a045d1022),
    UINT64_C(0x0014012000048400), UINT64_C(0x2124060801d10043), UINT64_C(0x30020080220e0200),
    UINT64_C(0x0008020400181010), UINT64_C(0x1180900080b10082), UINT64_C(0x00080a00b0040080),
    UINT64_C(0x4028008080083200), UINT64_C(0x904a023004004228), UINT64_C(0x0911009004411014),
    UINT64_C(0x0003820801085201), UINT64_C(0x00c1004010480202), UINT64_C(0xc800080101041011),
    UINT64_C(0x5160200081092080), UINT64_C(0x1902046800800200), UINT64_C(0x4130820881008020),
    UINT64_C(0x0802011108422088), UINT64_C(0x5001011110224002), UINT64_C(0x0000011041100400),
    UINT64_C(0x0000000020882808), UINT64_C(0x8080001102020000), UINT64_C(0x0a00423022088010),
    UINT64_C(0x0c08190908060022), UINT64_C(0x212002c200410000), UINT64_C(0x10c8402088084000),
    UINT64_C(0x0080010124902c00), UINT64_C(0x0810080084008800), UINT64_C(0x0080200112420210),
    UINT64_C(0x0004022032020601), UINT64_C(0x004000e0a0028080), UINT64_C(0x00008408083808a0),
    UINT64_C(0x9204043404082200),
};
#endif

static bool on_board(int file, int rank)
{
    return file >= 0 && file < 8 && rank >= 0 && rank < 8;
}

static uint64_t slow_slide(unsigned square, uint64_t occupied, const int steps[4][2])
{
    uint64_t set = 0;
    for (int d = 0; d < 4; d++) {
        int file = (int)(square & 7) + steps[d][0];
        int rank = (int)(square >> 3) + steps[d][1];
        while (on_board(file, rank)) {
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
#if BITBOARD_PEXT
        uint64_t i = _pext_u64(occupied, mask);
#else
        uint64_t i = (occupied * magic) >> slider->shift;
#endif
        sets[i] = slow_slide(square, occupied, steps);
        occupied = (occupied - mask) & mask; /* the next subset of the mask */
    } while (occupied);
    return 1u << bitboard_count(mask);
}

static void fill_sliders(void)
{
    uint64_t *rook = rook_sets;
    uint64_t *bishop = bishop_sets;
    for (unsigned s = 0; s < 64; s++) {
#if BITBOARD_PEXT
        uint64_t rook_magic = 0, bishop_magic = 0;
#else
        uint64_t rook_magic = rook_magics[s], bishop_magic = bishop_magics[s];
#endif
        rook += fill_slider(&bitboard_tables.rook[s], rook, s, rook_steps, rook_magic);
        bishop += fill_slider(&bitboard_tables.bishop[s], bishop, s, bishop_steps, bishop_magic);
    }
}

static void fill_steppers(void)
{
    for (unsigned s = 0; s < 64; s++) {
        uint64_t bit = bitboard_of(s);
        for (unsigned colour = 0; colour < 2; colour++) {
            bitboard_tables.pawn[colour][s] =
                bitboard_forward_west(bit, colour) | bitboard_forward_east(bit, colour);
        }
        bitboard_tables.knight[s] = bitboard_knights(bit);
        uint64_t row = bit | ((bit & ~BITBOARD_FILE_A) >> 1) | ((bit & ~BITBOARD_FILE_H) << 1);
        bitboard_tables.king[s] = (row | row << 8 | row >> 8) ^ bit;
    }
}

static void fill_between(void)
{
    for (unsigned a = 0; a < 64; a++) {
        for (unsigned b = 0; b < 64; b++) {
            uint64_t ends = bitboard_of(a) | bitboard_of(b);
            uint64_t set = 0;
            if (a != b && (bitboard_slow_rook(a, 0) & bitboard_of(b))) {
                set = bitboard_slow_rook(a, ends) & bitboard_slow_rook(b, ends);
            } else if (a != b && (bitboard_slow_bishop(a, 0) & bitboard_of(b))) {
                set = bitboard_slow_bishop(a, ends) & bitboard_slow_bishop(b, ends);
            }
            bitboard_tables.between[a][b] = set;
        }
    }
}

/* Before main, so before there are threads: the games know nothing of locks. */
__attribute__((constructor)) static void fill_tables(void)
{
    fill_sliders();
    fill_steppers();
    fill_between();
}
