#!/usr/bin/python3
"""Runs test programs that print TAP, each in its own process, and counts what they say.

    tests/run.py [-j N] [--timeout S] [--verbose] [--group NAME] [--totals FILE] PROGRAM...
    tests/run.py [...] --step NAME -- COMMAND...   one command as one test: exit 0 passes, 77 skips
    tests/run.py --sum FILE                        one line a group and the total over all of them

A crash, a time-out, a missing or a broken plan is a failure of its own. The last line is always
`N passed, N failed` with `, N skipped` where any were; the exit status is 1 when anything failed.

--again N: of the programs that declare themselves unstable (a line `# unstable: WHY` of their output), up to N
that failed run once more, alone, after the others, and their second result counts. More failures than N
are no accident, and none is run again. Nor is a program that a sanitizer, valgrind, a signal, a CHECK or the time-out
stopped, or that got a wrong answer (`right` in system/cluster.py). The totals count the programs that needed it, and
name each as UNSTABLE.

On a busy or a slow machine all time-outs grow: as many times as a fixed piece of work takes longer, at the start or when
one is over (twice at most: what hangs may itself be what makes it slow), than on an idle machine of today. SLOWNESS
gives that number, to the runner and to its programs.

TEST_GROUPS="NAME|NAME|...", of `make test`: the groups that there are. The runner says which of them begins, and notes in
the totals which are expected. --sum counts a group that did not report as a failure. Groups may run beside each other, and
each in several parts.
"""
import argparse
import collections
import concurrent.futures
import fcntl
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
OUTPUT_MAX = 20000  # characters shown of a failing program
REASON_LINES = 4    # of comment repeated in the totals for a failing test
EXTENSIONS = 2      # of a time-out, on a machine that has become slower
LINE_MAX = 400      # characters of each line of a failing command that are repeated there
SLOWEST = 10        # programs that the totals name
SKIP = 77
RESULT = re.compile(r"(not )?ok\b\s*(\d+)?\s*-?\s*(.*)")
PLAN = re.compile(r"1\.\.(\d+)(\s*#\s*skip\b.*)?", re.IGNORECASE)
SKIPPED = re.compile(r"#\s*skip\b[\s:]*(.*)", re.IGNORECASE)
LATE = re.compile(r"# (.*), LATE")  # a time that is promised (system/cluster.py)
WORK, WORK_S = 2_000_000, 0.15  # a piece of work, and what an idle machine of today takes for it at most
DECLARED = re.compile(r"^# unstable: \S", re.MULTILINE)
NO_ACCIDENT = re.compile(r"Sanitizer|valgrind|core dumped|SIG(SEGV|ABRT|BUS|ILL|FPE)|runtime error:|: bug: |"
                         r"exit status -\d|time-out after |wrong answer:")


def slowness():
    """How many times the machine is slower now than an idle one of today: the median of three, 1 to 10."""
    took = []
    for _ in range(3):
        begin = time.monotonic()
        sum(i * i for i in range(WORK))
        took.append(time.monotonic() - begin)
    return min(10.0, max(1.0, sorted(took)[1] / WORK_S))


class Outcome:
    def __init__(self, name):
        self.name, self.passed, self.failed, self.skipped = name, 0, 0, 0
        self.seconds, self.cpu, self.end, self.output, self.remarks = 0.0, 0.0, 0.0, "", []
        self.failures = []  # for the totals: what failed, with the lines it gave as its reason
        self.skips, self.late = [], []  # for the totals, too: why tests were skipped, which promised times were late

    def fail(self, remark):
        self.failed += 1
        self.remarks.append(remark)
        self.failures.append(remark)

    def skip(self, text):
        self.skipped += 1
        self.skips.append(SKIPPED.search(text)[1].strip() or "no reason given")


def reason(lines):
    """The comments that follow a result."""
    return list(itertools.takewhile(lambda line: line.startswith("#"), lines))[-REASON_LINES:]


def read_tap(text, outcome):
    """Counts results; programs with several groups have several plans."""
    planned, seen, plans = 0, 0, 0
    lines = text.splitlines()
    for number, line in enumerate(lines):
        plan, result = PLAN.fullmatch(line.strip()), RESULT.match(line)
        if plan:
            plans += 1
            planned += int(plan[1])
            if plan[2]:
                outcome.skip(plan[2])
        elif result:
            seen += 1
            if SKIPPED.search(result[3]):
                outcome.skip(result[3])
            elif result[1]:
                outcome.failed += 1
                outcome.failures.append(" ".join([line] + reason(lines[number + 1:])))
            else:
                outcome.passed += 1
        elif line.startswith("Bail out!"):
            outcome.fail(line)
        elif late := LATE.fullmatch(line):
            outcome.late.append(late[1])
    if plans == 0:
        outcome.fail("no plan: the program did not get as far as 1..N")
    elif seen != planned:
        outcome.fail(f"{planned} tests planned, {seen} reported")


