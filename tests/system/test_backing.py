#!/usr/bin/python3
"""Results that survive their shard in a Redis, a real one: BIN=build/dev/bin tests/system/test_backing.py

Prints TAP; exits nonzero when anything fails. Without redis-server the tests are skipped.
"""
import contextlib
import os
import signal
import socket
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from client import Client  # noqa: E402
from cluster import STARVED, Process, SHORT, SANITIZED, Shard, ask, check, equal, free_port, main, needs, wait_until  # noqa: E402
from redis_servers import Redis, why_not  # noqa: E402

POSITION = "r1bqkbnr/pppp1ppp/2n5/4p3/4P3/5N2/PPPP1PPP/RNBQKB1R w KQkq -"
DEPTH = 8 if SHORT or SANITIZED else 9
DEEP = 4  # --backing-depth when nothing is said


needs_redis = needs(why_not)


def shard(redis, port, *options, memory="32M"):
    return Shard(port, "--backing", redis.url, *options, memory=memory)


@contextlib.contextmanager
def shard_over_redis(*options):
    with Redis() as redis:
        port = free_port()
        yield redis, port, shard(redis, port, *options)


def search(server, *options):
    row, = ask("--servers", server.address, "--strict", "--threads", "1", "--hash", "16", "--private",
               "--depth", DEPTH, "--remote-depth", "3", *options, POSITION)
    return row["nodes"], (row["score"], row["bestmove"])


def fill(server, keys=1000, first=1):
    """Results without a search, depths 0 to 9; as Client.scan gives those that are kept."""
    def store(c):
        for key in range(first, first + keys):
            c.store(key * 0x9e3779b97f4a7c15 % 2 ** 64, key % 10, key, 3, move=key)
        return c.scan(DEEP)
    return server.query(store)


def deep(server):
    return server.query(lambda c: c.scan(DEEP))


def wait_written(server):
    wait_until(lambda: server.stats()["backing_behind"] == 0, "all is written")


def share(before, after):
    return sum(after.get(key) == entry for key, entry in before.items()) / len(before)


def lines(server, *words):
    return [line for line in server.lines["err"] if all(word in line for word in ("--backing", *words))]


def check_one_event(server, *words):
    """What a server says on stderr may be read here later than that it is ready, which is on stdout."""
    wait_until(lambda: lines(server, *words), f"a line with {words}")
    equal(len(lines(server, *words)), 1, words, server.lines["err"])


@needs_redis
def a_killed_shard_has_its_results_again():
    with shard_over_redis() as (redis, port, server):
        nodes, found = search(server)
        wait_written(server)
        before, place = deep(server), server.query(lambda c: c.place)
        check(len(before) > 100, "only", len(before), "entries of depth", DEEP)
        server.kill()
        server = shard(redis, port)
        equal(server.query(lambda c: c.place), place)
        kept = share(before, deep(server))
        again, found_again = search(server, "--wait")  # a busy machine loses answers that a search does not wait for
        print(f"# {len(before)} entries of depth {DEEP}, {kept:.1%} came back; {nodes} nodes, again {again}, "
              f"1 to {nodes / again:.1f}")
        check(kept >= 0.9, kept)
        equal(found_again, found)
        check(again * 2 <= nodes, "again", again, "of", nodes)


@needs_redis
def only_results_of_the_depth_are_kept():
    with shard_over_redis("--backing-depth", "7") as (redis, port, server):
        fill(server)
        everything = server.query(Client.scan)
        wait_written(server)
        server.kill()
        server = shard(redis, port, "--backing-depth", "7")
        equal(server.query(Client.scan), {at: entry for at, entry in everything.items() if at[1] >= 7})
        equal(server.stats()["restored"], 300)


@needs_redis
def what_is_unwritten_is_written_at_the_end():
    with shard_over_redis() as (redis, port, server):
        before = fill(server)
        equal(server.end(), 0)
        equal(deep(shard(redis, port)), before)


@needs_redis
def what_cannot_be_written_at_the_end_is_said():
    with shard_over_redis() as (redis, port, server):
        fill(server)
        equal(server.end(), 0)
        server = shard(redis, port)
        fill(server, first=2001)
        wait_written(server)
        redis.kill()  # it may have lost what was read, and what was written
        wait_until(lambda: server.stats()["backing_lost"] == 1, "the loss is seen")
        behind = len(deep(server))
        equal(server.end(), 0)
        check_one_event(server, f"up to {behind} results of {socket.gethostname()}/127.0.0.1:{port} were not written")


