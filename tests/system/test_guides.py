#!/usr/bin/python3
"""The guides of docs/guides and the README, word for word (guides.py), with real processes. TAP.

    BIN=bin tests/system/test_guides.py

Ports are those of the pages, so these run on hosts of their own (network.py, ssh_hosts.py). The guide of containers is
tested by deploy/compose-test.
"""
import os
import re
import shutil
import subprocess
import sys

import guides
import network
import ssh_hosts
from cluster import STARVED, BIN, PATIENCE, SHORT, check, main, needs, scratch
from redis_servers import why_not as why_no_redis
from test_python_package import library

reason = network.why_not()  # before anything else: it moves this process into a namespace of its own


def follow(name, folder=None, **variables):
    """folder: for PATH, before the others."""
    path = [os.path.abspath(BIN), *([folder] if folder else []), os.environ["PATH"]]
    guides.follow(name, PATH=os.pathsep.join(path), **variables)


needs_ports = needs(lambda: reason)


def the_demo():
    """What `make demo` runs."""
    if SHORT:
        return "only without SHORT: a minute of both CPUs"
    done = subprocess.run([sys.executable, os.path.join(guides.ROOT, "deploy", "demo.py")], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=5 * PATIENCE, check=False, env=dict(os.environ, BIN=os.path.abspath(BIN)))
    print("#", done.stdout.replace("\n", "\n# "))
    check(done.returncode == 0 and "\ndemo: 7 of 7 scores as alone, 1 worker and 1 shard killed, 0 processes left behind, " in done.stdout,
          done.returncode, done.stderr)
    return None


@needs_ports
def an_othello_ending():
    follow("othello.md")


@needs_ports
def a_chess_program():
    follow("gui.md")


@needs_ports
def redis_only():
    return why_no_redis() or follow("redis.md")


@needs(ssh_hosts.why_not)
def five_workstations_and_a_chess_program():
    folder = scratch("hosts")
    os.chmod(folder, 0o755)  # of logins
    site = ssh_hosts.Site(folder, ["me"])
    try:
        hosts = [ssh_hosts.SshHost(site) for _ in range(5)]
        site.know(hosts)
        with open(site.config, "a", encoding="utf-8") as file:
            file.writelines(f"Host ws{i}\n  HostName {host.address}\n" for i, host in enumerate(hosts, 1))
        bin_folder = site.path("bin")
        os.mkdir(bin_folder)
        with open(os.path.join(bin_folder, "ssh"), "w", encoding="utf-8") as file:
            file.write(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {site.config} "$@"\n')
        os.chmod(os.path.join(bin_folder, "ssh"), 0o755)
        follow("cluster.md", bin_folder)
        for host in hosts:
            check(not host.files("me"), "left on", host.address, host.files("me"))
    finally:
        site.close()


@needs(lambda: reason or next((f"no `{tool}` here" for tool in ("cc", "patch", "pkg-config") if not shutil.which(tool)), None))
def your_own_alpha_beta():
    follow("library.md", PKG_CONFIG_PATH=library())


@needs_ports
def the_readme():
    """Its cluster stays to the end of the page, so the other sections search over it."""
    with open(os.path.join(guides.ROOT, "README.md"), encoding="utf-8") as file:
        stop = re.search(r"`(kill \$.*?)`", file.read(), re.S)[1]
    engine = os.path.join(scratch("engine"), "engine")  # our own stands for Debian's
    with open(engine, "w", encoding="utf-8") as file:
        file.write(f'#!/bin/sh\nunset ABDADA_KEYS ABDADA_SERVERS\nexec {os.path.abspath(BIN)}/abdada uci\n')
    os.chmod(engine, 0o755)
    guides.follow("../../README.md", [("--depth 9", "--depth 8"), ("/usr/games/stockfish", engine)],
                  links=[("bin", os.path.abspath(BIN))], last=stop)


if __name__ == "__main__":
    sys.exit(main([the_demo, the_readme, a_chess_program, an_othello_ending, redis_only, five_workstations_and_a_chess_program, your_own_alpha_beta], unstable=STARVED))
