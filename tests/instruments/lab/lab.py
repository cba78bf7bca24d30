#!/usr/bin/python3
"""What the virtual cluster measures, beside the published tables and alone: `lab.py [--quick] [TABLE]...`

Prints every table, writes CSV and SVG to build/lab. An interrupted lab goes on where it was
(build/lab/runs.jsonl). Virtual time: the result does not depend on this machine or its load.
Exit status 1 where strict searches of a position differ in their score.
Speedups over several positions are ratios of summed times (the long searches weigh most) and,
beside it, means of the ratios. BIN=folder chooses the program.
"""
import argparse
import os
import sys
import time

from compare import compare
from machines import CLUSTER, ENDING_NODE_US, FULL_NODE_US, LAN, PERFECT, SEQUENT, T3D, counts
from report import Report, published
from simulate import ROOT, Simulator, boards, bratko_kopec

class Lab:
    def __init__(self, args):
        self.args = args
        self.quick = args.quick
        self.thin = args.thin
        self.workers = args.workers
        self.report = Report(args.out)
        self.sim = Simulator(args.jobs, os.path.join(args.out, "runs.jsonl"))

    def pick(self, full, quick):
        return quick if self.quick else full

    def thinned(self, positions):
        return positions[::self.thin]


# ---- Weill 1996 ----

def weill_counts(depth):
    return (1, 8, 16, 24, 32, 128) if depth < 9 else (1, 32, 128)


def weill_positions(lab, depth):
    """The deepest only for every second and fourth position, so that a full run ends."""
    positions = lab.pick(bratko_kopec(), bratko_kopec()[4:24:4])
    return lab.thinned(positions[1::{8: 2, 9: 4}.get(depth, 1)] if depth >= 8 else positions)


def weill_options(depth, workers):
    return dict(T3D, depth=depth, workers=counts(*workers), hash=128, constant=True)


def weill_runs(lab, depth):
    return lab.sim.sums(weill_positions(lab, depth), weill_options(depth, weill_counts(depth)))


def weill_small_table(lab, depth):
    return lab.sim.sums(weill_positions(lab, depth), weill_options(depth, (1,)) | {"hash": 1})


def weill(lab):
    depths = lab.pick(range(3, 10), range(3, 6))
    table1 = {int(r["depth"]): float(r["speedup_128pe_vs_1pe"]) for r in published("abdada-table1")}
    table2 = {int(r["depth"]): float(r["relative_speedup_128pe_vs_32pe"])
              for r in published("abdada-table2")}
    for depth in reversed(depths):  # the longest first, and none is waited for, so that no CPU is idle between depths
        for position in weill_positions(lab, depth):
            lab.sim.ask(position, weill_options(depth, weill_counts(depth)))
    rows1, rows2, rows3, points = [], [], [], []
    for depth in depths:
        own, small = weill_runs(lab, depth), weill_small_table(lab, depth)
        number = len(weill_positions(lab, depth))
        rows1.append([depth, number, table1[depth], own.ratio(1, 128, small), own.mean(1, 128, small),
                      100 * own.overheads(128)[0]])
        rows2.append([depth, table2[depth], own.ratio(32, 128), own.mean(32, 128)])
        speedups = [own.ratio(1, n) if n in weill_counts(depth) else None for n in (8, 16, 24, 32)]
        rows3.append([depth] + speedups + [own.mean(1, 32), own.ratio(1, 128)])
        for n in weill_counts(depth):
            more = (own.overheads(n),) if depth == max(depths) else ()
            points.append((f"depth {depth}", False, n, own.ratio(1, n)) + more)
    points += [(f"depth {depth}", True, 128, table1[depth]) for depth in depths]
    points += [("depth 9", True, 32, 28)]

    notes = [f"depths {min(depths)} to {max(depths)} of 3 to 10 (a deeper one takes hours), on so "
             "many of the 24 Bratko-Kopec positions as the table says",
             "ours: plain selection, chess; 125 us a node, round trip 10 us, message 2 us, service "
             "1 us, remote_depth 1",
             "tables: 1 MiB (64 Ki entries) a processor; the paper's 1 Mi entries serve a hundred "
             "times more nodes"]
    lab.report.table("weill-1", "Weill 1996, table 1: speedup of 128 processors over 1 with a table "
                     "128 times smaller", notes,
                     ["depth", "positions", "published", "ours", "ours, mean of ratios",
                      "search overhead %"], rows1)
    lab.report.table("weill-2", "Weill 1996, table 2: 128 processors over 32, constant table",
                     [notes[0]], ["depth", "published", "ours", "ours, mean of ratios"], rows2)
    lab.report.table("weill-cm5", "Weill 1996, figure 3: 8 to 32 processors over 1, constant table",
                     ["published are curves, not digitised; from the text: about 28 at 32 processors "
                      "and depth 9 (T3D),",
                      "YBWC 14.3 (NegaScout) and 18.4 (alpha-beta) at 32 processors and depth 8"],
                     ["depth", "8", "16", "24", "32", "32, mean of ratios", "128"], rows3)
    lab.report.picture("weill", "Weill 1996: Bratko-Kopec positions",
                       "125 us a node, 10 us a round trip; published: T3D", points)


