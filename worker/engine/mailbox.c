#include "worker/engine/mailbox.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROOM = 16, WAIT_NS = 5000000, SECOND_NS = 1000000000 };

struct mailbox {
    struct peer_port port;
    struct mailboxes *all;
    atomic_uint *until_poll;
    atomic_uint count; /* may be read without the lock */
    pthread_mutex_t lock;
    pthread_cond_t came;
    /* under the lock */
    struct peer_message *list; /* a ring */
    unsigned first, room;
    bool woken;
};

struct mailboxes {
    unsigned count;
    struct mailbox at[];
};

static void put(struct mailbox *box, const struct peer_message *m)
{
    unsigned count = atomic_load_explicit(&box->count, memory_order_relaxed);
    if (count == box->room) {
        struct peer_message *list = malloc(2 * box->room * sizeof *list);
        CHECK(list != NULL);
        for (unsigned i = 0; i < count; i++) {
            list[i] = box->list[(box->first + i) % box->room];
        }
        free(box->list);
        box->list = list;
        box->first = 0;
        box->room *= 2;
    }
    memcpy(&box->list[(box->first + count) % box->room], m, peer_message_size(m));
    atomic_store_explicit(&box->count, count + 1, memory_order_relaxed);
}

static void port_send(void *self, unsigned to, const struct peer_message *m)
{
    struct mailbox *box = &((struct mailbox *)self)->all->at[to];
    pthread_mutex_lock(&box->lock);
    put(box, m);
    pthread_cond_signal(&box->came);
    pthread_mutex_unlock(&box->lock);
    if (box->until_poll != NULL) {
        atomic_store_explicit(box->until_poll, 1, memory_order_release);
    }
}

static bool port_receive(void *self, struct peer_message *out)
{
    struct mailbox *box = self;
    bool any = false;
    if (atomic_load_explicit(&box->count, memory_order_relaxed) == 0) {
        return false;
    }
    pthread_mutex_lock(&box->lock);
    unsigned count = atomic_load_explicit(&box->count, memory_order_relaxed);
    if (count > 0) {
        const struct peer_message *m = &box->list[box->first];
        memcpy(out, m, peer_message_size(m));
        box->first = (box->first + 1) % box->room;
        atomic_store_explicit(&box->count, count - 1, memory_order_relaxed);
        any = true;
    }
    pthread_mutex_unlock(&box->lock);
    return any;
}

/* Not for ever: the search has limits to see to. */
static void port_wait(void *self)
{
    struct mailbox *box = self;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += WAIT_NS;
    if (until.tv_nsec >= SECOND_NS) {
        until.tv_nsec -= SECOND_NS;
        until.tv_sec++;
    }
    int late = 0;
    pthread_mutex_lock(&box->lock);
    while (late == 0 && !box->woken &&
           atomic_load_explicit(&box->count, memory_order_relaxed) == 0) {
        late = pthread_cond_timedwait(&box->came, &box->lock, &until);
    }
    box->woken = false;
    pthread_mutex_unlock(&box->lock);
}

enum err mailboxes_open(struct mailboxes **out, unsigned count)
{
    struct mailboxes *all = calloc(1, sizeof *all + count * sizeof all->at[0]);
    if (all == NULL) {
        return ERR_NOMEM;
    }
    for (unsigned i = 0; i < count; i++) {
        struct mailbox *box = &all->at[i];
        box->list = malloc(ROOM * sizeof *box->list);
        if (box->list == NULL) {
            mailboxes_close(&all);
            return ERR_NOMEM;
        }
        box->room = ROOM;
        box->all = all;
        pthread_mutex_init(&box->lock, NULL);
        pthread_cond_init(&box->came, NULL);
        box->port = (struct peer_port){.self = box,
                                       .index = i,
                                       .count = count,
                                       .owns_root = i == 0,
                                       .send = port_send,
                                       .receive = port_receive,
                                       .wait = port_wait};
        all->count = i + 1;
    }
    *out = all;
    return ERR_OK;
}

void mailboxes_close(struct mailboxes **mailboxes)
{
    struct mailboxes *all = *mailboxes;
    for (unsigned i = 0; all != NULL && i < all->count; i++) {
        pthread_mutex_destroy(&all->at[i].lock);
        pthread_cond_destroy(&all->at[i].came);
        free(all->at[i].list);
    }
    free(all);
    *mailboxes = NULL;
}

void mailboxes_begin(struct mailboxes *all, uint64_t job)
{
    for (unsigned i = 0; i < all->count; i++) {
        all->at[i].port.job = job;
        all->at[i].woken = false;
        atomic_store_explicit(&all->at[i].count, 0, memory_order_relaxed);
    }
}

const struct peer_port *mailboxes_port(struct mailboxes *all, unsigned i, atomic_uint *until_poll)
{
    all->at[i].until_poll = until_poll;
    return &all->at[i].port;
}

void mailboxes_wake(struct mailboxes *all)
{
    for (unsigned i = 0; i < all->count; i++) {
        pthread_mutex_lock(&all->at[i].lock);
        all->at[i].woken = true;
        pthread_cond_signal(&all->at[i].came);
        pthread_mutex_unlock(&all->at[i].lock);
    }
}
