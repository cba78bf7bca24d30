/* abdada cluster: the launcher is a Python program, because it reads TOML and talks to many hosts
 * at once. Its files are in this program, so that there is one file to install, and run from
 * memory. */
#include "worker/programs/cli.h"

#include "common/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const char program[] = "abdada cluster";

/* Made by the linker of the files of these names (EMBEDDED in the Makefile). */
extern const char _binary_cluster_file_py_start[], _binary_cluster_file_py_end[];
extern const char _binary_cluster_host_py_start[], _binary_cluster_host_py_end[];
extern const char _binary_cluster_bench_py_start[], _binary_cluster_bench_py_end[];
extern const char _binary_cluster_py_start[], _binary_cluster_py_end[];
extern const char _binary_cluster_host_sh_start[], _binary_cluster_host_sh_end[];

static const struct part {
    const char *begin, *end;
} parts[] = {
    {_binary_cluster_file_py_start, _binary_cluster_file_py_end},
    {_binary_cluster_host_py_start, _binary_cluster_host_py_end},
    {_binary_cluster_bench_py_start, _binary_cluster_bench_py_end},
    {_binary_cluster_py_start, _binary_cluster_py_end},
    {_binary_cluster_host_sh_start, _binary_cluster_host_sh_end},
};

enum { PARTS = sizeof parts / sizeof parts[0], PATH_SIZE = 4096, WORDS = 6 + PARTS };

/* The parts in Python are modules, each for those after it; the last of them is the program. */
static const char boot[] =
    "import os, signal, sys, types\n"
    "for number in (signal.SIGHUP, signal.SIGTERM) if os.getpid() == 1 else ():\n"
    "    signal.signal(number, lambda number, _: os._exit(128 + number))\n"
    "for name in 'cluster_file', 'cluster_host', 'cluster_bench', 'cluster':\n"
    "    module = sys.modules[name] = types.ModuleType(name)\n"
    "    with open(sys.argv.pop(1), 'rb') as part:\n"
    "        code = compile(part.read(), name + '.py', 'exec')\n"
    "    exec(code, module.__dict__)\n"
    "sys.exit(module.main(*sys.argv[1:]))\n";

/* A file in memory, which the program run by exec inherits. 0, or -1 with errno. */
static int open_in_memory(const struct part *part, char path[32])
{
    int fd = memfd_create(program, 0);
    for (const char *at = part->begin; fd >= 0 && at < part->end;) {
        ssize_t n = write(fd, at, (size_t)(part->end - at));
        if (n < 0 && errno != EINTR) {
            return -1;
        }
        at += n > 0 ? n : 0;
    }
    snprintf(path, 32, "/proc/self/fd/%d", fd);
    return fd < 0 ? -1 : 0;
}

int cli_cluster(int argc, char *argv[])
{
    char paths[PARTS][32], self[PATH_SIZE];
    char **words = calloc((size_t)argc + WORDS, sizeof *words);
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    bool is_ready = words != NULL && length >= 0;
    for (int i = 0; i < PARTS && is_ready; i++) {
        is_ready = open_in_memory(&parts[i], paths[i]) == 0;
    }
    if (!is_ready) {
        log_fail(program, "%s", strerror(errno));
        free(words);
        return 1;
    }
    self[length] = '\0';
    /* -I: no module of the present directory takes the place of one of Python's. */
    char *const first[WORDS] = {"python3", "-I",     "-c",           (char *)boot,
                                paths[0],  paths[1], paths[2],       paths[3],
                                paths[4],  self,     PROGRAM_VERSION};
    memcpy(words, first, sizeof first);
    memcpy(words + WORDS, argv + 1, ((size_t)argc - 1) * sizeof *words);
    execvp("python3", words);
    if (errno == ENOENT) {
        log_fail(program, "needs python3 (3.11 or later), which is not on PATH");
    } else {
        log_fail(program, "python3: %s", strerror(errno));
    }
    free(words);
    return 1;
}
