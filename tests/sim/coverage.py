#!/usr/bin/python3
"""Which lines of the cores the virtual cluster reaches: `make chaos-coverage`.

    tests/sim/coverage.py [--seeds A..B] [--jobs N] [--lines] [--kept]

Of build/coverage (MODE=coverage). Chaos of these seeds, and fewer of Othello and of each algorithm whose searchers hand
work over. Then gcov: of each room and file the lines, those reached, and with --lines those that are not. --kept: adds to
what earlier runs reached. Exit status 1 if a run failed.
"""
import argparse
import collections
import glob
import json
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
O = "build/coverage"
ROOMS = {"ttserver/core": "ttserver/core/*.c", "ttserver/net": "ttserver/net/*.c", "proto/client": "proto/client/*.c",
         "cores of worker/engine": "worker/engine/*_core.c"}
WANTED = 90  # per cent


def run(seeds, jobs, *more):
    command = [f"{O}/bin/abdada-chaos", "--seeds", seeds, "--jobs", str(jobs), *more]
    print("#", *command, flush=True)
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def part_of(seeds, share):
    """The first of them."""
    first, last = (int(word) for word in seeds.split(".."))
    return f"{first}..{first + max(1, (last - first + 1) // share) - 1}"


def reached_in(source):
    """{line: how often} of a source file; of a file that nothing of was run, too."""
    done = subprocess.run(["gcov", "--json-format", "--stdout", os.path.join(O, source[:-2] + ".gcno")], cwd=ROOT,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    lines = collections.Counter()
    for file in json.loads(done.stdout)["files"]:
        for line in file["lines"] if file["file"] == source else ():
            lines[line["line_number"]] += line["count"]
    return lines


def ranges(numbers):
    """3-5 9"""
    found = []
    for number in sorted(numbers):
        if found and found[-1][1] == number - 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return " ".join(f"{first}-{last}" if first < last else str(first) for first, last in found)


def report(with_lines):
    for room, pattern in ROOMS.items():
        rows = []
        for path in sorted(glob.glob(os.path.join(ROOT, pattern))):
            source = os.path.relpath(path, ROOT)
            lines = reached_in(source)
            rows.append((source, len(lines), sum(count > 0 for count in lines.values()),
                         [line for line, count in lines.items() if count == 0]))
        total, reached = sum(row[1] for row in rows), sum(row[2] for row in rows)
        share = 100 * reached / total
        print(f"{room}: {share:.1f}% of {total} lines{'' if share >= WANTED else f', {WANTED}% wanted'}")
        for source, lines, here, left in rows:
            print(f"    {100 * here / max(lines, 1):5.1f}% of {lines:4} {source}")
            if with_lines and left:
                print(f"           not reached: {ranges(left)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="1..1000", metavar="A..B")
    parser.add_argument("--jobs", type=int, default=2, metavar="N")
    parser.add_argument("--lines", action="store_true", help="print those not reached")
    parser.add_argument("--kept", action="store_true", help="adds to what earlier runs reached")
    options = parser.parse_args()
    if not options.kept:
        for path in glob.glob(os.path.join(ROOT, O, "**", "*.gcda"), recursive=True):
            os.remove(path)
    status = run(options.seeds, options.jobs)
    status |= run(part_of(options.seeds, 20), options.jobs, "--game", "othello")
    for name in ("ybwc", "minimal-tree"):
        status |= run(part_of(options.seeds, 20), options.jobs, "--algorithm", name)
    report(options.lines)
    return 1 if status else 0


if __name__ == "__main__":
    sys.exit(main())
