/* top_view: what `abdada top` shows of a cluster, as tables of text or as JSON.
 * Threads: any that owns the view. Memory: none. Blocking: as the file that it is written to. */
#ifndef WORKER_PROGRAMS_ADMIN_TOP_VIEW_H
#define WORKER_PROGRAMS_ADMIN_TOP_VIEW_H

#include "worker/programs/admin/monitor.h"

#include <stdio.h>

struct top_page {
    FILE *out;
    unsigned
        columns; /* where lines are cut; below 132 tables lack what matters least; 0: unknown */
    unsigned rows; /* 0: no limit */
    bool is_live; /* a terminal, where the page takes the place of the one before */
};
void top_view_text(const struct monitor_view *view, const struct top_page *page);

/* An object for each shard, job, host and session, and the total: each a line, or all in one line,
 * {"time_ms":...,"shards":[...],"jobs":[...],"hosts":[...],"members":[...],"total":{...}}, whose
 * time_ms are milliseconds since 1970. */
void top_view_json(const struct monitor_view *view, bool in_lines, FILE *out);

#endif
