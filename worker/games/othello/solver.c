#include "worker/games/othello/solver.h"

#include "worker/games/othello/last.h"
#include "worker/games/othello/patterns.h"

#include <limits.h>
#include <stdatomic.h>
#include <string.h>

enum {
    BUCKETS_LOG = 20,
    NEAR_LOG = 11,
    NEAR_SEARCHERS = 2, /* no more keep near boards apart */
    NEAR_EMPTIES = 11,
    SLOTS = 3,
    MOVES_MAX = 34, /* no board has more */
    POLL_NODES = 1000,
    NONE = -OTHELLO_SCORE_MAX - 2, /* below every value */
    DIVIDED_EMPTIES = 12, /* with fewer, a search is shorter than it takes to say so */
    ETC_EMPTIES = 7, /* with fewer, replies are not read from the hash before they are searched */
};

/* ---- the hash ----
 *
 * Several searchers use it at a time, without a lock. One of the words of a slot is mixed with the
 * others: of a slot that two write at the same time no reader takes the one's board with the
 * other's bounds (Hyatt and Mann 2002). */

/* Three boards in a cache line. All zero is the board without discs, worth 0. */
struct bucket {
    _Atomic uint64_t own[SLOTS], mixed[SLOTS]; /* of the board */
    _Atomic uint32_t found[SLOTS]; /* lower and upper bound, move, doubt: bytes */
    atomic_uchar level[SLOTS]; /* how much it is worth to keep */
    atomic_uchar busy; /* byte of a board that somebody searches; 0: none */
};
_Static_assert(sizeof(struct bucket) == 64, "one cache line");

struct othello_memory {
    struct bucket bucket[1 << BUCKETS_LOG];
};

struct found {
    int lower, upper;
    unsigned move; /* one that is worth lower or more; if that is nothing, any */
    unsigned doubt; /* 0: the bounds are proved; else they are those of a selective search */
};

static const struct found nothing = {-OTHELLO_SCORE_MAX, OTHELLO_SCORE_MAX, OTHELLO_NO_MOVE, 0};

struct search {
    struct othello_memory *memory;
    const struct game_solver *solver;
    unsigned nodes; /* not yet counted */
    unsigned count_nodes; /* so many are */
    unsigned doubt; /* of what it finds */
    bool divides; /* set if others search the same tree */
    bool stopped;
    unsigned near_empties; /* boards of so many empty squares and fewer are in ... */
    struct bucket *near; /* ... this part of the memory, which is this searcher's own */
};

static inline uint64_t hash_of(struct othello_board board)
{
    uint64_t h = board.own * UINT64_C(0x9e3779b97f4a7c15);
    h ^= h >> 32;
    h = (h + board.other) * UINT64_C(0xbf58476d1ce4e5b9);
    h ^= h >> 32;
    return h * UINT64_C(0x94d049bb133111eb);
}

static inline struct bucket *bucket_at(const struct search *search, uint64_t hash)
{
    return &search->memory->bucket[hash >> (64 - BUCKETS_LOG)];
}

/* Boards of few empty squares are many, and come again soon or never. One or two searchers each
 * keep them in a part of the memory that the core's cache holds and no other core writes to. More
 * searchers share them all: without that an ending takes 4 x 8 virtual searchers twice the time. */
static inline struct bucket *bucket_of(const struct search *search, struct othello_board board,
                                       unsigned empties)
{
    const uint64_t hash = hash_of(board);
    return empties <= search->near_empties ? &search->near[hash >> (64 - NEAR_LOG)]
                                           : bucket_at(search, hash);
}

#define READ(place) atomic_load_explicit(&(place), memory_order_relaxed)
#define WRITE(place, value) atomic_store_explicit(&(place), (value), memory_order_relaxed)

static inline uint64_t mixed(struct othello_board board, uint32_t found)
{
    return board.other ^ board.own * UINT64_C(0x9e3779b97f4a7c15) ^
           found * UINT64_C(0xd6e8feb86659fd93);
}

