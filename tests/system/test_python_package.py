#!/usr/bin/python3
"""The Python package: installed with pip beside an installed libabdada, used against real shards and workers. TAP.

    BIN=build/release/bin tests/system/test_python_package.py       WHEEL=FILE: that one is installed, made by another Python

The library is that of the release build, which Python can load; shards and workers are those of BIN. Nothing comes from
the network but the package `chess`, for the example.
"""
import array
import contextlib
import copy
import functools
import gc
import glob
import importlib.util
import inspect
import json
import os
import pickle
import shutil
import signal
import struct
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import threading
import zipfile

import client
import redis_servers
from cluster import (STRICT, STARVED, QUICK, SHORT, ROOT, Process, Shard, answers, ask, ask_alone, check, equal, free_port,
                     main, positions, scratch, start, wait_until)
from test_keys import environment, ring

SOURCE = os.path.join(ROOT, "worker/lib/python")
SOLVER = os.path.join(ROOT, "examples/chess_solver.py")
ANNOTATE = os.path.join(ROOT, "examples/annotate.py")
GAMES = """[Event "one"]
[Result "1-0"]

1. e4 {a comment} e5 2. Nf3 d6 3. d4 Bg4 4. dxe5 Bxf3 5. Qxf3 dxe5 6. Bc4 Nf6 7. Qb3 Qe7 8. Nc3 c6 9. Bg5 b5 10. Nxb5
cxb5 11. Bxb5+ Nbd7 12. O-O-O Rd8 13. Rxd7 Rxd7 14. Rd1 Qe6 15. Bxd7+ Nxd7 16. Qb8+ Nxb8 17. Rd8# 1-0

[Event "two"]
[Result "0-1"]

1. f3 e5 2. g4 Qh4# 0-1

[Event "without moves"]
[Result "*"]

*

[Event "repeated"]
[Result "1/2-1/2"]

1. e4 Nf6 2. Nf3 Ng8 3. Ng1 Nf6 4. Nf3 Ng8 5. Ng1 Nf6 1/2-1/2
"""
# What python-chess reads of a file: of each game its moves, the values of those that have one, marks and other lines.
READ = """
import chess.pgn, json, sys
games = iter(lambda: chess.pgn.read_game(sys.stdin), None)
print(json.dumps([[[node.move.uci(), node.eval() and str(node.eval().white()), sorted(node.nags),
                    len(node.parent.variations) - 1] for node in game.mainline()] for game in games]))
"""
SOLVED = "r1bqk2r/pppp1ppp/2n2n2/2b1p3/2B1P3/3P1N2/PPP2PPP/RNBQK2R w KQkq - 0 1"
PATIENCE_S = 600  # for compilers and pip on a busy machine
OPTIONS = ["--no-build-isolation", "--no-deps", "--no-index"]  # setuptools and cffi are those of the system


@functools.lru_cache(None)
def why_not():
    """Why the package cannot be built here, or None."""
    missing = [name for name in ("cffi", "setuptools", "wheel", "venv", "ensurepip") if not importlib.util.find_spec(name)]
    if missing:
        return f"no Python module {' '.join(missing)} here"
    if not shutil.which("pkg-config"):
        return "no pkg-config here"
    return None


def command(*words, **variables):
    """(exit status, output) of a program that ends."""
    done = subprocess.run([str(word) for word in words], env={**os.environ, **variables}, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=PATIENCE_S, check=False, cwd=ROOT)
    return done.returncode, done.stdout


def succeeds(*words, **variables):
    status, output = command(*words, **variables)
    check(status == 0, words, "exit status", status, output[-3000:])
    return output


@functools.lru_cache(None)
def folder():
    return scratch("python")


@functools.lru_cache(None)
def library():
    """The folder of abdada.pc of an installed library."""
    prefix = os.path.join(folder(), "usr")
    succeeds("make", "MODE=release", "install-library", f"PREFIX={prefix}", "DESTDIR=")
    return os.path.join(prefix, "lib/pkgconfig")


@functools.lru_cache(None)
def python():
    """Of an environment of its own that has nothing of ours yet."""
    path = os.path.join(folder(), "venv")
    succeeds(sys.executable, "-m", "venv", "--system-site-packages", path)
    if sys.prefix != sys.base_prefix:  # the packages of the environment that this runs in are not those of the system
        here = sysconfig.get_path("purelib")
        with open(os.path.join(path, os.path.relpath(here, sys.prefix), "here.pth"), "w", encoding="utf-8") as file:
            file.write(here + "\n")
    return os.path.join(path, "bin/python")


def sources():
    """A copy, since building writes beside them."""
    path = tempfile.mkdtemp(dir=folder())
    return shutil.copytree(SOURCE, os.path.join(path, "python"), ignore=shutil.ignore_patterns("build", "*.egg-info"))


@functools.lru_cache(None)
def package():
    """The module abdada, installed."""
    succeeds(python(), "-m", "pip", "install", *OPTIONS, os.environ.get("WHEEL") or sources(), PKG_CONFIG_PATH=library())
    where = succeeds(python(), "-c", "import sysconfig; print(sysconfig.get_path('platlib'))").strip()
    sys.path.insert(0, where)
    import abdada
    check(abdada.__file__.startswith(where), abdada.__file__)
    return abdada


def needs_package(test):
    @functools.wraps(test)
    def wrapped():
        reason = why_not()
        if reason:
            return reason
        package()
        return test()
    return wrapped


def raises(kind, action, *words):
    """The exception, whose text has these words."""
    try:
        action()
    except kind as error:
        equal(type(error), kind, error)
        check(all(word in str(error) for word in words), "not in the text:", words, error)
        return error
    raise AssertionError(f"no {kind.__name__}")


