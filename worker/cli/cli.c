#include "worker/cli/cli.h"

#include "worker/games/games.h"

#include <string.h>

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
    job->remote_depth = (uint8_t)remote_depth;
    if (search->position == NULL) {
        search->position = is_tree ? search->game : "startpos";
    }
    return -1;
}

enum err cli_engine_open(struct engine **out, const struct cli_resources *r)
{
    const struct engine_options options = {
        .threads = r->threads,
        .hash_bytes = r->hash_mib << 20,
        .is_private = r->is_private,
        .share_depth = (uint8_t)r->share,
        .server = r->servers.server,
        .servers = r->servers.count,
    };
    return engine_open(out, &options);
}
