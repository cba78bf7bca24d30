#!/usr/bin/python3
"""The test runner counts reported results, and a missing report is a failure. TAP."""
import json
import os
import re
import subprocess
import sys
import tempfile

RUN = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "run.py")

# name: (script, total line, exit status)
CASES = {
    "results are counted": ("echo 1..2; echo ok 1 - a; echo ok 2 - b", "2 passed, 0 failed", 0),
    "a failure is one": ("echo 1..2; echo ok 1; echo not ok 2 - b; exit 1",
                         "1 passed, 1 failed", 1),
    "a skip is no failure": ("echo 1..2; echo ok 1; echo 'ok 2 - b # SKIP no b'",
                             "1 passed, 0 failed, 1 skipped", 0),
    "a skipped program": ("echo '1..0 # SKIP no tool'", "0 passed, 0 failed, 1 skipped", 0),
    "several groups": ("echo 1..1; echo ok 1 - a; echo 1..1; echo ok 1 - b",
                       "2 passed, 0 failed", 0),
    "noise is no result": ("echo okay; echo 1..1; echo '# ok 1'; echo '  ok 2'; echo ok 1",
                           "1 passed, 0 failed", 0),
    "no plan": ("echo ok 1", "1 passed, 1 failed", 1),
    "silence": ("true", "0 passed, 1 failed", 1),
    "too few results": ("echo 1..3; echo ok 1", "1 passed, 1 failed", 1),
    "an exit status without a failed test": ("echo 1..1; echo ok 1; exit 3", "1 passed, 1 failed", 1),
    "a crash": ("echo 1..2; echo ok 1; kill -SEGV $$", "1 passed, 2 failed", 1),
    "bail out": ("echo 'Bail out! no server'; exit 1", "0 passed, 2 failed", 1),
    "a time-out": ("echo 1..2; echo ok 1; sleep 60", "1 passed, 1 failed", 1),
    "nothing that outlives it": ("sleep 60 & echo 1..1; echo ok 1", "1 passed, 0 failed", 0),
    "standard input is empty": ("read x || echo 1..1; echo ok 1", "1 passed, 0 failed", 0),
}


def run(*words):
    done = subprocess.run([sys.executable, RUN, *words], stdout=subprocess.PIPE, timeout=30,
                          universal_newlines=True)
    return done.returncode, done.stdout.splitlines()[-1]


def check_script(folder, script):
    path = os.path.join(folder, "program")
    with open(path, "w") as file:
        file.write("#!/bin/sh\n" + script + "\n")
    os.chmod(path, 0o755)
    return run("--timeout", "2", path)


def check_totals(folder):
    totals = os.path.join(folder, "totals")
    got = [run("--sum", totals),
           run("--totals", totals, "--step", "true", "--", "true"), run("--sum", totals),
           run("--totals", totals, "--step", "skip", "--", "sh", "-c", "echo none; exit 77"),
           run("--totals", totals, "--step", "false", "--", "false"), run("--sum", totals),
           run("--totals", totals)]
    return got == [(1, "0 passed, 1 failed"),
                   (0, "1 passed, 0 failed"), (0, "1 passed, 0 failed"),
                   (0, "0 passed, 0 failed, 1 skipped"),
                   (1, "0 passed, 1 failed"), (1, "1 passed, 1 failed, 1 skipped"),
                   (1, "0 passed, 1 failed")], got


def check_remarks(folder):
    """The totals say how long all took, why tests were skipped and what was late, of programs that passed, too."""
    totals, path = os.path.join(folder, "remarks"), os.path.join(folder, "program")
    with open(path, "w") as file:
        file.write("#!/bin/sh\necho 1..3; echo '# a move: 3.10 s, promised 3 s, LATE'; echo ok 1; echo 'ok 2 # SKIP no b'\n"
                   "echo 'ok 3 - c # SKIP no b'\n")
    for group in "g", "h":
        run("--totals", totals, "--group", group, path)
    done = subprocess.run([sys.executable, RUN, "--sum", totals], stdout=subprocess.PIPE, universal_newlines=True)
    with open(os.path.join(folder, "times.json")) as file:
        times = json.load(file)
    return (["  SKIPPED 4: no b", *(f"  LATE {group}: {path}: a move: 3.10 s, promised 3 s" for group in "gh"),
             "  programs that needed a second run: 0", "2 passed, 0 failed, 4 skipped"] == done.stdout.splitlines()[-5:] and
            [(one["group"], one["program"]) for one in times] == [("g", path), ("h", path)] and
            re.search(r"^2 programs took \d+ s; .* ended last", done.stdout, re.MULTILINE)), done.stdout


def check_long(folder):
    """Of a long output what belongs to the failures is shown."""
    path = os.path.join(folder, "long")
    with open(path, "w") as file:
        file.write("#!/bin/sh\necho 1..3\nseq -f '# first %g' 5000\necho ok 1\necho '# before'\necho not ok 2\n"
                   "echo '# after'\necho ok 3\nseq -f '# last %g' 2\nexit 1\n")
    os.chmod(path, 0o755)
    done = subprocess.run([sys.executable, RUN, path], stdout=subprocess.PIPE, timeout=30, universal_newlines=True)
    shown = [line[6:] for line in done.stdout.splitlines() if line.startswith("    | ")]
    return shown == ["[...]", "# before", "not ok 2", "# after", "ok 3", "# last 1", "# last 2"], shown


