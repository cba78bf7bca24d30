#!/usr/bin/python3
"""Elo and its error by games and by pairs of games, against figures that others print and that a hand adds up. TAP."""
import math
import os
import sys

from tap import run

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "instruments", "match"))
from elo import Sprt, count_pairs, elo, elo_of_pairs, log_ratio, said  # noqa: E402

NEAR = 0.01


def is_near(found, wanted):
    assert all(abs(a - b) < NEAR for a, b in zip(found, wanted)), (found, wanted)


def games_give_what_fastchess_gives():
    is_near(elo(859, 1329, 772), (10.21, 9.29))  # "Elo calculation 2" of its first tests: 10.21 and 9.28, within 1%


def pairs_give_what_fastchess_gives():
    is_near(elo_of_pairs([34, 54, 31 + 32, 64, 75]), (55.58, 27.65))  # "EloPentanomial 1": it counts two kinds of 1-1


def pairs_give_what_a_hand_adds_up():
    """4 + 24 + 4 pairs of 0.5, 1 and 1.5 points: mean 0.5, variance (4 + 4) / 16 / 32 = 1 / 64, deviation of the mean
    1 / 8 / sqrt(32) = 0.0221, 1.96 of it 0.0433: 400 log10(0.5433 / 0.4567) = 30.17."""
    found = elo_of_pairs([0, 4, 24, 4, 0])
    assert abs(found[0]) < 1e-9 and abs(found[1] - 30.17) < NEAR, found


def uneven_openings_cost_games_their_precision_and_pairs_nothing():
    """White always wins: 20 pairs of a win and a loss."""
    _, by_games = elo(20, 0, 20)
    _, by_pairs = elo_of_pairs([0, 0, 20, 0, 0])
    assert by_games > 100 and by_pairs == 0, (by_games, by_pairs)


def unrelated_games_have_the_same_error_either_way():
    """Half of the games won, half lost, each pair as chance has it: 1/4, 1/2, 1/4."""
    is_near(elo(100, 0, 100), elo_of_pairs([25, 0, 50, 0, 25]))


def half_a_pair_is_not_counted():
    assert count_pairs([[1.0, 0.5], [1.0], [0.0, 0.0], [0.5, 0.5], [1.0, 1.0]]) == [1, 0, 1, 1, 1]


def nothing_and_one_pair_say_nothing():
    assert elo_of_pairs([0] * 5) == (0.0, math.inf)
    assert elo_of_pairs([0, 0, 0, 1, 0])[1] == math.inf


def a_line_has_both():
    line = said(40, 20, 20, 20 * [[1.0, 0.5]] + 20 * [[0.0, 1.0]])
    assert line == "+40 =20 -20  Elo +89 (+-68); pairs 0 0 20 20 0: +89 (+-29)", line


# (published LLR, its two hypotheses, pairs with 0 to 2 points) of tests that https://tests.stockfishchess.org/tests/view
# has as 60735b3a8141753378960534, 60749ea881417533789605a4, 606532732b2df919fd5f026d, 6074a52981417533789605b8.
FISHTEST = ((2.94, -0.2, 1.1, (406, 8728, 41933, 8848, 493)), (2.95, -0.7, 0.2, (2, 245, 4962, 291, 4)),
            (2.94, -1.0, 0.2, (577, 11681, 56451, 11586, 605)), (2.93, -0.2, 1.1, (4, 2342, 11769, 2494, 7)))


def ratios_are_those_that_fishtest_publishes():
    for published, elo0, elo1, counts in FISHTEST:
        found = log_ratio(counts, elo0, elo1)
        assert abs(found - published) < NEAR, (found, published)


def the_ratio_is_what_a_hand_adds_up():
    """10 pairs lost and 30 won whole, an expected score of 1/2 or of 3/4, which is 400 log10(3) Elo:
    10 log(1/4 / 1/2) + 30 log(3/4 / 1/2) = -6.931 + 12.164 = 5.232."""
    found = log_ratio([10, 0, 0, 0, 30], 0, 400 * math.log10(3))
    assert abs(found - 5.232) < NEAR, found


def the_other_side_sees_the_opposite_ratio():
    for _, elo0, elo1, counts in FISHTEST:
        there, back = log_ratio(counts, elo0, elo1), log_ratio(counts[::-1], -elo1, -elo0)
        assert abs(there + back) < 1e-6, (there, back)


def a_test_ends_where_fishtest_ends_it():
    test = Sprt(0, 10)
    assert abs(test.high - 2.94) < NEAR and test.low == -test.high
    assert test.decision([1, 2, 30, 12, 1]) is None
    assert test.decision([10, 50, 300, 120, 20]) == "at least 10 Elo"
    assert test.decision([20, 120, 300, 50, 10]) == "at most 0 Elo"
    assert test.said([1, 2, 30, 12, 1]).startswith("LLR ")


def main():
    tests = [games_give_what_fastchess_gives, pairs_give_what_fastchess_gives, pairs_give_what_a_hand_adds_up,
             uneven_openings_cost_games_their_precision_and_pairs_nothing, unrelated_games_have_the_same_error_either_way,
             half_a_pair_is_not_counted, nothing_and_one_pair_say_nothing, a_line_has_both,
             ratios_are_those_that_fishtest_publishes, the_ratio_is_what_a_hand_adds_up,
             the_other_side_sees_the_opposite_ratio, a_test_ends_where_fishtest_ends_it]
    return run(tests)


if __name__ == "__main__":
    sys.exit(main())