def until(action):
    """What the action returns; repeated while a shard is taken for down, as may happen on a busy machine."""
    def tried():
        with contextlib.suppress(package().Unavailable):
            return (action(),)
        return None
    return wait_until(tried, "an answer")[0]


def worker(shard, keys=None, name="w"):
    process = Process("ttworker", "--servers", shard.address, "--name", name, *(["--keys", keys] if keys else []))
    process.wait_line("^ready$")
    return process


@contextlib.contextmanager
def killed_at_end(*processes):
    try:
        yield
    finally:
        for process in processes:
            process.kill()


# ---- the package ----

def test_pip_makes_wheel_and_sdist():
    if why_not():
        return why_not()
    out, here = os.path.join(folder(), "out"), sources()
    build = "import sys, setuptools.build_meta as b; out = sys.argv[1]; b.build_sdist(out); b.build_wheel(out)"
    done = subprocess.run([python(), "-c", build, out], cwd=here, env={**os.environ, "PKG_CONFIG_PATH": library()},
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE_S, check=False)
    equal(done.returncode, 0, done.stdout[-3000:])
    (wheel,), (sdist,) = glob.glob(out + "/*.whl"), glob.glob(out + "/*.tar.gz")
    check("-cp39-abi3-" in wheel, wheel)  # one for all versions of CPython from 3.9 on
    with zipfile.ZipFile(wheel) as file:
        names = file.namelist()
    check("abdada/py.typed" in names and "abdada/__init__.py" in names and
          "abdada/_native.abi3.so" in names, names)
    with tarfile.open(sdist) as file:
        file.extractall(out)
        check(any(name.endswith("/abdada_build.py") for name in file.getnames()), file.getnames())
    unpacked, = glob.glob(out + "/abdada-*/")
    succeeds(python(), "-m", "pip", "install", *OPTIONS, "--target", os.path.join(out, "target"), unpacked,
             PKG_CONFIG_PATH=library())
    equal(succeeds(python(), "-c", "import abdada; print(abdada.__version__ == abdada.version())",
                   PYTHONPATH=os.path.join(out, "target")).strip(), "True")
    return None


def test_without_the_library_one_line_says_what_to_do():
    if why_not():
        return why_not()
    status, output = command(python(), "-m", "pip", "install", *OPTIONS, sources(), PKG_CONFIG_LIBDIR="/nowhere",
                             PKG_CONFIG_PATH="/nowhere")
    check(status != 0 and "pkg-config does not find libabdada. Run `make install`" in output, output[-3000:])
    check("Traceback" not in output.split("abdada: pkg-config")[0].rsplit("Building wheel", 1)[1], output[-3000:])
    return None


def test_types_are_strict():
    if not shutil.which("mypy"):
        return "no mypy here"
    with tempfile.TemporaryDirectory() as cache:
        succeeds("mypy", "--strict", "--cache-dir", cache, os.path.join(SOURCE, "src/abdada"))
        uses = os.path.join(cache, "uses.py")
        for lines, status in (("answer: abdada.Answer = abdada.Table('h:1').ask(1, 2, -3, 4, exclusive=True)\n"
                               "scores: list[int] = [p.score for p in abdada.Cluster(['h:1']).analyse(depth=3)]\n", 0),
                              ("abdada.Table('h:1').store('x', 2, 3, 4)\n", 1)):
            with open(uses, "w", encoding="ascii") as file:
                file.write("import abdada\n" + lines)
            got, output = command("mypy", "--strict", "--cache-dir", cache, uses, MYPYPATH=os.path.join(SOURCE, "src"))
            equal(got, status, output)
    return None


# ---- the table ----

@needs_package
def test_the_table_with_keys():
    abdada = package()
    with ring() as keys, environment(ABDADA_KEYS=""):
        shard = Shard(keys=keys, heartbeat_ms=5000)
        with abdada.Table(shard.address, namespace="one", keys=keys) as a, \
                abdada.Table([shard.address], namespace="one", keys=keys) as b, \
                abdada.Table(shard.address, namespace="two", keys=keys) as c:
            for table in a, b, c:
                equal(table.wait_connected(30), 1)
                equal((table.shards, table.connected), ([shard.address], 1))
            opened = until(lambda: a.peek(7, 5))
            equal(tuple(opened), (-32767, 32767, 0, 0, 0))
            wait_until(lambda: a.ask(7, 5, -100, 100).verdict == abdada.Verdict.OPEN, "OPEN")
            equal(until(lambda: b.peek(7, 5)).nproc, 1)
            wait_until(lambda: b.ask(7, 5, -100, 100, exclusive=True).verdict == abdada.Verdict.BUSY, "BUSY")
            wait_until(lambda: b.ask(7, 5, -100, 100).verdict == abdada.Verdict.OPEN, "OPEN")
            equal(until(lambda: a.peek(7, 5)).nproc, 2)
            a.store(7, 5, 20, abdada.Bound.LOWER, 99)
            b.release(7, 5)
            for table in a, b:
                table.flush()
            wait_until(lambda: tuple(until(lambda: a.peek(7, 5))) == (20, 32767, 5, 99, 0), "the result, and nobody in it")

            def answer(*window, **how):
                return wait_until(lambda: (got := b.ask(7, *window, **how)).verdict != abdada.Verdict.ALONE and got, "an answer")
            equal((answer(5, -50, 10)[:2], answer(5, -50, 10).bound), ((abdada.Verdict.CUT, 20), abdada.Bound.LOWER))
            equal(answer(4, -50, 10)[:2], (abdada.Verdict.CUT, 20))
            equal(answer(4, -50, 10, strict=True).verdict, abdada.Verdict.OPEN)
            equal(answer(5, -50, 60)[2:5], (20, 60, 99))
            for depth in 5, 6:  # both answer strictly
                b.store(9, depth, depth, abdada.Bound.EXACT | abdada.Bound.BESIDE, 1)
            b.flush()
            for depth in 5, 6:
                wait_until(lambda depth=depth: until(lambda: b.peek(9, depth)).depth == depth, "both results")
                equal(b.ask(9, depth, -50, 60, strict=True)[:2], (abdada.Verdict.CUT, depth))
            equal(tuple(until(lambda: c.peek(7, 5)))[:4], (-32767, 32767, 0, 0), "of another namespace")
            check(a.stats()["stores"] == 1 and until(lambda: a.shard_stats(0))["sessions"] == 3, a.stats())
        equal(shard.end(), 0)


