"""An `abdada uci` that tests talk to."""
import time

from cluster import Process, equal, promised, run


class Uci(Process):
    def __init__(self, *arguments):
        super().__init__("abdada", "uci", *arguments)
        self.at = 0

    def say(self, *lines):
        for line in lines:
            self.send(line)

    def expect(self, pattern):
        found, self.at = self.wait_line(pattern, begin=self.at)
        return found

    def ready(self):
        self.say("isready")
        self.expect("^readyok$")

    def quit(self):
        self.say("quit")
        begin = time.monotonic()
        equal(self.wait(), 0)
        promised("quit", time.monotonic() - begin, 3)


def legal_moves(fen):
    done = run("abdada", "perft", fen, "--depth", 1, "--divide")
    return {line.split(":")[0] for line in done.lines["out"] if ":" in line and not line.startswith("depth")}
