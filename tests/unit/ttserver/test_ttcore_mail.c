/* Letters between the searchers of a job: who may join, who gets them, and when it ends. */
#include "tests/support/test_ttcore.h"

#include "common/rng.h"
#include "proto/alias.h"

enum { JOB = 700 };

/* The inverse of rng_mix. */
static uint64_t rng_unmix(uint64_t x)
{
    x = (x ^ x >> 31 ^ x >> 62) * UINT64_C(0x319642b2d24d8ec3);
    x = (x ^ x >> 27 ^ x >> 54) * UINT64_C(0x96de1b173f119089);
    return x ^ x >> 30 ^ x >> 60;
}

static const struct ttcore_peer ann = {7, 0xf, "ann"}, bob = {8, 0xf, "bob"},
                                crew = {9, 1 << PROTO_WORKER, "crew"};

static void hello_of(struct bed *bed, const struct ttcore_peer *peer, const char *who,
                     enum proto_role role)
{
    bed->peer = peer;
    assert_true(bed_hello(bed, who, role) != 0);
}

/* How many others take part, as `who` is told. */
static unsigned join(struct bed *bed, const struct ttcore_peer *peer, const char *who, uint64_t job)
{
    struct proto_message m = {.type = PROTO_MAIL_JOIN};
    m.mail_join = (struct proto_mail_join){.request = 3, .job = job};
    bed->peer = peer;
    bed_say(bed, who, m);
    const struct proto_mail_list *list = &bed_seen(bed, who, PROTO_MAIL_LIST)->mail_list;
    assert_int_equal(list->request, 3);
    assert_true(list->job == job);
    return list->list.count;
}

/* Whether it arrives, with the sender's own alias whatever the sender says. */
static bool letter(struct bed *bed, const struct ttcore_peer *peer, const char *from,
                   const char *to, uint64_t job)
{
    static const uint8_t body[] = {1, 2, 3};
    struct proto_message m = {.type = PROTO_MAIL};
    m.mail = (struct proto_mail){
        .job = job, .to = proto_alias((uint8_t)*to), .from = 99, .body = {body, sizeof body}};
    bed->peer = peer;
    bed_say(bed, from, m);
    const struct proto_message *got = bed_nth(bed, to, 0);
    assert_int_equal(bed->actions.messages, got != NULL);
    if (got != NULL) {
        assert_int_equal(got->type, PROTO_MAIL);
        assert_true(got->mail.from == proto_alias((uint8_t)*from) && got->mail.job == job);
        assert_int_equal(got->mail.body.length, sizeof body);
        assert_memory_equal(got->mail.body.at, body, sizeof body);
    }
    return got != NULL;
}

static void open_job(struct bed *bed)
{
    hello_of(bed, &ann, "ann", PROTO_FRONT);
    bed_post(bed, "ann", JOB);
}

static void letters_go_from_one_searcher_to_another(void **state)
{
    struct bed *bed = *state;
    open_job(bed);
    hello_of(bed, &crew, "w", PROTO_WORKER);
    hello_of(bed, &crew, "x", PROTO_WORKER);
    assert_int_equal(join(bed, &ann, "ann", JOB), 0);
    assert_int_equal(join(bed, &crew, "w", JOB), 1);
    assert_int_equal(join(bed, &crew, "w", JOB), 1); /* again: nothing new */
    assert_false(letter(bed, &crew, "w", "x", JOB)); /* who has not joined */
    assert_false(letter(bed, &crew, "x", "w", JOB));
    assert_int_equal(join(bed, &crew, "x", JOB), 2);
    const struct proto_correspondents list = bed->seen.mail_list.list;
    assert_true(list.at[0].alias + list.at[1].alias == proto_alias('a') + proto_alias('w'));
    assert_true(letter(bed, &crew, "w", "x", JOB));
    assert_true(letter(bed, &crew, "x", "ann", JOB));
    assert_true(letter(bed, &ann, "ann", "w", JOB));
    assert_false(letter(bed, &ann, "ann", "w", JOB + 1));
    assert_int_equal(bed_figures(bed).letters, 3);
    assert_int_equal(bed_figures(bed).letters_lost, 3);
}

