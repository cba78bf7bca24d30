/* Real Redis servers for tests: processes of redis-server on free ports, in a folder of their own,
 * which die with the test. Threads: one. */
#ifndef TESTS_SUPPORT_TEST_REDIS_H
#define TESTS_SUPPORT_TEST_REDIS_H

#include "common/clock.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum {
    REDIS_PATIENCE_S = 150, /* that anything may take; it comes much earlier */
    REDIS_BUS = 10000, /* a cluster's nodes talk at their port + this */
    REDIS_OPTIONS_MAX = 48,
    REDIS_REPLY_TEXT = 4096,
};

struct redis_server {
    pid_t pid;
    unsigned port;
    char dir[128];
    const char *option[REDIS_OPTIONS_MAX]; /* of its command line, borrowed; ends with NULL */
};

static inline bool redis_is_missing(const char *program)
{
    char path[4096];
    snprintf(path, sizeof path, "%s", getenv("PATH") != NULL ? getenv("PATH") : "");
    for (char *next = NULL, *dir = strtok_r(path, ":", &next); dir != NULL;
         dir = strtok_r(NULL, ":", &next)) {
        char file[4200];
        snprintf(file, sizeof file, "%s/%s", dir, program);
        if (access(file, X_OK) == 0) {
            return false;
        }
    }
    return true;
}

/* Skips the test that runs where there is no Redis, or the build cannot use it. */
static inline void redis_needed(void)
{
    if (redis_is_missing("redis-server") || redis_is_missing("redis-cli")) {
        print_message("# skipped: no redis-server here\n");
        skip();
    }
}

static inline int redis_bound(unsigned port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(fd, (struct sockaddr *)&at, sizeof at) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

/* Free together with the port of the bus. Below the range from which systems choose themselves, so
 * that nobody takes it before its server does; a process begins at its own place. */
static inline unsigned redis_free_port(void)
{
    enum { LOWEST = 11000, PORTS = 11000 };
    static unsigned next;
    for (unsigned i = 0; i < PORTS; i++) {
        unsigned port = LOWEST + ((unsigned)getpid() * 37 + next++) % PORTS;
        int fd = redis_bound(port), bus = fd >= 0 ? redis_bound(port + REDIS_BUS) : -1;
        if (fd >= 0) {
            close(fd);
        }
        if (bus >= 0) {
            close(bus);
            return port;
        }
    }
    fail_msg("no free port");
    return 0;
}

static inline void redis_make_dir(char dir[128])
{
    snprintf(dir, 128, "/tmp/abdada-redis-XXXXXX");
    assert_non_null(mkdtemp(dir));
}

/* Removes a folder with files alone in it. */
static inline void redis_remove_dir(const char *dir)
{
    DIR *open = opendir(dir);
    for (struct dirent *e; open != NULL && (e = readdir(open)) != NULL;) {
        if (e->d_name[0] != '.') {
            unlinkat(dirfd(open), e->d_name, 0);
        }
    }
    if (open != NULL) {
        closedir(open);
    }
    rmdir(dir);
}

/* One command as words on one line, and the beginning of its answer; false: none came. */
static inline bool redis_ask(unsigned port, const char *line, char *answer, size_t size)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct timeval limit = {.tv_sec = REDIS_PATIENCE_S};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    ssize_t n = -1;
    if (connect(fd, (struct sockaddr *)&at, sizeof at) == 0) {
        dprintf(fd, "%s\r\n", line);
        n = recv(fd, answer, size - 1, 0);
    }
    close(fd);
    answer[n > 0 ? n : 0] = '\0';
    return n > 0;
}

/* The answer has this text in it. */
static inline void redis_expect(unsigned port, const char *line, const char *text)
{
    char answer[REDIS_REPLY_TEXT];
    uint64_t end = clock_us() + REDIS_PATIENCE_S * UINT64_C(1000000);
    do {
        if (redis_ask(port, line, answer, sizeof answer) && strstr(answer, text) != NULL) {
            return;
        }
        usleep(5000);
    } while (clock_us() < end);
    fail_msg("redis at %u: %s: %s, not %s", port, line, answer, text);
}

/* Whatever a command line of redis-server says is handed on; runs until redis_kill. */
static inline void redis_run(struct redis_server *s)
{
    const char *argv[REDIS_OPTIONS_MAX + 16];
    char port[16], log[160];
    unsigned n = 0;
    snprintf(port, sizeof port, "%u", s->port);
    snprintf(log, sizeof log, "%s/log-%u", s->dir, s->port);
    const char *const always[] = {"redis-server", "--save", "",     "--appendonly", "no", "--bind",
                                  "127.0.0.1",    "--dir",  s->dir, "--logfile",    log};
    for (; n < sizeof always / sizeof always[0]; n++) {
        argv[n] = always[n];
    }
    bool has_port = false;
    for (unsigned i = 0; s->option[i] != NULL; i++) {
        has_port = has_port || strcmp(s->option[i], "--port") == 0;
        argv[n++] = s->option[i];
    }
    if (!has_port) {
        argv[n++] = "--port";
        argv[n++] = port;
    }
    argv[n] = NULL;
    s->pid = fork();
    assert_true(s->pid >= 0);
    if (s->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execvp(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
}

/* On a free port, ready for commands. `option`: more of its command line, ends with NULL. */
static inline void redis_start(struct redis_server *s, const char *dir, const char *const *option)
{
    char answer[REDIS_REPLY_TEXT];
    unsigned n = 0;
    *s = (struct redis_server){.port = redis_free_port()};
    snprintf(s->dir, sizeof s->dir, "%s", dir);
    for (; option != NULL && option[n] != NULL; n++) {
        s->option[n] = option[n];
    }
    redis_run(s);
    uint64_t end = clock_us() + REDIS_PATIENCE_S * UINT64_C(1000000);
    while (!redis_ask(s->port, "PING", answer, sizeof answer)) {
        int status;
        if (waitpid(s->pid, &status, WNOHANG) != 0 || clock_us() > end) {
            fail_msg("redis-server at %u does not run: see its log in %s", s->port, s->dir);
        }
        usleep(5000);
    }
}

static inline void redis_kill(struct redis_server *s)
{
    if (s->pid > 0) {
        kill(s->pid, SIGKILL);
        waitpid(s->pid, NULL, 0);
        s->pid = 0;
    }
}

/* A server in a folder of its own, for one test, which is skipped where there is none. */
static inline void redis_begin(struct redis_server *s)
{
    char dir[128];
    redis_needed();
    redis_make_dir(dir);
    redis_start(s, dir, NULL);
}

static inline void redis_end(struct redis_server *s)
{
    redis_kill(s);
    redis_remove_dir(s->dir);
}

#endif
