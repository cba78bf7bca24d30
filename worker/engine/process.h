/* process: which sessions of searchers are threads of one process, by their names. A ttworker of
 * several threads names them NAME.0, NAME.1 and so on, one of a single thread NAME (ttworker.c).
 * Pure. */
#ifndef WORKER_ENGINE_PROCESS_H
#define WORKER_ENGINE_PROCESS_H

#include <stddef.h>

struct process_thread {
    const char *name; /* borrowed */
    unsigned index; /* the caller's */
    /* found out */
    size_t length; /* of the name of its process */
    unsigned process; /* number of its process */
};

/* Sorts the threads so that those of a process are together, and numbers the processes from 0.
 * Returns how many there are. A number behind a name counts as that of a thread where there are
 * NAME.0 and NAME.1: a name may be an address. */
unsigned process_group(struct process_thread *thread, unsigned threads);

#endif
