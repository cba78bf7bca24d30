/* lab_watcher: programs of the virtual cluster that do not search: what people, `abdada top`,
 * `abdada tt` and programs on libabdada do. Each is a client in a fiber, on the first host, which
 * does one thing after the other and checks what it is told:
 *   STATS: what a shard counts never falls while it runs;
 *   MEMBERS: it finds itself, once, in a walk through all pages; where connections are simulated,
 *     once more for each that broke;
 *   SCAN: its own results are as it stored them, and gone after a FLUSH;
 *   lists of asks and peeks: what it stored answers, each in its place;
 *   letters: are to itself, whole, and from who they say.
 * It says BYE when the cluster's jobs have ended, and is never killed.
 *
 * Threads: one at a time. Memory: all in open. */
#ifndef TESTS_CHAOS_LAB_WATCHER_H
#define TESTS_CHAOS_LAB_WATCHER_H

#include "proto/lane/lane.h"
#include "tests/chaos/chaos_world.h"

enum err lab_watcher_open(struct lab_worker *w, const struct lane *lane);
void lab_watcher_close(struct lab_worker *w);
/* In its fiber; does not return. */
void lab_watcher_run(struct lab_worker *w);

/* Planted faults in what program *who is told, if it watches; true: it is told `out`, which has
 * PROTO_MESSAGE_MAX bytes. *who may become another. */
bool lab_watcher_spoil(struct lab *lab, const uint8_t *bytes, size_t bytes_length, uint32_t *who,
                       uint8_t *out, size_t *length);

#endif
