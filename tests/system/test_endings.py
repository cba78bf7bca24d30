#!/usr/bin/python3
"""Scores and moves that belong together: random endings of three and four pieces, judged by tables that another
program makes (endings.c).

What is asked of each iteration, one thread, two, front-end and worker over a shard, eight virtual workers:
- a claimed mate in N is one: the tables know one as short after the move, and the line ends in mate;
- a claimed win, of a position that is won, keeps the win. A search of a few plies may not know better: if a search of
  that move alone gives the score claimed, the score is the move's, and the search did not see far enough. That is
  counted, and no fault;
- a strict score is, to the point, the one of the position after the move.
And of drawn positions at depth 12 that their scores say so; and of the root with Syzygy tables, at any clock: no win is
claimed that is a draw, and no draw that is a win but by the last ply (the tables round).

ITERATIONS: how many for each way to search and each of MATERIALS (default 80 or, with SHORT, 33); DRAWS: how many
positions of each material; TEST_SEED repeats a run. The tables of KPKP, KRKP, KQKP and KBPK take two minutes to make."""
import functools
import json
import os
import random
import re
import subprocess

from cluster import BIN, SHORT, ROOT, Cluster, Worker, ask, check, equal, main, run
from uci import Uci

TOOL = os.path.join(os.environ.get("TOOLS") or os.path.join(os.path.dirname(BIN.rstrip("/")), "tools"), "endings")
ITERATIONS = int(os.environ.get("ITERATIONS", "33" if SHORT else "80"))
DRAWS = int(os.environ.get("DRAWS", "100"))
SEED = int(os.environ.get("TEST_SEED", random.randrange(1 << 32)))
MATERIALS = os.environ.get("MATERIALS", "KQK KRK KPK KRKN KQKN KRKB KBBK").split()
WIN = 150   # centipawns: what claims a win
NEAR = 100  # centipawns by which another search of the same move may differ
EVEN = 50   # centipawns: what claims a draw
# Drawn positions in a hundred that a search of 12 plies may take for something else: none where a rule decides. KBPK is
# of rook pawns, KBBK of bishops on squares of one colour.
MISSED = {"KPK": 0, "KBPK": 0, "KBBK": 0, "KPKP": 2, "KRKP": 2, "KQKP": 2}


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
        self.iterations, self.shallow = dict.fromkeys(MATERIALS, 0), 0
        self.faults, self.lines = [], []
        print(f"# {name}: TEST_SEED={SEED}", flush=True)

    def positions(self):
        """Of the material that had the fewest iterations, until all had enough."""
        while min(self.iterations.values()) < ITERATIONS:
            self.material = min(MATERIALS, key=self.iterations.__getitem__)
            yield self.tables.ask(f"random {self.material} {self.random.randrange(1 << 60)}")

    def judge(self, fen, depth, score, line, *searches, is_whole=True, said=""):
        """searches(fen, depth, move): (kind, N) of that move alone. said: how the search is repeated."""
        self.iterations[self.material] += 1
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
        iterations = sum(self.iterations.values())
        print(f"# {self.name}: {iterations} iterations, at least {min(self.iterations.values())} of each material, {len(self.faults)} false, {self.shallow} too shallow to see, "
              f"{len(self.lines)} mates whose line ends early; TEST_SEED={SEED}", flush=True)
        check(not self.faults, f"TEST_SEED={SEED}:", *("\n  " + each for each in self.faults[:20]))
        check(not self.lines, f"TEST_SEED={SEED}:", *("\n  " + each for each in self.lines[:20]))
        check(self.shallow <= 5 + iterations // 50, f"TEST_SEED={SEED}: too many do not see what they throw away")


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
    for fen in judge.positions():
        depth = judge.random.randint(*depths)
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
    for fen in judge.positions():
        depth = judge.random.randint(4, 12)
        is_strict = judge.random.randrange(8) == 0
        options = ("--seed", judge.random.randrange(1 << 30), *(() if is_strict else ("--select", "full", "--loose")),
                   *judge.random.choice((("--workers", 8), ("--hosts", 4, "--threads", 2), ("--hosts", 2, "--threads", 4))))
        for iteration, score, move in sim(fen, min(depth, 7) if is_strict else depth, *options):
            if is_strict:
                judge.iterations[judge.material] += 1
                judge.strict(fen, iteration, score, move)
            else:
                judge.judge(fen, iteration, score, [move], search_alone, is_whole=False,
                            said=f" (depth {depth}, {' '.join(map(str, options))})")
    judge.end()


def is_claimed(fen, material):
    """Whether the position is one that MISSED speaks of."""
    pieces, at = {}, 0
    for each in fen.split()[0].replace("/", ""):
        pieces.setdefault(each.lower(), []).append(at)
        at += int(each) if each.isdigit() else 1
    if material == "KBPK":
        return pieces["p"][0] % 8 in (0, 7)
    return material != "KBBK" or len({(square + square // 8) % 2 for square in pieces["b"]}) == 1


def known_draws_score_about_zero():
    uci, tables, drawn = Uci("--private"), Tables(), random.Random(f"{SEED} draws")
    uci.say("setoption name Hash value 16")
    uci.ready()
    print(f"# TEST_SEED={SEED}")
    for material, most in ((each, MISSED[each]) for each in MATERIALS if each in MISSED):
        seen, missed = 0, []
        while seen < DRAWS:
            fen = tables.ask(f"random {material} {drawn.randrange(1 << 60)}")
            if is_claimed(fen, material) and tables.values(fen)[0][0] == "draw":
                uci.say("ucinewgame")
                kind, n = search(uci, fen, 12)[0]
                seen += 1
                missed += [f"{fen}: {kind} {n}"] if kind == "mate" or abs(n) > EVEN else []
        print(f"# {material}: {seen} drawn, {len(missed)} of them score more than {EVEN}")
        check(100 * len(missed) <= most * seen, f"TEST_SEED={SEED}:", *("\n  " + each for each in missed))
    for fen in ("8/8/8/8/4k3/8/1B6/K1B5 b - - 0 1", "8/8/4k3/8/8/B1B5/1B6/K7 b - - 0 1", "8/8/2k5/8/2P5/2K5/8/8 w - - 0 1",
                "8/8/2k5/2p5/8/2K5/8/8 b - - 0 1", "1k6/8/P7/8/8/8/5B2/6K1 b - - 0 1", "k7/8/P7/P7/8/P7/8/B5K1 w - - 0 1"):
        uci.say("ucinewgame")
        equal(search(uci, fen, 30)[0], ("cp", 0), fen)
    for fen in ("8/5k2/8/8/8/P3B3/5K2/8 w - - 0 1", "8/8/8/8/1k6/3B4/7P/7K b - - 0 1",  # the race to the wrong corner
                "8/4k3/7P/8/8/1B6/8/1K6 b - - 0 1", "8/8/8/5k2/6p1/K6R/8/8 w - - 0 1", "K7/8/4p3/1R6/8/2k5/8/8 b - - 0 1",
                "8/2Q5/5K2/8/8/7k/5p2/8 w - - 0 1", "8/8/8/7K/8/1Q6/5p2/5k2 b - - 0 1", "8/5p2/8/8/3K4/6P1/1k6/8 b - - 0 1",
                "8/p7/8/8/1P6/1K6/7k/8 b - - 0 1"):
        uci.say("ucinewgame")  # what is left of the draws above differs from seed to seed
        kind, n = search(uci, fen, 12)[0]
        check(kind == "cp" and abs(n) <= EVEN, fen, kind, n)
    uci.quit()


def men(fen):
    """What a capture or pawn move changes: the men, and where the pawns are."""
    rows = [re.sub(r"\d", lambda empty: "." * int(empty[0]), row) for row in fen.split()[0].split("/")]
    return sorted(filter(str.isalpha, "".join(rows))), [[at for at, c in enumerate(row) if c in "Pp"] for row in rows]


def syzygy_tables_at_any_clock():
    """Exact distances to the next capture, pawn move or mate, by endings.c, tell what the rule of fifty moves leaves."""
    tables, rng = Tables(), random.Random(f"{SEED} clocks")
    print(f"# TEST_SEED={SEED}", flush=True)
    uci = Uci("--private")
    uci.say(f"setoption name SyzygyPath value {os.environ.get('SYZYGY', os.path.join(ROOT, 'tests/data/syzygy'))}", "isready")
    if "no libfathom" in uci.expect("info string.*")[0]:
        return "no libfathom here"
    edges = thrown = 0
    count = 300 if SHORT else 1000
    for _ in range(count):
        material = rng.choice("KQK KRK KPK KRKN KRKN KRKN".split() if SHORT else "KQK KRK KPK KRKN KRKN KRKB KQKQ".split())
        fen = tables.ask(f"random {material} {rng.randrange(1 << 60)}")
        kind, plies = tables.values(f"zeroing {fen}")[0]
        clock = rng.choice((rng.randrange(100), min(99, max(0, 100 - plies + rng.randrange(-1, 2)))))
        if kind != "draw" and plies + clock > 100:
            kind = "draw"  # by the rule
        is_edge = plies + clock in (100, 101)
        (how, n), line = search(uci, f"{fen.removesuffix('0 1')}{clock} 100", rng.randint(1, 3))
        said = "draw" if (how, n) == ("cp", 0) else "win" if n > 0 else "loss"
        case = f"TEST_SEED={SEED}: {fen} clock {clock}: {kind} in {plies}, said {how} {n} by {line[0]}"
        check(said in (kind, "draw") if is_edge else said == kind, case)
        edges += said != kind
        after, _ = tables.ask(f"after {fen};{line[0]}").split(";")
        then, plies = tables.values(f"zeroing {after}")[0]
        is_zeroing = men(after) != men(fen)
        then = "draw" if plies + (0 if is_zeroing else clock + 1) > 100 else then
        kept = {"win": "loss", "loss": "win", "draw": "draw"}[kind] == then
        check(kept or is_edge, case, "then", then)
        thrown += not kept
    print(f"# {count} positions, {edges} by the last ply said to be draws, {thrown} of them thrown away")
    uci.quit()


if __name__ == "__main__":
    raise SystemExit(main([syzygy_tables_at_any_clock, known_draws_score_about_zero, one_thread, two_threads, front_end_and_worker,
                           eight_virtual_workers],
                          ("abdada", "ttworker", "ttserver")))
