#!/usr/bin/python3
"""service: one shard of the table beside other stores and bare sockets. `make bench-service`.

Everything runs on this machine, server and clients sharing its CPUs, one after the other, `--repeats` times; medians, and
ratios run by run (lowest-highest). All do the same: batches of N asks of uniform random keys, a window of batches on
the way, and (but for multi-get) a store for each ask a round trip later (over `--table`: with it). Redis keeps the results and the in-flight
sets by an atomic script; the row with keys is the same shard, with CURVE on every connection; GET/SET and memcached keep 16 bytes a key and no more. The limits are the same bytes over
bare sockets, and the table in one process without a protocol.

  tests/instruments/bench/service.py [--repeats N] [--seconds S] [--batch N] [--window N] [--only ROWS] [--json FILE]
"""
import argparse
import ctypes
import json
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(ROOT, "tests", "system"))
from network import free_port  # noqa: E402

BUILD = os.path.dirname(os.path.join(ROOT, os.environ.get("BIN", "build/release/bin")))
PATH = os.environ["PATH"] + ":/usr/sbin:/sbin"
LIBC = ctypes.CDLL(None)


def run(*command):
    """The JSON lines of a command."""
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, check=True, text=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


class Daemon:
    """A server on loopback that dies with this program."""

    def __init__(self, *command, port):
        self.port = port
        self.process = subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL,
                                        preexec_fn=lambda: LIBC.prctl(1, signal.SIGKILL))
        end = time.monotonic() + 30
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                return
            except OSError:
                if self.process.poll() is not None or time.monotonic() > end:
                    sys.exit(f"service: {command[0]} does not serve")
                time.sleep(0.02)

    def end(self):
        self.process.terminate()
        self.process.wait()


