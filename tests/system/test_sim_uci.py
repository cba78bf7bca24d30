#!/usr/bin/python3
"""The virtual cluster as a UCI engine: what it answers hangs on its clock and its seed, and on no machine."""
import re
import sys

from cluster import SANITIZED, check, equal, main, run
from uci import Talker, legal_moves

GAME = ["e2e4", "e7e5", "g1f3"]
MOVE_MS = 4 if SANITIZED else 20  # virtual
MIDDLE = "r1bq1rk1/pp2bppp/2n1pn2/3p4/2PP4/2N2N2/PP2BPPP/R1BQ1RK1 w - - 0 9"


class Virtual(Talker):
    def __init__(self, *arguments):
        super().__init__("sim", "--uci", *arguments)

    def position(self, moves=()):
        self.say("position startpos" + (" moves " + " ".join(moves) if moves else ""))

    def go(self, limit):
        """(move, nodes, virtual milliseconds) and all lines."""
        begin = len(self.lines["out"])
        self.say(f"go {limit}")
        nodes, time_ms = map(int, self.expect(r"^info nodes (\d+) time (\d+)$").groups())
        move = self.expect(r"^bestmove (\S+)")[1]
        return move, nodes, time_ms, self.lines["out"][begin:self.at]

    def game(self, moves):
        """Plays on after GAME; all that it says."""
        played, said = list(GAME), []
        for _ in range(moves):
            self.position(played)
            move, *_, lines = self.go(f"movetime {MOVE_MS}")
            played.append(move)
            said += lines
        return said


def depths(lines):
    return [int(found[1]) for line in lines if (found := re.match(r"info depth (\d+) ", line))]


def two_at_once_say_what_one_alone_says():
    for arguments in (("--hosts", 2), ("--hosts", 2, "--threads", 2, "--jitter-us", 20)):
        alone = Virtual(*arguments)
        wanted = alone.game(3)
        alone.quit()
        both = Virtual(*arguments), Virtual(*arguments)
        played, said = [list(GAME), list(GAME)], [[], []]
        for _ in range(3):
            for engine, moves in zip(both, played):
                engine.position(moves)
                engine.say(f"go movetime {MOVE_MS}")
            for engine, moves, lines in zip(both, played, said):
                begin = engine.at
                moves.append(engine.expect(r"^bestmove (\S+)")[1])
                lines += engine.lines["out"][begin:engine.at]
        equal(said[0], wanted)
        equal(said[1], wanted)
        for engine in both:
            engine.quit()


def another_seed_is_another_search():
    said = []
    for seed in (1, 2):
        engine = Virtual("--hosts", 2, "--seed", seed)
        said.append(engine.game(2))
        engine.quit()
    check(said[0] != said[1], said[0])


def a_new_game_begins_with_nothing_and_moves_of_a_game_do_not():
    engine = Virtual("--hosts", 2)
    engine.position(GAME)
    first = engine.go("depth 8")
    again = engine.go("depth 8")
    check(again[1] < first[1] / 2, "the table stays:", first[1], again[1])
    for word in ("ucinewgame", "setoption name Clear Hash"):
        engine.say(word)
        equal(engine.go("depth 8"), first, word)
    engine.quit()


def limits_are_of_virtual_time_and_nodes():
    engine = Virtual("--node-us", 2)
    engine.position()
    for limit, wanted_ms in (("movetime 50", 50), ("wtime 2000 btime 1 winc 20", 74),  # (2000 - 200) / 28 + 20 / 2
                             ("wtime 1 btime 2000 movestogo 1", 1)):
        _, nodes, time_ms, _ = engine.go(limit)
        check(wanted_ms <= time_ms <= wanted_ms + 1, limit, time_ms)
        check(450 * time_ms <= nodes <= 500 * (time_ms + 1), "2 us a node:", limit, nodes, time_ms)
    _, nodes, _, _ = engine.go("nodes 5000")
    check(5000 <= nodes < 5100, nodes)
    _, _, _, lines = engine.go("depth 5")
    equal(max(depths(lines)), 5)
    move, _, _, lines = engine.go("searchmoves a2a3 depth 3")
    equal(move, "a2a3", lines)
    engine.quit()


def limits_of_nodes_are_of_the_threads_of_a_host():
    engine = Virtual("--hosts", 2, "--threads", 4)
    engine.position()
    _, nodes, _, _ = engine.go("nodes 20000")
    check(20000 < nodes < 44000, "two hosts:", nodes)
    engine.quit()


def what_ends_at_once_has_searched_a_move():
    engine = Virtual("--hosts", 4)
    for limit in ("movetime 1", "nodes 1", "wtime -5 btime -5"):
        engine.say("ucinewgame", f"position fen {MIDDLE}")
        move, _, _, lines = engine.go(limit)
        check(move in legal_moves(MIDDLE) and 1 in depths(lines), limit, lines)
    engine.quit()


