#!/usr/bin/python3
"""Want: each call by which a program takes memory, a descriptor or a thread when it starts fails once, in turn. The
program says one line and ends with status 1, or goes on with less; it neither crashes nor hangs, and leaves nothing in
shared memory. TAP. Of the release build: sanitizers have an allocator of their own.

    BIN=build/release/bin tests/system/test_want.py
"""
import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile

import network

REASON = network.why_not()  # before any thread and socket
import cluster  # noqa: E402
from cluster import BIN, ROOT, Failure, Process, Shard, check, equal, main, path_of, run  # noqa: E402

WANT = os.path.join(ROOT, BIN, "../tools/want.so")
MOST = 5000  # calls of one start
POSITION = "r1bq1rk1/pp2bppp/2n1pn2/2pp4/3P1B2/2PBPN2/PP1N1PPP/R2QK2R w KQ - 0 8"
ENDING = "--XXXXX--OOOXX-O-OOOXXOX-OXOXOXXOXXXOXXX--XOXOXX-XXXOOO--OOOOO-- X"


class Start:
    """A program, whose call number `at` fails. Starts on a host of its own, where others' tests leave nothing."""

    def __init__(self, host, at, program, *arguments):
        self.says = tempfile.NamedTemporaryFile(prefix="abdada-want-")
        self.process = Process("/usr/bin/env", f"WANT_AT={at}", f"WANT_SAYS={self.says.name}", f"LD_PRELOAD={WANT}",
                               path_of(program), *arguments, host=host)

    def said(self, pattern):
        with open(self.says.name, encoding="ascii") as file:
            found = re.findall(pattern, file.read(), re.M)
        self.says.close()
        return found

    def failed(self):
        return self.said(r"^(?!calls)(\S+ \S+ \S+)$")


def place_of(program, failed):
    """The functions whose call failed, for a failure's message."""
    what, file, place = failed[0].split()
    done = subprocess.run(["addr2line", "-fie", path_of(program) if file == "program" else "/dev/null", place],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return f"{what} in {' < '.join(done.stdout.decode().split()[::2]) or file}"


def in_turn(program, *arguments, ready=None, text=""):
    """All calls of a start, in turn. ready: what a program that goes on says then; else it ends by itself, after `text`."""
    host = None if REASON else network.new_host()

    def one(at):
        start = Start(host, at, program, *arguments)
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
    calls = sum(map(int, first.said(r"^calls (\d+)$")))
    check(0 < calls <= MOST, "calls of a start", calls)
    ended, wrong = 0, []
    for at in range(1, calls + 1):
        start, status = one(at)
        failed = start.failed()
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


TESTS = [a_shard_starts_or_says_why_not, shards_with_keys_start_or_say_why_not, a_worker_starts_or_says_why_not,
         a_search_ends_or_says_why_not, a_search_over_dead_shards_ends_or_says_why_not, a_solve_ends_or_says_why_not,
         an_engine_starts_or_says_why_not]

if __name__ == "__main__":
    if not os.access(WANT, os.R_OK):
        print(f"Bail out! {WANT} is not built: make tools")
        sys.exit(1)
    sys.exit(main(TESTS, programs=("ttserver", "ttworker", "abdada")))
