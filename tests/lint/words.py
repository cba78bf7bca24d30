#!/usr/bin/python3
"""Words that the project no longer uses: `words.py [--summary] [ROOT]` (default: this tree).

docs/glossary.md says which word each concept has. Words of ANYWHERE may stand neither in prose nor in a part of a
name; words of NAMES are plain English and forbidden only as a part of a name: an identifier in code, a word with an
underscore in a comment, a string or a Markdown text that is one identifier, a file's name. In the folders of PLAIN no
comment of C begins with a word of OPENINGS, which leave out its subject. Reads *.c, *.h, *.py,
*.md and Python scripts without a suffix. Prints `FILE:LINE: word` (not with --summary) and how often for each
folder; exit status 1 when there is any.
"""
import argparse
import collections
import os
import re
import sys

# word: what to say instead
ANYWHERE = {
    "horizon": "remote depth limit, remote_depth; in the search inflight_depth",
    "lesson": "result broadcast",
    "gift": "result broadcast",
    "stranger": "peer with another table",
    "astray": "reassigned",
    "farewell": "last report",
    "crowded": "contended",
    "sight": "peek ahead",
    "strike": "consecutive time-outs",
    "seat": "worker index",
    "lapse": "expire",
    "scatter": "randomised move order",
    "company": "peers, table id",
    "salt": "namespace",
    "fence": "pending namespace change",
}
NAMES = {
    "look": "peek",
    "hold": "in flight, inflight",
    "inside": "in flight, inflight",
    "tell": "publish, report",
    "told": "published, reported",
    "hear": "merge, receive",
    "heard": "merged, received",
    "learn": "merge",
    "learnt": "merged",
    "since": "cursor, begin",
    "mark": "table_id",
    "space": "namespace_id",
    "rename": "pending namespace change",
    "far": "slow",
    "calm": "not in check",
    "standing": "static evaluation",
    "raised": "current alpha",
    "settled": "resolved",
    "news": "completion notice",
    "spread": "placement",
    "processor": "searcher, virtual worker, CPU",
}
# Names of C, Python, Kubernetes and the machine, and phrases of the field.
EXCEPT_NAMES = {"atomic_thread_fence", "atomic_signal_fence", "_SC_NPROCESSORS_ONLN", "topologySpreadConstraints"}
EXCEPT_CALLS = {"rename"}  # of C and Python
EXCEPT_IN = {("tests/instruments/lab/lab.py", "processor"),  # columns of published tables
             ("worker/programs/othello/nboard.c", "learn"), ("tests/system/test_othello_protocols.py", "learn"),  # NBoard's command
             ("docs/reference/engines.md", "learn")}
EXCEPT_PROSE = ("horizon effect",)
EXCEPT_FILES = ("docs/glossary.md", "tests/lint/words.py", "tests/lint/test_words.py")
FOLDERS = ("common", "proto", "ttserver", "worker", "tests", "deploy", "docs")

OPENINGS = ("Of", "That", "Those", "Who")
PLAIN = ("common", "proto", "ttserver", "worker", "tests/chaos")

ENDINGS = ("", "s", "es", "d", "ed", "ing")
WORD = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z_0-9]*\Z")
PIECES = {
    "c": re.compile(r"""(?P<prose>/\*.*?\*/|//[^\n]*)|(?P<text>"(?:\\.|[^"\\\n])*")|(?P<skip>'(?:\\.|[^'\\\n])*'|"""
                    r"""\#\s*include\s*<[^>\n]*>)|(?P<code>[A-Za-z_][A-Za-z_0-9]*)""", re.DOTALL),
    "py": re.compile(r'(?P<prose>"""(?:\\.|[^\\])*?"""|\#[^\n]*)|'
                     r"""(?P<text>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')|(?P<code>[A-Za-z_][A-Za-z_0-9]*)""",
                     re.DOTALL),
    "md": re.compile(r"(?P<text>`[^`\n]+`)|(?P<prose>[^`]+)"),
}


def is_of(word, table):
    """The table's word that this one is a form of, or None."""
    return next((word[:len(word) - len(end)] for end in ENDINGS
                 if word.endswith(end) and word[:len(word) - len(end)] in table), None)


