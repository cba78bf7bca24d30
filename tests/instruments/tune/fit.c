/* fit: trains the network of worker/games/chess/network.h from samples (sample.h).
 *
 *   fit [--epochs N] [--threads N] [--seed N] --out FILE SAMPLES...
 *
 * Least squares between points: those that the output promises, and a mixture of those that the
 * search's score promises and those that the game gave (RESULT_SHARE). The method is Adam (Kingma,
 * Ba 2015) with a step that falls to nothing along a cosine. Prints the mean error of each epoch on
 * what it is trained on and on what it is not (HELD_BACK, the end of each file: other games). */
#include "common/options.h"
#include "common/rng.h"
#include "tests/instruments/tune/sample.h"
#include "worker/games/chess/network.h"
#include "worker/games/chess/position.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    HALF = CHESS_NETWORK_HALF,
    PARTS = CHESS_NETWORK_PARTS,
    INPUT_AT = 0,
    BIAS_AT = CHESS_NETWORK_INPUTS * HALF,
    OUTPUT_AT = BIAS_AT + HALF,
    OUTPUT_BIAS_AT = OUTPUT_AT + PARTS * 2 * HALF,
    WEIGHTS = OUTPUT_BIAS_AT + PARTS,
    BATCH = 2048,
    THREADS_MAX = 64,
    PIECES_MAX = 32,
};
static const float STEP = 0.001f, RESULT_SHARE = 0.15f, HELD_BACK = 0.02f;
static const float WEIGHT_MAX = (float)CHESS_NETWORK_WEIGHT_MAX / CHESS_NETWORK_WEIGHT_ONE;

struct fit {
    float *weight, *momentum, *square; /* WEIGHTS each */
    struct sample *sample;
    size_t samples, held; /* the held back ones are behind the others */
    unsigned threads;
};

struct work {
    pthread_t thread;
    const struct fit *fit;
    size_t from, to;
    float *gradient; /* NULL: errors only */
    double error;
};

static float points(float score)
{
    return 1.0f / (1.0f + expf(-score));
}

/* The inputs of both sides; returns the pieces. */
static unsigned inputs_of(const struct sample *s, uint16_t input[2][PIECES_MAX])
{
    uint64_t rest = s->occupied;
    unsigned square[PIECES_MAX], piece[PIECES_MAX], count = 0;
    bool mirrored[2] = {false, false};
    while (rest && count < PIECES_MAX) {
        square[count] = bitboard_pop(&rest);
        piece[count] = s->piece[count / 2] >> (count % 2 * 4) & 15;
        if ((piece[count] & 7) == CHESS_KING) {
            mirrored[piece[count] >> 3] = (square[count] & 7) > 3;
        }
        count++;
    }
    for (unsigned side = 0; side < 2; side++) {
        for (unsigned i = 0; i < count; i++) {
            input[side][i] = (uint16_t)chess_network_input(
                side, mirrored[side], piece[i] >> 3 == side, piece[i] & 7, square[i]);
        }
    }
    return count;
}

static void add_scaled(float *restrict to, const float *restrict from, float scale)
{
    for (unsigned i = 0; i < HALF; i++) {
        to[i] += scale * from[i];
    }
}

static double train(const struct fit *fit, const struct sample *s, float *gradient)
{
    const float *w = fit->weight;
    uint16_t input[2][PIECES_MAX];
    float sum[2][HALF], clipped[2][HALF];
    const unsigned pieces = inputs_of(s, input), part = chess_network_part(pieces);
    float out = w[OUTPUT_BIAS_AT + part];
    for (unsigned side = 0; side < 2; side++) {
        const float *output = &w[OUTPUT_AT + (part * 2 + side) * HALF];
        memcpy(sum[side], &w[BIAS_AT], sizeof sum[side]);
        for (unsigned i = 0; i < pieces; i++) {
            add_scaled(sum[side], &w[INPUT_AT + input[side][i] * HALF], 1);
        }
        float total[8] = {0};
        for (unsigned i = 0; i < HALF; i++) {
            float c = sum[side][i] < 0 ? 0 : sum[side][i] > 1 ? 1 : sum[side][i];
            clipped[side][i] = c;
            total[i % 8] += c * c * output[i];
        }
        for (unsigned i = 0; i < 8; i++) {
            out += total[i];
        }
    }
    const float wanted = (1 - RESULT_SHARE) * points((float)s->score / CHESS_NETWORK_SCALE) +
                         RESULT_SHARE * (float)s->result / 2;
    const float promised = points(out), error = promised - wanted;
    if (gradient == NULL) {
        return (double)error * error;
    }
    const float slope = 2 * error * promised * (1 - promised);
    gradient[OUTPUT_BIAS_AT + part] += slope;
    for (unsigned side = 0; side < 2; side++) {
        const float *output = &w[OUTPUT_AT + (part * 2 + side) * HALF];
        float *to = &gradient[OUTPUT_AT + (part * 2 + side) * HALF], back[HALF];
        for (unsigned i = 0; i < HALF; i++) {
            float c = clipped[side][i];
            to[i] += slope * c * c;
            back[i] = c > 0 && c < 1 ? slope * 2 * c * output[i] : 0;
        }
        add_scaled(&gradient[BIAS_AT], back, 1);
        for (unsigned i = 0; i < pieces; i++) {
            add_scaled(&gradient[INPUT_AT + input[side][i] * HALF], back, 1);
        }
    }
    return (double)error * error;
}

