/* Who may say what: every role and every key against every type of message. */
#include "tests/support/test_ttcore.h"

#include "tests/support/test_proto_samples.h"

enum {
    ROLES = PROTO_MONITOR + 1,
    TYPES = 64,
    ADMINISTRATOR = 0xf | TTCORE_MAY_STOP_ANY_JOB | TTCORE_MAY_FLUSH
};

/* What PROTOCOL.md section 6 says: for each type the roles that may send it, w f c m. */
static const struct {
    enum proto_type type;
    const char *roles;
} rights[] = {
    {PROTO_HEARTBEAT, "wfcm"}, {PROTO_STATS, "wfcm"},  {PROTO_MEMBERS, "wfcm"},
    {PROTO_JOBS, "wfcm"},      {PROTO_BYE, "wfcm"},    {PROTO_RETRIEVE_ASK, "wfc"},
    {PROTO_STORE_HASH, "wfc"}, {PROTO_RELEASE, "wfc"}, {PROTO_PEEK, "wfc"},
    {PROTO_SHARE, "wfc"},      {PROTO_JOB_POST, "f"},  {PROTO_JOB_STOP, "f"},
    {PROTO_JOB_REPORT, "wf"},  {PROTO_SCAN, "wfc"},    {PROTO_MAIL_JOIN, "wfc"},
    {PROTO_MAIL, "wfc"},       {PROTO_FLUSH, "fc"}, /* if the key may flush */
};

static const char *roles_of(enum proto_type type)
{
    for (size_t i = 0; i < sizeof rights / sizeof rights[0]; i++) {
        if (rights[i].type == type) {
            return rights[i].roles;
        }
    }
    return NULL; /* from shards alone */
}

/* The ERROR that the last step sent to `who`; 0: none. */
static unsigned error_to(struct bed *bed, const char *who)
{
    for (unsigned i = 0; bed_nth(bed, who, i) != NULL; i++) {
        if (bed->seen.type == PROTO_ERROR) {
            return bed->seen.error.code;
        }
    }
    return 0;
}

static bool is_silent(enum proto_type type)
{
    return type == PROTO_ERROR; /* never answered */
}

/* Many are opened. */
static struct ttcore_options small(void)
{
    struct ttcore_options options = bed_options();
    options.results_bytes = 4096;
    options.inflight_max = 64;
    options.sessions_max = options.jobs_max = 4;
    return options;
}

/* A session of that role, begun with all rights; then the message under those of `may`. */
static void check_one(const struct proto_message *message, uint8_t role, uint32_t may)
{
    struct ttcore_options options = small();
    struct bed *bed = bed_open(&options);
    struct ttcore_peer all = {7, 0xf, "all"}, peer = {7, may, "peer"};
    const char *roles = roles_of(message->type);
    bool is_stop = message->type == PROTO_JOB_STOP && (may & TTCORE_MAY_STOP_ANY_JOB);
    bool is_barred = message->type == PROTO_FLUSH && !(may & TTCORE_MAY_FLUSH);
    bool allowed = roles != NULL && !is_barred &&
                   ((may >> role & 1 && strchr(roles, "wfcm"[role])) || is_stop);
    bed->peer = &all;
    bed_hello_as(bed, "x", (struct proto_hello){.role = role, .instance = 5});
    assert_int_equal(error_to(bed, "x"), 0);
    struct ttcore_figures before = bed_figures(bed);
    bed->peer = &peer;
    bed_say(bed, "x", *message);
    struct ttcore_figures now = bed_figures(bed);
    unsigned code = error_to(bed, "x");
    unsigned expected = allowed || is_silent(message->type) ? 0
                        : roles != NULL                     ? PROTO_ERR_ROLE
                                                            : PROTO_ERR_TYPE;
    if (code != expected) {
        fail_msg("%s of role %c under %#x: error %u, not %u", proto_type_name(message->type),
                 "wfcm"[role], may, code, expected);
    }
    if (!allowed) { /* and nothing has happened */
        assert_int_equal(now.sessions, before.sessions);
        assert_int_equal(now.jobs + now.inflight_entries + now.stores + now.asks + now.peeks, 0);
        assert_int_equal(now.shared + now.job_reports, 0);
        assert_int_equal(now.flushes, 0);
    }
    assert_int_equal(now.role_refused, roles != NULL && !allowed);
    bed_close(bed);
}

static void every_type_of_message_by_every_role_under_every_key(void **state)
{
    (void)state;
    for (unsigned i = 0; i < SAMPLES; i++) {
        if (samples[i].type == PROTO_HELLO) {
            continue; /* the next test's */
        }
        for (uint8_t role = 0; role < ROLES; role++) {
            for (uint32_t roles = 0; roles <= 0xf; roles++) {
                check_one(&samples[i], role, roles);
                check_one(&samples[i], role, roles | TTCORE_MAY_STOP_ANY_JOB);
                check_one(&samples[i], role, roles | TTCORE_MAY_FLUSH);
            }
            check_one(&samples[i], role, ADMINISTRATOR);
        }
    }
}

