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


SHARES = (0, 0.25, 0.5, 0.75, 1)  # of a pair's points


def likeliest(chances, mean):
    """The distribution of SHARES with this mean under which what was seen is likeliest; `chances` as seen, none 0.

    It is chances / (1 + t (share - mean)), with the t that makes the mean right.
    """
    low, high = -1 / (1 - mean), 1 / mean
    for _ in range(100):
        t = (low + high) / 2
        excess = sum(chance * (share - mean) / (1 + t * (share - mean)) for chance, share in zip(chances, SHARES))
        low, high = (t, high) if excess > 0 else (low, t)
    return [chance / (1 + low * (share - mean)) for chance, share in zip(chances, SHARES)]


def log_ratio(counts, elo0, elo1):
    """The logarithm of the generalised likelihood ratio of a difference of elo1 Elo to one of elo0, by counts of pairs.

    As fishtest computes it for logistic Elo: sum of n_i log(p1_i / p0_i), p0 and p1 the likeliest distributions with the
    expected scores 1 / (1 + 10^(-elo / 400)). A count of 0 is taken for 0.001.
    """
    counts = [max(count, 1e-3) for count in counts]
    chances = [count / sum(counts) for count in counts]
    p0, p1 = (likeliest(chances, 1 / (1 + 10 ** (-elo / 400))) for elo in (elo0, elo1))
    return sum(count * math.log(b / a) for count, a, b in zip(counts, p0, p1))


class Sprt:
    """The sequential test GSPRT by pairs, which fishtest uses: Van den Bergh, "A Practical Introduction to the GSPRT".

    It ends when log_ratio leaves log(beta / (1 - alpha)) to log((1 - beta) / alpha), both chances of an error being 5%.
    """

    def __init__(self, elo0, elo1, alpha=0.05, beta=0.05):
        self.elo0, self.elo1 = elo0, elo1
        self.low, self.high = math.log(beta / (1 - alpha)), math.log((1 - beta) / alpha)

    def decision(self, counts):
        """Why the match is over, or None."""
        ratio = log_ratio(counts, self.elo0, self.elo1)
        return f"at least {self.elo1:g} Elo" if ratio >= self.high else f"at most {self.elo0:g} Elo" if ratio <= self.low else None

    def said(self, counts):
        return (f"LLR {log_ratio(counts, self.elo0, self.elo1):.2f} ({self.low:.2f}, {self.high:.2f}) "
                f"for {self.elo0:g} and {self.elo1:g}")


def said(wins, draws, losses, pairs):
    """The line of a match, after its counts."""
    counts = count_pairs(pairs)
    (difference, margin), (by_pair, pair_margin) = elo(wins, draws, losses), elo_of_pairs(counts)
    return (f"+{wins} ={draws} -{losses}  Elo {difference:+.0f} (+-{margin:.0f}); pairs {' '.join(map(str, counts))}: "
            f"{by_pair:+.0f} (+-{pair_margin:.0f})")
