#!/usr/bin/python3
"""Results that survive their shard, in a file: BIN=build/dev/bin tests/system/test_survive.py

Prints TAP; exits nonzero when anything fails.
"""
import collections
import fcntl
import json
import os
import re
import resource
import shutil
import signal
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from client import Client  # noqa: E402
from cluster import (STARVED, PATIENT, SHORT, SANITIZED, Process, Shard, answers, ask, check, equal, main, right, run, start,  # noqa: E402
                     wait_until)

POSITION = "r1bqkbnr/pppp1ppp/2n5/4p3/4P3/5N2/PPPP1PPP/RNBQKB1R w KQkq -"
DEPTH = 8 if SHORT or SANITIZED else 9
DEEP = 4  # results of this depth and more must come back
NEVER = 86400  # seconds between snapshots: only those that are asked for


def folder_of_its_own():
    return tempfile.TemporaryDirectory(prefix="abdada-survive-")


def shard(path, *options, port=0, every=NEVER):
    return Shard(port, "--snapshot", path, "--snapshot-every", every, *options)


def search(place, *options):
    """Nodes, score and move of a search that shares all it finds at depth 3 and more."""
    row, = ask("--servers", place, "--strict", "--threads", "1", "--hash", "16", "--private",
               "--depth", DEPTH, "--remote-depth", "3", *options, POSITION)
    return row["nodes"], (row["score"], row["bestmove"])


def deep(server):
    return server.query(lambda c: c.scan(DEEP))


def place(server):
    return server.query(lambda c: (c.boot, c.place))


def write_snapshot(server):
    """Waits until one is written that was begun now."""
    before = server.stats()["snapshots"]
    server.send_signal(signal.SIGUSR1)
    wait_until(lambda: server.stats()["snapshots"] > before, "a snapshot")


def share(before, after):
    """Of the entries of before, how many are as they were."""
    return sum(after.get(key) == entry for key, entry in before.items()) / len(before)


def fill(server, keys=1000):
    """Results without a search, depths 0 to 9; as Client.scan gives them."""
    def store(c):
        for key in range(1, keys + 1):
            c.store(key * 0x9e3779b97f4a7c15 % 2 ** 64, key % 10, key, 3, move=key)
        return c.scan()
    found = server.query(store)
    equal(len(found), keys)
    return found


def a_killed_shard_has_what_its_last_snapshot_had():
    with folder_of_its_own() as folder:
        path = os.path.join(folder, "results")
        server = shard(path)
        nodes, found = search(server.address)
        write_snapshot(server)
        before, (boot, was) = deep(server), place(server)
        check(len(before) > 100, "only", len(before), "entries of depth", DEEP)
        server.kill()
        server = shard(path, port=server.port)
        after, (new_boot, is_now) = deep(server), place(server)
        check(boot != new_boot and was == is_now, "boot and place", boot, was, new_boot, is_now)
        kept = share(before, after)
        equal(server.stats()["restored"], len(server.query(lambda c: c.scan())))
        again, found_again = search(server.address, "--wait")  # a busy machine loses answers that a search does not wait for
        print(f"# {len(before)} entries of depth {DEEP}, {kept:.1%} came back; {nodes} nodes, again {again}, "
              f"1 to {nodes / again:.1f}")
        check(kept >= 0.9, kept)
        equal(found_again, found)
        check(again * 2 <= nodes, "again", again, "of", nodes)


