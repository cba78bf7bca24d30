#!/usr/bin/python3
"""The language of what people read: `language.py [FILE]...` (default: the files that pass, PASSES) or `--title FILE`.

docs/style.md has the rules. In a document (*.md), a manual page (*.in, *.3) or the help and messages of a program
(tables of options and commands, and calls that print, in *.c) no sentence
  - has more than SENTENCE_MAX words; those of a page have AVERAGE_MAX at most on average
  - begins with a word of OPENINGS, which leave out the noun (a question may begin so, and a heading of the help)
  - has more than one semicolon
  - has a word of PRIVATE, which only we use in that meaning
and no cell of a table has more than CELL_MAX words. A piece in backquotes counts as one word, a cell that mostly has
such pieces is a list of names, and blocks of code are not read.

--title FILE checks the first line of a commit message instead, as tests/lint/commit-msg does.
Prints `FILE:LINE: what is wrong`, one a line; exit status 1 when there is any.
"""
import glob
import os
import re
import sys

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
PASSES = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "worker/lib/python/README.md", "docs/**/*.md", "docs/*.in", "docs/abdada.3",
          "common/**/*.c", "proto/**/*.c", "ttserver/**/*.c", "worker/**/*.c"]  # patterns of files that must pass

SENTENCE_MAX, AVERAGE_MAX, CELL_MAX, TITLE_MAX = 35, 20, 25, 60
LIST_FROM = 9  # a cell in which one word of so many is a name
AVERAGE_FROM = 20  # sentences: a page of fewer has no average
OPENINGS = ("Who", "What", "That", "So", "Of", "Those")
ONE = re.compile(r"One (?:who|that|which|of which|is|are|can|may|must|has|with|for|by|in|whose)\b")
# what: what to say instead
PRIVATE = {
    r"but for": "except",
    r"by (?:itself|themselves)": "automatically",
    r"mend(?:s|ed|ing)?": "fix",
    r"beg(?:in|ins|an|un|inning)": "start",
    r"(?:is|are) said": "print, report",
    r"sa(?:y|ys|id) so": "prints a message",
    r"in (?:one|a) line": "name the message",
    r"without a word": "silently",
    r"go(?:es)? on": "continue",
    r"come(?:s)? and go": "join and leave",
    r"come(?:s)? back": "return",
    r"stand(?:s)? still": "hang",
    r"(?:is|are) let in": "may connect",
    r"nobody else|nobody but": "only",
    r"a line more": "another line",
    r"the like": "name them",
}
PRIVATE_WORD = re.compile(r"\b(?:" + "|".join(f"({pattern})" for pattern in PRIVATE) + r")\b", re.IGNORECASE)

BLOCK = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
SENTENCE_END = re.compile(r"(?<=[.!?])[)*\"']*\s+(?=[*\"'(]*[A-Z`\[0-9~/])")
ABBREVIATION = re.compile(r"(?:\b(?:e\.g|i\.e|J\.-C|Dr|vs|etc|No)|\b[A-Z])\.$")
WORD = re.compile(r"\S*\w\S*")
ITEM = re.compile(r"^\s*(?:[-*]|\d+\.)\s+")
STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')


def plain(text):
    """The text as it is read: code is one word, of a link its words stay."""
    text = re.sub(r"``[^`]*``|`[^`]*`", "`code`", text)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return re.sub(r"\*\*|(?<!\w)[*_](?=\w)|(?<=\w)[*_](?!\w)", "", text)


def paragraphs_of_markdown(text):
    """(line, kind, text): kind is "text" or "cell"."""
    text = COMMENT.sub(lambda found: "\n" * found[0].count("\n"), BLOCK.sub(lambda found: "\n" * found[0].count("\n"), text))
    begin, lines = 0, []
    for number, line in enumerate(text.split("\n") + [""], 1):
        is_table = line.lstrip().startswith("|")
        if lines and (not line.strip() or is_table or line.startswith("#") or ITEM.match(line)):
            yield begin, "text", " ".join(lines)
            lines = []
        if is_table:
            cells = re.split(r"(?<!\\)\|", re.sub(r"`[^`]*`", "`code`", line.strip().strip("|")))
            yield from ((number, "cell", cell) for cell in cells if WORD.search(cell))
        elif line.strip() and not line.startswith("#") and not line.startswith("    "):
            if not lines:
                begin = number
            lines.append(ITEM.sub("", line, count=1) if not lines else line.strip())


def paragraphs_of_manual(text):
    """A macro with an argument is a piece of its paragraph; those of the second group end it."""
    begin, lines, is_read = 0, [], True
    for number, line in enumerate(text.split("\n") + [".PP"], 1):
        words = line.split()
        macro = words[0] if line.startswith(".") and words else ""
        if macro in (".nf", ".fi"):
            is_read = macro == ".fi"
        if macro in (".nf", ".PP", ".TP", ".IP", ".SH", ".SS", ".TH", ".sp", ".br") or line.startswith("@"):
            if lines:
                yield begin, "text", " ".join(lines)
            lines = []
        elif is_read and words and macro not in (".fi", ".RS", ".RE"):
            if not lines:
                begin = number
            line = re.sub(r"\\f[A-Z]|\\\(..|\\", lambda found: "" if found[0] != "\\(en" else "-", line)
            if macro in (".BR", ".BI", ".IR", ".RB", ".RI", ".B", ".I"):
                line = "`x`" + (re.sub(r".*[\w\"]", "", line) if macro in (".BR", ".BI", ".IR") else "")
            lines.append(line)


