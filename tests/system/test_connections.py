#!/usr/bin/python3
"""Peers that take connections, memory or turns of a shard, and good clients meanwhile. TAP.

    BIN=build/dev/bin tests/system/test_connections.py

Users are addresses here, of a network namespace of our own; where the machine allows none, the tests that need several
users are skipped, with the reason.
"""
import contextlib
import functools
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time

import msgpack
import zmq

import network

reason = network.why_not()  # before anything else: it moves this process into a namespace of its own

import client  # noqa: E402
import zmtp  # noqa: E402
from cluster import (STARVED, SHORT, ROOT, Failure, Process, Shard, check, equal, free_port, main,  # noqa: E402
                     promised, run, wait_until)
from test_keys import environment, ring  # noqa: E402

USERS = "10.213.8"  # addresses that are all this machine's, but not of the loopback network
BAD, GOOD = f"{USERS}.1", f"{USERS}.2"
NEVER_MS = 60000  # a heartbeat after which no session of a test has expired
CHESS = [0, "chess", "startpos", 1, 2, "abdada", 0, 6, 2, 0, 0]  # a JOB_POST after the job's id


class Here:
    """Takes the place of a network.Host: this one."""
    address = f"{USERS}.254"

    def join(self):
        pass


def needs_users(test):
    @functools.wraps(test)
    def wrapped():
        if not reason:
            subprocess.run(["ip", "route", "replace", "local", f"{USERS}.0/24", "dev", "lo"], check=True)
        return reason or test()
    return wrapped


def wide_ask(operations, request=1):
    """A RETRIEVE_ASK, true but as large as msgpack allows: every number in nine bytes."""
    def wide(number):
        return b"\xcf" + number.to_bytes(8, "big")
    rows = b"".join(b"\x96" + b"".join(map(wide, [random.getrandbits(63), 3, 0, 5, 0, 0])) for _ in range(operations))
    return b"\x94" + b"".join(map(msgpack.packb, [client.VERSION, client.RETRIEVE_ASK, request])) + \
        b"\xdc" + operations.to_bytes(2, "big") + rows


def peek(operations):
    return zmtp.message(client.PEEK, 5, [[random.getrandbits(64), 3] for _ in range(operations)])


def open_files(process):
    return len(os.listdir(f"/proc/{process.popen.pid}/fd"))


