#!/usr/bin/python3
"""Want, and disks that fail. Each call by which a program takes memory, a descriptor or a thread when it starts fails once, in turn. The
program says one line and ends with status 1, or goes on with less; it neither crashes nor hangs, and leaves nothing in
shared memory. And each call to the disk by which a shard reads and writes its snapshot fails once, in five ways: the next
shard has all results of the last whole file, or of the new one. TAP. Of the release build: sanitizers have an allocator
of their own.

    BIN=build/release/bin tests/system/test_want.py
"""
import contextlib
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

import network

REASON = network.why_not()  # before any thread and socket
import cluster  # noqa: E402
from cluster import STARVED, BIN, ROOT, Failure, Process, Shard, check, equal, main, path_of, run  # noqa: E402

WANT = os.path.join(ROOT, BIN, "../tools/want.so")
MOST = 5000  # calls of one start
POSITION = "r1bq1rk1/pp2bppp/2n1pn2/2pp4/3P1B2/2PBPN2/PP1N1PPP/R2QK2R w KQ - 0 8"
ENDING = "-XXXXXX-XXXOOXXOXXOOOXXOXOXOXOXXOXXXOXXXO-XOXOXXOXXXOOOX-OOOOOXX X"


class Start:
    """A program, whose call number `at` fails. Starts on a host of its own, where others' tests leave nothing."""

    def __init__(self, host, at, program, *arguments, disk=None):
        self.says = tempfile.NamedTemporaryFile(prefix="abdada-want-")
        self.process = Process("/usr/bin/env", f"WANT_AT={at}", f"WANT_SAYS={self.says.name}", f"LD_PRELOAD={WANT}",
                               *([f"WANT_DISK={disk}"] if disk else []), path_of(program), *arguments, host=host)

    def ended(self):
        """How many calls there were (0: it was killed), and which failed."""
        with open(self.says.name, encoding="ascii") as file:
            said = file.read()
        self.says.close()
        return sum(map(int, re.findall(r"^calls (\d+)$", said, re.M))), re.findall(r"^(?!calls)(\S+ \S+ \S+)$", said, re.M)


