#include "worker/games/chess/tablebase.h"

#include "worker/games/chess/movegen.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* As tbprobe.h of libfathom 1.0 has them: results are 4 bits of value, 6 of the square the move
 * goes to, 6 of where it comes from, 3 of promotion, 1, and 12 of distance. */
enum { LOSS, BLESSED_LOSS, DRAW, CURSED_WIN, WIN };
enum {
    RESULTS_MAX = 193,
    TO_SHIFT = 4,
    FROM_SHIFT = 10,
    PROMOTION_SHIFT = 16,
    DISTANCE_SHIFT = 20
};
static const unsigned FAILED = 0xffffffffu;

typedef bool init_function(const char *path);
typedef unsigned wdl_function(uint64_t white, uint64_t black, uint64_t kings, uint64_t queens,
                              uint64_t rooks, uint64_t bishops, uint64_t knights, uint64_t pawns,
                              unsigned ep, bool white_to_move);
typedef unsigned root_function(uint64_t white, uint64_t black, uint64_t kings, uint64_t queens,
                               uint64_t rooks, uint64_t bishops, uint64_t knights, uint64_t pawns,
                               unsigned halfmoves, unsigned ep, bool white_to_move,
                               unsigned *results);

/* Written while nobody probes. */
static struct {
    void *library;
    init_function *init;
    wdl_function *wdl;
    root_function *root;
    unsigned *largest;
    unsigned pieces;
    char *path; /* of the tables in use; NULL: there are none */
} tables;

/* The library maps a table when it is first wanted. A probe takes a microsecond. */
static atomic_flag probing = ATOMIC_FLAG_INIT;

static bool load(void)
{
    if (tables.library == NULL) {
        tables.library = dlopen("libfathom.so.1", RTLD_NOW | RTLD_LOCAL);
    }
    if (tables.library == NULL) {
        return false;
    }
    *(void **)&tables.init = dlsym(tables.library, "tb_init");
    *(void **)&tables.wdl = dlsym(tables.library, "tb_probe_wdl_impl");
    *(void **)&tables.root = dlsym(tables.library, "tb_probe_root_impl");
    *(void **)&tables.largest = dlsym(tables.library, "TB_LARGEST");
    return tables.init != NULL && tables.wdl != NULL && tables.root != NULL &&
           tables.largest != NULL;
}

static bool init(const char *path)
{
    return tables.init(path) && *tables.largest > 0;
}

/* Takes `path`, that of the tables which the library has now; NULL: of none. */
static void use(char *path)
{
    free(tables.path);
    tables.path = path;
    tables.pieces = path != NULL ? *tables.largest : 0;
}

enum err chess_tablebase_open(const char *path, char *why, size_t why_size)
{
    if (path == NULL || path[0] == '\0') {
        use(NULL);
        return ERR_OK;
    }
    if (!load()) {
        snprintf(why, why_size, "no libfathom here (Debian: apt-get install libfathom1)");
        return ERR_ABSENT;
    }
    char *copy = strdup(path);
    if (copy == NULL) {
        return err_say(ERR_NOMEM, why, why_size, "no memory");
    }
    if (init(path)) {
        use(copy);
        return ERR_OK;
    }
    free(copy);
    if (tables.path != NULL && !init(tables.path)) { /* the library has dropped them */
        use(NULL);
    }
    return err_say(ERR_ABSENT, why, why_size, "no Syzygy tables in %.200s%s", path,
                   tables.path != NULL ? "; the tables before stay" : "");
}

unsigned chess_tablebase_pieces(void)
{
    return tables.pieces;
}

static bool is_there(const struct chess_position *p)
{
    return tables.pieces > 0 && p->castling == 0 &&
           bitboard_count(chess_occupied(p)) <= tables.pieces;
}

static unsigned ep_of(const struct chess_position *p)
{
    return p->ep == CHESS_NO_SQUARE ? 0 : p->ep;
}

bool chess_tablebase_probe(const void *position, int *score)
{
    const struct chess_position *p = position;
    if (p->halfmoves != 0 || !is_there(p)) {
        return false;
    }
    while (atomic_flag_test_and_set_explicit(&probing, memory_order_acquire)) {
    }
    unsigned value =
        tables.wdl(chess_set(p, CHESS_WHITE, CHESS_ALL), chess_set(p, CHESS_BLACK, CHESS_ALL),
                   chess_both(p, CHESS_KING), chess_both(p, CHESS_QUEEN), chess_both(p, CHESS_ROOK),
                   chess_both(p, CHESS_BISHOP), chess_both(p, CHESS_KNIGHT),
                   chess_both(p, CHESS_PAWN), ep_of(p), p->side == CHESS_WHITE);
    atomic_flag_clear_explicit(&probing, memory_order_release);
    if (value > WIN) {
        return false;
    }
    *score = value == WIN ? CHESS_TABLEBASE_WIN : value == LOSS ? -CHESS_TABLEBASE_WIN : 0;
    return true;
}

