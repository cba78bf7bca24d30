#!/usr/bin/env python3
"""Solves Chomp by several processes that tell each other what they find: the feed of an abdada cluster.

    ttserver &                                            # prints: ready 127.0.0.1:7400
    examples/chomp.py --servers 127.0.0.1:7400 --processes 2 9x8

A bar of chocolate; a move bites off a square and all that is right of it and above it. Who has to eat the last square,
which is poisoned, loses. A position is the height of each column, none higher than the one before. chomp.cc does the
same in C++ with threads: processes of both help each other.
"""
import argparse
import multiprocessing
import random
import time
from typing import Dict, Tuple

import abdada

Bar = Tuple[int, ...]


class Search:
    def __init__(self, servers: str) -> None:
        self.known: Dict[int, int] = {}
        self.nodes = 0
        self.table = abdada.Table(servers, namespace="chomp", share_depth=4)
        self.order = random.Random()  # another one in each process: what one does last another does first

    def key(self, bar: Bar) -> int:
        return abdada.mix(sum(height << 4 * column for column, height in enumerate(bar)))

    def value(self, bar: Bar) -> int:
        """1: the side to move wins, -1: it loses."""
        key = self.key(bar)
        if key in self.known:
            return self.known[key]
        self.nodes += 1
        if self.nodes % 64 == 0:
            self.take()
        moves = [(column, row) for column, height in enumerate(bar) for row in range(height) if (column, row) != (0, 0)]
        self.order.shuffle(moves)
        best = -1
        for column, row in moves:
            rest = bar[:column] + tuple(min(height, row) for height in bar[column:])
            if -self.value(tuple(height for height in rest if height)) > 0:
                best = 1
                break
        self.known[key] = best
        self.table.share(key, min(sum(bar), 63), best, abdada.Bound.EXACT)
        return best

    def take(self) -> None:
        for result in self.table.take_shared():
            self.known[result.key] = result.score


def solve(bar: Bar, servers: str) -> None:
    search = Search(servers)
    with search.table as table:
        table.wait_connected()
        begin = time.monotonic()
        value = search.value(bar)
        print(f"value {value} nodes {search.nodes} s {time.monotonic() - begin:.2f}\n", end="", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--servers", default="127.0.0.1:7400")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("bar", help="COLUMNSxROWS, up to 15x15")
    options = parser.parse_args()
    columns, rows = (int(number) for number in options.bar.split("x"))
    processes = [multiprocessing.Process(target=solve, args=((rows,) * columns, options.servers))
                 for _ in range(options.processes)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()


if __name__ == "__main__":
    main()
