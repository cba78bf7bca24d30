/* Values of chess endings of three and four pieces, found backwards from the mates by a program
 * that shares nothing with the search: it has its own moves, its own boards, and no evaluation.
 * Without castling and without the rule of fifty moves.
 *
 * Reads lines and answers each by a line:
 *     FEN, or FEN;MOVE MOVE ...    what each position on the way is worth to the side to move: `win
 * 13`, `draw`, `loss 12` (plies to mate, by best play), `illegal MOVE`, or `unknown`
 *     zeroing FEN                  the same in plies to the mate, or to the capture or pawn move
 * that keeps the value, whichever comes first
 *     after FEN;MOVE               the FEN, and `check` or `quiet`
 *     random KRKP SEED             a random position of that material that is not over
 *
 * A table is made when it is first asked for, after those that its captures and promotions lead to:
 * some seconds each, and 8 or 16 MiB; for KPKP there are 22. Positions in which a pawn may be taken
 * en passant are in none: their values are made of those of two others. */
#include "common/rng.h"
#include "tests/system/endings_board.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TABLES_MAX = 64, ILLEGAL = 255, UNKNOWN = 254, DRAW = 0 };
static const char letters[] = "PNBRQK";

/* Plies are counted to the mate, or to the next capture or pawn move if that comes first. */
enum metric { TO_MATE, TO_ZEROING };

/* A position's value: DRAW, ILLEGAL, an odd number for a loss of the side to move, or an even one
 * for a win. TO_MATE: 1 + plies. TO_ZEROING, where either may take any number of plies:
 * 1 + 2 * plies for a loss, 2 + 2 * plies for a win. */
struct table {
    enum metric metric;
    struct position model; /* types and colors */
    bool has_pawns, may_pass; /* a pawn may be taken en passant after a move that stays in it */
    size_t size;
    uint8_t *value;
    uint8_t *later; /* while it is being filled: wins by leaving the table */
};

static struct table tables[TABLES_MAX];
static unsigned table_count;

/* ---- tables ---- */

/* Worth of a side's men, for the choice of who is White. */
static unsigned weight(const struct position *p, unsigned color)
{
    unsigned sum = 0;
    for (unsigned i = 0; i < p->count; i++) {
        sum += p->color[i] == color ? 1u << 3 * p->type[i] : 0;
    }
    return sum;
}

/* The same position in the form in which tables have it: the stronger side is White, White's king
 * on the files a to d and, without pawns, on the ranks 1 to 4, pieces in one order. */
static struct position canonical(const struct position *p)
{
    struct position c = *p;
    bool has_pawns = false;
    if (weight(p, BLACK) > weight(p, WHITE)) {
        for (unsigned i = 0; i < c.count; i++) {
            c.color[i] = !c.color[i];
            c.square[i] ^= 56;
        }
        c.side = !c.side;
        const uint8_t king = c.square[0];
        c.square[0] = c.square[1];
        c.square[1] = king;
        c.color[0] = WHITE;
        c.color[1] = BLACK;
    }
    for (unsigned i = 2; i < c.count; i++) {
        has_pawns = has_pawns || c.type[i] == PAWN;
    }
    const unsigned mirror =
        (c.square[0] % 8 > 3 ? 7 : 0) | (!has_pawns && c.square[0] / 8 > 3 ? 56 : 0);
    for (unsigned i = 0; i < PIECES_MAX; i++) {
        c.square[i] ^= (uint8_t)mirror;
    }
    const bool may_swap = c.count > 3;
    for (unsigned i = 2; i < c.count && may_swap;
         i++) { /* White's first, then by type; two of a kind by their squares */
        for (unsigned k = i; k > 2; k--) {
            const unsigned a = (c.color[k - 1] * 8u + QUEEN - c.type[k - 1]) * 64 + c.square[k - 1],
                           b = (c.color[k] * 8u + QUEEN - c.type[k]) * 64 + c.square[k];
            if (a > b) {
                const struct position old = c;
                c.type[k] = old.type[k - 1], c.type[k - 1] = old.type[k];
                c.color[k] = old.color[k - 1], c.color[k - 1] = old.color[k];
                c.square[k] = old.square[k - 1], c.square[k - 1] = old.square[k];
            }
        }
    }
    return c;
}

static size_t index_of(const struct table *t, const struct position *c)
{
    size_t index = c->side * (t->has_pawns ? 32u : 16u) + c->square[0] / 8 * 4 + c->square[0] % 8;
    for (unsigned i = 1; i < c->count; i++) {
        index = index * 64 + c->square[i];
    }
    return index;
}

