#include "worker/engine/job.h"

#include "common/rng.h"
#include "worker/games/games.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The lower half, from which a worker knows what kind of search a namespace is of; the upper half
 * is for tables of a job's own. */
static uint64_t namespace_of(const struct job *job, bool is_repeatable)
{
    char text[JOB_GAME_MAX + 2];
    snprintf(text, sizeof text, "%s/1", job->game->name);
    const uint64_t game = is_repeatable ? rng_hash_text(text) : job->game->namespace_id;
    return rng_mix(rng_mix(game + (job->strict ? 1u : 0u) + (job->full ? 2u : 0u)));
}

void job_set_namespace(struct job *job, uint32_t fresh)
{
    job->namespace_id = namespace_of(job, false) ^ (uint64_t)fresh << PROTO_FRESH_SHIFT;
}

void job_set_repeatable_namespace(struct job *job, uint32_t fresh)
{
    job->namespace_id = namespace_of(job, true) ^ (uint64_t)fresh << PROTO_FRESH_SHIFT;
}

/* Results of another selection, or of another strictness, would be wrong for those who search in
 * the namespace; a job that names such a one would have us store them there. */
static bool has_own_namespace(const struct job *job)
{
    return (uint32_t)(job->namespace_id ^ namespace_of(job, false)) == 0 ||
           (uint32_t)(job->namespace_id ^ namespace_of(job, true)) == 0;
}

enum err job_set_position(struct job *job, const struct game *game, const char *text, char *why,
                          size_t why_size)
{
    void *position = calloc(1, game->position_size);
    if (position == NULL) {
        return err_say(ERR_NOMEM, why, why_size, "%s", err_text(ERR_NOMEM));
    }
    enum err err = game->parse(position, text, why, why_size);
    if (err != ERR_OK) {
        free(position);
        return err;
    }
    free(job->position);
    job->game = game;
    job->position = position;
    game->format(position, job->text);
    return ERR_OK;
}

void job_free(struct job *job)
{
    free(job->position);
    job->position = NULL;
}

enum err job_copy(struct job *out, const struct job *job)
{
    void *position = malloc(job->game->position_size);
    if (position == NULL) {
        return ERR_NOMEM;
    }
    memcpy(position, job->position, job->game->position_size);
    *out = *job;
    out->position = position;
    return ERR_OK;
}

unsigned job_last_iteration(const struct job *job)
{
    unsigned left =
        job->game->depth_left != NULL ? job->game->depth_left(job->position) : job->depth;
    left = left > 0 ? left : 1;
    CHECK_THAT(job->depth > 0 && job->depth <= SEARCH_DEPTH_MAX, "a job has a depth");
    return job->depth < left ? job->depth : left;
}

unsigned job_make_line(const struct job *job, const struct search_line *line, unsigned count)
{
    unsigned made = 0;
    CHECK_THAT(count <= SEARCH_PV_MAX, "a line has room for its moves");
    while (made < count && game_is_legal(job->game, job->position, line->move[made])) {
        job->game->make(job->position, line->move[made++]);
    }
    return made;
}

void job_unmake_line(const struct job *job, const struct search_line *line, unsigned made)
{
    while (made > 0) {
        job->game->unmake(job->position, line->move[--made]);
    }
}

void job_line_text(const struct job *job, const struct search_line *line, char *text, size_t size)
{
    const struct game *game = job->game;
    size_t used = 0;
    unsigned made = 0;
    text[0] = '\0';
    for (; made < line->length; made++) {
        char move[GAME_MOVE_TEXT_MAX];
        game->format_move(job->position, line->move[made], move);
        size_t length = strlen(move) + (made > 0);
        if (used + length >= size) {
            break;
        }
        used += (size_t)snprintf(text + used, size - used, "%s%s", made > 0 ? " " : "", move);
        game->make(job->position, line->move[made]);
    }
    job_unmake_line(job, line, made);
}

bool job_is_for_engines(const struct proto_job *message)
{
    const size_t length = strlen(JOB_ENGINE_PREFIX);
    return message->game.length >= length &&
           memcmp(message->game.at, JOB_ENGINE_PREFIX, length) == 0;
}

bool job_offer_set(struct job_offer *out, const struct proto_job *message)
{
    out->wire = *message;
    return proto_text_copy(message->game, out->game, sizeof out->game) &&
           proto_text_copy(message->algorithm, out->algorithm, sizeof out->algorithm) &&
           proto_text_copy(message->position, out->position, sizeof out->position);
}

