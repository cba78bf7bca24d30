#!/usr/bin/python3
"""Proofs of Othello scores: written by solve, verified by check and by the checker of examples/. TAP.

    BIN=build/dev/bin tests/system/test_proof.py

CHANGES=N: so many proofs with something changed (`make test-long`: 1,000). SEED=N: others.
"""
import collections
import fcntl
import gzip
import json
import os
import random
import re
import resource
import subprocess
import sys
import zlib

import client
from bag_peer import Peer, Poisoner
from cluster import STARVED, ROOT, SANITIZED, Process, Shard, Worker, answers, at, check, equal, main, path_of, right, run, scratch, wait_until
from othello import PASS, SQUARES, Board, ending

DATA = os.path.join(ROOT, "tests/data/othello")
EXAMPLE = os.path.join(ROOT, "examples/check_proof.py")
BOARD = "XXXOXXXXOXXXXXXXOOXXXXXXOOOXXXXXOOOXXOO-OOOOO---OOOOOOO-OOOOOOO- X"  # FFO #20: +6
FOLDER = scratch("proof")
CHANGES = int(os.environ.get("CHANGES", 40 if SANITIZED else 120))
SEED = int(os.environ.get("SEED", 1))


def path(name):
    return os.path.join(FOLDER, name)


def solve(proof, *arguments):
    process = Process("abdada", "solve", "--json", "--proof", proof, *arguments)
    process.close_input()
    return answers(process)


def verdict(proof, *arguments):
    """The exit status, and what is printed on stdout."""
    done = run("abdada", "check", "--json", *arguments, proof)
    return done.status, json.loads(done.out()) if done.out() else None


def verified(proof):
    status, row = verdict(proof, "-j", 2)
    equal((status, row["false"], row["first_false"]), (0, 0, ""), row)
    equal((row["checked"], row["solved"]), (row["claims"], row["leaves"]), row)
    return row


def text_of(proof):
    with open(proof, "rb") as file:
        return gzip.decompress(file.read()).decode()


def small(name, count, skip=0):
    """A file of the first FFO positions, of 14 empty squares; and their scores."""
    scores, lines = [], []
    with open(os.path.join(DATA, "ffo-1-19.obf"), encoding="ascii") as file:
        for line in [line for line in file if not line.startswith("%")][skip:skip + count]:
            lines.append(line)
            scores.append(max(int(score) for score in re.findall(r":([+-]\d+)", line)))
    with open(path(name), "w", encoding="ascii") as file:
        file.writelines(lines)
    return path(name), scores


def small_endings_are_proved():
    count = 4 if SANITIZED else 19
    file, scores = small("small.obf", count)
    for leaf in (6, 8):
        proof = path(f"small-{leaf}")
        rows = solve(proof, "--proof-leaf", leaf, "--obf", file)
        right([row["score"] for row in rows], scores)
        row = verified(proof)
        equal((row["positions"], row["leaf"]), (count, leaf))
        check(row["claims"] > 50 * count and row["leaves"] > 20 * count, row)
    several = path("several")  # by several searchers: perhaps with other moves
    solve(several, "--proof-leaf", 8, "-j", 2, "--obf", file)
    verified(several)


def a_leaf_is_a_proof_of_its_own():
    for leaf, board, score in ((16, BOARD, 6), (6, BOARD, 6), (1, BOARD, 6), (1, "X" * 40 + "O" * 24 + " O", -16),
                               (1, "X" * 40 + "-" * 24 + " X", 64), (3, "X" * 40 + "-" * 24 + " O", -64)):
        proof = path("leaf")
        row, = solve(proof, "--proof-leaf", leaf, board)
        right(row["score"], score)
        equal(verified(proof)["scores"], [f"{board} {score:+d}"])


