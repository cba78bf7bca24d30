/* peer_load: the load of a shard on other stores, as fast as they serve it: raw bytes, a window of
 * unanswered batches, uniform random keys. One JSON line on stdout.
 *
 *   script     Redis: RetrieveAsk and StoreHash as one atomic script; --call operations an EVALSHA
 *   getset     Redis: GET and SET of 16 bytes: no in-flight sets, no replacement, nothing atomic
 *   multiget   memcached: get of a batch of keys that are there, 16 bytes each
 *   mixed      memcached: the same and a set (noreply) for every get
 *
 * Every ask of a batch is followed, a round trip later, by its store, as in `abdada ttbench
 * --pattern random`. */
#include "common/clock.h"
#include "common/histogram.h"
#include "common/options.h"
#include "common/rng.h"
#include "tests/instruments/bench/duplex.h"

#include <pthread.h>

enum { KEYS_THERE = 1 << 18, SCRIPT_MAX = 8192, CLIENTS_MAX = 64 };

struct peer {
    const char *job;
    uint32_t port, clients, batch, window, call;
    double seconds;
    char sha[41];
};

struct load {
    const struct peer *peer;
    unsigned index;
    struct duplex d;
    uint64_t seed, late_seed; /* the keys of stores are those of asks, a window later */
    uint64_t sent_ns[1024];
    /* statistics */
    uint64_t asks, stores, busy, misses, errors, messages, written, read;
    struct histogram latency_ns;
};

/* ---- Redis ---- */

/* An operation is 2 keys (result, in-flight set) and 6 arguments: ask 'A' depth alpha beta flags
 * holder, store 'S' depth score bound move holder. Answers are packed into one string. */
static const char script[] =
    "local out = {}\n"
    "for i = 1, #KEYS / 2 do\n"
    "  local rk, fk, a = KEYS[2 * i - 1], KEYS[2 * i], 6 * i - 5\n"
    "  local depth, holder = tonumber(ARGV[a + 1]), ARGV[a + 5]\n"
    "  local entry = redis.call('GET', rk)\n"
    "  if ARGV[a] == 'A' then\n"
    "    local alpha, beta = tonumber(ARGV[a + 2]), tonumber(ARGV[a + 3])\n"
    "    local verdict, score, move, nproc = 0, 0, 0, 0\n"
    "    if entry then\n"
    "      local d, lower, upper, m = struct.unpack('<Bi2i2H', entry)\n"
    "      move = m\n"
    "      if d >= depth then\n"
    "        if lower >= beta or lower == upper then verdict = 1 score = lower\n"
    "        elseif upper <= alpha then verdict = 1 score = upper\n"
    "        else alpha = math.max(alpha, lower) beta = math.min(beta, upper) end\n"
    "      end\n"
    "    end\n"
    "    if verdict == 0 then\n"
    "      nproc = redis.call('SCARD', fk)\n"
    "      if ARGV[a + 4] == '1' and nproc > 0 and\n"
    "         (nproc > 1 or redis.call('SISMEMBER', fk, holder) == 0) then verdict = 2\n"
    "      else nproc = nproc + redis.call('SADD', fk, holder) end\n"
    "    end\n"
    "    out[#out + 1] = struct.pack('<Bi2i2i2HH', verdict, score, alpha, beta, move, nproc)\n"
    "  else\n"
    "    local score, bound = tonumber(ARGV[a + 2]), tonumber(ARGV[a + 3])\n"
    "    local move, write = tonumber(ARGV[a + 4]), true\n"
    "    local lower = bound % 2 == 1 and score or -32767\n"
    "    local upper = bound >= 2 and score or 32767\n"
    "    if entry then\n"
    "      local d, l, u, m = struct.unpack('<Bi2i2H', entry)\n"
    "      if move == 0 then move = m end\n"
    "      if d > depth then write = false\n"
    "      elseif d == depth and math.max(l, lower) <= math.min(u, upper) then\n"
    "        lower = math.max(l, lower) upper = math.min(u, upper)\n"
    "      end\n"
    "    end\n"
    "    if write then redis.call('SET', rk, struct.pack('<Bi2i2H', depth, lower, upper, move)) "
    "end\n"
    "    redis.call('SREM', fk, holder)\n"
    "  end\n"
    "end\n"
    "return table.concat(out)\n";

static uint8_t *put_text(uint8_t *at, const char *text)
{
    size_t length = strlen(text);
    memcpy(at, text, length);
    return at + length;
}

