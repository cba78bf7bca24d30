#!/usr/bin/env python3
"""Plays chess games between two UCI engines and prints the difference in Elo with its error.

Each opening of tests/data/chess/openings.txt is played twice, with colours changed. The error is given twice, by games
and by these pairs: "pairs 3 20 60 40 7" are those in which A made 0, 0.5, 1, 1.5 and 2 points. With --log an interrupted
match goes on where it was. --sprt and --error end it early. --virtual is for engines that bring a clock of their own
(`abdada sim --uci`). Needs the package `chess` from PyPI (`make match` installs it into build/venv)."""
import argparse
import json
import math
import os
import queue
import random
import re
import shlex
import shutil
import subprocess
import sys
import threading
import time
import zlib

import chess

from elo import Sprt, count_pairs, elo, elo_of_pairs, said

SLACK_S = 10.0  # an engine that is silent for so long beyond its time is hung
VIRTUAL_S = 3600.0  # the same for one with a clock of its own
OPENINGS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../data/chess/openings.txt")
FEWEST_PAIRS = 20  # before a match may end early
MATE = 30000
FAULTS = ("time", "illegal", "silent", "ended", "answered")  # what a game is lost by, beside chess


class EngineError(Exception):
    pass


def queued_s():
    """Seconds that this thread stood in a processor's queue so far; 0 where the kernel does not say."""
    try:
        with open("/proc/thread-self/schedstat", "rb") as file:
            return int(file.read().split()[1]) / 1e9
    except OSError:
        return 0.0


