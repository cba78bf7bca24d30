"""A client of one abdada shard, written from proto/PROTOCOL.md alone (not from the C sources)."""

import itertools
import os
import random
import struct
import time

import msgpack
import zmq

VERSION = 9
(HELLO, WELCOME, RETRIEVE_ASK, RETRIEVE_ANSWER, STORE_HASH, RELEASE, PEEK, PEEK_ANSWER, HEARTBEAT,
 JOB_POST, JOB, JOB_STOP, JOB_REPORT, NODE_DONE, STATS, STATS_ANSWER, ERROR, BYE, WORKER_INDEX, MEMBERS,
 MEMBERS_ANSWER, JOBS, JOBS_ANSWER) = range(1, 24)
SHARE, FLUSH, FLUSHED, SCAN, SCANNED, MAIL_JOIN, MAIL_LIST, MAIL = range(26, 34)  # 24 and 25 are reserved
OPEN, CUT, BUSY = 0, 1, 2
LOWER, UPPER, EXACT = 1, 2, 3
BESIDE = 4  # added to a bound: the result stays beside those of other depths of its key
EXCLUSIVE, STRICT = 1, 2
WORKER, FRONT, CLIENT, MONITOR = 0, 1, 2, 3
SEARCHING, ENDED, REFUSED = 0, 1, 2  # a worker's job
NO_SESSION = 4  # code of an ERROR
UNKNOWN_LOW, UNKNOWN_HIGH = -32767, 32767
MASK = (1 << 64) - 1


def mix(x):
    """Section 5."""
    x = ((x ^ (x >> 30)) * 0xbf58476d1ce4e5b9) & MASK
    x = ((x ^ (x >> 27)) * 0x94d049bb133111eb) & MASK
    return x ^ (x >> 31)


def alias(instance):
    """Section 6: SipHash-2-4 of eight bytes."""
    def rotate(x, bits):
        return (x << bits | x >> (64 - bits)) & MASK

    def rounds(a, b, c, d, count):
        for _ in range(count):
            a, c = (a + b) & MASK, (c + d) & MASK
            b, d = rotate(b, 13) ^ a, rotate(d, 16) ^ c
            a, c = (rotate(a, 32) + d) & MASK, (c + b) & MASK
            b, d = rotate(b, 17) ^ c, rotate(d, 21) ^ a
            c = rotate(c, 32)
        return a, b, c, d

    low, high = (int.from_bytes(b"abdada instance "[i:i + 8], "little") for i in (0, 8))
    a, b, c, d = (start ^ key for start, key in zip(struct.unpack(">4Q", b"somepseudorandomlygeneratedbytes"),
                                                   (low, high, low, high)))
    for word in (instance, 8 << 56):
        a, b, c, d = rounds(a, b, c, d ^ word, 2)
        a ^= word
    a, b, c, d = rounds(a, b, c ^ 0xff, d, 4)
    return a ^ b ^ c ^ d or 1


def owner(key, places):
    """Index of the shard that owns the key. (The same place twice: see section 5.)"""
    return max(range(len(places)), key=lambda i: mix(key ^ mix(places[i])))


def report_of(message):
    """A JOB_REPORT with the names of section 4; of an earlier build left_s is missing."""
    names = """job instance state depth score move nodes asks busy deferred duplicated abandoned waited_us
        talked_us bytes_sent bytes_received line name why left_s""".split()
    assert message[0] == JOB_REPORT and len(message) >= len(names), message
    return dict(zip(names, message[1:]))


def key_of(position, namespace_id):
    """Section 3: what a client sends for a position key."""
    return position ^ mix(namespace_id)


def pack_results(results):
    """Section 2: [[key, depth, score, bound, move], ...]"""
    return b"".join(struct.pack("<QhHB", key, score, move, depth * 4 + bound)
                    for key, depth, score, bound, move in results)


def unpack_results(packed):
    """The other way."""
    return [(key, last >> 2, score, last & 3, move) for key, score, move, last in struct.iter_unpack("<QhHB", packed)]


def keys_of(directory, name):
    """What a Client needs, from a directory of keys: `name` of its *.secret."""
    def field(file, wanted):
        with open(os.path.join(directory, file), encoding="ascii") as lines:
            return [line.split()[1].encode() for line in lines if line.startswith(wanted + " ")][0]
    return (field("server.public", "public"), field(name + ".secret", "public"),
            field(name + ".secret", "secret"))


class Lost(Exception):
    """No answer in time."""


class Refused(Exception):
    """An ERROR instead of an answer."""

    def __init__(self, code, text):
        super().__init__("%d %s" % (code, text))
        self.code = code


