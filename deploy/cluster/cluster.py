"""abdada cluster: starts, watches and stops the programs of a cluster on many hosts, over ssh, from one file.

    cluster.py HOST-SCRIPT ABDADA VERSION ARGUMENT...

The program `abdada` has the files of this folder in it and runs them with
python3 (cluster.c). Nothing but Python's standard library. Hosts are worked on at the same time, a thread each; one
that fails is one line and keeps no other one waiting for longer than its time-outs.
"""
import argparse
import concurrent.futures
import contextlib
import datetime
import errno
import fcntl
import hashlib
import json
import os
import queue
import re
import shlex
import socket
import subprocess
import sys
import threading
import time

from cluster_bench import bench as bench_hosts
from cluster_file import HOST_NAME, NAME, Cluster, Trouble, Wrong, at, destination, matches
from cluster_host import BOUND_S, LONG_BOUND_S, Host, printable, say

FILE = "cluster.toml"
COLUMNS = "host what address state pid version since".split()
AT_ONCE = 64  # hosts
TRIES = 3  # of 5 s each, before a shard that does not answer is down: a busy machine may be late once
USER_NAME = re.compile(r"[A-Za-z0-9_.-]{1,31}")  # of common/keys/keys.h
LINES_WAITING = 1000  # of logs, for whoever reads the output


