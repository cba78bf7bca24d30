#!/usr/bin/python3
"""attacks: what bad peers can do to a cluster that searches. `make attacks`; --quick is part of `make test-long`.

Every attack meets a fresh cluster of two shards and two workers. Quiet spells and spells of the attack take turns, each
with one search after the other, and under the attack at least one from beginning to end. For each attack: it takes place
(its `bites`); the shards live and end with exit status 0; the strict score is the one of the same search undisturbed;
a search gets the honest workers' help; the resident memory of a shard stays within --memory + 64 MiB + 64 KiB a session;
and a good client's p99 stays under 5 times its quiet one, medians of the spells (attackers at the lowest priority: they
stand for other machines). One more spell, with the attack on other shards of this machine, tells how much of it is the
scheduler. Exit status 1 if any of it fails; --quick has one spell of each, prints the p99, too, but does not fail because
of it.

  tests/attacks/attacks.py [--quick] [--only PATTERN] [--seconds N] [--seed N] [--priority N] [--insecure]

BIN: folder of the programs; the attackers are those beside it, of the same build (a job's evaluation is of the sources),
or of TOOLS.
"""
import argparse
import atexit
import contextlib
import fnmatch
import glob
import http.client
import json
import os
import random
import shutil
import signal
import socket
import statistics
import sys
import tempfile
import threading
import time
import traceback

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "system"))
import client  # noqa: E402
import cluster  # noqa: E402
from cluster import Failure, Process, Shard, check, equal, wait_until  # noqa: E402

MIB = 1 << 20
FACTOR = 5            # most that a p99 may be, times the quiet one
NO_KEY_FACTOR = 2     # the same while peers without a key try to get in
SESSION_BYTES = 64 << 10
SLACK_BYTES = 64 * MIB
ATTACKER_NICE, SEARCH_NICE = 19, 10  # --quick, whose p99 is not judged: attackers as the search
TABLE_MIB = 256  # of a table that two workers share
SILENT_NAMESPACE = 4242  # as attacker.c's
VIEWS = 400  # at the workers of a job
JOBS, JOBS_TAKEN = 40, 38  # of a good front-end, one after the other, and how many of them at least
JOB_GAP_S = 0.025  # between two short analyses
HEARTBEATS, HEARTBEAT_LIMIT_MS = 20, 2  # of another user right behind a SHARE, at each shard; most that half may wait
SHARE_GAP_S = 0.15  # between these: so that the shard takes them all
VISITORS = 16, 64  # of a metrics port: as many as it has connections, and more
VISIT_GAP_S, PROBES = 0.1, 5  # probes: at each port, beside each crowd
PROBE_TIMEOUT_S = 8  # less than HTTP_IDLE_S, when the place of a visitor that stopped is free again in any case
PROBE_AGAIN_S = 0.01  # between a probe that was turned away and the next
POSITION = "r1bqkbnr/pppp1ppp/2n5/4p3/2B1P3/5N2/PPPP1PPP/RNBQK2R b KQkq - 3 3"
ROLES = "worker", "front-end", "monitor", "administrator"


class Tool(Process):
    """A program of tests/attacks or tests/system. result(): its last line, as JSON."""

    def __init__(self, program, *arguments, nice=None):
        super().__init__(os.path.join(TOOLS, program), *arguments, nice=ATTACKER_NICE if nice is None else nice)
        self.close_input()

    def result(self, number=None, timeout=900):
        status = self.end(number, timeout) if number else self.wait(timeout)
        check(status == 0, self.name, "exit status", status, self.tail())
        check(self.lines["out"], self.name, "printed nothing", self.tail())
        return json.loads(self.lines["out"][-1])


    def has_counted(self):
        return not self.is_limited or "counted" in self.lines["out"]


class Watch(threading.Thread):
    """Samples the resident memory of the shards until stopped: the most, and the most beyond what is allowed."""

    def __init__(self, shards):
        super().__init__(daemon=True)
        self.shards, self.stopped, self.most = shards, threading.Event(), 0
        self.start()

    def run(self):
        while not self.stopped.wait(0.02):
            self.most = max([self.most] + [shard.resident_bytes() for shard in self.shards])

    def end(self):
        self.stopped.set()
        self.join()
        return self.most


