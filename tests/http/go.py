"""The peers written in Go. The build compiles them where Go is installed."""

import os

import missing


def find(name):
    """Returns the path of a peer, or None."""
    path = os.path.join(os.environ.get("SPATE_GO_PEERS", "go_peers"), name)
    return path if os.access(path, os.X_OK) else None


def program(case, name):
    """Returns the path of a peer, or skips the test."""
    path = find(name)
    if not path:
        case.skipTest(missing.not_installed("go"))
    return path
