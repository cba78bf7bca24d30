"""The file of a cluster: what it says, read and checked. Of `abdada cluster` (cluster.py).

Everything that is wrong with the file is one line that names the key.
"""
import argparse
import os
import platform
import re
import selectors
import subprocess
import sys
import time

try:
    import tomllib
except ImportError:
    try:
        import tomli as tomllib  # type: ignore[no-redef]
    except ImportError:
        sys.exit(f"abdada cluster: needs Python 3.11 or later, or its module tomli (Debian: python3-tomli; "
                 f"one of `pip install --user` is not seen); python3 on PATH is {platform.python_version()}")

SHARDS_MAX = 64  # of a list of servers
OUTPUT_MAX = 4 << 20  # bytes: more than any answer has, and little enough for many hosts at once
GRACE_S = 30  # that a host may be slower than it was told to be
OURS = ("--listen", "--shards", "--memory", "--keys", "--insecure", "--check",
        "--servers", "-s", "--table", "--threads", "-j", "--hash", "--engine")
NAME = re.compile(r"[A-Za-z0-9_-]+")
HOST_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]*")
CONTROL = r"\x00-\x1f\x7f"
ADDRESS = re.compile(rf"[^\s,\[\]{CONTROL}]+")
SIZE = re.compile(r"[1-9][0-9]*[KMGT](i?B)?")


class Trouble(Exception):
    """One line for people: something failed."""


class Wrong(Trouble):
    """One line for people: the command or the file is wrong."""


def at(host, port):
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def talk(words, send, seconds, take=None, started=None):
    """Runs ssh, sends it that, and returns its status and what it has printed on stdout and on stderr. Ends it with
    Trouble where that takes longer, or would have to keep more than OUTPUT_MAX bytes of either.
    take: its input stays open, and take(out) is called with what has come and is not taken yet, of which it removes what
    it takes; once it has returned True, time does not matter any more. started: is called with the process."""
    try:
        process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    except FileNotFoundError:
        raise Trouble("no `ssh` on PATH (Debian: openssh-client)") from None
    with process, selectors.DefaultSelector() as ready:
        try:
            if started:
                started(process)
            return exchange(process, ready, send, time.monotonic() + seconds, take)
        except subprocess.TimeoutExpired:
            raise Trouble(f"no answer within {seconds} s"
                          f"{' (does its login wait for something on standard input?)' if take else ''}") from None
        finally:
            process.kill()  # it has ended unless something went wrong


def exchange(process, ready, send, end, take):
    send = memoryview(send)
    kept = {process.stdout: bytearray(), process.stderr: bytearray()}
    for file in kept:
        ready.register(file, selectors.EVENT_READ)
    if send:
        os.set_blocking(process.stdin.fileno(), False)
        ready.register(process.stdin, selectors.EVENT_WRITE)
    elif not take:
        process.stdin.close()

    def left():
        return None if end is None else max(0, end - time.monotonic())

    while any(file in ready.get_map() for file in kept):
        found = ready.select(left())
        if left() == 0:
            raise subprocess.TimeoutExpired(process.args, 0)
        for key, _ in found:
            file = key.fileobj
            if file is process.stdin:
                try:
                    send = send[os.write(file.fileno(), send[:1 << 16]):]
                except BlockingIOError:
                    continue
                except BrokenPipeError:
                    send = send[:0]
                if not send:
                    ready.unregister(file)
                    if not take:
                        file.close()
                continue
            piece = os.read(file.fileno(), 1 << 16)
            if not piece:
                ready.unregister(file)
            kept[file] += piece
            if take and file is process.stdout and take(kept[file]):
                end = None
            if len(kept[file]) > OUTPUT_MAX:
                raise Trouble(f"it prints more than {OUTPUT_MAX >> 20} MiB, which no answer has: given up")
    return process.wait(left()), *map(bytes, kept.values())


# A kind takes a value of the file, and returns what it means, or raises ValueError with what it should be.

def text(value):
    if type(value) is not str or value == "" or re.search(f"[{CONTROL}]", value):
        raise ValueError("a text")
    return value


