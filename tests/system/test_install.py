#!/usr/bin/python3
"""What `make install` installs beside programs and library: manual pages and bash completion, and what the Debian
package has of its own, the units of systemd; and what is released besides: a tarball, and a list of what is in it. TAP.

    BIN=bin tests/system/test_install.py

Tests whose tools are missing are skipped.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

from cluster import ROOT, SHORT, check, equal, main
from test_lib import at, needs_tools

PROGRAMS = ("ttserver", "ttworker", "abdada")
COMPLETION = "/usr/share/bash-completion/bash_completion"
EXPOSURE_MAX = 2.0
OPTION = re.compile(r"^  (?:-\w(?: [A-Z]+)?,|   )? ?(--[a-z-]+)", re.MULTILINE)
COMMAND = re.compile(r"^  ([a-z]+) ", re.MULTILINE)


def printed(*command, **options):
    """stdout and stderr of what succeeds."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    equal(done.returncode, 0, *command, done.stdout[-2000:])
    return done.stdout


def help_of(program, *command):
    return printed(at("bin", program), *command, "--help")


def commands():
    found = COMMAND.findall(help_of("abdada"))
    check(len(found) >= 9, found)
    return found


def needs(path, name):
    """The test is skipped without this file or command."""
    def decorate(test):
        def wrapped():
            return test() if os.path.exists(path) or shutil.which(path) else f"{name} is not here"
        wrapped.__name__ = test.__name__
        return needs_tools(wrapped)
    return decorate


# ---- manual pages ----

def words(text):
    return " ".join(text.replace("`", "").split())


def rendered(program):
    page = at("share/man/man1", program + ".1")
    return printed("man", "--no-hyphenation", "--no-justification", "--local-file", page,
                   env=dict(os.environ, MANWIDTH="1000", LC_ALL="C.UTF-8"))


@needs("man", "man")
def test_manual_pages_say_all_that_help_says():
    for program in PROGRAMS:
        page = rendered(program)
        parts = {(): page}
        if program == "abdada":
            listed, described = re.split(r"^COMMANDS$", page, flags=re.MULTILINE)
            starts = list(re.finditer(r"^ {3}abdada (\S+)", described, re.MULTILINE))
            equal([start[1] for start in starts], commands())
            ends = [start.start() for start in starts[1:]] + [len(described)]
            parts = {(start[1],): described[start.start():end] for start, end in zip(starts, ends)}
            parts[()] = listed
        for command, part in parts.items():
            said = words(part)
            usage, *rest = help_of(program, *command).splitlines()
            check(words(usage.replace("Usage: ", "")) in said, program, command, usage)
            for line in rest:
                check(words(line) in said, program, command, repr(line), "is not in", said)


@needs("man", "man")
def test_manual_pages_are_without_warnings():
    for page in *(f"man1/{program}.1" for program in PROGRAMS), "man3/abdada.3":
        done = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", at("share/man", page)],
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                              env=dict(os.environ, LC_ALL="C.UTF-8"))
        equal((done.returncode, done.stderr), (0, ""), page)


# ---- completion ----

SCRIPT = r"""
. %s
. "$1"
shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*" COMPREPLY=()
COMP_POINT=${#COMP_LINE}
$(complete -p "$1" | sed 's/.*-F \([^ ]*\).*/\1/') "$1" "${@: -1}" "${@: -2:1}"
printf '%%s\n' "${COMPREPLY[@]}"
""" % COMPLETION


def completed(*line):
    """What Tab offers at the end of this line."""
    program = line[0]
    found = printed("bash", "-c", SCRIPT, "bash", at("share/bash-completion/completions", program), *line, cwd=ROOT,
                    env=dict(os.environ, PATH=at("bin") + os.pathsep + os.environ["PATH"]))
    return sorted(word.rstrip() for word in found.split("\n") if word)


@needs(COMPLETION, "bash-completion")
def test_completion_offers_the_options_and_commands_of_help():
    equal(completed("abdada", ""), sorted(commands()))
    equal(completed("abdada", "tt"), ["tt", "ttbench"])
    for line in [("ttserver",), ("ttworker",), *(("abdada", command) for command in commands())]:
        equal(completed(*line, "--"), sorted(OPTION.findall(help_of(*line))), line)


@needs(COMPLETION, "bash-completion")
def test_completion_offers_words_of_a_command_and_files():
    equal(completed("abdada", "tt", ""), ["ask", "flush", "load", "peek", "release", "save", "stats", "store"])
    equal(completed("abdada", "tt", "s"), ["save", "stats", "store"])
    equal(completed("abdada", "tt", "save", "README"), ["README.md"])
    equal(completed("abdada", "analyse", "--epd", "tests/data/che"), ["tests/data/chess"])
    equal(completed("ttserver", "--keys", "deplo"), ["deploy"])
    equal(completed("abdada", "nonsense", "--"), [])


