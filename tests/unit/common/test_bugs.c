/* What is wrong in the program itself ends it at once, with a sentence: one check of each state
 * machine is made to fail, in a process of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/tt/history_sums.h"
#include "ttserver/core/actions.h"
#include "ttserver/core/job_table.h"
#include "ttserver/core/user_table.h"
#include "ttserver/net/connection.h"
#include "ttserver/net/turns.h"
#include "worker/engine/front_core.h"
#include "worker/engine/mailbox.h"
#include "worker/engine/worker_core.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void do_wrong(void (*wrong)(void), int err)
{
    const struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    signal(SIGABRT, SIG_DFL);
    dup2(err, STDERR_FILENO);
    wrong();
    _exit(0);
}

static void expect_bug(void (*wrong)(void), const char *sentence)
{
    char said[1024] = "";
    size_t length = 0;
    int pipes[2], status;
    assert_int_equal(pipe(pipes), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        do_wrong(wrong, pipes[1]);
    }
    close(pipes[1]);
    for (ssize_t n = 1; n > 0 && length<sizeof said - 1; length += n> 0 ? (size_t)n : 0) {
        n = read(pipes[0], said + length, sizeof said - 1 - length);
    }
    close(pipes[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGABRT);
    assert_non_null(strstr(said, ": bug: "));
    assert_non_null(strstr(said, sentence));
}

/* ---- the shard ---- */

static void count_fewer_jobs_than_are_open(void)
{
    struct ttcore_jobs jobs;
    struct proto_message post = {.type = PROTO_JOB_POST, .job_post = {.job = 1}};
    if (ttcore_jobs_open(&jobs, 1) == ERR_OK) {
        ttcore_jobs_add(&jobs, &post, 1, 1, 0);
        jobs.open--;
        ttcore_jobs_add(&jobs, &post, 1, 1, 0);
    }
}

static void let_a_user_leave_twice(void)
{
    struct ttcore_users users;
    if (ttcore_users_open(&users, 2, 1) == ERR_OK) {
        struct ttcore_user *user = ttcore_users_of(&users, 7, false);
        ttcore_users_join(&users, user);
        ttcore_users_leave(&users, user);
        ttcore_users_leave(&users, user);
    }
}

static void send_to_a_target_without_a_route(void)
{
    struct ttcore_actions actions = {.targets_max = 1};
    ttcore_actions_target(&actions, (const uint8_t *)"", 0, PROTO_VERSION);
}

static void encode_behind_the_room(void)
{
    static const uint8_t route[1];
    struct ttcore_target target = {route, 1, PROTO_VERSION};
    struct ttcore_actions actions = {.bytes_used = 1, .targets = 1, .target = &target};
    ttcore_actions_send(&actions, &(struct proto_message){.type = PROTO_BYE}, 0, 1);
}

static void add_to_a_weight_that_there_is_not(void)
{
    struct tt_history *history = calloc(1, sizeof *history);
    const struct tt_weight weight = {.index = TT_WEIGHTS - 1, .weight = 1};
    struct tt_weight beyond = weight;
    beyond.index++;
    if (history != NULL) {
        tt_history_add(history, &weight, 1);
        tt_history_add(history, &beyond, 1);
    }
}

static void the_shard_ends_where_its_books_are_wrong(void **state)
{
    (void)state;
    expect_bug(count_fewer_jobs_than_are_open, "a slot is free where not all are open");
    expect_bug(let_a_user_leave_twice, "who leaves was there");
    expect_bug(send_to_a_target_without_a_route, "a target has a route");
    expect_bug(encode_behind_the_room, "what is encoded has room");
    expect_bug(add_to_a_weight_that_there_is_not, "a weight has a place");
}

/* ---- its network ---- */

static void put_a_message_behind_the_buffer(void)
{
    struct connection c = {.out_end = 1};
    connection_put(&c, (const uint8_t *)"", 1);
}

static void read_behind_the_buffer(void)
{
    uint8_t in[4] = {0};
    struct connection c = {.in = in, .in_size = 1};
    connection_keep(&c, in, 4);
}

static void talk_before_the_handshake(void)
{
    uint8_t out[ZMTP_OVERHEAD + 1];
    const struct zmtp_server server = {.message_max = 1};
    struct zmtp zmtp;
    zmtp_init(&zmtp, &server);
    zmtp_put(&zmtp, (const uint8_t *)"", 1, out);
}

static void close_a_user_who_waits(void)
{
    struct turns turns;
    struct turns_user user;
    struct turns_member member = {.user = &user};
    turns_init(&turns);
    turns_user_init(&user);
    turns_wait(&turns, &member);
    turns_user_close(&turns, &user);
}

static void the_network_ends_where_a_connection_is_wrong(void **state)
{
    (void)state;
    expect_bug(put_a_message_behind_the_buffer, "what waits to be sent is in its buffer");
    expect_bug(read_behind_the_buffer, "what is kept is here");
    expect_bug(talk_before_the_handshake, "ZMTP_AT_TRAFFIC");
    expect_bug(close_a_user_who_waits, "who goes has nobody who waits");
}

/* ---- searchers ---- */

static const struct job_event from_nowhere = {.kind = JOB_STOPPED, .source = JOB_SOURCES_MAX};

static void report_from_nowhere(void)
{
    struct front_core core;
    if (front_core_open(&core, 0) == ERR_OK) {
        front_core_event(&core, &from_nowhere, 0);
    }
}

static void offer_from_nowhere(void)
{
    struct worker_core *core = calloc(1, sizeof *core);
    if (core != NULL) {
        worker_core_event(core, &from_nowhere, 0);
    }
}

static void send_to_nobody(void)
{
    struct mailboxes *boxes;
    const struct peer_message m = {.job = 7, .kind = STEAL_REQUEST};
    if (mailboxes_open(&boxes, 1, true) == ERR_OK && mailboxes_begin(boxes, 7, true) == ERR_OK) {
        const struct peer_port *port = mailboxes_port(boxes, 0, NULL);
        port->send(port->self, 1, &m);
    }
}

static void searchers_end_where_they_speak_to_nobody(void **state)
{
    (void)state;
    expect_bug(report_from_nowhere, "each source has a bit");
    expect_bug(offer_from_nowhere, "each source has a bit");
    expect_bug(send_to_nobody, "who gets a message is known here");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_shard_ends_where_its_books_are_wrong),
        cmocka_unit_test(the_network_ends_where_a_connection_is_wrong),
        cmocka_unit_test(searchers_end_where_they_speak_to_nobody),
    };
    return cmocka_run_group_tests_name("bugs", tests, NULL, NULL);
}
