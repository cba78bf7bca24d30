#!/usr/bin/python3
"""What users of chess and Othello programs send: one row a case, with what is right. Kinds of cases that once failed, and
some beside them that must stay as they are."""
import json
import os
import re
import subprocess
import sys
import tempfile

from cluster import PATIENCE, ROOT, check, equal, main, needs, path_of
from uci import Uci, legal_moves

TABLES = os.environ.get("SYZYGY", os.path.join(ROOT, "tests/data/syzygy"))
ROOK = "6k1/5ppp/8/8/8/8/8/R3K3 w Q -"  # Ra8 mates
BOARD = "OOOXXXXOOOOOOOOOOOOOOXOXOOOOXOXXOOOOXX-XOOOOOXX-OOXXXOXXOOOOOOOO"  # X passes and loses by 48
LINE = re.compile(r"info depth (\d+) seldepth \d+ (?:multipv (\d+) )?score (cp|mate) (-?\d+) .* pv (.+)")


def spoken(text, *arguments):
    """Status and lines on stdout of an abdada that reads the text to its end."""
    done = subprocess.run([path_of("abdada"), *arguments, "--private"], timeout=PATIENCE, check=False, cwd=ROOT,
                          input=text if isinstance(text, bytes) else text.encode(), stdout=subprocess.PIPE)
    return done.returncode, done.stdout.decode("utf-8").splitlines()  # which must be UTF-8


def said(*lines):
    status, found = spoken("\n".join(lines) + "\n", "uci")
    equal(status, 0, lines)
    return found


def best(lines):
    """The moves of all bestmove lines."""
    return [line.split()[1] for line in lines if line.startswith("bestmove ")]


def values(lines):
    """[(depth, rank, kind, value, moves)] of the lines with moves."""
    found = [LINE.match(line) for line in lines]
    return [(int(m[1]), int(m[2] or 1), m[3], int(m[4]), m[5].split()) for m in found if m]


def errors(lines):
    return [line for line in lines if "error" in line or "unknown" in line]


def analysed(text, depth=3):
    """JSON objects of analyse, of a text of EPD."""
    return [json.loads(line) for line in spoken(text, "analyse", "--json", "--depth", str(depth), "--epd", "-")[1]]


def solved(text):
    return [json.loads(line) for line in spoken(text, "solve", "--json", "--obf", "-")[1]]


# ---- chess: the search and its lines ----

class Judge:
    """The rules, by an engine of its own."""

    def __init__(self):
        self.uci = Uci("--private")

    def after(self, fen, moves):
        """(position without its counters, halfmoves, is there a check, are there moves)"""
        self.uci.say(f"position fen {fen} moves {' '.join(moves)}", "d", "go perft 1")
        fields = self.uci.expect(r"^(fen|info string error).*")[0].split()
        check(fields[0] == "fen", fen, moves, fields)
        checkers = self.uci.expect("^checkers(.*)$")[1]
        nodes = int(self.uci.expect(r"^Nodes searched: (\d+)")[1])
        return " ".join(fields[1:5]), int(fields[5]), bool(checkers), nodes > 0

    def judge(self, fen, row):
        """The line of a mate ends in it; no line goes on after the end of the game."""
        _, _, kind, value, moves = row
        seen, over = {}, False
        for made in range(len(moves) + 1):
            check(not over, "the line goes on:", fen, row)
            position, halfmoves, is_check, has_moves = self.after(fen, moves[:made])
            seen[position] = seen.get(position, 0) + 1
            over = seen[position] == 3 or halfmoves >= 100 or not has_moves
        if kind == "mate":
            equal(len(moves), 2 * value - 1 if value > 0 else -2 * value, fen, row)
            check(is_check and not has_moves, "no mate:", fen, row)


def the_move_is_the_one_that_the_score_is_of():
    """Fresh processes, one thread; other moves throw a won game away, or miss a piece."""
    for select, depth, fen, right in (
            ("full", 14, "8/5K2/8/2r5/8/6k1/8/2Q5 w - - 0 1", "c1c5"),
            ("plain", 9, "1q6/5k2/8/8/4K3/8/1Q6/8 w - - 0 1", "b2b8"),
            ("full", 12, "8/8/1K6/5r2/k7/8/8/1Q6 w - - 0 1", "b1f5"),
            ("full", 11, "8/8/5K2/5p2/8/8/1P6/4k3 w - - 0 1", "f6f5"),
            ("full", 6, "8/8/8/K7/8/3p2k1/4B3/7R w - - 0 1", "e2d3 h1d1 h1h6"),
            ("full", 9, "R7/Qq6/2k3K1/5P2/8/8/8/8 w - - 0 1", "a7b7")):
        found, = [json.loads(line) for line in
                  spoken("", "analyse", "--json", "--select", select, "--depth", str(depth), fen)[1]]
        check(found["bestmove"] in right.split(), fen, found)
    for depth in (2, 3, 4, 5):  # Rg1+ takes the queen: no answer is too late in the list to be looked at
        found = said("position fen 3k4/8/6r1/8/8/8/8/Q2K4 w - - 0 1", f"go depth {depth}")
        check(best(found)[0] not in ("a1b1", "d1e1"), found)
    found = said("setoption name MultiPV value 3", "position fen k4r2/8/5R2/1K6/8/8/8/8 w - - 0 1", "go depth 11")
    equal(best(found), ["f6f8"])
    equal([row[4][0] for row in values(found) if row[:2] == (11, 1)][-1], "f6f8")


