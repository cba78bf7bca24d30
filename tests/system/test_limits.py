#!/usr/bin/python3
"""What a process takes of its host and of its shards: open files for its threads, memory for its table, a place for its
job; and what it says when it does not get it. TAP.

    BIN=build/dev/bin tests/system/test_limits.py
"""
import fcntl
import glob
import os
import re
import signal
import sys

from cluster import (SLOW_HEARTBEAT_MS, STARVED, Process, Shard, Worker, answers, check, equal, free_port, main, path_of, run, top,
                     wait_until)

THREADS, SHARDS = 128, 8
ENOUGH, TOO_FEW = (1024, 4096), (256, 1024)  # open files: soft and hard limit
POSITION = "r1bq1rk1/pp2bppp/2n1pn2/2pp4/3P1B2/2PBPN2/PP1N1PPP/R2QK2R w KQ - 0 8"
TABLE_MIB = 1024  # takes a process a while to make


def eight_shards():
    shards = [Shard(memory="1M") for _ in range(SHARDS)]
    return shards, ",".join(shard.address for shard in shards)


def end_all(processes):
    for process in processes:
        process.kill()


# ---- standard streams ----

def without(closed, program, *arguments):
    return Process("/bin/sh", "-c", f'exec "$0" "$@" {closed}', path_of(program), *arguments)


def to_nowhere(process):
    """Those of its standard streams that are /dev/null."""
    return {fd for fd in range(3) if os.readlink(f"/proc/{process.popen.pid}/fd/{fd}") == "/dev/null"}


def who_has_no_standard_streams_runs_and_writes_nowhere():
    for closed, numbers in (("<&-", {0}), (">&-", {1}), ("2>&-", {2}), ("<&- >&- 2>&-", {0, 1, 2})):
        address = f"127.0.0.1:{free_port()}"
        server = without(closed, "ttserver", "--listen", address, "--memory", "8M")
        wait_until(lambda: run("ttserver", "--check", address).status == 0, "the shard to serve")
        worker = without(closed, "ttworker", "--servers", address)
        wait_until(lambda: top(address)[1]["worker"], "the worker")
        front = without(closed, "abdada", "analyse", "--servers", address, "--depth", 60, POSITION)
        wait_until(lambda: top(address)[1]["job"], "the job")
        for process in (server, worker, front):
            equal(to_nowhere(process), numbers, process.tail())
        for process in (front, worker, server):
            equal(process.end(), 0, closed, process.tail())
        equal(without(closed, "ttserver", "--check", address).wait(), 1)


def a_log_that_nobody_reads_stops_no_shard():
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    filled, address = 0, f"127.0.0.1:{free_port()}"
    try:
        while True:
            filled += os.write(writer, b"x" * 512)
    except BlockingIOError:
        os.set_blocking(writer, True)
    server = Process("/bin/sh", "-c", f'exec "$0" "$@" 2>/proc/{os.getpid()}/fd/{writer}', path_of("ttserver"),
                     "--listen", address, "--memory", "8M")
    server.wait_line("^ready")
    worker = Worker(address)
    wait_until(lambda: top(address)[1]["worker"], "the worker")
    equal(len(os.read(reader, filled)), filled)
    worker.kill()
    os.close(writer)
    with os.fdopen(reader, encoding="ascii") as log:
        check(re.search(r"[1-9]\d* lines are missing here: standard error was not read", log.readline()))
        check(any("1 worker left" in line for line in log))  # on a busy machine behind a line that it came
        equal(server.end(), 0, server.tail())


# ---- open files ----

def all_threads_come(process):
    """A connection of each thread to each shard; a session would end again where a thread does not get to run in its time."""
    folder = f"/proc/{process.popen.pid}/fd"

    def connected():
        found = 0
        for fd in os.listdir(folder):
            try:
                found += os.readlink(f"{folder}/{fd}").startswith("socket:")
            except FileNotFoundError:
                pass  # closed meanwhile
        return found
    wait_until(lambda: connected() >= THREADS * SHARDS, "all threads' connections")


def a_worker_of_128_threads_with_8_shards_starts():
    shards, servers = eight_shards()
    worker = Process("ttworker", "--servers", servers, "--threads", THREADS, "--hash", 1, files=ENOUGH)
    worker.wait_line("^ready$")
    all_threads_come(worker)
    equal(worker.end(), 0, worker.tail())
    end_all(shards)