def check_names(folder):
    """The totals end with what failed and why: a log's end is often all that is kept of it."""
    totals, path = os.path.join(folder, "names"), os.path.join(folder, "program")
    with open(path, "w") as file:
        file.write("#!/bin/sh\necho 1..3; echo not ok 1 - a; echo '# why'; echo ok 2; echo '# not this'; exit 3\n")
    os.chmod(path, 0o755)
    run("--totals", totals, "--group", "g", path)
    done = subprocess.run([sys.executable, RUN, "--sum", totals], stdout=subprocess.PIPE, universal_newlines=True)
    got = done.stdout.splitlines()[-3:-1]
    return got == [f"  FAILED g: {path}: not ok 1 - a # why",
                   f"  FAILED g: {path}: 3 tests planned, 2 reported"], done.stdout


def check_groups(folder):
    """A group that did not report is a failure, and said; a line is whole whatever ends at the same time."""
    totals, got = os.path.join(folder, "groups"), []
    environment = dict(os.environ, TEST_GROUPS="a|b, dev|c")

    def say(*words):
        return subprocess.run([sys.executable, RUN, *words], stdout=subprocess.PIPE, universal_newlines=True,
                              env=environment).stdout.splitlines()

    for group in "b, dev", "b, dev", "a":
        got.append(say("--totals", totals, "--group", group, "--step", "true", "--", "true")[0].startswith("== "))
    got.append(say("--sum", totals)[-2:])
    got.append(run("--sum", totals))  # without TEST_GROUPS, too
    with open(totals, "a") as file:
        file.write('{"group": "c", "begins": "1"}\n{"gro')
    got.append(say("--sum", totals)[-3:])
    os.unlink(totals)
    many = [subprocess.Popen([sys.executable, RUN, "--totals", totals, "--group", "x" * 20000, "--step", "true", "--",
                              "true"], stdout=subprocess.DEVNULL) for _ in range(4)]
    got.append([each.wait() for each in many])
    got.append(run("--sum", totals))
    return got == [True, False, True, ["  FAILED c: it never began", "3 passed, 1 failed"],
                   (1, "3 passed, 1 failed"),
                   ["  FAILED totals: a line is torn", "  FAILED c: it began and did not report",
                    "3 passed, 2 failed"], [0] * 4, (0, "4 passed, 0 failed")], got


def check_extensions(folder):
    """What hangs and keeps the machine busy is ended all the same, and its line says how often it was waited for."""
    path = os.path.join(folder, "busy")
    with open(path, "w") as file:
        file.write("#!/bin/sh\nwhile :; do :; done\n")
    os.chmod(path, 0o755)
    sys.path.insert(0, os.path.dirname(RUN))
    import run as runner
    slower = iter(range(2, 100))
    runner.slowness = lambda: next(slower)  # each time slower than before
    os.environ["SLOWNESS"] = "1"
    outcome = runner.run_tap(path, 1)  # a busy machine wakes the runner later than that now and then
    return re.fullmatch(r"time-out after \d+ s, [12] of 2 extensions", outcome.failures[0]), outcome.failures


def check_again(folder):
    """A failed program that declares itself unstable runs once more, and is named; a crash, or too many, is no accident."""
    totals, got = os.path.join(folder, "again"), []

    def program(name, first):
        path = os.path.join(folder, name)
        with open(path, "w") as file:
            file.write(f"#!/bin/sh\nif [ -e {path}.ran ]; then echo 1..1; echo ok 1; exit; fi\n"
                       f": > {path}.ran; echo 1..1; {first}\n".replace("UNSTABLE", "echo '# unstable: clocks'"))
        os.chmod(path, 0o755)
        return path

    late = "UNSTABLE; echo not ok 1 - late"
    for number, firsts in enumerate(([late], [late, late], ["UNSTABLE; echo not ok 1; kill -SEGV $$"],
                                     ["UNSTABLE; echo ThreadSanitizer: race; echo not ok 1"], ["echo not ok 1 - late"],
                                     ["UNSTABLE; echo not ok 1; echo '# cluster.Failure: wrong answer: 3'"],
                                     ["UNSTABLE; sleep 60"])):
        paths = [program(f"again-{number}-{i}", first) for i, first in enumerate(firsts)]
        got.append(run("--totals", totals, "--group", "g", "--again", "1", "--timeout", "2", *paths))
    done = subprocess.run([sys.executable, RUN, "--sum", totals], stdout=subprocess.PIPE, universal_newlines=True)
    got.append("  UNSTABLE, run again alone: g: " + os.path.join(folder, "again-0-0") + ": not ok 1 - late" in
               done.stdout.splitlines())
    return got == [(0, "1 passed, 0 failed"), (1, "0 passed, 2 failed"), (1, "0 passed, 2 failed"),
                   *[(1, "0 passed, 1 failed")] * 4, True], got


def main():
    failed = 0
    print(f"1..{len(CASES) + 7}")
    with tempfile.TemporaryDirectory() as folder:
        for number, (name, (script, total, status)) in enumerate(CASES.items(), 1):
            got = check_script(folder, script)
            good = got == (status, total)
            failed += not good
            print(f"{'ok' if good else 'not ok'} {number} - {name}" +
                  ("" if good else f"\n# {got}"), flush=True)
        for number, (name, check) in enumerate((("totals add up", check_totals), ("failures are named", check_names),
                                                ("an accident runs again", check_again),
                                                ("a missing group is a failure", check_groups),
                                                ("a time-out grows twice at most", check_extensions),
                                                ("failures of a long output are shown", check_long),
                                                ("the totals have skips and what was late", check_remarks)),
                                               len(CASES) + 1):
            good, got = check(folder)
            failed += not good
            print(f"{'ok' if good else 'not ok'} {number} - {name}" + ("" if good else f"\n# {got}"))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
