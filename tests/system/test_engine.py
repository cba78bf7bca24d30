#!/usr/bin/python3
"""Engines of others: `ttworker --engine` and `abdada uci --engine`, with an engine that has faults. TAP."""
import importlib.util
import os
import random
import re
import shlex
import signal
import sys
import time
import urllib.request

from cluster import (BIN, PATIENCE, STARVED, ROOT, SHORT, Failure, Process, Shard, check, children, equal, main, promised, run,
                     scratch, top, wait_until)
from uci import Uci, legal_moves

FAKE = os.path.join(ROOT, "tests/system/fake_engine.py")
BEST = r"^bestmove (\S+)"


class Fake:
    """The command of an engine, its faults and what it was given."""

    def __init__(self, **options):
        self.folder = scratch("fake")
        self.fault, self.log = os.path.join(self.folder, "fault"), os.path.join(self.folder, "log")
        words = [sys.executable, FAKE, "--fault", self.fault, "--log", self.log]
        self.command = shlex.join(words + [f"--{name}={value}" for name, value in options.items()])

    def set(self, faults):
        with open(self.fault + ".new", "w", encoding="ascii") as file:
            file.write(faults)
        os.rename(self.fault + ".new", self.fault)

    def commands(self):
        try:
            with open(self.log, encoding="utf-8") as file:
                return file.read().splitlines()
        except OSError:
            return []


def worker(place, fake, *options, name=None):
    for _ in range(5):
        process = Process("ttworker", "--servers", place, "--engine", getattr(fake, "command", fake), *options, *(["--name", name] if name else []))
        wait_until(lambda process=process: "ready" in process.lines["out"] or not process.running(), "a worker")
        if process.running() or process.wait() == 0 or "it does not answer 'uci'" not in process.err():
            break  # else Python took long to start
    process.wait_line("^ready$")
    return process


def says(lines, move):
    """Whether a line of a search has that move: an engine spoke in time."""
    return any(re.match(rf"info depth \d+ .* pv {move}\b", line) for line in lines)


class Front(Uci):
    def __init__(self, fake, place=None, *options):
        self.searches = 0
        super().__init__("--engine", getattr(fake, "command", fake), *(["--servers", place] if place else []), *options)
        self.ready()

    def say(self, *lines):
        super().say(*lines)
        self.searches += sum(line.split(" ")[0] == "go" for line in lines)

    def go(self, words="go movetime 300", seconds=None):
        """The move, and the lines of the search. It comes by its time, and is the only one."""
        begin, first = time.monotonic(), len(self.lines["out"])
        self.say(words)
        move = self.expect(BEST)[1]
        found = re.search(r"movetime (\d+)", words)
        if found or seconds:
            promised(words, time.monotonic() - begin, seconds or int(found[1]) / 1000 + 0.2)
        return move, self.lines["out"][first:self.at]

    def go_until(self, move, late=("e2e4",), words="go movetime 300"):
        """The lines of the first search that has this move. On a busy machine an engine's lines may come too late: then the
        search has one of the moves `late`, and no other. None: it may have any, where no line has this move."""
        def searched():
            found, lines = self.go(words)
            check(found == move or (not says(lines, move) if late is None else found in late), found, lines)
            return lines if found == move else None
        return wait_until(searched, f"the move {move}")

    def begin_search(self, movetime_ms, line):
        """When a search began that is under way, as an engine's `line` shows. On a busy machine it may be over before: then
        another one begins."""
        def begin():
            now = time.monotonic()
            self.say(f"go movetime {movetime_ms}")
            is_over = self.expect(f"^({line}|bestmove )")[1] == "bestmove "
            check(not is_over or time.monotonic() - now > movetime_ms / 1000 - 0.05, "it moved at once", self.tail())
            return None if is_over else now
        return wait_until(begin, f"a search that says {line}")

    def quit(self):
        """Each search was answered once."""
        self.ready()
        wait_until(lambda: self.moves() >= self.searches, "all moves")
        equal(self.moves(), self.searches, self.tail())
        super().quit()

    def moves(self):
        return sum(line.startswith("bestmove") for line in self.lines["out"])


def engine_of(process):
    return wait_until(lambda: children(process.popen.pid), f"the engine of {process.name}")[0]


