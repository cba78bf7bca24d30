#include "worker/games/chess/movegen.h"

#include <string.h>

/* One walk over the moves serves listing and counting; `want` and the colour are constants in
 * each of the compiled copies. */
enum want { WANT_ALL, WANT_NOISY, WANT_COUNT };

struct walk {
    const struct chess_position *position;
    struct game_move *out;
    unsigned count;
    bool quiets; /* quiet moves are wanted too */
    unsigned king;
    uint64_t own, enemy, occupied;
    uint64_t checkers;
    uint64_t target; /* where a piece other than the king may land */
    uint64_t pin_line, pin_diagonal; /* the king's lines up to and with a pinning piece */
};

BITBOARD_INLINE void add(struct walk *walk, unsigned from, unsigned to, unsigned kind,
                         unsigned flags, int order)
{
    walk->out->move = chess_move_pack(from, to, kind);
    walk->out->flags = (uint16_t)flags;
    walk->out->order = order;
    walk->out++;
}

/* Most valuable victim first, then the least valuable attacker. */
BITBOARD_INLINE int capture_order(unsigned victim, unsigned attacker)
{
    return (int)((victim + 1) * 100 - attacker * 10);
}

BITBOARD_INLINE void emit(struct walk *walk, const enum want want, unsigned from, unsigned kind,
                          uint64_t targets)
{
    if (want == WANT_COUNT) {
        walk->count += bitboard_count(targets);
        return;
    }
    uint64_t captures = targets & walk->enemy;
    while (captures) {
        unsigned to = bitboard_pop(&captures);
        unsigned victim = walk->position->board[to] & 7;
        add(walk, from, to, CHESS_CAPTURE, GAME_NOISY, capture_order(victim, kind));
    }
    uint64_t quiets = targets & ~walk->enemy;
    while (quiets) {
        add(walk, from, bitboard_pop(&quiets), CHESS_QUIET, 0, 0);
    }
}

/* Snipers look at the king with only enemy pieces in the way: what stands between decides whether
 * one checks, pins or neither. Returns the lines of those that pin. */
BITBOARD_INLINE uint64_t find_pins(struct walk *walk, uint64_t snipers, uint64_t *check_line)
{
    uint64_t pins = 0;
    while (snipers) {
        unsigned sniper = bitboard_pop(&snipers);
        uint64_t between = bitboard_tables.between[walk->king][sniper];
        uint64_t shield = between & walk->own;
        uint64_t line = between | bitboard_of(sniper);
        if (!shield) {
            walk->checkers |= bitboard_of(sniper);
            *check_line |= line;
        } else if (!(shield & (shield - 1))) {
            pins |= line;
        }
    }
    return pins;
}

BITBOARD_INLINE void find_checks(struct walk *walk, const unsigned us)
{
    const uint64_t *enemy = &walk->position->set[(us ^ 1) << 3];
    unsigned king = walk->king;
    walk->checkers = (bitboard_tables.pawn[us][king] & enemy[CHESS_PAWN]) |
                     (bitboard_tables.knight[king] & enemy[CHESS_KNIGHT]);
    uint64_t check_line = walk->checkers;
    uint64_t rooks = enemy[CHESS_ROOK] | enemy[CHESS_QUEEN];
    uint64_t bishops = enemy[CHESS_BISHOP] | enemy[CHESS_QUEEN];
    walk->pin_line = find_pins(walk, bitboard_rook(king, walk->enemy) & rooks, &check_line);
    walk->pin_diagonal = find_pins(walk, bitboard_bishop(king, walk->enemy) & bishops, &check_line);
    walk->target = walk->checkers ? check_line : ~walk->own;
}

