#include "ttserver/net/refusals.h"

#include "common/log.h"

#include <inttypes.h>

enum { LOG_EVERY_US = 10000000 };

void refusals_note(struct refusals *r, int fd, const char *why)
{
    identity_address(fd, r->from);
    r->why = why;
}

void refusals_log(struct refusals *r, const char *program, uint64_t count, uint64_t now_us)
{
    uint64_t more = count - r->logged;
    if (more > 0 && (r->logged == 0 || now_us - r->logged_us >= LOG_EVERY_US)) {
        log_line(program, "%" PRIu64 " connection%s refused, the last from %s: %s", more,
                 more == 1 ? "" : "s", r->from, r->why);
        r->logged = count;
        r->logged_us = now_us;
    }
}
