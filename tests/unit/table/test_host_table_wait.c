/* A table that another process makes: waiting for it goes by its progress. The maker is the test,
 * which does its next step whenever the one that waits says so. */
#include "tests/support/test_host_table.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

enum { STILL_CALLS = 4, STILL_MS = STILL_CALLS * 5, STEP = 1 << 16, MAKER = 4711 };

struct maker {
    char path[PATH_BYTES];
    int file;
    off_t made;
    unsigned calls, calls_each_step, steps; /* it does so many steps, then nothing */
    bool dies; /* then */
    uint64_t last_filled;
    bool is_right; /* all that was said to the one that waits */
};

static bool lock(int file, short kind)
{
    struct flock whole = {.l_type = kind, .l_whence = SEEK_SET};
    return fcntl(file, F_OFD_SETLK, &whole) == 0;
}

/* As a process that has just begun: the lock, the size, and who it is. */
static void begin(struct maker *m, uint64_t group)
{
    struct host_table *host = NULL;
    assert_int_equal(open_when_room(&host, group, BYTES), ERR_OK);
    off_t at = (char *)&host_table_state(host)->maker - (char *)host_table_memory(host);
    int64_t maker = MAKER;
    assert_int_equal(host_table_state(host)->maker, getpid());
    host_table_close(&host);
    path_of(group, m->path, sizeof m->path);
    m->file = open(m->path, O_CREAT | O_RDWR | O_EXCL, 0600);
    assert_true(m->file >= 0);
    assert_true(lock(m->file, F_WRLCK));
    assert_int_equal(ftruncate(m->file, BYTES), 0);
    unsigned waits = 0;
    ssize_t written;
    do {
        written = pwrite(m->file, &maker, sizeof maker, at);
    } while (written < 0 && errno == ENOSPC && wait_for_room(&waits));
    assert_int_equal(written, sizeof maker);
    m->is_right = true;
}

/* The whole of it: it is ready. */
static void end_step(struct maker *m)
{
    if (m->dies) {
        close(m->file);
        m->file = -1;
    } else if (m->made == BYTES) {
        m->is_right = m->is_right && lock(m->file, F_RDLCK);
    }
}

static bool step(void *self, long maker, uint64_t filled, uint64_t bytes)
{
    struct maker *m = self;
    if (maker == getpid()) { /* it has it now, and fills its own pages */
        return true;
    }
    m->is_right = m->is_right && maker == MAKER && bytes == BYTES && filled >= m->last_filled &&
                  filled >= (uint64_t)m->made && filled <= BYTES;
    m->last_filled = filled;
    m->calls++;
    if (m->calls % m->calls_each_step != 0 || m->file < 0) {
        return true;
    }
    if (m->steps > 0) {
        m->steps--;
        unsigned waits = 0;
        int error;
        do {
            error = posix_fallocate(m->file, m->made, STEP);
        } while (error == ENOSPC && wait_for_room(&waits));
        m->is_right = m->is_right && error == 0;
        m->made += STEP;
    }
    if (m->steps == 0) {
        end_step(m);
    }
    return true;
}

static void a_slow_maker_is_waited_for(void **state)
{
    (void)state;
    uint64_t group = fresh_group();
    struct maker m = {.calls_each_step = STILL_CALLS - 1, .steps = BYTES / STEP};
    const struct host_table_wait wait = {.self = &m, .waiting = step, .still_ms = STILL_MS};
    struct host_table *host = NULL;
    struct stat mine, its;
    char path[PATH_BYTES];
    begin(&m, group);
    assert_int_equal(host_table_open(&host, group, BYTES, &wait), ERR_OK);
    assert_true(m.is_right);
    assert_true(m.calls > 4 * STILL_CALLS); /* longer by far than one that stands still */
    path_of_table(host, path, sizeof path);
    assert_int_equal(stat(path, &mine), 0);
    assert_int_equal(fstat(m.file, &its), 0);
    assert_int_equal(mine.st_ino, its.st_ino);
    close(m.file);
    host_table_close(&host);
    assert_int_equal(access(path, F_OK), -1);
}