@needs_package
def test_batches():
    abdada = package()
    shards = [Shard(heartbeat_ms=5000) for _ in range(2)]
    keys = [client.mix(number) for number in range(1, 2001)]
    with killed_at_end(*shards), abdada.Table([shard.address for shard in shards], answer_timeout=10) as table:
        wait_until(lambda: until(table.wait_connected) == 2, "both shards")

        def stored():  # queued stores beyond a bound are dropped: in parts
            for first in range(0, len(keys), 32):
                table.store_many(abdada.Store(key, 3, key % 1000, abdada.Bound.EXACT, 5) for key in keys[first:first + 32])
                table.flush()
            return [p.lower for p in until(lambda: table.peek_many([(key, 3) for key in keys]))] == \
                [key % 1000 for key in keys]
        wait_until(stored, "all results in the table")
        check(all(shard.stats()["stores"] > 500 for shard in shards), "both shards have some")

        def cut():
            got = table.ask_many([abdada.Ask(key, 3, -32767, 32767) for key in keys])
            equal(len(got), len(keys))
            return all(a.verdict == abdada.Verdict.CUT and a.score == key % 1000 for a, key in zip(got, keys))
        wait_until(cut, "all answered")
        slots = [abdada.Ask(4711, 9, 0, 1, exclusive=True, slot=slot) for slot in range(3)]
        wait_until(lambda: [a.verdict for a in table.ask_many(slots)] ==
                   [abdada.Verdict.OPEN, abdada.Verdict.BUSY, abdada.Verdict.BUSY], "one of three slots in the node")
        table.release_many([abdada.Node(4711, 9, slot=0)])
        wait_until(lambda: until(lambda: table.peek(4711, 9)).nproc == 0, "nobody in it")
        equal((table.ask_many([]), table.peek_many([])), ([], []))


@needs_package
def test_batches_in_buffers():
    abdada = package()
    packed, keys = abdada.packed, [client.mix(number) for number in range(1, 1501)]
    shard = Shard(heartbeat_ms=5000)
    with killed_at_end(shard), abdada.Table(shard.address, answer_timeout=10) as table:
        wait_until(lambda: until(table.wait_connected) == 1, "the shard")
        asks = bytearray(b"".join(struct.pack(packed.ASK.format, key, -10, 10, 6, packed.EXCLUSIVE, 0) for key in keys))
        answers = bytearray(struct.calcsize(packed.ANSWER.format) * len(keys))
        check(table.ask_packed(asks, answers) is answers)
        columns = list(zip(*struct.iter_unpack(packed.ANSWER.format, answers)))
        equal([set(column) for column in columns[1:]], [{-10}, {10}, {0}, {1}, {int(abdada.Verdict.OPEN)}, {0}])
        in_flight = table.ask_many([abdada.Ask(key, 6, -10, 10) for key in keys])
        equal({(a.verdict, a.nproc) for a in in_flight}, {(abdada.Verdict.OPEN, 1)}, "the same nodes")
        table.store_packed(memoryview(b"".join(
            struct.pack(packed.STORE.format, key, key % 1000, 5, 0, 6, abdada.Bound.EXACT | packed.BESIDE)
            for key in keys[:1000])))
        table.release_packed(b"".join(struct.pack(packed.RELEASE.format, key, 0, 6) for key in keys[1000:]))
        table.flush()
        peeks = array.array("B", b"".join(struct.pack(packed.PEEK.format, key, 6) for key in keys))
        want = [(key % 1000, key % 1000, 5, 0, 6) for key in keys[:1000]] + [(-32767, 32767, 0, 0, 0)] * 500
        wait_until(lambda: list(struct.iter_unpack(packed.PEEKED.format, until(lambda: table.peek_packed(peeks)))) == want,
                   "all results, and nobody in a node")
        equal((table.ask_packed(b""), table.peek_packed(b"")), (b"", b""))
        for layout in packed.ASK, packed.STORE, packed.RELEASE, packed.PEEK, packed.ANSWER, packed.PEEKED:
            sizes = sum(int(kind[1:]) for _, kind in layout.dtype)
            equal(sizes, struct.calcsize(layout.format), layout)
            if importlib.util.find_spec("numpy"):
                import numpy
                equal(numpy.dtype(layout.dtype).itemsize, sizes, layout)
        for action in (lambda: table.ask_packed(b"x" * 15), lambda: table.ask_packed(asks, bytes(len(answers))),
                       lambda: table.ask_packed(asks, bytearray(12)), lambda: table.ask_packed(memoryview(asks)[1:17]),
                       lambda: table.store_packed(memoryview(asks)[::2]), lambda: table.peek_packed(b"\xff" * 16)):
            raises(abdada.InvalidArgument, action)


