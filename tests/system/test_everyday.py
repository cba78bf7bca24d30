#!/usr/bin/python3
"""What everybody meets every day: options from files, helpful words, SIGHUP, who is alive. TAP.

    BIN=build/dev/bin tests/system/test_everyday.py
"""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile

from cluster import ROOT, Cluster, Process, Shard, Worker, check, equal, main, path_of, run, start, top, wait_until

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
    with Environment(ABDADA_SERVERS=None):
        equal(analysed("--depth", 1, "--json", "--servers", servers)["shards_up"], 2)
        with config(f"servers = {servers}\n") as home, Environment(XDG_CONFIG_HOME=home):
            equal(analysed("--depth", 1, "--json")["shards_up"], 2)
    with Environment(ABDADA_SERVERS=servers):
        equal(analysed("--depth", 1, "--json")["shards_up"], 2)
    refused(2, "--servers 'a b:1': not HOST:PORT", "abdada", "analyse", "--servers", "a b:1")


def files_may_be_written_freely():
    """Comments, blanks, long lines; and the example of docs/operations.md as it is printed there."""
    many = ",".join(f"127.0.0.1:{port}" for port in range(1, 65))
    with open(os.path.join(ROOT, "docs/operations.md"), encoding="utf-8") as file:
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
        server = Process("ttserver", "--insecure")
        server.wait_line("^ready")
        equal(server.end(), 0)


def a_wrong_file_is_one_line():
    for text, pattern in (("[analyze]\ndepth = 2\n", r"config.ini:1: no program has the section \[analyze\]"),
                          ("[analyse]\ndepht = 2\n", "config.ini:2: .*no option 'depht'"),
                          ("\n[analyse]\ndepth = x\n", "config.ini:3: --depth 'x': not a whole number"),
                          ("[analyse]\njson = maybe\n", "json is yes or no"),
                          ("depth = 2\n", "'depth' belongs below a section"),
                          ("servers\n", "neither"),
                          ("\nservers = a\n", "config.ini:2: --servers 'a': not HOST:PORT"),
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
    refused(2, "unknown command 'nosuch'", "abdada", "help", "nosuch")
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
                       r"with keys (redis )?zstd", "\n".join(builds[0])), builds[0])


def help_keeps_its_columns():
    """A value that is too long for its column has a line of its own."""
    commands = re.findall(r"^  (\w+) ", run("abdada", "--help").out(), re.M)
    check("analyse" in commands, commands)
    for words in [("ttserver",), ("ttworker",)] + [("abdada", name) for name in commands]:
        for line in run(*words, "--help").lines["out"]:
            option = re.match(r"  (-.|  )[, ] --\S+( \S+)?", line)
            check(option is None or option.end() == len(line) or line[option.end():].startswith("  "), words, line)


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
    worker.wait_line("shard nosuch.invalid:7400: this host is not known here", "err")
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
        wait_until(lambda: has(log, "1 worker came (w); 1 now"), "the worker in the log")
        for process, name in ((shard, "log"), (worker, "worker")):
            path = os.path.join(directory, name)
            os.rename(path, path + ".1")
            process.send_signal(signal.SIGHUP)
            wait_until(lambda path=path: os.path.exists(path), "a new log")
        wait_until(lambda: has(log, "SIGHUP: there are no keys"), "its word")
        equal(worker.end(), 0)
        wait_until(lambda: has(log, "1 worker went (w); 0 now"), "its end")
        equal(shard.end(), 0)
        check("came" not in shard.err() and "up" not in worker.err(), shard.err(), worker.err())
        refused(1, "nosuch.invalid", "ttserver", "--log", log, "--listen", "nosuch.invalid:1")  # on the terminal
    done = run("ttserver", "--listen", "127.0.0.1:0", "--log", "/nosuch/log")
    equal(done.status, 1)
    check("--log /nosuch/log: No such file" in done.err(), done.err())


def a_terminal_that_closes_ends_commands_with_goodbye_and_no_service():
    shard = Shard()
    worker = Process("ttworker", "--servers", shard.address, "--name", "w")
    worker.wait_line("^ready")
    front = Process("abdada", "analyse", "--servers", shard.address, "--depth", 90, POSITION)
    front.wait_line("depth", "err")
    shard.wait_line("1 worker came", "err")
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


def a_worker_says_when_shards_come_and_go():
    shards = [Shard(), Shard()]
    worker = Process("ttworker", "--servers", ",".join(s.address for s in shards), "--threads", 3)
    worker.wait_line("3 threads, 2 of 2 shards up", "err")
    shards[1].kill()
    _, at = worker.wait_line(f"lost: {shards[1].address}; 1 of 2 shards up", "err")
    again = Shard(shards[1].port)
    worker.wait_line(f"back: {again.address}; 2 of 2 shards up", "err", at)
    equal(worker.end(), 0)
    equal(sum("shards up" in line for line in worker.lines["err"]), 3, worker.err())  # one thread speaks for all


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
        a_wrong_file_is_one_line,
        a_usual_file_that_another_user_has_is_none,
        words_help,
        help_keeps_its_columns,
        a_search_too_small_is_said,
        positions_come_from_standard_input,
        a_line_that_is_no_position_is_left_out,
        an_expected_move_that_is_none_is_left_out,
        an_unknown_host_is_said,
        sighup_opens_the_log_anew,
        a_terminal_that_closes_ends_commands_with_goodbye_and_no_service,
        a_worker_says_when_shards_come_and_go,
        who_died_is_counted_no_more,
    ]))