def run_process(command, timeout):
    """(exit status, output, seconds, CPU seconds, why it was ended or None). timeout: on an idle machine. Leaves no process
    of its group. CPU seconds: with the descendants that were waited for."""
    environment = dict(os.environ, CMOCKA_MESSAGE_OUTPUT="TAP", PYTHONUNBUFFERED="1",
                       XDG_CONFIG_HOME="/nonexistent")  # what this user's own file says is not tested
    for name in ("ABDADA_SERVERS", "ABDADA_TABLE", "ABDADA_KEYS", "TEST_GROUPS"):
        environment.pop(name, None)
    begin, late, ended = time.monotonic(), [], threading.Event()
    with tempfile.TemporaryFile() as out:
        try:
            process = subprocess.Popen(command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL,
                                       stdout=out, stderr=subprocess.STDOUT, start_new_session=True)
        except OSError as error:
            return 127, str(error), 0.0, 0.0, None

        def watch():
            patience, extensions = timeout * float(os.environ.get("SLOWNESS", 1)), 0
            while not ended.wait(begin + patience - time.monotonic()):
                if extensions < EXTENSIONS:
                    patience = timeout * slowness()  # the machine may have become slower meanwhile
                if time.monotonic() - begin >= patience:
                    late.append(f"time-out after {time.monotonic() - begin:.0f} s" +
                                (f", {extensions} of {EXTENSIONS} extensions" if extensions else ""))
                    os.killpg(process.pid, signal.SIGKILL)
                    return
                extensions += 1

        watchdog = threading.Thread(target=watch)
        watchdog.start()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # its number stays ours meanwhile
        ended.set()
        watchdog.join()
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        return (process.returncode, out.read().decode("utf-8", "replace"), time.monotonic() - begin,
                usage.ru_utime + usage.ru_stime, late[0] if late else None)


def run_into(outcome, command, timeout):
    status, outcome.output, outcome.seconds, outcome.cpu, late = run_process(command, timeout)
    outcome.end = time.time()
    return status, late


def describe(status):
    if status < 0:
        try:
            return f"killed by {signal.Signals(-status).name}"
        except ValueError:
            return f"killed by signal {-status}"
    return f"exit status {status}"


def run_tap(program, timeout):
    outcome = Outcome(program)
    path = program if os.path.isabs(program) else os.path.join(ROOT, program)
    command = [sys.executable, path] if program.endswith(".py") else [path]
    status, late = run_into(outcome, command, timeout)
    if late:
        outcome.fail(late)
        timed = Outcome(program)
        read_tap(outcome.output, timed)  # what it reported before counts, its broken plan does not
        outcome.passed, outcome.skipped, outcome.skips = timed.passed, timed.skipped, timed.skips
        outcome.failed += timed.failed - len(timed.remarks)
        outcome.failures += [f for f in timed.failures if f not in timed.remarks]
        return outcome
    read_tap(outcome.output, outcome)
    if status < 0 or (status != 0 and outcome.failed == 0):
        outcome.fail(describe(status))
    return outcome


def is_accident(outcome):
    said = [line for line in outcome.output.splitlines() if not line.startswith("ok ")]
    return DECLARED.search(outcome.output) and not NO_ACCIDENT.search("\n".join(said + outcome.failures))


def run_again(outcomes, most, timeout):
    """Replaces outcomes of --again; what failed first, a text each."""
    failed = [i for i, outcome in enumerate(outcomes) if outcome.failed]
    if len(failed) > most or not all(is_accident(outcomes[i]) for i in failed):
        return []
    unstable = []
    for i in failed:
        first, outcomes[i] = outcomes[i], run_tap(outcomes[i].name, timeout)
        outcomes[i].seconds, outcomes[i].cpu = outcomes[i].seconds + first.seconds, outcomes[i].cpu + first.cpu
        unstable += [f"{first.name}: {failure}" for failure in first.failures]
        print(f"run again, alone: {first.name}")
        show(outcomes[i])
    return unstable


