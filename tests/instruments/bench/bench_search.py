#!/usr/bin/python3
"""bench: the main figures of the project in one run, beside other programs where Debian has them.

Every comparison alternates its sides position by position in a random order and prints medians and the ratio run by
run, because shared machines drift. Prints one table; --json writes the rows as JSON lines.

  tests/instruments/bench/bench_search.py [--bin DIR] [--runs N] [--depth N] [--epd FILE] [--only NAME,...] [--json FILE]

Of --only: perft, speed, threads, shard, worker, curve; and, if they are named, algorithms: every parallel search by two
threads; full [--time MS]: nodes a second and depth reached at selection full with a second searcher.
"""
import argparse
import contextlib
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(ROOT, "tests", "system"))
import cluster  # noqa: E402  (starts and stops real processes)
from algorithms import PARALLEL  # noqa: E402

SUMMED = ("nodes", "busy", "deferred", "asks")
TRAFFIC = ("messages", "bytes")  # in and out of the shards, of searches that ask them


def median(values):
    return statistics.median(values)


class Bench:
    def __init__(self, options):
        self.options = options
        self.rows = []
        self.positions = cluster.positions(options.epd)

    def program(self, name):
        return os.path.join(self.options.bin, name)

    def start(self, *what):
        """Begins a search: of all positions (--epd), or of one."""
        command = [self.program("abdada"), "analyse", "--json", "--fresh", "--strict",
                   "--depth", str(self.options.depth), *what]
        if "--servers" in what:  # what is measured is several searchers at one position
            command += ["--positions", "together"]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)

    @staticmethod
    def end(process):
        """Sums of what abdada says of itself."""
        output, _ = process.communicate()
        if process.returncode != 0:
            raise subprocess.CalledProcessError(process.returncode, process.args)
        lines = [json.loads(line) for line in output.decode().splitlines()]
        if not lines:
            sys.exit("bench: a search said nothing")
        return Bench.total([{key: line[key] for key in SUMMED} |
                            {"seconds": line["time_ms"] / 1000, "waiting": line["waited"] * line["time_ms"] / 1000,
                             "scores": [line["score"]]} for line in lines])

    @staticmethod
    def total(parts):
        whole = {key: sum(part[key] for part in parts) for key in (*SUMMED, "seconds", "waiting")}
        whole["scores"] = [score for part in parts for score in part["scores"]]
        whole |= {key: sum(part.get(key, 0) for part in parts) for key in TRAFFIC}
        whole["waited"] = whole["waiting"] / whole["seconds"]
        return whole

    def analyse(self, *more):
        return self.end(self.start("--epd", self.options.epd, *more))

    def unrelated(self, position):
        """The same search by two processes at once that share nothing: about what the machine allows (their ends do not
        overlap, which flatters it by a few ms a search). Seconds are half of their mean: two searches were done in it."""
        searches = []
        try:
            for _ in range(2):
                searches.append(self.start(position))
            parts = [self.end(one) for one in searches]
            if parts[0]["scores"] != parts[1]["scores"]:
                sys.exit("bench: strict scores differ")
            return parts[0] | {"seconds": sum(part["seconds"] for part in parts) / 2 / 2}
        except BaseException:
            for one in searches:
                one.kill()
            raise

    def in_turn(self, sides):
        """Each position by all sides, one after another in a random order, so that a machine's drift over seconds meets all of
        them alike. {name: [sums over the positions, a run each]}"""
        runs = {name: [] for name in sides}
        for _ in range(self.options.runs):
            found = {name: [] for name in sides}
            for position in self.positions:
                for name in random.sample(list(sides), len(sides)):
                    found[name].append(sides[name](position))
            for name, parts in found.items():
                runs[name].append(self.total(parts))
        if len({tuple(run["scores"]) for side in runs.values() for run in side}) > 1:
            sys.exit("bench: strict scores differ")
        return runs

    def searching(self, *more):
        """A side: searches one position by a program of its own."""
        return lambda position: self.end(self.start(*more, position))

    def asking(self, clustered, *more):
        """The same over shards, with what went in and out of them, start and end of the program included."""
        def search(position):
            total, messages, octets = clustered.during(
                lambda: self.end(self.start("--servers", clustered.servers, *more, position)))
            return total | {"messages": messages, "bytes": octets}
        return search

    def alternate(self, a, b):
        """Runs a and b in turn: medians of both and of their ratio, pair by pair; its least and greatest."""
        first, second = [], []
        for _ in range(self.options.runs):
            first.append(a())
            second.append(b())
        ratio = [x / y for x, y in zip(first, second)]
        return median(first), median(second), median(ratio), min(ratio), max(ratio)

    def compare(self, what, a, b, wanted, note="", b_over_a=False):
        """A row of medians of seconds and of the ratio a/b, or b/a, of the runs side by side."""
        ratio = [(y["seconds"] / x["seconds"]) if b_over_a else (x["seconds"] / y["seconds"]) for x, y in zip(a, b)]
        self.row(what, f"{median([x['seconds'] for x in a]):.2f}", f"{median([y['seconds'] for y in b]):.2f}",
                 f"{median(ratio):.2f} ({min(ratio):.2f}-{max(ratio):.2f})", wanted, note)

    def row(self, what, a, b, ratio, wanted, note=""):
        self.rows.append({"what": what, "a": a, "b": b, "ratio": ratio, "wanted": wanted, "note": note})
        print(f"{what:<58} {a:>12} {b:>12} {ratio:>22}  {wanted:<14} {note}", flush=True)

    # ---- the measurements ----

    def perft(self):
        def ours():
            done = subprocess.run([self.program("abdada"), "perft", "--depth", "6", "--json"],
                                  stdout=subprocess.PIPE, check=True)
            line = json.loads(done.stdout)
            assert line["nodes"] == 119060324, line
            return line["time_ms"] / 1000

        stockfish = shutil.which("stockfish") or "/usr/games/stockfish"
        if not os.path.exists(stockfish):
            self.row("perft 6, s: ours", f"{median([ours() for _ in range(self.options.runs)]):.3f}",
                     "-", "-", "<= stockfish", "stockfish not installed: make deps-bench")
            return

        def theirs():
            """Time from the command to its answer, the engine being up."""
            with subprocess.Popen([stockfish], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as p:
                p.stdin.write("isready\n")
                p.stdin.flush()
                while p.stdout.readline().strip() != "readyok":
                    pass
                begin = time.monotonic()
                p.stdin.write("position startpos\ngo perft 6\n")
                p.stdin.flush()
                for line in p.stdout:
                    if line.startswith("Nodes searched"):
                        assert line.split()[-1] == "119060324", line
                        break
                seconds = time.monotonic() - begin
                p.stdin.write("quit\n")
                p.stdin.flush()
                return seconds

        a, b, r, low, high = self.alternate(theirs, ours)
        self.row("perft 6, s: stockfish | ours | how much faster", f"{a:.3f}", f"{b:.3f}",
                 f"{r:.2f} ({low:.2f}-{high:.2f})", ">= 1")

    def speed(self):
        runs = [self.analyse("--threads", "1") for _ in range(self.options.runs)]
        nps = [run["nodes"] / run["seconds"] for run in runs]
        self.row("one thread, plain: Mnodes/s, seconds", f"{median(nps) / 1e6:.2f}",
                 f"{median([run['seconds'] for run in runs]):.2f}", "-", "-", self.embedded(runs))

    def threads(self, names=("abdada", "abdada-paper", "shared-table")):
        runs = self.in_turn({"alone": self.searching(),
                             "unrelated": self.unrelated} |
                            {name: self.searching("--threads", "2", "--algorithm", name) for name in names})
        for name in names:
            two = runs[name]
            self.compare(f"time to depth, s: 1 | 2 threads, {name}", runs["alone"], two, ">= 1.9" if name == "abdada" else "-",
                         f"{self.extra(runs['alone'], two)}, {self.embedded(two)}")
        self.compare("the machine, s: alone | half of two unrelated at once", runs["alone"], runs["unrelated"], "-",
                     self.embedded(runs["unrelated"]))

    def algorithms(self):
        """Every parallel search by two threads (docs/research/comparison.md)."""
        self.threads(PARALLEL)

    def shard(self):
        with cluster.Cluster(shards=1, workers=0) as c:
            runs = self.in_turn({"embedded": self.searching(), "over": self.asking(c)})
        self.compare("time to depth, s: embedded | alone over 1 shard (b/a)", runs["embedded"], runs["over"], "<= 1.05",
                     f"{self.extra(runs['embedded'], runs['over'])}, {self.net(runs['over'])}", b_over_a=True)

    def worker(self):
        self.helped("alone | + 1 worker, over 1 shard", ">= 1.7", False)
        self.helped("the same, no table in common (--private)", "-", True)

    def helped(self, what, wanted, private):
        more = ["--private"] if private else []
        with cluster.Cluster(shards=1, workers=0) as alone, \
                cluster.Cluster(shards=1, workers=1, private=private) as helped:
            runs = self.in_turn({"alone": self.asking(alone, *more), "helped": self.asking(helped, *more),
                                 "unrelated": self.unrelated})
        most = median([u["seconds"] / h["seconds"] for u, h in zip(runs["unrelated"], runs["helped"])])
        self.compare(f"time to depth, s: {what}", runs["alone"], runs["helped"], wanted,
                     f"{most:.2f} of two unrelated processes, {self.extra(runs['alone'], runs['helped'])}, "
                     f"{self.net(runs['helped'])}")

    def curve(self):
        """Front-end and worker over a shard: in the clear, and with keys, which encrypts every connection."""
        with tempfile.TemporaryDirectory(prefix="abdada-keys-") as keys:
            subprocess.run([self.program("abdada"), "keygen", keys], stdout=subprocess.DEVNULL, check=True)
            with contextlib.ExitStack() as both:
                clear = both.enter_context(cluster.Cluster(shards=1, workers=1))
                os.environ["ABDADA_KEYS"] = keys  # for the processes that begin now
                try:
                    locked = both.enter_context(cluster.Cluster(shards=1, workers=1))
                finally:
                    del os.environ["ABDADA_KEYS"]
                runs = self.in_turn({"clear": self.searching("--servers", clear.servers),
                                     "curve": self.searching("--servers", locked.servers, "--keys", keys)})
        self.compare("time to depth, s: + 1 worker, clear | with CURVE keys (b/a)", runs["clear"], runs["curve"],
                     "<= 1.05", f"{self.extra(runs['clear'], runs['curve'])}, asks "
                     f"{median([run['asks'] for run in runs['clear']]):.0f} | "
                     f"{median([run['asks'] for run in runs['curve']]):.0f}, waited "
                     f"{100 * median([run['waited'] for run in runs['clear']]):.1f}% | "
                     f"{100 * median([run['waited'] for run in runs['curve']]):.1f}%", b_over_a=True)

    def full(self):
        """What a second searcher brings in a given time at selection full: on another host (no table in common), on this
        one, as a thread."""
        def search(*more):
            return [json.loads(done.communicate()[0]) for done in
                    [subprocess.Popen([self.program("abdada"), "analyse", "--json", "--fresh", "--select", "full", "--time",
                                       str(self.options.time), *one], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                      stdin=subprocess.DEVNULL) for one in more]]

        with cluster.Cluster(shards=1, workers=1, private=True) as apart, cluster.Cluster(shards=1, workers=1) as same:
            sides = {"alone": [["--private"]], "2 threads": [["--threads", "2"]],
                     "unrelated": [["--private"]] * 2,
                     "+ 1 worker, no table in common": [["--private", "--servers", apart.servers]],
                     "+ 1 worker of the same host": [["--servers", same.servers]]}
            found = {side: [] for side in sides}
            for position in self.positions * self.options.runs:
                for side in random.sample(list(sides), len(sides)):
                    done = search(*([*more, position] for more in sides[side]))
                    found[side].append((sum(one["nodes"] / one["time_ms"] for one in done), done[0]["depth"]))
        for side in sides:
            speed = median([one[0] / most[0] for one, most in zip(found[side], found["unrelated"])])
            more = [one[1] - alone[1] for one, alone in zip(found[side], found["alone"])]
            error = 1.96 * statistics.stdev(more) / len(more) ** 0.5
            self.row(f"depth in {self.options.time} ms: {side}", f"{statistics.mean(one[1] for one in found[side]):.2f}",
                     f"{statistics.mean(more):+.2f}", f"+-{error:.2f}", "-",
                     f"to one thread; nodes/s {speed:.2f} of two unrelated processes")

    @staticmethod
    def extra(one, other):
        return f"nodes {100 * (median([y['nodes'] / x['nodes'] for x, y in zip(one, other)]) - 1):+.1f}%"

    @staticmethod
    def embedded(runs):
        """What is printed with every row, of searches without shards."""
        return (f"busy {median([run['busy'] for run in runs]):.0f}, no messages, "
                f"waited {100 * median([run['waited'] for run in runs]):.1f}%")

    @staticmethod
    def net(runs):
        def a_second(key):
            return median([run[key] / run["seconds"] for run in runs])
        return (f"asks/s {a_second('asks'):.0f}, messages/s {a_second('messages'):.0f}, kB/s {a_second('bytes') / 1000:.0f}, "
                f"busy {median([run['busy'] for run in runs]):.0f}, deferred {median([run['deferred'] for run in runs]):.0f}, "
                f"waited {100 * median([run['waited'] for run in runs]):.1f}%")


def main():
    parser = argparse.ArgumentParser(description="measures what the README claims")
    parser.add_argument("--bin", default=os.path.join(ROOT, "bin"))
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--depth", type=int, default=8)
    parser.add_argument("--epd", default=os.path.join(ROOT, "tests/data/chess/bratko-kopec.epd"))
    parser.add_argument("--only", default="perft,speed,threads,shard,worker,curve")
    parser.add_argument("--time", type=int, default=200, help="of full, in ms (default: %(default)s)")
    parser.add_argument("--json")
    options = parser.parse_args()
    if min(options.runs, options.time) < 1:
        parser.error("--runs and --time are 1 or more")
    cluster.BIN = options.bin
    bench = Bench(options)
    if not bench.positions:
        parser.error(f"{options.epd} contains no position")
    print(f"{options.runs} alternating runs, depth {options.depth}, {os.path.basename(options.epd)}, "
          f"{os.cpu_count()} CPUs; medians, ratios run by run (lowest-highest)")
    for name in options.only.split(","):
        getattr(bench, name)()
    if options.json:
        with open(options.json, "w", encoding="utf-8") as out:
            for row in bench.rows:
                out.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