class Supplies:
    """What this machine has for the hosts."""

    def __init__(self, host_script, abdada, version):
        self.abdada, self.version = abdada, version
        with open(host_script, "rb") as file:
            self.script = file.read()
        self.programs, self.keys = {}, {}  # {name: (contents, version)}, {name: contents}
        self.worker_keys = {}  # {host's name: contents of its worker.secret}
        # Of programs that are run here, with --config /dev/null: the command line says all.
        self.environment = {key: value for key, value in os.environ.items() if not key.startswith("ABDADA_")}

    def load(self, cluster, may_make_keys):
        for what in sorted({each.what for host in cluster.hosts if not host.is_installed for each in host.programs}):
            path = os.path.join(os.path.dirname(self.abdada), what)
            try:
                with open(path, "rb") as file:
                    contents = file.read()
                done = subprocess.run([path, "--version"], stdout=subprocess.PIPE, check=True)
                self.programs[what] = contents, done.stdout.decode().split()[1]  # of "NAME VERSION", before lines on the build
            except (OSError, subprocess.CalledProcessError, IndexError) as error:
                raise Trouble(f"{path}, to be copied: {getattr(error, 'strerror', None) or error} "
                              f"(or say programs = \"installed\")") from None
        if cluster.keys is None:
            return
        if may_make_keys and not os.path.exists(cluster.keys):
            self.keygen(cluster.keys)
            say(f"made {cluster.keys}: the keys of this cluster. Keep them: anyone with them can use it")
        try:
            for host in cluster.hosts:
                if any(each.what == "ttworker" for each in host.programs):
                    self.worker_keys[host.name] = self.worker_key(cluster.keys, host.name)
            allowed = sorted(os.listdir(os.path.join(cluster.keys, "allowed")))
            for name in ("server.public", "server.secret", "monitor.secret",
                         *(f"allowed/{name}" for name in allowed if name.endswith(".public") and name[0] != ".")):
                with open(os.path.join(cluster.keys, name), "rb") as file:
                    self.keys[name] = file.read()
        except OSError as error:
            raise Trouble(f"{error.filename}: {error.strerror} (keys are made by `abdada keygen DIR`)") from None


    def keygen(self, *words):
        done = subprocess.run([self.abdada, "keygen", *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        if done.returncode != 0:
            raise Trouble(done.stderr.decode("utf-8", "replace").strip())

    def worker_key(self, keys, host):
        """The host's own, so that it alone can be put out; made once: it may have been taken back since."""
        user = worker_user(host)
        path = os.path.join(keys, f"{user}.secret")
        os.listdir(os.path.join(keys, "allowed"))  # else keygen would make a key that nobody lets in
        if not os.path.exists(path):
            self.keygen(keys, "--name", user, "--role", "worker")
        with open(path, "rb") as file:
            return file.read()


def worker_user(host):
    """The user that a host's workers are; a name that keygen takes, whatever the host's."""
    user = f"worker-{host}"
    return user if USER_NAME.fullmatch(user) else f"worker-{hashlib.sha256(host.encode()).hexdigest()[:16]}"


def beside(cluster, kind):
    """The path of a file of ours beside the cluster's."""
    return os.path.join(cluster.folder, f".{os.path.basename(cluster.path)}.{kind}")


@contextlib.contextmanager
def alone(cluster):
    """One call at a time changes a cluster. The lock is a file of its own: NFS locks only what is open for writing, and
    an editor may put another file in the place of the cluster's."""
    path, is_locked = beside(cluster, "lock"), False
    with contextlib.ExitStack() as files:
        try:
            while not is_locked:
                try:
                    file = files.enter_context(open(path, "a", encoding="utf-8"))
                except PermissionError:  # another user's, which can be locked all the same
                    file = files.enter_context(open(path, encoding="utf-8"))
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                with contextlib.suppress(FileNotFoundError):  # the call before has removed it
                    is_locked = os.path.samestat(os.fstat(file.fileno()), os.stat(path))
        except BlockingIOError:
            raise Trouble(f"{cluster.path}: another `abdada cluster` uses it now") from None
        except OSError as error:
            say(f"{path}: cannot lock it ({error.strerror}): run no other `abdada cluster` with {cluster.path} meanwhile")
        try:
            yield
        finally:
            if is_locked:
                with contextlib.suppress(OSError):
                    os.unlink(path)


# ---- hosts ----

def hosts_of(cluster, supplies, names=()):
    """Those of the file, or of these names."""
    hosts = [Host(supplies, cluster, cluster.name, each.name, each.ssh, each) for each in cluster.hosts]
    for name in names:
        if name not in [host.name for host in hosts]:
            raise Wrong(f"no host '{name}' in {cluster.path}: {', '.join(host.name for host in hosts)}")
    return [host for host in hosts if not names or host.name in names]


# Where earlier calls may have started something, in a file beside the cluster's: what is taken out of that, a host or a
# name, must be stopped all the same. A line [cluster, host, ssh] for each host that has ever answered.

def past_path(cluster):
    return beside(cluster, "hosts")


def past_of(cluster, supplies):
    past = []
    try:
        with open(past_path(cluster), encoding="utf-8") as file:
            lines = file.read().splitlines()
    except (OSError, ValueError):
        return []
    for line in lines:
        with contextlib.suppress(ValueError, TypeError, LookupError):
            found = json.loads(line)
            for name, host, ssh in found if isinstance(found[0], list) else [found]:  # all in one line: of earlier versions
                past.append(Host(supplies, cluster, matches(NAME, "a name")(name), matches(HOST_NAME, "a name")(host),
                                 destination(ssh)))  # names are of folders to be removed
    return past


def gone_from(cluster, hosts):
    here = {host.identity() for host in hosts}
    return [host for host in past_of(cluster, hosts[0].supplies) if host.identity() not in here]


def remove_gone(cluster, hosts, bound):
    def one(host):
        try:
            host.remove(bound)
        except (Trouble, *UNLIKELY) as trouble:
            raise Trouble(f"{trouble_of(trouble)}; {host.name} is no longer in {cluster.path}, and what was started there may "
                          f"still run. If the host is gone for good, delete its line in {past_path(cluster)}") from None
    each_host(hosts, one)


def remember(cluster, hosts):
    """From now on each of these is kept once it answers, before anything is started there: one that never has, as its
    name is mistyped, would be looked for in vain ever after."""
    past, lock = set(past_of(cluster, hosts[0].supplies)), threading.Lock()

    def answered(host):
        with lock:
            if host.identity() not in {each.identity() for each in past}:
                past.add(host)
                keep_past(cluster, past)
    for each in hosts:
        each.answered = answered


def keep_past(cluster, hosts):
    path, rows = past_path(cluster), sorted({host.identity() for host in hosts})
    try:
        if rows:
            with open(path + ".new", "w", encoding="utf-8") as file:
                file.writelines(json.dumps(row) + "\n" for row in rows)
            os.replace(path + ".new", path)
        elif os.path.exists(path):
            os.unlink(path)
    except OSError as error:
        say(f"{path}: {error.strerror}: hosts removed from {cluster.path} later will not be stopped")


# ---- commands: each returns the exit status ----

UNLIKELY = KeyError, ValueError, OSError  # a host said something else than it should, or not all of it


def trouble_of(error):
    return str(error) if isinstance(error, Trouble) else f"it cannot be worked on: {error!r}"


def each_host(hosts, how, at_once=0):
    """Calls how(host) for all at once. What fails is one line, and the host's trouble."""
    def one(host):
        try:
            how(host)
        except (Trouble, *UNLIKELY) as trouble:
            host.trouble = trouble_of(trouble)
            say(f"{host.name}: {host.trouble}")
    with concurrent.futures.ThreadPoolExecutor(at_once or AT_ONCE) as pool:
        list(pool.map(one, hosts))


def show(hosts):
    """The table. Whether all in it is up."""
    rows = [row for host in hosts for row in host.rows()]
    lines = [[word.upper() for word in COLUMNS]]
    for row in rows:
        again = f" (restarts: {row.restarts})" if row.restarts else ""
        lines.append([row.host, row.what, row.address, row.state + again, str(row.pid or "-"), row.version or "-",
                      time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(row.began)) if row.began else "-"])
    widths = [max(len(line[i]) for line in lines) for i in range(len(COLUMNS))]
    for line in lines:
        print(printable("  ".join(word.ljust(width) for word, width in zip(line, widths)).rstrip()))
    return all(row.state == "up" for row in rows)


def show_json(hosts):
    rows = [row for host in hosts for row in host.rows()]
    for row in rows:
        began = datetime.datetime.fromtimestamp(row.began).astimezone().isoformat("T", "seconds") if row.began else None
        values = [row.host, row.what, row.address, row.state, row.pid, row.version, began]
        print(json.dumps({**dict(zip(COLUMNS, values)), "restarts": row.restarts, "why": row.why}))
    return all(row.state == "up" for row in rows)


def check_reach(hosts):
    """Says which shards this machine does not reach although they are up. Others may reach them."""
    def one(place):
        try:
            with socket.create_connection(place, 3) as reached:
                if reached.getsockname() == reached.getpeername():  # nobody listens: it met itself
                    raise ConnectionRefusedError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED))
        except OSError as error:
            say(f"{at(*place)}: not reached from this machine ({error.strerror or error}): a firewall, or an address "
                f"that only the host itself knows? (then: address = \"IP\" for this host)")
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(one, [(host.wanted.address, each.values.port) for host in hosts for each in host.programs
                            if each.what == "ttserver" and host.found and each.name in host.found
                            and host.found[each.name].phase == "up"]))