/* The king itself does not shield the square it flees to, so it is taken off the board. */
BITBOARD_INLINE void king_moves(struct walk *walk, const enum want want, const unsigned us)
{
    const uint64_t *enemy = &walk->position->set[(us ^ 1) << 3];
    uint64_t targets = bitboard_tables.king[walk->king] & ~walk->own;
    if (want == WANT_NOISY && !walk->quiets) {
        targets &= walk->enemy;
    }
    if (!targets) {
        return;
    }
    uint64_t pawns = enemy[CHESS_PAWN];
    targets &= ~(bitboard_pawns(pawns, us ^ 1) | bitboard_knights(enemy[CHESS_KNIGHT]) |
                 bitboard_tables.king[bitboard_first(enemy[CHESS_KING])]);
    uint64_t seen = walk->occupied ^ bitboard_of(walk->king);
    uint64_t rooks = enemy[CHESS_ROOK] | enemy[CHESS_QUEEN];
    uint64_t bishops = enemy[CHESS_BISHOP] | enemy[CHESS_QUEEN];
    uint64_t safe = targets;
    while (targets) {
        unsigned to = bitboard_pop(&targets);
        if ((bitboard_rook(to, seen) & rooks) || (bitboard_bishop(to, seen) & bishops)) {
            safe ^= bitboard_of(to);
        }
    }
    emit(walk, want, walk->king, CHESS_KING, safe);
}

/* The right says that king and rook stand at home; the king's path must be empty and not attacked,
 * the rook's only empty. In Chess960 the rook may have shielded the king where it arrives. */
BITBOARD_INLINE void castle(struct walk *walk, const enum want want, const unsigned us,
                            const unsigned kind)
{
    const struct chess_position *position = walk->position;
    const unsigned at = 2 * us + (kind == CHESS_LONG), rank = us == CHESS_WHITE ? 0 : 56;
    const unsigned to = rank + (kind == CHESS_SHORT ? 6 : 2);
    const unsigned rook_to = rank + (kind == CHESS_SHORT ? 5 : 3);
    if (!(position->castling & 1u << at)) {
        return;
    }
    const unsigned rook = position->rook_home[at];
    const uint64_t others = walk->occupied ^ bitboard_of(walk->king) ^ bitboard_of(rook);
    uint64_t path = bitboard_tables.between[walk->king][to] | bitboard_of(to);
    if ((path | bitboard_tables.between[rook][rook_to] | bitboard_of(rook_to)) & others) {
        return;
    }
    while (path) {
        if (chess_attackers(position, bitboard_pop(&path), us ^ 1, walk->occupied)) {
            return;
        }
    }
    if (position->chess960 &&
        chess_attackers(position, to, us ^ 1, others | bitboard_of(rook_to))) {
        return;
    }
    if (want == WANT_COUNT) {
        walk->count++;
    } else {
        add(walk, walk->king, to, kind, 0, 0);
    }
}

/* A piece pinned on a line stays on it. */
BITBOARD_INLINE void slider_moves(struct walk *walk, const enum want want, const unsigned us,
                                  const unsigned kind, uint64_t target)
{
    uint64_t from_set = chess_set(walk->position, us, kind);
    while (from_set) {
        unsigned from = bitboard_pop(&from_set);
        uint64_t bit = bitboard_of(from);
        uint64_t line = kind == CHESS_BISHOP ? 0 : bitboard_rook(from, walk->occupied);
        uint64_t diagonal = kind == CHESS_ROOK ? 0 : bitboard_bishop(from, walk->occupied);
        if (bit & walk->pin_line) {
            line &= walk->pin_line;
            diagonal = 0;
        } else if (bit & walk->pin_diagonal) {
            line = 0;
            diagonal &= walk->pin_diagonal;
        }
        emit(walk, want, from, kind, (line | diagonal) & target);
    }
}

/* Knights, bishops, rooks and queens. */
BITBOARD_INLINE void piece_moves(struct walk *walk, const enum want want, const unsigned us)
{
    uint64_t target = walk->target;
    if (want == WANT_NOISY && !walk->quiets) {
        target &= walk->enemy;
    }
    uint64_t pinned = walk->pin_line | walk->pin_diagonal;
    uint64_t knights = chess_set(walk->position, us, CHESS_KNIGHT) & ~pinned;
    while (knights) {
        unsigned from = bitboard_pop(&knights);
        emit(walk, want, from, CHESS_KNIGHT, bitboard_tables.knight[from] & target);
    }
    slider_moves(walk, want, us, CHESS_BISHOP, target);
    slider_moves(walk, want, us, CHESS_ROOK, target);
    slider_moves(walk, want, us, CHESS_QUEEN, target);
}

