#!/usr/bin/python3
"""The virtual cluster with 1 to 128 workers: every algorithm gives the sequential score, on 24 positions of chess, 20 of
Othello and 100 random trees. Each case has two of the algorithms and one number of workers in turn; with STEAL_ALL in
the environment all of them, and 30 trees. QUICK, or sanitizers in the binaries: each fourth case; SHORT: each third.
BIN: the binaries."""
import itertools
import json
import os
import random
import sys
from concurrent.futures import ThreadPoolExecutor

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "system"))
import cluster  # noqa: E402
from algorithms import PARALLEL as ALGORITHMS  # noqa: E402
from cluster import check, equal, positions  # noqa: E402

WORKERS = (1, 8, 32, 128)
JOBS = int(os.environ.get("JOBS", "2"))
PATIENCE = 3000 * cluster.SLOWNESS


def scores(position, algorithm, workers, *options):
    done = cluster.run("abdada", "sim", "--json", "--no-reference", "--algorithm", algorithm, "--workers", workers, *options,
                       position, timeout=PATIENCE)
    check(done.status == 0, position, algorithm, done.err())
    return [(row["workers"], row["score"]) for row in map(json.loads, done.lines["out"])]


def runs(number):
    """(algorithm, workers) of that case."""
    if "STEAL_ALL" in os.environ:
        return [(name, ",".join(map(str, WORKERS))) for name in ALGORITHMS]
    of = [(name, n) for name, n in itertools.product(ALGORITHMS, WORKERS) if n < 128 or not cluster.SANITIZED]
    return [of[(2 * number + i) * 7 % len(of)] for i in (0, 1)]  # 7: all have their turn


def compare(cases, *options):
    """Each case: (position, more options)."""
    def one(numbered):
        number, (position, *more) = numbered
        (_, expected), = scores(position, "sequential", 1, *options, *more)
        for name, workers in runs(number):
            for count, score in scores(position, name, workers, *options, *more):
                equal(score, expected, position, name, count)
    some = list(enumerate(cases[::4 if cluster.QUICK or cluster.SANITIZED else 3 if cluster.SHORT else 1]))
    with ThreadPoolExecutor(JOBS) as pool:
        list(pool.map(one, some))


def chess_positions():
    compare([(position,) for position in positions()], "--depth", 4)


def othello_positions():
    with open(os.path.join(ROOT, "tests/data/othello/game.obf"), encoding="utf-8") as file:
        boards = [line.split(";")[0] for line in file if not line.startswith("%") and line.strip()]
    compare([(board,) for board in boards[5:45:2]], "--game", "othello", "--depth", 5, "--remote-depth", 1)


def random_trees():
    seed = int(os.environ.get("SEED", random.randrange(1 << 30)))
    print(f"# seed {seed}: SEED={seed} ONLY=random_trees {sys.argv[0]}", flush=True)
    draw = random.Random(seed)
    cases = []
    for _ in range(30 if "STEAL_ALL" in os.environ else 100):
        branching, depth = draw.choice(((3, 8), (5, 6), (8, 5), (12, 4), (20, 4)))
        tree = f"tree:b={branching},d={depth},seed={draw.randrange(1 << 30)},order={draw.choice((0, 30, 60, 90, 100))}"
        cases.append((tree, "--depth", depth))
    compare(cases, "--game", "tree", "--remote-depth", 1, "--node-us", 20, "--rtt-us", 20)


if __name__ == "__main__":
    sys.exit(cluster.main([chess_positions, othello_positions, random_trees], ("abdada",)))
