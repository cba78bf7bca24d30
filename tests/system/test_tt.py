#!/usr/bin/python3
"""`abdada tt` against real shards: every command, what it prints, what it refuses. TAP.

    BIN=build/dev/bin tests/system/test_tt.py
"""
import json
import os
import random
import signal
import sys
import tempfile
import threading

import msgpack
import zmq

import client
import redis_servers
from client import BESIDE, EXACT, LOWER, UNKNOWN_HIGH, UNKNOWN_LOW, UPPER, Client
from cluster import PATIENT, SLOW_HEARTBEAT_MS, STARVED, Process, Shard, ask, at, check, equal, free_port, main, run, wait_until

KEY = "0123456789abcdef"
E2E4 = 12 | 28 << 6  # from | to << 6, without the kind of move
AFTER_E4 = "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1"


def tt(place, *arguments):
    """A process of `abdada tt` that has ended; a shard of a busy machine gets more than two seconds for its first answer."""
    return run("abdada", "tt", *arguments, *at(place), *(() if "--wait" in arguments else PATIENT))


def rows(process):
    """Its JSON objects; it must have succeeded and printed nothing else."""
    equal(process.status, 0, process.tail())
    return [json.loads(line) for line in process.lines["out"]]


def one(servers, *arguments):
    found = rows(tt(servers, *arguments, "--json"))
    equal(len(found), 1)
    return found[0]


def names(shards):
    return ",".join(shard.address for shard in shards)


def what_is_stored_is_asked_and_peeked_at():
    shard = Shard(memory="8M")
    place = shard.address
    peeked = one(place, "peek", "startpos")
    key = peeked["key"]
    equal(peeked, {"command": "peek", "key": key, "shard": place, "depth": 0, "known": False, "entry_depth": 0,
                   "lower": UNKNOWN_LOW, "upper": UNKNOWN_HIGH, "move": 0, "move_text": "none", "nproc": 0})
    stored = one(place, "store", "startpos", "--depth", 5, "--score", 31, "--bound", "lower", "--move", "e2e4")
    equal(stored["move"] & 4095, E2E4)
    equal((stored["key"], stored["lower"], stored["upper"], stored["entry_depth"], stored["move_text"]),
          (key, 31, UNKNOWN_HIGH, 5, "e2e4"))
    equal(shard.query(lambda c: c.peek(int(key, 16), 5)), (31, UNKNOWN_HIGH, 5, stored["move"], 0))
    cut = one(place, "ask", "startpos", "--depth", 5, "--alpha", -100, "--beta", 20)
    equal(cut, {"command": "ask", "key": key, "shard": place, "depth": 5, "verdict": "cut", "score": 31,
                "move": stored["move"], "move_text": "e2e4", "nproc": 0})
    opened = one(place, "ask", "startpos", "--depth", 5, "--alpha=-100", "--beta=+200")
    equal([opened[name] for name in ("verdict", "alpha", "beta", "nproc")], ["open", 31, 200, 1])
    equal(one(place, "ask", "startpos", "--depth", 6)["alpha"], UNKNOWN_LOW)
    equal(one(place, "store", "startpos", "--depth", 5, "--score", -7, "--bound", "exact")["lower"], -7)
    text = tt(place, "peek", "startpos")
    equal((text.status, text.out()), (0, "depth 5, exact -7 (-0.07), move none, 0 searchers in it at depth 5"))  # e2e4 was worth 31
    equal(one(place, "release", "startpos", "--depth", 5)["nproc"], 0)
    equal(tt(place, "ask", "startpos", "--depth", 4).out(),
          "cut: the score is known well enough: -7 (-0.07), move none, 0 searchers in it at depth 4")
    equal(shard.end(), 0)


def a_key_is_as_good_as_a_position():
    shard = Shard(memory="8M")
    place = shard.address
    equal(one(place, "store", "--key", KEY, "--depth", 250, "--score", -32767, "--bound", "upper", "--move", 1804)["move"],
          1804)
    found = one(place, "peek", "--key", KEY.upper())
    equal((found["key"], found["known"], found["upper"], found["depth"], found["move_text"]),
          (KEY, True, -32767, 250, "1804"))
    equal(one(place, "peek", "--key", "7")["key"], "0000000000000007")
    # The same position in a search of another kind has another key.
    keys = {one(place, "peek", "startpos", *kind)["key"] for kind in ([], ["--strict"], ["--select", "full"])}
    equal(len(keys), 3)
    words = one(place, "peek", *AFTER_E4.split())  # a FEN need not be quoted
    equal(words["key"], one(place, "peek", AFTER_E4)["key"])
    tree = one(place, "peek", "--game", "tree:b=4,d=4")
    check(tree["key"] not in keys, tree)
    equal(shard.end(), 0)


