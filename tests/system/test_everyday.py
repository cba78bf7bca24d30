#!/usr/bin/python3
"""What everybody meets every day: options from files, helpful words, SIGHUP, who is alive, process 1 of a container. TAP.

    BIN=build/dev/bin tests/system/test_everyday.py
"""
import contextlib
import glob
import json
import os
import re
import signal
import subprocess
import sys
import tempfile

from cluster import (SLOW_HEARTBEAT_MS, STARVED, BIN, BUILD, PATIENCE, PATIENT, ROOT, Cluster, Process, Shard, Worker, check,
                     equal, main, needs, path_of, run, scratch, start, top, wait_until)

POSITION = "r1bq1rk1/pp2bppp/2n1pn2/2pp4/3P1B2/2PBPN2/PP1N1PPP/R2QK2R w KQ - 0 8"


def refused(status, pattern, *arguments):
    done = run(*arguments)
    equal(done.status, status, arguments)
    equal(len(done.lines["err"]), 1, done.tail())
    check(re.search(pattern, done.err()), pattern, done.err())


def config(text):
    """A directory for XDG_CONFIG_HOME with this text as the file of options."""
    directory = tempfile.TemporaryDirectory()
    path = os.path.join(directory.name, "abdada")
    os.mkdir(path)
    with open(os.path.join(path, "config.ini"), "w", encoding="utf-8", newline="") as file:
        file.write(text)
    return directory


class Environment:
    """Variables for the programs that are started meanwhile."""

    def __init__(self, **values):
        self.values = values

    def __enter__(self):
        self.before = {name: os.environ.get(name) for name in self.values}
        self.set(self.values)

    def __exit__(self, *_):
        self.set(self.before)

    @staticmethod
    def set(values):
        for name, value in values.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def analysed(*arguments):
    done = run("abdada", "analyse", *arguments)
    equal(done.status, 0, done.tail())
    return json.loads(done.lines["out"][-1])


def options_come_from_a_file():
    shard = Shard()
    with config(f"# mine\nservers = {shard.address}\n[analyse]\ndepth = 2\njson = yes\n[uci]\nthreads=7\n") as home, \
            Environment(XDG_CONFIG_HOME=home, ABDADA_SERVERS=None):
        row = analysed()
        equal((row["depth"], row["shards"], row["shards_up"], row["threads"]), (2, 1, 1, 1))
        equal(analysed("--depth", 3)["depth"], 3)  # the command line says otherwise
        with Environment(ABDADA_SERVERS=""):  # so does the environment
            equal(analysed()["shards"], 0)
        with Environment(ABDADA_SERVERS="127.0.0.1:1,127.0.0.1:2"):
            equal(analysed()["shards"], 2)
        with Environment(ABDADA_TABLE=""):  # none, which is no word against servers
            equal(analysed()["shards"], 1)
        check("json" not in run("abdada", "analyse", "--json=no").out())  # a flag, too
        with config(f"servers = 127.0.0.1:1\n[analyse]\nservers = {shard.address}\ndepth=1\njson=yes\n") as other:
            named = os.path.join(other, "abdada/config.ini")
            equal(analysed("--config", named)["shards_up"], 1)  # the section says otherwise
            equal(analysed("--config=" + named, "--depth", "2")["depth"], 2)


def blanks_around_addresses_are_passed_over():
    servers = f" {Shard().address}, {Shard().address} "

    def are_both_up(*options):
        """A front-end waits for one shard: on a busy machine it may be done before it meets the other."""
        wait_until(lambda: analysed("--depth", 1, "--json", *options)["shards_up"] == 2, "both shards to be met")
    with Environment(ABDADA_SERVERS=None):
        are_both_up("--servers", servers)
        with config(f"servers = {servers}\n") as home, Environment(XDG_CONFIG_HOME=home):
            are_both_up()
    with Environment(ABDADA_SERVERS=servers):
        are_both_up()
    refused(2, "--servers 'a b:1': not HOST:PORT", "abdada", "analyse", "--servers", "a b:1")


