#include "worker/programs/uci/uci_options.h"

#include "worker/games/chess/tablebase.h"
#include "worker/programs/uci/uci_limits.h"

#include "common/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { WANT_MAX = 256, OVERHEAD_MAX_MS = 5000 };

/* A Redis in place of shards. The line is no command line, so it may have a password in it. */
static enum err set_table(struct uci_options *u, const char *url)
{
    struct cli_table *table = &u->resources.table;
    struct redis_address redis;
    char why[REDIS_WHY_MAX];
    if (url[0] == '\0' || strcasecmp(url, "<empty>") == 0) {
        table->url = NULL;
        return ERR_OK;
    }
    enum err err = redis_address_parse(&redis, url, why);
    if (err == ERR_OK) {
        err = redis_address_environment(&redis, why);
    }
    if (err != ERR_OK) {
        printf("info string error: %s\n", why);
        return err;
    }
    table->redis = redis;
    table->url = "set by the option Table";
    table->servers.count = 0;
    return ERR_OK;
}

/* What a table may have: all of the machine's memory. */
static uint64_t hash_max_mib(void)
{
    uint64_t mib = memory_machine_bytes() >> 20;
    return mib < 1 << 20 ? mib : 1 << 20;
}

/* False: the value is none of the option's; `want` says what it takes. */
static bool read_number(const char *value, uint64_t min, uint64_t max, uint64_t *out,
                        char want[WANT_MAX])
{
    snprintf(want, WANT_MAX, "a number from %" PRIu64 " to %" PRIu64, min, max);
    return options_unsigned(value, min, max, out) == ERR_OK;
}

static bool read_choice(const char *value, const char *yes, const char *no, bool *out,
                        char want[WANT_MAX])
{
    const bool is_yes = strcasecmp(value, yes) == 0, is_no = strcasecmp(value, no) == 0;
    snprintf(want, WANT_MAX, "%s or %s", yes, no);
    *out = is_yes || is_no ? is_yes : *out;
    return is_yes || is_no;
}

static bool read_algorithm(const char *value, const struct algorithm **out, char want[WANT_MAX])
{
    bool is_one = false;
    size_t used = (size_t)snprintf(want, WANT_MAX, "one of");
    for (unsigned i = 0; algorithm_at(i) != NULL && used < WANT_MAX; i++) {
        const struct algorithm *algorithm = algorithm_at(i);
        if (algorithm_needs_peers(algorithm)) { /* which is for selection plain */
            continue;
        }
        used += (size_t)snprintf(want + used, WANT_MAX - used, " %s", algorithm->name);
        if (strcasecmp(value, algorithm->name) == 0) {
            is_one = true;
            *out = algorithm;
        }
    }
    return is_one;
}

static bool read_servers(const char *value, struct cli_table *table, char want[WANT_MAX])
{
    snprintf(want, WANT_MAX, "HOST:PORT,... or <empty>");
    if (value[0] == '\0' || strcasecmp(value, "<empty>") == 0) {
        table->servers.count = 0;
        return true;
    }
    bool ok = options_servers(value, &table->servers) == ERR_OK;
    table->url = ok ? NULL : table->url;
    return ok;
}

static void set_tablebase(const char *path)
{
    char why[WANT_MAX];
    const bool is_none = strcasecmp(path, "<empty>") == 0;
    if (chess_tablebase_open(is_none ? NULL : path, why, sizeof why) != ERR_OK) {
        printf("info string error: SyzygyPath: %s\n", why);
    } else if (chess_tablebase_pieces() > 0) {
        printf("info string Syzygy tables of up to %u pieces\n", chess_tablebase_pieces());
    }
}

