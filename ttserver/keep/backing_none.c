/* A build without Redis: nothing can be opened. */
#include "common/log.h"
#include "ttserver/keep/backing.h"

#include <string.h>

enum err backing_open(struct backing *b, const struct backing_options *options)
{
    memset(b, 0, sizeof *b);
    log_fail(options->program, "--backing: this build has no Redis; run make deps, then make");
    return ERR_IO;
}

enum err backing_attach(struct backing *b, unsigned shard, struct tt_results *results,
                        struct ttcore_ledger *ledger, uint64_t place)
{
    (void)b, (void)shard, (void)results, (void)ledger, (void)place;
    return ERR_OK;
}

bool backing_start(struct backing *b)
{
    (void)b;
    return true;
}

void backing_end(struct backing *b)
{
    (void)b;
}
