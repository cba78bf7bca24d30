#include "tests/support/test_tt.h"

#include "common/tt/snapshot.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SEVERAL_BLOCKS = 2 * SNAPSHOT_BLOCK_ENTRIES + 77, FEW = 5, HEADER = 48, BYTES_MAX = 4096 };

struct folder {
    char dir[64];
    char path[128], beside[128];
    char why[SNAPSHOT_WHY_MAX];
};

static int make_folder(void **state)
{
    struct folder *f = calloc(1, sizeof *f);
    strcpy(f->dir, "/tmp/abdada-snapshot-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    snprintf(f->path, sizeof f->path, "%s/results", f->dir);
    snprintf(f->beside, sizeof f->beside, "%s/results.new", f->dir);
    *state = f;
    return 0;
}

static int remove_folder(void **state)
{
    struct folder *f = *state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", f->dir);
    int code = system(command);
    free(f);
    return code;
}

static struct tt_scanned entry_of(uint64_t i)
{
    uint64_t r = rng_mix(i + 1);
    int lower = (int)(r % 65535) - 32767;
    return (struct tt_scanned){
        .key = rng_mix(r),
        .lower = (int16_t)lower,
        .upper = (int16_t)(lower + (int)((r >> 32) % (uint64_t)(32768 - lower))),
        .move = (uint16_t)(r >> 16),
        .depth = (uint8_t)(r % (TT_DEPTH_MAX + 1)),
    };
}

static void write_file(struct folder *f, uint64_t place, unsigned entries)
{
    struct snapshot_writer *writer = NULL;
    assert_int_equal(snapshot_create(&writer, disk_of_system(), f->path, place, f->why), ERR_OK);
    for (unsigned i = 0; i < entries; i++) {
        struct tt_scanned entry = entry_of(i);
        assert_int_equal(snapshot_add(writer, &entry, f->why), ERR_OK);
    }
    assert_int_equal(snapshot_commit(&writer, f->why), ERR_OK);
    assert_null(writer);
}

/* The entries, in order; returns the error of the first call that fails. */
static enum err read_file(struct folder *f, uint64_t place, unsigned entries)
{
    struct snapshot_reader *reader = NULL;
    f->why[0] = '\0';
    enum err err = snapshot_open(&reader, disk_of_system(), f->path, f->why);
    if (err != ERR_OK) {
        assert_null(reader);
        return err;
    }
    assert_int_equal(snapshot_place(reader), place);
    assert_int_equal(snapshot_entries(reader), entries);
    struct tt_scanned got[100];
    size_t count = 1;
    unsigned i = 0;
    while (count > 0) {
        assert_int_equal(snapshot_next(reader, got, 100, &count, f->why), ERR_OK);
        for (size_t k = 0; k < count; k++, i++) {
            struct tt_scanned want = entry_of(i);
            assert_int_equal(got[k].key, want.key);
            assert_int_equal(got[k].lower, want.lower);
            assert_int_equal(got[k].upper, want.upper);
            assert_int_equal(got[k].move, want.move);
            assert_int_equal(got[k].depth, want.depth);
        }
    }
    assert_int_equal(i, entries);
    snapshot_close(&reader);
    snapshot_close(&reader);
    return ERR_OK;
}

static size_t get_bytes(const struct folder *f, uint8_t *bytes)
{
    FILE *file = fopen(f->path, "rb");
    assert_non_null(file);
    size_t length = fread(bytes, 1, BYTES_MAX, file);
    assert_int_equal(fclose(file), 0);
    assert_true(length < BYTES_MAX);
    return length;
}

static void put_bytes(const char *path, const uint8_t *bytes, size_t length)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
}

static bool is_one_line_about(const struct folder *f)
{
    return strstr(f->why, f->path) != NULL && strchr(f->why, '\n') == NULL;
}

static void what_was_written_is_read(void **state)
{
    struct folder *f = *state;
    static const unsigned entries[] = {
        0, 1, FEW, SNAPSHOT_BLOCK_ENTRIES, SNAPSHOT_BLOCK_ENTRIES + 1, SEVERAL_BLOCKS};
    for (unsigned i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        write_file(f, UINT64_MAX - i, entries[i]);
        assert_int_equal(read_file(f, UINT64_MAX - i, entries[i]), ERR_OK);
        assert_int_not_equal(access(f->beside, F_OK), 0);
    }
}