@needs_redis
def a_redis_that_dies_is_one_event_and_one_that_lost_all_gets_all():
    with shard_over_redis() as (redis, port, server):
        fill(server)
        wait_written(server)
        redis.kill()
        wait_until(lambda: server.stats()["backing_lost"] == 1, "the loss is seen, without a write")
        check(server.stats()["backing_behind"] > 0, "nothing waits")
        before = fill(server, first=2001)
        redis.run()
        server.wait_line("connected again", "err")
        wait_written(server)
        equal(server.stats()["backing_lost"], 1)
        check_one_event(server, "retry")
        server.kill()
        equal(deep(shard(redis, port)), before)


@needs_redis
def a_redis_that_comes_later_is_filled():
    with Redis() as redis:
        port = free_port()
        redis.kill()
        server = shard(redis, port)
        check_one_event(server, "retry")
        equal(server.stats()["backing_lost"], 1)
        before = fill(server)
        redis.run()
        wait_written(server)
        server.kill()
        equal(deep(shard(redis, port)), before)


@needs_redis
def a_redis_that_comes_later_with_results_is_read():
    with shard_over_redis() as (redis, port, server):
        before = fill(server)
        equal(server.end(), 0)
        keys = redis.command("DBSIZE")
        equal(redis.command("SAVE"), "OK")
        redis.kill()
        server = shard(redis, port)
        equal(deep(server), {})
        redis.run()
        wait_written(server)
        equal(deep(server), before)
        equal(redis.command("DBSIZE"), keys, "the results of the old place are still there")
        server.kill()
        equal(deep(shard(redis, port)), before)


@needs_redis
def a_redis_that_reads_its_file_is_waited_for():
    with shard_over_redis() as (redis, port, server):
        before = fill(server)
        equal(server.end(), 0)
        equal(redis.command("SAVE"), "OK")
        redis.kill()
        redis.run("--key-load-delay", "2000", "--loading-process-events-interval-bytes", "1024", until="Loading RDB")
        server = shard(redis, port)
        check_one_event(server, "waiting until it has read its file")
        equal(server.stats()["backing_lost"], 0)
        equal(deep(server), before)


@needs_redis
def a_redis_that_answers_nothing_keeps_nobody_waiting():
    with shard_over_redis() as (redis, port, server):
        redis.process.send_signal(signal.SIGSTOP)
        for round_trip in range(20):
            before = fill(server, keys=100, first=1 + 100 * round_trip)
        check(len(before) > 0, "no results")
        wait_until(lambda: server.stats()["backing_lost"] == 1, "the loss is seen")
        redis.process.send_signal(signal.SIGCONT)
        server.wait_line("connected again", "err")
        wait_written(server)
        before = deep(server)
        server.kill()
        equal(deep(shard(redis, port)), before)


@needs_redis
def a_full_redis_is_one_event():
    with Redis("--maxmemory-policy", "noeviction") as redis:
        port = free_port()
        server = shard(redis, port)
        equal(redis.command("CONFIG", "SET", "maxmemory", "1"), "OK")
        before = fill(server)
        wait_until(lambda: server.stats()["backing_lost"] == 1, "the refusal is seen")
        check_one_event(server, "OOM")
        equal(redis.command("CONFIG", "SET", "maxmemory", "0"), "OK")
        wait_written(server)
        equal(server.stats()["backing_lost"], 1)
        server.kill()
        equal(deep(shard(redis, port)), before)


@needs_redis
def another_size_of_the_table_has_the_same_results():
    with Redis() as redis:
        port = free_port()
        before, server = {}, None
        for memory in ("32M", "4M", "64M", "32M"):
            server = shard(redis, port, memory=memory)
            equal(deep(server), before)
            before = fill(server, first=1 + len(before) * 2)
            wait_written(server)
            server.kill()
        equal(deep(shard(redis, port)), before)


@needs_redis
def each_shard_of_a_process_has_its_own():
    with Redis() as redis:
        def all_of():
            rows = []
            for i in range(2):
                c = Client(f"127.0.0.1:{port + i}").hello()
                rows.append((c.place, c.scan(DEEP)))
                c.bye()
                c.close()
            return rows
        for _ in range(20):  # for two free ports in a row
            port = free_port()
            try:
                server = shard(redis, port, "--shards", "2")
                break
            except Exception:  # pylint: disable=broad-except
                continue
        fill(server)
        c = Client(f"127.0.0.1:{port + 1}").hello()
        c.store(77, 9, 1, 3)
        c.store(78, 9, 1, 3)
        equal(len(c.scan()), 2)
        c.bye()
        c.close()
        before = all_of()
        check(before[0][0] != before[1][0], "one place for both")
        equal(server.end(), 0)
        server = shard(redis, port, "--shards", "2")
        server.wait_line(f"^ready 127.0.0.1:{port + 1}$")
        equal(all_of(), before)