class Service:
    def __init__(self, options):
        self.o = options
        self.runs = {}  # row -> list of results
        self.daemons = {}
        self.missing = {}

    def start(self):
        port = free_port()
        server = self.o.server or os.path.join(BUILD, "bin", "ttserver")
        self.keys = tempfile.TemporaryDirectory(prefix="abdada-keys-")
        subprocess.run([self.client(), "keygen", self.keys.name], stdout=subprocess.DEVNULL, check=True)
        self.daemons["shard"] = Daemon(server, "--listen", f"127.0.0.1:{port}", "--memory", self.o.memory, port=port)
        port = free_port()
        self.daemons["keys"] = Daemon(server, "--listen", f"127.0.0.1:{port}", "--memory", self.o.memory, "--keys",
                                      self.keys.name, port=port)
        if self.o.other:
            port = free_port()
            self.daemons["other"] = Daemon(self.o.other, "--listen", f"127.0.0.1:{port}", "--memory", self.o.memory,
                                           port=port)
        port, redis = free_port(), shutil.which("redis-server", path=PATH)
        if redis:
            self.daemons["redis"] = Daemon(redis, "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly",
                                           "no", "--maxmemory", "1gb", "--maxmemory-policy", "allkeys-random",
                                           port=port)
        else:
            self.missing["redis"] = "redis-server is not installed: make deps-bench"
        port, memcached = free_port(), shutil.which("memcached", path=PATH)
        if memcached:
            user = ["-u", "root"] if os.getuid() == 0 else []
            self.daemons["memcached"] = Daemon(memcached, *user, "-l", "127.0.0.1", "-p", port, "-U", "0", "-m",
                                               "1024", "-t", os.cpu_count(), port=port)
        else:
            self.missing["memcached"] = "memcached is not installed: make deps-bench"

    def client(self):
        return self.o.client or os.path.join(BUILD, "bin", "abdada")

    # ---- one run of a row ----

    def ttbench(self, *more, daemon="shard"):
        more += ("--keys", self.keys.name) if daemon == "keys" else ()
        return run(self.client(), "ttbench", "--servers", f"127.0.0.1:{self.daemons[daemon].port}", "--json", "--seconds",
                   self.o.seconds, *more)[0]

    def load(self, daemon, *more):
        result = run(os.path.join(BUILD, "bench", "peer_load"), "--port", self.daemons[daemon].port, "--seconds",
                     self.o.seconds, "--batch", self.o.batch, "--window", self.o.window, *more)[0]
        result["busy_per_s"] = result["busy"] / self.o.seconds
        return result

    def octets(self, daemon):
        """Bytes in and out of a Redis so far."""
        with socket.create_connection(("127.0.0.1", self.daemons[daemon].port), timeout=30) as s:
            s.sendall(b"INFO stats\r\n")
            file = s.makefile("rb")
            text = file.read(int(file.readline()[1:])).decode()
        figures = dict(line.split(":", 1) for line in text.split("\r\n") if ":" in line)
        return int(figures["total_net_input_bytes"]) + int(figures["total_net_output_bytes"])

    def redis_table(self):
        """What `--table redis://` does, by the code that workers use."""
        before = self.octets("redis")
        result = run(os.path.join(BUILD, "bench", "redis_load"), self.daemons["redis"].port, self.o.batch,
                     self.o.seconds, "ask, store")[0]
        result["bytes_per_s"] = (self.octets("redis") - before) / self.o.seconds
        return result

    def shard(self, *more, batch=None, daemon="shard"):
        result = self.ttbench("--batch", batch or self.o.batch, "--window", self.o.window, *more, daemon=daemon)
        result["busy_per_s"] = result["busy"] / result["seconds"]
        return result

    def sizes(self):
        """Bytes of the messages of a batch: asks, answers, stores; from a short run."""
        if not hasattr(self, "seen"):
            both = self.shard("--pattern", "random")
            lone = self.ttbench("--batch", 1, "--window", 1, "--pattern", "random", "--mix", "1000:1")
            self.seen = {"ask": both["bytes_per_ask_message"], "answer": both["bytes_per_message_in"],
                         "store": both["bytes_per_store_message"],
                         "lone_ask": lone["bytes_per_ask_message"], "lone_answer": lone["bytes_per_message_in"]}
            self.seen = {name: max(1, round(value)) for name, value in self.seen.items()}
        return self.seen

    def echo(self, kind, lone=False):
        s, echo = self.sizes(), os.path.join(BUILD, "bench", "echo")
        if lone:
            return run(echo, "--kind", kind, "--ask", s["lone_ask"], "--answer", s["lone_answer"], "--seconds",
                       self.o.seconds)[0]
        result = run(echo, "--kind", kind, "--ask", s["ask"], "--answer", s["answer"], "--store", s["store"],
                     "--window", self.o.window, "--seconds", self.o.seconds)[0]
        result["ops_per_s"] = 2 * self.o.batch * result["rounds_per_s"]
        return result

    def core(self):
        return run(os.path.join(BUILD, "bench", "core_alone"), "--repeats", 1, "--batch", self.o.batch)[0]

    def table(self):
        return run(os.path.join(BUILD, "bench", "table_alone"), "--repeats", 1, "--batch", self.o.batch)[0]

    ROWS = {
        "random": ("a shard, random keys", "shard", lambda s: s.shard("--pattern", "random")),
        "curve": ("a shard with CURVE keys, random keys", "keys",
                  lambda s: s.shard("--pattern", "random", daemon="keys")),
        "other": ("another ttserver (--other), random keys", "other",
                  lambda s: s.shard("--pattern", "random", daemon="other")),
        "chess": ("a shard, recorded chess search", "shard", lambda s: s.shard()),
        "chess2": ("the same, 2 clients", "shard", lambda s: s.shard("--clients", 2)),
        "full": ("a shard, random keys, 1,024 a message", "shard",
                 lambda s: s.shard("--pattern", "random", batch=1024)),
        "redis": ("Redis as the table (--table)", "redis", lambda s: s.redis_table()),
        "script": ("Redis, atomic script, an operation a call", "redis", lambda s: s.load("redis", "--job", "script")),
        "calls": ("Redis, the same, a batch a call", "redis",
                  lambda s: s.load("redis", "--job", "script", "--call", s.o.batch)),
        "getset": ("Redis, plain GET and SET", "redis", lambda s: s.load("redis", "--job", "getset")),
        "multiget": ("memcached, multi-get alone, 2 clients", "memcached",
                     lambda s: s.load("memcached", "--job", "multiget", "--clients", 2)),
        "mixed": ("memcached, multi-get and set", "memcached", lambda s: s.load("memcached", "--job", "mixed")),
        "zmq": ("limit: the same bytes, bare ZeroMQ echo", "shard", lambda s: s.echo("zmq")),
        "tcp": ("limit: the same bytes, bare TCP echo", "shard", lambda s: s.echo("tcp")),
        "lone": ("a lone ask", "shard",
                 lambda s: s.ttbench("--batch", 1, "--window", 1, "--mix", "1:0", "--pattern", "random")),
        "lone_curve": ("a lone ask, with CURVE keys", "keys",
                       lambda s: s.ttbench("--batch", 1, "--window", 1, "--mix", "1:0", "--pattern", "random",
                                           daemon="keys")),
        "lone_other": ("a lone ask, another ttserver", "other",
                       lambda s: s.ttbench("--batch", 1, "--window", 1, "--mix", "1:0", "--pattern", "random",
                                           daemon="other")),
        "lone_zmq": ("the same sizes, bare ZeroMQ echo", "shard", lambda s: s.echo("zmq", lone=True)),
        "lone_tcp": ("the same sizes, bare TCP echo", "shard", lambda s: s.echo("tcp", lone=True)),
        "core": ("a shard without sockets", None, lambda s: s.core()),
        "table": ("the table alone, one thread, 1 GiB", None, lambda s: s.table()),
    }

    def measure(self):
        names = [name for name in self.o.only.split(",") if name != "other" or self.o.other]
        for name in names:
            if name not in self.ROWS:
                sys.exit(f"service: no row '{name}': {', '.join(self.ROWS)}")
        self.sizes()
        for _ in range(self.o.repeats):
            for name in names:
                _, needs, measure = self.ROWS[name]
                if needs is None or needs in self.daemons:
                    self.runs.setdefault(name, []).append(measure(self))

    # ---- the report ----

    def median(self, name, field):
        return statistics.median(r[field] for r in self.runs[name])

    def ratio(self, a, b, field, field_b=None):
        """Run by run, as "median (lowest-highest)"."""
        if a not in self.runs or b not in self.runs:
            return None, "not measured"
        values = sorted(x[field] / y[field_b or field] for x, y in zip(self.runs[a], self.runs[b]))
        middle = statistics.median(values)
        return middle, f"{middle:.2f} ({values[0]:.2f}-{values[-1]:.2f})"

    def throughput(self):
        print(f"\n{'operations a second':<44} {'median':>12} {'random/this':>20} {'p50 us':>8} {'p99 us':>8} "
              f"{'BUSY/s':>9} {'messages/s':>10} {'MB/s':>7} {'waits':>6} errors")
        for name, (text, needs, _) in self.ROWS.items():
            if name.startswith("lone") or name in ("table", "core"):
                continue
            if name not in self.runs:
                if needs in self.missing and name in self.o.only.split(","):
                    print(f"{text:<44} {self.missing[needs]}")
                continue
            runs = self.runs[name]
            waits = f"{self.median(name, 'waiting_percent'):.0f}%" if "waiting_percent" in runs[0] else "-"
            print(f"{text:<44} {self.median(name, 'ops_per_s'):>12,.0f} {self.ratio('random', name, 'ops_per_s')[1]:>20} "
                  f"{self.median(name, 'p50_us'):>8.0f} {self.median(name, 'p99_us'):>8.0f} "
                  f"{statistics.median(r.get('busy_per_s', 0) for r in runs):>9,.0f} "
                  f"{self.median(name, 'messages_per_s'):>10,.0f} {self.median(name, 'bytes_per_s') / 1e6:>7.1f} "
                  f"{waits:>6} {sum(r.get('errors', 0) for r in runs)}")

    def latency(self):
        if not any(name.startswith("lone") for name in self.runs):
            return
        print(f"\n{'one message there and back':<44} {'p50 us':>12} {'p90 us':>8} {'p99 us':>8} {'messages/s':>10} "
              f"{'MB/s':>7}")
        for name in ("lone", "lone_curve", "lone_other", "lone_zmq", "lone_tcp"):
            if name in self.runs:
                print(f"{self.ROWS[name][0]:<44} {self.median(name, 'p50_us'):>12.1f} "
                      f"{self.median(name, 'p90_us'):>8.1f} {self.median(name, 'p99_us'):>8.1f} "
                      f"{self.median(name, 'messages_per_s'):>10,.0f} {self.median(name, 'bytes_per_s') / 1e6:>7.2f}")

    def table_alone(self):
        if "table" not in self.runs:
            return
        print(f"\n{'the table alone, one thread, 1 GiB':<44} {'a second':>12} {'of the bare loop':>20}")
        for field, text in (("bare_per_s", "bare loop: random 64-byte reads, prefetched"),
                            ("results_ops_per_s", "ask and store, results only"),
                            ("ops_per_s", "ask and store, in-flight sets kept"),
                            ("asks_per_s", "asks, and their sessions' ends")):
            print(f"{text:<44} {self.median('table', field):>12,.0f} "
                  f"{self.ratio('table', 'table', field, 'bare_per_s')[1]:>20}")

    def core_alone(self):
        if "core" in self.runs:
            print(f"\na shard without sockets, one thread: {self.median('core', 'step_ns'):.1f} ns an operation, of "
                  f"messages of {self.o.batch}; a client's codec: {self.median('core', 'encode_ns'):.1f} ns to write "
                  f"one, {self.median('core', 'decode_ns'):.1f} ns to read one")

    def targets(self):
        rows = []
        if "random" in self.runs:
            best = max(self.median(name, "ops_per_s") for name in ("random", "full") if name in self.runs)
            rows.append(("operations a second from one shard", best, f"{best:,.0f}", 5e6, 1e7, True))
        for text, (value, shown), want, hoped, more in (
                ("times Redis's atomic script", self.ratio("random", "script", "ops_per_s"), 25, 50, True),
                ("times the same, a batch a call", self.ratio("random", "calls", "ops_per_s"), 25, 50, True),
                ("Redis as the table to the same, a batch a call", self.ratio("redis", "calls", "ops_per_s"), 1, 1, True),
                ("times memcached's multi-get", self.ratio("random", "multiget", "ops_per_s"), 3, 5, True),
                ("of a bare loop: results and in-flight sets",
                 self.ratio("table", "table", "ops_per_s", "bare_per_s"), 0.5, 0.5, True),
                ("of a bare loop: results only",
                 self.ratio("table", "table", "results_ops_per_s", "bare_per_s"), 0.5, 0.5, True),
                ("times a ZeroMQ echo's p50, a lone ask", self.ratio("lone", "lone_zmq", "p50_us"), 1.3, 1.3, False),
                ("times its p99", self.ratio("lone", "lone_zmq", "p99_us"), 2, 2, False)):
            rows.append((text, value, shown, want, hoped, more))
        print(f"\n{'wanted':<44} {'measured':>24} {'wanted':>12} {'hoped for':>12}")
        for text, value, shown, want, hoped, more in rows:
            if value is not None:
                met = value >= want if more else value <= want
                print(f"{text:<44} {shown:>24} {want:>12,g} {hoped:>12,g}  {'met' if met else 'MISSED'}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="of one run of one row (1)")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--window", type=int, default=16)
    parser.add_argument("--memory", default="1G", help="of the shard (1G)")
    parser.add_argument("--only", default=",".join(Service.ROWS))
    parser.add_argument("--server", help="a ttserver (that of build/release)")
    parser.add_argument("--client", help="an abdada (that of build/release)")
    parser.add_argument("--other", help="another ttserver to compare with, row by row")
    parser.add_argument("--json", help="all runs to this file")
    options = parser.parse_args()
    service = Service(options)
    service.start()
    print(f"{options.repeats} runs of each in turn, {options.seconds:g} s, batches of {options.batch}, {options.window} on "
          f"the way, {os.cpu_count()} CPUs; load average {os.getloadavg()[0]:.2f}", flush=True)
    try:
        service.measure()
    finally:
        for daemon in service.daemons.values():
            daemon.end()
    service.throughput()
    service.latency()
    service.table_alone()
    service.core_alone()
    service.targets()
    if options.json:
        with open(options.json, "w", encoding="utf-8") as out:
            json.dump(service.runs, out)


if __name__ == "__main__":
    main()
