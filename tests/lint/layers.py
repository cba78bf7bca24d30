#!/usr/bin/python3
"""Layers, circles, header contracts, sizes and budgets of the C sources: `layers.py [ROOT]` (default: this tree).

budgets.txt beside this file lists the lines that each folder may have.
Prints `FILE:LINE: what is wrong`, one a line; exit status 1 when there is any. Warnings (a file or
a function that grows towards its limit) are printed and fail nothing.
"""
import os
import re
import sys

# Who may include whom, by folder; the longest matching prefix decides. A folder always sees itself.
LAYERS = {
    "common": [],
    "common/tt": ["common"],
    "common/keys": ["common"],
    "common/redis": ["common"],
    "proto": ["common"],
    "proto/client": ["common", "proto"],
    "proto/lane": ["common", "proto"],
    "ttserver": ["common", "proto", "ttserver"],
    "ttserver/core": ["common", "proto"],
    "ttserver/net": ["common", "proto", "ttserver/core"],
    "ttserver/keep": ["common", "proto", "ttserver/core"],
    "worker/games": ["common"],
    "worker/search": ["common", "worker/games"],
    "worker/search/handover": ["common", "worker/games", "worker/search"],
    "worker/redis": ["common", "proto"],
    "worker/lane": ["common", "proto", "worker/redis"],
    "worker/table": ["common", "proto", "worker/search/ports.h"],
    "worker/engine": ["common", "proto", "worker/lane", "worker/table", "worker/search", "worker/games"],
    # The virtual cluster runs the same client and the same shard.
    "worker/lab": ["common", "proto", "ttserver/core", "worker/engine", "worker/table", "worker/search", "worker/games"],
    # The client side alone: what a program of others gets must not have the search, games or engine in it.
    "worker/lib": ["common", "proto", "worker/lane"],
    # What commands share stands in worker/programs, each command in a folder below; `top` shows what shards count.
    "worker/programs": ["common", "proto", "worker", "ttserver/core/figures.h"],
    "worker": ["common", "proto", "worker"],  # the programs' main files
}
TOP = ("common", "proto", "ttserver", "worker")

# Pure folders see no socket, no loop, no thread and no clock, not even through another header.
PURE = ("common/tt", "proto", "proto/client", "ttserver/core", "worker/search", "worker/search/handover", "worker/games")
IMPURE_SYSTEM = re.compile(r"(zmq|uv|pthread|threads|time|sys/time|poll)\.h|hiredis(/.*)?\.h|"
                           r"sys/socket\.h")
IMPURE_OWN = {"common/clock.h"}

# The wall clock jumps: what it shows is told to people, by these files, and nothing else lives by it. A condition
# that is made without attributes waits by it.
WALL_CLOCK = re.compile(r"\bCLOCK_REALTIME\b|\bTIME_UTC\b|(?<![\w.>])(?:time|gettimeofday|ftime|sem_timedwait|"
                        r"pthread_mutex_timedlock)\(|\bpthread_cond_init\([^,]*,\s*NULL\)|\bPTHREAD_COND_INITIALIZER\b")
OF_PEOPLE = {"common/log.c", "worker/programs/admin/top_view.c"}

FUNCTION_MAX, FUNCTION_WARN = 160, 80
FILE_MAX, FILE_WARN = 1000, 800

# Modules of a folder that may need each other (x.c with x.h is a module; it needs what it includes and whose
# functions it calls), and why. docs/design.md refers to this table. A circle of some of them is allowed as well.
CIRCLES = [
    ("worker/search", "children node quiesce select",
     "the search is recursive: a node searches its children, a child is a node"),
]

BUDGETS = "tests/lint/budgets.txt"

INCLUDE = re.compile(r'\s*#\s*include\s*([<"])([^>"]+)[>"]')
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
DEFINITION = re.compile(r"^(?!static\b)[a-z][\w \*]*?\b(\w+)\([^;{}]*\)\n\{", re.MULTILINE)
CALL = re.compile(r"(?<![\w.>])\w+\b")
DECLARATION = re.compile(r"^(?!static\b|typedef\b)[A-Za-z_][\w \*]*?\b(\w+)\([^;{}]*\);", re.MULTILINE)
CONTRACT = re.compile(r"\b(threads?|pure)\b", re.IGNORECASE)


def module(path):
    """x_none.c stands in for x.c in a build without it."""
    return os.path.splitext(path)[0].removesuffix("_none")


def longest(path, table):
    """The deepest of the file's folders that is in the table, or ""."""
    folder = os.path.dirname(path)
    while folder and folder not in table:
        folder = os.path.dirname(folder)
    return folder


def layer(path):
    return longest(path, LAYERS)


def circles(graph):
    """The sets of nodes that reach each other, two or more, sorted (Tarjan 1972)."""
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(graph[node]):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            cut = stack.index(node)
            if len(stack) - cut > 1:
                found.append(sorted(stack[cut:]))
            del stack[cut:]

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return sorted(found)


