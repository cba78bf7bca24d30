/* The disk of the virtual cluster, and what is kept on it: snapshots, and the file of a proof. */
#include "tests/support/test_tt.h"

#include "common/tt/snapshot.h"
#include "tests/chaos/lab_disk.h"
#include "worker/games/othello/othello.h"
#include "worker/programs/othello/proof.h"
#include "worker/programs/othello/prove.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

static const char path[] = "file";

static int open_file(struct lab_disk *d, int flags)
{
    const struct disk_port *port = lab_disk_port(d);
    return port->open(port->self, path, flags, 0600);
}

static void write_text(struct lab_disk *d, int file, const char *text)
{
    const struct disk_port *port = lab_disk_port(d);
    assert_int_equal(port->write(port->self, file, text, strlen(text)), strlen(text));
}

static void assert_text(struct lab_disk *d, const char *text)
{
    size_t length = 99;
    bool is_spoiled;
    const uint8_t *bytes = lab_disk_bytes(d, path, &length, &is_spoiled);
    assert_int_equal(bytes != NULL, text != NULL);
    if (text != NULL) {
        assert_int_equal(length, strlen(text));
        assert_memory_equal(bytes, text, length);
    }
}

static void end(struct lab_disk *d, bool loses_power)
{
    lab_disk_set_faults(d, &(struct lab_disk_faults){.power_ppm = loses_power ? 1000000 : 0});
    lab_disk_ends(d);
    lab_disk_begins(d);
    lab_disk_set_faults(d, NULL);
}

static void what_was_synced_survives_a_loss_of_power(void **state)
{
    (void)state;
    unsigned lost = 0, kept = 0;
    for (uint64_t seed = 0; seed < 50; seed++) {
        struct lab_disk *d = lab_disk_open(seed, NULL);
        const struct disk_port *port = lab_disk_port(d);
        int file = open_file(d, O_RDWR | O_CREAT);
        write_text(d, file, "one");
        assert_int_equal(port->sync(port->self, file), 0);
        assert_int_equal(port->sync_folder(port->self, "."), 0);
        end(d, false);
        assert_text(d, "one");
        end(d, true);
        assert_text(d, "one");
        file = open_file(d, O_RDWR);
        write_text(d, file, "two");
        assert_int_equal(port->remove(port->self, path), 0);
        assert_text(d, NULL);
        end(d, true);
        size_t length;
        bool is_spoiled;
        const uint8_t *bytes = lab_disk_bytes(d, path, &length, &is_spoiled);
        lost += bytes == NULL;
        kept += bytes != NULL && memcmp(bytes, "one", 3) == 0;
        lab_disk_close(&d);
    }
    assert_true(lost > 5 && kept > 2 && lost + kept < 50);
}

static void a_sync_that_failed_keeps_nothing_ever(void **state)
{
    (void)state;
    struct lab_disk *d = lab_disk_open(1, NULL);
    const struct disk_port *port = lab_disk_port(d);
    const int file = open_file(d, O_RDWR | O_CREAT);
    assert_int_equal(port->sync_folder(port->self, "."), 0);
    write_text(d, file, "one");
    lab_disk_set_faults(d, &(struct lab_disk_faults){.sync_ppm = 1000000});
    assert_int_equal(port->sync(port->self, file), -1);
    assert_int_equal(errno, EIO);
    lab_disk_set_faults(d, NULL);
    assert_int_equal(port->sync(port->self, file), 0);
    end(d, true);
    size_t length;
    bool is_spoiled;
    const uint8_t *bytes = lab_disk_bytes(d, path, &length, &is_spoiled);
    assert_true(length == 3 && memcmp(bytes, "one", 3) != 0);
    lab_disk_close(&d);
}

static void calls_of_the_dead_do_nothing(void **state)
{
    (void)state;
    struct lab_disk *d = lab_disk_open(1, NULL);
    const struct disk_port *port = lab_disk_port(d);
    const int file = open_file(d, O_RDWR | O_CREAT);
    assert_int_equal(port->lock(port->self, file), 0);
    lab_disk_dies_after(d, 1);
    write_text(d, file, "one");
    assert_int_equal(port->write(port->self, file, "two", 3), -1);
    assert_int_equal(port->remove(port->self, path), -1);
    end(d, false);
    assert_text(d, "one");
    const int again = open_file(d, O_RDWR);
    assert_int_equal(port->lock(port->self, again), 0);
    lab_disk_close(&d);
}

/* ---- snapshots ---- */

