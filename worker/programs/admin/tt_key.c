/* abdada tt: the four operations on one key. */
#include "worker/programs/admin/tt_link.h"

#include "common/log.h"
#include "worker/programs/json.h"
#include "worker/programs/score.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { ASK_AGAIN_MS = 10000 /* or a quarter of the age limit, if that is shorter */ };

/* ---- the key ---- */

static int resolve_position(struct tt *tt)
{
    struct tt_command *c = &tt->command;
    char why[256];
    tt->search.position = c->text[0] != '\0' ? c->text : NULL;
    int status = cli_resolve(tt_program, &tt->search, &c->job);
    if (status >= 0) {
        return status;
    }
    const enum err err =
        job_set_position(&c->job, c->job.game, tt->search.position, why, sizeof why);
    if (err != ERR_OK) {
        return cli_no_position(tt_program, err, why);
    }
    cli_left_out(tt_program, NULL, 0, why);
    job_set_namespace(&c->job, 0);
    c->key = c->job.game->key(c->job.position) ^ c->job.namespace_id;
    return -1;
}

int tt_key_resolve(struct tt *tt)
{
    struct tt_command *c = &tt->command;
    bool is_named = c->text[0] != '\0' || strncmp(tt->search.game, "tree:", 5) == 0;
    if ((c->key_text != NULL) == (c->text[0] != '\0') && (c->key_text != NULL || !is_named)) {
        return options_wrong(tt_program, "%s needs a position or --key HEX, and not both", c->name);
    }
    if (c->key_text == NULL) {
        return resolve_position(tt);
    }
    const size_t length = strlen(c->key_text);
    if (length < 1 || length > 16 || strspn(c->key_text, "0123456789abcdefABCDEF") != length) {
        return options_wrong(tt_program, "--key is up to 16 digits 0-9a-f, not '%s'", c->key_text);
    }
    c->key = strtoull(c->key_text, NULL, 16);
    return -1;
}

/* ---- what is printed ---- */

/* The shard that has the key now; CLIENT_NOWHERE: none is up. */
static unsigned owner_of(const struct tt *tt)
{
    return client_owner(tt->link->session.lane.client, tt->command.key);
}

/* The move's text, or its number where it is not known to be one of the position. */
static const char *move_text(const struct tt_command *c, uint16_t move, char text[16])
{
    const struct job *job = &c->job;
    if (job->position != NULL && game_is_legal(job->game, job->position, move)) {
        job->game->format_move(job->position, move, text);
    } else {
        snprintf(text, 16, move == 0 ? "none" : "%u", move);
    }
    return text;
}

static void begin_json(const struct tt *tt, struct json *j)
{
    const struct tt_command *c = &tt->command;
    char key[17], name[LANES_NAME_MAX] = "";
    unsigned owner = owner_of(tt);
    snprintf(key, sizeof key, "%016" PRIx64, c->key);
    if (owner != CLIENT_NOWHERE) {
        lanes_shard_name(tt->link->session.lanes, owner, name);
    }
    json_begin(j, stdout);
    json_text(j, "command", c->name);
    json_text(j, "key", key);
    json_text(j, "shard", name);
}

static void json_move(const struct tt *tt, struct json *j, uint16_t move)
{
    char text[16];
    json_number(j, "move", move);
    json_text(j, "move_text", move_text(&tt->command, move, text));
}

/* "31", and "31 (+0.31)" where the game is known; "unknown" for a bound that says nothing. */
static const char *score_words(const struct tt_command *c, int score, char out[48])
{
    char words[16];
    bool is_unknown = score <= TT_SCORE_MIN || score >= TT_SCORE_MAX;
    if (is_unknown || c->job.position == NULL) {
        snprintf(out, 48, is_unknown ? "unknown" : "%d", score);
        return out;
    }
    score_text(c->job.game, score, words, sizeof words);
    snprintf(out, 48, "%d (%s)", score, words);
    return out;
}

static void print_searchers(unsigned n, int depth)
{
    printf("%u searcher%s in it at depth %d\n", n, n == 1 ? "" : "s", depth);
}

