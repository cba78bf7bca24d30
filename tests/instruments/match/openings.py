#!/usr/bin/env python3
"""Writes openings for match.py to stdout: random moves to a position that a UCI engine calls even, drawn with a seed.

  openings.py [--number N] [--seed N] [--judge COMMAND] >tests/data/chess/openings.txt"""
import argparse
import random

import chess

from match import SLACK_S, Engine

PLIES = 8
DEPTH = 8
MOST = 80  # centipawns that either side may be ahead


def draw(seed, judge):
    drawn = random.Random(seed)
    while True:
        board, moves = chess.Board(), []
        while len(moves) < PLIES and not board.is_game_over():
            move = drawn.choice(sorted(board.legal_moves, key=lambda m: m.uci()))
            moves.append(move.uci())
            board.push(move)
        if board.is_game_over():
            continue
        judge.say("ucinewgame")
        judge.ready()
        _, score, _, _ = judge.go(moves, f"depth {DEPTH}", SLACK_S)
        if score is not None and abs(score) <= MOST:
            return " ".join(moves)


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--number", type=int, default=1000)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--judge", default="bin/abdada uci --private", help="a UCI engine (default: %(default)s)")
    o = p.parse_args()
    judge, found, number = Engine(o.judge, []), [], 0
    while len(found) < o.number:
        number += 1
        opening = draw(f"{o.seed}/{number}", judge)
        found += [opening] if opening not in found else []
    print("\n".join(found))
    judge.quit()


if __name__ == "__main__":
    main()
