#include "worker/games/chess/network.h"

#include "common/memory.h"
#include "worker/games/chess/position.h"

#include <string.h>

extern const char _binary_evaluation_net_start[], _binary_evaluation_net_end[];

static _Alignas(64) struct chess_network network;

__attribute__((constructor)) static void read_network(void)
{
    CHECK((uintptr_t)_binary_evaluation_net_end - (uintptr_t)_binary_evaluation_net_start ==
          sizeof network);
    memcpy(&network, _binary_evaluation_net_start, sizeof network);
}

void chess_sums_clear(void *evaluator)
{
    struct chess_sums *sums = evaluator;
    memset(sums, 0, sizeof *sums);
    for (unsigned i = 0; i < 4; i++) {
        memcpy(sums->side[i / 2][i % 2].value, network.bias, sizeof network.bias);
    }
}

/* The compiler makes of it what the processor has. */
enum { LANES = 16, VECTORS = CHESS_NETWORK_HALF / LANES };
typedef int16_t lanes __attribute__((vector_size(2 * LANES), aligned(2), may_alias));

struct changes {
    unsigned count;
    uint16_t input[64];
};

BITBOARD_INLINE void note(struct changes *to, uint64_t squares, unsigned colour, bool mirrored,
                          bool own, unsigned kind)
{
    while (squares) {
        unsigned square = bitboard_pop(&squares);
        to->input[to->count++] = (uint16_t)chess_network_input(colour, mirrored, own, kind, square);
    }
}

static const int16_t *sum_of(struct chess_sum *sum, const uint64_t *set, unsigned colour,
                             bool mirrored)
{
    struct changes added = {.count = 0}, gone = {.count = 0};
    for (unsigned kind = CHESS_PAWN; kind <= CHESS_KING; kind++) {
        for (unsigned owner = 0; owner < 2; owner++) {
            const unsigned at = owner << 3 | kind;
            uint64_t changed = set[at] ^ sum->set[at];
            if (changed) {
                note(&added, changed & set[at], colour, mirrored, owner == colour, kind);
                note(&gone, changed & sum->set[at], colour, mirrored, owner == colour, kind);
                sum->set[at] = set[at];
            }
        }
    }
    if (added.count + gone.count > 0) {
        lanes *value = (lanes *)sum->value, now[VECTORS];
        memcpy(now, value, sizeof now);
        for (unsigned i = 0; i < added.count; i++) {
            const lanes *weight = (const lanes *)network.input[added.input[i]];
            for (unsigned v = 0; v < VECTORS; v++) {
                now[v] += weight[v];
            }
        }
        for (unsigned i = 0; i < gone.count; i++) {
            const lanes *weight = (const lanes *)network.input[gone.input[i]];
            for (unsigned v = 0; v < VECTORS; v++) {
                now[v] -= weight[v];
            }
        }
        memcpy(value, now, sizeof now);
    }
    return sum->value;
}

/* A clipped value times its weight fits 16 bits, so its square costs one wide product. */
static int32_t weigh(const int16_t *value, const int16_t *weight)
{
    int32_t sum = 0;
    for (unsigned i = 0; i < CHESS_NETWORK_HALF; i++) {
        int16_t v = value[i] < 0 ? 0 : value[i];
        v = v > CHESS_NETWORK_ONE ? CHESS_NETWORK_ONE : v;
        sum += (int32_t)v * (int16_t)(v * weight[i]);
    }
    return sum;
}

int chess_network_eval(struct chess_sums *sums, const uint64_t *set, unsigned side)
{
    const unsigned part = chess_network_part(bitboard_count(set[CHESS_ALL] | set[8 | CHESS_ALL]));
    int32_t sum = 0;
    for (unsigned half = 0; half < 2; half++) {
        const unsigned colour = side ^ half;
        const bool mirrored = (bitboard_first(set[colour << 3 | CHESS_KING]) & 7) > 3;
        const int16_t *value = sum_of(&sums->side[colour][mirrored], set, colour, mirrored);
        sum += weigh(value, network.output[part][half]) / CHESS_NETWORK_ONE;
    }
    int64_t all = (int64_t)sum + network.output_bias[part];
    return (int)(all * CHESS_NETWORK_SCALE / (CHESS_NETWORK_ONE * CHESS_NETWORK_WEIGHT_ONE));
}
