#!/usr/bin/python3
"""Programs of several builds in one cluster, as while it is upgraded: who sends a field more in each message and operation,
or the last one not, is understood; and what is said of other versions of the protocol. TAP.

    BIN=build/dev/bin tests/system/test_versions.py
    OTHER_BIN=FOLDER: real programs of another build take half of the places. POSITIONS=N: so many positions are searched by
    each mixture.
"""
import itertools
import os
import signal
import sys
import threading

import msgpack
import zmq

import client
import cluster
from cluster import STRICT, STARVED, SHORT, Shard, Worker, answers, check, equal, main, positions, run, start, top, wait_until

OTHER_BIN = os.environ.get("OTHER_BIN")
DEPTH = 4 if cluster.SANITIZED else 6
COUNT = int(os.environ.get("POSITIONS", 4 if SHORT or cluster.SANITIZED else 24))
UNKNOWN = itertools.cycle([7, -70000, "more", b"more", (1 << 64) - 1, [[1, -2], []]])


def is_list(field):
    return isinstance(field, list) and all(isinstance(one, list) for one in field)


def more(message):
    """As a later build would say it: a field behind the others, in each operation, too."""
    return [[[*one, next(UNKNOWN)] for one in field] if is_list(field) else field for field in message] + [next(UNKNOWN)]


def fewer(message):
    """As an earlier build would say it, which does not know the last field of these (of a report why, left_s)."""
    if message[1] == client.HELLO:
        return message[:-1]
    if message[1] == client.JOB_REPORT:
        return message[:-2]
    if message[1] in (client.MEMBERS_ANSWER, client.JOBS_ANSWER):
        return [*message[:-1], [row[:-1] for row in message[-1]]]
    return message


class Relay:
    """Stands between clients and a shard: to either the other one is of another build, whose messages are `change`d."""

    def __init__(self, address, change):
        self.shard, self.change, self.peers, self.ended = address, change, {}, threading.Event()
        self.messages = 0
        self.socket = zmq.Context.instance().socket(zmq.ROUTER)
        self.address = f"127.0.0.1:{self.socket.bind_to_random_port('tcp://127.0.0.1')}"
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def changed(self, content):
        self.messages += 1
        message = msgpack.unpackb(content, raw=False, unicode_errors="surrogateescape")
        return msgpack.packb(self.change(message), unicode_errors="surrogateescape")

    def serve(self):
        poller = zmq.Poller()
        poller.register(self.socket, zmq.POLLIN)
        who = {}
        while not self.ended.is_set():
            for socket, _ in poller.poll(50):
                if socket is not self.socket:
                    self.socket.send_multipart([who[socket], self.changed(socket.recv())])
                    continue
                peer, content = socket.recv_multipart()
                if peer not in self.peers:
                    self.peers[peer] = zmq.Context.instance().socket(zmq.DEALER)
                    self.peers[peer].connect("tcp://" + self.shard)
                    who[self.peers[peer]] = peer
                    poller.register(self.peers[peer], zmq.POLLIN)
                self.peers[peer].send(self.changed(content))
        for socket in (self.socket, *self.peers.values()):
            socket.close(linger=0)

    def close(self):
        self.ended.set()
        self.thread.join()


class Mixed:
    """Two shards and two workers; `ways`: through which change each program reaches each shard, None: straight."""

    def __init__(self, *ways, heartbeat_ms=cluster.HEARTBEAT_MS):
        self.shards = [Shard(heartbeat_ms=heartbeat_ms), self.of_other_build(Shard, heartbeat_ms=heartbeat_ms)]
        self.relays, self.places = [], []
        for changes in ways:
            at = []
            for shard, change in zip(self.shards, changes):
                if change:
                    self.relays.append(Relay(shard.address, change))
                at.append(self.relays[-1].address if change else shard.address)
            self.places.append(",".join(at))
        self.workers = [Worker(self.places[0], name="w0"), self.of_other_build(Worker, self.places[1], name="w1")]
        self.front = self.places[2]

    @staticmethod
    def of_other_build(make, *arguments, **options):
        folder, cluster.BIN = cluster.BIN, OTHER_BIN or cluster.BIN
        try:
            return make(*arguments, **options)
        finally:
            cluster.BIN = folder

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.workers + self.shards:
            process.kill()
        for relay in self.relays:
            relay.close()


def sequential(count):
    """[(position, its score)]"""
    found = []
    for position in itertools.islice(itertools.cycle(positions()), count):
        row, = answers(start("--depth", DEPTH, "--algorithm", "sequential", *STRICT, position))
        found.append((position, row["score"]))
    return found


def every_mixture_finds_the_strict_scores():
    """All shards and workers take part, and nobody says what another takes for no message."""
    wanted = sequential(COUNT)
    straight = (None, None)
    for ways in ((straight, straight, straight), ((more, more), (more, more), straight), (straight, (fewer, fewer), (more, more)),
                 ((fewer, more), (more, fewer), (fewer, fewer))):
        with Mixed(*ways) as c:
            for position, score in wanted:
                row, = answers(start("--servers", c.front, "--fresh", "--depth", DEPTH, *STRICT, position))
                equal(row["score"], score, ways, position)

            def all_help():
                row, = answers(start("--servers", c.front, "--fresh", "--time", "1500", *STRICT, positions()[1]))
                return (row["workers"], row["shards_up"]) == (2, 2)
            wait_until(all_help, f"both workers to take part at both shards: {ways}")
            for shard in c.shards:
                figures = shard.stats()
                equal([figures[name] for name in ("dropped", "ignored", "malformed", "versions_refused")], [0] * 4)
                check(figures["asks"] > 0, "a shard was asked nothing:", ways)
            check(all(relay.messages > 100 for relay in c.relays), [relay.messages for relay in c.relays])
        print(f"# {[[way and way.__name__ for way in each] for each in ways]}: {len(wanted)} scores right")


