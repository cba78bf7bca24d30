#include "worker/engine/share.h"

unsigned share_choose(const uint64_t *job, unsigned jobs, uint32_t worker_index)
{
    unsigned wanted = worker_index % jobs, chosen = 0;
    for (unsigned i = 0; i < jobs; i++) {
        unsigned rank = 0;
        for (unsigned k = 0; k < jobs; k++) {
            rank += job[k] < job[i];
        }
        chosen = rank == wanted ? i : chosen;
    }
    return chosen;
}
