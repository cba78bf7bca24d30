/* connect4: solves Connect Four on a board of 7 columns and 5 rows, by as many processes as you
 * start, which divide the work through the table of an abdada cluster. Alone it works, too.
 *
 *     cc -O2 connect4.c -o connect4 $(pkg-config --cflags --libs abdada)
 *     ttserver &                                            # prints: ready 127.0.0.1:7400
 *     for i in 1 2 3 4; do ./connect4 --servers 127.0.0.1:7400 & done; wait
 *
 * A position is the columns played so far, 1 to 7: ./connect4 --servers ... 3433. The value is
 * 0 for a draw, positive if the side to move wins: one more than the cells that are empty when it
 * does; negative if it loses.
 *
 * All processes walk the same tree from the same root. What divides the work is in search():
 * younger brothers are asked for exclusively, and the table answers BUSY for those that another
 * process is in; they are deferred until the others are done. Kill a process, and its nodes are
 * free for the others; kill the server, and each goes on alone. */
#include <abdada.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    COLUMNS = 7,
    ROWS = 5,
    CELLS = COLUMNS * ROWS,
    REMOTE_PLIES = 8, /* from the root: nodes there ask the table. An ask takes as long as 200
                         nodes; with more plies the asks would take longer than the search */
    LOCAL_BITS = 21, /* entries of this process's own table, for the nodes below */
    SERVE_EVERY = 512, /* nodes: the library sends what waits, and heartbeats */
};

/* A column has ROWS + 1 bits, the lowest for the bottom cell; the top one is always 0, so that no
 * line of four runs from a column into the next. */
struct position {
    uint64_t mine; /* stones of the side to move */
    uint64_t occupied; /* all stones */
    int empty; /* cells */
};

struct local_entry {
    uint64_t key;
    int8_t lower, upper, move;
};

static struct abdada *table; /* NULL: alone */
static int remote_from; /* empty cells of the last nodes that ask */
static struct local_entry *local;
static unsigned long long nodes, asks;

/* The nodes that this process is in, by their number of empty cells. Another process may finish one
 * of them (on_done): then what is below is of no use, and the search returns to it. */
static struct {
    uint64_t key; /* 0: none that others know of */
    int alpha, beta;
} path[CELLS + 1];
static int unwind_to, unwind_value; /* empty cells of the node that is finished; 0: none */

static void on_done(void *self, const struct abdada_store_op *result)
{
    int empty = result->depth;
    (void)self;
    if (empty > unwind_to && empty <= CELLS && path[empty].key == result->key &&
        ((result->bound & ABDADA_LOWER && result->score >= path[empty].beta) ||
         (result->bound & ABDADA_UPPER && result->score <= path[empty].alpha))) {
        unwind_to = empty;
        unwind_value = result->score;
    }
}

static uint64_t column_bits(int column)
{
    return ((UINT64_C(1) << ROWS) - 1) << column * (ROWS + 1);
}

/* The cell where a stone would fall. */
static uint64_t landing(uint64_t occupied, int column)
{
    return (occupied + (UINT64_C(1) << column * (ROWS + 1))) & column_bits(column);
}

static uint64_t shifted(uint64_t bits, int by)
{
    return by > 0 ? bits << by : bits >> -by;
}

/* Empty cells that would complete four in a line with three of these stones. */
static uint64_t winning_cells(uint64_t stones, uint64_t occupied)
{
    static const int direction[] = {1, ROWS, ROWS + 1, ROWS + 2};
    uint64_t found = 0, board = 0;
    for (int d = 0; d < 4; d++) {
        for (int gap = 0; gap < 4; gap++) {
            uint64_t line = ~UINT64_C(0);
            for (int i = 0; i < 4; i++) {
                line &= i == gap ? line : shifted(stones, (gap - i) * direction[d]);
            }
            found |= line;
        }
    }
    for (int c = 0; c < COLUMNS; c++) {
        board |= column_bits(c);
    }
    return found & board & ~occupied;
}

static struct position played(const struct position *p, uint64_t cell)
{
    return (struct position){p->occupied ^ p->mine, p->occupied | cell, p->empty - 1};
}

