#!/usr/bin/python3
"""`abdada uci --engine` as chess programs use it: forty-one things that they rely on. TAP.

    BIN=bin tests/system/test_engine_gui.py
    BIN=bin ENGINE=stockfish tests/system/test_engine_gui.py

ENGINE: the engine's command, in place of our own search. STORMS: commands at random (10,000; with SHORT 1,000).
"""
import functools
import os
import random
import re
import shlex
import sys

from cluster import STARVED, SHORT, Process, Shard, check, equal, main, path_of
from test_engine import BEST, Front, worker
from uci import legal_moves

OWN = os.environ.get("ENGINE") or shlex.join([path_of("abdada"), "uci", "--private", "--hash", "4"])
MATED, STALEMATE = "7k/6Q1/6K1/8/8/8/8/8 b - - 0 1", "7k/5Q2/6K1/8/8/8/8/8 b - - 0 1"
MATE_IN_2 = "kbK5/pp6/1P6/8/8/8/8/R7 w - - 0 1"
START_960 = "bqnb1rkr/pp3ppp/3ppn2/2p5/5P2/P2P4/NPP1P1PP/BQ1BNRKR w HFhf - 2 9"
CASTLES_960 = "4k3/8/8/8/8/8/8/R4K1R w HA - 0 1"
AFTER_E4 = "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1"
CHECKS = []


def relied_on(test):
    """The test gets a front-end that is ready, in which each "go" is answered once."""
    @functools.wraps(test)
    def with_front():
        front = Front(OWN)
        test(front)
        if front.running():
            front.quit()
    CHECKS.append(with_front)
    return with_front


def infos(lines):
    return [dict(re.findall(r"\b(depth|multipv|nodes|time) (\d+)", line), move=(line + " ").split(" pv ")[1].split()[0])
            for line in lines if line.startswith("info depth") and " pv " in line]


def fen_of(front):
    front.say("d")
    return front.expect("^[Ff]en:? (.*)$")[1]


def answers(front):
    return [line for line in front.lines["out"] if line.startswith("bestmove")]


def said(process, *lines):
    """What the process answers to the lines."""
    begin_at = len(process.lines["out"])
    process.send("\n".join([*lines, "isready"]))
    end = process.wait_line("^readyok$", begin=begin_at)[1]
    return process.lines["out"][begin_at:end - 1]


def raw_engine():
    process = Process("/bin/sh", "-c", "exec " + OWN)
    said(process)
    return process


def begin(front, words):
    front.say(words)
    front.expect("^info depth 3 ")


# ---- who it is, and its options ----

@relied_on
def the_answer_to_uci_is_the_engines(front):
    equal(said(front, "uci"), said(raw_engine(), "uci"))


@relied_on
def options_have_types_and_defaults(front):
    types = dict(re.findall(r"^option name (.*) type (\w+)", "\n".join(said(front, "uci")), re.MULTILINE))
    equal([types[name] for name in ("Ponder", "Hash", "Clear Hash", "SyzygyPath")], ["check", "spin", "button", "string"])
    check(re.search(r"^option name MultiPV type spin default 1 min 1 max \d+$", front.out(), re.MULTILINE), front.tail())


@relied_on
def uci_may_be_asked_again(front):
    once = said(front, "uci")
    equal(once[-1], "uciok")
    equal(said(front, "uci", "uci"), once + once)


@relied_on
def each_option_takes_its_default(front):
    options = re.findall(r"^option name (.*) type \w+ default (\S+)", "\n".join(said(front, "uci")), re.MULTILINE)
    lines = [f"setoption name {name} value {value}" for name, value in options]
    check(len(lines) > 5, lines)
    equal(said(front, *lines), said(raw_engine(), *lines))
    check(front.go("go depth 2")[0] in legal_moves("startpos"), front.tail())


@relied_on
def an_option_has_any_case_and_blanks(front):
    lines = ("  setoption   name  mOvE   Overhead   value   30  ", "setoption name Clear Hash", "setoption name SyzygyPath value <empty>")
    equal(said(front, *lines), said(raw_engine(), *lines))


@relied_on
def of_an_option_that_is_wrong_the_engine_speaks(front):
    lines = ("setoption name Nonsense value 3", "setoption name Hash value 0")
    equal(said(front, *lines), said(raw_engine(), *lines))


# ---- isready, ucinewgame ----

@relied_on
def each_isready_has_its_readyok(front):
    front.say(*["isready"] * 5)
    for _ in range(5):
        front.expect("^readyok$")


@relied_on
def isready_is_answered_during_a_search(front):
    begin(front, "go infinite")
    front.ready()
    equal(answers(front), [])
    front.say("stop")
    front.expect(BEST)


