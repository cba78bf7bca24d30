#include "common/memory.h"

#include <inttypes.h>
#include <stdio.h>

enum { PATH_MAX_HERE = 1024, REST_MIB = 16 /* of a program, besides its tables */ };

uint64_t memory_machine_bytes(void)
{
    return (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Of a file that is not there, or says "max", there is none. */
static uint64_t read_limit(const char *folder, const char *path, int length, const char *name)
{
    char file[2 * PATH_MAX_HERE];
    uint64_t bytes = UINT64_MAX;
    snprintf(file, sizeof file, "%s%.*s/%s", folder, length, path, name);
    FILE *in = fopen(file, "re");
    if (in != NULL) {
        if (fscanf(in, "%" SCNu64, &bytes) != 1) {
            bytes = UINT64_MAX;
        }
        fclose(in);
    }
    return bytes;
}

/* The least of the cgroup and of those it is in. In a container the path may be that of the host,
 * while the folder is the container's: so the folder itself counts, too. */
static uint64_t least_limit(const char *root, const char *tree, const char *path, const char *name)
{
    char folder[PATH_MAX_HERE];
    uint64_t least = UINT64_MAX;
    snprintf(folder, sizeof folder, "%s%s", root, tree);
    for (int length = (int)strlen(path); length >= 0; length--) {
        if (length == 0 || path[length] == '/' || path[length] == '\0') {
            uint64_t limit = read_limit(folder, path, length, name);
            least = limit < least ? limit : least;
        }
    }
    return least;
}

uint64_t memory_cgroup_bytes(const char *list, const char *root)
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
        uint64_t limit = UINT64_MAX;
        if (kinds[1] == '\0') { /* version 2, whose tree is beside those of version 1 or alone */
            uint64_t beside = least_limit(root, "/unified", path, "memory.max");
            limit = least_limit(root, "", path, "memory.max");
            limit = beside < limit ? beside : limit;
        } else if (strcmp(kinds + 1, "memory") == 0) {
            limit = least_limit(root, "/memory", path, "memory.limit_in_bytes");
        }
        least = limit < least ? limit : least;
    }
    if (in != NULL) {
        fclose(in);
    }
    return least;
}

bool memory_has_room(uint64_t bytes, char *why, size_t why_size)
{
    const uint64_t machine = memory_machine_bytes(), rest = (uint64_t)REST_MIB << 20;
    const uint64_t allowed = memory_cgroup_bytes("/proc/self/cgroup", "/sys/fs/cgroup");
    if (bytes > machine) {
        snprintf(why, why_size, "more than the %" PRIu64 " MiB of this machine", machine >> 20);
    } else if (allowed < UINT64_MAX && (allowed < rest || bytes > allowed - rest)) {
        snprintf(why, why_size,
                 "with %d MiB for the rest of the program more than the %" PRIu64
                 " MiB that its cgroup (container) may have",
                 REST_MIB, allowed >> 20);
    } else {
        return true;
    }
    return false;
}
