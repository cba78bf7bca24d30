"""A worker that answers positions of a bag (worker/engine/bag_letter.h) with whatever it likes, for tests."""
import struct
import threading
import time

import client

BAG = 16  # flag of a JOB
WORK, FOUND = 64, 67
COUNTERS = 14
JOIN_EVERY_S = 0.05


class Peer(threading.Thread):
    """say(text) -> (depth, score, move): its answer on a position; until stop(). `given`: positions; `jobs`: bags."""

    def __init__(self, address, say):
        super().__init__(daemon=True)
        self.address, self.say, self.stopped, self.given, self.jobs = address, say, threading.Event(), 0, set()
        self.start()

    def run(self):
        worker = client.Client(self.address).hello(role=client.WORKER, name="peer")
        job, requests, due = None, 1, 0.0
        while not self.stopped.is_set():
            message = worker.pushed.pop(0) if worker.pushed else worker.receive(JOIN_EVERY_S)
            if message and message[0] == client.JOB and message[8] & BAG:
                job, due = message[1], 0.0
                self.jobs.add(job)
            elif message and message[0] == client.JOB_STOP and message[1] == job:
                job = None
            elif message and message[0] == client.MAIL and message[4][0] == WORK:
                self.answer(worker, message)
            if job and time.monotonic() >= due:  # more often, and the answers would fill its queue at the shard
                due = time.monotonic() + JOIN_EVERY_S
                requests += 1
                worker.send(client.MAIL_JOIN, requests, job)
        worker.bye()
        worker.close()

    def answer(self, worker, message):
        _, job, _, front, body = message
        at = 3
        for _ in range(body[2]):
            item, length = struct.unpack_from("<IB", body, at)
            text = body[at + 5:at + 5 + length].decode("ascii")
            at += 5 + length
            depth, score, move = self.say(text)
            self.given += 1
            found = struct.pack("<BBBIBBHhHB", FOUND, 0, 0, item, 0, depth, depth, score, move, 0)
            worker.send(client.MAIL, job, front, 0, found + bytes(8 * (COUNTERS + 1)))

    def stop(self):
        self.stopped.set()
        self.join()
