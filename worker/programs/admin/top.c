/* abdada top: the shards, jobs and sessions of a cluster, as a live view, as JSON or as a page. */
#include "worker/programs/admin/top_view.h"
#include "worker/programs/cli.h"

#include "common/clock.h"
#include "common/config.h"
#include "common/http.h"
#include "common/log.h"
#include "common/signals.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

static const char program[] = "abdada top";

/* page.html, put into the program by the Makefile. */
extern const char _binary_page_html_start[], _binary_page_html_end[];

enum {
    RATE_MS = 500,
    SLICE_MS = 50,
    INTERVAL_MS = 1000,
    WEB_INTERVAL_MS = 250, /* the least; more than the most and pages take it for dead */
    WEB_INTERVAL_MAX_MS = 5000,
    WEB_IDLE_MS = 100, /* between two questions whether somebody watches */
    /* At most so much for a page: of a big cluster there are fewer views. */
    WEB_BYTES_PER_S = 256 << 10,
    TOKEN_BYTES = 16,
    TOKEN_ROOM = 2 * TOKEN_BYTES + 1,
    HASH_ROOM = 64, /* of a SHA-256 in base64 */
};

struct top {
    /* command line */
    struct cli_table table;
    uint32_t interval_ms, wait_ms;
    struct options_host_port web_at; /* no host: no page */
    struct http_names web_names;
    bool once, json, is_insecure;
    /* state */
    struct monitor *monitor;
    struct http *web; /* NULL: no page; else with ... */
    char token[TOKEN_ROOM]; /* "": it asks for none */
    char policy[512];
    struct http_route route[4];
};

static atomic_bool stopping;
static struct termios before, raw; /* fixed once the terminal is taken */
static bool has_keys, has_screen, may_stop; /* fixed, too: what we take of it */
static atomic_bool is_raw, is_screen;

/* ---- the terminal: its functions are called by handlers of signals, too ---- */

static void write_all(const char *text)
{
    ssize_t ignored = write(STDOUT_FILENO, text, strlen(text));
    (void)ignored;
}

/* A program in the background that changes its terminal is stopped. */
static bool is_foreground(void)
{
    const pid_t group = tcgetpgrp(STDIN_FILENO);
    return group < 0 || group == getpgrp(); /* or it is not ours, and stops nobody */
}

static void restore_terminal(void)
{
    if (atomic_exchange(&is_raw, false) && is_foreground()) {
        tcsetattr(STDIN_FILENO, TCSANOW, &before);
    }
    if (atomic_exchange(&is_screen, false)) {
        write_all("\x1b[?25h\x1b[?1049l");
    }
}

static void on_signal(int number)
{
    if (atomic_exchange(&stopping, true)) {
        restore_terminal();
        _exit(128 + number);
    }
}

static void on_suspend(int number);

static void take_terminal(void)
{
    const struct sigaction suspend = {.sa_handler = on_suspend,
                                      .sa_flags = (int)(SA_RESTART | SA_RESETHAND | SA_NODEFER)};
    if (may_stop) {
        sigaction(SIGTSTP, &suspend, NULL);
    }
    if (has_keys && is_foreground()) {
        atomic_store(&is_raw, tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0);
    }
    if (has_screen) {
        atomic_store(&is_screen, true);
        write_all("\x1b[?1049h\x1b[?25l");
    }
}

static void on_continue(int number)
{
    int error = errno;
    (void)number;
    if (!atomic_load(&stopping)) {
        take_terminal();
    }
    errno = error;
}

/* Its handler is the default now, which stops us until SIGCONT; not where nobody could send that,
 * and then we go on at once. */
static void on_suspend(int number)
{
    int error = errno;
    restore_terminal();
    raise(number);
    on_continue(number);
    errno = error;
}

