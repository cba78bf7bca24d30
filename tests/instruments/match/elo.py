"""The difference in Elo that a score of games says."""
import math


def elo(wins, draws, losses):
    """(Elo of A over B, half of the 95% interval)"""
    games = wins + draws + losses
    if games == 0:
        return 0.0, math.inf
    mean = (wins + draws / 2) / games
    variance = (wins * (1 - mean) ** 2 + draws * (0.5 - mean) ** 2 + losses * mean ** 2) / games
    margin = 1.96 * math.sqrt(variance / games)

    def of(score):
        score = min(max(score, 1e-3), 1 - 1e-3)
        return -400 * math.log10(1 / score - 1)
    return of(mean), (of(mean + margin) - of(mean - margin)) / 2
