#!/usr/bin/python3
"""Redis and Redis Cluster as the table, and no ttserver at all: one strict score, whatever happens to the servers. TAP.

    BIN=build/dev/bin QUICK=1 tests/system/test_redis.py

With real servers (redis_servers.py); where there are none every test is skipped, with the reason.
"""
import functools
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading

import redis_servers
from cluster import (PATIENT, STARVED, SHORT, SANITIZED, Cluster, Failure, Worker, answers, check, equal, main, needs, right, run, start,
                     top, wait_until)
from redis_servers import Redis, RedisCluster
from test_cluster import (CHOSEN, STRICT, bratko_kopec, check_long, long_search, outcome, suite)

DEPTH = 5
SOME = suite(CHOSEN)
ALL = SOME if SHORT or SANITIZED else suite(bratko_kopec())
SEARCH, SEARCH_ALL = (["--epd", file.name, "--depth", DEPTH, "--remote-depth", 2, *STRICT] for file in (SOME, ALL))
LONG = 0.5 if SHORT else 1.0  # seconds alone: for a fault to fall into
USED = 20  # calls of scripts after which a search uses the Redis


needs_redis = needs(redis_servers.why_not)


@functools.lru_cache(None)
def expected(file=SOME):
    """Of a search without any table but the process's own."""
    return outcome(answers(start("--epd", file.name, "--depth", DEPTH, "--algorithm", "sequential", *STRICT)))


def start_used(cluster, servers, *arguments):
    """A search by which the servers are called."""
    before = servers.calls()
    front = cluster.start(*arguments)
    wait_until(lambda: not front.running() or servers.calls() > before + USED, "calls of scripts")
    return front


def start_long(cluster, servers):
    """The same, that runs still. One that ends before that was timed on a machine that had more to do: a longer one
    follows. Its question: what it was asked, and the score."""
    for times in (1, 2, 4, 8):
        position, depth, score = long_search(times * LONG)
        front = start_used(cluster, servers, position, "--depth", depth, "--remote-depth", 2, *STRICT)
        front.question = position, depth, score
        if front.running():
            return front
    raise Failure("every search ends too early")


LATE = "does not answer"


def lines_of(process, *wanted):
    """What a process says of a Redis, but for two time-outs that are not wanted: a busy machine may keep it waiting."""
    said = [line for line in process.lines["err"] if re.search(r"127\.0\.0\.1:\d+:? ", line)]
    late = [line for line in said if LATE in line]
    wants = any(any(re.search(pattern, line) for pattern in wanted) for line in late)
    for line in late[1:3] if wants else late[:2]:
        said.remove(line)
    return said


def check_said(processes, *patterns):
    """Each process has said one line of each pattern, and nothing else of the Redis."""
    for process in processes:
        said = lines_of(process, *patterns)
        check(len(said) <= len(patterns), "too much is said:", said)
        for pattern in patterns:
            equal(sum(1 for line in said if re.search(pattern, line)), 1, pattern, process.tail())


def wait_helped(cluster):
    """Until both workers take part in a search."""
    position, depth, score = long_search(LONG)

    def are_helping():
        found, = cluster.ask(position, "--depth", depth, "--remote-depth", 2, *STRICT)
        right(found["score"], score)
        return found["workers"] == 2
    wait_until(are_helping, "the workers to take part again")


# ---- one score ----

@needs_redis
def one_redis_does_not_move_the_strict_score():
    with Redis() as redis, Cluster(table=redis.url) as c:
        found = answers(c.start(*SEARCH_ALL))
        equal(outcome(found), expected(ALL))
        check(redis.calls() > USED, "the Redis is used")
        equal({o["shards"] for o in found}, {1})
        again = answers(start("--table", c.servers, *SEARCH_ALL))  # by the results that are there
        equal(outcome(again), expected(ALL), "a table that holds results")
        check_said(c.workers)


@needs_redis
def shards_do_not_move_it():
    with Cluster() as c:
        equal(outcome(answers(c.start(*SEARCH_ALL))), expected(ALL))


@needs_redis
def a_killed_master_does_not_move_it():
    with RedisCluster() as servers, Cluster(table=servers.url) as c:
        front = start_used(c, servers, *SEARCH_ALL)
        dead = servers.kill_master()
        equal(outcome(answers(front)), expected(ALL), "with a master killed in its middle")
        servers.wait_failover()
        before = servers.calls()
        front = c.start(*SEARCH_ALL)
        found = answers(front)
        equal(outcome(found), expected(ALL), "with a replica in its place")
        check(any(o["shards_up"] == o["shards"] for o in found), "all shards are used", found[-1])
        check(servers.calls() > before + USED, "the Redis Cluster is used")
        dead.run()  # comes back as a replica, to be killed again
        servers.wait_failover()
        front = start_used(c, servers, *SEARCH_ALL)
        servers.kill_master()
        equal(outcome(answers(front)), expected(ALL), "with the next one killed")
        for worker in c.workers:
            check(worker.running(), worker.tail())
            for line in lines_of(worker):
                check(re.search("the connection broke|refused|CLUSTERDOWN|does not answer", line), line)