@needs_package
def test_the_feed():
    abdada = package()
    shard = Shard(heartbeat_ms=5000)
    results = [abdada.Store(key, 5, key - 9, abdada.Bound.LOWER, 7) for key in range(1, 20)]
    rows = b"".join(struct.pack(abdada.packed.STORE.format, r.key, r.score, r.move, 0, r.depth, r.bound) for r in results)
    with killed_at_end(shard), abdada.Table(shard.address, share_depth=4) as a, abdada.Table(shard.address, share_depth=4) as b:
        for table in a, b:
            wait_until(lambda table=table: until(table.wait_connected) == 1, "the shard")
        for share in (lambda: a.share_many(results), lambda: a.share_packed(rows), lambda: [a.share(*r[:5]) for r in results]):
            got = set()

            def all_came(share=share, got=got):
                share()
                b.share(100, 9, 0, abdada.Bound.EXACT)  # it is there
                b.share(99, 3, 0, abdada.Bound.EXACT)  # too shallow
                check(all(r.key == 100 for r in a.take_shared()))
                got.update(b.take_shared())
                return got == set(results)
            wait_until(all_came, "all results")
        wait_until(lambda: (a.share_packed(rows), a.serve(), b.share(100, 9, 0, abdada.Bound.EXACT), b.take_shared_packed())[-1] == rows, "records")
        b.new_search("another")
        check(b.take_shared() == [] and a.stats()["shared"] > 0)
        check(abdada.mix(1) != abdada.mix(2))


@needs_package
def test_chomp_is_solved_by_processes_that_share():
    shard = Shard(heartbeat_ms=5000)
    with killed_at_end(shard):
        status, output = command(python(), os.path.join(ROOT, "examples/chomp.py"), "--servers", shard.address, "7x6")
        equal(status, 0, output)
        equal([line.split()[:2] for line in output.splitlines()], [["value", "1"]] * 2, output)
        check(shard.stats()["shared"] > 0, "results were shared")


def none_is_taken(function, good, wrong, flags=()):
    """Each of these values of an argument is refused, beside good ones; no argument is left out but the flags."""
    equal(set(wrong) | set(flags), set(inspect.signature(function).parameters) - {"self"}, function)
    for argument, values in wrong.items():
        for value in values:
            def action(argument=argument, value=value):
                result = function(**{**good, argument: value})
                raise AssertionError(f"{function.__name__}({argument}={value!r}): {result}")
            raises(package().InvalidArgument, action)


@needs_package
def test_every_wrong_argument_is_an_invalid_one():
    abdada = package()
    other = [None, "x", b"x", "", b"", 0.0, 1.5, [], {}, object()]
    unsigned, signed = other + [-1, 1 << 31, 1 << 70], other + [-40000, 40000, 1 << 70, -1 << 70]
    key = other + [-1, -hash("x") if hash("x") > 0 else hash("x"), 1 << 64, 1 << 70]
    text = [1, b"x", 0.0, [], {}, object(), "engine 1\0strict", "\0", "\udc80"]
    seconds = ["x", b"x", "", [], {}, float("nan")]
    rows = [None, 1, [1], [None], ["x"], [()], object()]
    node = {"key": 1, "depth": 2}
    opened = {"servers": text + [None, "", [1], ["h:1", "h:2\0"], "127.0.0.1:1\0,", "redis://h:1\0"],
              "keys": [1, [], "keys\0", b"keys\0"], "name": text + [None],
              "answer_timeout": seconds + [None, 100, float("inf")]}
    namespaces = [name for name in key if name not in ("x", "")] + text[4:]
    none_is_taken(abdada.namespace, {}, {"text": text + [None]})
    none_is_taken(abdada.mix, {}, {"bits": key})
    none_is_taken(abdada.Table, {"servers": "h:1"}, {**opened, "namespace": namespaces,
                                                    "share_depth": unsigned + [64], "share_rate": other + [-1, 1 << 32]}, ["raw_keys"])
    none_is_taken(abdada.Cluster, {"servers": "h:1"}, opened)
    with abdada.Table(f"127.0.0.1:{free_port()}", share_depth=1) as table:
        none_is_taken(table.ask, {**node, "alpha": 0, "beta": 1}, {"key": key, "depth": unsigned, "alpha": signed, "beta": signed},
                      ["exclusive", "strict"])
        none_is_taken(table.store, {**node, "score": 0, "bound": abdada.Bound.EXACT},
                      {"key": key, "depth": unsigned, "score": signed, "bound": unsigned + [0, 4], "move": unsigned})
        none_is_taken(table.share, {**node, "score": 0, "bound": abdada.Bound.EXACT},
                      {"key": key, "depth": unsigned, "score": signed, "bound": unsigned + [0, 4], "move": unsigned})
        none_is_taken(table.new_search, {}, {"namespace": namespaces})
        none_is_taken(table.release, node, {"key": key, "depth": unsigned})
        none_is_taken(table.peek, node, {"key": key, "depth": unsigned})
        for function, argument, kind in ((table.ask_many, "asks", abdada.Ask(1, 2, 0, 1)), (table.release_many, "nodes", abdada.Node(1, 2)),
                                         (table.store_many, "stores", abdada.Store(1, 2, 0, abdada.Bound.EXACT)),
                                         (table.share_many, "results", abdada.Store(1, 2, 0, abdada.Bound.EXACT))):
            wrong = {"key": key, "depth": unsigned, "slot": unsigned, "alpha": signed, "beta": signed, "score": signed,
                     "bound": unsigned, "move": unsigned}
            none_is_taken(function, {}, {argument: rows + [[kind._replace(**{field: value})] for field in kind._fields
                                                           if field in wrong for value in wrong[field]]})
        none_is_taken(table.peek_many, {}, {"nodes": rows + [[(bad, 2)] for bad in key] + [[(1, bad)] for bad in unsigned]})
        for function, argument, result in ((table.ask_packed, "asks", "answers"), (table.store_packed, "stores", None), (table.share_packed, "results", None),
                                           (table.release_packed, "nodes", None), (table.peek_packed, "nodes", "results")):
            packed = [None, "x", 1, [], [1, 2], object(), b"x" * 15]
            none_is_taken(function, {argument: bytes(16)},
                          {argument: packed, **({result: packed[1:] + [bytes(16), bytearray(1)]} if result else {})})
        none_is_taken(table.wait_connected, {}, {"timeout": seconds + [None, float("inf")]})
        none_is_taken(table.shard_stats, {}, {"shard": other + [-1, 1, 1 << 70]})

        def broken():
            yield from ()
            raise KeyError("the caller's own")
        for function in (table.ask_many, table.store_many, table.release_many, table.peek_many, abdada.Table, abdada.Cluster):
            raises(KeyError, lambda function=function: function(broken()), "the caller's own")
    with abdada.Cluster(f"127.0.0.1:{free_port()}") as cluster:
        number = other[1:] + [-1, 300, 1 << 70]  # None: no limit
        none_is_taken(cluster.analyse, {}, {"position": text + [None], "game": text + [None], "algorithm": text + [None],
                                            "depth": number, "nodes": other[1:] + [-1, 1 << 64], "remote_depth": number,
                                            "time": seconds + [0, -1, float("inf")], "patience": seconds + [None, -1]},
                      ["strict", "full", "fresh"])


