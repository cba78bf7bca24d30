#!/usr/bin/python3
"""peers_die: a search in which processes die. `make peers-die`.

Our cluster is asked for a strict score; a worker and then a shard die by kill -9 while it searches; the answer comes
and is the sequential one. Then, with --peer COMMAND, another engine that searches as several processes: one of them
(the last child) dies the same way; prints how long the others lived and whether a move came.

  tests/instruments/bench/peers_die.py [--seconds S] [--peer "mpirun -np 3 stockfish-cluster" [--go "go depth 20"]]
"""
import argparse
import os
import shlex
import signal
import subprocess
import sys
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(ROOT, "tests", "system"))
import cluster  # noqa: E402

POSITION = "r4k2/pb2bp1r/1p1qp2p/3pNp2/3P1P2/2N3P1/PPP1Q2P/2KRR3 w - -"
STRICT = ["--strict", "--select", "plain"]
begin = time.monotonic()


def say(text):
    print(f"{time.monotonic() - begin:6.2f}  {text}", flush=True)


def search_alone(seconds):
    """(depth, answer) of the first sequential search that takes so long."""
    for depth in range(6, 20):
        found, = cluster.ask(POSITION, "--depth", depth, "--algorithm", "sequential", *STRICT)
        if found["time_ms"] >= 1000 * seconds:
            return depth, found


def wait_progress(front, pattern):
    front.at = front.wait_line(pattern, "err", getattr(front, "at", 0))[1]
    say("  " + front.lines["err"][front.at - 1])


def ours(seconds):
    depth, alone = search_alone(seconds)
    say(f"alone, sequential: depth {depth}, score {alone['score']}, {alone['time_ms'] / 1000:.2f} s")
    with cluster.Cluster(shards=2, workers=2) as c:
        say("2 shards and 2 workers are up; the same position over them:")
        front = c.start(POSITION, "--depth", depth, *STRICT)
        wait_progress(front, "workers 2")
        c.workers[0].kill()
        say("kill -9: a worker")
        wait_progress(front, "depth")
        alive = front.running()
        c.shards[1].kill()
        say("kill -9: a shard" if alive else "kill -9: a shard (too late: choose more --seconds)")
        found, = cluster.answers(front)
        say(f"answer: depth {found['depth']}, score {found['score']}, {found['bestmove']}, {found['time_ms'] / 1000:.2f}"
            f" s, {found['shards_up']} of {found['shards']} shards up")
    same = (found["depth"], found["score"]) == (depth, alone["score"])
    say("the score is the sequential one" if same else "WRONG SCORE")
    return same


def children(pid):
    """All descendants, by /proc."""
    table = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as file:
                table.setdefault(int(file.read().rsplit(")", 1)[1].split()[1]), []).append(int(name))
        except OSError:
            pass
    found = list(table.get(pid, []))
    for child in found:
        found += table.get(child, [])
    return found


def peer(command, go):
    """Kills one process of a UCI engine that is several."""
    engine = subprocess.Popen(shlex.split(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                              start_new_session=True)
    moves, thought = [], threading.Event()

    def read():
        for line in engine.stdout:
            thought.set() if line.startswith("info depth") else None
            moves.extend([line.strip()] if line.startswith("bestmove") else [])

    threading.Thread(target=read, daemon=True).start()
    engine.stdin.write(f"uci\nisready\nposition fen {POSITION} 0 1\n{go}\n")
    engine.stdin.flush()
    if not thought.wait(60):
        say("the engine does not search")
        return
    victim = children(engine.pid)[-1]
    os.kill(victim, signal.SIGKILL)
    died = time.monotonic()
    say(f"kill -9: process {victim} of `{command}`")
    try:
        status = engine.wait(20)
        say(f"all of it ended {time.monotonic() - died:.2f} s later, exit status {status}, {moves or 'no move'}")
    except subprocess.TimeoutExpired:
        say(f"it still runs after 20 s: {moves or 'no move'}")
        os.killpg(engine.pid, signal.SIGKILL)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=4, help="that the search takes alone, at least (4)")
    parser.add_argument("--peer", metavar="COMMAND", help="another engine, as it is started")
    parser.add_argument("--go", default="go depth 40")
    options = parser.parse_args()
    cluster.BIN = os.environ.get("BIN", os.path.join(ROOT, "bin"))
    if not os.access(cluster.path_of("abdada"), os.X_OK):
        print("peers_die: no programs yet: run `make`", file=sys.stderr)
        return 1
    same = ours(options.seconds)
    if options.peer:
        peer(options.peer, options.go)
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
