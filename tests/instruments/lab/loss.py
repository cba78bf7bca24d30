"""What a chosen move loses, and the time in which one searcher loses as little.

Positions and the value of each of their moves are those of tests/data/play. `Losses` has what several sides lost on the
same positions; its errors are those of a paired bootstrap: positions are drawn again and again, for all sides the same.
"""
import json
import math
import os
import random

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
POSITIONS = os.path.join(ROOT, "tests/data/play/positions.jsonl")
MOST = 300  # centipawns that one move can lose: more would say what one blunder cost, and nothing of the others
ROUNDS = 2000  # of the bootstrap


def positions(number, path=POSITIONS):
    """The first of the file; behind the line that says how they were made."""
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file][1:number + 1]


def lost(position, move, most=MOST):
    """Centipawns."""
    values = position["values"]
    return min(most, max(values.values()) - values[move])


def falling(curve):
    """{time: loss} as points (log2 of the time, loss), each of less loss than the one before: neighbours that do not fall
    become one, in their middle (pool adjacent violators)."""
    blocks = []  # [sum of log times, sum of losses, how many]
    for time, loss in sorted(curve.items()):
        blocks.append([math.log2(time), loss, 1])
        while len(blocks) > 1 and blocks[-1][1] / blocks[-1][2] >= blocks[-2][1] / blocks[-2][2]:
            last = blocks.pop()
            blocks[-1] = [a + b for a, b in zip(blocks[-1], last)]
    return [(times / number, losses / number) for times, losses, number in blocks]


def time_of(curve, loss):
    """The time at which the curve has this loss; its least or greatest where it has more or less everywhere."""
    points = falling(curve)
    if loss > points[0][1]:
        return min(curve)
    if loss < points[-1][1]:
        return max(curve)
    for (time, value), (time_after, value_after) in zip(points, points[1:]):
        if loss >= value_after:
            return 2 ** (time + (time_after - time) * (value - loss) / (value - value_after))
    return 2 ** points[-1][0]


class Losses:
    """each: {(side, time): what each position lost}, of the same positions in the same order."""

    def __init__(self, each, seed=1):
        self.means = {key: sum(values) / len(values) for key, values in each.items()}
        self.number = len(next(iter(each.values())))
        drawn, self.resampled = random.Random(seed), []
        for _ in range(ROUNDS):
            chosen = drawn.choices(range(self.number), k=self.number)
            self.resampled.append({key: sum(values[i] for i in chosen) / self.number for key, values in each.items()})

    def interval(self, figure):
        """(figure of all, least and greatest of its 95% interval); figure: a function of {(side, time): mean loss}."""
        found = sorted(map(figure, self.resampled))
        return figure(self.means), found[round(0.025 * (ROUNDS - 1))], found[round(0.975 * (ROUNDS - 1))]

    def loss(self, side, time):
        """(mean loss, half of its 95% interval)"""
        mean, least, most = self.interval(lambda means: means[side, time])
        return mean, (most - least) / 2

    def worth(self, side, time, base):
        """The interval of the time in which the side `base` loses as much as this one in `time`."""
        def figure(means):
            return time_of({at: loss for (name, at), loss in means.items() if name == base}, means[side, time])
        return self.interval(figure)

    def said(self, side, time, base):
        """The same in words. At the end of what was measured of the base it is a bound."""
        times = [at for name, at in self.means if name == base]

        def one(value):
            return ("<" if value == min(times) else ">" if value == max(times) else "") + f"{value:.2f}"
        value, least, most = self.worth(side, time, base)
        return f"{one(value)} ({one(least)} to {one(most)})"
