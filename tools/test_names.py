#!/usr/bin/env python3
"""Holds the parameters of tests to being readable.   tools/test_names.py EXECUTABLE...

Lists the tests of each executable of GoogleTest. A parameter without a printer is shown as bytes or
as an address, and a long one fills the lines of every report. Executables that are not built are
left out; if none is, the exit code is 77.
"""

import os
import re
import subprocess
import sys

SKIPPED = 77  # CTest takes this exit code as "skipped".
COLUMNS_MAX = 80
PARAMETER = re.compile(r"# GetParam\(\) = .*")
BYTES = re.compile(r"\d+-byte object <")
ADDRESS = re.compile(r"= 0x[0-9a-f]+$")


def problems(listing):
    """Yields "Suite.Test: problem" for a list of tests."""
    suite = ""
    for line in listing.splitlines():
        if not line.startswith(" "):
            suite = line.split()[0] if line.split() else ""
            continue
        parameter = PARAMETER.search(line)
        if not parameter:
            continue
        text = parameter.group()
        name = suite + line.split()[0]
        if BYTES.search(text) or ADDRESS.search(text):
            yield f"{name}: its parameter has no printer: add PrintTo() beside the type"
        elif len(text) > COLUMNS_MAX:
            yield f"{name}: its parameter is printed in more than {COLUMNS_MAX} columns"


def main(executables):
    built = [path for path in executables if os.path.exists(path)]
    if not built:
        print("no executable of tests is built: build the target all")
        return SKIPPED
    found = []
    for path in built:
        done = subprocess.run([path, "--gtest_list_tests"], stdout=subprocess.PIPE, text=True,
                              check=True)
        found += problems(done.stdout)
    print(*found, f"test_names: {len(built)} executables, {len(found)} problems", sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
