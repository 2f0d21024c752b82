#!/usr/bin/env python3
"""nginx as http has it, on HTTP/2."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harness import ready_made, server  # noqa: E402
from workloads.http import nginx  # noqa: E402

CONFIGURATION = nginx.CONFIGURATION.replace("backlog=4096;", "backlog=4096 http2;")


if __name__ == "__main__":
    ready_made.main(
        lambda root, port: CONFIGURATION.replace("ROOT", str(root)).replace("PORT", str(port)),
        lambda file: ("-c", str(file)), server.nginx_version)
