#include "worker/engine/line.h"

#include "common/clock.h"

#include <string.h>

enum { HINTS = SEARCH_PV_MAX, FAILED = 1024, CLOCK_NODES = 64 };

struct prover {
    const struct job *job;
    const struct game *game;
    void *position;
    struct embedded *table;
    uint64_t until_us;
    unsigned left; /* nodes; 0: it gives up */
    unsigned hints;
    struct {
        uint64_t key;
        uint16_t move;
    } hint[HINTS]; /* of the line as it came */
    struct {
        uint64_t key;
        unsigned plies; /* in so few there is no mate */
    } failed[FAILED];
};

/* ---- lines ---- */

static unsigned make_line(const struct job *job, const struct search_line *line, unsigned count)
{
    unsigned made = 0;
    while (made < count && game_is_legal(job->game, job->position, line->move[made])) {
        job->game->make(job->position, line->move[made++]);
    }
    return made;
}

static void unmake_line(const struct job *job, const struct search_line *line, unsigned made)
{
    while (made > 0) {
        job->game->unmake(job->position, line->move[--made]);
    }
}

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
    unmake_line(job, line, made);
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
    const unsigned made = make_line(job, &r->pv, plies);
    const bool ends_in_mate = made == plies && is_mated(job->game, job->position);
    unmake_line(job, &r->pv, made);
    return ends_in_mate;
}

/* ---- a mate that is looked for ---- */

static uint64_t key_of(const struct prover *p)
{
    const struct game *game = p->game;
    const bool counts = !p->job->strict && game->counted_key != NULL;
    return (counts ? game->counted_key : game->key)(p->position) ^ p->job->namespace_id;
}

static bool is_drawn(const struct prover *p)
{
    return !p->job->strict && p->game->drawn != NULL && p->game->drawn(p->position) != 0;
}

static bool is_over_budget(struct prover *p)
{
    if (p->left > 0) {
        p->left--;
    }
    if (p->left % CLOCK_NODES == 0 && p->until_us != 0 && clock_us() >= p->until_us) {
        p->left = 0;
    }
    return p->left == 0;
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

static uint16_t likely_move(struct prover *p)
{
    const uint64_t key = key_of(p);
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
        game->make(p->position, list[i].move);
        distance[i] = is_drawn(p) ? 0 : attack(p, plies - 1, NULL, 0);
        game->unmake(p->position, list[i].move);
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
        game->make(p->position, list[at].move);
        const unsigned found = attack(p, plies - 1, &rest, 0);
        game->unmake(p->position, list[at].move);
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
    p->game->make(p->position, move);
    const unsigned found = defend(p, plies - 1, line != NULL ? &rest : NULL);
    p->game->unmake(p->position, move);
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
    const unsigned known = line == NULL ? known_mate(p, plies) : 0;
    if (known > 0) {
        return known;
    }
    if (is_over_budget(p) ||
        (p->failed[key % FAILED].key == key && p->failed[key % FAILED].plies >= plies)) {
        return 0;
    }
    const unsigned count = game->generate(p->position, list);
    for (unsigned i = 0; i < count; i++) {
        game->make(p->position, list[i].move);
        checks[i] = game->check(p->position);
        const bool mates = checks[i] && is_mated(game, p->position);
        game->unmake(p->position, list[i].move);
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
                return found;
            }
        }
    }
    if (p->left > 0 && only == 0) {
        p->failed[key % FAILED].key = key;
        p->failed[key % FAILED].plies = plies;
    }
    return 0;
}

/* The moves of the side that mates, by positions, as the line has them. */
static void take_hints(struct prover *p, const struct search_line *line, bool is_attacker)
{
    unsigned made = 0;
    for (; made < line->length && game_is_legal(p->game, p->position, line->move[made]); made++) {
        if (is_attacker == (made % 2 == 0) && p->hints < HINTS) {
            p->hint[p->hints].key = key_of(p);
            p->hint[p->hints++].move = line->move[made];
        }
        p->game->make(p->position, line->move[made]);
    }
    unmake_line(p->job, line, made);
}

bool line_complete(const struct job *job, struct embedded *table, uint64_t until_us,
                   struct search_result *r)
{
    struct prover p = {.job = job,
                       .game = job->game,
                       .position = job->position,
                       .table = table,
                       .until_us = until_us,
                       .left = LINE_NODES_MAX};
    const unsigned plies = plies_to_mate(job, r->score);
    const bool is_attacker = r->score > 0;
    struct search_line line = {.length = 0}, rest = {.length = 0};
    unsigned found;
    if (plies == 0 || line_is_mate(job, r)) {
        return true;
    }
    if (plies > SEARCH_PV_MAX || r->move == 0) {
        return false;
    }
    take_hints(&p, &r->pv, is_attacker);
    if (is_attacker) {
        found = attack(&p, plies, &line, r->move);
    } else {
        p.game->make(p.position, r->move);
        found = is_drawn(&p) || plies < 2 ? 0 : attack(&p, plies - 1, &rest, 0);
        p.game->unmake(p.position, r->move);
        set_line(&line, r->move, &rest);
        found += found > 0;
    }
    if (found == 0 || (job->strict && found != plies)) { /* a strict score is not to be touched */
        return false;
    }
    r->pv = line;
    r->score = is_attacker ? GAME_MATE - (int)found : (int)found - GAME_MATE;
    return true;
}

void line_finish(const struct job *job, struct embedded *table, uint64_t until_us,
                 struct search_result *r)
{
    line_cut(job, &r->pv);
    if (!line_complete(job, table, until_us, r) && !job->strict) {
        const int distance = GAME_MATE - (r->score < 0 ? -r->score : r->score);
        r->score = r->score < 0 ? distance - GAME_MATE_MIN : GAME_MATE_MIN - distance;
    }
}