/* A number of the position, and 64 bits that depend on all of it: tables want keys well mixed. */
static uint64_t key_of(const struct position *p)
{
    uint64_t x = p->mine + p->occupied + UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* Columns in the order to try them: the best one known, then who makes most threats, then the
 * middle. Moves that let the opponent win at once are left out. Returns how many. */
static int sorted_moves(const struct position *p, int best, uint64_t threats, uint64_t cell[])
{
    int weight[COLUMNS], count = 0;
    for (int c = 0; c < COLUMNS; c++) {
        uint64_t to = landing(p->occupied, c);
        if (to == 0 || (to << 1 & threats) != 0) {
            continue;
        }
        uint64_t next = winning_cells(p->mine | to, p->occupied | to);
        int w = 100 * __builtin_popcountll(next) + COLUMNS - abs(2 * c - COLUMNS + 1);
        w = c == best ? 10000 : w;
        int i = count++;
        for (; i > 0 && weight[i - 1] < w; i--) {
            weight[i] = weight[i - 1];
            cell[i] = cell[i - 1];
        }
        weight[i] = w;
        cell[i] = to;
    }
    return count;
}

static int search(const struct position *p, int alpha, int beta, bool exclusive);
enum { BUSY = 1000 }; /* in place of a value: another process is in the node */

/* The moves of a node, in two rounds: the second is for those that others were in. */
static int search_moves(const struct position *p, int alpha, int beta, const uint64_t cell[],
                        int count, uint64_t *best)
{
    int value = -CELLS - 1;
    bool is_done[COLUMNS] = {false};
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < count; i++) {
            if (is_done[i]) {
                continue;
            }
            struct position child = played(p, cell[i]);
            int v = search(&child, -beta, -alpha, round == 0 && i > 0);
            if (unwind_to >= p->empty) {
                return 0;
            }
            if (v == BUSY) {
                continue;
            }
            is_done[i] = true;
            if (-v > value) {
                value = -v;
                *best = cell[i];
            }
            alpha = value > alpha ? value : alpha;
            if (alpha >= beta) {
                return value;
            }
        }
    }
    return value;
}

static int search(const struct position *p, int alpha, int beta, bool exclusive)
{
    uint64_t cell[COLUMNS], best = 0, open = 0;
    if (++nodes % SERVE_EVERY == 0 && table != NULL) {
        abdada_serve(table);
    }
    if (unwind_to > p->empty) {
        return 0;
    }
    for (int c = 0; c < COLUMNS; c++) {
        open |= landing(p->occupied, c);
    }
    if (open == 0) {
        return 0;
    }
    if (winning_cells(p->mine, p->occupied) & open) {
        return p->empty;
    }
    uint64_t threats = winning_cells(p->occupied ^ p->mine, p->occupied);
    uint64_t forced = threats & open;
    if ((forced & (forced - 1)) != 0 || (forced << 1 & threats) != 0) {
        return -(p->empty - 1); /* two threats, or one above the other: it cannot stop both */
    }
    /* It does not win at once, so with its next stone at best. */
    int most = p->empty > 2 ? p->empty - 2 : 0;
    if (most <= alpha) {
        return most;
    }
    beta = most < beta ? most : beta;
    uint64_t key = key_of(p);
    struct local_entry *entry = &local[key >> (64 - LOCAL_BITS)];
    int move = -1, count = 1;
    if (entry->key == key) {
        if (entry->lower >= beta || entry->lower == entry->upper) {
            return entry->lower;
        }
        if (entry->upper <= alpha) {
            return entry->upper;
        }
        alpha = entry->lower > alpha ? entry->lower : alpha;
        beta = entry->upper < beta ? entry->upper : beta;
        move = entry->move;
    }
    bool is_remote = p->empty >= remote_from && table != NULL;
    if (is_remote) {
        struct abdada_answer answer;
        asks++;
        abdada_ask(table, key, (unsigned)p->empty, alpha, beta, exclusive ? ABDADA_EXCLUSIVE : 0,
                   &answer);
        if (answer.verdict == ABDADA_CUT) {
            return answer.score;
        }
        if (answer.verdict == ABDADA_BUSY) {
            return BUSY;
        }
        alpha = answer.alpha; /* OPEN, or ALONE: then these are our own */
        beta = answer.beta;
        move = answer.move != 0 ? answer.move - 1 : move;
        path[p->empty].key = key;
        path[p->empty].alpha = alpha;
        path[p->empty].beta = beta;
    }
    cell[0] = forced;
    if (forced == 0) {
        count = sorted_moves(p, move, threats, cell);
    }
    int value = count > 0 ? search_moves(p, alpha, beta, cell, count, &best) : -(p->empty - 1);
    path[p->empty].key = 0;
    if (unwind_to >= p->empty) {
        if (is_remote) {
            abdada_release(table, key, (unsigned)p->empty);
        }
        if (unwind_to > p->empty) {
            return 0;
        }
        unwind_to = 0;
        return unwind_value;
    }
    move = best == 0 ? -1 : __builtin_ctzll(best) / (ROWS + 1);
    int lower = value > alpha ? value : -CELLS, upper = value < beta ? value : CELLS;
    *entry = (struct local_entry){key, (int8_t)lower, (int8_t)upper, (int8_t)move};
    if (is_remote) {
        unsigned bound = value >= beta    ? ABDADA_LOWER
                         : value <= alpha ? ABDADA_UPPER
                                          : ABDADA_EXACT;
        abdada_store(table, key, (unsigned)p->empty, value, bound, (unsigned)(move + 1));
    }
    return value;
}

