"""Compiles abdada._native, the package's link to libabdada, with cffi. The C compiler checks each line of DECLARATIONS
against the installed abdada.h, which pkg-config finds."""
import shlex
import subprocess

from cffi import FFI

DECLARATIONS = """
    struct abdada;

    enum abdada_error {
        ABDADA_OK, ABDADA_WAITING, ABDADA_E_ARGUMENT, ABDADA_E_FULL, ABDADA_E_UNAVAILABLE, ABDADA_E_ADDRESS,
        ABDADA_E_IN_USE, ABDADA_E_KEYS, ABDADA_E_UNKNOWN, ...
    };
    const char *abdada_error_text(int error);
    const char *abdada_version(void);
    uint64_t abdada_hash(const char *text);
    uint64_t abdada_mix(uint64_t bits);

    enum abdada_role { ABDADA_TABLE, ABDADA_FRONT_END, ... };
    enum abdada_open_flag { ABDADA_RAW_KEYS, ... };
    struct abdada_options {
        size_t struct_size;
        const char *servers, *keys;
        uint64_t namespace_id;
        uint32_t role, flags;
        const char *name;
        uint32_t answer_ms;
        char *why;
        size_t why_size;
        uint32_t share_depth, share_rate;
        ...;
    };
    int abdada_open(struct abdada **out, const struct abdada_options *options);
    int abdada_close(struct abdada *t);
    int abdada_new_search(struct abdada *t, uint64_t namespace_id);
    int abdada_shards(struct abdada *t);
    int abdada_connected(struct abdada *t);
    int abdada_wait_connected(struct abdada *t, int timeout_ms);
    int abdada_shard_name(struct abdada *t, int shard, char *out, size_t size);
    int abdada_refusal(struct abdada *t, char *out, size_t size);

    enum abdada_verdict { ABDADA_OPEN, ABDADA_CUT, ABDADA_BUSY, ABDADA_ALONE, ... };
    enum abdada_bound { ABDADA_LOWER, ABDADA_UPPER, ABDADA_EXACT, ABDADA_BESIDE, ... };
    enum abdada_ask_flag { ABDADA_EXCLUSIVE, ABDADA_STRICT, ... };
    struct abdada_answer {
        int16_t score, alpha, beta;
        uint16_t move, nproc;
        uint8_t verdict, bound;
    };
    struct abdada_peeked {
        int16_t lower, upper;
        uint16_t move, nproc;
        uint8_t depth;
        ...;
    };
    int abdada_ask(struct abdada *t, uint64_t key, unsigned depth, int alpha, int beta, unsigned flags,
                   struct abdada_answer *answer);
    int abdada_store(struct abdada *t, uint64_t key, unsigned depth, int score, unsigned bound, unsigned move);
    int abdada_release(struct abdada *t, uint64_t key, unsigned depth);
    int abdada_peek(struct abdada *t, uint64_t key, unsigned depth, struct abdada_peeked *peeked);

    struct abdada_ask_op {
        uint64_t key;
        int16_t alpha, beta;
        uint8_t depth, flags;
        uint16_t slot;
    };
    struct abdada_store_op {
        uint64_t key;
        int16_t score;
        uint16_t move, slot;
        uint8_t depth, bound;
    };
    struct abdada_release_op { uint64_t key; uint16_t slot; uint8_t depth; ...; };
    struct abdada_peek_op { uint64_t key; uint8_t depth; ...; };
    int abdada_ask_many(struct abdada *t, const struct abdada_ask_op *op, size_t count,
                        struct abdada_answer *answer);
    int abdada_store_many(struct abdada *t, const struct abdada_store_op *op, size_t count);
    int abdada_release_many(struct abdada *t, const struct abdada_release_op *op, size_t count);
    int abdada_peek_many(struct abdada *t, const struct abdada_peek_op *op, size_t count,
                         struct abdada_peeked *peeked);
    int abdada_flush(struct abdada *t);

    int abdada_share(struct abdada *t, uint64_t key, unsigned depth, int score, unsigned bound, unsigned move);
    int abdada_share_many(struct abdada *t, const struct abdada_store_op *op, size_t count);
    int abdada_take_shared(struct abdada *t, struct abdada_store_op *out, size_t capacity);
    int abdada_serve(struct abdada *t);

    struct abdada_figure { char name[32]; uint64_t value; };
    int abdada_stats(struct abdada *t, struct abdada_figure *out, size_t capacity);
    int abdada_shard_stats(struct abdada *t, int shard, struct abdada_figure *out, size_t capacity);

    enum abdada_job_flag { ABDADA_JOB_STRICT, ABDADA_JOB_FULL, ABDADA_JOB_FRESH, ... };
    struct abdada_job {
        size_t struct_size;
        const char *game, *position, *algorithm;
        uint64_t nodes;
        uint32_t time_ms, flags;
        uint8_t depth, remote_depth;
        ...;
    };
    enum abdada_job_state { ABDADA_JOB_SEARCHING, ABDADA_JOB_ENDED, ABDADA_JOB_REFUSED, ABDADA_JOB_BARRED, ... };
    struct abdada_job_event {
        uint64_t job, instance, nodes;
        int16_t score;
        uint16_t move;
        uint8_t state, depth;
        int32_t shard;
        char text[...];
        ...;
    };
    int abdada_job_post(struct abdada *t, const struct abdada_job *job, uint64_t *id);
    int abdada_job_next(struct abdada *t, int timeout_ms, struct abdada_job_event *event);
    int abdada_job_stop(struct abdada *t, uint64_t id);
"""


def pkg_config(what: str) -> "list[str]":
    """The words that pkg-config says of abdada."""
    try:
        done = subprocess.run(["pkg-config", what, "abdada"], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise SystemExit("abdada: pkg-config is needed to find libabdada, and is not installed") from None
    if done.returncode != 0:
        raise SystemExit("abdada: pkg-config does not find libabdada. Run `make install` in the sources of abdada; if you "
                         "gave it a PREFIX, set PKG_CONFIG_PATH=PREFIX/lib/pkgconfig")
    return shlex.split(done.stdout)


def without(prefix: str, what: str) -> "list[str]":
    return [word[len(prefix):] for word in pkg_config(what)]


ffi = FFI()
ffi.cdef(DECLARATIONS)
folders = without("-L", "--libs-only-L")
ffi.set_source("abdada._native", "#include <abdada.h>",
               include_dirs=without("-I", "--cflags-only-I"), library_dirs=folders,
               libraries=without("-l", "--libs-only-l"),
               # Where the system does not search for libraries the module says where this one is.
               runtime_library_dirs=folders)

if __name__ == "__main__":
    ffi.compile(verbose=True)
