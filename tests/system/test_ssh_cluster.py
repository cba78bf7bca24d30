#!/usr/bin/python3
"""abdada cluster: clusters on hosts of their own, each with a real sshd, to which users without rights log in. TAP.

    BIN=build/dev/bin tests/system/test_ssh_cluster.py

Where the machine allows no such hosts (ssh_hosts.py) what needs them is skipped, with the reason.
"""
import argparse
import contextlib
import functools
import importlib.util
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

import ssh_hosts
from cluster import (STRICT, long_search, STARVED, ROOT, SHORT, SLOWNESS, Process, answers, ask, check, equal, free_port, main, needs, path_of, run, start,  # noqa: E402
                     wait_until)

reason = ssh_hosts.why_not()  # before anything else: it moves this process into a namespace of its own
SCRIPTS = os.path.join(ROOT, "deploy", "cluster")
SHARD = "ttserver = { memory = \"32M\" }\n"
WORKER = "ttworker = { hash = 4 }\n"
LONG_S = 0.3 if SHORT else 1.0
PATIENCE = 120 * SLOWNESS


needs_hosts = needs(lambda: reason)


@contextlib.contextmanager
def folder():
    path = tempfile.mkdtemp(prefix="abdada-ssh-")
    os.chmod(path, 0o755)  # of logins
    try:
        yield path
    finally:
        shutil.rmtree(path)


@contextlib.contextmanager
def hosts(number, users=("anna",), **options):
    """Hosts, with an account of each user, that this machine knows."""
    with folder() as path:
        site = ssh_hosts.Site(path, users)
        try:
            made = [ssh_hosts.SshHost(site, **options) for _ in range(number)]
            site.know(made)
            yield made
        finally:
            site.close()


class File:
    """A cluster's file, and `abdada cluster` with it."""

    def __init__(self, site, *programs, name="main", user="anna", more=""):
        """programs: (host, the lines of its programs) each."""
        self.folder = site.path(f"{user}'s {name}")  # with what a shell might stumble over
        self.path, self.keys = os.path.join(self.folder, "cluster.toml"), os.path.join(self.folder, "keys")
        os.makedirs(self.folder, exist_ok=True)
        with open(self.path, "w", encoding="utf-8") as file:
            file.write(f'name = "{name}"\n{more}\n[ssh]\nconfig = "../ssh_config"\nconnect_timeout = 5\n')
            for host, lines in programs:
                file.write(f'[[host]]\nname = "h{host.number}"\nssh = "{user}@{host.address}"\n{lines}\n')

    def start(self, command, *arguments):
        return Process("abdada", "cluster", command, "-f", self.path, *arguments)

    def run(self, command, *arguments, status=0):
        done = run("abdada", "cluster", command, "-f", self.path, *arguments, timeout=PATIENCE)
        check(status in (done.status, None), command, done.status, done.out(), done.err())
        return done

    def rows(self, status=0):
        """{(host, program): its row}; with status None whatever is up."""
        rows = [json.loads(line) for line in self.run("status", "--json", status=status).lines["out"]]
        return {(row["host"], row["what"]): row for row in rows}

    def pids(self):
        """{(host, program): process}, once all are up: a busy machine may keep a shard from answering in time."""
        def pids():
            rows = self.rows(status=None)
            return all(row["state"] == "up" for row in rows.values()) and {
                which: row["pid"] for which, row in rows.items()}
        return wait_until(pids, "all to be up")

    def up_after(self, which, restarts):
        """The program's row once it is up after so many restarts."""
        def row():
            found = self.rows(status=None)[which]
            return found if (found["state"], found["restarts"]) == ("up", restarts) else None
        return wait_until(row, f"{which} to be up after {restarts} restarts")

    def servers(self, up):
        """The options of the next command, as that `up` has printed them."""
        line = up.lines["out"][-1]
        found = re.fullmatch(r"abdada analyse --servers (\S+) --keys '(.*)' startpos", line)
        check(found, line)
        return ["--servers", found[1], "--keys", self.keys]


def only(lines, begin):
    """The one line that begins so."""
    found = [line for line in lines if line.startswith(begin)]
    equal(len(found), 1, begin, lines)
    return found[0]


def ask_all(workers, shards, *search):
    """Asks until all have taken part: on a busy machine one may be late. The score is right each time."""
    def asked():
        found, = ask(*search, "--fresh", *STRICT, "--depth", long_search(LONG_S)[1], long_search(LONG_S)[0])
        equal(found["score"], long_search(LONG_S)[2])
        return (found["workers"], found["shards_up"]) == (workers, shards)
    wait_until(asked, f"a search of {workers} workers over {shards} shards")


# ---- what needs no hosts ----

def reads_files(test):
    """The test has the launcher's cluster_file.py as its argument."""
    @functools.wraps(test)
    def run_it():
        sys.path.append(SCRIPTS)
        try:
            return test(importlib.import_module("cluster_file"))
        except SystemExit as error:  # this Python is too old for it
            return str(error)
    return run_it


@reads_files
def a_wrong_file_is_one_line_that_names_the_key(reader):
    good = "name = \"n\"\n[[host]]\nssh = \"h\"\naddress = \"a\"\nttserver = {}\n"
    other = "[[host]]\nssh = \"i\"\naddress = \"b\"\nttserver = {}\n"
    for content, words in (
            ("name = \n", "Invalid value (at line 1, column 8)"),
            ("", "name is missing"),
            ("name = \"n\"\n", "host is missing"),
            (good.replace('"n"', '"a b"'), "name = 'a b': must be letters"),
            (good.replace('"n"', '"../n"'), "name = '../n': must be letters"),
            (good.replace('"n"', "1"), "name = 1: must be letters"),
            ("nmae = 1\n" + good, "unknown key 'nmae' (known: host, insecure, keys, name, programs, ssh)"),
            ("programs = \"there\"\n" + good, "programs = 'there': must be \"copied\" or \"installed\""),
            ("insecure = 1\n" + good, "insecure = 1: must be true or false"),
            ("insecure = true\nkeys = \"k\"\n" + good, "keys and insecure exclude each other"),
            (good.replace("ssh = \"h\"", ""), "host 1: ssh is missing"),
            (good.replace('"h"', '"-oProxyCommand=x"'), "host 1: ssh = '-oProxyCommand=x': must be"),
            (good.replace('"h"', '"h/.."'), "host 1: name = 'h/..': must be"),
            (good.replace('"h"', r'"a\u0000b"'), r"host 1: ssh = 'a\x00b': must be"),
            (good.replace('"h"', r'"a\u007f"'), r"host 1: ssh = 'a\x7f': must be"),
            (good.replace('"a"', '"a:1,b"'), "host 1: address = 'a:1,b': must be"),
            (good.replace('"a"', r'"a\u0000b"'), r"host 1: address = 'a\x00b': must be"),
            (good.replace("{}", r'{ options = ["--log\u001b"] }'), r"options = ['--log\x1b']: must be"),
            (good.replace("{}", '{ listen = "[::]" }'), "host h: ttserver 1: listen = '[::]': must be a host name or an IP address"),
            (good.replace("{}", "{ port = 70000 }"), "host h: ttserver 1: port = 70000: must be a whole number"),
            (good.replace("{}", "{ port = true }"), "port = True: must be a whole number"),
            (good.replace("{}", "{ port = 65535, shards = 2 }"), "shards = 2: port 65536 of the last one is more"),
            (good.replace("{}", "{ prot = 7400 }"), "host h: ttserver 1: unknown key 'prot' (known: listen"),
            (good.replace("{}", "{ memory = \"256\" }"), "memory = '256': must be a size with its unit"),
            (good.replace("{}", "{ memory = 256 }"), "memory = 256: must be a size with its unit"),
            (good.replace("{}", "{ options = \"--jobs 8\" }"), "options = '--jobs 8': must be a list of texts"),
            (good.replace("{}", "{ options = [\"--listen=x\"] }"), "must be options that the file has no key for"),
            (good.replace("ttserver = {}", ""), "0 shards (ttserver): must be 1 to 64"),
            (good.replace("{}", "{ shards = 64 }") + other, "65 shards (ttserver): must be 1 to 64"),
            (good + "ttworker = { threads = \"many\" }\n", "must be a whole number from 1 to 1024, or \"all\""),
            (good + "ttworker = { hash = 0 }\n", "host h: ttworker 1: hash = 0: must be a whole number from 1"),
            (good + "ttworker = 4\n", "host 1: ttworker = 4: must be a table"),
            (good + other.replace("\"i\"", "\"x@h\""), "two hosts are called h"),
            (good + other.replace("\"b\"", "\"a\""), "host i: port = 7400: two shards would have the address a:7400"),
            (good.replace("ttserver = {}", "[[host.ttserver]]\nshards = 3\n[[host.ttserver]]\nport = 7402\n"),
             "host h: port = 7402: two shards would have the address a:7402")):
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write(content)
            file.flush()
            try:
                reader.Cluster(file.name)
                said = "nothing"
            except reader.Wrong as wrong:
                said = str(wrong)
        check(said.startswith(file.name + ": ") and words in said and "\n" not in said, content, said)
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write(content)
        file.flush()
        done = run("abdada", "cluster", "status", "-f", file.name)
        equal((done.status, done.out()), (2, ""))
        equal(done.lines["err"], [f"abdada cluster: {file.name}: {said.split(': ', 1)[1]}"])


