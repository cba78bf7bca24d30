#include "common/redis/redis_link.h"

#include "common/redis/redis_map.h"
#include "common/redis/redis_reader.h"
#include "common/redis/redis_tls.h"

#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

/* CRC-16 with the polynomial 0x1021, as a Redis Cluster computes it. */
static unsigned crc16(const char *bytes, size_t length)
{
    unsigned crc = 0;
    for (size_t i = 0; i < length; i++) {
        crc ^= (unsigned)(unsigned char)bytes[i] << 8;
        for (unsigned bit = 0; bit < 8; bit++) {
            crc = (crc & 0x8000) ? (crc << 1) ^ 0x1021 : crc << 1;
        }
        crc &= 0xffff;
    }
    return crc;
}

unsigned redis_link_slot(const char *key, size_t length)
{
    const char *open = memchr(key, '{', length);
    if (open != NULL) {
        size_t left = length - (size_t)(open + 1 - key);
        const char *end = memchr(open + 1, '}', left);
        if (end != NULL && end > open + 1) {
            return crc16(open + 1, (size_t)(end - open - 1)) % REDIS_SLOTS;
        }
    }
    return crc16(key, length) % REDIS_SLOTS;
}

enum {
    AGAIN_MAX = REDIS_NODE_CALLS_MAX, /* calls that wait to be sent again */
    AGAIN_AFTER_US = 20000, /* where the same node has to be asked again */
    TRIES_MAX = 64, /* of a call */
};

_Static_assert(REDIS_LINK_FDS_MAX == REDIS_MAP_NODES_MAX + 1, "one is the subscriber's");

/* The calls of a slot are carried out in their order, or are lost: those that have to be sent again
 * wait until every call of the slot that is on its way is answered; later ones wait behind them. */
struct slot_calls {
    uint32_t sent, waiting;
    uint32_t sent_turn, kept_turn; /* of send_again: when one was sent, and when one was kept */
};

struct redis_link {
    /* fixed after open */
    struct redis_link_options o;
    struct redis_address address;
    struct redis_node_setup setup;

    /* state */
    struct redis_map map;
    struct redis_call *again, **again_end; /* to be sent again when they are due */
    unsigned agains;
    uint32_t turn; /* of send_again */
    uint64_t calls;
    struct slot_calls slot[REDIS_SLOTS];
    struct redis_node subscriber;
    unsigned subscriber_node; /* the node that it goes to */
    char *channel[REDIS_CHANNELS_MAX];
    uint64_t now_us;
};

bool redis_link_is_up(const struct redis_link *link, unsigned slot)
{
    const struct redis_node *node = redis_map_owner(&link->map, slot);
    return node != NULL && redis_node_is_up(node);
}

/* ---- calls ---- */

static struct slot_calls *calls_of(struct redis_link *link, const struct redis_call *call)
{
    return &link->slot[call->slot];
}

static void hand_back(struct redis_link *link, struct redis_call *call)
{
    link->o.answered(link->o.self, call->tag, NULL);
    free(call);
}

static void hand_back_all(struct redis_link *link, struct redis_call *list)
{
    while (list != NULL) {
        struct redis_call *next = list->next;
        hand_back(link, list);
        list = next;
    }
}

static bool is_in_time(const struct redis_link *link, const struct redis_call *call)
{
    return call->tries < TRIES_MAX && link->now_us < call->first_us + REDIS_LINK_AGAIN_US;
}

static void wait_behind(struct redis_link *link, struct redis_call *call)
{
    call->next = NULL;
    *link->again_end = call;
    link->again_end = &call->next;
    link->agains++;
    calls_of(link, call)->waiting++;
}

/* Sent later, to the node that serves the slot then. */
static void keep_for_later(struct redis_link *link, struct redis_call *call, uint64_t after_us)
{
    if (!is_in_time(link, call) || link->agains >= AGAIN_MAX) {
        hand_back(link, call);
        return;
    }
    call->due_us = link->now_us + after_us;
    wait_behind(link, call);
}

/* False: the call is still the caller's. */
static bool send_to(struct redis_link *link, struct redis_node *node, struct redis_call *call)
{
    if (node == NULL || !redis_node_call(node, call, link->now_us)) {
        return false;
    }
    calls_of(link, call)->sent++;
    return true;
}

/* May it be sent, as far as others of its slot go? */
static bool is_its_turn(const struct redis_link *link, const struct slot_calls *slot)
{
    return slot->kept_turn != link->turn && (slot->sent == 0 || slot->sent_turn == link->turn);
}

