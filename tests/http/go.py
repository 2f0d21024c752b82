"""The peer that is written in Go."""

import os
import shutil
import subprocess

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "http2_peer.go")


def program(case, directory):
    """Built there; the test is skipped where that cannot be."""
    built = os.path.join(directory, "http2_peer")
    if not shutil.which("go"):
        case.skipTest("Go is not installed")
    done = subprocess.run(["go", "build", "-o", built, SOURCE], stderr=subprocess.PIPE, text=True,
                          env={**os.environ, "GO111MODULE": "off"}, check=False)
    if done.returncode != 0:
        case.skipTest("this Go is too old: " + done.stderr)
    return built
