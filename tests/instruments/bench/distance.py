#!/usr/bin/python3
"""distance: what the distance of the shards costs a search. `make bench-distance`.

Time to depth (strict, plain) of the Bratko-Kopec positions over the embedded table, alternating with clusters whose
shards are 0, 50, 200 and 1,000 us of added round trip away: a front-end alone, and front-end + worker, over 1 and 2
shards. Every score must be that of the embedded table. Each row prints medians: time and its ratio to the embedded
table in the same round (lowest-highest); for front-end + worker also the speedup over the front-end alone; nodes
against the embedded table; BUSY answers; messages and bytes per second in and out of the shards, TCP included; the
part of its time that the front-end waited for answers.

With redis-server installed the same front-ends and workers also search over one Redis in place of shards (`--table`);
`--redis no` leaves it out.

The hosts are network namespaces. `tc netem` delays what leaves the host of a shard; where the kernel has none,
tests/system/cable.c does. That is a program on the same CPUs, so the delay is measured by lone asks from the host of
the front-end, printed, and corrected as far as possible. Without namespaces only distance 0 is measured, on loopback.

  tests/instruments/bench/distance.py [--runs N] [--depth N] [--every N] [--distances US,...] [--shards N,...] [--workers N,...]
                          [--more OPTIONS] [--json FILE]
"""
import argparse
import json
import os
import shutil
import socket
import statistics
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(ROOT, "tests", "system"))
import network  # noqa: E402

REASON = network.why_not()  # before any thread and socket
import cluster  # noqa: E402

EPD = os.path.join(ROOT, "tests/data/chess/bratko-kopec.epd")
SUMS = ("time_ms", "nodes", "busy", "asks", "duplicated_nodes")
PATIENCE = 3600
REDIS = shutil.which("redis-server", path=os.environ["PATH"] + ":/usr/sbin:/sbin")


def analyse(options, epd, *more, host=None):
    process = cluster.start("--fresh", "--strict", "--select", "plain", "--positions", "together", "--epd", epd, "--depth", options.depth,
                            *options.more.split(), *more, host=host)
    process.wait(PATIENCE)
    lines = cluster.answers(process)
    found = {key: sum(line[key] for line in lines) for key in SUMS}
    found["waited"] = sum(line["waited"] * line["time_ms"] for line in lines) / found["time_ms"]
    found["scores"] = [(line["id"], line["score"]) for line in lines]
    return found


class Side:
    """A cluster and the front-end that asks it."""

    def __init__(self, options, shards, workers):
        self.shards_wanted, self.workers_wanted = shards, workers
        self.cluster = cluster.Cluster(shards, workers, new_host=network.new_host, heartbeat_ms=1000)

    def name(self):
        kind = {0: "front-end alone", 1: "front-end + worker"}.get(self.workers_wanted,
                                                                 f"front-end + {self.workers_wanted} workers")
        return f"{kind}, {self.shards_wanted} shard{'s' * (self.shards_wanted > 1)}"

    def shape(self, distance_us):
        for shard in self.cluster.shards:
            if distance_us > 0:
                shard.host.shape(delay_ms=distance_us / 1000)
            elif shard.host:
                shard.host.unshape()

    def round_trip_us(self):
        """Half of all lone asks from the front-end's host, one after the other, take at most this long."""
        for shard in self.cluster.shards:
            shard.stats()  # a cable that was just changed carries again
        load = cluster.Process("abdada", "ttbench", "--servers", self.cluster.shards[0].address, "--clients", 1,
                               "--batch", 1, "--window", 1, "--pattern", "random", "--seconds", 1, "--json",
                               host=self.cluster.front_host)
        load.close_input()
        cluster.equal(load.wait(), 0, load.tail())
        return json.loads(load.out())["p50_us"]

    def close(self):
        self.cluster.__exit__()

    def run(self, options, epd):
        found, messages, octets = self.cluster.during(lambda: analyse(
            options, epd, *cluster.at(self.cluster.servers), host=self.cluster.front_host))
        seconds = found["time_ms"] / 1000
        found["messages_per_s"] = messages / seconds
        found["bytes_per_s"] = octets / seconds
        return found


class Redis:
    """A server on a host of its own; for a Side it is what a shard is."""

    def __init__(self, host):
        self.host = host
        self.port = network.PORT if host else network.free_port()
        address = host.address if host else "127.0.0.1"
        self.process = cluster.Process(REDIS, "--bind", address, "--port", self.port, "--protected-mode", "no", "--save",
                                       "", "--appendonly", "no", host=host)
        self.process.wait_line("Ready to accept connections")
        self.address = f"redis://{address}:{self.port}"
        self.stats()

    def stats(self):
        with socket.create_connection((self.address[len("redis://"):].rsplit(":", 1)[0], self.port), timeout=30) as s:
            s.sendall(b"INFO commandstats\r\n")
            file = s.makefile("rb")
            text = file.read(int(file.readline()[1:])).decode()
        figures = dict(line.split(":", 1) for line in text.split("\r\n") if ":" in line)
        calls = int(figures.get("cmdstat_evalsha", "calls=0").split(",")[0][len("calls="):])
        return {"messages": calls, "sent": calls}  # each is answered; what scripts call is no message


class RedisSide(Side):
    """Front-end and workers over one Redis."""

    def __init__(self, options, workers):
        self.shards_wanted, self.workers_wanted = 0, workers
        self.redis = Redis(network.new_host())
        self.cluster = cluster.Cluster(0, workers, new_host=network.new_host, table=self.redis.address)
        self.cluster.shards = [self.redis]  # for its cable and its traffic

    def name(self):
        return super().name().split(",")[0] + ", Redis"

    def close(self):
        self.cluster.shards = []
        super().close()
        self.redis.process.kill()
        if self.redis.host:
            self.redis.host.close()


