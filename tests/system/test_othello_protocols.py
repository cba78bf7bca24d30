#!/usr/bin/python3
"""The NBoard protocol and GTP, as programs that play Othello use them: what is answered to whatever they say."""
import os
import random
import re
import signal
import subprocess
import sys
import time

from cluster import STARVED, SHORT, SANITIZED, Cluster, Shard, check, equal, main, path_of, promised, run, scratch, wait_until
from othello import PASS, SQUARES, START, Board, Gtp, Nboard, ggf, random_board

# The session of the protocol's description.
EXAMPLE = """nboard 2
set game (;GM[Othello]PC[NBoard]DT[2014-02-21 20:52:27 GMT]PB[./mEdax]PW[chris]RE[?]TI[15:00]TY[8]BO[8 ---------------------------O*------*O--------------------------- *]B[F5]W[F6]B[D3]W[C5]B[E6]W[F7]B[E7]W[F4];)
set depth 6
ping 1
go"""
EXAMPLE_MOVES = "f5 f6 d3 c5 e6 f7 e7 f4".split()
BLACK_PASSES = Board("O*------" + 7 * "--------")
OVER = Board("**------" + 7 * "--------")
COLORS = {"X": "black", "O": "white"}


def seeded():
    seed = int(os.environ.get("SEED", time.time_ns() % 1000000))
    print(f"# seed {seed}: SEED={seed}", flush=True)
    return random.Random(seed)


def played(moves):
    board = Board()
    for move in moves:
        board.play(move)
    return board


# ---- NBoard ----

def nboard_speaks_as_in_its_description():
    nboard = Nboard()
    nboard.say(EXAMPLE)
    nboard.expect("^set myname abdada$")
    nboard.expect("^pong 1$")
    nboard.expect("^status thinking$")
    nboard.expect(r"^nodestats \d+ \d+\.\d\d$")
    found = nboard.expect(r"^=== ([A-H][1-8])/-?\d+\.\d\d/\d+\.\d\d$")
    check(found[1].lower() in played(EXAMPLE_MOVES).moves(), found[0])
    nboard.expect("^status$")
    nboard.say("move D6/-1.00/0.0", "learn")
    nboard.expect("^learned$")
    move, _ = nboard.go()  # "go" alone has moved nothing
    check(move in played(EXAMPLE_MOVES + ["d6"]).moves(), move)
    nboard.say("Move d6", "F5")
    nboard.quit()


def search_lines(lines):
    """[(moves of the line, value, depth), ...]"""
    found = []
    for line in lines:
        match = re.match(r"^search ((?:[A-H][1-8]|PA)+) (-?\d+\.\d\d) 0 (\d+%?) nodes \d+ time \d+\.\d\d$", line)
        if line.startswith("search"):
            check(match, line)
            moves = [text.lower().replace("pa", PASS) for text in re.findall("..", match[1])]
            found.append((moves, float(match[2]), match[3]))
    return found


def nboard_hints_are_lines_of_legal_moves():
    rng, nboard = seeded(), Nboard()
    for made in (0, 10, 25, 50):
        board, moves = random_board(rng, made)
        nboard.set(moves, depth=5)
        nboard.pinged()
        nboard.say("hint 3")
        nboard.expect("^status analyzing$")
        begin = nboard.at
        nboard.expect("^status$")
        found = search_lines(nboard.lines["out"][begin:nboard.at])
        wanted = min(3, len(board.moves()))
        check(len(found) >= wanted, found)
        last = found[-wanted:]
        equal(len({line[0][0] for line in last}), wanted, last)
        equal([line[1] for line in last], sorted((line[1] for line in last), reverse=True), last)
        depth = "100%" if board.empties() <= 9 else "5"
        equal({line[2] for line in last}, {depth}, last)
        for line, _, _ in found:
            after = board.copy()
            for move in line:
                after.play(move)
    nboard.quit()


