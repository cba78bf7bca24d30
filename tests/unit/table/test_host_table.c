/* The table that the processes of a host share: real processes, some of them killed. */
#include "tests/support/test_host_table.h"
#include "tests/support/test_tt.h"

#include "common/rng.h"
#include "worker/table/embedded.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

enum { CHILDREN = 6, ROUNDS = 40 };

/* ---- one table for a group ---- */

static void the_same_group_and_size_is_one_table(void **state)
{
    (void)state;
    uint64_t group = fresh_group();
    struct host_table *a = NULL, *b = NULL, *larger = NULL, *other = NULL;
    assert_int_equal(open_when_room(&a, group, BYTES), ERR_OK);
    assert_int_equal(open_when_room(&b, group, BYTES), ERR_OK);
    assert_int_equal(open_when_room(&larger, group, 2 * BYTES), ERR_OK);
    assert_int_equal(open_when_room(&other, group + 2, BYTES), ERR_OK);
    memcpy(host_table_memory(a), "here", 5);
    assert_string_equal(host_table_memory(b), "here");
    assert_string_equal(host_table_memory(larger), "");
    assert_string_equal(host_table_memory(other), "");
    assert_int_equal(host_table_state(a)->table_id, host_table_state(b)->table_id);
    assert_true(host_table_state(a)->table_id != host_table_state(other)->table_id);
    ((char *)host_table_memory(larger))[host_table_bytes(larger) - 1] = 1; /* all of it is there */
    host_table_close(&a);
    assert_string_equal(host_table_memory(b), "here");
    host_table_close(&b);
    host_table_close(&larger);
    host_table_close(&other);
    /* The last one removed it: the next one begins anew. */
    assert_int_equal(open_when_room(&a, group, BYTES), ERR_OK);
    assert_string_equal(host_table_memory(a), "");
    host_table_close(&a);
}

static void the_order_of_servers_says_nothing(void **state)
{
    (void)state;
    struct options_host_port two[2] = {{"left", 1}, {"right", 2}}, turned[2] = {two[1], two[0]};
    assert_int_equal(options_servers_hash(two, 2), options_servers_hash(turned, 2));
    assert_true(options_servers_hash(two, 2) != options_servers_hash(two, 1));
    turned[0].port = 3;
    assert_true(options_servers_hash(two, 2) != options_servers_hash(turned, 2));
    assert_true(options_servers_hash(two, 0) != 0);
}

/* Bytes of this process's memory there that are in large pages of a shared file. */
static size_t in_large_pages(const void *at)
{
    char line[PATH_BYTES], start[32];
    unsigned long kib = 0;
    FILE *maps = fopen("/proc/self/smaps", "r");
    assert_non_null(maps);
    snprintf(start, sizeof start, "%" PRIxPTR "-", (uintptr_t)at);
    bool here = false;
    while (kib == 0 && fgets(line, sizeof line, maps) != NULL) {
        here = here || strncmp(line, start, strlen(start)) == 0;
        if (here && sscanf(line, "ShmemPmdMapped: %lu kB", &kib) == 1) {
            break;
        }
    }
    fclose(maps);
    return kib << 10;
}

/* Of two views of a table; false: the system has no memory for it, or cannot. */
static bool are_pages_large(void)
{
    enum { LARGE = 2 << 20, WANTED = 12 * LARGE };
    uint64_t group = fresh_group();
    struct host_table *a = NULL, *b = NULL;
    assert_int_equal(open_when_room(&a, group, WANTED + BYTES), ERR_OK);
    assert_int_equal(open_when_room(&b, group, WANTED + BYTES), ERR_OK);
    size_t first = in_large_pages(host_table_memory(a)),
           second = in_large_pages(host_table_memory(b));
    bool possible = madvise(host_table_memory(a), WANTED, MADV_COLLAPSE) == 0;
    size_t zeros = 0;
    for (size_t at = 0; at < host_table_bytes(a); at++) {
        zeros += ((char *)host_table_memory(a))[at] == 0;
    }
    assert_int_equal(zeros, host_table_bytes(a));
    host_table_close(&a);
    host_table_close(&b);
    if (!possible) {
        skip();
    }
    return first == WANTED && second == WANTED;
}

