#!/usr/bin/env python3
"""Fetches packages that spate is compared with.   fetch.py DIRECTORY [PACKAGE]...

Without PACKAGE, these are the loops. Installs their wheels into the directory, and nowhere else.
Does nothing about those that are there or cannot be had: their contestants say so. Never fails, and
takes no longer than SECONDS.
"""
import importlib.util
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import loops  # noqa: E402

SECONDS = 60


def main():
    directory, end = sys.argv[1], time.monotonic() + SECONDS
    sys.path.insert(0, directory)
    wanted = {name: (0, 0) for name in sys.argv[2:]} or loops.PEERS
    for name, oldest in wanted.items():
        if sys.version_info < oldest or importlib.util.find_spec(name) is not None:
            continue
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", directory,
                   "--only-binary", ":all:", "--retries", "0", "--timeout", "5", "--no-input",
                   "--disable-pip-version-check", name]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False,
                                  timeout=max(1.0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            return
        if done.returncode != 0:
            print(f"bench: pip does not install {name}: {done.stderr.strip()[-200:]}")


if __name__ == "__main__":
    main()
