"""libevent's own regress, on its public functions.

The tests are edited where they access a struct of the library, and linked to libevent_internals.c.
Each test runs in a process by itself.
"""

import glob
import os

import suite

NAME = "regress"
TITLE = "libevent's own tests, on each method"
SOURCES = ["libevent"]
PROGRAMS = ["gcc"]
SECONDS = 60
# The variables, and their names in the report. The first run must be complete.
VARIANTS = {
    "regress": {},
    "regress-poll": {"EVENT_NOEPOLL": "1"},
    "regress-select": {"EVENT_NOEPOLL": "1", "EVENT_NOPOLL": "1"},
    "regress-changelist": {"EVENT_EPOLL_USE_CHANGELIST": "1"},
    "regress-precise": {"EVENT_PRECISE_TIMER": "1"},
    "regress-debug": {"EVENT_DEBUG_MODE": "1"},
}
EDITS = {
    # The pieces of a buffer are internal to the library.
    "regress_buffer.c": [(r"if \(!evbuffer_validate_\(buf\)\)", "if (0)")],
    # The list of a server's connections.
    "regress_http.c": [(r"tt_assert\(TAILQ_FIRST\(&http->connections\) == NULL\);", ";")],
}
# Tests that read the structs of the library. docs/drop-in.md says that they differ.
INTERNAL = {
    "evbuffer/add_reference": "asserts where the bytes lie",
    "evbuffer/empty_reference_prepend": "reads evbuffer->first",
    "evbuffer/empty_reference_prepend_buffer": "reads evbuffer->first",
    "evbuffer/expand": "asserts where the bytes lie",
    "evbuffer/iterative": "measures the unused bytes of each chain",
    "evbuffer/prepend": "reads evbuffer->first",
    "evbuffer/reserve_invalid_last_with_datap": "reads evbuffer->first",
    "evbuffer/reserve_many": "counts the extents of a reservation",
    "evbuffer/reserve_many2": "counts the extents of a reservation",
    "evbuffer/reserve_many3": "counts the extents of a reservation",
    "thread/forking": "reads base->th_notify_fd",
}
LIBRARIES = ("-levent_core -levent_extra -levent_openssl -levent_pthreads -lssl -lcrypto -lz"
             " -lpthread").split()
LEFT_OUT = {"regress_iocp.c"}


def build(world):
    """Returns the program, built once."""
    program = world.path("regress", "regress")
    source = world.source("libevent")
    if os.path.exists(program):
        return program
    place = os.path.dirname(program)
    suite.must([os.path.join(source, "configure"), "-q", "--disable-static"], cwd=place)
    includes = [f"-I{where}" for where in (place, os.path.join(place, "include"),
                                           os.path.join(source, "include"), source,
                                           os.path.join(source, "test"))]
    files = sorted(glob.glob(os.path.join(source, "test", "regress*.c")))
    files.append(os.path.join(source, "test", "tinytest.c"))
    objects = []
    for path in files:
        name = os.path.basename(path)
        if name in LEFT_OUT:
            continue
        copy = world.path("regress", "edited", name)
        suite.edited(path, copy, EDITS.get(name, []))
        objects.append(copy[:-2] + ".o")
        suite.must(["gcc", "-w", "-O1", "-DHAVE_CONFIG_H", *includes, "-c", copy, "-o",
                    objects[-1]])
    helper = os.path.join(os.path.dirname(os.path.abspath(__file__)), "libevent_internals.c")
    objects.append(world.path("regress", "edited", "internals.o"))
    suite.must(["gcc", "-w", "-O1", "-fvisibility=hidden", "-c", helper, "-o", objects[-1]])
    suite.must(["gcc", *objects, "-o", program, *LIBRARIES])
    return program


def names_of(program, world):
    _, output = suite.call([program, "--list-tests"], env=world.environment())
    words = (line.split() for line in output.splitlines())
    return [each[0] for each in words if each and "/" in each[0]]


def run_variant(world, variables):
    program = build(world)

    def run(name, drop_in):
        status, output = suite.call([program, "--quiet", name], SECONDS,
                                    env=world.environment(drop_in, **variables))
        if "SKIPPED" in output or "DISABLED" in output:
            return suite.SKIPPED
        return suite.PASSED if status == 0 else suite.FAILED

    names = [name for name in names_of(program, world) if name not in INTERNAL]
    return suite.compare(names, run)


def run(world):
    suite.need(*PROGRAMS)
    chosen = world.variants or list(VARIANTS)[:1]
    reports = {name: run_variant(world, VARIANTS[name]) for name in chosen}
    summary = "; ".join(f"{name}: {report.summary}" for name, report in reports.items())
    return suite.Report(summary, [f"{name} {test}" for name, report in reports.items()
                                  for test in report.differences])
