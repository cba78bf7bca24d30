/* What a container may have, as the files of cgroups say. */
#include "common/memory.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

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
    return memory_cgroup_bytes(t->list, t->root, 0);
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

static void what_others_use_of_a_limit_is_taken(void **state)
{
    struct tree *t = *state;
    write_file(t, "list", "0::/a/b\n");
    write_file(t, "a/memory.max", "300\n");
    write_file(t, "a/b/memory.max", "250\n");
    write_file(t, "a/b/memory.stat", "anon 20\nfile 200\nshmem 100\n");
    assert_int_equal(bytes(t), 230);
    write_file(t, "a/memory.stat", "file 200\nanon 120\n");
    assert_int_equal(bytes(t), 180);
    assert_int_equal(memory_cgroup_bytes(t->list, t->root, 20), 200);
    write_file(t, "a/memory.stat", "anon 400\n");
    assert_int_equal(bytes(t), 0);
    write_file(t, "list", "4:memory:/c\n");
    write_file(t, "memory/c/memory.limit_in_bytes", "100\n");
    write_file(t, "memory/c/memory.stat", "cache 9\nrss 1\ntotal_cache 60\ntotal_rss 30\n");
    assert_int_equal(bytes(t), 70);
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
    assert_false(memory_has_room(UINT64_MAX, 0, 1, why, sizeof why));
    assert_int_equal(strncmp(why, "exceeds th", 10), 0);
    assert_false(memory_has_room(memory_for_tables(1) + (1 << 20), 1 << 20, 1, why, sizeof why));
    assert_int_equal(strncmp(why, "and the 17.5 MiB that the program takes besides exceed th", 57),
                     0);
    assert_true(memory_has_room(1, 1, 1, why, sizeof why));
}

static uint64_t pages_of_now(unsigned field)
{
    uint64_t found[6] = {0};
    FILE *in = fopen("/proc/self/statm", "r");
    assert_non_null(in);
    for (unsigned i = 0; i < 6; i++) {
        assert_int_equal(fscanf(in, "%" SCNu64, &found[i]), 1);
    }
    fclose(in);
    return found[field] * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* In a process of its own, which may take 64 MiB more. */
static void what_the_limits_of_a_process_leave_counts(void **state)
{
    enum { MORE = 64 << 20, STACK = 1 << 20 };
    static const struct {
        int limit;
        unsigned field; /* of what counts, in /proc/self/statm */
        const char *words;
    } limits[] = {{RLIMIT_AS, 0, "that `ulimit -v` leaves"},
                  {RLIMIT_DATA, 5, "that `ulimit -d` leaves"}};
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        const pid_t child = fork();
        if (child == 0) {
            char why[128] = "";
            const rlim_t all = pages_of_now(limits[i].field) + MORE;
            const struct rlimit stack = {STACK, STACK}, bound = {all, all};
            const bool is_set =
                setrlimit(RLIMIT_STACK, &stack) == 0 && setrlimit(limits[i].limit, &bound) == 0;
            const uint64_t room = memory_for_tables(1);
            _exit(!is_set || room == 0 || room >= MORE - STACK ||
                  !memory_has_room(room / 2, room / 4, 1, why, sizeof why) ||
                  memory_has_room(MORE, 0, 1, why, sizeof why) ||
                  strstr(why, limits[i].words) == NULL);
        }
        int status = -1;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
}

static void a_number_of_bytes_has_its_unit(void **state)
{
    char text[MEMORY_TEXT_MAX];
    (void)state;
    assert_string_equal(memory_text(UINT64_C(900) << 40, text), "900 TiB");
    assert_string_equal(memory_text(UINT64_C(24105) << 20, text), "23.5 GiB");
    assert_string_equal(memory_text((16 << 20) + (512 << 10), text), "16.5 MiB");
    assert_string_equal(memory_text(1 << 20, text), "1 MiB");
    assert_string_equal(memory_text((UINT64_C(24) << 30) - (40 << 20), text), "23.9 GiB");
    assert_string_equal(memory_text((1 << 30) - 1, text), "1023.9 MiB");
    assert_string_equal(memory_text(0, text), "0 KiB");
    assert_string_equal(memory_text(UINT64_MAX, text), "16 EiB");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_least_limit_on_the_way_counts, make_tree, remove_tree),
        cmocka_unit_test_setup_teardown(version_1_is_read, make_tree, remove_tree),
        cmocka_unit_test_setup_teardown(what_others_use_of_a_limit_is_taken, make_tree,
                                        remove_tree),
        cmocka_unit_test_setup_teardown(what_cannot_be_read_is_no_limit, make_tree, remove_tree),
        cmocka_unit_test(more_than_the_machine_has_is_refused),
        cmocka_unit_test(what_the_limits_of_a_process_leave_counts),
        cmocka_unit_test(a_number_of_bytes_has_its_unit),
    };
    return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