def a_sample_says_its_seed():
    proof = path("sample")
    file, _ = small("sample.obf", 1)
    solve(proof, "--proof-leaf", 8, "--obf", file)
    status, row = verdict(proof, "--sample", "10%")
    equal((status, row["solved"]), (0, -(-row["leaves"] // 10)), row)
    _, again = verdict(proof, "--sample", 10, "--seed", row["seed"])
    equal((again["nodes"], again["seed"]), (row["nodes"], row["seed"]))
    shown = run("abdada", "check", "--sample", "0.1%", "--seed", 7, proof)
    check("sample 0.1%, seed 7" in shown.out() and "1 leaves solved" in shown.out(), shown.out())


def the_checker_of_another_make_agrees():
    file, _ = small("other.obf", 2)
    proof, broken = path("other"), path("broken")
    solve(proof, "--proof-leaf", 7, "--obf", file)
    equal(example(proof, "10", "1")[0], 0)
    with open(path("ends.obf"), "w", encoding="ascii") as ends:
        ends.write(f"{BOARD};\n{'X' * 40 + 'O' * 24} O;\n{'X' * 40 + '-' * 24} X;\n")
    solve(path("whole"), "--proof-leaf", 4, "--obf", path("ends.obf"))
    row = verified(path("whole"))
    equal(row["positions"], 3)
    status, printed = example(path("whole"))
    equal((status, printed.split(",")[0]), (0, f"{row['leaves']} of {row['leaves']} leaves solved"))
    solve(proof, "--proof-leaf", 2, BOARD)
    text = text_of(proof)
    for wrong, status in ((text.replace("score +6", "score +4"), 1), (text.replace("score +6", "score +8"), 1),
                          (text.replace("\nh5", "\na1"), 1), (text[:-20], 2), (text.replace("position ", "position"), 2)):
        write(broken, with_checksum(wrong) if status == 1 else wrong)
        both_refuse(broken, status)
    # What the page of the format forbids, though it could be understood.
    for was, wrong in (("leaf 2 ", "leaf 02 "), ("leaf 2 ", "leaf 0 "), ("leaf 2 ", "leaf 25 "), ("positions 1", "positions 01"),
                       ("positions 1", "positions 0"), ("positions 1", "positions 1000001"), ("score +6", "score 6"),
                       ("score +6", "score +06"), ("score +6", "score -0"), ("score +6", "score +66"), ("score +6", ""),
                       ("score +6", "score +6\n"), ("score +6", "score +6 "), ("score +6", "score\t+6"), ("abdada", "\nabdada"),
                       ("position X", "\nposition X"), ("\nh5", "\n" + "h5" * 41), ("\nh5", "\n" + "h5" * 70), ("\nend", "\n\nend"),
                       ("\nend ", "\nend  "), ("leaves ", "leaves 0")):
        check(was in text, was)
        write(broken, with_checksum(text.replace(was, wrong, 1)))
        both_refuse(broken, 2)


def example(*words):
    """The exit status, and what is printed."""
    done = subprocess.run([sys.executable, EXAMPLE, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return done.returncode, done.stdout.decode()


def both_refuse(proof, status):
    done, (other, printed) = run("abdada", "check", proof), example(proof)
    equal((other, len(printed.splitlines())), (status, 1), text_of(proof), printed)
    equal((done.status, len(done.said())), (status, 1), text_of(proof), done.tail())


MEMBER = 65536  # bytes of text that a member may have


def write(proof, text):
    with open(proof, "wb") as file:
        for begin in range(0, len(text), MEMBER):
            file.write(gzip.compress(text[begin:begin + MEMBER].encode()))


def with_checksum(text):
    """The text of one position with the checksum that it has now; the counts may be false."""
    head, end = text.rsplit("\nend ", 1)
    crc = zlib.crc32((head + "\n").encode())
    return re.sub("crc32 .*", f"crc32 {crc:08x}", f"{head}\nend {end}")


def is_read_as(proof, text):
    """By another make; a bit of a member's head says nothing."""
    try:
        return text_of(proof) == text
    except (EOFError, OSError, zlib.error):
        return False


def changed_proofs_are_refused():
    """Many more, and with counts that fit, in tests/unit/programs/test_cli_proof.c."""
    proof, changed = path("changed"), path("changed.new")
    solve(proof, "--proof-leaf", 3, BOARD)
    text, bytes_ = text_of(proof), open(proof, "rb").read()
    draw = random.Random(1)
    for number in range(15 if SANITIZED else 60):
        if number % 3 == 0:
            at = draw.randrange(8 * len(bytes_))
            new = bytearray(bytes_)
            new[at // 8] ^= 1 << at % 8
            with open(changed, "wb") as file:
                file.write(new)
            same = is_read_as(changed, text)
        else:
            at = draw.randrange(len(text.rsplit("\nend ", 1)[0]))
            new = text[:at] + draw.choice("XO-a1b2c3d4e5f6g7h8+0 \n") + text[at + 1:]
            write(changed, with_checksum(new) if number % 3 == 1 else new)
            same = new == text
        done = run("abdada", "check", changed)
        check(done.status in ((0,) if same else (1, 2)), "seed 1, change", number, done.status, done.tail())
        check(len([line for line in done.lines["err"] if line]) == (0 if same else 1), done.tail())


class Unfit(Exception):
    """The moves are not those of these claims, or the game is over with another value."""


class Judge:
    """docs/proof.md once more, with boards that othello.py plays out: a proof of one position by its parts, and what of it is true."""
    values = {}

    def __init__(self, text):
        lines = text.split("\n")
        self.leaf, self.score = int(lines[0].split()[3]), int(lines[2].split()[1])
        _, self.squares, self.side = lines[1].split()
        self.moves = re.findall("..", "".join(lines[3:-2]))

    @staticmethod
    def key(board):
        """Colours do not matter."""
        return str(board) if board.side == "X" else str(board).translate(str.maketrans("XO", "OX"))

    def value(self, board):
        key, moves = self.key(board), board.moves()
        if key not in self.values:
            self.values[key] = max(-self.value(board.copy().play(move)) for move in moves) if moves else board.value()
        return self.values[key]

    def claim(self, board, value, is_lower):
        key = (self.key(board), value, is_lower)
        if key in self.seen:
            return
        self.seen.add(key)
        if self.is_true:
            self.is_true = self.value(board) >= value if is_lower else self.value(board) <= value
        moves = board.moves()
        if board.empties() <= self.leaf:
            self.leaves += 1
        elif not moves and not (board.value() >= value if is_lower else board.value() <= value):
            raise Unfit
        elif moves == [PASS]:
            self.claim(board.copy().play(PASS), -value, not is_lower)
        elif is_lower and moves:
            if not self.left or self.left[0] not in moves:
                raise Unfit
            self.claim(board.copy().play(self.left.pop(0)), -value, False)
        else:
            for move in moves:
                self.claim(board.copy().play(move), -value, True)

    def judge(self):
        """(whether the score is true, and whether all of the proof is); counts its claims."""
        board = Board(self.squares, self.side)
        self.seen, self.leaves, self.left, self.fits = set(), 0, list(self.moves), True
        is_score_true = self.is_true = board.value() == self.score
        try:
            for value, is_lower in ((-64, True), (64, False)):
                if self.score != value:
                    self.claim(board, self.score, is_lower)
        except Unfit:
            self.is_true = self.fits = False
        return is_score_true, self.is_true and not self.left

    def text(self):
        """With the counts and the checksum that it has now."""
        lines = ["".join(self.moves[at:at + 40]) for at in range(0, len(self.moves), 40)]
        head = "\n".join([f"abdada-proof 1 leaf {self.leaf} positions 1", f"position {self.squares} {self.side}",
                          f"score {self.score:+d}", *lines, ""])
        return head + f"end claims {len(self.seen)} leaves {self.leaves} crc32 {zlib.crc32(head.encode()):08x}\n"

    def change(self, kind, rng):
        if kind == "bound":
            self.score = rng.choice([score for score in range(-64, 65) if score != self.score and abs(score - self.score) <= 8])
        elif kind == "move":
            self.moves[rng.randrange(len(self.moves))] = rng.choice(SQUARES)
        elif rng.randrange(8) == 0:
            self.side = "XO".replace(self.side, "")
        else:
            at = rng.randrange(64)
            self.squares = self.squares[:at] + rng.choice("XO-".replace(self.squares[at], "")) + self.squares[at + 1:]


def no_claim_that_is_false_is_accepted():
    """One bit of the file, one bound, move or position changed, with counts that fit; another make judges what is true then."""
    rng, proofs, counts = random.Random(SEED), [], collections.Counter()
    changed = path("judged.new")
    for number in range(8):
        board = ending(rng, rng.choice((5, 6, 6)))
        proof = path(f"judged-{number}")
        solve(proof, "--proof-leaf", 1 + number % 2, f"{board} {board.side}")
        text = text_of(proof)
        first = Judge(text)
        equal(first.judge(), (True, True), text)
        equal(first.text(), text)
        proofs.append((open(proof, "rb").read(), text))
    proofs = [proof for proof in proofs if Judge(proof[1]).moves]
    for number in range(CHANGES):
        data, text = rng.choice(proofs)
        kind = ("bit", "bound", "move", "position")[number % 4]
        if kind == "bit":
            at, data = rng.randrange(8 * len(data)), bytearray(data)
            data[at // 8] ^= 1 << at % 8
            with open(changed, "wb") as file:
                file.write(data)
            is_score_true = is_true = is_read_as(changed, text)
        else:
            judge = Judge(text)
            judge.change(kind, rng)
            is_score_true, is_true = judge.judge()
            write(changed, judge.text())
        verdicts = {"check": run("abdada", "check", changed).status}
        if number // 4 % 5 == 0:
            verdicts["example"], printed = example(changed)
            counts["by the example, too"] += 1
            check("Traceback" not in printed, printed)
        for who, status in verdicts.items():
            check(status in ((0,) if is_true else (1, 2)), f"SEED={SEED}, change {number}, {kind}:", who, "says", status, "of",
                  text if kind == "bit" else judge.text(), "which is", is_true)
        counts[kind] += 1
        counts[f"{kind}, score false"] += not is_score_true
        counts[f"{kind}, refused"] += not is_true
    print(f"# SEED={SEED}, {CHANGES} changes:", ", ".join(f"{name} {count}" for name, count in sorted(counts.items())))
    check(all(counts[f"{kind}, refused"] for kind in ("bit", "bound", "move", "position")), counts)


def prefix_of(proof, size):
    with open(proof, "rb") as file:
        return file.read(size)


def a_killed_writer_goes_on():
    file, scores = small("killed.obf", 19)
    proof = path("killed")
    arguments = ("--proof-leaf", 6, "--obf", file)
    process = Process("abdada", "solve", "--proof", proof, *arguments)
    process.close_input()
    wait_until(lambda: os.path.exists(proof) and os.path.getsize(proof) > 1500, "the first proofs")
    process.kill()
    size = os.path.getsize(proof)
    equal(run("abdada", "check", proof).status, 2, "not complete")
    for cut in (0, 1, 200):
        os.truncate(proof, size - cut)
        before = prefix_of(proof, size - cut - 1000)
        rows = solve(proof, "--resume", *arguments)
        right([row["score"] for row in rows], scores)
        equal(prefix_of(proof, len(before)), before, "what was whole stays")
        row = verified(proof)
        equal(row["positions"], len(scores))
    whole = prefix_of(proof, -1)
    solve(proof, "--resume", *arguments)  # there is nothing left to do
    equal(prefix_of(proof, -1), whole)


def a_cluster_proves_and_goes_on():
    """The workers found what the front-end's own table does not know; front-end and shard die in between."""
    shards = [Shard(memory="32M"), Shard(memory="32M")]
    place = ",".join(shard.address for shard in shards)
    worker = Worker(place, private=True)
    with open(os.path.join(DATA, "ffo.obf"), encoding="ascii") as file:
        board = re.search(r"#40, 20 empties\n([^;]*);", file.read())[1]
    proof = path("cluster")
    arguments = ("--proof-leaf", 8 if SANITIZED else 4, *at(place), board)
    front = Process("abdada", "solve", "--proof", proof, *arguments)
    front.close_input()
    wait_until(lambda: not front.running() or os.path.exists(proof) and os.path.getsize(proof) > 200, "a piece of the proof")
    check(front.running(), "the proof was whole before the front-end was killed")
    front.kill()
    shards[0].kill()
    row, = solve(proof, "--resume", *arguments)
    right(row["score"], 38)
    verified(proof)
    for process in (worker, shards[1]):
        process.kill()


def ask_check(shard, proof):
    process = Process("abdada", "check", "--json", *at(shard.address), proof)
    process.close_input()
    return answers(process)[0]


def a_cluster_checks():
    """Workers solve leaves; one is killed. What is false is false for all, and the first is named."""
    file, _ = small("checked.obf", 4)
    proof = path("checked")
    solve(proof, "--proof-leaf", 8, "--obf", file)
    alone = verified(proof)
    shard = Shard(memory="32M")
    workers = [Worker(shard.address, private=True) for _ in range(2)]
    process = Process("abdada", "check", "--json", *at(shard.address), proof)
    process.close_input()
    wait_until(lambda: shard.working() or not process.running(), "a worker that helps")
    workers[0].kill()
    row, = answers(process)
    same = ("scores", "positions", "leaf", "claims", "checked", "leaves", "solved", "false", "first_false")
    equal([row[key] for key in same], [alone[key] for key in same])
    equal(row["lies"], 0, row)
    # All leaves may be solved before a worker has the job, or by the one that was killed.
    wait_until(lambda: ask_check(shard, proof)["by_workers"] > 0, "leaves that a worker solves")
    lines = text_of(proof).splitlines()
    number = next(i for i, line in enumerate(lines) if line.startswith("score "))
    lines[number] = f"score {int(lines[number].split()[1]) + 2:+d}"
    wrong = path("wrong")
    with open(wrong, "wb") as out:
        out.write(gzip.compress(("\n".join(lines) + "\n").encode()))
    here, over = (run("abdada", "check", "--json", *words, wrong) for words in ((), at(shard.address)))
    check(here.status == over.status != 0, here.tail(), over.tail())
    for process in (workers[1], shard):
        process.kill()
    row = json.loads(run("abdada", "check", "--json", *at(shard.address), proof).out())  # nobody is there
    equal((row["by_workers"], row["solved"], row["false"]), (0, alone["leaves"], 0))


def more_leaves_than_answers_have_room_are_checked():
    """A bag keeps 65,536 answers until they are said."""
    if SANITIZED:
        return "with sanitizers it takes minutes"
    file, _ = small("many.obf", 19)
    proof = path("many")
    solve(proof, "--proof-leaf", 2, "--obf", file)
    alone = verified(proof)
    check(alone["leaves"] > 1 << 16, alone)
    shard = Shard(memory="32M")
    worker = Worker(shard.address, private=True)
    row = ask_check(shard, proof)
    equal((row["solved"], row["false"], row["lies"]), (alone["leaves"], 0, 0), row)
    for process in (worker, shard):
        process.kill()
    return None


def a_false_leaf_is_named_over_a_cluster():
    """FFO #20 with a score that is 2 too high, and its board as the only leaf."""
    shard = Shard(memory="32M")
    worker = Worker(shard.address, private=True)
    false = path("false-leaf")
    text = f"abdada-proof 1 leaf 6 positions 1\nposition {BOARD}\nscore +8\n"
    text += f"end claims 2 leaves 2 crc32 {zlib.crc32(text.encode()):08x}\n"
    with open(false, "wb") as out:
        out.write(gzip.compress(text.encode()))
    here, over = (run("abdada", "check", "--json", *words, false) for words in ((), at(shard.address)))
    equal((here.status, over.status), (1, 1), here.tail(), over.tail())
    equal(*(json.loads(done.out())["first_false"] for done in (here, over)))
    check(json.loads(over.out())["first_false"].endswith(">= +8"), over.out())
    for process in (worker, shard):
        process.kill()


def who_calls_a_true_claim_false_is_found_out():
    file, _ = small("liar.obf", 3)
    proof = path("liar")
    solve(proof, "--proof-leaf", 8, "--obf", file)
    shard = Shard(memory="32M", heartbeat_ms=5000)  # the liar is a thread of Python, which may have to wait for its turn
    liar = Peer(shard.address, lambda text: (1, -1, 1))
    wait_until(lambda: shard.stats()["workers"] == 1, "the liar")

    def is_found_out():
        before = len(liar.jobs)
        done = run("abdada", "check", "--json", *at(shard.address), proof)
        row = json.loads(done.out())
        equal((done.status, row["false"]), (0, 0), done.tail())
        equal(row["lies"], row["by_workers"], row)
        check(len(liar.jobs) - before <= 1, "one bag for three positions", liar.jobs)
        check(row["lies"] == 0 or "says that the claim" in done.err(), done.err())
        return row["lies"] > 0

    wait_until(is_found_out, "leaves that the liar solves")  # all may be solved before it has the job
    liar.stop()
    shard.kill()


def result_key(board, value, is_lower):
    """Of a claim, in the table (worker/games/othello/claim.c)."""
    own, other = (sum(1 << at for at, man in enumerate(board[:64]) if man == side)
                  for side in (board[-1], "XO".replace(board[-1], "")))
    return client.mix((own + client.mix(other)) & client.MASK) ^ client.mix((value & 255) << 2 | is_lower << 1)


def what_others_share_answers_no_claim():
    """FFO #20 with a score that is 2 too high, which a worker says is true. The first leaf keeps the front-end busy."""
    hard = ending(random.Random(1), 16 if SANITIZED else 18)
    hard, proof, true = f"{hard} {hard.side}", path("poisoned"), 1000
    score = answers(Process("abdada", "solve", "--json", hard))[0]["score"]
    text = f"abdada-proof 1 leaf 18 positions {true + 2}\n"
    for board, claimed in [(hard, score)] + [(BOARD, 6)] * true + [(BOARD, 8)]:
        text += f"position {board}\nscore {claimed:+d}\n"
        text += f"end claims 2 leaves 2 crc32 {zlib.crc32(text.encode()):08x}\n"
    write(proof, text)
    shard = Shard(memory="32M", heartbeat_ms=5000)
    worker = Worker(shard.address, threads=2)
    poisoner = Poisoner(shard.address, [(result_key(BOARD, 8, True), 1, 1, client.EXACT, 1)])
    wait_until(lambda: shard.stats()["workers"] == 3, "the poisoner")

    def is_refused():
        done = run("abdada", "check", "--json", *at(shard.address), proof)
        row = json.loads(done.out())
        equal((done.status, row["lies"]), (1, 0), done.tail())
        check(row["first_false"].endswith(">= +8"), row)
        return poisoner.spoiled >= 8 and row["by_workers"] > 0

    wait_until(is_refused, "checks that the poisoner takes part in")
    poisoner.stop()
    for process in (worker, shard):
        process.kill()


def one_program_writes_a_proof():
    proof = path("locked")
    solve(proof, "--proof-leaf", 5, BOARD)
    whole = prefix_of(proof, -1)
    with open(proof, "rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        for words in ([], ["--resume"]):
            done = run("abdada", "solve", "--proof", proof, "--proof-leaf", 5, *words, BOARD)
            equal((done.status, len(done.said())), (1, 1), done.tail())
            check("another program writes it" in done.err(), done.err())
            equal(prefix_of(proof, -1), whole)
        verified(proof)
    solve(proof, "--resume", "--proof-leaf", 5, BOARD)


def a_damaged_proof_is_not_continued():
    """A bit of a member in the middle: what follows is whole, and stays."""
    proof = path("damaged")
    file, _ = small("damaged.obf", 3)
    arguments = ("--proof-leaf", 8, "--obf", file)
    solve(proof, *arguments)
    data = bytearray(prefix_of(proof, -1))
    begins = [found.start() for found in re.finditer(re.escape(b"\x1f\x8b\x08\0\0\0\0\0"), data)]
    check(len(begins) >= 3, begins)
    data[(begins[1] + begins[2]) // 2] ^= 1
    with open(proof, "wb") as damaged:
        damaged.write(data)
    done = run("abdada", "solve", "--proof", proof, "--resume", *arguments)
    equal((done.status, len(done.said())), (1, 1), done.tail())
    check(f"the member at byte {begins[1]} is damaged" in done.err(), done.err())
    equal(prefix_of(proof, -1), bytes(data))


def crafted(text):
    """The proof with a legal move that does not prove its claim: a leaf's claim is false then, and all else fits."""
    for at in range(len(Judge(text).moves)):
        for square in SQUARES:
            judge = Judge(text)
            judge.moves[at] = square
            if judge.judge() == (True, False) and judge.fits and not judge.left:
                return judge.text()
    return None


def only_what_is_true_is_continued():
    """A proof of the right score from anybody: false leaves, and text behind the end."""
    rng, proof, found = random.Random(SEED), path("crafted"), 0
    for leaf, empties in ((4, 6), (4, 6), (7, 8)):
        board = ending(rng, empties)
        arguments = ("--proof-leaf", leaf, f"{board} {board.side}")
        solve(proof, *arguments)
        text = text_of(proof)
        for false, why in ((crafted(text), "it has a false proof: "), (text + "score +0\n", "not the end")):
            if false is None:
                continue
            write(proof, false)
            bytes_ = prefix_of(proof, -1)
            done = run("abdada", "solve", "--json", "--resume", "--proof", proof, *arguments)
            equal((done.status, len(done.said())), (1, 1), f"SEED={SEED}", false, done.tail())
            check(why in done.err(), done.err())
            equal(prefix_of(proof, -1), bytes_)
            check(run("abdada", "check", proof).status != 0, false)
            found += why != "not the end"
        write(proof, text)
        solve(proof, "--resume", *arguments)
        verified(proof)
    check(found > 0, f"SEED={SEED}: no crafted proof")


def bombs_take_no_memory():
    """Small files of 1 GiB of text: a checker, and who goes on with one, has less memory than that, and says why not in a line."""
    proof, bomb = path("bombed"), path("bomb")
    solve(proof, "--proof-leaf", 4, BOARD)
    good, text = prefix_of(proof, -1), text_of(proof)
    head, score = (text[:text.index("\n", text.index(word)) + 1].encode() for word in ("abdada", "score"))
    many = {unit: gzip.compress(unit * (1 << 24)) * 64 for unit in (b"a", b"\n")}
    small = {unit: gzip.compress(unit * (1 << 16)) * (1 << 14) for unit in (b"a", b"\n")}
    moves = gzip.compress((b"a1" * 20 + b"\n") * 1500) * (1 << 14)
    programs = [([sys.executable, EXAMPLE, bomb], (1, 2), 1 << 28)]
    if not SANITIZED:
        programs += [([path_of("abdada"), "check", bomb], (1, 2), 1 << 29),
                     ([path_of("abdada"), "solve", "--hash", "8", "--resume", "--proof", bomb, "--proof-leaf", "4", BOARD], (1,), 1 << 29)]
    for name, data in (("letters", many[b"a"]), ("lines", many[b"\n"]), ("short letters", small[b"a"]), ("short lines", small[b"\n"]),
                       ("lines behind the head", gzip.compress(head) + small[b"\n"]), ("moves", gzip.compress(score) + moves),
                       ("lines behind the end", good + small[b"\n"]), ("one member behind the end", good + many[b"\n"])):
        with open(bomb, "wb") as file:
            file.write(data)
        for words, statuses, most in programs:
            done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False,
                                  preexec_fn=lambda most=most: resource.setrlimit(resource.RLIMIT_AS, (most, most)))
            said = done.stderr.decode().splitlines()
            check(done.returncode in statuses and len(said) == 1 and "memory" not in said[0], name, words, done.returncode, said)
        check(prefix_of(bomb, -1) == data, name, "is not what it was")


def large_proofs_are_refused():
    proof = path("large")
    solve(proof, "--proof-leaf", 21, BOARD)
    for words, status, why in (([], 2, "--max-leaf 21"), (["--max-leaf", 21], 0, ""), (["--max-leaf", 21, "--memory", "1K"], 2, "--memory")):
        done = run("abdada", "check", *words, proof)
        equal(done.status, status, done.tail())
        check(why in done.err(), done.err())
    claims = verdict(proof, "--max-leaf", 21)[1]["claims"]
    for most, status in ((claims - 1, 3), (claims, 0)):
        bounded = f"import sys, check_proof as c; c.CLAIMS_MAX = {most}; c.solve = lambda *claim: None; sys.exit(c.main(sys.argv[1]))"
        done = subprocess.run([sys.executable, "-c", bounded, proof], cwd=os.path.dirname(EXAMPLE), env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        equal((done.returncode, b"claims" in done.stdout), (status, status == 3), done.stdout)
    for words in (["0"], ["-1"], ["101"], ["nan"], ["much"], ["100", "seed"], ["100", "1", "2"]):
        equal(example(proof, *words)[0], 3, words)


def only_its_own_proof_is_continued():
    proof = path("own")
    file, _ = small("own.obf", 2)
    other, _ = small("else.obf", 2, 2)
    solve(proof, "--proof-leaf", 8, "--obf", file)
    whole = prefix_of(proof, -1)
    for words, why in ((["--proof-leaf", 8, "--obf", other], "has another proof: line 2"),
                       (["--proof-leaf", 9, "--obf", file], "has another proof: line 1"), ([BOARD], "has another proof: line 1")):
        done = run("abdada", "solve", "--json", "--resume", "--proof", proof, *words)
        equal((done.status, len(done.said())), (1, 1), done.tail())
        check(why in done.err(), why, done.err())
        equal(prefix_of(proof, -1), whole)
    with open(proof, "w", encoding="ascii") as other_file:
        other_file.write("a letter of great value")
    done = run("abdada", "solve", "--resume", "--proof", proof, BOARD)
    equal((done.status, len(done.said())), (1, 1), done.tail())
    equal(prefix_of(proof, -1), b"a letter of great value")


def a_score_that_is_not_exact_has_no_proof():
    proof = path("stopped")
    done = run("abdada", "solve", "--time", 50, "--proof", proof, "-" * 27 + "OX------XO" + "-" * 27 + " X")
    equal(done.status, 1)
    check("there is no proof of that score" in done.err(), done.err())
    done = run("abdada", "check", proof)
    equal((done.status, len(done.lines["err"])), (2, 1), done.tail())
    check("not complete" in done.err(), done.err())


WRONG = [
    ("check", [], 2, "give the file of a proof"),
    ("check", ["/nowhere/proof"], 2, "/nowhere/proof: No such file"),
    ("check", [FOLDER], 2, "Is a directory"),
    ("check", [os.path.join(DATA, "ffo.obf")], 2, "not a proof file"),
    ("check", ["--sample", "0", "x"], 2, "--sample"),
    ("check", ["--sample", "101%", "x"], 2, "--sample"),
    ("check", ["--sample", "1x", "x"], 2, "--sample"),
    ("check", ["-j", "0", "x"], 2, "--threads"),
    ("check", ["--max-leaf", "25", "x"], 2, "--max-leaf"),
    ("check", ["--memory", "1K", "x"], 2, "--memory"),
    ("check", ["--keys", FOLDER, "x"], 2, "--keys needs --servers"),
    ("check", ["--servers", "nonsense", "x"], 2, "--servers"),
    ("solve", ["--proof", "/nowhere/proof", BOARD], 1, "--proof /nowhere/proof: No such file"),
    ("solve", ["--proof", "/dev/full", BOARD], 1, "--proof /dev/full: No space left on device"),
    ("solve", ["--proof", "x", "--wld", BOARD], 2, "--wld"),
    ("solve", ["--proof-leaf", "8", BOARD], 2, "needs --proof"),
    ("solve", ["--proof", "x", "--proof-leaf", "25", BOARD], 2, "--proof-leaf"),
    ("solve", ["--proof", "x", "--proof-leaf", "0", BOARD], 2, "--proof-leaf"),
]


def wrong_use_is_said_in_a_line():
    for command, words, status, why in WRONG:
        done = run("abdada", command, *words)
        equal((done.status, len(done.lines["err"]), done.out()), (status, 1, ""), words, done.tail())
        check(why in done.err(), why, "not in", done.err())


if __name__ == "__main__":
    sys.exit(main([
        small_endings_are_proved, a_leaf_is_a_proof_of_its_own, a_sample_says_its_seed,
        the_checker_of_another_make_agrees, changed_proofs_are_refused, no_claim_that_is_false_is_accepted,
        a_killed_writer_goes_on,
        a_cluster_proves_and_goes_on, a_cluster_checks, more_leaves_than_answers_have_room_are_checked, a_false_leaf_is_named_over_a_cluster,
        who_calls_a_true_claim_false_is_found_out, what_others_share_answers_no_claim, one_program_writes_a_proof,
        a_damaged_proof_is_not_continued, only_what_is_true_is_continued, bombs_take_no_memory, large_proofs_are_refused,
        only_its_own_proof_is_continued, a_score_that_is_not_exact_has_no_proof, wrong_use_is_said_in_a_line], ("abdada", "ttserver", "ttworker"), unstable=STARVED))
