#include "worker/redis/redis_shell.h"

#include "common/clock.h"
#include "common/rng.h"
#include "worker/redis/redis_shell_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TICK_US = 50000,
    REST_US = 250, /* as over ttservers (zeromq.c) */
    SLOTS_PER_SHARD = REDIS_SLOTS / REDIS_SHELL_SHARDS,
    RENEW_US = REDIS_HEARTBEAT_MS * 1000,
};

/* Nodes of a cluster where jobs are offered. Every worker reports to each of them five times in a
 * second, and what is published goes to all nodes: three, far from each other, so that the death of
 * a master leaves some. */
static const unsigned job_shards[] = {0, 8, 15};

/* ---- opening ---- */

/* Its tag is the first number whose slot is in the shard's part of all slots. Builds that do not
 * speak this version of the protocol have other keys. */
static void open_shard(struct redis_shell *s, unsigned shard)
{
    struct redis_shard *of = &s->shard[shard];
    for (unsigned tag = 0;; tag++) {
        int n = snprintf(of->prefix, sizeof of->prefix, "abdada:%d:{%u}:", REDIS_VERSION, tag);
        of->prefix_length = (unsigned)n;
        of->slot = redis_link_slot(of->prefix, of->prefix_length);
        if (of->slot / SLOTS_PER_SHARD == shard) {
            break;
        }
    }
    for (size_t i = 0; i < sizeof job_shards / sizeof *job_shards; i++) {
        of->has_jobs = of->has_jobs || job_shards[i] == shard;
    }
}

unsigned redis_shell_shards(const struct redis_address *address)
{
    return address->is_cluster ? REDIS_SHELL_SHARDS : 1;
}

/* ---- what the link brings ---- */

/* Not known to be done, or refused: as when the connection to a shard breaks. */
static void on_loss(struct redis_shell *s, const struct redis_pending *p)
{
    if (p->script == REDIS_SCAN) {
        redis_shell_refuse(s, p->shard, PROTO_ERR_LIMIT, p->request, "the Redis did not answer");
    }
    if (p->script <= REDIS_SESSION && !p->is_hello && p->session == s->shard[p->shard].session) {
        redis_shell_end_session(s, p->shard);
    }
}

static void (*const on_answer[REDIS_SCRIPT_COUNT])(struct redis_shell *s,
                                                   const struct redis_pending *p,
                                                   const struct redisReply *r) = {
#define X(script, name) [REDIS_##script] = redis_##name,
    REDIS_ANSWERS(X)
#undef X
};

static void answered(void *self, uint64_t tag, const struct redisReply *reply)
{
    struct redis_shell *s = self;
    struct redis_pending p;
    struct proto_text words;
    uint64_t status = REDIS_DONE;
    if (!redis_shell_take_pending(s, tag, &p)) {
        return;
    }
    if (reply == NULL) {
        on_loss(s, &p);
    } else if (redis_reply_error(reply, &words)) {
        redis_shell_complain(s, words.at, words.length);
        on_loss(s, &p);
    } else if (redis_reply_number(reply, &status) &&
               (status == REDIS_OTHER_BOOT || status == REDIS_NO_SESSION)) {
        if (p.script == REDIS_SCAN) {
            on_loss(s, &p);
        }
        if (p.session == s->shard[p.shard].session) {
            redis_shell_end_session(s, p.shard);
        }
    } else if (on_answer[p.script] != NULL) {
        on_answer[p.script](s, &p, reply);
    }
    free(p.asks);
}

static void message(void *self, const char *channel, const char *bytes, size_t length)
{
    struct redis_shell *s = self;
    redis_published(s, strcmp(channel, s->channel) == 0, bytes, length);
}

static void changed(void *self, unsigned first_slot, unsigned last_slot, bool up, const char *why)
{
    (void)first_slot, (void)last_slot;
    if (!up && why != NULL) {
        redis_shell_say(self, why, why);
    }
}

static void denied(void *self, const char *channel, const char *why)
{
    (void)channel;
    redis_shell_complain(self, why, strlen(why));
}

enum err redis_shell_open(struct redis_shell **out, const struct redis_address *address,
                          const char *program, struct redis_shell *first)
{
    struct redis_shell *s = calloc(1, sizeof *s);
    if (s == NULL) {
        return ERR_NOMEM;
    }
    s->shards = redis_shell_shards(address);
    s->program = program;
    s->first = first != NULL ? first : s;
    s->said_from_us = clock_us();
    s->random = rng_mix(clock_unique());
    snprintf(s->token, sizeof s->token, "%016llx", (unsigned long long)rng_next(&s->random));
    snprintf(s->channel, sizeof s->channel, "abdada:c:%s", s->token);
    redis_address_text(address, s->name);
    for (unsigned i = 0; i < s->shards; i++) {
        open_shard(s, i);
    }
    struct redis_link_options options = {
        .address = address,
        .script = redis_script_text,
        .scripts = REDIS_SCRIPT_COUNT,
        .self = s,
        .answered = answered,
        .message = message,
        .changed = changed,
        .denied = denied,
    };
    enum err err = redis_link_open(&s->link, &options);
    if (err == ERR_OK && !redis_link_subscribe(s->link, s->channel)) {
        err = ERR_NOMEM;
    }
    if (err != ERR_OK) {
        redis_shell_close(&s);
        return err;
    }
    *out = s;
    return ERR_OK;
}