class Keys:
    """A ring of keys for the cluster, and others, as good, for its bad users and for the good client: DIR/ROLE.secret
    in directories of their own."""

    def __init__(self):
        self.root = tempfile.mkdtemp(prefix="abdada-attacks-")
        atexit.register(shutil.rmtree, self.root, True)
        self.ring = os.path.join(self.root, "ring")
        equal(cluster.run("abdada", "keygen", self.ring).status, 0)
        self.server_key = client.keys_of(self.ring, "administrator")[0].decode()
        self.bad, self.good = (self.more(name) for name in ("bad", "good"))

    def more(self, name):
        """Users name-ROLE of the ring: their directory."""
        directory = os.path.join(self.root, name)
        os.mkdir(directory, 0o700)
        shutil.copy(os.path.join(self.ring, "server.public"), directory)
        for role in ROLES:
            equal(cluster.run("abdada", "keygen", self.ring, "--name", f"{name}-{role}", "--role", role).status, 0)
            os.rename(os.path.join(self.ring, f"{name}-{role}.secret"), os.path.join(directory, f"{role}.secret"))
        return directory


class Target:
    """A cluster with a search on it."""

    def __init__(self, memory_mib, heartbeat_ms, keys, priority, threads, with_metrics=False):
        """keys: a Keys, or None; threads: of each worker."""
        self.memory_mib, self.keys, self.priority, self.threads = memory_mib, keys, priority, threads
        self.with_keys = ["--keys", keys.ring] if keys else []
        self.metrics = ["--metrics", "127.0.0.1:0"] if with_metrics else []
        self.shards = [Shard(0, *self.metrics, memory=f"{memory_mib}M", heartbeat_ms=heartbeat_ms, keys=keys and keys.ring)
                       for _ in range(2)]
        for shard in self.shards:
            prefer(shard, priority)
        self.servers = ",".join(shard.address for shard in self.shards)
        self.start_workers()

    def start_workers(self):
        self.workers = [Process("ttworker", "--servers", self.servers, "--private", "--hash", 16, "--name", f"w{i}",
                                "--threads", self.threads, *self.metrics, *self.with_keys, nice=SEARCH_NICE)
                        for i in range(2)]
        for worker in self.workers:
            worker.wait_line("^ready$")

    def start_search(self, *limit):
        front = Process("abdada", "analyse", "--json", "--strict", "--fresh", "--private", "--hash", 16,
                        *(limit or ("--depth", DEPTH)), "--servers", self.servers, *self.with_keys, POSITION, nice=SEARCH_NICE)
        front.close_input()
        return front

    def end_search(self, front):
        status = front.wait(300)
        check(status == 0, "the search ended with status", status, front.tail())
        return json.loads(front.lines["out"][-1])

    def check_alive(self):
        for shard in self.shards:
            check(shard.running(), "a shard ended with status", shard.popen.poll(), shard.tail()["err"])

    def figures(self):
        return [shard.stats() for shard in self.shards]

    def sessions(self):
        return max(shard.stats()["sessions"] for shard in self.shards)

    def end(self):
        self.check_alive()
        for worker in self.workers:
            check(worker.running(), "a worker ended", worker.tail()["err"])
            equal(worker.end(), 0, worker.tail())
        for shard in self.shards:
            equal(shard.end(signal.SIGTERM), 0, shard.tail())

    def kill(self):
        for process in self.workers + self.shards:
            process.kill()


def prefer(process, priority):
    """Gives it this nice value, alone and with the session that it leads."""
    if priority:
        for thread in os.listdir(f"/proc/{process.popen.pid}/task"):
            os.setpriority(os.PRIO_PROCESS, int(thread), priority)
        path = f"/proc/{process.popen.pid}/autogroup"
        if os.access(path, os.W_OK):
            with open(path, "w", encoding="ascii") as file:
                file.write(str(priority))


def begin_witness(target):
    witness = Tool("bombard", "witness", "--milliseconds", 3600000, *(["--keys", target.keys.good] if target.keys else []),
                   target.shards[0].address, nice=0)
    witness.wait_line("^ready$")
    prefer(witness, target.priority)
    return witness


def score_of(answer):
    return answer["score"], answer["score_kind"], answer["depth"]


def undisturbed():
    done = cluster.run("abdada", "analyse", "--json", "--strict", "--fresh", "--private", "--depth", DEPTH,
                       "--algorithm", "sequential", POSITION, timeout=300)
    return score_of(json.loads(done.lines["out"][-1]))


class Result:
    def __init__(self, name):
        self.name, self.faults, self.notes = name, [], []
        self.quiet_us, self.loud_us, self.elsewhere_us = [], [], 0
        self.memory = self.limit = self.searches = self.sessions = 0
        self.done, self.grown = [], []  # what the tools said; each shard's figures during the attack

    def ratio(self):
        return statistics.median(self.loud_us) / statistics.median(self.quiet_us) if self.loud_us else 0

    def line(self):
        quiet, loud = (statistics.median(of) if of else 0 for of in (self.quiet_us, self.loud_us))
        return (f"{self.name:<12} {'FAILED' if self.faults else 'ok':<7} {self.searches:>3} searches   p99 "
                f"{quiet:>6.0f} -> {loud:>7.0f} us {self.ratio():>7.2f} times   shard "
                f"{self.memory / MIB:>6.1f} of {self.limit / MIB:.1f} MiB   {'; '.join(self.notes)}")


