#include "common/log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char *path; /* NULL: standard error is what it was */
static atomic_uint missing; /* lines that were left out since the last one that was not */

bool log_reopen(void)
{
    int saved = errno; /* of the thread that a signal interrupted */
    int fd = path == NULL ? -1 : open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    bool ok = path == NULL || (fd >= 0 && dup2(fd, STDERR_FILENO) >= 0);
    if (fd >= 0) {
        close(fd);
    }
    errno = ok ? saved : errno;
    return ok;
}

static void write_line(const char *stamp, const char *program, const char *format, va_list list)
{
    char line[LOG_LINE_MAX];
    int used = snprintf(line, sizeof line, "%s%s%s: ", stamp, *stamp ? " " : "", program);
    if (used < 0 || used >= LOG_LINE_MAX - 1) {
        return;
    }
    vsnprintf(line + used, sizeof line - (size_t)used - 1, format, list);
    size_t length = strlen(line);
    line[length++] = '\n';
    for (size_t done = 0; done < length;) {
        ssize_t n = write(STDERR_FILENO, line + done, length - done);
        if (n < 0 && errno != EINTR) {
            return;
        }
        done += n > 0 ? (size_t)n : 0;
    }
}

/* Whether a pipe or terminal takes a line now; one that is read by nobody would hold up a thread
 * that serves or searches. */
static bool is_writable(void)
{
    struct pollfd fd = {.fd = STDERR_FILENO, .events = POLLOUT};
    return poll(&fd, 1, 0) != 0; /* an error is write's */
}

static void __attribute__((format(printf, 3, 4)))
write_note(const char *stamp, const char *program, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    write_line(stamp, program, format, list);
    va_end(list);
}

void log_line(const char *program, const char *format, ...)
{
    char stamp[64];
    struct timespec now;
    struct tm utc;
    va_list list;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    size_t used = strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(stamp + used, sizeof stamp - used, ".%03dZ", (int)(now.tv_nsec / 1000000));
    if (!is_writable()) {
        atomic_fetch_add(&missing, 1);
        return;
    }
    unsigned lost = atomic_exchange(&missing, 0);
    if (lost > 0) {
        write_note(stamp, program, "%u lines are missing here: standard error was not read", lost);
    }
    va_start(list, format);
    write_line(stamp, program, format, list);
    va_end(list);
}

void log_fail(const char *program, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    write_line("", program, format, list);
    va_end(list);
}

bool log_to_file(const char *program, const char *name)
{
    path = name;
    bool ok = log_reopen();
    if (!ok) {
        log_fail(program, "--log %s: %s", name, strerror(errno));
    }
    return ok;
}

bool log_flush(const char *program, FILE *file, const char *name)
{
    bool has_failed = ferror(file);
    errno = 0;
    if (fflush(file) == 0 && !has_failed) {
        return true;
    }
    if (errno == 0) { /* the reason was that of an earlier write: one more tells it */
        clearerr(file);
        (void)(fputc('\n', file) != EOF && fflush(file) == 0);
    }
    log_fail(program, "%s: %s", name, errno != 0 ? strerror(errno) : "not all of it was written");
    return false;
}

bool log_close(const char *program, FILE *file, const char *name)
{
    bool is_written = log_flush(program, file, name);
    bool is_closed = fclose(file) == 0 || errno == EBADF; /* EBADF: there was none from the start */
    if (is_written && !is_closed) {
        log_fail(program, "%s: %s", name, strerror(errno));
    }
    return is_written && is_closed;
}

int log_end(const char *program, int status)
{
    return log_close(program, stdout, "standard output") || status != 0 ? status : 1;
}