def complain(hosts):
    """A line for each program that is not up, where the host has none already."""
    for host in hosts:
        for row in host.rows():
            if row.state != "up" and not host.trouble:
                say(f"{host.name}: {row.what} is {row.state}{f': {row.why}' if row.why else ''}")


def bring_up(cluster, supplies, hosts, again, bound):
    """up, or with `again` restart."""
    supplies.load(cluster, may_make_keys=not again)
    gone = []
    if not again:
        gone = gone_from(cluster, hosts)
        remove_gone(cluster, gone, bound)
        left = {host.identity() for host in gone if not host.trouble}
        keep_past(cluster, [host for host in past_of(cluster, supplies) if host.identity() not in left])
    remember(cluster, hosts)  # `restart` starts what is not there yet, too
    each_host(hosts, lambda host: host.prepare(again, bound))
    each_host(hosts, lambda host: host.start_workers(bound))
    complain(hosts)
    check_reach(hosts)
    is_up = show(hosts)
    if is_up and not any(host.is_changed or host.trouble for host in hosts + gone):
        print(f"\nunchanged: all runs as {cluster.path} says")
    if any(row.state == "up" for host in hosts for row in host.rows()):
        print(f"\nabdada analyse --servers {shlex.quote(','.join(cluster.servers))}"
              f"{f' --keys {shlex.quote(cluster.keys)}' if cluster.keys else ''} startpos")
    return 0 if is_up and not any(host.trouble or host.killed for host in hosts + gone) else 1


def up(cluster, supplies, a):
    return bring_up(cluster, supplies, hosts_of(cluster, supplies), False, a.timeout)


def restart(cluster, supplies, a):
    return bring_up(cluster, supplies, hosts_of(cluster, supplies, a.host), True, a.timeout)


