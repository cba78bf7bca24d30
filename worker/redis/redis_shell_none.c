/* A build without Redis: nothing can be opened. */
#include "worker/redis/redis_shell.h"

unsigned redis_shell_shards(const struct redis_address *address)
{
    (void)address;
    return 0;
}

enum err redis_shell_open(struct redis_shell **out, const struct redis_address *address,
                          const char *program, struct redis_shell *first)
{
    (void)out, (void)address, (void)program, (void)first;
    return ERR_IO;
}

void redis_shell_close(struct redis_shell **shell)
{
    (void)shell;
}

struct lane redis_shell_lane(struct redis_shell *shell)
{
    return (struct lane){.self = shell};
}
