"""Runs a contestant once, and reads its output."""
import dataclasses
import json
import math
import os
import re

from harness import processes


# As printf() writes such a value, which is no JSON, or as Python does; or one beyond all doubles.
NOT_FINITE = re.compile(r'"value": *-?(nan|inf|\d[\d.]*e\d{3})', re.IGNORECASE)


class LeftOut(Exception):
    """A contestant cannot run here, and says why."""


class Failed(Exception):
    """A contestant crashed, or printed something else than results."""


class Hung(Failed):
    """A contestant did not end in time."""


@dataclasses.dataclass
class Output:
    """The output of one program run."""

    version: str = ""
    library: str = ""
    metrics: dict = dataclasses.field(default_factory=dict)  # name -> value
    units: dict = dataclasses.field(default_factory=dict)
    work: dict = dataclasses.field(default_factory=dict)
    ops: dict = dataclasses.field(default_factory=dict)


def parse(text):
    output = Output()
    for line in text.splitlines():
        try:
            take_row(json.loads(line), output)
        except (ValueError, TypeError, KeyError):
            what = "a number that is not finite" if NOT_FINITE.search(line) else (
                "what is not in the protocol")
            raise Failed(f"it printed {what}: {line[:200]}") from None
    return output


def take_row(row, output):
    if "left_out" in row:
        raise LeftOut(row["left_out"])
    if "metric" in row:
        output.metrics[row["metric"]] = finite(row["value"])
        output.units[row["metric"]] = row["unit"]
    elif "work" in row:
        output.work[row["work"]] = finite(row["value"])
    elif "ops" in row:
        output.ops[row["ops"]] = finite(row["value"])
    elif "version" in row:
        output.version, output.library = row["version"], row.get("library", "")
    else:
        raise ValueError("an unknown row")


def finite(value):
    """Returns the number; raises ValueError for NaN and infinity, which Python's JSON admits."""
    if not math.isfinite(value):
        raise ValueError("not finite")
    return value


def pinned_core():
    """The last core: the first one is where interrupts tend to go."""
    return max(os.sched_getaffinity(0))


def run_command(command, environment, timeout_s, core=None):
    """Runs a program once and returns its stdout and stderr; raises Failed."""
    try:
        done = processes.run(command, timeout_s, environment, core)
    except processes.TimedOut:
        raise Hung(f"it did not end within {timeout_s} s") from None
    except OSError as error:
        raise Failed(f"it did not start: {error}") from None
    if done.returncode < 0:
        raise Failed(f"it was ended by signal {-done.returncode}{last_words(done.stderr)}")
    if done.returncode > 0:
        raise Failed(f"it ended with status {done.returncode}{last_words(done.stderr)}")
    if not done.stdout.strip():
        raise Failed(f"it printed nothing{last_words(done.stderr)}")
    return done.stdout, done.stderr


def last_words(text):
    """Returns the last line of stderr, which is usually the reason."""
    lines = text.strip().splitlines()
    return f": {lines[-1][-200:]}" if lines else ""


def run_case(workload, case, contestant, is_timed=True):
    """Runs one case once; with a core to itself if it is timed and the workload wants that."""
    core = pinned_core() if is_timed and workload.pinned else None
    printed, _ = run_command(contestant.command(case.params_of(contestant.name)),
                             contestant.environment, case.timeout_s, core)
    output = parse(printed)
    if is_timed and not output.metrics.keys() & set(workload.metrics):
        raise Failed(f"it printed none of {', '.join(workload.metrics)}")
    if not is_timed and not output.work:
        raise Failed("it printed nothing about its work")
    return output


def twice(function):
    """Calls the function, and once more if it fails. Returns its result."""
    try:
        return function()
    except Failed:
        return function()
