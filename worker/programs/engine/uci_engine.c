#include "worker/programs/engine/uci_engine.h"

#include "common/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    UNSENT_MAX = 8 << 20, /* an engine that lets more wait does not read */
    PATIENCE_MS = 100, /* a signal that comes right before a wait does not end it */
    QUIT_MS = 500,
    QUIT_STEP_MS = 5,
    FILLS_MAX = 32, /* reads in a row, more than a pipe holds, and then the clock is looked at */
    SETTLE_MS = 50, /* of silence after a late readyok: then no more of them follow */
    REVIVE_MS = 100, /* after the second death in a row; twice as long after each more ... */
    REVIVE_DOUBLED_MAX = 3,
    NOT_RUN = 126, /* exit status, a shell's, too */
    NOT_FOUND = 127,
};

enum err uci_engine_open(struct uci_engine *e, const char *command)
{
    memset(e, 0, sizeof *e);
    e->in = e->out = -1;
    const size_t size = strlen(command) + UCI_WORDS_MAX + 1;
    e->room = malloc(size);
    e->is = calloc(1, sizeof *e->is);
    e->becomes = calloc(1, sizeof *e->becomes);
    const bool ok = line_reader_open(&e->printed, UCI_ENGINE_LINE_MAX) && e->room != NULL &&
                    e->is != NULL && e->becomes != NULL;
    enum err err = !ok                                                 ? ERR_NOMEM
                   : !uci_cut_command(command, e->room, size, e->word) ? ERR_SYNTAX
                                                                       : ERR_OK;
    if (err != ERR_OK) {
        uci_engine_close(e);
    }
    return err;
}

/* ---- what is sent ---- */

static void flush(struct uci_engine *e)
{
    size_t sent = 0;
    ssize_t n = 1;
    while (e->in >= 0 && sent < e->unsent_used && n > 0) {
        n = write(e->in, e->unsent + sent, e->unsent_used - sent);
        sent += n > 0 ? (size_t)n : 0; /* of one that is gone, reading tells */
        n = n < 0 && errno == EINTR ? 1 : n;
    }
    e->unsent_used -= sent;
    memmove(e->unsent, e->unsent + sent, e->unsent_used);
}

static void put(struct uci_engine *e, const char *text, size_t length)
{
    if (e->unsent_used + length > e->unsent_size) {
        const size_t size = 2 * (e->unsent_used + length);
        char *unsent = size > UNSENT_MAX ? NULL : realloc(e->unsent, size);
        if (unsent == NULL) {
            uci_engine_kill(e, "it does not read its commands");
            return;
        }
        e->unsent = unsent;
        e->unsent_size = size;
    }
    memcpy(e->unsent + e->unsent_used, text, length);
    e->unsent_used += length;
}

/* ---- the process ---- */

static void run_child(struct uci_engine *e, int in, int out, pid_t parent)
{
    sigset_t none;
    sigemptyset(&none);
    (void)setpgid(0, 0); /* the terminal's Ctrl-C is for us */
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent || dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0) {
        _exit(NOT_RUN);
    }
    (void)signal(SIGPIPE, SIG_DFL);
    (void)signal(SIGCHLD, SIG_DFL);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    execvp(e->word[0], e->word);
    _exit(errno == ENOENT ? NOT_FOUND : NOT_RUN);
}

static void clear(struct uci_engine *e)
{
    free(e->go);
    e->go = NULL;
    line_reader_clear(&e->printed);
    e->unsent_used = 0;
    e->has_ended = e->answers = e->stops = false;
    e->done = e->asked; /* nobody answers them any more */
    e->barrier = e->probe = 0;
    e->cleared = e->asked;
    e->lost = false;
    e->due_us = e->settle_us = 0;
}

static void close_pipes(struct uci_engine *e)
{
    if (e->in >= 0) {
        close(e->in);
        close(e->out);
        e->in = e->out = -1;
    }
}