static inline bool is_at(const struct bucket *bucket, unsigned i, struct othello_board board,
                         struct found *found)
{
    if (READ(bucket->own[i]) != board.own) {
        return false;
    }
    const uint32_t packed = READ(bucket->found[i]);
    if (READ(bucket->mixed[i]) != mixed(board, packed)) {
        return false;
    }
    *found = (struct found){(signed char)packed, (signed char)(packed >> 8), packed >> 16 & 0xff,
                            packed >> 24};
    return true;
}

static inline void put(struct bucket *bucket, unsigned i, struct othello_board board,
                       unsigned empties, struct found found)
{
    const uint32_t packed = (uint8_t)found.lower | (uint32_t)(uint8_t)found.upper << 8 |
                            (uint32_t)found.move << 16 | (uint32_t)found.doubt << 24;
    WRITE(bucket->own[i], board.own);
    WRITE(bucket->mixed[i], mixed(board, packed));
    WRITE(bucket->found[i], packed);
    WRITE(bucket->level[i], (unsigned char)empties);
}

static inline bool probe(const struct bucket *bucket, struct othello_board board,
                         struct found *found)
{
    for (unsigned i = 0; i < SLOTS; i++) {
        if (is_at(bucket, i, board, found)) {
            return true;
        }
    }
    return false;
}

/* What is proved replaces what is not, and stays. */
static void store(struct bucket *bucket, struct othello_board board, unsigned empties,
                  struct found found)
{
    unsigned victim = 0;
    for (unsigned i = 0; i < SLOTS; i++) {
        struct found here;
        if (is_at(bucket, i, board, &here)) {
            if (here.doubt < found.doubt) {
                return;
            }
            const bool is_surer = here.doubt > found.doubt;
            /* The move belongs to the lower bound. */
            if (is_surer ? found.lower == -OTHELLO_SCORE_MAX && here.lower != -OTHELLO_SCORE_MAX
                         : found.lower <= here.lower && here.lower != -OTHELLO_SCORE_MAX) {
                found.move = here.move;
            }
            if (!is_surer) {
                found.lower = found.lower > here.lower ? found.lower : here.lower;
                found.upper = found.upper < here.upper ? found.upper : here.upper;
            }
            put(bucket, i, board, empties, found);
            return;
        }
        victim = READ(bucket->level[i]) < READ(bucket->level[victim]) ? i : victim;
    }
    for (unsigned i = 0; i < SLOTS; i++) {
        const unsigned char level = READ(bucket->level[i]);
        WRITE(bucket->level[i], (unsigned char)(level - (level != 0)));
    }
    put(bucket, victim, board, empties, found);
}

/* ---- several searchers in one tree ----
 *
 * All search the whole tree; a move but the first that another one searches comes after the others
 * (ABDADA, Weill 1996, with a byte in place of the number of searchers). The byte of another board,
 * or one that a killed process left, costs order, not truth. */

static inline unsigned char busy_byte(uint64_t hash)
{
    return (unsigned char)(hash % 255 + 1);
}

static inline bool is_busy(const struct search *search, struct othello_board board)
{
    const uint64_t hash = hash_of(board);
    return READ(bucket_at(search, hash)->busy) == busy_byte(hash);
}

static inline void set_busy(const struct search *search, struct othello_board board, bool begins)
{
    const uint64_t hash = hash_of(board);
    struct bucket *bucket = bucket_at(search, hash);
    if (begins) {
        WRITE(bucket->busy, busy_byte(hash));
    } else if (READ(bucket->busy) == busy_byte(hash)) {
        WRITE(bucket->busy, 0);
    }
}

/* ---- the order of moves ---- */

enum { TAKEN = INT_MIN };

