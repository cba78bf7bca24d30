#!/usr/bin/python3
"""Metrics over HTTP, as Prometheus reads them: promtool's judgement of live output, the rules and the dashboard. TAP.

    BIN=build/dev/bin tests/system/test_metrics.py
"""
import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

from cluster import STARVED, PATIENT, ROOT, Process, Shard, check, equal, main, path_of, run, wait_until
from uci import Uci

DEPLOY = os.path.join(ROOT, "deploy/prometheus")
POSITION = "r1bq1rk1/pp2bppp/2n1pn2/2pp4/3P1B2/2PBPN2/PP1N1PPP/R2QK2R w KQ - 0 8"
# Names that PromQL has of its own in the rules and the dashboard.
WORDS = set("sum by instance rate increase max vector on and or count up ALERTS alertstate job ttserver".split())


def get(url, path):
    """(status, text)"""
    try:
        with urllib.request.urlopen(f"http://{url}{path}", timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def where(process):
    return process.wait_line(r"metrics at http://(\S+)/metrics", "err")[0][1]


def promtool(*words, given=None):
    done = subprocess.run(["promtool", *words], input=given, cwd=ROOT, capture_output=True, text=True, check=False)
    check(done.returncode == 0, "promtool", words, done.stdout, done.stderr)
    equal(re.findall(".*(?:error|lint|should|no help).*", done.stdout + done.stderr), [])


def samples(text):
    """{name: sum over its labels}"""
    found = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            name, value = re.match(r"(\w+)(?:\{.*\})? (\S+)$", line).groups()
            found[name] = found.get(name, 0) + float(value)
    return found


class Watched:
    """A shard, a worker and a front-end that search, each with metrics."""

    def __init__(self):
        self.shard = Shard(0, "--metrics", "127.0.0.1:0")
        self.worker = Process("ttworker", "--servers", self.shard.address, "--threads", 2, "--metrics", "localhost:0")
        self.worker.wait_line("^ready")
        self.front = Process("abdada", "analyse", "--servers", self.shard.address, "--time", 600000, "--metrics", "127.0.0.1:0",
                             POSITION)
        self.all = {"ttserver": where(self.shard), "ttworker": where(self.worker), "abdada": where(self.front)}

    def read(self, program):
        status, text = get(self.all[program], "/metrics")
        equal(status, 200)
        return samples(text)


def every_program_counts():
    w = Watched()
    wait_until(lambda: w.read("ttworker")["ttworker_busy_threads"] == 2, "both threads to search")
    wait_until(lambda: w.read("abdada")["abdada_workers"] == 2, "the front-end to know of it")
    wait_until(lambda: w.read("ttserver")["ttserver_jobs"] == 1, "the shard to know of it")
    before = {program: w.read(program) for program in w.all}
    for program, name in (("ttserver", "asks"), ("ttworker", "nodes"), ("abdada", "nodes"), ("ttserver", "stores"),
                          ("ttworker", "bytes_sent"), ("ttworker", "bytes_received"), ("abdada", "bytes_sent")):
        name = f"{program}_{name}_total"
        wait_until(lambda program=program, name=name: w.read(program)[name] > before[program][name], name)
    check("ttworker_abandoned_nodes_total" in before["ttworker"], before["ttworker"].keys())
    for program, url in w.all.items():
        status, text = get(url, "/healthz")
        equal(status, 200, text)
        now = w.read(program)
        for name, value in before[program].items():
            check(not name.endswith("_total") or now[name] >= value, name, "went down", value, now[name])
        check(now["process_resident_memory_bytes"] > 1 << 20 and now["process_cpu_seconds_total"] > 0)
        for path in "/", "/nosuch":
            equal(get(url, path), (404, "not found; there is /metrics, /healthz\n"))
    # Every figure of STATS is there, in base units.
    row = json.loads(run("abdada", "top", "--once", "--json", "--servers", w.shard.address, *PATIENT).lines["out"][0])
    names = {re.sub("_ms$", "_seconds", re.sub("_permille$", "_ratio", name)) for name, value in row.items()
             if isinstance(value, int) and name not in ("rtt_us",)}
    names -= {"ops_per_s", "asks_per_s", "messages_per_s"}
    lacking = [name for name in names if not {f"ttserver_{name}", f"ttserver_{name}_total"} & set(now_of(w, "ttserver"))]
    equal(lacking, [])
    w.front.kill()
    wait_until(lambda: w.read("ttworker")["ttworker_busy_threads"] == 0, "idle threads")
    done = w.read("ttworker")
    check(done["ttworker_nodes_total"] >= before["ttworker"]["ttworker_nodes_total"], "a search that ended is forgotten")
    check(done["ttworker_searches_total"] >= 2, "two threads searched, and again where a front-end was silent for long", done)
    w.shard.kill()
    wait_until(lambda: w.read("ttworker")["ttworker_shards_up"] == 0, "no shard")
    equal(w.worker.end(), 0)


def now_of(watched, program):
    return watched.read(program)


def promtool_finds_no_fault():
    if not shutil.which("promtool"):
        return "no promtool here"
    w = Watched()
    for url in w.all.values():
        promtool("check", "metrics", given=get(url, "/metrics")[1])
    promtool("check", "rules", os.path.join(DEPLOY, "rules.yml"))
    promtool("test", "rules", os.path.join(ROOT, "tests/data/prometheus/rules_test.yml"))
    promtool("check", "config", "--syntax-only", os.path.join(DEPLOY, "prometheus.yml"))
    return None


def rules_and_dashboard_name_what_there_is():
    w = Watched()
    there = {name for program in w.all for name in w.read(program)}
    with open(os.path.join(DEPLOY, "rules.yml"), encoding="ascii") as file:
        rules = file.read()
    recorded = set(re.findall(r"record: (\S+)", rules))
    with open(os.path.join(DEPLOY, "grafana.json"), encoding="ascii") as file:
        panels = json.load(file)["panels"]
    expressions = [target["expr"] for panel in panels for target in panel["targets"]]
    expressions += re.findall(r"(?:ttserver|ttworker|abdada|process)_\w+", rules)
    check(len(panels) > 10 and recorded)
    for expression in expressions:
        plain = re.sub(r'"[^"]*"|\[\w+\]', "", expression)
        for name in re.findall(r"[a-zA-Z_][\w:]*", plain):
            check(name in there | recorded | WORDS, name, "is not there:", expression)


def a_shard_at_all_addresses_is_labelled_by_its_host():
    for listen, name in (("0.0.0.0:0", socket.gethostname()), ("*:0", socket.gethostname()), ("127.0.0.1:0", "127.0.0.1")):
        shard = Process("ttserver", "--listen", listen, "--insecure", "--memory", "8M", "--metrics", "127.0.0.1:0")
        port = shard.wait_line(r"^ready \S+:(\d+)")[0][1]
        equal(set(re.findall(r'shard="(.*?)"', get(where(shard), "/metrics")[1])), {f"{name}:{port}"})
        equal(shard.end(), 0)


def a_shard_with_long_heartbeats_is_healthy():
    shard = Shard(0, "--metrics", "127.0.0.1:0", heartbeat_ms=3600000)
    url, begin = where(shard), time.monotonic()
    wait_until(lambda: get(url, "/healthz")[0] == 200, "health")
    wait_until(lambda: time.monotonic() > begin + 7, "longer than figures are fresh")
    equal(get(url, "/healthz")[0], 200)


def who_reaches_the_metrics_cannot_take_the_shards_connections():
    shard = Shard(0, "--metrics", "127.0.0.1:0")
    host, _, port = where(shard).rpartition(":")
    before = len(os.listdir(f"/proc/{shard.popen.pid}/fd"))
    held = [socket.create_connection((host, int(port))) for _ in range(200)]
    for one in held:
        one.sendall(b"GET /metrics HTTP/1.1\r\n")
    check(len(os.listdir(f"/proc/{shard.popen.pid}/fd")) <= before + 20, "descriptors")
    equal(run("ttserver", "--check", shard.address).status, 0)
    for one in held:
        one.close()


def visitors_that_never_finish_their_request_keep_nobody_out():
    shard = Shard(0, "--metrics", "127.0.0.1:0")
    worker = Process("ttworker", "--servers", shard.address, "--private", "--hash", 8, "--metrics", "127.0.0.1:0")
    for program in shard, worker:
        host, _, port = where(program).rpartition(":")
        wait_until(lambda: get(f"{host}:{port}", "/healthz")[0] == 200, "a worker with its shard")
        held, over = [socket.create_connection((host, int(port))) for _ in range(40)], threading.Event()

        def go_on():
            data = b"GET / HTTP/1.1\r\nA: "
            while not over.wait(0.1):
                for one in held:
                    with contextlib.suppress(OSError):  # more than there may be
                        one.sendall(data)
                data = b"a"
        slowly = threading.Thread(target=go_on, daemon=True)
        slowly.start()
        try:
            for _ in range(20):
                equal(get(f"{host}:{port}", "/healthz")[0], 200)
        finally:
            over.set()
            slowly.join()
        for one in held:
            one.close()
        wait_until(lambda: get(f"{host}:{port}", "/metrics")[0] == 200, "figures")
    for program in worker, shard:
        equal(program.end(), 0, program.tail())


def uci_options_that_open_another_engine_keep_the_totals():
    uci, totals = Uci("--metrics", "127.0.0.1:0", "--threads", 1, "--hash", 8), {}
    seen = 0
    for option in None, ("Threads", 2), ("Hash", 16), ("Servers", "127.0.0.1:1"):
        if option:
            uci.say("setoption name {} value {}".format(*option))
        uci.ready()
        found, seen = uci.wait_line(r"metrics at http://(\S+)/metrics", "err", begin=seen)
        url = found[1]
        now = samples(get(url, "/metrics")[1])
        for name, value in totals.items():
            check(now[name] >= value, option, name, "fell from", value, "to", now[name])
        uci.say("go depth 7")
        uci.expect("^bestmove")
        totals = {name: value for name, value in samples(get(url, "/metrics")[1]).items() if name.endswith("_total")}
        check(totals["abdada_nodes_total"] > now["abdada_nodes_total"], totals)
        check(totals["abdada_searches_total"] > now["abdada_searches_total"], totals)
        equal(samples(get(url, "/metrics")[1])["abdada_shards_up"], 0)
    uci.quit()


def a_wrong_address_is_one_line():
    shard = Shard()
    for words, pattern in ((("ttserver", "--listen", "127.0.0.1:0", "--metrics", shard.address), "cannot listen"),
                           (("ttserver", "--listen", "127.0.0.1:0", "--metrics", "nosuch.invalid:1"), "unknown host"),
                           (("ttworker", "--servers", shard.address, "--metrics", shard.address), "cannot listen"),
                           (("abdada", "analyse", "--depth", 1, "--metrics", shard.address), "cannot listen")):
        done = run(*words)
        equal(done.status, 1, words)
        check(re.search(pattern, done.lines["err"][-1]), done.tail())
    equal(run("ttserver", "--metrics", "9000").status, 2)


if __name__ == "__main__":
    check(os.access(path_of("abdada"), os.X_OK), "no programs: set BIN")
    sys.exit(main([every_program_counts, promtool_finds_no_fault, rules_and_dashboard_name_what_there_is,
                   a_shard_at_all_addresses_is_labelled_by_its_host, a_shard_with_long_heartbeats_is_healthy,
                   who_reaches_the_metrics_cannot_take_the_shards_connections,
                   visitors_that_never_finish_their_request_keep_nobody_out,
                   uci_options_that_open_another_engine_keep_the_totals, a_wrong_address_is_one_line], unstable=STARVED))
