#!/usr/bin/env python3
"""Becomes the load of server.py, if the loop is there; the load starts the server."""
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import loops  # noqa: E402


def main():
    options = loops.arguments(sys.argv[1:])
    loops.check(options)
    os.execv(options["client"], [options["client"], *sys.argv[1:]])


if __name__ == "__main__":
    main()