/* False: a column that does not exist or is full, or a move after the end. */
static bool read_position(struct position *p, const char *columns)
{
    *p = (struct position){.empty = CELLS};
    for (; *columns != '\0'; columns++) {
        int column = *columns - '1';
        uint64_t cell = column >= 0 && column < COLUMNS ? landing(p->occupied, column) : 0;
        if (cell == 0 || (winning_cells(p->mine, p->occupied) & cell) != 0) {
            return false;
        }
        *p = played(p, cell);
    }
    return true;
}

static void connect_to(const char *servers, const char *keys)
{
    char why[256];
    struct abdada_options options = {
        .struct_size = sizeof options,
        .servers = servers,
        .keys = keys,
        .namespace_id = abdada_hash("connect4 7x5"), /* nobody else's results are here */
        .name = "connect4",
        .node_done = on_done,
        .log_name = "connect4",
        .why = why,
        .why_size = sizeof why,
    };
    if (abdada_open(&table, &options) != ABDADA_OK) {
        fprintf(stderr, "connect4: %s\n", why);
        exit(1);
    }
    if (abdada_wait_connected(table, 2000) < 1) {
        fprintf(stderr, "connect4: no shard is up at %s; going on alone\n", servers);
    }
}

int main(int argc, char *argv[])
{
    const char *servers = NULL, *keys = NULL, *columns = "";
    struct position root;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--servers") == 0 && i + 1 < argc) {
            servers = argv[++i];
        } else if (strcmp(argv[i], "--keys") == 0 && i + 1 < argc) {
            keys = argv[++i];
        } else {
            columns = argv[i];
        }
    }
    if (!read_position(&root, columns)) {
        fprintf(stderr, "usage: connect4 [--servers HOST:PORT,...] [--keys DIR] [COLUMNS]\n");
        return 2;
    }
    local = calloc((size_t)1 << LOCAL_BITS, sizeof *local);
    if (local == NULL) {
        return 1;
    }
    remote_from = root.empty - REMOTE_PLIES;
    if (servers != NULL) {
        connect_to(servers, keys);
    }
    /* Is the value above this? Questions with a yes or no are cheaper than one for the value. */
    int lower = -CELLS, upper = CELLS;
    while (lower < upper) {
        int middle = lower < 0 && upper > 0 ? (upper < -lower ? -1 : 0) : (lower + upper - 1) / 2;
        middle = middle < lower ? lower : middle >= upper ? upper - 1 : middle;
        int v = search(&root, middle, middle + 1, false);
        *(v > middle ? &lower : &upper) = v;
    }
    int value = lower;
    printf("value %d nodes %llu asks %llu\n", value, nodes, asks);
    if (table != NULL) {
        abdada_close(table);
    }
    free(local);
    return 0;
}
