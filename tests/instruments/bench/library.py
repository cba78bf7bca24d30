#!/usr/bin/python3
"""library: what two processes of a program with libabdada reach: examples/connect4.c. `make bench-library`.

In turn (A B A B ...): A, two processes that know nothing of each other solve the position at the same time; B, two
that share a fresh ttserver. What two reach is 2 x A/B times one: the machine's own limits (CPUs with something in
common) are in both. Prints each round and the medians; wanted: A / (2 B) of at least 0.85.

  tests/instruments/bench/library.py [--runs N] [--position COLUMNS] [--processes N] [--lib DIR]
"""
import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(ROOT, "tests", "system"))
import cluster  # noqa: E402

WANTED = 0.85


def build(options, folder):
    program = os.path.join(folder, "connect4")
    subprocess.run(["gcc", "-O2", "-Iworker/lib", "examples/connect4.c", "-o", program,
                    os.path.join(options.lib, "libabdada.so.0"), f"-Wl,-rpath,{os.path.abspath(options.lib)}"],
                   cwd=ROOT, check=True)
    return program


def solve(program, processes, *arguments):
    """(seconds, values, nodes) of so many at once."""
    begin = time.monotonic()
    started = [subprocess.Popen([program, *arguments], stdout=subprocess.PIPE, text=True) for _ in range(processes)]
    found = [re.fullmatch(r"value (-?\d+) nodes (\d+) asks (\d+)\n", process.communicate()[0]) for process in started]
    seconds = time.monotonic() - begin
    return seconds, [int(f[1]) for f in found], sum(int(f[2]) for f in found)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--position", default="", help="columns played (none: the empty board)")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--lib", default=os.path.join(ROOT, "build/release/lib"))
    options = parser.parse_args()
    where = [options.position] if options.position else []
    ratios, ones, wrong = [], [], 0
    with tempfile.TemporaryDirectory() as folder:
        program = build(options, folder)
        for number in range(options.runs):
            unrelated, values, nodes = solve(program, options.processes, *where)
            shard = cluster.Shard(0, memory="256M", heartbeat_ms=1000)
            shared, more_values, more_nodes = solve(program, options.processes, "--servers", shard.address, *where)
            shard.end()
            ratios.append(unrelated / options.processes / shared)
            ones.append(unrelated)
            wrong += len(set(values + more_values)) != 1
            print(f"{number + 1}: {options.processes} unrelated {unrelated:.2f} s, sharing {shared:.2f} s, "
                  f"ratio {ratios[-1]:.3f}; nodes of one {nodes // options.processes}, "
                  f"of all that share {more_nodes}; value {values[0]}", flush=True)
    median = statistics.median(ratios)
    print(f"{options.processes} processes reach {median:.3f} of as many unrelated ones "
          f"({min(ratios):.3f} - {max(ratios):.3f}, {options.runs} rounds; wanted {WANTED}); {wrong} wrong values")
    return 0 if median >= WANTED and wrong == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