def nboard_is_interrupted_by_a_ping():
    nboard = Nboard()
    board, moves = random_board(random.Random(1), 12)
    nboard.set(moves, depth=60)
    for command in ("hint 4", "go", "hint 1", "analyze"):
        nboard.say(command)
        nboard.expect("^status [a-z]")
        if command != "analyze":
            nboard.expect("^search .* 0 3 ")
        begin = time.monotonic()
        said = nboard.pinged()
        promised(f"pong in {command}", time.monotonic() - begin, 1)
        equal(sum(line.startswith("===") for line in said), command == "go", said)
        end = nboard.at
        nboard.say("nonsense")
        nboard.pinged()
        equal(nboard.lines["out"][end:nboard.at - 1], [], "nothing comes after pong")
    nboard.say("set depth 3")
    check(nboard.go()[0] in board.moves())
    nboard.quit()


def nboard_is_interrupted_by_commands_but_not_by_unknown_ones():
    nboard = Nboard()
    nboard.set((), depth=60)
    nboard.say("hint 1")
    nboard.expect("^search .* 0 4 ")
    nboard.say("xyzzy", "set nonsense 5", "", "book add", "set", "set game")  # the last is known
    nboard.expect("^status$")
    nboard.expect("^status error: a game in GGF starts with")
    nboard.set((), depth=60)
    for command in ("move f5", "learn", "set contempt 3", "nboard 2", "go", "set depth 60"):
        nboard.say("hint 1")
        nboard.expect("^search .* 0 2 ")
        nboard.say(command)
        nboard.expect("^status$")
        if command == "go":
            nboard.pinged()
    nboard.quit()


WRONG = ["move", "move a1", "move z9", "move d3d4", "move PA", "f3", "hint x", "hint 0", "hint -1", "hint 257", "set depth",
         "set depth 0", "set depth 101", "set depth x", "set depth 99999999999999999999", "ping", "ping x", "ping -1",
         "ping 99999999999", "nboard", "nboard two", "set contempt", "set contempt x", "set contempt nan", "set game",
         "set game (;", "set game (;GM[Othello];)", "set game (;GM[Go]BO[8 - *];)", "set game " + ggf(["a1"]),
         "set game " + ggf(["f5", "f5"]), "set game " + ggf()[:-2], "set game " + ggf().replace("BO[8", "BO[10"),
         "set game " + ggf() + "x", "hint \x1b[31m", "x" * 1100000, "set game " + "(" * 200000]


def nboard_has_no_game_after_one_that_is_refused():
    """A move of the game before would be played in one that it is not of."""
    nboard = Nboard()
    nboard.set(EXAMPLE_MOVES, depth=2)
    nboard.pinged()
    for wrong in ("set game " + ggf(["a1"]), "set  game", " set game " + "x" * 1100000):
        nboard.say(wrong)
        equal(len(nboard.pinged()), 1, wrong[:20])
        for command in ("go", "hint 2", "move D6", "D6", "analyze"):
            nboard.say(command)
            equal(nboard.pinged(), ["status error: there is no game: the last `set game` was refused"], command)
    nboard.set(EXAMPLE_MOVES, depth=2)
    nboard.pinged()
    check(nboard.go()[0] in played(EXAMPLE_MOVES).moves())
    nboard.quit()


def nboard_names_what_is_wrong_and_loses_nothing():
    nboard = Nboard()
    nboard.set(EXAMPLE_MOVES, depth=2)
    board = played(EXAMPLE_MOVES)
    nboard.pinged()
    for wrong in WRONG:
        nboard.say(wrong)
        said = nboard.pinged()
        equal(len(said), 1, wrong[:100], said)
        check(re.match("^status error: [ -~]{10,}$", said[0]), said)
        if wrong.startswith("set game"):
            nboard.set(EXAMPLE_MOVES, depth=2)
            nboard.pinged()
        check(nboard.go()[0] in board.moves(), wrong[:100])
        nboard.pinged()
    nboard.quit()


def nboard_ignores_what_it_does_not_know():
    nboard = Nboard()
    nboard.pinged()
    for line in ("xyzzy", "", "   ", "\t", "#", "SET DEPTH 3", "set", "set nonsense", "Ping 3", "d3d", "pass2",
                 b"\xff\xfe\n", b"\x00 nothing\n", b"pong 1\r\n"):
        nboard.say(line)
    equal(nboard.pinged(), [])
    nboard.send(b"ping 77\r\n")
    nboard.expect("^pong 77$")
    nboard.quit()


