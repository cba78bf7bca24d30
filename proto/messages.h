/* messages: the one list of everything that travels between a client and a shard.
 *
 * The list generates ids, structs, encoder, decoder, golden bytes and fuzz seeds (proto/codec.h). A
 * message is one msgpack array [version, type, field, field, ...]; an operation inside a list field
 * is an array of its own fields. proto/PROTOCOL.md says in words what each one means.
 *
 * F(type, name): u8 u16 u32 u64 i16 are integers checked for range; text is a msgpack string;
 * `results` is a list of results packed into a msgpack bin, PROTO_RESULT_BYTES each, because
 * nothing else is sent as often; `bytes` is a msgpack bin that the shard does not look into; the
 * others are lists of the operations below. A new field stands at the end of its message or
 * operation: earlier programs pass over it, and where they send none its reader finds zero (an
 * empty text, an empty list). Pure. */
#ifndef PROTO_MESSAGES_H
#define PROTO_MESSAGES_H

#include "common/counters.h"

#define PROTO_VERSION 9 /* that is spoken here (PROTOCOL.md section 12) */

/* OP(list name, C struct of one element, fields). Structs of table operations are in tt.h. */
#define PROTO_OPS(OP)                                                                      \
    OP(asks, struct tt_ask,                                                                \
       F(u64, key) F(u8, depth) F(i16, alpha) F(i16, beta) F(u8, flags) F(u16, slot))      \
    OP(answers, struct tt_answer,                                                          \
       F(u8, verdict) F(i16, score) F(i16, alpha) F(i16, beta) F(u16, move) F(u16, nproc)) \
    OP(stores, struct tt_store,                                                            \
       F(u64, key) F(u8, depth) F(i16, score) F(u8, bound) F(u16, move) F(u16, slot))      \
    OP(releases, struct tt_release, F(u64, key) F(u8, depth) F(u16, slot))                 \
    OP(peeks, struct tt_peek, F(u64, key) F(u8, depth))                                    \
    OP(peekeds, struct tt_peeked,                                                          \
       F(i16, lower) F(i16, upper) F(u8, depth) F(u16, move) F(u16, nproc))                \
    OP(scanneds, struct tt_scanned,                                                        \
       F(u64, key) F(u8, depth) F(i16, lower) F(i16, upper) F(u16, move))                  \
    PROTO_ROWS(OP)

/* The participants of a job, to whom MAIL may be sent, and what is for people. */
#define PROTO_ROWS(OP)                                                                             \
    OP(correspondents, struct proto_correspondent, F(u64, alias))                                  \
    OP(figures, struct proto_figure, F(text, name) F(u64, value))                                  \
    OP(member_rows, struct proto_member_row,                                                       \
       F(u32, session) F(u32, instance_id) F(u8, role) F(u64, job) F(u32, silent_ms) F(text, name) \
           F(text, user) F(u64, nodes) F(u64, asks) F(u64, waited_us) F(u64, talked_us)            \
               F(u64, duplicated) F(u64, abandoned) F(u64, bytes_sent) F(u64, bytes_received)      \
                   F(u8, highest) F(text, release) F(u64, refuses) F(text, why))                   \
    OP(job_rows, struct proto_job_row,                                                             \
       F(u64, job) F(u32, workers) F(u32, age_ms) F(u8, depth) F(u8, reached) F(text, owner)       \
           F(text, game) F(text, algorithm) F(text, position) F(text, user) F(i16, score)          \
               F(u16, move) F(u64, nodes) F(u64, duplicated) F(u64, abandoned) F(u64, bytes)       \
                   F(text, line) F(u32, left_s))

#define PROTO_JOB_FIELDS \
    F(u64, job)          \
    F(u64, user)         \
    F(text, game)        \
    F(text, position)    \
    F(u64, evaluation)   \
    F(u64, namespace_id) \
    F(text, algorithm) F(u8, flags) F(u8, depth) F(u8, remote_depth) F(u32, time_ms) F(u64, nodes)