static struct position position_at(const struct table *t, size_t index)
{
    struct position p = t->model;
    for (unsigned i = p.count - 1; i > 0; i--) {
        p.square[i] = index % 64;
        index /= 64;
    }
    const unsigned kings = t->has_pawns ? 32 : 16, king = (unsigned)(index % kings);
    p.square[0] = (uint8_t)(king / 4 * 8 + king % 4);
    p.side = (unsigned)(index / kings);
    return p;
}

static struct table *table_of(const struct position *c, enum metric metric);
static uint8_t value_en_passant(const struct position *p, enum metric metric);

static uint8_t value_of(const struct position *p, enum metric metric)
{
    if (p->passed != 0) {
        return value_en_passant(p, metric);
    }
    const struct position c = canonical(p);
    const struct table *t = table_of(&c, metric);
    return t == NULL ? DRAW : t->value[index_of(t, &c)]; /* none: bare kings */
}

/* A move that leaves the table ends the count of a table of zeroing. */
static uint8_t value_after(const struct position *after, bool stays, enum metric metric)
{
    const uint8_t value = value_of(after, stays ? metric : TO_MATE);
    return stays || metric == TO_MATE || value == DRAW ? value : value % 2 == 1 ? 1 : 2;
}

/* The value before a move that leads to `value`, were it the only one. */
static unsigned value_before(unsigned value, enum metric metric)
{
    return value == DRAW ? DRAW : value + (value % 2 == 1 && metric == TO_ZEROING ? 3 : 1);
}

static unsigned known_until = UNKNOWN; /* the layer that fill() is at */

/* The better of what the position is worth without en passant and what taking so leads to; DRAW
 * while a table is being filled and that is not known yet. */
static uint8_t value_en_passant(const struct position *p, enum metric metric)
{
    struct move list[MOVES_MAX];
    struct position after, without = *p;
    unsigned others = 0, taking = ILLEGAL;
    const unsigned count = generate(p, list);
    for (unsigned i = 0; i < count; i++) {
        if (!play(p, list[i], &after)) {
            continue;
        }
        if (p->type[list[i].piece] == PAWN && list[i].to == p->passed &&
            list[i].to % 8 != p->square[list[i].piece] % 8) {
            taking = value_before(value_after(&after, false, metric), metric);
        } else {
            others++;
        }
    }
    without.passed = 0;
    const unsigned rest = value_of(&without, metric);
    unsigned best;
    if (taking == ILLEGAL || others == 0) {
        best = taking == ILLEGAL ? rest : taking;
    } else if (taking == DRAW || rest == DRAW) { /* a win, if one of them is, else a draw */
        best = taking % 2 == 0 && rest % 2 == 0 ? taking + rest : DRAW;
    } else if (taking % 2 == rest % 2) {
        best = (taking < rest) == (taking % 2 == 0) ? taking : rest;
    } else {
        best = taking % 2 == 0 ? taking : rest;
    }
    return best > known_until ? DRAW : (uint8_t)best;
}

/* What the moves of a position lead to. */
struct prospect {
    unsigned moves, unknown;
    unsigned fastest; /* value of the fastest known loss of the other side; 0: none */
    unsigned slowest; /* value of its slowest known win */
    bool is_safe; /* a move is known not to lose */
};

static bool stays_in_table(const struct position *p, struct move m, enum metric metric)
{
    return m.promoted == PAWN && piece_on(p, m.to) < 0 &&
           (metric == TO_MATE || p->type[m.piece] != PAWN);
}

/* A move that stays in the table counts as unknown while it leads to no value. `whole`: such moves
 * are looked at, too, until one is found that does not lose; else one of them is enough. */
static struct prospect prospect_of(const struct position *p, enum metric metric, bool whole)
{
    struct move list[MOVES_MAX];
    struct prospect f = {0};
    const unsigned count = generate(p, list);
    for (unsigned i = 0; i < count; i++) {
        struct position after;
        const bool stays = stays_in_table(p, list[i], metric);
        if ((stays && !whole && f.unknown > 0) || !play(p, list[i], &after)) {
            continue;
        }
        f.moves++;
        const uint8_t value = stays && !whole ? DRAW : value_after(&after, stays, metric);
        if (whole && value % 2 == 1) {
            f.fastest = value;
            return f;
        }
        if (value == DRAW) {
            f.unknown += stays;
            f.is_safe = f.is_safe || !stays;
            if (whole) {
                return f;
            }
        } else if (value % 2 == 1) {
            f.fastest = f.fastest == 0 || value < f.fastest ? value : f.fastest;
        } else {
            f.slowest = value > f.slowest ? value : f.slowest;
        }
    }
    return f;
}

