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

static void report(const struct lane *lane, const struct client_event *e)
{
    if (e->kind == CLIENT_HELLO_REFUSED && lane->refused != NULL) {
        lane->refused(lane->self, e->shard, *e->refused.why);
    }
    unsigned twin = e->kind == CLIENT_SHARD_UP && lane->met_twin != NULL
                        ? client_twin(lane->client, e->shard)
                        : CLIENT_NOWHERE;
    if (twin != CLIENT_NOWHERE) {
        bool is_same =
            client_shard(lane->client, e->shard).boot == client_shard(lane->client, twin).boot;
        lane->met_twin(lane->self, e->shard, twin, is_same);
    }
}

bool lane_event(const struct lane *lane, struct client_event *out)
{
    bool any = client_next(lane->client, out);
    if (any) {
        report(lane, out);
    }
    return any;
}

bool lane_next(const struct lane *lane, struct client_event *out)
{
    while (!client_next(lane->client, out)) {
        if (!lane->receive(lane->self, lane->client)) {
            return false;
        }
    }
    report(lane, out);
    return true;
}
