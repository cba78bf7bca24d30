#!/usr/bin/python3
"""Processes that die, stall, come late and return; graceful ends; bounds; `abdada top`. TAP.

    BIN=build/dev/bin QUICK=1 tests/system/test_failure.py

Times that are promised are printed as measured, and may be exceeded SLACK-fold (cluster.py).
"""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import threading
import time

import client
from cluster import (SLOW_HEARTBEAT_MS, STARVED, PATIENT, QUICK, SHORT, ROOT, SANITIZED, right, scratch, Cluster, Failure, Process,
                     Shard, Worker, answers, ask, check, equal, free_port, main, path_of, promised, run, start, top, wait_until)
from test_cluster import LONG, STRICT, check_long, long_search, start_long, wait_for_help

BRIEF = 0.2
ENDLESS = ["--depth", 60, "--strict"]


def serves_a_search(shard, workers, asks=0):
    """Whether the shard has been asked by a search and so many workers say they are at it."""
    def is_served():
        figures = shard.stats()
        return (figures["jobs"] >= 1 and figures["asks"] > asks and
                len(shard.working()) >= workers)
    return is_served


def stop_endless(front):
    front.send_signal(signal.SIGINT)
    found, = answers(front)
    check(found["depth"] >= 1 and found["stopped"], found)
    return found


# ---- of any age ----

def a_worker_older_than_every_shard_takes_part():
    port = free_port()
    worker = Worker(f"127.0.0.1:{port}")
    front = start("--servers", f"127.0.0.1:{port}", *ENDLESS)
    front.wait_line("depth", "err")  # it searches, alone
    shard = Shard(port)
    begin = time.monotonic()
    wait_until(serves_a_search(shard, 1), "worker and front-end to use the shard")
    promised("worker and front-end use their first shard", time.monotonic() - begin, 2)
    stop_endless(front)
    check(worker.running())


def a_worker_that_joins_takes_part():
    with Cluster(workers=1) as cluster:
        front = cluster.start(*ENDLESS)
        cluster.wait_searching(front)
        begin = time.monotonic()
        cluster.workers.append(Worker(cluster.servers, name="late"))
        wait_until(lambda: "late" in cluster.shards[0].working(), "the worker to search")
        promised("a new worker searches, from its start", time.monotonic() - begin, 2)
        front.wait_line("workers 2 ", "err")
        equal(stop_endless(front)["workers"], 2)


def a_shard_that_is_added_is_used():
    port = free_port()
    shard = Shard()
    servers = f"{shard.address},127.0.0.1:{port}"
    Worker(servers)
    front = start("--servers", servers, *ENDLESS)
    wait_until(serves_a_search(shard, 1), "the search")
    added = Shard(port)
    begin = time.monotonic()
    wait_until(serves_a_search(added, 1), "the new shard to be used")
    promised("a shard that is added is used", time.monotonic() - begin, 2)
    front.wait_line("shards 2/2", "err")
    stop_endless(front)


def a_shard_that_restarts_is_used_again():
    with Cluster() as cluster:
        front = cluster.start(*ENDLESS)
        cluster.wait_searching(front)
        boot = cluster.shards[0].query(lambda c: c.boot)
        cluster.shards[0].kill()
        cluster.shards[0] = Shard(cluster.shards[0].port)
        begin = time.monotonic()
        wait_until(serves_a_search(cluster.shards[0], 2), "the shard to be used again")
        promised("a shard that restarted is used again", time.monotonic() - begin, 2)
        check(cluster.shards[0].query(lambda c: c.boot) != boot)
        stop_endless(front)


def restarts_do_not_move_the_strict_score():
    """At least one restart falls into the search: the new shard serves it. If none does, a longer search follows."""
    for times in (1, 2, 4, 8):
        with Cluster() as cluster:
            front = start_long(cluster, times * (1 if SHORT else 3) * LONG)
            used = 0
            for index in (0, 1) if SHORT else (0, 1, 0):
                cluster.shards[index].kill()
                cluster.shards[index] = Shard(cluster.shards[index].port)
                serves = serves_a_search(cluster.shards[index], 1)
                used += wait_until(lambda: "used" if serves() else "over" if not front.running() else None,
                                   "the shard to be used") == "used"
            check_long(front)
        if used > 0:
            break
    print(f"# {used} restarted shards served the search, {times} times as long as at first")
    check(used > 0, "no restart fell into the search")


# ---- stalls ----

def a_shard_that_stalled_is_used_again():
    with Cluster() as cluster:
        front = cluster.start(*ENDLESS)
        cluster.wait_searching(front)
        stalled = cluster.shards[0]
        stalled.stop()
        front.wait_line(r"shards 1/2", "err", begin=len(front.lines["err"]))
        stalled.send_signal(signal.SIGCONT)
        begin = time.monotonic()
        asks = stalled.stats()["asks"]
        wait_until(serves_a_search(stalled, 2, asks), "the shard to be used again")
        promised("a shard that stalled is used again", time.monotonic() - begin, 2)
        stop_endless(front)


def a_worker_that_stalled_takes_part_again():
    with Cluster() as cluster:
        front = cluster.start(*ENDLESS)
        cluster.wait_searching(front)
        watch, stalled = cluster.shards[0], cluster.workers[0]
        wait_until(lambda: len(watch.working()) == 2, "both workers")
        stalled.stop()
        wait_until(lambda: watch.stats()["workers"] == 1, "its session to end")
        stalled.send_signal(signal.SIGCONT)
        begin = time.monotonic()
        wait_until(lambda: set(watch.working()) == {"w0", "w1"}, "the worker to search again")
        promised("a worker that stalled searches again", time.monotonic() - begin, 2)
        stop_endless(front)


def a_front_end_that_stalled_gets_its_workers_back():
    with Cluster() as cluster:
        front = start_long(cluster, LONG)
        front.stop()
        for shard in cluster.shards:
            wait_until(lambda: shard.stats()["jobs"] == 0, "the job to expire")
        front.send_signal(signal.SIGCONT)
        check_long(front)