/* Positions one move back, of the other side, by a move that stays in the table. */
static unsigned before(const struct position *p, enum metric metric, struct position *list)
{
    unsigned count = 0;
    const unsigned mover = !p->side;
    for (unsigned i = 0; i < p->count; i++) {
        uint8_t from[32];
        unsigned found = 0;
        if (p->color[i] != mover || (p->type[i] == PAWN && metric == TO_ZEROING)) {
            continue;
        }
        if (p->type[i] == PAWN) {
            const int back = mover == WHITE ? -8 : 8, at = p->square[i];
            if (at + back >= 8 && at + back < 56 && piece_on(p, at + back) < 0) {
                from[found++] = (uint8_t)(at + back);
                if (at / 8 == (mover == WHITE ? 3 : 4) && piece_on(p, at + 2 * back) < 0 &&
                    passed_at(p, at, mover) == 0) { /* else see answer_two_steps() */
                    from[found++] = (uint8_t)(at + 2 * back);
                }
            }
        } else {
            found = reach(p, i, from);
        }
        for (unsigned k = 0; k < found; k++) {
            if (piece_on(p, from[k]) < 0) {
                list[count] = *p;
                list[count].square[i] = from[k];
                list[count].side = mover;
                count++;
            }
        }
    }
    return count;
}

/* A position that has got a value makes one of its predecessors known, perhaps: which is the later
 * layer of this and `last`. */
static unsigned report(struct table *t, const struct position *predecessor, unsigned value,
                       unsigned last)
{
    const struct position c = canonical(predecessor);
    const size_t at = index_of(t, &c);
    uint8_t *known = &t->value[at];
    unsigned becomes = value_before(value, t->metric);
    if (*known != DRAW || (t->later[at] > 0 && t->later[at] < becomes)) {
        return last; /* known, illegal, or soon known */
    }
    if (value % 2 == 0) { /* won: its predecessor may be lost */
        const struct prospect f = prospect_of(&c, t->metric, true);
        becomes = f.fastest > 0 || f.unknown > 0 || f.is_safe ? DRAW : f.slowest + 1;
    }
    if (becomes >= UNKNOWN) {
        fprintf(stderr, "endings: a win takes too long\n");
        exit(1);
    }
    if (becomes != DRAW) {
        *known = (uint8_t)becomes;
    }
    return becomes > last ? becomes : last;
}

/* Whether the side to move has a pawn that may be taken en passant when it takes two steps. */
static bool may_be_taken_so(const struct table *t, size_t index)
{
    const unsigned pawn[2] = {index / 64 % 64, index % 64};
    const bool black = index >= t->size / 2;
    const unsigned ours = pawn[black], theirs = pawn[!black];
    return ours / 8 == (black ? 6 : 1) && theirs / 8 == (black ? 4 : 3) &&
           abs((int)(ours % 8) - (int)(theirs % 8)) == 1;
}

/* The same of positions that no table has, since a pawn may be taken en passant there. */
static unsigned answer_two_steps(struct table *t, unsigned value, unsigned last)
{
    known_until = value;
    for (size_t i = 0; i < t->size; i++) {
        struct move list[MOVES_MAX];
        struct position p, after;
        if (t->value[i] != DRAW || !may_be_taken_so(t, i)) {
            continue;
        }
        p = position_at(t, i);
        const unsigned count = generate(&p, list);
        for (unsigned k = 0; k < count; k++) {
            if (play(&p, list[k], &after) && after.passed != 0 &&
                value_of(&after, t->metric) == value) {
                last = report(t, &p, value, last);
            }
        }
    }
    return last;
}

/* Layer by layer: after a layer all of at most so many plies is known. */
static void fill(struct table *t)
{
    t->later = calloc(t->size, 1);
    if (t->later == NULL) {
        fprintf(stderr, "endings: out of memory\n");
        exit(1);
    }
    /* What taking en passant leads to is no longer than KPK: 56 plies. */
    unsigned last = t->may_pass ? 60 : 1;
    for (size_t i = 0; i < t->size; i++) {
        const struct position p = position_at(t, i);
        if (!is_legal(&p)) {
            t->value[i] = ILLEGAL;
            continue;
        }
        const struct prospect f = prospect_of(&p, t->metric, false);
        if (f.moves == 0) {
            t->value[i] = in_check(&p, p.side) ? 1 : DRAW;
        } else if (f.fastest > 0) {
            t->later[i] = (uint8_t)value_before(f.fastest, t->metric);
            last = t->later[i] > last ? t->later[i] : last;
        } else if (f.unknown == 0 && !f.is_safe) {
            t->value[i] = (uint8_t)(f.slowest + 1);
            last = t->value[i] > last ? t->value[i] : last;
        }
    }
    for (unsigned value = 1; value <= last; value++) {
        for (size_t i = 0; i < t->size; i++) {
            if (t->later[i] == value && t->value[i] == DRAW) {
                t->value[i] = (uint8_t)value;
            }
            if (t->value[i] != value) {
                continue;
            }
            struct position list[MOVES_MAX];
            const struct position p = position_at(t, i);
            const unsigned count = before(&p, t->metric, list);
            for (unsigned k = 0; k < count; k++) {
                last = report(t, &list[k], value, last);
            }
        }
        if (t->may_pass) {
            last = answer_two_steps(t, value, last);
        }
    }
    known_until = UNKNOWN;
    free(t->later);
    t->later = NULL;
}

