/* What is wrong in the program itself ends it at once, with a sentence: one check of each state
 * machine is made to fail, in a process of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/test_remote.h"
#include "tests/support/test_tt.h"
#include "ttserver/core/actions.h"
#include "ttserver/core/job_table.h"
#include "ttserver/core/user_table.h"
#include "ttserver/net/connection.h"
#include "ttserver/net/turns.h"
#include "worker/engine/engine_state.h"
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
    struct proto_message post = {.type = PROTO_JOB_POST, .job = {.job = 1}};
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
    ttcore_actions_target(&actions, (const uint8_t *)"", 0);
}

static void encode_behind_the_room(void)
{
    static const uint8_t route[1];
    struct ttcore_target target = {route, 1};
    struct ttcore_actions actions = {.bytes_used = 1, .targets = 1, .target = &target};
    ttcore_actions_send(&actions, &(struct proto_message){.type = PROTO_BYE}, 0, 1);
}

static void the_shard_ends_where_its_books_are_wrong(void **state)
{
    (void)state;
    expect_bug(count_fewer_jobs_than_are_open, "a slot is free where not all are open");
    expect_bug(let_a_user_leave_twice, "who leaves was there");
    expect_bug(send_to_a_target_without_a_route, "a target has a route");
    expect_bug(encode_behind_the_room, "what is encoded has room");
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
    zmtp_put(&zmtp, false, (const uint8_t *)"", 1, out);
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

static const struct client_event from_nowhere = {CLIENT_SHARD_UP, CLIENT_SHARDS_MAX};

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
        worker_core_event(core, &from_nowhere, 0, 0);
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

static void idle_while_it_searches(void)
{
    static struct worker_core core;
    static struct worker_actions actions;
    core.running.job = 7;
    worker_core_idle(&core, 0, &actions);
}

static void write_about_no_bag(void)
{
    const struct bag_letter letter = {.kind = BAG_HAS};
    mailbox_send(NULL, 0, 1, &letter);
}

static void begin_in_the_middle_of_a_node(void)
{
    struct world *world = world_open();
    const struct tt_ask ask = {.key = 78, .alpha = -1, .beta = 1, .depth = 5, .flags = TT_STRICT};
    struct table_ticket ticket = {.later = false};
    struct tt_answer answer;
    peer_open(world, 0, 0, 0);
    struct remote *remote = world->peer[0].remote;
    const struct table_port port = remote_table_port(remote);
    remote_begin(remote, 2, true, false);
    tt_pose(&port, &ask, &ticket, &answer);
    remote_begin(remote, 2, true, false);
}

static void run_twice(void)
{
    const struct engine_options options = {.threads = 1, .hash_bytes = 1 << 20};
    const struct job job = {.id = 7};
    struct engine *engine;
    char why[ENGINE_WHY_MAX];
    if (engine_open(&engine, &options, why) == ERR_OK) {
        engine_begin(engine, &job, 1, false);
        engine_begin(engine, &job, 1, false);
    }
}

static void report_no_refusal(void)
{
    const struct engine_options options = {.threads = 1, .hash_bytes = 1 << 20};
    struct engine *engine;
    char why[ENGINE_WHY_MAX];
    if (engine_open(&engine, &options, why) == ERR_OK) {
        engine_report_refusal(engine, NULL, NULL);
    }
}

static void a_run_ends_where_its_parts_disagree(void **state)
{
    (void)state;
    expect_bug(idle_while_it_searches, "who is idle searches no job");
    expect_bug(write_about_no_bag, "a letter of a bag fits, and is of a job");
    expect_bug(begin_in_the_middle_of_a_node, "no node is open between searches");
    expect_bug(run_twice, "one run at a time");
    expect_bug(report_no_refusal, "there is a refusal to report");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_shard_ends_where_its_books_are_wrong),
        cmocka_unit_test(the_network_ends_where_a_connection_is_wrong),
        cmocka_unit_test(searchers_end_where_they_speak_to_nobody),
        cmocka_unit_test(a_run_ends_where_its_parts_disagree),
    };
    return cmocka_run_group_tests_name("bugs", tests, NULL, NULL);
}
