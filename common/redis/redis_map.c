#include "common/redis/redis_map.h"

#include "common/redis/redis_reader.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPLICAS_MAX = 8 }; /* of a master that are remembered */

/* What was said of a slot. */
enum said { SAID_NOTHING, SAID_DOWN, SAID_UP };

/* ---- nodes ---- */

enum err redis_map_open(struct redis_map *map, struct redis_node_setup *setup,
                        const struct redis_address *address)
{
    *map = (struct redis_map){
        .setup = setup,
        .is_cluster = address->is_cluster,
        .seeds = address->nodes,
        .node = calloc(REDIS_MAP_NODES_MAX, sizeof *map->node),
        .due_us = address->is_cluster ? 0 : UINT64_MAX,
    };
    if (map->node == NULL) {
        return ERR_NOMEM;
    }
    memset(map->owner, address->is_cluster ? REDIS_MAP_NOBODY : 0, sizeof map->owner);
    for (unsigned i = 0; i < address->nodes; i++) {
        redis_node_open(&map->node[map->nodes++], setup, address->node[i].host,
                        address->node[i].port, false);
        map->node[i].is_wanted = true;
    }
    return ERR_OK;
}

void redis_map_close(struct redis_map *map)
{
    for (unsigned i = 0; i < map->nodes; i++) {
        redis_node_close(&map->node[i]);
    }
    for (unsigned i = 0; i <= REDIS_MAP_NODES_MAX; i++) {
        free(map->reason[i]);
    }
    free(map->node);
    *map = (struct redis_map){.nodes = 0};
}

struct redis_node *redis_map_owner(const struct redis_map *map, unsigned slot)
{
    const unsigned owner = map->owner[slot];
    CHECK_THAT(owner < map->nodes || owner == REDIS_MAP_NOBODY, "map: owners are nodes");
    return owner == REDIS_MAP_NOBODY ? NULL : &map->node[owner];
}

static bool is_owner(const struct redis_map *map, unsigned index)
{
    return memchr(map->owner, (int)index, sizeof map->owner) != NULL;
}

/* A place for a node that is not known yet: a new one, or that of one that is of no use now.
 * `next`: NULL, or owners that are being read. */
static unsigned free_place(struct redis_map *map, const uint8_t *next)
{
    if (map->nodes < REDIS_MAP_NODES_MAX) {
        return map->nodes++;
    }
    for (unsigned i = map->seeds; i < REDIS_MAP_NODES_MAX; i++) {
        if (map->node[i].state == REDIS_NODE_IDLE && !is_owner(map, i) &&
            (next == NULL || memchr(next, (int)i, REDIS_SLOTS) == NULL)) {
            redis_node_close(&map->node[i]);
            free(map->reason[i]);
            map->reason[i] = NULL;
            return i;
        }
    }
    return REDIS_MAP_NOBODY;
}

/* A name goes into the log and to the terminal: printable ASCII without blanks. */
static bool is_host(const char *name)
{
    size_t length = 0;
    while (name[length] > ' ' && name[length] <= '~') {
        length++;
    }
    return length > 0 && length < OPTIONS_HOST_MAX && name[length] == '\0';
}

/* The index of the node of that address, which is added where it is new; NOBODY: there is no room,
 * or that is no address. */
static unsigned find_node(struct redis_map *map, const char *host, uint64_t port,
                          const uint8_t *next)
{
    if (!is_host(host) || port == 0 || port > UINT16_MAX) {
        return REDIS_MAP_NOBODY;
    }
    for (unsigned i = 0; i < map->nodes; i++) {
        if (map->node[i].at.port == port && strcmp(map->node[i].at.host, host) == 0) {
            return i;
        }
    }
    unsigned i = map->is_full ? REDIS_MAP_NOBODY : free_place(map, next);
    CHECK_THAT(map->nodes <= REDIS_MAP_NODES_MAX, "map: its nodes are bounded");
    map->is_full = next != NULL && i == REDIS_MAP_NOBODY;
    if (i != REDIS_MAP_NOBODY) {
        redis_node_open(&map->node[i], map->setup, host, (uint16_t)port, false);
    }
    return i;
}

struct redis_node *redis_map_target(struct redis_map *map, const struct redis_node *from,
                                    const struct redisReply *reply, unsigned *slot)
{
    char text[OPTIONS_HOST_MAX + 64], word[8], address[OPTIONS_HOST_MAX + 8];
    uint64_t port = 0;
    if (reply->len >= sizeof text) {
        return NULL;
    }
    memcpy(text, reply->str, reply->len);
    text[reply->len] = '\0';
    if (sscanf(text, "%7s %5u %263s", word, slot, address) != 3 || *slot >= REDIS_SLOTS) {
        return NULL;
    }
    char *colon = strrchr(address, ':');
    if (colon == NULL || options_unsigned(colon + 1, 1, UINT16_MAX, &port) != ERR_OK) {
        return NULL;
    }
    *colon = '\0'; /* an empty host is the sender's */
    unsigned i = find_node(map, *address == '\0' ? from->at.host : address, port, NULL);
    if (i == REDIS_MAP_NOBODY) {
        return NULL;
    }
    map->node[i].is_wanted = true;
    return &map->node[i];
}

