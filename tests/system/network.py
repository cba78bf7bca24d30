"""Hosts on one machine: network namespaces, each with shared memory of its own and with a cable to a bridge, so that
cables can be cut, delayed and made lossy. Call `why_not()` first: it returns why that is not possible here, or moves
this process into a namespace of its own, from which it reaches the hosts, and returns None.

The namespaces have no names: each lives in a process that dies with this one, and the kernel removes them with all
that is in them. Nothing is left behind, not even by kill -9. Root is not needed where users may make namespaces.
Delay and loss are `tc netem` where the kernel has it, else the program tests/system/cable.c does the same.
"""
import ctypes
import os
import shutil
import signal
import socket
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.environ.get("BIN", os.path.join(ROOT, "bin"))
LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWUSER, CLONE_NEWNET, CLONE_NEWNS = 0x10000000, 0x40000000, 0x00020000
MS_REC, MS_PRIVATE = 0x4000, 0x40000
PR_SET_PDEATHSIG = 1
SUBNET = "10.213.7"  # in namespaces of our own: it meets no other network
BRIDGE = "switch"
PORT = 7400
os.environ["PATH"] += ":/usr/sbin:/sbin"  # where Debian keeps ip and tc
state = {"entered": None}  # None: not tried; "": in the namespace; else the reason why not


def _system(call, *arguments):
    if getattr(LIBC, call)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{call}: {os.strerror(number)}")


