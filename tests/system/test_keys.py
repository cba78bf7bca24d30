#!/usr/bin/python3
"""Keys as users meet them: made, used by every program, refused where they do not fit. TAP.

    BIN=build/dev/bin tests/system/test_keys.py
"""
import contextlib
import glob
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile

import client
from cluster import (STARVED, PATIENT, Process, Shard, answers, check, equal, free_port, main, path_of, run, start, top,
                     wait_until)

ROLES = "worker", "front-end", "monitor", "administrator"
SEARCH = ["--strict", "--select", "plain", "--depth", "6", "--fresh", "startpos"]
LONGER = ["--strict", "--select", "plain", "--depth", "8", "--fresh", "startpos"]


@contextlib.contextmanager
def folder():
    with tempfile.TemporaryDirectory(prefix="abdada-keys-") as path:
        yield path


@contextlib.contextmanager
def ring():
    with folder() as path:
        keys = os.path.join(path, "keys")
        equal(run("abdada", "keygen", keys).status, 0)
        yield keys


@contextlib.contextmanager
def environment(**variables):
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def part(keys, *files):
    """What a host gets: another directory with these files alone."""
    path = tempfile.mkdtemp(dir=os.path.dirname(keys))
    for file in files:
        shutil.copy(os.path.join(keys, file), path)
    return path


def secrets(keys):
    found = []
    for path in glob.glob(os.path.join(keys, "*.secret")):
        with open(path, encoding="ascii") as file:
            found += re.findall(r"^secret (\S{40})$", file.read(), re.MULTILINE)
    return found


def score(process):
    answer, = answers(process)
    return (answer["depth"], answer["score_kind"], answer["score"]), answer


def alone(search):
    return score(start("--algorithm", "sequential", *search))[0]


def figures(servers, keys):
    with environment(ABDADA_KEYS=keys):
        status, found = top(servers)
    return status, found["shard"][0] if found["shard"] else {}


def test_keygen_makes_a_ring_and_never_overwrites_one():
    with ring() as keys:
        made = {os.path.relpath(os.path.join(at, name), keys)
                for at, _, names in os.walk(keys) for name in names}
        equal(made, {"server.secret", "server.public", *(f"{role}.secret" for role in ROLES),
                     *(f"allowed/{role}.public" for role in ROLES)})
        for name in made:
            mode = stat.S_IMODE(os.stat(os.path.join(keys, name)).st_mode)
            equal(mode & 0o077 if name.endswith(".secret") else mode & 0o022, 0, name)
        equal(stat.S_IMODE(os.stat(keys).st_mode), 0o700)
        equal(len(set(secrets(keys))), 5)
        before = secrets(keys)
        again = run("abdada", "keygen", keys)
        equal((again.status, again.out(), again.err()), (0, f"{keys} has all keys of a cluster already; nothing to do", ""))
        equal(secrets(keys), before)
        more = run("abdada", "keygen", keys, "--name", "anna", "--role", "front-end")
        equal(more.status, 0)
        check(os.path.exists(os.path.join(keys, "allowed/anna.public")), more.tail())
        again = run("abdada", "keygen", keys, "--name", "anna", "--role", "front-end")
        check(again.status == 0 and again.out().endswith("nothing to do"), again.tail())
        again = run("abdada", "keygen", keys, "--name", "anna", "--role", "monitor")
        check(again.status == 1 and "already there" in again.err(), again.tail())
        check(not any(secret in more.out() + more.err() for secret in secrets(keys)), "a secret is said")
        for wrong in ([], [keys, "--name", "otto"], [keys, "--role", "worker"],
                      [keys, "--name", "a/b", "--role", "worker"], [keys, "--name", "otto", "--role", "king"]):
            refused = run("abdada", "keygen", *wrong)
            check(refused.status == 2 and len(refused.lines["err"]) == 1, wrong, refused.tail())
        os.unlink(os.path.join(keys, "allowed/monitor.public"))
        before = secrets(keys)
        partial = run("abdada", "keygen", keys)
        check(partial.status == 1 and partial.out() == "" and "already there" in partial.err(), partial.tail())
        equal(secrets(keys), before)


