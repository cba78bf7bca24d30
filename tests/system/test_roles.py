#!/usr/bin/python3
"""What a key lets its user do, for every role of a key, every role in HELLO and every type of message. TAP.

    BIN=build/dev/bin tests/system/test_roles.py
"""
import contextlib
import os
import signal
import sys
import tempfile
import time

import zmq

import client
from client import CLIENT, EXACT, FRONT, MONITOR, WORKER, Client
from cluster import STARVED, Shard, check, equal, main, run, wait_until

ROLE_NAMES = {WORKER: "worker", FRONT: "front-end", CLIENT: "client", MONITOR: "monitor"}
ALL = {WORKER, FRONT, CLIENT, MONITOR}
SEARCHERS = {WORKER, FRONT, CLIENT}

# The roles that a key may take in HELLO.
KEYS = {
    "worker": {WORKER, CLIENT, MONITOR},
    "front-end": {FRONT, CLIENT, MONITOR},
    "monitor": {MONITOR},
    "administrator": ALL,
}

JOB, KEY = 77, 0x5eed
JOB_FIELDS = [0, "chess", "startpos", 1, 2, "abdada", 0, 5, 2, 0, 0]  # after the job's id
SHARDS_ALONE = "ERROR 3"

# name: (type, fields, the roles in which a session may send it).
MESSAGES = {
    "HEARTBEAT": (client.HEARTBEAT, [5], ALL),
    "RETRIEVE_ASK": (client.RETRIEVE_ASK, [5, [[KEY, 3, -5, 5, 0, 0]]], SEARCHERS),
    "STORE_HASH": (client.STORE_HASH, [[[KEY, 3, 7, EXACT, 0, 0]]], SEARCHERS),
    "RELEASE": (client.RELEASE, [[[KEY, 3, 0]]], SEARCHERS),
    "PEEK": (client.PEEK, [5, [[KEY, 3]]], SEARCHERS),
    "JOB_POST": (client.JOB_POST, [JOB + 1] + JOB_FIELDS, {FRONT}),
    "JOB_REPORT": (client.JOB_REPORT, [JOB, 1, 0, 3, 5, 6, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, "e2e4", "", ""], {WORKER, FRONT}),
    "STATS": (client.STATS, [5], ALL),
    "MEMBERS": (client.MEMBERS, [5, 0], ALL),
    "JOBS": (client.JOBS, [5, 0], ALL),
    "SHARE": (client.SHARE, [1, client.pack_results([[KEY, 3, 7, EXACT, 0]]), 0], SEARCHERS),
    "SCAN": (client.SCAN, [5, 0, 4], SEARCHERS),
    "FLUSH": (client.FLUSH, [5], {FRONT, CLIENT}),  # and for administrators alone
    "MAIL_JOIN": (client.MAIL_JOIN, [5, JOB], SEARCHERS),
    "MAIL": (client.MAIL, [JOB, 1, 1, b""], SEARCHERS),
    "MAIL_LIST": (client.MAIL_LIST, [5, JOB, []], SHARDS_ALONE),
    "FLUSHED": (client.FLUSHED, [5], SHARDS_ALONE),
    "SCANNED": (client.SCANNED, [5, 0, []], SHARDS_ALONE),
    "WELCOME": (client.WELCOME, [5, 1, 1, 1, 1, 1, 1, 1], SHARDS_ALONE),
    "RETRIEVE_ANSWER": (client.RETRIEVE_ANSWER, [5, []], SHARDS_ALONE),
    "PEEK_ANSWER": (client.PEEK_ANSWER, [5, []], SHARDS_ALONE),
    "JOB": (client.JOB, [JOB + 2] + JOB_FIELDS, SHARDS_ALONE),
    "NODE_DONE": (client.NODE_DONE, [[]], SHARDS_ALONE),
    "STATS_ANSWER": (client.STATS_ANSWER, [5, []], SHARDS_ALONE),
    "WORKER_INDEX": (client.WORKER_INDEX, [0, 1], SHARDS_ALONE),
    "MEMBERS_ANSWER": (client.MEMBERS_ANSWER, [5, 0, []], SHARDS_ALONE),
    "JOBS_ANSWER": (client.JOBS_ANSWER, [5, 0, []], SHARDS_ALONE),
    "BYE": (client.BYE, [0], ALL),  # the last: it ends the session
}
NOT_IN_TABLE = {client.HELLO, client.JOB_STOP, client.ERROR}  # tests of their own; an ERROR is never answered
ANSWERS = {client.RETRIEVE_ASK: client.RETRIEVE_ANSWER, client.PEEK: client.PEEK_ANSWER,
           client.HEARTBEAT: client.HEARTBEAT, client.STATS: client.STATS_ANSWER,
           client.MEMBERS: client.MEMBERS_ANSWER, client.JOBS: client.JOBS_ANSWER,
           client.SCAN: client.SCANNED, client.FLUSH: client.FLUSHED,
           client.MAIL_JOIN: client.MAIL_LIST}


