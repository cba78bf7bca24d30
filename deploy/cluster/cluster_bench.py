"""What the hosts of a running cluster bring, one, two and all of them, measured there. Of `abdada cluster` (cluster.py).

The searches are those of any user: `abdada analyse`, `solve` and `ttbench` on this machine, whose one thread takes part.
Shards stay as they are; workers of the hosts that are not asked are stopped for that time, and started again at the end,
whatever happens. Beside it stands what `abdada sim` says of such hosts, where that is cheap.
"""
import json
import subprocess
import time

from cluster_file import Trouble
from cluster_host import BOUND_S, printable, say

# Even numbers of Bratko and Kopec's test.
POSITIONS = (
    "r1bq1rk1/pp2ppbp/2np2p1/2n5/P3PP2/N1P2N2/1PB3PP/R1B1QRK1 b - -",
    "r4k2/pb2bp1r/1p1qp2p/3pNp2/3P1P2/2N3P1/PPP1Q2P/2KRR3 w - -",
    "2r2rk1/1bqnbpp1/1p1ppn1p/pP6/N1P1P3/P2B1N1P/1B2QPP1/R2R2K1 b - -",
    "rnb2r1k/pp2p2p/2pp2p1/q2P1p2/8/1Pb2NP1/PB2PPBP/R2Q1RK1 w - -",
    "r3r1k1/ppqb1ppp/8/4p1NQ/8/2P5/PP3PPP/R3R1K1 b - -",
    "3rr1k1/pp3pp1/1qn2np1/8/3p4/PP1R1P2/2P1NQPP/R1B3K1 b - -",
)
# Endings of Othello, each some times as hard as the one before: of the FFO test #40, #42 and #45 after an easy one.
ENDINGS = (
    "--XXXXX--OOOXX-O-OOOXXOX-OXOXOXXOXXXOXXX--XOXOXX-XXXOOO--OOOOO-- X",
    "O--OOOOX-OOOOOOXOOXXOOOXOOXOOOXXOOOOOOXX---OOOOX----O--X-------- X",
    "--OOO-------XX-OOOOOOXOO-OOOOXOOX-OOOXXO---OOXOO---OOOXO--OOOO-- X",
    "---XXXX-X-XXXO--XXOXOO--XXXOXO--XXOXXO---OXXXOO-O-OOOO------OO-- X",
)
# In the virtual cluster a message costs its sender and its shard as much as on a local network, in us.
COSTS = "--message-us 10 --operation-us 0.05 --service-us 2 --service-operation-us 0.1 --hash 64 --local 16384".split()
GRACE_S = 60  # that a program here may take longer than it was told to
SHORT_MS = 500  # of a search that the virtual cluster repeats
VIRTUAL_NODES_S = 300_000  # that `abdada sim` does at least on this machine


class Plan:
    """How long. A minute or ten, with three sizes of cluster."""

    def __init__(self, quick):
        self.positions = POSITIONS[:2] if quick else POSITIONS
        self.time_ms = 2000 if quick else 10000
        self.load_s = 2 if quick else 10
        self.ending_least_s, self.ending_most_s = (0.5, 5) if quick else (3, 60)
        self.virtual_s = 15 if quick else 120  # for all of the prediction