void redis_map_assign(struct redis_map *map, unsigned slot, const struct redis_node *node)
{
    CHECK_THAT(node >= map->node && node < map->node + map->nodes, "map: owners are nodes");
    map->owner[slot] = (uint8_t)(node - map->node);
    map->has_changed = true;
}

void redis_map_node_changed(struct redis_map *map, struct redis_node *node)
{
    map->has_changed = true;
    if (!map->is_known || !redis_node_is_up(node)) {
        redis_map_doubt(map);
    }
    /* A node that owns nothing was wanted for the map alone. */
    if (map->is_known && !redis_node_is_up(node) && !is_owner(map, (unsigned)(node - map->node))) {
        node->is_wanted = false;
    }
}

/* ---- asking ---- */

void redis_map_doubt(struct redis_map *map)
{
    if (map->is_cluster) {
        map->due_us = 0;
    }
}

/* [host, port, ...] of CLUSTER SLOTS: the index of the node, or NOBODY. */
static unsigned read_node(struct redis_map *map, const struct redis_node *from,
                          const redisReply *row, const uint8_t *next)
{
    char host[OPTIONS_HOST_MAX];
    if (row->type != REDIS_REPLY_ARRAY || row->elements < 2 ||
        row->element[1]->type != REDIS_REPLY_INTEGER || row->element[1]->integer < 1) {
        return REDIS_MAP_NOBODY;
    }
    const redisReply *name = row->element[0];
    if (name->type == REDIS_REPLY_NIL || (name->type == REDIS_REPLY_STRING && name->len == 0)) {
        snprintf(host, sizeof host, "%s", from->at.host);
    } else if (name->type == REDIS_REPLY_STRING && name->len < sizeof host && *name->str != '?') {
        snprintf(host, sizeof host, "%s", name->str);
    } else {
        return REDIS_MAP_NOBODY;
    }
    return find_node(map, host, (uint64_t)row->element[1]->integer, next);
}

/* [first slot, last slot, master, replica ...] */
static bool read_range(struct redis_map *map, const struct redis_node *from, const redisReply *row,
                       uint8_t owner[REDIS_SLOTS])
{
    if (row->type != REDIS_REPLY_ARRAY || row->elements < 3 ||
        row->element[0]->type != REDIS_REPLY_INTEGER ||
        row->element[1]->type != REDIS_REPLY_INTEGER) {
        return false;
    }
    long long first = row->element[0]->integer, last = row->element[1]->integer;
    if (first < 0 || last >= REDIS_SLOTS || first > last) {
        return false;
    }
    unsigned master = read_node(map, from, row->element[2], owner);
    memset(owner + first, (int)master, (size_t)(last - first + 1));
    for (size_t i = 3; i < row->elements && i < 3 + REPLICAS_MAX && !map->is_full; i++) {
        read_node(map, from, row->element[i], owner);
    }
    return master != REDIS_MAP_NOBODY;
}

void redis_map_take(struct redis_map *map, struct redis_node *from, const struct redisReply *reply)
{
    static const char single[] = "ERR This instance has cluster support disabled";
    uint8_t owner[REDIS_SLOTS];
    unsigned ranges = 0;
    memset(owner, REDIS_MAP_NOBODY, sizeof owner);
    map->due_us = UINT64_MAX;
    map->is_full = false;
    if (reply->type == REDIS_REPLY_ERROR) {
        char text[REDIS_WHY_MAX];
        redis_reader_printable(reply->str, reply->len, text);
        redis_node_break(
            from, strcmp(text, single) == 0 ? "it is not part of a Redis Cluster: redis://" : text);
    }
    for (size_t i = 0; reply->type == REDIS_REPLY_ARRAY && i < reply->elements && i < REDIS_SLOTS;
         i++) {
        ranges += read_range(map, from, reply->element[i], owner) ? 1 : 0;
    }
    map->is_full = false;
    if (ranges > 0) {
        memcpy(map->owner, owner, sizeof map->owner);
        for (unsigned i = 0; i < map->nodes; i++) {
            map->node[i].is_wanted = is_owner(map, i); /* the others are let go */
        }
        map->is_known = map->has_changed = true;
    } else if (reply->type == REDIS_REPLY_ARRAY && reply->elements == 0 && !map->is_known) {
        char address[OPTIONS_HOST_MAX + 16];
        options_host_port_text(from->at.host, from->at.port, address, sizeof address);
        snprintf(map->empty, sizeof map->empty,
                 "%.80s: no slot has a node: redis-cli --cluster create", address);
        map->has_changed = true;
    }
}

/* Every node in turn, so that one with an old map, or with none, is not asked for ever. Where no
 * node is up, the next that is known is connected. */
