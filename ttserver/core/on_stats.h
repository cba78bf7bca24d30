/* on_stats: what people watch a shard by: STATS, MEMBERS, JOBS. They change nothing. Threads: the
 * core's owner. */
#ifndef TTSERVER_CORE_ON_STATS_H
#define TTSERVER_CORE_ON_STATS_H

#include "ttserver/core/options.h"

struct ttcore;

void ttcore_figures(const struct ttcore *core, struct ttcore_figures *out);

#endif