def tables_of(cluster, supplies):
    """{address: figures} of the shards that are up as this machine sees them, and {id: figures} of the open jobs, as
    `abdada top` has them."""
    words = [supplies.abdada, "top", "--config", "/dev/null", "--once", "--json", "--wait", "5000", "--servers", ",".join(cluster.servers),
             *(["--keys", cluster.keys] if cluster.keys else [])]
    done = subprocess.run(words, env=supplies.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          stdin=subprocess.DEVNULL)
    try:
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        shards = [row for row in rows if row["kind"] == "shard"]
        now = {row["address"]: row for row in shards if row["state"] == "up"}
        jobs = {row["job"]: row for row in rows if row["kind"] == "job"}
        is_answer = bool(shards) and (all(isinstance(row["workers"], int) for row in now.values()) and
                                      all(isinstance(row["shards"], int) for row in jobs.values()))
    except (ValueError, KeyError, TypeError):
        is_answer = False
    if not is_answer:  # what is not known is not waited for
        said = " ".join(done.stderr.decode("utf-8", "replace").split())
        raise Trouble(f"abdada top: {said or f'no answer, exit status {done.returncode}'}")
    return now, jobs


def wait_for_all(cluster, supplies, workers, had, bound):
    """Until each shard of the file is up and has so many workers, and those of the jobs `had` that are still open. A job
    that does not come back is a line and stops nothing: its owner alone could bring it."""
    end = time.monotonic() + bound
    while True:
        now, jobs = tables_of(cluster, supplies)
        late = None
        for address in cluster.servers:
            if address not in now:
                late = f"{address} is not up again, as seen from this machine,"
                break
            if now[address]["workers"] < workers:
                late = f"{address} has {now[address]['workers']} of {workers} workers again"
        lost = [job for job in sorted(had & set(jobs)) if jobs[job]["shards"] < len(now)]
        if late is None and not lost:
            return
        if time.monotonic() > end:
            break
        time.sleep(0.2)
    if late:
        raise Trouble(f"{late} after {bound} s")
    for job in lost:
        say(f"job {job} of {jobs[job]['owner']} is at {jobs[job]['shards']} of {len(now)} shards only after {bound} s: "
            f"continuing without it")


def sessions_of(hosts):
    """How many workers a shard sees of those that run on hosts that can be reached, and whose key it takes."""
    def one(host):
        supplies = host.supplies
        if supplies.worker_keys and f"allowed/{worker_user(host.name)}.public" not in supplies.keys:
            return 0
        try:
            host.call("probe")
        except (Trouble, *UNLIKELY):
            return 0
        return sum(1 if each.values.engine else host.threads(each)  # an engine has one, whatever its threads are
                   for each in host.programs if each.what == "ttworker"
                   and each.name in host.found and host.found[each.name].phase == "up")
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        return sum(pool.map(one, hosts))


def upgrade_host(cluster, supplies, host, bound):
    """One host. Whether anything there was started again."""
    others = [address for address in cluster.servers if address not in host.wanted.servers]
    for _ in range(TRIES):
        now, jobs = tables_of(cluster, supplies) if others else ({}, {})
        down = [address for address in others if address not in now]
        if not down:
            break
    if down:  # searches would lose one more
        raise Trouble(f"left as it is, as {', '.join(down)} of another host {'are' if down[1:] else 'is'} not up as seen from "
                      f"this machine (`abdada cluster restart HOST` starts what is down)")
    host.prepare(False, bound)
    host.start_workers(bound)
    for row in host.rows():
        if row.state != "up":
            raise Trouble(f"{row.what} is {row.state}{f': {row.why}' if row.why else ''}")
    again = [each for each in host.begun if each.name in host.was]
    lost = [each.name for each in again if each.what == "ttserver" and not each.keeps_results()]
    if lost:
        say(f"{host.name}: {', '.join(lost)}: empty now, as it has neither --snapshot nor --backing")
    had = {job for job, row in jobs.items() if row["shards"] == len(now)}  # others, of some shards, are not waited for
    wait_for_all(cluster, supplies, sessions_of(hosts_of(cluster, supplies)), had, bound or BOUND_S)  # also after a call that gave up there
    return host.is_changed


