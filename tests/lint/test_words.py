#!/usr/bin/python3
"""The check of words finds what it is for, and leaves plain English alone. TAP."""
import contextlib
import io
import os
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import words  # noqa: E402

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
                             "a.py": "os.rename(a, b); f.tell()\n"}, []),
    "phrases of the field": ({"a.md": "The horizon effect.\n"}, []),
    "the glossary": ({"docs/glossary.md": "horizon\n", "docs/design.md": "depth\n"}, []),
    "a tree without files": ({}, ["words: 0 files, 0 faults"]),
}


def check(files, expected):
    with tempfile.TemporaryDirectory() as root:
        for path, text in files.items():
            os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                file.write(text)
        report = io.StringIO()
        with contextlib.redirect_stdout(report):
            status = words.run(root)
    lines = [line.split(" (instead")[0] for line in report.getvalue().splitlines()]
    if not files:
        return status == 1 and lines == expected, report.getvalue()
    found = [line for line in lines if not line.startswith("words: ")]
    return (status == 1) == bool(expected) and found == expected, report.getvalue()


def main():
    failed = 0
    print(f"1..{len(CASES)}")
    for number, (name, (files, expected)) in enumerate(CASES.items(), 1):
        good, report = check(files, expected)
        failed += not good
        print(f"{'ok' if good else 'not ok'} {number} - {name}")
        if not good:
            print("# " + report.replace("\n", "\n# "))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
