#include "worker/programs/othello/proof_file.h"

#include "common/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

enum {
    LEVEL = 19, /* of compression: frames are small and few */
    FRAME_EVERY_US = 1000000, /* a slow proof is in the file at least so often */
};

uint32_t proof_crc32(uint32_t crc, const char *text, size_t length)
{
    crc = ~crc;
    for (size_t i = 0; i < length; i++) {
        crc ^= (unsigned char)text[i];
        for (unsigned bit = 0; bit < 8; bit++) {
            crc = crc >> 1 ^ (UINT32_C(0xedb88320) & (0 - (crc & 1)));
        }
    }
    return ~crc;
}

/* ---- lines ---- */

void proof_head_line(const struct proof_head *head, char line[PROOF_LINE_MAX])
{
    snprintf(line, PROOF_LINE_MAX, "abdada-proof %d leaf %u positions %u", PROOF_VERSION,
             head->leaf, head->positions);
}

void proof_position_line(const char *position, char line[PROOF_LINE_MAX])
{
    snprintf(line, PROOF_LINE_MAX, "position %s", position);
}

void proof_score_line(int score, char line[PROOF_LINE_MAX])
{
    snprintf(line, PROOF_LINE_MAX, "score %+d", score);
}

void proof_end_line(uint64_t claims, uint64_t leaves, uint32_t crc, char line[PROOF_LINE_MAX])
{
    snprintf(line, PROOF_LINE_MAX, "end claims %" PRIu64 " leaves %" PRIu64 " crc32 %08" PRIx32,
             claims, leaves, crc);
}

/* ---- reading ---- */

/* With the bytes to come. */
static enum err begin(struct proof_reader *r)
{
    *r = (struct proof_reader){.text = malloc(PROOF_ROOM), .zstd = ZSTD_createDCtx()};
    return r->text != NULL && r->zstd != NULL ? ERR_OK : ERR_NOMEM;
}

enum err proof_reader_of(struct proof_reader *r, const uint8_t *bytes, size_t size)
{
    enum err err = begin(r);
    r->bytes = malloc(size > 0 ? size : 1);
    if (err != ERR_OK || r->bytes == NULL) {
        proof_reader_close(r);
        return ERR_NOMEM;
    }
    if (size > 0) {
        memcpy(r->bytes, bytes, size);
    }
    r->size = size;
    return ERR_OK;
}

/* To the end of the file. */
static enum err read_all(struct proof_reader *r, const struct disk_port *disk, int file,
                         uint64_t max)
{
    size_t room = 1 << 16;
    ssize_t n = 1;
    r->bytes = malloc(room);
    while (r->bytes != NULL && n != 0 && r->size <= max) {
        n = disk->read(disk->self, file, r->bytes + r->size, room - r->size);
        if (n < 0 && errno != EINTR) {
            return ERR_IO;
        }
        r->size += n > 0 ? (size_t)n : 0;
        if (r->size == room) {
            uint8_t *more = realloc(r->bytes, room *= 2);
            if (more == NULL) {
                return ERR_NOMEM;
            }
            r->bytes = more;
        }
    }
    return r->bytes == NULL ? ERR_NOMEM : r->size > max ? ERR_FULL : ERR_OK;
}

static enum err read_file(struct proof_reader *r, const struct disk_port *disk, int file,
                          uint64_t max)
{
    enum err err = begin(r);
    err = err == ERR_OK ? read_all(r, disk, file, max) : err;
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
    free(r->text);
    ZSTD_freeDCtx(r->zstd);
    *r = (struct proof_reader){0};
}

/* More text, behind what is left of the piece, which has room. ERR_ABSENT: there is no more;
 * ERR_PROTO: the frame is torn, or damaged, or none. */
static enum err read_more(struct proof_reader *r)
{
    const size_t left = r->length - r->next;
    memmove(r->text, r->text + r->next, left);
    r->length = left;
    r->next = 0;
    ZSTD_outBuffer out = {r->text, PROOF_ROOM, left};
    ZSTD_inBuffer in = {r->bytes, r->size, r->at};
    bool goes_on = r->whole < r->size;
    while (goes_on && out.pos == left) {
        const size_t before = in.pos;
        const size_t wanted = ZSTD_decompressStream(r->zstd, &out, &in);
        if (ZSTD_isError(wanted)) {
            return ERR_PROTO;
        }
        r->whole = wanted == 0 ? in.pos : r->whole;
        goes_on = in.pos < in.size && (in.pos > before || out.pos > left);
    }
    r->at = in.pos;
    r->length = out.pos;
    r->is_torn = out.pos == left && r->whole < r->size;
    return out.pos > left ? ERR_OK : r->is_torn ? ERR_PROTO : ERR_ABSENT;
}

