/* What a Redis does for clients besides the four operations: sessions, jobs, messages between
 * clients, figures. */
#include "tests/support/test_redis_bed.h"

/* ---- sessions ---- */

static void bye_takes_everything_out_of_flight(void **state)
{
    (void)state;
    peer_open(&bed, 0, PROTO_CLIENT);
    peer_open(&bed, 1, PROTO_CLIENT);
    for (uint64_t key = 1; key <= 20; key++) {
        assert_int_equal(peer_ask(&bed, 0, wide(key, 5, 0)).nproc, 1);
    }
    assert_int_equal(peer_ask(&bed, 1, wide(3, 5, TT_EXCLUSIVE)).verdict, TT_BUSY);
    peer_close(&bed, 0);
    BED_UNTIL(&bed, peer_peek(&bed, 1, 3, 5).nproc == 0);
    for (uint64_t key = 1; key <= 20; key++) {
        assert_int_equal(peer_ask(&bed, 1, wide(key, 5, TT_EXCLUSIVE)).verdict, TT_OPEN);
    }
}

static void killed_client_is_out_of_flight_when_its_session_ends(void **state)
{
    (void)state;
    peer_open(&bed, 0, PROTO_CLIENT);
    peer_open(&bed, 1, PROTO_CLIENT);
    assert_int_equal(peer_ask(&bed, 0, wide(3, 5, 0)).nproc, 1);
    assert_int_equal(peer_ask(&bed, 1, wide(3, 5, TT_EXCLUSIVE)).verdict, TT_BUSY);
    peer_die(&bed, 0);
    BED_UNTIL(&bed, peer_ask(&bed, 1, wide(3, 5, TT_EXCLUSIVE)).verdict == TT_OPEN);
    assert_int_equal(bed_entries(&bed), 1); /* the dead one's entry is gone, too */
}

static void living_client_keeps_its_session(void **state)
{
    (void)state;
    uint64_t downs, end_us = clock_us() + REDIS_PATIENCE_S * UINT64_C(1000000);
    enum tt_verdict verdict;
    peer_open(&bed, 0, PROTO_CLIENT);
    peer_open(&bed, 1, PROTO_CLIENT);
    do { /* a machine that is too busy to renew it in time has another try */
        assert_true(clock_us() < end_us);
        downs = client_counters(bed.peer[0].client)->downs;
        (void)peer_peek_well(&bed, 0, 3, 5);
        struct tt_release own = {3, 5, 0};
        peer_release(&bed, 1, own);
        (void)peer_ask(&bed, 0, wide(3, 5, 0));
        bed_serve_for(&bed, 5000000); /* longer than a session lasts without renewal */
        verdict = peer_ask(&bed, 1, wide(3, 5, TT_EXCLUSIVE)).verdict;
        (void)peer_peek_well(&bed, 0, 3, 5);
    } while (verdict != TT_BUSY && client_counters(bed.peer[0].client)->downs > downs);
    assert_int_equal(verdict, TT_BUSY);
}

static void hello_that_releases_all_does(void **state)
{
    (void)state;
    peer_open(&bed, 0, PROTO_CLIENT);
    peer_open(&bed, 1, PROTO_CLIENT);
    assert_int_equal(peer_ask(&bed, 0, wide(3, 5, 0)).nproc, 1);
    struct proto_message hello = {.type = PROTO_HELLO};
    uint8_t bytes[256];
    hello.hello = (struct proto_hello){
        .request = 99, .role = PROTO_CLIENT, .flags = PROTO_RELEASE_ALL, .namespace_id = NAMES_A};
    hello.hello.name = proto_text_of("peer0");
    size_t length = proto_encode(&hello, bytes, sizeof bytes);
    assert_true(bed.peer[0].port.send(bed.peer[0].port.self, 0, bytes, length));
    BED_UNTIL(&bed, peer_peek(&bed, 1, 3, 5).nproc == 0);
    assert_int_equal(peer_ask(&bed, 0, wide(4, 5, 0)).nproc, 1); /* it goes on */
}

