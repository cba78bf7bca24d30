#!/usr/bin/python3
"""The UCI engine driven by python-chess, which knows the rules and the protocol by itself."""
import asyncio
import fcntl
import glob
import os
import random
import subprocess
import sys
import threading
import time

from cluster import STARVED, SHORT, ROOT, SANITIZED, Cluster, Shard, Worker, check, equal, main, needs, path_of

SEED = int(os.environ.get("TEST_SEED", random.randrange(1 << 32)))
VENV = os.path.join(ROOT, "build", "venv")


def load_chess():
    """Imports the package `chess`; where it is not, from build/venv. Why it cannot be had, or None."""
    try:
        import chess.engine  # noqa: F401 pylint: disable=import-outside-toplevel
        return None
    except ImportError:
        pass
    os.makedirs(os.path.dirname(VENV), exist_ok=True)
    with open(VENV + ".lock", "w", encoding="utf-8") as lock:  # two tests may want it at the same time
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not glob.glob(f"{VENV}/lib/python3*/site-packages/chess"):
            for command in ([sys.executable, "-m", "venv", VENV],
                            [f"{VENV}/bin/python", "-m", "pip", "install", "--quiet", "chess>=1.9,<2"]):
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                if done.returncode != 0:
                    return "no package `chess`: " + (done.stderr.strip().splitlines() or ["?"])[-1]
    sys.path += glob.glob(f"{VENV}/lib/python3*/site-packages")
    import chess.engine  # noqa: F401 pylint: disable=import-outside-toplevel
    return None


WHY_NOT = load_chess()
if WHY_NOT is None:
    import chess
    import chess.engine
needs_chess = needs(lambda: WHY_NOT)


def engine(*arguments, **options):
    process = chess.engine.SimpleEngine.popen_uci([path_of("abdada"), "uci", *arguments], timeout=60)
    process.configure(options)
    return process


def play_game(board, white, black, limit, plies=300, **more):
    """python-chess raises an error on an answer that is no legal move."""
    players = {chess.WHITE: white, chess.BLACK: black}
    while not board.is_game_over(claim_draw=True) and len(board.move_stack) < plies:
        result = players[board.turn].play(board, limit(board), info=chess.engine.INFO_ALL, **more)
        check(result.move in board.legal_moves, board.fen(), result.move)
        board.push(result.move)
    return board


@needs_chess
def games_of_one_second():
    for _ in range(1 if SHORT else 4):
        clock = {chess.WHITE: 1.0, chess.BLACK: 1.0}

        def limit(_board):
            return chess.engine.Limit(white_clock=max(clock[chess.WHITE], 0.001), white_inc=0.01,
                                      black_clock=max(clock[chess.BLACK], 0.001), black_inc=0.01)
        board = chess.Board()
        with engine(Threads=2) as white, engine() as black:
            while not board.is_game_over(claim_draw=True) and len(board.move_stack) < 400:
                begin, turn = time.monotonic(), board.turn
                move = (white if turn else black).play(board, limit(board)).move
                clock[turn] += 0.01 - (time.monotonic() - begin)
                board.push(move)
        print(f"# {board.result(claim_draw=True)} after {len(board.move_stack)} plies, clocks left "
              f"{clock[chess.WHITE]:.2f} {clock[chess.BLACK]:.2f} s")


class Stall:
    """The time by which this machine let a thread sleep too long, in all, since it was last asked."""

    def __init__(self):
        self.total, self.ends = 0.0, threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        before = time.monotonic()
        while not self.ends.wait(0.005):
            now = time.monotonic()
            late, before = now - before - 0.005, now
            self.total += late if late > 0.002 else 0  # less is how any timer is

    def take(self):
        found, self.total = self.total, 0.0
        return found


def replace(processes, index, kind, *arguments):
    processes[index].kill()
    processes[index] = kind(*arguments)


LOTTERY = 0.1  # with fewer seconds left for the game, a busy machine decides whose flag falls
# Seconds at first and for each move, moves until more is added (0: never).
CLOCKS = ((1, 0.01, 0), (0.7, 0.013, 0), (3, 0, 0), (1.3, 0, 7), (0.5, 0.1, 0), (2, 0.003, 3))


@needs_chess
def games_at_odd_clocks_while_workers_and_shards_are_killed():
    """No flag falls, and no clock is nearly empty before ply 60. The time for which the machine stalls a move is not counted."""
    rng, stall = random.Random(SEED), Stall()
    print(f"# TEST_SEED={SEED}", flush=True)
    for game in range(1 if SHORT or SANITIZED else 12):
        first, each, moves = CLOCKS[(SEED + game) % len(CLOCKS)]
        clock, least, kills = {chess.WHITE: first, chess.BLACK: first}, first, 0
        board = chess.Board()
        with Cluster(shards=2, workers=2) as cluster, engine("--servers", cluster.servers) as white, \
                engine("--servers", cluster.servers, Threads=2) as black:
            while not board.is_game_over(claim_draw=True) and len(board.move_stack) < (24 if SHORT else 300):
                if rng.randrange(12) == 0 or len(board.move_stack) == 4:  # one kill at least
                    kills += 1
                    which = rng.randrange(2)
                    if rng.randrange(2):
                        replace(cluster.workers, which, Worker, cluster.servers)
                    else:
                        replace(cluster.shards, which, Shard, cluster.shards[which].port)
                if moves == 0 and clock[board.turn] < LOTTERY:
                    check(len(board.move_stack) >= 60, f"TEST_SEED={SEED}: game {game}: the time is gone after", len(board.move_stack), "plies")
                    break
                turn, left = board.turn, moves - len(board.move_stack) // 2 % moves if moves else None
                limit = chess.engine.Limit(white_clock=clock[chess.WHITE], white_inc=each, black_clock=clock[chess.BLACK],
                                           black_inc=each, remaining_moves=left)
                stall.take()
                begin = time.monotonic()
                move = (white if turn else black).play(board, limit).move
                used = time.monotonic() - begin
                check(move in board.legal_moves, board.fen(), move)
                clock[turn] -= max(0.0, used - stall.take())
                check(clock[turn] > 0, f"TEST_SEED={SEED}: game {game}: lost on time after", used, "s:", board.fen())
                least = min(least, clock[turn])
                clock[turn] += each + (first if left == 1 else 0)
                board.push(move)
        check(kills >= 1, f"TEST_SEED={SEED}: game {game}: nothing was killed:", board.fen())
        print(f"# {first} s + {each} s: {board.result(claim_draw=True)} after {len(board.move_stack)} plies, {kills} killed, "
              f"never less than {least:.2f} s left", flush=True)
    stall.ends.set()


