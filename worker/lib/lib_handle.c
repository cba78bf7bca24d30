#include "worker/lib/lib.h"

#include "common/clock.h"
#include "common/rng.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    RTO_MIN_US = 25000, /* where there are more processes than CPUs, they wait for one */
    RTO_MAX_US = 250000,
    ANSWER_MIN_MS = 5,
    ANSWER_MAX_MS = 10000,
    TICKETS = 64,
};

/* ---- words ---- */

const char *abdada_error_text(int error)
{
    static const struct {
        int error;
        const char *text;
    } all[] = {
        {ABDADA_OK, "no error"},
        {ABDADA_WAITING, "not there yet"},
        {ABDADA_E_NOMEM, "out of memory"},
        {ABDADA_E_HANDLE, "not an open handle of this process"},
        {ABDADA_E_ARGUMENT, "an argument is NULL or outside its range"},
        {ABDADA_E_TICKET, "no such ticket, or it has ended"},
        {ABDADA_E_FULL, "no room: too many tickets, jobs or servers"},
        {ABDADA_E_UNAVAILABLE, "no shard is up, or none answered in time"},
        {ABDADA_E_ROLE, "the handle was opened with another role, or without a share_depth"},
        {ABDADA_E_IN_USE, "another call on this handle is under way"},
        {ABDADA_E_ADDRESS, "the address of the servers is not understood"},
        {ABDADA_E_KEYS, "the keys cannot be used"},
        {ABDADA_E_SYSTEM, "the system refused a socket or descriptor"},
        {ABDADA_E_UNSUPPORTED, "not in this build"},
        {ABDADA_E_UNKNOWN, "no such job or shard"},
    };
    const char *text = "unknown error";
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        text = all[i].error == error ? all[i].text : text;
    }
    return text;
}

const char *abdada_version(void)
{
    return ABDADA_VERSION;
}

uint64_t abdada_hash(const char *text)
{
    return text == NULL ? 0 : rng_hash_text(text);
}

uint64_t abdada_mix(uint64_t bits)
{
    return rng_mix(bits);
}

static int error_of(enum err err)
{
    switch (err) {
    case ERR_OK:
        return ABDADA_OK;
    case ERR_NOMEM:
        return ABDADA_E_NOMEM;
    case ERR_FULL:
        return ABDADA_E_FULL;
    case ERR_RANGE:
    case ERR_SYNTAX:
        return ABDADA_E_ADDRESS;
    default:
        return ABDADA_E_SYSTEM;
    }
}

/* ---- open ---- */

enum { OPTIONS_SIZE_0 = offsetof(struct abdada_options, why_size) + sizeof(size_t) };

/* Which of them is outside its range, in `why`; ABDADA_OK: none. */
static int check_options(const struct abdada_options *o, char why[LANES_WHY_MAX])
{
    if (o->why == NULL && o->why_size > 0) {
        return ABDADA_E_ARGUMENT;
    }
    if (o->servers == NULL) {
        snprintf(why, LANES_WHY_MAX, "servers: NULL");
    } else if (o->role > ABDADA_FRONT_END) {
        snprintf(why, LANES_WHY_MAX, "role: ABDADA_TABLE or ABDADA_FRONT_END");
    } else if ((o->flags & ~(uint32_t)(ABDADA_RAW_KEYS | ABDADA_TURNS)) != 0) {
        snprintf(why, LANES_WHY_MAX, "flags: ABDADA_RAW_KEYS, ABDADA_TURNS, or none");
    } else if (o->share_depth > PROTO_RESULT_DEPTH_MAX) {
        snprintf(why, LANES_WHY_MAX, "share_depth: 0 to %d", PROTO_RESULT_DEPTH_MAX);
    } else if (o->tickets > LIB_TICKETS_MAX) {
        snprintf(why, LANES_WHY_MAX, "tickets: 0 to %d", LIB_TICKETS_MAX);
    } else if (o->answer_ms != 0 &&
               (o->answer_ms < ANSWER_MIN_MS || o->answer_ms > ANSWER_MAX_MS)) {
        snprintf(why, LANES_WHY_MAX, "answer_ms: 0, or %d to %d", ANSWER_MIN_MS, ANSWER_MAX_MS);
    } else {
        return ABDADA_OK;
    }
    return ABDADA_E_ARGUMENT;
}