void uci_options_set(struct uci_options *u, const char *name, const char *value, bool *anew,
                     bool *clear)
{
    char want[WANT_MAX] = "a Redis";
    uint64_t threads = u->resources.threads;
    bool ok = true, ignored = false;
    *anew = *clear = false;
    if (strcasecmp(name, "Hash") == 0) {
        *anew = ok = read_number(value, 1, hash_max_mib(), &u->resources.hash_mib, want);
    } else if (strcasecmp(name, "Threads") == 0) {
        *anew = ok = read_number(value, 1, EMBEDDED_SLOTS_MAX, &threads, want);
        u->resources.threads = (uint32_t)threads;
    } else if (strcasecmp(name, "Servers") == 0) {
        *anew = ok = read_servers(value, &u->resources.table, want);
    } else if (strcasecmp(name, "Table") == 0) {
        *anew = set_table(u, value) == ERR_OK; /* it says itself what is wrong */
    } else if (strcasecmp(name, "Clear Hash") == 0) {
        *clear = true;
    } else if (strcasecmp(name, "Move Overhead") == 0) {
        ok = read_number(value, 0, OVERHEAD_MAX_MS, &u->overhead_ms, want);
    } else if (strcasecmp(name, "MultiPV") == 0) {
        ok = read_number(value, 1, SEARCH_LINES_MAX, &u->lines, want);
    } else if (strcasecmp(name, "Algorithm") == 0) {
        ok = read_algorithm(value, &u->algorithm, want);
    } else if (strcasecmp(name, "Strict") == 0) {
        ok = read_choice(value, "true", "false", &u->strict, want);
    } else if (strcasecmp(name, "Selection") == 0) {
        ok = read_choice(value, "full", "plain", &u->full, want);
    } else if (strcasecmp(name, "UCI_Chess960") == 0) {
        ok = read_choice(value, "true", "false", &u->chess960, want);
    } else if (strcasecmp(name, "UCI_LimitStrength") == 0) {
        ok = read_choice(value, "true", "false", &u->is_limited, want);
    } else if (strcasecmp(name, "UCI_Elo") == 0) {
        ok = read_number(value, UCI_ELO_MIN, UCI_ELO_MAX, &u->elo, want);
    } else if (strcasecmp(name, "SyzygyPath") == 0) {
        set_tablebase(value);
    } else if (strcasecmp(name, "Ponder") == 0 || strcasecmp(name, "UCI_AnalyseMode") == 0) {
        ok = read_choice(value, "true", "false", &ignored, want); /* nothing to prepare */
    } else {
        printf("info string error: there is no option '%s'\n", name);
    }
    if (!ok) {
        printf("info string error: option '%s' is %s, not '%s'\n", name, want, value);
    }
}

static void say_table(const struct uci_options *u)
{
    char url[REDIS_TEXT_MAX] = "<empty>";
    if (u->resources.table.url != NULL) {
        redis_address_text(&u->resources.table.redis, url);
    }
    printf("option name Table type string default %s\n", url);
}

void uci_options_say(const struct uci_options *u)
{
    char address[OPTIONS_HOST_MAX + 16];
    printf("option name Hash type spin default %" PRIu64 " min 1 max %" PRIu64 "\n",
           u->resources.hash_mib, hash_max_mib());
    printf("option name Clear Hash type button\n");
    printf("option name Move Overhead type spin default %" PRIu64 " min 0 max %d\n", u->overhead_ms,
           OVERHEAD_MAX_MS);
    printf("option name Threads type spin default %u min 1 max %d\n", u->resources.threads,
           EMBEDDED_SLOTS_MAX);
    printf("option name Servers type string default%s",
           u->resources.table.servers.count == 0 ? " <empty>" : "");
    for (unsigned i = 0; i < u->resources.table.servers.count; i++) {
        const struct options_host_port *at = &u->resources.table.servers.server[i];
        options_host_port_text(at->host, at->port, address, sizeof address);
        printf("%c%s", i == 0 ? ' ' : ',', address);
    }
    printf("\n");
    say_table(u);
    printf("option name Selection type combo default %s var plain var full\n",
           u->full ? "full" : "plain");
    printf("option name MultiPV type spin default %" PRIu64 " min 1 max %d\n", u->lines,
           SEARCH_LINES_MAX);
    printf("option name Ponder type check default false\n");
    printf("option name UCI_AnalyseMode type check default false\n");
    printf("option name UCI_Chess960 type check default %s\n", u->chess960 ? "true" : "false");
    printf("option name UCI_LimitStrength type check default %s\n",
           u->is_limited ? "true" : "false");
    printf("option name UCI_Elo type spin default %" PRIu64 " min %d max %d\n", u->elo, UCI_ELO_MIN,
           UCI_ELO_MAX);
    printf("option name SyzygyPath type string default <empty>\n");
    printf("option name Strict type check default %s\n", u->strict ? "true" : "false");
    printf("option name Algorithm type combo default %s", u->algorithm->name);
    for (unsigned i = 0; algorithm_at(i) != NULL; i++) {
        if (!algorithm_needs_peers(algorithm_at(i))) {
            printf(" var %s", algorithm_at(i)->name);
        }
    }
    printf("\n");
}
