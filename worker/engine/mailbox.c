#include "worker/engine/mailbox.h"

#include "common/clock.h"
#include "common/rng.h"
#include "proto/alias.h"
#include "worker/search/handover/algorithms.h"
#include "worker/table/remote.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
    WAIT_MS = 5,
    WAIT_WITH_NEIGHBOURS_MS = 1, /* whose messages wait meanwhile */
    FIRST_MS = 50,
    JOIN_EVERY_US = 10000,
    JOIN_EACH_US = 1000, /* more for each searcher that is known: the list grows with them */
};

struct envelope {
    uint64_t from; /* an address */
    struct peer_message message;
};

struct mailbox {
    struct peer_port port; /* its count grows */
    struct peers peers;
    struct mailboxes *all;
    struct remote *remote; /* NULL: not connected */
    bool is_joined; /* takes part in the letters of its job */
    uint64_t join_due_us;
    uint64_t *peer; /* [port.count] addresses, by number; the threads first */
    atomic_uint *until_poll;
    atomic_uint count; /* may be read without the lock */
    pthread_mutex_t lock;
    pthread_cond_t came;
    /* under the lock */
    struct envelope *list; /* a ring of MAILBOX_ROOM; NULL before the first begin */
    unsigned first, lost;
    bool woken;
};

struct mailboxes {
    unsigned count;
    struct mailbox at[];
};

/* ---- the list ---- */

/* The caller holds the lock. What finds no room for it is lost, as a letter may be. */
static void put(struct mailbox *box, const struct peer_message *m, uint64_t from, unsigned room)
{
    unsigned count = atomic_load_explicit(&box->count, memory_order_relaxed);
    CHECK_THAT(count <= MAILBOX_ROOM && box->first < MAILBOX_ROOM, "the ring is in its room");
    if (count >= room) {
        box->lost++;
        return;
    }
    struct envelope *at = &box->list[(box->first + count) % MAILBOX_ROOM];
    at->from = from;
    memcpy(&at->message, m, peer_message_size(m));
    atomic_store_explicit(&box->count, count + 1, memory_order_relaxed);
}

static bool pop(struct mailbox *box, struct peer_message *out, uint64_t *from)
{
    bool any = false;
    if (atomic_load_explicit(&box->count, memory_order_relaxed) == 0) {
        return false;
    }
    pthread_mutex_lock(&box->lock);
    unsigned count = atomic_load_explicit(&box->count, memory_order_relaxed);
    box->port.lost = box->lost;
    if (count > 0) {
        const struct envelope *at = &box->list[box->first];
        memcpy(out, &at->message, peer_message_size(&at->message));
        *from = at->from;
        box->first = count == 1 ? 0 : (box->first + 1) % MAILBOX_ROOM; /* the same few lines */
        atomic_store_explicit(&box->count, count - 1, memory_order_relaxed);
        any = true;
    }
    pthread_mutex_unlock(&box->lock);
    return any;
}

static void poll_soon(const struct mailbox *box)
{
    if (box->until_poll != NULL) {
        atomic_store_explicit(box->until_poll, 1, memory_order_release);
    }
}

/* ---- who is there ---- */

/* The number of an address, a new one if need be; MAILBOX_PEERS_MAX: no room. */
static unsigned number_of(struct mailbox *box, uint64_t address)
{
    unsigned i = 0;
    while (i < box->port.count && box->peer[i] != address) {
        i++;
    }
    if (i == box->port.count && i < MAILBOX_PEERS_MAX) {
        box->peer[box->port.count++] = address;
    }
    CHECK_THAT(box->port.count >= box->all->count && box->port.count <= MAILBOX_PEERS_MAX,
               "the threads of the process come first, and all have a place");
    return i;
}

