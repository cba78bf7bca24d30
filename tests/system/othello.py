"""Othello's rules once more, plainly, and programs that speak its protocols, for tests to talk to."""
import re

from cluster import Failure, Process, check, equal
from uci import Talker

PASS = "pass"
STEPS = [(x, y) for x in (-1, 0, 1) for y in (-1, 0, 1) if (x, y) != (0, 0)]
SQUARES = [column + row for row in "12345678" for column in "abcdefgh"]
START = "---------------------------OX------XO---------------------------"


class Board:
    """64 characters X O -, and who is to move."""

    def __init__(self, squares=START, side="X"):
        self.at, self.side = dict(zip(SQUARES, squares.replace("*", "X"))), side

    def __str__(self):
        return "".join(self.at[square] for square in SQUARES)

    def copy(self):
        return Board(str(self), self.side)

    def other(self):
        return "O" if self.side == "X" else "X"

    def flips(self, square, side):
        """The discs that this move of the side turns."""
        found = []
        if self.at[square] != "-":
            return found
        for x, y in STEPS:
            line, column, row = [], ord(square[0]) + x, ord(square[1]) + y
            while (name := chr(column) + chr(row)) in self.at and self.at[name] not in ("-", side):
                line.append(name)
                column, row = column + x, row + y
            if line and self.at.get(name) == side:
                found += line
        return found

    def places(self, side):
        return [square for square in SQUARES if self.flips(square, side)]

    def moves(self):
        """Legal moves: squares, or a pass; none when the game is over."""
        return self.places(self.side) or ([PASS] if self.places(self.other()) else [])

    def play(self, move):
        move = move.lower()
        check(move in self.moves(), "not legal:", move, "on", str(self), self.side)
        if move != PASS:
            for square in self.flips(move, self.side) + [move]:
                self.at[square] = self.side
        self.side = self.other()
        return self

    def empties(self):
        return str(self).count("-")

    def discs(self):
        """What Black has won by, when the game is over: empty squares are the winner's."""
        black, white = str(self).count("X"), str(self).count("O")
        return black - white + (self.empties() if black > white else -self.empties() if white > black else 0)

    def value(self, alpha=-64, beta=64):
        """For the side to move, by playing all of it out."""
        moves = self.moves()
        if not moves:
            return self.discs() if self.side == "X" else -self.discs()
        best = -65
        for move in moves:
            best = max(best, -self.copy().play(move).value(-beta, -max(alpha, best)))
            if best >= beta:
                break
        return best


def random_board(rng, moves):
    """After so many random moves; of a game that is not over."""
    while True:
        board, made = Board(), []
        while len(made) < moves and board.moves():
            made.append(rng.choice(board.moves()))
            board.play(made[-1])
        if board.moves():
            return board, made


def ending(rng, empties):
    """A board of a random game, in which somebody may move."""
    while True:
        board = Board()
        while board.empties() > empties and board.moves():
            board.play(rng.choice(board.moves()))
        if board.empties() == empties and board.moves():
            return board


def ggf(moves=(), board=Board(), more="TI[15:00]"):
    """A game as NBoard writes it."""
    squares, side, text = str(board).replace("X", "*"), board.side, ""
    for move in moves:
        text += f"{'B' if side == 'X' else 'W'}[{'PA' if move == PASS else move.upper()}]"
        side = "O" if side == "X" else "X"
    return f"(;GM[Othello]PC[NBoard]PB[a]PW[b]RE[?]{more}TY[8]BO[8 {squares} {'*' if board.side == 'X' else 'O'}]{text};)"


class Nboard(Talker):
    def __init__(self, *arguments, host=None):
        super().__init__("nboard", *arguments, host=host)
        self.pings = 0

    def pinged(self):
        """The lines up to the answer of a ping, which is not among them."""
        begin, self.pings = self.at, self.pings + 1
        self.say(f"ping {self.pings}")
        self.expect(f"^pong {self.pings}$")
        return self.lines["out"][begin:self.at - 1]

    def set(self, moves=(), board=Board(), depth=4, more="TI[15:00]"):
        self.say(f"set depth {depth}", f"set game {ggf(moves, board, more)}")

    def go(self):
        """(move in small letters, value or None)"""
        self.say("go")
        found = self.expect(r"^=== ([A-H][1-8]|PA)(?:/(-?\d+\.\d\d)/(\d+\.\d\d))?$")
        return PASS if found[1] == "PA" else found[1].lower(), found[2] and float(found[2])


class Gtp(Process):
    def __init__(self, *arguments, host=None):
        super().__init__("abdada", "gtp", *arguments, host=host)
        self.at, self.id = 0, 0

    def response(self):
        """(sign, id or "", text) of the next one, which ends with an empty line."""
        _, end = self.wait_line("^$", begin=self.at)
        lines, self.at = self.lines["out"][self.at:end - 1], end
        found = re.match(r"^([=?])(\d*)(?: (.*))?$", lines[0]) if lines else None
        if not found:
            raise Failure("no response of GTP:", repr(lines))
        return found[1], found[2], "\n".join([found[3] or "", *lines[1:]]) if len(lines) > 1 else found[3] or ""

    def ask(self, command):
        """(sign, text) of the response to a command."""
        self.id += 1
        self.send(f"{self.id} {command}")
        sign, number, text = self.response()
        equal(number, str(self.id), command, text)
        return sign, text

    def do(self, command):
        sign, text = self.ask(command)
        equal(sign, "=", command, text)
        return text

    def board(self):
        """What showboard says."""
        text = self.do("showboard")
        rows = [line.split()[1:] for line in text.splitlines() if re.match("^[1-8] ", line)]
        return "".join(map("".join, rows)).replace(".", "-")

    def quit(self):
        self.do("quit")
        equal(self.wait(), 0, self.tail())
