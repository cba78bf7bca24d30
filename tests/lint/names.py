#!/usr/bin/python3
"""What documents name exists: `names.py [ROOT]` (default: this tree).

Reads *.md and checks what stands in backticks, apart from blocks of code, and what links point to:

  files, folders      `common/tt/ops.c`, `worker/search`, `proto/client/client_*.c`, `tests/unit/ROOM/`, a path from the
                      top, with a word in capitals for any name; `core.c`, `results.{h,c}`, `chess/`, a name alone
  names of code       `tt_ops_ask`, `inflight_depth`, `ttcore_on_...`: in a file that is no document
  a name and a file   `tt_inflight_visit` (`common/tt/inflight.c`): the file has the name
  modules             docs/design.md, "Modules": the row of a folder names each module of that folder, and no other
  figures             docs/research/measurements.md: between a table and the heading or table before it stands `commit` with its
                      number, but where the table's first column is `name` or an option, which are no figures
  messages            docs/faq.md: what a heading quotes is in a source file, apart from words in capitals

Prints `FILE:LINE: what is wrong`, one a line; exit status 1 when there is any.
"""
import fnmatch
import os
import re
import sys

SKIP_FOLDERS = {".git", "build", "bin", "__pycache__"}
HISTORY = {"CHANGELOG.md"}  # names what there was
MODULES = "docs/design.md"
FIGURES = "docs/research/measurements.md"
MESSAGES = "docs/faq.md"
# What commands make, what users choose, what other programs have.
OTHERS = {"allowed/", "bin/", "cluster.toml", "deploy/kubernetes/keys", "namespaces.h", "sched_switch",
          "tests/unit/tt/test_bound.c", "waited_seconds", "x_close"}