/* Memory may be in pieces at one moment and whole at the next. */
static void pages_are_large_where_the_system_can(void **state)
{
    (void)state;
    bool are_large = false;
    for (unsigned i = 0; i < 5 && !are_large; i++) {
        are_large = are_pages_large();
    }
    assert_true(are_large);
}

/* ---- processes ---- */

static void wait_for(pid_t child, int expected)
{
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), expected);
}

/* Each stores what the next has to find. */
static int play(uint64_t group, unsigned number, int from, int to)
{
    struct embedded *table = NULL;
    char byte;
    if (open_embedded_when_room(&table, BYTES, 1, group) != ERR_OK || !embedded_is_on_host(table) ||
        read(from, &byte, 1) != 1) {
        return 1;
    }
    struct tt_ask ask = {.key = rng_mix(number), .alpha = -1, .beta = 1, .depth = 3};
    struct tt_answer answer;
    if (!embedded_find(table, &ask, &answer) || answer.score != 7) {
        return 2;
    }
    struct tt_store next = tt_result(rng_mix(number + 1), 3, TT_EXACT, 7, 1);
    embedded_put(&(struct embedded_port){.table = table}, &next);
    if (write(to, "x", 1) != 1 || read(from, &byte, 1) != 0) { /* stays until all have played */
        return 3;
    }
    embedded_close(&table);
    return 0;
}

static void processes_find_what_others_stored(void **state)
{
    (void)state;
    uint64_t group = fresh_group();
    int line[CHILDREN + 1][2];
    pid_t child[CHILDREN];
    char byte;
    for (unsigned i = 0; i <= CHILDREN; i++) {
        assert_int_equal(pipe(line[i]), 0);
    }
    for (unsigned i = 0; i < CHILDREN; i++) {
        child[i] = fork();
        if (child[i] == 0) {
            for (unsigned k = 0; k <= CHILDREN; k++) {
                if (k != i + 1) {
                    close(line[k][1]);
                }
            }
            _exit(play(group, i, line[i][0], line[i + 1][1]));
        }
    }
    for (unsigned k = 1; k <= CHILDREN; k++) { /* a child that fails is an end of file for all */
        close(line[k][1]);
    }
    struct embedded *table = NULL;
    assert_int_equal(open_embedded_when_room(&table, BYTES, 1, group), ERR_OK);
    struct tt_store first = tt_result(rng_mix(0), 3, TT_EXACT, 7, 1);
    embedded_put(&(struct embedded_port){.table = table}, &first);
    assert_int_equal(write(line[0][1], "x", 1), 1);
    assert_int_equal(read(line[CHILDREN][0], &byte, 1), 1);
    close(line[0][1]);
    for (unsigned i = 0; i < CHILDREN; i++) {
        wait_for(child[i], 0);
        close(line[i][0]);
    }
    close(line[CHILDREN][0]);
    embedded_close(&table);
}

static void what_a_killed_process_left_is_removed(void **state)
{
    (void)state;
    char path[PATH_BYTES];
    uint64_t group = fresh_group();
    int line[2];
    char byte;
    path_of(group, path, sizeof path);
    assert_int_equal(pipe(line), 0);
    struct host_table *living = NULL, *next = NULL;
    assert_int_equal(open_when_room(&living, fresh_group(), BYTES), ERR_OK);
    pid_t child = fork();
    if (child == 0) {
        struct host_table *host = NULL;
        _exit(open_when_room(&host, group, BYTES) != ERR_OK || write(line[1], "x", 1) != 1 ||
              pause());
    }
    close(line[1]);
    assert_int_equal(read(line[0], &byte, 1), 1);
    assert_int_equal(open_when_room(&next, fresh_group(), BYTES), ERR_OK);
    host_table_close(&next);
    assert_int_equal(access(path, F_OK), 0); /* a process has it */
    kill(child, SIGKILL);
    wait_for(child, -SIGKILL);
    assert_int_equal(open_when_room(&next, fresh_group(), BYTES), ERR_OK);
    assert_int_equal(access(path, F_OK), -1);
    path_of_table(living, path, sizeof path);
    assert_int_equal(access(path, F_OK), 0);
    host_table_close(&next);
    host_table_close(&living);
    close(line[0]);
}

