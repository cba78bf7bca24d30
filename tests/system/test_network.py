#!/usr/bin/python3
"""The programs on hosts of their own, with cables that are cut, slow or lossy. TAP.

    BIN=build/dev/bin QUICK=1 tests/system/test_network.py

Hosts are network namespaces (network.py). Where the machine allows none every test is skipped, with the reason.
"""
import functools
import json
import signal
import sys
import time

import network
from cluster import QUICK, Cluster, Failure, answers, ask, check, equal, main, needs, positions, wait_until

reason = network.why_not()  # before anything else: it moves this process into a namespace of its own
STRICT = ["--strict", "--select", "plain"]
LONG_S = 1.0
CUT_S = 13.2        # TCP alone tries again at 0.2, 0.6, 1.4, 3.0, 6.2, 12.6 and 25.4 s, so that after this cut
USED_AGAIN_S = 11   # a connection that waits for it is back after 12.2 s; 1.2 s is usual


needs_hosts = needs(lambda: reason)
needs_delay = needs(network.why_no_delay)


@functools.lru_cache(None)
def sequential(position, depth):
    found, = ask(position, "--depth", depth, "--algorithm", "sequential", *STRICT)
    return found


@functools.lru_cache(None)
def long_search(seconds=LONG_S):
    """(position, depth, score) of a sequential search that takes so long at least."""
    for depth in range(6, 20):
        for position in (positions()[1], positions()[15], positions()[10]):
            found = sequential(position, depth)
            if found["time_ms"] >= 1000 * seconds:
                return position, depth, found["score"]


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
    equal((found["depth"], found["score"], found["stopped"]), (*front.question, False))
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
        host.run("ip", "address", "del", f"{host.address}/24", "dev", "eth0")
        host.run("ip", "address", "add", f"{network.SUBNET}.250/24", "dev", "eth0")
        _, at = front.wait_line("shards [01]/2", "err", begin=seen)
        front.wait_line("shards 2/2", "err", begin=at)

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
        for _ in range(1 if QUICK else 3):
            ask_long(cluster)
        for host in everybody:
            host.unshape()
        wait_until(lambda: ask_long(cluster)["shards_up"] == 2, "both shards")


@needs_hosts
@needs_delay
def a_slow_link_does_not_move_the_strict_score():
    with hosts() as cluster:
        for delay_ms, jitter_ms in ((20, 10), (100, 0), (300, 0))[:2 if QUICK else 3]:
            cluster.shards[1].host.shape(delay_ms=delay_ms, jitter_ms=jitter_ms)
            found = ask_long(cluster)
            print(f"# {delay_ms} ms (+{jitter_ms}): {json.dumps({k: found[k] for k in ('time_ms', 'waited', 'shards_up', 'workers')})}")
        cluster.shards[1].host.unshape()
        wait_until(lambda: ask_long(cluster)["shards_up"] == 2, "both shards")


TESTS = [
    hosts_do_not_move_the_strict_score, a_workers_cable_is_cut, a_shards_cable_is_cut_in_mid_search,
    a_shard_cut_off_shortly_is_used_again, a_shard_cut_off_for_long_is_used_again,
    the_front_ends_address_changes_in_mid_search, the_front_ends_cable_is_cut, every_cable_is_cut, five_percent_of_all_packets_are_lost, a_slow_link_does_not_move_the_strict_score,
]
QUICK_TESTS = [a_workers_cable_is_cut, a_shards_cable_is_cut_in_mid_search]

if __name__ == "__main__":
    sys.exit(main(QUICK_TESTS if QUICK else TESTS))
