#include "worker/cli/score.h"

#include "worker/games/chess/chess.h"
#include "worker/games/chess/san.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

typedef void move_format(const void *position, uint16_t move, char *text);

static void write_line(const struct job *job, const struct search_line *line, move_format *format,
                       score_line_word *word, void *context)
{
    char text[GAME_MOVE_TEXT_MAX];
    for (unsigned i = 0; i < line->length; i++) {
        format(job->position, line->move[i], text);
        word(context, text);
        job->game->make(job->position, line->move[i]);
    }
    for (unsigned i = line->length; i > 0; i--) {
        job->game->unmake(job->position, line->move[i - 1]);
    }
}

void score_line(const struct job *job, const struct search_line *line, score_line_word *word,
                void *context)
{
    write_line(job, line, job->game->format_move, word, context);
}

bool score_has_san(const struct job *job)
{
    return job->game == &game_chess;
}

_Static_assert((int)CHESS_SAN_MAX <= (int)GAME_MOVE_TEXT_MAX, "both ways to write a move fit");

static void format_san(const void *position, uint16_t move, char *text)
{
    chess_san_format(position, move, text);
}

void score_line_san(const struct job *job, const struct search_line *line, score_line_word *word,
                    void *context)
{
    write_line(job, line, format_san, word, context);
}

void score_print_word(void *context, const char *move)
{
    (void)context;
    printf(" %s", move);
}

static bool among(const char *moves, const struct job *job, uint16_t move)
{
    char copy[SUITE_MOVES_MAX], *rest = copy;
    snprintf(copy, sizeof copy, "%s", moves);
    for (char *word; (word = strtok_r(rest, " ,", &rest)) != NULL;) {
        uint16_t named;
        const enum err err = job->game == &game_chess
                                 ? chess_san_parse(job->position, word, &named)
                                 : job->game->parse_move(job->position, word, &named);
        if (err == ERR_OK && named == move) {
            return true;
        }
    }
    return false;
}

bool score_solved(const struct suite_case *c, const struct job *job, uint16_t move, int score)
{
    if (move == 0 || (c->has_score && c->score != score)) {
        return false;
    }
    return c->best[0] != '\0' ? among(c->best, job, move) : !among(c->avoid, job, move);
}