static void a_killed_process_leaves_no_results_to_its_successor(void **state)
{
    (void)state;
    uint64_t group = fresh_group();
    pid_t child = fork();
    if (child == 0) {
        struct host_table *host = NULL;
        if (open_when_room(&host, group, BYTES) == ERR_OK) {
            memcpy(host_table_memory(host), "old", 4);
            kill(getpid(), SIGKILL);
        }
        _exit(1);
    }
    wait_for(child, -SIGKILL);
    struct host_table *host = NULL;
    assert_int_equal(open_when_room(&host, group, BYTES), ERR_OK);
    assert_string_equal(host_table_memory(host), "");
    host_table_close(&host);
}

/* However many end at the same moment, the last one removes the file. */
static void processes_that_end_together_leave_nothing(void **state)
{
    (void)state;
    char path[PATH_BYTES];
    uint64_t group = fresh_group();
    path_of(group, path, sizeof path);
    for (unsigned round = 0; round < 100; round++) {
        int ready[2], go[2];
        pid_t child[CHILDREN];
        unsigned children = 2 + round % (CHILDREN - 1);
        char bytes[CHILDREN];
        assert_int_equal(pipe(ready), 0);
        assert_int_equal(pipe(go), 0);
        for (unsigned i = 0; i < children; i++) {
            child[i] = fork();
            if (child[i] == 0) {
                struct host_table *host = NULL;
                close(go[1]);
                bool ok =
                    open_when_room(&host, group, BYTES) == ERR_OK && write(ready[1], "x", 1) == 1;
                ok = ok && read(go[0], bytes, 1) == 0; /* its end wakes all at once */
                host_table_close(&host);
                _exit(!ok);
            }
        }
        close(ready[1]);
        for (unsigned i = 0; i < children; i++) {
            assert_int_equal(read(ready[0], bytes, 1), 1);
        }
        assert_int_equal(access(path, F_OK), 0);
        close(go[1]);
        for (unsigned i = 0; i < children; i++) {
            wait_for(child[i], 0);
        }
        assert_int_equal(access(path, F_OK), -1);
        close(ready[0]);
        close(go[0]);
    }
}

/* Comes and goes; a process that has the table sees what all others with it wrote. */
static int come_and_go(uint64_t group, uint64_t seed)
{
    for (unsigned i = 0; i < ROUNDS; i++) {
        struct host_table *a = NULL, *b = NULL;
        if (open_when_room(&a, group, BYTES) != ERR_OK) {
            return 1;
        }
        volatile char *end = (char *)host_table_memory(a) + host_table_bytes(a) - 1;
        *end = (char)i; /* a signal, were the file cut short */
        if (rng_below(&seed, 8) == 0) {
            kill(getpid(), SIGKILL);
        }
        if (rng_below(&seed, 2) == 0) {
            if (open_when_room(&b, group, BYTES) != ERR_OK) {
                return 2;
            }
            if (host_table_state(a)->table_id != host_table_state(b)->table_id) {
                return 3;
            }
        }
        host_table_close(&a);
        host_table_close(&b);
    }
    return 0;
}

static void any_order_of_coming_going_and_dying_is_right(void **state)
{
    (void)state;
    uint64_t seed = tt_seed(), group = fresh_group();
    for (unsigned round = 0; round < 10; round++) {
        pid_t child[CHILDREN];
        for (unsigned i = 0; i < CHILDREN; i++) {
            uint64_t own = rng_next(&seed);
            child[i] = fork();
            if (child[i] == 0) {
                _exit(come_and_go(group, own));
            }
        }
        for (unsigned i = 0; i < CHILDREN; i++) {
            int status;
            assert_int_equal(waitpid(child[i], &status, 0), child[i]);
            assert_true(WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL
                                            : WEXITSTATUS(status) == 0);
        }
    }
}

/* ---- what cannot be ---- */

