/* Command lines (common/options), as ttserver and the other programs read them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/options.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct values {
    bool json;
    uint32_t shards;
    uint64_t memory, nodes;
    double rtt;
    const char *name;
    struct options_host_port listen;
};

/* `line` is cut at spaces; what is printed goes nowhere. */
static int parse(struct values *v, const char *line, const char **operand, unsigned *operands)
{
    const struct options_row table[] = {
        {.kind = OPTION_HEADING, .help = "Things:"},
        OPTIONS_ROW(FLAG, "json", NULL, &v->json, 0, 0, "say it to machines"),
        OPTIONS_ROW(U32, "shards", "N", &v->shards, 1, 8, "shards"),
        OPTIONS_ROW(SIZE, "memory", "SIZE", &v->memory, 1024, 0, "memory"),
        OPTIONS_ROW(U64, "nodes", "N", &v->nodes, 0, 0, "nodes"),
        OPTIONS_ROW(REAL, "rtt-us", "X", &v->rtt, 0, 0, "round trip"),
        {.name = "name",
         .argument = "TEXT",
         .help = "name",
         .kind = OPTION_TEXT,
         .letter = 'n',
         .value = &v->name},
        OPTIONS_ROW(HOST_PORT, "listen", "HOST:PORT", &v->listen, 0, 0, "where"),
        {0},
    };
    const struct options options = {.program = "test",
                                    .usage = "[WORD]...",
                                    .summary = "Tests.",
                                    .table = table,
                                    .operands_max = 3};
    static char text[512];
    char *argv[32] = {"test"};
    int argc = 1;
    snprintf(text, sizeof text, "%s", line);
    for (char *at = strtok(text, " "); at != NULL; at = strtok(NULL, " ")) {
        argv[argc++] = at;
    }
    fflush(NULL);
    int out = dup(1), err = dup(2), null = open("/dev/null", O_WRONLY);
    dup2(null, 1);
    dup2(null, 2);
    int outcome = options_parse(&options, argc, argv, operand, operands);
    fflush(NULL);
    dup2(out, 1);
    dup2(err, 2);
    close(out);
    close(err);
    close(null);
    return outcome;
}

static void values_are_read_in_every_form(void **state)
{
    struct values v = {.rtt = 7};
    const char *operand[3];
    unsigned operands;
    (void)state;
    assert_int_equal(parse(&v,
                           "--json --shards 3 one --memory=64M --nodes 18446744073709551615 -nx "
                           "--rtt-us 2.5 --lis [::1]:7400 - ",
                           operand, &operands),
                     OPTIONS_RUN);
    assert_true(v.json && v.shards == 3 && v.memory == 64u << 20);
    assert_true(v.nodes == UINT64_MAX && v.rtt == 2.5);
    assert_string_equal(v.name, "x");
    assert_string_equal(v.listen.host, "::1");
    assert_int_equal(v.listen.port, 7400);
    assert_int_equal(operands, 2);
    assert_string_equal(operand[0], "one");
    assert_string_equal(operand[1], "-");
}

static void operands_follow_two_dashes(void **state)
{
    struct values v = {.shards = 2};
    const char *operand[3];
    unsigned operands;
    (void)state;
    assert_int_equal(parse(&v, "- -n y -- --shards", operand, &operands), OPTIONS_RUN);
    assert_int_equal(operands, 2);
    assert_string_equal(operand[0], "-");
    assert_string_equal(operand[1], "--shards");
    assert_int_equal(v.shards, 2);
}

static void wrong_use_is_wrong(void **state)
{
    static const char *const lines[] = {
        "--shards 0",
        "--shards 9",
        "--shards 1x",
        "--shards",
        "--shards=-1",
        "--memory 1",
        "--memory 1Q",
        "--memory 99999999999G",
        "--nosuch",
        "-q",
        "--json=1",
        "--rtt-us -1",
        "--rtt-us nan",
        "--listen 7400",
        "--listen ::1:7400",
        "--listen a:b",
        "--listen a:65536",
        "--nodes 99999999999999999999",
        "--n 1", /* nodes or name */
        "1 2 3 4",
    };
    const char *operand[3];
    (void)state;
    for (unsigned i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        struct values v = {.shards = 2};
        if (parse(&v, lines[i], operand, NULL) != OPTIONS_WRONG) {
            fail_msg("taken: %s", lines[i]);
        }
    }
}

static void help_and_version_end_it(void **state)
{
    struct values v = {.shards = 2};
    (void)state;
    assert_int_equal(parse(&v, "--help", NULL, NULL), OPTIONS_DONE);
    assert_int_equal(parse(&v, "-h", NULL, NULL), OPTIONS_DONE);
    assert_int_equal(parse(&v, "--json --version --nosuch", NULL, NULL), OPTIONS_DONE);
}

static void lists_of_addresses_are_read(void **state)
{
    static struct options_servers list;
    char many[8 * OPTIONS_SERVERS_MAX] = "";
    (void)state;
    assert_int_equal(options_servers("a:1,[::2]:2,c.d:3", &list), ERR_OK);
    assert_int_equal(list.count, 3);
    assert_string_equal(list.server[1].host, "::2");
    assert_string_equal(list.server[2].host, "c.d");
    assert_int_equal(list.server[2].port, 3);
    for (unsigned i = 0; i < OPTIONS_SERVERS_MAX; i++) {
        sprintf(many + strlen(many), "%sa:%u", i == 0 ? "" : ",", 100 + i);
    }
    assert_int_equal(options_servers(many, &list), ERR_OK);
    strcat(many, ",b:1");
    assert_int_equal(options_servers(many, &list), ERR_FULL);
    assert_int_equal(list.count, OPTIONS_SERVERS_MAX);
    assert_int_equal(options_servers(" a:1,\tb.c:2 , [::2]:3\n", &list), ERR_OK);
    assert_int_equal(list.count, 3);
    assert_string_equal(list.server[0].host, "a");
    assert_string_equal(list.server[1].host, "b.c");
    assert_string_equal(list.server[2].host, "::2");
    assert_int_equal(list.server[2].port, 3);
    const char *const blanks[] = {"a b:1", "a :1", "a: 1", "[ ::1]:1", "a\033:1", " ", "a:1, ,b:1"};
    for (unsigned i = 0; i < sizeof blanks / sizeof *blanks; i++) {
        assert_int_equal(options_servers(blanks[i], &list), ERR_SYNTAX);
    }
    assert_int_equal(options_servers("a:1,b:1,a:2,A:1", &list), ERR_EXIST);
    assert_int_equal(options_servers("a:0", &list), ERR_RANGE);
    assert_int_equal(options_servers("a:1,", &list), ERR_SYNTAX);
    assert_int_equal(options_servers("", &list), ERR_SYNTAX);
    assert_int_equal(options_servers("a,b:1", &list), ERR_SYNTAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_read_in_every_form),
        cmocka_unit_test(operands_follow_two_dashes),
        cmocka_unit_test(wrong_use_is_wrong),
        cmocka_unit_test(help_and_version_end_it),
        cmocka_unit_test(lists_of_addresses_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