def lives(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def most_nodes(lines):
    return max([int(n) for line in lines for n in re.findall(r" nodes (\d+)", line)], default=0)


def searches(fake):
    return sum(line.startswith("go ") for line in fake.commands())


def test_it_acts_like_the_engine():
    fake = Fake()
    raw = Process("/bin/sh", "-c", "exec " + fake.command)
    front = Front(fake)
    raw.send("isready")
    for process in raw, front:
        process.wait_line("^readyok$")
        process.send("uci")
        process.wait_line("^uciok$")
    equal(front.lines["out"], raw.lines["out"])
    front.say("d")
    front.expect("^a board$")
    front.say("setoption name Skill Level value 3", "setoption name Clear Hash", "what is this")
    front.ready()
    check({"setoption name Skill Level value 3", "setoption name Clear Hash", "what is this"} <= set(fake.commands()), fake.commands())
    equal(front.go("go depth 5")[0], "e2e4")
    equal([line for line in front.lines["out"] if line.startswith("info depth 5")],
          ["info depth 5 score cp 20 nodes 5000 nps 100000 pv e2e4 e7e5"])
    check("bestmove e2e4 ponder e7e5" in front.lines["out"], front.tail())
    front.quit()
    raw.send("quit")
    equal(raw.wait(), 0)


def test_all_vote_and_all_nodes_count():
    shard = Shard()
    best, liar = Fake(line="d2d4 d7d5", score=90), Fake(line="e2e5", score=999)
    own = Fake()
    front = Front(own, shard.address)
    front.go_until("e2e4", late=None)
    helper = worker(shard.address, best, name="best")
    front.ready()
    lines = front.go_until("d2d4")
    check("bestmove d2d4 ponder d7d5" in lines, lines)
    check(any(re.search(r"score cp 90 .* pv d2d4 d7d5$", line) for line in lines), lines)
    check(most_nodes(lines) > 35000, "nodes of two", lines)
    worker(shard.address, liar, name="liar")
    wait_until(lambda: "workers 2" in "".join(front.go()[1]), "two workers")
    front.go_until("d2d4")
    front.say("go infinite")
    wait_until(lambda: len(top(shard.address)[1]["job"]) == 1, "a job")

    def is_shown():
        found = top(shard.address)[1]
        row, names = (found["job"] or [{}])[0], {w["name"] for w in found["worker"] if w.get("job")}
        return row.get("game") == "uci:Fake 1" and row.get("reached", 0) > 2 and names == {"best", "liar"}
    wait_until(is_shown, "engines and their depth in top")
    front.say("stop")
    equal(front.expect(BEST)[1], "d2d4")
    helper.end()
    equal(front.go("go movetime 500 searchmoves e2e4 a2a3")[0], "e2e4")
    front.quit()


def test_more_nodes_than_a_report_has():
    shard, begin = Shard(), time.monotonic()
    for _ in range(4):  # 2^46 of each count at most
        worker(shard.address, Fake(line="d2d4", score=90, nodes=10 ** 13))
    front = Front(Fake(depth=10 ** 6), shard.address)
    front.say("go infinite")
    wait_until(lambda: most_nodes(front.lines["out"]) > 2 ** 48, "nodes of all")
    wait_until(lambda: any(row["reached"] > 100 for row in top(shard.address)[1]["job"]), "the depth in top")
    front.say("stop")
    equal(front.expect(BEST)[1], "d2d4")
    seconds = time.monotonic() - begin
    for line, nodes, nps in re.findall(r"^(.* nodes (\d+) nps (\d+) .*)$", front.out(), re.M):
        check(int(nps) * seconds > 0.9 * int(nodes), line)
    front.quit()


def test_a_mate_comes_first_and_a_bad_one_last():
    shard = Shard()
    worker(shard.address, Fake(line="a2a3", mate=-2))
    worker(shard.address, Fake(line="d2d4 d7d5", mate=7, depth=3))
    front = Front(Fake(score=500), shard.address)
    wait_until(lambda: "workers 2" in "".join(front.go()[1]), "two workers")
    lines = front.go_until("d2d4")
    check(any("score mate 7" in line for line in lines), lines)
    front.quit()


def test_limits_reach_the_others():
    shard = Shard()
    other = Fake()
    worker(shard.address, other)
    front = Front(Fake(), shard.address)
    for number, (said, received) in enumerate((("depth 20", "depth 20"), ("nodes 20000", "nodes 20000"), ("movetime 200", "infinite"),
                                            ("wtime 4000 btime 9000", "infinite"), ("mate 9 movetime 200", "mate 9"),
                                            ("movetime 200 searchmoves e2e4 d2d4", "infinite searchmoves e2e4 d2d4"))):
        front.say("position startpos moves e2e4 e7e5" if number % 2 else "position startpos")
        wait_until(lambda said=said, received=received: front.go("go " + said) and "go " + received in other.commands(), received)
    check("position startpos moves e2e4 e7e5" in other.commands(), other.commands())
    count = other.commands().count("ucinewgame")
    front.say("ucinewgame")
    wait_until(lambda: front.go() and other.commands().count("ucinewgame") > count, "a new game")
    front.quit()


def test_ponder():
    shard = Shard()
    worker(shard.address, Fake(line="d2d4", score=99, depth=10 ** 6))
    front = Front(Fake(depth=10 ** 6), shard.address)
    front.say("isready", "go ponder wtime 3000 btime 3000")
    front.expect("info depth 30 ")
    wait_until(lambda: is_helped(front), "help")
    begin = time.monotonic()
    front.say("ponderhit")
    equal(front.expect(BEST)[1], "d2d4")
    promised("ponderhit", time.monotonic() - begin, 1)
    front.say("go ponder wtime 3000 btime 3000", "ponderhit")
    front.expect(BEST)
    front.say("go ponder wtime 3000 btime 3000", "stop")
    front.expect(BEST)
    front.quit()


def test_ponderhit_to_an_engine_that_dies_before_its_search():
    """The next one does not ponder."""
    own = Fake()
    front = Front(own)
    own.set("die-asked")
    front.say("position startpos\ngo ponder wtime 3000 btime 3000\nponderhit")
    front.expect(BEST)
    check("ponderhit" not in own.commands(), own.commands())
    equal([line[:9] for line in own.commands() if line.startswith("go ")], ["go wtime "])
    check("info string the engine: it ended with status 3; it is started again" in front.lines["out"], front.tail())
    front.searches += 1
    front.quit()


def test_options_agree_or_the_worker_is_left_out():
    shard = Shard()
    same, other, fixed = Fake(), Fake(), Fake()
    worker(shard.address, same, "--engine-option", "EvalFile=/somewhere/big.nnue", "--threads", 2, name="same")
    worker(shard.address, other, name="other")
    worker(shard.address, fixed, "--engine-option", "EvalFile=big.nnue", "--engine-option", "Style=Very Risky", name="fixed")
    front = Front(Fake(), shard.address)
    front.say("setoption name EvalFile value /home/big.nnue", "setoption name style value Very Risky", "setoption name Hash value 99",
              "setoption name Debug Log File value /tmp/x")
    wait_until(lambda: "is left out" in "".join(front.go()[1]), "a worker that is left out")
    check("info string worker other is left out: its option EvalFile is 'small.nnue', not 'big.nnue'" in front.lines["out"], front.tail())
    wait_until(lambda: "workers 2" in "".join(front.go()[1]), "two workers")
    check("setoption name Style value Very Risky" in same.commands(), same.commands())
    for fake in same, other, fixed:  # nothing but what the owner set names a file, and resources are the owner's
        got = [line for line in fake.commands() if "Eval" in line or "Log" in line or "Hash" in line or "Threads" in line]
        threads = 2 if fake is same else 1
        evals = [] if fake is other else [f"setoption name EvalFile value {'/somewhere/' if fake is same else ''}big.nnue"]
        equal(got, [f"setoption name Threads value {threads}", "setoption name Hash value 64", *evals])
    equal(other.commands().count("go infinite"), 0)
    front.say("setoption name Style value Solid")
    wait_until(lambda: "worker fixed is left out: its option Style is 'Very Risky', not 'Solid'" in "".join(front.go()[1]), "fixed")
    check("setoption name Style value Solid" in same.commands(), same.commands())
    front.say("setoption name UCI_LimitStrength value true")
    count = searches(same)
    front.go()
    equal(searches(same), count, "who is to play weakly gets no help")
    front.quit()


def test_another_engine_is_left_alone():
    shard = Shard()
    other = Fake(name="Fake 2", line="d2d4", score=999)
    worker(shard.address, other)
    Process("ttworker", "--servers", shard.address, "--private", "--hash", 16).wait_line("^ready$")
    front = Front(Fake(), shard.address)
    lines = [line for _ in range(4) for line in front.go()[1]]
    check(not any("left out" in line for line in lines), lines)
    equal(searches(other), 0)
    front.quit()


def test_alone_without_shards():
    front = Front(Fake(), "127.0.0.1:9")
    lines = front.go()[1]
    front.go_until("e2e4", late=None)
    check(any("no shard answered" in line for line in lines), lines)
    front.quit()


def test_kills():
    shards = [Shard(), Shard()]
    place = ",".join(shard.address for shard in shards)
    workers = [worker(place, Fake(line="d2d4 d7d5", score=50)) for _ in range(2)]
    front = Front(Fake(), place)
    wait_until(lambda: "workers 2" in "".join(front.go()[1]), "two workers")

    def while_searching(action, moves=("d2d4",)):
        wait_until(lambda: "info depth 2 " in "".join(front.go("go movetime 50")[1]), "the engine is back")
        begin = front.begin_search(600, "info depth 20 ")
        action()
        move = front.expect(BEST)[1]
        promised("a move", time.monotonic() - begin, 0.8)
        check(move in moves, move, front.tail())
        return front.lines["out"][front.at:]
    while_searching(lambda: os.kill(engine_of(front), signal.SIGKILL))
    while_searching(lambda: os.kill(engine_of(workers[0]), signal.SIGKILL))
    while_searching(lambda: os.kill(engine_of(front), signal.SIGSTOP))
    while_searching(shards[0].kill)
    while_searching(lambda: os.kill(engine_of(workers[0]), signal.SIGSTOP))
    while_searching(workers[0].kill)
    while_searching(lambda: workers.append(worker(place, Fake(line="d2d4 d7d5", score=50))))
    while_searching(workers[1].stop)
    workers[1].send_signal(signal.SIGCONT)
    while_searching(shards[1].kill, ("d2d4", "e2e4"))  # what was received until then counts
    front.go_until("e2e4", late=None)  # the engine starts again
    front.quit()


def test_the_own_engine_fails():
    shard = Shard()
    own = Fake()
    front = Front(own, shard.address)
    legal = legal_moves("startpos")
    for with_worker in False, True:
        for fault in "die", "hang", "gone", "stream", "deaf", "late", "twice", "rubbish", "silent", "die-once", "half", "":
            ms = 100 if fault in ("twice", "rubbish", "silent", "") else 300
            for words in f"go movetime {ms}", "go wtime 500 btime 500":
                is_mute = fault in ("die", "hang", "gone", "stream")

                def played():
                    own.set("")
                    wait_until(lambda: "info depth 9 " in "".join(front.go("go depth 9")[1]), "the engine is back")
                    own.set(fault)
                    move, lines = front.go(words, 1)
                    check(move in (("e2e4", "d2d4") if with_worker and not is_mute and fault != "die-once" else legal), fault, move, front.tail())
                    check(move == "e2e4" or not says(lines, "e2e4") or is_mute or with_worker or fault == "die-once", fault, move, front.tail())
                    return move
                # On a busy machine the first line of the worker, or of an engine that starts again, may come too late.
                wanted = "e2e4" if not with_worker and not is_mute else "d2d4" if with_worker and is_mute else None
                wait_until(lambda: played() == wanted or wanted is None, f"{fault}: {wanted}")
        if not with_worker:
            worker(shard.address, Fake(line="d2d4 d7d5", score=50))
            wait_until(lambda: "workers 1" in "".join(front.go()[1]), "a worker")
    front.quit()


HARMLESS = ("", "twice", "early", "flood", "rubbish", "silent", "before", "busy", "slow", "twice before busy")
FAULTS = HARMLESS + ("die", "hang", "gone", "die-at=3", "hang-at=3", "deaf", "late", "illegal", "none", "half", "unready", "stillborn", "late deaf",
                     "before twice illegal", "silent die-at=5", "hang-at=1 before", "die-once", "die-asked")
MATED = "fen 7k/6Q1/6K1/8/8/8/8/8 b - - 0 1"
LIMITS = ("movetime 80", "wtime 400 btime 400", "depth 6", "nodes 5000", "infinite", "ponder wtime 400 btime 400", "movetime 80 searchmoves a2a3 h2h3")


def test_any_faults_at_any_time():
    """Each engine fails as a seed says, and is killed or stopped: each "go" has one legal move, by its time, and an engine that does
    its work again has a say again."""
    seed, rounds = int(os.environ.get("SEED", time.time_ns() % 1000000)), 40 if SHORT else int(os.environ.get("ENGINE_ROUNDS", "100"))
    print(f"# SEED={seed}", flush=True)
    choice, shard, own = random.Random(seed), Shard(), Fake()
    others = [Fake(line="d2d4 d7d5", score=50), Fake(line="e2e4 c7c5", mate=5)]
    processes = [Front(own, shard.address)] + [worker(shard.address, fake) for fake in others]
    front, asked = processes[0], 1
    legal = {"startpos": legal_moves("startpos"), MATED: {"(none)"},
             "startpos moves e2e4": legal_moves("rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1")}
    for number in range(rounds):
        faults, is_well = [choice.choice(FAULTS) for _ in processes], choice.randrange(3) == 0
        if is_well:
            own.set("")
            front.say("position startpos")
            wait_until(lambda: "score cp 20 " in "".join(front.go("go movetime 60")[1]), "the engine is back")
            faults[0] = choice.choice(HARMLESS)
        position, limit = choice.choice(list(legal)), choice.choice(LIMITS)
        where = f"SEED={seed} round {number}: {faults}, {position}, {limit}"
        for fake, words in zip([own, *others], faults):
            fake.set(words)
        before, during = choice.randrange(2), choice.randrange(2)
        front.say(*["isready"] * before, "position " + position, "go " + limit, *["isready"] * during)
        begin, first, asked = time.monotonic(), front.at, asked + before + during
        if choice.randrange(3) == 0:
            victim, signum = choice.choice(processes), choice.choice((signal.SIGKILL, signal.SIGSTOP))
            is_well = is_well and victim is not front
            for pid in children(victim.popen.pid):
                os.kill(pid, signum)
                where += f", signal {signum} to {victim.name}'s"
        if "movetime" in limit or limit[0] == "w":
            bound = 0.5
        else:
            if choice.randrange(2):
                try:
                    front.wait_line("^info depth ", begin=front.at, timeout=0.1)
                except Failure:
                    pass  # it may say nothing
            begin, bound = time.monotonic(), 1.5
            front.say("ponderhit" if "ponder" in limit and choice.randrange(2) else "stop")
        move = front.expect(r"^bestmove (\S+)")[1]
        promised(where, time.monotonic() - begin, bound)
        may = {"a2a3", "h2h3"} if position == "startpos" and "searchmoves" in limit else legal[position] - {"h2h4"}
        check(move in may, where, move, front.tail())
        if is_well:
            has_line = any(says(front.lines["out"][first:front.at], said) for said in ("e2e4", "d2d4"))
            check(move in ("e2e4", "d2d4") or not has_line or position != "startpos" or "searchmoves" in limit, "a move that no engine said:",
                  where, move, front.tail())
            first = front.at
            front.go("go movetime 60")
            front.ready()
            check("info string the engine:" not in "".join(front.lines["out"][first:]), "it searches no more:", where, front.tail())
            asked += 1
    for fake in own, *others:
        fake.set("")
    front.say("position startpos")
    wait_until(lambda: front.go()[0] == "e2e4", "help")
    front.ready()
    wait_until(lambda: front.lines["out"].count("readyok") == asked + 1, "each isready is answered")
    front.quit()
    for helper in processes[1:]:
        equal(helper.end(), 0)


def test_without_an_end_stop_ends():
    own = Fake()
    front = Front(own)
    front.ready()
    for fault in "hang", "deaf", "die":
        own.set(fault)
        front.say("go infinite")
        front.say("stop")
        begin = time.monotonic()
        check(front.expect(BEST)[1] in legal_moves("startpos"), front.tail())
        promised("stop", time.monotonic() - begin, 1.5)
    own.set("die")
    check(front.go("go depth 20")[0] in legal_moves("startpos"), front.tail())
    front.quit()


def test_isready_is_answered_though_the_engine_reads_none():
    own = Fake()
    front = Front(own)
    own.set("busy")
    front.say("position startpos")
    front.begin_search(300, "info depth 2 ")
    before = front.lines["out"].count("readyok")
    front.say("isready", "isready")
    front.expect(BEST)
    wait_until(lambda: front.lines["out"].count("readyok") == before + 2, "an answer to each")
    front.quit()


def test_a_bestmove_counts_for_the_last_go():
    """The engine answers a question late, and says a move that nobody asked for before the next search."""
    own = Fake()
    front = Front(own)
    own.set("lazy")
    front.say("position startpos", "go infinite")
    front.expect("^info depth 3 ")
    front.say("isready", "stop")
    front.expect(BEST)
    own.set("before")
    front.say("position startpos", "go infinite")
    front.expect("^readyok$")
    front.expect("^info depth 3 ")
    front.say("stop")
    equal(front.expect(BEST)[1], "e2e4", front.tail())
    check("h2h4" not in front.out(), front.out())
    front.quit()


def test_a_bestmove_counts_that_is_read_late():
    """It was printed in time, behind other lines that fill a pipe."""
    own = Fake()
    front = Front(own)
    own.set("pause")
    front.say("position startpos", "go infinite")
    front.expect("^info depth 3 ")
    front.say("stop")
    equal(front.expect(BEST)[1], "e2e4", front.tail())
    front.ready()
    check("info string the engine:" not in front.out(), front.tail())
    front.quit()


def test_a_workers_engine_fails():
    shard = Shard()
    other = Fake(line="d2d4 d7d5", score=50)
    process = worker(shard.address, other)
    front = Front(Fake(), shard.address)
    for fault in "die", "hang", "deaf", "late", "twice", "rubbish", "silent":
        other.set(fault)
        count = searches(other)
        wait_until(lambda count=count: front.go("go movetime 150")[0] in ("e2e4", "d2d4") and searches(other) > count, fault)
        other.set("")
        wait_until(lambda: front.go("go movetime 150")[0] == "d2d4", f"help after {fault}")
    check(process.running(), process.tail())
    front.quit()
    equal(process.end(), 0)


def is_helped(front):
    """A worker has reported half the own engine's nodes, which are 1,000 a ply: its line outvotes the engine's."""
    lines = re.findall(r"^info depth (\d+) .* nodes (\d+)", front.out(), re.M)
    return lines and int(lines[-1][1]) > 1500 * int(lines[-1][0])


def test_a_workers_engine_clears_its_memory():
    """Which takes longer than a move, as with a large hash: it is not taken for hung."""
    shard, other = Shard(), Fake(line="d2d4 d7d5", score=50)
    other.set("clear")
    process, front = worker(shard.address, other), Front(Fake(), shard.address)
    engine = engine_of(process)
    front.say("ucinewgame")
    wait_until(lambda: front.go("go movetime 150")[0] == "d2d4", "its help")
    equal(engine_of(process), engine)
    front.quit()
    equal(process.end(), 0)


def test_a_long_name():
    shard, name = Shard(), "Fake " + 58 * "1"
    process, front = worker(shard.address, Fake(name=name, line="d2d4 d7d5", score=50)), Front(Fake(name=name), shard.address)
    wait_until(lambda: front.go("go movetime 150")[0] == "d2d4", "its help")
    front.quit()
    equal(process.end(), 0)


def test_another_game():
    """Which is played from a startpos, too: xiangqi, whose rules are not ours."""
    own = Fake(line="h2e2 h9g7")
    for fault in "", "late", "die-at=4":
        front = Front(own)
        own.set(fault)
        front.go_until("h2e2", late=None, words="go depth 5" if fault == "" else "go movetime 1000")
        front.quit()


def test_castling_is_as_the_engine_writes_it():
    """Without UCI_Chess960, also where the Q of KQkq can only be the rook on b1."""
    shard, other = Shard(), Fake(line="e1g1", score=90)
    worker(shard.address, other)
    front = Front(Fake(line="e1g1"), shard.address)
    front.say("position fen r3k2r/8/8/8/8/8/8/1R2K2R w KQkq - 0 1")
    wait_until(lambda: front.go_until("e1g1", late=None, words="go movetime 50") and searches(other), "help")
    front.quit()


def test_help_while_the_own_engine_starts_again():
    """Or never does."""
    shard, own = Shard(), Fake(depth=10 ** 6)
    process, front = worker(shard.address, Fake(line="d2d4 d7d5", score=50, depth=10 ** 6)), Front(own, shard.address)
    own.set("slow")
    first = engine_of(front)
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: engine_of(front) != first, "a new process")
    front.say("position startpos", "go infinite")
    wait_until(lambda: is_helped(front), "help")
    front.say("stop")
    equal(front.expect(BEST)[1], "d2d4")
    for fault in "unborn", "stillborn":
        own.set(fault)
        os.kill(engine_of(front), signal.SIGKILL)
        wait_until(lambda: own.commands()[-1] == "uci", "the next process")
        wait_until(lambda: front.go("go movetime 500")[0] == "d2d4", fault)
        own.set("")
    front.quit()
    equal(process.end(), 0)