def it_reads_what_a_search_has_found():
    shards = [Shard(memory="8M"), Shard(memory="8M")]
    place = names(shards)

    def is_found():
        """A front-end waits for one shard: on a busy machine it may be done before it meets the one that has the key."""
        answer, = ask("startpos", "--servers", place, "--depth", 6, "--strict", "--private")
        root = one(place, "peek", "startpos", "--strict")
        return (answer, root) if root["known"] else None
    answer, root = wait_until(is_found, "the root in the table")
    equal((root["entry_depth"], root["lower"], root["upper"], root["move_text"]),
          (6, answer["score"], answer["score"], answer["bestmove"]))
    equal(one(place, "ask", "startpos", "--strict", "--depth", 6)["score"], answer["score"])
    equal(one(place, "ask", "startpos", "--strict", "--depth", 5, "--for", 1)["verdict"], "open", "of this depth alone")
    equal(one(place, "peek", "startpos")["known"], False, "another kind of search")


def who_asks_stays_for_the_time_that_was_given():
    shard = Shard(memory="8M", heartbeat_ms=SLOW_HEARTBEAT_MS)
    place = shard.address
    stays = Process("abdada", "tt", "ask", "--key", KEY, "--depth", 9, "--for", 600000, "--servers", place, "--json", *PATIENT)
    stays.close_input()
    equal(json.loads(stays.wait_line("open")[0].string)["nproc"], 1)
    equal(one(place, "ask", "--key", KEY, "--depth", 9, "--exclusive")["verdict"], "busy")
    helped = tt(place, "ask", "--key", KEY, "--depth", 9)
    check(helped.lines["out"][0].endswith("move none, 2 searchers in it at depth 9"), helped.out())
    check("--for MS" in helped.lines["out"][1], helped.out())
    check(tt(place, "ask", "--key", KEY, "--depth", 9, "--exclusive").out().startswith("busy: "))
    stays.send_signal(signal.SIGINT)
    equal(stays.wait(), 0)
    wait_until(lambda: one(place, "peek", "--key", KEY, "--depth", 9)["nproc"] == 0, "its entry to be gone")


def who_stays_asks_again_in_time_and_sees_what_others_find():
    shard = Shard(0, "--inflight-age-max", 2000, memory="8M")
    place = shard.address
    stays = Process("abdada", "tt", "ask", "--key", KEY, "--depth", 9, "--for", 600000, "--servers", place, "--json", *PATIENT)
    stays.close_input()
    stays.wait_line("open")
    asks = shard.stats()["asks"]
    wait_until(lambda: shard.stats()["asks"] >= asks + 6, "more asks than one each 10 s")
    one(place, "store", "--key", KEY, "--depth", 9, "--score", 5, "--bound", "exact")
    found = json.loads(stays.wait_line("cut")[0].string)
    equal((found["verdict"], found["score"]), ("cut", 5))
    equal(stays.wait(), 0, "there is nothing to stay for")
    wait_until(lambda: shard.stats()["inflight_entries"] == 0, "its entry to be gone")


def an_ask_that_is_lost_is_taken_back():
    # Slow heartbeats: on a busy machine no shard that runs may be taken for one that is down.
    shards = [Shard(memory="8M", heartbeat_ms=2000), Shard(memory="8M", heartbeat_ms=2000)]
    places = [shard.query(lambda c: c.place) for shard in shards]
    first = client.owner(int(KEY, 16), places)
    owner, other = shards[first], shards[1 - first]
    process = Process("abdada", "tt", "--json", "--servers", names(shards), "--wait", 30000)
    process.send(f"peek --key {KEY}")
    process.wait_line("known")
    owner.stop()
    process.send(f"ask --key {KEY} -d 5")
    equal(json.loads(process.wait_line("open")[0].string)["shard"], other.address)
    owner.send_signal(signal.SIGCONT)
    wait_until(lambda: owner.stats()["asks"] > 0, "the ask that came late")
    wait_until(lambda: owner.stats()["inflight_entries"] == 0, "it to be released")
    equal(other.stats()["inflight_entries"], 1)
    process.close_input()
    equal(process.wait(), 0, process.err())