def flag(value):
    if type(value) is not bool:
        raise ValueError("true or false")
    return value


def number(least, most):
    def kind(value):
        if type(value) is not int or not least <= value <= most:
            raise ValueError(f"a whole number from {least} to {most}")
        return value
    return kind


def matches(pattern, what):
    def kind(value):
        if type(value) is not str or not pattern.fullmatch(value):
            raise ValueError(what)
        return value
    return kind


def one_of(*words):
    def kind(value):
        if value not in words:
            raise ValueError(" or ".join(f'"{word}"' for word in words))
        return value
    return kind


def threads(value):
    if value == "all":
        return value
    try:
        return number(1, 1024)(value)
    except ValueError as error:
        raise ValueError(f'{error}, or "all"') from None


def destination(value):
    if type(value) is not str or not re.fullmatch(rf"[^\s{CONTROL}-][^\s{CONTROL}]*", value):
        raise ValueError("what you would write after `ssh`: [USER@]HOST, or a Host of your ssh configuration")
    return value


def texts(value):
    if type(value) is not list:
        raise ValueError("a list of texts")
    return [text(each) for each in value]


def options(value):
    for option in texts(value):
        if option.split("=")[0] in OURS:
            raise ValueError(f"options that the file has no key for ({option} is not one)")
    return value


def tables(value):
    if type(value) is dict:
        value = [value]
    if type(value) is not list or any(type(each) is not dict for each in value):
        raise ValueError("a table, or several")
    return value


def table(value):
    if type(value) is not dict:
        raise ValueError("a table")
    return value


NEEDED = object()
PLACES = one_of("copied", "installed")
TOP_KEYS = {"name": (matches(NAME, "letters, digits, - and _"), NEEDED),
            "programs": (PLACES, "copied"),
            "keys": (text, None), "insecure": (flag, False), "ssh": (table, {}), "host": (tables, NEEDED)}
SSH_KEYS: dict = {"config": (text, None), "options": (texts, []), "connect_timeout": (number(1, 600), 10)}
HOST = matches(ADDRESS, "a host name or an IP address, without a port and without brackets")
HOST_KEYS = {"ssh": (destination, NEEDED), "name": (text, None), "programs": (PLACES, None),
             "address": (HOST, None),
             "ttserver": (tables, []), "ttworker": (tables, [])}
SHARD_KEYS = {"port": (number(1, 65535), 7400), "shards": (number(1, SHARDS_MAX), 1),
              "memory": (matches(SIZE, 'a size with its unit, as "512M" or "4G"'), "256M"),
              "listen": (HOST, None), "options": (options, [])}
WORKER_KEYS: dict = {"threads": (threads, 1), "hash": (number(1, 1 << 20), 64), "count": (number(1, 256), 1),
               "engine": (text, None), "options": (options, [])}


def read_table(where, found, keys):
    """A namespace with the values of `keys`, or their defaults."""
    for key in found:
        if key not in keys:
            raise Wrong(f"{where}unknown key '{key}' (known: {', '.join(sorted(keys))})")
    values = argparse.Namespace()
    for key, (kind, default) in keys.items():
        if key in found:
            try:
                setattr(values, key, kind(found[key]))
            except ValueError as error:
                raise Wrong(f"{where}{key} = {found[key]!r}: must be {error}") from None
        elif default is NEEDED:
            raise Wrong(f"{where}{key} is missing")
        else:
            setattr(values, key, default)
    return values


class Program:
    """A process that the file wants on a host, where it is called `name`: what = ttserver | ttworker."""

    def __init__(self, what, name, values, address="-"):
        self.what, self.name, self.values, self.address = what, name, values, address

    def keeps_results(self):
        """Whether a shard that is started again has the results that it had."""
        return any(option.split("=")[0] in ("--snapshot", "--backing") for option in self.values.options)


