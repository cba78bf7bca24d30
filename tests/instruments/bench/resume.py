#!/usr/bin/python3
"""bench: what a long Othello solve costs when everything dies in the middle of it: front-end, shard and worker are killed
after a part of the time that it takes undisturbed, the shard begins again from its snapshot and `solve --resume` goes on.

  tests/instruments/bench/resume.py [--position N] [--part P] [--every S]

--position: of tests/data/othello/ffo.obf [49]; --part: of the time [0.5]; --every: seconds between snapshots [5].
"""
import argparse
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


def main():
    parser = argparse.ArgumentParser(description="solves a position twice, once with everything killed")
    parser.add_argument("--bin", default=os.path.join(ROOT, "bin"))
    parser.add_argument("--position", type=int, default=49)
    parser.add_argument("--part", type=float, default=0.5)
    parser.add_argument("--every", type=int, default=5)
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
        shard, worker = start("undisturbed")
        begun = time.monotonic()
        nodes = end(begin(line, shard.address), best)
        whole = time.monotonic() - begun
        shard.kill()
        worker.kill()
        print(f"FFO #{options.position}, front-end and worker over a shard: {whole:.1f} s, {nodes / 1e6:.0f} Mnodes", flush=True)

        shard, worker = start("killed")
        begun = time.monotonic()
        front = begin(line, shard.address)
        while time.monotonic() - begun < options.part * whole and front.running():
            time.sleep(0.05)
        if not front.running():
            sys.exit("resume: it was solved before it was to be killed")
        for process in (front, worker, shard):
            process.kill()
        before = time.monotonic() - begun
        shard, worker = start("killed", shard.port)
        begun = time.monotonic()
        end(begin(line, shard.address, "--resume"), best)
        after = time.monotonic() - begun
        shard.kill()
        worker.kill()
        print(f"all killed after {before:.1f} s, then {after:.1f} s more: {(before + after) / whole:.2f} of the undisturbed time, "
              f"right score {best:+d}")


if __name__ == "__main__":
    main()
