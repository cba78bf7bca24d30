#!/usr/bin/python3
"""make demo: a cluster on this machine searches chess positions while parts of it are killed.

Keys made for it, two shards of the table (ttserver) and two workers (ttworker), each a process of its own on a free
port of the loopback, and the tool that asks (abdada analyse). Nothing of it is left behind.
"""
import ctypes
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BIN = os.environ.get("BIN", os.path.join(ROOT, "bin"))
EPD = os.path.join(ROOT, "tests/data/chess/bratko-kopec.epd")
POSITIONS = ("BK.01", "BK.06", "BK.10", "BK.12", "BK.16", "BK.19")
DEPTH = 8
LONG = "BK.20", "BK.05"  # to be killed into: the first depth that takes a while, see choose_long
LONG_MS, LONG_MAX_DEPTH = 6000, 11
PATIENCE = 60
LIBC = ctypes.CDLL(None)
PR_SET_PDEATHSIG = 1
live = []


class Trouble(Exception):
    pass


def say(text=""):
    print(text, flush=True)


def note(text):
    print("    " + text, file=sys.stderr, flush=True)


# ---- processes ----

def die_with_parent():
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def launch(program, *arguments, **pipes):
    process = subprocess.Popen([os.path.join(BIN, program), *map(str, arguments)], cwd=ROOT,
                               stdin=subprocess.DEVNULL, preexec_fn=die_with_parent,
                               universal_newlines=True, **pipes)
    live.append(process)
    return process


def kill_9(process):
    process.send_signal(signal.SIGKILL)
    process.wait()


def end_all():
    for process in live:
        if process.poll() is None:
            process.terminate()
    for process in live:
        try:
            process.wait(3)
        except subprocess.TimeoutExpired:
            kill_9(process)


def on_signal(number, _frame):
    sys.exit(128 + number)  # main's finally cleans up


