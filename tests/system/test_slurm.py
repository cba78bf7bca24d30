#!/usr/bin/python3
"""deploy/slurm.sbatch under a real Slurm: slurmctld, munged and two nodes, all on the loopback of this machine. TAP.

    BIN=build/release/bin tests/system/test_slurm.py

Where Slurm is not here, or does not work here, every test is skipped with the reason. The daemons are started for a
test and have their files in a folder that is removed; a Slurm of the machine is not touched.
"""
import contextlib
import functools
import getpass
import glob
import json
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys

from cluster import STRICT, STARVED, BIN, ROOT, Failure, Process, ask, check, equal, free_port, main, needs, positions, scratch, wait_until

SCRIPT = os.path.join(ROOT, "deploy/slurm.sbatch")
NODES = ("left", "right")  # their addresses differ, so that a worker must find the shard's
os.environ["PATH"] += ":/usr/sbin:/sbin"  # where Debian keeps the daemons
CONFIG = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
KillWait=30
NodeName=left NodeHostname={host} NodeAddr=127.0.0.2 Port={ports[1]} CPUs=2
NodeName=right NodeHostname={host} NodeAddr=127.0.0.3 Port={ports[2]} CPUs=2
PartitionName=all Nodes=ALL Default=YES State=UP
"""


def command(*words, **options):
    """(exit status, stdout, stderr) of a program that ends."""
    done = subprocess.run([str(word) for word in words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=120, check=False, **options)
    return done.returncode, done.stdout.strip(), done.stderr.strip()


class Slurm:
    """`with Slurm() as slurm:` nodes that run jobs. Slurm's programs find it by SLURM_CONF."""

    def __init__(self):
        self.folder = scratch("slurm")
        self.daemons = []

    def path(self, name):
        return os.path.join(self.folder, name)

    def daemon(self, program, *arguments):
        self.daemons.append(Process(shutil.which(program), *arguments))

    def __enter__(self):
        try:
            return self.open()
        except BaseException:
            self.__exit__()
            raise

    def open(self):
        os.chmod(self.folder, 0o711)  # munged insists that everybody may reach its socket
        os.mkdir(self.path("state"))
        with open(os.open(self.path("munge.key"), os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:
            file.write(secrets.token_bytes(128))
        with open(self.path("slurm.conf"), "w", encoding="ascii") as file:
            file.write(CONFIG.format(host=socket.gethostname().split(".")[0], user=getpass.getuser(),
                                     folder=self.folder, ports=[free_port() for _ in range(3)]))
        os.environ["SLURM_CONF"] = self.path("slurm.conf")
        self.daemon("munged", "--foreground", *(f"--{option}-file={self.path('munge.' + option)}"
                                                for option in ("key", "pid", "log", "seed")),
                    f"--socket={self.path('munge.socket')}")
        wait_until(lambda: os.path.exists(self.path("munge.socket")) or not self.daemons[0].running(), "munged")
        self.daemon("slurmctld", "-D")
        for node in NODES:
            self.daemon("slurmd", "-D", "-N", node)
        wait_until(self.is_idle, "nodes that wait for jobs", 60)
        return self

    def is_idle(self):
        for daemon in self.daemons:
            check(daemon.running(), daemon.name, "ended:", daemon.tail())
        return command("sinfo", "--noheader", "--Node", "--format=%T")[1].split() == ["idle"] * len(NODES)

    def __exit__(self, *_):
        for pid in self.processes():  # of jobs that did not end
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for daemon in reversed(self.daemons):
            daemon.kill()
        os.environ.pop("SLURM_CONF", None)

    def processes(self, program=""):
        """Those of jobs: they have the folder in their environment, and the daemons and ourselves are left out."""
        found = []
        for path in glob.glob("/proc/[0-9]*"):
            with contextlib.suppress(OSError):
                with open(path + "/environ", "rb") as file:
                    variables = file.read().split(b"\0")
                with open(path + "/comm", encoding="utf-8") as file:
                    name = file.read().strip()
                is_ours = ("SLURM_CONF=" + self.path("slurm.conf")).encode() in variables
                if is_ours and any(each.startswith(b"SLURM_JOB_ID=") for each in variables) and name.startswith(program):
                    found.append(int(os.path.basename(path)))
        return found


class Job:
    """deploy/slurm.sbatch with these options of sbatch, and of abdada analyse."""

    def __init__(self, slurm, options, *arguments, **variables):
        self.slurm = slurm
        status, out, err = command("sbatch", "--parsable", f"--chdir={slurm.folder}", *options, SCRIPT, *arguments,
                                   env={**os.environ, "ABDADA_BIN": os.path.abspath(BIN), "ABDADA_MEMORY": "32M",
                                        "ABDADA_HASH": "8", **variables})
        equal(status, 0, err)
        self.number = out

    def text(self, ending):
        with contextlib.suppress(FileNotFoundError), \
                open(self.slurm.path(f"abdada-{self.number}.{ending}"), encoding="utf-8") as file:
            return file.read()
        return ""

    def answer(self):
        """The JSON object that is all of the job's output."""
        line, = self.text("out").splitlines()
        return json.loads(line)

    def show(self, name):
        found = re.search(rf"\b{name}=(\S+)", command("scontrol", "show", "job", self.number)[1])
        return found[1] if found else ""

    def wait_progress(self, pattern):
        """False: the job ended before its progress had the pattern."""
        def seen():
            return re.search(pattern, self.text("err")) or self.is_over()
        return wait_until(seen, pattern, 60) is not True

    def is_over(self):
        """True once Slurm has nothing left to do for it."""
        return self.show("JobState") not in ("PENDING", "RUNNING", "COMPLETING") and \
            command("squeue", "--noheader", f"--jobs={self.number}")[1] == ""

    def end(self):
        """How it ended. Nothing of it is left: no process, no keys."""
        wait_until(self.is_over, f"the end of the job: {self.text('err')[-2000:]}", 120)
        wait_until(lambda: self.slurm.processes() == [], "processes that end")
        equal(glob.glob(self.slurm.path(".abdada-*")), [], "keys are left")
        return self.show("JobState"), self.show("ExitCode")


@functools.lru_cache(None)
def why_not():
    """Why Slurm does not run here, or None."""
    missing = [name for name in ("munged", "slurmctld", "slurmd", "sbatch", "srun") if not shutil.which(name)]
    if missing:
        return f"no {' '.join(missing)} here (Debian: munge slurmctld slurmd slurm-client)"
    try:
        with Slurm():
            status, _, err = command("srun", "--mpi=none", "--ntasks=1", "true")
            return None if status == 0 else f"Slurm runs no job here: {err.splitlines()[-1:]}"
    except (Failure, OSError, subprocess.SubprocessError) as error:
        return "Slurm does not start here: " + str(error).replace("\n", " ")[:400]


needs_slurm = needs(why_not)


def sequential(position, depth):
    found, = ask(position, "--depth", depth, "--algorithm", "sequential", *STRICT)
    return found["score"]


def test_outside_of_slurm_one_line_says_how():
    status, out, err = command(SCRIPT, "startpos", env={k: v for k, v in os.environ.items() if k != "SLURM_JOB_ID"})
    equal((status, out, len(err.splitlines())), (1, "", 1), err)
    check("sbatch" in err, err)


@needs_slurm
def test_a_job_of_two_tasks_is_a_shard_and_a_worker():
    position = positions()[0]
    with Slurm() as slurm:
        job = Job(slurm, ["--ntasks=2"], "--json", "--depth", 7, *STRICT, position)
        equal(job.end(), ("COMPLETED", "0:0"), job.text("err"))
        found = job.answer()
        equal((found["score"], found["depth"], found["shards_up"], found["workers"]),
              (sequential(position, 7), 7, 1, 1), job.text("err"))
        wrong = Job(slurm, ["--ntasks=2"], "--json", "--depth", "seven")
        equal(wrong.end(), ("FAILED", "2:0"), wrong.text("err"))
        check("--depth" in wrong.text("err"), wrong.text("err"))
        alone = Job(slurm, ["--ntasks=1"], "--json", "--depth", 7)
        equal(alone.end(), ("FAILED", "1:0"))
        equal(len(alone.text("err").splitlines()), 1, alone.text("err"))
        small = Job(slurm, ["--ntasks=2"], "--json", "--depth", 7, ABDADA_MEMORY="1K")
        equal(small.end(), ("FAILED", "1:0"))
        check("--memory" in small.text("err") and "no shard came up" in small.text("err"), small.text("err"))


@needs_slurm
def test_over_two_nodes_a_worker_and_a_shard_die():
    position = positions()[20]
    with Slurm() as slurm:
        for depth in range(8, 14):  # one that ends before the front-end has seen it die was too short
            job = Job(slurm, ["--nodes=2", "--ntasks=4", "--distribution=cyclic"], "--json", "--depth", depth, *STRICT,
                      position, ABDADA_SHARDS="2")
            was_seen = job.wait_progress("workers 2  shards 2/2")
            for program in ("ttworker", "ttserver") if was_seen else ():
                with contextlib.suppress(ProcessLookupError, IndexError):
                    os.kill(slurm.processes(program)[0], signal.SIGKILL)
            was_seen = was_seen and job.wait_progress("shards 1/2")
            equal(job.end(), ("COMPLETED", "0:0"), job.text("err"))
            if was_seen:
                break
        check(was_seen, "no search was long enough")
        found = job.answer()
        equal((found["score"], found["depth"], found["shards"], found["shards_up"]),
              (sequential(position, depth), depth, 2, 1), job.text("err"))
        for program in "ttworker", "ttserver":
            check(re.search(rf"^abdada: ended {program} on (left|right): status 137$", job.text("err"), re.MULTILINE),
                  job.text("err"))


@needs_slurm
def test_a_job_that_is_cancelled_says_what_it_has_found():
    with Slurm() as slurm:
        job = Job(slurm, ["--ntasks=2"], "--json", "--time", 3600000, "startpos")
        check(job.wait_progress("depth .*workers 1  shards 1/1"), "it ended:", job.text("err"))
        equal(command("scancel", job.number)[0], 0)
        equal(job.end()[0], "CANCELLED")
        found = job.answer()
        check(found["depth"] >= 1 and found["stopped"], found)
        check("ttserver: port" in job.text("err"), "the shard was killed, too:", job.text("err"))


if __name__ == "__main__":
    sys.exit(main([item for name, item in list(globals().items()) if name.startswith("test_")], unstable=STARVED))
