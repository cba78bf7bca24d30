/* plot: what a picture holds, and which points have no place on it. */
#include "worker/cli/plot.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static enum err draw(const struct plot *plot, char **text)
{
    size_t size;
    FILE *out = open_memstream(text, &size);
    assert_non_null(out);
    enum err err = plot_write(plot, out);
    assert_int_equal(fclose(out), 0);
    return err;
}

static unsigned occurrences(const char *text, const char *wanted)
{
    unsigned n = 0;
    for (; (text = strstr(text, wanted)) != NULL; text++) {
        n++;
    }
    return n;
}

static void a_point_is_a_marker_and_a_bar_has_three_parts(void **state)
{
    (void)state;
    const struct plot_point ours[] = {{1, 1, {0}}, {64, 30, {1.1, 0.2, -0.1}}};
    const struct plot_point printed[] = {{64, 41, {0}}};
    const struct plot_series series[] = {{"abdada", false, ours, 2}, {"abdada", true, printed, 1}};
    struct plot plot = {"title", NULL, series, 2, NULL};
    char *text;
    assert_int_equal(draw(&plot, &text), ERR_OK);
    assert_int_equal(occurrences(text, "<circle"), 3); /* legend included */
    assert_int_equal(occurrences(text, "<polyline"), 1);
    assert_int_equal(occurrences(text, "abdada (published)"), 1);
    unsigned boxes = occurrences(text, "<rect");
    free(text);
    plot.bars = &series[0];
    assert_int_equal(draw(&plot, &text), ERR_OK);
    assert_int_equal(occurrences(text, "<rect"), boxes + 2 * PLOT_OVERHEADS + 1 + PLOT_OVERHEADS);
    assert_int_equal(occurrences(text, "nan"), 0);
    free(text);
}

static void names_are_escaped(void **state)
{
    (void)state;
    const struct plot_point point = {2, 2, {0}};
    const struct plot_series series = {"a<b & c>d", false, &point, 1};
    const struct plot plot = {"<&>", NULL, &series, 1, NULL};
    char *text;
    assert_int_equal(draw(&plot, &text), ERR_OK);
    assert_int_equal(occurrences(text, "a&lt;b &amp; c&gt;d"), 1);
    assert_int_equal(occurrences(text, ">&lt;&amp;&gt;<"), 1);
    free(text);
}

static void what_has_no_logarithm_is_refused(void **state)
{
    (void)state;
    const double bad[][2] = {{0, 1}, {1, 0}, {1, NAN}, {INFINITY, 1}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const struct plot_point point = {bad[i][0], bad[i][1], {0}};
        const struct plot_series series = {"bad", false, &point, 1};
        const struct plot plot = {"title", NULL, &series, 1, NULL};
        char *text;
        assert_int_equal(draw(&plot, &text), ERR_RANGE);
        free(text);
    }
    const struct plot none = {"title", NULL, NULL, 0, NULL};
    char *text;
    assert_int_equal(draw(&none, &text), ERR_RANGE);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_point_is_a_marker_and_a_bar_has_three_parts),
        cmocka_unit_test(names_are_escaped),
        cmocka_unit_test(what_has_no_logarithm_is_refused),
    };
    return cmocka_run_group_tests_name("plot", tests, NULL, NULL);
}
