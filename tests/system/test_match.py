#!/usr/bin/python3
"""The referee of chess games: it goes on with a match that was killed, ends one that is decided, and knows the rules."""
import argparse
import glob
import json
import os
import re
import signal
import subprocess
import sys

from cluster import PATIENCE, ROOT, check, equal, main, path_of, scratch, wait_until
from test_uci_games import VENV, needs_chess

MATCH = os.path.join(ROOT, "tests", "instruments", "match")
sys.path.insert(0, MATCH)
VIRTUAL = f"{path_of('abdada')} sim --uci --local 1024 --hosts"
# It plays the moves that it is given, over and over.
SCRIPTED = """
import sys
moves, at = sys.argv[1].split(), 0
for line in sys.stdin:
    if line.startswith("uci\\n"):
        print("uciok", flush=True)
    elif line.startswith("isready"):
        print("readyok", flush=True)
    elif line.startswith("ucinewgame"):
        at = 0
    elif line.startswith("go"):
        print("bestmove", moves[at % len(moves)], flush=True)
        at += 1
    elif line.startswith("quit"):
        break
"""


def start(*arguments, program="match.py"):
    paths = glob.glob(f"{VENV}/lib/python3*/site-packages")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths + [os.environ.get("PYTHONPATH", "")])}
    return subprocess.Popen([sys.executable, f"{MATCH}/{program}", *map(str, arguments)], env=environment, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def play(*arguments, **how):
    """(exit status, what it printed)"""
    with start(*arguments, **how) as match:
        said = match.communicate(timeout=2 * PATIENCE)[0]
    return match.returncode, said


def pairs_of(log):
    if not os.path.exists(log):
        return []
    with open(log, encoding="utf-8") as file:
        lines = file.read().split("\n")
    return sorted((json.loads(line) for line in lines[1:-1]), key=lambda pair: pair["pair"])


@needs_chess
def a_match_that_was_killed_goes_on():
    folder = scratch("match")
    ended, killed = f"{folder}/ended.log", f"{folder}/killed.log"
    options = ("--virtual", "--adjudicate", "--clock", "depth:3", "--b-clock", "depth:1", "--lanes", 2, "--games", 12,
               "--a", f"{VIRTUAL} 2", "--b", f"{VIRTUAL} 1")
    status, said = play(*options, "--log", ended)
    check(status == 0 and len(pairs_of(ended)) == 6, said)
    with start(*options, "--log", killed) as match:
        wait_until(lambda: len(pairs_of(killed)) >= 2, "two pairs")
        match.send_signal(signal.SIGKILL)
        match.communicate(timeout=PATIENCE)
    with open(killed, "a", encoding="utf-8") as file:
        file.write('{"pair": 3, "games')
    status, said = play(*options, "--log", killed, "--json", f"{folder}/result.json")
    equal(status, 0, said)
    equal(pairs_of(killed), pairs_of(ended))
    with open(f"{folder}/result.json", encoding="utf-8") as file:
        equal(sum(json.load(file)["pairs"]), 6)
    again, said_again = play(*options, "--log", killed)
    equal((again, said_again.splitlines()[-1]), (0, said.splitlines()[-1]))
    status, said = play(*options, "--log", killed, "--seed", 2)
    check(status == 1 and "is of another match" in said, said)
    for text in "the text of somebody", "rubbish\n{}\n":
        with open(killed, "w", encoding="ascii") as file:
            file.write(text)
        status, said = play(*options, "--log", killed)
        check(status == 1 and "is no log of a match" in said and "Traceback" not in said, said)
        with open(killed, encoding="ascii") as file:
            equal(file.read(), text)


@needs_chess
def a_match_ends_when_it_is_decided():
    import match

    class Played(match.Match):
        """Each pair brings A these points, one after the other."""
        POINTS = ((1, 0.5), (0.5, 0.5), (1, 1), (0, 1))

        def lane(self):
            while (pair := self.next_pair()) is not None:
                for white, points in zip("AB", self.POINTS[pair % 4]):
                    result = "1/2-1/2" if points == 0.5 else "1-0" if (points == 1) == (white == "A") else "0-1"
                    self.take(pair, {"white": white, "result": result, "why": "checkmate"})

    for more, decision, games in (((), None, 2000), (("--sprt", "0,40"), "at least 40 Elo", 1000),
                                  (("--sprt", "200,260"), "at most 200 Elo", 1000), (("--error", "60"), "the error is at most 60", 200)):
        options = match.parser("").parse_args(["--games", "2000", "--lanes", "1", "--every", "5000", *more])
        options = argparse.Namespace(**vars(options), a="a", b="b", a_option=[], b_option=[])
        played = Played(options)
        check(played.run(), more)
        equal(played.decision, decision, more)
        check(len(played.games) == games if decision is None else 40 <= len(played.games) <= games, more, len(played.games))


@needs_chess
def the_rules_end_games():
    folder = scratch("match")
    script = f"{folder}/scripted.py"
    with open(script, "w", encoding="utf-8") as file:
        file.write(SCRIPTED)
    for openings, a, b, reasons in (  # in the second game B has White, and not the moves for it
            ("e2e4 e7e5", "g1f3 f3g1", "b8c6 c6b8", ["threefold_repetition", "illegal move 'b8c6'"]),
            ("f2f3 e7e5", "g2g4", "d8h4", ["checkmate", "illegal move 'd8h4'"])):
        with open(f"{folder}/openings", "w", encoding="utf-8") as file:
            file.write(f"# one\n{openings}  # this\n")
        status, said = play("--games", 2, "--lanes", 1, "--clock", "move:1", "--slack", 60000, "--openings", f"{folder}/openings",
                            "--a", f"{sys.executable} {script} '{a}'", "--b", f"{sys.executable} {script} '{b}'",
                            "--json", f"{folder}/result.json")
        equal(status, 0, said)
        with open(f"{folder}/result.json", encoding="utf-8") as file:
            equal([game["why"] for game in json.load(file)["games"]], reasons, said)


@needs_chess
def real_engines_play_by_nodes_and_virtual_ones_by_their_clock():
    for clock, more in (("nodes:500", ()), ("game:0.2+0.002", ("--virtual",))):
        status, said = play("--games", 2, "--lanes", 1, "--clock", clock, "--adjudicate", *more,
                            "--a", f"{path_of('abdada')} uci --private" if not more else f"{VIRTUAL} 2", "--b", f"{VIRTUAL} 1")
        check(status == 0 and "; 0 lost by time" in said and said.startswith("2 games, "), said)


def play_with_kills(*options):
    status, said = play("--games", 2, "--kill-every", 1, "--clock", "move:0.03", "--slack", 60000, "--adjudicate", *options,
                        program="kills.py")
    found = re.search(r"kills: (.*); 0 losses on time .* 0 illegal moves, 0 crashes, 0 answers missing, 0 without", said)
    check(status == 0 and "2 games, " in said and found, said)
    check(sum(map(int, re.findall(r"\d+", found[1]))) > 0, said)
    return found[1]


@needs_chess
def games_go_on_while_shards_and_workers_are_killed():
    play_with_kills()


@needs_chess
def games_go_on_while_engines_are_killed_and_cables_are_out():
    probe = subprocess.run([sys.executable, "-c", "import network; print(network.why_no_delay() or '')"], text=True, cwd=ROOT,
                           env=os.environ | {"PYTHONPATH": os.path.dirname(os.path.abspath(__file__))},
                           stdout=subprocess.PIPE, check=True)
    if probe.stdout.strip():
        return probe.stdout.strip()
    kills = play_with_kills("--engine", f"{path_of('abdada')} uci --private")
    check(re.search(r"[1-9]\d* of the (worker|front-end)'s engine", kills), kills)
    return None


if __name__ == "__main__":
    sys.exit(main([a_match_that_was_killed_goes_on, a_match_ends_when_it_is_decided, the_rules_end_games,
                   real_engines_play_by_nodes_and_virtual_ones_by_their_clock, games_go_on_while_shards_and_workers_are_killed,
                   games_go_on_while_engines_are_killed_and_cables_are_out], ("abdada",)))
