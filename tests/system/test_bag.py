#!/usr/bin/python3
"""Files of positions over a cluster: whole positions for each searcher, while some of them die. TAP.

    BIN=build/dev/bin tests/system/test_bag.py

SEED=N: other endings.
"""
import functools
import itertools
import json
import os
import random
import re
import signal
import subprocess
import sys

from bag_peer import Peer, Thief
from cluster import (STARVED, SANITIZED, Cluster, Failure, Process, Shard, Worker, answers, at, check, equal, main, path_of, positions,
                     right, run, scratch, wait_until)
from othello import Board, ending

FOLDER = scratch("bag")
SEED = int(os.environ.get("SEED", 1))
EMPTIES = (11, 13) if SANITIZED else (14, 16)
COUNT = 40
LONG_S = 1  # of one searcher alone: for kills to fall into


def path(name):
    return os.path.join(FOLDER, name)


def endings(name, count, low, high, seed=SEED):
    """A file of random endings, and their texts."""
    rng = random.Random(seed)
    boards = [ending(rng, rng.randint(low, high)) for _ in range(count)]
    with open(path(name), "w", encoding="ascii") as file:
        for number, board in enumerate(boards, 1):
            file.write(f"% e{number}, {board.empties()} empties\n{board} {board.side};\n")
    return path(name), [f"{board} {board.side}" for board in boards]


def start(*arguments):
    process = Process("abdada", "solve", "--json", "--fresh", *arguments)
    process.close_input()
    return process


def scores_of(file):
    """By one searcher alone."""
    return [(row["id"], row["position"], row["score"]) for row in answers(start("--obf", file))]


def outcome(rows):
    return [(row["id"], row["position"], row["score"]) for row in rows]


@functools.lru_cache(None)
def long_endings(count):
    """A file of so many endings that take one searcher LONG_S at least here, and what it finds."""
    for low in itertools.count(EMPTIES[0]):
        file, _ = endings(f"long{count}.obf", count, low, low + 2)
        rows = answers(start("--obf", file))
        if sum(row["time_ms"] for row in rows) >= 1000 * LONG_S:
            return file, outcome(rows)


def figures(process):
    """What the last line says: positions done, at once, taken back and joined."""
    found = re.search(r"(\d+) of \d+ positions, up to (\d+) at once; (\d+) taken back from workers, (\d+) joined", process.err())
    check(found, "no figures:", process.err())
    return [int(figure) for figure in found.groups()]


class TooLate(Exception):
    """The search was over before that could be done to it."""


def while_it_runs(test):
    """Anew where a busy machine let the search go on without us."""
    @functools.wraps(test)
    def wrapped():
        for _ in range(5):
            try:
                return test()
            except TooLate as why:
                said = str(why)
        raise Failure(f"five times it was over before {said}")
    return wrapped


def check_runs(process, what):
    if not process.running():
        equal(process.wait(), 0, process.tail())
        raise TooLate(what)


def await_rows(process, count):
    wait_until(lambda: len(process.lines["out"]) >= count or not process.running(), f"{count} answers")


@while_it_runs
def a_killed_and_a_stopped_worker_cost_no_position():
    file, wanted = long_endings(COUNT)
    with Cluster(shards=1, workers=2, private=True) as cluster:
        front = start("--obf", file, *at(cluster.servers))
        await_rows(front, 6)
        wait_until(lambda: len(cluster.shards[0].working()) == 2 or not front.running(), "workers that help")
        check_runs(front, "anybody was killed")
        cluster.workers[0].kill()
        await_rows(front, 12)
        check_runs(front, "anybody was stopped")
        cluster.workers[1].stop()
        rows = answers(front)
        equal(outcome(rows), wanted)
        done, at_once, _, _ = figures(front)
        equal((done, at_once), (COUNT, 3), "two workers and the front-end")
        check(any(len(row["hosts"]) == 2 and row["own_nodes"] == 0 for row in rows), "a worker found nothing")
        check(any(row["own_nodes"] == row["nodes"] for row in rows), "the front-end found nothing alone")
        cluster.workers[1].send_signal(signal.SIGCONT)


@while_it_runs
def a_worker_that_comes_late_takes_its_part():
    file, wanted = long_endings(4 * COUNT)
    with Cluster(shards=2, workers=0) as cluster:
        front = start("--obf", file, *at(cluster.servers))
        await_rows(front, 2)
        late = Worker(cluster.servers, threads=2, private=True)
        wait_until(lambda: cluster.shards[0].working() or not front.running(), "the worker at work")
        if len(front.lines["out"]) > 2 * COUNT:
            raise TooLate("the worker came")
        rows = answers(front)
        equal(outcome(rows), wanted)
        check(any(row["own_nodes"] == 0 for row in rows), "the worker found nothing", figures(front))
        late.kill()


