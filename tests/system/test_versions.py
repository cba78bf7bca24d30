#!/usr/bin/python3
"""Programs of two versions of the protocol in one cluster, as while it is upgraded: each speaks with each, all search
together, and scores are right. TAP.

    BIN=build/dev/bin tests/system/test_versions.py
    OLD_BIN=FOLDER: real programs of the version before; without it the same programs that speak no newer version
    (ABDADA_PROTOCOL). POSITIONS=N: so many positions are searched by each mixture.
"""
import contextlib
import itertools
import os
import signal
import sys
import threading

import msgpack
import zmq

import client
import cluster
from cluster import QUICK, Shard, Worker, answers, check, equal, main, positions, run, start, top, wait_until

OLD, NEW = client.LOWEST, client.VERSION
OLD_BIN = os.environ.get("OLD_BIN")
STRICT = ["--strict", "--select", "plain"]
DEPTH = 4 if cluster.SANITIZED else 6
COUNT = int(os.environ.get("POSITIONS", 4 if QUICK or cluster.SANITIZED else 24))


@contextlib.contextmanager
def programs_of(version):
    """Programs that are started meanwhile are of that version."""
    folder = cluster.BIN
    if version == OLD and OLD_BIN:
        cluster.BIN = OLD_BIN
    elif version == OLD:
        os.environ["ABDADA_PROTOCOL"] = str(OLD)
    try:
        yield
    finally:
        cluster.BIN = folder
        os.environ.pop("ABDADA_PROTOCOL", None)


def start_as(version, make, *arguments, **options):
    with programs_of(version):
        return make(*arguments, **options)