static void a_job_is_of_its_user_and_of_workers(void **state)
{
    struct bed *bed = *state;
    open_job(bed);
    hello_of(bed, &ann, "thread", PROTO_CLIENT);
    hello_of(bed, &bob, "bob", PROTO_FRONT);
    hello_of(bed, &crew, "w", PROTO_WORKER);
    assert_int_equal(join(bed, &crew, "w", JOB), 0);
    assert_int_equal(join(bed, &bob, "bob", JOB), 0); /* is told of nobody */
    assert_false(letter(bed, &bob, "bob", "w", JOB));
    assert_int_equal(join(bed, &ann, "thread", JOB), 1);
    assert_true(letter(bed, &ann, "thread", "w", JOB));
    assert_false(letter(bed, &crew, "w", "bob", JOB));
    assert_int_equal(join(bed, &crew, "w", JOB + 1), 0); /* no such job */
    assert_false(letter(bed, &ann, "thread", "w", JOB)); /* it has left the other */
}

static void who_leaves_gets_no_more(void **state)
{
    struct bed *bed = *state;
    open_job(bed);
    hello_of(bed, &crew, "w", PROTO_WORKER);
    hello_of(bed, &crew, "x", PROTO_WORKER);
    (void)join(bed, &ann, "ann", JOB);
    (void)join(bed, &crew, "w", JOB);
    (void)join(bed, &crew, "x", JOB);
    assert_true(letter(bed, &ann, "ann", "w", JOB));
    assert_int_equal(join(bed, &crew, "w", 0), 0);
    assert_false(letter(bed, &ann, "ann", "w", JOB));
    (void)join(bed, &crew, "w", JOB);
    bed->peer = &crew;
    bed_hello(bed, "w", PROTO_WORKER); /* the same one again, as for a namespace */
    assert_true(letter(bed, &ann, "ann", "w", JOB));
    bed->peer = &crew;
    bed_hello_as(bed, "w", (struct proto_hello){.role = PROTO_WORKER, .instance = 5});
    assert_false(letter(bed, &ann, "ann", "w", JOB)); /* another, on the same connection */
    assert_true(letter(bed, &ann, "ann", "x", JOB));
    bed->peer = &crew;
    bed_bye(bed, "x");
    assert_false(letter(bed, &ann, "ann", "x", JOB));
    assert_int_equal(join(bed, &ann, "ann", JOB), 0);
}

/* A worker gives no other one work, whether or not it has joined first, and learns of no other. */
static void the_letters_of_a_bag_pass_by_its_owner(void **state)
{
    struct bed *bed = *state;
    static const struct ttcore_peer thief = {10, 1 << PROTO_WORKER, "thief"};
    hello_of(bed, &ann, "ann", PROTO_FRONT);
    bed_post_with(bed, "ann", JOB, PROTO_JOB_BAG);
    hello_of(bed, &ann, "thread", PROTO_CLIENT);
    hello_of(bed, &crew, "w", PROTO_WORKER);
    hello_of(bed, &thief, "x", PROTO_WORKER);
    assert_int_equal(join(bed, &thief, "x", JOB), 0);
    assert_int_equal(join(bed, &crew, "w", JOB), 0);
    assert_int_equal(join(bed, &ann, "thread", JOB), 0);
    assert_int_equal(join(bed, &ann, "ann", JOB), 3);
    assert_int_equal(join(bed, &thief, "x", JOB), 1);
    assert_true(bed->seen.mail_list.list.at[0].alias == proto_alias('a'));
    assert_false(letter(bed, &thief, "x", "w", JOB));
    assert_false(letter(bed, &crew, "w", "x", JOB));
    assert_false(letter(bed, &ann, "thread", "w", JOB));
    assert_int_equal(bed_figures(bed).letters_lost, 3);
    assert_true(letter(bed, &ann, "ann", "w", JOB));
    assert_true(letter(bed, &crew, "w", "ann", JOB));
    assert_true(letter(bed, &thief, "x", "ann", JOB));
    bed->peer = &ann;
    bed_stop_job(bed, "ann", JOB); /* what is no job any more has no letters */
    assert_false(letter(bed, &thief, "x", "w", JOB));
    assert_false(letter(bed, &ann, "ann", "w", JOB));
}

