#!/usr/bin/env python3
"""Writes the loop and its C interface as one source.   tools/amalgamate.py DIRECTORY [--root ROOT]

For extensions that have to carry their own copy: DIRECTORY gets spate.cc and spate.h, which need
nothing but a compiler (g++ -std=c++23 -c spate.cc). What is in it: the loop and all watchers; not
the network, which needs c-ares. Nothing is exported when it is compiled with -fvisibility=hidden.
"""

import argparse
import os
import re
import sys

# In the order in which they are compiled; of each, all sources but the tests.
DIRECTORIES = ("src/base", "src/sys", "src/backend", "src/core")
SOURCES = ("src/net/names/name_error.cc",)
LAST = "src/c"
NOT_IN_IT = re.compile(r"_test\.cc$")
# Whose place this line takes.
EXPORTS = "include/spate/export.h"
HEADER_BEGINS = "#ifndef SPATE_API\n#define SPATE_API\n#endif\n"
NO_EXPORTS = ["#define SPATE_EXPORT"]
# Of src/c, what hands over to the network.
NETWORK = re.compile(r'^#include "spate_(net|tls)\.h"', re.M)

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"')
ROOTS = ("src", "include", ".")


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
            elif line.strip() != "#pragma once":
                self.lines.append(line)

    def add_header(self, name):
        if name in self.done:
            return
        self.done.add(name)
        self.add(name)


def all_sources(root):
    sources = [name for directory in DIRECTORIES for name in sources_in(root, directory)]
    last = [name for name in sources_in(root, LAST) if not NETWORK.search(read(root, name))]
    return sources + list(SOURCES) + last


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("directory")
    parser.add_argument("--root", default=os.path.join(os.path.dirname(__file__), ".."))
    options = parser.parse_args(arguments)
    header = "include/spate.h"
    whole = Amalgamation(options.root, {header, EXPORTS})
    whole.lines += NO_EXPORTS + ['#include "spate.h"']
    for name in all_sources(options.root):
        whole.add(name)
    os.makedirs(options.directory, exist_ok=True)
    write(options.directory, "spate.cc", "\n".join(whole.lines) + "\n")
    write(options.directory, "spate.h", HEADER_BEGINS + read(options.root, header))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
