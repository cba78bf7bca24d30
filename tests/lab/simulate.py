"""Runs `abdada sim`, one process a run, a few side by side; each distinct run is made once."""
import concurrent.futures
import hashlib
import json
import os
import re
import subprocess
import sys
import threading

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.environ.get("BIN", os.path.join(ROOT, "bin"))
ABDADA = os.path.join(BIN, "abdada")


class Simulator:
    """Takes runs as (position, options) and gives their rows by number of workers.

    position: a FEN or "tree:..."; options: a dict of `abdada sim` options without their dashes, a
    value of True for a flag. All runs of a table are asked for first, then read, so that they can
    go side by side.

    Runs are kept in the file `kept`, a JSON line each, and found there again: a lab that was interrupted goes on. A
    run is the same if the program is, byte for byte, and its arguments.
    """

    def __init__(self, jobs, kept=None):
        self.pool = concurrent.futures.ThreadPoolExecutor(jobs)
        self.runs, self.kept, self.old, self.lock = {}, kept, {}, threading.Lock()
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
        with open(ABDADA, "rb") as file:
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
        words = [ABDADA, "sim", "--json"]
        for name, value in sorted(options.items()):
            words += [f"--{name}"] if value is True else [f"--{name}", str(value)]
        return words + (["--game", position] if position.startswith("tree:") else [position])

    def ask(self, position, options):
        words = self.command(position, options)
        key = tuple(words)
        if key not in self.runs:
            self.runs[key] = self.pool.submit(self._run, words)
        return self.runs[key]

    def _run(self, words):
        rows = self.old.get(tuple(words[1:]))
        is_new = rows is None
        if is_new:
            done = subprocess.run(words, capture_output=True, text=True)
            if done.returncode != 0:
                raise RuntimeError(f"{' '.join(words)}: {done.stderr.strip()}")
            rows = [json.loads(line) for line in done.stdout.splitlines()]
        if not rows or not all(row["answered"] for row in rows):
            raise RuntimeError(f"{' '.join(words)}: no answer")
        if len({row["score"] for row in rows}) != 1:  # strict: one score whatever the cluster
            print(f"SCORES DIFFER: {' '.join(words)}", file=sys.stderr)
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

    def overheads(self, workers):
        """Search, communication and synchronization overhead of the sums (lab.h)."""
        one = self.seconds(1)
        search = self.nodes(workers) / self.nodes(1) - 1
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
