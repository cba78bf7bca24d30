#!/usr/bin/python3
"""abdada ttbench against real shards. TAP.

    BIN=build/dev/bin QUICK=1 tests/system/test_ttbench.py
"""
import json
import signal
import sys
import time

from cluster import STARVED, QUICK, SHORT, Cluster, Process, check, equal, free_port, main, promised, run, wait_until

PATIENCE_S = 180  # a search is recorded first: half a minute with tsan on a busy machine
PROMISED = ["ops_per_s", "asks_per_s", "p50_us", "p99_us", "errors"]
MORE = ["p90_us", "max_us", "stores_per_s", "releases_per_s", "messages_per_s", "bytes_per_s", "waiting_percent",
        "busy", "cuts", "opens", "asks", "stores", "releases", "lost", "refused", "malformed", "unsent"]
COUNTED = ["asks", "stores", "releases", "busy", "cuts", "opens"]


def bench(servers, *options, status=0):
    done = run("abdada", "ttbench", "--servers", servers, "--json", *options, timeout=PATIENCE_S)
    equal(done.status, status, done.tail())
    check(len(done.lines["out"]) == 1, "one object, nothing else:", done.out())
    return json.loads(done.out())


def agrees(result, before, after, where=""):
    """What the client counted is what the shards counted."""
    for name in COUNTED:
        counted = sum(a[name] - b[name] for a, b in zip(after, before))
        equal(counted, result[name], name, where, result)
    equal(sum(a["inflight_entries"] for a in after), 0, "in-flight entries are left", where)


def wrong_use_is_one_line():
    here = ["--servers", "127.0.0.1:1"]
    for options in ([], ["--servers"], ["--servers", "nowhere"], ["--servers", "127.0.0.1:0"],
                    [*here, "--clients", "0"], [*here, "--clients", "many"], [*here, "--batch", "0"],
                    [*here, "--batch", "1025"], [*here, "--window", "0"], [*here, "--window", "257"],
                    [*here, "--seconds", "0"], [*here, "--seconds", "-1"], [*here, "--seconds", "nan"],
                    [*here, "--seconds", "1e9"], [*here, "--mix", "1"], [*here, "--mix", "0:1"],
                    [*here, "--mix", "1:x"], [*here, "--mix", "1:2:3"], [*here, "--mix", "1:1001"],
                    [*here, "--mix", ":1"], [*here, "--pattern", "go"], [*here, "--nonsense"], [*here, "operand"]):
        done = run("abdada", "ttbench", *options)
        check(done.status == 2 and done.out() == "" and len(done.lines["err"]) == 1, options, done.status, done.tail())
    done = run("abdada", "ttbench", "--help")
    check(done.status == 0 and all(f"--{name}" in done.out() for name in
                                   ("servers", "clients", "batch", "window", "seconds", "mix", "pattern", "json")),
          done.tail())


def a_shard_that_is_not_there_is_one_line():
    port = free_port()
    done = run("abdada", "ttbench", "--servers", f"127.0.0.1:{port}", "--seconds", "1", "--pattern", "random")
    check(done.status == 1 and done.out() == "" and len(done.lines["err"]) == 1, done.tail())
    check(f"127.0.0.1:{port}" in done.err() and "no answer" in done.err(), done.err())


def json_has_the_promised_fields_and_agrees_with_the_shard():
    with Cluster(shards=1, workers=0) as c:
        rows = [["--pattern", "random"], ["--pattern", "random", "--mix", "3:1"], ["--pattern", "chess", "--mix", "2:3"],
                ["--batch", "1", "--window", "1", "--pattern", "random"],
                ["--pattern", "chess"], ["--pattern", "random", "--mix", "1:0"],
                ["--batch", "1024", "--window", "3", "--clients", "3"]]
        for options in rows[:4] if SHORT else rows:
            before = [s.stats() for s in c.shards]
            result = bench(c.servers, "--seconds", "0.3", *options)
            after = [s.stats() for s in c.shards]
            for name in PROMISED + MORE:
                check(name in result, name, result)
            agrees(result, before, after, options)
            check(result["opens"] <= result["stores"] + result["releases"], "a node is left, or has a result:", result)
            equal((result["errors"], result["shard_asks"]), (0, result["asks"]), options)
            check(result["asks"] > 0 and 0 < result["p50_us"] <= result["p90_us"] <= result["p99_us"] <=
                  result["max_us"], options, result)
            rate = result["asks"] / result["seconds"]
            check(abs(result["asks_per_s"] - rate) < 1e-6 * rate + 1, result)
            if "--mix" in options:
                asks, stores = map(int, options[-1].split(":"))
                check(abs(result["asks"] * stores - result["stores"] * asks) <= asks * result["clients"], result)


