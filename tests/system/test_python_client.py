#!/usr/bin/python3
"""A nobody's client against a real shard: BIN=build/dev/bin tests/system/test_python_client.py

Prints TAP; exits nonzero when anything fails. client.py is written from proto/PROTOCOL.md alone.
TEST_SEED repeats the random bytes."""

import os
import random
import socket
import subprocess
import sys
import threading
import time
import traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import client as ab  # noqa: E402
from client import Client, Lost, Refused  # noqa: E402

BIN = os.environ.get("BIN", "./bin")
SEED = int(os.environ.get("TEST_SEED", "1"), 0)
HEARTBEAT_MS = 2000  # nobody expires who is not run for a while
PATIENCE_S = 120 * float(os.environ.get("SLOWNESS", "1"))
TESTS = []


def test(function):
    TESTS.append(function)
    return function


class Server:
    def __init__(self, shards=1):
        for _ in range(20):
            if self.start(shards):
                return
        raise RuntimeError("ttserver did not start")

    def start(self, shards):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        if port + shards > 65535:
            return False
        self.process = subprocess.Popen(
            [os.path.join(BIN, "ttserver"), "--listen", "127.0.0.1:%d" % port,
             "--shards", str(shards), "--memory", "16M", "--heartbeat", str(HEARTBEAT_MS)],
            stdout=subprocess.PIPE, universal_newlines=True)
        watchdog = threading.Timer(60, self.process.kill)
        watchdog.start()
        self.addresses = []
        for line in self.process.stdout:
            words = line.split()
            if words[:1] == ["ready"]:
                self.addresses.append(words[1])
            if len(self.addresses) == shards:
                break
        watchdog.cancel()
        return len(self.addresses) == shards

    def stop(self):
        self.process.terminate()
        try:
            return self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()

    def alive(self):
        return self.process.poll() is None


def fresh_key():
    fresh_key.last += 1
    return ab.mix(fresh_key.last)


fresh_key.last = 1000


def sessions(server, count, **hello):
    return [Client(server.addresses[0]).hello(**hello) for _ in range(count)]


def wait_until(condition, what, alive=()):
    """Polls until the condition holds; the sessions in `alive` are kept meanwhile."""
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, what
        for session in alive:
            session.heartbeat()
        time.sleep(0.02)


def equal(got, expected):
    assert got == expected, "got %r, expected %r" % (got, expected)


@test
def welcome_names_the_session(server):
    a, b = sessions(server, 2)
    equal(a.heartbeat_ms, HEARTBEAT_MS)
    equal(a.inflight_age_max_ms, 60000)
    assert a.batch_max >= 1 and a.session != b.session
    equal(a.boot, b.boot)
    before = a.session
    a.hello(instance=7)
    equal(a.session, before)


@test
def first_ask_is_open_and_registered(server):
    a, = sessions(server, 1)
    key = fresh_key()
    verdict, _, alpha, beta, move, nproc = a.ask(key, 5, -20, 30)
    equal((verdict, alpha, beta, move, nproc), (ab.OPEN, -20, 30, 0, 1))
    equal(a.ask(key, 5, -20, 30)[5], 1)  # the same slot again counts once
    equal(a.ask(key, 5, -20, 30, slot=1)[5], 2)
    equal(a.peek(key, 5), (ab.UNKNOWN_LOW, ab.UNKNOWN_HIGH, 0, 0, 2))
    equal(a.peek(key, 6)[4], 0)


@test
def stored_result_cuts(server):
    a, b = sessions(server, 2)
    key = fresh_key()
    a.ask(key, 5)
    a.store(key, 5, 150, ab.LOWER, move=1804)
    equal(a.peek(key, 5), (150, ab.UNKNOWN_HIGH, 5, 1804, 0))
    equal(b.ask(key, 5)[:2], (ab.CUT, 150))
    equal(b.ask(key, 4)[:2], (ab.CUT, 150))
    equal(b.ask(key, 4, flags=ab.STRICT)[0], ab.OPEN)
    verdict, _, alpha, beta, move, _ = b.ask(key, 5, 100, 200)
    equal((verdict, alpha, beta, move), (ab.OPEN, 150, 200, 1804))
    verdict, _, alpha, beta, move, _ = b.ask(key, 6)
    equal((verdict, alpha, beta, move), (ab.OPEN, -100, 100, 1804))
    a.store(key, 5, 160, ab.EXACT, move=1804)
    a.heartbeat()
    equal(b.ask(key, 5, -300, 300)[:2], (ab.CUT, 160))