def test_the_last_helper_dies():
    shard, own = Shard(), Fake()
    process, front = worker(shard.address, Fake(line="d2d4 d7d5", score=50)), Front(own, shard.address)
    wait_until(lambda: front.go()[0] == "d2d4", "help")
    own.set("die")
    front.say("go depth 1000")
    wait_until(lambda: "".join(front.lines["out"][front.at:]).count("it ended with status 3") >= 3, "that the own engine is given up")
    front.expect("^info string workers 1")
    process.kill()
    equal(front.expect(BEST)[1], "d2d4")
    own.set("")
    wait_until(lambda: front.go()[0] == "e2e4", "the own engine")
    front.quit()


def test_an_open_job_is_remembered():
    """However many others were posted and stopped meanwhile."""
    shard = Shard()
    fakes = [Fake(line="d2d4 d7d5", score=50, depth=10 ** 6) for _ in range(2)]
    helpers = [worker(shard.address, fake) for fake in fakes]
    front, other = (Front(Fake(depth=10 ** 6), shard.address) for _ in range(2))
    front.say("go infinite")
    wait_until(lambda: len(shard.working()) == 2, "both for the first")
    wait_until(lambda: other.go("go movetime 20", 2) and sum(map(searches, fakes)) >= 140, "more jobs than have texts", 4 * PATIENCE)
    other.quit()
    wait_until(lambda: len(shard.working()) == 2, "both for the first again")
    check("left out" not in front.out(), front.tail())
    front.say("stop")
    front.expect(BEST)
    front.quit()
    for helper in helpers:
        equal(helper.end(), 0)


