#include "worker/engine/process_name.h"

#include "common/err.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void process_name_default(char out[PROCESS_NAME_MAX])
{
    char host[64] = "";
    gethostname(host, sizeof host - 1);
    snprintf(out, PROCESS_NAME_MAX, "%.40s:%d", host, (int)getpid());
}

/* Length of the name without the number of a thread. */
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

static bool has_number(const struct process_thread *thread, unsigned threads, const char *number)
{
    for (unsigned i = 0; i < threads; i++) {
        if (strcmp(thread[i].name + thread[i].length, number) == 0) {
            return true;
        }
    }
    return false;
}

unsigned process_name_group(struct process_thread *thread, unsigned threads)
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
        for (count = 1; first + count < threads && is_same(&t[0], &t[count]); count++) {
        }
        const bool are_threads = has_number(t, count, ".0") && has_number(t, count, ".1");
        for (unsigned i = 0; i < count && !are_threads; i++) {
            t[i].length = strlen(t[i].name);
        }
        for (unsigned i = 0; i < count; i++) {
            processes += i == 0 || !is_same(&t[i - 1], &t[i]);
            t[i].process = processes - 1;
        }
    }
    CHECK_THAT(processes <= threads, "a process has a thread");
    return processes;
}
