#include "worker/programs/uci/uci_console.h"

#include "common/options.h"
#include "worker/games/chess/chess.h"
#include "worker/games/chess/eval.h"
#include "worker/games/chess/movegen.h"
#include "worker/programs/cli.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { PERFT_DEPTH_MAX = 9 }; /* nothing ends it but its end */

static void print_square(unsigned square)
{
    printf(" %c%c", 'a' + (int)(square & 7), '1' + (int)(square >> 3));
}

static void board(const struct job *job)
{
    static const char letters[] = "PNBRQK  pnbrqk  ";
    const struct chess_position *p = job->position;
    for (unsigned rank = 8; rank-- > 0;) {
        printf("%u ", rank + 1);
        for (unsigned file = 0; file < 8; file++) {
            unsigned piece = p->board[rank * 8 + file];
            printf(" %c", piece == CHESS_EMPTY ? '.' : letters[piece]);
        }
        printf("\n");
    }
    printf("   a b c d e f g h\nfen %s\nkey %016" PRIx64 "\ncheckers", job->text,
           job->game->key(p));
    uint64_t checkers = chess_attackers(p, chess_king(p, p->side), p->side ^ 1u, chess_occupied(p));
    for (; checkers != 0; checkers &= checkers - 1) {
        print_square(bitboard_first(checkers));
    }
    printf("\n");
}

/* That of selection full. */
static void evaluation(const struct job *job)
{
    const struct chess_position *p = job->position;
    struct chess_sums sums;
    chess_sums_clear(&sums);
    const int score = chess_eval_full(p, &sums);
    printf("evaluation %+.2f for the side to move, %+.2f for White%s\n", score / 100.0,
           (p->side == 0 ? score : -score) / 100.0,
           job->game->check(p) ? " (in check: not to be trusted)" : "");
}

static void perft(const struct job *job, unsigned depth)
{
    struct chess_position p;
    struct game_move list[GAME_MOVES_MAX];
    uint64_t sum = 0;
    chess_position_fork(&p, job->position);
    const unsigned count = job->game->generate(&p, list);
    for (unsigned i = 0; i < count; i++) {
        char text[GAME_MOVE_TEXT_MAX];
        job->game->format_move(&p, list[i].move, text);
        job->game->make(&p, list[i].move);
        const uint64_t leaves = depth > 1 ? chess_perft(&p, depth - 1) : 1;
        job->game->unmake(&p, list[i].move);
        printf("%s: %" PRIu64 "\n", text, leaves);
        sum += leaves;
    }
    printf("\nNodes searched: %" PRIu64 "\n", sum); /* as programs that read it know it */
}

static char swap_case(char c)
{
    return (char)(islower((unsigned char)c) ? toupper((unsigned char)c)
                                            : tolower((unsigned char)c));
}

static enum err flip(struct job *job)
{
    char ranks[GAME_TEXT_MAX], side, castling[8], ep[4], fen[2 * GAME_TEXT_MAX], why[256];
    unsigned halfmoves, fullmove;
    char flipped[GAME_TEXT_MAX] = "";
    CHECK(sscanf(job->text, "%127s %c %7s %3s %u %u", ranks, &side, castling, ep, &halfmoves,
                 &fullmove) == 6); /* as the game writes it */
    for (char *rank; (rank = strrchr(ranks, '/')) != NULL; *rank = '\0') {
        strcat(strcat(flipped, rank + 1), "/");
    }
    strcat(flipped, ranks);
    for (char *c = flipped; *c != '\0'; c++) {
        *c = swap_case(*c);
    }
    for (char *c = castling; *c != '\0'; c++) {
        *c = swap_case(*c);
    }
    if (ep[0] != '-') {
        ep[1] = (char)('1' + '8' - ep[1]);
    }
    snprintf(fen, sizeof fen, "%s %c %s %s %u %u", flipped, side == 'w' ? 'b' : 'w', castling, ep,
             halfmoves, fullmove);
    return job_set_position(job, job->game, fen, why, sizeof why);
}

static void say_no_position(void)
{
    printf("info string error: no position: the last one was refused\n");
}

bool uci_console_perft(const struct job *job, const char *words)
{
    uint64_t depth;
    words += strspn(words, " \t");
    if (strncmp(words, "perft", 5) != 0) {
        return false;
    }
    words += 5 + strspn(words + 5, " \t");
    if (job == NULL) {
        say_no_position();
    } else if (options_unsigned(words, 1, PERFT_DEPTH_MAX, &depth) == ERR_OK) {
        perft(job, (unsigned)depth);
    } else {
        printf("info string error: go perft N: a depth from 1 to %d, not '%.80s'\n",
               PERFT_DEPTH_MAX, words);
    }
    return true;
}

bool uci_console_knows(const char *word)
{
    return strcmp(word, "d") == 0 || strcmp(word, "eval") == 0 || strcmp(word, "flip") == 0 ||
           strcmp(word, "bench") == 0;
}

void uci_console_obey(struct job *job, const char *word)
{
    if (strcmp(word, "bench") == 0) {
        char name[] = "bench", *argv[] = {name, NULL};
        (void)cli_bench(1, argv);
    } else if (job == NULL) {
        say_no_position();
    } else if (strcmp(word, "d") == 0) {
        board(job);
    } else if (strcmp(word, "eval") == 0) {
        evaluation(job);
    } else if (flip(job) != ERR_OK) {
        printf("info string error: %s\n", err_text(ERR_NOMEM));
    }
}
