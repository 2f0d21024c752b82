#!/usr/bin/env python3
"""memcached's own tests, in Perl, with Debian's memcached.

SPATE_MEMCACHED_SOURCES is the directory of memcached's source package; without it the test is
skipped. They mostly wait, for some minutes, so they are run by hand, not by ctest, whose limit is
shorter.
"""

import os
import re
import shutil
import signal

import harness

SECONDS = 600
# The first sets the clock of a debug build, and Debian's is none; the other reads the sources.
LEFT_OUT = ("expirations.t", "line-lengths.t")


def prepare(run, sources):
    """Copies the tests beside the installed program."""
    shutil.copytree(f"{sources}/t", run.path("t"))
    for name in ("memcached", "memcached-debug"):
        os.symlink(harness.program_path("memcached"), run.path(name))
    run.file("timedrun", "#!/bin/sh\nshift\nexec \"$@\"\n", 0o755)
    for directory, _, names in os.walk(run.path("t")):
        for name in names:
            change(os.path.join(directory, name))


def change(path):
    """An option that exists only in builds with seccomp."""
    with open(path, "r+", encoding="utf-8", errors="surrogateescape") as file:
        text = file.read().replace(" -o relaxed_privileges", "")
        file.seek(0)
        file.write(text)
        file.truncate()


def test(run):
    sources = os.environ.get("SPATE_MEMCACHED_SOURCES")
    if not sources:
        raise harness.Skip(
            "SPATE_MEMCACHED_SOURCES is not set: `apt-get source memcached` makes the directory")
    harness.need("memcached", "prove")
    signal.alarm(SECONDS)
    prepare(run, sources)
    names = sorted(f"t/{name}" for name in os.listdir(run.path("t"))
                   if name.endswith(".t") and name not in LEFT_OUT)
    output = run.call("prove", "-j4", *names, status=None, seconds=SECONDS, weather=False)
    skipped = re.findall(r"^(\S+) \.+ skipped:", output, re.MULTILINE)
    print(f"{len(skipped)} files skip themselves:", *skipped)
    print(re.search("Files=.*", output)[0])
    harness.check("All tests successful" in output, output[-3000:])


if __name__ == "__main__":
    harness.main(test, library="libevent-2.1.so.7", has_traffic=False)
