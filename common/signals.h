/* signals: SIGINT, SIGTERM and SIGHUP, which ask a program to end, and threads that leave them to
 * others.
 *
 * Threads: any; a handler is the process's. Memory: none. */
#ifndef COMMON_SIGNALS_H
#define COMMON_SIGNALS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

/* Lets signals end this program as they end any other. Process 1 of a container has no default
 * actions: it gets handlers that exit with 128 + the signal's number, and the kernel reaps the
 * orphans that it adopts, and every child: a program that waits for children of its own first sets
 * the default action of SIGCHLD again. Call it first of all, and again where a library has removed
 * its handlers. Elsewhere it changes nothing. */
void signals_default(void);

/* Calls `handler` for SIGINT and SIGTERM, and at the first SIGHUP, of a terminal that closes, as if
 * it were SIGTERM (not where nohup has it ignored); a second SIGHUP, of the shell there, is none. A
 * blocking call that they interrupt returns EINTR. */
void signals_catch(void (*handler)(int number));

/* The same for a program that looks at a flag: the first of them sets it, and the second ends the
 * process at once. The flag is one of the process, for ever. */
void signals_end_by(atomic_bool *flag);

/* pthread_create for a thread that takes no signals: the others of the process do. False: no thread
 * was created. */
bool signals_create_thread(pthread_t *thread, void *(*run)(void *context), void *context);

#endif