def lines_of_one_input_are_one_session():
    shard = Shard(memory="8M")
    lines = ["# a comment, and an empty line", "", f"ask --key {KEY} -d 5 --exclusive", f"ask --key {KEY} -d 5 --exclusive",
             f"ask {AFTER_E4} -d 5", f"peek {AFTER_E4} -d 5", f"release {AFTER_E4} -d 5", "nonsense", "ask startpos",
             f"store --key {KEY} -d 5 --score 1 --bound lower", "stats"]
    process = Process("abdada", "tt", "--json", "--servers", shard.address, *PATIENT)
    process.send("\n".join(lines))
    wait_until(lambda: len(process.lines["out"]) == 7, "answers while the input is open")
    equal(shard.query(lambda c: c.peek(int(KEY, 16), 5))[0], 1)
    process.send(f"peek --key {KEY} --servers 127.0.0.1:1")
    process.close_input()
    equal(process.wait(), 2, "the worst of all")
    found = [json.loads(line) for line in process.lines["out"]]
    equal([row.get("verdict") for row in found[:3]], ["open"] * 3, "the asker is no other")
    equal([row["nproc"] for row in found[2:5]], [1, 1, 0])
    equal(found[6]["releases"], 1)
    equal(len(process.lines["err"]), 3)
    check("unknown command 'nonsense'" in process.lines["err"][0] and "--depth" in process.lines["err"][1] and
          "another table" in process.lines["err"][2], process.err())


def a_session_lives_while_a_line_waits_for_figures():
    shards = [Shard(memory="8M", heartbeat_ms=1000) for _ in range(2)]
    place = names(shards)
    process = Process("abdada", "tt", "--json", "--servers", place, "--wait", 6000)
    process.send(f"ask --key {KEY} -d 5")
    opened = json.loads(process.wait_line("open")[0].string)["shard"]
    here, there = sorted(shards, key=lambda shard: shard.address != opened)
    there.kill()
    before = here.stats()["sessions_expired"]
    process.send(f"stats\nask --key {KEY} -d 5")
    process.close_input()
    equal(process.wait(), 1)
    equal([json.loads(line).get("up") for line in process.lines["out"][1:3]].count(False), 1)
    # It is in the node all the time: its heartbeats came.
    equal(here.stats()["sessions_expired"], before)


def a_line_that_is_too_long_is_not_done():
    shard = Shard(memory="8M")
    store = f"store --key {KEY} -d 5 --score 1 --bound lower"
    process = Process("abdada", "tt", "--json", "--servers", shard.address, *PATIENT)
    for line in (store + " " * 1100 + "--move 7", store + " -d 5" * 29 + " --move 7", store + "\0 --move 7", "# " + "x" * 2000):
        process.send(line)
    process.send(f"peek --key {KEY}" + " " * (1023 - 5 - 6 - len(KEY)))  # the longest
    process.close_input()
    equal(process.wait(), 2)
    equal([json.loads(line)["known"] for line in process.lines["out"]], [False])
    equal(len(process.lines["err"]), 3, process.err())
    check(all("1023 characters and 64 words" in line for line in process.lines["err"]), process.err())
    equal(shard.stats()["stores"], 0)


def figures_of_every_shard():
    shards = [Shard(memory="8M"), Shard(memory="8M")]
    found = rows(tt(names(shards), "stats", "--json"))
    equal([(row["shard"], row["up"]) for row in found], [(shard.address, True) for shard in shards])
    check(set(shards[0].stats()) <= set(found[0]), "every figure of STATS")
    table = tt(names(shards), "stats")
    equal(table.lines["out"][0].split(), [shard.address for shard in shards])
    row, = [line.split() for line in table.lines["out"] if line.startswith("batch_max ")]
    equal(row, ["batch_max", "1024", "1024"])
    shards[1].kill()

    def living_answers():
        half = tt(names(shards), "stats", "--json", "--wait", 300)
        equal(half.status, 1)
        check("does not answer" in half.err(), half.err())
        return [json.loads(line)["up"] for line in half.lines["out"]] == [True, False]

    def table_is_right():
        table = tt(names(reversed(shards)), "stats", "--wait", 300)  # the first names no figures
        if not table.lines["out"]:
            return False
        equal((table.status, table.lines["out"][0].split()), (1, [shards[1].address, shards[0].address]))
        return [line.split() for line in table.lines["out"] if line.startswith("batch_max ")] == [["batch_max", "-", "1024"]]
    wait_until(living_answers, "the one that is left answers within 300 ms")
    wait_until(table_is_right, "so it does for the table")