/* A result that stays beside those of other depths. */
static struct tt_store beside(uint64_t key, uint8_t depth, enum tt_bound bound, int score,
                              uint16_t move)
{
    struct tt_store store = tt_result(key, depth, bound, score, move);
    store.bound |= TT_BESIDE;
    return store;
}

/* ---- namespaces ---- */

/* Keys are in their namespace already; what is apart are the generations and SHARE. */
static void deeper_result_of_an_earlier_job_gives_way(void **state)
{
    (void)state;
    peer_open(&bed, 0, PROTO_CLIENT);
    peer_open_as(&bed, 1, PROTO_CLIENT, NAMES_B, BENCH_WAIT_US);
    peer_open(&bed, 2, PROTO_FRONT);
    peer_store(&bed, 0, tt_result(1, 9, TT_EXACT, 1, 3));
    peer_store(&bed, 0, tt_result(1, 5, TT_EXACT, 2, 3));
    assert_int_equal(peer_peek(&bed, 0, 1, 5).depth, 9); /* of one generation: stays */
    peer_store(&bed, 1, tt_result(2, 9, TT_EXACT, 1, 3));
    post(2, 0x123456789abcdef0, "startpos");
    BED_UNTIL(&bed, bed_eval(&bed, "return #redis.call('KEYS', 'abdada:*:g:*')") == 1);
    peer_store(&bed, 0, tt_result(1, 5, TT_EXACT, 2, 3));
    assert_int_equal(peer_peek(&bed, 0, 1, 5).depth, 5);
    peer_store(&bed, 1, tt_result(2, 5, TT_EXACT, 2, 3));
    assert_int_equal(peer_peek(&bed, 1, 2, 5).depth, 9); /* of another namespace: stays */
}

/* Of a search that takes days: what it needs is renewed with it. */
static void generation_and_namespace_last_as_long_as_the_search(void **state)
{
    (void)state;
    static const char shorten[] =
        "local n = 0 for _, p in ipairs({'g', 'n'}) do "
        "for _, k in ipairs(redis.call('KEYS', 'abdada:*:' .. p .. ':*')) do "
        "n = n + redis.call('EXPIRE', k, 1000) end end return n";
    static const char shortest[] =
        "local n = 1000000 for _, p in ipairs({'g', 'n'}) do "
        "for _, k in ipairs(redis.call('KEYS', 'abdada:*:' .. p .. ':*')) do "
        "n = math.min(n, redis.call('TTL', k)) end end return n";
    peer_open(&bed, 0, PROTO_WORKER);
    peer_open(&bed, 1, PROTO_FRONT);
    post(1, 42, "startpos");
    BED_UNTIL(&bed, bed.peer[0].jobs > 0);
    assert_int_equal(bed_eval(&bed, shorten), 2);
    BED_UNTIL(&bed, bed_eval(&bed, shortest) > 80000);
}

/* ---- what clients say to each other ---- */

static void others_in_a_node_get_its_result(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        peer_open(&bed, i, PROTO_CLIENT);
        assert_int_equal(peer_ask(&bed, i, wide(3, 5, 0)).nproc, i + 1);
    }
    peer_store(&bed, 1, beside(3, 5, TT_LOWER, -33, 9));
    BED_UNTIL(&bed, bed.peer[0].dones == 1 && bed.peer[2].dones == 1);
    assert_int_equal(bed.peer[1].dones, 0);
    assert_int_equal(bed.peer[0].done.key, 3);
    assert_int_equal(bed.peer[0].done.depth, 5);
    assert_int_equal(bed.peer[0].done.bound, TT_LOWER);
    assert_int_equal(bed.peer[0].done.score, -33);
    assert_int_equal(bed.peer[0].done.move, 9);
    assert_int_equal(peer_peek(&bed, 0, 3, 5).nproc, 2); /* they are still in it */
}