static void ask(struct redis_map *map, uint64_t now_us)
{
    static const char *const words[] = {"CLUSTER", "SLOTS"};
    map->due_us = now_us + REDIS_MAP_ASK_US;
    for (unsigned i = 0; i < map->nodes; i++) {
        struct redis_node *node = &map->node[map->next_node++ % map->nodes];
        struct redis_call *call =
            redis_node_is_up(node) ? redis_call_make_words(REDIS_CALL_MAP, 2, words) : NULL;
        if (call != NULL && redis_node_call(node, call, now_us)) {
            return;
        }
        free(call);
    }
    map->node[map->next_node++ % map->nodes].is_wanted = true;
}

/* Is there a slot that nobody serves now? */
static bool is_incomplete(const struct redis_map *map)
{
    for (unsigned i = 0; i < map->nodes; i++) {
        if (map->node[i].is_wanted && !redis_node_is_up(&map->node[i])) {
            return true; /* owners are wanted */
        }
    }
    return is_owner(map, REDIS_MAP_NOBODY);
}

void redis_map_tick(struct redis_map *map, uint64_t now_us)
{
    for (unsigned i = 0; i < map->nodes; i++) {
        redis_node_tick(&map->node[i], now_us);
    }
    if (map->is_cluster && now_us >= map->due_us) {
        ask(map, now_us);
    } else if (map->is_cluster && map->due_us == UINT64_MAX && is_incomplete(map)) {
        map->due_us = now_us + REDIS_MAP_ASK_US;
    }
}

/* ---- saying ---- */

/* Why slots have no node; NULL: not known yet. */
static const char *why_nobody(const struct redis_map *map)
{
    const char *why = "no node serves the slot";
    if (!map->is_known && map->empty[0] != '\0') {
        return map->empty;
    }
    for (unsigned i = 0; !map->is_known && i < map->seeds; i++) {
        if (!map->node[i].has_failed) {
            return NULL;
        }
        why = map->node[i].why;
    }
    return why;
}

/* Is there something to say that was not said last? `why` is NULL where there is no reason. A node
 * that is lost, and then cannot be reached, is one event; one that refuses us then is another. */
static bool is_new_reason(char **said, const char *why, bool was_refused)
{
    if (*said != NULL && why != NULL && (!was_refused || strcmp(*said, why) == 0)) {
        return false;
    }
    free(*said);
    *said = why != NULL ? strdup(why) : NULL;
    return why != NULL;
}

void redis_map_say(struct redis_map *map, void *self, redis_map_changed *changed)
{
    enum { NOBODY = REDIS_MAP_NODES_MAX };
    struct {
        enum said now;
        bool is_new;
        const char *why;
    } node[REDIS_MAP_NODES_MAX + 1] = {{SAID_NOTHING, false, NULL}};
    map->has_changed = false;
    for (unsigned i = 0; i < map->nodes; i++) {
        node[i].now = redis_node_is_up(&map->node[i]) ? SAID_UP
                      : map->node[i].has_failed       ? SAID_DOWN
                                                      : SAID_NOTHING;
        node[i].why = node[i].now == SAID_DOWN ? map->node[i].why : NULL;
    }
    node[NOBODY].why = why_nobody(map);
    node[NOBODY].now = node[NOBODY].why != NULL ? SAID_DOWN : SAID_NOTHING;
    for (unsigned i = 0; i <= NOBODY; i++) {
        if (node[i].now != SAID_NOTHING) {
            node[i].is_new = is_new_reason(&map->reason[i], node[i].why,
                                           i == NOBODY || map->node[i].was_refused);
        }
    }
    for (unsigned first = 0, next = 0; first < REDIS_SLOTS; first = next) {
        unsigned owner = map->owner[first], i = owner == REDIS_MAP_NOBODY ? NOBODY : owner;
        uint8_t before = map->said[first];
        bool is_due = node[i].now != SAID_NOTHING && (node[i].now != before || node[i].is_new);
        for (next = first;
             next < REDIS_SLOTS && map->owner[next] == owner && map->said[next] == before; next++) {
        }
        if (is_due) {
            memset(map->said + first, (int)node[i].now, next - first);
        }
        if (is_due && changed != NULL) {
            changed(self, first, next - 1, node[i].now == SAID_UP, node[i].why);
        }
    }
}

void redis_map_say_silent(const struct redis_map *map, void *self, redis_map_changed *changed)
{
    char address[OPTIONS_HOST_MAX + 16], why[REDIS_WHY_MAX];
    for (unsigned i = 0; i < map->seeds && changed != NULL; i++) {
        const struct redis_node *node = &map->node[i];
        bool was_begun = node->state != REDIS_NODE_IDLE || node->name.lookup != NULL;
        if (map->said[0] == SAID_NOTHING && was_begun && !redis_node_is_up(node) &&
            !node->has_failed) {
            options_host_port_text(node->at.host, node->at.port, address, sizeof address);
            snprintf(why, sizeof why, "%.80s: %s", address, redis_node_silence_text(node->state));
            changed(self, 0, REDIS_SLOTS - 1, false, why);
        }
    }
}