def free_port():
    """A port of the loopback that no program listens on now."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def _command(*words, pid=None):
    """A command that must succeed, in the namespaces of the process `pid` if given."""
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          preexec_fn=(lambda: join(pid)) if pid else None)
    if done.returncode != 0:
        raise OSError(f"{' '.join(words)}: {done.stdout.decode().strip()}")


def _works(*words):
    return subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


def join(pid):
    """For a child between fork and exec: into the namespaces of that process."""
    folder = os.getcwd()  # it is lost with the old mounts
    files = [(os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY), kind)
              for name, kind in (("net", CLONE_NEWNET), ("mnt", CLONE_NEWNS))]
    for fd, kind in files:
        _system("setns", fd, kind)
        os.close(fd)
    os.chdir(folder)


def _enter():
    if shutil.which("ip") is None:
        raise OSError("no `ip` here (Debian: iproute2)")
    user, group = os.geteuid(), os.getegid()
    if user == 0:
        _system("unshare", CLONE_NEWNET)
    else:
        _system("unshare", CLONE_NEWUSER | CLONE_NEWNET)
        for name, text in (("setgroups", "deny"), ("uid_map", f"0 {user} 1"), ("gid_map", f"0 {group} 1")):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)
    try:  # what a host needs besides
        subprocess.run(["true"], check=True, preexec_fn=Host._isolate)
    except subprocess.SubprocessError:
        raise OSError("no mount namespaces, or no /dev/shm") from None
    _command("ip", "link", "set", "lo", "up")
    _command("ip", "link", "add", BRIDGE, "type", "bridge")
    _command("ip", "address", "add", f"{SUBNET}.254/24", "dev", BRIDGE)
    _command("ip", "link", "set", BRIDGE, "up")


def why_not():
    """None when hosts can be made (this process has moved then), else the reason. Call it before any thread and
    any socket, because both stay in the namespace where they began."""
    if state["entered"] is None:
        try:
            _enter()
            state["entered"] = ""
        except OSError as error:
            state["entered"] = f"no network namespaces here: {error.strerror or error}"
    return state["entered"] or None


def cable_program():
    for folder in (os.path.join(BIN, "..", "tools"), os.path.join(ROOT, "build", "release", "tools")):
        path = os.path.join(folder, "cable")
        if os.access(path, os.X_OK):
            return path
    return None


def shaper():
    """What delays and loses here: "netem", "cable" or None."""
    if "shaper" not in state:
        state["shaper"] = None
        if _works("tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "0"):
            _command("tc", "qdisc", "del", "dev", "lo", "root")
            state["shaper"] = "netem"
        elif cable_program():
            state["shaper"] = "cable"
    return state["shaper"]


def why_no_delay():
    return why_not() or (None if shaper() else "the kernel has no netem, and tests/system/cable is not built")


class Host:
    """A host of its own. Programs are started in it by `cluster.Process(..., host=host)`."""
    count = 0

    def __init__(self):
        reason = why_not()
        if reason:
            raise OSError(reason)
        Host.count += 1
        self.number = Host.count
        self.address = f"{SUBNET}.{self.number}"
        self.port, self.relay, self.is_cut, self.shaped = f"h{self.number}", None, False, None
        self.keeper = subprocess.Popen(["sleep", "infinity"], stdin=subprocess.DEVNULL, preexec_fn=self._isolate)
        pid = str(self.keeper.pid)
        _command("ip", "link", "add", self.port, "type", "veth", "peer", "name", "eth0", "netns", pid)
        _command("ip", "link", "set", self.port, "master", BRIDGE, "up")
        self.run("ip", "link", "set", "lo", "up")
        self.run("ip", "address", "add", f"{self.address}/24", "dev", "eth0")
        self.run("ip", "link", "set", "eth0", "up")

    @staticmethod
    def _isolate():
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        _system("unshare", CLONE_NEWNET | CLONE_NEWNS)
        _system("mount", b"none", b"/", None, ctypes.c_ulong(MS_REC | MS_PRIVATE), None)
        _system("mount", b"tmpfs", b"/dev/shm", b"tmpfs", ctypes.c_ulong(0), b"mode=1777")

    def run(self, *words):
        _command(*words, pid=self.keeper.pid)

    def join(self):
        join(self.keeper.pid)

    def replace(self, path, own):
        """The programs of this host see the file `own` at that path; it may be written to later."""
        self.run("mount", "--bind", own, os.path.realpath(path))

    def cut(self):
        """The cable is out: both ends lose their carrier, what was under way is lost."""
        _command("ip", "link", "set", self.port, "down")
        self.is_cut = True

    def mend(self):
        _command("ip", "link", "set", self.port, "up")
        self.is_cut = False

    def shape(self, delay_ms=0, jitter_ms=0, loss_percent=0, seed=1):
        """What leaves the host comes later by delay_ms (+ up to jitter_ms); both ways loss_percent is lost."""
        self.unshape()
        if shaper() == "netem":
            self._netem(delay_ms, jitter_ms, loss_percent)
        else:
            self._relay(delay_ms, jitter_ms, loss_percent, seed)
        self.shaped = (delay_ms, jitter_ms, loss_percent)

    def unshape(self):
        if self.shaped is None:
            return
        self.shaped = None
        if self.relay:
            self.relay.kill()
            self.relay.wait()
            self.relay.stdout.close()
            self.relay = None
            _command("ip", "link", "set", self.port, "master", BRIDGE)
        else:
            self.run("tc", "qdisc", "del", "dev", "eth0", "root")
            _command("tc", "qdisc", "del", "dev", self.port, "root")

    def _netem(self, delay_ms, jitter_ms, loss_percent):
        there = ["delay", f"{delay_ms + jitter_ms / 2}ms", f"{jitter_ms / 2}ms"] if jitter_ms else [
            "delay", f"{delay_ms}ms"]
        loss = ["loss", f"{loss_percent}%"] if loss_percent else []
        self.run("tc", "qdisc", "add", "dev", "eth0", "root", "netem", "limit", "10000", *there, *loss)
        _command("tc", "qdisc", "add", "dev", self.port, "root", "netem", "limit", "10000", "delay", "0", *loss)

    def _relay(self, delay_ms, jitter_ms, loss_percent, seed):
        near, outer = f"x{self.number}", f"y{self.number}"
        if not _works("ip", "link", "show", near):
            _command("ip", "link", "add", near, "type", "veth", "peer", "name", outer)
            _command("ip", "link", "set", near, "up")
            _command("ip", "link", "set", outer, "master", BRIDGE, "up")
        _command("ip", "link", "set", self.port, "nomaster")
        self.relay = subprocess.Popen(
            [cable_program(), "--delay-us", str(int(1000 * delay_ms)), "--jitter-us", str(int(1000 * jitter_ms)),
             "--loss-permille", str(int(10 * loss_percent)), "--seed", str(seed), self.port, near],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            preexec_fn=lambda: LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL))
        if self.relay.stdout.readline() != b"ready\n":
            raise OSError("cable did not start")

    def close(self):
        """The host and its cable are gone once the programs in it have ended."""
        self.unshape()
        _command("ip", "link", "del", self.port)
        self.keeper.kill()
        self.keeper.wait()


def new_host():
    """A host, or None where there can be none."""
    return None if why_not() else Host()
