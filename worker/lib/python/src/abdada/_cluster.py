"""The front-end: positions for the workers of a cluster."""
import collections
import contextlib
import time as clock
from typing import Any, Deque, Dict, Iterator, NamedTuple, NoReturn, Optional, Set, Tuple

from ._errors import Error, NoWorkers, Refused, Unavailable, c_text, call, checked, error, invalid
from ._handle import Handle, Keys, Servers, not_copied, slice_ms
from ._native import ffi, lib

_MATE, _MATE_MIN = 31000, 30000  # as in JOB_REPORT of chess: PROTOCOL.md section 8
_ALIVE_S = 3.0  # a worker that has not reported for so long is not counted
_DEPTH_MAX, _DEPTH_MAX_OF_ENGINES = 100, 250
_KEPT = 1024  # events of an analysis that nobody iterates over


class Progress(NamedTuple):
    """What is known after an iteration, the first time that any worker has finished it."""

    depth: int
    score: int  #: of the side to move, as the game counts: chess in centipawns
    mate: Optional[int]  #: of chess: moves to a forced mate, negative if it is the other's; None: none is known
    best_move: Optional[str]  #: None where there is no move
    line: Tuple[str, ...]  #: the moves that both sides are expected to make, the best first
    nodes: int  #: of all workers so far
    workers: int  #: that take part now
    seconds: float  #: since the job was posted


class _Event(NamedTuple):
    instance: int
    state: int
    depth: int
    score: int
    nodes: int
    shard: int
    text: str


class _Worker:
    """What one worker said last."""

    def __init__(self) -> None:
        self.nodes, self.state, self.reported_at = 0, -1, 0.0


def _last_depth(game: str, position: str) -> int:
    """The depth that finishes every search: workers stop there. Othello is solved at its number of empty squares."""
    if game in ("othello", "othello-wld"):
        squares = "".join(position.split())[:64]
        return 60 if squares == "startpos" else max(1, sum(square in "-._" for square in squares))
    return 250 if game.startswith("uci:") else 100


class Analysis(Iterator[Progress]):
    """A search of a cluster: iterate over it, or take `result`. It ends when a worker has finished the depth, when all
    have finished a game with a known end, when time is over, or when it is closed: by close(), by `with`, or by leaving the
    loop over an Analysis that has no name."""

    def __init__(self, cluster: "Cluster", job_id: int, depth: int, time: Optional[float],
                 nodes: Optional[int], patience: float, chess: bool) -> None:
        self._cluster, self._id, self._chess = cluster, job_id, chess
        self._depth, self._time, self._nodes, self._patience = depth, time, nodes, patience
        self._begin = clock.monotonic()
        self._workers: Dict[int, _Worker] = {}
        self._refused: Set[int] = set()
        self._barred: Dict[int, str] = {}
        self._last: Optional[Progress] = None

    def __iter__(self) -> "Analysis":
        return self

    def __next__(self) -> Progress:
        try:
            while self._cluster._is_open(self._id) and not self._is_over():
                event = self._cluster._next(self._id, self._end_of_wait())
                if event is not None and self._take(event):
                    assert self._last is not None
                    return self._last
                self._check_help()
        except BaseException:
            self.close()
            raise
        self.close()
        raise StopIteration

    def __enter__(self) -> "Analysis":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        try:
            self.close()
        except Error:  # another thread is in a call, perhaps of ours: its next one stops this
            self._cluster._dropped.append(self._id)

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise not_copied(self)

    def close(self) -> None:
        """Stops the workers. Twice is no error. Raises Error while another thread is in a call on the Cluster."""
        self._cluster._stop(self._id)

    @property
    def result(self) -> Progress:
        """The last Progress; searches on until the end. Of one that was closed before there was any: raises Error."""
        for _ in self:
            pass
        if self._last is None:
            raise Error("the analysis was closed before an iteration was finished")
        return self._last

    # ---- what comes ----

    def _end_of_wait(self) -> float:
        now = clock.monotonic()
        return now + 1 if self._time is None or self._last is None else min(now + 1, self._begin + self._time)

    def _take(self, event: _Event) -> bool:
        """Whether it is of a deeper iteration than any before."""
        if event.state == lib.ABDADA_JOB_BARRED:
            self._barred[event.shard] = event.text
            return False
        if event.state == lib.ABDADA_JOB_REFUSED:
            self._refused.add(event.instance)
            return False
        worker = self._workers.setdefault(event.instance, _Worker())
        worker.nodes = max(worker.nodes, event.nodes)
        worker.state, worker.reported_at = event.state, clock.monotonic()
        self._barred.pop(event.shard, None)
        line = tuple(event.text.split())
        if self._last is not None and event.depth == self._last.depth and not self._last.line and line:
            self._last = self._last._replace(line=line, best_move=line[0])  # a report may come without its line
        if event.depth <= (self._last.depth if self._last is not None else 0):
            return False
        self._last = Progress(event.depth, event.score, self._mate(event.score), line[0] if line else None, line,
                              sum(w.nodes for w in self._workers.values()), self._alive(),
                              clock.monotonic() - self._begin)
        return True

    def _alive(self) -> int:
        return sum(clock.monotonic() - w.reported_at < _ALIVE_S for w in self._workers.values())

    def _mate(self, score: int) -> Optional[int]:
        if not self._chess or abs(score) <= _MATE_MIN:
            return None
        moves = (_MATE - abs(score) + 1) // 2
        return moves if score > 0 else -moves

    # ---- the end ----

    def _is_over(self) -> bool:
        if self._last is None:
            return False
        return (self._last.depth >= self._depth or
                self._time is not None and clock.monotonic() - self._begin >= self._time or
                self._nodes is not None and sum(w.nodes for w in self._workers.values()) >= self._nodes)

    def _silence(self) -> float:
        """For how many seconds no worker reported."""
        return clock.monotonic() - max([self._begin] + [w.reported_at for w in self._workers.values()])

    def _check_help(self) -> None:
        """Raises when nobody searches and nobody is going to."""
        if not self._workers and self._refused and len(self._refused) >= self._cluster._most("workers", 1 << 32):
            raise self._refusal()
        if self._silence() < self._patience:
            return
        if self._refused or self._barred:
            raise self._refusal()
        if self._cluster.connected == 0:
            raise Unavailable(f"no shard is up for {self._patience:g} s", lib.ABDADA_E_UNAVAILABLE)
        raise NoWorkers(f"no worker reported for {self._patience:g} s")

    def _refusal(self) -> Refused:
        if self._barred:
            return Refused("; ".join(sorted(set(self._barred.values()))))
        return Refused(f"{len(self._refused)} workers, and none can search this: unknown game or algorithm, a position "
                       "that is none, or another kind of search than they were built for")


