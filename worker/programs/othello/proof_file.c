#include "worker/programs/othello/proof_file.h"

#include "common/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    GZIP = 15 + 16, /* the form of a member, for zlib */
    LEVEL = 9, /* of compression: members are small and few */
    MEMBER_TEXT = 1 << 15, /* a writer ends a member after so much text */
    MEMBER_EVERY_US = 1000000, /* a slow proof is in the file at least so often */
};

/* The beginning of each member that a writer makes. */
static const uint8_t magic[8] = {0x1f, 0x8b, Z_DEFLATED};

static uint32_t crc_of(uint32_t crc, const char *text, size_t length)
{
    return (uint32_t)crc32(crc, (const uint8_t *)text, (unsigned)length);
}

/* ---- reading ---- */

enum err proof_reader_of(struct proof_reader *r, const uint8_t *bytes, size_t size)
{
    *r = (struct proof_reader){.bytes = malloc(size > 0 ? size : 1), .size = size};
    if (r->bytes == NULL || inflateInit2(&r->zlib, GZIP) != Z_OK) {
        proof_reader_close(r);
        return ERR_NOMEM;
    }
    if (size > 0) {
        memcpy(r->bytes, bytes, size);
    }
    return ERR_OK;
}

/* To the end of the file, if it can be a proof. */
static enum err read_file(struct proof_reader *r, const struct disk_port *disk, int file,
                          uint64_t max)
{
    size_t room = 1 << 16;
    ssize_t n = 1;
    enum err err = proof_reader_of(r, NULL, 0);
    while (err == ERR_OK && n != 0 && r->size <= max &&
           memcmp(r->bytes, magic, r->size < 2 ? 0 : 2) == 0) {
        uint8_t *more = r->size == 0 || r->size == room ? realloc(r->bytes, room *= 2) : r->bytes;
        r->bytes = more != NULL ? more : r->bytes;
        n = more == NULL ? 0 : disk->read(disk->self, file, r->bytes + r->size, room - r->size);
        err = more == NULL ? ERR_NOMEM : n < 0 && errno != EINTR ? ERR_IO : ERR_OK;
        r->size += n > 0 ? (size_t)n : 0;
    }
    err = err == ERR_OK && r->size > max ? ERR_FULL : err;
    if (err != ERR_OK) {
        const int error = errno;
        proof_reader_close(r);
        errno = error;
    }
    return err;
}

enum err proof_reader_open(struct proof_reader *r, const char *path, uint64_t max)
{
    const struct disk_port *disk = disk_of_system();
    const int file = disk->open(disk->self, path, O_RDONLY | O_CLOEXEC, 0);
    const enum err err = file < 0 ? ERR_IO : read_file(r, disk, file, max);
    if (file >= 0) {
        const int error = errno;
        disk->close(disk->self, file);
        errno = error;
    }
    return err;
}

void proof_reader_close(struct proof_reader *r)
{
    free(r->bytes);
    (void)inflateEnd(&r->zlib);
    *r = (struct proof_reader){0};
}

static enum err bad_member(const struct proof_reader *r, const char *what, char *why)
{
    if (r->whole == 0 && (r->size < 2 || memcmp(r->bytes, magic, 2) != 0)) {
        snprintf(why, PROOF_WHY_MAX, "not a proof file");
    } else {
        snprintf(why, PROOF_WHY_MAX, "the member at byte %zu is %s", r->whole, what);
    }
    return ERR_PROTO;
}

/* Puts the text of the next member behind what is left of the text. ERR_ABSENT: there is none. */
static enum err read_member(struct proof_reader *r, char *why)
{
    const size_t begin = r->whole, in = r->size - begin, left = r->length - r->next;
    if (in == 0) {
        return ERR_ABSENT;
    }
    memmove(r->text, r->text + r->next, left);
    (void)inflateReset(&r->zlib);
    r->zlib.next_in = r->bytes + begin;
    r->zlib.avail_in = in < UINT_MAX ? (unsigned)in : UINT_MAX;
    r->zlib.next_out = (uint8_t *)r->text + left;
    r->zlib.avail_out = (unsigned)(sizeof r->text - left);
    const int end = inflate(&r->zlib, Z_FINISH);
    r->next = 0;
    r->length = left;
    if (end == Z_STREAM_END && r->zlib.total_out <= PROOF_MEMBER_MAX) {
        r->length += r->zlib.total_out;
        r->whole += r->zlib.total_in;
        return ERR_OK;
    }
    if (end == Z_MEM_ERROR) {
        return err_say(ERR_NOMEM, why, PROOF_WHY_MAX, "%s", err_text(ERR_NOMEM));
    } else if (end == Z_STREAM_END || r->zlib.avail_out == 0) {
        return bad_member(r, "too long: a proof's have at most 65536 bytes of text", why);
    }
    /* A killed writer's last member goes on behind the end. If another one begins within it, its
     * own end is damaged, and what follows was whole. */
    r->is_torn =
        end == Z_BUF_ERROR && memmem(r->bytes + begin + 1, in - 1, magic, sizeof magic) == NULL;
    return bad_member(r, r->is_torn ? "torn" : "damaged", why);
}

