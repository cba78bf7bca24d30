#!/usr/bin/python3
"""The programs on hosts of their own, with cables that are cut, slow or lossy, names of their own, and little memory. TAP.

    BIN=build/dev/bin QUICK=1 tests/system/test_network.py

Hosts are network namespaces (network.py). Where the machine allows none every test is skipped, with the reason.
"""
import json
import os
import re
import shlex
import signal
import sys
import time

import client
import network
import redis_servers
from cluster import (HEARTBEAT_MS, QUICK, ROOT, SHORT, STARVED, STRICT, Cluster, Failure, Process, Shard, answers, check,
                     equal, long_search, main, needs, positions, promised, right, run, scratch, start, wait_until)
from uci import Talker

reason = network.why_not()  # before anything else: it moves this process into a namespace of its own
LONG_S = 0.5 if SHORT else 1.0
CUT_S = 13.2        # TCP alone tries again at 0.2, 0.6, 1.4, 3.0, 6.2, 12.6 and 25.4 s, so that after this cut
USED_AGAIN_S = 11   # a connection that waits for it is back after 12.2 s; 1.2 s is usual


needs_hosts = needs(lambda: reason)
needs_delay = needs(network.why_no_delay)


def hosts(**sizes):
    return Cluster(new_host=network.Host, **sizes)


def start_long(cluster, seconds=LONG_S):
    position, depth, score = long_search(seconds)
    front = cluster.start(position, "--depth", depth, *STRICT)
    front.question = depth, score
    return front


def begin_long(cluster):
    """A search that is seen to go on. One that ends before was timed on a machine that had more to do."""
    for times in (1, 2, 4, 8):
        front = start_long(cluster, times * LONG_S)
        try:
            cluster.wait_searching(front)
            return front
        except Failure:
            if front.running() or times == 8:
                raise
    return None


def end_long(front):
    found, = answers(front)
    right((found["depth"], found["score"], found["stopped"]), (*front.question, False))
    return found


def search_long_cut_off(cluster, cut, shards_up):
    """The strict answer of a search that is cut off; one beside it, without end, notices."""
    beside = cluster.start(positions()[1], "--depth", 60, *STRICT)
    cluster.wait_searching(beside)
    front, seen = begin_long(cluster), len(beside.lines["err"])
    cut()
    check(front.running())
    beside.wait_line(f"shards {shards_up}/2", "err", begin=seen)
    beside.send_signal(signal.SIGINT)
    answers(beside)
    end_long(front)


def ask_long(cluster):
    return end_long(start_long(cluster))


def count_workers(shard, number):
    wait_until(lambda: shard.stats()["workers"] == number, f"{number} workers at {shard.address}")


def count_everywhere(cluster, number):
    for shard in cluster.shards:
        count_workers(shard, number)


def used_again(shard, what):
    """Seconds until that shard is asked by a search that is going on."""
    begin, before = time.monotonic(), None
    while True:
        try:
            asks = shard.stats(timeout=2)["asks"]
            before = asks if before is None else before
            if asks > before:
                return time.monotonic() - begin
        except Exception:  # it cannot be reached yet
            pass
        check(time.monotonic() - begin < 30, what, "is not used again")


@needs_hosts
def hosts_do_not_move_the_strict_score():
    with hosts() as cluster:
        def all_take_part():
            found = ask_long(cluster)
            return (found["workers"], found["shards_up"]) == (2, 2)
        wait_until(all_take_part, "a search of all")


@needs_hosts
def a_workers_cable_is_cut():
    with hosts() as cluster:
        front = begin_long(cluster)
        cluster.workers[0].host.cut()
        check(front.running())
        end_long(front)
        for shard in cluster.shards:
            count_workers(shard, 1)
            wait_until(lambda: shard.stats()["inflight_entries"] == 0, "its in-flight entries to end")
        check(cluster.workers[0].running())
        cluster.workers[0].host.mend()
        begin = time.monotonic()
        count_everywhere(cluster, 2)
        print(f"# the worker is back at every shard after {time.monotonic() - begin:.2f} s")
        wait_until(lambda: ask_long(cluster)["workers"] == 2, "its help")


@needs_hosts
def a_shards_cable_is_cut_in_mid_search():
    with hosts() as cluster:
        search_long_cut_off(cluster, cluster.shards[1].host.cut, 1)
        cluster.shards[1].host.mend()
        count_everywhere(cluster, 2)
        wait_until(lambda: ask_long(cluster)["shards_up"] == 2, "both shards")