def nboard_plays_whole_games():
    rng, passes = seeded(), 0
    nboard = Nboard()
    for _ in range(2 if SHORT or SANITIZED else 8):
        board, moves = random_board(rng, rng.randrange(8))
        nboard.set(moves, depth=rng.randrange(1, 5))
        while board.moves():
            move, value = nboard.go()
            check(move in board.moves(), move, str(board), board.side)
            check((value is None) == (len(board.moves()) == 1), move, value)
            if value is not None and board.empties() <= 4:
                equal(value, board.value(), str(board), board.side)
            passes += move == PASS
            board.play(move)
            nboard.say(f"move {'PA' if move == PASS else rng.choice((move, move.upper()))}" +
                       rng.choice(("", "/1.00", "//0.25", "/-1.2/0.5")))
        nboard.pinged()
        equal(nboard.go(), (PASS, None))
        nboard.expect("^status the game is over$")
        nboard.say("hint 1")
        nboard.expect("^status the game is over$")
    print(f"# {passes} passes")
    nboard.quit()


def nboard_solves_endings():
    rng, nboard = seeded(), Nboard()
    for empties in (1, 3, 5, 6):
        board, moves = random_board(rng, 60 - empties)
        while board.empties() > 6:  # a pass is a move: more than are solved at depth 2 may be left
            board, moves = random_board(rng, 60 - empties)
        nboard.set(moves, depth=2)
        nboard.say("hint 1")
        nboard.expect("^status analyzing$")
        begin = nboard.at
        nboard.expect("^status$")
        line, value, depth = search_lines(nboard.lines["out"][begin:nboard.at])[-1]
        equal((value, depth), (board.value(), "100%"), str(board), board.side)
        for move in line:
            board.play(move)
    nboard.quit()


def nboard_reads_any_board_and_passes():
    nboard = Nboard()
    nboard.set((), BLACK_PASSES)
    equal(nboard.go(), (PASS, None))
    nboard.set((PASS,), BLACK_PASSES)
    equal(nboard.go(), ("c1", None))
    nboard.set((), OVER)
    equal(nboard.go(), (PASS, None))
    nboard.say("move PA", "move c1")
    said = nboard.pinged()
    equal([line for line in said if line.startswith("status error")],
          ["status error: 'c1' is not a legal move for Black"], said)
    nboard.set((), Board(START, "O"), more="TI[5:00]CO[" + "x" * 60000 + "]")
    check(nboard.go()[0] in Board(START, "O").moves())
    nboard.quit()


def nboard_analyzes_a_whole_game():
    nboard = Nboard()
    board, moves = random_board(random.Random(3), 58)
    while board.moves():  # to the end
        moves.append(board.moves()[0])
        board.play(moves[-1])
    nboard.set(moves, depth=1)
    nboard.pinged()
    for command, passes in (("analyze", 0), ("analyse", 2)):
        nboard.say(*["move PA"] * passes, command)  # each side may pass after the end
        nboard.expect("^status analyzing the game$")
        begin = nboard.at
        nboard.expect("^status$")
        found = [re.match(r"^analysis (\d+) (-?\d+\.\d\d)$", line) for line in nboard.lines["out"][begin:nboard.at]]
        found = [match for match in found if match]
        equal([int(match[1]) for match in found], list(range(len(moves) + passes, -1, -1)))
        check(not any("error" in line for line in nboard.lines["out"]), nboard.tail())
        equal(float(found[0][2]), board.discs() if board.side == "X" else -board.discs())
    equal(nboard.go(), (PASS, None))  # the position is the last one again
    nboard.quit()


