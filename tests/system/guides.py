"""The pages of docs/guides and the README, word for word: what a page says is written into files and run. Used by
test_guides.py and by deploy/compose-test.

Of a page's blocks of code, by the words behind the three backquotes:

    sh              runs in bash, all of a page in one shell that ends at the first command that fails
    text            follows a sh block: its lines are in what that block has printed, in this order; numbers may be
                    others, ... stands for anything, and so does white space
    text exact      the same, with the same numbers
    console         a command behind "$ ", and as in text what it prints
    LANGUAGE NAME   is the file NAME
"""
import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

from commands import PATIENCE, ROOT

GUIDES = os.path.join(ROOT, "docs/guides")
BLOCK = re.compile(r"^```(.*)\n((?:.*\n)*?)```$", re.M)
SEPARATOR = "--- the next block ---"


class Failure(Exception):
    """The page says something else than what happens."""


def check(condition, *what):
    if not condition:
        raise Failure(" ".join(map(str, what)))


def blocks(name):
    """[[words, content]] of a page."""
    with open(os.path.join(GUIDES, name), encoding="utf-8") as file:
        for words, content in BLOCK.findall(file.read()):
            if words == "console":
                command, _, content = content.removeprefix("$ ").partition("\n")
                yield ["sh"], command
                words = "text"
            yield words.split(), content


def pattern(line, exact):
    """A regular expression for a line that a page shows."""
    def part(found):
        text = found[0]
        if text == "...":
            return ".*"
        if text.isspace():
            return r"\s+"
        return r"[+-]?\d[\d.,]*" if not exact and re.fullmatch(r"[+-]?\d[\d.,]*", text) else re.escape(text)
    return re.sub(r"\.\.\.|\s+|[+-]?\d[\d.,]*\d|[+-]?\d|.", part, line.strip())


def compare(shown, printed, exact):
    """The lines shown are among those printed, in this order."""
    lines, at = printed.splitlines(), 0
    for line in filter(str.strip, shown.splitlines()):
        wanted = re.compile(pattern(line, exact))
        while at < len(lines) and not wanted.search(lines[at]):
            at += 1
        check(at < len(lines), "the page shows", repr(line), "but this was printed:\n" + printed[-4000:])
        at += 1


def run_script(folder, environment, patience):
    """The output of its script.sh, both streams. Whatever that has started ends with it, and with us if we are killed:
    then the guard reads the end of its input."""
    process = subprocess.Popen(["bash", "-e", "-m", "script.sh"], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
    guard = subprocess.Popen([sys.executable, os.path.abspath(__file__), str(process.pid)], stdin=subprocess.PIPE,
                             start_new_session=True)
    try:
        output, _ = process.communicate(timeout=patience)
    except subprocess.TimeoutExpired:
        end_session(process.pid)
        output, _ = process.communicate()
        raise Failure(f"the page does not end: {output.decode(errors='replace')[-4000:]}") from None
    finally:
        guard.stdin.close()
        guard.wait()
    text = output.decode(errors="replace")
    check(process.returncode == 0, "exit status", process.returncode, text[-4000:])
    return text


def session_of(number):
    """The processes of that session: background jobs have process groups of their own."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", encoding="utf-8") as file:
                state, _, _, session = file.read().rpartition(")")[2].split()[:4]
            if int(session) == number and state != "Z":
                found.append(int(name))
        except OSError:  # it is gone
            pass
    return found


def end_session(number):
    """SIGTERM to whatever the page has left; who does not go by that is killed."""
    end = time.monotonic() + PATIENCE / 10
    sent = signal.SIGTERM
    while left := session_of(number):
        for process in left if sent else ():
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, sent)
        sent = signal.SIGKILL if time.monotonic() > end else None
        time.sleep(0.02)


def follow(name, replaced=(), patience=5 * PATIENCE, links=(), last="", **variables):
    """Does what the page says, in a folder of its own, and compares what it shows. replaced: (words, other words) each;
    links: (name, target) of what the page finds in the folder; last: a command for the end; variables: of the environment."""
    script, shown, files = [], [], {}
    for words, content in blocks(name):
        for old, new in replaced:
            content = content.replace(old, new)
        if words == ["sh"]:
            script.append(content)
            shown.append(None)
        elif words[:1] == ["text"]:
            check(shown and shown[-1] is None, name, "shows text that follows no command:", content)
            shown[-1] = (content, "exact" in words)
        elif len(words) == 2:
            files[words[1]] = content
    check(script, name, "has no commands")
    files["script.sh"] = f"\necho; echo '{SEPARATOR}'\n".join([*script, last])
    with tempfile.TemporaryDirectory(prefix="abdada-guide-") as folder:
        for file_name, content in files.items():
            with open(os.path.join(folder, file_name), "w", encoding="utf-8") as file:
                file.write(content)
        for link, target in links:
            os.symlink(target, os.path.join(folder, link))
        printed = run_script(folder, {**os.environ, "SOURCES": ROOT, **variables}, patience).split(SEPARATOR)
    for wanted, block in zip(shown, printed):
        if wanted:
            compare(wanted[0], block, wanted[1])


if __name__ == "__main__":
    sys.stdin.read()
    end_session(int(sys.argv[1]))
