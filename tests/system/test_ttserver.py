#!/usr/bin/python3
"""ttserver as a process: real sockets, real signals. TAP on stdout.

BIN: folder of the binaries (default ./bin). VALGRIND=1: also a run under valgrind, which must find
no leak and no error. valgrind does not know AVX-512: give it a build for a plainer processor, as in
    make MODE=release ARCH=x86-64-v2 build/release/bin/ttserver, and VALGRIND_BIN=build/release/bin
"""
import fnmatch
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import msgpack
import zmq

from network import free_port

BIN = os.environ.get("BIN", "./bin")
VERSION = 9
HELLO, WELCOME, ASK, ANSWER, STORE, RELEASE, PEEK, PEEK_ANSWER, HEARTBEAT, POST, JOB = range(1, 12)
STATS, STATS_ANSWER, ERROR, BYE = range(15, 19)
WORKER, FRONT, CLIENT = range(3)
PATIENCE = 30  # seconds that anything may take
# libzmq is not built for ThreadSanitizer, which then does not see how its threads agree.
suppressions = tempfile.NamedTemporaryFile("w", suffix=".supp")
suppressions.write("called_from_lib:libzmq.so\nrace:libzmq.so\n")
suppressions.flush()
os.environ["TSAN_OPTIONS"] = f"suppressions={suppressions.name}"
context = zmq.Context()


