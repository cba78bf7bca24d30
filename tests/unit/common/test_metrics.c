/* Figures as metrics: names, units, escapes; what a server with shards answers over HTTP. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/metrics.h"
#include "ttserver/server_metrics.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void figures_become_metrics(void **state)
{
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    const struct metrics m = {out, "test"};
    (void)state;
    metrics_one(&m, "asks", true, "Things asked", UINT64_MAX);
    metrics_one(&m, "uptime_ms", false, "Time", 1500);
    metrics_one(&m, "waited_us", true, "Time", 2500000);
    metrics_one(&m, "full_permille", false, "Part", 250);
    metrics_one(&m, "_ms", false, "No unit without a name", 1);
    metrics_sample(&m, "asks", false, "shard", "a\"b\\c\nd", 3);
    fclose(out);
    assert_string_equal(text, "# HELP test_asks_total Things asked.\n"
                              "# TYPE test_asks_total counter\n"
                              "test_asks_total 18446744073709551615\n"
                              "# HELP test_uptime_seconds Time.\n"
                              "# TYPE test_uptime_seconds gauge\n"
                              "test_uptime_seconds 1.5\n"
                              "# HELP test_waited_seconds_total Time.\n"
                              "# TYPE test_waited_seconds_total counter\n"
                              "test_waited_seconds_total 2.5\n"
                              "# HELP test_full_ratio Part.\n"
                              "# TYPE test_full_ratio gauge\n"
                              "test_full_ratio 0.25\n"
                              "# HELP test__ms No unit without a name.\n"
                              "# TYPE test__ms gauge\n"
                              "test__ms 1\n"
                              "test_asks{shard=\"a\\\"b\\\\c\\nd\"} 3\n");
    free(text);
}

/* The whole answer, to be freed. */
static char *get(const char *address, const char *path)
{
    enum { ROOM = 1 << 20 };
    struct options_host_port at;
    struct sockaddr_in to = {.sin_family = AF_INET};
    char request[256], *answer = calloc(1, ROOM);
    assert_int_equal(options_host_port(address, &at), ERR_OK);
    to.sin_port = htons(at.port);
    assert_int_equal(inet_pton(AF_INET, at.host, &to.sin_addr), 1);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    int n = snprintf(request, sizeof request,
                     "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", path, address);
    assert_int_equal(send(fd, request, (size_t)n, MSG_NOSIGNAL), n);
    assert_non_null(answer);
    for (size_t used = 0; used < ROOM - 1;) {
        ssize_t got = recv(fd, answer + used, ROOM - 1 - used, 0);
        if (got <= 0) {
            break;
        }
        used += (size_t)got;
    }
    close(fd);
    return answer;
}

static void answer_has(const struct server_metrics *m, const char *path, const char *wanted)
{
    char *answer = get(http_address(m->http), path);
    if (strstr(answer, wanted) == NULL) {
        fail_msg("%s: no %s in %.3000s", path, wanted, answer);
    }
    free(answer);
}

static void shards_are_healthy_once_all_serve(void **state)
{
    struct server_metrics m = {.shards = 0};
    const struct options_host_port at = {"127.0.0.1", 0};
    char why[HTTP_WHY_MAX];
    (void)state;
    assert_int_equal(server_metrics_open(&m, 2), ERR_OK);
    snprintf(m.shard[0].address, sizeof m.shard[0].address, "host:1");
    snprintf(m.shard[1].address, sizeof m.shard[1].address, "host:2");
    assert_int_equal(server_metrics_serve(&m, &at, why), ERR_OK);
    answer_has(&m, "/healthz", "HTTP/1.1 503 ");
    server_metrics_publish(&m.shard[0], &(struct ttcore_figures){.asks = 7, .uptime_ms = 250});
    answer_has(&m, "/healthz", "HTTP/1.1 503 ");
    answer_has(&m, "/healthz", "1 of 2 shards serve");
    answer_has(&m, "/metrics", "ttserver_shard_serves{shard=\"host:2\"} 0");
    server_metrics_publish(&m.shard[1], &(struct ttcore_figures){.asks = 8});
    answer_has(&m, "/healthz", "HTTP/1.1 200 ");
    answer_has(&m, "/metrics", "ttserver_asks_total{shard=\"host:1\"} 7\n");
    answer_has(&m, "/metrics", "ttserver_asks_total{shard=\"host:2\"} 8\n");
    answer_has(&m, "/metrics", "ttserver_uptime_seconds{shard=\"host:1\"} 0.25\n");
#define X(name, help) answer_has(&m, "/metrics", " ttserver_" #name "_total " help);
    TTCORE_COUNTERS(X, X)
#undef X
    pthread_mutex_lock(&m.shard[1].lock);
    m.shard[1].published_us -= (SERVER_METRICS_STALE_MS + 1000) * UINT64_C(1000);
    pthread_mutex_unlock(&m.shard[1].lock);
    answer_has(&m, "/healthz", "HTTP/1.1 503 "); /* its thread has left nothing for long */
    server_metrics_close(&m);
    server_metrics_close(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figures_become_metrics),
        cmocka_unit_test(shards_are_healthy_once_all_serve),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