@needs_redis
def what_was_flushed_does_not_come_back():
    with shard_over_redis() as (redis, port, server):
        fill(server)
        wait_written(server)
        server.query(Client.flush)
        after = fill(server, keys=20, first=5001)
        equal(len(after), 12)
        wait_until(lambda: server.stats()["backing_behind"] == 0 and redis.command("DBSIZE") <= 1 + 12, "Redis forgets")
        wait_written(server)
        server.kill()
        equal(deep(shard(redis, port)), after)


@needs_redis
def what_was_flushed_while_redis_was_away_does_not_come_back():
    with shard_over_redis() as (redis, port, server):
        fill(server)
        equal(server.end(), 0)
        equal(redis.command("SAVE"), "OK")
        redis.kill()
        server = shard(redis, port)
        server.query(Client.flush)
        after = fill(server, keys=20, first=5001)
        redis.run()
        wait_written(server)
        wait_until(lambda: redis.command("DBSIZE") <= 1 + 12, "Redis forgets")
        equal(deep(server), after)
        server.kill()
        equal(deep(shard(redis, port)), after)


@needs_redis
def a_flush_does_not_wait_until_a_whole_table_is_written():
    with Redis() as redis:
        port = free_port()
        redis.kill()
        server = shard(redis, port, memory="256M")
        fill(server, keys=20000)
        redis.run()
        wait_until(lambda: redis.command("DBSIZE") > 1, "the first results in Redis")
        server.query(Client.flush)
        wait_until(lambda: redis.command("DBSIZE") <= 1, "Redis forgets")
        check(server.stats()["backing_behind"] > 0, "the table was written meanwhile: this shows nothing")
        server.kill()
        equal(deep(shard(redis, port, memory="256M")), {})


@needs_redis
def what_was_flushed_does_not_come_back_with_an_older_file():
    # The file is of an older version, or saved while the shard wrote all again, with the record of an earlier place.
    for command, *words in (("HDEL", "stamp"), ("HSET", "place", "1")):
        with shard_over_redis() as (redis, port, server):
            server.query(Client.flush)  # not the one that counts
            fill(server)
            wait_written(server)
            redis.command(command, name_of(port), *words)
            equal(redis.command("SAVE"), "OK")
            server.query(Client.flush)
            wait_until(lambda: redis.command("DBSIZE") <= 1, "Redis forgets")
            after = fill(server, keys=20, first=5001)
            wait_written(server)
            redis.kill()
            wait_until(lambda: server.stats()["backing_lost"] == 1, "the loss is seen")
            redis.run()
            server.wait_line("connected again", "err")
            wait_written(server)
            equal(deep(server), after)
            server.kill()
            equal(deep(shard(redis, port)), after)


@needs_redis
def a_lost_connection_after_a_flush_forgets_nothing_more():
    def forgotten():
        return redis.info("commandstats")["cmdstat_unlink"].split(",")[0]
    with shard_over_redis() as (redis, _, server):
        fill(server)
        wait_written(server)
        server.query(Client.flush)
        wait_until(lambda: redis.command("DBSIZE") <= 1, "Redis forgets")
        fill(server)
        wait_written(server)
        before = forgotten()
        redis.command("CLIENT", "KILL", "TYPE", "normal")
        server.wait_line("connected again", "err")
        equal(forgotten(), before)


def name_of(port):
    return f"abdada:backing:{socket.gethostname()}/127.0.0.1:{port}"


@needs_redis
def a_record_of_no_possible_table_is_none():
    with Redis() as redis:
        port = free_port()
        redis.command("HSET", name_of(port), "place", "1", "buckets", 2 ** 57)
        server = shard(redis, port)
        before = fill(server)
        equal(server.end(), 0)
        equal(deep(shard(redis, port)), before)


@needs_redis
def a_signal_ends_it_while_it_reads():
    with Redis() as redis:
        port = free_port()
        redis.command("HSET", name_of(port), "place", "1", "buckets", 2 ** 36)  # days of reading
        server = Process("ttserver", "--listen", f"127.0.0.1:{port}", "--memory", "4M", "--backing", redis.url)
        wait_until(lambda: "cmdstat_hgetall" in redis.info("commandstats"), "it reads")
        server.send_signal(signal.SIGTERM)
        check(server.wait() != 0, "nothing was served")


class Liar:
    """Answers each command with the same bytes, again and again, as long as they are read."""

    def __init__(self, answer):
        self.answer, self.socket = answer, socket.create_server(("127.0.0.1", 0))
        self.url = f"redis://127.0.0.1:{self.socket.getsockname()[1]}"
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            one, _ = self.socket.accept()
            with one:
                try:
                    while one.recv(4096):
                        one.sendall(self.answer)
                except OSError:
                    pass