static void results_reach_searchers_with_another_table(void **state)
{
    (void)state;
    struct tt_store results[2] = {tt_result(1, 4, TT_EXACT, -5, 2),
                                  tt_result(2, 63, TT_UPPER, 6, 0)};
    bed.table_id = 0x1111;
    peer_open(&bed, 0, PROTO_CLIENT);
    peer_open(&bed, 1, PROTO_CLIENT); /* another process of that host */
    bed.table_id = 0x2222;
    peer_open(&bed, 2, PROTO_CLIENT);
    bed.table_id = 0x3333;
    peer_open_as(&bed, 3, PROTO_CLIENT, NAMES_B, BENCH_WAIT_US);
    bed.table_id = 0;
    assert_int_equal(client_share(bed.peer[0].client, results, 2, 0, clock_us()), 2);
    BED_UNTIL(&bed, bed.peer[2].shares == 2);
    assert_int_equal(bed.peer[2].shared_table, 0x1111);
    assert_int_equal(bed.peer[2].shared.score, -5);
    assert_int_equal(client_share(bed.peer[2].client, results + 1, 1, 0, clock_us()), 1);
    BED_UNTIL(&bed, bed.peer[0].shares == 1 && bed.peer[1].shares == 1); /* two receivers */
    assert_int_equal(bed.peer[1].shared_table, 0x2222);
    assert_int_equal(bed.peer[1].shared.depth, 63);
    assert_int_equal(bed.peer[2].shares, 2);
    assert_int_equal(bed.peer[3].shares, 0);
}

/* ---- jobs ---- */

static void job_reaches_workers_and_reports_come_back(void **state)
{
    (void)state;
    struct peer *worker = &bed.peer[0], *front = &bed.peer[1], *late = &bed.peer[2];
    peer_open(&bed, 0, PROTO_WORKER);
    peer_open(&bed, 1, PROTO_FRONT);
    post(1, 42, "startpos");
    BED_UNTIL(&bed, worker->jobs >= 1);
    assert_int_equal(worker->job, 42);
    assert_string_equal(worker->position, "startpos");
    peer_open(&bed, 2, PROTO_WORKER);
    BED_UNTIL(&bed, late->jobs >= 1 && late->job == 42);
    report(0, 42, PROTO_JOB_SEARCHING);
    BED_UNTIL(&bed, front->reports == 1);
    assert_int_equal(front->report.job, 42);
    assert_int_equal(front->report.nodes, 1000);
    assert_int_equal(worker->stops, 0);
    client_job_stop(front->client, 42, clock_us());
    BED_UNTIL(&bed, worker->stops >= 1 && late->stops >= 1);
    assert_int_equal(worker->stopped, 42);
    assert_int_equal(worker->stop_reason, PROTO_STOP_OWNER);
    unsigned stops = worker->stops;
    report(0, 42, PROTO_JOB_ENDED); /* the last one still arrives */
    BED_UNTIL(&bed, front->reports == 2 && worker->stops > stops);
    assert_int_equal(worker->stop_reason, PROTO_STOP_EXPIRED);
}

static void job_ends_with_its_front_end(void **state)
{
    (void)state;
    struct peer *worker = &bed.peer[0];
    peer_open(&bed, 0, PROTO_WORKER);
    peer_open(&bed, 1, PROTO_FRONT);
    post(1, 42, "startpos");
    BED_UNTIL(&bed, worker->jobs >= 1);
    peer_die(&bed, 1);
    BED_UNTIL(&bed, worker->stops >= 1);
    assert_int_equal(worker->stopped, 42);
    assert_int_equal(worker->stop_reason, PROTO_STOP_EXPIRED);
}

static void report_on_an_unknown_job_is_answered_by_its_stop(void **state)
{
    (void)state;
    peer_open(&bed, 0, PROTO_WORKER);
    report(0, 4711, PROTO_JOB_SEARCHING);
    BED_UNTIL(&bed, bed.peer[0].stops == 1);
    assert_int_equal(bed.peer[0].stopped, 4711);
    assert_int_equal(bed.peer[0].stop_reason, PROTO_STOP_EXPIRED);
}

