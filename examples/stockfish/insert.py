#!/usr/bin/env python3
"""Puts the feed of libabdada into the sources of Stockfish, or an engine that comes of it, and builds it.

    examples/stockfish/insert.py SOURCES OUT

SOURCES: a folder with the engine's src/, which is only read; known to work: Stockfish 15.1, 16, 16.1, 17.1 and 18, the
sources of August 2026, and Fairy-Stockfish (also as the sdist of pyffish). OUT: a new folder; OUT/plain gets a copy, and
OUT/shared one with the four lines that call abdada_feed.h. Both are built, and both must search the same nodes in `bench`
without a shard. The engine is OUT/shared/src/stockfish; abdada_feed.h says what it reads from the environment.

Needs libabdada (`make install-library`), pkg-config, a C++ compiler, and what the engine's own Makefile needs.
"""
import argparse
import concurrent.futures
import hashlib
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
# (place, line): the line goes before the place, or behind it where it begins with "+".
LINES = [
    (r'#include "tt\.h"\n', '+#include "abdada_feed.h"\n'),
    (r"[ \t]+(?:TT|tt)\.new_search\(\);\n", "+    abdada_feed::begin();\n"),
    (r" {2,4}callsCnt = (?:worker\.l|L)imits\.nodes \?", "    abdada_feed::serve({table});\n"),
    (r"        (?:tte->save|ttWriter\.write)\(posKey, value_to_tt\(bestValue, ss->ply\), ss->ttPv,\n",
     "        abdada_feed::result(posKey, value_to_tt(bestValue, ss->ply), bestValue >= beta ? BOUND_LOWER\n"
     "                            : PvNode && bestMove ? BOUND_EXACT : BOUND_UPPER, depth, bestMove),\n"),
]


def inserted(text):
    """search.cpp with the lines; raises ValueError unless each place is there exactly once."""
    if "abdada_feed" in text:
        raise ValueError("the lines are in it already")
    table = "TT" if re.search(r"\bTT\.new_search\(\)", text) else "worker.tt"
    for place, line in LINES:
        found = list(re.finditer("^" + place, text, re.MULTILINE))
        if len(found) != 1:
            raise ValueError(f"{len(found)} places in place of one for {line.strip(' +').split('(')[0]!r} (/{place}/)")
        at = found[0].end() if line.startswith("+") else found[0].start()
        text = text[:at] + line.lstrip("+").replace("{table}", table) + text[at:]
    return text


def name_of(src):
    """A hash of the sources, by which those of one engine find each other."""
    all_files = hashlib.sha256()
    for top, folders, names in os.walk(src):
        folders.sort()
        for name in sorted(names):
            if name.endswith((".cpp", ".h")):
                with open(os.path.join(top, name), "rb") as file:
                    all_files.update(file.read())
    return "stockfish " + all_files.hexdigest()[:16]


def words(*arguments):
    return subprocess.run(["pkg-config", *arguments, "abdada"], stdout=subprocess.PIPE, text=True, check=True).stdout.split()


def run(command, folder, **how):
    done = subprocess.run(command, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, **how)
    if done.returncode != 0:
        sys.exit(f"insert.py: {' '.join(command)} in {folder} failed:\n{done.stdout[-3000:]}")
    return done.stdout


def arch_of(makefile):
    """native; of a Makefile without it (15.1) what this CPU can do."""
    with open(makefile, encoding="utf-8") as file:
        if "native" in file.read():
            return "native"
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        flags = file.read().split()
    return "x86-64-avx2" if "avx2" in flags else "x86-64-modern" if "popcnt" in flags else "general-64"