def test_a_container_has_the_keys_of_its_role_alone():
    share = os.path.join(os.path.dirname(__file__), "../../deploy/share-keys")
    server = {"server.public", "server.secret", "monitor.secret", *(f"allowed/{role}.public" for role in ROLES)}
    wanted = {"server": server, "worker": {"server.public", "worker.secret"},
              "front-end": {"server.public", "front-end.secret"}}
    with folder() as path, environment(PATH=f"{os.path.abspath(os.path.dirname(path_of('abdada')))}:{os.environ['PATH']}"):
        for part_of in "ring/new/server.secret", "worker/server.public":  # killed in the middle of the first start
            os.makedirs(os.path.dirname(os.path.join(path, part_of)), exist_ok=True)
            with open(os.path.join(path, part_of), "w", encoding="ascii") as file:
                file.write("half")
        before = None
        for _ in range(2):
            subprocess.run([share, path], check=True, stdout=subprocess.DEVNULL)
            for role, files in wanted.items():
                top_of = os.path.join(path, role)
                equal({os.path.relpath(os.path.join(at, name), top_of)
                       for at, _, names in os.walk(top_of) for name in names}, files, role)
            found = secrets(os.path.join(path, "ring/keys"))
            equal((len(set(found)), before or found), (5, found))  # no others the second time
            before = found
        shard = Shard(0, "--keys", os.path.join(path, "server"))
        equal(run("ttserver", "--check", shard.address, "--keys", os.path.join(path, "server")).status, 0)
        equal(score(start("--servers", shard.address, "--keys", os.path.join(path, "front-end"), *SEARCH))[1]["shards_up"], 1)
        equal(shard.end(), 0)


def test_a_key_that_loses_its_role_is_said():
    """It is let in, but its HELLO is refused: one line, and `top` shows it."""
    with ring() as keys:
        allowed = os.path.join(keys, "allowed/front-end.public")
        with open(allowed, encoding="ascii") as file:
            text = file.read()
        with open(allowed, "w", encoding="ascii") as file:
            file.write(re.sub(r"^role front-end$", "role worker", text, flags=re.MULTILINE))
        shard = Shard(0, "--keys", keys)
        front = start("--servers", shard.address, "--keys", keys, "--threads", "2", *SEARCH)
        found, answer = score(front)
        equal((found[:2], answer["shards_up"]), (alone(SEARCH)[:2], 0), front.tail())
        said = [line for line in front.lines["err"] if f"shard {shard.address} refused us: " in line]
        equal(len(said), 1, front.tail())
        with environment(ABDADA_KEYS=keys):
            view = run("abdada", "top", "--once", "--servers", shard.address, *PATIENT)
        check(re.search(r"role_refused \d", view.out()), view.tail())
        equal(shard.end(), 0)


def test_programs_with_keys_work_together():
    expected = alone(LONGER)
    with ring() as keys, contextlib.ExitStack() as ends:
        # Each host has what it needs and no more.
        at_server = part(keys, "server.secret", "server.public", "monitor.secret")
        shutil.copytree(os.path.join(keys, "allowed"), os.path.join(at_server, "allowed"))
        at_worker = part(keys, "server.public", "worker.secret")
        at_front = part(keys, "server.public", "front-end.secret")
        shard = Shard(0, "--keys", at_server)
        ends.callback(shard.kill)
        equal(run("ttserver", "--check", shard.address, "--keys", at_server).status, 0)
        worker = Process("ttworker", "--servers", shard.address, "--keys", at_worker)
        ends.callback(worker.kill)
        worker.wait_line("^ready$")
        wait_until(lambda: figures(shard.address, keys)[1].get("workers") == 1, "a worker at the shard")
        front = start("--servers", shard.address, "--keys", at_front, *LONGER)
        found, answer = score(front)
        equal(found, expected)
        equal((answer["shards_up"], answer["workers"]), (1, 1), front.tail())
        load = run("abdada", "ttbench", "--servers", shard.address, "--keys", at_front, "--pattern", "random",
                   "--seconds", "1", "--json")
        equal(load.status, 0, load.tail())
        check(json.loads(load.out())["asks"] > 0, load.out())
        running = [shard, worker, front, load]
        texts = [f.out() + f.err() for f in running]
        for process in shard, worker:
            with open(f"/proc/{process.popen.pid}/cmdline", encoding="utf-8") as file:
                texts.append(file.read())
            with open(f"/proc/{process.popen.pid}/environ", encoding="utf-8") as file:
                texts.append(file.read())
        equal(worker.end(), 0)
        equal(shard.end(), 0)
        check(not any(secret in text for secret in secrets(keys) for text in texts), "a secret is said")