static void jobs_id_belongs_to_who_posted_it(void **state)
{
    (void)state;
    peer_open(&bed, 0, PROTO_WORKER);
    peer_open(&bed, 1, PROTO_FRONT);
    peer_open(&bed, 2, PROTO_FRONT);
    post(1, 42, "startpos");
    BED_UNTIL(&bed, bed.peer[0].jobs >= 1);
    post(2, 42, "another");
    BED_UNTIL(&bed, bed.peer[2].refusals >= 1);
    client_job_stop(bed.peer[2].client, 42, clock_us());
    (void)peer_peek(&bed, 2, 1, 1);
    report(0, 42, PROTO_JOB_SEARCHING);
    BED_UNTIL(&bed, bed.peer[1].reports == 1);
    assert_int_equal(bed.peer[0].stops, 0);
    assert_int_equal(bed.peer[2].reports, 0);
}

static void workers_have_indexes(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        peer_open(&bed, i, PROTO_WORKER);
    }
    BED_UNTIL(&bed, bed.peer[0].index.workers == 3 && bed.peer[1].index.workers == 3 &&
                        bed.peer[2].index.workers == 3);
    assert_int_equal(bed.peer[0].index.index + bed.peer[1].index.index + bed.peer[2].index.index,
                     3);
    assert_int_not_equal(bed.peer[0].index.index, bed.peer[1].index.index);
    peer_die(&bed, 0);
    BED_UNTIL(&bed, bed.peer[1].index.workers == 2 && bed.peer[2].index.workers == 2);
    assert_int_equal(bed.peer[1].index.index + bed.peer[2].index.index, 1);
}

static void people_see_sessions_jobs_and_figures(void **state)
{
    (void)state;
    struct peer *worker = &bed.peer[0], *front = &bed.peer[1];
    peer_open(&bed, 0, PROTO_WORKER);
    peer_open(&bed, 1, PROTO_FRONT);
    post(1, 42, "8/8/8/8/8/8/8/K6k w - - 0 1");
    BED_UNTIL(&bed, worker->jobs >= 1);
    (void)peer_ask(&bed, 0, wide(3, 5, 0));
    peer_store(&bed, 0, tt_result(3, 5, TT_EXACT, 7, 3));
    report(0, 42, PROTO_JOB_SEARCHING);
    BED_UNTIL(&bed, front->reports == 1);
    assert_true(client_members(front->client, 0, 0, clock_us()));
    BED_UNTIL(&bed, front->members == 2);
    assert_true(client_jobs(front->client, 0, 0, clock_us()));
    BED_UNTIL(&bed, front->job_rows == 1);
    assert_string_equal(front->position, "8/8/8/8/8/8/8/K6k w - - 0 1");
    do { /* what clients counted is there with their next renewal */
        front->stats[0] = '\0';
        assert_true(client_stats(front->client, 0, clock_us()));
        BED_UNTIL(&bed, front->stats[0] != '\0');
    } while (strstr(front->stats, " asks=1;") == NULL);
    assert_non_null(strstr(front->stats, " stores=1;"));
    assert_non_null(strstr(front->stats, " sessions=2;"));
    assert_non_null(strstr(front->stats, " workers=1;"));
    assert_non_null(strstr(front->stats, " fronts=1;"));
    assert_non_null(strstr(front->stats, " jobs=1;"));
    assert_non_null(strstr(front->stats, " memory_bytes="));
}

/* The row that shows what is wanted, which comes with one of the next answers. */
static void row_becomes(struct peer *watch, unsigned depth, int score, uint64_t nodes,
                        const char *line)
{
    do {
        watch->job_rows = 0;
        assert_true(client_jobs(watch->client, 0, 0, clock_us()));
        BED_UNTIL(&bed, watch->job_rows == 1);
    } while (watch->job_row.reached != depth || watch->job_row.score != score ||
             watch->job_row.nodes != nodes || strcmp(watch->line, line) != 0);
}