@relied_on
def a_new_game_begins_at_once(front):
    for _ in range(2):
        front.say("ucinewgame", "position startpos")
        front.ready()
        front.go("go depth 3")


# ---- limits ----

@relied_on
def go_depth(front):
    move, lines = front.go("go depth 5")
    check(move in legal_moves("startpos") and infos(lines)[-1]["depth"] == "5", lines)


@relied_on
def go_nodes(front):
    check(1000 < int(infos(front.go("go nodes 20000")[1])[-1]["nodes"]) < 100000)


@relied_on
def go_movetime(front):
    front.go("go movetime 50")


@relied_on
def go_with_clocks(front):
    for words in "winc 10 binc 10", "movestogo 1":
        front.go("go wtime 300 btime 300 " + words, 0.3)


@relied_on
def each_side_has_its_clock(front):
    front.say("position startpos moves e2e4")
    front.go("go wtime 3600000 btime 100", 0.5)


@relied_on
def go_mate(front):
    front.say(f"position fen {MATE_IN_2}")
    check("score mate 2 " in "".join(front.go("go mate 2")[1]), front.tail())


@relied_on
def go_searchmoves(front):
    move, lines = front.go("go depth 4 searchmoves a2a3 h2h3")
    check({move} | {info["move"] for info in infos(lines)} <= {"a2a3", "h2h3"}, lines)


@relied_on
def go_infinite_waits_for_stop(front):
    for words in "go infinite", "go":
        front.say(words)
        front.expect("^info depth 6 ")
        front.ready()
        count = len(answers(front))
        front.say("stop")
        front.expect(BEST)
        equal(len(answers(front)), count + 1)


@relied_on
def go_infinite_waits_though_the_game_is_over(front):
    front.say(f"position fen {MATED}", "go infinite")
    front.ready()
    front.ready()
    equal(answers(front), [])
    front.say("stop")
    front.expect(r"^bestmove \(none\)")


@relied_on
def ponderhit_starts_the_clock(front):
    begin(front, "go ponder wtime 300 btime 300")
    front.ready()
    equal(answers(front), [])
    front.say("ponderhit")
    front.expect(BEST)


@relied_on
def a_wrong_guess_is_stopped(front):
    begin(front, "go ponder wtime 300 btime 300")
    front.say("stop", "position startpos moves d2d4 d7d5", "go wtime 100 btime 100")
    front.expect(BEST)
    front.expect(BEST)


# ---- positions ----

@relied_on
def moves_castle_promote_and_pass(front):
    front.say("position startpos moves e2e4 a7a6 e4e5 d7d5 e5d6 a6a5 g1f3 a5a4 f1e2 a4a3 e1g1 a3b2 a2a3 b2a1n")
    equal(fen_of(front), "rnbqkbnr/1pp1pppp/3P4/8/8/P4N2/2PPBPPP/nNBQ1RK1 w kq - 0 8")
    check(front.go("go depth 2")[0] in legal_moves(fen_of(front)), front.tail())


@relied_on
def a_fen_may_have_moves_behind_it(front):
    front.say("position fen 8/8/8/4k3/8/8/4P3/4K3 w - - 0 1 moves e2e4 e5e4")
    equal(fen_of(front), "8/8/8/8/4k3/8/8/4K3 w - - 0 2")


@relied_on
def chess960_castles_by_the_rook(front):
    front.say("setoption name UCI_Chess960 value true", f"position fen {START_960}")
    front.go("go depth 3")
    front.say(f"position fen {CASTLES_960}")
    equal(front.go("go depth 2 searchmoves f1h1")[0], "f1h1")


@relied_on
def lines_of_multipv_are_numbered(front):
    front.say("setoption name MultiPV value 3")
    found = infos(front.go("go depth 4")[1])
    equal([info["multipv"] for info in found[-3:]], ["1", "2", "3"])
    equal(len({info["move"] for info in found[-3:]}), 3)


@relied_on
def a_game_that_is_over_has_no_move(front):
    for fen in MATED, STALEMATE:
        front.say(f"position fen {fen}", "go depth 5")
        front.expect(r"^bestmove \(none\)")


@relied_on
def an_illegal_move_is_not_followed_by_a_move(front):
    front.say("position startpos moves e2e4 e2e4", "go depth 3")  # some engines stop at it, others have no position then
    check(front.expect(r"^bestmove (\S+)")[1] in {"(none)"} | legal_moves(AFTER_E4), front.tail())
    front.say("position startpos")
    front.go("go depth 3")