@needs_package
def test_wrong_values_are_exceptions():
    abdada = package()
    wrong = abdada.InvalidArgument
    check(issubclass(wrong, ValueError) and issubclass(wrong, abdada.Error))
    exact = abdada.Bound.EXACT
    with abdada.Table(f"127.0.0.1:{free_port()}") as table:
        for action in (lambda: table.ask(1, 2, 5, 5), lambda: table.ask(1, 251, 0, 1), lambda: table.ask(1, 2, -32768, 1),
                       lambda: table.store(1, 2, 32768, exact), lambda: table.store(1, 2, 0, 0),
                       lambda: table.store(1, 2, 0, 4), lambda: table.store(1, 2, 0, exact, 65536),
                       lambda: table.peek(1, 300), lambda: table.release(1, 251),
                       lambda: table.ask_many([abdada.Ask(1, 2, 0, 1), abdada.Ask(1, 2, 1, 0)]),
                       lambda: table.ask_many([abdada.Ask(1, 300, 0, 1)]),
                       lambda: table.store_many([abdada.Store(1, 2, 99999, exact)]),
                       lambda: table.release_many([abdada.Node(1, 2, 65536)]),
                       lambda: table.peek_many([(1 << 64, 2)]),
                       lambda: abdada.Table("nonsense"), lambda: abdada.Table([]), lambda: abdada.Cluster("http://h:1"),
                       lambda: abdada.Table("h:1", answer_timeout=100)):
            raises(wrong, action)
        for place in "tcp://h:1", "h:1,tcp://h:2", "://":
            raises(wrong, lambda place=place: abdada.Table(place), "HOST:PORT,HOST:PORT,... or a Redis: redis://")
        raises(wrong, lambda: abdada.Table("redisx://h:1"), "redis://")
        raises(abdada.Error, lambda: abdada.Table("h:1", keys="/nowhere"), "/nowhere")
    table.close()
    raises(abdada.Error, lambda: table.ask(1, 2, 0, 1), "not an open handle")
    raises(abdada.Error, lambda: table.stats())
    with abdada.Cluster(f"127.0.0.1:{free_port()}") as cluster:
        for action in (lambda: cluster.analyse(depth=300), lambda: cluster.analyse(nodes=1 << 64),
                       lambda: cluster.analyse(strict=True, full=True), lambda: cluster.analyse(time=0)):
            raises(wrong, action)


@needs_package
def test_without_a_shard_a_search_goes_on_alone():
    abdada, port = package(), free_port()
    with abdada.Table(f"127.0.0.1:{port}") as table:
        equal(table.ask(7, 5, -20, 30)[:4], (abdada.Verdict.ALONE, 0, -20, 30))
        equal({a.verdict for a in table.ask_many([abdada.Ask(key, 5, 0, 1) for key in range(9)])}, {abdada.Verdict.ALONE})
        table.store(7, 5, 1, abdada.Bound.EXACT)
        table.release(7, 5)
        table.serve()
        for action in (lambda: table.peek(7, 5), lambda: table.peek_many([(7, 5)]), lambda: table.shard_stats(0),
                       lambda: table.wait_connected(0.2)):
            raises(abdada.Unavailable, action)
        shard = Shard(port)
        equal(table.wait_connected(30), 1)
        wait_until(lambda: table.ask(7, 5, -20, 30).verdict == abdada.Verdict.OPEN, "the shard's answer")
        shard.kill()
        wait_until(lambda: table.ask(8, 5, -20, 30).verdict == abdada.Verdict.ALONE, "it goes on alone")