/* What is due is sent to the node that serves its slot now, or waits on for one that does. */
static void send_again(struct redis_link *link)
{
    struct redis_call *call = link->again, *over = NULL, **over_end = &over;
    link->again = NULL;
    link->again_end = &link->again;
    link->agains = 0;
    link->turn++;
    while (call != NULL) {
        struct redis_call *next = call->next;
        struct slot_calls *slot = calls_of(link, call);
        CHECK_THAT(slot->waiting > 0, "link: its slot counts a call that waits");
        slot->waiting--;
        if (!is_in_time(link, call)) {
            call->next = NULL;
            *over_end = call;
            over_end = &call->next;
        } else if (link->now_us >= call->due_us && is_its_turn(link, slot) &&
                   send_to(link, redis_map_owner(&link->map, call->slot), call)) {
            slot->sent_turn = link->turn;
        } else {
            slot->kept_turn = link->turn;
            wait_behind(link, call);
        }
        call = next;
    }
    CHECK_THAT((link->agains > 0) == (link->again != NULL), "link: it counts the calls that wait");
    hand_back_all(link, over);
}

/* A later call of the slot was carried out, or may have been: those before it that wait would come
 * after it. */
static void lose_earlier(struct redis_link *link, const struct redis_call *later)
{
    struct redis_call **at = &link->again, *over = NULL, **over_end = &over;
    if (calls_of(link, later)->waiting == 0) {
        return;
    }
    while (*at != NULL) {
        struct redis_call *call = *at;
        if (call->slot != later->slot || call->number > later->number) {
            at = &call->next;
            continue;
        }
        *at = call->next;
        call->next = NULL;
        *over_end = call;
        over_end = &call->next;
        link->agains--;
        calls_of(link, call)->waiting--;
    }
    CHECK_THAT((link->agains > 0) == (link->again != NULL), "link: it counts the calls that wait");
    link->again_end = at;
    hand_back_all(link, over);
}

static void on_moved(struct redis_link *link, struct redis_node *from, struct redis_call *call,
                     const redisReply *reply)
{
    unsigned slot = 0;
    struct redis_node *to = redis_map_target(&link->map, from, reply, &slot);
    redis_map_doubt(&link->map);
    if (to != NULL) {
        redis_map_assign(&link->map, slot, to);
    }
    keep_for_later(link, call, 0);
}

/* The slot is on its way to that node, which takes this one call. */
static void on_ask(struct redis_link *link, struct redis_node *from, struct redis_call *call,
                   const redisReply *reply)
{
    unsigned slot = 0;
    struct redis_node *to = redis_map_target(&link->map, from, reply, &slot);
    struct redis_call *first =
        to == NULL ? NULL : redis_call_make_words(REDIS_CALL_ASKING, 1, (const char *[]){"ASKING"});
    const bool is_taken = first != NULL && redis_node_call(to, first, link->now_us);
    if (!is_taken) {
        free(first);
    }
    if (!is_taken || !send_to(link, to, call)) {
        keep_for_later(link, call, AGAIN_AFTER_US); /* the slot's owner says ASK again */
    }
}

static bool begins(const redisReply *reply, const char *word)
{
    return strncmp(reply->str, word, strlen(word)) == 0;
}

/* Before 7.0 a script's error has that inside. */
static bool is_of_replica(const redisReply *reply)
{
    return begins(reply, "READONLY") || begins(reply, "MASTERDOWN") ||
           memmem(reply->str, reply->len, "-READONLY ", strlen("-READONLY ")) != NULL;
}

bool redis_link_leave_replica(struct redis_link *link)
{
    redis_map_doubt(&link->map); /* of a cluster */
    if (!link->address.is_cluster) {
        redis_node_refuse_replica(&link->map.node[0]);
        redis_node_refuse_replica(&link->subscriber);
    }
    return !link->address.is_cluster;
}

/* An error that is not the user's yet: true if the call was taken. */
static bool on_error(struct redis_link *link, struct redis_node *from, struct redis_call *call,
                     const redisReply *reply)
{
    const bool is_late = !is_in_time(link, call);
    call->tries++;
    if (begins(reply, "NOSCRIPT") && call->hash_at != 0) {
        if (redis_node_load(from, call->script, link->now_us) && !is_late) {
            keep_for_later(link, call, 0);
        } else {
            hand_back(link, call);
        }
        return true;
    }
    if (is_late) {
        return false;
    }
    bool is_left = is_of_replica(reply) && redis_link_leave_replica(link);
    if (is_left || begins(reply, "LOADING") || is_of_replica(reply) ||
        (link->address.is_cluster && begins(reply, "CLUSTERDOWN"))) {
        redis_map_doubt(&link->map);
        keep_for_later(link, call, AGAIN_AFTER_US);
        return true;
    }
    if (!link->address.is_cluster) {
        if (begins(reply, "MOVED ")) {
            redis_node_break(from, "it is part of a Redis Cluster: redis+cluster://");
        }
        return false;
    }
    if (begins(reply, "MOVED ")) {
        on_moved(link, from, call, reply);
    } else if (begins(reply, "ASK ")) {
        on_ask(link, from, call, reply);
    } else if (begins(reply, "TRYAGAIN")) {
        keep_for_later(link, call, AGAIN_AFTER_US);
    } else {
        return false;
    }
    return true;
}