def paragraphs_of_help(text):
    """The summary of a program, the last string of each row of its options or commands, and each message that stands
    in its call, as one text."""
    for found in re.finditer(r"\b(?:log_line|log_fail|options_wrong|snprintf|fail|refuse)\((?:[^()\"]|\"(?:[^\"\\]|\\.)*\"|\((?:[^()]|\([^()]*\))*\))*\)",
                             text):
        pieces = re.sub(r'"\s*(?:PRI\w+\s*)?"', "", found[0])
        yield from ((text.count("\n", 0, found.start()) + 1, "help", piece) for piece in STRING.findall(pieces)
                    if "default-src" not in piece)  # a policy of HTTP
    for found in re.finditer(r'\{"\w+", cli_\w+, "([^"]*)"', text):
        yield text.count("\n", 0, found.start()) + 1, "help", found[1]
    for found in re.finditer(r"OPTIONS_ROW\((?:[^()]|\([^()]*\))*\)|\.(?:help|summary) = (?:\"[^\n]*\"\s*)+", text):
        if strings := STRING.findall(found[0]):
            yield text.count("\n", 0, found.end()) + 1, "help", strings[-1]


def sentences(text):
    """The sentences of a paragraph, abbreviations apart."""
    found = []
    for each in SENTENCE_END.split(text):
        if found and ABBREVIATION.search(found[-1]):
            found[-1] += " " + each
        else:
            found.append(each)
    return [each for each in found if WORD.search(each)]


def faults_of_sentence(sentence, kind):
    count = len(WORD.findall(sentence))
    first = re.match(r"\W*(\w+)", sentence)[1]
    if count > SENTENCE_MAX:
        yield f"a sentence of {count} words: {sentence[:60]}..."
    if (first in OPENINGS or ONE.match(sentence)) and not re.search(r"\?\W*$" if kind != "help" else r":$", sentence):
        yield f"a sentence begins with '{first}': {sentence[:60]}"
    if sentence.count(";") > 1:
        yield f"a sentence with {sentence.count(';')} semicolons: {sentence[:60]}"
    for word in PRIVATE_WORD.finditer(sentence):
        yield f"'{word[0]}' (instead: {list(PRIVATE.values())[word.lastindex - 1]})"


def faults_of(path, text):
    """(line, what is wrong) of a file."""
    read = (paragraphs_of_help if path.endswith(".c") else paragraphs_of_markdown if path.endswith(".md") else
            paragraphs_of_manual)
    lengths = []
    for line, kind, paragraph in read(text):
        paragraph = plain(paragraph)
        count = len(WORD.findall(paragraph))
        if kind == "cell" and paragraph.count("`code`") * LIST_FROM > count:
            continue
        if kind == "cell" and count > CELL_MAX:
            yield line, f"a cell of {count} words: {paragraph.strip()[:60]}..."
        for sentence in sentences(paragraph):
            yield from ((line, fault) for fault in faults_of_sentence(sentence, kind))
            if kind == "text":
                lengths.append(len(WORD.findall(sentence)))
    if len(lengths) >= AVERAGE_FROM and sum(lengths) > AVERAGE_MAX * len(lengths):
        yield 1, f"sentences have {sum(lengths) / len(lengths):.1f} words on average; {AVERAGE_MAX} are enough"


def fault_of_title(title):
    """What is wrong with the title of a commit, or None."""
    if title.startswith(("Merge ", "Revert ", "fixup! ", "squash! ")):
        return None
    if len(title) > TITLE_MAX:
        return f"the title has {len(title)} characters; {TITLE_MAX} are enough"
    if not re.match(r"[\w./+, -]+: [^\s;]", title):
        return "write the title as 'area: imperative ...', for example 'uci: accept Threads while idle'"
    if ";" in title or title.endswith("."):
        return "a title has no semicolon and no period at its end; two changes are two commits"
    first = title.split(": ", 1)[1].split(" ", 1)[0]
    if re.search(r"[a-z](?:ed|ing)$", first) and first not in ("bring", "embed", "feed", "need", "speed", "shed"):
        return f"begin the title with an imperative, not '{first}'"
    return None


def run(root, files):
    faults = 0
    for path in files:
        with open(os.path.join(root, path), encoding="utf-8") as file:
            for line, fault in faults_of(path, file.read()):
                print(f"{path}:{line}: {fault}")
                faults += 1
    print(f"language: {len(files)} files, {faults} faults")
    return 1 if faults else 0


def main(words):
    if words[:1] == ["--title"]:
        with open(words[1], encoding="utf-8") as file:
            lines = [line.rstrip() for line in file if not line.startswith("#")]
        if fault := fault_of_title(next(filter(None, lines), "")):
            print(f"commit: {fault}", file=sys.stderr)
        return 1 if fault else 0
    files = sorted({os.path.relpath(path, ROOT) for pattern in PASSES
                    for path in glob.glob(os.path.join(ROOT, pattern), recursive=True)})
    return run(ROOT, [os.path.relpath(word, ROOT) for word in words] or files)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