class Mixed:
    """Shards and workers of these versions."""

    def __init__(self, shards, workers, heartbeat_ms=cluster.HEARTBEAT_MS):
        self.shards = [start_as(version, Shard, heartbeat_ms=heartbeat_ms) for version in shards]
        self.servers = ",".join(shard.address for shard in self.shards)
        self.workers = [start_as(version, Worker, self.servers, name=f"w{i}-{version}")
                        for i, version in enumerate(workers)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.workers + self.shards:
            process.kill()


def sequential(count):
    """[(position, its score)]"""
    found = []
    for position in itertools.islice(itertools.cycle(positions()), count):
        row, = answers(start("--depth", DEPTH, "--algorithm", "sequential", *STRICT, position))
        found.append((position, row["score"]))
    return found


def search_mixed(shards, workers, front, wanted):
    """Strict scores are right, and all shards and workers take part."""
    with Mixed(shards, workers) as c:
        for position, score in wanted:
            row, = answers(start_as(front, start, "--servers", c.servers, "--fresh", "--depth", DEPTH, *STRICT, position))
            equal(row["score"], score, shards, workers, front, position)

        def all_help():
            row, = answers(start_as(front, start, "--servers", c.servers, "--fresh", "--time", "1500", *STRICT, positions()[1]))
            return row["workers"] == len(workers) and row["shards_up"] == len(shards)
        wait_until(all_help, f"{workers} on shards {shards} to take part")
        for shard in c.shards:
            figures = stats_of(shard)
            equal((figures["dropped"], figures["ignored"]), (0, 0))
            check(figures["asks"] > 0, "a shard was asked nothing:", shards)


def stats_of(shard):
    watch = client.Client(shard.address, version=OLD)
    try:
        return watch.hello(name="test").stats()
    finally:
        watch.bye()
        watch.close()


def every_mixture_finds_the_strict_scores():
    wanted = sequential(COUNT)
    for shards, workers, front in (((OLD, OLD), (NEW, NEW), NEW), ((NEW, NEW), (OLD, OLD), OLD),
                                   ((OLD, NEW), (NEW, OLD), NEW), ((NEW, OLD), (OLD, NEW), OLD)):
        search_mixed(shards, workers, front, wanted)
        print(f"# shards {shards}, workers {workers}, front-end {front}: {len(wanted)} scores right")


def searchers_of_both_versions_share_a_table():
    """What one has stored the other finds, and each is told of what the other finishes."""
    with Mixed((NEW,), ()) as c:
        old = client.Client(c.servers, version=OLD).hello(flags=1, namespace_id=7)
        new = client.Client(c.servers).hello(flags=1, namespace_id=7)
        for a, b, key in ((old, new, 1 << 40), (new, old, 2 << 40)):
            equal(a.ask(key, 5)[0], client.OPEN)
            equal(b.ask(key, 5, flags=client.EXCLUSIVE)[0], client.BUSY)
            b.store(key, 5, 12, client.EXACT)
            equal(a.wait_pushed(client.NODE_DONE)[1][0][:4], [key, 5, 12, client.EXACT])
            equal(a.ask(key, 5)[:2], (client.CUT, 12))
        for session in (old, new):
            session.bye()
            session.close()


def shards_are_upgraded_and_put_back_during_a_search():
    """One after the other is started again in the other version, twice: the answer comes, and is right."""
    (position, score), = sequential(1)
    with Mixed((OLD, OLD), (OLD, NEW)) as c:
        def search():
            return start("--servers", c.servers, "--fresh", "--depth", DEPTH, *STRICT, position)
        equal(answers(search())[0]["score"], score)
        front = start("--servers", c.servers, "--fresh", "--time", "600000", positions()[1])
        for version in (NEW, OLD):
            for i, shard in enumerate(c.shards):
                wait_until(lambda shard=shard: stats_of(shard)["asks"] > 0, "a shard that is asked")
                shard.end()
                c.shards[i] = start_as(version, Shard, shard.port)
                wait_until(lambda i=i: stats_of(c.shards[i])["workers"] == len(c.workers), "the workers to be back")
                wait_until(lambda i=i: stats_of(c.shards[i])["jobs"] == 1, "the job to be back")
        front.send_signal(signal.SIGINT)
        row, = answers(front)
        equal(row["shards_up"], 2)
        wait_until(lambda: answers(search())[0]["score"] == score, "the strict score")


def top_shows_who_speaks_what():
    with Mixed((NEW, OLD), (OLD, NEW)) as c:
        def seen():
            rows = top(c.servers)[1]["worker"]
            return {row["name"]: row["protocol"] for row in rows if row["shards"] == 2}
        wait_until(lambda: seen() == {f"w0-{OLD}": OLD, f"w1-{NEW}": NEW}, "both workers at both shards")
        text = run("abdada", "top", "--once", "--servers", c.servers, "--wait", "10000").out()
        for words in ("VERSION", "protocol 8, shards", "protocol 9, shards", "protocol 9, sessions"):
            check(words in text, words, "is not in", text)
    with Mixed((NEW,), (NEW,)) as c:
        check("VERSION" not in run("abdada", "top", "--once", "--servers", c.servers, "--wait", "10000").out(),
              "all are of one version")


def a_worker_that_refuses_a_job_is_shown():
    """A job of other sources: its workers do nothing for it, and `top` says which and why."""
    with Mixed((NEW, OLD), (NEW,), heartbeat_ms=60000) as c:  # this front-end is silent meanwhile
        front = client.Client(c.shards[0].address).hello(role=client.FRONT, name="foreign")
        job = 4711
        front.send(client.JOB_POST, job, 0, "chess", "startpos", 12345, 12345, "abdada", 0, 9, 5, 0, 0)
        report = client.report_of(front.wait_pushed(client.JOB_REPORT))
        equal((report["state"], report["nodes"]), (client.REFUSED, 0))
        check("other sources" in report["why"], report)

        def refuses():
            rows = top(c.servers)[1]["worker"]
            return [row for row in rows if row["refuses"] == f"{job:016x}" and "other sources" in row["why"]]
        wait_until(refuses, "top to show it")
        text = run("abdada", "top", "--once", "--servers", c.servers, "--wait", "10000").out()
        check("REFUSES" in text and "other sources" in text, text)
        front.send(client.JOB_STOP, job, 0)
        wait_until(lambda: not refuses(), "it to be over")
        front.bye()
        front.close()


def a_shard_without_a_common_version_is_said():
    """Of a version far from ours: one line, with the shard's words."""
    socket = zmq.Context.instance().socket(zmq.ROUTER)
    port = socket.bind_to_random_port("tcp://127.0.0.1")
    worker = cluster.Process("ttworker", "--servers", f"127.0.0.1:{port}")
    said = threading.Event()

    def answer():
        while not said.is_set():
            if socket.poll(50):
                peer, content = socket.recv_multipart()
                version, kind, request, *_ = msgpack.unpackb(content)
                equal((version, kind), (NEW, client.HELLO))
                socket.send_multipart([peer, msgpack.packb([77, client.ERROR, 2, request, "this shard speaks version 77"])])
    thread = threading.Thread(target=answer, daemon=True)
    thread.start()
    worker.wait_line("refused us: this shard speaks version 77", "err")
    said.set()
    thread.join()
    worker.kill()
    socket.close()


def a_wrong_protocol_is_one_line():
    try:
        for value in ("7", "10", "", "8x", " 8", "-8", "4294967304"):
            os.environ["ABDADA_PROTOCOL"] = value
            for words in (("ttserver", "--listen", "127.0.0.1:0"), ("ttworker", "--servers", "127.0.0.1:1"),
                          ("abdada", "top", "--once", "--servers", "127.0.0.1:1")):
                done = run(*words)
                equal((done.status, done.lines["err"]), (2, [f"{words[0]}: ABDADA_PROTOCOL={value}: must be 8 to 9"]), words)
    finally:
        del os.environ["ABDADA_PROTOCOL"]


if __name__ == "__main__":
    sys.exit(main([every_mixture_finds_the_strict_scores, searchers_of_both_versions_share_a_table,
                   shards_are_upgraded_and_put_back_during_a_search, top_shows_who_speaks_what,
                   a_worker_that_refuses_a_job_is_shown, a_shard_without_a_common_version_is_said, a_wrong_protocol_is_one_line]))
