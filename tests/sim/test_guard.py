#!/usr/bin/python3
"""A guard for what is deterministic: how long small searches take on the virtual cluster.

Each workload's virtual time (the geometric mean of its searches, as one of them moves by a tenth when anything about
the search does), or, where time is fixed, the nodes and the depth reached, is kept in guard.json with the commands that give it.
One that differs by more than 5%, or by a ply, fails, also when it is better: else what is lost later would hide in what
was won. Of a game between virtual clusters the moves are kept, which any change of the search changes. GUARD=write
writes the file anew; the commit says why. The figures depend on neither machine nor build: the clock is virtual, and the
namespace is no hash of the sources.

BIN: the binaries. QUICK, or sanitizers in the binaries: three workloads. JOBS: searches at a time.
"""
import json
import math
import os
import shlex
import sys
from concurrent.futures import ThreadPoolExecutor

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(ROOT, "tests", "system"), os.path.join(ROOT, "tests", "instruments", "lab")]
import cluster  # noqa: E402
from cluster import check  # noqa: E402
from machines import ENDING_NODE_US, FULL_NODE_US, LAN, PERFECT, T3D  # noqa: E402
from simulate import Simulator, boards, bratko_kopec, words_of  # noqa: E402
from uci import Talker  # noqa: E402

KEPT = os.path.join(ROOT, "tests", "sim", "guard.json")
WRITE = "GUARD=write tests/sim/test_guard.py"
TOLERANCE = 1.05
JOBS = int(os.environ.get("JOBS", "2"))
PATIENCE = 1000 * cluster.SLOWNESS
CHESS = [bratko_kopec()[number - 1] for number in (4, 7, 12, 16, 20, 24)]
ENDINGS = [boards("ffo.obf")[f"FFO #{number}"] for number in (21, 22, 23)]  # 15 to 18 empty squares
HOSTS = LAN | {"hosts": 4, "threads": 8, "local": 16384}
WEILL = T3D | {"hash": 128, "constant": True, "depth": 5, "workers": 32}
MEMORY = {"hosts": 1, "threads": 64, "local": 65536, "node-us": 0.2, "depth": 6}
NO_LATENCY = PERFECT | {"workers": 128}

# A name, options, positions, seeds. What the three algorithms do with one machine stands side by side; lazy where the
# time does not hang upon luck: elsewhere two seeds differ by more than half. The quick ones are the first three.
WORKLOADS = (
    ("Weill's machine, 32 workers, abdada", WEILL, CHESS, 1),
    ("LAN of 4 x 8, Othello endings, abdada",
     HOSTS | {"game": "othello", "solve": True, "loose": True, "node-us": ENDING_NODE_US}, ENDINGS, 3),
    ("LAN of 4 x 8, ybwc", HOSTS | {"algorithm": "ybwc", "depth": 6}, CHESS, 1),
    ("Weill's machine, 32 workers, ybwc", WEILL | {"algorithm": "ybwc"}, CHESS[:3], 1),
    ("Weill's machine, 32 workers, lazy", WEILL | {"algorithm": "lazy"}, CHESS, 1),
    ("LAN of 4 x 8, abdada", HOSTS | {"depth": 6}, CHESS, 2),
    ("one memory of 64, abdada", MEMORY, CHESS, 2),
    ("one memory of 64, ybwc", MEMORY | {"algorithm": "ybwc"}, CHESS[:3], 1),
    ("no latency, 128 workers, a tree, abdada", NO_LATENCY | {"depth": 9}, ["tree:b=20,d=9"], 1),
    ("no latency, 128 workers, a tree, ybwc", NO_LATENCY | {"algorithm": "ybwc", "depth": 7}, ["tree:b=20,d=7"], 1),
    ("LAN of 2 x 4, selection full for 50 ms, abdada",
     HOSTS | {"hosts": 2, "threads": 4, "select": "full", "time": 50}, CHESS[:3], 1),
    ("two workers, checks without end, selection full",  # without a bound of their extension seed 28 takes 40 times as long
     {"workers": 2, "select": "full", "loose": True, "depth": 12, "node-us": 0.2}, ["3r4/1K6/Q7/8/8/4k3/8/8 w - - 0 1"], 28),
)

# A name, the clusters of White and Black, the limit of a move, the opening, plies.
PLAYS = LAN | {"node-us": FULL_NODE_US}
GAMES = (("a game of 2 x 1 against 1 x 1", (PLAYS | {"hosts": 2}, PLAYS | {"hosts": 1}), "movetime 20", "d2d4 d7d5 c2c4 e7e6", 8),)