# ---- faults ----

@needs_redis
def forgotten_keys_do_not_move_it():
    with Redis() as redis, Cluster(table=redis.url) as c:
        front = start_long(c, redis)
        for _ in range(5):
            before = redis.calls()
            redis.command("FLUSHALL")
            wait_until(lambda: not front.running() or redis.calls() > before + USED, "calls after FLUSHALL")
        check_long(front)
        check_said([front, *c.workers])  # sessions begin anew, which nobody has to know


@needs_redis
def forgotten_scripts_do_not_move_it():
    with Redis() as redis, Cluster(table=redis.url) as c:
        front = start_long(c, redis)
        for _ in range(5):
            before = redis.calls()
            redis.command("SCRIPT", "FLUSH")
            wait_until(lambda: not front.running() or redis.calls() > before + USED, "calls after SCRIPT FLUSH")
        check_long(front)
        check_said([front, *c.workers])


@needs_redis
def a_restart_does_not_move_it():
    with Redis() as redis, Cluster(table=redis.url) as c:
        front = start_long(c, redis)
        redis.kill()
        front.wait_line("the connection broke|depth", "err")
        redis.run()
        check_long(front)
        check_said([front, *c.workers], "the connection broke")
        wait_helped(c)
        check_said(c.workers, "the connection broke")


@needs_redis
def a_pause_does_not_move_it():
    with Redis() as redis, Cluster(table=redis.url) as c:
        front = start_long(c, redis)
        redis.command("CLIENT", "PAUSE", 3000, "ALL")
        for worker in c.workers:
            worker.wait_line("does not answer", "err")
        check_long(front)
        check_said(c.workers, "does not answer")
        equal(outcome(answers(c.start(*SEARCH))), expected())


def with_environment(name, value, action):
    """The programs that the action starts have it in their environment."""
    os.environ[name] = value
    try:
        return action()
    finally:
        del os.environ[name]


def with_password(password, action):
    return with_environment("ABDADA_REDIS_PASSWORD", password, action)


@needs_redis
def a_wrong_password_is_said():
    with Redis(password="correct-horse") as redis:
        def search():
            front = start("--table", redis.url, *SEARCH)
            equal(outcome(answers(front)), expected())
            return front
        check_said([with_password("wrong-donkey", search)], r"refuses our user or password \(WRONGPASS\)")
        check_said([search()], "NOAUTH.*ABDADA_REDIS_PASSWORD|NOAUTH")
        with_password("correct-horse", lambda: check_said([search()]))
        status, _ = with_password("correct-horse", lambda: top(redis.url))
        equal(status, 0)


@needs_redis
def a_password_that_is_changed_is_said():
    with Redis(password="correct-horse") as redis:
        c = with_password("correct-horse", lambda: Cluster(table=redis.url))
        with c:
            front = with_password("correct-horse", lambda: start_long(c, redis))
            redis.command("CONFIG", "SET", "requirepass", "another")
            redis.password = "another"
            redis.command("CLIENT", "KILL", "TYPE", "normal")
            redis.command("CLIENT", "KILL", "TYPE", "pubsub")
            for worker in c.workers:
                worker.wait_line(r"refuses our user or password \(WRONGPASS\)", "err")
            check_long(front)
            check_said(c.workers, "the connection broke", r"refuses our user or password \(WRONGPASS\)")
            redis.command("CONFIG", "SET", "requirepass", "correct-horse")
            redis.password = "correct-horse"
            before = redis.calls()
            wait_until(lambda: redis.calls() > before + USED, "the workers to be back")


@needs_redis
def rights_that_are_wanted_are_said():
    """What a script may not do is another error than what a client may not do."""
    every = "reset on >correct-horse ~abdada:* resetchannels &abdada:* +@all -@admin -@dangerous +info"
    with Redis() as redis:
        def search():
            front = start("--table", redis.url.replace("//", "//abdada@"), "--fresh", *SEARCH)
            equal(outcome(answers(front)), expected())
            return front
        redis.command("ACL", "SETUSER", "abdada", *every.split())
        with_password("correct-horse", lambda: check_said([search()]))
        for taken in ("-time", "-@write", "-script", "-evalsha", "-ping"):
            redis.command("ACL", "SETUSER", "abdada", *every.split(), taken)
            with_password("correct-horse", lambda: check_said([search()], r"docs/redis\.md says what it needs$"))