class Client:
    """One session at one shard. Everything pushed or unexpected is kept in `pushed`."""

    def __init__(self, address, timeout=30.0, keys=None, receive_most=None):
        """keys: (server's public, own public, own secret), as keys_of returns them. receive_most: messages that wait
        here to be read; more wait at the shard."""
        self.socket = zmq.Context.instance().socket(zmq.DEALER)
        if keys:
            self.socket.curve_serverkey, self.socket.curve_publickey, self.socket.curve_secretkey = keys
        if receive_most:
            self.socket.rcvhwm, self.socket.rcvbuf = receive_most, 4096
        self.socket.setsockopt(zmq.LINGER, 200)  # for a BYE
        self.socket.setsockopt(zmq.SNDTIMEO, 1000)  # who was refused has no connection that could take a message
        self.socket.connect("tcp://" + address)
        self.timeout = timeout
        self.requests = itertools.count(1)
        self.pushed = []
        self.worker_index = None  # (worker_index, workers) as it came last

    def close(self):
        self.socket.close()

    def send_bytes(self, *frames):
        self.socket.send_multipart(frames)

    def send(self, kind, *fields):
        self.send_bytes(msgpack.packb([VERSION, kind] + list(fields)))

    def receive(self, timeout=None):
        """The next message as a list [type, field...]; None when there is none in time."""
        if not self.socket.poll(1000 * (self.timeout if timeout is None else timeout)):
            return None
        message = msgpack.unpackb(self.socket.recv(), raw=False, unicode_errors="replace")
        assert message[0] == VERSION, message
        return message[1:]

    def wait(self, kind, request=None, timeout=None):
        """The next message of this type (and request); what comes before it goes to `pushed`."""
        end = time.monotonic() + (self.timeout if timeout is None else timeout)
        while time.monotonic() < end:
            message = self.receive(max(0.0, end - time.monotonic()))
            if message is None:
                break
            if message[0] == WORKER_INDEX:
                self.worker_index = tuple(message[1:3])
                if kind != WORKER_INDEX:
                    continue
            if message[0] == kind and request in (None, message[1]):
                return message
            if message[0] == ERROR and request is not None and message[2] in (0, request):
                raise Refused(message[1], message[3])
            self.pushed.append(message)
        raise Lost(kind)

    def wait_pushed(self, kind):
        """The oldest pushed message of this type, waiting for one if need be."""
        for message in self.pushed:
            if message[0] == kind:
                self.pushed.remove(message)
                return message
        return self.wait(kind)

    def call(self, kind, answer, *fields):
        request = next(self.requests)
        self.send(kind, request, *fields)
        return self.wait(answer, request)

    def hello(self, role=CLIENT, flags=0, namespace_id=0, instance=None, name="python", table_id=0):
        self.instance = random.getrandbits(64) if instance is None else instance
        message, request, end = None, next(self.requests), time.monotonic() + self.timeout
        while message is None:  # as every client does: a connection that broke has taken the first with it
            self.send(HELLO, request, role, flags, namespace_id, self.instance, name, table_id, VERSION, VERSION, "1.2.3")
            try:
                message = self.wait(WELCOME, request, min(self.timeout, 5))
            except Lost:
                if time.monotonic() >= end:
                    raise
        (self.session, self.boot, self.heartbeat_ms, self.batch_max, self.jobs,
         self.inflight_age_max_ms, self.place) = message[2:9]
        return self

    def ask(self, key, depth, alpha=-100, beta=100, flags=0, slot=0):
        """(verdict, score, alpha, beta, move, nproc)"""
        return self.ask_all([[key, depth, alpha, beta, flags, slot]])[0]

    def ask_all(self, asks):
        return [tuple(a) for a in self.call(RETRIEVE_ASK, RETRIEVE_ANSWER, asks)[2]]

    def store(self, key, depth, score, bound, move=0, slot=0):
        self.send(STORE_HASH, [[key, depth, score, bound, move, slot]])

    def release(self, key, depth, slot=0):
        self.send(RELEASE, [[key, depth, slot]])

    def peek(self, key, depth):
        """(lower, upper, depth, move, nproc)"""
        return tuple(self.call(PEEK, PEEK_ANSWER, [[key, depth]])[2][0])

    def share(self, table_id, results):
        self.send(SHARE, table_id, pack_results(results), 0)

    def heartbeat(self):
        self.call(HEARTBEAT, HEARTBEAT)

    def stats(self):
        return dict(map(tuple, self.call(STATS, STATS_ANSWER)[2]))

    def pages(self, kind, answer):
        rows, start = [], 0
        while True:
            start, page = self.call(kind, answer, start)[2:4]
            rows += page
            if start == 0:
                return rows

    def members(self):
        names = """session instance_id role job silent_ms name user nodes asks waited_us talked_us duplicated abandoned
            bytes_sent bytes_received highest release refuses why""".split()
        return [dict(zip(names, row)) for row in self.pages(MEMBERS, MEMBERS_ANSWER)]

    def jobs_open(self):
        names = """job workers age_ms depth reached owner game algorithm position user score move nodes duplicated
            abandoned bytes line left_s""".split()
        return [dict(zip(names, row)) for row in self.pages(JOBS, JOBS_ANSWER)]

    def scan(self, depth=0):
        """{(key, depth): (lower, upper, move)} of all results of at least that depth"""
        found, cursor = {}, 0
        while True:
            cursor, page = self.call(SCAN, SCANNED, cursor, depth)[2:4]
            found.update((tuple(row[:2]), tuple(row[2:])) for row in page)
            if cursor == 0:
                return found

    def flush(self):
        self.call(FLUSH, FLUSHED)

    def bye(self):
        self.send(BYE, 0)
