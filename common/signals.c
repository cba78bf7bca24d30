#include "common/signals.h"

#include <signal.h>
#include <unistd.h>

static atomic_bool *_Atomic end; /* flag of signals_end_by */
static atomic_bool has_come; /* set by its first signal: the program may set the flag itself */

static void on_default(int number)
{
    _exit(128 + number);
}

static void on_hangup(int number)
{
    (void)signal(number, SIG_IGN);
    raise(SIGTERM);
}

void signals_catch(void (*handler)(int number))
{
    struct sigaction action = {.sa_handler = handler};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    struct sigaction hangup = {.sa_handler = on_hangup}, before;
    if (sigaction(SIGHUP, NULL, &before) == 0 &&
        (before.sa_handler == SIG_DFL || before.sa_handler == on_default)) {
        sigaction(SIGHUP, &hangup, NULL);
    }
}

void signals_default(void)
{
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGQUIT, SIGUSR1, SIGUSR2};
    const struct sigaction exits = {.sa_handler = on_default};
    const struct sigaction reaps = {.sa_handler = SIG_DFL, .sa_flags = SA_NOCLDWAIT};
    struct sigaction before;
    if (getpid() != 1) {
        return;
    }
    for (unsigned i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        if (sigaction(ends[i], NULL, &before) == 0 && before.sa_handler == SIG_DFL) {
            sigaction(ends[i], &exits, NULL);
        }
    }
    sigaction(SIGCHLD, &reaps, NULL);
}

static void on_end(int number)
{
    atomic_store(atomic_load(&end), true);
    if (atomic_exchange(&has_come, true)) {
        _exit(128 + number);
    }
}

void signals_end_by(atomic_bool *flag)
{
    atomic_store(&end, flag);
    signals_catch(on_end);
}

bool signals_create_thread(pthread_t *thread, void *(*run)(void *context), void *context)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool is_created = pthread_create(thread, NULL, run, context) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return is_created;
}