def files_may_be_written_freely():
    """Comments, blanks, long lines; and the example of docs/reference/common.md as it is printed there."""
    many = ",".join(f"127.0.0.1:{port}" for port in range(1, 65))
    with open(os.path.join(ROOT, "docs/reference/common.md"), encoding="utf-8") as file:
        example = re.search(r"```\n(servers = .*?)```", file.read(), re.S)[1]
    for text, shards in ((f"servers={many}\n[analyse]\n  json = yes\n\tdepth=1\n", 64),
                         ("; none\n\n#none\n[ analyse ]\njson = yes # here\ndepth = 1\nservers = 127.0.0.1:1\n", 1),
                         ("\ufeff; of an editor\r\n[analyse]\r\ndepth = 1\r\njson = yes\r\nservers = 127.0.0.1:1", 1),
                         ("\ufeff[analyse]\rdepth = 1\rjson = yes\rservers = 127.0.0.1:1", 1),
                         (example.replace("/home/me/keys", "").replace("ws", "127.0.0.") + "depth = 1\n", 2)):
        with config(text) as home, Environment(XDG_CONFIG_HOME=home, ABDADA_SERVERS=None, ABDADA_KEYS=""):
            equal(analysed()["shards"], shards, text)
    with config("[sim]\ndepth = x\n") as home, Environment(XDG_CONFIG_HOME=home):
        equal(run("abdada", "sim", "--help").status, 0)  # what is wrong with it keeps nobody from reading
        equal(run("abdada", "sim", "--version").status, 0)


def what_the_command_line_says_excludes_what_the_file_says():
    with config("servers = 127.0.0.1:1\nkeys = /nosuch\n[ttserver]\nlisten = 127.0.0.1:0\n") as home, \
            Environment(XDG_CONFIG_HOME=home, ABDADA_SERVERS=None, ABDADA_KEYS=None):
        refused(1, "/nosuch", "abdada", "analyse", "--depth", 1)
        done = run("abdada", "top", "--once", "--table", "redis://127.0.0.1:1")
        check("exclude" not in done.err() and "nosuch" not in done.err(), done.err())
        with Environment(ABDADA_TABLE="redis://127.0.0.1:1"):
            done = run("abdada", "top", "--once")
            check("--keys" not in done.err() and "nosuch" not in done.err(), done.err())
            refused(1, "/nosuch", "abdada", "top", "--once", "--servers", "127.0.0.1:1")
            refused(1, "/nosuch", "ttserver")
        refused(1, "/nosuch", "abdada", "top", "--web", "127.0.0.1:0", "--insecure")
        server = Process("ttserver", "--insecure")
        server.wait_line("^ready")
        equal(server.end(), 0)


def lines_of_tt_may_follow_a_file():
    shard = Shard()
    with config(f"servers = {shard.address}\n") as home, Environment(XDG_CONFIG_HOME=home, ABDADA_SERVERS=None, ABDADA_KEYS=None):
        tt = Process("abdada", "tt", "--json", *PATIENT)
        tt.send("ask --key 1 --depth 5")
        tt.close_input()
        equal(tt.wait(), 0, tt.err())
        equal(json.loads(tt.lines["out"][0])["verdict"], "open")