static struct table *table_of(const struct position *c, enum metric metric)
{
    if (c->count == 2) {
        return NULL;
    }
    for (unsigned i = 0; i < table_count; i++) {
        const struct position *m = &tables[i].model;
        if (tables[i].metric == metric && m->count == c->count &&
            memcmp(m->type, c->type, c->count) == 0 && memcmp(m->color, c->color, c->count) == 0) {
            return &tables[i];
        }
    }
    struct table t = {.metric = metric, .model = *c};
    for (unsigned i = 2; i < c->count; i++) {
        t.has_pawns = t.has_pawns || c->type[i] == PAWN;
    }
    t.may_pass = metric == TO_MATE && c->count == 4 && c->type[2] == PAWN && c->type[3] == PAWN &&
                 c->color[2] != c->color[3];
    t.size = 2 * (t.has_pawns ? 32 : 16);
    for (unsigned i = 1; i < c->count; i++) {
        t.size *= 64;
    }
    t.value = calloc(t.size, 1);
    if (t.value == NULL || table_count == TABLES_MAX) {
        fprintf(stderr, "endings: no room for another table\n");
        exit(1);
    }
    /* The tables that moves lead to come first: prospect_of() must not meet a half-made one. */
    if (metric == TO_ZEROING && t.has_pawns) {
        table_of(c, TO_MATE);
    }
    for (unsigned i = 2; i < c->count; i++) {
        struct position less = *c;
        for (unsigned k = i; k + 1 < less.count; k++) {
            less.type[k] = less.type[k + 1];
            less.color[k] = less.color[k + 1];
        }
        less.count--;
        less = canonical(&less);
        table_of(&less, TO_MATE);
        for (uint8_t type = KNIGHT; c->type[i] == PAWN && type <= QUEEN; type++) {
            struct position more = *c;
            more.type[i] = type;
            more = canonical(&more);
            table_of(&more, TO_MATE);
        }
    }
    struct table *made = &tables[table_count++]; /* fill() looks into it */
    *made = t;
    fill(made);
    return made;
}

/* ---- what is read and said ---- */

/* A FEN of two kings and up to two others. False: it is none. */
static bool read_fen(const char *text, struct position *p)
{
    int square = 56;
    unsigned kings = 0;
    *p = (struct position){.count = 2, .type = {KING, KING}, .color = {WHITE, BLACK}};
    for (; *text != ' ' && *text != '\0'; text++) {
        const char *letter = strchr(letters, *text & ~32);
        if (*text == '/') {
            square -= 16;
        } else if (*text >= '1' && *text <= '8') {
            square += *text - '0';
        } else if (letter == NULL || square < 0 || square > 63) {
            return false;
        } else {
            const unsigned color = *text & 32 ? BLACK : WHITE, type = (unsigned)(letter - letters);
            unsigned at = type == KING ? color : p->count++;
            if (at >= PIECES_MAX) {
                return false;
            }
            kings += type == KING;
            p->type[at] = (uint8_t)type;
            p->color[at] = (uint8_t)color;
            p->square[at] = (uint8_t)square++;
        }
    }
    p->side = text[0] == ' ' && text[1] == 'b' ? BLACK : WHITE;
    if (strlen(text) > 6 && text[5] != '-') {
        const int passed = text[5] - 'a' + 8 * (text[6] - '1');
        p->passed = passed_at(p, p->side == WHITE ? passed - 8 : passed + 8, !p->side);
    }
    return kings == 2 && is_legal(p);
}

