"""A host of a cluster, over ssh. Of `abdada cluster` (cluster.py).

Each call runs `ssh` as the user has it and sends cluster_host.sh with one operation (and, where files are copied, a tar
after it) on its input, so that no command line and no shell there sees what is in them. Nothing is known of a host but
what it says. Threads: one for each host.
"""
import argparse
import functools
import hashlib
import io
import platform
import random
import re
import shlex
import sys
import tarfile
import time

from cluster_file import GRACE_S, Trouble, at, talk

FIRST = "abdada"  # the line before what is sent, which a login must not have read
BEGIN = b"abdada-cluster\n"  # of cluster_host.sh: what comes before is of the login, which need not end its lines
TAKEN = "its login reads standard input (a .bashrc, or what it calls), and has taken what was for abdada"
BOUND_S, LONG_BOUND_S = 60, 300  # until all is ready or has stopped; where results are read and written
TIMES_END = 1 << 33  # seconds since 1970; a host may say anything
PHASES = {"silent": "no answer"}  # the others are called what cluster_host.sh calls them
ALONE = "--config", "/dev/null"  # what a user there has set is for other programs
SAID_MAX = 300  # characters of a login that are shown
FULL = re.compile("No space left on device|quota exceeded")
SHUT_OUT = re.compile(b"(ssh|kex)_exchange_identification")
SHUT_OUT_S = 20  # for which a login is tried again


def printable(text):
    """What a host says may be meant for a terminal to obey."""
    return "".join(c if c.isprintable() or c == "\t" else "?" for c in text)


def say(line):
    sys.stderr.write(printable(line) + "\n")  # at once: threads say things, too
    sys.stderr.flush()


@functools.lru_cache(None)
def digest_of(contents):
    """Once, however many hosts get the same program."""
    return hashlib.sha256(contents).hexdigest()


def sha(*parts):
    digest = hashlib.sha256()
    for part in parts:
        digest.update(hashlib.sha256(part).digest())
    return digest.hexdigest()


def reason(code, err, login=None):
    """What ssh or cluster_host.sh said, in one line. login: what came before cluster_host.sh, which did not begin."""
    lines = [line.strip() for line in err.splitlines() if line.strip()]
    last = lines[-1] if lines else "the connection was lost" if code == 255 else f"exit status {code}"
    if "REMOTE HOST IDENTIFICATION HAS CHANGED" in err:
        return ("its host key is not the one that this machine knows: another machine answers there, or it was "
                "installed anew (then: ssh-keygen -R)")
    if "Host key verification failed" in err or "host key is known for" in err:
        return ("its host key is not known here: `ssh` there once, or say options = "
                "[\"-o\", \"StrictHostKeyChecking=accept-new\"] in [ssh]")
    if "Permission denied (" in err:
        return f"ssh is not let in: {last} (is your key in an agent, and in authorized_keys there?)"
    if login is not None and not last.startswith("abdada: ") and (code != 255 or not lines):
        said = " ".join(f"{login}\n{err}".split())[-SAID_MAX:]
        if said or code != 255:
            return f"its login ended with exit status {code}, {f'and said: {said}' if said else 'without a word'}"
    if code == 255:
        return f"unreachable: {re.sub('^ssh: ', '', last)}"
    if FULL.search(err):
        return f"disk full: {next(line for line in lines if FULL.search(line))}"
    if last.startswith("abdada: "):
        return last[len("abdada: "):] + (f": {lines[-2]}" if len(lines) > 1 else "")
    return last


def answer(code, out, err):
    """What cluster_host.sh has answered, or Trouble with the reason why it has not."""
    login, begin, lines = (part.decode("utf-8", "replace") for part in out.partition(BEGIN))
    if code != 0:
        raise Trouble(reason(code, err.decode("utf-8", "replace"), None if begin else login))
    if not begin:
        raise Trouble(f"unexpected answer of its shell: {login.strip()[-SAID_MAX:]!r}")
    return lines


def log_in(words, *more):
    """As talk. An sshd that has too many logins under way (MaxStartups) hangs up on some before they begin, as one does
    that has many hosts behind it: those are tried again, each after a pause of its own."""
    end = time.monotonic() + SHUT_OUT_S
    while True:
        code, out, err = talk(words, *more)
        is_shut_out = code == 255 and not out and SHUT_OUT.search(err) and b"open failed" not in err  # by a jump host
        if not is_shut_out or time.monotonic() > end:
            return code, out, err
        time.sleep(random.uniform(0.2, 1.5))


