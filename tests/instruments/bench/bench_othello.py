#!/usr/bin/python3
"""bench: exact Othello endings of the FFO file: one thread, two, front-end and worker, and what the machine allows.

A run solves all positions by each side, in a random order, because shared machines drift: each side by new processes, since
solvers keep what they know of endings, and one process for all positions, since a new one spends a third of a second on its
memory. `of unrelated` is the speed-up over one thread, divided by that of two processes at once that share nothing.

  tests/instruments/bench/bench_othello.py [--bin DIR] [--positions FIRST-LAST] [--runs N] [--peer COMMAND]

--peer COMMAND: another solver, given a file of the positions (OBF) as its last argument, once a run: its time and the
last line that it prints. Edax: --peer "edax -n-tasks 1 -l 60 -solve".
"""
import argparse
import json
import os
import random
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(ROOT, "tests", "system"))
import cluster  # noqa: E402  (starts and stops real processes)


def read_positions(path, first, last):
    """[(number, OBF line)]"""
    found, number = [], 0
    with open(path, encoding="utf-8") as file:
        for line in file:
            title = re.match(r"%.*#(\d+)", line)
            number = int(title[1]) if title else number
            if not line.startswith("%") and line.strip() and first <= number <= last:
                found.append((number, line))
    return found


class Bench:
    def __init__(self, options, positions):
        self.options, self.positions = options, positions
        self.text = "".join(line for _, line in positions).encode()
        self.best = [int(re.search(r":\s*([+-]?\d+)", line)[1]) for _, line in positions]

    def start(self, *more):
        process = subprocess.Popen([os.path.join(self.options.bin, "abdada"), "solve", "--obf", "-", "--fresh", "--json",
                                    "--private", "--hash", "256", "--positions", "together", *more],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        process.stdin.write(self.text)
        process.stdin.close()
        return process

    def end(self, process):
        """(seconds, nodes) of all positions"""
        answers = [json.loads(line) for line in process.stdout]
        if process.wait() != 0:
            raise subprocess.CalledProcessError(process.returncode, process.args)
        for answer, best in zip(answers, self.best, strict=True):
            if answer["score"] != best:
                sys.exit(f"bench: {answer['id']} is {answer['score']:+d}, not {best:+d}")
        return sum(answer["time_ms"] for answer in answers) / 1000, sum(answer["nodes"] for answer in answers)

    def solve(self, *more):
        return lambda: self.end(self.start(*more))

    def over_a_shard(self):
        with cluster.Cluster(shards=1, workers=1, private=True) as c:
            return self.end(self.start("--servers", c.servers))

    def unrelated(self):
        """Two programs at once, each on all positions: half of the mean of their times."""
        both = [self.start() for _ in range(2)]
        try:
            ends = [self.end(one) for one in both]
        finally:
            for one in both:
                one.kill()
        return sum(seconds for seconds, _ in ends) / 4, ends[0][1]

    def in_turn(self, sides):
        """{name: [(seconds, nodes) a run]}"""
        runs = {name: [] for name in sides}
        for _ in range(self.options.runs):
            for name in random.sample(list(sides), len(sides)):
                runs[name].append(sides[name]())
        return runs

    def peer(self):
        """Seconds a run, and its last words."""
        seconds, words = [], ""
        with tempfile.NamedTemporaryFile("w", suffix=".obf") as file:
            file.writelines(line for _, line in self.positions)
            file.flush()
            for _ in range(self.options.runs):
                begin = time.monotonic()
                try:
                    done = subprocess.run([*shlex.split(self.options.peer), file.name], stdin=subprocess.DEVNULL,
                                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
                except (OSError, ValueError) as error:  # there is none, or a quote is open
                    sys.exit(f"bench: {self.options.peer}: {error}")
                seconds.append(time.monotonic() - begin)
                if done.returncode != 0:
                    sys.exit(f"bench: {self.options.peer}: exit status {done.returncode}")
                lines = done.stdout.decode("utf-8", "replace").split("\n")
                words = next((line.strip() for line in reversed(lines) if line.strip()), "")
        return seconds, words


def main():
    parser = argparse.ArgumentParser(description="solves the FFO positions in several ways")
    parser.add_argument("--bin", default=os.path.join(ROOT, "bin"))
    parser.add_argument("--positions", default="40-44", metavar="FIRST-LAST")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--peer", metavar="COMMAND")
    options = parser.parse_args()
    numbers = re.fullmatch(r"(\d+)-(\d+)", options.positions)
    if options.runs < 1 or not numbers:
        parser.error("--runs is 1 or more, --positions FIRST-LAST")
    positions = read_positions(os.path.join(ROOT, "tests/data/othello/ffo.obf"), int(numbers[1]), int(numbers[2]))
    if not positions:
        parser.error(f"no position #{options.positions} in the file")
    cluster.BIN = options.bin
    bench = Bench(options, positions)
    print(f"FFO {', '.join(f'#{n}' for n, _ in positions)}: {options.runs} runs in turn, {os.cpu_count()} CPUs; medians")
    runs = bench.in_turn({
        "one thread": bench.solve(),
        "two threads": bench.solve("--threads", "2"),
        "front-end and worker, one shard": bench.over_a_shard,
        "two unrelated processes": bench.unrelated})

    def column(name, of):
        return statistics.median(of(run, one, both) for run, one, both in
                                 zip(runs[name], runs["one thread"], runs["two unrelated processes"]))
    for name in runs:
        print(f"  {name:<34} {column(name, lambda run, *_: run[0]):8.2f} s "
              f"{column(name, lambda run, *_: run[1]) / 1e6:9.1f} Mnodes "
              f"{column(name, lambda run, *_: run[1] / run[0]) / 1e6:7.1f} M/s  speed-up "
              f"{column(name, lambda run, one, _: one[0] / run[0]):.2f}  of unrelated "
              f"{column(name, lambda run, _, both: both[0] / run[0]):.2f}", flush=True)
    if options.peer:
        seconds, words = bench.peer()
        print(f"  {options.peer:<34} {statistics.median(seconds):8.2f} s  {words}")


if __name__ == "__main__":
    main()