def searches(options, positions, seeds):
    """Command lines behind the program's name."""
    return [Simulator.command(position, options | {"seed": seed, "no-reference": True})[1:]
            for position in positions for seed in range(1, seeds + 1)]


# What is kept of a search, by its unit.
KEPT_OF = {"virtual ms": lambda row: round(row["seconds"] * 1e3, 6), "depth": lambda row: row["depth"],
           "nodes": lambda row: row["nodes"]}


def measure(commands):
    """What each command says, by its text."""
    def one(words):
        done = cluster.run("abdada", *words, timeout=PATIENCE)
        check(done.status == 0, shlex.join(words), done.err())
        return json.loads(done.lines["out"][-1])
    with ThreadPoolExecutor(JOBS) as pool:
        return dict(zip(["abdada " + shlex.join(words) for words in commands], pool.map(one, commands)))


def kept():
    try:
        with open(KEPT, encoding="utf-8") as file:
            return json.load(file)
    except FileNotFoundError:
        return {}


def keep(name, row):
    everything = kept() | {name: row}
    with open(KEPT, "w", encoding="utf-8") as file:
        json.dump({row[0]: everything[row[0]] for row in WORKLOADS + GAMES if row[0] in everything}, file, indent=1)
        file.write("\n")


def figure(unit, each):
    """A mean, and how it is said."""
    if unit == "depth":
        mean = sum(each.values()) / len(each)
        return mean, f"depth {mean:.2f}"
    mean = math.exp(sum(map(math.log, each.values())) / len(each))
    return mean, f"{mean:.4g} {unit}"


def judge(name, unit, before, now):
    """Prints a line, and fails where the two differ by too much."""
    (old, old_text), (new, new_text) = figure(unit, before), figure(unit, now)
    slower = new / old if unit == "virtual ms" else old / new
    tolerance = 1 if unit == "depth" else TOLERANCE
    most = max(now, key=lambda command: abs(math.log(now[command] / before[command])))
    print(f"# {name}: {new_text}, kept {old_text}; most changed: {most}: {before[most]:g} -> {now[most]:g}")
    said = f"{name}: before {old_text}, now {new_text}"
    check(slower <= tolerance, said, f"SLOWER: if that is wanted, say why in the commit with the file anew: {WRITE}")
    check(slower >= 1 / tolerance, said, f"better: keep it, else later losses hide in it: {WRITE}")


def workload(name, options, positions, seeds):
    unit = "depth" if "time" in options else "virtual ms"
    kinds = {"searches": unit} | ({"nodes": "nodes"} if "time" in options else {})
    commands = searches(options, positions, seeds)

    def test():
        rows = measure(commands)
        now = {kind: {command: KEPT_OF[of](row) for command, row in rows.items()} for kind, of in kinds.items()}
        if os.environ.get("GUARD") == "write":
            keep(name, {"unit": unit} | now)
            return
        before = kept().get(name, {})
        for kind, of in kinds.items():
            check(before.get(kind, {}).keys() == now[kind].keys(), name, "is kept with other searches, or not at all:",
                  WRITE)
            judge(name, of, before[kind], now[kind])
    test.__name__ = name
    return test


def game(name, clusters, limit, opening, plies):
    commands = [["sim", "--uci", *words_of(options)] for options in clusters]

    def test():
        players, moves = [Talker(*words) for words in commands], opening.split()
        for _ in range(plies):
            player = players[len(moves) % 2]
            player.say(f"position startpos moves {' '.join(moves)}", f"go {limit}")
            moves.append(player.expect(r"^bestmove (\S+)")[1])
        for player in players:
            player.quit()
        now = {"unit": limit, "players": ["abdada " + shlex.join(words) for words in commands], "moves": " ".join(moves)}
        if os.environ.get("GUARD") == "write":
            keep(name, now)
        else:
            cluster.equal(now, kept().get(name), f"if that is wanted, say why in the commit with the file anew: {WRITE}")
    test.__name__ = name
    return test


if __name__ == "__main__":
    some = WORKLOADS[:3] if cluster.QUICK or cluster.SANITIZED else WORKLOADS
    sys.exit(cluster.main([workload(*row) for row in some] + [game(*row) for row in GAMES], ("abdada",)))
