#include "worker/games/othello/solver.h"

#include "worker/games/othello/last.h"
#include "worker/games/othello/patterns.h"

#include <stdatomic.h>

enum {
    BUCKETS_LOG = 20,
    NEAR_LOG = 12,
    NEAR_EMPTIES = 10,
    SLOTS = 3,
    MOVES_MAX = 34, /* no board has more */
    POLL_NODES = 1000,
    NONE = -OTHELLO_SCORE_MAX - 2, /* below every value */
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
    unsigned near_log; /* so many buckets are for boards of few empty squares */
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

/* Boards of few empty squares are many, and come again soon or never. A search that is alone keeps
 * them in a part of the memory that its core's cache holds. Several need more room for theirs. */
static inline struct bucket *bucket_of(const struct search *search, struct othello_board board,
                                       unsigned empties)
{
    const uint64_t hash = hash_of(board);
    return empties <= NEAR_EMPTIES ? &search->memory->bucket[hash >> (64 - search->near_log)]
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

struct move {
    struct othello_board next;
    uint64_t answers; /* the opponent's moves, once they are needed */
    int order; /* higher first */
    unsigned square;
};

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

/* All moves; true: the first in the list turns all discs, so nothing is better. */
static inline bool list_moves(struct othello_board board, uint64_t moves, struct move *list)
{
    for (unsigned i = 0; moves != 0; moves &= moves - 1, i++) {
        const unsigned square = othello_first(moves);
        const uint64_t flips = othello_flips(board.own, board.other, square);
        list[i].square = square;
        list[i].next = othello_play(board, square, flips);
        if (list[i].next.own == 0) {
            list[0] = list[i];
            return true;
        }
    }
    return false;
}

/* Brings the best of list[i..n) to i. */
static inline void take_best(struct move *list, unsigned i, unsigned n)
{
    unsigned best = i;
    for (unsigned j = i + 1; j < n; j++) {
        best = list[j].order > list[best].order ? j : best;
    }
    const struct move move = list[best];
    list[best] = list[i];
    list[i] = move;
}

/* The moves of a node in the order in which they are searched: the best first; where others search
 * the tree, too, those but the first that somebody is in come after all others. */
struct turns {
    unsigned moves;
    bool divides;
    unsigned next, deferred;
    unsigned char later[MOVES_MAX];
};

/* The place of the next move in the list; false: there is none. */
static inline bool next_turn(const struct search *search, struct turns *turns, struct move *list,
                             unsigned *place)
{
    while (turns->next < turns->moves) {
        *place = turns->next++;
        take_best(list, *place, turns->moves);
        if (!turns->divides || *place == 0 || !is_busy(search, list[*place].next)) {
            return true;
        }
        turns->later[turns->deferred++] = (unsigned char)*place;
    }
    if (turns->next - turns->moves == turns->deferred) {
        return false;
    }
    *place = turns->later[turns->next++ - turns->moves];
    return true;
}

/* What a shallow search expects, in 1 / OTHELLO_EVAL_UNIT discs. */
static int expected(struct othello_board board, unsigned depth, int alpha, int beta)
{
    if (depth == 0) {
        return othello_evaluate(board);
    }
    uint64_t moves = othello_moves(board.own, board.other);
    if (moves == 0) {
        if (othello_moves(board.other, board.own) == 0) {
            return othello_final_score(board) * OTHELLO_EVAL_UNIT;
        }
        return -expected(othello_pass(board), depth, -beta, -alpha);
    }
    struct move list[MOVES_MAX];
    const unsigned n = othello_count(moves);
    if (list_moves(board, moves, list)) {
        return OTHELLO_EVAL_MAX;
    }
    for (unsigned i = 0; i < n && depth > 1; i++) {
        list[i].order = mobility_order(
            list[i].next, othello_moves(list[i].next.own, list[i].next.other), potential_empties);
    }
    int best = -OTHELLO_EVAL_MAX - 1;
    for (unsigned i = 0; i < n && best < beta; i++) {
        if (depth > 1) {
            take_best(list, i, n);
        }
        const int value = -expected(list[i].next, depth - 1, -beta, best > alpha ? -best : -alpha);
        best = value > best ? value : best;
    }
    return best;
}

/* With fewer empty squares an evaluation costs more than the better order saves; with two more it
 * pays to search another ply. */
enum { EVALUATE_EMPTIES = 13, ORDER_DEPTH_MAX = 5 };

static inline int order_of(struct othello_board next, uint64_t answers, unsigned square,
                           uint64_t odd, unsigned empties)
{
    int order = mobility_order(next, answers, empties);
    order += (othello_bit(square) & odd) != 0 ? 16 : 0;
    order += (othello_bit(square) & othello_corners) != 0 ? 32 : 0;
    if (empties >= EVALUATE_EMPTIES) {
        /* A move more of the opponent's weighs two discs. */
        const unsigned plies = (empties - EVALUATE_EMPTIES) / 2;
        const unsigned depth = plies < ORDER_DEPTH_MAX ? plies : ORDER_DEPTH_MAX;
        order = 8 * order - expected(next, depth, -OTHELLO_EVAL_MAX, OTHELLO_EVAL_MAX);
    }
    return order;
}

int othello_order(struct othello_board board, unsigned square)
{
    const uint64_t empties = othello_empties(board);
    const uint64_t flips = othello_flips(board.own, board.other, square);
    const struct othello_board next = othello_play(board, square, flips);
    return order_of(next, othello_moves(next.own, next.other), square,
                    othello_odd_quadrants(empties), othello_count(empties));
}

static inline void find_answers(struct move *list, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        list[i].answers = othello_moves(list[i].next.own, list[i].next.other);
    }
}

/* Their answers are known. */
static void order_moves(struct othello_board board, struct move *list, unsigned n, unsigned empties,
                        unsigned first)
{
    const uint64_t odd = othello_odd_quadrants(othello_empties(board));
    for (unsigned i = 0; i < n; i++) {
        list[i].order = list[i].square == first
                            ? 1 << 24
                            : order_of(list[i].next, list[i].answers, list[i].square, odd, empties);
    }
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
    DIVIDED_EMPTIES = 12, /* with fewer, a search is shorter than it takes to say so */
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
    const int eval = othello_evaluate(board);
    const int high = (alpha + 1) * OTHELLO_EVAL_UNIT + margin,
              low = (alpha + 1) * OTHELLO_EVAL_UNIT - margin;
    const int most = (OTHELLO_SCORE_MAX - 1) * OTHELLO_EVAL_UNIT;
    *is_above = high < most && eval >= high - SELECTIVE_SLACK &&
                expected(board, depth, high - 1, high) >= high;
    return *is_above || (low > -most && eval <= low + SELECTIVE_SLACK &&
                         expected(board, depth, low, low + 1) <= low);
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
    struct move list[MOVES_MAX];
    const unsigned n = othello_count(moves);
    if (list_moves(board, moves, list)) {
        return OTHELLO_SCORE_MAX;
    }
    if (empties > ETC_EMPTIES) {
        /* Memory is slow: there is work to do until what is read is here. */
        struct bucket *near[MOVES_MAX];
        for (unsigned i = 0; i < n; i++) {
            near[i] = bucket_of(search, list[i].next, empties - 1);
            __builtin_prefetch(near[i]);
        }
        find_answers(list, n);
        for (unsigned i = 0; i < n; i++) {
            struct found reply;
            if (probe(near[i], list[i].next, &reply) && reply.doubt <= search->doubt &&
                -reply.upper > alpha) {
                store(
                    bucket, board, empties,
                    (struct found){-reply.upper, OTHELLO_SCORE_MAX, list[i].square, search->doubt});
                return -reply.upper;
            }
        }
    } else {
        find_answers(list, n);
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
    order_moves(board, list, n, empties, found.move);
    int best = NONE;
    unsigned best_move = OTHELLO_NO_MOVE, i;
    struct turns turns = {.moves = n, .divides = search->divides && empties >= DIVIDED_EMPTIES};
    while (best <= alpha && next_turn(search, &turns, list, &i)) {
        if (turns.divides) {
            if (i > 0 && probe(bucket, board, &found) && found.doubt <= search->doubt &&
                (found.lower > alpha || found.upper <= alpha)) {
                return found.lower > alpha ? found.lower : found.upper;
            }
            set_busy(search, list[i].next, true);
        }
        const int value =
            -null_window(search, list[i].next, list[i].answers, empties - 1, -alpha - 2);
        if (turns.divides) {
            set_busy(search, list[i].next, false);
        }
        if (search->stopped) {
            return 0;
        }
        if (value > best) {
            best = value;
            best_move = list[i].square;
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
    struct move list[MOVES_MAX];
    const unsigned n = othello_count(moves);
    if (list_moves(board, moves, list)) {
        *best_move = list[0].square;
        return OTHELLO_SCORE_MAX;
    }
    find_answers(list, n);
    order_moves(board, list, n, empties, found.move);
    int best = NONE;
    unsigned i;
    struct turns turns = {.moves = n, .divides = search->divides && empties >= DIVIDED_EMPTIES};
    while (best < beta && next_turn(search, &turns, list, &i)) {
        if (turns.divides) {
            set_busy(search, list[i].next, true);
        }
        const int above = best > alpha ? best : alpha;
        int value = above;
        unsigned reply;
        if (i != 0 || above + 2 == beta) {
            value = -null_window(search, list[i].next, list[i].answers, empties - 1, -above - 2);
        }
        if (!search->stopped && (i == 0 || value > above) && value < beta && above + 2 < beta) {
            value = -open_window(search, list[i].next, empties - 1, -beta, -above, &reply);
        }
        if (turns.divides) {
            set_busy(search, list[i].next, false);
        }
        if (search->stopped) {
            return 0;
        }
        if (value > best) {
            best = value;
            *best_move = list[i].square;
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
    search.near_log = search.divides ? BUCKETS_LOG : NEAR_LOG;
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
