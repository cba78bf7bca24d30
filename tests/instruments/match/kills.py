#!/usr/bin/env python3
"""Plays chess games over a cluster of which processes are killed.

Two front-ends play each other over two shards and two workers. In both games of every tenth pair (--kill-every) all workers, a
shard and both shards are killed and started again, in an order and at moments that the seed says; more of that until the
game ends.
--engine CMD: a front-end and a worker with that engine play the engine alone. The front-end, the worker and two shards are
on hosts of their own, 200 us from each other (network namespaces); the engines on both hosts are killed, too, and cables
are out for 5 s. Counted are losses on time, illegal moves, crashes, answers that are missing or that nobody asked for.
Needs the package `chess` (`make match-kills` installs it into build/venv).
"""
import os
import queue
import random
import shlex
import shutil
import signal
import sys
import threading
import time

TESTS = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TESTS, "system"))
from cluster import Failure, Process, Shard, Worker, children, path_of, kill_all  # noqa: E402 pylint: disable=wrong-import-position
from network import PORT, Host, why_no_delay  # noqa: E402 pylint: disable=wrong-import-position
from test_uci_games import WHY_NOT  # noqa: E402 pylint: disable=wrong-import-position

if WHY_NOT is not None:
    sys.exit(WHY_NOT)
import match  # noqa: E402 pylint: disable=wrong-import-position

PAUSE_S, DOWN_S = (0.05, 0.4), (0.1, 0.5)  # between the end of one kill and the next; until it is started again
CUT_S = 5
DELAY_MS = 0.1  # of what leaves a host


class KillMatch(match.Match):
    FIRST = ["all workers", "a shard", "both shards"]  # of each game with kills
    KINDS = [*FIRST, "a worker"]

    def __init__(self, options):
        self.options, self.shards, self.workers = options, [], []
        self.begin()  # which names the engines
        super().__init__(options)
        self.kills = dict.fromkeys(self.KINDS, 0)
        self.requests = queue.Queue()  # (game, its engines, set when it ends, set when the cluster is whole again)
        self.moves, self.least, self.latest = 0, float("inf"), 0.0

    def begin(self):
        self.shards = [Shard(), Shard()]
        self.workers = [self.new_worker(0), self.new_worker(1)]
        self.options.a = self.options.b = f"{path_of('abdada')} uci --servers {self.servers()} --threads 1"

    def servers(self):
        return ",".join(shard.address for shard in self.shards)

    def new_shard(self, i):
        return Shard(self.shards[i].port)

    def new_worker(self, i):
        return Worker(self.servers(), name=f"w{i}")

    def game(self, number, white, black, opening):
        """By a lane; what it asks for is done by the main thread, as processes end with the thread that started them."""
        o = self.options
        ended, is_whole, clocks = threading.Event(), threading.Event(), [match.Clock(o.clock), match.Clock(o.clock)]
        has_kills = o.kill_every and number // 2 % o.kill_every == o.kill_every - 1
        if has_kills:
            self.requests.put((number, (black, white) if number % 2 else (white, black), ended, is_whole))
        try:
            result, why, moves = match.play(white, black, opening, clocks[::-1] if number % 2 else clocks, o.slack / 1000, o.adjudicate)
        finally:
            ended.set()
        if has_kills:
            is_whole.wait()
        with self.lock:
            self.moves += len(moves) - len(opening)
            self.least = min([self.least, *(clock.least for clock in clocks[:1 if o.engine else 2])])
            self.latest = max(self.latest, white.latest_s, black.latest_s)
        return result, why, moves

    def wait(self, lanes):
        while any(lane.is_alive() for lane in lanes):
            try:
                number, engines, ended, is_whole = self.requests.get(timeout=0.2)
            except queue.Empty:
                self.count_crashes()
                continue
            try:
                self.kill_during(random.Random(f"{self.options.seed}/{number}"), engines, ended)
            except (Failure, OSError) as error:
                self.note(f"game {number}: what was killed does not start again: {error}")
                break
            finally:
                is_whole.set()
        self.count_crashes()
        kill_all()

    def note(self, fault):
        with self.lock:
            self.faults.append(fault)
        print(fault, flush=True)

    def kill_during(self, drawn, engines, ended):
        what = list(self.FIRST)
        drawn.shuffle(what)
        while not ended.wait(drawn.uniform(*PAUSE_S)):
            kind = what.pop() if what else drawn.choice(self.KINDS)
            self.count_crashes()
            self.kills[kind] += self.kill(kind, drawn, engines, ended)

    def kill(self, kind, drawn, _engines, _ended):
        """Whether there was something to kill. All runs again afterwards."""
        processes = self.workers if "worker" in kind else self.shards
        victims = [drawn.randrange(len(processes))] if kind.startswith("a ") else range(len(processes))
        for i in victims:
            processes[i].kill()
        time.sleep(drawn.uniform(*DOWN_S))
        self.start(processes, victims)
        return True

    def start(self, processes, which):
        for i in which:
            processes[i] = (self.new_worker if processes is self.workers else self.new_shard)(i)

    def count_crashes(self):
        for processes in (self.shards, self.workers):
            for i, process in enumerate(processes):
                if not process.running():
                    self.note(f"{process.name} ended with status {process.wait()}: {process.tail()}")
                    self.start(processes, [i])

    def summary(self):
        reasons = [fault[3:] for fault in self.own_faults() if fault.startswith(("A: ", "B: "))]

        def count(word):
            return sum(reason.startswith(word) for reason in reasons)
        return (f"{super().summary()}\n"
                f"{self.moves} moves, kills: {', '.join(f'{n} of {kind}' for kind, n in self.kills.items())}; "
                f"{count('time')} losses on time (largest overstep {max(0.0, -1000 * self.least):.1f} ms, least time left "
                f"{1000 * self.least:.1f} ms; of this clock are this referee's own "
                f"{1000 * self.latest:.1f} ms a move at most), {count('illegal')} illegal moves, "
                f"{count('ended') + len(self.own_faults()) - len(reasons)} crashes, "
                f"{count('silent')} answers missing, {count('answered')} without a question")

    def own_faults(self):
        """Without those of the opponent, where it is a program of others."""
        return [fault for fault in self.faults if not (self.options.engine and fault.startswith("B: "))]