def test_environment_names_keys_and_servers():
    with ring() as keys, environment(ABDADA_KEYS=keys):
        shard = Shard()
        with environment(ABDADA_SERVERS=shard.address):
            worker = Process("ttworker")
            worker.wait_line("^ready$")
            equal(score(start(*SEARCH))[1]["shards_up"], 1)
            equal(run("abdada", "top", "--once", *PATIENT).status, 0)

            def is_helped():  # on a busy machine the shard may answer after the search has begun
                uci = Process("abdada", "uci")
                uci.send("uci")
                uci.wait_line(f"^option name Servers type string default {re.escape(shard.address)}$")
                uci.send("go depth 3")
                uci.wait_line("^bestmove")
                uci.send("quit")
                equal(uci.wait(), 0)
                return "searching on this machine until one does" not in uci.out() and uci.err() == ""
            wait_until(is_helped, "a search with the shard")
            equal(run("ttserver", "--check", shard.address).status, 0)
            worker.end()
        with environment(ABDADA_SERVERS="nonsense"):
            wrong = run("abdada", "analyse", *SEARCH)
            check(wrong.status == 2 and "ABDADA_SERVERS" in wrong.err(), wrong.tail())
            equal(run("abdada", "top", "--once", "--servers", shard.address, *PATIENT).status, 0)
        shard.end()


def searches_alone(shard, keys, says, again=True):
    """The score is right, and one line says why no shard helped."""
    options = ["--keys", keys] if keys else []
    front = start("--servers", shard.address, *options, *SEARCH)
    found, answer = score(front)
    equal(found, alone(SEARCH))
    equal(answer["shards_up"], 0)
    equal(sum(f"shard {shard.address} {says}" in line for line in front.lines["err"]), 1, front.tail())
    if again:
        for program in (["abdada", "top", "--once", "--servers", shard.address],
                        ["abdada", "ttbench", "--servers", shard.address, "--seconds", "0.1", "--pattern", "random"],
                        ["ttserver", "--check", shard.address]):
            refused = run(*program, *options)
            check(refused.status == 1 and says in refused.err(), program, refused.tail())


def test_without_a_key_nobody_is_let_in_and_stderr_says_why():
    with ring() as keys:
        shard = Shard(0, "--keys", keys)
        searches_alone(shard, None, "needs keys: add --keys DIR")
        status, row = figures(shard.address, keys)
        equal((status, row["sessions_opened"]), (0, 1))  # that of `top` itself
        shard.end()


def test_a_wrong_key_is_refused_and_stderr_says_why():
    with ring() as keys, ring() as others:
        shard = Shard(0, "--keys", keys)
        searches_alone(shard, others, "refused our key, without a reason: check that server.public")
        mixed = part(others, *(f"{role}.secret" for role in ROLES))
        shutil.copy(os.path.join(keys, "server.public"), mixed)
        searches_alone(shard, mixed, "refused our key: its operator must add it to allowed/")
        shard.end()
        shard = Shard()
        searches_alone(shard, keys, "has no keys, and we do")
        shard.end()


def test_a_check_with_a_key_that_was_taken_back_says_so():
    """With the key it is told that all is well; without, in one line why not; and a key given back is let in again."""
    with ring() as keys:
        watcher = part(keys, "server.public", "monitor.secret")
        allowed, elsewhere = os.path.join(keys, "allowed/monitor.public"), os.path.join(keys, "monitor.public")
        shard = Shard(0, "--keys", keys)

        def checked():
            return run("ttserver", "--check", shard.address, "--keys", watcher)
        equal(checked().status, 0)
        os.rename(allowed, elsewhere)
        shard.send_signal(signal.SIGHUP)
        shard.wait_line("SIGHUP: 3 users may connect", "err")
        refused = checked()
        equal((refused.status, refused.out(), refused.lines["err"]),
              (1, "", [f"ttserver: --check {shard.address}: refused our key: its operator must add it to allowed/"]))
        os.rename(elsewhere, allowed)
        shard.send_signal(signal.SIGHUP)
        shard.wait_line("SIGHUP: 4 users may connect", "err")
        equal(checked().status, 0)
        equal(shard.end(), 0)


def test_a_monitor_may_watch_and_no_more():
    with ring() as keys:
        shard = Shard(0, "--keys", keys)
        watcher = part(keys, "server.public", "monitor.secret")
        status, row = figures(shard.address, watcher)
        equal((status, row["state"]), (0, "up"))
        for command in (["abdada", "analyse", *SEARCH], ["abdada", "ttbench", "--seconds", "0.1"]):
            refused = run(*command, "--servers", shard.address, "--keys", watcher)
            check(refused.status == 1 and "has no key of the role front-end" in refused.err(), refused.tail())
        refused = run("ttworker", "--servers", shard.address, "--keys", watcher)
        check(refused.status == 1 and "has no key of the role worker" in refused.err(), refused.tail())
        uci = Process("abdada", "uci", "--servers", shard.address, "--keys", watcher)
        uci.send("go depth 2")
        uci.wait_line("has no key of the role front-end")
        uci.wait_line("^bestmove")
        uci.send("quit")
        equal(uci.wait(), 0)
        shard.end()


