#!/usr/bin/env python3
"""gevent, as Debian builds it on libev: its watchers, and programs of greenlets (gevent_suite)."""

import os
import subprocess

import harness

PYTHON = "/usr/bin/python3"  # Debian's gevent is built for this one.
LIBEV = {"GEVENT_LOOP": "libev-cext", "PYTHONDONTWRITEBYTECODE": "1"}
SUITE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "gevent_suite")


def need_gevent():
    harness.need(PYTHON)
    found = subprocess.run([PYTHON, "-c", "import gevent.libev.corecext"], check=False,
                           stderr=subprocess.DEVNULL)
    if found.returncode != 0:
        raise harness.Skip("gevent is not installed (package python3-gevent)")


def start(run, name, **how):
    program = run.start(PYTHON, os.path.join(SUITE, name), env=LIBEV, **how)
    program.assert_uses()
    return program


def test(run):
    need_gevent()
    # The tests of single watchers read a fixed number of bytes without checking, so they run
    # without weather.
    programs = [start(run, "watchers.py", weather=False), start(run, "cooperation.py")]
    for program in programs:
        output = program.wait(seconds=90)
        harness.check(output.rstrip().endswith("OK"), f"{program.name} said\n{output}")


if __name__ == "__main__":
    harness.main(test, library="libev.so.4")