static void prepare_terminal(bool wants_screen)
{
    const char *kind = getenv("TERM");
    const struct sigaction go_on = {.sa_handler = on_continue, .sa_flags = SA_RESTART};
    struct sigaction now;
    has_screen = wants_screen && isatty(STDOUT_FILENO) && kind != NULL && kind[0] != '\0' &&
                 strcmp(kind, "dumb") != 0;
    if (isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && tcgetattr(STDIN_FILENO, &before) == 0) {
        has_keys = true;
        raw = before;
        raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    }
    may_stop = sigaction(SIGTSTP, NULL, &now) == 0 && now.sa_handler == SIG_DFL;
    if (has_keys || has_screen) {
        sigaction(SIGCONT, &go_on, NULL);
        take_terminal();
    }
}

/* True when q was typed. */
static bool is_quit_typed(void)
{
    struct pollfd fd = {.fd = STDIN_FILENO, .events = POLLIN};
    char c;
    while (atomic_load(&is_raw) && poll(&fd, 1, 0) > 0) {
        if (read(STDIN_FILENO, &c, 1) != 1) {
            return false;
        }
        if (c == 'q' || c == 'Q' || c == 3 || c == 4) {
            return true;
        }
    }
    return false;
}

/* ---- the views ---- */

static void show(struct top *t)
{
    struct winsize size = {0};
    const bool is_live = atomic_load(&is_screen);
    if (t->json) {
        top_view_json(monitor_view(t->monitor), true, stdout);
    } else {
        (void)ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
        const struct top_page page = {stdout, size.ws_col, is_live ? size.ws_row : 0, is_live};
        top_view_text(monitor_view(t->monitor), &page);
    }
}

/* 0 when all shards are up. */
static int show_once(struct top *t)
{
    const struct monitor_view *v = monitor_view(t->monitor);
    monitor_round(t->monitor, t->wait_ms, &stopping);
    if (v->total.up > 0 && !atomic_load(&stopping)) { /* a rate needs two values */
        monitor_idle(t->monitor, RATE_MS);
        monitor_round(t->monitor, v->total.up == v->shards ? t->wait_ms : 0, &stopping);
    }
    show(t);
    return v->total.up == v->shards ? 0 : 1;
}

static int show_live(struct top *t)
{
    const uint32_t interval_ms = t->interval_ms > 0 ? t->interval_ms : INTERVAL_MS;
    static char view[1 << 18]; /* goes out at once */
    uint32_t wait_ms = t->wait_ms;
    prepare_terminal(!t->json); /* lines are to stay */
    setvbuf(stdout, view, _IOFBF, sizeof view);
    while (!atomic_load(&stopping)) {
        monitor_round(t->monitor, wait_ms, &stopping);
        wait_ms = 0; /* later rounds do not wait for shards that are down */
        if (!atomic_load(&stopping)) {
            show(t);
        }
        if (ferror(stdout)) {
            break;
        }
        for (uint32_t slept = 0; slept < interval_ms && !atomic_load(&stopping);
             slept += SLICE_MS) {
            monitor_idle(t->monitor, SLICE_MS);
            if (is_quit_typed()) {
                atomic_store(&stopping, true);
            }
        }
    }
    restore_terminal();
    return 0;
}

/* ---- the page, over HTTP ----
 *
 *     /          the page (page.html), which loads nothing else
 *     /view      the newest view as JSON, to be polled; asks for the token
 *     /healthz   "ok"
 *
 * The cluster is asked once for a view, however many pages are open, and not at all while none is.
 */

/* The symbols are the ends of one array, which the compiler does not know. */
static size_t page_length(void)
{
    return (size_t)((uintptr_t)_binary_page_html_end - (uintptr_t)_binary_page_html_start);
}

static unsigned answer_page(void *self, FILE *out)
{
    (void)self;
    fwrite(_binary_page_html_start, 1, page_length(), out);
    return 200;
}

static unsigned answer_health(void *self, FILE *out)
{
    (void)self;
    fputs("ok\n", out);
    return 200;
}

