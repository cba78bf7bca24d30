/* libabdada misused in every way that a call can see: each is an error, and does nothing. */
#include "tests/support/test_lib.h"

#include <stdatomic.h>
#include <sys/time.h>

/* Programs were compiled with these: another size is another soname. */
_Static_assert(sizeof(struct abdada_answer) == 12 && sizeof(struct abdada_peeked) == 12 &&
                   sizeof(struct abdada_ask_op) == 16 && sizeof(struct abdada_store_op) == 16 &&
                   sizeof(struct abdada_release_op) == 16 && sizeof(struct abdada_peek_op) == 16 &&
                   sizeof(struct abdada_figure) == 40,
               "arrays that programs give and get");

static struct abdada *table, *front, *closed;
static struct abdada_answer answer;
static struct abdada_peeked peeked;
static struct abdada_job_event event;
static struct abdada_figure figures[4];
static char text[64];
static uint64_t job_id;
static abdada_ticket ticket, ended;

static int start(void **state)
{
    (void)state;
    static const char *const more[] = {"--inflight-age-max", "400", NULL};
    server_start(&server, "127.0.0.1:0", more);
    struct abdada_options options = options_for(&server, 1);
    table = open_with(&options);
    closed = open_with(&options);
    assert_int_equal(abdada_close(closed), ABDADA_OK);
    options.role = ABDADA_FRONT_END;
    front = open_with(&options);
    struct abdada_ask_op op = {.key = 1, .alpha = -1, .beta = 1, .depth = 1};
    assert_int_equal(abdada_ask_send(table, &op, &ended), ABDADA_OK);
    assert_int_equal(abdada_ask_await(table, ended, -1, &answer), ABDADA_OK);
    assert_int_equal(abdada_release(table, 1, 1), ABDADA_OK); /* nothing is to be renewed */
    return 0;
}

static int finish(void **state)
{
    (void)state;
    abdada_close(table);
    abdada_close(front);
    server_end(&server, SIGTERM);
    return 0;
}

struct row {
    const char *call;
    int got, wanted;
};

static void compare(const struct row *row, unsigned rows)
{
    unsigned wrong = 0;
    for (unsigned i = 0; i < rows; i++) {
        if (row[i].got != row[i].wanted) {
            print_error("%s: got %d (%s), wanted %d (%s)\n", row[i].call, row[i].got,
                        abdada_error_text(row[i].got), row[i].wanted,
                        abdada_error_text(row[i].wanted));
            wrong++;
        }
    }
    assert_int_equal(wrong, 0);
}

#define ROW(expected, call)            \
    {                                  \
#call, call, ABDADA_##expected \
    }
#define COMPARE(rows) compare(rows, sizeof(rows) / sizeof(rows)[0])

/* `t` is NULL or closed. */
static void every_call_refuses(struct abdada *t)
{
    struct abdada_ask_op ask = {.key = 1, .alpha = -1, .beta = 1, .depth = 1};
    struct abdada_store_op store = {.key = 1, .depth = 1, .bound = ABDADA_EXACT};
    struct abdada_release_op release = {.key = 1};
    struct abdada_peek_op peek = {.key = 1};
    struct abdada_job job = {.struct_size = sizeof job};
    const struct row row[] = {
        ROW(E_HANDLE, abdada_close(t)),
        ROW(E_HANDLE, abdada_shards(t)),
        ROW(E_HANDLE, abdada_connected(t)),
        ROW(E_HANDLE, abdada_wait_connected(t, 1)),
        ROW(E_HANDLE, abdada_wait_connected(NULL, -1)),
        ROW(E_HANDLE, abdada_shard_name(NULL, 0, NULL, 0)),
        ROW(E_HANDLE, abdada_refusal(NULL, NULL, 0)),
        ROW(E_HANDLE, abdada_shard_name(t, 0, text, sizeof text)),
        ROW(E_HANDLE, abdada_refusal(t, text, sizeof text)),
        ROW(E_HANDLE, abdada_ask(t, 1, 1, -1, 1, 0, &answer)),
        ROW(E_HANDLE, abdada_store(t, 1, 1, 0, ABDADA_EXACT, 0)),
        ROW(E_HANDLE, abdada_release(t, 1, 1)),
        ROW(E_HANDLE, abdada_peek(t, 1, 1, &peeked)),
        ROW(E_HANDLE, abdada_ask_many(t, &ask, 1, &answer)),
        ROW(E_HANDLE, abdada_store_many(t, &store, 1)),
        ROW(E_HANDLE, abdada_release_many(t, &release, 1)),
        ROW(E_HANDLE, abdada_peek_many(t, &peek, 1, &peeked)),
        ROW(E_HANDLE, abdada_flush(t)),
        ROW(E_HANDLE, abdada_share(t, 1, 1, 0, ABDADA_EXACT, 0)),
        ROW(E_HANDLE, abdada_share_many(t, &store, 1)),
        ROW(E_HANDLE, abdada_take_shared(t, &store, 1)),
        ROW(E_HANDLE, abdada_new_search(t, 1)),
        ROW(E_HANDLE, abdada_ask_send(t, &ask, &ticket)),
        ROW(E_HANDLE, abdada_ask_poll(t, ended, &answer)),
        ROW(E_HANDLE, abdada_ask_await(t, ended, 1, &answer)),
        ROW(E_HANDLE, abdada_cancel(t, ended)),
        ROW(E_HANDLE, abdada_serve(t)),
        ROW(E_HANDLE, abdada_fd(t)),
        ROW(E_HANDLE, abdada_deadline_ms(t)),
        ROW(E_HANDLE, abdada_stats(t, figures, 4)),
        ROW(E_HANDLE, abdada_shard_stats(t, 0, figures, 4)),
        ROW(E_HANDLE, abdada_job_post(t, &job, &job_id)),
        ROW(E_HANDLE, abdada_job_next(t, 1, &event)),
        ROW(E_HANDLE, abdada_job_stop(t, 1)),
    };
    COMPARE(row);
}

