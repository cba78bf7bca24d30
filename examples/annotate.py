#!/usr/bin/env python3
"""Annotates chess games over an abdada cluster, with the PyPI packages `chess` and `abdada`.

    examples/annotate.py --servers HOST:PORT[,HOST:PORT...] [--nodes N | --depth N] [-o OUT.pgn] GAMES.pgn

Each position of the games is a job of its own, and as many jobs are open as there are workers, so that each worker has
one. Every move gets the value of what it leads to ([%eval], from White's side); one that gives up --better centipawns
gets a mark and the line that was better. A worker that is killed costs nothing: its jobs stay open, another worker takes
them and finds what is in the table. Workers may also come. A game is written when it and those before it are done.
"""
import argparse
import collections
import contextlib
import os
import sys
import threading
import time
from typing import Deque, Dict, List, Optional, TextIO

import abdada

try:
    import chess
    import chess.engine
    import chess.pgn
except ImportError:
    sys.exit("annotate: needs the Python package `chess`: pip install chess, or Debian's python3-chess")

JOBS_MAX = 32  # a shard has room for 64 of all front-ends
MARKS = (200, chess.pgn.NAG_BLUNDER), (100, chess.pgn.NAG_MISTAKE), (0, chess.pgn.NAG_DUBIOUS_MOVE)
WON = 1000  # centipawns: more is not better


class Work:
    """Positions that wait, and what was found of the others. Any thread may use it."""

    def __init__(self, positions: List[str]) -> None:
        self.waiting: Deque[str] = collections.deque(positions)
        self.found: Dict[str, Optional[abdada.Progress]] = {}
        self.wanted = 0  # jobs at a time
        self.trouble: Optional[BaseException] = None

    def search_all(self, index: int, o: argparse.Namespace) -> None:
        """One thread, with one job at a time."""
        try:
            with abdada.Cluster(o.servers, keys=o.keys, name=f"annotate {index}") as cluster:
                with contextlib.suppress(IndexError):  # nothing waits any more
                    while index < self.wanted:
                        position = self.waiting.popleft()
                        self.found[position] = self.search(cluster, position, o)
        except BaseException as trouble:  # pylint: disable=broad-except
            self.trouble = trouble  # main() says it

    def search(self, cluster: abdada.Cluster, position: str, o: argparse.Namespace) -> Optional[abdada.Progress]:
        """None: no worker can search it. The limits are of depth or nodes, so no pause makes an answer worse."""
        while True:
            try:
                return cluster.analyse(position, depth=o.depth, nodes=o.nodes, full=True, patience=20).result
            except (abdada.Unavailable, abdada.NoWorkers) as nobody:
                say(f"{nobody}; searching on when there is one")
            except abdada.Refused as why:
                say(f"left out {position}: {why}")
                return None


def say(text: str) -> None:
    print(f"\rannotate: {text}", file=sys.stderr, flush=True)


def workers_of(cluster: abdada.Cluster) -> int:
    """Those that the shards know; 0 where no shard answers."""
    known = 0
    for shard in range(len(cluster.shards)):
        with contextlib.suppress(abdada.Unavailable):
            known = max(known, cluster.shard_stats(shard)["workers"])
    return known


def read_games(path: str) -> List[chess.pgn.Game]:
    games: List[chess.pgn.Game] = []
    with open(path, encoding="utf-8-sig", errors="surrogateescape") as file:
        while (game := chess.pgn.read_game(file)) is not None:
            for error in game.errors:
                say(f"game {len(games) + 1}: {error}: the rest of the line is left out")
            games.append(game)
    return games


def positions_of(game: chess.pgn.Game) -> List[str]:
    boards = [node.board() for node in [game, *game.mainline()]]
    return [board.fen() for board in boards if type(board) is chess.Board and any(board.legal_moves)]


def score_of(board: chess.Board, found: Optional[abdada.Progress]) -> Optional[chess.engine.PovScore]:
    if board.is_checkmate() or board.is_stalemate():
        score: chess.engine.Score = chess.engine.Mate(0) if board.is_checkmate() else chess.engine.Cp(0)
    elif board.is_repetition(3):  # which the workers cannot see: a job is a position without its game
        score = chess.engine.Cp(0)
    elif found is None:
        return None
    else:
        score = chess.engine.Cp(found.score) if found.mate is None else chess.engine.Mate(found.mate)
    return chess.engine.PovScore(score, board.turn)


