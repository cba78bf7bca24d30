#!/usr/bin/python3
"""Real against virtual: does the virtual cluster predict this machine's speedup with two workers?

    calibrate.py [--rounds N] [--positions N] [--remote-depth N] [--seconds S] [--best]

Real: `abdada analyse` over one shard, alone and with one ttworker as on another host (no table in common, results
broadcast), in turns; medians. Virtual: the same searches by `abdada sim` on two hosts, its costs measured here first:

  message    CPU time of `abdada ttbench` and of a ttserver with messages of 1 and of 256 operations: a straight line
             through both is what a message costs each, and what an operation in it (--message-us, --operation-us,
             --service-us, --service-operation-us). Threads of ZeroMQ and the kernel are part of it
  sparse     the same for messages of which two are under way, as a searcher's ask and results are: nearly each wakes
             the threads of both sides. Where there are no more than two CPUs, two searchers leave no other for these
             threads and for the shard: sparse messages of both sides then cost the searchers
  node       seconds per node of the front-end alone over the shard, less what its messages cost, for each position
  pair       how much longer a node takes when both CPUs are busy (they may be threads of one
             core, and share caches): two searches without servers side by side against one
  rtt        what --wait adds to a search, per ask; the median over the positions

The machine should be idle: the load is printed, and what others run shows as noise.
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys

from simulate import ABDADA, BIN, ROOT, bratko_kopec

sys.path.insert(0, os.path.join(ROOT, "tests/system"))
os.environ.setdefault("BIN", BIN)
from cluster import Process  # noqa: E402

TREE = ("tree:b=20,d=9,seed=1", 9)
DEPTHS = range(6, 12)  # of chess: the first that takes long enough
SHARE = 2  # results of this depth and more are broadcast: the default
APART = ["--private"]
MANY_SMALL, MANY_LARGE, FEW = (8, 1), (8, 256), (2, 1)  # messages under way, operations in each
TICK = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


class Machine:
    """A shard and, when wanted, a worker."""

    def __init__(self, remote_depth):
        self.remote_depth = remote_depth
        self.shard = Process("ttserver", "--listen", "127.0.0.1:0")
        self.address = self.shard.wait_line(r"ready (\S+)")[0][1]

    def analyse(self, position, depth, *more):
        """Seconds of search, nodes of all, and the score."""
        words = [ABDADA, "analyse", "--strict", "--fresh", "--json", "--depth", str(depth), *more]
        words += ["--servers", self.address, "--remote-depth", str(self.remote_depth), *APART]
        words += (["--game", "tree"] if position.startswith("tree:") else []) + [position]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        answer = json.loads(done.stdout)
        return {"s": answer["time_ms"] / 1000, "nodes": answer["nodes"], "score": answer["score"]}

    def worker(self):
        worker = Process("ttworker", "--servers", self.address, *APART)
        worker.wait_line("ready")
        return worker

    def close(self):
        self.shard.kill()


def message_costs(machine, rounds, seconds, best):
    """The options of `abdada sim` for what messages and operations cost: microseconds of CPU time. With other messages
    under way, and with hardly any."""
    runs = {load: [] for load in (MANY_SMALL, MANY_LARGE, FEW)}
    for _ in range(rounds):
        for (window, batch), found in runs.items():
            words = [ABDADA, "ttbench", "--servers", machine.address, "--json", "--pattern", "random", "--window",
                     str(window), "--batch", str(batch), "--seconds", str(seconds)]
            shard_before, before = cpu_seconds(machine.shard.popen.pid), os.times()
            done = subprocess.run(words, capture_output=True, text=True, check=True)
            shard_after, after = cpu_seconds(machine.shard.popen.pid), os.times()
            sent = json.loads(done.stdout)
            messages = sent["messages_per_s"] * sent["seconds"] - sent["messages_timed"]  # without the answers
            client_s = after.children_user + after.children_system - before.children_user - before.children_system
            found.append({"operations": (sent["asks"] + sent["stores"] + sent["releases"]) / messages,
                          "client": client_s / messages * 1e6,
                          "shard": (shard_after - shard_before) / messages * 1e6})
    middle = middle_of(runs, best)
    small, large, few = middle[MANY_SMALL], middle[MANY_LARGE], middle[FEW]
    costs, sparse = {}, {}
    for who, name in (("client", ("message-us", "operation-us")), ("shard", ("service-us", "service-operation-us"))):
        operation = max(0.0, (large[who] - small[who]) / (large["operations"] - small["operations"]))
        costs |= {name[0]: max(0.0, small[who] - operation * small["operations"]), name[1]: operation}
        sparse |= {name[0]: max(0.0, few[who] - operation * few["operations"]), name[1]: operation}
    return costs, sparse


def simulate(position, depth, remote_depth, hosts, node_us, rtt_us, costs):
    options = costs | {"depth": depth, "hosts": hosts, "threads": 1, "shards": 1, "node-us": node_us, "rtt-us": rtt_us,
                       "remote-depth": remote_depth, "local": 65536, "share": SHARE}
    words = [ABDADA, "sim", "--json", "--no-reference"]
    for name, value in options.items():
        words += [f"--{name}", f"{value:.4f}" if isinstance(value, float) else str(value)]
    words += ["--game", position] if position.startswith("tree:") else [position]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def choose_depth(machine, position, seconds):
    for depth in DEPTHS:
        if machine.analyse(position, depth)["s"] > seconds:
            return depth
    return DEPTHS[-1]


def pair_factor(position, depth, rounds, best):
    """A search without servers, alone and beside its like: how much longer it takes."""
    words = [ABDADA, "analyse", "--strict", "--json", "--depth", str(depth), position]
    alone, paired = [], []
    for _ in range(rounds):
        for count, times in ((1, alone), (2, paired)):
            running = [subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
                       for _ in range(count)]
            times += [json.loads(p.communicate()[0])["time_ms"] for p in running]
    pick = min if best else statistics.median
    return max(1.0, pick(paired) / pick(alone))


def middle_of(runs, best):
    pick = min if best else statistics.median
    return {kind: {field: pick(run[field] for run in of) for field in of[0]}
            for kind, of in runs.items()}


def measure(machine, position, depth, rounds, best):
    """Each kind of run once a round, so that a slow minute hits all alike."""
    runs = {"one": [], "wait": [], "two": []}
    for _ in range(rounds):
        runs["one"].append(machine.analyse(position, depth))
        runs["wait"].append(machine.analyse(position, depth, "--wait"))
        worker = machine.worker()
        runs["two"].append(machine.analyse(position, depth))
        worker.kill()
    scores = {run["score"] for kind in runs.values() for run in kind}
    assert len(scores) == 1, scores
    return middle_of(runs, best)


def alone(machine, position, depth, real, costs):
    """Microseconds of a node and of a round trip, from the runs of one searcher."""
    node_us = real["one"]["s"] / real["one"]["nodes"] * 1e6
    sample = simulate(position, depth, machine.remote_depth, 1, node_us, 0.0, costs)
    messages_us = sample["seconds"] * 1e6 / sample["nodes"] - node_us
    rtt_us = (real["wait"]["s"] - real["one"]["s"]) / max(sample["asks"], 1) * 1e6
    return max(node_us / 2, node_us - messages_us), rtt_us


def predict(machine, position, depth, node_us, pair, rtt_us, costs, sparse):
    """Speedup of two searchers, and their nodes."""
    both = dict(costs)
    if os.cpu_count() <= 2:
        both["message-us"] = sparse["message-us"] + sparse["service-us"]
        both["operation-us"] = sparse["operation-us"] + sparse["service-operation-us"]
    one = simulate(position, depth, machine.remote_depth, 1, node_us, rtt_us, costs)
    two = simulate(position, depth, machine.remote_depth, 2, node_us * pair, rtt_us, both)
    return one["seconds"] / two["seconds"], two["nodes"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--positions", type=int, default=6, help="of chess")
    parser.add_argument("--remote-depth", type=int, default=5)
    parser.add_argument("--best", action="store_true",
                        help="the fastest of the rounds instead of the median, on a busy machine")
    parser.add_argument("--seconds", type=float, default=1, help="that a search, or a load of messages, takes at least")
    args = parser.parse_args()
    machine = Machine(args.remote_depth)
    chess = bratko_kopec()[1::24 // args.positions][:args.positions]
    print(f"load {os.getloadavg()[0]:.2f} on {os.cpu_count()} CPUs; remote_depth {args.remote_depth}; "
          f"{args.rounds} rounds")
    costs, sparse = message_costs(machine, args.rounds, args.seconds, args.best)
    for name, of in (("messages", costs), ("sparse messages", sparse)):
        print(f"{name}:", *(f"--{option} {us:.3f}" for option, us in of.items()), flush=True)
    measured = []
    pair = pair_factor(chess[0], choose_depth(machine, chess[0], args.seconds), args.rounds,
                       args.best)
    for position, depth in [TREE] + [(fen, None) for fen in chess]:
        depth = depth or choose_depth(machine, position, args.seconds)
        real = measure(machine, position, depth, args.rounds, args.best)
        measured.append((position, depth, real, *alone(machine, position, depth, real, costs)))
    rtt_us = max(10.0, statistics.median(row[4] for row in measured))
    print(f"node x {pair:.2f} when both CPUs are busy; --rtt-us {rtt_us:.0f} (median)")
    print("position            depth   T1 s   T2 s  node us | nodes 2/1  virtual | speedup  virtual"
          "  ratio")
    errors = []
    for position, depth, real, node_us, _ in measured:
        predicted, nodes = predict(machine, position, depth, node_us, pair, rtt_us, costs, sparse)
        speedup = real["one"]["s"] / real["two"]["s"]
        errors.append(abs(predicted / speedup - 1))
        print(f"{re.split('[ ,]', position)[0][:18]:18}  {depth:5}  {real['one']['s']:5.2f}  "
              f"{real['two']['s']:5.2f}  {node_us:7.3f} | "
              f"{real['two']['nodes'] / real['one']['nodes']:9.2f}  "
              f"{nodes / real['one']['nodes']:7.2f} | {speedup:7.2f}  {predicted:7.2f}  "
              f"{predicted / speedup:5.2f}", flush=True)
    machine.close()
    print(f"median error {100 * statistics.median(errors):.1f}%, largest "
          f"{100 * max(errors):.1f}%; load {os.getloadavg()[0]:.2f}")


if __name__ == "__main__":
    main()