def an_analysis_of_128_threads_with_8_shards_runs():
    shards, servers = eight_shards()
    front = Process("abdada", "analyse", "--json", "--servers", servers, "--threads", THREADS, "--hash", 1, "--time", 600000,
                    POSITION, files=ENOUGH)
    front.close_input()
    all_threads_come(front)
    wait_until(lambda: shards[0].stats()["job_posts"] > 0, "the search begins")
    front.send_signal(signal.SIGINT)
    found = answers(front)
    equal((found[0]["threads"], found[0]["shards"]), (THREADS, SHARDS))
    end_all(shards)


def too_few_open_files_are_said_in_one_line():
    servers = ",".join(f"127.0.0.1:{port}" for port in range(1, SHARDS + 1))  # none need be there
    more = ["--servers", servers, "--threads", THREADS, "--hash", 1]
    for program, *command in (["ttworker"], ["abdada", "analyse", "--depth", 1],
                              ["abdada", "ttbench"]):
        arguments = [word if word != "--threads" or "ttbench" not in command else "--clients" for word in more]
        arguments = arguments[:-2] if "ttbench" in command else arguments
        process = Process(program, *command, *arguments, files=TOO_FEW)
        process.close_input()
        equal(process.wait(), 1, program, process.tail())
        said = process.lines["err"]
        equal(len(said), 1, program, said)
        check("open files and the limit is 1024" in said[0] and "ulimit -Hn" in said[0], said)
        check("ready" not in process.out(), process.out())
    uci = Process("abdada", "uci", *more, files=TOO_FEW)
    uci.send("isready")
    uci.wait_line("^info string error: .*open files and the limit is 1024")
    uci.wait_line("^readyok$")
    uci.send("quit")
    equal(uci.wait(), 0)


# ---- one table for the host ----

def table_of(process):
    """The path of the shared table that a process has open; None: none."""
    for name in glob.glob(f"/proc/{process.popen.pid}/fd/*"):
        try:
            path = os.readlink(name)
        except OSError:  # closed meanwhile
            continue
        if path.startswith("/dev/shm/abdada-"):
            return path
    return None


def is_being_made(path):
    try:
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_blocks == 0:
                return False
            fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return False
    except FileNotFoundError:
        return False
    except OSError:
        return True


def stopped_in_the_middle(new_process):
    """(a process that was stopped while it makes its table, the table's path)"""
    for _ in range(20):
        maker = new_process()
        path = wait_until(lambda: table_of(maker), "a table")
        wait_until(lambda: is_being_made(path) or "ready" in maker.out(), "the table to be in the making")
        maker.stop()
        if is_being_made(path):
            return maker, path
        maker.kill()  # it was faster
    raise AssertionError("no process was seen in the middle of making its table")


def lacks_room():
    """Why a test of tables cannot run here; a container has 64 MiB of shared memory. None: it can."""
    room = os.statvfs("/dev/shm")
    return "no room in /dev/shm" if room.f_bavail * room.f_frsize < 3 * TABLE_MIB << 20 else None


def two_that_start_together(end_of_first):
    """The second waits for the first, which is let go on, or killed; both then have one table."""
    why = lacks_room()
    if why:
        return why
    shard = Shard()

    def new_worker():
        return Process("ttworker", "--servers", shard.address, "--hash", TABLE_MIB)
    first, path = stopped_in_the_middle(new_worker)
    second = new_worker()
    said, _ = second.wait_line(r"waiting for the table that process (\d+) is making: (\d+) of (\d+) MiB", "err")
    equal(int(said[1]), first.popen.pid)
    check(0 <= int(said[2]) <= TABLE_MIB and int(said[3]) == TABLE_MIB, said[0])
    end_of_first(first)
    second.wait_line("^ready$")
    second.wait_line("the host's table of", "err")
    equal(table_of(second), path)
    if first.running():
        first.wait_line("^ready$")
        first.wait_line("the host's table of", "err")
        equal(os.stat(f"/proc/{first.popen.pid}/root{path}").st_ino, os.stat(path).st_ino)
        equal(first.end(), 0)
    equal(second.end(), 0)
    check(not os.path.exists(path), path, "is left")
    shard.kill()
    return None