static int read_servers(struct lib *l, const char *text, struct lanes_address *out,
                        char why[LANES_WHY_MAX])
{
    if (strstr(text, "://") != NULL) {
        char redis_why[REDIS_WHY_MAX];
        if (strncasecmp(text, "redis", 5) != 0) {
            snprintf(why, LANES_WHY_MAX,
                     "servers: wanted HOST:PORT,HOST:PORT,... or a Redis: redis://, rediss://, "
                     "redis+cluster:// or rediss+cluster://HOST:PORT");
            return ABDADA_E_ADDRESS;
        }
        enum err err = redis_address_parse(&l->redis, text, redis_why);
        err = err == ERR_OK ? redis_address_environment(&l->redis, redis_why) : err;
        if (err != ERR_OK) {
            snprintf(why, LANES_WHY_MAX, "%s", redis_why);
            return ABDADA_E_ADDRESS;
        }
        out->redis = &l->redis;
        return ABDADA_OK;
    }
    enum err err = options_servers(text, &l->servers);
    if (err != ERR_OK) {
        snprintf(why, LANES_WHY_MAX, "servers: %s: wanted HOST:PORT,HOST:PORT,...", err_text(err));
        return err == ERR_FULL ? ABDADA_E_FULL : ABDADA_E_ADDRESS;
    }
    out->server = l->servers.server;
    out->servers = l->servers.count;
    return ABDADA_OK;
}

/* For the table alone a worker's key is as good as a front-end's. */
static int read_keys(const char *dir, enum abdada_role role, struct keys_client *keys,
                     char why[LANES_WHY_MAX])
{
    enum err err = ERR_ABSENT;
    if (role == ABDADA_TABLE) {
        err = keys_load_client(dir, KEYS_WORKER, keys, why);
    }
    if (err == ERR_ABSENT) {
        err = keys_load_client(dir, KEYS_FRONT, keys, why);
    }
    return err == ERR_OK || err == ERR_NOMEM ? error_of(err) : ABDADA_E_KEYS;
}

static void on_event(struct lib *l, const struct client_event *e)
{
    if (e->kind == CLIENT_NODE_DONE) {
        lib_table_on_node_done(l, e->node_done);
    } else if (e->kind == CLIENT_SHARED) {
        lib_feed_on_shared(l, e->shared);
    } else if (e->kind == CLIENT_JOB_REPORT) {
        lib_jobs_on_report(l, e->job_report, e->shard);
    } else if (e->kind == CLIENT_JOB_REFUSED) {
        lib_jobs_on_refused(l, e->refused.job, *e->refused.why, e->shard);
    } else if (e->kind == CLIENT_STATS) {
        lib_figures_on_stats(l, e->shard, e->stats);
    } else if (e->kind == CLIENT_HELLO_REFUSED) {
        proto_text_printable(*e->refused.why, l->refusal, sizeof l->refusal);
    }
}

static enum proto_role role_of(const struct lib *l)
{
    return l->role == ABDADA_FRONT_END ? PROTO_FRONT : PROTO_CLIENT;
}

static void use_namespace(struct lib *l, uint64_t namespace_id)
{
    l->namespace_id = namespace_id;
    l->mix = l->flags & ABDADA_RAW_KEYS ? 0 : rng_mix(namespace_id);
    lib_feed_begin(l);
}

