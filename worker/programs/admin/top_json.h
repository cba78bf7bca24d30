/* top_json: what `abdada top` shows, as JSON: an object a line, or all in one.
 * Threads: any that owns the view. Memory: none. */
#ifndef WORKER_PROGRAMS_ADMIN_TOP_JSON_H
#define WORKER_PROGRAMS_ADMIN_TOP_JSON_H

#include "worker/programs/admin/watch.h"

#include <stdio.h>

/* A line for each shard, job and member, and then the total. */
void top_json_lines(const struct watch_view *view, FILE *out);
/* {"time_ms":...,"shards":[...],"jobs":[...],"members":[...],"total":{...}} with the same objects,
 * in one line. time_ms is `out`'s only field of its own: milliseconds since 1970. */
void top_json_view(const struct watch_view *view, FILE *out);

#endif
