#!/usr/bin/env python3
"""What each rule of the selective search is worth in games: the engine as it is (A) against a build without
the rule, or with other parameters (B), both with the same nodes for a move, so that the load of the machine
does not count.

  search_rules.py                              every rule of RULES in turn
  search_rules.py --rule null-move             one of them
  search_rules.py --change ".null_margin=150"  parameters of `struct game_search` (worker/games/game.h)

A positive difference says that the rule, or the present parameter, is the better one. Needs the package
`chess` (`make tune-search` installs it)."""
import argparse
import os
import re
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
NEVER = 127  # deeper than any node
RULES = {
    "reverse-futility": ".reverse_depth=-1",
    "razoring": ".razor_depth=-1",
    "null-move": f".null_depth={NEVER}",
    "futility": ".futility_depth=-1",
    "late-move-pruning": ".late_depth=-1",
    "late-move-reductions": f".reduce_depth={NEVER}",
    "exchange-pruning": ".exchange_depth=-3",
    "singular-extensions": f".singular_depth={NEVER}",
    "internal-reductions": f".internal_depth={NEVER}",
    "quiescence-margin": ".quiescence_margin=30000",
    "continuation-history": ".continuations=0",
    "correction": ".correction_max=0",
    "aspiration": f".aspiration_depth={NEVER}",
}


def build(name, changes):
    """The program with these changes."""
    out = f"build/tune/{re.sub('[^a-z0-9]+', '-', name.lower()).strip('-')}"
    flags = f"-Wno-override-init '-DGAME_SEARCH_CHANGES={changes},'"
    done = subprocess.run(["make", "-s", f"-j{os.cpu_count()}", f"O={out}", f"CFLAGS={flags}", f"{out}/bin/abdada"],
                          cwd=TOP, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"search_rules: no build with {changes!r}:\n{done.stdout[-2000:]}")
    return f"{TOP}/{out}/bin/abdada uci"


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    p.add_argument("--rule", action="append", choices=RULES, help="leave it out (default: every rule in turn)")
    p.add_argument("--change", action="append", default=[], metavar=".FIELD=VALUE[,...]",
                   help="of struct game_search in worker/games/game.h")
    p.add_argument("--games", type=int, default=400, help="for each (default: %(default)s)")
    p.add_argument("--nodes", type=int, default=5000, help="for each move (default: %(default)s)")
    p.add_argument("--lanes", type=int, default=os.cpu_count(), help="games at a time (default: %(default)s)")
    p.add_argument("--seed", type=int, default=1, help="of the openings")
    o = p.parse_args()
    for change in o.change:
        if not re.fullmatch(r"\.\w+ *= *-?\d+(, *\.\w+ *= *-?\d+)*", change):
            p.error(f".FIELD=VALUE[,.FIELD=VALUE...] with whole numbers, not {change!r}")
    rules = o.rule or ([] if o.change else list(RULES))
    variants = [(f"without {rule}", RULES[rule]) for rule in rules] + [(change, change) for change in o.change]
    for name, changes in variants:
        other = build(name, changes)
        done = subprocess.run([sys.executable, f"{TOP}/tests/instruments/match/match.py", "--adjudicate", "--a", f"{TOP}/build/release/bin/abdada uci",
                               "--b", other, "--games", str(o.games), "--clock", f"nodes:{o.nodes}", "--lanes", str(o.lanes),
                               "--seed", str(o.seed), "--every", str(o.games + 1)],
                              stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            return 1
        print(f"{name:28} {done.stdout.strip().splitlines()[-1]}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
