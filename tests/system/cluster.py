"""Clusters of processes for tests: start, wait for a condition, kill, and leave nothing behind.

BIN: folder of the binaries (default ./bin). SHORT=1: the short form of each test. QUICK=1: of some programs only their
quick tests, in the short form. ONLY=PATTERN: the tests whose names match, as in a shell.
Nothing here sleeps for a guessed time: wait_line and wait_until wait for a line or a condition, and fail when it does
not come in time.
"""
import atexit
import ctypes
import fcntl
import fnmatch
import functools
import glob
import itertools
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import client  # noqa: E402
from network import free_port  # noqa: E402,F401

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.environ.get("BIN", os.path.join(ROOT, "bin"))
QUICK = os.environ.get("QUICK") == "1"
SHORT = QUICK or os.environ.get("SHORT") == "1"
HEARTBEAT_MS = 300
SLOW_HEARTBEAT_MS = 3000  # a process that gets no CPU for some seconds keeps its sessions
SLOWNESS = float(os.environ.get("SLOWNESS", "1"))  # of this machine now, as tests/run.py measured it
SLACK = float(os.environ.get("SLACK", "10")) * SLOWNESS  # for promised times
BUILD = next((part for part in os.path.normpath(BIN).split(os.sep) if part in ("dev", "tsan")), "release")
SANITIZED = BUILD != "release"
SLOW_BUILD = {"dev": 2, "tsan": 5}.get(BUILD, 1)  # how much a sanitizer slows a program
PATIENCE = 150.0 * SLOWNESS * SLOW_BUILD  # seconds that anything may take; conditions come much earlier
STARVED = "on a busy machine a process may get no CPU for so long that others rightly take it for dead"
LIBC = ctypes.CDLL(None)
PR_SET_PDEATHSIG = 1
for number in signal.SIGINT, signal.SIGQUIT:  # what a shell starts in the background ignores them, and so would our programs
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, signal.SIG_DFL)
live = set()  # processes that must not outlive this one
host_tables = set()  # files in shared memory of processes that were killed
stalls = []  # when a thread of ours on one of the CPUs was let run too late, and by how many seconds


class Failure(Exception):
    """A check failed."""


def check(condition, *what):
    if not condition:
        raise Failure(" ".join(map(str, what)) or "condition does not hold")


def equal(got, expected, *what):
    check(got == expected, "got", repr(got), "expected", repr(expected), *what)


def right(got, expected, *what):
    """The same of what a search answers: however busy the machine is, a wrong one is a fault (tests/run.py)."""
    check(got == expected, "wrong answer:", repr(got), "expected", repr(expected), *what)


def wait_until(condition, what, timeout=PATIENCE):
    """Polls until the condition holds; returns its value."""
    end = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise Failure(f"not within {timeout:g} s: {what}")
        time.sleep(0.005)


def promised(what, seconds, limit):
    """Prints a time that is promised. Nothing but a defect takes SLACK times as long, apart from the time the machine stood still."""
    print(f"# {what}: {seconds:.2f} s, promised {limit:g} s{', LATE' if seconds > limit else ''}")
    check(seconds < limit * SLACK + stalled(time.monotonic() - seconds), what, "took", seconds)


def watch_stalls(cpu):
    os.sched_setaffinity(0, {cpu})  # of this thread; a virtual machine may lose one CPU for a minute
    while True:
        begin = time.monotonic()
        time.sleep(0.05)
        if (now := time.monotonic()) > begin + 0.1:
            stalls.append((now, now - begin - 0.05))


def stalled(begin):
    """The longest time from then on that the machine let a thread of ours wait, in seconds: not the fault of a program."""
    return max((seconds for ended, seconds in stalls if ended > begin), default=0.0)


def needs(why):
    """The test is skipped where there is a reason why it cannot run: why() is its text, or None."""
    def decorate(test):
        @functools.wraps(test)
        def wrapped():
            return why() or test()
        return wrapped
    return decorate


def scratch(name):
    """A new folder, which goes with this process."""
    path = tempfile.mkdtemp(prefix=f"abdada-{name}-")
    atexit.register(shutil.rmtree, path, True)
    return path


def kill_all():
    for process in list(live):
        process.kill()
    sweep_host_tables()


def sweep_host_tables():
    """Removes the tables in shared memory that our killed processes left and none uses: of others' tests may be there."""
    for path in host_tables:
        try:
            with open(path, "r+b") as file:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.fstat(file.fileno()).st_size > 0:
                    os.unlink(path)
        except OSError:  # in use, or removed meanwhile
            pass


def on_signal(number, _frame):
    for process in list(live):  # only this much is safe in a signal handler
        if process.running():
            os.killpg(process.popen.pid, signal.SIGKILL)
    os._exit(128 + number)