@contextlib.contextmanager
def guarded():
    """(a shard with keys, their directory)"""
    with tempfile.TemporaryDirectory(prefix="abdada-roles-") as path:
        keys = os.path.join(path, "keys")
        equal(run("abdada", "keygen", keys).status, 0)
        shard = Shard(keys=keys, heartbeat_ms=5000)  # nobody expires
        yield shard, keys
        equal(shard.end(signal.SIGTERM), 0, shard.tail())


def connect(shard, keys, name):
    return Client(shard.address, keys=client.keys_of(keys, name))


def offer(session, kind, *fields):
    """Sends what a shard may no longer take: libzmq closes a connection whose key was refused, and does not try again."""
    with contextlib.suppress(zmq.Again):
        session.send(kind, *fields)


def answers(session, request):
    """What comes until the HEARTBEAT of this request, or an ERROR to it, is answered; the last one is that answer."""
    session.send(client.HEARTBEAT, request)
    found = []
    end = time.monotonic() + 30
    while time.monotonic() < end:
        message = session.receive(1)
        if message is None:
            continue
        found.append(message)
        if message[:2] == [client.HEARTBEAT, request] or (message[0] == client.ERROR and message[2] == request):
            return found
    raise client.Lost(client.HEARTBEAT)


def refusals(messages):
    return [message[1] for message in messages if message[0] == client.ERROR]


def cases():
    return [(key, role) for key, roles in KEYS.items() for role in sorted(roles)]


def every_message_of_every_role():
    types = {kind for kind, _, _ in MESSAGES.values()}
    equal(types | NOT_IN_TABLE, set(range(client.HELLO, client.MAIL + 1)) - {24, 25}, "every type is in a table")
    tried = 0
    with guarded() as (shard, keys):
        for key, role in cases():
            session = connect(shard, keys, key).hello(role=role)
            for name, (kind, fields, roles) in MESSAGES.items():
                session.send(kind, *fields)
                if name == "FLUSH" and key == "administrator" and role in roles:
                    session.wait(client.FLUSHED, 5)  # when it is done
                    continue
                got = answers(session, 4711)
                case = f"{name} by a {ROLE_NAMES[role]} with a key of role {key}: {got}"
                if roles == SHARDS_ALONE:
                    equal(refusals(got), [3], case)
                elif name == "BYE":
                    equal(refusals(got), [4], case)
                elif role not in roles or name == "FLUSH":
                    equal(refusals(got), [7], case)
                    check(ANSWERS.get(kind) not in [m[0] for m in got[:-1]], case)
                else:
                    equal(refusals(got), [], case)
                    check(ANSWERS.get(kind) in [None] + [m[0] for m in got[:-1]], case)
                tried += 1
            session.close()
    print(f"# {tried} messages")


def hello_takes_the_roles_of_the_key_alone():
    with guarded() as (shard, keys):
        for key, roles in KEYS.items():
            for role in sorted(ALL):
                session = connect(shard, keys, key)
                session.send(client.HELLO, 9, role, 0, 0, 1, "x", 0, 0, 0, "")
                if role in roles:
                    session.wait(client.WELCOME, 9)
                else:
                    equal(refusals(answers(session, 4711)), [7, 4], f"{ROLE_NAMES[role]} with a key of role {key}")
                    first = min(roles)
                    session.hello(role=first)  # and a HELLO that is refused changes nothing
                    session.send(client.HELLO, 9, role, 0, 0, 1, "x", 0, 0, 0, "")
                    equal(refusals(answers(session, 4711)), [7])
                    mine = {m["session"]: m["role"] for m in shard.query(Client.members)}
                    equal(mine[session.session], first)
                session.close()
            session = connect(shard, keys, key)
            session.send(client.HELLO, 9, MONITOR + 1, 0, 0, 1, "x", 0, 0, 0, "")
            equal(refusals(answers(session, 4711))[:1], [5], "a role that does not exist")
            session.close()


def refused_messages_have_done_nothing():
    with guarded() as (shard, keys):
        good = connect(shard, keys, "worker").hello()
        for key, role in cases():
            if role in SEARCHERS and role != CLIENT and key != "worker":
                continue
            session = connect(shard, keys, key).hello(role=role)
            if role == MONITOR:
                session.send(client.STORE_HASH, [[KEY, 9, 7, EXACT, 0, 0]])
                session.share(1, [[KEY, 9, 7, EXACT, 0]])
            session.send(client.JOB_POST, JOB, *JOB_FIELDS)
            check(7 in refusals(answers(session, 4711)))
            equal(good.peek(KEY, 9)[2:], (0, 0, 0), "nothing stored")
            equal(good.jobs_open(), [], "nothing posted")
            session.close()