def fill(shards, entries):
    """Stores {key: (depth, score, bound, move)} where they belong."""
    clients = [Client(shard.address).hello() for shard in shards]
    places = [c.place for c in clients]
    for key, entry in entries.items():
        clients[client.owner(key, places)].store(key, *entry)
    for c in clients:
        c.heartbeat()
        c.bye()
        c.close()


def contents(shards):
    return [shard.query(lambda c: c.scan()) for shard in shards]


def what_was_saved_is_loaded_again():
    rng = random.Random(19)
    shards = [Shard(memory="8M", heartbeat_ms=SLOW_HEARTBEAT_MS) for _ in range(2)]
    place = names(shards)
    entries = {rng.getrandbits(64): (rng.randrange(20), rng.randrange(-32000, 32000), rng.choice((LOWER, UPPER, EXACT)),
                                     rng.getrandbits(16)) for _ in range(4000)}
    fill(shards, entries)
    both = rng.getrandbits(64)  # a lower and an upper bound
    fill(shards, {both: (7, -5, LOWER, 99)})
    fill(shards, {both: (7, 8, UPPER, 0)})
    several = rng.getrandbits(64)  # results of two depths, of a strict search
    fill(shards, {several: (12, 40, EXACT | BESIDE, 5)})
    fill(shards, {several: (3, -40, EXACT | BESIDE, 6)})
    before = contents(shards)
    equal(sum(map(len, before)), 4003)
    check(min(map(len, before)) > 1000, "both have their share")
    with tempfile.TemporaryDirectory(prefix="abdada-tt-") as path:
        file, deep = os.path.join(path, "all"), os.path.join(path, "deep")
        equal(one(place, "save", file), {"file": file, "saved": 4003, "shards": 2})
        wanted = {at: entry for found in before for at, entry in found.items() if at[1] >= 9}
        equal(one(place, "save", deep, "--depth", 9)["saved"], len(wanted))
        equal(sorted(os.listdir(path)), ["all", "deep"])
        equal(rows(tt(place, "flush", "--json")), [{"shard": s.address, "flushed": True} for s in shards])
        equal(contents(shards), [{}, {}])
        equal(one(place, "load", file), {"file": file, "loaded": 4003, "kept": 4003, "shards": 2})
        equal(contents(shards), before)
        equal(tt(place, "load", file).out(), f"{file}: loaded 4003 results, 4003 of them are there now")
        equal(contents(shards), before, "once more changes nothing")
        equal(tt(place, "flush").status, 0)
        equal(one(place, "load", deep)["loaded"], len(wanted))
        equal({key: entry for found in contents(shards) for key, entry in found.items()}, wanted)
        shards.append(Shard(memory="8M", heartbeat_ms=SLOW_HEARTBEAT_MS))  # of another cluster, the keys of some move
        equal(tt(names(shards), "load", file).status, 0)
        equal(sum(len(found) > 800 for found in contents(shards)), 3)


def a_file_that_is_not_whole_is_refused():
    shard = Shard(memory="8M", heartbeat_ms=SLOW_HEARTBEAT_MS)
    place = shard.address
    fill([shard], {i * 0x9e3779b97f4a7c15 & client.MASK: (i % 9, i, LOWER, i) for i in range(1, 500)})
    with tempfile.TemporaryDirectory(prefix="abdada-tt-") as path:
        file, bad = os.path.join(path, "good"), os.path.join(path, "bad")
        equal(one(place, "save", file)["saved"], 499)
        with open(file, "rb") as good:
            whole = good.read()
        torn = {"cut": whole[:-20], "empty": b"", "foreign": b"#!/bin/sh\n" * 50,
                "changed": whole[:200] + bytes([whole[200] ^ 1]) + whole[201:], "longer": whole + b"x"}
        equal(tt(place, "flush").status, 0)
        for name, content in torn.items():
            with open(bad, "wb") as out:
                out.write(content)
            done = tt(place, "load", bad)
            equal((done.status, len(done.lines["err"]), done.out()), (1, 1, ""), name, done.err())
            check(bad in done.err(), name, done.err())
        equal(contents([shard]), [{}], "nothing of them")
        for command, where in (("load", os.path.join(path, "absent")), ("save", os.path.join(path, "no", "folder"))):
            done = tt(place, command, where)
            equal((done.status, len(done.lines["err"])), (1, 1), done.err())
            check(where in done.err(), done.err())
        equal(sorted(os.listdir(path)), ["bad", "good"])


