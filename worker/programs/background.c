#include "worker/programs/background.h"

#include "common/signals.h"
#include "worker/programs/commands.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

bool background_open(struct background *b)
{
    b->is_running = false;
    b->has_ended = true;
    return pipe2(b->ended, O_CLOEXEC) == 0;
}

void background_close(struct background *b)
{
    close(b->ended[0]);
    close(b->ended[1]);
}

static void *search(void *context)
{
    struct background *b = context;
    if (engine_run(b->engine, b->job, &b->observer, &b->result) != ERR_OK) {
        b->result = (struct engine_result){0};
    }
    while (write(b->ended[1], "", 1) < 0 && errno == EINTR) {
    }
    return NULL;
}

static void await_end(struct background *b)
{
    char byte;
    while (!b->has_ended) {
        b->has_ended = read(b->ended[0], &byte, 1) == 1;
    }
}

void background_begin(struct background *b, struct engine *engine, struct job *job,
                      const struct engine_observer *observer)
{
    b->engine = engine;
    b->job = job;
    b->observer = *observer;
    b->has_ended = false;
    engine_arm(engine);
    b->is_running =
        signals_create_thread(&b->thread, search, b); /* signals end the reader's wait */
    if (!b->is_running) {
        search(b);
        await_end(b);
    }
}

void background_join(struct background *b)
{
    pthread_join(b->thread, NULL);
    await_end(b);
    b->is_running = false;
}

enum background_event background_wait(struct background *b, bool reads, int timeout_ms)
{
    struct pollfd fd[] = {{.fd = reads ? STDIN_FILENO : -1, .events = POLLIN},
                          {.fd = b->has_ended ? -1 : b->ended[0], .events = POLLIN},
                          {.fd = STDOUT_FILENO}};
    const int n = poll(fd, 3, timeout_ms);
    if (n <= 0) {
        return n == 0                     ? BACKGROUND_QUIET
               : errno == EINTR || !reads ? BACKGROUND_OTHER
                                          : BACKGROUND_INPUT;
    }
    if (commands_output_is_gone(fd[2].revents)) {
        return BACKGROUND_GONE;
    }
    if (fd[1].revents != 0) {
        await_end(b);
    }
    return fd[0].revents != 0 ? BACKGROUND_INPUT : BACKGROUND_OTHER;
}
