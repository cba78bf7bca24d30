#include "worker/programs/othello/othello_record.h"

#include "worker/games/games.h"

#include <stdio.h>
#include <string.h>

_Static_assert((int)OTHELLO_RECORD_MAX < (int)GAME_UNDO_MAX, "the moves fit on a position");

static struct othello_board board_of(const struct othello_record *r, bool *is_black)
{
    struct othello_board board;
    char why[OTHELLO_WHY_MAX];
    CHECK(othello_parse(r->job.text, &board, is_black, why));
    return board;
}

enum err othello_record_open(struct othello_record *r, char why[OTHELLO_RECORD_WHY_MAX])
{
    const struct game *game = games_by_name("othello");
    if (game == NULL) {
        snprintf(why, OTHELLO_RECORD_WHY_MAX, "this build has no Othello");
        return ERR_ABSENT;
    }
    return job_set_position(&r->job, game, "startpos", why, OTHELLO_RECORD_WHY_MAX);
}

void othello_record_close(struct othello_record *r)
{
    job_free(&r->job);
}

static enum err begin(struct othello_record *r, const char *text, char why[OTHELLO_RECORD_WHY_MAX])
{
    enum err err = job_set_position(&r->job, r->job.game, text, why, OTHELLO_RECORD_WHY_MAX);
    if (err == ERR_OK) {
        r->moves = r->at = 0;
    }
    return err;
}

enum err othello_record_clear(struct othello_record *r)
{
    char why[OTHELLO_RECORD_WHY_MAX];
    return begin(r, "startpos", why);
}

bool othello_record_black_moves(const struct othello_record *r)
{
    bool is_black;
    (void)board_of(r, &is_black);
    return is_black;
}

bool othello_record_is_over(const struct othello_record *r)
{
    struct game_move list[GAME_MOVES_MAX];
    return r->job.game->generate(r->job.position, list) == 0;
}

unsigned othello_record_empties(const struct othello_record *r)
{
    bool is_black;
    return othello_count(othello_empties(board_of(r, &is_black)));
}

uint16_t othello_record_forced(const struct othello_record *r)
{
    struct game_move list[GAME_MOVES_MAX];
    return r->job.game->generate(r->job.position, list) == 1 ? list[0].move : 0;
}

int othello_record_score(const struct othello_record *r)
{
    bool is_black;
    const int score = othello_final_score(board_of(r, &is_black));
    return is_black ? score : -score;
}

static void step(struct othello_record *r, bool forth)
{
    const struct game *game = r->job.game;
    const uint16_t move = r->move[forth ? r->at : r->at - 1];
    if (move != 0) {
        (forth ? game->make : game->unmake)(r->job.position, move);
        game->format(r->job.position, r->job.text);
    }
    r->at += forth ? 1u : -1u;
}

void othello_record_go_to(struct othello_record *r, unsigned at)
{
    CHECK(at <= r->moves);
    while (r->at != at) {
        step(r, r->at < at);
    }
}

void othello_record_forget(struct othello_record *r, unsigned moves)
{
    othello_record_go_to(r, moves);
    r->moves = moves;
}

static enum err add(struct othello_record *r, uint16_t move, bool is_implied)
{
    if (r->at == OTHELLO_RECORD_MAX) {
        return ERR_FULL;
    }
    r->move[r->at] = move;
    r->is_implied[r->at] = is_implied;
    r->moves = r->at + 1;
    step(r, true);
    return ERR_OK;
}

static enum err find(const struct othello_record *r, int move, uint16_t *out)
{
    char text[GAME_MOVE_TEXT_MAX] = "pass";
    if (move != GGF_PASS) {
        text[0] = (char)('a' + move % 8);
        text[1] = (char)('1' + move / 8);
        text[2] = '\0';
    }
    return r->job.game->parse_move(r->job.position, text, out);
}

enum err othello_record_turn_to(struct othello_record *r, bool black)
{
    uint16_t pass;
    if (othello_record_black_moves(r) == black || othello_record_is_over(r)) {
        return ERR_OK;
    }
    return find(r, GGF_PASS, &pass) == ERR_OK ? add(r, pass, true) : ERR_ILLEGAL;
}

enum err othello_record_play(struct othello_record *r, bool by_black, int move)
{
    const unsigned before = r->moves;
    uint16_t found = 0; /* a pass after the end */
    if (r->moves + 2 > OTHELLO_RECORD_MAX) {
        return ERR_FULL;
    }
    if (othello_record_is_over(r)) {
        return move == GGF_PASS ? add(r, 0, false) : ERR_ILLEGAL;
    }
    if (othello_record_turn_to(r, by_black) != ERR_OK) {
        return ERR_ILLEGAL;
    }
    if (find(r, move, &found) != ERR_OK) {
        othello_record_forget(r, before);
        return ERR_ILLEGAL;
    }
    return add(r, found, false);
}

bool othello_record_undo(struct othello_record *r)
{
    if (r->moves == 0) {
        return false;
    }
    unsigned at = r->moves - 1;
    at -= at > 0 && r->is_implied[at - 1] ? 1 : 0;
    othello_record_forget(r, at);
    return true;
}

enum err othello_record_set(struct othello_record *r, const struct ggf_game *game,
                            char why[OTHELLO_RECORD_WHY_MAX])
{
    char text[67];
    othello_format(game->board, game->is_black, text);
    enum err err = begin(r, text, why);
    for (unsigned i = 0; i < game->moves && err == ERR_OK; i++) {
        uint16_t move;
        /* The parser has checked them by the same rules. */
        CHECK(find(r, game->move[i], &move) == ERR_OK);
        err = add(r, move, false);
    }
    return err;
}