/* The budget is of a second, whatever the heartbeat; a join beyond it is answered all the same. */
static void nobody_floods_another(void **state)
{
    enum { TOO_MANY = 2 * 65536 };
    struct bed *bed = *state;
    open_job(bed);
    hello_of(bed, &crew, "w", PROTO_WORKER);
    hello_of(bed, &crew, "x", PROTO_WORKER);
    (void)join(bed, &crew, "w", JOB);
    assert_int_equal(join(bed, &crew, "x", JOB), 1);
    unsigned passed = 0;
    for (unsigned i = 0; i < TOO_MANY; i++) {
        passed += letter(bed, &crew, "w", "x", JOB);
    }
    assert_in_range(passed, 10000, 20000);
    assert_int_equal(join(bed, &crew, "w", JOB), 0); /* is told of nobody, and stays */
    assert_int_equal(bed_figures(bed).letters_too_fast, TOO_MANY - passed + 1);
    assert_true(letter(bed, &crew, "x", "w", JOB)); /* another session */
    bed->now_us += 1000000;
    assert_true(letter(bed, &crew, "w", "x", JOB));
}

/* Without keys an instance is all that says who somebody is. */
static void no_message_names_an_instance(void **state)
{
    enum { ROOM = 64 };
    static const uint64_t fronts = UINT64_C(0xf00dfacecafe0001),
                          workers = UINT64_C(0xbeefbeadbee50002);
    struct bed *bed = *state;
    uint64_t named[ROOM];
    unsigned count = 0;
    bed->peer = NULL;
    bed_hello_as(bed, "front", (struct proto_hello){.role = PROTO_FRONT, .instance = fronts});
    bed_hello_as(bed, "worker", (struct proto_hello){.role = PROTO_WORKER, .instance = workers});
    bed_hello_as(bed, "intruder", (struct proto_hello){.role = PROTO_WORKER, .instance = 3});
    bed_post(bed, "front", JOB);
    named[count++] = bed_nth(bed, "intruder", 0)->job.user;
    (void)join(bed, NULL, "front", JOB);
    (void)join(bed, NULL, "worker", JOB);
    assert_int_equal(join(bed, NULL, "intruder", JOB), 2);
    for (unsigned i = 0; i < 2; i++) {
        named[count++] = bed->seen.mail_list.list.at[i].alias;
    }
    struct proto_message m = {.type = PROTO_MAIL};
    m.mail = (struct proto_mail){.job = JOB, .to = proto_alias(3), .body = {(uint8_t *)"x", 1}};
    bed_say(bed, "front", m);
    named[count++] = bed_seen(bed, "intruder", PROTO_MAIL)->mail.from;
    m = (struct proto_message){.type = PROTO_JOB_REPORT};
    m.job_report = (struct proto_job_report){.job = JOB, .instance = workers};
    bed_say(bed, "worker", m);
    named[count++] = bed_seen(bed, "front", PROTO_JOB_REPORT)->job_report.instance;
    m = (struct proto_message){.type = PROTO_MEMBERS};
    bed_say(bed, "intruder", m);
    const struct proto_member_rows rows =
        bed_seen(bed, "intruder", PROTO_MEMBERS_ANSWER)->members_answer.list;
    for (unsigned i = 0; i < rows.count; i++) {
        named[count++] = rows.at[i].instance_id;
    }
    /* What was named opens no way to the job, as it is or taken back through a mix of 64 bits. */
    for (unsigned i = 0; i < 2 * count; i++) {
        const uint64_t guess = i < count ? named[i] : rng_unmix(named[i - count]);
        assert_true(guess != fronts && guess != workers);
        assert_int_not_equal((uint32_t)guess, (uint32_t)fronts);
        assert_int_not_equal((uint32_t)guess, (uint32_t)workers);
        bed_hello_as(bed, "thief", (struct proto_hello){.role = PROTO_FRONT, .instance = guess});
        bed_stop_job(bed, "thief", JOB);
        bed_expect_error(bed, "thief", PROTO_ERR_ROLE);
    }
    bed_hello_as(bed, "back", (struct proto_hello){.role = PROTO_FRONT, .instance = fronts});
    bed_stop_job(bed, "back", JOB); /* as its front-end may, on another connection */
    assert_int_equal(bed_figures(bed).jobs, 0);
}