static void *run(void *context)
{
    struct work *work = context;
    work->error = 0;
    for (size_t i = work->from; i < work->to; i++) {
        work->error += train(work->fit, &work->fit->sample[i], work->gradient);
    }
    return NULL;
}

/* Over samples [from, to), by all threads; the sum of errors. */
static double run_all(const struct fit *fit, struct work *work, size_t from, size_t to)
{
    double error = 0;
    for (unsigned t = 0; t < fit->threads; t++) {
        work[t].fit = fit;
        work[t].from = from + (to - from) * t / fit->threads;
        work[t].to = from + (to - from) * (t + 1) / fit->threads;
        if (pthread_create(&work[t].thread, NULL, run, &work[t]) != 0) {
            exit(1);
        }
    }
    for (unsigned t = 0; t < fit->threads; t++) {
        pthread_join(work[t].thread, NULL);
        error += work[t].error;
    }
    return error;
}

static void step(struct fit *fit, struct work *work, size_t count, unsigned steps, float size)
{
    const float keep = 0.9f, keep_square = 0.999f;
    const float fresh = 1 - powf(keep, (float)steps);
    const float fresh_square = 1 - powf(keep_square, (float)steps);
    for (size_t i = 0; i < WEIGHTS; i++) {
        float g = 0;
        for (unsigned t = 0; t < fit->threads; t++) {
            g += work[t].gradient[i];
            work[t].gradient[i] = 0;
        }
        g /= (float)count;
        fit->momentum[i] = keep * fit->momentum[i] + (1 - keep) * g;
        fit->square[i] = keep_square * fit->square[i] + (1 - keep_square) * g * g;
        float w = fit->weight[i] - size * (fit->momentum[i] / fresh) /
                                       (sqrtf(fit->square[i] / fresh_square) + 1e-8f);
        if (i < OUTPUT_BIAS_AT) {
            w = w > WEIGHT_MAX ? WEIGHT_MAX : w < -WEIGHT_MAX ? -WEIGHT_MAX : w;
        }
        fit->weight[i] = w;
    }
}

static void swap(struct sample *a, struct sample *b)
{
    struct sample kept = *a;
    *a = *b;
    *b = kept;
}

/* A file may be any: what is no piece would be no input. */
static bool is_sample(const struct sample *s)
{
    const unsigned pieces = bitboard_count(s->occupied);
    unsigned kings[2] = {0, 0};
    for (unsigned i = 0; i < pieces && pieces <= PIECES_MAX; i++) {
        const unsigned piece = s->piece[i / 2] >> (i % 2 * 4) & 15;
        if ((piece & 7) > CHESS_KING) {
            return false;
        }
        kings[piece >> 3] += (piece & 7) == CHESS_KING;
    }
    return kings[0] == 1 && kings[1] == 1 && s->result <= 2;
}

static void read_samples(struct fit *fit, const char *const *path, unsigned paths)
{
    size_t begin[OPTIONS_SERVERS_MAX + 1] = {0}, all = 0;
    for (unsigned p = 0; p < paths; p++) {
        FILE *file = fopen(path[p], "rb");
        if (file == NULL || fseek(file, 0, SEEK_END) != 0) {
            fprintf(stderr, "fit: %s cannot be read\n", path[p]);
            exit(1);
        }
        const size_t count = (size_t)ftell(file) / sizeof(struct sample);
        rewind(file);
        fit->sample = realloc(fit->sample, (all + count + 1) * sizeof *fit->sample);
        if (fit->sample == NULL ||
            fread(fit->sample + all, sizeof *fit->sample, count, file) != count) {
            fprintf(stderr, "fit: %s cannot be read\n", path[p]);
            exit(1);
        }
        fclose(file);
        for (size_t i = all; i < all + count; i++) {
            if (!is_sample(&fit->sample[i])) {
                fprintf(stderr, "fit: %s has no samples\n", path[p]);
                exit(1);
            }
        }
        all += count;
        begin[p + 1] = all;
    }
    fit->samples = all;
    for (unsigned p = paths; p > 0; p--) { /* the last ones change places with what is held back */
        const size_t held = (size_t)((float)(begin[p] - begin[p - 1]) * HELD_BACK);
        for (size_t i = 0; i < held; i++) {
            swap(&fit->sample[begin[p] - 1 - i], &fit->sample[--fit->samples]);
        }
    }
    fit->held = all - fit->samples;
}

static int16_t rounded(float value, int one)
{
    return (int16_t)lrintf(value * (float)one);
}