def late_answers_do_no_harm():
    """Stalls too short for a session to end: every answer comes, late."""
    with Cluster() as cluster:
        front = start_long(cluster, LONG)
        for turn in range(6):
            stalled, other = cluster.shards[turn % 2], cluster.shards[1 - turn % 2]
            stalled.stop()
            asks = other.stats()["asks"]
            wait_until(lambda: not front.running() or other.stats()["asks"] > asks + 50,
                       "the other shard to be asked")
            stalled.send_signal(signal.SIGCONT)
        check_long(front)
        check(all(worker.running() for worker in cluster.workers))


# ---- several front-ends ----

def front_ends_share_the_workers_evenly():
    position, depth, score = long_search(BRIEF)
    with Cluster(workers=4) as cluster:
        first = cluster.start(*ENDLESS)
        wait_until(lambda: len(cluster.shards[0].working()) == 4, "all to search the first job")
        mine, = set(cluster.shards[0].working().values())
        begin = time.monotonic()
        second = cluster.start(position, "--depth", 60, *STRICT)

        def shares():
            jobs = list(cluster.shards[0].working().values())
            return sorted(map(jobs.count, set(jobs))) == [2, 2]

        def top_shows_shares():
            return [job["workers"] for job in top(cluster.servers)[1]["job"]] == [2, 2]
        wait_until(shares, "two workers for each of two jobs")
        promised("two jobs have two workers each", time.monotonic() - begin, 2)
        wait_until(top_shows_shares, "top to show so")
        third, = cluster.ask(position, "--depth", depth, *STRICT)  # a short one beside them
        right(third["score"], score)
        wait_until(shares, "two for each again")
        begin = time.monotonic()
        second.send_signal(signal.SIGINT)
        wait_until(lambda: list(cluster.shards[0].working().values()).count(mine) == 4,
                   "all to return to the first job")
        promised("all four return to the job that is left", time.monotonic() - begin, 2)
        answers(second)
        stop_endless(first)


def front_ends_that_share_get_their_own_strict_answers():
    position, depth, score = long_search(LONG)
    other, other_depth, other_score = long_search(BRIEF)
    with Cluster(workers=3) as cluster:
        long = cluster.start(position, "--depth", depth, *STRICT)
        for _ in range(2 if SHORT else 4):
            found, = cluster.ask(other, "--depth", other_depth, *STRICT)
            right((found["depth"], found["score"]), (other_depth, other_score))
        found, = answers(long)
        right((found["depth"], found["score"], found["stopped"]), (depth, score, False))
        for shard in cluster.shards:
            wait_until(lambda: shard.stats()["inflight_entries"] == 0, "the in-flight entries to end")


def threads_of_a_worker_are_shared_too():
    with Cluster(workers=0) as cluster:
        cluster.workers.append(Worker(cluster.servers, threads=2, name="pair"))
        fronts = [cluster.start(*ENDLESS) for _ in range(2)]
        def each_has_one():
            working = cluster.shards[1].working()
            return set(working) == {"pair.0", "pair.1"} and len(set(working.values())) == 2
        wait_until(each_has_one, "a thread for each job")
        for front in fronts:
            stop_endless(front)


# ---- ends ----

def a_killed_front_end_frees_the_workers():
    with Cluster(options=["--heartbeat", 1000]) as cluster:  # the default
        front = cluster.start(*ENDLESS)
        cluster.wait_searching(front)
        wait_until(lambda: len(cluster.shards[0].working()) == 2, "both workers")
        begin = time.monotonic()
        front.kill()
        for shard in cluster.shards:
            wait_until(lambda: shard.stats()["jobs"] == 0, "the job to end")
            wait_until(lambda: not shard.working() and shard.stats()["inflight_entries"] == 0,
                       "the workers to be idle")
        promised("workers of a killed front-end are idle", time.monotonic() - begin, 3)
        wait_for_help(cluster, 2)


def a_killed_worker_leaves_its_positions_soon():
    with Cluster(shards=1, workers=1, options=["--heartbeat", 1000]) as cluster:
        front = cluster.start(*ENDLESS)
        cluster.wait_searching(front)
        begin = time.monotonic()
        cluster.workers[0].kill()
        wait_until(lambda: cluster.shards[0].stats()["workers"] == 0, "its session to end")
        promised("the session of a killed worker ends", time.monotonic() - begin, 3.5)
        stop_endless(front)


# A heartbeat so slow that nothing can expire during a test.
NEVER = ["--heartbeat", 60000, "--inflight-age-max", 3600000]


def nothing_is_left(shard):
    """Empty sets, and not because anything expired."""
    figures = shard.stats()
    equal((figures["sessions_expired"], figures["inflight_expired"]), (0, 0))
    return figures["sessions"] == 1 and figures["inflight_entries"] == figures["jobs"] == 0


class PostedByHand:
    """A job without a front-end that searches: what is in flight is the workers' alone."""

    def __init__(self, cluster):
        spies = [client.Client(s.address).hello(role=client.WORKER) for s in cluster.shards]
        front = cluster.start(*ENDLESS)
        job = spies[0].wait_pushed(client.JOB)
        equal(answers_after(front, signal.SIGTERM)["stopped"], True)
        for spy in spies:
            spy.bye()
            spy.close()
        self.fronts = [client.Client(s.address).hello(role=client.FRONT, instance=7)
                       for s in cluster.shards]
        job[1] = 77
        for front in self.fronts:
            front.send(client.JOB_POST, *job[1:])

    def end(self):
        for front in self.fronts:
            front.bye()
            front.close()


def answers_after(front, number):
    front.send_signal(number)
    found, = answers(front)
    return found


def inflight_entries(cluster):
    """At all shards together: a searcher alone asks little, often for the root only, which one of them owns."""
    return sum(shard.stats()["inflight_entries"] for shard in cluster.shards)


