/* One meaningful sample of every message: golden bytes, PROTOCOL.md's examples and fuzz seeds. */
#ifndef TESTS_SUPPORT_TEST_PROTO_SAMPLES_H
#define TESTS_SUPPORT_TEST_PROTO_SAMPLES_H

#include "proto/codec.h"

#define SAMPLE_KEY UINT64_C(0x0123456789abcdef)
#define TEXT(string)              \
    {                             \
        string, sizeof string - 1 \
    }
#define SAMPLE_JOB                                                                         \
    {                                                                                      \
        .job = UINT64_C(0x1122334455667788), .user = 0xa11ce, .game = TEXT("chess"),       \
        .position = TEXT("startpos"), .evaluation = 0xe7a1, .namespace_id = 0xc0ffee,      \
        .algorithm = TEXT("abdada"), .flags = PROTO_JOB_STRICT, .depth = 12,               \
        .remote_depth = PROTO_REMOTE_DEPTH_AUTO, .time_ms = 60000, .nodes = PROTO_NO_LIMIT \
    }

static struct tt_ask sample_asks[] = {
    {.key = SAMPLE_KEY, .depth = 9, .alpha = -50, .beta = 50, .flags = TT_EXCLUSIVE, .slot = 1},
    {.key = 1, .depth = 3, .alpha = -32767, .beta = 32767, .flags = 0, .slot = 2},
};
static struct tt_answer sample_answers[] = {
    {.verdict = TT_OPEN, .score = 0, .alpha = -50, .beta = 25, .move = 1804, .nproc = 2},
    {.verdict = TT_CUT, .score = -300, .alpha = 0, .beta = 0, .move = 7, .nproc = 0},
};
static struct tt_store sample_stores[] = {
    {.key = SAMPLE_KEY, .depth = 9, .score = 31, .bound = TT_LOWER, .move = 1804, .slot = 1},
};
static struct tt_store sample_results[] = {
    {.key = SAMPLE_KEY, .depth = 9, .score = 31, .bound = TT_LOWER, .move = 1804, .slot = 0},
};
static struct tt_store sample_shared[] = {
    {.key = SAMPLE_KEY, .depth = 9, .score = 31, .bound = TT_LOWER, .move = 1804},
    {.key = 200, .depth = PROTO_RESULT_DEPTH_MAX, .score = -300, .bound = TT_EXACT, .move = 7},
    {.key = 201, .depth = 4, .score = TT_CLAIM_ENDS, .bound = TT_CLAIM, .move = 0xabcd},
};
static struct tt_release sample_releases[] = {
    {.key = SAMPLE_KEY, .depth = 9, .slot = 1},
};
static struct tt_peek sample_peeks[] = {
    {.key = SAMPLE_KEY, .depth = 9},
    {.key = 200, .depth = 8},
};
static struct tt_peeked sample_peekeds[] = {
    {.lower = 31, .upper = 32767, .depth = 9, .move = 1804, .nproc = 0},
    {.lower = -32767, .upper = 32767, .depth = 0, .move = 0, .nproc = 1},
};
static struct tt_scanned sample_scanneds[] = {
    {.key = SAMPLE_KEY, .lower = 31, .upper = 32767, .move = 1804, .depth = 9},
    {.key = 200, .lower = -5, .upper = -5, .move = 0, .depth = 4},
};
static struct proto_correspondent sample_correspondents[] = {{0xfeed}, {SAMPLE_KEY}};
static const uint8_t sample_body[] = {3, 0, 255};
static struct proto_figure sample_figures[] = {
    {.name = TEXT("sessions"), .value = 3},
    {.name = TEXT("asks"), .value = 1000000},
};
static struct proto_member_row sample_members[] = {
    {.session = 65537,
     .instance_id = 0xfeed,
     .role = PROTO_WORKER,
     .job = UINT64_C(0x1122334455667788),
     .silent_ms = 40,
     .name = TEXT("worker-1"),
     .user = TEXT("alice"),
     .nodes = 5000000,
     .asks = 4000,
     .waited_us = 2500,
     .talked_us = 9000,
     .duplicated = 300,
     .abandoned = 7000,
     .bytes_sent = 600000,
     .bytes_received = 900000,
     .highest = 9,
     .release = TEXT("0.2.0"),
     .refuses = 7,
     .why = TEXT("unknown game")},
};
static struct proto_job_row sample_jobs[] = {
    {.job = UINT64_C(0x1122334455667788),
     .workers = 4,
     .age_ms = 2500,
     .depth = 12,
     .reached = 9,
     .owner = TEXT("abdada"),
     .game = TEXT("chess"),
     .algorithm = TEXT("abdada"),
     .position = TEXT("startpos"),
     .user = TEXT("alice"),
     .score = -31,
     .move = 1804,
     .nodes = 9000000,
     .duplicated = 500,
     .abandoned = 12000,
     .bytes = 1600000,
     .line = TEXT("e2e4 e7e5"),
     .left_s = 86400},
};