/* ---- channels ---- */

static unsigned channel_index(const struct redis_link *link, const char *channel)
{
    unsigned i = 0;
    while (i < REDIS_CHANNELS_MAX &&
           (link->channel[i] == NULL || strcmp(link->channel[i], channel) != 0)) {
        i++;
    }
    return i;
}

static void send_subscription(struct redis_link *link, uint64_t place)
{
    struct redis_call *call = redis_call_make_words(
        REDIS_CALL_SUBSCRIBE, 2, (const char *[]){"SUBSCRIBE", link->channel[place]});
    if (call != NULL) {
        call->tag = place;
        if (!redis_node_call(&link->subscriber, call, link->now_us)) {
            free(call); /* it subscribes to all when it is up */
        }
    }
}

bool redis_link_subscribe(struct redis_link *link, const char *channel)
{
    unsigned i = 0;
    if (channel_index(link, channel) < REDIS_CHANNELS_MAX) {
        return true;
    }
    while (i < REDIS_CHANNELS_MAX && link->channel[i] != NULL) {
        i++;
    }
    if (i == REDIS_CHANNELS_MAX || (link->channel[i] = strdup(channel)) == NULL) {
        return false;
    }
    send_subscription(link, i);
    return true;
}

/* Opened for the first channel; of a cluster it goes to another node after each loss. */
static void tick_subscriber(struct redis_link *link)
{
    struct redis_node *s = &link->subscriber;
    bool any = false;
    for (unsigned i = 0; i < REDIS_CHANNELS_MAX; i++) {
        any = any || link->channel[i] != NULL;
    }
    if (s->state == REDIS_NODE_IDLE && any) {
        const struct redis_map *map = &link->map;
        for (unsigned i = 0; i < map->nodes; i++, link->subscriber_node++) {
            link->subscriber_node %= map->nodes;
            if (redis_node_is_up(&map->node[link->subscriber_node])) {
                break;
            }
        }
        link->subscriber_node %= map->nodes;
        const struct redis_node *to = &map->node[link->subscriber_node];
        if (strcmp(s->at.host, to->at.host) != 0 || s->at.port != to->at.port) {
            s->at = to->at;
            redis_node_moved(s);
        }
        s->is_wanted = redis_node_is_up(to);
    }
    redis_node_tick(s, link->now_us);
}

/* ---- what the nodes call ---- */

static void replied(void *self, struct redis_node *node, struct redis_call *call,
                    const redisReply *reply)
{
    struct redis_link *link = self;
    char text[REDIS_WHY_MAX];
    switch (call->kind) {
    case REDIS_CALL_MAP:
        redis_map_take(&link->map, node, reply);
        break;
    case REDIS_CALL_SUBSCRIBE:
        if (reply->type == REDIS_REPLY_ERROR && link->o.denied != NULL) {
            redis_reader_printable(reply->str, reply->len, text);
            link->o.denied(link->o.self, link->channel[call->tag], text);
        }
        break;
    default:
        CHECK_THAT(calls_of(link, call)->sent > 0, "link: its slot counts a call on its way");
        calls_of(link, call)->sent--;
        if (reply->type == REDIS_REPLY_ERROR && on_error(link, node, call, reply)) {
            return;
        }
        lose_earlier(link, call);
        link->o.answered(link->o.self, call->tag, reply);
        break;
    }
    free(call);
}

static void lost(void *self, struct redis_call *call)
{
    struct redis_link *link = self;
    if (call->kind == REDIS_CALL_MAP) {
        free(call); /* another node is asked */
    } else {
        CHECK_THAT(calls_of(link, call)->sent > 0, "link: its slot counts a call on its way");
        calls_of(link, call)->sent--;
        lose_earlier(link, call);
        hand_back(link, call);
    }
}

static void pushed(void *self, const redisReply *reply)
{
    struct redis_link *link = self;
    const redisReply *channel = reply->element[1], *text = reply->element[2];
    if (channel->type == REDIS_REPLY_STRING && text->type == REDIS_REPLY_STRING &&
        link->o.message != NULL && channel_index(link, channel->str) < REDIS_CHANNELS_MAX) {
        link->o.message(link->o.self, channel->str, text->str, text->len);
    }
}