@needs_package
def test_a_shard_that_refuses_us_says_why():
    abdada = package()
    with ring() as keys, environment(ABDADA_KEYS=""):
        shard = Shard(keys=keys)
        monitor = os.path.join(os.path.dirname(keys), "monitor")
        os.mkdir(monitor, 0o700)
        for file in "server.public", "monitor.secret":
            shutil.copy(os.path.join(keys, file), monitor)
        raises(abdada.Error, lambda: abdada.Table(shard.address, keys=monitor))
        equal(shard.end(), 0)
    full = Shard(0, "--sessions", 1, heartbeat_ms=60000)
    first = client.Client(full.address).hello()
    with abdada.Table(full.address) as table:
        wait_until(lambda: (table.serve(), table.refusal)[1], "the reason")
        raises(abdada.Unavailable, lambda: table.wait_connected(0.1), table.refusal)
    first.close()


@needs_package
def test_others_run_while_a_call_waits():
    """The lock of the interpreter is free meanwhile."""
    abdada = package()
    from abdada._native import lib
    with abdada.Table(f"127.0.0.1:{free_port()}") as table:
        begun = threading.Event()

        def call():
            begun.set()
            lib.abdada_wait_connected(table._handle, 1000)  # one call in C, a second long
        thread = threading.Thread(target=call)
        thread.start()
        begun.wait()
        turns = 0
        while thread.is_alive():
            turns += 1
        thread.join()
    print(f"# {turns} turns of another thread meanwhile")
    check(turns > 1000, turns)


@needs_package
def test_what_another_thread_is_in_is_not_closed():
    abdada = package()
    from abdada._native import lib
    port = free_port()
    with abdada.Cluster(f"127.0.0.1:{port}") as cluster:
        analysis = cluster.analyse()

        def call():
            while lib.abdada_wait_connected(cluster._handle, 600000) == lib.ABDADA_E_IN_USE:
                pass  # the other thread was in it
        thread = threading.Thread(target=call, daemon=True)
        thread.start()
        wait_until(lambda: lib.abdada_shards(cluster._handle) == lib.ABDADA_E_IN_USE, "the call")
        for close in analysis.close, cluster.close:
            equal(raises(abdada.Error, close).code, lib.ABDADA_E_IN_USE)
        shard = Shard(port)
        thread.join()
        wait_until(lambda: (cluster.connected, shard.stats()["jobs"])[1] == 1, "the job, which is open still")
        analysis.close()
        wait_until(lambda: (cluster.connected, shard.stats()["jobs"])[1] == 0, "its end")
    raises(abdada.Error, lambda: cluster.connected)
    shard.kill()


@needs_package
def test_what_is_open_is_not_copied():
    abdada = package()
    place = f"127.0.0.1:{free_port()}"
    with abdada.Table(place) as table, abdada.Cluster(place) as cluster:
        for what in table, cluster, cluster.analyse(depth=1):
            for copied in copy.copy, copy.deepcopy, pickle.dumps:
                raises(TypeError, lambda copied=copied, what=what: copied(what), "cannot copy or pickle")
        gc.collect()
        equal(table.ask(1, 2, 0, 1).verdict, abdada.Verdict.ALONE)  # it is open
        equal(cluster.connected, 0)
        equal(copy.copy(table.ask(1, 2, 0, 1)).verdict, abdada.Verdict.ALONE)


@needs_package
def test_a_table_of_before_a_fork_is_an_error():
    abdada = package()
    with abdada.Table(f"127.0.0.1:{free_port()}") as table:
        child = os.fork()
        if child == 0:
            try:
                table.ask(1, 2, 0, 1)
            except abdada.Error:
                os._exit(7)
            os._exit(8)
        equal(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 7)
        equal(table.ask(1, 2, 0, 1).verdict, abdada.Verdict.ALONE)


# ---- the workers of a cluster ----

def long_search():
    """(position, depth, answer) that takes a second alone, so that a kill falls into it."""
    for depth in range(6, 20):
        position = positions()[1]
        found = ask_alone(position, "--depth", depth, "--algorithm", "sequential", *STRICT)
        if found["cpu_s"] >= (0.5 if SHORT else 1):
            return position, depth, found
    return None


def value(found):
    """Of `abdada analyse --json`, as Progress has it."""
    return (found["score"], None) if found["score_kind"] == "cp" else (None, found["score"])


def value_of(progress):
    return (None, progress.mate) if progress.mate is not None else (progress.score, None)


@needs_package
def test_analyse_has_the_strict_score_whoever_dies():
    abdada = package()
    position, depth, expected = long_search()
    with ring() as keys, environment(ABDADA_KEYS=""):
        shards = [Shard(keys=keys) for _ in range(2)]
        servers = ",".join(shard.address for shard in shards)
        helpers = []
        for name in "w0", "w1":
            helpers.append(Process("ttworker", "--servers", servers, "--name", name, "--keys", keys))
            helpers[-1].wait_line("^ready$")
        with abdada.Cluster(servers.split(","), keys=keys) as cluster:
            cluster.wait_connected(30)
            seen = []
            for progress in cluster.analyse(position, depth=depth, strict=True, remote_depth=3):
                if not seen:
                    helpers[0].kill()
                seen.append(progress)
            depths = [p.depth for p in seen]
            equal(depths, sorted(set(depths)), "deeper each time")
            last = seen[-1]
            equal((last.depth, value_of(last)), (depth, value(expected)))
            check(last.best_move == last.line[0] and last.nodes > 0 and last.workers >= 1 and last.seconds > 0, last)
            analysis = cluster.analyse(position, depth=depth, strict=True)
            equal((analysis.result.depth, value_of(analysis.result)), (depth, value(expected)))
            mate = cluster.analyse("6k1/5ppp/8/8/8/8/8/R5K1 w - - 0 1", depth=3).result
            equal((mate.mate, mate.best_move), (1, "a1a8"))
            over = cluster.analyse("7k/5Q2/6K1/8/8/8/8/8 b - - 0 1", depth=3).result  # stalemate
            equal((over.score, over.best_move, over.line), (0, None, ()))
            for shard in shards:
                wait_until(lambda: shard.stats()["jobs"] == 0, "the jobs to end")
        for process in shards + helpers[1:]:
            equal(process.end(), 0)