def what_a_stopped_iteration_found_is_played():
    engine, found = Virtual(), 0
    for spent in range(10, 30):
        engine.say("ucinewgame", f"position fen {MIDDLE}")
        move, _, _, lines = engine.go(f"movetime {spent}")
        said = [line for line in lines if " pv " in line]
        check(f" pv {move}" in said[-1], spent, lines)
        exact = depths(line for line in said if "bound " not in line)
        found += exact[-2] == exact[-1]  # a line below that of the iteration before
    check(found > 0, "no stopped iteration has found anything")
    engine.quit()


def a_stop_ends_a_search():
    engine = Virtual("--hosts", 2)
    engine.position()
    for limit in ("infinite", "movetime 100000000", "ponder wtime 1000 btime 1000"):
        engine.say(f"go {limit}")
        engine.expect("^info depth 4 ")
        engine.say("stop")
        engine.expect("^bestmove ")
    engine.send("go infinite\nstop\nucinewgame\nisready")
    engine.expect("^bestmove ")
    engine.expect("^readyok$")
    engine.say("go ponder movetime 1")
    engine.expect("^info depth 4 ")
    engine.say("ponderhit")
    engine.expect("^bestmove ")
    engine.quit()


def quit_ends_a_search_and_the_end_of_the_input_awaits_it():
    engine = Virtual("--hosts", 2)
    engine.position()
    engine.say("go infinite")
    engine.expect("^info depth 3 ")
    engine.quit()
    engine = Virtual("--hosts", 2)
    engine.position()
    engine.say("go depth 6")
    engine.close_input()
    engine.expect("^bestmove ")
    equal(engine.wait(), 0, engine.tail())
    engine = Virtual()
    engine.close_input()
    equal(engine.wait(), 0, engine.tail())


def bad_positions_are_refused():
    engine = Virtual("--hosts", 2)
    for bad in ("fen 8/8/8/8/8/8/8/8 w - - 0 1", "startpos moves e2e5", "nonsense"):
        engine.say(f"position {bad}", "go movetime 5")
        engine.expect("^info string error: ")
        engine.expect(r"^bestmove \(none\)$")
    engine.say("position fen 7k/5Q2/6K1/8/8/8/8/8 b - - 0 1", "go movetime 5")  # stalemate
    engine.expect(r"^bestmove \(none\)$")
    engine.position(GAME)
    check(engine.go("movetime 5")[0] != "(none)")
    engine.quit()


def several_lines_and_mates_are_said_as_by_the_engine():
    engine = Virtual("--hosts", 2)
    engine.say("setoption name MultiPV value 3", f"position fen {MIDDLE}")
    _, _, _, lines = engine.go("depth 6")
    last = [line for line in lines if line.startswith("info depth 6 ")][-3:]
    equal([re.search(r" multipv (\d) ", line)[1] for line in last], ["1", "2", "3"])
    engine.say("setoption name MultiPV value 1", "position fen kbK5/pp6/1P6/8/8/8/8/R7 w - - 0 1")
    move, _, _, lines = engine.go("mate 2")
    check(move == "a1a6" and any(" score mate 2 " in line for line in lines), lines)
    engine.quit()


def options_of_the_cluster_are_those_of_the_command_line():
    engine = Virtual("--hosts", 2)
    engine.say("uci")
    engine.expect("^uciok$")
    for name in ("Hash", "Threads", "Servers", "Selection"):
        check(not any(line.startswith(f"option name {name} ") for line in engine.lines["out"]), name)
        engine.say(f"setoption name {name} value 1")
        engine.expect(f"^info string error: there is no option '{name}'$")
    engine.quit()
    for words, said in ((("--depth", 3), "only one of"), (("--hosts", "1,2"), "one number of"), (("--workers", "1,2"), "one number of"),
                        (("--game", "othello"), "plays chess"), (("startpos",), "plays chess")):
        done = run("abdada", "sim", "--uci", *words)
        check(done.status == 2 and said in done.err(), words, done.err())


if __name__ == "__main__":
    sys.exit(main([two_at_once_say_what_one_alone_says, another_seed_is_another_search,
                   a_new_game_begins_with_nothing_and_moves_of_a_game_do_not, limits_are_of_virtual_time_and_nodes,
                   limits_of_nodes_are_of_the_threads_of_a_host, what_ends_at_once_has_searched_a_move,
                   what_a_stopped_iteration_found_is_played, a_stop_ends_a_search,
                   quit_ends_a_search_and_the_end_of_the_input_awaits_it, bad_positions_are_refused,
                   several_lines_and_mates_are_said_as_by_the_engine, options_of_the_cluster_are_those_of_the_command_line],
                  ("abdada",)))