static struct lab_disk_faults draw_faults(uint64_t *random)
{
    return (struct lab_disk_faults){
        .short_ppm = rng_below(random, 2) * rng_below(random, 400000),
        .full_ppm = rng_below(random, 2) * rng_below(random, 50000),
        .error_ppm = rng_below(random, 2) * rng_below(random, 20000),
        .sync_ppm = rng_below(random, 2) * rng_below(random, 300000),
        .power_ppm = rng_below(random, 2) * 500000,
        .damage_ppm = rng_below(random, 4) == 0 ? 200000 : 0,
    };
}

enum { GENERATIONS = 30 };

static enum err write_generation(const struct disk_port *disk, uint64_t generation,
                                 unsigned entries)
{
    struct snapshot_writer *writer = NULL;
    char why[SNAPSHOT_WHY_MAX];
    enum err err = snapshot_create(&writer, disk, path, generation, why);
    for (unsigned i = 0; err == ERR_OK && i < entries; i++) {
        const struct tt_scanned entry = {.key = i, .lower = (int16_t)generation, .upper = 99};
        err = snapshot_add(writer, &entry, why);
    }
    err = err == ERR_OK ? snapshot_commit(&writer, why) : err;
    snapshot_abort(&writer);
    return err;
}

/* Which generation is there, whole; 0: none, and `why` says why not. */
static uint64_t read_generation(const struct disk_port *disk, unsigned entries, char *why)
{
    struct snapshot_reader *reader = NULL;
    struct tt_scanned entry[64];
    size_t count = 1;
    why[0] = '\0';
    if (snapshot_open(&reader, disk, path, why) != ERR_OK) {
        assert_true(why[0] != '\0' && strchr(why, '\n') == NULL);
        return 0;
    }
    const uint64_t generation = snapshot_place(reader);
    assert_int_equal(snapshot_entries(reader), entries);
    while (count > 0) {
        assert_int_equal(snapshot_next(reader, entry, 64, &count, why), ERR_OK);
        for (size_t i = 0; i < count; i++) {
            assert_int_equal(entry[i].lower, generation);
        }
    }
    snapshot_close(&reader);
    return generation;
}

/* Each generation by a process of its own, which may die at any call. */
static void a_snapshot_that_was_written_is_there(void **state)
{
    uint64_t random = tt_seed();
    unsigned promised_ones = 0, torn = 0;
    char why[SNAPSHOT_WHY_MAX];
    (void)state;
    for (unsigned run = 0; run < 100 / TSAN_SEES_ONE_OF; run++) {
        struct lab_disk *d = lab_disk_open(rng_next(&random), NULL);
        const struct disk_port *disk = lab_disk_port(d);
        const struct lab_disk_faults faults = draw_faults(&random);
        const unsigned entries = rng_below(&random, 3) * 5000;
        uint64_t promised = 0;
        for (uint64_t g = 1; g <= GENERATIONS; g++) {
            lab_disk_set_faults(d, &faults);
            lab_disk_dies_after(d,
                                rng_below(&random, 2) == 0 ? rng_below(&random, 40) : UINT64_MAX);
            const bool is_written = write_generation(disk, g, entries) == ERR_OK;
            promised = is_written ? g : promised;
            promised_ones += is_written;
            lab_disk_ends(d);
            lab_disk_begins(d);
            lab_disk_set_faults(d, NULL);
            size_t length;
            bool is_spoiled = false;
            (void)lab_disk_bytes(d, path, &length, &is_spoiled);
            const uint64_t found = read_generation(disk, entries, why);
            if (!(found <= g && (is_spoiled || found >= promised))) {
                fail_msg("run %u, generation %u: %u is there, %u was promised: %s", run,
                         (unsigned)g, (unsigned)found, (unsigned)promised, why);
            }
            torn += found < g;
            promised = found < promised ? found : promised;
        }
        lab_disk_close(&d);
    }
    assert_true(promised_ones > 500 / TSAN_SEES_ONE_OF && torn > 500 / TSAN_SEES_ONE_OF);
}

/* ---- proofs ---- */

struct solved {
    struct engine *engine;
    struct job job;
    int score;
};

static void solve(struct solved *s)
{
    const struct engine_options options = {.threads = 1, .hash_bytes = 4 << 20};
    struct engine_result result;
    char why[ENGINE_WHY_MAX];
    s->job = (struct job){.algorithm = algorithm_by_name("abdada"),
                          .depth = 11,
                          .remote_depth = PROTO_REMOTE_DEPTH_AUTO};
    assert_int_equal(engine_open(&s->engine, &options, why), ERR_OK);
    assert_int_equal(
        job_set_position(&s->job, &game_othello,
                         "XXXOXXXXOXXXXXXXOOXXXXXXOOOXXXXXOOOXXOO-OOOOO---OOOOOOO-OOOOOOO- X", why,
                         sizeof why),
        ERR_OK);
    job_set_namespace(&s->job, 0);
    assert_int_equal(engine_run(s->engine, &s->job, NULL, &result), ERR_OK);
    s->score = result.search.score;
}