@while_it_runs
def a_shard_that_dies_costs_no_position():
    file, wanted = long_endings(COUNT)
    for shards in (1, 2):
        with Cluster(shards=shards, workers=1, private=True) as cluster:
            front = start("--obf", file, *at(cluster.servers))
            await_rows(front, 4)
            check_runs(front, "the shard died")
            cluster.shards[0].kill()
            equal(outcome(answers(front)), wanted, f"{shards} shards")


def nobody_is_needed():
    file, _ = endings("alone.obf", COUNT, 6, 10)
    wanted = scores_of(file)
    shard = Shard()
    equal(outcome(answers(start("--obf", file, *at(shard.address)))), wanted, "no worker")
    shard.kill()
    front = start("--obf", file, *at(shard.address))
    equal(outcome(answers(front)), wanted, "no shard")
    check(f"no shard answered at {shard.address}; searched on this machine only" in front.err(), front.err())


def threads_take_small_endings_of_their_own():
    file, wanted = long_endings(COUNT)
    for words in (("--threads", 3), ("--positions", "apart", "--threads", 3), ("--positions", "apart")):
        front = start("--obf", file, *words)
        equal(outcome(answers(front)), wanted, words)
        done, at_once, *_ = figures(front)
        equal((done, at_once > 1), (COUNT, "--threads" in words), words)
    large, _ = endings("large.obf", 2, 21, 21)
    for words in (("--obf", file, "--positions", "together"), ("--obf", file, "--time", 20), ("--obf", large, "--wld")):
        front = start("--threads", 2, *words)
        rows = answers(front)
        check(rows and "at once" not in front.err(), words, front.err())


def small_endings_are_solved_by_all():
    """Faster than a letter travels: many wait at the worker at once."""
    file, _ = endings("small.obf", 300, 1, 7)
    wanted = scores_of(file)
    with Cluster(shards=2, workers=2) as cluster:
        for threads in (1, 2):
            front = start("--obf", file, "--threads", threads, *at(cluster.servers))
            equal(outcome(answers(front)), wanted)
            equal(figures(front)[0], 300)


def chess_is_searched_as_by_one():
    fens = positions()[:8]
    file = path("some.epd")
    with open(file, "w", encoding="ascii") as epd:
        epd.write("".join(f'{fen} id "p{number}";\n' for number, fen in enumerate(fens)))
    words = ("--epd", file, "--depth", 4 if SANITIZED else 6, "--strict")
    alone = Process("abdada", "analyse", "--json", *words)
    alone.close_input()
    wanted = [(row["id"], row["score"], row["depth"]) for row in answers(alone)]
    with Cluster(shards=2, workers=2) as cluster:
        for how in ("auto", "apart", "together"):
            front = Process("abdada", "analyse", "--json", "--fresh", "--positions", how, *at(cluster.servers), *words)
            front.close_input()
            found = answers(front)
            right([(row["id"], row["score"], row["depth"]) for row in found], wanted, how)
            equal("at once" in front.err(), how != "together")
            check(all(row["pv"] and row["pv"][0] == row["bestmove"] for row in found), found)
        front = Process("abdada", "analyse", "--json", "--positions", "apart", "--time", 200, "--epd", file, *at(cluster.servers))
        front.close_input()
        equal([row["id"] for row in answers(front)], [row[0] for row in wanted], "with a limit of time")


def lines(name):
    with open(path(name), encoding="ascii") as file:
        return file.read().splitlines()



def check_scored(name, wanted):
    """The file has each board once, in order, with its score."""
    found = lines(name)
    equal(len(found), len(wanted))
    for line, (_, position, score) in zip(found, wanted):
        board, *moves = [field.strip() for field in line.split(";") if field.strip()]
        equal(board, position)
        check(moves and all(int(move.split(":")[1]) == score for move in moves), line, score)


@while_it_runs
def scores_are_written_and_what_is_there_is_left_out():
    file, wanted = long_endings(COUNT)
    with Cluster(shards=1, workers=1, private=True) as cluster:
        for words in (at(cluster.servers), ("--threads", 2)):
            if os.path.exists(path("scored")):
                os.remove(path("scored"))
            write_scores(file, wanted, *words)