/* The hash by which a policy allows the text between two tags of the page, and nothing else. */
static void hash_between(const char *begin, const char *end, char out[HASH_ROOM])
{
    const char *page = _binary_page_html_start;
    unsigned char hash[crypto_hash_sha256_BYTES];
    const char *from = memmem(page, page_length(), begin, strlen(begin));
    CHECK(from != NULL);
    from += strlen(begin);
    const char *to = memmem(from, page_length() - (size_t)(from - page), end, strlen(end));
    CHECK(to != NULL);
    crypto_hash_sha256(hash, (const unsigned char *)from, (size_t)(to - from));
    sodium_bin2base64(out, HASH_ROOM, hash, sizeof hash, sodium_base64_VARIANT_ORIGINAL);
}

/* "HOST:PORT"; of ":PORT" and "PORT" the host is 127.0.0.1. */
static enum err read_web_address(const char *text, void *out)
{
    char with_host[OPTIONS_HOST_MAX + 16];
    bool is_port = text[strspn(text, "0123456789")] == '\0';
    if (is_port || text[0] == ':') {
        snprintf(with_host, sizeof with_host, "127.0.0.1%s%s", is_port ? ":" : "", text);
        text = with_host;
    }
    return options_host_port(text, out);
}

/* With keys pages need a token, drawn at random: another at each start, so that who has seen one
 * may watch until this process ends, and no longer. */
static enum err open_web(struct top *t, char why[KEYS_WHY_MAX])
{
    const bool asks_token = t->table.keys_dir != NULL;
    char reason[HTTP_WHY_MAX], script[HASH_ROOM], style[HASH_ROOM];
    unsigned char token[TOKEN_BYTES];
    if (sodium_init() < 0) {
        return err_say(ERR_NOMEM, why, KEYS_WHY_MAX, "--web %s", err_text(ERR_NOMEM));
    }
    hash_between("<script>", "</script>", script);
    hash_between("<style>", "</style>", style);
    snprintf(
        t->policy, sizeof t->policy,
        "default-src 'none'; script-src 'sha256-%s'; style-src 'sha256-%s'; connect-src 'self'; "
        "img-src data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
        script, style);
    t->route[0] = (struct http_route){
        "/", "text/html; charset=utf-8", answer_page, NULL, t->policy, .is_open = true};
    t->route[1] = (struct http_route){"/view", "application/json"};
    t->route[2] = (struct http_route){"/healthz", "text/plain; charset=utf-8", answer_health,
                                      .is_open = true};
    if (asks_token) {
        randombytes_buf(token, sizeof token);
        sodium_bin2hex(t->token, sizeof t->token, token, sizeof token);
    }
    const struct http_options options = {.address = &t->web_at,
                                         .route = t->route,
                                         .token = asks_token ? t->token : NULL,
                                         .names = &t->web_names,
                                         .stop = &stopping};
    enum err err = http_open(&t->web, &options, reason);
    if (err != ERR_OK) {
        snprintf(why, KEYS_WHY_MAX, "--web %.400s", reason);
    } else if (!http_is_loopback(t->web) && !asks_token && !t->is_insecure) {
        snprintf(why, KEYS_WHY_MAX,
                 "--web %.300s can be reached from other machines: add --keys DIR, or add "
                 "--insecure if everybody there may see the cluster",
                 t->web_at.host);
        err = ERR_RANGE;
    }
    return err;
}

/* Returns the size of the view; 0: no memory for it. */
static size_t publish(const struct top *t)
{
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    if (out == NULL) {
        return 0;
    }
    top_view_json(monitor_view(t->monitor), false, out);
    bool is_whole = !ferror(out);
    if (fclose(out) == 0 && is_whole) {
        http_publish(t->web, text, length);
    }
    free(text);
    return length;
}