def a_wrong_file_is_one_line():
    for text, pattern in (("[analyze]\ndepth = 2\n", r"config.ini:1: no program has the section \[analyze\]"),
                          ("[analyse]\ndepht = 2\n", "config.ini:2: .*no option 'depht'"),
                          ("\n[analyse]\ndepth = x\n", "config.ini:3: --depth 'x': not a whole number"),
                          ("[analyse]\njson = maybe\n", "--json 'maybe': not yes or no"),
                          ("depth = 2\n", "'depth' belongs below a section"),
                          ("servers\n", "neither"),
                          ("\nservers = a\n", "config.ini:2: --servers 'a': missing port"),
                          ("servers = a:1,a:1\n", "config.ini:1: .*the same shard is named twice")):
        with config(text) as home, Environment(XDG_CONFIG_HOME=home, ABDADA_SERVERS=None):
            refused(2, pattern, "abdada", "analyse", "--depth", 1)
    refused(2, "--config /nosuch: No such file", "ttserver", "--config", "/nosuch")
    refused(2, "--config needs a value", "ttserver", "--config")
    refused(2, "/tmp: Is a directory", "ttserver", "--config", "/tmp")
    with Environment(ABDADA_SERVERS="a:1,a:1"):
        refused(2, "ABDADA_SERVERS 'a:1,a:1': the same shard is named twice", "abdada", "top")