@test
def upper_bound_cuts_below_alpha(server):
    a, = sessions(server, 1)
    key = fresh_key()
    a.store(key, 3, -200, ab.UPPER)
    equal(a.ask(key, 3)[:2], (ab.CUT, -200))
    verdict, _, alpha, beta, _, _ = a.ask(key, 3, -300, 100)
    equal((verdict, alpha, beta), (ab.OPEN, -300, -200))


@test
def exclusive_ask_is_busy_while_another_has_it_in_flight(server):
    a, b = sessions(server, 2)
    key = fresh_key()
    equal(a.ask(key, 5, flags=ab.EXCLUSIVE)[0], ab.OPEN)
    equal(a.ask(key, 5, flags=ab.EXCLUSIVE)[0], ab.OPEN)
    equal(a.ask(key, 5, flags=ab.EXCLUSIVE, slot=1)[0], ab.BUSY)
    equal(b.ask(key, 5, flags=ab.EXCLUSIVE)[0], ab.BUSY)
    equal(b.ask(key, 4, flags=ab.EXCLUSIVE)[0], ab.OPEN)
    a.release(key, 5)
    a.release(key, 5)  # leaving twice is no error
    a.heartbeat()
    equal(b.ask(key, 5, flags=ab.EXCLUSIVE)[0], ab.OPEN)
    a.store(key, 5, 300, ab.LOWER)
    a.heartbeat()
    equal(b.ask(key, 5, flags=ab.EXCLUSIVE)[:2], (ab.CUT, 300))  # CUT before BUSY


@test
def batches_are_answered_in_order(server):
    a, = sessions(server, 1)
    keys = [fresh_key() for _ in range(100)]
    for i, key in enumerate(keys):
        a.store(key, 5, 100 + i, ab.LOWER)
    equal([x[1] for x in a.ask_all([[k, 5, -50, 50, 0, 0] for k in keys])],
          [100 + i for i in range(100)])
    equal(a.ask_all([]), [])


@test
def keys_of_two_namespaces_never_meet(server):
    a, = sessions(server, 1, namespace_id=1)
    b, = sessions(server, 1, namespace_id=2)
    position = fresh_key()
    key = ab.key_of(position, 1)
    a.store(key, 5, 150, ab.LOWER)
    a.ask(key, 6)
    a.heartbeat()
    equal(b.ask(ab.key_of(position, 2), 5, flags=ab.EXCLUSIVE)[0], ab.OPEN)
    equal(b.ask(ab.key_of(position, 2), 6, flags=ab.EXCLUSIVE)[0], ab.OPEN)
    b.hello(namespace_id=1)
    equal(b.ask(ab.key_of(position, 1), 5)[:2], (ab.CUT, 150))


@test
def bye_leaves_every_node(server):
    a, b = sessions(server, 2)
    key = fresh_key()
    a.ask(key, 5)
    equal(b.peek(key, 5)[4], 1)
    a.bye()
    wait_until(lambda: b.peek(key, 5)[4] == 0, "it left", [b])
    try:
        a.peek(key, 5)
        raise AssertionError("served without a session")
    except Refused as refused:
        equal(refused.code, ab.NO_SESSION)


@test
def silence_ends_a_session_and_its_in_flight_entries(server):
    a, b = sessions(server, 2)
    key = fresh_key()
    a.ask(key, 5)
    begin = time.monotonic()
    wait_until(lambda: b.peek(key, 5)[4] == 0, "the session to end", [b])
    assert time.monotonic() - begin > 0.002 * HEARTBEAT_MS, "not before two heartbeats"
    try:
        a.ask(key, 5)
        raise AssertionError("served without a session")
    except Refused as refused:
        equal(refused.code, ab.NO_SESSION)
    a.hello()
    equal(a.ask(key, 5)[5], 1)


@test
def another_instance_drops_in_flight_entries(server):
    a, b = sessions(server, 2)
    key = fresh_key()
    a.hello(instance=5)
    a.ask(key, 5)
    a.hello(instance=5)
    equal(b.peek(key, 5)[4], 1)
    a.hello(instance=6)
    equal(b.peek(key, 5)[4], 0)