static enum err bad_frame(const struct proof_reader *r, const char *what, char *why)
{
    if (r->whole == 0) {
        snprintf(why, PROOF_WHY_MAX, "it is no file of frames of Zstandard");
    } else {
        snprintf(why, PROOF_WHY_MAX, "the frame at byte %zu is %s", r->whole, what);
    }
    return ERR_PROTO;
}

static enum err bad_line(const struct proof_reader *r, const char *what, char *why)
{
    snprintf(why, PROOF_WHY_MAX, "line %u %s", r->number + 1, what);
    return ERR_PROTO;
}

/* The line that comes next, and with its end `length` bytes. */
static enum err peek_line(struct proof_reader *r, const char **line, size_t *length, char *why)
{
    const char *end = NULL;
    while (end == NULL) {
        const size_t left = r->length - r->next;
        end = left > 0 ? memchr(r->text + r->next, '\n', left) : NULL;
        const enum err err = end == NULL && left < PROOF_LINE_MAX ? read_more(r) : ERR_OK;
        if (err == ERR_PROTO) {
            return bad_frame(r, r->is_torn ? "torn" : "damaged", why);
        }
        if (err == ERR_ABSENT && left > 0) {
            return bad_line(r, "does not end", why);
        } else if (end == NULL && left >= PROOF_LINE_MAX) {
            return bad_line(r, "is too long", why);
        }
        if (err != ERR_OK) {
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
    r->crc = proof_crc32(r->crc, line, length);
    r->next += length;
    r->number++;
    r->moved = 0;
    return ERR_OK;
}

void proof_reader_rewind(struct proof_reader *r)
{
    r->at = r->whole = r->length = r->next = 0;
    ZSTD_DCtx_reset(r->zstd, ZSTD_reset_session_only);
    r->number = r->crc = r->moved = 0;
    r->is_torn = false;
    r->line[0] = '\0';
}

/* Whether another frame begins within the last one, which does not end: then its length is wrong,
 * and what follows was whole. */
static bool has_frame_within(const struct proof_reader *r)
{
    static const uint8_t magic[4] = {0x28, 0xb5, 0x2f, 0xfd};
    for (size_t i = r->whole + 1; i + sizeof magic <= r->size; i++) {
        if (memcmp(r->bytes + i, magic, sizeof magic) == 0) {
            return true;
        }
    }
    return false;
}

enum err proof_reader_cut(struct proof_reader *r, uint32_t *crc, char *why)
{
    const size_t size = r->size;
    enum err err;
    proof_reader_rewind(r);
    while ((err = read_more(r)) == ERR_OK) {
        r->next = r->length;
    }
    if (err == ERR_PROTO && (!r->is_torn || has_frame_within(r))) {
        return bad_frame(r, "damaged", why);
    }
    r->size = r->whole;
    proof_reader_rewind(r);
    while ((err = proof_reader_line(r, why)) == ERR_OK) {
    }
    if (err != ERR_ABSENT) {
        r->size = size;
        return err;
    }
    *crc = r->crc;
    proof_reader_rewind(r);
    return ERR_OK;
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
        if (err == ERR_OK) {
            err = proof_reader_line(r, why);
        }
        if (err == ERR_OK && length > 2 * PROOF_LINE_MOVES + 1) {
            snprintf(why, PROOF_WHY_MAX, "line %u has more than %d moves", r->number,
                     PROOF_LINE_MOVES);
            err = ERR_PROTO;
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
    struct proof_head head;
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
        snprintf(why, PROOF_WHY_MAX, "it is of version %u, and this program reads %d", version,
                 PROOF_VERSION);
        return ERR_VERSION;
    }
    if (words == 3) {
        proof_head_line(&head, again);
    }
    if (words != 3 || strcmp(again, r->line) != 0) {
        snprintf(why, PROOF_WHY_MAX, "line 1 is not that of a proof");
        return ERR_PROTO;
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
    ZSTD_CCtx *zstd;
    uint32_t crc; /* of all text */
    unsigned moves; /* of the line under way */
    uint64_t begun_us; /* time of the last frame */
    size_t length;
    char text[PROOF_FRAME_TEXT + PROOF_LINE_MAX];
    uint8_t frame[ZSTD_COMPRESSBOUND(PROOF_FRAME_TEXT + PROOF_LINE_MAX)];
};

static enum err failed(struct proof_writer *w, char *why)
{
    w->has_failed = true;
    snprintf(why, PROOF_WHY_MAX, "%s", strerror(errno));
    return ERR_IO;
}

enum err proof_writer_open(struct proof_writer **out, const struct disk_port *disk,
                           const char *path, char *why)
{
    struct proof_writer *w = calloc(1, sizeof *w);
    ZSTD_CCtx *zstd = ZSTD_createCCtx();
    if (w == NULL || zstd == NULL ||
        ZSTD_isError(ZSTD_CCtx_setParameter(zstd, ZSTD_c_compressionLevel, LEVEL)) ||
        ZSTD_isError(ZSTD_CCtx_setParameter(zstd, ZSTD_c_checksumFlag, 1))) {
        ZSTD_freeCCtx(zstd);
        free(w);
        snprintf(why, PROOF_WHY_MAX, "%s", err_text(ERR_NOMEM));
        return ERR_NOMEM;
    }
    w->zstd = zstd;
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
            snprintf(why, PROOF_WHY_MAX, "another program writes it");
            err = ERR_EXIST;
        }
    }
    if (err != ERR_OK) {
        (void)proof_writer_close(&w, NULL);
        return err;
    }
    *out = w;
    return ERR_OK;
}

enum err proof_writer_read(struct proof_writer *w, struct proof_reader *out, uint64_t max)
{
    if (w->is_regular && w->disk->seek(w->disk->self, w->file, 0, SEEK_SET) < 0) {
        return ERR_IO;
    }
    return read_file(out, w->disk, w->file, max);
}

bool proof_writer_began(struct proof_writer *w, const char *line, const uint8_t *bytes, size_t size)
{
    char text[PROOF_LINE_MAX + 1];
    const int length = snprintf(text, sizeof text, "%s\n", line);
    const size_t frame = ZSTD_compress2(w->zstd, w->frame, sizeof w->frame, text, (size_t)length);
    return !ZSTD_isError(frame) && size < frame && memcmp(w->frame, bytes, size) == 0;
}

static enum err write_all(struct proof_writer *w, const uint8_t *bytes, size_t size, char *why)
{
    for (size_t done = 0; done < size;) {
        const ssize_t n = w->disk->write(w->disk->self, w->file, bytes + done, size - done);
        if (n < 0 && errno != EINTR) {
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
        w->crc = proof_crc32(w->crc, "\n", 1);
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
    const size_t size = ZSTD_compress2(w->zstd, w->frame, sizeof w->frame, w->text, w->length);
    CHECK(!ZSTD_isError(size));
    const enum err err = write_all(w, w->frame, size, why);
    w->length = err == ERR_OK ? 0 : w->length;
    return err;
}

static enum err end_frame_if_due(struct proof_writer *w, char *why)
{
    return w->has_failed || w->length >= PROOF_FRAME_TEXT ||
                   clock_us() - w->begun_us >= FRAME_EVERY_US
               ? proof_writer_flush(w, why)
               : ERR_OK;
}

enum err proof_writer_line(struct proof_writer *w, const char *line, char *why)
{
    const enum err err = end_frame_if_due(w, why);
    if (err == ERR_OK) {
        end_line(w);
        const int n = snprintf(&w->text[w->length], PROOF_LINE_MAX, "%s\n", line);
        w->crc = proof_crc32(w->crc, &w->text[w->length], (size_t)n);
        w->length += (size_t)n;
    }
    return err;
}

enum err proof_writer_move(struct proof_writer *w, unsigned square, char *why)
{
    const char move[2] = {(char)('a' + square % 8), (char)('1' + square / 8)};
    if (w->moves == 0 || w->moves == PROOF_LINE_MOVES) {
        end_line(w);
        const enum err err = end_frame_if_due(w, why);
        if (err != ERR_OK) {
            return err;
        }
    }
    memcpy(&w->text[w->length], move, sizeof move);
    w->crc = proof_crc32(w->crc, move, sizeof move);
    w->length += sizeof move;
    w->moves++;
    return clock_us() - w->begun_us >= FRAME_EVERY_US ? proof_writer_flush(w, why) : ERR_OK;
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
    ZSTD_freeCCtx(w->zstd);
    free(w);
    *writer = NULL;
    return err;
}
