"""An `abdada uci`, or a front-end of another protocol, that tests talk to."""
import time

from cluster import Process, equal, promised, run


class Talker(Process):
    """`abdada COMMAND`: takes lines, and says lines, of which each is waited for once."""

    def __init__(self, *arguments, host=None):
        super().__init__("abdada", *arguments, host=host)
        self.at = 0

    def say(self, *lines):
        for line in lines:
            self.send(line)

    def expect(self, pattern):
        found, self.at = self.wait_line(pattern, begin=self.at)
        return found

    def quit(self):
        self.say("quit")
        begin = time.monotonic()
        equal(self.wait(), 0, self.tail())
        promised("quit", time.monotonic() - begin, 3)


class Uci(Talker):
    def __init__(self, *arguments):
        super().__init__("uci", *arguments)

    def ready(self):
        self.say("isready")
        self.expect("^readyok$")


def legal_moves(fen):
    done = run("abdada", "perft", fen, "--depth", 1, "--divide")
    return {line.split(":")[0] for line in done.lines["out"] if ":" in line and not line.startswith("depth")}