def weill_32(lab):
    """The paper's "about 28" of 32 processors at depth 9, on all positions."""
    depth = lab.pick(9, 5)
    also = set(weill_positions(lab, depth))  # of them the runs of the tables above, which 32 is one of
    positions = lab.thinned(lab.pick(bratko_kopec(), bratko_kopec()[4:24:4]))
    runs = [(p, weill_options(depth, weill_counts(depth) if p in also else (1, 32))) for p in positions]
    own = lab.sim.sums_of(runs)
    lab.report.table("weill-32", "Weill 1996, section 5: 32 processors over 1, constant table", [
        f"{len(positions)} Bratko-Kopec positions, depth {depth} (published: all 24, depth 9, \"about 28\"); remote_depth 1"],
        ["published", "ours", "ours, mean of ratios", "search overhead %", "communication %"],
        [[28, own.ratio(1, 32), own.mean(1, 32), 100 * own.overheads(32)[0], 100 * own.overheads(32)[1]]])


def weill_othello(lab):
    """Figures 3 to 5 for Othello: the first 50 positions of a game."""
    workers, depths = (1, 8, 16, 24, 32), lab.pick(range(3, 12), range(3, 9))
    every = lab.thinned(list(boards("game.obf").values())[::lab.pick(1, 5)])

    def positions(depth):
        """Every second one where it is deepest, so that a run ends in a quarter of an hour."""
        return every[::2 if depth == 11 else 1]

    def options(depth):
        return weill_options(depth, workers) | {"game": "othello"}

    for depth in reversed(depths):  # the longest first
        for position in positions(depth):
            lab.sim.ask(position, options(depth))
    ybwc = {int(r["depth"]): float(r["value"]) for r in published("abdada-in-text")
            if r["game"] == "Othello" and r["quantity"] == "speedup"}
    rows, points = [], []
    for depth in depths:
        own = lab.sim.sums(positions(depth), options(depth))
        rows.append([depth, len(own.each), ybwc.get(depth), own.seconds(1)] + [own.ratio(1, n) for n in workers[1:]] +
                    [own.mean(1, 32)] + [100 * part for part in own.overheads(32)])
        for n in workers:
            more = (own.overheads(n),) if depth == max(depths) else ()
            points.append((f"depth {depth}", False, n, own.ratio(1, n)) + more)
    if max(depths) in ybwc:
        points.append((f"depth {max(depths)}", True, 32, ybwc[max(depths)]))
    lab.report.table("weill-othello", "Weill 1996, figures 3 to 5: Othello, 8 to 32 processors over 1, constant table", [
        f"{len(every)} of the first 50 positions of a game, ours (his is not published); plain selection, 125 us a "
        "node, round trip 10 us, message 2 us, service 1 us, remote_depth 1",
        "published: YBWC with 32 processors at depth 11 (20.7; 38,205 s on one), the one figure in the text; his curves "
        "of ABDADA are not digitised: above YBWC to depth 8, below it from depth 10"],
        ["depth", "positions", "published, YBWC 32", "s on one", "8", "16", "24", "32", "32, mean of ratios", "search overhead %",
         "communication %", "synchronisation %"], rows)
    lab.report.picture("weill-othello", "Weill 1996: Othello, the first 50 positions of a game",
                       "125 us a node, 10 us a round trip; published: YBWC, CM-5", points)


