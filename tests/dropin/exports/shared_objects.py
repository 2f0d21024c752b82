"""Properties of a shared object, for the tests of this directory: its exports, its dependencies,
and the file that a name resolves to on this machine. Reads with readelf, which every compiler's
package needs."""

import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, os.pardir,
                                "support"))
import missing  # pylint: disable=wrong-import-position

# Num: Value Size Type Bind Vis Ndx Name
SYMBOL = re.compile(r"\s*\d+: [0-9a-f]+\s+\S+ (\w+)\s+(\w+)\s+(\w+)\s+(\S+) (\S+)")
DYNAMIC = re.compile(r"\((NEEDED|SONAME|RPATH|RUNPATH|SYMBOLIC)\)[^\[]*(?:\[(.*)\])?")

FIND_LIBRARY = """
import ctypes, sys
ctypes.CDLL(sys.argv[1])
print(next(line.split(None, 5)[5].strip() for line in open("/proc/self/maps")
           if "/" + sys.argv[2] in line))
"""


def readelf(*arguments):
    done = subprocess.run(["readelf", "-W", *arguments], stdout=subprocess.PIPE, check=True,
                          env={**os.environ, "LC_ALL": "C"})
    return done.stdout.decode()


def exports(path):
    """Returns {name: type} of all symbols that the object exports."""
    found = {}
    for line in readelf("--dyn-syms", path).splitlines():
        match = SYMBOL.match(line)
        if match and match[4] != "UND" and match[2] != "LOCAL" and match[3] in ("DEFAULT",
                                                                                "PROTECTED"):
            found[match[5]] = match[1]
    return found


def dynamic(path):
    """Returns {tag: [value, ...]} of the tags above."""
    found = {}
    for tag, value in DYNAMIC.findall(readelf("-d", path)):
        found.setdefault(tag, []).append(value)
    return found


def defines_versions(path):
    return "Version definition section" in readelf("-V", path)


def environment(lib_dir=None, **more):
    """Returns this process' environment without the variables that change how libraries are
    found."""
    kept = {k: v for k, v in os.environ.items() if not re.match(r"LD_|LIBEV_|EVENT_", k)}
    return {**kept, **({"LD_LIBRARY_PATH": lib_dir} if lib_dir else {}), **more}


def installed(soname):
    """Returns the file that the dynamic loader finds for the name, or None."""
    stem = soname.split(".so")[0]
    done = subprocess.run([sys.executable, "-c", FIND_LIBRARY, soname, stem],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment(),
                          check=False)
    return done.stdout.decode().strip() or None


def finish(problems, summary):
    """Prints the result; returns the exit status."""
    for problem in problems:
        print(problem)
    print(f"{len(problems)} problems; {summary}")
    return 1 if problems else 0


def left_out(why):
    print(why)
    return missing.SKIPPED