@reads_files
def a_file_may_begin_with_a_bom(reader):
    with tempfile.NamedTemporaryFile("w", suffix=".toml", encoding="utf-8", newline="") as file:
        file.write("\ufeffname = \"n\"\r\n[[host]]\r\nssh = \"h\"\r\naddress = \"a\"\r\nttserver = {}\r\n")
        file.flush()
        equal(reader.Cluster(file.name).name, "n")


def wrong_use_is_one_line():
    for words, expected in ((["up", "-f", "/nosuch/cluster.toml"], "cluster.toml: No such file"), ([], "COMMAND"), (["upp"], "invalid choice"),
                            (["up", "--nonsense"], "unrecognized arguments: --nonsense"),
                            (["down", "--timeout", "0"], "--timeout must be 1 or more"),
                            (["logs", "-n", "-1"], "--lines must not be negative")):
        done = run("abdada", "cluster", *words)
        equal((done.status, done.lines["out"], len(done.lines["err"])), (2, [], 1), words, done.err())
        check(expected in done.err(), words, done.err())
    for words in (["--help"], ["up", "--help"], ["logs", "--help"], ["--version"]):
        done = run("abdada", "cluster", *words)
        equal((done.status, done.err()), (0, ""), words)
    done = subprocess.run([path_of("abdada"), "cluster", "up", "-f", "/nosuch"], env={"PATH": "/nowhere"}, stderr=subprocess.PIPE)
    equal((done.returncode, done.stderr), (1, b"abdada cluster: needs python3 (3.11 or later), which is not on PATH\n"))


@reads_files
def every_key_of_the_example_is_one(reader):
    if shutil.which("ssh") is None:
        return "no ssh here (Debian: openssh-client)"
    with open(os.path.join(ROOT, "deploy", "cluster.example.toml"), encoding="utf-8") as file:
        example = file.read()
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write(example)
        file.flush()
        read = reader.Cluster(file.name)
        equal([(host.name, [each.name for each in host.programs]) for host in read.hosts],
              [("host-a", ["ttserver-7400"]), ("host-b", ["ttserver-7400", "ttworker-1"]), ("host-c", ["ttworker-1"])])
        equal(read.servers, ["host-a:7400", "10.0.0.2:7400"])
    shown = dict(re.findall(r"^ *# (\w+) = (.*?)(?:  +#.*)?$", example, re.MULTILINE))
    given = set(re.findall(r"^ *(\w+) = ", example, re.MULTILINE))
    for keys in (reader.TOP_KEYS, reader.SSH_KEYS, reader.HOST_KEYS, reader.SHARD_KEYS, reader.WORKER_KEYS):
        for key, (kind, default) in keys.items():
            check(key in shown or key in given or f"[{key}]" in example or f"[[{key}]]" in example or
                  f"[[host.{key}]]" in example, "the example does not show", key)
            if key in shown:
                value = reader.tomllib.loads(f"{key} = {shown[key]}")[key]
                check(kind(value) == default or default in (None, reader.NEEDED), key, shown[key], default)


@reads_files
def times_that_no_clock_shows_are_refused(_):
    host = importlib.import_module("cluster_host").Host(None, None, "n", "h", "h")
    for began, is_taken in ("0", True), ("1700000000", True), ("-1", False), ("9" * 12, False), ("9" * 300, False):
        said = f"item ttserver-7400 up 12 {began} 0 digest version\n"
        try:
            host.take_in(said)
            check(is_taken and [row.began for row in host.rows()] == [int(began)], said)
        except ValueError:
            check(not is_taken, said)


def launcher_itself():
    spec = importlib.util.spec_from_file_location("launcher", os.path.join(SCRIPTS, "cluster.py"))
    launcher = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(launcher)
    return launcher


@reads_files
def hosts_of_the_past_are_removed_by_names_alone(_):
    """What is in the file beside the cluster's names folders that are removed."""
    launcher = launcher_itself()
    with folder() as path:
        cluster = argparse.Namespace(path=os.path.join(path, "c.toml"), folder=path)
        present = [launcher.Host(None, cluster, "n", "present", "present")]
        for row, is_taken in ((["n", "past", "past"], True), (["n", "present", "present"], False), (["..", "past", "past"], False),
                              (["n", "..", "past"], False), (["n", "a/b", "past"], False), (["n", "past", "-oProxyCommand=x"], False),
                              (["n", 1, "past"], False), (["n", "past"], False), ("nn", False), (1, False)):
            for lines in [row], row:  # of earlier versions; with lines that somebody has spoilt
                with open(launcher.past_path(cluster), "w", encoding="utf-8") as file:
                    print(json.dumps(lines), file=file)
                    print(json.dumps(["n", "present", "present"]), "[", "", "[]", sep="\n", file=file)
                equal([host.identity() for host in launcher.gone_from(cluster, present)], [tuple(row)] if is_taken else [], lines)


@reads_files
def a_host_that_has_never_answered_is_forgotten(_):
    here = 'while [ "$1" != -- ]; do shift; done\n[ "$2" != lost ] || { echo "no such host" >&2; exit 255; }\nexec sh -c "$3"\n'
    with with_ssh(SSH_FOR_US + here) as (path, call):
        file, past = os.path.join(path, "cluster.toml"), os.path.join(path, ".cluster.toml.hosts")
        with open(file, encoding="ascii") as content:
            right = content.read()

        def up(content, status):
            with open(file, "w", encoding="ascii") as out:
                out.write(content)
            done, _, err = call("up")
            equal(done, status, err)
            return err
        try:
            for words, status in ((right + '[[host]]\nssh = "lost"\naddress = "::1"\n', 1), (right, 0)):
                up(words, status)
                with open(past, encoding="utf-8") as lines:
                    equal(lines.read(), '["here", "h", "h"]\n')
            with open(past, "a", encoding="utf-8") as lines:
                lines.write('["here", "gone", "lost"]\n')
            err = up(right, 1)
            check("gone: unreachable: no such host" in err and f"gone is no longer in {file}" in err and f"delete its line in {past}" in err, err)
            equal(call("down")[0], 1)
            with open(past, encoding="utf-8") as lines:
                equal(lines.read(), '["here", "gone", "lost"]\n')
        finally:
            os.unlink(past)
            equal(call("down")[0], 0)
        check(not os.path.exists(past))


