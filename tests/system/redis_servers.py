"""Real Redis servers for tests: one, or a cluster with replicas, on free ports, in folders of their own.

    with Redis() as redis: Cluster(table=redis.url) ...
    with RedisCluster() as cluster: cluster.kill_master(0); cluster.wait_failover() ...

They are processes as those of cluster.py: they die with the test, and nothing is left behind.
"""
import itertools
import os
import shutil
import socket
import subprocess
import tempfile

from cluster import PATIENCE, Failure, Process, check, wait_until

PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
SERVER, CLI = shutil.which("redis-server", path=PATH), shutil.which("redis-cli", path=PATH)
BUS = 10000  # the nodes of a cluster talk at their port + this
PORTS = itertools.cycle(range(11000 + os.getpid() * 37 % 11000, 22000))  # below those that the system gives away
NODE_TIMEOUT_MS = 1000


def why_not():
    """Why there are no such servers here, or None."""
    return None if SERVER and CLI else "redis-server is not installed (make deps-test)"


def free_port():
    """One whose bus is free, too."""
    for port in PORTS:
        try:
            with socket.socket() as one, socket.socket() as bus:
                one.bind(("127.0.0.1", port))
                bus.bind(("127.0.0.1", port + BUS))
            return port
        except OSError:
            pass
    raise AssertionError("not reached")


class Error(Exception):
    """An error reply."""


def encode(words):
    words = [w if isinstance(w, bytes) else str(w).encode() for w in words]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words)


def decode(file):
    """One reply; an error is raised."""
    line = file.readline()
    if not line:
        raise OSError("the connection is closed")
    kind, rest = line[:1], line[1:].rstrip(b"\r\n")
    if kind == b"-":
        raise Error(rest.decode())
    if kind == b"+":
        return rest.decode()
    if kind == b":":
        return int(rest)
    if kind == b"$":
        return None if int(rest) < 0 else file.read(int(rest) + 2)[:-2]
    return None if int(rest) < 0 else [decode(file) for _ in range(int(rest))]


class Redis:
    """options: more of redis-server's command line. The process is `process`; `run` starts it again."""

    def __init__(self, *options, password=None, folder=None):
        self.own_folder = None if folder else tempfile.TemporaryDirectory(prefix="abdada-redis-")
        self.folder = folder or self.own_folder.name
        self.port, self.password = free_port(), password
        self.url = f"redis://127.0.0.1:{self.port}"
        self.options = list(options) + (["--requirepass", password] if password else [])
        self.process = None
        self.run()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()
        if self.own_folder:
            self.own_folder.cleanup()

    def run(self, *options, until="Ready to accept connections"):
        """On the same port and in the same folder as before."""
        self.process = Process(SERVER, "--bind", "127.0.0.1", "--port", self.port, "--dir", self.folder, "--save", "",
                               "--appendonly", "no", *self.options, *options)
        self.process.wait_line(until)

    def kill(self):
        """As kill -9."""
        if self.process:
            self.process.kill()

    def command(self, *words):
        """The reply: str, bytes, int, None or a list of such. Error: that of the server; OSError: nobody is there."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE) as s, s.makefile("rb") as file:
            if self.password:
                s.sendall(encode(["AUTH", self.password]))
                decode(file)
            s.sendall(encode(words))
            return decode(file)

    def info(self, section):
        """{name: value} of INFO."""
        text = self.command("INFO", section).decode()
        return dict(line.split(":", 1) for line in text.splitlines() if ":" in line)

    def calls(self):
        """Of scripts so far."""
        found = self.info("commandstats").get("cmdstat_evalsha", "calls=0")
        return int(found.split("calls=")[1].split(",")[0])

    def is_ready(self):
        try:
            return self.command("PING") == "PONG"
        except (OSError, Error):
            return False


class RedisCluster:
    """`nodes` are Redis; the masters at first are the first ones."""

    def __init__(self, masters=3, replicas=3):
        self.folder = tempfile.TemporaryDirectory(prefix="abdada-redis-")
        self.nodes = []
        try:
            for i in range(masters + replicas):
                self.nodes.append(Redis("--cluster-enabled", "yes", "--cluster-config-file", f"nodes-{i}.conf",
                                        "--cluster-node-timeout", NODE_TIMEOUT_MS, "--repl-diskless-sync-delay", 0,
                                        folder=self.folder.name))
            done = subprocess.run(
                [CLI, "--cluster", "create", *(f"127.0.0.1:{n.port}" for n in self.nodes),
                 "--cluster-replicas", str(replicas // masters), "--cluster-yes"],
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, timeout=2 * PATIENCE)
            check(done.returncode == 0, done.stdout.decode())
            wait_until(self.is_well, "the nodes of the cluster to agree")
        except BaseException:
            self.__exit__()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for node in self.nodes:
            node.kill()
        self.folder.cleanup()

    @property
    def url(self):
        """Two of the nodes: the first master, and a replica."""
        return f"redis+cluster://127.0.0.1:{self.nodes[0].port},127.0.0.1:{self.nodes[-1].port}"

    def running(self):
        return [n for n in self.nodes if n.process.running()]

    def masters(self):
        return [n for n in self.running() if n.info("replication")["role"] == "master"]

    def is_well(self):
        """All slots are served, all that run know so, and replicas follow."""
        try:
            for node in self.running():
                state, replication = node.info("cluster"), node.info("replication")
                info = node.command("CLUSTER", "INFO").decode()
                if state.get("cluster_enabled") != "1" or "cluster_state:ok" not in info or (
                        f"cluster_known_nodes:{len(self.nodes)}" not in info) or (
                        replication["role"] == "slave" and replication["master_link_status"] != "up") or (
                        "state=online" not in replication.get("slave0", "state=online")):
                    return False
            return True
        except (OSError, Error):
            return False

    def kill_master(self):
        """kill -9 of a master that has a replica; returns it."""
        for node in self.masters():
            if int(node.info("replication")["connected_slaves"]) > 0:
                node.kill()
                return node
        raise Failure("no master has a replica")

    def wait_failover(self, masters=3):
        wait_until(lambda: len(self.masters()) == masters and self.is_well(), "a replica to take over", 2 * PATIENCE)

    def calls(self):
        """Of scripts so far, by the nodes that run."""
        return sum(n.calls() for n in self.running())