def sigterm_to_workers_ends_what_is_in_flight_at_once():
    with Cluster(options=NEVER) as cluster:
        hand = PostedByHand(cluster)
        wait_until(lambda: inflight_entries(cluster) > 0, "positions in flight")
        for worker in cluster.workers:
            begin = time.monotonic()
            equal(worker.end(signal.SIGTERM), 0)
        for shard in cluster.shards:
            figures = wait_until(lambda: (f := shard.stats())["workers"] == 0 and f, "BYE")
            equal(figures["inflight_entries"], 0)
        promised("empty sets after SIGTERM", time.monotonic() - begin, 1)
        hand.end()
        for shard in cluster.shards:
            wait_until(lambda: nothing_is_left(shard), "nothing")


def sigterm_to_a_front_end_leaves_nothing():
    with Cluster(workers=0, options=NEVER) as cluster:
        for arguments in (["analyse", "--json", "--threads", 2, *ENDLESS], ["uci", "--threads", 2]):
            front = Process("abdada", *arguments, "--servers", cluster.servers)
            if arguments[0] == "uci":
                front.send("position startpos\ngo infinite")
            wait_until(lambda: inflight_entries(cluster) > 0, "positions in flight")
            begin = time.monotonic()
            equal(front.end(signal.SIGTERM), 0, front.tail())
            promised(f"SIGTERM ends abdada {arguments[0]}", time.monotonic() - begin, 1)
            check('"bestmove"' in front.out() or "bestmove " in front.out(), front.tail())
            for shard in cluster.shards:
                wait_until(lambda: nothing_is_left(shard), "nothing")


def a_second_sigterm_ends_at_once():
    with Cluster() as cluster:
        front = cluster.start(*ENDLESS)
        cluster.wait_searching(front)
        uci = Process("abdada", "uci", "--servers", cluster.servers)
        uci.send("position startpos\ngo infinite")
        uci.wait_line("^info depth 2 ")
        for process in (front, uci, cluster.workers[0], cluster.shards[0]):
            begin = time.monotonic()
            process.send_signal(signal.SIGTERM)
            process.send_signal(signal.SIGTERM)
            status = process.wait()
            # Either may be taken first, or the first end be quicker than the second signal.
            check(status in (0, 128 + signal.SIGTERM, -signal.SIGTERM), process.name, status)
            promised(f"two SIGTERMs end {process.name}", time.monotonic() - begin, 1)


# ---- bounds: what happens at each, and where it is counted ----

def bound(shard, name):
    """The figure, as `abdada top` shows it."""
    def read():  # on a busy machine the shard may be taken for down
        figures = top(shard.address)[1]["shard"][0]
        return name in figures and (figures[name],)
    return wait_until(read, "figures")[0]


def sessions_are_bounded():
    shard = Shard(0, "--sessions", 3, *NEVER)
    held = [client.Client(shard.address).hello() for _ in range(2)]
    last = client.Client(shard.address).hello()
    refused = client.Client(shard.address)
    try:
        refused.hello()
        raise Failure("a fourth session")
    except client.Refused as error:
        equal(error.code, 6)
    last.bye()
    wait_until(lambda: held[0].stats()["sessions"] == 2, "room for another session")
    equal((bound(shard, "sessions_refused"), bound(shard, "sessions_max")), (1, 3))
    for one in held:
        one.heartbeat()


def jobs_are_bounded():
    with Cluster(shards=1, workers=1, options=["--jobs", 1, *NEVER]) as cluster:
        first = cluster.start(*ENDLESS)
        cluster.wait_searching(first)
        position, depth, score = long_search(BRIEF)
        found, = cluster.ask(position, "--depth", depth, *STRICT)  # without help it answers all the same
        right(found["score"], score)
        equal(found["workers"], 0)
        check(bound(cluster.shards[0], "jobs_refused") >= 1)
        equal(bound(cluster.shards[0], "jobs_max"), 1)
        first.wait_line("workers 1 ", "err")
        equal(stop_endless(first)["workers"], 1)


def a_refused_job_is_taken_when_there_is_room():
    with Cluster(shards=1, workers=1, options=["--jobs", 1], heartbeat_ms=SLOW_HEARTBEAT_MS) as cluster:
        first = cluster.start(*ENDLESS)
        shard = cluster.shards[0]
        first_job, = wait_until(shard.working, "help for the first").values()
        second = cluster.start(*ENDLESS)
        wait_until(lambda: bound(shard, "jobs_refused") >= 1, "the refusal")
        stop_endless(first)
        wait_until(lambda: set(shard.working().values()) - {first_job}, "help for the second")
        reports = shard.stats()["job_reports"] + 1  # one may have been on its way
        wait_until(lambda: shard.stats()["job_reports"] > reports, "reports")
        second.wait_line(f"^abdada analyse: shard {shard.address} has taken the job$", "err")
        second.wait_line("workers 1 ", "err")
        equal(stop_endless(second)["workers"], 1)


def workers_get_more_jobs_than_they_remember():
    many = range(1 << 30, (1 << 30) + 100)  # no request has such a number: an ERROR names a job by its low bits
    with Cluster(shards=1, workers=0, options=["--jobs", 800, *NEVER]) as cluster:
        hand = PostedByHand(cluster)
        poster, = hand.fronts
        fields = cluster.shards[0].query(lambda c: c.jobs_open())[0]
        spy = client.Client(cluster.shards[0].address).hello(role=client.WORKER)
        job = spy.wait_pushed(client.JOB)
        spy.bye()
        job[5] = 1  # another evaluation: refused by every worker, so never begun

        def are_open(numbers):  # what was refused, as too fast, is posted again
            for number in numbers:
                job[1] = number
                poster.send(client.JOB_POST, *job[1:])
            poster.heartbeat()
            return set(numbers) <= {row["job"] for row in cluster.shards[0].query(lambda c: c.jobs_open())}
        wait_until(lambda: are_open(many), "the jobs to be open")
        poster.send(client.JOB_STOP, fields["job"], 0)
        poster.heartbeat()
        cluster.workers.append(Worker(cluster.servers, name="w"))
        cluster.workers[0].wait_line("job refused", "err")
        job[5] = spy_evaluation(cluster)
        wait_until(lambda: are_open([1000]), "the last job to be open")
        for number in many:  # room comes as others end
            poster.send(client.JOB_STOP, number, 0)
        wait_until(lambda: cluster.shards[0].working() == {"w": 1000}, "the job to be searched")
        hand.end()


