"""A UCI engine that knows no chess: it prints the line that it is told to, deeper and deeper, and has faults.

FAULT: a file, whose words count from the next start, "position" or "go" on. At the start: stillborn, unborn (no uciok), slow.
Before a search: unready (one isready is lost), clear (isready after ucinewgame takes 1.5 s), die-asked (once, of isready),
before (once a bestmove that nobody asked for).
In it: die, die-once, hang (it reads nothing more), or these two at a ply: die-at=9, hang-at=9; deaf (to stop), busy (to
isready), lazy (answers isready 0.3 s after the bestmove), late, twice, early (a bestmove at once), illegal, none, half (a
line, another without its end, and death), flood, stream (lines without end), gone (it closes its output and stays), rubbish,
silent (no line of a search), pause (it stops its parent until the bestmove, behind 54 KB of lines, is late). LOG: a file that gets each command.
"""
import argparse
import os
import select
import signal
import sys
import time

STEP = 0.01  # seconds for each ply
OPTIONS = """option name Hash type spin default 16 min 1 max 1024
option name Threads type spin default 1 min 1 max 8
option name Clear Hash type button
option name Skill Level type spin default 20 min 0 max 20
option name Style type combo default Solid var Solid var Very Risky
option name UCI_Chess960 type check default false
option name UCI_LimitStrength type check default false
option name EvalFile type string default small.nnue
option name Debug Log File type string default <empty>"""


