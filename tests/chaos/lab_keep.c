#include "tests/chaos/lab_keep.h"

#include "common/rng.h"

#include <string.h>

enum {
    PIECE_NS = 20000, /* of a snapshot */
    LATER = 20, /* after the end snapshots are so many times as far apart: there it takes long */
    CERTAIN_PPM = 1000000,
};

static const char path[] = "results";

void lab_keep_open(struct lab *lab, unsigned index)
{
    const struct chaos_options *o = &chaos_of(lab)->options;
    if (o->keep_ns != 0) {
        chaos_of(lab)->shard[index].keep.disk =
            lab_disk_open(o->lab.seed ^ (uint64_t)(index + 1) << 32, &o->planted.disk);
    }
}

void lab_keep_close(struct lab *lab, unsigned index)
{
    struct lab_keep *k = &chaos_of(lab)->shard[index].keep;
    if (k->disk == NULL) {
        return;
    }
    const struct lab_disk_figures f = lab_disk_figures(k->disk);
    chaos_of(lab)->result.kept += ttcore_ledger_read(&k->ledger.snapshots);
    chaos_of(lab)->result.kept_failures += ttcore_ledger_read(&k->ledger.snapshot_failures);
    chaos_of(lab)->result.short_calls += f.shorts;
    chaos_of(lab)->result.full_disks += f.fulls;
    chaos_of(lab)->result.disk_errors += f.errors + f.syncs_failed;
    chaos_of(lab)->result.power_losses += f.power_losses;
    chaos_of(lab)->result.spoiled_files += f.spoiled;
    keep_file_close(&k->file);
    lab_disk_close(&k->disk);
}

/* It has its faults until the end of all posts. */
static void arm(struct lab *lab, struct lab_keep *k)
{
    lab_disk_set_faults(k->disk, lab->ended ? NULL : &chaos_of(lab)->options.disk);
}

static uint64_t hash_of(const uint8_t *bytes, size_t length)
{
    uint64_t hash = rng_mix(length);
    for (size_t i = 0; i < length; i += sizeof hash) {
        uint64_t word = 0;
        memcpy(&word, bytes + i, length - i < sizeof word ? length - i : sizeof word);
        hash = rng_mix(hash ^ word);
    }
    return hash;
}

/* The snapshot that is these bytes; NULL: none is. */
static const struct lab_version *find_version(const struct lab_keep *k, uint64_t hash)
{
    for (unsigned i = 0; i < LAB_VERSIONS; i++) {
        if (k->version[i].number != 0 && k->version[i].hash == hash) {
            return &k->version[i];
        }
    }
    return NULL;
}

/* ---- start ---- */

bool lab_keep_start(struct lab *lab, unsigned index, struct ttcore_options *core)
{
    struct lab_keep *k = &chaos_of(lab)->shard[index].keep;
    if (k->disk == NULL) {
        return true;
    }
    size_t length = 0;
    const uint8_t *bytes = lab_disk_bytes(k->disk, path, &length, &k->is_spoiled);
    const struct lab_version *found =
        bytes == NULL ? NULL : find_version(k, hash_of(bytes, length));
    k->is_there = bytes != NULL;
    k->found = found != NULL ? *found : (struct lab_version){.number = 0};
    k->errors = lab_disk_figures(k->disk).errors;
    arm(lab, k);
    lab_disk_begins(k->disk);
    if (keep_file_open(&k->file, lab_disk_port(k->disk), path, 0) != ERR_OK) {
        chaos_of(lab)->result.unsaid += k->file.line[0] == '\0';
        keep_file_close(&k->file);
        return false;
    }
    const uint64_t place = keep_file_place(&k->file);
    core->place = place != 0 ? place : core->boot;
    core->ledger = &k->ledger;
    atomic_store(&k->ledger.changes, 0);
    k->place = core->place;
    return true;
}

void lab_keep_give_up(struct lab *lab, unsigned index)
{
    struct lab_keep *k = &chaos_of(lab)->shard[index].keep;
    if (k->disk != NULL) {
        keep_file_close(&k->file);
    }
}