def a_redis_that_lies_is_one_event():
    for answer, words in ((b"$99999999999\r\n" + bytes(64 << 20), "too large"),
                          (b"*99999999\r\n", "protocol"),
                          (b"*2\r\n" * 1000000, "protocol"),
                          (b"*100000\r\n" * 2, "protocol"),
                          (b"nonsense\r\n", "protocol")):
        server = shard(Liar(answer), free_port(), memory="4M")
        check_one_event(server, words, "retry")
        check(server.resident_bytes() < (600 if SANITIZED else 100) << 20, server.resident_bytes())
        equal(server.end(), 0)


@needs_redis
def a_password_comes_from_the_environment():
    with Redis("--databases", "4", password="open sesame") as redis:
        redis.url += "/3"
        port = free_port()
        server = shard(redis, port)
        check_one_event(server, "retry")
        server.kill()
        os.environ["ABDADA_REDIS_PASSWORD"] = "open sesame"
        try:
            server = shard(redis, port)
            before = fill(server)
            wait_written(server)
            equal(server.stats()["backing_lost"], 0)
            server.kill()
            server = shard(redis, port)
            equal(deep(server), before)
            check("sesame" not in "".join(server.lines["err"]), "the log has the password")
        finally:
            del os.environ["ABDADA_REDIS_PASSWORD"]


@needs_redis
def rights_that_are_wanted_are_said():
    needed = "reset on >sesame ~abdada:backing:* +ping +select +hmget +hgetall +hset +unlink"
    os.environ["ABDADA_REDIS_PASSWORD"] = "sesame"
    try:
        with Redis() as redis:
            redis.command("ACL", "SETUSER", "shard", *needed.split())
            url = redis.url.replace("//", "//shard@")
            server = Shard(free_port(), "--backing", url)
            fill(server)
            wait_written(server)
            equal(server.end(), 0, server.tail())
            equal(lines(server, "NOPERM"), [], server.tail())
            redis.command("ACL", "SETUSER", "shard", "-hset")
            server = Shard(free_port(), "--backing", url)
            server.wait_line("NOPERM .*: our user needs .*HSET", "err")
    finally:
        del os.environ["ABDADA_REDIS_PASSWORD"]


@needs_redis
def what_is_wrong_under_our_prefix_is_one_event():
    with shard_over_redis() as (redis, port, server):
        fill(server)
        wait_written(server)
        server.kill()
        name = name_of(port)
        equal(redis.command("EXISTS", name), 1, name)
        equal(redis.command("SET", name, "text"), "OK")
        server = shard(redis, port)
        check_one_event(server, "WRONGTYPE")
        equal(server.stats()["backing_lost"], 1)
        before = fill(server)
        equal(redis.command("DEL", name), 1)
        server.wait_line("connected again", "err")
        server.kill()
        equal(deep(shard(redis, port)), before)


def wrong_use_is_refused():
    at = ["--listen", "127.0.0.1:7400"]
    for options in (at + ["--backing", "redis+cluster://127.0.0.1:1"], at + ["--backing", "rediss://127.0.0.1:1"],
                    at + ["--backing", "http://127.0.0.1"], at + ["--backing", "redis://h", "--snapshot", "f"],
                    at + ["--backing", "redis://u:sesame@127.0.0.1:1"],
                    ["--listen", "127.0.0.1:0", "--backing", "redis://127.0.0.1:1"],
                    at + ["--backing", "redis://h", "--backing-depth", "251"]):
        process = Process("ttserver", *options)
        equal(process.wait(), 2, process.err())
        equal(len(process.lines["err"]), 1, process.err())
        check("sesame" not in process.err(), process.err())


TESTS = [
    a_killed_shard_has_its_results_again,
    only_results_of_the_depth_are_kept,
    what_is_unwritten_is_written_at_the_end,
    what_cannot_be_written_at_the_end_is_said,
    a_redis_that_dies_is_one_event_and_one_that_lost_all_gets_all,
    a_redis_that_comes_later_is_filled,
    a_redis_that_comes_later_with_results_is_read,
    a_redis_that_reads_its_file_is_waited_for,
    a_redis_that_answers_nothing_keeps_nobody_waiting,
    a_full_redis_is_one_event,
    another_size_of_the_table_has_the_same_results,
    each_shard_of_a_process_has_its_own,
    what_was_flushed_does_not_come_back,
    what_was_flushed_while_redis_was_away_does_not_come_back,
    a_flush_does_not_wait_until_a_whole_table_is_written,
    what_was_flushed_does_not_come_back_with_an_older_file,
    a_lost_connection_after_a_flush_forgets_nothing_more,
    a_record_of_no_possible_table_is_none,
    a_signal_ends_it_while_it_reads,
    a_redis_that_lies_is_one_event,
    a_password_comes_from_the_environment,
    rights_that_are_wanted_are_said,
    what_is_wrong_under_our_prefix_is_one_event,
    wrong_use_is_refused,
]

if __name__ == "__main__":
    sys.exit(main(TESTS, unstable=STARVED))
