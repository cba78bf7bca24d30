#include "worker/programs/cli.h"

#include "common/clock.h"
#include "common/config.h"
#include "common/log.h"
#include "common/memory.h"
#include "worker/games/games.h"
#include "worker/table/host_table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SAY_EVERY_US = 2000000 };

int cli_resolve(const char *program, struct cli_search *search, struct job *job)
{
    bool is_tree = strncmp(search->game, "tree:", 5) == 0;
    uint64_t remote_depth = PROTO_REMOTE_DEPTH_AUTO;
    job->game = games_by_name(is_tree ? "tree" : search->game);
    if (job->game == NULL) {
        return options_wrong(program, "unknown game '%s' (there are: %s)", search->game,
                             games_names());
    }
    job->algorithm = algorithm_by_name(search->algorithm);
    if (job->algorithm == NULL) {
        return options_wrong(program, "unknown algorithm '%s' (there are: %s)", search->algorithm,
                             algorithm_names((char[ALGORITHM_NAMES_MAX]){0}));
    }
    if (strcmp(search->remote_depth, "auto") != 0 &&
        options_unsigned(search->remote_depth, 1, SEARCH_DEPTH_MAX, &remote_depth) != ERR_OK) {
        return options_wrong(program, "--remote-depth is auto or 1..%d, not '%s'", SEARCH_DEPTH_MAX,
                             search->remote_depth);
    }
    job->full = strcmp(search->select, "full") == 0;
    if (!job->full && strcmp(search->select, "plain") != 0) {
        return options_wrong(program, "--select is plain or full, not '%s'", search->select);
    }
    if (job->full && algorithm_needs_peers(job->algorithm)) {
        return options_wrong(program, "--algorithm %s supports --select plain only",
                             job->algorithm->name);
    }
    if (job->full && search->strict) {
        return options_wrong(program, "--strict needs --select plain: pruning depends on alpha");
    }
    job->strict = search->strict;
    job->remote_depth = (uint8_t)remote_depth;
    if (search->position == NULL) {
        search->position = is_tree ? search->game : "startpos";
    }
    return -1;
}

bool cli_join(char *out, size_t size, const char **word, unsigned words)
{
    size_t used = 0;
    out[0] = '\0';
    for (unsigned i = 0; i < words && used < size; i++) {
        used += (size_t)snprintf(out + used, size - used, "%s%s", i > 0 ? " " : "", word[i]);
    }
    return used < size;
}

int cli_parse(struct options options, int argc, char *argv[], const char **position)
{
    enum { FEN_WORDS = 6, ROOM = 4 * GAME_TEXT_MAX }; /* what is cut is still too long */
    static char text[ROOM];
    const char *word[FEN_WORDS];
    unsigned words = 0;
    options.operands_max = FEN_WORDS;
    options.board_letters = CLI_BOARD_LETTERS;
    int status = config_parse(&options, argc, argv, word, &words);
    if (words > 0) {
        (void)cli_join(text, sizeof text, word, words);
        *position = text;
    }
    return status;
}

void cli_left_out(const char *program, const char *file, unsigned line, const char *what)
{
    if (what[0] != '\0' && file != NULL) {
        log_line(program, "%s:%u: %s", file, line, what);
    } else if (what[0] != '\0') {
        log_line(program, "%s", what);
    }
}

int cli_no_position(const char *program, enum err err, const char *why)
{
    if (err == ERR_NOMEM) {
        return log_fail(program, "%s", err_text(err));
    }
    return options_wrong(program, "%s", why);
}

int cli_environment(const char *program, struct options_servers *servers, const char **keys_dir,
                    bool needs)
{
    const char *list = getenv("ABDADA_SERVERS");
    if (servers->count == 0 && list != NULL && list[0] != '\0') {
        enum err err = options_servers(list, servers);
        if (err != ERR_OK) {
            return options_wrong(program, "ABDADA_SERVERS '%.200s': %s", list,
                                 err == ERR_EXIST ? "the same shard is named twice"
                                                  : "not HOST:PORT,...");
        }
    }
    if (keys_choose_dir(keys_dir) != ERR_OK) {
        return options_wrong(program, "--keys needs the name of a directory");
    }
    if (needs && servers->count == 0) {
        return options_wrong(program, "give --servers HOST:PORT,..., or set ABDADA_SERVERS");
    }
    return -1;
}