/* Pawns that reach `targets` by a move of `delta` squares. */
BITBOARD_INLINE void emit_pawns(struct walk *walk, const enum want want, uint64_t targets,
                                const int delta, const unsigned kind)
{
    if (want == WANT_COUNT) {
        walk->count += bitboard_count(targets);
        return;
    }
    while (targets) {
        unsigned to = bitboard_pop(&targets);
        unsigned from = (unsigned)((int)to - delta);
        if (kind == CHESS_CAPTURE) {
            unsigned victim = walk->position->board[to] & 7;
            add(walk, from, to, kind, GAME_NOISY, capture_order(victim, CHESS_PAWN));
        } else {
            add(walk, from, to, kind, 0, 0);
        }
    }
}

BITBOARD_INLINE void emit_promotions(struct walk *walk, const enum want want, uint64_t targets,
                                     const int delta, const unsigned capture)
{
    if (want == WANT_COUNT) {
        walk->count += 4 * bitboard_count(targets);
        return;
    }
    while (targets) {
        unsigned to = bitboard_pop(&targets);
        unsigned from = (unsigned)((int)to - delta);
        unsigned victim = walk->position->board[to] & 7;
        int gain = capture ? capture_order(victim, CHESS_PAWN) : 0;
        add(walk, from, to, CHESS_TO_QUEEN | capture, GAME_NOISY, 450 + gain);
        if (!capture && want == WANT_NOISY && !walk->quiets) {
            continue;
        }
        for (unsigned lesser = 3; lesser-- > 0;) {
            unsigned flags = capture ? GAME_NOISY : 0;
            add(walk, from, to, CHESS_PROMOTION | lesser | capture, flags, capture ? 1 : 0);
        }
    }
}

/* Apart from the main captures: rare, and each capturer has been tested already. */
BITBOARD_INLINE void ep_moves(struct walk *walk, const enum want want, const unsigned us)
{
    unsigned ep = walk->position->ep;
    uint64_t pawns = chess_position_ep_pawns(walk->position, us, ep);
    if (want == WANT_COUNT) {
        walk->count += bitboard_count(pawns);
        return;
    }
    while (pawns) {
        add(walk, bitboard_pop(&pawns), ep, CHESS_EN_PASSANT, GAME_NOISY,
            capture_order(CHESS_PAWN, CHESS_PAWN));
    }
}

/* A pawn pinned on a line never captures and one pinned on a diagonal never pushes; masking all
 * their targets with all pin lines is exact, since no pawn move leads from one line to another. */
BITBOARD_INLINE void pawn_moves(struct walk *walk, const enum want want, const unsigned us)
{
    const uint64_t last = us == CHESS_WHITE ? BITBOARD_RANK_8 : BITBOARD_RANK_1;
    const uint64_t third = us == CHESS_WHITE ? BITBOARD_RANK_1 << 16 : BITBOARD_RANK_8 >> 16;
    const int ahead = us == CHESS_WHITE ? 8 : -8;
    uint64_t pawns = chess_set(walk->position, us, CHESS_PAWN);
    uint64_t pushers = pawns & ~walk->pin_diagonal, takers = pawns & ~walk->pin_line;
    uint64_t bound = pushers & walk->pin_line, empty = ~walk->occupied;
    uint64_t push =
        (bitboard_forward(pushers ^ bound, us) | (bitboard_forward(bound, us) & walk->pin_line)) &
        empty;
    uint64_t twice = bitboard_forward(push & third, us) & empty & walk->target;
    push &= walk->target;

    bound = takers & walk->pin_diagonal;
    takers ^= bound;
    uint64_t victims = walk->enemy & walk->target;
    uint64_t west = (bitboard_forward_west(takers, us) |
                     (bitboard_forward_west(bound, us) & walk->pin_diagonal)) &
                    victims;
    uint64_t east = (bitboard_forward_east(takers, us) |
                     (bitboard_forward_east(bound, us) & walk->pin_diagonal)) &
                    victims;

    if ((push | west | east) & last) {
        emit_promotions(walk, want, west & last, ahead - 1, CHESS_CAPTURE);
        emit_promotions(walk, want, east & last, ahead + 1, CHESS_CAPTURE);
        emit_promotions(walk, want, push & last, ahead, 0);
    }
    emit_pawns(walk, want, west & ~last, ahead - 1, CHESS_CAPTURE);
    emit_pawns(walk, want, east & ~last, ahead + 1, CHESS_CAPTURE);
    if (walk->position->ep != CHESS_NO_SQUARE) {
        ep_moves(walk, want, us);
    }
    if (want != WANT_NOISY || walk->quiets) {
        emit_pawns(walk, want, push & ~last, ahead, CHESS_QUIET);
        emit_pawns(walk, want, twice, 2 * ahead, CHESS_DOUBLE);
    }
}