/* As two processes: each has in-flight entries of its own, and the claims in common. */
static void a_node_that_another_process_is_in_is_busy(void **state)
{
    (void)state;
    uint64_t group = fresh_group();
    struct embedded *table[2] = {NULL, NULL};
    struct embedded_port slot[2];
    struct table_port port[2];
    struct table_ticket ticket = {.state = 0};
    struct tt_answer answer;
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(open_embedded_when_room(&table[i], BYTES, 1, group), ERR_OK);
        assert_true(embedded_is_on_host(table[i]));
        slot[i] = (struct embedded_port){
            .table = table[i], .inflight_depth_max = 3, .place.name = (uint16_t)(7 + i)};
        port[i] = embedded_table_port(&slot[i]);
        embedded_begin(&slot[i], 1, 0);
        (void)port[i].inflight_depth(port[i].self, 9, &(bool){false});
    }
    struct tt_ask alone = {.key = 77, .alpha = -1, .beta = 1, .depth = 5, .flags = TT_EXCLUSIVE};
    struct tt_ask beside = alone;
    beside.flags = 0;
    struct tt_store result = tt_result(77, 5, TT_LOWER, 0, 1);
    struct tt_release leave = {.key = 77, .depth = 5};
#define ASK(i, ask) port[i].await(port[i].self, &(ask), &ticket, &answer)
    ASK(0, alone);
    assert_int_equal(answer.verdict, TT_OPEN);
    ASK(1, alone);
    assert_int_equal(answer.verdict, TT_BUSY);
    assert_int_equal(embedded_inflight(table[1]), 0);
    port[0].release(port[0].self, &ticket, &leave);
    ASK(1, alone);
    assert_int_equal(answer.verdict, TT_OPEN);
    port[1].store(port[1].self, &ticket, &result);
    ASK(0, alone);
    assert_int_equal(answer.verdict, TT_OPEN);
    /* As if the first had been killed in it: the second comes beside it, and the claim goes with
     * the second. */
    ASK(1, beside);
    assert_int_equal(answer.verdict, TT_OPEN);
    assert_int_equal(answer.nproc, 2);
    port[1].release(port[1].self, &ticket, &leave);
    ASK(1, alone);
    assert_int_equal(answer.verdict, TT_OPEN);
    port[1].release(port[1].self, &ticket, &leave);
    port[0].release(port[0].self, &ticket, &leave);
#undef ASK
    embedded_close(&table[0]);
    embedded_close(&table[1]);
}

static void a_file_that_others_may_open_is_not_used(void **state)
{
    (void)state;
    char path[PATH_BYTES];
    uint64_t group = fresh_group();
    struct host_table *first = NULL, *second = NULL;
    struct embedded *table = NULL;
    assert_int_equal(open_when_room(&first, group, BYTES), ERR_OK);
    path_of_table(first, path, sizeof path);
    assert_int_equal(chmod(path, 0644), 0);
    assert_int_equal(host_table_open(&second, group, BYTES, NULL), ERR_IO);
    assert_int_equal(open_embedded_when_room(&table, BYTES, 1, group), ERR_OK);
    assert_false(embedded_is_on_host(table));
    embedded_close(&table);
    assert_int_equal(chmod(path, 0600), 0);
    host_table_close(&first);
}

/* Names like ours: a pipe, a link, a folder, and a file that others may read. */
static void what_is_not_ours_is_not_touched(void **state)
{
    (void)state;
    enum { NAMES = 4 };
    char path[NAMES][PATH_BYTES];
    struct host_table *host = NULL;
    for (unsigned i = 0; i < NAMES; i++) {
        snprintf(path[i], sizeof path[i], "/dev/shm/abdada-%u-test-%" PRIx64, (unsigned)geteuid(),
                 fresh_group());
    }
    assert_int_equal(mkfifo(path[0], 0600), 0);
    assert_int_equal(symlink("/etc/passwd", path[1]), 0);
    assert_int_equal(mkdir(path[2], 0700), 0);
    int file = open(path[3], O_CREAT | O_RDWR | O_EXCL, 0644);
    assert_true(file >= 0 && write(file, "x", 1) == 1 && fchmod(file, 0644) == 0);
    close(file);
    assert_int_equal(open_when_room(&host, fresh_group(), BYTES), ERR_OK);
    host_table_close(&host);
    for (unsigned i = 0; i < NAMES; i++) {
        struct stat found;
        assert_int_equal(lstat(path[i], &found), 0);
        assert_int_equal(remove(path[i]), 0);
    }
}

