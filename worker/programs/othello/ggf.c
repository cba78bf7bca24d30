#include "worker/programs/othello/ggf.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum {
    TAG_MAX = 32,
    VALUE_MAX = 1024, /* of a property that matters; others may be of any length */
    MS_MAX = 1000000000, /* no game takes longer */
};

/* A property as it stands in the text. */
struct property {
    char tag[TAG_MAX];
    const char *value;
    size_t size;
};

static const char *skip_blanks(const char *text)
{
    while (isspace((unsigned char)*text)) {
        text++;
    }
    return text;
}

/* Seconds, or with colons h:m:s or m:s; `unit_ms` is what a number without a colon counts. Stops at
 * the first byte that is not of it. False: there is no number. */
static bool read_time(const char **text, int64_t unit_ms, int64_t *out)
{
    const char *at = skip_blanks(*text);
    int64_t ms = 0;
    bool is_number = false;
    for (;;) {
        int64_t number = 0, part = 0, scale = 1;
        for (; isdigit((unsigned char)*at); at++) {
            number = number < MS_MAX ? number * 10 + (*at - '0') : number;
            is_number = true;
        }
        if (*at == '.') {
            for (at++; isdigit((unsigned char)*at); at++) {
                part = scale < 1000 ? part * 10 + (*at - '0') : part;
                scale = scale < 1000 ? scale * 10 : scale;
                is_number = true;
            }
        }
        if (*at == ':') {
            unit_ms = 1000;
        }
        ms = (ms + number) * unit_ms + part * unit_ms / scale;
        if (ms > MS_MAX) {
            ms = MS_MAX;
        }
        if (*at != ':') {
            break;
        }
        at++;
        ms = ms / 1000 * 60; /* what was seconds is minutes */
    }
    *text = at;
    *out = is_number ? ms : 0;
    return is_number;
}

int ggf_move(const char *text)
{
    const int column = tolower((unsigned char)text[0]);
    int move = -1;
    size_t size = 2;
    if (strncasecmp(text, "pass", 4) == 0) {
        move = GGF_PASS;
        size = 4;
    } else if (strncasecmp(text, "pa", 2) == 0) {
        move = GGF_PASS;
    } else if (column >= 'a' && column <= 'h' && text[1] >= '1' && text[1] <= '8') {
        move = (text[1] - '1') * 8 + column - 'a';
    }
    const bool ends = move >= 0 && (text[size] == '\0' || text[size] == '/' ||
                                    isspace((unsigned char)text[size]));
    return ends ? move : -1;
}

int ggf_move_and_time(const char *text, int64_t *used_ms)
{
    const char *time = strchr(text, '/');
    const int move = ggf_move(text);
    *used_ms = 0;
    time = time == NULL ? NULL : strchr(time + 1, '/');
    if (time != NULL) {
        time++;
        (void)read_time(&time, 1000, used_ms);
    }
    return move;
}

/* MAIN[,...]/INCREMENT[,...]/EXTRA[,...]; each may be empty. A number without a colon is minutes.
 */
static void read_clock(const char *text, struct ggf_clock *clock)
{
    int64_t *field[] = {&clock->main_ms, &clock->increment_ms, &clock->extra_ms};
    struct ggf_clock none = {0};
    *clock = none;
    for (unsigned i = 0; i < 3 && text != NULL; i++) {
        bool is_number = read_time(&text, 60000, field[i]);
        clock->is_set = i == 0 ? is_number : clock->is_set;
        text = strchr(text, '/');
        text = text == NULL ? NULL : text + 1;
    }
    if (!clock->is_set) {
        *clock = none;
    }
}

/* NULL: there is none, and why. */
static const char *read_property(const char *text, struct property *out, char why[GGF_WHY_MAX])
{
    size_t size = 0;
    while (isalnum((unsigned char)text[size])) {
        size++;
    }
    const char *value = skip_blanks(text + size);
    if (size == 0 || size >= TAG_MAX || *value != '[') {
        snprintf(why, GGF_WHY_MAX, "a property such as BO[...] is wanted at '%.20s'", text);
        return NULL;
    }
    memcpy(out->tag, text, size);
    out->tag[size] = '\0';
    out->value = value + 1;
    const char *end = strchr(out->value, ']');
    if (end == NULL) {
        snprintf(why, GGF_WHY_MAX, "%s[ has no end", out->tag);
        return NULL;
    }
    out->size = (size_t)(end - out->value);
    return end + 1;
}

/* "8", or with letters of the game server around: s8r20. The board says the rest. */
static bool read_type(const char *text, char why[GGF_WHY_MAX])
{
    const char *digits = text + strcspn(text, "0123456789");
    const bool is_8 = *digits == '8' && !isdigit((unsigned char)digits[1]);
    if (!is_8 || strpbrk(digits, "aA") != NULL) {
        snprintf(why, GGF_WHY_MAX, "TY[%.20s] is not Othello on 8x8", text);
        return false;
    }
    return true;
}

