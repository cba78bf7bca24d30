"""How operations and answers lie in a buffer: for Table.ask_packed, store_packed, release_packed, peek_packed,
share_packed, take_shared_packed.

A buffer is anything that has the buffer protocol: bytes, bytearray, memoryview, array.array, a numpy array. It holds
one record after the other, as struct abdada_ask_op and its like in abdada.h; nothing is called for each of them.
`format` is for the module struct, `dtype` for numpy.dtype(); numpy is not needed.

Every operation has 16 bytes, of which the key is the first 8: of bytes or a bytearray
memoryview(asks).cast("Q")[::2] are the keys.
"""
from typing import List, NamedTuple, Tuple

from ._native import lib

EXCLUSIVE, STRICT = int(lib.ABDADA_EXCLUSIVE), int(lib.ABDADA_STRICT)  #: bits of an ask's flags
BESIDE = int(lib.ABDADA_BESIDE)  #: may be added to the bound of a store, as Bound.BESIDE


class Layout(NamedTuple):
    """Of one record."""

    struct: str  #: its name in abdada.h
    format: str
    dtype: List[Tuple[str, str]]


ASK = Layout("struct abdada_ask_op", "=QhhBBH",
             [("key", "u8"), ("alpha", "i2"), ("beta", "i2"), ("depth", "u1"), ("flags", "u1"), ("slot", "u2")])
STORE = Layout("struct abdada_store_op", "=QhHHBB",
               [("key", "u8"), ("score", "i2"), ("move", "u2"), ("slot", "u2"), ("depth", "u1"), ("bound", "u1")])
RELEASE = Layout("struct abdada_release_op", "=QHB5x",
                 [("key", "u8"), ("slot", "u2"), ("depth", "u1"), ("reserved", "V5")])
PEEK = Layout("struct abdada_peek_op", "=QB7x", [("key", "u8"), ("depth", "u1"), ("reserved", "V7")])
ANSWER = Layout("struct abdada_answer", "=hhhHHBB",
                [("score", "i2"), ("alpha", "i2"), ("beta", "i2"), ("move", "u2"), ("nproc", "u2"), ("verdict", "u1"),
                 ("bound", "u1")])
PEEKED = Layout("struct abdada_peeked", "=hhHHB3x",
                [("lower", "i2"), ("upper", "i2"), ("move", "u2"), ("nproc", "u2"), ("depth", "u1"),
                 ("reserved", "V3")])