static enum err bad_line(const struct proof_reader *r, const char *what, char *why)
{
    return err_say(ERR_PROTO, why, PROOF_WHY_MAX, "line %u %s", r->number + 1, what);
}

/* The line that comes next, and with its end `length` bytes. */
static enum err peek_line(struct proof_reader *r, const char **line, size_t *length, char *why)
{
    const char *end;
    while ((end = memchr(r->text + r->next, '\n', r->length - r->next)) == NULL) {
        const enum err err = r->length - r->next < PROOF_LINE_MAX ? read_member(r, why) : ERR_FULL;
        if (err == ERR_ABSENT && r->length > r->next) {
            return bad_line(r, "does not end", why);
        } else if (err == ERR_FULL) {
            return bad_line(r, "is too long", why);
        } else if (err != ERR_OK) {
            return err;
        }
    }
    *line = r->text + r->next;
    *length = (size_t)(end - *line) + 1;
    if (*length > PROOF_LINE_MAX) {
        return bad_line(r, "is too long", why);
    }
    for (const char *c = *line; c < end; c++) {
        if (*c < ' ' || *c > '~') {
            return bad_line(r, "is not plain text", why);
        }
    }
    return ERR_OK;
}

enum err proof_reader_line(struct proof_reader *r, char *why)
{
    const char *line;
    size_t length;
    const enum err err = peek_line(r, &line, &length, why);
    if (err != ERR_OK) {
        return err;
    }
    memcpy(r->line, line, length - 1);
    r->line[length - 1] = '\0';
    r->crc = crc_of(r->crc, line, length);
    r->next += length;
    r->number++;
    r->moved = 0;
    return ERR_OK;
}

void proof_reader_rewind(struct proof_reader *r)
{
    r->whole = r->length = r->next = 0;
    r->number = r->crc = r->moved = 0;
    r->is_torn = false;
    r->line[0] = '\0';
}

static bool is_square(const char *text)
{
    return text[0] >= 'a' && text[0] <= 'h' && text[1] >= '1' && text[1] <= '8';
}

enum err proof_reader_move(struct proof_reader *r, unsigned *square, char *why)
{
    const char *move = &r->line[2 * r->moved];
    if (r->number == 0 || !is_square(r->line) || *move == '\0') {
        const char *line;
        size_t length;
        enum err err = peek_line(r, &line, &length, why);
        if (err == ERR_OK && (length < 3 || !is_square(line))) {
            err = ERR_ABSENT;
        }
        err = err ? err : proof_reader_line(r, why);
        if (err == ERR_OK && length > 2 * PROOF_LINE_MOVES + 1) {
            err = err_say(ERR_PROTO, why, PROOF_WHY_MAX, "line %u has more than %d moves",
                          r->number, PROOF_LINE_MOVES);
        }
        if (err != ERR_OK) {
            return err;
        }
        move = r->line;
    }
    if (!is_square(move)) {
        snprintf(why, PROOF_WHY_MAX, "line %u has something else between its moves", r->number);
        return ERR_PROTO;
    }
    *square = (unsigned)(move[0] - 'a' + 8 * (move[1] - '1'));
    r->moved++;
    return ERR_OK;
}

bool proof_reader_is_after_moves(const struct proof_reader *r)
{
    return !is_square(r->line) || r->line[2 * r->moved] == '\0';
}

