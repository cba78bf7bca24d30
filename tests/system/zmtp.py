#!/usr/bin/python3
"""ZMTP 3.1 peers of bare sockets (ZeroMQ RFC 37, mechanism NULL), for what libzmq never does: half a message, nothing
but PINGs, no reading, handshakes that stop. As a program it is a flood of such handshakes, until it is killed:

    zmtp.py HOST:PORT null|curve
"""
import itertools
import random
import socket
import struct
import sys

import msgpack

import client

COMMAND, LARGE = 4, 2
FLOOD_OPEN = 900  # connections that a flood keeps at most: two of them fill a shard
FLOOD_BEGUN = 5000


def greeting(mechanism, minor=1):
    return b"\xff" + bytes(8) + b"\x7f\3" + bytes([minor]) + mechanism.ljust(20, b"\0") + bytes(32)


def header(length, flags=0):
    """Of a frame."""
    return bytes([flags, length]) if length < 256 else struct.pack(">BQ", flags | LARGE, length)


def frame(body, flags=0):
    return header(len(body), flags) + body


READY = frame(b"\5READY\x0bSocket-Type\0\0\0\6DEALER", COMMAND)
PING = frame(b"\4PING\0\0", COMMAND)
CURVE_HELLO = frame(b"\5HELLO\1\0" + bytes(192), COMMAND)  # as long as a true one; the box within is none


def message(kind, *fields):
    return frame(msgpack.packb([client.VERSION, kind, *fields]))


class Peer:
    """A connection, its handshake sent if it `greets`. `source`: the address that it comes from; `minor`: of ZMTP 3."""

    def __init__(self, address, source="", timeout=30, minor=1, greets=True):
        host, port = address.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout, (source, 0) if source else None)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer, self.requests = b"", 0
        if greets:
            self.send(greeting(b"NULL", minor) + READY)

    def close(self):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def try_send(self, data):
        """False when the shard has closed the connection."""
        try:
            self.send(data)
        except OSError:
            return False
        return True

    def fill(self):
        more = self.socket.recv(1 << 16)
        if not more:
            raise EOFError("the shard closed the connection")
        self.buffer += more

    def take(self, length):
        while len(self.buffer) < length:
            self.fill()
        taken, self.buffer = self.buffer[:length], self.buffer[length:]
        return taken

    def receive(self):
        """The next message as a list [type, field...]; commands are passed over. EOFError at the end."""
        while True:
            flags = self.take(1)[0]
            if flags == 0xff:  # the greeting
                self.take(63)
                continue
            length = struct.unpack(">Q", self.take(8))[0] if flags & LARGE else self.take(1)[0]
            body = self.take(length)
            if not flags & COMMAND:
                return msgpack.unpackb(body, raw=False)[1:]

    def received(self):
        """The messages that have come by now."""
        found, timeout = [], self.socket.gettimeout()
        self.socket.settimeout(0)
        try:
            while True:
                self.fill()
        except BlockingIOError:
            self.socket.settimeout(timeout)
        while self.buffer:
            found.append(self.receive())
        return found

    def wait(self, *kinds):
        while True:
            got = self.receive()
            if got[0] in kinds:
                return got

    def say_hello(self, role=client.CLIENT):
        self.send(message(client.HELLO, 1, role, 0, 0, random.getrandbits(64), "bare", 0, 0, 0, ""))
        return self

    def hello(self, role=client.CLIENT):
        """Raises client.Refused for an ERROR."""
        got = self.say_hello(role).wait(client.WELCOME, client.ERROR)
        if got[0] == client.ERROR:
            raise client.Refused(got[1], got[3])
        return self

    def call(self, kind, answer, *fields):
        self.requests += 1
        self.send(message(kind, self.requests, *fields))
        while True:
            got = self.wait(answer, client.ERROR)
            if got[0] == client.ERROR:
                raise client.Refused(got[1], got[3])
            if got[1] == self.requests:
                return got

    def heartbeat(self):
        self.call(client.HEARTBEAT, client.HEARTBEAT)

    def stats(self):
        return dict(map(tuple, self.call(client.STATS, client.STATS_ANSWER)[2]))


def flood(address, opening):
    """Opens connections as fast as it can; each says the opening and nothing more, and makes room for later ones. Says
    so after FLOOD_BEGUN of them."""
    host, port = address.rsplit(":", 1)
    held = []
    for number in itertools.count(1):
        if number == FLOOD_BEGUN:
            print("flood", flush=True)
        peer = socket.socket()
        peer.setblocking(False)
        held.append(peer)
        try:
            peer.connect((host, int(port)))
        except BlockingIOError:
            pass
        try:
            peer.send(opening)
        except OSError:  # not yet connected, or closed already
            pass
        if len(held) > FLOOD_OPEN:
            held.pop(0).close()


if __name__ == "__main__":
    flood(sys.argv[1], greeting(b"CURVE") + CURVE_HELLO if sys.argv[2] == "curve" else greeting(b"NULL") + READY)
