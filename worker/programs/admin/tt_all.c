/* abdada tt: all of a table: figures, forgetting, files. */
#include "worker/programs/admin/tt_link.h"

#include "common/log.h"
#include "worker/programs/admin/monitor.h"
#include "worker/programs/json.h"

#include <inttypes.h>
#include <unistd.h>

/* ---- stats ---- */

/* A row for each figure, a column for each shard; the first that is up names the figures. */
static void print_table(const struct monitor_view *v)
{
    const struct monitor_shard *first = NULL;
    printf("%-24s", "");
    for (unsigned i = 0; i < v->shards; i++) {
        printf(" %20s", v->shard[i].address);
        first = first == NULL && v->shard[i].up ? &v->shard[i] : first;
    }
    printf("\n");
    for (unsigned f = 0; first != NULL && f < first->figures; f++) {
        printf("%-24s", first->figure[f].name);
        for (unsigned i = 0; i < v->shards; i++) {
            if (v->shard[i].up && monitor_has(&v->shard[i], first->figure[f].name)) {
                printf(" %20" PRIu64, monitor_figure(&v->shard[i], first->figure[f].name));
            } else {
                printf(" %20s", "-");
            }
        }
        printf("\n");
    }
}

/* By itself it has a session of its own: a monitor's key is enough for that. */
int tt_all_stats(struct tt *tt)
{
    struct monitor *monitor = NULL;
    char why[LANES_WHY_MAX];
    unsigned up = 0;
    struct cli_session *session = tt->link->session.lanes != NULL ? &tt->link->session : NULL;
    if (monitor_open(&monitor, session, &tt->table, tt_program, why) != ERR_OK) {
        return log_fail(tt_program, "%s", why);
    }
    monitor_round(monitor, tt->wait_ms, tt->link->stop);
    const struct monitor_view *v = monitor_view(monitor);
    for (unsigned i = 0; i < v->shards; i++) {
        up += v->shard[i].up;
        if (!v->shard[i].up) {
            log_fail(tt_program, "%s does not answer", v->shard[i].address);
        }
        if (tt->json) {
            struct json j;
            json_begin(&j, stdout);
            json_text(&j, "shard", v->shard[i].address);
            json_flag(&j, "up", v->shard[i].up);
            for (unsigned f = 0; v->shard[i].up && f < v->shard[i].figures; f++) {
                const struct monitor_figure *figure = &v->shard[i].figure[f];
                json_number(&j, figure->name, (int64_t)figure->value);
            }
            json_end(&j);
        }
    }
    if (!tt->json && up > 0) {
        print_table(v);
    }
    unsigned shards = v->shards;
    monitor_close(&monitor);
    return up == shards ? 0 : 1;
}

/* ---- flush ---- */

static bool is_confirmed(const struct tt *tt)
{
    char answer[16] = "";
    if (tt->command.yes || !isatty(STDIN_FILENO)) {
        return true;
    }
    fprintf(stderr, "Forget all results of %u shard%s? [y/N] ", tt->link->session.shards,
            tt->link->session.shards == 1 ? "" : "s");
    if (!tt_link_await_input(tt->link)) {
        return false;
    }
    ssize_t length = read(STDIN_FILENO, answer, sizeof answer);
    return length > 0 && (answer[0] == 'y' || answer[0] == 'Y');
}

