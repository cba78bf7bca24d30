#include "proto/lane/lane.h"

enum err lane_open(struct lane *lane, const struct client_options *options)
{
    struct client_options completed = *options;
    completed.release = PROGRAM_VERSION;
    return client_open(&completed, lane->send, lane->self, &lane->client);
}

void lane_close(struct lane *lane)
{
    if (lane->client != NULL) {
        client_bye(lane->client, lane_now(lane));
        client_free(&lane->client);
    }
}

bool lane_event(struct lane *lane, struct client_event *out)
{
    bool any = client_next(lane->client, out);
    if (any && out->kind == CLIENT_HELLO_REFUSED && lane->refused != NULL) {
        lane->refused(lane->self, out->shard, *out->refused.why);
    }
    unsigned twin = any && out->kind == CLIENT_SHARD_UP && lane->met_twin != NULL
                        ? client_twin(lane->client, out->shard)
                        : CLIENT_NOWHERE;
    if (twin != CLIENT_NOWHERE) {
        bool is_same =
            client_shard(lane->client, out->shard).boot == client_shard(lane->client, twin).boot;
        lane->met_twin(lane->self, out->shard, twin, is_same);
    }
    return any;
}

bool lane_next(struct lane *lane, struct client_event *out)
{
    while (!lane_event(lane, out)) {
        if (!lane_receive(lane)) {
            return false;
        }
    }
    return true;
}