void mailboxes_event(struct mailboxes *all, unsigned i, const struct client_event *event)
{
    struct mailbox *box = &all->at[i];
    struct peer_message m;
    if (!box->is_joined) {
        return;
    }
    if (event->kind == CLIENT_CORRESPONDENTS && event->correspondents->job == box->port.job) {
        const struct proto_correspondents *list = &event->correspondents->list;
        for (uint32_t k = 0; k < list->count; k++) {
            (void)number_of(box, list->at[k].alias);
        }
    } else if (event->kind == CLIENT_MAIL && event->mail->job == box->port.job &&
               letter_read(event->mail->body.at, event->mail->body.length, &m)) {
        m.job = event->mail->job;
        pthread_mutex_lock(&box->lock);
        put(box, &m, event->mail->from, MAILBOX_LETTERS_MAX);
        pthread_mutex_unlock(&box->lock);
        poll_soon(box);
    }
}

/* ---- the port ---- */

static void join(struct mailbox *box)
{
    uint64_t now_us = remote_now_us(box->remote);
    if (now_us >= box->join_due_us) {
        mailbox_join(box->remote, box->port.job, true);
        box->join_due_us = now_us + JOIN_EVERY_US + box->port.count * (uint64_t)JOIN_EACH_US;
    }
}

static void port_send(void *self, unsigned to, const struct peer_message *m)
{
    struct mailbox *own = self;
    CHECK_THAT(to < own->port.count, "who gets a message is known here");
    if (to >= own->all->count) {
        uint8_t body[PROTO_BODY_MAX];
        if (own->is_joined) {
            client_mail(remote_client(own->remote), own->port.job, own->peer[to], body,
                        letter_write(m, body), remote_now_us(own->remote));
        }
        return;
    }
    struct mailbox *box = &own->all->at[to];
    pthread_mutex_lock(&box->lock);
    put(box, m, own->port.address, MAILBOX_ROOM);
    pthread_cond_signal(&box->came);
    pthread_mutex_unlock(&box->lock);
    poll_soon(box);
}

static bool port_receive(void *self, struct peer_message *out)
{
    struct mailbox *box = self;
    uint64_t from;
    if (box->is_joined) {
        join(box);
    }
    while (pop(box, out, &from)) {
        out->from = number_of(box, from);
        if (out->from < MAILBOX_PEERS_MAX) {
            return true;
        }
    }
    return false;
}

static void wait_for_thread(struct mailbox *box)
{
    const uint64_t until_us = clock_us() + WAIT_MS * UINT64_C(1000);
    bool is_late = false;
    pthread_mutex_lock(&box->lock);
    while (!is_late && !box->woken &&
           atomic_load_explicit(&box->count, memory_order_relaxed) == 0) {
        is_late = !clock_wait(&box->came, &box->lock, until_us);
    }
    box->woken = false;
    pthread_mutex_unlock(&box->lock);
}

/* Not for ever: the search has limits to see to. */
static void port_wait(void *self)
{
    struct mailbox *box = self;
    if (!box->is_joined) {
        wait_for_thread(box);
        return;
    }
    join(box);
    if (atomic_load_explicit(&box->count, memory_order_relaxed) == 0) {
        remote_wait(box->remote, box->all->count > 1 ? WAIT_WITH_NEIGHBOURS_MS : WAIT_MS);
    }
}

/* ---- open and close ---- */

enum err mailboxes_open(struct mailboxes **out, unsigned count, bool owns_root)
{
    struct mailboxes *all = calloc(1, sizeof *all + count * sizeof all->at[0]);
    if (all == NULL) {
        return ERR_NOMEM;
    }
    for (unsigned i = 0; i < count; i++) {
        struct mailbox *box = &all->at[i];
        pthread_mutex_init(&box->lock, NULL);
        clock_open_condition(&box->came);
        all->count = i + 1;
        box->peer = malloc(MAILBOX_PEERS_MAX * sizeof *box->peer);
        if (algorithms_open_work(&box->peers) != ERR_OK || box->peer == NULL) {
            mailboxes_close(&all);
            return ERR_NOMEM;
        }
        box->all = all;
        box->port = (struct peer_port){.self = box,
                                       .peers = &box->peers,
                                       .address = i + 1,
                                       .index = i,
                                       .count = count,
                                       .owns_root = owns_root && i == 0,
                                       .send = port_send,
                                       .receive = port_receive,
                                       .wait = port_wait,
                                       .now_us = clock_port_us};
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
        free(all->at[i].peer);
        algorithms_close_work(&all->at[i].peers);
    }
    free(all);
    *mailboxes = NULL;
}

