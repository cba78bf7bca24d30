/* streams: standard input, output and error, each of which a program may be started without. What
 * is opened next would get the number of one that is closed, and what is printed then, or a
 * child's, would go into a table in shared memory, a socket or a file.
 *
 * Threads: before there are others. Memory: none. */
#ifndef COMMON_STREAMS_H
#define COMMON_STREAMS_H

/* First of all in a program: /dev/null stands for each of them that is closed. */
void streams_open(void);

#endif
