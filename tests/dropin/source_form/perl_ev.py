#!/usr/bin/env python3
"""Builds Perl's EV 4.33 on the drop-in in source form, and runs its own tests.

    perl_ev.py --source DIRECTORY --compiler CXX [--keep DIRECTORY]

SPATE_EV_SOURCES is the directory of EV's distribution, which is copied, not changed; nothing is
fetched. DIRECTORY has spate_ev.cc and spate_ev.h. With --keep, EV is built in a new directory that
stays. Exits with 77 if the sources or a command are missing.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, os.pardir,
                                "support"))
import missing  # pylint: disable=wrong-import-position

SECONDS = 240
# Like EV/EVAPI.h, without Perl's types.
COMMON = "int e_flags; void *loop, *self, *cb_sv, *fh, *data;"
# The two places in EV.xs: where it includes libev, and where EV reads libev's internal table.
PLACES = (
    (r"#define EV_API_STATIC\n#define EV_H \S+\n", '#define EV_H "spate_ev.h"\n'),
    (r'#include "libev/ev\.c"\n', """#define ecb_expect_true(condition) (condition)
#define ecb_expect_false(condition) (condition)
"""),
    (r"signals \[\(w\)->signum - 1\]\.loop", "spate_ev_signal_loop ((w)->signum)"),
)
FLAGS = ("-std=c++23 -O1 -fPIC -fvisibility=hidden -fno-strict-aliasing -fno-exceptions"
         " -fno-rtti -DNDEBUG").split()
# EV's Makefile.PL uses this module to check the version of Perl.
CANARY = "package Canary::Stability; sub import {} 1;\n"


def patch(path):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    for place, replacement in PLACES:
        text, count = re.subn(place, lambda _, new=replacement: new, text)
        if count == 0:
            raise SystemExit(f"{path}: there is no {place}")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def call(words, directory, **more):
    """Returns its output; fails the test if it fails."""
    done = subprocess.run(words, cwd=directory, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=SECONDS, text=True, check=False, **more)
    if done.returncode != 0:
        print(done.stdout[-5000:])
        raise SystemExit(f"{' '.join(words)}: {done.returncode}")
    return done.stdout


def build(options, work):
    for name in ("spate_ev.cc", "spate_ev.h"):
        shutil.copy(os.path.join(options.source, name), work)
    patch(os.path.join(work, "EV.xs"))
    call([options.compiler, *FLAGS, "-Ilibev", f"-DEV_COMMON={COMMON}", "-c", "spate_ev.cc"], work)
    os.mkdir(os.path.join(work, "Canary"))
    with open(os.path.join(work, "Canary", "Stability.pm"), "w", encoding="utf-8") as file:
        file.write(CANARY)
    environment = dict(os.environ, PERL_MM_USE_DEFAULT="1", PERL5LIB=work)
    call(["perl", "Makefile.PL", "LDFROM=$(OBJECT) spate_ev.o",
          "OPTIMIZE=-O1 -Werror=implicit-function-declaration", "INC=-Ilibev -I.",
          f"LD={options.compiler}"], work, env=environment)
    call(["make"], work)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--source", required=True)
    parser.add_argument("--compiler", default="c++")
    parser.add_argument("--keep")
    options = parser.parse_args()
    sources = os.environ.get("SPATE_EV_SOURCES")
    reason = missing.first_missing("perl", "make")
    if not sources:
        reason = "SPATE_EV_SOURCES is not set: `apt-get source libev-perl` makes the directory"
    if reason:
        print(reason)
        return missing.SKIPPED
    with tempfile.TemporaryDirectory() as directory:
        work = options.keep or os.path.join(directory, "EV")
        shutil.copytree(sources, work)
        build(options, work)
        print(call(["prove", "-b", "t/"], work))
    return 0


if __name__ == "__main__":
    sys.exit(main())
