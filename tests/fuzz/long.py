#!/usr/bin/python3
"""Coverage-guided fuzzing (libFuzzer) of the decoder, of a shard's core, of the client, of ZMTP and of files of games.

    tests/fuzz/long.py [--minutes M] [--only fuzz_ttcore] [--out build/libfuzzer]

M is minutes of processor time for each of them, whatever else the machine does meanwhile. The corpus stays in
OUT/corpus/NAME and is gone on with; an input that fails is left in OUT/NAME-crash-... and ends the run with
status 1. Needs clang and its runtime (Debian: clang, libclang-rt-14-dev); without them the status is 77.
"""
import argparse
import glob
import json
import os
import re
import resource
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ROUND_S = 60  # of wall-clock time; processor time is looked at in between
FLAGS = ["-std=c11", "-O1", "-g", "-I.", "-Ibuild/release", "-D_GNU_SOURCE", "-DLIBFUZZER", "-Wno-unused-function",
         "-fsanitize=fuzzer,address,undefined", "-fno-sanitize-recover=undefined"]
SOURCES = {
    "fuzz_decode": ["common/err.c", "proto/codec.c"],
    "fuzz_client": ["common/err.c", "proto/codec.c", "proto/client/*.c"],
    "fuzz_ggf": ["common/err.c", "common/lines.c", "proto/codec.c", "worker/programs/othello/othello_game.c",
                 "worker/games/othello/board.c"],
    "fuzz_bag_letter": ["common/err.c", "worker/engine/letter.c"],
    "fuzz_letter": ["common/err.c", "worker/engine/letter.c"],
    "fuzz_proof": ["common/err.c", "common/disk.c", "common/clock.c", "worker/programs/othello/proof*.c", "worker/games/othello/board.c",
                   "worker/games/othello/claim.c"],
    "fuzz_ttcore": ["common/err.c", "common/disk.c", "common/tt/*.c", "proto/codec.c", "ttserver/core/*.c"],
    "fuzz_zmtp": ["common/err.c", "ttserver/net/zmtp.c", "ttserver/net/curve.c"],
}
MAX_LENGTH = {"fuzz_ttcore": 16384}
STATUS = re.compile(r"#(\d+)\s+\w+\s+cov: (\d+) ft: (\d+) corp: (\d+)")
EXECS = re.compile(r"stat::number_of_executed_units: (\d+)")


def msgpack_library():
    for name in ("msgpack-c", "msgpack"):
        found = subprocess.run(["pkg-config", "--libs", name], capture_output=True, text=True)
        if found.returncode == 0:
            return found.stdout.split()
    return ["-lmsgpackc"]


def build(clang, name, out, more=()):
    sources = sum((sorted(glob.glob(pattern)) or [pattern] for pattern in SOURCES[name]), [])  # the compiler names what is gone
    command = [clang, *FLAGS, *more, f"tests/fuzz/{name}.c", *sources, *msgpack_library(), "-lsodium", "-lz", "-o", out]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        print(done.stderr[-2000:], file=sys.stderr)
    return done.returncode == 0


def sow(name, corpus):
    """The first inputs: the golden messages, one a file; streams of them for the core. ZMTP, GGF, proofs
    and letters have their own."""
    os.makedirs(corpus, exist_ok=True)
    if name == "fuzz_zmtp":
        sow_zmtp(corpus)
        return
    if name == "fuzz_ggf":
        sow_ggf(corpus)
        return
    if name == "fuzz_proof":
        with open("docs/proof.md") as page, open(os.path.join(corpus, "example"), "w") as file:
            file.write("1" + re.search(r"```\n(abdada-proof .*?)```", page.read(), re.DOTALL)[1])  # the text of one member
        return
    if name == "fuzz_letter":
        with open(os.path.join(corpus, "request"), "wb") as file:
            file.write(bytes(73))  # all zeroes: the shortest request for work
        return
    messages = []
    for path in sorted(glob.glob("tests/data/golden/messages-*.txt")):  # of each version that is spoken
        with open(path) as file:
            for line in file:
                words = line.split()
                if len(words) == 2:
                    messages.append((words[0], bytes.fromhex(words[1])))
    hello = dict(messages)["HELLO"]
    for number, (kind, message) in enumerate(messages):
        if name == "fuzz_ttcore":
            records = [(0, hello), (1, hello), (0, message), (0x81, message), (1, message)]
            message = b"".join(bytes([who]) + len(m).to_bytes(2, "big") + m for who, m in records)
        with open(os.path.join(corpus, f"golden-{number:02}-{kind}"), "wb") as file:
            file.write(message)


def sow_ggf(corpus):
    first = "BO[8 ---------------------------O*------*O--------------------------- *]"
    games = [f"(;GM[Othello]PB[a]TI[15:00/0:01/2:00]TY[8]{first}B[F5/1.5/2]W[F6//0.5]B[D3];)", f"(;{first};)",
             "(;TB[5]TW[1:02:03]BO[8 O*-------------------------------------------------------------- *]B[PA]W[C1];)"]
    games += ["f5d6c3d3c4\n1. F5 D6, # a comment\n", games[1] + "\n2 " + games[0]]
    wthor = bytes([20, 26, 11, 28, 1, *bytes(11)]) + bytes(8) + bytes([56, 64, 33]).ljust(60, b"\0")
    for number, game in enumerate([*map(str.encode, games), wthor]):
        with open(os.path.join(corpus, f"game-{number}"), "wb") as file:
            file.write(game)


