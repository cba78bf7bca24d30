/* core_alone: the core of a shard without sockets, in one thread: messages with a batch of asks,
 * then with their stores, are decoded, served and answered in this process. Also the codec alone,
 * which is a client's cost; and once more with what is stored noted for a thread that writes it
 * down (ttserver/core/ledger.h: noted_ns). `repeats` times; one JSON line each on stdout, in
 * nanoseconds per operation.
 *
 *   core_alone [--memory SIZE] [--batch N] [--repeats N] */
#include "common/clock.h"
#include "common/options.h"
#include "common/rng.h"
#include "ttserver/core/core.h"

#include <stdio.h>
#include <stdlib.h>

enum { MESSAGES = 1 << 11, ROUTE = 5, ROOM = PROTO_MESSAGE_MAX };

struct written {
    uint8_t *bytes;
    size_t length;
};

struct alone {
    uint64_t memory;
    uint32_t batch, repeats;
    struct ttcore *core;
    struct ttcore_ledger ledger;
    struct ttcore_actions actions;
    struct written ask[MESSAGES], store[MESSAGES];
    struct proto_decoder decoder;
    uint64_t seed, now_us;
    struct tt_ask asks[PROTO_BATCH_MAX];
    struct tt_store stores[PROTO_BATCH_MAX];
    uint8_t room[ROOM];
};

static void draw(struct alone *a)
{
    for (uint32_t i = 0; i < a->batch; i++) {
        int16_t alpha = (int16_t)(rng_below(&a->seed, 600) - 300u);
        a->asks[i] = (struct tt_ask){.key = rng_next(&a->seed),
                                     .alpha = alpha,
                                     .beta = (int16_t)(alpha + 1),
                                     .depth = (uint8_t)(4 + rng_below(&a->seed, 9)),
                                     .flags = TT_EXCLUSIVE,
                                     .slot = (uint16_t)(i % 8)};
        a->stores[i] = (struct tt_store){.key = a->asks[i].key,
                                         .score = alpha,
                                         .depth = a->asks[i].depth,
                                         .bound = TT_UPPER,
                                         .move = (uint16_t)rng_below(&a->seed, 4096),
                                         .slot = a->asks[i].slot};
    }
}

static struct written write_down(struct alone *a, const struct proto_message *message)
{
    struct written w = {.length = proto_encode(message, a->room, sizeof a->room)};
    w.bytes = malloc(w.length);
    if (w.bytes == NULL || w.length == 0) {
        exit(1);
    }
    for (size_t i = 0; i < w.length; i++) {
        w.bytes[i] = a->room[i];
    }
    return w;
}

static struct proto_message ask_message(struct alone *a)
{
    struct proto_message message = {.type = PROTO_RETRIEVE_ASK};
    message.retrieve_ask.request = 12345;
    message.retrieve_ask.list = (struct proto_asks){a->batch, a->asks};
    return message;
}

static struct proto_message store_message(struct alone *a)
{
    struct proto_message message = {.type = PROTO_STORE_HASH};
    message.store_hash.list = (struct proto_stores){a->batch, a->stores};
    return message;
}

static void say(struct alone *a, const struct written *w)
{
    static const uint8_t route[ROUTE] = "route";
    struct ttcore_event event = {.kind = TTCORE_MESSAGE,
                                 .now_us = ++a->now_us,
                                 .route = route,
                                 .route_length = ROUTE,
                                 .bytes = w->bytes,
                                 .length = w->length};
    ttcore_step(a->core, &event, &a->actions);
}

/* The keys of every lap are new to the shard. */
static void write_lap(struct alone *a)
{
    for (unsigned i = 0; i < MESSAGES; i++) {
        draw(a);
        struct proto_message ask = ask_message(a), store = store_message(a);
        free(a->ask[i].bytes);
        free(a->store[i].bytes);
        a->ask[i] = write_down(a, &ask);
        a->store[i] = write_down(a, &store);
    }
}