static void a_role_is_taken_only_if_the_key_allows_it(void **state)
{
    (void)state;
    for (uint32_t may = 0; may <= 0xf; may++) {
        for (uint8_t role = 0; role < ROLES; role++) {
            for (uint8_t old = 0; old <= ROLES; old++) { /* ROLES: no session yet */
                struct ttcore_options options = small();
                struct bed *bed = bed_open(&options);
                struct ttcore_peer all = {7, 0xf, "all"}, peer = {7, may, "peer"};
                bed->peer = &all;
                if (old < ROLES) {
                    bed_hello(bed, "x", old);
                }
                bed->peer = &peer;
                bed_hello_as(bed, "x", (struct proto_hello){.role = role, .instance = 'x'});
                bool allowed = may >> role & 1;
                struct ttcore_figures f = bed_figures(bed);
                const uint64_t count[ROLES] = {f.workers, f.fronts,
                                               f.sessions - f.workers - f.fronts - f.monitors,
                                               f.monitors};
                uint8_t is = allowed ? role : old;
                assert_int_equal(error_to(bed, "x"), allowed ? 0 : PROTO_ERR_ROLE);
                assert_int_equal(f.sessions, is < ROLES);
                assert_true(is == ROLES || count[is] == 1);
                bed_close(bed);
            }
        }
    }
}

static void who_is_not_known_may_all_but_stop_the_jobs_of_others(void **state)
{
    struct bed *bed = *state;
    for (uint8_t role = 0; role < ROLES; role++) {
        bed_hello_as(bed, "x", (struct proto_hello){.role = role});
        assert_int_equal(error_to(bed, "x"), 0);
    }
    bed_hello(bed, "front", PROTO_FRONT);
    bed_hello(bed, "other", PROTO_FRONT);
    bed_post(bed, "front", 5);
    bed_stop_job(bed, "other", 5);
    bed_expect_error(bed, "other", PROTO_ERR_ROLE);
}

static void an_administrator_stops_any_job_for_good(void **state)
{
    struct bed *bed = *state;
    struct ttcore_peer front = {7, TTCORE_MAY_POST, "f"}, administrator = {8, ADMINISTRATOR, "a"};
    bed_hello(bed, "worker", PROTO_WORKER);
    bed->peer = &front;
    bed_hello(bed, "front", PROTO_FRONT);
    bed_post(bed, "front", 5);
    bed->peer = &administrator;
    bed_hello(bed, "watch", PROTO_MONITOR);
    bed_stop_job(bed, "watch", 5);
    assert_int_equal(bed_seen(bed, "worker", PROTO_JOB_STOP)->job_stop.reason, PROTO_STOP_OWNER);
    assert_int_equal(bed_figures(bed).jobs, 0);
    bed->peer = &front;
    bed_post(bed, "front", 5); /* as a front-end does at every heartbeat */
    bed_expect_error(bed, "front", PROTO_ERR_ROLE);
    assert_int_equal(bed->seen.error.request, 5);
    bed_post(bed, "front", 6);
    assert_int_equal(bed_figures(bed).jobs, 1);
}

/* Whatever was stopped before, and however much after it. */
static void an_administrators_stop_is_not_forgotten_for_other_stops(void **state)
{
    struct bed *bed = *state;
    struct ttcore_peer front = {7, TTCORE_MAY_POST, "f"}, administrator = {8, ADMINISTRATOR, "a"};
    bed->peer = &administrator;
    bed_hello(bed, "watch", PROTO_MONITOR);
    bed->peer = &front;
    bed_hello(bed, "front", PROTO_FRONT);
    bed_post(bed, "front", 5);
    bed_stop_job(bed, "front", 5);
    bed_post(bed, "front", 5);
    bed->peer = &administrator;
    bed_stop_job(bed, "watch", 5);
    bed->peer = &front;
    bed_post(bed, "front", 5);
    bed_expect_error(bed, "front", PROTO_ERR_ROLE);
    for (uint64_t job = 100; job < 300; job++) {
        bed->now_us += HEARTBEAT_US / 50;
        bed_post(bed, "front", job);
        bed_stop_job(bed, "front", job);
    }
    assert_int_equal(bed_figures(bed).job_posts, 202);
    bed_post(bed, "front", 5);
    bed_expect_error(bed, "front", PROTO_ERR_ROLE);
    assert_int_equal(bed_figures(bed).jobs, 0);
}

static void a_monitor_gets_nothing_and_leaves_what_is_in_flight(void **state)
{
    struct bed *bed = *state;
    struct tt_store result = {5, 30, 1, TT_LOWER, 9, 0};
    uint8_t flags = PROTO_WANTS_NODE_DONE | PROTO_WANTS_RESULTS;
    bed_hello(bed, "a", PROTO_CLIENT);
    bed_hello_as(bed, "m", (struct proto_hello){.role = PROTO_CLIENT, .flags = flags});
    bed_ask(bed, "m", bed_wide(1, 4, 0, 0));
    bed_hello_as(bed, "m", (struct proto_hello){.role = PROTO_MONITOR, .flags = flags});
    assert_int_equal(bed_figures(bed).inflight_entries, 0);
    bed_say(bed, "a", (struct proto_message){.type = PROTO_SHARE, .share = {9, {1, &result}}});
    assert_int_equal(bed->actions.messages, 0);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, bed_setup, bed_teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_of_message_by_every_role_under_every_key),
        cmocka_unit_test(a_role_is_taken_only_if_the_key_allows_it),
        T(who_is_not_known_may_all_but_stop_the_jobs_of_others),
        T(an_administrator_stops_any_job_for_good),
        T(an_administrators_stop_is_not_forgotten_for_other_stops),
        T(a_monitor_gets_nothing_and_leaves_what_is_in_flight),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
