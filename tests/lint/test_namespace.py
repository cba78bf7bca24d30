#!/usr/bin/python3
"""The namespace of a game changes with every source that its table entries depend on. TAP."""
import os
import shutil
import subprocess
import sys
import tempfile

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
HEADER = "build/release/namespaces.h"

# file that is changed: the games whose namespace changes with it
CASES = {
    "worker/games/chess/eval.c": {"chess"},
    "worker/games/chess/position.h": {"chess"},
    "worker/games/tree/tree.c": {"tree"},
    "worker/games/othello/evaluation.weights": {"othello"},
    "worker/games/othello/board.h": {"othello"},
    "worker/games/game.h": {"chess", "othello", "tree"},
    "worker/search/select.c": {"chess", "othello", "tree"},
    "common/rng.h": {"chess", "othello", "tree"},
    "common/counters.h": {"chess", "othello", "tree"},  # fields of letters
    "worker/engine/letter.c": {"chess", "othello", "tree"},
    "worker/search/handover/peers.h": {"chess", "othello", "tree"},
    "worker/engine/job.c": set(),
}


def make(root):
    """The namespaces by game, as `make` writes them in this tree."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS"))}
    env.pop("MODE", None), env.pop("O", None)
    subprocess.run(["make", "-s", HEADER], cwd=root, env=env, check=True)
    with open(os.path.join(root, HEADER)) as file:
        words = [line.split() for line in file]
    return {name[len("NAMESPACE_"):]: value for define, name, value in words}


def copy_to(root):
    shutil.copy(os.path.join(TOP, "Makefile"), root)
    for folder in ("common", "worker"):
        shutil.copytree(os.path.join(TOP, folder), os.path.join(root, folder))
    os.makedirs(os.path.join(root, "build"))
    open(os.path.join(root, "build/headers"), "w").close()  # the libraries are not looked for


def main():
    results = []
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
        copy_to(one), copy_to(two)
        before = make(one)
        results.append(("every game has a namespace of its own",
                        set(before) == {"chess", "othello", "tree"} and len(set(before.values())) == 3 and
                        all(len(v) == len("UINT64_C(0x)") + 16 for v in before.values())))
        results.append(("another copy has the same", make(two) == before))
        written = os.stat(os.path.join(one, HEADER)).st_mtime_ns
        results.append(("nothing is written while nothing changes", make(one) == before and
                        os.stat(os.path.join(one, HEADER)).st_mtime_ns == written))
        for path, expected in CASES.items():
            with open(os.path.join(one, path), "a") as file:
                file.write("/* changed */\n")
            after = make(one)
            changed = {game for game in before if before[game] != after[game]}
            results.append((f"{path} changes {' and '.join(sorted(expected)) or 'none'}",
                            changed == expected))
            before = after
    print(f"1..{len(results)}")
    for number, (name, good) in enumerate(results, 1):
        print(f"{'ok' if good else 'not ok'} {number} - {name}")
    return 0 if all(good for _, good in results) else 1


if __name__ == "__main__":
    sys.exit(main())