class Bench:
    def __init__(self, cluster, supplies, hosts, each_host, bound):
        self.cluster, self.supplies, self.hosts, self.each_host, self.bound = cluster, supplies, hosts, each_host, bound
        self.stopped: list = []
        self.servers = ["--servers", ",".join(cluster.servers), *(["--keys", cluster.keys] if cluster.keys else [])]

    # ---- the hosts ----

    def check(self):
        """All is up, and is what the file says: or what is started at the end would be something else."""
        self.each_host(self.hosts, lambda host: host.call(
            "probe", *(sorted({each.what for each in host.programs}) if host.wanted.is_installed else [])))
        for host in self.hosts:
            if host.trouble:
                raise Trouble("not all hosts answer")
            for row in host.rows():
                if row.state != "up":
                    raise Trouble(f"{host.name}: {row.what} is {row.state}: `abdada cluster up` first")
            for each in host.programs:
                if host.found[each.name].made_of != host.describe(each)[1]["made_of"]:
                    raise Trouble(f"{host.name}: {each.name} is not what {self.cluster.path} and the programs here say: "
                                  "`abdada cluster up` first")

    @staticmethod
    def workers(host):
        """Those that take part in the searches here: an engine does not."""
        return [each for each in host.programs if each.what == "ttworker" and not each.values.engine]

    def threads(self, host):
        return sum(host.threads(each) for each in self.workers(host))

    def stop(self, hosts):
        self.stopped += hosts
        self.each_host(hosts, lambda host: host.call(
            "apply", self.bound, "", "", " ".join(each.name for each in self.workers(host)), "", "", seconds=self.bound))
        if any(host.trouble for host in hosts):
            raise Trouble("not all workers could be stopped")

    def restore(self):
        """Starts the workers again. Whether all runs."""
        def start(host):
            host.trouble = None
            host.prepare(False, self.bound)
            host.start_workers(self.bound)
        self.each_host(self.stopped, start)
        is_up = not any(host.trouble or row.state != "up" for host in self.stopped for row in host.rows())
        if not is_up:
            say("not all workers run again: `abdada cluster up` starts them")
        return is_up

    # ---- programs on this machine ----

    def run(self, *words, seconds):
        """The lines of JSON that a command of abdada prints."""
        command = [self.supplies.abdada, words[0], "--config", "/dev/null", "--json", *map(str, words[1:])]
        try:
            done = subprocess.run(command, env=self.supplies.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, timeout=seconds + GRACE_S, check=False)
            lines = [json.loads(line) for line in done.stdout.splitlines()]
        except subprocess.TimeoutExpired:
            raise Trouble(f"abdada {words[0]}: no answer within {seconds + GRACE_S:.0f} s") from None
        except ValueError:
            lines = []
        if done.returncode != 0 or not lines:
            said = done.stderr.decode("utf-8", "replace").strip().splitlines()
            raise Trouble(f"abdada {words[0]}: {said[-1] if said else f'exit status {done.returncode}'}")
        return lines

    def analyse(self, position, time_ms, *more):
        found, = self.run("analyse", "--select", "full", "--fresh", "--time", time_ms, *more, position, seconds=time_ms / 1000)
        return found

    def await_workers(self, number):
        """A worker that is ready may not have been told of a job by all shards yet. number: of their threads, as a search
        counts each of these as a worker."""
        end = time.monotonic() + self.bound
        while True:
            found = self.analyse("startpos", 200, *self.servers)
            if (found["workers"], found["shards_up"]) == (number, len(self.cluster.servers)):
                return
            if time.monotonic() > end:
                raise Trouble(f"of {number} workers {found['workers']} take part in a search, over {found['shards_up']} of "
                              f"{len(self.cluster.servers)} shards")

    # ---- what is measured: a row is what a cluster of so many hosts did; 0: this machine alone, without servers ----

    def network(self, plan):
        """From this machine to all shards."""
        lone, = self.run("ttbench", *self.servers, "--batch", 1, "--window", 1, "--seconds", plan.load_s / 2, seconds=plan.load_s)
        load, = self.run("ttbench", *self.servers, "--seconds", plan.load_s, seconds=plan.load_s)
        return {"round_trip_us": lone["p50_us"], "round_trip_p99_us": lone["p99_us"],
                "operations_per_s": load["ops_per_s"], "bytes_per_s": load["bytes_per_s"]}

    def search(self, row, plan, *more):
        """Depth, nodes and talk in the plan's time; depth in a time so short that the virtual cluster can repeat it."""
        long = [self.analyse(position, plan.time_ms, *more) for position in plan.positions]
        short = [self.analyse(position, SHORT_MS, *more) for position in plan.positions]
        seconds = sum(found["time_ms"] for found in long) / 1000
        hosts = [host for found in long for host in found["hosts"] if not host["self"] or not more]
        searchers = sum(host["searchers"] for host in hosts)
        row |= {
            "nodes_per_s": sum(found["nodes"] for found in long) / seconds,
            "depth": sum(found["depth"] for found in long) / len(long),
            "talking": sum(host["searchers"] * host.get("talking", 0) for host in hosts) / max(1, searchers),
            "bytes_per_s": sum(host["bytes_sent"] + host["bytes_received"] for host in hosts) / seconds / max(1, row["hosts"]),
            "node_us": 1e6 * searchers / max(1, sum(host["nps"] for host in hosts)),
            "short_depths": [found["depth"] for found in short]}

    def solve(self, board, plan, *more):
        """(seconds, score) of an ending; None each where that takes longer than the plan allows."""
        found, = self.run("solve", "--fresh", "--time", int(1000 * plan.ending_most_s), *more, board, seconds=plan.ending_most_s)
        return (found["time_ms"] / 1000, found["score"]) if found["depth"] == found["empties"] else (None, None)

    def choose_ending(self, plan):
        """The first that keeps this machine alone long enough; its time and its score, None where it is not solved."""
        for board in ENDINGS:
            seconds, score = self.solve(board, plan)
            if seconds is None or seconds >= plan.ending_least_s:
                break
        return board, seconds, score

    def predict(self, rows, plan, round_trip_us):
        """Depths that the virtual cluster reaches in SHORT_MS, on as many of the positions as it has time for; why not."""
        sizes = {row["hosts"]: row for row in rows if row["hosts"]}
        each = {row["threads"] / row["hosts"] for row in sizes.values()}
        if len(each) > 1 or not min(each).is_integer():
            return "hosts of different numbers of threads are not simulated"
        node_us = min(row["node_us"] for row in sizes.values())
        seconds = sum(row["threads"] for row in sizes.values()) * SHORT_MS * 1000 / node_us / VIRTUAL_NODES_S
        number = min(len(plan.positions), int(plan.virtual_s / seconds))
        if number == 0:
            return f"the virtual cluster would take {seconds:.0f} s a position"
        depths: dict = {}
        try:
            for position in plan.positions[:number]:
                for line in self.run("sim", "--select", "full", "--loose", "--no-reference", "--time", SHORT_MS, "--hosts",
                                     ",".join(map(str, sorted(sizes))), "--threads", int(min(each)),
                                     "--shards", len(self.cluster.servers), "--node-us", f"{node_us:.4f}", "--rtt-us",
                                     f"{round_trip_us:.1f}", *COSTS, position, seconds=3 * seconds):
                    depths.setdefault(line["hosts"], []).append(line["depth"])
        except Trouble as trouble:
            return str(trouble)
        for hosts, found in depths.items():
            sizes[hosts]["virtual_depths"] = found
        return None

    def measure(self, plan):
        """(what is said of all, rows)"""
        self.check()
        searching = [host for host in self.hosts if self.workers(host)]
        if not searching:
            raise Trouble("no host has a ttworker without an engine")
        say(f"network: {plan.load_s * 1.5:.0f} s")
        about = self.network(plan)
        say("this machine alone")
        alone: dict = {"hosts": 0, "threads": 1}
        self.search(alone, plan)
        ending, alone["ending_s"], score = self.choose_ending(plan)
        rows = []
        for size in sorted({len(searching), 2, 1} & set(range(1, len(searching) + 1)), reverse=True):
            self.stop([host for host in searching[size:] if host not in self.stopped])
            row: dict = {"hosts": size, "threads": sum(self.threads(host) for host in searching[:size])}
            say(f"{size} host{'s' if size > 1 else ''}")
            self.await_workers(row["threads"])
            self.search(row, plan, *self.servers)
            row["ending_s"], found = self.solve(ending, plan, *self.servers)
            if None not in (score, found) and score != found:
                raise Trouble(f"the ending is worth {found:+d} with {size} of the hosts, and {score:+d} otherwise: {ending}")
            score = score if found is None else found
            rows.insert(0, row)
        about |= {"shards": len(self.cluster.servers), "time_ms": plan.time_ms, "short_ms": SHORT_MS,
                  "positions": len(plan.positions), "ending": ending, "ending_score": score}
        return about, [alone, *rows]