static int show_web(struct top *t)
{
    uint64_t interval_ms = t->interval_ms > WEB_INTERVAL_MS ? t->interval_ms : WEB_INTERVAL_MS;
    interval_ms = interval_ms < WEB_INTERVAL_MAX_MS ? interval_ms : WEB_INTERVAL_MAX_MS;
    fprintf(stderr, "%s: the page is at http://%s/%s%s\n", program, http_address(t->web),
            t->token[0] != '\0' ? "#token=" : "", t->token);
    while (!atomic_load(&stopping)) {
        if (!http_is_watched(t->web)) {
            monitor_idle(t->monitor, WEB_IDLE_MS);
            continue;
        }
        uint64_t begin = clock_us();
        monitor_round(t->monitor, 0, &stopping);
        uint64_t wait_ms = (uint64_t)publish(t) * 1000 / WEB_BYTES_PER_S;
        uint64_t due = begin + 1000 * (wait_ms > interval_ms ? wait_ms : interval_ms);
        for (uint64_t now; !atomic_load(&stopping) && (now = clock_us()) < due;) {
            uint64_t left_ms = (due - now + 999) / 1000;
            monitor_idle(t->monitor, left_ms < WEB_IDLE_MS ? (unsigned)left_ms : WEB_IDLE_MS);
        }
    }
    return 0;
}

/* ---- the command ---- */

int cli_top(int argc, char *argv[])
{
    struct top t = {.wait_ms = 1000};
    const struct options_row table[] = {
        CLI_TABLE_ROWS(t.table),
        {"once", NULL, "print once and exit: 0 when all shards are up, else 1", &t.once,
         OPTION_FLAG},
        {"json", NULL, "a JSON object per line for each shard, job, session, and the total",
         &t.json, OPTION_FLAG},
        {"interval", "MS", "time between views (default 1000; with --web 250 to 5000, default 250)",
         &t.interval_ms, OPTION_U32, 0, 100, 3600000},
        {"wait", "MS", "time to wait for shards (default 1000)", &t.wait_ms, OPTION_U32, 0, 1,
         60000},
        {"web", "HOST:PORT", "serve a page to watch the cluster there; PORT alone: on 127.0.0.1",
         &t.web_at, OPTION_CUSTOM, .parse = read_web_address},
        {"web-host", "NAME",
         "another host name of the page, for example that of a proxy; repeatable", &t.web_names,
         OPTION_CUSTOM, .parse = http_name},
        {"insecure", NULL, "serve the page without keys where other machines can reach it",
         &t.is_insecure, OPTION_FLAG},
        {0},
    };
    const struct options options = {
        .program = program,
        .usage = "--servers HOST:PORT,... | --table URL [--once] [--json] [--web HOST:PORT "
                 "[--web-host NAME]...]",
        .summary =
            "Shows the shards of a cluster, its jobs and its sessions, in the terminal or on "
            "a page. Ends\nwith q or Ctrl-C.",
        .example = {"abdada top --servers 127.0.0.1:7400",
                    "abdada top --servers ws1:7400,ws2:7400 --keys keys --web 8080"},
        .table = table,
    };
    int status = config_parse(&options, argc, argv, NULL, NULL);
    status = status < 0 ? cli_table_environment(program, &t.table, true) : status;
    if (status < 0 && t.web_at.host[0] != '\0' && (t.once || t.json)) {
        status = options_wrong(program, "--web excludes --once and --json");
    }
    if (status < 0 && t.web_at.host[0] == '\0' && t.web_names.count > 0) {
        status = options_wrong(program, "--web-host needs --web");
    }
    if (status >= 0) {
        return status;
    }
    signals_catch(on_signal);
    char why[KEYS_WHY_MAX];
    if (monitor_open(&t.monitor, NULL, &t.table, program, why) != ERR_OK ||
        (t.web_at.host[0] != '\0' && open_web(&t, why) != ERR_OK)) {
        status = log_fail(program, "%s", why);
    } else {
        status = t.web != NULL ? show_web(&t) : t.once ? show_once(&t) : show_live(&t);
    }
    http_close(&t.web);
    keys_wipe(t.token, sizeof t.token);
    monitor_close(&t.monitor);
    return status;
}