def test_a_key_decides_which_roles_hello_may_say():
    may = {"worker": {client.WORKER, client.CLIENT, client.MONITOR},
           "front-end": {client.FRONT, client.CLIENT, client.MONITOR},
           "monitor": {client.MONITOR},
           "administrator": {client.WORKER, client.FRONT, client.CLIENT, client.MONITOR}}
    with ring() as keys:
        shard = Shard(0, "--keys", keys)
        for name in ROLES:
            for role in client.WORKER, client.FRONT, client.CLIENT, client.MONITOR:
                peer = client.Client(shard.address, keys=client.keys_of(keys, name))
                try:
                    peer.hello(role=role)
                    code = 0
                except client.Refused as error:
                    code = error.code
                equal(code, 0 if role in may[name] else 7, name, role)
                peer.close()
        equal(shard.end(), 0)


def test_keys_that_others_may_read_are_refused():
    with ring() as keys:
        for name in "server", "worker":
            os.chmod(os.path.join(keys, f"{name}.secret"), 0o644)
        server = run("ttserver", "--listen", "127.0.0.1:0", "--keys", keys)
        worker = run("ttworker", "--servers", "127.0.0.1:1", "--keys", keys)
        for process in server, worker:
            check(process.status == 1 and "others than its owner may read it" in process.err(), process.tail())


def test_a_worker_comes_when_its_key_is_let_in():
    with ring() as keys, folder() as path:
        hers = os.path.join(path, "hers")
        equal(run("abdada", "keygen", hers, "--name", "anna", "--role", "worker").status, 0)
        shutil.copy(os.path.join(keys, "server.public"), hers)
        shard = Shard(0, "--keys", keys)
        worker = Process("ttworker", "--servers", shard.address, "--keys", hers)
        worker.wait_line("refused our key", stream="err")
        worker.wait_line("^ready$")
        shutil.copy(os.path.join(hers, "anna.public"), os.path.join(keys, "allowed"))
        shard.send_signal(signal.SIGHUP)
        wait_until(lambda: figures(shard.address, keys)[1].get("workers") == 1, "the worker at the shard")
        os.unlink(os.path.join(keys, "allowed/anna.public"))
        shard.send_signal(signal.SIGHUP)
        wait_until(lambda: figures(shard.address, keys)[1].get("workers") == 0, "no worker at the shard")
        equal(worker.end(), 0)
        equal(shard.end(), 0)


def test_a_shard_that_gets_keys_later_gets_its_workers():
    with ring() as keys:
        shard = Shard()
        worker = Process("ttworker", "--servers", shard.address, "--keys", keys)
        worker.wait_line("has no keys, and we do", stream="err")
        worker.wait_line("^ready$")
        shard.kill()
        shard = Shard(shard.port, "--keys", keys)
        wait_until(lambda: figures(shard.address, keys)[1].get("workers") == 1, "the worker at the shard")
        equal(worker.end(), 0)
        equal(shard.end(), 0)


def test_beyond_loopback_keys_are_needed():
    refused = run("ttserver", "--listen", f"0.0.0.0:{free_port()}")
    check(refused.status == 2 and len(refused.lines["err"]) == 1, refused.tail())
    for word in "abdada keygen DIR", "--keys DIR", "--insecure":
        check(word in refused.err(), word, refused.err())
    with ring() as keys:
        port = free_port()
        shard = Process("ttserver", "--listen", f"0.0.0.0:{port}", "--memory", "32M", "--keys", keys)
        shard.wait_line("^ready ")
        equal(figures(f"127.0.0.1:{port}", keys)[0], 0)
        equal(shard.end(), 0)


def test_where_root_has_no_number_keys_can_be_used():
    """In a user namespace of somebody else than root, "/" belongs to nobody."""
    with folder() as path:
        os.chmod(path, 0o1777)
        somebody = ["setpriv", "--reuid", "65533", "--regid", "65533", "--clear-groups"] if os.geteuid() == 0 else []
        there = [*somebody, "unshare", "--user", "--map-root-user"]
        if subprocess.run([*there, path_of("abdada"), "--version"], capture_output=True, check=False).returncode != 0:
            return "no user namespaces here, or the programs are in a private folder"
        made = subprocess.run([*there, path_of("abdada"), "keygen", f"{path}/ring"], capture_output=True, text=True, check=False)
        equal(made.returncode, 0, made.stderr)
    return None


if __name__ == "__main__":
    sys.exit(main([value for name, value in list(globals().items()) if name.startswith("test_")], unstable=STARVED))