def a_mate_comes_with_its_line():
    """The table lacks it; the search for it goes on after the last iteration. Without it, the score is no mate."""
    judge = Judge()
    for fen, depth, kinds in (("8/8/8/3k4/8/8/3QK3/8 b - - 0 1", 15, ("mate",)),
                              ("8/8/3k4/8/8/4KQ2/8/8 w - - 0 1", 12, ("cp", "mate"))):
        last = values(said("setoption name Hash value 16", f"position fen {fen}", f"go depth {depth}"))[-1]
        check(last[:2] == (depth, 1) and last[2] in kinds and (last[2] == "mate" or abs(last[3]) < 29000), fen, last)
        judge.judge(fen, last)
    judge.uci.quit()


def lines_end_where_the_game_does():
    judge = Judge()
    for fen, depth, lines in (
            ("8/k7/3p4/p2P1p2/P2P1P2/8/8/K7 w - - 0 1", 22, 1), ("7k/5b2/8/2K5/8/4B3/P7/8 b - - 90 1", 14, 1),
            ("1k1r4/pp1b1R2/3q2pp/4p3/2B5/4Q3/PPP2B2/2K5 b - - 0 1", 14, 1),
            ("8/8/4k3/6K1/8/8/1rQ5/1Q6 w - - 0 1", 6, 1), ("8/8/4k3/6K1/8/8/1rQ5/1Q6 w - - 0 1", 7, 3),
            ("kbK5/pp6/1P6/8/8/8/8/R7 w - - 0 1", 10, 2), ("kbK5/pp6/1P6/8/8/8/8/R7 b - - 0 1", 8, 1),
            ("8/8/8/3k4/8/8/3QK3/8 b - - 0 1", 12, 2), ("8/8/8/8/3k4/8/R7/1R2K3 w - - 90 1", 9, 1),
            ("1B1b4/7K/1p6/1k6/8/8/8/8 w - - 0 1", 9, 1)):
        found = values(said(f"setoption name MultiPV value {lines}", f"position fen {fen}", f"go depth {depth}"))
        check(found, fen)
        unlike = {(row[2], row[3], *row[4]): row for row in found}
        for row in unlike.values():
            judge.judge(fen, row)
    judge.uci.quit()


