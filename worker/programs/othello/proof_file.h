/* proof_file: the file of a proof (docs/proof.md): lines of text in members of gzip, each with a
 * checksum.
 *
 *     abdada-proof 1 leaf 16 positions 1
 *     position ---... X                   for each position
 *     score +18
 *     d3c5a1...                           moves, PROOF_LINE_MOVES or fewer a line
 *     end claims 812 leaves 431 crc32 0a1b2c3d
 *
 * The CRC-32 is that of all text before its line. A file to which a writer was still adding when it
 * was killed ends with whole members and perhaps a torn one.
 *
 * Threads: any, one at a time for a handle. Memory: a reader has the file and the text of a member,
 * a writer a member; freed by close. Blocking: on the disk. Lines for people are in
 * why[PROOF_WHY_MAX]. */
#ifndef WORKER_PROGRAMS_OTHELLO_PROOF_FILE_H
#define WORKER_PROGRAMS_OTHELLO_PROOF_FILE_H

#include "common/disk.h"
#include "common/err.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <zlib.h>

enum {
    PROOF_VERSION = 1,
    PROOF_LINE_MOVES = 40,
    PROOF_LINE_MAX = 128, /* bytes of a line, with its end */
    PROOF_MEMBER_MAX = 1 << 16, /* bytes of a member's text */
    PROOF_POSITIONS_MAX = 1000000,
    PROOF_WHY_MAX = 160,
};

/* The lines, each written in one way only: what is read is written again and compared. */
#define PROOF_HEAD_LINE "abdada-proof %d leaf %u positions %u"
#define PROOF_POSITION_LINE "position %.66s" /* a board and its side */
#define PROOF_SCORE_LINE "score %+d"
#define PROOF_END_LINE "end claims %" PRIu64 " leaves %" PRIu64 " crc32 %08" PRIx32

/* Bytes of what is read, unless the user says otherwise. */
#define PROOF_MEMORY (UINT64_C(4) << 30)
#define PROOF_NO_ROOM "it needs more memory than --memory or this machine (container) allows"

/* ---- reading ---- */

struct proof_reader {
    uint8_t *bytes; /* of the file */
    size_t size;
    size_t whole; /* bytes of the members that were read */
    bool is_torn; /* set when the member at `whole` goes on behind the end of the file */
    z_stream zlib;
    size_t length, next; /* what was read of the text is before `next` */
    char line[PROOF_LINE_MAX]; /* the last one, without its end */
    unsigned number; /* of that line, from 1 */
    uint32_t crc; /* of the text up to that line's end */
    unsigned moved; /* moves of the line that were read */
    char text[PROOF_LINE_MAX + PROOF_MEMBER_MAX]; /* a member's, behind what is left of a line */
};

/* ERR_IO: the file cannot be read (errno), ERR_NOMEM, ERR_FULL: it has more than `max` bytes. */
enum err proof_reader_open(struct proof_reader *reader, const char *path, uint64_t max);
/* The same with bytes, which are copied. */
enum err proof_reader_of(struct proof_reader *reader, const uint8_t *bytes, size_t size);
void proof_reader_close(struct proof_reader *reader);
/* Reading begins anew. */
void proof_reader_rewind(struct proof_reader *reader);
/* The next line. ERR_ABSENT: there is none; ERR_PROTO: a member is damaged, too long, or torn
 * (is_torn), or this is no text of lines. */
enum err proof_reader_line(struct proof_reader *reader, char *why);
/* The next move, from this line or the next one. ERR_ABSENT: no moves come next, and the next line,
 * if there is one, is yet to be read; ERR_PROTO as above. */
enum err proof_reader_move(struct proof_reader *reader, unsigned *square, char *why);

/* Whether every move of the line under way was read; true of any other line. */
bool proof_reader_is_after_moves(const struct proof_reader *reader);

struct proof_head {
    unsigned leaf, positions;
};
/* Reads the first line. ERR_PROTO, ERR_VERSION: of a newer format. */
enum err proof_reader_head(struct proof_reader *reader, struct proof_head *out, char *why);

/* ---- writing ---- */

struct proof_writer;

/* Opens the file at `path`, which is made if it is not there, and keeps other writers out of it
 * until close. Borrows the disk. Nothing of it changes yet. ERR_EXIST: another program writes it;
 * ERR_IO, ERR_NOMEM.
 */
enum err proof_writer_open(struct proof_writer **out, const struct disk_port *disk,
                           const char *path, char *why);
/* While the disk is full, the writer calls `await_room`, which waits a while and returns whether to
 * try again. Without it every later call fails. */
void proof_writer_set_await(struct proof_writer *writer,
                            bool (*await_room)(void *self, const char *why), void *self);
/* A reader of what is in the file. Errors as of proof_reader_open. */
enum err proof_writer_read(struct proof_writer *writer, struct proof_reader *out, uint64_t max);
/* Whether these bytes are the beginning of what a writer that was killed writes first: the
 * member of that line alone. */
bool proof_writer_began(struct proof_writer *writer, const char *line, const uint8_t *bytes,
                        size_t size);
/* The file's first `keep` bytes stay, which are `bytes` and have a text of that checksum; what
 * follows is cut off, and written anew. They are written again, too: an earlier writer may have
 * failed to sync them, and no sync after that keeps what was not written since. ERR_IO. */
enum err proof_writer_begin(struct proof_writer *writer, const uint8_t *bytes, size_t keep,
                            uint32_t crc, char *why);
/* ERR_IO: the member was not written; every later call fails, too. */
enum err proof_writer_line(struct proof_writer *writer, const char *line, char *why);
enum err proof_writer_move(struct proof_writer *writer, unsigned square, char *why);
/* Ends the member: what was written is in the file. */
enum err proof_writer_flush(struct proof_writer *writer, char *why);
/* The checksum of all lines so far; ends a line of moves. */
uint32_t proof_writer_crc(struct proof_writer *writer);
/* Flushes, to the disk, with its name; frees and nulls in any case. Accepts a null. */
enum err proof_writer_close(struct proof_writer **writer, char *why);

#endif
