/* The link to Redis against real servers: calls, pipelines, forgotten scripts, lost connections,
 * silence, passwords, TLS, channels. test_redis_cluster.c has the clusters, test_redis_lies.c what
 * a server can say that is wrong. */
#include "tests/support/test_redis_link.h"

static const char *const scripts[] = {
    "return ARGV[1]",
    "return redis.call('incrby', KEYS[1], ARGV[1])",
    "return {KEYS[1], ARGV[1], #ARGV, false, 7}",
};
enum { ECHO, ADD, LIST, SCRIPTS };
enum { SLOWLY = 10 };

static void open_link(struct user *u, const struct redis_server *s, const char *login)
{
    char url[256];
    snprintf(url, sizeof url, "redis://%s127.0.0.1:%u/2", login, s->port);
    user_open(u, url, scripts, SCRIPTS);
}

/* A server of our own, and a link to it that is up. */
static void begin_up(struct redis_server *s, struct user *u)
{
    redis_begin(s);
    open_link(u, s, "");
    user_wait_up(u, true);
}

static void bytes_go_there_and_come_back(void **state)
{
    struct redis_server s;
    struct user u;
    (void)state;
    redis_begin(&s);
    open_link(&u, &s, "");
    u.slowness = SLOWLY;
    user_wait_up(&u, true);
    static const char key[] = "a\0b", text[] = "\r\n$-1\0x";
    const char *const argv[] = {key, text};
    const size_t length[] = {sizeof key - 1, sizeof text - 1};
    assert_true(redis_link_call(u.link, 0, LIST, 1, 2, argv, length, 5, user_now(&u)));
    user_wait_answers(&u, 1);
    assert_int_equal(u.last_tag, 5);
    assert_string_equal(u.last, "[a?b,??$-1?x,1,nil,7]");
    /* Errors of scripts are the user's. */
    const char *const wrong[] = {"k", "no number"};
    assert_true(redis_link_call(u.link, 0, ADD, 1, 2, wrong, (size_t[]){1, 9}, 7, user_now(&u)));
    user_wait_answers(&u, 2);
    assert_non_null(strstr(u.last, "ERR value is not an integer"));
    assert_int_equal(u.ups, 1);
    assert_int_equal(u.downs, 0);
    user_close(&u);
    redis_end(&s);
}

static void pipeline_is_answered_in_order(void **state)
{
    enum { CALLS = 10000 };
    struct redis_server s;
    struct user u;
    (void)state;
    redis_begin(&s);
    open_link(&u, &s, "");
    u.slowness = SLOWLY;
    user_wait_up(&u, true);
    u.expects_order = true;
    for (unsigned i = 0; i < CALLS; i++) {
        assert_true(user_add(&u, ADD, i));
        if (i == CALLS / 2) {
            redis_expect(s.port, "SCRIPT FLUSH", "+OK");
            u.expects_order = false; /* forgotten scripts are loaded, their calls sent again */
        }
    }
    user_wait_answers(&u, CALLS);
    assert_int_equal(u.lost, 0);
    assert_int_equal(u.errors, 0);
    char count[16];
    snprintf(count, sizeof count, "%d", CALLS);
    redis_expect(s.port, "EVAL \"redis.call('select',2) return redis.call('get','sum')\" 0", count);
    user_close(&u);
    redis_end(&s);
}

static void order_is_kept_while_nothing_is_wrong(void **state)
{
    struct redis_server s;
    struct user u;
    (void)state;
    redis_begin(&s);
    open_link(&u, &s, "");
    u.slowness = SLOWLY;
    user_wait_up(&u, true);
    u.expects_order = true;
    for (unsigned i = 0; i < 3000; i++) {
        assert_true(user_add(&u, ADD, i));
        if (i % 7 == 0) {
            redis_link_drain(u.link, user_now(&u));
        }
    }
    user_wait_answers(&u, 3000);
    user_close(&u);
    redis_end(&s);
}