# Endings of which tables know the result for the side to move: by material won, lost, drawn. KBPK: of rook pawns.
ENDINGS = (
    (1,  # KBPK
     "7k/8/2b5/6K1/8/7p/8/8 b, 8/8/P4B2/8/2K1k3/8/8/8 w, Bk6/8/P5K1/8/8/8/8/8 w, 8/P6k/2B5/8/8/8/8/7K w, "
     "8/8/8/7p/8/Kbk5/8/8 b, 3K4/7P/8/8/8/5B2/k7/8 w, 8/P1K5/6B1/8/8/8/k7/8 w"),
    (-1,  # KBPK
     "8/2k5/5K2/6b1/7p/8/8/8 w, 1B6/8/8/6KP/8/8/8/3k4 b, 8/7k/5b2/8/8/p7/8/1K6 w"),
    (0,  # KBPK
     "8/5k2/7P/8/8/4K3/8/7B w, 8/8/7p/6K1/k7/8/8/7b w, 8/8/8/1k6/5B2/8/P7/4K3 w, 8/7k/8/4K3/p1b5/8/8/8 w, "
     "8/6B1/1k6/8/8/P7/6K1/8 w, 8/8/K5k1/8/8/7P/2B5/8 b, 8/8/8/7p/3k4/4bK2/8/8 w, 3k4/8/8/8/7p/8/1b5K/8 w, "
     "8/8/8/2K4p/8/8/1k5b/8 w, 8/8/8/8/2b4p/7K/8/1k6 b"),
    (1,  # KPKP
     "8/p2P4/8/1k6/8/1K6/8/8 w, 8/8/3P4/4K3/8/8/7p/1k6 b, 8/8/3k3P/8/6p1/8/2K5/8 w, 8/7P/8/4K3/8/6p1/7k/8 w, "
     "k7/8/8/8/8/3P4/4Kp2/8 w, 7K/p7/k7/8/P7/8/8/8 b, 5k2/8/8/8/Kp6/8/3P4/8 w, 8/8/P7/1K3p2/8/6k1/8/8 w"),
    (-1,  # KPKP
     "8/8/8/8/8/2K5/p1P5/1k6 w"),
    (0,  # KPKP
     "8/8/8/1p1k4/P7/3K4/8/8 w, 8/2p5/8/1K6/7k/8/3P4/8 b, 1K6/3k4/8/8/8/5p2/6P1/8 w, "
     "8/8/8/1p6/5P2/4k3/6K1/8 b, 8/8/8/2P5/6p1/8/3K3k/8 b, 8/6p1/3k4/8/8/6P1/5K2/8 b, "
     "8/2k5/P7/8/8/1p6/8/1K6 w, 8/8/5K2/6P1/8/1p6/2k5/8 w, 8/8/8/4P3/6k1/2K5/3p4/8 w, 8/8/5K2/5P2/7p/8/8/k7 b"),
    (1,  # KRKP
     "8/5k2/7r/8/8/3K4/6P1/8 b, 8/1K6/8/8/8/8/2P5/r5k1 b, 8/8/5R2/pk6/8/1K6/8/8 w"),
    (-1,  # KRKP
     "5k2/7p/8/8/8/K5R1/8/8 b, 3K4/R7/8/8/1p6/5k2/8/8 b, 3R2k1/8/1K6/p7/8/8/8/8 b, 8/8/8/8/5K1p/R7/8/4k3 b, "
     "8/8/1k6/3R4/p7/8/3K4/8 b, 8/k6p/8/R7/8/8/7K/8 b, 8/1K5p/8/k7/8/8/8/7R b"),
    (0,  # KRKP
     "8/R5K1/3k4/1p6/8/8/8/8 b, 4K3/1R6/3k4/8/8/3p4/8/8 b, R7/2K5/8/8/1pk5/8/8/8 b, 8/8/K7/2P5/8/8/5k2/1r6 b, "
     "8/8/P7/K7/8/5r2/7k/8 w, 3R4/8/8/8/8/2p5/4k1K1/8 b, 8/8/8/8/8/3K1Rpk/8/8 b, 8/8/8/8/8/k7/1p5K/5R2 w, "
     "3K4/8/4P3/8/3r4/4k3/8/8 w, 3r4/3P4/4K3/8/8/8/8/4k3 w"),
    (1,  # KQKP
     "8/3p3k/8/8/8/1K6/3Q4/8 w, 8/2k1K3/8/7P/5q2/8/8/8 b, 8/P7/8/8/8/q7/k3K3/8 b, 5k2/8/2q5/6K1/8/8/1P6/8 b"),
    (-1,  # KQKP
     "8/1k6/8/4K3/2q5/2P5/8/8 w, 1k6/8/8/p7/4Q3/8/6K1/8 b, 8/7k/3K3P/8/8/q7/8/8 w, 8/8/8/2q1K3/8/8/3P4/1k6 w, "
     "8/3k4/8/1P6/8/K7/8/7q w, 8/8/8/1k6/2q5/5P2/8/7K w"),
    (0,  # KQKP
     "2k5/8/8/8/8/3p4/2QK4/8 b, 7K/7P/8/7q/8/1k6/8/8 w, 8/8/8/8/8/k1P5/6K1/7q w, 8/P7/6q1/3k4/7K/8/8/8 w, "
     "8/2Q5/4k3/8/8/1K6/6p1/8 b, 8/6K1/7Q/8/8/8/7p/7k w, 1Q4K1/8/8/8/8/5p2/8/7k b, 8/8/4k3/Q6K/8/8/2p5/8 b, "
     "6k1/8/1Q6/8/8/6K1/p7/8 b, 6k1/8/8/8/1K3Q2/8/3p4/8 b"),
)


def endings_are_won_lost_or_drawn():
    uci = Uci("--private")
    uci.say("setoption name Hash value 1")
    for result, fens in ENDINGS:
        for fen in fens.split(", "):
            uci.say("ucinewgame", f"position fen {fen} - - 0 1", "go depth 14")
            begin = uci.at
            uci.expect("^bestmove")
            _, _, kind, value, _ = values(uci.lines["out"][begin:uci.at])[-1]
            drawn = kind == "cp" and abs(value) <= 50
            check(drawn if result == 0 else not drawn and (value > 0) == (result > 0), fen, result, kind, value)
    uci.quit()


def long_games_are_remembered():
    turn = ["e3d3", "e6d6", "d3e3", "d6e6"]
    late = ["a2a3", "a7a6", "e3d3", "e6d6", "d3e3", "d6e6", "e3d3", "e6d6", "d3e3"]
    for turns in (148, 149, 150, 298, 1500):
        found = said("position fen 8/p7/4k3/8/8/4K3/P3R3/8 w - - 0 1 moves " + " ".join(turn * turns + late), "go depth 10")
        equal((values(found)[-1][2:4], best(found)), (("cp", 0), ["d6e6"]), turns)


