#include "worker/table/history_exchange.h"

#include <string.h>

enum {
    FIRST_US = 2000, /* after the begin of a search */
    ROUND_TRIPS = 4, /* at least, between two exchanges */
    PAUSE_MAX_MS = 10000, /* whatever a shard says */
};

void history_exchange_begin(struct history_exchange *h, uint64_t now_us)
{
    *h = (struct history_exchange){.due_us = now_us + FIRST_US, .pause_us = FIRST_US};
}

/* Another shard, or one that lost its memory, begins a new sum. An answer to a request of an
 * earlier search has another cursor. */
void history_exchange_take(struct history_exchange *h, uint64_t boot,
                           const struct proto_history_answer *answer, uint64_t now_us)
{
    bool continues = boot == h->boot && answer->epoch == h->epoch;
    if (!h->asked || answer->root_key != h->root_key ||
        answer->cursor != (continues ? h->cursor : 0)) {
        return;
    }
    h->asked = false;
    h->pause_us = answer->wait_ms < PAUSE_MAX_MS ? answer->wait_ms * 1000 : PAUSE_MAX_MS * 1000;
    h->due_us = now_us + h->pause_us;
    if (answer->now == answer->cursor) {
        return; /* nothing is new */
    }
    h->answered = true;
    h->halved = continues ? answer->halvings - h->halvings : 0;
    h->count = answer->list.count;
    memcpy(h->sum, answer->list.at, h->count * sizeof *h->sum);
    h->boot = boot;
    h->epoch = answer->epoch;
    h->cursor = answer->now;
    h->halvings = answer->halvings;
}

void history_exchange_serve(struct history_exchange *h, struct client *client,
                            struct search *search, uint64_t now_us, uint64_t round_trip_us)
{
    struct tt_weight weight[CLIENT_WEIGHTS_MAX];
    if (h->answered) {
        search_history_merge(search, h->sum, h->count, h->halved);
        h->answered = false;
    }
    h->root_key = search_root(search);
    unsigned owner = client_owner(client, h->root_key);
    if (now_us < h->due_us) {
        return;
    }
    uint64_t pause = ROUND_TRIPS * round_trip_us;
    h->due_us = now_us + (pause > h->pause_us ? pause : h->pause_us);
    if (owner == CLIENT_NOWHERE) {
        /* Dropped: collected for long, it would outweigh all others' when a shard is back. */
        (void)search_history_publish(search, weight, CLIENT_WEIGHTS_MAX);
        return;
    }
    if (client_shard_boot(client, owner) != h->boot) {
        h->epoch = h->cursor = 0;
    }
    unsigned count = search_history_publish(search, weight, CLIENT_WEIGHTS_MAX);
    h->asked = client_history(client, h->root_key, h->epoch, h->cursor, weight, count, now_us) !=
               CLIENT_NOWHERE;
}