/* The moves of a board, one array for each thing known of them: many are computed at once. */
struct moves {
    uint64_t own[MOVES_MAX], other[MOVES_MAX]; /* the board after each, from the other side */
    uint64_t answers[MOVES_MAX]; /* the moves there */
    uint64_t flips[MOVES_MAX];
    struct bucket *bucket[MOVES_MAX];
    int order[MOVES_MAX]; /* higher first, above TAKEN */
    unsigned char square[MOVES_MAX];
    unsigned count;
};

static inline struct othello_board next_of(const struct moves *list, unsigned i)
{
    return (struct othello_board){list->own[i], list->other[i]};
}

/* The squares next to some of the set. */
static inline uint64_t widened(uint64_t set)
{
    uint64_t wide =
        set | (set << 1 & UINT64_C(0xfefefefefefefefe)) | (set >> 1 & UINT64_C(0x7f7f7f7f7f7f7f7f));
    return wide | wide << 8 | wide >> 8;
}

/* With fewer empty squares it says too little of what moves there may be later. */
static const unsigned potential_empties = 9;

/* What the opponent can do after a move, the less the better; corners count twice. */
static inline int mobility_order(struct othello_board next, uint64_t answers, unsigned empties)
{
    const int mobility = (int)(othello_count(answers) + othello_count(answers & othello_corners));
    const int potential = empties >= potential_empties
                              ? (int)othello_count(widened(next.other) & othello_empties(next))
                              : 0;
    return -32 * mobility - potential;
}

/* All moves; true: the first in the list turns all discs, so nothing is better. `search`, if it is
 * not NULL, will look for what is known of the replies: their entries are on their way. */
static inline bool list_moves(const struct search *search, struct othello_board board,
                              uint64_t moves, unsigned empties, struct moves *list)
{
    const othello_wide own = othello_widen(board.own), other = othello_widen(board.other);
    unsigned n = 0;
    for (; moves != 0; moves &= moves - 1, n++) {
        const unsigned square = othello_first(moves);
        const othello_wide flips = othello_flips_wide(own, other, square);
        const othello_wide next_own = other ^ flips;
        const othello_wide next_other = own ^ flips ^ othello_widen(othello_bit(square));
        list->own[n] = othello_narrow(next_own);
        list->other[n] = othello_narrow(next_other);
        if (list->own[n] == 0) {
            list->square[0] = (unsigned char)square;
            return true;
        }
        if (search != NULL) {
            list->bucket[n] = bucket_of(search, next_of(list, n), empties - 1);
            __builtin_prefetch(list->bucket[n]);
        }
        list->flips[n] = othello_narrow(flips);
        list->answers[n] = othello_moves_wide(next_own, next_other);
        list->order[n] = 0;
        list->square[n] = (unsigned char)square;
    }
    list->count = n;
    return false;
}

/* The place of the best move that is not taken; there is one. */
static inline unsigned take_best(struct moves *list)
{
    unsigned best = 0;
    for (unsigned i = 1; i < list->count; i++) {
        best = list->order[i] > list->order[best] ? i : best;
    }
    list->order[best] = TAKEN;
    return best;
}

/* The value after a move. */
static inline int evaluate_next(const struct othello_sums *sums, const struct moves *list,
                                unsigned i)
{
    return othello_evaluate_next(sums, list->square[i], list->flips[i], next_of(list, i),
                                 list->answers[i], othello_moves(list->other[i], list->own[i]));
}

