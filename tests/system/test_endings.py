#!/usr/bin/python3
"""Scores and moves that belong together: random endings of three and four pieces, judged by tables that another
program makes (endings.c).

What is asked of each iteration, one thread, two, front-end and worker over a shard, eight virtual workers:
- a claimed mate in N is one: the tables know one as short after the move, and the line ends in mate;
- a claimed win, of a position that is won, keeps the win. A search of a few plies may not know better: if a search of
  that move alone gives the score claimed, the score is the move's, and the search did not see far enough. That is
  counted, and no fault;
- a strict score is, to the point, the one of the position after the move.

ITERATIONS: how many for each way to search (default 500 or, with QUICK, 200); TEST_SEED repeats a run."""
import functools
import json
import os
import random
import subprocess

from cluster import BIN, QUICK, Cluster, Worker, ask, check, equal, main, run
from uci import Uci

TOOL = os.path.join(os.environ.get("TOOLS") or os.path.join(os.path.dirname(BIN.rstrip("/")), "tools"), "endings")
ITERATIONS = int(os.environ.get("ITERATIONS", "200" if QUICK else "500"))
SEED = int(os.environ.get("TEST_SEED", random.randrange(1 << 32)))
MATERIALS = os.environ.get("MATERIALS", "KQK KRK KPK KRKN KQKN KRKB").split()
WIN = 150   # centipawns: what claims a win
NEAR = 100  # centipawns by which another search of the same move may differ


