#!/usr/bin/env python3
"""Several engines as one, for a GUI: every command is an engine of its own, here or on another host.

    export ABDADA_SERVERS=192.168.1.10:7400
    together.py ./stockfish "ssh ws2 ABDADA_SERVERS=$ABDADA_SERVERS ./stockfish" ...

The first engine speaks with the GUI: its name, options and lines are what the GUI sees, with the nodes of all. The others
get the same position, options and limits. When the first has a move, all vote: the deeper and the better a searcher's last
line, the more its move weighs. An engine that dies is left out; when the first dies the next one takes its place.
"""
import queue
import re
import shlex
import subprocess
import sys
import threading
import time

LAST_WORDS = 0.05  # seconds for the last lines of the others once the first has a move
READY = 10  # seconds until an engine that does not say readyok is not waited for
MATE = 30000  # centipawns of a mate in no moves


class Engine:
    def __init__(self, number, command, events):
        self.number, self.lives, self.is_ready = number, True, True
        self.searches = 0  # begun and not answered; lines of the last alone count
        self.depth, self.score, self.move, self.nodes, self.nps = 0, 0, "", 0, 0
        self.process = subprocess.Popen(shlex.split(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        threading.Thread(target=self.read, args=(events,), daemon=True).start()

    def read(self, events):
        for line in self.process.stdout:
            events.put((self, line.rstrip()))
        events.put((self, None))

    def send(self, line):
        try:
            self.process.stdin.write(line + "\n")
        except OSError:
            pass  # its reader says that it has died

    def go(self, line):
        self.searches, self.depth, self.move, self.nodes, self.nps = self.searches + 1, 0, "", 0, 0
        self.send(line)

    def note(self, line):
        """What an `info` line says."""
        found = {name: int(value) for name, value in re.findall(r"\b(depth|nodes|nps) (\d{1,18})\b", line)}
        self.nodes, self.nps = found.get("nodes", self.nodes), found.get("nps", self.nps)
        score, line_of_moves = re.search(r"\bscore (cp|mate) (-?\d{1,9})(?! (?:lower|upper)bound)\b", line), re.search(r" pv (\S+)", line)
        if score and line_of_moves and not re.search(r" multipv (?!1\b)", line):
            number = int(score[2])
            self.depth, self.move = found.get("depth", 0), line_of_moves[1]
            self.score = number if score[1] == "cp" else (MATE - abs(number)) * (1 if number > 0 else -1)


def vote(engines, own):
    """The move with most weight; `own` where nobody says more. What is a ply or more behind the deepest does not count."""
    counted = [e for e in engines if e.move and e.depth >= max(other.depth for other in engines) - 1]
    worst, weight = min((e.score for e in counted), default=0), {own: 0}
    for e in counted:
        weight[e.move] = weight.get(e.move, 0) + (min(e.score - worst, 1000) + 14) * e.depth
    return max(weight, key=weight.get)


class Together:
    def __init__(self, commands):
        self.events = queue.Queue()
        self.engines = [Engine(number, command, self.events) for number, command in enumerate(commands)]
        self.asks_ready, self.ready_until, self.is_searching = 0, 0, False
        for engine in self.engines[1:]:
            engine.send("uci")

    def alive(self):
        return [engine for engine in self.engines if engine.lives]

    def first(self):
        return next(iter(self.alive()), None)

    def say(self, line):
        print(line, flush=True)

    def gui(self, line):
        word = line.split()[0] if line.split() else ""
        if word == "uci":
            self.first().send(line)
        elif word == "isready":
            self.asks_ready, self.ready_until = self.asks_ready + 1, time.monotonic() + READY
            for engine in self.alive():
                engine.is_ready = False
                engine.send(line)
        else:
            self.is_searching = self.is_searching or word == "go"
            for engine in self.alive():
                engine.go(line) if word == "go" else engine.send(line)

    def engine(self, engine, line):
        if line is None:
            engine.lives, engine.searches = False, 0
            self.say(f"info string engine {engine.number + 1} has ended")
            if self.is_searching and self.first() and not self.first().searches:  # it had its move, and waited for this one
                self.finish(f"bestmove {self.first().move or '0000'}")
        elif line == "readyok":
            engine.is_ready = True
        elif line.startswith("bestmove"):
            engine.searches = max(0, engine.searches - 1)
            if engine is self.first() and engine.searches > 0:
                self.say(line)  # the GUI did not wait for it
            elif engine is self.first() and self.is_searching:
                self.finish(line)
        elif line.startswith("info") and engine.searches == 1:
            engine.note(line)
            if engine is self.first():
                for name in "nodes", "nps":
                    line = re.sub(rf"\b{name} \d+", f"{name} {sum(getattr(e, name) for e in self.alive())}", line)
                self.say(line)
        elif engine is self.first():
            self.say(line)

    def finish(self, line):
        """Stops the others, hears them out, and answers."""
        self.is_searching = False
        end = time.monotonic() + LAST_WORDS
        for engine in self.alive():
            if engine.searches:
                engine.send("stop")
        later = []
        while any(engine.searches for engine in self.alive()) and time.monotonic() < end:
            try:
                who, text = self.events.get(timeout=max(0, end - time.monotonic()))
            except queue.Empty:
                break
            if who is None:
                later.append((who, text))
            else:
                self.engine(who, text)
        for event in later:
            self.events.put(event)
        own = (line.split() + ["0000"])[1]  # an engine may print no move
        move = vote(self.alive(), own)  # the last line of a dead one may be of another position
        self.say(line if move == own else f"bestmove {move}")

    def run(self):
        threading.Thread(target=lambda: [*map(self.events.put, ((None, line.rstrip()) for line in sys.stdin)), self.events.put((None, "quit"))],
                         daemon=True).start()
        while self.alive():
            try:
                who, line = self.events.get(timeout=0.1)
            except queue.Empty:
                line = ""
            else:
                if who is not None:
                    self.engine(who, line)
                elif line.strip() == "quit":
                    break
                else:
                    self.gui(line)
            if self.asks_ready and (all(e.is_ready for e in self.alive()) or time.monotonic() > self.ready_until):
                for _ in range(self.asks_ready):
                    self.say("readyok")
                self.asks_ready = 0
        else:
            self.say("info string no engine is left")
            if self.is_searching:
                self.say("bestmove 0000")
        for engine in self.alive():
            engine.send("quit")
        for engine in self.engines:
            try:
                engine.process.wait(timeout=2)
            except subprocess.TimeoutExpired:
                engine.process.kill()


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    Together(sys.argv[1:]).run()