@relied_on
def a_fen_that_is_none_has_no_move(front):
    front.say("position fen rnbqkbnr/8/8 w - - 0 1", "go movetime 50")  # an engine may die of it
    front.expect(r"^bestmove \(none\)")


# ---- at the wrong time ----

@relied_on
def stop_without_a_search_is_nothing(front):
    equal(said(front, "stop", "ponderhit", "stop"), [])


@relied_on
def stop_twice_is_answered_once(front):
    begin(front, "go infinite")
    front.say("stop", "stop", "ponderhit", "stop")
    front.expect(BEST)


@relied_on
def another_go_comes_after_the_first_answer(front):
    begin(front, "go infinite")
    front.say("go depth 2 searchmoves a2a3")
    check(front.expect(BEST)[1] != "a2a3")
    equal(front.expect(BEST)[1], "a2a3")


@relied_on
def a_position_and_an_option_wait_for_the_answer(front):
    begin(front, "go infinite")
    front.say(f"position fen {MATED}", "setoption name MultiPV value 2", "ucinewgame")
    check(front.expect(BEST)[1] in legal_moves("startpos"), front.tail())
    front.say("go depth 1")
    front.expect(r"^bestmove \(none\)")


@relied_on
def quit_ends_a_search(front):
    begin(front, "go infinite")
    front.say("quit")
    equal(front.wait(), 0, front.tail())
    equal(len(answers(front)), 1)


@relied_on
def the_end_of_the_input_ends_a_search(front):
    begin(front, "go infinite")
    front.close_input()
    equal(front.wait(), 0, front.tail())
    equal(len(answers(front)), 1)


# ---- lines ----

@relied_on
def garbage_is_passed_over(front):
    front.send(bytes(range(14, 256)) + b"\0\n" + b"go\xff\n\xff\xfe\nbestmove e2e4\ninfo depth 3\nxyzzy\n")
    front.say("position", "position startpos", "debug on", "register later", "setoption", "setoption name")
    front.go("go depth 3")


@relied_on
def lines_end_as_any_system_ends_them(front):
    front.send(b"\n\r\n  \t \nposition startpos\tmoves  e2e4 \r\nisready\r\n\risready\risready\r\n")
    for _ in range(3):
        front.expect("^readyok$")
    check(" b KQkq " in fen_of(front), front.tail())


@relied_on
def commands_come_in_pieces_or_all_at_once(front):
    for byte in b"position startpos moves e2e4\nisready\n":
        front.send(bytes([byte]))
    front.expect("^readyok$")
    front.send(b"".join(b"position startpos moves %s\ngo depth 2\nisready\n" % move for move in (b"e2e4", b"d2d4", b"c2c4")))
    front.searches += 3
    for _ in range(3):
        check(re.fullmatch("[a-h][78][a-h][56]", front.expect(BEST)[1]), front.tail())


@relied_on
def a_line_that_is_too_long_is_said(front):
    front.send(b"x" * (3 << 20))
    front.expect("^info string error: a line is longer than 1048574 bytes$")
    front.send(b"\n")
    front.go("go depth 2")
    front.say("position startpos moves" + 210000 * " g1f3", "go depth 2")
    front.expect("there is no position until the next one$")
    front.expect(r"^bestmove \(none\)")
    front.ready()
    equal(said(front, "go perft 1"), ["info string error: no position: the last one was refused"])
    front.say("position startpos moves e2e4")
    front.go("go depth 2")


@relied_on
def a_search_goes_on_whatever_else_is_said(front):
    begin(front, "go infinite\r\r")
    front.send(b"\n" + b"\r\r\n" + b" \t\ndebug on\nregister later\nxyzzy\n\xff\xfe\n" + b"x" * (3 << 20) + b"\n")
    front.expect("^info string error: a line is longer than 1048574 bytes$")
    for _ in range(2):
        front.ready()
    equal(answers(front), [])
    front.say("stop")
    front.expect(BEST)


@relied_on
def info_lines_are_in_order_and_legal(front):
    legal = legal_moves("startpos")
    found = infos(front.go("go depth 7")[1])
    for name in "depth", "nodes", "time":
        numbers = [int(info[name]) for info in found]
        equal(numbers, sorted(numbers), name)
    check(all(info["move"] in legal for info in found), found)
    equal(answers(front)[-1].split()[1], found[-1]["move"])


@relied_on
def the_move_to_ponder_is_legal(front):
    for _ in range(3):
        front.say("go depth 8")
        move, reply = front.expect(r"^bestmove (\S+) ponder (\S+)$").groups()
        front.say(f"position startpos moves {move}")
        check(reply in legal_moves(fen_of(front)), move, reply)
        front.say("position startpos", "ucinewgame")