class Source:
    def __init__(self, root, path):
        with open(os.path.join(root, path), encoding="utf-8") as file:
            self.lines = file.read().splitlines()
        self.path = path
        self.own, self.system = [], []  # (line number, name)
        for number, line in enumerate(self.lines, 1):
            found = INCLUDE.match(line)
            if found:
                (self.own if found[1] == '"' else self.system).append((number, found[2]))


class Lint:
    def __init__(self, root):
        self.root, self.faults, self.warnings, self.product_lines = root, 0, 0, 0
        self.sources = {}
        for top in TOP + ("tests",):
            for folder, _, names in os.walk(os.path.join(root, top)):
                for name in sorted(names):
                    if name.endswith((".c", ".h")):
                        path = os.path.relpath(os.path.join(folder, name), root)
                        self.sources[path] = Source(root, path)

    def fault(self, path, line, text):
        self.faults += 1
        print(f"{path}:{line}: {text}")

    def warn(self, path, line, text):
        self.warnings += 1
        print(f"{path}:{line}: warning: {text}")

    # ---- layers ----

    @staticmethod
    def may_include(path, name):
        here = layer(path)
        return layer(name) == here or any(name == a or name.startswith(a + "/") for a in LAYERS[here])

    def check_includes(self, source):
        for line, name in source.own:
            if name not in self.sources:
                self.fault(source.path, line,
                           f'"{name}" is no file of this tree (paths begin at its top)')
            elif not self.may_include(source.path, name):
                self.fault(source.path, line,
                           f"{layer(source.path)} may not include {name}: layers point down")

    def impurity(self, path, seen):
        """(line, chain) of the first way from `path` to a socket, a thread or a clock, or None."""
        seen.add(path)
        source = self.sources[path]
        for line, name in source.system:
            if IMPURE_SYSTEM.fullmatch(name):
                return line, f"<{name}>"
        for line, name in source.own:
            if name in IMPURE_OWN:
                return line, name
            if name in self.sources and name not in seen:
                found = self.impurity(name, seen)
                if found:
                    return line, f"{name} -> {found[1]}"
        return None

    def check_purity(self, source):
        if layer(source.path) in PURE:
            found = self.impurity(source.path, set())
            if found:
                self.fault(source.path, found[0], f"a pure folder may not see {found[1]}")

    def check_clocks(self, source):
        text = COMMENT.sub(lambda found: "\n" * found[0].count("\n"), "\n".join(source.lines))
        for number, line in enumerate(text.split("\n"), 1):
            found = WALL_CLOCK.search(line)
            if found and source.path not in OF_PEOPLE:
                self.fault(source.path, number, f"{found[0]}: the wall clock jumps, so nothing waits or lives by it")

    def check_header_circles(self):
        """Whether there are any."""
        state, before = {}, self.faults  # path: "open" while on the way down, then "done"

        def visit(path, trail):
            state[path] = "open"
            for line, name in self.sources[path].own:
                if state.get(name) == "open":
                    circle = trail[trail.index(name):] + [name]
                    self.fault(path, line, "headers include each other: " + " -> ".join(circle))
                elif name in self.sources and name not in state:
                    visit(name, trail + [name])
            state[path] = "done"

        for path in self.sources:
            if path not in state:
                visit(path, [path])
        return self.faults > before

    def check_users(self):
        """A header is for two files at least; one may be a test."""
        users = {}
        for source in self.sources.values():
            for _, name in source.own:
                users.setdefault(name, set()).add(source.path)
        has_tests = any(path.startswith("tests/") for path in self.sources)  # else it is the small tree of a test
        for name in sorted(set(users) & set(self.sources)):
            only = users[name].pop()
            if has_tests and not users[name] and not name.startswith("tests/") and not only.startswith("tests/"):
                self.fault(name, 1, f"{only} alone includes it: put it there")

    # ---- who defines what ----

    def product(self):
        """{path: source}, {path: text without comments}, {function: the modules that define it}"""
        product = {path: source for path, source in self.sources.items() if not path.startswith("tests/")}
        texts = {path: COMMENT.sub("", "\n".join(source.lines)) for path, source in product.items()}
        defined = {}
        for path, text in texts.items():
            for name in set(DEFINITION.findall(text)) - {"main"} if path.endswith(".c") else []:
                defined.setdefault(name, []).append(module(path))
        return product, texts, defined

    def check_declarations(self):
        """A header must not hide a need of another layer: what it declares is defined in its own. And once: of two
        functions of one name in an archive the linker takes any."""
        _, texts, defined = self.product()
        for name, owners in sorted(defined.items()):
            if len(set(owners)) > 1:
                self.fault(owners[1] + ".c", 1, f"{name} is defined in {owners[0]}.c, too")
        for path, text in texts.items():
            for name in DECLARATION.findall(text) if path.endswith(".h") else []:
                owners = defined.get(name, [])
                if owners and all(layer(owner) != layer(path) for owner in owners):
                    self.fault(path, 1, f"{name} is declared here, defined in {owners[0]}.c: another layer")

    # ---- circles of modules ----

    def needs(self):
        """{module: modules of its folder that it includes or whose functions it calls}; a module is x.c with x.h."""
        product, texts, defined = self.product()
        graph = {module(path): set() for path in product}
        for path, source in product.items():
            used = {module(name) for _, name in source.own if name in product}
            if path.endswith(".c"):
                used |= {owner for name in set(CALL.findall(texts[path])) for owner in defined.get(name, [])}
            folder = os.path.dirname(path)
            graph[module(path)] |= {other for other in used
                                    if other != module(path) and os.path.dirname(other) == folder}
        return graph

    def check_module_circles(self):
        used = set()
        for circle in circles(self.needs()):
            folder, names = os.path.dirname(circle[0]), {os.path.basename(each) for each in circle}
            allowed = next((row for row in CIRCLES if row[0] == folder and names <= set(row[1].split())), None)
            used.add(allowed)
            if allowed is None:
                path = next(p for p in (circle[0] + ".c", circle[0] + ".h") if p in self.sources)
                self.fault(path, 1, f"modules of {folder} need each other: {', '.join(sorted(names))}")
        for row in self.allowed_circles():
            if row not in used:
                self.warn(row[0], 1, f"no circle any more, remove it from CIRCLES: {row[1]}")

    def allowed_circles(self):
        """The rows whose modules are in this tree."""
        return [row for row in CIRCLES
                if all(f"{row[0]}/{name}.c" in self.sources or f"{row[0]}/{name}.h" in self.sources
                       for name in row[1].split())]

    def check_folder_circles(self):
        """Folders of one layer, below the layer's own, need each other in one direction."""
        folders = {path: os.path.dirname(path) for path in self.product()[0] if layer(path) != os.path.dirname(path)}
        graph = {folder: set() for folder in folders.values()}
        for path, folder in folders.items():
            graph[folder] |= {folders[name] for _, name in self.sources[path].own if name in folders and layer(name) == layer(path)}
        for circle in circles(graph):
            self.fault(circle[0], 1, f"folders of {layer(circle[0])} need each other: {', '.join(circle)}")

    # ---- contracts and sizes ----

    def check_contract(self, source):
        text = "\n".join(source.lines)
        comment = re.match(r"/\*.*?\*/", text, re.DOTALL)
        if not comment:
            self.fault(source.path, 1, "a header begins with its contract in a comment")
        elif not CONTRACT.search(comment[0]):
            self.fault(source.path, 1, 'the contract says which threads may call it ("Threads: ..." '
                                       'or "Pure")')

    def check_sizes(self, source):
        n = len(source.lines)
        if n > FILE_MAX:
            self.fault(source.path, n, f"{n} lines, more than {FILE_MAX}")
        elif n > FILE_WARN:
            self.warn(source.path, n, f"{n} lines, more than {FILE_WARN}")
        begin = None
        for number, line in enumerate(source.lines, 1):
            if line == "{":  # the format check puts only a function's braces here
                begin = number
            elif line == "}" and begin is not None:
                length = number - begin + 1
                if length > FUNCTION_MAX:
                    self.fault(source.path, begin,
                               f"a function of {length} lines, more than {FUNCTION_MAX}")
                elif length > FUNCTION_WARN:
                    self.warn(source.path, begin,
                              f"a function of {length} lines, more than {FUNCTION_WARN}")
                begin = None

    # ---- budgets ----

    def check_budgets(self):
        """Counts each product file for the longest folder that budgets.txt lists."""
        if not os.path.isdir(os.path.join(self.root, os.path.dirname(BUDGETS))):
            return  # the small tree of a test
        with open(os.path.join(self.root, BUDGETS), encoding="utf-8") as file:
            rows = [(number, *line.split()) for number, line in enumerate(file, 1) if not line.startswith("#")]
        lines = {folder: 0 for _, folder, _ in rows}
        for path, source in self.sources.items():
            if not path.startswith("tests/"):
                folder = longest(path, lines)
                if folder in lines:
                    lines[folder] += len(source.lines)
                else:
                    self.fault(path, 1, f"its folder has no budget in {BUDGETS}")
        for number, folder, budget in rows:
            if lines[folder] > int(budget):
                self.fault(BUDGETS, number, f"{folder} has {lines[folder]} lines, {budget} allowed: take some away, or raise the "
                                            "number and say why in the message of the commit")
            elif lines[folder] < 0.98 * int(budget):
                self.warn(BUDGETS, number, f"{folder} has {lines[folder]} lines, {budget} allowed: lower the number")
        self.product_lines = sum(lines.values())

    def run(self):
        for path, source in self.sources.items():
            self.check_sizes(source)
            if not path.startswith("tests/"):
                self.check_includes(source)
                self.check_purity(source)
                self.check_clocks(source)
                if path.endswith(".h"):
                    self.check_contract(source)
        self.check_budgets()
        self.check_users()
        self.check_declarations()
        if not self.check_header_circles():
            self.check_module_circles()
        self.check_folder_circles()
        print(f"layers: {len(self.sources)} files, {self.product_lines} lines of product, {self.faults} faults, {self.warnings} warnings")
        return 1 if self.faults or not self.sources else 0


if __name__ == "__main__":
    here = os.path.dirname(os.path.abspath(__file__))
    sys.exit(Lint(sys.argv[1] if len(sys.argv) > 1 else os.path.join(here, "..", "..")).run())
