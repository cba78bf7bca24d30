#!/usr/bin/python3
"""The instrument of equivalent time: what a move loses and the time that is worth it. TAP."""
import os
import sys

from tap import run

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "instruments", "lab"))
import loss  # noqa: E402
from play import chosen, sides  # noqa: E402


def a_move_loses_what_the_best_one_is_worth_more():
    position = {"values": {"e2e4": 30, "d2d4": 25, "f2f3": -40, "g2g4": -900}}
    assert [loss.lost(position, move) for move in position["values"]] == [0, 5, 70, loss.MOST]
    assert loss.lost(position, "f2f3", 60) == 60


def a_curve_that_rises_is_made_to_fall():
    points = loss.falling({1: 20.0, 2: 10.0, 4: 14.0, 8: 6.0})
    assert points == [(0.0, 20.0), (1.5, 12.0), (3.0, 6.0)], points
    assert loss.falling({1: 5.0, 2: 5.0}) == [(0.5, 5.0)]
    assert loss.falling({1: 1.0, 2: 2.0, 4: 3.0}) == [(1.0, 2.0)]


def time_is_read_between_powers_of_two():
    curve = {1: 20.0, 2: 16.0, 4: 12.0, 8: 4.0}
    for wanted, value in ((1, 20), (2, 16), (4, 12), (8, 4), (2 ** 0.5, 18), (2 ** 2.5, 8)):
        assert abs(loss.time_of(curve, value) - wanted) < 1e-9, (wanted, value)


def outside_of_the_curve_are_its_ends():
    curve = {1: 20.0, 2: 16.0, 4: 12.0}
    assert loss.time_of(curve, 25.0) == 1 and loss.time_of(curve, 11.0) == 4


def sides_are_drawn_together():
    """What is worse by 10 on every position is worse by 10 in each sample; alone the mean is uncertain by more."""
    values = [float(7 * i % 40) for i in range(40)]
    losses = loss.Losses({("one", 1): [value + 10 for value in values], ("one", 2): values})
    _, least, most = losses.interval(lambda means: means["one", 1] - means["one", 2])
    assert abs(least - 10) < 1e-9 and abs(most - 10) < 1e-9, (least, most)
    mean, error = losses.loss("one", 2)
    assert mean == sum(values) / 40 and 3 < error < 4.5, (mean, error)  # 1.96 * 11.5 / sqrt(40) = 3.6


def a_cluster_as_good_as_two_times_the_time_is_worth_it():
    each = {("one", time): [float(40 / time + i) for i in range(20)] for time in (1, 2, 4)}
    losses = loss.Losses(each | {("cluster", 1): each["one", 2]})
    value, least, most = losses.worth("cluster", 1, "one")
    assert all(abs(found - 2) < 1e-9 for found in (value, least, most)), (value, least, most)
    assert losses.said("cluster", 1, "one") == "2.00 (2.00 to 2.00)"


def a_bound_is_said_to_be_one():
    each = {("one", time): [float(40 / time + i) for i in range(20)] for time in (1, 2, 4)}
    losses = loss.Losses(each | {("cluster", 1): [float(i) for i in range(20)]})
    assert losses.said("cluster", 1, "one") == ">4.00 (>4.00 to >4.00)"


def a_run_gives_the_answers_of_shorter_ones():
    row = {"bestmove": "e2e4", "iterations": [{"depth": 1, "bestmove": "a2a3", "seconds": 0.001},
                                              {"depth": 2, "bestmove": "d2d4", "seconds": 0.01},
                                              {"depth": 3, "bestmove": "e2e4", "seconds": 0.03}]}
    assert [chosen(row, time) for time in (0.5, 1, 29, 30, 100)] == [("a2a3", 1), ("a2a3", 1), ("d2d4", 2), ("e2e4", 3), ("e2e4", 3)]


def an_answer_of_no_iteration_is_refused():
    try:
        chosen({"bestmove": "e2e4", "iterations": [{"depth": 1, "bestmove": "a2a3", "seconds": 0.001}]}, 10)
    except RuntimeError:
        return
    raise AssertionError("it was taken")


def every_side_searches_as_long_as_its_last_time():
    asked = {side: (searchers, options["time"], times) for side, (searchers, options, times) in sides([4, 16], 50).items()}
    assert asked == {"16 x 8": (128, 50, (1,)), "4 x 8": (32, 50, (1,)), "1 x 8": (8, 400, (1, 2, 4, 8)),
                     "1 searcher": (1, 800, (1, 2, 4, 8, 16))}, asked


def main():
    tests = [a_move_loses_what_the_best_one_is_worth_more, a_curve_that_rises_is_made_to_fall,
             time_is_read_between_powers_of_two, outside_of_the_curve_are_its_ends, sides_are_drawn_together,
             a_cluster_as_good_as_two_times_the_time_is_worth_it, a_bound_is_said_to_be_one,
             a_run_gives_the_answers_of_shorter_ones, an_answer_of_no_iteration_is_refused,
             every_side_searches_as_long_as_its_last_time]
    return run(tests)


if __name__ == "__main__":
    sys.exit(main())
