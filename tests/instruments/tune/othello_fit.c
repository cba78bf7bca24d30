/* othello_fit: fits the weights of worker/games/othello/patterns.h to samples (othello_sample.h).
 *
 *   othello_fit [--rounds N] [--prior N] [--threads N] --out FILE SAMPLES...
 *
 * Least squares with an L2 penalty on the difference to a prior, by conjugate gradients with a
 * diagonal preconditioner (Hestenes, Stiefel 1952; few rounds are a second regularisation). First
 * one set of weights is fitted to boards of all stages, with nothing as its prior. It is the prior
 * of each stage, whose samples are those of the stage and of some empty squares around it: what is
 * rare in a stage has the weight that it has in the game. Symmetric configurations of a place are
 * one weight. A stage is fitted by one thread, so the file depends on the samples and options
 * alone.
 *
 * Prints the mean absolute and the root mean square error by stage, in discs, of the weights as
 * they are written, on the games of which one in HELD_BACK is kept out of the fit. */
#include "common/options.h"
#include "tests/instruments/tune/othello_sample.h"
#include "worker/games/othello/patterns.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    HELD_BACK = 25,
    THREADS_MAX = 64,
    FEATURES = OTHELLO_PLACES + 3, /* of a board */
    /* The weights: those of symmetric configurations once, then the others. */
    EMPTIES_AT = OTHELLO_CONFIGURATIONS,
    MOVES_AT = EMPTIES_AT + OTHELLO_SQUARES,
    WEIGHTS = MOVES_AT + 2 * OTHELLO_MOVES_COUNTED,
    COMMON_MAX = 1000000, /* samples of the fit to all stages */
    STAGE_MAX = 2500000,
};

struct fit {
    struct othello_sample *sample;
    size_t samples;
    uint32_t *class_of; /* of a configuration: the least of those symmetric to it */
    uint32_t rounds, prior, around;
    float *common; /* WEIGHTS */
    float *stage[OTHELLO_STAGES];
    atomic_uint next;
};

/* ---- the weights that a board has ---- */

static uint32_t symmetric_number(const uint8_t *digit, const uint8_t *order, unsigned squares)
{
    uint32_t number = 0;
    for (unsigned i = squares; i-- > 0;) {
        number = 3 * number + digit[order[i]];
    }
    return number;
}

/* The orders in which a symmetry of the board leaves the squares of the pattern its own. */
static unsigned orders_of(const struct othello_pattern *pattern,
                          uint8_t order[OTHELLO_SYMMETRIES][OTHELLO_PATTERN_SQUARES])
{
    unsigned count = 0;
    for (unsigned symmetry = 0; symmetry < OTHELLO_SYMMETRIES; symmetry++) {
        unsigned found = 0;
        for (unsigned i = 0; i < pattern->squares; i++) {
            const unsigned to = othello_symmetric(pattern->square[i], symmetry);
            for (unsigned k = 0; k < pattern->squares; k++) {
                if (pattern->square[k] == to) {
                    order[count][i] = (uint8_t)k;
                    found++;
                }
            }
        }
        count += found == pattern->squares;
    }
    return count;
}

static void find_classes(uint32_t *class_of)
{
    for (unsigned p = 0; p < OTHELLO_PATTERNS; p++) {
        const struct othello_pattern *pattern = &othello_pattern[p];
        uint8_t order[OTHELLO_SYMMETRIES][OTHELLO_PATTERN_SQUARES], digit[OTHELLO_PATTERN_SQUARES];
        const unsigned orders = orders_of(pattern, order);
        const uint32_t end = p + 1 < OTHELLO_PATTERNS ? othello_pattern[p + 1].first
                                                      : (uint32_t)OTHELLO_CONFIGURATIONS;
        for (uint32_t number = 0; number < end - pattern->first; number++) {
            uint32_t rest = number, least = number;
            for (unsigned i = 0; i < pattern->squares; i++, rest /= 3) {
                digit[i] = (uint8_t)(rest % 3);
            }
            for (unsigned i = 0; i < orders; i++) {
                const uint32_t other = symmetric_number(digit, order[i], pattern->squares);
                least = other < least ? other : least;
            }
            class_of[pattern->first + number] = pattern->first + least;
        }
    }
}

