#!/usr/bin/env python3
"""What a call from Python costs, by the way that it reaches libabdada: the package (cffi, API mode: compiled), cffi's ABI
mode, ctypes. Batches and single peeks, and calls that need no shard, in turns; medians.

    python_calls.py HOST:PORT [--repeats N] [--batch N]

Run it with a Python that has the package, with a ttserver at HOST:PORT and LD_LIBRARY_PATH naming libabdada's folder.
"""
import argparse
import contextlib
import ctypes
import statistics
import time

import abdada
import cffi

CALLS = 200
# As in abdada.h: modes without a compiler need every field.
DECLARATIONS = """
    struct options { size_t struct_size; const char *servers, *keys; uint64_t namespace_id; uint32_t role, flags;
                     const char *name; uint32_t answer_ms, tickets; void *node_done, *self; const char *log_name;
                     char *why; size_t why_size; };
    struct op { uint64_t key; uint8_t depth; uint8_t reserved[7]; };
    struct peeked { int16_t lower, upper; uint16_t move, nproc; uint8_t depth; uint8_t reserved[3]; };
    int abdada_open(void **out, const struct options *options);
    int abdada_wait_connected(void *t, int timeout_ms);
    int abdada_peek(void *t, uint64_t key, unsigned depth, struct peeked *peeked);
    int abdada_peek_many(void *t, const struct op *op, size_t count, struct peeked *peeked);
    int abdada_connected(void *t);
"""


class Package:
    """cffi, API mode."""

    def __init__(self, servers):
        self.table = abdada.Table(servers, answer_timeout=5)
        self.table.wait_connected()
        self.peek, self.batch = self.table.peek, self.table.peek_many
        self.nothing = lambda: self.table.connected


class Abi:
    """cffi, ABI mode: the same code as the package's."""

    def __init__(self, servers):
        self.ffi = cffi.FFI()
        self.ffi.cdef(DECLARATIONS)
        self.lib = self.ffi.dlopen("libabdada.so.0")
        text, out = self.ffi.new("char[]", servers.encode()), self.ffi.new("void **")
        options = self.ffi.new("struct options *", {"struct_size": self.ffi.sizeof("struct options"), "servers": text,
                                                    "answer_ms": 5000})
        assert self.lib.abdada_open(out, options) == 0
        self.handle, self.one = out[0], self.ffi.new("struct peeked *")
        assert self.lib.abdada_wait_connected(self.handle, 5000) > 0

    def peek(self, key, depth):
        self.lib.abdada_peek(self.handle, key, depth, self.one)
        p = self.one
        return abdada.Peeked(p.lower, p.upper, p.depth, p.move, p.nproc)

    def batch(self, nodes):
        out = self.ffi.new("struct peeked[]", len(nodes))
        self.lib.abdada_peek_many(self.handle, self.ffi.new("struct op[]", list(nodes)), len(nodes), out)
        return [abdada.Peeked(p.lower, p.upper, p.depth, p.move, p.nproc) for p in out]

    def nothing(self):
        return self.lib.abdada_connected(self.handle)


class Op(ctypes.Structure):
    _fields_ = [("key", ctypes.c_uint64), ("depth", ctypes.c_uint8), ("reserved", ctypes.c_uint8 * 7)]


class Peeked(ctypes.Structure):
    _fields_ = [("lower", ctypes.c_int16), ("upper", ctypes.c_int16), ("move", ctypes.c_uint16),
                ("nproc", ctypes.c_uint16), ("depth", ctypes.c_uint8), ("reserved", ctypes.c_uint8 * 3)]


class Options(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("servers", ctypes.c_char_p), ("keys", ctypes.c_char_p),
                ("namespace_id", ctypes.c_uint64), ("role", ctypes.c_uint32), ("flags", ctypes.c_uint32),
                ("name", ctypes.c_char_p), ("answer_ms", ctypes.c_uint32), ("tickets", ctypes.c_uint32),
                ("rest", ctypes.c_void_p * 3), ("why", ctypes.c_void_p), ("why_size", ctypes.c_size_t)]


class Ctypes:
    """ctypes, in the Python library."""

    def __init__(self, servers):
        self.lib = ctypes.CDLL("libabdada.so.0")
        self.lib.abdada_peek.argtypes = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint, ctypes.POINTER(Peeked)]
        self.lib.abdada_peek_many.argtypes = [ctypes.c_void_p, ctypes.POINTER(Op), ctypes.c_size_t,
                                              ctypes.POINTER(Peeked)]
        self.lib.abdada_connected.argtypes = [ctypes.c_void_p]
        self.handle = ctypes.c_void_p()
        options = Options(ctypes.sizeof(Options), servers.encode(), answer_ms=5000)
        assert self.lib.abdada_open(ctypes.byref(self.handle), ctypes.byref(options)) == 0
        assert self.lib.abdada_wait_connected(self.handle, 5000) > 0
        self.one = Peeked()

    def peek(self, key, depth):
        self.lib.abdada_peek(self.handle, key, depth, ctypes.byref(self.one))
        p = self.one
        return abdada.Peeked(p.lower, p.upper, p.depth, p.move, p.nproc)

    def batch(self, nodes):
        ops, out = (Op * len(nodes))(*nodes), (Peeked * len(nodes))()
        self.lib.abdada_peek_many(self.handle, ops, len(nodes), out)
        return [abdada.Peeked(p.lower, p.upper, p.depth, p.move, p.nproc) for p in out]

    def nothing(self):
        return self.lib.abdada_connected(self.handle)


def microseconds(call):
    """(of the clock, of this thread's CPU time) for a call."""
    begin, begin_cpu = time.perf_counter(), time.thread_time()
    for _ in range(CALLS):
        with contextlib.suppress(abdada.Unavailable):  # on a busy machine a shard may be taken for down
            call()
    return (time.perf_counter() - begin) / CALLS * 1e6, (time.thread_time() - begin_cpu) / CALLS * 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("servers")
    parser.add_argument("--repeats", type=int, default=21)
    parser.add_argument("--batch", type=int, default=64)
    o = parser.parse_args()
    ways = {"package (cffi, API mode)": Package(o.servers), "cffi, ABI mode": Abi(o.servers), "ctypes": Ctypes(o.servers)}
    nodes = [(abdada.namespace(str(i)), 5) for i in range(o.batch)]
    calls = {f"peek of {o.batch}": lambda way: lambda: way.batch(nodes), "peek of 1": lambda way: lambda: way.peek(7, 5),
             "no message": lambda way: way.nothing}
    for title, call in calls.items():
        times = {name: [] for name in ways}
        for _ in range(o.repeats):
            for name, way in ways.items():
                times[name].append(microseconds(call(way)))
        for name, each in times.items():
            clock, cpu = (statistics.median(column) for column in zip(*each))
            print(f"{title:12}  {name:24}  {clock:7.2f} us  {cpu:7.2f} us of CPU time  best {min(each)[0]:.2f} us")


if __name__ == "__main__":
    main()
