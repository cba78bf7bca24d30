#!/usr/bin/python3
"""Repeats the figures of README.md that one machine can repeat, with the instruments that made them.

  tests/instruments/bench/readme_figures.py [--only NAME,...] [--quick] [--list]

A row of FIGURES says where measurements.md, "At a glance", has a figure and where the instrument prints it, so no figure is
written down here. The page says a figure or, where machines differ, the range over several of them ("1.8 to 1.9"). A row
whose figure is not there is a failure, and so is one that README.md gives otherwise (it has some of them). So is a measured
figure that does not agree with the page's: a ratio agrees if the range of its runs, widened by a twentieth, meets that
figure or range; a gain in plies if it is larger than its error and at most one and a half times that away (the page's has
an error, too); one of the virtual cluster, which is the same
everywhere, if it is the same. Speeds are shown and not judged: other machines have others. --quick: smaller runs, which show that all works, and judge nothing.
Those marked `long` take hours and run only if they are named. Games against other engines (`make match`) and the soak
(`make soak`) are not here. Needs the release build; `make readme-figures BENCH="--quick"` makes it.
"""
import argparse
import os
import re
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
SLACK = 1.05
RATIO = r"([\d.]+) \(([\d.]+)-([\d.]+)\)"  # and its range over the runs
SAID = r"\**(\+?[\d.]+(?: to \+?[\d.]+)?)"  # in the documents


def bench(name, *words):
    return [sys.executable, f"tests/instruments/bench/{name}.py", *words]


def lab(*words):
    return [sys.executable, "tests/instruments/lab/lab.py", *words]


def gains(time_ms, column):
    """What a second searcher brings in that time: plies, in that column of the first table."""
    cells = (r" \|", r" \|[^|]*\|")[column] + r"[^|]*?" + SAID
    return (5 * time_ms // 1000 + 2, bench("bench_search", "--only", "full", "--runs", "3", "--time", str(time_ms)),
            ["--runs", "1", "--time", "20"],
            [(side + cells, rf"depth in \d+ ms: {printed} .*?([+-][\d.]+) +\+-([\d.]+)", "gain") for side, printed in
             (("worker on another host", r"\+ 1 worker, no table in common"),
              ("worker on the same host", r"\+ 1 worker of the same host"), ("two threads, no worker", "2 threads"))])


# NAME: (minutes, command, more of it for --quick, [(figure in the page, figure in what the command prints, how)]). The
# first group of a pattern is the figure; the second and third of what is printed are the range, or of a gain the second is
# its error. how: ratio, gain, same.
FIGURES: dict = {
    "threads": (40, bench("bench_search", "--only", "threads", "--depth", "9"), ["--depth", "6", "--runs", "1"], [
        (r"two threads to one[^|]*\| " + SAID, rf"1 \| 2 threads, abdada  .*? {RATIO}", "ratio")]),
    "worker": (14, bench("bench_search", "--only", "worker"), ["--depth", "6", "--runs", "1"], [
        (r"front-end \+ worker[^|]*\| " + SAID, rf"alone \| \+ 1 worker, over 1 shard .*? {RATIO}", "ratio"),
        (r"front-end \+ worker[^|]*\| [^|;]*; " + SAID, rf"no table in common \(--private\) .*? {RATIO}", "ratio")]),
    "service": (5, bench("service"), ["--repeats", "1", "--seconds", "0.2"], [
        (r"operations of a shard[^|]*\| " + SAID, rf"times Redis's atomic script +{RATIO}", "ratio"),
        (r"operations of a shard[^|]*\| [^|;]*; " + SAID, rf"times the same, a batch a call +{RATIO}", "ratio")]),
    "othello": (2, bench("bench_othello"), ["--positions", "40-40", "--runs", "1"], [
        (r"Othello endings FFO #40 to #44[^|]*\| " + SAID, r"one thread .*? ([\d.]+) Mnodes", "same")]),
    "full": gains(200, 0),
    "full-1s": gains(1000, 1),
    "weill-32": ("long", lab("weill-32"), ["--quick"], [
        (r"32 searchers on Weill's machine[^|]*\| " + SAID, r"^ +28 +([\d.]+) ", "same")]),
}