static uint32_t moves_feature(uint64_t own, uint64_t other, unsigned side)
{
    const unsigned count = othello_count(othello_moves(own, other));
    return MOVES_AT + side * OTHELLO_MOVES_COUNTED +
           (count < OTHELLO_MOVES_COUNTED ? count : OTHELLO_MOVES_COUNTED - 1);
}

static unsigned empties_of(const struct othello_sample *s)
{
    return othello_count(~(s->own | s->other));
}

static void features_of(const struct fit *fit, const struct othello_sample *s, uint32_t *feature)
{
    uint16_t number[OTHELLO_PLACES_ROOM];
    unsigned place = 0;
    othello_place_numbers((struct othello_board){s->own, s->other}, number);
    for (unsigned p = 0; p < OTHELLO_PATTERNS; p++) {
        for (unsigned i = 0; i < othello_pattern[p].places; i++, place++) {
            feature[place] = fit->class_of[othello_pattern[p].first + number[place]];
        }
    }
    feature[place++] = EMPTIES_AT + empties_of(s);
    feature[place++] = moves_feature(s->own, s->other, 0);
    feature[place++] = moves_feature(s->other, s->own, 1);
}

static float sum_of(const float *weight, const uint32_t *feature)
{
    float sum = 0;
    for (unsigned i = 0; i < FEATURES; i++) {
        sum += weight[feature[i]];
    }
    return sum;
}

/* ---- the fit ---- */

struct rows {
    uint32_t (*feature)[FEATURES];
    float *rest; /* score less what the prior says */
    size_t count;
};

static double dot(const float *a, const float *b)
{
    double sum = 0;
    for (size_t i = 0; i < WEIGHTS; i++) {
        sum += (double)a[i] * b[i];
    }
    return sum;
}

/* Adds to `weight` what makes the rows' rests least, with a penalty. */
static void solve(const struct rows *rows, float penalty, unsigned rounds, float *weight)
{
    float *vector[5], *memory = calloc(5 * (size_t)WEIGHTS, sizeof(float));
    if (memory == NULL) {
        exit(1);
    }
    for (unsigned i = 0; i < 5; i++) {
        vector[i] = memory + (size_t)i * WEIGHTS;
    }
    float *scale = vector[0], *residual = vector[1], *direction = vector[2];
    float *image = vector[3], *scaled = vector[4];
    for (size_t r = 0; r < rows->count; r++) {
        for (unsigned i = 0; i < FEATURES; i++) {
            scale[rows->feature[r][i]]++;
            residual[rows->feature[r][i]] += rows->rest[r];
        }
    }
    for (size_t i = 0; i < WEIGHTS; i++) {
        scale[i] = 1 / (scale[i] + penalty);
        direction[i] = scaled[i] = scale[i] * residual[i];
    }
    double product = dot(residual, scaled);
    for (unsigned round = 0; round < rounds && product > 0; round++) {
        for (size_t i = 0; i < WEIGHTS; i++) {
            image[i] = penalty * direction[i];
        }
        for (size_t r = 0; r < rows->count; r++) {
            const float along = sum_of(direction, rows->feature[r]);
            for (unsigned i = 0; i < FEATURES; i++) {
                image[rows->feature[r][i]] += along;
            }
        }
        const float step = (float)(product / dot(direction, image));
        for (size_t i = 0; i < WEIGHTS; i++) {
            weight[i] += step * direction[i];
            residual[i] -= step * image[i];
            scaled[i] = scale[i] * residual[i];
        }
        const double next = dot(residual, scaled);
        const float keep = (float)(next / product);
        product = next;
        for (size_t i = 0; i < WEIGHTS; i++) {
            direction[i] = scaled[i] + keep * direction[i];
        }
    }
    free(memory);
}

