#include "worker/programs/score.h"

#include "worker/games/chess/chess.h"
#include "worker/games/chess/san.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

const char *score_kind(const struct game *game, int score, int64_t *value)
{
    if (game->score_kind == GAME_DISCS) {
        *value = score;
        return "discs";
    }
    if (score > GAME_MATE_MIN) {
        *value = (GAME_MATE - score + 1) / 2;
        return "mate";
    }
    if (score < -GAME_MATE_MIN) {
        *value = -((GAME_MATE + score + 1) / 2);
        return "mate";
    }
    *value = score;
    return "cp";
}

void score_text(const struct game *game, int score, char *text, size_t size)
{
    int64_t value;
    const char *kind = score_kind(game, score, &value);
    if (strcmp(kind, "mate") == 0) {
        snprintf(text, size, "#%d", (int)value);
    } else if (strcmp(kind, "discs") == 0) {
        snprintf(text, size, "%+d", (int)value);
    } else {
        snprintf(text, size, "%+.2f", (double)value / 100);
    }
}

const char *score_move(const struct job *job, uint16_t move, char *text)
{
    if (move == 0) {
        return "none";
    }
    job->game->format_move(job->position, move, text);
    return text;
}

_Static_assert((int)CHESS_SAN_MAX <= (int)GAME_MOVE_TEXT_MAX, "both ways to write a move fit");

bool score_has_san(const struct game *game)
{
    return game == &game_chess;
}

void score_line(const struct job *job, const struct search_line *line, bool is_san,
                score_line_word *word, void *context)
{
    char text[GAME_MOVE_TEXT_MAX];
    for (unsigned i = 0; i < line->length; i++) {
        if (is_san) {
            chess_san_format(job->position, line->move[i], text);
        } else {
            job->game->format_move(job->position, line->move[i], text);
        }
        word(context, text);
        job->game->make(job->position, line->move[i]);
    }
    for (unsigned i = line->length; i > 0; i--) {
        job->game->unmake(job->position, line->move[i - 1]);
    }
}

void score_text_san(const struct game *game, const char *position, const char *line, char *text,
                    size_t size)
{
    char why[128], word[GAME_MOVE_TEXT_MAX], san[CHESS_SAN_MAX];
    void *at = score_has_san(game) ? calloc(1, game->position_size) : NULL;
    size_t used = 0;
    uint16_t move;
    int length;
    text[0] = '\0';
    if (at == NULL || game->parse(at, position, why, sizeof why) != ERR_OK) {
        free(at);
        return;
    }
    for (unsigned i = 0; i < SEARCH_PLY_MAX && sscanf(line, "%7s%n", word, &length) == 1; i++) {
        if (game->parse_move(at, word, &move) != ERR_OK) {
            break;
        }
        chess_san_format(at, move, san);
        if (used + strlen(san) + 2 > size) {
            break;
        }
        used += (size_t)snprintf(text + used, size - used, "%s%s", used > 0 ? " " : "", san);
        game->make(at, move);
        line += length;
    }
    free(at);
}

void score_print_word(void *out, const char *move)
{
    fprintf(out, " %s", move);
}

/* Copies the word without the characters of `drop`. */
static void without(char *out, size_t size, const char *word, const char *drop)
{
    size_t used = 0;
    for (; *word != '\0' && used + 1 < size; word++) {
        if (strchr(drop, *word) == NULL) {
            out[used++] = *word;
        }
    }
    out[used] = '\0';
}

/* Reads a move as players write it, or as programs do: from one square to another, perhaps with the
 * piece's letter before and signs between (a1a8, Ra1-a8, e7xd8=Q). */
static bool read_chess_move(const struct job *job, const char *word, uint16_t *move)
{
    static const char letters[] = "PNBRQK";
    const struct chess_position *position = job->position;
    char san[16], text[16];
    uint16_t named;
    without(san, sizeof san, word, "()");
    if (chess_san_parse(position, san, move) == ERR_OK) {
        return true;
    }
    without(text, sizeof text, san, "-x:=/+#!?");
    const char *letter = text[0] != '\0' ? strchr(letters, text[0]) : NULL;
    if (job->game->parse_move(position, text + (letter != NULL), &named) != ERR_OK ||
        (letter != NULL && (position->board[chess_move_from(named)] & 7) != letter - letters) ||
        (strpbrk(san, "x:") != NULL && !(chess_move_kind(named) & CHESS_CAPTURE))) {
        return false;
    }
    *move = named;
    return true;
}

static bool read_move(const struct job *job, const char *word, uint16_t *move)
{
    return job->game == &game_chess ? read_chess_move(job, word, move)
                                    : job->game->parse_move(job->position, word, move) == ERR_OK;
}

/* The next word without a move's number before it (1.Ra8, 1... Ra8), and without an e.p. of its own
 * after a move; NULL: there is none. */
static char *next_move(char **rest)
{
    for (char *word; (word = strtok_r(*rest, " \t,", rest)) != NULL;) {
        const size_t digits = strspn(word, "0123456789"), dots = strspn(word + digits, ".");
        word += dots > 0 ? digits + dots : 0;
        if (*word != '\0' && strcasecmp(word, "e.p.") != 0 && strcasecmp(word, "ep") != 0) {
            return word;
        }
    }
    return NULL;
}

bool score_drop_unread(char *moves, const struct job *job, char *unread, size_t size)
{
    char copy[SUITE_MOVES_MAX], *rest = copy;
    snprintf(copy, sizeof copy, "%s", moves);
    unread[0] = moves[0] = '\0';
    for (char *word; (word = next_move(&rest)) != NULL;) {
        uint16_t move;
        if (read_move(job, word, &move)) { /* `moves` has SUITE_MOVES_MAX bytes, and what fits in
                                            * `copy` fits in it: nothing gets longer */
            strcat(strcat(moves, moves[0] != '\0' ? " " : ""), word);
        } else if (unread[0] == '\0') {
            snprintf(unread, size, "%s", word);
        }
    }
    return unread[0] != '\0';
}

static bool among(const char *moves, const struct job *job, uint16_t move)
{
    char copy[SUITE_MOVES_MAX], *rest = copy;
    snprintf(copy, sizeof copy, "%s", moves);
    for (char *word; (word = next_move(&rest)) != NULL;) {
        uint16_t named;
        if (read_move(job, word, &named) && named == move) {
            return true;
        }
    }
    return false;
}

bool score_is_judged(const struct suite_case *c, const struct job *job, uint16_t move)
{
    if (among(c->avoid, job, move)) {
        return true;
    }
    if (!among(c->best, job, move) && (c->best[0] != '\0' || c->is_best_cut)) {
        return !c->is_best_cut;
    }
    return !c->is_avoid_cut && (c->best[0] != '\0' || c->avoid[0] != '\0');
}

bool score_solved(const struct suite_case *c, const struct job *job, uint16_t move, int score)
{
    const bool is_score_alone = c->has_score && c->best[0] == '\0';
    return (move != 0 || is_score_alone) && (!c->has_score || c->score == score) &&
           (c->best[0] == '\0' || among(c->best, job, move)) && !among(c->avoid, job, move);
}
