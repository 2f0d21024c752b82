#!/usr/bin/env python3
"""h2o, one thread: all of it from files."""
import getpass
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harness import ready_made  # noqa: E402

CONFIGURATION = """
user: USER
num-threads: 1
max-connections: 18000
http1-request-timeout: 60
file.etag: OFF
file.mime.setdefaulttype: "text/plain; charset=utf-8"
server-name: ""
hosts:
  default:
    listen: { host: 127.0.0.1, port: PORT }
    paths: { "/": { file.dir: ROOT } }
"""


def version(program):
    said = subprocess.run([program, "--version"], text=True, capture_output=True, check=False)
    return said.stdout.split()[2]


if __name__ == "__main__":
    ready_made.main(
        lambda root, port: (CONFIGURATION.replace("ROOT", str(root)).replace("PORT", str(port))
                            .replace("USER", getpass.getuser())),
        lambda file: ("-c", str(file)), version)