def nboard_keeps_to_the_clock():
    _, moves = random_board(random.Random(4), 20)
    for more, limit in (("TI[00:02]", 1.0), ("TB[5]TW[00:02]", 1.0), ("TI[00:00]", 0.3), ("TI[00:01//00:02]", 1.0),
                        ("TI[00:00/00:01]", 1.8)):
        nboard = Nboard("--depth", 60)
        board = played(moves).side
        moves_now = moves if board == "O" else moves + [played(moves).moves()[0]]
        nboard.set(moves_now, depth=60, more=more)
        nboard.pinged()
        begin = time.monotonic()
        nboard.go()
        promised(f"a move with {more}", time.monotonic() - begin, limit)
        nboard.quit()
    nboard = Nboard()
    nboard.set((), depth=60, more="TI[00:05]")
    nboard.say("move f5//4.9", "move d6//0.1")
    nboard.pinged()
    begin = time.monotonic()
    nboard.go()
    promised("a move with 0.1 s left", time.monotonic() - begin, 0.2)
    nboard.quit()
    nboard = Nboard("--time", 200)
    nboard.set((), depth=60, more="")
    nboard.pinged()
    begin = time.monotonic()
    nboard.go()
    promised("a move of 0.2 s", time.monotonic() - begin, 0.4)
    nboard.quit()


# ---- GTP ----

COMMANDS = """protocol_version name version known_command list_commands quit boardsize clear_board komi play genmove
reg_genmove undo showboard final_score time_settings time_left set_game list_games cputime""".split()


def gtp_answers_as_its_specification_says():
    gtp = Gtp("--depth", 2)
    for sent, wanted in (
            (b"name\n", ("=", "", "abdada")), (b"protocol_version\n", ("=", "", "2")),
            (b"17 protocol_version\n", ("=", "17", "2")), (b"0 name\n", ("=", "0", "abdada")),
            (b"2147483647 name\n", ("=", "2147483647", "abdada")),
            (b"# a comment\n\n   \n\t\n#\nname # and one more\n", ("=", "", "abdada")),
            (b"3\tname\r\n", ("=", "3", "abdada")), (b"\x01na\x02me\x7f\r\n", ("=", "", "abdada")),
            (b"  4   known_command   play  \n", ("=", "4", "true")), (b"known_command xyzzy\n", ("=", "", "false")),
            (b"xyzzy\n", ("?", "", "unknown command")), (b"5 xyzzy 3\n", ("?", "5", "unknown command")),
            (b"6\n", ("?", "6", "unknown command")), (b"7 #\n", ("?", "7", "unknown command")),
            (b"8 boardsize 8\n", ("=", "8", "")), (b"9 boardsize 19\n", ("?", "9", "unacceptable size")),
            (b"boardsize 8.5\n", ("?", "", "unacceptable size")),
            (b"komi 6.5\n", ("=", "", "")), (b"set_game Othello\n", ("=", "", "")),
            (b"10 list_games\n", ("=", "10", "Othello")),
            (b"11 play b F5\n", ("=", "11", "")), (b"play WHITE d6\n", ("=", "", "")),
            (b"12 undo\n", ("=", "12", "")), (b"undo\n", ("=", "", "")), (b"13 undo\n", ("?", "13", "cannot undo")),
            (b"play black a1\n", ("?", "", "illegal move")), (b"play white d3\n", ("?", "", "illegal move")),
            (b"play black pass\n", ("?", "", "illegal move")),
            (b"14 genmove white\n", ("?", "14", "it is Black's turn")),
            (b"final_score\n", ("?", "", "cannot score: the game is not over")),
            (b"clear_board\n", ("=", "", ""))):
        gtp.send(sent)
        equal(gtp.response(), wanted, sent)
    for wrong in (b"play", b"play black", b"play red d3", b"play black z9", b"play black d33", b"genmove", b"genmove x",
                  b"boardsize", b"boardsize x", b"komi", b"komi x", b"komi nan", b"known_command", b"time_settings",
                  b"time_settings 1 2", b"time_settings 1 2 x", b"time_settings -1 2 3", b"time_left b",
                  b"time_left b x 1", b"time_left x 1 1", b"time_left b -1 0", b"set_game"):
        gtp.send(b"21 " + wrong + b"\n")
        sign, number, text = gtp.response()
        check((sign, number) == ("?", "21") and text.startswith("syntax error: "), wrong, sign, number, text)
    gtp.send(b"set_game Go\n")
    equal(gtp.response(), ("?", "", "unknown game: there is Othello"))
    gtp.send(b"22 name " + b"x" * 1100000 + b"\n23 name\n")
    sign, number, text = gtp.response()
    check(sign == "?" and "longer than" in text, text)
    equal(gtp.response(), ("=", "23", "abdada"))
    gtp.send(b"4294967296 name\n")  # no id: too large
    equal(gtp.response()[0], "?")
    check(float(gtp.do("cputime")) >= 0)
    equal(gtp.do("version"), re.search(r"[\d.]+", run("abdada", "--version").out())[0])
    gtp.quit()
    for line in gtp.lines["out"]:
        check(re.match("^[ -~]*$", line), repr(line))