static void print_peeked(const struct tt *tt, const struct tt_peeked *p, int depth)
{
    const struct tt_command *c = &tt->command;
    char move[16], lower[48], upper[48];
    bool is_known = p->lower > TT_SCORE_MIN || p->upper < TT_SCORE_MAX || p->move != 0;
    if (tt->json) {
        struct json j;
        begin_json(tt, &j);
        json_number(&j, "depth", depth);
        json_flag(&j, "known", is_known);
        json_number(&j, "entry_depth", p->depth);
        json_number(&j, "lower", p->lower);
        json_number(&j, "upper", p->upper);
        json_move(tt, &j, p->move);
        json_number(&j, "nproc", p->nproc);
        json_end(&j);
        return;
    }
    if (!is_known) {
        printf("nothing known, ");
    } else if (p->lower == p->upper) {
        printf("depth %u, exact %s, move %s, ", p->depth, score_words(c, p->lower, lower),
               move_text(c, p->move, move));
    } else {
        printf("depth %u, at least %s, at most %s, move %s, ", p->depth,
               score_words(c, p->lower, lower), score_words(c, p->upper, upper),
               move_text(c, p->move, move));
    }
    print_searchers(p->nproc, depth);
}

static void print_answer(const struct tt *tt, const struct tt_answer *a)
{
    static const char *const verdicts[] = {"open", "cut", "busy"};
    const struct tt_command *c = &tt->command;
    char move[16], score[48];
    if (tt->json) {
        struct json j;
        begin_json(tt, &j);
        json_number(&j, "depth", c->depth);
        json_text(&j, "verdict", verdicts[a->verdict]);
        if (a->verdict == TT_CUT) {
            json_number(&j, "score", a->score);
        }
        if (a->verdict == TT_OPEN) {
            json_number(&j, "alpha", a->alpha);
            json_number(&j, "beta", a->beta);
        }
        json_move(tt, &j, a->move);
        json_number(&j, "nproc", a->nproc);
        json_end(&j);
        return;
    }
    switch (a->verdict) {
    case TT_CUT:
        printf("cut: the score is known well enough: %s", score_words(c, a->score, score));
        break;
    case TT_BUSY:
        printf("busy: somebody else searches it");
        break;
    case TT_OPEN:
        printf("open: to be searched in the window %d %d", a->alpha, a->beta);
        break;
    }
    printf(", move %s, ", move_text(c, a->move, move));
    print_searchers(a->nproc, c->depth);
    if (a->verdict == TT_OPEN && tt->is_alone && c->for_ms == 0) {
        printf(
            "You are one of them until this command ends, which is now: --for MS stays in it.\n");
    }
}

/* ---- the operations ---- */

/* Less than a searcher that asks is in the node unless it asks again. */
static uint32_t ask_again_ms(const struct tt *tt)
{
    const struct client *client = tt->link->session.lane.client;
    const unsigned owner = owner_of(tt);
    const uint32_t quarter =
        owner == CLIENT_NOWHERE ? 0 : client_shard(client, owner).inflight_age_max_ms / 4;
    return quarter > 0 && quarter < ASK_AGAIN_MS ? quarter : ASK_AGAIN_MS;
}

/* An ask that nobody repeats is forgotten at the age limit. Once somebody has finished the node
 * there is nothing to stay for: that answer is printed, and the node left (PROTOCOL.md section 3).
 */
static int stay(struct tt *tt, struct tt_ask ask)
{
    const struct tt_release leave = {ask.key, ask.depth, ask.slot};
    struct tt_answer answer;
    uint32_t left = tt->command.for_ms;
    ask.flags &= (uint8_t)~TT_EXCLUSIVE;
    while (left > 0 && !atomic_load(tt->link->stop)) {
        uint32_t step = ask_again_ms(tt);
        step = step < left ? step : left;
        tt_link_idle(tt->link, step);
        left -= step;
        if (left == 0 || atomic_load(tt->link->stop)) {
            break;
        }
        if (tt_link_ask(tt->link, &ask, &answer) != ERR_OK) {
            return log_fail(tt_program, "%s", tt->link->why);
        }
        if (answer.verdict != TT_OPEN) {
            client_release(tt->link->session.lane.client, owner_of(tt), &leave);
            print_answer(tt, &answer);
            break;
        }
    }
    return 0;
}