def spy_evaluation(cluster):
    """What this build calls its chess."""
    spy = client.Client(cluster.shards[0].address).hello(role=client.WORKER)
    front = cluster.start(*ENDLESS)
    while True:
        job = spy.wait_pushed(client.JOB)
        if job[1] > 1 << 31:
            break
    cluster.wait_searching(front, asks=1)
    stop_endless(front)
    spy.bye()
    return job[5]


def batches_and_messages_are_bounded():
    shard = Shard(0, *NEVER)
    peer = client.Client(shard.address).hello()
    try:
        peer.ask_all([[i, 4, -100, 100, 0, 0] for i in range(1025)])
        raise Failure("1,025 operations")
    except client.Refused as error:
        equal(error.code, 1)
    peer.send_bytes(b"\x93" + bytes(65536))
    equal(peer.wait(client.ERROR)[1], 1)
    peer.send_bytes(b"two", b"frames")
    equal(peer.wait(client.ERROR)[1], 1)
    figures = top(shard.address)[1]["shard"][0]
    equal((figures["oversized"], figures["multipart"], figures["malformed"]), (1, 1, 3))
    peer.heartbeat()


def inflight_entries_are_bounded():
    shard = Shard(0, "--memory", "1M", *NEVER)
    peers = [client.Client(shard.address).hello() for _ in range(3)]
    figures = peers[0].stats()
    most, quota = figures["inflight_max"], figures["session_inflight_max"]
    check(quota < most, "one client cannot have all", quota, most)

    def ask_for_too_many(peer):
        for first in range(0, quota + 1000, 1000):
            verdicts = peer.ask_all([[key * 7919, 4, -100, 100, 0, 0]
                                     for key in range(first, first + 1000)])
            equal({v[0] for v in verdicts}, {client.OPEN})
        return top(shard.address)[1]["shard"][0]
    figures = ask_for_too_many(peers[0])
    equal((figures["inflight_entries"], figures["inflight_refused"]), (quota, 0))
    check(figures["inflight_over_quota"] > 0 and figures["session_inflight_max"] == quota, figures)
    for peer in peers[1:]:
        figures = ask_for_too_many(peer)
    equal(figures["inflight_entries"], most)
    check(figures["inflight_refused"] > 0 and figures["inflight_max"] == most, figures)
    for peer in peers:
        peer.bye()
    wait_until(lambda: shard.stats()["inflight_entries"] == 0, "empty sets")


def a_client_that_never_reads_costs_no_more_than_its_queue():
    shard = Shard(0, *NEVER)
    deaf, watch = client.Client(shard.address), client.Client(shard.address).hello()
    deaf.socket.rcvhwm = 1
    deaf.socket.disconnect("tcp://" + shard.address)
    deaf.socket.connect("tcp://" + shard.address)
    deaf.hello()
    peeks = [[key, 4] for key in range(64)]
    before, sent = shard.resident_bytes(), 0

    def is_full():
        """The shard has stopped to read: what the systems on both sides keep, megabytes or more, is full."""
        nonlocal sent
        served = watch.stats()["batches"]
        while deaf.socket.poll(50, client.zmq.POLLOUT):
            deaf.send(client.PEEK, sent, peeks)
            sent += 1
        return watch.stats()["batches"] == served
    wait_until(is_full, "the bound")
    served = watch.stats()["batches"]
    print(f"# {served} of {sent} messages served, grown by {(shard.resident_bytes() - before) >> 10} KiB")
    check(served < sent, served, "served of", sent)
    if not SANITIZED:  # what was freed stays with the sanitizer for a while
        check(shard.resident_bytes() - before < 8 << 20, "memory grew")
    check(watch.stats()["dropped"] == 0)


# ---- one table for a host ----

def host_table(process):
    """The file of the table that it shares with other processes, or None."""
    return next(iter(process.host_tables()), None)


def processes_of_a_host_share_a_table():
    position, depth, score = long_search(BRIEF)
    with Cluster(workers=2) as cluster:
        path = host_table(cluster.workers[0])
        if path is None:
            return "/dev/shm gives no room"
        room = os.statvfs("/dev/shm")
        if room.f_bavail * room.f_frsize < 80 << 20:
            return "/dev/shm has no room for two tables"
        equal(host_table(cluster.workers[1]), path)
        front = cluster.start(*ENDLESS)
        cluster.wait_searching(front)
        equal(host_table(front), path)
        larger = cluster.start("--hash", 65, *ENDLESS)
        larger.wait_line("depth", "err")
        check(host_table(larger) not in (None, path), "another size is another table")
        alone = cluster.start("--private", *ENDLESS)
        alone.wait_line("depth", "err")
        equal(host_table(alone), None)
        for process in (front, larger, alone):
            stop_endless(process)
        wait_for_help(cluster, 2)
        cluster.workers[0].kill()
        found, = cluster.ask(position, "--depth", depth, *STRICT)
        right(found["score"], score)
        check(os.path.exists(path), "a process still uses it")
        equal(cluster.workers[1].end(), 0)
        check(not os.path.exists(path), "the last process removes it")


def tables_of_killed_processes_are_removed():
    with Cluster(workers=2) as cluster:
        path = host_table(cluster.workers[0])
        if path is None:
            return "/dev/shm gives no room"
        for worker in cluster.workers:
            worker.kill()
        Worker(f"127.0.0.1:{free_port()}")
        check(not os.path.exists(path), "the next process removes it")


def private_workers_exchange_results():
    """They share no table: results below the remote depth limit go from one to the others by SHARE messages."""
    position, depth, score = long_search(LONG)
    with Cluster(shards=1, workers=0) as cluster:
        cluster.workers = [Worker(cluster.servers, private=True) for _ in range(2)]
        equal([host_table(worker) for worker in cluster.workers], [None, None])
        found, = cluster.ask(position, "--depth", depth, "--private", *STRICT)
        right(found["score"], score)

        def exchanged():  # on a busy machine one search may be over before both take part
            before = cluster.shards[0].stats()["shared"]
            ask = cluster.ask(position, "--depth", depth, "--private", *STRICT)
            right(ask[0]["score"], score)
            return ask[0]["workers"] == 2 and cluster.shards[0].stats()["shared"] - before > 2000
        wait_until(exchanged, "both workers in one search, and more than the first few that find out whether there are peers")