static void killed_server_is_found_again(void **state)
{
    struct redis_server s;
    struct user u;
    (void)state;
    begin_up(&s, &u);
    kill(s.pid, SIGSTOP);
    for (unsigned i = 0; i < 100; i++) {
        assert_true(user_add(&u, ADD, i));
    }
    redis_kill(&s);
    user_wait_answers(&u, 100);
    assert_int_equal(u.lost, 100);
    user_wait_up(&u, false);
    assert_false(user_add(&u, ADD, 0));
    assert_non_null(strstr(u.why, "127.0.0.1:"));
    redis_run(&s);
    user_wait_up(&u, true);
    assert_true(user_add(&u, ADD, 1));
    user_wait_answers(&u, 101);
    assert_int_equal(u.lost, 100);
    assert_string_equal(u.last, "1");
    user_close(&u);
    redis_end(&s);
}

/* A server that is silent owes its answers for a while, then they are lost. */
static void silent_server_is_given_up(void **state)
{
    struct redis_server s;
    struct user u;
    (void)state;
    begin_up(&s, &u);
    kill(s.pid, SIGSTOP);
    assert_true(user_add(&u, ADD, 1));
    user_wait_answers(&u, 1);
    assert_int_equal(u.lost, 1);
    kill(s.pid, SIGCONT);
    user_wait_up(&u, false);
    assert_non_null(strstr(u.why, "does not answer"));
    user_wait_up(&u, true);
    assert_true(user_add(&u, ADD, 1));
    user_wait_answers(&u, 2);
    assert_int_equal(u.lost, 1);
    user_close(&u);
    redis_end(&s);
}

/* Nothing is asked, and still a dead one is known. */
static void silent_server_is_noticed_while_idle(void **state)
{
    struct redis_server s;
    struct user u;
    (void)state;
    begin_up(&s, &u);
    kill(s.pid, SIGSTOP);
    user_wait_up(&u, false);
    kill(s.pid, SIGCONT);
    user_wait_up(&u, true);
    user_close(&u);
    redis_end(&s);
}

static void wrong_password_is_said_and_not_repeated(void **state)
{
    static const char *const option[] = {"--requirepass", "correct-horse", NULL};
    struct redis_server s;
    struct user u;
    char dir[128];
    (void)state;
    redis_needed();
    redis_make_dir(dir);
    redis_start(&s, dir, option);
    open_link(&u, &s, "default:wrong-donkey@");
    user_wait_why(&u, "refuses our user or password (WRONGPASS)");
    assert_null(strstr(u.why, "donkey"));
    assert_false(redis_link_is_up(u.link, 0));
    user_close(&u);
    open_link(&u, &s, "");
    user_wait_why(&u, "NOAUTH");
    user_close(&u);
    open_link(&u, &s, ":correct-horse@");
    user_wait_up(&u, true);
    user_close(&u);
    open_link(&u, &s, "default:correct-%68orse@");
    user_wait_up(&u, true);
    user_close(&u);
    redis_kill(&s);
    redis_remove_dir(dir);
}

static void user_may_be_limited_to_our_keys(void **state)
{
    struct redis_server s;
    struct user u;
    (void)state;
    redis_begin(&s);
    redis_expect(s.port, "ACL SETUSER anna on >secret ~abdada:* resetchannels +@all", "+OK");
    open_link(&u, &s, "anna:secret@");
    user_wait_up(&u, true);
    assert_true(user_add(&u, ADD, 1)); /* the key "sum" */
    user_wait_answers(&u, 1);
    assert_int_equal(u.errors, 1);
    assert_true(redis_link_subscribe(u.link, "abdada:w"));
    user_wait_denied(&u, "NOPERM");
    user_close(&u);
    redis_end(&s);
}

static void a_replica_is_not_up_until_it_is_a_master(void **state)
{
    struct redis_server s;
    struct user u;
    (void)state;
    redis_begin(&s);
    open_link(&u, &s, "");
    assert_true(redis_link_subscribe(u.link, "one"));
    user_wait_up(&u, true);
    redis_expect(s.port, "REPLICAOF 127.0.0.1 1", "+OK");
    assert_true(user_add(&u, ADD, 1));
    user_wait_up(&u, false);
    assert_non_null(strstr(u.why, "replica"));
    unsigned ups = u.ups;
    redis_expect(s.port, "REPLICAOF NO ONE", "+OK");
    user_wait_up(&u, true);
    assert_int_equal(u.ups, ups + 1); /* its role was asked for */
    user_wait_published(&u, s.port, "one");
    user_close(&u);
    redis_end(&s);
}

