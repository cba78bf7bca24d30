#include "worker/games/chess/eval.h"

#include "worker/games/chess/drawn_endings.h"

#define S CHESS_SCORE

/* By squares attacked that neither own pawns or king hold nor enemy pawns guard. About zero for
 * an average piece, so that material keeps its meaning. */
static const int32_t mobility[6][28] = {
    [CHESS_KNIGHT] = {S(-30, -38), S(-16, -20), S(-7, -9), S(-1, -1), S(5, 4), S(9, 9), S(12, 13),
                      S(15, 15), S(17, 16)},
    [CHESS_BISHOP] = {S(-24, -32), S(-13, -20), S(-4, -10), S(2, -3), S(7, 3), S(11, 8), S(14, 12),
                      S(16, 15), S(18, 17), S(20, 19), S(21, 20), S(22, 21), S(23, 22), S(24, 22)},
    [CHESS_ROOK] = {S(-20, -36), S(-13, -22), S(-8, -12), S(-5, -4), S(-2, 2), S(0, 7), S(2, 12),
                    S(5, 16), S(7, 20), S(9, 23), S(11, 26), S(13, 28), S(14, 30), S(15, 31),
                    S(16, 32)},
    [CHESS_QUEEN] = {S(-12, -30), S(-9, -22), S(-6, -16), S(-4, -11), S(-3, -7), S(-2, -4),
                     S(-1, -1),   S(0, 1),    S(1, 4),    S(2, 6),    S(3, 8),   S(4, 10),
                     S(5, 12),    S(5, 13),   S(6, 14),   S(6, 15),   S(7, 16),  S(7, 17),
                     S(8, 18),    S(8, 19),   S(8, 19),   S(9, 20),   S(9, 20),  S(9, 21),
                     S(10, 21),   S(10, 22),  S(10, 22),  S(10, 22)},
};

static const int32_t passed_pawn[8] = {0,         S(2, 8),   S(4, 12),   S(8, 26),
                                       S(24, 50), S(50, 92), S(85, 140), 0};
static const int32_t doubled_pawn = S(-7, -14);
static const int32_t isolated_pawn = S(-10, -10);
static const int32_t backward_pawn = S(-8, -7);
static const int32_t guarded_pawn = S(7, 4);
static const int32_t bishop_pair = S(26, 46);
static const int32_t rook_open_file = S(28, 8);
static const int32_t rook_half_open_file = S(12, 6);
static const int32_t knight_outpost = S(18, 10);
static const int32_t tempo = S(14, 8);

/* King safety, middlegame only. Attacks on the king's surroundings count by the attacker's kind,
 * and weigh the more the more pieces take part: one alone is no attack. */
static const int zone_attack[6] = {0, 18, 18, 28, 42, 0};
static const int attackers_weight_128[8] = {0, 16, 64, 96, 112, 120, 124, 128};
static const int shield_near = 12, shield_second = 6, open_file_near_king = -16;

struct side {
    uint64_t pawn_attacks;
    uint64_t behind; /* own pawns and all squares behind them */
    uint64_t king_zone;
};

BITBOARD_INLINE uint64_t fill_forward(uint64_t set, const unsigned colour)
{
    if (colour == CHESS_WHITE) {
        set |= set << 8;
        set |= set << 16;
        return set | set << 32;
    }
    set |= set >> 8;
    set |= set >> 16;
    return set | set >> 32;
}

BITBOARD_INLINE struct side side_of(const struct chess_position *position, const unsigned us)
{
    uint64_t pawns = chess_set(position, us, CHESS_PAWN);
    uint64_t zone = bitboard_tables.king[chess_king(position, us)];
    return (struct side){
        .pawn_attacks = bitboard_pawns(pawns, us),
        .behind = fill_forward(pawns, us ^ 1),
        .king_zone = zone | bitboard_forward(zone, us),
    };
}

/* Further than its rank, a passed pawn is worth what the kings' ways to its path make of it. */
BITBOARD_INLINE int32_t passed_pawns(const struct chess_position *position, uint64_t passed,
                                     const unsigned us)
{
    int32_t score = 0;
    while (passed) {
        unsigned square = bitboard_pop(&passed);
        unsigned rank = us == CHESS_WHITE ? square >> 3 : 7 - (square >> 3);
        unsigned stop = us == CHESS_WHITE ? square + 8 : square - 8;
        score += passed_pawn[rank];
        if (rank >= 3) {
            int beyond = (int)rank - 2;
            int theirs = bitboard_distance(chess_king(position, us ^ 1), stop);
            int ours = bitboard_distance(chess_king(position, us), stop);
            score += S(0, beyond * (4 * theirs - 2 * ours));
            if (position->board[stop] != CHESS_EMPTY) {
                score -= S(4 * beyond, 9 * beyond);
            }
        }
    }
    return score;
}