static enum err open_lane(struct lib *l, const struct lanes_address *address,
                          const struct abdada_options *o, char why[LANES_WHY_MAX])
{
    const struct client_options options = {
        .role = role_of(l),
        .hello_flags = (uint8_t)((o->node_done != NULL ? PROTO_WANTS_NODE_DONE : 0) |
                                 (l->feed != NULL ? PROTO_WANTS_RESULTS : 0)),
        .table_id = l->feed != NULL ? l->feed->table_id : 0,
        .namespace_id = o->namespace_id,
        .instance = clock_unique(),
        .name = o->name != NULL ? o->name : "libabdada",
        .rto_min_us = o->answer_ms != 0 ? l->answer_us : RTO_MIN_US,
        .rto_max_us = l->answer_us,
        .tickets = l->tickets_max + LIB_LISTS + LIB_RENEWALS,
        .ask_max = LIB_LIST_MAX,
        .peek_max = LIB_LIST_MAX,
        .lists = LIB_LISTS,
        .queue = LIB_LIST_MAX,
        .jobs = LIB_JOBS_MAX,
    };
    return lanes_open_one(&l->lanes, &l->lane, address, o->log_name != NULL ? l->log_name : NULL,
                          &options, why);
}

static void lib_free(struct lib *l)
{
    lane_close(&l->lane);
    lib_close_fd(l);
    lanes_close(&l->lanes);
    lib_table_close(l);
    lib_jobs_close(l);
    redis_address_wipe(&l->redis);
    free(l);
}

static int lib_open(struct lib *l, const struct abdada_options *o, char why[LANES_WHY_MAX])
{
    struct lanes_address address = {.is_guest = true};
    struct keys_client keys;
    l->role = (enum abdada_role)o->role;
    l->flags = o->flags;
    lib_feed_open(l, o->share_depth, o->share_rate);
    use_namespace(l, o->namespace_id);
    l->tickets_max = o->tickets != 0 ? o->tickets : TICKETS;
    l->answer_us = o->answer_ms != 0 ? o->answer_ms * 1000 : RTO_MAX_US;
    l->node_done = o->node_done;
    l->self = o->self;
    l->take = on_event;
    snprintf(l->log_name, sizeof l->log_name, "%s", o->log_name != NULL ? o->log_name : "");
    int result = check_options(o, why);
    if (result == ABDADA_OK) {
        result = read_servers(l, o->servers, &address, why);
    }
    if (result != ABDADA_OK) {
        return result;
    }
    if (o->keys != NULL) {
        result = read_keys(o->keys, l->role, &keys, why);
        if (result != ABDADA_OK) {
            return result;
        }
        address.keys = &keys;
    }
    if (!lib_table_open(l) || (l->role == ABDADA_FRONT_END && !lib_jobs_open(l)) ||
        (o->share_depth > 0 && l->feed == NULL)) {
        result = ABDADA_E_NOMEM;
    }
    if (result == ABDADA_OK) {
        enum err err = open_lane(l, &address, o, why);
        result = err == ERR_ABSENT ? ABDADA_E_UNSUPPORTED : error_of(err);
        l->shards = err == ERR_OK ? lanes_shards(l->lanes) : 0;
    }
    keys_wipe(&keys, sizeof keys);
    return result;
}

int abdada_open(struct abdada **out, const struct abdada_options *options)
{
    struct abdada_options o;
    char why[LANES_WHY_MAX] = "";
    if (out != NULL) {
        *out = NULL;
    }
    if (out == NULL || options == NULL ||
        !lib_copy_struct(&o, sizeof o, options, options->struct_size, OPTIONS_SIZE_0)) {
        return ABDADA_E_ARGUMENT;
    }
    struct lib *l = calloc(1, sizeof *l);
    if (l != NULL) {
        l->epoll = l->timer = -1;
        l->armed_us = UINT64_MAX;
    }
    struct abdada *t = l != NULL ? lib_handle_new() : NULL;
    if (t != NULL && o.share_depth > 0) {
        l->feed = lib_handle_feed(t);
    }
    int result = t != NULL ? lib_open(l, &o, why) : ABDADA_E_NOMEM;
    if (result == ABDADA_OK) {
        lib_handle_open(t, l);
        lib_serve(l); /* begins to connect */
        *out = t;
        return ABDADA_OK;
    }
    if (t != NULL) {
        lib_handle_retire(t);
    }
    if (l != NULL) {
        lib_free(l);
    }
    if (o.why != NULL && o.why_size > 0) {
        snprintf(o.why, o.why_size, "%s", why[0] != '\0' ? why : abdada_error_text(result));
    }
    return result;
}