def test_two_front_ends():
    shard = Shard()
    helpers = [worker(shard.address, Fake(line="d2d4 d7d5", score=50, depth=10 ** 6)) for _ in range(2)]
    fronts = [Front(Fake(depth=10 ** 6), shard.address) for _ in range(2)]
    for front in fronts:
        front.say("go infinite")
    wait_until(lambda: all(len(shard.working()) == 2 and is_helped(front) for front in fronts), "a worker for each")
    for front in fronts:
        front.say("stop")
        equal(front.expect(BEST)[1], "d2d4")
        front.quit()
    for helper in helpers:
        equal(helper.end(), 0)


def test_a_long_game():
    shard = Shard()
    other = Fake()
    worker(shard.address, other)
    front = Front(Fake(), shard.address)
    there = "g1f3 g8f6 b1c3 b8c6 f3g1 f6g8 c3b1 c6b8"
    pawns = [f"{file}{a}{file}{b}" for file in "abdeh" for a, b in ((2, 3), (3, 4))]
    replies = [f"{file}{a}{file}{b}" for file in "abdeh" for a, b in ((7, 6), (6, 5))]
    moves = " ".join(f"{there} {one} {reply}" for one, reply in zip(pawns, replies)).split()
    while len(moves) < 600:
        moves += there.split()
    front.say("position startpos moves " + " ".join(moves))
    front.ready()
    wait_until(lambda: front.go() and any(line.startswith("position fen") for line in other.commands()), "the position")
    got = next(line for line in other.commands() if line.startswith("position fen"))
    check(len(got) < 1034, got)
    kept = got.partition(" moves ")[2].split()
    check(len(kept) > 150 and kept == moves[-len(kept):], kept)
    boards = []
    for position in got, "position startpos moves " + " ".join(moves):
        engine = Uci()
        engine.say(position, "d")
        boards.append((engine.expect("^fen (.*)$")[1], engine.expect("^key (.*)$")[1]))
        engine.quit()
    equal(boards[0], boards[1])
    front.say("setoption name UCI_Variant value crazyhouse", "position startpos moves " + 200 * "P@e5 p@e4 ")
    check(any("does not fit into a job" in line for line in front.go()[1]), front.tail())
    front.quit()