BITBOARD_INLINE int32_t pawn_structure(const struct chess_position *position,
                                       const struct side *ours, const struct side *theirs,
                                       const unsigned us)
{
    uint64_t pawns = chess_set(position, us, CHESS_PAWN);
    uint64_t files = fill_forward(ours->behind, us);
    uint64_t rear = pawns & bitboard_forward(ours->behind, us ^ 1);
    uint64_t isolated = pawns & ~bitboard_sideways(files);
    /* Its next square is the enemy's, and no neighbour can come to its help. */
    uint64_t lost =
        bitboard_forward(pawns, us) & theirs->pawn_attacks & ~fill_forward(ours->pawn_attacks, us);
    uint64_t backward = bitboard_forward(lost, us ^ 1) & ~isolated;
    uint64_t stopped =
        bitboard_forward(fill_forward(chess_set(position, us ^ 1, CHESS_PAWN), us ^ 1), us ^ 1);
    uint64_t passed = pawns & ~rear & ~(stopped | bitboard_sideways(stopped));
    return doubled_pawn * (int)bitboard_count(rear) +
           isolated_pawn * (int)bitboard_count(isolated) +
           backward_pawn * (int)bitboard_count(backward) +
           guarded_pawn * (int)bitboard_count(pawns & ours->pawn_attacks) +
           passed_pawns(position, passed, us);
}

struct assault {
    uint64_t zone;
    int force;
    unsigned attackers;
};

/* Mobility and attacks of all pieces of a kind, which is a constant in each copy. */
BITBOARD_INLINE int32_t pieces(const struct chess_position *position, const unsigned us,
                               const unsigned kind, uint64_t area, struct assault *assault)
{
    int32_t score = 0;
    uint64_t occupied = chess_occupied(position), set = chess_set(position, us, kind);
    while (set) {
        unsigned square = bitboard_pop(&set);
        uint64_t attacks = kind == CHESS_KNIGHT ? bitboard_tables.knight[square] : 0;
        if (kind == CHESS_BISHOP || kind == CHESS_QUEEN) {
            attacks |= bitboard_bishop(square, occupied);
        }
        if (kind == CHESS_ROOK || kind == CHESS_QUEEN) {
            attacks |= bitboard_rook(square, occupied);
        }
        uint64_t file = BITBOARD_FILE_A << (square & 7);
        if (kind == CHESS_ROOK && !(file & chess_set(position, us, CHESS_PAWN))) {
            score += file & chess_set(position, us ^ 1, CHESS_PAWN) ? rook_half_open_file
                                                                    : rook_open_file;
        }
        score += mobility[kind][bitboard_count(attacks & area)];
        uint64_t hits = attacks & assault->zone;
        assault->force += zone_attack[kind] * (int)bitboard_count(hits);
        assault->attackers += hits != 0;
    }
    return score;
}

/* Knights held by a pawn that no enemy pawn can ever drive away, and the pair of bishops. */
BITBOARD_INLINE int32_t minor_bonus(const struct chess_position *position, const struct side *ours,
                                    const struct side *theirs, const unsigned us)
{
    uint64_t camp = us == CHESS_WHITE ? UINT64_C(0x0000ffffff000000) : UINT64_C(0x000000ffffff0000);
    uint64_t outposts = camp & ours->pawn_attacks & ~fill_forward(theirs->pawn_attacks, us ^ 1);
    uint64_t bishops = chess_set(position, us, CHESS_BISHOP);
    return knight_outpost * (int)bitboard_count(chess_set(position, us, CHESS_KNIGHT) & outposts) +
           (bishops & (bishops - 1) ? bishop_pair : 0);
}

/* Pawns one or two steps before the king, and files there without any: middlegame only. */
BITBOARD_INLINE int32_t shelter(const struct chess_position *position, const struct side *ours,
                                const unsigned us)
{
    uint64_t pawns = chess_set(position, us, CHESS_PAWN);
    uint64_t king = chess_set(position, us, CHESS_KING);
    uint64_t near = bitboard_forward(king | bitboard_sideways(king), us);
    uint64_t second = bitboard_forward(near, us);
    uint64_t open = (king | bitboard_sideways(king)) & ~fill_forward(ours->behind, us);
    return S(shield_near * (int)bitboard_count(pawns & near) +
                 shield_second * (int)bitboard_count(pawns & second) +
                 open_file_near_king * (int)bitboard_count(open),
             0);
}