/* Whether it ends within `patience_ms`. */
static bool collect(struct uci_engine *e, unsigned patience_ms, int *status)
{
    for (unsigned ms = 0; e->process != 0; ms += QUIT_STEP_MS) {
        if (waitpid(e->process, status, WNOHANG) != 0) {
            (void)kill(-e->process, SIGKILL); /* what it started itself */
            e->process = 0;
        } else if (ms >= patience_ms) {
            return false;
        } else {
            (void)poll(NULL, 0, QUIT_STEP_MS);
        }
    }
    return true;
}

static void kill_all(const struct uci_engine *e)
{
    (void)kill(-e->process, SIGKILL);
    (void)kill(e->process, SIGKILL);
}

/* The machine has no more processes or files. The caller hears of it by UCI_DIED. */
static void miss(struct uci_engine *e)
{
    snprintf(e->why, sizeof e->why, "it cannot be started: %s", strerror(errno));
    e->is_missing = true;
}

void uci_engine_start(struct uci_engine *e, uint64_t now_us)
{
    int in[2], out[2], status;
    if (e->state != UCI_ENGINE_DEAD || e->is_missing || now_us < e->start_us ||
        !collect(e, 0, &status)) {
        return;
    }
    (void)signal(SIGPIPE, SIG_IGN); /* it may end while we write */
    (void)signal(SIGCHLD, SIG_DFL); /* signals.h */
    const unsigned deaths = e->deaths < REVIVE_DOUBLED_MAX ? e->deaths : REVIVE_DOUBLED_MAX;
    e->start_us = clock_after_ms(now_us, deaths == 0 ? 0 : REVIVE_MS << deaths);
    clear(e);
    if (pipe2(in, O_CLOEXEC) != 0) {
        miss(e);
        return;
    }
    if (pipe2(out, O_CLOEXEC) != 0) {
        miss(e);
        close(in[0]);
        close(in[1]);
        return;
    }
    const pid_t parent = getpid(), child = fork();
    if (child == 0) {
        run_child(e, in[0], out[1], parent);
    }
    if (child < 0) {
        miss(e);
    }
    close(in[0]);
    close(out[1]);
    e->in = in[1];
    e->out = out[0];
    if (child < 0) {
        close_pipes(e);
        return;
    }
    e->process = child;
    (void)setpgid(e->process, e->process);
    (void)fcntl(e->in, F_SETFL, O_NONBLOCK);
    (void)fcntl(e->out, F_SETFL, O_NONBLOCK);
    e->state = UCI_ENGINE_STARTING;
    e->becomes->name[0] = e->becomes->text[0] = '\0';
    e->becomes->options = 0;
    e->due_us = clock_after_ms(now_us, UCI_ENGINE_START_MS);
    e->active_us = now_us;
    put(e, "uci\n", strlen("uci\n"));
    flush(e);
}

/* The caller hears of it by UCI_DIED. */
void uci_engine_kill(struct uci_engine *e, const char *why)
{
    if (e->state != UCI_ENGINE_DEAD && !e->has_ended) {
        snprintf(e->why, sizeof e->why, "%s", why);
        kill_all(e);
        e->has_ended = true;
    }
}

/* False: it has closed its output, and may still end by itself. */
static bool bury(struct uci_engine *e, uint64_t now_us)
{
    int status = 0;
    close_pipes(e);
    const bool is_gone = collect(e, 0, &status);
    if (!is_gone && e->why[0] == '\0' && now_us < e->due_us) {
        return false;
    }
    if (!is_gone) {
        kill_all(e); /* the next start collects it, which may have much memory to give back */
    }
    if (e->why[0] != '\0') { /* it was killed */
    } else if (!is_gone) {
        snprintf(e->why, sizeof e->why, "it closed its output");
    } else if (WIFSIGNALED(status)) {
        snprintf(e->why, sizeof e->why, "it ended by signal %d", WTERMSIG(status));
    } else if (WEXITSTATUS(status) == NOT_FOUND || WEXITSTATUS(status) == NOT_RUN) {
        snprintf(e->why, sizeof e->why, "'%.100s' %s", e->word[0],
                 WEXITSTATUS(status) == NOT_FOUND ? "is not found" : "cannot be run");
    } else {
        snprintf(e->why, sizeof e->why, "it ended with status %d", WEXITSTATUS(status));
    }
    clear(e);
    e->deaths++;
    e->state = UCI_ENGINE_DEAD;
    return true;
}

