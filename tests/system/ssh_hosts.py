"""Hosts that are logged in to by ssh: network.Host with a real sshd, and with processes, homes and users of their own,
of which the machine knows nothing. Call `why_not()` first.

All that runs on such a host dies with it, also what has left its ssh session, and that with this process: it is in a
PID namespace whose first process is ended.
"""
import os
import shutil
import signal
import subprocess
import sys

import network

SSHD = shutil.which("sshd", path=os.environ["PATH"] + ":/usr/sbin:/sbin")
TOOLS = "ssh", "ssh-keygen", "nsenter", "unshare", "mount"
FIRST_UID = 54321
# What process 1 has to do: wait for those whom nobody waits for.
INIT = """
import os, signal
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
print(flush=True)
while True:
    signal.sigwait({signal.SIGCHLD})
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass
"""


def why_not():
    """None when such hosts can be made, else the reason."""
    if os.geteuid() != 0:
        return "sshd lets other users in as root alone"
    if SSHD is None:
        return "no sshd here (Debian: openssh-server)"
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        return f"no {missing[0]} here"
    return network.why_not()


class Site:
    """What the hosts have in common, in a folder: users, and the key with which they all log in."""

    def __init__(self, folder, users):
        self.folder, self.users = folder, {name: FIRST_UID + i for i, name in enumerate(users)}
        self.hosts = []
        self.key = self.make_key("login")
        # The usual key exchange, safe from quantum computers, takes half of the CPU time of a test that logs in often.
        self.config = self.write("ssh_config", f"""
            Host *
                User {users[0]}
                IdentityFile {self.key}
                IdentitiesOnly yes
                UserKnownHostsFile {folder}/known_hosts
                GlobalKnownHostsFile /dev/null
                KexAlgorithms curve25519-sha256
                """)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, content, mode=0o600):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(content)
        os.chmod(self.path(name), mode)
        return self.path(name)

    def make_key(self, name):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.path(name)], check=True)
        return self.path(name)

    def know(self, hosts):
        """Writes known_hosts: these, with the keys they have."""
        lines = []
        for host in hosts:
            with open(host.key + ".pub", encoding="ascii") as file:
                lines.append(f"{host.address} {' '.join(file.read().split()[:2])}\n")
        self.write("known_hosts", "".join(lines))

    def close(self):
        for host in self.hosts:
            host.close()


class SshHost(network.Host):
    def __init__(self, site, home_bytes="256M", shell="/bin/sh", installed=None, sshd=""):
        """installed: a folder that takes the place of /usr/local/bin. sshd: lines of its configuration."""
        super().__init__()
        self.site, name = site, f"host-{self.number}"
        self.init = subprocess.Popen(
            ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", sys.executable, "-c", INIT],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, preexec_fn=self.begin)
        self.init.stdout.readline()
        with open(f"/proc/{self.init.pid}/task/{self.init.pid}/children", encoding="ascii") as file:
            self.first = file.read().split()[0]
        for what in "passwd", "group", "shadow":
            with open(f"/etc/{what}", encoding="utf-8") as file:
                lines = file.read()
            for user, uid in site.users.items():
                lines += {"passwd": f"{user}:x:{uid}:{uid}::/home/{user}:{shell}\n", "group": f"{user}:x:{uid}:\n",
                          "shadow": f"{user}:*:19000::::::\n"}[what]
            self.command("mount", "--bind", site.write(f"{what}.{name}", lines, 0o644), f"/etc/{what}")
        self.command("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", "/run")
        self.command("mkdir", "-m", "755", "/run/sshd")
        self.command("mount", "-t", "tmpfs", "-o", f"mode=755,size={home_bytes}", "tmpfs", "/home")
        if installed:
            self.command("mount", "--bind", installed, "/usr/local/bin")
        for user in site.users:
            self.command("install", "-d", "-m", "700", "-o", user, "-g", user, f"/home/{user}", f"/home/{user}/.ssh")
            self.command("install", "-m", "600", "-o", user, site.key + ".pub", f"/home/{user}/.ssh/authorized_keys")
        self.key = site.make_key(f"hostkey.{name}")
        config = site.write(f"sshd.{name}", f"ListenAddress {self.address}\nHostKey {self.key}\nPidFile none\n"
                            "UsePAM no\nPasswordAuthentication no\nPermitRootLogin no\nPrintMotd no\n" + sshd)
        self.sshd = subprocess.Popen([*self.enter(), SSHD, "-D", "-e", "-f", config], stdin=subprocess.DEVNULL,
                                     stderr=open(site.path(f"sshd.{name}.log"), "wb"), preexec_fn=self.settle)
        site.hosts.append(self)

    @staticmethod
    def settle():
        network.LIBC.prctl(network.PR_SET_PDEATHSIG, signal.SIGKILL)

    def begin(self):
        self.settle()
        self.join()

    def enter(self):
        return ["nsenter", "--target", self.first, "--net", "--mount", "--pid"]

    def command(self, *words):
        """What a command prints that root runs there, and that must succeed."""
        done = subprocess.run([*self.enter(), *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode != 0:
            raise OSError(f"{' '.join(words)}: {done.stdout.decode().strip()}")
        return done.stdout.decode()

    def processes(self, user):
        """{number there: command line} of what that user runs, without sshd's processes for the logins themselves."""
        found = {}
        for line in self.command("sh", "-c", "cd /proc && grep -H ^Uid: [0-9]*/status || true").splitlines():
            number, _, uids = line.partition("/status:Uid:")
            if uids.split()[:1] == [str(self.site.users[user])]:
                words = self.command("sh", "-c", f"tr '\\0' ' ' </proc/{number}/cmdline || true")
                if words.strip() and not words.startswith("sshd: "):  # no words: it has ended
                    found[int(number)] = words.strip()
        return found

    def files(self, user):
        return self.command("find", f"/home/{user}", "-mindepth", "1", "-not", "-path", "*/.ssh*").split()

    def close(self):
        for process in self.sshd, self.init:
            process.kill()
            process.wait()
        super().close()