enum err proof_reader_head(struct proof_reader *r, struct proof_head *out, char *why)
{
    struct proof_head head = {0, 0};
    char again[PROOF_LINE_MAX];
    unsigned version;
    const enum err err = proof_reader_line(r, why);
    if (err != ERR_OK) {
        if (err == ERR_ABSENT) {
            snprintf(why, PROOF_WHY_MAX, "it is empty");
        }
        return ERR_PROTO;
    }
    const int words = sscanf(r->line, "abdada-proof %9u leaf %9u positions %9u", &version,
                             &head.leaf, &head.positions);
    if (words >= 1 && version > PROOF_VERSION) {
        return err_say(ERR_VERSION, why, PROOF_WHY_MAX,
                       "it is of version %u, and this program reads %d", version, PROOF_VERSION);
    }
    snprintf(again, sizeof again, PROOF_HEAD_LINE, PROOF_VERSION, head.leaf, head.positions);
    if (strcmp(again, r->line) != 0) {
        return err_say(ERR_PROTO, why, PROOF_WHY_MAX, "line 1 is not that of a proof");
    }
    *out = head;
    return ERR_OK;
}

/* ---- writing ---- */

struct proof_writer {
    const struct disk_port *disk;
    char path[DISK_PATH_MAX];
    int file;
    bool is_regular; /* is a file that has a length, and a lock; no terminal or pipe */
    bool has_failed;
    bool (*await_room)(void *self, const char *why); /* NULL: nobody waits for a full disk */
    void *self; /* for that */
    z_stream zlib;
    uint32_t crc; /* of all text */
    unsigned moves; /* of the line under way */
    uint64_t begun_us; /* time of the last member */
    size_t length;
    char text[MEMBER_TEXT + PROOF_LINE_MAX];
    uint8_t member[2 * MEMBER_TEXT]; /* more than it takes in any case */
};

static enum err failed(struct proof_writer *w, char *why)
{
    w->has_failed = true;
    return err_say(ERR_IO, why, PROOF_WHY_MAX, "%s", strerror(errno));
}