void mailboxes_connect(struct mailboxes *all, unsigned i, struct remote *remote, uint64_t instance)
{
    all->at[i].remote = remote;
    all->at[i].port.address = proto_alias(instance);
}

enum err mailboxes_begin(struct mailboxes *all, uint64_t job, bool is_alone)
{
    for (unsigned i = 0; i < all->count; i++) {
        struct mailbox *box = &all->at[i];
        box->list = box->list != NULL ? box->list : malloc(MAILBOX_ROOM * sizeof *box->list);
        if (box->list == NULL) {
            return ERR_NOMEM;
        }
        box->port.job = job;
        box->port.secret = rng_mix(clock_unique());
        box->port.count = all->count;
        for (unsigned k = 0; k < all->count; k++) {
            box->peer[k] = all->at[k].port.address;
        }
        box->is_joined = !is_alone && box->remote != NULL;
        box->join_due_us = 0;
        box->woken = false;
        box->first = box->lost = box->port.lost = 0;
        atomic_store_explicit(&box->count, 0, memory_order_relaxed);
    }
    return ERR_OK;
}

void mailboxes_await_first(struct mailboxes *all)
{
    struct mailbox *box = &all->at[0];
    const uint64_t until_us = clock_us() + FIRST_MS * 1000;
    while (box->is_joined && box->port.count == all->count &&
           atomic_load_explicit(&box->count, memory_order_relaxed) == 0 && clock_us() < until_us) {
        port_wait(box);
    }
}

const struct peer_port *mailboxes_port(struct mailboxes *all, unsigned i, atomic_uint *until_poll)
{
    all->at[i].until_poll = until_poll;
    return &all->at[i].port;
}

void mailboxes_end(struct mailboxes *all)
{
    for (unsigned i = 0; i < all->count; i++) {
        struct mailbox *box = &all->at[i];
        if (box->is_joined) {
            box->is_joined = false;
            mailbox_join(box->remote, box->port.job, false);
        }
    }
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

/* ---- letters about a bag ---- */

void mailbox_send(struct remote *remote, uint64_t job, uint64_t to, const struct bag_letter *letter)
{
    uint8_t body[PROTO_BODY_MAX];
    const size_t length = bag_letter_write(letter, body);
    CHECK_THAT(length > 0 && job != 0, "a letter of a bag fits, and is of a job");
    client_mail(remote_client(remote), job, to, body, length, remote_now_us(remote));
}

void mailbox_join(struct remote *remote, uint64_t job, bool takes_part)
{
    (void)client_mail_join(remote_client(remote), job, takes_part, remote_now_us(remote));
}

void mail_join_begin(struct mail_join *join)
{
    *join = (struct mail_join){.pause_ms = MAIL_JOIN_FIRST_MS};
}

void mail_join_after(struct mail_join *join, uint32_t pause_ms, uint64_t now_us)
{
    join->due_us = now_us + pause_ms * UINT64_C(1000);
    join->pause_ms = pause_ms < MAIL_JOIN_LONGEST_MS / 2 ? 2 * pause_ms : MAIL_JOIN_LONGEST_MS;
}

bool mail_join_is_due(struct mail_join *join, uint64_t now_us)
{
    const bool is_due = now_us >= join->due_us;
    if (is_due) {
        mail_join_after(join, join->pause_ms, now_us);
    }
    return is_due;
}
