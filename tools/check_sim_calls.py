#!/usr/bin/env python3
"""Checks that every system call of the library reaches a simulated World, or is known to be
harmless there; and that the real libraries contain nothing of the simulation.

    tools/check_sim_calls.py ARCHIVE [--compiler COMPILER]
    tools/check_sim_calls.py --production LIBRARY...

ARCHIVE is that for simulations. Every symbol that its members import from the system must be listed
in src/sim/syscalls/harmless.txt; those of calls.txt beside it have been renamed before. With a
compiler, files that make most of the calls are compiled as distributions do (_FORTIFY_SOURCE, large
files), where the same calls have other names.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SIMULATION = re.compile(r"_ZNK?5spate3sim")
# As symbols, in debug information and in texts alike.
TRACES = [b"5spate3sim", b"spate_sim", b"src/sim/", b"SPATE_FAULTS", b"SPATE_SEED", b"SPATE_ONLY"]
DISTRIBUTIONS = ["-O2", "-D_FORTIFY_SOURCE=3", "-D_FILE_OFFSET_BITS=64", "-std=c++23", "-w"]
COMPILED = ["src/sys/socket.cc", "src/sys/file.cc", "src/sys/file_io.cc", "src/backend/poll.cc",
            "src/net/stream/connection_receive.cc"]


def symbols_of(path):
    """Returns two sets for each member: the symbols that it defines, and those that it needs."""
    text = subprocess.run(["nm", path], check=True, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True).stdout
    members = [(set(), set())]
    for line in text.splitlines():
        words = line.split()
        if line.endswith(":"):
            members.append((set(), set()))
        elif len(words) == 2 and words[0] in "Uvw":
            members[-1][1].add(words[1])
        elif len(words) == 3:
            members[-1][0].add(words[2])
    return members


def redirected(root=ROOT):
    with open(os.path.join(root, "src/sim/syscalls/calls.txt"), encoding="utf-8") as file:
        return {line.split()[0] for line in file if line.strip()}


def harmless(root=ROOT):
    with open(os.path.join(root, "src/sim/syscalls/harmless.txt"), encoding="utf-8") as file:
        return " ".join(line for line in file if not line.startswith("#")).split()


def escaping(members, allowed, known):
    """Returns the symbols that the library needs, and that are neither defined, allowed nor
    known."""
    defined = set().union(*(own for own, _ in members))
    asked = set()
    for own, wanted in members:
        if not any(SIMULATION.match(symbol) for symbol in own):
            asked |= wanted
    exact = {name for name in allowed if not name.endswith("*")}
    begin = tuple(name[:-1] for name in allowed if name.endswith("*"))
    return sorted(symbol for symbol in asked - defined - exact - known
                  if not symbol.startswith(begin))


def compiled(compiler):
    with tempfile.TemporaryDirectory() as directory:
        members = []
        for name in COMPILED:
            out = os.path.join(directory, "out.o")
            subprocess.run([compiler, *DISTRIBUTIONS, "-I", "include", "-iquote", "src", "-iquote",
                            "src/sys/linux", "-c", name, "-o", out], check=True, cwd=ROOT)
            members += symbols_of(out)
        return members


def traces_in(content):
    """Returns the traces of the simulation in a library."""
    return [trace.decode() for trace in TRACES if trace in content]


def check_production(libraries):
    passed = True
    for library in libraries:
        with open(library, "rb") as file:
            for trace in traces_in(file.read()):
                print(f"{library} has {trace}, which is the simulation's")
                passed = False
    return passed


def check_archive(archive, compiler):
    escaped = escaping(symbols_of(archive), harmless(), set())
    listed = "src/sim/syscalls/calls.txt"
    for symbol in escaped:
        print(f"{symbol} goes past the World: {listed}, or harmless.txt")
    if compiler:
        own = re.compile(r"_ZNK?5spate|_ZTV?N5spate|_ZGV|_ZT[HW]")
        for symbol in escaping(compiled(compiler), harmless(), redirected()):
            if not own.match(symbol):
                print(f"{symbol} goes past the World in a fortified build: {listed}")
                escaped.append(symbol)
    return 1 if escaped else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("archive", nargs="?")
    parser.add_argument("--compiler")
    parser.add_argument("--production", nargs="+", metavar="LIBRARY")
    options = parser.parse_args()
    if options.production:
        return 0 if check_production(options.production) else 1
    return check_archive(options.archive, options.compiler)


if __name__ == "__main__":
    sys.exit(main())