def test_the_end_of_the_input_awaits_the_move():
    """As in a pipe: `printf 'go movetime 300\\n' | abdada uci --engine COMMAND`."""
    front = Front(Fake())
    begin = time.monotonic()
    front.say("position startpos", "go movetime 300")
    front.close_input()
    equal(front.wait(), 0)
    check(time.monotonic() - begin >= 0.25 and front.moves() == 1, front.tail())
    for lines, end in ((["isready", "quit"], "readyok"), (["isready"], "readyok"), (["d"], "a board")):
        for is_killed in False, True:
            front = Front(Fake())
            if is_killed and end == "readyok":
                os.kill(engine_of(front), signal.SIGKILL)
            begin = time.monotonic()
            front.say(*lines)
            front.close_input()
            equal(front.wait(), 0, lines)
            wanted, found = 2 if end == "readyok" else 1, front.lines["out"].count(end)
            waited = time.monotonic() - begin  # after "quit", half a second for an engine that starts again
            check(found == wanted or (is_killed and "quit" in lines and found == 1 and waited >= 0.5), lines, found, waited)


def test_nothing_is_left():
    for number, end in enumerate((lambda p: p.send("quit"), Process.close_input, lambda p: p.send_signal(signal.SIGTERM),
                                  lambda p: p.send_signal(signal.SIGKILL))):
        for fault in "", "hang":
            own = Fake()
            own.set(fault)
            front = Front(own)
            front.ready()
            engine = engine_of(front)
            front.say("go infinite")
            wait_until(lambda own=own: searches(own) == 1, "a search")
            end(front)
            status = front.wait()
            check(status == 0 or number == 3, status)
            wait_until(lambda engine=engine: not lives(engine), "the engine to end")
            if number < 3:
                equal(sum(line.startswith("bestmove") for line in front.lines["out"]), 1, front.tail())
    shard = Shard()
    for number in signal.SIGTERM, signal.SIGINT, signal.SIGKILL:
        helper = worker(shard.address, "sh -c '" + Fake().command + "; true'")
        engine = engine_of(helper)
        inner = engine_of_pid(engine)
        helper.send_signal(number)
        helper.wait()
        for pid in engine, inner:
            wait_until(lambda pid=pid: not lives(pid), "the engine to end")