def searches_under(target, tools, least_seconds, result, expected):
    """One search after the other until the attack has lasted `least_seconds` and the tools have sent what they must, one
    of them at least while all tools were at work."""
    end, under = time.monotonic() + least_seconds, 0
    while True:
        attacked = all(tool.running() for tool in tools)
        equal(score_of(target.end_search(target.start_search())), expected, "the strict score")
        under += attacked and all(tool.running() for tool in tools)
        target.check_alive()
        for tool in tools:
            check(tool.running() or not tool.popen.returncode, tool.name, "ended with", tool.popen.returncode, tool.tail())
        result.sessions = max(result.sessions, target.sessions())
        if time.monotonic() > end and all(tool.has_counted() or not tool.running() for tool in tools):
            check(under > 0, "no search was under the attack from beginning to end")
            result.searches += under
            return


def good_client(target, act):
    """p99 of a good client while act() runs."""
    witness = begin_witness(target)
    act()
    seen = witness.result(signal.SIGTERM)
    equal((seen["lost"], seen["wrong"]), (0, 0), "of the good client")
    return seen["p99_us"]


def searches_for(target, seconds):
    end = time.monotonic() + seconds
    target.end_search(target.start_search())
    while time.monotonic() < end:
        target.end_search(target.start_search())


def honest_job(shard, front):
    """The row of this front-end's job, or None."""
    rows = shard.query(client.Client.jobs_open)
    return next((row for row in rows if row["owner"] == f"abdada:{front.popen.pid}"), None)


def gets_help(target):
    """A search that lasts is helped by an honest worker."""
    front = target.start_search("--time", 600000)

    def helped():
        check(front.running(), "the search ended", front.tail())
        row = honest_job(target.shards[0], front)
        working = target.shards[0].working()
        return row and any(worker[:2] in ("w0", "w1") and job == row["job"] for worker, job in working.items())
    wait_until(helped, "a worker to help")
    front.send_signal(signal.SIGINT)
    target.end_search(front)


