#!/usr/bin/python3
"""Checks a proof that `abdada solve --proof` has written, by docs/proof.md alone: check_proof.py FILE [PERCENT [SEED]]

PERCENT: solve so many of the leaves, at random (100). Exit status: 0 the proof holds, 1 a claim is false, 2 the
file is no whole proof, 3 the check did not end (too many claims, no memory, Ctrl-C, wrong arguments): it says nothing
about the proof. It reads a line when it needs one, so a file takes no more memory than its claims.
"""
import gzip, random, re, sys, zlib

CLAIMS_MAX = 4_000_000  # in a file: about 1 GiB
ALL, NOT_A, NOT_H = (1 << 64) - 1, 0xfefefefefefefefe, 0x7f7f7f7f7f7f7f7f
# To each of the eight directions: how far bits move, and the squares that one can come to.
STEPS = [(1, NOT_A), (-1, NOT_H), (8, ALL), (-8, ALL), (9, NOT_A), (-9, NOT_H), (7, NOT_H), (-7, NOT_A)]


class Unreadable(Exception): """The file is no whole proof."""
class TooLarge(Exception): """The proof has more claims than CLAIMS_MAX."""
class FalseClaim(Exception): """What does not follow, or is no leaf's value."""


# A board is two sets of squares, own and other: bit 0 is a1, bit 7 h1, bit 63 h8.
def shift(squares, step, mask):
    return (squares << step if step > 0 else squares >> -step) & mask & ALL


def moves(own, other):
    found = 0
    for step, mask in STEPS:
        line = shift(own, step, mask) & other
        for _ in range(5):
            line |= shift(line, step, mask) & other
        found |= shift(line, step, mask)
    return found & ~(own | other)


def play(own, other, square):
    """The board after the move, from the other side."""
    flips = 0
    for step, mask in STEPS:
        line, at = 0, shift(square, step, mask)
        while at & other:
            line, at = line | at, shift(at, step, mask)
        flips |= line if at & own else 0
    return other & ~flips, own | flips | square


def count(squares):
    return bin(squares).count("1")


def after(own, other, mine):
    """The boards after these moves, in their order."""
    return [play(own, other, 1 << i) for i in range(64) if mine >> i & 1]


def at_least(own, other, value):
    """Whether the board is worth so much to the side to move: plain alpha-beta in a null window."""
    mine = moves(own, other)
    if mine:
        boards = sorted(after(own, other, mine), key=lambda board: count(moves(*board)))
        return any(not at_least(*board, 1 - value) for board in boards)
    if moves(other, own):
        return not at_least(other, own, 1 - value)
    lead = count(own) - count(other)
    return lead + ((lead > 0) - (lead < 0)) * (64 - count(own | other)) >= value


def solve(own, other, value, is_lower):
    if at_least(own, other, value if is_lower else value + 1) != is_lower:
        raise FalseClaim(f"own {own:016x} other {other:016x} {'>=' if is_lower else '<='} {value:+d} is false")


class Proof:
    def __init__(self, file):
        self.file, self.at, self.crc, self.claims, self.moves, self.leaves = file, 0, 0, 0, [], []
        self.leaf, positions = map(int, self.line(r"abdada-proof 1 leaf ([1-9]|1\d|2[0-4]) positions ([1-9]\d{0,5}|1000000)"))
        for _ in range(positions):
            self.position()
        if file.read(1):
            raise Unreadable("it goes on after its end")

    def line(self, pattern):
        line = self.file.readline(128)
        self.at += 1
        found = re.fullmatch(pattern + "\n", line.decode("latin1"), re.ASCII)
        if not found:
            raise Unreadable(f"line {self.at} is not as it should be")
        self.crc = zlib.crc32(line, self.crc)
        return found.groups()

    def position(self):
        board, side = self.line("position ([-XO]{64}) ([XO])")
        score = int(*self.line(r"score (\+0|[+-](?:[1-9]|[1-5]\d|6[0-4]))"))
        own, other = (sum(1 << i for i in range(64) if board[i] == disc) for disc in (side, "XO".replace(side, "")))
        self.seen, leaves_before = set(), len(self.leaves)
        for is_lower in (True, False):
            if score != (-64 if is_lower else 64):
                self.claim(own, other, score, is_lower)
        if self.moves:
            raise Unreadable(f"line {self.at}: more moves than claims")
        self.line(f"end claims {len(self.seen)} leaves {len(self.leaves) - leaves_before} crc32 {self.crc:08x}")

    def move(self):
        if not self.moves:
            self.moves = re.findall("..", self.line("((?:[a-h][1-8]){1,40})")[0])
        move = self.moves.pop(0)
        return 1 << ord(move[0]) - ord("a") + 8 * (int(move[1]) - 1)

    def claim(self, own, other, value, is_lower):
        """The side to move gets at least, or at most, so many discs more than the other one."""
        claim = (own, other, value, is_lower)
        if claim in self.seen:
            return
        self.seen.add(claim)
        self.claims += 1
        if self.claims > CLAIMS_MAX:
            raise TooLarge(f"more than {CLAIMS_MAX} claims")
        mine = moves(own, other)
        if 64 - count(own | other) <= self.leaf:
            self.leaves.append(claim)
        elif not mine and not moves(other, own):
            solve(*claim)
        elif not mine:
            self.claim(other, own, -value, not is_lower)
        elif is_lower:
            square = self.move()
            if not square & mine:
                raise FalseClaim(f"line {self.at}: a move that is not legal")
            self.claim(*play(own, other, square), -value, False)
        else:
            for board in after(own, other, mine):
                self.claim(*board, -value, True)


def main(path, percent="100", seed=None):
    try:
        seed, share = int(seed or random.randrange(1 << 32)), float(percent)
        if not 0 < share <= 100:
            raise ValueError(f"PERCENT is above 0 and at most 100, not {percent}")
        with gzip.open(path) as file:
            proof = Proof(file)
        wanted = int(-(-len(proof.leaves) * share // 100))
        for claim in random.Random(seed).sample(proof.leaves, wanted):
            solve(*claim)
    except (Exception, KeyboardInterrupt) as why:
        print(f"{path}: {str(why) or type(why).__name__}", file=sys.stderr)
        return 1 if isinstance(why, FalseClaim) else 2 if isinstance(why, (Unreadable, EOFError, OSError, zlib.error)) else 3
    print(f"{wanted} of {len(proof.leaves)} leaves solved, seed {seed}: no claim is false")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]) if len(sys.argv) in (2, 3, 4) and sys.argv[1][:1] != "-" else print(__doc__) or 3)