def shards_with_copies_of_one_file_say_so_and_both_serve():
    with folder_of_its_own() as folder:
        paths = [os.path.join(folder, name) for name in ("results", "copy")]
        server = shard(paths[0])
        _, found = search(server.address)
        equal(server.end(), 0)
        shutil.copy(*paths)
        both = [shard(path) for path in paths]
        places = [place(each) for each in both]
        check(places[0][1] == places[1][1] and places[0][0] != places[1][0], places)
        addresses = [each.address for each in both]
        front = start("--servers", ",".join(addresses), "--strict", "--threads", 1, "--hash", 16, "--private", "--depth", DEPTH,
                      "--fresh", POSITION)
        row, = answers(front)
        right((row["score"], row["bestmove"]), found)
        said = [line for line in front.lines["err"] if "one place in the ring" in line]
        check(said and all(address in line for line in said for address in addresses), said)
        check(all(each.stats()["asks"] > 0 for each in both), [each.stats()["asks"] for each in both])
        done = run("abdada", "top", "--once", "--json", "--servers", ",".join(addresses), *PATIENT)
        rows = [json.loads(line) for line in done.lines["out"]]
        equal([row["twin"] for row in rows if row["kind"] == "shard"], addresses[::-1])
        page = run("abdada", "top", "--once", "--servers", ",".join(addresses), *PATIENT)
        lines = [line for line in page.lines["out"] if "have the same place in the ring" in line]
        check(len(lines) == 1 and lines[0].startswith("! shards ") and all(address in lines[0] for address in addresses), page.out(),
              page.err())
        both[1].kill()
        twice = f"{addresses[0]},localhost:{both[0].port}"
        done = run("abdada", "top", "--once", "--servers", twice, *PATIENT)
        check(re.search("shards .* and .* are the same one, or one is a clone made while it ran: name it once", done.err()), done.err())


def a_shard_that_ends_writes_its_last_results():
    with folder_of_its_own() as folder:
        path = os.path.join(folder, "results")
        server = shard(path)
        before = fill(server)
        equal(server.end(), 0)
        server = shard(path)
        equal(server.query(lambda c: c.scan()), before)
        inode = os.stat(path).st_ino
        equal(server.end(), 0)
        equal(os.stat(path).st_ino, inode, "nothing changed, and it was written again")


def snapshots_are_written_from_time_to_time():
    with folder_of_its_own() as folder:
        server = shard(os.path.join(folder, "results"), every=1)
        wait_until(lambda: server.stats()["snapshots"] >= 1, "a first snapshot")
        before = fill(server)
        wait_until(lambda: server.stats()["snapshot_entries"] == len(before), "a snapshot with all")
        server.kill()
        server = shard(os.path.join(folder, "results"))
        equal(server.query(lambda c: c.scan()), before)


def each_shard_has_its_own_file_and_place():
    with folder_of_its_own() as folder:
        path = os.path.join(folder, "results")
        first = shard(path, "--shards", "3")
        addresses = [f"127.0.0.1:{first.port + i}" for i in range(3)]
        for address in addresses[1:]:
            first.wait_line(f"^ready {address}$")

        def all_of():
            rows = []
            for address in addresses:
                c = Client(address).hello()
                rows.append((c.place, c.scan()))
                c.bye()
                c.close()
            return rows
        nodes, found = search(",".join(addresses))
        before = all_of()
        equal(len({at for at, _ in before}), 3)
        check(all(len(entries) > 100 for _, entries in before), [len(entries) for _, entries in before])
        equal(first.end(), 0)
        equal(sorted(os.listdir(folder)), sorted(f"results{i}{kind}" for i in ("", ".1", ".2") for kind in ("", ".lock")))
        again = Shard(first.port, "--snapshot", path, "--shards", "3")
        for address in addresses[1:]:
            again.wait_line(f"^ready {address}$")
        equal(all_of(), before)
        nodes_again, found_again = search(",".join(addresses))
        print(f"# {nodes} nodes, again {nodes_again}")
        equal(found_again, found)
        shards_of = collections.Counter(key for _, entries in all_of() for key in entries)
        twice = sum(shards > 1 for shards in shards_of.values())
        check(twice * 5 <= len(shards_of), "the keys have other owners:", twice, "of", len(shards_of), "are in two shards")