def cut_and_return(seconds):
    """A shard is cut off for so long while a search goes on, and used again by that search."""
    with hosts(heartbeat_ms=1000) as cluster:  # the default
        front = cluster.start(positions()[1], "--depth", 40, "--remote-depth", 3, *STRICT)
        cluster.wait_searching(front)
        shard = cluster.shards[1]
        shard.host.cut()
        begin = time.monotonic()
        wait_until(lambda: time.monotonic() - begin >= seconds, "time to pass", timeout=2 * seconds + 30)
        shard.host.mend()
        took = used_again(shard, f"a shard cut off for {seconds} s")
        print(f"# cut off for {seconds} s, asked again after {took:.2f} s")
        check(seconds < CUT_S or took < USED_AGAIN_S, took)
        count_workers(shard, 2)
        back = time.monotonic() - begin - seconds
        print(f"# both workers back there after {back:.2f} s")
        check(seconds < CUT_S or back < USED_AGAIN_S, back)
        front.send_signal(2)
        check(answers(front)[0]["depth"] >= 1)


@needs_hosts
def a_shard_cut_off_shortly_is_used_again():
    cut_and_return(1.0)


@needs_hosts
def a_shard_cut_off_for_long_is_used_again():
    cut_and_return(CUT_S)


@needs_hosts
def the_front_ends_cable_is_cut():
    with hosts() as cluster:
        search_long_cut_off(cluster, cluster.front_host.cut, 0)
        for shard in cluster.shards:
            wait_until(lambda: shard.stats()["jobs"] == 0, "the job to end")
        cluster.front_host.mend()
        wait_until(lambda: ask_long(cluster)["workers"] == 2, "help")


@needs_hosts
def the_front_ends_address_changes_in_mid_search():
    """Without keys it is another user then, until its earlier session has expired."""
    with hosts(heartbeat_ms=2000) as cluster:
        front = cluster.start(positions()[1], "--depth", 60, *STRICT)
        cluster.wait_searching(front)
        front.wait_line("workers 2  shards 2/2", "err")
        host, seen = cluster.front_host, len(front.lines["err"])

        def sessions():
            return [{m["session"] for m in shard.query(client.Client.members) if m["role"] == client.FRONT}
                    for shard in cluster.shards]
        earlier = sessions()
        host.run("ip", "address", "del", f"{host.address}/24", "dev", "eth0")
        host.run("ip", "address", "add", f"{network.SUBNET}.250/24", "dev", "eth0")
        wait_until(lambda: all(now and not now & before for now, before in zip(sessions(), earlier)),
                   "another session at each shard, and the earlier one to expire")

        def said(words):
            return sum(words in line for line in front.lines["err"][seen:])
        wait_until(lambda: said("refused the job") == said("has taken the job"), "all shards to take the job again")
        front.wait_line("workers 2  shards 2/2", "err", begin=len(front.lines["err"]))
        front.send_signal(signal.SIGINT)
        answers(front)
        print(f"# {said('refused the job')} shards refused it meanwhile")
        equal(said("refused the job"), said("an earlier session of this front-end"), front.err())
        equal(said("refused the job"), said("has taken the job"), front.err())


@needs_hosts
def every_cable_is_cut():
    with hosts() as cluster:
        def cut():
            for process in cluster.shards + cluster.workers:
                process.host.cut()
        search_long_cut_off(cluster, cut, 0)
        for process in cluster.shards + cluster.workers:
            process.host.mend()
        count_everywhere(cluster, 2)
        wait_until(lambda: ask_long(cluster)["shards_up"] == 2, "both shards")


@needs_hosts
@needs_delay
def five_percent_of_all_packets_are_lost():
    with hosts() as cluster:
        everybody = [p.host for p in cluster.shards + cluster.workers] + [cluster.front_host]
        for number, host in enumerate(everybody):
            host.shape(loss_percent=5, seed=number + 1)
        for _ in range(1 if SHORT else 3):
            ask_long(cluster)
        for host in everybody:
            host.unshape()
        wait_until(lambda: ask_long(cluster)["shards_up"] == 2, "both shards")


@needs_hosts
@needs_delay
def a_slow_link_does_not_move_the_strict_score():
    with hosts() as cluster:
        for delay_ms, jitter_ms in ((20, 10), (100, 0), (300, 0))[:2 if SHORT else 3]:
            cluster.shards[1].host.shape(delay_ms=delay_ms, jitter_ms=jitter_ms)
            found = ask_long(cluster)
            print(f"# {delay_ms} ms (+{jitter_ms}): {json.dumps({k: found[k] for k in ('time_ms', 'waited', 'shards_up', 'workers')})}")
        cluster.shards[1].host.unshape()
        wait_until(lambda: ask_long(cluster)["shards_up"] == 2, "both shards")


