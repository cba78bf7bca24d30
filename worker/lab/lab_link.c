#include "worker/lab/world.h"

#include "common/rng.h"

static bool happens(struct lab *lab, uint64_t ppm)
{
    return ppm > 0 && rng_below(&lab->random, 1000000) < ppm;
}

bool lab_passes(struct lab *lab, unsigned worker, unsigned shard, enum lab_way way,
                uint64_t *delay_ns)
{
    const struct lab_options *o = &lab->options;
    bool lost = !lab->ended && happens(lab, o->loss_ppm);
    *delay_ns = o->jitter_ns ? rng_next(&lab->random) % (o->jitter_ns + 1) : 0;
    *delay_ns += o->rtt_ns / 2;
    if (o->hooks->passes != NULL && !o->hooks->passes(lab, worker, shard, way, delay_ns)) {
        lost = true;
    }
    lab->result.lost += lost;
    return !lost;
}

enum {
    SEGMENT_BYTES = 1448, /* of a message in an Ethernet frame, ... */
    FRAME_BYTES = 90, /* ... which has so many more, with its preamble and gap */
};

/* A message given to the card now, which it has at `at_ns` or later; returns when it has done it. A
 * card does what it has in any order: one that comes late keeps none that is there waiting. */
static uint64_t card_pass(uint64_t *free_ns, uint64_t now_ns, uint64_t at_ns, uint64_t bytes,
                          uint64_t bandwidth)
{
    if (bandwidth == 0) {
        return at_ns;
    }
    uint64_t takes_ns = bytes * 1000000000 / bandwidth;
    *free_ns = (now_ns > *free_ns ? now_ns : *free_ns) + takes_ns;
    return *free_ns > at_ns + takes_ns ? *free_ns : at_ns + takes_ns;
}

/* When it has arrived: through the sender's card, over the network, through the receiver's. */
static uint64_t arrival_ns(struct lab *lab, struct lab_host *from, struct lab_host *to,
                           uint64_t at_ns, uint64_t delay_ns, size_t length)
{
    uint64_t bytes = length + FRAME_BYTES * (1 + length / SEGMENT_BYTES);
    if (from == to) {
        return at_ns + delay_ns;
    }
    from->bytes += bytes;
    to->bytes += bytes;
    const uint64_t now_ns = lab->now_ns, bandwidth = lab->options.bandwidth;
    at_ns = card_pass(&from->out_free_ns, now_ns, at_ns, bytes, bandwidth);
    return card_pass(&to->in_free_ns, now_ns, at_ns, bytes, bandwidth) + delay_ns;
}

uint64_t lab_arrives(struct lab *lab, unsigned worker, unsigned shard, enum lab_way way,
                     uint64_t at_ns, uint64_t delay_ns, size_t length)
{
    struct lab_host *shard_host = &lab->host[shard % lab->hosts];
    struct lab_host *host = lab_host_of(lab, worker);
    bool is_to_shard = way == LAB_TO_SHARDS;
    return arrival_ns(lab, is_to_shard ? host : shard_host, is_to_shard ? shard_host : host, at_ns,
                      delay_ns, length);
}

bool lab_card_is_full(const struct lab *lab, unsigned shard)
{
    return lab->host[shard % lab->hosts].out_free_ns > lab->now_ns + LAB_CARD_WAIT_NS;
}

/* The event is that a packet of these bytes arrives; `epoch`: the packet's. */
static void push(struct lab *lab, struct lab_event event, uint32_t from, uint32_t epoch,
                 const void *bytes, size_t length)
{
    event.packet = lab_packet_new(bytes, length);
    event.packet->from = from;
    event.packet->epoch = epoch;
    event.packet->number = ++lab->packets;
    lab_heap_push(&lab->heap, event);
}

bool lab_send(struct lab *lab, unsigned worker, uint32_t incarnation, unsigned shard,
              enum lab_way way, uint64_t at_ns, const void *bytes, size_t length)
{
    struct lab_worker *w = &lab->worker[worker];
    uint64_t delay_ns;
    lab->result.messages++;
    lab->result.bytes += length;
    if (!lab_passes(lab, worker, shard, way, &delay_ns) ||
        (way == LAB_TO_SHARDS && !lab->shard[shard].alive)) {
        return false;
    }
    uint64_t *last_ns = way == LAB_TO_SHARDS ? &w->last_out_ns[shard] : &w->last_in_ns[shard];
    uint64_t arrives_ns = lab_arrives(lab, worker, shard, way, at_ns, delay_ns, length);
    *last_ns = arrives_ns > *last_ns ? arrives_ns : *last_ns; /* none overtakes */
    struct lab_event e = {*last_ns, .kind = LAB_TO_WORKER, .who = worker, .epoch = shard};
    if (way == LAB_TO_SHARDS) {
        e.kind = LAB_TO_SHARD;
        e.who = shard;
        e.epoch = lab->shard[shard].incarnation;
    }
    push(lab, e, way == LAB_TO_SHARDS ? worker : shard, incarnation, bytes, length);
    return true;
}

/* In memory it takes as long as a line that goes from one CPU's cache to another's. Never 0: a
 * searcher that is refused asks again at once, and virtual time must go on meanwhile. */
enum { MEMORY_NS = 200 };

void lab_send_to_peer(struct lab *lab, unsigned from, unsigned to, uint64_t at_ns,
                      const void *bytes, size_t length)
{
    struct lab_host *here = lab_host_of(lab, from), *there = lab_host_of(lab, to);
    uint64_t delay_ns = MEMORY_NS;
    if (here != there) {
        const uint64_t jitter_ns = lab->options.jitter_ns;
        delay_ns += lab->options.rtt_ns / 2;
        delay_ns += jitter_ns ? rng_next(&lab->random) % (jitter_ns + 1) : 0;
        lab->result.messages++;
        lab->result.bytes += length;
        if (!lab->ended && happens(lab, lab->options.loss_ppm)) {
            lab->result.lost++;
            return;
        }
    }
    const struct lab_event e = {arrival_ns(lab, here, there, at_ns, delay_ns, length),
                                .kind = LAB_TO_PEER, .who = to};
    push(lab, e, from, lab->worker[to].incarnation, bytes, length);
}
