/* alphabeta: the value of a game of four in a row on a small board, by plain alpha-beta with a
 * table of its own. With --servers it tells what it finds to others like it, and takes what they
 * find into its table: the feed of libabdada. docs/guides/library.md goes through the lines.
 *
 *     cc -O2 alphabeta.c -o alphabeta $(pkg-config --cflags --libs abdada)
 *     ttserver &                                            # prints: ready 127.0.0.1:7400
 *     for i in 1 2; do ./alphabeta --servers 127.0.0.1:7400 3322 & done; wait
 *
 * The digits are the columns played so far. The value is 0 for a draw, positive if the side to move
 * wins: one more than the cells that are empty when it does; negative if it loses. */
#include <abdada.h>

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    COLUMNS = 6,
    ROWS = 5,
    CELLS = COLUMNS * ROWS,
    SHARED = 14, /* nodes of so many empty cells and more are worth telling */
    TAKE_EVERY = 512, /* nodes */
    ENTRIES = 1 << 20,
};

static const int order[COLUMNS] = {2, 3, 1, 4, 0, 5}; /* the middle first */
static char board[CELLS + 1]; /* a text: '.', 'X' and 'O', the bottom row first */
static int height[COLUMNS], empty = CELLS;
static unsigned long long nodes;
static struct abdada *feed; /* NULL: alone */
static uint64_t
    own_order; /* another number in each process: what one does last another does first */
static struct entry {
    uint64_t key;
    int8_t lower, upper;
} table[2][ENTRIES];

static void play(int column)
{
    board[height[column]++ * COLUMNS + column] = empty-- % 2 == 0 ? 'X' : 'O';
}

static void undo(int column)
{
    board[--height[column] * COLUMNS + column] = '.';
    empty++;
}

/* Whether the stone on top of this column is in a line of four. */
static bool is_won(int column)
{
    static const int step[][2] = {{1, 0}, {0, 1}, {1, 1}, {1, -1}};
    int row = height[column] - 1;
    for (int d = 0; d < 4; d++) {
        int length = 1;
        for (int sign = -1; sign <= 1; sign += 2) {
            int r = row + sign * step[d][0], c = column + sign * step[d][1];
            while (r >= 0 && r < ROWS && c >= 0 && c < COLUMNS &&
                   board[r * COLUMNS + c] == board[row * COLUMNS + column]) {
                length++;
                r += sign * step[d][0];
                c += sign * step[d][1];
            }
        }
        if (length >= 4) {
            return true;
        }
    }
    return false;
}

/* Small nodes have a half of their own: they are so many that none of the others would stay. */
static struct entry *entry_of(uint64_t key, int cells)
{
    return &table[cells < SHARED][key % ENTRIES];
}

static void put(uint64_t key, int cells, int score, unsigned bound)
{
    struct entry *e = entry_of(key, cells);
    if (e->key != key) {
        *e = (struct entry){key, -CELLS, CELLS};
    }
    e->lower = (bound & ABDADA_LOWER) && score > e->lower ? (int8_t)score : e->lower;
    e->upper = (bound & ABDADA_UPPER) && score < e->upper ? (int8_t)score : e->upper;
}

/* Takes the results that others found since the last call, and sends those that wait. Anybody may
 * send anything: a score that no board has is dropped. */
static void take(void)
{
    static struct abdada_store_op result[4096];
    int count = abdada_take_shared(feed, result, 4096);
    for (int i = 0; i < count; i++) {
        if (result[i].score >= -CELLS && result[i].score <= CELLS) {
            put(result[i].key, result[i].depth, result[i].score, result[i].bound);
        }
    }
}

static bool is_known(uint64_t key, int alpha, int beta, int *score)
{
    const struct entry *e = entry_of(key, empty);
    *score = e->lower >= beta ? e->lower : e->upper;
    return e->key == key && (e->lower >= beta || e->upper <= alpha || e->lower == e->upper);
}

static int search(int alpha, int beta)
{
    uint64_t key = abdada_hash(board);
    int score, best = empty == 0 ? 0 : -CELLS;
    int turn = empty >= SHARED ? (int)(abdada_mix(key ^ own_order) % (COLUMNS - 1)) : 0;
    if (is_known(key, alpha, beta, &score)) {
        return score;
    }
    if (++nodes % TAKE_EVERY == 0 && feed != NULL) {
        take();
    }
    for (int i = 0; i < COLUMNS && best < beta; i++) {
        int column = order[i == 0 ? 0 : 1 + (i - 1 + turn) % (COLUMNS - 1)];
        if (height[column] == ROWS) {
            continue;
        }
        if (empty >= SHARED && is_known(key, alpha, beta, &score)) {
            return score; /* others have found it meanwhile */
        }
        play(column);
        int value = is_won(column) ? empty + 1 : -search(-beta, best > alpha ? -best : -alpha);
        undo(column);
        best = value > best ? value : best;
    }
    unsigned bound = best >= beta ? ABDADA_LOWER : best <= alpha ? ABDADA_UPPER : ABDADA_EXACT;
    put(key, empty, best, bound);
    if (empty >= SHARED) {
        abdada_share(feed, key, (unsigned)empty, best, bound, 0);
    }
    return best;
}

int main(int argc, char *argv[])
{
    const char *servers = argc > 2 && strcmp(argv[1], "--servers") == 0 ? argv[2] : NULL;
    int first = servers != NULL ? 3 : 1;
    memset(board, '.', CELLS);
    for (const char *c = argc > first ? argv[first] : ""; *c != '\0'; c++) {
        if (*c < '1' || *c > '0' + COLUMNS || height[*c - '1'] == ROWS) {
            fprintf(stderr, "usage: alphabeta [--servers HOST:PORT,...] [COLUMNS]\n");
            return 2;
        }
        play(*c - '1');
    }
    struct abdada_options options = {.struct_size = sizeof options,
                                     .servers = servers,
                                     .namespace_id = abdada_hash("alphabeta 6x5"),
                                     .log_name = "alphabeta",
                                     .share_depth = SHARED};
    if (servers != NULL && abdada_open(&feed, &options) < 0) {
        fprintf(stderr, "alphabeta: cannot use --servers %s; give HOST:PORT,...\n", servers);
        return 1;
    }
    if (feed != NULL) {
        abdada_wait_connected(feed, 2000); /* without a shard it goes on alone */
        own_order = (uint64_t)getpid();
    }
    int value = search(-CELLS, CELLS);
    printf("value %d nodes %llu\n", value, nodes);
    abdada_close(feed);
    return 0;
}