def a_torn_or_foreign_file_is_set_aside_and_the_shard_begins_empty():
    with folder_of_its_own() as folder:
        path = os.path.join(folder, "results")
        server = shard(path)
        fill(server)
        server.end()
        with open(path, "rb") as file:
            whole = file.read()
        newer = whole[:8] + b"\2" + whole[9:]
        cases = [("cut short", whole[:-1]), ("torn", whole[:100] + bytes([whole[100] ^ 1]) + whole[101:]),
                 ("not a snapshot", b"PGDMP, say"), ("not a snapshot", b""), ("format 2", newer)]
        for reason, content in cases:
            with open(path, "wb") as file:
                file.write(content)
            server = shard(path)
            server.wait_line(r"\.bad", "err")
            said = [line for line in server.lines["err"] if path in line]
            equal(len(said), 1, said)
            check(reason in said[0] and "empty" in said[0] and ".bad" in said[0], said[0])
            equal(server.query(lambda c: c.scan()), {})
            with open(path + ".bad", "rb") as file:
                equal(file.read(), content)
            before = fill(server)
            equal(server.end(), 0)
            server = shard(path)
            equal(server.query(lambda c: c.scan()), before)
            server.end()


def a_link_stays_and_the_file_that_it_leads_to_is_set_aside():
    with folder_of_its_own() as folder:
        path, link = (os.path.join(folder, name) for name in ("results", "link"))
        with open(path, "wb") as file:
            file.write(b"PGDMP, say")
        os.symlink(path, link)
        server = shard(link)
        server.wait_line(rf"{path}: .*\.bad", "err")
        wait_until(lambda: server.stats()["snapshots"] == 1, "a file to which the link leads")
        server.kill()
        server = shard(link)
        os.replace(link, link + ".old")
        before = fill(server)
        equal(server.end(), 0)
        equal(sorted(os.listdir(folder)), ["link.old", "results", "results.bad", "results.lock"])
        equal(os.readlink(link + ".old"), path)
        equal(shard(path).query(lambda c: c.scan()), before)


def a_file_that_cannot_be_read_stays_and_the_start_fails():
    with folder_of_its_own() as folder:
        path = os.path.join(folder, "results")
        cases = [("not a file", lambda: os.mkdir(path)), ("not a file", lambda: os.mkfifo(path)),
                 ("not a file", lambda: os.symlink("/dev/null", path)),
                 ("leads to no file", lambda: os.symlink("nowhere", path)),
                 ("leads to no file", lambda: os.symlink("results", path))]
        for reason, make in cases:
            make()
            before = os.lstat(path)
            process = run("ttserver", "--listen", "127.0.0.1:0", "--snapshot", path)
            equal((process.status, len(process.lines["err"])), (1, 1), process.err())
            check(path in process.err() and reason in process.err(), process.err())
            equal((os.lstat(path).st_ino, os.path.lexists(path + ".bad")), (before.st_ino, False), reason)
            (os.rmdir if reason == "not a file" and os.path.isdir(path) else os.unlink)(path)


def a_start_that_fails_leaves_the_file():
    with folder_of_its_own() as folder:
        path = os.path.join(folder, "results")
        with open(path, "wb") as file:
            file.write(b"PGDMP, say")
        other = Shard()
        process = run("ttserver", "--listen", other.address, "--snapshot", path)
        equal(process.status, 1)
        check("in use" in process.err() and ".bad" not in process.err(), process.err())
        equal(os.path.exists(path + ".bad"), False)
        with open(path, "rb") as file:
            equal(file.read(), b"PGDMP, say")


