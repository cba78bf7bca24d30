/* abdada tt: all of a table: figures, forgetting, files. */
#include "worker/programs/admin/tt_command.h"

#include "common/log.h"
#include "common/tt/snapshot.h"
#include "worker/programs/admin/watch.h"
#include "worker/programs/json.h"

#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

static int fail(const char *why)
{
    log_fail(tt_program, "%s", why);
    return 1;
}

/* ---- stats ---- */

static void print_shard_json(const struct watch_shard *s)
{
    struct json j;
    json_begin(&j, stdout);
    json_text(&j, "shard", s->address);
    json_flag(&j, "up", s->up);
    for (unsigned i = 0; s->up && i < s->figures; i++) {
        json_number(&j, s->figure[i].name, (int64_t)s->figure[i].value);
    }
    json_end(&j);
}

/* A row for each figure, a column for each shard; the first that is up names the figures. */
static void print_table(const struct watch_view *v)
{
    const struct watch_shard *first = NULL;
    printf("%-24s", "");
    for (unsigned i = 0; i < v->shards; i++) {
        printf(" %20s", v->shard[i].address);
        first = first == NULL && v->shard[i].up ? &v->shard[i] : first;
    }
    printf("\n");
    for (unsigned f = 0; first != NULL && f < first->figures; f++) {
        printf("%-24s", first->figure[f].name);
        for (unsigned i = 0; i < v->shards; i++) {
            if (v->shard[i].up) {
                printf(" %20" PRIu64, watch_figure(&v->shard[i], first->figure[f].name));
            } else {
                printf(" %20s", "-");
            }
        }
        printf("\n");
    }
}

static void serve_link(void *self)
{
    tt_link_idle(self, 0);
}

/* Has a session of its own: a monitor's key is enough for it. */
int tt_all_stats(struct tt *tt)
{
    struct keys_client room;
    const struct keys_client *keys = NULL;
    struct watch *watch = NULL;
    char why[TRANSPORT_WHY_MAX];
    unsigned up = 0;
    enum err err = cli_load_keys(tt->table.keys_dir, KEYS_MONITOR, &room, &keys, why);
    if (err == ERR_OK) {
        const struct transport_address address = cli_table_address(&tt->table, keys);
        err = watch_open(&watch, &address, tt_program, why);
        keys_wipe(&room, sizeof room);
    }
    if (err != ERR_OK) {
        return fail(why);
    }
    if (tt->link != NULL) {
        watch_meanwhile(watch, serve_link, tt->link);
    }
    watch_round(watch, tt->wait_ms, true, tt->stop);
    const struct watch_view *v = watch_view(watch);
    for (unsigned i = 0; i < v->shards; i++) {
        up += v->shard[i].up;
        if (!v->shard[i].up) {
            log_fail(tt_program, "%s does not answer", v->shard[i].address);
        }
        if (tt->json) {
            print_shard_json(&v->shard[i]);
        }
    }
    if (!tt->json && up > 0) {
        print_table(v);
    }
    unsigned shards = v->shards;
    watch_close(&watch);
    return up == shards ? 0 : 1;
}

/* ---- flush ---- */

enum { CONFIRM_STEP_MS = 20 /* the sessions are served between */ };

static bool is_confirmed(const struct tt *tt)
{
    char answer[16] = "";
    if (tt->command.yes || !isatty(STDIN_FILENO)) {
        return true;
    }
    fprintf(stderr, "Forget all results of %u shard%s? [y/N] ", tt_link_shards(tt->link),
            tt_link_shards(tt->link) == 1 ? "" : "s");
    for (struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
         poll(&input, 1, 0) <= 0 && !atomic_load(tt->stop);) {
        tt_link_idle(tt->link, CONFIRM_STEP_MS);
    }
    if (atomic_load(tt->stop)) {
        return false;
    }
    ssize_t length = read(STDIN_FILENO, answer, sizeof answer);
    return length > 0 && (answer[0] == 'y' || answer[0] == 'Y');
}

