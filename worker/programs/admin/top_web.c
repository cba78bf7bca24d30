#include "worker/programs/admin/top_web.h"
#include "worker/programs/admin/top_json.h"

#include "common/clock.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* page.html, put into the program by the Makefile. */
extern const char _binary_page_html_start[], _binary_page_html_end[];

enum {
    IDLE_MS = 100, /* between two questions whether somebody watches */
    /* Of a big cluster there are fewer views, so that a page gets at most this much. */
    BYTES_PER_S = 256 << 10,
    TOKEN_BYTES = 16,
    TOKEN_ROOM = 2 * TOKEN_BYTES + 1,
    HASH_ROOM = 64, /* of a SHA-256 in base64 */
};

struct top_web {
    /* fixed after open */
    struct http *server;
    char token[TOKEN_ROOM];
    char url[OPTIONS_HOST_MAX + 64];
    char policy[512];
    struct http_route route[4];
};

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

/* Another at each start: who has seen one may watch until this process ends, and no longer. */
static void make_token(char out[TOKEN_ROOM])
{
    unsigned char token[TOKEN_BYTES];
    randombytes_buf(token, sizeof token);
    sodium_bin2hex(out, TOKEN_ROOM, token, sizeof token);
}

enum err top_web_address(const char *text, void *out)
{
    char with_host[OPTIONS_HOST_MAX + 16];
    bool is_port = text[strspn(text, "0123456789")] == '\0';
    if (is_port || text[0] == ':') {
        snprintf(with_host, sizeof with_host, "127.0.0.1%s%s", is_port ? ":" : "", text);
        text = with_host;
    }
    return options_host_port(text, out);
}

enum err top_web_open(struct top_web **out, const struct options_host_port *at,
                      const struct keys_client *keys, const atomic_bool *stop,
                      char why[HTTP_WHY_MAX])
{
    char script[HASH_ROOM], style[HASH_ROOM];
    struct top_web *w = calloc(1, sizeof *w);
    if (w == NULL || sodium_init() < 0) {
        snprintf(why, HTTP_WHY_MAX, "%s", err_text(ERR_NOMEM));
        free(w);
        return ERR_NOMEM;
    }
    hash_between("<script>", "</script>", script);
    hash_between("<style>", "</style>", style);
    snprintf(
        w->policy, sizeof w->policy,
        "default-src 'none'; script-src 'sha256-%s'; style-src 'sha256-%s'; connect-src 'self'; "
        "img-src data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
        script, style);
    w->route[0] = (struct http_route){
        "/", "text/html; charset=utf-8", answer_page, NULL, w->policy, .is_open = true};
    w->route[1] = (struct http_route){"/events"};
    w->route[2] = (struct http_route){"/healthz", "text/plain; charset=utf-8", answer_health,
                                      .is_open = true};
    if (keys != NULL) {
        make_token(w->token);
    }
    const struct http_options options = {
        .address = at, .route = w->route, .token = keys != NULL ? w->token : NULL, .stop = stop};
    enum err err = http_open(&w->server, &options, why);
    if (err != ERR_OK) {
        top_web_close(&w);
        return err;
    }
    snprintf(w->url, sizeof w->url, "http://%s/%s%s", http_address(w->server),
             keys != NULL ? "#token=" : "", w->token);
    *out = w;
    return ERR_OK;
}

void top_web_close(struct top_web **web)
{
    if (*web != NULL) {
        http_close(&(*web)->server);
        keys_wipe(*web, sizeof **web);
        free(*web);
    }
    *web = NULL;
}

const char *top_web_url(const struct top_web *w)
{
    return w->url;
}

bool top_web_is_loopback(const struct top_web *w)
{
    return http_is_loopback(w->server);
}

/* Returns the size of the event; 0: no memory for it. */
static size_t publish(struct top_web *w, const struct watch_view *view)
{
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    if (out == NULL) {
        return 0;
    }
    top_json_view(view, out);
    bool is_whole = !ferror(out);
    if (fclose(out) == 0 && is_whole) {
        http_publish(w->server, text, length - 1 /* the newline */);
    }
    free(text);
    return length;
}

void top_web_serve(struct top_web *w, struct watch *watch, unsigned interval_ms,
                   const atomic_bool *stop)
{
    while (!atomic_load(stop)) {
        if (http_followers(w->server) == 0) {
            watch_idle(watch, IDLE_MS);
            continue;
        }
        uint64_t begin = clock_us();
        watch_round(watch, 0, false, stop);
        size_t bytes = publish(w, watch_view(watch));
        uint64_t wait_ms = (uint64_t)bytes * 1000 / BYTES_PER_S;
        uint64_t due = begin + 1000 * (wait_ms > interval_ms ? wait_ms : interval_ms);
        for (uint64_t now; !atomic_load(stop) && (now = clock_us()) < due;) {
            watch_idle(watch,
                       due - now < IDLE_MS * 1000 ? (unsigned)((due - now + 999) / 1000) : IDLE_MS);
        }
    }
}
