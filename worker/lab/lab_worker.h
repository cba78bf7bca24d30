/* lab_worker: a virtual worker: a fiber with a clock, an inbox, and the real worker's code, or a
 * front-end's. Threads: one at a time. */
#ifndef WORKER_LAB_LAB_WORKER_H
#define WORKER_LAB_LAB_WORKER_H

#include "worker/lab/world.h"

enum err lab_worker_start(struct lab *lab, unsigned index);
/* As kill -9: nothing is sent any more. */
void lab_worker_kill(struct lab_worker *w);
/* To all shards, as before it ends in good order; nothing if it stands still or is dead. */
void lab_worker_say_bye(struct lab_worker *w);
/* It goes on computing. */
void lab_worker_wake(struct lab_worker *w);
/* Its host goes on after a suspend: its local time becomes the present. */
void lab_worker_resume(struct lab_worker *w);
/* It stands still no longer. */
void lab_worker_unstall(struct lab_worker *w);
/* A packet arrives; takes it. */
void lab_worker_receive(struct lab_worker *w, struct lab_packet *packet, unsigned shard);
/* The same for a message of another worker. */
void lab_worker_receive_letter(struct lab_worker *w, struct lab_packet *packet);

#endif