def failed_lines(text):
    """What a command says of its first failure: the line, and the indented ones below it."""
    lines = text.splitlines()
    first = next((number for number, line in enumerate(lines) if "FAILED" in line), None)
    if first is None:
        return []
    below = itertools.takewhile(lambda line: line.startswith("  "), lines[first + 1:])
    return ["#", *(line.strip()[:LINE_MAX] for line in [lines[first], *itertools.islice(below, REASON_LINES)])]


def run_step(name, command, timeout):
    outcome = Outcome(name)
    status, late = run_into(outcome, command, timeout)
    if late:
        outcome.fail(late)
    elif status == 0:
        outcome.passed = 1
    elif status == SKIP:
        outcome.skip("# skip " + (outcome.output.strip().splitlines() or [""])[-1])
        outcome.remarks += outcome.skips
    else:
        outcome.fail(" ".join([describe(status)] + failed_lines(outcome.output)))
    return outcome


def of_failures(text):
    """What is said before and after each `not ok`, and at the end: not of tests that passed."""
    blocks = [[]]
    for line in text.splitlines():
        blocks[-1].append(line)
        if line.startswith(("ok ", "not ok ")):
            blocks.append([])
    failing = [bool(block) and block[-1].startswith("not ok ") for block in blocks]
    shown = []
    for i, block in enumerate(blocks):
        if failing[i] or i == len(blocks) - 1 or (i > 0 and failing[i - 1]):
            shown += block
        elif shown[-1:] != ["[...]"]:
            shown.append("[...]")
    return "\n".join(shown)


def show(outcome, verbose=False):
    print(f"{outcome.name:<48} {outcome.passed:5} passed {outcome.failed:3} failed "
          f"{outcome.skipped:3} skipped {outcome.seconds:7.1f} s")
    if outcome.failed or verbose:
        text = outcome.output if len(outcome.output) <= OUTPUT_MAX else of_failures(outcome.output)
        if len(text) > OUTPUT_MAX:
            half = OUTPUT_MAX // 2
            text = text[:half] + "\n[...]\n" + text[-half:]
        for line in text.splitlines():
            print("    | " + line)
    for remark in outcome.remarks:
        print("    " + remark)
    sys.stdout.flush()


def total_line(counts):
    passed, failed, skipped = counts
    return f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else "")


def add_entry(path, entry):
    """Appends a line, whole even where groups end at the same time; the entries that were there before."""
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "a+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        before = read_entries(file)
        file.write(json.dumps(entry) + "\n")
    return before


def read_entries(file):
    """None in place of a line that is none."""
    entries = []
    for line in file:
        try:
            entries.append(json.loads(line))
        except ValueError:
            entries.append(None)
    return entries


def expected_groups():
    return [name for name in os.environ.get("TEST_GROUPS", "").split("|") if name]


def write_times(path, entries):
    """Writes the time of each program, by its end, and prints the ten slowest and the last."""
    times = [dict(group=entry["group"], **one) for entry in entries if entry for one in entry.get("times", [])]
    if not times:
        return
    times.sort(key=lambda one: one["end"])
    with open(path, "w", encoding="utf-8") as file:
        file.write("[\n" + ",\n".join(json.dumps(one) for one in times) + "\n]\n")
    begin = min(one["end"] - one["seconds"] for one in times)
    print(f"\n{len(times)} programs took {times[-1]['end'] - begin:.0f} s; {times[-1]['program']} ended last. The slowest (all: {path}):")
    for one in sorted(times, key=lambda one: -one["seconds"])[:SLOWEST]:
        print(f"  {one['seconds']:7.1f} s {one['cpu']:7.1f} s of CPU  {one['group']:<16} {one['program']}")