void uci_engine_close(struct uci_engine *e)
{
    int status;
    if (e->state != UCI_ENGINE_DEAD) {
        uci_engine_send(e, "%squit", uci_engine_is_busy(e) ? "stop\n" : "");
        close_pipes(e);
        if (!collect(e, e->has_ended ? 0 : QUIT_MS, &status)) {
            kill_all(e);
        }
        clear(e);
        e->state = UCI_ENGINE_DEAD;
    }
    while (e->process != 0 && waitpid(e->process, &status, 0) < 0 && errno == EINTR) {
    }
    e->process = 0;
    line_reader_close(&e->printed);
    free(e->room);
    free(e->is);
    free(e->becomes);
    free(e->unsent);
    e->room = e->unsent = NULL;
    e->is = e->becomes = NULL;
    e->unsent_size = 0;
}

void uci_engine_send(struct uci_engine *e, const char *format, ...)
{
    char small[256], *text = small;
    va_list arguments, again;
    if (e->state <= UCI_ENGINE_STARTING || e->has_ended) {
        return;
    }
    va_start(arguments, format);
    va_copy(again, arguments);
    const int length = vsnprintf(small, sizeof small, format, arguments);
    if (length >= (int)sizeof small) {
        text = malloc((size_t)length + 1);
        if (text != NULL) {
            (void)vsnprintf(text, (size_t)length + 1, format, again);
        }
    }
    va_end(again);
    va_end(arguments);
    if (text != NULL && length >= 0) {
        const char *rest;
        const bool is_memory = uci_begins(text, "setoption", &rest) &&
                               (strcasestr(rest, "Hash") || strcasestr(rest, "Threads"));
        e->cleared = is_memory || uci_begins(text, "ucinewgame", &rest) ? e->asked + 1 : e->cleared;
        put(e, text, (size_t)length);
        put(e, "\n", 1);
        flush(e);
    }
    if (text != small) {
        free(text);
    }
}

uint32_t uci_engine_ask(struct uci_engine *e, uint64_t now_us)
{
    if (e->state <= UCI_ENGINE_STARTING || e->has_ended) {
        return e->asked;
    }
    uci_engine_send(e, "isready");
    if (e->state == UCI_ENGINE_IDLE) {
        e->due_us = clock_after_ms(now_us, UCI_ENGINE_READY_MS);
    }
    e->settle_us = e->settle_us != 0 ? clock_after_ms(now_us, SETTLE_MS) : 0;
    return ++e->asked;
}

void uci_engine_go(struct uci_engine *e, const char *go, uint64_t now_us)
{
    if (e->state != UCI_ENGINE_IDLE) {
        return;
    }
    free(e->go);
    e->go = strdup(go);
    e->barrier = uci_engine_ask(e, now_us);
    e->state = UCI_ENGINE_PREPARING;
    e->stops = false;
    e->active_us = now_us;
}

static bool is_clearing(const struct uci_engine *e)
{
    return e->state == UCI_ENGINE_PREPARING && (int32_t)(e->done - e->cleared) < 0;
}

void uci_engine_stop(struct uci_engine *e, uint64_t now_us)
{
    if (e->state == UCI_ENGINE_PREPARING && !e->stops) {
        e->stops = true; /* it is to say a move all the same */
        e->due_us =
            clock_after_ms(now_us, is_clearing(e) ? UCI_ENGINE_CLEAR_MS : UCI_ENGINE_STOP_MS);
    } else if (e->state == UCI_ENGINE_SEARCHING) {
        uci_engine_send(e, "stop");
        e->state = UCI_ENGINE_STOPPING;
        e->due_us = clock_after_ms(now_us, UCI_ENGINE_STOP_MS);
    }
}

void uci_engine_hurry(struct uci_engine *e, uint64_t now_us)
{
    const uint64_t due_us = clock_after_ms(now_us, UCI_ENGINE_HURRY_MS);
    uci_engine_stop(e, now_us);
    if (uci_engine_is_busy(e) && !is_clearing(e) && (e->due_us == 0 || due_us < e->due_us)) {
        e->due_us = due_us;
    }
}

