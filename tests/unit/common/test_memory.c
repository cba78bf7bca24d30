/* What a container may have, as the files of cgroups say. */
#include "common/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>

#include <cmocka.h>

enum { ROOM = 256 };

/* A folder in place of /sys/fs/cgroup. */
struct tree {
    char root[64], list[ROOM];
};

static void write_file(const struct tree *t, const char *path, const char *text)
{
    char file[2 * ROOM];
    snprintf(file, sizeof file, "%s/%s", t->root, path);
    for (char *slash = file + strlen(t->root) + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = '\0';
        mkdir(file, 0700);
        *slash = '/';
    }
    FILE *out = fopen(file, "w");
    assert_non_null(out);
    fputs(text, out);
    fclose(out);
}

static int make_tree(void **state)
{
    static struct tree tree;
    snprintf(tree.root, sizeof tree.root, "/tmp/abdada-cgroup-XXXXXX");
    assert_non_null(mkdtemp(tree.root));
    snprintf(tree.list, sizeof tree.list, "%s/list", tree.root);
    *state = &tree;
    return 0;
}

static int remove_tree(void **state)
{
    const struct tree *t = *state;
    char command[ROOM];
    snprintf(command, sizeof command, "rm -r %s", t->root);
    return system(command);
}

static uint64_t bytes(const struct tree *t)
{
    return memory_cgroup_bytes(t->list, t->root);
}

static void the_least_limit_on_the_way_counts(void **state)
{
    struct tree *t = *state;
    write_file(t, "list", "0::/a/b\n");
    assert_true(bytes(t) == UINT64_MAX);
    write_file(t, "a/b/memory.max", "max\n");
    assert_true(bytes(t) == UINT64_MAX);
    write_file(t, "a/memory.max", "300\n");
    assert_int_equal(bytes(t), 300);
    write_file(t, "a/b/memory.max", "200\n");
    assert_int_equal(bytes(t), 200);
    write_file(t, "memory.max", "100\n");
    assert_int_equal(bytes(t), 100);
    write_file(t, "ab/memory.max", "1\n");
    assert_int_equal(bytes(t), 100);
}

static void version_1_is_read(void **state)
{
    struct tree *t = *state;
    write_file(t, "list", "5:cpu,cpuacct:/c\n4:memory:/docker/1f\n0::/\n");
    write_file(t, "cpu,cpuacct/c/memory.limit_in_bytes", "1\n");
    write_file(t, "memory/memory.limit_in_bytes", "4000\n"); /* the container's own */
    assert_int_equal(bytes(t), 4000);
    write_file(t, "memory/docker/1f/memory.limit_in_bytes", "3000\n");
    assert_int_equal(bytes(t), 3000);
    write_file(t, "unified/memory.max", "2000\n");
    assert_int_equal(bytes(t), 2000);
}

static void what_cannot_be_read_is_no_limit(void **state)
{
    struct tree *t = *state;
    assert_true(bytes(t) == UINT64_MAX);
    write_file(t, "list", "\n:\nmemory\n0::\n4:memory:\n");
    assert_true(bytes(t) == UINT64_MAX);
    write_file(t, "memory.max", "");
    assert_true(bytes(t) == UINT64_MAX);
}

static void more_than_the_machine_has_is_refused(void **state)
{
    char why[128] = "";
    (void)state;
    assert_false(memory_has_room(memory_machine_bytes() + 1, why, sizeof why));
    assert_non_null(strstr(why, "MiB of this machine"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_least_limit_on_the_way_counts, make_tree, remove_tree),
        cmocka_unit_test_setup_teardown(version_1_is_read, make_tree, remove_tree),
        cmocka_unit_test_setup_teardown(what_cannot_be_read_is_no_limit, make_tree, remove_tree),
        cmocka_unit_test(more_than_the_machine_has_is_refused),
    };
    return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
