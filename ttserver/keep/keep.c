#include "ttserver/keep/keep.h"

#include "common/log.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

static bool draw_places(struct keep *s, const char *program)
{
    for (unsigned i = 0; i < s->shards; i++) {
        uint64_t *place = &s->shard[i].place;
        while (*place == 0) { /* which says: the boot id */
            if (getrandom(place, sizeof *place, 0) != sizeof *place) {
                log_fail(program, "no random numbers from the system");
                return false;
            }
        }
    }
    return true;
}

static enum err open_snapshots(struct keep *s, const char *program,
                               const struct keep_options *options)
{
    struct keep_files_options snapshots = {.program = program,
                                           .path = options->snapshot,
                                           .shards = s->shards,
                                           .every_s = options->snapshot_every_s};
    (void)signal(SIGXFSZ, SIG_IGN); /* a limit of size is an error like a full disk */
    enum err err = keep_files_open(&s->files, &snapshots);
    for (unsigned i = 0; err == ERR_OK && i < s->shards; i++) {
        s->shard[i].place = keep_files_place(&s->files, i);
    }
    return err;
}

static enum err open_backing(struct keep *s, const char *program,
                             const struct keep_options *options,
                             const struct options_host_port *listen)
{
    struct backing_options backing = {.program = program,
                                      .address = options->backing,
                                      .host = listen->host,
                                      .port = listen->port,
                                      .shards = s->shards,
                                      .depth_min = (uint8_t)options->backing_depth};
    enum err err = backing_open(&s->backing, &backing);
    for (unsigned i = 0; err == ERR_OK && i < s->shards; i++) {
        s->shard[i].place = backing_place(&s->backing, i);
    }
    return err;
}

bool keep_open(struct keep *s, const char *program, const struct keep_options *options,
               const struct options_host_port *listen, unsigned shards)
{
    memset(s, 0, sizeof *s);
    s->has_snapshots = options->snapshot != NULL;
    s->has_backing = !s->has_snapshots && options->backing != NULL;
    if (!s->has_snapshots && !s->has_backing) {
        return true;
    }
    s->shards = shards;
    s->shard = calloc(shards, sizeof *s->shard);
    enum err err = s->shard == NULL   ? ERR_NOMEM
                   : s->has_snapshots ? open_snapshots(s, program, options)
                                      : open_backing(s, program, options, listen);
    if (err == ERR_NOMEM) {
        log_fail(program, "%s", err_text(err));
    }
    return err == ERR_OK && draw_places(s, program);
}

void keep_core(struct keep *s, unsigned i, struct ttcore_options *core)
{
    if (s->shards > 0) {
        core->place = s->shard[i].place;
        core->ledger = &s->shard[i].ledger;
    }
}

bool keep_attach(struct keep *s, const char *program, unsigned i, struct ttcore *core)
{
    enum err err = ERR_OK;
    if (s->has_snapshots) {
        struct keep_shard *shard = &s->shard[i];
        keep_files_fill(&s->files, i, ttcore_results(core), &shard->ledger, shard->place);
    } else if (s->has_backing) {
        struct keep_shard *shard = &s->shard[i];
        err = backing_attach(&s->backing, i, ttcore_results(core), &shard->ledger, shard->place);
    }
    if (err == ERR_NOMEM) {
        log_fail(program, "%s", err_text(err));
    }
    return err == ERR_OK;
}

bool keep_start(struct keep *s)
{
    return s->has_snapshots ? keep_files_start(&s->files)
           : s->has_backing ? backing_start(&s->backing)
                            : true;
}

void keep_write_now(struct keep *s)
{
    if (s->has_snapshots) {
        keep_files_write_now(&s->files);
    }
}

void keep_end(struct keep *s)
{
    keep_files_end(&s->files);
    backing_end(&s->backing);
    free(s->shard);
    memset(s, 0, sizeof *s);
}