def a_line_of_any_length_is_read_or_refused():
    there = "position fen 8/8/8/8/8/5k2/8/5K1R w - - 0 1"
    for turns in (3000, 5000, 20000, 60000):
        found = said(there, "position startpos moves " + "g1f3 g8f6 f3g1 f6g8 " * turns + "e2e4", "go depth 4", "isready",
                     "position startpos", "go depth 1")
        check(errors(found) if best(found)[0] == "(none)" else best(found)[0][1] in "78", turns, errors(found), best(found))
        check("readyok" in found and best(found)[1] in legal_moves("startpos"), turns)
        equal(best(found)[0] == "(none)", turns == 60000, turns)


def a_root_without_moves_has_its_score():
    for fen, score in (("7k/6Q1/6K1/8/8/8/8/8 b - - 0 1", "mate 0"), ("7k/5Q2/6K1/8/8/8/8/8 b - - 0 1", "cp 0")):
        for lines in (1, 3):
            found = said(f"setoption name MultiPV value {lines}", f"position fen {fen}", "go depth 3")
            equal(found[-2:], [f"info depth 0 score {score}", "bestmove (none)"])
    uci = Uci("--private")
    uci.say("position fen 7k/6Q1/6K1/8/8/8/8/8 b - - 0 1", "go ponder wtime 100 btime 100")
    uci.ready()
    equal([line for line in uci.lines["out"] if line.startswith("bestmove")], [])
    uci.say("stop")
    uci.expect(r"^bestmove \(none\)")
    uci.quit()


def a_stopped_search_ends_with_a_line():
    uci = Uci("--private")
    uci.say("position fen r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1", "go infinite")
    uci.expect("(lower|upper)bound|currmove")
    uci.say("stop")
    move = uci.expect(r"^bestmove (\S+)")[1]
    last = [line for line in uci.lines["out"] if line.startswith("info ")][-1]
    check(f" pv {move}" in last and "bound" not in last, last)
    uci.quit()


SYZYGY = f"setoption name SyzygyPath value {TABLES}"


def why_no_tables(*files):
    """Why libfathom has not these tables, or None."""
    if any("no libfathom" in line for line in said(SYZYGY, "isready")):
        return "no libfathom here"
    missing = [name for name in files if not os.path.exists(os.path.join(TABLES, name))]
    return f"no {', '.join(missing)} in {TABLES}: SYZYGY=FOLDER names larger tables" if missing else None


def check_root(fen, bad, lines, value):
    """The lines of a position that tables know are in order, and the first is not `bad`."""
    found = said(SYZYGY, f"setoption name MultiPV value {min(lines, 256)}", f"position fen {fen}", "go depth 6")
    rows = values(found)
    last = [row for row in rows if row[0] == rows[-1][0]]
    equal(len(last), min(lines, len(legal_moves(fen))), fen, found)
    equal(best(found), [last[0][4][0]], fen)
    check(best(found)[0] != bad, fen, best(found))
    worth = [row[3] if row[2] == "cp" else 100000 - row[3] if row[3] > 0 else -100000 - row[3] for row in last]
    equal(worth, sorted(worth, reverse=True), fen)
    equal((worth[0] > 0) - (worth[0] < 0), value, fen, worth)
    check(worth[0] == 0 or abs(worth[0]) > 20000, fen, worth)


@needs(lambda: why_no_tables("KNPvK.rtbw", "KBNvK.rtbw", "KBNvK.rtbz"))
def larger_endgame_tables_decide_the_root():
    """In KBNvK, too, a distance is rounded; the rows of KRvKN below test that with the tables that are here."""
    check_root("7k/3K4/7P/8/8/1N6/8/8 w - - 0 1", "d7e6", 3, 1)
    for fen, value, right in (
            ("8/8/6k1/3B4/3K4/4N3/8/8 w - - 54 106", 0, "d4e5"), ("8/8/6k1/3B4/3K4/4N3/8/8 w - - 52 106", 1, "d4e5"),
            ("8/8/6k1/3BK3/8/4N3/8/8 b - - 55 106", 0, "g6g7 g6h7")):
        found = said(SYZYGY, f"position fen {fen}", "go depth 9")
        score = values(found)[-1][3]
        check((score > 0) - (score < 0) == value and best(found)[0] in right.split(), fen, found)


