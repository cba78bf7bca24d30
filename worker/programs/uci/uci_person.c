#include "worker/programs/uci/uci_person.h"

#include "worker/games/chess/eval.h"
#include "worker/games/chess/movegen.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void uci_person_board(const struct job *job)
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
        const int square = (int)bitboard_first(checkers);
        printf(" %c%c", 'a' + (square & 7), '1' + (square >> 3));
    }
    printf("\n");
}

void uci_person_evaluation(const struct job *job)
{
    const struct chess_position *p = job->position;
    struct chess_sums sums;
    chess_sums_clear(&sums);
    const int score = chess_eval_full(p, &sums);
    printf("evaluation %+.2f for the side to move, %+.2f for White%s\n", score / 100.0,
           (p->side == 0 ? score : -score) / 100.0,
           job->game->check(p) ? " (in check: not to be trusted)" : "");
}

void uci_person_perft(const struct job *job, unsigned depth)
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
        const uint64_t leaves = chess_perft(&p, depth - 1);
        job->game->unmake(&p, list[i].move);
        printf("%s: %" PRIu64 "\n", text, leaves);
        sum += leaves;
    }
    printf("\nNodes searched: %" PRIu64 "\n", sum); /* as programs that read it know it */
}

static void swap_case(char *text)
{
    for (; *text != '\0'; text++) {
        const unsigned char c = (unsigned char)*text;
        *text = (char)(islower(c) ? toupper(c) : tolower(c));
    }
}

enum err uci_person_flip(struct job *job)
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
    swap_case(flipped);
    swap_case(castling);
    if (ep[0] != '-') {
        ep[1] = (char)('1' + '8' - ep[1]);
    }
    snprintf(fen, sizeof fen, "%s %c %s %s %u %u", flipped, side == 'w' ? 'b' : 'w', castling, ep,
             halfmoves, fullmove);
    return job_set_position(job, job->game, fen, why, sizeof why);
}
