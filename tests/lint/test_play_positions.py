#!/usr/bin/python3
"""The positions of `make lab LAB=play` (tests/data/play): which are quiet, what is kept of a search, and the file. TAP."""
import json
import os
import sys
import tempfile

from tap import run

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "instruments", "lab"))
from play_positions import MATE, MOST, OUT, PLIES, Engine, is_quiet, kept_rows, value_of, values  # noqa: E402

START = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"
# A UCI engine that knows four moves; asked for all of them it is less sure.
FALSE_ENGINE = """import sys
lines = 1
for command in sys.stdin:
    words = command.split()
    if words == ["uci"]:
        print("id name false\\nuciok")
    elif words == ["isready"]:
        print("readyok")
    elif words == ["go", "perft", "1"]:
        print("a2a3: 1\\nb2b3: 1\\nc2c3: 1\\nd2d3: 1\\n\\nNodes searched: 4")
    elif "MultiPV" in words:
        lines = int(words[-1])
    elif words[:2] == ["go", "nodes"]:
        found = {4: ((3, 50, "a2a3"), (3, 40, "b2b3"), (3, 30, "c2c3"), (3, -70, "d2d3")),
                 2: ((9, 20, "b2b3"), (9, 15, "a2a3"), (10, 90, "a2a3"))}[lines]
        for number, (depth, value, move) in enumerate(found):
            print(f"info depth {depth} multipv {number % lines + 1} score cp {value} pv {move}")
        print("info depth 11 multipv 1 score cp 500 lowerbound pv d2d3")
        print("bestmove b2b3")
    sys.stdout.flush()
    if words == ["quit"]:
        break
"""


def captures_and_promotions_are_not_quiet():
    assert is_quiet(START, "g1f3") and is_quiet("4k3/8/8/8/8/8/8/R3K3 w Q - 0 1", "e1c1")
    assert not is_quiet("4k3/8/8/8/8/8/r7/R3K3 w Q - 0 1", "a1a2")
    assert not is_quiet("7k/P7/8/8/8/8/8/K7 w - - 0 1", "a7a8q")
    passing = "4k3/8/8/3pP3/8/8/8/4K1N1 w - d6 0 1"
    assert not is_quiet(passing, "e5d6") and is_quiet(passing, "e5e6") and is_quiet(passing, "g1f3")


def the_last_whole_iteration_counts_and_the_rest_is_bounded():
    """b2b3 20 and a2a3 15 of the long search; the short one has c2c3 20 behind its best: 0; d2d3 120 behind: -100."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "engine.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write(FALSE_ENGINE)
        engine = Engine(f"{sys.executable} {path}")
        found = values(engine, START, 2, 1000, 100)
        engine.quit()
    assert found == (9, {"b2b3": 20, "a2a3": 15, "c2c3": 0, "d2d3": -100}), found


def a_mate_is_worth_more_than_any_score():
    assert [value_of(f"info score {text} pv".split()) for text in ("cp -12", "mate 3", "mate -2")] == [-12, MATE - 3, 2 - MATE]


def an_interrupted_file_goes_on_and_another_is_refused():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "play", "positions.jsonl")
        assert kept_rows(path, {"seed": 1}) == []
        with open(path, "a", encoding="utf-8") as file:
            file.write('{"game": 4}\n{"game": 7')
        assert kept_rows(path, {"seed": 1}) == [{"game": 4}]
        with open(path, encoding="utf-8") as file:
            assert file.read() == '{"seed": 1}\n{"game": 4}\n'
        try:
            kept_rows(path, {"seed": 2})
        except SystemExit:
            return
    raise AssertionError("rows of another seed were taken")


def the_positions_kept_are_quiet_and_unlike():
    with open(OUT, encoding="utf-8") as file:
        _, *kept = map(json.loads, file)
    assert len(kept) >= 100 and len({position["fen"] for position in kept}) == len(kept), len(kept)
    for position in kept:
        values, ply = position["values"], position["ply"]
        best = next(iter(values))
        assert values[best] == max(values.values()) and abs(values[best]) < MOST, position
        assert len(values) >= 4 and PLIES[0] <= ply <= PLIES[1] and is_quiet(position["fen"], best), position
        assert (position["fen"].split()[1] == "w") == (ply % 2 == 0), position


def main():
    tests = [captures_and_promotions_are_not_quiet, the_last_whole_iteration_counts_and_the_rest_is_bounded,
             a_mate_is_worth_more_than_any_score, an_interrupted_file_goes_on_and_another_is_refused,
             the_positions_kept_are_quiet_and_unlike]
    return run(tests)


if __name__ == "__main__":
    sys.exit(main())
