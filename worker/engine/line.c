#include "worker/engine/line.h"

#include "common/clock.h"

#include <stdlib.h>
#include <string.h>

enum { HINTS = SEARCH_PV_MAX, FEW = 1 << 12, MANY = 1 << 16, CLOCK_NODES = 64, SLICE_US = 50000 };

struct prover {
    const struct job *job;
    const struct game *game;
    void *position;
    unsigned made; /* moves, since the root */
    struct embedded *table;
    struct line_limit *limit; /* no nodes left: it gives up */
    uint64_t slice_us; /* the end of the slice */
    unsigned hints;
    struct {
        uint64_t key;
        uint16_t move;
    } hint[HINTS]; /* of the line as it came */
    struct known {
        uint64_t key;
        uint16_t move; /* best */
        uint8_t plies; /* to mate, 0 if unknown */
        uint8_t failed; /* plies within which no mate exists */
    } * known; /* `slots` of them */
    unsigned slots;
};

/* ---- lines ---- */

void line_cut(const struct job *job, struct search_line *line)
{
    unsigned made = 0;
    while (job->game->ended != NULL && made < line->length &&
           game_is_legal(job->game, job->position, line->move[made])) {
        job->game->make(job->position, line->move[made++]);
        if (job->game->ended(job->position)) {
            line->length = (uint16_t)made;
        }
    }
    job_unmake_line(job, line, made);
}

/* 0: the score is no mate. */
static unsigned plies_to_mate(const struct job *job, int score)
{
    const int distance = GAME_MATE - (score < 0 ? -score : score);
    const bool is_mate = job->game->score_kind == GAME_CENTIPAWNS && job->game->check != NULL &&
                         distance < GAME_MATE - GAME_MATE_MIN;
    return is_mate ? (unsigned)distance : 0;
}

static bool is_mated(const struct game *game, const void *position)
{
    struct game_move list[GAME_MOVES_MAX];
    return game->check(position) && game->generate(position, list) == 0;
}

bool line_is_mate(const struct job *job, const struct search_result *r)
{
    const unsigned plies = plies_to_mate(job, r->score);
    if (plies == 0 || r->pv.length != plies || r->pv.move[0] != r->move) {
        return false;
    }
    const unsigned made = job_make_line(job, &r->pv, plies);
    const bool ends_in_mate = made == plies && is_mated(job->game, job->position);
    job_unmake_line(job, &r->pv, made);
    return ends_in_mate;
}

/* ---- a mate that is looked for ---- */

static void make(struct prover *p, uint16_t move)
{
    p->game->make(p->position, move);
    p->made++;
}

static void unmake(struct prover *p, uint16_t move)
{
    p->game->unmake(p->position, move);
    p->made--;
}

static uint64_t key_of(const struct prover *p)
{
    const struct game *game = p->game;
    const bool counts = !p->job->strict && game->counted_key != NULL;
    return (counts ? game->counted_key : game->key)(p->position) ^ p->job->namespace_id;
}

static bool is_drawn(const struct prover *p)
{
    return !p->job->strict && p->game->drawn != NULL && p->game->drawn(p->position, p->made) != 0;
}

static bool is_over_budget(struct prover *p)
{
    struct line_limit *limit = p->limit;
    if (limit->nodes > 0 && --limit->nodes % CLOCK_NODES == 0) {
        const uint64_t now = clock_us();
        if (limit->serve != NULL && now >= p->slice_us) {
            limit->serve(limit->context);
            p->slice_us = clock_us() + SLICE_US;
        }
        if ((limit->until_us != 0 && now >= limit->until_us) ||
            (limit->stop != NULL && atomic_load_explicit(limit->stop, memory_order_relaxed))) {
            limit->nodes = 0;
        }
    }
    return limit->nodes == 0;
}

/* The plies in which the side to move mates by the table's word, at most `plies`; 0: it has none.
 */
static unsigned known_mate(struct prover *p, unsigned plies)
{
    const int16_t least = (int16_t)(GAME_MATE - (int)plies);
    const struct tt_ask ask = {.key = key_of(p), .alpha = TT_SCORE_MIN, .beta = least};
    struct tt_answer answer = {.verdict = TT_OPEN};
    if (!embedded_find(p->table, &ask, &answer) || answer.score < least ||
        answer.score >= GAME_MATE) {
        return 0;
    }
    return (unsigned)(GAME_MATE - answer.score);
}