@test
def node_done_goes_to_the_other_holders(server):
    a, = sessions(server, 1)
    b, = sessions(server, 1, flags=1)
    key = fresh_key()
    a.ask(key, 5, slot=2)
    b.ask(key, 5)
    a.store(key, 5, -3, ab.UPPER, move=17, slot=2)
    equal(b.wait_pushed(ab.NODE_DONE), [ab.NODE_DONE, [[key, 5, -3, ab.UPPER, 17, 0]]])
    a.send(ab.STORE_HASH, [[key, 5, 1, ab.LOWER, 0, 0], [key, 5, 4, ab.EXACT, 9, 0]])
    equal(b.wait_pushed(ab.NODE_DONE), [ab.NODE_DONE, [[key, 5, 4, ab.EXACT, 9, 0]]])


def job(number):
    return [number, 0, "chess", "startpos", 0xe7a1, 77, "abdada", 1, 8, 255, 1000, 0]


def pushed_job(worker):
    """The next JOB, without the number of its user, which the shard fills in."""
    message = worker.wait_pushed(ab.JOB)
    assert message[2] != 0, message
    message[2] = 0
    return message


@test
def letters_go_by_aliases_and_no_instance_is_named(server):
    front, = sessions(server, 1, role=ab.FRONT)
    worker, intruder = sessions(server, 2, role=ab.WORKER)
    number = random.getrandbits(64)
    front.send(ab.JOB_POST, *job(number))
    user = intruder.wait_pushed(ab.JOB)[2]
    for session in (front, worker):
        session.call(ab.MAIL_JOIN, ab.MAIL_LIST, number)
    listed = intruder.call(ab.MAIL_JOIN, ab.MAIL_LIST, number)[3]
    equal(sorted(alias for alias, in listed), sorted(ab.alias(s.instance) for s in (front, worker)))
    intruder.send(ab.MAIL, number, ab.alias(front.instance), 0, b"hello")
    equal(front.wait_pushed(ab.MAIL),
          [ab.MAIL, number, ab.alias(front.instance), ab.alias(intruder.instance), b"hello"])
    for known in {user, *(alias for alias, in listed)}:  # all that a intruder hears of the front-end
        thief, = sessions(server, 1, role=ab.FRONT, instance=known)
        thief.send(ab.JOB_STOP, number, 0)
        equal(thief.wait_pushed(ab.ERROR)[1], 7)
    worker.heartbeat()
    assert ab.JOB_STOP not in [message[0] for message in worker.pushed], worker.pushed
    front.send(ab.JOB_STOP, number, 0)
    equal(worker.wait_pushed(ab.JOB_STOP), [ab.JOB_STOP, number, 0])


@test
def jobs_are_pushed_and_stopped(server):
    front, = sessions(server, 1, role=ab.FRONT)
    early, = sessions(server, 1, role=ab.WORKER)
    number = random.getrandbits(64)
    front.send(ab.JOB_POST, *job(number))
    front.send(ab.JOB_POST, *job(number))  # repeated: ignored
    equal(pushed_job(early), [ab.JOB] + job(number))
    late, = sessions(server, 1, role=ab.WORKER)
    equal(late.jobs, 1)
    equal(pushed_job(late), [ab.JOB] + job(number))
    report = [number, 99, 0, 3, -31, 1804, 10, 20, 30, 40, 50, 60, 70, 75, 80, 90, "e2e4 e7e5", "", ""]
    late.send(ab.JOB_REPORT, *report)
    passed_on = front.wait_pushed(ab.JOB_REPORT)
    equal(passed_on[:2] + passed_on[3:], [ab.JOB_REPORT, number] + report[2:-2] + ["python", "", 0])
    equal(passed_on[2], ab.alias(late.instance))  # whatever it said
    front.send(ab.JOB_STOP, number, 0)
    for worker in (early, late):
        equal(worker.wait_pushed(ab.JOB_STOP), [ab.JOB_STOP, number, 0])
        worker.heartbeat()
        equal(worker.pushed, [])
    late.send(ab.JOB_REPORT, *report)  # it missed the stop, as it were
    equal(late.wait_pushed(ab.JOB_STOP), [ab.JOB_STOP, number, 1])
    front.send(ab.JOB_STOP, 12345, 0)  # unknown: ignored
    front.heartbeat()
    equal(sessions(server, 1, role=ab.WORKER)[0].jobs, 0)


