"""The table for a search of one's own."""
import enum
from typing import Any, Callable, Iterable, List, NamedTuple, Sequence, Tuple, Union

from ._errors import call, checked, invalid, listed
from ._handle import Handle, Keys, Servers, namespace as hash_of
from ._native import ffi, lib
from .packed import ANSWER, ASK, EXCLUSIVE, PEEK, PEEKED, RELEASE, STORE, STRICT, Layout

SCORE_MAX = 32767  # as an upper, and its negative as a lower bound: unknown
DEPTH_MAX = 250


class Verdict(enum.IntEnum):
    """What to do with a node that was asked for."""

    OPEN = lib.ABDADA_OPEN  #: search it in the window that came back, then store or release it
    CUT = lib.ABDADA_CUT  #: `score` closes the window
    BUSY = lib.ABDADA_BUSY  #: another searcher is in it: do its siblings first, then ask again, not exclusively
    ALONE = lib.ABDADA_ALONE  #: no shard answered: search it as if there were no table


class Bound(enum.IntFlag):
    """What a stored score says of the value: LOWER, UPPER or EXACT, perhaps with BESIDE: Bound.EXACT | Bound.BESIDE."""

    LOWER = lib.ABDADA_LOWER  #: at least this
    UPPER = lib.ABDADA_UPPER  #: at most this
    EXACT = lib.ABDADA_EXACT
    BESIDE = lib.ABDADA_BESIDE  #: the result stays beside those of other depths, for strict asks; else it replaces them


class Answer(NamedTuple):
    """To an ask. OPEN and ALONE: alpha, beta; CUT: score, and bound, what it says of the value of the depth asked or more.
    move: the best known, 0 none. nproc: searchers in the node."""

    verdict: Verdict
    score: int
    alpha: int
    beta: int
    move: int
    nproc: int
    bound: Bound = Bound(0)


class Peeked(NamedTuple):
    """A result, of whatever depth: bounds of the value (-SCORE_MAX, SCORE_MAX: unknown) and the best move, 0 none.
    nproc: searchers that are in the node at the depth asked."""

    lower: int
    upper: int
    depth: int
    move: int
    nproc: int


class Ask(NamedTuple):
    """One of a batch of asks. slot: which of the searchers of this Table asks."""

    key: int
    depth: int
    alpha: int
    beta: int
    exclusive: bool = False
    strict: bool = False
    slot: int = 0


class Store(NamedTuple):
    """One of a batch of stores."""

    key: int
    depth: int
    score: int
    bound: Bound
    move: int = 0
    slot: int = 0


class Node(NamedTuple):
    """One of a batch of releases."""

    key: int
    depth: int
    slot: int = 0


_VERDICTS = [Verdict(number) for number in range(4)]
_BOUNDS = [Bound(number) for number in range(4)]
_TAKEN_MAX = 4096  # results that the library keeps until they are taken


def _array(kind: str, row: Callable[[Any], Any], operations: Any) -> Any:
    listed_operations = listed(operations)
    return call(lambda: ffi.new(kind, [row(operation) for operation in listed_operations]))


def _records(layout: Layout, buffer: Any, writable: bool = False) -> Any:
    """Those of a caller's buffer, where they lie."""
    size, boundary = ffi.sizeof(layout.struct), ffi.alignof(layout.struct)
    length = call(memoryview, buffer).nbytes
    records = call(ffi.from_buffer, layout.struct + "[]", buffer, writable)
    if length % size != 0 or (length > 0 and int(ffi.cast("uintptr_t", records)) % boundary != 0):
        raise invalid(f"wanted records of {size} bytes ({layout.struct}) at a multiple of {boundary}")
    return records


def _results(layout: Layout, count: int, buffer: Any) -> Tuple[Any, Any]:
    """(records for so many results, the buffer that they lie in): the caller's, or a new one."""
    buffer = bytearray(count * ffi.sizeof(layout.struct)) if buffer is None else buffer
    records = _records(layout, buffer, True)
    if len(records) < count:
        raise invalid(f"room for {len(records)} results of {count}")
    return records, buffer


def _answer(a: Any) -> Answer:
    return Answer(_VERDICTS[a.verdict], a.score, a.alpha, a.beta, a.move, a.nproc, _BOUNDS[a.bound])


def _peeked(p: Any) -> Peeked:
    return Peeked(p.lower, p.upper, p.depth, p.move, p.nproc)


