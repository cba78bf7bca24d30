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

void log_begin(void)
{
    int fd;
    while ((fd = open("/dev/null", O_RDWR)) >= 0 && fd <= STDERR_FILENO) {
    }
    if (fd > STDERR_FILENO) {
        close(fd);
    }
}

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

static void write_line(const char *stamp, const char *program, const char *text)
{
    char line[LOG_LINE_MAX];
    int used = snprintf(line, sizeof line, "%s%s%s: %s", stamp, *stamp ? " " : "", program, text);
    size_t length = used < LOG_LINE_MAX - 1 ? (size_t)used : LOG_LINE_MAX - 1;
    line[length++] = '\n';
    for (size_t done = 0; done < length;) {
        ssize_t n = write(STDERR_FILENO, line + done, length - done);
        if (n < 0 && errno != EINTR) {
            return;
        }
        done += n > 0 ? (size_t)n : 0;
    }
}

void log_line(const char *program, const char *format, ...)
{
    char stamp[64], text[LOG_LINE_MAX];
    struct timespec now;
    struct tm utc;
    va_list list;
    /* A pipe or terminal that nobody reads would hold up a thread that serves or searches. */
    struct pollfd fd = {.fd = STDERR_FILENO, .events = POLLOUT};
    if (poll(&fd, 1, 0) == 0) { /* an error is write's */
        atomic_fetch_add(&missing, 1);
        return;
    }
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    size_t used = strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(stamp + used, sizeof stamp - used, ".%03dZ", (int)(now.tv_nsec / 1000000));
    unsigned lost = atomic_exchange(&missing, 0);
    if (lost > 0) {
        snprintf(text, sizeof text, "%u lines are missing here: standard error was not read", lost);
        write_line(stamp, program, text);
    }
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    write_line(stamp, program, text);
}

int log_fail(const char *program, const char *format, ...)
{
    char text[LOG_LINE_MAX];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    write_line("", program, text);
    return 1;
}

bool log_to_file(const char *program, const char *name)
{
    path = name;
    if (log_reopen()) {
        return true;
    }
    log_fail(program, "--log %s: %s", name, strerror(errno));
    return false;
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