/* What this search itself knows of a position. */
static struct known *known_of(struct prover *p, uint64_t key)
{
    struct known *known = &p->known[key % p->slots];
    if (known->key != key) {
        *known = (struct known){.key = key};
    }
    return known;
}

static uint16_t likely_move(struct prover *p)
{
    const uint64_t key = key_of(p);
    if (known_of(p, key)->plies > 0) {
        return known_of(p, key)->move;
    }
    const struct tt_ask ask = {.key = key, .alpha = TT_SCORE_MIN, .beta = TT_SCORE_MAX};
    struct tt_answer answer = {.move = 0};
    for (unsigned i = 0; i < p->hints; i++) {
        if (p->hint[i].key == key) {
            return p->hint[i].move;
        }
    }
    (void)embedded_find(p->table, &ask, &answer);
    return answer.move;
}

static unsigned attack(struct prover *p, unsigned plies, struct search_line *line, uint16_t only);

static void set_line(struct search_line *line, uint16_t move, const struct search_line *rest)
{
    if (line != NULL) {
        line->length = (uint16_t)(rest->length + 1);
        line->move[0] = move;
        memcpy(&line->move[1], rest->move, rest->length * sizeof rest->move[0]);
    }
}

/* Short mates are found at once, and say where the others are. */
static unsigned shortest(struct prover *p, unsigned plies)
{
    unsigned found = 0;
    for (unsigned most = 1; most <= plies && found == 0; most += 2) {
        found = attack(p, most, NULL, 0);
    }
    return found;
}

/* The side to move is mated in how many plies, at most `plies`, by the reply that lasts longest,
 * whose line is wanted where `line` is not NULL; 0: not shown. */
static unsigned defend(struct prover *p, unsigned plies, struct search_line *line)
{
    const struct game *game = p->game;
    struct game_move list[GAME_MOVES_MAX];
    unsigned distance[GAME_MOVES_MAX], longest = 0;
    if (is_drawn(p)) {
        return 0;
    }
    const unsigned count = game->generate(p->position, list);
    for (unsigned i = 0; i < count; i++) {
        make(p, list[i].move);
        distance[i] = is_drawn(p) ? 0 : shortest(p, plies - 1);
        unmake(p, list[i].move);
        if (distance[i] == 0) {
            return 0;
        }
        longest = distance[i] > longest ? distance[i] : longest;
    }
    if (line == NULL || count == 0) {
        return count > 0 ? longest + 1 : 0;
    }
    /* A line may turn out shorter than what was known of its reply: then the next one counts. */
    unsigned shown = 0;
    for (;;) {
        struct search_line rest = {.length = 0};
        unsigned at = 0;
        for (unsigned i = 1; i < count; i++) {
            at = distance[i] > distance[at] ? i : at;
        }
        if (distance[at] <= shown) {
            return shown + 1;
        }
        make(p, list[at].move);
        const unsigned found = attack(p, plies - 1, &rest, 0);
        unmake(p, list[at].move);
        if (found == 0) {
            return 0;
        }
        distance[at] = 0;
        if (found > shown) {
            shown = found;
            set_line(line, list[at].move, &rest);
        }
    }
}

/* By one move, which then is the line. */
static unsigned defend_after(struct prover *p, uint16_t move, unsigned plies,
                             struct search_line *line)
{
    struct search_line rest = {.length = 0};
    make(p, move);
    const unsigned found = defend(p, plies - 1, line != NULL ? &rest : NULL);
    unmake(p, move);
    if (found == 0) {
        return 0;
    }
    set_line(line, move, &rest);
    return found + 1;
}

/* The side to move mates in how many plies, at most `plies`, with move `only` if that is not 0; 0:
 * not shown. Where no line is wanted, the table's word counts. */