/* Who has an instance in a job keeps it, unless it is another's of the job's own user. */
static void an_instance_is_of_one_session(void **state)
{
    struct bed *bed = *state;
    static const struct ttcore_peer thief = {10, 1 << PROTO_WORKER, "thief"};
    open_job(bed);
    hello_of(bed, &crew, "w", PROTO_WORKER);
    hello_of(bed, &thief, "w2", PROTO_WORKER); /* of the same instance: its first letter */
    hello_of(bed, &thief, "a2", PROTO_WORKER);
    (void)join(bed, &crew, "w", JOB);
    assert_int_equal(join(bed, &thief, "w2", JOB), 0);
    assert_false(letter(bed, &thief, "w2", "w", JOB));
    assert_int_equal(join(bed, &thief, "a2", JOB), 1); /* before its owner */
    assert_int_equal(join(bed, &ann, "ann", JOB), 2);
    assert_true(letter(bed, &crew, "w", "ann", JOB));
}

/* Sessions that come and go, and jobs that they join: the list agrees with a plain model. */
static void lists_agree_with_a_model(void **state)
{
    enum { SEARCHERS = 26, STEPS = 4000 };
    struct bed *bed = *state;
    uint64_t seed = 11, of[SEARCHERS] = {0};
    bool is_live[SEARCHERS] = {false};
    print_message("seed %u\n", (unsigned)seed);
    bed->peer = &ann;
    bed_hello(bed, "Front", PROTO_FRONT);
    bed_post(bed, "Front", JOB);
    bed_post(bed, "Front", JOB + 1);
    for (unsigned step = 0; step < STEPS; step++) {
        unsigned i = rng_below(&seed, SEARCHERS), k = rng_below(&seed, SEARCHERS), others = 0;
        const char who[2] = {(char)('a' + i), 0}, whom[2] = {(char)('a' + k), 0};
        const uint64_t job = JOB + rng_below(&seed, 2);
        bed->now_us += 1000;
        if (!is_live[i]) {
            hello_of(bed, &crew, who, PROTO_WORKER);
            is_live[i] = true;
        } else if (rng_below(&seed, 8) == 0) {
            bed->peer = &crew;
            bed_bye(bed, who);
            is_live[i] = false;
            of[i] = 0;
        } else if (rng_below(&seed, 2)) {
            for (unsigned n = 0; n < SEARCHERS; n++) {
                others += n != i && of[n] == job;
            }
            assert_int_equal(join(bed, &crew, who, job), others);
            of[i] = job;
        } else {
            assert_int_equal(letter(bed, &crew, who, whom, job), of[i] == job && of[k] == job);
        }
    }
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, bed_setup, bed_teardown)
    const struct CMUnitTest tests[] = {
        T(letters_go_from_one_searcher_to_another),
        T(a_job_is_of_its_user_and_of_workers),
        T(who_leaves_gets_no_more),
        T(the_letters_of_a_bag_pass_by_its_owner),
        T(nobody_floods_another),
        T(no_message_names_an_instance),
        T(an_instance_is_of_one_session),
        T(lists_agree_with_a_model),
    };
    return cmocka_run_group_tests_name("ttcore_mail", tests, NULL, NULL);
}