def a_table_that_another_process_makes_is_waited_for():
    return two_that_start_together(lambda first: first.send_signal(signal.SIGCONT))


def a_table_whose_maker_dies_is_made_by_who_waits():
    return two_that_start_together(lambda first: first.kill())


def who_waits_for_a_table_can_be_ended():
    why = lacks_room()
    if why:
        return why
    shard = Shard()

    def new_worker():
        return Process("ttworker", "--servers", shard.address, "--hash", TABLE_MIB)
    first, _ = stopped_in_the_middle(new_worker)
    second = new_worker()
    second.wait_line("waiting for the table", "err")
    equal(second.end(), 0, second.tail())
    check("shared with no other" not in second.err(), second.tail())
    first.kill()
    shard.kill()
    return None


# ---- a job that a shard refuses ----

def a_refused_job_is_said_once_and_the_search_goes_on():
    full, free = Shard(0, "--jobs", 1, heartbeat_ms=SLOW_HEARTBEAT_MS), Shard()
    owner = Process("abdada", "analyse", "--servers", full.address, "--time", 600000, "--json", POSITION)
    wait_until(lambda: full.stats()["jobs"] == 1, "the first job")
    for servers, refused, rest in (([full], 1, "searching alone"),
                                   ([full, free], 1, "the search continues with the workers of the other shards"),
                                   ([free], 0, None)):
        front = Process("abdada", "analyse", "--servers", ",".join(shard.address for shard in servers), "--time", 600000,
                        "--json", "--private", POSITION)
        front.close_input()
        if rest:
            front.wait_line("refused the job", "err")
        front.wait_line("depth", "err")
        front.send_signal(signal.SIGINT)
        equal(front.wait(), 0, front.tail())
        equal(answers(front)[0]["refused"], refused)
        check(answers(front)[0]["depth"] > 0)
        said = [line for line in front.lines["err"] if "refused" in line]
        equal(len(said), 1 if rest else 0, front.tail())
        if rest:
            check(f"shard {full.address} refused the job: " in said[0] and said[0].endswith(rest), said)
    check(owner.running(), owner.tail())
    check("refused" not in owner.err(), owner.tail())
    end_all([owner, full, free])


def threads_beyond_the_sessions_of_a_shard_are_said():
    shard = Shard(0, "--sessions", 2)
    worker = Process("ttworker", "--servers", shard.address, "--threads", 4)
    worker.wait_line("^ready$")
    worker.wait_line(f"shard {shard.address} refused us: ", "err")
    equal(worker.end(), 0)
    equal(sum("refused us" in line for line in worker.lines["err"]), 1, worker.tail())
    shard.end()


def uci_says_that_a_job_was_refused():
    full = Shard(0, "--jobs", 1, heartbeat_ms=SLOW_HEARTBEAT_MS)
    owner = Process("abdada", "analyse", "--servers", full.address, "--time", 600000, "--json", POSITION)
    wait_until(lambda: full.stats()["jobs"] == 1, "the first job")
    uci = Process("abdada", "uci", "--servers", full.address, "--private")
    uci.send("isready\nposition startpos\ngo infinite")
    uci.wait_line(f"^info string shard {full.address} refused the job: .*; searching alone$")
    uci.send("stop")
    uci.wait_line("^bestmove [a-h]")
    uci.send("quit")
    equal(uci.wait(), 0)
    end_all([owner, full])


if __name__ == "__main__":
    sys.exit(main([
        who_has_no_standard_streams_runs_and_writes_nowhere,
        a_log_that_nobody_reads_stops_no_shard,
        a_worker_of_128_threads_with_8_shards_starts,
        an_analysis_of_128_threads_with_8_shards_runs,
        too_few_open_files_are_said_in_one_line,
        a_table_that_another_process_makes_is_waited_for,
        a_table_whose_maker_dies_is_made_by_who_waits,
        who_waits_for_a_table_can_be_ended,
        a_refused_job_is_said_once_and_the_search_goes_on,
        threads_beyond_the_sessions_of_a_shard_are_said,
        uci_says_that_a_job_was_refused,
    ], unstable=STARVED))
