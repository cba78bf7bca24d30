"""What Table and Cluster have in common: open, close, connections, figures."""
import os
import time
from types import TracebackType
from typing import Any, Dict, List, NoReturn, Optional, Sequence, Type, TypeVar, Union

from ._errors import Unavailable, c_text, call, checked, error, listed
from ._native import ffi, lib

Servers = Union[str, Sequence[str]]
Keys = Union[str, "os.PathLike[str]", None]
_Self = TypeVar("_Self", bound="Handle")
_SLICE_MS = 100  # a wait in C is no longer, so that Ctrl-C is obeyed
_WHY_BYTES = 512


def namespace(text: str) -> int:
    """64 mixed bits of a text that names all that makes scores comparable: "my engine 3, nnue 7, strict"."""
    return int(lib.abdada_hash(c_text("namespace", text)))


def mix(bits: int) -> int:
    """64 well-mixed bits of any 64, to make a key of what is not mixed; different ones of different ones."""
    return int(call(lib.abdada_mix, bits))


def version() -> str:
    """Of the library."""
    return str(ffi.string(lib.abdada_version()).decode())


def slice_ms(end: float) -> int:
    """Milliseconds of the next wait in C of one that ends at this time.monotonic()."""
    return max(0, min(_SLICE_MS, int(1000 * (end - time.monotonic())) + 1))


def not_copied(what: object) -> TypeError:
    """For copy and pickle: of two that have one connection, or one job, the first that goes would end the other's."""
    return TypeError(f"cannot copy or pickle '{type(what).__name__}' object")


class Handle:
    """A client of a cluster: `with Table(...) as table:`; or call close()."""

    def __init__(self, servers: Servers, role: int, namespace_id: int, flags: int, keys: Keys, name: str,
                 answer_timeout: float, share_depth: int = 0, share_rate: int = 0) -> None:
        self._handle: Any = ffi.NULL
        texts = [c_text("servers", servers if isinstance(servers, str) else call(",".join, listed(servers))),
                 ffi.NULL if keys is None else c_text("keys", keys, os.fsencode),
                 c_text("name", name)]
        why = ffi.new("char[]", _WHY_BYTES)
        options = call(lambda: ffi.new("struct abdada_options *", {
            "struct_size": ffi.sizeof("struct abdada_options"), "servers": texts[0], "keys": texts[1],
            "namespace_id": namespace_id, "role": role, "flags": flags, "name": texts[2],
            "answer_ms": max(1, round(1000 * answer_timeout)), "why": why, "why_size": _WHY_BYTES,
            "share_depth": share_depth, "share_rate": share_rate}))
        out = ffi.new("struct abdada **")
        code = lib.abdada_open(out, options)
        if code < 0:
            raise error(code, ffi.string(why).decode(errors="replace"))
        self._handle = out[0]

    def close(self) -> None:
        """Sends what is queued and says goodbye: up to 200 ms. What was in flight is free for others. Twice is no
        error; other calls on what is closed raise Error. Raises Error, and stays open, while another thread is in a call."""
        if self._handle:
            code = lib.abdada_close(self._handle)
            if code == lib.ABDADA_E_IN_USE:
                raise error(code)
            self._handle = ffi.NULL

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_handle"):
            self.close()

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise not_copied(self)

    @property
    def shards(self) -> List[str]:
        """The addresses of all shards, up or not."""
        name = ffi.new("char[]", 256)
        names = []
        for shard in range(checked(lib.abdada_shards(self._handle))):
            checked(lib.abdada_shard_name(self._handle, shard, name, 256))
            names.append(ffi.string(name).decode())
        return names

    @property
    def connected(self) -> int:
        """How many shards are up now."""
        return checked(lib.abdada_connected(self._handle))

    def wait_connected(self, timeout: float = 5.0) -> int:
        """Waits until shards are up, all of them or those that come soon after the first, and returns how many.
        Raises Unavailable, with the reason of one that refuses us if it says any."""
        end = call(lambda: time.monotonic() + timeout)
        while True:
            wait_ms = call(slice_ms, end)
            code = lib.abdada_wait_connected(self._handle, wait_ms)
            if code != lib.ABDADA_E_UNAVAILABLE:
                return checked(code)
            if wait_ms == 0:
                raise Unavailable(self.refusal or f"no shard is up after {timeout:g} s", code)

    @property
    def refusal(self) -> str:
        """Why a shard does not take us, in its own words: the last that said so. Empty: none did."""
        text = ffi.new("char[]", _WHY_BYTES)
        checked(lib.abdada_refusal(self._handle, text, _WHY_BYTES))
        return str(ffi.string(text).decode(errors="replace"))

    def stats(self) -> Dict[str, int]:
        """This client's counters, by name."""
        return self._figures(lambda out, room: lib.abdada_stats(self._handle, out, room))

    def shard_stats(self, shard: int) -> Dict[str, int]:
        """The figures of a shard, by its index in `shards`. Waits for its answer; raises Unavailable."""
        return self._figures(lambda out, room: lib.abdada_shard_stats(self._handle, shard, out, room))

    @staticmethod
    def _figures(read: Any) -> Dict[str, int]:
        room = 256
        while True:
            out = ffi.new("struct abdada_figure[]", room)
            count = checked(call(read, out, room))
            if count <= room:
                return {ffi.string(out[i].name).decode(): out[i].value for i in range(count)}
            room = count