/* The samples with `low` to `high` empty squares, at most `most` of them, evenly drawn. */
static void fit_range(const struct fit *fit, unsigned low, unsigned high, size_t most,
                      const float *prior, float *weight)
{
    size_t all = 0, seen = 0;
    for (size_t i = 0; i < fit->samples; i++) {
        const struct othello_sample *s = &fit->sample[i];
        all += s->game % HELD_BACK != 0 && empties_of(s) >= low && empties_of(s) <= high;
    }
    struct rows rows = {.count = 0};
    const size_t wanted = all < most ? all : most;
    rows.feature = malloc((wanted + 1) * sizeof *rows.feature);
    rows.rest = malloc((wanted + 1) * sizeof *rows.rest);
    if (rows.feature == NULL || rows.rest == NULL) {
        exit(1);
    }
    for (size_t i = 0; i < fit->samples; i++) {
        const struct othello_sample *s = &fit->sample[i];
        if (s->game % HELD_BACK != 0 && empties_of(s) >= low && empties_of(s) <= high &&
            ++seen * wanted / all > rows.count) {
            features_of(fit, s, rows.feature[rows.count]);
            rows.rest[rows.count] = (float)s->score - sum_of(prior, rows.feature[rows.count]);
            rows.count++;
        }
    }
    memmove(weight, prior, WEIGHTS * sizeof *weight);
    solve(&rows, (float)fit->prior, fit->rounds, weight);
    free(rows.feature);
    free(rows.rest);
}

static void *run(void *context)
{
    struct fit *fit = context;
    for (unsigned stage; (stage = atomic_fetch_add(&fit->next, 1)) < OTHELLO_STAGES;) {
        unsigned low = OTHELLO_SQUARES, high = 0;
        for (unsigned empties = 0; empties < OTHELLO_SQUARES; empties++) {
            if (othello_stage(empties) == stage) {
                low = empties < low ? empties : low;
                high = empties;
            }
        }
        low -= low < fit->around ? low : fit->around;
        fit_range(fit, low, high + fit->around, STAGE_MAX, fit->common, fit->stage[stage]);
    }
    return NULL;
}

/* ---- files ---- */

static void read_samples(struct fit *fit, const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL || fseek(file, 0, SEEK_END) != 0) {
        fprintf(stderr, "othello_fit: %s cannot be read\n", path);
        exit(1);
    }
    const size_t count = (size_t)ftell(file) / sizeof *fit->sample;
    rewind(file);
    fit->sample = realloc(fit->sample, (fit->samples + count + 1) * sizeof *fit->sample);
    if (fit->sample == NULL ||
        fread(fit->sample + fit->samples, sizeof *fit->sample, count, file) != count) {
        fprintf(stderr, "othello_fit: %s cannot be read\n", path);
        exit(1);
    }
    for (size_t i = fit->samples; i < fit->samples + count; i++) {
        const struct othello_sample *s = &fit->sample[i];
        if ((s->own & s->other) != 0 || abs(s->score) > OTHELLO_SCORE_MAX || empties_of(s) > 60) {
            fprintf(stderr, "othello_fit: %s has no samples\n", path);
            exit(1);
        }
    }
    fclose(file);
    fit->samples += count;
}

static int16_t rounded(float discs)
{
    const float value = discs * OTHELLO_EVAL_UNIT;
    return (int16_t)(value > INT16_MAX ? INT16_MAX : value < INT16_MIN ? INT16_MIN : lrintf(value));
}

static struct othello_weights *weights_of(const struct fit *fit)
{
    struct othello_weights *weights = calloc(1, sizeof *weights);
    if (weights == NULL) {
        exit(1);
    }
    for (unsigned i = 0; i < OTHELLO_SQUARES; i++) {
        weights->empties[i] = rounded(fit->stage[othello_stage(i)][EMPTIES_AT + i]);
    }
    for (unsigned stage = 0; stage < OTHELLO_STAGES; stage++) {
        for (uint32_t i = 0; i < OTHELLO_CONFIGURATIONS; i++) {
            weights->stage[stage].configuration[i] = rounded(fit->stage[stage][fit->class_of[i]]);
        }
        for (unsigned i = 0; i < 2 * OTHELLO_MOVES_COUNTED; i++) {
            weights->stage[stage].moves[i / OTHELLO_MOVES_COUNTED][i % OTHELLO_MOVES_COUNTED] =
                rounded(fit->stage[stage][MOVES_AT + i]);
        }
    }
    return weights;
}

static bool write_weights(const struct othello_weights *weights, const char *path)
{
    FILE *file = fopen(path, "wb");
    if (file == NULL) {
        return false;
    }
    const bool ok = fwrite(weights, sizeof *weights, 1, file) == 1;
    return fclose(file) == 0 && ok;
}

/* ---- errors ---- */

struct errors {
    size_t count;
    double absolute, square;
};

static void add_error(struct errors *errors, double error)
{
    errors->count++;
    errors->absolute += fabs(error);
    errors->square += error * error;
}

