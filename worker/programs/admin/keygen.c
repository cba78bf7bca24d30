/* abdada keygen: the keys of a cluster, or of one more user of it. */
#include "worker/programs/cli.h"

#include "common/config.h"
#include "common/log.h"

#include <stdio.h>

static const char program[] = "abdada keygen";

static int make_ring(const char *dir)
{
    char why[KEYS_WHY_MAX];
    enum err err = keys_make_ring(dir, why);
    const bool is_there = err == ERR_EXIST;
    err = is_there ? keys_check_ring(dir, why) : err;
    if (is_there && err == ERR_OK) {
        printf("%s has all keys of a cluster already; nothing to do\n", dir);
        return 0;
    }
    if (err != ERR_OK) {
        return log_fail(program, "%s", why);
    }
    printf("%s/server.secret    for the hosts that run ttserver, with %s/allowed\n"
           "%s/server.public    for all hosts\n",
           dir, dir, dir);
    for (unsigned i = 0; i < KEYS_ROLES; i++) {
        printf("%s/%s.secret\n", dir, keys_role_text((enum keys_role)i));
    }
    printf(
        "%s/allowed          the users who may connect, and their roles: a public key each\n\n"
        "Start every program with --keys %s, or set ABDADA_KEYS. On another host a program needs\n"
        "server.public and the secret of its role: copy them privately (scp -p).\n"
        "To add a user: abdada keygen %s --name NAME --role ROLE\n",
        dir, dir, dir);
    return 0;
}

static int make_user(const char *dir, const char *name, enum keys_role role)
{
    char why[KEYS_WHY_MAX];
    bool is_allowed = false;
    enum err err = keys_make_user(dir, name, role, &is_allowed, why);
    const bool is_there = err == ERR_EXIST;
    err = is_there ? keys_check_user(dir, name, role, why) : err;
    if (is_there && err == ERR_OK) {
        printf("%s has the keys of %s already; nothing to do\n", dir, name);
        return 0;
    }
    if (err != ERR_OK) {
        log_fail(program, "%s", why);
        return err == ERR_SYNTAX ? OPTIONS_WRONG : 1;
    }
    printf("%s/%s.secret    the user's alone\n", dir, name);
    if (is_allowed) {
        printf("%s/allowed/%s.public\n\n"
               "A ttserver with these keys lets %s in (role %s) after its next start or SIGHUP.\n"
               "The user needs %s.secret and server.public.\n",
               dir, name, name, keys_role_text(role), name);
    } else {
        printf("%s/%s.public\n\n"
               "Send %s.public to the operator, who puts it into the directory \"allowed\" of the\n"
               "servers' keys, and ask for server.public: it belongs into %s.\n",
               dir, name, name, dir);
    }
    return 0;
}

int cli_keygen(int argc, char *argv[])
{
    const char *dir = NULL, *name = NULL, *role_text = NULL;
    enum keys_role role = KEYS_FRONT;
    unsigned operands = 0;
    const struct options_row table[] = {
        {"name", "NAME", "make keys of one more user", &name, OPTION_TEXT},
        {"role", "ROLE", "role of that user: worker, front-end, monitor or administrator",
         &role_text, OPTION_TEXT},
        {0},
    };
    const struct options options = {
        .program = program,
        .usage = "DIR [--name NAME --role ROLE]",
        .summary =
            "Makes the keys of a cluster: of its server, and of a user of each role. Keys "
            "that are there\nare never overwritten; with all of them there is nothing to do.",
        .example = {"abdada keygen keys", "abdada keygen keys --name alice --role front-end"},
        .table = table,
        .operands_max = 1,
    };
    int status = config_parse(&options, argc, argv, &dir, &operands);
    if (status >= 0) {
        return status;
    }
    if (operands == 0 || dir[0] == '\0') {
        return options_wrong(program, "give DIR, the directory for the keys (see --help)");
    }
    if ((name == NULL) != (role_text == NULL)) {
        return options_wrong(program, "give --name and --role together");
    }
    if (role_text != NULL && keys_read_role(role_text, &role) != ERR_OK) {
        return options_wrong(program, "--role '%.50s': worker, front-end, monitor or administrator",
                             role_text);
    }
    return name == NULL ? make_ring(dir) : make_user(dir, name, role);
}