def random_keys_are_new_and_a_search_meets_itself():
    with Cluster(shards=1, workers=0) as c:
        alone = bench(c.servers, "--seconds", "0.3", "--pattern", "random")
        equal((alone["opens"], alone["cuts"], alone["busy"]), (alone["asks"], 0, 0))
        for seconds in (0.5, 2, 8):  # whether they meet is the scheduler's
            search = bench(c.servers, "--seconds", seconds, "--pattern", "chess", "--clients", "2")
            if search["busy"] > 0:
                break
        check(search["cuts"] > 0 and search["busy"] > 0 and search["opens"] > 0, search)


def several_shards_share_the_keys():
    with Cluster(shards=3, workers=0) as c:
        for seconds in (0.5, 2, 8):  # a busy machine asks less
            before = [s.stats() for s in c.shards]
            result = bench(c.servers, "--seconds", seconds, "--pattern", "random", "--clients", "2", "--batch", "32")
            after = [s.stats() for s in c.shards]
            agrees(result, before, after)
            if result["asks"] > 1000:
                break
        check(result["asks"] > 1000, result)
        share = [(a["asks"] - b["asks"]) / result["asks"] for a, b in zip(after, before)]
        check(all(0.2 < part < 0.5 for part in share), "a third each:", share)


def the_text_says_the_same():
    with Cluster(shards=1, workers=0) as c:
        done = run("abdada", "ttbench", "--servers", c.servers, "--seconds", "0.2", "--pattern", "random")
        equal(done.status, 0, done.tail())
        for word in ("operations", "RetrieveAsk", "StoreHash", "p50", "p99", "BUSY", "messages/s", "errors",
                     "the shards"):
            check(word in done.out(), word, done.out())


def with_a_kill(shards):
    """(what it says of shards of which the last is killed in the first half of its time, how many asks came to the first)"""
    for seconds in 6, 40:  # statistics of a busy shard may take long
        with Cluster(shards=shards, workers=0) as c:
            begin = time.monotonic()
            process = Process("abdada", "ttbench", "--servers", c.servers, "--json", "--seconds", seconds, "--pattern", "random")
            wait_until(lambda c=c: all(shard.stats()["asks"] > 20000 for shard in c.shards), "more than is under way at once")
            c.shards[-1].kill()
            is_early = time.monotonic() - begin < seconds / 2
            status = process.wait()
            if is_early:
                result = json.loads(process.out())
                equal(status, 1 if result["errors"] > 0 else 0, process.tail())
                return result, c.shards[0].stats()["asks"] if shards > 1 else 0
    raise AssertionError("no shard could be killed in time")


def a_shard_that_dies_is_counted_as_errors():
    result, _ = with_a_kill(1)
    check(result["errors"] > 0 and result["asks"] > 0 and "shard_asks" not in result, result)


def a_shard_that_dies_leaves_its_keys_to_the_others():
    result, asks = with_a_kill(2)
    check(asks > 0.6 * result["asks"], "most are at the one left:", result)  # all answers may have come before


def sigint_ends_it_early_with_its_figures():
    with Cluster(shards=1, workers=0) as c:
        process = Process("abdada", "ttbench", "--servers", c.servers, "--json", "--seconds", "60", "--pattern", "random")
        wait_until(lambda: c.shards[0].stats()["asks"] > 1000, "load on the shard")
        begin = time.monotonic()
        equal(process.end(signal.SIGINT), 0, process.tail())
        promised("SIGINT ends it", time.monotonic() - begin, 1)
        equal(json.loads(process.out())["errors"], 0)


QUICK_TESTS = [
    wrong_use_is_one_line, a_shard_that_is_not_there_is_one_line,
    json_has_the_promised_fields_and_agrees_with_the_shard, several_shards_share_the_keys, the_text_says_the_same,
]
TESTS = QUICK_TESTS + [
    random_keys_are_new_and_a_search_meets_itself, a_shard_that_dies_is_counted_as_errors,
    a_shard_that_dies_leaves_its_keys_to_the_others, sigint_ends_it_early_with_its_figures,
]

if __name__ == "__main__":
    sys.exit(main(QUICK_TESTS if QUICK else TESTS, unstable=STARVED))