static void channels_are_there_again_after_a_loss(void **state)
{
    struct redis_server s;
    struct user u;
    (void)state;
    redis_begin(&s);
    open_link(&u, &s, "");
    assert_true(redis_link_subscribe(u.link, "one"));
    assert_true(redis_link_subscribe(u.link, "two"));
    assert_true(redis_link_subscribe(u.link, "two"));
    user_wait_published(&u, s.port, "one");
    assert_true(redis_link_subscribe(u.link, "three"));
    user_wait_published(&u, s.port, "three");
    redis_kill(&s);
    user_wait_up(&u, false);
    redis_run(&s);
    user_wait_published(&u, s.port, "two");
    user_wait_published(&u, s.port, "three");
    user_wait_published(&u, s.port, "one");
    char name[8];
    for (unsigned i = 3; i < REDIS_CHANNELS_MAX; i++) {
        snprintf(name, sizeof name, "c%u", i);
        assert_true(redis_link_subscribe(u.link, name));
    }
    assert_false(redis_link_subscribe(u.link, "more"));
    user_close(&u);
    redis_end(&s);
}

/* Runs a command of openssl in the folder. */
static void openssl(const char *dir, const char *arguments)
{
    char line[1024];
    snprintf(line, sizeof line, "cd %s && openssl %s >>openssl-log 2>&1", dir, arguments);
    if (system(line) != 0) {
        fail_msg("openssl %s: see %s/openssl-log", arguments, dir);
    }
}

/* ca.crt, and server.crt of 127.0.0.1 signed by it; other.crt signs nothing. */
static void make_certificates(const char *dir)
{
    static const char self[] =
        "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2";
    char line[512];
    for (unsigned i = 0; i < 2; i++) {
        const char *name = i == 0 ? "ca" : "other";
        snprintf(line, sizeof line, "%s -subj /CN=%s -keyout %s.key -out %s.crt", self, name, name,
                 name);
        openssl(dir, line);
    }
    openssl(dir, "req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=server "
                 "-keyout server.key -out server.csr");
    snprintf(line, sizeof line, "%s/extensions", dir);
    FILE *file = fopen(line, "w");
    assert_non_null(file);
    fputs("subjectAltName=IP:127.0.0.1\n", file);
    fclose(file);
    openssl(dir, "x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 "
                 "-extfile extensions -out server.crt");
}

static void open_tls(struct user *u, const char *dir, const char *ca, const char *format,
                     unsigned port)
{
    char path[256], url[128];
    snprintf(path, sizeof path, "%s/%s", dir, ca);
    snprintf(url, sizeof url, format, port);
    setenv("ABDADA_REDIS_CA", path, 1);
    user_open(u, url, scripts, SCRIPTS);
    unsetenv("ABDADA_REDIS_CA");
}