static uint8_t *put_bulk(uint8_t *at, const void *bytes, unsigned length)
{
    if (length >= 10) {
        *at++ = '$';
        *at++ = (uint8_t)('0' + length / 10);
    } else {
        *at++ = '$';
    }
    *at++ = (uint8_t)('0' + length % 10);
    *at++ = '\r';
    *at++ = '\n';
    memcpy(at, bytes, length);
    at += length;
    *at++ = '\r';
    *at++ = '\n';
    return at;
}

/* A line or a bulk string; its first byte says which. Its length in `size`, without the end. */
static const uint8_t *take_reply(struct duplex *d, size_t *size)
{
    const uint8_t *end;
    while ((end = memchr(d->in + d->in_from, '\n', d->in_to - d->in_from)) == NULL) {
        if (!duplex_move(d)) {
            duplex_fail("redis closed the connection");
        }
    }
    uint8_t *line = d->in + d->in_from;
    size_t head = (size_t)(end + 1 - line);
    if (*line != '$' || line[1] == '-') {
        d->in_from += head;
        *size = head;
        return line;
    }
    *size = (size_t)atol((char *)line + 1);
    if (!duplex_await(d, head + *size + 2)) {
        duplex_fail("redis closed the connection");
    }
    line = d->in + d->in_from;
    d->in_from += head + *size + 2;
    return line;
}

static void load_script(struct peer *peer)
{
    struct duplex d;
    size_t size;
    duplex_connect(&d, peer->port);
    int n =
        sprintf((char *)duplex_room(&d, SCRIPT_MAX),
                "*3\r\n$6\r\nSCRIPT\r\n$4\r\nLOAD\r\n$%zu\r\n%s\r\n", sizeof script - 1, script);
    d.out_to += (size_t)n;
    const uint8_t *reply = take_reply(&d, &size);
    if (*reply != '$' || size != 40) {
        fprintf(stderr, "redis: %.*s\n", (int)size, (const char *)reply);
        exit(1);
    }
    memcpy(peer->sha, reply + 5, 40);
    duplex_close(&d);
}

static uint8_t *put_operation_args(uint8_t *at, bool is_ask, uint64_t key, const char *holder)
{
    char depth[4];
    int length = sprintf(depth, "%u", (unsigned)(4 + key % 8));
    at = put_bulk(at, is_ask ? "A" : "S", 1);
    at = put_bulk(at, depth, (unsigned)length);
    at = put_bulk(at, is_ask ? "-1" : "1", is_ask ? 2 : 1);
    at = put_bulk(at, "1", 1); /* beta, or the bound LOWER */
    at = put_bulk(at, "1", 1); /* exclusive, or the move */
    return put_bulk(at, holder, (unsigned)strlen(holder));
}

/* `call` operations in one EVALSHA. */
static void put_call(struct load *l, bool is_ask, uint64_t *seed, uint32_t operations)
{
    struct duplex *d = &l->d;
    uint8_t *begin = duplex_room(d, 256 + operations * 160u), *at = begin;
    char holder[16];
    uint64_t seed_again = *seed;
    sprintf(holder, "%u:0", l->index);
    at += sprintf((char *)at, "*%u\r\n$7\r\nEVALSHA\r\n$40\r\n%s\r\n$%d\r\n%u\r\n",
                  3 + 8 * operations, l->peer->sha, snprintf(NULL, 0, "%u", 2 * operations),
                  2 * operations);
    for (uint32_t i = 0; i < operations; i++) {
        uint64_t key = rng_next(seed);
        uint8_t name[9];
        memcpy(name, &key, 8);
        name[8] = (uint8_t)(4 + key % 8); /* the depth: in-flight sets are of (key, depth) */
        at = put_bulk(at, name, 8);
        at = put_bulk(at, name, 9);
    }
    for (uint32_t i = 0; i < operations; i++) {
        at = put_operation_args(at, is_ask, rng_next(&seed_again), holder);
    }
    d->out_to += (size_t)(at - begin);
    l->messages++;
}

static void put_get_or_set(struct load *l, bool is_get, uint64_t *seed)
{
    uint8_t *begin = duplex_room(&l->d, 96), *at = begin;
    uint64_t word[2] = {rng_next(seed), 7};
    at = put_text(at, is_get ? "*2\r\n$3\r\nGET\r\n" : "*3\r\n$3\r\nSET\r\n");
    at = put_bulk(at, word, 8);
    if (!is_get) {
        at = put_bulk(at, word, 16);
    }
    l->d.out_to += (size_t)(at - begin);
    l->messages++;
}