/* ---- what it says ---- */

/* Takes a line of its answer to "uci". */
static enum uci_said greet(struct uci_engine *e, const char *line)
{
    const char *rest;
    struct uci_greeting *new = e->becomes;
    if (uci_begins(line, "uciok", &rest)) {
        if (new->name[0] == '\0') {
            uci_engine_kill(e, "it says no 'id name'");
            return UCI_NOTHING;
        }
        e->becomes = e->is;
        e->is = new;
        e->state = UCI_ENGINE_IDLE;
        e->due_us = 0;
        return UCI_STARTED;
    }
    const bool is_id = uci_begins(line, "id", &rest);
    if (!is_id && !uci_begins(line, "option", &rest) && new->text[0] == '\0') {
        return UCI_BANNER;
    }
    if (is_id && uci_begins(rest, "name", &rest)) {
        snprintf(new->name, sizeof new->name, "%s", rest);
    }
    if (new->options < UCI_ENGINE_OPTIONS_MAX &&
        uci_option_read(line, &new->option[new->options])) {
        new->options++;
    }
    const size_t used = strlen(new->text);
    if (used + strlen(line) + 2 < sizeof new->text) {
        snprintf(new->text + used, sizeof new->text - used, "%s\n", line);
    }
    return UCI_NOTHING;
}

/* `done` has grown. */
static enum uci_said go_on(struct uci_engine *e, uint64_t now_us)
{
    const bool is_passed = (int32_t)(e->done - e->barrier) >= 0;
    if (e->done == e->asked || (e->state == UCI_ENGINE_PREPARING && is_passed)) {
        e->lost = false;
        e->settle_us = 0;
    }
    if (e->state == UCI_ENGINE_IDLE) {
        e->due_us = e->done == e->asked ? 0 : clock_after_ms(now_us, UCI_ENGINE_READY_MS);
    } else if (e->state == UCI_ENGINE_PREPARING && is_passed) {
        e->state = UCI_ENGINE_SEARCHING;
        e->due_us = 0;
        uci_engine_send(e, "%s", e->go != NULL ? e->go : "go depth 1");
        if (e->stops) {
            uci_engine_stop(e, now_us);
        }
    }
    return UCI_READY;
}

static enum uci_said on_ready(struct uci_engine *e, uint64_t now_us)
{
    if (e->done == e->asked) {
        return UCI_NOTHING; /* nobody asked */
    }
    e->done++;
    e->answers |= e->state == UCI_ENGINE_SEARCHING && (int32_t)(e->done - e->barrier) > 0;
    e->probe = e->probe != 0 && (int32_t)(e->done - e->probe) >= 0 ? 0 : e->probe;
    if (e->lost) {
        e->settle_us = clock_after_ms(now_us, SETTLE_MS);
    }
    return go_on(e, now_us);
}

static enum uci_said take(struct uci_engine *e, const char *line, uint64_t now_us)
{
    const char *rest;
    e->active_us = now_us;
    if (e->state == UCI_ENGINE_STARTING) {
        return greet(e, line);
    }
    if (uci_begins(line, "readyok", &rest)) {
        return on_ready(e, now_us);
    }
    if (uci_begins(line, "bestmove", &rest)) {
        if ((e->state != UCI_ENGINE_SEARCHING && e->state != UCI_ENGINE_STOPPING) ||
            *rest == '\0') {
            return UCI_NOTHING; /* of an earlier "go", or said twice, or of no move */
        }
        e->state = UCI_ENGINE_IDLE;
        e->lost = e->asked != e->done;
        e->due_us = 0;
        e->probe = 0;
        e->deaths = 0;
        if (e->lost) {
            (void)uci_engine_ask(e, now_us); /* which it answers, whether the others or not */
        }
        return UCI_BESTMOVE;
    }
    if (e->state == UCI_ENGINE_PREPARING && uci_begins(line, "info", &rest)) {
        return UCI_NOTHING; /* of an earlier search */
    }
    return UCI_LINE;
}

