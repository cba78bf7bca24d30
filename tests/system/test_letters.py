#!/usr/bin/env python3
"""Searchers of several processes that send each other letters through a shard: one score whatever the algorithm, and
whichever process is killed but the front-end. Every algorithm has one thread or three in turn; with STEAL_ALL in the
environment both."""

import os
import random
import sys

from algorithms import STEALING, TASKS
from cluster import (STARVED, SHORT, SANITIZED, Cluster, Worker, check, equal, main, positions, right, run, start, answers,
                     wait_until)

DEPTH = 6 if SANITIZED else 7
DEEPER = 6 if SANITIZED else 8
KIWI = "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1"


def scored(position, depth, *options):
    process = start("--strict", "--fresh", "--private", "--depth", depth, *options, position)
    row, = answers(process)
    equal(row["depth"], depth)
    return row


def sequential(position, depth):
    row, = answers(start("--strict", "--private", "--algorithm", "sequential", "--depth", depth, position))
    return row["score"]


def every_algorithm_gives_the_sequential_score():
    position = positions()[3]
    expected = sequential(position, DEPTH)
    with Cluster(shards=2, workers=2, private=True) as cluster:
        for number, name in enumerate(STEALING + TASKS):
            for threads in (1,) if SHORT else (1, 3) if "STEAL_ALL" in os.environ else (1 + number % 2 * 2,):
                before = sum(shard.stats()["letters"] for shard in cluster.shards)
                row = scored(position, DEPTH, "--servers", cluster.servers, "--threads", threads, "--algorithm", name)
                right(row["score"], expected, name, threads)
                letters = sum(shard.stats()["letters"] for shard in cluster.shards) - before
                print(f"# {name}, {threads}: {row['nodes']} nodes, {row['own_nodes']} of the front-end, "
                      f"{row['steals']} pieces of work, {letters} letters")
                check(letters > 0, "no letters", name)


def mates_are_found_together():
    mate = "r1bq2r1/b4pk1/p1pp1p2/1p2pP2/1P2P1PB/3P4/1PPQ2P1/R3K2R w - - 0 1"  # d2h6, and mate in two
    equal(sequential(mate, DEPTH), 2)
    with Cluster(shards=1, workers=2, private=True) as cluster:
        for name in ("ybwc", "minimal-tree"):
            row = scored(mate, DEPTH, "--servers", cluster.servers, "--algorithm", name)
            equal((row["score_kind"], row["score"], row["bestmove"]), ("mate", 2, "d2h6"), name)


def a_worker_gets_a_part():
    with Cluster(shards=1, workers=1, private=True) as cluster:
        for name in ("ybwc", "dts", "minimal-tree"):
            row = scored(KIWI, DEEPER, "--servers", cluster.servers, "--algorithm", name)
            check(row["own_nodes"] < 0.95 * row["nodes"], "the worker did next to nothing", name, row)


def searching(cluster, count):
    return wait_until(lambda: len(cluster.shards[-1].working()) >= count, f"{count} workers that search")


def killed_workers_cost_no_score():
    seed = int(os.environ.get("SEED", random.randrange(1 << 30)))
    print(f"# seed {seed}: SEED={seed} ONLY=killed_workers_cost_no_score {sys.argv[0]}", flush=True)
    chance = random.Random(seed)
    expected = sequential(KIWI, DEEPER)
    for name in ("ybwc", "minimal-tree") if SHORT or SANITIZED else STEALING + TASKS:
        with Cluster(shards=1, workers=3, private=True) as cluster:
            front = start("--strict", "--fresh", "--private", "--depth", DEEPER, "--servers", cluster.servers,
                          "--algorithm", name, KIWI)
            searching(cluster, 3)
            for worker in chance.sample(cluster.workers, chance.choice((1, 2, 3))):
                worker.kill()
            cluster.workers.append(Worker(cluster.servers, private=True))
            row, = answers(front)
            right((row["depth"], row["score"]), (DEEPER, expected), name)


def a_shard_that_dies_costs_no_score():
    expected = sequential(KIWI, DEEPER)
    for name in ("ybwc", "minimal-tree"):
        with Cluster(shards=2, workers=2, private=True) as cluster:
            front = start("--strict", "--fresh", "--private", "--depth", DEEPER, "--servers", cluster.servers,
                          "--algorithm", name, KIWI)
            searching(cluster, 2)
            wait_until(lambda: any(shard.stats()["letters"] > 0 for shard in cluster.shards), "letters")
            post_office = max(cluster.shards, key=lambda shard: shard.stats()["letters"])
            post_office.kill()
            row, = answers(front)
            right((row["depth"], row["score"]), (DEEPER, expected), name)


def a_redis_passes_on_no_letters():
    done = run("abdada", "analyse", "--table", "redis://127.0.0.1:1", "--algorithm", "ybwc", "--depth", 3)
    check(done.status == 2 and len(done.lines["err"]) == 1, done.tail())
    check("does not work over a Redis" in done.err(), done.err())


if __name__ == "__main__":
    sys.exit(main([every_algorithm_gives_the_sequential_score, mates_are_found_together, a_worker_gets_a_part, killed_workers_cost_no_score,
                   a_shard_that_dies_costs_no_score, a_redis_passes_on_no_letters],
                  ("abdada", "ttserver", "ttworker"), unstable=STARVED))
