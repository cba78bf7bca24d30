/* signals: SIGINT, SIGTERM and SIGHUP, which ask a program to end, and threads that leave them to
 * others.
 *
 * Threads: any; a handler is the process's. Memory: none. */
#ifndef COMMON_SIGNALS_H
#define COMMON_SIGNALS_H

#include <pthread.h>
#include <stdbool.h>

/* Calls `handler` for SIGINT and SIGTERM, and at the first SIGHUP, of a terminal that closes, as if
 * it were SIGTERM (not where nohup has it ignored); a second SIGHUP, of the shell there, is none. A
 * blocking call that they interrupt returns EINTR. */
void signals_catch(void (*handler)(int number));

/* pthread_create for a thread that takes no signals: the others of the process do. False: no thread
 * was created. */
bool signals_create_thread(pthread_t *thread, void *(*run)(void *context), void *context);

#endif