static void a_link_in_the_place_of_a_table_is_not_followed(void **state)
{
    (void)state;
    char path[PATH_BYTES];
    uint64_t group = fresh_group();
    struct host_table *host = NULL;
    path_of(group, path, sizeof path);
    assert_int_equal(symlink("/dev/shm/abdada-elsewhere", path), 0);
    assert_int_equal(host_table_open(&host, group, BYTES, NULL), ERR_IO);
    assert_int_equal(errno, ELOOP);
    assert_int_equal(unlink(path), 0);
}

/* Stopped in the middle of it: others do not wait for ever. */
static void a_process_stuck_in_making_a_table_is_not_waited_for_forever(void **state)
{
    (void)state;
    char path[PATH_BYTES];
    uint64_t group = fresh_group();
    struct host_table *host = NULL;
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    path_of(group, path, sizeof path);
    int file = open(path, O_CREAT | O_RDWR | O_EXCL, 0600);
    assert_true(file >= 0);
    assert_int_equal(fcntl(file, F_OFD_SETLK, &whole), 0);
    assert_int_equal(host_table_open(&host, group, BYTES, NULL), ERR_IO);
    assert_int_equal(errno, ETIMEDOUT);
    close(file);
    assert_int_equal(open_when_room(&host, group, BYTES), ERR_OK);
    host_table_close(&host);
    assert_int_equal(access(path, F_OK), -1);
}

static void what_has_no_room_is_refused_and_leaves_nothing(void **state)
{
    (void)state;
    struct host_table *host = NULL;
    uint64_t group = fresh_group();
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(host_table_open(&host, group, (size_t)1 << 50, NULL), ERR_IO);
        assert_true(host == NULL && (errno == ENOSPC || errno == EFBIG));
        errno = 0;
    }
    assert_int_equal(open_when_room(&host, group, BYTES), ERR_OK);
    host_table_close(&host);
}

static void searchers_that_share_a_table_take_cpus_of_their_own(void **state)
{
    (void)state;
    uint64_t group = fresh_group();
    struct embedded *a = NULL, *b = NULL, *own = NULL;
    cpu_set_t allowed, one;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) {
        skip(); /* more CPUs than a set has room for */
    }
    assert_int_equal(open_embedded_when_room(&a, BYTES, 1, group), ERR_OK);
    assert_int_equal(open_embedded_when_room(&b, BYTES, 1, group), ERR_OK);
    assert_int_equal(open_embedded_when_room(&own, BYTES, 1, fresh_group()), ERR_OK);
    struct embedded_port port[3] = {{.table = a}, {.table = b}, {.table = own}};
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0); /* nowhere else to go */
    for (unsigned i = 0; i < 3; i++) {
        port[i].place.name = (uint16_t)i;
        embedded_update_placement(&port[i], 1000000);
    }
    assert_int_equal(sched_setaffinity(0, sizeof allowed, &allowed), 0);
    assert_true(CPU_ISSET(port[0].place.recorded - 1, &one));
    assert_int_equal(port[1].place.recorded, 0);
    assert_int_equal(port[2].place.recorded, port[0].place.recorded);
    embedded_close(&a);
    embedded_close(&b);
    embedded_close(&own);
}