int cli_table_environment(const char *program, struct cli_table *table, bool needs)
{
    char why[REDIS_WHY_MAX];
    const char *url = getenv("ABDADA_TABLE");
    if (table->url == NULL && table->servers.count == 0 && url != NULL && url[0] != '\0') {
        const char *list = getenv("ABDADA_SERVERS");
        if (list != NULL && list[0] != '\0') {
            return options_wrong(program, "ABDADA_SERVERS and ABDADA_TABLE exclude each other");
        }
        table->url = url;
    }
    if (table->url == NULL) {
        int status = cli_environment(program, &table->servers, &table->keys_dir, false);
        if (status < 0 && needs && table->servers.count == 0) {
            return options_wrong(program, "give --servers HOST:PORT,... or --table URL, or set "
                                          "ABDADA_SERVERS");
        }
        return status;
    }
    if (table->servers.count > 0) {
        return options_wrong(program, "--servers and --table exclude each other");
    }
    if (table->keys_dir != NULL) {
        return options_wrong(program, "--keys is for shards; to encrypt the connection to a Redis, "
                                      "use --table rediss://");
    }
    if (redis_address_parse_option(&table->redis, table->url, why) != ERR_OK) {
        return options_wrong(program, "--table: %s", why);
    }
    if (redis_address_environment(&table->redis, why) != ERR_OK) {
        return options_wrong(program, "%s", why);
    }
    return -1;
}

bool cli_table_is_given(const struct cli_table *table)
{
    return table->url != NULL || table->servers.count > 0;
}

struct lanes_address cli_table_address(const struct cli_table *table,
                                       const struct keys_client *keys)
{
    return (struct lanes_address){
        .server = table->servers.server,
        .servers = table->servers.count,
        .keys = keys,
        .redis = table->url != NULL ? &table->redis : NULL,
    };
}

enum err cli_load_keys(const char *keys_dir, enum keys_role role, struct keys_client *keys,
                       const struct keys_client **out, char *why)
{
    enum err err = keys_dir == NULL ? ERR_OK : keys_load_client(keys_dir, role, keys, why);
    if (err == ERR_OK) {
        *out = keys_dir == NULL ? NULL : keys;
    }
    return err;
}

enum err cli_session_open(struct cli_session *s, const struct cli_table *table, enum keys_role role,
                          const char *program, const char *name, struct client_options options,
                          char why[LANES_WHY_MAX])
{
    struct keys_client room;
    const struct keys_client *keys = NULL;
    char own[32];
    enum err err = cli_load_keys(table->keys_dir, role, &room, &keys, why);
    if (err != ERR_OK) {
        return err;
    }
    const struct lanes_address address = cli_table_address(table, keys);
    snprintf(own, sizeof own, "%s:%d", name, (int)getpid());
    options.name = own;
    options.rto_max_us = CLI_SESSION_RTO_US;
    err = lanes_open_one(&s->lanes, &s->lane, &address, program, &options, why);
    keys_wipe(&room, sizeof room);
    s->shards = err == ERR_OK ? lanes_shards(s->lanes) : 0;
    return err;
}

void cli_session_close(struct cli_session *s)
{
    lane_close(&s->lane);
    lanes_close(&s->lanes);
}

bool cli_say_waiting(void *self, long maker, uint64_t filled, uint64_t bytes)
{
    struct cli_wait *w = self;
    uint64_t now = clock_us();
    bool is_own = maker == (long)getpid();
    if (is_own && w->next_us == 0) { /* nothing to say of one that is made at once */
        w->next_us = now + SAY_EVERY_US;
    }
    if (now >= w->next_us) {
        char what[64] = "waiting for the table that another process is making";
        if (is_own) {
            snprintf(what, sizeof what, "making the table");
        } else if (maker != 0) {
            snprintf(what, sizeof what, "waiting for the table that process %ld is making", maker);
        }
        w->next_us = now + SAY_EVERY_US;
        log_line(w->program, "%s: %" PRIu64 " of %" PRIu64 " MiB", what, filled >> 20, bytes >> 20);
    }
    return w->stop == NULL || !atomic_load(w->stop);
}

void cli_say_private(const char *program, uint64_t hash_mib, const char *reason)
{
    log_line(program, "a table of its own of %" PRIu64 " MiB, shared with no other process: %s",
             hash_mib, reason);
}

