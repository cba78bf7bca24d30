#!/usr/bin/python3
"""bench: exact Othello endings of the FFO file: one thread, two, front-end and worker, and what the machine allows.

A run solves all positions by each side, in a random order, because shared machines drift: each side by new processes, since
solvers keep what they know of endings, and one process for all positions, since a new one spends a third of a second on its
memory. `of unrelated` is the speed-up over one thread, divided by that of two processes at once that share nothing.

  tests/instruments/bench/bench_othello.py [--bin DIR] [--positions FIRST-LAST] [--runs N]
  tests/instruments/bench/bench_othello.py --peer COMMAND [--peer COMMAND]... [--threads N] [--positions ...]

--peer COMMAND: another solver beside ours, in turn on the same positions. It gets a file of the positions (OBF) as its last
argument and exits with status 0. A row has its elapsed time, its CPU time, both as a multiple of ours, and the last line that
it prints; whether its scores are right is for you to read there. Each process counts as a whole, its start included. These
use one thread and no book:

  --peer "edax -n-tasks 1 -l 60 -book-usage off -solve"     (reads data/eval.dat of the current folder)
  --peer "egaroucid -threads 1 -level 60 -nobook -solve"
"""
import argparse
import functools
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

    def beside(self, file, command):
        """(elapsed seconds, CPU seconds, last words) of a whole process"""
        begin, before = time.monotonic(), os.times()
        try:
            done = subprocess.run([*shlex.split(command), file], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, check=False)
        except (OSError, ValueError) as error:  # no such program, or a quote is open
            sys.exit(f"bench: {command}: {error}")
        elapsed, after = time.monotonic() - begin, os.times()
        if done.returncode != 0:
            sys.exit(f"bench: {command}: exit status {done.returncode}")
        words = [line.strip() for line in done.stdout.decode("utf-8", "replace").split("\n") if line.strip()]
        cpu = (after.children_user - before.children_user) + (after.children_system - before.children_system)  # never -0.00
        return elapsed, cpu, words[-1] if words else ""

    def peers(self):
        ours = shlex.join([os.path.join(self.options.bin, "abdada"), "solve", "--fresh", "--private", "--hash", "256",
                           "--positions", "together", "--threads", str(self.options.threads), "--obf"])
        with tempfile.NamedTemporaryFile("w", suffix=".obf") as file:
            file.writelines(line for _, line in self.positions)
            file.flush()
            runs = self.in_turn({command: functools.partial(self.beside, file.name, command)
                                 for command in (ours, *self.options.peer)})
        for command, all_runs in runs.items():
            elapsed, cpu = (statistics.median(run[i] for run in all_runs) for i in (0, 1))
            times = [statistics.median(run[i] / max(own[i], 0.001) for run, own in zip(all_runs, runs[ours])) for i in (0, 1)]
            print(f"  {'abdada' if command == ours else command}\n    {elapsed:8.2f} s, {times[0]:.2f} times ours  "
                  f"{cpu:8.2f} s of CPU, {times[1]:.2f} times ours  {all_runs[-1][2]}", flush=True)


def main():
    parser = argparse.ArgumentParser(description="solves the FFO positions in several ways")
    parser.add_argument("--bin", default=os.path.join(ROOT, "bin"))
    parser.add_argument("--positions", default="40-44", metavar="FIRST-LAST")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--peer", metavar="COMMAND", action="append")
    parser.add_argument("--threads", type=int, default=1, help="of ours, beside a peer")
    options = parser.parse_args()
    numbers = re.fullmatch(r"(\d+)-(\d+)", options.positions)
    if options.runs < 1 or options.threads < 1 or not numbers:
        parser.error("--runs and --threads are 1 or more, --positions FIRST-LAST")
    positions = read_positions(os.path.join(ROOT, "tests/data/othello/ffo.obf"), int(numbers[1]), int(numbers[2]))
    if not positions:
        parser.error(f"no position #{options.positions} in the file")
    cluster.BIN = options.bin
    bench = Bench(options, positions)
    print(f"FFO {', '.join(f'#{n}' for n, _ in positions)}: {options.runs} runs in turn, {os.cpu_count()} CPUs; medians")
    if options.peer:
        return bench.peers()
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
    return None


if __name__ == "__main__":
    main()
