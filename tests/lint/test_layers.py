#!/usr/bin/python3
"""The layer check finds what it is for: each fault is planted in a tree of its own. TAP."""
import contextlib
import io
import os
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import layers  # noqa: E402

HEADER = "/* x: a part. Threads: any. */\n"
BODY = "void f(void)\n{\n%s}\n"

# name: (files, what the report says; None: nothing)
CASES = {
    "a sound tree passes": (
        {"common/a.h": HEADER, "common/tt/t.c": '#include "common/a.h"\n',
         "proto/p.h": HEADER + '#include "common/a.h"\n',
         "ttserver/net/s.c": '#include <zmq.h>\n#include "proto/p.h"\n',
         "worker/search/ports.h": HEADER, "worker/games/g.h": HEADER,
         "worker/search/s.c": '#include "worker/games/g.h"\n#include "worker/search/ports.h"\n',
         "worker/table/t.c": '#include "worker/search/ports.h"\n#include "proto/p.h"\n',
         "worker/main.c": '#include "worker/games/g.h"\n'}, None),
    "common sees nothing above": (
        {"common/a.c": '#include "proto/p.h"\n', "proto/p.h": HEADER}, "common may not include"),
    "common does not see tt": (
        {"common/a.c": '#include "common/tt/t.h"\n', "common/tt/t.h": HEADER}, "may not include"),
    "proto does not see the worker": (
        {"proto/a.c": '#include "worker/search/ports.h"\n', "worker/search/ports.h": HEADER},
        "proto may not include"),
    "the server does not see the worker": (
        {"ttserver/main.c": '#include "worker/games/g.h"\n', "worker/games/g.h": HEADER},
        "ttserver may not include"),
    "the core does not see its shell": (
        {"ttserver/core/a.c": '#include "ttserver/net/s.h"\n', "ttserver/net/s.h": HEADER},
        "ttserver/core may not include"),
    "games know nothing of search": (
        {"worker/games/chess/a.c": '#include "worker/search/s.h"\n', "worker/search/s.h": HEADER},
        "worker/games may not include"),
    "search does not see the wire": (
        {"worker/search/a.c": '#include "proto/p.h"\n', "proto/p.h": HEADER},
        "worker/search may not include"),
    "tables see ports alone of search": (
        {"worker/table/a.c": '#include "worker/search/node.h"\n', "worker/search/node.h": HEADER},
        "worker/table may not include"),
    "engine does not see the command line": (
        {"worker/engine/a.c": '#include "worker/programs/c.h"\n', "worker/programs/c.h": HEADER},
        "worker/engine may not include"),
    "a header of one file": (
        {"common/a.c": '#include "common/a.h"\n', "common/a.h": HEADER, "tests/t.c": "\n"}, "common/a.c alone includes it"),
    "a header of one file and a test": (
        {"common/a.c": '#include "common/a.h"\n', "common/a.h": HEADER, "tests/t.c": '#include "common/a.h"\n'}, None),
    "a path that is none": ({"common/a.c": '#include "b.h"\n', "common/b.h": HEADER}, "no file of"),
    "a core with a socket": ({"ttserver/core/a.c": "#include <zmq.h>\n"}, "<zmq.h>"),
    "a core with a loop": ({"ttserver/core/a.h": HEADER + "#include <uv.h>\n"}, "<uv.h>"),
    "a search with threads": ({"worker/search/a.c": "#include <pthread.h>\n"}, "<pthread.h>"),
    "a game with a clock": ({"worker/games/a.c": "#include <sys/time.h>\n"}, "<sys/time.h>"),
    "a table with redis": ({"common/tt/a.c": "#include <hiredis/hiredis.h>\n"}, "hiredis"),
    "a wait by the wall clock": ({"common/a.c": "void f(void)\n{\n    clock_gettime(CLOCK_REALTIME, &t);\n}\n"}, "wall clock"),
    "a condition of the wall clock": ({"common/a.c": BODY % "    pthread_cond_init(&c, NULL);\n"}, "wall clock"),
    "a log with the time of day, and a comment": (
        {"common/log.c": BODY % "    clock_gettime(CLOCK_REALTIME, &t);\n", "common/a.c": "/* CLOCK_REALTIME */\n"}, None),
    "a protocol with our clock": (
        {"proto/a.c": '#include "common/clock.h"\n', "common/clock.h": HEADER}, "common/clock.h"),
    "a clock behind a header": (
        {"worker/search/a.c": '#include "common/b.h"\n',
         "common/b.h": HEADER + '#include "common/c.h"\n',
         "common/c.h": HEADER + "#include <time.h>\n"}, "common/b.h -> common/c.h -> <time.h>"),
    "headers in a circle": (
        {"common/a.h": HEADER + '#include "common/b.h"\n',
         "common/b.h": HEADER + '#include "common/a.h"\n'}, "include each other"),
    "modules that include each other": (
        {"common/a.h": HEADER, "common/b.h": HEADER, "common/a.c": '#include "common/b.h"\n',
         "common/b.c": '#include "common/a.h"\n'}, "modules of common need each other: a, b"),
    "modules that call each other": (
        {"common/a.h": HEADER, "common/a.c": '#include "common/a.h"\nint a_run(int x)\n{\n    return b_run(x);\n}\n',
         "common/b.c": '#include "common/a.h"\nint b_run(int x)\n{\n    return a_run(x);\n}\n'},
        "modules of common need each other: a, b"),
    "a header that hides who does it": (
        {"proto/a.h": HEADER + "int a_run(int x,\n          int y);\n",
         "worker/redis/a.c": '#include "proto/a.h"\nint a_run(int x, int y)\n{\n    return x + y;\n}\n'},
        "a_run is declared here, defined in worker/redis/a.c"),
    "two functions of one name": (
        {"common/a.c": BODY % "", "worker/games/b.c": BODY % ""}, "f is defined in common/a.c, too"),
    "a function and what stands in for it": ({"common/a.c": BODY % "", "common/a_none.c": BODY % ""}, None),
    "a comment, a member and an own function are no calls": (
        {"common/a.h": HEADER, "common/a.c": 'int a_run(int x)\n{\n    return x;\n}\n',
         "common/c.c": 'static int a_run(int x)\n{\n    return x; /* a_run */\n}\n',
         "common/b.c": 'int b_run(struct s *s)\n{\n    return s->a_run(s);\n}\n'}, None),
    "a circle of two folders is one of layers": (
        {"common/a.h": HEADER + '#include "proto/b.h"\n', "proto/b.h": HEADER}, "common may not include"),
    "folders of a layer in a circle": (
        {"worker/programs/a/a.c": '#include "worker/programs/b/b.h"\n', "worker/programs/b/b.h": HEADER, "worker/programs/a/a.h": HEADER,
         "worker/programs/b/b.c": '#include "worker/programs/a/a.h"\n'}, "folders of worker/programs need each other"),
    "a folder of a layer that needs another, and the layer's": (
        {"worker/programs/a/a.c": '#include "worker/programs/b/b.h"\n', "worker/programs/b/b.h": HEADER,
         "worker/programs/c.c": '#include "worker/programs/b/b.h"\n', "worker/programs/c.h": HEADER,
         "worker/programs/b/b.c": '#include "worker/programs/c.h"\n'}, None),
    "an allowed circle, and a part of it": (
        {"worker/search/children.h": HEADER, "worker/search/node.h": HEADER, "worker/search/children.c": '#include "worker/search/node.h"\n',
         "worker/search/node.c": '#include "worker/search/children.h"\n'}, None),
    "a header without a contract": ({"common/a.h": "#define A\n"}, "begins with its contract"),
    "a contract without threads": ({"common/a.h": "/* a: nice. */\n"}, "which threads"),
    "a pure contract": ({"common/a.h": "/* a: nice. Pure. */\n"}, None),
    "a long function": ({"common/a.c": BODY % ("    g();\n" * 159)}, "a function of 161 lines"),
    "a function just short enough": ({"common/a.c": BODY % ("    g();\n" * 158)}, None),
    "a folder within its budget": ({"common/a.c": "int a;\n", "tests/lint/budgets.txt": "# lines\ncommon 1\n"}, None),
    "a folder above its budget": ({"common/a.c": "int a;\nint b;\n", "tests/lint/budgets.txt": "common 1\n"}, "common has 2 lines, 1 allowed"),
    "a folder without a budget": ({"common/a.c": "int a;\n", "proto/p.c": "", "tests/lint/budgets.txt": "common 1\n"}, "no budget"),
    "a folder of another budget": ({"common/tt/a.c": "int a;\n", "common/b.c": "int b;\nint c;\n",
                                    "tests/lint/budgets.txt": "common 3\ncommon/tt 0\n"}, "common/tt has 1 lines, 0 allowed"),
    "a long file": ({"tests/unit/a.c": "int a;\n" * 1001}, "1001 lines"),
}


def report_of(lint, files):
    """(exit status, output) of lint(root) for a tree of these files."""
    with tempfile.TemporaryDirectory() as root:
        for path, text in files.items():
            os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                file.write(text)
        report = io.StringIO()
        with contextlib.redirect_stdout(report):
            status = lint(root)
    return status, report.getvalue()


def run_cases(cases, check):
    """check(files, expected) returns whether the case passes, and the report. TAP; returns the exit status."""
    failed = 0
    print(f"1..{len(cases)}")
    for number, (name, (files, expected)) in enumerate(cases.items(), 1):
        good, report = check(files, expected)
        failed += not good
        print(f"{'ok' if good else 'not ok'} {number} - {name}")
        if not good:
            print("# " + report.replace("\n", "\n# "))
    return 1 if failed else 0


def check(files, expected):
    status, report = report_of(lambda root: layers.Lint(root).run(), files)
    if expected is None:
        return status == 0, report
    lines = [line for line in report.splitlines() if expected in line]
    return status == 1 and len(lines) == 1 and ", 1 faults" in report, report


if __name__ == "__main__":
    sys.exit(run_cases(CASES, check))