static void a_shared_table_is_not_cleared_and_ages_once_a_job(void **state)
{
    (void)state;
    uint64_t group = fresh_group();
    struct embedded *a = NULL, *b = NULL, *own = NULL;
    struct tt_ask ask = {.key = 99, .alpha = -1, .beta = 1, .depth = 3};
    struct tt_store store = tt_result(99, 3, TT_EXACT, 7, 1);
    struct tt_answer answer;
    assert_int_equal(open_embedded_when_room(&a, BYTES, 1, group), ERR_OK);
    assert_int_equal(open_embedded_when_room(&b, BYTES, 1, group), ERR_OK);
    assert_int_equal(embedded_open(&own, BYTES, 1), ERR_OK);
    assert_true(embedded_is_on_host(a) && embedded_is_on_host(b) && !embedded_is_on_host(own));
    assert_int_equal(embedded_table_id(a), embedded_table_id(b));
    struct embedded_port port_a = {.table = a}, port_b = {.table = b}, port_own = {.table = own};
    embedded_begin(&port_a, 4, 0);
    embedded_begin(&port_b, 4, 0);
    embedded_put(&port_a, &store);
    embedded_put(&port_own, &store);
    embedded_clear(a);
    embedded_clear(own);
    assert_true(embedded_find(b, &ask, &answer));
    assert_false(embedded_find(own, &ask, &answer));
    for (uint64_t key = 0; key < 20000; key++) {
        struct tt_store more = tt_result(rng_mix(key), 3, TT_EXACT, 7, 1);
        embedded_put(&port_a, &more);
    }
    unsigned used = embedded_permille(b, 0);
    assert_true(used > 0);
    embedded_begin(&port_a, 5, 0);
    assert_int_equal(embedded_permille(b, 0), 0);
    for (uint64_t key = 0; key < 20000; key++) {
        struct tt_store more = tt_result(rng_mix(key), 3, TT_EXACT, 7, 1);
        embedded_put(&port_a, &more);
    }
    embedded_begin(&port_b, 5, 0);
    embedded_begin(&port_b, 5, 0);
    assert_true(embedded_permille(a, 0) > 0);
    embedded_begin(&port_b, 0, 0);
    assert_int_equal(embedded_permille(a, 0), 0);
    embedded_begin(&port_a, 6, 0); /* two jobs by turns: neither is new */
    embedded_begin(&port_b, 5, 0);
    unsigned kept = embedded_permille(a, 0);
    embedded_put(&port_a, &store);
    embedded_begin(&port_a, 6, 0);
    embedded_begin(&port_b, 5, 0);
    assert_true(embedded_permille(a, 0) >= kept);
    assert_true(embedded_find(a, &ask, &answer));
    embedded_begin(&port_b, 6 + HOST_TABLE_JOBS, 1); /* where the other is remembered ... */
    embedded_begin(&port_a, 6, 0); /* ... which begins its next position */
    assert_true(embedded_permille(a, 0) >= kept);
    embedded_close(&b); /* alone with it: now it can be cleared */
    embedded_clear(a);
    assert_false(embedded_find(a, &ask, &answer));
    assert_int_equal(open_embedded_when_room(&b, BYTES, 1, group), ERR_OK);
    assert_true(embedded_is_on_host(b));
    embedded_saw_other_table(a, 1234);
    assert_int_equal(embedded_other_table_until_us(b), 1234);
    assert_int_equal(embedded_other_table_until_us(own), 0);
    embedded_close(&a);
    embedded_close(&b);
    embedded_close(&own);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_group_and_size_is_one_table),
        cmocka_unit_test(the_order_of_servers_says_nothing),
        cmocka_unit_test(pages_are_large_where_the_system_can),
        cmocka_unit_test(processes_find_what_others_stored),
        cmocka_unit_test(what_a_killed_process_left_is_removed),
        cmocka_unit_test(a_killed_process_leaves_no_results_to_its_successor),
        cmocka_unit_test(processes_that_end_together_leave_nothing),
        cmocka_unit_test(any_order_of_coming_going_and_dying_is_right),
        cmocka_unit_test(a_node_that_another_process_is_in_is_busy),
        cmocka_unit_test(a_file_that_others_may_open_is_not_used),
        cmocka_unit_test(what_is_not_ours_is_not_touched),
        cmocka_unit_test(a_link_in_the_place_of_a_table_is_not_followed),
        cmocka_unit_test(a_process_stuck_in_making_a_table_is_not_waited_for_forever),
        cmocka_unit_test(what_has_no_room_is_refused_and_leaves_nothing),
        cmocka_unit_test(searchers_that_share_a_table_take_cpus_of_their_own),
        cmocka_unit_test(a_shared_table_is_not_cleared_and_ages_once_a_job),
    };
    if (!has_room_at_all()) { /* as in some containers */
        printf("1..0 # SKIP /dev/shm gives no room\n");
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