def add_better(node: chess.pgn.ChildNode, best: abdada.Progress, score: chess.engine.PovScore, plies: int) -> None:
    """The line that the workers would have played in place of this move."""
    board, line = node.parent.board(), []
    for text in best.line[:plies]:
        line.append(board.parse_uci(text))
        board.push(line[-1])
    if line and not node.parent.has_variation(line[0]):
        node.parent.add_line(line)
        node.parent.variation(line[0]).set_eval(score, best.depth)


def annotate(game: chess.pgn.Game, found: Dict[str, Optional[abdada.Progress]], o: argparse.Namespace) -> None:
    for node in list(game.mainline()):
        before, after = node.parent.board(), node.board()
        best, here = found.get(before.fen()), found.get(after.fen())
        was, now = score_of(before, best), score_of(after, here)
        if now is not None and here is not None:
            node.set_eval(now, here.depth)
        if best is None or was is None or now is None or best.best_move == node.move.uci():
            continue
        lost = [max(-WON, min(WON, s.pov(before.turn).score(mate_score=10 * WON))) for s in (was, now)]
        if lost[0] - lost[1] >= o.better:
            node.nags.add(next(nag for least, nag in MARKS if lost[0] - lost[1] >= least))
            add_better(node, best, was, o.line)


def bar(work: Work, positions: int, workers: int, begin: float) -> str:
    done, seconds = len(work.found), time.monotonic() - begin
    left = f"{seconds / done * (positions - done):.0f} s left" if done else ""
    full = 30 * done // max(1, positions)
    return f"\r[{'#' * full}{'.' * (30 - full)}] {done}/{positions} positions  {workers} workers  {left:12}"


def run(o: argparse.Namespace, games: List[chess.pgn.Game], out: TextIO) -> None:
    needed = [positions_of(game) for game in games]
    positions = list(dict.fromkeys(fen for fens in needed for fen in fens))  # each once
    threads: Dict[int, threading.Thread] = {}
    work, written, begin, shown = Work(positions), 0, time.monotonic(), 0.0
    with abdada.Cluster(o.servers, keys=o.keys, name="annotate") as watch:
        while written < len(games):
            if work.trouble:
                raise work.trouble
            workers = workers_of(watch)
            work.wanted = o.jobs or max(1, min(JOBS_MAX, workers))
            for index in range(work.wanted):
                if work.waiting and (index not in threads or not threads[index].is_alive()):
                    threads[index] = threading.Thread(target=work.search_all, args=(index, o), daemon=True)
                    threads[index].start()
            while written < len(games) and all(fen in work.found for fen in needed[written]):
                annotate(games[written], work.found, o)
                print(games[written], end="\n\n", file=out, flush=True)
                written += 1
            if time.monotonic() - shown >= (0 if sys.stderr.isatty() or written == len(games) else 5):
                shown = time.monotonic()
                print(bar(work, len(positions), workers, begin), end="", file=sys.stderr, flush=True)
            time.sleep(0.1)
    print(file=sys.stderr)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("games", help="a file of games (PGN)")
    parser.add_argument("-o", "--out", help="where to write them; without, standard output")
    parser.add_argument("--servers", default=os.environ.get("ABDADA_SERVERS"), help="all shards")
    parser.add_argument("--keys", default=os.environ.get("ABDADA_KEYS"), help="directory made by `abdada keygen`")
    parser.add_argument("--nodes", type=int, help="of each position, by all its workers (10 million, without --depth)")
    parser.add_argument("--depth", type=int, help="of each position")
    parser.add_argument("--jobs", type=int, default=0, help="positions at a time; without, as many as workers")
    parser.add_argument("--better", type=int, default=50, help="centipawns from which a better line is shown (50)")
    parser.add_argument("--line", type=int, default=8, help="plies of a better line (8)")
    o = parser.parse_args()
    if not o.servers:
        parser.error("--servers or ABDADA_SERVERS is required")
    o.nodes = o.nodes or (None if o.depth else 10_000_000)
    try:
        games = read_games(o.games)
        if o.out and os.path.exists(o.out) and os.path.samefile(o.out, o.games):
            parser.error("--out is the file of the games")
        with contextlib.ExitStack() as ends:
            out = sys.stdout if not o.out else ends.enter_context(
                open(o.out, "w", encoding="utf-8", errors="surrogateescape"))
            run(o, games, out)
    except (OSError, abdada.Error) as error:
        sys.exit(f"annotate: {error}")
    except KeyboardInterrupt:
        sys.exit("\nannotate: interrupted; the games that were done are written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
