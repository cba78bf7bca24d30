#include "worker/engine/process.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void process_default_name(char out[PROCESS_NAME_MAX])
{
    char host[64] = "";
    gethostname(host, sizeof host - 1);
    snprintf(out, PROCESS_NAME_MAX, "%.40s:%d", host, (int)getpid());
}

/* Of the name without the number of a thread. */
static size_t base_length(const char *name)
{
    const size_t length = strlen(name);
    size_t at = length;
    while (at > 0 && isdigit((unsigned char)name[at - 1])) {
        at--;
    }
    return at > 1 && at < length && name[at - 1] == '.' ? at - 1 : length;
}

static bool is_same(const struct process_thread *a, const struct process_thread *b)
{
    return a->length == b->length && memcmp(a->name, b->name, a->length) == 0;
}

static int by_name(const void *a, const void *b)
{
    const struct process_thread *x = a, *y = b;
    const size_t shorter = x->length < y->length ? x->length : y->length;
    const int bases = memcmp(x->name, y->name, shorter);
    return bases != 0               ? bases
           : x->length != y->length ? (x->length > y->length) - (x->length < y->length)
                                    : strcmp(x->name, y->name);
}

/* Threads of one process, from that one on, or those of one whole name. */
static unsigned count_same(const struct process_thread *thread, unsigned threads)
{
    unsigned count = 1;
    while (count < threads && is_same(&thread[0], &thread[count])) {
        count++;
    }
    return count;
}

static bool has_number(const struct process_thread *thread, unsigned threads, const char *number)
{
    for (unsigned i = 0; i < threads; i++) {
        if (strcmp(thread[i].name + thread[i].length, number) == 0) {
            return true;
        }
    }
    return false;
}

unsigned process_group(struct process_thread *thread, unsigned threads)
{
    unsigned processes = 0;
    for (unsigned i = 0; i < threads; i++) {
        thread[i].length = base_length(thread[i].name);
    }
    if (threads > 0) {
        qsort(thread, threads, sizeof *thread, by_name);
    }
    for (unsigned first = 0, count; first < threads; first += count) {
        struct process_thread *t = &thread[first];
        count = count_same(t, threads - first);
        const bool are_threads = has_number(t, count, ".0") && has_number(t, count, ".1");
        for (unsigned i = 0; i < count && !are_threads; i++) {
            t[i].length = strlen(t[i].name);
        }
        for (unsigned i = 0; i < count; i++) {
            processes += i == 0 || !is_same(&t[i - 1], &t[i]);
            t[i].process = processes - 1;
        }
    }
    return processes;
}
