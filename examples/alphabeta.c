/* alphabeta: the value of a game of four in a row on a small board, by plain alpha-beta. It knows
 * nothing of abdada: docs/guides/library.md shows, line by line, how such a searcher shares its
 * work with others like it.
 *
 *     cc -O2 alphabeta.c -o alphabeta && ./alphabeta 3322
 *
 * The digits are the columns played so far. The value is 0 for a draw, positive if the side to move
 * wins: one more than the cells that are empty when it does; negative if it loses. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { COLUMNS = 6, ROWS = 5, CELLS = COLUMNS * ROWS };

static const int order[COLUMNS] = {2, 3, 1, 4, 0, 5}; /* the middle first */
static char board[CELLS + 1]; /* a text: '.', 'X' and 'O', the bottom row first */
static int height[COLUMNS], empty = CELLS;
static unsigned long long nodes;

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

static int search(int alpha, int beta)
{
    int best = empty == 0 ? 0 : -CELLS;
    nodes++;
    for (int i = 0; i < COLUMNS && best < beta; i++) {
        int column = order[i];
        if (height[column] == ROWS) {
            continue;
        }
        play(column);
        int value = is_won(column) ? empty + 1 : -search(-beta, best > alpha ? -best : -alpha);
        undo(column);
        best = value > best ? value : best;
    }
    return best;
}

int main(int argc, char *argv[])
{
    memset(board, '.', CELLS);
    for (const char *c = argc > 1 ? argv[1] : ""; *c != '\0'; c++) {
        if (*c < '1' || *c > '0' + COLUMNS || height[*c - '1'] == ROWS) {
            fprintf(stderr, "usage: alphabeta [COLUMNS]\n");
            return 2;
        }
        play(*c - '1');
    }
    int value = search(-CELLS, CELLS);
    printf("value %d nodes %llu\n", value, nodes);
    return 0;
}