class Engine:
    def __init__(self, arguments):
        self.arguments, self.text, self.began, self.limits, self.depth, self.faults, self.owed = arguments, b"", None, {}, 0, {}, 0
        self.clears = False

    def say(self, text):
        os.write(1, (text + "\n").encode())

    def next_faults(self):
        try:
            with open(self.arguments.fault, encoding="ascii") as file:
                self.faults = {name: int(value or 0) for name, _, value in (word.partition("=") for word in file.read().split())}
        except OSError:
            self.faults = {}

    def die_once(self):
        """The file counts until the death, however often it is read."""
        os.unlink(self.arguments.fault)
        sys.exit(3)

    def go(self, words):
        names = iter(words)
        self.limits = {word: next(names, "0") if word not in ("infinite", "ponder") else True for word in names}
        self.began, self.depth = time.monotonic(), 0
        self.next_faults()
        if "die-once" in self.faults:
            self.die_once()
        if "die" in self.faults:
            sys.exit(3)
        if "hang" in self.faults:
            time.sleep(1000)
        if "half" in self.faults:
            self.say(f"info depth 98 score cp 1 nodes 1 pv {self.arguments.line}")
            os.write(1, b"info depth 99 score cp 1 nodes 1 pv e2")
            os.close(1)
            time.sleep(0.02)
            sys.exit(3)
        if "flood" in self.faults:
            os.write(1, 3000 * b"info depth 1 score cp 1 nodes 1 pv e2e4\n")
        while "stream" in self.faults:
            os.write(1, 1000 * b"info string again\n")
        if "gone" in self.faults:
            os.close(1)
            time.sleep(1000)
        if "early" in self.faults:
            self.end()
        if "rubbish" in self.faults:
            self.say("info depth " + 70000 * "9" + " score cp " + 5000 * "9" + " nodes x pv")
            self.say("info depth -3 score mate -0 nodes -7 pv \x07 \xff\x00")
            self.say("bestmove")
            os.write(1, bytes(range(256)) + b"\n")

    def end(self):
        if self.began is None:
            return
        self.began = None
        if "late" in self.faults:
            time.sleep(0.3)
        if "pause" in self.faults:
            os.kill(os.getppid(), signal.SIGSTOP)
            os.write(1, 3000 * b"info string again\n")
        moves = ["e2e5"] if "illegal" in self.faults else ["(none)"] if "none" in self.faults else self.arguments.line.split()
        for _ in range(2 if "twice" in self.faults else 1):
            self.say(f"bestmove {moves[0]}" + (f" ponder {moves[1]}" if len(moves) > 1 else ""))
        if "pause" in self.faults:
            time.sleep(1.1)
            os.kill(os.getppid(), signal.SIGCONT)
        if self.owed:
            time.sleep(0.3)
            self.say("\n".join(self.owed * ["readyok"]))
            self.owed = 0

    def search(self):
        passed = time.monotonic() - self.began
        ply = min(int(passed / STEP), self.arguments.depth)
        for self.depth in range(self.depth + 1, ply + 1):
            if self.depth == self.faults.get("die-at"):
                sys.exit(3)
            if self.depth == self.faults.get("hang-at"):
                time.sleep(1000)
            if "silent" not in self.faults:
                score = f"mate {self.arguments.mate}" if self.arguments.mate else f"cp {self.arguments.score}"
                self.say(f"info depth {self.depth} score {score} nodes {self.arguments.nodes * self.depth} "
                         f"nps 100000 pv {self.arguments.line}")
        self.depth = max(self.depth, ply)
        if "infinite" in self.limits or "ponder" in self.limits:
            return
        clock = min(int(self.limits.get(name, 10 ** 9)) for name in ("wtime", "btime"))
        if (passed >= int(self.limits.get("movetime", 10 ** 9)) / 1000 or passed >= clock / 20000 or
                self.depth >= int(self.limits.get("depth", 10 ** 9)) or 1000 * self.depth >= int(self.limits.get("nodes", 10 ** 9))):
            self.end()

    def obey(self, line):
        word, *words = line.split() or [""]
        if self.arguments.log:
            with open(self.arguments.log, "a", encoding="utf-8") as file:
                file.write(line + "\n")
        if word == "uci":
            self.next_faults()
            if "stillborn" in self.faults:
                sys.exit(3)
            time.sleep(1000 if "unborn" in self.faults else 0.2 if "slow" in self.faults else 0)
            self.say(f"id name {self.arguments.name}\nid author nobody\n\n{OPTIONS}\nuciok")
        elif word == "isready":
            time.sleep(1.5 if self.clears else 0)
            self.clears = False
            if "die-asked" in self.faults:
                self.die_once()
            if self.began is None and self.faults.pop("before", None) is not None:
                self.say("info depth 50 score cp 900 nodes 9 pv h2h4\nbestmove h2h4")
            if "lazy" in self.faults and self.began is not None:
                self.owed += 1
            elif "busy" not in self.faults if self.began is not None else self.faults.pop("unready", None) is None:
                self.say("readyok")
        elif word == "ucinewgame":
            self.next_faults()
            self.clears = "clear" in self.faults
        elif word == "position":
            self.next_faults()
        elif word == "go":
            self.go(words)
        elif word == "stop" and "deaf" not in self.faults:
            self.end()
        elif word == "ponderhit" and self.began is not None:
            self.limits.pop("ponder", None)
            self.began, self.depth = time.monotonic(), 0
        elif word == "d":
            self.say("a board")
        elif word == "quit":
            sys.exit(0)

    def run(self):
        self.say("Fake 1 by nobody")
        while True:
            if select.select([0], [], [], STEP / 2 if self.began is not None else None)[0]:
                new = os.read(0, 65536)
                if not new:
                    break
                *lines, self.text = (self.text + new).split(b"\n")
                for line in lines:
                    self.obey(line.decode())
            if self.began is not None:
                self.search()


parser = argparse.ArgumentParser()
parser.add_argument("--name", default="Fake 1")
parser.add_argument("--line", default="e2e4 e7e5")
parser.add_argument("--score", type=int, default=20)
parser.add_argument("--mate", type=int, default=0)
parser.add_argument("--depth", type=int, default=100)
parser.add_argument("--nodes", type=int, default=1000)  # a ply
parser.add_argument("--fault", default="/nonexistent")
parser.add_argument("--log")
Engine(parser.parse_args()).run()