/* What a shallow search of one ply or more expects, in 1 / OTHELLO_EVAL_UNIT discs. */
static int expected(struct othello_board board, const struct othello_sums *sums, unsigned depth,
                    int alpha, int beta)
{
    const uint64_t moves = othello_moves(board.own, board.other);
    if (moves == 0) {
        if (othello_moves(board.other, board.own) == 0) {
            return othello_final_score(board) * OTHELLO_EVAL_UNIT;
        }
        struct othello_sums passed;
        memcpy(passed.own, sums->other, sizeof passed.own);
        memcpy(passed.other, sums->own, sizeof passed.other);
        return -expected(othello_pass(board), &passed, depth, -beta, -alpha);
    }
    int best = -OTHELLO_EVAL_MAX - 1;
    struct moves list;
    if (list_moves(NULL, board, moves, 0, &list)) {
        return OTHELLO_EVAL_MAX;
    }
    for (unsigned i = 0; i < list.count; i++) {
        list.order[i] = mobility_order(next_of(&list, i), list.answers[i], potential_empties);
    }
    for (unsigned k = 0; k < list.count && best < beta; k++) {
        const unsigned i = take_best(&list);
        int value;
        if (depth == 1) {
            value = -evaluate_next(sums, &list, i);
        } else {
            struct othello_sums next;
            othello_sum_next(sums, list.square[i], list.flips[i], &next);
            value = -expected(next_of(&list, i), &next, depth - 1, -beta,
                              best > alpha ? -best : -alpha);
        }
        best = value > best ? value : best;
    }
    return best;
}

/* With fewer empty squares an evaluation costs more than the better order saves; with two more it
 * pays to search another ply. */
enum { EVALUATE_EMPTIES = 13, ORDER_DEPTH_MAX = 4, ORDER_BELOW = 8 /* discs */ };

/* What orders moves: of the board, and of the search that tries them. */
struct order {
    struct othello_board board;
    unsigned empties;
    int alpha; /* how far a move is below it does not matter beyond ORDER_BELOW */
};

static void order_moves(const struct order *order, struct moves *list)
{
    const uint64_t free = othello_empties(order->board), odd = othello_odd_quadrants(free);
    const unsigned empties = order->empties;
    for (unsigned i = 0; i < list->count; i++) {
        const uint64_t bit = othello_bit(list->square[i]);
        const int value = mobility_order(next_of(list, i), list->answers[i], empties) +
                          ((bit & odd) != 0 ? 16 : 0) + ((bit & othello_corners) != 0 ? 32 : 0);
        list->order[i] = list->order[i] == TAKEN ? TAKEN : value;
    }
    if (empties < EVALUATE_EMPTIES) {
        return;
    }
    const unsigned plies = (empties - EVALUATE_EMPTIES) / 2;
    const unsigned depth = plies < ORDER_DEPTH_MAX ? plies : ORDER_DEPTH_MAX;
    const int low = (order->alpha - ORDER_BELOW) * OTHELLO_EVAL_UNIT;
    struct othello_sums sums, next;
    othello_sum(order->board, &sums);
    for (unsigned i = 0; i < list->count; i++) {
        if (list->order[i] == TAKEN) {
            continue;
        }
        int value;
        if (depth == 0) {
            value = evaluate_next(&sums, list, i);
        } else {
            othello_sum_next(&sums, list->square[i], list->flips[i], &next);
            value = expected(next_of(list, i), &next, depth, -OTHELLO_EVAL_MAX, -low);
        }
        /* A move more of the opponent's weighs two discs. */
        list->order[i] = 8 * list->order[i] - value;
    }
}

int othello_order(struct othello_board board, unsigned square)
{
    struct moves list;
    const struct order order = {board, othello_count(othello_empties(board)),
                                -2 * OTHELLO_SCORE_MAX};
    if (list_moves(NULL, board, othello_bit(square), 0, &list)) {
        return 1 << 24;
    }
    order_moves(&order, &list);
    return list.order[0];
}

/* The moves of a node in the order in which they are searched: the best first; where others search
 * the tree, too, those but the first that somebody is in come after all others. */
struct turns {
    struct order order;
    struct moves *list;
    unsigned first; /* a square that comes first, before the others are put in order, or none */
    bool divides, is_ordered;
    unsigned next, deferred;
    unsigned char later[MOVES_MAX];
};

static inline unsigned take_square(struct moves *list, unsigned square)
{
    unsigned i = 0;
    while (i + 1 < list->count && list->square[i] != square) {
        i++;
    }
    list->order[i] = TAKEN;
    return i;
}

