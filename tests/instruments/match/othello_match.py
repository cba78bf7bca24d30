#!/usr/bin/env python3
"""Plays Othello games between two programs that speak GTP and prints the difference in Elo and in discs.

Openings are random moves, drawn with a seed; each is played twice, with colours changed. The programs
limit themselves (`abdada gtp --time 50`)."""
import argparse
import math
import os
import random
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time

from elo import elo

sys.path.insert(1, os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "system"))
from othello import Board, random_board  # noqa: E402

SILENT_S = 600  # longer than any move takes
COLOURS = {"X": "black", "O": "white"}


class EngineError(Exception):
    pass


class Engine:
    """One program that speaks GTP."""

    def __init__(self, command):
        self.command, self.longest_s, self.takes_passes = command, 0.0, True
        self.process = subprocess.Popen(shlex.split(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, bufsize=1, text=True, start_new_session=True)

    def ask(self, command):
        """The response, in small letters. A program that is silent for SILENT_S is killed."""
        alarm = threading.Timer(SILENT_S, self.kill)
        alarm.start()
        try:
            self.process.stdin.write(command + "\n")
            lines = []
            while (line := self.process.stdout.readline()) not in ("\n", ""):
                lines.append(line.rstrip("\n"))
        except OSError:
            lines = []
        finally:
            alarm.cancel()
        if not lines or not lines[0].startswith("="):
            raise EngineError(f"{self.command}: {command!r} gives {' '.join(lines) or 'no answer'!r}")
        return lines[0][1:].strip().lower()

    def play(self, side, move):
        """Some programs pass by themselves, and know no such move."""
        if move != "pass" or self.takes_passes:
            try:
                self.ask(f"play {COLOURS[side]} {move}")
            except EngineError:
                if move != "pass":
                    raise
                self.takes_passes = False

    def genmove(self, side):
        begin = time.monotonic()
        move = self.ask(f"genmove {COLOURS[side]}")
        self.longest_s = max(self.longest_s, time.monotonic() - begin)
        return move

    def kill(self):
        os.killpg(self.process.pid, signal.SIGKILL)  # what it has started, too

    def quit(self):
        try:
            self.process.stdin.close()
        except OSError:
            pass  # it has ended
        self.process.wait()


def play(players, opening):
    """What Black wins by."""
    board = Board()
    for engine in players.values():
        engine.ask("clear_board")
    for move in opening:
        for engine in players.values():
            engine.play(board.side, move)
        board.play(move)
    while moves := board.moves():
        side = board.side
        move = players[side].genmove(side)
        if move not in moves:
            raise EngineError(f"{players[side].command}: {move!r} is not legal on {board} {side}")
        players[board.other()].play(side, move)
        board.play(move)
    return board.discs()


class Match:
    def __init__(self, options):
        self.options, self.lock = options, threading.Lock()
        self.pairs = iter(range((options.games + 1) // 2))
        self.discs = []  # of A, by game
        self.by_pair = []  # of A, both games
        self.longest_s = [0.0, 0.0]
        self.fault = None

    def next_pair(self):
        with self.lock:
            return None if self.fault else next(self.pairs, None)

    def summary(self):
        wins, losses = sum(d > 0 for d in self.discs), sum(d < 0 for d in self.discs)
        draws = len(self.discs) - wins - losses
        difference, margin = elo(wins, draws, losses)
        means = [pair / 2 for pair in self.by_pair]
        error = 1.96 * statistics.stdev(means) / math.sqrt(len(means)) if len(means) > 1 else math.inf
        return (f"+{wins} ={draws} -{losses}  Elo {difference:+.0f} (+-{margin:.0f})  "
                f"discs a game {statistics.mean(means):+.2f} (+-{error:.2f})")

    def lane(self):
        o = self.options
        a, b = Engine(o.a), Engine(o.b)
        try:
            while (pair := self.next_pair()) is not None:
                opening = random_board(random.Random(f"{o.seed}/{pair}"), o.opening)[1]
                first = play({"X": a, "O": b}, opening)
                second = -play({"X": b, "O": a}, opening)
                with self.lock:
                    self.discs += [first, second]
                    self.by_pair.append(first + second)
                    if len(self.discs) % o.every == 0:
                        print(f"{len(self.discs):5} {self.summary()}", flush=True)
        except EngineError as error:
            with self.lock:
                self.fault = self.fault or error
        with self.lock:
            self.longest_s = [max(self.longest_s[0], a.longest_s), max(self.longest_s[1], b.longest_s)]
        for engine in (a, b):
            engine.quit()

    def run(self):
        lanes = [threading.Thread(target=self.lane) for _ in range(self.options.lanes)]
        for lane in lanes:
            lane.start()
        for lane in lanes:
            lane.join()
        if self.fault:
            sys.exit(f"othello: {self.fault}")
        print(f"{len(self.discs)} games, seed {self.options.seed}: {self.summary()}; "
              f"longest move {self.longest_s[0]:.3f} and {self.longest_s[1]:.3f} s")


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    p.add_argument("--a", required=True, help="command of program A")
    p.add_argument("--b", required=True, help="command of program B")
    p.add_argument("--games", type=int, default=200)
    p.add_argument("--opening", type=int, default=10, help="random moves a game begins with (default: %(default)s)")
    p.add_argument("--lanes", type=int, default=os.cpu_count(), help="games at a time (default: %(default)s)")
    p.add_argument("--seed", type=int, default=1, help="of the openings")
    p.add_argument("--every", type=int, default=20, help="games between two lines of progress")
    o = p.parse_args()
    if o.games < 1 or o.lanes < 1:
        p.error("there is nothing to play")
    for command in (o.a, o.b):
        if shutil.which((shlex.split(command) or [""])[0]) is None:
            p.error(f"there is no program {command!r}")
    Match(o).run()


if __name__ == "__main__":
    main()