enum err proof_writer_open(struct proof_writer **out, const struct disk_port *disk,
                           const char *path, char *why)
{
    struct proof_writer *w = calloc(1, sizeof *w);
    if (w == NULL ||
        deflateInit2(&w->zlib, LEVEL, Z_DEFLATED, GZIP, 9, Z_DEFAULT_STRATEGY) != Z_OK) {
        free(w);
        return err_say(ERR_NOMEM, why, PROOF_WHY_MAX, "%s", err_text(ERR_NOMEM));
    }
    w->disk = disk;
    w->file = disk->open(disk->self, path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    snprintf(w->path, sizeof w->path, "%s", path);
    struct stat is;
    enum err err =
        w->file < 0 || disk->fstat(disk->self, w->file, &is) != 0 ? failed(w, why) : ERR_OK;
    w->is_regular = err == ERR_OK && S_ISREG(is.st_mode);
    if (w->is_regular && disk->lock(disk->self, w->file) != 0) {
        const bool is_locked = errno == EWOULDBLOCK;
        err = failed(w, why);
        if (is_locked) {
            err = err_say(ERR_EXIST, why, PROOF_WHY_MAX, "another program writes it");
        }
    }
    if (err != ERR_OK) {
        (void)proof_writer_close(&w, NULL);
        return err;
    }
    *out = w;
    return ERR_OK;
}

void proof_writer_set_await(struct proof_writer *w, bool (*await_room)(void *self, const char *why),
                            void *self)
{
    w->await_room = await_room;
    w->self = self;
}

enum err proof_writer_read(struct proof_writer *w, struct proof_reader *out, uint64_t max)
{
    if (w->is_regular && w->disk->seek(w->disk->self, w->file, 0, SEEK_SET) < 0) {
        return ERR_IO;
    }
    return read_file(out, w->disk, w->file, max);
}

/* Makes a member of the text. Returns its bytes. */
static size_t make_member(struct proof_writer *w, const char *text, size_t length)
{
    (void)deflateReset(&w->zlib);
    w->zlib.next_in = (uint8_t *)text;
    w->zlib.avail_in = (unsigned)length;
    w->zlib.next_out = w->member;
    w->zlib.avail_out = sizeof w->member;
    CHECK(deflate(&w->zlib, Z_FINISH) == Z_STREAM_END);
    return w->zlib.total_out;
}

bool proof_writer_began(struct proof_writer *w, const char *line, const uint8_t *bytes, size_t size)
{
    char text[PROOF_LINE_MAX + 1];
    const int length = snprintf(text, sizeof text, "%s\n", line);
    return size < make_member(w, text, (size_t)length) && memcmp(w->member, bytes, size) == 0;
}

/* Waits on a full disk. Returns whether to try again. */
static bool has_room_again(const struct proof_writer *w)
{
    const int error = errno;
    const bool is_full = w->is_regular && (error == ENOSPC || error == EDQUOT);
    const bool is_again =
        is_full && w->await_room != NULL && w->await_room(w->self, strerror(error));
    errno = error;
    return is_again;
}

static enum err write_all(struct proof_writer *w, const uint8_t *bytes, size_t size, char *why)
{
    for (size_t done = 0; done < size;) {
        const ssize_t n = w->disk->write(w->disk->self, w->file, bytes + done, size - done);
        if (n < 0 && errno != EINTR && !has_room_again(w)) {
            return failed(w, why);
        }
        done += n > 0 ? (size_t)n : 0;
    }
    return ERR_OK;
}

enum err proof_writer_begin(struct proof_writer *w, const uint8_t *bytes, size_t keep, uint32_t crc,
                            char *why)
{
    const struct disk_port *disk = w->disk;
    if (w->is_regular && (disk->truncate(disk->self, w->file, (off_t)keep) != 0 ||
                          disk->seek(disk->self, w->file, 0, SEEK_SET) < 0)) {
        return failed(w, why);
    }
    w->crc = crc;
    w->begun_us = clock_us();
    return w->is_regular ? write_all(w, bytes, keep, why) : ERR_OK;
}

static void end_line(struct proof_writer *w)
{
    if (w->moves > 0) {
        w->text[w->length++] = '\n';
        w->crc = crc_of(w->crc, "\n", 1);
        w->moves = 0;
    }
}

uint32_t proof_writer_crc(struct proof_writer *w)
{
    end_line(w);
    return w->crc;
}

enum err proof_writer_flush(struct proof_writer *w, char *why)
{
    if (w->has_failed) {
        return failed(w, why);
    }
    end_line(w);
    w->begun_us = clock_us();
    if (w->length == 0) {
        return ERR_OK;
    }
    const size_t size = make_member(w, w->text, w->length);
    const enum err err = write_all(w, w->member, size, why);
    w->length = err == ERR_OK ? 0 : w->length;
    return err;
}

static enum err end_member_if_due(struct proof_writer *w, char *why)
{
    return w->has_failed || w->length >= MEMBER_TEXT || clock_us() - w->begun_us >= MEMBER_EVERY_US
               ? proof_writer_flush(w, why)
               : ERR_OK;
}

enum err proof_writer_line(struct proof_writer *w, const char *line, char *why)
{
    const enum err err = end_member_if_due(w, why);
    if (err == ERR_OK) {
        end_line(w);
        const int n = snprintf(&w->text[w->length], PROOF_LINE_MAX, "%s\n", line);
        w->crc = crc_of(w->crc, &w->text[w->length], (size_t)n);
        w->length += (size_t)n;
    }
    return err;
}

enum err proof_writer_move(struct proof_writer *w, unsigned square, char *why)
{
    const char move[2] = {(char)('a' + square % 8), (char)('1' + square / 8)};
    if (w->moves == 0 || w->moves == PROOF_LINE_MOVES) {
        end_line(w);
        const enum err err = end_member_if_due(w, why);
        if (err != ERR_OK) {
            return err;
        }
    }
    memcpy(&w->text[w->length], move, sizeof move);
    w->crc = crc_of(w->crc, move, sizeof move);
    w->length += sizeof move;
    w->moves++;
    return clock_us() - w->begun_us >= MEMBER_EVERY_US ? proof_writer_flush(w, why) : ERR_OK;
}

enum err proof_writer_close(struct proof_writer **writer, char *why)
{
    struct proof_writer *w = *writer;
    enum err err = ERR_OK;
    if (w == NULL) {
        return ERR_OK;
    }
    if (w->file >= 0) {
        err = w->has_failed ? ERR_IO : proof_writer_flush(w, why);
        if (err == ERR_OK && w->is_regular &&
            (w->disk->sync(w->disk->self, w->file) != 0 ||
             disk_sync_folder_of(w->disk, w->path) != 0)) {
            err = failed(w, why);
        }
        if (w->disk->close(w->disk->self, w->file) != 0 && err == ERR_OK) {
            err = failed(w, why);
        }
    }
    (void)deflateEnd(&w->zlib);
    free(w);
    *writer = NULL;
    return err;
}