static void null_is_no_handle(void **state)
{
    (void)state;
    every_call_refuses(NULL);
}

static void a_closed_handle_is_none(void **state)
{
    (void)state;
    every_call_refuses(closed);
}

static void asks_are_checked(void **state)
{
    (void)state;
    struct abdada_ask_op two[] = {{.key = 1, .alpha = -1, .beta = 1, .depth = 1},
                                  {.key = 2, .alpha = 1, .beta = 1, .depth = 1}};
    struct abdada_answer out[2];
    uint64_t before = figure(table, -1, "asks");
    const struct row row[] = {
        ROW(E_ARGUMENT, abdada_ask(table, 1, 1, -1, 1, 0, NULL)),
        ROW(E_ARGUMENT, abdada_ask(table, 1, 251, -1, 1, 0, &answer)),
        ROW(E_ARGUMENT, abdada_ask(table, 1, 255, -1, 1, 0, &answer)),
        ROW(E_ARGUMENT, abdada_ask(table, 1, UINT32_MAX, -1, 1, 0, &answer)),
        ROW(E_ARGUMENT, abdada_ask(table, 1, 1, 1, 1, 0, &answer)),
        ROW(E_ARGUMENT, abdada_ask(table, 1, 1, 2, 1, 0, &answer)),
        ROW(E_ARGUMENT, abdada_ask(table, 1, 1, -32768, 1, 0, &answer)),
        ROW(E_ARGUMENT, abdada_ask(table, 1, 1, -1, 32768, 0, &answer)),
        ROW(E_ARGUMENT, abdada_ask(table, 1, 1, INT32_MIN, INT32_MAX, 0, &answer)),
        ROW(E_ARGUMENT, abdada_ask(table, 1, 1, -1, 1, 4, &answer)),
        ROW(E_ARGUMENT, abdada_ask(table, 1, 1, -1, 1, UINT32_MAX, &answer)),
        ROW(E_ARGUMENT, abdada_ask_many(table, two, 2, out)),
        ROW(E_ARGUMENT, abdada_ask_many(table, NULL, 1, out)),
        ROW(E_ARGUMENT, abdada_ask_many(table, two, 1, NULL)),
        ROW(E_ARGUMENT, abdada_ask_send(table, &two[1], &ticket)),
        ROW(E_ARGUMENT, abdada_ask_send(table, NULL, &ticket)),
        ROW(E_ARGUMENT, abdada_ask_send(table, &two[0], NULL)),
    };
    COMPARE(row);
    assert_int_equal(figure(table, -1, "asks"), before);
}

