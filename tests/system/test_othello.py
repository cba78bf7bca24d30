#!/usr/bin/python3
"""Othello over the command line: perft, analyse and solve, alone and over a cluster whose processes are killed. TAP.

    BIN=build/dev/bin tests/system/test_othello.py

OTHELLO_EMPTIES=N: the FFO positions with up to N empty squares (22); all have up to 30, and take hours.
"""
import json
import os
import random
import re
import sys

from algorithms import PARALLEL
from cluster import (PATIENCE, QUICK, ROOT, SANITIZED, Process, Shard, Worker, answers, at, check, equal, main, run, scratch,
                     wait_until)
from othello import Board

DATA = os.path.join(ROOT, "tests/data/othello")
EMPTIES, DAY = int(os.environ.get("OTHELLO_EMPTIES", 22)), 86400
START = "---------------------------OX------XO--------------------------- X"


def problems(name, most):
    """(board and side, its score, its best moves) of the file's positions with at most so many empty squares."""
    found = []
    with open(os.path.join(DATA, name), encoding="ascii") as lines:
        for line in lines:
            if line.startswith("%"):
                continue
            board, *moves = [field.strip() for field in line.strip().split(";") if field.strip()]
            scores = [(move.split(":")[0].lower(), int(move.split(":")[1])) for move in moves]
            best = max(score for _, score in scores)
            if board.split()[0].count("-") <= most:
                found.append((board, best, sorted(move for move, score in scores if score == best)))
    return found


def solve(*arguments, patience=PATIENCE):
    process = Process("abdada", "solve", "--json", *arguments)
    process.close_input()
    process.wait(patience)
    return answers(process)


def the_tree_has_its_sizes():
    done = run("abdada", "perft", "--game", "othello", "--depth", 8, "--threads", 2)
    check("depth 8: 390216 nodes" in done.out(), done.out())
    divided = json.loads(run("abdada", "perft", "--game", "othello", "--depth", 5, "--divide", "--json").out())
    equal((divided["nodes"], divided["moves"]), (1396, {move: 349 for move in ("d3", "c4", "f5", "e6")}))
    over = "X" * 64
    equal(json.loads(run("abdada", "perft", "--game", "othello", "--depth", 3, "--json", f"{over} X").out())["nodes"], 1)


def the_problems_of_the_file_are_solved():
    file = os.path.join(DATA, "ffo-1-19.obf")
    rows = solve("--obf", file)
    wanted = problems("ffo-1-19.obf", 64)
    equal(len(rows), 19)
    for row, (board, score, best) in zip(rows, wanted):
        equal((row["position"], row["score"], row["score_kind"]), (board, score, "discs"), row["id"])
        check(row["bestmove"] in best and row["solved"], row)
        equal((row["empties"], row["depth"]), (board.count("-"),) * 2)
        check(row["id"].startswith("FFO #"), row["id"])
    signs = solve("--obf", file, "--wld")
    for row, (board, score, _) in zip(signs, wanted):
        equal((row["score"], row["solved"]), ((score > 0) - (score < 0), True), row["id"])


def a_stopped_solve_has_solved_nothing():
    path = os.path.join(scratch("othello"), "start.obf")
    with open(path, "w", encoding="ascii") as file:
        file.write(f"{START}; D3:+0; C4:+0; F5:+0; E6:+0;\n")  # whatever move is found is a best one
    process = Process("abdada", "solve", "--json", "--time", 50, "--obf", path)
    process.close_input()
    row, = answers(process)
    equal(row["solved"], False, row)
    check(re.search(r"stopped at depth \d+ of 60: the score is not exact", process.err()), process.tail())


def harder_ones_are_solved():
    for board, score, best in problems("ffo.obf", 17 if SANITIZED else 20 if QUICK else EMPTIES):
        row, = solve("--threads", 2, "--hash", 256, board, patience=PATIENCE if EMPTIES <= 24 else DAY)
        equal(row["score"], score, board)
        check(row["bestmove"] in best, row["bestmove"], best)


def all_best_moves_are_found():
    for board, score, best in problems("ffo-1-19.obf", 14 if SANITIZED else 15):
        row, = solve("--all", *board.split())  # the side as a word of its own
        equal((row["score"], sorted(row["best"])), (score, best), board)