@test
def worker_indexes_have_no_gaps(server):
    def wait_for_indexes(workers):  # those of other tests expire; indexes come again within a heartbeat
        end = time.monotonic() + PATIENCE_S
        while sorted(w.worker_index or () for w in workers) != [(i, len(workers)) for i in range(len(workers))]:
            assert time.monotonic() < end, [w.worker_index for w in workers]
            for worker in workers:
                worker.heartbeat()
    workers = sessions(server, 3, role=ab.WORKER)
    for worker in workers:
        assert worker.wait(ab.WORKER_INDEX)[1] < worker.worker_index[1]
    wait_for_indexes(workers)
    workers[0].bye()
    workers[0].close()
    wait_for_indexes(workers[1:])


@test
def members_and_jobs_are_listed(server):
    front, watch = sessions(server, 1, role=ab.FRONT)[0], sessions(server, 1)[0]
    worker, = sessions(server, 1, role=ab.WORKER)
    number = random.getrandbits(64)
    front.send(ab.JOB_POST, *job(number))
    front.heartbeat()
    worker.send(ab.JOB_REPORT, number, 99, 0, 3, 0, 0, 100, 20, 30, 40, 50, 60, 70, 75, 80, 90, "", "", "")
    worker.heartbeat()
    mine, = [row for row in watch.members() if row["session"] == worker.session]
    equal((mine["role"], mine["job"], mine["name"]), (ab.WORKER, number, "python"))
    equal([mine[name] for name in "nodes asks duplicated abandoned waited_us talked_us bytes_sent bytes_received".split()],
          [100, 20, 50, 60, 70, 75, 80, 90])
    mine, = [row for row in watch.jobs_open() if row["job"] == number]
    equal([mine[name] for name in "workers reached owner game position".split()],
          [1, 3, "python"] + [job(number)[i] for i in (2, 3)])
    equal([mine[name] for name in "nodes duplicated abandoned bytes line".split()], [100, 50, 60, 170, ""])
    front.bye()


@test
def results_reach_one_session_of_each_other_host(server):
    namespace = fresh_key()
    sender, = sessions(server, 1, namespace_id=namespace, flags=4, table_id=1)
    same, = sessions(server, 1, namespace_id=namespace, flags=4, table_id=1)
    one, other = sessions(server, 2, namespace_id=namespace, flags=4, table_id=2)
    third, = sessions(server, 1, namespace_id=namespace, flags=4)  # does not say which table it has
    elsewhere, = sessions(server, 1, namespace_id=namespace + 1, flags=4, table_id=3)
    deaf, = sessions(server, 1, namespace_id=namespace, table_id=4)
    results = [(fresh_key(), 63, -32767, ab.EXACT, 65535), (fresh_key(), 0, 32767, ab.LOWER, 0)]
    for _ in range(2):
        sender.share(1, results)
        _, table, packed, load = third.wait_pushed(ab.SHARE)
        equal((table, ab.unpack_results(packed), load), (1, results, 0))
    for session in (one, other):  # in turns
        equal(ab.unpack_results(session.wait_pushed(ab.SHARE)[2]), results)
    for session in (sender, same, one, other, third, elsewhere, deaf):
        session.heartbeat()
        equal([m for m in session.pushed if m[0] == ab.SHARE], [])
    figures = sender.stats()
    equal((figures["shared"] >= 4, figures["shared_dropped"], figures["hints_dropped"]), (True, 0, 0))
    refused_with(sender, ab.SHARE, [1, ab.pack_results([(1, 3, 5, 0, 0)]), 0], 5)
    refused_with(sender, ab.SHARE, [1, ab.pack_results([(1, 3, -32768, ab.EXACT, 0)]), 0], 5)
    for bad in (bytes(12), bytes(14), bytes(13 * 1025), [[1, 3, 5, 1, 0, 0]], "x" * 13):
        refused_with(sender, ab.SHARE, [1, bad, 0], 1)
    third.heartbeat()
    equal(third.pushed, [])