@needs(why_no_tables)
def endgame_tables_decide_the_root():
    first = said(SYZYGY, "isready")
    check(re.search("Syzygy tables of up to [4-7] pieces", first[0]), first)
    for fen, bad, lines, value in (
            ("7q/K1k5/8/1Q6/8/8/8/8 b - - 0 1", "h8d4", 3, 1), ("7q/K1k5/8/1Q6/8/8/8/8 b - - 0 1", "h8d4", 1, 1),
            ("8/4R3/8/8/2K5/k7/5b2/8 b - - 40 1", "f2b6", 2, 0),
            ("4n3/8/3k4/8/8/R7/K7/8 w - - 0 1", "", 1, 0), ("4n3/8/3k4/8/8/R7/K7/8 w - - 0 1", "", 4, 0),
            ("8/8/8/8/8/1k6/1p6/1K6 b - - 0 1", "", 3, 1), ("8/8/8/8/4k3/8/4p3/4K3 w - - 0 1", "", 3, 0),
            ("8/8/4k3/8/4K3/8/4P3/8 w - - 0 1", "", 5, 1), ("8/8/8/4k3/8/4K3/4P3/8 b - - 0 1", "", 4, -1),
            ("8/8/8/8/3k4/8/R7/1K6 w - - 99 80", "", 3, 0), ("3k4/8/3K4/8/8/8/8/7R w - - 0 1", "", 300, 1)):
        check_root(fen, bad, lines, value)
    # KRvKN has distances that are a ply too short; mate, or the knight's capture, comes on the hundredth ply or after it.
    for fen, moves, value, right in (
            ("8/8/3K4/8/1k5n/8/R7/8 w - - 62 80", "", 1, ""), ("8/8/3K4/8/1k5n/8/R7/8 w - - 64 80", "", 0, ""),
            ("8/7R/8/8/2n5/8/4K3/1k6 w - - 66 80", "", 1, ""), ("8/7R/8/8/2n5/8/4K3/1k6 w - - 68 80", "", 0, ""),
            ("1k6/8/8/5Rn1/3K4/8/8/8 b - - 67 80", "", -1, ""), ("1k6/8/8/5Rn1/3K4/8/8/8 b - - 69 80", "", 0, "g5e6"),
            ("8/8/7k/5K2/8/8/R3n3/8 b - - 61 80", "", 0, "e2g3"), ("8/8/7k/5K2/8/8/R3n3/8 b - - 90 80", "", 0, "e2g3 e2d4 e2c3 e2c1"),
            ("4n3/8/4R3/8/8/8/8/K1k5 w - - 99 80", "", 1, "e6e8"), ("k7/8/1K6/8/8/8/8/7R w - - 99 80", "", 1, "h1h8"),
            # The quickest win would bring a position for the third time.
            ("8/8/8/8/8/1k6/8/K6R w - - 0 1", "h1h8 b3c3 h8h1 c3b3 h1h8 b3c3 h8h1 c3b3", 1, "")):
        for lines in (1, 4):
            found = said(SYZYGY, f"setoption name MultiPV value {lines}", f"position fen {fen} moves {moves}", "go depth 4")
            _, _, kind, score, line = [row for row in values(found) if row[1] == 1][-1]
            equal(((score > 0) - (score < 0), [line[0]]), (value, best(found)), fen, lines, found)
            check(kind == "mate" or score == 0 or abs(score) > 20000, fen, found)
            check(not right or line[0] in right.split(), fen, lines, found)
            check(not moves or line[0] != "h1h8", fen, found)
    named = said(SYZYGY, "position fen 7q/K1k5/8/1Q6/8/8/8/8 b - - 0 1", "go depth 3 searchmoves h8d4")
    equal((best(named), values(named)[-1][3]), (["h8d4"], 0))


# ---- chess: commands ----

def options_are_read_however_they_are_written():
    for option in ("name Hash value 16 ", "name Move  Overhead value 10", "  name\thash  value\t16\t", "name Clear  Hash ",
                   "name UCI_Chess960 value True", "name Ponder value FALSE", "name ponder value true",
                   "name Selection value Plain", "name Algorithm value ABDADA", "name Servers value <EMPTY>",
                   "name SyzygyPath value <Empty> ", "name MultiPV value 3 ", "name UCI_LimitStrength value TRUE "):
        found = said(f"setoption {option}", "isready")
        equal(found, ["readyok"], option)
    for option, wrong in (("name Hash value", "'Hash' is a number from 1 to [0-9]+, not ''"), ("", "setoption name NAME"),
                          ("name", "setoption name NAME"), ("name  value 3", "setoption name NAME"),
                          ("name Move Over head value 3", "no option 'Move Over head'")):
        found = said(f"setoption {option}", "isready")
        check(len(found) == 2 and re.search(wrong, found[0]), option, found)