def a_job_is_stopped_by_its_owner_and_by_an_administrator():
    with guarded() as (shard, keys):
        owner = connect(shard, keys, "front-end").hello(role=FRONT, instance=1)
        equal(run("abdada", "keygen", keys, "--name", "other", "--role", "front-end").status, 0)
        shard.send_signal(signal.SIGHUP)
        shard.wait_line("users may connect", "err")

        others = [(key, role) for key, role in cases() if key != "front-end"]
        for job, (key, role) in enumerate(others + [("other", FRONT), ("other", CLIENT), ("other", MONITOR)], JOB):
            def is_open(job=job):
                return job in [row["job"] for row in shard.query(Client.jobs_open)]
            owner.send(client.JOB_POST, job, *JOB_FIELDS)
            equal(refusals(answers(owner, 4711)), [], "of the post")
            check(is_open())
            session = connect(shard, keys, key).hello(role=role, instance=1)  # the owner's instance is no right
            session.send(client.JOB_STOP, job, 0)
            got = refusals(answers(session, 4711))
            equal((got, is_open()), ([], False) if key == "administrator" else ([7], True), key, role)
            session.close()
            owner.send(client.JOB_STOP, job, 0)
        equal(refusals(answers(owner, 4711)), [], "of the owner's own")
        equal(shard.query(Client.jobs_open), [])


def without_a_key_nothing_is_answered():
    nobody = zmq.curve_keypair()
    with guarded() as (shard, keys):
        server, public, secret = client.keys_of(keys, "administrator")
        others = {"no key": None, "a key that is not allowed": (server, *nobody),
                  "a wrong key of the server": (nobody[0], public, secret)}
        sessions = {name: Client(shard.address, keys=key) for name, key in others.items()}
        for session in sessions.values():
            for role in sorted(ALL):
                offer(session, client.HELLO, 1, role, 0, 0, 1, "x", 0, 0, 0, "")
            offer(session, client.STATS, 2)
            offer(session, client.MEMBERS, 3, 0)
        good = connect(shard, keys, "monitor").hello(role=MONITOR)
        for _ in range(20):
            good.heartbeat()
            for name, session in sessions.items():
                equal(session.receive(0.02), None, name)
        equal(len(good.members()), 1, "the monitor's is the only session")
        for session in sessions.values():
            session.close()


def a_removed_key_ends_its_sessions():
    with guarded() as (shard, keys):
        equal(run("abdada", "keygen", keys, "--name", "eve", "--role", "front-end").status, 0)
        shard.send_signal(signal.SIGHUP)
        at = shard.wait_line("5 users may connect", "err")[1]
        good = connect(shard, keys, "worker").hello(role=WORKER, name="good")
        eve = [connect(shard, keys, "eve").hello(role=role, name="eve") for role in (FRONT, CLIENT, MONITOR)]
        eve[0].send(client.JOB_POST, JOB, *JOB_FIELDS)
        good.wait_pushed(client.JOB)
        os.remove(os.path.join(keys, "allowed", "eve.public"))
        begin = time.monotonic()
        shard.send_signal(signal.SIGHUP)
        shard.wait_line("4 users may connect", "err", at)

        def names():
            return {m["name"] for m in shard.query(Client.members)}
        wait_until(lambda: "eve" not in names(), "the sessions to end")
        print(f"# ended after {1000 * (time.monotonic() - begin):.0f} ms")
        equal(good.wait_pushed(client.JOB_STOP)[1], JOB, "and their jobs")
        good.heartbeat()
        check("good" in names(), "the others go on")
        for session in eve:
            offer(session, client.STATS, 1)
            equal(session.receive(0.2), None, "of who was removed")
            session.close()


def a_role_that_was_taken_away_is_gone():
    with guarded() as (shard, keys):
        front = connect(shard, keys, "front-end").hello(role=FRONT)
        public = os.path.join(keys, "allowed", "front-end.public")
        with open(public, encoding="ascii") as file:
            text = file.read()
        with open(public, "w", encoding="ascii") as file:
            file.write(text.replace("front-end", "monitor"))
        shard.send_signal(signal.SIGHUP)
        shard.wait_line("4 users may connect", "err")

        def may_not_post():
            offer(front, client.JOB_POST, JOB, *JOB_FIELDS)
            message = front.receive(0.2)
            return message is None or message[0] == client.ERROR and message[1] in (4, 7)
        wait_until(may_not_post, "the post to be refused")
        wait_until(lambda: shard.query(Client.jobs_open) == [], "no job")
        front.close()


TESTS = [every_message_of_every_role, hello_takes_the_roles_of_the_key_alone, refused_messages_have_done_nothing,
         a_job_is_stopped_by_its_owner_and_by_an_administrator, without_a_key_nothing_is_answered,
         a_removed_key_ends_its_sessions, a_role_that_was_taken_away_is_gone]

if __name__ == "__main__":
    sys.exit(main(TESTS, unstable=STARVED))