def parts(name):
    """The words of a name: inflight_depth, InFlightDepth."""
    return [part.lower() for part in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)]


def words_of_name(name):
    """The forbidden words in a name."""
    if name in EXCEPT_NAMES:
        return []
    return [found for part in parts(name) for found in (is_of(part, ANYWHERE) or is_of(part, NAMES),) if found]


def words_of_prose(text):
    """(position, forbidden word) in a comment, a string or a paragraph."""
    for phrase in EXCEPT_PROSE:
        text = re.sub(phrase, lambda found: " " * len(found[0]), text, flags=re.IGNORECASE)
    for word in WORD.finditer(text):
        if "_" in word[0].strip("_"):
            found = words_of_name(word[0])
        else:
            found = [is_of(part, ANYWHERE) for part in parts(word[0])]
        yield from ((word.start(), each) for each in found if each)


def words_in(text, kind):
    """(position, forbidden word) in the text of a file."""
    for piece in PIECES[kind].finditer(text):
        content, begin = piece[0], piece.start()
        if piece.lastgroup == "code":
            is_call = content in EXCEPT_CALLS and text[piece.end():piece.end() + 1] == "("
            for word in [] if is_call else words_of_name(content):
                yield begin, word
        elif piece.lastgroup == "text" and IDENTIFIER.match(content[1:-1]):
            for word in words_of_name(content[1:-1]):
                yield begin, word
        elif piece.lastgroup in ("text", "prose"):
            for at, word in words_of_prose(content):
                yield begin + at, word


def openings_in(text):
    """(position, word of OPENINGS) of the comments of C that begin with one; `//` lines below each other are one comment."""
    last = -1  # line of the last comment that had a line for itself
    for piece in PIECES["c"].finditer(text):
        if piece.lastgroup == "prose":
            begin = text.rfind("\n", 0, piece.start()) + 1
            line, is_alone = text.count("\n", 0, begin), not text[begin:piece.start()].strip()
            word = WORD.search(piece[0])
            if word and word[0] in OPENINGS and not (is_alone and piece[0].startswith("//") and last == line - 1):
                yield piece.start(), word[0]
            last = line if is_alone else -1


def kind_of(path):
    ending = os.path.splitext(path)[1]
    if ending in (".c", ".h"):
        return "c"
    if ending in (".py", ".md"):
        return ending[1:]
    if ending == "" and os.path.basename(path) != "Makefile":
        with open(path, "rb") as file:
            return "py" if re.match(rb"#!.*python", file.readline(200)) else None
    return None


def paths(root):
    names = [name for name in sorted(os.listdir(root)) if os.path.isfile(os.path.join(root, name))]
    yield from names
    for top in FOLDERS:
        for folder, below, names in os.walk(os.path.join(root, top)):
            below[:] = sorted(name for name in below if name != "__pycache__")
            yield from (os.path.relpath(os.path.join(folder, name), root) for name in sorted(names))


def run(root, summary=False):
    counts, files = collections.Counter(), 0
    for path in paths(root):
        kind = None if path in EXCEPT_FILES else kind_of(os.path.join(root, path))
        if kind is None:
            continue
        files += 1
        with open(os.path.join(root, path), encoding="utf-8") as file:
            text = file.read()
        found = [(0, word) for word in words_of_name(os.path.basename(path))] + list(words_in(text, kind))
        if kind == "c" and path.startswith(PLAIN):
            found += openings_in(text)
        for at, word in (each for each in found if (path, each[1]) not in EXCEPT_IN):
            counts[os.path.dirname(path) or "."] += 1
            if not summary:
                instead = ANYWHERE.get(word) or NAMES.get(word) or "begin with a verb or a noun"
                print(f"{path}:{text.count(chr(10), 0, at) + 1}: '{word}' (instead: {instead})")
    for folder, count in sorted(counts.items()):
        print(f"words: {count:4} in {folder}")
    print(f"words: {files} files, {sum(counts.values())} faults")
    return 1 if counts or not files else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--summary", action="store_true", help="print the counts of the folders only")
    parser.add_argument("root", nargs="?",
                        default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
    arguments = parser.parse_args()
    sys.exit(run(os.path.normpath(arguments.root), arguments.summary))