def mean(values):
    return sum(values) / len(values)


def print_table(version, about, rows, not_predicted):
    """In Markdown, to paste."""
    print(f"abdada {version}, {rows[-1]['hosts']} hosts of workers; shards: {about['shards']}; round trip from here {about['round_trip_us']:.0f} us "
          f"(p99 {about['round_trip_p99_us']:.0f} us), load from here {about['operations_per_s'] / 1e6:.2f} M operations/s, "
          f"{about['bytes_per_s'] / 1e6:.1f} MB/s\n"
          f"{about['positions']} chess positions at selection full, {about['time_ms'] / 1000:g} s each; an Othello ending of "
          f"{sum(square == '-' for square in about['ending'])} empties; this machine's one thread takes part everywhere\n")
    short = f"depth in {about['short_ms'] / 1000:g} s"
    head = ["hosts", "threads", "M nodes/s", "times one", f"depth in {about['time_ms'] / 1000:g} s", "talk", "MB/s a host", "ending, s",
            "times one", short, "virtual"]
    print(f"| {' | '.join(head)} |\n|{' --- |' * len(head)}")
    one = rows[0]
    for row in rows:
        virtual, ending, depths = row.get("virtual_depths"), row["ending_s"], row["short_depths"]
        cells = [str(row["hosts"] or "none"), str(row["threads"]), f"{row['nodes_per_s'] / 1e6:.2f}",
                 f"{row['nodes_per_s'] / one['nodes_per_s']:.1f}", f"{row['depth']:.1f}"]
        cells += [f"{100 * row['talking']:.1f}%", f"{row['bytes_per_s'] / 1e6:.2f}"] if row["hosts"] else ["-", "-"]
        cells += [f"{ending:.1f}" if ending else "not solved", f"{one['ending_s'] / ending:.1f}" if ending and one["ending_s"] else "-",
                  f"{mean(depths[:len(rows[-1].get('virtual_depths', depths))]):.1f}",
                  f"{mean(virtual):.1f}" if virtual else "-"]
        print(f"| {' | '.join(cells)} |")
    print(f"\n`times one`: to this machine's one thread. `talk`: the part of the workers' time. `virtual`: "
          f"{not_predicted or 'what `abdada sim` says of such hosts, with this round trip and this speed of a thread'}.")


def bench(cluster, supplies, hosts, each_host, a):
    """The exit status of `abdada cluster bench`."""
    plan = Plan(a.quick)
    run = Bench(cluster, supplies, hosts, each_host, a.timeout or BOUND_S)
    is_up = False
    try:
        about, rows = run.measure(plan)
    finally:
        is_up = run.restore()
    not_predicted = run.predict(rows, plan, about["round_trip_us"])
    if a.json:
        print(json.dumps(about | {"version": supplies.version, "predicted": not_predicted is None}))
        for row in rows:
            print(json.dumps(row))
    else:
        print_table(printable(supplies.version), about, rows, not_predicted)
    return 0 if is_up else 1