enum { POSITIONS = 40 };

/* A process that writes the proof of so many positions, or goes on with it. */
static enum err write_proof(struct solved *s, const struct disk_port *disk, bool resumes,
                            char why[PROVE_WHY_MAX])
{
    const struct prove_options options = {
        .disk = disk, .path = path, .head = {1, POSITIONS}, .resumes = resumes};
    char unused[PROVE_WHY_MAX];
    struct prove *prove = NULL;
    enum err err = prove_open(&prove, &options, why);
    for (unsigned i = 0; i < POSITIONS && err == ERR_OK; i++) {
        err = prove_position(prove, s->engine, &s->job, s->score, why);
    }
    const enum err closed = prove_close(&prove, err == ERR_OK ? why : unused);
    return err != ERR_OK ? err : closed;
}

static enum err check_proof(struct lab_disk *d)
{
    struct proof_reader reader;
    struct proof_contents contents = {.memory_max = 1 << 24, .leaf_max = 8};
    size_t length;
    bool is_spoiled;
    char why[PROOF_WHY_MAX];
    const uint8_t *bytes = lab_disk_bytes(d, path, &length, &is_spoiled);
    if (bytes == NULL) {
        return ERR_ABSENT;
    }
    assert_int_equal(proof_reader_of(&reader, bytes, length), ERR_OK);
    const enum err err = proof_contents_read(&contents, &reader, why);
    if (err != ERR_OK) {
        print_message("%zu bytes: %s\n", length, why);
    }
    proof_contents_close(&contents);
    proof_reader_close(&reader);
    return err;
}

/* Written by processes that die or meet faults, until it is done: then it is there, after a loss of
 * power, too, and whole. What a loss of power or the disk has spoiled is refused in a line. */
static void a_proof_that_was_written_is_there(void **state)
{
    uint64_t random = tt_seed();
    struct solved s;
    unsigned processes = 0, refused = 0, done = 0;
    (void)state;
    solve(&s);
    for (unsigned run = 0; run < 100 / TSAN_SEES_ONE_OF; run++) {
        struct lab_disk *d = lab_disk_open(rng_next(&random), NULL);
        const struct lab_disk_faults faults = draw_faults(&random);
        bool resumes = false, is_done = false;
        while (!is_done) {
            char why[PROVE_WHY_MAX] = "";
            lab_disk_set_faults(d, &faults);
            lab_disk_dies_after(d,
                                rng_below(&random, 2) == 0 ? rng_below(&random, 60) : UINT64_MAX);
            const struct lab_disk_figures before = lab_disk_figures(d);
            const enum err err = write_proof(&s, lab_disk_port(d), resumes, why);
            processes++;
            is_done = err == ERR_OK;
            assert_true(is_done || (why[0] != '\0' && strchr(why, '\n') == NULL));
            const bool is_refused = err == ERR_PROTO || err == ERR_EXIST ||
                                    (err == ERR_IO && before.spoiled > 0); /* a page is gone */
            refused += is_refused;
            assert_true(!is_refused || before.power_losses + before.spoiled > 0);
            resumes = !is_refused; /* else the user begins it anew */
            lab_disk_ends(d);
            lab_disk_begins(d);
        }
        if (lab_disk_figures(d).spoiled == 0) {
            end(d, true);
            assert_int_equal(check_proof(d), ERR_OK);
            done++;
        }
        lab_disk_close(&d);
    }
    print_message("%u processes, %u refused, %u proofs whole\n", processes, refused, done);
    assert_true(processes > 150 / TSAN_SEES_ONE_OF && refused > 5 / TSAN_SEES_ONE_OF &&
                done > 50 / TSAN_SEES_ONE_OF);
    job_free(&s.job);
    engine_close(&s.engine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_synced_survives_a_loss_of_power),
        cmocka_unit_test(a_sync_that_failed_keeps_nothing_ever),
        cmocka_unit_test(calls_of_the_dead_do_nothing),
        cmocka_unit_test(a_snapshot_that_was_written_is_there),
        cmocka_unit_test(a_proof_that_was_written_is_there),
    };
    return cmocka_run_group_tests_name("lab disk", tests, NULL, NULL);
}