/* The layout that the header of snapshot.h promises, byte by byte but for id and sums. */
static void the_layout_is_the_promised_one(void **state)
{
    struct folder *f = *state;
    static const struct tt_scanned entry = {
        .key = 0x1122334455667788, .lower = -2, .upper = 0x0102, .move = 0xabcd, .depth = 9};
    static const uint8_t head[] = {'A', 'B', 'D', 'A', 'D', 'A', 'T', 'T', 1, 0, 0, 0,
                                   15,  0,   0,   0,   8,   7,   6,   5,   4, 3, 2, 1};
    static const uint8_t block[] = {1,    0,    0,    0,    0,    0,    0,    0,
                                    0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11,
                                    9,    0xfe, 0xff, 2,    1,    0xcd, 0xab};
    static const uint8_t end[] = {0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0};
    struct snapshot_writer *writer = NULL;
    uint8_t bytes[BYTES_MAX];
    assert_int_equal(
        snapshot_create(&writer, disk_of_system(), f->path, 0x0102030405060708, f->why), ERR_OK);
    assert_int_equal(snapshot_add(writer, &entry, f->why), ERR_OK);
    assert_int_equal(snapshot_commit(&writer, f->why), ERR_OK);
    assert_int_equal(get_bytes(f, bytes), HEADER + sizeof block + 8 + sizeof end + 8);
    assert_memory_equal(bytes, head, sizeof head);
    assert_memory_equal(bytes + HEADER, block, sizeof block);
    assert_memory_equal(bytes + HEADER + sizeof block + 8, end, sizeof end);
}

static void an_absent_file_is_absent(void **state)
{
    struct folder *f = *state;
    assert_int_equal(read_file(f, 0, 0), ERR_ABSENT);
    assert_true(is_one_line_about(f));
}

static void no_changed_byte_goes_unseen(void **state)
{
    struct folder *f = *state;
    uint8_t bytes[BYTES_MAX];
    write_file(f, 1, FEW);
    size_t length = get_bytes(f, bytes);
    for (size_t i = 0; i < length; i++) {
        for (unsigned flip = 1; flip < 256; flip = flip == 1 ? 0x80 : flip == 0x80 ? 0xff : 256) {
            bytes[i] ^= (uint8_t)flip;
            put_bytes(f->path, bytes, length);
            enum err err = read_file(f, 1, FEW);
            assert_true(err == ERR_PROTO || err == ERR_VERSION);
            assert_true(is_one_line_about(f));
            bytes[i] ^= (uint8_t)flip;
        }
    }
    put_bytes(f->path, bytes, length);
    assert_int_equal(read_file(f, 1, FEW), ERR_OK);
}

static void no_cut_goes_unseen(void **state)
{
    struct folder *f = *state;
    uint8_t bytes[BYTES_MAX];
    write_file(f, 1, FEW);
    size_t length = get_bytes(f, bytes);
    for (size_t cut = 0; cut < length; cut++) {
        put_bytes(f->path, bytes, cut);
        assert_int_equal(read_file(f, 1, FEW), ERR_PROTO);
        assert_true(is_one_line_about(f));
    }
    bytes[length] = 0;
    put_bytes(f->path, bytes, length + 1);
    assert_int_equal(read_file(f, 1, FEW), ERR_PROTO);
}

/* As after a write in place over an older file, cut off in the middle. */
static void blocks_of_another_file_are_refused(void **state)
{
    struct folder *f = *state;
    uint8_t older[BYTES_MAX], newer[BYTES_MAX];
    write_file(f, 1, FEW);
    size_t length = get_bytes(f, older);
    write_file(f, 1, FEW);
    assert_int_equal(get_bytes(f, newer), length);
    memcpy(newer + HEADER, older + HEADER, length - HEADER);
    put_bytes(f->path, newer, length);
    assert_int_equal(read_file(f, 1, FEW), ERR_PROTO);
}

static void what_is_no_snapshot_is_refused(void **state)
{
    struct folder *f = *state;
    uint64_t random = tt_seed();
    uint8_t bytes[BYTES_MAX];
    for (unsigned i = 0; i < 300; i++) {
        size_t length = (size_t)rng_below(&random, BYTES_MAX);
        for (size_t k = 0; k < length; k++) {
            bytes[k] = (uint8_t)rng_next(&random);
        }
        memcpy(bytes, "ABDADATT\1\0\0\0\17\0\0\0", i % 3 == 0 ? 16 : 0);
        put_bytes(f->path, bytes, length);
        assert_int_equal(read_file(f, 1, FEW), ERR_PROTO);
    }
    assert_int_equal(unlink(f->path), 0);
    assert_int_equal(mkdir(f->path, 0700), 0);
    assert_int_equal(read_file(f, 1, FEW), ERR_IO);
    assert_int_equal(rmdir(f->path), 0);
    assert_int_equal(mkfifo(f->path, 0600), 0);
    assert_int_equal(read_file(f, 1, FEW), ERR_IO);
}

