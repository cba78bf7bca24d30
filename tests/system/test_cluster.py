#!/usr/bin/python3
"""The programs together: the same score whatever is started and whatever is killed. TAP.

    BIN=build/dev/bin QUICK=1 tests/system/test_cluster.py
"""
import functools
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

from cluster import (STRICT, long_search, STARVED, QUICK, SHORT, ROOT, Cluster, Failure, Shard, Worker, answers, ask, at, check, equal,
                     free_port, main, path_of, promised, right, run, start, top, wait_until)
from uci import Uci, legal_moves

BRATKO_KOPEC = os.path.join(ROOT, "tests/data/chess/bratko-kopec.epd")
START = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"
FIELDS = """id position depth score score_kind bestmove pv nodes own_nodes time_ms nps workers
    shards_up shards refused duplicated overhead_estimate waiting bytes""".split()  # promised by the command-line contract
DEPTH = 5 if SHORT else 6
LONG, BRIEF = 1.0 if SHORT else 2.0, 0.2  # seconds alone: for a kill to fall into; for helpers to come


def bratko_kopec():
    with open(BRATKO_KOPEC) as file:
        return [line.strip() for line in file]


def suite(lines):
    file = tempfile.NamedTemporaryFile("w", suffix=".epd")
    file.write("\n".join(lines) + "\n")
    file.flush()
    return file


CHOSEN = bratko_kopec()[:12:4] if SHORT else bratko_kopec()[::4]
CHOSEN_FILE = suite(CHOSEN)


def outcome(objects):
    return [(o["id"], o["depth"], o["score_kind"], o["score"]) for o in objects]


@functools.lru_cache(None)
def expected_scores():
    return outcome(ask("--epd", CHOSEN_FILE.name, "--depth", DEPTH, "--algorithm", "sequential",
                       *STRICT))


def check_long(front):
    position, depth, score = front.question
    found, = answers(front)
    right((found["depth"], found["score"], found["stopped"]), (depth, score, False), position)
    return found


def start_long(cluster, seconds, *options):
    """A search that shards are asked by now, and often. After one that ends before it is seen a longer one follows. Its
    question: what it was asked, and the score."""
    for times in (1, 2, 4, 8):
        position, depth, score = long_search(times * seconds)
        front = cluster.start(position, "--depth", depth, "--remote-depth", 3, *STRICT, *options)
        front.question = position, depth, score
        try:
            cluster.wait_searching(front)
            break
        except Failure:
            if front.running() or times == 8:
                raise
    return front


def wait_for_help(cluster, workers, shards=None):
    """Short searches until so many workers take part, and shards: on a busy machine a search may be over before one does."""
    position, depth, score = long_search(BRIEF)

    def helped():
        found, = cluster.ask(position, "--depth", depth, *STRICT)
        right(found["score"], score)
        return found["workers"] == workers and shards in (None, found["shards_up"])
    wait_until(helped, f"{workers} workers and {shards or 'all'} shards in one search")


# ---- one score ----

def threads_do_not_move_the_strict_score():
    for threads, algorithm in ((1, "abdada"), (2, "abdada"), (4, "abdada"), (2, "abdada-paper"),
                               (2, "shared-table")):
        found = ask("--epd", CHOSEN_FILE.name, "--depth", DEPTH, "--threads", threads,
                    "--algorithm", algorithm, *STRICT)
        right(outcome(found), expected_scores(), algorithm, threads, "threads")


def a_cluster_does_not_move_the_strict_score():
    with Cluster(private=True) as cluster:  # alone with a table a shallow search asks next to nothing
        found = cluster.ask("--epd", CHOSEN_FILE.name, "--depth", DEPTH, "--threads", 2, "--private", *STRICT)
        right(outcome(found), expected_scores(), "remote_depth auto")
    with Cluster() as cluster:
        for algorithm in ("abdada", "abdada-paper", "shared-table")[:2 if SHORT else 3]:
            found = cluster.ask("--epd", CHOSEN_FILE.name, "--depth", DEPTH, "--threads", 2,
                                "--algorithm", algorithm, "--remote-depth", DEPTH - 2, *STRICT)
            right(outcome(found), expected_scores(), algorithm)
            equal({o["shards"] for o in found}, {2})
            # On a busy machine a shard may be taken for dead for a round trip: not all the time.
            check(any(o["shards_up"] == 2 for o in found), "both shards are used", found)
        again = answers(start("--servers", cluster.servers, "--positions", "together", "--epd", CHOSEN_FILE.name, "--depth",
                              DEPTH, "--remote-depth", DEPTH - 2, *STRICT))
        right(outcome(again), expected_scores(), "tables that hold results")


def a_full_table_does_not_move_the_strict_score():
    found = ask("--epd", CHOSEN_FILE.name, "--depth", DEPTH, "--threads", 2, "--hash", 1, *STRICT)
    right(outcome(found), expected_scores())


