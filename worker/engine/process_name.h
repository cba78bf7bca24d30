/* process_name: names of searchers, and which of their sessions are threads of one process. A
 * ttworker of several threads names them NAME.0, NAME.1 and so on, one of a single thread NAME
 * (ttworker.c).
 */
#ifndef WORKER_ENGINE_PROCESS_NAME_H
#define WORKER_ENGINE_PROCESS_NAME_H

#include <stddef.h>

enum { PROCESS_NAME_MAX = 56 };

/* HOST:PID, what this process is called if nobody names it. */
void process_name_default(char out[PROCESS_NAME_MAX]);

struct process_thread {
    const char *name; /* borrowed */
    unsigned index; /* the caller's */
    /* found out */
    size_t length; /* of the name of its process */
    unsigned process; /* number of its process */
};

/* Pure. Sorts the threads so that those of a process are together, and numbers the processes from
 * 0. Returns how many there are. A number behind a name counts as that of a thread where there are
 * NAME.0 and NAME.1: a name may be an address. */
unsigned process_name_group(struct process_thread *thread, unsigned threads);

#endif
