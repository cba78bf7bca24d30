#include "worker/table/deferred.h"

void deferred_add(struct deferred *d, const struct tt_ask *ask, uint32_t request)
{
    d->at[d->count].ask = *ask;
    d->at[d->count++].request = request;
}

/* `count`: there is none. */
static unsigned find(const struct deferred *d, const struct table_ticket *ticket)
{
    unsigned i = 0;
    while (i < d->count && d->at[i].request != ticket->request) {
        i++;
    }
    return ticket->later ? i : d->count;
}

bool deferred_has(const struct deferred *d, const struct table_ticket *ticket)
{
    return find(d, ticket) < d->count;
}

void deferred_forget(struct deferred *d, const struct table_ticket *ticket, struct client *client)
{
    unsigned i = find(d, ticket);
    if (i < d->count) {
        client_forget(client, ticket->request);
        d->at[i] = d->at[--d->count];
    }
}

void deferred_cancel_all(struct deferred *d, struct client *client)
{
    while (d->count > 0) {
        client_cancel(client, d->at[--d->count].request);
    }
}

bool deferred_next(struct deferred *d, struct client *client, uint64_t now_us, struct tt_ask *ask,
                   struct tt_answer *answer)
{
    for (unsigned i = d->count; i > 0; i--) {
        *ask = d->at[i - 1].ask;
        enum client_result result = client_answer(client, d->at[i - 1].request, now_us, answer);
        if (result != CLIENT_WAITING) {
            d->at[i - 1] = d->at[--d->count];
        }
        if (result == CLIENT_READY) {
            return true;
        }
    }
    return false;
}