class Host:
    def __init__(self, supplies, cluster, cluster_name, name, ssh, wanted=None):
        """wanted: of the file; None: it is not in it any more."""
        self.supplies, self.cluster, self.cluster_name, self.name, self.ssh = supplies, cluster, cluster_name, name, ssh
        self.wanted, self.programs = wanted, wanted.programs if wanted else []
        self.trouble = None    # why the host could not be worked on
        self.found = None      # {program's name: what the host said of it}, as it is now
        self.files, self.installed, self.facts = {}, {}, {}  # as probed
        self.begun, self.was = [], set()  # programs that `up` begins; those that ran before
        self.is_changed = False
        self.killed = []       # programs that did not stop in time
        self.answered = None   # is called with the host when it has answered

    def identity(self):
        return self.cluster_name, self.name, self.ssh

    def words(self, *call):
        """ssh with an operation of cluster_host.sh, and what to send it."""
        main = shlex.join(["main", self.cluster_name, self.name, *map(str, call)])
        script = self.supplies.script + f"\n{main}\n".encode()
        # read and dd take no byte more than they are told to; any login shell understands this.
        command = (f"exec sh -c 'read -r first; [ \"$first\" = {FIRST} ] || {{ echo \"abdada: {TAKEN}\" >&2; exit 1; }}; "
                   f"eval \"$(dd bs=1 count={len(script)} 2>/dev/null)\"'")
        settings = ["BatchMode=yes", f"ConnectTimeout={self.cluster.connect_timeout}", "ServerAliveInterval=5",
                    "ServerAliveCountMax=3", "ClearAllForwardings=yes", "RemoteCommand=none", "LogLevel=ERROR"]
        # -a, -x, -k: no host gets at the agent, the display or the tickets here, whatever the configuration says.
        return [*self.cluster.ssh, "-Taxk", *(word for each in settings for word in ("-o", each)), "--", self.ssh,
                command], f"{FIRST}\n".encode() + script

    def call(self, *call, tar=b"", seconds=0):
        """Does an operation there, which may take so long; takes in what the host says of itself."""
        self.found = None
        words, script = self.words(*call)
        code, out, err = log_in(words, script + tar, seconds + self.cluster.connect_timeout + GRACE_S)
        lines = answer(code, out, err)
        try:
            self.take_in(lines)
        except (ValueError, KeyError):
            self.found = None
            raise Trouble(f"unexpected answer: {lines.strip()[:100]!r}") from None
        if self.answered:
            self.answered(self)

    def follow(self, put, started, *call):
        """Does an operation there that may go on for ever; calls put(line) with each line of its answer."""
        words, script = self.words(*call)
        has_begun = False

        def take(out):
            nonlocal has_begun
            if not has_begun:
                _, has_begun, rest = map(bytes, out.partition(BEGIN))
                if not has_begun:
                    return False
                out[:] = rest
            *lines, out[:] = bytes(out).split(b"\n")
            for line in lines:
                put(line.decode("utf-8", "replace"))
            return True
        code, out, err = log_in(words, script, self.cluster.connect_timeout + GRACE_S, take, started)
        answer(code, BEGIN if has_begun else out, err)

    def take_in(self, lines):
        self.found = {}
        for line in filter(None, lines.split("\n")):
            kind, _, rest = line.partition(" ")
            if kind == "item":
                name, phase, pid, began, restarts, made_of, version = rest.split(" ", 6)
                if not 0 <= int(began) < TIMES_END:
                    raise ValueError(began)
                self.found[name] = argparse.Namespace(
                    phase=phase, pid=int(pid) if pid != "-" else None, began=int(began), restarts=int(restarts),
                    made_of=made_of, version=version, why=None)
            elif kind == "why":
                name, _, why = rest.partition(" ")
                self.found[name].why = why.lstrip(": ") or None
            elif kind == "file":
                digest, _, path = rest.partition("  ")
                self.files[path] = digest
            elif kind == "installed":
                name, version, digest, path = rest.split(" ", 3)
                self.installed[name] = argparse.Namespace(version=version, digest=digest, path=path)
            else:
                if kind == "killed":
                    self.killed.append(rest)
                    lost = "; results since its last snapshot are lost" if rest.startswith("ttserver") else ""
                    say(f"{self.name}: {rest} did not stop in time and was killed{lost} (--timeout S waits longer)")
                if kind == "note" and self.facts.get(kind) != rest:
                    say(f"{self.name}: {rest}")
                self.facts[kind] = rest

    def bound(self, wanted):
        """Seconds until its programs have stopped, and until its shards are ready. wanted: by the user, or None. A shard
        that runs otherwise than the file says may have a snapshot to write, and so may any while nobody has looked."""
        shards = [each for each in self.programs if each.what == "ttserver"]
        keeps_results = self.found is None or any(each.keeps_results() for each in shards)
        if not keeps_results:
            wanted_now = {each.name: self.describe(each)[1]["made_of"] for each in shards}
            keeps_results = any(name.startswith("ttserver") and about.made_of != wanted_now.get(name)
                                for name, about in self.found.items())
        return wanted or (LONG_BOUND_S if keeps_results else BOUND_S)

    # ---- up ----

    def prepare(self, again, bound):
        """All but the start of the workers: copies what differs, stops what is not wanted as it is, starts the shards.
        again: what runs is started again. bound: seconds until all has stopped, and then until all is ready, or
        None for those that the host needs."""
        kinds = sorted({each.what for each in self.programs})
        self.call("probe", *(kinds if self.wanted.is_installed else []))
        self.check_programs(kinds)
        if not self.programs:
            if self.found or self.files:
                self.remove(bound)
            return
        bound = self.bound(bound)
        send, has_other_keys = self.missing_files(kinds)
        for each in self.programs:
            found, (command, about) = self.found.get(each.name), self.describe(each)
            is_down = not found or found.pid is None
            if again or is_down or found.made_of != about["made_of"]:
                self.begun.append(each)
                send[f"run/{each.name}.command"] = f"exec {shlex.join(command)}\n".encode()
                send[f"run/{each.name}.about"] = "".join(
                    f"{key}={shlex.quote(str(value))}\n" for key, value in about.items()).encode()
        self.was = {name for name, found in self.found.items() if found.pid}
        unwanted = sorted(set(self.found) - {each.name for each in self.programs})
        stop = unwanted + [each.name for each in self.begun]
        begin, wait = self.to_start("ttserver")
        self.is_changed = bool(send or stop or has_other_keys)
        if not (self.is_changed or wait):
            return
        self.call("apply", bound, "tar" if send else "", "keys" if has_other_keys else "", " ".join(stop),
                  " ".join(begin), " ".join(wait), tar=pack(send), seconds=2 * bound)
        self.note("copied", sorted(path[len("bin/"):] for path in send if path.startswith("bin/tt")) +
                  (["keys"] if has_other_keys else []))
        self.note("stopped", [name for name in unwanted if name in self.was])
        self.note_started(begin)

    def start_workers(self, bound):
        if self.trouble or not self.programs:
            return
        begin, wait = self.to_start("ttworker")
        if wait:
            bound = bound or BOUND_S
            self.call("apply", bound, "", "", "", " ".join(begin), " ".join(wait), seconds=bound)
            self.note_started(begin)

    def to_start(self, what):
        """The names of those programs that are to start, and of those that are not up yet."""
        begin = [each.name for each in self.begun if each.what == what]
        return begin, [each.name for each in self.programs if each.what == what and
                       (each.name in begin or self.found[each.name].phase != "up")]

    def check_programs(self, kinds):
        here = self.supplies.version
        for what in kinds if self.wanted.is_installed else ():
            there = self.installed[what].version
            if there != here:
                raise Trouble(f"{what} {there} is installed there, and abdada {here} here: install the same")
        if not self.wanted.is_installed and self.facts["machine"] != platform.machine():
            raise Trouble(f"the programs here are for {platform.machine()}, that is a {self.facts['machine']}: install "
                          f"abdada there, and say programs = \"installed\"")

    def keys(self):
        """{name in the directory there: contents}"""
        own = self.supplies.worker_keys.get(self.name)
        return {**self.supplies.keys, **({"worker.secret": own} if own else {})}

    def missing_files(self, kinds):
        """{path: contents} of what the host has not or has otherwise; whether the keys are among it, all of them."""
        want = {"bin/cluster_host.sh": self.supplies.script}
        if not self.wanted.is_installed:
            want.update((f"bin/{what}", self.supplies.programs[what][0]) for what in kinds)
        want.update((f"keys/{key}", contents) for key, contents in self.keys().items()
                    if any(needs(what, key) for what in kinds))
        differ = {path for path, contents in want.items()
                  if self.files.get(path) != digest_of(contents)}
        has_other_keys = any(path.startswith("keys/") for path in differ | (set(self.files) - set(want)))
        return {path: contents for path, contents in want.items()
                if path in differ or has_other_keys and path.startswith("keys/")}, has_other_keys

    def note_started(self, names):
        self.note("restarted", [name for name in names if name in self.was])
        self.note("started", [name for name in names if name not in self.was])

    def note(self, done, names):
        if names:
            say(f"{self.name}: {done} {', '.join(names)}")

    def describe(self, each):
        """The command of a program there, and {what it was made of}."""
        base = f"{self.facts['home']}/.abdada/{self.cluster_name}/{self.name}"
        values, keys = each.values, self.keys()
        if self.wanted.is_installed:
            found = self.installed[each.what]
            program, digest, version = found.path, found.digest, found.version
        else:
            program, (contents, version) = f"{base}/bin/{each.what}", self.supplies.programs[each.what]
            digest = digest_of(contents)
        ring = f"{base}/keys" if keys else ""
        if each.what == "ttserver":
            command = [program, *ALONE, "--listen", at(values.listen or self.wanted.address, values.port), "--shards",
                       str(values.shards), "--memory", values.memory, *(["--keys", ring] if keys else ["--insecure"])]
        else:
            command = [program, *ALONE, "--servers", ",".join(self.cluster.servers), "--threads", str(self.threads(each)), "--hash",
                       str(values.hash), *(["--keys", ring] if keys else [])]
        command += values.options
        secrets = [keys[key] for key in sorted(keys) if needs(each.what, key) and not key.startswith("allowed/")]
        return command, {
            "program": program, "keys": ring, "ready": values.shards if each.what == "ttserver" else 1,
            "made_of": sha("\0".join(command).encode(), digest.encode(), self.supplies.script, *secrets),
            "version": f"{version} {digest[:8]}"}

    def threads(self, each):
        """Of a worker there, once the host is probed."""
        return int(self.facts["cpus"]) if each.values.threads == "all" else each.values.threads

    # ---- the other commands ----

    def states(self):
        self.call("states", seconds=GRACE_S)

    def remove(self, bound):
        bound = self.bound(bound)
        self.call("remove", bound, seconds=bound)
        names = self.facts["stopped"].replace(" ", ", ")
        say(f"{self.name}: {f'stopped {names}' if names else 'nothing ran'}; nothing is left")

    def rows(self):
        """One for each program that the file wants or that is there."""
        wanted = {each.name: each for each in self.programs}
        for name in [*wanted, *(name for name in self.found or {} if name not in wanted)]:
            found = (self.found or {}).get(name)
            state = "unknown" if self.found is None else PHASES.get(found.phase, found.phase) if found else "down"
            if name not in wanted:
                state += ", not in the file"
            alive = found is not None and found.pid is not None
            yield argparse.Namespace(
                host=self.name, what=name, address=wanted[name].address if name in wanted else "-", state=state,
                pid=found.pid if alive else None, version=found.version if found else None,
                began=found.began if alive else None, restarts=found.restarts if found else 0,
                why=found.why if found else self.trouble)


def needs(what, key):
    """Whether that program needs that file of the ring."""
    return key in ("server.public", "worker.secret") if what == "ttworker" else key != "worker.secret"


def pack(files):
    """A tar of {path: contents}; b"" of none."""
    if not files:
        return b""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for path, contents in files.items():
            entry = tarfile.TarInfo(path)
            entry.size, entry.mode = len(contents), 0o700 if path.startswith("bin/") else 0o600
            tar.addfile(entry, io.BytesIO(contents))
    return out.getvalue()
