#!/usr/bin/python3
"""The virtual cluster under random faults: invariants hold, faults bite, planted faults are caught,
and every build makes the same runs.

RUNS: how many random runs (300). BIN: the binaries. OTHER_BINS: further builds, separated by
colons, that must give the same traces; those that are not there are left out.
"""
import json
import os
import re
import shlex
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "system"))
import cluster  # noqa: E402
from cluster import check, equal  # noqa: E402

RUNS = int(os.environ.get("RUNS", "300"))
JOBS = os.environ.get("JOBS", "2")
OTHERS = [path for path in os.environ.get("OTHER_BINS", "").split(":")
          if path and os.access(os.path.join(path, "abdada-chaos"), os.X_OK)]
PATIENCE = 800 * cluster.SLOWNESS
ENDING = "--XXXXX--OOOXX-O-OOOXXOX-OXOXOXXOXXXOXXX--XOXOXX-XXXOOO--OOOOO-- X"  # FFO #1: 14 empty squares
LIES = ("hellos", "asks", "stores", "releases", "peeks", "shares", "posts", "stops",
        "reports", "members", "jobs", "stats", "heartbeats", "scans", "flushes")


def run(program, *arguments, binaries=cluster.BIN):
    """(exit status, the JSON objects printed)"""
    path = os.path.join(os.path.abspath(binaries), program)
    process = cluster.run(path, *arguments, "--json", timeout=PATIENCE)
    lines = [json.loads(line) for line in process.lines["out"]]
    check(process.status in (0, 1), "exit status", process.status, process.err())
    return process.status, lines


def chaos(seeds, *arguments, **named):
    """(exit status, failures, summary)"""
    status, lines = run("abdada-chaos", "--seeds", seeds, "--jobs", JOBS, *arguments, **named)
    check(lines and "runs" in lines[-1], "no summary:", lines)
    return status, lines[:-1], lines[-1]


def invariants_survive_random_faults():
    status, failures, summary = chaos(f"1..{RUNS}")
    print("#", json.dumps(summary))
    check(not failures and status == 0, *[f"{f['command']}  # {f['broken']}\n" for f in failures])
    equal(summary["runs"], RUNS)
    equal(summary["failures"], 0)
    for what in ("kills", "restarts", "stalls", "cuts", "delays", "lossy_links", "suspends", "clock_jumps",
                 "messages_lost", "sessions_expired", "shards_down", "timeouts", "prolonged", "resets", "half_open", "deaf",
                 "intrusions", "connection_storms"):
        check(summary[what] >= RUNS / 10, what, "only", summary[what], "times: faults do not bite")
    for what in LIES:
        taken = summary["lies_taken_" + what]
        check(taken >= RUNS / 10, what, "only", taken, "times taken from the liar")
    check(sum(summary["lies_taken_" + what] for what in LIES) >= 0.7 * summary["lies"],
          "the liar is mostly refused:", summary)
    for what in ("snapshots", "files_read", "short_calls", "power_losses"):
        check(summary[what] >= RUNS / 10, what, "only", summary[what], "times: disks do not fail")
    for what in ("snapshot_failures", "full_disks", "disk_errors", "files_refused", "starts_failed", "files_spoiled"):
        check(RUNS < 300 or summary[what] > 0, what, "never: disks do not fail so")
    for what in ("all_shards_dead", "all_workers_dead"):
        check(summary[what] >= RUNS / 20, what, "only", summary[what], "times")


def earlier_failures_stay_mended():
    """What `make chaos` once found; what a seed means changes with what is drawn."""
    with open(os.path.join(ROOT, "tests/data/chaos-seeds.txt"), encoding="utf-8") as file:
        commands = [shlex.split(line, comments=True) for line in file]
    commands = [words for words in commands if words]
    check(commands, "no seeds")
    for words in commands:
        status, lines = run(*words)
        check(status == 0 and len(lines) == 1, shlex.join(words), lines)


def failures_are_kept():
    with tempfile.TemporaryDirectory(prefix="abdada-chaos-") as folder:
        path = os.path.join(folder, "failures")
        _, failures, _ = chaos("1..30", "--plant", "skip-release:5000", "--workers", "3", "--shards", 1, "--failures", path)
        check(failures, "nothing failed")
        with open(path, encoding="utf-8") as file:
            kept = file.read().splitlines()
        equal([line.split("   # commit ")[0] for line in kept], [failure["command"] for failure in failures])
        check(all(failure["broken"] in line for line, failure in zip(kept, failures)), kept)


def each_seed_leaves_kinds_of_trouble_out():
    _, _, summary = chaos("1..100", "--game", "tree:b=2,d=2", "--depth", 1, "--workers", 2, "--shards", 1)
    check(summary["simulated_hours"] > 0 and summary["cpu_seconds"] > 0, summary)
    for kind, runs in summary["runs_with"].items():
        check(40 <= runs <= 80, kind, runs)


def endings_of_othello_keep_their_scores():
    """Solved by the game's own solver, which polls as it goes."""
    count = min(RUNS, 25)
    status, failures, summary = chaos(f"1..{count}", "--game", "othello")
    print("#", json.dumps(summary))
    check(not failures and status == 0, *[f"{f['command']}  # {f['broken']}\n" for f in failures])
    equal(summary["runs"], count)
    check(summary["kills"] >= count / 2 and summary["sessions_expired"] >= count / 2, "faults do not bite:", summary)
    for path in OTHERS:
        equal(chaos("1..5", "--game", "othello", binaries=path)[2]["trace"],
              chaos("1..5", "--game", "othello")[2]["trace"])


