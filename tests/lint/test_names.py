#!/usr/bin/python3
"""The check of what documents name finds what it is for. TAP."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import names  # noqa: E402
from test_layers import report_of, run_cases  # noqa: E402

C = "int tt_ask(void);\n"
MODULES = "## 16. Modules and their order\n\n| `common` | nothing | %s |\n\n## 17. More\n"

# name: (files, the lines of the report; empty: none)
CASES = {
    "what is there passes": (
        {"common/tt/a.c": C, "docs/x.md": "`common/tt/a.c`, `a.c`, `common/tt/`, `tt/`, `tt_ask()`, `tt_...`, `a.c:1`\n"}, []),
    "a file that is not": ({"a.md": "One\n`common/b.c` `b.h`\n", "common/a.c": C},
                           ["a.md:2: no file or folder is called common/b.c", "a.md:2: no file or folder is called b.h"]),
    "one of two files": ({"a.md": "`a.{h,c}`\n", "common/a.c": C}, ["a.md:1: no file or folder is called a.{h,c}"]),
    "a folder that is not": ({"a.md": "`common/tt`, `net/`\n", "common/a.c": C},
                             ["a.md:1: no file or folder is called common/tt", "a.md:1: no file or folder is called net/"]),
    "a pattern, and a name in capitals": ({"a.md": "`common/on_*.c` `common/ROOM.c` `common/at_*.c`\n", "common/on_a.c": C},
                                          ["a.md:1: no file or folder is called common/at_*.c"]),
    "a function that is not": ({"a.md": "`tt_store`\n", "common/a.c": C}, ["a.md:1: nothing in the sources is called tt_store"]),
    "the beginning of none": ({"a.md": "`tt_...`, `ts_...`\n", "common/a.c": C}, ["a.md:1: nothing in the sources is called ts_"]),
    "a name that only a document has": ({"a.md": "`tt_store`\n", "b.md": "tt_store\n", "common/a.c": C},
                                        ["a.md:1: nothing in the sources is called tt_store"]),
    "another file's function": ({"a.md": "`tt_ask` (`common/b.c`)\n`tt_ask` in `a.c`\n", "common/a.c": C, "common/b.c": "int b;\n"},
                                ["a.md:1: common/b.c has no tt_ask"]),
    "commands and blocks are no names": ({"a.md": "`make -j 2`\n```\n`no/such.c` tt_store\n```\n`build/x.c`\n", "common/a.c": C}, []),
    "links": ({"docs/a.md": "# One: two\n[a](#one-two) [b](#two) [c](../b.md) [d](b.md) [e](http://b.c)\n", "b.md": "b\n"},
              ["docs/a.md:2: docs/a.md has no heading #two", "docs/a.md:2: the link's file b.md is not there"]),
    "all modules are named": ({"docs/design.md": MODULES % "`a`, `b_*`", "common/a.c": C, "common/a.h": C, "common/b_c.c": C}, []),
    "a module without a name, and a name without a module": (
        {"docs/design.md": MODULES % "`a`, `c`", "common/a.c": C, "common/b.c": C},
        ["docs/design.md:3: the row of common does not name b", "docs/design.md:3: the row of common names c, which is not there"]),
    "a folder without a row": ({"docs/design.md": MODULES % "`a`", "common/a.c": C, "proto/b.c": C},
                               ["docs/design.md:1: no row names the modules of proto"]),
    "tables of figures": (
        {"docs/research/measurements.md": "# A\n| name | machine |\n| --- | --- |\n| X | x |\n\nOf commit 1234567:\n\n| a | b |\n| - | - |\n| 1 | 2 |\n"
                                 "\nMore.\n\n| a | b |\n\nOf commit 1234567:\n\n# B\n| `N` | what |\n\n| a | b |\n", "common/a.c": C},
        ["docs/research/measurements.md:14: no commit is named before this table of figures",
         "docs/research/measurements.md:21: no commit is named before this table of figures"]),
    "messages that are quoted": (
        {"docs/faq.md": "## `shard HOST:PORT refused us`\n## `no shard`: why?\n", "common/a.c": '"shard %s "\n    "refused us: %s"\n'},
        ["docs/faq.md:2: no program prints 'no shard'"]),
    "what was is history": ({"CHANGELOG.md": "`common/b.c`\n", "common/a.c": C}, []),
    "a tree without documents": ({}, ["names: 0 documents, 0 faults"]),
}


def check(files, expected):
    status, report = report_of(lambda root: names.Names(root).run(), files)
    lines = [line for line in report.splitlines() if not files or not line.startswith("names: ")]
    return status == (1 if expected else 0) and lines == expected, report


if __name__ == "__main__":
    sys.exit(run_cases(CASES, check))