static void put_redis(struct load *l, bool is_ask, uint64_t *seed)
{
    uint32_t batch = l->peer->batch, call = l->peer->call;
    if (strcmp(l->peer->job, "getset") == 0) {
        for (uint32_t i = 0; i < batch; i++) {
            put_get_or_set(l, is_ask, seed);
        }
        return;
    }
    for (uint32_t i = 0; i < batch; i += call) {
        put_call(l, is_ask, seed, batch - i < call ? batch - i : call);
    }
}

static void take_redis(struct load *l, bool is_ask)
{
    bool is_script = strcmp(l->peer->job, "script") == 0;
    uint32_t batch = l->peer->batch, call = is_script ? l->peer->call : 1;
    for (uint32_t i = 0; i < batch; i += call) {
        size_t size;
        const uint8_t *reply = take_reply(&l->d, &size);
        l->messages++;
        l->errors += *reply == '-';
        l->misses += is_ask && !is_script && reply[1] == '-';
        if (is_ask && is_script) {
            uint32_t operations = batch - i < call ? batch - i : call;
            reply = l->d.in + l->d.in_from - 2 - size;
            l->errors += size != 11u * operations;
            for (size_t at = 0; at < size; at += 11) {
                l->busy += reply[at] == 2;
            }
        }
    }
}

/* ---- memcached ---- */

/* 64 bits as 11 letters, digits and the like: the shortest a key of memcached may be. */
static uint8_t *put_key(uint8_t *at, uint64_t key)
{
    for (unsigned i = 0; i < 11; i++) {
        *at++ = (uint8_t)('0' + (key >> (6 * i) & 63));
    }
    return at;
}

static uint64_t key_there(uint64_t *seed)
{
    return rng_mix(1 + rng_below(seed, KEYS_THERE));
}

static uint8_t *put_set(uint8_t *at, uint64_t key)
{
    at = put_key(put_text(at, "set "), key);
    return put_text(at, " 0 0 16 noreply\r\n0123456789abcdef\r\n");
}

static void put_memcached(struct load *l, bool is_ask, uint64_t *seed)
{
    uint8_t *begin = duplex_room(&l->d, 64 + 64u * l->peer->batch), *at = begin;
    bool is_mixed = strcmp(l->peer->job, "mixed") == 0;
    at = is_ask ? put_text(at, "get") : at;
    for (uint32_t i = 0; i < l->peer->batch; i++) {
        uint64_t key = is_mixed ? rng_next(seed) : key_there(seed);
        if (is_ask) {
            *at++ = ' ';
            at = put_key(at, key);
        } else {
            at = put_set(at, key);
        }
    }
    at = is_ask ? put_text(at, "\r\n") : at;
    l->d.out_to += (size_t)(at - begin);
    l->messages++;
}

static void take_memcached(struct load *l)
{
    enum { HEAD = 6 + 11, DATA = 16 + 2 }; /* "VALUE " key " 0 16\r\n" data "\r\n" */
    struct duplex *d = &l->d;
    uint32_t hits = 0;
    l->messages++;
    for (;;) {
        if (!duplex_await(d, 5)) {
            duplex_fail("memcached closed the connection");
        }
        if (d->in[d->in_from] != 'V') {
            break;
        }
        if (!duplex_await(d, HEAD + 7 + DATA)) {
            duplex_fail("memcached closed the connection");
        }
        d->in_from += HEAD + 7 + DATA;
        hits++;
    }
    l->errors += memcmp(d->in + d->in_from, "END\r\n", 5) != 0;
    l->misses += l->peer->batch - hits;
    d->in_from += 5;
}

static void fill_memcached(const struct peer *peer)
{
    struct duplex d;
    duplex_connect(&d, peer->port);
    for (uint32_t i = 0; i < KEYS_THERE; i++) {
        uint8_t *at = duplex_room(&d, 64);
        d.out_to += (size_t)(put_set(at, rng_mix(1 + i)) - at);
        if (i % 1024 == 1023 || i == KEYS_THERE - 1) {
            uint8_t *end = duplex_room(&d, 64);
            d.out_to += (size_t)(put_text(end, "version\r\n") - end);
            while (d.in_from == d.in_to || d.in[d.in_to - 1] != '\n') {
                duplex_move(&d);
            }
            d.in_from = d.in_to;
        }
    }
    duplex_close(&d);
}

/* ---- the run ---- */