static inline void begin_turns(const struct search *search, struct turns *turns, struct order order,
                               struct moves *list, unsigned first)
{
    turns->order = order;
    turns->list = list;
    turns->first = first;
    turns->divides = search->divides && order.empties >= DIVIDED_EMPTIES;
    turns->is_ordered = false;
    turns->next = turns->deferred = 0;
}

/* The place of the next move in the list; false: there is none. */
static inline bool next_turn(const struct search *search, struct turns *turns, unsigned *place)
{
    struct moves *list = turns->list;
    while (turns->next < list->count) {
        const bool is_first = turns->next++ == 0;
        if (is_first && turns->first != OTHELLO_NO_MOVE) {
            *place = take_square(list, turns->first);
            return true;
        }
        if (!turns->is_ordered) {
            order_moves(&turns->order, list);
            turns->is_ordered = true;
        }
        *place = take_best(list);
        if (!turns->divides || is_first || !is_busy(search, next_of(list, *place))) {
            return true;
        }
        turns->later[turns->deferred++] = (unsigned char)*place;
    }
    if (turns->next - list->count == turns->deferred) {
        return false;
    }
    *place = turns->later[turns->next++ - list->count];
    return true;
}

/* ---- the search ---- */

static bool report(struct search *search)
{
    if (search->solver != NULL && !search->solver->count(search->solver->self, search->nodes)) {
        search->stopped = true;
    }
    search->nodes = 0;
    return !search->stopped;
}

enum {
    /* With as many, a selective search of a board in its window comes before the exact one, and
     * gives it a move to begin with. */
    PREPARED_EMPTIES = 14,
};

enum { /* of the selective search */
       SELECTIVE_EMPTIES = 8, /* with fewer nothing is cut */
       SELECTIVE_SLACK = 4 * OTHELLO_EVAL_UNIT,
};

/* ProbCut (Buro 1995) for the search before the exact one: whether a shallow search says, with a
 * margin of 1.5 standard deviations, that the value is above alpha, or that it is not. It errs by
 * 8 discs, half a disc less with each ply. */
static bool cuts_selectively(struct othello_board board, unsigned empties, int alpha,
                             bool *is_above)
{
    unsigned depth = empties / 4;
    depth -= (depth + empties) & 1;
    const int margin = (int)(1536 - 106 * depth);
    struct othello_sums sums;
    othello_sum(board, &sums);
    const int eval = othello_evaluate_sums(board, &sums);
    const int high = (alpha + 1) * OTHELLO_EVAL_UNIT + margin,
              low = (alpha + 1) * OTHELLO_EVAL_UNIT - margin;
    const int most = (OTHELLO_SCORE_MAX - 1) * OTHELLO_EVAL_UNIT;
    *is_above = high < most && eval >= high - SELECTIVE_SLACK &&
                expected(board, &sums, depth, high - 1, high) >= high;
    return *is_above || (low > -most && eval <= low + SELECTIVE_SLACK &&
                         expected(board, &sums, depth, low, low + 1) <= low);
}