static void write_fen(const struct position *p)
{
    for (int rank = 7; rank >= 0; rank--) {
        int empty = 0;
        for (int file = 0; file < 8; file++) {
            const int on = piece_on(p, rank * 8 + file);
            if (on < 0) {
                empty++;
                continue;
            }
            if (empty > 0) {
                printf("%d", empty);
            }
            empty = 0;
            putchar(letters[p->type[on]] | (p->color[on] == BLACK ? 32 : 0));
        }
        if (empty > 0) {
            printf("%d", empty);
        }
        putchar(rank > 0 ? '/' : ' ');
    }
    char passed[3] = "-";
    if (p->passed != 0) {
        passed[0] = (char)('a' + p->passed % 8);
        passed[1] = (char)('1' + p->passed / 8);
    }
    printf("%c - %s 0 1", p->side == WHITE ? 'w' : 'b', passed);
}

static void say(const struct position *p, enum metric metric)
{
    const uint8_t value = value_of(p, metric);
    if (value == UNKNOWN || value == ILLEGAL) {
        printf("unknown");
    } else if (value == DRAW) {
        printf("draw");
    } else {
        printf("%s %d", value % 2 == 0 ? "win" : "loss",
               metric == TO_MATE ? value - 1 : (value - 1) / 2);
    }
}

/* Plays the move of that text; false: it is not legal. */
static bool play_text(struct position *p, const char *text)
{
    struct move list[MOVES_MAX];
    const unsigned count = generate(p, list);
    for (unsigned i = 0; i < count; i++) {
        const int from = p->square[list[i].piece], to = list[i].to;
        char name[6] = {(char)('a' + from % 8), (char)('1' + from / 8), (char)('a' + to % 8),
                        (char)('1' + to / 8)};
        struct position after;
        if (list[i].promoted != PAWN) {
            name[4] = (char)(letters[list[i].promoted] | 32);
        }
        if (strcmp(name, text) == 0 && play(p, list[i], &after)) {
            *p = after;
            return true;
        }
    }
    return false;
}

static void judge(char *line, enum metric metric)
{
    struct position p;
    char *moves = strchr(line, ';'), *rest = NULL;
    if (moves != NULL) {
        *moves++ = '\0';
    }
    if (!read_fen(line, &p)) {
        printf("unknown\n");
        return;
    }
    say(&p, metric);
    for (char *move = moves == NULL ? NULL : strtok_r(moves, " ", &rest); move != NULL;
         move = strtok_r(NULL, " ", &rest)) {
        if (!play_text(&p, move)) {
            printf(";illegal %s", move);
            break;
        }
        putchar(';');
        say(&p, metric);
    }
    putchar('\n');
}

static void print_after(char *line)
{
    struct position p;
    char *move = strchr(line, ';');
    if (move != NULL) {
        *move++ = '\0';
    }
    if (move == NULL || !read_fen(line, &p) || !play_text(&p, move)) {
        puts("illegal");
        return;
    }
    write_fen(&p);
    puts(in_check(&p, p.side) ? ";check" : ";quiet");
}

/* False: no such material. */
static bool draw_position(const char *material, uint64_t seed, struct position *p)
{
    unsigned color = BLACK; /* the first K makes it White */
    struct prospect f;
    *p = (struct position){.count = 2, .type = {KING, KING}, .color = {WHITE, BLACK}};
    for (const char *at = material; *at != '\0'; at++) {
        const char *letter = strchr(letters, *at);
        if (letter == NULL || (*letter != 'K' && p->count == PIECES_MAX)) {
            return false;
        }
        if (*at == 'K') {
            color = !color;
        } else {
            p->type[p->count] = (uint8_t)(letter - letters);
            p->color[p->count++] = (uint8_t)color;
        }
    }
    do {
        p->side = rng_below(&seed, 2);
        for (unsigned i = 0; i < p->count; i++) {
            p->square[i] = (uint8_t)rng_below(&seed, 64);
        }
        f = is_legal(p) ? prospect_of(p, TO_MATE, true) : (struct prospect){0};
    } while (f.moves == 0);
    return true;
}

int main(void)
{
    char line[65536], material[16];
    unsigned long long seed;
    while (fgets(line, sizeof line, stdin) != NULL) {
        line[strcspn(line, "\r\n")] = '\0';
        struct position p;
        if (strncmp(line, "after ", 6) == 0) {
            print_after(line + 6);
        } else if (strncmp(line, "zeroing ", 8) == 0) {
            judge(line + 8, TO_ZEROING);
        } else if (sscanf(line, "random %15s %llu", material, &seed) != 2) {
            judge(line, TO_MATE);
        } else if (draw_position(material, seed, &p)) {
            write_fen(&p);
            putchar('\n');
        } else {
            puts("no material");
        }
        fflush(stdout);
    }
    return 0;
}
