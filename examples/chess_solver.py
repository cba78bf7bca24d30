#!/usr/bin/env python3
"""A parallel chess search in a page of Python, on the PyPI packages `chess` and `abdada`.

    examples/chess_solver.py --servers HOST:PORT[,HOST:PORT...] [--processes N] [--depth N] [--workers] [FEN]

Each process searches the whole tree from the root, and they divide the work by what they find in the table (ABDADA,
J.-C. Weill, 1996). Nobody hands out work: start more by hand, on any machine, with the same --servers and --search, or
kill some; the value is the same. --workers: what the workers of the cluster say of the position, too.
"""
import argparse
import contextlib
import multiprocessing
import os
import sys
import time
from multiprocessing.connection import wait
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import abdada
import chess
import chess.polyglot

INFINITE, MATE = 32000, 30000
WORTH = {chess.PAWN: 100, chess.KNIGHT: 300, chess.BISHOP: 310, chess.ROOK: 500, chess.QUEEN: 900, chess.KING: 0}
CENTRE = [6 - abs(2 * (square % 8) - 7) // 2 - abs(2 * (square // 8) - 7) // 2 for square in range(64)]
SHARED_DEPTH = 2  # nodes below it cost less than to ask for them: each process has a table of its own there


def evaluate(board: chess.Board) -> int:
    """Material and nearness to the centre, for the side to move."""
    score = 0
    for square, piece in board.piece_map().items():
        value = WORTH[piece.piece_type] + CENTRE[square]
        score += value if piece.color == board.turn else -value
    return score


def ordered(board: chess.Board, first: int) -> List[chess.Move]:
    """Legal moves: the one that the table remembers, then captures of the largest by the smallest."""
    def rank(move: chess.Move) -> int:
        if number(move) == first:
            return -10000
        victim, attacker = board.piece_type_at(move.to_square), board.piece_type_at(move.from_square)
        return (attacker or 0) - 10 * WORTH[victim] if victim else 0
    return sorted(board.legal_moves, key=rank)


def number(move: chess.Move) -> int:
    """A move in the table's 16 bits."""
    return move.from_square | move.to_square << 6 | (move.promotion or 0) << 12


class Searcher:
    """Alpha-beta of one process."""

    def __init__(self, table: Optional[abdada.Table]) -> None:
        self.table, self.nodes = table, 0
        self.own: Dict[Tuple[int, int], Tuple[int, int]] = {}  # (key, depth): bounds of the value, below SHARED_DEPTH

    def search(self, board: chess.Board, depth: int, alpha: int, beta: int, exclusive: bool = False) -> Optional[int]:
        """The value within the window, or a bound of it outside; None: another searcher is in this node."""
        self.nodes += 1
        if depth == 0:
            return evaluate(board)
        key, move = chess.polyglot.zobrist_hash(board), 0
        shared = self.table is not None and depth >= SHARED_DEPTH
        if self.table is not None and shared:
            answer = self.table.ask(key, depth, alpha, beta, exclusive=exclusive, strict=True)
            if answer.verdict == abdada.Verdict.CUT:
                return answer.score
            if answer.verdict == abdada.Verdict.BUSY:
                return None
            alpha, beta, move = answer.alpha, answer.beta, answer.move
        else:
            lower, upper = self.own.get((key, depth), (-INFINITE, INFINITE))
            if lower >= beta or upper <= alpha or lower == upper:
                return lower if lower >= beta or lower == upper else upper
        best, move = self.children(board, depth, alpha, beta, move)
        bound = abdada.Bound.UPPER if best <= alpha else abdada.Bound.LOWER if best >= beta else abdada.Bound.EXACT
        if self.table is not None and shared:
            self.table.store(key, depth, best, bound | abdada.Bound.BESIDE, move)
        else:
            self.own[key, depth] = (best if bound & abdada.Bound.LOWER else -INFINITE,
                                    best if bound & abdada.Bound.UPPER else INFINITE)
        return best

    def children(self, board: chess.Board, depth: int, alpha: int, beta: int, first: int) -> Tuple[int, int]:
        """(the best value, its move). Children that others are in are put off until the rest is done."""
        best, best_move, put_off = -INFINITE, 0, []
        moves = ordered(board, first)
        if not moves:
            return (-MATE - depth if board.is_check() else 0), 0
        for turn in 0, 1:
            for index, move in enumerate(moves):
                board.push(move)
                # The eldest is searched by all together, so that the others have a window.
                value = self.search(board, depth - 1, -beta, -max(alpha, best), exclusive=turn == 0 and index > 0)
                board.pop()
                if value is None:
                    put_off.append(move)
                elif -value > best:
                    best, best_move = -value, number(move)
                    if best >= beta:
                        return best, best_move
            moves = put_off
        return best, best_move


class Found(NamedTuple):
    value: int
    move: int
    nodes: int


def solve(o: argparse.Namespace, name: str) -> Found:
    """What one process does: it deepens step by step. It opens the table itself."""
    with contextlib.ExitStack() as ends:
        table = None
        if o.servers:
            table = ends.enter_context(abdada.Table(o.servers, keys=o.keys, name=name,
                                                    namespace=f"chess_solver.py 1 {o.search}"))
            with contextlib.suppress(abdada.Unavailable):  # it goes on alone then
                table.wait_connected()
        searcher, value, move = Searcher(table), 0, 0
        for depth in range(1, o.depth + 1):
            value, move = searcher.children(chess.Board(o.fen), depth, -INFINITE, INFINITE, move)
    return Found(value, move, searcher.nodes)


def process(o: argparse.Namespace, index: int, result: Any) -> None:
    result.send(solve(o, f"chess_solver {index}"))


def solve_together(o: argparse.Namespace) -> Found:
    """The first result of N processes; any of them may die."""
    start = multiprocessing.get_context("spawn")
    processes, results = [], []
    for index in range(o.processes):
        reader, writer = start.Pipe(duplex=False)
        processes.append(start.Process(target=process, args=(o, index, writer)))
        processes[-1].start()
        writer.close()  # the process has the only one: when it dies the reader comes to an end
        results.append(reader)
    print("processes", *(one.pid for one in processes), file=sys.stderr, flush=True)
    try:
        while results:
            ready = wait(results)
            for reader in [each for each in results if each in ready]:
                try:
                    found: Found = reader.recv()
                    return found
                except EOFError:
                    results.remove(reader)
        raise SystemExit("chess_solver: all processes have ended without a result")
    finally:
        for one in processes:
            one.kill()


def ask_workers(o: argparse.Namespace) -> None:
    with abdada.Cluster(o.servers, keys=o.keys, name="chess_solver") as cluster:
        for p in cluster.analyse(o.fen, depth=o.depth, strict=True):
            print(f"workers: depth {p.depth}  score {p.score}  {' '.join(p.line)}  ({p.nodes} nodes, {p.workers} workers)")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("fen", nargs="?", default=chess.STARTING_FEN)
    parser.add_argument("--servers", default=os.environ.get("ABDADA_SERVERS"), help="all shards; without, alone")
    parser.add_argument("--keys", default=os.environ.get("ABDADA_KEYS"), help="directory made by `abdada keygen`")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--depth", type=int, default=4)
    parser.add_argument("--search", default="", help="a name: searches of other names share no results")
    parser.add_argument("--workers", action="store_true", help="ask the cluster's workers, too")
    o = parser.parse_args()
    begin = time.monotonic()
    found = solve(o, "chess_solver") if o.processes == 1 else solve_together(o)
    move = chess.Move(found.move & 63, found.move >> 6 & 63, found.move >> 12 or None)
    print(f"value {found.value}  move {move}  depth {o.depth}  {found.nodes} nodes of the process that was first  "
          f"{time.monotonic() - begin:.1f} s", flush=True)
    if o.workers:
        ask_workers(o)
    return 0


if __name__ == "__main__":
    sys.exit(main())