def a_name_that_is_no_file_is_not_replaced_by_one():
    shard = Shard(memory="8M")
    with tempfile.TemporaryDirectory(prefix="abdada-tt-") as path:
        def at(name):
            return os.path.join(path, name)
        os.mkfifo(at("pipe"))
        os.mkdir(at("folder"))
        os.symlink("/dev/null", at("device"))
        os.symlink("nowhere", at("dangling"))
        os.symlink("circle", at("circle"))
        names = sorted(os.listdir(path))
        for name in names:
            before = os.lstat(at(name))
            done = tt(shard.address, "save", at(name))
            equal((done.status, done.out(), len(done.lines["err"])), (1, "", 1), name, done.err())
            check(at(name) in done.err(), done.err())
            equal((os.lstat(at(name)).st_ino, os.lstat(at(name)).st_mode), (before.st_ino, before.st_mode), name)
        equal(sorted(os.listdir(path)), names)
        # A link to a file stays one.
        os.mkdir(at("disk"))
        with open(at("disk/results"), "wb"):
            pass
        os.symlink("disk/results", at("link"))
        equal(one(shard.address, "save", at("link"))["saved"], 0)
        check(os.path.islink(at("link")) and os.path.getsize(at("disk/results")) > 0)
        equal(os.listdir(at("disk")), ["results"])
        equal(one(shard.address, "load", at("link"))["loaded"], 0)


class LyingShard:
    """Its results never end: a page of `rows` each time, and there is always one more."""

    def __init__(self, rows, memory_bytes=1 << 12, figures=()):
        self.figures = [["memory_bytes", memory_bytes], *figures]
        self.socket = zmq.Context.instance().socket(zmq.ROUTER)
        self.address = f"127.0.0.1:{self.socket.bind_to_random_port('tcp://127.0.0.1')}"
        self.rows, self.ended = rows, threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def answer(self, kind, fields):
        if kind == client.HELLO:
            return client.WELCOME, fields[0], 1, 77, SLOW_HEARTBEAT_MS, 1024, 4, 60000, 78
        if kind == client.HEARTBEAT:
            return client.HEARTBEAT, fields[0]
        if kind == client.STATS:
            return client.STATS_ANSWER, fields[0], self.figures
        if kind in (client.MEMBERS, client.JOBS):
            return kind + 1, fields[0], 0, []
        if kind == client.SCAN:
            return client.SCANNED, fields[0], fields[1] + 1, [[fields[1] * 100 + i, 5, 1, 2, 3] for i in range(self.rows)]
        return None

    def run(self):
        while not self.ended.is_set():
            if self.socket.poll(50):
                peer, content = self.socket.recv_multipart()
                version, kind, *fields = msgpack.unpackb(content)
                equal(version, client.VERSION)
                answer = self.answer(kind, fields)
                if answer:
                    self.socket.send_multipart([peer, msgpack.packb([version, *answer])])

    def close(self):
        self.ended.set()
        self.thread.join()
        self.socket.close()


def a_figure_has_no_key_of_ours():
    """Nor one twice: a shard may name its figures as it likes."""
    shard = LyingShard(0, figures=[["up", 0], ["shard", 1], ["kind", 2], ["twin", 3], ["asks", 4], ["asks", 5]])
    for words in ("tt", "stats"), ("top", "--once"):
        done = run("abdada", *words, "--json", "--servers", shard.address, "--wait", "10000")
        row = json.loads(done.lines["out"][0], object_pairs_hook=list)
        names = [name for name, _ in row]
        equal(len(set(names)), len(names), row)
        equal([value for name, value in row if name in ("up", "shard", "kind", "twin", "asks", "memory_bytes")],
              [shard.address, True, 4096, 4] if words[0] == "tt" else ["shard", "", 4096, 4])
    shard.close()


def a_shard_whose_results_never_end_is_left():
    for per_page in (100, 0):
        shard = LyingShard(per_page)
        with tempfile.TemporaryDirectory(prefix="abdada-tt-") as path:
            done = tt(shard.address, "save", os.path.join(path, "file"))
            equal((done.status, done.out(), len(done.lines["err"])), (1, "", 1), done.err())
            check("than its memory can hold: nothing was saved" in done.err(), done.err())
            equal(os.listdir(path), [])
        shard.close()


