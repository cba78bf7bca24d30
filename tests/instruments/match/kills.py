#!/usr/bin/env python3
"""Plays chess games of the engine against itself over a cluster of which processes are killed.

Two front-ends play over two shards and two workers. In every tenth game all workers, a shard and both shards are
killed and started again, in an order and at moments that the seed says; more of that until the game ends. Counted are
losses on time, illegal moves, crashes, answers that are missing or that nobody asked for. Needs the package `chess`
(`make match-kills` installs it into build/venv).
"""
import os
import queue
import random
import sys
import threading
import time

TESTS = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TESTS, "system"))
from cluster import Shard, Worker, path_of, kill_all  # noqa: E402 pylint: disable=wrong-import-position
from test_uci_games import WHY_NOT  # noqa: E402 pylint: disable=wrong-import-position

if WHY_NOT is not None:
    sys.exit(WHY_NOT)
import match  # noqa: E402 pylint: disable=wrong-import-position

EVERY = 10  # games, of which the last one has kills
PAUSE_S, DOWN_S = (0.05, 0.4), (0.1, 0.5)  # between the end of one kill and the next; until it is started again


class KillMatch(match.Match):
    def __init__(self, options):
        super().__init__(options)
        self.shards = [Shard(), Shard()]
        self.servers = ",".join(shard.address for shard in self.shards)
        self.workers = [self.new_worker(0), self.new_worker(1)]
        self.kills = {"all workers": 0, "a worker": 0, "a shard": 0, "both shards": 0}
        self.requests = queue.Queue()  # (game, set when it ends, set when the cluster is whole again)
        self.moves, self.least, self.latest = 0, float("inf"), 0.0
        options.a = options.b = f"{path_of('abdada')} uci --servers {self.servers} --threads 1"
        options.a_option = options.b_option = []

    def new_worker(self, i):
        return Worker(self.servers, name=f"w{i}")

    def game(self, number, white, black, opening):
        """By a lane; what it asks for is done by the main thread, as processes end with the thread that started them."""
        ended, is_whole, clock = threading.Event(), threading.Event(), match.Clock(self.options.clock)
        has_kills = number % EVERY == EVERY - 1
        if has_kills:
            self.requests.put((number, ended, is_whole))
        o = self.options
        result, why, moves = match.play(white, black, opening, (clock, clock), o.slack / 1000, o.adjudicate)
        ended.set()
        if has_kills:
            is_whole.wait()
        with self.lock:
            self.moves += len(moves) - len(opening)
            self.least = min(self.least, clock.least)
            self.latest = max(self.latest, white.latest_s, black.latest_s)
        return result, why, moves

    def wait(self, lanes):
        while any(lane.is_alive() for lane in lanes):
            try:
                number, ended, is_whole = self.requests.get(timeout=0.2)
            except queue.Empty:
                self.count_crashes()
                continue
            self.kill_during(random.Random(f"{self.options.seed}/{number}"), ended)
            is_whole.set()
        self.count_crashes()
        kill_all()

    def kill_during(self, drawn, ended):
        what = ["all workers", "a shard", "both shards"]
        drawn.shuffle(what)
        while not ended.wait(drawn.uniform(*PAUSE_S)):
            kind = what.pop() if what else drawn.choice(list(self.kills))
            processes = self.workers if "worker" in kind else self.shards
            victims = [drawn.randrange(2)] if kind.startswith("a ") else [0, 1]
            self.count_crashes()
            for i in victims:
                processes[i].kill()
            time.sleep(drawn.uniform(*DOWN_S))
            self.start(processes, victims)
            self.kills[kind] += 1

    def start(self, processes, which):
        for i in which:
            processes[i] = self.new_worker(i) if processes is self.workers else Shard(processes[i].port)

    def count_crashes(self):
        for processes in (self.shards, self.workers):
            for i, process in enumerate(processes):
                if not process.running():
                    text = f"{process.name} ended with status {process.wait()}: {process.tail()}"
                    with self.lock:
                        self.faults.append(text)
                    print(text, flush=True)
                    self.start(processes, [i])

    def summary(self):
        def count(word):
            return sum(word in fault for fault in self.faults)
        return (f"{self.moves} moves, kills: {', '.join(f'{n} of {kind}' for kind, n in self.kills.items())}; "
                f"{count(': time')} losses on time (largest overstep {max(0.0, -1000 * self.least):.1f} ms, least time left "
                f"{1000 * self.least:.1f} ms; of this clock are this referee's own "
                f"{1000 * self.latest:.1f} ms a move at most), {count('illegal')} illegal moves, {count('ended')} crashes, "
                f"{count('silent')} answers missing, {count('answered')} without a question")


def main():
    p = match.parser(__doc__)
    p.set_defaults(games=1000, clock="game:1+0.01", slack=0, lanes=1, every=100)
    kill_match = KillMatch(p.parse_args())
    is_complete = kill_match.run()
    return 0 if is_complete and not kill_match.faults else 1


if __name__ == "__main__":
    sys.exit(main())