# ---- top ----

def top_shows_a_cluster():
    with Cluster(workers=2, options=NEVER) as cluster:
        front = cluster.start(*ENDLESS)
        cluster.wait_searching(front)
        wait_until(lambda: all(len(s.working()) == 2 for s in cluster.shards), "both workers")
        # On a busy machine a shard may answer too late for one view.
        # A worker's first report may be on its way still.
        found = wait_until(lambda: (lambda status, seen: status == 0 and all(w["job"] for w in seen["worker"]) and seen)
                           (*top(cluster.servers)), "top sees both shards, and what the workers do")
        equal([s["address"] for s in found["shard"]], cluster.servers.split(","))
        for shard in found["shard"]:
            equal((shard["state"], shard["workers"], shard["fronts"], shard["jobs"]),
                  ("up", 2, 1, 1))
            check(shard["asks"] > 0 and shard["memory_bytes"] >= 32 << 20, shard)
            for name in """boot rtt_us uptime_ms ops_per_s inflight_entries inflight_max
                    results_permille sessions_refused jobs_refused batches_refused oversized
                    inflight_refused queue_full multipart malformed inflight_expired
                    session_inflight_max inflight_over_quota ignored""".split():
                check(name in shard, name, "is missing")
        job, = found["job"]
        equal([(w["name"], w["job"], w["shards"]) for w in found["worker"]],
              [("w0", job["job"], 2), ("w1", job["job"], 2)])
        equal((job["workers"], job["shards"], len(found["front"])), (2, 2, 1))
        def at_work():
            _, seen = top(cluster.servers)
            rows = seen["job"] + seen["worker"] + seen["front"]
            is_there = rows and all(row["nodes"] and row["bytes"] for row in rows) and len(seen["front"]) == 1
            return seen if is_there and seen["front"][0]["nodes"] < seen["job"][0]["nodes"] else None
        working = wait_until(at_work, "reports of the front-end and of both workers")
        own, = working["front"]
        equal(own["job"], job["job"])
        wait_until(lambda: all(row["nodes_per_s"] > 0 for row in top(cluster.servers)[1]["front"]), "its nodes/s")
        for row in working["job"] + working["worker"] + working["total"]:
            in_vain = row["duplicated_nodes"] + row["abandoned_nodes"]
            check(abs(row["overhead_estimate"] - in_vain / (row["nodes"] - in_vain)) < 1e-6, row)
            check(abs(row["duplicated"] - row["duplicated_nodes"] / row["nodes"]) < 1e-6, row)
            check(row["waiting"] >= 0 and row["bytes_per_s"] >= 0, row)
        equal([working["total"][0][name] for name in ("nodes", "bytes")], [working["job"][0][name] for name in ("nodes", "bytes")])
        wait_until(lambda: top(cluster.servers)[1]["total"][0]["bytes_per_s"] > 0, "bytes/s")
        total, = found["total"]
        equal((total["shards"], total["shards_up"], total["workers"], total["jobs"]), (2, 2, 2, 1))
        check(any(shard["ops_per_s"] > 0 for shard in found["shard"]), found["shard"])
        def read():
            text = run("abdada", "top", "--once", "--servers", cluster.servers, *PATIENT)
            return text.status == 0 and text
        text = wait_until(read, "top sees both shards")
        equal(text.err(), "")
        check("w0" in text.out() and job["job"] in text.out(), text.out())
        check(re.search(r"^  overhead >=\d+\.\d%  duplicated \d+\.\d%  waiting \d+\.\d%  \S+ bytes/s$", text.out(), re.M), text.out())
        cluster.shards[1].kill()
        def states():
            status, found = top(cluster.servers, "--wait", 1000)
            return status, [s["state"] for s in found["shard"]]
        wait_until(lambda: states() == (1, ["up", "down"]), "top sees that one is dead")
        down = f"! 1 of 2 shards down; start them, or leave them out of --servers: {cluster.shards[1].address}"
        wait_until(lambda: down in run("abdada", "top", "--once", "--servers", cluster.servers).lines["out"], down)
        cluster.shards[0].kill()
        equal(states(), (1, ["down", "down"]))
        front.kill()


def top_prints_no_control_characters_of_peers():
    shard = Shard(0, *NEVER)
    worker = client.Client(shard.address).hello(role=client.WORKER, name='\x1b[2J"\\\n\u20ac{}')
    found = top(shard.address)[1]
    equal([w["name"] for w in found["worker"]], ['?[2J"\\????{}'])
    text = run("abdada", "top", "--once", "--servers", shard.address, *PATIENT).out()
    check("\x1b" not in text and '?[2J"' in text, text)
    worker.bye()


def top_shows_as_many_versions_as_it_has_room_for():
    """A peer may say any version, and there may be more of them than top keeps."""
    shard = Shard(0, *NEVER)
    peers = [client.Client(shard.address) for _ in range(80)]
    for i, peer in enumerate(peers):
        peer.call(client.HELLO, client.WELCOME, client.CLIENT, 0, 0, i + 1, f"c{i}", 0, client.VERSION, client.VERSION, f"9.{i}")
    text = run("abdada", "top", "--once", "--servers", shard.address, *PATIENT)
    equal((text.status, text.err()), (0, ""))
    check(60 <= len(re.findall(r"^9\.\d+ +protocol", text.out(), re.M)) < 80, text.out())
    for peer in peers:
        peer.close()


