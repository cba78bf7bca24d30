/* A table that processes of a host share: its name, and room for it. */
#ifndef TESTS_SUPPORT_TEST_HOST_TABLE_H
#define TESTS_SUPPORT_TEST_HOST_TABLE_H

#include "common/clock.h"
#include "worker/table/embedded.h"
#include "worker/table/host_table.h"

#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { BYTES = 1 << 20, PATH_BYTES = 256 };

static inline uint64_t fresh_group(void)
{
    return clock_unique() | 1;
}

/* Waits a tenth of a second. The tables of other programs fill the /dev/shm of a container now and
 * then; false: it has been full for minutes. */
static inline bool wait_for_room(unsigned *waits)
{
    enum { WAITS = 1500, WAIT_NS = 100000000 };
    static bool is_in_vain;
    nanosleep(&(struct timespec){.tv_nsec = WAIT_NS}, NULL);
    is_in_vain = is_in_vain || ++*waits == WAITS;
    return !is_in_vain;
}

/* Whether /dev/shm has room within a few seconds. */
static inline bool has_room_at_all(void)
{
    enum { TRIES = 50 };
    struct host_table *host = NULL;
    enum err err;
    unsigned waits = 0;
    do {
        err = host_table_open(&host, fresh_group(), BYTES, NULL);
    } while (err != ERR_OK && waits < TRIES && wait_for_room(&waits));
    host_table_close(&host);
    return err == ERR_OK;
}

static inline enum err open_when_room(struct host_table **host, uint64_t group, size_t bytes)
{
    enum err err;
    unsigned waits = 0;
    do {
        err = host_table_open(host, group, bytes, NULL);
    } while (err == ERR_IO && errno == ENOSPC && wait_for_room(&waits));
    return err;
}

static inline enum err open_embedded_when_room(struct embedded **table, size_t bytes,
                                               unsigned slots, uint64_t group)
{
    enum err err;
    unsigned waits = 0;
    do {
        embedded_close(table);
        err = embedded_open_on_host(table, bytes, slots, group, NULL);
    } while (err == ERR_OK && !embedded_is_on_host(*table) &&
             embedded_private_reason(*table) == ENOSPC && wait_for_room(&waits));
    return err;
}

/* Of the file that the table is mapped from. */
static inline void path_of_table(const struct host_table *host, char *out, size_t size)
{
    char line[PATH_BYTES], start[32];
    bool found = false;
    FILE *maps = fopen("/proc/self/maps", "r");
    assert_non_null(maps);
    snprintf(start, sizeof start, "%" PRIxPTR "-", (uintptr_t)host_table_memory(host));
    while (!found && fgets(line, sizeof line, maps) != NULL) {
        found = strncmp(line, start, strlen(start)) == 0;
    }
    fclose(maps);
    assert_true(found && strchr(line, '/') != NULL);
    line[strcspn(line, "\n")] = '\0';
    snprintf(out, size, "%s", strchr(line, '/'));
}

/* Of the table of that group, which no process has now. */
static inline void path_of(uint64_t group, char *out, size_t size)
{
    struct host_table *host = NULL;
    assert_int_equal(open_when_room(&host, group, BYTES), ERR_OK);
    path_of_table(host, out, size);
    assert_int_equal(access(out, F_OK), 0);
    host_table_close(&host);
    assert_int_equal(access(out, F_OK), -1);
}

#endif
