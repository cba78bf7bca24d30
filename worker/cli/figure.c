#include "worker/cli/cli.h"
#include "worker/cli/plot.h"

#include "common/log.h"

#include <errno.h>
#include <string.h>

static const char program[] = "abdada plot";

enum { SERIES_MAX = 16, POINTS_MAX = 512, NAME_MAX_BYTES = 48, LINE_MAX_BYTES = 256 };

/* Series as they stand in the file, one row a point. */
struct figure {
    char name[SERIES_MAX][NAME_MAX_BYTES];
    struct plot_series series[SERIES_MAX];
    struct plot_point point[SERIES_MAX][POINTS_MAX];
    unsigned count;
};

/* The series of that name and kind, begun if it is new; NULL: no room. */
static struct plot_series *series_of(struct figure *f, const char *name, bool published)
{
    for (unsigned i = 0; i < f->count; i++) {
        if (f->series[i].published == published && strcmp(f->name[i], name) == 0) {
            return &f->series[i];
        }
    }
    if (f->count == SERIES_MAX) {
        return NULL;
    }
    unsigned i = f->count++;
    strcpy(f->name[i], name);
    f->series[i] =
        (struct plot_series){.name = f->name[i], .published = published, .point = f->point[i]};
    return &f->series[i];
}

/* series,kind,workers,speedup[,search,communication,synchronization] */
static enum err read_row(struct figure *f, const char *line, unsigned *bars)
{
    char name[NAME_MAX_BYTES], kind[16];
    struct plot_point point = {0};
    double *part = point.overhead;
    int fields = sscanf(line, "%47[^,],%15[^,],%lf,%lf,%lf,%lf,%lf", name, kind, &point.workers,
                        &point.speedup, &part[0], &part[1], &part[2]);
    bool published = strcmp(kind, "published") == 0;
    if (fields != 4 && fields != 7) {
        return ERR_SYNTAX;
    }
    struct plot_series *s = series_of(f, name, published);
    if (s == NULL || s->points == POINTS_MAX) {
        return ERR_FULL;
    }
    unsigned index = (unsigned)(s - f->series);
    f->point[index][s->points++] = point;
    *bars = fields == 7 ? index : *bars;
    return ERR_OK;
}

/* Returns the exit status. */
static int read_rows(struct figure *f, FILE *in, unsigned *bars)
{
    char line[LINE_MAX_BYTES];
    for (unsigned number = 1; fgets(line, sizeof line, in) != NULL; number++) {
        enum err err = number == 1 ? ERR_OK : read_row(f, line, bars);
        if (err != ERR_OK) {
            log_fail(program, "line %u: %s", number, err_text(err));
            return 1;
        }
    }
    return 0;
}

int cli_plot(int argc, char *argv[])
{
    static struct figure figure;
    const char *title = "Speedup", *note = NULL;
    const struct options_row table[] = {
        {"title", "TEXT", "of the picture", &title, OPTION_TEXT},
        {"note", "TEXT", "small, below the title", &note, OPTION_TEXT},
        {0},
    };
    const struct options options = {
        .program = program,
        .usage = "[OPTION]... < CSV > SVG",
        .summary = "Draws speedups: a header line, then rows of SERIES,ours|published,WORKERS,\n"
                   "SPEEDUP and, for the bars, search, communication and synchronization overhead.",
        .version = CLI_VERSION,
        .table = table,
    };
    int status = options_status(options_parse(&options, argc, argv, NULL, NULL));
    if (status >= 0) {
        return status;
    }
    unsigned bars = SERIES_MAX;
    if (read_rows(&figure, stdin, &bars) != 0) {
        return 1;
    }
    struct plot plot = {
        .title = title,
        .note = note,
        .series = figure.series,
        .count = figure.count,
        .bars = bars < SERIES_MAX ? &figure.series[bars] : NULL,
    };
    enum err err = plot_write(&plot, stdout);
    if (err == ERR_OK && fflush(stdout) != 0) {
        log_fail(program, "%s", strerror(errno));
        return 1;
    }
    if (err != ERR_OK) {
        log_fail(program, "%s", err_text(err));
        return 1;
    }
    return 0;
}
