#include "worker/programs/engine/engine_vote.h"

#include "worker/games/game.h"

#include <string.h>

enum { LEAST = 14 }; /* what the worst line counts, a ply */

static int64_t weight(const struct engine_voice *voice, unsigned voices, const char *move,
                      int worst)
{
    int64_t sum = 0;
    for (unsigned i = 0; i < voices; i++) {
        if (strcmp(voice[i].move, move) == 0) {
            sum += (int64_t)(voice[i].score - worst + LEAST) * voice[i].depth;
        }
    }
    return sum;
}

unsigned engine_vote(const struct engine_voice *voice, unsigned voices)
{
    unsigned best = 0;
    int worst = GAME_INFINITE;
    for (unsigned i = 0; i < voices; i++) {
        worst = voice[i].move[0] != '\0' && voice[i].score < worst ? voice[i].score : worst;
    }
    for (unsigned i = 0; i < voices; i++) {
        const struct engine_voice *one = &voice[i], *other = &voice[best];
        if (one->move[0] == '\0') {
            continue;
        }
        if (other->move[0] == '\0') {
            best = i;
        } else if (one->score > GAME_MATE_MIN || other->score > GAME_MATE_MIN) {
            best = one->score > other->score ? i : best;
        } else if (one->score >= -GAME_MATE_MIN && weight(voice, voices, one->move, worst) >
                                                       weight(voice, voices, other->move, worst)) {
            best = i;
        }
    }
    return best;
}
