"""A worker that answers positions of a bag (worker/engine/letter.h) with whatever it likes, for tests."""
import struct
import threading
import time

import client

BAG = 16  # flag of a JOB
WORK, HAS, FOUND = 64, 66, 67
COUNTERS = 18
JOIN_EVERY_S = 0.05


class Peer(threading.Thread):
    """say(text) -> (depth, score, move): its answer on a position; until stop(). `given`: positions; `jobs`: bags."""
    every_s = JOIN_EVERY_S

    def __init__(self, address, say):
        super().__init__(daemon=True)
        self.address, self.say, self.stopped, self.given, self.jobs = address, say, threading.Event(), 0, set()
        self.start()

    def run(self):
        worker = client.Client(self.address).hello(role=client.WORKER, name="peer")
        job, requests, due = None, 1, 0.0
        while not self.stopped.is_set():
            message = worker.pushed.pop(0) if worker.pushed else worker.receive(self.every_s)
            if message and message[0] == client.JOB and message[8] & BAG:
                job, due = message[1], 0.0
                self.jobs.add(job)
            elif message and message[0] == client.JOB_STOP and message[1] == job:
                job = None
            elif message and message[0] == client.MAIL:
                self.take(worker, message)
            elif message and message[0] == client.MAIL_LIST:
                self.listed(worker, *message[2:])
            if job and time.monotonic() >= due:  # more often, and the answers would fill its queue at the shard
                due = time.monotonic() + self.every_s
                requests += 1
                worker.send(client.MAIL_JOIN, requests, job)
        worker.bye()
        worker.close()

    def listed(self, worker, job, aliases):
        pass

    def take(self, worker, message):
        _, job, _, front, body = message
        if body[0] != WORK:
            return
        at = 3
        for _ in range(body[2]):
            item, length = struct.unpack_from("<IB", body, at)
            text = body[at + 5:at + 5 + length].decode("ascii")
            at += 5 + length
            depth, score, move = self.say(text)
            self.given += 1
            found = struct.pack("<BBB", FOUND, 0, 0) + struct.pack("<IB3xIIIiIHH128x", item, 0, depth, 0, depth, score, 0, move, 0)
            worker.send(client.MAIL, job, front, 0, found + bytes(8 * (COUNTERS + 1)))

    def stop(self):
        self.stopped.set()
        self.join()


class Thief(Peer):
    """A worker that sends all who take part in a bag a position of its own to search. `tries`: letters; `robbed`: answers."""
    every_s = 0.004

    def __init__(self, address, text):
        self.body = struct.pack("<BBBIB", WORK, 0, 1, 5, len(text)) + text.encode("ascii")
        self.tries = self.robbed = 0
        super().__init__(address, None)

    def listed(self, worker, job, aliases):
        for (alias,) in aliases:
            worker.send(client.MAIL, job, alias, 0, self.body)
            self.tries += 1

    def take(self, worker, message):
        self.robbed += message[4][0] in (HAS, FOUND)


class Poisoner(threading.Thread):
    """A worker that takes part in no letters, and shares `results` with all who search in a bag's namespace. `spoiled`: bags."""

    def __init__(self, address, results):
        super().__init__(daemon=True)
        self.address, self.results, self.stopped, self.spoiled = address, results, threading.Event(), 0
        self.start()

    def run(self):
        worker, namespace = client.Client(self.address).hello(role=client.WORKER, name="poisoner"), 0
        while not self.stopped.is_set():
            message = worker.pushed.pop(0) if worker.pushed else worker.receive(0.001 if namespace else JOIN_EVERY_S)
            if message and message[0] == client.JOB and message[8] & BAG and message[6] != namespace:
                namespace = message[6]
                worker.hello(role=client.WORKER, namespace_id=namespace, instance=worker.instance, name="poisoner", table_id=77)
                self.spoiled += 1
            elif message and message[0] == client.JOB_STOP:
                namespace = 0
            if namespace:
                worker.share(77, [(key ^ namespace, *rest) for key, *rest in self.results])
        worker.bye()
        worker.close()

    def stop(self):
        self.stopped.set()
        self.join()