def one_round(options, epd, sides, number):
    """The embedded table before every side, so that a pair has the same minutes of the machine; the order of sides
    turns round."""
    rows = {}
    for side in sides if number % 2 == 0 else sides[::-1]:
        base = analyse(options, epd)
        rows[side] = (side.run(options, epd), base)
        if rows[side][0]["scores"] != base["scores"]:
            sys.exit(f"distance: scores differ, {side.name()}: {rows[side][0]['scores']}\n"
                     f"embedded: {base['scores']}")
    return rows


def median_and_range(values):
    return f"{statistics.median(values):.2f} ({min(values):.2f}-{max(values):.2f})"


def show(side, rounds, distance_us, alone):
    pairs = [rows[side] for rows in rounds]
    ratios = [found["time_ms"] / base["time_ms"] for found, base in pairs]
    row = {key: statistics.median(found[key] for found, _ in pairs)
           for key in ("busy", "asks", "messages_per_s", "bytes_per_s", "waited", "time_ms")}
    row["nodes_ratio"] = statistics.median(found["nodes"] / base["nodes"] for found, base in pairs)
    row["duplicated"] = statistics.median(found["duplicated_nodes"] / found["nodes"] for found, _ in pairs)
    speedups = [rows[alone][0]["time_ms"] / rows[side][0]["time_ms"] for rows in rounds] if alone else []
    print(f"{distance_us:>6} {side.name():<29} {row['time_ms'] / 1000:7.2f} s {median_and_range(ratios):>17} "
          f"{median_and_range(speedups) if alone else '-':>17} {row['nodes_ratio']:6.3f} {row['busy']:7.0f} "
          f"{row['messages_per_s']:8.0f} {row['bytes_per_s'] / 1000:7.0f} {100 * row['waited']:6.1f}%", flush=True)
    row.update(distance_us=distance_us, side=side.name(), ratio=statistics.median(ratios), ratios=ratios,
               speedup=statistics.median(speedups) if alone else None)
    return row


def go_to(sides, distance_us, near_us):
    """Puts the shards at that distance; returns what a lone ask takes. The time that a cable takes by itself is part
    of the distance, so it is made to delay by so much less."""
    delay_us, ask_us = distance_us, near_us
    for _ in range(4):
        for side in sides:
            side.shape(delay_us)
        if distance_us == 0:
            break
        ask_us = sides[0].round_trip_us()
        off_us = ask_us - near_us - distance_us
        if abs(off_us) <= distance_us / 20 or (delay_us == 1 and off_us > 0):
            break
        delay_us = max(1, round(delay_us - off_us))
    return ask_us


def measure(options, epd, sides, distance_us, near_us):
    ask_us = go_to(sides, distance_us, near_us)
    print(f"{distance_us:>6} us to add: a lone ask takes {ask_us:.0f} us" +
          (f", {ask_us - near_us:.0f} more than without" if distance_us > 0 else ""), flush=True)
    rounds = [one_round(options, epd, sides, number) for number in range(options.runs)]
    rows = []
    for side in sides:
        alone = [s for s in sides if s.workers_wanted == 0 and s.shards_wanted == side.shards_wanted]
        rows.append(show(side, rounds, distance_us, alone[0] if alone and side.workers_wanted > 0 else None))
        rows[-1]["lone_ask_us"] = ask_us
    return rows


def numbers(text):
    return [int(word) for word in text.split(",")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--depth", type=int, default=7)
    parser.add_argument("--every", type=int, default=1, help="every Nth position only")
    parser.add_argument("--distances", type=numbers, default=[0, 50, 200, 1000], help="added round trips, us")
    parser.add_argument("--shards", type=numbers, default=[1, 2])
    parser.add_argument("--workers", type=numbers, default=[0, 1])
    parser.add_argument("--redis", choices=("yes", "no"), default="yes" if REDIS else "no")
    parser.add_argument("--more", default="", help="more options for abdada analyse, both sides")
    parser.add_argument("--json", help="the rows to this file, a line each")
    options = parser.parse_args()
    with open(EPD) as file:
        lines = [line for line in file if line.strip()][::options.every]
    why = network.why_no_delay()
    print(f"{len(lines)} positions, depth {options.depth}, {options.runs} runs of each in turn, {os.cpu_count()} CPUs; "
          f"delay by {network.shaper() if why is None else 'nothing'}")
    print(f"{'us':>6} {'cluster':<29} {'time':>9} {'to embedded':>17} {'to one alone':>17} {'nodes':>6} {'BUSY':>7} "
          f"{'msgs/s':>8} {'kB/s':>7} {'waiting':>7}")
    sides = [Side(options, shards, workers) for shards in options.shards for workers in options.workers]
    if options.redis == "yes":
        sides += [RedisSide(options, workers) for workers in options.workers]
    rows, near_us = [], sides[0].round_trip_us()
    with tempfile.NamedTemporaryFile("w", suffix=".epd") as epd:
        epd.writelines(lines)
        epd.flush()
        for distance_us in options.distances:
            if distance_us > 0 and why:
                print(f"{distance_us:>6} us skipped: {why}")
            else:
                rows += measure(options, epd.name, sides, distance_us, near_us)
    for side in sides:
        side.close()
    if options.json:
        with open(options.json, "w", encoding="utf-8") as out:
            out.writelines(json.dumps(row) + "\n" for row in rows)


if __name__ == "__main__":
    main()