def write_scores(file, wanted, *words):
    """The front-end is killed twice, and its last line is cut."""
    arguments = ("--obf", file, "--obf-out", path("scored"), *words)
    front = start(*arguments)
    wait_until(lambda: not front.running() or (os.path.exists(path("scored")) and len(lines("scored")) >= 5), "the first scores")
    check_runs(front, "it was killed")
    front.kill()
    whole = len(lines("scored"))
    if whole == COUNT:
        raise TooLate("it was killed")
    for cut in (0, 9):  # whole lines; and a torn one
        os.truncate(path("scored"), os.path.getsize(path("scored")) - cut)
        before = lines("scored")[:whole - (cut > 0)]
        again = start(*arguments, "--resume")
        await_rows(again, 1)
        if cut == 0:
            again.kill()
            whole = len(lines("scored"))
            check(whole >= len(before) and lines("scored")[:len(before)] == before, "what was there stays")
        else:
            rows = answers(again)
            equal(outcome(rows), wanted[len(before):], "the rest, each once")
            check(f"{len(before)} of {COUNT} positions are in" in again.err(), again.err())
    check_scored("scored", wanted)
    equal(answers(start(*arguments, "--resume")), [], "nothing is left")
    check_scored("scored", wanted)
    # What was written is read as problems are.
    again = answers(start("--obf", path("scored")))
    check(all(row["solved"] for row in again), again)


def other_files_are_left_alone():
    file, _ = endings("few.obf", 3, 5, 5)
    for text in ("a letter of great value", "dear friend\n", "X" * 64):
        with open(path("letter"), "w", encoding="ascii") as letter:
            letter.write(text)
        done = run("abdada", "solve", "--obf", file, "--obf-out", path("letter"), "--resume")
        if text[0] != "X":  # else it may be a board's line that was torn
            equal((done.status, len(done.lines["err"])), (1, 1), done.tail())
            equal("\n".join(lines("letter")), text.strip())
    done = run("abdada", "solve", "--obf", file, "--obf-out", "/nowhere/scores")
    equal(done.status, 1)
    check("--obf-out /nowhere/scores: No such file" in done.err(), done.err())
    hard = "--OX-O----XXOO--OOOOOXX-OOOOOX--OOOXOXX-OOOOXX-----OOX----X-O--- X;"  # FFO #60
    with open(path("hard.obf"), "w", encoding="ascii") as out:
        out.write(hard + "\n")
    done = run("abdada", "solve", "--private", "--obf", path("hard.obf"), "--obf-out", path("hardly"), "--time", "50")
    equal((done.status, lines("hardly")), (1, []), done.tail())
    check(f"1 board is not in {path('hardly')}" in done.err(), done.err())
    with open(path("one.obf"), "w", encoding="ascii") as out:
        out.write(next(line for line in open(file, encoding="ascii") if line[0] in "XO-"))
    for boards in file, path("one.obf"):
        done = run("abdada", "solve", "--obf", boards, "--obf-out", "/dev/full")
        equal(done.status, 1, done.tail())
        check("No space left" in done.err(), done.err())


