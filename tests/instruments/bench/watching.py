#!/usr/bin/python3
"""watching: what it costs a search to be watched by all there is at once. `make bench-watching`.

Two clusters of 2 shards and as many searching threads as there are CPUs stand side by side; one has --metrics. They
search the same positions to a depth in turns (A B B A ...), each with fresh tables, while the other is idle. The one
with metrics is meanwhile watched by `abdada top` as text (a view a second), by one open page of `abdada top --web`, and
by somebody who reads all metrics every five seconds, as Prometheus does. Wanted: 1.01 times the time to depth at most.

  tests/instruments/bench/watching.py [--runs N] [--depth N] [--positions N]
"""
import argparse
import json
import os
import statistics
import sys
import threading
import urllib.request

from web import Pages, cluster, cpu_s

WANTED = 1.01
SCRAPE_S = 5


class Side:
    """A cluster; with metrics and watched, or neither."""

    def __init__(self, watched):
        self.watched, metrics = watched, ("--metrics", "127.0.0.1:0") if watched else ()
        self.shards = [cluster.Shard(0, *metrics, heartbeat_ms=1000) for _ in range(2)]
        self.servers = ",".join(shard.address for shard in self.shards)
        self.workers = [cluster.Process("ttworker", "--servers", self.servers, *metrics)
                        for _ in range(max(1, len(os.sched_getaffinity(0)) - 1))]
        for worker in self.workers:
            worker.wait_line("^ready$")
        self.scraped = [self.where(p) for p in self.shards + self.workers] if watched else []
        self.metrics = metrics

    @staticmethod
    def where(process):
        return process.wait_line(r"metrics at (http://\S+)", "err")[0][1]

    def search(self, positions, depth):
        """(seconds, CPU seconds of what watches)"""
        ended, page, tops = threading.Event(), None, []
        if self.watched:
            tops = [cluster.Process("abdada", "top", "--servers", self.servers),
                    cluster.Process("abdada", "top", "--servers", self.servers, "--web", "127.0.0.1:0")]
            page = Pages(tops[1], 1)
        scraper = threading.Thread(target=self.scrape, args=(ended,))
        scraper.start()
        before, seconds = sum(map(cpu_s, tops)), 0
        for position in positions:
            front = cluster.start("--servers", self.servers, "--fresh", "--depth", depth, *self.metrics, position)
            if self.watched:
                self.front = self.where(front)
            seconds += cluster.answers(front)[0]["time_ms"] / 1000
            self.front = None
        cpu = sum(map(cpu_s, tops)) - before
        ended.set()
        scraper.join()
        if page:
            page.close()
        for top in tops:
            top.end()
        return seconds, cpu

    front = None

    def scrape(self, ended):
        while self.watched and not ended.wait(SCRAPE_S):
            for url in self.scraped + ([self.front] if self.front else []):
                try:
                    with urllib.request.urlopen(url, timeout=10) as answer:
                        answer.read()
                except OSError:
                    cluster.check(url not in self.scraped, "no metrics of", url)  # the front-end may have ended


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=7, help="of each side (7)")
    parser.add_argument("--depth", type=int, default=9, help="of a search (9)")
    parser.add_argument("--positions", type=int, default=4, help="of Bratko and Kopec (4)")
    options = parser.parse_args()
    positions = cluster.positions()[3:3 + options.positions]
    sides, rows = (Side(False), Side(True)), ([], [])
    for number in range(options.runs):
        for i in (0, 1) if number % 2 == 0 else (1, 0):
            rows[i].append(sides[i].search(positions, options.depth))
            print(f"{('alone', 'watched')[i]:8} {rows[i][-1][0]:7.2f} s; CPU of both tops {rows[i][-1][1]:.2f} s", flush=True)
    alone, watched = (statistics.median(row[0] for row in side) for side in rows)
    pairs = sorted(b[0] / a[0] for a, b in zip(*rows))
    share = 100 * statistics.median(cpu / seconds for seconds, cpu in rows[1]) / len(os.sched_getaffinity(0))
    print(f"watched {watched:.2f} s, alone {alone:.2f} s: ratio of the medians {watched / alone:.3f}, of neighbours "
          f"{statistics.median(pairs):.3f} ({pairs[0]:.3f}-{pairs[-1]:.3f}); both tops took {share:.2f}% of this "
          f"machine's CPU time; wanted {WANTED}")
    print(json.dumps({"ratio": watched / alone, "ok": watched / alone <= WANTED}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