def start_tools(tools, servers, o):
    """The attackers, at work on these shards."""
    started = []
    count = {"MESSAGES": o.messages, "LIES": o.lies, "ATTEMPTS": o.attempts, "CONNECTIONS": o.connections}
    for program, *arguments in tools:
        at = [[*PER_SHARD[program], server] for server in servers] if program in PER_SHARD else \
            [["--servers", ",".join(servers)]]
        for place in at:
            words = [-(-count[word] // o.spells) if word in count else word for word in arguments]
            if o.keys:
                words += ["--server-key", o.keys.server_key] if program == "zmtp_storm" else ["--keys", o.keys.bad]
            if program in PER_SHARD:
                words += ["--until-signal", 1]
            tool = Tool(program, *words, "--seed", o.seed + len(started), *place)
            tool.is_limited = any(word in count for word in arguments)
            started.append(tool)
            if program not in PER_SHARD:
                tool.wait_line("^ready$", timeout=300)  # thousands of sessions, at a low priority
    return started


def attack_spell(attack, target, result, expected, is_last, o):
    before, tools = target.figures(), []
    try:
        tools = start_tools(attack["tools"], [shard.address for shard in target.shards], o)
        with attack["around"](target, result) if "around" in attack else contextlib.nullcontext():
            result.loud_us.append(good_client(
                target, lambda: searches_under(target, tools, o.seconds, result, expected)))
        if is_last:
            gets_help(target)
            if "during" in attack:
                result.notes.append(attack["during"](target, o))
        result.done += [tool.result(signal.SIGTERM) for tool in tools]
    finally:
        for process in tools:
            process.kill()
    result.grown += [{name: now[name] - then[name] for name in now} for then, now in zip(before, target.figures())]


def spell_elsewhere(attack, target, result, o):
    """The same attack on two shards that have nothing to do with the target."""
    others, tools = [], []
    try:
        for _ in range(2):
            others.append(Shard(0, memory=f"{target.memory_mib}M", keys=o.keys and o.keys.ring))
        tools = start_tools(attack["tools"], [shard.address for shard in others], o)
        result.elsewhere_us = good_client(target, lambda: searches_for(target, o.seconds))
    finally:
        for process in tools + others:
            process.kill()
    result.notes.append(f"on other shards {result.elsewhere_us / statistics.median(result.quiet_us):.2f} times")


def check_attack(attack, result, at_start, o):
    """What all spells together say."""
    sent = [d.get("sent", d.get("messages", d.get("connections", 0))) for d in result.done]
    result.notes += [f"{name} {sum(n for d, n in zip(result.done, sent) if d.get('kind', 'storm') == name)} sent"
                     for name in sorted({d.get("kind", "storm") for d in result.done})]
    if result.memory > result.limit and not cluster.SANITIZED:
        result.faults.append(f"memory: {result.memory / MIB:.1f} MiB of {result.limit / MIB:.1f}")
    if attack["tools"]:
        attack["bites"](result, o)
    if "flat" in attack:
        answered = sum(d["received"] for d in result.done)
        check(answered == 0, answered, "messages to peers without a key")
        result.notes.append(f"{(result.memory - at_start) / MIB:.1f} MiB grown")
        check(result.memory - at_start < attack["flat"] or cluster.SANITIZED, "memory:", result.notes[-1])
    factor = attack.get("factor", FACTOR)
    result.notes.append("spells " + " ".join(f"{quiet}/{loud}" for quiet, loud in zip(result.quiet_us, result.loud_us)))
    if not o.quick and result.ratio() >= factor:
        result.faults.append(f"p99: {result.ratio():.1f} times, under {factor} wanted")


def run_attack(name, expected, o):
    """The Result of one attack."""
    attack, result = ATTACKS[name], Result(name)
    memory_mib = attack.get("memory", 32)
    target = Target(memory_mib, attack.get("heartbeat_ms", cluster.HEARTBEAT_MS), o.keys, o.priority,
                    attack.get("threads", 1), "around" in attack)
    watch = None
    try:
        for spell in range(o.spells):
            result.quiet_us.append(good_client(target, lambda: searches_for(target, o.quiet)))
            if watch is None:
                watch = Watch(target.shards)
                at_start = max(shard.resident_bytes() for shard in target.shards)
            attack_spell(attack, target, result, expected, spell == o.spells - 1, o)
        result.memory = watch.end()
        result.limit = memory_mib * MIB + SLACK_BYTES + SESSION_BYTES * result.sessions
        equal(score_of(target.end_search(target.start_search())), expected, "the strict score afterwards")
        if not o.quick and attack["tools"]:
            spell_elsewhere(attack, target, result, o)
        check_attack(attack, result, at_start, o)
        target.end()
    except Exception as error:  # the others go on
        if not isinstance(error, Failure):
            traceback.print_exc()
        result.faults.append(f"{error}"[:1500])
        for process in target.shards + target.workers:
            if not process.running():
                result.faults.append(f"{process.name} ended with status {process.popen.poll()}: "
                                     f"{process.tail()['err'][-2:]}")
    finally:
        if watch:
            watch.end()
        target.kill()
    return result


def run_long_enough(name, expected, o):
    """On a slow machine an attack needs more time to be one."""
    seconds = o.seconds
    for times in (1, 5, 25):
        o.seconds = times * seconds
        result = run_attack(name, expected, o)
        if not any("no attack: " in fault for fault in result.faults):
            break
        print(f"# {name}, {o.seconds:g} s: {result.faults}", flush=True)
    o.seconds = seconds
    return result


# ---- that an attack takes place ----

def total(rows, name):
    return sum(row[name] for row in rows)


def some(result, name, least=1):
    """Each shard's figure grew by this much or more in all spells together."""
    for shard in range(2):
        got = total(result.grown[shard::2], name)
        check(got >= least, f"no attack: {name} grew by {got} at shard {shard}, {least} wanted")


def at_each(result, name, least=1):
    """A list of the tools has so much for each shard."""
    for shard in range(2):
        got = sum(d[name][shard] for d in result.done)
        check(got >= least, f"no attack: {name} {got} for shard {shard}, {least} wanted", result.done)


def sent_at_least(result, least):
    sent, unsent = total(result.done, "sent"), total(result.done, "unsent")
    check(sent >= least, f"no attack: {sent} messages sent, {unsent} not; {least} wanted")


def identity_bites(result, _o):
    """Their connections come, and are let in or not."""
    for shard in range(2):
        came = sum(total(result.grown[shard::2], name) for name in
                   ("sessions_opened", "handshakes_failed", "pending_closed"))
        check(came >= 100, f"no attack: {came} came at shard {shard}", result.done)


def root_bites(result, _o):
    at_each(result, "offers_at")
    sent_at_least(result, 50)


def bucket_bites(result, _o):
    sent_at_least(result, 50)
    some(result, "asks", 10 * 1024)


def deaf_bites(result, _o):
    sent_at_least(result, 100)
    ended = sum(total(result.grown, name) for name in ("pending_closed", "slow_closed", "queue_full"))
    served = total(result.grown, "asks") + total(result.grown, "peeks")
    asked = 1024 * total(result.done, "sent")
    check(ended > 0 or served < asked, "no attack: none was closed, and", served, "of", asked, "operations served")


def jobs_bites(result, _o):
    at_each(result, "offers_at")
    some(result, "job_posts", 16)
    check(total(result.grown, "posts_too_fast") + total(result.grown, "jobs_over_quota") > 0, "no attack: no post refused")


def hello_bites(result, _o):
    at_each(result, "welcomes_at", 100)
    some(result, "pushes_put_off")


def pairs_bites(result, _o):
    some(result, "job_posts")
    some(result, "posts_too_fast")


def namespace_bites(result, _o):
    at_each(result, "offers_at")
    some(result, "job_posts")


def silent_bites(result, _o):
    at_each(result, "welcomes_at", 64)


def shares_bites(result, _o):
    at_each(result, "welcomes_at", 512)
    check(total(result.done, "shared") >= 2 * 512, "no attack:", total(result.done, "shared"), "SHAREs received")


def idle_bites(result, _o):
    """They are there, and post a job of their own."""
    at_each(result, "welcomes_at", 1000)
    some(result, "job_posts")


def bombard_bites(result, o):
    sent, unsent = total(result.done, "messages"), total(result.done, "unsent")
    check(sent >= o.messages, f"no attack: {sent} sent, {unsent} not")
    some(result, "malformed", 32)


def liar_bites(result, o):
    """Most of it is read: what a shard drops unread is no lie."""
    sent_at_least(result, o.lies)
    at_each(result, "offers_at")
    sent, unread = total(result.done, "sent"), {name: total(result.grown, name) for name in
                                                ("ignored", "no_session", "malformed", "role_refused", "refused")}
    result.notes.append(f"unread {unread} of {sent}")
    dropped = unread["ignored"] + unread["no_session"] + unread["malformed"]
    check(dropped <= sent / 5, "no attack: of", sent, "messages are", unread)
    for kind in client_kinds():
        check(sum(d["kinds"][kind] for d in result.done) > 0, "no attack: no", kind)
    for kind in ("WELCOME", "RETRIEVE_ANSWER", "PEEK_ANSWER", "HEARTBEAT", "STATS_ANSWER", "MEMBERS_ANSWER",
                 "JOBS_ANSWER", "SHARE", "JOB", "JOB_STOP", "SCANNED"):
        check(sum(d["answers"][kind] for d in result.done) > 0, "no attack: the shards sent no", kind)
    for name in ("stores", "releases", "job_posts", "job_reports", "shared"):
        check(total(result.grown, name) > 0, "no attack:", name, "did not grow")


def client_kinds():
    """What a shard takes."""
    return ("HELLO", "RETRIEVE_ASK", "STORE_HASH", "RELEASE", "PEEK", "HEARTBEAT", "JOB_POST", "JOB_STOP", "JOB_REPORT",
            "STATS", "BYE", "MEMBERS", "JOBS", "SHARE", "SCAN", "FLUSH")


def zmtp_bites(result, o):
    check(total(result.done, "connections") >= 2 * o.connections, "no attack:", total(result.done, "connections"))
    some(result, "handshakes_failed", o.connections // 20)


def intruder_bites(result, o):
    check(total(result.done, "steps") >= o.attempts, "no attack:", total(result.done, "steps"), "attempts")
    for shard in range(2):
        refused = sum(total(result.grown[shard::2], name) for name in ("handshakes_failed", "pending_closed"))
        # Most give up themselves, at a greeting that is not theirs, and the shard counts none of that.
        check(refused >= o.attempts // 100, "no attack:", refused, "refused at shard", shard)


# ---- what some attacks must leave possible ----

def shares_pass(target, _o):
    """A result that one session sends reaches another, however many are silent."""
    for shard in target.shards:
        keys = target.keys and client.keys_of(target.keys.good, "worker")
        sender, receiver = (client.Client(shard.address, keys=keys) for _ in range(2))
        sender.hello(namespace_id=SILENT_NAMESPACE, table_id=1)
        receiver.hello(namespace_id=SILENT_NAMESPACE, flags=4, table_id=2)

        def arrives():
            receiver.send(client.HEARTBEAT, 1)  # who searches is not silent
            sender.share(1, [[random.getrandbits(64), 3, 7, client.EXACT, 0]])
            message = receiver.receive(0.02)
            return message is not None and message[0] == client.SHARE
        try:
            wait_until(arrives, "a SHARE to reach the one that listens")
        finally:
            for session in (sender, receiver):
                session.bye()
                session.close()
    return "SHARE passes"


def workers_are_shared_by_user(target, _o):
    """Half of the workers for one of two users, however many jobs the other has: in most views at a search that has met
    them all."""
    front = target.start_search("--time", 600000)
    views, half = [], len(target.workers) * target.threads // 2

    def view():
        check(front.running(), "the search ended", front.tail())
        row = honest_job(target.shards[0], front)
        if row:
            views.append(row["workers"])
        return len(views) >= VIEWS
    wait_until(view, "the honest job to be seen", 300)
    front.send_signal(signal.SIGINT)
    target.end_search(front)
    enough = sum(workers >= half for workers in views[VIEWS // 2:])  # the first half: until they have moved
    check(enough > VIEWS // 4, "of", len(views), "views only", enough, "with", half, "workers:", views)
    return f"half of the workers in {enough} of {VIEWS // 2} views"


def jobs_are_taken(target, o):
    """Nearly all jobs of a good front-end, one after the other, and half of the workers for a search, though these come behind
    thousands that choose the holes among the indexes. With keys: without them each session on loopback is a user."""
    for worker in target.workers:
        equal(worker.end(), 0, worker.tail())
    target.start_workers()
    shared = workers_are_shared_by_user(target, o)
    shard, taken = target.shards[0], 0
    front = client.Client(shard.address, keys=client.keys_of(target.keys.good, "front-end"))
    front.hello(role=client.FRONT)
    for _ in range(JOBS):
        job = random.getrandbits(63) | 1
        front.send(client.JOB_POST, job, 0, "chess", "startpos", 0, 0, "abdada", 0, 5, 255, 0, 0)
        taken += any(row["job"] == job for row in front.jobs_open())
        front.send(client.JOB_STOP, job, 0)
        time.sleep(JOB_GAP_S)
    refused = [message for message in front.pushed if message[0] == client.ERROR]
    check(taken >= JOBS_TAKEN, "only", taken, "of", JOBS, "jobs taken", refused[:1])
    front.bye()
    front.close()
    return f"{shared}, {taken} of {JOBS} jobs taken"


def heartbeats_pass(target, o):
    """One user's heartbeats are answered soon, though another's message just before goes to hundreds: compared with an
    idle shard of this machine, as others may keep that busy."""
    keys, idle = target.keys, Shard(0, keys=target.keys and target.keys.ring)
    behind_ms, idle_ms = [], []

    def session(shard, directory, name, **hello):
        return client.Client(shard.address, keys=keys and client.keys_of(directory, name)).hello(**hello)

    def took_ms(other):
        begin = time.perf_counter()
        other.heartbeat()
        return (time.perf_counter() - begin) * 1000
    for shard in target.shards:
        sender = session(shard, keys and keys.good, "worker", namespace_id=SILENT_NAMESPACE, table_id=1)
        other, quiet = (session(at, keys and keys.ring, "administrator", role=client.WORKER) for at in (shard, idle))
        for _ in range(HEARTBEATS):
            time.sleep(SHARE_GAP_S)
            idle_ms.append(took_ms(quiet))
            sender.share(1, [[random.getrandbits(64), 3, 7, client.EXACT, 0] for _ in range(1024)])
            behind_ms.append(took_ms(other))
        for one in (sender, other, quiet):
            one.bye()
            one.close()
    equal(idle.end(), 0, idle.tail())
    behind, alone = statistics.median(behind_ms), statistics.median(idle_ms)
    said = f"heartbeats behind a SHARE {behind:.2f} ms, at an idle shard {alone:.2f}"
    check(o.quick or cluster.SANITIZED or behind - alone < HEARTBEAT_LIMIT_MS, said, f"; {HEARTBEAT_LIMIT_MS} ms more allowed")
    return said


class SlowVisitors(threading.Thread):
    """Visitors of the metrics ports of a shard and of a worker whose requests, a byte now and then, never end, and who
    come again when they are turned away: by turns as many as there is room for, and more. Beside them /healthz is asked at
    both, again and again, and must answer each time: a probe that the server turns away, as too many of the same address
    have come since, asks again, as a scraper does. A context: at its end all of that has taken place."""

    def __init__(self, target, result):
        super().__init__(daemon=True)
        self.result, self.fault = result, None
        self.leaving, self.over = threading.Event(), threading.Event()
        self.ports = [int(process.wait_line(r"metrics at http://127.0.0.1:(\d+)/metrics", "err")[0][1])
                      for process in (target.shards[0], target.workers[0])]
        self.crowd, self.held = VISITORS[0], {port: [] for port in self.ports}
        self.probes = self.again = 0  # answered; turned away before
        self.taken = dict.fromkeys(self.ports, 0)  # bytes sent on connections that had been open before

    def __enter__(self):
        self.visit_all()
        self.start()
        self.prober = threading.Thread(target=self.probe_all, daemon=True)
        self.prober.start()
        return self

    def __exit__(self, kind, *_):
        self.leaving.set()
        self.prober.join()  # each of its probes has a time-out
        self.over.set()
        self.join()
        for connection in (one for held in self.held.values() for one in held):
            connection.close()
        if kind is None:
            check(self.fault is None, self.fault)
            check(all(self.taken.values()), "no attack: bytes of slow requests taken, by port:", self.taken)
            self.result.notes.append(f"{self.probes} of {self.probes} probes answered beside slow requests, "
                                     f"{self.again} asked again for it")

    def visit_all(self):
        """A byte of each that is still open, and new ones for the rest."""
        for port, held in self.held.items():
            for connection in held[:]:
                try:
                    connection.sendall(b"a")
                    self.taken[port] += 1
                except OSError:
                    connection.close()
                    held.remove(connection)
            while len(held) > self.crowd:
                held.pop().close()
            while len(held) < self.crowd:
                connection = socket.create_connection(("127.0.0.1", port), PROBE_TIMEOUT_S)
                held.append(connection)
                with contextlib.suppress(OSError):
                    connection.sendall(b"GET / HTTP/1.1\r\nA: ")

    def run(self):
        try:
            while not self.over.wait(VISIT_GAP_S):
                self.visit_all()
        except OSError as error:
            self.fault = f"a metrics port takes no connection: {error}"

    def probe_all(self):
        try:
            while not self.probes or not self.leaving.is_set():
                for self.crowd in VISITORS:
                    for _ in range(PROBES):
                        self.probe()
        except (OSError, Failure) as error:
            self.fault = f"/healthz, {self.crowd} slow visitors, after {self.probes} probes: {error}"

    def probe(self):
        for port in self.ports:
            end = time.monotonic() + PROBE_TIMEOUT_S
            while not self.is_answered(port, end - time.monotonic()):
                self.again += 1
                time.sleep(PROBE_AGAIN_S)
            self.probes += 1
        self.over.wait(VISIT_GAP_S)  # or the crowd would not have come yet

    def is_answered(self, port, timeout):
        """Raises when there is no answer in time, or a wrong one, or no server."""
        check(timeout > 0, f"no answer within {PROBE_TIMEOUT_S} s")
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
        try:
            connection.request("GET", "/healthz")
            answer = connection.getresponse()
            answer.read()
        except (ConnectionResetError, BrokenPipeError, http.client.HTTPException):  # turned away, maybe in the answer
            return False
        finally:
            connection.close()
        check(answer.status == 200, "/healthz:", answer.status)
        return True


def many_threads_and_shards(target, _o):
    """A worker of 128 threads, whatever descriptors it begins with."""
    worker = Process("ttworker", "--servers", target.servers, "--private", "--threads", 128, "--hash", 16,
                     *target.with_keys, nice=SEARCH_NICE)
    worker.wait_line("^ready$", timeout=120)
    equal(worker.end(), 0, worker.tail())
    return "128 threads start"


def one_table_for_two(target, _o):
    """Two workers that start together share the one large table."""
    two = [Process("ttworker", "--servers", target.servers, "--hash", TABLE_MIB, *target.with_keys, nice=SEARCH_NICE)
           for _ in range(2)]
    for worker in two:
        worker.wait_line("^ready$", timeout=120)
    tables = [path for path in glob.glob(f"/dev/shm/abdada-{os.geteuid()}-*")
              if any(path in open(f"/proc/{worker.popen.pid}/maps", encoding="utf-8").read() for worker in two)]
    for worker in two:
        equal(worker.end(), 0, worker.tail())
    equal(len(tables), 1, "tables of two workers:", tables, [worker.err() for worker in two])
    return "one table for two workers"


PER_SHARD = {"bombard": [], "zmtp_storm": ["--at"]}  # they take one address, after these words

# tools: [program, arguments...]; the rest is said in Target, run_attack and here. MESSAGES, LIES, CONNECTIONS,
# ATTEMPTS: as many as the options say, and then the attack is over. around: what lasts as long as a spell of the attack.
ATTACKS = {
    "identity": {"tools": [("attacker", "identity")], "bites": identity_bites},
    "root": {"tools": [("attacker", "root")], "bites": root_bites},
    "bucket": {"tools": [("attacker", "bucket")], "bites": bucket_bites, "memory": 256},
    "deaf": {"tools": [("attacker", "deaf")], "bites": deaf_bites, "memory": 16, "heartbeat_ms": 1000},
    "jobs": {"tools": [("attacker", "jobs")], "bites": jobs_bites,
             "during": workers_are_shared_by_user, "threads": 2},
    "hello": {"tools": [("attacker", "hello")], "bites": hello_bites},
    "pairs": {"tools": [("attacker", "pairs")], "bites": pairs_bites},
    "namespace": {"tools": [("attacker", "namespace")], "bites": namespace_bites},
    "silent": {"tools": [("attacker", "silent")], "bites": silent_bites, "during": shares_pass},
    "shares": {"tools": [("attacker", "shares")], "bites": shares_bites, "during": heartbeats_pass,
               "heartbeat_ms": 1000},
    "idle": {"tools": [("attacker", "idle")], "bites": idle_bites, "during": jobs_are_taken, "threads": 2,
             "needs_keys": True, "heartbeat_ms": 1000},
    "bombard": {"tools": [("bombard", "attack", "--messages", "MESSAGES")], "bites": bombard_bites},
    "liar": {"tools": [("liar", "--messages", "LIES")], "bites": liar_bites},
    "zmtp": {"tools": [("zmtp_storm", "--connections", "CONNECTIONS")], "bites": zmtp_bites},
    "slow-http": {"tools": [], "around": SlowVisitors},
    "threads": {"tools": [], "during": many_threads_and_shards},
    "tables": {"tools": [], "during": one_table_for_two},
    "intruder": {"tools": [("attacker", "intruder", "--count", "ATTEMPTS")], "bites": intruder_bites, "factor": NO_KEY_FACTOR,
                 "needs_keys": True, "flat": 8 * MIB},
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="short, and the p99 fails nothing")
    parser.add_argument("--only", default="*", help="attacks whose names match")
    parser.add_argument("--seconds", type=float, help="of a spell of the attack, at least (5; quick: 0.5)")
    parser.add_argument("--quiet", type=float, help="seconds of a quiet spell (5; quick: 0.2)")
    parser.add_argument("--spells", type=int, help="of each of both; they share the counts (3; quick: 1)")
    parser.add_argument("--messages", type=int, help="of attacks that count them (200,000; quick: 5,000)")
    parser.add_argument("--priority", type=int, default=0,
                        help="nice value of the shards and the good client (0), on a machine with other things to do")
    parser.add_argument("--seed", type=int, default=int(os.environ.get("SEED", 1)))
    parser.add_argument("--lies", type=int, help="messages of valid sessions that lie (1,000,000; quick: 2,000)")
    parser.add_argument("--connections", type=int, help="to each shard that break ZMTP (50,000; quick: 1,000)")
    parser.add_argument("--attempts", type=int, help="to connect without a key (10,000; quick: 500)")
    parser.add_argument("--insecure", action="store_true", help="a cluster without keys")
    o = parser.parse_args()
    o.lies = o.lies or (2000 if o.quick else 1000000)
    o.connections = o.connections or (1000 if o.quick else 50000)
    o.attempts = o.attempts or (500 if o.quick else 10000)
    o.seconds = o.seconds or (0.5 if o.quick else 5)
    o.quiet = o.quiet or (0.2 if o.quick else 5)
    o.spells = o.spells or (1 if o.quick else 3)
    o.messages = o.messages or (5000 if o.quick else 200000)
    global TOOLS, DEPTH, ATTACKER_NICE
    ATTACKER_NICE = SEARCH_NICE if o.quick else ATTACKER_NICE
    cluster.BIN = os.path.abspath(os.environ.get("BIN", os.path.join(ROOT, "build", "release", "bin")))
    TOOLS = os.path.abspath(os.environ.get("TOOLS", os.path.join(
        os.path.join(ROOT, "build", "release") if cluster.BIN == os.path.join(ROOT, "bin")
        else os.path.dirname(cluster.BIN), "tools")))
    DEPTH = 6 if cluster.SANITIZED else 7 if o.quick else 9
    expected, results = undisturbed(), []
    print(f"undisturbed: score {expected[0]} {expected[1]} at depth {expected[2]}; seed {o.seed}", flush=True)
    o.keys = None if o.insecure else Keys()
    for name, attack in ATTACKS.items():
        if fnmatch.fnmatchcase(name, o.only) and (o.keys or not attack.get("needs_keys")):
            results.append(run_long_enough(name, expected, o))
            print(results[-1].line(), *(f"\n  {fault}" for fault in results[-1].faults), flush=True)
    print("\n" + "\n".join(result.line() for result in results))
    failed = sum(bool(result.faults) for result in results)
    print(f"attacks: {len(results) - failed} withstood, {failed} not")
    return 1 if failed or not results else 0


if __name__ == "__main__":
    sys.exit(main())