@functools.cache
class Tables:
    """The tool, which makes each table once, for all tests; it ends with its input."""

    def __init__(self):
        self.process = subprocess.Popen([TOOL], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def values(self, fen, moves=()):
        """Of the position and after each move, to the side to move: ("win" | "draw" | "loss" | ..., plies)."""
        found = [value.split() for value in self.ask(fen + (";" + " ".join(moves) if moves else "")).split(";")]
        return [(value[0], int(value[1]) if len(value) > 1 and value[1].isdigit() else 0) for value in found]


def fault(tables, fen, score, line, is_whole):
    """What is wrong with an iteration: ("", why) for what cannot be true, ("move", why) for what a search of that move
    may explain, ("line", why) for a whole line that does not end as it says, or None. score: ("cp" | "mate", N)."""
    values = tables.values(fen, line)
    root, after = values[0], values[1]
    kind, n = score
    if kind == "mate" and n > 0:
        if after[0] != "loss" or after[1] > 2 * n - 2:
            return "", f"mate in {n} by {line[0]}, which leads to {after}"
        if is_whole and (len(line) != 2 * n - 1 or values[-1] != ("loss", 0)):
            return "line", f"mate in {n}, and the line is {' '.join(line)}: {values[-1]}"
    elif kind == "mate":
        if root[0] != "loss" or root[1] > -2 * n:
            return "", f"mated in {-n}, and the position is {root}"
        if is_whole and (len(line) != -2 * n or values[-1] != ("loss", 0)):
            return "line", f"mated in {-n}, and the line is {' '.join(line)}: {values[-1]}"
    elif n >= WIN and root[0] == "win" and after[0] != "loss":
        return "move", f"{n} centipawns by {line[0]}: won before, {after} for the other side after it"
    return None


class Judge:
    def __init__(self, name):
        self.name, self.tables, self.random = name, Tables(), random.Random(f"{SEED} {name}")
        self.iterations = self.shallow = 0
        self.faults, self.lines = [], []
        print(f"# {name}: TEST_SEED={SEED}", flush=True)

    def position(self):
        return self.tables.ask(f"random {self.random.choice(MATERIALS)} {self.random.randrange(1 << 60)}")

    def judge(self, fen, depth, score, line, *searches, is_whole=True, said=""):
        """searches(fen, depth, move): (kind, N) of that move alone. said: how the search is repeated."""
        self.iterations += 1
        found = fault(self.tables, fen, score, line, is_whole)
        if found is None:
            return
        how, why = found
        if how == "line":
            self.lines.append(f"{fen} depth {depth}: {why}")
            return
        if how == "move":
            again = [search(fen, depth, line[0]) for search in searches]
            if any(kind == "mate" or n >= score[1] - NEAR for kind, n in again):
                self.shallow += 1
                return
            why += f"; alone it is worth {again}"
        self.faults.append(f"{fen} depth {depth}: {why}{said}")

    def strict(self, fen, depth, score, move):
        """A strict score is the one that the position after the move has, for one thread that knows nothing."""
        after, check_or_quiet = self.tables.ask(f"after {fen};{move}").split(";")
        kind, n = score
        if (kind, n) == ("mate", 1) or depth == 1:
            return  # there is no search of the position after it
        found, = ask("--private", "--strict", "--select", "plain", "--depth", depth - (check_or_quiet == "quiet"), after)
        again = found["score_kind"], -found["score"] + (kind == "mate" and n > 0)
        if again != (kind, n):
            self.faults.append(f"{fen} depth {depth}: strict {score} by {move}, after which it is {again}")

    def end(self):
        print(f"# {self.name}: {self.iterations} iterations, {len(self.faults)} false, {self.shallow} too shallow to see, "
              f"{len(self.lines)} mates whose line ends early; TEST_SEED={SEED}", flush=True)
        check(not self.faults, f"TEST_SEED={SEED}:", *("\n  " + each for each in self.faults[:20]))
        check(not self.lines, f"TEST_SEED={SEED}:", *("\n  " + each for each in self.lines[:20]))
        check(self.shallow <= 5 + self.iterations // 50, f"TEST_SEED={SEED}: too many do not see what they throw away")


def search(uci, fen, depth, *moves):
    """The last iteration: score and line."""
    begin = uci.at
    uci.say(f"position fen {fen}", " ".join((f"go depth {depth}", *moves)))
    best = uci.expect("^bestmove (\\S+)")[1]
    last = [line.split() for line in uci.lines["out"][begin:uci.at] if " score " in line][-1]
    score, line = last.index("score"), last[last.index("pv") + 1:]
    equal((int(last[last.index("depth") + 1]), line[0]), (depth, best), fen)
    return (last[score + 1], int(last[score + 2])), line


def search_move(uci, fen, depth, move):
    return search(uci, fen, depth, "searchmoves", move)[0]


def search_alone(fen, depth, move):
    """By one thread that knows nothing."""
    uci = Uci("--private")
    found = search_move(uci, fen, depth, move)
    uci.quit()
    return found


def by_uci(name, threads, depths, *options):
    judge = Judge(name)
    uci = Uci(*options)
    uci.say(f"setoption name Threads value {threads}", "setoption name Hash value 16")
    uci.ready()
    while judge.iterations < ITERATIONS:
        fen, depth = judge.position(), judge.random.randint(*depths)
        if judge.random.randrange(4) > 0:  # else it goes on with what it knows of other endings
            uci.say("ucinewgame")
        # One at a time: what the table has of an iteration tells whether its score is its move's.
        for iteration in range(1, depth + 1):
            judge.judge(fen, iteration, *search(uci, fen, iteration), functools.partial(search_move, uci), search_alone)
    uci.quit()
    judge.end()


def one_thread():
    by_uci("one thread", 1, (6, 14), "--private")


def two_threads():
    by_uci("two threads", 2, (6, 14), "--private")


def front_end_and_worker():
    with Cluster(shards=1, workers=0) as cluster:
        worker = Worker(cluster.servers, private=True)
        by_uci("front-end and worker", 1, (6, 14), "--private", "--servers", cluster.servers)
        worker.end()


def eight_virtual_workers():
    judge = Judge("eight virtual workers")

    def sim(fen, depth, *options):
        done = run("abdada", "sim", "--json", "--no-reference", "--depth", depth, *options, fen)
        check(done.status == 0, done.tail())
        said = json.loads(done.out().splitlines()[-1])["iterations"]
        equal([each["depth"] for each in said][-1:], [depth], fen)
        return [(each["depth"], (each["score_kind"], each["score"]), each["bestmove"]) for each in said]
    while judge.iterations < ITERATIONS:
        fen, depth = judge.position(), judge.random.randint(4, 12)
        is_strict = judge.random.randrange(8) == 0
        options = ("--seed", judge.random.randrange(1 << 30), *(() if is_strict else ("--select", "full", "--loose")),
                   *judge.random.choice((("--workers", 8), ("--hosts", 4, "--threads", 2), ("--hosts", 2, "--threads", 4))))
        for iteration, score, move in sim(fen, min(depth, 7) if is_strict else depth, *options):
            if is_strict:
                judge.iterations += 1
                judge.strict(fen, iteration, score, move)
            else:
                judge.judge(fen, iteration, score, [move], search_alone, is_whole=False,
                            said=f" (depth {depth}, {' '.join(map(str, options))})")
    judge.end()


if __name__ == "__main__":
    raise SystemExit(main([one_thread, two_threads, front_end_and_worker, eight_virtual_workers],
                          ("abdada", "ttworker", "ttserver")))