static void a_newer_format_is_named(void **state)
{
    struct folder *f = *state;
    uint8_t bytes[BYTES_MAX];
    write_file(f, 1, FEW);
    size_t length = get_bytes(f, bytes);
    bytes[8] = 2;
    put_bytes(f->path, bytes, length);
    assert_int_equal(read_file(f, 1, FEW), ERR_VERSION);
    assert_non_null(strstr(f->why, "format 2"));
}

static void an_aborted_one_leaves_the_old_one(void **state)
{
    struct folder *f = *state;
    struct snapshot_writer *writer = NULL;
    struct tt_scanned entry = entry_of(77);
    write_file(f, 1, FEW);
    assert_int_equal(snapshot_create(&writer, disk_of_system(), f->path, 2, f->why), ERR_OK);
    assert_int_equal(snapshot_add(writer, &entry, f->why), ERR_OK);
    snapshot_abort(&writer);
    snapshot_abort(&writer);
    assert_int_not_equal(access(f->beside, F_OK), 0);
    assert_int_equal(read_file(f, 1, FEW), ERR_OK);
}

static void one_process_writes_at_a_time(void **state)
{
    struct folder *f = *state;
    struct snapshot_writer *first = NULL, *second = NULL;
    assert_int_equal(snapshot_create(&first, disk_of_system(), f->path, 1, f->why), ERR_OK);
    assert_int_equal(snapshot_create(&second, disk_of_system(), f->path, 2, f->why), ERR_EXIST);
    assert_null(second);
    assert_true(is_one_line_about(f));
    assert_int_equal(snapshot_commit(&first, f->why), ERR_OK);
    assert_int_equal(read_file(f, 1, 0), ERR_OK);
}

static void one_process_keeps_a_file_by_whatever_name(void **state)
{
    struct folder *f = *state;
    char link[SNAPSHOT_PATH_MAX], path[SNAPSHOT_PATH_MAX];
    int first = -1, second = -1;
    snprintf(link, sizeof link, "%s.link", f->path);
    write_file(f, 3, 0);
    assert_int_equal(symlink(f->path, link), 0);
    snprintf(path, sizeof path, "%s", f->path);
    assert_int_equal(snapshot_lock(&first, disk_of_system(), path, f->why), ERR_OK);
    assert_int_equal(snapshot_lock(&second, disk_of_system(), link, f->why), ERR_EXIST);
    assert_int_equal(second, -1);
    close(first);
    snprintf(path, sizeof path, "%s", link);
    assert_int_equal(snapshot_lock(&second, disk_of_system(), path, f->why), ERR_OK);
    assert_string_equal(path, f->path);
    close(second);
    assert_int_equal(unlink(link), 0);
}

static void what_a_killed_writer_left_is_overwritten(void **state)
{
    struct folder *f = *state;
    put_bytes(f->beside, (const uint8_t *)"rests of another, longer than what follows", 42);
    write_file(f, 3, 0);
    assert_int_equal(read_file(f, 3, 0), ERR_OK);
}

static void a_pipe_or_a_link_beside_is_refused(void **state)
{
    struct folder *f = *state;
    struct snapshot_writer *writer = NULL;
    assert_int_equal(mkfifo(f->beside, 0600), 0);
    assert_int_equal(snapshot_create(&writer, disk_of_system(), f->path, 1, f->why), ERR_IO);
    assert_int_equal(unlink(f->beside), 0);
    assert_int_equal(symlink("/dev/null", f->beside), 0);
    assert_int_equal(snapshot_create(&writer, disk_of_system(), f->path, 1, f->why), ERR_IO);
    assert_null(writer);
}

static void what_is_no_file_is_not_replaced(void **state)
{
    struct folder *f = *state;
    struct snapshot_writer *writer = NULL;
    struct snapshot_reader *reader = NULL;
    char target[160], there[8] = "";
    snprintf(target, sizeof target, "%s.target", f->path);
    assert_int_equal(mkfifo(f->path, 0600), 0);
    assert_int_equal(snapshot_create(&writer, disk_of_system(), f->path, 1, f->why), ERR_IO);
    assert_int_equal(unlink(f->path), 0);
    assert_int_equal(symlink(target, f->path), 0);
    assert_int_equal(snapshot_create(&writer, disk_of_system(), f->path, 1, f->why), ERR_IO);
    assert_true(is_one_line_about(f));
    assert_int_equal(snapshot_open(&reader, disk_of_system(), f->path, f->why),
                     ERR_IO); /* at the start, too */
    assert_int_not_equal(access(f->beside, F_OK), 0);
    put_bytes(target, (const uint8_t *)"x", 1);
    write_file(f, 3, FEW);
    assert_int_equal(read_file(f, 3, FEW), ERR_OK);
    assert_true(readlink(f->path, there, sizeof there) > 0);
    assert_int_equal(unlink(f->path), 0);
    assert_int_equal(rename(target, f->path), 0);
    assert_int_equal(read_file(f, 3, FEW), ERR_OK);
}