def reads_per_write(lab):
    """The paper's 1.7 for ABDADA on chess; ours counts asks of shards, and peeks beside them."""
    own = weill_runs(lab, lab.pick(6, 5))
    rows = []
    for n in (1, 32, 128):
        total = {f: sum(r[n][f] for r in own.each) for f in ("asks", "peeks", "stores")}
        rows.append([n, 1.7 if n == 32 else None, total["asks"] / total["stores"],
                     (total["asks"] + total["peeks"]) / total["stores"]])
    lab.report.table("weill-reads", "Weill 1996, section 3.3: reads per write, chess", [
        "a batch of peeks is one message; each child in it counts here"],
        ["workers", "published", "asks / stores", "asks and peeks / stores"], rows)


# ---- Hyatt 1988 ----

def hyatt_alphabeta(lab):
    positions = lab.thinned(lab.pick(bratko_kopec(2), bratko_kopec(2)[::3]))
    depth = 5
    options = dict(SEQUENT, depth=depth, workers=counts(1, 2, 4, 8, 16))
    own = lab.sim.sums(positions, options)
    names = ("pvs", "epvs", "dts", "ybwc", "abdada-paper", "shared-table")
    alone = lab.sim.sums(positions, options | {"algorithm": "sequential", "workers": 1})
    others = {name: lab.sim.sums(positions, options | {"algorithm": name}) for name in names}
    rows, points = [], []
    printed = {}
    for name, file in (("PVS", "5.4-pvs"), ("EPVS", "6.4-epvs"), ("DTS", "7.4-dts")):
        total = next(r for r in published(f"hyatt-table-{file}-time") if r["position"] == "total")
        printed[name] = {n: float(total[f"speedup_{n}cpu"]) for n in (2, 4, 8, 16)}
    for n in (2, 4, 8, 16):
        rows.append([n] + [printed[name][n] for name in printed] +
                    [own.ratio(1, n), own.mean(1, n), 100 * own.overheads(n)[0]] +
                    [others[name].ratio(1, n, alone) for name in names])
        points += [(name, True, n, printed[name][n]) for name in printed]
        points += [(name, False, n, others[name].ratio(1, n, alone)) for name in names[:3]]
    points += [("abdada", False, n, own.ratio(1, n), own.overheads(n)) for n in (1, 2, 4, 8, 16)]
    lab.report.table("hyatt", f"Hyatt 1988, tables 5.4, 6.4, 7.4: alpha-beta, chess, {depth} plies",
                     [f"{len(positions)} of the 23 Bratko-Kopec positions 2 to 24; one memory: no "
                      "latency, remote_depth 1"],
                     ["workers", "PVS", "EPVS", "DTS", "abdada", "mean of ratios", "search overhead %",
                      *(f"our {name}" for name in names)], rows)
    lab.report.picture("hyatt", "Hyatt 1988: Bratko-Kopec 2 to 24, 5 plies",
                       "no latency; published: Sequent Balance 21000", points)


HYATT_TREES = ((2, 16), (4, 9), (8, 6), (16, 5), (32, 4), (64, 3))


def hyatt_minimax(lab):
    trees = HYATT_TREES
    rows = []
    for shape, files in (("uniform", ("5.1-pvs", "7.1-dts")),
                         ("ranked", ("5.2-pvs-non", "7.2-dts-non"))):
        printed = [{int(r["branching_w"]): float(r["speedup_16cpu"])
                    for r in published(f"hyatt-table-{file}-uniform")
                    if r["branching_w"].isdigit()} for file in files]
        for w, d in trees:
            less = 3 if lab.quick and w == 2 else 1 if lab.quick else 0
            tree = f"tree:b={w},replies=1,d={2 * (d - less)},shape={shape}"
            options = dict(SEQUENT, depth=2 * (d - less), workers=counts(1, 16))
            own = lab.sim.rows(tree, options)
            alone = lab.sim.sums([tree], options | {"algorithm": "sequential", "workers": 1})
            split = [lab.sim.sums([tree], options | {"algorithm": name}).ratio(1, 16, alone) for name in ("pvs", "dts")]
            rows.append([shape, w, d, d - less] + [p.get(w) for p in printed] + split +
                        [own[16]["speedup"], 100 * own[16]["search_overhead"]])
    for shape in ("uniform", "ranked"):
        part = [r for r in rows if r[0] == shape]
        mean = [sum(r[i] for r in part) / len(part) for i in range(4, 10)]
        rows.append([shape, "mean", "", ""] + mean)
    lab.report.table("hyatt-minimax", "Hyatt 1988, chapters 5 and 7: minimax without cuts, 16 "
                     "workers", ["trees of b=w, one reply to each move, 2d plies: nothing can be "
                                    "cut; one memory: no latency, remote_depth 1, "
                                    "messages served at every node", "our d is less where --quick wants it so"],
                     ["shape", "w", "d", "our d", "PVS", "DTS", "our pvs", "our dts", "abdada", "search overhead %"], rows)


