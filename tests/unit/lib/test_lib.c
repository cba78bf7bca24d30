/* libabdada before a real ttserver: what each call does. */
#include "tests/support/test_lib.h"

#include <dirent.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/time.h>

/* Each test has a namespace of its own. */
static uint64_t fresh(void)
{
    static uint64_t last;
    return ++last;
}

static void ask_store_release_and_peek_meet_in_the_table(void **state)
{
    (void)state;
    uint64_t ns = fresh(), key = 0x123456789abcdef;
    struct abdada *a = open_at(&server, ns), *b = open_at(&server, ns);
    struct abdada_answer answer;
    struct abdada_peeked peeked;
    assert_int_equal(abdada_ask(a, key, 5, -100, 100, ABDADA_EXCLUSIVE, &answer), ABDADA_OK);
    assert_int_equal(answer.verdict, ABDADA_OPEN);
    assert_true(answer.alpha == -100 && answer.beta == 100 && answer.nproc == 1);
    assert_int_equal(abdada_ask(b, key, 5, -100, 100, ABDADA_EXCLUSIVE, &answer), ABDADA_OK);
    assert_int_equal(answer.verdict, ABDADA_BUSY);
    assert_int_equal(abdada_ask(b, key, 5, -100, 100, 0, &answer), ABDADA_OK);
    assert_true(answer.verdict == ABDADA_OPEN && answer.nproc == 2);
    assert_int_equal(abdada_release(b, key, 5), ABDADA_OK);
    assert_int_equal(abdada_peek(b, key, 5, &peeked), ABDADA_OK);
    assert_true(peeked.nproc == 1 && peeked.lower == -32767 && peeked.upper == 32767);
    assert_int_equal(abdada_store(a, key, 5, 20, ABDADA_LOWER, 77), ABDADA_OK);
    assert_int_equal(abdada_flush(a), ABDADA_OK);
    WAIT_FOR(abdada_peek(b, key, 5, &peeked) == ABDADA_OK && peeked.nproc == 0);
    assert_true(peeked.lower == 20 && peeked.upper == 32767 && peeked.depth == 5 &&
                peeked.move == 77);
    assert_int_equal(abdada_ask(b, key, 5, -100, 100, 0, &answer), ABDADA_OK);
    assert_true(answer.verdict == ABDADA_OPEN && answer.alpha == 20 && answer.move == 77);
    assert_int_equal(abdada_store(b, key, 5, 30, ABDADA_EXACT, 78), ABDADA_OK);
    assert_int_equal(abdada_ask(b, key, 4, -100, 100, 0, &answer), ABDADA_OK);
    assert_true(answer.verdict == ABDADA_CUT && answer.score == 30);
    assert_int_equal(abdada_ask(b, key, 4, -100, 100, ABDADA_STRICT, &answer), ABDADA_OK);
    assert_int_equal(answer.verdict, ABDADA_OPEN);
    assert_int_equal(figure(b, -1, "in_flight"), 1);
    assert_int_equal(abdada_close(a), ABDADA_OK);
    assert_int_equal(abdada_close(b), ABDADA_OK);
}

static void a_cut_says_its_bound(void **state)
{
    (void)state;
    static const struct {
        int score, bound;
    } wanted[] = {{50, ABDADA_LOWER}, {-50, ABDADA_UPPER}, {0, ABDADA_EXACT}};
    struct abdada *t = open_at(&server, fresh());
    struct abdada_answer answer;
    for (unsigned i = 0; i < 3; i++) {
        int bound = wanted[i].bound;
        assert_int_equal(abdada_store(t, i, 5, wanted[i].score, (unsigned)bound, 0), ABDADA_OK);
        assert_int_equal(abdada_ask(t, i, 5, -10, 10, 0, &answer), ABDADA_OK);
        assert_true(answer.verdict == ABDADA_CUT && answer.bound == bound);
    }
    assert_int_equal(abdada_ask(t, 9, 5, -10, 10, 0, &answer), ABDADA_OK);
    assert_true(answer.verdict == ABDADA_OPEN && answer.bound == 0);
    abdada_close(t);
}

static void one_is_alone_at_a_key_of_any_depth(void **state)
{
    (void)state;
    uint64_t ns = fresh();
    struct abdada *a = open_at(&server, ns), *b = open_at(&server, ns);
    struct abdada_answer answer;
    struct abdada *const handle[] = {a, b};
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(
            abdada_ask(handle[i], 1, ABDADA_ANY_DEPTH, -1, 1, ABDADA_EXCLUSIVE, &answer),
            ABDADA_OK);
        assert_int_equal(answer.verdict, i == 0 ? ABDADA_OPEN : ABDADA_BUSY);
        assert_int_equal(abdada_store(a, 1, 7 + i, 0, ABDADA_EXACT, 42), ABDADA_OK);
    }
    assert_int_equal(answer.move, 0);
    assert_int_equal(abdada_release(a, 1, ABDADA_ANY_DEPTH), ABDADA_OK);
    assert_int_equal(abdada_flush(a), ABDADA_OK);
    WAIT_FOR(abdada_ask(b, 1, ABDADA_ANY_DEPTH, -1, 1, ABDADA_EXCLUSIVE, &answer) == ABDADA_OK &&
             answer.verdict == ABDADA_OPEN);
    assert_int_equal(answer.move, 42);
    abdada_close(a);
    abdada_close(b);
}