static double lap(struct alone *a)
{
    write_lap(a);
    uint64_t begin = clock_ns();
    for (unsigned i = 0; i < MESSAGES; i++) {
        say(a, &a->ask[i]);
        say(a, &a->store[i]);
    }
    return (double)(clock_ns() - begin) / (2.0 * MESSAGES * a->batch);
}

/* Of the asks and stores of messages of this size. */
static void measure_codec(struct alone *a, double *encode_ns, double *decode_ns)
{
    struct proto_message ask = ask_message(a), store = store_message(a), out;
    uint64_t begin = clock_ns(), sum = 0;
    for (unsigned i = 0; i < MESSAGES; i++) {
        a->asks[i % a->batch].key++;
        sum += proto_encode(&ask, a->room, ROOM) + proto_encode(&store, a->room, ROOM);
    }
    *encode_ns = (double)(clock_ns() - begin) / (2.0 * MESSAGES * a->batch);
    begin = clock_ns();
    for (unsigned i = 0; i < MESSAGES; i++) {
        sum += proto_decode(&a->decoder, a->ask[i].bytes, a->ask[i].length, &out);
        sum += proto_decode(&a->decoder, a->store[i].bytes, a->store[i].length, &out);
    }
    *decode_ns = (double)(clock_ns() - begin) / (2.0 * MESSAGES * a->batch);
    if (sum == 0) {
        printf("nothing\n");
    }
}

int main(int argc, char *argv[])
{
    static struct alone a = {.memory = 1 << 30, .batch = 256, .repeats = 5, .seed = 1};
    const struct options_row table[] = {
        OPTIONS_ROW(SIZE, "memory", "SIZE", &a.memory, 1 << 20, 0, "of the results (1G)"),
        OPTIONS_ROW(U32, "batch", "N", &a.batch, 1, PROTO_BATCH_MAX, "operations a message (256)"),
        OPTIONS_ROW(U32, "repeats", "N", &a.repeats, 1, 1000, "rounds (5)"),
        {0},
    };
    const struct options options = {.program = "core_alone",
                                    .usage = "[OPTION]...",
                                    .summary = "A shard without sockets.",
                                    .table = table};
    int status = options_parse(&options, argc, argv, NULL, NULL);
    if (status >= 0) {
        return status;
    }
    struct ttcore_options core = ttcore_defaults();
    core.results_bytes = a.memory;
    core.inflight_max = (uint32_t)(a.memory / 16 / TTCORE_INFLIGHT_ENTRY_BYTES);
    core.ledger = &a.ledger;
    _Atomic uint64_t *bits = calloc(a.memory / sizeof(struct tt_bucket) / 64 + 1, sizeof *bits);
    if (bits == NULL || ttcore_open(&a.core, &core) != ERR_OK ||
        ttcore_actions_open(&a.actions, core.sessions_max, core.jobs_max) != ERR_OK) {
        fprintf(stderr, "core_alone: no memory\n");
        return 1;
    }
    struct proto_message message = {.type = PROTO_HELLO};
    message.hello = (struct proto_hello){1, PROTO_CLIENT, 0, 1, 1, proto_text_of("core")};
    struct written hello = write_down(&a, &message);
    say(&a, &hello);
    free(hello.bytes);
    for (uint32_t r = 0; r < a.repeats; r++) {
        double encode_ns, decode_ns, step_ns = lap(&a);
        measure_codec(&a, &encode_ns, &decode_ns);
        a.ledger.unwritten = bits;
        double noted_ns = lap(&a);
        a.ledger.unwritten = NULL;
        printf("{\"step_ns\":%.2f,\"noted_ns\":%.2f,\"encode_ns\":%.2f,\"decode_ns\":%.2f}\n",
               step_ns, noted_ns, encode_ns, decode_ns);
    }
    free(bits);
    ttcore_actions_close(&a.actions);
    ttcore_close(&a.core);
    return 0;
}