def a_line_is_played_to_the_end():
    board, score, _ = problems("ffo.obf", 17 if SANITIZED else 19)[-1]
    row, = solve("--threads", 2, board)
    equal(row["score"], score)
    played = Board(*board.split())
    side = played.side
    for move in row["pv"]:
        played.play(move)
    equal(played.moves(), [], "the game is over", row["pv"])
    equal(played.discs() if side == "X" else -played.discs(), score, row["pv"])


def a_position_is_analysed():
    process = Process("abdada", "analyse", "--json", "--game", "othello", "--depth", 6)
    process.close_input()
    row, = answers(process)
    equal((row["position"], row["score_kind"], row["depth"], row["empties"]), (START, "discs", 6, 60))
    check(row["bestmove"] in ("d3", "c4", "f5", "e6"), row)
    # As deep as there are squares it is exact, and no deeper iteration is begun.
    board, score, best = problems("ffo-1-19.obf", 64)[0]
    process = Process("abdada", "analyse", "--json", "--game", "othello", "--depth", 100, board)
    process.close_input()
    row, = answers(process)
    equal((row["depth"], row["score"]), (14, score))
    check(row["bestmove"] in best, row)


def a_finished_game_has_a_score():
    row, = solve("X" * 40 + "O" * 24 + " O")
    equal((row["score"], row["bestmove"], row["empties"]), (-16, "none", 0))
    row, = solve("X" * 40 + "-" * 24 + " X")
    equal(row["score"], 64)


def progress_says_what_is_proved():
    if SANITIZED:
        return "takes long with sanitizers"
    board, score, _ = next(p for p in problems("ffo.obf", 25) if p[1] == 28)  # FFO #48: the first guess is too low
    process = Process("abdada", "solve", board)
    process.close_input()
    found, _ = process.wait_line(r"depth 25 is (\S+) or more$", "err")
    check(20 <= int(found[1]) <= score, found[0])
    process.kill()
    return None


def every_algorithm_finds_the_same():
    board, score, _ = problems("ffo-1-19.obf", 64)[7]
    divided, least, _ = problems("ffo.obf", 19)[-1]  # more squares than are solved in one piece
    for algorithm in ("sequential", *PARALLEL):
        for threads in (1, 3):
            row, = solve("--threads", threads, "--algorithm", algorithm, board)
            equal(row["score"], score, algorithm, threads)
        row, = solve("--threads", 3, "--algorithm", algorithm, divided)
        equal((row["score"], row["depth"]), (least, divided.count("-")), algorithm)


def analysed(*options):
    process = Process("abdada", "analyse", "--json", "--private", "--fresh", "--game", "othello", *options)
    process.close_input()
    row, = answers(process)
    return row


def selection_full_prunes_but_not_the_end():
    board, _, _ = max(problems("ffo.obf", 33), key=lambda p: p[0].count("-"))
    depth = 8 if SANITIZED else 11
    plain, full = (analysed("--select", name, "--depth", depth, board) for name in ("plain", "full"))
    equal(full["depth"], depth)
    check(full["nodes"] < 0.7 * plain["nodes"], full["nodes"], plain["nodes"])
    check(abs(full["score"] - plain["score"]) <= 4, full["score"], plain["score"])
    for board, score, best in problems("ffo.obf", 19 if SANITIZED else 20)[-2:]:  # more squares than are solved at once
        row = analysed("--select", "full", "--depth", 60, "--threads", 2, board)
        equal((row["depth"], row["score"]), (board[:64].count("-"), score), board)
        check(row["bestmove"] in best, row, best)


def a_cluster_solves():
    shards = [Shard(memory="32M"), Shard(memory="32M")]
    place = ",".join(shard.address for shard in shards)
    workers = [Worker(place, name="w0"), Worker(place, name="w1", private=True)]
    for board, score, best in problems("ffo.obf", 17 if SANITIZED else 19):
        row, = solve(*at(place), board)
        equal(row["score"], score, board)
        check(row["bestmove"] in best, row["bestmove"], best)
    check(sum(shard.stats()["stores"] for shard in shards) > 0)
    for process in workers + shards:
        process.kill()