def limit_memory(redis, policy, more):
    """To so much more than it has now."""
    redis.command("CONFIG", "SET", "maxmemory-policy", policy)
    redis.command("CONFIG", "SET", "maxmemory", int(redis.info("memory")["used_memory"]) + more)


@needs_redis
def eviction_does_not_move_it():
    with Redis() as redis, Cluster(table=redis.url) as c:
        limit_memory(redis, "allkeys-lru", 500_000)  # for some hundred results
        position, depth, score = long_search(LONG)

        def evicts():  # a search without help stores too little
            front = c.start(position, "--depth", depth, "--remote-depth", 2, "--fresh", *STRICT)
            row, = answers(front)
            right(row["score"], score)
            check_said([front])
            return int(redis.info("stats")["evicted_keys"]) > 0
        wait_until(evicts, "keys are evicted")
        check_said(c.workers)


@needs_redis
def a_full_memory_does_not_move_it():
    with Redis() as redis, Cluster(table=redis.url) as c:
        limit_memory(redis, "noeviction", 200_000)  # which buffers alone need
        front = start_long(c, redis)
        check_long(front)
        check_said([front], "OOM .*maxmemory")
        for worker in c.workers:
            check(len(lines_of(worker)) <= 1, worker.tail())


class FullDisk(Redis):
    """Its folder is a file system of its own, of 16 KiB; where none can be mounted, its files may have as much."""

    def __init__(self):
        self.wrapper = [shutil.which("unshare"), "--mount", "--map-root-user", "sh", "-c",
                        'mount -t tmpfs -o size=16k none "$0" && exec "$@"']
        probe = subprocess.run([*self.wrapper, "/mnt", "true"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if probe.returncode != 0:
            self.wrapper = [shutil.which("prlimit"), "--fsize=16384"]
        super().__init__("--save", 3600, 1)

    def run(self):
        words = self.wrapper + ([self.folder] if "--mount" in self.wrapper else [])
        self.process = redis_servers.Process(
            *words, redis_servers.SERVER, "--bind", "127.0.0.1", "--port", self.port, "--dir", self.folder,
            "--appendonly", "no", *self.options)
        self.process.wait_line("Ready to accept connections")


@needs_redis
def a_full_disk_does_not_move_it():
    with FullDisk() as redis, Cluster(table=redis.url) as c:
        redis.command("SET", "junk", os.urandom(1 << 16))
        front = start_long(c, redis)
        redis.command("BGSAVE")
        wait_until(lambda: redis.info("persistence")["rdb_last_bgsave_status"] == "err", "the disk to be full")
        for worker in c.workers:
            worker.wait_line("MISCONF", "err")
        check_long(front)
        check_said(c.workers, "MISCONF .*disk")
        redis.command("CONFIG", "SET", "stop-writes-on-bgsave-error", "no")
        wait_helped(c)


@needs_redis
def keys_of_the_wrong_type_do_not_move_it():
    """All keys of ours become lists, again and again."""
    script = """
        local n = 0
        for _, key in ipairs(redis.call('keys', 'abdada:*')) do
            redis.call('del', key)
            redis.call('rpush', key, 'x')
            n = n + 1
        end
        return n"""
    with Redis() as redis, Cluster(table=redis.url) as c:
        front = start_long(c, redis)
        for _ in range(3):
            before = redis.calls()
            check(redis.command("EVAL", script, 0) > 0, "there are keys")
            wait_until(lambda: not front.running() or redis.calls() > before + USED, "calls after that")
        check_long(front)
        for process in [front, *c.workers]:
            check(len(lines_of(process)) <= 1, process.tail())
        redis.command("FLUSHALL")
        equal(outcome(answers(c.start(*SEARCH))), expected(), "with keys of its own again")


def make_certificates(folder):
    """ca.crt, and server.crt of 127.0.0.1 signed by it; other.crt is of somebody else."""
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout"]
    with open(os.path.join(folder, "extensions"), "w", encoding="ascii") as file:
        file.write("subjectAltName=IP:127.0.0.1\n")
    for words in (["req", "-x509", "-days", 2, "-subj", "/CN=ca", *key, "ca.key", "-out", "ca.crt"],
                  ["req", "-x509", "-days", 2, "-subj", "/CN=other", *key, "other.key", "-out", "other.crt"],
                  ["req", "-subj", "/CN=server", *key, "server.key", "-out", "server.csr"],
                  ["x509", "-req", "-days", 2, "-in", "server.csr", "-CA", "ca.crt", "-CAkey", "ca.key",
                   "-CAcreateserial", "-extfile", "extensions", "-out", "server.crt"]):
        done = subprocess.run(["openssl", *map(str, words)], cwd=folder, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        check(done.returncode == 0, done.stdout.decode())


@needs_redis
def tls_does_not_move_it():
    if not shutil.which("openssl"):
        return "openssl is not installed"
    with tempfile.TemporaryDirectory(prefix="abdada-redis-") as folder:
        make_certificates(folder)
        port = redis_servers.free_port()
        files = {name: os.path.join(folder, name) for name in ("ca.crt", "other.crt", "server.crt", "server.key")}
        with Redis("--tls-port", port, "--tls-cert-file", files["server.crt"], "--tls-key-file", files["server.key"],
                   "--tls-ca-cert-file", files["ca.crt"], "--tls-auth-clients", "no") as redis:
            url = f"rediss://127.0.0.1:{port}"
            with with_environment("ABDADA_REDIS_CA", files["ca.crt"], lambda: Cluster(table=url)) as c:
                front = with_environment("ABDADA_REDIS_CA", files["ca.crt"], lambda: start_long(c, redis))
                check_long(front)
                check_said([front, *c.workers])
            front = with_environment("ABDADA_REDIS_CA", files["other.crt"], lambda: start("--table", url, *SEARCH))
            equal(outcome(answers(front)), expected())
            check_said([front], "its certificate is refused")
    return None


@needs_redis
def a_redis_without_tls_is_said():
    """However short the search is."""
    with Redis() as redis:
        front = start("--table", redis.url.replace("redis://", "rediss://"), "--depth", 1, "startpos")
        equal(len(answers(front)), 1)
        check_said([front], "perhaps it has no TLS there")


@needs_redis
def a_redis_that_comes_late_is_used():
    redis = Redis()
    redis.kill()
    with redis:
        worker = Worker(redis.url)
        position, depth, score = long_search(LONG)
        front = start("--table", redis.url, "--fresh", position, "--depth", depth, "--remote-depth", 2, *STRICT)
        front.question = position, depth, score
        worker.wait_line("Connection refused", "err")
        front.wait_line("Connection refused|depth", "err")
        redis.run()
        wait_until(lambda: redis.calls() > USED, "calls of scripts")
        check_long(front)
        check_said([worker, front], "Connection refused")


@needs_redis
def what_is_no_redis_is_said():
    with Cluster(shards=1, workers=0) as c:
        place = c.shards[0].address  # a ttserver
        front = start("--table", f"redis://{place}", *SEARCH)
        equal(outcome(answers(front)), expected())
        check_said([front], re.escape(place))


@needs_redis
def top_shows_what_a_redis_reports():
    """Its uptime has whole seconds, a view of `top --once` half of one: rates are by the clock of top."""
    with Redis() as redis:
        equal(top(redis.url)[0], 0)
        text = run("abdada", "top", "--once", "--table", redis.url, *PATIENT).lines["out"]
        check("in flight -" in text[0], text)
        row, = [line for line in text if line.startswith(redis.url)]
        equal(row.split().count("-"), 4, "in flight, FILL, CUT% and BUSY%:", row)
        name, = [key for key in map(bytes.decode, redis.command("KEYS", "abdada:*")) if key.endswith(":f")]
        stop = threading.Event()

        def count():
            while not stop.wait(0.01):
                redis.command("HINCRBY", name, "asks", 100)
        counting = threading.Thread(target=count)
        counting.start()
        try:
            def counted():
                return int(redis.command("HGET", name, "asks") or 0)
            for _ in range(5):
                before = counted()
                row, = top(redis.url)[1]["shard"]
                most = 1.1 * (counted() - before) / 0.5  # its window is half a second at least
                check(row["asks_per_s"] > 0, row)
                check(row["asks_per_s"] <= most or most < 1000, row["asks_per_s"], most)
        finally:
            stop.set()
            counting.join()
        redis.command("HSET", name, "asks", 0)


if __name__ == "__main__":
    sys.exit(main([
        one_redis_does_not_move_the_strict_score,
        shards_do_not_move_it,
        a_killed_master_does_not_move_it,
        forgotten_keys_do_not_move_it,
        forgotten_scripts_do_not_move_it,
        a_restart_does_not_move_it,
        a_pause_does_not_move_it,
        a_wrong_password_is_said,
        a_password_that_is_changed_is_said,
        rights_that_are_wanted_are_said,
        eviction_does_not_move_it,
        a_full_memory_does_not_move_it,
        a_full_disk_does_not_move_it,
        keys_of_the_wrong_type_do_not_move_it,
        tls_does_not_move_it,
        a_redis_without_tls_is_said,
        a_redis_that_comes_late_is_used,
        what_is_no_redis_is_said,
        top_shows_what_a_redis_reports,
    ], unstable=STARVED))
