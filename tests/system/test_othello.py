#!/usr/bin/python3
"""Othello over the command line: perft, analyse and solve, alone and over a cluster whose processes are killed. TAP.

    BIN=build/dev/bin tests/system/test_othello.py

OTHELLO_EMPTIES=N: the FFO positions with up to N empty squares (22); all have up to 30, and take hours.
"""
import collections
import json
import os
import random
import re
import subprocess
import sys
import time

import cluster
from algorithms import PARALLEL
from cluster import (STARVED, BUILD, PATIENCE, SHORT, ROOT, SANITIZED, Process, Shard, Worker, answers, at, check, equal, main,
                     run, scratch, wait_until)
from othello import PASS, Board, ggf, random_board

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
    equal(done.err(), "")
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


def written(name, content):
    path = os.path.join(scratch("othello"), name)
    with open(path, "wb") as file:
        file.write(content if isinstance(content, bytes) else content.encode())
    return path


def a_score_alone_is_compared():
    """OBF with a score and no move, and a name behind it."""
    board, score, _ = problems("ffo-1-19.obf", 14)[-1]
    over = "X" * 40 + "O" * 24 + " O"
    path = written("scores.obf", f"{board}; {score:+d}; % the right one\n{board}; {score - 2}; # wrong\n{over}; -16;\n")
    rows = solve("--obf", path)
    equal([(row["id"], row["solved"]) for row in rows], [("the right one", True), ("wrong", False), ("3", True)])
    shallow, = answers(run("abdada", "analyse", "--json", "--depth", 1, "--obf", written("start.obf", f"{START}; +0;\n")))
    check("solved" not in shallow, "a score that is not exact is compared", shallow)
    text = run("abdada", "solve", "--obf", path).out()
    check("2 of 3 expected moves found" in text, text)


def harder_ones_are_solved():
    for board, score, best in problems("ffo.obf", 17 if SANITIZED else 20 if SHORT else EMPTIES):
        row, = solve("--threads", 2, "--hash", 256, board, patience=PATIENCE if EMPTIES <= 24 else DAY)
        equal(row["score"], score, board)
        check(row["bestmove"] in best, row["bestmove"], best)


def all_best_moves_are_found():
    nodes = collections.Counter()
    for board, score, best in problems("ffo-1-19.obf", 14 if SANITIZED else 15):
        row, = solve("--all", "--fresh", *board.split())  # the side as a word of its own
        equal((row["score"], sorted(row["best"])), (score, best), board)
        one, = solve("--fresh", board)
        nodes.update(all=row["nodes"], one=one["nodes"])
    check(nodes["all"] < 2 * nodes["one"], "moves that are not the best are not solved", nodes)


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


def what_is_left_is_said_by_solve_and_top():
    if SANITIZED:
        return "takes long with sanitizers"
    board = next(board for board, score, _ in problems("ffo.obf", 26) if score == 10 and board.count("-") == 26)  # FFO #50
    shard = Shard()
    process = Process("abdada", "solve", "--servers", shard.address, "--threads", 1, board)
    process.close_input()
    process.wait_line(r"  about [\d.]+ (s|minutes|hours|days) left", "err")

    def job_that_says():
        return [row for row in cluster.top(shard.address)[1]["job"] if row["left_s"] > 0]
    job, = wait_until(job_that_says, "a job that says what is left")
    check(job["left_s"] < 86400, job)
    wait_until(lambda: " left\n" in run("abdada", "top", "--once", "--servers", shard.address).out() + "\n", "the same in top")
    process.kill()
    shard.kill()
    return None


def every_algorithm_finds_the_same():
    board, score, _ = problems("ffo-1-19.obf", 64)[7]
    divided, least, _ = problems("ffo.obf", 19)[-1]  # more squares than are solved in one piece
    for algorithm in ("sequential", *PARALLEL):
        for threads in (1, 3):
            row, = solve("--threads", threads, "--algorithm", algorithm, board)
            equal(row["score"], score, algorithm, threads)
        if BUILD != "tsan":  # where it takes minutes
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
    board, score, best = max(problems("ffo.obf", 19 if SANITIZED else 24 if SHORT else 26), key=lambda p: p[0].count("-"))
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
    board, score, best = max(problems("ffo.obf", 19 if SANITIZED else 24 if SHORT else 26), key=lambda p: p[0].count("-"))
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