BITBOARD_INLINE int32_t side_score(const struct chess_position *position, const struct side *ours,
                                   const struct side *theirs, const unsigned us)
{
    uint64_t own_fixed = chess_set(position, us, CHESS_PAWN) | chess_set(position, us, CHESS_KING);
    uint64_t area = ~(own_fixed | theirs->pawn_attacks);
    struct assault assault = {theirs->king_zone, 0, 0};
    int32_t score = pawn_structure(position, ours, theirs, us) + shelter(position, ours, us);
    score += minor_bonus(position, ours, theirs, us);
    score += pieces(position, us, CHESS_KNIGHT, area, &assault);
    score += pieces(position, us, CHESS_BISHOP, area, &assault);
    score += pieces(position, us, CHESS_ROOK, area, &assault);
    score += pieces(position, us, CHESS_QUEEN, area, &assault);
    unsigned attackers = assault.attackers < 7 ? assault.attackers : 7;
    int danger = assault.force * attackers_weight_128[attackers] / 128;
    if (!chess_set(position, us, CHESS_QUEEN)) {
        danger /= 3;
    }
    return score + S(danger, 0);
}

BITBOARD_INLINE unsigned count_of(const struct chess_position *position, unsigned kind)
{
    return bitboard_count(chess_both(position, kind));
}

/* Against a bare king, mate needs the own king near. */
static int chase(const struct chess_position *position, unsigned strong)
{
    if (bitboard_count(chess_set(position, strong ^ 1, CHESS_ALL)) > 1) {
        return 0;
    }
    int apart =
        bitboard_distance(chess_king(position, CHESS_WHITE), chess_king(position, CHESS_BLACK));
    return 12 * (7 - apart);
}

int chess_eval(const void *at)
{
    const struct chess_position *position = at;
    struct side white = side_of(position, CHESS_WHITE), black = side_of(position, CHESS_BLACK);
    int32_t score = position->score + (position->side == CHESS_WHITE ? tempo : -tempo);
    score += side_score(position, &white, &black, CHESS_WHITE);
    score -= side_score(position, &black, &white, CHESS_BLACK);
    const unsigned pieces = count_of(position, CHESS_KNIGHT) + count_of(position, CHESS_BISHOP) +
                            2 * count_of(position, CHESS_ROOK) +
                            4 * count_of(position, CHESS_QUEEN);
    int mg = CHESS_MG(score), eg = CHESS_EG(score), phase = pieces < 24 ? (int)pieces : 24;
    if (eg != 0) { /* with no advantage there is no strong side: the colours must stay alike */
        unsigned strong = eg > 0 ? CHESS_WHITE : CHESS_BLACK;
        int near = chase(position, strong), scale = chess_draws_scale_64(position, strong);
        eg = (eg > 0 ? eg + near : eg - near) * scale / 64;
        mg = scale < 32 ? mg * scale / 64 : mg; /* nearly drawn whatever the middlegame says */
    }
    int blend = (mg * phase + eg * (24 - phase)) / 24;
    blend = blend > CHESS_EVAL_MAX - 1 ? CHESS_EVAL_MAX - 1 : blend;
    blend = blend < 1 - CHESS_EVAL_MAX ? 1 - CHESS_EVAL_MAX : blend;
    return position->side == CHESS_WHITE ? blend : -blend;
}

/* The nearer a draw by count, the less an advantage is worth. */
static int by_count(const struct chess_position *position, int score)
{
    enum { SPAN = CHESS_HALFMOVES_DRAWN - CHESS_HALFMOVES_COUNTED };
    const int left = CHESS_HALFMOVES_DRAWN - (int)position->halfmoves;
    return left >= SPAN ? score : left > 0 ? score * left / SPAN : 0;
}

int chess_eval_full(const void *at, void *sums)
{
    const struct chess_position *position = at;
    const uint64_t *set = position->set;
    for (unsigned colour = 0; colour < 2; colour++) {
        const uint64_t all = chess_set(position, colour, CHESS_ALL);
        if (!(all & (all - 1))) {
            return by_count(position, chess_eval(position));
        }
    }
    int score = chess_network_eval(sums, set, position->side);
    const int scale =
        chess_draws_scale_64(position, score > 0 ? position->side : position->side ^ 1u);
    score = by_count(position, scale < 32 ? score * scale / 64 : score);
    score = score > CHESS_EVAL_MAX - 1 ? CHESS_EVAL_MAX - 1 : score;
    return score < 1 - CHESS_EVAL_MAX ? 1 - CHESS_EVAL_MAX : score;
}
