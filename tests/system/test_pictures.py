#!/usr/bin/python3
"""Pictures of speedups, drawn by gnuplot: `abdada sim --svg` and the lab's. TAP.

    BIN=build/dev/bin QUICK=1 tests/system/test_pictures.py
"""
import os
import re
import shutil
import sys
import tempfile
import xml.etree.ElementTree

from cluster import ROOT, check, equal, main, run

sys.path.insert(0, os.path.join(ROOT, "tests", "instruments", "lab"))
import report  # noqa: E402

NO_GNUPLOT = None if shutil.which("gnuplot") else "no gnuplot here"
SIM = ["sim", "--game", "tree:b=4,d=8", "--depth", "8", "--workers", "1,2,4"]


def texts(path):
    """The texts of a picture; it must be sound XML."""
    return ["".join(each.itertext()).strip()
            for each in xml.etree.ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}text")]


def markers(path, kind):
    """How often a point type of gnuplot's is drawn: 6 a disc, 3 a hollow square."""
    with open(path, encoding="utf-8") as file:
        return len(re.findall(f"xlink:href='#gpPt{kind}' (?!id=)", file.read()))


def sim_draws_speedup_and_overheads_to_any_file_name():
    if NO_GNUPLOT:
        return NO_GNUPLOT
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "|a 'b' \"$(c)\".svg")
        done = run("abdada", *SIM, "--svg", path)
        equal((done.status, done.err()), (0, ""))
        equal(os.listdir(folder), [os.path.basename(path)])
        found = texts(path)
        for text in ("tree, depth 8", "speedup", "ideal", "abdada", "search", "communication", "synchronization"):
            check(text in found, text, found)
        equal(markers(path, 6), 4)  # three points and the key's


def without_gnuplot_the_rows_and_the_csv_are_there():
    with tempfile.TemporaryDirectory() as folder:
        path, rows = os.path.join(folder, "a.svg"), os.path.join(folder, "a.csv")
        before, os.environ["PATH"] = os.environ["PATH"], folder
        try:
            done = run("abdada", *SIM, "--svg", path, "--csv", rows)
        finally:
            os.environ["PATH"] = before
        equal(done.status, 1)
        equal(len(done.lines["out"]), 4)
        equal(len(done.lines["err"]), 1, done.err())
        check("gnuplot-nox" in done.err(), done.err())
        with open(rows, encoding="utf-8") as file:
            equal(len(file.readlines()), 4)
        check(not os.path.exists(path))


def a_gnuplot_that_fails_is_a_failure():
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "gnuplot")
        with open(program, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\nexit 3\n")
        os.chmod(program, 0o755)
        before, os.environ["PATH"] = os.environ["PATH"], folder + ":" + os.environ["PATH"]
        try:
            done = run("abdada", *SIM, "--svg", os.path.join(folder, "a.svg"))
        finally:
            os.environ["PATH"] = before
        equal((done.status, len(done.lines["err"])), (1, 1), done.err())


def a_folder_that_is_not_there_is_a_failure():
    if NO_GNUPLOT:
        return NO_GNUPLOT
    done = run("abdada", *SIM, "--svg", "/nowhere/a.svg")
    equal(done.status, 1)
    check("/nowhere/a.svg: No such file or directory" in done.err(), done.err())
    done = run("abdada", *SIM, "--svg", "/dev/full")
    equal((done.status, done.lines["err"][-1:]), (1, ["abdada sim: /dev/full: No space left on device"]))


def the_lab_draws_lines_markers_and_bars():
    if NO_GNUPLOT:
        return NO_GNUPLOT
    points = [("a<b & c>d", False, 1, 1.0, (0, 0, 0)), ("a<b & c>d", False, 64, 30.5, (1.1, 0.2, -0.1)),
              ("a<b & c>d", True, 64, 41)]
    with tempfile.TemporaryDirectory() as folder:
        lab = report.Report(folder)
        lab.picture("all", "it's <&>", "a_b^c {d}", points)
        path = os.path.join(folder, "all.svg")
        found = texts(path)
        for text in ("it's <&>", "a_b^c {d}", "a<b & c>d", "a<b & c>d (published)", "ideal", "communication"):
            check(text in found, text, found)
        equal((markers(path, 6), markers(path, 3)), (3, 2))  # the key's included
        lab.picture("plain", "one panel", "", [point[:4] for point in points])
        found = texts(os.path.join(folder, "plain.svg"))
        check("ideal" in found and "communication" not in found, found)


if __name__ == "__main__":
    sys.exit(main([sim_draws_speedup_and_overheads_to_any_file_name, without_gnuplot_the_rows_and_the_csv_are_there,
                   a_gnuplot_that_fails_is_a_failure, a_folder_that_is_not_there_is_a_failure,
                   the_lab_draws_lines_markers_and_bars]))
