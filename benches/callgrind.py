"""A server in valgrind's callgrind: its counting switched on and off, and what its dumps say, by the layer of whoever did it."""

import glob
import os
import re
import subprocess
from collections import Counter, defaultdict

# The first-level caches are those of many processors of today. The largest is so large that no line leaves it: when it
# begins empty, its misses are the lines that are touched.
CACHES = ["--I1=32768,8,64", "--D1=49152,12,64", "--LL=8388608,16,64"]
# callgrind counts each byte that `rep stosb` fills as an instruction: 16,000 for a page. The C library has loops as
# well.
TUNABLES = "glibc.cpu.x86_rep_stosb_threshold=1073741824:glibc.cpu.x86_rep_movsb_threshold=1073741824"
ALLOCATING = re.compile(r"(malloc|calloc|realloc|posix_memalign|aligned_alloc|memalign|my_malloc|my_realloc|operator new(\[\])?\(.*)('\d+)?$")
# The layers of Teak that have columns of their own: the C++ side, crates, rooms of the core.
LAYERS = ("shim", "border", "rows", "api", "engine", "mvcc", "lock", "tree", "log", "slabs")
# The rest of Teak; all of a statement; and what an engine has others do for it.
OTHER, WHOLE, LIBRARIES, SERVER = "other", "whole statement", "libraries", "server"
FIELDS = ("instructions", "calls", "allocations", "locked", "I1 misses", "D1 misses", "I lines", "D lines")


def command(directory):
    """What comes before the server's program to have it counted, from the moment on at which that is asked for."""
    return [
        "valgrind", "--tool=callgrind", "--vgdb=no", "--instr-atstart=no", "--cache-sim=yes", *CACHES, "--collect-bus=yes", "--separate-threads=yes",
        # Of each call over the border, its guard by itself.
        "--dump-instr=yes", "--dump-line=yes", "--separate-callers1=teak_plugin::ffi::guard::*", f"--callgrind-out-file={directory}/dump",
        f"--log-file={directory}/valgrind.log",
    ]


class Counting:
    """The counters of a server under callgrind, which has benches/counting.c among its plugins; told by a connection of its own."""

    def __init__(self, server, directory):
        self.directory, self.parts = directory, 0
        self.connection = server.connect(None)
        tell(self.connection, "CREATE FUNCTION counting RETURNS INTEGER SONAME 'counting.so'")

    def stop(self):
        """Counts no longer."""
        tell(self.connection, "SELECT counting(0)")

    def start(self):
        """Counts from here on, with empty caches."""
        self.stop()
        tell(self.connection, "SELECT counting(1)")

    def dump(self, connection, layers):
        """What the server did for a connection since its last dump. Only while it counts: callgrind does not notice otherwise which thread runs."""
        tell(connection, "SELECT counting(2)")
        self.parts += 1
        path, = glob.glob(os.path.join(glob.escape(self.directory), f"dump.{self.parts}-*"))
        dump = Dump(path, layers)
        os.unlink(path)
        return dump


def tell(connection, sql):
    """Carries out a statement."""
    with connection.cursor() as cursor:
        cursor.execute(sql)


class Layers:
    """Which layer an instruction belongs to: by its file within Teak, also where it was inlined into another's function, and by its address within InnoDB."""

    TEAK = "ha_teak.so"
    FILE = re.compile(r"crates/core/src/(\w+)|crates/(\w+)/(src|shim)/")
    NAME = re.compile(r"teak_core::(\w+)|teak_(\w+)::|(ha_teak|teak)::")

    def __init__(self, innodb):
        """With the addresses of InnoDB's code in the server, or none where Teak is counted."""
        self.innodb = innodb
        self.by_file = {}

    def of_code(self, code, file, function, address):
        """The layer, or None of what is not the engine's."""
        if code.endswith(self.TEAK):
            return self.of_file(file) or self.of_name(function)
        return "InnoDB" if address in self.innodb and code.endswith("/mariadbd") else None

    def of_called(self, code, file, function):
        """The layer of a function: one without a name has its address in the place of it, and a number behind where it recurs."""
        return self.of_code(code, file, function, int(function.split("'")[0], 16) if function.startswith("0x") else -1)

    def of_file(self, file):
        """The layer of a file of Teak."""
        if file not in self.by_file:
            found = self.FILE.search(file)
            room, crate, part = found.groups() if found else (None, None, None)
            self.by_file[file] = found and known("shim" if part == "shim" else "border" if crate == "plugin" else room or crate)
        return self.by_file[file]

    def of_name(self, function):
        """The layer of what the compiler took from a library: that of the function which it was inlined into or made for."""
        found = self.NAME.search(function)
        if not found:
            return OTHER
        room, crate, _ = found.groups()
        return known(room or {"plugin": "border", None: "shim"}.get(crate, crate))