#define PROTO_COUNTER(name, json, help) F(u64, name)
#define PROTO_TALK(name) F(u64, name)

/* MSG(NAME, name, id, fields). The ids 24 and 25 are of earlier versions and stay unused. */
#define PROTO_MESSAGES(MSG)                                                                    \
    MSG(HELLO, hello, 1,                                                                       \
        F(u32, request) F(u8, role) F(u8, flags) F(u64, namespace_id) F(u64, instance)         \
            F(text, name) F(u64, table_id) F(u8, lowest) F(u8, highest) F(text, release))      \
    MSG(WELCOME, welcome, 2,                                                                   \
        F(u32, request) F(u32, session) F(u64, boot) F(u32, heartbeat_ms) F(u32, batch_max)    \
            F(u32, jobs) F(u32, inflight_age_max_ms) F(u64, place))                            \
    MSG(RETRIEVE_ASK, retrieve_ask, 3, F(u32, request) F(asks, list))                          \
    MSG(RETRIEVE_ANSWER, retrieve_answer, 4, F(u32, request) F(answers, list))                 \
    MSG(STORE_HASH, store_hash, 5, F(stores, list))                                            \
    MSG(RELEASE, release, 6, F(releases, list))                                                \
    MSG(PEEK, peek, 7, F(u32, request) F(peeks, list))                                         \
    MSG(PEEK_ANSWER, peek_answer, 8, F(u32, request) F(peekeds, list))                         \
    MSG(HEARTBEAT, heartbeat, 9, F(u32, request))                                              \
    MSG(JOB_POST, job_post, 10, PROTO_JOB_FIELDS)                                              \
    MSG(JOB, job, 11, PROTO_JOB_FIELDS)                                                        \
    MSG(JOB_STOP, job_stop, 12, F(u64, job) F(u8, reason))                                     \
    MSG(JOB_REPORT, job_report, 13,                                                            \
        F(u64, job) F(u64, instance) F(u8, state) F(u8, depth) F(i16, score) F(u16, move)      \
            COUNTERS_REPORTED(PROTO_COUNTER) COUNTERS_OF_TALK(PROTO_TALK) F(text, line)        \
                F(text, name) F(text, why) F(u32, left_s))                                     \
    MSG(NODE_DONE, node_done, 14, F(stores, list))                                             \
    MSG(STATS, stats, 15, F(u32, request))                                                     \
    MSG(STATS_ANSWER, stats_answer, 16, F(u32, request) F(figures, list))                      \
    MSG(ERROR, error, 17, F(u16, code) F(u32, request) F(text, text))                          \
    MSG(BYE, bye, 18, F(u8, reason))                                                           \
    MSG(WORKER_INDEX, worker_index, 19, F(u32, index) F(u32, workers))                         \
    MSG(MEMBERS, members, 20, F(u32, request) F(u32, from))                                    \
    MSG(MEMBERS_ANSWER, members_answer, 21, F(u32, request) F(u32, next) F(member_rows, list)) \
    MSG(JOBS, jobs, 22, F(u32, request) F(u32, from))                                          \
    MSG(JOBS_ANSWER, jobs_answer, 23, F(u32, request) F(u32, next) F(job_rows, list))          \
    MSG(SHARE, share, 26, F(u64, table_id) F(results, list) F(u8, load))                       \
    MSG(FLUSH, flush, 27, F(u32, request))                                                     \
    MSG(FLUSHED, flushed, 28, F(u32, request))                                                 \
    MSG(SCAN, scan, 29, F(u32, request) F(u64, cursor) F(u8, depth))                           \
    MSG(SCANNED, scanned, 30, F(u32, request) F(u64, next) F(scanneds, list))                  \
    MSG(MAIL_JOIN, mail_join, 31, F(u32, request) F(u64, job))                                 \
    MSG(MAIL_LIST, mail_list, 32, F(u32, request) F(u64, job) F(correspondents, list))         \
    MSG(MAIL, mail, 33, F(u64, job) F(u64, to) F(u64, from) F(bytes, body))

#endif
