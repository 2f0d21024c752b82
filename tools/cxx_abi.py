#!/usr/bin/env python3
"""Compares the shared libraries with the recorded binary interface of C++, with abidiff.

    tools/cxx_abi.py [--record] [--root ROOT] DIRECTORY

DIRECTORY has the libraries of a build with debug information. The record is in tests/abi, one
compressed file a library; --record writes it. docs/abi.md states the policy. The record depends on
the compiler, so only tools/deb for Debian 12 on x86-64 compares.

A difference is an error, except that new symbols are permitted. Until the first version of a minor
version is released, a difference is printed and is no error. Needs Debian's abigail-tools.
"""

import argparse
import lzma
import os
import re
import subprocess
import sys
import tempfile

import version

LIBRARIES = ("spate", "spate_tls", "spate_http", "spate_http2")
RECORDS = "tests/abi"
# Instances of the standard library's templates. The compiler decides which of them are exported.
SUPPRESSED = os.path.join(RECORDS, "suppressed.ini")
# Writes neither the types that the headers do not show, nor paths.
ABIDW = ("abidw", "--drop-private-types", "--exported-interfaces-only", "--no-corpus-path",
         "--no-comp-dir-path", "--no-show-locs", "--no-elf-needed", "--type-id-style", "hash")
UNRELEASED = re.compile(r"\A# .*?\n## (\d+\.\d+\.0), unreleased$", re.DOTALL | re.MULTILINE)


def library_in(directory, name, root):
    return os.path.join(directory, f"lib{name}.so.{version.soversion_of(version.version_of(root))}")


def record_of(root, name):
    return os.path.join(root, RECORDS, f"lib{name}.abi.xz")


def describe(path, root):
    """Returns the interface of a library as abidw writes it."""
    done = subprocess.run([*ABIDW, "--headers-dir", os.path.join(root, "include"), path],
                          stdout=subprocess.PIPE, check=False)
    if done.returncode != 0 or not done.stdout:
        sys.exit(f"cxx_abi: abidw failed for {path}")
    return done.stdout


def compare(root, name, directory):
    """Returns what abidiff reports, or nothing if the library can replace the recorded one."""
    with tempfile.TemporaryDirectory() as work:
        paths = [os.path.join(work, kind) for kind in ("recorded.abi", "built.abi")]
        with lzma.open(record_of(root, name)) as record, open(paths[0], "wb") as file:
            file.write(record.read())
        with open(paths[1], "wb") as file:
            file.write(describe(library_in(directory, name, root), root))
        done = subprocess.run(["abidiff", "--no-added-syms", "--suppressions",
                               os.path.join(root, SUPPRESSED), *paths],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              check=False)
    return done.stdout or f"abidiff failed: {done.returncode}" if done.returncode != 0 else ""


def is_unreleased(root):
    """Returns whether the changelog calls the first version of this minor version unreleased."""
    with open(os.path.join(root, "CHANGELOG.md"), encoding="utf-8") as file:
        found = UNRELEASED.search(file.read())
    return found is not None and found[1] == version.version_of(root)


def write_records(root, directory):
    for name in LIBRARIES:
        with open(record_of(root, name), "wb") as file:
            file.write(lzma.compress(describe(library_in(directory, name, root), root), preset=9))
        print(f"cxx_abi: recorded lib{name}")


def check(root, directory):
    failed = 0
    for name in LIBRARIES:
        difference = compare(root, name, directory)
        print(f"cxx_abi: lib{name}: {'differs' if difference else 'equal to the record'}")
        print(difference, end="")
        failed += difference != ""
    if failed and is_unreleased(root):
        print(f"cxx_abi: {version.version_of(root)} is unreleased, so this is no error")
        return 0
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true", help="write the record")
    parser.add_argument("--root", default=os.path.dirname(os.path.dirname(
        os.path.abspath(__file__))), help="the tree")
    parser.add_argument("directory", metavar="DIRECTORY")
    options = parser.parse_args()
    if options.record:
        write_records(options.root, options.directory)
        return 0
    return check(options.root, options.directory)


if __name__ == "__main__":
    sys.exit(main())
