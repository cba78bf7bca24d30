#include "proto/transport/lane.h"

#include <stdlib.h>

static const char variable[] = "ABDADA_PROTOCOL";

uint32_t lane_highest_version(void)
{
    const char *text = getenv(variable);
    uint64_t version = UINT32_MAX;
    if (text != NULL) {
        (void)options_unsigned(text, PROTO_LOWEST, PROTO_VERSION, &version);
    }
    return text != NULL ? (uint32_t)version : 0;
}

int lane_check_version(const char *program)
{
    if (lane_highest_version() == UINT32_MAX) {
        return options_wrong(program, "%s=%s: must be %d to %d", variable, getenv(variable),
                             PROTO_LOWEST, PROTO_VERSION);
    }
    return OPTIONS_RUN;
}

enum err lane_open(struct client_lane *lane, const struct client_options *options)
{
    struct client_port port = {lane->shell.self, lane->shell.send};
    struct client_options completed = *options;
    completed.version = lane->shell.version != 0 ? lane->shell.version : lane_highest_version();
    completed.release = PROGRAM_VERSION;
    return client_open(&completed, &port, &lane->client);
}

void lane_close(struct client_lane *lane)
{
    if (lane->client != NULL) {
        client_bye(lane->client, lane_now(lane));
        client_free(&lane->client);
    }
}

bool lane_receive(struct client_lane *lane)
{
    return lane->shell.receive(lane->shell.self, lane->client);
}

bool lane_event(struct client_lane *lane, struct client_event *out)
{
    const struct remote_shell *shell = &lane->shell;
    bool any = client_next(lane->client, out);
    if (any && out->kind == CLIENT_HELLO_REFUSED && shell->refused != NULL) {
        shell->refused(shell->self, out->shard, *out->refused.why);
    }
    return any;
}

bool lane_next(struct client_lane *lane, struct client_event *out)
{
    while (!lane_event(lane, out)) {
        if (!lane_receive(lane)) {
            return false;
        }
    }
    return true;
}

uint64_t lane_tick(struct client_lane *lane)
{
    return client_tick(lane->client, lane_now(lane));
}

void lane_sleep(struct client_lane *lane, uint64_t until_us)
{
    lane->shell.sleep(lane->shell.self, until_us);
}