def a_file_has_no_more_bytes_than_its_user_allows():
    for per_page in (100, 0):
        shard = LyingShard(per_page, memory_bytes=1 << 50)  # the shard's own word bounds nothing
        with tempfile.TemporaryDirectory(prefix="abdada-tt-") as path:
            done = tt(shard.address, "save", os.path.join(path, "file"), "--most", "60K")
            equal((done.status, done.out(), len(done.lines["err"])), (1, "", 1), done.err())
            check("more results than --most" in done.err() and "nothing was saved" in done.err(), done.err())
            equal(os.listdir(path), [])
        shard.close()
    shards = [Shard(memory="8M") for _ in range(2)]
    place = names(shards)
    with tempfile.TemporaryDirectory(prefix="abdada-tt-") as path:
        file = os.path.join(path, "file")
        process = Process("abdada", "tt", *at(place), *PATIENT)
        process.send("\n".join(f"store --key {key * 0x9e3779b97f4a7c15 % (1 << 64):x} -d 5 --score 1 --bound exact"
                               for key in range(1, 101)))
        process.close_input()
        equal(process.wait(), 0, process.tail())
        equal(one(place, "save", file, "--most", "4K")["saved"], 100)  # of all shards together
        equal(tt(place, "save", file, "--most", 99 * 15).status, 1)
        equal(tt(place, "save", file, "--most", 0).status, 2)


def over_a_redis_it_saves_and_flushes_and_loads():
    if redis_servers.why_not():
        return redis_servers.why_not()
    rng = random.Random(7)
    with redis_servers.Redis() as redis, tempfile.TemporaryDirectory(prefix="abdada-tt-") as path:
        url = redis.url
        file, again = os.path.join(path, "file"), os.path.join(path, "again")
        keys = [f"{rng.getrandbits(64):016x}" for _ in range(3000)]  # some pages of a Redis's SCAN
        process = Process("abdada", "tt", *at(url), *PATIENT)
        process.send("\n".join(f"store --key {key} -d {i % 9} --score {i} --bound lower --move {i}" for i, key in enumerate(keys)))
        process.close_input()
        equal(process.wait(), 0, process.tail())
        redis.command("SET", "somebody's", "else")
        before = one(url, "peek", "--key", keys[11])
        equal((before["lower"], before["entry_depth"]), (11, 2))
        equal(one(url, "save", file)["saved"], 3000)
        equal(one(url, "save", again, "--depth", 7)["saved"], sum(i % 9 >= 7 for i in range(3000)))
        equal(one(url, "flush", "--yes")["flushed"], True)
        equal(one(url, "save", again)["saved"], 0)
        equal(one(url, "peek", "--key", keys[11])["known"], False)
        equal(redis.command("GET", "somebody's"), b"else")
        loaded = one(url, "load", file)
        equal((loaded["loaded"], loaded["kept"]), (3000, 3000))
        equal(one(url, "peek", "--key", keys[11]), before)
    return None


WRONG = [
    (["ask", "startpos"], "ask needs --depth N"),
    (["ask", "--depth", 5], "a position or --key"),
    (["ask", "startpos", "--key", KEY, "--depth", 5], "not both"),
    (["ask", "--key", "xyz", "--depth", 5], "--key is up to 16 digits"),
    (["ask", "--key", "1" * 17, "--depth", 5], "--key is up to 16 digits"),
    (["ask", "startpos", "--depth", 251], "--depth"),
    (["ask", "startpos", "--depth", 5, "--alpha", 20, "--beta", 20], "--alpha must be below --beta"),
    (["ask", "startpos", "--depth", 5, "--alpha", -32768], "--alpha"),
    (["ask", "8/8/8 w", "--depth", 5], "fields"),
    (["ask", "startpos", "--depth", 5, "--game", "draughts"], "unknown game"),
    (["ask", "startpos", "--depth", 5, "--select", "some"], "--select"),
    (["peek", "startpos", "--strict", "--select", "full"], "--strict"),
    (["store", "startpos", "--depth", 5, "--bound", "exact"], "store needs --score"),
    (["store", "startpos", "--depth", 5, "--score", 1], "--bound"),
    (["store", "startpos", "--depth", 5, "--score", 1, "--bound", "about"], "--bound is exact, lower or upper"),
    (["store", "startpos", "--depth", 5, "--score", 1, "--bound", "exact", "--move", "e2e5"], "no move here"),
    (["store", "--key", KEY, "--depth", 5, "--score", 1, "--bound", "exact", "--move", "e2e4"], "a number"),
    (["release", "startpos"], "release needs --depth N"),
    (["save"], "the name of a file"),
    (["load", "a", "b"], "the name of a file"),
    (["stats", "startpos"], "unexpected argument"),
    (["flush", "now"], "unexpected argument"),
    (["forget"], "unknown command"),
]