static void a_limit_of_size_is_an_error(void **state)
{
    struct folder *f = *state;
    struct rlimit before, small;
    struct snapshot_writer *writer = NULL;
    enum err err = ERR_OK;
    write_file(f, 1, FEW);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 10000;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    assert_int_equal(snapshot_create(&writer, disk_of_system(), f->path, 2, f->why), ERR_OK);
    for (unsigned i = 0; err == ERR_OK && i < SEVERAL_BLOCKS; i++) {
        struct tt_scanned entry = entry_of(i);
        err = snapshot_add(writer, &entry, f->why);
    }
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, handler);
    assert_int_equal(err, ERR_IO);
    assert_true(is_one_line_about(f));
    snapshot_abort(&writer);
    assert_int_equal(read_file(f, 1, FEW), ERR_OK);
}

static void bad_entries_and_paths_are_refused(void **state)
{
    struct folder *f = *state;
    static const struct tt_scanned bad[] = {
        {.lower = 1, .upper = 0}, {.lower = INT16_MIN}, {.depth = TT_DEPTH_MAX + 1}};
    struct snapshot_writer *writer = NULL;
    struct snapshot_reader *reader = NULL;
    assert_int_equal(snapshot_create(&writer, disk_of_system(), f->path, 1, f->why), ERR_OK);
    for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(snapshot_add(writer, &bad[i], f->why), ERR_RANGE);
    }
    assert_int_equal(snapshot_commit(&writer, f->why), ERR_OK);
    assert_int_equal(read_file(f, 1, 0), ERR_OK);
    static char path[SNAPSHOT_PATH_MAX + 1];
    memset(path, 'a', sizeof path - 1);
    assert_int_equal(snapshot_create(&writer, disk_of_system(), path, 1, f->why), ERR_RANGE);
    assert_int_equal(snapshot_create(&writer, disk_of_system(), "", 1, f->why), ERR_RANGE);
    assert_int_equal(snapshot_open(&reader, disk_of_system(), path, f->why), ERR_RANGE);
    assert_int_equal(snapshot_create(&writer, disk_of_system(), "/nowhere/at/all", 1, f->why),
                     ERR_IO);
    assert_null(writer);
}

static void a_file_that_changes_under_the_reader_is_seen(void **state)
{
    struct folder *f = *state;
    uint8_t bytes[BYTES_MAX];
    struct snapshot_reader *reader = NULL;
    struct tt_scanned entry;
    size_t count = 99;
    write_file(f, 1, FEW);
    size_t length = get_bytes(f, bytes);
    assert_int_equal(snapshot_open(&reader, disk_of_system(), f->path, f->why), ERR_OK);
    bytes[HEADER + 20] ^= 1;
    put_bytes(f->path, bytes, length);
    assert_int_equal(snapshot_next(reader, &entry, 1, &count, f->why), ERR_PROTO);
    assert_int_equal(count, 99);
    snapshot_close(&reader);
}

static void a_refused_file_is_set_aside(void **state)
{
    struct folder *f = *state;
    put_bytes(f->path, (const uint8_t *)"x", 1);
    assert_int_equal(snapshot_set_aside(disk_of_system(), f->path, f->why), ERR_OK);
    assert_int_not_equal(access(f->path, F_OK), 0);
    assert_int_equal(snapshot_set_aside(disk_of_system(), f->path, f->why), ERR_IO);
    char bad[160];
    snprintf(bad, sizeof bad, "%s.bad", f->path);
    assert_int_equal(access(bad, F_OK), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_was_written_is_read),
        TEST(the_layout_is_the_promised_one),
        TEST(an_absent_file_is_absent),
        TEST(no_changed_byte_goes_unseen),
        TEST(no_cut_goes_unseen),
        TEST(blocks_of_another_file_are_refused),
        TEST(what_is_no_snapshot_is_refused),
        TEST(a_newer_format_is_named),
        TEST(an_aborted_one_leaves_the_old_one),
        TEST(one_process_writes_at_a_time),
        TEST(one_process_keeps_a_file_by_whatever_name),
        TEST(what_a_killed_writer_left_is_overwritten),
        TEST(a_pipe_or_a_link_beside_is_refused),
        TEST(what_is_no_file_is_not_replaced),
        TEST(a_limit_of_size_is_an_error),
        TEST(bad_entries_and_paths_are_refused),
        TEST(a_file_that_changes_under_the_reader_is_seen),
        TEST(a_refused_file_is_set_aside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
