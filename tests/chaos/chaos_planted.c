#include "tests/chaos/chaos_planted.h"

#include "common/rng.h"

bool chaos_planted_in(const struct lab_worker *w, const uint8_t *bytes, size_t length)
{
    struct lab *lab = w->lab;
    const struct lab_planted *planted = &chaos_of(lab)->options.planted;
    struct proto_message m;
    if ((planted->skip_release_ppm == 0 && !planted->lose_reports && !planted->skip_stop) ||
        w->index >= lab->machines || proto_decode(lab->decoder, bytes, length, &m) != ERR_OK) {
        return false;
    }
    switch (m.type) {
    case PROTO_JOB_STOP:
        return planted->skip_stop;
    case PROTO_JOB_REPORT:
        return planted->lose_reports && m.job_report.state != PROTO_JOB_SEARCHING;
    case PROTO_STORE_HASH:
    case PROTO_RELEASE:
        return rng_below(&chaos_of(lab)->planted, 1000000) < planted->skip_release_ppm;
    default:
        return false;
    }
}

/* A message is old when its sender's clock is behind. */
static bool seems_old(const struct lab *lab, unsigned shard, const struct lab_packet *packet)
{
    return chaos_of(lab)->options.planted.compare_clocks && packet->from < lab->machines &&
           lab_worker_us(lab, packet->from) + lab->options.heartbeat_ms * UINT64_C(1000) <
               lab_shard_us(lab, shard, lab->now_ns);
}

/* A watcher is told that its FLUSH was done. */
static bool is_flush_lost(struct lab *lab, unsigned shard, const struct lab_packet *packet)
{
    uint8_t bytes[64];
    struct proto_message m;
    if (!chaos_of(lab)->options.planted.lose_flushes || packet->from < lab->machines ||
        packet->from >= lab->programs ||
        proto_decode(lab->decoder, packet->bytes, packet->length, &m) != ERR_OK ||
        m.type != PROTO_FLUSH) {
        return false;
    }
    const struct proto_message answer = {.type = PROTO_FLUSHED, .flushed = {m.flush.request}};
    const size_t length = proto_encode(&answer, bytes, sizeof bytes);
    (void)lab_send(lab, packet->from, packet->epoch, shard, LAB_TO_WORKERS, lab->now_ns, bytes,
                   length);
    return true;
}

bool chaos_planted_at_shard(struct lab *lab, unsigned shard, const struct lab_packet *packet)
{
    return seems_old(lab, shard, packet) || is_flush_lost(lab, shard, packet);
}

bool chaos_planted_at_worker(struct lab_worker *w, unsigned shard, const struct lab_packet *packet)
{
    struct chaos_program *p = program_of(w);
    struct proto_message m;
    if (!chaos_of(w->lab)->options.planted.stale_index || !w->alive ||
        packet->epoch != w->incarnation ||
        proto_decode(w->lab->decoder, packet->bytes, packet->length, &m) != ERR_OK ||
        m.type != PROTO_WORKER_INDEX) {
        return false;
    }
    const bool is_first = (p->indexed >> shard & 1) == 0;
    p->indexed |= UINT64_C(1) << shard;
    return !is_first;
}
