#!/usr/bin/env python3
"""Runs compare.cc with a redis-server.

compare.py [PROGRAM] [SEED...]    without hiredis there is no program
"""

import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "support"))
import missing  # pylint: disable=wrong-import-position
import ports  # pylint: disable=wrong-import-position

SEEDS = range(1, 11)


def start(port, folder):
    """Returns a redis-server that accepts connections."""
    server = subprocess.Popen(
        ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", folder],
        stdout=subprocess.PIPE, text=True)
    for line in server.stdout:
        if "Ready to accept connections" in line:
            return server
    sys.exit(f"redis-server has ended with {server.wait()}")


def main(arguments):
    reason = missing.first_missing("redis-server")
    if not arguments:
        reason = missing.not_installed("hiredis")
    if reason:
        print(f"skipped: {reason}")
        return missing.SKIPPED
    program, *seeds = arguments
    with tempfile.TemporaryDirectory() as folder:
        port = ports.free_port()
        with start(port, folder) as server:
            try:
                seeds = seeds or [str(seed) for seed in SEEDS]
                done = subprocess.run([program, str(port), *seeds], check=False)
            finally:
                server.kill()
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
