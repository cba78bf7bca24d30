#include "worker/cli/plot.h"

#include <math.h>
#include <string.h>

/* In pixels. */
enum {
    PANEL_WIDTH = 480,
    PANEL_HEIGHT = 360,
    MARGIN_LEFT = 78,
    MARGIN_TOP = 72,
    MARGIN_BOTTOM = 54,
    MARGIN_RIGHT = 22,
    LEGEND_STEP = 18,
    TICKS_MAX = 11, /* of an axis in powers of two; more are thinned out */
};

static const char ink[] = "#333333", faint[] = "#dddddd";

/* Okabe and Ito: told apart by colour-blind readers and in grey. */
static const char *const colour[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                     "#e69f00", "#56b4e9", "#8a6d3b", "#777777"};
enum { COLOURS = sizeof colour / sizeof colour[0] };

static const struct {
    const char *name, *colour;
} overhead[PLOT_OVERHEADS] = {
    [PLOT_SEARCH] = {"search", "#0072b2"},
    [PLOT_COMMUNICATION] = {"communication", "#e69f00"},
    [PLOT_SYNCHRONIZATION] = {"synchronisation", "#009e73"},
};

/* A rectangle of the picture and the values at its edges. */
struct panel {
    FILE *out;
    double left, top, width, height;
    double x_low, x_high, y_low, y_high;
};

static double place_x(const struct panel *p, double x)
{
    return p->left + (x - p->x_low) / (p->x_high - p->x_low) * p->width;
}

static double place_y(const struct panel *p, double y)
{
    return p->top + p->height - (y - p->y_low) / (p->y_high - p->y_low) * p->height;
}

/* ---- marks ---- */

static void print_escaped(FILE *out, const char *text)
{
    for (; *text; text++) {
        switch (*text) {
        case '&':
            fputs("&amp;", out);
            break;
        case '<':
            fputs("&lt;", out);
            break;
        case '>':
            fputs("&gt;", out);
            break;
        default:
            fputc(*text, out);
        }
    }
}

/* anchor: "start", "middle" or "end"; style: further attributes, or "". */
static void put_text(FILE *out, double x, double y, const char *anchor, const char *style,
                     const char *text)
{
    fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" %s>", x, y, anchor, style);
    print_escaped(out, text);
    fputs("</text>\n", out);
}

static void put_line(FILE *out, double x1, double y1, double x2, double y2, const char *stroke,
                     const char *style)
{
    fprintf(out, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" %s/>\n", x1,
            y1, x2, y2, stroke, style);
}

static void put_box(FILE *out, double x, double y, double width, double height, const char *style)
{
    fprintf(out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" %s/>\n", x, y, width,
            height, style);
}

/* Measured: a small disc. Published: a hollow square. */
static void put_marker(FILE *out, double x, double y, bool published, const char *stroke)
{
    if (published) {
        fprintf(out,
                "<rect x=\"%.1f\" y=\"%.1f\" width=\"9\" height=\"9\" fill=\"white\" "
                "stroke=\"%s\" stroke-width=\"2\"/>\n",
                x - 4.5, y - 4.5, stroke);
    } else {
        fprintf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.2\" fill=\"%s\"/>\n", x, y, stroke);
    }
}

static void put_frame(const struct panel *p, const char *x_name, const char *y_name)
{
    char turned[64];
    double middle = p->top + p->height / 2, x = p->left - 56;
    put_line(p->out, p->left, p->top + p->height, p->left + p->width, p->top + p->height, ink, "");
    put_line(p->out, p->left, p->top, p->left, p->top + p->height, ink, "");
    put_text(p->out, p->left + p->width / 2, p->top + p->height + 40, "middle", "", x_name);
    snprintf(turned, sizeof turned, "transform=\"rotate(-90 %.1f %.1f)\"", x, middle);
    put_text(p->out, x, middle, "middle", turned, y_name);
}

static void put_x_tick(const struct panel *p, double x, const char *label)
{
    double y = p->top + p->height;
    put_line(p->out, x, y, x, y + 5, ink, "");
    put_text(p->out, x, y + 19, "middle", "", label);
}

static void put_y_tick(const struct panel *p, double y, const char *label)
{
    put_line(p->out, p->left, y, p->left + p->width, y, faint, "");
    put_line(p->out, p->left - 5, y, p->left, y, ink, "");
    put_text(p->out, p->left - 9, y + 4, "end", "", label);
}

/* ---- speedup against processors ---- */

static void put_powers(const struct panel *p)
{
    char label[32];
    int span = (int)fmax(p->x_high - p->x_low, p->y_high - p->y_low);
    int step = (span + TICKS_MAX) / TICKS_MAX;
    for (int e = (int)p->y_low; e <= (int)p->y_high; e += step) {
        snprintf(label, sizeof label, "%g", exp2(e));
        put_y_tick(p, place_y(p, e), label);
    }
    for (int e = (int)p->x_low; e <= (int)p->x_high; e += step) {
        snprintf(label, sizeof label, "%g", exp2(e));
        put_line(p->out, place_x(p, e), p->top, place_x(p, e), p->top + p->height, faint, "");
        put_x_tick(p, place_x(p, e), label);
    }
}

