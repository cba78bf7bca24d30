/* redis_script: what a Redis does for a table, as scripts that run atomically there, and what the
 * values of its keys are made of.
 *
 * All keys of a shard begin with abdada:VERSION:{TAG}: and so are in one slot. Binary numbers in
 * keys and values are big-endian.
 *
 *     boot             8 random bytes: the life of this shard. Another one: it forgot everything
 *     r:KEY            a result (REDIS_RESULT_BYTES): depth, lower, upper, move, generation; up to
 *                      4, of different depths, where searches are strict (TT_BESIDE)
 *     i:KEY DEPTH      who is in that node: a list of session, slot, second of the expiry
 *     g:NAMESPACE      the generation of a namespace: the first two bytes of its last job's id
 *     s:SESSION        a session (struct redis_shell's record); it expires when nobody renews it
 *     m, w             sessions by expiry; workers in the order in which they came
 *     n:NAMESPACE      sessions that want the results of others (SHARE)
 *     j:JOB, jobs, jv  a job; the open jobs by expiry; a number that changes with them
 *     f                figures
 *
 * A script answers an integer of enum redis_script_status, or an array. One that cannot write (no
 * memory, no disk) does what it can without and adds the server's words to the array, as its last
 * element: an ask is answered, without registering the asker.
 *
 * Pure. Threads: any. */
#ifndef WORKER_REDIS_REDIS_SCRIPT_H
#define WORKER_REDIS_REDIS_SCRIPT_H

enum redis_script {
    REDIS_ASK,
    REDIS_STORE,
    REDIS_RELEASE,
    REDIS_PEEK,
    REDIS_SESSION, /* HELLO, and its renewal */
    REDIS_BYE,
    REDIS_POST,
    REDIS_STOP,
    REDIS_REPORT,
    REDIS_SHARE,
    REDIS_MEMBERS,
    REDIS_JOBS,
    REDIS_STATS,
    REDIS_SCAN,
    REDIS_SCRIPT_COUNT
};

/* In place of an answer. */
enum redis_script_status {
    REDIS_DONE = 0,
    REDIS_OTHER_BOOT = 1, /* this shard forgot everything since */
    REDIS_NO_SESSION = 2, /* the session expired */
    REDIS_TAKEN = 3, /* a job's or session's id is another's */
    REDIS_FULL = 4, /* as many jobs as there may be */
    REDIS_UNKNOWN = 5, /* no such job */
};

enum {
    REDIS_SHELL_SHARDS = 16, /* shards of a cluster; each has the keys of one slot */
    REDIS_BOOT_BYTES = 8,
    REDIS_RESULT_BYTES = 9,
    REDIS_HOLDER_BYTES = 10,
    REDIS_ASK_BYTES = 12, /* an operation of REDIS_ASK: its r and i (places among the keys, from 1),
                             alpha, beta, depth, flags, slot */
    REDIS_ANSWER_BYTES = 12, /* verdict, result, nproc */
    REDIS_STORE_BYTES = 20, /* key, depth, score, bound, move; slot, r, i */
    REDIS_NOTICE_BYTES = 14, /* the first of these: what a completion notice says */
    REDIS_LEAVE_BYTES = 4, /* slot, i */
    REDIS_PEEKED_BYTES = 11, /* result, nproc */
    /* A session's record: token (hexadecimal, names its channel), HELLO flags, role, table id, job,
     * instance id, name. */
    REDIS_TOKEN_BYTES = 16,
    REDIS_SESSION_BYTES = 38,
    /* A job's record: token, instance, milliseconds of the post, depth reached, the length of the
     * owner's name and the name, then the JOB message. One that was stopped: the first 24. */
    REDIS_JOB_HEAD_BYTES = 34,
    REDIS_JOBS_MAX = 64,
};

extern const char *const redis_script_text[REDIS_SCRIPT_COUNT];

#endif