def shell(script, *arguments, data=b""):
    """What a piece of shell with the functions of cluster_host.sh prints."""
    done = subprocess.run(["sh", "-c", f". {SCRIPTS}/cluster_host.sh\n{script}"], input=data, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, env=dict(os.environ, **dict(arguments)))
    return done.stdout.decode()


def a_log_is_kept_within_bounds():
    with folder() as base:
        os.mkdir(os.path.join(base, "log"))
        os.mkdir(os.path.join(base, "run"))
        lines = b"".join(b"%06d %s\n" % (i, b"x" * 500) for i in range(6000))
        shell("base=$BASE run=$BASE/run; keep_log it", ("BASE", base), data=b"ready here\n" + lines)
        found = {}
        for name in os.listdir(os.path.join(base, "log")):
            with open(os.path.join(base, "log", name), "rb") as file:
                found[name] = file.read()
        equal(sorted(found), ["it", "it.1"])
        check(all(len(content) < (1 << 20) + 1000 for content in found.values()), [len(c) for c in found.values()])
        check((b"ready here\n" + lines).endswith(found["it.1"] + found["it"]), "the last lines are not there")
        with open(os.path.join(base, "run", "it.ready"), encoding="ascii") as file:
            equal(file.read(), "ready here\n")


def a_process_that_has_the_number_of_another_is_left_alone():
    with folder() as base:
        sleeper = subprocess.Popen(["sleep", "60"])
        try:
            begin = shell(f"identify {sleeper.pid}; echo $identity").split()
            path = os.path.join(base, "it.program")
            for words, lives in (([begin[0] + "1", begin[1]], False), ([begin[0], "x" + begin[1]], False), ([], False),
                                 (begin, True)):
                with open(path, "w", encoding="ascii") as file:
                    print(sleeper.pid, *words, 0, 0, file=file)
                equal(shell("signal TERM $IT && echo sent", ("IT", path)), "sent\n" if lives else "", words)
                if not lives:
                    equal(sleeper.poll(), None)
            equal(sleeper.wait(10), -signal.SIGTERM)
        finally:
            sleeper.kill()
            sleeper.wait()


@contextlib.contextmanager
def programs_here(**commands):
    """A home, and its folder of a host `h` of cluster `c` with these programs: what each execs."""
    with folder() as home:
        base = os.path.join(home, ".abdada", "c", "h")
        for name in "bin", "log", "run":
            os.makedirs(os.path.join(base, name))
        shutil.copy(os.path.join(SCRIPTS, "cluster_host.sh"), os.path.join(base, "bin"))
        for name, command in commands.items():
            with open(os.path.join(base, "run", f"{name}.command"), "w", encoding="ascii") as file:
                print("exec", command, file=file)
        try:
            yield home, base
        finally:
            shell("main c h remove 1", ("HOME", home))


def a_program_has_one_supervisor():
    with programs_here(it="sleep 60") as (home, base):
        def supervisor():
            with open(os.path.join(base, "run", "it.supervisor"), encoding="ascii") as file:
                return file.read()
        shell("main c h start it", ("HOME", home))
        first = supervisor()
        for words in "start it", "supervise it":
            shell(f"main c h {words}", ("HOME", home))
            equal(supervisor(), first, words)
        equal(shell("main c h remove 5", ("HOME", home)), "abdada-cluster\nstopped it\n")
        equal(os.listdir(home), [])


def one_silent_shard_of_a_process_is_enough():
    with folder() as run_folder:
        def state(status):
            for name, content in (("check", f"#!/bin/sh\necho $4 >>{run_folder}/asked\nexit {status}\n"), ("asked", ""),
                                  ("ttserver-1.about", f"program={run_folder}/check ready=3\n"),
                                  ("ttserver-1.ready", "ready a:1\nready a:2\nready a:3\n")):
                with open(os.path.join(run_folder, name), "w", encoding="ascii") as file:
                    file.write(content)
            os.chmod(os.path.join(run_folder, "check"), 0o755)
            return shell("lives() { rest='0 0'; }; state_of ttserver-1; echo $phase $(cat $run/asked)", ("run", run_folder))
        equal(state(0), "up a:1 a:2 a:3\n")
        equal(state(1), "silent a:1\n")


@reads_files
def one_call_at_a_time_changes_a_cluster(_):
    """Here, and on a host, where the one that waits takes no lock that the one before has removed."""
    launcher = launcher_itself()
    with folder() as path:
        cluster = argparse.Namespace(path=os.path.join(path, "c.toml"), folder=path)
        for _ in range(2):
            with launcher.alone(cluster):
                try:
                    with launcher.alone(cluster):
                        check(False, "two at once")
                except launcher.Trouble as trouble:
                    equal(str(trouble), f"{cluster.path}: another `abdada cluster` uses it now")
            equal(os.listdir(path), [])

        def only_read(name, mode="r", **how):
            if mode != "r":
                raise PermissionError(13, "Permission denied", name)
            return open(name, mode, **how)

        with launcher.alone(cluster):
            launcher.open = only_read  # as for another user
            try:
                with launcher.alone(cluster):
                    check(False, "two users at once")
            except launcher.Trouble as trouble:
                equal(str(trouble), f"{cluster.path}: another `abdada cluster` uses it now")
            finally:
                del launcher.open
    if shutil.which("flock"):
        with programs_here() as (home, base):
            waits = "sh -c '. $S/cluster_host.sh; base=$B; alone; ls $B/lock; exec 9>&-' &"
            # The second comes before, while or after the first removes all.
            once = f"alone; {waits} sleep 0.$i; rm -rf $B/bin; leave; wait; exec 9>&-"
            said = shell(f"base=$B run=$B/run cluster=c host=h; for i in 4 $(seq -w 000 079); do {once}; done",
                         ("HOME", home), ("S", SCRIPTS), ("B", base))
            equal(said, 81 * f"{base}/lock\n")


def all_threads_are_the_cpus_that_a_login_may_use():
    """By its affinity and by the quotas of its cgroups; a variable of OpenMP says nothing of ours."""
    for variable in "OMP_NUM_THREADS", "OMP_THREAD_LIMIT":
        equal([shell("cpus", (variable, count)) for count in ("1", "7")], [shell("cpus", (variable, ""))] * 2, variable)
    one = {min(os.sched_getaffinity(0))}
    most = len(os.sched_getaffinity(0))
    with folder() as root:
        def found(list_of_cgroups, files):
            for name in ("list", *files):
                os.makedirs(os.path.dirname(os.path.join(root, name)), exist_ok=True)
                with open(os.path.join(root, name), "w", encoding="ascii") as file:
                    file.write(files.get(name, list_of_cgroups))
            return int(shell("cpus $ROOT/list $ROOT", ("ROOT", root)))

        version_2, version_1 = "0::/a/b\n", "5:cpuacct,cpu:/x/y\n4:memory:/z\n0::/\n"
        quotas = "cpu/x/cpu.cfs_quota_us", "cpu/x/cpu.cfs_period_us"
        equal(found(version_2, {}), most)
        equal(found(version_2, {"a/b/cpu.max": "max 100000\n", "ab/cpu.max": "1 100000\n"}), most)
        equal(found(version_2, {"a/cpu.max": f"{most * 100000 - 99999} 100000\n"}), most, "a part of one is one")
        equal(found(version_2, {"a/cpu.max": "100000 100000\n"}), 1, "of the one around it")
        equal(found(version_2, {"a/cpu.max": "max 100000\n", "unified/cpu.max": "50000 100000\n"}), 1, "beside version 1")
        equal(found(version_1, dict(zip(quotas, ("-1\n", "100000\n")), **{"unified/cpu.max": "max 100000\n"})), most)
        equal(found(version_1, dict(zip(quotas, ("60000\n", "100000\n")))), 1)
        equal(int(shell("cpus /nowhere $ROOT", ("ROOT", root))), most)
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, one)
        equal(int(shell("cpus")), 1)
    finally:
        os.sched_setaffinity(0, before)