def engine_of_pid(pid):
    return wait_until(lambda: children(pid), f"a child of {pid}")[0]


def test_commands_that_are_wrong():
    for words, why in ((["--engine", ""], "this is no command"), (["--engine", "'"], "this is no command"),
                       (["--engine", "/no/such/engine"], "'/no/such/engine' is not found"),
                       (["--engine", ROOT], "cannot be run"), (["--engine", "true"], "ended with status 0"),
                       (["--engine", "sh -c 'echo id author me; echo uciok; cat >/dev/null'"], "no 'id name'")):
        for program in (["abdada", "uci"], ["ttworker", "--servers", "127.0.0.1:9"]):
            done = run(*program, *words)
            check(done.status == 1 and why in done.err() and len(done.lines["err"]) == 1, program, words, done.tail())
    for program in "abdada uci", "ttworker --servers 127.0.0.1:9":
        done = run("/bin/sh", "-c", f"ulimit -n 4; exec {os.path.abspath(BIN)}/{program} --engine true")
        check(done.status == 1 and "it cannot be started: Too many open files" in done.err(), program, done.tail())
    for words, why in ((["abdada", "uci", "--engine", "true", "--threads", 2], "--threads"), (["abdada", "uci", "--engine", "true", "--private"], "--private"),
                       (["ttworker", "--servers", "127.0.0.1:9", "--engine-option", "A=1"], "is for --engine"),
                       (["ttworker", "--servers", "127.0.0.1:9", "--engine", "true", "--share", 5], "--share")):
        done = run(*words)
        check(done.status == 2 and why in done.err() and len(done.lines["err"]) == 1, words, done.tail())
    for option, why in (("Style", "not NAME=VALUE"), ("Style=Silly", "but not the value 'Silly'"), ("Nothing=1", "no option 'Nothing'")):
        done = run("ttworker", "--servers", "127.0.0.1:9", "--engine", Fake().command, "--engine-option", option)
        check(done.status in (1, 2) and why in done.err(), option, done.tail())