void redis_shell_close(struct redis_shell **shell)
{
    struct redis_shell *s = *shell;
    if (s != NULL) {
        redis_link_close(&s->link);
        for (unsigned i = 0; i < REDIS_PENDING_MAX; i++) {
            free(s->pending[i].asks);
        }
        free(s->inbox.bytes);
        free(s);
        *shell = NULL;
    }
}

/* ---- the shell ---- */

static bool (*const on_message[UINT8_MAX + 1])(struct redis_shell *s, unsigned shard,
                                               const struct proto_message *m) = {
#define X(type, name) [PROTO_##type] = redis_on_##name,
    REDIS_MESSAGES(X)
#undef X
};

static bool send_bytes(void *self, unsigned shard, const uint8_t *bytes, size_t length)
{
    struct redis_shell *s = self;
    struct proto_message m;
    if (shard >= s->shards || !redis_link_is_up(s->link, s->shard[shard].slot) ||
        proto_decode(&s->decoder, bytes, length, &m) != ERR_OK) {
        return false;
    }
    uint32_t *figure = s->shard[shard].figure;
    figure[REDIS_FIGURE_messages]++;
    figure[REDIS_FIGURE_batches] += m.type == PROTO_RETRIEVE_ASK || m.type == PROTO_STORE_HASH ||
                                    m.type == PROTO_RELEASE || m.type == PROTO_PEEK;
    const bool is_for_people =
        m.type == PROTO_STATS || m.type == PROTO_MEMBERS || m.type == PROTO_JOBS;
    if (m.type != PROTO_HELLO && m.type != PROTO_BYE && !is_for_people &&
        s->shard[shard].session == 0) {
        return false;
    }
    return on_message[m.type] == NULL || on_message[m.type](s, shard, &m);
}

static void read_all(struct redis_shell *s)
{
    uint64_t now_us = clock_us();
    if (now_us - s->ticked_us >= TICK_US) {
        s->ticked_us = now_us;
        redis_link_tick(s->link, now_us);
        for (unsigned i = 0; i < s->shards; i++) {
            const struct redis_shard *of = &s->shard[i];
            if (of->session != 0 && now_us >= of->renewed_us + RENEW_US) {
                (void)redis_renew(s, i, 0, true);
            }
        }
    }
    (void)redis_link_drain(s->link, now_us);
}

static bool receive(void *self, struct client *client)
{
    struct redis_shell *s = self;
    if (!s->is_reading) {
        read_all(s);
    }
    s->is_reading = redis_shell_hand_over(s, client);
    return s->is_reading;
}

static void sleep_until(void *self, uint64_t until_us)
{
    struct redis_shell *s = self;
    struct pollfd fd[REDIS_LINK_FDS_MAX];
    uint64_t now_us = clock_us(), tick_us = s->ticked_us + TICK_US;
    until_us = until_us < tick_us ? until_us : tick_us;
    uint64_t left_us = until_us > now_us ? until_us - now_us : 0;
    struct timespec timeout = {.tv_sec = (time_t)(left_us / 1000000),
                               .tv_nsec = (long)(left_us % 1000000 * 1000)};
    unsigned fds = redis_link_fds(s->link, fd);
    (void)ppoll(fd, fds, &timeout, NULL);
}

static unsigned descriptors(void *self, struct pollfd *out, unsigned room, uint64_t *due_us)
{
    struct redis_shell *s = self;
    struct pollfd fd[REDIS_LINK_FDS_MAX];
    unsigned fds = redis_link_fds(s->link, fd);
    fds = fds < room ? fds : room;
    if (fds > 0) {
        memcpy(out, fd, fds * sizeof *fd);
    }
    *due_us = s->ticked_us + TICK_US;
    return fds;
}

static void hello_refused(void *self, unsigned shard, struct proto_text why)
{
    (void)shard;
    redis_shell_complain(self, why.at, why.length);
}

struct lane redis_shell_lane(struct redis_shell *shell)
{
    return (struct lane){
        .self = shell,
        .now = clock_port_us,
        .send = send_bytes,
        .receive = receive,
        .refused = hello_refused,
        .sleep = sleep_until,
        .descriptors = descriptors,
        .ask_cost_us = LANE_ASK_US,
        .rest_us = REST_US,
    };
}