static void job_shows_what_was_found(void **state)
{
    (void)state;
    struct peer *front = &bed.peer[1], *other = &bed.peer[2];
    struct proto_job_report r = a_report(42, PROTO_JOB_SEARCHING);
    peer_open(&bed, 0, PROTO_WORKER);
    peer_open(&bed, 1, PROTO_FRONT);
    peer_open(&bed, 2, PROTO_FRONT);
    post(1, 42, "startpos");
    BED_UNTIL(&bed, bed.peer[0].jobs >= 1);
    row_becomes(front, 0, 0, 0, "");
    r.score = 30;
    r.line = proto_text_of("e2e4 e7e5");
    client_job_report(bed.peer[0].client, &r, clock_us());
    row_becomes(front, 5, 30, 1000, "e2e4 e7e5");
    r.score = 99;
    client_job_report(other->client, &r, clock_us()); /* not the owner */
    (void)peer_peek(&bed, 2, 1, 1);
    row_becomes(front, 5, 30, 1000, "e2e4 e7e5");
    r.depth = 4;
    r.score = -7;
    r.nodes = 5000;
    r.duplicated = 50;
    r.abandoned = 60;
    r.bytes_sent = 30;
    r.bytes_received = 40;
    r.left_s = 3600;
    r.line = proto_text_of("d2d4");
    client_job_report(front->client, &r, clock_us()); /* what its user sees stands */
    row_becomes(other, 4, -7, 5000, "d2d4");
    assert_int_equal(other->job_row.duplicated, 50);
    assert_int_equal(other->job_row.abandoned, 60);
    assert_int_equal(other->job_row.bytes, 70);
    assert_int_equal(other->job_row.left_s, 3600);
    r.depth = 9;
    client_job_report(bed.peer[0].client, &r, clock_us());
    BED_UNTIL(&bed, front->reports == 2); /* those of the worker alone */
    row_becomes(other, 4, -7, 5000, "d2d4");
    assert_int_equal(other->reports, 0);
}

static void batch_does_its_operations_in_their_order(void **state)
{
    (void)state;
    enum { SAME = 3, DEPTH = 5 };
    struct proto_message m = {.type = PROTO_STORE_HASH};
    struct tt_store store[] = {tt_result(1, DEPTH, TT_LOWER, 5, 2),
                               tt_result(1, DEPTH, TT_UPPER, 9, 0),
                               tt_result(1, DEPTH, TT_LOWER, 7, 4)};
    uint8_t bytes[4096];
    peer_open(&bed, 0, PROTO_CLIENT);
    m.store_hash.list = (struct proto_stores){SAME, store};
    size_t length = proto_encode(&m, bytes, sizeof bytes);
    assert_true(bed.peer[0].port.send(bed.peer[0].port.self, 0, bytes, length));
    struct tt_peeked peeked = peer_peek(&bed, 0, 1, DEPTH);
    assert_int_equal(peeked.lower, 7);
    assert_int_equal(peeked.upper, 9);
    assert_int_equal(peeked.move, 4);
    struct tt_ask ask[SAME];
    for (uint16_t i = 0; i < SAME; i++) {
        ask[i] = wide(2, DEPTH, i == 2 ? TT_EXCLUSIVE : 0);
        ask[i].slot = i;
    }
    m = (struct proto_message){.type = PROTO_RETRIEVE_ASK};
    m.retrieve_ask.request = 0xfffffff0;
    m.retrieve_ask.list = (struct proto_asks){SAME, ask};
    length = proto_encode(&m, bytes, sizeof bytes);
    assert_true(bed.peer[0].port.send(bed.peer[0].port.self, 0, bytes, length));
    assert_int_equal(peer_peek(&bed, 0, 2, DEPTH).nproc, 2); /* the third was BUSY */
    struct tt_release release[] = {{2, DEPTH, 0}, {2, DEPTH, 1}, {2, DEPTH, 0}};
    m = (struct proto_message){.type = PROTO_RELEASE};
    m.release.list = (struct proto_releases){SAME, release};
    length = proto_encode(&m, bytes, sizeof bytes);
    assert_true(bed.peer[0].port.send(bed.peer[0].port.self, 0, bytes, length));
    assert_int_equal(peer_peek(&bed, 0, 2, DEPTH).nproc, 0);
    assert_int_equal(bed_entries(&bed), 0);
}