static void tls_is_spoken_with_whom_we_trust(void **state)
{
    struct redis_server s;
    struct user u;
    char dir[128], port[16];
    (void)state;
    redis_needed();
    if (redis_is_missing("openssl")) {
        print_message("# skipped: no openssl here\n");
        skip();
    }
    redis_make_dir(dir);
    make_certificates(dir);
    unsigned tls_port = redis_free_port();
    snprintf(port, sizeof port, "%u", tls_port);
    const char *const option[] = {"--tls-port",
                                  port,
                                  "--tls-cert-file",
                                  "server.crt",
                                  "--tls-key-file",
                                  "server.key",
                                  "--tls-ca-cert-file",
                                  "ca.crt",
                                  "--tls-auth-clients",
                                  "no",
                                  NULL};
    redis_start(&s, dir, option);
    open_tls(&u, dir, "ca.crt", "rediss://127.0.0.1:%u/2", tls_port);
    u.slowness = SLOWLY;
    user_wait_up(&u, true);
    for (unsigned i = 0; i < 2000; i++) {
        assert_true(user_add(&u, ADD, i));
    }
    user_wait_answers(&u, 2000);
    assert_string_equal(u.last, "2000");
    /* More than a socket takes at once, both ways. */
    enum { LARGE = 8 << 20 };
    char *large = calloc(1, LARGE);
    assert_non_null(large);
    assert_true(redis_link_call(u.link, 0, ECHO, 0, 1, (const char *[]){large}, (size_t[]){LARGE},
                                1, user_now(&u)));
    user_wait_answers(&u, 2001);
    assert_int_equal(u.lost + u.errors, 0);
    free(large);
    redis_kill(&s);
    user_wait_up(&u, false);
    redis_run(&s);
    user_wait_up(&u, true);
    assert_true(redis_link_subscribe(u.link, "c"));
    user_wait_published(&u, s.port, "c");
    user_close(&u);
    open_tls(&u, dir, "other.crt", "rediss://127.0.0.1:%u", tls_port);
    user_wait_why(&u, "its certificate is refused");
    user_close(&u);
    open_tls(&u, dir, "ca.crt", "rediss://localhost:%u", tls_port); /* is not its name */
    user_wait_why(&u, "its certificate is refused");
    user_close(&u);
    open_tls(&u, dir, "server.key", "rediss://127.0.0.1:%u", tls_port);
    user_wait_why(&u, "not a file of certificates");
    user_close(&u);
    open_tls(&u, dir, "ca.crt", "rediss://127.0.0.1:%u", s.port);
    user_wait_why(&u, "TLS");
    user_close(&u);
    open_tls(&u, dir, "ca.crt", "redis://127.0.0.1:%u", tls_port);
    user_wait_why(&u, "rediss://");
    user_close(&u);
    redis_kill(&s);
    redis_remove_dir(dir);
}

static void nobody_there_is_said_once(void **state)
{
    struct user u;
    char url[128];
    (void)state;
    redis_needed();
    snprintf(url, sizeof url, "redis://127.0.0.1:%u", redis_free_port());
    user_open(&u, url, scripts, SCRIPTS);
    user_wait_why(&u, "Connection refused");
    unsigned downs = u.downs;
    for (unsigned i = 0; i < 30; i++) {
        user_serve(&u);
    }
    assert_int_equal(u.downs, downs);
    user_close(&u);
    /* No name has so long a part: nobody on the net is asked. */
    snprintf(url, sizeof url, "redis://%064d.invalid", 0);
    user_open(&u, url, scripts, SCRIPTS);
    user_wait_why(&u, "000.invalid:6379: ");
    user_close(&u);
}

static void slots_of_keys(void **state)
{
    (void)state;
    assert_int_equal(redis_link_slot("123456789", 9), 0x31c3 % REDIS_SLOTS);
    assert_int_equal(redis_link_slot("foo", 3), 12182);
    assert_int_equal(redis_link_slot("a{foo}b", 7), 12182);
    assert_int_equal(redis_link_slot("{foo}{bar}", 10), 12182);
    assert_int_equal(redis_link_slot("{}foo", 5), redis_link_slot("{}foo", 5));
    assert_int_not_equal(redis_link_slot("{}foo", 5), redis_link_slot("foo", 3));
    assert_int_equal(redis_link_slot("", 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slots_of_keys),
        cmocka_unit_test(bytes_go_there_and_come_back),
        cmocka_unit_test(order_is_kept_while_nothing_is_wrong),
        cmocka_unit_test(pipeline_is_answered_in_order),
        cmocka_unit_test(killed_server_is_found_again),
        cmocka_unit_test(silent_server_is_given_up),
        cmocka_unit_test(silent_server_is_noticed_while_idle),
        cmocka_unit_test(wrong_password_is_said_and_not_repeated),
        cmocka_unit_test(user_may_be_limited_to_our_keys),
        cmocka_unit_test(a_replica_is_not_up_until_it_is_a_master),
        cmocka_unit_test(channels_are_there_again_after_a_loss),
        cmocka_unit_test(tls_is_spoken_with_whom_we_trust),
        cmocka_unit_test(nobody_there_is_said_once),
    };
    return cmocka_run_group_tests_name("redis link", tests, NULL, NULL);
}