uint64_t cli_histories_bytes(const struct game *game)
{
    return game == NULL || game->move_class != NULL ? CLI_HISTORIES_BYTES : 0;
}

enum err cli_check_memory(uint64_t hash_mib, const struct game *game, unsigned threads, char *why,
                          size_t why_size)
{
    char reason[128], size[MEMORY_TEXT_MAX];
    const uint64_t besides = games_solver_bytes(game) + threads * cli_histories_bytes(game);
    if (memory_has_room(hash_mib << 20, besides, threads, reason, sizeof reason)) {
        return ERR_OK;
    }
    snprintf(why, why_size, "a table of %s (--hash) %s", memory_text(hash_mib << 20, size), reason);
    return ERR_NOMEM;
}

uint64_t cli_memory_besides(uint64_t tables, unsigned threads)
{
    const uint64_t all = memory_for_tables(threads);
    return all > tables ? all - tables : 1;
}

enum err cli_engine_open(struct engine **out, const char *program, const struct cli_resources *r,
                         const atomic_bool *stop, char why[ENGINE_WHY_MAX])
{
    struct cli_wait wait = {.program = program, .stop = stop};
    const struct host_table_wait host_wait = {.self = &wait, .waiting = cli_say_waiting};
    struct keys_client keys;
    struct engine_options options = {
        .threads = r->threads,
        .hash_bytes = r->hash_mib << 20,
        .is_private = r->is_private,
        .share_depth = (uint8_t)r->share,
        .wait = &host_wait, /* while it opens */
        .program = program,
    };
    const struct keys_client *loaded = NULL;
    const char *keys_dir = r->table.servers.count > 0 ? r->table.keys_dir : NULL;
    enum err err = cli_check_memory(r->hash_mib, r->game, r->threads, why, ENGINE_WHY_MAX);
    err = err ? err : cli_load_keys(keys_dir, KEYS_FRONT, &keys, &loaded, why);
    if (err != ERR_OK) {
        return err;
    }
    options.table = cli_table_address(&r->table, loaded);
    err = engine_open(out, &options, why);
    keys_wipe(&keys, sizeof keys);
    const char *reason = err == ERR_OK ? engine_private_reason(*out) : NULL;
    if (reason != NULL) {
        cli_say_private(program, r->hash_mib, reason);
    }
    return err;
}

const char *cli_time_left(uint32_t seconds, char out[CLI_TIME_LEFT_MAX])
{
    static const struct {
        const char *name;
        uint32_t seconds;
    } unit[] = {{"days", 86400}, {"hours", 3600}, {"minutes", 60}, {"s", 1}};
    unsigned i = 0;
    while (i < 3 && seconds < 2 * unit[i].seconds) {
        i++;
    }
    const double left = (double)seconds / unit[i].seconds;
    out[0] = '\0';
    if (seconds > 0) {
        snprintf(out, CLI_TIME_LEFT_MAX, "  about %.*f %s left", left < 10 && i < 3, left,
                 unit[i].name);
    }
    return out;
}

void cli_refusal_text(const struct engine *engine, unsigned shard, const char *why,
                      const struct engine_status *s, char out[CLI_REFUSAL_MAX])
{
    char at[LANES_NAME_MAX];
    engine_shard_name(engine, shard, at);
    if (why == NULL) {
        snprintf(out, CLI_REFUSAL_MAX, "shard %s has taken the job", at);
        return;
    }
    snprintf(out, CLI_REFUSAL_MAX, "shard %s refused the job: %s; %s", at, why,
             s->refused < s->shards_up ? "the search continues with the workers of the other shards"
                                       : "searching alone");
}

static const struct searcher *searcher_of(void *engine, unsigned i)
{
    return engine_searcher(engine, i);
}

static unsigned workers_of(void *engine)
{
    return engine_workers(engine);
}

enum err cli_metrics_open(struct searching_metrics **out, const char *program,
                          const struct cli_resources *r, struct engine *engine,
                          struct searcher_figures *past, const atomic_bool *stop,
                          char why[HTTP_WHY_MAX])
{
    const struct searching_metrics_options options = {
        .program = "abdada",
        .says = program,
        .threads = r->threads,
        .shards = engine_shards(engine),
        .searcher = searcher_of,
        .workers = workers_of,
        .self = engine,
        .past = past,
        .stop = stop,
    };
    return searching_metrics_open(out, &r->metrics, &options, why);
}
