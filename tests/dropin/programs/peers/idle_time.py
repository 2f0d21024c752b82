"""Whether a program that has nothing to do does nothing: a loop that turns without cause answers
every request, and no other check would see it."""

import os
import time

import harness

SECONDS = 1.0
SHARE_MAX = 0.3  # Of one core.
LIMIT = 15  # Seconds. What turns without cause never stops.


def used_seconds(pid):
    """The processor time of a process and of the children that it has now."""
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
    """It may have something left to do at first, and on a busy machine for a while."""
    harness.wait_until(lambda: is_idle(program), f"{program.name} to have nothing to do", LIMIT)