static void changed(void *self, struct redis_node *node)
{
    struct redis_link *link = self;
    bool is_up = redis_node_is_up(node);
    if (node != &link->subscriber) {
        redis_map_node_changed(&link->map, node);
        return;
    }
    for (unsigned i = 0; is_up && i < REDIS_CHANNELS_MAX; i++) {
        if (link->channel[i] != NULL) {
            send_subscription(link, i);
        }
    }
    link->subscriber_node += is_up ? 0 : 1;
}

/* ---- the link ---- */

enum err redis_link_open(struct redis_link **out, const struct redis_link_options *options)
{
    const struct redis_address *a = options->address;
    struct redis_link *link = calloc(1, sizeof *link);
    if (link == NULL) {
        return ERR_NOMEM;
    }
    CHECK(options->scripts <= REDIS_SCRIPTS_MAX && a->nodes > 0 && a->nodes <= REDIS_NODES_MAX);
    link->o = *options;
    link->address = *a;
    link->o.address = &link->address;
    link->again_end = &link->again;
    link->setup = (struct redis_node_setup){
        .user = link->address.user,
        .password = link->address.password,
        .db = a->db,
        .script = options->script,
        .scripts = options->scripts,
        .silence_us = REDIS_NODE_SILENCE_US,
        .self = link,
        .replied = replied,
        .lost = lost,
        .pushed = pushed,
        .changed = changed,
    };
    enum err err = redis_map_open(&link->map, &link->setup, a);
    redis_node_open(&link->subscriber, &link->setup, a->node[0].host, a->node[0].port, true);
    if (a->is_tls && err == ERR_OK) {
        redis_tls_trust_open(&link->setup.trust, a->ca_file, link->setup.unusable);
    }
    if (err != ERR_OK) {
        redis_link_close(&link);
        return err;
    }
    *out = link;
    return ERR_OK;
}

void redis_link_close(struct redis_link **out)
{
    struct redis_link *link = *out;
    if (link == NULL) {
        return;
    }
    redis_map_say_silent(&link->map, link->o.self, link->o.changed);
    redis_map_close(&link->map);
    redis_node_close(&link->subscriber);
    for (unsigned i = 0; i < REDIS_CHANNELS_MAX; i++) {
        free(link->channel[i]);
    }
    while (link->again != NULL) {
        struct redis_call *call = link->again;
        link->again = call->next;
        free(call);
    }
    redis_tls_trust_close(&link->setup.trust);
    redis_address_wipe(&link->address);
    free(link);
    *out = NULL;
}

bool redis_link_call(struct redis_link *link, unsigned slot, unsigned script, unsigned keys,
                     unsigned argc, const char *const *argv, const size_t *length, uint64_t tag,
                     uint64_t now_us)
{
    CHECK(script < link->o.scripts && keys <= argc && slot < REDIS_SLOTS);
    struct redis_call *call =
        redis_link_is_up(link, slot)
            ? redis_call_make(REDIS_CALL_USER, (int)script, keys, argc, argv, length)
            : NULL;
    if (call == NULL) {
        return false;
    }
    link->now_us = now_us;
    call->tag = tag;
    call->slot = (uint16_t)slot;
    call->first_us = call->due_us = now_us;
    call->number = ++link->calls;
    const bool waits = link->slot[slot].waiting > 0;
    if (waits && link->agains < AGAIN_MAX) {
        wait_behind(link, call);
    } else if (waits || !send_to(link, redis_map_owner(&link->map, slot), call)) {
        free(call);
        return false;
    }
    return true;
}

static void finish(struct redis_link *link)
{
    send_again(link);
    if (link->map.has_changed) {
        redis_map_say(&link->map, link->o.self, link->o.changed);
    }
}

bool redis_link_drain(struct redis_link *link, uint64_t now_us)
{
    bool any = false;
    link->now_us = now_us;
    for (unsigned i = 0; i < link->map.nodes; i++) {
        any = redis_node_serve(&link->map.node[i], now_us) || any;
    }
    any = redis_node_serve(&link->subscriber, now_us) || any;
    finish(link);
    return any;
}

void redis_link_tick(struct redis_link *link, uint64_t now_us)
{
    link->now_us = now_us;
    redis_map_tick(&link->map, now_us);
    tick_subscriber(link);
    finish(link);
}

unsigned redis_link_fds(const struct redis_link *link, struct pollfd out[REDIS_LINK_FDS_MAX])
{
    unsigned n = 0;
    for (unsigned i = 0; i < link->map.nodes; i++) {
        n += redis_node_poll(&link->map.node[i], &out[n]) ? 1 : 0;
    }
    n += redis_node_poll(&link->subscriber, &out[n]) ? 1 : 0;
    return n;
}
