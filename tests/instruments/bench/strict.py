#!/usr/bin/python3
"""strict: one score per position, however it is searched.

Every Bratko-Kopec position at --depth (9: some seconds each for one thread), with --strict and plain selection, by
the sequential search, by 1, 2 and 4 threads, and by 2 shards + 2 workers + front-end under every algorithm.
Prints time and nodes of each; exit status 1 if any score differs. `make strict`.
"""
import argparse
import json
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(ROOT, "tests", "system"))
import cluster  # noqa: E402


def analyse(options, *more):
    done = subprocess.run(
        [os.path.join(options.bin, "abdada"), "analyse", "--json", "--fresh", "--strict", "--positions", "together", "--epd", options.epd,
         "--depth", str(options.depth), *more],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, check=True)
    return [json.loads(line) for line in done.stdout.decode().splitlines()]


def main():
    parser = argparse.ArgumentParser(description="the strict score, by every way to search")
    parser.add_argument("--bin", default=os.path.join(ROOT, "bin"))
    parser.add_argument("--depth", type=int, default=9)
    parser.add_argument("--epd", default=os.path.join(ROOT, "tests/data/chess/bratko-kopec.epd"))
    options = parser.parse_args()
    cluster.BIN = options.bin
    ways = [("sequential", ("--algorithm", "sequential"), False)]
    ways += [(f"abdada, {n} threads", ("--threads", str(n)), False) for n in (1, 2, 4)]
    ways += [(f"2 shards, 2 workers, {name}", ("--algorithm", name), True)
             for name in ("abdada", "abdada-paper", "shared-table")]
    expected, wrong = None, 0
    with cluster.Cluster(shards=2, workers=2) as c:
        for name, arguments, shared in ways:
            lines = analyse(options, *arguments, *(("--servers", c.servers) if shared else ()))
            scores = [(line["score"], line["score_kind"]) for line in lines]
            expected = expected or scores
            differ = sum(a != b for a, b in zip(scores, expected))
            wrong += differ + abs(len(scores) - len(expected))
            seconds = sum(line["time_ms"] for line in lines) / 1000
            print(f"{name:<34} {len(scores)} scores, {differ} differ   {seconds:8.1f} s "
                  f"{sum(line['nodes'] for line in lines) / 1e6:9.1f} Mnodes   busy {sum(line['busy'] for line in lines)}"
                  f" deferred {sum(line['deferred'] for line in lines)}", flush=True)
    print("strict:", "one score for all" if wrong == 0 else f"{wrong} scores differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
