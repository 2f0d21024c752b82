"""Checks that an idle program uses no processor time: a loop that spins still answers every
request, and no other check would detect it."""

import os
import time

import harness

SECONDS = 1.0
SHARE_MAX = 0.3  # Share of one core.
LIMIT = 15  # Seconds. A busy loop never ends.


def used_seconds(pid):
    """Returns the processor time of a process and of its present children."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            children = file.read().split()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    own = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return own + sum(map(used_seconds, children))


def is_idle(program):
    before = used_seconds(program.pid)
    time.sleep(SECONDS)
    return used_seconds(program.pid) - before < SECONDS * SHARE_MAX


def check_idle(program):
    """At first, and on a busy machine for a while, it may still have work."""
    harness.wait_until(lambda: is_idle(program), f"{program.name} to have nothing to do", LIMIT)