def upgrade(cluster, supplies, a):
    """Host by host, each when the one before serves again; ends with the first that does not. Where an earlier call has
    left a shard down is the first, as no other host may follow before."""
    supplies.load(cluster, may_make_keys=False)
    hosts = hosts_of(cluster, supplies, a.host)
    now, _ = tables_of(cluster, supplies)
    hosts.sort(key=lambda host: all(address in now for address in host.wanted.servers))
    remember(cluster, hosts)
    done, left = [], [host.name for host in hosts]

    def one(host):
        try:
            if upgrade_host(cluster, supplies, host, a.timeout):
                say(f"{host.name}: upgraded, and serves again")
                done.append(host)
        except (Trouble, *UNLIKELY) as trouble:
            rest = f"; {', '.join(left[1:])} as before" if left[1:] else ""
            raise Trouble(f"{trouble_of(trouble)}{rest}: run `abdada cluster upgrade` again to continue") from None
    for host in hosts:
        each_host([host], one)
        if host.trouble:
            return 1
        left.pop(0)
    is_up = show(hosts)
    if not done:
        print(f"\nunchanged: all runs as {cluster.path} says")
    return 0 if is_up and not any(host.killed for host in hosts) else 1


def status(cluster, supplies, a):
    hosts = hosts_of(cluster, supplies)
    each_host(hosts, Host.states)
    if not a.json:
        complain(hosts)
    is_up = (show_json if a.json else show)(hosts)
    return 0 if is_up and not any(host.trouble for host in hosts) else 1


def down(cluster, supplies, a):
    hosts = hosts_of(cluster, supplies)
    gone = gone_from(cluster, hosts)
    each_host(hosts, lambda host: host.remove(a.timeout))
    remove_gone(cluster, gone, a.timeout)
    left = {host.identity() for host in hosts + gone if host.trouble}
    keep_past(cluster, [host for host in past_of(cluster, supplies) if host.identity() in left])
    return 1 if any(host.trouble or host.killed for host in hosts + gone) else 0


def bench(cluster, supplies, a):
    supplies.load(cluster, may_make_keys=False)
    return bench_hosts(cluster, supplies, hosts_of(cluster, supplies), each_host, a)


def logs(cluster, supplies, a):
    hosts, running, leaving = hosts_of(cluster, supplies, a.host), [], threading.Event()
    lines, end = queue.Queue(LINES_WAITING), False

    def started(process):
        running.append(process)
        if leaving.is_set():
            process.kill()

    def read(host):
        try:
            host.follow(lambda line: lines.put(f"{host.name} {printable(line)}\n"), started, "logs", a.lines,
                        "follow" if a.follow else "")
        except Trouble:
            if not leaving.is_set():
                raise

    def read_all():
        each_host(hosts, read, len(hosts))  # all at once: what is followed has no end
        lines.put(None)

    threading.Thread(target=read_all, daemon=True).start()
    try:
        for line in iter(lines.get, None):
            sys.stdout.write(line)
            if lines.empty():
                sys.stdout.flush()
        end = True
    except KeyboardInterrupt:
        pass
    finally:
        leaving.set()
        for process in list(running):
            process.kill()
        while not end:  # or who reads a host could wait for room
            end = lines.get() is None
    return 1 if any(host.trouble for host in hosts) else 0


EXAMPLE = """A file for two hosts; deploy/cluster.example.toml shows every key:

  name = "chess"
  [[host]]
  ssh = "host-a"                  # as you write it after ssh
  ttserver = { memory = "4G" }
  [[host]]
  ssh = "host-b"
  ttserver = { memory = "4G" }
  ttworker = { threads = "all", hash = 1024 }

Examples:
  $ abdada cluster up
  $ abdada cluster -f office.toml status
"""
COMMANDS = {
    "up": (up, "start the programs that the file describes",
           "Copies programs and keys, starts shards, then workers, and waits until all are ready. What runs as the "
           "file says is left alone, what differs from it is restarted, what is not in it any more is stopped."),
    "status": (status, "show what runs", "Shows what runs. Exit status 1 if something is not up."),
    "logs": (logs, "print logs, or follow them",
             "Prints the last lines of the logs, with host and program before each."),
    "restart": (restart, "start programs again", "Does what `up` does, and starts what runs again."),
    "upgrade": (upgrade, "replace the programs, one host after the other",
                "Does what `up` does, but for one host after the other, in the order of the file: each when all shards "
                "are up again, as `abdada top` sees them, and all workers are back there, and jobs that all shards had, so that searches go on. A "
                "host whose shards are down is the first; none is touched while a shard of another one is down. What "
                "a shard has in its table is lost unless it has --snapshot or --backing. Ends with the first host "
                "that fails; the others stay as they are, and `upgrade` again continues."),
    "bench": (bench, "measure what the hosts bring",
              "Measures the running cluster with one host, two and all: nodes, depth in a time, an Othello ending, time for messages. In about ten "
              "minutes, during which workers are stopped and started again; let no other search run meanwhile."),
    "down": (down, "stop everything and remove it",
             "Stops everything, and removes what `up` has copied. Keys here and snapshots of shards stay."),
}