class Screen:
    """A live view on a terminal of its own."""

    def __init__(self, *arguments, rows=20, columns=60, term="xterm"):
        self.leader, self.terminal = pty.openpty()
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.before = termios.tcgetattr(self.terminal)
        self.seen = b""
        self.popen = subprocess.Popen([path_of("abdada"), "top", *arguments], stdin=self.terminal,  # a job of its own
                                      stdout=self.terminal, stderr=self.terminal, env={**os.environ, "TERM": term},
                                      preexec_fn=os.setpgrp)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.popen.kill()
        self.popen.wait()
        os.close(self.leader)
        os.close(self.terminal)

    def read_until(self, condition, what):
        def read():
            if select.select([self.leader], [], [], 0.1)[0]:
                self.seen += os.read(self.leader, 4096)
            return condition(self.seen)
        wait_until(read, what)

    def type(self, text):
        os.write(self.leader, text)


def top_ends_with_q_and_gives_the_terminal_back():
    with Cluster(shards=1, workers=1) as cluster:
        for how in ("q", "interrupt"):
            with Screen("--servers", cluster.servers) as screen:
                screen.read_until(lambda seen: seen.count(b"shards 1/1") >= 2 and b"w0" in seen, "two views")
                check(b"\x1b[?1049h" in screen.seen, screen.seen)
                if how == "q":
                    screen.type(b"q")
                else:
                    screen.popen.send_signal(signal.SIGINT)
                screen.read_until(lambda seen: b"\x1b[?1049l" in seen, "the terminal back")
                equal(screen.popen.wait(30), 0)
                equal(termios.tcgetattr(screen.terminal), screen.before)
                view = screen.seen.split(b"\x1b[H")[1].split(b"\x1b[J")[0]
                rows = [row.strip() for row in view.split(b"\x1b[K")]
                check(len(rows) <= 21 and max(map(len, rows)) <= 60, rows)


def top_with_json_leaves_the_screen_alone():
    with Cluster(shards=1, workers=0) as cluster, Screen("--servers", cluster.servers, "--json") as screen:
        screen.read_until(lambda seen: seen.count(b'"kind":"total"') >= 2, "two views")
        screen.type(b"q")
        equal(screen.popen.wait(30), 0)
        check(b"\x1b" not in screen.seen, screen.seen)
        equal(termios.tcgetattr(screen.terminal), screen.before)


def top_in_the_background_leaves_the_terminal_alone():
    leader, terminal = pty.openpty()
    out = os.path.join(scratch("top"), "out")

    def take():
        os.setsid()
        fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
    with Cluster(shards=1, workers=0) as cluster, open(out, "wb") as file:
        top_beside = "import os, subprocess, sys; top = subprocess.Popen(sys.argv[1:], preexec_fn=os.setpgrp); print(top.pid, flush=True, file=sys.stderr); top.wait()"
        shell = subprocess.Popen([sys.executable, "-c", top_beside, path_of("abdada"), "top", "--json", "--servers", cluster.servers],
                                 stdin=terminal, stdout=file, stderr=subprocess.PIPE, preexec_fn=take)
        pid = int(shell.stderr.readline())
        try:
            wait_until(lambda: os.path.getsize(out) > 0, "a view in the file")
        finally:
            os.kill(pid, signal.SIGKILL)
            shell.wait()
            os.close(leader)
            os.close(terminal)


def top_gives_the_terminal_back_while_it_is_stopped():
    with Cluster(shards=1, workers=0) as cluster, Screen("--servers", cluster.servers) as screen:
        screen.read_until(lambda seen: seen.count(b"shards 1/1") >= 1, "a view")
        raw = termios.tcgetattr(screen.terminal)
        check(raw[3] != screen.before[3], "the terminal is taken")
        for number in signal.SIGTSTP, signal.SIGTSTP, signal.SIGSTOP:
            screen.seen = b""
            screen.popen.send_signal(number)
            wait_until(lambda: os.waitpid(screen.popen.pid, os.WUNTRACED | os.WNOHANG)[0], "stopped")
            if number == signal.SIGTSTP:
                screen.read_until(lambda seen: seen.endswith(b"\x1b[?25h\x1b[?1049l"), "the screen and the cursor back")
                equal(termios.tcgetattr(screen.terminal), screen.before)
            termios.tcsetattr(screen.terminal, termios.TCSANOW, screen.before)  # as a shell does
            screen.seen = b""
            screen.popen.send_signal(signal.SIGCONT)
            screen.read_until(lambda seen: b"\x1b[?1049h\x1b[?25l" in seen and b"shards 1/1" in seen, "a view again")
            equal(termios.tcgetattr(screen.terminal), raw)
        screen.type(b"q")
        screen.read_until(lambda seen: seen.endswith(b"\x1b[?1049l"), "the terminal back")
        equal(screen.popen.wait(30), 0)
        equal(termios.tcgetattr(screen.terminal), screen.before)


def a_terminal_without_a_screen_gets_plain_text():
    with Cluster(shards=1, workers=0) as cluster:
        for term in "dumb", "":
            with Screen("--servers", cluster.servers, "--interval", "100", term=term) as screen:
                screen.read_until(lambda seen: seen.count(b"shards 1/1") >= 2, "two views")
                screen.type(b"q")
                equal(screen.popen.wait(30), 0)
                check(b"\x1b" not in screen.seen, screen.seen)


def top_names_only_what_needs_an_action():
    with open(os.path.join(ROOT, "ttserver/core/figures.h"), encoding="utf-8") as file:
        faults = re.findall(r"FAULT\((\w+), \"", file.read())
    with open(os.path.join(ROOT, "docs/reference/top.md"), encoding="utf-8") as file:
        legend = set(re.findall(r"`(\w+)`", file.read()))
    equal([name for name in faults if name not in legend], [], "what to do is said of each")
    shard = Shard(0, *NEVER)
    worker = client.Client(shard.address).hello(role=client.WORKER, name="w")
    worker.send(client.JOB_REPORT, 1, 0, client.SEARCHING, 1, 0, 0, *10 * [1], "", "", "")
    wait_until(lambda: top(shard.address)[1]["shard"][0]["reports_unknown_job"] == 1, "a report on a job that is over")
    text = run("abdada", "top", "--once", "--servers", shard.address, *PATIENT).out()
    check("reports_unknown_job" not in text and not re.search(r"_[a-z]+ \d", text), text)
    worker.send(client.JOB_POST, 1, 0, "chess", "8/8/8/8/8/8/8/8 w", 1, 1, "abdada", 0, 1, 5, 0, 0)
    wait_until(lambda: re.search(rf"^! role_refused 1: .*give it a key of the right role \({re.escape(shard.address)}\)$",
                                 run("abdada", "top", "--once", "--servers", shard.address, *PATIENT).out(), re.M),
               "what only a front-end may do, said")
    worker.bye()