class EngineMatch(KillMatch):
    FIRST = ["all workers", "a shard", "both shards", "the worker's engine", "the front-end's engine", "a cable"]
    KINDS = FIRST

    def begin(self):
        self.front, *self.hosts = Host(), Host(), Host(), Host()  # those of the shards, then that of the worker
        for host in (self.front, *self.hosts):
            host.shape(delay_ms=DELAY_MS)
        self.shards = [Shard(PORT, host=host) for host in self.hosts[:2]]
        self.workers = [self.new_worker(0)]
        there = f"/proc/{self.front.keeper.pid}/ns"
        self.options.a = shlex.join(["nsenter", f"--net={there}/net", f"--mount={there}/mnt", f"--wd={os.getcwd()}",
                                     os.path.abspath(path_of("abdada")), "uci", "--engine", self.options.engine,
                                     "--servers", self.servers()])
        self.options.b = self.options.engine

    def new_shard(self, i):
        return Shard(PORT, host=self.hosts[i])

    def new_worker(self, i):
        worker = Process("ttworker", "--engine", self.options.engine, "--servers", self.servers(), "--name", f"w{i}",
                         host=self.hosts[2])
        worker.wait_line("^ready$")
        return worker

    def kill(self, kind, drawn, engines, ended):
        if kind == "a cable":
            host = drawn.choice([self.front, *self.hosts])
            host.cut()
            ended.wait(CUT_S)
            host.mend()
            return True
        if not kind.endswith("engine"):
            return super().kill(kind, drawn, engines, ended)
        owner = engines[0].process.pid if kind.startswith("the front") else self.workers[0].popen.pid
        engine = children(owner)
        for child in engine:
            try:
                os.kill(child, signal.SIGKILL)
            except ProcessLookupError:
                pass
        return len(engine) > 0


def main():
    p = match.parser(__doc__)
    p.add_argument("--engine", help="command of a UCI engine: it is the opponent and searches on two hosts")
    p.add_argument("--kill-every", type=int, default=10, metavar="N", help="pairs of games, of which the last one has kills; 0: none")
    p.set_defaults(games=1000, clock="game:1+0.01", slack=0, lanes=1, every=100)
    p.set_defaults(a_option=[], b_option=[])
    options = p.parse_args()
    if options.kill_every < 0:
        p.error("--kill-every: a whole number, 0 or more")
    if options.log:
        p.error("such a match cannot go on where it was: no --log")
    if options.engine and (why := why_no_delay()):
        p.error(why)
    try:
        words = shlex.split(options.engine or "")
    except ValueError as error:
        p.error(f"--engine: {error}")
    if options.engine is not None and not shutil.which((words or [""])[0]):
        p.error(f"there is no program {options.engine!r}")
    kill_match = (EngineMatch if options.engine else KillMatch)(options)
    is_complete = kill_match.run()
    return 0 if is_complete and not kill_match.own_faults() else 1


if __name__ == "__main__":
    sys.exit(main())
