#!/usr/bin/python3
"""libabdada as others get it: installed, found through pkg-config, linked into programs that are not ours. TAP.

    BIN=build/dev/bin tests/system/test_lib.py

Needs make, a compiler and pkg-config; tests of what is missing are skipped.
"""
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

from cluster import (BUILD, STRICT, STARVED, ROOT, Process, Shard, Worker, answers, check, equal, main, needs, run, start,
                     wait_until)
from redis_servers import Redis, why_not

PREFIX = "/usr/local"
installed = {}  # DESTDIR, once


# A position and its value: some seconds for one process.
CONNECT4 = ("444442", 1) if BUILD == "release" else ("44444332", 3)
SANITIZE = {"dev": ["-fsanitize=address,undefined"], "tsan": ["-fsanitize=thread"], "release": []}


def make(*arguments):
    done = subprocess.run(["make", "--no-print-directory", "-s", f"MODE={BUILD}", f"PREFIX={PREFIX}", *arguments],
                          cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    check(done.returncode == 0, "make", *arguments, done.stdout[-2000:])


def missing():
    for tool in "make", "pkg-config", os.environ.get("CC", "gcc"):
        if not shutil.which(tool):
            return f"{tool} is not here"
    return None


def install():
    """DESTDIR with the installed files."""
    if not installed:
        folder = tempfile.TemporaryDirectory(prefix="abdada-lib-")
        make("install", f"DESTDIR={folder.name}")
        installed["folder"] = folder  # lives as long as this process
    return installed["folder"].name


def at(*parts):
    return os.path.join(install() + PREFIX, *parts)


def pkg_config(*arguments):
    variables = dict(os.environ, PKG_CONFIG_PATH=at("lib/pkgconfig"), PKG_CONFIG_SYSROOT_DIR=install())
    found = subprocess.run(["pkg-config", *arguments, "abdada"], env=variables, stdout=subprocess.PIPE, text=True,
                           check=True)
    return found.stdout.split()


def build(source, *flags, compiler="gcc"):
    """A program of one file, made in an empty folder from what is installed alone."""
    folder = tempfile.mkdtemp(dir=install())
    name = os.path.join(folder, os.path.splitext(os.path.basename(source))[0])
    shutil.copy(source, folder)
    done = subprocess.run([compiler, "-O2", "-Wall", "-Wextra", "-Werror", *SANITIZE[BUILD], os.path.basename(source),
                           "-o", name, *(flags or pkg_config("--cflags", "--libs"))],
                          cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    check(done.returncode == 0, done.stdout[-2000:])
    return name


def example(name, ending=".c", compiler="gcc"):
    if name not in installed:
        installed[name] = build(at("share/doc/abdada/examples", name + ending), compiler=compiler)
    return installed[name]


@contextlib.contextmanager
def library_path():
    before = os.environ.get("LD_LIBRARY_PATH")
    os.environ["LD_LIBRARY_PATH"] = at("lib") + (":" + before if before else "")
    try:
        yield
    finally:
        if before is None:
            del os.environ["LD_LIBRARY_PATH"]
        else:
            os.environ["LD_LIBRARY_PATH"] = before


def launch(program, *arguments):
    """With the installed library."""
    with library_path():
        return Process(program, *arguments)


def files_below(folder):
    return {os.path.relpath(os.path.join(top, name), folder) for top, _, names in os.walk(folder) for name in names}


def exported(*command):
    """Names of ours that a library shows; the sanitizers add some of theirs."""
    lines = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    names = [line.split()[-1].split("@")[0] for line in lines if len(line.split()) >= 3]
    return sorted(name for name in names if not name.startswith("_"))


needs_tools = needs(missing)


@needs_tools
def test_what_is_exported_is_the_list_and_nothing_else():
    with open(os.path.join(ROOT, "tests/data/abdada.symbols"), encoding="ascii") as lines:
        wanted = lines.read().split()
    equal(exported("nm", "-D", "--defined-only", at("lib/libabdada.so")), wanted)
    equal(exported("nm", "-g", "--defined-only", at("lib/libabdada.a")), wanted)
    with open(at("include/abdada.h"), encoding="utf-8") as header:
        text = re.sub(r"/\*.*?\*/", "", header.read(), flags=re.DOTALL)
    equal(sorted(re.findall(r"^[a-z][\w \*]*?\b(abdada_\w+)\(", text, re.MULTILINE)), wanted, "declared in abdada.h")
    dynamic = subprocess.run(["readelf", "-d", at("lib/libabdada.so")], stdout=subprocess.PIPE, text=True, check=True)
    check("soname: [libabdada.so.0]" in dynamic.stdout, dynamic.stdout)


@needs_tools
def test_install_and_uninstall():
    with tempfile.TemporaryDirectory(prefix="abdada-install-") as folder:
        make("install", f"DESTDIR={folder}", "INSTALL=install")  # as debhelper calls it
        found = files_below(folder + PREFIX)
        wanted = {"bin/abdada", "bin/ttserver", "bin/ttworker", "include/abdada.h", "lib/libabdada.a",
                  "lib/libabdada.so", "lib/libabdada.so.0", "lib/pkgconfig/abdada.pc", "share/man/man3/abdada.3",
                  "share/man/man1/abdada.1", "share/man/man1/ttserver.1", "share/man/man1/ttworker.1",
                  "share/bash-completion/completions/abdada", "share/bash-completion/completions/ttserver",
                  "share/doc/abdada/README.md", "share/doc/abdada/proto/PROTOCOL.md",
                  "share/doc/abdada/examples/connect4.c"}
        check(wanted <= found, wanted - found)
        make("uninstall", f"DESTDIR={folder}")
        equal(files_below(folder), set())
        make("uninstall", f"DESTDIR={folder}")  # twice is no error


@needs_tools
def test_the_lines_of_the_readme_work_for_a_private_prefix():
    if BUILD != "release":
        return "those lines name no sanitizer"
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
        readme = file.read()
    with open(os.path.join(ROOT, "docs/reference/common.md"), encoding="utf-8") as file:
        common = file.read()
    lines = re.search(r"```\n(sudo make install.*?)```", readme, re.S)[1].splitlines()
    compiling, = (line for line in lines if line.startswith("cc "))
    home = os.path.join(install(), "home")
    found = re.search(r"Without root, run `(make install PREFIX=\S+)`, and then\s+`(export .*?)`", common, re.S)
    words, exports = found[1].replace("$HOME", home).split(), found[2].replace("\n", " ")
    make(*words[1:])
    program = os.path.join(home, "connect4")
    compiling = compiling.replace("-o connect4", f"-o {program}")
    variables = {name: value for name, value in os.environ.items() if name not in ("LD_LIBRARY_PATH", "PKG_CONFIG_PATH")}
    done = subprocess.run(["sh", "-ec", f"{exports}\n{compiling}\n{program} {CONNECT4[0]}\nabdada --version\ncommand -v ttserver"],
                          cwd=ROOT, env={**variables, "HOME": home}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    said = done.stdout.splitlines()
    equal(done.returncode, 0, done.stdout)
    check(said[0].startswith(f"value {CONNECT4[1]} "), said)
    equal(said[-1], os.path.join(home, "abdada/bin/ttserver"))
    # A system's folder needs none of it; a relative one is where it is from here.
    check("rpath" not in " ".join(pkg_config("--libs")), pkg_config("--libs"))
    with tempfile.TemporaryDirectory(prefix="install-", dir=os.path.join(ROOT, "build")) as folder:
        make("install-library", f"PREFIX={os.path.relpath(folder, ROOT)}")
        with open(os.path.join(folder, "lib/pkgconfig/abdada.pc"), encoding="ascii") as file:
            found = file.read()
        check(f"prefix={folder}\nlibdir={folder}/lib\n" in found and "-Wl,-rpath,${libdir} -labdada" in found, found)


@needs_tools
def test_cplusplus_takes_the_header():
    if not shutil.which("g++"):
        return "g++ is not here"
    source = os.path.join(install(), "plus.cc")
    with open(source, "w", encoding="ascii") as file:
        file.write("#include <abdada.h>\n#include <cstdio>\n"
                   "int main() {\n    abdada_options options{};\n    options.struct_size = sizeof options;\n"
                   "    struct abdada *t = nullptr;\n"
                   "    std::printf(\"%s %d\\n\", abdada_version(), abdada_open(&t, &options) == ABDADA_E_ARGUMENT);\n"
                   "}\n")
    process = launch(build(source, compiler="g++"))
    equal(process.wait(), 0, process.tail())
    check(process.out().endswith(" 1"), process.tail())


def said(process):
    """(value, nodes) of an example."""
    equal(process.wait(), 0, process.tail())
    found = re.fullmatch(r"value (-?\d+) nodes (\d+)", process.lines["out"][-1])
    check(found, process.tail())
    return int(found[1]), int(found[2])


def fewer_nodes_together(program, arguments, value, most):
    """Two processes at a time need so much less than the least of those alone, each: on average, in one of ten tries, as
    they may have to take turns on one CPU."""
    shard = Shard(0)
    where = arguments(shard.address)
    equal(said(launch(program, *where))[0], value)
    alone = []
    for _ in range(10):
        alone.append(said(launch(program, *where))[1])
        two = [said(process) for process in [launch(program, *where) for _ in range(2)]]
        equal([found[0] for found in two], [value, value])
        if sum(found[1] for found in two) / 2 < most * min(alone):
            break
    else:
        check(False, f"{two} together, {alone} alone")
    equal(shard.end(), 0)


@needs_tools
def test_two_that_share_need_fewer_nodes():
    equal(said(launch(example("alphabeta"), "3333441"))[0], 0)
    fewer_nodes_together(example("alphabeta"), lambda address: ["--servers", address, "3333441"], 0, 0.9)
    process = launch(example("alphabeta"), "--servers", "127.0.0.1", "3333441")
    equal((process.wait(), len(process.lines["err"])), (1, 1), process.tail())
    equal(said(launch(example("alphabeta"), "--servers", "127.0.0.1:1", "3333441"))[0], 0)  # nobody is there


@needs_tools
def test_threads_that_share_by_one_handle_in_cplusplus():
    if not shutil.which("g++"):
        return "g++ is not here"
    chomp = example("chomp", ".cc", "g++")
    fewer_nodes_together(chomp, lambda address: [address, "2", "10", "9"], 1, 0.8)
    process = launch(chomp, "nowhere", "2", "9", "8")
    equal((process.wait(), len(process.lines["err"])), (1, 1), process.tail())
    return None


@needs_tools
def test_the_static_library_links():
    dynamic = [flag for flag in pkg_config("--static", "--cflags", "--libs") if flag != "-labdada"]
    program = build(at("share/doc/abdada/examples/connect4.c"), "-Wl,-Bstatic", at("lib/libabdada.a"),
                    "-Wl,-Bdynamic", *dynamic)
    needed = subprocess.run(["readelf", "-d", program], stdout=subprocess.PIPE, text=True, check=True).stdout
    check("libabdada" not in needed and "libzmq" in needed, needed)
    shard = Shard(0)
    process = Process(program, "--servers", shard.address, CONNECT4[0])
    equal(process.wait(), 0, process.tail())
    equal(value_of(process), CONNECT4[1])
    equal(shard.end(), 0)


def value_of(process):
    found = re.fullmatch(r"value (-?\d+) nodes (\d+) asks (\d+)", process.lines["out"][-1])
    check(found, process.tail())
    return int(found[1])


def asks_of(process):
    return int(process.lines["out"][-1].split()[-1])


@contextlib.contextmanager
def ring():
    with tempfile.TemporaryDirectory(prefix="abdada-keys-") as path:
        keys = os.path.join(path, "keys")
        equal(run("abdada", "keygen", keys).status, 0)
        yield keys


@needs_tools
def test_connect4_alone():
    process = launch(example("connect4"), CONNECT4[0])
    equal(process.wait(), 0, process.tail())
    equal((value_of(process), asks_of(process)), (CONNECT4[1], 0))
    process = launch(example("connect4"), "4444441")  # a column that is full
    equal(process.wait(), 2, process.tail())


def four_with_a_kill(keys):
    shard = Shard(0, keys=keys)  # which knows nothing
    four = [launch(example("connect4"), "--servers", shard.address, "--keys", keys, CONNECT4[0]) for _ in range(4)]

    def all_search():
        figures = shard.stats()
        return figures["inflight_entries"] >= 4 and figures["sessions"] >= 5 or not four[0].running()

    wait_until(all_search, "four search")
    four[0].send_signal(signal.SIGKILL)
    was_killed = four[0].wait() == -signal.SIGKILL
    for process in four[1:]:
        equal(process.wait(), 0, process.tail())
        equal(value_of(process), CONNECT4[1], process.tail())
    wait_until(lambda: shard.stats()["inflight_entries"] == 0, "nobody is in a node")
    equal(shard.end(), 0)
    return was_killed


@needs_tools
def test_four_processes_with_keys_find_the_same_value_while_one_is_killed():
    with ring() as keys:
        shard = Shard(0, keys=keys)
        where = ["--servers", shard.address, "--keys", keys, CONNECT4[0]]
        one = launch(example("connect4"), *where)
        equal(one.wait(), 0, one.tail())
        equal(value_of(one), CONNECT4[1])
        check(asks_of(one) > 50, one.tail())
        equal(shard.end(), 0)
        for _ in range(10):  # until the one to be killed has not finished before
            if four_with_a_kill(keys):
                return
        check(False, "the search is too short for a kill in between")


@needs_tools
def test_two_processes_meet_in_a_redis():
    if why_not():
        return why_not()
    if "-lhiredis" not in pkg_config("--static", "--libs"):
        return "built without hiredis"
    with Redis() as redis:
        two = [launch(example("connect4"), "--servers", redis.url, CONNECT4[0]) for _ in range(2)]
        for process in two:
            equal(process.wait(), 0, process.tail())
            equal(value_of(process), CONNECT4[1])
            check(asks_of(process) > 20, process.tail())
    return None


@needs_tools
def test_connect4_goes_on_alone_when_the_server_dies():
    shard = Shard(0)
    process = launch(example("connect4"), "--servers", shard.address, CONNECT4[0])
    wait_until(lambda: not process.running() or shard.stats()["asks"] > 10, "it asks")
    shard.kill()
    equal(process.wait(), 0, process.tail())
    equal(value_of(process), CONNECT4[1])


@needs_tools
def test_connect4_says_why_it_has_no_server():
    with ring() as keys:
        process = launch(example("connect4"), "--servers", "127.0.0.1", "--keys", keys)
        equal((process.wait(), len(process.lines["err"])), (1, 1), process.tail())
        process = launch(example("connect4"), "--servers", "127.0.0.1:1", "--keys", keys + "/nowhere")
        equal((process.wait(), len(process.lines["err"])), (1, 1), process.tail())


@needs_tools
def test_analyse_gets_a_strict_score_from_the_workers():
    answer, = answers(start("--algorithm", "sequential", *STRICT, "--depth", "6", "--fresh", "startpos"))
    with ring() as keys:
        shard = Shard(0, keys=keys)
        where = ["--servers", shard.address, "--keys", keys]
        os.environ["ABDADA_KEYS"] = keys
        try:
            worker = Worker(shard.address)
        finally:
            del os.environ["ABDADA_KEYS"]
        process = launch(example("analyse"), *where, "--strict", "--depth", "6", "startpos")
        equal(process.wait(), 0, process.tail())
        last = re.fullmatch(r"depth 6 score (-?\d+) nodes (\d+) line (.*)", process.lines["out"][-1])
        check(last, process.tail())
        equal((answer["score_kind"], answer["score"]), ("cp", int(last[1])))
        check(re.fullmatch(r"[a-h][1-8][a-h][1-8]( .*)?", last[3]), last[3])
        wait_until(lambda: not shard.working(), "the job ended with its front-end")
        refused = launch(example("analyse"), *where, "--depth", "3", "no position")
        equal(refused.wait(), 1, refused.tail())
        check("cannot search" in refused.err() and "no worker searches" in refused.err(), refused.tail())
        for depth in "0", "101", "256", "3x":
            wrong = launch(example("analyse"), *where, "--depth", depth)
            equal(wrong.wait(), 2, wrong.tail())
            check(f"--depth {depth}: not in 1 to 100" in wrong.err(), wrong.tail())
        equal((worker.end(), shard.end()), (0, 0))


TESTS = [test_what_is_exported_is_the_list_and_nothing_else, test_install_and_uninstall,
         test_the_lines_of_the_readme_work_for_a_private_prefix,
         test_cplusplus_takes_the_header, test_two_that_share_need_fewer_nodes,
         test_threads_that_share_by_one_handle_in_cplusplus, test_the_static_library_links, test_connect4_alone,
         test_four_processes_with_keys_find_the_same_value_while_one_is_killed,
         test_two_processes_meet_in_a_redis, test_connect4_goes_on_alone_when_the_server_dies,
         test_connect4_says_why_it_has_no_server,
         test_analyse_gets_a_strict_score_from_the_workers]

if __name__ == "__main__":
    sys.exit(main(TESTS, unstable=STARVED))
