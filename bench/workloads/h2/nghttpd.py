#!/usr/bin/env python3
"""nghttpd, one thread: files, which it keeps open."""
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harness import ready_made  # noqa: E402


def version(program):
    said = subprocess.run([program, "--version"], text=True, capture_output=True, check=False)
    return said.stdout.strip().rpartition("/")[2]


if __name__ == "__main__":
    ready_made.main(
        lambda root, port: "",
        lambda file: ("--no-tls", "-a", "127.0.0.1", "-d", str(file.parent), "PORT"), version)