def end(moves):
    board = Board()
    for move in moves:
        board.play(move)
    return board


def whole_game(rng):
    """Its moves, passes among them."""
    board, moves = random_board(rng, 30)
    while board.moves():
        moves.append(rng.choice(board.moves()))
        board.play(moves[-1])
    return moves


def at_empties(moves, empties):
    """The position with so many empty squares, of the side that can move, or None."""
    board = Board()
    for move in moves:
        if board.empties() <= empties:
            break
        board.play(move)
    if board.moves() == [PASS]:
        board.play(PASS)
    return f"{board} {board.side}" if board.empties() == empties else None


def wthor(games, said=None):
    """A file of them: said is the number of games in its header."""
    codes = [bytes(10 * int(move[1]) + ord(move[0]) - 96 for move in moves if move != PASS) for moves in games]
    count = (len(games) if said is None else said).to_bytes(4, "little")
    return bytes([20, 26, 11, 28]) + count + bytes([0, 0, 0xea, 7, 8, 0, 24, 0]) + \
        b"".join(bytes(8) + code.ljust(60, b"\0") for code in codes)


def games_are_read_in_the_forms_that_people_have():
    seed = int(os.environ.get("SEED", time.time_ns() % 1000000))
    print(f"# seed {seed}: SEED={seed}", flush=True)
    rng = random.Random(seed)
    games = [whole_game(rng) for _ in range(12)]
    moves = [[move for move in game if move != PASS] for game in games]
    wanted = [(str(number), at_empties(game, 6)) for number, game in enumerate(games, 1) if at_empties(game, 6)]
    forms = {
        "small.txt": "\n".join("".join(game) for game in moves),
        "LARGE.TXT": "\r\n\r\n".join(" ".join(game).replace(PASS, "pa").upper() + " % a comment" for game in games) + "\x1a",
        "games.ggf": "".join(rng.choice(("", "2 ")) + ggf(game, more="PB[a\\]b]") + rng.choice(" \n") for game in games),
        "WTH_2026.wtb": wthor(games),
    }
    for name, content in forms.items():
        path = written(name, content)
        done = run("abdada", "solve", "--json", "--games", path, "--empties", 6)
        rows = [json.loads(line) for line in done.lines["out"]]
        equal([(row["id"], row["position"]) for row in rows], wanted, name)
        equal(done.status, 0 if len(wanted) == len(games) else 1, done.err())  # a game may end before
        for row in rows:
            equal(row["score"], Board(*row["position"].split()).value(), name, row)
        last = answers(run("abdada", "analyse", "--json", "--depth", 1, "--games", path))
        equal([row["position"].split()[0] for row in last], [str(end(game)) for game in games], name)
    file = written("small.txt", "\n".join("".join(moves[int(number) - 1]) for number, _ in wanted))
    scored = file.replace("small.txt", "scored.obf")
    solve("--games", file, "--empties", 6, "--obf-out", scored)
    equal([(row["position"], row["solved"]) for row in solve("--obf", scored)], [(position, True) for _, position in wanted])
    equal(solve("--games", file, "--empties", 6, "--obf-out", scored, "--resume"), [])


def damaged_games_are_named_and_the_others_read():
    games = [["f5", "d6", "c3", "d3", "c4"], ["f5", "f5"], ["f5", "d6"]]
    for name, content, ids, why in (
            ("bad.txt", "\n# f5\nf5d6c3d3c4\nf5f5\nf5d6\n", "13", "bad.txt:4: game 2: move 2, f5, is not legal there"),
            ("bad.ggf", "\n".join(["(;BO[8]B[f5]W[d6", ggf(["f5"])]), "2", "bad.ggf:1: game 1: W[ has no end"),
            ("bad.wtb", wthor(games), "13", "bad.wtb:2: game 2: move 2, f5, is not legal there"),
            ("cut.wtb", wthor(games[:1] + games[2:])[:-1], "1",
             "cut.wtb:2: game 2: the file ends after 67 of its 68 bytes; the header says 2 games"),
            ("huge.wtb", wthor(games[:1], 0xffffffff), "1",
             "huge.wtb:2: game 2: the file ends after 0 of its 68 bytes; the header says 4294967295 games")):
        done = run("abdada", "analyse", "--json", "--depth", 1, "--games", written(name, content))
        equal(("".join(json.loads(line)["id"] for line in done.lines["out"]), done.status), (ids, 1), done.tail())
        said = [line for line in done.lines["err"] if name in line]
        equal(len(said), 2, said)
        check(said[0].endswith(why) and "1 game of " in said[1] and said[1].endswith(" left out: no position"), said)
    done = run("abdada", "solve", "--games", written("short.txt", "f5d6\n"), "--empties", 20)
    equal(done.status, 1)
    check("short.txt:1: game 1: it goes from 60 to 58 empty squares, not to 20" in done.err(), done.err())
    for content, why in ((wthor([])[:10], "not the 16 bytes of its header"), (wthor([]), "without games"),
                         (b"", "contains no position")):
        done = run("abdada", "solve", "--games", written("none.wtb", content))
        check(done.status in (1, 2) and len(done.lines["err"]) == 1 and why in done.err(), done.tail())