void lab_keep_fill(struct lab *lab, unsigned index)
{
    struct lab_keep *k = &chaos_of(lab)->shard[index].keep;
    struct chaos_result *r = &chaos_of(lab)->result;
    if (k->disk == NULL) {
        return;
    }
    const uint64_t restored =
        keep_file_fill(&k->file, ttcore_results(lab->shard[index].core), &k->ledger, k->place);
    const bool is_read = k->file.is_whole;
    const bool excused = k->is_spoiled || lab_disk_figures(k->disk).errors > k->errors;
    const bool is_lost = !is_read || k->found.number < k->promised;
    r->reloaded += is_read;
    r->refused_files += k->is_there && !is_read;
    r->foreign_files += is_read && (k->found.number == 0 || restored != k->found.entries);
    r->lost_files += !excused && (k->promised > 0 || k->found.number > 0) && is_lost;
    r->unsaid += k->is_there && !is_read && k->file.line[0] == '\0';
    k->promised = is_lost ? 0 : k->promised; /* what was read need not survive */
}

/* ---- writing ---- */

/* What is at its place now is another version. */
static void note_version(struct lab_keep *k)
{
    size_t length = 0;
    bool is_spoiled;
    const uint8_t *bytes = lab_disk_bytes(k->disk, path, &length, &is_spoiled);
    const uint64_t hash = bytes == NULL ? 0 : hash_of(bytes, length);
    if (bytes != NULL && find_version(k, hash) == NULL) {
        k->versions++;
        k->version[k->versions % LAB_VERSIONS] =
            (struct lab_version){.number = k->versions, .hash = hash, .entries = k->file.entries};
    }
}

uint64_t lab_keep_write(struct lab *lab, unsigned index)
{
    struct lab_keep *k = &chaos_of(lab)->shard[index].keep;
    const uint64_t kept = ttcore_ledger_read(&k->ledger.snapshots);
    const uint64_t failures = ttcore_ledger_read(&k->ledger.snapshot_failures);
    const uint64_t wait_ns = chaos_of(lab)->options.keep_ns * (lab->ended ? LATER : 1);
    arm(lab, k);
    if (keep_file_write(&k->file)) {
        return lab->now_ns + PIECE_NS;
    }
    const bool is_kept = ttcore_ledger_read(&k->ledger.snapshots) > kept;
    if (is_kept || ttcore_ledger_read(&k->ledger.snapshot_failures) > failures) {
        note_version(k);
    }
    k->promised = is_kept ? k->versions : k->promised;
    return lab->now_ns + wait_ns;
}

/* ---- the end ---- */

/* A planted fault: the sums of a file are not looked at. As if a bit of a result had changed. */
static void change_result(struct lab *lab, struct lab_keep *k)
{
    struct snapshot_reader *reader = NULL;
    struct snapshot_writer *writer = NULL;
    struct tt_scanned entry;
    char why[SNAPSHOT_WHY_MAX];
    size_t count = 1;
    const struct disk_port *disk = lab_disk_port(k->disk);
    lab_disk_begins(k->disk);
    lab_disk_set_faults(k->disk, NULL);
    if (snapshot_open(&reader, disk, path, why) != ERR_OK || snapshot_entries(reader) == 0 ||
        snapshot_create(&writer, disk, path, snapshot_place(reader), why) != ERR_OK) {
        snapshot_close(&reader);
        return;
    }
    const uint64_t entries = snapshot_entries(reader),
                   one = rng_next(&chaos_of(lab)->planted) % entries;
    for (uint64_t i = 0; i < entries; i++) {
        CHECK(snapshot_next(reader, &entry, 1, &count, why) == ERR_OK && count == 1);
        if (i == one) {
            const int16_t lower = entry.lower;
            entry.lower = (int16_t)-entry.upper;
            entry.upper = (int16_t)-lower;
        }
        CHECK(snapshot_add(writer, &entry, why) == ERR_OK);
    }
    CHECK(snapshot_commit(&writer, why) == ERR_OK);
    snapshot_close(&reader);
    lab_disk_spoil(k->disk, path);
}

void lab_keep_kill(struct lab *lab, unsigned index, bool loses_power)
{
    struct lab_keep *k = &chaos_of(lab)->shard[index].keep;
    const bool trusts_sums = chaos_of(lab)->options.planted.trust_sums && !lab->ended;
    struct lab_disk_faults faults = chaos_of(lab)->options.disk;
    if (k->disk == NULL) {
        return;
    }
    if (loses_power) {
        faults = (struct lab_disk_faults){.power_ppm = CERTAIN_PPM};
    }
    faults.damage_ppm = trusts_sums ? 0 : faults.damage_ppm;
    lab_disk_set_faults(k->disk, &faults);
    lab_disk_ends(k->disk);
    keep_file_close(&k->file); /* of the dead: nothing changes on the disk */
    if (trusts_sums) {
        change_result(lab, k);
        lab_disk_set_faults(k->disk, NULL);
        lab_disk_ends(k->disk);
    }
}