@needs_package
def test_an_analysis_ends_with_its_loop_its_time_or_its_cluster():
    abdada = package()
    shard = Shard()
    helper = worker(shard)
    no_job = lambda: shard.stats()["jobs"] == 0
    with killed_at_end(shard, helper):
        with abdada.Cluster(shard.address) as cluster:
            for progress in cluster.analyse():  # without end
                break
            check(progress.depth >= 1)
            wait_until(no_job, "a loop that is left to end its job")
            with cluster.analyse(time=0.3) as analysis:
                wait_until(lambda: shard.stats()["jobs"] == 1, "the job")
                check(analysis.result.depth >= 1 and list(analysis) == [], analysis.result)
            wait_until(no_job, "the end of time")
            check(cluster.analyse(nodes=1000, depth=60).result.depth < 60)
            first, second = cluster.analyse(depth=5, strict=True), cluster.analyse("6k1/5ppp/8/8/8/8/8/R5K1 w - -", depth=5)
            equal((second.result.depth, first.result.depth), (5, 5), "two at once")
            left = cluster.analyse()
            next(left)
            wait_until(lambda: shard.stats()["jobs"] == 1, "a job without end")
            left.close()
            wait_until(no_job, "what is closed to end")
            raises(StopIteration, lambda: next(left))
            open_still = cluster.analyse()
            next(open_still)
        wait_until(no_job, "the cluster's close to end all")
        raises(abdada.Error, lambda: cluster.analyse())


@needs_package
def test_an_analysis_ends_with_its_game():
    abdada = package()
    shard = Shard()
    helpers = [worker(shard, name=name) for name in ("w0", "w1")]
    with killed_at_end(shard, *helpers), abdada.Cluster(shard.address) as cluster:
        cluster.wait_connected(30)
        for position in "7k/5Q2/6K1/8/8/8/8/8 b - - 0 1", "8/8/8/4k3/8/8/8/4K3 w - - 0 1":  # stalemate, a dead draw
            found = cluster.analyse(position, nodes=1 << 60, patience=60).result
            equal((found.depth, found.score), (100, 0))
        board = "--XXXXX--OOOXX-O-OOOXXOX-OXOXOXXOXXXOXXX--XOXOXX-XXXOOO--OOOOO-- X"  # 14 empties
        found = cluster.analyse(board, game="othello", depth=60, patience=60).result
        equal((found.depth, found.score, found.best_move), (14, 18, "g8"))
        three = [cluster.analyse(board, game="othello", patience=5) for _ in helpers + [None]]  # one waits for a worker
        equal([analysis.result.depth for analysis in three], [14, 14, 14])
        raises(abdada.InvalidArgument, lambda: cluster.analyse(depth=101))
        helpers[1].kill()
        unfinished = cluster.analyse(game="othello", patience=2)
        next(unfinished)
        others = [cluster.analyse(game="othello")]
        while others[-1]._id > unfinished._id:  # the worker goes to the smallest
            others.append(cluster.analyse(game="othello"))
        raises(abdada.NoWorkers, lambda: unfinished.result)


@needs_package
def test_an_analysis_dropped_beside_another_thread_ends():
    abdada = package()
    shard = Shard()
    helper = worker(shard)
    with killed_at_end(shard, helper), abdada.Cluster(shard.address) as cluster:
        dropped, waited_for = cluster.analyse(), cluster.analyse(time=3, patience=60)
        waiting = threading.Thread(target=lambda: waited_for.result)
        waiting.start()
        wait_until(lambda: shard.stats()["jobs"] == 2, "both jobs")
        del dropped
        wait_until(lambda: shard.stats()["jobs"] < 2 and waiting.is_alive(), "the end of the one that was dropped")
        waiting.join()


@needs_package
def test_without_help_an_exception_says_why():
    abdada = package()
    shard = Shard(0, "--jobs", 1)
    with killed_at_end(shard), abdada.Cluster(shard.address) as cluster:
        cluster.wait_connected(30)
        raises(abdada.NoWorkers, lambda: cluster.analyse(depth=3, patience=0.5).result)
        helper = worker(shard)
        for wrong in ({"position": "nonsense"}, {"game": "tiddlywinks"}, {"algorithm": "guess"}):
            raises(abdada.Refused, lambda: cluster.analyse(depth=3, patience=60, **wrong).result, "1 workers")
        equal(cluster.analyse(depth=3, patience=60).result.depth, 3, "the worker goes on")
        busy = cluster.analyse()
        next(busy)
        raises(abdada.Refused, lambda: cluster.analyse(depth=3, patience=3).result)
        busy.close()
        helper.kill()
        shard.kill()
        raises(abdada.Unavailable, lambda: cluster.analyse(depth=3, patience=1).result)


@needs_package
def test_a_redis_takes_the_place_of_shards():
    abdada = package()
    if redis_servers.why_not():
        return redis_servers.why_not()
    with redis_servers.Redis() as redis, contextlib.ExitStack() as ends:
        url = redis.url
        helper = Process("ttworker", "--table", url)
        ends.enter_context(killed_at_end(helper))
        helper.wait_line("^ready$")
        with abdada.Table(url, answer_timeout=5) as table:
            table.wait_connected(30)
            wait_until(lambda: table.ask(7, 5, -10, 10).verdict == abdada.Verdict.OPEN, "OPEN")
            table.store(7, 5, 3, abdada.Bound.EXACT, 9)
            table.flush()
            wait_until(lambda: tuple(until(lambda: table.peek(7, 5))) == (3, 3, 5, 9, 0), "the result")
        with abdada.Cluster(url) as cluster:
            expected, = ask(SOLVED, "--depth", 5, "--algorithm", "sequential", *STRICT)
            found = cluster.analyse(SOLVED, depth=5, strict=True, patience=60).result
            equal((found.depth, value_of(found)), (5, value(expected)))
            raises(abdada.Refused, lambda: cluster.analyse("nonsense", depth=3, patience=60).result, "1 workers")
    return None