class Help(argparse.RawDescriptionHelpFormatter):
    """As of the other commands."""

    def add_usage(self, usage, actions, groups, prefix=None):
        super().add_usage(usage, actions, groups, "Usage: " if prefix is None else prefix)


class Parser(argparse.ArgumentParser):
    def error(self, message):
        sys.stderr.write(f"{self.prog}: {message} (see --help)\n")
        sys.exit(2)


def read_arguments(words, version):
    parser = Parser(prog="abdada cluster", formatter_class=Help, epilog=EXAMPLE,
                    description="A cluster on many hosts, over ssh, from one file. Hosts need sh, tar and the shared "
                                "libraries\nof the programs; nothing there needs root.")
    parser.add_argument("--version", action="version", version=f"abdada cluster {version}")
    parser.add_argument("-f", "--file", default=FILE, metavar="FILE", help=f"the cluster (default: {FILE})")
    commands = parser.add_subparsers(title="commands", dest="command", metavar="COMMAND", required=True)
    for name, (_, short, about) in COMMANDS.items():
        command = commands.add_parser(name, help=short, description=about, formatter_class=Help,
                                      epilog="Examples:" + "".join(
                                          f"\n  $ abdada cluster {name}{file}" for file in ("", " -f office.toml")))
        command.add_argument("-f", "--file", default=argparse.SUPPRESS, metavar="FILE",
                             help=f"the cluster (default: {FILE})")
        if name == "bench":
            command.add_argument("--quick", action="store_true", help="in about a minute, less exactly")
        if name in ("up", "restart", "upgrade", "down", "bench"):
            command.add_argument("--timeout", type=int, metavar="S",
                                 help=f"seconds to wait until all are ready, or have stopped (default {BOUND_S}, and "
                                      f"{LONG_BOUND_S} for a host whose shards keep results)")
        if name in ("logs", "restart", "upgrade"):
            command.add_argument("host", nargs="*", metavar="HOST", help="only these (default: all)")
        if name in ("status", "bench"):
            command.add_argument("--json", action="store_true", help="one object a line")
        if name == "logs":
            command.add_argument("-n", "--lines", type=int, default=20, metavar="N",
                                 help="lines of each program (default 20)")
            command.add_argument("--follow", action="store_true", help="print new lines as they appear")
    a = parser.parse_args(words)
    timeout = getattr(a, "timeout", None)
    if getattr(a, "lines", 0) < 0 or timeout is not None and timeout < 1:
        parser.error("--lines must not be negative" if hasattr(a, "lines") else "--timeout must be 1 or more")
    return a


def do(host_script, abdada, version, words):
    try:
        a = read_arguments(words, version)
    except SystemExit as end:  # --help, --version, or wrong use
        return end.code
    cluster, supplies = Cluster(a.file), Supplies(host_script, abdada, version)
    changes = a.command in ("up", "restart", "upgrade", "down", "bench")
    try:
        with alone(cluster) if changes else contextlib.nullcontext():
            return COMMANDS[a.command][0](cluster, supplies, a)
    except KeyboardInterrupt:
        again = "upgrade" if a.command == "upgrade" else "up"
        say(f"abdada cluster: interrupted; the next `{again}` or `down` finishes what is half done")
        return 130


def main(host_script, abdada, version, *words):
    try:
        code = do(host_script, abdada, version, words)
        sys.stdout.flush()
        return code
    except Trouble as trouble:
        say(f"abdada cluster: {trouble}")
        return 2 if isinstance(trouble, Wrong) else 1
    except BrokenPipeError:  # who read the output has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 1
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        say(f"abdada cluster: {error.filename or 'standard output'}: {error.strerror}")
        return 1
    except KeyboardInterrupt:
        say("abdada cluster: interrupted")
        return 130


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
