#!/usr/bin/python3
"""examples/stockfish: the feed in the sources of an engine: of a small one of ours, and of Fairy-Stockfish. TAP.

    BIN=bin tests/system/test_stockfish.py

Fairy-Stockfish comes from the Python registry (the sdist of pyffish), or from the folder FAIRY; without SHORT alone.
"""
import contextlib
import glob
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile

from cluster import BUILD, STARVED, ROOT, SHORT, Process, Shard, check, children, equal, main, needs, scratch, wait_until
from test_lib import at, install, library_path, missing

INSERT = os.path.join(ROOT, "examples/stockfish/insert.py")
SMALL = os.path.join(ROOT, "tests/system/small_engine")
PYFFISH = "pyffish==0.0.78"


def why_not():
    if BUILD != "release":
        return "the engines have no sanitizer"
    return missing() or (None if shutil.which("g++") else "g++ is not here")


needs_compiler = needs(why_not)


def insert(sources, *options):
    """(status, output, folder)."""
    out = os.path.join(scratch("engine"), "out")
    variables = dict(os.environ, PKG_CONFIG_PATH=at("lib/pkgconfig"), PKG_CONFIG_SYSROOT_DIR=install())
    with library_path():
        variables["LD_LIBRARY_PATH"] = os.environ["LD_LIBRARY_PATH"]
    done = subprocess.run([sys.executable, INSERT, sources, out, *options], env=variables, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout, out


@contextlib.contextmanager
def engine(out, *lines, **variables):
    """A process of OUT/shared."""
    os.environ.update(variables)
    try:
        with library_path():
            process = Process(os.path.join(out, "shared/src/stockfish"))
    finally:
        for name in variables:
            del os.environ[name]
    for line in lines:
        process.send(line)
    yield process
    process.send("quit")
    equal(process.wait(), 0, process.tail())


def nodes_of(process, begin=0):
    return int(process.wait_line(r"value -?\d+ nodes (\d+)", begin=begin)[0][1])


@needs_compiler
def test_two_processes_of_a_small_engine_need_fewer_nodes():
    status, output, out = insert(SMALL)
    equal(status, 0, output)
    check("195566 nodes without the lines, 195566 with them" in output, output)
    alone = []
    for order in 1, 2:  # always as many, as nothing comes from others
        with engine(out, f"order {order}", "go depth 8") as process:
            alone.append(nodes_of(process))
    shard = Shard(0)
    where = {"ABDADA_SERVERS": shard.address, "ABDADA_DEPTH": "3"}
    for attempt in range(5):  # they may have to take turns on one CPU
        game = {"ABDADA_NAMESPACE": str(attempt)}
        with engine(out, "order 1", **where, **game) as one, engine(out, "order 2", **where, **game) as two:
            both = one, two

            def are_there():  # they connect while they search
                for process in both:
                    process.send("go depth 4")
                return shard.stats()["sessions"] >= 3
            wait_until(are_there, "both are connected")
            for process in both:
                process.send("isready")
                process.wait_line("readyok")
            begin = [len(process.lines["out"]) for process in both]
            for process in both:
                process.send("go depth 8")
            found = [nodes_of(process, at) for process, at in zip(both, begin)]
        if sum(found) < 0.95 * sum(alone):
            break
    else:
        check(False, found, "together,", alone, "alone")
    with engine(out, "order 1", "go depth 8", ABDADA_SERVERS="nowhere") as process:
        equal(nodes_of(process), alone[0])
        check("ABDADA_SERVERS: servers: " in process.out(), process.tail())
    equal(shard.end(), 0)


@needs_compiler
def test_each_place_is_there_once_or_nothing_is_built():
    with open(os.path.join(SMALL, "src/search.cpp"), encoding="utf-8") as file:
        text = file.read()
    for place, words in ((r'#include "tt.h"', "include"), ("  TT.new_search();", "abdada_feed::begin"),
                         ("  callsCnt = Limits.nodes ?", "abdada_feed::serve"),
                         ("        tte->save(posKey, value_to_tt(bestValue, ss->ply), ss->ttPv,", "abdada_feed::result")):
        for times in 0, 2:
            folder = scratch("sources")
            shutil.copytree(SMALL, folder, dirs_exist_ok=True)
            with open(os.path.join(folder, "src/search.cpp"), "w", encoding="utf-8") as file:
                file.write("\n".join(line for old in text.splitlines() for line in [old] * (times if old.startswith(place) else 1)) + "\n")
            status, output, out = insert(folder)
            check(status == 1 and f"{times} places in place of one for" in output and words in output, output)
            check(not os.path.exists(out), out)
    status, output, out = insert(SMALL, "--insert-only")
    equal(status, 0, output)
    status, output, _ = insert(os.path.join(out, "shared"))
    check(status == 1 and "in it already" in output, output)


MAKEFILE = """
build:
\t$(SHELL) ../scripts/net.sh
\ttest native-$(shell $(SHELL) ../scripts/get_native_properties.sh) = $(ARCH)-properties
\tg++ -std=c++17 -O2 $(EXTRACXXFLAGS) *.cpp -o $(EXE) $(EXTRALDFLAGS)
"""


@needs_compiler
def test_a_makefile_finds_its_scripts():
    folder = scratch("sources")
    shutil.copytree(SMALL, folder, dirs_exist_ok=True)
    os.mkdir(os.path.join(folder, "scripts"))
    for name, text in (("src/Makefile", MAKEFILE), ("scripts/net.sh", "touch net\n"),
                       ("scripts/get_native_properties.sh", "echo properties\n"), ("src/search.o", "of another CPU")):
        with open(os.path.join(folder, name), "w", encoding="ascii") as file:
            file.write(text)
    status, output, out = insert(folder, "--bench", "bench 16 1 5")
    equal(status, 0, output)
    for name in "plain", "shared":
        files = os.listdir(os.path.join(out, name, "src"))
        check("net" in files and "search.o" not in files, name, files, output)
    check(not os.path.exists(os.path.join(folder, "src/net")), "the sources are as they were")


@needs_compiler
def test_engines_together_outlive_each_other():
    status, output, out = insert(SMALL)
    equal(status, 0, output)
    program = os.path.join(out, "shared/src/stockfish")
    with library_path():
        process = Process(os.path.join(ROOT, "examples/stockfish/together.py"), program, program)
    process.send("uci\nisready\ngo depth 7")
    process.wait_line("id name small engine")
    process.wait_line("readyok")
    process.wait_line("bestmove m[0-9]+")
    check(process.out().count("uciok") == process.out().count("bestmove") == 1, process.tail())
    at = len(process.lines["out"])
    process.send("go depth 9")
    os.kill(children(process.popen.pid)[0], signal.SIGKILL)
    process.wait_line("engine 1 has ended", begin=at)
    process.wait_line("bestmove m[0-9]+", begin=at)
    last = children(process.popen.pid)[-1]
    before = cpu_ticks(last)
    process.send("go depth 15")
    wait_until(lambda: cpu_ticks(last) > before, "the last engine to search")
    os.kill(last, signal.SIGKILL)
    process.wait_line("bestmove 0000")
    equal(process.wait(), 0, process.tail())


def cpu_ticks(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        return int(file.read().rsplit(")", 1)[1].split()[11])


LIAR = """
import sys
for line in sys.stdin:
    word = line.split()[0] if line.split() else ""
    if word == "uci":
        print("id name liar\\nuciok", flush=True)
    elif word == "isready":
        print("readyok", flush=True)
    elif word == "go":
        print("info depth " + 5000 * "9" + " score cp " + 5000 * "9" + " nodes x pv", flush=True)
        print("info depth 3 score mate -0 nodes 7 pv e2e4", flush=True)
        print("bestmove", flush=True)
    elif word == "quit":
        break
"""


def test_what_an_engine_prints_ends_no_search():
    path = os.path.join(scratch("liar"), "liar.py")
    with open(path, "w", encoding="ascii") as file:
        file.write(LIAR)
    command = f"{sys.executable} {path}"
    process = Process(os.path.join(ROOT, "examples/stockfish/together.py"), command, command)
    process.send("uci\nisready\nisready")
    wait_until(lambda: process.out().count("readyok") == 2, "an answer to each isready")
    for _ in range(2):
        at = len(process.lines["out"])
        process.send("go movetime 100")
        process.wait_line("^bestmove (0000|e2e4)$", begin=at)
    process.send("quit")
    equal(process.wait(), 0, process.tail())


@needs_compiler
def test_fairy_stockfish():
    if SHORT:
        return "only without SHORT"
    folder = os.environ.get("FAIRY")
    if not folder:
        folder = scratch("fairy")
        done = subprocess.run([sys.executable, "-m", "pip", "download", "--no-deps", "--no-binary", ":all:", "--dest", folder, PYFFISH],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            return f"pip does not get {PYFFISH}: {done.stdout.splitlines()[-1]}"
        with tarfile.open(glob.glob(os.path.join(folder, "*.tar.gz"))[0]) as archive:
            archive.extractall(folder)
        folder, = glob.glob(os.path.join(folder, "pyffish-*/"))
    status, output, out = insert(folder, "--bench", "bench 16 1 9")
    equal(status, 0, output)
    found = re.search(r"(\d+) nodes without the lines, (\d+) with them", output)
    check(found and found[1] == found[2] and int(found[1]) > 10000, output)
    shard = Shard(0)
    where = {"ABDADA_SERVERS": shard.address, "ABDADA_DEPTH": "4"}
    lines = ["position startpos", "setoption name Threads value 2", "go depth 12"]
    with engine(out, *lines, **where) as one, engine(out, *lines, **where) as two:
        for process in one, two:
            process.wait_line(r"bestmove ([a-h][1-8][a-h][1-8])")
    check(shard.stats()["shared"] > 0, "results were shared")
    equal(shard.end(), 0)
    return None


TESTS = [test_two_processes_of_a_small_engine_need_fewer_nodes, test_each_place_is_there_once_or_nothing_is_built,
         test_a_makefile_finds_its_scripts, test_engines_together_outlive_each_other,
         test_what_an_engine_prints_ends_no_search, test_fairy_stockfish]

if __name__ == "__main__":
    sys.exit(main(TESTS, unstable=STARVED))