SSH_FOR_US = """#!/bin/sh
echo "$@" >>"$SAID"
if [ "$1" = -G ] || [ "$3" = -G ]; then
    echo hostname host
    exit
fi
"""


def own_address():
    """In brackets behind --servers where this machine has IPv6, which a container may lack."""
    try:
        with socket.socket(socket.AF_INET6) as at:
            at.bind(("::1", 0))
            return "::1"
    except OSError:
        return "127.0.0.1"


@contextlib.contextmanager
def with_ssh(script):
    """A folder with a cluster's file, and run(command, ...) with this script in the place of ssh."""
    with folder() as path:
        os.mkdir(os.path.join(path, "bin"))
        os.mkdir(os.path.join(path, "home"))
        with open(os.path.join(path, "bin", "ssh"), "w", encoding="ascii") as file:
            file.write(script)
        os.chmod(file.name, 0o755)
        with open(os.path.join(path, "cluster.toml"), "w", encoding="ascii") as file:
            file.write('name = "here"\ninsecure = true\n[ssh]\nconnect_timeout = 5\n[[host]]\nssh = "h"\n'
                       f'address = "{own_address()}"\nttserver = {{ memory = "32M", port = {free_port()} }}\n')
        environment = dict(os.environ, PATH=f"{path}/bin:{os.environ['PATH']}", HOME=f"{path}/home", SAID=f"{path}/said")

        def call(command, *words, **more):
            done = subprocess.run([path_of("abdada"), "cluster", command, "-f", file.name, *words], env=environment | more,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=PATIENCE)
            return done.returncode, done.stdout.decode(), done.stderr.decode()
        yield path, call


@reads_files
def what_ssh_prints_is_bounded(_):
    for script in ("#!/bin/sh\nexec yes\n", "#!/bin/sh\nexec yes >&2\n", SSH_FOR_US + "exec yes\n", SSH_FOR_US + "exec yes >&2\n",
                   SSH_FOR_US + "exec tr '\\0' x </dev/zero\n", SSH_FOR_US + "echo abdada-cluster; exec tr '\\0' x </dev/zero\n"):
        for command in "status", "logs":
            with with_ssh(script) as (_path, call):
                status, _out, err = call(command)
            check(status == 1 and "prints more than 4 MiB" in err and len(err.splitlines()) <= 2, script, status, err[:1000])


@reads_files
def nothing_of_here_is_forwarded_and_no_hint_without_a_host(_):
    with with_ssh(SSH_FOR_US + "echo closed for today; exit 1\n") as (path, call):
        status, out, err = call("up")
        equal((status, err), (1, "h: its login ended with exit status 1, and said: closed for today\n"))
        check("abdada analyse" not in out, out)
        with open(os.path.join(path, "said"), encoding="utf-8") as said:
            calls = [line for line in said if " -- h " in line]
        check(calls and all(" -Taxk " in line or line.startswith("-Taxk ") for line in calls), calls)


@reads_files
def the_hint_can_be_pasted_into_a_shell(_):
    script = SSH_FOR_US + 'while [ "$1" != -- ]; do shift; done\nexec sh -c "$3"\n'
    with with_ssh(script) as (_path, call):
        status, out, err = call("up")
        try:
            equal(status, 0, err)
            at = r"'\[::1\]:\d+'" if own_address() == "::1" else r"127\.0\.0\.1:\d+"
            check(re.search(rf"\n\nabdada analyse --servers {at} startpos\n$", out), out)
        finally:
            status, _out, err = call("down")
        equal(status, 0, err)


@reads_files
def what_has_to_be_killed_is_a_line_and_a_failure(_):
    script = SSH_FOR_US + 'while [ "$1" != -- ]; do shift; done\nexec sh -c "$3"\n'
    with with_ssh(script) as (_path, call):
        try:
            equal(call("up")[0], 0)
            for command in "restart", "down":
                shard = json.loads(call("status", "--json")[1])
                os.kill(shard["pid"], signal.SIGSTOP)
                status, _out, err = call(command, "--timeout", "1")
                only(err.splitlines(), f"h: {shard['what']} did not stop in time and was killed; results")
                equal(status, 1, err)
        finally:
            status, _out, err = call("down")
        equal(status, 0, err)
    host_module = importlib.import_module("cluster_host")
    reader, now, other = importlib.import_module("cluster_file"), "now", "with other options"
    for options, runs, wanted, bound in (([], now, None, 60), ([], other, None, 300), (["--snapshot", "x"], now, None, 300),
                                         (["--backing=x"], now, None, 300), (["--snapshot=x"], now, 7, 7)):
        shard = reader.Program("ttserver", "ttserver-1", argparse.Namespace(options=options))
        host = host_module.Host(None, None, "n", "h", "h", argparse.Namespace(programs=[shard]))
        host.describe = lambda _: ([], {"made_of": now})
        host.found = {shard.name: argparse.Namespace(made_of=runs)}
        equal(host.bound(wanted), bound, options, runs, wanted)


@reads_files
def a_cluster_without_keys_runs_where_others_are_set(_):
    script = SSH_FOR_US + 'while [ "$1" != -- ]; do shift; done\nexec sh -c "$3"\n'
    with with_ssh(script) as (path, call):
        os.makedirs(os.path.join(path, "home", ".config", "abdada"))
        with open(os.path.join(path, "home", ".config", "abdada", "config.ini"), "w", encoding="ascii") as file:
            file.write(f"keys = {path}/none\n[ttserver]\nsessions = 0\n")
        keys = {"ABDADA_KEYS": f"{path}/nowhere"}
        try:
            for command in "up", "status", "upgrade":
                status, out, err = call(command, **keys)
                check(status == 0 and (" up " in out), command, out, err)
        finally:
            status, _out, err = call("down", **keys)
        equal(status, 0, err)


@reads_files
def a_login_that_was_shut_out_is_tried_again(_):
    closed = b"kex_exchange_identification: Connection closed by remote host"
    script = (SSH_FOR_US + f'[ -e "$SAID.$PPID" ] || {{ : >"$SAID.$PPID"; echo "{closed.decode()}" >&2; exit 255; }}\n'
              'while [ "$1" != -- ]; do shift; done\nexec sh -c "$3"\n')
    with with_ssh(script) as (_path, call):
        status, out, err = call("status")
        check(status == 1 and " down " in out and "unreachable" not in out + err, status, out, err)
        equal(call("logs"), (0, "", ""))
    launcher_itself()
    host, calls = sys.modules["cluster_host"], []
    for bound, said, tries in ((0, closed, 1), (60, b"open failed: connect failed\n" + closed, 1), (60, b"Connection refused", 1)):
        host.SHUT_OUT_S, host.talk = bound, lambda *_, said=said: calls.append(said) or (255, b"", said)
        equal(host.log_in([]), (255, b"", said))
        equal(len(calls), tries, said)
        calls.clear()


