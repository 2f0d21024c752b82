#!/usr/bin/env python3
"""Writes the loop as one source.   tools/amalgamate.py DIRECTORY [--libev] [--root ROOT]

For extensions that have to carry their own copy: DIRECTORY gets spate.cc and spate.h, the loop with
its C interface, which need nothing but a compiler (g++ -std=c++23 -c spate.cc). It contains the
loop and all watchers for Linux, without the network, which needs c-ares. With --libev it gets
spate_ev.cc and spate_ev.h, the drop-in libev for programs that have libev compiled in:
docs/drop-in.md. Nothing is exported when they are compiled with -fvisibility=hidden.
"""

import argparse
import os
import re
import sys

# In the order of compilation; all sources of each except tests.
DIRECTORIES = ("src/base", "src/sys", "src/sys/linux", "src/backend", "src/core")
SOURCES = ("src/net/dns/name_error.cc",)
C = "src/c"
NOT_IN_IT = re.compile(r"_test\.cc$|^kqueue\.cc$")
# Files that only a shared library needs: the recorded sizes of structs, the program's allocator
# below everything, the names of libevent.
LIBEV = ("compat/libev", "compat/libev_source")
NOT_IN_LIBEV = re.compile(r"/(abi|memory|emulation)\.cc$")
# NO_EXPORTS replaces the lines that include this header.
EXPORTS = "include/spate/export.h"
HEADER_BEGINS = "#ifndef SPATE_API\n#define SPATE_API\n#endif\n"
NO_EXPORTS = ["#define SPATE_EXPORT"]
VERSION = "include/spate_version.h"
INCLUDED_VERSION = re.compile(r'^#include "spate_version\.h"\n', re.M)
EXPORTING = re.compile(r"#pragma GCC visibility ")
# Files of the drop-in, the first of which replaces the second.
NODE_ROOM, NO_ROOM = "compat/libev_source/node_room.h", "include/spate/layer/node_room.h"
# A source of src/c that includes one of these belongs to the network.
NETWORK = re.compile(r'^#include "spate_(net|tls)\.h"', re.M)

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"')
ROOTS = ("src", "src/sys/linux", "include", ".")


def sources_in(root, directory):
    path = os.path.join(root, directory)
    names = sorted(name for name in os.listdir(path) if name.endswith(".cc"))
    return [f"{directory}/{name}" for name in names if not NOT_IN_IT.search(name)]


def read(root, name):
    with open(os.path.join(root, name), encoding="utf-8") as file:
        return file.read()


def write(directory, name, text):
    with open(os.path.join(directory, name), "w", encoding="utf-8") as file:
        file.write(text)


def find(root, name, including):
    for candidate in [os.path.normpath(os.path.join(os.path.dirname(including), name))] + [
            os.path.normpath(os.path.join(directory, name)) for directory in ROOTS]:
        if os.path.isfile(os.path.join(root, candidate)):
            return candidate
    raise SystemExit(f"amalgamate: {including} includes {name}, which is nowhere")


class Amalgamation:
    """The text of all sources, each header where it is first included."""

    def __init__(self, root, outside):
        self.root = root
        self.done = set(outside)
        self.lines = []

    def add(self, name):
        self.lines.append(f"// ---- {name}")
        for line in read(self.root, name).split("\n")[:-1]:
            include = INCLUDE.match(line)
            if include:
                self.add_header(find(self.root, include.group(1), name))
            elif line.strip() != "#pragma once" and not EXPORTING.match(line):
                self.lines.append(line)

    def add_header(self, name):
        if name in self.done:
            return
        self.done.add(name)
        self.add(name)


def all_of_loop(root):
    return [name for room in DIRECTORIES for name in sources_in(root, room)] + list(SOURCES)


def whole_header(root, header):
    """Returns the text of C's header, with that of the version in it."""
    return INCLUDED_VERSION.sub(lambda _: without_guard(read(root, VERSION)), read(root, header))


def without_guard(text):
    return text.replace("#pragma once\n", "")


def write_c(root, directory):
    header = "include/spate.h"
    whole = Amalgamation(root, {header, EXPORTS, VERSION})
    whole.lines += NO_EXPORTS + ['#include "spate.h"']
    last = [name for name in sources_in(root, C) if not NETWORK.search(read(root, name))]
    for name in all_of_loop(root) + last:
        whole.add(name)
    write(directory, "spate.cc", "\n".join(whole.lines) + "\n")
    write(directory, "spate.h", HEADER_BEGINS + whole_header(root, header))


def write_libev(root, directory):
    header = "compat/libev_source/spate_ev.h"
    whole = Amalgamation(root, {header, EXPORTS, NO_ROOM})
    whole.lines += NO_EXPORTS + ["#define EV_COMPAT3 0", '#include "spate_ev.h"']
    whole.add_header(NODE_ROOM)
    libev = [name for room in LIBEV for name in sources_in(root, room)]
    for name in all_of_loop(root) + [name for name in libev if not NOT_IN_LIBEV.search(name)]:
        whole.add(name)
    write(directory, "spate_ev.cc", "\n".join(whole.lines) + "\n")
    write(directory, "spate_ev.h", read(root, header))


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("directory")
    parser.add_argument("--libev", dest="write", action="store_const", const=write_libev,
                        default=write_c, help="the drop-in libev, not the C interface")
    parser.add_argument("--root", default=os.path.join(os.path.dirname(__file__), ".."))
    options = parser.parse_args(arguments)
    os.makedirs(options.directory, exist_ok=True)
    options.write(options.root, options.directory)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
