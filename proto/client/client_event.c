#include "proto/client/client_core.h"

void event_put(struct client *c, struct client_event event)
{
    CHECK_THAT(!c->has_event, "client: a message is one event");
    c->event = event;
    c->has_event = true;
}

static unsigned lowest(uint64_t bits)
{
    return (unsigned)__builtin_ctzll(bits);
}

/* A fall that was not said before the shard rose again comes first. */
static bool next_change(struct client *c, struct client_event *out)
{
    uint64_t falls = c->said_up & c->fell, rises = c->up & ~c->said_up;
    if (falls == 0 && rises == 0) {
        return false;
    }
    *out = (struct client_event){.kind = falls != 0 ? CLIENT_SHARD_DOWN : CLIENT_SHARD_UP,
                                 .shard = lowest(falls != 0 ? falls : rises)};
    c->said_up ^= UINT64_C(1) << out->shard;
    c->fell &= ~(UINT64_C(1) << out->shard);
    return true;
}

bool client_next(struct client *c, struct client_event *out)
{
    if (next_change(c, out)) {
        return true;
    }
    bool any = c->has_event;
    if (any) {
        *out = c->event;
        c->has_event = false;
    }
    return any;
}