static void scan_all(uint8_t depth)
{
    struct peer *p = &bed.peer[0];
    p->entries = p->pages = 0;
    p->next = 0;
    do {
        unsigned pages = p->pages;
        assert_true(client_scan(p->client, 0, p->next, depth, clock_us()));
        BED_UNTIL(&bed, p->pages > pages);
    } while (p->next != 0);
}

static void results_are_scanned_and_flushed(void **state)
{
    (void)state;
    enum { RESULTS = 3000, DEEP = 300 };
    struct client *client;
    peer_open(&bed, 0, PROTO_CLIENT);
    client = bed.peer[0].client;
    for (unsigned i = 0; i < RESULTS; i++) {
        struct tt_store store = tt_result(rng_mix(i + 1), i < DEEP ? 9 : 3, TT_LOWER, -77, 5);
        client_store(client, 0, &store);
        if (i % 32 == 31) {
            peer_serve(&bed.peer[0]);
        }
    }
    (void)peer_ask(&bed, 0, wide(1, 5, 0));
    scan_all(0);
    assert_int_equal(bed.peer[0].entries, RESULTS);
    assert_true(bed.peer[0].pages > 1);
    scan_all(4);
    assert_int_equal(bed.peer[0].entries, DEEP);
    assert_int_equal(bed.peer[0].entry.depth, 9);
    assert_int_equal(bed.peer[0].entry.lower, -77);
    assert_int_equal(bed.peer[0].entry.upper, TT_SCORE_MAX);
    assert_int_equal(bed.peer[0].entry.move, 5);
    assert_true(client_flush_table(client, 0, clock_us()));
    BED_UNTIL(&bed, bed.peer[0].flushes == 1);
    scan_all(0);
    assert_int_equal(bed.peer[0].entries, 0);
    assert_int_equal(peer_peek(&bed, 0, 1, 5).nproc, 1); /* entries in flight stay */
}

static void expect_depths(uint64_t key, const char *depths)
{
    scan_all(0);
    assert_int_equal(bed.peer[0].entries, strlen(depths));
    for (const char *d = depths; *d != '\0'; d++) {
        assert_int_equal(peer_peek(&bed, 0, key, (uint8_t)(*d - '0')).depth, *d - '0');
    }
}

static void strict_results_of_four_depths_stay_beside_each_other(void **state)
{
    (void)state;
    struct tt_peeked peeked;
    peer_open(&bed, 0, PROTO_CLIENT);
    peer_open(&bed, 2, PROTO_FRONT);
    for (uint8_t depth = 3; depth < 7; depth++) {
        peer_store(&bed, 0, beside(1, depth, TT_LOWER, depth, depth));
    }
    expect_depths(1, "3456");
    peer_store(&bed, 0, beside(1, 4, TT_UPPER, 9, 0)); /* of a depth that is there */
    expect_depths(1, "3456");
    peeked = peer_peek(&bed, 0, 1, 4);
    assert_true(peeked.lower == 4 && peeked.upper == 9 && peeked.move == 4);
    peer_store(&bed, 0, beside(1, 2, TT_UPPER, 8, 0)); /* 3 is the shallowest of those there */
    expect_depths(1, "2456");
    assert_int_equal(peer_peek(&bed, 0, 1, 2).move, 6); /* of the deepest, for order */
    assert_int_equal(peer_peek(&bed, 0, 1, 9).depth, 6);
    post(2, 0x123456789abcdef0, "startpos");
    BED_UNTIL(&bed, bed_eval(&bed, "return #redis.call('KEYS', 'abdada:*:g:*')") == 1);
    peer_store(&bed, 0, beside(1, 1, TT_EXACT, 1, 1));
    expect_depths(1, "1456");
    peer_store(&bed, 0, beside(1, 8, TT_EXACT, 2, 2)); /* 1 is of this job, 4 is not */
    expect_depths(1, "1568");
    peer_store(&bed, 0, tt_result(1, 7, TT_EXACT, 3, 3)); /* not beside: 8 is deeper, and stays */
    expect_depths(1, "1568");
    peer_store(&bed, 0, tt_result(1, 9, TT_EXACT, 4, 4)); /* in the place of all */
    expect_depths(1, "9");
}