WRONG = [
    ([], "give one of a board, --obf FILE and --games FILE"),
    ([START, "--games", "file"], "give one of"),
    ([START, "--empties", "5"], "--empties needs --games"),
    (["--games", "/nowhere/file"], "/nowhere/file: No such file"),
    (["--games", "/"], "/: Is a directory"),
    (["--games", "/dev/null"], "/dev/null contains no position"),
    (["--games", "/dev/null", "--empties", "61"], "--empties"),
    (["XO"], "2 squares instead of 64"),
    ([START[:64]], "63 squares instead of 64, or no side to move"),
    ([START, "--obf", "file"], "give one of"),
    ([START[:64] + " Q"], "the side to move is wanted"),
    (["Z" + START[1:]], "square 1 is X, O or -"),
    ([START + " extra"], "more than 64 squares and the side to move"),
    ([START, "--resume"], "--resume needs --servers or --table"),
    ([START, "--resume", "--fresh", "--servers", "127.0.0.1:1"], "exclude each other"),
    (["--obf", "/nowhere/file"], "/nowhere/file: No such file"),
    ([START, "--threads", "0"], "--threads"),
    ([START, "--depth", "5"], "unknown option '--depth'"),
]


def the_bench_runs_another_solver_beside_ours():
    tool = os.path.join(ROOT, "tests/instruments/bench/bench_othello.py")
    path = os.path.join(scratch("othello"), "peer")

    def bench(peer):
        return subprocess.run([sys.executable, tool, "--bin", cluster.BIN, "--positions", "20-21", "--runs", "2", "--peer", peer],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE, check=False)
    with open(path, "w", encoding="ascii") as file:  # solves nothing, and keeps what it was given
        file.write(f'#!/bin/sh\necho "$*" >>{path}.seen\necho start\necho "$1: $(grep -c : "$2") boards"\n')
    os.chmod(path, 0o755)
    done = bench(f"{path} 'two words'")
    equal((done.returncode, done.stderr), (0, ""))
    rows = done.stdout.split("\n")
    check(rows[0].startswith("FFO #20, #21: 2 runs in turn") and rows[1].strip() == "abdada", rows)
    check(re.search(r" s, 1\.00 times ours .* of CPU, 1\.00 times ours  2 positions, .* 2 of 2 expected", rows[2]), rows)
    equal(rows[3].strip(), f"{path} 'two words'")
    check(re.search(r" s, \d+\.\d\d times ours .* of CPU, \d+\.\d\d times ours  two words: 2 boards$", rows[4]), rows)
    with open(f"{path}.seen", encoding="ascii") as seen:
        equal([line.split("/")[0] for line in seen], ["two words "] * 2)
    for peer, why in (("false", "false: exit status 1"), ("/no/such", "/no/such: "), ("'", "': No closing quotation")):
        done = bench(peer)
        check(done.returncode == 1 and f"bench: {why}" in done.stderr, peer, done.stderr)


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
        progress_says_what_is_proved, what_is_left_is_said_by_solve_and_top, every_algorithm_finds_the_same, selection_full_prunes_but_not_the_end,
        a_cluster_solves, everything_but_the_front_end_is_killed, everything_is_killed_and_the_solve_goes_on,
        a_score_alone_is_compared, games_are_read_in_the_forms_that_people_have,
        damaged_games_are_named_and_the_others_read, the_bench_runs_another_solver_beside_ours, wrong_use_is_said_in_a_line],
        ("abdada", "ttserver", "ttworker"), unstable=STARVED))