def no_share_of_time_is_more_than_all_of_it():
    """A worker whose report comes late tells of more time than there was between two views. Another one beside it waits
    for nothing: the job's share, and that of all, is their mean."""
    shard = Shard(0, *NEVER)
    front = client.Client(shard.address).hello(role=client.FRONT, instance=7, name="f")
    front.send(client.JOB_POST, 9, 0, "chess", "8/8/8/8/8/8/8/8 w", 1, 1, "abdada", 0, 1, 5, 0, 0)
    worker = client.Client(shard.address).hello(role=client.WORKER, instance=8, name="w.0")
    idle = client.Client(shard.address).hello(role=client.WORKER, instance=9, name="v.0")
    talked, seen = 0, []
    idle.send(client.JOB_REPORT, 9, 0, client.SEARCHING, 1, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, "", "", "")
    wait_until(lambda: len(shard.working()) == 1, "its report")

    def read():
        found = top(shard.address)[1]
        seen.extend(found["worker"] + found["host"] + found["front"] + found["job"] + found["total"])
        return any(row.get("talking", 0) > 0 for row in found["worker"]) and len(found["worker"]) == 2
    stop = threading.Event()

    def report():
        nonlocal talked
        while not stop.wait(0.02):
            talked += 10 ** 7
            worker.send(client.JOB_REPORT, 9, 0, client.SEARCHING, 1, 0, 0, talked, 1, 1, 1, 0, 0, talked, talked, 1, 1, "", "", "")
    reporter = threading.Thread(target=report)
    reporter.start()
    try:
        wait_until(read, "a worker that talks")
    finally:
        stop.set()
        reporter.join()
    equal({row[name] for row in seen if row["kind"] not in ("job", "total") for name in ("talking", "waiting") if name in row}, {0, 1}, seen)
    equal({row["waiting"] for row in seen if row["kind"] in ("job", "total")} - {0}, {0.5}, seen)
    front.bye()
    worker.bye()
    idle.bye()


def what_matters_fits_80_columns():
    name = "[0000:0000:0000:0000:0000:0000:0000:0001]:1"
    with Cluster(shards=2, workers=1) as cluster:
        front = cluster.start(*ENDLESS)
        cluster.wait_searching(front)

        def rows_of(screen):
            view = screen.seen.split(b"\x1b[H")[-2].split(b"\x1b[J")[0].decode()
            return [row.strip("\r\n") for row in view.split("\x1b[K")]

        def numbers(row, head):
            return dict(zip(head.split(), row.split()))
        with Screen("--servers", f"{cluster.servers},{name}", rows=40, columns=80) as screen:
            def shown(seen):
                rows = rows_of(screen) if seen.count(b"\x1b[H") > 2 else [""]
                return re.match(r"top  \S+  shards 2/3  workers 1  jobs 1  [1-9]\S* nodes/s  \S+ ops/s  q", rows[0]) and rows
            screen.read_until(shown, "two shards, a worker, a job, and its nodes")
            rows = rows_of(screen)
            check(max(map(len, rows)) <= 80, rows)
            shards = [i for i, row in enumerate(rows) if row.startswith("SHARD ")][0]
            equal(rows[shards].split()[-4:], ["OPS/s", "ASKS/s", "CUT%", "BUSY%"])
            equal([len(row.split()) for row in rows[shards + 1:shards + 4]], [9, 9, 2], rows)
            equal(rows[shards + 3].split(), ["[0000:0000:0000:000~:1", "down"])
            jobs = [i for i, row in enumerate(rows) if row.startswith("JOB ")][0]
            job = numbers(rows[jobs + 1], rows[jobs])
            equal((job["ALGORITHM"], job["WORKERS"]), ("abdada", "1"))
            position = cluster.shards[0].query(client.Client.jobs_open)[0]["position"]
            equal(rows[jobs + 2], f"  chess {position}"[:80])
            members = [i for i, row in enumerate(rows) if row.startswith("ROLE ")][0]
            by_role = {row.split()[0]: numbers(row, rows[members]) for row in rows[members + 1:members + 3]}
            equal(set(by_role), {"worker", "front"})

            def all_search(_seen):
                rows = rows_of(screen)
                at = [i for i, row in enumerate(rows) if row.startswith("ROLE ")]
                of = [numbers(row, rows[at[0]]) for row in rows[at[0] + 1:at[0] + 3]] if at else []
                return len(of) == 2 and all(row.get("NODES/s", "0") != "0" and row.get("JOB") == job["JOB"] for row in of)
            screen.read_until(all_search, "nodes/s of the worker and of the front-end")
            screen.read_until(lambda _: any(re.match(r"  san [A-Za-z]", row) for row in rows_of(screen)), "its line as players write it")
        with Screen("--servers", cluster.servers, "--once", *PATIENT, rows=10, columns=80) as screen:
            screen.read_until(lambda seen: re.search(rb"worker +w0 .*\n", seen), "the last table, though the terminal has ten rows")
            rows = screen.seen.decode().splitlines()
            check(len(rows) > 10 and max(map(len, rows)) <= 80 and rows[0].startswith("top  "), rows)
        front.kill()


