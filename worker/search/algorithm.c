#include "worker/search/algorithm.h"

#include <stddef.h>
#include <string.h>

static const struct algorithm algorithms[] = {
    {"abdada", BROTHERS_LEAST_HELPED, true},
    {"abdada-paper", BROTHERS_TWO_PASSES, true},
    {"shared-table", BROTHERS_IN_ORDER, true},
    {"sequential", BROTHERS_IN_ORDER, false},
};

const struct algorithm *algorithm_by_name(const char *name)
{
    for (size_t i = 0; i < sizeof algorithms / sizeof algorithms[0]; i++) {
        if (strcmp(algorithms[i].name, name) == 0) {
            return &algorithms[i];
        }
    }
    return NULL;
}

const char *algorithm_names(void)
{
    return "abdada, abdada-paper, shared-table, sequential";
}