def a_usual_file_that_another_user_has_is_none():
    if os.geteuid() != 0:
        return "needs root, who can start programs as others"

    def ask(user, *options, **variables):
        words = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", path_of("abdada"), "perft", "--depth=1", *options]
        environment = {name: value for name, value in os.environ.items() if name != "XDG_CONFIG_HOME"}
        done = subprocess.run(words, env={**environment, **variables}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        return done.returncode, done.stderr
    with config("[perft]\ndepth = x\n") as home:
        path = os.path.join(home, "abdada", "config.ini")
        equal(ask(0, XDG_CONFIG_HOME=home)[0], 2)
        equal(ask(65534, XDG_CONFIG_HOME=home), (0, ""))  # a folder that others may not enter
        equal(ask(65534, HOME=home + "/abdada"), (0, ""))
        os.chmod(home, 0o755)
        os.chmod(path, 0o600)
        equal(ask(65534, XDG_CONFIG_HOME=home), (0, ""))  # a file that they may not read
        status, said = ask(65534, "--config", path)
        equal((status, said), (2, f"abdada perft: --config {path}: Permission denied\n"))
        os.chown(path, 65534, 65534)
        os.chmod(path, 0)
        status, said = ask(65534, XDG_CONFIG_HOME=home)
        equal((status, said), (2, f"abdada perft: --config {path}: Permission denied\n"))  # its own


def words_help():
    refused(2, r"--memory '256': .*did you mean 256M\?", "ttserver", "--memory", 256)
    for bytes_ in ("0", "9" * 20):
        refused(2, f"--memory '{bytes_}': .*(?<!M.)$", "ttserver", "--memory", bytes_)
    refused(2, "the same shard is named twice", "abdada", "top", "--servers", "a:1,b:1,A:1")
    refused(2, r"unknown command 'nosuch' \(see --help\)", "abdada", "help", "nosuch")
    refused(2, "unknown command 'analyze'; did you mean analyse", "abdada", "analyze")
    refused(2, "unknown option '--deph=8'; did you mean --depth", "abdada", "analyse", "--deph=8")
    refused(2, "unknown option .--tiem.; did you mean --time", "abdada", "analyse", "--tiem", "8")
    refused(2, r"unknown option '--nonsense' \(see --help\)", "abdada", "analyse", "--nonsense")
    refused(2, "'127.0.0.1': missing port: write 127.0.0.1:7400", "abdada", "top", "--servers", "127.0.0.1")
    refused(2, "--threads '-1': not in 1 to 256", "ttworker", "--threads", "-1")
    equal(run("abdada", "help", "analyse").out(), run("abdada", "analyse", "--help").out())
    equal(run("abdada", "help").out(), run("abdada", "--help").out())
    versions = {run(name, "--version").out().split()[1] for name in ("ttserver", "ttworker", "abdada")}
    with open(os.path.join(ROOT, "worker/lib/abdada.h"), encoding="ascii") as header:
        versions.add(re.search('ABDADA_VERSION "(.*)"', header.read())[1])
    for name, pattern in (("worker/lib/python/pyproject.toml", '^version = "(.*)"'),
                          ("worker/lib/python/src/abdada/__init__.py", '__version__ = "(.*)"'),
                          ("CHANGELOG.md", r"^## (\d\S*) "), ("CITATION.cff", '^version: "(.*)"')):
        with open(os.path.join(ROOT, name), encoding="ascii") as file:
            versions.add(re.search(pattern, file.read(), re.M)[1])
    equal(len(versions), 1, versions)
    builds = [run(*words, "--version").lines["out"][1:] for words in (("ttserver",), ("ttworker",), ("abdada",), ("abdada", "sim"))]
    check(all(build == builds[0] for build in builds), builds)
    check(re.fullmatch(r"commit ([0-9a-f]{12,}(-modified)?|unknown)\nbuilt (release|dev|tsan) for \S+ by .+\n"
                       r"with keys( redis)?", "\n".join(builds[0])), builds[0])


def help_keeps_its_columns():
    """A value that is too long for its column has a line of its own, and long texts are broken."""
    commands = re.findall(r"^  (\w+) ", run("abdada", "--help").out(), re.M)
    check("analyse" in commands, commands)
    for words in [("ttserver",), ("ttworker",)] + [("abdada", name) for name in commands]:
        for line in run(*words, "--help").lines["out"]:
            check(len(line) <= 112 or not line.startswith("  ") or line.startswith("  $ "), words, line)
            option = re.match(r"  (-.|  )[, ] --\S+( \S+)?", line)
            check(option is None or option.end() == len(line) or line[option.end():].startswith("  "), words, line)


def every_help_ends_with_examples():
    """Two whole commands of the program, with its own options, each read without a word by the program."""
    commands = re.findall(r"^  (\w+) ", run("abdada", "--help").out(), re.M)
    for words in [("abdada",), ("ttserver",), ("ttworker",), ("abdada", "cluster", "up")] + [("abdada", name) for name in commands]:
        said = run(*words, "--help").out().split("\nExamples:\n")
        equal(len(said), 2, words)
        examples = said[1].splitlines()
        equal(len(examples), 2, words)
        for line in examples:
            check(line.startswith("  $ " + " ".join(words)), words, line)
            equal(run(*line.split()[1:], "--help").status, 0, line)  # what is wrong with an option comes before help


def a_position_needs_no_quotes():
    fen = "4k3/8/8/8/8/8/4P3/4K3 w - - 0 1"
    for words in (("analyse", "--depth", 1, "--private"), ("perft", "--depth", 2), ("sim", "--depth", 2, "--workers", 1)):
        whole, cut = (json.loads(run("abdada", *words, "--json", *position).lines["out"][0]) for position in ([fen], fen.split()))
        equal(cut["nodes"], whole["nodes"], words)
        equal(cut.get("position"), whole.get("position"), words)
    refused(2, "a position has 3 to 6 fields, not more than 6|unexpected argument", "abdada", "perft", "--depth", 1, *fen.split(), "9")


def a_search_too_small_is_said():
    small = run("abdada", "sim", "--game", "tree:b=4,d=4", "--depth", 3, "--workers", "1,64")
    check(re.search("too small a search for 64 workers", small.err()), small.err())
    for mode in (("--depth", 3, "--no-reference"), ("--time", 1)):
        equal(run("abdada", "sim", "--game", "tree:b=4,d=4", "--workers", "64", *mode).err(), "", mode)
    enough = run("abdada", "sim", "--game", "tree:b=4,d=8", "--depth", 8, "--workers", "1,2")
    equal(enough.err(), "")


def positions_come_from_standard_input():
    process = Process("abdada", "analyse", "--epd", "-", "--depth", 2, "--json")
    process.send("8/8/8/8/8/4k3/8/4K2R w - - id \"rook\";\n" + POSITION)
    process.close_input()
    equal(process.wait(), 0, process.tail())
    equal([json.loads(line)["id"] for line in process.lines["out"]], ["rook", "2"])


def piped(text, *arguments):
    process = Process("abdada", *arguments, "--private", "--json")
    process.send(text)
    process.close_input()
    status = process.wait()
    return status, [json.loads(line) for line in process.lines["out"]], process.err()


def a_line_that_is_no_position_is_left_out():
    status, found, said = piped("8/8 w - -\n; bm e4;\n8/8/8/8/8/4k3/8/4K2R w - - id \"rook\";\n8/8/8/8/8/8/8/8 w - -\n",
                                "analyse", "--epd", "-", "--depth", 2)
    equal((status, [each["id"] for each in found]), (1, ["rook"]), said)
    for words in ("standard input:1: ", "standard input:2: ", "standard input:4: white has 0 kings",
                  "3 lines of standard input left out"):
        check(words in said, words, said)
    status, found, said = piped("8/8 w - -\n" * 23, "analyse", "--epd", "-", "--depth", 2)
    equal((status, found, len(said.splitlines())), (1, [], 21), said)
    check("standard input: and 3 more" in said, said)
    board = "OOOXXXXOOOOOOOOOOOOOOXOXOOOOXOXXOOOOXX-XOOOOOXX-OOXXXOXXOOOOOOOO"
    status, found, said = piped(f"nonsense\n{board} X; PA:-48;\n{board} X; D9:+2;\n", "solve", "--obf", "-")
    equal((status, [(each["score"], each["solved"]) for each in found]), (1, [(-48, True)]), said)
    check("standard input:1: " in said and "standard input:3: " in said, said)
    status, found, said = piped("8/8 w - -\n", "analyse", "--epd", "-", "--depth", 2)
    equal((status, found), (1, []), said)
    check("standard input:1: " in said, said)


def an_expected_move_that_is_none_is_left_out():
    rook = "6k1/5ppp/8/8/8/8/8/R3K3 w Q -"
    for moves, solved in (("a1a8", True), ("a1-a8", True), ("Ra1-a8#", True), ("A1A8", True), ("Kd2, Ra8", True),
                          ("Kd2", False), ("#1", None), ("#1 Ra8", True), ("Qa8", None)):
        status, found, said = piped(f"{rook} bm {moves};\n", "analyse", "--epd", "-", "--depth", 3)
        equal((status, found[0].get("solved")), (0, solved), moves)
        equal("is not a legal move here" in said, "#1" in moves or solved is None, moves, said)


def an_unknown_host_is_said():
    shard = Shard()
    worker = Process("ttworker", "--servers", f"nosuch.invalid:7400,{shard.address}")
    worker.wait_line("shard nosuch.invalid:7400 is down: unknown host", "err")
    worker.wait_line("^ready")
    equal(worker.end(), 0, worker.tail())


def sighup_opens_the_log_anew():
    with tempfile.TemporaryDirectory() as directory:
        log = os.path.join(directory, "log")

        def has(path, text):
            with open(path, encoding="ascii") as lines:
                return text in lines.read()

        shard = Shard(0, "--log", log)
        worker = Process("ttworker", "--servers", shard.address, "--log", os.path.join(directory, "worker"), "--name", "w")
        worker.wait_line("^ready")
        wait_until(lambda: has(log, "1 worker joined (w); 1 now"), "the worker in the log")
        for process, name in ((shard, "log"), (worker, "worker")):
            path = os.path.join(directory, name)
            os.rename(path, path + ".1")
            process.send_signal(signal.SIGHUP)
            wait_until(lambda path=path: os.path.exists(path), "a new log")
        wait_until(lambda: has(log, "SIGHUP: there are no keys"), "its word")
        equal(worker.end(), 0)
        wait_until(lambda: has(log, "1 worker left (w); 0 now"), "its end")
        equal(shard.end(), 0)
        check("came" not in shard.err() and "up" not in worker.err(), shard.err(), worker.err())
        refused(1, "nosuch.invalid", "ttserver", "--log", log, "--listen", "nosuch.invalid:1")  # on the terminal
    done = run("ttserver", "--listen", "127.0.0.1:0", "--log", "/nosuch/log")
    equal(done.status, 1)
    check("--log /nosuch/log: No such file" in done.err(), done.err())


def a_terminal_that_closes_ends_commands_with_goodbye_and_no_service():
    shard = Shard(heartbeat_ms=SLOW_HEARTBEAT_MS)  # sessions end by goodbyes alone
    worker = Process("ttworker", "--servers", shard.address, "--name", "w")
    worker.wait_line("^ready")
    front = Process("abdada", "analyse", "--servers", shard.address, "--depth", 90, POSITION)
    front.wait_line("depth", "err")
    shard.wait_line("1 worker joined", "err")
    worker.send_signal(signal.SIGHUP)
    for _ in range(2):  # from the system, and from the shell
        front.send_signal(signal.SIGHUP)
    equal(front.wait(), 0)
    wait_until(lambda: shard.stats()["jobs"] == 0, "the job to be stopped")
    equal(shard.stats()["sessions_expired"], 0)
    check(shard.working() == {} and worker.running())
    before = shard.stats()["sessions"]
    with open("/dev/null", "rb") as nothing:
        ignores = subprocess.Popen(["sh", "-c", "trap '' HUP; exec \"$@\"", "sh", path_of("abdada"), "top", "--web", "0",
                                    "--servers", shard.address], stdin=nothing, stderr=subprocess.PIPE)
    try:
        ignores.stderr.readline()  # that the page is there
        ignores.send_signal(signal.SIGHUP)  # as of nohup
        ignores.send_signal(signal.SIGTERM)
        equal(ignores.wait(60), 0)
    finally:
        ignores.kill()
        ignores.stderr.close()
    equal((worker.end(), shard.stats()["sessions"]), (0, before - 1))
    equal(shard.end(), 0)


# ---- process 1 of a container: for it signals have no default actions, and it adopts orphans ----

UNSHARE = ("/usr/bin/unshare", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"]), "--kill-child", "--fork", "--pid",
           "--mount-proc")


def why_no_process_1():
    done = subprocess.run([*UNSHARE, "--net", "true"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    return f"no namespaces of processes here: {done.stderr.strip()}" if done.returncode else None


def processes_below(number):
    """{number: name} of its children."""
    found = {}
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                before, _, after = file.read().rpartition(")")
        except OSError:  # it is gone
            continue
        if int(after.split()[1]) == number:
            found[int(before.split()[0])] = before.split("(", 1)[1]
    return found


class Process1(Process):
    def __init__(self, program, *arguments):
        super().__init__(UNSHARE[0], *UNSHARE[1:], path_of(program), *arguments)
        self.number = min(wait_until(lambda: processes_below(self.popen.pid), "process 1"))

    def end_by(self, number):
        """Sent until it ends: before its handlers are there a signal has no effect."""
        def ended():
            if self.running():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self.number, number)
            return not self.running()
        wait_until(ended, f"process 1 to end by signal {number}")
        return self.wait()


@needs(why_no_process_1)
def signals_end_process_1():
    shard = Shard()
    folder = scratch("process-1")
    never = os.path.join(folder, "never")  # opening it takes for ever
    os.mkfifo(never)
    last = ("--servers", shard.address)
    graceful = [("ttserver", "--listen", "127.0.0.1:0", "--memory", "8M"), ("ttworker", "--private", "--hash", 8, *last),
                *(("abdada", *words) for words in (
                    ("analyse", "--depth", 90, "--hash", 8), ("uci",), ("nboard",), ("gtp",), ("tt", *last),
                    ("top", "--web", 0, *last), ("ttbench", "--seconds", 3600, *last)))]
    at_once = [("abdada", *words) for words in (
        ("bench",), ("sim", "--depth", 14), ("check", never), ("cluster", "-f", never, "status"), ("perft", "--depth", 9))]
    if BUILD == "tsan":  # it holds signals back until the next call, and perft makes none
        at_once.pop()
    begun = [(Process1(*words), words, number) for words, number in
             [(words, signal.SIGTERM) for words in graceful + at_once] +
             [(at_once[0], signal.SIGINT), (at_once[0], signal.SIGHUP), (at_once[-1], signal.SIGINT), (at_once[1], signal.SIGQUIT)]]
    for process, words, number in begun:
        status = process.end_by(number)
        wanted = {0, 128 + number} if words in graceful else {128 + number}
        check(status in wanted, words, number, status, process.tail())
    equal(shard.end(), 0)


@needs(why_no_process_1)
def process_1_ends_when_its_reader_has_gone():
    for words in ("analyse", "--depth", "1"), ("perft", "--depth", "1"), ("sim", "--depth", "2"), ("--help",):
        reader, writer = os.pipe()
        os.close(reader)
        done = subprocess.run([*UNSHARE, path_of("abdada"), *words], stdin=subprocess.DEVNULL, stdout=writer,
                              stderr=subprocess.DEVNULL, timeout=PATIENCE)
        os.close(writer)
        equal(done.returncode, 128 + signal.SIGPIPE, words)


@needs(why_no_process_1)
def process_1_reaps_orphans():
    shard = Shard()
    for words in (("ttserver", "--listen", "127.0.0.1:0", "--memory", "8M"),
                  ("ttworker", "--private", "--hash", 8, "--servers", shard.address)):
        process = Process1(*words)
        process.wait_line("^ready")
        # The middle one ends at once, and leaves one that it has reaped no more.
        orphan = run("/usr/bin/nsenter", "--target", process.number, "--pid", "--mount", *([] if os.geteuid() == 0 else ["--user"]),
                     "sh", "-c", "sleep 1000 >/dev/null 2>&1 & readlink /proc/self >/dev/null")
        equal(orphan.status, 0, orphan.tail())
        adopted = wait_until(lambda: processes_below(process.number), "an orphan")
        equal(list(adopted.values()), ["sleep"])
        os.kill(min(adopted), signal.SIGKILL)
        wait_until(lambda: not processes_below(process.number), "the orphan to be reaped")
        process.end_by(signal.SIGTERM)
    equal(shard.end(), 0)


def the_project_of_compose_has_a_name_of_its_own():
    """Not that of its folder, which is another project's, too. docker-compose 1 reads the name from this file alone."""
    with open(os.path.join(ROOT, "deploy/.env"), encoding="utf-8") as file:
        check("COMPOSE_PROJECT_NAME=abdada\n" in file, "no name of a project")
    with open(os.path.join(ROOT, "docs/guides/containers.md"), encoding="utf-8") as file:
        check(not re.search(r"docker compose .*(-p|--project-name|--env-file|--project-directory)\b", file.read()), "another name")


@needs(why_no_process_1)
def the_health_check_finds_the_shard_behind_an_init():
    script = f"""PATH={BIN}:$PATH:/usr/sbin:/sbin; ip link set lo up
        health() {{ {ROOT}/deploy/health; }}
        health || exit 9  # a worker's container: nobody to ask
        ttserver --listen 127.0.0.1:7400 --memory 8M & shard=$!
        until [ "$(cat /proc/$shard/comm)" = ttserver ] && health; do :; done
        kill -STOP $shard
        ! health || exit 8
        mount --bind "$another" /proc/$shard/cgroup
        health || exit 7  # it is another container's
        umount /proc/$shard/cgroup
        ! health || exit 6
        kill -CONT $shard
        until health; do :; done
        kill $shard; wait $shard"""
    with tempfile.NamedTemporaryFile("w") as another:
        another.write("0::/../another\n")
        another.flush()
        done = run(UNSHARE[0], *UNSHARE[1:], "--net", "sh", "-c", f"another={another.name}; {script}")
    equal(done.status, 0, done.tail())


def a_worker_says_when_shards_come_and_go():
    shards = [Shard(), Shard()]
    worker = Process("ttworker", "--servers", ",".join(s.address for s in shards), "--threads", 3)
    worker.wait_line("3 threads, [12] of 2 shards up", "err")  # of the second it may hear a moment later
    worker.wait_line("2 of 2 shards up", "err")
    shards[1].kill()
    _, at = worker.wait_line(f"lost {shards[1].address}; 1 of 2 shards up", "err")
    again = Shard(shards[1].port)
    worker.wait_line(f"connected to {again.address}; 2 of 2 shards up", "err", at)
    equal(worker.end(), 0)
    said = sum("shards up" in line for line in worker.lines["err"])
    check(3 <= said < 3 * 3, worker.err())  # one thread speaks for all three


def who_died_is_counted_no_more():
    """In progress, JSON, top and UCI; also when no shard is there to say so. And the score is there meanwhile."""
    with Cluster(shards=2, workers=2) as c:
        servers = ",".join(s.address for s in c.shards)
        uci = Process("abdada", "uci", "--servers", servers)
        uci.send(f"position fen {POSITION}\ngo infinite")
        front = start("--servers", servers, "--time", 600000, POSITION)
        both, seen = ((front, "err"), (uci, "out")), {}

        def says(pattern):
            for process, stream in both:
                seen[stream] = process.wait_line(pattern, stream, seen.get(stream, 0))[1]
        says("workers [12] +shards 2/2")
        front.wait_line(r"score [+-]\d+\.\d\d  pv [a-h][1-8][a-h][1-8]", "err")

        def shown():
            _, rows = top(servers)
            return [row for row in rows["job"] if row.get("score_kind") == "cp" and row["line"] and row["nodes"] > 0]
        wait_until(lambda: len(shown()) == 2, "score and line of both jobs in top")
        for worker in c.workers:
            worker.kill()
        wait_until(lambda: not top(servers)[1]["worker"], "top to say so")
        says("workers 0 +shards 2/2")
        late = Worker(servers, threads=2, name="late")  # one for each of the two jobs
        says("workers 1 +shards 2/2")
        for shard in c.shards:
            shard.kill()
        says("workers 0 +shards 0/2")
        late.kill()
        uci.send("stop\nquit")
        equal(uci.wait(), 0)
        equal(front.end(signal.SIGINT), 0, front.tail())
        row = json.loads(front.lines["out"][-1])
        equal((row["workers"], row["shards_up"]), (0, 0))


if __name__ == "__main__":
    check(os.access(path_of("abdada"), os.X_OK), "no programs: set BIN")
    sys.exit(main([
        options_come_from_a_file,
        blanks_around_addresses_are_passed_over,
        files_may_be_written_freely,
        what_the_command_line_says_excludes_what_the_file_says,
        lines_of_tt_may_follow_a_file,
        a_wrong_file_is_one_line,
        a_usual_file_that_another_user_has_is_none,
        words_help,
        help_keeps_its_columns, every_help_ends_with_examples, a_position_needs_no_quotes,
        a_search_too_small_is_said,
        positions_come_from_standard_input,
        a_line_that_is_no_position_is_left_out,
        an_expected_move_that_is_none_is_left_out,
        an_unknown_host_is_said,
        sighup_opens_the_log_anew,
        a_terminal_that_closes_ends_commands_with_goodbye_and_no_service,
        signals_end_process_1,
        process_1_ends_when_its_reader_has_gone,
        process_1_reaps_orphans,
        the_project_of_compose_has_a_name_of_its_own, the_health_check_finds_the_shard_behind_an_init,
        a_worker_says_when_shards_come_and_go,
        who_died_is_counted_no_more,
    ], unstable=STARVED))