def searchers_of_other_builds_share_a_table():
    """What one has stored the other finds, and each is told of what the other finishes."""
    with Mixed(*[(None, None)] * 3, heartbeat_ms=60000) as c:
        relays = [Relay(c.shards[0].address, change) for change in (more, fewer)]
        peers = [client.Client(relay.address).hello(flags=1, namespace_id=7) for relay in relays]
        peers.append(client.Client(c.shards[0].address).hello(flags=1, namespace_id=7))
        for key, (a, b) in enumerate(itertools.permutations(peers, 2), 1 << 40):
            equal(a.ask(key, 5)[0], client.OPEN)
            equal(b.ask(key, 5, flags=client.EXCLUSIVE)[0], client.BUSY)
            b.store(key, 5, 12, client.EXACT)
            equal(a.wait_pushed(client.NODE_DONE)[1][0][:4], [key, 5, 12, client.EXACT])
            equal(a.ask(key, 5)[:2], (client.CUT, 12))
        for session in peers:
            session.bye()
            session.close()
        for relay in relays:
            relay.close()


def top_shows_who_is_of_what_release():
    with Mixed(*[(None, None)] * 3) as c:
        def page():
            return run("abdada", "top", "--once", "--servers", c.front, "--wait", "10000").out()
        wait_until(lambda: sum(row["shards"] == 2 for row in top(c.front)[1]["worker"]) == 2, "both workers at both shards")
        if not OTHER_BIN:
            check("VERSION" not in page(), "all are of one build")
        late = client.Client(c.shards[0].address)
        words = ("VERSION", f"protocol {client.VERSION}, shards", f"protocol {client.VERSION}, sessions",
                 f"protocol {client.VERSION + 1}, sessions", "9.9.9")

        def is_shown():  # its session may have ended on a busy machine
            late.call(client.HELLO, client.WELCOME, client.CLIENT, 0, 0, 1, "late", 0, client.VERSION, client.VERSION + 1, "9.9.9")
            text = page()
            return all(word in text for word in words)
        wait_until(is_shown, words)
        late.bye()
        late.close()


def a_worker_that_refuses_a_job_is_shown():
    """A job of other sources: its workers do nothing for it, and `top` says which and why."""
    with Mixed((None, None), (fewer, fewer), (None, None), heartbeat_ms=60000) as c:  # this front-end is silent meanwhile
        front = client.Client(c.shards[0].address).hello(role=client.FRONT, name="foreign")
        job = 4711
        front.send(client.JOB_POST, job, 0, "chess", "startpos", 12345, 12345, "abdada", 0, 9, 5, 0, 0)
        for _ in c.workers:
            report = client.report_of(front.wait_pushed(client.JOB_REPORT))
            equal((report["state"], report["nodes"]), (client.REFUSED, 0))
            check("other sources" in report["why"] or report["name"] == "w1" and report["why"] == "", report)

        def refusing():
            rows = top(c.front)[1]["worker"]
            return {row["name"]: row["why"] for row in rows if row["refuses"] == f"{job:016x}"}
        wait_until(lambda: len(refusing()) == 2, "top to show both")
        check("other sources" in refusing()["w0"] and refusing()["w1"] == "", refusing())
        text = run("abdada", "top", "--once", "--servers", c.front, "--wait", "10000").out()
        for words in ("REFUSES", "other sources", "a program of an earlier version does not say"):
            check(words in text, words, "is not in", text)
        front.send(client.JOB_STOP, job, 0)
        wait_until(lambda: not refusing(), "it to be over")
        front.bye()
        front.close()


def shards_are_replaced_during_a_search():
    """One after the other is started again, and seen through another build, twice: the answer comes, and is right."""
    (position, score), = sequential(1)
    with Mixed((more, fewer), (None, more), (fewer, None)) as c:
        def search():
            return answers(start("--servers", c.front, "--fresh", "--depth", DEPTH, *STRICT, position))[0]["score"]
        equal(search(), score)
        front = start("--servers", c.front, "--fresh", "--time", "600000", positions()[1])
        for i, change in ((0, fewer), (1, more), (0, more), (1, fewer)):
            wait_until(lambda i=i: c.shards[i].stats()["asks"] > 0, "a shard that is asked")
            port = c.shards[i].port
            c.shards[i].end()
            for relay in c.relays:
                relay.change = change if relay.shard.endswith(f":{port}") else relay.change
            c.shards[i] = Shard(port)
            wait_until(lambda i=i: c.shards[i].stats()["workers"] == len(c.workers), "the workers to be back")
            wait_until(lambda i=i: c.shards[i].stats()["jobs"] == 1, "the job to be back")
        front.send_signal(signal.SIGINT)
        answers(front)
        wait_until(lambda: search() == score, "the strict score")


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
                equal((version, kind), (client.VERSION, client.HELLO))
                socket.send_multipart([peer, msgpack.packb([77, client.ERROR, 2, request, "this shard speaks version 77"])])
    thread = threading.Thread(target=answer, daemon=True)
    thread.start()
    worker.wait_line("refused us: this shard speaks version 77", "err")
    said.set()
    thread.join()
    worker.kill()
    socket.close()


if __name__ == "__main__":
    sys.exit(main([every_mixture_finds_the_strict_scores, searchers_of_other_builds_share_a_table,
                   shards_are_replaced_during_a_search, top_shows_who_is_of_what_release,
                   a_worker_that_refuses_a_job_is_shown, a_shard_without_a_common_version_is_said], unstable=STARVED))