def ticks(process):
    with open(f"/proc/{process.popen.pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


@contextlib.contextmanager
def closing(peers):
    try:
        yield peers
    finally:
        for peer in peers:
            peer.close()


@contextlib.contextmanager
def repeating(action):
    """Calls the action again and again in a thread of its own until the end of the block; it fails if a call did."""
    over, failures = threading.Event(), []

    def loop():
        try:
            while not over.is_set():
                action()
        except (OSError, EOFError, Failure, client.Lost, client.Refused) as error:
            failures.append(error)
    thread = threading.Thread(target=loop, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    check(not failures, failures)


def cost_of_messages(connections, messages):
    """Processor ticks of a shard for so many messages, all waiting when it begins, over so many connections."""
    shard = Shard(0, "--sessions", 4096, host=Here(), heartbeat_ms=NEVER_MS)
    data = peek(100) * (messages // connections)
    with closing([zmtp.Peer(shard.address, BAD).hello() for _ in range(connections)]) as peers:
        good = zmtp.Peer(shard.address, GOOD).hello()
        before, begin = good.stats()["messages"], ticks(shard)
        shard.stop()
        for peer in peers:
            peer.send(data)
        shard.send_signal(signal.SIGCONT)
        asks = 0

        def served():
            nonlocal asks
            asks += 1
            return good.stats()["messages"] - before >= messages
        wait_until(served, "all messages served")
        cost = ticks(shard) - begin
        good.close()
    equal(shard.end(), 0, shard.tail())
    print(f"# {connections} connections, {messages} messages: {cost} ticks, {asks} asks of a good client meanwhile")
    return cost


@needs_users
def test_many_connections_with_unread_bytes_are_all_served():
    """What a message costs does not go by how many other connections wait."""
    messages = 6000 if SHORT else 30000
    few, many = cost_of_messages(30, messages), cost_of_messages(1500, messages)
    check(many <= 5 * few + 50, "ticks for the same messages over many connections:", many, "over few:", few)


def test_peers_that_only_ping_lose_session_and_connection():
    shard = Shard(0, "--sessions", 8, heartbeat_ms=100)
    quiet, held, welcomed = open_files(shard), [], 0

    def ping():
        for peer in list(held):
            peer.try_send(zmtp.PING)

    def entered():
        try:
            peer = zmtp.Peer(shard.address)
            held.append(peer)
            return peer.hello()
        except (OSError, EOFError, client.Refused):
            return None
    with closing(held), repeating(ping):
        for _ in range(16 if SHORT else 96):  # the shard has room for 74 connections
            wait_until(entered, f"a session, after {welcomed} that only pinged")
            welcomed += 1
        wait_until(lambda: open_files(shard) <= quiet + 1, "connections that only ping are closed")
        zmtp.Peer(shard.address).hello().close()
    equal(shard.end(), 0, shard.tail())


def bytes_until_closed(peer):
    data = peer.buffer
    while more := peer.socket.recv(1 << 16):
        data += more
    return data


def test_a_silent_peer_is_closed_and_gets_no_ping():
    """libzmq aborts when a PING comes at a bad time (peers_tick)."""
    shard = Shard(0, heartbeat_ms=200)
    for minor in 0, 1, 2:
        with closing([zmtp.Peer(shard.address, minor=minor).hello()]) as (peer,):
            check(b"\4PING" not in bytes_until_closed(peer), "a PING to a peer of ZMTP 3.", minor)
    equal(shard.end(), 0, shard.tail())


def flooded(keys):
    shard = Shard(heartbeat_ms=5000, keys=keys)  # no session may expire while a busy machine starts processes
    keys_of = keys and client.keys_of(keys, "administrator")
    established, watch = (client.Client(shard.address, keys=keys_of).hello() for _ in range(2))
    options = ["--keys", keys] if keys else []
    floods = [Process(os.path.join(ROOT, "tests/system/zmtp.py"), shard.address, "curve" if keys else "null")
              for _ in range(2)]
    with repeating(established.heartbeat):  # fails without its session
        for process in floods:
            process.wait_line("flood")
        watch.hello()
        for _ in range(1 if SHORT else 3):
            def entered():
                watch.hello()  # a session that expired meanwhile, too
                return run("ttserver", "--check", shard.address, *options).status == 0
            wait_until(entered, "a new client gets in")
        for process in floods:
            check(process.running(), process.tail())
            process.kill()
    for peer in established, watch:
        peer.bye()
        peer.close()
    equal(shard.end(), 0, shard.tail())


def test_new_clients_get_in_while_handshakes_flood_a_shard():
    flooded(None)


def test_new_clients_get_in_while_handshakes_flood_a_shard_with_keys():
    with ring() as keys:
        flooded(keys)


@needs_users
def test_hundreds_of_half_handshakes_cost_only_their_own_address_places():
    shard = Shard(0, "--sessions", 400, host=Here(), heartbeat_ms=NEVER_MS)  # 164 connections without a session
    watch = zmtp.Peer(shard.address, GOOD).hello()

    def half(source):
        peer = zmtp.Peer(shard.address, source, greets=False)
        peer.send(zmtp.greeting(b"NULL"))
        return peer
    with closing([half(BAD) for _ in range(200)]) as bad, closing([half(GOOD) for _ in range(20)]) as good:
        wait_until(lambda: watch.stats()["pending_closed"] >= 20, "more come than there is room for")
        before = watch.stats()["pending_closed"]
        bad += [half(BAD) for _ in range(600)]
        wait_until(lambda: watch.stats()["pending_closed"] - before >= 500, "they cost each other their places")
        for peer in good:
            peer.send(zmtp.READY)
            peer.hello()
    watch.close()
    equal(shard.end(), 0, shard.tail())


def log_has(shard, pattern):
    return any(re.search(pattern, line) for line in shard.lines["err"])


def has_ended(peer):
    """Of a socket that does not block: whether the shard has closed it."""
    try:
        while peer.recv(1 << 16):
            pass
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


def test_few_files_are_enough_for_newcomers_and_new_keys():
    with ring() as keys:
        shard = Process("ttserver", "--listen", "127.0.0.1:0", "--memory", "32M", "--keys", keys, files=(120, 120))
        address = shard.wait_line(r"^ready (\S+)$")[0][1]
        host, port = address.rsplit(":", 1)

        def pending():
            peer = zmtp.socket.socket()
            peer.setblocking(False)
            peer.connect_ex((host, int(port)))
            return peer
        with closing([pending() for _ in range(200)]) as peers:
            wait_until(lambda: open_files(shard) >= 100 or sum(map(has_ended, peers)) >= 100,
                       "a shard full of connections")
            hers = os.path.join(os.path.dirname(keys), "hers")
            equal(run("abdada", "keygen", hers, "--name", "anna", "--role", "monitor").status, 0)
            os.link(os.path.join(hers, "anna.public"), os.path.join(keys, "allowed/anna.public"))
            os.unlink(os.path.join(keys, "allowed/worker.public"))
            shard.send_signal(signal.SIGHUP)
            wait_until(lambda: log_has(shard, "SIGHUP: 4 users may connect"), "the keys are read again")
            peers += [pending() for _ in range(100)]
            wait_until(lambda: run("ttserver", "--check", address, "--keys", keys).status == 0, "a new client gets in")
        equal(shard.end(), 0, shard.tail())


def test_few_files_leave_places_for_other_users():
    with ring() as keys:
        shard = Process("ttserver", "--listen", "127.0.0.1:0", "--memory", "32M", "--keys", keys, "--heartbeat", NEVER_MS,
                        files=(120, 120))
        address = shard.wait_line(r"^ready (\S+)$")[0][1]
        with closing([]) as peers:
            for _ in range(120):
                peers.append(client.Client(address, keys=client.keys_of(keys, "worker")))
                try:
                    peers[-1].hello(role=client.WORKER)
                except client.Refused:
                    break
            other = client.Client(address, keys=client.keys_of(keys, "administrator"))
            peers.append(other.hello())
            check(other.stats()["sessions_over_quota"] > 0, other.stats())
        equal(shard.end(), 0, shard.tail())


def test_a_key_taken_back_ends_its_connections_whatever_else_is_there():
    with ring() as keys:
        equal(run("abdada", "keygen", keys, "--name", "anna", "--role", "worker").status, 0)
        shard = Shard(keys=keys, heartbeat_ms=NEVER_MS)
        anna = client.Client(shard.address, keys=client.keys_of(keys, "anna"))
        ends = anna.socket.get_monitor_socket(zmq.EVENT_DISCONNECTED)
        other = client.Client(shard.address, keys=client.keys_of(keys, "administrator"))
        anna.hello(role=client.WORKER)
        other.hello()
        equal(len(other.members()), 2)
        os.unlink(os.path.join(keys, "allowed/anna.public"))
        with open(os.path.join(keys, "allowed/otto.public"), "w", encoding="ascii"):
            pass
        begin = time.monotonic()
        shard.send_signal(signal.SIGHUP)
        wait_until(lambda: ends.poll(0), "her connection ends")
        promised("the connection of a removed key ends", time.monotonic() - begin, 1)
        wait_until(lambda: log_has(shard, r"otto\.public"), "the bad file in the log")
        equal([m["name"] for m in other.members()], ["python"])
        check(other.members()[0]["session"] == other.session, other.members())
        for name in "monitor", "worker", "front-end":
            peer = client.Client(shard.address, keys=client.keys_of(keys, name))
            peer.hello(role=client.MONITOR)
            peer.close()
        anna.socket.disable_monitor()
        anna.close()
        other.close()
        equal(shard.end(), 0, shard.tail())


def test_no_directory_of_keys_is_wrong_use_and_no_variable_is_none():
    port = free_port()
    for command in (["ttserver", "--listen", f"127.0.0.1:{port}"], ["ttworker", "--servers", f"127.0.0.1:{port}"],
                    ["abdada", "analyse", "--servers", f"127.0.0.1:{port}", "--depth", "2", "startpos"]):
        process = Process(*command, "--keys", "")
        process.close_input()
        equal(process.wait(), 2, command, process.tail())
    with environment(ABDADA_KEYS=""):
        shard = Shard()
        equal(run("ttserver", "--check", shard.address).status, 0)
        equal(shard.end(), 0)


@needs_users
def test_over_the_budget_the_largest_user_goes():
    """One user has many connections with half a message each; another's only one holds more than any of them."""
    shard = Shard(0, "--sessions", 4096, host=Here(), heartbeat_ms=NEVER_MS)
    good, watch = (zmtp.Peer(shard.address, GOOD).hello() for _ in range(2))
    ask = wide_ask(1000)
    good.send(zmtp.frame(ask)[:-1000])
    half = zmtp.header(60000) + bytes(47000)
    with closing([]) as peers:
        def closed():
            peer = zmtp.Peer(shard.address, BAD).hello()
            peers.append(peer)
            peer.try_send(half)
            return watch.stats()["slow_closed"] > 0
        wait_until(closed, "somebody is closed who holds too much")
        print(f"# {len(peers)} connections of half a message")
        for _ in range(20):
            closed()
        good.send(ask[-1000:])
        equal(len(good.wait(client.RETRIEVE_ANSWER)[2]), 1000)
        check(watch.stats()["slow_closed"] < len(peers) / 2, watch.stats()["slow_closed"], "closed of", len(peers))
    for peer in good, watch:
        peer.heartbeat()
        peer.close()
    equal(shard.end(), 0, shard.tail())


@needs_users
def test_a_front_end_that_calls_many_workers_delays_nobody():
    """Each post is sent on to a thousand workers: few are taken, and each of these reaches all."""
    shard = Shard(0, "--sessions", 4096, host=Here(), heartbeat_ms=NEVER_MS)
    with closing([zmtp.Peer(shard.address, BAD).hello(client.WORKER) for _ in range(1000)]) as workers:
        front, good = zmtp.Peer(shard.address, BAD).hello(client.FRONT), zmtp.Peer(shard.address, GOOD).hello()
        jobs, asks = set(range(1, 61)), range(20)
        shard.stop()
        front.send(b"".join(zmtp.message(client.JOB_POST, job, *CHESS) + zmtp.message(client.JOB_STOP, job, 0)
                            for job in jobs))
        good.send(b"".join(zmtp.message(client.RETRIEVE_ASK, i, [[500 * i + k, 3, -5, 5, 0, 0] for k in range(500)])
                           for i in asks))
        shard.send_signal(signal.SIGCONT)
        equal([good.wait(client.RETRIEVE_ANSWER)[1] for _ in asks], list(asks))
        while (figures := shard.stats())["job_posts"] + figures["posts_too_fast"] < len(jobs):
            good.heartbeat()
        taken = figures["job_posts"]
        check(0 < taken < len(jobs) / 3, taken, "posts taken")
        refused = {front.wait(client.ERROR)[2] for _ in range(len(jobs) - taken)}
        called = [(kind, job) for job in sorted(jobs - refused) for kind in (client.JOB, client.JOB_STOP)]
        for worker in workers:
            equal([tuple(worker.wait(client.JOB, client.JOB_STOP)[:2]) for _ in called], called, "what a worker is told")
        good.heartbeat()
        for peer in front, good:
            peer.close()
    equal(shard.end(), 0, shard.tail())


def test_a_client_that_gets_its_own_hello_connects_again():
    """TCP may connect a client to itself where its shard is down: here each connection sends back what it gets."""
    mirror = zmq.Context.instance().socket(zmq.ROUTER)
    try:
        port = mirror.bind_to_random_port("tcp://127.0.0.1")
        worker = Process("ttworker", "--servers", f"127.0.0.1:{port}", "--threads", "1", "--private", "--hash", "8")
        connections = set()

        def mirrored():
            while mirror.poll(0):
                parts = mirror.recv_multipart()
                connections.add(parts[0])
                mirror.send_multipart(parts)
            return len(connections) >= 4
        wait_until(mirrored, "a fourth connection")
        equal(worker.end(), 0, worker.tail())
    finally:
        mirror.close(0)


if __name__ == "__main__":
    print(f"# users: {reason or 'addresses'}")
    sys.exit(main([value for name, value in list(globals().items()) if name.startswith("test_")], unstable=STARVED))