/* A search that does not check the code goes on alone. */
static void an_ask_that_is_wrong_is_answered_alone(void **state)
{
    (void)state;
    struct abdada_ask_op op = {.key = 1, .alpha = 5, .beta = 5, .depth = 1};
    struct abdada *const handle[] = {NULL, closed, table};
    for (unsigned i = 0; i < 3; i++) {
        answer = (struct abdada_answer){.verdict = ABDADA_CUT};
        assert_true(abdada_ask(handle[i], 1, 251, -3, 3, 0, &answer) < 0);
        assert_true(answer.verdict == ABDADA_ALONE && answer.alpha == -3 && answer.beta == 3);
        answer = (struct abdada_answer){.verdict = ABDADA_CUT};
        assert_true(abdada_ask_many(handle[i], &op, 1, &answer) < 0);
        assert_int_equal(answer.verdict, ABDADA_ALONE);
        answer = (struct abdada_answer){.verdict = ABDADA_CUT};
        assert_true(abdada_ask(handle[i], 1, 1, -40000, 40000, 0, &answer) < 0);
        assert_true(answer.verdict == ABDADA_ALONE && answer.alpha == -32767 &&
                    answer.beta == 32767);
        answer = (struct abdada_answer){.verdict = ABDADA_CUT};
        assert_true(abdada_ask_poll(handle[i], ended, &answer) < 0);
        assert_int_equal(answer.verdict, ABDADA_ALONE);
    }
}

static void stores_releases_and_peeks_are_checked(void **state)
{
    (void)state;
    struct abdada_store_op store[] = {{.bound = ABDADA_EXACT}, {.bound = 4}};
    struct abdada_release_op release[] = {{.depth = 250}, {.depth = 251}};
    struct abdada_peek_op peek[] = {{.depth = 250}, {.depth = 255}};
    struct abdada_peeked out[2];
    const struct row row[] = {
        ROW(E_ARGUMENT, abdada_store(table, 1, 251, 0, ABDADA_EXACT, 0)),
        ROW(E_ARGUMENT, abdada_store(table, 1, 255, 0, ABDADA_EXACT, 0)),
        ROW(E_ARGUMENT, abdada_store(table, 1, 1, -32768, ABDADA_EXACT, 0)),
        ROW(E_ARGUMENT, abdada_store(table, 1, 1, 32768, ABDADA_EXACT, 0)),
        ROW(E_ARGUMENT, abdada_store(table, 1, 1, 0, 0, 0)),
        ROW(E_ARGUMENT, abdada_store(table, 1, 1, 0, 4, 0)),
        ROW(E_ARGUMENT, abdada_store(table, 1, 1, 0, ABDADA_EXACT, 65536)),
        ROW(E_ARGUMENT, abdada_store_many(table, store, 2)),
        ROW(E_ARGUMENT, abdada_store_many(table, NULL, 1)),
        ROW(E_ARGUMENT, abdada_share(table, 1, 251, 0, ABDADA_EXACT, 0)),
        ROW(E_ARGUMENT, abdada_share(table, 1, 1, 0, 0, 0)),
        ROW(E_ARGUMENT, abdada_share_many(table, store, 2)),
        ROW(E_ARGUMENT, abdada_share_many(table, NULL, 1)),
        ROW(E_ARGUMENT, abdada_take_shared(table, NULL, 1)),
        ROW(E_ROLE, abdada_share(table, 1, 1, 0, ABDADA_EXACT, 0)), /* opened without a feed */
        ROW(E_ROLE, abdada_take_shared(table, store, 1)),
        ROW(E_ARGUMENT, abdada_release(table, 1, 251)),
        ROW(E_ARGUMENT, abdada_release(table, 1, 257)),
        ROW(E_ARGUMENT, abdada_release_many(table, release, 2)),
        ROW(E_ARGUMENT, abdada_release_many(table, NULL, 1)),
        ROW(E_ARGUMENT, abdada_peek(table, 1, 251, &peeked)),
        ROW(E_ARGUMENT, abdada_peek(table, 1, 256, &peeked)),
        ROW(E_ARGUMENT, abdada_peek(table, 1, 1, NULL)),
        ROW(E_ARGUMENT, abdada_peek_many(table, peek, 2, out)),
        ROW(E_ARGUMENT, abdada_peek_many(table, NULL, 1, out)),
        ROW(E_ARGUMENT, abdada_peek_many(table, peek, 1, NULL)),
        ROW(OK, abdada_release(table, 424242, 9)), /* in which we are not */
    };
    COMPARE(row);
    assert_int_equal(abdada_peek(table, 0, 1, &peeked), ABDADA_OK);
    assert_int_equal(peeked.depth, 0);
}