def place_of(program, failed):
    """The functions whose call failed, for a failure's message."""
    what, file, place = failed[0].split()
    done = subprocess.run(["addr2line", "-fie", path_of(program) if file == "program" else "/dev/null", place],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return f"{what} in {' < '.join(done.stdout.decode().split()[::2]) or file}"


def new_host():
    return None if REASON else network.new_host()


def in_turn(program, *arguments, ready=None, text="", host=None):
    """All calls of a start, in turn. ready: what a program that goes on says then; else it ends by itself, after `text`."""
    host = host or new_host()

    def one(at):
        start = Start(host, at, program, *(word() if callable(word) else word for word in arguments))
        if ready:
            try:
                start.process.wait_line(ready, "out")
                start.process.send_signal(signal.SIGTERM)
            except Failure as failure:
                if " ended without " not in str(failure):
                    raise
        else:
            with contextlib.suppress(Failure):  # it has ended
                start.process.send(text)
            start.process.close_input()
        return start, start.process.wait()

    first, status = one(0)
    equal(status, 0, "nothing fails", first.process.tail())
    calls, _ = first.ended()
    check(0 < calls <= MOST, "calls of a start", calls)
    ended, wrong = 0, []
    for at in range(1, calls + 1):
        start, status = one(at)
        _, failed = start.ended()
        if not failed:
            continue  # threads: this time there were fewer
        words = [line for line in start.process.lines["err"] if is_error(line)]
        if status not in (0, 1) or (status == 1 and len(words) != 1):
            wrong.append(f"{at}: {place_of(program, failed)}: status {status}, {words[:3]}")
        ended += status != 0
    check(not wrong, f"{len(wrong)} of {calls} calls:", "\n".join(wrong))
    if host:
        left = Process("/bin/ls", "/dev/shm", host=host)
        left.wait()
        equal([line for line in left.lines["out"] if line.startswith("abdada")], [], "left in shared memory")
    print(f"# {calls} calls, of {ended} the program ended")


def is_error(line):
    """Lines of the log have a time."""
    return not re.match(r"\d+-\d+-\d+T", line)


def a_shard_starts_or_says_why_not():
    with tempfile.TemporaryDirectory(prefix="abdada-want-") as folder:
        in_turn("ttserver", "--listen", "127.0.0.1:0", "--memory", "2M", "--metrics", "127.0.0.1:0", "--snapshot",
                os.path.join(folder, "snapshot"), ready="^ready")


def shards_with_keys_start_or_say_why_not():
    with tempfile.TemporaryDirectory(prefix="abdada-want-") as folder:
        keys = os.path.join(folder, "keys")
        equal(run("abdada", "keygen", keys).status, 0)
        in_turn("ttserver", "--listen", "127.0.0.1:0", "--memory", "2M", "--shards", "2", "--keys", keys, ready="^ready")


def a_worker_starts_or_says_why_not():
    in_turn("ttworker", "--servers", f"127.0.0.1:{cluster.free_port()}", "--threads", "2", "--hash", "4", ready="^ready")


def a_search_ends_or_says_why_not():
    in_turn("abdada", "analyse", "--threads", "2", "--hash", "4", "--depth", "3", POSITION)


def a_search_over_dead_shards_ends_or_says_why_not():
    in_turn("abdada", "analyse", "--servers", f"127.0.0.1:{cluster.free_port()}", "--hash", "4", "--depth", "3", POSITION)


def a_solve_ends_or_says_why_not():
    in_turn("abdada", "solve", "--hash", "4", ENDING)


def an_engine_starts_or_says_why_not():
    in_turn("abdada", "uci", "--hash", "4", text="uci\nisready\ngo depth 2\nquit")


def a_board_program_starts_or_says_why_not():
    in_turn("abdada", "gtp", "--hash", "4", text="boardsize 8\nquit\n")


def those_who_watch_shards_end_or_say_why_not():
    """top and tt, of a shard that has results."""
    host = new_host()
    shard = Process("ttserver", "--listen", "127.0.0.1:0", "--memory", "2M", host=host)
    address = shard.wait_line(r"^ready (\S+)$")[0][1]
    in_turn("abdada", "top", "--once", "--servers", address, host=host)
    in_turn("abdada", "tt", "stats", "--servers", address, host=host)
    in_turn("abdada", "tt", "store", "--key", "1234", "--depth", "3", "--score", "7", "--bound", "exact", "--servers", address, host=host)
    with tempfile.TemporaryDirectory(prefix="abdada-want-") as folder:
        in_turn("abdada", "tt", "save", os.path.join(folder, "table"), "--servers", address, host=host)
    equal(shard.end(), 0)


def keys_are_made_or_it_is_said_why_not():
    with tempfile.TemporaryDirectory(prefix="abdada-want-") as folder:
        paths = itertools.count()
        in_turn("abdada", "keygen", lambda: os.path.join(folder, f"keys-{next(paths)}"))


def a_launcher_starts_or_says_why_not():
    """Its part in C, up to the Python program."""
    in_turn("abdada", "cluster", "--help")


# ---- disks ----

KEYS = 300


def fill(server, first):
    """Results, as Client.scan gives them."""
    def store(c):
        for key in range(first, first + KEYS):
            c.store(key * 0x9e3779b97f4a7c15 % 2 ** 64, key % 10, key % 50, 3, move=key)
        return c.scan()
    return Shard.query(server, store)


def a_shards_disk_fails_at_each_call():
    """A snapshot of 300 results, one of 600 in its place: whatever happens, one of them is whole."""
    with tempfile.TemporaryDirectory(prefix="abdada-want-") as folder:
        first = os.path.join(folder, "first")
        server = Shard(0, "--snapshot", first, "--snapshot-every", 86400, memory="2M")
        old = fill(server, 1)
        equal((len(old), server.end()), (KEYS, 0))

        def one(at, how):
            """Lets the call fail; returns how many there were."""
            path = os.path.join(folder, f"{how}-{at}")
            os.makedirs(path)
            path = shutil.copy(first, os.path.join(path, "results"))
            start = Start(None, at, "ttserver", "--listen", "127.0.0.1:0", "--snapshot", path, "--snapshot-every", 86400,
                          "--memory", "2M", disk=how)
            new = None
            with contextlib.suppress(Failure):  # it has ended
                start.process.address, start.process.keys = start.process.wait_line(r"^ready (\S+)$")[0][1], None
                new = fill(start.process, KEYS + 1)
                start.process.send_signal(signal.SIGTERM)
            status = start.process.wait()
            calls, failed = start.ended()
            where = f"{how} at call {at}, {failed and place_of('ttserver', failed)}, status {status}", start.process.tail()
            if how in ("before", "after"):
                equal(status, -signal.SIGKILL if at > 0 else 0, *where)
            else:
                words = [line for line in start.process.lines["err"] if is_error(line)]
                check(status == 0 or (status == 1 and len(words) == 1), "one line", *where)
                check(new is not None or status == 1, "it serves, or says why not", *where)
            after = Shard(0, "--snapshot", path, "--snapshot-every", 86400, memory="2M")
            found = after.query(lambda c: c.scan())
            after.end()
            check(found == old or found == new, "results", len(found), *where, after.tail())
            return calls

        calls = one(0, "EIO")
        check(calls > 5, "calls", calls)
        for how in ("EIO", "ENOSPC", "half", "before", "after"):
            for at in range(1, calls + 1):
                one(at, how)
        print(f"# {calls} calls")


def a_proofs_disk_fails_at_each_call():
    """Resumed with a good disk, the proof is whole: all claims hold, and there is the result."""
    with tempfile.TemporaryDirectory(prefix="abdada-want-") as folder:
        endings = os.path.join(folder, "endings")
        with open(os.path.join(ROOT, "tests/data/othello/ffo-1-19.obf"), encoding="ascii") as ffo, \
                open(endings, "w", encoding="ascii") as file:
            file.writelines(itertools.islice((line for line in ffo if not line.startswith("%")), 3))

        failures = []  # how, of each call that failed

        def solve(at, how, path, *more):
            start = Start(None, at, "abdada", "solve", "--json", "--hash", "4", "--proof", path, "--proof-leaf", "10", *more,
                          "--obf", endings, disk=how)
            start.process.close_input()
            return start, start.process.wait()

        def one(at, how):
            path = os.path.join(folder, f"{how}-{at}")
            start, status = solve(at, how, path)
            calls, failed = start.ended()
            where = f"{how} at call {at}, {failed and place_of('abdada', failed)}, status {status}", start.process.tail()
            if how in ("before", "after"):
                equal(status, -signal.SIGKILL if failed else 0, *where)
            else:
                check(status == 0 or (status == 1 and len(start.process.lines["err"]) > 0), "it solves, or says why not", *where)
            if failed:
                failures.append(how)
            again, status = solve(0, "EIO", path, "--resume")
            again.ended()
            equal(status, 0, *where, again.process.tail())
            checked = run("abdada", "check", "--json", path)
            equal(checked.status, 0, *where, again.process.tail(), checked.tail())
            return calls, json.loads(checked.out())

        calls, said = one(0, "EIO")
        check(calls >= 5 and said["false"] == 0 and said["claims"] > 10, "calls", calls, said)
        for how in ("EIO", "ENOSPC", "half", "before", "after"):
            for at in range(1, calls + 1):
                _, now = one(at, how)
                equal((now["false"], now["checked"] == now["claims"], now["claims"] >= said["claims"]), (0, True, True), how, at, now)
            check(failures.count(how) >= 5, "calls that failed", failures)  # some write by the clock, and may not come again
        print(f"# {calls} calls, {said['claims']} claims")


# ---- memory that a process may not have ----

def cgroup_of(mib):
    """A new cgroup with so much memory; None: this machine lets us make none."""
    with open("/proc/self/cgroup", encoding="ascii") as file:
        of_kind = {kinds: path for _, kinds, path in (line.rstrip("\n").split(":", 2) for line in file)}
    for tree, own, name in (("/sys/fs/cgroup/memory", of_kind.get("memory"), "memory.limit_in_bytes"),
                            ("/sys/fs/cgroup", of_kind.get(""), "memory.max")):
        path = f"{tree}{own}/abdada-{os.getpid()}-{mib}"
        try:
            os.mkdir(path)
            with open(os.path.join(path, name), "w", encoding="ascii") as file:
                file.write(str(mib << 20))
            return path
        except OSError:
            with contextlib.suppress(OSError):
                os.rmdir(path)
    return None


@contextlib.contextmanager
def within(mib, how):
    """Starts programs that may have so much memory, or ends with None where the machine has no such bound."""
    path = cgroup_of(mib) if how == "cgroup" else None
    begin = f"echo $$ >{path}/cgroup.procs" if path else f"ulimit -v {mib << 10}"
    started = []

    def start(program, *arguments):
        started.append(Process("/bin/sh", "-c", f'{begin}; exec "$0" "$@"', path_of(program), *arguments))
        return started[-1]
    try:
        yield start if path or how != "cgroup" else None
    finally:
        for process in started:
            process.kill()
        if path:
            cluster.wait_until(lambda: not open(os.path.join(path, "cgroup.procs"), encoding="ascii").read(), "an empty cgroup")
            os.rmdir(path)


def an_engine_keeps_its_table_when_there_is_no_memory_for_another():
    for mib, how in ((300000 >> 10, "ulimit"), (40, "cgroup")):
        with within(mib, how) as start:
            if not start:
                return "no cgroup of memory can be made here"
            engine = start("abdada", "uci")
            engine.send("uci")
            said, _ = engine.wait_line(r"^option name Hash type spin default (\d+) min 1 max (\d+)$")
            check(int(said[1]) <= int(said[2]) < mib - 16, said[0])
            engine.send("setoption name Hash value 1024\ngo depth 3")
            engine.wait_line("^bestmove [a-h]")
            errors = [line for line in engine.lines["out"] if "error" in line]
            equal(errors, [f"info string error: option 'Hash' is a number from 1 to {said[2]}, not '1024'"])
            engine.send(f"setoption name Hash value {said[2]}\ngo depth 4")
            _, at = engine.wait_line("^info depth 4 ")
            engine.wait_line("^bestmove [a-h]", begin=at)
            if how == "ulimit":
                engine.send("setoption name Threads value 256\nisready\ngo depth 5")
                _, at = engine.wait_line(f"^info string error: .*; Hash stays {said[2]}, Threads 1$", begin=at)
                _, at = engine.wait_line("^readyok$", begin=at)
                engine.wait_line("^bestmove [a-h]", begin=at)
            engine.send("quit")
            equal(engine.wait(), 0, engine.tail())
    return None


def a_search_that_has_no_memory_does_not_start():
    """All that it is going to take counts; what is within it searches, and is not killed."""
    ffo = os.path.join(ROOT, "tests/data/othello/ffo.obf")
    nowhere = ["--servers", f"127.0.0.1:{cluster.free_port()}"]
    rows = [(100, 1, ["abdada", "solve", "-j", "1", "--hash", "64", "--private", "--obf", ffo]),
            (100, 1, ["ttworker", *nowhere, "--hash", "64", "--private"]), (64, 1, ["abdada", "bench"]),
            (64, 1, ["abdada", "sim", "--hash", "256", "--workers", "16", "--depth", "4"]),
            (64, 1, ["abdada", "gtp", "--hash", "1"]), (64, 1, ["ttserver", "--listen", "127.0.0.1:0", "--memory", "60M"]),
            (64, 1, ["abdada", "uci", "--hash", "64"]), (64, 1, ["abdada", "analyse", "--hash", "64", "--depth", "3", POSITION]),
            (100, 0, ["abdada", "solve", "--hash", "8", ENDING]),
            (100, 0, ["abdada", "analyse", "--hash", "64", "--depth", "3", POSITION]),
            (100, 0, ["abdada", "sim", "--hash", "32", "--workers", "4", "--depth", "4"])]
    for mib in sorted({row[0] for row in rows}):
        with within(mib, "cgroup") as start:
            if not start:
                return "no cgroup of memory can be made here"
            for status, words in (row[1:] for row in rows if row[0] == mib):
                process = start(*words)
                process.close_input()
                equal(process.wait(), status, words, process.tail())
                said = process.lines["err"]
                if status == 1:
                    check(len(said) == 1 and "that this cgroup (container) leaves" in said[0], said)
            if mib == 100:
                worker = start("ttworker", *nowhere, "--hash", "8", "--private")
                worker.wait_line("^ready$")
                equal(worker.end(), 0, worker.tail())
    with within(192, "cgroup") as start:  # what another one has there is taken
        words = "ttworker", *nowhere, "--hash", "64", "--private"
        worker = start(*words)
        worker.wait_line("^ready$")
        second = start(*words)
        equal(second.wait(), 1, second.tail())
        check("that this cgroup (container) leaves" in second.err(), second.tail())
        equal(worker.end(), 0, worker.tail())
    return None


def a_proof_that_has_no_memory_is_refused():
    with tempfile.TemporaryDirectory(prefix="abdada-want-") as folder, within(64, "ulimit") as start:
        proof = os.path.join(folder, "proof")
        equal(run("abdada", "solve", "--hash", "4", "--proof", proof, ENDING).status, 0)
        equal(run("abdada", "check", proof).status, 0)
        check_it = start("abdada", "check", proof)
        check_it.close_input()
        equal(check_it.wait(), 2, check_it.tail())
        equal(check_it.lines["err"], [f"abdada check: {proof}: it needs more memory than --memory or this machine (container) allows"])


TESTS = [a_proof_that_has_no_memory_is_refused, an_engine_keeps_its_table_when_there_is_no_memory_for_another, a_search_that_has_no_memory_does_not_start,
         a_shards_disk_fails_at_each_call, a_proofs_disk_fails_at_each_call, a_shard_starts_or_says_why_not, shards_with_keys_start_or_say_why_not, a_worker_starts_or_says_why_not,
         a_search_ends_or_says_why_not, a_search_over_dead_shards_ends_or_says_why_not, a_solve_ends_or_says_why_not,
         an_engine_starts_or_says_why_not, a_board_program_starts_or_says_why_not, those_who_watch_shards_end_or_say_why_not,
         keys_are_made_or_it_is_said_why_not, a_launcher_starts_or_says_why_not]

if __name__ == "__main__":
    if not os.access(WANT, os.R_OK):
        print(f"Bail out! {WANT} is not built: make tools")
        sys.exit(1)
    sys.exit(main(TESTS, programs=("ttserver", "ttworker", "abdada"), unstable=STARVED))