static void one_that_stands_still_is_given_up(void **state)
{
    (void)state;
    uint64_t group = fresh_group();
    struct maker m = {.calls_each_step = 1, .steps = 7};
    const struct host_table_wait wait = {.self = &m, .waiting = step, .still_ms = STILL_MS};
    struct host_table *host = NULL;
    begin(&m, group);
    assert_int_equal(host_table_open(&host, group, BYTES, &wait), ERR_IO);
    assert_int_equal(errno, ETIMEDOUT);
    assert_non_null(strstr(host_table_reason(errno), "stands still"));
    assert_true(m.is_right && m.calls > 7);
    assert_int_equal(unlink(m.path), 0); /* before somebody removes what nobody has */
    close(m.file);
}

static void the_table_of_a_maker_that_dies_is_made_anew(void **state)
{
    (void)state;
    struct maker m;
    const struct host_table_wait wait = {.self = &m, .waiting = step, .still_ms = STILL_MS};
    struct host_table *host = NULL;
    unsigned waits = 0;
    enum err err;
    do {
        uint64_t group = fresh_group();
        m = (struct maker){.calls_each_step = 1, .steps = 3, .dies = true};
        begin(&m, group);
        err = host_table_open(&host, group, BYTES, &wait);
    } while (err == ERR_IO && errno == ENOSPC && wait_for_room(&waits));
    assert_int_equal(err, ERR_OK);
    assert_true(m.is_right && m.calls >= 3);
    assert_int_equal(host_table_state(host)->maker, getpid());
    host_table_close(&host);
    assert_int_equal(access(m.path, F_OK), -1);
}

static bool refuse(void *self, long maker, uint64_t filled, uint64_t bytes)
{
    (void)maker, (void)filled, (void)bytes;
    return --*(int *)self > 0;
}

/* By a signal, say: it does not first make all of it. */
static void who_makes_it_may_end_it(void **state)
{
    (void)state;
    enum { LARGE = 32 << 20 }; /* several pieces, and room for it in a container */
    uint64_t group = fresh_group();
    int calls;
    unsigned waits = 0;
    char path[PATH_BYTES];
    const struct host_table_wait wait = {.self = &calls, .waiting = refuse};
    struct host_table *host = NULL;
    assert_int_equal(open_when_room(&host, group, LARGE), ERR_OK);
    path_of_table(host, path, sizeof path);
    host_table_close(&host);
    do {
        calls = 2;
        assert_int_equal(host_table_open(&host, group, LARGE, &wait), ERR_IO);
    } while (errno == ENOSPC && wait_for_room(&waits));
    assert_int_equal(errno, ECANCELED);
    assert_int_equal(calls, 0);
    assert_int_equal(access(path, F_OK), -1); /* and leaves nothing */
}

static void who_waits_may_end_it(void **state)
{
    (void)state;
    uint64_t group = fresh_group();
    int calls = 3;
    struct maker m = {.calls_each_step = 1};
    const struct host_table_wait wait = {.self = &calls, .waiting = refuse};
    struct host_table *host = NULL;
    begin(&m, group);
    assert_int_equal(host_table_open(&host, group, BYTES, &wait), ERR_IO);
    assert_int_equal(errno, ECANCELED);
    assert_int_equal(calls, 0);
    close(m.file);
    assert_int_equal(unlink(m.path), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slow_maker_is_waited_for),
        cmocka_unit_test(one_that_stands_still_is_given_up),
        cmocka_unit_test(the_table_of_a_maker_that_dies_is_made_anew),
        cmocka_unit_test(who_waits_may_end_it),
        cmocka_unit_test(who_makes_it_may_end_it),
    };
    if (!has_room_at_all()) { /* as in some containers */
        printf("1..0 # SKIP /dev/shm gives no room\n");
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
