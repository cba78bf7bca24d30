/* plot: speedup and overheads of a run of `abdada sim` as a picture (SVG), drawn by gnuplot.
 *
 * Left: speedup against workers, both axes in powers of two, the ideal line dashed. Right: the
 * overheads stacked against workers (Weill 1996, figures 3 and 4).
 * Threads: the main thread. Memory: borrows everything for the call. Blocks until gnuplot ends. */
#ifndef WORKER_PROGRAMS_SIM_PLOT_H
#define WORKER_PROGRAMS_SIM_PLOT_H

struct plot_point {
    unsigned workers;
    double speedup;
    double search, communication, synchronization; /* 1: the work of one worker; may be < 0 */
};

struct plot {
    const char *title, *note, *series; /* the note stands below the title */
    const struct plot_point *point;
    unsigned points;
};

/* Writes the picture to `path`. Returns the exit status: 0, or 1 when it could not be drawn; then
 * stderr says why. */
int plot_write(const struct plot *plot, const char *program, const char *path);

#endif
