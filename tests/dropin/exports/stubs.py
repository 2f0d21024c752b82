#!/usr/bin/env python3
"""Calls every function of libevent that is not written yet, and looks at how the program ends.

    stubs.py --lib-dir DIRECTORY --names FILE

Each must say its name and abort; a program's fatal callback must be asked first.
"""

import argparse
import ctypes
import os
import re
import resource
import signal
import sys

from shared_objects import finish, left_out

SONAME = "libevent-2.1.so.7"
ABORTS = 0xdeaddead  # What libevent says to a fatal callback when it would abort.
CALLBACK_STATUS = 5
CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_int)


def ending(call):
    """(wait status, what was written to stderr) of a child that makes the call."""
    readable, writable = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(writable, 2)
        call()
        os._exit(0)
    os.close(writable)
    with os.fdopen(readable, "rb") as pipe:
        said = pipe.read().decode(errors="replace")
    return os.waitpid(child, 0)[1], said


def check_stub(library, name):
    status, said = ending(library[name])
    if not os.WIFSIGNALED(status) or os.WTERMSIG(status) != signal.SIGABRT:
        yield f"{name}: ended with wait status {status:#x}, not by SIGABRT"
    if said != f"[err] {name} is not implemented by spate's libevent\n":
        yield f"{name}: said {said!r}"


def check_callback(library, name):
    def leave(code):
        os._exit(CALLBACK_STATUS if code & 0xffffffff == ABORTS else 1)

    callback = CALLBACK(leave)

    def call():
        library.event_set_fatal_callback(callback)
        library[name]()

    status, _ = ending(call)
    if not os.WIFEXITED(status) or os.WEXITSTATUS(status) != CALLBACK_STATUS:
        yield f"{name}: the fatal callback was not asked, the wait status is {status:#x}"


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--lib-dir", required=True)
    parser.add_argument("--names", required=True)
    options = parser.parse_args()
    path = os.path.join(options.lib_dir, SONAME)
    if not os.path.exists(path):
        return left_out(f"{SONAME} was not built")
    with open(options.names, encoding="utf-8") as file:
        names = re.findall(r"^SPATE_STUB\((\w+)\)$", file.read(), re.MULTILINE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    library = ctypes.CDLL(path)
    problems = [problem for name in names for problem in check_stub(library, name)]
    if names:
        problems += check_callback(library, names[0])
    return finish(problems, f"{len(names)} functions are not implemented")


if __name__ == "__main__":
    sys.exit(main())
