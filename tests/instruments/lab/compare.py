"""The algorithms beside each other: `lab.py compare`."""

import os
import sys

from machines import ENDING_NODE_US, LAN, T3D, counts
from simulate import ROOT, boards, bratko_kopec

sys.path.insert(0, os.path.join(ROOT, "tests", "system"))

from algorithms import PARALLEL as ALGORITHMS  # noqa: E402


def compare(lab):
    """Speedup over the sequential search, search overhead, the time without a node to search, and messages."""
    few = lab.thinned([bratko_kopec()[number - 1] for number in lab.pick((4, 7, 12, 16, 20, 24), (4, 16))])
    plies, workers = lab.pick(7, 6), counts(*(lab.workers or lab.pick((1, 8, 32, 128), (1, 8, 32))))
    tree = lab.pick(("tree:b=20,d=7", 7), ("tree:b=20,d=6", 6))
    loads = [("chess, 0.2 us a node, 100 us a round trip", few, LAN | {"depth": plies}),
             ("chess, Weill's machine", few, T3D | {"depth": plies - 1, "hash": 128, "constant": True})]
    games = list(boards("game.obf").values())[::lab.pick(10, 25)]
    loads += [("Othello, midgame, 0.3 us a node, 100 us a round trip", games,
               LAN | {"game": "othello", "depth": lab.pick(11, 9), "node-us": 0.3}),
              ("Othello, ending, 100 us a round trip", [boards("ffo.obf")[f"FFO #{lab.pick(40, 26)}"]],
               LAN | {"game": "othello", "solve": True, "node-us": ENDING_NODE_US})]
    loads += [(f"tree, {name}", [f"{tree[0]},order={order}"], T3D | {"depth": tree[1]})
              for name, order in (("ordered well", 90), ("badly", 30), ("at random", 0))]
    for _, positions, options in loads:
        for name in ("sequential",) + ALGORITHMS:
            for position in positions:
                lab.sim.ask(position, options | {"algorithm": name, "workers": 1 if name == "sequential" else workers})
    for at, (title, positions, options) in enumerate(loads):
        alone = lab.sim.sums(positions, options | {"algorithm": "sequential", "workers": 1})
        how = f"depth {options['depth']}" if "depth" in options else "solved to the end"
        rows, points = [], []
        for name in ALGORITHMS:
            own = lab.sim.sums(positions, options | {"algorithm": name, "workers": workers})
            for n in (int(word) for word in workers.split(",")):
                busy = own.nodes(n) * options["node-us"] / 1e6 / (n * own.seconds(n))
                messages = sum(r[n]["messages_per_node"] * r[n]["nodes"] for r in own.each) / own.nodes(n)
                rows.append([name, n, own.ratio(1, n, alone), 100 * own.search_overhead(1, n, alone),
                             100 * (1 - busy), messages])
                points.append((name, False, n, own.ratio(1, n, alone)))
        lab.report.table(f"compare-{at}", f"Algorithms: {title}", [
            f"{len(positions)} position(s), {how}; speedup and search overhead over the sequential "
            "search; idle: no node to search"],
            ["algorithm", "workers", "speedup", "search overhead %", "idle %", "messages a node"], rows)
        lab.report.picture(f"compare-{at}", f"Algorithms: {title}", how, points)
