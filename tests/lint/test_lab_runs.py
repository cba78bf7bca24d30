#!/usr/bin/python3
"""A lab that was interrupted makes no run twice, believes none of another program's, and compares scores. TAP."""
import json
import os
import sys
import tempfile

from tap import run

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "instruments", "lab"))
import simulate  # noqa: E402

ROW = json.dumps({"workers": 2, "answered": True, "score": 0, "speedup": 1.5})
OTHER = ROW.replace('"score": 0', '"score": 1')


class Bed:
    """A folder with a program that records how often it was run."""

    def __init__(self, folder):
        self.log, self.kept = os.path.join(folder, "log"), os.path.join(folder, "runs.jsonl")
        self.program = os.path.join(folder, "abdada")
        simulate.ABDADA = self.program
        self.build("first")

    def build(self, name, row=ROW):
        with open(self.program, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\n# {name}\necho \"$@\" >> {self.log}\necho '{row}'\n")
        os.chmod(self.program, 0o755)

    def rows(self, kept, depths=(3,)):
        sim = simulate.Simulator(2, kept)
        try:
            for depth in depths:
                rows = sim.rows("tree:b=2", {"depth": depth})
                assert rows[2]["speedup"] == 1.5, rows
        finally:
            sim.close()

    def made(self):
        with open(self.log, encoding="utf-8") as file:
            return len(file.readlines())


def a_run_is_made_once(bed):
    bed.rows(bed.kept, (3, 3, 4))
    bed.rows(bed.kept, (3, 4))
    assert bed.made() == 2, bed.made()


def another_program_makes_its_own(bed):
    bed.rows(bed.kept)
    bed.build("second")
    bed.rows(bed.kept)
    assert bed.made() == 2, bed.made()


def a_program_built_meanwhile_is_not_taken_for_the_first(bed):
    sim = simulate.Simulator(1, bed.kept)
    bed.build("second")
    sim.rows("tree:b=2", {"depth": 3})
    sim.close()
    bed.build("first")
    bed.rows(bed.kept)
    assert bed.made() == 2, bed.made()


def half_a_line_is_passed_over(bed):
    bed.rows(bed.kept)
    with open(bed.kept, "r+", encoding="utf-8") as file:
        file.truncate(os.path.getsize(bed.kept) - 20)
    bed.rows(bed.kept)
    bed.rows(bed.kept)
    assert bed.made() == 2, bed.made()


def nothing_is_kept_unless_asked(bed):
    bed.rows(None)
    bed.rows(None)
    assert bed.made() == 2, bed.made()


def scores_of_strict_searches_are_compared_over_all_runs(bed):
    sim = simulate.Simulator(1)
    sim.rows("tree:b=2", {"depth": 3, "workers": 1})
    bed.build("second", OTHER)
    sim.rows("tree:b=2", {"depth": 4})
    sim.rows("tree:b=2", {"depth": 3, "select": "full"})
    assert not sim.unequal, sim.unequal
    sim.rows("tree:b=2", {"depth": 3, "hosts": 4, "threads": 8})
    sim.close()
    assert len(sim.unequal) == 1 and "--hosts 4" in sim.unequal[0], sim.unequal


def only_a_search_by_time_may_end_without_an_answer(bed):
    bed.build("first", ROW.replace("true", "false"))
    sim = simulate.Simulator(1)
    sim.rows("tree:b=2", {"time": 10})
    try:
        sim.rows("tree:b=2", {"depth": 3})
        raise AssertionError("no answer, and none missed")
    except RuntimeError:
        pass
    sim.close()


def tables_of_hosts_and_shards_are_counted(_):
    assert simulate.tables_mib({"workers": "1,16,17"}) == 2 * 64 + 17
    assert simulate.tables_mib({"hosts": 16, "threads": 8, "hash": 256, "local": 131072}) == 8 * 256 + 16 * 128
    assert simulate.tables_mib({"workers": 32, "hash": 128, "constant": True}) == 128 + 32


def in_a_folder(test):
    with tempfile.TemporaryDirectory() as folder:
        test(Bed(folder))


def main():
    tests = [a_run_is_made_once, another_program_makes_its_own, a_program_built_meanwhile_is_not_taken_for_the_first,
             half_a_line_is_passed_over, nothing_is_kept_unless_asked,
             scores_of_strict_searches_are_compared_over_all_runs, only_a_search_by_time_may_end_without_an_answer,
             tables_of_hosts_and_shards_are_counted]
    return run(tests, in_a_folder)


if __name__ == "__main__":
    sys.exit(main())