int abdada_close(struct abdada *t)
{
    struct lib *l;
    int result = lib_handle_close(t, &l);
    if (result == ABDADA_OK) {
        lib_free(l);
        lib_handle_retire(t);
    }
    return result;
}

int abdada_new_search(struct abdada *t, uint64_t namespace_id)
{
    LIB_ENTER_OR_RETURN(t, true, l);
    lib_table_clear(l);
    client_flush(l->lane.client, lib_now(l)); /* the stores among it are of the old namespace */
    if (namespace_id != l->namespace_id) {
        client_hello(l->lane.client, role_of(l), namespace_id, lib_now(l));
    }
    use_namespace(l, namespace_id);
    return lib_leave(t, ABDADA_OK);
}

/* ---- connections ---- */

int abdada_shards(struct abdada *t)
{
    struct lib *l;
    int result = lib_enter(t, true, &l);
    return result == ABDADA_OK ? lib_leave(t, (int)l->shards) : result;
}

int abdada_connected(struct abdada *t)
{
    LIB_ENTER_OR_RETURN(t, true, l);
    lib_serve(l);
    return lib_leave(t, (int)client_shards_up(l->lane.client));
}

int abdada_wait_connected(struct abdada *t, int timeout_ms)
{
    enum { OTHERS_US = 100000 }; /* for the others once one is up */
    LIB_ENTER_OR_RETURN(t, timeout_ms >= 0, l);
    uint64_t until = lib_now(l) + (uint64_t)timeout_ms * 1000;
    bool any = false;
    lib_serve(l);
    for (;;) {
        unsigned up = client_shards_up(l->lane.client);
        uint64_t now = lib_now(l);
        until = !any && up > 0 && now + OTHERS_US < until ? now + OTHERS_US : until;
        any = any || up > 0;
        if (up == l->shards || now >= until) {
            return lib_leave(t, up > 0 ? (int)up : ABDADA_E_UNAVAILABLE);
        }
        lib_wait(l, until);
    }
}

int abdada_shard_name(struct abdada *t, int shard, char *out, size_t size)
{
    char name[LANES_NAME_MAX];
    LIB_ENTER_OR_RETURN(t, out != NULL && size > 0, l);
    if (shard < 0 || (unsigned)shard >= l->shards) {
        return lib_leave(t, ABDADA_E_UNKNOWN);
    }
    lanes_shard_name(l->lanes, (unsigned)shard, name);
    snprintf(out, size, "%s", name);
    return lib_leave(t, ABDADA_OK);
}

int abdada_refusal(struct abdada *t, char *out, size_t size)
{
    LIB_ENTER_OR_RETURN(t, out != NULL && size > 0, l);
    snprintf(out, size, "%s", l->refusal);
    return lib_leave(t, ABDADA_OK);
}

/* ---- in an event loop ---- */

int abdada_fd(struct abdada *t)
{
    LIB_ENTER_OR_RETURN(t, true, l);
    bool is_open = l->epoll >= 0 || lib_open_fd(l);
    return lib_leave(t, is_open ? l->epoll : ABDADA_E_SYSTEM);
}

int abdada_serve(struct abdada *t)
{
    LIB_ENTER_OR_RETURN(t, true, l);
    if (l->epoll >= 0 && lib_take_fd(l)) {
        lib_serve(l);
    }
    return lib_leave(t, ABDADA_OK);
}

int abdada_deadline_ms(struct abdada *t)
{
    LIB_ENTER_OR_RETURN(t, true, l);
    uint64_t due = lib_due(l), now = lib_now(l);
    uint64_t left_ms = due <= now ? 0 : (due - now) / 1000 + ((due - now) % 1000 != 0);
    return lib_leave(t, left_ms < INT_MAX ? (int)left_ms : INT_MAX);
}
