#!/usr/bin/python3
"""The check of words finds what it is for, and leaves plain English alone. TAP."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import words  # noqa: E402
from test_layers import report_of, run_cases  # noqa: E402

# name: (files, the lines of the report; empty: none)
CASES = {
    "plain words pass": ({"a.c": "int remote_depth; /* since it looks far, hold on; told inside a space */\n"}, []),
    "a word of prose": ({"common/a.c": "int a;\n/* the horizon\n * is crowded */\n"},
                        ["common/a.c:2: 'horizon'", "common/a.c:3: 'crowded'"]),
    "its plural, and in capitals": ({"a.md": "# Lessons\n"}, ["a.md:1: 'lesson'"]),
    "a part of a name": ({"a.c": "int first_look;\nint HOLD_MAX;\nint lookup, holder, isspace;\n"},
                         ["a.c:1: 'look'", "a.c:2: 'hold'"]),
    "a part of a name with capitals": ({"a.py": "class FirstLook:\n    pass\n"}, ["a.py:1: 'look'"]),
    "a name in a comment": ({"a.c": "/* see first_look */\n"}, ["a.c:1: 'look'"]),
    "a name of JSON": ({"a.c": 'f("since");\nf("since then");\n'}, ["a.c:1: 'since'"]),
    "a name in Markdown": ({"a.md": "Tell it inside.\n`inside` and `it is inside`\n"}, ["a.md:2: 'inside'"]),
    "a message": ({"a.c": 'f("%d gifts");\n'}, ["a.c:1: 'gift'"]),
    "a docstring": ({"a.py": '"""One.\n\nA stranger."""\n'}, ["a.py:3: 'stranger'"]),
    "a script without a suffix": ({"deploy/a": "#!/usr/bin/python3\nnews = 1\n", "deploy/b": "news\n"},
                                  ["deploy/a:2: 'news'"]),
    "a file's name": ({"common/inside.c": "int a;\n"}, ["common/inside.c:1: 'inside'"]),
    "names of the system": ({"a.c": "#include <news.h>\nrename(a, b); atomic_thread_fence(0); _SC_NPROCESSORS_ONLN;\n",
                             "a.py": "os.rename(a, b)\n"}, []),
    "phrases of the field": ({"a.md": "The horizon effect.\n"}, []),
    "the glossary": ({"docs/glossary.md": "horizon\n", "docs/design.md": "depth\n"}, []),
    "comments that leave out their subject": (
        {"common/a.c": "/* Of all: */\nint a; // Those\n// Those more\n// That goes on\nint b; // Counts\n/* Who *///That\n",
         "worker/a.c": "/* A count. Of all. */\nint that; // of those\n"},
        ["common/a.c:1: 'Of'", "common/a.c:2: 'Those'", "common/a.c:3: 'Those'", "common/a.c:6: 'Who'", "common/a.c:6: 'That'"]),
    "a tree without files": ({}, ["words: 0 files, 0 faults"]),
}


words.PLAIN = ("common", "worker")


def check(files, expected):
    status, report = report_of(words.run, files)
    lines = [line.split(" (instead")[0] for line in report.splitlines()]
    if files:
        lines = [line for line in lines if not line.startswith("words: ")]
    return status == (1 if expected else 0) and lines == expected, report


if __name__ == "__main__":
    sys.exit(run_cases(CASES, check))