@relied_on
def nothing_of_a_search_comes_after_its_answer(front):
    for number in range(20):
        begin_at = front.at
        front.send("go infinite\nstop" if number % 2 else "go movetime 5")
        front.searches += 1
        front.expect(BEST)
        has_info = any(line.startswith("info ") for line in front.lines["out"][begin_at:])
        check(has_info or number % 2 == 0, "it has searched:", front.tail())
        at = front.at
        front.ready()
        equal(front.lines["out"][at:front.at], ["readyok"])


# ---- at random ----

def a_storm_of_commands():
    shard = Shard()
    worker(shard.address, OWN)
    front = Front(OWN, shard.address)
    seed = int(os.environ.get("SEED", random.randrange(1 << 30)))
    print(f"# seed {seed}: SEED={seed} ONLY=a_storm_of_commands {sys.argv[0]}", flush=True)
    choice = random.Random(seed)
    goes = 0
    for _ in range(1000 if SHORT else int(os.environ.get("STORMS", "10000"))):
        what = choice.randrange(12)
        if what < 5:
            goes += 1
            front.say("go " + choice.choice(["depth 3", "movetime 20", "nodes 500", "infinite", "ponder wtime 500 btime 500", "wtime 300 btime 300",
                                             "depth 2 searchmoves e2e4 d2d4 a7a6"]))
        elif what < 7:
            front.say("stop")
        elif what < 8:
            front.say("ponderhit")
        elif what < 10:
            front.say(choice.choice(["position startpos", "position startpos moves e2e4", "position fen 7k/5Q2/5K2/8/8/8/8/8 b - - 0 1",
                                      "position fen 8/8/8/8/8/4k3/4p3/4K3 w - - 0 1"]))
        else:
            front.say(choice.choice(["isready", "ucinewgame", "setoption name Hash value 4", "setoption name MultiPV value 2", "rubbish", "uci",
                                     "setoption name UCI_Chess960 value false"]))
    front.say("stop")
    front.quit()
    equal(sum(line.startswith("bestmove ") for line in front.lines["out"]), goes, "one for each go")
    known = {"id", "option", "uciok", "readyok", "bestmove", "info"}
    equal({line.split(" ")[0] for line in front.lines["out"]} - known if "ENGINE" not in os.environ else set(), set())


# ---- by a library ----

def a_library_of_guis_plays():
    from test_uci_games import WHY_NOT  # pylint: disable=import-outside-toplevel
    if WHY_NOT:
        return WHY_NOT
    import chess.engine  # pylint: disable=import-outside-toplevel
    limit = chess.engine.Limit
    shard = Shard()
    worker(shard.address, OWN)
    with chess.engine.SimpleEngine.popen_uci([path_of("abdada"), "uci", "--engine", OWN, "--servers", shard.address], timeout=60) as engine:
        check(engine.id["name"] and engine.options["Hash"].max > 4, engine.id, engine.options)
        engine.configure({"Hash": 8, "Move Overhead": 20, "Clear Hash": None, "SyzygyPath": ""})
        board, clocks = chess.Board(), [2.0, 2.0]
        while not board.is_game_over() and board.ply() < 60:  # what is no legal move raises an error
            result = engine.play(board, limit(white_clock=clocks[0], black_clock=clocks[1], white_inc=0.01, black_inc=0.01),
                                 info=chess.engine.INFO_ALL, ponder=board.ply() % 3 == 0, game="one")
            check(result.move in board.legal_moves and "depth" in result.info, result)
            board.push(result.move)
        found = engine.analyse(chess.Board(), limit(depth=6), multipv=4)
        equal(len({info["pv"][0] for info in found}), 4)
        equal(str(engine.analyse(chess.Board(MATE_IN_2), limit(mate=2))["score"].white()), "#+2")
        moves = [chess.Move.from_uci("a2a3")]
        equal(engine.play(chess.Board(), limit(nodes=5000), root_moves=moves).move, moves[0])
        fischer = chess.Board(START_960, chess960=True)
        for _ in range(20):
            fischer.push(engine.play(fischer, limit(time=0.02), game="two").move)
        with engine.analysis(chess.Board()) as analysis:
            for info in analysis:
                if info.get("depth", 0) >= 6:
                    break
        check(analysis.wait().move in chess.Board().legal_moves)
        engine.ping()
    return None


if __name__ == "__main__":
    equal(len(CHECKS), 41)
    sys.exit(main(CHECKS + [a_storm_of_commands, a_library_of_guis_plays], ("ttserver", "ttworker", "abdada"), unstable=STARVED))