@test
def results_for_who_does_not_read_are_dropped(server):
    namespace = fresh_key()
    sender, reader, slow = sessions(server, 3, namespace_id=namespace, flags=4)
    slow.close()
    slow = Client(server.addresses[0], receive_most=1).hello(namespace_id=namespace, flags=4)
    results = [(fresh_key(), 9, 7, ab.EXACT, 1)] * 1024
    before, got = sender.stats()["hints_dropped"], 0

    def are_dropped():
        nonlocal got
        for _ in range(20):
            sender.share(1, results)
            reader.wait_pushed(ab.SHARE)  # who reads gets all
            got += 1
        slow.send(ab.HEARTBEAT, 1)  # it is there
        reader.heartbeat()  # a session that only reads would end
        return sender.stats()["hints_dropped"] > before
    wait_until(are_dropped, "hints for the slow one to be dropped")
    for session in (sender, reader):
        session.heartbeat()


@test
def results_are_scanned_and_flushed(server):
    a, b = sessions(server, 2)
    wanted = {}
    for i in range(3000):
        key, depth = fresh_key(), i % 12
        a.store(key, depth, i - 1500, (ab.LOWER, ab.UPPER, ab.EXACT)[i % 3], move=i)
        wanted[key, depth] = (i - 1500 if i % 3 != 1 else ab.UNKNOWN_LOW,
                              i - 1500 if i % 3 != 0 else ab.UNKNOWN_HIGH, i)
    a.heartbeat()
    for depth in (0, 5, 12):
        found = b.scan(depth)
        for at, entry in wanted.items():
            equal(found.get(at), entry if at[1] >= depth else None)
        assert all(at[1] >= depth for at in found)
    refused_with(a, ab.SCAN, [9, 0, 251], 5)
    equal(a.call(ab.SCAN, ab.SCANNED, ab.MASK, 0)[2:], [0, []])  # a cursor behind the end
    key = fresh_key()
    a.ask(key, 5)
    a.flush()
    equal(b.scan(), {})
    equal(b.peek(key, 5)[4], 1)  # who is in flight is there as ever
    equal(a.stats()["flushes"] >= 1, True)


def worker_of(server, stop):
    """A ttworker, until `stop` is set."""
    process = subprocess.Popen([os.path.join(BIN, "ttworker"), "--servers", server.addresses[0], "--threads", "1",
                                "--private", "--hash", "16"],
                               stdout=subprocess.PIPE, universal_newlines=True)
    stop.append(process)
    assert process.stdout.readline() == "ready\n"


def search(front, number, position, depth, evaluation=0, namespace_id=0, flags=1, game="chess", algorithm="abdada"):
    """The last reports on a job, by instance, once one is of that depth or all are in another state than searching."""
    front.send(ab.JOB_POST, number, 0, game, position, evaluation, namespace_id, algorithm, flags, depth, 255, 0, 0)
    reports, lines = {}, {}
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        front.heartbeat()
        pushed = [ab.report_of(message) for message in front.pushed if message[0] == ab.JOB_REPORT]
        front.pushed.clear()
        for report in pushed:
            if report["job"] == number:
                reports[report["instance"]] = report
                lines[report["depth"]] = max(lines.get(report["depth"], ""), report["line"], key=len)
        if any(r["depth"] == depth for r in reports.values()) or \
                reports and all(r["state"] != ab.SEARCHING for r in reports.values()):
            front.send(ab.JOB_STOP, number, 0)
            return max(reports.values(), key=lambda r: r["depth"]), lines
        time.sleep(0.01)
    raise Lost(ab.JOB_REPORT)


