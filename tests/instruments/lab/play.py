"""What users buy: how good the moves are that a cluster chooses in a given time: `lab.py play`.

A cluster is worth the time in which one searcher's moves lose as little. A run by the longest time gives all shorter
ones: what a search by `--time` answers is its last finished iteration, and virtual time is the same in both.
"""
import sys

import loss
from machines import LAN

ONE = "1 searcher"
TIMES = (1, 2, 4, 8, 16)  # of one searcher, in units of the time that is asked about
HOST_TIMES = (1, 2, 4, 8)  # of one host
THREADS = 8
TIME_MS, QUICK_TIME_MS = 1000, 50
POSITIONS, QUICK_POSITIONS = 200, 30
HOSTS = (1, 4, 16)
PROGRESS = 10  # positions from one line to the next


def name_of(hosts):
    return f"{hosts} x {THREADS}"


def sides(hosts, time_ms):
    """{side: (searchers, options, times)}, what takes longest first."""
    play = LAN | {"select": "full", "no-reference": True, "hash": 256}
    found = {}
    for number in sorted({1, *hosts}, reverse=True):
        times = HOST_TIMES if number == 1 else (1,)
        found[name_of(number)] = (number * THREADS, play | {"hosts": number, "threads": THREADS, "local": 131072,
                                                            "time": time_ms * max(times)}, times)
    found[ONE] = (1, play | {"workers": 1, "local": 262144, "time": time_ms * max(TIMES)}, TIMES)
    return found


def chosen(row, time_ms):
    """The move and the depth of the search after this time."""
    iterations = row["iterations"]
    if not iterations or iterations[-1]["bestmove"] != row["bestmove"]:
        raise RuntimeError(f"the answer {row['bestmove']} is not that of the last iteration")
    done = [one for one in iterations if one["seconds"] <= time_ms / 1000] or iterations[:1]
    return done[-1]["bestmove"], done[-1]["depth"]


def play(lab):
    time_ms = lab.args.time or lab.pick(TIME_MS, QUICK_TIME_MS)
    positions = lab.thinned(loss.positions(lab.args.positions or lab.pick(POSITIONS, QUICK_POSITIONS), lab.args.file))
    runs = sides(lab.args.hosts or HOSTS, time_ms)
    for position in positions:
        for _, options, _ in runs.values():
            lab.sim.ask(position["fen"], options)
    each, depths = {}, {}
    for number, position in enumerate(positions, 1):
        for side, (searchers, options, times) in runs.items():
            row = lab.sim.rows(position["fen"], options)[searchers]
            for factor in times:
                move, depth = chosen(row, factor * time_ms)
                each.setdefault((side, factor), []).append(loss.lost(position, move, lab.args.most))
                depths.setdefault((side, factor), []).append(depth)
        if number % PROGRESS == 0:
            print(f"play: {number} of {len(positions)} positions", file=sys.stderr, flush=True)

    losses, rows, points = loss.Losses(each), [], []
    host = name_of(1)
    for side, (searchers, _, times) in reversed(runs.items()):
        for factor in times:
            mean, error = losses.loss(side, factor)
            in_searchers = losses.said(side, factor, ONE) if side != ONE else None
            in_hosts = losses.said(side, factor, host) if side not in (ONE, host) else None
            rows.append([side, factor, sum(depths[side, factor]) / len(positions), mean, error, in_searchers, in_hosts])
        worth = losses.worth(side, 1, ONE)[0] if side != ONE else 1.0
        points.append(("equivalent time", False, searchers, worth))
    title = f"What users buy: centipawns that a move loses after T = {time_ms} ms, and the time that is worth it"
    lab.report.table("play", title, [
        f"{len(positions)} quiet positions; selection full, the network of `network`; a loss counts {lab.args.most} at most; "
        "95% intervals of a paired bootstrap",
        f"equivalent time in T, of {ONE} (measured from {TIMES[0]} to {TIMES[-1]} T) and of {host} ({HOST_TIMES[0]} to "
        f"{HOST_TIMES[-1]} T): < and > are bounds"],
        ["", "T", "depth", "loss", "+-", f"in T of {ONE}", f"in T of {host}"], rows)
    lab.report.picture("play", f"Time of one searcher whose moves lose as little, T = {time_ms} ms",
                       f"{len(positions)} quiet positions, 100 us a round trip, 8 threads a host", points)