def gtp_lists_its_commands():
    gtp = Gtp()
    equal(sorted(gtp.do("list_commands").split("\n")), sorted(COMMANDS))
    for command in COMMANDS:
        equal(gtp.do(f"known_command {command}"), "true")
    gtp.quit()


def gtp_plays_and_takes_back_as_the_rules_say():
    rng, gtp = seeded(), Gtp()
    history = [Board()]
    for _ in range(300 if SHORT or SANITIZED else 2000):
        board = history[-1]
        if len(history) > 1 and (rng.random() < 0.3 or not board.moves()):
            gtp.do("undo")
            history.pop()
            while len(history) > 1 and getattr(history[-1], "is_implied", False):
                history.pop()
        else:
            move = rng.choice(SQUARES if rng.random() < 0.3 else board.moves())
            after = board.copy()
            if move not in board.moves() and board.moves() == [PASS]:
                after.play(PASS)  # which need not be said
                after.is_implied = True
            if move in after.moves():
                gtp.do(f"play {rng.choice((COLORS[after.side], after.side.replace('X', 'B').replace('O', 'w')))} {move}")
                if getattr(after, "is_implied", False):
                    history.append(after)
                history.append(after.copy().play(move))
            else:
                equal(gtp.ask(f"play {COLORS[board.side]} {move}"), ("?", "illegal move"))
        equal(gtp.board(), str(history[-1]))
    gtp.quit()


def score_text(board):
    discs = board.discs()
    return "0" if discs == 0 else f"{'B' if discs > 0 else 'W'}+{abs(discs)}"


def whole_game(gtp, board, rng=None, says_passes=True):
    """Plays on against itself to the end. Without passes said, the next side to move is simply asked."""
    while board.moves():
        if board.moves() == [PASS] and not says_passes:
            board.play(PASS)
            continue
        if rng and rng.random() < 0.2:
            before = gtp.board()
            check(gtp.do(f"reg_genmove {COLORS[board.side]}") in board.moves())
            equal(gtp.board(), before, "reg_genmove plays nothing")
        move = gtp.do(f"genmove {COLORS[board.side]}")
        check(move in board.moves(), move, str(board), board.side)
        board.play(move)
    equal(gtp.board(), str(board))
    equal(gtp.do("final_score"), score_text(board))
    for color in ("black", "white"):
        equal(gtp.do(f"genmove {color}"), PASS)
        gtp.do(f"play {color} pass")
        equal(gtp.ask(f"play {color} d3"), ("?", "illegal move"))
    for _ in range(4):
        gtp.do("undo")
    equal(gtp.do("final_score"), score_text(board))


def gtp_plays_whole_games():
    rng = seeded()
    gtp = Gtp("--depth", 3)
    for round_ in range(2 if SHORT or SANITIZED else 10):
        gtp.do("clear_board")
        board, moves = random_board(rng, rng.randrange(30))
        side = "X"
        for move in moves:
            gtp.do(f"play {COLORS[side]} {move}")
            side = "O" if side == "X" else "X"
        whole_game(gtp, board, rng, says_passes=round_ % 2 == 0)
    gtp.quit()