def commands_are_read_however_they_are_written():
    promoted = "position fen 8/P6k/8/8/8/8/8/K7 w - - 0 1 moves"
    for moves in ("a7a8Q", "A7A8Q", "a7a8q"):
        found = said(f"{promoted} {moves}", "go depth 2", "go depth 2 searchmoves H7G7")
        check(not errors(found) and best(found)[0].startswith("h7") and best(found)[1] == "h7g7", moves, found)
    for text in ("joho isready", "isready", "\tisready ", "x y z isready", "\ufeffisready"):
        equal([line for line in said(text) if "string" not in line], ["readyok"], text)
    equal(len(errors(said("joho isready"))), 0)
    equal(errors(said("joho joho")), ["info string unknown command 'joho'"])
    for ends in ("\n", "\r\n", "\r", " \r\n"):
        found = spoken("position startpos moves e2e4" + ends + "d" + ends + "isready", "uci")[1]  # the last has none
        check("fen rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1" in found and "readyok" in found, ends, found)
    uci = Uci("--private")
    uci.say("go infinite", "isready")
    uci.expect("^readyok")
    uci.say("stop")
    uci.expect("^bestmove")
    uci.quit()


def positions_are_read_or_refused():
    for fen, moves in (("8/P6k/8/8/8/8/8/K7 w - - 0 1", ""), ("k7/8/8/3pP3/8/7n/5K2/8 w - d6 0 1", ""),
                       ("r4rk1/pppnbppp/8/3P4/2PP2b1/P3KN2/1P2B1PP/RN5R w - - 1 1", " moves"),
                       ("4k3/8/8/8/8/8/PPPPPPPP/QQ2K3 w - - 0 1", ""), ("qqqqkqqq/8/8/8/8/8/PPPPPPPP/QQQQKQQQ b - - 0 1", ""),
                       ("1Q2Q3/2Q2K1k/Q4Q2/3Q4/Q5Q1/Q5Q1/1Q6/2Q1QQQ1 w - - 0 1", "")):
        found = said(f"position fen {fen}{moves}", "go depth 3")
        check(not errors(found) and best(found)[0] in legal_moves(fen), fen, found)
    for fen, left_out, kept in (
            ("2rqk1nb/1p3p2/p1B1p1p1/3p4/3P4/2N1BP2/PPPQ1P2/R3K3 b Qk - 0 14", "castling right 'k'", " b Q - 0 14"),
            ("r3k2r/8/8/8/8/8/4K3/R6R w KQkq - 0 1", "castling right 'Q'", " w kq - 0 1"),
            ("1r2k1r1/8/8/8/8/8/8/1R2K1R1 w GBgbA - 0 1", "castling right 'A'", " w GBgb - 0 1"),
            ("4k3/8/8/8/4P3/8/8/4K3 w - e3 0 1", "en-passant square e3", " w - - 0 1"), ("4k3/8/8/8/8/8/8/4K2R w K", "", " w K - 0 1")):
        found = said(f"position fen {fen}", "d", "go depth 2")
        lines = [line for line in found if "left out" in line]
        equal(len(lines), bool(left_out), found)
        check(all(left_out in line for line in lines) and not errors(found), found)
        check(any(line.startswith("fen ") and line.endswith(kept) for line in found), found)
        check(best(found)[0] in legal_moves(fen), fen, found)
    for fen in ("8/8/8/8/8/8/8/8 w - - 0 1",
                "4k3/8/8/8/8/PPPPPPPP/PPPPPPPP/4K3 w - - 0 1"):
        found = said("position startpos", f"position fen {fen}", "go depth 3")
        check(len(errors(found)) == 2 and best(found) == ["(none)"], fen, found)
    found = said("position fen 2Nq4/2K5/1b6/8/7R/3k4/7P/8 w - - 0 1", "go depth 3")
    check(best(found)[0] in ("c7b8", "c7b7", "c7c6", "(none)"), found)
    moved = "fen rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1"
    start = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"
    for text in ("startpos moves e2e4", "startpos Moves e2e4", "startpos\tMOVES\te2e4", "StartPos moves E2E4",
                 f"fen {start} Moves e2e4", f"fen {start} MOVES e2e4", f"FEN {start} moves e2e4"):
        check(moved in said(f"position {text}", "d"), text)
    for text, wrong in (("startpos e2e4", "'moves', not 'e2e4'"), ("startpos movese2e4", "'moves', not 'movese2e4'"),
                        ("startpos fen moves", "'moves', not 'fen'"), ("startposx", "position startpos|fen"),
                        (f"fen {start} e2e4", "more than 6"), ("moves e2e4", "position startpos|fen"),
                        (f"fen{start}", "position startpos|fen"), ("fen moves e2e4", "3 to 6 fields")):
        found = said("position startpos", f"position {text}", "go depth 1")
        check(len(errors(found)) == 2 and wrong in errors(found)[0] and best(found) == ["(none)"], text, found)
    check("fen 5kbq/3Q2n1/6p1/r3PpKn/2n5/8/8/q7 w - - 7 4" in said("position fen 5kbq/3Q2n1/6p1/r3PpKn/2n5/8/8/q7 w - f6 7 4", "d"))
    check("Nodes searched: 28" in said("position fen nrkb2nr/ppppp1p1/6bp/5p2/BPP1P1P1/P7/3P1P1P/qRK1BQNR w BHbh - 0 3",
                                       "go perft 1"))
    check("e1g1" not in legal_moves("4k3/8/8/8/8/8/8/4K1RR w K - 0 1"))
    for fen, depth, wanted in (("7k/8/6K1/8/8/8/8/R7 w - - 99 120", 6, ("mate", 1)), ("7k/8/5K2/8/8/8/8/1R6 w - - 98 120", 10, ("cp", 0))):
        equal(values(said(f"position fen {fen}", f"go depth {depth}"))[-1][2:4], wanted, fen)
    found = values(said("setoption name MultiPV value 5", "position fen 6k1/8/8/8/8/8/1q6/7K w - - 0 1", "go depth 4 searchmoves h1g1"))
    equal({(row[1], row[4][0]) for row in found}, {(1, "h1g1")})