static const struct proto_message samples[] = {
    {PROTO_HELLO, .hello = {.request = 1,
                            .role = PROTO_WORKER,
                            .flags = 0,
                            .namespace_id = 0xc0ffee,
                            .instance = 0xfeed,
                            .name = TEXT("worker-1"),
                            .table_id = 0x7ab1e,
                            .lowest = 8,
                            .highest = 9,
                            .release = TEXT("0.2.0")}},
    {PROTO_WELCOME, .welcome = {.request = 1,
                                .session = 65537,
                                .boot = UINT64_C(0xb007000000000001),
                                .heartbeat_ms = 1000,
                                .batch_max = 1024,
                                .jobs = 1,
                                .inflight_age_max_ms = 60000,
                                .place = UINT64_C(0xb007000000000001)}},
    {PROTO_RETRIEVE_ASK, .retrieve_ask = {.request = 2, .list = {2, sample_asks}}},
    {PROTO_RETRIEVE_ANSWER, .retrieve_answer = {.request = 2, .list = {2, sample_answers}}},
    {PROTO_STORE_HASH, .store_hash = {.list = {1, sample_stores}}},
    {PROTO_RELEASE, .release = {.list = {1, sample_releases}}},
    {PROTO_PEEK, .peek = {.request = 3, .list = {2, sample_peeks}}},
    {PROTO_PEEK_ANSWER, .peek_answer = {.request = 3, .list = {2, sample_peekeds}}},
    {PROTO_HEARTBEAT, .heartbeat = {.request = 4}},
    {PROTO_JOB_POST, .job_post = SAMPLE_JOB},
    {PROTO_JOB, .job = SAMPLE_JOB},
    {PROTO_JOB_STOP, .job_stop = {UINT64_C(0x1122334455667788), PROTO_STOP_OWNER}},
    {PROTO_JOB_REPORT, .job_report = {.job = UINT64_C(0x1122334455667788),
                                      .instance = 0xfeed,
                                      .state = PROTO_JOB_SEARCHING,
                                      .depth = 11,
                                      .score = -31,
                                      .move = 1804,
                                      .nodes = 5000000,
                                      .asks = 4000,
                                      .busy = 120,
                                      .deferred = 90,
                                      .duplicated = 300,
                                      .abandoned = 7000,
                                      .waited_us = 2500,
                                      .talked_us = 9000,
                                      .bytes_sent = 600000,
                                      .bytes_received = 900000,
                                      .line = TEXT("e2e4 e7e5"),
                                      .name = TEXT("worker-1"),
                                      .why = TEXT(""),
                                      .left_s = 3600}},
    {PROTO_NODE_DONE, .node_done = {.list = {1, sample_results}}},
    {PROTO_STATS, .stats = {.request = 5}},
    {PROTO_STATS_ANSWER, .stats_answer = {.request = 5, .list = {2, sample_figures}}},
    {PROTO_ERROR,
     .error = {.code = PROTO_ERR_SESSION, .request = 0, .text = TEXT("say HELLO first")}},
    {PROTO_BYE, .bye = {.reason = 0}},
    {PROTO_WORKER_INDEX, .worker_index = {.index = 2, .workers = 4}},
    {PROTO_MEMBERS, .members = {.request = 6, .from = 0}},
    {PROTO_MEMBERS_ANSWER,
     .members_answer = {.request = 6, .next = 0, .list = {1, sample_members}}},
    {PROTO_JOBS, .jobs = {.request = 7, .from = 0}},
    {PROTO_JOBS_ANSWER, .jobs_answer = {.request = 7, .next = 0, .list = {1, sample_jobs}}},
    {PROTO_SHARE, .share = {.table_id = 0x7ab1e, .list = {3, sample_shared}, .load = 20}},
    {PROTO_FLUSH, .flush = {.request = 9}},
    {PROTO_FLUSHED, .flushed = {.request = 9}},
    {PROTO_SCAN, .scan = {.request = 10, .cursor = 0, .depth = 4}},
    {PROTO_SCANNED, .scanned = {.request = 10, .next = 4096, .list = {2, sample_scanneds}}},
    {PROTO_MAIL_JOIN, .mail_join = {.request = 11, .job = UINT64_C(0x1122334455667788)}},
    {PROTO_MAIL_LIST, .mail_list = {.request = 11,
                                    .job = UINT64_C(0x1122334455667788),
                                    .list = {2, sample_correspondents}}},
    {PROTO_MAIL, .mail = {.job = UINT64_C(0x1122334455667788),
                          .to = 0xfeed,
                          .from = 0xf00d,
                          .body = {sample_body, sizeof sample_body}}},
};
enum { SAMPLES = sizeof samples / sizeof *samples };

#endif