def known(layer):
    """The column that a layer belongs to."""
    return layer if layer in LAYERS else OTHER


def hidden_code(program):
    """The addresses of InnoDB's code in a server without debug symbols: the longest stretch without a function that the server exports.

    InnoDB is compiled with hidden symbols; what it has of templates is exported as weak ones.
    """
    symbols = subprocess.run(["nm", "-D", "--defined-only", "-n", program], capture_output=True, text=True, check=True).stdout
    starts = [int(line.split()[0], 16) for line in symbols.splitlines() if " T " in line]
    sections = subprocess.run(["readelf", "-SW", program], capture_output=True, text=True, check=True).stdout
    address, size = re.search(r" \.text +PROGBITS +(\w+) \w+ (\w+)", sections).groups()
    end = int(address, 16) + int(size, 16)
    starts = [start for start in starts if start < end] + [end]
    return max((range(first, second) for first, second in zip(starts, starts[1:])), key=len)


class Dump:
    """A dump of one thread: what each layer did, and each function of the engine."""

    EVENTS = ("Ir", "Ge", "I1mr", "D1mr", "D1mw", "ILmr", "DLmr", "DLmw")

    def __init__(self, path, layers):
        self.layers = layers
        self.names = {kind: {} for kind in ("ob", "fl", "fn")}
        # Of each layer, of what the engine calls elsewhere, and of everything: one of FIELDS -> how many.
        self.counts = defaultdict(Counter)
        # Of each function of the engine: instructions of its own, with those of whom it calls, allocations by it, calls
        # of it, also by who calls.
        self.functions = defaultdict(Counter)
        self.places = []
        with open(path, encoding="utf-8", errors="replace") as file:
            self.read(file)

    def name(self, kind, text):
        """A name, which is written out the first time only."""
        number, _, name = text.partition(" ")
        return self.names[kind].setdefault(number, name)

    def read(self, lines):
        """Goes through the lines of the format that callgrind's manual describes."""
        code = file = function = called_code = called_file = called = ""
        address, calls = 0, 0
        for line in lines:
            if line[0] in "0123456789+-*":
                where, _, *costs = line.split()
                address = address if where == "*" else int(where, 16) if where[0] == "0" else address + int(where)
                layer = self.layers.of_code(code, file, function, address)
                if calls:
                    self.add_call((layer, function), (called_code, called_file, called, calls), self.figures(costs))
                    calls, called_code, called_file = 0, code, file
                else:
                    self.add(layer, function, self.figures(costs))
                continue
            key, _, value = line.rstrip("\n").partition("=")
            if key == "fn":
                function = self.name("fn", value)
            elif key in ("fl", "fi", "fe"):
                file = called_file = self.name("fl", value)
            elif key == "ob":
                code = called_code = self.name("ob", value)
            elif key == "cob":
                called_code = self.name("ob", value)
            elif key in ("cfi", "cfl"):
                called_file = self.name("fl", value)
            elif key == "cfn":
                called = self.name("fn", value)
            elif key == "calls":
                calls = int(value.split()[0])
            elif line.startswith("events: "):
                events = line.split()[1:]
                self.places = [events.index(event) for event in self.EVENTS]

    def figures(self, costs):
        """What is counted, of the columns of a line: zeros at its end are left out."""
        ir, locked, i1, d1r, d1w, il, dlr, dlw = (int(costs[place]) if place < len(costs) else 0 for place in self.places)
        return {"instructions": ir, "locked": locked, "I1 misses": i1, "D1 misses": d1r + d1w, "I lines": il, "D lines": dlr + dlw}

    def add(self, layer, function, figures):
        """Instructions of a function."""
        add_to(self.counts[WHOLE], figures)
        if layer:
            add_to(self.counts[layer], figures)
            self.functions[function]["own"] += figures["instructions"]
            self.functions[function]["inclusive"] += figures["instructions"]

    def add_call(self, caller, called, figures):
        """Calls of a function, and what it did for them."""
        layer, function = caller
        code, file, name, calls = called
        target = self.layers.of_called(code, file, name)
        allocates = ALLOCATING.match(name)
        self.counts[WHOLE]["calls"] += calls
        if allocates and "/libc" in code:
            self.counts[WHOLE]["allocations"] += calls
        if target:
            self.counts[target]["calls"] += calls
            self.functions[name]["calls"] += calls
            self.functions[name][f"from {function if layer else 'the server'}"] += calls
        if not layer:
            return
        self.functions[function]["inclusive"] += figures["instructions"]
        if allocates:
            self.counts[layer]["allocations"] += calls
            self.functions[function]["allocations"] += calls
        if not target:
            add_to(self.counts[SERVER if code.endswith("/mariadbd") else LIBRARIES], figures)


def add_to(counter, figures):
    """Adds figures by their names."""
    for name, value in figures.items():
        counter[name] += value
