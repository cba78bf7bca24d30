#!/usr/bin/python3
"""Makes the positions of `make lab LAB=play`: quiet ones, each with a reference value of every root move.

  play_positions.py [--positions N] [--reference COMMAND] [--nodes N] [--out FILE]

A position is one of a game that abdada plays against itself, a few thousand nodes a move, after random moves that it
calls even: at a ply drawn between 12 and 60, the side to move not in check, the best move neither a capture nor a
promotion, nobody ahead by 2 pawns. Game N is drawn from the seed and N, and both engines search by nodes with one
thread, so the file is the same on every machine that has the same programs.

The reference is an engine that is much stronger than abdada, as the value of a move has to come from a better search
than those that are judged by it. It searches all moves for a short time, then the best few of them for long. A move
that is not among these is worth what the short search says it loses, and at most the least of them.

An interrupted run goes on where it was. A file of fewer positions is the beginning of one of more.
"""
import argparse
import json
import os
import random
import shlex
import shutil
import subprocess
import sys
import time

from simulate import ABDADA, ROOT

OUT = os.path.join(ROOT, "tests/data/play/positions.jsonl")
OPENING_PLIES, OPENING_DEPTH, OPENING_MOST = 8, 8, 80  # random moves; centipawns that either side may be ahead then
PLIES = (12, 60)  # of the game that a position is taken from
GAME_NODES, CHECK_NODES = 3000, 100000  # of each move, and to see whether a position is quiet
MOST = 200  # centipawns that either side may be ahead
FEWEST = 4  # moves to choose from
MATE = 10000