static unsigned attack(struct prover *p, unsigned plies, struct search_line *line, uint16_t only)
{
    static const struct search_line none = {.length = 0};
    const struct game *game = p->game;
    struct game_move list[GAME_MOVES_MAX];
    bool checks[GAME_MOVES_MAX];
    const uint64_t key = key_of(p);
    const struct known here = *known_of(p, key);
    const unsigned known = line != NULL                            ? 0
                           : here.plies > 0 && here.plies <= plies ? here.plies
                                                                   : known_mate(p, plies);
    if (known > 0) {
        return known;
    }
    if (is_over_budget(p) || here.failed >= plies) {
        return 0;
    }
    const unsigned count = game->generate(p->position, list);
    for (unsigned i = 0; i < count; i++) {
        make(p, list[i].move);
        checks[i] = game->check(p->position);
        const bool mates = checks[i] && is_mated(game, p->position);
        unmake(p, list[i].move);
        if (mates && (only == 0 || only == list[i].move)) {
            set_line(line, list[i].move, &none);
            return 1;
        }
    }
    const uint16_t likely = only != 0 ? only : likely_move(p);
    for (unsigned pass = 0; pass < 3 && plies >= 3; pass++) { /* the likely move, checks, others */
        for (unsigned i = 0; i < count; i++) {
            const unsigned wanted = list[i].move == likely ? 0 : checks[i] ? 1 : 2;
            if (wanted != pass || (only != 0 && list[i].move != only)) {
                continue;
            }
            const unsigned found = defend_after(p, list[i].move, plies, line);
            if (found > 0) {
                if (only == 0) {
                    known_of(p, key)->move = list[i].move;
                    known_of(p, key)->plies = (uint8_t)found;
                }
                return found;
            }
        }
    }
    if (p->limit->nodes > 0 && only == 0) {
        known_of(p, key)->failed = (uint8_t)plies;
    }
    return 0;
}

/* The moves of the side that mates, by positions, as the line has them. */
static void note_hints(struct prover *p, const struct search_line *line, bool is_attacker)
{
    unsigned made = 0;
    for (; made < line->length && game_is_legal(p->game, p->position, line->move[made]); made++) {
        if (is_attacker == (made % 2 == 0) && p->hints < HINTS) {
            p->hint[p->hints].key = key_of(p);
            p->hint[p->hints++].move = line->move[made];
        }
        p->game->make(p->position, line->move[made]);
    }
    job_unmake_line(p->job, line, made);
}

/* Returns true when the score is no mate, or its line is complete. */
static bool complete(const struct job *job, struct embedded *table, struct line_limit *limit,
                     struct search_result *r)
{
    const unsigned plies = plies_to_mate(job, r->score);
    if (plies == 0 || line_is_mate(job, r)) {
        return true;
    }
    if (plies > SEARCH_PV_MAX || r->move == 0) {
        return false;
    }
    struct prover p = {.job = job,
                       .game = job->game,
                       .position = job->position,
                       .table = table,
                       .limit = limit,
                       .slice_us = clock_us() + SLICE_US};
    const bool is_attacker = r->score > 0;
    const uint64_t key = p.game->key(p.position);
    struct search_line line = {.length = 0}, rest = {.length = 0};
    unsigned found;
    p.slots = limit->nodes > MANY ? MANY : FEW;
    p.known = calloc(p.slots, sizeof *p.known);
    if (p.known == NULL) {
        return false;
    }
    note_hints(&p, &r->pv, is_attacker);
    if (is_attacker) {
        found = attack(&p, plies, &line, r->move);
    } else {
        make(&p, r->move);
        found = is_drawn(&p) || plies < 2 ? 0 : attack(&p, plies - 1, &rest, 0);
        unmake(&p, r->move);
        set_line(&line, r->move, &rest);
        found += found > 0;
        if (found > 0 && found < plies && defend(&p, plies, NULL) != found) {
            found = 0; /* another reply lasts longer, or may */
        }
    }
    free(p.known);
    CHECK_THAT(p.game->key(p.position) == key, "a search for a mate leaves the position as it was");
    if (found == 0 || (job->strict && found != plies)) { /* a strict score is not to be touched */
        return false;
    }
    r->pv = line;
    r->score = is_attacker ? GAME_MATE - (int)found : (int)found - GAME_MATE;
    return true;
}

bool line_finish(const struct job *job, struct embedded *table, struct line_limit *limit,
                 struct search_result *r)
{
    const int bare = GAME_MATE_MIN - abs(r->score); /* plies to a mate that could not be shown */
    line_cut(job, &r->pv);
    if (job->game->score_kind == GAME_CENTIPAWNS && job->game->check != NULL && bare > 0 &&
        bare < GAME_MATE - GAME_MATE_MIN) {
        r->score = r->score > 0 ? GAME_MATE - bare : bare - GAME_MATE;
    }
    if (complete(job, table, limit, r) || job->strict) {
        return true;
    }
    const int distance = GAME_MATE - abs(r->score);
    r->score = r->score < 0 ? distance - GAME_MATE_MIN : GAME_MATE_MIN - distance;
    return false;
}