SUFFIX = r"\.(?:awk|bash|c|conf|css|h|html|in|js|json|md|net|py|sbatch|sh|supp|symbols|toml|txt|weights|ya?ml|\{[a-z,]+\})"
FILE = re.compile(rf"[\w.*-]*[\w*]{SUFFIX}\Z")
FOLDER = re.compile(r"[\w-]+/\Z")
NAME = re.compile(r"\b[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+\b|\b(?:[A-Za-z][A-Za-z0-9]*_)+(?=\.\.\.|\*)")
BLOCK = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`([^`\n]+)`")
PAIR = re.compile(r"`(\w+)(?:\[\]|\(\))?`(?:\s\(|\sin\s|\sof\s)`([\w/.]+\.[ch])`")
LINK = re.compile(r"\]\((?![a-z]+:)([^)#\s]*)(#[^)\s]*)?\)")
ROW = re.compile(r"^\| `([\w./]+)`(.*)$", re.MULTILINE)
QUOTED = re.compile(r"^#+ .*?`([^`\n]+)`", re.MULTILINE)


def patterns(path):
    """The patterns of a path: x.{h,c} is x.h and x.c, a word in capitals is any name."""
    path = re.sub(r"[A-Z]{3,}(?=[./]|\Z)", "*", path.rstrip("/"))
    found = re.search(r"\{([^{}]*)\}", path)
    return [path[:found.start()] + each + path[found.end():] for each in found[1].split(",")] if found else [path]


class Names:
    def __init__(self, root):
        self.root, self.faults = root, 0
        self.files, self.folders, self.documents, self.words = set(), set(), {}, {}
        self.sources = ""  # all texts of programs, a string that goes on in the next line in one piece
        for folder, below, names in os.walk(root):
            below[:] = sorted(name for name in below if name not in SKIP_FOLDERS)
            at = os.path.relpath(folder, root)
            self.folders.add(at)
            for path in (os.path.normpath(os.path.join(at, name)) for name in names):
                self.files.add(path)
                with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
                    text = file.read()
                if path.endswith(".md"):
                    self.documents[path] = text
                else:
                    self.words[path] = set(re.findall(r"\w+", text))
                if path.endswith((".c", ".sh", ".py")) and not path.startswith("tests/"):
                    self.sources += re.sub(r'"\s*\n\s*"', "", text)
        self.paths = self.files | self.folders
        self.tops = {path.split("/")[0] for path in self.folders} - {"."}
        self.all_words = set().union(*self.words.values(), (os.path.splitext(os.path.basename(path))[0] for path in self.files))

    def fault(self, path, text, at, what):
        self.faults += 1
        print(f"{path}:{text.count(chr(10), 0, at) + 1}: {what}")

    def files_of(self, path):
        """The files and folders that a path from the top, or a name alone, stands for."""
        each = patterns(path)
        wanted = [f"*/{one}" for one in each] if "/" not in path.rstrip("/") else []
        return [found for found in self.paths if any(fnmatch.fnmatchcase(found, one) for one in each + wanted)]

    def is_there(self, path):
        return all(self.files_of(each) for each in patterns(path))

    def check_token(self, path, text, at, token):
        token = token.strip("()[],;:\"'").removeprefix("./")
        if token in OTHERS:
            return
        if "/" in token.rstrip("/") and token.split("/")[0] in self.tops or FOLDER.match(token) or FILE.match(token):
            if not self.is_there(token):
                self.fault(path, text, at, f"no file or folder is called {token}")
        elif "/" not in token and "." not in token.strip("."):
            for name in NAME.findall(token):
                known = any(w.startswith(name) for w in self.all_words) if name.endswith("_") else name in self.all_words
                if not known and name not in OTHERS and "_NAME" not in name:
                    self.fault(path, text, at, f"nothing in the sources is called {name}")

    def check_spans(self, path, text):
        for span in SPAN.finditer(text):
            for token in span[1].split():
                self.check_token(path, text, span.start(), token)
        for pair in PAIR.finditer(text):
            files = [each for each in self.files_of(pair[2]) if each in self.words]
            if files and not any(pair[1] in self.words[each] for each in files):
                self.fault(path, text, pair.start(), f"{pair[2]} has no {pair[1]}")

    def check_links(self, path, text):
        for link in LINK.finditer(text):
            target = os.path.normpath(os.path.join(os.path.dirname(path), link[1])) if link[1] else path
            if target not in self.paths:
                self.fault(path, text, link.start(), f"the link's file {link[1]} is not there")
            elif link[2] and link[2][1:] not in anchors(self.documents[target]):
                self.fault(path, text, link.start(), f"{target} has no heading {link[2]}")

    def check_modules(self, path, text):
        """Each row `folder` of the section names each x of x.c or x.h in that folder: alone, or as x_*."""
        begin = text.find("\n## ", text.find("Modules and their order\n"))
        section = text[:begin].rfind("Modules and their order\n")
        rows = {}
        for row in ROW.finditer(text, section, begin):
            rows.setdefault(row[1], (row.start(), row[2]))
        modules = {}
        for file in self.files:
            stem, suffix = os.path.splitext(os.path.basename(file))
            if suffix in (".c", ".h") and not file.startswith(("tests/", "examples/", "deploy/")):
                modules.setdefault(os.path.dirname(file), set()).add(stem)
        for folder in sorted(modules):
            if folder not in rows:
                self.fault(path, text, section, f"no row names the modules of {folder}")
                continue
            at, row = rows[folder]
            named = {os.path.splitext(word)[0] for span in SPAN.findall(row.split("|")[-2]) for word in span.split()
                     if not word.endswith("/")}
            for name in sorted(modules[folder]):
                if not any(fnmatch.fnmatchcase(name, each) for each in named):
                    self.fault(path, text, at, f"the row of {folder} does not name {name}")
            for each in sorted(named):
                if not fnmatch.filter(modules[folder], each):
                    self.fault(path, text, at, f"the row of {folder} names {each}, which is not there")

    def check_figures(self, path, text):
        before, last, at = "", "", 0
        for line in text.splitlines(keepends=True):
            if line.startswith("#") or last.startswith("|") and not line.startswith("|"):
                before = ""
            if line.startswith("|") and not last.startswith("|") and not re.match(r"\| (name |`)", line):
                if not re.search(r"\bcommit [0-9a-f]{7,40}\b", before):
                    self.fault(path, text, at, "no commit is named before this table of figures")
            before, last, at = before + line, line, at + len(line)

    def check_messages(self, path, text):
        for quoted in QUOTED.finditer(text):
            for piece in re.split(r"[ (]*\b[A-Z:]{3,}\b[) ]*|\.\.\.", quoted[1]):
                if piece.strip() and piece.strip() not in self.sources:
                    self.fault(path, text, quoted.start(), f"no program prints '{piece.strip()}'")

    def run(self):
        for path, text in sorted(self.documents.items()):
            text = BLOCK.sub(lambda block: "\n" * block[0].count("\n"), text)
            self.check_links(path, text)
            if path not in HISTORY:
                self.check_spans(path, text)
            if path == MODULES:
                self.check_modules(path, text)
            if path == FIGURES:
                self.check_figures(path, text)
            if path == MESSAGES:
                self.check_messages(path, text)
        print(f"names: {len(self.documents)} documents, {self.faults} faults")
        return 1 if self.faults or not self.documents else 0


def anchors(text):
    """The anchors of a document's headings."""
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in re.findall(r"^#+ (.*)$", text, re.M)}


if __name__ == "__main__":
    here = os.path.dirname(os.path.abspath(__file__))
    sys.exit(Names(os.path.normpath(sys.argv[1] if len(sys.argv) > 1 else os.path.join(here, "..", ".."))).run())
