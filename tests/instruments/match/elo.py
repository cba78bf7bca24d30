"""The difference in Elo that a score of games says."""
import math


def of_shares(shares):
    """(Elo, half of the 95% interval) of {share of the points: how often}."""
    number = sum(shares.values())
    if number == 0:
        return 0.0, math.inf
    mean = sum(share * count for share, count in shares.items()) / number
    variance = sum(count * (share - mean) ** 2 for share, count in shares.items()) / number
    margin = 1.96 * math.sqrt(variance / number)

    def of(score):
        score = min(max(score, 1e-3), 1 - 1e-3)
        return -400 * math.log10(1 / score - 1)
    return of(mean), (of(mean + margin) - of(mean - margin)) / 2


def elo(wins, draws, losses):
    """(Elo of A over B, half of the 95% interval)"""
    return of_shares({1: wins, 0.5: draws, 0: losses})


def count_pairs(pairs):
    """How many pairs gave A 0, 0.5, 1, 1.5 and 2 points; pairs: A's points of each game, those of half a pair left out."""
    counts = [0] * 5
    for points in pairs:
        if len(points) == 2:
            counts[round(2 * sum(points))] += 1
    return counts


def elo_of_pairs(counts):
    """The same as elo(), by pairs of games from one opening with the colours exchanged.

    An opening that is good for White gives both a win: as games these two say that results vary, as a pair that neither
    is better. So the interval is the smaller one where openings are uneven, and right where the games of a pair hang
    together. One pair alone says nothing about how much pairs differ.
    """
    elo_of_all, margin = of_shares({points / 4: count for points, count in enumerate(counts)})
    return elo_of_all, margin if sum(counts) > 1 else math.inf


def said(wins, draws, losses, pairs):
    """The line of a match, after its counts."""
    counts = count_pairs(pairs)
    (difference, margin), (by_pair, pair_margin) = elo(wins, draws, losses), elo_of_pairs(counts)
    return (f"+{wins} ={draws} -{losses}  Elo {difference:+.0f} (+-{margin:.0f}); pairs {' '.join(map(str, counts))}: "
            f"{by_pair:+.0f} (+-{pair_margin:.0f})")