# ---- Ura 2014 ----

def ura(lab):
    """Table 1 (synthetic) and the row of 64 to 1,536 processes (published for shogi only)."""
    most = {20: 1536, 5: 512}  # more than that only wait for each other where b=5 has to be as small as here
    for b, depth, leaf_us, remote_depth, file in ((20, lab.pick(10, 8), 49.1, 1, "ura-table3-shogi-b20"),
                                             (5, lab.pick(16, 13), 24.6, 1, "ura-table2-shogi-b5")):
        d = 12 if b == 20 else 24
        workers = [n for n in lab.pick((1, 64, 128, 256, 512, 1024, 1536), (1, 64, 256)) if n <= most[b]]
        best = {20: "6", 5: "12"}[b]
        shogi = {int(r["processes"]): float(r["speedup"]) for r in published(file)
                 if r["method"] == "w/ updates" and r["d"] == str(d) and r["d_prime"] == best}
        synthetic = {int(r["processes"]): float(r["speedup"])
                     for r in published("ura-table1-synthetic")
                     if r["method"] == "w/ updates" and r["b"] == str(b)}
        trees = [f"tree:b={b},d={depth},seed=1"]
        options = dict(CLUSTER, depth=depth, workers=counts(*workers), remote_depth=remote_depth, **{"node-us": leaf_us})
        own = lab.sim.sums(trees, options)
        masters = [lab.sim.sums(trees, options | {"algorithm": name}) for name in ("minimal-tree", "minimal-tree-static")]
        rows, points = [], []
        for n in workers:
            overheads = own.overheads(n)
            rows.append([n, synthetic.get(n), shogi.get(n)] + [m.ratio(1, n) for m in masters] +
                        [own.ratio(1, n)] + [100 * x for x in overheads])
            points.append((f"abdada, d={depth}", False, n, own.ratio(1, n), overheads))
            points.append((f"minimal-tree, d={depth}", False, n, masters[0].ratio(1, n)))
        points += [("synthetic", True, n, s) for n, s in synthetic.items() if n > 1]
        points += [("shogi", True, n, s) for n, s in shogi.items() if n > 1]
        lab.report.table(f"ura-b{b}", f"Ura 2014, tables 1 to 3: b={b}", [
            f"ours: {len(trees)} tree(s), depth {depth} instead of {d} (a depth more takes hours; "
            "smaller trees speed up less); each over the same algorithm on one processor",
            f"{leaf_us} us a node, round trip 20 us, message 1 us, service 0.5 us, remote_depth "
            f"{remote_depth}; {own.nodes(1) / len(trees) / 1e6:.1f} million nodes on one processor"],
            ["workers", "synthetic", "shogi", "our minimal-tree", "without updates", "abdada", "search %", "communication %",
             "synchronisation %"], rows)
        lab.report.picture(f"ura-b{b}", f"Ura 2014: b={b}",
                           f"ours: depth {depth}; published: depth {d}", points)


# ---- StarTech, Kuszmaul 1995 ----

def least_squares(rows):
    """a, b that bring a x + b y nearest to z, relative to z, over rows (x, y, z)."""
    rows = [(x / z, y / z) for x, y, z in rows]
    xx, xy, yy = (sum(r[i] * r[j] for r in rows) for i, j in ((0, 0), (0, 1), (1, 1)))
    x, y = (sum(r[i] for r in rows) for i in (0, 1))
    det = xx * yy - xy * xy
    return (x * yy - y * xy) / det, (y * xx - x * xy) / det