class Cluster:
    """What a file says. hosts: each with name, ssh, address, is_installed and its programs, shards first."""

    def __init__(self, path):
        self.path, self.folder = path, os.path.dirname(path)
        try:
            with open(path, "rb") as file:
                found = tomllib.loads(file.read().decode("utf-8-sig"))
        except OSError as error:
            raise Wrong(f"{path}: {error.strerror} (another file: -f FILE; an example: `abdada cluster --help`)"
                        ) from None
        except ValueError as error:  # of TOML, or of UTF-8
            raise Wrong(f"{path}: {error}") from None
        top = read_table(f"{path}: ", found, TOP_KEYS)
        ssh = read_table(f"{path}: ssh: ", top.ssh, SSH_KEYS)
        if top.insecure and top.keys:
            raise Wrong(f"{path}: keys and insecure exclude each other")
        self.name = top.name
        self.keys = None if top.insecure else self.beside(top.keys or "keys")
        self.connect_timeout = ssh.connect_timeout
        self.ssh = ["ssh", *(["-F", self.beside(ssh.config)] if ssh.config else []), *ssh.options]
        self.hosts = [self.read_host(number, each, top.programs) for number, each in enumerate(top.host, 1)]
        self.servers = []
        names = [host.name for host in self.hosts]
        for host in self.hosts:
            if names.count(host.name) > 1:
                raise Wrong(f"{path}: two hosts are called {host.name}: give one of them another `name`")
            first = len(self.servers)
            for shard in host.programs:
                self.add_shards(f"{path}: host {host.name}: ", host.address, shard)
            host.servers = self.servers[first:]
        if not 1 <= len(self.servers) <= SHARDS_MAX:
            raise Wrong(f"{path}: {len(self.servers)} shards (ttserver): must be 1 to {SHARDS_MAX}")

    def beside(self, path):
        return os.path.join(self.folder, os.path.expanduser(path))

    def read_host(self, number, found, programs):
        where = f"{self.path}: host {number}: "
        host = read_table(where, found, HOST_KEYS)
        host.name = host.name or re.sub(r"^ssh://(.*?)(:\d+)?/?$", r"\1", host.ssh).rpartition("@")[2]
        if not HOST_NAME.fullmatch(host.name):
            raise Wrong(f"{where}name = {host.name!r}: must be letters, digits, and . : _ - after the first")
        where = f"{self.path}: host {host.name}: "
        host.is_installed = (host.programs or programs) == "installed"
        host.address = host.address or self.hostname(host)
        host.programs = []
        for i, each in enumerate(host.ttserver, 1):
            shard = read_table(f"{where}ttserver {i}: ", each, SHARD_KEYS)
            last = shard.port + shard.shards - 1
            host.programs.append(Program("ttserver", f"ttserver-{shard.port}", shard, at(host.address, shard.port) +
                                         (f"-{last}" if last > shard.port else "")))
        workers = [read_table(f"{where}ttworker {i}: ", each, WORKER_KEYS) for i, each in enumerate(host.ttworker, 1)]
        for worker in workers:
            worker.options = worker.options + (["--engine", worker.engine] if worker.engine else [])
        workers = [worker for worker in workers for _ in range(worker.count)]
        host.programs += [Program("ttworker", f"ttworker-{i}", worker) for i, worker in enumerate(workers, 1)]
        return host

    def hostname(self, host):
        """The name or address that ssh connects to."""
        try:
            code, out, err = talk([*self.ssh, "-G", "--", host.ssh], b"", GRACE_S)
        except Trouble as trouble:
            raise Trouble(f"{self.path}: host {host.name}: ssh -G: {trouble}") from None
        found = re.search(r"^hostname (\S+)$", out.decode("utf-8", "replace"), re.MULTILINE)
        if code != 0 or not found:
            said = err.decode("utf-8", "replace").strip() or f"ssh -G: exit status {code}, and no hostname"
            raise Wrong(f"{self.path}: host {host.name}: {said}")
        return found[1]

    def add_shards(self, where, address, program):
        values = program.values
        for port in range(values.port, values.port + values.shards) if program.what == "ttserver" else ():
            if port > 65535:
                raise Wrong(f"{where}shards = {values.shards}: port {port} of the last one is more than 65535")
            if at(address, port) in self.servers:
                raise Wrong(f"{where}port = {values.port}: two shards would have the address {at(address, port)}")
            self.servers.append(at(address, port))