def wrong_use_is_said_in_a_line():
    shard = Shard(memory="8M")
    for arguments, wanted in WRONG:
        done = tt(shard.address, *arguments)
        equal((done.status, done.out(), len(done.lines["err"])), (2, "", 1), arguments, done.err())
        check(wanted in done.err() and done.err().startswith("abdada tt: "), arguments, done.err())
    done = run("abdada", "tt", "stats")
    equal(done.status, 2)
    check("--servers" in done.err() and "--table" in done.err(), done.err())
    equal(run("abdada", "tt", "--help").status, 0)
    equal(shard.stats()["stores"], 0)


def without_a_shard_it_says_so():
    nobody = f"127.0.0.1:{free_port()}"
    for arguments in (["peek", "startpos"], ["ask", "startpos", "--depth", 5], ["flush"], ["save", "x"], []):
        done = tt(nobody, *arguments, "--wait", 200)
        equal((done.status, done.out(), len(done.lines["err"])), (1, "", 1), arguments, done.err())
        check(nobody in done.err(), done.err())


def one_of_two_is_enough_for_a_key_and_not_for_all():
    shards = [Shard(memory="8M"), Shard(memory="8M")]
    place = names(shards)
    shards[1].kill()

    def until(is_right, *arguments):
        """Again while the one that is left does not answer within 300 ms either."""
        def goes_on():
            done = tt(place, *arguments, "--wait", 300)
            check(is_right(done) or (done.status == 1 and shards[0].address in done.err()), done.tail())
            return done if is_right(done) else None
        return wait_until(goes_on, f"{arguments}")
    for arguments in (["store", "startpos", "--depth", 3, "--score", 5, "--bound", "exact"], ["peek", "startpos"]):
        done = until(lambda done: done.status == 0, *arguments, "--json")
        equal(json.loads(done.out())["lower"], 5, done.tail())
        check(shards[1].address in done.err(), done.err())
    with tempfile.TemporaryDirectory(prefix="abdada-tt-") as path:
        for command in ("save", "load"):
            done = until(lambda done: shards[0].address not in done.err(), command, os.path.join(path, "file"))
            equal((done.status, done.out()), (1, ""))
            check(shards[1].address in done.err() and "nothing was" in done.err(), done.err())
        equal(os.listdir(path), [])
    done = until(lambda done: '"flushed":true' in done.out(), "flush", "--json")
    equal((done.status, [json.loads(line)["flushed"] for line in done.lines["out"]]), (1, [True, False]))
    equal(contents(shards[:1]), [{}])


def with_keys_an_administrator_flushes():
    with tempfile.TemporaryDirectory(prefix="abdada-tt-") as path:
        keys, user, watcher = (os.path.join(path, name) for name in ("keys", "user", "watcher"))
        equal(run("abdada", "keygen", keys).status, 0)
        shard = Shard(keys=keys, memory="8M")
        for directory, secret in ((user, "front-end"), (watcher, "monitor")):
            os.mkdir(directory, 0o700)
            for file in ("server.public", f"{secret}.secret"):
                with open(os.path.join(keys, file), "rb") as source:
                    content = source.read()
                with open(os.open(os.path.join(directory, file), os.O_CREAT | os.O_WRONLY, 0o600), "wb") as copy:
                    copy.write(content)
        place = shard.address
        store = ["store", "--key", KEY, "--depth", 3, "--score", 5, "--bound", "exact", "--keys"]
        equal(tt(place, *store, user).status, 0)
        check("no key of the role" in tt(place, *store, watcher).err())
        check("no key of the role" in tt(place, "flush", "--keys", user).err())
        equal(one(place, "stats", "--keys", watcher)["stores"], 1)
        # The shard itself refuses it, too.
        with open(os.path.join(user, "front-end.secret"), encoding="ascii") as source:
            text = source.read()
        with open(os.open(os.path.join(user, "administrator.secret"), os.O_CREAT | os.O_WRONLY, 0o600), "w",
                  encoding="ascii") as lie:
            lie.write(text.replace("front-end", "administrator"))
        refused = tt(place, "flush", "--keys", user, "--json")
        equal((refused.status, json.loads(refused.out())), (1, {"shard": place, "flushed": False}))
        check("for administrators only" in refused.err(), refused.err())
        equal(one(place, "peek", "--key", KEY, "--keys", user)["known"], True)
        equal(one(place, "flush", "--keys", keys), {"shard": place, "flushed": True})
        equal(one(place, "peek", "--key", KEY, "--keys", user)["known"], False)
        # A line of input may flush where the directory has the key for it.
        equal(tt(place, *store, user).status, 0)
        for directory, status, flushed, known in ((user, 1, False, True), (keys, 0, True, False)):
            process = Process("abdada", "tt", "--json", "--servers", place, "--keys", directory, *PATIENT)
            process.send(f"flush --yes\npeek --key {KEY}")
            process.close_input()
            equal(process.wait(), status, process.err())
            equal([json.loads(line).get("flushed", json.loads(line).get("known")) for line in process.lines["out"]],
                  [flushed, known])