def kill_at_random(seed):
    """Processes of a cluster die, one after the other, until only the front-end is left."""
    rng = random.Random(seed)
    print(f"# seed {seed}")
    board, score, best = max(problems("ffo.obf", 19 if SANITIZED else 23), key=lambda p: p[0].count("-"))
    shards = [Shard(memory="32M"), Shard(memory="32M")]
    place = ",".join(shard.address for shard in shards)
    workers = [Worker(place, name=f"w{i}") for i in range(2)]
    front = Process("abdada", "solve", "--json", "--fresh", *at(place), board)
    front.close_input()
    wait_until(lambda: not front.running() or any(shard.running() and shard.stats()["jobs"] for shard in shards),
               "the job to be known")
    victims = shards + workers
    rng.shuffle(victims)
    asked = 0
    for victim in victims:
        victim.kill()
        left = [shard for shard in shards if shard.running()]
        asked = max([asked] + [shard.stats()["asks"] for shard in left])
        wait_until(lambda: not front.running() or not left or
                   any(shard.running() and shard.stats()["asks"] > asked for shard in left), "the search to go on")
    row, = answers(front)
    equal(row["score"], score, board)
    check(row["bestmove"] in best, row["bestmove"], best)


def everything_but_the_front_end_is_killed():
    kill_at_random(20261125)


def everything_is_killed_and_the_solve_goes_on():
    board, score, best = max(problems("ffo.obf", 19 if SANITIZED else 22), key=lambda p: p[0].count("-"))
    path = os.path.join(scratch("othello"), "results")
    shard = Shard(0, "--snapshot", path, "--snapshot-every", 1, memory="32M")
    front = Process("abdada", "solve", "--json", *at(shard.address), board)
    front.close_input()
    wait_until(lambda: not front.running() or shard.stats()["snapshot_entries"] > 0, "a snapshot with results")
    front.kill()
    shard.kill()
    again = Shard(shard.port, "--snapshot", path, memory="32M")
    process = Process("abdada", "solve", "--json", "--resume", *at(again.address), board)
    process.close_input()
    row, = answers(process)
    equal(row["score"], score)
    check(row["bestmove"] in best, row["bestmove"], best)
    again.kill()


WRONG = [
    ([], "a board or --obf FILE is wanted"),
    (["XO"], "2 squares instead of 64"),
    ([START[:64]], "63 squares instead of 64, or no side to move"),
    ([START, "--obf", "file"], "not both"),
    ([START[:64] + " Q"], "the side to move is wanted"),
    (["Z" + START[1:]], "square 1 is X, O or -"),
    ([START + " extra"], "more than 64 squares and the side to move"),
    ([START, "--resume"], "--resume needs --servers or --table"),
    ([START, "--resume", "--fresh", "--servers", "127.0.0.1:1"], "exclude each other"),
    (["--obf", "/nowhere/file"], "/nowhere/file: No such file"),
    ([START, "--threads", "0"], "--threads"),
    ([START, "--depth", "5"], "unknown option '--depth'"),
]


def wrong_use_is_said_in_a_line():
    for words, why in WRONG:
        done = run("abdada", "solve", *words)
        check(done.status in (1, 2) and len(done.lines["err"]) == 1 and done.out() == "", words, done.tail())
        check(why in done.err(), why, "not in", done.err())
    path = os.path.join(scratch("othello"), "bad.obf")
    for line in (START[:-2], f"{START}; D3:+65;", f"{START}; D3:+4294967298;", f"{START}; D3;", f"{START}; D3:x;", "; D3:+2;"):
        with open(path, "w", encoding="ascii") as file:
            file.write(f"% a comment\n\n{line}\n")
        done = run("abdada", "solve", "--obf", path)
        check(done.status in (1, 2) and len(done.lines["err"]) == 1, line, done.tail())
        check("bad.obf:3: " in done.err(), done.err())


if __name__ == "__main__":
    sys.exit(main([
        the_tree_has_its_sizes, the_problems_of_the_file_are_solved, a_stopped_solve_has_solved_nothing, harder_ones_are_solved, all_best_moves_are_found,
        a_line_is_played_to_the_end, a_position_is_analysed, a_finished_game_has_a_score,
        progress_says_what_is_proved, every_algorithm_finds_the_same, selection_full_prunes_but_not_the_end,
        a_cluster_solves, everything_but_the_front_end_is_killed, everything_is_killed_and_the_solve_goes_on,
        wrong_use_is_said_in_a_line], ("abdada", "ttserver", "ttworker")))