def sum_up(path):
    groups, begun, failures, unstable, late, expected = {}, {}, [], [], [], expected_groups()
    skips = collections.Counter()
    entries = []
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            entries = read_entries(file)

    def fail(group, why):
        groups.setdefault(group, [0, 0, 0, 0.0])[1] += 1
        failures.append(f"{group}: {why}")

    for entry in entries:
        if entry is None:
            fail("totals", "a line is torn")
        elif "begins" in entry:
            begun[entry["begins"]] = entry["group"]
            expected += [name for name in entry.get("expected", []) if name not in expected]
        else:
            group = groups.setdefault(entry["group"], [0, 0, 0, 0.0])
            for i, key in enumerate(("passed", "failed", "skipped", "seconds")):
                group[i] += entry[key]
            failures += [f"{entry['group']}: {f}" for f in entry["failures"]]
            unstable += [f"{entry['group']}: {f}" for f in entry["unstable"]]
            late += [f"{entry['group']}: {text}" for text in entry["late"]]
            skips.update(entry["skips"])
            begun.pop(entry.get("part"), None)
    for group in begun.values():
        fail(group, "it began and did not report")
    for group in expected:
        if group not in groups:
            fail(group, "it never began")
    if not groups:  # nothing ran: that is no success
        groups["nothing ran"] = [0, 1, 0, 0.0]
    write_times(os.path.join(os.path.dirname(path), "times.json"), entries)
    print("\nTotals")
    for name, (passed, failed, skipped, seconds) in groups.items():
        print(f"  {name:<32} {passed:6} passed {failed:4} failed {skipped:4} skipped "
              f"{seconds:8.1f} s{'   <-- FAILED' if failed else ''}")
    for why, count in skips.most_common():
        print(f"  SKIPPED {count}: {why}")
    for text in late:
        print(f"  LATE {text}")
    print(f"  programs that needed a second run: {len({tuple(failure.split(': ')[:2]) for failure in unstable})}")
    for failure in unstable:
        print(f"  UNSTABLE, run again alone: {failure}")
    for failure in failures:  # last: of a long log often only the end is kept
        print(f"  FAILED {failure}")
    counts = [sum(group[i] for group in groups.values()) for i in range(3)]
    print(total_line(counts))
    return 1 if counts[1] else 0


def read_arguments(words):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-j", "--jobs", type=int, default=1, metavar="N")
    parser.add_argument("--timeout", type=float, default=120, metavar="S", help="each program's")
    parser.add_argument("--again", type=int, default=0, metavar="N", help="failed programs that may run once more")
    parser.add_argument("--verbose", action="store_true", help="show what passing programs print")
    parser.add_argument("--group", default="tests", metavar="NAME", help="what totals call this")
    parser.add_argument("--totals", metavar="FILE", help="append the counts to this file")
    parser.add_argument("--sum", metavar="FILE", help="print the totals of such a file")
    parser.add_argument("--step", metavar="NAME", help="run one command as one test")
    parser.add_argument("program", nargs="*")
    return parser.parse_args(words)


def begin_group(a, part):
    """Says which group begins, before the first of its parts."""
    groups = expected_groups()
    before = add_entry(a.totals, dict(group=a.group, begins=part, expected=groups))
    if a.group in groups and a.group not in [entry["group"] for entry in before if entry]:
        print(f"== group {groups.index(a.group) + 1} of {len(groups)}: {a.group}", flush=True)


def main():
    words, command = sys.argv[1:], []
    if "--step" in words and "--" in words:
        cut = words.index("--")
        words, command = words[:cut], words[cut + 1:]
    a = read_arguments(words)
    if a.sum:
        return sum_up(a.sum)
    part = f"{os.getpid()}-{time.monotonic_ns()}"
    if a.totals:
        begin_group(a, part)
    if "SLOWNESS" not in os.environ:
        os.environ["SLOWNESS"] = f"{slowness():.2f}"
    begin, counts, failures = time.monotonic(), [0, 0, 0], []
    with concurrent.futures.ThreadPoolExecutor(max(1, a.jobs)) as pool:
        if a.step:
            runs = [pool.submit(run_step, a.step, command, a.timeout)]
        else:
            runs = [pool.submit(run_tap, program, a.timeout) for program in a.program]
        outcomes = []
        for run in runs:  # in the order given, whatever ended first
            outcomes.append(run.result())
            show(outcomes[-1], a.verbose)
    unstable = run_again(outcomes, a.again, a.timeout)
    for outcome in outcomes:
        failures += [f"{outcome.name}: {failure}" for failure in outcome.failures]
        for i, n in enumerate((outcome.passed, outcome.failed, outcome.skipped)):
            counts[i] += n
    if not runs:
        counts[1] += 1
        print("no test programs given")
    if a.totals:
        add_entry(a.totals, dict(group=a.group, part=part, passed=counts[0], failed=counts[1], skipped=counts[2],
                                 seconds=time.monotonic() - begin, failures=failures, unstable=unstable,
                                 skips=[why for o in outcomes for why in o.skips],
                                 late=[f"{o.name}: {text}" for o in outcomes for text in o.late],
                                 times=[dict(program=o.name, seconds=round(o.seconds, 2), cpu=round(o.cpu, 2),
                                             end=round(o.end, 2)) for o in outcomes]))
    print(total_line(counts), flush=True)
    return 1 if counts[1] else 0


if __name__ == "__main__":
    sys.exit(main())