/* What is late ends it. */
static void check_clock(struct uci_engine *e, uint64_t now_us)
{
    static const char *const what[] = {
        [UCI_ENGINE_STARTING] = "it does not answer 'uci'",
        [UCI_ENGINE_IDLE] = "it does not answer 'isready'",
        [UCI_ENGINE_PREPARING] = "it does not answer 'isready'",
        [UCI_ENGINE_SEARCHING] = "it hangs",
        [UCI_ENGINE_STOPPING] = "it does not answer 'stop'",
    };
    if (e->due_us != 0 && now_us >= e->due_us) {
        uci_engine_kill(e, what[e->state]);
    }
    if (e->state != UCI_ENGINE_SEARCHING || e->has_ended) {
        return;
    }
    if (now_us < clock_after_ms(e->active_us, UCI_ENGINE_SILENT_MS)) {
        e->due_us = 0;
    } else if (e->probe == 0) {
        e->probe = uci_engine_ask(e, now_us);
        e->due_us = e->answers ? clock_after_ms(now_us, UCI_ENGINE_ALIVE_MS) : 0;
    }
}

enum uci_said uci_engine_next(struct uci_engine *e, uint64_t now_us, char **line)
{
    if (e->state == UCI_ENGINE_DEAD) {
        const bool is_missing = e->is_missing;
        e->deaths += is_missing;
        e->is_missing = false;
        return is_missing ? UCI_DIED : UCI_NOTHING;
    }
    do {
        /* A line that it did not print to its end does not count. */
        while (!e->has_ended && (*line = line_reader_next(&e->printed)) != NULL) {
            const enum uci_said said = e->printed.is_cut ? UCI_NOTHING : take(e, *line, now_us);
            if (said != UCI_NOTHING) {
                return said;
            }
        }
    } while (!e->has_ended && e->fills++ < FILLS_MAX && line_reader_fill(&e->printed, e->out));
    const bool is_all = e->fills <= FILLS_MAX;
    e->fills = 0;
    if (e->printed.has_ended && !e->has_ended) {
        e->why[0] = '\0';
        e->has_ended = true;
        e->due_us = clock_after_ms(now_us, QUIT_MS);
    }
    check_clock(e, now_us);
    if (e->has_ended) {
        return bury(e, now_us) ? UCI_DIED : UCI_NOTHING;
    }
    if (is_all && e->settle_us != 0 && now_us >= e->settle_us) {
        e->done = e->asked; /* the rest are lost */
        return go_on(e, now_us);
    }
    return UCI_NOTHING;
}

const struct uci_option *uci_engine_option(const struct uci_engine *e, const char *name)
{
    unsigned i = 0;
    while (i < e->is->options && strcasecmp(e->is->option[i].name, name) != 0) {
        i++;
    }
    return i < e->is->options ? &e->is->option[i] : NULL;
}

bool uci_engine_wait(struct uci_engine *e, const struct lane *lane, int input, uint64_t until_us)
{
    enum { FILES_MAX = 256, OURS = 3 };
    const bool has_engine = e->state != UCI_ENGINE_DEAD && !e->has_ended;
    struct pollfd file[FILES_MAX] = {
        {.fd = input, .events = POLLIN},
        {.fd = has_engine ? e->out : -1, .events = POLLIN},
        {.fd = has_engine && e->unsent_used > 0 ? e->in : -1, .events = POLLOUT}};
    unsigned files = OURS;
    uint64_t now = clock_us(), due_us = UINT64_MAX;
    if (has_engine && e->settle_us != 0 && e->settle_us < until_us) {
        until_us = e->settle_us;
    }
    if (e->state != UCI_ENGINE_DEAD && e->has_ended) { /* a status may come */
        until_us = now + QUIT_STEP_MS * UINT64_C(1000);
    }
    if (lane != NULL) {
        files += lane->descriptors(lane->self, file + OURS, FILES_MAX - OURS, &due_us);
        until_us = due_us < until_us ? due_us : until_us;
    }
    const uint64_t left = until_us > now ? (until_us - now + 999) / 1000 : 0;
    if (poll(file, files, left < PATIENCE_MS ? (int)left : PATIENCE_MS) <= 0) {
        return false;
    }
    if (file[2].revents != 0) {
        flush(e);
    }
    return file[0].revents != 0;
}
