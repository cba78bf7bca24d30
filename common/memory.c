#include "common/memory.h"

#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <sys/resource.h>

enum {
    PATH_MAX_HERE = 1024,
    PROGRAM_BYTES = 16 << 20, /* of a program besides its tables: 15 MiB were the most */
    THREAD_BYTES = 512 << 10, /* of a thread that searches: 0.36 MiB */
    LIBRARY_THREADS = 4, /* of ZeroMQ, and the one that speaks */
};

static uint64_t bytes_of(uint64_t pages)
{
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Files of a version of cgroups. */
struct version {
    const char *limit; /* name of the file */
    const char *anonymous; /* line of memory.stat: memory that only a kill gives back */
};

static const struct version version_1 = {"memory.limit_in_bytes", "total_rss"};
static const struct version version_2 = {"memory.max", "anon"};

/* The number after the first `word` of a file, or the first number of it if that is NULL;
 * `missing` where there is none, or "max". */
static uint64_t read_number(const char *folder, const char *file, const char *word,
                            uint64_t missing)
{
    char path[3 * PATH_MAX_HERE], found[64] = "";
    uint64_t number = 0;
    bool is_found = false, is_line = true;
    snprintf(path, sizeof path, "%s/%s", folder, file);
    FILE *in = fopen(path, "re");
    while (in != NULL && is_line && !is_found) {
        is_line = (word == NULL || fscanf(in, "%63s", found) == 1) &&
                  fscanf(in, "%" SCNu64, &number) == 1;
        is_found = is_line && (word == NULL || strcmp(found, word) == 0);
    }
    if (in != NULL) {
        fclose(in);
    }
    return is_found ? number : missing;
}

/* Returns the least that this cgroup and those around it leave. In a container the path may be
 * that of the host, while the folder is the container's, so the folder itself counts, too. */
static uint64_t least_left(const char *root, const char *tree, const char *path,
                           const struct version *version, uint64_t own)
{
    char folder[2 * PATH_MAX_HERE];
    const size_t top = strlen(root) + strlen(tree);
    uint64_t least = UINT64_MAX;
    snprintf(folder, sizeof folder, "%s%s%s", root, tree, path);
    for (;;) {
        const uint64_t limit = read_number(folder, version->limit, NULL, UINT64_MAX);
        const uint64_t used = read_number(folder, "memory.stat", version->anonymous, 0);
        const uint64_t others = used > own ? used - own : 0;
        const uint64_t left = limit == UINT64_MAX ? limit : limit > others ? limit - others : 0;
        char *slash = strrchr(folder + top, '/');
        least = left < least ? left : least;
        if (slash == NULL) {
            return least;
        }
        *slash = '\0';
    }
}

uint64_t memory_cgroup_bytes(const char *list, const char *root, uint64_t own)
{
    char line[PATH_MAX_HERE];
    uint64_t least = UINT64_MAX;
    FILE *in = fopen(list, "re");
    while (in != NULL && fgets(line, sizeof line, in) != NULL) {
        char *kinds = strchr(line, ':'), *path = kinds != NULL ? strchr(kinds + 1, ':') : NULL;
        if (path == NULL) {
            continue;
        }
        *path++ = '\0';
        path[strcspn(path, "\n")] = '\0';
        uint64_t left = UINT64_MAX;
        if (kinds[1] == '\0') { /* version 2, whose tree is beside those of version 1 or alone */
            uint64_t beside = least_left(root, "/unified", path, &version_2, own);
            left = least_left(root, "", path, &version_2, own);
            left = beside < left ? beside : left;
        } else if (strcmp(kinds + 1, "memory") == 0) {
            left = least_left(root, "/memory", path, &version_1, own);
        }
        least = left < least ? left : least;
    }
    if (in != NULL) {
        fclose(in);
    }
    return least;
}

/* Pages that the process has, as /proc/self/statm says. */
struct pages {
    uint64_t all, resident, of_files /* and shared ones */, data;
};

static struct pages pages_now(void)
{
    struct pages now = {0};
    FILE *in = fopen("/proc/self/statm", "re");
    if (in != NULL) {
        if (fscanf(in, "%" SCNu64 " %" SCNu64 " %" SCNu64 " %*u %*u %" SCNu64, &now.all,
                   &now.resident, &now.of_files, &now.data) != 4) {
            now = (struct pages){0};
        }
        fclose(in);
    }
    return now;
}

uint64_t memory_resident_bytes(void)
{
    return bytes_of(pages_now().resident);
}

/* UINT64_MAX: there is none. */
static uint64_t limit_of(int resource)
{
    struct rlimit found;
    bool is_limited = getrlimit(resource, &found) == 0 && found.rlim_cur != RLIM_INFINITY;
    return is_limited ? found.rlim_cur : UINT64_MAX;
}

/* Returns what a limit of the process leaves after what it has and what it will take `besides`. */
static uint64_t left_of(int resource, uint64_t pages, uint64_t besides)
{
    const uint64_t limit = limit_of(resource), had = bytes_of(pages) + besides;
    return limit == UINT64_MAX ? limit : limit > had ? limit - had : 0;
}

/* Stacks of the threads, those that libraries start included. Little of each is used. */
static uint64_t stacks(unsigned threads)
{
    const uint64_t stack = limit_of(RLIMIT_STACK);
    return (threads + LIBRARY_THREADS) * (stack != UINT64_MAX ? stack : UINT64_C(8) << 20);
}

static uint64_t rest_of(unsigned threads)
{
    return PROGRAM_BYTES + threads * (uint64_t)THREAD_BYTES;
}

struct bound {
    uint64_t bytes; /* of all that the process takes from now on */
    const char *before, *after; /* words around the number */
};

static struct bound least_bound(unsigned threads)
{
#ifdef M_ARENA_MAX
    if (limit_of(RLIMIT_AS) != UINT64_MAX) {
        (void)mallopt(M_ARENA_MAX, 1); /* each thread would reserve 64 MiB of it for its own */
    }
#endif
    const struct pages now = pages_now();
    const uint64_t own = now.resident > now.of_files ? bytes_of(now.resident - now.of_files) : 0;
    const struct bound all[] = {
        {bytes_of((uint64_t)sysconf(_SC_PHYS_PAGES)), "this machine's ", ""},
        {memory_cgroup_bytes("/proc/self/cgroup", "/sys/fs/cgroup", own), "the ",
         " that this cgroup (container) leaves"},
        {left_of(RLIMIT_AS, now.all, stacks(threads)), "the ", " that `ulimit -v` leaves"},
        {left_of(RLIMIT_DATA, now.data, stacks(threads)), "the ", " that `ulimit -d` leaves"},
    };
    struct bound least = all[0];
    for (unsigned i = 1; i < sizeof all / sizeof all[0]; i++) {
        least = all[i].bytes < least.bytes ? all[i] : least;
    }
    return least;
}

const char *memory_text(uint64_t bytes, char out[MEMORY_TEXT_MAX])
{
    static const char *const unit[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double number = (double)bytes / 1024;
    unsigned i = 0;
    for (; number >= 1024; i++) {
        number /= 1024;
    }
    const unsigned tenths = (unsigned)(number * 10);
    snprintf(out, MEMORY_TEXT_MAX, "%.*f %s", tenths % 10 == 0 ? 0 : 1, tenths / 10.0, unit[i]);
    return out;
}

uint64_t memory_for_tables(unsigned threads)
{
    const uint64_t all = least_bound(threads).bytes, rest = rest_of(threads);
    return all > rest ? all - rest : 0;
}

bool memory_has_room(uint64_t tables, uint64_t besides, unsigned threads, char *why,
                     size_t why_size)
{
    const struct bound least = least_bound(threads);
    const uint64_t rest = besides + rest_of(threads);
    char room[MEMORY_TEXT_MAX], more[MEMORY_TEXT_MAX];
    memory_text(least.bytes, room);
    if (tables > least.bytes) {
        snprintf(why, why_size, "exceeds %s%s%s", least.before, room, least.after);
    } else if (rest > least.bytes - tables) {
        snprintf(why, why_size, "and the %s that the program takes besides exceed %s%s%s",
                 memory_text(rest, more), least.before, room, least.after);
    } else {
        return true;
    }
    return false;
}
