/* test_lib: real ttservers for the tests of libabdada: processes of the same build. Threads: one.
 */
#ifndef TESTS_SUPPORT_TEST_LIB_H
#define TESTS_SUPPORT_TEST_LIB_H

#include "common/clock.h"
#include "worker/lib/abdada.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { PATIENCE_MS = 150000, SERVER_ARGUMENTS_MAX = 8 };

struct server {
    pid_t process; /* 0: none */
    char address[64];
};

/* Waits for a condition, for as long as it may take. */
#define WAIT_FOR(condition)                                                         \
    do {                                                                            \
        uint64_t end_us_ = clock_us() + PATIENCE_MS * UINT64_C(1000);               \
        while (!(condition)) {                                                      \
            if (clock_us() > end_us_) {                                             \
                fail_msg("%s:%d: not in time: %s", __FILE__, __LINE__, #condition); \
            }                                                                       \
        }                                                                           \
    } while (0)

static inline void server_exec(const char *address, const char *const *more, int out)
{
    char path[512];
    const char *argument[SERVER_ARGUMENTS_MAX] = {"ttserver", "--listen", address, "--memory",
                                                  "8M"};
    unsigned n = 5;
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 32);
    path[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(path, '/');
    strcpy(slash != NULL ? slash : path, "/../bin/ttserver");
    for (; more != NULL && *more != NULL && n < SERVER_ARGUMENTS_MAX - 1; more++) {
        argument[n++] = *more;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(out, STDOUT_FILENO);
    execv(path, (char *const *)argument);
    perror(path);
    _exit(127);
}

/* `address`: "127.0.0.1:0" for a free port; `more`: further arguments, ended by NULL, or NULL. */
static inline void server_start(struct server *s, const char *address, const char *const *more)
{
    int pipes[2];
    char line[128] = "";
    assert_int_equal(pipe(pipes), 0);
    s->process = fork();
    assert_true(s->process >= 0);
    if (s->process == 0) {
        server_exec(address, more, pipes[1]);
    }
    close(pipes[1]);
    FILE *out = fdopen(pipes[0], "r");
    assert_non_null(out);
    assert_non_null(fgets(line, sizeof line, out));
    assert_int_equal(sscanf(line, "ready %63s", s->address), 1);
    fclose(out);
}

static inline void server_end(struct server *s, int signal)
{
    if (s->process > 0) {
        kill(s->process, signal);
        waitpid(s->process, NULL, 0);
        s->process = 0;
    }
}

static inline struct abdada_options options_for(const struct server *s, uint64_t namespace_id)
{
    return (struct abdada_options){
        .struct_size = sizeof(struct abdada_options),
        .servers = s->address,
        .namespace_id = namespace_id,
        .answer_ms = 10000, /* the server may have to wait for a CPU */
    };
}

static inline struct abdada *open_with(const struct abdada_options *options)
{
    struct abdada *t = NULL;
    assert_int_equal(abdada_open(&t, options), ABDADA_OK);
    assert_int_equal(abdada_wait_connected(t, PATIENCE_MS), 1);
    return t;
}

static inline struct abdada *open_at(const struct server *s, uint64_t namespace_id)
{
    struct abdada_options options = options_for(s, namespace_id);
    return open_with(&options);
}

static inline uint64_t figure(struct abdada *t, int shard, const char *name)
{
    struct abdada_figure f[256];
    int n = shard < 0 ? abdada_stats(t, f, 256) : abdada_shard_stats(t, shard, f, 256);
    for (int i = 0; i < n && i < 256; i++) {
        if (strcmp(f[i].name, name) == 0) {
            return f[i].value;
        }
    }
    fail_msg("no figure %s", name);
    return 0;
}

/* The server of a group of tests, and what starts and ends it where nothing else is needed. */
static struct server server;

static inline int server_setup(void **state)
{
    (void)state;
    server_start(&server, "127.0.0.1:0", NULL);
    return 0;
}

static inline int server_teardown(void **state)
{
    (void)state;
    server_end(&server, SIGTERM);
    return 0;
}

#endif