void job_report_set(struct proto_job_report *report, const struct counters *c)
{
    const uint64_t most = (UINT64_C(1) << PROTO_COUNTER_BITS) - 1;
#define X(name, ...) report->name = c->name < most ? c->name : most;
    COUNTERS_REPORTED(X)
    COUNTERS_OF_TALK(X)
#undef X
}

struct counters job_report_counters(const struct proto_job_report *report)
{
    return (struct counters){
#define X(name, ...) .name = report->name,
        COUNTERS_REPORTED(X) COUNTERS_OF_TALK(X)
#undef X
    };
}

struct proto_job job_to_wire(const struct job *job)
{
    return (struct proto_job){
        .job = job->id,
        .game = proto_text_of(job->game->name),
        .position = proto_text_of(job->text),
        .evaluation = job->game->namespace_id,
        .namespace_id = job->namespace_id,
        .algorithm = proto_text_of(job->algorithm->name),
        .flags = (job->strict ? PROTO_JOB_STRICT : 0) | (job->full ? PROTO_JOB_FULL : 0) |
                 (job->waits ? PROTO_JOB_WAITS : 0) | (job->has_bag ? PROTO_JOB_BAG : 0) |
                 (job->keeps_endings ? PROTO_JOB_KEEPS_ENDINGS : 0),
        .depth = job->depth,
        .remote_depth = job->remote_depth,
        .time_ms = job->time_ms,
        .nodes = job->nodes,
    };
}

enum err job_from_offer(const struct job_offer *offer, struct job *out, char *why, size_t why_size)
{
    const struct proto_job *message = &offer->wire;
    struct job job = {.id = message->job, .algorithm = algorithm_by_name(offer->algorithm)};
    const struct game *game = games_by_name(offer->game);
    if (game == NULL || job.algorithm == NULL) {
        snprintf(why, why_size, "unknown %s", game == NULL ? "game" : "algorithm");
        return ERR_ABSENT;
    }
    bool any = message->evaluation == PROTO_ANY_EVALUATION;
    if (!any && message->evaluation != game->namespace_id) {
        return err_say(ERR_ILLEGAL, why, why_size,
                       "other sources of game or search: its evaluation is %08x, ours %08x",
                       (uint32_t)message->evaluation, (uint32_t)game->namespace_id);
    }
    job.has_bag = message->flags & PROTO_JOB_BAG;
    if (job.has_bag && (any || algorithm_needs_peers(job.algorithm))) {
        snprintf(why, why_size, "its letters are of another build, or of another algorithm");
        return ERR_ILLEGAL;
    }
    if (any && algorithm_needs_peers(job.algorithm)) { /* builds may differ, and so their letters */
        snprintf(why, why_size, "no searcher owns its root, which its algorithm needs");
        return ERR_ILLEGAL;
    }
    if (message->depth > SEARCH_DEPTH_MAX) {
        return err_say(ERR_RANGE, why, why_size, "%s", err_text(ERR_RANGE));
    }
    if ((message->flags & PROTO_JOB_STRICT) && (message->flags & PROTO_JOB_FULL)) {
        return err_say(ERR_RANGE, why, why_size, "strict and full exclude each other");
    }
    job.game = game;
    job.strict = message->flags & PROTO_JOB_STRICT;
    job.full = message->flags & PROTO_JOB_FULL;
    job.waits = message->flags & PROTO_JOB_WAITS;
    job.keeps_endings = message->flags & PROTO_JOB_KEEPS_ENDINGS;
    job.depth = message->depth == PROTO_NO_LIMIT ? SEARCH_DEPTH_MAX : message->depth;
    job.remote_depth = message->remote_depth;
    job.time_ms = message->time_ms;
    job.nodes = message->nodes;
    job.namespace_id = message->namespace_id;
    if (any && (uint32_t)message->namespace_id == 0) {
        job_set_namespace(&job, (uint32_t)(message->namespace_id >> PROTO_FRESH_SHIFT));
    }
    if (!has_own_namespace(&job)) {
        return err_say(ERR_ILLEGAL, why, why_size, "its namespace is of another kind of search");
    }
    char left_out[128];
    enum err err = job_set_position(&job, game, offer->position, left_out, sizeof left_out);
    if (err != ERR_OK || left_out[0] != '\0') { /* its poster would not see what we left out */
        job_free(&job);
        snprintf(why, why_size, "%s%s", err == ERR_OK ? "correct its position: " : "", left_out);
        return err == ERR_OK ? ERR_ILLEGAL : err;
    }
    *out = job;
    return ERR_OK;
}