/* Names in the order they first come up have the colours in their order. */
static unsigned colour_of(const struct plot *plot, unsigned index)
{
    unsigned names = 0;
    for (unsigned i = 0; i <= index; i++) {
        bool seen = false;
        for (unsigned k = 0; k < i && !seen; k++) {
            seen = strcmp(plot->series[k].name, plot->series[i].name) == 0;
        }
        if (strcmp(plot->series[i].name, plot->series[index].name) == 0) {
            return names % COLOURS;
        }
        names += !seen;
    }
    return 0;
}

static void put_series(const struct panel *p, const struct plot_series *s, const char *stroke)
{
    if (!s->published) {
        fputs("<polyline fill=\"none\" stroke-width=\"2\" points=\"", p->out);
        for (unsigned i = 0; i < s->points; i++) {
            fprintf(p->out, "%.1f,%.1f ", place_x(p, log2(s->point[i].workers)),
                    place_y(p, log2(s->point[i].speedup)));
        }
        fprintf(p->out, "\" stroke=\"%s\"/>\n", stroke);
    }
    for (unsigned i = 0; i < s->points; i++) {
        put_marker(p->out, place_x(p, log2(s->point[i].workers)),
                   place_y(p, log2(s->point[i].speedup)), s->published, stroke);
    }
}

/* Above the ideal line, where no curve is. */
static void put_legend(const struct panel *p, const struct plot *plot)
{
    char text[128];
    double x = p->left + 12, y = p->top + 14;
    size_t longest = 0;
    for (unsigned i = 0; i < plot->count; i++) {
        size_t length = strlen(plot->series[i].name) + (plot->series[i].published ? 12 : 0);
        longest = length > longest ? length : longest;
    }
    put_box(p->out, x - 4, y - 10, 40 + 7 * (double)longest, LEGEND_STEP * (plot->count + 1.0),
            "fill=\"white\"");
    for (unsigned i = 0; i < plot->count; i++, y += LEGEND_STEP) {
        const struct plot_series *s = &plot->series[i];
        const char *stroke = colour[colour_of(plot, i)];
        if (!s->published) {
            put_line(p->out, x, y, x + 22, y, stroke, "stroke-width=\"2\"");
        }
        put_marker(p->out, x + 11, y, s->published, stroke);
        snprintf(text, sizeof text, "%s%s", s->name, s->published ? " (published)" : "");
        put_text(p->out, x + 29, y + 4, "start", "", text);
    }
    put_line(p->out, x, y, x + 22, y, ink, "stroke-dasharray=\"5 4\"");
    put_text(p->out, x + 29, y + 4, "start", "", "ideal");
}

static void put_speedups(const struct plot *plot, struct panel p)
{
    double x_most = 2, y_least = 1;
    for (unsigned i = 0; i < plot->count; i++) {
        for (unsigned k = 0; k < plot->series[i].points; k++) {
            x_most = fmax(x_most, plot->series[i].point[k].workers);
            y_least = fmin(y_least, plot->series[i].point[k].speedup);
        }
    }
    p.x_high = p.y_high = ceil(log2(x_most));
    for (unsigned i = 0; i < plot->count; i++) {
        for (unsigned k = 0; k < plot->series[i].points; k++) {
            p.y_high = fmax(p.y_high, ceil(log2(plot->series[i].point[k].speedup)));
        }
    }
    p.y_low = floor(log2(y_least));
    put_powers(&p);
    put_frame(&p, "processors", "speedup");
    put_line(p.out, place_x(&p, 0), place_y(&p, 0), place_x(&p, p.x_high), place_y(&p, p.x_high),
             ink, "stroke-dasharray=\"5 4\"");
    for (unsigned i = 0; i < plot->count; i++) {
        put_series(&p, &plot->series[i], colour[colour_of(plot, i)]);
    }
    put_legend(&p, plot);
}

/* ---- overheads ---- */

/* 1, 2 or 5 times a power of ten, so that four to ten of them make up the range. */
static double round_step(double range)
{
    double power = pow(10, floor(log10(range / 4)));
    double times = range / 4 / power;
    return power * (times >= 5 ? 5 : times >= 2 ? 2 : 1);
}

static void put_percents(struct panel *p)
{
    char label[32];
    double step = round_step(p->y_high - p->y_low);
    p->y_low = floor(p->y_low / step) * step;
    p->y_high = ceil(p->y_high / step) * step;
    for (int i = 0; i <= (int)lround((p->y_high - p->y_low) / step); i++) {
        double at = p->y_low + i * step;
        snprintf(label, sizeof label, "%.0f%%", at * 100);
        put_y_tick(p, place_y(p, at), label);
    }
}