def build(src, compiling, linking, options):
    """By the engine's Makefile; where there is none, or no network is at hand, by the compiler."""
    if options.no_network or not os.path.exists(os.path.join(src, "Makefile")):
        files = [os.path.relpath(os.path.join(top, name), src) for top, _, names in os.walk(src) for name in names
                 if name.endswith(".cpp") and name not in ("pyffish.cpp", "ffishjs.cpp") and "incbin" not in top
                 and "universal" not in name]
        flags = ["-std=c++20" if options.newest else "-std=c++17", "-O3", "-DNDEBUG", "-DIS_64BIT", "-DUSE_PTHREADS", "-DUSE_POPCNT",
                 "-mpopcnt", "-DUSE_SSE41", "-msse4.1", "-DUSE_SSSE3", "-mssse3", "-DUSE_SSE2", "-msse2",
                 "-DNNUE_EMBEDDING_OFF"]
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            list(pool.map(lambda name: run(["g++", *flags, *compiling, "-c", name, "-o", name + ".o"], src), files))
        run(["g++", *[name + ".o" for name in files], "-o", "stockfish", "-pthread", *linking], src)
    else:
        arch = options.arch or arch_of(os.path.join(src, "Makefile"))
        run(["make", f"-j{options.jobs}", "build", f"ARCH={arch}", "EXTRACXXFLAGS=" + " ".join(compiling),
             "EXTRALDFLAGS=" + " ".join(linking), "EXE=stockfish"], src)


def signature(src, options):
    """The nodes of `bench`."""
    variables = {name: value for name, value in os.environ.items() if name != "ABDADA_SERVERS"}
    text = run(["./stockfish"], src, input="\n".join([*options.uci, options.bench, "quit", ""]), env=variables)
    found = re.findall(r"Nodes searched\s*:\s*(\d+)", text)
    if len(found) != 1:
        sys.exit(f"insert.py: {options.bench} in {src} says no number of nodes:\n{text[-2000:]}")
    return int(found[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources")
    parser.add_argument("out")
    parser.add_argument("--arch", help="ARCH of the engine's Makefile (default: native, or the best of a Makefile without it)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--bench", default="bench", help="the command whose nodes are compared, such as 'bench 16 1 8'")
    parser.add_argument("--uci", action="append", default=[], metavar="LINE", help="a line for the engine before that")
    parser.add_argument("--no-network", action="store_true", help="compile without an embedded network, and without make")
    parser.add_argument("--insert-only", action="store_true", help="build nothing")
    options = parser.parse_args()
    with open(os.path.join(options.sources, "src/search.cpp"), encoding="utf-8") as file:
        plain = file.read()
    try:
        shared = inserted(plain)
    except ValueError as wrong:
        sys.exit(f"insert.py: {options.sources}/src/search.cpp: {wrong}")
    options.newest = os.path.exists(os.path.join(options.sources, "src/attacks.cpp"))
    src = {name: os.path.join(options.out, name, "src") for name in ("plain", "shared")}
    for name in src:
        for folder in "src", "scripts":  # the Makefile of 16.1 and later starts ../scripts/
            if os.path.isdir(os.path.join(options.sources, folder)):
                shutil.copytree(os.path.join(options.sources, folder), os.path.join(options.out, name, folder),
                                ignore=shutil.ignore_patterns("*.o", ".depend"))  # perhaps built for another CPU
    with open(os.path.join(src["shared"], "search.cpp"), "w", encoding="utf-8") as file:
        file.write(shared)
    with open(os.path.join(HERE, "abdada_feed.h"), encoding="utf-8") as file:
        header = file.read().replace('#define ABDADA_ENGINE "stockfish"', f'#define ABDADA_ENGINE "{name_of(src["plain"])}"')
    with open(os.path.join(src["shared"], "abdada_feed.h"), "w", encoding="utf-8") as file:
        file.write(header)
    print(f"{len(LINES)} lines are in {src['shared']}/search.cpp")
    if options.insert_only:
        return
    build(src["plain"], [], [], options)
    build(src["shared"], words("--cflags"), words("--libs"), options)
    nodes = {name: signature(folder, options) for name, folder in src.items()}
    print(f"{options.bench}: {nodes['plain']} nodes without the lines, {nodes['shared']} with them and without a shard")
    if nodes["plain"] != nodes["shared"]:
        sys.exit("insert.py: these must be equal")
    print(f"the engine is {src['shared']}/stockfish; start it with ABDADA_SERVERS=HOST:PORT,...")


if __name__ == "__main__":
    main()