def test_metrics():
    shard = Shard()
    helper = worker(shard.address, Fake(), "--metrics", "127.0.0.1:0")
    url = helper.wait_line(r"metrics at (\S+)", stream="err")[0][1]
    front = Front(Fake(), shard.address)
    wait_until(lambda: "workers 1" in "".join(front.go()[1]), "a worker")

    def figures():
        with urllib.request.urlopen(url) as answer:
            return dict(re.findall(r"^ttworker_(\w+) (\d+)$", answer.read().decode(), re.MULTILINE))
    wait_until(lambda: int(figures().get("nodes_total", 0)) > 10000 and int(figures()["searches_total"]) > 0, "its nodes")
    wait_until(lambda: (figures()["shards_up"], figures()["busy_threads"]) == ("1", "0"), "the end of its search")
    front.quit()


def test_keys():
    keys = os.path.join(scratch("keys"), "keys")
    equal(run("abdada", "keygen", keys).status, 0)
    shard = Shard(keys=keys)
    worker(shard.address, Fake(line="d2d4", score=90), "--keys", keys)
    front = Front(Fake(), shard.address, "--keys", keys)
    wait_until(lambda: front.go()[0] == "d2d4", "help")
    front.quit()


def test_the_worker_of_compose():
    """Its command in deploy/compose.yml, with ENGINE set, runs on a shard here. The image can have the engine's package."""
    if not importlib.util.find_spec("yaml"):
        return "no Python module yaml here (Debian: python3-yaml)"
    import yaml  # pylint: disable=import-outside-toplevel
    with open(os.path.join(ROOT, "deploy/compose.yml"), encoding="utf-8") as file:
        services = yaml.safe_load(file)["services"]
    fake = Fake(line="d2d4", score=90)

    def filled(text, **variables):
        return re.sub(r"\$\{(\w+):-([^}]*)\}", lambda found: variables.get(found[1], found[2]), text)
    program, *words = [filled(word, ENGINE=fake.command).replace("0.0.0.0:7491", "127.0.0.1:0") for word in services["engine"]["command"]]
    shard = Shard()
    helper = Process(program, "--servers", shard.address, *words)
    helper.wait_line("^ready$")
    front = Front(Fake(), shard.address)
    wait_until(lambda: front.go()[0] == "d2d4", "help")
    front.quit()
    equal(helper.end(), 0)
    equal(filled(services["engine"]["command"][-1]), "/usr/games/stockfish")
    for name in "engine", "abdada":  # both find the same engine
        equal([filled(volume, ENGINE_FOLDER="/x") for volume in services[name]["volumes"][1:]], ["/x:/engine:ro"])
    with open(os.path.join(ROOT, "deploy/Dockerfile"), encoding="utf-8") as file:
        check(set(services["keys"]["build"]["args"]) <= set(re.findall(r"^ARG (\w+)", file.read(), re.MULTILINE)), services["keys"])
    return None