static void strict_results_of_two_depths_stay_beside_each_other(void **state)
{
    (void)state;
    uint64_t key = 0x123456789abcdef;
    struct abdada *t = open_at(&server, fresh());
    struct abdada_answer answer;
    struct abdada_peeked peeked;
    assert_int_equal(abdada_store(t, key, 6, 20, ABDADA_EXACT + ABDADA_BESIDE, 77), ABDADA_OK);
    assert_int_equal(abdada_store(t, key, 5, -20, ABDADA_EXACT + ABDADA_BESIDE, 78), ABDADA_OK);
    for (unsigned depth = 5; depth <= 6; depth++) {
        int score = depth == 6 ? 20 : -20;
        assert_int_equal(abdada_ask(t, key, depth, -100, 100, ABDADA_STRICT, &answer), ABDADA_OK);
        assert_true(answer.verdict == ABDADA_CUT && answer.score == score);
        assert_int_equal(abdada_peek(t, key, depth, &peeked), ABDADA_OK);
        assert_true(peeked.depth == depth && peeked.lower == score);
    }
    assert_int_equal(abdada_store(t, key, 7, 30, ABDADA_EXACT, 79), ABDADA_OK);
    assert_int_equal(abdada_ask(t, key, 7, -100, 100, ABDADA_STRICT, &answer), ABDADA_OK);
    assert_true(answer.verdict == ABDADA_CUT && answer.score == 30);
    assert_int_equal(abdada_store(t, key, 5, 0, ABDADA_BESIDE, 0), ABDADA_E_ARGUMENT);
    assert_int_equal(abdada_store(t, key, 5, 0, ABDADA_EXACT + 2 * ABDADA_BESIDE, 0),
                     ABDADA_E_ARGUMENT);
    assert_int_equal(abdada_close(t), ABDADA_OK);
}

static void a_close_frees_what_it_was_in(void **state)
{
    (void)state;
    uint64_t ns = fresh();
    struct abdada *a = open_at(&server, ns), *b = open_at(&server, ns);
    struct abdada_answer answer;
    struct abdada_peeked peeked;
    assert_int_equal(abdada_ask(a, 1, 9, -1, 1, 0, &answer), ABDADA_OK);
    assert_int_equal(abdada_peek(b, 1, 9, &peeked), ABDADA_OK);
    assert_int_equal(peeked.nproc, 1);
    assert_int_equal(abdada_close(a), ABDADA_OK);
    WAIT_FOR(abdada_peek(b, 1, 9, &peeked) == ABDADA_OK && peeked.nproc == 0);
    abdada_close(b);
}