static bool read_board(const char *text, struct ggf_game *game, char why[GGF_WHY_MAX])
{
    static const char first[] =
        "---------------------------O*------*O--------------------------- *";
    char reason[OTHELLO_WHY_MAX];
    text = skip_blanks(text);
    if (text[0] != '8' || (text[1] != '\0' && !isspace((unsigned char)text[1]))) {
        snprintf(why, GGF_WHY_MAX, "BO[%.20s: a board of size 8 is wanted", text);
        return false;
    }
    text = skip_blanks(text + 1);
    if (!othello_parse(*text == '\0' ? first : text, &game->board, &game->is_black, reason)) {
        snprintf(why, GGF_WHY_MAX, "BO: %s", reason);
        return false;
    }
    return true;
}

/* The game as it is read. */
struct reading {
    struct ggf_game game;
    struct othello_board board; /* after the moves so far */
    bool is_black; /* to move there */
    bool has_board;
};

static bool may_pass(struct othello_board b)
{
    return othello_moves(b.own, b.other) == 0 && othello_moves(b.other, b.own) != 0;
}

static bool add_move(struct reading *r, int move)
{
    struct othello_board *b = &r->board;
    if (r->game.moves == GGF_MOVES_MAX) {
        return false;
    }
    if (move == GGF_PASS) {
        if (!may_pass(*b)) {
            return false;
        }
        *b = othello_pass(*b);
    } else {
        if ((othello_moves(b->own, b->other) & othello_bit((unsigned)move)) == 0) {
            return false;
        }
        *b = othello_play(*b, (unsigned)move, othello_flips(b->own, b->other, (unsigned)move));
    }
    r->game.move[r->game.moves++] = (uint8_t)move;
    r->is_black = !r->is_black;
    return true;
}

static bool read_move(struct reading *r, bool by_black, const char *text, char why[GGF_WHY_MAX])
{
    int64_t used_ms;
    const int move = ggf_move_and_time(skip_blanks(text), &used_ms);
    if (!r->has_board) {
        snprintf(why, GGF_WHY_MAX, "a move stands before the board, BO[...]");
        return false;
    }
    if (move < 0) {
        snprintf(why, GGF_WHY_MAX, "'%.20s' is no move", text);
        return false;
    }
    if (by_black != r->is_black && may_pass(r->board)) {
        (void)add_move(r, GGF_PASS); /* the format lets one be left out */
    }
    if (by_black != r->is_black || !add_move(r, move)) {
        snprintf(why, GGF_WHY_MAX, "move %u, %s[%.20s], is not legal there", r->game.moves + 1,
                 by_black ? "B" : "W", text);
        return false;
    }
    r->game.used_ms[by_black ? 0 : 1] += used_ms;
    return true;
}

static bool take(struct reading *r, const struct property *p, char why[GGF_WHY_MAX])
{
    char value[VALUE_MAX];
    static const char *const matter[] = {"GM", "TY", "BO", "B", "W", "TI", "TB", "TW"};
    unsigned i = 0;
    while (i < sizeof matter / sizeof *matter && strcasecmp(p->tag, matter[i]) != 0) {
        i++;
    }
    if (i == sizeof matter / sizeof *matter) {
        return true; /* names, places, results */
    }
    if (p->size >= sizeof value) {
        snprintf(why, GGF_WHY_MAX, "%s[...] is longer than %d bytes", p->tag, VALUE_MAX - 1);
        return false;
    }
    memcpy(value, p->value, p->size);
    value[p->size] = '\0';
    switch (i) {
    case 0:
        if (strcasecmp(value, "othello") != 0) {
            snprintf(why, GGF_WHY_MAX, "GM[%.20s] is not Othello", value);
            return false;
        }
        return true;
    case 1:
        return read_type(value, why);
    case 2:
        if (r->has_board) {
            snprintf(why, GGF_WHY_MAX, "there are two boards, BO[...]");
            return false;
        }
        r->has_board = read_board(value, &r->game, why);
        r->board = r->game.board;
        r->is_black = r->game.is_black;
        return r->has_board;
    case 3:
    case 4:
        return read_move(r, i == 3, value, why);
    case 5:
        read_clock(value, &r->game.clock[0]);
        r->game.clock[1] = r->game.clock[0];
        return true;
    default:
        read_clock(value, &r->game.clock[i - 6]);
        return true;
    }
}

bool ggf_parse(const char *text, struct ggf_game *game, char why[GGF_WHY_MAX])
{
    struct reading r = {0};
    struct property property;
    text = skip_blanks(text);
    if (text[0] != '(' || *skip_blanks(text + 1) != ';') {
        snprintf(why, GGF_WHY_MAX, "a game in GGF begins with (;");
        return false;
    }
    text = skip_blanks(skip_blanks(text + 1) + 1);
    while (*text != ';') {
        text = read_property(text, &property, why);
        if (text == NULL || !take(&r, &property, why)) {
            return false;
        }
        text = skip_blanks(text);
        if (*text == '\0') {
            snprintf(why, GGF_WHY_MAX, "a game in GGF ends with ;)");
            return false;
        }
    }
    text = skip_blanks(text + 1);
    if (*text != ')' || *skip_blanks(text + 1) != '\0') {
        snprintf(why, GGF_WHY_MAX, "after the game's ;) there is '%.20s'", text);
        return false;
    }
    if (!r.has_board) {
        snprintf(why, GGF_WHY_MAX, "there is no board, BO[...]");
        return false;
    }
    *game = r.game;
    return true;
}