def start_service(program, *arguments):
    """A process, and the line that says it is ready. What it logs goes nowhere."""
    process = launch(program, *arguments, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    watchdog = threading.Timer(PATIENCE, process.kill)
    watchdog.start()
    line = process.stdout.readline().split()
    watchdog.cancel()
    if line[:1] != ["ready"]:
        raise Trouble(f"{program} did not start")
    return process, line[-1]


class Analysis:
    """abdada analyse: its progress goes to stderr as it comes, its answers are kept."""

    def __init__(self, *arguments, on_progress=None, on_answer=None):
        self.answers, self.on_progress, self.on_answer = [], on_progress, on_answer
        self.process = launch("abdada", "analyse", "--json", "--strict", *arguments,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.threads = [threading.Thread(target=reader, daemon=True)
                        for reader in (self.read_answers, self.read_progress)]
        for thread in self.threads:
            thread.start()

    def read_answers(self):
        for line in self.process.stdout:
            self.answers.append(json.loads(line))
            if self.on_answer:
                self.on_answer(self.answers[-1])

    def read_progress(self):
        for line in self.process.stderr:
            note(line.strip())
            if self.on_progress:
                self.on_progress(line)

    def wait(self):
        status = self.process.wait(10 * PATIENCE)
        for thread in self.threads:
            thread.join()
        if status != 0 or not self.answers:
            raise Trouble(f"abdada analyse ended with exit status {status}")
        return self.answers


# ---- the show ----

def read_positions():
    with open(EPD) as file:
        return {line.split('"')[1]: line.strip() for line in file}


def score_text(answer):
    if answer["score_kind"] == "mate":
        return f"#{answer['score']}"
    return f"{answer['score'] / 100:+.2f}"


def search_alone(file):
    say(f"1. One thread, sequential search, {DEPTH} plies deep: the scores that have to come out.")
    return Analysis("--epd", file, "--depth", DEPTH, "--algorithm", "sequential",
                    on_answer=lambda a: note(f"{a['id']}  score {score_text(a)}")).wait()


def choose_long(positions):
    """(EPD line, depth, answer) of a search that lasts long enough to be killed into."""
    for depth in range(DEPTH + 1, LONG_MAX_DEPTH + 1):
        for name in LONG:
            position = " ".join(positions[name].split()[:4])
            answer = Analysis(position, "--depth", depth, "--algorithm", "sequential").wait()[0]
            answer["id"] = name
            if answer["time_ms"] >= LONG_MS:
                return position, depth, answer
    return position, depth, answer


def search_together(file, servers):
    say("\n3. The same positions over the cluster. Three searchers now work in one tree: the two\n"
        "   workers and `abdada` itself; what one has searched the others find in the table.")
    return Analysis("--epd", file, "--depth", DEPTH, "--servers", servers, "--positions", "together",
                    on_answer=lambda a: note(f"{a['id']}  score {score_text(a)}  "
                                             f"{a['workers']} workers  {a['shards_up']} shards "
                                             f"up")).wait()


def search_and_kill(position, depth, servers, shard, worker):
    """Kills one worker, then one shard, each when the search says that it goes on."""
    seen, ready = [], threading.Condition()

    def progress(line):
        with ready:
            seen.append(line)
            ready.notify()

    def wait_for_progress(after, wanted):
        def there():
            return any(wanted in line for line in seen[after:]) or analysis.process.poll() is not None
        with ready:
            while not there():
                if not ready.wait(PATIENCE):
                    raise Trouble("the search says nothing")
            return len(seen)

    analysis = Analysis(position, "--depth", depth, "--servers", servers, on_progress=progress)
    at = wait_for_progress(0, "workers 2")
    alive = [analysis.process.poll() is None]
    kill_9(worker)
    say("   >> kill -9: one worker is gone. Its unfinished nodes are free for the others again.")
    wait_for_progress(at, "depth")
    alive.append(analysis.process.poll() is None)
    kill_9(shard)
    say("   >> kill -9: one shard is gone, with half of the table. The other takes its keys.")
    answer = analysis.wait()[0]
    return answer, alive


def print_table(rows):
    say(f"\n{'position':<10}{'depth':>5}  {'alone':>8}  {'cluster':>8}  {'same':<5}{'move':<7}"
        f"{'Mnodes':>8}{'seconds':>9}{'workers':>9}{'shards':>8}")
    for alone, found, remark in rows:
        say(f"{alone['id']:<10}{found['depth']:>5}  {score_text(alone):>8}  {score_text(found):>8}  "
            f"{'yes' if is_same(alone, found) else 'NO':<5}{found['bestmove']:<7}"
            f"{found['nodes'] / 1e6:>8.2f}{found['time_ms'] / 1000:>9.2f}{found['workers']:>9}"
            f"{found['shards_up']:>5}/{found['shards']}  {remark}")


def is_same(alone, found):
    return all(alone[field] == found[field] for field in ("depth", "score", "score_kind"))


def make_keys(folder):
    """For all that is started from now on."""
    os.environ["ABDADA_KEYS"] = os.path.join(folder, "keys")
    if launch("abdada", "keygen", os.environ["ABDADA_KEYS"], stdout=subprocess.DEVNULL).wait() != 0:
        raise Trouble("abdada keygen failed")


def show(file, folder):
    positions = read_positions()
    file.write("\n".join(positions[name] for name in POSITIONS) + "\n")
    file.flush()
    begin = time.monotonic()
    say("abdada: one game tree, searched by many processes that share a table over the network.\n"
        "Scores are strict here: a position's value depends on its depth alone, so everybody has\n"
        "to come to the same one.\n")
    alone = search_alone(file.name)
    note("and one longer search, for later")
    position, depth, long_alone = choose_long(positions)

    say("\n2. A cluster on this machine: two shards of the table, two workers.\n"
        "   They let in each other, and nobody without a key (abdada keygen).")
    make_keys(folder)
    shards = [start_service("ttserver", "--listen", "127.0.0.1:0", "--memory", "64M")
              for _ in range(2)]
    servers = ",".join(address for _, address in shards)
    workers = [start_service("ttworker", "--servers", servers)[0] for _ in range(2)]
    for process, address in shards:
        note(f"ttserver {address}  process {process.pid}")
    for process in workers:
        note(f"ttworker            process {process.pid}")
    together = search_together(file.name, servers)

    say(f"\n4. A longer search ({long_alone['id']}, {depth} plies, {long_alone['time_ms'] / 1000:.1f}"
        " s alone). While it runs, parts of the cluster die.")
    killed, alive = search_and_kill(position, depth, servers, shards[1][0], workers[0])
    say("   The answer came all the same.")

    rows = [(a, t, "") for a, t in zip(alone, together)]
    rows.append((long_alone, killed, "<- a worker and a shard killed meanwhile"))
    print_table(rows)
    same = sum(is_same(a, found) for a, found, _ in rows)
    end_all()
    left = sum(process.poll() is None for process in live)
    say(f"\ndemo: {same} of {len(rows)} scores as alone, 1 worker and 1 shard killed, "
        f"{left} processes left behind, {time.monotonic() - begin:.0f} s")
    if not all(alive):
        say("demo: the long search was over before everything was killed: this machine is fast")
    say("Next: bin/abdada analyse --help, or start a cluster by hand as README.md shows.")
    return same == len(rows) and left == 0


def main():
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, on_signal)
    if not os.access(os.path.join(BIN, "abdada"), os.X_OK):
        print("demo: no programs yet: run `make` first", file=sys.stderr)
        return 1
    try:
        with tempfile.TemporaryDirectory(prefix="abdada-demo-") as folder, \
                open(os.path.join(folder, "positions.epd"), "w") as file:
            return 0 if show(file, folder) else 1
    except Trouble as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    finally:
        end_all()


if __name__ == "__main__":
    sys.exit(main())