static bool is_move(unsigned result, uint16_t move)
{
    static const unsigned promotion[] = {
        [CHESS_QUEEN] = 1, [CHESS_ROOK] = 2, [CHESS_BISHOP] = 3, [CHESS_KNIGHT] = 4};
    unsigned promoted =
        chess_move_kind(move) & CHESS_PROMOTION ? promotion[chess_move_promoted(move)] : 0;
    return (result >> FROM_SHIFT & 63) == chess_move_from(move) &&
           (result >> TO_SHIFT & 63) == chess_move_to(move) &&
           (result >> PROMOTION_SHIFT & 7) == promoted;
}

/* `distance`: plies to the next capture, pawn move or mate; the clock runs on until then. The
 * tables round: it may be one ply more, unless it is the move itself. */
static enum chess_tablebase_value value_of(unsigned result, unsigned distance, unsigned clock)
{
    const unsigned last = clock + distance;
    const bool is_win = result > DRAW;
    if (result == DRAW) {
        return CHESS_TABLEBASE_DRAW;
    }
    if (distance == 1 || last < CHESS_HALFMOVES_DRAWN) {
        return is_win ? CHESS_TABLEBASE_WON : CHESS_TABLEBASE_LOST;
    }
    if (last == CHESS_HALFMOVES_DRAWN) {
        return is_win ? CHESS_TABLEBASE_UNSURE_WIN : CHESS_TABLEBASE_UNSURE_LOSS;
    }
    return is_win ? CHESS_TABLEBASE_CURSED_WIN : CHESS_TABLEBASE_BLESSED_LOSS;
}

static int score_of(enum chess_tablebase_value value, unsigned distance)
{
    return value == CHESS_TABLEBASE_WON    ? CHESS_TABLEBASE_ROOT_WIN - (int)distance
           : value == CHESS_TABLEBASE_LOST ? (int)distance - CHESS_TABLEBASE_ROOT_WIN
                                           : 0;
}

static bool is_better(const struct chess_tablebase_move *a, const struct chess_tablebase_move *b)
{
    return a->value != b->value ? a->value > b->value : a->score > b->score;
}

/* The move leads to a position that the game has had twice. */
static bool is_third(const struct chess_position *p, uint16_t move)
{
    struct chess_position after;
    unsigned before = 0;
    chess_position_fork(&after, p);
    chess_position_make(&after, move);
    for (unsigned back = 3; back <= p->reversible && after.halfmoves > 0; back += 2) {
        before += p->undo[p->ply - back].key == after.key;
    }
    return before >= 2;
}

unsigned chess_tablebase_root(const struct chess_position *p, struct chess_tablebase_move *moves)
{
    unsigned results[RESULTS_MAX], known = 0;
    struct game_move list[GAME_MOVES_MAX];
    const unsigned count = chess_movegen_all(p, list);
    if (!is_there(p) || count == 0 ||
        tables.root(chess_set(p, CHESS_WHITE, CHESS_ALL), chess_set(p, CHESS_BLACK, CHESS_ALL),
                    chess_both(p, CHESS_KING), chess_both(p, CHESS_QUEEN),
                    chess_both(p, CHESS_ROOK), chess_both(p, CHESS_BISHOP),
                    chess_both(p, CHESS_KNIGHT), chess_both(p, CHESS_PAWN), 0, ep_of(p),
                    p->side == CHESS_WHITE, results) == FAILED) {
        return 0;
    }
    for (unsigned i = 0; i < RESULTS_MAX && results[i] != FAILED; i++) {
        const unsigned distance = results[i] >> DISTANCE_SHIFT;
        for (unsigned m = 0; m < count; m++) {
            if (is_move(results[i], list[m].move)) {
                const enum chess_tablebase_value value =
                    is_third(p, list[m].move) ? CHESS_TABLEBASE_DRAW
                                              : value_of(results[i] & 15, distance, p->halfmoves);
                const struct chess_tablebase_move one = {list[m].move, value,
                                                         score_of(value, distance)};
                unsigned at = known++;
                for (; at > 0 && is_better(&one, &moves[at - 1]); at--) {
                    moves[at] = moves[at - 1];
                }
                moves[at] = one;
            }
        }
    }
    return known;
}
