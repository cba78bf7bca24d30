#include "tests/support/test_tt.h"

#include "worker/programs/line_reader.h"

#include <fcntl.h>
#include <unistd.h>

struct bed {
    struct line_reader reader;
    int in, out;
};

static void open_bed(struct bed *bed, size_t longest)
{
    int ends[2];
    assert_true(line_reader_open(&bed->reader, longest));
    assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
    bed->in = ends[1];
    bed->out = ends[0];
}

static void close_bed(struct bed *bed)
{
    close(bed->out);
    line_reader_close(&bed->reader);
    line_reader_close(&bed->reader);
}

/* In pieces of `size` bytes each; `lines`: what is read of it, each line behind a bar, a cut one
 * behind a colon. */
static void expect_lines(const char *text, size_t length, size_t size, size_t longest,
                         const char *lines)
{
    char got[256] = "";
    struct bed bed;
    open_bed(&bed, longest);
    for (size_t at = 0; !bed.reader.has_ended; at += size) {
        const size_t left = at < length ? length - at : 0, n = left < size ? left : size;
        assert_int_equal(write(bed.in, text + at, n), n);
        if (left == 0) {
            close(bed.in);
        }
        do {
            for (const char *line; (line = line_reader_next(&bed.reader)) != NULL;) {
                const size_t used = strlen(got);
                snprintf(got + used, sizeof got - used, "%c%s", bed.reader.is_cut ? ':' : '|',
                         line);
            }
        } while (line_reader_fill(&bed.reader, bed.out));
    }
    const char *last = line_reader_next(&bed.reader);
    if (last != NULL) {
        strcat(strcat(got, "|"), last);
    }
    assert_null(line_reader_next(&bed.reader));
    if (strcmp(got, lines) != 0) {
        fail_msg("pieces of %zu: '%s' in place of '%s'", size, got, lines);
    }
    close_bed(&bed);
}

static void a_line_ends_however_its_program_ends_it(void **state)
{
    (void)state;
    static const char text[] = "\xef\xbb\xbfone\ntwo\r\nthree\rfour\r\r\n\n\nzero\0byte\n\rlast";
    for (size_t size = 1; size < sizeof text; size++) {
        expect_lines(text, sizeof text - 1, size, 100, "|one|two|three|four||||zero byte||last");
    }
}

static void of_a_long_line_the_beginning_is_said(void **state)
{
    (void)state;
    static char text[20000], wanted[64];
    memset(text, 'x', sizeof text);
    memcpy(text + 100, "\nshort\n", 7);
    memcpy(text + sizeof text - 10, "\r\nlong\r\n12", 10);
    static const size_t size[] = {1, 7, 500, 4096, sizeof text};
    for (unsigned i = 0; i < 5; i++) {
        struct bed bed;
        unsigned cut = 0, whole = 0;
        open_bed(&bed, 4095);
        for (size_t at = 0; at < sizeof text; at += size[i]) {
            const size_t left = sizeof text - at, n = left < size[i] ? left : size[i];
            assert_int_equal(write(bed.in, text + at, n), n);
            do {
                for (const char *line; (line = line_reader_next(&bed.reader)) != NULL;) {
                    cut += bed.reader.is_cut;
                    whole += !bed.reader.is_cut;
                    snprintf(wanted, sizeof wanted, "%s", line);
                }
            } while (line_reader_fill(&bed.reader, bed.out));
        }
        assert_int_equal(cut, 1);
        assert_int_equal(whole, 3);
        assert_string_equal(wanted, "long");
        line_reader_clear(&bed.reader);
        assert_int_equal(write(bed.in, "new\n", 4), 4);
        assert_true(line_reader_fill(&bed.reader, bed.out));
        assert_string_equal(line_reader_next(&bed.reader), "new");
        assert_false(line_reader_fill(&bed.reader, bed.out) || bed.reader.has_ended);
        close(bed.in);
        assert_false(line_reader_fill(&bed.reader, bed.out));
        assert_true(bed.reader.has_ended);
        close_bed(&bed);
    }
    expect_lines("four\nfive5\nsix", 14, 3, 4, "|four:five5|six");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_ends_however_its_program_ends_it),
        cmocka_unit_test(of_a_long_line_the_beginning_is_said),
    };
    return cmocka_run_group_tests_name("line_reader", tests, NULL, NULL);
}