def sow_zmtp(corpus):
    """One conversation for each way (see fuzz_zmtp.c)."""
    metadata = b"\x0bSocket-Type\0\0\0\x06DEALER"
    greeting = b"\xff\0\0\0\0\0\0\0\1\x7f\3\1"
    ready = b"\x04" + bytes([6 + len(metadata)]) + b"\5READY" + metadata
    traffic = b"\0\3one\1\3two\4\7\4PING\0\0\2" + (300).to_bytes(8, "big") + bytes(300)
    conversations = [
        greeting + b"NULL".ljust(52, b"\0") + ready + traffic,
        ready + traffic,
        greeting + b"CURVE".ljust(52, b"\0") + b"\4\xc8\5HELLO\1\0" + bytes(192),
        b"\6" + (279).to_bytes(8, "big") + b"\x08INITIATE" + bytes(270),
        metadata,
        b"\0\3one\1\3two\2\7\4PING\0\0",
    ]
    for way, conversation in enumerate(conversations):
        with open(os.path.join(corpus, f"way-{way}"), "wb") as file:
            file.write(bytes([way, 255]) + conversation)


def fuzz(name, program, corpus, out, minutes):
    """Rounds until the processor time is used up. (ok, line for people)"""
    begin = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    executed, coverage, used = 0, ("?", "?", "?"), 0.0
    while used < 60 * minutes:
        command = [program, f"-max_total_time={ROUND_S}", "-print_final_stats=1", "-timeout=60",
                   "-rss_limit_mb=2048", f"-max_len={MAX_LENGTH.get(name, 4096)}",
                   f"-artifact_prefix={out}/{name}-", corpus]
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        text = done.stderr.decode("utf-8", "replace")
        used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - begin
        executed += sum(int(n) for n in EXECS.findall(text))
        coverage = (STATUS.findall(text) or [("", *coverage)])[-1][1:]
        if done.returncode != 0:
            print(text[-4000:])
            return False, f"{name}: FAILED after {used / 60:.1f} CPU-minutes: see {out}/{name}-*"
        print(f"  {name}: {used / 60:.1f} CPU-minutes, {executed} runs, coverage {coverage[0]} edges, "
              f"{coverage[1]} features, corpus {coverage[2]}", flush=True)
    return True, (f"{name}: {used / 60:.1f} CPU-minutes, {executed} runs ({executed / max(used, 1):.0f} a second), "
                  f"{coverage[0]} edges, {coverage[1]} features, no failure")


def show_coverage(clang, name, corpus, out):
    """Lines of each source that the corpus reaches, where llvm-cov is here."""
    tools = [shutil.which(tool) or shutil.which(tool + "-14") for tool in ("llvm-profdata", "llvm-cov")]
    program, raw, profile = (os.path.join(out, f"{name}-coverage{end}") for end in ("", ".raw", ".profile"))
    if None in tools or not build(clang, name, program, ["-fprofile-instr-generate", "-fcoverage-mapping"]):
        return
    subprocess.run([program, "-runs=0", corpus], env=dict(os.environ, LLVM_PROFILE_FILE=raw),
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    subprocess.run([tools[0], "merge", "-o", profile, raw], check=True)
    text = subprocess.run([tools[1], "export", "-summary-only", f"-instr-profile={profile}", program],
                          capture_output=True, text=True).stdout
    for file in json.loads(text)["data"][0]["files"]:
        lines = file["summary"]["lines"]
        if lines["count"] and "/fuzz/" not in file["filename"]:
            print(f"    {os.path.relpath(file['filename'], ROOT):<32} {lines['percent']:5.1f}% of {lines['count']} lines")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10, help="of processor time, each (10)")
    parser.add_argument("--only", choices=sorted(SOURCES))
    parser.add_argument("--out", default="build/libfuzzer")
    a = parser.parse_args()
    os.chdir(ROOT)
    os.makedirs(a.out, exist_ok=True)
    clang = shutil.which("clang") or shutil.which("clang-14")
    probe = os.path.join(a.out, "fuzz_decode")
    if clang is None or not build(clang, "fuzz_decode", probe):
        print("no clang with libFuzzer here: apt-get install clang libclang-rt-14-dev")
        return 77
    summary, all_well = [], True
    for name in [a.only] if a.only else sorted(SOURCES):
        program, corpus = os.path.join(a.out, name), os.path.join(a.out, "corpus", name)
        if not build(clang, name, program):
            return 1
        sow(name, corpus)
        ok, line = fuzz(name, program, corpus, a.out, a.minutes)
        all_well = all_well and ok
        summary.append(line)
        show_coverage(clang, name, corpus, a.out)
    print("\n".join(summary))
    return 0 if all_well else 1


if __name__ == "__main__":
    sys.exit(main())
