/* lab_shard: a shard of the virtual cluster: the real core (ttserver/core), with a service time.
 * Threads: one at a time. */
#ifndef WORKER_LAB_LAB_SHARD_H
#define WORKER_LAB_LAB_SHARD_H

#include "worker/lab/world.h"

/* Of a shard: as many jobs as a liar's three users may have, together more than a worker
 * remembers. */
enum { LAB_SHARD_JOBS = 96 };

static inline uint32_t lab_shard_sessions(const struct lab *lab)
{
    return 2 * lab->programs + 16;
}

/* With what it kept; ERR_IO: it cannot read that now, and says so. */
enum err lab_shard_start(struct lab *lab, unsigned index);
/* `loses_power`: what it keeps on a disk, too; else that is drawn. */
void lab_shard_kill(struct lab *lab, unsigned index, bool loses_power);
/* Time for what it keeps. */
void lab_shard_keep(struct lab *lab, unsigned index, uint32_t incarnation);
/* To all sessions, as before it ends in good order; nothing if it stands still or is dead. */
void lab_shard_say_bye(struct lab *lab, unsigned index);
/* A packet arrives; takes it. */
void lab_shard_receive(struct lab *lab, unsigned index, struct lab_packet *packet);
/* Session `who` of the liar: whether it is open, ... */
bool lab_shard_knows_liar(const struct lab *lab, unsigned index, unsigned who);
/* ... and a message from it, without a network between, to a shard that lives and does not stall.
 * Whether it was taken: neither refused nor ignored. */
bool lab_shard_take_lie(struct lab *lab, unsigned index, unsigned who, const uint8_t *bytes,
                        size_t length);
/* What program `from` says to a shard, where connections are simulated. True: a planted fault makes
 * the shard forget it. */
bool lab_shard_overhear(struct lab *lab, unsigned from, const uint8_t *bytes, size_t length);
/* Where connections are simulated, it leaves its own there. */
void lab_shard_close_liar(struct lab *lab, unsigned index, unsigned who);
/* It stands still no longer. */
void lab_shard_unstall(struct lab *lab, unsigned index);
void lab_shard_tick(struct lab *lab, unsigned index, uint32_t incarnation);

/* In-flight entries of one worker there. */
unsigned lab_shard_inflight_of(const struct lab *lab, unsigned index, const struct lab_worker *w);
/* Zeroes for a dead one. */
struct ttcore_figures lab_shard_figures(const struct lab *lab, unsigned index);

#endif