# ---- the example ----

@functools.lru_cache(None)
def why_no_chess():
    if command(python(), "-c", "import chess")[0] != 0 and \
            command(python(), "-m", "pip", "install", "--quiet", "chess>=1.9,<2")[0] != 0:
        return "the package chess is not here and cannot be installed from PyPI"
    return None


def solve(*options):
    process = Process(python(), SOLVER, *options, SOLVED)
    process.close_input()
    return process


def solved(process):
    equal(process.wait(PATIENCE_S), 0, process.tail())
    return process.lines["out"][0].split()[1]


@needs_package
def test_the_chess_solver_has_one_value_however_many_search_it():
    if why_no_chess():
        return why_no_chess()
    depth = 3 if SHORT else 4
    alone = solved(solve("--depth", depth))
    with ring() as keys, environment(ABDADA_KEYS=keys):
        shard = Shard(keys=keys)
        helper = worker(shard, keys)
        with environment(ABDADA_SERVERS=shard.address):
            equal(solved(solve("--depth", depth, "--search", "one")), alone)
            several = solve("--depth", depth, "--search", "three", "--processes", 3)
            pids = several.wait_line("^processes (.*)$", "err")[0][1].split()
            wait_until(lambda: not several.running() or shard.stats()["sessions"] >= 4, "two sessions and our own")
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pids[0]), signal.SIGKILL)
            equal(solved(several), alone)
            both = solve("--depth", depth, "--search", "four", "--workers")
            equal(solved(both), alone)
            expected, = answers(start(SOLVED, "--depth", depth, "--algorithm", "sequential", *STRICT))
            check(both.lines["out"][-1].startswith(f"workers: depth {depth}  score {expected['score']} "), both.lines["out"])
        for process in shard, helper:
            equal(process.end(), 0)
    return None


def read(games):
    done = subprocess.run([python(), "-c", READ], input=games, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def annotate(*options):
    process = Process(python(), ANNOTATE, *options)
    process.close_input()
    return process


@needs_package
def test_games_are_annotated_although_a_worker_is_killed():
    if why_no_chess():
        return why_no_chess()
    folder_of_games = scratch("games")
    before, after = (os.path.join(folder_of_games, name) for name in ("before.pgn", "after.pgn"))
    with open(before, "w", encoding="utf-8") as file:
        file.write(GAMES)
    with ring() as keys, environment(ABDADA_KEYS=keys):
        shard = Shard(keys=keys)
        helpers = [worker(shard, keys, name) for name in ("w0", "w1")]
        with environment(ABDADA_SERVERS=shard.address), killed_at_end(*helpers, shard):
            process = annotate("--nodes", 30000 if SHORT else 300000, "--out", after, before)
            # Each worker has a job of its own: the machine is used.
            wait_until(lambda: len(set(shard.working().values())) == 2, "two workers with two jobs")
            helpers[0].send_signal(signal.SIGKILL)
            equal(process.wait(PATIENCE_S), 0, process.tail())
            check("45/45 positions" in process.err(), process.tail())
            wait_until(lambda: shard.stats()["jobs"] == 0, "no job is left")
    with open(after, encoding="utf-8") as file:
        text = file.read()
    check("a comment" in text, text)
    games = read(text)
    equal([[move[0] for move in game] for game in games], [[move[0] for move in game] for game in read(GAMES)])
    for game in games[:2]:
        check(all(move[1] for move in game[:-1]), "a move without a value:", game)
        equal(game[-1][1], None)  # mate: nothing is left to search
    equal(games[0][-2][1], "#+1")
    equal(games[3][-1][1], "0")  # for the third time
    equal(games[1][2][1:], ["#-1", [4], 1])  # g4: a blunder, and another move beside it
    return None


@needs_package
def test_annotate_says_what_is_missing():
    if why_no_chess():
        return why_no_chess()
    empty = scratch("games")
    games = os.path.join(empty, "games.pgn")
    with open(games, "w", encoding="utf-8") as file:
        file.write(GAMES)
    with open(os.path.join(empty, "chess.py"), "w", encoding="utf-8") as file:
        file.write("raise ImportError\n")  # as where it is not installed
    for status, words, options, variables in (
            (1, "needs the Python package `chess`", ["--servers", "127.0.0.1:1", games], {"PYTHONPATH": empty}),
            (2, "--servers or ABDADA_SERVERS is required", [games], {}),
            (1, "No such file", ["--servers", "127.0.0.1:1", os.path.join(empty, "none.pgn")], {}),
            (2, "--out is the file of the games", ["--servers", "127.0.0.1:1", "--out", games, games], {})):
        found, output = command(python(), ANNOTATE, *options, **variables)
        equal(found, status, output)
        check(words in output.splitlines()[-1] and "Traceback" not in output, output)
    with open(games, encoding="utf-8") as file:
        equal(file.read(), GAMES)
    return None


if __name__ == "__main__":
    tests = [item for name, item in list(globals().items()) if name.startswith("test_")]
    sys.exit(main(tests[1:] if QUICK else tests, unstable=STARVED))