def top_survives_the_shards():
    with Cluster(shards=2, workers=0) as cluster:
        live = Process("abdada", "top", "--servers", cluster.servers, "--interval", 100)
        at = live.wait_line("shards 2/2")[1]
        cluster.shards[0].kill()
        at = live.wait_line("shards 1/2", begin=at)[1]
        cluster.shards[0] = Shard(cluster.shards[0].port)
        live.wait_line("shards 2/2", begin=at)
        equal(live.end(signal.SIGTERM), 0)
    for line in ([], ["--servers", "x"], ["--nonsense"], ["--servers", "127.0.0.1:1", "operand"],
                 ["--servers", "127.0.0.1:1", "--interval", "0"]):
        done = run("abdada", "top", *line)
        equal((done.status, len(done.lines["err"]), done.out()), (2, 1, ""), line)


# ---- odds and ends ----

def shards_on_any_port_are_consecutive():
    server = Process("ttserver", "--listen", "127.0.0.1:0", "--shards", 4, "--memory", "8M")
    ports, at = [], 0
    for _ in range(4):
        found, at = server.wait_line(r"^ready 127.0.0.1:(\d+)$", begin=at)
        ports.append(int(found[1]))
    equal(ports, list(range(ports[0], ports[0] + 4)))
    equal(server.end(), 0)


def a_ready_line_that_cannot_be_written_is_a_failure():
    for command in ("ttserver --listen 127.0.0.1:0 --memory 8M", "ttworker --servers 127.0.0.1:1"):
        fails_on_a_full_disk(command)


def fails_on_a_full_disk(command, text=""):
    program, *words = command.split()
    with open("/dev/full", "w") as full:
        done = subprocess.run([path_of(program), *words], input=text, stdout=full, stderr=subprocess.PIPE, text=True,
                              timeout=60)
    check(done.returncode == 1 and "standard output: No space left on device\n" in done.stderr, command, done)


def output_that_cannot_be_written_is_a_failure_of_every_command():
    shard = Shard()
    commands = ["ttserver --version", "ttserver --help", "ttworker --version", "ttworker --help", "abdada --version",
                "abdada --help", "abdada help", "abdada help sim", "abdada cluster --version",
                f"abdada top --once --servers {shard.address}", f"abdada top --servers {shard.address}",
                f"abdada top --once --json --servers {shard.address}", f"abdada tt stats --servers {shard.address}",
                f"abdada tt stats --json --servers {shard.address}",
                f"abdada ttbench --seconds 1 --servers {shard.address}", "abdada perft --depth 2",
                "abdada analyse --depth 3", "abdada analyse --depth 3 --json",
                "abdada sim --game tree:b=4,d=3 --depth 3 --workers 1,2",
                "abdada sim --game tree:b=4,d=3 --depth 3 --workers 1,2 --json"]
    commands += [f"abdada {command} --help" for command in
                 "analyse solve check uci nboard gtp top tt cluster keygen perft bench ttbench sim".split()]
    for command in commands:
        fails_on_a_full_disk(command)
    for command, text in (("uci", "uci\nquit\n"), ("gtp --game othello", "name\nquit\n"), ("nboard", "nboard 2\nquit\n"),
                          (f"tt --servers {shard.address}", "stats\n")):
        fails_on_a_full_disk(f"abdada {command}", text)
    files = run("abdada", "sim", "--game", "tree:b=4,d=3", "--depth", 3, "--workers", 1, "--csv", "/dev/full")
    equal((files.status, files.lines["err"][-1]), (1, "abdada sim: /dev/full: No space left on device"))
    equal(shard.end(), 0)


QUICK_TESTS = [
    a_worker_older_than_every_shard_takes_part, a_shard_that_restarts_is_used_again,
    a_worker_that_stalled_takes_part_again,
    front_ends_share_the_workers_evenly, a_killed_front_end_frees_the_workers,
    sigterm_to_workers_ends_what_is_in_flight_at_once, sigterm_to_a_front_end_leaves_nothing,
    sessions_are_bounded, jobs_are_bounded, batches_and_messages_are_bounded, inflight_entries_are_bounded,
    processes_of_a_host_share_a_table, private_workers_exchange_results,
    top_shows_a_cluster, top_ends_with_q_and_gives_the_terminal_back,
    shards_on_any_port_are_consecutive, a_ready_line_that_cannot_be_written_is_a_failure,
]
TESTS = [
    a_worker_older_than_every_shard_takes_part, a_worker_that_joins_takes_part,
    a_shard_that_is_added_is_used, a_shard_that_restarts_is_used_again,
    restarts_do_not_move_the_strict_score, a_shard_that_stalled_is_used_again,
    a_worker_that_stalled_takes_part_again, a_front_end_that_stalled_gets_its_workers_back,
    late_answers_do_no_harm, front_ends_share_the_workers_evenly,
    front_ends_that_share_get_their_own_strict_answers, threads_of_a_worker_are_shared_too,
    a_killed_front_end_frees_the_workers, a_killed_worker_leaves_its_positions_soon,
    sigterm_to_workers_ends_what_is_in_flight_at_once, sigterm_to_a_front_end_leaves_nothing,
    a_second_sigterm_ends_at_once, sessions_are_bounded, jobs_are_bounded,
    a_refused_job_is_taken_when_there_is_room, workers_get_more_jobs_than_they_remember,
    batches_and_messages_are_bounded, inflight_entries_are_bounded,
    a_client_that_never_reads_costs_no_more_than_its_queue,
    processes_of_a_host_share_a_table, tables_of_killed_processes_are_removed,
    private_workers_exchange_results, top_shows_a_cluster,
    top_prints_no_control_characters_of_peers, top_shows_as_many_versions_as_it_has_room_for,
    top_with_json_leaves_the_screen_alone, top_in_the_background_leaves_the_terminal_alone,
    top_gives_the_terminal_back_while_it_is_stopped,
    a_terminal_without_a_screen_gets_plain_text,
    top_names_only_what_needs_an_action, no_share_of_time_is_more_than_all_of_it,
    top_ends_with_q_and_gives_the_terminal_back, what_matters_fits_80_columns, top_survives_the_shards,
    shards_on_any_port_are_consecutive, a_ready_line_that_cannot_be_written_is_a_failure,
    output_that_cannot_be_written_is_a_failure_of_every_command,
]

if __name__ == "__main__":
    sys.exit(main(QUICK_TESTS if QUICK else TESTS, unstable=STARVED))
