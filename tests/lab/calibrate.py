#!/usr/bin/python3
"""Real against virtual: does the virtual cluster predict this machine's speedup with two workers?

    calibrate.py [--rounds N] [--positions N] [--remote-depth N] [--seconds S] [--best]

Real: `abdada analyse` over one shard, alone and with one ttworker, in turns; medians. Virtual: the
same searches by `abdada sim`, its costs measured here first:

  node      seconds per node of the front-end alone over the shard, for each position; sending and
            polling are part of it, so a message costs nothing more
  pair      how much longer a node takes when both CPUs are busy (they may be threads of one
            core, and share caches): two searches without servers side by side against one
  rtt       what --wait adds to a search, per ask
  share     the shard and the ZeroMQ threads take CPU time. One searcher on two CPUs
            leaves them the other; with two searchers that time is theirs. Measured as CPU
            time of shard and front-end beyond the searching thread's, per message: the cost of
            a message for two searchers where there are no more than two CPUs.

Round trip and share are medians over the positions, one set for all predictions. The machine
should be idle: the load is printed, and what others run shows as noise.
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
# Virtual workers have a table each, and what a message of results costs is not in the model.
APART = ["--private", "--share", "0"]
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
        """Milliseconds of search, nodes of all, and CPU seconds of the front-end."""
        words = [ABDADA, "analyse", "--strict", "--fresh", "--json", "--depth", str(depth), *more]
        words += ["--servers", self.address, "--remote-depth", str(self.remote_depth), *APART]
        words += (["--game", "tree"] if position.startswith("tree:") else []) + [position]
        before = os.times()
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        after = os.times()
        used = after.children_user + after.children_system
        used -= before.children_user + before.children_system
        answer = json.loads(done.stdout)
        return {"s": answer["time_ms"] / 1000, "nodes": answer["nodes"], "cpu": used,
                "score": answer["score"]}

    def worker(self):
        worker = Process("ttworker", "--servers", self.address, *APART)
        worker.wait_line("ready")
        return worker

    def close(self):
        self.shard.kill()


def simulate(position, depth, remote_depth, workers, node_us, message_us, rtt_us, *more):
    words = [ABDADA, "sim", "--json", "--depth", depth, "--workers", workers, "--shards", 1,
             "--node-us", f"{node_us:.4f}", "--message-us", f"{message_us:.3f}", "--rtt-us",
             f"{rtt_us:.1f}", "--service-us", 0.5, "--remote-depth", remote_depth, "--local", 65536, *more]
    words += ["--game", position] if position.startswith("tree:") else [position]
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()][-1]


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
    shard = []
    for _ in range(rounds):
        before = cpu_seconds(machine.shard.popen.pid)
        runs["one"].append(machine.analyse(position, depth))
        shard.append(cpu_seconds(machine.shard.popen.pid) - before)
        runs["wait"].append(machine.analyse(position, depth, "--wait"))
        worker = machine.worker()
        runs["two"].append(machine.analyse(position, depth))
        worker.kill()
    scores = {run["score"] for kind in runs.values() for run in kind}
    assert len(scores) == 1, scores
    middle = middle_of(runs, best)
    middle["shard_s"] = min(shard) if best else statistics.median(shard)
    middle["node_us"] = middle["one"]["s"] / middle["one"]["nodes"] * 1e6
    return middle


def costs(machine, position, depth, real):
    """Of a round trip, and the share of a message, from the runs of one searcher."""
    sample = simulate(position, depth, machine.remote_depth, 1, real["node_us"], 0, 0)
    sent = sample["messages_per_node"] * sample["nodes"] / 2  # half of them are the shard's
    rtt_us = (real["wait"]["s"] - real["one"]["s"]) / max(sample["asks"], 1) * 1e6
    beside = max(0.0, real["one"]["cpu"] - real["one"]["s"]) + real["shard_s"]
    return rtt_us, beside / sent * 1e6 if os.cpu_count() <= 2 else 0.0


def predict(machine, position, depth, real, pair, rtt_us, share_us):
    """Speedup of two searchers, and their nodes."""
    remote_depth, node_us = machine.remote_depth, real["node_us"]
    one = simulate(position, depth, remote_depth, 1, node_us, 0, rtt_us)
    two = simulate(position, depth, remote_depth, 2, node_us * pair, share_us, rtt_us)
    return one["seconds"] / two["seconds"], two["nodes"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--positions", type=int, default=6, help="of chess")
    parser.add_argument("--remote-depth", type=int, default=5)
    parser.add_argument("--best", action="store_true",
                        help="the fastest of the rounds instead of the median, on a busy machine")
    parser.add_argument("--seconds", type=float, default=1, help="that a search takes at least")
    args = parser.parse_args()
    machine = Machine(args.remote_depth)
    chess = bratko_kopec()[1::24 // args.positions][:args.positions]
    print(f"load {os.getloadavg()[0]:.2f} on {os.cpu_count()} CPUs; remote_depth {args.remote_depth}; "
          f"{args.rounds} rounds")
    measured = []
    pair = pair_factor(chess[0], choose_depth(machine, chess[0], args.seconds), args.rounds,
                       args.best)
    for position, depth in [TREE] + [(fen, None) for fen in chess]:
        depth = depth or choose_depth(machine, position, args.seconds)
        real = measure(machine, position, depth, args.rounds, args.best)
        measured.append((position, depth, real, costs(machine, position, depth, real)))
    common = [max(low, statistics.median(each)) for low, each in
              zip((10, 0), zip(*(row[3] for row in measured)))]
    print(f"node x {pair:.2f} when both CPUs are busy; round trip {common[0]:.0f} us, share "
          f"{common[1]:.1f} us a message (medians)")
    print("position            depth   T1 s   T2 s  node us | nodes 2/1  virtual | speedup  virtual"
          "  ratio")
    errors = []
    for position, depth, real, _ in measured:
        predicted, nodes = predict(machine, position, depth, real, pair, *common)
        speedup = real["one"]["s"] / real["two"]["s"]
        errors.append(abs(predicted / speedup - 1))
        print(f"{re.split('[ ,]', position)[0][:18]:18}  {depth:5}  {real['one']['s']:5.2f}  "
              f"{real['two']['s']:5.2f}  {real['node_us']:7.3f} | "
              f"{real['two']['nodes'] / real['one']['nodes']:9.2f}  "
              f"{nodes / real['one']['nodes']:7.2f} | {speedup:7.2f}  {predicted:7.2f}  "
              f"{predicted / speedup:5.2f}", flush=True)
    machine.close()
    print(f"median error {100 * statistics.median(errors):.1f}%, largest "
          f"{100 * max(errors):.1f}%; load {os.getloadavg()[0]:.2f}")


if __name__ == "__main__":
    main()