# ---- units ----

@needs("systemd-analyze", "systemd-analyze")
def test_units_are_right_and_expose_little():
    with tempfile.TemporaryDirectory(prefix="abdada-units-") as folder:
        for program, instance in ("ttserver", "7400"), ("ttworker", "one"):
            with open(os.path.join(ROOT, f"deploy/debian/abdada.{program}@.service"), encoding="utf-8") as file:
                text = file.read()
            check(f"/usr/bin/{program} " in text, text)
            unit = os.path.join(folder, f"{program}@{instance}.service")
            with open(unit, "w", encoding="utf-8") as file:  # as if the programs were installed
                file.write(text.replace("/usr/bin/", at("bin") + "/"))
            equal(printed("systemd-analyze", "verify", "--man=no", unit), "")
            said = printed("systemd-analyze", "security", "--offline=true", unit)
            exposure = re.search(r"Overall exposure level for \S+ ([\d.]+)", said)
            check(exposure and float(exposure[1]) < EXPOSURE_MAX, said)
            print(f"# {program}@{instance}: exposure {exposure[1]}")


# ---- releases ----

def released(target):
    """What that target makes, and what is in it; made twice, it is the same."""
    paths, contents = set(), set()
    for _ in range(2):
        paths.add(os.path.join(ROOT, printed("make", "--no-print-directory", "-s", target, cwd=ROOT).splitlines()[-1]))
        with open(*paths, "rb") as file:
            contents.add(file.read())
    equal((len(paths), len(contents)), (1, 1), paths)
    return paths.pop(), contents.pop()


@needs(os.path.join(ROOT, ".git"), "the repository of git")
def test_a_tarball_builds_where_no_git_is():
    path, _ = released("dist")
    with tempfile.TemporaryDirectory(prefix="abdada-dist-") as folder:
        with tarfile.open(path) as tar:
            check(all((entry.uid, entry.gid, entry.uname) == (0, 0, "") for entry in tar), "owners")
            equal(len({entry.mtime for entry in tar}), 1)
            tar.extractall(folder)
        there, = (os.path.join(folder, name) for name in os.listdir(folder))
        os.mkdir(os.path.join(folder, "path"))
        with open(os.path.join(folder, "path/git"), "w", encoding="ascii", opener=lambda *at: os.open(*at, 0o755)) as file:
            file.write("#!/bin/sh\necho git was called >&2\nexit 1\n")
        variables = {key: value for key, value in os.environ.items() if not key.startswith("MAKE") and key != "MFLAGS"}
        variables["PATH"] = os.path.join(folder, "path") + os.pathsep + os.environ["PATH"]
        options = {"cwd": there, "env": variables}
        with open(os.path.join(there, "COMMIT"), encoding="ascii") as file:
            commit = file.read().strip()
        head = printed("git", "-C", ROOT, "rev-parse", "HEAD").strip()
        check(head.startswith(commit.removesuffix("-modified")), commit, head)
        make = ("make", "-j2", "MODE=dev", "CFLAGS=-O0")
        if SHORT:  # its sources are all there, and know the commit
            said = printed(*make, "build/dev/about.c", **options) + printed(*make, "-n", "all", **options)
            with open(os.path.join(there, "build/dev/about.c"), encoding="ascii") as file:
                check(f"commit {commit}" in file.read(), commit)
        else:
            said = printed(*make, "build/dev/bin/abdada", **options)
            program = os.path.join(there, "build/dev/bin/abdada")
            check(f"\ncommit {commit}\n" in printed(program, "--version"), commit)
            found = json.loads(printed(program, "analyse", "--json", "--depth", "4", "startpos").splitlines()[-1])
            equal(found["depth"], 4)
        check("git was called" not in said, said)
        printed(sys.executable, os.path.join(there, "tests/lint/names.py"), **options)  # what documents name is there


@needs("dpkg-query", "dpkg")
def test_what_programs_need_is_listed():
    path, content = released("sbom")
    listed = json.loads(content)
    equal((listed["bomFormat"], listed["metadata"]["component"]["name"]), ("CycloneDX", "abdada"))
    parts = {part["name"]: part for part in listed["components"]}
    for name in "libzmq3-dev", "libuv1-dev", "libsodium-dev", "zlib1g-dev":
        equal(parts[name]["version"], printed("dpkg-query", "-W", "-f", "${Version}", name))
    equal(sorted(listed["dependencies"][0]["dependsOn"]), sorted(part["bom-ref"] for part in parts.values()), path)


TESTS = [test_manual_pages_say_all_that_help_says, test_manual_pages_are_without_warnings,
         test_completion_offers_the_options_and_commands_of_help,
         test_completion_offers_words_of_a_command_and_files, test_units_are_right_and_expose_little,
         test_a_tarball_builds_where_no_git_is, test_what_programs_need_is_listed]

if __name__ == "__main__":
    sys.exit(main(TESTS))