def two_front_ends_get_their_own_answers():
    first, second = CHOSEN[:len(CHOSEN) // 2], CHOSEN[len(CHOSEN) // 2:]
    with Cluster() as cluster, suite(first) as one, suite(second) as two:
        fronts = [cluster.start("--epd", file.name, "--depth", DEPTH, "--remote-depth", DEPTH - 2, *STRICT)
                  for file in (one, two)]
        found = sum((outcome(answers(front)) for front in fronts), [])
        right(found, expected_scores())


# ---- they really work together ----

def workers_meet_and_defer():
    depth = long_search(BRIEF)[1]
    rounds = 10  # the scheduler decides whether they meet in a short search
    with Cluster(shards=2, workers=2) as cluster, suite(bratko_kopec()[10:18:5]) as file:
        for algorithm in ("abdada", "abdada-paper"):
            busy, deferred, most, duplicated = 0, 0, 0, []
            for _ in range(rounds):
                found = cluster.ask("--epd", file.name, "--depth", depth, "--remote-depth", 3,
                                    "--algorithm", algorithm, *STRICT)
                for o in found:
                    most = max(most, o["workers"])
                    check(o["workers"] <= 2 and o["nodes"] >= max(o["own_nodes"], 1), o)
                    check(o["workers"] == 0 or o["nodes"] > o["own_nodes"], "workers count", o)
                    check(o["asks"] > 0 and 0 <= o["duplicated"] < 1, o)
                    duplicated.append(o["duplicated"])
                    in_vain = o["duplicated_nodes"] + o["abandoned_nodes"]
                    check(abs(o["overhead_estimate"] - in_vain / (o["nodes"] - in_vain)) < 1e-6, o)
                    check(0 <= o["waiting"] <= 1 and o["bytes"] > 0, o)
                busy += sum(o["busy"] for o in found)
                deferred += sum(o["deferred"] for o in found)
                if busy > 0 and deferred > 0 and most == 2:
                    break
            equal(most, 2, "workers took part")
            print(f"# {algorithm}: busy {busy}, deferred {deferred}, duplicated "
                  f"{min(duplicated):.2f} to {max(duplicated):.2f}")
            check(min(duplicated) < 0.5, "duplicated", duplicated)
            check(busy + deferred > 0, algorithm, "the searchers never met")
            check(busy > 0 or algorithm != "abdada-paper", "no searcher was answered BUSY")


COST = r"overhead >=\d+\.\d%  duplicated \d+\.\d%"
COST_OF_SHARDS = r"  waiting \d+\.\d%  \d+\.\d kB/s"


def what_several_searchers_cost_is_said():
    """With --verbose in every line of progress, and for all positions at the end; not of one searcher alone."""
    with Cluster(shards=1, workers=1) as cluster:
        wait_until(lambda: cluster.ask(START, "--time", 500)[0]["workers"] == 1, "the worker to help")

        def said():  # progress is said once a second
            done = run("abdada", "analyse", "--servers", cluster.servers, "--fresh", "--time", 1500, "--verbose", START)
            if not done.lines["out"][-1].startswith("all searchers: "):  # there was one
                return False
            check(re.fullmatch(rf"all searchers: \d+\.\d\d Mnodes/s  {COST}{COST_OF_SHARDS}", done.lines["out"][-1]), done.out())
            return re.search(rf"^  score \S+  pv [a-h1-8 ]+  depth \d+  \d.* Mnodes/s  {COST}{COST_OF_SHARDS}  workers 1  shards 1/1",
                             done.err(), re.M)
        wait_until(said, "a line of progress with the worker")
    done = run("abdada", "analyse", "--threads", 2, "--private", "--epd", CHOSEN_FILE.name, "--depth", 4)
    check(re.fullmatch(rf"all searchers: \d+\.\d\d Mnodes/s  {COST}", done.lines["out"][-1]), done.out())
    done = run("abdada", "analyse", "--depth", 4, START)
    check("overhead" not in done.out() + done.err(), done.out())


def what_each_host_contributes_is_said():
    """Of a worker that was killed its last report counts."""
    position, _, _ = long_search(BRIEF)
    with Cluster(shards=1, workers=2, private=True) as cluster:
        wait_for_help(cluster, 2)
        front = cluster.start(position, "--depth", 60, "--threads", 2)
        cluster.wait_searching(front)
        wait_until(lambda: len(top(cluster.servers)[1]["host"]) == 3, "three hosts that search")

        def all_search():
            seen = {row["name"]: row for row in top(cluster.servers)[1]["host"]}
            return {"w0", "w1"} < set(seen) and all(row["nodes_per_s"] > 0 for row in seen.values()) and seen
        seen = wait_until(all_search, "nodes of each")
        check(all(0 <= row["talking"] <= 1.5 and row["bytes_sent"] > 0 for row in seen.values()), seen)
        cluster.workers[1].kill()
        wait_until(lambda: cluster.shards[0].stats()["workers"] == 1, "the session to end")
        front.send_signal(signal.SIGINT)
        found, = answers(front)
        hosts = {"self" if host["self"] else host["name"]: host for host in found["hosts"]}
        equal(sorted(hosts), ["self", "w0", "w1"], found["hosts"])
        equal([host["self"] for host in found["hosts"]], [True, False, False])
        equal([hosts[name]["gone"] for name in ("self", "w0", "w1")], [False, False, True])
        equal([hosts[name]["searchers"] for name in ("self", "w0", "w1")], [2, 1, 1])
        equal(sum(host["nodes"] for host in found["hosts"]), found["nodes"])
        equal(hosts["self"]["nodes"], found["own_nodes"])
        equal(sum(host["asks"] for host in found["hosts"]), found["asks"])
        equal(sum(host["bytes_sent"] + host["bytes_received"] for host in found["hosts"]), found["bytes"])
        for host in found["hosts"]:
            check(host["nodes"] > 0 and 0 <= host["waiting"] <= host["talking"] <= 1, host)
        check(hosts["w1"]["nodes"] >= seen["w1"]["nodes"], hosts, seen)
        wait_until(lambda: re.search(r"(?m)^host  +searchers .*\n\S+ .*  this process\nw0  +1 +\d+ +\d+\.\d\d ",
                                     run("abdada", "analyse", *at(cluster.servers), "--fresh", "--time", 1500, START).out()),
                   "a table with the worker")
    alone, = ask(START, "--depth", 4)
    equal([(host["self"], host["nodes"]) for host in alone["hosts"]], [(True, alone["nodes"])])
    done = run("abdada", "analyse", "--depth", 4, START)
    check("searchers" not in done.out(), done.out())


def a_finished_search_leaves_nothing_at_the_shards():
    with Cluster() as cluster:
        cluster.ask("--epd", CHOSEN_FILE.name, "--depth", DEPTH, "--remote-depth", 3, *STRICT)
        for shard in cluster.shards:
            wait_until(lambda: shard.stats()["jobs"] == 0, "the job to be withdrawn")
            wait_until(lambda: shard.stats()["inflight_entries"] == 0, "the in-flight entries to end")


def a_worker_waits_for_its_first_shard():
    port = free_port()
    worker = Worker(f"127.0.0.1:{port}")
    shard = Shard(port)
    wait_until(lambda: shard.stats()["workers"] == 1, "the worker to come")
    position, depth, score = long_search(BRIEF)

    def helped():
        found, = ask(position, "--depth", depth, "--servers", shard.address, "--fresh", *STRICT)
        right(found["score"], score)
        return found["workers"] == 1
    wait_until(helped, "its help")
    check(worker.running())


def a_shard_that_returns_is_used_again():
    with Cluster(shards=1, workers=1) as cluster:
        port = int(cluster.shards[0].address.rsplit(":", 1)[1])
        cluster.shards[0].kill()
        cluster.shards[0] = Shard(port)
        wait_until(lambda: cluster.shards[0].stats()["workers"] == 1, "the worker to return")
        wait_for_help(cluster, 1, 1)


# ---- failures ----

def no_shard_at_all_costs_less_than_a_second():
    arguments = ["--epd", CHOSEN_FILE.name, "--depth", 4, *STRICT]
    with socket.socket() as deaf:  # accepts connections and never answers
        deaf.bind(("127.0.0.1", 0))
        deaf.listen()
        dead = f"127.0.0.1:{free_port()},127.0.0.1:{deaf.getsockname()[1]}"
        alone = start(*arguments)
        expected = outcome(answers(alone))
        lost = start("--servers", dead, *arguments)
        found = answers(lost)
        crowd = start("--threads", 16, *arguments)
        equal(outcome(answers(crowd)), expected)
        many = start("--servers", dead, "--threads", 16, *arguments)
        equal(outcome(answers(many)), expected)
        promised("16 threads and two dead servers, more than without", many.seconds() - crowd.seconds(), 1)
    equal(outcome(found), expected)
    equal({(o["shards_up"], o["shards"], o["workers"]) for o in found}, {(0, 2, 0)})
    check(f"no shard answered at {dead.split(',')[0]} and 1 more; searched on this machine only" in lost.err(), lost.err())
    promised("two dead servers, more than without", lost.seconds() - alone.seconds(), 1)


def a_worker_is_killed():
    with Cluster() as cluster:
        front = start_long(cluster, LONG)
        cluster.workers[0].kill()
        check(front.running())
        check_long(front)
        for shard in cluster.shards:
            wait_until(lambda: shard.stats()["workers"] == 1, "the session to expire")
            wait_until(lambda: shard.stats()["inflight_entries"] == 0, "its in-flight entries to end")


def search_while_killed(cluster, shards):
    """The strict answer of a search whose shards are killed; one beside it, without end, notices."""
    beside = cluster.start("--depth", 60, "--strict")
    cluster.wait_searching(beside)
    front = start_long(cluster, LONG)
    seen, left = len(beside.lines["err"]), len(cluster.shards) - len(shards)
    for shard in shards:
        shard.kill()
    check(front.running())
    beside.wait_line(f"shards {left}/{len(cluster.shards)}", "err", begin=seen)
    beside.send_signal(signal.SIGINT)
    answers(beside)
    check_long(front)


def a_shard_is_killed():
    with Cluster() as cluster:
        search_while_killed(cluster, cluster.shards[1:])
        check(all(worker.running() for worker in cluster.workers))


def all_shards_are_killed():
    with Cluster() as cluster:
        search_while_killed(cluster, cluster.shards)
        check(all(worker.running() for worker in cluster.workers))


def all_workers_are_killed():
    with Cluster() as cluster:
        front = start_long(cluster, LONG)
        for worker in cluster.workers:
            worker.kill()
        check(front.running())
        check_long(front)


def everything_else_is_killed():
    with Cluster() as cluster:
        front = start_long(cluster, LONG, "--threads", 2)
        for process in cluster.workers + cluster.shards:
            process.kill()
        check(front.running())
        check_long(front)


def a_shard_stalls_and_returns():
    with Cluster() as cluster:
        usual = check_long(start_long(cluster, LONG))["waited"]
        front = start_long(cluster, LONG)
        cluster.shards[0].stop()
        found = check_long(front)
        print(f"# part of the time that was waited: {found['waited']:.2f}, without a stall {usual:.2f}")
        check(found["waited"] < 0.85, "waiting for the stalled shard took", found["waited"])  # all of it, if each ask did
        cluster.shards[0].send_signal(signal.SIGCONT)
        wait_until(lambda: cluster.shards[0].stats()["workers"] == 2, "the workers to return")


def a_worker_stalls_and_returns():
    with Cluster() as cluster:
        front = start_long(cluster, LONG)
        cluster.workers[0].stop()
        check_long(front)
        cluster.workers[0].send_signal(signal.SIGCONT)
        wait_until(lambda: cluster.shards[0].stats()["workers"] == 2, "the worker to return")
        wait_for_help(cluster, 2)  # it keeps its job until it is sure that no shard has it any more


def a_front_end_is_killed_and_its_job_ends():
    with Cluster() as cluster:
        front = start_long(cluster, LONG)
        front.kill()
        for shard in cluster.shards:
            wait_until(lambda: shard.stats()["jobs"] == 0, "the job to end")
        wait_for_help(cluster, 2)


def sigterm_ends_a_worker_at_once():
    with Cluster() as cluster:
        front = start_long(cluster, LONG)
        for worker in cluster.workers:  # while it searches
            begin = time.monotonic()
            equal(worker.end(signal.SIGTERM), 0)
            promised("SIGTERM ends a worker that searches", time.monotonic() - begin, 2)
        check_long(front)
        idle = Worker(cluster.servers, threads=2)
        begin = time.monotonic()
        equal(idle.end(signal.SIGINT), 0)
        promised("SIGINT ends an idle worker", time.monotonic() - begin, 2)


def an_interrupt_prints_the_best_move():
    with Cluster() as cluster:
        front = cluster.start(START, "--depth", 30)
        cluster.wait_searching(front)
        begin = time.monotonic()
        front.send_signal(signal.SIGINT)
        found, = answers(front)
        promised("SIGINT ends an analysis", time.monotonic() - begin, 2)
        check(found["stopped"] and found["depth"] >= 1 and found["bestmove"] != "none", found)


def limits_are_kept():
    found, = ask(START, "--time", 300)
    check(250 <= found["time_ms"], found)
    promised("--time 300", found["time_ms"] / 1000, 1.3)
    found, = ask(START, "--nodes", 50000)
    check(found["nodes"] < 500000, found)


# ---- UCI ----

def uci_plays_legal_moves():
    uci = Uci()
    uci.say("uci")
    uci.expect("^id name ")
    for option in ("Hash", "Threads", "Servers"):
        uci.expect(f"^option name {option} ")
    uci.expect("^uciok$")
    uci.ready()
    uci.say("ucinewgame", "position startpos moves e2e4", "go depth 5")
    uci.expect("^info depth 5 seldepth [0-9]+ score (cp|mate) -?[0-9]+ nodes [0-9]+ .* pv ")
    move = uci.expect(r"^bestmove (\S+)")[1]
    after = "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1"
    check(move in legal_moves(after), move)
    fen = " ".join(CHOSEN[1].split()[:4]) + " 0 1"
    uci.say(f"position fen {fen}", "go movetime 200")
    begin = time.monotonic()
    check(uci.expect(r"^bestmove (\S+)")[1] in legal_moves(fen))
    promised("movetime 200", time.monotonic() - begin, 1.5)
    uci.say("go wtime 1000 btime 1000 winc 10 binc 10")
    uci.expect(r"^bestmove \S+")
    uci.say("position fen 7k/5Q2/6K1/8/8/8/8/8 b - - 0 1", "go depth 3")  # stalemate
    uci.expect(r"^bestmove \(none\)")
    uci.quit()


def uci_stops_when_asked():
    uci = Uci("--threads", 2)
    uci.say("position startpos", "go infinite")
    uci.expect("^info depth 3 ")
    uci.ready()  # answered while it searches
    begin = time.monotonic()
    uci.say("stop")
    uci.expect(r"^bestmove \S+")
    promised("stop", time.monotonic() - begin, 1)
    uci.say("go infinite")
    uci.expect("^info depth 3 ")
    uci.quit()


def a_uci_stop_right_after_go_is_obeyed():
    uci = Uci()
    uci.say("position startpos")
    for _ in range(20):
        uci.send("go infinite\nstop")  # in one write, so that the search has hardly begun
        uci.expect(r"^bestmove \S+")
    uci.quit()


def uci_quits_out_of_a_bounded_search():
    for limit in ("depth 60", "movetime 600000", "nodes 999999999999"):
        uci = Uci("--threads", 2)
        uci.say("position startpos", f"go {limit}")
        uci.expect("^info depth 3 ")
        uci.quit()


def uci_obeys_its_clock_after_ponderhit():
    uci = Uci()
    uci.say("position startpos", "go ponder wtime 3000 btime 3000")
    uci.expect("^info depth 3 ")
    begin = time.monotonic()
    uci.say("ponderhit")
    uci.expect(r"^bestmove \S+")
    promised("a move with 3 s on the clock", time.monotonic() - begin, 3)
    uci.quit()


def uci_uses_no_cpu_when_there_is_nothing_to_search():
    uci = Uci()
    tick = os.sysconf("SC_CLK_TCK")
    used = lambda: sum(map(int, open(f"/proc/{uci.popen.pid}/stat").read().rsplit(")", 1)[1].split()[11:13])) / tick
    for go, end in (("go infinite", "stop"), ("go ponder wtime 3000 btime 3000", "ponderhit")):
        uci.say("position fen 7k/5Q2/6K1/8/8/8/8/8 b - - 0 1")  # stalemate
        uci.ready()
        uci.say(go)
        uci.ready()
        begin = used()
        time.sleep(0.5)
        check(used() - begin < 0.25, "seconds of CPU time in half a second:", used() - begin)
        equal([line for line in uci.lines["out"][uci.at:] if line.startswith("bestmove")], [])
        uci.say(end)
        uci.expect(r"^bestmove \(none\)")
    uci.quit()


def uci_ends_without_an_input():
    for closed in ("<&-", "<&- >&-", "<&- 2>&-"):
        done = subprocess.run(["sh", "-c", f'exec "$0" uci {closed}', path_of("abdada")], timeout=60)
        equal(done.returncode, 0)


def uci_counts_the_nodes_of_one_search():
    uci = Uci("--threads", 2)
    uci.say("position startpos", "go depth 7")
    uci.expect(r"^bestmove \S+")
    uci.say("position startpos moves e2e4", "go nodes 20000")  # not those of the search before
    check(int(uci.expect(r"^info depth \d+ .* nodes (\d+)")[1]) < 20000, uci.lines["out"][-3:])
    uci.expect(r"^bestmove \S+")
    uci.quit()


def uci_speaks_whole_lines_over_a_cluster():
    with Cluster(shards=2, workers=1) as cluster:
        uci = Uci("--threads", 2, "--servers", cluster.servers)
        uci.say("position startpos", "go movetime 1500")
        while not any(line.startswith("bestmove") for line in uci.lines["out"]):
            uci.ready()
        whole = re.compile(r"^(readyok|bestmove \S+( ponder \S+)?|info (depth|string) .*|id .*|option .*|uciok)$")
        for line in uci.lines["out"]:
            check(whole.match(line) and "readyok" not in line[1:], "not a whole line:", line)
        uci.quit()


def uci_says_what_each_host_contributes():
    said = re.compile(r"info string host (\S+) nodes (\d+) nps \d+ talk \d+\.\d% asks \d+ sent \d+ received \d+")

    def hosts():
        """As the last lines before the move."""
        begin = len(uci.lines["out"])
        uci.say("position startpos", "go movetime 1500")
        uci.expect("^bestmove ")
        lines = [line for line in uci.lines["out"][begin:] if "string host" in line]
        found = [said.fullmatch(line) for line in lines]
        check(all(found), lines)
        equal(lines, [line for line in uci.lines["out"] if not line.startswith("bestmove")][-len(lines):] if lines else [])
        return [match[1] for match in found]
    with Cluster(shards=1, workers=1, private=True) as cluster:
        uci = Uci("--servers", cluster.servers)
        wait_until(lambda: (found := hosts()) and len(found) == 2 and "w0" in found, "the worker to help")
        uci.quit()
    uci = Uci()
    equal(hosts(), [])
    uci.quit()


def uci_answers_before_its_input_ends():
    uci = Uci()
    uci.say("position startpos", "go depth 4")
    uci.close_input()
    equal(uci.wait(), 0)
    equal(sum(line.startswith("bestmove ") for line in uci.lines["out"]), 1)


def uci_joins_and_leaves_a_cluster():
    with Cluster(shards=2, workers=1) as cluster:
        uci = Uci()
        uci.say(f"setoption name Servers value {cluster.servers}", "setoption name Hash value 16")
        uci.ready()
        before = sum(s.stats()["asks"] for s in cluster.shards)
        uci.say("position startpos", f"go depth {long_search(BRIEF)[1]}")
        check(uci.expect(r"^bestmove (\S+)")[1] in legal_moves(START))
        check(sum(s.stats()["asks"] for s in cluster.shards) > before, "no shard was asked")
        for shard in cluster.shards:
            shard.kill()
        uci.say("ucinewgame", "go depth 5")
        check(uci.expect(r"^bestmove (\S+)")[1] in legal_moves(START))
        uci.say("setoption name Servers value <empty>")
        uci.ready()
        uci.quit()


def uci_survives_malformed_commands():
    uci = Uci()
    for line in ("", "   ", "\t", "xyzzy", "go depth", "go depth x", "go depth -3", "go movetime",
                 "go wtime -5 btime x", "position", "position fen", "position fen 8/8/8 w - - 0 1",
                 "position startpos moves e2e5", "position startpos moves", "position moves e2e4",
                 "setoption", "setoption name", "setoption name Nonsense value 3",
                 "setoption name Hash value -4", "setoption name Hash value 99999999999999999999",
                 "setoption name Threads value 0", "setoption name Servers value nonsense",
                 "setoption value 3", "stop", "ponderhit", "uci uci", "x" * 200000,
                 b"\xff\xfe go\n", "position startpos moves " + "g1f3 g8f6 f3g1 f6g8 " * 400):
        uci.say(line)
        uci.say("stop")
    uci.ready()
    uci.send(b"\x00 nothing \x00\nisready\n")  # a zero byte does not swallow the next command
    uci.expect("^readyok$")
    uci.at = len(uci.lines["out"])
    uci.say("position startpos", "go depth 3")
    check(uci.expect(r"^bestmove (\S+)")[1] in legal_moves(START))
    uci.quit()


# ---- command lines ----

def wrong_use_exits_2_with_one_line():
    with suite([CHOSEN[0], "what/is/this w - - id \"x\";"]) as bad, suite([""]) as empty:
        wrong = {
            "abdada": [["nonsense"], ["--nonsense"]],
            "abdada analyse": [
                ["--nonsense"], ["--depth", "0"], ["--depth", "x"], ["--depth", "-1"], ["--depth"],
                ["--depth", "99999"], ["--depth", "5x"], ["--time", "0"], ["--nodes", "-1"],
                ["--threads", "0"], ["--threads", "100000"], ["--hash", "0"], ["--json=perhaps"],
                ["--json", "not a position"], ["not a position"], ["8/8/8/8/8/8/8/8 w - - 0 1"], [START.replace("w", "x")],
                [START, START], [START, "--epd", bad.name], ["--epd", empty.name],
                ["--algorithm", "nope"],
                ["--algorithm", "ybwc", "--select", "full"], ["--algorithm", "ybwc", "--table", "redis://127.0.0.1:1"],
                ["--game", "go"],
                ["--select", "some"], ["--remote-depth", "deep"], ["--remote-depth", "0"],
                ["--servers", "nonsense"], ["--servers", "127.0.0.1:0"], ["--servers", ""],
                ["--servers", "127.0.0.1:7400,"], ["x" * 5000]],
            "abdada perft": [[], ["--depth", "0"], ["--depth", "21"], ["--depth", "2", "nonsense"],
                             ["--depth", "2", "--game", "go"], ["--depth", "1", "--threads", "0"]],
            "abdada sim": [[], ["--depth", "0"], ["--depth", "3", "--workers", "none"],
                           ["--depth", "3", "--game", "go"], ["--depth", "3", "--rtt-us", "-1"],
                           ["--depth", "3", "--hosts", "2", "--workers", "2"], ["--depth", "3", "--threads", "2"],
                           ["--depth", "3", "--hosts", "2", "--threads", "300"],
                           ["--depth", "3", "--hosts", "40", "--threads", "128"],
                           ["--depth", "3", "--bandwidth", "0"], ["--depth", "3", "--bandwidth", "-1"],
                           ["--depth", "3", "--poll-us", "-1"], ["--depth", "3", "--poll-us", "nan"],
                           ["--depth", "3", "--poll-us", "1e300"], ["--depth", "3", "--poll-us", "1001"],
                           ["--depth", "3", "--time", "5"], ["--depth", "3", "--select", "some"]],
            "abdada bench": [["operand"], ["--nonsense"]],
            "abdada uci": [["operand"], ["--servers", "nonsense"], ["--threads", "0"]],
            "abdada nboard": [["operand"], ["--servers", "nonsense"], ["--depth", "0"], ["--game", "othello"]],
            "abdada gtp": [["operand"], ["--servers", "nonsense"], ["--game", "chess"], ["--time", "0"]],
            "ttworker": [[], ["--servers"], ["--servers", "x"], ["--nonsense"], ["operand"],
                         ["--servers", "127.0.0.1:1", "--threads", "0"],
                         ["--servers", "127.0.0.1:1", "--hash", "none"]],
        }
        for program, lines in wrong.items():
            for line in lines[:3] if SHORT else lines:
                done = run(*program.split(), *line)
                said = done.lines["err"]
                equal((done.status, len(said)), (2, 1), program, line, said)
                if "--json" in line or program != "abdada analyse":
                    equal(done.out(), "", program, line)


def failures_exit_1_with_one_line():
    done = run("abdada", "analyse", "--epd", "/no/such/file.epd")
    equal((done.status, done.out(), len(done.lines["err"])), (1, "", 1), done.err())
    check("/no/such/file.epd" in done.err(), done.err())
    done = run("abdada", "analyse", "--epd", "/")
    equal((done.status, done.out(), len(done.lines["err"])), (1, "", 1), done.err())


def help_and_version_are_on_stdout():
    for program in ("abdada", "abdada analyse", "abdada perft", "abdada uci", "abdada nboard", "abdada gtp", "abdada bench",
                    "abdada sim", "abdada top", "ttworker", "ttserver"):
        for option in ("--help", "--version"):
            done = run(*program.split(), option)
            equal((done.status, done.err()), (0, ""), program, option)
            check(done.out(), program, option)


# ---- output for machines ----

def json_has_the_promised_fields():
    found = ask("--epd", CHOSEN_FILE.name, "--depth", 4)
    equal([o["id"] for o in found], [line.split('"')[1] for line in CHOSEN])
    for o in found:
        equal([field for field in FIELDS if field not in o], [], "missing")
        equal(o["depth"], 4 if o["score_kind"] == "cp" else o["depth"])
        check(o["score_kind"] in ("cp", "mate"), o)
        check(o["pv"][0] == o["bestmove"] and o["bestmove"] in legal_moves(o["position"]), o)
        check(o["nodes"] == o["own_nodes"] > 0 and o["workers"] == o["shards"] == 0, o)
        equal((o["overhead_estimate"], o["waiting"], o["bytes"]), (0, 0, 0))
    mate, = ask("6k1/5ppp/8/8/8/8/8/R5K1 w - - 0 1", "--depth", 3)
    equal((mate["score_kind"], mate["score"], mate["bestmove"]), ("mate", 1, "a1a8"))


def perft_counts():
    done = run("abdada", "perft", "--depth", 4, "--json", "--threads", 2)
    equal((done.status, done.err(), len(done.lines["out"])), (0, "", 1))
    figures = json.loads(done.out())
    equal(figures["nodes"], 197281)
    check(figures["time_ms"] >= 0)
    kiwipete = "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq -"
    equal(json.loads(run("abdada", "perft", kiwipete, "--depth", 3, "--json").out())["nodes"],
          97862)


def a_virtual_cluster_is_repeatable():
    runs = []
    for _ in range(2):
        done = run("abdada", "sim", "--depth", 5, "--workers", "1,4", "--seed", 3, "--json")
        equal(done.status, 0, done.err())
        rows = [json.loads(line) for line in done.lines["out"]]
        runs.append([{k: v for k, v in row.items() if k != "wall_seconds"} for row in rows])
    equal(runs[0], runs[1])
    equal([row["workers"] for row in rows], [1, 4])
    fields = """workers speedup efficiency nodes search_overhead communication_overhead
        synchronization_overhead score""".split()
    equal([field for field in fields if field not in rows[0]], [], "missing")
    right(len({row["score"] for row in rows}), 1)


def hosts_of_a_virtual_cluster_share_tables_and_cards():
    options = ["--game", "tree:b=8,d=6,seed=3", "--hosts", "1,2", "--threads", 4, "--rtt-us", 50,
               "--bandwidth", 1000, "--share", 3]
    done = run("abdada", "sim", *options, "--depth", 6, "--json")
    equal((done.status, done.err()), (0, ""))
    one, two = [json.loads(line) for line in done.lines["out"]]
    equal([(row["hosts"], row["workers"]) for row in (one, two)], [(1, 4), (2, 8)])
    equal(one["host_bytes_per_s"], 0)  # its shard is on it
    check(two["host_bytes_per_s"] > 0 and two["host_bytes_per_s_most"] >= two["host_bytes_per_s"], two)
    check(0 < two["shard_load"] <= two["shard_load_most"] < 1, two)
    equal([len(row["by_host"]) for row in (one, two)], [1, 2])
    for row in (one, two):
        equal(sum(host["nodes"] for host in row["by_host"]), row["nodes"])
        check(all(host["searchers"] == 4 and host["waiting"] <= host["talking"] < 1 for host in row["by_host"]), row)
    right(one["score"], two["score"])
    text = run("abdada", "sim", *options, "--depth", 6)
    heading = text.out().splitlines()[0].split()
    equal(heading[:4], ["hosts", "workers", "seconds", "speedup"])
    check("MB/s/host" in heading and "shards" in heading, heading)
    for row in text.out().splitlines()[1:]:
        equal(len(row.split()), len(heading) - 1, row)  # "wall s" is one column
    timed = run("abdada", "sim", *options, "--time", 3)
    equal((timed.status, timed.err()), (0, ""))  # nor is it too small
    heading = timed.out().splitlines()[0].split()
    check("depth" in heading and "speedup" not in heading, heading)
    at = heading.index("depth")
    check(all(int(row.split()[at]) >= 5 for row in timed.out().splitlines()[1:]), timed.out())


def the_bench_signature_is_the_documented_one():
    """A commit that moves it changes docs/testing.md."""
    if QUICK:
        return "takes long"
    with open(os.path.join(ROOT, "docs/testing.md"), encoding="utf-8") as file:
        documented = re.search(r"\*\*chess (\d+),\s+othello (\d+)\*\*", file.read())
    done = run("abdada", "bench", "--json")
    equal((done.status, done.err(), len(done.lines["out"])), (0, "", 1))
    found = json.loads(done.out())
    equal((found["chess"], found["othello"]), (int(documented[1]), int(documented[2])))


QUICK_TESTS = [
    threads_do_not_move_the_strict_score, a_cluster_does_not_move_the_strict_score,
    workers_meet_and_defer, what_several_searchers_cost_is_said, no_shard_at_all_costs_less_than_a_second, a_worker_is_killed,
    all_shards_are_killed, a_worker_waits_for_its_first_shard, uci_plays_legal_moves,
    uci_stops_when_asked, a_uci_stop_right_after_go_is_obeyed, uci_survives_malformed_commands, wrong_use_exits_2_with_one_line,
    failures_exit_1_with_one_line, json_has_the_promised_fields, perft_counts,
]
TESTS = [
    threads_do_not_move_the_strict_score, a_cluster_does_not_move_the_strict_score,
    a_full_table_does_not_move_the_strict_score, two_front_ends_get_their_own_answers,
    workers_meet_and_defer, what_several_searchers_cost_is_said, what_each_host_contributes_is_said,
    a_finished_search_leaves_nothing_at_the_shards,
    a_worker_waits_for_its_first_shard, a_shard_that_returns_is_used_again,
    no_shard_at_all_costs_less_than_a_second, a_worker_is_killed, a_shard_is_killed,
    all_shards_are_killed, all_workers_are_killed, everything_else_is_killed,
    a_shard_stalls_and_returns, a_worker_stalls_and_returns,
    a_front_end_is_killed_and_its_job_ends, sigterm_ends_a_worker_at_once,
    an_interrupt_prints_the_best_move, limits_are_kept, uci_plays_legal_moves,
    uci_stops_when_asked, a_uci_stop_right_after_go_is_obeyed, uci_quits_out_of_a_bounded_search,
    uci_obeys_its_clock_after_ponderhit, uci_uses_no_cpu_when_there_is_nothing_to_search,
    uci_ends_without_an_input, uci_counts_the_nodes_of_one_search,
    uci_speaks_whole_lines_over_a_cluster, uci_says_what_each_host_contributes, uci_answers_before_its_input_ends, uci_joins_and_leaves_a_cluster,
    uci_survives_malformed_commands, wrong_use_exits_2_with_one_line,
    failures_exit_1_with_one_line, help_and_version_are_on_stdout, json_has_the_promised_fields,
    perft_counts, a_virtual_cluster_is_repeatable, hosts_of_a_virtual_cluster_share_tables_and_cards,
    the_bench_signature_is_the_documented_one,
]

if __name__ == "__main__":
    sys.exit(main(QUICK_TESTS if QUICK else TESTS, unstable=STARVED))