@test
def a_front_end_that_cannot_search_gets_score_and_line(server):
    front, stop = sessions(server, 1, role=ab.FRONT)[0], []
    try:
        worker_of(server, stop)
        # A mate in two, and nothing known of chess here but the text of the protocol.
        report, lines = search(front, 77, "6k1/5ppp/8/8/8/8/5PPP/3RR1K1 w - - 0 1", 6)
        assert report["depth"] == 6 and report["state"] in (ab.SEARCHING, ab.ENDED), report
        assert 30000 < report["score"] < 31000 and (31000 - report["score"]) % 2 == 1, report
        moves = lines[6].split()
        equal(moves[0][:2] in ("d1", "e1") and moves[0][2:] in ("d8", "e8"), True)
        start, to = report["move"] & 63, report["move"] >> 6 & 63  # section 8
        equal(moves[0], "".join("abcdefgh"[s % 8] + str(s // 8 + 1) for s in (start, to)))
        strict, _ = search(front, 78, "startpos", 4, namespace_id=random.getrandbits(32) << 32)
        again, _ = search(front, 79, "startpos", 4, namespace_id=random.getrandbits(32) << 32)
        equal(strict["score"], again["score"])
        over, lines = search(front, 80, "7k/5Q2/6K1/8/8/8/8/8 b - - 0 1", 3)  # stalemate
        equal((over["score"], over["move"], over["line"]), (0, 0, ""))
    finally:
        for process in stop:
            process.terminate()
            equal(process.wait(PATIENCE_S), 0)


@test
def a_refused_job_is_not_an_ended_one(server):
    front, stop = sessions(server, 1, role=ab.FRONT)[0], []
    try:
        worker_of(server, stop)
        refused = {"another evaluation": dict(evaluation=4711), "no such game": dict(game="draughts"),
                   "no position": dict(position="8/8 w"), "strict and full": dict(flags=3),
                   "a namespace of another kind": dict(namespace_id=1),
                   "nobody owns the root": dict(algorithm="ybwc")}
        for number, (name, fields) in enumerate(refused.items(), 90):
            report, _ = search(front, number, **{"position": "startpos", "depth": 3, **fields})
            assert (report["state"], report["depth"], report["nodes"]) == (ab.REFUSED, 0, 0), (name, report)
        report, _ = search(front, 99, "startpos", 3)
        assert report["state"] in (ab.SEARCHING, ab.ENDED) and report["depth"] == 3, report
    finally:
        for process in stop:
            process.terminate()
            equal(process.wait(PATIENCE_S), 0)


@test
def jobs_end_with_their_front(server):
    worker, = sessions(server, 1, role=ab.WORKER)
    for how in ("bye", "silence"):
        front, = sessions(server, 1, role=ab.FRONT)
        number = random.getrandbits(64)
        front.send(ab.JOB_POST, *job(number))
        equal(worker.wait_pushed(ab.JOB)[1], number)
        if how == "bye":
            front.bye()
        wait_until(lambda: any(message[0] == ab.JOB_STOP for message in worker.pushed), "the job to end", [worker])
        equal(worker.wait_pushed(ab.JOB_STOP), [ab.JOB_STOP, number, 1])


@test
def workers_may_not_post(server):
    worker, = sessions(server, 1, role=ab.WORKER)
    worker.send(ab.JOB_POST, *job(1))
    equal(worker.wait(ab.ERROR)[1], 7)


@test
def figures_have_their_names(server):
    a, = sessions(server, 1)
    wanted = """sessions workers fronts jobs asks cuts busy opens stores releases peeks inflight_nodes
        inflight_entries inflight_refused inflight_expired sessions_expired malformed no_session refused
        results_permille batches uptime_ms memory_bytes""".split()
    figures = a.stats()
    equal([name for name in wanted if name not in figures], [])
    asks = figures["asks"]
    a.ask(fresh_key(), 1)
    equal(a.stats()["asks"], asks + 1)


def refused_with(a, kind, fields, code):
    a.send(kind, *fields)
    message = a.wait(ab.ERROR)
    equal(message[1], code)
    return message


@test
def values_out_of_range_are_refused_whole(server):
    a, = sessions(server, 1)
    key = fresh_key()
    good = [key, 5, -1, 1, 0, 0]
    for bad in ([key, 251, -1, 1, 0, 0], [key, 5, 1, 1, 0, 0], [key, 5, -32768, 1, 0, 0],
                [key, 5, -1, 1, 128, 0]):
        equal(refused_with(a, ab.RETRIEVE_ASK, [9, [good, bad]], 5)[2], 9)
    for bad in ([key, 251, 0, 1, 0, 0], [key, 5, 0, 0, 0, 0], [key, 5, 0, 4, 0, 0],
                [key, 5, -32768, 1, 0, 0]):
        refused_with(a, ab.STORE_HASH, [[[key, 5, 9, 1, 0, 0], bad]], 5)
    equal(a.peek(key, 5), (ab.UNKNOWN_LOW, ab.UNKNOWN_HIGH, 0, 0, 0))


@test
def malformed_messages_get_an_error(server):
    a, = sessions(server, 1)
    whole = ab.msgpack.packb([ab.VERSION, ab.RETRIEVE_ASK, 5, [[1, 2, -1, 1, 0, 0]]])
    for cut in range(1, len(whole)):
        a.send_bytes(whole[:cut])
        equal(a.wait(ab.ERROR)[1], 1)
    a.send_bytes(whole + b"\0")
    equal(a.wait(ab.ERROR)[1], 1)
    a.send_bytes(ab.msgpack.packb([1, ab.HEARTBEAT, 1]))
    equal(a.wait(ab.ERROR)[1], 2)
    a.send_bytes(ab.msgpack.packb([ab.VERSION, 99, 1]))
    equal(a.wait(ab.ERROR)[1], 3)
    a.send_bytes(ab.msgpack.packb([ab.VERSION, ab.WELCOME, 1, 1, 1, 1, 1, 1, 1, 1]))
    equal(a.wait(ab.ERROR)[1], 3)
    a.send_bytes(ab.msgpack.packb([ab.VERSION, ab.PEEK, 1, 7]))
    equal(a.wait(ab.ERROR)[1], 1)
    a.send_bytes(ab.msgpack.packb([ab.VERSION, ab.PEEK, 1, [[1, 1]] * (a.batch_max + 1)]))
    assert a.wait(ab.ERROR)[1] in (1, 6)
    a.heartbeat()


@test
def noise_never_stops_the_service(server):
    rng = random.Random(SEED)
    print("# TEST_SEED=%d" % SEED)
    a, noisy = sessions(server, 2)
    nobody = Client(server.addresses[0])
    whole = ab.msgpack.packb([ab.VERSION, ab.STORE_HASH, [[1, 2, 3, 1, 0, 0]] * 20])
    for round_number in range(2000):
        if round_number % 2:
            noise = bytes(rng.getrandbits(8) for _ in range(rng.randrange(1, 80)))
        else:
            noise = bytearray(whole)
            noise[rng.randrange(len(noise))] ^= 1 << rng.randrange(8)
        rng.choice((noisy, nobody)).send_bytes(bytes(noise))
        if round_number % 200 == 0:
            a.heartbeat()
    for frames in ([b""], [b"", b"x"], [b"\x93\x02\x09", b"\x01"], [b"\x90" * 70000],
                   [b"\xdd\xff\xff\xff\xff"]):
        noisy.send_bytes(*frames)
        nobody.send_bytes(*frames)
    key = fresh_key()
    equal(a.ask(key, 5)[0], ab.OPEN)
    assert server.alive()
    assert a.stats()["malformed"] > 0


@test
def a_raw_connection_does_no_harm(server):
    host, port = server.addresses[0].rsplit(":", 1)
    for noise in (b"GET / HTTP/1.0\r\n\r\n", b"\xff" * 100, b""):
        with socket.create_connection((host, int(port))) as raw:
            raw.sendall(noise)
    a, = sessions(server, 1)
    a.heartbeat()


@test
def shards_of_one_server_are_apart(server):
    two = Server(shards=2)
    try:
        a, b = (Client(address).hello() for address in two.addresses)
        assert a.boot != b.boot
        key = fresh_key()
        a.store(key, 5, 9, ab.EXACT)
        a.heartbeat()
        equal(b.ask(key, 5)[0], ab.OPEN)
        assert {ab.owner(fresh_key(), [a.place, b.place]) for _ in range(50)} == {0, 1}
    finally:
        code = two.stop()
    equal(a.wait_pushed(ab.BYE)[0], ab.BYE)
    equal(code, 0)


@test
def the_map_has_the_vectors_of_the_specification(_server):
    equal(ab.mix(1), 0x5692161d100b05e5)
    places = [1, 2, 0xb007000000000001, 0]
    vectors = {0: 0, 1: 0, 2: 1, 3: 0, 0x0123456789abcdef: 2, ab.MASK: 0, 1 << 63: 2, 42: 0}
    equal({key: ab.owner(key, places) for key in vectors}, vectors)


def main():
    if not os.access(os.path.join(BIN, "ttserver"), os.X_OK):
        print("Bail out! no %s/ttserver: set BIN" % BIN)
        return 1
    failed = 0
    print("1..%d" % (len(TESTS) + 1))
    server = Server()
    for number, function in enumerate(TESTS, 1):
        try:
            function(server)
            outcome = "ok"
        except (AssertionError, Lost, Refused, OSError, ValueError, RuntimeError):
            outcome = "not ok"
            failed += 1
            print("# " + traceback.format_exc().replace("\n", "\n# "))
        print("%s %d - %s" % (outcome, number, function.__name__), flush=True)
        if not server.alive():
            server = Server()
    code = server.stop()
    failed += code != 0
    print("%s %d - server_ends_cleanly" % ("ok" if code == 0 else "not ok", len(TESTS) + 1))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
