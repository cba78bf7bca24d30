#!/usr/bin/python3
"""bad_peers: what a bombardment costs a well-behaved client. `make bench-bad-peers`.

One shard. Quiet periods alternate with attacks (tests/system/bombard.c), while a client that asks and stores once a
millisecond measures each answer. Prints both 99th percentiles of each round and the medians of all rounds. The
attackers run at the lowest priority, because they stand for other machines; --nice 0 lets them compete for the CPUs
of the shard. --control adds a third period, in which the attack goes to another server of this machine: what the
client loses then is the scheduler's doing, not its shard's.

  tests/instruments/bench/bad_peers.py [--messages N] [--rounds N] [--rate N] [--nice N] [--seed N] [--control]
"""
import argparse
import json
import os
import signal
import statistics
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(ROOT, "tests", "system"))
import cluster  # noqa: E402
import test_bad_peers as bad  # noqa: E402

FACTOR = 5  # most that the p99 under attack may be, times the quiet p99


def attacked(shard, victim, o, number):
    witness = bad.begin_witness(shard)
    attack = bad.begin_attack(victim, o.messages // o.rounds, o.seed + number, o.rate, o.nice).result()
    return witness.result(signal.SIGTERM), attack


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--messages", type=int, default=1000000, help="of all rounds together (1,000,000)")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--rate", type=int, default=20000,
                        help="messages a second (20,000); 0: as many as go, which takes all CPUs of a small "
                             "machine, and then its scheduler is measured")
    parser.add_argument("--nice", type=int, default=19, help="priority of the attackers (19)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quiet", type=float, default=4.0, help="seconds of a quiet spell")
    parser.add_argument("--control", action="store_true", help="the same attack on another server, too")
    o = parser.parse_args()
    cluster.BIN = os.environ.get("BIN", os.path.join(ROOT, "build", "release", "bin"))
    shard, rows, sent, seconds, wrong, memory = cluster.Shard(), [], 0, 0.0, 0, []
    other, control = cluster.Shard() if o.control else None, []
    for number in range(o.rounds):
        quiet = bad.begin_witness(shard, o.quiet).result()
        loud, attack = attacked(shard, shard, o, number)
        rows.append((quiet["p99_us"], loud["p99_us"]))
        sent, seconds = sent + attack["messages"], seconds + attack["seconds"]
        wrong += quiet["wrong"] + loud["wrong"]
        memory.append(shard.resident_bytes() / (1 << 20))
        if o.control:
            beside = attacked(shard, other, o, number)[0]
            control.append(beside["p99_us"] / quiet["p99_us"])
        print(f"round {number + 1}: p50 {quiet['p50_us']} / {loud['p50_us']} us, p99 {rows[-1][0]} / {rows[-1][1]} us "
              f"({rows[-1][1] / rows[-1][0]:.2f} times), longest {quiet['max_us']} / {loud['max_us']} us, "
              f"{attack['messages'] / attack['seconds']:.0f} messages/s, shard {memory[-1]:.1f} MiB", flush=True)
    figures = shard.stats()
    status = shard.end(signal.SIGTERM)
    ratios = sorted(b / a for a, b in rows)
    ratio = statistics.median(ratios)
    print(f"bad peers: {sent} messages in {seconds:.1f} s, {sent / seconds:.0f} a second ({figures['malformed']} malformed, {figures['ignored']} "
          f"ignored), {wrong} wrong answers, shard {memory[0]:.1f} -> {memory[-1]:.1f} MiB, exit {status}; p99 "
          f"{statistics.median(a for a, _ in rows):.0f} us quiet, {statistics.median(b for _, b in rows):.0f} us "
          f"under attack: {ratio:.2f} times ({ratios[0]:.2f}-{ratios[-1]:.2f}; under {FACTOR} wanted)")
    if control:
        print(f"control: beside an attack on another server {statistics.median(control):.2f} times its quiet p99 "
              f"({min(control):.2f}-{max(control):.2f})")
    print(json.dumps({"messages": sent, "wrong": wrong, "p99_ratio": round(ratio, 3), "status": status}))
    return 0 if wrong == 0 and status == 0 and ratio < FACTOR else 1


if __name__ == "__main__":
    sys.exit(main())