static void namespaces_never_meet_and_raw_keys_are_as_they_are(void **state)
{
    (void)state;
    uint64_t one = fresh(), two = fresh(), key = 42, mixed = one;
    struct abdada *a = open_at(&server, one), *b = open_at(&server, two);
    struct abdada_options raw = options_for(&server, one);
    struct abdada_peeked peeked;
    raw.flags = ABDADA_RAW_KEYS;
    struct abdada *c = open_with(&raw);
    assert_int_equal(abdada_store(a, key, 3, 5, ABDADA_EXACT, 0), ABDADA_OK);
    assert_int_equal(abdada_flush(a), ABDADA_OK);
    WAIT_FOR(abdada_peek(a, key, 3, &peeked) == ABDADA_OK && peeked.depth == 3);
    assert_int_equal(abdada_peek(b, key, 3, &peeked), ABDADA_OK);
    assert_int_equal(peeked.depth, 0);
    assert_int_equal(abdada_peek(c, key, 3, &peeked), ABDADA_OK);
    assert_int_equal(peeked.depth, 0);
    /* PROTOCOL.md section 5 */
    mixed = (mixed ^ (mixed >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    mixed = (mixed ^ (mixed >> 27)) * UINT64_C(0x94d049bb133111eb);
    mixed ^= mixed >> 31;
    assert_int_equal(abdada_peek(c, key ^ mixed, 3, &peeked), ABDADA_OK);
    assert_true(peeked.depth == 3 && peeked.lower == 5 && peeked.upper == 5);
    abdada_close(a);
    abdada_close(b);
    abdada_close(c);
}

enum { MANY = 1000 };

static void batches_of_any_size_keep_their_order(void **state)
{
    (void)state;
    static struct abdada_ask_op ask[MANY];
    static struct abdada_answer answer[MANY];
    static struct abdada_store_op store[MANY];
    static struct abdada_release_op release[MANY];
    static struct abdada_peek_op peek[MANY];
    static struct abdada_peeked peeked[MANY];
    uint64_t ns = fresh();
    struct abdada_options few = options_for(&server, ns);
    few.tickets = 7;
    struct abdada *t = open_with(&few), *other = open_at(&server, ns);
    for (unsigned i = 0; i < MANY; i++) {
        uint64_t key = abdada_hash("batch") + i * UINT64_C(0x9e3779b97f4a7c15);
        ask[i] = (struct abdada_ask_op){key, -10, 10, 6, 0, (uint16_t)(i % 3)};
        store[i] = (struct abdada_store_op){key, (int16_t)i,  (uint16_t)i, (uint16_t)(i % 3),
                                            6,   ABDADA_EXACT};
        release[i] = (struct abdada_release_op){.key = key, .slot = (uint16_t)(i % 3), .depth = 6};
        peek[i] = (struct abdada_peek_op){.key = key, .depth = 6};
    }
    assert_int_equal(abdada_ask_many(t, ask, MANY, answer), ABDADA_OK);
    for (unsigned i = 0; i < MANY; i++) {
        assert_true(answer[i].verdict == ABDADA_OPEN && answer[i].nproc == 1);
    }
    assert_int_equal(figure(t, -1, "in_flight"), MANY);
    assert_int_equal(abdada_release_many(t, release, MANY), ABDADA_OK);
    assert_int_equal(abdada_ask_many(t, ask, MANY, answer), ABDADA_OK);
    assert_int_equal(abdada_store_many(t, store, MANY), ABDADA_OK);
    assert_int_equal(abdada_flush(t), ABDADA_OK);
    assert_int_equal(figure(t, -1, "in_flight"), 0);
    assert_int_equal(figure(t, -1, "tickets"), 0);
    assert_int_equal(abdada_peek_many(t, peek, MANY, peeked), ABDADA_OK);
    for (unsigned i = 0; i < MANY; i++) {
        assert_true(peeked[i].lower == (int)i && peeked[i].upper == (int)i);
        assert_true(peeked[i].move == i && peeked[i].nproc == 0);
    }
    assert_int_equal(abdada_ask_many(other, ask, MANY, answer), ABDADA_OK);
    for (unsigned i = 0; i < MANY; i++) {
        assert_true(answer[i].verdict == ABDADA_CUT && answer[i].score == (int)i);
    }
    assert_int_equal(abdada_ask_many(t, NULL, 0, NULL), ABDADA_OK);
    assert_int_equal(abdada_peek_many(t, NULL, 0, NULL), ABDADA_OK);
    abdada_close(t);
    abdada_close(other);
}

static void a_call_is_one_message_a_shard(void **state)
{
    (void)state;
    static struct abdada_ask_op ask[MANY];
    static struct abdada_answer answer[MANY];
    static struct abdada_store_op store[MANY / 2];
    static struct abdada_release_op release[MANY / 2];
    struct abdada *t = open_at(&server, fresh());
    for (unsigned i = 0; i < MANY; i++) {
        uint64_t key = abdada_hash("message") + i * UINT64_C(0x9e3779b97f4a7c15);
        ask[i] = (struct abdada_ask_op){key, -10, 10, 6, 0, 0};
        if (i % 2 == 0) {
            store[i / 2] = (struct abdada_store_op){key, 1, 2, 0, 6, ABDADA_EXACT};
        } else {
            release[i / 2] = (struct abdada_release_op){.key = key, .depth = 6};
        }
    }
    uint64_t before = figure(t, 0, "batches");
    assert_int_equal(abdada_ask_many(t, ask, MANY, answer), ABDADA_OK);
    assert_int_equal(figure(t, 0, "batches"), before + 1);
    assert_int_equal(figure(t, -1, "in_flight"), MANY);
    assert_int_equal(abdada_store_many(t, store, MANY / 2), ABDADA_OK);
    assert_int_equal(abdada_release_many(t, release, MANY / 2), ABDADA_OK);
    assert_int_equal(abdada_flush(t), ABDADA_OK);
    assert_int_equal(figure(t, 0, "batches"), before + 3);
    assert_int_equal(figure(t, -1, "in_flight"), 0);
    assert_int_equal(figure(t, -1, "asks"), MANY);
    abdada_close(t);
}

static void a_node_may_be_in_a_list_again(void **state)
{
    (void)state;
    uint64_t ns = fresh();
    struct abdada *a = open_at(&server, ns), *b = open_at(&server, ns);
    struct abdada_answer one, two[2];
    struct abdada_peeked peeked;
    struct abdada_ask_op twice[2] = {{77, -1, 1, 4, ABDADA_EXCLUSIVE, 0}, {77, -1, 1, 4, 0, 0}};
    assert_int_equal(abdada_ask(a, 77, 4, -1, 1, 0, &one), ABDADA_OK);
    assert_int_equal(abdada_ask_many(b, twice, 2, two), ABDADA_OK);
    assert_true(two[0].verdict == ABDADA_BUSY && two[1].verdict == ABDADA_OPEN);
    assert_int_equal(figure(b, -1, "in_flight"), 1);
    assert_int_equal(abdada_release(b, 77, 4), ABDADA_OK);
    assert_int_equal(figure(b, -1, "in_flight"), 0);
    assert_int_equal(abdada_peek(b, 77, 4, &peeked), ABDADA_OK);
    assert_int_equal(peeked.nproc, 1);
    abdada_close(a);
    abdada_close(b);
}

static void split_asks_come_later_and_a_cancelled_one_is_released(void **state)
{
    (void)state;
    struct abdada_options options = options_for(&server, fresh());
    options.tickets = 2;
    struct abdada *t = open_with(&options);
    struct abdada_ask_op op = {.key = 7, .alpha = -1, .beta = 1, .depth = 4};
    struct abdada_answer answer;
    struct abdada_peeked peeked;
    abdada_ticket one = 0, two = 0, three = 0;
    assert_int_equal(abdada_ask_send(t, &op, &one), ABDADA_OK);
    op.key = 8;
    assert_int_equal(abdada_ask_send(t, &op, &two), ABDADA_OK);
    assert_int_equal(abdada_ask_send(t, &op, &three), ABDADA_E_FULL);
    assert_int_equal(abdada_ask(t, 9, 1, -1, 1, 0, &answer), ABDADA_E_FULL);
    assert_true(one != 0 && two != 0 && one != two && three == 0);
    int result = ABDADA_WAITING;
    WAIT_FOR((result = abdada_ask_poll(t, two, &answer)) != ABDADA_WAITING);
    assert_true(result == ABDADA_OK && answer.verdict == ABDADA_OPEN);
    assert_int_equal(abdada_ask_poll(t, two, &answer), ABDADA_E_TICKET);
    assert_int_equal(abdada_ask_await(t, one, -1, &answer), ABDADA_OK);
    assert_int_equal(abdada_ask_await(t, one, -1, &answer), ABDADA_E_TICKET);
    op.key = 10;
    assert_int_equal(abdada_ask_send(t, &op, &three), ABDADA_OK);
    assert_int_equal(abdada_cancel(t, three), ABDADA_OK);
    assert_int_equal(abdada_cancel(t, three), ABDADA_E_TICKET);
    assert_int_equal(abdada_peek(t, 10, 4, &peeked), ABDADA_OK); /* after what is queued */
    assert_int_equal(peeked.nproc, 0);
    assert_int_equal(figure(t, -1, "in_flight"), 2);
    /* left before it is answered: the answer must not count it in again */
    assert_int_equal(abdada_ask_send(t, &op, &three), ABDADA_OK);
    assert_int_equal(abdada_release(t, 10, 4), ABDADA_OK);
    assert_int_equal(abdada_ask_await(t, three, -1, &answer), ABDADA_OK);
    assert_int_equal(figure(t, -1, "in_flight"), 2);
    abdada_close(t);
}

static void a_renewal_that_is_cancelled_or_lost_leaves_us_in_the_node(void **state)
{
    (void)state;
    struct server stops;
    struct abdada_answer answer;
    struct abdada_peeked peeked;
    server_start(&stops, "127.0.0.1:0", NULL);
    struct abdada_options options = options_for(&stops, fresh());
    struct abdada *b = open_with(&options);
    options.answer_ms = 50;
    struct abdada *a = open_with(&options);
    struct abdada_ask_op op = {.key = 7, .alpha = -1, .beta = 1, .depth = 4};
    abdada_ticket ticket = 0;
    WAIT_FOR(abdada_ask(a, 7, 4, -1, 1, 0, &answer) == ABDADA_OK);
    assert_int_equal(answer.verdict, ABDADA_OPEN);
    WAIT_FOR(abdada_ask_send(a, &op, &ticket) == ABDADA_OK);
    assert_int_equal(abdada_cancel(a, ticket), ABDADA_OK);
    (void)abdada_flush(a);
    WAIT_FOR(abdada_peek(a, 7, 4, &peeked) == ABDADA_OK); /* after what was queued */
    assert_int_equal(peeked.nproc, 1);
    assert_int_equal(figure(a, -1, "in_flight"), 1);
    kill(stops.process, SIGSTOP);
    WAIT_FOR(abdada_ask(a, 7, 4, -1, 1, 0, &answer) == ABDADA_E_UNAVAILABLE);
    assert_int_equal(figure(a, -1, "in_flight"), 1);
    kill(stops.process, SIGCONT);
    uint64_t asks = figure(a, -1, "asks");
    WAIT_FOR((abdada_serve(a), figure(a, -1, "asks")) > asks); /* renewed */
    WAIT_FOR((abdada_serve(a), abdada_peek(b, 7, 4, &peeked)) == ABDADA_OK && peeked.nproc == 1);
    assert_int_equal(abdada_release(a, 7, 4), ABDADA_OK);
    assert_int_equal(figure(a, -1, "in_flight"), 0);
    WAIT_FOR((abdada_serve(a), abdada_peek(b, 7, 4, &peeked)) == ABDADA_OK && peeked.nproc == 0);
    abdada_close(a);
    abdada_close(b);
    server_end(&stops, SIGTERM);
}

static bool is_readable(int fd, int wait_ms)
{
    struct pollfd polled = {.fd = fd, .events = POLLIN};
    return poll(&polled, 1, wait_ms) == 1;
}

/* Only the descriptor says when to call. */
static void the_descriptor_is_enough(void **state)
{
    (void)state;
    uint64_t ns = fresh();
    struct abdada *t;
    struct abdada_options options = options_for(&server, ns);
    struct abdada_peeked peeked;
    assert_int_equal(abdada_open(&t, &options), ABDADA_OK);
    int fd = abdada_fd(t);
    assert_true(fd >= 0);
    assert_int_equal(abdada_fd(t), fd);
    while (abdada_connected(t) == 0) {
        assert_true(is_readable(fd, PATIENCE_MS));
        assert_int_equal(abdada_serve(t), ABDADA_OK);
    }
    for (unsigned i = 0; i < 200; i++) {
        struct abdada_ask_op op = {.key = i, .alpha = -1, .beta = 1, .depth = 4};
        struct abdada_answer answer;
        abdada_ticket ticket;
        int result;
        assert_int_equal(abdada_ask_send(t, &op, &ticket), ABDADA_OK);
        while ((result = abdada_ask_poll(t, ticket, &answer)) == ABDADA_WAITING) {
            assert_true(is_readable(fd, PATIENCE_MS));
            assert_int_equal(abdada_serve(t), ABDADA_OK);
        }
        assert_int_equal(result, ABDADA_OK);
    }
    struct abdada *other = open_at(&server, ns); /* opened only now: nobody would have served it */
    /* A queued store leaves by the clock. */
    assert_int_equal(abdada_store(t, 3, 4, 1, ABDADA_EXACT, 0), ABDADA_OK);
    do {
        assert_true(is_readable(fd, PATIENCE_MS));
        assert_int_equal(abdada_serve(t), ABDADA_OK);
        assert_int_equal(abdada_peek(other, 3, 4, &peeked), ABDADA_OK);
    } while (peeked.depth != 4);
    /* And it is silent when there is nothing to do: else a loop would spin. */
    unsigned silent = 0;
    WAIT_FOR((silent += !is_readable(fd, 0), abdada_serve(t), silent) >= 100);
    assert_true(abdada_deadline_ms(t) >= 0);
    abdada_close(t);
    abdada_close(other);
}

struct seen {
    struct abdada *t;
    unsigned count;
    int inner; /* what a call from within returned */
    struct abdada_store_op last;
};

static void on_done(void *self, const struct abdada_store_op *result)
{
    struct seen *seen = self;
    seen->count++;
    seen->last = *result;
    seen->inner = abdada_serve(seen->t);
}

static void completion_notices_come_to_who_asks_for_them(void **state)
{
    (void)state;
    uint64_t ns = fresh();
    struct seen seen = {.count = 0};
    struct abdada_options options = options_for(&server, ns);
    options.node_done = on_done;
    options.self = &seen;
    struct abdada *a = seen.t = open_with(&options), *b = open_at(&server, ns);
    struct abdada_answer answer;
    assert_int_equal(abdada_ask(a, 99, 8, -50, 50, 0, &answer), ABDADA_OK);
    assert_int_equal(abdada_ask(b, 99, 8, -50, 50, 0, &answer), ABDADA_OK);
    assert_int_equal(abdada_store(b, 99, 8, 33, ABDADA_UPPER + ABDADA_BESIDE, 12), ABDADA_OK);
    assert_int_equal(abdada_flush(b), ABDADA_OK);
    WAIT_FOR((abdada_serve(a), seen.count) > 0);
    assert_true(seen.last.key == 99 && seen.last.depth == 8 && seen.last.score == 33);
    assert_true(seen.last.bound == ABDADA_UPPER && seen.last.move == 12);
    assert_int_equal(seen.inner, ABDADA_E_IN_USE);
    abdada_close(a);
    abdada_close(b);
}

static void a_node_is_renewed_for_as_long_as_it_is_searched(void **state)
{
    (void)state;
    const char *const more[] = {"--inflight-age-max", "400", NULL};
    struct server forgets;
    struct abdada_answer answer;
    struct abdada_peeked peeked;
    server_start(&forgets, "127.0.0.1:0", more);
    struct abdada *a = open_at(&forgets, 1), *b = open_at(&forgets, 1);
    assert_int_equal(abdada_ask(a, 5, 8, -50, 50, 0, &answer), ABDADA_OK);
    WAIT_FOR((abdada_serve(a), abdada_serve(b), figure(a, -1, "asks")) >= 12);
    WAIT_FOR((abdada_serve(a), abdada_peek(b, 5, 8, &peeked)) == ABDADA_OK && peeked.nproc == 1);
    assert_int_equal(abdada_release(a, 5, 8), ABDADA_OK);
    WAIT_FOR((abdada_serve(a), abdada_peek(b, 5, 8, &peeked)) == ABDADA_OK && peeked.nproc == 0);
    /* It is not renewed when it was left, while another is. */
    assert_int_equal(abdada_ask(a, 6, 8, -50, 50, 0, &answer), ABDADA_OK);
    assert_in_range(abdada_deadline_ms(a), 0, 100); /* a quarter of the age */
    uint64_t asks = figure(a, -1, "asks");
    WAIT_FOR((abdada_serve(a), abdada_serve(b), figure(a, -1, "asks")) >= asks + 6);
    WAIT_FOR((abdada_serve(a), abdada_peek(b, 6, 8, &peeked)) == ABDADA_OK && peeked.nproc == 1);
    WAIT_FOR((abdada_serve(a), abdada_peek(b, 5, 8, &peeked)) == ABDADA_OK);
    assert_int_equal(peeked.nproc, 0);
    abdada_close(a);
    abdada_close(b);
    server_end(&forgets, SIGTERM);
}

static void without_servers_it_says_so_and_comes_back_by_itself(void **state)
{
    (void)state;
    struct server dies;
    struct abdada_answer answer;
    struct abdada_peeked peeked;
    server_start(&dies, "127.0.0.1:0", NULL);
    struct abdada_options options = options_for(&dies, fresh());
    options.answer_ms = 20;
    struct abdada *t = NULL;
    assert_int_equal(abdada_open(&t, &options), ABDADA_OK);
    WAIT_FOR(abdada_connected(t) == 1);
    server_end(&dies, SIGKILL);
    WAIT_FOR(abdada_ask(t, 1, 5, -9, 9, 0, &answer) == ABDADA_E_UNAVAILABLE);
    assert_true(answer.verdict == ABDADA_ALONE && answer.alpha == -9 && answer.beta == 9);
    WAIT_FOR((abdada_serve(t), abdada_connected(t)) == 0);
    abdada_ticket ticket = 0;
    struct abdada_ask_op op = {.key = 7, .alpha = -1, .beta = 1, .depth = 4};
    assert_int_equal(abdada_ask_send(t, &op, &ticket), ABDADA_E_UNAVAILABLE);
    assert_int_equal(ticket, 0);
    assert_int_equal(abdada_store(t, 1, 5, 1, ABDADA_EXACT, 0), ABDADA_E_UNAVAILABLE);
    assert_int_equal(abdada_release(t, 1, 5), ABDADA_E_UNAVAILABLE);
    assert_int_equal(abdada_peek(t, 1, 5, &peeked), ABDADA_E_UNAVAILABLE);
    assert_true(peeked.lower == -32767 && peeked.upper == 32767 && peeked.depth == 0);
    assert_int_equal(abdada_flush(t), ABDADA_E_UNAVAILABLE);
    assert_int_equal(abdada_wait_connected(t, 0), ABDADA_E_UNAVAILABLE);
    assert_int_equal(abdada_shard_stats(t, 0, NULL, 0), ABDADA_E_UNAVAILABLE);
    server_start(&dies, dies.address, NULL);
    WAIT_FOR(abdada_ask(t, 1, 5, -9, 9, 0, &answer) == ABDADA_OK);
    assert_int_equal(answer.verdict, ABDADA_OPEN);
    abdada_close(t);
    server_end(&dies, SIGTERM);
}

static void statistics_have_names(void **state)
{
    (void)state;
    struct abdada *t = open_at(&server, fresh());
    struct abdada_answer answer;
    struct abdada_figure f;
    char name[64];
    assert_int_equal(abdada_ask(t, 1, 1, 0, 1, 0, &answer), ABDADA_OK);
    assert_int_equal(figure(t, -1, "asks"), 1);
    assert_true(figure(t, 0, "asks") >= 1);
    assert_true(abdada_stats(t, NULL, 0) > 10);
    assert_true(abdada_shard_stats(t, 0, &f, 1) > 10);
    assert_int_equal(abdada_shards(t), 1);
    assert_int_equal(abdada_shard_name(t, 0, name, sizeof name), ABDADA_OK);
    assert_string_equal(name, server.address);
    assert_int_equal(abdada_refusal(t, name, sizeof name), ABDADA_OK);
    assert_string_equal(name, "");
    abdada_close(t);
}

static void a_job_that_a_shard_does_not_take_is_said(void **state)
{
    (void)state;
    const char *const more[] = {"--jobs", "1", NULL};
    struct server small;
    server_start(&small, "127.0.0.1:0", more);
    struct abdada_options options = options_for(&small, fresh());
    options.role = ABDADA_FRONT_END;
    struct abdada *t = open_with(&options);
    struct abdada_job job = {.struct_size = sizeof job, .depth = 3};
    static struct abdada_job_event event;
    uint64_t id[18];
    for (unsigned i = 0; i < 16; i++) {
        assert_int_equal(abdada_job_post(t, &job, &id[i]), ABDADA_OK);
        assert_true(id[i] != 0);
    }
    assert_int_equal(abdada_job_post(t, &job, &id[16]), ABDADA_E_FULL);
    assert_int_equal(abdada_job_next(t, PATIENCE_MS, &event), ABDADA_OK);
    assert_int_equal(event.state, ABDADA_JOB_BARRED);
    assert_true(event.shard == 0 && event.instance == 0 && event.text[0] != '\0');
    for (unsigned i = 0; i < 16; i++) {
        assert_int_equal(abdada_job_stop(t, id[i]), ABDADA_OK);
        assert_int_equal(abdada_job_stop(t, id[i]), ABDADA_E_UNKNOWN);
    }
    while (abdada_job_next(t, 0, &event) == ABDADA_OK) {
    }
    assert_int_equal(abdada_job_next(t, 1, &event), ABDADA_WAITING);
    abdada_close(t);
    server_end(&small, SIGTERM);
}

struct waiter {
    struct abdada *t;
    atomic_bool may_end;
};

static void *wait_again_and_again(void *context)
{
    struct waiter *w = context;
    while (!atomic_load(&w->may_end)) {
        (void)abdada_wait_connected(w->t, 20);
    }
    return NULL;
}

static void two_threads_in_one_handle_are_an_error(void **state)
{
    (void)state;
    struct server nobody = {.address = "127.0.0.1:1"};
    struct abdada_options options = options_for(&nobody, fresh());
    struct waiter w = {.t = NULL};
    pthread_t thread;
    assert_int_equal(abdada_open(&w.t, &options), ABDADA_OK);
    assert_int_equal(pthread_create(&thread, NULL, wait_again_and_again, &w), 0);
    WAIT_FOR(abdada_shards(w.t) == ABDADA_E_IN_USE);
    atomic_store(&w.may_end, true);
    pthread_join(thread, NULL);
    assert_int_equal(abdada_shards(w.t), 1);
    abdada_close(w.t);
}

enum { TURNS = 4 };

static void *ask_often(void *self)
{
    struct abdada *t = self;
    for (uint64_t i = 0; i < 200; i++) {
        struct abdada_answer answer;
        if (abdada_ask(t, i, 5, -1, 1, 0, &answer) != ABDADA_OK ||
            abdada_store(t, i, 5, 0, ABDADA_EXACT, 0) != ABDADA_OK) {
            return self;
        }
    }
    return NULL;
}

static void threads_take_turns_if_they_say_so(void **state)
{
    (void)state;
    uint64_t ns = fresh();
    struct abdada_options options = options_for(&server, ns);
    options.flags = ABDADA_TURNS;
    struct seen seen = {.count = 0};
    options.node_done = on_done;
    options.self = &seen;
    struct abdada *t = seen.t = open_with(&options);
    struct abdada_answer answer;
    pthread_t thread[TURNS];
    for (unsigned i = 0; i < TURNS; i++) {
        assert_int_equal(pthread_create(&thread[i], NULL, ask_often, t), 0);
    }
    for (unsigned i = 0; i < TURNS; i++) {
        void *failed;
        pthread_join(thread[i], &failed);
        assert_null(failed);
    }
    struct abdada *other = open_at(&server, ns); /* opened only now: nobody would have served it */
    assert_int_equal(abdada_ask(t, 1000, 5, -1, 1, 0, &answer), ABDADA_OK);
    assert_int_equal(abdada_store(other, 1000, 5, 0, ABDADA_EXACT, 0), ABDADA_OK);
    assert_int_equal(abdada_flush(other), ABDADA_OK);
    WAIT_FOR((abdada_serve(t), seen.count) > 0);
    assert_int_equal(seen.inner, ABDADA_E_IN_USE); /* a callback has the turn already */
    abdada_close(t);
    abdada_close(other);
}

static void a_child_has_no_handles(void **state)
{
    (void)state;
    struct abdada *t = open_at(&server, fresh());
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        _exit(abdada_shards(t) == ABDADA_E_HANDLE && abdada_close(t) == ABDADA_E_HANDLE ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(abdada_shards(t), 1);
    abdada_close(t);
}

static int files_limit(int limit)
{
    struct rlimit files;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
    int before = (int)files.rlim_cur;
    if (limit > 0) {
        files.rlim_cur = (rlim_t)limit;
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
    }
    return before;
}

/* With any number of free descriptors a handle is opened, or it is an error; never an abort. */
static void few_descriptors_are_an_error(void **state)
{
    enum { LIMIT = 256, FREE_MAX = 40 };
    (void)state;
    struct abdada_options options = options_for(&server, fresh());
    char why[256] = "";
    int taken[LIMIT], n = 0, before = files_limit(LIMIT);
    options.why = why;
    options.why_size = sizeof why;
    while (n < LIMIT && (taken[n] = dup(STDERR_FILENO)) >= 0) {
        n++;
    }
    assert_true(n > FREE_MAX);
    int result = ABDADA_E_FULL;
    for (int i = 0; i < FREE_MAX; i++) {
        struct abdada *t = NULL;
        result = abdada_open(&t, &options);
        assert_true(result == ABDADA_OK ? t != NULL : result == ABDADA_E_FULL && t == NULL);
        assert_true(i >= 10 || (result == ABDADA_E_FULL && strstr(why, "open files") != NULL));
        if (result == ABDADA_OK) {
            (void)abdada_fd(t);
            (void)abdada_wait_connected(t, 1);
            abdada_close(t);
        }
        close(taken[--n]);
    }
    assert_int_equal(result, ABDADA_OK);
    while (n > 0) {
        close(taken[--n]);
    }
    assert_int_equal(files_limit(before), LIMIT);
}

static unsigned files_open(void)
{
    unsigned count = 0;
    DIR *folder = opendir("/proc/self/fd");
    assert_non_null(folder);
    while (readdir(folder) != NULL) {
        count++;
    }
    closedir(folder);
    return count;
}

static void on_alarm(int signal)
{
    (void)signal;
}

static void signals_do_not_keep_a_close_from_freeing_all(void **state)
{
    enum { CLOSES = 20, OFTEN_US = 200 };
    const struct sigaction action = {.sa_handler = on_alarm}; /* calls are interrupted */
    const struct itimerval often = {{0, OFTEN_US}, {0, OFTEN_US}}, never = {{0, 0}, {0, 0}};
    (void)state;
    unsigned before = files_open();
    assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
    for (unsigned i = 0; i < CLOSES; i++) {
        struct abdada *t = open_at(&server, fresh());
        assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
        assert_int_equal(abdada_close(t), ABDADA_OK);
        assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
    }
    assert_int_equal(files_open(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ask_store_release_and_peek_meet_in_the_table),
        cmocka_unit_test(a_cut_says_its_bound),
        cmocka_unit_test(one_is_alone_at_a_key_of_any_depth),
        cmocka_unit_test(strict_results_of_two_depths_stay_beside_each_other),
        cmocka_unit_test(a_close_frees_what_it_was_in),
        cmocka_unit_test(namespaces_never_meet_and_raw_keys_are_as_they_are),
        cmocka_unit_test(batches_of_any_size_keep_their_order),
        cmocka_unit_test(a_call_is_one_message_a_shard),
        cmocka_unit_test(a_node_may_be_in_a_list_again),
        cmocka_unit_test(split_asks_come_later_and_a_cancelled_one_is_released),
        cmocka_unit_test(a_renewal_that_is_cancelled_or_lost_leaves_us_in_the_node),
        cmocka_unit_test(the_descriptor_is_enough),
        cmocka_unit_test(completion_notices_come_to_who_asks_for_them),
        cmocka_unit_test(a_node_is_renewed_for_as_long_as_it_is_searched),
        cmocka_unit_test(without_servers_it_says_so_and_comes_back_by_itself),
        cmocka_unit_test(statistics_have_names),
        cmocka_unit_test(a_job_that_a_shard_does_not_take_is_said),
        cmocka_unit_test(two_threads_in_one_handle_are_an_error),
        cmocka_unit_test(threads_take_turns_if_they_say_so),
        cmocka_unit_test(a_child_has_no_handles),
        cmocka_unit_test(signals_do_not_keep_a_close_from_freeing_all),
        cmocka_unit_test(few_descriptors_are_an_error),
    };
    return cmocka_run_group_tests(tests, server_setup, server_teardown);
}
