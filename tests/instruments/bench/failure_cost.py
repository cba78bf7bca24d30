#!/usr/bin/python3
"""failure_cost: what a dead or a slow shard costs a search. `make bench-failure-cost`.

Two clusters with a worker each are asked the same positions in turn (A B A B ...): A has two shards, of which one is
dead from the start or slow; B has only the other one. Prints medians, and the ratio A/B round by round.

  closed    nothing listens at the dead shard's port            at most 1.25
  stalled   it accepts connections but never answers (SIGSTOP)  at most 1.25
  cut       its cable is unplugged                              at most 1.25
  delay     --delay-ms (100) on its cable                       less than 1.5

cut and delay need network namespaces (tests/system/network.py), else they are left out, with the reason.

  tests/instruments/bench/failure_cost.py [--runs N] [--positions N] [--seconds S] [--only closed,...] [--delay-ms MS]
"""
import argparse
import json
import os
import statistics
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(ROOT, "tests", "system"))
import network  # noqa: E402

REASON = network.why_not()  # before any thread and socket
import cluster  # noqa: E402

STRICT = ["--strict", "--select", "plain"]
LIMIT = {"closed": 1.25, "stalled": 1.25, "cut": 1.25, "delay": 1.5}


def choose(options):
    """(position, depth, score): the first depth that takes one CPU `seconds` at least."""
    chosen = []
    for position in cluster.positions()[1::5][:options.positions]:
        for depth in range(6, 16):
            found, = cluster.ask(position, "--depth", depth, "--algorithm", "sequential", *STRICT)
            if found["time_ms"] >= 1000 * options.seconds:
                break
        chosen.append((position, depth, found["score"]))
    return chosen


class Side:
    """Shards and a worker; asked as a cluster of its own."""

    def __init__(self, options, second):
        self.front = network.new_host()
        self.first = cluster.Shard(host=network.new_host(), heartbeat_ms=options.heartbeat)
        self.second, servers = None, self.first.address
        if second == "closed":
            host = network.new_host()
            servers += f",{host.address if host else '127.0.0.1'}:{7499 if host else cluster.free_port()}"
        elif second:
            self.second = cluster.Shard(host=network.new_host(), heartbeat_ms=options.heartbeat)
            servers += "," + self.second.address
        if second == "stalled":
            self.second.stop()
        elif second == "cut":
            self.second.host.cut()
        elif second == "delay":
            self.second.host.shape(delay_ms=options.delay_ms)
        self.servers = servers
        self.workers = [cluster.Worker(servers, host=network.new_host()) for _ in range(options.workers)]

    def ask(self, questions, options):
        """(seconds of search, seconds with start and end, share waited, nodes) over all positions."""
        search, wall, waited, nodes = 0.0, 0.0, 0.0, 0
        for position, depth, score in questions:
            begin = time.monotonic()
            found, = cluster.answers(cluster.start("--servers", self.servers, "--fresh", "--depth", depth, *STRICT,
                                                   *options.more.split(), position, host=self.front))
            wall += time.monotonic() - begin
            cluster.equal((found["depth"], found["score"]), (depth, score), position)
            search += found["time_ms"] / 1000
            waited += found["waited"] * found["time_ms"] / 1000
            nodes += found["nodes"]
        return search, wall, waited / search, nodes

    def close(self):
        for process in [*self.workers, self.first, self.second]:
            if process:
                process.kill()


def measure(name, questions, options):
    a, b = Side(options, name), Side(options, None)
    rows = []
    for number in range(options.runs):
        sides = ((a, b), (b, a))[number % 2]  # sides take turns to begin
        times = {side: side.ask(questions, options) for side in sides}
        rows.append((*times[a], *times[b]))
    a.close()
    b.close()
    middle = [statistics.median(row[i] for row in rows) for i in range(8)]
    ratios = sorted(row[0] / row[4] for row in rows)
    walls = sorted(row[1] / row[5] for row in rows)
    ratio, wall = statistics.median(ratios), statistics.median(walls)
    limit = LIMIT[name]
    print(f"{name:<8} {middle[0]:7.2f} s (waited {100 * middle[2]:4.1f}%)  alone {middle[4]:7.2f} s (waited "
          f"{100 * middle[6]:4.1f}%)  nodes {statistics.median(row[3] / row[7] for row in rows):.2f}  ratio {ratio:.2f} ({ratios[0]:.2f}-{ratios[-1]:.2f}), with start and end "
          f"{wall:.2f} ({walls[0]:.2f}-{walls[-1]:.2f})  {'ok' if max(ratio, wall) <= limit else 'TOO MUCH'}: "
          f"{limit} at most", flush=True)
    return {"name": name, "a_s": middle[0], "b_s": middle[4], "ratio": ratio, "wall_ratio": wall,
            "ok": max(ratio, wall) <= limit}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--positions", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=1.5)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--heartbeat", type=int, default=1000)
    parser.add_argument("--delay-ms", type=float, default=100)
    parser.add_argument("--only", default="closed,stalled,cut,delay")
    parser.add_argument("--more", default="", help="more options for abdada analyse")
    options = parser.parse_args()
    questions = choose(options)
    print(f"{len(questions)} positions, depths {sorted(depth for _, depth, _ in questions)}, {options.runs} runs each, "
          f"{options.workers} worker(s) a side" + (f"; no cut and delay: {REASON}" if REASON else ""))
    rows = []
    for name in options.only.split(","):
        why = {"cut": REASON, "delay": network.why_no_delay()}.get(name)
        if why:
            print(f"{name:<8} skipped: {why}")
        else:
            rows.append(measure(name, questions, options))
    print(json.dumps(rows))
    return 0 if all(row["ok"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