def gtp_counts_empty_squares_for_the_winner():
    gtp = Gtp()
    board = Board()
    for move in "e6 f4 e3 f6 g5 d6 e7 f5 c5".split():  # nothing of White is left
        board.play(move)
        gtp.do(f"play {COLORS[board.other()]} {move}")
    equal((board.moves(), score_text(board), gtp.do("final_score")), ([], "B+64", "B+64"))
    gtp.quit()


def gtp_keeps_to_the_clock():
    seconds = 2
    gtp = Gtp()
    gtp.do(f"time_settings {seconds} 0 0")
    board, used = Board(), {"X": 0.0, "O": 0.0}
    while board.moves():
        begin = time.monotonic()
        move = gtp.do(f"genmove {COLORS[board.side]}")
        used[board.side] += time.monotonic() - begin
        board.play(move)
    for side, all_of_it in used.items():
        promised(f"all moves of {side}", all_of_it, seconds)
    gtp.do("clear_board")
    for settings, left, limit in (("10 0 0", "time_left b 0 0", 0.1), ("0 3 10", "time_left b 1 5", 0.3),
                                  ("0 2 4", "name", 0.6), ("3600 0 0", "time_left b 1 0", 0.5), ("0 0 0", "name", 0.1)):
        gtp.do(f"time_settings {settings}")
        gtp.do(left)
        begin = time.monotonic()
        gtp.do("reg_genmove b")
        promised(f"a move with {settings}, {left}", time.monotonic() - begin, limit)
    gtp.quit()


def gtp_obeys_in_order_whatever_the_pipe_brings():
    gtp = Gtp("--depth", 4)
    commands = []
    for number in range(40):
        commands.append(f"{number} genmove {'b' if number % 2 == 0 else 'w'}")
    gtp.send("\n".join(commands) + "\n99 showboard\n100 quit\n101 name")
    board = Board()
    for number in range(40):
        sign, found, text = gtp.response()
        equal((sign, found), ("=", str(number)), text)
        if board.moves() == [PASS] and text != PASS:
            board.play(PASS)
        board.play(text) if board.moves() else equal(text, PASS)
    equal(gtp.response()[1], "99")
    equal(gtp.response(), ("=", "100", ""))
    equal(gtp.wait(), 0)
    check("=101" not in gtp.lines["out"], gtp.tail())


# ---- both ----

def what_was_asked_is_answered_before_the_input_ends():
    gtp = Gtp("--depth", 6)
    gtp.send(b"1 genmove b\n2 genmove w\n3 showboard")  # the last line has no end
    gtp.close_input()
    equal(gtp.wait(), 0)
    equal([line[:2] for line in gtp.lines["out"] if line[:1] in ("=", "?") and line], ["=1", "=2", "=3"])
    nboard = Nboard()
    nboard.say(EXAMPLE)
    nboard.close_input()
    equal(nboard.wait(), 0)
    equal(sum(line.startswith("=== ") for line in nboard.lines["out"]), 1)
    for closed in ("<&-", "<&- >&-", "<&- 2>&-"):
        for command in ("nboard", "gtp"):
            done = subprocess.run(["sh", "-c", f'exec "$0" {command} {closed}', path_of("abdada")], timeout=60)
            equal(done.returncode, 0, command, closed)


def a_signal_ends_a_search_with_its_answer():
    for number in (signal.SIGTERM, signal.SIGINT):
        gtp = Gtp("--time", 1000000)
        gtp.do("name")  # before its first answer a signal may find no handler
        gtp.send("genmove b")
        nboard = Nboard()
        nboard.set((), depth=60, more="")
        nboard.say("go")
        nboard.expect("^search .* 0 4 ")
        for process in (gtp, nboard):
            begin = time.monotonic()
            equal(process.end(number), 0, process.tail())
            promised(f"end of {process.popen.args[1]}", time.monotonic() - begin, 1)
        check(re.search("^=== ", nboard.out(), re.MULTILINE), nboard.tail())
        idle = Gtp()
        idle.do("name")
        equal(idle.end(number), 0)
        equal(idle.err(), "")