class Table(Handle):
    """The transposition table of a cluster, with who is in each node.

    servers: "HOST:PORT,HOST:PORT,..." or a sequence of "HOST:PORT", all shards of the cluster; or a Redis,
    "redis://HOST:PORT". namespace: a number, or a text that names all that makes scores comparable (game, rules,
    evaluation, its version, the kind of search): programs of different namespaces never meet. raw_keys: keys are used
    as they are. keys: a directory that `abdada keygen` made. name: for people who list sessions. answer_timeout: the
    longest that a call waits for a shard, in seconds. share_depth: of results that share() sends, 1 to 63; 0: there is no
    feed. share_rate: results of others a second above which deeper ones alone are sent; 0: a million.

    Returns at once and connects meanwhile; see wait_connected. A search need not care whether a shard is there: an ask
    is answered ALONE without one, and what cannot be stored is dropped. Sessions are kept when you call; a search that
    does not ask for a second calls serve() now and then.

    Keys are 64 well mixed bits. Scores are of the side to move, -SCORE_MAX to SCORE_MAX; depths 0 to DEPTH_MAX; moves
    16 bits that the table does not read, 0 is none.
    """

    def __init__(self, servers: Servers, *, namespace: Union[int, str] = 0, keys: Keys = None, name: str = "python",
                 answer_timeout: float = 0.25, raw_keys: bool = False, share_depth: int = 0, share_rate: int = 0) -> None:
        super().__init__(servers, lib.ABDADA_TABLE, hash_of(namespace) if isinstance(namespace, str) else namespace,
                         lib.ABDADA_RAW_KEYS if raw_keys else 0, keys, name, answer_timeout, share_depth, share_rate)
        self._taken = ffi.new("struct abdada_store_op[]", _TAKEN_MAX) if share_depth > 0 else ffi.NULL
        self._one_answer = ffi.new("struct abdada_answer *")
        self._one_peeked = ffi.new("struct abdada_peeked *")

    # ---- one at a time ----

    def ask(self, key: int, depth: int, alpha: int, beta: int, *, exclusive: bool = False,
            strict: bool = False) -> Answer:
        """Enters a node, unless it is answered CUT or BUSY. alpha < beta. exclusive: BUSY if another searcher is in
        it. strict: a result of this very depth alone may answer, else one of this or a greater depth. A node that one
        is in already is renewed."""
        code = call(lib.abdada_ask, self._handle, key, depth, alpha, beta,
                    (EXCLUSIVE if exclusive else 0) | (STRICT if strict else 0), self._one_answer)
        if code != lib.ABDADA_E_UNAVAILABLE:
            checked(code)
        return _answer(self._one_answer)

    def store(self, key: int, depth: int, score: int, bound: Bound, move: int = 0) -> None:
        """The result of a node; one is no longer in it. A search that asks strictly stores with Bound.BESIDE. Queued: it
        leaves with the next ask, or at flush()."""
        self._sent(call(lib.abdada_store, self._handle, key, depth, score, bound, move))

    def release(self, key: int, depth: int) -> None:
        """Leaves a node without a result. Queued likewise."""
        self._sent(call(lib.abdada_release, self._handle, key, depth))

    def peek(self, key: int, depth: int) -> Peeked:
        """Reads a result without entering the node. Raises Unavailable."""
        checked(call(lib.abdada_peek, self._handle, key, depth, self._one_peeked))
        return _peeked(self._one_peeked)

    # ---- batches: one wait for all ----

    def ask_many(self, asks: Iterable[Ask]) -> List[Answer]:
        """The answers, in order. Those that are lost are ALONE."""
        rows = _array("struct abdada_ask_op[]", lambda a: (
            a.key, a.alpha, a.beta, a.depth,
            (EXCLUSIVE if a.exclusive else 0) | (STRICT if a.strict else 0), a.slot), asks)
        answers = ffi.new("struct abdada_answer[]", len(rows))
        code = lib.abdada_ask_many(self._handle, rows, len(rows), answers)
        if code != lib.ABDADA_E_UNAVAILABLE:
            checked(code)
        return [_answer(a) for a in answers]

    def store_many(self, stores: Iterable[Store]) -> None:
        rows = _array("struct abdada_store_op[]", lambda s: (s.key, s.score, s.move, s.slot, s.depth, s.bound), stores)
        self._sent(lib.abdada_store_many(self._handle, rows, len(rows)))

    def release_many(self, nodes: Iterable[Node]) -> None:
        rows = _array("struct abdada_release_op[]", lambda n: (n.key, n.slot, n.depth), nodes)
        self._sent(lib.abdada_release_many(self._handle, rows, len(rows)))

    def peek_many(self, nodes: Sequence[Tuple[int, int]]) -> List[Peeked]:
        """Of (key, depth) pairs, in order. Raises Unavailable if not even one was answered."""
        rows = _array("struct abdada_peek_op[]", lambda n: (n[0], n[1]), nodes)
        out = ffi.new("struct abdada_peeked[]", len(rows))
        checked(lib.abdada_peek_many(self._handle, rows, len(rows), out))
        return [_peeked(p) for p in out]

    # ---- batches in buffers: no Python for each operation; see abdada.packed ----

    def ask_packed(self, asks: Any, answers: Any = None) -> Any:
        """`asks`: a buffer of packed.ASK records. The answers, packed.ANSWER records in the same order, are written
        into the buffer `answers`, or a new bytearray, which is returned. Those that are lost are ALONE."""
        records = _records(ASK, asks)
        out, answers = _results(ANSWER, len(records), answers)
        code = lib.abdada_ask_many(self._handle, records, len(records), out)
        if code != lib.ABDADA_E_UNAVAILABLE:
            checked(code)
        return answers

    def store_packed(self, stores: Any) -> None:
        """`stores`: a buffer of packed.STORE records."""
        records = _records(STORE, stores)
        self._sent(lib.abdada_store_many(self._handle, records, len(records)))

    def release_packed(self, nodes: Any) -> None:
        """`nodes`: a buffer of packed.RELEASE records."""
        records = _records(RELEASE, nodes)
        self._sent(lib.abdada_release_many(self._handle, records, len(records)))

    def peek_packed(self, nodes: Any, results: Any = None) -> Any:
        """`nodes`: a buffer of packed.PEEK records. The results, packed.PEEKED records, are written as those of
        ask_packed are. Raises Unavailable if not even one was answered."""
        records = _records(PEEK, nodes)
        out, results = _results(PEEKED, len(records), results)
        checked(lib.abdada_peek_many(self._handle, records, len(records), out))
        return results

    # ---- the feed: results of others, unasked ----

    def share(self, key: int, depth: int, score: int, bound: Bound, move: int = 0) -> None:
        """Tells a result to all other searches of the namespace that have a feed, if it is deep enough for what they can
        take (it adjusts itself, from share_depth on) and any is there. Never waits; may get lost. Any thread."""
        self._offered(call(lib.abdada_share, self._handle, key, depth, score, bound, move))

    def share_many(self, results: Iterable[Store]) -> None:
        rows = _array("struct abdada_store_op[]", lambda s: (s.key, s.score, s.move, s.slot, s.depth, s.bound), results)
        self._offered(lib.abdada_share_many(self._handle, rows, len(rows)))

    def share_packed(self, results: Any) -> None:
        """`results`: a buffer of packed.STORE records."""
        records = _records(STORE, results)
        self._offered(lib.abdada_share_many(self._handle, records, len(records)))

    def take_shared(self) -> List[Store]:
        """What others shared since the last call, for a table of one's own. Sends what is to be sent, too: call it every
        millisecond or so. Never waits. Anybody who may use the cluster may say anything: check that moves are legal."""
        return [Store(s.key, s.depth, s.score, _BOUNDS[s.bound], s.move) for s in self._taken[0:self._take()]]

    def take_shared_packed(self) -> bytes:
        """The same as packed.STORE records."""
        return bytes(ffi.buffer(self._taken, self._take() * ffi.sizeof(STORE.struct)))

    def _take(self) -> int:
        return checked(lib.abdada_take_shared(self._handle, self._taken, _TAKEN_MAX if self._taken else 0))

    @staticmethod
    def _offered(code: int) -> None:
        """What has no room is dropped, and counted."""
        if code != lib.ABDADA_E_FULL:
            checked(code)

    # ---- time ----

    def new_search(self, namespace: Union[int, str]) -> None:
        """Begins a new search in that namespace, perhaps another one: leaves all nodes and empties the feed both ways."""
        number = hash_of(namespace) if isinstance(namespace, str) else namespace
        checked(call(lib.abdada_new_search, self._handle, number))

    def flush(self) -> None:
        """Sends queued stores and releases now."""
        self._sent(lib.abdada_flush(self._handle))

    def serve(self) -> None:
        """Sends and takes what there is, keeps sessions and what is in flight. Never waits."""
        self._sent(lib.abdada_serve(self._handle))

    @staticmethod
    def _sent(code: int) -> None:
        """Without a shard what is sent is dropped, and counted: no error of a search that goes on alone."""
        if code != lib.ABDADA_E_UNAVAILABLE:
            checked(code)
