#include "worker/programs/sim/plot.h"

#include "common/log.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* Colours of Okabe and Ito: told apart by colour-blind readers and in grey. */
static const char speedups[] =
    "set grid linecolor '#dddddd' linetype 1\n"
    "set key left top reverse Left\n"
    "set xlabel 'workers'\n"
    "set ylabel 'speedup'\n"
    "set logscale xy 2\n"
    "set yrange [*<1:2<*]\n"
    "plot x dashtype 2 linecolor '#333333' title 'ideal', $run using 1:2 with linespoints \\\n"
    "  pointtype 7 pointsize 0.6 linewidth 2 linecolor '#0072b2' title name\n";
static const char overheads[] =
    "unset logscale\n"
    "set autoscale\n"
    "set grid noxtics\n"
    "set ylabel 'overhead (100%: the work of one worker)'\n"
    "set format y '%.0f%%'\n"
    "set style histogram rowstacked\n"
    "set style fill solid\n"
    "set boxwidth 0.6\n"
    "set xzeroaxis linetype 1 linecolor '#333333'\n"
    "plot $run using (100*$3):xtic(1) with histograms linecolor '#0072b2' title 'search', \\\n"
    "  '' using (100*$4) with histograms linecolor '#e69f00' title 'communication', \\\n"
    "  '' using (100*$5) with histograms linecolor '#009e73' title 'synchronization'\n"
    "unset multiplot\n";

/* NAME = 'TEXT'. */
static void put_string(FILE *script, const char *name, const char *text)
{
    fprintf(script, "%s = '", name);
    for (; *text; text++) {
        fputs(*text == '\'' ? "''" : (char[]){*text, 0}, script);
    }
    fputs("'\n", script);
}

static void put_script(FILE *script, const struct plot *plot)
{
    unsigned most = 2;
    fputs("set encoding utf8\n$run << END\n", script);
    for (unsigned i = 0; i < plot->points; i++) {
        const struct plot_point *p = &plot->point[i];
        most = p->workers > most ? p->workers : most;
        fprintf(script, "%u %g %g %g %g\n", p->workers, p->speedup, p->search, p->communication,
                p->synchronization);
    }
    fputs("END\nset terminal svg noenhanced size 1160,486 background '#ffffff'\n", script);
    put_string(script, "title", plot->title);
    put_string(script, "note", plot->note);
    put_string(script, "name", plot->series);
    fputs("set multiplot layout 1,2 title title . \"\\n\" . note\n", script);
    fprintf(script, "set xrange [1:%u]\n%s%s", most, speedups, overheads);
}

/* 0, or 1 after a line of `program`. */
static int copy_drawn(int drawn, const char *program, const char *path)
{
    char piece[4096];
    ssize_t n;
    FILE *out = fopen(path, "w");
    if (out == NULL) {
        log_fail(program, "%s: %s", path, strerror(errno));
        return 1;
    }
    for (off_t at = 0; (n = pread(drawn, piece, sizeof piece, at)) > 0; at += n) {
        fwrite(piece, 1, (size_t)n, out);
    }
    return log_close(program, out, path) ? 0 : 1;
}

static int draw(const struct plot *plot, int drawn, const char *program, const char *path)
{
    /* Into memory: gnuplot does not say when it could not write. */
    char command[128];
    snprintf(command, sizeof command,
             "command -v gnuplot >/dev/null || exit 127\nexec gnuplot >/proc/self/fd/%d", drawn);
    FILE *script = popen(command, "w");
    if (script == NULL) {
        log_fail(program, "%s: %s", path, strerror(errno));
        return 1;
    }
    sighandler_t before = signal(SIGPIPE, SIG_IGN); /* gnuplot may end before it has read all */
    put_script(script, plot);
    int status = pclose(script);
    (void)signal(SIGPIPE, before);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127) {
        log_fail(program, "%s: gnuplot draws it, which is not here: install gnuplot-nox", path);
    } else if (status != 0) {
        log_fail(program, "%s: gnuplot could not draw it", path);
    }
    return status == 0 ? copy_drawn(drawn, program, path) : 1;
}

int plot_write(const struct plot *plot, const char *program, const char *path)
{
    int drawn = memfd_create(program, 0); /* gnuplot inherits it */
    if (drawn < 0) {
        log_fail(program, "%s: %s", path, strerror(errno));
        return 1;
    }
    int status = draw(plot, drawn, program, path);
    close(drawn);
    return status;
}