class Cluster(Handle):
    """A front-end: `with Cluster(["host:7400"]) as c: for p in c.analyse(fen, depth=9): print(p.depth, p.score)`.

    servers, keys (a directory with a key of the role front-end), name, answer_timeout: as of Table. Several analyses
    may go on at once, from one thread; each gets its part of the workers.
    """

    def __init__(self, servers: Servers, *, keys: Keys = None, name: str = "python",
                 answer_timeout: float = 0.25) -> None:
        super().__init__(servers, lib.ABDADA_FRONT_END, 0, 0, keys, name, answer_timeout)
        self._event = ffi.new("struct abdada_job_event *")
        self._kept: Dict[int, Deque[_Event]] = {}
        self._dropped: Deque[int] = collections.deque()

    def analyse(self, position: str = "startpos", *, depth: Optional[int] = None, time: Optional[float] = None,
                nodes: Optional[int] = None, strict: bool = False, full: bool = False, fresh: bool = False,
                game: str = "chess", algorithm: str = "abdada", remote_depth: Optional[int] = None,
                patience: float = 10.0) -> Analysis:
        """Posts a position and returns at once.

        position: for chess a FEN or "startpos". depth, time (seconds), nodes: limits; without any it goes on until it
        is closed, and after time there is always one iteration. strict: the score depends on position and depth alone.
        full: with forward pruning; not with strict. fresh: without results of earlier searches. remote_depth: nodes of
        at least that depth ask the shards; None: the workers choose.

        Iterating raises Unavailable, NoWorkers or Refused when that has lasted for `patience` seconds, and Refused at
        once when each worker has refused. Workers may come, go and die meanwhile.
        """
        if not call(lambda: time is None or 0 < time < 4e6):
            raise invalid(f"time is {time} seconds")
        if not call(lambda: patience >= 0):
            raise invalid(f"patience is {patience} seconds")
        texts = [c_text("game", game), c_text("position", position), c_text("algorithm", algorithm)]
        job = call(lambda: ffi.new("struct abdada_job *", {
            "struct_size": ffi.sizeof("struct abdada_job"), "game": texts[0], "position": texts[1], "algorithm": texts[2],
            "flags": (lib.ABDADA_JOB_STRICT if strict else 0) | (lib.ABDADA_JOB_FULL if full else 0) |
                     (lib.ABDADA_JOB_FRESH if fresh else 0),
            "depth": 0 if depth is None else depth, "time_ms": 0 if time is None else max(1, round(1000 * time)),
            "nodes": 0 if nodes is None else nodes, "remote_depth": 0 if remote_depth is None else remote_depth}))
        out = ffi.new("uint64_t *")
        checked(lib.abdada_job_post(self._handle, job, out))
        lib.abdada_serve(self._handle)
        self._kept[out[0]] = collections.deque(maxlen=_KEPT)
        last = _last_depth(game, position)
        return Analysis(self, out[0], min(depth or last, last), time, nodes, patience, game == "chess")

    # ---- for Analysis ----

    def _next(self, job_id: int, end: float) -> Optional[_Event]:
        """The next event of this job; None: none came until `end`. Those of others are kept for them."""
        while self._dropped:
            self._stop(self._dropped[0])
            self._dropped.popleft()
        mine = self._kept.get(job_id)
        while mine is not None and not mine:
            wait_ms = slice_ms(end)
            if checked(lib.abdada_job_next(self._handle, wait_ms, self._event)) == lib.ABDADA_WAITING:
                if wait_ms == 0:
                    return None
                continue
            e: Any = self._event
            others = self._kept.get(e.job)
            if others is not None:
                others.append(_Event(e.instance, e.state, e.depth, e.score, e.nodes, e.shard,
                                     ffi.string(e.text).decode(errors="replace")))
        return mine.popleft() if mine else None

    def _is_open(self, job_id: int) -> bool:
        return job_id in self._kept

    def _stop(self, job_id: int) -> None:
        if job_id not in self._kept:
            return
        if self._handle:
            code = lib.abdada_job_stop(self._handle, job_id)
            if code == lib.ABDADA_E_IN_USE:
                raise error(code)
            lib.abdada_serve(self._handle)
        self._kept.pop(job_id, None)

    def _most(self, figure: str, unknown: int) -> int:
        """The greatest that a shard says of this; `unknown` if none does."""
        counts = []
        for shard in range(len(self.shards)):
            with contextlib.suppress(Unavailable, KeyError):
                counts.append(self.shard_stats(shard)[figure])
        return max(counts, default=unknown)
