/* Values of chess endings of three and four pieces, found backwards from the mates by a program
 * that shares nothing with the search: it has its own moves, its own boards, and no evaluation.
 * Without pawns on both sides, so without en passant; without castling and without the rule of
 * fifty moves.
 *
 * Reads lines and answers each by a line:
 *     FEN, or FEN;MOVE MOVE ...    what each position on the way is worth to the side to move: `win
 * 13`, `draw`, `loss 12` (plies to mate, by best play), `illegal MOVE`, or `unknown` after FEN;MOVE
 * the FEN, and `check` or `quiet` random KRKP SEED             a random position of that material
 * that is not over
 *
 * A table is made when it is first asked for: some seconds, and 8 or 16 MiB. */
#include "common/rng.h"
#include "tests/system/endings_board.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TABLES_MAX = 64, ILLEGAL = 255, UNKNOWN = 254, DRAW = 0 };
static const char letters[] = "PNBRQK";

/* A position's value: DRAW, ILLEGAL, or 1 + plies to mate: odd plies are a win of the side to move.
 */
struct table {
    struct position model; /* types and colors */
    bool has_pawns;
    size_t size;
    uint8_t *value;
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

/* The same position in the form in which tables have it: the stronger side is White, pieces in one
 * order, White's king on the files a to d and, without pawns, on the ranks 1 to 4. */
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
    for (unsigned i = 2; i < c.count; i++) {
        has_pawns = has_pawns || c.type[i] == PAWN;
    }
    const unsigned mirror =
        (c.square[0] % 8 > 3 ? 7 : 0) | (!has_pawns && c.square[0] / 8 > 3 ? 56 : 0);
    for (unsigned i = 0; i < c.count; i++) {
        c.square[i] ^= (uint8_t)mirror;
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

static struct table *table_of(const struct position *c);

static uint8_t value_of(const struct position *p)
{
    const struct position c = canonical(p);
    const struct table *t = table_of(&c);
    return t == NULL ? DRAW : t->value[index_of(t, &c)]; /* none: bare kings */
}

/* What the moves of a position lead to. */
struct prospect {
    unsigned moves, unknown;
    unsigned fastest; /* plies of the fastest known win; 0: none */
    unsigned slowest; /* plies until the slowest known loss */
    bool is_safe; /* a move is known not to lose */
};

/* A move that stays in the table counts as unknown while it leads to no value. `whole`: such moves
 * are looked at, too, until one is found that does not lose; else one of them is enough. */
static struct prospect prospect_of(const struct position *p, bool whole)
{
    struct move list[MOVES_MAX];
    struct prospect f = {0};
    const unsigned count = generate(p, list);
    for (unsigned i = 0; i < count; i++) {
        struct position after;
        const bool stays = list[i].promoted == PAWN && piece_on(p, list[i].to) < 0;
        if ((stays && !whole && f.unknown > 0) || !play(p, list[i], &after)) {
            continue;
        }
        f.moves++;
        const uint8_t value = stays && !whole ? DRAW : value_of(&after);
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
        } else if (value % 2 == 1) { /* even plies: the other side has lost */
            f.fastest = f.fastest == 0 || value < f.fastest ? value : f.fastest;
        } else {
            f.slowest = value > f.slowest ? value : f.slowest;
        }
    }
    return f;
}

/* Positions one move back, of the other side, by a move that takes and promotes nothing. */
static unsigned before(const struct position *p, struct position *list)
{
    unsigned count = 0;
    const unsigned mover = !p->side;
    for (unsigned i = 0; i < p->count; i++) {
        uint8_t from[32];
        unsigned found = 0;
        if (p->color[i] != mover) {
            continue;
        }
        if (p->type[i] == PAWN) {
            const int back = mover == WHITE ? -8 : 8, at = p->square[i];
            if (at + back >= 8 && at + back < 56 && piece_on(p, at + back) < 0) {
                from[found++] = (uint8_t)(at + back);
                if (at / 8 == (mover == WHITE ? 3 : 4) && piece_on(p, at + 2 * back) < 0) {
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

/* Layer by layer: after layer k all mates in at most k plies are known. `later` has wins by leaving
 * the table. */
static void fill(struct table *t)
{
    uint8_t *later = calloc(t->size, 1);
    if (later == NULL) {
        fprintf(stderr, "endings: out of memory\n");
        exit(1);
    }
    unsigned last = 1;
    for (size_t i = 0; i < t->size; i++) {
        const struct position p = position_at(t, i);
        if (!is_legal(&p)) {
            t->value[i] = ILLEGAL;
            continue;
        }
        const struct prospect f = prospect_of(&p, false);
        if (f.moves == 0) {
            t->value[i] = in_check(&p, p.side) ? 1 : DRAW;
        } else if (f.fastest > 0) {
            later[i] = (uint8_t)(f.fastest + 1);
            last = later[i] > last ? later[i] : last;
        } else if (f.unknown == 0 && !f.is_safe) {
            t->value[i] = (uint8_t)(f.slowest + 1);
            last = t->value[i] > last ? t->value[i] : last;
        }
    }
    for (unsigned value = 1; value <= last; value++) { /* 1 + plies */
        for (size_t i = 0; i < t->size; i++) {
            if (later[i] == value && t->value[i] == DRAW) {
                t->value[i] = (uint8_t)value;
            }
            if (t->value[i] != value) {
                continue;
            }
            struct position list[MOVES_MAX];
            const struct position p = position_at(t, i);
            const unsigned count = before(&p, list);
            for (unsigned k = 0; k < count; k++) {
                const struct position c = canonical(&list[k]);
                uint8_t *known = &t->value[index_of(t, &c)];
                if (*known != DRAW) { /* known, or illegal */
                    continue;
                }
                unsigned becomes = value + 1;
                if (value % 2 == 0) { /* p is won: its predecessor may be lost */
                    const struct prospect f = prospect_of(&c, true);
                    becomes = f.fastest > 0 || f.unknown > 0 || f.is_safe ? DRAW : f.slowest + 1;
                }
                if (becomes >= UNKNOWN) {
                    fprintf(stderr, "endings: a mate takes too long\n");
                    exit(1);
                }
                if (becomes != DRAW) {
                    *known = (uint8_t)becomes;
                    last = becomes > last ? becomes : last;
                }
            }
        }
    }
    free(later);
}

static struct table *table_of(const struct position *c)
{
    if (c->count == 2) {
        return NULL;
    }
    for (unsigned i = 0; i < table_count; i++) {
        const struct position *m = &tables[i].model;
        if (m->count == c->count && memcmp(m->type, c->type, c->count) == 0 &&
            memcmp(m->color, c->color, c->count) == 0) {
            return &tables[i];
        }
    }
    struct table t = {.model = *c};
    for (unsigned i = 2; i < c->count; i++) {
        t.has_pawns = t.has_pawns || c->type[i] == PAWN;
    }
    t.size = 2 * (t.has_pawns ? 32 : 16);
    for (unsigned i = 1; i < c->count; i++) {
        t.size *= 64;
    }
    t.value = calloc(t.size, 1);
    if (t.value == NULL || table_count == TABLES_MAX) {
        fprintf(stderr, "endings: no room for another table\n");
        exit(1);
    }
    /* The tables that captures and promotions lead to come first: prospect_of() must not meet a
     * half-made one. */
    for (unsigned i = 2; i < c->count; i++) {
        struct position less = *c;
        for (unsigned k = i; k + 1 < less.count; k++) {
            less.type[k] = less.type[k + 1];
            less.color[k] = less.color[k + 1];
        }
        less.count--;
        less = canonical(&less);
        table_of(&less);
        for (uint8_t type = KNIGHT; c->type[i] == PAWN && type <= QUEEN; type++) {
            struct position more = *c;
            more.type[i] = type;
            more = canonical(&more);
            table_of(&more);
        }
    }
    struct table *made = &tables[table_count++]; /* fill() looks into it */
    *made = t;
    fill(made);
    return made;
}

/* ---- what is read and said ---- */

static bool has_table(const struct position *p)
{
    bool pawns[2] = {false, false};
    for (unsigned i = 0; i < p->count; i++) {
        pawns[p->color[i]] = pawns[p->color[i]] || p->type[i] == PAWN;
    }
    return p->count >= 2 && p->count <= PIECES_MAX && !(pawns[WHITE] && pawns[BLACK]);
}

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
    printf("%c - - 0 1", p->side == WHITE ? 'w' : 'b');
}

static void say(const struct position *p)
{
    const uint8_t value = has_table(p) ? value_of(p) : UNKNOWN;
    if (value == UNKNOWN || value == ILLEGAL) {
        printf("unknown");
    } else if (value == DRAW) {
        printf("draw");
    } else {
        printf("%s %d", value % 2 == 0 ? "win" : "loss", value - 1);
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

static void judge(char *line)
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
    say(&p);
    for (char *move = moves == NULL ? NULL : strtok_r(moves, " ", &rest); move != NULL;
         move = strtok_r(NULL, " ", &rest)) {
        if (!play_text(&p, move)) {
            printf(";illegal %s", move);
            break;
        }
        putchar(';');
        say(&p);
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
    if (!has_table(p)) {
        return false;
    }
    do {
        p->side = rng_below(&seed, 2);
        for (unsigned i = 0; i < p->count; i++) {
            p->square[i] = (uint8_t)rng_below(&seed, 64);
        }
        f = is_legal(p) ? prospect_of(p, true) : (struct prospect){0};
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
        } else if (sscanf(line, "random %15s %llu", material, &seed) != 2) {
            judge(line);
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
