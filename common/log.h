/* log: lines for people on stderr. "2026-01-31T12:00:00.123Z ttserver: text".
 *
 * One write(2) per line, so lines of several threads never mix; a line is cut at LOG_LINE_MAX
 * bytes. Nothing on a hot path logs. Threads: any. Memory: never allocates. Blocking: log_fail on
 * stderr; log_line leaves a line out where a pipe or terminal takes none, as nobody reads it, and
 * the next one says how many. */
#ifndef COMMON_LOG_H
#define COMMON_LOG_H

#include <stdbool.h>
#include <stdio.h>

enum { LOG_LINE_MAX = 1024 };

/* First of all in a program, before there are other threads: /dev/null stands for standard input,
 * output and error where it was started without. Otherwise the next file opened
 * would get the number of a closed stream, and output would go into shared memory, a socket or a
 * file. */
void log_begin(void);
/* Closes standard output. The exit status of a program that ends with `status`: a failure where not
 * all could be written. */
int log_end(const char *program, int status);

/* From now on standard error is the end of this file (borrowed), which is made if it is not there;
 * NULL: it stays what it is. False: a line of `program` said why not. By one thread. */
bool log_to_file(const char *program, const char *path);
/* Opens that file anew, by its name: the old one was moved away. Without a file it does nothing.
 * False: errno, and the old one stays. Async-signal-safe. */
bool log_reopen(void);

/* A line with the time of day, for what happens while a program runs. */
void log_line(const char *program, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Writes what is in the file's buffer. False: a line of `program` said why that, or an earlier
 * write, failed, with `name` for the file. */
bool log_flush(const char *program, FILE *file, const char *name);
/* The same, and closes it. */
bool log_close(const char *program, FILE *file, const char *name);

/* "PROGRAM: text" without the time: why a program ends. Returns 1, its exit status. */
int log_fail(const char *program, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