static void *run(void *load)
{
    struct load *l = load;
    const struct peer *peer = l->peer;
    bool is_memcached = peer->job[0] == 'm', has_stores = strcmp(peer->job, "multiget") != 0;
    uint64_t out = 0, done = 0, now = clock_ns(), end = now + (uint64_t)(peer->seconds * 1e9);
    while (now < end || done < out) {
        while (now < end && out - done < peer->window) {
            /* The stores of what was answered, then the next asks. */
            if (has_stores && out >= peer->window) {
                (is_memcached ? put_memcached : put_redis)(l, false, &l->late_seed);
                l->stores += peer->batch;
            }
            l->sent_ns[out++ % peer->window] = clock_ns();
            (is_memcached ? put_memcached : put_redis)(l, true, &l->seed);
        }
        if (!is_memcached && has_stores && done >= peer->window) {
            take_redis(l, false);
        }
        (is_memcached ? (void)take_memcached(l) : take_redis(l, true));
        now = clock_ns();
        histogram_add(&l->latency_ns, now - l->sent_ns[done++ % peer->window]);
        l->asks += peer->batch;
    }
    l->written = l->d.written;
    l->read = l->d.read;
    return NULL;
}

static void report(const struct load *l, double took)
{
    printf("{\"ops_per_s\":%.0f,\"asks_per_s\":%.0f,\"p50_us\":%.1f,\"p99_us\":%.1f,"
           "\"errors\":%llu,\"busy\":%llu,\"misses\":%llu,\"messages_per_s\":%.0f,"
           "\"bytes_per_s\":%.0f}\n",
           (double)(l->asks + l->stores) / took, (double)l->asks / took,
           histogram_quantile(&l->latency_ns, 0.5) / 1e3,
           histogram_quantile(&l->latency_ns, 0.99) / 1e3, (unsigned long long)l->errors,
           (unsigned long long)l->busy, (unsigned long long)l->misses, (double)l->messages / took,
           (double)(l->written + l->read) / took);
}

static int measure(struct peer *peer)
{
    static struct load load[CLIENTS_MAX], sum;
    pthread_t thread[CLIENTS_MAX];
    if (strcmp(peer->job, "script") == 0) {
        load_script(peer);
    } else if (strcmp(peer->job, "multiget") == 0) {
        fill_memcached(peer);
    }
    for (unsigned i = 0; i < peer->clients; i++) {
        load[i].peer = peer;
        load[i].index = i;
        load[i].seed = load[i].late_seed = rng_mix(clock_unique() + i);
        duplex_connect(&load[i].d, peer->port);
    }
    uint64_t begin = clock_ns();
    for (unsigned i = 0; i < peer->clients; i++) {
        if (pthread_create(&thread[i], NULL, run, &load[i]) != 0) {
            duplex_fail("thread");
        }
    }
    for (unsigned i = 0; i < peer->clients; i++) {
        pthread_join(thread[i], NULL);
        sum.asks += load[i].asks;
        sum.stores += load[i].stores;
        sum.busy += load[i].busy;
        sum.misses += load[i].misses;
        sum.errors += load[i].errors;
        sum.messages += load[i].messages;
        sum.written += load[i].written;
        sum.read += load[i].read;
        histogram_merge(&sum.latency_ns, &load[i].latency_ns);
    }
    report(&sum, (double)(clock_ns() - begin) / 1e9);
    return sum.errors == 0 ? 0 : 1;
}

int main(int argc, char *argv[])
{
    static struct peer peer = {
        .job = "script", .clients = 1, .batch = 64, .window = 8, .call = 1, .seconds = 2};
    const struct options_row table[] = {
        {"job", "script|getset|multiget|mixed", "what to do", &peer.job, OPTION_TEXT},
        OPTIONS_ROW(U32, "port", "N", &peer.port, 1, 65535, "of the store, on loopback"),
        OPTIONS_ROW(U32, "clients", "N", &peer.clients, 1, CLIENTS_MAX, "connections (1)"),
        OPTIONS_ROW(U32, "batch", "N", &peer.batch, 1, 1024, "operations in a batch (64)"),
        OPTIONS_ROW(U32, "window", "N", &peer.window, 1, 1024, "batches on the way (8)"),
        OPTIONS_ROW(U32, "call", "N", &peer.call, 1, 1024, "operations in an EVALSHA (1)"),
        {"seconds", "S", "how long (2)", &peer.seconds, OPTION_REAL},
        {0},
    };
    const struct options options = {.program = "peer_load",
                                    .usage = "--job JOB --port N [OPTION]...",
                                    .summary = "Load on Redis or memcached.",
                                    .table = table};
    int status = options_parse(&options, argc, argv, NULL, NULL);
    return status >= 0 ? status : measure(&peer);
}