static void tickets_are_checked(void **state)
{
    (void)state;
    struct abdada_ask_op op = {.key = 3, .alpha = -1, .beta = 1, .depth = 1};
    assert_int_equal(abdada_ask_send(table, &op, &ticket), ABDADA_OK);
    const struct row row[] = {
        ROW(E_TICKET, abdada_ask_poll(table, 0, &answer)),
        ROW(E_TICKET, abdada_ask_poll(table, ended, &answer)),
        ROW(E_TICKET, abdada_ask_poll(table, ticket + 1, &answer)),
        ROW(E_TICKET, abdada_ask_poll(table, ticket ^ 0x80000000, &answer)),
        ROW(E_TICKET, abdada_ask_await(table, ended, 1, &answer)),
        ROW(E_TICKET, abdada_ask_await(front, ticket, 1, &answer)), /* of another handle */
        ROW(E_TICKET, abdada_cancel(table, ended)),
        ROW(E_TICKET, abdada_cancel(table, 0)),
        ROW(E_ARGUMENT, abdada_ask_poll(table, ticket, NULL)),
        ROW(E_ARGUMENT, abdada_ask_await(table, ticket, 1, NULL)),
        ROW(OK, abdada_ask_await(table, ticket, -1, &answer)),
        ROW(E_TICKET, abdada_ask_await(table, ticket, -1, &answer)),
        ROW(E_TICKET, abdada_cancel(table, ticket)),
    };
    COMPARE(row);
}

static struct abdada_ask_op changing = {.key = 4, .alpha = -1, .beta = 1, .depth = 1};
static atomic_uint changes;

static void on_alarm(int signal)
{
    (void)signal;
    const bool is_right = atomic_fetch_add(&changes, 1) % 2 == 0;
    changing.alpha = is_right ? -1 : 2;
    changing.depth = is_right ? 1 : UINT8_MAX;
}

static void an_ask_that_changes_during_the_call_ends_nothing(void **state)
{
    enum { CHANGES = 200, OFTEN_US = 100 };
    const struct sigaction action = {.sa_handler = on_alarm};
    const struct itimerval often = {{0, OFTEN_US}, {0, OFTEN_US}}, never = {{0, 0}, {0, 0}};
    (void)state;
    assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
    assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
    while (atomic_load(&changes) < CHANGES) {
        if (abdada_ask_send(table, &changing, &ticket) == ABDADA_OK) {
            assert_int_equal(abdada_cancel(table, ticket), ABDADA_OK);
        }
    }
    atomic_store(&changes, 0);
    while (atomic_load(&changes) < CHANGES) {
        if (abdada_ask_many(table, &changing, 1, &answer) == ABDADA_OK) {
            assert_int_equal(abdada_release(table, changing.key, 1), ABDADA_OK);
        }
    }
    assert_int_equal(abdada_ask(table, 6, 8, -1, 1, 0, &answer), ABDADA_OK);
    const uint64_t asks = figure(table, -1, "asks");
    WAIT_FOR((abdada_serve(table), figure(table, -1, "asks")) >= asks + 3); /* renewals */
    assert_int_equal(abdada_release(table, 6, 8), ABDADA_OK);
    assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
}

static void connections_and_figures_are_checked(void **state)
{
    (void)state;
    const struct row row[] = {
        ROW(E_ARGUMENT, abdada_wait_connected(table, -1)),
        ROW(E_UNKNOWN, abdada_shard_name(table, -1, text, sizeof text)),
        ROW(E_UNKNOWN, abdada_shard_name(table, 1, text, sizeof text)),
        ROW(E_ARGUMENT, abdada_shard_name(table, 0, NULL, 10)),
        ROW(E_ARGUMENT, abdada_shard_name(table, 0, text, 0)),
        ROW(OK, abdada_shard_name(table, 0, text, 1)),
        ROW(E_ARGUMENT, abdada_refusal(table, NULL, 10)),
        ROW(E_ARGUMENT, abdada_refusal(table, text, 0)),
        ROW(E_ARGUMENT, abdada_stats(table, NULL, 1)),
        ROW(E_ARGUMENT, abdada_shard_stats(table, 0, NULL, 1)),
        ROW(E_UNKNOWN, abdada_shard_stats(table, -1, figures, 4)),
        ROW(E_UNKNOWN, abdada_shard_stats(table, 1, figures, 4)),
    };
    COMPARE(row);
    assert_string_equal(text, "");
}