class Engine:
    """One engine process."""

    def __init__(self, command, options):
        self.command, self.options = command, options
        self.process = None
        self.read_at, self.late_s = 0.0, 0.0  # of the last line
        self.said_s = 0.0  # that the last search took, by its own clock
        self.latest_s = 0.0  # of all answers
        self.depths = []  # of all answers
        self.start()

    def start(self):
        self.process = subprocess.Popen(shlex.split(self.command), stdin=subprocess.PIPE, bufsize=1,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.lines = queue.Queue()
        threading.Thread(target=self.read, args=(self.process, self.lines), daemon=True).start()
        self.say("uci")
        self.wait("uciok", SLACK_S)
        for name, value in self.options:
            self.say(f"setoption name {name} value {value}")
        self.ready()

    @staticmethod
    def read(process, lines):
        """Puts (line, when it was read, seconds that this thread stood in the processor's queue for it)."""
        before = queued_s()
        for line in process.stdout:
            now, after = time.monotonic(), queued_s()
            lines.put((line.rstrip("\r\n"), now, after - before))
            before = after
        lines.put((None, time.monotonic(), 0))

    def say(self, line):
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
        except OSError:
            pass  # its end is seen by who reads

    def line(self, patience_s):
        try:
            line, self.read_at, self.late_s = self.lines.get(timeout=max(0, patience_s))
        except queue.Empty:
            raise EngineError("silent") from None
        if line is None:
            raise EngineError(f"ended with status {self.process.wait()}")
        return line

    def wait(self, word, patience_s):
        end = time.monotonic() + patience_s
        while True:
            line = self.line(end - time.monotonic())
            if line.split(" ")[0] == word:
                return line
            self.refuse_answer(line)

    @staticmethod
    def refuse_answer(line):
        if line.startswith("bestmove"):
            raise EngineError("answered without a question")

    def ready(self):
        self.say("isready")
        self.wait("readyok", 3 * SLACK_S)

    def go(self, moves, limit, patience_s, fen=None):
        """(move text, score in centipawns from the side to move or None, depth, seconds). The time it says is in said_s."""
        where = "startpos" if fen is None else f"fen {fen}"
        self.say(f"position {where}" + (" moves " + " ".join(moves) if moves else ""))
        score, depth, self.said_s = None, 0, 0.0
        while not self.lines.empty():
            self.refuse_answer(self.line(0))
        begin = time.monotonic()
        self.say(f"go {limit}")
        end = begin + patience_s
        while True:
            words = self.line(end - time.monotonic()).split()
            if words[:1] == ["bestmove"]:
                self.latest_s = max(self.latest_s, self.late_s)
                return words[1] if len(words) > 1 else "", score, depth, self.read_at - begin
            if words[:1] == ["info"] and "time" in words[:-1] and words[1] != "string":
                self.said_s = int(words[words.index("time") + 1]) / 1000
            if words[:1] == ["info"] and "score" in words and "lowerbound" not in words:
                at = words.index("score")
                value = int(words[at + 2])
                score = value if words[at + 1] == "cp" else MATE - abs(value) if value > 0 else abs(value) - MATE
                depth = int(words[words.index("depth") + 1]) if "depth" in words else depth

    def kill(self):
        self.process.kill()
        self.process.wait()

    def quit(self):
        self.say("quit")
        try:
            self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.kill()


def read_openings(path):
    """Lists of moves, one a line; # begins a comment."""
    with open(path, encoding="utf-8") as file:
        return [words for line in file if (words := line.partition("#")[0].split())]


def sum_of(path):
    with open(path, "rb") as file:
        return f"{zlib.crc32(file.read()):08x}"


class Clock:
    """What a side may use: so much a move, so many nodes or plies, or base + increment for the game."""

    def __init__(self, text):
        self.kind, *values = text.split(":")
        self.values = [float(v) for v in values[0].split("+")]
        self.left = [self.values[0]] * 2
        self.least = self.values[0]  # that a side had left after a move, before the increment

    def limit(self):
        if self.kind in ("nodes", "depth"):
            return f"{self.kind} {int(self.values[0])}"
        if self.kind == "move":
            return f"movetime {int(self.values[0] * 1000)}"
        inc = int(self.values[1] * 1000)
        white, black = (max(1, int(left * 1000)) for left in self.left)
        return f"wtime {white} btime {black} winc {inc} binc {inc}"

    def patience_s(self, side):
        return SLACK_S + {"nodes": 60, "depth": 600, "move": self.values[0], "game": self.left[side]}[self.kind]

    def used(self, side, seconds, slack_s):
        """False: the time is over."""
        if self.kind == "move":
            return seconds <= self.values[0] + slack_s
        if self.kind == "game":
            self.left[side] -= seconds
            self.least = min(self.least, self.left[side])
            late = self.left[side] < -slack_s
            self.left[side] += self.values[1]
            return not late
        return True


class Adjudication:
    """Ends what both sides agree on: six moves in a row over 7 pawns, or nearly equal late."""

    def __init__(self, is_on):
        self.is_on, self.won, self.even = is_on, [], 0

    def result(self, board, score):
        if not self.is_on or score is None:
            return None
        white = score if board.turn == chess.WHITE else -score
        sign = 1 if white > 700 else -1 if white < -700 else 0
        self.won = self.won + [sign] if sign and (not self.won or self.won[-1] == sign) else [sign] * abs(sign)
        self.even = self.even + 1 if abs(score) <= 8 and board.fullmove_number > 40 else 0
        if len(self.won) >= 6:
            return "1-0" if sign > 0 else "0-1"
        return "1/2-1/2" if self.even >= 10 else None


def play(white, black, opening, clocks, slack_s, is_adjudicated, is_virtual=False):
    """(result, why, moves); `clocks` of White and Black, may be one."""
    board, moves = chess.Board(), list(opening)
    for move in moves:
        board.push_uci(move)
    adjudication = Adjudication(is_adjudicated)
    for engine, lost in ((white, "0-1"), (black, "1-0")):
        try:
            engine.say("ucinewgame")
            engine.ready()
        except EngineError as error:
            engine.kill()
            engine.start()
            return lost, f"{error}", moves
    while True:
        outcome = board.outcome(claim_draw=True)
        if outcome is not None:
            return outcome.result(), outcome.termination.name.lower(), moves
        side = 0 if board.turn == chess.WHITE else 1
        lost = "0-1" if side == 0 else "1-0"
        engine, clock = (white, black)[side], clocks[side]
        try:
            patience_s = VIRTUAL_S if is_virtual else clock.patience_s(side)
            move, score, depth, seconds = engine.go(moves, clock.limit(), patience_s)
        except EngineError as error:
            engine.kill()
            engine.start()
            return lost, f"{error}", moves
        engine.depths.append(depth)
        seconds, slack_s = (engine.said_s, math.inf if clock.kind == "move" else slack_s) if is_virtual else (seconds, slack_s)
        if not clock.used(side, seconds, slack_s):
            return lost, f"time ({seconds:.3f} s, {engine.late_s:.3f} s of it of this referee)", moves
        try:
            board.push_uci(move)
        except ValueError:
            return lost, f"illegal move {move!r}", moves
        moves.append(move)
        result = adjudication.result(board, None if score is None else -score)
        if result is not None:
            return result, "adjudicated", moves


class Log:
    """The finished pairs of a match, one a line behind a head that says what is played."""

    def __init__(self, path, head):
        """`pairs`: those that are there. Half a line at the end, of a run that was killed, is cut off."""
        self.pairs, self.lock, self.file = [], threading.Lock(), None
        if path is None:
            return
        text = ""
        if os.path.exists(path):
            with open(path, encoding="utf-8", errors="replace") as file:
                text = file.read()
        lines = text[:text.rfind("\n") + 1].splitlines()
        try:
            first, *self.pairs = [json.loads(line) for line in lines] or [head]
        except ValueError:
            first = None
        if first is None or not (lines or json.dumps(head).startswith(text)):
            sys.exit(f"match: {path} is no log of a match: name another file")
        if first != head:
            sys.exit(f"match: {path} is of another match: {lines[0]}, not {json.dumps(head)}")
        with open(path, "a", encoding="utf-8") as file:
            file.truncate(len(text[:text.rfind("\n") + 1].encode()))
        self.file = open(path, "a", encoding="utf-8")  # pylint: disable=consider-using-with
        if not lines:
            self.put(head)

    def put(self, value):
        with self.lock:
            if self.file is not None:
                self.file.write(json.dumps(value) + "\n")
                self.file.flush()


class Match:
    def __init__(self, options):
        self.options = options
        self.lock = threading.Lock()
        self.openings = read_openings(options.openings)
        random.Random(options.seed).shuffle(self.openings)
        self.sprt = Sprt(*options.sprt) if options.sprt else None
        self.count = {"wins": 0, "draws": 0, "losses": 0}
        self.faults = []
        self.games = []
        self.points = {}  # of A, in the games of each pair
        self.depths = {"A": [], "B": []}  # mean of each game
        self.decision = None  # why the match ends early
        self.log = Log(options.log, self.head())
        for done in self.log.pairs:
            for game in done["games"]:
                self.take(done["pair"], game)
        self.pairs = iter(sorted(set(range((options.games + 1) // 2)) - {done["pair"] for done in self.log.pairs}))

    def head(self):
        """What a log says of its match; games of other values are not of it, nor those of other builds of the engines."""
        names = ("a", "b", "a_option", "b_option", "clock", "b_clock", "seed", "adjudicate", "virtual")
        files = [shutil.which((shlex.split(side) or [""])[0]) for side in (self.options.a, self.options.b)]
        return {name: value for name in names if (value := getattr(self.options, name, None))} | {
            "sums": [sum_of(file) for file in [*files, self.options.openings] if file]}

    def next_pair(self):
        with self.lock:
            return None if self.decision else next(self.pairs, None)

    def take(self, pair, game):
        a_is_white = game["white"] == "A"
        won = {"1-0": a_is_white, "0-1": not a_is_white}.get(game["result"])
        with self.lock:
            self.count["draws" if won is None else "wins" if won else "losses"] += 1
            self.points.setdefault(pair, []).append(0.5 if won is None else float(won))
            self.games.append(game)
            for side, depth in game.get("depths", {}).items():
                self.depths[side].append(depth)
            if game["why"].startswith(FAULTS):
                loser = "A" if won is False else "B"
                self.faults.append(f"{loser}: {game['why']}")
                print(f"opening {pair}: {loser} loses: {game['why']}", flush=True)
            done = len(self.games)
            if done % self.options.every == 0:
                print(f"{done:5} {self.summary()}", flush=True)
            self.decision = self.decide()

    def decide(self):
        """Why the match is over, or None. Half a pair says nothing yet."""
        counts, o = count_pairs(self.points.values()), self.options
        if sum(counts) < FEWEST_PAIRS:
            return None
        if o.error and elo_of_pairs(counts)[1] <= o.error:
            return f"the error is at most {o.error:g}"
        return self.sprt.decision(counts) if self.sprt else None

    def summary(self):
        text = said(**self.count, pairs=self.points.values())
        if self.sprt:
            text += f"; {self.sprt.said(count_pairs(self.points.values()))}"
        if all(self.depths.values()):
            text += "; depths " + " ".join(f"{sum(each) / len(each):.2f}" for each in self.depths.values())
        return text

    def result(self):
        """What is written as JSON, beside the games."""
        counts = count_pairs(self.points.values())
        found = {"elo": elo(**self.count), "elo_of_pairs": elo_of_pairs(counts)}
        said_as = {name: [value if math.isfinite(value) else None for value in values] for name, values in found.items()}
        return self.count | {"pairs": counts} | said_as | {"faults": self.faults}

    def lane(self):
        o = self.options
        sides = {"A": Engine(o.a, o.a_option), "B": Engine(o.b, o.b_option)}
        while (pair := self.next_pair()) is not None:
            opening, games = self.openings[pair % len(self.openings)], []
            for names in ("AB", "BA"):
                white, black = (sides[name] for name in names)
                white.depths, black.depths = [], []
                result, why, moves = self.game(2 * pair + (names == "BA"), white, black, opening)
                games.append({"opening": pair, "white": names[0], "result": result, "why": why, "moves": " ".join(moves)})
                if white.depths and black.depths:
                    games[-1]["depths"] = {name: round(sum(sides[name].depths) / len(sides[name].depths), 3) for name in "AB"}
                self.take(pair, games[-1])
            self.log.put({"pair": pair, "games": games})
        for engine in sides.values():
            engine.quit()

    def game(self, number, white, black, opening):
        o = self.options
        clocks = [Clock(o.clock), Clock(o.b_clock or o.clock)]
        return play(white, black, opening, clocks[::-1] if number % 2 else clocks, o.slack / 1000, o.adjudicate, o.virtual)

    def wait(self, lanes):
        for lane in lanes:
            lane.join()

    def run(self):
        """False: games are missing."""
        o = self.options
        lanes = [threading.Thread(target=self.lane, daemon=True) for _ in range(o.lanes)]
        for lane in lanes:
            lane.start()
        try:
            self.wait(lanes)
        except KeyboardInterrupt:
            self.decision = "interrupted"
        print(f"{len(self.games)} games, {o.clock}{f' and {o.b_clock}' if o.b_clock else ''}, seed {o.seed}: {self.summary()}; "
              f"{len(self.faults)} lost by time, illegal move, silence or an end" +
              (f"; {self.decision}" if self.decision else ""), flush=True)
        if o.json:
            with open(o.json, "w", encoding="utf-8") as out:
                json.dump(self.result() | {"games": self.games}, out, indent=1)
        return self.decision != "interrupted" and (self.decision is not None or len(self.games) >= o.games)


def option(text):
    name, _, value = text.partition("=")
    return name, value


def clock(text):
    if not re.fullmatch(r"move:\d+(\.\d+)?|(nodes|depth):\d+|game:\d+(\.\d+)?\+\d+(\.\d+)?", text):
        raise argparse.ArgumentTypeError(f"move:SECONDS, game:SECONDS+INCREMENT, nodes:N or depth:N, not {text!r}")
    return text


def hypotheses(text):
    try:
        low, high = map(float, text.split(","))
    except ValueError:
        low = high = 0
    if low >= high:
        raise argparse.ArgumentTypeError(f"two differences in Elo, as 0,10, not {text!r}")
    return low, high


def parser(description):
    p = argparse.ArgumentParser(description=description.split("\n", maxsplit=1)[0])
    p.add_argument("--games", type=int, default=400)
    p.add_argument("--clock", type=clock, default="move:0.05",
                   help="move:SECONDS, game:SECONDS+INCREMENT, nodes:N or depth:N (default: %(default)s)")
    p.add_argument("--b-clock", type=clock, help="the same for B, if it has another")
    p.add_argument("--virtual", action="store_true", help="the engines' own clocks count, as those of `abdada sim --uci`")
    p.add_argument("--slack", type=float, default=20,
                   help="milliseconds over the time that are no loss (default: %(default)s)")
    p.add_argument("--lanes", type=int, default=os.cpu_count(), help="games at a time (default: %(default)s)")
    p.add_argument("--seed", type=int, default=1, help="of the order of openings")
    p.add_argument("--openings", default=OPENINGS, help="file of lists of moves, one a line")
    p.add_argument("--log", help="file of the finished pairs, which the same match goes on with")
    p.add_argument("--sprt", type=hypotheses, metavar="ELO0,ELO1", help="end when a sequential test decides between these")
    p.add_argument("--error", type=float, metavar="ELO", help="end when the error by pairs is at most this")
    p.add_argument("--adjudicate", action="store_true", help="end games that both sides call won or even")
    p.add_argument("--every", type=int, default=20, help="games between two lines of progress")
    p.add_argument("--json", help="file for counts, Elo with its errors, and all games")
    return p


def main():
    p = parser(__doc__)
    p.add_argument("--a", required=True, help="command of engine A")
    p.add_argument("--b", required=True, help="command of engine B")
    p.add_argument("--a-option", action="append", type=option, default=[], metavar="NAME=VALUE")
    p.add_argument("--b-option", action="append", type=option, default=[], metavar="NAME=VALUE")
    options = p.parse_args()
    for command in (options.a, options.b):
        if shutil.which((shlex.split(command) or [""])[0]) is None:
            p.error(f"there is no program {command!r}")
    return 0 if Match(options).run() else 1


if __name__ == "__main__":
    sys.exit(main())