def startech(lab):
    """T = a W/P + b C. W: nodes of the P processors, as the paper has it, and, beside it, of one.
    C: critical path of one processor's walk by time-stamping (search.h, `critical`)."""
    workers = lab.pick((1, 2, 4, 8, 16, 32, 64, 128, 256), (1, 4, 16, 64, 256))
    trees = lab.pick(("tree:b=20,d=6", "tree:b=20,d=7", "tree:b=20,d=8", "tree:b=5,d=12", "tree:b=20,d=7,order=70"),
                     ("tree:b=20,d=6", "tree:b=20,d=7", "tree:b=5,d=12", "tree:b=20,d=6,order=70"))
    positions = [(tree, int(tree.split("d=")[1].split(",")[0])) for tree in trees]
    positions += [(fen, lab.pick(6, 5)) for fen in bratko_kopec()[4:24:lab.pick(4, 8)]]
    options = dict(PERFECT, workers=counts(*workers), remote_depth=1)
    # Who has work gives it away at once: waiting for a poll of each 50 nodes would be latency.
    stealing = options | {"algorithm": "jamboree", "poll-us": 0}
    for position, depth in positions:
        lab.sim.ask(position, options | {"depth": depth})
        lab.sim.ask(position, stealing | {"depth": depth})
    measured, alone, jamboree, rows = [], [], [], []
    for position, depth in positions:
        own = lab.sim.rows(position, options | {"depth": depth})
        node_s = PERFECT["node-us"] / 1e6
        work, path = own[1]["nodes"] * node_s, own[1]["critical"] * node_s
        stolen = lab.sim.rows(position, stealing | {"depth": depth})
        for n in workers:
            jamboree.append((stolen[n]["nodes"] * node_s / n, path, stolen[n]["seconds"]))
            measured.append((own[n]["nodes"] * node_s / n, path, own[n]["seconds"]))
            alone.append((work / n, path, own[n]["seconds"]))
        most = max(workers)
        rows.append([position[:34], depth, own[1]["nodes"], own[1]["critical"], work / path,
                     own[most]["speedup"], own[most]["seconds"] / path])
    lab.report.table("startech-paths", "StarTech, section 3: work and critical path",
                     ["C by time-stamping one processor's walk: eldest, then the longest scout, then "
                      "searches again", f"no latency, remote_depth 1, {max(workers)} workers at most"],
                     ["position", "depth", "W", "C", "W/C", f"speedup {max(workers)}",
                      f"T({max(workers)})/C"], rows)
    model = {r["name"]: float(r["value"]) for r in published("startech-model")}
    fits = [("published: W of the run", model["model_work_coefficient"],
             model["model_critical_path_coefficient"], None)]
    for name, samples in (("our jamboree: W of the run", jamboree), ("abdada: W of the run", measured),
                          ("abdada: W of one processor", alone)):
        a, b = least_squares(samples)
        errors = sorted(abs(a * x + b * y - z) / z for x, y, z in samples)
        fits.append((name, a, b, 100 * errors[len(errors) // 2]))
    lab.report.table("startech-fit", "StarTech, equation 2: T = a W/P + b C",
                     ["least squares of relative errors over all positions and processors; the "
                      "published constant of 4.3 s has no like here; jamboree serves messages at every node"],
                     ["", "a", "b", "median error %"], fits)
    points = [("StarTech, Kaufman", True, int(r["processors"]), float(r["derived_speedup_all25"]))
              for r in published("startech-figure5-processors")]
    chess = [p for p in positions if not p[0].startswith("tree:")]
    own = lab.sim.sums([p for p, _ in chess], options | {"depth": chess[0][1]})
    points += [("Bratko-Kopec", False, n, own.ratio(1, n), own.overheads(n)) for n in workers]
    printed = {p[2]: p[3] for p in points if p[1]}
    lab.report.table("startech", "StarTech, figure 5: speedup by processors (all 25 positions)",
                     [f"ours: {len(chess)} Bratko-Kopec positions to depth {chess[0][1]}"],
                     ["workers", "published", "ours", "mean of ratios"],
                     [[n, printed[n], own.ratio(1, n), own.mean(1, n)] for n in workers])
    lab.report.picture("startech", "StarTech 1995, figure 5", "no latency; published: CM-5", points)


# ---- a local network at today's node speed ----

NETWORK_HEAD = ["hosts", "threads", "speedup", "search overhead %", "duplicated %", "MB/s a host", "busiest host",
                "shards' load %", "busiest shard"]
# hosts, threads, round trip, speedup that is wanted, and that is hoped for
NETWORK_CLUSTERS = ((4, 8, 100, 22, 27), (16, 8, 100, 55, 80), (32, 1, 100, 21, 25), (128, 1, 100, 50, 75),
                    (16, 8, 10, 65, 95))
NETWORK_FEW = (4, 16, 24)  # positions of the runs that are many, or large
NETWORK_LARGEST = (128, 8, {"local": 16384, "hash": 64})  # 1,024 searchers: their tables fit into 6 GiB


class Network:
    """The searches of the tables below, each asked for when it is named and waited for when its figures are read."""

    def __init__(self, lab):
        self.lab = lab
        self.depth = lab.pick(10, 6)

    def options(self, hosts, threads, **more):
        """A host's table has 128 MiB where 8 threads share it, 64 MiB where there is one."""
        local = self.lab.pick(131072, 16384) if threads > 1 else self.lab.pick(65536, 8192)
        return dict(LAN, hosts=hosts, threads=threads, local=local, hash=self.lab.pick(256, 64)) | more

    def alone(self):
        """One searcher over one shard."""
        return dict(LAN, workers=1, local=self.lab.pick(262144, 32768), hash=self.lab.pick(256, 64), depth=self.depth)

    def cluster(self, hosts, threads, **more):
        return self.options(hosts, threads, **{"depth": self.depth, "no-reference": True} | more)

    def positions(self, numbers):
        return self.lab.thinned([bratko_kopec()[number - 1] for number in numbers])

    def ask(self, numbers, *runs):
        for options in runs:
            for position in self.positions(numbers):
                self.lab.sim.ask(position, options)

    def sums(self, numbers, options):
        return self.lab.sim.sums(self.positions(numbers), options)

    def row(self, numbers, hosts, threads, **more):
        """The columns are NETWORK_HEAD."""
        n = hosts * threads
        own = self.sums(numbers, self.cluster(hosts, threads, **more))
        one = self.sums(numbers, self.alone())
        return [hosts, threads, own.ratio(1, n, one), 100 * own.search_overhead(1, n, one),
                100 * own.of_nodes(n, "duplicated_nodes"), own.over_time(n, "host_bytes_per_s") / 1e6,
                own.over_time(n, "host_bytes_per_s_most") / 1e6, 100 * own.over_time(n, "shard_load"),
                100 * own.over_time(n, "shard_load_most")]


def network(lab):
    net = Network(lab)
    every, few = lab.pick((range(2, 25, 2), NETWORK_FEW), ((4, 16), (4, 16)))
    bounds = [(hosts, mbits) for hosts in (4, 16) for mbits in (1000, 10000)]
    hosts, threads, tables = NETWORK_LARGEST
    if not lab.quick:
        net.ask((4,), net.cluster(hosts, threads, **tables))
    net.ask(every, net.alone(), *(net.cluster(h, t, **{"rtt-us": rtt}) for h, t, rtt, *_ in NETWORK_CLUSTERS))
    net.ask(few, *(net.cluster(h, 8, bandwidth=mbits) for h, mbits in bounds))

    number = len(net.positions(every))
    notes = [f"{number} Bratko-Kopec positions, plain, strict, depth {net.depth}, sums of time; one searcher over one "
             f"shard: {net.sums(every, net.alone()).seconds(1):.1f} s",
             "0.2 us a node, message 10 us and 0.05 us an operation, service 2 us and 0.1 us an operation; results "
             "broadcast",
             "MB/s of a host's network card, both directions; busiest: the mean of the busiest one's over all searches"]
    names = {8: "8 threads a host", 1: "1 thread a host"}
    rows, points = [], [(name, False, 1, 1.0) for name in names.values()]
    for h, t, rtt, wanted, hoped in NETWORK_CLUSTERS:
        row = net.row(every, h, t, **{"rtt-us": rtt})
        rows.append(row[:2] + [rtt] + row[2:] + lab.pick([wanted, hoped], [None, None]))
        points.append((names[t] + (f", {rtt} us" if rtt != 100 else ""), False, h * t, row[2]))
    head = NETWORK_HEAD[:2] + ["round trip us"] + NETWORK_HEAD[2:]
    lab.report.table("network", "A local network at today's node speed: speedup over one searcher", notes,
                     head + ["wanted", "hoped for"], rows)
    lab.report.picture("network", f"A local network at today's node speed: {number} Bratko-Kopec positions",
                       f"depth {net.depth}, 0.2 us a node, 100 us a round trip", points)

    rows = []
    for h, mbits in bounds:
        row, n = net.row(few, h, 8, bandwidth=mbits), 8 * h
        bound, free = (net.sums(few, net.cluster(h, 8, **more)) for more in ({"bandwidth": mbits}, {}))
        rows.append(row[:2] + [mbits, bound.seconds(n) / free.seconds(n)] + row[2:])
    lab.report.table("network-bandwidth", "The same by what a host's network card takes each way", [
        f"{len(net.positions(few))} of the positions; time: to that without a bound"],
        NETWORK_HEAD[:2] + ["Mb/s", "time"] + NETWORK_HEAD[2:], rows)
    if not lab.quick:
        lab.report.table("network-largest", "The same with 1,024 searchers", [
            "Bratko-Kopec 4; tables: 16 MiB a host, 64 MiB for 16 searchers in the shards"],
            NETWORK_HEAD, [net.row((4,), hosts, threads, **tables)])


def network_play(lab):
    """Time is given, as in a game: how deep?"""
    net, time_ms = Network(lab), lab.pick(1000, 20)
    positions, clusters = net.positions(NETWORK_FEW), ((16, 8), (4, 8), (1, 8), (1, 1))
    runs = {c: net.options(*c, time=time_ms, select="full") | {"node-us": FULL_NODE_US} for c in clusters}
    net.ask(NETWORK_FEW, *runs.values())
    rows = []
    for hosts, threads in reversed(clusters):
        found = [lab.sim.rows(p, runs[hosts, threads])[hosts * threads] for p in positions]
        depths = [row["depth"] for row in found]
        rows.append([hosts, threads, *depths, sum(depths) / len(depths), sum(row["nodes"] for row in found) / 1e6])
    names = [f"Bratko-Kopec {number}" for number in lab.thinned(NETWORK_FEW)]
    lab.report.table("network-play", f"A local network at today's node speed: depth reached in {time_ms} ms",
                     ["full selection; the network of the table above"],
                     ["hosts", "threads", *names, "mean", "million nodes"], rows)


# ---- Othello to the end of the game ----

ENDINGS = ((4, 8, 20), (16, 8, 60))  # hosts, threads, speedup that is wanted where one searcher takes 1 to 10 minutes
ENDING_MINUTE_S = 60


def endings(lab):
    """Exact scores on the network of above, each node at the time of the solver's."""
    net, ffo = Network(lab), boards("ffo.obf")
    names = [f"FFO #{n}" for n in lab.pick((40, 45, 49, 64), (26, 40))]
    exact = {"game": "othello", "solve": True, "node-us": ENDING_NODE_US}

    def without_depth(options):
        return {name: value for name, value in options.items() if name != "depth"} | exact

    alone = without_depth(net.alone())
    clusters = {(h, t): without_depth(net.cluster(h, t)) for h, t, _ in ENDINGS}
    for name in reversed(names):
        for options in (*reversed(clusters.values()), alone):
            lab.sim.ask(ffo[name], options)
    rows, points = [], []
    for name in names:
        one = lab.sim.sums([ffo[name]], alone)
        points.append((name, False, 1, 1.0))
        for h, t, wanted in ENDINGS:
            own, n = lab.sim.sums([ffo[name]], clusters[h, t]), h * t
            rows.append([name, ffo[name][:64].count("-"), one.seconds(1), h, t, own.ratio(1, n, one),
                         100 * own.search_overhead(1, n, one), 100 * own.of_nodes(n, "duplicated_nodes"),
                         100 * own.of_nodes(n, "abandoned_nodes"), 100 * own.over_time(n, "shard_load_most"),
                         wanted if one.seconds(1) >= ENDING_MINUTE_S else None])
            points.append((name, False, n, own.ratio(1, n, one)))
    lab.report.table("endings", "Othello endings solved on a local network: speedup over one searcher", [
        f"exact scores; {ENDING_NODE_US} us a node (the solver's), round trip 100 us, the network of the table above"],
        ["position", "empties", "s on one", "hosts", "threads", "speedup", "search overhead %", "duplicated %",
         "abandoned %", "busiest shard %", "wanted"], rows)
    lab.report.picture("endings", "Othello endings on a local network",
                       f"{ENDING_NODE_US} us a node, 100 us a round trip, 8 threads a host", points)


# ---- what each option does ----

def knobs(lab):
    """One option changed at a time, where a network costs something."""
    depth = lab.pick(8, 7)
    tree, workers = f"tree:b=20,d={depth}", lab.pick((1, 32, 128, 256), (1, 32, 128))
    base = {"node-us": 1, "rtt-us": 100, "message-us": 1, "service-us": 0.2,
            "depth": depth, "workers": counts(*workers), "remote_depth": 4}
    variants = [("remote_depth 4 (base)", {}), ("remote_depth 3", {"remote_depth": 3}),
                ("remote_depth 5", {"remote_depth": 5}), ("remote_depth auto", {"remote_depth": "auto"}),
                ("--wait", {"wait": True}), ("--wait, remote_depth 3", {"wait": True, "remote_depth": 3}),
                ("abdada-paper", {"algorithm": "abdada-paper"}),
                ("shared-table", {"algorithm": "shared-table"}),
                ("--wait, abdada-paper", {"wait": True, "algorithm": "abdada-paper"}),
                ("no latency, remote_depth 2", PERFECT | {"remote_depth": 2}),
                ("no latency, abdada-paper", PERFECT | {"remote_depth": 2, "algorithm": "abdada-paper"})]
    alone = base | {"algorithm": "sequential", "workers": 1}
    for _, change in variants:
        lab.sim.ask(tree, base | change)
    sequential = lab.sim.rows(tree, alone)[1]["seconds"]
    rows = []
    for name, change in variants:
        own = lab.sim.rows(tree, base | change)
        most = own[max(workers)]
        rows.append([name] + [sequential / own[n]["seconds"] for n in workers[1:]] +
                    [100 * most["search_overhead"], 100 * most["communication_overhead"]])
    lab.report.table("knobs", f"What each option does: {tree}, 1 us a node, round trip 100 us",
                     ["absolute speedup, against the sequential search: one's own T(1) is slower "
                      "where it waits", f"overheads of {max(workers)} workers"],
                     ["", *(str(n) for n in workers[1:]), "search %", "communication %"], rows)


TABLES = {"compare": compare, "weill": weill, "weill-32": weill_32, "weill-othello": weill_othello,
          "reads": reads_per_write, "hyatt": hyatt_alphabeta,
          "minimax": hyatt_minimax, "ura": ura, "startech": startech, "network": network, "network-play": network_play,
          "endings": endings, "knobs": knobs}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="smaller depths, fewer positions")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="runs side by side")
    parser.add_argument("--thin", type=int, default=1, help="every Nth chess position only")
    parser.add_argument("--workers", type=int, nargs="+", help="for compare, other numbers than (1, 8, 32, 128)")
    parser.add_argument("--out", default=os.path.join(ROOT, "build/lab"))
    parser.add_argument("table", nargs="*", help=f"of {', '.join(TABLES)} (default: all)")
    args = parser.parse_args()
    unknown = set(args.table) - set(TABLES)
    if unknown:
        parser.error(f"no such table: {', '.join(sorted(unknown))}")
    lab = Lab(args)
    begin = time.monotonic()
    if args.quick:
        print("QUICK: smaller depths and fewer positions than `make lab`; each table says which")
    try:
        for name in args.table or TABLES:
            started = time.monotonic()
            TABLES[name](lab)
            print(f"   ({name}: {time.monotonic() - started:.0f} s)", flush=True)
    finally:
        lab.sim.close()
    print(f"\n{time.monotonic() - begin:.0f} s; CSV and SVG in {os.path.relpath(args.out)}")
    return 1 if lab.sim.unequal else 0


if __name__ == "__main__":
    sys.exit(main())
