"""Runs `abdada sim`, one process a run, a few side by side; each distinct run is made once."""
import concurrent.futures
import contextlib
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import threading

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
BIN = os.environ.get("BIN", os.path.join(ROOT, "bin"))
ABDADA = os.path.join(BIN, "abdada")
MEMORY_MIB = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") * 3 // 4 >> 20
SOLVER_MIB = 16  # of each searcher of Othello


def tables_mib(options):
    """What the tables of a run take: of all shards, and of all hosts."""
    hosts = max(int(n) for n in str(options.get("hosts", options.get("workers", 16))).split(","))
    workers = hosts * options.get("threads", 1)
    shards = 1 if options.get("constant") else -(-workers // 16)
    solvers = SOLVER_MIB * workers if options.get("game") == "othello" else 0
    return options.get("hash", 64) * shards + options.get("local", 1024) * hosts // 1024 + solvers


class Memory:
    """Runs side by side take no more than there is: one waits for the others, and is made alone if it must."""

    def __init__(self, limit_mib):
        self.limit, self.used, self.changed = limit_mib, 0, threading.Condition()

    @contextlib.contextmanager
    def taken(self, mib):
        with self.changed:
            self.changed.wait_for(lambda: self.used == 0 or self.used + mib <= self.limit)
            self.used += mib
        try:
            yield
        finally:
            with self.changed:
                self.used -= mib
                self.changed.notify_all()


def words_of(options):
    """On a command line."""
    words = []
    for name, value in sorted(options.items()):
        option = "--" + name.replace("_", "-")
        words += [option] if value is True else [option, str(value)]
    return words


class Simulator:
    """Takes runs as (position, options) and gives their rows by number of workers.

    position: a FEN, a board (with the option "game"), or "tree:..."; options: a dict of `abdada sim` options without their dashes, a
    value of True for a flag. All runs of a table are asked for first, then read, so that they can
    go side by side. Hosts of several threads count by their threads: 4 hosts of 8 are row 32.

    Strict searches of a position to a depth have one score, whatever the cluster and its options: `unequal` has the
    commands of those that differ from the first.

    Runs are kept in the file `kept`, a JSON line each, and found there again: a lab that was interrupted goes on. A
    run is the same if the program is, byte for byte but for its commit, and its arguments.
    """

    def __init__(self, jobs, kept=None):
        self.pool = concurrent.futures.ThreadPoolExecutor(jobs)
        self.runs, self.kept, self.old, self.lock = {}, kept, {}, threading.Lock()
        self.memory, self.scores, self.unequal = Memory(MEMORY_MIB), {}, []
        self.program = self._program()
        if kept and os.path.exists(kept):
            with open(kept, "r+", encoding="utf-8") as file:
                text = file.read()
                for line in text.splitlines():
                    self._recall(line)
                if not text.endswith("\n"):
                    file.write("\n")

    @staticmethod
    def _program():
        """Of all in it but its commit: one that changes documents alone makes no other program."""
        with tempfile.TemporaryDirectory() as folder:
            stripped = os.path.join(folder, "abdada")
            done = subprocess.run(["objcopy", "-S", "-R", ".about", "-R", ".note.gnu.build-id", ABDADA, stripped],
                                  stderr=subprocess.DEVNULL, check=False)
            with open(stripped if done.returncode == 0 else ABDADA, "rb") as file:  # it may be a script
                return hashlib.sha256(file.read()).hexdigest()

    def _recall(self, line):
        try:
            run = json.loads(line)
        except ValueError:
            return  # the lab was stopped while it wrote
        if run["program"] == self.program:
            self.old[tuple(run["arguments"])] = run["rows"]

    def _keep(self, words, rows):
        with self.lock, open(self.kept, "a", encoding="utf-8") as file:
            file.write(json.dumps({"program": self.program, "arguments": words[1:], "rows": rows}) + "\n")

    @staticmethod
    def command(position, options):
        return [ABDADA, "sim", "--json", *words_of(options)] + (["--game", position] if position.startswith("tree:") else [position])

    def ask(self, position, options):
        words = self.command(position, options)
        key = tuple(words)
        if key not in self.runs:
            self.runs[key] = self.pool.submit(self._run, words, position, options)
        return self.runs[key]

    def _compare(self, words, position, depth, rows):
        with self.lock:
            first = self.scores.setdefault((position, depth), rows[0]["score"])
            if any(row["score"] != first for row in rows):
                self.unequal.append(" ".join(words))
                print(f"SCORES DIFFER: {' '.join(words)}", file=sys.stderr)

    def _run(self, words, position, options):
        rows = self.old.get(tuple(words[1:]))
        is_new = rows is None
        if is_new:
            with self.memory.taken(tables_mib(options)):
                done = subprocess.run(words, capture_output=True, text=True)
            if done.returncode != 0:
                raise RuntimeError(f"{' '.join(words)}: {done.stderr.strip()}")
            rows = [json.loads(line) for line in done.stdout.splitlines()]
        if not rows or not ("time" in options or all(row["answered"] for row in rows)):
            raise RuntimeError(f"{' '.join(words)}: no answer")
        if ("depth" in options or "solve" in options) and "loose" not in options and options.get("select") != "full":
            self._compare(words, position, options.get("depth", "solve"), rows)
        if is_new and self.kept and self._program() == self.program:  # it may have been built again meanwhile
            self._keep(words, rows)
        return {row["workers"]: row for row in rows}

    def rows(self, position, options):
        return self.ask(position, options).result()

    def sums(self, positions, options):
        """The rows of several positions added up, and beside it the list of them."""
        return self.sums_of([(position, options) for position in positions])

    def sums_of(self, runs):
        """The same of (position, options), where the positions differ in their options."""
        for position, options in runs:
            self.ask(position, options)
        return Sums([self.rows(position, options) for position, options in runs])

    def close(self):
        self.pool.shutdown(cancel_futures=True)


class Sums:
    """Several positions: speedups as ratio of summed times, and as mean of the ratios."""

    def __init__(self, each):
        self.each = each

    def seconds(self, workers):
        return sum(rows[workers]["seconds"] for rows in self.each)

    def nodes(self, workers):
        return sum(rows[workers]["nodes"] for rows in self.each)

    def ratio(self, few, many, reference=None):
        """T(few) / T(many), of sums. reference: whose T(few), if not one's own."""
        return (reference or self).seconds(few) / self.seconds(many)

    def mean(self, few, many, reference=None):
        pairs = zip((reference or self).each, self.each)
        ratios = [one[few]["seconds"] / own[many]["seconds"] for one, own in pairs]
        return sum(ratios) / len(ratios)

    def over_time(self, workers, field):
        """The mean of what is a rate or a load: the long searches weigh most."""
        return sum(rows[workers][field] * rows[workers]["seconds"] for rows in self.each) / self.seconds(workers)

    def of_nodes(self, workers, field):
        """The part of all nodes that a count of them is."""
        return sum(rows[workers][field] for rows in self.each) / self.nodes(workers)

    def search_overhead(self, few, many, reference=None):
        return self.nodes(many) / (reference or self).nodes(few) - 1

    def overheads(self, workers):
        """Search, communication and synchronization overhead of the sums (lab.h)."""
        one = self.seconds(1)
        search = self.search_overhead(1, workers)
        communication = sum(rows[workers]["communication_overhead"] * rows[1]["seconds"]
                            for rows in self.each) / one
        return search, communication, workers * self.seconds(workers) / one - 1 - search - communication


def bratko_kopec(first=1, last=24):
    """FENs of the positions, counters added."""
    path = os.path.join(ROOT, "tests/data/chess/bratko-kopec.epd")
    with open(path, encoding="utf-8") as file:
        lines = [line for line in file if line.strip()]
    found = {}
    for line in lines:
        number = int(re.search(r'id "BK\.(\d+)"', line)[1])
        found[number] = " ".join(line.split()[:4]) + " 0 1"
    return [found[n] for n in range(first, last + 1)]


def boards(name):
    """Those of a file of OBF by their comment up to the comma: "FFO #40", "move 1"."""
    with open(os.path.join(ROOT, "tests/data/othello", name), encoding="utf-8") as file:
        lines = [line.strip() for line in file if line.strip()]
    return {comment[1:].split(",")[0].strip(): board.split(";")[0] for comment, board in zip(lines[::2], lines[1::2])}