static void jobs_are_checked(void **state)
{
    (void)state;
    static char too_long[2000];
    memset(too_long, 'a', sizeof too_long - 1);
    struct abdada_job job = {.struct_size = sizeof job}, none = {.struct_size = 0};
    struct abdada_job both = job, half = job, unknown = job, deep = job, deep_remote = job,
                      texts[3];
    both.flags = ABDADA_JOB_STRICT | ABDADA_JOB_FULL;
    half.namespace_id = 1;
    unknown.flags = 16;
    deep.depth = 101;
    deep_remote.remote_depth = 255;
    for (unsigned i = 0; i < 3; i++) {
        texts[i] = job;
    }
    texts[0].game = texts[1].position = texts[2].algorithm = too_long;
    struct {
        struct abdada_job job;
        uint64_t more;
    } newer = {.job = job, .more = 1};
    newer.job.struct_size = sizeof newer;
    const struct row row[] = {
        ROW(E_ROLE, abdada_job_post(table, &job, &job_id)),
        ROW(E_ROLE, abdada_job_next(table, 0, &event)),
        ROW(E_ROLE, abdada_job_stop(table, 1)),
        ROW(E_ARGUMENT, abdada_job_post(front, NULL, &job_id)),
        ROW(E_ARGUMENT, abdada_job_post(front, &job, NULL)),
        ROW(E_ARGUMENT, abdada_job_post(front, &none, &job_id)),
        ROW(E_ARGUMENT, abdada_job_post(front, &both, &job_id)),
        ROW(E_ARGUMENT, abdada_job_post(front, &half, &job_id)),
        ROW(E_ARGUMENT, abdada_job_post(front, &unknown, &job_id)),
        ROW(E_ARGUMENT, abdada_job_post(front, &deep, &job_id)),
        ROW(E_ARGUMENT, abdada_job_post(front, &deep_remote, &job_id)),
        ROW(E_ARGUMENT, abdada_job_post(front, &texts[0], &job_id)),
        ROW(E_ARGUMENT, abdada_job_post(front, &texts[1], &job_id)),
        ROW(E_ARGUMENT, abdada_job_post(front, &texts[2], &job_id)),
        ROW(E_ARGUMENT, abdada_job_post(front, &newer.job, &job_id)),
        ROW(E_ARGUMENT, abdada_job_next(front, 0, NULL)),
        ROW(WAITING, abdada_job_next(front, 0, &event)),
        ROW(E_UNKNOWN, abdada_job_stop(front, 0)),
        ROW(E_UNKNOWN, abdada_job_stop(front, 77)),
    };
    COMPARE(row);
    deep.depth = 251;
    deep.game = "uci:any";
    assert_int_equal(abdada_job_post(front, &deep, &job_id), ABDADA_E_ARGUMENT);
    deep.depth = 250;
    assert_int_equal(abdada_job_post(front, &deep, &job_id), ABDADA_OK);
    assert_int_equal(abdada_job_stop(front, job_id), ABDADA_OK);
    newer.more = 0;
    assert_int_equal(abdada_job_post(front, &newer.job, &job_id), ABDADA_OK);
    assert_int_equal(abdada_job_stop(front, job_id), ABDADA_OK);
}

static int open_changed(void (*change)(struct abdada_options *options), const char *begins)
{
    struct abdada_options options = options_for(&server, 1);
    struct abdada *t = table;
    char why[256] = "";
    options.why = why;
    options.why_size = sizeof why;
    change(&options);
    int result = abdada_open(&t, &options);
    if (result == ABDADA_OK) {
        abdada_close(t);
        return result;
    }
    assert_null(t);
    assert_memory_equal(why, begins, strlen(begins));
    assert_null(strchr(why, '\n'));
    return result;
}

#define CHANGE(name, statement)                \
    static void name(struct abdada_options *o) \
    {                                          \
        statement;                             \
    }