def planted_faults_are_caught():
    """Each by the seed named here, or by one of the first 300 when seeds have come to mean something else."""
    for plant, broken, seed in (("skip-release:1000", "sessions in good order", 6),
                                ("never-expire-sessions", "sessions of the dead", 1),
                                ("never-expire", "past their age limit", 18),
                                ("skip-stop", "did not leave a job", 1),
                                ("lose-reports", "last reports missing", 1),
                                ("stale-index", "unevenly on jobs", 6),
                                ("half-made", "half-made tables", 8),
                                ("lose-flushes", "told wrong", 31),
                                ("stray-letters", "told wrong", 2),
                                ("lose-rows", "told wrong", 2),
                                ("lose-rest", "streams that are no ZMTP", 6),
                                ("lose-budget", "budgets of connections", 8),
                                ("keep-half-open", "connections left", 12),
                                ("false-results", "sequentially", 31),
                                ("wall-clock", "sessions of the dead", 69),
                                ("compare-clocks", "pairs without a session", 7),
                                ("skip-sync", "snapshots lost", 6),
                                ("skip-folder-sync", "snapshots lost", 6),
                                ("believe-sync", "snapshots lost", 68),
                                ("short-is-whole", "snapshots lost", 17),
                                ("trust-sums", "never written", 60)):
        for first, last in ((seed, seed), (1, 10), (11, 25), (26, 60), (61, 120), (121, 300)):
            status, failures, _ = chaos(f"{first}..{last}", "--plant", plant)
            caught = [f for f in failures if broken in f["broken"]]
            print(f"# {plant}: {len(caught)} of runs {first}..{last} break by '{broken}'")
            if caught:
                break
        check(status == 1 and caught, plant, "is not caught")


def a_failure_is_repeated_by_its_command():
    _, failures, _ = chaos("1..60", "--plant", "skip-release:5000", "--workers", "3", "--shards", 1)
    check(failures, "nothing failed")
    words = shlex.split(failures[0]["command"])
    equal(words[0], "abdada-chaos")
    status, lines = run(*words)
    equal(status, 1)
    equal(lines[0], failures[0])


def the_same_seeds_make_the_same_runs():
    count = 5 if cluster.QUICK else 30
    traces = [chaos(f"1001..{1000 + count}", binaries=path)[2]["trace"]
              for path in [cluster.BIN, cluster.BIN, *OTHERS]]
    check(len(set(traces)) == 1, traces)
    _, failures, other = chaos(f"2001..{2000 + count}")
    check(other["trace"] != traces[0] and not failures, other)


def every_build_gives_the_same_trace():
    if not OTHERS:
        return "no other build here"
    for arguments in (("--game", "tree:b=12,d=6,seed=2", "--depth", 6, "--workers", "1,3,16"),
                      ("--depth", 4, "--workers", "2,9", "--jitter-us", 40, "--loss", 1, "--seed", 5),
                      ("--game", "othello", "--solve", "--hosts", "1,3", "--threads", 2, ENDING),
                      ("--depth", 4, "--workers", "5", "--loose", "--wait", "--remote-depth", 2)):
        seen = [[row["trace"] for row in run("abdada", "sim", *arguments, binaries=path)[1]]
                for path in [cluster.BIN, *OTHERS]]
        check(all(traces == seen[0] for traces in seen), arguments, seen)
    return None


def wrong_use_is_refused():
    for words, word in ((("abdada-chaos", "--faults", "some"), "whole number"),
                        (("abdada-chaos", "--faults", "0"), "256"),
                        (("abdada-chaos", "--seeds", "9..3"), "A..B"),
                        (("abdada-chaos", "--seeds", "x"), "A..B"),
                        (("abdada-chaos", "--plant", "tree"), "skip-release"),
                        (("abdada-chaos", "--algorithm", "best"), "abdada-paper"),
                        (("abdada-chaos", "--game", "go"), "there are: "),
                        (("abdada-chaos", "--game", "tree:b=3,d=4"), "--depth"),
                        (("abdada-chaos", "--game", "othello", ENDING), "--solve"),
                        (("abdada-chaos", "--solve", "--depth", "3"), "only one of"),
                        (("abdada", "sim", "--algorithm", "ybwc", "--select", "full", "--depth", "3"), "plain only"),
                        (("abdada", "sim", "--solve", "--depth", "3"), "only one of"),
                        (("abdada", "sim", "--solve"), "--depth N"),
                        (("abdada", "sim", "--solve", "--game", "othello", ENDING[2:]), "63 squares"),
                        (("abdada", "sim", "--solve", "--game", "othello", "X" * 64 + " X"), "over")):
        process = cluster.run(*words)
        equal(process.status, 2, words)
        check(re.search(re.escape(word), process.err()), words, process.err())


def searchers_that_hand_over_work_survive():
    for name in ("ybwc", "minimal-tree") if cluster.QUICK else ("ybwc", "jamboree", "pvs", "epvs", "dts", "aphid", "minimal-tree"):
        status, failures, summary = chaos(f"1..{max(10, RUNS // 10)}", "--algorithm", name)
        check(not failures and status == 0, *[f"{f['command']}  # {f['broken']}\n" for f in failures])
        check(summary["kills"] > 0 and summary["messages_lost"] > 0, name, summary)


QUICK_TESTS = [invariants_survive_random_faults, failures_are_kept, searchers_that_hand_over_work_survive,
               the_same_seeds_make_the_same_runs, wrong_use_is_refused]
TESTS = QUICK_TESTS + [earlier_failures_stay_mended, each_seed_leaves_kinds_of_trouble_out,
                       endings_of_othello_keep_their_scores, planted_faults_are_caught,
                       a_failure_is_repeated_by_its_command, every_build_gives_the_same_trace]

if __name__ == "__main__":
    sys.exit(cluster.main(QUICK_TESTS if cluster.QUICK else TESTS))