def over_a_shard_with_a_worker_they_play_on_when_it_dies():
    with Cluster(shards=1, workers=1) as cluster:
        gtp = Gtp("--servers", cluster.servers, "--depth", 8, "--threads", 2)
        nboard = Nboard("--servers", cluster.servers)
        before = cluster.shards[0].stats()["asks"]
        board = Board()
        for _ in range(6):
            move = gtp.do(f"genmove {COLORS[board.side]}")
            check(move in board.moves(), move)
            board.play(move)
        equal(gtp.board(), str(board))
        slow = Gtp("--servers", cluster.servers, "--depth", 60)
        slow.send("genmove black")
        slow.wait_line(r"1 worker searches \d+% of the nodes; 1 of 1 shards up$", "err")
        slow.kill()
        nboard.set((), depth=60)
        nboard.say("hint 2")
        nboard.expect("^search .* 0 6 ")
        wait_until(lambda: cluster.shards[0].working(), "a worker that helps")
        nboard.expect(r"^status analyzing: 1 worker searches \d+% of the nodes; 1 of 1 shards up$")
        check(cluster.shards[0].stats()["asks"] > before, "the shard was not asked")
        cluster.shards[0].kill()
        begin = nboard.at
        nboard.expect("^search .* 0 [0-9]+ ")
        check("pong" not in nboard.lines["out"][begin:])
        nboard.pinged()
        nboard.say("set depth 6")
        check(nboard.go()[0] in Board().moves())
        nboard.quit()
        for _ in range(4):
            move = gtp.do(f"genmove {COLORS[board.side]}")
            check(move in board.moves(), move)
            board.play(move)
        gtp.quit()
    alone = Gtp("--servers", cluster.servers, "--depth", 4)
    check(alone.do("genmove b") in Board().moves())
    alone.quit()
    check(f"no shard answered at {cluster.servers}; searching on this machine until one does" in alone.err(), alone.err())


def keys_let_them_in():
    keys = os.path.join(scratch("keys"), "k")
    equal(run("abdada", "keygen", keys).status, 0)
    shard = Shard(keys=keys)

    def is_let_in():  # on a busy machine the shard may answer after the search
        gtp = Gtp("--servers", shard.address, "--keys", keys, "--depth", 8, "--private")
        check(gtp.do("genmove b") in Board().moves())
        asks = shard.stats()["asks"]
        gtp.quit()
        check(gtp.err() == "" or "no shard answered at " in gtp.err(), gtp.err())
        return gtp.err() == "" and asks > 0
    wait_until(is_let_in, "a search that asks the shard")
    outsider = Gtp("--servers", shard.address, "--depth", 2)
    check(outsider.do("genmove b") in Board().moves())
    outsider.quit()
    check("searching on this machine until one does" in outsider.err(), outsider.err())
    shard.kill()


def storm_of_nboard(nboard, rng, games, length):
    """Commands without waiting for answers. Returns how many "===" there must be."""
    goes = 0
    for _ in range(length):
        word = rng.choice("go go go hint ping depth game move learn analyze nonsense wrong".split())
        goes += word == "go"
        nboard.send({
            "go": "go", "hint": f"hint {rng.randrange(1, 9)}", "ping": "ping 5", "depth": f"set depth {rng.randrange(1, 30)}",
            "game": f"set game {ggf(rng.choice(games), more=rng.choice(('', 'TI[0:01]')))}",
            "move": f"move {rng.choice(SQUARES)}", "learn": "learn", "analyze": "analyze", "nonsense": "xyzzy go",
            "wrong": "move a1 go"}[word])
        if rng.random() < 0.1:
            time.sleep(rng.random() * 0.02)
    return goes