class Engine:
    """A UCI engine with one thread."""

    def __init__(self, command):
        self.process = subprocess.Popen(shlex.split(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        bufsize=1)
        self.say("uci")
        lines = self.until("uciok")
        self.name = next(line[len("id name "):] for line in lines if line.startswith("id name "))
        self.option("Threads", 1)
        self.option("Hash", 64)

    def say(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def until(self, begin):
        """The lines up to one that begins so, and this one."""
        lines = []
        for line in self.process.stdout:
            lines.append(line.rstrip())
            if lines[-1].startswith(begin):
                return lines
        sys.exit(f"play_positions: {self.process.args[0]} has ended")

    def option(self, name, value):
        self.say(f"setoption name {name} value {value}")

    def new_game(self):
        self.say("ucinewgame")
        self.say("isready")
        self.until("readyok")

    def position(self, moves, fen=None):
        where = "startpos" if fen is None else f"fen {fen}"
        self.say(f"position {where}" + (" moves " + " ".join(moves) if moves else ""))

    def moves(self):
        """All that are legal; of abdada and of Stockfish."""
        self.say("go perft 1")
        return [line.split(":")[0] for line in self.until("Nodes searched") if line.count(":") == 1 and line[0] in "abcdefgh"]

    def diagram(self):
        """(FEN, is the side to move in check?)"""
        self.say("d")
        said = {line.split(" ", 1)[0].lower().rstrip(":"): line.partition(" ")[2].strip() for line in self.until("checkers")}
        return said["fen"], said["checkers"] != ""

    def go(self, limit):
        """(best move, centipawns or None)"""
        self.say(f"go {limit}")
        lines = self.until("bestmove")
        scores = [value_of(words) for words in map(str.split, lines) if "score" in words]
        return lines[-1].split()[1], scores[-1] if scores else None

    def lines(self, number, nodes):
        """The best moves with values of the last iteration that has them all: (its depth, {move: centipawns})."""
        self.option("MultiPV", number)
        self.say(f"go nodes {nodes}")
        by_depth = {}
        for words in map(str.split, self.until("bestmove")):
            if "score" in words and "pv" in words and not {"lowerbound", "upperbound"} & set(words):
                depth, line = (int(words[words.index(name) + 1]) for name in ("depth", "multipv"))
                by_depth.setdefault(depth, {})[line] = (words[words.index("pv") + 1], value_of(words))
        whole = [depth for depth, found in by_depth.items() if len({move for move, _ in found.values()}) == number]
        return (max(whole), dict(by_depth[max(whole)].values())) if whole else (0, {})

    def quit(self):
        self.say("quit")
        self.process.wait()


def value_of(words):
    """Of an info line."""
    at = words.index("score")
    value = int(words[at + 2])
    return value if words[at + 1] == "cp" else MATE - abs(value) if value > 0 else abs(value) - MATE


def is_quiet(fen, move):
    """Neither a capture nor a promotion."""
    board, _, _, en_passant = fen.split()[:4]
    squares = {}
    for rank, row in zip("87654321", board.split("/")):
        cells = "".join("." * int(cell) if cell.isdigit() else cell for cell in row)
        squares |= {file + rank: cell for file, cell in zip("abcdefgh", cells)}
    takes_in_passing = move[2:4] == en_passant and squares[move[:2]] in "Pp"
    # King and rook of castling stand on squares of their own: e1g1 goes to an empty one.
    return len(move) == 4 and squares[move[2:4]] == "." and not takes_in_passing


def draw(player, seed, game):
    """(ply, FEN) of this game, or None."""
    drawn = random.Random(f"{seed}/{game}")
    player.new_game()
    moves = []
    ply = drawn.randint(*PLIES)
    while len(moves) < OPENING_PLIES:
        player.position(moves)
        legal = sorted(player.moves())
        if not legal:
            return None
        moves.append(drawn.choice(legal))
    player.position(moves)
    if abs(player.go(f"depth {OPENING_DEPTH}")[1] or 0) > OPENING_MOST:
        return None
    while len(moves) < ply:
        player.position(moves)
        move, _ = player.go(f"nodes {GAME_NODES}")
        if move in ("(none)", "0000"):
            return None
        moves.append(move)
    player.position(moves)
    fen, is_in_check = player.diagram()
    if is_in_check or len(player.moves()) < FEWEST:
        return None
    player.new_game()
    player.position([], fen)
    move, score = player.go(f"nodes {CHECK_NODES}")
    return (ply, fen) if score is not None and abs(score) < MOST and is_quiet(fen, move) else None


def searched(reference, fen, lines, nodes):
    """(depth, {move: centipawns}), or None where the best move is not quiet or somebody is ahead."""
    depth, found = reference.lines(lines, nodes)
    if not found:
        sys.exit(f"play_positions: no iteration ended within {nodes} nodes: {fen}")
    best = max(found, key=found.get)
    return (depth, found) if abs(found[best]) < MOST and is_quiet(fen, best) else None


def values(reference, fen, lines, nodes, few_nodes):
    """(depth of the long search, {move: centipawns}, the best one first), or None where it is not quiet."""
    reference.new_game()
    reference.position([], fen)
    legal = reference.moves()
    begun = searched(reference, fen, len(legal), few_nodes)
    ended = searched(reference, fen, min(lines, len(legal)), nodes) if begun else None
    if not ended:
        return None
    (_, short), (depth, found) = begun, ended
    best, least = max(found, key=found.get), min(found.values())
    lost = {move: max(short.values()) - value for move, value in short.items()}
    rest = {move: min(least, found[best] - lost[move]) for move in legal if move not in found}
    return depth, dict(sorted((found | rest).items(), key=lambda item: (-item[1], item[0])))


def kept_rows(path, head):
    """The positions that are in the file, of which half a line at its end is cut off; a new file gets the head."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if not os.path.exists(path):
        with open(path, "w", encoding="utf-8") as file:
            file.write(json.dumps(head) + "\n")
        return []
    with open(path, "r+", encoding="utf-8") as file:
        text = file.read()
        file.truncate(text.rfind("\n") + 1)
    first, *rest = map(json.loads, text[:text.rfind("\n")].splitlines())
    if first != head:
        sys.exit(f"play_positions: {path} was made otherwise: {first}, not {head}")
    return rest


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--positions", type=int, default=200)
    parser.add_argument("--reference", default="/usr/games/stockfish", help="UCI engine with `go perft` (default: %(default)s)")
    parser.add_argument("--nodes", type=int, default=3400000, help="of the long search (default: %(default)s)")
    parser.add_argument("--few-nodes", type=int, default=400000, help="of the search of all moves (default: %(default)s)")
    parser.add_argument("--lines", type=int, default=8, help="moves of the long search (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", default=OUT)
    options = parser.parse_args()
    if shutil.which(shlex.split(options.reference)[0]) is None:
        parser.error(f"there is no program {options.reference!r}: make deps-bench")
    player, reference = Engine(f"{ABDADA} uci --private"), Engine(options.reference)
    head = {"seed": options.seed, "player": player.name, "reference": reference.name, "nodes": options.nodes,
            "few_nodes": options.few_nodes, "lines": options.lines}
    rows = kept_rows(options.out, head)
    game = rows[-1]["game"] if rows else 0
    begin, number = time.monotonic(), len(rows)
    with open(options.out, "a", encoding="utf-8") as file:
        while number < options.positions:
            game += 1
            drawn = draw(player, options.seed, game)
            found = values(reference, drawn[1], options.lines, options.nodes, options.few_nodes) if drawn else None
            if found:
                number += 1
                row = {"game": game, "ply": drawn[0], "fen": drawn[1], "depth": found[0], "values": found[1]}
                file.write(json.dumps(row) + "\n")
                file.flush()
                print(f"{number} of {options.positions}: game {game}, depth {found[0]}, {time.monotonic() - begin:.0f} s", flush=True)
    player.quit()
    reference.quit()


if __name__ == "__main__":
    main()
