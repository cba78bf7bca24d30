#include "worker/programs/othello/scored.h"

#include "common/disk.h"
#include "worker/games/games.h"
#include "worker/programs/suite.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum { TORN_MAX = 4096, LINE_MAX_BYTES = GAME_TEXT_MAX + GAME_MOVES_MAX * 8 };

struct scored_board {
    char text[GAME_TEXT_MAX];
    bool is_taken;
};

struct scored {
    int file;
    struct scored_board *board; /* those that were there, sorted */
    unsigned boards;
};

static int by_text(const void *a, const void *b)
{
    return strcmp(((const struct scored_board *)a)->text, ((const struct scored_board *)b)->text);
}

static enum err fail(enum err err, char why[SCORED_WHY_MAX])
{
    return err_say(err, why, SCORED_WHY_MAX, "%s", err == ERR_IO ? strerror(errno) : err_text(err));
}

static enum err keep_boards(struct scored *s, const struct suite *suite, char why[SCORED_WHY_MAX])
{
    const struct game *game = games_by_name("othello");
    struct job job = {.id = 0};
    struct game_move list[GAME_MOVES_MAX];
    char wrong[128];
    enum err err = ERR_OK;
    s->board = calloc(suite->count + 1, sizeof *s->board);
    if (s->board == NULL) {
        return fail(ERR_NOMEM, why);
    }
    for (unsigned i = 0; i < suite->count && err == ERR_OK; i++) {
        const struct suite_case *c = &suite->at[i];
        if (c->is_wrong ||
            job_set_position(&job, game, c->position, wrong, sizeof wrong) != ERR_OK) {
            snprintf(why, SCORED_WHY_MAX, "line %u is no board: it is another file", c->line);
            err = ERR_SYNTAX;
        } else if (!c->has_score && game->generate(job.position, list) > 0) {
            snprintf(why, SCORED_WHY_MAX, "line %u has no score: it is another file", c->line);
            err = ERR_SYNTAX;
        } else {
            memcpy(s->board[s->boards++].text, job.text, sizeof job.text);
        }
    }
    job_free(&job);
    qsort(s->board, s->boards, sizeof *s->board, by_text);
    return err;
}

/* Reads the boards that are there. What follows the last end of a line is cut off, if it is the
 * beginning of a board's line, and last: before that the file must be what it should be. */
static enum err resume(struct scored *s, const char *path, char why[SCORED_WHY_MAX])
{
    struct suite suite = {.at = NULL};
    char tail[TORN_MAX];
    enum err err = suite_read(&suite, path, SUITE_OBF, 0, why, SCORED_WHY_MAX);
    const off_t size = lseek(s->file, 0, SEEK_END);
    const off_t begin = size > TORN_MAX ? size - TORN_MAX : 0;
    const ssize_t length = size < 0 ? -1 : pread(s->file, tail, (size_t)(size - begin), begin);
    ssize_t torn = length;
    if (err == ERR_OK && (length < 0 || length != size - begin)) {
        err = fail(ERR_IO, why);
    }
    while (torn > 0 && tail[torn - 1] != '\n') {
        torn--;
    }
    if (err == ERR_OK) {
        suite.count -= torn < length && suite.count > 0; /* its last case is of the torn line */
        err = keep_boards(s, &suite, why);
    }
    for (ssize_t i = torn; err == ERR_OK && i < length && i < torn + 64; i++) {
        if (strchr("XO-", tail[i]) == NULL || tail[i] == '\0') {
            snprintf(why, SCORED_WHY_MAX, "its last line is no board: it is another file");
            err = ERR_SYNTAX;
        }
    }
    if (err == ERR_OK && torn < length &&
        ((torn == 0 && begin > 0) || ftruncate(s->file, begin + torn) != 0 ||
         lseek(s->file, 0, SEEK_END) < 0)) {
        err = fail(ERR_IO, why);
    }
    suite_close(&suite);
    return err;
}

enum err scored_open(struct scored **out, const char *path, bool resumes, char why[SCORED_WHY_MAX])
{
    struct scored *s = calloc(1, sizeof *s);
    if (s == NULL) {
        return fail(ERR_NOMEM, why);
    }
    s->file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    enum err err = s->file < 0 || disk_sync_folder_of(disk_of_system(), path) != 0
                       ? fail(ERR_IO, why)
                       : ERR_OK;
    if (err == ERR_OK && flock(s->file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        err = err_say(ERR_EXIST, why, SCORED_WHY_MAX, "another program writes it");
    }
    if (err == ERR_OK && resumes) {
        err = resume(s, path, why);
    } else if (err == ERR_OK && ftruncate(s->file, 0) != 0 && errno != EINVAL) {
        err = fail(ERR_IO, why); /* EINVAL: a pipe, say, has no length */
    }
    if (err != ERR_OK) {
        char unused[SCORED_WHY_MAX];
        (void)scored_close(&s, unused);
        return err;
    }
    *out = s;
    return ERR_OK;
}

enum err scored_close(struct scored **scored, char why[SCORED_WHY_MAX])
{
    struct scored *s = *scored;
    enum err err = ERR_OK;
    if (s != NULL && s->file >= 0) {
        if (fsync(s->file) != 0 && errno != EINVAL && errno != EROFS) { /* a pipe cannot */
            err = fail(ERR_IO, why);
        }
        if (close(s->file) != 0 && err == ERR_OK) {
            err = fail(ERR_IO, why);
        }
    }
    if (s != NULL) {
        free(s->board);
        free(s);
    }
    *scored = NULL;
    return err;
}

bool scored_take(struct scored *s, const char *text)
{
    unsigned low = 0, high = s->boards;
    while (low < high) {
        const unsigned middle = low + (high - low) / 2;
        if (strcmp(s->board[middle].text, text) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    for (; low < s->boards && strcmp(s->board[low].text, text) == 0; low++) {
        if (!s->board[low].is_taken) {
            s->board[low].is_taken = true;
            return true;
        }
    }
    return false;
}

enum err scored_put(struct scored *s, const struct job *job, const uint16_t *move, unsigned moves,
                    int score, char why[SCORED_WHY_MAX])
{
    char line[LINE_MAX_BYTES + 32];
    size_t used = (size_t)snprintf(line, sizeof line, "%s;", job->text);
    for (unsigned i = 0; i < moves && i < GAME_MOVES_MAX; i++) {
        char text[GAME_MOVE_TEXT_MAX];
        job->game->format_move(job->position, move[i], text);
        for (char *p = text; *p != '\0'; p++) {
            *p = (char)toupper((unsigned char)*p);
        }
        used += (size_t)snprintf(line + used, sizeof line - used, " %s:%+d;",
                                 strcmp(text, "PASS") == 0 ? "PA" : text, score);
    }
    if (moves == 0) {
        used += (size_t)snprintf(line + used, sizeof line - used, " %+d;", score);
    }
    line[used++] = '\n';
    for (size_t written = 0; written < used;) {
        const ssize_t n = write(s->file, line + written, used - written);
        if (n < 0 && errno != EINTR) {
            return fail(ERR_IO, why);
        }
        written += n > 0 ? (size_t)n : 0;
    }
    return ERR_OK;
}
