#!/usr/bin/python3
"""web: what open pages of `abdada top --web` cost a cluster. `make bench-web`.

A cluster of 2 shards and as many searching threads as there are CPUs searches a position again and again for the same
time, in turns with --pages clients that poll the view and with none (A B B A ...). Everything runs on this machine,
the clients, too, which count against the cluster here and would not elsewhere; they read and throw away. Wanted: with
pages at least 98% of the nodes/s.

  tests/instruments/bench/web.py [--runs N] [--seconds S] [--pages N]
"""
import argparse
import http.client
import json
import os
import statistics
import sys
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(ROOT, "tests", "system"))
import cluster  # noqa: E402

POSITION = "r4k2/pb2bp1r/1p1qp2p/3pNp2/3P1P2/2N3P1/PPP1Q2P/2KRR3 w - -"
WANTED = 0.98
POLL_S = 0.4  # POLL_MS of the page


class Pages:
    """Clients that poll the view as the page does, on one thread: each every POLL_S, in turn."""

    def __init__(self, top, count):
        """top: a Process of `abdada top --web`."""
        host, _, port = top.wait_line(r"http://([^/]+)/", "err")[0][1].rpartition(":")
        self.at, self.count, self.views, self.bytes, self.cpu_s, self.ended = (host, int(port)), count, 0, 0, 0.0, False
        self.thread = threading.Thread(target=self.poll_all)
        self.thread.start()

    def poll_all(self):
        tags, begin, number = [""] * self.count, time.monotonic(), 0
        while not self.ended and self.count:
            page = number % self.count
            time.sleep(max(0, begin + number * POLL_S / self.count - time.monotonic()))
            connection = http.client.HTTPConnection(*self.at, timeout=30)
            connection.request("GET", "/view", headers={"If-None-Match": tags[page]} if tags[page] else {})
            answer = connection.getresponse()
            self.bytes += len(answer.read())
            self.views += answer.status == 200
            tags[page] = answer.headers["ETag"] or tags[page]
            connection.close()
            number += 1
        self.cpu_s = time.thread_time()

    def close(self):
        self.ended = True
        self.thread.join()


def cpu_s(process):
    with open(f"/proc/{process.popen.pid}/stat", encoding="ascii") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def one(servers, shards, top, pages, options):
    """(nodes a second, CPU seconds of top, of the shards and of the clients, views)"""
    clients = Pages(top, pages)
    before = cpu_s(top), sum(map(cpu_s, shards))
    found, = cluster.answers(cluster.start("--servers", servers, "--fresh", "--time", int(1000 * options.seconds), POSITION))
    after = cpu_s(top), sum(map(cpu_s, shards))
    clients.close()
    return (1000 * found["nodes"] / found["time_ms"], after[0] - before[0], after[1] - before[1], clients.cpu_s,
            clients.views / max(1, pages))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5, help="of each side (5)")
    parser.add_argument("--seconds", type=float, default=20, help="of a search (20)")
    parser.add_argument("--pages", type=int, default=100)
    options = parser.parse_args()
    shards = [cluster.Shard(heartbeat_ms=1000) for _ in range(2)]
    servers = ",".join(shard.address for shard in shards)
    for _ in range(max(1, len(os.sched_getaffinity(0)) - 1)):  # the front-end searches, too
        cluster.Worker(servers)
    top = cluster.Process("abdada", "top", "--servers", servers, "--web", "127.0.0.1:0")
    sides = {0: [], options.pages: []}
    for number in range(options.runs):
        for pages in list(sides)[::1 if number % 2 == 0 else -1]:
            row = one(servers, shards, top, pages, options)
            sides[pages].append(row)
            print(f"{pages:4} pages: {row[0] / 1e6:.3f} M nodes/s; CPU: top {row[1]:.2f} s, shards {row[2]:.2f} s, "
                  f"clients {row[3]:.2f} s; {row[4]:.0f} views a page", flush=True)
    middle = {pages: statistics.median(row[0] for row in rows) for pages, rows in sides.items()}
    ratios = sorted(b[0] / a[0] for a, b in zip(*sides.values()))
    ratio = middle[options.pages] / middle[0]
    cpu = statistics.median(sum(row[1:4]) for row in sides[options.pages]) - statistics.median(sum(row[1:4]) for row in sides[0])
    print(f"{options.pages} pages: {middle[options.pages] / 1e6:.3f} M nodes/s, none: {middle[0] / 1e6:.3f} M, ratio of the "
          f"medians {ratio:.3f}, of neighbours {statistics.median(ratios):.3f} ({ratios[0]:.3f}-{ratios[-1]:.3f}); "
          f"{100 * cpu / options.seconds / len(os.sched_getaffinity(0)):.2f}% of this machine's CPU time; wanted {WANTED}")
    print(json.dumps({"pages": options.pages, "ratio": ratio, "ok": ratio >= WANTED}))
    return 0 if ratio >= WANTED else 1


if __name__ == "__main__":
    sys.exit(main())
