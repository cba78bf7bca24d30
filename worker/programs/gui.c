#include "worker/programs/gui.h"

#include "common/clock.h"
#include "common/log.h"
#include "common/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATIENCE_MS = 100 }; /* a signal that comes right before a wait does not end it */

static atomic_bool quitting;

bool gui_open(struct gui *g, const char *program)
{
    g->has_ended = true;
    g->quitting = &quitting;
    if (!line_reader_open(&g->input, GUI_LINE_MAX) || pipe2(g->ended, O_CLOEXEC) != 0) {
        log_fail(program, "no memory or no pipe: %s", strerror(errno));
        line_reader_close(&g->input);
        return false;
    }
    signals_end_by(&quitting);
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
    return true;
}

void gui_close(struct gui *g)
{
    if (g->input.text != NULL) {
        close(g->ended[0]);
        close(g->ended[1]);
        line_reader_close(&g->input);
    }
}

/* ---- the search ---- */

static void *search(void *context)
{
    struct gui *g = context;
    const struct gui_stand_in *in = g->stand_in;
    const enum err err = in != NULL ? in->run(in->self, g->job, &g->observer, &g->result)
                                    : engine_run(g->engine, g->job, &g->observer, &g->result);
    if (err != ERR_OK) {
        g->result = (struct engine_result){0};
    }
    while (write(g->ended[1], "", 1) < 0 && errno == EINTR) {
    }
    return NULL;
}

static void await_end(struct gui *g)
{
    char byte;
    while (!g->has_ended) {
        g->has_ended = read(g->ended[0], &byte, 1) == 1;
    }
}

static void finish(struct gui *g, bool is_stopped)
{
    pthread_join(g->thread, NULL);
    await_end(g);
    g->is_running = false;
    g->answer(g->self, is_stopped);
}

void gui_begin(struct gui *g, struct job *job, const struct engine_observer *observer)
{
    CHECK(!g->is_running);
    g->job = job;
    g->observer = *observer;
    g->has_ended = false;
    if (g->stand_in != NULL) {
        g->stand_in->arm(g->stand_in->self);
    } else {
        engine_arm(g->engine);
    }
    g->is_running =
        signals_create_thread(&g->thread, search, g); /* signals end the reader's wait */
    if (!g->is_running) {
        search(g);
        await_end(g);
        g->answer(g->self, false);
    }
}

void gui_end_search(struct gui *g)
{
    if (g->stand_in != NULL) {
        g->stand_in->stop(g->stand_in->self);
    } else {
        engine_stop(g->engine);
    }
}

void gui_stop(struct gui *g)
{
    if (g->is_running) {
        gui_end_search(g);
        finish(g, true);
    }
}

/* ---- the loop ---- */

static bool waits(const struct gui *g)
{
    return g->is_ordered && g->is_running;
}

static int timeout_ms(const struct gui *g)
{
    if (g->is_running && g->has_ended && !g->is_held) {
        return 0;
    }
    if (!g->is_running || g->stop_us == 0) {
        return PATIENCE_MS;
    }
    const uint64_t now = clock_us();
    const uint64_t left_ms = now < g->stop_us ? (g->stop_us - now + 999) / 1000 : 0;
    return left_ms < PATIENCE_MS ? (int)left_ms : PATIENCE_MS;
}

/* Waits for input or for the end of the search, and keeps the sessions at the shards alive. False:
 * nobody reads the answers any more. */
static bool await_events(struct gui *g)
{
    const bool reads = !g->input.has_ended && !waits(g);
    struct pollfd fd[] = {{.fd = reads ? STDIN_FILENO : -1, .events = POLLIN},
                          {.fd = g->has_ended ? -1 : g->ended[0], .events = POLLIN},
                          {.fd = STDOUT_FILENO}};
    const int n = poll(fd, 3, timeout_ms(g));
    const bool has_input = reads && (n > 0 ? fd[0].revents != 0 : n < 0 && errno != EINTR);
    if (n > 0 && (fd[2].revents & (POLLERR | POLLHUP)) != 0) {
        /* Nobody can read what is said there: from now on nothing is written. */
        const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
        if (nowhere >= 0) { /* else the next line ends the program, by a signal */
            (void)dup2(nowhere, STDOUT_FILENO);
            close(nowhere);
        }
        return false;
    }
    if (n > 0 && fd[1].revents != 0) {
        await_end(g);
    }
    if (g->is_running && g->stop_us != 0 && clock_us() >= g->stop_us) {
        g->stop_us = 0;
        gui_end_search(g);
    }
    if (g->is_running && g->has_ended && !g->is_held) {
        finish(g, false);
    }
    if (n == 0 && !g->is_running && g->engine != NULL) {
        engine_idle(g->engine, 0);
    }
    if (has_input) {
        (void)line_reader_fill(&g->input, STDIN_FILENO);
    }
    return true;
}

static bool obey(struct gui *g, char *line)
{
    char why[64];
    if (!g->input.is_cut) {
        return g->obey(g->self, line);
    }
    snprintf(why, sizeof why, "a line is longer than %zu bytes", g->input.longest);
    g->refuse(g->self, line, why);
    return true;
}

void gui_loop(struct gui *g)
{
    bool goes_on = true;
    while (goes_on && !atomic_load(&quitting)) {
        for (char *line; goes_on && !waits(g) && (line = line_reader_next(&g->input)) != NULL;) {
            goes_on = obey(g, line);
        }
        const bool is_awaited = g->is_running && !g->is_held && g->stop_us == 0;
        goes_on = goes_on && (!g->input.has_ended || is_awaited) && await_events(g);
    }
    gui_stop(g);
}
