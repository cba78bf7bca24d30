/* plot: speedups and overheads as a picture (SVG), to stand beside the figures of the papers.
 *
 * Left: speedup against processors, both axes in powers of two, the ideal line dashed; measured
 * series are lines, published ones markers; series of the same name share a colour. Right, if asked
 * for: the overheads stacked against processors (Weill 1996, figures 3 and 4).
 * Threads: any. Memory: none; everything is borrowed for the call. */
#ifndef WORKER_CLI_PLOT_H
#define WORKER_CLI_PLOT_H

#include "common/err.h"

#include <stdbool.h>
#include <stdio.h>

enum plot_overhead { PLOT_SEARCH, PLOT_COMMUNICATION, PLOT_SYNCHRONIZATION, PLOT_OVERHEADS };

struct plot_point {
    double workers; /* at least 1 */
    double speedup; /* above 0 */
    double overhead[PLOT_OVERHEADS]; /* 1 is as much as the work of one processor; may be < 0 */
};

struct plot_series {
    const char *name;
    bool published; /* markers instead of a line */
    const struct plot_point *point; /* in the order of the line */
    unsigned points;
};

struct plot {
    const char *title, *note; /* the note stands small below the title; NULL: none */
    const struct plot_series *series;
    unsigned count;
    const struct plot_series *bars; /* whose overheads to draw; NULL: no right panel */
};

/* ERR_IO; ERR_RANGE when a point is out of range or there is none. */
enum err plot_write(const struct plot *plot, FILE *out);

#endif
