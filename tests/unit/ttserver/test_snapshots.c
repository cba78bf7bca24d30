#include "tests/support/test_tt.h"

#include "ttserver/keep/keep_files.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ENTRIES = 10000, PLACE = 77 };

struct bed {
    char dir[64], path[128];
    struct keep_files snapshots;
    struct ttcore_ledger ledger;
    struct tt_generations generations;
    struct tt_results results;
};

static int make_bed(void **state)
{
    struct bed *b = calloc(1, sizeof *b);
    strcpy(b->dir, "/tmp/abdada-snapshots-XXXXXX");
    assert_non_null(mkdtemp(b->dir));
    snprintf(b->path, sizeof b->path, "%s/results", b->dir);
    tt_generations_init(&b->generations);
    assert_int_equal(tt_results_open(&b->results, 1 << 20, &b->generations), ERR_OK);
    *state = b;
    return 0;
}

static int remove_bed(void **state)
{
    struct bed *b = *state;
    char command[128];
    keep_files_end(&b->snapshots);
    tt_results_close(&b->results);
    snprintf(command, sizeof command, "rm -rf %s", b->dir);
    int code = system(command);
    free(b);
    return code;
}

static void write_file(struct bed *b)
{
    struct snapshot_writer *writer = NULL;
    char why[SNAPSHOT_WHY_MAX];
    assert_int_equal(snapshot_create(&writer, disk_of_system(), b->path, PLACE, why), ERR_OK);
    for (uint64_t i = 1; i <= ENTRIES; i++) {
        const struct tt_scanned entry = {rng_mix(i), 3, 5, (uint16_t)i, 6};
        assert_int_equal(snapshot_add(writer, &entry, why), ERR_OK);
    }
    assert_int_equal(snapshot_commit(&writer, why), ERR_OK);
}

static enum err open_snapshots(struct bed *b)
{
    const struct keep_files_options options = {
        .program = "test", .path = b->path, .shards = 1, .every_s = 86400};
    return keep_files_open(&b->snapshots, &options);
}

static void fill(struct bed *b)
{
    keep_files_fill(&b->snapshots, 0, &b->results, &b->ledger, PLACE);
}

static void a_file_is_read_into_the_table(void **state)
{
    struct bed *b = *state;
    write_file(b);
    assert_int_equal(open_snapshots(b), ERR_OK);
    assert_int_equal(keep_file_place(&b->snapshots.file[0]), PLACE);
    fill(b);
    assert_int_equal(ttcore_ledger_read(&b->ledger.restored), ENTRIES);
}

static void a_flush_begins_a_snapshot_anew(void **state)
{
    struct bed *b = *state;
    write_file(b);
    assert_int_equal(open_snapshots(b), ERR_OK);
    fill(b);
    ttcore_ledger_add(&b->ledger.changes, 1);
    struct keep_file *file = &b->snapshots.file[0];
    assert_true(keep_file_write(file)); /* a part of it */
    tt_results_clear(&b->results);
    ttcore_ledger_add(&b->ledger.flushed, 1);
    ttcore_ledger_add(&b->ledger.changes, 1);
    while (keep_file_write(file)) {
    }
    assert_int_equal(ttcore_ledger_read(&b->ledger.snapshots), 1);
    assert_int_equal(ttcore_ledger_read(&b->ledger.snapshot_entries), 0);
}

/* Between the check and the reading: part of it is in the table already, which must not be served.
 */
static void a_file_that_changes_after_its_check_is_set_aside(void **state)
{
    struct bed *b = *state;
    struct stat at;
    struct tt_scanned entry;
    write_file(b);
    assert_int_equal(open_snapshots(b), ERR_OK);
    assert_int_equal(stat(b->path, &at), 0);
    assert_int_equal(truncate(b->path, at.st_size / 2), 0);
    fill(b);
    assert_int_equal(ttcore_ledger_read(&b->ledger.restored), 0);
    for (uint64_t i = 0; i < b->results.buckets * TT_BUCKET_ENTRIES; i++) {
        assert_false(tt_results_entry(&b->results, i / TT_BUCKET_ENTRIES,
                                      (unsigned)(i % TT_BUCKET_ENTRIES), &entry));
    }
    assert_int_not_equal(access(b->path, F_OK), 0);
}

static void a_torn_file_is_set_aside_when_the_table_is_filled(void **state)
{
    struct bed *b = *state;
    struct stat at;
    write_file(b);
    assert_int_equal(stat(b->path, &at), 0);
    assert_int_equal(truncate(b->path, at.st_size - 1), 0);
    assert_int_equal(open_snapshots(b), ERR_OK);
    assert_int_equal(keep_file_place(&b->snapshots.file[0]), 0);
    assert_int_equal(access(b->path, F_OK), 0);
    fill(b);
    assert_int_not_equal(access(b->path, F_OK), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_bed, remove_bed)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_file_is_read_into_the_table),
        TEST(a_flush_begins_a_snapshot_anew),
        TEST(a_file_that_changes_after_its_check_is_set_aside),
        TEST(a_torn_file_is_set_aside_when_the_table_is_filled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