static bool write_network(const struct fit *fit, const char *path)
{
    struct chess_network *network = calloc(1, sizeof *network);
    FILE *file = fopen(path, "wb");
    if (network == NULL || file == NULL) {
        return false;
    }
    for (unsigned i = 0; i < BIAS_AT; i++) {
        network->input[i / HALF][i % HALF] = rounded(fit->weight[INPUT_AT + i], CHESS_NETWORK_ONE);
    }
    for (unsigned i = 0; i < HALF; i++) {
        network->bias[i] = rounded(fit->weight[BIAS_AT + i], CHESS_NETWORK_ONE);
    }
    for (unsigned i = 0; i < PARTS * 2 * HALF; i++) {
        network->output[i / HALF / 2][i / HALF % 2][i % HALF] =
            rounded(fit->weight[OUTPUT_AT + i], CHESS_NETWORK_WEIGHT_ONE);
    }
    for (unsigned i = 0; i < PARTS; i++) {
        network->output_bias[i] = (int32_t)lrintf(fit->weight[OUTPUT_BIAS_AT + i] *
                                                  CHESS_NETWORK_ONE * CHESS_NETWORK_WEIGHT_ONE);
    }
    bool ok = fwrite(network, sizeof *network, 1, file) == 1;
    free(network);
    return fclose(file) == 0 && ok;
}

static void begin_weights(struct fit *fit, uint64_t seed)
{
    for (size_t i = 0; i < WEIGHTS; i++) {
        float width = i < BIAS_AT ? 0.12f : i < OUTPUT_AT ? 0.1f : i < OUTPUT_BIAS_AT ? 0.08f : 0;
        fit->weight[i] = width * ((float)rng_below(&seed, 20001) / 10000 - 1);
    }
}

int main(int argc, char *argv[])
{
    uint64_t seed = 1;
    uint32_t epochs = 20, threads = 2;
    const char *out = NULL, *path[OPTIONS_SERVERS_MAX];
    unsigned paths = 0;
    const struct options_row table[] = {
        OPTIONS_ROW(U32, "epochs", "N", &epochs, 1, 10000, "times over all samples"),
        OPTIONS_ROW(U32, "threads", "N", &threads, 1, THREADS_MAX, "threads (2)"),
        OPTIONS_ROW(U64, "seed", "N", &seed, 1, 0, "of first weights and order"),
        {"out", "FILE", "where the network goes", &out, OPTION_TEXT},
        {0},
    };
    const struct options options = {.program = "fit",
                                    .usage = "--out FILE SAMPLES...",
                                    .summary = "Trains the evaluation from samples.",
                                    .table = table,
                                    .operands_max = OPTIONS_SERVERS_MAX};
    int status = options_parse(&options, argc, argv, path, &paths);
    if (status >= 0) {
        return status;
    }
    if (out == NULL || paths == 0) {
        return options_wrong("fit", "--out FILE and samples are needed");
    }
    struct fit fit = {.threads = threads};
    struct work work[THREADS_MAX] = {0};
    read_samples(&fit, path, paths);
    fit.weight = calloc(WEIGHTS, sizeof(float));
    fit.momentum = calloc(WEIGHTS, sizeof(float));
    fit.square = calloc(WEIGHTS, sizeof(float));
    float *gradients = calloc((size_t)WEIGHTS * threads, sizeof(float));
    if (!fit.weight || !fit.momentum || !fit.square || !gradients || fit.samples < BATCH) {
        fprintf(stderr, "fit: too few samples, or no memory\n");
        return 1;
    }
    begin_weights(&fit, rng_next(&seed));
    const size_t batches = fit.samples / BATCH;
    unsigned steps = 0;
    for (unsigned epoch = 1; epoch <= epochs; epoch++) {
        double error = 0;
        for (size_t i = fit.samples - 1; i > 0; i--) {
            swap(&fit.sample[i], &fit.sample[rng_below(&seed, i + 1)]);
        }
        for (unsigned t = 0; t < threads; t++) {
            work[t].gradient = gradients + (size_t)t * WEIGHTS;
        }
        for (size_t b = 0; b < batches; b++) {
            error += run_all(&fit, work, b * BATCH, (b + 1) * BATCH);
            float done = (float)steps / (float)(batches * epochs);
            step(&fit, work, BATCH, ++steps, STEP * 0.5f * (1 + cosf((float)M_PI * done)) + 1e-6f);
        }
        for (unsigned t = 0; t < threads; t++) {
            work[t].gradient = NULL;
        }
        double held = run_all(&fit, work, fit.samples, fit.samples + fit.held);
        printf("epoch %u: error %.5f, held back %.5f\n", epoch, error / (double)(batches * BATCH),
               held / (double)fit.held);
        fflush(stdout);
        if (!write_network(&fit, out)) {
            fprintf(stderr, "fit: %s cannot be written\n", out);
            return 1;
        }
    }
    return 0;
}