/* For one that changes all or nothing: every shard must be there. */
static int miss_any(const struct tt *tt, const char *what)
{
    char name[TRANSPORT_NAME_MAX];
    int missing = 0;
    for (unsigned i = 0; i < tt_link_shards(tt->link); i++) {
        if (!tt_link_is_up(tt->link, i)) {
            tt_link_name(tt->link, i, name);
            log_fail(tt_program, "%s does not answer: %s", name, what);
            missing = 1;
        }
    }
    return missing;
}

int tt_all_flush(struct tt *tt)
{
    int status = 0;
    if (!is_confirmed(tt)) {
        return fail("nothing was forgotten");
    }
    for (unsigned i = 0; i < tt_link_shards(tt->link); i++) {
        char why[TT_LINK_WHY_MAX], name[TRANSPORT_NAME_MAX];
        tt_link_name(tt->link, i, name);
        enum err err = tt_link_flush(tt->link, i, why);
        if (err != ERR_OK) {
            log_fail(tt_program, "%s%s%s", err == ERR_ILLEGAL ? name : "",
                     err == ERR_ILLEGAL ? " refuses: " : "", why);
            status = 1;
        }
        if (tt->json) {
            struct json j;
            json_begin(&j, stdout);
            json_text(&j, "shard", name);
            json_flag(&j, "flushed", err == ERR_OK);
            json_end(&j);
        } else if (err == ERR_OK) {
            printf("%s has forgotten all results\n", name);
        }
    }
    return status;
}

/* ---- save ---- */

struct saving {
    struct snapshot_writer *writer;
    uint64_t entries;
    uint64_t left; /* pages and entries that may come yet */
    enum err err;
    char why[SNAPSHOT_WHY_MAX];
};

static bool save_page(void *self, const struct tt_scanned *entries, uint32_t count)
{
    struct saving *s = self;
    const uint64_t cost = UINT64_C(1) + count; /* a shard may have pages of nothing without end */
    if (cost > s->left) {
        s->err = ERR_FULL;
        snprintf(s->why, sizeof s->why, "there are more results than --most lets the file have");
    }
    s->left -= s->err == ERR_OK ? cost : 0;
    for (uint32_t i = 0; i < count && s->err == ERR_OK; i++) {
        s->err = snapshot_add(s->writer, &entries[i], s->why);
        s->entries += s->err == ERR_OK;
    }
    return s->err == ERR_OK;
}

static void print_file(const struct tt *tt, const char *what, uint64_t entries, int64_t kept)
{
    const struct tt_command *c = &tt->command;
    if (tt->json) {
        struct json j;
        json_begin(&j, stdout);
        json_text(&j, "file", c->text);
        json_number(&j, what, (int64_t)entries);
        if (kept >= 0) {
            json_number(&j, "kept", kept);
        }
        json_number(&j, "shards", tt_link_shards(tt->link));
        json_end(&j);
        return;
    }
    printf("%s: %s %" PRIu64 " results", c->text, what, entries);
    if (kept >= 0) {
        printf(", %" PRId64 " of them are there now", kept);
    }
    printf("\n");
}

int tt_all_save(struct tt *tt)
{
    static const char nothing[] = "nothing was saved";
    const struct tt_command *c = &tt->command;
    struct saving saving = {.left = c->most_bytes / SNAPSHOT_ENTRY_BYTES};
    const struct tt_link_reader reader = {&saving, save_page};
    uint8_t depth = (uint8_t)(c->depth == TT_ABSENT ? 0 : c->depth);
    unsigned shards = tt_link_shards(tt->link);
    if (miss_any(tt, nothing)) {
        return 1;
    }
    /* Of one shard alone: it may begin with the file, and then owns these keys. */
    uint64_t place = shards == 1 ? tt_link_place(tt->link, 0) : 0;
    if (snapshot_create(&saving.writer, disk_of_system(), c->text, place, saving.why) != ERR_OK) {
        return fail(saving.why);
    }
    for (unsigned i = 0; i < shards; i++) {
        char why[TT_LINK_WHY_MAX];
        enum err err = tt_link_scan(tt->link, i, depth, &reader, why);
        if (err != ERR_OK) {
            snapshot_abort(&saving.writer);
            log_fail(tt_program, "%s: %s", saving.err != ERR_OK ? saving.why : why, nothing);
            return 1;
        }
    }
    if (snapshot_commit(&saving.writer, saving.why) != ERR_OK) {
        return fail(saving.why);
    }
    print_file(tt, "saved", saving.entries, -1);
    return 0;
}