/* `moves` are those of the board. */
static int null_window(struct search *search, struct othello_board board, uint64_t moves,
                       unsigned empties, int alpha)
{
    if (empties <= OTHELLO_LAST_MAX) {
        return othello_last(board, empties, alpha, &search->nodes);
    }
    if (++search->nodes >= search->count_nodes && !report(search)) {
        return 0;
    }
    struct bucket *bucket = bucket_of(search, board, empties);
    __builtin_prefetch(bucket);
    if (empties < 24 && alpha >= 2 * (int)empties) { /* their stable discs may be too many */
        const int most =
            OTHELLO_SCORE_MAX - 2 * (int)othello_count(othello_stable(board.other, board.own));
        if (most <= alpha) {
            return most;
        }
    }
    if (moves == 0) {
        const uint64_t answers = othello_moves(board.other, board.own);
        return answers == 0
                   ? othello_final_score(board)
                   : -null_window(search, othello_pass(board), answers, empties, -alpha - 2);
    }
    struct found found = nothing;
    if (probe(bucket, board, &found) && found.doubt <= search->doubt) {
        if (found.lower > alpha) {
            return found.lower;
        }
        if (found.upper <= alpha) {
            return found.upper;
        }
    }
    bool is_above;
    if (search->doubt > 0 && empties >= SELECTIVE_EMPTIES &&
        cuts_selectively(board, empties, alpha, &is_above)) {
        return is_above ? alpha + 2 : alpha;
    }
    struct moves list;
    const bool peeks = empties > ETC_EMPTIES;
    if (list_moves(peeks ? search : NULL, board, moves, empties, &list)) {
        return OTHELLO_SCORE_MAX;
    }
    for (unsigned i = 0; i < list.count && peeks; i++) {
        struct found reply;
        if (probe(list.bucket[i], next_of(&list, i), &reply) && reply.doubt <= search->doubt &&
            -reply.upper > alpha) {
            store(bucket, board, empties,
                  (struct found){-reply.upper, OTHELLO_SCORE_MAX, list.square[i], search->doubt});
            return -reply.upper;
        }
    }
    if (empties >= PREPARED_EMPTIES && search->doubt == 0 &&
        (found.doubt == 0 ? found.move == OTHELLO_NO_MOVE
                          : found.lower <= alpha && found.upper > alpha)) {
        search->doubt = 1;
        (void)null_window(search, board, moves, empties, alpha);
        search->doubt = 0;
        if (search->stopped) {
            return 0;
        }
        (void)probe(bucket, board, &found);
    }
    int best = NONE;
    unsigned best_move = OTHELLO_NO_MOVE, i;
    struct turns turns;
    begin_turns(search, &turns, (struct order){board, empties, alpha}, &list, found.move);
    while (best <= alpha && next_turn(search, &turns, &i)) {
        if (turns.divides) {
            if (turns.next > 1 && probe(bucket, board, &found) && found.doubt <= search->doubt &&
                (found.lower > alpha || found.upper <= alpha)) {
                return found.lower > alpha ? found.lower : found.upper;
            }
            set_busy(search, next_of(&list, i), true);
        }
        const int value =
            -null_window(search, next_of(&list, i), list.answers[i], empties - 1, -alpha - 2);
        if (turns.divides) {
            set_busy(search, next_of(&list, i), false);
        }
        if (search->stopped) {
            return 0;
        }
        if (value > best) {
            best = value;
            best_move = list.square[i];
        }
    }
    store(bucket, board, empties,
          (struct found){best > alpha ? best : -OTHELLO_SCORE_MAX,
                         best > alpha ? OTHELLO_SCORE_MAX : best, best_move, search->doubt});
    return best;
}