def the_positions_are_not_overwritten():
    file, _ = endings("kept.obf", 2, 5, 5)
    with open(path("kept.game"), "w", encoding="ascii") as game:
        game.write("f5d6c3d3c4\n")
    for option in "--obf-out", "--proof":
        for words, source in ((["--obf", file], file), (["--obf", "-"], file), (["--games", path("kept.game")], path("kept.game"))):
            with open(source, "rb") as given:
                text = given.read()
                given.seek(0)
                done = subprocess.run([path_of("abdada"), "solve", "--time", "50", *words, option, source],
                                      stdin=given, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
                given.seek(0)
                equal((done.returncode, given.read()), (1, text), done.stderr)
            check(f"{option} {source} is also the file of the positions" in done.stderr.decode(), done.stderr)


def passes_and_finished_games_are_written():
    over = "X" * 40 + "O" * 24 + " O"
    board = "XXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXO-"
    with open(path("passes.obf"), "w", encoding="ascii") as file:
        file.write(f"{over};\n{board} O;\n{board} X;\n")
    rows = answers(start("--obf", path("passes.obf"), "--obf-out", path("passes"), "--positions", "apart"))
    equal(len(rows), 3)
    found = lines("passes")
    equal(found[0], f"{over}; -16;")
    equal(found[1], f"{board} O; PA:{rows[1]['score']:+d};")
    equal(found[2], f"{board} X; H8:+64;")
    equal(answers(start("--obf", path("passes.obf"), "--obf-out", path("passes"), "--resume")), [])
    file, _ = endings("all.obf", 5, 6, 8)
    for row, line in zip(answers(start("--obf", file, "--all", "--obf-out", path("all"))), lines("all")):
        equal(line, f"{row['position']};" + "".join(f" {move.upper()}:{row['score']:+d};" for move in row["best"]))


def bad_lines_are_left_out():
    file, texts = endings("bad.obf", 20, 5, 8)
    with open(file, encoding="ascii") as good:
        text = good.read().splitlines()
    text[20:20] = ["this is no board", "X" * 64 + "X X;"]
    with open(file, "w", encoding="ascii") as bad:
        bad.write("\n".join(text) + "\n")
    with open(path("empty.obf"), "w", encoding="ascii"):
        pass
    with Cluster(shards=1, workers=1) as cluster:
        front = start("--obf", file, *at(cluster.servers))
        equal(front.wait(), 1)
        equal([json.loads(line)["position"] for line in front.lines["out"]], texts)
        check(f"{file}:21: " in front.err() and f"{file}:22: " in front.err(), front.err())
        check("2 lines of" in front.err(), front.err())
        done = run("abdada", "solve", "--obf", path("empty.obf"), *at(cluster.servers))
        equal(done.status, 2)
        check("contains no position" in done.err(), done.err())


def who_says_what_cannot_be_is_given_nothing_more():
    file, _ = endings("lies.obf", COUNT, *EMPTIES)
    wanted = scores_of(file)
    for lie, what in (((60, 64, 200), "a move that is not legal"), ((60, 65, 20), "a score that the game does not have"),
                      ((3, 0, 20), "less depth than was asked for"), ((60, 0, 0), "a move that is not legal")):
        shard = Shard(heartbeat_ms=5000)  # the liar is a thread of Python, which may have to wait for its turn
        liar = Peer(shard.address, lambda text, lie=lie: lie)
        wait_until(lambda: shard.stats()["workers"] == 1, "the liar")
        said = []

        def is_found_out():
            before, front = liar.given, start("--obf", file, *at(shard.address))
            equal(outcome(answers(front)), wanted, lie)
            said.extend(re.findall(r"^abdada solve: e\d+: worker of unknown name answered with (.*), and is given no more positions$", front.err(), re.M))
            check(not said or 1 <= liar.given - before <= 32, "it was asked", liar.given - before, "times", lie)
            return said

        wait_until(is_found_out, "a lie that comes before others have solved the position")
        equal(said, [what])
        liar.stop()
        shard.kill()


def a_worker_takes_positions_from_the_front_end_alone():
    file, _ = endings("stolen.obf", COUNT, *EMPTIES)
    wanted = scores_of(file)
    shard = Shard(heartbeat_ms=5000)
    worker = Worker(shard.address, private=True)
    thief = Thief(shard.address, f"{Board()} X")  # takes years
    wait_until(lambda: shard.stats()["workers"] == 2, "the thief")

    def has_tried():
        equal(outcome(answers(start("--obf", file, *at(shard.address)))), wanted)
        return thief.tries > 20

    wait_until(has_tried, "letters of the thief")
    equal(thief.robbed, 0)
    thief.stop()
    for process in (worker, shard):
        process.kill()


def an_interrupted_run_says_what_it_has():
    file, _ = endings("long.obf", COUNT, *EMPTIES)
    with open(file, "a", encoding="ascii") as more:
        more.write(f"{Board()} X;\n")  # takes years
    with Cluster(shards=1, workers=1, private=True) as cluster:
        front = start("--obf", file, *at(cluster.servers))
        await_rows(front, COUNT)
        front.send_signal(signal.SIGINT)
        equal(front.wait(), 1)
        equal(len(front.lines["out"]), COUNT)
        check(f"interrupted after {COUNT} of {COUNT + 1} positions" in front.err(), front.err())
        # All are free for the next one.
        file, _ = endings("next.obf", 4, 6, 8)
        right(outcome(answers(start("--obf", file, *at(cluster.servers)))), scores_of(file))


def wrong_use_is_said_in_a_line():
    file, _ = endings("use.obf", 2, 4, 4)
    for words, why in ((["--positions", "there"], "--positions is auto, together or apart, not 'there'"),
                       (["--positions", "apart", "--all"], "--positions apart and --all exclude each other"),
                       (["--positions", "apart", "--algorithm", "ybwc"], "--positions apart and this --algorithm exclude each other"),
                       (["--obf-out", path("x"), "--wld"], "--obf-out writes scores, which --wld does not find"),
                       (["--resume"], "--resume needs")):
        done = run("abdada", "solve", "--obf", file, *words)
        equal((done.status, len(done.lines["err"])), (2, 1), done.tail())
        check(why in done.err(), done.err())


if __name__ == "__main__":
    sys.exit(main([
        a_killed_and_a_stopped_worker_cost_no_position, a_worker_that_comes_late_takes_its_part,
        a_shard_that_dies_costs_no_position, nobody_is_needed, threads_take_small_endings_of_their_own,
        small_endings_are_solved_by_all, chess_is_searched_as_by_one,
        scores_are_written_and_what_is_there_is_left_out, other_files_are_left_alone, the_positions_are_not_overwritten,
        passes_and_finished_games_are_written,
        bad_lines_are_left_out, who_says_what_cannot_be_is_given_nothing_more,
        a_worker_takes_positions_from_the_front_end_alone, an_interrupted_run_says_what_it_has, wrong_use_is_said_in_a_line], unstable=STARVED))