BITBOARD_INLINE unsigned walk_moves(const struct chess_position *position, struct game_move *list,
                                    const enum want want, const unsigned us)
{
    struct walk walk = {
        .position = position,
        .out = list,
        .king = chess_king(position, us),
        .own = chess_set(position, us, CHESS_ALL),
        .enemy = chess_set(position, us ^ 1, CHESS_ALL),
        .occupied = chess_occupied(position),
    };
    find_checks(&walk, us);
    walk.quiets = want != WANT_NOISY || walk.checkers;
    if (!(walk.checkers & (walk.checkers - 1))) { /* else only the king can move */
        pawn_moves(&walk, want, us);
        piece_moves(&walk, want, us);
    }
    if (want != WANT_NOISY && !walk.checkers && position->castling & (3u << 2 * us)) {
        castle(&walk, want, us, CHESS_SHORT);
        castle(&walk, want, us, CHESS_LONG);
    }
    king_moves(&walk, want, us);
    return want == WANT_COUNT ? walk.count : (unsigned)(walk.out - list);
}

typedef unsigned lister(const struct chess_position *position, struct game_move *list);

__attribute__((noinline)) static unsigned list_all(const struct chess_position *position,
                                                   struct game_move *list)
{
    return position->side == CHESS_WHITE ? walk_moves(position, list, WANT_ALL, CHESS_WHITE)
                                         : walk_moves(position, list, WANT_ALL, CHESS_BLACK);
}

__attribute__((noinline)) static unsigned list_noisy(const struct chess_position *position,
                                                     struct game_move *list)
{
    return position->side == CHESS_WHITE ? walk_moves(position, list, WANT_NOISY, CHESS_WHITE)
                                         : walk_moves(position, list, WANT_NOISY, CHESS_BLACK);
}

/* Fifteen queens could have more moves than lists have room for: those beyond it are left out. */
static unsigned list_of_many(const struct chess_position *position, struct game_move *list,
                             lister *list_them)
{
    enum { QUEEN_MOVES = 27, KING_MOVES = 8 + 2, MOST = 15 * QUEEN_MOVES + KING_MOVES };
    struct game_move all[MOST];
    unsigned count = list_them(position, all);
    count = count < GAME_MOVES_MAX ? count : GAME_MOVES_MAX;
    memcpy(list, all, count * sizeof *list);
    return count;
}

unsigned chess_movegen_all(const void *at, struct game_move *list)
{
    const struct chess_position *position = at;
    return position->is_unreal ? list_of_many(position, list, list_all) : list_all(position, list);
}

unsigned chess_movegen_noisy(const void *at, struct game_move *list)
{
    const struct chess_position *position = at;
    return position->is_unreal ? list_of_many(position, list, list_noisy)
                               : list_noisy(position, list);
}

unsigned chess_movegen_count(const struct chess_position *position)
{
    return position->side == CHESS_WHITE ? walk_moves(position, NULL, WANT_COUNT, CHESS_WHITE)
                                         : walk_moves(position, NULL, WANT_COUNT, CHESS_BLACK);
}

uint64_t chess_perft(struct chess_position *position, unsigned depth)
{
    if (depth <= 1) {
        return depth == 0 ? 1 : chess_movegen_count(position);
    }
    struct game_move list[GAME_MOVES_MAX];
    unsigned count = chess_movegen_all(position, list);
    uint64_t leaves = 0;
    for (unsigned i = 0; i < count; i++) {
        chess_position_make(position, list[i].move);
        leaves += chess_perft(position, depth - 1);
        chess_position_unmake(position, list[i].move);
    }
    return leaves;
}