static void print_errors(const struct fit *fit, const struct othello_weights *weights)
{
    struct errors fitted[OTHELLO_STAGES] = {0}, start[OTHELLO_STAGES] = {0};
    for (size_t i = 0; i < fit->samples; i++) {
        const struct othello_sample *s = &fit->sample[i];
        const struct othello_board board = {s->own, s->other};
        if (s->game % HELD_BACK == 0) {
            const unsigned stage = othello_stage(empties_of(s));
            const int value = othello_evaluate_by(weights, board);
            add_error(&fitted[stage], (double)value / OTHELLO_EVAL_UNIT - s->score);
            add_error(&start[stage],
                      (double)othello_start_evaluate(board, OTHELLO_EVAL_UNIT) / OTHELLO_EVAL_UNIT -
                          s->score);
        }
    }
    printf(
        "| empty squares | boards held back | mean error | root mean square | mean error by hand "
        "|\n| --- | --- | --- | --- | --- |\n");
    for (unsigned stage = 0, low = 0; stage < OTHELLO_STAGES; stage++) {
        unsigned high = low;
        while (high + 1 < OTHELLO_SQUARES && othello_stage(high + 1) == stage) {
            high++;
        }
        const double count = fitted[stage].count > 0 ? (double)fitted[stage].count : 1;
        printf("| %u-%u | %zu | %.2f | %.2f | %.2f |\n", low, high, fitted[stage].count,
               fitted[stage].absolute / count, sqrt(fitted[stage].square / count),
               start[stage].absolute / count);
        low = high + 1;
    }
}

int main(int argc, char *argv[])
{
    struct fit fit = {.rounds = 30, .prior = 10, .around = 2};
    uint32_t threads = 2;
    const char *out = NULL, *path[OPTIONS_SERVERS_MAX];
    unsigned paths = 0;
    const struct options_row table[] = {
        OPTIONS_ROW(U32, "rounds", "N", &fit.rounds, 1, 1000, "of conjugate gradients (30)"),
        OPTIONS_ROW(U32, "prior", "N", &fit.prior, 1, 1000, "boards that a prior counts for (10)"),
        OPTIONS_ROW(U32, "around", "N", &fit.around, 0, 60,
                    "empty squares to either side that a stage is fitted to as well (2)"),
        OPTIONS_ROW(U32, "threads", "N", &threads, 1, THREADS_MAX, "threads (2)"),
        {"out", "FILE", "where the weights go", &out, OPTION_TEXT},
        {0},
    };
    const struct options options = {.program = "othello_fit",
                                    .usage = "--out FILE SAMPLES...",
                                    .summary = "Fits the Othello evaluation to samples.",
                                    .table = table,
                                    .operands_max = OPTIONS_SERVERS_MAX};
    const int status = options_parse(&options, argc, argv, path, &paths);
    if (status >= 0) {
        return status;
    }
    if (out == NULL || paths == 0) {
        return options_wrong("othello_fit", "--out FILE and samples are needed");
    }
    for (unsigned i = 0; i < paths; i++) {
        read_samples(&fit, path[i]);
    }
    float *nothing = calloc(WEIGHTS, sizeof *nothing);
    fit.common = calloc(WEIGHTS, sizeof *fit.common);
    fit.class_of = calloc(OTHELLO_CONFIGURATIONS, sizeof *fit.class_of);
    for (unsigned i = 0; i < OTHELLO_STAGES; i++) {
        fit.stage[i] = calloc(WEIGHTS, sizeof *fit.stage[i]);
        if (!nothing || !fit.common || !fit.class_of || !fit.stage[i]) {
            return 1;
        }
    }
    find_classes(fit.class_of);
    printf("%zu boards\n", fit.samples);
    fit_range(&fit, 0, 60, COMMON_MAX, nothing, fit.common);
    pthread_t thread[THREADS_MAX];
    for (unsigned t = 0; t < threads; t++) {
        if (pthread_create(&thread[t], NULL, run, &fit) != 0) {
            return 1;
        }
    }
    for (unsigned t = 0; t < threads; t++) {
        pthread_join(thread[t], NULL);
    }
    const struct othello_weights *weights = weights_of(&fit);
    print_errors(&fit, weights);
    if (!write_weights(weights, out)) {
        fprintf(stderr, "othello_fit: %s cannot be written\n", out);
        return 1;
    }
    return 0;
}
