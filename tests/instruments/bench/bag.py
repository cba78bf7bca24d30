#!/usr/bin/python3
"""What a file of endings takes over a shard, by front-end and worker, beside two unrelated processes, in turns.

  tests/instruments/bench/bag.py [--bin DIR] [--runs N] [--count N] [--empties LOW,HIGH] [--seed N] [--obf FILE] [--kill]

The two unrelated processes solve the whole file each, at the same time: half of their time is what two searchers need at
best. --kill: the worker is killed when half of the answers are there, and another one is started at once. Printed for
each run, and as medians: seconds; the share of the machine, which is half of the unrelated processes' time by the
time over the shard; the CPU time of front-end and workers by the time of two CPUs; and, for machines that others use,
too, the part of the time in which the searchers ran or waited for a CPU (/proc/PID/schedstat), that is, were not idle.
The scores must be the same.
"""
import argparse
import glob
import os
import random
import resource
import statistics
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(ROOT, "tests", "system"))
import cluster  # noqa: E402  (starts and stops real processes)
from othello import ending  # noqa: E402

DAY = 86400


def endings(options):
    low, high = map(int, options.empties.split(","))
    rng = random.Random(options.seed)
    boards = [ending(rng, rng.randint(low, high)) for _ in range(options.count)]
    return "".join(f"{board} {board.side};\n" for board in boards)


def start(file, *more):
    process = cluster.Process("abdada", "solve", "--obf", file, "--json", "--fresh", "--private", "--positions", "apart", *more)
    process.close_input()
    return process


def scores(process):
    process.wait(DAY)
    return [(row["position"], row["score"]) for row in cluster.answers(process)]


def wanted_seconds(process):
    """Time in which the process's busiest thread ran, or would have."""
    found = [(0, 0)]
    for task in glob.glob(f"/proc/{process.popen.pid}/task/*/schedstat"):
        try:
            with open(task, encoding="ascii") as file:
                ran, waited = map(int, file.read().split()[:2])
                found.append((ran, waited))
        except OSError:  # it has ended
            pass
    return sum(max(found)) / 1e9


def cpu_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def unrelated(file):
    """Half of the mean of their times; and their answers."""
    both = [start(file) for _ in range(2)]
    found = [scores(process) for process in both]
    return sum(process.seconds() for process in both) / 4, found[0]


def together(file, kill, count):
    """Seconds, CPU time of front-end and workers by that of two CPUs, part of the time that they were not idle, answers."""
    shard = cluster.Shard(memory="64M", heartbeat_ms=1000)
    worker = cluster.Worker(shard.address, private=True)
    before = cpu_seconds()  # of those that have ended
    front = start(file, "--servers", shard.address)
    busy, last, killed = 0, {}, False
    begin, worker_before = time.monotonic(), wanted_seconds(worker)
    while front.running():
        now = time.monotonic() - begin
        last = {"at": now, "front": max(wanted_seconds(front), last.get("front", 0)), "worker": wanted_seconds(worker) - worker_before}
        if kill and not killed and len(front.lines["out"]) >= count // 2:
            killed, busy = True, last["worker"]
            worker.kill()
            worker, worker_before = cluster.Worker(shard.address, private=True), 0
        time.sleep(0.01)  # between two readings
    busy = (busy + last["worker"] + last["front"]) / (2 * last["at"])
    found = scores(front)
    worker.end()
    used = cpu_seconds() - before
    shard.end()
    return front.seconds(), used / (2 * front.seconds()), busy, found


def main():
    parser = argparse.ArgumentParser(description="a file of endings over a shard, beside two unrelated processes")
    parser.add_argument("--bin", default=os.path.join(ROOT, "bin"))
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--empties", default="10,16")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--obf", help="a file in place of random endings")
    parser.add_argument("--kill", action="store_true")
    options = parser.parse_args()
    cluster.BIN = options.bin
    file = options.obf
    if file is None:
        file = os.path.join(cluster.scratch("bag"), "endings.obf")
        with open(file, "w", encoding="ascii") as out:
            out.write(endings(options))
    rows = []
    for run in range(options.runs):
        alone, wanted = unrelated(file)
        seconds, share_of_cpus, busy, found = together(file, options.kill, len(wanted))
        if found != wanted:
            sys.exit("bag: other scores over the shard")
        rows.append((alone, seconds, alone / seconds, share_of_cpus, busy))
        print("unrelated {:.2f} s, over a shard {:.2f} s: {:.2f} of the machine; CPU time {:.2f} of two CPUs; not idle {:.2f}".format(*rows[-1]), flush=True)
    print("median    {:.2f} s, over a shard {:.2f} s: {:.2f} of the machine; CPU time {:.2f} of two CPUs; not idle {:.2f}".format(
        *(statistics.median(column) for column in zip(*rows))))


if __name__ == "__main__":
    main()