TESTS = [test_it_acts_like_the_engine, test_all_vote_and_all_nodes_count, test_more_nodes_than_a_report_has,
         test_a_mate_comes_first_and_a_bad_one_last, test_limits_reach_the_others, test_ponder, test_ponderhit_to_an_engine_that_dies_before_its_search,
         test_options_agree_or_the_worker_is_left_out,
         test_another_engine_is_left_alone, test_alone_without_shards, test_kills, test_the_own_engine_fails, test_any_faults_at_any_time,
         test_without_an_end_stop_ends, test_isready_is_answered_though_the_engine_reads_none,
         test_a_bestmove_counts_for_the_last_go, test_a_bestmove_counts_that_is_read_late,
         test_a_workers_engine_fails, test_a_workers_engine_clears_its_memory, test_a_long_name, test_another_game, test_castling_is_as_the_engine_writes_it,
         test_help_while_the_own_engine_starts_again, test_the_last_helper_dies,
         test_an_open_job_is_remembered, test_two_front_ends, test_a_long_game, test_the_end_of_the_input_awaits_the_move, test_nothing_is_left,
         test_commands_that_are_wrong, test_metrics, test_keys, test_the_worker_of_compose]

if __name__ == "__main__":
    sys.exit(main(TESTS, ("ttserver", "ttworker", "abdada"), unstable=STARVED))
