/* How many operations of the table a Redis does in a second, as scripts with a batch a call,
 * pipelined: redis_load PORT [BATCH [SECONDS [MIX]]]. The server is one that is running and may be
 * used: keys of ours alone are written. One JSON object for each mix of operations; the times are
 * those from a batch's ask or peek to its answer. */
#include "common/clock.h"
#include "common/histogram.h"
#include "common/rng.h"
#include "worker/redis/redis_shell.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOW = 8 /* batches under way */, KEYS = 1 << 16, BATCH = 256, SECONDS = 3, DEPTH = 6 };

struct load {
    struct redis_shell *shell;
    struct lane port;
    struct client *client;
    unsigned batch;
    uint64_t random;
    struct tt_ask ask[PROTO_BATCH_MAX];
    struct tt_store store[PROTO_BATCH_MAX];
    struct tt_release release[PROTO_BATCH_MAX];
    struct tt_peek peek[PROTO_BATCH_MAX];
    uint8_t bytes[PROTO_MESSAGE_MAX];
};

static bool say(struct load *l, const struct proto_message *m)
{
    size_t length = proto_encode(m, l->bytes, sizeof l->bytes);
    return length > 0 && l->port.send(l->port.self, 0, l->bytes, length);
}

static void draw(struct load *l)
{
    for (unsigned i = 0; i < l->batch; i++) {
        uint64_t key = rng_mix(rng_below(&l->random, KEYS));
        int score = (int)rng_below(&l->random, 200) - 100;
        l->ask[i] = (struct tt_ask){
            .key = key, .depth = DEPTH, .alpha = (int16_t)score, .beta = (int16_t)(score + 1)};
        l->ask[i].flags = TT_STRICT | (i % 2 ? TT_EXCLUSIVE : 0);
        l->store[i] = (struct tt_store){.key = key, .depth = DEPTH, .bound = TT_LOWER};
        l->store[i].score = (int16_t)score;
        l->release[i] = (struct tt_release){.key = key, .depth = DEPTH};
        l->peek[i] = (struct tt_peek){.key = key, .depth = DEPTH};
    }
}

static bool send_ask(struct load *l, unsigned step)
{
    struct proto_message m = {.type = PROTO_RETRIEVE_ASK};
    m.retrieve_ask.request = 0x80000000u + step;
    m.retrieve_ask.list = (struct proto_asks){l->batch, l->ask};
    return say(l, &m);
}

static bool send_peek(struct load *l, unsigned step)
{
    struct proto_message m = {.type = PROTO_PEEK};
    m.peek.request = 0x80000000u + step;
    m.peek.list = (struct proto_peeks){l->batch, l->peek};
    return say(l, &m);
}

static bool send_ask_store(struct load *l, unsigned step)
{
    struct proto_message m = {.type = PROTO_STORE_HASH};
    m.store_hash.list = (struct proto_stores){l->batch, l->store};
    return send_ask(l, step) && say(l, &m);
}

static bool send_ask_release(struct load *l, unsigned step)
{
    struct proto_message m = {.type = PROTO_RELEASE};
    m.release.list = (struct proto_releases){l->batch, l->release};
    return send_ask(l, step) && say(l, &m);
}

static void serve(struct load *l)
{
    struct client_event event; /* answers are none */
    l->port.sleep(l->port.self, clock_us() + 1000);
    while (l->port.receive(l->port.self, l->client)) {
        while (client_next(l->client, &event)) {
        }
    }
    (void)client_tick(l->client, clock_us());
}

/* Answers with requests that the client did not send are late ones to it: that is how they are
 * counted. */
static uint64_t answers(const struct load *l)
{
    return client_counters(l->client)->late;
}

struct mix {
    const char *name;
    bool (*step)(struct load *, unsigned);
    unsigned operations; /* of a position */
};

static void run(struct load *l, const struct mix *mix, double seconds)
{
    static struct histogram times;
    uint64_t first = answers(l), began_us = clock_us(), sent = 0, now_us = began_us, answered = 0;
    uint64_t sent_us[WINDOW]; /* answers come in the order of the asks */
    memset(&times, 0, sizeof times);
    while (now_us - began_us < (uint64_t)(seconds * 1e6)) {
        while (sent - answered < WINDOW) {
            draw(l);
            sent_us[sent % WINDOW] = clock_us();
            if (!mix->step(l, (unsigned)sent)) {
                fprintf(stderr, "redis_load: not taken\n");
                exit(1);
            }
            sent++;
        }
        serve(l);
        now_us = clock_us();
        for (; answered < answers(l) - first; answered++) {
            histogram_add(&times, (now_us - sent_us[answered % WINDOW]) * 1000);
        }
    }
    while (answers(l) - first < sent) {
        serve(l);
    }
    double took = (double)(clock_us() - began_us) / 1e6;
    printf("{\"mix\":\"%s\",\"batch\":%u,\"ops_per_s\":%.0f,\"messages_per_s\":%.0f,"
           "\"p50_us\":%.1f,\"p99_us\":%.1f}\n",
           mix->name, l->batch, (double)sent * l->batch * mix->operations / took,
           (double)sent * mix->operations / took, histogram_quantile(&times, 0.5) / 1e3,
           histogram_quantile(&times, 0.99) / 1e3);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    static struct load l;
    char url[64], why[REDIS_WHY_MAX];
    struct redis_address address;
    unsigned port = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;
    double seconds = argc > 3 ? strtod(argv[3], NULL) : SECONDS;
    l.batch = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : BATCH;
    snprintf(url, sizeof url, "redis://127.0.0.1:%u", port);
    if (l.batch < 1 || l.batch > PROTO_BATCH_MAX ||
        redis_address_parse(&address, url, why) != ERR_OK) {
        fprintf(stderr, "usage: redis_load PORT [BATCH [SECONDS [MIX]]]\n");
        return 2;
    }
    if (redis_shell_open(&l.shell, &address, "redis_load", NULL) != ERR_OK) {
        return 1;
    }
    l.port = redis_shell_lane(l.shell);
    l.random = 1996;
    struct client_options options = {
        .shards = 1, .role = PROTO_CLIENT, .instance = 1, .name = "load", .rto_min_us = 250000};
    if (client_open(&options, l.port.send, l.port.self, &l.client) != ERR_OK) {
        return 1;
    }
    while (client_shards_up(l.client) == 0) {
        serve(&l);
    }
    const struct mix mix[] = {{"ask", send_ask, 1},
                              {"ask, release", send_ask_release, 2},
                              {"ask, store", send_ask_store, 2},
                              {"peek", send_peek, 1}};
    for (unsigned i = 0; i < sizeof mix / sizeof *mix; i++) {
        if (argc <= 4 || strcmp(argv[4], mix[i].name) == 0) {
            run(&l, &mix[i], seconds);
        }
    }
    client_bye(l.client, clock_us());
    client_free(&l.client);
    redis_shell_close(&l.shell);
    return 0;
}