@reads_files
def an_upgrade_believes_no_top_that_says_nothing(_):
    def row(port, state="up", workers=2, jobs=1):
        return json.dumps({"kind": "shard", "address": f"127.0.0.1:{port}", "state": state, "workers": workers, "jobs": jobs})
    with folder() as path:
        answer, program, file = (os.path.join(path, name) for name in ("answer", "abdada", "cluster.toml"))
        with open(program, "w", encoding="ascii") as script:  # its top
            script.write(f'#!/bin/sh\ncat {answer}\n')
        os.chmod(program, 0o755)
        with open(file, "w", encoding="ascii") as out:
            out.write('name = "here"\ninsecure = true\nprograms = "installed"\n[ssh]\noptions = ["-F", "/dev/null"]\n')
            for port in 1, 2:
                out.write(f'[[host]]\nname = "h{port}"\nssh = "h"\naddress = "127.0.0.1"\nttserver = {{ port = {port} }}\n')

        def upgrade(*lines):
            with open(answer, "w", encoding="ascii") as out:
                out.writelines(f"{line}\n" for line in lines)
            done = subprocess.run([sys.executable, os.path.join(SCRIPTS, "cluster.py"), file, program, "1.0.0", "upgrade", "-f", file,
                                   "h1"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=PATIENCE)
            return done.returncode, done.stderr.decode()
        for lines in (), ("what",), ('{"kind": "worker"}',), ("[]",), (row(1), row(2, workers=None)):
            equal(upgrade(*lines), (1, "abdada cluster: abdada top: no answer, exit status 0\n"), lines)
        equal(upgrade(row(1), row(2, "down")),
              (1, "h1: left as it is, as 127.0.0.1:2 of another host is not up as seen from this machine (`abdada cluster "
                  "restart HOST` starts what is down): run `abdada cluster upgrade` again to continue\n"))


@reads_files
def an_upgrade_waits_for_all_and_says_for_what(_):
    launcher, cluster = launcher_itself(), argparse.Namespace(servers=["a", "b"])

    def waits_for(jobs=(), **workers):
        """jobs: of how many shards each is; 0 and 1 were of all before."""
        said, at = [], {str(i): {"shards": shards, "owner": "anna"} for i, shards in enumerate(jobs)}
        launcher.tables_of = lambda *_: ({name: {"workers": count} for name, count in workers.items()}, at)
        launcher.say = said.append
        try:
            launcher.wait_for_all(cluster, None, 2, {"0", "1"}, 0)
        except launcher.Trouble as trouble:
            said.append(str(trouble))
        return said
    equal(waits_for(a=2, b=2), [])
    equal(waits_for(a=2), ["b is not up again, as seen from this machine, after 0 s"])
    equal(waits_for(a=2, b=1), ["b has 1 of 2 workers again after 0 s"])
    equal(waits_for(a=2, b=2, jobs=(2, 2, 1)), [])  # one of some shards holds nothing up
    equal(waits_for(a=2, b=2, jobs=(2, 1)), ["job 1 of anna is at 1 of 2 shards only after 0 s: continuing without it"])


@reads_files
def an_upgrade_waits_for_the_sessions_that_workers_have(_):
    """An engine has one, whatever its threads are; a host whose key was taken back has none."""
    launcher = launcher_itself()

    def sessions(*workers, allowed=("allowed/worker-h.public",), keys=("h",)):
        """workers: (threads, engine, phase) each."""
        programs = [argparse.Namespace(what="ttworker", name=str(i), values=argparse.Namespace(threads=threads, engine=engine))
                    for i, (threads, engine, _) in enumerate(workers)]
        supplies = argparse.Namespace(keys=dict.fromkeys(allowed), worker_keys=dict.fromkeys(keys))
        host = launcher.Host(supplies, None, "n", "h", "h", argparse.Namespace(programs=programs))

        def probe(_):
            host.facts = {"cpus": "8"}
            host.found = {str(i): argparse.Namespace(phase=phase) for i, (_, _, phase) in enumerate(workers)}
        host.call = probe
        return launcher.sessions_of([host])
    equal(sessions((2, None, "up"), ("all", None, "up"), (4, None, "starting")), 10)
    equal(sessions((4, "stockfish", "up"), ("all", "stockfish", "up")), 2)
    equal(sessions((2, None, "up"), allowed=["allowed/worker-i.public"]), 0)
    equal(sessions((2, None, "up"), allowed=(), keys=()), 2)  # without keys


# ---- what needs them ----

@needs_hosts
def a_cluster_starts_searches_loses_a_host_and_ends():
    with hosts(3) as (one, two, three):
        file = File(one.site, (one, SHARD + WORKER), (two, SHARD + WORKER),
                    (three, "ttworker = { count = 2, hash = 4 }"))
        up = file.run("up")
        only(up.lines["err"], f"made {file.keys}: ")
        for host, name in ((one, "ttserver-7400"), (two, "ttserver-7400"), (three, "ttworker-1, ttworker-2")):
            only(up.lines["err"], f"h{host.number}: started {name}")
        check("unchanged" not in up.out())
        pids, rows = file.pids(), file.rows()
        equal(len(pids), 6, pids)
        for which, row in rows.items():
            equal((row["state"], row["restarts"]), ("up", 0), which)
            check(re.fullmatch(r"\d+\.\d+\.\d+ [0-9a-f]{8}", row["version"]), row)
        equal(rows[f"h{one.number}", "ttserver-7400"]["address"], f"{one.address}:7400")
        equal(oct(int(one.command("stat", "-c", "%a", f"/home/anna/.abdada/main/h{one.number}/keys"), 8)), "0o700")
        kept = f"/home/anna/.abdada/main/h{three.number}/keys"
        equal(sorted(three.command("find", kept, "-type", "f", "-perm", "600").split()),
              [f"{kept}/server.public", f"{kept}/worker.secret"], "the keys of a host with workers alone")
        secrets = {host.command("cat", f"/home/anna/.abdada/main/h{host.number}/keys/worker.secret")
                   for host in (one, two, three)}
        equal(len(secrets), 3, "each host has a worker's key of its own")
        for host in (one, two, three):
            with open(os.path.join(file.keys, f"worker-h{host.number}.secret"), encoding="ascii") as own:
                check(own.read() in secrets, host.number)
        again = file.run("up")
        check("unchanged: all runs as" in again.out() and again.err() == "", again.out(), again.err())
        equal(file.pids(), pids)

        place, (position, depth, score) = file.servers(again), long_search(LONG_S)
        ask_all(4, 2, *place)
        beside = start(*place, "--fresh", *STRICT, "--depth", 60, position)
        beside.wait_line("workers 4.*shards 2/2|shards 2/2.*workers 4", "err")
        front = start(*place, "--fresh", *STRICT, "--depth", depth, position)
        two.cut()
        beside.wait_line("shards 1/2", "err", begin=len(beside.lines["err"]))
        beside.send_signal(signal.SIGINT)
        answers(beside)
        found, = answers(front)
        equal((found["score"], found["depth"]), (score, depth))

        lost = file.run("status", status=1)
        only(lost.lines["err"], f"h{two.number}: unreachable: ")
        equal(len([line for line in lost.lines["out"] if " unknown " in line]), 2, lost.out())
        equal(len([line for line in lost.lines["out"] if " up " in line]), 4, lost.out())
        done = file.run("up", status=1)  # changes nothing elsewhere
        only(done.lines["err"], f"h{two.number}: unreachable: ")
        two.mend()
        equal(file.pids(), pids)
        ask_all(4, 2, *place)

        three.cut()
        done = file.run("down", status=1)
        only(done.lines["err"], f"h{three.number}: unreachable: ")
        equal((one.processes("anna"), one.files("anna")), ({}, []))
        equal(len([words for words in three.processes("anna").values() if "bin/ttworker" in words]), 2)
        three.mend()
        wait_until(lambda: file.run("down", status=None).status == 0, "the last host to be taken down")
        for host in (one, two, three):
            equal((host.processes("anna"), host.files("anna")), ({}, []))
        equal(sorted(os.listdir(file.folder)), ["cluster.toml", "keys"])


@needs_hosts
def bench_measures_the_hosts_and_leaves_them_as_they_were():
    with hosts(2) as (one, two):
        worker = WORKER.replace("hash", "threads = 2, hash")
        file = File(one.site, (one, SHARD + worker), (two, worker))
        file.run("up")
        two.command("kill", "-9", two.command("cat", f"/home/anna/.abdada/main/h{two.number}/run/ttworker-1.supervisor").split()[0])
        refused = file.run("bench", status=1)
        equal((refused.out(), "is down: `abdada cluster up` first" in refused.err()), ("", True), refused.err())
        file.run("up")
        other = f"h{two.number}", "ttworker-1"
        if not SHORT:
            before = file.pids()
            about, *rows = map(json.loads, file.run("bench", "--quick", "--json").lines["out"])
            check(0 < about["round_trip_us"] <= about["round_trip_p99_us"] and about["operations_per_s"] > 0, about)
            equal([(row["hosts"], row["threads"]) for row in rows], [(0, 1), (1, 2), (2, 4)])
            for row in rows:
                check(row["nodes_per_s"] > 0 and row["depth"] >= 1 and 0 <= row["talking"], row)
                equal(row["bytes_per_s"] > 0, row["hosts"] > 0, row)
            equal([len(row.get("virtual_depths", [])) > 0 for row in rows], [False] + 2 * [about["predicted"]])
            after = file.pids()
            equal({which for which in after if after[which] != before[which]}, {other})
            check("unchanged" in file.run("up").out())
        before = file.pids()
        changed = File(one.site, (one, SHARD + worker), (two, worker.replace("hash = 4", "hash = 8")))
        refused = changed.run("bench", status=1)
        check(f"h{two.number}: ttworker-1 is not what " in refused.err(), refused.err())
        equal(file.pids(), before)

        file = File(one.site, (one, SHARD + worker), (two, worker))
        stopped = file.start("bench", "--quick")
        stopped.wait_line("^1 host$", "err")
        equal(file.rows(status=None)[other]["state"], "down")
        stopped.send_signal(signal.SIGINT)
        equal(stopped.wait(), 130, stopped.err())
        file.pids()
        check("unchanged" in file.run("up").out())
        file.run("down")


@needs_hosts
def what_crashes_comes_back_and_the_logs_say_it():
    with hosts(2, shell="/bin/bash") as (one, two):
        for host in (one, two):  # bash reads it when sshd starts it
            host.command("sh", "-c", "echo 'echo Welcome' >/home/anna/.bashrc")
        file = File(one.site, (one, SHARD), (two, WORKER))
        file.run("up")
        worker = f"h{two.number}", "ttworker-1"
        follow = file.start("logs", "--follow", "-n", 1)
        for host in (one, two):
            follow.wait_line(f"^h{host.number} tt")

        before = file.pids()
        for kills in (0, 1):
            two.command("kill", "-9", str(file.up_after(worker, kills)["pid"]))
            follow.wait_line(f"^h{two.number} ttworker-1 .* ended, killed by SIGKILL; starts again in {kills} s$")
        check(file.up_after(worker, 2)["pid"] != before[worker])
        after = file.pids()
        equal({which: pid for which, pid in after.items() if which != worker},
              {which: pid for which, pid in before.items() if which != worker})
        follow.send_signal(signal.SIGINT)
        equal(follow.wait(), 0, follow.err())
        for host in (one, two):
            wait_until(lambda: not any("tail" in words for words in host.processes("anna").values()), "no tail there")

        logs = file.run("logs", "-n", 100).lines["out"]
        check(all(re.match(rf"h({one.number} ttserver-7400|{two.number} ttworker-1) ", line) for line in logs), logs)
        equal(len([line for line in logs if "killed by SIGKILL" in line]), 2)
        equal(len([line for line in logs if line.endswith(" ready")]), 3)
        equal({line.split()[0] for line in file.run("logs", f"h{one.number}").lines["out"]}, {f"h{one.number}"})
        equal(file.run("logs", "elsewhere", status=2).lines["err"],
              [f"abdada cluster: no host 'elsewhere' in {file.path}: h{one.number}, h{two.number}"])

        # Without its supervisor a program is not what was wanted: there is never more than one of it.
        saved = two.command("cat", f"/home/anna/.abdada/main/h{two.number}/run/ttworker-1.supervisor")
        two.command("kill", "-9", saved.split()[0])
        equal(file.rows(status=1)[worker]["state"], "down")
        check(f"h{two.number}: started ttworker-1" in file.run("up").lines["err"])
        equal(len([words for words in two.processes("anna").values() if "bin/ttworker" in words]), 1)

        # restart: of one host alone.
        before = file.pids()
        file.run("restart", f"h{one.number}")
        after = file.pids()
        equal({which for which in after if after[which] != before[which]}, {(f"h{one.number}", "ttserver-7400")})
        file.run("down")
        equal((two.processes("anna"), two.files("anna")), ({}, ["/home/anna/.bashrc"]))


@needs_hosts
def what_a_login_does_is_not_what_a_host_says():
    with hosts(2, shell="/bin/bash") as (one, two):
        def login(*lines):  # bash reads it when sshd starts it
            two.command("sh", "-c", "printf '%s\\n' \"$@\" >/home/anna/.bashrc", "sh", *lines)
        host = f"h{two.number}"
        file = File(one.site, (one, SHARD), (two, WORKER))
        for lines in (["printf hello"], ["echo Welcome", "printf 'a\\nb'", "echo oops >&2"]):
            login(*lines)
            file.run("up")
            file.pids()
            check(any(line.endswith(" ready") for line in file.run("logs", host).lines["out"]), lines)
        for lines, words in (
                (["echo 'Closed until'; echo Monday", "exit 1"], "its login ended with exit status 1, and said: Closed until Monday"),
                (["echo Closed >&2", "exit 3"], "its login ended with exit status 3, and said: Closed"),
                (["exit 4"], "its login ended with exit status 4, without a word"),
                (["echo Closed", "exit 255"], "its login ended with exit status 255, and said: Closed"),
                (["echo Closed", "exit 0"], "unexpected answer of its shell: 'Closed'"),
                (["read -r line"], "its login reads standard input"), (["read -r -n 1"], "its login reads standard input"),
                (["head -c 20000 >/dev/null"], "its login reads standard input"), (["head -c 500"], "its login reads standard input")):
            login(*lines)
            for command in ("status",), ("up",), ("restart", host), ("logs", host):
                if command[0] == "logs" and lines[0].startswith("head -c 20000"):
                    continue  # it waits for more
                done = file.run(*command, status=1)
                line = only(done.lines["err"], f"{host}: ")
                check(line.startswith(f"{host}: {words}"), command, lines, line)
        login("cat >/dev/null")  # all of it, and it ends where what is sent ends
        for command in "status", "up":
            check("its login reads standard input" in only(file.run(command, status=1).lines["err"], f"{host}: "))
        login("")
        file.run("down")


@needs_hosts
def up_changes_what_differs_and_nothing_else():
    with hosts(3) as (one, two, three):
        site, kept = one.site, "it's \\\"kept\\\" $HOME"  # a name in a shell, and in TOML
        shard = f'ttserver = {{ memory = "32M", options = ["--snapshot", "{kept}"] }}\n'
        file = File(site, (one, shard + WORKER), (two, SHARD + "ttworker = { hash = 4, count = 2 }"), (three, WORKER))
        file.run("up")
        before, names = file.pids(), {host: f"h{host.number}" for host in (one, two, three)}

        # Another option of one program, one program less, one host less.
        file = File(site, (one, shard + "ttworker = { hash = 4, threads = 2 }"), (two, SHARD + WORKER))
        done = file.run("up")
        only(done.lines["err"], f"{names[one]}: restarted ttworker-1")
        only(done.lines["err"], f"{names[two]}: stopped ttworker-2")
        only(done.lines["err"], f"{names[three]}: stopped ttworker-1; nothing is left")
        after = file.pids()
        equal(set(before) - set(after), {(names[two], "ttworker-2"), (names[three], "ttworker-1")})
        equal({which for which in after if after[which] != before[which]}, {(names[one], "ttworker-1")})
        equal((three.processes("anna"), three.files("anna")), ({}, []))

        # One more user, who is let in although nothing is started again; then not any more.
        equal(run("abdada", "keygen", file.keys, "--name", "guest", "--role", "monitor").status, 0)
        mine = site.path("guest")
        os.mkdir(mine)
        for name in ("guest.secret", "server.public"):
            shutil.copy(os.path.join(file.keys, name), mine)

        def guest_sees():
            return run("abdada", "top", "--once", "--wait", 500, "--keys", mine, "--servers",
                       f"{one.address}:7400,{two.address}:7400").status == 0
        check(not guest_sees())
        for is_let_in in (True, False):
            file.run("up")
            equal(file.pids(), after)
            wait_until(lambda: guest_sees() == is_let_in, f"the guest to be {'let in' if is_let_in else 'refused'}")
            if is_let_in:
                os.unlink(os.path.join(file.keys, "allowed", "guest.public"))

        # A host is put out alone: its workers are refused, and the next `up` makes it no other key.
        def workers():
            view = run("abdada", "top", "--once", "--json", "--keys", file.keys, "--servers", f"{one.address}:7400")
            return sorted(row["user"] for row in map(json.loads, view.lines["out"]) if row["kind"] == "worker")
        users = sorted(f"worker-{names[host]}" for host in (one, two))
        wait_until(lambda: sorted(set(workers())) == users, "the workers of both hosts")
        shutil.move(os.path.join(file.keys, "allowed", f"{users[1]}.public"), mine)
        for _ in range(2):
            file.run("up")
            equal(file.pids(), after)
            wait_until(lambda: sorted(set(workers())) == users[:1], "the workers of one host alone")
        shutil.move(os.path.join(mine, f"{users[1]}.public"), os.path.join(file.keys, "allowed"))
        file.run("up")
        wait_until(lambda: sorted(set(workers())) == users, "the workers of both hosts again")

        # Other programs of the same version: all that are copied are started again.
        other = site.path("bin")
        shutil.copytree(os.path.dirname(path_of("abdada")), other)
        with open(os.path.join(other, "ttworker"), "ab") as program:
            program.write(b"another build")
        words = [os.path.join(other, "abdada"), "cluster", "up", "-f", file.path]
        equal(subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode, 0)
        rebuilt = file.pids()
        equal({what for (host, what) in rebuilt if rebuilt[host, what] != after[host, what]}, {"ttworker-1"})

        # No keys any more, and one host less.
        file = File(site, (one, SHARD), more="insecure = true")
        only(file.run("up").lines["err"], f"{names[two]}: stopped ttserver-7400, ttworker-1; nothing is left")
        equal((two.processes("anna"), two.files("anna")), ({}, []))
        one.command("test", "!", "-e", f"/home/anna/.abdada/main/{names[one]}/keys")
        wait_until(lambda: run("abdada", "top", "--once", "--servers", f"{one.address}:7400").status == 0,
                   "the shard to answer without keys")

        # Another name of the cluster.
        with open(file.path, encoding="utf-8") as content:
            lines = content.read()
        with open(file.path, "w", encoding="utf-8") as content:
            content.write(lines.replace('name = "main"', 'name = "other"'))
        only(file.run("up").lines["err"], f"{names[one]}: stopped ttserver-7400; nothing is left")
        file.run("down")
        equal(one.processes("anna"), {})
        snapshot = kept.replace("\\", "")
        one.command("test", "-s", f"/home/anna/{snapshot}")
        one.command("test", "!", "-e", "/home/anna/.abdada")


def another_build(site, name):
    """A folder with the same programs, which are others by their digests."""
    other = site.path(name)
    shutil.copytree(os.path.dirname(path_of("abdada")), other)
    for program in ("ttserver", "ttworker"):
        with open(os.path.join(other, program), "ab") as file:
            file.write(name.encode())
    return os.path.join(other, "abdada")


def cluster_of(program, command, file, *arguments, **environment):
    """(status, stdout, lines of stderr) of another build's `abdada cluster`."""
    done = subprocess.run([program, "cluster", command, "-f", file.path, *map(str, arguments)], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=PATIENCE,
                          env=dict(os.environ, **environment))
    return done.returncode, done.stdout.decode(), done.stderr.decode().splitlines()


@needs_hosts
def an_upgrade_goes_from_host_to_host_while_a_search_goes_on():
    with hosts(3) as (one, two, three):
        site, names = one.site, {}
        kept = SHARD.replace(" }", ', options = ["--snapshot", "kept"] }')
        file = File(site, (one, SHARD + WORKER), (two, kept + WORKER), (three, "ttworker = { threads = 2, hash = 4 }"))
        names = [f"h{host.number}" for host in (one, two, three)]
        place = file.servers(file.run("up"))
        before = file.pids()
        equal(len(before), 5)
        position, depth, score = long_search(LONG_S)
        ask_all(4, 2, *place)
        unchanged = file.run("upgrade")
        check("unchanged: all runs as" in unchanged.out() and unchanged.err() == "", unchanged.out(), unchanged.err())
        equal(file.pids(), before)

        front = start(*place, "--fresh", *STRICT, "--depth", 60, position)
        front.wait_line("workers 4.*shards 2/2|shards 2/2.*workers 4", "err")
        status, out, err = cluster_of(another_build(site, "second"), "upgrade", file)
        equal(status, 0, out, err)
        order = [line.split(":")[0] for line in err if line.endswith(": upgraded, and serves again")]
        equal(order, names)
        only(err, f"{names[0]}: ttserver-7400: empty now")
        equal([line for line in err if line.startswith(f"{names[1]}: ttserver") and "empty" in line], [])
        after = file.pids()
        equal({which for which in after if after[which] == before[which]}, set(), "all were started again")
        front.wait_line("workers 4.*shards 2/2|shards 2/2.*workers 4", "err", begin=len(front.lines["err"]))
        front.send_signal(signal.SIGINT)
        found, = answers(front)
        check(found["depth"] >= 1 and found["shards"] == 2, found)
        found, = ask(*place, "--fresh", *STRICT, "--depth", depth, position)
        equal(found["score"], score)
        ask_all(4, 2, *place)

        # To another build on two of the hosts.
        if not SHORT:
            status, out, err = cluster_of(another_build(site, "third"), "upgrade", file, names[0], names[2])
            equal(status, 0, out, err)
            ask_all(4, 2, *place)

        # A host that cannot be upgraded, with its shard out of reach: one line, and all others stay as they are.
        before = file.pids()
        two.cut()
        status, out, err = cluster_of(path_of("abdada"), "upgrade", file)
        equal(status, 1, out, err)
        line = only(err, f"{names[1]}: ")
        check("unreachable" in line and f"; {names[0]}, {names[2]} as before: run `abdada cluster upgrade` again to continue" in line, line)
        status, out, err = cluster_of(path_of("abdada"), "upgrade", file, names[0])
        equal(status, 1, out, err)
        line = only(err, f"{names[0]}: ")
        check(f"left as it is, as {two.address}:7400 of another host is not up" in line, line)
        two.mend()
        equal(file.pids(), before)
        ask_all(4, 2, *place)
        status, out, err = cluster_of(path_of("abdada"), "upgrade", file)
        equal(status, 0, out, err)
        equal(sorted(line.split(":")[0] for line in err if line.endswith(": upgraded, and serves again")), sorted(names))
        ask_all(4, 2, *place)

        # Programs that do not run: the first host says so, the others have the old ones.
        broken = another_build(site, "fourth")
        path = os.path.join(os.path.dirname(broken), "ttserver")
        with open(path, "w", encoding="ascii") as script:
            script.write('#!/bin/sh\n[ "$1" != --version ] || { echo ttserver 0.2.0; exit; }\necho out of order >&2\nexit 1\n')
        before = file.pids()
        status, out, err = cluster_of(broken, "upgrade", file, "--timeout", 20)
        equal(status, 1, out, err)
        line = only(err, f"{names[0]}: ttserver-7400 is")
        check("out of order" in line and f"{names[1]}, {names[2]} as before" in line, line)
        rows = file.rows(status=1)
        equal({which for which, row in rows.items() if row["pid"] == before[which]},
              {which for which in before if which[0] != names[0]})

        # A search that knows one shard only is waited for no longer than asked.
        some = start("--servers", f"{two.address}:7400", "--keys", file.keys, "--depth", 60, position)
        some.wait_line("shards 1/1", "err")
        status, out, err = cluster_of(path_of("abdada"), "upgrade", file, "--timeout", int(10 * SLOWNESS))
        equal(status, 0, out, err)
        only([line[line.find("is at"):] for line in err], "is at 1 of 2 shards only after")
        check(some.running())
        some.kill()
        ask_all(4, 2, *place)
        file.run("down")


@needs_hosts
def clusters_on_the_same_hosts_do_not_disturb_each_other():
    with hosts(2, users=("anna", "bela")) as (one, two):
        def programs(port):
            shard = f'ttserver = {{ memory = "32M", port = {port} }}\n'
            return (one, shard + WORKER), (two, shard + WORKER)
        files = [File(one.site, *programs(7400)), File(one.site, *programs(7500), name="second"),
                 File(one.site, *programs(7600), user="bela")]
        starts = [file.start("up") for file in files]  # at the same time
        for process in starts:
            equal(process.wait(PATIENCE), 0, process.err())
        pids = [file.pids() for file in files]
        equal([len(each) for each in pids], [4, 4, 4])
        for file, process in zip(files, starts):
            ask_all(2, 2, *file.servers(process))
        # The port is another's: one line says so, and the worker of that cluster runs all the same.
        taken = File(one.site, (one, SHARD + WORKER), name="taken", user="bela")
        done = taken.run("up", "--timeout", 20, status=1)
        line = only(done.lines["err"], f"h{one.number}: ttserver-7400 is restarting: ")
        check("address already in use" in line, line)
        equal(taken.rows(status=1)[f"h{one.number}", "ttworker-1"]["state"], "up")
        taken.run("down")
        for gone, file in enumerate(files):
            equal([each.pids() for each in files[gone:]], pids[gone:])
            file.run("down")
        equal([host.processes(user) for host in (one, two) for user in ("anna", "bela")], [{}] * 4)
        equal([host.files(user) for host in (one, two) for user in ("anna", "bela")], [[]] * 4)


@needs_hosts
def many_hosts_behind_a_busy_sshd_are_all_reached():
    with hosts(1, sshd="MaxStartups 2:100:3\n") as (one,):
        file = File(one.site, (one, SHARD))
        with open(file.path, "a", encoding="utf-8") as out:
            for i in range(12):
                out.write(f'[[host]]\nname = "w{i}"\nssh = "anna@{one.address}"\n{WORKER}\n')
        done = file.run("status", status=1)  # nothing runs
        equal(sorted(done.lines["err"]), sorted([f"h{one.number}: ttserver-7400 is down",
                                                 *(f"w{i}: ttworker-1 is down" for i in range(12))]))
        with open(one.site.path(f"sshd.host-{one.number}.log"), encoding="utf-8") as log:
            check("MaxStartups" in log.read(), "nobody was shut out")


@needs_hosts
def a_host_in_trouble_is_one_line_and_the_rest_runs():
    with hosts(3) as (good, cut, other_key):
        site = good.site
        full = ssh_hosts.SshHost(site, home_bytes="200k")
        installed = [site.path(f"installed.{i}") for i in range(2)]
        for place in installed:
            os.mkdir(place, 0o755)
            os.chmod(place, 0o755)
            for program in ("ttserver", "ttworker"):
                shutil.copy(path_of(program), place)
        with open(os.path.join(installed[1], "ttworker"), "w", encoding="ascii") as script:
            script.write("#!/bin/sh\necho ttworker 0.0.9\n")
        same, older, none = (ssh_hosts.SshHost(site, installed=place) for place in (*installed, site.folder))
        everybody = good, cut, other_key, full, same, older, none
        site.know(everybody)
        names = {host: f"h{host.number}" for host in everybody}
        with open(site.path("known_hosts"), encoding="ascii") as known:
            lines = known.read().splitlines()
        lines[2] = f"{other_key.address} {lines[0].split(' ', 1)[1]}"
        site.write("known_hosts", "\n".join(lines) + "\n")
        cut.cut()
        on_path = 'programs = "installed"\n'
        file = File(site, (good, SHARD + WORKER), (cut, SHARD), (other_key, WORKER), (full, WORKER),
                    (same, on_path + WORKER), (older, on_path + WORKER), (none, on_path + WORKER))
        done = file.run("up", status=1)
        for host, words in ((cut, "unreachable: "), (other_key, "its host key is not the one that this machine knows"),
                            (full, "disk full: "), (older, "ttworker 0.0.9 is installed there, and abdada "),
                            (none, "ttworker is not installed there")):
            only(done.lines["err"], f"{names[host]}: ")
            only(done.lines["err"], f"{names[host]}: {words}")
        rows = file.rows(status=1)
        equal({which for which, row in rows.items() if row["state"] == "up"},
              {(names[good], "ttserver-7400"), (names[good], "ttworker-1"), (names[same], "ttworker-1")})
        check(any("/usr/local/bin/ttworker" in words for words in same.processes("anna").values()))
        equal((full.processes("anna"), full.files("anna")), ({}, []))
        ask_all(2, 1, "--servers", f"{good.address}:7400,{cut.address}:7400", "--keys", file.keys)
        done = file.run("down", status=1)
        equal({line.split(":")[0] for line in done.lines["err"] if "nothing is left" not in line},
              {names[cut], names[other_key]})
        equal([host.processes("anna") for host in (good, same)], [{}, {}])
        equal([host.files("anna") for host in (good, same, older, none)], [[]] * 4)


if __name__ == "__main__":
    sys.exit(main([
        a_wrong_file_is_one_line_that_names_the_key,
        a_file_may_begin_with_a_bom,
        wrong_use_is_one_line,
        every_key_of_the_example_is_one,
        times_that_no_clock_shows_are_refused,
        hosts_of_the_past_are_removed_by_names_alone,
        a_log_is_kept_within_bounds,
        a_process_that_has_the_number_of_another_is_left_alone,
        a_program_has_one_supervisor,
        one_silent_shard_of_a_process_is_enough,
        one_call_at_a_time_changes_a_cluster,
        all_threads_are_the_cpus_that_a_login_may_use,
        what_ssh_prints_is_bounded,
        nothing_of_here_is_forwarded_and_no_hint_without_a_host,
        a_host_that_has_never_answered_is_forgotten,
        the_hint_can_be_pasted_into_a_shell,
        a_cluster_without_keys_runs_where_others_are_set,
        what_has_to_be_killed_is_a_line_and_a_failure,
        a_login_that_was_shut_out_is_tried_again,
        an_upgrade_believes_no_top_that_says_nothing,
        an_upgrade_waits_for_all_and_says_for_what,
        an_upgrade_waits_for_the_sessions_that_workers_have,
        a_cluster_starts_searches_loses_a_host_and_ends,
        bench_measures_the_hosts_and_leaves_them_as_they_were,
        what_a_login_does_is_not_what_a_host_says,
        what_crashes_comes_back_and_the_logs_say_it,
        up_changes_what_differs_and_nothing_else,
        an_upgrade_goes_from_host_to_host_while_a_search_goes_on,
        clusters_on_the_same_hosts_do_not_disturb_each_other,
        many_hosts_behind_a_busy_sshd_are_all_reached,
        a_host_in_trouble_is_one_line_and_the_rest_runs,
    ], unstable=STARVED))