int tt_key_ask(struct tt *tt)
{
    const struct tt_command *c = &tt->command;
    struct tt_answer answer;
    const struct tt_ask ask = {
        .key = c->key,
        .depth = (uint8_t)c->depth,
        .alpha = (int16_t)c->alpha,
        .beta = (int16_t)c->beta,
        .flags = (uint8_t)((c->exclusive ? TT_EXCLUSIVE : 0) | (tt->search.strict ? TT_STRICT : 0)),
    };
    if (tt_link_ask(tt->link, &ask, &answer) != ERR_OK) {
        return log_fail(tt_program, "%s", tt->link->why);
    }
    print_answer(tt, &answer);
    fflush(stdout);
    return answer.verdict == TT_OPEN ? stay(tt, ask) : 0;
}

int tt_key_peek(struct tt *tt)
{
    const struct tt_command *c = &tt->command;
    struct tt_peeked found;
    struct tt_peek peek = {c->key, (uint8_t)(c->depth == TT_ABSENT ? 0 : c->depth)};
    enum err err = tt_link_peek(tt->link, &peek, 1, &found);
    if (err == ERR_OK && c->depth == TT_ABSENT && found.depth > 0) {
        peek.depth = found.depth; /* who searches it at the depth that is known */
        err = tt_link_peek(tt->link, &peek, 1, &found);
    }
    if (err != ERR_OK) {
        return log_fail(tt_program, "%s", tt->link->why);
    }
    print_peeked(tt, &found, peek.depth);
    return 0;
}

/* After it was sent: what is there now. */
static int confirm(struct tt *tt, uint64_t dropped)
{
    const struct tt_command *c = &tt->command;
    struct tt_peeked found;
    const struct tt_peek peek = {c->key, (uint8_t)c->depth};
    if (tt_link_peek(tt->link, &peek, 1, &found) != ERR_OK) {
        return log_fail(tt_program, "%s", tt->link->why);
    }
    if (tt_link_dropped(tt->link) != dropped) {
        return log_fail(tt_program, "lost, as a shard stopped answering");
    }
    print_peeked(tt, &found, c->depth);
    return 0;
}

int tt_key_store(struct tt *tt)
{
    static const char *const bounds[] = {
        [TT_LOWER] = "lower", [TT_UPPER] = "upper", [TT_EXACT] = "exact"};
    const struct tt_command *c = &tt->command;
    struct tt_store store = {.key = c->key, .depth = (uint8_t)c->depth, .score = (int16_t)c->score};
    uint64_t number = 0, dropped = tt_link_dropped(tt->link);
    for (uint8_t i = TT_LOWER; i <= TT_EXACT; i++) {
        store.bound = strcmp(c->bound, bounds[i]) == 0 ? i : store.bound;
    }
    if (store.bound == 0) {
        return options_wrong(tt_program, "--bound is exact, lower or upper, not '%s'", c->bound);
    }
    if (c->move_text != NULL && c->job.position != NULL) {
        if (c->job.game->parse_move(c->job.position, c->move_text, &store.move) != ERR_OK) {
            return options_wrong(tt_program, "--move: '%s' is no move here", c->move_text);
        }
    } else if (c->move_text != NULL) {
        if (options_unsigned(c->move_text, 0, UINT16_MAX, &number) != ERR_OK) {
            return options_wrong(tt_program, "--move: with --key a number up to 65535, not '%s'",
                                 c->move_text);
        }
        store.move = (uint16_t)number;
    }
    struct lane *lane = &tt->link->session.lane;
    if (c->job.namespace_id != tt->link->namespace_id) {
        tt->link->namespace_id = c->job.namespace_id;
        client_hello(lane->client, PROTO_CLIENT, c->job.namespace_id, lane_now(lane));
    }
    client_store(lane->client, owner_of(tt), &store);
    return confirm(tt, dropped);
}

int tt_key_release(struct tt *tt)
{
    const struct tt_release release = {tt->command.key, (uint8_t)tt->command.depth, 0};
    uint64_t dropped = tt_link_dropped(tt->link);
    client_release(tt->link->session.lane.client, owner_of(tt), &release);
    if (tt->is_alone && !tt->json) {
        printf("A command by itself is in no node; lines of one input can ask and release.\n");
    }
    return confirm(tt, dropped);
}