@needs_chess
def games_of_chess960():
    rng = random.Random(960)
    for _ in range(2 if SHORT or SANITIZED else 12):
        board = chess.Board.from_chess960_pos(rng.randrange(960))
        with engine() as one:
            play_game(board, one, one, lambda _: chess.engine.Limit(nodes=300))
        check(len(board.move_stack) > 8 or board.is_checkmate(), board.fen())


@needs_chess
def castling_of_chess960_over_shards():
    """The text of a job is what its worker has."""
    with Cluster(shards=2, workers=1) as cluster:
        board = chess.Board("1r2k1r1/pppppppp/8/8/8/8/PPPPPPPP/1R2K1R1 w GBgb - 0 1", chess960=True)
        with engine("--servers", cluster.servers) as one:
            for move in ("e1g1", "e8b8"):
                found = one.play(board, chess.engine.Limit(depth=8), root_moves=[chess.Move.from_uci(move)])
                equal(found.move.uci(), move)
                board.push(found.move)
            play_game(board, one, one, lambda _: chess.engine.Limit(depth=5), plies=20)


@needs_chess
def games_with_pondering():
    with engine() as white, engine() as black:
        board = play_game(chess.Board(), white, black, lambda _: chess.engine.Limit(time=0.02), plies=24, ponder=True)
        equal(len(board.move_stack), 24)


def check_info(board, info, lines):
    """All of a line is legal, and what it says is possible."""
    after = board.copy()
    for move in info.get("pv", []):
        check(move in after.legal_moves, board.fen(), info)
        after.push(move)
    check(1 <= info.get("multipv", 1) <= lines and info.get("seldepth", 0) >= 0, info)
    check(0 <= info.get("hashfull", 0) <= 1000, info)


@needs_chess
def analysis_streams():
    board = chess.Board("r1bq1rk1/ppp2ppp/2np1n2/2b1p3/2B1P3/2PP1N2/PP3PPP/RNBQ1RK1 w - - 0 7")
    with engine() as one:
        for lines in (3, 1, 5):
            with one.analysis(board, multipv=lines, info=chess.engine.INFO_ALL) as stream:
                depth = 0
                for info in stream:
                    check_info(board, info, lines)
                    depth = max(depth, info.get("depth", 0))
                    if depth >= 9 and info.get("multipv", lines) == lines:
                        break
                stream.stop()
                check(stream.wait().move in board.legal_moves, "no best move")
            found = stream.multipv
            equal(len(found), lines)
            equal(len({info["pv"][0] for info in found}), lines)


@needs_chess
def only_named_moves_are_played():
    board = chess.Board()
    with engine() as one:
        for names in (["a2a3", "h2h3"], ["g1h3"]):
            moves = [chess.Move.from_uci(name) for name in names]
            found = one.play(board, chess.engine.Limit(depth=6), root_moves=moves, info=chess.engine.INFO_ALL)
            check(found.move in moves, found)


@needs_chess
def mates_are_proved():
    with engine() as one:
        for fen, moves in (("kbK5/pp6/1P6/8/8/8/8/R7 w - - 0 1", 2), ("6k1/5ppp/8/8/8/8/8/R3K3 w Q - 0 1", 1)):
            info = one.analyse(chess.Board(fen), chess.engine.Limit(mate=moves))
            equal(info["score"].relative, chess.engine.Mate(moves), fen)


async def interrupt(count):
    """Analyses that are stopped at any moment, each with its answer."""
    _, one = await chess.engine.popen_uci([path_of("abdada"), "uci"])
    rng = random.Random(count)
    board = chess.Board()
    for _ in range(count):
        if board.is_game_over():
            board = chess.Board()
        stream = await one.analysis(board)
        await asyncio.sleep(rng.choice((0, 0, 0.001, 0.003)))
        stream.stop()
        best = await stream.wait()
        check(best.move in board.legal_moves, board.fen(), best)
        board.push(rng.choice(list(board.legal_moves)))
    await one.quit()


@needs_chess
def stops_at_any_moment():
    asyncio.run(interrupt(30 if SHORT or SANITIZED else 300))


if __name__ == "__main__":
    sys.exit(main([
        games_of_one_second,
        games_at_odd_clocks_while_workers_and_shards_are_killed,
        games_of_chess960,
        castling_of_chess960_over_shards,
        games_with_pondering,
        analysis_streams,
        only_named_moves_are_played,
        mates_are_proved,
        stops_at_any_moment,
    ], programs=("abdada", "ttserver", "ttworker"), unstable=STARVED))