def each_go_of_a_storm_has_one_answer():
    rng, nboard = seeded(), Nboard("--threads", 2)
    games = [random_board(rng, made)[1] for made in range(0, 55, 3)]
    for _ in range(10 if SHORT or SANITIZED else 100):
        nboard.pinged()
        begin = nboard.at
        goes = storm_of_nboard(nboard, rng, games, 30)
        nboard.pinged()
        lines = nboard.lines["out"][begin:nboard.at]
        equal(sum(line.startswith("=== ") for line in lines), goes, lines[-20:])
        whole = re.compile(r"^(=== .*|search .*|status.*|nodestats \d+ \S+|pong \d+|learned|analysis \d+ \S+|set myname abdada)$")
        for line in lines:
            check(whole.match(line) and "===" not in line[1:], "not a whole line:", line)
    nboard.quit()


def each_command_of_a_storm_has_one_response():
    rng, gtp = seeded(), Gtp("--time", 5, "--threads", 2)
    number = 0
    for _ in range(5 if SHORT or SANITIZED else 50):
        sent = []
        for _ in range(30):
            number += 1
            sent.append(f"{number} " + rng.choice((
                "genmove b", "genmove w", "reg_genmove b", "undo", "showboard", "clear_board", "xyzzy", "final_score",
                "time_left b 1 0", "time_settings 1 0 0", f"play b {rng.choice(SQUARES)}", "play w pass")))
        gtp.send("\n".join(sent))
        for line in sent:
            equal(gtp.response()[1], line.split()[0], line)
    gtp.quit()


def kills_leave_nothing_behind():
    rng = seeded()
    with Cluster(shards=1, workers=1) as cluster:
        for round_ in range(6 if SHORT or SANITIZED else 30):
            command = rng.choice((Nboard, Gtp))
            process = command("--servers", cluster.servers)
            if command is Gtp:
                process.send("genmove b")
            else:
                process.set((), depth=60)
                process.say(rng.choice(("go", "hint 3", "analyze")))
            time.sleep(rng.random() * 0.1)
            number = rng.choice((signal.SIGTERM, signal.SIGINT, signal.SIGKILL))
            status = process.end(number)
            check(status in (0, -signal.SIGKILL, -number), round_, status, process.tail())
        wait_until(lambda: cluster.shards[0].stats()["jobs"] == 0, "an end of all jobs")


def wrong_use_is_one_line():
    for command in ("nboard", "gtp"):
        for line in (["operand"], ["--servers", "nonsense"], ["--threads", "0"], ["--depth", "0"], ["--depth", "65"],
                     ["--time", "0"], ["--select", "some"], ["--nonsense"], ["--game", "chess"]):
            done = run("abdada", command, *line)
            equal((done.status, len(done.lines["err"]), done.out()), (2, 1, ""), command, line, done.err())
        for option in ("--help", "--version"):
            done = run("abdada", command, option)
            equal((done.status, done.err()), (0, ""))
            check(done.out())
    equal(run("abdada", "gtp", "--game", "othello").status, 0)


if __name__ == "__main__":
    sys.exit(main([
        nboard_speaks_as_in_its_description,
        nboard_hints_are_lines_of_legal_moves,
        nboard_is_interrupted_by_a_ping,
        nboard_is_interrupted_by_commands_but_not_by_unknown_ones,
        nboard_has_no_game_after_one_that_is_refused,
        nboard_names_what_is_wrong_and_loses_nothing,
        nboard_ignores_what_it_does_not_know,
        nboard_plays_whole_games,
        nboard_solves_endings,
        nboard_reads_any_board_and_passes,
        nboard_analyzes_a_whole_game,
        nboard_keeps_to_the_clock,
        gtp_answers_as_its_specification_says,
        gtp_lists_its_commands,
        gtp_plays_and_takes_back_as_the_rules_say,
        gtp_plays_whole_games,
        gtp_counts_empty_squares_for_the_winner,
        gtp_keeps_to_the_clock,
        gtp_obeys_in_order_whatever_the_pipe_brings,
        what_was_asked_is_answered_before_the_input_ends,
        a_signal_ends_a_search_with_its_answer,
        over_a_shard_with_a_worker_they_play_on_when_it_dies,
        keys_let_them_in,
        each_go_of_a_storm_has_one_answer,
        each_command_of_a_storm_has_one_response,
        kills_leave_nothing_behind,
        wrong_use_is_one_line,
    ], unstable=STARVED))
