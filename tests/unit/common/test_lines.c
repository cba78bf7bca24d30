/* Lines of files, whatever program wrote them. */
#include "tests/support/test_tt.h"

#include "common/lines.h"

static void check_lines(const char *text, size_t size, const char *const *expected, unsigned count)
{
    struct lines l = {.file = fmemopen((void *)(uintptr_t)text, size, "r")};
    assert_non_null(l.file);
    for (unsigned i = 0; i < count; i++) {
        assert_true(lines_next(&l));
        assert_string_equal(l.text, expected[i]);
        assert_int_equal(l.number, i + 1);
    }
    assert_false(lines_next(&l));
    assert_true(feof(l.file));
    fclose(l.file);
    lines_close(&l);
    lines_close(&l);
}

static void every_end_is_one(void **state)
{
    (void)state;
    static const char *const ab[] = {"a", "b"}, *const gap[] = {"a", "", "b"};
    check_lines("a\nb\n", 4, ab, 2);
    check_lines("a\r\nb\r\n", 6, ab, 2);
    check_lines("a\rb\r", 4, ab, 2);
    check_lines("a\rb", 3, ab, 2);
    check_lines("a\n\nb", 4, gap, 3);
    check_lines("a\r\rb", 4, gap, 3);
    check_lines("a\n\rb", 4, gap, 3);
    check_lines("a\r\n\r\nb", 6, gap, 3);
    check_lines("a\r\nb\r\n\x1a", 7, ab, 2);
    check_lines("a\nb\x1a\x1a", 5, ab, 2);
    check_lines("a\n\nb\x1a", 5, gap, 3);
}

static void only_the_first_line_loses_its_bom(void **state)
{
    (void)state;
    static const char *const expected[] = {"a", "\xef\xbb\xbf"
                                                "b"};
    check_lines("\xef\xbb\xbf"
                "a\n\xef\xbb\xbf"
                "b\n",
                10, expected, 2);
}

static void zero_bytes_and_long_lines_are_kept(void **state)
{
    (void)state;
    static char text[5002], line[5001];
    memset(text, 'x', 5000);
    text[17] = '\0';
    text[5000] = '\n';
    memset(line, 'x', 5000);
    line[17] = ' ';
    const char *const expected[] = {line};
    check_lines(text, 5001, expected, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_end_is_one),
        cmocka_unit_test(only_the_first_line_loses_its_bom),
        cmocka_unit_test(zero_bytes_and_long_lines_are_kept),
    };
    return cmocka_run_group_tests_name("lines", tests, NULL, NULL);
}
