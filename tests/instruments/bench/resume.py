#!/usr/bin/python3
"""bench: what a long Othello solve costs when everything dies in the middle of it: front-end, shard and worker are killed
after a part of the time that it takes undisturbed, the shard begins again from its snapshot and `solve --resume` goes on.

  tests/instruments/bench/resume.py [--position N] [--part P] [--every S] [--proof LEAF [--sample PERCENT]]

--position: of tests/data/othello/ffo.obf [49]; --part: of the time [0.5]; --every: seconds between snapshots [5].
--proof: it writes a proof, whose leaves have LEAF empty squares; all are killed once more, when that part of it is
written, and `abdada check` verifies what the last one leaves, or a sample of its leaves.
"""
import argparse
import json
import os
import re
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(ROOT, "tests", "system"))
import cluster  # noqa: E402  (starts and stops real processes)
from bench_othello import read_positions  # noqa: E402

DAY = 86400


def begin(line, place, *more):
    process = cluster.Process("abdada", "solve", "--obf", "-", "--json", "--hash", "256", *more, *cluster.at(place))
    process.send(line.strip())
    process.close_input()
    return process


def end(process, best):
    process.wait(DAY)
    row, = cluster.answers(process)
    if row["score"] != best:
        sys.exit(f"resume: {row['score']:+d}, not {best:+d}")
    return row["nodes"]


def interrupt(front, others, condition):
    """Kills all when it holds."""
    while front.running() and not condition():
        time.sleep(0.02)  # between two looks
    if not front.running():
        sys.exit("resume: it was over before it was to be killed")
    for process in (front, *others):
        process.kill()


def size_of(proof):
    return os.path.getsize(proof) if os.path.exists(proof) else 0


def verify(proof, sample):
    """A line about it."""
    begun = time.monotonic()
    done = cluster.run("abdada", "check", "--json", "-j", 2, "--sample", sample, proof, timeout=DAY)
    if done.status != 0:
        sys.exit(f"resume: the proof does not hold: {done.err()}")
    row = json.loads(done.out())
    return (f"{size_of(proof)} bytes, {row['claims']} claims, {row['solved']} of {row['leaves']} leaves solved, {row['false']} false; "
            f"check {time.monotonic() - begun:.1f} s")


def main():
    parser = argparse.ArgumentParser(description="solves a position twice, once with everything killed")
    parser.add_argument("--bin", default=os.path.join(ROOT, "bin"))
    parser.add_argument("--position", type=int, default=49)
    parser.add_argument("--part", type=float, default=0.5)
    parser.add_argument("--every", type=int, default=5)
    parser.add_argument("--proof", type=int)
    parser.add_argument("--sample", default="100%")
    options = parser.parse_args()
    positions = read_positions(os.path.join(ROOT, "tests/data/othello/ffo.obf"), options.position, options.position)
    if not positions or not 0 < options.part < 1:
        parser.error("--position is one of the file, --part between 0 and 1")
    line = positions[0][1]
    best = int(re.search(r":\s*([+-]?\d+)", line)[1])
    cluster.BIN = options.bin
    with tempfile.TemporaryDirectory(prefix="abdada-resume-") as folder:
        def start(name, port=0):
            shard = cluster.Shard(port, "--snapshot", os.path.join(folder, name), "--snapshot-every", options.every,
                                  memory="256M")
            return shard, cluster.Worker(shard.address)

        def proof(name):
            return os.path.join(folder, name + ".proof")

        def words(name):
            return ["--proof", proof(name), "--proof-leaf", options.proof] if options.proof else []

        shard, worker = start("undisturbed")
        begun = time.monotonic()
        nodes = end(begin(line, shard.address, *words("undisturbed")), best)
        whole = time.monotonic() - begun
        shard.kill()
        worker.kill()
        print(f"FFO #{options.position}, front-end and worker over a shard: {whole:.1f} s, {nodes / 1e6:.0f} Mnodes", flush=True)

        shard, worker = start("killed")
        begun = time.monotonic()
        front = begin(line, shard.address, *words("killed"))
        interrupt(front, (worker, shard), lambda: time.monotonic() - begun >= options.part * whole)
        times = [time.monotonic() - begun]
        if options.proof:
            wanted = options.part * size_of(proof("undisturbed"))
            shard, worker = start("killed", shard.port)
            begun = time.monotonic()
            front = begin(line, shard.address, *words("killed"), "--resume")
            interrupt(front, (worker, shard), lambda: size_of(proof("killed")) >= wanted)
            times.append(time.monotonic() - begun)
        shard, worker = start("killed", shard.port)
        begun = time.monotonic()
        end(begin(line, shard.address, *words("killed"), "--resume"), best)
        times.append(time.monotonic() - begun)
        shard.kill()
        worker.kill()
        print("all killed after " + ", then ".join(f"{seconds:.1f} s" for seconds in times[:-1]) + f", then {times[-1]:.1f} s more: "
              f"{sum(times) / whole:.2f} of the undisturbed time, right score {best:+d}", flush=True)
        for name in ("undisturbed", "killed") if options.proof else ():
            print(f"proof, {name}: {verify(proof(name), options.sample)}", flush=True)


if __name__ == "__main__":
    main()