/* What is positive stands on the zero line, what is negative hangs from it. */
static void put_stack(const struct panel *p, const struct plot_point *point, double x, double width)
{
    double above = 0, below = 0;
    for (int k = 0; k < PLOT_OVERHEADS; k++) {
        char style[64];
        double value = point->overhead[k];
        double from = value >= 0 ? above : below, to = from + value;
        snprintf(style, sizeof style, "fill=\"%s\"", overhead[k].colour);
        put_box(p->out, x - width / 2, place_y(p, fmax(from, to)), width,
                fabs(place_y(p, from) - place_y(p, to)), style);
        above = value >= 0 ? to : above;
        below = value >= 0 ? below : to;
    }
}

static void put_overheads(const struct plot_series *s, struct panel p)
{
    p.y_high = 0.01;
    for (unsigned i = 0; i < s->points; i++) {
        double above = 0, below = 0;
        for (int k = 0; k < PLOT_OVERHEADS; k++) {
            double value = s->point[i].overhead[k];
            above += fmax(value, 0);
            below += fmin(value, 0);
        }
        p.y_high = fmax(p.y_high, above);
        p.y_low = fmin(p.y_low, below);
    }
    if (-p.y_low < p.y_high / 50) { /* rounding of the time, not worth half a panel */
        p.y_low = 0;
    }
    put_percents(&p);
    put_frame(&p, "processors", "overhead (100%: the work of one processor)");
    put_line(p.out, p.left, place_y(&p, 0), p.left + p.width, place_y(&p, 0), ink, "");
    double slot = p.width / s->points;
    for (unsigned i = 0; i < s->points; i++) {
        char label[32];
        double x = p.left + slot * (i + 0.5);
        put_stack(&p, &s->point[i], x, fmin(slot * 0.6, 60));
        snprintf(label, sizeof label, "%g", s->point[i].workers);
        put_x_tick(&p, x, label);
    }
    put_box(p.out, p.left + 8, p.top + 4, 150, LEGEND_STEP * (PLOT_OVERHEADS + 1),
            "fill=\"white\"");
    double y = p.top + 14; /* in the order of the stack, top down */
    for (int k = PLOT_OVERHEADS - 1; k >= 0; k--, y += LEGEND_STEP) {
        char style[64];
        snprintf(style, sizeof style, "fill=\"%s\"", overhead[k].colour);
        put_box(p.out, p.left + 12, y - 6, 12, 12, style);
        put_text(p.out, p.left + 31, y + 4, "start", "", overhead[k].name);
    }
    put_text(p.out, p.left + 12, y + 6, "start", "font-size=\"11\"", s->name);
}

/* ---- the picture ---- */

static bool is_drawable(const struct plot_series *s)
{
    bool good = s->points > 0;
    for (unsigned i = 0; i < s->points && good; i++) {
        good = s->point[i].workers >= 1 && isfinite(s->point[i].workers) &&
               s->point[i].speedup > 0 && isfinite(s->point[i].speedup);
        for (int k = 0; k < PLOT_OVERHEADS && good; k++) {
            good = isfinite(s->point[i].overhead[k]);
        }
    }
    return good;
}

enum err plot_write(const struct plot *plot, FILE *out)
{
    for (unsigned i = 0; i < plot->count; i++) {
        if (!is_drawable(&plot->series[i])) {
            return ERR_RANGE;
        }
    }
    if (plot->count == 0 || (plot->bars != NULL && !is_drawable(plot->bars))) {
        return ERR_RANGE;
    }
    int pane = MARGIN_LEFT + PANEL_WIDTH + MARGIN_RIGHT;
    int width = pane * (plot->bars != NULL ? 2 : 1);
    int height = MARGIN_TOP + PANEL_HEIGHT + MARGIN_BOTTOM;
    struct panel panel = {.out = out,
                          .left = MARGIN_LEFT,
                          .top = MARGIN_TOP,
                          .width = PANEL_WIDTH,
                          .height = PANEL_HEIGHT};

    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
            "viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"12\" fill=\"%s\">\n",
            width, height, width, height, ink);
    put_box(out, 0, 0, width, height, "fill=\"white\"");
    put_text(out, MARGIN_LEFT, 28, "start", "font-size=\"16\" font-weight=\"bold\"", plot->title);
    if (plot->note != NULL) {
        put_text(out, MARGIN_LEFT, 48, "start", "font-size=\"11\"", plot->note);
    }
    put_speedups(plot, panel);
    if (plot->bars != NULL) {
        panel.left += pane;
        put_overheads(plot->bars, panel);
    }
    fputs("</svg>\n", out);
    return ferror(out) ? ERR_IO : ERR_OK;
}