def a_redis_is_a_table_like_any_other():
    if redis_servers.why_not():
        return redis_servers.why_not()
    with redis_servers.Redis() as redis, tempfile.TemporaryDirectory(prefix="abdada-tt-") as path:
        url, file = redis.url, os.path.join(path, "results")
        answer, = ask("startpos", "--table", url, "--depth", 6, "--strict", "--private")
        root = one(url, "peek", "startpos", "--strict")
        equal((root["entry_depth"], root["lower"], root["upper"], root["move_text"]),
              (6, answer["score"], answer["score"], answer["bestmove"]))
        process = Process("abdada", "tt", "--json", *at(url), *PATIENT)
        process.send(f"ask --key {KEY} -d 5 --exclusive\nask --key {KEY} -d 5")
        wait_until(lambda: len(process.lines["out"]) == 2, "answers")
        equal(one(url, "ask", "--key", KEY, "--depth", 5, "--exclusive")["verdict"], "busy")
        process.send(f"release --key {KEY} -d 5")
        process.close_input()
        equal((process.wait(), json.loads(process.lines["out"][2])["nproc"]), (0, 0))
        stored = one(url, "store", "--key", KEY, "--depth", 9, "--score", -4, "--bound", "upper", "--move", 1804)
        equal((stored["lower"], stored["upper"], stored["move"]), (UNKNOWN_LOW, -4, 1804))
        saved = one(url, "save", file)["saved"]
        check(saved > 1, saved)
        equal([row["flushed"] for row in rows(tt(url, "flush", "--json"))], [True])
        equal([one(url, "peek", *position)["known"] for position in (["startpos", "--strict"], ["--key", KEY])],
              [False, False])
        loaded = one(url, "load", file)
        equal((loaded["loaded"], loaded["kept"]), (saved, saved))
        equal(one(url, "peek", "startpos", "--strict"), root)
        shard = Shard(memory="8M")  # and what a Redis had goes into a shard
        equal(one(shard.address, "load", file)["kept"], saved)
        equal(one(shard.address, "peek", "startpos", "--strict")["lower"], answer["score"])
        check(len(rows(tt(url, "stats", "--json"))[0]) > 5)
    return None


TESTS = [what_is_stored_is_asked_and_peeked_at, a_key_is_as_good_as_a_position, it_reads_what_a_search_has_found,
         who_asks_stays_for_the_time_that_was_given, who_stays_asks_again_in_time_and_sees_what_others_find,
         an_ask_that_is_lost_is_taken_back, lines_of_one_input_are_one_session, a_line_that_is_too_long_is_not_done,
         a_session_lives_while_a_line_waits_for_figures, figures_of_every_shard,
         what_was_saved_is_loaded_again, a_figure_has_no_key_of_ours, a_shard_whose_results_never_end_is_left,
         a_file_has_no_more_bytes_than_its_user_allows, over_a_redis_it_saves_and_flushes_and_loads,
         a_file_that_is_not_whole_is_refused, a_name_that_is_no_file_is_not_replaced_by_one, wrong_use_is_said_in_a_line,
         without_a_shard_it_says_so, one_of_two_is_enough_for_a_key_and_not_for_all,
         with_keys_an_administrator_flushes, a_redis_is_a_table_like_any_other]

if __name__ == "__main__":
    sys.exit(main(TESTS, unstable=STARVED))