int tt_all_flush(struct tt *tt)
{
    int status = 0;
    if (!is_confirmed(tt)) {
        return log_fail(tt_program, "nothing was forgotten");
    }
    for (unsigned i = 0; i < tt->link->session.shards; i++) {
        char name[LANES_NAME_MAX];
        lanes_shard_name(tt->link->session.lanes, i, name);
        enum err err = tt_link_flush(tt->link, i);
        if (err != ERR_OK) {
            status = log_fail(tt_program, "%s%s%s", err == ERR_ILLEGAL ? name : "",
                              err == ERR_ILLEGAL ? " refuses: " : "", tt->link->why);
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
    char *why; /* the link's */
};

static bool save_page(void *self, const struct proto_scanned *page)
{
    struct saving *s = self;
    const uint32_t count = page->list.count;
    const uint64_t cost = UINT64_C(1) + count; /* a shard may have pages of nothing without end */
    if (cost > s->left) {
        s->err = ERR_FULL;
        snprintf(s->why, TT_LINK_WHY_MAX, "there are more results than --most lets the file have");
    }
    s->left -= s->err == ERR_OK ? cost : 0;
    for (uint32_t i = 0; i < count && s->err == ERR_OK; i++) {
        s->err = snapshot_add(s->writer, &page->list.at[i], s->why);
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
        json_number(&j, "shards", tt->link->session.shards);
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
    static const char nothing[] = ": nothing was saved";
    const struct tt_command *c = &tt->command;
    struct saving saving = {.left = c->most_bytes / SNAPSHOT_ENTRY_BYTES, .why = tt->link->why};
    uint8_t depth = (uint8_t)(c->depth == TT_ABSENT ? 0 : c->depth);
    unsigned shards = tt->link->session.shards;
    if (tt_link_say_missing(tt->link, nothing) > 0) {
        return 1; /* all or nothing */
    }
    /* The place of a shard alone: it may begin with the file, and then owns these keys. */
    uint64_t place = shards == 1 ? client_shard(tt->link->session.lane.client, 0).place : 0;
    if (snapshot_create(&saving.writer, disk_of_system(), c->text, place, saving.why) != ERR_OK) {
        return log_fail(tt_program, "%s", saving.why);
    }
    for (unsigned i = 0; i < shards; i++) {
        if (tt_link_scan(tt->link, i, depth, save_page, &saving) != ERR_OK) {
            snapshot_abort(&saving.writer);
            return log_fail(tt_program, "%s%s", saving.why, nothing);
        }
    }
    if (snapshot_commit(&saving.writer, saving.why) != ERR_OK) {
        return log_fail(tt_program, "%s", saving.why);
    }
    print_file(tt, "saved", saving.entries, -1);
    return 0;
}

/* ---- load ---- */

enum { TRIES = 5 /* of a batch that was lost */ };

/* A window that is not closed takes two, which the shard merges. Results of several depths of a key
 * were stored by a strict search, and stay beside each other. */
static void store_entry(struct client *client, const struct tt_scanned *e)
{
    struct tt_store store = {.key = e->key, .depth = e->depth, .move = e->move};
    bool has_lower = e->lower > TT_SCORE_MIN, has_upper = e->upper < TT_SCORE_MAX;
    if (has_upper && e->lower != e->upper) {
        store.score = e->upper;
        store.bound = TT_UPPER | TT_BESIDE;
        client_store(client, client_owner(client, e->key), &store);
    }
    if (has_lower || !has_upper || e->lower == e->upper) {
        store.score = e->lower;
        store.bound = (e->lower == e->upper ? TT_EXACT : TT_LOWER) | TT_BESIDE;
        client_store(client, client_owner(client, e->key), &store);
    }
}

/* Stores a batch and sees what of it is there then: there may be better. */
static enum err load_batch(struct tt *tt, const struct tt_scanned *entry, unsigned count,
                           uint64_t *kept)
{
    struct tt_peek peek[TT_LINK_BATCH];
    struct tt_peeked found[TT_LINK_BATCH];
    for (unsigned i = 0; i < count; i++) {
        peek[i] = (struct tt_peek){entry[i].key, entry[i].depth};
    }
    for (unsigned try = 0; try < TRIES; try++) {
        uint64_t dropped = tt_link_dropped(tt->link);
        for (unsigned i = 0; i < count; i++) {
            store_entry(tt->link->session.lane.client, &entry[i]);
        }
        enum err err = tt_link_peek(tt->link, peek, count, found);
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
    snprintf(tt->link->why, sizeof tt->link->why, "shards stop answering again and again");
    return ERR_IO;
}

static enum err load_all(struct tt *tt, struct snapshot_reader *reader, uint64_t *loaded,
                         uint64_t *kept)
{
    struct tt_scanned entry[TT_LINK_BATCH];
    size_t count;
    do {
        enum err err = snapshot_next(reader, entry, TT_LINK_BATCH, &count, tt->link->why);
        if (err == ERR_OK && count > 0) {
            err = load_batch(tt, entry, (unsigned)count, kept);
        }
        if (err == ERR_OK && atomic_load(tt->link->stop)) {
            snprintf(tt->link->why, sizeof tt->link->why, "interrupted");
            err = ERR_IO;
        }
        if (err != ERR_OK) {
            return err;
        }
        *loaded += count;
    } while (count > 0);
    return ERR_OK;
}

int tt_all_load(struct tt *tt)
{
    struct snapshot_reader *reader;
    char *why = tt->link->why;
    uint64_t loaded = 0, kept = 0;
    if (tt_link_say_missing(tt->link, ": nothing was loaded") > 0) {
        return 1;
    }
    if (snapshot_open(&reader, disk_of_system(), tt->command.text, why) != ERR_OK) {
        return log_fail(tt_program, "%s", why);
    }
    uint64_t entries = snapshot_entries(reader);
    enum err err = load_all(tt, reader, &loaded, &kept);
    snapshot_close(&reader);
    if (err != ERR_OK) {
        return log_fail(tt_program, "%s: %" PRIu64 " of %" PRIu64 " results were loaded", why,
                        loaded, entries);
    }
    print_file(tt, "loaded", loaded, (int64_t)kept);
    return 0;
}
