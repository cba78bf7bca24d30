#!/usr/bin/python3
"""survive: what it costs a client that the shard's results are written behind. `make bench-survive`.

Three shards on this machine: one keeps nothing, one writes to a Redis (--backing), one to a file (--snapshot, as often
as it can). The same load (`abdada ttbench`) goes to them in turns; only the one that is loaded has something to write.
Prints the medians of the rounds and their ratios to the first. Wanted: 1.05 at most for p50 and p99. Redis and the
client take CPUs of this machine, too; the CPU time that the shard's thread takes for an operation knows nothing of that.

  tests/instruments/bench/survive.py [--rounds N] [--seconds S] [--load NAME]...
"""
import argparse
import json
import os
import statistics
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(ROOT, "tests", "system"))
import cluster  # noqa: E402
import test_backing  # noqa: E402

LOADS = {
    "search": ["--batch", "16", "--window", "1"],  # as recorded: what a searcher sends, one message at a time
    "deep": ["--batch", "16", "--window", "1", "--pattern", "random"],  # every result is one to be kept
    "full": [],  # as recorded, as much as goes
}
WANTED = 1.05


def cpu_ns(shard):
    """Of the busiest thread, which is the one that answers."""
    tasks = f"/proc/{shard.popen.pid}/task"
    times = []
    for task in os.listdir(tasks):
        with open(f"{tasks}/{task}/schedstat", encoding="utf-8") as file:
            times.append(int(file.read().split()[0]))
    return max(times)


def load(shard, options, seconds):
    before = cpu_ns(shard)
    done = cluster.run("abdada", "ttbench", "--servers", shard.address, "--seconds", str(seconds), "--json", *options,
                       timeout=60 + seconds)
    cluster.check(done.status == 0, done.tail())
    row = json.loads(done.lines["out"][-1])
    row["cpu_ns"] = (cpu_ns(shard) - before) / (row["asks"] + row["stores"] + row["releases"])
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--memory", default="64M")
    parser.add_argument("--load", choices=LOADS, action="append")
    o = parser.parse_args()
    cluster.BIN = os.environ.get("BIN", os.path.join(ROOT, "build", "release", "bin"))
    with tempfile.TemporaryDirectory() as folder, test_backing.Redis() as redis:
        shards = {
            "nothing": cluster.Shard(memory=o.memory),
            "backing": cluster.Shard(cluster.free_port(), "--backing", redis.url, memory=o.memory),
            "snapshot": cluster.Shard(0, "--snapshot", os.path.join(folder, "results"), "--snapshot-every", "1",
                                      memory=o.memory),
        }
        for name in o.load or LOADS:
            rows = {kind: [] for kind in shards}
            for number in range(o.rounds):
                order = list(shards)[number % len(shards):] + list(shards)[:number % len(shards)]
                for kind in order:
                    rows[kind].append(load(shards[kind], LOADS[name], o.seconds))
                    cluster.wait_until(lambda: shards["backing"].stats()["backing_behind"] == 0, "all is written", 300)
            for kind, row in rows.items():
                keys = ("p50_us", "p99_us", "cpu_ns")
                value = [statistics.median(r[key] for r in row) for key in keys]
                ratio = [statistics.median(r[key] / base[key] for r, base in zip(row, rows["nothing"])) for key in keys]
                print(f"{name:8} {kind:9} p50 {value[0]:8.1f} us ({ratio[0]:.2f})  p99 {value[1]:8.1f} us "
                      f"({ratio[1]:.2f})  the shard's CPU {value[2]:6.0f} ns/operation ({ratio[2]:.2f})"
                      f"{'' if max(ratio[:2]) <= WANTED else '  more than wanted'}", flush=True)
        for kind, keys in (("backing", ("backing_written", "backing_lost")),
                           ("snapshot", ("snapshots", "snapshot_entries", "snapshot_failures"))):
            stats = shards[kind].stats()
            print(f"{kind}: " + ", ".join(f"{key} {stats[key]}" for key in keys))


if __name__ == "__main__":
    main()