def names(host, text):
    """The names that this host knows; returns the file that says so."""
    path = os.path.join(scratch("names"), "hosts")
    rename(path, text)
    host.replace("/etc/hosts", path)
    return path


def rename(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def serve(host, address, *options):
    shard = Process("ttserver", "--listen", address, "--memory", "8M", "--heartbeat", HEARTBEAT_MS, *options, host=host)
    shard.wait_line(f"^ready {re.escape(address)}$")
    return shard


def status(host, program, *arguments):
    process = Process(program, *arguments, host=host)
    process.close_input()
    return process.wait()


@needs_hosts
def engines_of_others_outlive_cut_cables():
    def engine(*words):
        return shlex.join([sys.executable, os.path.join(ROOT, "tests/system/fake_engine.py"), *words])
    shard_host, worker_host, front_host = network.Host(), network.Host(), network.Host()
    shard = Shard(host=shard_host)
    worker = Process("ttworker", "--servers", shard.address, "--engine", engine("--line=d2d4", "--score=90"), host=worker_host)
    worker.wait_line("^ready$")
    front = Talker("uci", "--servers", shard.address, "--engine", engine(), host=front_host)
    front.say("isready")
    front.expect("^readyok$")

    def move():
        begin = time.monotonic()
        front.say("go movetime 200")
        found = front.expect(r"^bestmove (\S+)")[1]
        promised("a move", time.monotonic() - begin, 0.4)
        return found
    for host in worker_host, front_host, shard_host:
        wait_until(lambda: move() == "d2d4", "the worker's move")
        host.cut()
        wait_until(lambda: [move(), move()] == ["e2e4", "e2e4"], "moves without the worker")
        host.mend()
    wait_until(lambda: move() == "d2d4", "the worker's move")
    front.quit()
    equal(worker.end(), 0, worker.tail())


@needs_hosts
def every_address_of_a_name_is_tried():
    host = network.Host()
    names(host, "::1 localhost\n127.0.0.1 localhost\n")
    serve(host, "127.0.0.1:7400")
    serve(host, "[::1]:7401")
    both = serve(host, "localhost:7402", "--shards", 2)
    both.wait_line("^ready localhost:7403$")
    servers = ",".join(f"localhost:{port}" for port in range(7400, 7404))
    # A front-end waits for one shard: on a busy machine it may be done before it meets the others.
    wait_until(lambda: answers(start("--servers", servers, "--depth", 4, positions()[1], host=host))[0]["shards_up"] == 4,
               "all shards to be met")
    for address in [*servers.split(","), "127.0.0.1:7402", "[::1]:7402", "127.0.0.1:7403", "[::1]:7403"]:
        equal(status(host, "ttserver", "--check", address), 0, address)
    equal(status(host, "abdada", "ttbench", "--servers", servers, "--seconds", 0.1, "--pattern", "random"), 0)
    # What is not there yet when the name is resolved is found later, at whichever address.
    worker = Process("ttworker", "--servers", "localhost:7404", host=host)
    worker.wait_line("^ready$")
    serve(host, "127.0.0.1:7404")
    worker.wait_line("connected to localhost:7404; 1 of 1 shards up", "err")
    equal(worker.end(), 0, worker.tail())


@needs_hosts
def an_address_that_a_host_has_not_is_left_out():
    host = network.Host()
    names(host, "::1 localhost\n127.0.0.1 localhost\n")
    host.run("ip", "address", "del", "::1/128", "dev", "lo")
    serve(host, "localhost:7400")
    equal(status(host, "ttserver", "--check", "localhost:7400"), 0)


@needs_hosts
def a_name_that_moves_is_followed():
    host = network.Host()
    path = names(host, "127.0.0.1 shard.test\n")
    first = serve(host, "127.0.0.1:7400")
    worker = Process("ttworker", "--servers", "shard.test:7400", host=host)
    worker.wait_line("1 of 1 shards up", "err")
    first.kill()
    worker.wait_line("lost shard.test:7400", "err")
    serve(host, "127.0.0.2:7400")
    rename(path, "127.0.0.2 shard.test\n")
    worker.wait_line("connected to shard.test:7400; 1 of 1 shards up", "err")
    equal(worker.end(), 0, worker.tail())


@needs(lambda: reason or redis_servers.why_not())
def a_redis_that_is_demoted_is_left_for_the_one_of_its_name():
    host = network.Host()
    path = names(host, "127.0.0.1 primary.test\n")
    for address, *options in (("127.0.0.1",), ("127.0.0.2", "--replicaof", "127.0.0.1", "6379")):
        redis = Process(redis_servers.SERVER, "--bind", address, "--dir", scratch("redis"), "--save", "", *options, host=host)
        redis.wait_line("Ready to accept connections")

    def command(address, *words):
        process = Process(redis_servers.CLI, "-h", address, *words, host=host)
        equal(process.wait(), 0, process.tail())
        return process.out()

    def has_worker(address):
        """Both have the record of a worker; it is renewed where that is a number."""
        process = Process("abdada", "top", "--once", "--json", "--table", f"redis://{address}", host=host)
        process.wait()
        return any(json.loads(line)["kind"] == "worker" for line in process.lines["out"])

    wait_until(lambda: "master_link_status:up" in command("127.0.0.2", "INFO", "replication"), "the replica")
    worker = Process("ttworker", "--table", "redis://primary.test", host=host)
    worker.wait_line("1 of 1 shards up", "err")
    command("127.0.0.2", "REPLICAOF", "NO", "ONE")
    command("127.0.0.1", "REPLICAOF", "127.0.0.2", "6379")
    worker.wait_line("primary.test:6379: this is a replica: name its master", "err")
    command("127.0.0.2", "FLUSHALL")
    rename(path, "127.0.0.2 primary.test\n")
    wait_until(lambda: has_worker("127.0.0.2"), "the worker at the new master")
    # Of several addresses the one of the master is used.
    rename(path, "127.0.0.1 primary.test\n127.0.0.2 primary.test\n")
    wait_until(lambda: [(found["shards_up"], found["workers"]) for found in answers(
        start("--table", "redis://primary.test", "--time", 2000, positions()[1], host=host))] == [(1, 1)], "a search with the worker")
    equal(worker.end(), 0, worker.tail())


@needs_hosts
def more_memory_than_a_container_has_is_refused():
    host = network.Host()
    host.run("mount", "-t", "tmpfs", "none", "/sys/fs/cgroup")
    host.run("sh", "-c", f"cd /sys/fs/cgroup && mkdir memory && echo {192 << 20} | tee memory.max memory/memory.limit_in_bytes")
    server = ("ttserver", "--listen", "127.0.0.1:7400", "--memory")
    front, worker = ("abdada", "analyse", "--depth", 1, "startpos", "--hash"), ("ttworker", "--servers", "127.0.0.1:7400", "--hash")
    for words in (server, front, worker):
        process = Process(*words, "192" if words != server else "192M", host=host)
        equal(process.wait(), 1)
        check(re.search("192 MiB.* and the .* MiB that the program takes besides exceed the 192 MiB that this cgroup", process.err()),
              process.tail())
        equal(len(process.lines["err"]), 1, process.tail())
    Process(*server, "48M", host=host).wait_line("^ready")
    equal(status(host, *front, 48), 0)
    Process(*worker, 48, host=host).wait_line("^ready")


def is_handled(process, number):
    with open(f"/proc/{process.popen.pid}/status", encoding="ascii") as file:
        caught, = (line.split()[1] for line in file if line.startswith("SigCgt:"))
    return int(caught, 16) >> (number - 1) & 1


SILENT_RESOLVER = """
import socket, time
asked = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
asked.bind(("127.0.0.1", 53))
print("ready", flush=True)
while True:
    time.sleep(60)
"""


@needs_hosts
def a_resolver_that_never_answers_keeps_no_program():
    host = network.Host()
    path = os.path.join(scratch("resolver"), "resolv.conf")
    rename(path, "nameserver 127.0.0.1\noptions timeout:30 attempts:5\n")
    host.replace("/etc/resolv.conf", path)
    Process(sys.executable, "-c", SILENT_RESOLVER, host=host).wait_line("^ready$")
    shard, unknown = serve(host, "127.0.0.1:7400"), "its name is still being resolved"
    servers = "127.0.0.1:7400,nosuch.example:7400"

    def ends(limit, process, *signals):
        begin = time.monotonic()
        process.close_input()
        for number in signals:
            process.send_signal(number)
        process.wait()
        promised(f"{process.name} ends", time.monotonic() - begin, limit)
        return process

    def searched():
        front = ends(2, start("--servers", servers, "--time", 1000, positions()[1], host=host))
        check(unknown in front.err()) # at its end: the name was not slow by then
        return [json.loads(line)["shards_up"] for line in front.lines["out"]] == [1]
    wait_until(searched, "a search with the one that has an address")
    check(unknown in ends(3, Process("ttserver", "--check", "nosuch.example:7400", host=host)).err())
    check("shard nosuch.example:7400 is down: " + unknown in ends(3, Process("abdada", "top", "--once", "--servers", servers, host=host)).err())
    check(unknown in ends(3, Process("abdada", "ttbench", "--servers", servers, "--pattern", "random", host=host)).err())
    uci = Process("abdada", "uci", "--servers", servers, host=host)
    uci.send("isready")
    uci.wait_line("^readyok")
    uci.send("quit")
    ends(1, uci)
    for place in (["--servers", servers], ["--table", "redis://nosuch.example"]):
        worker = Process("ttworker", *place, host=host)
        worker.wait_line("^ready$")
        worker.wait_line(unknown, "err")
        ends(1, worker, signal.SIGTERM)
    ends(1, shard, signal.SIGTERM)
    for words in (("ttworker", "--servers", "127.0.0.1:7400", "--metrics"),
                  ("abdada", "analyse", "--depth", 60, "startpos", "--metrics"),
                  ("abdada", "top", "--servers", "127.0.0.1:7400", "--web")):
        process = Process(*words, "nosuch.example:7490", host=host)
        wait_until(lambda: is_handled(process, signal.SIGTERM), "its handler of signals")
        ends(1, process, signal.SIGTERM)


def connections_begun(host):
    with open(f"/proc/{host.keeper.pid}/net/snmp", encoding="ascii") as file:
        names, values = [line.split() for line in file if line.startswith("Tcp:")]
    return int(values[names.index("ActiveOpens")])


def workers_at(host, address, *options):
    top = Process("abdada", "top", "--once", "--json", "--servers", address, *options, host=host)
    top.close_input()
    top.wait()
    return json.loads(top.lines["out"][0]).get("workers") if top.lines["out"] else None


@needs_hosts
def a_client_meets_no_self_where_its_shard_is_down():
    """The shard's port is one of few that the kernel may choose for a connection: TCP can connect to itself there."""
    host, address = network.Host(), "127.0.0.1:40010"
    host.run("sh", "-c", "echo 40000 40015 >/proc/sys/net/ipv4/ip_local_port_range")
    ring = os.path.join(scratch("ring"), "keys")
    equal(run("abdada", "keygen", ring).status, 0)
    for keys in [], ["--keys", ring]:
        worker = Process("ttworker", "--servers", address, "--threads", 6, "--hash", 8, *keys, host=host)
        worker.wait_line("^ready$")
        for _ in range(2):  # before the shard was there, and after it was killed
            begun = connections_begun(host)
            wait_until(lambda: connections_begun(host) >= begun + 32, "32 connections that nobody takes")
            shard = serve(host, address, *keys)
            wait_until(lambda: workers_at(host, address, *keys) == 6, "6 workers")
            shard.kill()
        check("refused" not in worker.err(), worker.err())
        equal(worker.end(), 0)


TESTS = [
    hosts_do_not_move_the_strict_score, a_workers_cable_is_cut, a_shards_cable_is_cut_in_mid_search,
    a_shard_cut_off_shortly_is_used_again, a_shard_cut_off_for_long_is_used_again, the_front_ends_address_changes_in_mid_search,
    the_front_ends_cable_is_cut,
    every_cable_is_cut, engines_of_others_outlive_cut_cables, five_percent_of_all_packets_are_lost, a_slow_link_does_not_move_the_strict_score,
    every_address_of_a_name_is_tried, an_address_that_a_host_has_not_is_left_out, a_name_that_moves_is_followed,
    a_redis_that_is_demoted_is_left_for_the_one_of_its_name, a_resolver_that_never_answers_keeps_no_program,
    more_memory_than_a_container_has_is_refused, a_client_meets_no_self_where_its_shard_is_down,
]
QUICK_TESTS = [
    a_workers_cable_is_cut, a_shards_cable_is_cut_in_mid_search, every_address_of_a_name_is_tried,
    an_address_that_a_host_has_not_is_left_out, a_name_that_moves_is_followed,
    a_redis_that_is_demoted_is_left_for_the_one_of_its_name, a_resolver_that_never_answers_keeps_no_program,
    more_memory_than_a_container_has_is_refused, a_client_meets_no_self_where_its_shard_is_down,
]

if __name__ == "__main__":
    sys.exit(main(QUICK_TESTS if QUICK else TESTS, unstable=STARVED))
