#include "worker/cli/cli.h"

enum err cli_parse_servers(const char *text, void *servers)
{
    struct cli_servers *s = servers;
    enum err err = options_host_ports(text, s->server, CLI_SERVERS_MAX, &s->count);
    for (unsigned i = 0; i < s->count && err == ERR_OK; i++) {
        if (s->server[i].port == 0) {
            err = ERR_RANGE;
        }
    }
    return err;
}
