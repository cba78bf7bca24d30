#!/usr/bin/python3
"""The lint of language finds what it is for, and leaves plain English alone. TAP."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import language  # noqa: E402
from test_layers import run_cases  # noqa: E402

MANY = " ".join(["word"] * 36)
ROW = """    const struct options_row table[] = {
        OPTIONS_ROW(U32, "shards", "N", &shards, 1, max(1, 2),
                    "%s"),
"""

# name: (file and text, the beginning of each fault; none: nothing). A title is the file "title".
CASES = {
    "plain English passes": (("a.md", "# What it is\n\nStart a shard. `What is` is code. Is it up? Who knows?\n"), []),
    "a long sentence": (("a.md", f"Short.\nAnd {MANY}.\n"), ["1: a sentence of 37 words"]),
    "a sentence over two items": (("a.md", f"- {MANY[:90]}\n- {MANY[:90]}\n"), []),
    "code is one word, a block is none": (("a.md", f"Run `{MANY}` now.\n\n```\nWho {MANY}\n```\n"), []),
    "an opening without a noun": (("a.md", "It runs.\nWhat is wrong is printed. That is so.\n"),
                                  ["1: a sentence begins with 'What'", "1: a sentence begins with 'That'"]),
    "one as a pronoun, and as a number": (("a.md", "One that fails is left.\n\nOne shard is enough.\n"),
                                          ["1: a sentence begins with 'One'"]),
    "an item of a list": (("a.md", "- **Of** shards\n1. So it is.\n"), ["1: a sentence begins with 'Of'", "2: a sentence begins with 'So'"]),
    "semicolons": (("a.md", "This; that.\n\nThis; that; more.\n"), ["3: a sentence with 2 semicolons"]),
    "a private word": (("a.md", "All but for one.\n\nIt restarts by itself.\n"), ["1: 'but for'", "3: 'by itself'"]),
    "a long cell": (("a.md", f"| a | b |\n| --- | --- |\n| a | {MANY[:130]} |\n"), ["3: a cell of 26 words"]),
    "many sentences that are rather long": (("a.md", f"\nA {MANY[:110]}.\n" * 20), ["1: sentences have 23.0 words on average"]),
    "a manual page": (("a.1.in", ".TH A\n.SH SIGNALS\n.TP\n.BR A ,\n.PP\nOf all.\n.nf\nWho\n.fi\n"), ["6: a sentence begins with 'Of'"]),
    "help": (("a.c", ROW % "of all; of some; of none" + ROW % "shards (1)"), ["3: a sentence with 2 semicolons"]),
    "messages and commands": (("a.c", 'x = {"top", cli_top, "Who is there"};\nlog_line(p, "it goes on " "with %" PRIu64 " (%s)", n(1));\n'),
                              ["2: 'goes on'", "1: a sentence begins with 'Who'"]),
    "a title": (("title", "uci, worker/engine: accept Threads while idle"), []),
    "a title that is too long": (("title", "uci: " + "a" * 56), ["the title has 61"]),
    "a title without an area": (("title", "Accept Threads"), ["write the title"]),
    "a title with two changes": (("title", "uci: accept Threads; top: sort"), ["a title has no semicolon"]),
    "a title that tells of the past": (("title", "uci: accepted Threads"), ["begin the title with an imperative"]),
}


def check(file, expected):
    if file[0] == "title":
        found = [fault for fault in (language.fault_of_title(file[1]),) if fault]
    else:
        found = [f"{line}: {fault}" for line, fault in language.faults_of(*file)]
    return len(found) == len(expected) and all(map(str.startswith, found, expected)), "\n".join(found)


if __name__ == "__main__":
    sys.exit(run_cases(CASES, check))