static void pages_have_the_results_of_all_depths(void **state)
{
    (void)state;
    enum { KEYS = 1200, DEPTHS = 4 };
    peer_open(&bed, 0, PROTO_CLIENT);
    for (unsigned i = 0; i < KEYS * DEPTHS; i++) {
        struct tt_store store =
            beside(rng_mix(i % KEYS + 1), (uint8_t)(3 + i / KEYS), TT_LOWER, -77, 5);
        client_store(bed.peer[0].client, 0, &store);
        if (i % 32 == 31) {
            peer_serve(&bed.peer[0]);
        }
    }
    (void)peer_ask(&bed, 0, wide(1, 5, 0));
    scan_all(0);
    assert_int_equal(bed.peer[0].entries, KEYS * DEPTHS);
    scan_all(5);
    assert_int_equal(bed.peer[0].entries, KEYS * (DEPTHS - 2));
}

/* The rights that docs/redis.md names are enough for all of it. */
static void user_with_few_rights_is_enough(void **state)
{
    (void)state;
    char url[128], why[REDIS_WHY_MAX];
    struct redis_address everybody = bed.address;
    redis_expect(bed.server.port,
                 "ACL SETUSER abdada on >secret resetkeys ~abdada:* resetchannels &abdada:* "
                 "+@all -@admin -@dangerous +info +cluster|slots",
                 "+OK");
    snprintf(url, sizeof url, "redis://abdada:secret@127.0.0.1:%u", bed.server.port);
    assert_int_equal(redis_address_parse(&bed.address, url, why), ERR_OK);
    people_see_sessions_jobs_and_figures(state);
    (void)closed(state);
    (void)fresh(state);
    others_in_a_node_get_its_result(state);
    (void)closed(state);
    (void)fresh(state);
    results_are_scanned_and_flushed(state);
    bed.address = everybody;
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, fresh, closed)
    const struct CMUnitTest tests[] = {
        TEST(bye_takes_everything_out_of_flight),
        TEST(killed_client_is_out_of_flight_when_its_session_ends),
        TEST(living_client_keeps_its_session),
        TEST(hello_that_releases_all_does),
        TEST(deeper_result_of_an_earlier_job_gives_way),
        TEST(generation_and_namespace_last_as_long_as_the_search),
        TEST(others_in_a_node_get_its_result),
        TEST(results_reach_searchers_with_another_table),
        TEST(job_reaches_workers_and_reports_come_back),
        TEST(job_ends_with_its_front_end),
        TEST(report_on_an_unknown_job_is_answered_by_its_stop),
        TEST(jobs_id_belongs_to_who_posted_it),
        TEST(workers_have_indexes),
        TEST(people_see_sessions_jobs_and_figures),
        TEST(job_shows_what_was_found),
        TEST(batch_does_its_operations_in_their_order),
        TEST(results_are_scanned_and_flushed),
        TEST(strict_results_of_four_depths_stay_beside_each_other),
        TEST(pages_have_the_results_of_all_depths),
        TEST(user_with_few_rights_is_enough),
    };
#undef TEST
    if (bed_why_not() != NULL) {
        printf("1..0 # skipped: %s\n", bed_why_not());
        return 0;
    }
    return cmocka_run_group_tests_name("redis shell", tests, start_redis, stop_redis);
}