def a_full_disk_is_one_line_and_the_shard_serves_on():
    with folder_of_its_own() as folder:
        path = os.path.join(folder, "results")
        server = shard(path)
        write_snapshot(server)
        with open(path, "rb") as file:
            old = file.read()
        fill(server)
        _, hard = resource.prlimit(server.popen.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(server.popen.pid, resource.RLIMIT_FSIZE, (1000, hard))
        for failures in (1, 2):
            server.send_signal(signal.SIGUSR1)
            wait_until(lambda: server.stats()["snapshot_failures"] == failures, "a failure")
        equal(sorted(os.listdir(folder)), ["results", "results.lock"])
        with open(path, "rb") as file:
            equal(file.read(), old)
        resource.prlimit(server.popen.pid, resource.RLIMIT_FSIZE, (hard, hard))
        write_snapshot(server)
        server.wait_line("written again", "err")
        said = [line for line in server.lines["err"] if "no snapshot:" in line]
        equal(len(said), 1, said)
        equal(len(server.query(lambda c: c.scan())), 1000)


def a_folder_that_is_gone_is_one_line_and_back_is_another():
    with folder_of_its_own() as folder:
        inner = os.path.join(folder, "inner")
        os.mkdir(inner)
        server = shard(os.path.join(inner, "results"))
        fill(server)
        os.replace(inner, inner + ".away")
        server.send_signal(signal.SIGUSR1)
        server.wait_line("no snapshot: .*inner/results", "err")
        os.replace(inner + ".away", inner)
        write_snapshot(server)
        server.wait_line("written again", "err")
        equal(server.stats()["snapshot_entries"], 1000)


def two_servers_do_not_have_one_file():
    with folder_of_its_own() as folder:
        path = os.path.join(folder, "results")
        server = shard(path, "--shards", "2")
        write_snapshot(server)
        for taken in (path, path + ".1"):
            process = run("ttserver", "--listen", "127.0.0.1:0", "--snapshot", taken)
            equal((process.status, process.out(), len(process.lines["err"])), (1, "", 1), process.err())
            check(taken in process.err() and "another process" in process.err(), process.err())
        was = place(server)[1]
        equal(server.end(), 0)
        server = shard(path)
        equal(place(server)[1], was)
        server.kill()
        equal(place(shard(path))[1], was, "the lock went with its process")


def a_file_that_somebody_writes_is_left_to_him():
    with folder_of_its_own() as folder:
        path = os.path.join(folder, "results")
        server = shard(path)
        fill(server)
        write_snapshot(server)
        with open(path + ".new", "wb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            fill(server, keys=2000)
            server.send_signal(signal.SIGUSR1)
            server.wait_line("another process writes it", "err")
        write_snapshot(server)
        equal(server.stats()["snapshot_entries"], 2000)


def what_was_flushed_does_not_come_back():
    with folder_of_its_own() as folder:
        path = os.path.join(folder, "results")
        server = shard(path)
        fill(server)
        write_snapshot(server)
        server.query(Client.flush)
        write_snapshot(server)
        server.kill()
        server = shard(path)
        equal(server.query(lambda c: c.scan()), {})


def wrong_use_is_refused():
    for options in (["--snapshot-every", "0"], ["--snapshot", ""]):
        process = Process("ttserver", "--listen", "127.0.0.1:0", *options)
        equal(process.wait(), 2, process.err())


TESTS = [
    a_killed_shard_has_what_its_last_snapshot_had,
    a_shard_that_ends_writes_its_last_results,
    snapshots_are_written_from_time_to_time,
    each_shard_has_its_own_file_and_place,
    a_torn_or_foreign_file_is_set_aside_and_the_shard_begins_empty,
    shards_with_copies_of_one_file_say_so_and_both_serve,
    a_link_stays_and_the_file_that_it_leads_to_is_set_aside,
    a_file_that_cannot_be_read_stays_and_the_start_fails,
    a_start_that_fails_leaves_the_file,
    a_full_disk_is_one_line_and_the_shard_serves_on,
    a_folder_that_is_gone_is_one_line_and_back_is_another,
    two_servers_do_not_have_one_file,
    a_file_that_somebody_writes_is_left_to_him,
    what_was_flushed_does_not_come_back,
    wrong_use_is_refused,
]

if __name__ == "__main__":
    sys.exit(main(TESTS, unstable=STARVED))