atexit.register(kill_all)
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, on_signal)


def path_of(program):
    return os.path.join(BIN, program)


def positions(epd=os.path.join(ROOT, "tests/data/chess/bratko-kopec.epd")):
    """The FENs of an EPD file, without counters."""
    with open(epd, encoding="utf-8") as lines:
        return [" ".join(line.split()[:4]) for line in lines if line.strip()]


STRICT = ["--strict", "--select", "plain"]


@functools.lru_cache(None)
def sequential(position, depth):
    return ask_alone(position, "--depth", depth, "--algorithm", "sequential", *STRICT)


@functools.lru_cache(None)
def long_search(seconds):
    """(position, depth, score) of a sequential search that takes at least so long here."""
    some = [positions()[i] for i in (1, 15, 10, 4)]  # each takes about twice as long as the one before
    for depth in itertools.count(6):
        for position in some:
            found = sequential(position, depth)
            if found["cpu_s"] >= seconds:
                return position, depth, found["score"]


def state_of(task):
    """The letter of proc(5) for a thread's folder in /proc; X where it is gone."""
    try:
        with open(f"{task}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0]
    except OSError:
        return "X"


def children(pid):
    """Of the main thread of that process, or none if it is gone."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            return [int(number) for number in file.read().split()]
    except OSError:
        return []


class Process:
    """A running program and its output so far. It has a process group of its own and dies with this process; it runs
    on a network.Host if one is given. files: its limits of open files, soft and hard."""

    def __init__(self, program, *arguments, host=None, nice=0, files=None):
        self.name, self.host, self.nice, self.files = program, host, nice, files
        self.lines = {"out": [], "err": []}
        self.changed = threading.Condition()
        self.begin, self.end_time = time.monotonic(), None
        self.popen = subprocess.Popen(
            [path_of(program), *map(str, arguments)], cwd=ROOT, start_new_session=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            preexec_fn=self.settle)
        live.add(self)
        self.readers = [threading.Thread(target=self.read, args=(name, pipe), daemon=True)
                        for name, pipe in (("out", self.popen.stdout), ("err", self.popen.stderr))]
        for reader in self.readers:
            reader.start()

    def settle(self):
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if self.host:
            self.host.join()
        if self.files:
            resource.setrlimit(resource.RLIMIT_NOFILE, self.files)
        if self.nice:
            os.nice(self.nice)
            if os.access("/proc/self/autogroup", os.W_OK):  # else it counts inside its own session only
                with open("/proc/self/autogroup", "w") as file:
                    file.write(str(self.nice))

    def read(self, name, pipe):
        for line in pipe:
            with self.changed:
                self.lines[name].append(line.decode("utf-8", "replace").rstrip("\r\n"))
                self.changed.notify_all()
        pipe.close()
        with self.changed:
            self.end_time = time.monotonic()
            self.changed.notify_all()

    def running(self):
        return self.popen.poll() is None

    def wait_line(self, pattern, stream="out", begin=0, timeout=PATIENCE):
        """(match, index after it) of the first line from `begin` on that has the pattern."""
        wanted, end, at = re.compile(pattern), time.monotonic() + timeout, begin
        reader = self.readers[0 if stream == "out" else 1]
        with self.changed:
            while True:
                ended = not reader.is_alive()
                lines = self.lines[stream]
                while at < len(lines):
                    found = wanted.search(lines[at])
                    at += 1
                    if found:
                        return found, at
                left = end - time.monotonic()
                if ended or left <= 0:
                    raise Failure(f"{self.name} {'ended' if ended else 'runs'} without "
                                  f"/{pattern}/: {self.tail()}")
                self.changed.wait(min(left, 0.1))

    def send(self, text):
        watchdog = threading.Timer(PATIENCE, self.popen.kill)  # if it does not read any more
        watchdog.start()
        try:
            self.popen.stdin.write(text if isinstance(text, bytes) else (text + "\n").encode())
            self.popen.stdin.flush()
        except BrokenPipeError:
            raise Failure(f"{self.name} is gone: {self.tail()}") from None
        finally:
            watchdog.cancel()

    def close_input(self):
        try:
            self.popen.stdin.close()
        except BrokenPipeError:
            pass

    def host_tables(self):
        """The files of the tables that it shares with other processes."""
        try:
            with open(f"/proc/{self.popen.pid}/maps", encoding="utf-8", errors="replace") as file:
                return set(re.findall(r"/dev/shm/abdada-\S+", file.read()))
        except OSError:  # it is gone
            return set()

    def send_signal(self, number):
        if self.running():
            if number == signal.SIGKILL:
                host_tables.update(self.host_tables())
            self.popen.send_signal(number)

    def stop(self):
        """SIGSTOP, and no thread of it runs any more. SIGCONT by send_signal."""
        self.send_signal(signal.SIGSTOP)
        wait_until(lambda: all(state_of(task) in "TXZ" for task in glob.glob(f"/proc/{self.popen.pid}/task/*")),
                   f"{self.name} to stop")

    def wait(self, timeout=PATIENCE):
        """Exit status, with all output read."""
        try:
            status = self.popen.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            raise Failure(f"{self.name} does not end: {self.tail()}") from None
        for reader in self.readers:
            reader.join(5)
        self.close_input()
        live.discard(self)
        return status

    def end(self, number=signal.SIGTERM, timeout=PATIENCE):
        self.send_signal(number)
        return self.wait(timeout)

    def kill(self):
        if self.running():  # not yet reaped: its number is still its own
            host_tables.update(self.host_tables())
            os.killpg(self.popen.pid, signal.SIGKILL)
        self.wait()

    def resident_bytes(self):
        """Bytes in memory; 0 when the process is gone."""
        try:
            with open(f"/proc/{self.popen.pid}/statm", encoding="ascii") as file:
                return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")
        except OSError:
            return 0

    def tail(self):
        """The last lines of its output, for a failure's message."""
        return {name: [line[:200] for line in lines[-20:]] for name, lines in self.lines.items()}

    def seconds(self):
        return self.end_time - self.begin

    def out(self):
        return "\n".join(self.lines["out"])

    def err(self):
        return "\n".join(self.lines["err"])

    def said(self):
        """The lines of stderr without those of progress, which a slow search has each second."""
        return [line for line in self.lines["err"] if not re.match(r"  (score|depth|\d+ of \d+ positions) ", line)]


def run(program, *arguments, timeout=PATIENCE):
    """A process that has ended: .status, .out(), .err(), .seconds()"""
    process = Process(program, *arguments)
    process.close_input()
    process.status = process.wait(timeout)
    return process


class Shard(Process):
    def __init__(self, port=0, *options, host=None, memory="32M", heartbeat_ms=HEARTBEAT_MS, keys=None):
        """keys: a directory as `abdada keygen` makes it."""
        at = [f"{host.address}:{port}", "--insecure"] if host else [f"127.0.0.1:{port}"]
        super().__init__("ttserver", "--listen", *at, "--memory", memory,
                         "--heartbeat", heartbeat_ms, *(["--keys", keys] if keys else []), *options, host=host)
        self.keys = keys
        self.address = self.wait_line(r"^ready (\S+)$")[0][1]
        self.port = int(self.address.rsplit(":", 1)[1])

    def query(self, how, timeout=PATIENCE):
        """What `how` returns for a client of this shard. It begins anew where a busy machine stopped us for so long that the
        shard has ended the session."""
        for is_last in 4 * [False] + [True]:
            begin = time.monotonic()
            watch = client.Client(self.address, timeout, self.keys and client.keys_of(self.keys, "administrator"))
            try:
                return how(watch.hello(name="test"))
            except client.Refused as why:
                if why.code != client.NO_SESSION or is_last or time.monotonic() - begin < 3 * watch.heartbeat_ms / 1000:
                    raise
            finally:
                watch.bye()
                watch.close()
        return None

    def stats(self, timeout=PATIENCE):
        return self.query(client.Client.stats, timeout)

    def working(self):
        """{worker's name: job} of the workers that search one."""
        return {m["name"]: m["job"] for m in self.query(client.Client.members)
                if m["job"] and m["role"] == client.WORKER}


def at(place):
    """The option that names the table: shards, or a Redis."""
    return ["--table" if "://" in place else "--servers", place]


class Worker(Process):
    def __init__(self, place, threads=1, name=None, host=None, hash_mib=64, private=False):
        """place: the addresses of the shards, or a Redis's."""
        named = (["--name", name] if name else []) + (["--private"] if private else [])
        super().__init__("ttworker", *at(place), "--threads", threads, "--hash", hash_mib, *named, host=host)
        self.wait_line("^ready$")


class Cluster:
    """Shards, each a process of its own, and workers: `with Cluster() as c: c.ask(...)`. With the address of a Redis as
    `table` there are no shards.

    new_host=network.Host puts each of them, and the front-end, on a host of its own; private workers share no table.
    """

    def __init__(self, shards=2, workers=2, options=(), new_host=lambda: None,
                 heartbeat_ms=HEARTBEAT_MS, private=False, table=None):
        self.front_host = new_host()
        self.shards = [Shard(0, *options, host=new_host(), heartbeat_ms=heartbeat_ms)
                       for _ in range(0 if table else shards)]
        self.servers = table or ",".join(s.address for s in self.shards)
        self.workers = [Worker(self.servers, name=f"w{i}", host=new_host(), private=private)
                        for i in range(workers)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.workers + self.shards:
            process.kill()
        for host in {p.host for p in self.workers + self.shards} | {self.front_host}:
            if host:
                host.close()

    def start(self, *arguments):
        """All search one position: what is tested is how."""
        return start(*at(self.servers), "--fresh", "--positions", "together", *arguments, host=self.front_host)

    def ask(self, *arguments):
        return answers(self.start(*arguments))

    def traffic(self):
        """(messages, bytes) in and out of the shards so far. Without hosts of their own: all bytes of the loopback."""
        figures = [shard.stats() for shard in self.shards]
        ports = {shard.host.port if shard.host else "lo" for shard in self.shards}
        total = 0
        with open("/proc/thread-self/net/dev", encoding="utf-8") as file:
            for line in file:
                name, _, rest = line.partition(":")
                if name.strip() in ports:
                    counts = rest.split()
                    total += int(counts[0]) + (int(counts[8]) if name.strip() != "lo" else 0)
        return sum(f["messages"] + f["sent"] for f in figures), total

    def during(self, action):
        """(what the action returns, messages, bytes): in and out of the shards meanwhile."""
        before = self.traffic()
        found = action()
        after = self.traffic()
        return found, after[0] - before[0], after[1] - before[1]

    def wait_searching(self, front, asks=20):
        """Waits until every shard has the job and has been asked by the running search."""
        def searching():
            check(front.running(), "the search ended before it was seen:", front.err())
            figures = [s.stats() for s in self.shards if s.running()]
            return (all(f["jobs"] >= 1 for f in figures) and
                    sum(f["asks"] for f in figures) >= asks)
        before = sum(s.stats()["asks"] for s in self.shards if s.running())
        asks += before
        wait_until(searching, "shards that are asked")


# Of `abdada top`: how long a busy machine may take. It costs nothing where every shard answers.
PATIENT = ("--wait", "10000")


def top(place, *options):
    """(exit status, {kind: [objects]}) of one run of `abdada top`."""
    done = run("abdada", "top", "--once", "--json", *at(place), *(options or PATIENT))
    found = {"shard": [], "job": [], "host": [], "worker": [], "front": [], "client": [], "total": []}
    for line in done.lines["out"]:
        row = json.loads(line)
        found[row["kind"]].append(row)
    return done.status, found


def start(*arguments, host=None):
    process = Process("abdada", "analyse", "--json", *arguments, host=host)
    process.close_input()
    return process


def answers(process):
    """The JSON objects of an analysis that must succeed and print nothing else."""
    status = process.wait()
    check(status == 0, "exit status", status, process.tail())
    return [json.loads(line) for line in process.lines["out"]]


def ask(*arguments):
    return answers(start(*arguments))


def ask_alone(*arguments):
    """The answer of a front-end without servers, and its CPU time as `cpu_s`, which does not grow on a busy machine."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    found, = ask(*arguments)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {**found, "cpu_s": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime}


def main(tests, programs=("ttserver",), unstable=None):
    """Runs the tests in order, TAP on stdout. A test returns a text to be skipped. They need the programs in BIN.
    unstable: why the machine alone can fail one of them; the runner gives such a program a second try."""
    failed = 0
    tests = [test for test in tests if fnmatch.fnmatchcase(test.__name__, os.environ.get("ONLY", "*"))]
    if not all(os.access(path_of(program), os.X_OK) for program in programs):
        print(f"Bail out! no programs in {BIN}: set BIN")
        return 1
    if not tests:
        print("Bail out! no test here matches ONLY")
        return 1
    for cpu in os.sched_getaffinity(0):
        threading.Thread(target=watch_stalls, args=(cpu,), daemon=True).start()
    print(f"1..{len(tests)}" + (f"\n# unstable: {unstable}" if unstable else ""))
    for number, test in enumerate(tests, 1):
        name, begin, note, trace = test.__name__.replace("_", " "), time.monotonic(), "", ""
        try:
            skipped = test()
            if skipped:
                note = f" # SKIP {skipped}"
            word = "ok"
        except Exception as error:  # the others go on
            failed += 1
            word = "not ok"
            trace = "".join(traceback.format_exception(type(error), error, error.__traceback__))
            trace = "# " + trace.strip().replace("\n", "\n# ") + "\n\n"  # and what the next test says is no part of it
        finally:
            kill_all()
        print(f"{word} {number} - {name}{note}\n# {time.monotonic() - begin:.1f} s\n{trace}", end="", flush=True)
    return 1 if failed else 0