/* ---- load ---- */

enum { TRIES = 5 /* of a batch that was lost */ };

/* A window that is not closed takes two, which the shard merges. Results of several depths of a key
 * were stored by a strict search, and stay beside each other. */
static void store_entry(struct tt_link *link, const struct tt_scanned *e)
{
    struct tt_store store = {.key = e->key, .depth = e->depth, .move = e->move};
    bool has_lower = e->lower > TT_SCORE_MIN, has_upper = e->upper < TT_SCORE_MAX;
    if (has_upper && e->lower != e->upper) {
        store.score = e->upper;
        store.bound = TT_UPPER | TT_BESIDE;
        tt_link_store(link, &store);
    }
    if (has_lower || !has_upper || e->lower == e->upper) {
        store.score = e->lower;
        store.bound = (e->lower == e->upper ? TT_EXACT : TT_LOWER) | TT_BESIDE;
        tt_link_store(link, &store);
    }
}

/* Stores a batch and sees what of it is there then: there may be better. */
static enum err load_batch(struct tt *tt, const struct tt_scanned *entry, unsigned count,
                           uint64_t *kept, char why[TT_LINK_WHY_MAX])
{
    struct tt_peek peek[TT_LINK_BATCH];
    struct tt_peeked found[TT_LINK_BATCH];
    for (unsigned i = 0; i < count; i++) {
        peek[i] = (struct tt_peek){entry[i].key, entry[i].depth};
    }
    for (unsigned try = 0; try < TRIES; try++) {
        uint64_t dropped = tt_link_dropped(tt->link);
        for (unsigned i = 0; i < count; i++) {
            store_entry(tt->link, &entry[i]);
        }
        enum err err = tt_link_peek(tt->link, peek, count, found, why);
        if (err != ERR_OK) {
            return err;
        }
        if (tt_link_dropped(tt->link) == dropped) {
            for (unsigned i = 0; i < count; i++) {
                bool is_known = found[i].lower > TT_SCORE_MIN || found[i].upper < TT_SCORE_MAX ||
                                found[i].move != 0;
                *kept += is_known && found[i].depth >= entry[i].depth;
            }
            return ERR_OK;
        }
    }
    snprintf(why, TT_LINK_WHY_MAX, "shards fall silent again and again");
    return ERR_IO;
}

static enum err load_all(struct tt *tt, struct snapshot_reader *reader, uint64_t *loaded,
                         uint64_t *kept, char why[SNAPSHOT_WHY_MAX])
{
    struct tt_scanned entry[TT_LINK_BATCH];
    size_t count;
    do {
        enum err err = snapshot_next(reader, entry, TT_LINK_BATCH, &count, why);
        if (err == ERR_OK && count > 0) {
            err = load_batch(tt, entry, (unsigned)count, kept, why);
        }
        if (err == ERR_OK && atomic_load(tt->stop)) {
            snprintf(why, SNAPSHOT_WHY_MAX, "interrupted");
            err = ERR_IO;
        }
        if (err != ERR_OK) {
            return err;
        }
        *loaded += count;
    } while (count > 0);
    return ERR_OK;
}

_Static_assert((int)SNAPSHOT_WHY_MAX >= (int)TT_LINK_WHY_MAX, "a link's words fit");

int tt_all_load(struct tt *tt)
{
    struct snapshot_reader *reader;
    char why[SNAPSHOT_WHY_MAX];
    uint64_t loaded = 0, kept = 0;
    if (miss_any(tt, "nothing was loaded")) {
        return 1;
    }
    if (snapshot_open(&reader, disk_of_system(), tt->command.text, why) != ERR_OK) {
        return fail(why);
    }
    uint64_t entries = snapshot_entries(reader);
    enum err err = load_all(tt, reader, &loaded, &kept, why);
    snapshot_close(&reader);
    if (err != ERR_OK) {
        log_fail(tt_program, "%s: %" PRIu64 " of %" PRIu64 " results were loaded", why, loaded,
                 entries);
        return 1;
    }
    print_file(tt, "loaded", loaded, (int64_t)kept);
    return 0;
}