/* The value in an open window. */
static int open_window(struct search *search, struct othello_board board, unsigned empties,
                       int alpha, int beta, unsigned *best_move)
{
    *best_move = OTHELLO_NO_MOVE;
    if (++search->nodes >= search->count_nodes && !report(search)) {
        return 0;
    }
    const uint64_t moves = othello_moves(board.own, board.other);
    if (moves == 0) {
        if (othello_moves(board.other, board.own) == 0) {
            return othello_final_score(board);
        }
        unsigned reply;
        return -open_window(search, othello_pass(board), empties, -beta, -alpha, &reply);
    }
    struct bucket *bucket = bucket_of(search, board, empties);
    struct found found = nothing;
    if (probe(bucket, board, &found) && found.doubt <= search->doubt &&
        (found.lower >= beta || found.upper <= alpha || found.lower == found.upper)) {
        *best_move = found.move;
        return found.lower >= beta ? found.lower : found.upper;
    }
    struct moves list;
    if (list_moves(NULL, board, moves, empties, &list)) {
        *best_move = list.square[0];
        return OTHELLO_SCORE_MAX;
    }
    int best = NONE;
    unsigned i;
    struct turns turns;
    begin_turns(search, &turns, (struct order){board, empties, alpha}, &list, found.move);
    while (best < beta && next_turn(search, &turns, &i)) {
        const bool is_first = turns.next == 1;
        if (turns.divides) {
            set_busy(search, next_of(&list, i), true);
        }
        const int above = best > alpha ? best : alpha;
        int value = above;
        unsigned reply;
        if (!is_first || above + 2 == beta) {
            value =
                -null_window(search, next_of(&list, i), list.answers[i], empties - 1, -above - 2);
        }
        if (!search->stopped && (is_first || value > above) && value < beta && above + 2 < beta) {
            value = -open_window(search, next_of(&list, i), empties - 1, -beta, -above, &reply);
        }
        if (turns.divides) {
            set_busy(search, next_of(&list, i), false);
        }
        if (search->stopped) {
            return 0;
        }
        if (value > best) {
            best = value;
            *best_move = list.square[i];
        }
    }
    store(bucket, board, empties,
          (struct found){best > alpha ? best : -OTHELLO_SCORE_MAX,
                         best < beta ? best : OTHELLO_SCORE_MAX, *best_move, search->doubt});
    return best;
}

size_t othello_memory_bytes(void)
{
    return sizeof(struct othello_memory);
}

static int solve(struct search *search, struct othello_board board, int alpha, int beta,
                 unsigned *move)
{
    const unsigned empties = othello_count(othello_empties(board));
    int low = alpha, high = beta;
    const bool is_selective = search->solver != NULL && search->solver->is_selective;
    if (is_selective || empties >= PREPARED_EMPTIES) {
        search->doubt = 1;
        const int guess = open_window(search, board, empties, alpha, beta, move);
        if (is_selective) {
            return guess;
        }
        search->doubt = 0;
        low = guess - 2 < alpha ? alpha : guess - 2 > beta - 2 ? beta - 2 : guess - 2;
        high = guess + 2 > beta ? beta : guess + 2 < alpha + 2 ? alpha + 2 : guess + 2;
    }
    while (!search->stopped) {
        const int value = open_window(search, board, empties, low, high, move);
        if (value <= low && low > alpha) {
            high = low + 2;
            low = alpha;
        } else if (value >= high && high < beta) {
            low = high - 2;
            high = beta;
        } else {
            return value;
        }
    }
    return 0;
}

bool othello_solve(struct othello_memory *memory, struct othello_board board, int alpha, int beta,
                   const struct game_solver *solver, int *value, unsigned *move)
{
    struct search search = {.memory = memory, .solver = solver, .count_nodes = POLL_NODES};
    if (solver != NULL && solver->count_nodes != 0) {
        search.count_nodes = solver->count_nodes;
    }
    search.divides = solver != NULL && solver->divides;
    search.near_empties = search.divides && solver->searchers > NEAR_SEARCHERS ? 0 : NEAR_EMPTIES;
    const unsigned part = solver != NULL ? solver->searcher % NEAR_SEARCHERS : 0;
    search.near = &memory->bucket[part << NEAR_LOG];
    /* Values are even: odd windows are as good as the next wider ones. */
    alpha = alpha < NONE                ? NONE
            : alpha > OTHELLO_SCORE_MAX ? OTHELLO_SCORE_MAX
                                        : alpha - (alpha & 1);
    beta = beta > OTHELLO_SCORE_MAX ? OTHELLO_SCORE_MAX : beta + (beta & 1);
    beta = beta > alpha ? beta : alpha + 2;
    unsigned best_move;
    const int best = solve(&search, board, alpha, beta, &best_move);
    if (search.stopped || !report(&search)) {
        return false;
    }
    *value = best;
    *move = best_move;
    return true;
}
