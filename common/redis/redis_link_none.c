/* A build without hiredis: nothing can be opened. */
#include "common/redis/redis_link.h"

#ifndef HAVE_HIREDIS

enum err redis_link_open(struct redis_link **out, const struct redis_link_options *options)
{
    (void)out;
    (void)options;
    return ERR_IO;
}

void redis_link_close(struct redis_link **link)
{
    (void)link;
}

bool redis_link_is_up(const struct redis_link *link, unsigned slot)
{
    (void)link;
    (void)slot;
    return false;
}

bool redis_link_call(struct redis_link *link, unsigned slot, unsigned script, unsigned keys,
                     unsigned argc, const char *const *argv, const size_t *length, uint64_t tag,
                     uint64_t now_us)
{
    (void)link, (void)slot, (void)script, (void)keys, (void)argc, (void)argv, (void)length;
    (void)tag, (void)now_us;
    return false;
}

bool redis_link_command(struct redis_link *link, unsigned slot, unsigned argc,
                        const char *const *argv, const size_t *length, uint64_t tag,
                        uint64_t now_us)
{
    (void)link, (void)slot, (void)argc, (void)argv, (void)length, (void)tag, (void)now_us;
    return false;
}

bool redis_link_leave_replica(struct redis_link *link)
{
    (void)link;
    return false;
}

bool redis_link_subscribe(struct redis_link *link, const char *channel)
{
    (void)link, (void)channel;
    return false;
}

void redis_link_unsubscribe(struct redis_link *link, const char *channel)
{
    (void)link, (void)channel;
}

bool redis_link_drain(struct redis_link *link, uint64_t now_us)
{
    (void)link, (void)now_us;
    return false;
}

void redis_link_tick(struct redis_link *link, uint64_t now_us)
{
    (void)link, (void)now_us;
}

unsigned redis_link_fds(const struct redis_link *link, struct pollfd out[REDIS_LINK_FDS_MAX])
{
    (void)link, (void)out;
    return 0;
}

#endif
