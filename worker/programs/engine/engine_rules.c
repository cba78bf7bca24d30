#include "worker/programs/engine/engine_rules.h"

#include "worker/games/chess/chess.h"
#include "worker/games/chess/position.h"
#include "worker/games/games.h"
#include "worker/programs/uci_text.h"

#include <stdio.h>
#include <string.h>

/* The moves behind the position itself, whose text is copied; false: it is none. */
static bool split(const char *position, char fen[GAME_TEXT_MAX], const char **moves)
{
    const char *rest, *end;
    if (uci_begins(position, "startpos", &rest)) {
        snprintf(fen, GAME_TEXT_MAX, "startpos");
        end = rest;
    } else if (uci_begins(position, "fen", &rest)) {
        end = strstr(rest, "moves");
        end = end != NULL ? end : rest + strlen(rest);
        if (end - rest >= GAME_TEXT_MAX) {
            return false;
        }
        snprintf(fen, GAME_TEXT_MAX, "%.*s", (int)(end - rest), rest);
    } else {
        return false;
    }
    return uci_begins(end, "moves", moves) || (*moves = end, *end == '\0');
}

static bool make(struct job *job, const char *word)
{
    uint16_t move;
    if (job->game->parse_move(job->position, word, &move) != ERR_OK) {
        return false;
    }
    chess_play(job->position, move);
    return true;
}

static bool begin(struct job *job, const char *fen, bool is_chess960)
{
    char why[128], text[GAME_TEXT_MAX];
    bool ok = job_set_position(job, games_by_name("chess"), fen, why, sizeof why) == ERR_OK &&
              why[0] == '\0';
    if (ok && is_chess960) {
        ((struct chess_position *)job->position)->chess960 = true;
        job->game->format(job->position, text);
        ok = job_set_position(job, job->game, text, why, sizeof why) == ERR_OK;
    }
    /* Without the option each engine writes such castling in its own way. */
    return ok && (is_chess960 || !((struct chess_position *)job->position)->chess960);
}

void engine_rules_set(struct engine_rules *rules, const char *position, bool is_chess,
                      bool is_chess960)
{
    char fen[GAME_TEXT_MAX], word[UCI_MOVE_MAX];
    const char *moves;
    engine_rules_free(rules);
    bool ok = is_chess && split(position, fen, &moves) && begin(&rules->job, fen, is_chess960);
    while (ok && uci_next_word(&moves, word, sizeof word)) {
        ok = make(&rules->job, word);
    }
    rules->are_known = ok;
}

void engine_rules_free(struct engine_rules *rules)
{
    job_free(&rules->job);
    rules->are_known = false;
}

bool engine_rules_shorten(const char *position, bool is_chess, bool is_chess960,
                          char out[PROTO_TEXT_MAX + 1])
{
    struct job job = {.id = 0};
    char fen[GAME_TEXT_MAX], word[UCI_MOVE_MAX];
    const char *moves;
    enum { ROOM = PROTO_TEXT_MAX + 1, AROUND = GAME_TEXT_MAX + sizeof "fen  moves " };
    if (strlen(position) < ROOM) {
        snprintf(out, ROOM, "%s", position);
        return true;
    }
    bool ok = is_chess && split(position, fen, &moves) && begin(&job, fen, is_chess960);
    for (const char *end = position + strlen(position); ok && end - moves + AROUND > ROOM;) {
        ok = uci_next_word(&moves, word, sizeof word) && make(&job, word);
    }
    if (ok) {
        job.game->format(job.position, fen);
        snprintf(out, ROOM, "fen %s moves %s", fen, moves);
    }
    job_free(&job);
    return ok;
}

bool engine_rules_allow(const struct engine_rules *rules, const char *move, bool is_exact)
{
    uint16_t found;
    char text[GAME_MOVE_TEXT_MAX] = "";
    if (rules->are_known &&
        rules->job.game->parse_move(rules->job.position, move, &found) == ERR_OK) {
        rules->job.game->format_move(rules->job.position, found, text);
    }
    return text[0] != '\0' && (!is_exact || strcmp(text, move) == 0);
}

bool engine_rules_any(const struct engine_rules *rules, char move[GAME_MOVE_TEXT_MAX])
{
    struct game_move list[GAME_MOVES_MAX];
    if (!rules->are_known || rules->job.game->generate(rules->job.position, list) == 0) {
        return false;
    }
    rules->job.game->format_move(rules->job.position, list[0].move, move);
    return true;
}

void engine_rules_cut(const struct engine_rules *rules, char *line)
{
    const char *rest = line;
    char word[UCI_MOVE_MAX];
    uint16_t move[SEARCH_PV_MAX];
    unsigned made = 0;
    const struct game *game = rules->job.game;
    if (!rules->are_known) {
        line[strcspn(line, " ")] = '\0';
        return;
    }
    while (made < SEARCH_PV_MAX) {
        char *end = line + (rest - line);
        if (!uci_next_word(&rest, word, sizeof word) ||
            game->parse_move(rules->job.position, word, &move[made]) != ERR_OK) {
            *end = '\0';
            break;
        }
        game->make(rules->job.position, move[made++]);
    }
    line[rest - line] = '\0';
    while (made > 0) {
        game->unmake(rules->job.position, move[--made]);
    }
    for (size_t n = strlen(line); n > 0 && line[n - 1] == ' '; n--) {
        line[n - 1] = '\0';
    }
}

bool engine_rules_is_black(const char *position)
{
    const char *rest, *moves = strstr(position, " moves ");
    char word[UCI_VALUE_MAX];
    bool is_black = uci_begins(position, "fen", &rest) && uci_next_word(&rest, word, sizeof word) &&
                    uci_next_word(&rest, word, sizeof word) && strcmp(word, "b") == 0;
    for (rest = moves != NULL ? moves + strlen(" moves ") : "";
         uci_next_word(&rest, word, sizeof word);) {
        is_black = !is_black;
    }
    return is_black;
}
