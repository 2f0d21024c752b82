#!/usr/bin/env python3
"""lighttpd: all of it from files."""
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harness import ready_made  # noqa: E402

CONFIGURATION = """
server.document-root = "ROOT"
server.bind = "127.0.0.1"
server.port = PORT
server.max-fds = 18000
server.max-keep-alive-idle = 60
server.max-keep-alive-requests = 65535
server.tag = ""
server.network-backend = "sendfile"
mimetype.assign = ( "" => "text/plain; charset=utf-8" )
"""


def version(program):
    said = subprocess.run([program, "-v"], text=True, capture_output=True, check=False).stdout
    return said.split()[0].partition("/")[2]


if __name__ == "__main__":
    ready_made.main(
        lambda root, port: CONFIGURATION.replace("ROOT", str(root)).replace("PORT", str(port)),
        lambda file: ("-D", "-f", str(file)), version)