def in_documents(pattern):
    """The figure in the page, or None; None as well where README.md has another."""
    figures = []
    for name in ("docs/research/measurements.md", "README.md"):
        with open(os.path.join(ROOT, name), encoding="utf-8") as file:
            found = re.search(pattern, file.read())
        figures.append(found and found[1])
    return figures[0] if figures[1] in (None, figures[0]) else None


def judge(said, values, how):
    """Whether what was measured is what the page says."""
    ends = [float(end) for end in said.split(" to ")]
    least, most = ends[0], ends[-1]
    if how == "gain":
        gain, error = (float(value) for value in values)
        return error < gain and least - 1.5 * error <= gain <= most + 1.5 * error
    low, high = (float(value) for value in (values[1:] if len(values) == 3 else values * 2))
    if how == "same":  # to as many digits as the page has
        return f"{low:.{len(said.partition('.')[2])}f}" == said
    return low / SLACK <= most and least <= high * SLACK


def repeat(name, quick):
    """Runs the command, prints a line for each figure; how many are wrong."""
    _, command, smaller, rows = FIGURES[name]
    command = command + smaller if quick else command
    begin, wrong = time.monotonic(), 0
    print(f"# {name}: {' '.join([os.path.basename(command[0]), *command[1:]])}", flush=True)
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False,
                          env={**os.environ, "BIN": os.path.join(ROOT, "build/release/bin" if name == "service" else "bin")})
    if done.returncode != 0:
        print(f"{name:<10} FAILED with exit status {done.returncode}\n{done.stdout}")
        return len(rows)
    for pattern, printed, how in rows:
        said, found = in_documents(pattern), re.search(printed, done.stdout, re.MULTILINE)
        if not said or not found:
            print(f"{name:<10} {'the page' if not said else 'the instrument'} has nothing like {pattern if not said else printed!r}")
            wrong += 1
            continue
        values = [value for value in found.groups() if value is not None]
        right = None if quick else judge(said, values, how)
        between = f"({values[1]}-{values[2]})" if len(values) == 3 else f"(+-{values[1]})" if len(values) == 2 else ""
        print(f"{name:<10} page {said:>12}   here {values[0]:>8} {between:<16} "
              f"{ {None: 'not judged', True: 'repeated', False: 'NOT REPEATED'}[right]}", flush=True)
        wrong += right is False
    print(f"# {name}: {time.monotonic() - begin:.0f} s", flush=True)
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(name for name in FIGURES if FIGURES[name][0] != "long"), metavar="NAME,...",
                        help=f"of {', '.join(FIGURES)} (default: those not marked long)")
    parser.add_argument("--quick", action="store_true", help="smaller runs that judge nothing")
    parser.add_argument("--list", action="store_true", help="print what the documents say, and run nothing")
    options = parser.parse_args()
    names = options.only.split(",")
    if unknown := set(names) - set(FIGURES):
        parser.error(f"no such figure: {', '.join(sorted(unknown))}")
    if options.list:
        rows = [(name, FIGURES[name][0], in_documents(pattern)) for name in FIGURES for pattern, *_ in FIGURES[name][3]]
        for name, minutes, said in rows:
            print(f"{name:<10} {said or 'NOT FOUND':>12}   {minutes if minutes == 'long' else f'{minutes} minutes'}")
        return 1 if any(said is None for *_, said in rows) else 0
    print(subprocess.run([os.path.join(ROOT, "bin/abdada"), "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout +
          f"{os.cpu_count()} CPUs, load average {os.getloadavg()[0]:.2f}", flush=True)
    return 1 if sum(repeat(name, options.quick) for name in names) else 0


if __name__ == "__main__":
    sys.exit(main())