class Server:
    started = []

    def __init__(self, *options, command=()):
        folder = os.environ.get("VALGRIND_BIN", BIN) if command else BIN
        self.process = subprocess.Popen(
            [*command, os.path.join(folder, "ttserver"), "--memory", "16M", *options],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        Server.started.append(self.process)
        shards = int(options[options.index("--shards") + 1]) if "--shards" in options else 1
        self.ready = [self.process.stdout.readline().split() for _ in range(shards)]
        self.ports = [int(words[1].rsplit(":", 1)[1]) for words in self.ready if len(words) == 2]

    def end(self, number=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            _, self.log = self.process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            _, self.log = self.process.communicate()
        return self.process.returncode


class Client:
    def __init__(self, port, role=CLIENT, hello=True, high_water=1000):
        self.socket = context.socket(zmq.DEALER)
        self.socket.rcvhwm, self.socket.sndhwm = high_water, 100000
        self.socket.linger = 0
        self.socket.connect(f"tcp://127.0.0.1:{port}")
        if hello:
            self.say(HELLO, 1, role, 0, 5, 1, "test", 0)
            self.welcome = self.receive(WELCOME)

    def say(self, *fields):
        self.socket.send(msgpack.packb([VERSION, *fields]))

    def receive(self, kind=None, timeout=PATIENCE):
        """The next message, of this kind if one is given; None when time is up."""
        end = time.time() + timeout
        while self.socket.poll(max(0, int((end - time.time()) * 1000))):
            message = msgpack.unpackb(self.socket.recv())
            if kind is None or message[1] == kind:
                return message
        return None

    def figures(self):
        self.say(STATS, 1)
        return dict(self.receive(STATS_ANSWER)[3])

    def close(self):
        self.socket.close()


def run(*options):
    done = subprocess.run([os.path.join(BIN, "ttserver"), *options], capture_output=True, text=True,
                          timeout=60)
    return done.returncode, done.stdout, done.stderr


def test_two_shards_listen_on_two_consecutive_ports():
    for _ in range(20):  # somebody else may have the next port
        port = min(free_port(), 65534)
        server = Server("--shards", "2", "--listen", f"127.0.0.1:{port}")
        if len(server.ports) == 2:
            break
    assert server.ready == [["ready", f"127.0.0.1:{port + i}"] for i in range(2)], server.ready
    boots = {Client(p).welcome[4] for p in server.ports}
    assert len(boots) == 2
    assert server.end() == 0, server.log


def test_sigterm_and_sigint_say_bye_and_exit_0():
    for number in (signal.SIGTERM, signal.SIGINT):
        server = Server("--listen", "127.0.0.1:0", "--shards", "2")
        clients = [Client(port) for port in server.ports]
        begin = time.time()
        assert server.end(number) == 0, server.log
        print(f"# a signal ends it after {time.time() - begin:.3f} s")
        assert all(client.receive(BYE) for client in clients)


def test_a_second_signal_ends_at_once():
    server = Server("--listen", "127.0.0.1:0")
    server.process.send_signal(signal.SIGTERM)
    code = server.end(signal.SIGINT)  # either may be taken first, or the first end be quicker
    assert code in (0, 130, 143, -signal.SIGINT, -signal.SIGTERM), code


def test_operations_travel():
    server = Server("--listen", "127.0.0.1:0")
    a, b = Client(server.ports[0]), Client(server.ports[0])
    a.say(ASK, 7, [[1 << 63, 4, -100, 100, 1, 0], [2, 4, -100, 100, 1, 0]])
    assert a.receive() == [VERSION, ANSWER, 7, [[0, 0, -100, 100, 0, 1]] * 2]
    b.say(ASK, 8, [[1 << 63, 4, -100, 100, 1, 0]])
    assert b.receive()[3][0][0] == 2
    a.say(STORE, [[1 << 63, 4, -17, 3, 99, 0]])
    a.say(HEARTBEAT, 1)
    assert a.receive() == [VERSION, HEARTBEAT, 1]
    b.say(ASK, 9, [[1 << 63, 4, -100, 100, 1, 0]])
    assert b.receive()[3] == [[1, -17, -100, 100, 99, 0]]
    b.say(PEEK, 3, [[2, 4]])
    assert b.receive()[3] == [[-32767, 32767, 0, 0, 1]]
    assert server.end() == 0


def test_a_job_reaches_workers():
    server = Server("--listen", "127.0.0.1:0")
    worker, front = Client(server.ports[0], WORKER), Client(server.ports[0], FRONT)
    job = ["chess", "startpos", 6, 5, "abdada", 0, 9, 255, 0, 0]
    front.say(POST, 11, 77, *job)
    version, kind, number, user, *found = worker.receive(JOB)
    assert [version, kind, number, *found] == [VERSION, JOB, 11, *job]
    assert user not in (0, 77)  # the shard says who posted it, whatever the poster says
    late = Client(server.ports[0], WORKER)
    assert late.receive(JOB) == [VERSION, JOB, 11, user, *job]
    assert server.end() == 0


def has_expired():
    """A silent session has, and its claims; False: this test was not run for three heartbeats, and its own session expired."""
    server = Server("--listen", "127.0.0.1:0", "--heartbeat", "300")
    silent, watch = Client(server.ports[0]), Client(server.ports[0])
    silent.say(ASK, 1, [[1, 4, -100, 100, 0, 0]])
    silent.receive(ANSWER)
    last, end = time.time(), time.time() + PATIENCE
    while (figures := watch.figures())["sessions_expired"] == 0:
        assert time.time() < end, figures
        last = time.time()
        time.sleep(0.05)
        watch.say(HEARTBEAT, 1)
        if watch.receive()[1] == ERROR:
            assert time.time() - last > 0.8
            assert server.end() == 0
            return False
    assert figures["sessions"] == 1 and figures["inflight_entries"] == 0, figures
    assert server.end() == 0
    return True


def test_a_silent_session_expires():
    assert any(has_expired() for _ in range(20)), "this test was not run for as long as a session lives"


def test_wrong_use_exits_2_with_one_line():
    wrong = [["--nonsense"], ["--shards", "0"], ["--shards", "1000"], ["--memory", "12Q"],
             ["--memory", "1"], ["--listen", "7400"],
             ["--listen", "127.0.0.1:70000"],
             ["--listen", "0.0.0.0:0"], ["--listen", "*:0"], ["--heartbeat"], ["operand"],
             ["--keys", "/tmp", "--insecure"], ["--jobs", "-1"],
             ["--listen", "127.0.0.1:65535", "--shards", "2"]]
    for options in wrong:
        code, out, err = run(*options)
        assert code == 2 and out == "" and err.count("\n") == 1, (options, code, out, err)
    for options in (["--help"], ["--version"]):
        code, out, err = run(*options)
        assert code == 0 and out and err == ""


def test_more_memory_than_there_is_exits_1_with_one_line():
    for size, said in (("999T", "999 TiB"), ("8388608T", "8 EiB")):
        code, out, err = run("--memory", size)
        assert code == 1 and out == "" and err.count("\n") == 1, (code, out, err)
        assert err.startswith(f"ttserver: --memory {said} exceeds "), err


def test_address_in_use_exits_1_with_one_line():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        code, out, err = run("--listen", f"127.0.0.1:{s.getsockname()[1]}")
        assert code == 1 and out == "" and err.count("\n") == 1 and "in use" in err, (code, err)


def test_other_addresses_need_insecure():
    server = Server("--listen", f"0.0.0.0:{free_port()}", "--insecure")
    assert Client(server.ports[0]).welcome
    assert server.end() == 0


def test_a_thousand_connections_and_random_bytes_do_no_harm():
    server = Server("--listen", "127.0.0.1:0", "--sessions", "2000", "--heartbeat", "60000")
    port = server.ports[0]
    watch = Client(port)
    rng = random.Random(4)
    for burst in range(10):
        sockets = [socket.create_connection(("127.0.0.1", port)) for _ in range(100)]
        for s in sockets[::2]:
            s.send(rng.randbytes(rng.randrange(1, 2000)))
        for s in sockets:
            s.close()
        peers = [Client(port, hello=False) for _ in range(10)]
        for peer in peers:
            peer.say(HELLO, 2, CLIENT, 0, 0, burst + 1, "brief", 0)
            peer.socket.send(rng.randbytes(rng.randrange(0, 3000)))
            peer.socket.send_multipart([b"\x93\x02", b"", b"x" * rng.randrange(100)])
        for peer in peers:
            assert peer.receive(WELCOME)
            assert peer.receive(ERROR) and peer.receive(ERROR)
            peer.close()
    figures = watch.figures()
    # Noise on a bare connection may be taken for the oldest ZMTP: then it is a malformed message, or one of another version.
    assert figures["malformed"] + figures["versions_refused"] >= 200 and figures["sessions_opened"] == 101, figures
    too_large = Client(port)
    too_large.socket.send(b"\x00" * 65537)
    assert too_large.receive()[:3] == [VERSION, ERROR, 1]
    assert watch.figures()["oversized"] == 1
    too_large.socket.send(b"\x00" * 131073)  # the connection ends, and comes back as another
    while True:
        too_large.say(HEARTBEAT, 5)
        answer = too_large.receive(timeout=0.1)
        if answer and answer[1] == ERROR:
            assert answer[2] == 4, answer
            break
    watch.say(HEARTBEAT, 3)
    assert watch.receive() == [VERSION, HEARTBEAT, 3]
    assert server.end() == 0, server.log


def test_a_peer_that_does_not_read_is_read_no_further_and_closed():
    server = Server("--listen", "127.0.0.1:0", "--heartbeat", "1000")
    deaf, watch = Client(server.ports[0], high_water=1), Client(server.ports[0])
    deaf.socket.set(zmq.RECONNECT_IVL, -1)
    batch = [[i, 4, -100, 100, 0, 0] for i in range(1024)]
    message = msgpack.packb([VERSION, ASK, 1, batch])
    sent, longest, end = 0, 0.0, time.time() + 240
    while (figures := watch.figures())["pending_closed"] < 1:
        assert time.time() < end, figures
        for _ in range(16):
            if deaf.socket.poll(0, zmq.POLLOUT):
                deaf.socket.send(message, zmq.DONTWAIT)
                sent += 1
        begin = time.time()
        watch.say(HEARTBEAT, 3)
        assert watch.receive() == [VERSION, HEARTBEAT, 3]
        longest = max(longest, time.time() - begin)
    print(f"# {figures['batches']} of {sent} batches served; longest heartbeat beside them {longest:.3f} s")
    assert figures["sessions"] == 1 and figures["batches"] < sent, figures
    assert server.end() == 0


def test_check_says_whether_a_shard_serves():
    server = Server("--listen", "127.0.0.1:0")
    address = f"127.0.0.1:{server.ports[0]}"

    def check():
        return subprocess.run([os.path.join(BIN, "ttserver"), "--check", address], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=30)

    assert (check().returncode, check().stdout) == (0, "")
    server.process.send_signal(signal.SIGSTOP)
    assert check().returncode == 1, "a stalled shard still has an open port"
    server.process.send_signal(signal.SIGCONT)
    watch = Client(server.ports[0])
    end = time.time() + PATIENCE
    while watch.figures()["sessions"] > 1:
        assert time.time() < end, "checks leave no session"
    assert server.end() == 0
    done = check()
    assert done.returncode == 1 and done.stdout.count("\n") == 1, done


def test_valgrind_finds_nothing():
    if os.environ.get("VALGRIND") != "1" or not shutil.which("valgrind"):
        return "only with VALGRIND=1, and valgrind"
    server = Server("--listen", "127.0.0.1:0", "--shards", "2", "--heartbeat", "200",
                    command=["valgrind", "-q", "--leak-check=full", "--error-exitcode=9"])
    silent = []  # a socket that is collected says goodbye
    for port in server.ports:
        clients = [Client(port, role) for role in (WORKER, FRONT, CLIENT)]
        silent += clients
        clients[1].say(POST, 11, 0, "chess", "startpos", 6, 5, "abdada", 0, 9, 255, 0, 0)
        assert clients[0].receive(JOB)
        clients[2].say(ASK, 7, [[i, 4, -100, 100, 1, 0] for i in range(1000)])
        assert clients[2].receive(ANSWER)
        clients[2].socket.send(b"nonsense")
        assert clients[2].receive(ERROR)
    watch = Client(server.ports[0], role=WORKER)
    end = time.time() + PATIENCE
    while watch.figures()["sessions_expired"] < 3:  # so that this has been run, too
        assert time.time() < end
        time.sleep(0.05)
    assert server.end() == 0, server.log
    return None


def main():
    only = os.environ.get("ONLY", "*")
    tests = [f for name, f in sorted(globals().items()) if name.startswith("test_") and fnmatch.fnmatchcase(name[5:], only)]
    failed = 0
    if not tests:
        print("Bail out! no test here matches ONLY")
        return 1
    print(f"1..{len(tests)}")
    for number, test in enumerate(tests, 1):
        name = test.__name__[5:].replace("_", " ")
        try:
            skipped = test()
            print(f"ok {number} - {name}" + (f" # SKIP {skipped}" if skipped else ""), flush=True)
        except Exception as error:  # a failed test is a line, the others go on
            failed += 1
            print(f"not ok {number} - {name}\n# {type(error).__name__}: {str(error)[:600]!r}", flush=True)
        for process in Server.started:  # what a failed test left behind
            if process.poll() is None:
                process.kill()
                process.wait()
        Server.started.clear()
    context.destroy(linger=0)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