def a_gui_that_is_gone_ends_the_program():
    for arguments, text in ((("uci",), "go depth 60\n"), (("uci",), "go infinite\n"), (("uci",), "go movetime 600000\n"),
                            (("nboard",), "nboard 2\nset depth 50\nhint 3\n"), (("nboard",), "set depth 50\nanalyze\n"),
                            (("gtp", "--time", "600000"), "genmove b\n"), (("gtp",), "name\n"), (("uci",), "isready\n")):
        for closes_input in (True, False):
            program = subprocess.Popen([path_of("abdada"), *arguments, "--private"], stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            try:
                program.stdin.write(text.encode())
                program.stdin.flush()
                if text in ("isready\n", "name\n"):
                    program.stdout.readline()
                if closes_input:
                    program.stdin.close()
                program.stdout.close()
                program.wait(PATIENCE)
            finally:
                program.kill()
                program.wait()


# ---- files of positions ----

def positions_of_a_file_are_read_as_others_write_them():
    rest = "8/8/8/8/8/4k3/8/4K2R w - - id \"b\";"
    for text, name, is_solved in (
            (f"\ufeff{ROOK} bm Ra8; id \"x\";\n", "x", True), (f"{ROOK} c0 \"first; bm Kd2\"; bm Ra8; id \"q\";\n", "q", True),
            (f"{ROOK} c0 \"x; id y\"; id \"real\"; bm Ra8;\n", "real", True), (f"{ROOK} bm a1a8;\n", "1", True),
            (f"{ROOK} bm a1-a8;\n", "1", True), (f"{ROOK} am Ra1-a7; bm Ra8;\n", "1", True), (f"{ROOK} bm Kd2;\n", "1", False)):
        found = analysed(text)
        equal([(each["id"], each["solved"]) for each in found], [(name, is_solved)], text)
    for operations, is_solved in (  # None: it is not said
            ("bm #1;", None), ("c0 5\" nail; bm Ra8; id \"x\";", True), ("bm 1.Ra8;", True), ("bm 1... Ra8;", True),
            ("bm 1. Ra8 2.Kd2;", True), ("bm 12.a1a8;", True), ("am 1.Ra8;", False), ("bm 1.Kd2;", False),
            ("bm Ra8; am Ra8;", False), ("bm Ra8; am Kd2;", True), ("bm Kd2; am Ra7;", False),
            ("bm Kd2 Kxd1;", None), ("bm Ra8 Kxd1;", True), ("bm Kxd1 Kd2; am Ra8;", False), ("bm Kxd1; am Kd2;", None),
            ("am Kd2 Kxd1;", None), ("am Ra8 Kxd1;", False), ("bm Ra8; am Kxd1;", None), ("bm Kd2; am Kxd1;", False),
            ("bm Ra1-a8;", True), ("bm Qa1-a8;", None), ("bm Pa1-a8;", None), ("bm Ka1a8;", None), ("bm Ra1xa8;", None),
            ("bm a1:a8;", None), ("am Qa1-a8;", None), ("bm Ke1-c1;", False), ("bm Ke1-d2;", False), ("bm Re1-d2;", None),
            ("\x1a", None), ("bm Ra8;\n\x1a", True),
            ("- - bm Ra8;", True), ("- bm Ra8;", True), ("0 - bm Ra8;", True), ("0 1 bm Ra8;", True)):
        equal(analysed(f"{ROOK} {operations}\n")[0].get("solved"), is_solved, operations)
    equal(analysed(f"{ROOK} 0 1 - bm Ra8;\n"), [])
    for moves in ("exd6ep", "exd6 e.p.", "exd6 e.p. Kb1", "exd6e.p.", "e5xd6", "e5:d6", "Pe5xd6", "Pe5-d6", "e5-d6", "exd6", "1.e5d6"):  # en passant
        check("solved" in analysed(f"k7/8/8/3pP3/8/8/8/K7 w - d6 bm {moves};\n")[0], moves)
    for moves in ("axb8/Q", "a8/Q", "a7-a8/q", "a7xb8=Q", "Pa7xb8=Q", "a7-a8=Q", "a7a8q"):
        check("solved" in analysed(f"1n6/P6k/8/8/8/8/8/K7 w - - bm {moves};\n")[0], moves)
    equal([each.get("solved") for each in analysed("6k1/5ppp/8/8/8/8/8/R3K3 w Q bm Ra8;\n6k1/5ppp/8/8/8/8/8/R3K3 w Q\n")], [True, None])
    for position, score in (("8/8/4k3/8/8/4K3/4R3/8 w - - hmvc 99; fmvn 80; id \"r\";\n", 0),
                            ("8/8/4k3/8/8/4K3/4R3/8 w - hmvc 99; fmvn 80;\n", 0),
            ("8/8/4k3/8/8/4K3/4R3/8 w - - 99 80 id \"r\";\n", 0)):
        equal(analysed(position, 8)[0]["score"], score, position)
    check(analysed("8/8/4k3/8/8/4K3/4R3/8 w - - hmvc 0; fmvn 80;\n", 8)[0]["score"] > 300)
    for name, wanted in ((b"M\xfcller", "M\u00fcller"), ("M\u00fcller \u265a".encode(), "M\u00fcller \u265a"),
                         (b"\xed\xa0\x80\xff\xc0\x80 \xf0\x9f", "\u00ed\u00a0\u0080\u00ff\u00c0\u0080 \u00f0\u009f")):
        found = analysed(f"{ROOK} id \"".encode() + name + b"\";\n")
        equal(found[0]["id"], wanted)
    for end in ("\n", "\r\n", "\r"):
        equal([each["id"] for each in analysed(f"{ROOK} id \"a\";{end}{rest}{end}")], ["a", "b"], end)


def a_file_of_options_may_begin_with_a_bom():
    with tempfile.NamedTemporaryFile("w", suffix=".ini", encoding="utf-8") as file:
        file.write("\ufeff[analyse]\ndepth = 2\njson = yes\n")
        file.flush()
        found = spoken("", "analyse", "--config", file.name, "startpos")[1]
        equal([json.loads(line)["depth"] for line in found], [2])


# ---- Othello ----

def boards_are_read_as_others_write_them():
    for rest, is_solved in (("; % Egaroucid 138", None), ("; PA:-48;", True), ("; pa:-48; % pass", True), ("; pass:-48", True),
                            ("; PA:-46;", False), ("", None)):
        for end in ("\n", "\r"):
            found = solved(f"{BOARD} X{rest}{end}")
            equal([(each["score"], each["bestmove"], each.get("solved")) for each in found], [(-48, "pass", is_solved)], rest)
    found = spoken("X" * 20 + "-" * 44 + " O;\n" + BOARD.replace("X", "*") + " *;\n", "solve", "--json", "--obf", "-")[1]
    equal([json.loads(line)["score"] for line in found], [-64, -48])


def othello_protocols_answer():
    game = "(;GM[Othello]PB[a]PW[b]TI[5:00]TY[8]BO[8 " + BOARD.replace("X", "*") + " *]B[PA//3.107];)"
    found = spoken(f"nboard 2\nset depth 4\nset game {game}\ngo\n", "nboard")[1]
    check(any(line.startswith("=== G5/48.00/") for line in found), found)
    for end in ("\n", "\r\n", "\r"):
        found = spoken(end.join(("\ufeffclear_board", "play b f5", "play w d6", "genmove b", "genmove b", "")), "gtp", "--time", "100")[1]
        found = [line for line in found if line]
        equal((found[:3], found[3][0], found[4]), (["="] * 3, "=", "? it is White's turn"), end, found)
    done = subprocess.run([path_of("abdada"), "perft", "--game", "othello", "--depth", "9"], stdout=subprocess.PIPE,
                          timeout=PATIENCE, check=False)
    check(b"3005288" in done.stdout, done.stdout)


if __name__ == "__main__":
    sys.exit(main([the_move_is_the_one_that_the_score_is_of,
        a_mate_comes_with_its_line,
        lines_end_where_the_game_does,
        endings_are_won_lost_or_drawn,
        long_games_are_remembered,
        a_line_of_any_length_is_read_or_refused,
        a_root_without_moves_has_its_score,
        a_stopped_search_ends_with_a_line,
        endgame_tables_decide_the_root,
        larger_endgame_tables_decide_the_root,
        options_are_read_however_they_are_written,
        commands_are_read_however_they_are_written,
        positions_are_read_or_refused,
        a_gui_that_is_gone_ends_the_program,
        positions_of_a_file_are_read_as_others_write_them,
        a_file_of_options_may_begin_with_a_bom,
        boards_are_read_as_others_write_them,
        othello_protocols_answer,
    ], programs=("abdada",)))