CHANGE(nothing, (void)o)
CHANGE(no_size, o->struct_size = 0)
CHANGE(small_size, o->struct_size = 16)
CHANGE(first_size, o->struct_size = offsetof(struct abdada_options, why_size) + sizeof(size_t))
CHANGE(less_size, o->struct_size = offsetof(struct abdada_options, why_size))
CHANGE(redis_url, o->servers = "rediss://127.0.0.1:1")
CHANGE(huge_size, o->struct_size = (size_t)-1)
CHANGE(no_servers, o->servers = NULL)
CHANGE(empty_servers, o->servers = "")
CHANGE(bad_servers, o->servers = "127.0.0.1")
CHANGE(bad_port, o->servers = "127.0.0.1:99999")
CHANGE(bad_url, o->servers = "redis://")
CHANGE(other_url, o->servers = "http://127.0.0.1:80")
CHANGE(bad_role, o->role = 2)
CHANGE(bad_flags, o->flags = 4)
CHANGE(deep_share, o->share_depth = 64)
CHANGE(soon, o->answer_ms = 4)
CHANGE(late, o->answer_ms = 10001)
CHANGE(tickets, o->tickets = 129)
CHANGE(no_why, (o->why = NULL, o->why_size = 10))
CHANGE(no_keys, o->keys = "/nowhere/at/all")

static void options_are_checked(void **state)
{
    (void)state;
    struct abdada_options options = options_for(&server, 1);
    struct abdada *t = table;
    const struct row row[] = {
        ROW(E_ARGUMENT, abdada_open(NULL, &options)),
        ROW(E_ARGUMENT, abdada_open(&t, NULL)),
        ROW(OK, open_changed(nothing, "")),
        ROW(E_ARGUMENT, open_changed(no_size, "")),
        ROW(E_ARGUMENT, open_changed(small_size, "")),
        ROW(E_ARGUMENT, open_changed(huge_size, "")),
        ROW(E_ARGUMENT, open_changed(less_size, "")),
        ROW(OK, open_changed(first_size, "")),
#ifdef HAVE_REDIS
        ROW(OK, open_changed(redis_url, "")),
#else
        ROW(E_UNSUPPORTED, open_changed(redis_url, "this build has no ")),
#endif
        ROW(E_ARGUMENT, open_changed(no_servers, "servers: NULL")),
        ROW(E_ADDRESS, open_changed(empty_servers, "servers: ")),
        ROW(E_ADDRESS, open_changed(bad_servers, "servers: ")),
        ROW(E_ADDRESS, open_changed(bad_port, "servers: ")),
        ROW(E_ADDRESS, open_changed(bad_url, "")),
        ROW(E_ADDRESS, open_changed(other_url, "")),
        ROW(E_ARGUMENT, open_changed(bad_role, "role: ABDADA_TABLE or ")),
        ROW(E_ARGUMENT, open_changed(bad_flags, "flags: ")),
        ROW(E_ARGUMENT, open_changed(deep_share, "share_depth: ")),
        ROW(E_ARGUMENT, open_changed(soon, "answer_ms: ")),
        ROW(E_ARGUMENT, open_changed(late, "answer_ms: ")),
        ROW(E_ARGUMENT, open_changed(tickets, "tickets: ")),
        ROW(E_ARGUMENT, open_changed(no_why, "")),
        ROW(E_KEYS, open_changed(no_keys, "/nowhere/at/all")),
    };
    COMPARE(row);
    assert_null(t);
}

static void every_error_has_words_of_its_own(void **state)
{
    (void)state;
    for (int i = -13; i <= 1; i++) {
        assert_string_not_equal(abdada_error_text(i), "unknown error");
        for (int k = -13; k < i; k++) {
            assert_string_not_equal(abdada_error_text(i), abdada_error_text(k));
        }
    }
    assert_string_equal(abdada_error_text(-14), "unknown error");
    assert_string_equal(abdada_error_text(2), "unknown error");
    assert_string_equal(abdada_version(), ABDADA_VERSION);
    assert_true(abdada_hash("a") != abdada_hash("b") && abdada_hash(NULL) == 0);
    assert_true(abdada_mix(1) != abdada_mix(2) && abdada_mix(1) >> 56 != abdada_mix(2) >> 56);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(null_is_no_handle),
        cmocka_unit_test(a_closed_handle_is_none),
        cmocka_unit_test(asks_are_checked),
        cmocka_unit_test(an_ask_that_is_wrong_is_answered_alone),
        cmocka_unit_test(stores_releases_and_peeks_are_checked),
        cmocka_unit_test(tickets_are_checked),
        cmocka_unit_test(an_ask_that_changes_during_the_call_ends_nothing),
        cmocka_unit_test(connections_and_figures_are_checked),
        cmocka_unit_test(jobs_are_checked),
        cmocka_unit_test(options_are_checked),
        cmocka_unit_test(every_error_has_words_of_its_own),
    };
    return cmocka_run_group_tests(tests, start, finish);
}
